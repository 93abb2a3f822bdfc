"""How many of a protected group must stand among the first ranks for a ranking to pass the test of Zehlike et al. (2017)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import bdtr
from scipy.stats import binom

__all__ = ["corrected_alpha", "failure_probability", "minima"]

_ROUNDING = 1.0 + 1e-12  # levels that differ by less are the same: a distribution function is not computed more exactly


def minima(n: int, p: float, alpha: float) -> np.ndarray:
    """The fewest protected items among the first 1, 2, ..., n ranks, shape (n,) (the paper's Table 2).

    A prefix of k ranks with j protected items passes if F(j; k, p) > alpha, F being the binomial distribution function
    (Definition 3.1); the entry for k is the smallest such j. It never falls with k.
    """
    if alpha <= 0:
        return np.zeros(n, np.int64)
    return binom.ppf(min(alpha * _ROUNDING, 1.0), np.arange(1, n + 1), p).astype(np.int64)


def failure_probability(least: np.ndarray, p: float) -> float:
    """The chance that a fair ranking fails the test somewhere, when each rank is protected with chance p, independently.

    The paper's Algorithm 1 counts by blocks of ranks; this is the same sum, rank by rank: of each number of protected items so
    far the chance of the rankings that have passed.

    Parameters
    ----------
    least : ndarray of int, shape (n,)
        The fewest protected items among the first 1, ..., n ranks; not falling.
    p : float
    """
    most = int(least[-1])  # who has so many cannot fail any more
    passed = np.zeros(most + 1)
    passed[0] = 1.0
    for needed in least:
        protected = p * passed
        passed *= 1.0 - p
        passed[1:] += protected[:-1]
        passed[-1] += protected[-1]
        passed[:needed] = 0.0
    return max(0.0, 1.0 - float(passed.sum()))


@lru_cache(maxsize=1024)
def corrected_alpha(n: int, p: float, alpha: float) -> float:
    """The level of each single test with which a fair ranking of n ranks fails with a chance of at most `alpha` (section 4.2).

    `alpha` itself where that suffices. Else the chance is a step function of the level, with steps at values of the binomial
    distribution function; this is the highest of them that keeps it, or 0 where none does. (The paper halves an interval, and
    the authors' program may end at a level that is slightly too high.)
    """
    least = minima(n, p, alpha)
    if failure_probability(least, p) <= alpha:
        return alpha
    below = np.arange(int(least[-1]))
    distribution = bdtr(below, np.arange(1, n + 1)[:, None], p)
    distribution[below >= np.arange(1, n + 1)[:, None]] = 1.0
    levels = np.unique(distribution[distribution <= alpha * _ROUNDING])
    low, high = -1, len(levels)  # levels[low] keeps it, levels[high] does not
    while high - low > 1:
        middle = (low + high) // 2
        least = (distribution <= levels[middle] * _ROUNDING).sum(axis=1)
        if failure_probability(least, p) <= alpha:
            low = middle
        else:
            high = middle
    return float(levels[low]) if low >= 0 else 0.0
