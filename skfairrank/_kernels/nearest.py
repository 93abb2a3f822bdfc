"""Distances between queries of any sizes, and the search for the nearest one.

The cost of pairing two items is their squared distance, and all items of a query have the same mass. Mass is counted in
whole units (an item of one query has as many as the other query has items, over their common divisor), so that flows
are exact.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.ragged import widest

__all__ = ["nearest", "pairwise_distances", "project_rows", "quantile_means", "transposed_blocks"]

# Sums of squares are right to some units in the last place; what is closer counts as equal.
SLACK = 1e-12


@njit
def project_rows(X, basis, out):
    """Fill out[i] with P x_i. Row by row: equal rows have equal projections to the bit, which BLAS does not promise."""
    n, d = X.shape
    for i in range(n):
        for k in range(d):
            out[i, k] = X[i, k]
        for r in range(basis.shape[0]):
            along = 0.0
            for k in range(d):
                along += basis[r, k] * X[i, k]
            for k in range(d):
                out[i, k] -= along * basis[r, k]


@njit
def transposed_blocks(Z, offsets, out):
    """Fill the flat `out` with each query's rows, feature by feature, so that loops over its items read densely."""
    d = Z.shape[1]
    for q in range(len(offsets) - 1):
        lo, m = offsets[q], offsets[q + 1] - offsets[q]
        for k in range(d):
            for j in range(m):
                out[d * lo + k * m + j] = Z[lo + j, k]


@njit
def quantile_means(first, last, blocks, offsets, n_bins, out):
    """Fill out[q, k * n_bins + b] with the mean of feature k's quantile function over the b-th of n_bins equal bins of
    mass.

    Divided by sqrt(n_bins), so that the squared distance between the rows of two queries is at most d_Q: in each
    feature every plan costs at least the one-dimensional transport cost, which is the integral of the squared
    difference of the quantile functions, and means over bins only lower that (Jensen). For two queries of n_bins items
    it is that cost itself.
    """
    d = out.shape[1] // n_bins
    scale = 1.0 / np.sqrt(n_bins)
    for q in range(first, last):
        lo, m = offsets[q], offsets[q + 1] - offsets[q]
        for k in range(d):
            values = np.sort(blocks[d * lo + k * m : d * lo + (k + 1) * m])
            at, left = 0, n_bins  # an item has n_bins units of mass, a bin takes m
            for b in range(n_bins):
                room, total = m, 0.0
                while room > 0:
                    step = min(room, left)
                    total += step * values[at]
                    room -= step
                    left -= step
                    if left == 0:
                        at, left = at + 1, n_bins
                out[q, k * n_bins + b] = total / m * scale


@njit
def _fill_cost(Z, lo, n, blocks, start, m, cost):
    """Fill cost[:n, :m] with the squared distances between the rows Z[lo : lo + n] and a query's transposed block.

    Four features at a time, which saves most of the traffic to `cost`. Sums are not reordered otherwise: equal rows
    have equal costs to the bit, wherever they stand.
    """
    d = Z.shape[1]
    for i in range(n):
        z, row = Z[lo + i], cost[i]
        row[:m] = 0.0
        k, at = 0, start
        while k + 4 <= d:
            z0, z1, z2, z3 = z[k], z[k + 1], z[k + 2], z[k + 3]
            x0, x1 = blocks[at : at + m], blocks[at + m : at + 2 * m]
            x2, x3 = blocks[at + 2 * m : at + 3 * m], blocks[at + 3 * m : at + 4 * m]
            for j in range(m):
                g0, g1, g2, g3 = z0 - x0[j], z1 - x1[j], z2 - x2[j], z3 - x3[j]
                row[j] += (g0 * g0 + g1 * g1) + (g2 * g2 + g3 * g3)
            k, at = k + 4, at + 4 * m
        while k < d:
            z0, x0 = z[k], blocks[at : at + m]
            for j in range(m):
                g0 = z0 - x0[j]
                row[j] += g0 * g0
            k, at = k + 1, at + m


@njit(fastmath={"nnan", "ninf", "nsz"})
def _reduce(cost, n, m, u, v):
    """Fill in potentials with u_i + v_j <= cost_ij; return the lower bound of d_Q that they give, mean u + mean v.

    v_j is the minimum of column j, u_i that of what is left in row i. This bound alone ends most searches.
    """
    for j in range(m):
        v[j] = cost[0, j]
    for i in range(1, n):
        for j in range(m):
            v[j] = min(v[j], cost[i, j])
    for i in range(n):
        least = cost[i, 0] - v[0]
        for j in range(1, m):
            least = min(least, cost[i, j] - v[j])
        u[i] = least
    return np.sum(u[:n]) / n + np.sum(v[:m]) / m


@njit
def _greatest_common_divisor(a, b):
    while b:
        a, b = b, a % b
    return a


@njit
def _transport(cost, n, m, limit, u, v, flow, reals, ints):
    """Cost of the cheapest transport; infinity as soon as it is known to be above `limit`. `flow` receives the plan, in
    units.

    Successive shortest paths in reduced costs (for n = m the Hungarian method), from the potentials u and v of
    `_reduce`, which are raised on the way. `reals` (2, .) and `ints` (6, .) are scratch space.
    """
    shortest, row_distance = reals[0], reals[1]
    supply, demand, path, row_from, reached, seen = ints[0], ints[1], ints[2], ints[3], ints[4], ints[5]
    g = _greatest_common_divisor(n, m)
    of_row, of_column = m // g, n // g
    mass = n * of_row
    bound = np.sum(u[:n]) * of_row + np.sum(v[:m]) * of_column
    most = limit * mass
    supply[:n] = of_row
    demand[:m] = of_column
    for i in range(n):
        for j in range(m):
            flow[i, j] = 0
            if supply[i] > 0 and demand[j] > 0 and cost[i, j] - v[j] <= u[i]:
                flow[i, j] = min(supply[i], demand[j])
                supply[i] -= flow[i, j]
                demand[j] -= flow[i, j]
    for start in range(n):
        while supply[start] > 0:
            shortest[:m] = np.inf
            seen[:m] = 0
            row_from[:n] = -1
            row_from[start], row_distance[start], reached[0] = m, 0.0, start
            n_reached, n_relaxed, sink, least = 1, 0, -1, 0.0
            while sink < 0:
                while n_relaxed < n_reached:
                    i = reached[n_relaxed]
                    n_relaxed += 1
                    offset = row_distance[i] - u[i]
                    for j in range(m):
                        if seen[j] == 0:
                            distance = offset + cost[i, j] - v[j]
                            if distance < shortest[j]:
                                shortest[j] = distance
                                path[j] = i
                pick, least = -1, np.inf
                for j in range(m):
                    # among equals a column with room first: it ends the search
                    if seen[j] == 0 and (shortest[j] < least or (shortest[j] == least and demand[j] > 0)):
                        pick, least = j, shortest[j]
                seen[pick] = 1
                if demand[pick] > 0:
                    sink = pick
                else:
                    for i in range(n):
                        if flow[i, pick] > 0 and row_from[i] < 0:
                            row_distance[i] = least
                            row_from[i] = pick
                            reached[n_reached] = i
                            n_reached += 1
            for r in range(n_reached):
                i = reached[r]
                u[i] += least - row_distance[i]
                bound += (least - row_distance[i]) * of_row
            for j in range(m):
                if seen[j] == 1:
                    v[j] -= least - shortest[j]
                    bound -= (least - shortest[j]) * of_column
            if bound > most:
                return np.inf
            step, i = min(supply[start], demand[sink]), path[sink]
            while i != start:
                step = min(step, flow[i, row_from[i]])
                i = path[row_from[i]]
            j, i = sink, path[sink]
            flow[i, j] += step
            while i != start:
                j = row_from[i]
                flow[i, j] -= step
                i = path[j]
                flow[i, j] += step
            supply[start] -= step
            demand[sink] -= step
    total = 0.0
    for i in range(n):
        for j in range(m):
            if flow[i, j] > 0:
                total += flow[i, j] * cost[i, j]
    return total / mass


@njit
def _same_rows(X, lo, Y, start, n, taken):
    """Whether n rows of X are n rows of Y in some order."""
    taken[:n] = 0
    for i in range(n):
        found = False
        for j in range(n):
            if taken[j] == 0:
                k = 0
                while k < X.shape[1] and X[lo + i, k] == Y[start + j, k]:
                    k += 1
                if k == X.shape[1]:
                    taken[j] = 1
                    found = True
                    break
        if not found:
            return False
    return True


@njit
def nearest(
    first, last, X, Z, offsets, X_other, blocks, offsets_other, bounds, blur, exclude_identical, best, distance, partner
):
    """For queries first to last - 1, fill in the nearest other query, its distance, and each row's partner in the plan.

    bounds[q] holds lower bounds of the distances and is used up; `blur` is the rounding error of a distance between two
    projected items. Of queries at the same distance, up to rounding, the first is taken. best[q] = -1 where every other
    query is identical.
    """
    size, size_other = widest(first, last, offsets), widest(0, len(offsets_other) - 1, offsets_other)
    scratch = max(size, size_other)
    cost, flow = np.empty((size, size_other)), np.empty((size, size_other), np.int64)
    u, v = np.empty(size), np.empty(size_other)
    reals, ints = np.empty((2, scratch)), np.empty((6, scratch), np.int64)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        bound, queue = bounds[q], np.empty(0, np.int64)
        chosen, at, least, most = -1, 0, np.inf, np.inf  # from least to most, distances are equal up to rounding
        while True:
            if chosen < 0:  # the most promising query, until there is a distance to beat
                j = np.argmin(bound)
                if bound[j] == np.inf:
                    break
            else:
                if at == 0:
                    left = np.flatnonzero(bound <= most)
                    queue = left[np.argsort(bound[left])]
                if at == len(queue) or bound[queue[at]] > most:
                    break
                j = queue[at]
                at += 1
            bound[j] = np.inf
            start, m = offsets_other[j], offsets_other[j + 1] - offsets_other[j]
            _fill_cost(Z, lo, n, blocks, Z.shape[1] * start, m, cost)
            if _reduce(cost, n, m, u, v) > most:
                continue
            found = _transport(cost, n, m, most, u, v, flow, reals, ints)
            if found > most:
                continue
            if exclude_identical and found == 0.0 and n == m and _same_rows(X, lo, X_other, start, n, ints[0]):
                continue
            better = chosen < 0 or found < least - (most - least)
            if found < least:
                least = found
                most = least + SLACK * least + (2.0 * np.sqrt(least) + blur) * blur
            if better or j < chosen:
                chosen, distance[q] = int(j), found
                for i in range(n):
                    heaviest = 0
                    for k in range(1, m):
                        if flow[i, k] > flow[i, heaviest]:
                            heaviest = k
                    partner[lo + i] = start + heaviest
        best[q] = chosen


@njit
def pairwise_distances(first, last, Z, offsets, blocks, offsets_other, out):
    """Fill out[q, j] with d_Q between query q, of rows of Z, and query j, of transposed blocks."""
    size, size_other = widest(first, last, offsets), widest(0, len(offsets_other) - 1, offsets_other)
    scratch = max(size, size_other)
    cost, flow = np.empty((size, size_other)), np.empty((size, size_other), np.int64)
    u, v, reals, ints = (
        np.empty(size),
        np.empty(size_other),
        np.empty((2, scratch)),
        np.empty((6, scratch), np.int64),
    )
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        for j in range(len(offsets_other) - 1):
            start, m = offsets_other[j], offsets_other[j + 1] - offsets_other[j]
            _fill_cost(Z, lo, n, blocks, Z.shape[1] * start, m, cost)
            _reduce(cost, n, m, u, v)
            out[q, j] = _transport(cost, n, m, np.inf, u, v, flow, reals, ints)
