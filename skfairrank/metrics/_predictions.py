"""Scores of rows from any fitted estimator; `qid` goes with them where the estimator, or a step of it, asks for it."""

from __future__ import annotations

import inspect
from collections.abc import Hashable
from functools import lru_cache

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object

__all__ = ["asks_for_qid", "call_with_qid", "ranking_scores", "scoring_method", "unwrapped"]


def ranking_scores(estimator, X, *, qid=None) -> np.ndarray:
    """Scores of rows, higher is better, from any fitted estimator.

    Parameters
    ----------
    estimator : object
        With `predict`; of a classifier `decision_function`.
    X : array-like, shape (n_rows, n_features)
    qid : array-like, shape (n_rows,), optional
        The query of each row. It reaches the estimator, or steps of a pipeline, that request it for this method (as a step that
        centres features within each query does), whether or not metadata routing is enabled.

    Returns
    -------
    scores : ndarray, shape (n_rows,)

    Raises
    ------
    ValueError
        If the estimator has no method that gives one number per row. A classifier needs a `decision_function`: its
        labels are no scores, and its probabilities no Plackett-Luce scores.
    """
    name, method = type(estimator).__name__, scoring_method(estimator)
    scores = np.asarray(call_with_qid(estimator, method, X, qid))
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.ndim != 1:
        raise ValueError(f"{name} gives an array of shape {scores.shape}: one score per row was expected.")
    return scores


def scoring_method(estimator) -> str:
    """The name of the method that gives an estimator's scores."""
    if not _is_classifier(estimator) and hasattr(estimator, "predict"):
        return "predict"
    if hasattr(estimator, "decision_function"):
        return "decision_function"
    kind = "is a classifier without" if hasattr(estimator, "predict") else "has neither predict nor"
    raise ValueError(
        f"{type(estimator).__name__} {kind} decision_function: a scorer of rankings needs one number per row, higher for rows "
        "that are to be ranked higher. Wrap it in an estimator whose predict returns such scores."
    )


def call_with_qid(estimator, method: str, X, qid):
    """``estimator.method(X)``, or ``estimator.method(X, qid=qid)`` where that is asked for."""
    inner = unwrapped(estimator)
    if qid is None or not asks_for_qid(inner, method):
        return getattr(estimator, method)(X)
    with config_context(enable_metadata_routing=True):  # without it a pipeline hands nothing to its steps
        return getattr(inner, method)(X, qid=qid)


def asks_for_qid(estimator, method: str) -> bool:
    """Whether a method of an estimator takes `qid`, for itself or for a step that requests it."""
    if not _may_ask_for_qid(estimator, method):  # the routing itself takes a millisecond to put together
        return False
    try:
        routing = get_routing_for_object(estimator)
    except NotImplementedError:  # scikit-learn's estimators that route nothing yet
        return False
    if isinstance(routing, MetadataRouter):
        return "qid" in routing.consumes(method, ["qid"])
    return getattr(routing, method).requests.get("qid") is not False


def _may_ask_for_qid(estimator, method: str) -> bool:
    """False for most: no step has an argument `qid`."""
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps]
        return _may_ask_for_qid(steps[-1], method) or any(_may_ask_for_qid(step, "transform") for step in steps[:-1])
    kind: Hashable = type(estimator)
    hands_on = getattr(kind, "get_metadata_routing", None) not in (None, BaseEstimator.get_metadata_routing)
    return hands_on or _takes_qid(kind, method)


@lru_cache(maxsize=256)
def _takes_qid(kind: Hashable, method: str) -> bool:
    if "qid" in getattr(kind, f"__metadata_request__{method}", ()):
        return True
    try:
        return "qid" in inspect.signature(getattr(kind, method)).parameters
    except (AttributeError, TypeError, ValueError):  # no such method, or none with a signature
        return False


def unwrapped(estimator):
    """The estimator inside of fitted searches and FrozenEstimator, which hand nothing but X to its `predict`."""
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator


def _is_classifier(estimator) -> bool:
    if hasattr(estimator, "__sklearn_tags__"):
        return is_classifier(estimator)
    return getattr(estimator, "_estimator_type", None) == "classifier"
