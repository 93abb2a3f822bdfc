"""Optimal transport between two queries of any sizes: costs, a bound, and the cheapest plan.

The cost of pairing two items is their squared distance, and all items of a query have the same mass. Mass is counted in whole
units, so that flows are exact: an item of one query has as many units as the other query has items, divided by the greatest
common divisor of the two sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skfairrank._kernels._jit import njit

__all__ = [
    "cheapest_transport",
    "fill_cost",
    "lower_bound",
    "pairwise_distances",
    "pairwise_nanoseconds",
    "room_for",
    "transposed_blocks",
]


class Room(NamedTuple):
    """The arrays that the transport between two queries writes to. They are made once, for the largest queries."""

    cost: np.ndarray
    flow: np.ndarray
    u: np.ndarray
    v: np.ndarray
    reals: np.ndarray
    ints: np.ndarray


@njit
def room_for(n, m):
    """Room for the transport between queries of at most n and at most m items."""
    largest = max(n, m)
    return Room(
        np.empty((n, m)),
        np.empty((n, m), np.int64),
        np.empty(n),
        np.empty(m),
        np.empty((2, largest)),
        np.empty((6, largest), np.int64),
    )


@njit
def transposed_blocks(Z, offsets, out):
    """Fill the flat `out` with each query's rows, feature by feature, so that loops over its items read numbers side by side."""
    d = Z.shape[1]
    for q in range(len(offsets) - 1):
        lo, m = offsets[q], offsets[q + 1] - offsets[q]
        for k in range(d):
            for j in range(m):
                out[d * lo + k * m + j] = Z[lo + j, k]


@njit
def fill_cost(Z, lo, n, blocks, start, m, cost):
    """Fill cost[:n, :m] with the squared distances between the rows Z[lo : lo + n] and a query's transposed block.

    Four features are treated at a time, which saves most of the traffic to `cost`. Sums are not reordered otherwise, so equal
    rows have equal costs to the bit, wherever they stand.
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
def lower_bound(n, m, room):
    """Fill in potentials with u_i + v_j <= cost_ij, and return the lower bound of d_Q that they give: mean u + mean v.

    v_j is the minimum of column j. u_i is the minimum of what is left in row i. This bound alone ends most searches.
    """
    cost, u, v = room.cost, room.u, room.v
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
def cheapest_transport(n, m, limit, room):
    """Cost of the cheapest transport; infinity as soon as it is known to be above `limit`. `room.flow` receives the plan,
    in units.

    The method is that of successive shortest paths in reduced costs; for n = m it is the Hungarian method. It begins with the
    potentials that `lower_bound` left in `room`, and raises them on the way.
    """
    cost, flow, u, v = room.cost, room.flow, room.u, room.v
    shortest, row_distance, ints = room.reals[0], room.reals[1], room.ints
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
                    # among equals a column with room comes first, because it ends the search
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


def pairwise_nanoseconds(n_rows, n_rows_other, n_features):
    """About how long `pairwise_distances` takes on one thread: costs, and a plan, for each pair of items."""
    return float(n_rows) * n_rows_other * (20.0 + n_features / 2.0)


@njit
def pairwise_distances(first, last, Z, offsets, blocks, offsets_other, wanted, out):
    """Fill out[q, j], where wanted[q, j], with d_Q between query q, of rows of Z, and query j, of transposed blocks."""
    size, size_other = 0, 0
    for q in range(first, last):
        for j in range(len(offsets_other) - 1):
            if wanted[q, j]:
                size = max(size, offsets[q + 1] - offsets[q])
                size_other = max(size_other, offsets_other[j + 1] - offsets_other[j])
    room = room_for(size, size_other)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        for j in range(len(offsets_other) - 1):
            if wanted[q, j]:
                start, m = offsets_other[j], offsets_other[j + 1] - offsets_other[j]
                fill_cost(Z, lo, n, blocks, Z.shape[1] * start, m, room.cost)
                lower_bound(n, m, room)
                out[q, j] = cheapest_transport(n, m, np.inf, room)
