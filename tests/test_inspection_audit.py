"""audit against the public metrics that it shows, and standard errors against a loop over queries."""

import numpy as np
import pandas as pd
import pytest
from instruments import Weights
from scipy.stats import ttest_rel
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank import SensitiveSubspaceMetric
from skfairrank.inspection import audit, exposure_by_group
from skfairrank.metrics import (
    group_exposure_difference,
    group_exposure_disparity,
    kendall_tau_score,
    ndcg_score,
    stochastic_ndcg_score,
)


@pytest.fixture
def task():
    rng = np.random.default_rng(3)
    sizes = rng.integers(2, 7, 30)
    qid = rng.permutation(np.repeat(np.arange(30), sizes))
    group = rng.choice(["a", "b"], len(qid))
    X = np.column_stack([rng.normal(size=(len(qid), 2)), group == "a"])
    return X, rng.integers(1, 4, len(qid)), qid, group, X - np.array([0.0, 0.0, 2.0]) * X + np.array([0.0, 0.0, 1.0])


@pytest.mark.parametrize("policy, k", [("deterministic", None), ("plackett_luce", 2), ("plackett-luce", None)])
def test_numbers_are_those_of_the_public_metrics(task, policy, k):
    X, y, qid, group, flipped = task
    ranker = Weights(1.0, -0.5, 0.8)
    s, other = ranker.predict(X), ranker.predict(flipped)
    given = {"qid": qid, "sensitive_features": group, "X_hypothetical": flipped, "n_samples": 20, "random_state": 4}
    table = audit(ranker, X, y, policy=policy, k=k, **given)
    assert table.index.tolist() == ["Weights"]
    row, kw = table.iloc[0], {"qid": qid, "n_samples": 20, "random_state": 4, "k": k}
    of_policy = kw | {"sensitive_features": group, "policy": policy}
    expected = {
        "ndcg": ndcg_score(y, s, qid=qid, k=k, reduce=None),
        "stochastic_ndcg": stochastic_ndcg_score(y, s, reduce=None, **kw),
        "tau": kendall_tau_score(s, other, qid=qid, reduce=None),
        "disparity": group_exposure_disparity(y, s, reduce=None, **of_policy),
        "exposure_difference": group_exposure_difference(s, reduce=None, **of_policy),
    }
    each = [(s[qid == q], other[qid == q]) for q in np.unique(qid)]
    expected["top_changed"] = np.array([np.argmax(a) != np.argmax(b) for a, b in each])
    expected["score_change"] = np.array([np.sum((a - b) ** 2) / 2 for a, b in each])
    assert {name for name in row.index if not name.endswith("_se")} == set(expected)
    for name, values in expected.items():
        values = values[~np.isnan(values.astype(float))]
        assert row[name] == pytest.approx(values.mean(), rel=1e-12), name
        assert row[f"{name}_se"] == pytest.approx(values.std(ddof=1) / np.sqrt(len(values)), rel=1e-9), name


def test_weighted_means_and_their_standard_errors(task):
    """Written out as a loop over the queries in which a column is defined, here not all; query 3 weighs nothing."""
    X, y, qid, group, flipped = task
    y, weights = np.where(qid == 5, 0, y), np.random.default_rng(0).uniform(0.5, 3.0, 30)
    weights[3] = 0.0
    ranker = Weights(1.0, -0.5, 0.8)
    s, kw = ranker.predict(X), {"qid": qid, "sensitive_features": group, "n_samples": 20, "random_state": 4}
    with pytest.warns(UndefinedMetricWarning, match="ndcg is undefined in 1 of 29"):
        row = audit(ranker, X, y, query_weight=dict(enumerate(weights)), X_hypothetical=flipped, **kw).iloc[0]
    columns = {
        "ndcg": ndcg_score(y, s, qid=qid, reduce=None),
        "stochastic_ndcg": stochastic_ndcg_score(y, s, qid=qid, n_samples=20, random_state=4, reduce=None),
        "tau": kendall_tau_score(s, ranker.predict(flipped), qid=qid, reduce=None),
        "exposure_difference": group_exposure_difference(s, qid=qid, sensitive_features=group, reduce=None),
    }
    for name, values in columns.items():
        counted = [(w, x) for w, x in zip(weights, values, strict=True) if w > 0 and not np.isnan(x)]
        n, total = len(counted), sum(w for w, _ in counted)
        mean = sum(w * x for w, x in counted) / total
        square = sum(w**2 * (x - mean) ** 2 for w, x in counted) * n / (n - 1)
        assert row[name] == pytest.approx(mean, rel=1e-12), name
        assert row[f"{name}_se"] == pytest.approx(np.sqrt(square) / total, rel=1e-12), name


def test_standard_errors_of_many_queries():
    """Independent rankings of three items: tau is 1, 1/3, -1/3, -1 with odds 1 : 2 : 2 : 1, so its variance is 11/27."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(2000), 3)
    X, y = rng.normal(size=(6000, 2)), rng.integers(0, 3, 6000) + 1
    row = audit(Weights(1, 0), X, y, qid=qid, X_hypothetical=rng.normal(size=(6000, 2)), n_samples="exact").iloc[0]
    assert row["tau_se"] == pytest.approx(np.sqrt(11 / 27 / 2000), rel=0.05)


def test_undefined_queries_are_left_out_with_one_warning(task):
    """Of the standard errors too; said once, not for each ranker, and not again of the stochastic NDCG."""
    X, y, qid, _, _ = task
    y = np.where(qid < 3, 0, y)
    rankers = {"a": Weights(1, 0, 0), "b": Weights(0, 1, 0)}
    with pytest.warns(UndefinedMetricWarning, match="ndcg is undefined in 3 of 30 queries") as caught:
        table = audit(rankers, X, y, qid=qid)
    assert len(caught) == 1 and caught[0].filename == __file__
    left = audit(rankers, X[qid >= 3], y[qid >= 3], qid=qid[qid >= 3])
    for name in ("ndcg", "ndcg_se"):
        np.testing.assert_allclose(table[name], left[name], rtol=1e-12)


def test_data_that_tell_no_rankers_apart_are_said_to_measure_nothing(task):
    X, _, qid, _, _ = task
    with pytest.warns(UndefinedMetricWarning, match="ndcg measures nothing here"):
        audit({"a": Weights(1, 0, 0), "b": Weights(0, 1, 0)}, X, np.ones(len(X)), qid=qid)


def test_hypothetical_rows_of_a_frame_stay_in_their_places_and_kinds(task):
    X, y, qid, group, flipped = task
    X, flipped = (pd.DataFrame(table, columns=list("abc")) for table in (X, flipped))
    with pytest.raises(ValueError, match="X_hypothetical has the rows of X in another order"):
        audit(Weights(1, 0, 1), X, y, qid=qid, X_hypothetical=flipped[::-1])
    by_name = audit(Weights(1, 0, 1), X, y, qid=qid, hypotheticals=flipped[["b", "a", "c"]])
    assert by_name["tau"].item() == audit(Weights(1, 0, 1), X, y, qid=qid, hypotheticals=flipped)["tau"].item()

    class ByCategory:
        def predict(self, X):
            return X["a"] + X["c"].cat.codes

    X["c"] = pd.Categorical(group, categories=["b", "a", "none"])  # which a column of text is cast to
    as_text = audit(ByCategory(), X, y, qid=qid, X_hypothetical=lambda X: X.assign(c="a"), random_state=0)
    cast = X.assign(c=pd.Categorical(["a"] * len(X), categories=["b", "a", "none"]))
    pd.testing.assert_frame_equal(as_text, audit(ByCategory(), X, y, qid=qid, X_hypothetical=cast, random_state=0))


def test_hypothetical_rows_may_be_texts():
    class Length:
        def predict(self, X):
            return [len(text) for text in X]

    row = audit(
        Length(), ["a", "bb", "ccc"], [0, 1, 2], qid=[0, 0, 0], X_hypothetical=lambda X: ["a", "bbb", "cc"], n_samples=2
    ).iloc[0]
    assert row["tau"] == pytest.approx(1 / 3)  # one of three pairs is turned
    with pytest.raises(ValueError, match="2 scores of the hypothetical 'X_hypothetical'"):
        audit(Length(), ["a", "bb", "ccc"], [0, 1, 2], qid=[0, 0, 0], X_hypothetical=["a", "b"])


def test_of_several_hypotheticals_the_worst_of_each_query_counts(task):
    """Functions, a table and scores give the same; the worst is that which changes the most pairs, for all columns."""
    X, y, qid, _, flipped = task
    ranker, moved = Weights(1.0, -0.5, 0.8), X + np.array([1.0, 0.0, 0.0]) * X[:, [1]]
    s, others = ranker.predict(X), [ranker.predict(flipped), ranker.predict(moved)]
    kw = {"qid": qid, "random_state": 0}
    row = audit(ranker, X, y, hypotheticals={"flip": lambda X: flipped, "moved": moved}, **kw).iloc[0]
    alone = audit(s, y=y, hypotheticals=dict(zip(("flip", "moved"), others, strict=True)), **kw).iloc[0]
    pd.testing.assert_series_equal(row, alone, check_names=False)
    taus = np.array([kendall_tau_score(s, other, qid=qid, reduce=None) for other in others])
    worst = np.argmin(taus, axis=0)
    assert row["tau"] == pytest.approx(taus.min(axis=0).mean()) and 0 < worst.mean() < 1
    change = [[((s - other)[qid == q] ** 2).sum() / 2 for q in np.unique(qid)] for other in others]
    assert row["score_change"] == pytest.approx(np.mean(np.choose(worst, change)))


def test_scores_take_the_place_of_rankers(task):
    X, y, qid, group, flipped = task
    ranker, kw = Weights(1.0, -0.5, 0.8), {"qid": qid, "sensitive_features": group, "random_state": 0}
    s, other = ranker.predict(X), ranker.predict(flipped)
    expected = audit({"log": ranker}, X, y, hypotheticals=flipped, **kw)
    for scores, hypothetical in (
        (pd.Series(s, name="log"), other),
        (pd.DataFrame({"log": s}), {"flip": pd.DataFrame({"log": other})}),
        ({"log": s.tolist()}, {"flip": {"log": other}}),
    ):
        pd.testing.assert_frame_equal(audit(scores, y=y, hypotheticals=hypothetical, **kw), expected)
    by_group = exposure_by_group(pd.Series(s, name="log"), y=y, qid=qid, sensitive_features=group)
    pd.testing.assert_frame_equal(by_group, exposure_by_group({"log": ranker}, X, y, qid=qid, sensitive_features=group))
    assert audit(np.column_stack([s, other]), y=y, qid=qid).index.tolist() == ["scores 0", "scores 1"]
    for rankers, given, message in (
        (s, {"hypotheticals": lambda X: X}, "X is missing"),
        (s, {"metric": SensitiveSubspaceMetric(directions=[[0, 0, 1]]).fit(X)}, "X is missing"),
        (s[:3], {}, "3 scores of X by 'scores' for"),
        ({"a": s, "b": s}, {"hypotheticals": {"flip": {"a": s}}}, "none of .'b'."),
        (s, {"hypotheticals": {"flip": s[:3]}}, "3 scores of the hypothetical 'flip'"),
        (np.where(s > 1, np.nan, s), {}, "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            audit(rankers, y=y, qid=qid, **given)


def test_errors_say_what_to_do(task):
    X, y, qid, _group, _ = task
    with pytest.raises(ValueError, match="at least one fitted ranker"):
        audit({}, X, y, qid=qid)
    with pytest.raises(ValueError, match=r"X_hypothetical has shape \(3, 3\)"):
        audit(Weights(1, 0, 0), X, y, qid=qid, X_hypothetical=X[:3])
    with pytest.raises(ValueError, match="qid"):
        audit(Weights(1, 0, 0), X, y, qid=None)
    with pytest.raises(ValueError, match=r"y is missing \(None\): give one relevance"):
        audit(Weights(1, 0, 0), X, None, qid=qid)
    with pytest.raises(ValueError, match="policy='sorted'.*deterministic.*plackett_luce"):
        audit(Weights(1, 0, 0), X, y, qid=qid, policy="sorted")
    with pytest.raises(TypeError, match="metric is a ndarray"):
        audit(Weights(1, 0, 0), X, y, qid=qid, metric=np.eye(3))
    for masked in ({"X": np.ma.masked_less(X, 0)}, {"X": X, "hypotheticals": np.ma.masked_less(X, 0)}):
        with pytest.raises(ValueError, match="mask"):
            audit(Weights(1, 0, 0), y=y, qid=qid, **masked)
    with pytest.raises(ValueError, match="sensitive_features has 1 entries"):
        audit(Weights(1, 0, 0), X, y, qid=qid, sensitive_features=["a"])


# Differences to a reference


def test_differences_are_paired_by_query(task):
    """The paired t test of scipy, on the public metrics' values per query; query 5 has no relevant row, and NDCG is left out."""
    X, y, qid, group, flipped = task
    y = np.where(qid == 5, 0, y)
    one, other = Weights(1.0, -0.5, 0.8), Weights(0.3, 1.0, 0.1)
    kw = {"qid": qid, "sensitive_features": group, "X_hypothetical": flipped, "n_samples": "exact"}
    with pytest.warns(UndefinedMetricWarning, match="1 of 30"):
        table = audit({"one": one, "other": other}, X, y, reference="one", **kw)
    metrics = {
        "ndcg": lambda r: ndcg_score(y, r.predict(X), qid=qid, reduce=None),
        "tau": lambda r: kendall_tau_score(r.predict(X), r.predict(flipped), qid=qid, reduce=None),
        "disparity": lambda r: group_exposure_disparity(
            y, r.predict(X), qid=qid, sensitive_features=group, policy="deterministic", reduce=None
        ),
    }
    for name, metric in metrics.items():
        a, b = metric(other), metric(one)
        keep = ~np.isnan(a - b)
        expected = ttest_rel(a[keep], b[keep])
        assert table.loc["other", f"{name}_difference"] == pytest.approx((a - b)[keep].mean(), rel=1e-10)
        error = (a - b)[keep].std(ddof=1) / np.sqrt(keep.sum())
        assert table.loc["other", f"{name}_difference_se"] == pytest.approx(error, rel=1e-10)
        assert table.loc["other", f"{name}_difference_p"] == pytest.approx(expected.pvalue, rel=1e-8)
        at_reference = table.loc["one", [f"{name}_difference", f"{name}_difference_se", f"{name}_difference_p"]]
        assert at_reference.tolist() == [0.0, 0.0, 1.0]


# Groups


def test_table_of_groups_by_a_loop(task):
    X, y, qid, group, _ = task
    y = np.where(qid == 5, 0, y)
    three = np.where(np.arange(len(y)) % 3 == 0, "c", group)
    ranker = Weights(1.0, -0.5, 0.8)
    table = exposure_by_group(
        ranker, X, y, qid=qid, sensitive_features={"three": three, "sex": group}, crossed=True, k=2
    )
    s, columns = ranker.predict(X), {}
    for attribute, labels in (
        ("three", three),
        ("sex", group),
        ("three x sex", np.char.add(np.char.add(three, ", "), group)),
    ):
        for label in np.unique(labels):
            found = {name: [] for name in ("exposure", "merit", "exposure_per_merit", "share_of_items", "share_of_top")}
            for q in np.unique(qid):
                rows = np.flatnonzero(qid == q)
                order = rows[np.argsort(-s[rows])]
                exposure = {i: 1 / np.log2(2 + r) for r, i in enumerate(order)}
                mine = [i for i in rows if labels[i] == label]
                found["share_of_items"].append(len(mine) / len(rows))
                found["share_of_top"].append(sum(i in mine for i in order[:2]) / 2)
                if mine:
                    mean, merit = np.mean([exposure[i] for i in mine]), np.mean(y[mine])
                    found["exposure"].append(mean)
                    found["merit"].append(merit)
                    if merit > 0:
                        found["exposure_per_merit"].append(mean / merit)
            columns[attribute, label] = found
    assert set(table.index) == {("Weights", *key) for key in columns}
    for key, found in columns.items():
        row = table.loc[("Weights", *key)]
        assert row["n_queries"] == len(found["exposure"])
        for name, values in found.items():
            assert row[name] == pytest.approx(np.mean(values), rel=1e-12), (key, name)
            assert row[f"{name}_se"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(len(values)), rel=1e-9)
    for attribute in ("three", "sex", "three x sex"):
        np.testing.assert_allclose(
            table.xs(attribute, level="attribute")[["share_of_items", "share_of_top"]].sum(), 1.0
        )


def test_tables_of_groups_take_frames_and_several_rankers(task):
    X, y, qid, group, _ = task
    frame = pd.DataFrame({"sex": group, "old": X[:, 0] > 0})
    pair = {"a": Weights(1, 2, 3), "b": Weights(3, 2, 1)}
    kw = {"qid": qid, "policy": "plackett_luce", "n_samples": 10, "random_state": 0, "k": 1}
    both = exposure_by_group(pair, X, y, sensitive_features=frame, **kw)
    assert both.index.names == ["ranker", "attribute", "group"] and len(both) == 2 * 4
    alone = exposure_by_group(pair["a"], X, y, sensitive_features=frame["old"], **kw)
    of_one = [table.xs(key).xs("old") for table, key in ((both, "a"), (alone, "Weights"))]
    pd.testing.assert_frame_equal(*of_one, check_index_type=False)
    stacked = exposure_by_group(pair["a"], X, y, sensitive_features=frame.astype(str).to_numpy(), **kw)
    assert stacked.index.get_level_values("attribute").unique().tolist() == ["attribute 0", "attribute 1"]
    np.testing.assert_array_equal(stacked.to_numpy(), both.xs("a").to_numpy())
    with pytest.raises(ValueError, match="continuous"):
        exposure_by_group(pair, X, y, sensitive_features=X[:, 0], **kw)
    with pytest.raises(ValueError, match="at least two attributes"):
        exposure_by_group(pair, X, y, sensitive_features=group, crossed=True, **kw)
