"""Exact expectations under Plackett-Luce by summing over subsets: C is the set of items still to be ranked, a bit mask.

Z_C is the sum of e_i = exp h_i over C. V(C) is the utility still to come, for the users who get that far. The work is 2^n n for
a query of n items, instead of n!.
"""

from __future__ import annotations

import math

import numpy as np

from skfairrank._kernels import REASSOCIATE, njit
from skfairrank._kernels.sampling import WIDE, all_have_one_utility, close_gaps, score_range, widest

_LOW = 4  # so many bits of a set are the index of an innermost loop


def subset_work(sizes) -> float:
    """Rough time of one pass over all subsets of queries of these sizes, in nanoseconds; `exact_gradient` takes two."""
    return 0.5 * float(np.ldexp(sizes, sizes).sum())


@njit(inner=True)
def _load(h, lo, n, weight, size, share):
    """Fill in e_i relative to the largest, and of all sets their size and 1 / Z_C.

    Where scores are WIDE apart, gaps between them are closed until no weight underflows. What is lost is below 1e-16.
    """
    low, high = score_range(h, lo, lo + n)
    if high - low <= WIDE:
        for i in range(n):
            weight[i] = h[lo + i] - high
    else:
        close_gaps(h, lo, n, WIDE / n, weight)
    size[0], share[0] = 0, 0.0
    for i in range(n):
        weight[i] = math.exp(weight[i])
        for C in range(1 << i):
            size[C + (1 << i)], share[C + (1 << i)] = size[C] + 1, share[C] + weight[i]
    for C in range(1, 1 << n):
        share[C] = 1.0 / share[C]


@njit(inner=True)
def _sum_over_subsets(n, passing, multiple, x):
    """Add to x[C] multiple[C] times the sum over i in C of passing_i x[C without i], smaller sets first."""
    low = min(n, _LOW)
    sums = np.zeros(1 << low)
    for block in range(0, 1 << n, 1 << low):
        for i in range(low, n):
            if block >> i & 1:
                other, factor = block - (1 << i), passing[i]
                for rest in range(1 << low):
                    sums[rest] += factor * x[other + rest]
        for rest in range(1 << low):
            total = sums[rest]
            for i in range(low):
                if rest >> i & 1:
                    total += passing[i] * x[block + rest - (1 << i)]
            x[block + rest] += multiple[block + rest] * total
            sums[rest] = 0.0


@njit(inner=True)
def _chances(n, passing, share):
    """R(C) / Z_C of all sets, where R(C) is the probability that C remains times what is passed on by all items before.

    Sets are visited by what has been ranked, which is everything else: in the reverse order.
    """
    x = np.zeros(1 << n)
    x[0] = share[-1]
    _sum_over_subsets(n, passing, share[::-1], x)
    return x[::-1]


@njit
def rank_probabilities(first, last, h, offsets, out):
    """Fill out[row, j] with the probability that the row is at position j (0-based); columns beyond its query's size stay."""
    most = widest(first, last, offsets)
    weight, all_sizes, all_shares = np.empty(most), np.empty(1 << most, np.int64), np.empty(1 << most)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        size, share = all_sizes[: 1 << n], all_shares[: 1 << n]
        _load(h, lo, n, weight, size, share)
        chance = _chances(n, weight, share)
        for i in range(n):
            out[lo + i, :n] = 0.0
            for C in range(1 << n):
                if C >> i & 1:
                    out[lo + i, n - size[C]] += weight[i] * chance[C]


@njit
def expected_discounts(first, last, h, offsets, discount, out):
    """Fill out[row] with the expected discount of its rank."""
    probability = np.zeros((offsets[last] - offsets[first], widest(first, last, offsets)))
    rank_probabilities(first, last, h[offsets[first] :], offsets - offsets[first], probability)
    for i in range(len(probability)):
        out[offsets[first] + i] = 0.0
        for j in range(probability.shape[1]):
            out[offsets[first] + i] += probability[i, j] * discount[j]


@njit(fastmath=REASSOCIATE, inner=True)
def _slope(i, n, weight, gain, continuation, rewards, chance, value):
    """sum over the sets C that hold i of R(C) e_i/Z_C (gain_i discount + continuation_i V(C without i) - V(C))."""
    total, bit = 0.0, 1 << i
    for start in range(bit, 1 << n, 2 * bit):
        for C in range(start, start + bit):
            total += chance[C] * (gain * rewards[C] + continuation * value[C - bit] - value[C])
    return weight * total


@njit
def exact_gradient(first, last, h, offsets, gain, continuation, discount, gradient, utility):
    """Expected utility of each query and its gradient in the scores; `continuation` is by row, or has length 0.

    With d = discount_{n-|C|} and R(C) the probability that C remains, times the continuation of all items before,

        V(C) = sum_i e_i/Z_C (gain_i d + continuation_i V(C without i)),
        dV/dh_i = sum_C R(C) e_i/Z_C (gain_i d + continuation_i V(C without i) - V(C)).
    """
    most = widest(first, last, offsets)
    weight, passing, going_on = np.empty(most), np.empty(most), np.ones(most)
    all_sizes, tables = np.empty(1 << most, np.int64), np.empty((3, 1 << most))
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        same, utility[q] = all_have_one_utility(lo, n, gain, continuation, discount)
        gradient[lo : lo + n] = 0.0
        if same:  # the gradient is zero exactly, not up to rounding
            continue
        size, share, rewards, value = all_sizes[: 1 << n], tables[0, : 1 << n], tables[1, : 1 << n], tables[2, : 1 << n]
        _load(h, lo, n, weight, size, share)
        value[0] = 0.0
        for i in range(n):
            if len(continuation):
                going_on[i] = continuation[lo + i]
            passing[i] = weight[i] * going_on[i]
            for C in range(1 << i):
                value[C + (1 << i)] = value[C] + weight[i] * gain[lo + i]
        for C in range(1 << n):
            rewards[C] = discount[min(n - size[C], n - 1)]
            value[C] *= rewards[C] * share[C]
        _sum_over_subsets(n, passing, share, value)
        chance = _chances(n, passing, share)
        utility[q] = value[-1]
        for i in range(n):
            gradient[lo + i] = _slope(i, n, weight[i], gain[lo + i], going_on[i], rewards, chance, value)
