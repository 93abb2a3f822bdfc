"""A metric is asked about the features in which it was learned, wherever a pipeline has them."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from skfairrank import PlackettLuceRanker, QueryRanker, QueryScaler, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.inspection import audit, nearest_queries
from skfairrank.metrics import kendall_tau_score, ndcg_scorer
from skfairrank.model_selection import QueryKFold

pytestmark = pytest.mark.once


@pytest.fixture
def task():
    """Features of very different scale, so that neighbours in X are not those in scaled X."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) * [1.0, 500.0, 0.02, 1.0] + [0.0, 3000.0, 0.0, 0.0]
    group = rng.integers(0, 2, 120)
    X[:, 3] += 2 * group
    y = np.digitize(X[:, 0] + X[:, 2] / 0.02, [0.0, 1.0]).astype(float)
    y[::5] = 2
    return X, y, np.repeat(np.arange(24), 5), group


def fair(*steps):
    return make_pipeline(*steps, SenSTIRRanker(rho=0.01, max_iter=30, random_state=0))


def fitted(pipeline, task):
    X, y, qid, group = task
    name = pipeline.steps[-1][0]
    return pipeline.fit(X, y, **{f"{name}__qid": qid, f"{name}__sensitive_features": group})


def tau_in(metric, Z, ranker, X, qid):
    """By hand: neighbours of rows Z of the metric's space, and their rows of X."""
    rows = nearest_queries(Z, Z, qid=qid, qid_reference=qid, metric=metric).rows
    return kendall_tau_score(ranker.predict(X), ranker.predict(X[rows]), qid=qid)


def tau_of_audit(estimator, X, y, qid, metric):
    return audit(estimator, X, y, qid=qid, metric=metric)["tau"].tolist()


def test_behind_the_steps_of_a_pipeline(task):
    X, y, qid, _ = task
    pipeline = fitted(fair(StandardScaler()), task)
    metric = pipeline[-1].metric_
    expected = tau_in(metric, StandardScaler().fit_transform(X), pipeline, X, qid)
    assert tau_of_audit(pipeline, X, y, qid, metric) == [expected]
    assert tau_in(metric, X, pipeline, X, qid) != expected  # what the features as given would say


WRAPPED = {
    "frozen metric": lambda pipeline: (pipeline, FrozenEstimator(pipeline[-1].metric_)),
    "nested pipeline": lambda pipeline: (
        Pipeline([("none", "passthrough"), ("inner", pipeline)]),
        pipeline[-1].metric_,
    ),
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_however_pipeline_and_metric_are_wrapped(task, kind):
    X, y, qid, _ = task
    pipeline = fitted(fair(StandardScaler()), task)
    expected = tau_in(pipeline[-1].metric_, pipeline[:-1].transform(X), pipeline, X, qid)
    estimator, metric = WRAPPED[kind](pipeline)
    assert tau_of_audit(estimator, X, y, qid, metric) == [expected]


def test_in_a_search_and_in_an_adapter(task):
    X, y, qid, group = task
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            fair(MinMaxScaler()),
            {"senstirranker__rho": [0.01, 0.1]},
            cv=QueryKFold(2),
            scoring=ndcg_scorer,
            error_score="raise",
        )
        search.fit(X, y, qid=qid, sensitive_features=group)
        best = search.best_estimator_
        expected = tau_in(best[-1].metric_, best[:-1].transform(X), search, X, qid)
        assert tau_of_audit(search, X, y, qid, best[-1].metric_) == [expected]
    project = make_pipeline(StandardScaler(), SensitiveSubspaceMetric(directions=[[0, 0, 0, 1.0]]), LinearRegression())
    adapter = QueryRanker(project).fit(X, y, qid=qid)
    metric = adapter.estimator_[1]  # a step: it measures what the steps before it give
    expected = tau_in(metric, StandardScaler().fit_transform(X), adapter, X, qid)
    assert tau_of_audit(adapter, X, y, qid, metric) == [expected]


def test_every_ranker_of_one_table_in_its_own_space(task):
    """Two use the metric, each behind steps of its own; the other two are asked about the neighbours of the first."""
    X, y, qid, _ = task
    metric = SensitiveSubspaceMetric(directions=[[0.3, 0, 0, 1.0]]).fit(X)

    def ranker():
        return SenSTIRRanker(FrozenEstimator(metric), rho=0.01, max_iter=30, random_state=0)

    rankers = {
        "plain": LinearRegression().fit(X, y),
        "standard": fitted(make_pipeline(StandardScaler(), ranker()), task),
        "maxabs": fitted(make_pipeline(MaxAbsScaler(), ranker()), task),
        "other pipeline": make_pipeline(MinMaxScaler(), LinearRegression()).fit(X, y),
    }
    table = audit(rankers, X, y, qid=qid, metric=metric)
    space = {name: StandardScaler().fit_transform(X) for name in rankers} | {"maxabs": MaxAbsScaler().fit_transform(X)}
    for name, estimator in rankers.items():
        assert table.loc[name, "tau"] == tau_in(metric, space[name], estimator, X, qid), name
    assert table.loc["maxabs", "tau"] != tau_in(metric, space["standard"], rankers["maxabs"], X, qid)


def test_a_metric_of_nobody_that_fits_both_is_refused(task):
    X, y, qid, group = task
    metric = SensitiveSubspaceMetric().fit(X, sensitive_features=group)
    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)
    with pytest.raises(ValueError, match=r"'Pipeline' is a pipeline: whether it measures X or what its last.*Z, Z"):
        audit(pipeline, X, y, qid=qid, metric=metric)
    # Names tell: the scaler's output has none.
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = SensitiveSubspaceMetric().fit(frame, sensitive_features=group)
    pipeline.fit(frame, y)
    rows = nearest_queries(frame, frame, qid=qid, qid_reference=qid, metric=named).rows
    expected = kendall_tau_score(pipeline.predict(frame), pipeline.predict(frame.iloc[rows]), qid=qid)
    assert tau_of_audit(pipeline, frame, y, qid, named) == [expected]


@pytest.mark.filterwarnings("ignore:Features are of very different scale")  # on purpose
def test_steps_that_ask_for_qid_get_it(task):
    X, y, qid, group = task
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(QueryScaler(with_std=False), PlackettLuceRanker(max_iter=20, random_state=0))
        pipeline.fit(X, y, qid=qid)
    Z = X - np.array([X[qid == q].mean(axis=0) for q in qid])
    metric = SensitiveSubspaceMetric().fit(Z, sensitive_features=group)
    pipeline.steps[-1][1].metric_ = metric
    rows = nearest_queries(Z, Z, qid=qid, qid_reference=qid, metric=metric).rows
    other = X[rows] - np.array([X[rows][qid == q].mean(axis=0) for q in qid])
    ranker = pipeline[-1]
    expected = kendall_tau_score(ranker.predict(Z), ranker.predict(other), qid=qid)
    table = audit(pipeline, X, y, qid=qid, metric=metric)
    assert table.loc["Pipeline", "tau"] == expected
    assert table.loc["Pipeline", "ndcg"] == ndcg_scorer(pipeline, X, y, qid=qid)
