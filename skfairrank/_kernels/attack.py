"""What an attack on a batch of queries has found: each query's better candidate, their means, and the gradient."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.ascent import CHANGE, INSIDE, LAMBDA, MOST_SPENT, N_STARTS, PATH_COST, RHO

__all__ = [
    "ASKS",
    "DISTANCE",
    "FIRST_PATH",
    "LARGEST",
    "LARGEST_ASSIGNMENT",
    "OPEN",
    "SHARE",
    "STATE",
    "WEIGHT",
    "settle",
]

# The rows of the array `by_query`, (6, B), in which an attack's kernels keep what belongs to a query.
FIRST_PATH, SHARE, LARGEST, DISTANCE, STATE, WEIGHT = range(6)
# What the row STATE may say of pairing every item with itself: it is the cheapest plan; it may not be; or that depends on a gap
# that is yet to be learned.
_SETTLED, OPEN, ASKS = 0.0, 1.0, 2.0

# The number of items up to which d_Q is found by assignment. This takes memory like the square of the number and time like its
# cube. For longer queries the identity pairing, which the regulariser uses anyway, gives an upper bound.
LARGEST_ASSIGNMENT = 500


@njit(counts=False)
def settle(offsets, queries, weight, gaps, settings, by_path, c, e, raw, by_query, gradient):
    """Keep the better of two attacks for each query, and sum up what the training step needs.

    Item i of a query follows the query's path i modulo the number of starts. Each query keeps a share of its free move. The
    share is zero where the attack within the subspace alone is better. Elsewhere it is all of the move; but if the batch would
    then spend more on the average than it may at most, it is one smaller share, the same for all of these queries.

    Parameters
    ----------
    offsets : (B + 1,), queries : (B,), weight : (B,)
        Those of the batch.
    gaps : (n_queries,)
        What `smallest_gaps` has learned.
    settings : (8,)
        If N_STARTS is 0, each item has a path of its own.
    by_path : (6, P)
        As `climb` leaves it. The last two rows are scratch space.
    c : (P, K), e : (P, d)
        The paths' coefficients along the rows of `raw`, and their free moves.
    raw : (K, d)
    by_query : (6, B)
        Holds FIRST_PATH. The other rows are filled in: SHARE; LARGEST, the largest ||z(e_i)||; DISTANCE, the mean ||z(e_i)||^2,
        which is the cost of pairing every item with itself; STATE; and WEIGHT, the weight divided by B.
    gradient : (d,)
        Holds zeros. The gradient of the mean regularizer in w, with the moves held fixed, is added to it.

    Returns
    -------
    regularizer, distance : float
        Means over queries of weight times 1/2 ||h(q) - h(q')||^2, and of weight times cost.
    n_open, n_asking : int
        How many queries are not settled, and how many of these ask for their gap.
    """
    B, rho, lambda_, n_starts = len(queries), settings[RHO], settings[LAMBDA], int(settings[N_STARTS])
    # For each path, the weight of all items that follow it, and of those whose query keeps its free move.
    followers, keepers = 4, 5
    for p in range(len(c)):
        by_path[followers, p] = 0.0
        by_path[keepers, p] = 0.0
    total = 0.0
    for b in range(B):
        n, first = offsets[b + 1] - offsets[b], int(by_query[FIRST_PATH, b])
        end = first + (n_starts if 0 < n_starts < n else n)
        times, more = n // (end - first), first + n % (end - first)
        gain, spent, most = 0.0, 0.0, 0.0
        for p in range(first, end):
            inside, change, cost, items = (
                by_path[INSIDE, p],
                by_path[CHANGE, p],
                by_path[PATH_COST, p],
                times + (p < more),
            )
            gain += items * (change * change - inside * inside)
            spent += items * cost
            if cost > most:
                most = cost
        spent /= n
        is_kept = 0.5 * rho * gain - lambda_ * spent >= 0.0
        by_query[SHARE, b] = is_kept
        by_query[LARGEST, b] = is_kept * np.sqrt(most)
        by_query[DISTANCE, b] = is_kept * spent
        total += is_kept * weight[b] * spent / B
        for p in range(first, end):
            items = weight[b] * (times + (p < more))
            by_path[followers, p] += items
            by_path[keepers, p] += is_kept * items
    affordable = 1.0
    if total > settings[MOST_SPENT]:
        affordable = np.sqrt(settings[MOST_SPENT] / total)
    distance, n_open, n_asking = 0.0, 0, 0
    for b in range(B):
        n, gap, largest = offsets[b + 1] - offsets[b], gaps[queries[b]], affordable * by_query[LARGEST, b]
        cost = affordable * affordable * by_query[DISTANCE, b]
        distance += weight[b] / B * cost
        may_trade = 1 < n and n <= LARGEST_ASSIGNMENT and abs(gap) < 2.0 * largest
        asks = may_trade and gap <= 0.0
        n_open += may_trade
        n_asking += asks
        by_query[SHARE, b] *= affordable
        by_query[LARGEST, b] = largest
        by_query[DISTANCE, b] = cost
        by_query[STATE, b] = may_trade + asks
        by_query[WEIGHT, b] = weight[b] / B
    regularizer = 0.0
    for p in range(len(c)):
        inside, free = by_path[INSIDE, p], affordable * (by_path[CHANGE, p] - by_path[INSIDE, p])
        every, keeping = by_path[followers, p] / B, by_path[keepers, p] / B
        regularizer += 0.5 * (every * inside * inside + keeping * free * (2.0 * inside + free))
        by_path[followers, p] = every * inside + keeping * free
        pull = affordable * keeping * (inside + free)
        for k in range(len(gradient)):
            gradient[k] += pull * e[p, k]
    for r in range(len(raw)):
        along = 0.0
        for p in range(len(c)):
            along += by_path[followers, p] * c[p, r]
        for k in range(len(gradient)):
            gradient[k] += along * raw[r, k]
    return regularizer, distance, n_open, n_asking
