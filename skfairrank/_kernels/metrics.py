"""Sums over the ranks of a query's rows, and over pairs of rows."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.ragged import widest
from skfairrank._kernels.sorting import SMALL, descending_order

__all__ = ["ideal_sums", "inversions", "mean_hinge_over_pairs", "tie_averaged_utility", "tie_averages"]


@njit(inner=True)
def _descending(first, last, s, offsets):
    """Positions of the rows of queries first to last - 1, in each query in descending order of s; offsets[first] is the first."""
    order = np.empty(offsets[last] - offsets[first], np.int64)
    descending_order(first, last, s, offsets, order, offsets[first])
    return order


@njit
def tie_averages(first, last, s, offsets, discount, out):
    """Fill out[row] with the discount of its rank, averaged over all orders of rows with tied scores."""
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


@njit(counts=False, inner=True)
def _join_tie(m, gain, continuation, passing, found):
    """Let a row join m tied ones.

    passing[k] is a mean over all choices of k tied rows: that of the product of what they let stay. found[k] is a mean over all
    choices of one row and k others before it: that of its gain times the product of the others. With a new row, each is a mean of
    two means, one over the choices with the new row and one over those without.
    """
    found[m], passing[m + 1] = 0.0, 0.0
    for k in range(m, -1, -1):
        before = k * continuation * found[k - 1] if k > 0 else 0.0
        found[k] = ((m - k) * found[k] + before + gain * passing[k]) / (m + 1)
    for k in range(m + 1, 0, -1):
        passing[k] = ((m + 1 - k) * passing[k] + k * continuation * passing[k - 1]) / (m + 1)


@njit
def tie_averaged_utility(first, last, s, offsets, gain, continuation, discount, out):
    """Fill out[q] with the worth of a query's list by descending scores, averaged over all orders of rows with tied scores.

    The work is quadratic in the number of rows that tie.
    """
    order, start = _descending(first, last, s, offsets), offsets[first]
    most = widest(first, last, offsets)
    passing, found = np.empty(most + 1), np.empty(most + 1)
    passing[0] = 1.0
    for q in range(first, last):
        lo, n, j = offsets[q], offsets[q + 1] - offsets[q], 0
        total, reach = 0.0, 1.0
        while j < n:
            end = j
            while end < n and s[order[lo + end - start]] == s[order[lo + j - start]]:
                row = order[lo + end - start]
                _join_tie(end - j, gain[row], continuation[row], passing, found)
                end += 1
            for k in range(end - j):
                total += reach * found[k] * discount[j + k]
            reach *= passing[end - j]
            j = end
        out[q] = total


@njit
def ideal_sums(first, last, gain, offsets, discount, out):
    """Fill out[q] with the largest sum of gain times discount that an order of a query's rows can have."""
    top, is_first = np.empty(SMALL), np.empty(SMALL, np.bool_)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        row, total, value = gain[lo : lo + n], 0.0, 0.0  # from 0, so that comparisons are vectorised
        if n > SMALL:
            order = _descending(q, q + 1, gain, offsets)
            for j in range(n):
                total += gain[order[j]] * discount[j]
        else:
            for i in range(n):
                is_first[i] = False
            for i in range(n):
                value, larger = row[i], 0
                for j in range(n):
                    larger += row[j] > value
                top[larger], is_first[larger] = value, True
            for j in range(n):  # the places after the first of several equal gains are empty
                if is_first[j]:
                    value = top[j]
                total += value * discount[j]
        out[q] = total


@njit(counts=False, inner=True)
def _count_up_to(tree, i):
    """How many of the numbers 1 to i a binary indexed tree has counted."""
    total = 0
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@njit(counts=False, inner=True)
def _count_one(tree, n, i):
    """Count i, one of the numbers 1 to n."""
    while i <= n:
        tree[i] += 1
        i += i & -i


@njit
def inversions(first, last, s1, s2, offsets, out):
    """Fill out[q] with the number of pairs of rows that two scores order differently, where ties stand in row order.

    A binary indexed tree counts them in time n log n.
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
        for a in range(n - 1, -1, -1):  # how many of the later positions have a smaller rank
            count += _count_up_to(tree, rank[a])
            _count_one(tree, n, rank[a] + 1)
        out[q] = count


@njit
def mean_hinge_over_pairs(first, last, ratio, merit, offsets, out):
    """Fill out[q] with the mean of max(0, a_i - a_j) over the pairs with M_i >= M_j > 0, or with 0 without pairs.

    a is the ratio. The time is n log n. Let the ratios stand in descending order, a_1 >= a_2 >= ... Then the sum over pairs is
    the sum over r of (a_r - a_r+1) times the number of pairs with i among the first r and j among the others. These numbers are
    exact and no difference is negative, so nothing cancels.
    """
    by_merit, by_ratio = _descending(first, last, merit, offsets), _descending(first, last, ratio, offsets)
    start, most = offsets[first], widest(first, last, offsets)
    # Three things: levels of merit, 1 for the largest; how many rows have more merit than a level; and, in a binary indexed
    # tree by level, how many rows are among the first r.
    level, above = np.empty(most, np.int64), np.empty(most + 1, np.int64)
    tree = np.empty(most + 1, np.int64)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        n_relevant, n_levels = 0, 0
        while n_relevant < n and merit[by_merit[lo - start + n_relevant]] > 0:
            row = by_merit[lo - start + n_relevant]
            if n_relevant == 0 or merit[row] != merit[by_merit[lo - start + n_relevant - 1]]:
                n_levels += 1
                above[n_levels] = n_relevant
            level[row - lo] = n_levels
            n_relevant += 1
        n_pairs = 0
        for k in range(1, n_levels + 1):
            end = above[k + 1] if k < n_levels else n_relevant
            n_pairs += (end - above[k]) * (n_relevant - above[k])
        tree[: n_levels + 1] = 0
        total, passed, between, previous = 0.0, 0, 0, 0.0
        for r in range(n):
            row = by_ratio[lo - start + r]
            if not merit[row] > 0:
                continue
            total += between * (previous - ratio[row])
            previous, k = ratio[row], level[row - lo]
            before = _count_up_to(tree, k - 1)
            # Until now the row was the j of pairs with passed rows that have at least as much merit. From now on it is the i of
            # pairs with the rows left that have no more.
            between += (n_relevant - above[k]) - (passed - before) - 1 - _count_up_to(tree, k)
            passed += 1
            _count_one(tree, n_levels, k)
        out[q] = total / max(n_pairs, 1)
