"""Scores of rows from any fitted estimator; `qid` and group labels go with them where it, or a step of it, asks for them."""

from __future__ import annotations

import inspect
from functools import lru_cache

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object

__all__ = ["asks_for", "call_with_metadata", "own_policy", "ranking_scores", "scoring_method", "unwrapped"]


def ranking_scores(estimator, X, *, qid=None, sensitive_features=None) -> np.ndarray:
    """Scores of rows, higher is better, from any fitted estimator.

    Parameters
    ----------
    estimator : object
        With `predict`; of a classifier `decision_function`.
    X : array-like, shape (n_rows, n_features)
    qid : array-like, shape (n_rows,), optional
        The query of each row. It reaches the estimator, or steps of a pipeline, that request it for this method (as a step that
        centres features within each query does), whether or not metadata routing is enabled.
    sensitive_features : array-like, shape (n_rows,), optional
        The group of each row, for an estimator that asks for it when it predicts, as a re-ranker does; by the same rules.

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
    scores = np.asarray(call_with_metadata(estimator, method, X, qid=qid, sensitive_features=sensitive_features))
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


def call_with_metadata(estimator, method: str, X, **metadata):
    """``estimator.method(X)``, with those of the metadata (`qid`, `sensitive_features`) that are there and asked for."""
    inner = unwrapped(estimator)
    given = {name: value for name, value in metadata.items() if value is not None and asks_for(inner, method, name)}
    if not given:
        return getattr(estimator, method)(X)
    with config_context(enable_metadata_routing=True):  # without it a pipeline hands nothing to its steps
        return getattr(inner, method)(X, **given)


def own_policy(estimator, X, *, qid, sensitive_features=None):
    """The policy of an estimator whose rankings are random by its own rule; None for those that give scores.

    Such an estimator has a method ``policy(X, *, qid, sensitive_features)``, which returns a policy of these rows, one that needs
    no scores (see `skfairrank.policies.RankProbabilities`). It may be the last step of a pipeline, or in a fitted search.
    """
    inner, steps = unwrapped(estimator), []
    while isinstance(inner, Pipeline):
        steps += [step for _, step in inner.steps[:-1] if step not in (None, "passthrough")]
        inner = unwrapped(inner.steps[-1][1])
    if not callable(getattr(type(inner), "policy", None)):
        return None
    metadata = {"qid": qid, "sensitive_features": sensitive_features}
    for step in steps:
        X = call_with_metadata(step, "transform", X, **metadata)
    return inner.policy(X, **metadata)


def asks_for(estimator, method: str, name: str) -> bool:
    """Whether a method of an estimator takes the metadata `name`, for itself or for a step that requests it."""
    if not _may_ask_for(estimator, method, name):  # the routing itself takes a millisecond to put together
        return False
    try:
        routing = get_routing_for_object(estimator)
    except NotImplementedError:  # scikit-learn's estimators that route nothing yet
        return False
    if isinstance(routing, MetadataRouter):
        return name in routing.consumes(method, [name])
    return getattr(routing, method).requests.get(name) is not False


def _may_ask_for(estimator, method: str, name: str) -> bool:
    """False for most: no step has an argument of this name."""
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps]
        on_the_way = {"transform", method} if method == "fit" else {"transform"}
        return _may_ask_for(steps[-1], method, name) or any(
            _may_ask_for(step, of_step, name) for step in steps[:-1] for of_step in on_the_way
        )
    kind = type(estimator)
    hands_on = getattr(kind, "get_metadata_routing", None) not in (None, BaseEstimator.get_metadata_routing)
    return hands_on or _takes(kind, method, name)  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _takes(kind: type, method: str, name: str) -> bool:
    if name in getattr(kind, f"__metadata_request__{method}", ()):
        return True
    try:
        return name in inspect.signature(getattr(kind, method)).parameters
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
