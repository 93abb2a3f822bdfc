"""Linear scores of rows of X, their gradient in the weights, and steps of Adam. X may be memory-mapped."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels import REASSOCIATE, njit

BETA1, BETA2, TINY = 0.9, 0.999, 1e-8  # Adam's constants (Kingma and Ba 2015)


@njit(fastmath=REASSOCIATE, inner=True)
def dot_with_row(A, r, x):
    """A[r] . x in double precision, without making a view of the row."""
    total = 0.0
    for k in range(len(x)):
        total += x[k] * A[r, k]
    return total


@njit(fastmath=REASSOCIATE, inner=True)
def dot_of_rows(A, r, B, s):
    """A[r] . B[s]."""
    total = 0.0
    for k in range(A.shape[1]):
        total += A[r, k] * B[s, k]
    return total


@njit
def linear_scores(first, last, X, rows, w, out):
    """out[i] = X[rows[i]] . w, for i from first to last - 1. A row's score does not depend on where it stands."""
    for i in range(first, last):
        out[i] = dot_with_row(X, rows[i], w)


@njit
def all_scores(first, last, X, w, out):
    """out[i] = X[i] . w, to the same bits as `linear_scores`."""
    for i in range(first, last):
        out[i] = dot_with_row(X, i, w)


@njit
def weight_gradient(first, last, X, rows, g, scale, size, parts):
    """parts[b] = scale * sum_i g[i] X[rows[i]] over i from b size to (b + 1) size - 1, for b from first to last - 1."""
    for b in range(first, last):
        part, end = parts[b], (b + 1) * size
        for k in range(len(part)):
            part[k] = 0.0
        for i in range(b * size, end if end < len(rows) else len(rows)):
            row, weight = rows[i], scale * g[i]
            for k in range(len(part)):
                part[k] += weight * X[row, k]


def adam_factors(t, step_size):
    """The factors by which Adam multiplies its two averages at step t, so that they are not biased to zero. t counts from 1."""
    return step_size / (1.0 - BETA1**t), 1.0 / (1.0 - BETA2**t)


@njit
def adam_step(w, gradient, m, v, first, second):
    """Make one step of ascent by Adam, in place, with the factors that `adam_factors` gives for it."""
    for k in range(len(w)):
        m[k] = BETA1 * m[k] + (1.0 - BETA1) * gradient[k]
        v[k] = BETA2 * v[k] + (1.0 - BETA2) * gradient[k] * gradient[k]
        w[k] += first * m[k] / (np.sqrt(second * v[k]) + TINY)
