"""How far the score of each item can be moved within a box, by projected ascent of the score: for any score with a slope."""

from __future__ import annotations

import numpy as np

__all__ = ["reachable_scores"]

# Items that move at once.
_ROWS = 1 << 13


def reachable_scores(score, theta, X, raw, radius, reach, *, n_steps: int, n_starts: int, rng):
    """Least and largest score that each item reaches at x' = x + c V + e with |c_k| <= radius and |e_j| <= reach_j.

    Of linear scores these are the true extremes, since the first step ends in a corner of the box. Of others they are what the
    ascent finds: steps along the signs of the slope, projected onto the box, shorter and shorter; the best point on the way
    counts.

    Parameters
    ----------
    score : skfairrank.scores.Score
    theta : ndarray of float64, shape (n_parameters,)
    X : ndarray, shape (n_items, n_features)
    raw : ndarray, shape (n_directions, n_features)
        The directions V.
    radius : float
    reach : ndarray, shape (n_features,)
    n_steps, n_starts : int
        The first start is the item itself, the others are uniform in the box.
    rng : numpy.random.Generator

    Returns
    -------
    low, high : ndarray, shape (n_items,)
    """
    low, high = np.empty(len(X)), np.empty(len(X))
    for at in range(0, len(X), _ROWS):
        block = slice(at, at + _ROWS)
        x = np.asarray(X[block], dtype=np.float64)
        low[block] = high[block] = score.values(theta, x)
        for start in range(n_starts):
            spread = 0.0 if start == 0 else 1.0
            c = spread * rng.uniform(-radius, radius, (len(x), len(raw)))
            e = spread * rng.uniform(-1.0, 1.0, x.shape) * reach
            high[block] = np.maximum(high[block], _climb(1.0, score, theta, x, raw, radius, reach, c, e, n_steps))
            low[block] = np.minimum(low[block], -_climb(-1.0, score, theta, x, raw, radius, reach, c, e, n_steps))
    return low, high


def _climb(sign, score, theta, x, raw, radius, reach, c, e, n_steps):
    """The largest value of sign * score on the way from the given start."""
    at = x + c @ raw + e
    best = sign * score.values(theta, at)
    for t in range(n_steps):
        step = 2.0 * (1.0 - t / n_steps)  # the first step reaches every corner from anywhere in the box
        slope = sign * score.input_gradient(theta, at)
        c = np.clip(c + step * radius * np.sign(slope @ raw.T), -radius, radius)
        e = np.clip(e + step * reach * np.sign(slope), -reach, reach)
        at = x + c @ raw + e
        best = np.maximum(best, sign * score.values(theta, at))
    return best
