"""What kernels ask of a query, or of a range of them, in flat arrays."""

from __future__ import annotations

from skfairrank._kernels._jit import njit

__all__ = ["WIDE", "all_have_one_utility", "score_range", "widest"]

# Scores of a query that lie further apart than this are called WIDE apart, because their weights underflow. exp(-WIDE) itself
# is a normal number with room below it, so products of such weights with gains and reciprocals keep all their digits.
WIDE = 600.0


@njit(counts=False, inner=True)
def widest(first, last, offsets):
    """Number of items of the largest of the queries first to last - 1."""
    most = 0
    for q in range(first, last):
        most = max(most, offsets[q + 1] - offsets[q])
    return most


@njit(counts=False, inner=True)
def score_range(h, lo, hi):
    low, high = h[lo], h[lo]
    for i in range(lo + 1, hi):
        low, high = min(low, h[i]), max(high, h[i])
    return low, high


@njit(counts=False, inner=True)
def all_have_one_utility(lo, n, gain, continuation, discount):
    """Whether all rankings of a query are worth the same, because its items are alike; and what the given ranking is worth.

    Items are alike where they have the same gain and let the same share of users stay. `continuation` may have length 0: then all
    stays. Where no item has any gain, it does not matter who stays.
    """
    same, total, reach = True, 0.0, 1.0
    for i in range(n):
        same = same and gain[lo + i] == gain[lo]
        total += reach * gain[lo + i] * discount[i]
        if len(continuation):
            reach *= continuation[lo + i]
    if len(continuation) and gain[lo] != 0.0:
        for i in range(n):
            same = same and continuation[lo + i] == continuation[lo]
    return same, total
