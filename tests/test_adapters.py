"""QueryRanker: boosted and pointwise models get their queries as they want them, and give back the caller's row order."""

import array
import collections
import pickle
import warnings
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from skfairrank import PlackettLuceRanker, QueryRanker, plackett_luce
from skfairrank._rankers._ranking import RankingMixin
from skfairrank.metrics import (
    ndcg_scorer,
    neg_group_exposure_disparity_scorer,
    stochastic_ndcg_score,
    stochastic_ndcg_scorer,
)
from skfairrank.model_selection import QueryKFold

ROUNDS = 6


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def task(seed=0, n_queries=12):
    """X, y and string qid, queries of one to nine rows, in random order."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat([f"q{q:02d}" for q in range(n_queries)], 1 + np.arange(n_queries) % 9))
    X = rng.normal(size=(len(qid), 3)).round(2)
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X)) + 1), 0, 3).astype(int)
    y[np.unique(qid, return_index=True)[1]] = 3  # something relevant in every query
    return X, y, qid


class Library:
    """A boosted ranker, how its own documentation says it is fitted on rows sorted by query, and its history."""

    def __init__(self, name):
        module = pytest.importorskip(name)
        self.name = name
        if name == "lightgbm":
            self.model = module.LGBMRanker(
                n_estimators=ROUNDS, min_child_samples=2, verbose=-1, random_state=0, n_jobs=1
            )
        elif name == "xgboost":
            self.model = module.XGBRanker(
                n_estimators=ROUNDS, max_depth=3, random_state=0, n_jobs=1, eval_metric="ndcg"
            )
        else:
            self.model = module.CatBoostRanker(
                iterations=ROUNDS, depth=3, verbose=False, random_seed=0, thread_count=1, allow_writing_files=False
            )
        self.depth = {"lightgbm": "num_leaves", "xgboost": "max_depth", "catboost": "depth"}[name]

    def fit_sorted(self, X, y, qid, evaluation=None, **fit_params):
        """The library's own fit; `evaluation` is (X, y, qid), sorted too."""
        sizes, codes = np.unique(qid, return_counts=True)[1], np.unique(qid, return_inverse=True)[1]
        if self.name == "lightgbm":
            fit_params["group"] = sizes
            if evaluation is not None:
                fit_params |= {
                    "eval_set": [evaluation[:2]],
                    "eval_group": [np.unique(evaluation[2], return_counts=True)[1]],
                }
        elif self.name == "xgboost":
            fit_params["qid"] = codes
            if evaluation is not None:
                codes = np.unique(evaluation[2], return_inverse=True)[1]
                fit_params |= {"eval_set": [evaluation[:2]], "eval_qid": [codes]}
        else:
            from catboost import Pool

            fit_params["group_id"] = codes
            if evaluation is not None:
                codes = np.unique(evaluation[2], return_inverse=True)[1]
                fit_params["eval_set"] = Pool(*evaluation[:2], group_id=codes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return clone(self.model).fit(X, y, **fit_params)

    @staticmethod
    def predict(model, X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # LightGBM before 4.7 complains about arrays
            return model.predict(X)

    def history(self, model):
        if self.name == "lightgbm":
            return model.evals_result_["valid_0"]
        return (model.evals_result() if self.name == "xgboost" else model.get_evals_result())[
            "validation_0" if self.name == "xgboost" else "validation"
        ]


@pytest.fixture(params=["lightgbm", "xgboost", "catboost"])
def library(request):
    return Library(request.param)


def order_of(qid):
    return np.argsort(qid, kind="stable")


# ------------------------------------------------------------------------------------------------------ boosted rankers


def test_it_equals_a_direct_fit_on_sorted_rows(library):
    X, y, qid = task()
    order = order_of(qid)
    direct = library.fit_sorted(X[order], y[order], qid[order])
    ranker = QueryRanker(library.model).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.predict(X), library.predict(direct, X))
    assert len(np.unique(ranker.predict(X))) > 10, "nothing was learned"
    assert type(ranker.estimator_) is type(library.model) and ranker.estimator_ is not library.model
    assert ranker.n_queries_ == 12 and ranker.n_features_in_ == 3


@pytest.mark.parametrize(
    "form",
    [list, pd.Categorical, lambda q: pd.Series(q, index=np.arange(len(q))[::-1]), lambda q: [int(i[1:]) for i in q]],
)
def test_any_form_of_qid_will_do(library, form):
    X, y, qid = task()
    expected = QueryRanker(library.model).fit(X, y, qid=qid).predict(X)
    np.testing.assert_array_equal(QueryRanker(library.model).fit(X, y, qid=form(qid)).predict(X), expected)


def test_interleaving_of_queries_does_not_matter(library):
    X, y, qid = task()
    order = order_of(qid)
    a = QueryRanker(library.model).fit(X, y, qid=qid)
    b = QueryRanker(library.model).fit(X[order], y[order], qid=qid[order])
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    np.testing.assert_array_equal(a.predict(X)[order], b.predict(X[order]))
    other = QueryRanker(library.model).fit(X, y, qid=np.roll(qid, 1))  # the same rows in other queries
    assert (other.predict(X) != a.predict(X)).any()


def test_evaluation_sets_have_the_same_names_for_all(library):
    X, y, qid = task()
    X_eval, y_eval, qid_eval = task(seed=1, n_queries=7)
    order, order_eval = order_of(qid), order_of(qid_eval)
    evaluation = (X_eval[order_eval], y_eval[order_eval], qid_eval[order_eval])
    direct = library.history(library.fit_sorted(X[order], y[order], qid[order], evaluation))
    for eval_set, eval_qid in [([(X_eval, y_eval)], [qid_eval]), ((X_eval, list(y_eval)), list(qid_eval))]:
        ranker = QueryRanker(library.model).fit(X, y, qid=qid, eval_set=eval_set, eval_qid=eval_qid)
        history = library.history(ranker.estimator_)
        assert history.keys() == direct.keys() and len(history) > 0
        for name, values in direct.items():
            assert len(values) == ROUNDS
            np.testing.assert_array_equal(values, history[name])


def test_several_evaluation_sets(library):
    X, y, qid = task()
    first, second = task(seed=1, n_queries=7), task(seed=2, n_queries=5)
    sets, ids = [first[:2], second[:2]], [first[2], second[2]]
    ranker = QueryRanker(library.model).fit(X, y, qid=qid, eval_set=sets, eval_qid=ids)
    alone = [QueryRanker(library.model).fit(X, y, qid=qid, eval_set=[s], eval_qid=[q]) for s, q in zip(sets, ids)]
    evals = {
        "lightgbm": lambda m: m.evals_result_,
        "xgboost": lambda m: m.evals_result(),
        "catboost": lambda m: {k: v for k, v in m.get_evals_result().items() if k != "learn"},
    }[library.name]
    both = list(evals(ranker.estimator_).values())
    assert both == [next(iter(evals(one.estimator_).values())) for one in alone]


def test_early_stopping_sees_the_evaluation_queries(library):
    X, y, qid = task()
    X_eval, y_eval, qid_eval = task(seed=1, n_queries=7)
    if library.name == "lightgbm":
        from lightgbm import early_stopping

        fit_params = {"callbacks": [early_stopping(1, verbose=False)], "eval_at": [3]}
    else:
        library.model.set_params(early_stopping_rounds=1)
        fit_params = {}
    library.model.set_params(**{"n_estimators" if library.name != "catboost" else "iterations": 100})
    order, order_eval = order_of(qid), order_of(qid_eval)
    evaluation = (X_eval[order_eval], y_eval[order_eval], qid_eval[order_eval])
    direct = library.fit_sorted(X[order], y[order], qid[order], evaluation, **fit_params)
    ranker = QueryRanker(library.model).fit(
        X, y, qid=qid, eval_set=[(X_eval, y_eval)], eval_qid=[qid_eval], **fit_params
    )
    np.testing.assert_array_equal(ranker.predict(X), library.predict(direct, X))
    trees = {
        "lightgbm": lambda m: m.best_iteration_,
        "xgboost": lambda m: m.best_iteration,
        "catboost": lambda m: m.tree_count_,
    }
    assert trees[library.name](ranker.estimator_) == trees[library.name](direct) < 99


def test_weights_follow_their_rows_or_their_queries(library):
    X, y, qid = task()
    X_eval, y_eval, qid_eval = task(seed=1, n_queries=7)
    order, order_eval = order_of(qid), order_of(qid_eval)
    rng = np.random.default_rng(0)
    by_row, by_query = rng.uniform(0.1, 5, len(X)), rng.uniform(0.1, 5, 12)
    eval_by_row, eval_by_query = rng.uniform(0.1, 5, len(X_eval)), rng.uniform(0.1, 5, 7)
    if library.name == "lightgbm":
        ours = {"sample_weight": by_row, "eval_sample_weight": [eval_by_row], "init_score": X[:, 1]}
        theirs = {
            "sample_weight": by_row[order],
            "eval_sample_weight": [eval_by_row[order_eval]],
            "init_score": X[order, 1],
        }
    elif library.name == "xgboost":
        ours = {"sample_weight": by_query, "sample_weight_eval_set": [eval_by_query], "base_margin": X[:, 1]}
        ours["base_margin_eval_set"] = [list(X_eval[:, 1])]
        theirs = ours | {"base_margin": X[order, 1], "base_margin_eval_set": [X_eval[order_eval, 1]]}
    else:  # one weight per row, equal within a query
        weight = pd.Series(by_query[np.unique(qid, return_inverse=True)[1]])
        ours, theirs = {"group_weight": weight}, {"group_weight": weight.to_numpy()[order]}
    evaluation = (X_eval[order_eval], y_eval[order_eval], qid_eval[order_eval])
    direct = library.fit_sorted(X[order], y[order], qid[order], evaluation, **theirs)
    ranker = QueryRanker(library.model).fit(X, y, qid=qid, eval_set=[(X_eval, y_eval)], eval_qid=[qid_eval], **ours)
    np.testing.assert_array_equal(ranker.predict(X), library.predict(direct, X))
    assert library.history(ranker.estimator_) == library.history(direct)
    assert (ranker.predict(X) != QueryRanker(library.model).fit(X, y, qid=qid).predict(X)).any()


def chunked(values):
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.chunked_array([values[:7], values[7:]])


def polars_series(values):
    return pytest.importorskip("polars").Series(values)


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "Series": lambda w: pd.Series(w, index=np.arange(len(w))[::-1]),
    "nullable Series": lambda w: pd.Series(w, dtype="Float64"),
    "Index": pd.Index,
    "array.array": lambda w: array.array("d", w),
    "memoryview": memoryview,
    "deque": collections.deque,
    "pyarrow array": lambda w: pytest.importorskip("pyarrow").array(w),
    "pyarrow column": lambda w: pytest.importorskip("pyarrow").table({"w": w})["w"],
    "pyarrow chunks": chunked,
    "polars Series": polars_series,
}
# One value per row: an argument of each library.
PER_ROW = {"lightgbm": "sample_weight", "xgboost": "base_margin", "catboost": "baseline"}


@pytest.mark.parametrize("container", CONTAINERS)
def test_values_of_rows_follow_them_whatever_holds_them(library, container):
    X, y, qid = task()
    order, values = order_of(qid), np.random.default_rng(0).uniform(0.1, 5, len(qid))
    name = PER_ROW[library.name]
    direct = library.predict(library.fit_sorted(X[order], y[order], qid[order], **{name: values[order]}), X)
    held = CONTAINERS[container](values)
    ranker = QueryRanker(library.model).fit(X, y, qid=qid, **{name: held})
    np.testing.assert_array_equal(ranker.predict(X), direct)
    assert (direct != QueryRanker(library.model).fit(X, y, qid=qid).predict(X)).any(), "the values have no effect"
    # Rows that lie query by query already: the same.
    ranker = QueryRanker(library.model).fit(
        X[order], y[order], qid=qid[order], **{name: CONTAINERS[container](values[order])}
    )
    np.testing.assert_array_equal(ranker.predict(X), direct)


@pytest.mark.parametrize("container", ["pyarrow column", "array.array", "polars Series", "Series", "tuple"])
@pytest.mark.parametrize("around", [lambda w: [w], lambda w: {0: w}, lambda w: (w,)], ids=["list", "dict", "tuple"])
@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_values_of_evaluation_rows_follow_them_whatever_holds_them(name, container, around):
    library = Library(name)
    X, y, qid = task()
    X_eval, y_eval, qid_eval = task(seed=1, n_queries=7)
    order, order_eval = order_of(qid), order_of(qid_eval)
    values = np.random.default_rng(0).uniform(0.1, 5, len(X_eval))
    argument = {"lightgbm": "eval_sample_weight", "xgboost": "base_margin_eval_set"}[name]
    evaluation = (X_eval[order_eval], y_eval[order_eval], qid_eval[order_eval])
    direct = library.fit_sorted(X[order], y[order], qid[order], evaluation, **{argument: [values[order_eval]]})
    held = around(CONTAINERS[container](values))
    ranker = QueryRanker(library.model).fit(
        X, y, qid=qid, eval_set=[(X_eval, y_eval)], eval_qid=[qid_eval], **{argument: held}
    )
    assert library.history(ranker.estimator_) == library.history(direct)
    plain = QueryRanker(library.model).fit(X, y, qid=qid, eval_set=[(X_eval, y_eval)], eval_qid=[qid_eval])
    assert library.history(ranker.estimator_) != library.history(plain.estimator_), "the values have no effect"


def test_evaluation_values_for_one_set_of_several_and_bare_ones():
    library = Library("lightgbm")
    X, y, qid = task()
    first, second = task(seed=1, n_queries=7), task(seed=2, n_queries=5)
    sets, ids = [first[:2], second[:2]], [first[2], second[2]]
    weight = np.random.default_rng(0).uniform(0.1, 5, len(second[0]))

    def history(**fit_params):
        return QueryRanker(library.model).fit(X, y, qid=qid, **fit_params).estimator_.evals_result_

    by_number = history(eval_set=sets, eval_qid=ids, eval_sample_weight={1: weight})
    assert by_number == history(eval_set=sets, eval_qid=ids, eval_sample_weight=[None, weight])
    alone = history(eval_set=second[:2], eval_qid=second[2], eval_sample_weight=weight)
    assert alone["valid_0"] == by_number["valid_1"]
    with pytest.raises(ValueError, match=r"eval_sample_weight has the key 2: .* evaluation sets, 0 to 1"):
        history(eval_set=sets, eval_qid=ids, eval_sample_weight={2: weight})
    with pytest.raises(ValueError, match=r"eval_sample_weight has .* entries for 2 evaluation sets"):
        history(eval_set=sets, eval_qid=ids, eval_sample_weight=weight)


@pytest.mark.parametrize(
    "held", [lambda w: dict(enumerate(w)), set, lambda w: dict(enumerate(w)).values()], ids=["dict", "set", "view"]
)
def test_as_many_values_as_rows_in_no_order_are_refused(library, held):
    X, y, qid = task()
    name = PER_ROW[library.name]
    values = held(np.random.default_rng(0).uniform(0.1, 5, len(qid)))
    for by_query in (np.arange(len(qid)), order_of(qid)):
        with pytest.raises(ValueError, match=rf"{name} is a \w+ with as many entries as there are rows .*give a list"):
            QueryRanker(library.model).fit(X[by_query], y[by_query], qid=qid[by_query], **{name: values})


@pytest.mark.parametrize("form", ["numpy", "pandas", "polars", "pyarrow"])
def test_sensitive_features_of_every_kind_follow_their_rows(form):
    X, _, qid = task()
    rows = np.arange(len(qid))
    columns = {"row": rows, "double": 2 * rows}
    table = {
        "numpy": lambda: np.column_stack(list(columns.values())),
        "pandas": lambda: pd.DataFrame(columns),
        "polars": lambda: pytest.importorskip("polars").DataFrame(columns),
        "pyarrow": lambda: pytest.importorskip("pyarrow").table(columns),
    }[form]()
    seen = QueryRanker(Spy()).fit(X, rows, qid=qid, sensitive_features=table).estimator_.seen_
    got = seen["sensitive_features"]
    first = got[:, 0] if form == "numpy" else np.asarray(got["row"])
    assert type(got) is type(table) and first.tolist() == seen["y"].tolist() == order_of(qid).tolist()


# ------------------------------------------------------------------------------------- ranking objectives without queries

OBJECTIVES = [
    ("lightgbm", "LGBMRegressor", {"objective": "lambdarank"}),
    ("lightgbm", "LGBMRegressor", {"objective": "rank_xendcg"}),
    ("lightgbm", "LGBMRegressor", {"application": "xendcg"}),
    ("xgboost", "XGBRegressor", {"objective": "rank:ndcg"}),
    ("xgboost", "XGBRegressor", {"objective": "rank:pairwise"}),
    ("xgboost", "XGBRFRegressor", {"objective": "rank:map"}),
    ("xgboost", "XGBModel", {"objective": "rank:ndcg"}),
    ("catboost", "CatBoostRegressor", {"loss_function": "YetiRank"}),
    ("catboost", "CatBoostRegressor", {"loss_function": "PairLogit:max_pairs=9"}),
    ("catboost", "CatBoostRegressor", {"loss_function": "QueryRMSE"}),
    ("catboost", "CatBoostRegressor", {"objective": "LambdaMart"}),
]


@pytest.mark.parametrize("name, model, parameters", OBJECTIVES)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model,
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: GridSearchCV(model, {}),
        lambda model: BaggingRegressor(model),
        lambda model: VotingRegressor([("a", Ridge()), ("b", model)]),
        lambda model: TransformedTargetRegressor(model),
    ],
    ids=["alone", "pipeline", "search", "bagging", "voting", "target"],
)
def test_a_ranking_objective_without_queries_is_refused(name, model, parameters, wrap):
    library = Library(name)
    model = getattr(pytest.importorskip(name), model)(**parameters)
    X, y, qid = task()
    ranker = type(library.model).__name__
    parameter = next(iter(parameters.values()))
    with pytest.raises(ValueError, match=rf"has a ranking objective \(\w+='{parameter}'\).* one query.*Use {ranker}"):
        QueryRanker(wrap(model)).fit(X, y, qid=qid)


def test_objectives_that_rank_nothing_or_are_told_about_queries_stay():
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    X, y, qid = task()
    order, small = order_of(qid), {"n_estimators": 3, "min_child_samples": 2, "verbose": -1, "random_state": 0}
    told = QueryRanker(lightgbm.LGBMModel(objective="lambdarank", **small)).fit(X, y, qid=qid)
    sizes = np.unique(qid, return_counts=True)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM before 4.7 complains about arrays
        direct = lightgbm.LGBMModel(objective="lambdarank", **small).fit(X[order], y[order], group=sizes).predict(X)
    np.testing.assert_array_equal(told.predict(X), direct)
    for pointwise in (
        lightgbm.LGBMRegressor(objective="cross_entropy_lambda", **small),
        xgboost.XGBRegressor(objective="reg:absoluteerror", n_estimators=3, n_jobs=1),
    ):
        QueryRanker(pointwise).fit(X, y / 3, qid=qid)


def test_a_model_that_cannot_be_cloned_is_a_clear_error():
    catboost = pytest.importorskip("catboost")
    X, y, qid = task()
    model = catboost.CatBoost({"loss_function": "YetiRank"})
    with pytest.raises(TypeError, match=r"CatBoost can't be cloned.*use CatBoostRanker with tuples"):
        QueryRanker(model).fit(X, y, qid=qid)


# ------------------------------------------------------------------------------------------------------------ going on

GO_ON = {"lightgbm": "init_model", "xgboost": "xgb_model", "catboost": "init_model"}
N_TREES = {
    "lightgbm": lambda model: model.booster_.num_trees(),
    "xgboost": lambda model: model.get_booster().num_boosted_rounds(),
    "catboost": lambda model: model.tree_count_,
}


def test_training_goes_on_from_a_fitted_ranker(library):
    """10 trees, and 10 more."""
    X, y, qid = task()
    order, name = order_of(qid), GO_ON[library.name]
    library.model.set_params(**{"iterations" if library.name == "catboost" else "n_estimators": 10})
    first = library.fit_sorted(X[order], y[order], qid[order])
    direct = library.fit_sorted(X[order], y[order], qid[order], **{name: first})

    def ours():  # fitted anew each time: CatBoost goes on from one model twice with two results
        return QueryRanker(library.model).fit(X, y, qid=qid)

    frozen = FrozenEstimator(library.fit_sorted(X[order], y[order], qid[order]))
    for model in (ours(), ours().estimator_, QueryRanker(frozen).fit(X, y, qid=qid)):
        second = QueryRanker(library.model).fit(X, y, qid=qid, **{name: model})
        assert N_TREES[library.name](second.estimator_) == N_TREES[library.name](direct) == 20
        np.testing.assert_array_equal(second.predict(X), library.predict(direct, X))
    model = ours()
    before = model.predict(X)
    assert (QueryRanker(library.model).fit(X, y, qid=qid, **{name: model}).predict(X) != before).any()
    np.testing.assert_array_equal(model.predict(X), before)  # the first one stays as it was


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_training_goes_on_from_a_file(name, tmp_path):
    library = Library(name)
    X, y, qid = task()
    first = QueryRanker(library.model).fit(X, y, qid=qid)
    path = str(tmp_path / "model.json")
    (first.estimator_.booster_ if name == "lightgbm" else first.estimator_).save_model(path)
    second = QueryRanker(library.model).fit(X, y, qid=qid, **{GO_ON[name]: path})
    assert N_TREES[name](second.estimator_) == 2 * ROUNDS


def test_what_training_cannot_go_on_from_is_refused(library):
    X, y, qid = task()
    name = GO_ON[library.name]
    with pytest.raises(NotFittedError, match=f"{name} is a QueryRanker that is not fitted: fit it first"):
        QueryRanker(library.model).fit(X, y, qid=qid, **{name: QueryRanker(library.model)})
    with pytest.raises(NotFittedError):
        QueryRanker(library.model).fit(X, y, qid=qid, **{name: clone(library.model)})
    other = QueryRanker(Ridge()).fit(X, y, qid=qid)
    for model in (other, make_pipeline(StandardScaler(), Ridge()).fit(X, y), PlackettLuceRanker()):
        with pytest.raises(ValueError, match=rf"{name} is a {type(model).__name__}, which \w+Ranker can't go on from"):
            QueryRanker(library.model).fit(X, y, qid=qid, **{name: model})


def test_a_warm_start_of_the_model_goes_on():
    X, y, qid = task()
    inner = PlackettLuceRanker(max_iter=5, warm_start=True, random_state=0)
    ours, theirs = QueryRanker(inner), clone(inner)
    for _ in range(3):
        ours.fit(X, y, qid=qid)
        theirs.fit(X, y, qid=qid)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    forest = GradientBoostingRegressor(n_estimators=3, warm_start=True, random_state=0)
    ours = QueryRanker(forest).fit(X, y, qid=qid)
    ours.set_params(estimator__n_estimators=5).fit(X, y, qid=qid)
    assert ours.estimator_.n_estimators_ == 5 and ours.estimator.n_estimators == 5
    cold = QueryRanker(clone(forest).set_params(n_estimators=5, warm_start=False)).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ours.predict(X), cold.predict(X))
    np.testing.assert_array_equal(clone(ours).fit(X, y, qid=qid).predict(X), cold.predict(X))


# ---------------------------------------------------------------------------------------------------------------- errors


def foreign_sets(X, y, qid):
    catboost, lightgbm, xgboost = map(pytest.importorskip, ("catboost", "lightgbm", "xgboost"))
    return {
        "Pool": catboost.Pool(X, y, group_id=np.unique(qid, return_inverse=True)[1][order_of(qid)]),
        "DMatrix": xgboost.DMatrix(X, y),
        "Dataset": lightgbm.Dataset(X, y),
        "DataFrame": pd.DataFrame(X),
    }


@pytest.mark.parametrize("kind", ["Pool", "DMatrix", "Dataset", "DataFrame"])
def test_evaluation_sets_of_a_library_are_refused_with_the_remedy(library, kind):
    X, y, qid = task()
    foreign = foreign_sets(X, y, qid)[kind]
    for given_ in (foreign, [foreign], (foreign,)):
        with pytest.raises(ValueError, match=rf"eval_set holds a {kind}, .*eval_set=\[\(X, y\)\] and eval_qid=\[qid\]"):
            QueryRanker(library.model).fit(X, y, qid=qid, eval_set=given_, eval_qid=[qid])


def test_labels_that_are_missing_say_what_to_do(library):
    X, y, qid = task()
    y = y.astype(float)
    for missing in (np.nan, np.inf):
        bad = y.copy()
        bad[3] = missing
        for held in (bad, pd.Series(bad), list(bad)):
            with pytest.raises(ValueError, match=r"Input y contains (NaN|infinity).*give those without one a 0"):
                QueryRanker(library.model).fit(X, held, qid=qid)
        with pytest.raises(ValueError, match=r"Input y of eval_set\[0\] contains (NaN|infinity).*leave them out"):
            QueryRanker(library.model).fit(X, y, qid=qid, eval_set=[(X, bad)], eval_qid=[qid])


def test_one_row_queries_take_values_row_by_row():
    """As many rows as queries: what has one entry each is read in the order of the rows."""
    lightgbm = pytest.importorskip("lightgbm")
    seen = {}

    class Spy(lightgbm.LGBMRanker):
        def fit(self, X, y, group=None, sample_weight=None, feature_name="auto"):
            seen.update(sample_weight=sample_weight, feature_name=feature_name, group=group)
            return self

    X, qid = np.eye(3), [30, 10, 20]
    QueryRanker(Spy()).fit(X, [0, 1, 2], qid=qid, sample_weight=(3.0, 1.0, 2.0), feature_name=["a", "b", "c"])
    assert list(seen["sample_weight"]) == [1, 2, 3] and list(seen["group"]) == [1, 1, 1]
    assert seen["feature_name"] == ["a", "b", "c"]  # one entry per feature, though there are as many rows


def test_feature_names_reach_the_model(library):
    X, y, qid = task()
    frame = pd.DataFrame(X, columns=["age", "income", "clicks"], index=np.arange(len(X))[::-1])
    ranker = QueryRanker(library.model).fit(frame, pd.Series(y), qid=qid)
    names = {"lightgbm": "feature_name_", "xgboost": "feature_names_in_", "catboost": "feature_names_"}[library.name]
    assert list(getattr(ranker.estimator_, names)) == list(frame.columns) == list(ranker.feature_names_in_)
    np.testing.assert_array_equal(ranker.predict(frame), QueryRanker(library.model).fit(X, y, qid=qid).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(frame[["income", "age", "clicks"]])
    with pytest.raises(ValueError, match="yet now missing"):
        ranker.predict(frame[["age", "income"]])


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_frames_of_other_libraries(library, kind):
    polars, pyarrow = map(pytest.importorskip, ("polars", "pyarrow"))  # XGBoost asks for pyarrow to read polars frames
    X, y, qid = task()
    names = ["age", "income", "clicks"]
    if kind == "polars":
        frame, column = polars.DataFrame(X, schema=names), polars.Series
    else:
        frame, column = pyarrow.table(dict(zip(names, X.T))), pyarrow.array
    order = order_of(qid)
    try:
        library.fit_sorted(frame[order] if kind == "polars" else frame.take(order), y[order], qid[order])
    except Exception as error:  # older releases
        pytest.skip(f"this {library.name} takes no frames of {kind}: {error!r}"[:200])
    ranker = QueryRanker(library.model).fit(frame, column(y), qid=qid)
    assert list(ranker.feature_names_in_) == names
    np.testing.assert_array_equal(ranker.predict(frame), QueryRanker(library.model).fit(X, y, qid=qid).predict(X))


def test_a_pointwise_model_takes_evaluation_sets_by_the_same_names():
    xgboost = pytest.importorskip("xgboost")
    X, y, qid = task()
    model = xgboost.XGBRegressor(n_estimators=3, n_jobs=1, random_state=0)
    ranker = QueryRanker(model).fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid], verbose=False)
    direct = model.fit(X, y, eval_set=[(X, y)], verbose=False)
    np.testing.assert_allclose(
        ranker.estimator_.evals_result()["validation_0"]["rmse"], direct.evals_result()["validation_0"]["rmse"]
    )


def test_missing_values_and_sparse_rows_are_the_models_business(library):
    X, y, qid = task()
    X[::3, 1] = np.nan
    order = order_of(qid)
    expected = library.predict(library.fit_sorted(X[order], y[order], qid[order]), X)
    np.testing.assert_array_equal(QueryRanker(library.model).fit(X, y, qid=qid).predict(X), expected)
    X = np.where(np.abs(np.nan_to_num(X)) < 0.5, 0, np.nan_to_num(X))
    predictions = []
    kinds = [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array]
    if library.name != "catboost":  # wants 32-bit indices, which older SciPy does not make of this
        kinds.append(sp.dia_array)
    for kind in kinds:
        ranker = QueryRanker(library.model).fit(kind(X), y, qid=qid)
        predictions.append(ranker.predict(kind(X)))
    for prediction in predictions[1:]:
        np.testing.assert_array_equal(predictions[0], prediction)
    with pytest.raises(ValueError):
        QueryRanker(LinearRegression()).fit(np.full((2, 1), np.nan), [0, 1], qid=[0, 0])


def test_tags_are_the_models(library):
    tags = sklearn.utils.get_tags(QueryRanker(library.model))
    if not hasattr(library.model, "__sklearn_tags__"):
        pytest.skip(f"this {library.name} has no tags")
    assert tags.input_tags.sparse and tags.input_tags.allow_nan
    assert tags.target_tags.required and tags.target_tags.positive_only
    assert not sklearn.utils.get_tags(QueryRanker(Ridge())).input_tags.allow_nan


def test_parameters_reach_the_model_through_clone_and_pickle(library):
    ranker = QueryRanker(library.model).set_params(**{f"estimator__{library.depth}": 2})
    assert ranker.get_params()[f"estimator__{library.depth}"] == 2
    X, y, qid = task()
    fitted = clone(ranker).fit(X, y, qid=qid)
    assert fitted.estimator_.get_params()[library.depth] == 2
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))
    assert "QueryRanker" in repr(fitted) and "QueryRanker" in fitted._repr_html_()


@pytest.mark.parametrize("name", ["group", "group_id", "eval_group", "eval_X", "eval_y"])
def test_the_libraries_own_names_for_queries_are_refused(library, name):
    X, y, qid = task()
    with pytest.raises(
        (TypeError, ValueError), match=f"takes no {name}: pass qid=|{name} is made of eval_set and eval_qid"
    ):
        QueryRanker(library.model).fit(X, y, qid=qid, **{name: [1]})


def test_wrong_evaluation_sets_are_clear_errors(library):
    X, y, qid = task()
    ranker = QueryRanker(library.model)
    with pytest.raises(ValueError, match="eval_set has 1 evaluation sets and eval_qid none"):
        ranker.fit(X, y, qid=qid, eval_set=[(X, y)])
    with pytest.raises(ValueError, match="eval_set has 1 evaluation sets and eval_qid 2"):
        ranker.fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid, qid])
    with pytest.raises(ValueError, match=r"eval_qid\[0\] has 2 entries.*not group sizes"):
        ranker.fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[[3, 2]])
    if library.name == "lightgbm":
        with pytest.raises(ValueError, match="eval_sample_weight has 2 entries for 1 evaluation sets"):
            ranker.fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid], eval_sample_weight=[None, None])


def test_catboost_pairs_need_sorted_rows():
    library = Library("catboost")
    X, y, qid = task()
    with pytest.raises(ValueError, match="pairs has row numbers in it"):
        QueryRanker(library.model).fit(X, y, qid=qid, pairs=[[0, 1]])
    order = order_of(qid)
    library.model.set_params(loss_function="PairLogit")
    X, y, qid = X[order], y[order], qid[order]
    pairs = [[i + 1, i] for i in range(len(X) - 1) if qid[i] == qid[i + 1]]
    direct = library.fit_sorted(X, y, qid, pairs=pairs)
    ranker = QueryRanker(library.model).fit(X, y, qid=qid, pairs=pairs)
    np.testing.assert_array_equal(ranker.predict(X), library.predict(direct, X))


def test_catboost_evaluation_sets_know_the_categorical_columns():
    library = Library("catboost")
    X, y, qid = task()
    frame = pd.DataFrame({"x": X[:, 0], "kind": np.where(X[:, 1] > 0, "up", "down")})
    for model, fit_params in [
        (clone(library.model).set_params(cat_features=("kind",)), {}),
        (library.model, {"cat_features": ["kind"]}),
    ]:
        ranker = QueryRanker(model).fit(frame, y, qid=qid, eval_set=[(frame, y)], eval_qid=[qid], **fit_params)
        assert np.isfinite(ranker.predict(frame)).all()


@pytest.mark.usefixtures("routing")
def test_a_boosted_ranker_in_a_search_beside_a_fair_one(library):
    X, y, qid = task(n_queries=18)
    g = np.random.default_rng(0).integers(0, 2, len(X))
    plain = PlackettLuceRanker(max_iter=5, random_state=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), QueryRanker(library.model)),
        [{f"queryranker__estimator__{library.depth}": [2, 3]}, {"queryranker": [plain, QueryRanker(plain)]}],
        cv=QueryKFold(3),
        scoring={"ndcg": stochastic_ndcg_scorer, "gap": neg_group_exposure_disparity_scorer},
        refit="ndcg",
        error_score="raise",
    ).fit(X, y, qid=qid, sensitive_features=g)
    for name in ("ndcg", "gap"):
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"]).all()
    train, test = next(QueryKFold(3).split(X, qid=qid))
    scaler = StandardScaler().fit(X[train])
    order = train[order_of(qid[train])]
    library.model.set_params(**{library.depth: 2})
    direct = library.fit_sorted(scaler.transform(X[order]), y[order], qid[order])
    expected = stochastic_ndcg_score(
        y[test], library.predict(direct, scaler.transform(X[test])), qid=qid[test], random_state=0
    )
    assert search.cv_results_["split0_test_ndcg"][0] == expected


def test_without_routing_scoring_says_what_to_do(library):
    X, y, qid = task()
    for scoring in (None, ndcg_scorer):
        with pytest.raises(ValueError, match="enable_metadata_routing"):
            cross_validate(
                QueryRanker(library.model), X, y, cv=QueryKFold(2), groups=qid, params={"qid": qid}, scoring=scoring,
                error_score="raise",
            )  # fmt: skip


# ------------------------------------------------------------------------------------------------------- other models


def test_a_regressor_is_a_pointwise_ranker():
    X, y, qid = task()
    ranker = QueryRanker(LinearRegression()).fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.estimator_.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-10)
    weight = np.arange(1.0, len(X) + 1)
    weighted = QueryRanker(LinearRegression()).fit(X, y, qid=qid, sample_weight=weight)
    np.testing.assert_allclose(weighted.predict(X), LinearRegression().fit(X, y, weight).predict(X), rtol=1e-10)


def test_a_ranker_of_this_package_is_the_same_inside():
    X, y, qid = task()
    inner = PlackettLuceRanker(max_iter=20, random_state=0)
    a, b = inner.fit(X, y, qid=qid), QueryRanker(inner).fit(X, y, qid=qid)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


class Spy(BaseEstimator):
    def fit(self, X, y, qid=None, sensitive_features=None):
        self.seen_ = {"X": X, "y": y, "qid": qid, "sensitive_features": sensitive_features}
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]


@settings(max_examples=50, deadline=None)
@given(qid=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=30))
def test_the_model_sees_aligned_rows_sorted_by_query(qid):
    n = len(qid)
    rows = np.arange(n)
    X = pd.DataFrame({"row": rows, "query": qid})
    g = pd.DataFrame({"g": rows, "h": -rows})
    ranker = QueryRanker(Spy()).fit(X, rows, qid=qid, sensitive_features=g)
    seen = ranker.estimator_.seen_
    assert seen["X"]["query"].tolist() == sorted(qid)
    assert seen["qid"].tolist() == np.unique(sorted(qid), return_inverse=True)[1].tolist()
    for column in (seen["X"]["row"], seen["sensitive_features"]["g"]):
        assert column.tolist() == seen["y"].tolist()
    for letter in set(qid):
        assert (np.diff(seen["y"][seen["X"]["query"] == letter]) > 0).all()  # rows of a query keep their order
    assert ranker.predict(X).tolist() == rows.tolist()
    with pytest.raises(ValueError, match="inconsistent"):
        ranker.fit(X, rows, qid=qid, sensitive_features=[1] * (n + 1))


def test_sorted_rows_are_not_copied():
    X = np.random.default_rng(0).normal(size=(6, 2))
    seen = QueryRanker(Spy()).fit(X, np.zeros(6), qid=[1, 1, 2, 2, 2, 5]).estimator_.seen_
    assert seen["X"] is X


def test_a_fitted_model_can_be_wrapped_frozen():
    X, y, qid = task()
    model = PlackettLuceRanker(max_iter=5, random_state=0).fit(X, y, qid=qid)
    ranker = QueryRanker(FrozenEstimator(model)).fit(X[:9], y[:9], qid=qid[:9])
    np.testing.assert_array_equal(ranker.predict(X), model.predict(X))


@pytest.mark.parametrize("wrong", [StandardScaler(), "ranker", None, 3])
def test_an_estimator_without_fit_or_predict_is_refused(wrong):
    with pytest.raises(
        ValueError, match="'estimator' parameter of QueryRanker must be an object implementing 'fit' and"
    ):
        QueryRanker(wrong).fit([[0.0], [1.0]], [0, 1], qid=[0, 0])


def test_a_pipeline_or_search_around_a_ranker_is_refused(library):
    X, y, qid = task()
    for outer in (make_pipeline(StandardScaler(), library.model), GridSearchCV(library.model, {})):
        with pytest.raises(ValueError, match=r"put QueryRanker\(...\) around the \w+Ranker itself, inside the"):
            QueryRanker(outer).fit(X, y, qid=qid)
    QueryRanker(make_pipeline(StandardScaler(), Ridge())).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    "qid, message",
    [([3, 2], "not group sizes"), ([1, 1, None, 2, 2], "missing"), ([[1], [1], [1], [2], [2]], "qid has shape")],
)
def test_bad_qid_is_an_error(qid, message):
    with pytest.raises(ValueError, match=message):
        QueryRanker(Ridge()).fit(np.zeros((5, 1)), [0, 1, 0, 1, 0], qid=qid)


def test_bad_arrays_are_errors():
    for X, y, message in [
        ([1.0, 2.0], [0, 1], "Reshape your data"),
        (np.zeros((0, 2)), [], "0 sample"),
        (np.zeros((2, 0)), [0, 1], "0 feature"),
        ([[1.0], [2.0]], [0, np.nan], "y contains NaN"),
        ([[1.0], [2.0]], [0], "inconsistent"),
        ([[1.0], [2.0]], None, "requires y"),
    ]:
        with pytest.raises(ValueError, match=message):
            QueryRanker(Ridge()).fit(X, y, qid=[0, 0])


@pytest.mark.parametrize("inner", [LinearRegression(), PlackettLuceRanker(random_state=0)], ids=repr)
@pytest.mark.filterwarnings("ignore")
def test_check_estimator(inner):
    failed = []
    for instance, check in estimator_checks_generator(QueryRanker(inner)):
        try:
            check(instance)
        except SkipTest as skipped:
            assert "SCIPY_ARRAY_API" in str(skipped)
        except Exception as error:
            failed.append((getattr(check, "func", check).__name__, repr(error)[:200]))
    assert not failed, failed


# ------------------------------------------------------------------------------------------- what every ranker can do


class Identity(RankingMixin, BaseEstimator):
    """Scores are the first column."""

    def fit(self, X, y, qid=None, sensitive_features=None):
        self.n_queries_ = 1 if qid is None else len(set(qid))
        return self

    def predict(self, X):
        return np.asarray(X, dtype=float)[:, 0]


def column(scores):
    return np.asarray(scores, dtype=float).reshape(-1, 1)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["a", "b", "c"])), min_size=1, max_size=20))
def test_rank_counts_better_rows_and_earlier_ties(rows):
    s, qid = map(list, zip(*rows))
    expected = [
        1 + sum(qid[j] == qid[i] and (s[j] > s[i] or (s[j] == s[i] and j < i)) for j in range(len(s)))
        for i in range(len(s))
    ]
    ranks = Identity().rank(column(s), qid=qid)
    assert ranks.tolist() == expected and ranks.dtype.kind == "i"
    assert Identity().rank(column(s)).tolist() == Identity().rank(column(s), qid=np.zeros(len(s))).tolist()


def test_rank_of_one_row_and_of_interleaved_queries():
    assert Identity().rank(column([0.2])).tolist() == [1]
    s, qid = [0.1, 0.9, 0.8, 0.2, 0.5, 0.3], [2, 1, 2, 1, 1, 2]
    assert Identity().rank(column(s), qid=qid).tolist() == [3, 1, 1, 3, 2, 2]
    with pytest.raises(ValueError, match="not group sizes"):
        Identity().rank(column(s), qid=[3, 3])


def test_sampled_rankings_are_those_of_the_policy():
    X, _, qid = task()
    before = np.random.get_state()[1].copy()
    for ids in (qid, None):
        ranks = Identity().sample_rankings(X, qid=ids, n_samples=7, random_state=3)
        expected = plackett_luce.sample_rankings(X[:, 0], qid=ids, n_samples=7, random_state=3)
        np.testing.assert_array_equal(ranks, expected)
    assert Identity().sample_rankings(X).shape == (1, len(X))
    np.testing.assert_array_equal(before, np.random.get_state()[1])


def test_score_is_the_ndcg_of_the_sorted_list():
    """scikit-learn's, query by query, with gains 2^y - 1."""
    X, y, qid = task()
    ranker = Identity().fit(X, y, qid=qid)
    expected = [
        sklearn.metrics.ndcg_score([2.0 ** y[qid == q] - 1], [X[qid == q, 0]]) if (qid == q).sum() > 1 else 1.0
        for q in np.unique(qid)
    ]
    assert ranker.score(X, y, qid=qid) == pytest.approx(np.mean(expected), abs=1e-12)
    assert ranker.score(X, y, qid=qid) == ranker.score(X, y, qid=qid, sample_weight=None)
    assert ranker.score(X / 1000, y, qid=qid) == ranker.score(X, y, qid=qid)  # it follows the order alone
    with pytest.raises(ValueError, match="sample_weight"):
        ranker.score(X, y, qid=qid, sample_weight=np.ones(len(y)))


@pytest.mark.parametrize(
    "y, qid",
    [([3], [0]), ([1, 1, 1], [0, 0, 0]), ([0, 0, 2, 2], [0, 0, 1, 1]), ([0, 1, 2], [0, 1, 2]), ([0, 0], [0, 0])],
    ids=["one row", "equal", "equal in each query", "a query for each row", "nothing relevant"],
)
def test_score_is_nan_where_no_order_is_better_than_another(y, qid):
    X = column(range(len(y)))
    for ranker in (Identity(), QueryRanker(LinearRegression())):
        fitted = ranker.fit(X, y, qid=qid)
        with pytest.warns(UndefinedMetricWarning, match=rf"none of {len(set(qid))} queries has rows of different"):
            assert np.isnan(fitted.score(X, y, qid=qid))


def test_score_counts_a_query_of_equal_rows_beside_others_as_the_metric_does():
    assert Identity().fit([[0.0]], [0], qid=[0]).score(column([1, 2, 5]), [2, 1, 7], qid=[0, 0, 1]) == pytest.approx(
        (0.796708 + 1) / 2, abs=1e-6
    )  # (2^1 - 1 + (2^2 - 1) / log2(3)) / (2^2 - 1 + 1 / log2(3)) = .796708


def test_score_without_qid_is_an_error_after_a_fit_on_several_queries():
    X, y, qid = task()
    with pytest.raises(ValueError, match=r"score got no qid, and fit saw 12 queries.*enable_metadata_routing=True"):
        Identity().fit(X, y, qid=qid).score(X, y)
    one = Identity().fit(X, y)
    assert one.score(X, y) == one.score(X, y, qid=np.zeros(len(y)))


def test_fit_without_qid_warns_that_all_rows_are_one_query():
    X, y, _ = task()
    with pytest.warns(
        UserWarning, match=rf"takes all {len(X)} rows as one query.*enable_metadata_routing=True"
    ) as caught:
        ranker = QueryRanker(Ridge()).fit(X, y)
    assert len(caught) == 1 and ranker.n_queries_ == 1
    assert 0 < ranker.score(X, y) <= 1
    # One row can't be anything else, and one id for all says that it is meant: no warning (warnings are errors here).
    assert QueryRanker(Ridge()).fit([[0.2]], [3]).n_queries_ == 1
    QueryRanker(Ridge()).fit(X, y, qid=np.zeros(len(X)))


@pytest.mark.usefixtures("routing")
def test_metadata_are_requested_by_default():
    for estimator, names in ((QueryRanker(Ridge()), {"X_hypothetical"}), (Identity(), set())):
        requests = estimator.get_metadata_routing()
        assert requests.fit.requests == dict.fromkeys(names | {"qid", "sensitive_features"}, True)
        assert {name for name, value in requests.score.requests.items() if value} == {"qid", "query_weight"}


def test_weights_of_rows_that_agree_within_queries_are_xgboosts_weights_of_queries():
    """One search over LightGBM's and XGBoost's rankers can share a weight."""
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(6), 5))
    X, y, of_query = rng.normal(size=(30, 3)), rng.integers(0, 3, 30), np.array([1.0, 5, 1, 2, 7, 1])
    model = pytest.importorskip("xgboost").XGBRanker(n_estimators=5, n_jobs=1)
    expected = QueryRanker(model).fit(X, y, qid=qid, sample_weight=of_query).predict(X)
    for weight in (of_query[qid], list(of_query[qid]), pd.Series(of_query[qid])):
        got = QueryRanker(model).fit(X, y, qid=qid, sample_weight=weight).predict(X)
        np.testing.assert_array_equal(got, expected)
    assert not np.array_equal(expected, QueryRanker(model).fit(X, y, qid=qid).predict(X))
    with pytest.raises(ValueError, match="sample_weight differs within queries"):
        QueryRanker(model).fit(X, y, qid=qid, sample_weight=np.arange(30.0))
