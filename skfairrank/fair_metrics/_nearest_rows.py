"""The rows of a table that are nearest to given rows, exactly, whatever matrix products round to."""

from __future__ import annotations

import numpy as np

__all__ = ["nearest_rows"]

_ENTRIES = 1 << 22  # of the matrix of distances, at once


def nearest_rows(X, Z, pool, pool_fair, n_neighbors: int) -> np.ndarray:
    """Numbers of the rows of a pool that are nearest to each row and differ from it in some feature.

    A product of matrices says which rows may be among the nearest, with room for its rounding. The distances of these are then
    computed pair by pair, so that the result does not depend on BLAS, nor on where a row stands. Of rows at the same distance
    those that come first in the pool are taken.

    Parameters
    ----------
    X, Z : ndarray of float64, shape (n_rows, n_features)
        Features of the rows, and what the metric measures of them (see `fair_features`).
    pool, pool_fair : ndarray of float64, shape (n_pool_rows, n_features)
        The same of the pool, whose rows are distinct and more than `n_neighbors`.
    n_neighbors : int

    Returns
    -------
    nearest : ndarray of int64, shape (n_rows, n_neighbors)
        From the nearest to the farthest.
    """
    nearest = np.empty((len(X), n_neighbors), np.int64)
    lengths = np.einsum("ij,ij->i", pool_fair, pool_fair)
    rounding = 4.0 * (Z.shape[1] + 4) * np.finfo(float).eps
    step = max(1, _ENTRIES // len(pool))
    for start in range(0, len(X), step):
        here = slice(start, start + step)
        own = np.einsum("ij,ij->i", Z[here], Z[here])
        distances = Z[here] @ pool_fair.T
        distances *= -2.0
        distances += lengths
        distances += own[:, None]
        # One more than asked for, since one of the pool may be the row itself.
        reach = np.partition(distances, n_neighbors, axis=1)[:, n_neighbors] + 2.0 * rounding * (own + lengths.max())
        row, found = np.nonzero(distances <= reach[:, None])
        is_other = (X[here][row] != pool[found]).any(axis=1)
        row, found = row[is_other], found[is_other]
        exact = ((Z[here][row] - pool_fair[found]) ** 2).sum(axis=1)
        order = np.lexsort((found, exact, row))
        firsts = np.searchsorted(row[order], np.arange(len(own)))
        nearest[here] = found[order][firsts[:, None] + np.arange(n_neighbors)]
    return nearest
