"""Search for the worst moves within the bounds of a closed form, for any score with a gradient.

Each step goes to the point of the bounds that the gradient at the present point prefers (Frank and Wolfe 1956), shorter and
shorter. For linear scores the regulariser is convex in the moves, and the first steps lead to an extreme point.
"""

from __future__ import annotations

import numpy as np

from skfairrank._queries import centred

N_STEPS, N_STARTS = 30, 4
_ROWS = 1 << 13  # items that move at once where each is by itself


def score_bounds(bounds, score, theta, X, rng) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest score that each item reaches within a box, each of shape (n_items,).

    Parameters
    ----------
    bounds : Box
    score : skfairrank.scores.Score
    theta : ndarray of float64, shape (n_parameters,)
    X : ndarray, shape (n_items, n_features)
    rng : numpy.random.Generator
        The first start is the item itself, the others are random points of the box.
    """
    low, high = np.empty(len(X)), np.empty(len(X))
    for at in range(0, len(X), _ROWS):
        block = slice(at, at + _ROWS)
        x = np.asarray(X[block], dtype=np.float64)
        low[block] = high[block] = score.values(theta, x)
        for start in range(N_STARTS):
            D = np.zeros_like(x) if start == 0 else _random_moves(bounds, x.shape, rng)
            for sign, end, extreme in ((1.0, high, np.maximum), (-1.0, low, np.minimum)):
                for Z in _path(bounds, x, D, lambda Z, s=sign: s * score.input_gradient(theta, Z)):
                    end[block] = extreme(end[block], score.values(theta, Z))
    return low, high


def largest_regularizer(bounds, score, theta, X, offsets, rng) -> float:
    """The largest mean over queries of half the sum of squared changes of scores that is found; see `score_bounds`.

    Parameters
    ----------
    bounds : Box or Budget
    X : ndarray of float64, shape (n_rows, n_features)
        Query after query; those of query q begin at ``offsets[q]``.
    """
    h, n_queries, best = score.values(theta, X), len(offsets) - 1, 0.0
    if bounds.moves_items_alone:
        low, high = score_bounds(bounds, score, theta, X, rng)
        return float(0.5 * np.sum(np.maximum(h - low, high - h) ** 2)) / n_queries
    second = np.flatnonzero((np.arange(len(X)) - np.repeat(offsets[:-1], np.diff(offsets))) % 2)

    def change(Z):
        change = score.values(theta, Z) - h
        return centred(change, offsets) if bounds.is_centered else change

    def slope(Z):
        return change(Z)[:, None] * score.input_gradient(theta, Z)

    for _ in range(N_STARTS):
        D = _random_moves(bounds, X.shape, rng)
        D[second] = -D[second - 1]  # as many rise as fall, which matters where changes are compared with their mean
        for Z in _path(bounds, X, D, slope):
            best = max(best, 0.5 * float(np.sum(change(Z) ** 2)) / n_queries)
    return best


def _path(bounds, X, D, slope):
    """The points X + D on the way, from the start on."""
    yield X + D
    for t in range(N_STEPS):
        D = D + (1.0 - t / N_STEPS) * (bounds.furthest(slope(X + D)) - D)
        yield X + D


def _random_moves(bounds, shape, rng):
    return rng.random((shape[0], 1)) * bounds.furthest(rng.standard_normal(shape))
