"""What kernels ask of a query, or of a range of them, in flat arrays."""

from __future__ import annotations

from skfairrank._kernels._jit import njit

__all__ = ["WIDE", "is_worth_the_same", "score_range", "widest"]

# Scores of a query that lie further apart than this are WIDE: weights underflow. exp(-WIDE) itself is a normal number with room
# below it, so products of such weights with gains and reciprocals keep all their digits.
WIDE = 600.0


@njit(counts=False)
def widest(first, last, offsets):
    """Number of items of the largest of the queries first to last - 1."""
    most = 0
    for q in range(first, last):
        most = max(most, offsets[q + 1] - offsets[q])
    return most


@njit(counts=False)
def score_range(h, lo, hi):
    low, high = h[lo], h[lo]
    for i in range(lo + 1, hi):
        low, high = min(low, h[i]), max(high, h[i])
    return low, high


@njit(counts=False)
def is_worth_the_same(lo, n, gain, discount):
    """Whether all rankings of a query are worth the same, since its gains are equal; and what the given one is worth."""
    equal, total = True, 0.0
    for i in range(n):
        equal = equal and gain[lo + i] == gain[lo]
        total += gain[lo + i] * discount[i]
    return equal, total
