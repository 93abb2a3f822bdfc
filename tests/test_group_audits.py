"""What audits say of groups: rates as a law asks for them, what gives groups away, wrong labels, losses; and others' rankings."""

import itertools
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from sklearn.linear_model import LinearRegression

from skfairrank.datasets import load_query_sizes, load_trec_run
from skfairrank.inspection import (
    audit,
    audit_report,
    exposure_by_group,
    fairness_certificate,
    gaps_under_wrong_labels,
    group_leakage,
    impact_ratios,
    upper_confidence_bound,
)
from skfairrank.metrics import (
    group_pairwise_accuracy,
    group_pairwise_accuracy_difference,
    ndcg_score,
)


def test_impact_ratios_by_counting():
    """Selected are the first two of a query, ties shared out; groups unknown or too small are counted without a ratio."""
    people = {"sex": ["f", "f", "m", "m", None, "f", "m", "x"], "race": list("abababab")}
    s, qid = [3.0, 2, 2, 1, 9, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1]
    table = impact_ratios(s, qid=qid, sensitive_features=people, k=2, min_share=0.2)
    third = 1 / 3  # of the second place of query 1
    rates = {"f": (1 + 0.5 + third) / 3, "m": (0.5 + third) / 3, "x": third, "unknown": 1.0}
    sex = table.loc["sex"]
    assert sex["selection_rate"].to_dict() == pytest.approx(rates) and sex["n"].tolist() == [3, 3, 1, 1]
    assert sex["impact_ratio"].tolist() == pytest.approx([1.0, rates["m"] / rates["f"], np.nan, np.nan], nan_ok=True)
    assert table.loc["sex x race"]["n"].sum() == 8 and ("sex x race", "m, a") in table.index
    scoring = impact_ratios(s, qid=qid, sensitive_features=people["race"], rate="scoring")
    assert scoring["scoring_rate"].tolist() == [3 / 4, 1 / 4]  # above 1.5
    for kw, match in (({"rate": "all"}, "rate='all'"), ({"min_share": 1.0}, "min_share"), ({"k": 0}, "k=0")):
        with pytest.raises(ValueError, match=match):
            impact_ratios(s, qid=qid, sensitive_features=people, **kw)


def test_pairwise_accuracy_of_several_groups_weights_and_unknown():
    rng = np.random.default_rng(1)
    qid = rng.integers(0, 9, 150)
    y, s = rng.integers(0, 3, 150), np.round(rng.normal(size=150), 1)
    g = rng.choice(np.array(["a", "b", "c", None], object), 150)
    weight = dict(enumerate(rng.uniform(0, 2, 9)))
    right, pairs = dict.fromkeys("abc", 0.0), dict.fromkeys("abc", 0.0)
    for i, j in itertools.permutations(range(150), 2):
        if qid[i] == qid[j] and y[i] > y[j] and g[i] != g[j] and g[i] and g[j]:
            pairs[g[i]] += weight[qid[i]]
            right[g[i]] += weight[qid[i]] * ((s[i] > s[j]) + 0.5 * (s[i] == s[j]))
    kw = {"qid": qid, "sensitive_features": g, "unknown_groups": "leave_out", "query_weight": weight}
    expected = {k: right[k] / pairs[k] for k in "abc"}
    assert group_pairwise_accuracy(y, s, **kw) == pytest.approx(expected)
    difference = max(expected.values()) - min(expected.values())
    assert group_pairwise_accuracy_difference(y, s, **kw) == pytest.approx(difference)
    with pytest.raises(ValueError, match="missing values"):
        group_pairwise_accuracy(y, s, qid=qid, sensitive_features=g)
    with pytest.warns(UserWarning, match="fewer than two groups"):
        assert np.isnan(group_pairwise_accuracy_difference([1, 1], [0, 1], qid=[0, 0], sensitive_features=["a", "b"]))


def test_leakage_of_columns_of_any_kind():
    """Of a shift by one deviation Phi(1 / sqrt(2)) = .76, of text that is there for .72 of the rows 1 - .28^2 / 2."""
    rng = np.random.default_rng(0)
    n = 2000
    g = rng.choice(["a", "b"], n)
    X = pd.DataFrame({"shift": rng.normal(size=n) + (g == "a"), "none": rng.normal(size=n)})
    X["text"] = np.where(rng.random(n) < 0.2, None, np.where(rng.random(n) < 0.9, g, "c"))
    told = np.where(rng.random(n) < 0.3, None, g)
    found = group_leakage(X, told, qid=np.repeat(np.arange(200), 10), random_state=0)
    assert found.auc_of_columns.tolist() == pytest.approx([0.76, 0.5, 1 - 0.28**2 / 2], abs=0.06)
    assert found.auc > 0.88 and not found.is_joint and found.n_rows == np.sum(told != None)  # noqa: E711
    age = 3.0 * X["shift"] + rng.normal(size=n)
    amount = group_leakage(X[["shift", "none"]], age, cv=3, random_state=0)
    assert amount.r2 == pytest.approx(1 - 1 / age.var(), abs=0.04) and amount.r2_of_columns["none"] < 0.05
    three = group_leakage(X[["none"]], rng.choice(list("xyz"), n), random_state=0)
    assert three.auc == pytest.approx(0.5, abs=0.05)
    for bad, kw, match in ((X.iloc[:, :2], {}, "one after"), (g, {"cv": 1}, "cv=1"), (["a"] * n, {}, "two groups")):
        with pytest.raises(ValueError, match=match):
            group_leakage(X, bad, **kw)


def test_a_certificate_says_what_a_flipped_column_leaves_out():
    """0 % of pairs change, since the ranker does not read the column; the others tell it. Nothing of it where they do not."""
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 800).astype(float)
    X = pd.DataFrame({"sex": sex, "job": sex + rng.normal(scale=0.4, size=800), "skill": rng.normal(size=800)})
    qid, ranker = np.repeat(np.arange(80), 10), LinearRegression().fit(X[["job", "skill"]], X["job"] + X["skill"])

    class Blind:
        def predict(self, X):
            return ranker.predict(X[["job", "skill"]])

    def certificate(X, flip):
        return fairness_certificate(Blind(), X, qid=qid, hypotheticals=flip)

    def exchange(X):
        return X.assign(sex=1 - X["sex"])

    found = certificate(X, exchange)
    assert found.value == 0.0 and found.leakage.auc > 0.9 and found.leakage.changed == ["sex"]
    assert "other columns tell it" in repr(found) and "what goes with it is not certified" in found._repr_html_()
    one_hot = X.assign(no=1 - X["sex"])
    both = certificate(one_hot, lambda X: X.assign(sex=1 - X["sex"], no=1 - X["no"]))
    assert both.leakage.changed == ["sex", "no"] and both.leakage.auc > 0.9
    hidden = certificate(X.assign(job=rng.normal(size=800)), exchange)
    assert hidden.leakage.auc < 0.6 and "other columns" not in repr(hidden)
    assert certificate(X, lambda X: exchange(X).assign(job=1 - X["job"])).leakage is None  # what goes with it, too
    page = audit_report(Blind(), X, X["skill"] ** 2, qid=qid, hypotheticals=exchange, sensitive_features=X["sex"])
    assert page.leakage["sex"].auc == 1.0 and "Read 0% with care" in page._repr_html_()


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.7, 0.2, 0.1]])
def test_gaps_under_wrong_labels_by_simulation(shares):
    """Labels made wrong show the gap `seen`; the `corrected` gap of these labels is the true one again, within chance."""
    rng, n = np.random.default_rng(0), 60_000
    true = rng.choice(len(shares), n, p=shares)
    s, qid = rng.normal(size=n) - 0.8 * true, np.repeat(np.arange(n // 10), 10)
    wrong = rng.random(n) < 0.1
    given = np.where(wrong, (true + rng.integers(1, len(shares), n)) % len(shares), true)
    kw = {"y": np.ones(n), "qid": qid}
    exposure = [exposure_by_group(s, sensitive_features=g.astype(str), **kw) for g in (true, given)]
    right, dirty = (gaps_under_wrong_labels(one, wrong=[0.1]).iloc[0] for one in exposure)
    assert right["gap"] > 0.12 and dirty["gap"] < 0.9 * right["gap"]
    assert right["seen"] == pytest.approx(dirty["gap"], abs=0.012)
    assert dirty["corrected"] == pytest.approx(right["gap"], abs=0.012)
    assert np.isnan(gaps_under_wrong_labels(exposure[0], wrong=[0.6]).iloc[0]["corrected"])


def test_the_report_tells_losses_as_loudly_as_gains():
    """The average improves, and one of three groups loses; errors rest on firms, and items have their own ids."""
    rng, n = np.random.default_rng(0), 1500
    qid, firm = np.repeat(np.arange(150), 10), np.repeat(np.arange(30), 50)
    g = rng.choice(["north", "east", "south"], n, p=[0.5, 0.3, 0.2])
    skill = rng.normal(size=n)
    log = pd.DataFrame({"old": skill + rng.normal(size=n)}, index=[f"A-{k}" for k in range(n)])
    log["new"] = skill + 0.4 * rng.normal(size=n) - 0.8 * (g == "south")
    y = np.digitize(skill, [0, 1])
    other = {"other": log + 0.3 * rng.normal(size=(n, 2))}
    kw = {"y": y, "qid": qid, "reference": "old", "clusters": firm}
    report = audit_report(log, sensitive_features=g, hypotheticals=other, n_worst=1, **kw)
    rows = report.differences.set_index(["what", "group"])
    for what in ("exposure", "rank"):
        column = exposure_by_group(log, sensitive_features=g, **kw)
        expected, old = (column.loc[(name, "group", "south")] for name in ("new", "old"))
        assert rows.loc[(what, "south"), "difference"] == pytest.approx(expected[what] - old[what])
        assert rows.loc[(what, "south"), "p"] == expected[f"{what}_difference_p"] < 0.001
        assert not rows.loc[(what, "south"), "is_better"]
    ranks = log["new"].groupby(qid).rank(ascending=False)
    of_group = ranks[g == "south"].groupby(qid[g == "south"]).mean()
    assert column.loc[("new", "group", "south"), "rank"] == pytest.approx(of_group.mean())
    of_lists, table = rows.loc[("ndcg", "")], audit(log, k=10, **kw)
    assert of_lists["p"] == pytest.approx(table.loc["new", "ndcg_difference_p"]) and of_lists["is_better"]
    page = report._repr_html_()
    worse = page[page.index("Worse than old") : page.index("Better than old")]
    assert "mean place of south" in worse and "further down" in worse and "north" not in worse
    assert page.index("Better than old") < page.index("quality +")
    assert "150 lists of 30 clusters" in page and "earlier screening" in page and "What wrong group labels hide" in page
    assert report.worst_queries()["item"].str.startswith("A-").all()
    same = audit_report({"a": log["old"], "b": log["old"]}, y=y, qid=qid, sensitive_features=g, reference="a")
    assert "No difference to a is larger than chance explains" in same._repr_html_()


def test_runs_and_sizes_of_other_tools(tmp_path):
    run, qrels = tmp_path / "run.txt", tmp_path / "qrels.txt"
    run.write_text("2 Q0 d1 1 3.5 bm25\n2 Q0 d2 2 1.5 bm25\n\n10 Q0 d1 1 0.5 bm25\n10 Q0 d9 9 0.7 bm25\n")
    qrels.write_text("2 0 d2 1\n10 0 d1 2\n10 0 d9 -1\n10 0 d4 1\n")
    found = load_trec_run(run, qrels)
    assert found.qid.tolist() == ["2", "2", "10", "10"] and found.target.tolist() == [0, 1, 2, 0]
    assert found.is_judged.tolist() == [False, True, True, True] and found.name == "bm25" and found.n_missing == 1
    table = audit({found.name: found.scores}, y=found.target, qid=found.qid)
    assert table.loc["bm25", "ndcg"] == pytest.approx(1 / np.log2(3))
    assert "target" not in load_trec_run(run)
    for text, match in (
        ("2 Q0 d1 1 3.5\n", "not of the form"),
        ("2 Q0 d1 1 high bm25\n", "no number"),
        ("2 Q0 d1 1 1 a\n2 Q0 d1 2 0 a\n", "there twice"),
        ("\n", "an empty file"),
    ):
        with pytest.raises(ValueError, match=match):
            load_trec_run(StringIO(text), qrels)
    with pytest.raises(ValueError, match="judges no item"):
        load_trec_run(run, StringIO("a 0 b 1\n"))
    sizes = tmp_path / "train.txt.query"
    sizes.write_text("2\n1\n")
    assert load_query_sizes(sizes).tolist() == [0, 0, 1]
    for text in ("", "2\n0\n", "2.5\n"):
        with pytest.raises(ValueError, match="size"):
            load_query_sizes(StringIO(text))


def test_clusters_are_what_is_independent():
    """A cluster counts by the sum of its weights, with the mean of its values; without that the bound covers too rarely."""
    rng = np.random.default_rng(1)
    x, w, firm = rng.random(60), rng.uniform(0, 2, 60), rng.integers(0, 12, 60)
    firms = list(dict.fromkeys(firm.tolist()))
    mean, total = zip(
        *((np.average(x[firm == k], weights=w[firm == k]), w[firm == k].sum()) for k in firms), strict=True
    )
    got = upper_confidence_bound(x, weight=w, clusters=firm)
    assert got == pytest.approx(upper_confidence_bound(mean, weight=total), rel=1e-6)
    missed = np.zeros(3)
    for _ in range(150):  # audits at 80 % of 20 firms with 1 to 8 openings each, whose mean tells of the firm
        sizes = rng.integers(1, 9, 20)
        x = np.clip(rng.normal(np.repeat(rng.beta(0.5, 2, 20), sizes), 0.03), 0, 1)
        firm, w = np.repeat(np.arange(20), sizes), np.repeat(rng.uniform(0.5, 1.5, 20), sizes)
        for k, kw in enumerate(({}, {"clusters": firm}, {"clusters": firm, "weight": w})):
            missed[k] += upper_confidence_bound(x, 0.8, **kw) < 0.2
    assert missed[0] > 0.22 * 150 > missed[1:].max()


def test_standard_errors_and_p_values_rest_on_clusters():
    """Of one query each they are those without; else they are those of sums over clusters, written out."""
    rng = np.random.default_rng(3)
    qid = rng.permutation(np.repeat(np.arange(30), rng.integers(2, 7, 30)))
    y, group = rng.integers(1, 4, len(qid)), rng.choice(["a", "b"], len(qid))
    rankers, kw = {name: rng.normal(size=len(qid)) for name in ("one", "other")}, {"qid": qid, "random_state": 4}
    weight, firm = np.random.default_rng(0).uniform(0.5, 3.0, 30), np.random.default_rng(1).integers(0, 6, 30)
    plain = audit(rankers, y=y, reference="one", query_weight=weight, **kw)
    got = audit(rankers, y=y, reference="one", query_weight=weight, clusters=firm[qid], **kw)
    values = [ndcg_score(y, ranker, qid=qid, reduce=None) for ranker in rankers.values()]
    for column, x in (("ndcg", values[1]), ("ndcg_difference", values[1] - values[0])):
        mean = np.average(x, weights=weight)
        sums = [np.sum((weight * (x - mean))[firm == one]) for one in range(6)]
        error = np.sqrt(6 / 5 * np.sum(np.square(sums))) / weight.sum()
        assert got.loc["other", column] == plain.loc["other", column] == pytest.approx(mean, rel=1e-12)
        assert got.loc["other", f"{column}_se"] == pytest.approx(error, rel=1e-10)
    assert got.loc["other", "ndcg_difference_p"] == pytest.approx(2 * t.sf(abs(mean) / error, 5), rel=1e-9)
    for one_each in (qid, dict(zip(range(30), "abcdefghijklmnopqrstuvwxyzABCD", strict=True))):
        alike = audit(rankers, y=y, reference="one", query_weight=weight, clusters=one_each, **kw)
        pd.testing.assert_frame_equal(alike, plain)
    told = {"y": y, "qid": qid, "sensitive_features": group}
    by_group = [exposure_by_group(rankers, clusters=c, **told) for c in (None, firm[qid])]
    assert (by_group[0]["exposure"] == by_group[1]["exposure"]).all()
    assert (by_group[0]["exposure_se"] != by_group[1]["exposure_se"]).all()
    for clusters, match in ((np.arange(len(qid)), "several clusters"), ({0: "a"}, "29 missing"), (firm, "of each")):
        with pytest.raises(ValueError, match=match):
            audit(rankers, y=y, clusters=clusters, **kw)
