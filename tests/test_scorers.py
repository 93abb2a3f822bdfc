"""Scorers in scikit-learn's searches: routing, alignment, requests; and the scores of any estimator that ranks."""

import copy
import pickle
import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.fixes import parse_version

import skfairrank.metrics as metrics
from skfairrank import PlackettLuceRanker, QueryScaler, SenSTIRRanker
from skfairrank.inspection import RankDisplacementDisplay, ScoreContourDisplay, audit
from skfairrank.metrics import (
    group_exposure_difference,
    group_exposure_disparity,
    kendall_tau_scorer,
    make_kendall_tau_scorer,
    make_ranking_scorer,
    ndcg_score,
    ndcg_scorer,
    neg_group_exposure_difference_scorer,
    neg_group_exposure_disparity_scorer,
    stochastic_ndcg_score,
    stochastic_ndcg_scorer,
)
from skfairrank.metrics._predictions import ranking_scores
from skfairrank.model_selection import QueryKFold

# Every metric as a scorer, and whether it is negated.
HIGHER = (
    "kendall_tau_score",
    "ndcg_score",
    "stochastic_ndcg_score",
    "utility_score",
    "attention_weighted_rank_fairness",
)
METRICS = [n for n in metrics.__all__ if not n.startswith("make_") and not n.endswith(("_scorer", "pairwise_accuracy"))]
SETTINGS = {"utility_score": {"utility": "err"}, "group_ndkl": {"k": 3}}
SCORERS = {name: make_ranking_scorer(getattr(metrics, name), **SETTINGS.get(name, {})) for name in METRICS}
READY_MADE = {
    name: getattr(metrics, name) for name in metrics.__all__ if name.endswith("_scorer") and name[:4] != "make"
}


@pytest.fixture
def task():
    """Twelve interleaved queries of five rows, with all metadata that any scorer takes."""
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(12), 5))
    X = rng.normal(size=(60, 3)) + 5 * rng.normal(size=(12, 3))[qid]
    y = rng.integers(0, 3, 60).astype(float)
    y[np.unique(qid, return_index=True)[1]] = 2
    metadata = {
        "qid": qid,
        "sensitive_features": rng.choice(["a", "b"], 60),
        "X_hypothetical": X + rng.normal(scale=0.5, size=X.shape),
        "items": np.arange(60) % 7,
        "query_weight": np.linspace(0.5, 2.0, 12)[qid],
    }
    return X, y, metadata


def requests(scorer):
    return scorer.get_metadata_routing().score.requests


def wanted(scorer, metadata):
    return {name: metadata[name] for name in requests(scorer)}


@pytest.mark.parametrize("name", METRICS)
def test_scorer_is_its_metric_of_the_predictions(name, task):
    X, y, metadata = task
    model, scorer, metric = LinearRegression().fit(X, y), SCORERS[name], getattr(metrics, name)
    given = wanted(scorer, metadata)
    taken = {key: value for key, value in given.items() if key in metric.__wrapped__.__kwdefaults__ or key == "qid"}
    if "group" in name or "attention_weighted" in name:
        taken["sensitive_features"] = metadata["sensitive_features"]
    if name != "kendall_tau_score":
        taken |= {"random_state": 0} if "random_state" in metric.__wrapped__.__kwdefaults__ else {}
        taken |= SETTINGS.get(name, {})
        positional = [model.predict(X)]
        if "y" in metric.__wrapped__.__code__.co_varnames[:1]:
            positional.insert(0, y)
    else:
        positional = [model.predict(X), model.predict(metadata["X_hypothetical"])]
    value = metric(*positional, **taken)
    assert scorer(model, X, y, **given) == (value if name in HIGHER else -value)
    assert scorer(model, X, y, **given) == scorer(model, X, y, **given)  # the same random numbers


def test_the_ready_made_ones_and_their_settings(task):
    X, y, metadata = task
    model = LinearRegression().fit(X, y)
    assert [scorer.metric.__name__ for scorer in READY_MADE.values()] == [
        name.removeprefix("neg_").replace("_scorer", "" if name.startswith("neg_") else "_score") for name in READY_MADE
    ]
    for name, scorer in READY_MADE.items():
        given = wanted(scorer, metadata)
        assert scorer(model, X, y, **given) == SCORERS[scorer.metric.__name__](model, X, y, **given), name
    kw = {"qid": metadata["qid"], "k": 2, "gain": "linear", "n_samples": "exact"}
    exact = make_ranking_scorer(stochastic_ndcg_score, k=2, gain="linear", n_samples="exact", greater_is_better=False)
    assert exact(model, X, y, qid=metadata["qid"]) == -stochastic_ndcg_score(y, model.predict(X), **kw)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_all_scorers_in_one_search_need_no_requests(task, n_jobs):
    X, y, metadata = task
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": [0.1, 1000]},
        cv=QueryKFold(3),
        scoring=SCORERS,
        refit="ndcg_score",
        error_score="raise",
        n_jobs=n_jobs,
    )
    search.fit(X, y, **metadata)
    again = clone(search).set_params(n_jobs=None).fit(X, y, **metadata)
    for name in SCORERS:
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"]).all()
        np.testing.assert_array_equal(search.cv_results_[f"mean_test_{name}"], again.cv_results_[f"mean_test_{name}"])


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("form", ["rows", "dict", "Series by id", "setting"])
def test_query_weights_by_row_are_cut_with_the_rows_and_by_id_handed_on(form, task):
    X, y, metadata = task
    qid, g, scorer, cv = (
        metadata["qid"],
        metadata["sensitive_features"],
        neg_group_exposure_difference_scorer,
        QueryKFold(3),
    )
    of_id = {q: 1.0 + q for q in range(12)}
    given = {"rows": 1.0 + qid, "dict": of_id, "Series by id": pd.Series(of_id)[::-1], "setting": None}[form]
    if form == "setting":
        scorer = make_ranking_scorer(scorer.metric, query_weight=of_id)
    params = {"qid": qid, "sensitive_features": g} | ({} if given is None else {"query_weight": given})
    expected = []
    for train, test in cv.split(X, y, qid):
        s = Ridge().fit(X[train], y[train]).predict(X[test])
        values = -group_exposure_difference(s, qid=qid[test], sensitive_features=g[test], reduce=None)
        weights = np.where(np.isnan(values), 0.0, 1.0 + np.unique(qid[test]))
        expected.append(np.nansum(weights * values) / weights.sum())
    args = {"cv": cv, "error_score": "raise"}
    found = cross_validate(Ridge(), X, y, scoring=scorer, params=params, **args)["test_score"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    search = GridSearchCV(Ridge(), {}, scoring={"a": scorer, "b": ndcg_scorer}, refit="a", **args).fit(X, y, **params)
    np.testing.assert_allclose([search.cv_results_[f"split{i}_test_a"][0] for i in range(3)], expected, rtol=1e-12)


class Identity(RegressorMixin, BaseEstimator):
    __metadata_request__fit = {"sensitive_features": False}

    def fit(self, X, y, sensitive_features=None):
        self.is_fitted_ = True
        return self

    def predict(self, X):
        return X[:, 0]


@pytest.mark.usefixtures("routing")
def test_metadata_stay_aligned_in_a_search_with_two_scorers():
    """Row i has y = i, query i // 4 and group "ab"[i % 2], so a metric can see for itself."""
    n, seen = 24, []

    def spy(y, s, *, qid, sensitive_features=None):
        rows = np.asarray(y).astype(int)
        np.testing.assert_array_equal(qid, rows // 4)
        np.testing.assert_array_equal(s, rows)
        if sensitive_features is not None:
            np.testing.assert_array_equal(sensitive_features, np.array(list("ab"))[rows % 2])
        seen.append((len(rows), sensitive_features is None))
        return 0.0

    rows, spy_scorer = np.random.default_rng(0).permutation(n), make_ranking_scorer(spy)
    scoring = {"with groups": spy_scorer, "without": spy_scorer.set_score_request(sensitive_features=False)}
    search = GridSearchCV(Identity(), {}, cv=QueryKFold(3), scoring=scoring, refit=False, error_score="raise")
    groups = np.array(list("ab"))[rows % 2]
    search.fit(rows[:, None].astype(float), rows.astype(float), qid=rows // 4, sensitive_features=groups)
    assert seen == [(8, False), (8, True)] * 3


# Requests and aliases


BY_SEX = neg_group_exposure_disparity_scorer.set_score_request(sensitive_features="sex")
PLAIN = {"ndcg": stochastic_ndcg_scorer, "gap": neg_group_exposure_disparity_scorer}
ALIASED = {"ndcg": stochastic_ndcg_scorer, "gap": BY_SEX}
BOTH = {"by_sex": BY_SEX, "by_group": neg_group_exposure_disparity_scorer}


@pytest.mark.usefixtures("routing")
@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="before scikit-learn 1.8 a search hands no metadata to its own scorers when it is scored by another",
)
@pytest.mark.parametrize(
    "scoring, refit", [(PLAIN, "gap"), (ALIASED, "ndcg"), (ALIASED, "gap"), (BOTH, "by_sex"), (BOTH, "by_group")]
)
def test_a_search_with_several_scorers_scores_as_its_refit_metric(task, scoring, refit):
    """scikit-learn hands its `score` the metadata of all of them unsorted."""
    X, y, metadata = task
    qid, group, sex = metadata["qid"], metadata["sensitive_features"], np.random.default_rng(3).integers(0, 2, 60)
    y = y + 1  # merit in both groups of every query
    names = {"sex": sex} if scoring is ALIASED else {"sensitive_features": group}
    if scoring is BOTH:
        names["sex"] = sex
    ranker = SenSTIRRanker(adversary="gaps", max_iter=5, random_state=0)
    kw = {"cv": QueryKFold(2), "scoring": scoring, "refit": refit, "error_score": "raise"}
    search = GridSearchCV(ranker, {"rho": [0, 0.1]}, **kw).fit(X, y, qid=qid, **{"sensitive_features": group, **names})
    got, s = search.score(X, y, qid=qid, **names), search.predict(X)
    if refit == "ndcg":
        assert got == stochastic_ndcg_score(y, s, qid=qid, random_state=0)
    else:
        attribute = sex if refit == "by_sex" or scoring is ALIASED else group
        assert got == -group_exposure_disparity(y, s, qid=qid, sensitive_features=attribute, random_state=0)
    params = {"qid": qid, "sensitive_features": group, **names}
    outer = cross_validate(search, X, y, cv=QueryKFold(2), params=params, error_score="raise")
    assert np.isfinite(outer["test_score"]).all()


def test_wrong_arguments_are_refused(task):
    X, y, metadata = task
    model = LinearRegression().fit(X, y)
    takes = "takes qid, query_weight, sensitive_features, not "
    with pytest.raises(TypeError, match=takes + "X_hypothetical"):
        ndcg_scorer.set_score_request(X_hypothetical="flipped")
    for wrong in ({"sample_weight": np.ones(60)}, {"X_hypothetical": X}, {"k": 3}):
        with pytest.raises(TypeError, match=takes + next(iter(wrong))):
            ndcg_scorer(model, X, y, qid=metadata["qid"], **wrong)
    with pytest.raises(TypeError, match="'at' is no parameter of ndcg_score"):
        make_ranking_scorer(ndcg_score, at=5)
    partial_metric = make_ranking_scorer(partial(ndcg_score, k=2))
    assert partial_metric(model, X, y, qid=metadata["qid"]) == ndcg_score(y, model.predict(X), qid=metadata["qid"], k=2)


@pytest.mark.parametrize("copied", [clone, copy.deepcopy, lambda scorer: pickle.loads(pickle.dumps(scorer))])
def test_copies_keep_requests_and_value(copied, task):
    X, y, metadata = task
    model = LinearRegression().fit(X, y)
    for scorer in READY_MADE.values():
        scorer = scorer.set_score_request(qid="query")
        twin = copied(scorer)
        assert twin is not scorer and repr(twin) == repr(scorer) and requests(twin) == requests(scorer)
        params = wanted(scorer, metadata)
        assert twin(model, X, y, **params) == scorer(model, X, y, **params)
        search = clone(GridSearchCV(Ridge(), {}, scoring={"one": scorer}, refit=False))
        assert requests(search.scoring["one"]) == requests(scorer)


# Forgotten metadata


@pytest.mark.parametrize("name", SCORERS)
def test_wrong_metadata_are_refused_loudly(name, task):
    X, y, metadata = task
    scorer, model = SCORERS[name], LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"no qid.*enable_metadata_routing=True"):
        scorer(model, X, y)
    for key in requests(scorer):
        if key == "sensitive_features" and "sensitive_features" not in scorer._parameters:
            continue
        wrong = wanted(scorer, metadata) | {key: metadata[key][1:]}
        with pytest.raises(ValueError, match=r"59.*60|60.*59"):
            scorer(model, X, y, **wrong)


@pytest.mark.usefixtures("routing")
def test_forgotten_groups_and_hypothetical_rows(task):
    X, y, metadata = task
    qid, model = metadata["qid"], LinearRegression().fit(X, y)
    for scorer in (neg_group_exposure_disparity_scorer, neg_group_exposure_difference_scorer):
        with pytest.raises(ValueError, match="sensitive_features is missing"):
            cross_validate(Ridge(), X, y, cv=QueryKFold(2), scoring=scorer, params={"qid": qid}, error_score="raise")
    with pytest.raises(ValueError, match=r"no X_hypothetical.*make_kendall_tau_scorer"):
        kendall_tau_scorer(model, X, y, qid=qid)
    with pytest.warns(sklearn.exceptions.UndefinedMetricWarning, match="measures nothing"):
        value = neg_group_exposure_disparity_scorer(model, X, y, qid=qid, sensitive_features=["a"] * 60)
    assert str(value) == "0.0"


# Kendall's tau and its hypothetical rows


def flip_first_column(X):
    return X.assign(a=-X["a"])


@pytest.mark.usefixtures("routing")
def test_hypothetical_rows_as_metadata_or_from_a_function(task):
    X, y, metadata = task
    X, qid = pd.DataFrame(X, columns=list("abc")), metadata["qid"]
    args = {"X": X, "y": y, "cv": QueryKFold(3), "error_score": "raise"}
    made = make_kendall_tau_scorer(flip_first_column)
    by_function = cross_validate(Ridge(), scoring=made, params={"qid": qid}, **args)
    params = {"qid": qid, "X_hypothetical": flip_first_column(X)}
    by_metadata = cross_validate(Ridge(), scoring=kendall_tau_scorer, params=params, **args)
    np.testing.assert_array_equal(by_function["test_score"], by_metadata["test_score"])
    assert (by_function["test_score"] < 1).all()
    assert requests(made) == dict.fromkeys(("qid", "query_weight", "sensitive_features"), True)


# What counts as scores


class OnlyDecides:
    def decision_function(self, X):
        return X[:, 0]


class OnlyPredicts:
    """Not scikit-learn's: no tags, no parameters; a column instead of a vector."""

    def predict(self, X):
        return X[:, :1]


def test_what_counts_as_scores(task):
    X, y, metadata = task
    kw = {"qid": metadata["qid"]}
    expected = ndcg_score(y, X[:, 0], **kw)
    assert ndcg_scorer(OnlyDecides(), X, y, **kw) == ndcg_scorer(OnlyPredicts(), X, y, **kw) == expected
    binary = (y > 0).astype(float)
    for classifier in (LogisticRegression(), LinearSVC(), make_pipeline(StandardScaler(), LogisticRegression())):
        classifier.fit(X, binary)
        assert ndcg_scorer(classifier, X, y, **kw) == ndcg_score(y, classifier.decision_function(X), **kw)
    with pytest.raises(ValueError, match="RandomForestClassifier is a classifier without decision_function"):
        ndcg_scorer(RandomForestClassifier(n_estimators=2).fit(X, y > 0), X, y, **kw)
    with pytest.raises(ValueError, match="StandardScaler has neither predict nor decision_function"):
        ndcg_scorer(StandardScaler().fit(X), X, y, **kw)


@pytest.mark.parametrize("labels", [["no", "hire"], [0, 1, 2]], ids=str)
def test_classes_that_do_not_say_who_comes_first_are_refused(labels, task):
    """Case 35: the alphabet would decide which class is the good one."""
    X, y, metadata = task
    classes = np.take(labels, np.minimum(y, len(labels) - 1).astype(int))
    for model in (LogisticRegression(), make_pipeline(StandardScaler(), LinearSVC())):
        model.fit(X, classes)
        with pytest.raises(ValueError, match="which do not say how good.*relevances 0 and 1"):
            ndcg_scorer(model, X, y, qid=metadata["qid"])
        with pytest.raises(ValueError, match="relevances 0 and 1"):
            audit({"model": model}, X, y, qid=metadata["qid"], X_hypothetical=metadata["X_hypothetical"])


# Steps that ask for qid


def centred(X, qid):
    return X - np.array([X[qid == q].mean(axis=0) for q in qid])


def fit(pipeline, X, y, qid):
    with sklearn.config_context(enable_metadata_routing=True):
        return pipeline.fit(X, y, qid=qid)


PIPELINES = {
    "step": lambda: make_pipeline(QueryScaler(with_std=False), Ridge()),
    "step behind another": lambda: make_pipeline(
        StandardScaler(with_std=False), QueryScaler(with_std=False), "passthrough", Ridge()
    ),
    "columns": lambda: make_pipeline(ColumnTransformer([("all", QueryScaler(with_std=False), [0, 1, 2])]), Ridge()),
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
        with pytest.raises(ValueError, match="transform got no qid"):
            ranking_scores(pipeline, X)


def test_audit_and_displays_hand_qid_on(task):
    X, y, metadata = task
    qid, hypothetical = metadata["qid"], metadata["X_hypothetical"]
    pipeline = fit(
        make_pipeline(QueryScaler(with_std=False), PlackettLuceRanker(max_iter=20, random_state=0)), X, y, qid
    )
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


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("scoring", [None, ndcg_scorer], ids=["score", "scorer"])
def test_an_undefined_metric_is_said_once_in_a_search(scoring, task):
    """Case 52: three folds, three candidates, one data set; a second search says it again."""
    if sys.gettrace() is not None:
        pytest.skip("coverage's tracer takes the place in which a call's note is kept")
    X, y, metadata = task
    y = np.where(metadata["qid"] % 4 == 0, 0, y)
    ranker = PlackettLuceRanker(max_iter=2, random_state=0)
    model, name = (
        (ranker, "alpha") if scoring is None else (make_pipeline(StandardScaler(), ranker), "plackettluceranker__alpha")
    )
    for kind in (GridSearchCV, lambda model, grid, **kw: GridSearchCV(model, grid, return_train_score=True, **kw)):
        search = kind(model, {name: [0, 1, 2]}, cv=QueryKFold(3), scoring=scoring)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(X, y, qid=metadata["qid"])
        undefined = [w for w in caught if issubclass(w.category, sklearn.exceptions.UndefinedMetricWarning)]
        assert len(undefined) == 1 and undefined[0].filename == __file__
