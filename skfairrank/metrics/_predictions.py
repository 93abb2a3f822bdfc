"""What an estimator's scores are, and how it gets `qid` and group labels where it, or a step of it, asks for them."""

from __future__ import annotations

import numpy as np
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object


def ranking_scores(estimator, X, *, qid=None, sensitive_features=None) -> np.ndarray:
    """Scores of rows, higher is better, from any fitted estimator.

    Parameters
    ----------
    estimator : object
        With `predict`; of a classifier `decision_function`.
    X : array-like, shape (n_rows, n_features)
    qid, sensitive_features : array-like, shape (n_rows,), optional
        The query and the group of each row. They reach the estimator, or steps of a pipeline, that request them for this method
        (as a step that centres features within each query does), whether or not metadata routing is enabled.

    Returns
    -------
    scores : ndarray, shape (n_rows,)

    Raises
    ------
    ValueError
        If the estimator has no method that gives one number per row, or is a classifier of text or of several classes.
    """
    scores = np.asarray(
        call_with_metadata(estimator, scoring_method(estimator), X, qid=qid, sensitive_features=sensitive_features)
    )
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.ndim != 1:
        raise ValueError(
            f"{type(estimator).__name__} gives an array of shape {scores.shape}: one score per row was expected."
        )
    return scores


def scoring_method(estimator) -> str:
    """The name of the method that gives an estimator's scores."""
    if not is_a_classifier(estimator) and hasattr(estimator, "predict"):
        return "predict"
    if hasattr(estimator, "decision_function"):
        check_classes(estimator, getattr(estimator, "classes_", None))
        return "decision_function"
    kind = "is a classifier without" if hasattr(estimator, "predict") else "has neither predict nor"
    raise ValueError(
        f"{type(estimator).__name__} {kind} decision_function: a scorer of rankings needs one number per row, higher for rows "
        "that are to be ranked higher. Wrap it in an estimator whose predict returns such scores."
    )


def check_classes(estimator, labels) -> None:
    """Raise ValueError where a classifier's labels do not say which rows are better: text, or more than two classes."""
    classes = np.unique(np.asarray([] if labels is None else labels))
    if len(classes) > 2 or classes.dtype.kind not in "biuf":
        shown = ", ".join(map(repr, classes[:5].tolist())) + (", ..." if len(classes) > 5 else "")
        raise ValueError(
            f"{type(estimator).__name__} is a classifier with the classes {shown}, which do not say how good a row is: give y as "
            "relevances 0 and 1, or use a ranker or a regressor for several grades."
        )


def is_a_classifier(estimator) -> bool:
    if hasattr(estimator, "__sklearn_tags__"):
        return is_classifier(estimator)
    return getattr(estimator, "_estimator_type", None) == "classifier"


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
    try:
        routing = get_routing_for_object(estimator)
    except NotImplementedError:  # scikit-learn's estimators that route nothing yet
        return False
    if isinstance(routing, MetadataRouter):
        return name in routing.consumes(method, [name])
    return getattr(routing, method).requests.get(name, False) is not False


def unwrapped(estimator):
    """The estimator inside of fitted searches and FrozenEstimator, which hand nothing but X to its `predict`."""
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator
