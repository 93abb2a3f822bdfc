"""Exact expectations under Plackett-Luce by summing over subsets: C is the set of items still to be ranked.

Z_C is the sum of e_i = exp h_i over C. V(C) is the utility still to come, for the users who get that far. The work is 2^n n for
a query of n items, instead of n!. Queries of one size are treated eight at a time (`subset_lanes`). Queries with scores WIDE
apart are treated one by one (`subset_alone`).
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.ragged import WIDE, all_have_one_utility, score_range, widest
from skfairrank._kernels.sorting import stable_order
from skfairrank._kernels.subset_alone import chances_by_logarithms, gradient_by_logarithms
from skfairrank._kernels.subset_lanes import sum_chances, sum_slopes, sum_values
from skfairrank._kernels.vectors import LANES

__all__ = ["exact_gradient", "expected_discounts", "rank_probabilities", "subset_work"]


def subset_work(sizes) -> float:
    """Rough time of one pass over all subsets of queries of these sizes, in nanoseconds; `exact_gradient` takes two."""
    return 0.1 * float(np.ldexp(sizes, sizes).sum())


@njit(inner=True)
def _by_size(queries, h, offsets):
    """The given queries in order of size, with those whose scores are WIDE apart at the end; and how many come before these."""
    rank, order = np.empty(len(queries)), np.empty(len(queries), np.int64)
    n_near = 0
    for a in range(len(queries)):
        lo, hi = offsets[queries[a]], offsets[queries[a] + 1]
        low, high = score_range(h, lo, hi)
        near = high - low <= WIDE
        rank[a] = hi - lo if near else np.inf
        n_near += near
    stable_order(rank, order, len(queries))
    return queries[order], n_near


@njit(counts=False, inner=True)
def _end_of_group(queries, begin, end, offsets):
    """A group has up to eight queries of one size. Where the group that begins at `begin` ends."""
    n = offsets[queries[begin] + 1] - offsets[queries[begin]]
    stop = begin + 1
    while stop < min(begin + LANES, end) and offsets[queries[stop] + 1] - offsets[queries[stop]] == n:
        stop += 1
    return stop


@njit(counts=False, inner=True)
def _load_weights(queries, h, offsets, n, weight):
    """Fill in exp(h - max h) of a group's queries, a column each, and ones in the columns without a query."""
    for lane in range(LANES):
        if lane < len(queries):
            lo = offsets[queries[lane]]
            _, high = score_range(h, lo, lo + n)
            for i in range(n):
                weight[i, lane] = np.exp(h[lo + i] - high)
        else:
            for i in range(n):
                weight[i, lane] = 1.0


@njit(inner=True)
def _chances(first, last, h, offsets, factor, apart, out):
    """Fill out[row, j] with the probability that the row is at position j, times factor[j].

    If not `apart`, fill out[row, 0] with the sum over j.
    """
    queries, n_near = _by_size(np.arange(first, last), h, offsets)
    most = widest(first, last, offsets)
    weight, reach, found = np.empty((most, LANES)), np.empty((1 << most, LANES)), np.empty((most * most, LANES))
    begin = 0
    while begin < n_near:
        end = _end_of_group(queries, begin, n_near, offsets)
        n = offsets[queries[begin] + 1] - offsets[queries[begin]]
        n_found = n * n if apart else n
        found[:n_found] = 0.0
        _load_weights(queries[begin:end], h, offsets, n, weight)
        sum_chances(n, factor, weight, reach, apart, found)
        for lane in range(end - begin):
            for x in range(n_found):
                out[offsets[queries[begin + lane]] + x % n, x // n] = found[x, lane]
        begin = end
    alone = np.empty(most * most)
    for q in queries[n_near:]:
        n = offsets[q + 1] - offsets[q]
        n_found = n * n if apart else n
        alone[:n_found] = 0.0
        chances_by_logarithms(h, offsets[q], n, factor, apart, alone)
        for x in range(n_found):
            out[offsets[q] + x % n, x // n] = alone[x]


@njit
def rank_probabilities(first, last, h, offsets, out):
    """Fill out[row, j] with the probability that the row is at position j (0-based); columns beyond its query's size stay."""
    _chances(first, last, h, offsets, np.ones(out.shape[1]), True, out)


@njit
def expected_discounts(first, last, h, offsets, discount, out):
    """Fill out[row] with the expected discount of its rank."""
    _chances(first, last, h, offsets, discount, False, out.reshape(out.size, 1))


@njit(inner=True)
def _with_a_choice(first, last, offsets, gain, continuation, discount, gradient, utility):
    """The queries whose rankings are not all worth the same. The others are settled here: their gradient is zero exactly."""
    some, n_some = np.empty(last - first, np.int64), 0
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        same, utility[q] = all_have_one_utility(lo, n, gain, continuation, discount)
        for i in range(n):
            gradient[lo + i] = 0.0
        if not same:
            some[n_some] = q
            n_some += 1
    return some[:n_some]


@njit
def exact_gradient(first, last, h, offsets, gain, continuation, discount, gradient, utility):
    """Expected utility of each query and its gradient in the scores; `continuation` is by row, or has length 0.

    With d = discount_{n-|C|} and R(C) the probability that C remains, times the continuation of all items before,

        V(C) = sum_i e_i/Z_C (gain_i d + continuation_i V(C without i)),
        dV/dh_i = sum_C R(C) e_i/Z_C (gain_i d + continuation_i V(C without i) - V(C)).
    """
    queries, n_near = _by_size(
        _with_a_choice(first, last, offsets, gain, continuation, discount, gradient, utility), h, offsets
    )
    most = widest(first, last, offsets)
    tables = np.empty((5, most, LANES))
    weight, gains, heavy, stays, slope = tables[0], tables[1], tables[2], tables[3], tables[4]
    share, value = np.empty((1 << most, LANES)), np.empty((1 << most, LANES))
    begin = 0
    while begin < n_near:
        end = _end_of_group(queries, begin, n_near, offsets)
        n = offsets[queries[begin] + 1] - offsets[queries[begin]]
        _load_weights(queries[begin:end], h, offsets, n, weight)
        for i in range(n):
            for lane in range(LANES):
                row = offsets[queries[min(begin + lane, end - 1)]] + i
                gains[i, lane] = gain[row]
                stays[i, lane] = continuation[row] if len(continuation) else 1.0
                heavy[i, lane] = weight[i, lane] * gains[i, lane]
                slope[i, lane] = 0.0
        if len(continuation):
            sum_values(n, discount, weight, heavy, stays, share, value)
            sum_slopes(n, discount, weight, gains, stays, share, value, slope)
        else:
            sum_values(n, discount, weight, heavy, None, share, value)
            sum_slopes(n, discount, weight, gains, None, share, value, slope)
        for lane in range(end - begin):
            lo = offsets[queries[begin + lane]]
            utility[queries[begin + lane]] = value[(1 << n) - 1, lane]
            for i in range(n):
                gradient[lo + i] = slope[i, lane]
        begin = end
    for q in queries[n_near:]:
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        utility[q] = gradient_by_logarithms(h, lo, n, gain, continuation, discount, gradient)
