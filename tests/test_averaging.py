"""Scores averaged over hypothetical rows, and a student of them. Expected values come from the definition, on scores of the
models alone."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from instruments import failures_of_check_estimator
from lightgbm import LGBMRanker, LGBMRegressor
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from skfairrank import (
    AveragingRanker,
    DistilledRanker,
    PlackettLuceRanker,
    QueryRanker,
    QueryScaler,
    SenSTIRBoostingRanker,
    SenSTIRRanker,
)
from skfairrank.hypotheticals import Hypotheticals
from skfairrank.metrics import kendall_tau_score, ndcg_score
from skfairrank.model_selection import QueryKFold

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
Y, QID = np.digitize(X[:, 0] + X[:, 2], [0.0, 1.0]), np.repeat(np.arange(15), 8)
LINEAR, TREES = PlackettLuceRanker(max_iter=50, random_state=0), LGBMRanker(n_estimators=5, n_jobs=1, verbose=-1)


def swapped(table):
    return table[:, [1, 0, 2, 3]]


def turned(table):
    return table[:, [1, 2, 0, 3]]


def mirrored(table):
    return table[:, ::-1]


def turned_back(table):
    return table[:, [2, 0, 1, 3]]


@pytest.mark.parametrize("model", [LINEAR, TREES, Ridge(), make_pipeline(StandardScaler(), Ridge())], ids=str)
def test_rows_of_a_group_of_exchanges_have_one_score_to_the_bit(model):
    ranker = AveragingRanker(model, hypotheticals=[turned, turned_back]).fit(X, Y, qid=QID)
    scores = ranker.predict(X)
    assert np.array_equal(ranker.predict(turned(X)), scores)
    inner = clone(model).fit(X, Y) if isinstance(model, Ridge) else ranker.estimator_
    expected = (inner.predict(X) + inner.predict(turned(X)) + inner.predict(turned_back(X))) / 3
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    given = AveragingRanker(model).fit(X, Y, qid=QID)
    for tables in ([turned(X), turned_back(X)], np.stack([turned_back(X), turned(X)], axis=1)):
        assert np.array_equal(given.predict(X, X_hypothetical=tables), scores)
    assert given.score(X, Y, qid=QID, X_hypothetical=[turned(X), turned_back(X)]) == ndcg_score(Y, scores, qid=QID)
    assert np.array_equal(given.rank(X, qid=QID, X_hypothetical=[turned(X), turned_back(X)]), ranker.rank(X, qid=QID))


def test_weights_are_those_of_the_row_and_of_each_set():
    inner = Ridge().fit(X, Y)
    ranker = AveragingRanker(FrozenEstimator(inner), hypotheticals={"swap": swapped, "turn": turned}, weights=[1, 0, 3])
    expected = (inner.predict(X) + 3 * inner.predict(turned(X))) / 4
    np.testing.assert_allclose(ranker.fit(X, Y, qid=QID).predict(X), expected, rtol=1e-12)
    for weights in ([1, 2], [1, -1, 1], [0, 0, 0], [1, np.nan, 1], [[1, 1, 1]]):
        with pytest.raises(ValueError, match=r"give 1 \+ 2 numbers"):
            clone(ranker).set_params(weights=weights).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=r"give 1 \+ 3 numbers"):
        ranker.predict(X, X_hypothetical=swapped(X))


def test_hypothetical_rows_are_checked_where_they_come_in():
    with pytest.warns(UserWarning, match="changes no row"):
        AveragingRanker(LINEAR, hypotheticals=lambda table: table).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="hypothetical"):
        AveragingRanker(LINEAR, hypotheticals=lambda table: table[:, :2]).fit(X, Y, qid=QID)
    ranker = AveragingRanker(LINEAR).fit(X, Y, qid=QID)
    for told in ({}, {"X_hypothetical": X[:, :3]}, {"X_hypothetical": X[:7]}):
        with pytest.raises(ValueError, match="hypothetical"):
            ranker.predict(X, **told)
    with pytest.raises(ValueError, match="qid"):
        ranker.rank(X, X_hypothetical=swapped(X))


def test_groups_reach_hypotheticals_and_qid_the_steps_that_ask():
    frame, gaps = pd.DataFrame(X, columns=list("abcd")), Hypotheticals(gaps=True, steps=(1.0,))
    with sklearn.config_context(enable_metadata_routing=True):
        scaled = AveragingRanker(make_pipeline(QueryScaler(), LINEAR), hypotheticals=gaps)
        scaled.fit(frame, Y, qid=QID, sensitive_features=np.where(X[:, 0] > 0, "x", "y"))
        tables = [frame, *(rows for _, rows in scaled.hypotheticals_.candidates(frame))]
        expected = np.mean([scaled.estimator_.predict(table, qid=QID) for table in tables], axis=0)
    np.testing.assert_allclose(scaled.predict(frame, qid=QID), expected, rtol=1e-9)


# The student


@pytest.mark.parametrize(
    "teacher",
    [LinearRegression(), QueryRanker(Ridge()), LGBMRegressor(n_estimators=5, verbose=-1), TREES, LINEAR],
    ids=str,
)
def test_a_student_is_taught_the_mean_relevance(teacher):
    ranker = DistilledRanker(teacher, Ridge(), hypotheticals=swapped).fit(X, Y, qid=QID)
    own, other = (ranker.teacher_.predict(table) for table in (X, swapped(X)))
    if teacher in (TREES, LINEAR):  # in the labels' units by isotonic regression
        units = IsotonicRegression(out_of_bounds="clip").fit(own, Y)
        own, other = units.predict(own), units.predict(other)
    expected = (np.maximum(own, 0) + np.maximum(other, 0)) / 2
    np.testing.assert_allclose(ranker.relevance_, expected, rtol=1e-9)
    np.testing.assert_allclose(ranker.predict(X), Ridge().fit(X, expected).predict(X), rtol=1e-9)
    by_table = DistilledRanker(teacher, Ridge()).fit(X, Y, qid=QID, X_hypothetical=swapped(X))
    assert np.array_equal(by_table.predict(X), ranker.predict(X))


def test_a_student_that_pulls_rows_together_gets_the_same_hypothetical_rows():
    boosted = SenSTIRBoostingRanker(clone(TREES).set_params(min_child_samples=5), rho=0.1, random_state=0)
    linear = SenSTIRRanker(adversary="given", max_iter=50, rho=0.1, random_state=0)
    for student in (boosted, linear):
        ranker = DistilledRanker(Ridge(), student, hypotheticals=swapped).fit(X, Y, qid=QID)
        alone = clone(student).fit(X, ranker.relevance_, qid=QID, X_hypothetical=swapped(X))
        assert np.array_equal(ranker.predict(X), alone.predict(X)) and ranker.student_.hypotheticals_.names_ == []
    assert kendall_tau_score(ranker.predict(X), ranker.predict(swapped(X)), qid=QID) > 0.8


def test_what_a_teacher_or_a_student_can_not_be():
    with pytest.raises(ValueError, match="no hypothetical rows"):
        DistilledRanker(Ridge(), Ridge()).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="classifier"):
        DistilledRanker(LogisticRegression(), Ridge(), hypotheticals=swapped).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="negative"):
        DistilledRanker(Ridge(), Ridge(), hypotheticals=swapped).fit(X, Y - 1.0, qid=QID)
    two = DistilledRanker(LogisticRegression(), Ridge(), hypotheticals=swapped).fit(X, np.minimum(Y, 1), qid=QID)
    assert 0 <= two.relevance_.min() < two.relevance_.max() <= 1  # probabilities


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="older ones hand nothing to the score of a pipeline",
)
def test_one_qid_in_pipelines_and_searches():
    student = SenSTIRRanker(adversary="given", max_iter=10, random_state=0)
    for step, name in (
        (DistilledRanker(Ridge(), student), "student__rho"),
        (AveragingRanker(LINEAR), "estimator__alpha"),
    ):
        grid = {f"{type(step).__name__.lower()}__{name}": [0.0, 0.1]}
        with sklearn.config_context(enable_metadata_routing=True):
            search = GridSearchCV(make_pipeline(StandardScaler(), step), grid, cv=QueryKFold(2), error_score="raise")
            search.fit(X, Y, qid=QID, X_hypothetical=swapped(X))
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    "ranker",
    [AveragingRanker(Ridge(), hypotheticals=mirrored), DistilledRanker(Ridge(), Ridge(), hypotheticals=mirrored)],
)
@pytest.mark.filterwarnings("ignore")
def test_check_estimator(ranker):
    assert not failures_of_check_estimator(ranker)
