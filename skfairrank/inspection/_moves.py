"""How far an adversary moves the scores of items within its bounds: in closed form where scores are linear, else by ascent."""

from __future__ import annotations

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from skfairrank._queries import Queries
from skfairrank._random import as_generator
from skfairrank.adversaries._base import gaps_of
from skfairrank.adversaries._reach import reachable_scores
from skfairrank.fair_metrics._linear import check_same_features, fitted_metric
from skfairrank.inspection._invariance import bounds_of_moves
from skfairrank.inspection._order_changes import of_intervals
from skfairrank.metrics._predictions import unwrapped

__all__ = ["ADVERSARIES", "unfairness_under_attack"]

ADVERSARIES = ("exact", "exact_box", "gaps", "ascent")
_BOUNDS = ("epsilon", "subspace_radius", "feature_radius", "gap_radius")
_ASCENT = ("n_steps", "n_starts")


def unfairness_under_attack(ranker, X, s, queries: Queries, *, metric, adversary, statistic, random_state, **settings):
    """The statistic of each query under the worst moves of its items, shape (n_queries,).

    Parameters
    ----------
    ranker : fitted estimator
        With `coef_`, or for "ascent" one of ours.
    X : array-like, shape (n_rows, n_features)
        In the caller's row order.
    s : ndarray of float64, shape (n_rows,)
        Scores of X, grouped by query.
    queries : Queries
    metric : fitted fair metric, or None for the ranker's own
    adversary : one of `ADVERSARIES`
    statistic : one of `skfairrank.inspection._order_changes.STATISTICS`
    **settings
        epsilon, subspace_radius, feature_radius, gap_radius; n_steps and n_starts for "ascent".
    """
    _check_settings(adversary, settings)
    ranker, qid = unwrapped(ranker), queries.codes
    if adversary == "ascent":
        low, high = _by_ascent(ranker, X, metric, as_generator(random_state), **settings)
        return of_intervals(statistic, s, queries.group(low), queries.group(high), queries)
    bounds, weights, _ = bounds_of_moves(ranker, X, qid, metric, adversary, **settings)
    _check_linear(ranker, queries.group(np.asarray(X, dtype=np.float64)) @ weights, s)
    if statistic == "score_change":
        return bounds.of_sizes(weights, queries.sizes)
    if adversary == "exact":
        raise ValueError(
            f'adversary="exact" has one budget for all queries, of which it is known how far it changes scores, and not how it '
            f'changes orders: for statistic={statistic!r} choose "exact_box", "gaps" or "ascent".'
        )
    change = np.sqrt(2.0 * float(bounds.of_sizes(weights, [1])[0]))
    return of_intervals(statistic, s, s - change, s + change, queries)


def _check_settings(adversary, settings):
    if adversary not in ADVERSARIES:
        raise ValueError(f"adversary={adversary!r}: choose one of {list(ADVERSARIES)}.")
    known = _BOUNDS + (_ASCENT if adversary == "ascent" else ())
    for name, value in settings.items():
        if name not in known:
            raise TypeError(f"adversary={adversary!r} has no setting {name!r}: it takes {', '.join(known)}.")
        if name in _ASCENT and (not isinstance(value, Integral) or value < 1):
            raise ValueError(f"{name}={value!r}: give an integer >= 1.")
        if name in _BOUNDS and not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise ValueError(f"{name}={value!r}: give a finite number >= 0.")


def _check_linear(ranker, linear, s):
    """The closed form reads `coef_`; the scores must follow from it, up to an intercept."""
    rest = s - linear
    if np.ptp(rest) > 1e-4 * max(float(np.abs(s).max()), 1e-300):
        raise ValueError(
            f"The scores of {type(ranker).__name__} are not X @ coef_ up to a constant, so that the closed form does not hold: "
            "give hypotheticals."
        )


class _Box(NamedTuple):
    raw: np.ndarray
    radius: float
    reach: np.ndarray


def _by_ascent(ranker, X, metric, rng, *, n_steps=20, n_starts=4, epsilon=None, **bounds):
    if epsilon is not None:
        raise ValueError(
            'adversary="ascent" moves items within a box: give subspace_radius and feature_radius, not epsilon.'
        )
    if isinstance(ranker, Pipeline):
        raise ValueError(
            "Items are moved in the features that the ranker sees: pass the pipeline's last step, and X as transformed by the "
            "others (pipeline[:-1].transform(X), with qid=qid where one of them asks for it)."
        )
    if not hasattr(ranker, "score_function_"):
        raise ValueError(
            f"{type(ranker).__name__} has no score_function_ whose slope an ascent could follow: give hypotheticals, or an "
            "adversary in closed form for a ranker with coef_."
        )
    metric = getattr(ranker, "metric_", None) if metric is None else metric
    if metric is None:
        raise ValueError("metric is missing: pass a fitted fair metric, within which items are moved.")
    metric = fitted_metric(metric)
    check_same_features(metric, getattr(X, "columns", None))
    X = check_array(X, dtype=[np.float64, np.float32], input_name="X")
    if X.shape[1] != metric.basis_.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features and the metric {metric.basis_.shape[1]}: they must be the same.")
    box = _box(metric, X.shape[1], **bounds)
    theta = ranker.coef_ if ranker.score_function_.is_linear else ranker.parameters_
    return reachable_scores(ranker.score_function_, theta, X, *box, n_steps=n_steps, n_starts=n_starts, rng=rng)


def _box(metric, n_features, *, subspace_radius=1.0, feature_radius=0.0, gap_radius=None) -> _Box:
    """The bounds of "gaps" where `gap_radius` is given, else those of "exact_box"."""
    reach = np.full(n_features, float(feature_radius))
    if gap_radius is not None:
        return _Box(np.zeros((0, n_features)), 0.0, reach + float(gap_radius) * gaps_of(metric))
    return _Box(np.asarray(metric.directions_, dtype=np.float64), float(subspace_radius), reach)
