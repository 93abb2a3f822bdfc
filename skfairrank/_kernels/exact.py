"""Exact expectations under Plackett-Luce by summing over subsets: C is the set of items still to be ranked.

P(C) is the probability that C is what remains, Z_C the sum of e_i = exp h_i over C, and V(C) the utility still to come. Sets
are bit masks; the work is 2^n n per query instead of n!.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.policy import WIDE, _score_range


@njit
def _log_sums(h, lo, n, high, sums):
    """sums[C] = log of the sum over C of exp(h - high)."""
    sums[0] = -np.inf
    for i in range(n):
        bit, x = 1 << i, h[lo + i] - high
        for C in range(bit):
            rest = sums[C]
            sums[C + bit] = x if C == 0 else max(rest, x) + np.log1p(np.exp(-abs(rest - x)))


@njit
def _sums(weight, n, sums):
    sums[0] = 0.0
    for i in range(n):
        bit = 1 << i
        for C in range(bit):
            sums[C + bit] = sums[C] + weight[i]


@njit
def _prepare(h, lo, n, weight, sums, size):
    """Fill weights, set sums and set sizes of one query; True where scores are so far apart that sums are logarithms."""
    low, high = _score_range(h, lo, lo + n)
    wide = high - low > WIDE
    for i in range(n):
        weight[i] = h[lo + i] - high if wide else np.exp(h[lo + i] - high)
        bit = 1 << i
        for C in range(bit):
            size[C + bit] = size[C] + 1
    if wide:
        _log_sums(h, lo, n, high, sums)
    else:
        _sums(weight, n, sums)
    return wide


@njit
def rank_probabilities(first, last, h, offsets, out):
    """Fill out[row, j] with the probability that the row is at position j (0-based); out must be zero."""
    widest = 0
    for q in range(first, last):
        widest = max(widest, offsets[q + 1] - offsets[q])
    reach, sums, size = np.empty(1 << widest), np.empty(1 << widest), np.zeros(1 << widest, np.int64)
    weight = np.empty(widest)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        wide = _prepare(h, lo, n, weight, sums, size)
        full = (1 << n) - 1
        reach[: full + 1] = 0.0
        reach[full] = 1.0
        for C in range(full, 0, -1):
            p, position = reach[C], n - size[C]
            scale = p / sums[C]
            for i in range(n):
                if C >> i & 1:
                    share = p * np.exp(weight[i] - sums[C]) if wide else scale * weight[i]
                    out[lo + i, position] += share
                    reach[C ^ (1 << i)] += share


@njit
def expected_discounts(first, last, h, offsets, discount, out):
    """Fill out[row] with the expected discount of its rank."""
    widest = 0
    for q in range(first, last):
        widest = max(widest, offsets[q + 1] - offsets[q])
    reach, sums, size = np.empty(1 << widest), np.empty(1 << widest), np.zeros(1 << widest, np.int64)
    weight = np.empty(widest)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        wide = _prepare(h, lo, n, weight, sums, size)
        full = (1 << n) - 1
        reach[: full + 1] = 0.0
        reach[full] = 1.0
        out[lo : lo + n] = 0.0
        for C in range(full, 0, -1):
            p, d = reach[C], discount[n - size[C]]
            scale = p / sums[C]
            for i in range(n):
                if C >> i & 1:
                    share = p * np.exp(weight[i] - sums[C]) if wide else scale * weight[i]
                    out[lo + i] += share * d
                    reach[C ^ (1 << i)] += share


@njit
def exact_gradient(first, last, h, offsets, gain, discount, gradient, utility):
    """Expected utility of each query and its gradient in the scores.

    V(C) = sum_{i in C} e_i/Z_C (gain_i discount_{n-|C|} + V(C without i)) and
    dV/dh_i = sum_C P(C) e_i/Z_C (gain_i discount_{n-|C|} + V(C without i) - V(C)).
    """
    widest = 0
    for q in range(first, last):
        widest = max(widest, offsets[q + 1] - offsets[q])
    reach, sums, size = np.empty(1 << widest), np.empty(1 << widest), np.zeros(1 << widest, np.int64)
    value, weight = np.empty(1 << widest), np.empty(widest)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        gradient[lo : lo + n] = 0.0
        flat, total = True, 0.0
        for i in range(n):
            flat = flat and gain[lo + i] == gain[lo]
            total += gain[lo + i] * discount[i]
        if flat:
            utility[q] = total
            continue
        wide = _prepare(h, lo, n, weight, sums, size)
        full = (1 << n) - 1
        value[0] = 0.0
        for C in range(1, full + 1):
            d, v = discount[n - size[C]], 0.0
            for i in range(n):
                if C >> i & 1:
                    e = np.exp(weight[i] - sums[C]) if wide else weight[i]
                    v += e * (gain[lo + i] * d + value[C ^ (1 << i)])
            value[C] = v if wide else v / sums[C]
        reach[: full + 1] = 0.0
        reach[full] = 1.0
        for C in range(full, 0, -1):
            p, d, v = reach[C], discount[n - size[C]], value[C]
            scale = p / sums[C]
            for i in range(n):
                if C >> i & 1:
                    share = p * np.exp(weight[i] - sums[C]) if wide else scale * weight[i]
                    rest = C ^ (1 << i)
                    gradient[lo + i] += share * (gain[lo + i] * d + value[rest] - v)
                    reach[rest] += share
        utility[q] = value[full]
