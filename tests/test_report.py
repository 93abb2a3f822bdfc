"""The report: numbers by their definitions, names of users escaped, one file that stands alone."""

import datetime
import re
import sys
import warnings
from html import unescape
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression

from skfairrank.hypotheticals import Hypotheticals
from skfairrank.inspection import AuditReport, audit, audit_report, exposure_by_group, fairness_certificate
from skfairrank.metrics import kendall_tau_score

NASTY = "<script>alert('1')</script>\"&<b>"


class Linear(BaseEstimator):
    """Scores X @ w."""

    def __init__(self, w):
        self.w = w

    def predict(self, X):
        return np.asarray(X, dtype=float) @ np.asarray(self.w)


def flip(X):
    X[:, 1] = 1 - X[:, 1]
    return X


def raise_(X):
    X[:, 0] += np.arange(len(X)) % 3
    return X


def task(n_queries=25, n_items=5, seed=0):
    rng = np.random.default_rng(seed)
    n = n_queries * n_items
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n)])
    y, order = rng.integers(0, 3, n), rng.permutation(n)
    qid = np.array([f"q{k:02d}" for k in np.repeat(np.arange(n_queries), n_items)])
    return X[order], y[order], qid[order]


def page_of(report, tmp_path, **settings):
    report.to_html(tmp_path / "report.html", **settings)
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def text_of(page):
    """What a reader sees: no tags, no style, one space between words."""
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", page)))


@pytest.fixture(scope="module")
def full():
    """Two rankers, two hypotheticals, two attributes, a reference."""
    X, y, qid = task()
    rankers = {"blind": Linear([1.0, 0.0]), "by group": Linear([1.0, 0.8])}
    attributes = {"sex": np.where(X[:, 1] == 1, "woman", "man"), "age": (np.arange(len(X)) % 3).astype(str)}
    settings = {"hypotheticals": {"sex flipped": flip, "raised": raise_}, "sensitive_features": attributes, "k": 3}
    report = audit_report(rankers, X, y, qid=qid, reference="blind", random_state=0, n_worst=2, **settings)
    return report, rankers, X, y, qid, attributes


def test_tables_are_those_of_the_functions_that_make_them(full):
    report, rankers, X, y, qid, attributes = full
    functions = {"sex flipped": flip, "raised": raise_}
    for name, ranker in rankers.items():
        for found, statistic in ((report.certificates, "discordance"), (report.top_certificates, "top_changed")):
            expected = fairness_certificate(ranker, X, qid=qid, hypotheticals=functions, statistic=statistic)
            assert found[name].value == expected.value and found[name].upper_bound == expected.upper_bound
            pd.testing.assert_frame_equal(found[name].per_query, expected.per_query)
    table = audit(rankers, X, y, qid=qid, reference="blind", k=3, random_state=0)
    pd.testing.assert_frame_equal(report.table[table.columns], table)
    pd.testing.assert_frame_equal(
        report.exposure,
        exposure_by_group(rankers, X, y, qid=qid, sensitive_features=attributes, k=3, reference="blind"),
    )
    by_sex = audit(rankers, X, y, qid=qid, sensitive_features=attributes["sex"], k=3)
    assert report.gaps.loc[("by group", "sex"), "disparity"] == by_sex.loc["by group", "disparity"]


def test_worst_queries_by_brute_force(full):
    """Of each ranker the two queries in which most pairs change order, each under its worst hypothetical."""
    report, rankers, X, _, qid, _ = full
    others = {"sex flipped": flip(X.copy()), "raised": raise_(X.copy())}
    worst = report.worst_queries()
    for ranker, scorer in rankers.items():
        turned = {}
        for q in np.unique(qid):
            rows = np.flatnonzero(qid == q)
            for name, Z in others.items():
                s, t = scorer.predict(X[rows]), scorer.predict(Z[rows])
                pairs = list(combinations(range(len(rows)), 2))
                turned[q, name] = np.mean([(s[i] > s[j]) != (t[i] > t[j]) for i, j in pairs])
        by_query = pd.Series(turned).groupby(level=0).max().sort_values(ascending=False, kind="stable")
        of_ranker = worst[worst["ranker"] == ranker]
        assert of_ranker["qid"].unique().tolist() == by_query.index[:2].tolist()
        for (q, name), items in of_ranker.groupby(["qid", "hypothetical"]):
            assert items["unfairness"].iloc[0] == pytest.approx(by_query[q]) == turned[q, name]
            rows = items["row"].to_numpy()
            assert set(rows) == set(np.flatnonzero(qid == q))
            assert (np.diff(scorer.predict(X[rows])) < 0).all() and items["rank"].tolist() == [1, 2, 3, 4, 5]
            order = rows[np.argsort(-scorer.predict(others[name][rows]))]
            assert items.set_index("row").loc[order, "hypothetical_rank"].tolist() == [1, 2, 3, 4, 5]
            assert (items["move"] == items["rank"] - items["hypothetical_rank"]).all()
    for item in worst[worst["hypothetical"] == "sex flipped"].itertuples():
        assert item.change == ("column 1: 1 → 0" if X[item.row, 1] == 1 else "column 1: 0 → 1")
    assert report.hypotheticals.loc[("blind", "sex flipped"), ["discordance", "rows_changed"]].tolist() == [0, 1]
    assert report.hypotheticals.loc[("blind", "raised"), "rows_changed"] == 83 / 125  # all but each third


def test_page_says_the_numbers_in_words(full, tmp_path):
    report = full[0]
    text = text_of(page_of(report, tmp_path).split("<main>")[1])
    for certificate in report.certificates.values():
        assert f"In 25 lists, {round(100 * certificate.value, 1):g}% of the pairs of items change order" in text
    bounds = [float(bound) for bound in re.findall(r"for new lists like these at most ([\d.]+)%", text)]
    for bound, certificate in zip(bounds, report.certificates.values(), strict=True):  # rounded up, so that it holds
        assert certificate.upper_bound <= bound / 100 < certificate.upper_bound + 0.001
    assert f"random order {report.facts['random_ndcg']:.2f}" in text
    assert "What this does not say" in text and "Less that of blind" in text


@pytest.mark.parametrize("k", [1, 2, 10])
def test_ndcg_of_a_random_order_is_the_mean_over_all_orders(k):
    """Queries of 3, 2, 2 and 1 items, of which one has nothing relevant, by their definition."""
    X, y, qid = odd_queries()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        report = audit_report(Linear([1.0, 1.0]), X, y, qid=qid, k=k)
    of_queries = []
    for q in "acd":
        gains = 2.0 ** y[qid == q] - 1
        discounts = [1 / np.log2(2 + i) if i < k else 0.0 for i in range(len(gains))]
        worth = [np.dot(order, discounts) for order in permutations(gains)]
        of_queries.append(np.mean(worth) / max(worth))
    assert report.facts["random_ndcg"] == pytest.approx(np.mean(of_queries), rel=1e-12)


def test_names_of_users_are_text_and_nothing_else(tmp_path):
    X, y, qid = task()
    frame = pd.DataFrame(X, columns=[f"a{NASTY}", f"b{NASTY}"])

    def other(Z):
        return Z.assign(**{f"b{NASTY}": 1 - Z[f"b{NASTY}"]})

    report = audit_report(
        {f"ranker{NASTY}": Linear([1.0, 1.0]), "other": Linear([1.0, 0.0])},
        frame,
        y,
        qid=[f"query{q}{NASTY}" for q in qid],
        hypotheticals={f"hypothetical{NASTY}": other, "second": other},
        sensitive_features={f"attribute{NASTY}": [f"group{x:g}{NASTY}" for x in X[:, 1]]},
        item_names=[f"item{i}{NASTY}" for i in range(len(y))],
        reference="other",
    )
    page = page_of(report, tmp_path, title=f"title{NASTY}", date=f"date{NASTY}")
    assert not re.search(r"<(script|b)\b|\son\w+=", page) and "alert('1')</script" not in page
    text = text_of(page)
    for what in ("title", "date", "ranker", "hypothetical", "attribute", "group0", "query", "item", "b"):
        assert f"{what}{NASTY}" in text or re.search(rf"{what}\w*{re.escape(NASTY)}", text), what


def test_page_stands_alone_and_is_the_same_each_time(full, tmp_path):
    report, rankers, X, y, qid, attributes = full
    page = page_of(report, tmp_path)
    assert not re.search(r"""((src|href)=["'](?!#)|url\((?!#)|@import|<script|<link)""", page)
    assert set(re.findall(r"https?://[^\"' <]+", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    settings = {"hypotheticals": {"sex flipped": flip, "raised": raise_}, "sensitive_features": attributes, "k": 3}
    again = audit_report(rankers, X, y, qid=qid, reference="blind", random_state=0, n_worst=2, **settings)
    assert page_of(again, tmp_path) == page and report._repr_html_() in page
    assert "2031-05-06" in page_of(report, tmp_path, date=datetime.date(2031, 5, 6))


def test_sparse_tables():
    X, _, qid = task()
    plain, flipped = sparse.csr_array(X), sparse.csr_array(flip(X.copy()))
    ranker = LinearRegression().fit(X, X @ [1.0, 0.8])
    report = audit_report(ranker, plain, X[:, 0] > 0, qid=qid, X_hypothetical={"flipped": flipped})
    tau = kendall_tau_score(ranker.predict(plain), ranker.predict(flipped), qid=qid)
    assert report.certificates["LinearRegression"].value == pytest.approx((1 - tau) / 2) and tau < 1
    assert report.hypotheticals["rows_changed"].tolist() == [1.0]
    assert set(report.worst_queries()["change"]) == {"column 1: 1 → 0", "column 1: 0 → 1"}


def odd_queries():
    """One item, nothing relevant, one group alone, ties, float32, read-only, string ids in any order."""
    qid = np.array(["c", "a", "b", "a", "c", "d", "c", "b"])
    X = np.array([[1, 0], [2, 1], [0, 1], [2, 0], [1, 1], [5, 1], [3, 1], [1, 1]], dtype=np.float32)
    X.flags.writeable = False
    return X, np.array([1, 2, 0, 0, 0, 1, 1, 0]), qid


@pytest.mark.parametrize("attributes", [None, "one group", "two"])
@pytest.mark.parametrize("asked", ["hypotheticals", "none"])
def test_odd_queries_have_a_page(attributes, asked, tmp_path):
    X, y, qid = odd_queries()
    groups = {None: None, "one group": ["g"] * 8, "two": X[:, 1]}[attributes]
    hypotheticals = {"flipped": flip} if asked == "hypotheticals" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        report = audit_report(Linear([1.0, 1.0]), X, y, qid=qid, hypotheticals=hypotheticals, sensitive_features=groups)
    page = page_of(report, tmp_path)
    text = text_of(page)
    assert "nan" not in text and "None" not in text and "inf" not in text
    assert isinstance(report, AuditReport) and "3 lists with a relevant item" in text
    assert ("No hypotheticals were given" in text) == (asked == "none")
    assert (report.gaps is None) == (attributes != "two") and (report.exposure is None) == (attributes is None)
    if asked == "none":
        assert report.worst_queries().empty and not report.certificates and "Confidence" not in text


def test_nothing_relevant_and_nothing_changed(tmp_path):
    X, _, qid = task()
    with pytest.warns(UndefinedMetricWarning):
        report = audit_report(Linear([1.0, 0.0]), X, np.zeros(len(X)), qid=qid, hypotheticals=flip)
    text = text_of(page_of(report, tmp_path))
    assert "Quality cannot be measured" in text and "no two items change order" in text
    assert "Under no hypothetical does any list change its order" in text and len(report.worst_queries()) == 0


def test_scores_and_rankers_side_by_side():
    """A column of a log beside a ranker, with its scores under the hypothetical; what changes is known of rows alone."""
    X, y, qid = task()
    ranker, log, other = Linear([1.0, 0.8]), X[:, 0] + 0.2 * X[:, 1], X[:, 0] - 0.2 * X[:, 1]
    both = audit_report(
        {"ranker": ranker, "log": log},
        X,
        y,
        qid=qid,
        hypotheticals={"flipped": {"ranker": ranker.predict(flip(X.copy())), "log": other}},
    )
    alone = audit_report(ranker, X, y, qid=qid, hypotheticals={"flipped": flip})
    scores = audit_report(pd.DataFrame({"log": log}), y=y, qid=qid, hypotheticals={"flipped": other})
    for report, name, of_both in ((alone, "Linear", "ranker"), (scores, "log", "log")):
        assert report.certificates[name].value == both.certificates[of_both].value > 0
        assert report.table.loc[name, "ndcg"] == both.table.loc[of_both, "ndcg"]
    assert (scores.worst_queries()["change"] == "").all() and "changes" not in text_of(scores._repr_html_()).split(
        "In short"
    )[0]
    with pytest.raises(ValueError, match="'log' is given by its scores"):
        audit_report({"ranker": ranker, "log": log}, X, y, qid=qid, hypotheticals={"flipped": flip})
    with pytest.raises(ValueError, match="none of .'log'.: give a table or a dict"):
        audit_report({"ranker": ranker, "log": log}, X, y, qid=qid, hypotheticals={"flipped": {"ranker": other}})
    with pytest.raises(ValueError, match="X is missing"):
        audit_report({"ranker": ranker}, y=y, qid=qid)


@pytest.mark.parametrize("name", ["jinja2", "matplotlib"])
def test_the_page_needs_an_extra_and_the_tables_do_not(name, monkeypatch):
    X, y, qid = task()
    monkeypatch.setitem(sys.modules, name, None)
    report = audit_report(Linear([1.0, 0.8]), X, y, qid=qid, hypotheticals=flip)
    with pytest.raises(ImportError, match=rf"needs {name}.*\[plots\]"):
        report._repr_html_()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": 0}, "k=0: give an integer >= 1"),
        ({"reference": "c"}, "reference='c' is none of the rankers"),
        ({"y": [1, 0]}, "X has 125 rows and y has 2"),
        ({"sensitive_features": np.linspace(0, 1, 125)}, "continuous"),
        ({"hypotheticals": {"cut": lambda X: X[:-1]}}, "'cut' returned has shape"),
        ({"hypotheticals": Hypotheticals(n_neighbors=1)}, "fit it on training rows"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_errors_say_what_to_do(changed, message):
    X, y, qid = task()
    given = {"rankers": {"a": Linear([1, 0])}, "X": X, "y": y, "qid": qid, "hypotheticals": flip} | changed
    with pytest.raises(ValueError, match=message):
        audit_report(**given)


def test_unknown_is_in_no_comparison_of_groups(tmp_path):
    """Known groups get the places 1 and 2 in turn, so each as much as the other; who is unknown gets the last."""
    group, scores, y = np.tile(["a", "b", None, "b", "a", None], 10), np.tile([3.0, 2, 1], 20), np.tile([2, 1, 0], 20)
    report = audit_report(scores, y=y, qid=np.repeat(np.arange(20), 3), sensitive_features=group, k=3)
    assert "Exposure by group: least of most scores 1.000 ± 0.000 100%" in text_of(page_of(report, tmp_path))
