"""Optimal transport between two queries of equal size: an assignment problem.

The dense shortest augmenting path method of Crouse (2016), which scipy's `linear_sum_assignment` implements too; here it is
compiled into the loops that need many thousands of small ones.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.linear import project

__all__ = ["assignment", "smallest_gaps", "transport_distances"]


# Of a projected difference, beside the largest entry before projection. A smaller one costs time, a larger one could hide a gap.
ROUNDING = 16 * 2.0**-52

# Items of the largest query whose d_Q is found by assignment, which takes memory like the square of their number and time like
# its cube. For longer queries the identity pairing, which the regulariser uses anyway, gives an upper bound.
LARGEST_ASSIGNMENT = 500


@njit
def assignment(cost, n, column_of_row):
    """Fill column_of_row[:n] with the cheapest pairing of rows and columns of cost[:n, :n]; return its total cost."""
    u, v, shortest = np.zeros(n), np.zeros(n), np.empty(n)
    row_of_column, path = np.full(n, -1), np.empty(n, np.int64)
    seen_row, seen_column = np.empty(n, np.bool_), np.empty(n, np.bool_)
    column_of_row[:n] = -1
    for start in range(n):
        shortest[:] = np.inf
        seen_row[:] = False
        seen_column[:] = False
        least, i, sink = 0.0, start, -1
        while sink < 0:
            seen_row[i] = True
            best, pick = np.inf, -1
            for j in range(n):
                if not seen_column[j]:
                    reduced = least + cost[i, j] - u[i] - v[j]
                    if reduced < shortest[j]:
                        path[j] = i
                        shortest[j] = reduced
                    # a free column first among equals ends the search sooner
                    if shortest[j] < best or (shortest[j] == best and row_of_column[j] < 0):
                        best, pick = shortest[j], j
            least = best
            seen_column[pick] = True
            if row_of_column[pick] < 0:
                sink = pick
            else:
                i = row_of_column[pick]
        u[start] += least
        for k in range(n):
            if seen_row[k] and k != start:
                u[k] += least - shortest[column_of_row[k]]
        for k in range(n):
            if seen_column[k]:
                v[k] -= least - shortest[k]
        j = sink
        while True:
            i = path[j]
            row_of_column[j] = i
            j, column_of_row[i] = column_of_row[i], j
            if i == start:
                break
    total = 0.0
    for i in range(n):
        total += cost[i, column_of_row[i]]
    return total


@njit(counts=False)
def _fair_columns(X, rows, lo, n, basis, fair, along):
    """Fill fair[k, i] with feature k of P (x_i - x_0), item beside item: only differences count, and an offset costs digits.

    Returns the largest entry of any x_i - x_0.
    """
    d, first, largest = X.shape[1], X[rows[lo]], 0.0
    for i in range(n):
        x = X[rows[lo + i]]
        for k in range(d):
            fair[k, i] = np.float64(x[k]) - np.float64(first[k])
            largest = max(largest, abs(fair[k, i]))
    for r in range(basis.shape[0]):
        for i in range(n):
            along[i] = 0.0
        for k in range(d):
            for i in range(n):
                along[i] += basis[r, k] * fair[k, i]
        for k in range(d):
            for i in range(n):
                fair[k, i] -= basis[r, k] * along[i]
    return largest


@njit(counts=False)
def _asks_for_more(n, gap, largest):
    """Whether what is known of the gap of n items leaves open if it is at least twice the largest move, and that counts."""
    return n <= LARGEST_ASSIGNMENT and gap <= 0.0 and -gap < 2.0 * largest


@njit
def smallest_gaps(first, last, X, rows, offsets, queries, basis, largest, gaps):
    """Learn, for the queries first to last - 1 of a batch, as much of the smallest ||P(x_i - x_j)|| > 0 as `largest` asks for.

    Only whether that gap is at least twice the largest move counts. gaps[q] > 0 is the gap itself; gaps[q] < 0 says that it is at
    least -gaps[q]; 0 that nothing is known. Distances that are zero up to rounding do not count. Pairs of items are given up as
    soon as some of their features tell them far enough apart. Nothing is asked of queries of more than LARGEST_ASSIGNMENT items.
    """
    d, widest = X.shape[1], 0
    for b in range(first, last):
        n = offsets[b + 1] - offsets[b]
        if _asks_for_more(n, gaps[queries[b]], largest[b]):
            widest = max(widest, n)
    if widest == 0:
        return
    fair, total = np.empty((d, widest)), np.empty(widest)
    for b in range(first, last):
        lo, n = offsets[b], offsets[b + 1] - offsets[b]
        if not _asks_for_more(n, gaps[queries[b]], largest[b]):
            continue
        scale = _fair_columns(X, rows, lo, n, basis, fair, total)
        zero = (ROUNDING * scale) ** 2 * d
        reach = 4.0 * largest[b]  # with room, so that larger moves need not ask again
        least, found = reach * reach, False
        for i in range(1, n):
            total[:i] = 0.0
            k = 0
            while k < d:
                stop = min(k + 8, d)
                for f in range(k, stop):
                    for j in range(i):
                        total[j] += (fair[f, i] - fair[f, j]) * (fair[f, i] - fair[f, j])
                k = stop
                nearest = np.inf
                for j in range(i):
                    nearest = min(nearest, total[j])
                if nearest >= least:
                    break
            else:
                for j in range(i):
                    if total[j] < least and total[j] > zero:
                        least, found = total[j], True
        gaps[queries[b]] = np.sqrt(least) if found else -reach


@njit(counts=False)
def _moved_costs(fair, n, moves, cost):
    """Fill cost[j, i] with the squared distance between item j, moved by moves[j], and item i; features come first in `fair`."""
    for j in range(n):
        for i in range(n):
            cost[j, i] = 0.0
        for k in range(len(fair)):
            x = fair[k, j] + moves[j, k]
            for i in range(n):
                cost[j, i] += (x - fair[k, i]) * (x - fair[k, i])


@njit(counts=False)
def _diagonal_is_least(cost, n):
    for j in range(n):
        least = cost[j, 0]
        for i in range(1, n):
            least = min(least, cost[j, i])
        if cost[j, j] > least * (1.0 + 1e-12):
            return False
    return True


@njit(counts=False)
def _may_trade_places(n, gap, cost, largest):
    """Whether moved items may come nearer to others than to where they came from."""
    return 1 < n <= LARGEST_ASSIGNMENT and cost > 0.0 and abs(gap) < 2.0 * largest


@njit
def transport_distances(
    first, last, X, rows, offsets, queries, gaps, basis, e, path_of_row, share, largest, identity_cost, distance
):
    """Fill distance[b] with d_Q between query b of a batch and that query moved item by item by share[b] e, for b from first on.

    Moves within the sensitive subspace cost nothing and change no distance. identity_cost[b] is the mean cost of pairing every
    item with itself, largest[b] the largest ||P e_i||. The identity is optimal if no two (different) items are closer than twice
    that; else if the diagonal holds every row's minimum; else the assignment problem is solved. Queries of more than
    LARGEST_ASSIGNMENT items keep the cost of the identity, an upper bound.
    """
    d, widest = X.shape[1], 0
    for b in range(first, last):
        distance[b] = identity_cost[b]
        n = offsets[b + 1] - offsets[b]
        if _may_trade_places(n, gaps[queries[b]], identity_cost[b], largest[b]):
            widest = max(widest, n)
    if widest == 0:
        return
    fair, moves, cost = np.empty((d, widest)), np.empty((widest, d)), np.empty((widest, widest))
    along, column_of_row = np.empty(widest), np.empty(widest, np.int64)
    for b in range(first, last):
        lo, n = offsets[b], offsets[b + 1] - offsets[b]
        if not _may_trade_places(n, gaps[queries[b]], identity_cost[b], largest[b]):
            continue
        _fair_columns(X, rows, lo, n, basis, fair, along)
        for i in range(n):
            project(e[path_of_row[lo + i]], basis, moves[i])
            moves[i] *= share[b]
        _moved_costs(fair, n, moves, cost)
        if not _diagonal_is_least(cost, n):
            distance[b] = min(identity_cost[b], assignment(cost, n, column_of_row) / n)
