"""audit against the public metrics that it shows, and standard errors against a loop over queries."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from skfairrank import SensitiveSubspaceMetric
from skfairrank.inspection import audit, nearest_queries
from skfairrank.metrics import (
    group_exposure_difference,
    group_exposure_disparity,
    kendall_tau_score,
    stochastic_ndcg_score,
)


class Weights:
    """A linear ranker that was never fitted."""

    def __init__(self, *w):
        self.w = np.array(w)

    def predict(self, X):
        return np.asarray(X, dtype=float) @ self.w


@pytest.fixture
def task():
    rng = np.random.default_rng(3)
    sizes = rng.integers(2, 7, 30)
    qid = rng.permutation(np.repeat(np.arange(30), sizes))
    group = rng.choice(["a", "b"], len(qid))
    X = np.column_stack([rng.normal(size=(len(qid), 2)), group == "a"])
    return X, rng.integers(1, 4, len(qid)), qid, group, X - np.array([0.0, 0.0, 2.0]) * X + np.array([0.0, 0.0, 1.0])


def test_numbers_are_those_of_the_public_metrics(task):
    X, y, qid, group, flipped = task
    ranker = Weights(1.0, -0.5, 0.8)
    s, other = ranker.predict(X), ranker.predict(flipped)
    table = audit(ranker, X, y, qid=qid, sensitive_features=group, X_hypothetical=flipped, n_samples=20, random_state=4)
    assert table.index.tolist() == ["Weights"]
    row, kw = table.iloc[0], {"qid": qid, "n_samples": 20, "random_state": 4}
    assert row["ndcg"] == stochastic_ndcg_score(y, s, **kw)
    assert row["tau"] == kendall_tau_score(s, other, qid=qid)
    assert row["disparity"] == group_exposure_disparity(y, s, sensitive_features=group, **kw)
    assert row["exposure_difference"] == group_exposure_difference(
        s, sensitive_features=group, policy="plackett-luce", **kw
    )
    each = [(s[qid == q], other[qid == q]) for q in np.unique(qid)]
    assert row["top_changed"] == pytest.approx(np.mean([np.argmax(a) != np.argmax(b) for a, b in each]))
    assert row["score_change"] == pytest.approx(np.mean([np.sqrt(np.mean((a - b) ** 2)) for a, b in each]))


def test_standard_errors_over_queries(task):
    X, y, qid, group, flipped = task
    ranker = Weights(1.0, -0.5, 0.8)
    s, other = ranker.predict(X), ranker.predict(flipped)
    row = audit(ranker, X, y, qid=qid, sensitive_features=group, X_hypothetical=flipped, n_samples="exact").iloc[0]
    values = {"ndcg": [], "tau": []}
    for q in np.unique(qid):
        own = qid == q
        values["ndcg"].append(stochastic_ndcg_score(y[own], s[own], qid=qid[own], n_samples="exact"))
        values["tau"].append(kendall_tau_score(s[own], other[own], qid=qid[own]))
    for name, each in values.items():
        assert row[name] == pytest.approx(np.mean(each))
        assert row[f"{name}_se"] == pytest.approx(np.std(each, ddof=1) / np.sqrt(len(each)))


def test_standard_errors_of_many_queries_come_from_batches():
    """That of 200 batch means varies by a twentieth; within five of those it is that over the 2,000 queries."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(2000), 3)
    X, y = rng.normal(size=(6000, 2)), rng.integers(0, 3, 6000) + 1
    row = audit(Weights(1, 0), X, y, qid=qid, X_hypothetical=rng.normal(size=(6000, 2)), n_samples="exact").iloc[0]
    # independent rankings of three items: tau is 1, 1/3, -1/3, -1 with odds 1 : 2 : 2 : 1, so its variance is 11/27
    assert row["tau_se"] == pytest.approx(np.sqrt(11 / 27 / 2000), rel=0.25)


def test_several_rankers_share_their_random_numbers(task):
    X, y, qid, group, _ = task
    same = {"first": Weights(1, 0, 0), "again": Weights(1, 0, 0), "other": Weights(0, 1, 0)}
    for state in (0, None, np.random.default_rng(0)):
        table = audit(same, X, y, qid=qid, sensitive_features=group, n_samples=5, random_state=state)
        assert table.index.tolist() == ["first", "again", "other"]
        pd.testing.assert_series_equal(table.loc["first"], table.loc["again"], check_names=False)
        assert table.loc["first", "ndcg"] != table.loc["other", "ndcg"]


def test_columns_follow_what_is_known(task):
    X, y, qid, group, flipped = task
    ranker, names = Weights(1, 0, 0), lambda **kw: set(audit(ranker, X, y, qid=qid, **kw)) - {"ndcg", "ndcg_se"}
    assert not names()
    stability = {"tau", "top_changed", "score_change"}
    assert {n for n in names(X_hypothetical=flipped) if not n.endswith("_se")} == stability
    assert names(X_hypothetical=lambda X: 1 - X) == names(X_hypothetical=flipped)
    both = {"disparity", "exposure_difference"}
    assert {n for n in names(sensitive_features=group) if not n.endswith("_se")} == both
    three = np.where(np.arange(len(y)) % 3 == 0, "c", group)
    assert "disparity" not in names(sensitive_features=three)


def test_hypothetical_from_the_fair_metric(task):
    X, y, qid, _, _ = task
    metric = SensitiveSubspaceMetric(directions=[[0, 0, 1]]).fit(X)
    ranker = Weights(1.0, -0.5, 0.8)
    nearest = nearest_queries(X, X, qid=qid, qid_reference=qid, metric=metric)
    row = audit(ranker, X, y, qid=qid, metric=metric).iloc[0]
    assert row["tau"] == kendall_tau_score(ranker.predict(X), ranker.predict(X[nearest.rows]), qid=qid)


def test_a_ranker_that_ignores_the_flipped_column_is_perfectly_stable(task):
    X, y, qid, _, flipped = task
    row = audit(LinearRegression().fit(X * [1, 1, 0], y), X, y, qid=qid, X_hypothetical=flipped).iloc[0]
    assert (row["tau"], row["top_changed"]) == (1.0, 0.0) and row["score_change"] < 1e-12
    assert (row["tau_se"], row["top_changed_se"]) == (0.0, 0.0)


def test_one_query_has_no_standard_error():
    row = audit(Weights(1.0), [[1.0], [0.0]], [1, 0], qid=[0, 0]).iloc[0]
    assert np.isfinite(row["ndcg"]) and np.isnan(row["ndcg_se"])


def test_errors_say_what_to_do(task):
    X, y, qid, _group, _ = task
    with pytest.raises(ValueError, match="at least one fitted ranker"):
        audit({}, X, y, qid=qid)
    with pytest.raises(ValueError, match="X_hypothetical has 3 rows"):
        audit(Weights(1, 0, 0), X, y, qid=qid, X_hypothetical=X[:3])
    with pytest.raises(ValueError, match="qid"):
        audit(Weights(1, 0, 0), X, y, qid=None)
    with pytest.raises(ValueError, match="sensitive_features has 1 entries"):
        audit(Weights(1, 0, 0), X, y, qid=qid, sensitive_features=["a"])
