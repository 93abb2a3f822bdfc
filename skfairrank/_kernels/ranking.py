"""Sums over the ranks of a query's rows and over pairs of rows, and LambdaMART's gradients.

Orders hold positions among all rows, query by query in descending order, as `skfairrank._gains.descending_order` gives them.
"""

from __future__ import annotations

import math

import numpy as np

from skfairrank._kernels import njit
from skfairrank._kernels.sampling import widest

SMALL = 256  # up to this size counting is faster than sorting


@njit
def descending_order(first, last, s, offsets, order):
    """Fill in the order of queries of up to SMALL rows, ties in given order, by counting the rows that come before each."""
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        row = s[lo : lo + n]  # indices that count from 0 let the comparisons be vectorised
        for i in range(n if n <= SMALL else 0):
            k, before = row[i], 0
            for j in range(n):
                before += row[j] > k
            for j in range(i):
                before += row[j] == k
            order[lo + before] = lo + i


@njit(inner=True)
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
def tie_averaged_utility(first, last, s, order, offsets, gain, continuation, discount, out):
    """Fill out[q] with the worth of a query's list by descending scores, averaged over all orders of rows with tied scores.

    The work is quadratic in the number of rows that tie.
    """
    most = widest(first, last, offsets)
    passing, found = np.empty(most + 1), np.empty(most + 1)
    passing[0] = 1.0
    for q in range(first, last):
        lo, n, j = offsets[q], offsets[q + 1] - offsets[q], 0
        total, reach = 0.0, 1.0
        while j < n:
            end = j
            while end < n and s[order[lo + end]] == s[order[lo + j]]:
                row = order[lo + end]
                _join_tie(end - j, gain[row], continuation[row], passing, found)
                end += 1
            for k in range(end - j):
                total += reach * found[k] * discount[j + k]
            reach *= passing[end - j]
            j = end
        out[q] = total


@njit(inner=True)
def _count_up_to(tree, i):
    """How many of the numbers 1 to i a binary indexed tree has counted."""
    total = 0
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@njit(inner=True)
def _count_one(tree, n, i):
    """Count i, one of the numbers 1 to n."""
    while i <= n:
        tree[i] += 1
        i += i & -i


@njit
def inversions(first, last, order, other, offsets, out):
    """Fill out[q] with the number of pairs of rows that two orders order differently.

    A binary indexed tree counts them in time n log n.
    """
    most = widest(first, last, offsets)
    tree, place, rank = np.zeros(most + 1, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        for j in range(n):
            place[other[lo + j] - lo] = j
        for j in range(n):
            rank[j] = place[order[lo + j] - lo]
        tree[: n + 1] = 0
        count = 0
        for a in range(n - 1, -1, -1):  # how many of the later positions have a smaller rank
            count += _count_up_to(tree, rank[a])
            _count_one(tree, n, rank[a] + 1)
        out[q] = count


@njit
def mean_hinge_over_pairs(first, last, ratio, merit, by_ratio, by_merit, offsets, out):
    """Fill out[q] with the mean of max(0, a_i - a_j) over the pairs with M_i >= M_j > 0, or with 0 without pairs.

    a is the ratio. The time is n log n. Let the ratios stand in descending order, a_1 >= a_2 >= ... Then the sum over pairs is
    the sum over r of (a_r - a_r+1) times the number of pairs with i among the first r and j among the others. These numbers are
    exact and no difference is negative, so nothing cancels.
    """
    most = widest(first, last, offsets)
    # Three things: levels of merit, 1 for the largest; how many rows have more merit than a level; and, in a binary indexed
    # tree by level, how many rows are among the first r.
    level, above = np.empty(most, np.int64), np.empty(most + 1, np.int64)
    tree = np.empty(most + 1, np.int64)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        n_relevant, n_levels = 0, 0
        while n_relevant < n and merit[by_merit[lo + n_relevant]] > 0:
            row = by_merit[lo + n_relevant]
            if n_relevant == 0 or merit[row] != merit[by_merit[lo + n_relevant - 1]]:
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
            row = by_ratio[lo + r]
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


@njit
def lambdarank(first, last, h, order, offsets, gain, discount, n_top, gradient, hessian):
    """Fill in, for each row, the ascent direction and the curvature of the lists' utility, from pairs of rows of unlike gain.

    A pair (i, j), where i is the better row, pulls both rows by D / (1 + exp(h_i - h_j)). One of the two must be among the
    first `n_top`. Here D = |gain_i - gain_j| |discount_r(i) - discount_r(j)| / (0.01 + |h_i - h_j|), and r are the ranks by
    descending score. Where all scores of a query are equal, D is not divided. Finally all pulls of a query are multiplied by
    log2(1 + S) / S, where S is their sum.

    Parameters
    ----------
    first, last : int64
        Queries first to last - 1 are treated.
    h, gain : ndarray of float64, shape (n_rows,)
    offsets : ndarray of int64, shape (n_queries + 1,)
    discount : ndarray of float64, shape (>= largest query size,)
    n_top : int64
    gradient, hessian : ndarray of float64, shape (n_rows,)
        Filled in.
    """
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        gradient[lo:hi] = 0.0
        hessian[lo:hi] = 0.0
        differs, total = h[order[lo]] != h[order[hi - 1]], 0.0
        for a in range(min(hi - lo - 1, n_top)):
            for b in range(a + 1, hi - lo):
                better, worse = order[lo + a], order[lo + b]
                if gain[better] == gain[worse]:
                    continue
                if gain[better] < gain[worse]:
                    better, worse = worse, better
                apart = h[better] - h[worse]
                weight = (gain[better] - gain[worse]) * abs(discount[a] - discount[b])
                if differs:
                    weight /= 0.01 + abs(apart)
                chance = 1.0 / (1.0 + math.exp(apart)) if apart < 700.0 else 0.0
                gradient[better] += weight * chance
                gradient[worse] -= weight * chance
                hessian[better] += weight * chance * (1.0 - chance)
                hessian[worse] += weight * chance * (1.0 - chance)
                total += 2.0 * weight * chance
        if total > 0.0:
            factor = np.log2(1.0 + total) / total
            for i in range(lo, hi):
                gradient[i] *= factor
                hessian[i] *= factor


def lambdarank_work(offsets: np.ndarray, n_top: int) -> float:
    """Rough time of `lambdarank`, in nanoseconds."""
    sizes = np.diff(offsets).astype(np.float64)
    return 12.0 * float((sizes * np.minimum(sizes, n_top)).sum())
