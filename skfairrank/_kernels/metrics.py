"""Sums over the ranks of a query's rows, and over pairs of rows."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.ragged import widest
from skfairrank._kernels.sorting import descending_order

__all__ = ["ideal_sums", "inversions", "mean_hinge_over_pairs", "tie_averages"]


@njit
def _descending(first, last, s, offsets):
    """Positions of the rows of queries first to last - 1 in descending order of s; they begin at position offsets[first]."""
    order = np.empty(offsets[last] - offsets[first], np.int64)
    descending_order(first, last, s, offsets, order, offsets[first])
    return order


@njit
def tie_averages(first, last, s, offsets, discount, out):
    """Fill out[row] with the mean discount of its rank over the orders of rows with tied scores."""
    order, start = _descending(first, last, s, offsets), offsets[first]
    for q in range(first, last):
        lo, n, j = offsets[q], offsets[q + 1] - offsets[q], 0
        while j < n:
            end, total = j, 0.0
            while end < n and s[order[lo + end - start]] == s[order[lo + j - start]]:
                total += discount[end]
                end += 1
            for t in range(j, end):
                out[order[lo + t - start]] = total / (end - j)
            j = end


@njit
def ideal_sums(first, last, gain, offsets, discount, out):
    """Fill out[q] with the largest sum of gain times discount that an order of a query's rows can have."""
    order, start = _descending(first, last, gain, offsets), offsets[first]
    for q in range(first, last):
        lo, total = offsets[q], 0.0
        for j in range(offsets[q + 1] - lo):
            total += gain[order[lo + j - start]] * discount[j]
        out[q] = total


@njit
def inversions(first, last, s1, s2, offsets, out):
    """Fill out[q] with the number of pairs of rows that two scores order differently, ties in row order.

    Binary indexed tree, n log n.
    """
    order, other, start = _descending(first, last, s1, offsets), _descending(first, last, s2, offsets), offsets[first]
    most = widest(first, last, offsets)
    tree, place, rank = np.zeros(most + 1, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        for j in range(n):
            place[other[lo + j - start] - lo] = j
        for j in range(n):
            rank[j] = place[order[lo + j - start] - lo]
        tree[: n + 1] = 0
        count = 0
        for a in range(n - 1, -1, -1):  # of the later positions, how many have a smaller rank
            i = rank[a]
            while i > 0:
                count += tree[i]
                i -= i & -i
            i = rank[a] + 1
            while i <= n:
                tree[i] += 1
                i += i & -i
        out[q] = count


@njit
def mean_hinge_over_pairs(first, last, exposure, merit, offsets, out):
    """Fill out[q] with the mean of max(0, v_i / M_i - v_j / M_j) over the pairs with M_i >= M_j > 0; nan if none."""
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        total, count = 0.0, 0
        for i in range(lo, hi):
            if merit[i] > 0:
                for j in range(lo, hi):
                    if merit[i] >= merit[j] and merit[j] > 0:
                        count += 1
                        total += max(0.0, exposure[i] / merit[i] - exposure[j] / merit[j])
        out[q] = total / count
