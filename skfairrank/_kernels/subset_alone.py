"""Sums over the subsets of one query's items, by logarithms. They are for scores so far apart (WIDE) that weights underflow."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.sorting import close_gaps

__all__ = ["chances_by_logarithms", "gradient_by_logarithms"]


@njit(inner=True)
def _scores_and_log_sums(h, lo, n):
    """Scores with gaps closed, and log Z_C of all sets."""
    s, sums = np.empty(n), np.empty(1 << n)
    close_gaps(h, lo, n, s)
    sums[0] = -np.inf
    for i in range(n):
        x, bit = s[i], 1 << i
        sums[bit] = x
        for C in range(1, bit):
            sums[C + bit] = max(sums[C], x) + np.log1p(np.exp(-abs(sums[C] - x)))
    return s, sums


@njit(inner=True)
def _size(C):
    size = 0
    while C:
        C &= C - 1
        size += 1
    return size


@njit(inner=True)
def chances_by_logarithms(h, lo, n, factor, apart, out):
    """Add the probabilities that item i is at position j, times factor[j], to out[i]; or, if `apart`, each to out[j n + i]."""
    s, sums = _scores_and_log_sums(h, lo, n)
    reach = np.zeros(1 << n)
    reach[-1] = 1.0
    for C in range((1 << n) - 1, 0, -1):
        j = n - _size(C)
        for i in range(n):
            if C >> i & 1:
                p = reach[C] * np.exp(s[i] - sums[C])
                out[j * n + i if apart else i] += factor[j] * p
                reach[C ^ (1 << i)] += p


@njit(inner=True)
def gradient_by_logarithms(h, lo, n, gain, continuation, discount, gradient):
    """Add the query's gradient to `gradient`, and return its expected utility; as `exact.exact_gradient`."""
    s, sums = _scores_and_log_sums(h, lo, n)
    staying, value, reach = np.ones(n), np.zeros(1 << n), np.zeros(1 << n)
    for i in range(n if len(continuation) else 0):
        staying[i] = continuation[lo + i]
    for C in range(1, 1 << n):
        d = discount[n - _size(C)]
        for i in range(n):
            if C >> i & 1:
                value[C] += np.exp(s[i] - sums[C]) * (gain[lo + i] * d + staying[i] * value[C ^ (1 << i)])
    reach[-1] = 1.0
    for C in range((1 << n) - 1, 0, -1):
        d = discount[n - _size(C)]
        for i in range(n):
            if C >> i & 1:
                p, D = reach[C] * np.exp(s[i] - sums[C]), C ^ (1 << i)
                gradient[lo + i] += p * (gain[lo + i] * d + staying[i] * value[D] - value[C])
                reach[D] += p * staying[i]
    return value[-1]
