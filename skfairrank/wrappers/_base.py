"""What every estimator around another one shares: it fits a clone, told of what that asks for, and asks it for scores."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from skfairrank._checks import as_values
from skfairrank._partitions import is_dask, whole_rows
from skfairrank._queries import Queries, queries_in_fit
from skfairrank.metrics._predictions import asks_for, check_classes, is_a_classifier, ranking_scores, unwrapped
from skfairrank.rankers._plackett_luce import RankingMixin
from skfairrank.wrappers._library import CatBoost, Library
from skfairrank.wrappers._lightgbm import LightGBM
from skfairrank.wrappers._xgboost import XGBoost

LIBRARIES: dict[str, Library] = {"lightgbm": LightGBM(), "xgboost": XGBoost(), "catboost": CatBoost()}
OTHER = Library()


class Wrapper(RankingMixin, MetaEstimatorMixin, BaseEstimator):
    """Base class: a ranker that fits a clone of `estimator`, and ranks by its scores or by what it makes of them."""

    __metadata_request__fit = {"X_hypothetical": True}

    _parameter_constraints: dict = {"estimator": [HasMethods(["fit", "predict"])]}

    estimator: object
    estimator_: Any

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):  # what X may be, and whether there is chance, is its business
            inner = get_tags(self.estimator)
            tags.input_tags, tags.non_deterministic = copy.copy(inner.input_tags), inner.non_deterministic
        return tags

    def _check_training_data(self, X, y, qid):
        X = as_rows(X)
        validate_data(self, X, y, skip_check_array=True)
        y = as_labels(y, X)
        check_labels(self.estimator, y)
        return X, y, queries_in_fit(qid, _num_samples(X))

    def predict(self, X):
        """Scores, higher is better.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)

        Returns
        -------
        scores : ndarray of float, shape (n_rows,)
            What the fitted model predicts. Of a collection of Dask a Dask array, which is computed when it is used.
        """
        if not is_dask(X):
            return self._inner_scores(X)
        if hasattr(X, "map_blocks"):
            return whole_rows(X).map_blocks(self._scores_of_part, drop_axis=1, meta=np.zeros(0))
        return X.map_partitions(lambda part: pd.Series(self._scores_of_part(part)), meta=pd.Series(dtype=float)).values

    def _scores_of_part(self, X) -> np.ndarray:
        return self._inner_scores(X) if len(X) else np.zeros(0)

    def _inner_scores(self, X, *, qid=None, sensitive_features=None) -> np.ndarray:
        """Scores of the fitted estimator."""
        check_is_fitted(self, "estimator_")
        X = as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        X = as_known(X, self.estimator_)
        with warnings.catch_warnings():  # LightGBM before 4.7 makes names up in `fit`, and misses them here
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            scores = ranking_scores(self.estimator_, X, qid=qid, sensitive_features=sensitive_features)
        if len(scores) != _num_samples(X):
            name = type(self.estimator_).__name__
            raise ValueError(f"{name} gave {len(scores)} scores for {_num_samples(X)} rows of X.")
        return scores

    def _evaluation(self, estimator, argument, arguments: dict) -> dict:
        """The arguments of an estimator's `fit`, in which evaluation sets are as its library wants them."""
        for name in ("eval_group", "eval_X", "eval_y"):  # what libraries call them
            if name in arguments:
                raise ValueError(
                    f"{name} is made of eval_set and eval_qid, whatever the library calls them: pass eval_set=[(X, y)] and "
                    "eval_qid=[qid], rows in any order."
                )
        arguments = dict(arguments)
        eval_set, eval_qid = arguments.get("eval_set"), arguments.pop("eval_qid", None)
        if eval_set is None:
            if eval_qid is not None:
                raise ValueError("eval_qid came without eval_set: give eval_set=[(X, y)], the rows that it describes.")
            return arguments
        if isinstance(eval_set, tuple) and not isinstance(eval_set[0], tuple):
            eval_set, eval_qid = [eval_set], None if eval_qid is None else [eval_qid]
        if not isinstance(eval_set, list | tuple) or not all(
            isinstance(p, list | tuple) and len(p) == 2 for p in eval_set
        ):
            raise ValueError(
                f"eval_set holds a {type(eval_set).__name__} that is no list of pairs, whose rows can be sorted by query: give "
                "eval_set=[(X, y)] and eval_qid=[qid], rows in any order. They become what the library wants."
            )
        if argument is None:
            eval_qid = [np.zeros(_num_samples(y)) for _, y in eval_set]
        if eval_qid is None or len(eval_qid) != len(eval_set):
            found = "none" if eval_qid is None else len(eval_qid)
            raise ValueError(
                f"eval_set has {len(eval_set)} evaluation sets and eval_qid {found}: give eval_qid=[qid, ...], for each "
                "set one query id per row."
            )
        Xs, ys, queries = [], [], []
        for k, ((X, y), ids) in enumerate(zip(eval_set, eval_qid)):
            X = as_rows(X)
            validate_data(self, X, reset=False, skip_check_array=True)
            queries.append(Queries.from_qid(ids, _num_samples(X), name=f"eval_qid[{k}]"))
            Xs.append(by_query(as_known(X, estimator), queries[k]))
            ys.append(by_query(as_labels(y, X, name=f"y of eval_set[{k}]"), queries[k]))
        library = library_of(estimator)
        for name in library.per_eval_set:
            values = arguments.get(name)
            if values is None:
                continue
            if isinstance(values, Mapping) and set(values) <= set(range(len(Xs))):
                values = [values.get(k) for k in range(len(Xs))]  # LightGBM takes them by the number of the set
            if not isinstance(values, list | tuple) or len(values) != len(Xs):
                found = len(values) if hasattr(values, "__len__") else "no"
                raise ValueError(
                    f"{name} is a {type(values).__name__} with {found} entries for {len(Xs)} evaluation sets: give a list with "
                    "one entry for each set."
                )
            arguments[name] = [
                sorted_argument(v, queries[k], name, argument, library, shown=f"{name}[{k}]")
                for k, v in enumerate(values)
            ]
        known = estimator.get_params() | arguments
        taken = inspect.signature(estimator.fit).parameters
        return arguments | library.evaluation(argument, Xs, ys, queries, taken, known)


def library_of(estimator) -> Library:
    """The record of the library that brings the estimator, also where a user has derived a class from it."""
    modules = [kind.__module__.partition(".")[0] for kind in type(estimator).__mro__]
    return next((LIBRARIES[module] for module in modules if module in LIBRARIES), OTHER)


def fit_clone(estimator, X, y, **metadata):
    """A fitted clone that gets the metadata that its `fit` asks for; a FrozenEstimator stays as it is.

    What takes no `qid`, or takes queries in the way of its library, is fitted inside of a `QueryRanker`.
    """
    from skfairrank.wrappers._query_ranker import QueryRanker

    if isinstance(estimator, FrozenEstimator):
        return estimator
    model = clone(estimator)
    if library_of(model) is not OTHER or not asks_for(model, "fit", "qid"):
        model = QueryRanker(model)
    return fit_with_metadata(model, X, y, asked_of(model, metadata))


def asked_of(estimator, metadata: dict) -> dict:
    """Those of the metadata that are there, and that the estimator's `fit` asks for."""
    return {
        name: values for name, values in metadata.items() if values is not None and asks_for(estimator, "fit", name)
    }


def fit_with_metadata(estimator, X, y, metadata: dict, **arguments):
    """Fit; pipelines and searches hand metadata on only where routing is enabled."""
    with config_context(enable_metadata_routing=True if metadata else None):
        return estimator.fit(X, y, **metadata, **arguments)


def as_labels(y, X, name: str = "y") -> np.ndarray:
    """Relevances as a column without missing values."""
    y = in_native_order(column_or_1d(y, warn=True))
    try:
        assert_all_finite(y, input_name=name)
    except ValueError as error:
        raise ValueError(
            f"{error} Every row needs a relevance: give those without one a 0 (not relevant), or leave them out of X, y and "
            "the query ids."
        ) from error
    check_consistent_length(X, y)
    return y


def check_labels(estimator, y, *, is_fitted: bool = False) -> None:
    """Raise ValueError where `estimator` is a classifier, and its classes do not say which rows are better."""
    is_fitted, estimator = is_fitted or isinstance(estimator, FrozenEstimator), unwrapped(estimator)
    if is_a_classifier(estimator):
        check_classes(estimator, getattr(estimator, "classes_", y) if is_fitted else y)


# Rows of tables and columns of any kind


def as_rows(X):
    """X as a table whose rows can be taken: frames and arrays stay what they are.

    Raises
    ------
    ValueError
        If it has not two dimensions, or no rows or columns.
    """
    if is_dask(X):
        raise TypeError(
            "X is a collection of Dask: fit a sample in memory, sample.compute(); predict takes X as it is."
        )
    if hasattr(X, "tocsr"):
        X = sparse.csr_matrix(X)  # neither LightGBM nor CatBoost knows sparse arrays
        if not X.has_canonical_format:  # libraries take one of several entries in one place for all of them
            X = X.copy()
            X.sum_duplicates()
    X = X if hasattr(X, "shape") and hasattr(X, "__getitem__") else np.asarray(X)
    if isinstance(X, np.ndarray):
        X = in_native_order(X)
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead. Reshape your data: one row for each item, "
            "X.reshape(-1, 1) if there is one feature, X.reshape(1, -1) if there is one item."
        )
    if 0 in X.shape:
        what = "sample" if X.shape[0] == 0 else "feature"
        raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    return X


def in_native_order(values: np.ndarray) -> np.ndarray:
    """The same numbers in the byte order of this machine: XGBoost reads others as if they were in it."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def as_known(X, estimator):
    """A table as the boosting libraries know it: to their estimators frames of other kinds go as frames of pandas."""
    is_other_frame = hasattr(X, "to_pandas") and not isinstance(X, pd.DataFrame)
    return X.to_pandas() if is_other_frame and library_of(estimator) is not OTHER else X


def take(values, rows):
    """Rows of a table or a column of any kind; None stays None."""
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return values.take(rows)
    return None if values is None else _safe_indexing(values, rows)


def by_query(values, queries: Queries):
    """Rows sorted by query."""
    return values if queries.is_grouped else take(values, queries.order)


def sorted_argument(values, queries: Queries, name: str, argument, library: Library, shown: str | None = None):
    """An argument of the `fit` of a library's model, sorted by query where it has one entry per row.

    Weights become those of queries where a ranker, whose `argument` names the queries, takes these.

    Raises
    ------
    ValueError
        If weights are neither those of rows nor those that the model takes.
    """
    shown = shown or name
    values = by_query_if_per_row(values, queries, shown)
    if values is None or name not in library.weights:
        return values
    n, of_queries = _num_samples(values), argument is not None and library.weighs_queries
    if n == (queries.n_queries if of_queries else queries.n_rows):
        return values
    if not of_queries:
        raise ValueError(f"{shown} has {n} entries for {queries.n_rows} rows: give one weight for each row.")
    column, starts = np.ravel(as_values(values)), queries.offsets[:-1]
    if n != queries.n_rows or (np.maximum.reduceat(column, starts) != np.minimum.reduceat(column, starts)).any():
        found = "differs within queries" if n == queries.n_rows else f"has {n} entries for {queries.n_queries} queries"
        raise ValueError(
            f"{shown} {found}, and {library.name}'s rankers weigh whole queries: give each row of a query the same weight, or "
            "one weight for each query, in sorted order of the query ids."
        )
    return column[starts]


def by_query_if_per_row(values, queries: Queries, name: str):
    """An argument of `fit`, sorted by query where it has one entry per row.

    A Series with one entry per query is sorted by the ids in its index, if it has them.

    Raises
    ------
    ValueError
        If it has as many entries as there are rows, in no order.
    """
    try:
        is_per_row = not isinstance(values, str | bytes) and _num_samples(values) == queries.n_rows
    except TypeError:
        is_per_row = False
    if not is_per_row:
        ids = pd.Index(queries.ids)
        is_by_id = isinstance(values, pd.Series) and len(values) == len(ids) and ids.isin(values.index).all()
        return values.loc[ids].to_numpy() if is_by_id else values
    if isinstance(values, list | tuple):
        return by_query(list(values), queries)
    if len(getattr(values, "shape", ())) == 2:
        return by_query(values, queries)
    column = as_values(values)  # every library takes an array
    if column.dtype == object and pd.api.types.is_numeric_dtype(getattr(values, "dtype", None)):
        # pandas' nullable numbers; before pandas 3 they come as objects.
        column = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if column.ndim == 0 or isinstance(values, Mapping):
        raise ValueError(
            f"{name} is a {type(values).__name__} with as many entries as there are rows ({queries.n_rows}), which does not "
            "say which row has which: give a list, an array or a column, in the order of the rows of X."
        )
    return by_query(column, queries)
