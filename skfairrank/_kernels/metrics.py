"""Sums over pairs of rows of a query."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit


@njit
def inversions(rank, offsets, out):
    """Fill out[q] with the number of pairs a < b of positions in query q with rank[a] > rank[b].

    `rank` holds a permutation of 0 to n - 1 for each query. Binary indexed tree, n log n.
    """
    widest = 0
    for q in range(len(out)):
        widest = max(widest, offsets[q + 1] - offsets[q])
    tree = np.zeros(widest + 1, np.int64)
    for q in range(len(out)):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        tree[: n + 1] = 0
        count = 0
        for a in range(hi - 1, lo - 1, -1):  # of the later positions, how many have a smaller rank
            i = rank[a]
            while i > 0:
                count += tree[i]
                i -= i & -i
            i = rank[a] + 1
            while i <= n:
                tree[i] += 1
                i += i & -i
        out[q] = count


@njit
def mean_hinge_over_pairs(exposure, merit, offsets, out):
    """Fill out[q] with the mean of max(0, v_i / M_i - v_j / M_j) over the pairs with M_i >= M_j > 0; nan if none."""
    for q in range(len(out)):
        lo, hi = offsets[q], offsets[q + 1]
        total, count = 0.0, 0
        for i in range(lo, hi):
            if merit[i] > 0:
                for j in range(lo, hi):
                    if merit[i] >= merit[j] and merit[j] > 0:
                        count += 1
                        total += max(0.0, exposure[i] / merit[i] - exposure[j] / merit[j])
        out[q] = total / count
