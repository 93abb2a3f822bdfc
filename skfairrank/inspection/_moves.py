"""How far an adversary moves the scores of items within its bounds: in closed form where scores are linear, else by ascent."""

from __future__ import annotations

import numpy as np

from skfairrank._queries import Queries
from skfairrank._random import as_generator
from skfairrank.adversaries._search import score_bounds
from skfairrank.inspection._invariance import METHODS, Items, exact_bounds
from skfairrank.inspection._order_changes import of_intervals
from skfairrank.metrics._predictions import unwrapped


def unfairness_under_attack(ranker, X, s, queries: Queries, *, metric, adversary, method, statistic, random_state):
    """The statistic of each query under the worst moves of its items, shape (n_queries,).

    Parameters
    ----------
    ranker : fitted estimator
        With `coef_`, or for an attack one of ours.
    X : array-like, shape (n_rows, n_features)
        In the caller's row order.
    s : ndarray of float64, shape (n_rows,)
        Scores of X, grouped by query.
    queries : Queries
    metric : fitted fair metric, or None for the ranker's own
    adversary, method
        As for `invariance_regularizer`.
    statistic : one of `skfairrank.inspection._order_changes.STATISTICS`
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r}: choose one of {list(METHODS)}.")
    ranker = unwrapped(ranker)
    items = Items.of(ranker, X, queries.codes, metric)
    bounds = exact_bounds(adversary, items)
    if bounds.is_centered:
        raise ValueError('A certificate compares scores as they are: give an adversary with score_distance="squared".')
    if items.score.is_linear:
        _check_linear(ranker, items.X @ items.theta, s)
    if method == "auto" and items.score.is_linear and statistic == "score_change":
        return bounds.of_sizes(items.theta, queries.sizes)
    if not bounds.moves_items_alone:
        raise ValueError(
            f"{type(adversary).__name__} has one budget for all queries, of which it is known how far it changes linear scores, "
            f"and not how it changes orders: for statistic={statistic!r}, and for other scores, give ExactBox() or ExactGaps()."
        )
    if method == "auto" and items.score.is_linear:
        change = np.sqrt(2.0 * float(bounds.of_sizes(items.theta, [1])[0]))
        return of_intervals(statistic, s, s - change, s + change, queries)
    low, high = score_bounds(bounds, items.score, items.theta, items.X, as_generator(random_state))
    return of_intervals(statistic, s, low, high, queries)


def _check_linear(ranker, linear, s):
    """The closed form reads `coef_`; the scores must follow from it, up to an intercept."""
    rest = s - linear
    if np.ptp(rest) > 1e-4 * max(float(np.abs(s).max()), 1e-300):
        raise ValueError(
            f"The scores of {type(ranker).__name__} are not X @ coef_ up to a constant, so that the closed form does not hold: "
            "give hypotheticals."
        )
