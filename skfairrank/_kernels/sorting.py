"""Sorting within queries."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit

SMALL = 256  # up to this size counting is faster than sorting (benchmarks)


@njit
def stable_order(key, order, n):
    """Fill `order` with the indices of ascending keys, ties in index order (merge sort; compiles faster than NumPy's)."""
    buffer = np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for lo in range(0, n, 2 * width):
            middle, hi = min(lo + width, n), min(lo + 2 * width, n)
            i, j = lo, middle
            for k in range(lo, hi):
                if i < middle and (j >= hi or key[order[i]] <= key[order[j]]):
                    buffer[k] = order[i]
                    i += 1
                else:
                    buffer[k] = order[j]
                    j += 1
        for k in range(n):
            order[k] = buffer[k]
        width *= 2


@njit
def descending_order(first, last, s, offsets, order):
    """Fill `order` with positions, query by query in descending order of s, ties in given order."""
    widest = 0
    for q in range(first, last):
        widest = max(widest, offsets[q + 1] - offsets[q])
    key, local = np.empty(widest), np.empty(widest, np.int64)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        if n <= SMALL:
            for i in range(n):
                k, before = s[lo + i], 0
                for j in range(i):
                    before += s[lo + j] >= k
                for j in range(i + 1, n):
                    before += s[lo + j] > k
                order[lo + before] = lo + i
        else:
            for i in range(n):
                key[i] = -s[lo + i]
            stable_order(key, local, n)
            for i in range(n):
                order[lo + i] = lo + local[i]
