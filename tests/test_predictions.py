"""`qid` reaches the steps that ask for it, in scorers, audits and Displays, and nobody else."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import skfairrank.metrics as metrics
from skfairrank import PlackettLuceRanker
from skfairrank.inspection import RankDisplacementDisplay, ScoreContourDisplay, audit
from skfairrank.metrics import (
    QueryScorer,
    kendall_tau_scorer,
    make_kendall_tau_scorer,
    ndcg_score,
    ndcg_scorer,
)
from skfairrank.metrics._predictions import ranking_scores
from skfairrank.model_selection import QueryKFold

SCORERS = {name: getattr(metrics, name) for name in metrics.__all__ if isinstance(getattr(metrics, name), QueryScorer)}


class CentredInQueries(BaseEstimator):
    """Features less their mean in the query. Not by TransformerMixin, whose fit_transform would lose qid."""

    __metadata_request__fit = {"qid": True}
    __metadata_request__transform = {"qid": True}

    def fit(self, X, y=None, *, qid=None):
        self.is_fitted_ = True
        return self

    def fit_transform(self, X, y=None, *, qid=None):
        return self.fit(X).transform(X, qid=qid)

    def transform(self, X, *, qid=None):
        if qid is None:
            raise ValueError("CentredInQueries got no qid")
        X, qid = np.asarray(X), np.asarray(qid)
        return X - np.array([X[qid == q].mean(axis=0) for q in qid])


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = rng.integers(0, 3, 60).astype(float)
    y[:12] = 2
    qid = np.tile(np.arange(12), 5)
    X += 5 * rng.normal(size=(12, 3))[qid]
    metadata = {
        "qid": qid,
        "sensitive_features": rng.choice(["a", "b"], 60),
        "X_hypothetical": X + rng.normal(size=X.shape),
    }
    return X, y, metadata


def centred(X, qid):
    return X - np.array([X[qid == q].mean(axis=0) for q in qid])


def fit(pipeline, X, y, qid):
    with sklearn.config_context(enable_metadata_routing=True):
        return pipeline.fit(X, y, qid=qid)


PIPELINES = {
    "step": lambda: make_pipeline(CentredInQueries(), Ridge()),
    "step behind another": lambda: make_pipeline(
        StandardScaler(with_std=False), CentredInQueries(), "passthrough", Ridge()
    ),
    "pipeline in a pipeline": lambda: make_pipeline(Pipeline([("inner", CentredInQueries())]), Ridge()),
    "last step is a pipeline": lambda: Pipeline([("no", None), ("all", make_pipeline(CentredInQueries(), Ridge()))]),
    "columns": lambda: make_pipeline(ColumnTransformer([("all", CentredInQueries(), [0, 1, 2])]), Ridge()),
}


@pytest.mark.parametrize("kind", PIPELINES)
@pytest.mark.parametrize("is_enabled", [False, True])
def test_scores_of_a_pipeline_are_those_of_its_steps_by_hand(kind, is_enabled, task):
    X, y, metadata = task
    qid = metadata["qid"]
    pipeline = fit(PIPELINES[kind](), X, y, qid)
    by_hand = Ridge().fit(centred(X, qid), y).predict(centred(X, qid))
    with sklearn.config_context(enable_metadata_routing=is_enabled):
        for estimator in (pipeline, FrozenEstimator(pipeline)):
            np.testing.assert_allclose(ranking_scores(estimator, X, qid=qid), by_hand, rtol=1e-9)
        assert sklearn.get_config()["enable_metadata_routing"] == is_enabled
        with pytest.raises(ValueError, match="CentredInQueries got no qid"):
            ranking_scores(pipeline, X)


@pytest.mark.parametrize("name", SCORERS)
def test_every_scorer_hands_qid_on(name, task):
    X, y, metadata = task
    scorer, qid = SCORERS[name], metadata["qid"]
    pipeline = fit(make_pipeline(CentredInQueries(), PlackettLuceRanker(max_iter=20, random_state=0)), X, y, qid)
    given = {key: value for key, value in metadata.items() if key in scorer._metadata}
    by_hand = given | {key: centred(value, qid) for key, value in given.items() if key == "X_hypothetical"}
    assert scorer(pipeline, X, y, **given) == scorer(pipeline[-1], centred(X, qid), y, **by_hand)


def test_hypothetical_rows_stand_in_the_queries_of_their_rows(task):
    X, y, metadata = task
    qid = metadata["qid"]
    pipeline = fit(make_pipeline(CentredInQueries(), Ridge()), X, y, qid)
    made = make_kendall_tau_scorer(lambda X: X[::-1] * 2)
    expected = kendall_tau_scorer(pipeline[-1], centred(X, qid), qid=qid, X_hypothetical=centred(X[::-1] * 2, qid))
    assert made(pipeline, X, qid=qid) == expected


@pytest.mark.usefixtures("routing")
def test_in_a_search_and_after_it(task):
    X, y, metadata = task
    qid = metadata["qid"]
    pipeline = make_pipeline(CentredInQueries(), Ridge())
    search = GridSearchCV(
        pipeline, {"ridge__alpha": [1, 100]}, cv=QueryKFold(3), scoring=ndcg_scorer, error_score="raise"
    )
    search.fit(X, y, qid=qid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    expected = ndcg_score(y, search.best_estimator_[-1].predict(centred(X, qid)), qid=qid)
    assert ndcg_scorer(search, X, y, qid=qid) == expected
    nested = cross_validate(
        search, X, y, cv=QueryKFold(2), params={"qid": qid}, scoring=ndcg_scorer, error_score="raise"
    )
    assert np.isfinite(nested["test_score"]).all()


def test_classifiers_get_it_for_their_decision_function(task):
    X, y, metadata = task
    qid = metadata["qid"]
    pipeline = fit(make_pipeline(CentredInQueries(), LogisticRegression()), X, y > 1, qid)
    expected = pipeline[-1].decision_function(centred(X, qid))
    np.testing.assert_array_equal(ranking_scores(pipeline, X, qid=qid), expected)


class TakesQid(RegressorMixin, BaseEstimator):
    """A ranker whose own predict takes qid."""

    def fit(self, X, y):
        self.is_fitted_ = True
        return self

    def predict(self, X, *, qid=None):
        return X[:, 0] if qid is None else centred(X, np.asarray(qid))[:, 0]


class RequestsQid(TakesQid):
    __metadata_request__predict = {"qid": True}


class NoEstimator:
    """Not scikit-learn's."""

    def predict(self, X, qid):
        return centred(X, np.asarray(qid))[:, 0]


class PassesAnything(NoEstimator):
    def predict(self, X, **kwargs):
        assert not kwargs
        return X[:, 0]


def test_who_gets_qid(task):
    X, _, metadata = task
    qid = metadata["qid"]
    in_queries = centred(X, qid)[:, 0]
    for estimator in (TakesQid(), RequestsQid(), NoEstimator(), make_pipeline(RequestsQid()).fit(X, None)):
        np.testing.assert_array_equal(ranking_scores(estimator, X, qid=qid), in_queries)
    # Who did not ask, or said no, is left alone.
    with sklearn.config_context(enable_metadata_routing=True):
        refuses = TakesQid().set_predict_request(qid=False)
    for estimator in (PassesAnything(), refuses, make_pipeline(TakesQid()).fit(X, None)):
        np.testing.assert_array_equal(ranking_scores(estimator, X, qid=qid), X[:, 0])


@pytest.mark.parametrize(
    "estimator",
    [
        LinearRegression(),
        VotingRegressor([("a", LinearRegression()), ("b", Ridge())]),
        BaggingRegressor(LinearRegression(), n_estimators=2, random_state=0),
        make_pipeline(StandardScaler(), Ridge()),
        make_pipeline(StandardScaler(), PlackettLuceRanker(max_iter=5, random_state=0)),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore:fit got no qid")
@pytest.mark.parametrize("is_enabled", [False, True])
def test_estimators_that_know_no_qid_predict_as_ever(estimator, is_enabled, task):
    X, y, metadata = task
    estimator.fit(X, y)
    with sklearn.config_context(enable_metadata_routing=is_enabled):
        np.testing.assert_array_equal(ranking_scores(estimator, X, qid=metadata["qid"]), estimator.predict(X))


def test_audit_and_displays_hand_qid_on(task):
    X, y, metadata = task
    qid, hypothetical = metadata["qid"], metadata["X_hypothetical"]
    pipeline = fit(make_pipeline(CentredInQueries(), PlackettLuceRanker(max_iter=20, random_state=0)), X, y, qid)
    ranker, Z, Z_hypothetical = pipeline[-1], centred(X, qid), centred(hypothetical, qid)
    table = audit({"ranker": pipeline}, X, y, qid=qid, X_hypothetical=hypothetical)
    by_hand = audit({"ranker": ranker}, Z, y, qid=qid, X_hypothetical=Z_hypothetical, random_state=0)
    for column in ("ndcg", "tau", "top_changed"):
        assert table.loc["ranker", column] == by_hand.loc["ranker", column]
    kw = {"qid": qid, "n_samples": 20, "random_state": 0}
    display = RankDisplacementDisplay.from_estimator(pipeline, X, hypothetical, **kw)
    expected = RankDisplacementDisplay.from_estimator(ranker, Z, Z_hypothetical, **kw)
    np.testing.assert_array_equal(display.displacement, expected.displacement)
    with pytest.raises(ValueError, match="depend on all rows of a query"):
        ScoreContourDisplay.from_estimator(pipeline, X)
