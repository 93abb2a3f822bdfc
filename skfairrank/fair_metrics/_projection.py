"""Orthonormal directions, and rows made shorter along them: all that a linear fair metric does to features."""

from __future__ import annotations

import numpy as np

__all__ = ["orthonormal_rows", "shrink_along"]


def shrink_along(rows: np.ndarray, basis: np.ndarray, shrink: np.ndarray) -> np.ndarray:
    """z_i = x_i - sum_r t_r (b_r . x_i) b_r for each row x_i: equal rows give equal z to the bit, wherever they stand.

    That is why BLAS is not asked, which sums some rows of a matrix in another order than others.

    Parameters
    ----------
    rows : ndarray of float64, shape (n_rows, n_features)
    basis : ndarray of float64, shape (R, n_features)
        Orthonormal rows b_r.
    shrink : ndarray of float64, shape (R,)
        t_r: 1 leaves nothing of a direction, 0 all of it, a negative number makes it longer.
    """
    rows = np.ascontiguousarray(rows)
    along = np.einsum("ij,rj->ir", rows, basis)
    along *= shrink
    return rows - np.einsum("ir,rj->ij", along, basis)


def orthonormal_rows(directions: np.ndarray, tolerance: float) -> np.ndarray:
    """Orthonormal rows with the span of the directions. A feature that lies within it has a row of its own, and none in others.

    So such a feature is projected out exactly, and leaves no trace of rounding in another.

    Parameters
    ----------
    directions : ndarray of float64, shape (K, n_features)
        None of them zero.
    tolerance : float
        Singular values of the directions, scaled to unit length, below this times the largest count as zero.
    """
    n_features = directions.shape[1]
    if not len(directions):
        return np.zeros((0, n_features))
    unit = directions / np.abs(directions).max(axis=1, keepdims=True)  # first, since squares may overflow
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    used = np.flatnonzero(unit.any(axis=0))
    _, singular, rows = np.linalg.svd(unit[:, used], full_matrices=False)
    rows = rows[singular > tolerance * singular[0]]
    within = 1.0 - (rows**2).sum(axis=0) <= max(tolerance**2, 64 * np.finfo(float).eps)
    basis = np.zeros((len(rows), n_features))
    n_axes = int(within.sum())
    basis[np.arange(n_axes), used[within]] = 1.0
    if n_axes < len(rows):
        basis[n_axes:, used[~within]] = np.linalg.svd(rows[:, ~within], full_matrices=False)[2][: len(rows) - n_axes]
    return basis
