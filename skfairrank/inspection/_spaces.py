"""The features in which a fair metric measures distances: those that its ranker sees, behind the steps of its pipeline."""

from __future__ import annotations

import numpy as np

from skfairrank.fair_metrics._linear import unfrozen
from skfairrank.metrics._predictions import call_with_metadata, unwrapped
from skfairrank.wrappers._base import Wrapper

__all__ = ["steps_to_metric", "transformed"]


def steps_to_metric(metric, named, X, qid) -> dict:
    """For each estimator the fitted transformers that bring X to the space of a metric, as a tuple.

    A metric that a ranker uses (its `metric_`), or that is a step itself, measures what the steps before it give. Such a metric
    is known by identity or by equal directions. An estimator without it is asked about the same neighbours as the first one that
    has it. Where none has it, the features decide: those of X as given, or those that the estimator's last step sees.

    Parameters
    ----------
    metric : fitted fair metric
    named : dict of name to fitted estimator
    X : array-like, shape (n_rows, n_features)
    qid : array-like, shape (n_rows,)

    Raises
    ------
    ValueError
        If the features fit both, or neither.
    """
    own = {name: _steps_before(metric, estimator) for name, estimator in named.items()}
    known = [steps for steps in own.values() if steps is not None]
    if known:
        return {name: known[0] if steps is None else steps for name, steps in own.items()}
    return {name: _guess(metric, name, estimator, X, qid) for name, estimator in named.items()}


def transformed(steps, X, qid):
    """X behind fitted transformers; `qid` goes to those that request it."""
    for step in steps:
        X = call_with_metadata(step, "transform", X, qid=qid)
    return X


def _steps_before(metric, estimator):
    """The transformers before the part of an estimator that has the metric; None where no part has it."""
    for steps, part in _parts(estimator):
        if _is_same(part, metric) or _is_same(getattr(part, "metric_", None), metric):
            return steps
    return None


def _parts(estimator, steps=()):
    """Each part of an estimator with the transformers before it, from outside to inside and from first to last."""
    estimator = unwrapped(estimator)
    if hasattr(estimator, "steps"):
        for _, step in estimator.steps:
            if step is not None and not isinstance(step, str):  # "passthrough"
                yield from _parts(step, steps)
                steps += (step,)
    else:
        yield steps, estimator
        if isinstance(estimator, Wrapper) and hasattr(estimator, "estimator_"):
            yield from _parts(estimator.estimator_, steps)


def _is_same(part, metric) -> bool:
    part = unfrozen(part)
    if part is metric:
        return True
    arrays = ("directions_", "basis_", "shrink_")  # also of a copy, such as one that was pickled
    return type(part) is type(metric) and all(
        hasattr(part, name) and np.array_equal(getattr(part, name), getattr(metric, name)) for name in arrays
    )


def _guess(metric, name, estimator, X, qid):
    *_, (steps, _) = _parts(estimator)
    if not steps:
        return ()  # nearest_queries says so where the features do not fit
    given, seen = _fit(metric, X), _fit(metric, transformed(steps, X, qid))
    if given != seen:
        return () if given > seen else steps
    if given:
        problem = "whether it measures X as given or what the last step sees cannot be told, since it fits both"
    else:
        problem = f"it was fitted on {metric.basis_.shape[1]} features that are neither those of X nor what the last step sees"
    raise ValueError(
        f"metric is not the metric_ of a ranker here, and {name!r} is a pipeline: {problem}. Bring the rows to the features of "
        "the metric, as Z, and pass X_hypothetical=nearest_queries(Z, Z, qid=qid, qid_reference=qid, metric=metric)"
        ".hypothetical(X)."
    )


def _fit(metric, X) -> int:
    """2 where a metric was fitted on features of these names, 1 where on as many, 0 where on others."""
    expected, names = getattr(metric, "feature_names_in_", None), getattr(X, "columns", None)
    n_features = X.shape[1] if hasattr(X, "shape") else len(X[0])
    if n_features != metric.basis_.shape[1]:
        return 0
    if expected is None or names is None:
        return 1
    return 2 if list(names) == list(expected) else 0
