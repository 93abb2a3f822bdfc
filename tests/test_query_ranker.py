"""QueryRanker: boosted and pointwise models get their queries as they want them, and give back the caller's row order."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from instruments import failures_of_check_estimator
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import GradientBoostingRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import PlackettLuceRanker, QueryRanker
from skfairrank.rankers._plackett_luce import RankingMixin

ROUNDS = 6


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
        X, y, qid=qid, eval_set=(X_eval, list(y_eval)), eval_qid=list(qid_eval), **fit_params
    )
    np.testing.assert_array_equal(ranker.predict(X), library.predict(direct, X))
    assert library.history(ranker.estimator_) == library.history(direct)
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
        ours = {"sample_weight": by_query, "base_margin": X[:, 1], "base_margin_eval_set": [list(X_eval[:, 1])]}
        ours["sample_weight_eval_set"] = [list(eval_by_query[np.unique(qid_eval, return_inverse=True)[1]])]
        theirs = {"sample_weight": by_query, "sample_weight_eval_set": [eval_by_query]}
        theirs |= {"base_margin": X[order, 1], "base_margin_eval_set": [X_eval[order_eval, 1]]}
    else:  # one weight per row, equal within a query
        weight = pd.Series(by_query[np.unique(qid, return_inverse=True)[1]])
        ours, theirs = {"group_weight": weight}, {"group_weight": weight.to_numpy()[order]}
    evaluation = (X_eval[order_eval], y_eval[order_eval], qid_eval[order_eval])
    direct = library.fit_sorted(X[order], y[order], qid[order], evaluation, **theirs)
    ranker = QueryRanker(library.model).fit(X, y, qid=qid, eval_set=[(X_eval, y_eval)], eval_qid=[qid_eval], **ours)
    np.testing.assert_array_equal(ranker.predict(X), library.predict(direct, X))
    assert library.history(ranker.estimator_) == library.history(direct)
    assert (ranker.predict(X) != QueryRanker(library.model).fit(X, y, qid=qid).predict(X)).any()


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


def test_what_training_cannot_go_on_from_is_refused(library):
    X, y, qid = task()
    name = GO_ON[library.name]
    foreign, own = rf"{name} is a \w+, which \w+Ranker can't go on from", "that is not fitted: fit it first"
    other = Library("lightgbm" if library.name == "xgboost" else "xgboost").model
    for error, message, model in [
        (NotFittedError, f"{name} is a QueryRanker {own}", QueryRanker(library.model)),
        (NotFittedError, rf"{name} is a \w+Ranker {own}", clone(library.model)),
        (ValueError, foreign, QueryRanker(Ridge()).fit(X, y, qid=qid)),
        (ValueError, foreign, other),
        (ValueError, foreign, 42),
    ]:
        with pytest.raises(error, match=message):
            QueryRanker(library.model).fit(X, y, qid=qid, **{name: model})


OF_QUERIES = "XGBoost's rankers weigh whole queries: give each row of a query the same weight, or one weight for each"
OF_SETS = "for 1 evaluation sets: give a list with one entry for each"


@pytest.mark.parametrize(
    "name, argument, value, message",
    [
        ("xgboost", "sample_weight", np.arange(51.0), f"sample_weight differs within queries, and {OF_QUERIES}"),
        ("xgboost", "sample_weight", np.ones(5), f"sample_weight has 5 entries for 12 queries, and {OF_QUERIES}"),
        ("lightgbm", "sample_weight", [1.0], "sample_weight has 1 entries for 51 rows: give one weight for each row"),
        ("lightgbm", "eval_sample_weight", np.ones(51), f"a ndarray with 51 entries {OF_SETS}"),
    ],
)
def test_weights_that_do_not_fit_have_a_remedy(name, argument, value, message):
    X, y, qid = task()
    with pytest.raises(ValueError, match=message):
        fit_params = {"eval_set": [(X, y)], "eval_qid": [qid], argument: value}
        QueryRanker(Library(name).model).fit(X, y, qid=qid, **fit_params)


# ---------------------------------------------------------------------------------------------------------------- errors


def test_a_pointwise_model_takes_evaluation_sets_by_the_same_names():
    """LightGBM has renamed its own argument, and warns of the old name; warnings are errors here."""
    lightgbm = pytest.importorskip("lightgbm")
    X, y, qid = task()
    model = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, n_jobs=1)
    ranker = QueryRanker(model).fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid])
    expected = np.mean((ranker.predict(X) - y) ** 2)
    assert ranker.estimator_.evals_result_["valid_0"]["l2"][-1] == pytest.approx(expected)


def test_missing_values_and_sparse_rows_are_the_models_business(library):
    X, y, qid = task()
    X[::3, 1] = np.nan
    order = order_of(qid)
    expected = library.predict(library.fit_sorted(X[order], y[order], qid[order]), X)
    np.testing.assert_array_equal(QueryRanker(library.model).fit(X, y, qid=qid).predict(X), expected)
    X = np.where(np.abs(np.nan_to_num(X)) < 0.5, 0, np.nan_to_num(X))
    first, second = (
        QueryRanker(library.model).fit(kind(X), y, qid=qid).predict(kind(X)) for kind in (sp.csr_matrix, sp.coo_array)
    )
    np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError):
        QueryRanker(LinearRegression()).fit(np.full((2, 1), np.nan), [0, 1], qid=[0, 0])


# ------------------------------------------------------------------------------------------------------- other models


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


def test_a_pipeline_or_search_around_a_ranker_is_refused(library):
    X, y, qid = task()
    for outer in (make_pipeline(StandardScaler(), library.model), GridSearchCV(library.model, {})):
        with pytest.raises(ValueError, match=r"put QueryRanker\(...\) around the \w+Ranker itself, inside the"):
            QueryRanker(outer).fit(X, y, qid=qid)
    QueryRanker(make_pipeline(StandardScaler(), Ridge())).fit(X, y, qid=qid)


@pytest.mark.parametrize("inner", [LinearRegression(), PlackettLuceRanker(random_state=0)], ids=repr)
@pytest.mark.filterwarnings("ignore")
def test_check_estimator(inner):
    failed = failures_of_check_estimator(QueryRanker(inner))
    assert not failed, failed


# ------------------------------------------------------------------------------------------- what every ranker can do


class Identity(RankingMixin, BaseEstimator):
    """Scores are the first column."""

    n_queries_ = 1

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


@pytest.mark.parametrize("y, qid", [([3], [0]), ([0, 0, 2, 2], [0, 0, 1, 1]), ([0, 1, 2], [0, 1, 2]), ([0, 0], [0, 0])])
def test_score_is_nan_where_no_order_is_better_than_another(y, qid):
    X = column(range(len(y)))
    with pytest.warns(UndefinedMetricWarning, match=rf"none of {len(set(qid))} queries has rows of different"):
        assert np.isnan(Identity().fit(X, y, qid=qid).score(X, y, qid=qid))


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


# ----------------------------------------------------------------------------------- one value per row, wrong calls

CONTAINERS = {
    "list": list,
    "Series": lambda w: pd.Series(w, index=np.arange(len(w))[::-1]),
    "nullable Series": lambda w: pd.Series(w, dtype="Float64"),
    "pyarrow chunks": lambda w: pytest.importorskip("pyarrow").chunked_array([w[:7], w[7:]]),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_values_of_rows_follow_them_whatever_holds_them(container):
    X, y, qid = task()
    library, order, values = Library("lightgbm"), order_of(qid), np.random.default_rng(0).uniform(0.1, 5, len(qid))
    direct = library.predict(library.fit_sorted(X[order], y[order], qid[order], sample_weight=values[order]), X)
    hold = CONTAINERS[container]
    for rows in (np.arange(len(qid)), order):
        ranker = QueryRanker(library.model).fit(X[rows], y[rows], qid=qid[rows], sample_weight=hold(values[rows]))
        np.testing.assert_array_equal(ranker.predict(X), direct)
    evaluation = {"eval_set": [(X, y)], "eval_qid": [qid]}
    by_list, by_number = (
        QueryRanker(library.model).fit(X, y, qid=qid, **evaluation, eval_sample_weight=given_).estimator_.evals_result_
        for given_ in ([hold(values)], {0: values})
    )
    assert by_list == by_number != QueryRanker(library.model).fit(X, y, qid=qid, **evaluation).estimator_.evals_result_


def test_feature_names_reach_the_model_and_its_evaluation_sets(library):
    X, y, qid = task()
    frame = pd.DataFrame(X, columns=["age", "income", "clicks"], index=np.arange(len(X))[::-1])
    ranker = QueryRanker(library.model).fit(frame, pd.Series(y), qid=qid)
    names = {"lightgbm": "feature_name_", "xgboost": "feature_names_in_", "catboost": "feature_names_"}[library.name]
    assert list(getattr(ranker.estimator_, names)) == list(frame.columns) == list(ranker.feature_names_in_)
    moved = frame[["income", "age", "clicks"]]
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(moved)
    with pytest.raises(ValueError, match="feature names"):
        ranker.fit(frame, y, qid=qid, eval_set=[(moved, y)], eval_qid=[qid])


@pytest.mark.parametrize(
    "model, wrap",
    [
        (("lightgbm", "LGBMRegressor", {"objective": "lambdarank"}), lambda model: model),
        (("xgboost", "XGBRegressor", {"objective": "rank:ndcg"}), lambda model: make_pipeline(StandardScaler(), model)),
        (("catboost", "CatBoostRegressor", {"objective": "LambdaMart"}), lambda m: VotingRegressor([("a", m)])),
    ],
)
def test_a_ranking_objective_without_queries_is_refused(model, wrap):
    name, kind, parameters = model
    inner = wrap(getattr(pytest.importorskip(name), kind)(**parameters))
    X, y, qid = task()
    with pytest.raises(ValueError, match=r"has a ranking objective \(\w+='.*'\).* one query.*Use \w+Ranker"):
        QueryRanker(inner).fit(X, y, qid=qid)


def test_wrong_arguments_have_a_remedy(library):
    X, y, qid = task()
    bad = np.r_[np.nan, y[1:]]
    sets = "eval_set holds a .*, .*eval_set=.*and eval_qid="
    for error, message, arguments in [
        (TypeError, "takes no group: pass qid=", {"group": [1]}),
        (ValueError, "eval_X is made of eval_set and eval_qid", {"eval_X": X}),
        (ValueError, "eval_set has 1 evaluation sets and eval_qid none", {"eval_set": [(X, y)]}),
        (ValueError, r"eval_qid\[0\] has 2 .*not group sizes", {"eval_set": [(X, y)], "eval_qid": [[3, 2]]}),
        (ValueError, r"y of eval_set\[0\] contains NaN.*leave them", {"eval_set": [(X, bad)], "eval_qid": [qid]}),
        (ValueError, sets, {"eval_set": pd.DataFrame(X), "eval_qid": [qid]}),
        (ValueError, "extra is a dict with as many entries as there are rows", {"extra": dict(enumerate(y))}),
    ]:
        with pytest.raises(error, match=message):
            QueryRanker(library.model).fit(X, y, qid=qid, **arguments)
    with pytest.raises(ValueError, match=r"Input y contains NaN.*give those without one a 0"):
        QueryRanker(library.model).fit(X, bad, qid=qid)


@pytest.mark.parametrize("labels", [["hire", "no"], [0, 1, 2]], ids=["text", "three classes"])
def test_a_classifier_of_text_or_of_several_classes_is_refused(labels):
    X, _, qid = task()
    y = np.array(labels)[np.arange(len(X)) % len(labels)]
    fitted = LogisticRegression().fit(X, y)
    for model in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression()), FrozenEstimator(fitted)):
        with pytest.raises(ValueError, match="give y as"):
            QueryRanker(model).fit(X, np.arange(len(X)) % 2 if isinstance(model, FrozenEstimator) else y, qid=qid)
    ranker = QueryRanker(LogisticRegression()).fit(X, X[:, 0] > 0, qid=qid)
    by_hand = LogisticRegression().fit(X, X[:, 0] > 0).decision_function(X)
    np.testing.assert_allclose(ranker.predict(X), by_hand, rtol=1e-6)


def test_a_warm_start_of_the_model_goes_on():
    X, y, qid = task()
    forest = GradientBoostingRegressor(n_estimators=3, warm_start=True, random_state=0)
    ours = QueryRanker(forest).fit(X, y, qid=qid)
    ours.set_params(estimator__n_estimators=5).fit(X, y, qid=qid)
    assert ours.estimator_.n_estimators_ == 5 and ours.estimator.n_estimators == 5
    cold = QueryRanker(clone(forest).set_params(n_estimators=5, warm_start=False)).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ours.predict(X), cold.predict(X))
