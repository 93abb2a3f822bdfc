"""Exact expectations under Plackett-Luce by summing over subsets: C is the set of items still to be ranked.

P(C) is the probability that C is what remains, Z_C the sum of e_i = exp h_i over C, and V(C) the utility still to come. Sets
are bit masks; the work is 2^n n per query instead of n!. Queries of one size run side by side in lanes, so that the inner
loop is vectorised; no sum crosses lanes, so a query's result does not depend on its neighbours.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.policy import WIDE, _score_range
from skfairrank._kernels.sorting import stable_order

MOST_LANES = 64
LANE_ROOM = 1 << 16  # sets times lanes; three arrays of this many doubles stay in the second-level cache


@njit
def _kind(h, offsets, q):
    """Size of a query, and whether its scores are so far apart that weights and set sums are kept as logarithms."""
    low, high = _score_range(h, offsets[q], offsets[q + 1])
    return 2 * (offsets[q + 1] - offsets[q]) + (high - low > WIDE)


@njit
def _order_by_kind(h, first, last, offsets):
    """Queries first to last - 1, those of one kind side by side."""
    kinds = np.empty(last - first)
    for q in range(first, last):
        kinds[q - first] = _kind(h, offsets, q)
    order = np.empty(last - first, np.int64)
    stable_order(kinds, order, last - first)
    for a in range(len(order)):
        order[a] += first
    return order


@njit
def _run_length(order, at, h, offsets):
    """How many queries from order[at] on are of its kind and fit side by side."""
    kind = _kind(h, offsets, order[at])
    most = max(1, min(MOST_LANES, LANE_ROOM >> (kind // 2)))
    length = 1
    while length < most and at + length < len(order) and _kind(h, offsets, order[at + length]) == kind:
        length += 1
    return length


@njit
def _set_tables(n, size, lowest):
    """Sizes of all sets, and the number of each set's lowest item."""
    for i in range(n):
        bit = 1 << i
        for C in range(bit):
            size[C + bit] = size[C] + 1
            lowest[C + bit] = lowest[C] if C else i


@njit
def _load(queries, h, offsets, n, weight, sums):
    """Weights and set sums of a run of queries; True if both are logarithms."""
    L, wide = len(queries), _kind(h, offsets, queries[0]) % 2 == 1
    for l in range(L):
        lo = offsets[queries[l]]
        _, high = _score_range(h, lo, lo + n)
        for i in range(n):
            weight[i, l] = h[lo + i] - high if wide else np.exp(h[lo + i] - high)
    sums[0, :L] = -np.inf if wide else 0.0
    for i in range(n):
        bit = 1 << i
        for C in range(bit):
            if wide:
                for l in range(L):
                    rest, x = sums[C, l], weight[i, l]
                    sums[C + bit, l] = x if C == 0 else max(rest, x) + np.log1p(np.exp(-abs(rest - x)))
            else:
                for l in range(L):
                    sums[C + bit, l] = sums[C, l] + weight[i, l]
    return wide


@njit
def _spread(C, lowest, wide, weight, sums, reach, share, out):
    """Pass P(C) on to the sets with one item less; out[i] += the probability that item i comes next."""
    L = share.shape[0]
    for l in range(L):
        share[l] = reach[C, l] if wide else reach[C, l] / sums[C, l]
    rest = C
    while rest:
        i = lowest[rest]
        rest &= rest - 1
        D = C ^ (1 << i)
        if wide:
            for l in range(L):
                p = share[l] * np.exp(weight[i, l] - sums[C, l])
                out[i, l] += p
                reach[D, l] += p
        else:
            for l in range(L):
                p = share[l] * weight[i, l]
                out[i, l] += p
                reach[D, l] += p


@njit
def _position_probabilities(queries, h, offsets):
    """Probability of item i at position j in each query of a run, shape (positions, items, queries)."""
    L, n = len(queries), offsets[queries[0] + 1] - offsets[queries[0]]
    size, lowest = np.zeros(1 << n, np.int64), np.zeros(1 << n, np.int64)
    _set_tables(n, size, lowest)
    weight, sums, reach = np.empty((n, L)), np.empty((1 << n, L)), np.zeros((1 << n, L))
    probability, share = np.zeros((n, n, L)), np.empty(L)
    wide = _load(queries, h, offsets, n, weight, sums)
    full = (1 << n) - 1
    reach[full] = 1.0
    for C in range(full, 0, -1):
        _spread(C, lowest, wide, weight, sums, reach, share, probability[n - size[C]])
    return probability


@njit
def rank_probabilities(first, last, h, offsets, out):
    """Fill out[row, j] with the probability that the row is at position j (0-based); out must be zero."""
    order, at = _order_by_kind(h, first, last, offsets), 0
    while at < len(order):
        queries = order[at : at + _run_length(order, at, h, offsets)]
        at += len(queries)
        probability = _position_probabilities(queries, h, offsets)
        for l in range(len(queries)):
            lo = offsets[queries[l]]
            for i in range(len(probability)):
                for j in range(len(probability)):
                    out[lo + i, j] = probability[j, i, l]


@njit
def expected_discounts(first, last, h, offsets, discount, out):
    """Fill out[row] with the expected discount of its rank."""
    order, at = _order_by_kind(h, first, last, offsets), 0
    while at < len(order):
        queries = order[at : at + _run_length(order, at, h, offsets)]
        at += len(queries)
        probability = _position_probabilities(queries, h, offsets)
        for l in range(len(queries)):
            lo = offsets[queries[l]]
            for i in range(len(probability)):
                total = 0.0
                for j in range(len(probability)):
                    total += discount[j] * probability[j, i, l]
                out[lo + i] = total


@njit
def _utilities_to_come(full, n, size, lowest, wide, weight, sums, gain, discount, value, total):
    """V(C) = sum_{i in C} e_i/Z_C (gain_i discount_{n-|C|} + V(C without i)) for all C, smaller sets first."""
    L = total.shape[0]
    value[0] = 0.0
    for C in range(1, full + 1):
        d = discount[n - size[C]]
        total[:] = 0.0
        rest = C
        while rest:
            i = lowest[rest]
            rest &= rest - 1
            D = C ^ (1 << i)
            if wide:
                for l in range(L):
                    total[l] += np.exp(weight[i, l] - sums[C, l]) * (gain[i, l] * d + value[D, l])
            else:
                for l in range(L):
                    total[l] += weight[i, l] * (gain[i, l] * d + value[D, l])
        for l in range(L):
            value[C, l] = total[l] if wide else total[l] / sums[C, l]


@njit
def exact_gradient(first, last, h, offsets, gain, discount, gradient, utility):
    """Expected utility of each query and its gradient in the scores.

    dV/dh_i = sum_C P(C) e_i/Z_C (gain_i discount_{n-|C|} + V(C without i) - V(C)), with V from `_utilities_to_come`.
    """
    order, at = _order_by_kind(h, first, last, offsets), 0
    kept = 0
    for a in range(len(order)):  # where there is nothing to gain the gradient is zero exactly, not up to rounding
        q = order[a]
        flat, total = True, 0.0
        for i in range(offsets[q], offsets[q + 1]):
            gradient[i] = 0.0
            flat = flat and gain[i] == gain[offsets[q]]
            total += gain[i] * discount[i - offsets[q]]
        utility[q] = total
        if not flat:
            order[kept] = q
            kept += 1
    order = order[:kept]
    while at < len(order):
        L = _run_length(order, at, h, offsets)
        queries = order[at : at + L]
        at += L
        n = offsets[queries[0] + 1] - offsets[queries[0]]
        size, lowest = np.zeros(1 << n, np.int64), np.zeros(1 << n, np.int64)
        _set_tables(n, size, lowest)
        weight, sums, reach = np.empty((n, L)), np.empty((1 << n, L)), np.zeros((1 << n, L))
        value, gains, slope, share = np.empty((1 << n, L)), np.empty((n, L)), np.zeros((n, L)), np.empty(L)
        wide = _load(queries, h, offsets, n, weight, sums)
        for l in range(L):
            for i in range(n):
                gains[i, l] = gain[offsets[queries[l]] + i]
        full = (1 << n) - 1
        _utilities_to_come(full, n, size, lowest, wide, weight, sums, gains, discount, value, share)
        reach[full] = 1.0
        for C in range(full, 0, -1):
            d = discount[n - size[C]]
            for l in range(L):
                share[l] = reach[C, l] if wide else reach[C, l] / sums[C, l]
            rest = C
            while rest:
                i = lowest[rest]
                rest &= rest - 1
                D = C ^ (1 << i)
                if wide:
                    for l in range(L):
                        p = share[l] * np.exp(weight[i, l] - sums[C, l])
                        slope[i, l] += p * (gains[i, l] * d + value[D, l] - value[C, l])
                        reach[D, l] += p
                else:
                    for l in range(L):
                        p = share[l] * weight[i, l]
                        slope[i, l] += p * (gains[i, l] * d + value[D, l] - value[C, l])
                        reach[D, l] += p
        for l in range(L):
            utility[queries[l]] = value[full, l]
            for i in range(n):
                gradient[offsets[queries[l]] + i] = slope[i, l]
