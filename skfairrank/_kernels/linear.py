"""Linear scores of rows of X, their pull-back, and an Adam step. X may be memory-mapped."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import REASSOCIATE, njit

__all__ = [
    "adam_factors",
    "adam_step",
    "add_up",
    "all_scores",
    "climb_rows",
    "dot",
    "dot_with_row",
    "linear_scores",
    "mean",
    "pull_back",
    "pull_back_blocks",
    "subtract",
]

BETA1, BETA2, TINY = 0.9, 0.999, 1e-8  # Adam's constants (Kingma and Ba 2015)


@njit(fastmath=REASSOCIATE, counts=False, inner=True)
def dot(x, y):
    """x . y, summed in double precision."""
    total = 0.0
    for k in range(len(y)):
        total += y[k] * x[k]
    return total


@njit(fastmath=REASSOCIATE, counts=False, inner=True)
def dot_with_row(A, r, x):
    """A[r] . x, without making a view of the row."""
    total = 0.0
    for k in range(len(x)):
        total += A[r, k] * x[k]
    return total


@njit(counts=False)
def linear_scores(first, last, X, rows, w, out):
    """out[i] = X[rows[i]] . w, summed in double precision, for i from first to last - 1."""
    for i in range(first, last):
        out[i] = dot(X[rows[i]], w)


@njit(counts=False)
def all_scores(first, last, X, w, out):
    """out[i] = X[i] . w, to the same bits as `linear_scores`."""
    for i in range(first, last):
        out[i] = dot(X[i], w)


@njit(counts=False)
def pull_back(X, rows, g, scale, out):
    """out = scale * sum_i g[i] X[rows[i]]: the gradient in the weights from that in the scores."""
    for k in range(len(out)):
        out[k] = 0.0
    for i in range(len(rows)):
        x, weight = X[rows[i]], scale * g[i]
        for k in range(len(out)):
            out[k] += weight * x[k]


@njit(counts=False)
def pull_back_blocks(first, last, X, rows, g, scale, size, parts):
    """Fill parts[b] with what `pull_back` gives for rows b size to (b + 1) size - 1, for blocks b from first to last - 1."""
    for b in range(first, last):
        here = slice(b * size, min((b + 1) * size, len(rows)))
        pull_back(X, rows[here], g[here], scale, parts[b])


@njit(counts=False)
def add_up(parts, out):
    """Sum over the first axis, in its order."""
    for k in range(len(out)):
        out[k] = 0.0
    for b in range(len(parts)):
        for k in range(len(out)):
            out[k] += parts[b, k]


def adam_factors(t, step_size):
    """The factors by which Adam multiplies its two averages at step t, so that they are not biased to zero. t counts from 1."""
    return step_size / (1.0 - BETA1**t), 1.0 / (1.0 - BETA2**t)


@njit(counts=False)
def adam_step(w, gradient, m, v, first, second):
    """Make one step of ascent by Adam, in place, with the factors that `adam_factors` gives for it."""
    for k in range(len(w)):
        m[k] = BETA1 * m[k] + (1.0 - BETA1) * gradient[k]
        v[k] = BETA2 * v[k] + (1.0 - BETA2) * gradient[k] * gradient[k]
        w[k] += first * m[k] / (np.sqrt(second * v[k]) + TINY)


@njit(counts=False)
def climb_rows(z, slopes, weight, pull, kept, basis, moments, work, first, second):
    """Make an `adam_step` for each row of z, along ``weight slopes - pull M z``.

    Parameters
    ----------
    z, slopes : ndarray of float64, shape (n_rows, n)
        z is changed in place.
    weight, pull : ndarray of float64, shape (n_rows,)
    kept, basis : ndarray of float64, shape (rank, n)
        M is the identity minus kept' basis.
    moments : ndarray of float64, shape (2, n_rows, n)
        Adam's two averages, changed in place.
    work : ndarray of float64, shape (n,)
    first, second : float
        The factors that `adam_factors` gives for the step.
    """
    for i in range(len(z)):
        for k in range(len(work)):
            work[k] = weight[i] * slopes[i, k] - pull[i] * z[i, k]
        for r in range(len(basis)):
            along = pull[i] * dot_with_row(kept, r, z[i])
            for k in range(len(work)):
                work[k] += along * basis[r, k]
        adam_step(z[i], work, moments[0, i], moments[1, i], first, second)


@njit(counts=False)
def mean(values):
    """Mean of a short array. NumPy's would take longer to begin than to sum."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values)


@njit(counts=False)
def subtract(gradient, scale, other):
    """gradient -= scale * other, in place."""
    for k in range(len(gradient)):
        gradient[k] -= scale * other[k]
