"""Optimal transport between two queries of equal size: an assignment problem.

The dense shortest augmenting path method of Crouse (2016), which scipy's `linear_sum_assignment` implements too; here it is
compiled into the loops that need many thousands of small ones.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.linear import dot, dot_with_row

__all__ = ["assignment", "smallest_gaps", "transport_distances"]


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


@njit
def _fair_difference(x, y, basis, difference):
    """Fill `difference` with P(x - y)."""
    d = len(difference)
    for k in range(d):
        difference[k] = np.float64(x[k]) - np.float64(y[k])
    for r in range(basis.shape[0]):
        along = dot_with_row(basis, r, difference)
        for k in range(d):
            difference[k] -= along * basis[r, k]


@njit
def _fair_columns(X, rows, lo, n, basis, fair, along):
    """Fill fair[k, i] with feature k of P x_i, item beside item."""
    d = X.shape[1]
    for i in range(n):
        x = X[rows[lo + i]]
        for k in range(d):
            fair[k, i] = x[k]
    for r in range(basis.shape[0]):
        for i in range(n):
            along[i] = 0.0
        for k in range(d):
            for i in range(n):
                along[i] += basis[r, k] * fair[k, i]
        for k in range(d):
            for i in range(n):
                fair[k, i] -= basis[r, k] * along[i]


@njit
def smallest_gaps(X, rows, offsets, queries, basis, largest, gaps):
    """Learn, for each query q of a batch, as much of its smallest ||P(x_i - x_j)|| > 0 as `largest` asks for.

    Only whether that gap is at least twice the largest move counts. gaps[q] > 0 is the gap itself; gaps[q] < 0 says that it is at
    least -gaps[q]; 0 that nothing is known. Distances that are zero up to rounding do not count. Pairs of items are given up as
    soon as some of their features tell them far enough apart.
    """
    d, widest = X.shape[1], 0
    for b in range(len(queries)):
        if gaps[queries[b]] <= 0.0 and -gaps[queries[b]] < 2.0 * largest[b]:
            widest = max(widest, offsets[b + 1] - offsets[b])
    if widest == 0:
        return
    fair, total, zero = np.empty((d, widest)), np.empty(widest), np.empty(widest)
    for b in range(len(queries)):
        known = gaps[queries[b]]
        if known > 0.0 or -known >= 2.0 * largest[b]:
            continue
        lo, n = offsets[b], offsets[b + 1] - offsets[b]
        _fair_columns(X, rows, lo, n, basis, fair, total)
        for i in range(n):
            scale = 0.0
            for k in range(d):
                scale = max(scale, abs(np.float64(X[rows[lo + i], k])))
            zero[i] = (1e-13 * scale) ** 2 * d
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
                    if total[j] < least and total[j] > max(zero[i], zero[j]):
                        least, found = total[j], True
        gaps[queries[b]] = np.sqrt(least) if found else -reach


@njit
def transport_distances(
    X, rows, offsets, queries, gaps, basis, inside, e, path_of_row, largest, identity_cost, distance
):
    """Fill distance[b] with d_Q between query b of a batch and the query moved item by item by inside + e; return the mean.

    identity_cost[b] is the mean cost of pairing every item with itself, largest[b] the largest ||P e_i||. The identity is
    optimal if no two (different) items are closer than twice that; else if the diagonal holds every row's minimum; else the
    assignment problem is solved.
    """
    d = X.shape[1]
    for b in range(len(queries)):
        distance[b] = identity_cost[b]
        lo, hi = offsets[b], offsets[b + 1]
        n = hi - lo
        if identity_cost[b] == 0.0 or n == 1 or abs(gaps[queries[b]]) >= 2.0 * largest[b]:
            continue
        cost, difference, target = np.empty((n, n)), np.empty(d), np.empty(d)
        for j in range(n):
            for k in range(d):
                target[k] = X[rows[lo + j], k] + (inside[path_of_row[lo + j], k] + e[path_of_row[lo + j], k])
            for i in range(n):
                _fair_difference(target, X[rows[lo + i]], basis, difference)
                cost[j, i] = dot(difference, difference)
        identity = True
        for j in range(n):
            least = cost[j, :n].min()
            identity = identity and cost[j, j] <= least * (1.0 + 1e-12)
        if not identity:
            distance[b] = min(identity_cost[b], assignment(cost, n, np.empty(n, np.int64)) / n)
    return distance.mean()
