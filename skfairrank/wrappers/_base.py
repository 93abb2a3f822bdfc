"""What every estimator around another one shares: it fits a clone, told of what that asks for, and asks it for scores."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Mapping
from contextlib import contextmanager

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from skfairrank._queries import Queries, queries_in_fit
from skfairrank.metrics._predictions import asks_for, check_classes, is_a_classifier, ranking_scores, unwrapped
from skfairrank.rankers._plackett_luce import RankingMixin
from skfairrank.wrappers._catboost import CatBoost
from skfairrank.wrappers._library import Library
from skfairrank.wrappers._lightgbm import LightGBM
from skfairrank.wrappers._rows import as_rows, by_query, by_query_if_per_row
from skfairrank.wrappers._xgboost import XGBoost

LIBRARIES: dict[str, Library] = {"lightgbm": LightGBM(), "xgboost": XGBoost(), "catboost": CatBoost()}
OTHER = Library()


class Wrapper(RankingMixin, MetaEstimatorMixin, BaseEstimator):
    """Base class: a ranker that fits a clone of `estimator`, and ranks by its scores or by what it makes of them."""

    __metadata_request__fit = {"X_hypothetical": True}

    _parameter_constraints: dict = {"estimator": [HasMethods(["fit", "predict"])]}

    estimator: object

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

    def _inner_scores(self, X, *, qid=None, sensitive_features=None) -> np.ndarray:
        """Scores of the fitted estimator."""
        check_is_fitted(self, "estimator_")
        X = as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        with silent_of_made_up_names(self.estimator_):
            scores = ranking_scores(self.estimator_, X, qid=qid, sensitive_features=sensitive_features)
        if len(scores) != _num_samples(X):
            name = type(self.estimator_).__name__
            raise ValueError(f"{name} gave {len(scores)} scores for {_num_samples(X)} rows of X.")
        return scores

    def _evaluation(self, estimator, argument, arguments: dict, read=as_rows) -> dict:
        """The arguments of an estimator's `fit`, in which evaluation sets are as its library wants them."""
        eval_set, eval_qid = arguments.get("eval_set"), arguments.get("eval_qid")
        arguments = {name: value for name, value in arguments.items() if name != "eval_qid"}
        library, taken = library_of(estimator), inspect.signature(estimator.fit).parameters
        if eval_set is None or (argument is None and "eval_X" not in taken):
            return arguments
        if isinstance(eval_set, tuple) and len(eval_set) == 2 and not isinstance(eval_set[0], tuple):
            eval_set, eval_qid = [eval_set], None if eval_qid is None else [eval_qid]
        _check_pairs(eval_set)
        if argument is None:
            eval_qid = [np.zeros(_num_samples(y)) for _, y in eval_set]
        if eval_qid is None or len(eval_qid) != len(eval_set) or any(ids is None for ids in eval_qid):
            found = "none" if eval_qid is None else len(eval_qid)
            raise ValueError(
                f"eval_set has {len(eval_set)} evaluation sets and eval_qid {found}: give eval_qid=[qid, ...], for each "
                "set one query id per row."
            )
        Xs, ys, queries = [], [], []
        for k, ((X, y), ids) in enumerate(zip(eval_set, eval_qid)):
            X = read(X)
            validate_data(self, X, reset=False, skip_check_array=True)
            queries.append(Queries.from_qid(ids, _num_samples(X), name=f"eval_qid[{k}]"))
            Xs.append(by_query(X, queries[k]))
            ys.append(by_query(as_labels(y, X, name=f"y of eval_set[{k}]"), queries[k]))
        for name in library.per_eval_set:
            values = arguments.get(name)
            if values is None:
                continue
            if isinstance(values, Mapping):  # LightGBM takes them by the number of the set
                values = [values.get(k) for k in range(len(Xs))]
            if not isinstance(values, list | tuple) or len(values) != len(Xs):
                raise ValueError(f"{name} is no list of {len(Xs)} entries: give one for each evaluation set.")
            arguments[name] = [by_query_if_per_row(v, queries[k], f"{name}[{k}]") for k, v in enumerate(values)]
        known = estimator.get_params() | arguments
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


def check_labels(estimator, y, *, is_fitted: bool = False) -> None:
    """Raise ValueError where `estimator` is a classifier, and its classes do not say which rows are better."""
    is_fitted, estimator = is_fitted or isinstance(estimator, FrozenEstimator), unwrapped(estimator)
    if is_a_classifier(estimator):
        check_classes(estimator, getattr(estimator, "classes_", y) if is_fitted else y)


@contextmanager
def silent_of_made_up_names(estimator):
    """Without the model's warning of missing feature names, where it has made them up; real ones are checked beforehand."""
    with warnings.catch_warnings():
        if library_of(estimator).makes_up_names:
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def _check_pairs(eval_set) -> None:
    """Raise ValueError where evaluation sets are not pairs (X, y)."""
    sets = eval_set if isinstance(eval_set, list | tuple) else [eval_set]
    wrong = [type(pair).__name__ for pair in sets if not isinstance(pair, list | tuple) or len(pair) != 2]
    if wrong or sets is not eval_set:
        raise ValueError(
            f"eval_set holds a {wrong[0] if wrong else type(eval_set).__name__}, whose rows can't be sorted by query: give "
            "eval_set=[(X, y)] and eval_qid=[qid], rows in any order. They become what the library wants."
        )
