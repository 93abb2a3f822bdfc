"""Optimal transport between two queries of equal size: an assignment problem.

The dense shortest augmenting path method of Crouse (2016), which scipy's `linear_sum_assignment` implements too; here it is
compiled into the loops that need many thousands of small ones.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import REASSOCIATE, njit
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


@njit(fastmath=REASSOCIATE)
def _squared_distance_up_to(x, y, most):
    """||x - y||^2, or some part of it that exceeds `most`."""
    total, k, d = 0.0, 0, len(x)
    while k < d and total <= most:
        stop = min(k + 16, d)
        part = 0.0
        for i in range(k, stop):
            part += (x[i] - y[i]) * (x[i] - y[i])
        total += part
        k = stop
    return total


@njit
def smallest_gaps(X, rows, offsets, queries, basis, gaps):
    """For each query q of a batch whose gaps[q] < 0: fill in the smallest ||P(x_i - x_j)|| that is not zero up to rounding.

    Infinity where all items of the query are equal up to sensitive directions.
    """
    d = X.shape[1]
    origin = np.zeros(d)
    for b in range(len(queries)):
        if gaps[queries[b]] >= 0.0:
            continue
        lo, n = offsets[b], offsets[b + 1] - offsets[b]
        fair, zero = np.empty((n, d)), np.empty(n)
        least = np.inf
        for i in range(n):
            scale = 0.0
            for k in range(d):
                scale = max(scale, abs(np.float64(X[rows[lo + i], k])))
            zero[i] = (1e-13 * scale) ** 2 * d
            _fair_difference(X[rows[lo + i]], origin, basis, fair[i])
            for j in range(i):
                squared = _squared_distance_up_to(fair[i], fair[j], least)
                if squared < least and squared > max(zero[i], zero[j]):
                    least = squared
        gaps[queries[b]] = np.sqrt(least)


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
        if identity_cost[b] == 0.0 or n == 1 or gaps[queries[b]] >= 2.0 * largest[b]:
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
