"""What an attack on a batch of queries has found: the better candidate of each query, the means, and the gradient."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.ascent import LAMBDA, MOST_SPENT, N_STARTS, RHO

__all__ = [
    "ASKS",
    "COST",
    "DISTANCE",
    "FIRST_PATH",
    "LARGEST",
    "LARGEST_ASSIGNMENT",
    "OPEN",
    "SHARE",
    "STATE",
    "mean_distance",
    "settle",
]

# The rows of the array `by_query`, (6, B), in which an attack's kernels keep what belongs to a query.
FIRST_PATH, SHARE, COST, LARGEST, DISTANCE, STATE = range(6)
# Of the last row: pairing every item with itself is the cheapest plan; it may not be; that depends on a gap yet to be learned.
_SETTLED, OPEN, ASKS = 0.0, 1.0, 2.0

# Items of the largest query whose d_Q is found by assignment, which takes memory like the square of their number and time like
# its cube. For longer queries the identity pairing, which the regulariser uses anyway, gives an upper bound.
LARGEST_ASSIGNMENT = 500


@njit(counts=False)
def settle(offsets, queries, weight, gaps, settings, paths, starts, e, raw, by_query, gradient):
    """Keep, per query, the better of the two attacks; sum up what the step needs.

    Item i of a query follows the query's path i modulo the number of starts. A query keeps a share of its free move: nothing
    where the attack in the subspace alone is better, else all of it, or in all queries the same share if the batch would spend
    more than the most that it may on the average.

    Parameters
    ----------
    offsets : (B + 1,), queries : (B,), weight : (B,)
        Of the batch.
    gaps : (n_queries,)
        What `smallest_gaps` has learned.
    settings, paths, starts, e, raw
        As of `climb`, which has filled them. The last two rows of `paths` are scratch space.
    by_query : (6, B)
        Holds FIRST_PATH. Filled are SHARE; COST, the mean ||z(e_i)||^2; LARGEST, the largest ||z(e_i)||; DISTANCE, for now the
        cost; and STATE.
    gradient : (d,)
        Filled with the gradient of the mean regularizer in w, the moves being held.

    Returns
    -------
    regularizer, distance : float
        Means over queries of weight times 1/2 ||h(q) - h(q')||^2, and of weight times cost.
    n_open : int
        How many queries have the state OPEN or ASKS.
    """
    B, P, S = len(queries), paths.shape[1], int(settings[N_STARTS])
    rho, total = settings[RHO], 0.0
    for b in range(B):
        n, first = offsets[b + 1] - offsets[b], int(by_query[FIRST_PATH, b])
        n_paths = S if 0 < S < n else n
        squares, squares_inside, spent, most = 0.0, 0.0, 0.0, 0.0
        for j in range(n_paths):
            p, times = first + j, n // n_paths + (j < n % n_paths)
            squares += times * paths[1, p] * paths[1, p]
            squares_inside += times * paths[0, p] * paths[0, p]
            spent += times * paths[2, p]
            if paths[2, p] > most:
                most = paths[2, p]
        spent /= n
        by_query[SHARE, b], by_query[COST, b], by_query[LARGEST, b] = 0.0, 0.0, 0.0
        if 0.5 * rho * squares - settings[LAMBDA] * spent >= 0.5 * rho * squares_inside:
            total += weight[b] * spent / B
            by_query[SHARE, b], by_query[COST, b], by_query[LARGEST, b] = 1.0, spent, np.sqrt(most)
    affordable = np.sqrt(settings[MOST_SPENT] / total) if total > settings[MOST_SPENT] else 1.0
    for p in range(P):
        paths[3, p], paths[4, p] = 0.0, 0.0
    regularizer, distance, n_open = 0.0, 0.0, 0
    for b in range(B):
        n, first = offsets[b + 1] - offsets[b], int(by_query[FIRST_PATH, b])
        n_paths = S if 0 < S < n else n
        share = by_query[SHARE, b] * affordable
        cost, largest = by_query[COST, b] * affordable * affordable, by_query[LARGEST, b] * affordable
        squares = 0.0
        for j in range(n_paths):
            p, times = first + j, n // n_paths + (j < n % n_paths)
            change = paths[1, p] if share == 1.0 else paths[0, p] + share * (paths[1, p] - paths[0, p])
            squares += times * change * change
            paths[3, p] += weight[b] * times * change
            paths[4, p] += weight[b] * times * share * change
        regularizer += weight[b] * 0.5 * squares
        distance += weight[b] * cost
        by_query[SHARE, b], by_query[COST, b], by_query[LARGEST, b] = share, cost, largest
        by_query[DISTANCE, b], by_query[STATE, b] = cost, _SETTLED
        gap = gaps[queries[b]]
        if 1 < n <= LARGEST_ASSIGNMENT and cost > 0.0 and abs(gap) < 2.0 * largest:
            n_open += 1
            by_query[STATE, b] = ASKS if gap <= 0.0 else OPEN
    for k in range(len(gradient)):
        gradient[k] = 0.0
    for p in range(P):
        for k in range(len(gradient)):
            gradient[k] += paths[4, p] / B * e[p, k]
    for r in range(len(raw)):
        along = 0.0
        for p in range(P):
            along += paths[3, p] / B * starts[p, r]
        for k in range(len(gradient)):
            gradient[k] += along * raw[r, k]
    return regularizer / B, distance / B, n_open


@njit(counts=False)
def mean_distance(weight, by_query):
    """The mean of weight times DISTANCE, summed as `settle` sums it: fits repeat to the bit."""
    total = 0.0
    for b in range(len(weight)):
        total += weight[b] * by_query[DISTANCE, b]
    return total / len(weight)
