"""Boosted and pointwise rankers of other libraries, with this package's way of saying which rows belong together."""

from __future__ import annotations

import copy
import inspect
import sys
import warnings

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from skfairrank.metrics._scorers import ranking_scores
from skfairrank.queries import Queries
from skfairrank.rankers._ranking import RankingMixin, queries_in_fit

__all__ = ["QueryRanker"]

# What the libraries call the queries; made here from qid and eval_qid.
_OWN = {"group": "qid", "group_id": "qid", "eval_group": "eval_qid", "eval_X": "eval_set", "eval_y": "eval_set"}
# Lists with one entry for each evaluation set, the entry having one value per row (or per query).
_PER_EVAL_SET = ("eval_sample_weight", "eval_init_score", "sample_weight_eval_set", "base_margin_eval_set")
# Never one entry per row, even where the length happens to be the number of rows.
_NOT_PER_ROW = {
    *("feature_name", "categorical_feature", "feature_weights", "cat_features", "text_features", "embedding_features"),
    *("eval_at", "eval_metric", "eval_names", "eval_set", "eval_qid", "callbacks", *_PER_EVAL_SET),
}
# CatBoost's, with row numbers in them.
_ROW_NUMBERS = ("pairs", "graph", "pairs_weight")


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
        queries (a pointwise ranker). ``FrozenEstimator(model)`` is a model that is fitted already.

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

    In a pipeline the adapter is the last step, ``make_pipeline(StandardScaler(), QueryRanker(LGBMRanker()))``. CatBoost's
    `cat_features` must be a tuple in its constructor: scikit-learn can't clone it with a list.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y, qid = [[0.0], [1.0], [2.0], [5.0]], [0, 1, 2, 5], ["b", "a", "b", "a"]
    >>> QueryRanker(LinearRegression()).fit(X, y, qid=qid).rank(X, qid=qid)
    array([2, 2, 1, 1])
    """

    _parameter_constraints = {"estimator": [HasMethods(["fit", "predict"])]}

    def __init__(self, estimator):
        self.estimator = estimator

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = get_tags(self.estimator)
            tags.input_tags = copy.copy(inner.input_tags)
            tags.non_deterministic = inner.non_deterministic
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, qid=None, sensitive_features=None, **fit_params):
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
        **fit_params
            Arguments of the model's own `fit`, in the order of the rows of X:

            - `eval_set`: list of pairs ``(X, y)``, and with it `eval_qid`, a list of the query ids of each; rows in any
              order. (A single tuple ``(X, y)`` with its ids will do.) The names are the same for all libraries.
            - What has one entry per row (LightGBM's `sample_weight`, XGBoost's `base_margin`, CatBoost's
              `group_weight` ...) follows its rows when these are sorted.
            - What has one entry per query (XGBoost's `sample_weight`) is given in sorted order of the query ids. (Where
              there are as many rows as queries, it is read row by row.)
            - The like for each evaluation set (`eval_sample_weight`, `sample_weight_eval_set` ...).
            - Anything else is passed on as it is.

        Returns
        -------
        self : QueryRanker

        Raises
        ------
        ValueError
            If a library's own way of naming queries is used (`group`, `group_id`, `eval_group`), or `qid` or
            `eval_qid` does not fit the rows.
        """
        X = _as_rows(X)
        validate_data(self, X, y, skip_check_array=True)
        y = _as_labels(y, X)
        queries = queries_in_fit(qid, _num_samples(X))
        estimator = clone(self.estimator)
        if is_classifier(estimator) and not hasattr(estimator, "decision_function"):
            raise ValueError(
                f"{type(estimator).__name__} is a classifier without decision_function: its labels are no scores. Use a "
                "ranker or a regressor."
            )
        argument = _query_argument(estimator)
        taken = inspect.signature(estimator.fit).parameters
        _check_fit_params(fit_params, queries)

        arguments = {
            name: value if name in _NOT_PER_ROW or not _has_rows(value, queries.n_rows) else _sort(value, queries)
            for name, value in fit_params.items()
        }
        if argument is not None:
            arguments[argument] = queries.sizes if argument == "group" else np.sort(queries.codes)
            if arguments.get("eval_set") is not None:
                arguments |= _eval_arguments(arguments, argument, taken, estimator)
        if sensitive_features is not None and "sensitive_features" in taken:
            check_consistent_length(X, sensitive_features)
            arguments["sensitive_features"] = _sort(sensitive_features, queries)

        self.estimator_ = estimator.fit(_sort(X, queries), _sort(y, queries), **arguments)
        self.n_queries_ = queries.n_queries
        return self

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
        X = _as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        if not _makes_up_names(self.estimator_):
            return ranking_scores(self.estimator_, X)
        with warnings.catch_warnings():
            # If so, it is said above.
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            return ranking_scores(self.estimator_, X)


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
    inner = estimator.steps[-1][1] if hasattr(estimator, "steps") else getattr(estimator, "estimator", None)
    if hasattr(inner, "fit") and not isinstance(estimator, FrozenEstimator) and _query_argument(inner) is not None:
        outer = type(estimator).__name__
        raise ValueError(
            f"{outer} does not hand query ids to the {type(inner).__name__} in it: put QueryRanker(...) around the "
            f"{type(inner).__name__} itself, inside the {outer}."
        )
    return None


def _check_fit_params(fit_params, queries: Queries) -> None:
    for name, ours in _OWN.items():
        if name in fit_params:
            raise ValueError(f"{name} is made by QueryRanker: pass {ours} instead, rows in any order.")
    given = [name for name in _ROW_NUMBERS if fit_params.get(name) is not None]
    if given and not queries.is_grouped:
        raise ValueError(
            f"{given[0]} has row numbers in it, which change when rows are sorted: sort X, y and qid by qid first."
        )


def _eval_arguments(arguments, argument, taken, estimator) -> dict:
    """Evaluation sets sorted by query, under the names that the library knows."""
    eval_set, eval_qid = arguments["eval_set"], arguments.pop("eval_qid", None)
    if isinstance(eval_set, tuple) and not isinstance(eval_set[0], tuple):
        eval_set, eval_qid = [eval_set], [eval_qid]
    if eval_qid is None or len(eval_qid) != len(eval_set) or any(ids is None for ids in eval_qid):
        found = "none" if eval_qid is None else len(eval_qid)
        raise ValueError(
            f"eval_set has {len(eval_set)} evaluation sets and eval_qid {found}: give eval_qid=[qid, ...], for each "
            "set one query id per row."
        )
    sets = [(_as_rows(X), y) for X, y in eval_set]
    groups = [
        Queries.from_qid(ids, _num_samples(X), name=f"eval_qid[{k}]")
        for k, ((X, _), ids) in enumerate(zip(sets, eval_qid))
    ]
    Xs = [_sort(X, queries) for (X, _), queries in zip(sets, groups)]
    ys = [_sort(_as_labels(y, X), queries) for (X, y), queries in zip(sets, groups)]
    out = {}
    for name in _PER_EVAL_SET:
        if isinstance(arguments.get(name), list | tuple):
            if len(arguments[name]) != len(sets):
                raise ValueError(
                    f"{name} has {len(arguments[name])} entries for {len(sets)} evaluation sets: give one each."
                )
            out[name] = [
                _sort(values, queries) if _has_rows(values, queries.n_rows) else values
                for values, queries in zip(arguments[name], groups)
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


def _catboost_pools(Xs, ys, ids, arguments, estimator):
    from catboost import Pool  # only a pair without queries could be passed otherwise

    known = estimator.get_params() | arguments
    columns = {name: known.get(name) for name in ("cat_features", "text_features", "embedding_features")}
    return [Pool(X, y, group_id=group_id, **columns) for X, y, group_id in zip(Xs, ys, ids)]


def _as_rows(X):
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


def _as_labels(y, X) -> np.ndarray:
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return y


def _has_rows(values, n_rows: int) -> bool:
    shape = getattr(values, "shape", None)
    return (len(values) if isinstance(values, list | tuple) else shape[0] if shape else None) == n_rows


def _sort(values, queries: Queries):
    """Rows query by query."""
    return values if queries.is_grouped else _safe_indexing(values, queries.order)
