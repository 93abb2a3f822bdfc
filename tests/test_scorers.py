"""The scorers in scikit-learn's searches: routing, alignment, requests, and any estimator that ranks."""

import copy
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import skfairrank.metrics as metrics
from skfairrank.metrics import (
    QueryScorer,
    group_exposure_difference,
    group_exposure_disparity,
    individual_exposure_disparity,
    kendall_tau_score,
    kendall_tau_scorer,
    make_group_exposure_difference_scorer,
    make_group_exposure_disparity_scorer,
    make_individual_exposure_disparity_scorer,
    make_kendall_tau_scorer,
    make_ndcg_scorer,
    make_stochastic_ndcg_scorer,
    ndcg_score,
    ndcg_scorer,
    neg_group_exposure_disparity_scorer,
    stochastic_ndcg_score,
    stochastic_ndcg_scorer,
)
from skfairrank.model_selection import QueryKFold

SCORERS = {name: getattr(metrics, name) for name in metrics.__all__ if isinstance(getattr(metrics, name), QueryScorer)}
every_scorer = pytest.mark.parametrize("name", SCORERS)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def task():
    """Twelve interleaved queries of five rows, with all metadata that any scorer takes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = rng.integers(0, 3, 60).astype(float)
    metadata = {
        "qid": rng.permutation(np.repeat(np.arange(12), 5)),
        "sensitive_features": rng.choice(["a", "b"], 60),
        "X_hypothetical": X + rng.normal(scale=0.5, size=X.shape),
    }
    metadata["items"] = np.arange(60) % 7
    metadata["query_weight"] = np.linspace(0.5, 2.0, 12)[metadata["qid"]]
    return X, y, metadata


def wanted(scorer, metadata):
    return {name: metadata[name] for name in scorer._metadata if name in metadata}


def test_every_metric_has_a_scorer_and_a_maker():
    """Their names say which metric it is, and whether it is negated."""
    for name in metrics.__all__:
        if name.startswith("make_") or name.endswith("_scorer") or name == "QueryScorer":
            continue
        metric, stem = getattr(metrics, name), name.removesuffix("_score")
        if name == "utility_score":  # nothing is ready-made where a utility is to be chosen
            assert metrics.make_utility_scorer("err").metric is metric and name in metrics.make_utility_scorer.__doc__
            continue
        (scorer_name,) = {f"{stem}_scorer", f"neg_{stem}_scorer"} & SCORERS.keys()
        maker = getattr(metrics, f"make_{stem}_scorer")
        assert maker.__name__ == f"make_{stem}_scorer" and name in maker.__doc__
        for scorer in (SCORERS[scorer_name], maker()):
            assert scorer.metric is metric and scorer.greater_is_better == (not scorer_name.startswith("neg_"))
    assert {scorer.metric.__name__ for scorer in SCORERS.values()} <= set(metrics.__all__)


@pytest.mark.parametrize(
    "scorer, value",
    [
        (stochastic_ndcg_scorer, lambda y, s, h, q, g: stochastic_ndcg_score(y, s, qid=q, random_state=0)),
        (
            make_stochastic_ndcg_scorer(k=2, gain="linear", n_samples="exact"),
            lambda y, s, h, q, g: stochastic_ndcg_score(y, s, qid=q, k=2, gain="linear", n_samples="exact"),
        ),
        (
            make_stochastic_ndcg_scorer(n_samples=7, random_state=3),
            lambda y, s, h, q, g: stochastic_ndcg_score(y, s, qid=q, n_samples=7, random_state=3),
        ),
        (ndcg_scorer, lambda y, s, h, q, g: ndcg_score(y, s, qid=q)),
        (
            make_ndcg_scorer(k=1, gain="linear", replace_undefined_by=0.0),
            lambda y, s, h, q, g: ndcg_score(y, s, qid=q, k=1, gain="linear", replace_undefined_by=0.0),
        ),
        (kendall_tau_scorer, lambda y, s, h, q, g: kendall_tau_score(s, h, qid=q)),
        (
            neg_group_exposure_disparity_scorer,
            lambda y, s, h, q, g: -group_exposure_disparity(y, s, qid=q, sensitive_features=g, random_state=0),
        ),
        (
            make_group_exposure_disparity_scorer(n_samples="exact"),
            lambda y, s, h, q, g: -group_exposure_disparity(y, s, qid=q, sensitive_features=g, n_samples="exact"),
        ),
        (
            metrics.neg_group_exposure_difference_scorer,
            lambda y, s, h, q, g: -group_exposure_difference(s, qid=q, sensitive_features=g),
        ),
        (
            make_group_exposure_difference_scorer(policy="plackett-luce", n_samples="exact"),
            lambda y, s, h, q, g: (
                -group_exposure_difference(s, qid=q, sensitive_features=g, policy="plackett-luce", n_samples="exact")
            ),
        ),
        (
            make_individual_exposure_disparity_scorer(n_samples="exact"),
            lambda y, s, h, q, g: -individual_exposure_disparity(y, s, qid=q, n_samples="exact"),
        ),
    ],
    ids=repr,
)
def test_scorer_is_its_metric_of_the_predictions(scorer, value, task):
    X, y, metadata = task
    model = LinearRegression().fit(X, y)
    s, h = model.predict(X), model.predict(metadata["X_hypothetical"])
    expected = value(y, s, h, metadata["qid"], metadata["sensitive_features"])
    del metadata["query_weight"]
    assert scorer(model, X, y, **wanted(scorer, metadata)) == expected


@every_scorer
def test_scorer_is_reproducible(name, task):
    X, y, metadata = task
    model, scorer = LinearRegression().fit(X, y), SCORERS[name]
    assert len({scorer(model, X, y, **wanted(scorer, metadata)) for _ in range(3)}) == 1


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_all_scorers_in_one_search_need_no_requests(task, n_jobs):
    X, y, metadata = task
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": [0.1, 10, 1000]},
        cv=QueryKFold(3),
        scoring=SCORERS,
        refit="stochastic_ndcg_scorer",
        error_score="raise",
        n_jobs=n_jobs,
    )
    search.fit(X, y, **metadata)
    for name in SCORERS:
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"]).all()
    again = clone(search).fit(X, y, **metadata)
    for name in SCORERS:
        np.testing.assert_array_equal(search.cv_results_[f"mean_test_{name}"], again.cv_results_[f"mean_test_{name}"])


@pytest.mark.usefixtures("routing")
@every_scorer
@pytest.mark.parametrize("kind", [np.asarray, list, lambda v: pd.Series(v, index=np.arange(len(v))[::-1])])
def test_single_scorer_gets_the_rows_of_the_test_fold(name, kind, task):
    X, y, metadata = task
    scorer, cv = SCORERS[name], QueryKFold(3)
    params = wanted(scorer, metadata)
    given = {key: value if key == "X_hypothetical" else kind(value) for key, value in params.items()}
    found = cross_validate(Ridge(), X, y, cv=cv, scoring=scorer, params=given, error_score="raise")["test_score"]
    expected = []
    for train, test in cv.split(X, y, metadata["qid"]):
        model = Ridge().fit(X[train], y[train])
        expected.append(scorer(model, X[test], y[test], **{key: value[test] for key, value in params.items()}))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("form", ["rows", "dict", "Series by id", "setting"])
@pytest.mark.parametrize("name", ["ndcg_scorer", "neg_group_exposure_difference_scorer"])
def test_query_weights_by_row_are_cut_with_the_rows_and_by_id_handed_on(name, form, task):
    X, y, metadata = task
    qid, g, scorer, cv = metadata["qid"], metadata["sensitive_features"], SCORERS[name], QueryKFold(3)
    of_id = {q: 1.0 + q for q in range(12)}
    given = {"rows": 1.0 + qid, "dict": of_id, "Series by id": pd.Series(of_id)[::-1], "setting": None}[form]
    if form == "setting":
        scorer = QueryScorer(scorer.metric, greater_is_better=scorer.greater_is_better, query_weight=of_id)
    params = {"qid": qid, "query_weight": given} | ({"sensitive_features": g} if "exposure" in name else {})
    params = {key: value for key, value in params.items() if value is not None}
    expected = []
    for train, test in cv.split(X, y, qid):
        s = Ridge().fit(X[train], y[train]).predict(X[test])
        if name == "ndcg_scorer":
            values = ndcg_score(y[test], s, qid=qid[test], reduce=None)
        else:
            values = -group_exposure_difference(s, qid=qid[test], sensitive_features=g[test], reduce=None)
        weights = 1.0 + np.unique(qid[test])
        is_left = ~np.isnan(values)
        expected.append((weights * values)[is_left].sum() / weights[is_left].sum())
    args = {"cv": cv, "error_score": "raise"}
    found = cross_validate(Ridge(), X, y, scoring=scorer, params=params, **args)["test_score"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    search = GridSearchCV(Ridge(), {}, scoring={"a": scorer, "b": ndcg_scorer}, refit="a", **args).fit(X, y, **params)
    np.testing.assert_allclose([search.cv_results_[f"split{i}_test_a"][0] for i in range(3)], expected, rtol=1e-12)


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
        seen.append(len(rows))
        return 0.0

    class Identity(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return X[:, 0]

    rows = np.random.default_rng(0).permutation(n)
    search = GridSearchCV(
        Identity(),
        {},
        cv=QueryKFold(3),
        scoring={
            "with groups": QueryScorer(spy),
            "without": QueryScorer(spy).set_score_request(sensitive_features=False),
        },
        refit=False,
        error_score="raise",
    )
    groups = np.array(list("ab"))[rows % 2]
    search.fit(rows[:, None].astype(float), rows.astype(float), qid=rows // 4, sensitive_features=groups)
    assert seen == [8] * 6


@pytest.mark.usefixtures("routing")
def test_alias_gives_the_scorer_another_attribute_than_the_fit(task):
    X, y, metadata = task
    qid, g = metadata["qid"], metadata["sensitive_features"]
    age = np.random.default_rng(1).uniform(20, 70, len(y))

    class NeedsAge(RegressorMixin, BaseEstimator):
        __metadata_request__fit = {"sensitive_features": True}

        def fit(self, X, y, sensitive_features=None):
            assert sensitive_features.dtype == float
            self.inner_ = Ridge().fit(X, y)
            return self

        def predict(self, X):
            return self.inner_.predict(X)

    scorer = neg_group_exposure_disparity_scorer.set_score_request(sensitive_features="groups")
    args = {"cv": QueryKFold(3), "error_score": "raise"}
    found = cross_validate(
        NeedsAge(), X, y, scoring=scorer, params={"qid": qid, "sensitive_features": age, "groups": g}, **args
    )
    plain = cross_validate(
        Ridge(), X, y, scoring=neg_group_exposure_disparity_scorer, params={"qid": qid, "sensitive_features": g}, **args
    )
    np.testing.assert_array_equal(found["test_score"], plain["test_score"])
    with pytest.raises(ValueError, match="continuous"):
        cross_validate(
            NeedsAge(),
            X,
            y,
            scoring=neg_group_exposure_disparity_scorer,
            params={"qid": qid, "sensitive_features": age},
            **args,
        )


@pytest.mark.usefixtures("routing")
def test_alias_for_qid(task):
    X, y, metadata = task
    scorer = ndcg_scorer.set_score_request(qid="groups")
    found = cross_validate(Ridge(), X, y, cv=GroupKFold(3), scoring=scorer, params={"groups": metadata["qid"]})
    assert np.isfinite(found["test_score"]).all()


@every_scorer
def test_set_score_request_leaves_the_shared_scorer_alone(name):
    scorer = SCORERS[name]
    before = repr(scorer), str(scorer.get_metadata_routing())
    changed = scorer.set_score_request(qid="query")
    assert (repr(scorer), str(scorer.get_metadata_routing())) == before
    assert type(changed) is QueryScorer and changed is not scorer
    assert changed.get_metadata_routing().score.requests["qid"] == "query"
    assert repr(changed) == f"{scorer!r}.set_score_request(qid='query')"
    others = [key for key in scorer._metadata if key != "qid"]
    assert all(changed.get_metadata_routing().score.requests[key] is True for key in others)
    back = changed.set_score_request(qid=True)
    assert repr(back) == repr(scorer)


def test_unknown_requests_and_metadata_are_refused(task):
    X, y, metadata = task
    with pytest.raises(TypeError, match="takes qid, query_weight, sensitive_features, not X_hypothetical"):
        ndcg_scorer.set_score_request(X_hypothetical="flipped")
    with pytest.raises(ValueError, match="valid identifier"):
        ndcg_scorer.set_score_request(qid="not a name")
    with pytest.raises(TypeError, match="takes qid, query_weight, sensitive_features, not sample_weight"):
        ndcg_scorer(LinearRegression().fit(X, y), X, y, qid=metadata["qid"], sample_weight=np.ones(60))
    with pytest.raises(TypeError, match="no parameter 'at'"):
        QueryScorer(ndcg_score, at=5)
    with pytest.raises(TypeError, match="takes none of y, s, s1 and s2"):
        QueryScorer(lambda y_true, y_score: 0.0)


def test_a_metric_may_be_a_partial(task):
    X, y, metadata = task
    scorer, ranker = QueryScorer(partial(ndcg_score, k=2)), LinearRegression().fit(X, y)
    assert scorer(ranker, X, y, qid=metadata["qid"]) == ndcg_score(y, ranker.predict(X), qid=metadata["qid"], k=2)
    assert "ndcg_score" in repr(scorer)


@every_scorer
@pytest.mark.parametrize("copied", [clone, copy.deepcopy, lambda scorer: pickle.loads(pickle.dumps(scorer))])
def test_copies_keep_requests_and_value(name, copied, task):
    X, y, metadata = task
    scorer = SCORERS[name].set_score_request(qid="query")
    twin = copied(scorer)
    assert twin is not scorer and repr(twin) == repr(scorer)
    assert twin.get_metadata_routing().score.requests == scorer.get_metadata_routing().score.requests
    model = LinearRegression().fit(X, y)
    params = wanted(scorer, metadata)
    assert twin(model, X, y, **params) == scorer(model, X, y, **params)


@pytest.mark.usefixtures("routing")
def test_clone_of_a_search_keeps_the_requests():
    scorer = neg_group_exposure_disparity_scorer.set_score_request(sensitive_features="groups")
    for scoring in (scorer, {"gap": scorer, "ndcg": ndcg_scorer}):
        search = clone(GridSearchCV(Ridge(), {}, scoring=scoring, refit=False))
        kept = search.scoring["gap"] if isinstance(scoring, dict) else search.scoring
        assert kept.get_metadata_routing().score.requests == {
            "qid": True,
            "sensitive_features": "groups",
            "query_weight": True,
        }


# Forgotten metadata.


@every_scorer
def test_scorer_without_qid_raises_the_remedy(name, task):
    X, y, _ = task
    with pytest.raises(ValueError, match=r"no qid.*enable_metadata_routing=True"):
        SCORERS[name](LinearRegression().fit(X, y), X, y)


@every_scorer
@pytest.mark.parametrize("multimetric", [False, True])
def test_search_with_routing_off_fails_loudly(name, multimetric, task):
    X, y, _ = task
    scoring = {"one": SCORERS[name], "two": ndcg_scorer} if multimetric else SCORERS[name]
    search = GridSearchCV(Ridge(), {"alpha": [1, 2]}, scoring=scoring, refit=False, error_score="raise", cv=2)
    with pytest.raises(ValueError, match=r"qid.*enable_metadata_routing=True"):
        search.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = cross_validate(Ridge(), X, y, scoring=scoring, cv=2)
    assert all(np.isnan(out[key]).all() for key in out if key.startswith("test_"))


@pytest.mark.usefixtures("routing")
def test_forgotten_sensitive_features(task):
    X, y, metadata = task
    params = {"qid": metadata["qid"]}
    for name in ("neg_group_exposure_disparity_scorer", "neg_group_exposure_difference_scorer"):
        with pytest.raises(ValueError, match="sensitive_features is missing"):
            cross_validate(Ridge(), X, y, cv=QueryKFold(2), scoring=SCORERS[name], params=params, error_score="raise")


def test_forgotten_hypothetical_rows(task):
    X, y, metadata = task
    with pytest.raises(ValueError, match=r"no X_hypothetical.*make_kendall_tau_scorer"):
        kendall_tau_scorer(LinearRegression().fit(X, y), X, y, qid=metadata["qid"])


@every_scorer
def test_wrong_length_is_refused(name, task):
    X, y, metadata = task
    scorer, model = SCORERS[name], LinearRegression().fit(X, y)
    for key in scorer._metadata:
        wrong = wanted(scorer, metadata) | {key: metadata[key][1:]}
        with pytest.raises(ValueError, match=r"59.*60|60.*59"):
            scorer(model, X, y, **wrong)


def test_fold_with_one_group_counts_as_the_replacement(task):
    X, y, metadata = task
    model = LinearRegression().fit(X, y)
    with pytest.warns(sklearn.exceptions.UndefinedMetricWarning, match="measures nothing"):
        value = neg_group_exposure_disparity_scorer(model, X, y, qid=metadata["qid"], sensitive_features=["a"] * 60)
    assert str(value) == "0.0"


# Kendall's tau and its hypothetical rows.


def flip_first_column(X):
    X = X.copy()
    if isinstance(X, pd.DataFrame):
        X.iloc[:, 0] *= -1
    else:
        X[:, 0] *= -1
    return X


def test_a_function_may_change_its_rows_in_place(task):
    X, y, metadata = task

    def flip_in_place(X):
        X[:, 0] *= -1
        return X

    before, ridge, qid = X.copy(), Ridge().fit(X, y), metadata["qid"]
    got = make_kendall_tau_scorer(flip_in_place)(ridge, X, y, qid=qid)
    assert got == metrics.kendall_tau_score(ridge.predict(X), ridge.predict(flip_first_column(X)), qid=qid) < 1
    np.testing.assert_array_equal(X, before)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("table", [np.asarray, lambda X: pd.DataFrame(X, columns=list("abc"))])
def test_hypothetical_rows_as_metadata_or_from_a_function(table, task):
    X, y, metadata = task
    X = table(X)
    args = {"X": X, "y": y, "cv": QueryKFold(3), "error_score": "raise"}
    qid = metadata["qid"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = make_kendall_tau_scorer(flip_first_column)
        by_function = cross_validate(Ridge(), scoring=made, params={"qid": qid}, **args)
        params = {"qid": qid, "X_hypothetical": flip_first_column(X)}
        by_metadata = cross_validate(Ridge(), scoring=kendall_tau_scorer, params=params, **args)
    np.testing.assert_array_equal(by_function["test_score"], by_metadata["test_score"])
    assert (by_function["test_score"] < 1).all()
    assert repr(made) == "QueryScorer(kendall_tau_score, function=flip_first_column)"
    assert made.get_metadata_routing().score.requests == dict.fromkeys(
        ("qid", "query_weight", "sensitive_features"), True
    )


def test_a_function_that_changes_rows_in_place_changes_a_copy(task):
    X, y, metadata = task
    before = X.copy()

    def negate(X):
        X[:, 0] *= -1
        return X

    ranker = Ridge().fit(X, y)
    expected = kendall_tau_score(ranker.predict(X), ranker.predict(negate(X.copy())), qid=metadata["qid"])
    assert make_kendall_tau_scorer(negate)(ranker, X, qid=metadata["qid"]) == pytest.approx(expected) != 1
    np.testing.assert_array_equal(X, before)


def test_relevances_are_not_needed_for_metrics_without_them(task):
    X, y, metadata = task
    model = LinearRegression().fit(X, y)
    for name in ("kendall_tau_scorer", "neg_group_exposure_difference_scorer"):
        scorer = SCORERS[name]
        params = wanted(scorer, metadata)
        assert scorer(model, X, **params) == scorer(model, X, y, **params)


# Estimators.


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
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}).fit(X, binary)
    assert ndcg_scorer(search, X, y, **kw) == ndcg_score(y, search.decision_function(X), **kw)


def test_estimators_without_scores_are_refused(task):
    X, y, metadata = task
    kw = {"qid": metadata["qid"]}
    with pytest.raises(ValueError, match="RandomForestClassifier is a classifier without decision_function"):
        ndcg_scorer(RandomForestClassifier(n_estimators=2).fit(X, y > 0), X, y, **kw)
    with pytest.raises(ValueError, match="StandardScaler has neither predict nor decision_function"):
        ndcg_scorer(StandardScaler().fit(X), X, y, **kw)
    with pytest.raises(ValueError, match=r"shape \(60, 3\): one score per row"):
        ndcg_scorer(LogisticRegression().fit(X, y), X, y, **kw)


# LightGBM with scikit-learn 1.6 says so of any array, also outside of scorers.
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_boosted_rankers(library, task):
    module = pytest.importorskip(library)
    X, y, metadata = task
    order = np.argsort(metadata["qid"], kind="stable")
    X, y, metadata = X[order], y[order].astype(int), {key: value[order] for key, value in metadata.items()}
    if library == "lightgbm":
        model = module.LGBMRanker(n_estimators=5, min_child_samples=2, verbose=-1, n_jobs=1)
        model.fit(X, y, group=[5] * 12)
    else:
        model = module.XGBRanker(n_estimators=5, n_jobs=1).fit(X, y, qid=metadata["qid"])
    for scorer in SCORERS.values():
        assert np.isfinite(scorer(model, X, y, **wanted(scorer, metadata)))
    assert ndcg_scorer(model, X, y, qid=metadata["qid"]) == ndcg_score(y, model.predict(X), qid=metadata["qid"])
