"""The features in which a fair metric measures distances: those that its ranker sees, behind the steps of its pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np

from skfairrank.fair_metrics._linear import unfrozen
from skfairrank.metrics._predictions import call_with_metadata, unwrapped


def steps_to_metric(metric, estimators: dict, X, qid) -> dict:
    """For each estimator the fitted transformers that bring X to the space of a metric, as a tuple.

    A metric that a ranker uses (its `metric_`), or that is a step itself, measures what the steps before it give. It is known by
    identity or by equal directions. An estimator without it is asked about the same neighbours as the first one that has it.
    Where none has it, the features decide: those of X as given, or those that the estimator's last step sees.

    Raises
    ------
    ValueError
        If the features fit both, or neither.
    """
    own = {
        name: next((steps for steps, part in _parts(estimator) if _has(part, metric)), None)
        for name, estimator in estimators.items()
    }
    known = next((steps for steps in own.values() if steps is not None), None)
    if known is not None:
        return {name: known if steps is None else steps for name, steps in own.items()}
    return {name: _guess(metric, name, estimator, X, qid) for name, estimator in estimators.items()}


def transformed(steps, X, qid):
    """X behind fitted transformers; `qid` goes to those that request it."""
    for step in steps:
        X = call_with_metadata(step, "transform", X, qid=qid)
    return X


def _parts(estimator, steps=()):
    """Each part of an estimator with the transformers before it, from outside to inside and from first to last."""
    estimator = unwrapped(estimator)
    if not hasattr(estimator, "steps"):
        yield steps, estimator
        if hasattr(estimator, "estimator_"):
            yield from _parts(estimator.estimator_, steps)
        return
    for _, step in estimator.steps:
        if step is not None and not isinstance(step, str):  # "passthrough"
            yield from _parts(step, steps)
            steps += (step,)


def _has(part, metric: Any) -> bool:
    """Whether a part is the metric or uses it; also a copy, such as one that was pickled."""
    arrays = ("directions_", "basis_", "shrink_")
    return any(
        one is metric
        or (type(one) is type(metric) and all(np.array_equal(getattr(one, a, ()), getattr(metric, a)) for a in arrays))
        for one in map(unfrozen, (part, getattr(part, "metric_", None)))
    )


def _guess(metric, name, estimator, X, qid):
    *_, (steps, _) = _parts(estimator)
    given, seen = (_fit(metric, Z) for Z in (X, transformed(steps, X, qid)))
    if given != seen or not steps:  # without steps `nearest_queries` says where the features do not fit
        return () if given >= seen else steps
    problem = "its features fit both X as given and what the last step sees" if given else "its features fit neither"
    raise ValueError(
        f"metric is not the metric_ of a ranker here, and {name!r} is a pipeline: whether it measures X or what its last "
        f"step sees cannot be told, since {problem}. Bring the rows to the features of the metric, as Z, and pass "
        "X_hypothetical=nearest_queries(Z, Z, qid=qid, qid_reference=qid, metric=metric).hypothetical(X)."
    )


def _fit(metric, X) -> int:
    """2 where a metric was fitted on features of these names, 1 where on as many, 0 where on others."""
    expected, names = getattr(metric, "feature_names_in_", None), getattr(X, "columns", None)
    if (X.shape[1] if hasattr(X, "shape") else len(X[0])) != metric.basis_.shape[1]:
        return 0
    if expected is None or names is None:
        return 1
    return 2 * (list(names) == list(expected))
