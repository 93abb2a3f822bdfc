"""Optimal transport between a query and the same query moved item by item: an assignment problem.

Most queries need no solver. Pairing every item with itself is the cheapest plan in two cases: if no two different items are
closer than twice the largest move, by the triangle inequality; and if the diagonal holds the least cost of every row. The
solver is the dense shortest augmenting path method of Crouse (2016), which scipy's `linear_sum_assignment` implements too. Here
it is compiled into the loop over queries, because there are many thousands of small ones.

Moves in directions that the fair metric ignores cost nothing and change no distance.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.attack import ASKS, DISTANCE, FIRST_PATH, LARGEST, OPEN, SHARE, STATE, WEIGHT

__all__ = ["assignment", "gap_room", "pair_work", "rounding", "smallest_gaps", "transport_distances", "transport_room"]


# The rounding error of a shrunk difference, relative to the largest entry before. A smaller number costs time, a larger could
# hide a gap.
_ROUNDING = 16 * 2.0**-52


def rounding(basis: np.ndarray, shrink: np.ndarray) -> float:
    """A distance ||z(x_i - x_j)|| is zero up to rounding if it is below this times the largest entry of x_i - x_j.

    A direction that the metric stretches (t < 0) stretches rounding errors too.
    """
    return _ROUNDING * float(np.sqrt(basis.shape[1])) * float(max(1.0, -np.min(shrink, initial=0.0)))


def pair_work(n_features: int, sizes) -> float:
    """Nanoseconds, roughly, of either kernel for queries of these sizes."""
    return 0.3 * n_features * float((sizes**2).sum())


def gap_room(n_features: int, widest: int) -> np.ndarray:
    """Scratch space of `smallest_gaps` for queries of up to `widest` items."""
    return np.empty((n_features + 1, widest))


def transport_room(n_features: int, widest: int) -> tuple[np.ndarray, np.ndarray]:
    """Scratch space of `transport_distances` for queries of up to `widest` items."""
    return np.empty((n_features + 4 + widest, 2 * widest)), np.empty((5, widest), np.int64)


@njit(counts=False, inner=True)
def _differences(X, rows, lo, n, reals):
    """Fill reals[k, i] with feature k of x_i - x_0. Only differences count, and an offset would cost digits.

    Returns the largest entry.
    """
    largest = 0.0
    for i in range(n):
        for k in range(X.shape[1]):
            move = np.float64(X[rows[lo + i], k]) - np.float64(X[rows[lo], k])
            reals[k, i] = move
            if abs(move) > largest:
                largest = abs(move)
    return largest


@njit(counts=False, inner=True)
def _shrink(n, basis, shrink, reals):
    """Replace the vectors in the first n columns of `reals` by what the metric leaves of them, z. Row d is scratch space."""
    d = basis.shape[1]
    for r in range(len(basis)):
        for i in range(n):
            reals[d, i] = 0.0
        for k in range(d):
            for i in range(n):
                reals[d, i] += basis[r, k] * reals[k, i]
        for k in range(d):
            lost = shrink[r] * basis[r, k]
            for i in range(n):
                reals[k, i] -= lost * reals[d, i]


@njit(counts=False)
def smallest_gaps(first, last, X, rows, offsets, queries, basis, shrink, rounding, gaps, by_query, reals):
    """Learn as much of the smallest gap as the moves ask for, of those queries first to last - 1 of a batch that ask.

    The gap is the smallest ||z(x_i - x_j)|| > 0, where distances that are zero up to `rounding` do not count. It only matters
    whether the gap is at least twice the largest move. If gaps[q] > 0, it is the gap itself. If gaps[q] < 0, the gap is at least
    -gaps[q]. If it is 0, nothing is known. A pair of items needs no more work as soon as some of its features tell the two far
    enough apart. With what was learned a query is settled, or stays open. `reals` is a `gap_room`.
    """
    d = X.shape[1]
    for b in range(first, last):
        if by_query[STATE, b] != ASKS:
            continue
        n, largest = offsets[b + 1] - offsets[b], by_query[LARGEST, b]
        zero = rounding * _differences(X, rows, offsets[b], n, reals)
        _shrink(n, basis, shrink, reals)
        gap, reach = 0.0, 4.0 * largest  # with room to spare, so that larger moves need not ask again
        least = reach * reach
        for i in range(1, n):
            for j in range(i):
                k, total = 0, 0.0
                while k < d and total < least:
                    apart = reals[k, i] - reals[k, j]
                    total += apart * apart
                    k += 1
                if zero * zero < total < least:
                    least = total
                    gap = np.sqrt(total)
        gaps[queries[b]] = gap
        by_query[STATE, b] = OPEN
        if gap == 0.0:
            gaps[queries[b]] = -reach
        if gap == 0.0 or gap >= 2.0 * largest:
            by_query[STATE, b] = 0.0


@njit(counts=False)
def assignment(cost, n, reals, ints):
    """Fill ints[0, :n] with the column of each row in the cheapest pairing of cost[:n, :n], and return the total cost.

    `reals`, of (3, n) or more, and `ints`, of (5, n) or more, are scratch space.
    """
    # Rows of the scratch space.
    u, v, shortest = 0, 1, 2
    column_of_row, row_of_column, path, seen_row, seen_column = 0, 1, 2, 3, 4
    for i in range(n):
        reals[u, i], reals[v, i] = 0.0, 0.0
        ints[column_of_row, i], ints[row_of_column, i] = -1, -1
    for start in range(n):
        for i in range(n):
            reals[shortest, i], ints[seen_row, i], ints[seen_column, i] = np.inf, 0, 0
        least, i, sink = 0.0, start, -1
        while sink < 0:
            ints[seen_row, i] = 1
            best, pick = np.inf, -1
            for j in range(n):
                if ints[seen_column, j] == 0:
                    reduced = least + cost[i, j] - reals[u, i] - reals[v, j]
                    if reduced < reals[shortest, j]:
                        ints[path, j] = i
                        reals[shortest, j] = reduced
                    # among equals a free column comes first, because it ends the search
                    so_far = reals[shortest, j]
                    if so_far < best or (so_far == best and ints[row_of_column, j] < 0):
                        best, pick = so_far, j
            least = best
            ints[seen_column, pick] = 1
            if ints[row_of_column, pick] < 0:
                sink = pick
            else:
                i = ints[row_of_column, pick]
        reals[u, start] += least
        for k in range(n):
            if ints[seen_row, k] and k != start:
                reals[u, k] += least - reals[shortest, ints[column_of_row, k]]
        for k in range(n):
            if ints[seen_column, k]:
                reals[v, k] -= least - reals[shortest, k]
        j = sink
        while True:
            i = ints[path, j]
            ints[row_of_column, j] = i
            following = ints[column_of_row, i]
            ints[column_of_row, i] = j
            j = following
            if i == start:
                break
    total = 0.0
    for i in range(n):
        total += cost[i, ints[column_of_row, i]]
    return total


@njit(counts=False)
def transport_distances(first, last, X, rows, offsets, basis, shrink, n_starts, e, by_query, reals, ints):
    """Replace DISTANCE, the cost of pairing every item with itself, by d_Q in those queries first to last - 1 that are open.

    Returns the sum of WEIGHT times DISTANCE over all queries first to last - 1.

    d_Q is taken between the query and its moved copy. Each item moves by SHARE times the e of its path; item i follows path i
    modulo `n_starts`, or a path of its own where `n_starts` is 0. The identity is the cheapest pairing if the diagonal holds
    every row's least cost up to rounding. Otherwise the assignment problem is solved. `reals` and `ints` are a
    `transport_room`.
    """
    d = X.shape[1]
    costs, total = reals[d + 4 :], 0.0
    for b in range(first, last):
        if by_query[STATE, b] != OPEN:
            total += by_query[WEIGHT, b] * by_query[DISTANCE, b]
            continue
        n, n_paths = offsets[b + 1] - offsets[b], n_starts
        if n_paths == 0:
            n_paths = n
        # The columns are the items, and behind them the moved items.
        _differences(X, rows, offsets[b], n, reals)
        for i in range(n):
            p = int(by_query[FIRST_PATH, b]) + i % n_paths
            for k in range(d):
                reals[k, n + i] = reals[k, i] + by_query[SHARE, b] * e[p, k]
        _shrink(2 * n, basis, shrink, reals)
        is_least = True
        for j in range(n):
            for i in range(n):
                costs[j, i] = 0.0
            for k in range(d):
                for i in range(n):
                    apart = reals[k, n + j] - reals[k, i]
                    costs[j, i] += apart * apart
            for i in range(n):
                if costs[j, j] > costs[j, i] * (1.0 + 1e-12):
                    is_least = False
        if not is_least:
            cheapest = assignment(costs, n, reals[d + 1 : d + 4], ints) / n
            if cheapest < by_query[DISTANCE, b]:
                by_query[DISTANCE, b] = cheapest
        total += by_query[WEIGHT, b] * by_query[DISTANCE, b]
    return total
