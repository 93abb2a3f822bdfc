"""Boosted and pointwise rankers of other libraries, with this package's way of saying which rows belong together."""

from __future__ import annotations

import inspect
import os
import warnings
from typing import Any

from sklearn.base import _fit_context, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from skfairrank._checks import names_queries
from skfairrank.metrics._predictions import scoring_method
from skfairrank.wrappers._base import (
    Wrapper,
    as_known,
    asked_of,
    by_query,
    by_query_if_per_row,
    fit_with_metadata,
    library_of,
    sorted_argument,
)
from skfairrank.wrappers._dask import DaskRows, clone_with_client
from skfairrank.wrappers._library import of_queries

_QUERIES = ("qid", "group_id", "group")  # what `fit` may call them
# Never one entry per row, even where the length happens to be the number of rows.
_NOT_PER_ROW = ("eval_set", "eval_qid", "callbacks")


class QueryRanker(Wrapper):
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

    ``lightgbm.DaskLGBMRanker()`` trains on collections of Dask, from one Dask DataFrame, where partitions hold whole queries
    whose rows are beside each other (checked). Further arguments of `fit` are its own; `estimator_` is what its `to_local` gives.

    In a pipeline the adapter is the last step, ``make_pipeline(StandardScaler(), QueryRanker(LGBMRanker()))``. CatBoost's
    `cat_features` must be a tuple in its constructor: scikit-learn can't clone it with a list.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y, qid = [[0.0], [1.0], [2.0], [5.0]], [0, 1, 2, 5], ["b", "a", "b", "a"]
    >>> QueryRanker(LinearRegression()).fit(X, y, qid=qid).rank(X, qid=qid)
    array([2, 2, 1, 1])
    """

    def __init__(self, estimator):
        self.estimator = estimator

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
            - XGBoost's rankers weigh whole queries: `sample_weight` has one entry per query, in sorted order of the query
              ids or as a Series indexed by them, or one per row, which are equal within each query.
            - The like for each evaluation set (`eval_sample_weight`, `sample_weight_eval_set` ...): a list with one entry
              for each set.
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
        if hasattr(self.estimator, "to_local"):  # an estimator of lightgbm.dask
            return self._fit_on_workers(X, y, qid, sensitive_features, fit_params)
        X, y, queries = self._check_training_data(X, y, qid)
        estimator: Any = clone(self.estimator)
        last: Any = getattr(self, "estimator_", None)
        if getattr(estimator, "warm_start", False) and isinstance(last, type(estimator)):
            estimator = last.set_params(**estimator.get_params(deep=False))
        library, argument = library_of(estimator), query_argument(estimator)
        scoring_method(estimator)
        given = [name for name in library.row_numbers if fit_params.get(name) is not None]
        if given and not queries.is_grouped:
            raise ValueError(
                f"{given[0]} has row numbers in it, which change when rows are sorted: sort X, y and qid by qid first."
            )
        metadata = asked_of(estimator, {"sensitive_features": sensitive_features, "X_hypothetical": X_hypothetical})
        for name, values in metadata.items():
            check_consistent_length(X, values)
            metadata[name] = by_query_if_per_row(values, queries, name)
        whole = {*_NOT_PER_ROW, *library.not_per_row, *library.per_eval_set, *library.models}
        arguments = {
            name: value if name in whole else sorted_argument(value, queries, name, argument, library)
            for name, value in fit_params.items()
        }
        for name in library.models:
            if name in arguments:
                arguments[name] = _model_to_go_on_from(arguments[name], name, estimator)
        if argument is not None:
            arguments[argument] = of_queries(argument, queries)
        arguments = self._evaluation(estimator, argument, arguments)
        X = by_query(as_known(X, estimator), queries)
        arguments = self._prepared(estimator, X, arguments, sensitive_features, queries)
        self.estimator_ = fit_with_metadata(estimator, X, by_query(y, queries), metadata, **arguments)
        self.n_queries_ = queries.n_queries
        return self

    def _fit_on_workers(self, X, y, qid, sensitive_features, arguments: dict):
        """LightGBM's distributed training on Dask collections, whose partitions hold whole queries."""
        estimator: Any = clone_with_client(self.estimator)
        rows = DaskRows(X, y, qid, sensitive_features, estimator.client)
        validate_data(self, X._meta if hasattr(X, "columns") else X, skip_check_array=True)
        if query_argument(estimator) is not None:
            arguments = arguments | {"group": rows.group}
        arguments = self._prepared(estimator, rows, arguments, rows.sensitive_features, rows.queries)
        with warnings.catch_warnings():  # of what nobody has set
            warnings.filterwarnings(
                "ignore" if estimator.n_jobs is None else "default", "Parameter n_jobs will be ignored"
            )
            self.estimator_ = estimator.fit(rows.X, rows.y, **arguments).to_local()
        self.n_queries_ = rows.queries.n_queries
        return self

    def _prepared(self, estimator, X, arguments: dict, sensitive_features, queries) -> dict:
        """The arguments of the model's `fit`, after what a subclass does to the model; rows of X are sorted by query."""
        return arguments


def query_argument(estimator) -> str | None:
    """How `estimator.fit` is told about queries: "group" (sizes), "group_id" or "qid" (ids); None: it is not.

    Raises
    ------
    ValueError
        If it is not, and trains a ranker all the same.
    """
    taken = inspect.signature(estimator.fit).parameters
    for name in _QUERIES:
        if name in taken:
            return name
    for model in _models(estimator):
        if model is not estimator and set(_QUERIES) & set(inspect.signature(model.fit).parameters):
            outer, inner = type(estimator).__name__, type(model).__name__
            remedy = (
                f"put QueryRanker(...) around the {inner} itself, inside the {outer}."
                if hasattr(model, "predict")
                else f"put the {inner} into a pipeline before the QueryRanker."
            )
            raise ValueError(f"{outer} does not hand query ids to the {inner} in it: {remedy}")
        library = library_of(model)
        objective = library.ranking_objective(model)
        if objective is not None:
            raise ValueError(
                f"{type(model).__name__} has a ranking objective ({objective}), and its fit can't be told about queries: "
                f"it would train on all rows as one query, or fail. Use {library.ranker} with this objective."
            )
    return None


def _models(estimator) -> list:
    """What `estimator.fit` trains: itself and the models in it, in pipelines, searches and ensembles alike."""
    if isinstance(estimator, FrozenEstimator):
        return []
    parts = estimator.get_params().values() if hasattr(estimator, "get_params") else ()
    return [
        estimator,
        *(part for part in parts if hasattr(part, "fit") and not isinstance(part, type | FrozenEstimator)),
    ]


def _model_to_go_on_from(model, name: str, estimator):
    """The library's own model inside a fitted wrapper; the name of a file, or what a file holds, as it is."""
    if model is None or isinstance(model, str | bytes | bytearray | os.PathLike):
        return model
    inner = getattr(model, "estimator_", None) if isinstance(model, Wrapper) else model
    inner = inner.estimator if isinstance(inner, FrozenEstimator) else inner
    given = type(model).__name__
    if inner is not None and library_of(inner) is not library_of(estimator):
        raise ValueError(
            f"{name} is a {given}, which {type(estimator).__name__} can't go on from: give a fitted "
            f"{type(estimator).__name__}, or a fitted QueryRanker around one."
        )
    is_fitted = getattr(
        inner, "is_fitted", getattr(inner, "__sklearn_is_fitted__", None)
    )  # CatBoost's, and the others'
    if inner is None or (is_fitted is not None and not is_fitted()):
        raise NotFittedError(f"{name} is a {given} that is not fitted: fit it first, or leave {name} out.")
    return inner
