"""Boosted and pointwise rankers of other libraries, with this package's way of saying which rows belong together."""

from __future__ import annotations

import copy
import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from skfairrank._checks import as_values, names_queries
from skfairrank._queries import Queries
from skfairrank._rankers._ranking import RankingMixin, queries_in_fit
from skfairrank.metrics._scorers import ranking_scores

__all__ = ["QueryRanker", "needs_query_ranker"]

# What the libraries call the queries; made here from qid and eval_qid.
_OWN = {
    **dict.fromkeys(("group", "groups", "group_id", "query_id"), "qid"),
    "eval_group": "eval_qid",
    "eval_X": "eval_set",
    "eval_y": "eval_set",
}
# Lists with one entry for each evaluation set, the entry having one value per row (or per query).
_PER_EVAL_SET = ("eval_sample_weight", "eval_init_score", "sample_weight_eval_set", "base_margin_eval_set")
# Arguments with a fitted model to go on from.
_MODELS = ("init_model", "xgb_model")
# Never one entry per row, even where the length happens to be the number of rows.
_NOT_PER_ROW = {
    *("feature_name", "categorical_feature", "feature_weights", "cat_features", "text_features", "embedding_features"),
    *("eval_at", "eval_metric", "eval_names", "eval_set", "eval_qid", "callbacks", *_PER_EVAL_SET, *_MODELS),
}
# CatBoost's, with row numbers in them.
_ROW_NUMBERS = ("pairs", "graph", "pairs_weight")
# Parameters that name a loss (LightGBM has five words for it), and the losses that are about queries.
_OBJECTIVES = ("objective", "loss_function", "loss", "application", "app", "objective_type")
_OF_QUERIES = re.compile("rank|ndcg|pair|query|lambdamart|stochasticfilter|groupquantile", re.IGNORECASE)
RANKERS = {"lightgbm": "LGBMRanker", "xgboost": "XGBRanker", "catboost": "CatBoostRanker"}


class QueryRanker(RankingMixin, MetaEstimatorMixin, BaseEstimator):
    """Adapter that gives a ranker of another library `qid`, in any row order, and this package's methods.

    LightGBM wants the sizes of the queries and rows sorted by them, XGBoost sorted ids, CatBoost a sorted `group_id`.
    Here all three take ``fit(X, y, qid=qid)``: the rows are sorted by `qid` (stably) before the model sees them, and
    what it predicts is in the caller's row order. So one search can hold boosted and fair rankers, with the same
    splitters and scorers.

    Parameters
    ----------
    estimator : estimator with `fit` and `predict`
        Such as ``LGBMRanker()``, ``XGBRanker()`` or ``CatBoostRanker()``. How it is told about queries follows from the
        signature of its `fit`: `group` (sizes) where there is no `qid`, else `group_id`, else `qid`. An estimator whose
        `fit` has none of these, such as scikit-learn's regressors, is fitted on the sorted rows regardless of their
        queries (a pointwise ranker); a ranking objective is refused there, as in ``XGBRegressor(objective="rank:ndcg")``,
        which would see all rows as one query. ``FrozenEstimator(model)`` is a model that is fitted already.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone of `estimator`.
    n_queries_ : int
        Number of queries seen in `fit`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has column names.

    Notes
    -----
    Parameters of the model are reached as ``estimator__num_leaves`` and so on, in a search too. NaN, categories and
    sparse X are up to the model. Further arguments of `fit`, such as `eval_set`, can't be routed through a search or a
    pipeline: there use the model's own parameters (`n_estimators` in the grid instead of early stopping), or fit the
    chosen model again.

    Each `fit` trains a fresh clone of the model, unless the model says ``warm_start=True`` or `fit` gets a fitted model to
    go on from, as LightGBM's and CatBoost's `init_model` or XGBoost's `xgb_model`.

    In a pipeline the adapter is the last step, ``make_pipeline(StandardScaler(), QueryRanker(LGBMRanker()))``. CatBoost's
    `cat_features` must be a tuple in its constructor: scikit-learn can't clone it with a list.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y, qid = [[0.0], [1.0], [2.0], [5.0]], [0, 1, 2, 5], ["b", "a", "b", "a"]
    >>> QueryRanker(LinearRegression()).fit(X, y, qid=qid).rank(X, qid=qid)
    array([2, 2, 1, 1])
    """

    __metadata_request__fit = {"X_hypothetical": True}

    _parameter_constraints = {"estimator": [HasMethods(["fit", "predict"])]}

    def __init__(self, estimator):
        self.estimator = estimator

    def __sklearn_tags__(self):
        return with_tags_within(super().__sklearn_tags__(), self.estimator)

    @names_queries
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, qid=None, sensitive_features=None, X_hypothetical=None, **fit_params):
        """Fit a clone of the model on the rows sorted by query.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)
            A DataFrame reaches the model as a DataFrame.
        y : array-like, shape (n_rows,)
            Relevance of each row. LightGBM asks for ints.
        qid : array-like, shape (n_rows,), optional
            The query of each row: ints or strings, in any order. None: all rows are one query, with a warning.
        sensitive_features : array-like of n_rows rows, optional
            Handed to a model whose `fit` takes it, ignored otherwise: one search can hold fair rankers and others.
        X_hypothetical : table like X, optional
            Handed on, or ignored, like `sensitive_features`.
        **fit_params
            Arguments of the model's own `fit`, in the order of the rows of X:

            - `eval_set`: list of pairs ``(X, y)``, and with it `eval_qid`, a list of the query ids of each; rows in any
              order. (A single tuple ``(X, y)`` with its ids will do.) The names are the same for all libraries.
            - What has one entry per row (LightGBM's `sample_weight`, XGBoost's `base_margin`, CatBoost's
              `group_weight` ...) follows its rows when these are sorted, whatever holds it: a list, an array, a column of
              pandas, polars or pyarrow. What has as many entries as there are rows and no order (a dict, a set) is an error.
            - What has one entry per query (XGBoost's `sample_weight`) is given in sorted order of the query ids. (Where
              there are as many rows as queries, it is read row by row.)
            - The like for each evaluation set (`eval_sample_weight`, `sample_weight_eval_set` ...): a list with one entry
              for each set, or a dict by the number of the set.
            - `init_model`, `xgb_model`: a fitted `QueryRanker` or a fitted model of the library, which training goes on from.
            - Anything else is passed on as it is.

        Returns
        -------
        self : QueryRanker

        Raises
        ------
        ValueError
            If a library's own way of naming queries is used (`group`, `group_id`, `eval_group`), or `qid` or
            `eval_qid` does not fit the rows, or the model ranks but can't be told about queries.
        NotFittedError
            If the model to go on from is not fitted.
        """
        X = as_rows(X)
        validate_data(self, X, y, skip_check_array=True)
        y = _as_labels(y, X)
        _refuse_other_names(fit_params)
        queries = queries_in_fit(qid, _num_samples(X))
        estimator = self._model_to_fit()
        if is_classifier(estimator) and not hasattr(estimator, "decision_function"):
            raise ValueError(
                f"{type(estimator).__name__} is a classifier without decision_function: its labels are no scores. Use a "
                "ranker or a regressor."
            )
        argument = _query_argument(estimator)
        taken = inspect.signature(estimator.fit).parameters
        _refuse_row_numbers(fit_params, queries)

        arguments = {
            name: value if name in _NOT_PER_ROW else _sort_if_per_row(value, queries, name)
            for name, value in fit_params.items()
        }
        if argument == "qid" and type(estimator).__module__.startswith("xgboost."):
            arguments["sample_weight"] = _weight_of_queries(arguments.get("sample_weight"), queries)
        arguments |= {
            name: _model_to_go_on_from(arguments[name], name, estimator) for name in _MODELS if name in arguments
        }
        if argument is not None:
            arguments[argument] = queries.sizes if argument == "group" else np.sort(queries.codes)
            if arguments.get("eval_set") is not None:
                arguments |= _eval_arguments(arguments, argument, taken, estimator)
        else:
            arguments.pop("eval_qid", None)  # the names are the same for all models; this one knows no queries
        if sensitive_features is not None and "sensitive_features" in taken:
            check_consistent_length(X, sensitive_features)
            arguments["sensitive_features"] = _sort_if_per_row(sensitive_features, queries, "sensitive_features")

        if X_hypothetical is not None and "X_hypothetical" in taken:
            check_consistent_length(X, X_hypothetical)
            arguments["X_hypothetical"] = _sort(X_hypothetical, queries)

        X = _sort(X, queries)
        arguments = self._prepared(estimator, X, arguments, sensitive_features, queries)
        self.estimator_ = estimator.fit(X, _sort(y, queries), **arguments)
        self.n_queries_ = queries.n_queries
        return self

    def _prepared(self, estimator, X, arguments: dict, sensitive_features, queries: Queries) -> dict:
        """The arguments of the model's `fit`, after what a subclass does to the model; rows of X are sorted by query."""
        return arguments

    def _model_to_fit(self):
        """A fresh clone; or the last fit's model, where it is to be started from (`warm_start`)."""
        try:
            model = clone(self.estimator)
        except (TypeError, RuntimeError) as error:  # CatBoost(params), or a constructor that changes what it is given
            name = type(self.estimator).__name__
            ranker = RANKERS.get(library_of(self.estimator), "a ranker that follows scikit-learn's rules")
            remedy = "give" if name == ranker else f"use {ranker} (and"
            raise TypeError(
                f"{name} can't be cloned, and {type(self).__name__} fits a clone: {remedy} tuples for lists in its constructor"
                f"{'' if name == ranker else ')'}. scikit-learn says: {error}"
            ) from error
        last = getattr(self, "estimator_", None)
        if getattr(model, "warm_start", False) and type(last) is type(model):
            return last.set_params(**model.get_params(deep=False))  # type: ignore[union-attr]
        return model

    def predict(self, X):
        """Scores, higher is better.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)

        Returns
        -------
        scores : ndarray of float, shape (n_rows,)
            What the fitted model predicts.
        """
        check_is_fitted(self)
        X = as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        with silent_of_made_up_names(self.estimator_):
            return ranking_scores(self.estimator_, X)


def with_tags_within(tags, estimator):
    """The tags of a ranker around an estimator: what X may be, and whether there is chance, is the estimator's business."""
    if hasattr(estimator, "__sklearn_tags__"):
        inner = get_tags(estimator)
        tags.input_tags = copy.copy(inner.input_tags)
        tags.non_deterministic = inner.non_deterministic
    return tags


@contextmanager
def silent_of_made_up_names(estimator):
    """Without the model's warning of missing feature names, where it has made them up; real ones are looked at beforehand."""
    with warnings.catch_warnings():
        if _makes_up_names(estimator):
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def _makes_up_names(estimator) -> bool:
    """LightGBM before 4.7 makes up feature names for arrays in fit, and misses them in predict."""
    if not type(estimator).__module__.startswith("lightgbm."):
        return False
    return parse_version(sys.modules["lightgbm"].__version__) < parse_version("4.7")


def _query_argument(estimator) -> str | None:
    """How `estimator.fit` is told about queries: "group" (sizes), "group_id" or "qid" (ids); None: it is not."""
    taken = inspect.signature(estimator.fit).parameters
    if "group" in taken and "qid" not in taken:
        return "group"
    for name in ("group_id", "qid"):
        if name in taken:
            return name
    for model in _models(estimator):
        if model is not estimator and _takes_queries(model):
            outer, inner = type(estimator).__name__, type(model).__name__
            remedy = (
                f"put QueryRanker(...) around the {inner} itself, inside the {outer}."
                if hasattr(model, "predict")
                else f"put the {inner} into a pipeline before the QueryRanker."
            )
            raise ValueError(f"{outer} does not hand query ids to the {inner} in it: {remedy}")
        objective = _objective_of_queries(model)
        if objective is not None:
            ranker = RANKERS.get(library_of(model), "a ranker, whose fit takes group, group_id or qid")
            raise ValueError(
                f"{type(model).__name__} has a ranking objective ({objective}), and its fit can't be told about queries: "
                f"it would train on all rows as one query, or fail. Use {ranker} with this objective."
            )
    return None


def _takes_queries(estimator) -> bool:
    return bool({"group", "group_id", "qid"} & set(inspect.signature(estimator.fit).parameters))


def _models(estimator) -> Iterator:
    """What `estimator.fit` trains: itself and the models in it, in pipelines, searches and ensembles alike."""
    if isinstance(estimator, FrozenEstimator) or isinstance(estimator, type) or not hasattr(estimator, "fit"):
        return
    yield estimator
    if library_of(estimator) in RANKERS or not hasattr(estimator, "get_params"):
        return
    for value in estimator.get_params(deep=False).values():
        for part in value if isinstance(value, list | tuple) else [value]:
            # Steps and members of ensembles are tuples (name, estimator) or (name, estimator, columns).
            for model in part[1:2] if isinstance(part, tuple) else [part]:
                yield from _models(model)


def library_of(estimator) -> str:
    """The library that brings the estimator, also where a user has derived a class from it."""
    modules = [kind.__module__.partition(".")[0] for kind in type(estimator).__mro__]
    return next((module for module in modules if module in RANKERS), modules[0])


def needs_query_ranker(estimator) -> bool:
    """Whether an estimator is of a library whose rankers are told of queries in a way of their own."""
    return library_of(estimator) in RANKERS


def _objective_of_queries(estimator) -> str | None:
    """`objective='rank:ndcg'` or the like, where the estimator has such a parameter."""
    parameters = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    for name in _OBJECTIVES:
        value = parameters.get(name)
        if isinstance(value, str) and _OF_QUERIES.search(value):
            return f"{name}={value!r}"
    return None


def _model_to_go_on_from(model, name: str, estimator):
    """The library's own model inside a fitted `QueryRanker`; what the library itself understands as it is."""
    given = type(model).__name__
    if isinstance(model, QueryRanker):
        if not hasattr(model, "estimator_"):
            raise NotFittedError(f"{name} is a QueryRanker that is not fitted: fit it first, or leave {name} out.")
        model = model.estimator_
    if isinstance(model, FrozenEstimator):
        model = model.estimator
    if hasattr(model, "is_fitted") and not model.is_fitted():  # CatBoost; the others say so themselves
        raise NotFittedError(
            f"{name} is a {type(model).__name__} that is not fitted: fit it first, or leave {name} out."
        )
    if hasattr(model, "fit") and library_of(model) != library_of(estimator):
        raise ValueError(
            f"{name} is a {given}, which {type(estimator).__name__} can't go on from: give a fitted "
            f"{type(estimator).__name__}, or a fitted QueryRanker around one."
        )
    return model


def _weight_of_queries(weight, queries: Queries):
    """XGBoost's rankers take one weight for each query: those of rows, sorted by query, as such where they agree."""
    if weight is None or _num_samples(weight) != queries.n_rows or queries.n_rows == queries.n_queries:
        return weight
    values, starts = np.ravel(as_values(weight)), queries.offsets[:-1]
    if (np.maximum.reduceat(values, starts) != np.minimum.reduceat(values, starts)).any():
        raise ValueError(
            "sample_weight differs within queries, and XGBoost's rankers weigh whole queries: give each row of a query the same "
            "weight, or one weight for each query, in sorted order of the query ids."
        )
    return values[starts]


def _refuse_other_names(fit_params) -> None:
    for name, ours in _OWN.items():
        if name in fit_params:
            raise ValueError(f"{name} is made by QueryRanker: pass {ours} instead, rows in any order.")


def _refuse_row_numbers(fit_params, queries: Queries) -> None:
    given = [name for name in _ROW_NUMBERS if fit_params.get(name) is not None]
    if given and not queries.is_grouped:
        raise ValueError(
            f"{given[0]} has row numbers in it, which change when rows are sorted: sort X, y and qid by qid first."
        )


def _eval_arguments(arguments, argument, taken, estimator) -> dict:
    """Evaluation sets sorted by query, under the names that the library knows."""
    eval_set, eval_qid = arguments["eval_set"], arguments.pop("eval_qid", None)
    alone = isinstance(eval_set, tuple) and len(eval_set) == 2 and not isinstance(eval_set[0], tuple)
    if alone:
        eval_set, eval_qid = [eval_set], None if eval_qid is None else [eval_qid]
    _check_pairs(eval_set)
    if eval_qid is None or len(eval_qid) != len(eval_set) or any(ids is None for ids in eval_qid):
        found = "none" if eval_qid is None else len(eval_qid)
        raise ValueError(
            f"eval_set has {len(eval_set)} evaluation sets and eval_qid {found}: give eval_qid=[qid, ...], for each "
            "set one query id per row."
        )
    sets = [(as_rows(X), y) for X, y in eval_set]
    groups = [
        Queries.from_qid(ids, _num_samples(X), name=f"eval_qid[{k}]")
        for k, ((X, _), ids) in enumerate(zip(sets, eval_qid))
    ]
    Xs = [_sort(X, queries) for (X, _), queries in zip(sets, groups)]
    ys = [
        _sort(_as_labels(y, X, name=f"y of eval_set[{k}]"), queries)
        for k, ((X, y), queries) in enumerate(zip(sets, groups))
    ]
    out = {}
    for name in _PER_EVAL_SET:
        if arguments.get(name) is not None:
            values = _one_for_each_set(arguments[name], len(sets), name, alone)
            out[name] = [
                _sort_if_per_row(value, queries, f"{name}[{k}]")
                for k, (value, queries) in enumerate(zip(values, groups))
            ]

    ids = [np.sort(queries.codes) for queries in groups]
    if argument == "group_id":
        return out | {"eval_set": _catboost_pools(Xs, ys, ids, arguments, estimator)}
    if argument == "qid":
        return out | {"eval_set": list(zip(Xs, ys)), "eval_qid": ids}
    out["eval_group"] = [queries.sizes for queries in groups]
    if "eval_X" in taken:  # LightGBM 4.7 deprecates eval_set
        return out | {"eval_set": None, "eval_X": tuple(Xs), "eval_y": tuple(ys)}
    return out | {"eval_set": list(zip(Xs, ys))}


def _check_pairs(eval_set) -> None:
    """Raise ValueError where evaluation sets are not pairs (X, y)."""
    sets = eval_set if isinstance(eval_set, list | tuple) else [eval_set]
    wrong = [type(pair).__name__ for pair in sets if not isinstance(pair, list | tuple) or len(pair) != 2]
    if wrong or sets is not eval_set:
        raise ValueError(
            f"eval_set holds a {wrong[0] if wrong else type(eval_set).__name__}, whose rows can't be sorted by query: give "
            "eval_set=[(X, y)] and eval_qid=[qid], rows in any order. QueryRanker makes of them what the library wants."
        )


def _one_for_each_set(values, n_sets: int, name: str, alone: bool) -> list:
    """A list with one entry for each evaluation set."""
    if isinstance(values, Mapping):  # LightGBM takes them by the number of the set
        unknown = [key for key in values if key not in range(n_sets)]
        if unknown:
            raise ValueError(
                f"{name} has the key {unknown[0]!r}: its keys are the numbers of the evaluation sets, 0 to {n_sets - 1}."
            )
        return [values.get(k) for k in range(n_sets)]
    if alone and not (isinstance(values, list | tuple) and len(values) == 1):
        return [values]  # as bare as its evaluation set
    if not hasattr(values, "__len__") or len(values) != n_sets:
        found = len(values) if hasattr(values, "__len__") else f"a {type(values).__name__} and no list of"
        raise ValueError(f"{name} has {found} entries for {n_sets} evaluation sets: give one each.")
    return list(values)


def _catboost_pools(Xs, ys, ids, arguments, estimator):
    from catboost import Pool  # only a pair without queries could be passed otherwise

    known = estimator.get_params() | arguments
    columns = {name: known.get(name) for name in ("cat_features", "text_features", "embedding_features")}
    return [Pool(X, y, group_id=group_id, **columns) for X, y, group_id in zip(Xs, ys, ids)]


def as_rows(X):
    """X as something with rows that can be taken out: data frames and arrays stay what they are."""
    if hasattr(X, "tocsr"):
        X = csr_matrix(X)  # neither LightGBM nor CatBoost knows sparse arrays
    X = X if hasattr(X, "shape") and hasattr(X, "__getitem__") else np.asarray(X)
    if len(X.shape) == 2 and 0 in X.shape:
        what = "sample" if X.shape[0] == 0 else "feature"
        raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead. Reshape your data: one row for each item, "
            "X.reshape(-1, 1) if there is one feature, X.reshape(1, -1) if there is one item."
        )
    return X


def _as_labels(y, X, name: str = "y") -> np.ndarray:
    y = column_or_1d(y, warn=True)
    try:
        assert_all_finite(y, input_name=name)
    except ValueError as error:
        raise ValueError(
            f"{error} Every row needs a relevance: give those without one a 0 (not relevant), or leave them out of X, y and "
            "the query ids."
        ) from error
    check_consistent_length(X, y)
    return y


def _sort_if_per_row(values, queries: Queries, name: str):
    """An argument of `fit`, sorted query by query where it has one entry per row.

    Raises
    ------
    ValueError
        If it has as many entries as there are rows, and they stand in no order.
    """
    if isinstance(values, str | bytes) or hasattr(values, "fit"):
        return values
    if not hasattr(values, "__len__") and hasattr(values, "__array__"):
        values = np.asarray(values)
    shape = getattr(values, "shape", None)
    n_entries = (
        (shape[0] if shape else None) if shape is not None else len(values) if hasattr(values, "__len__") else None
    )
    if n_entries != queries.n_rows:
        return values
    if isinstance(values, list | tuple):
        return _sort(list(values), queries)
    if shape is not None and len(shape) == 2:
        return _sort(values, queries)
    column = as_values(values)  # every library takes an array
    if column.dtype == object and pd.api.types.is_numeric_dtype(getattr(values, "dtype", None)):
        # pandas' nullable numbers; before pandas 3 they come as objects.
        column = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if column.ndim == 0 or isinstance(values, Mapping):
        raise ValueError(
            f"{name} is a {type(values).__name__} with as many entries as there are rows ({queries.n_rows}), which does not "
            "say which row has which: give a list, an array or a column, in the order of the rows of X."
        )
    return _sort(column, queries)


def _sort(values, queries: Queries):
    """Rows query by query."""
    if queries.is_grouped:
        return values
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return values.take(queries.order)
    return _safe_indexing(values, queries.order)
