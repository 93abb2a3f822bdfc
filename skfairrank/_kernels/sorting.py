"""Sorting within queries."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.ragged import widest

__all__ = ["SMALL", "close_gaps", "descending_order", "stable_order"]

SMALL = 256  # up to this size counting is faster than sorting (benchmarks)
GAP = 800.0  # exp(-GAP) is zero


@njit(inner=True)
def stable_order(key, order, n):
    """Fill `order` with the indices of ascending keys, ties in index order, by radix sort of the keys' bits, byte by byte."""
    a, b, from_a, from_b = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.int64)
    count = np.zeros((8, 256), np.int64)
    bits, top, byte = key.view(np.uint64), np.uint64(1) << np.uint64(63), np.uint64(255)
    for i in range(n):
        x = bits[i] if key[i] != 0 else np.uint64(0)  # -0.0 equals 0.0
        x = ~x if x & top else x | top  # now in the order of the numbers
        a[i], from_a[i] = x, i
        for p in range(8):
            count[p, (x >> np.uint64(8 * p)) & byte] += 1
    for p in range(8):
        total, shared = 0, False
        for c in range(256):
            shared |= count[p, c] == n
            total, count[p, c] = total + count[p, c], total
        if shared:  # all keys have this byte, so there is nothing to sort
            continue
        for i in range(n):
            c = (a[i] >> np.uint64(8 * p)) & byte
            at = count[p, c]
            count[p, c] = at + 1
            b[at], from_b[at] = a[i], from_a[i]
        a, b = b, a
        from_a, from_b = from_b, from_a
    for i in range(n):
        order[i] = from_a[i]


@njit
def descending_order(first, last, s, offsets, order, start):
    """Fill order[position - start] with positions, query by query in descending order of s, ties in given order."""
    most = widest(first, last, offsets)
    key, local = np.empty(most), np.empty(most, np.int64)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        if n <= SMALL:
            row = s[lo : lo + n]  # indices that count from 0 let the comparisons be vectorised
            for i in range(n):
                k, before = row[i], 0
                for j in range(n):
                    before += row[j] > k
                for j in range(i):
                    before += row[j] == k
                order[lo - start + before] = lo + i
        else:
            for i in range(n):
                key[i] = -s[lo + i]
            stable_order(key, local, n)
            for i in range(n):
                order[lo - start + i] = lo + local[i]


@njit(inner=True)
def close_gaps(h, lo, n, out):
    """Scores of the same policy as h[lo : lo + n]. The largest is 0, and none lies further than GAP below the one before it.

    Between scores that lie far apart, differences would be rounded away, and with them the noise and the shares of equal scores.
    Such queries are rare, so this is Shell's sort, which takes little time to compile.
    """
    row, order, step = h[lo : lo + n], np.empty(n, np.int64), n // 2
    for i in range(n):
        order[i] = i
    while step > 0:
        for i in range(step, n):
            moved, j = order[i], i
            while j >= step and row[order[j - step]] > row[moved]:
                order[j] = order[j - step]
                j -= step
            order[j] = moved
        step //= 2
    out[order[n - 1]] = 0.0
    for j in range(n - 2, -1, -1):
        out[order[j]] = out[order[j + 1]] - min(row[order[j + 1]] - row[order[j]], GAP)
