"""LambdaMART's gradients (Burges 2010) in the form that LightGBM gives them."""

from __future__ import annotations

import math

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.sorting import descending_order

__all__ = ["lambdarank", "lambdarank_work"]


@njit
def lambdarank(first, last, h, offsets, gain, discount, n_top, gradient, hessian):
    """Fill in, for each row, the ascent direction and the curvature of the lists' utility, from pairs of rows of unlike gain.

    A pair (i, j), where i is the better row, pulls both rows by D / (1 + exp(h_i - h_j)). One of the two must be among the
    first `n_top`. Here D = |gain_i - gain_j| |discount_r(i) - discount_r(j)| / (0.01 + |h_i - h_j|), and r are the ranks by
    descending score. Where all scores of a query are equal, D is not divided. Finally all pulls of a query are multiplied by
    log2(1 + S) / S, where S is their sum.

    Parameters
    ----------
    first, last : int64
        Queries first to last - 1 are treated.
    h, gain : ndarray of float64, shape (n_rows,)
    offsets : ndarray of int64, shape (n_queries + 1,)
    discount : ndarray of float64, shape (>= largest query size,)
    n_top : int64
    gradient, hessian : ndarray of float64, shape (n_rows,)
        Filled in.
    """
    start = offsets[first]
    orders = np.empty(offsets[last] - start, np.int64)
    descending_order(first, last, h, offsets, orders, start)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        order = orders[lo - start : hi - start]
        gradient[lo:hi] = 0.0
        hessian[lo:hi] = 0.0
        differs, total = h[order[0]] != h[order[hi - lo - 1]], 0.0
        for a in range(min(hi - lo - 1, n_top)):
            for b in range(a + 1, hi - lo):
                better, worse = order[a], order[b]
                if gain[better] == gain[worse]:
                    continue
                if gain[better] < gain[worse]:
                    better, worse = worse, better
                apart = h[better] - h[worse]
                weight = (gain[better] - gain[worse]) * abs(discount[a] - discount[b])
                if differs:
                    weight /= 0.01 + abs(apart)
                chance = 1.0 / (1.0 + math.exp(apart)) if apart < 700.0 else 0.0
                gradient[better] += weight * chance
                gradient[worse] -= weight * chance
                hessian[better] += weight * chance * (1.0 - chance)
                hessian[worse] += weight * chance * (1.0 - chance)
                total += 2.0 * weight * chance
        if total > 0.0:
            factor = np.log2(1.0 + total) / total
            for i in range(lo, hi):
                gradient[i] *= factor
                hessian[i] *= factor


def lambdarank_work(offsets: np.ndarray, n_top: int) -> float:
    """Rough time of `lambdarank`, in nanoseconds."""
    sizes = np.diff(offsets).astype(np.float64)
    return 12.0 * float((sizes * np.minimum(sizes, n_top)).sum())
