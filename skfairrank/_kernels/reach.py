"""Rows within ranges and on simplexes: the nearest ones, and the directions in which they may move.

Groups of columns are stored flat: group g has the columns ``members[ends[g]]`` to ``members[ends[g + 1] - 1]``. In the columns
of a group a row has entries >= 0 that sum to 1. Each other column j of row i lies in [low[i, j], high[i, j]].
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit

__all__ = ["along_rows", "nearest_rows"]


@njit(counts=False)
def nearest_rows(Z, low, high, members, ends, out):
    """Fill out (n, d) with the nearest rows to those of Z (n, d).

    On a simplex they are max(z - tau, 0), with tau such that they sum to 1. tau is a mean over entries. Entries that would become
    negative are left out of it, until there are none (Michelot 1986).
    """
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            out[i, j] = min(max(Z[i, j], low[i, j]), high[i, j])
        for g in range(len(ends) - 1):
            tau, n_left = -np.inf, -1
            while True:
                total, n = -1.0, 0
                for m in range(ends[g], ends[g + 1]):
                    if Z[i, members[m]] > tau:
                        total += Z[i, members[m]]
                        n += 1
                if n == n_left or n == 0:
                    break
                tau, n_left = max(tau, total / n), n  # rounding must not take it back
            for m in range(ends[g], ends[g + 1]):
                out[i, members[m]] = max(Z[i, members[m]] - tau, 0.0)


@njit(counts=False)
def along_rows(Z, slope, low, high, members, ends, out):
    """Fill out (n, d) with the nearest directions to `slope` (n, d) in which rows Z within reach may move.

    On a simplex these sum to 0 and are >= 0 where Z is 0: slope - tau where Z > 0, and max(slope - tau, 0) elsewhere. tau is
    found as in `nearest_rows`.
    """
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            s = slope[i, j]
            out[i, j] = 0.0 if (s > 0.0 and Z[i, j] >= high[i, j]) or (s < 0.0 and Z[i, j] <= low[i, j]) else s
        for g in range(len(ends) - 1):
            tau, n_left = -np.inf, -1
            while True:
                total, n = 0.0, 0
                for m in range(ends[g], ends[g + 1]):
                    if Z[i, members[m]] > 0.0 or slope[i, members[m]] > tau:
                        total += slope[i, members[m]]
                        n += 1
                if n == n_left or n == 0:
                    break
                tau, n_left = max(tau, total / n), n  # rounding must not take it back
            for m in range(ends[g], ends[g + 1]):
                rest = slope[i, members[m]] - tau
                out[i, members[m]] = rest if Z[i, members[m]] > 0.0 else max(rest, 0.0)
