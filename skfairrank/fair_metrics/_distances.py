"""The fair distance of queries: optimal transport between their items, uniform weights (Bower et al. 2021, section 3)."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

_ROWS = 1 << 14  # rows that are copied at once
_ENTRIES = 1 << 22  # of a matrix of distances, at once


def fair_features(X, X_other, metric):
    """What the metric measures of two tables of rows, about the centre of the second; and the rounding error of distances.

    Parameters
    ----------
    X, X_other : ndarray of float64, shapes (n_rows, n_features) and (n_rows_other, n_features)
    metric : fitted fair metric
        Of which `basis_` and `shrink_` are read.

    Returns
    -------
    Z, Z_other : ndarray of float64, as X and X_other
        The squared distance of two of these rows is d_X.
    blur : float
        About how far rounding moves a row.

    Raises
    ------
    ValueError
        If a distance overflows or is not a number: the transport between such rows would be nonsense without a word.
    """
    basis = np.asarray(metric.basis_, dtype=np.float64)
    shrink = np.asarray(metric.shrink_, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        # Differences of rows far from the origin would lose digits.
        center = X_other.mean(axis=0)
        X, X_other = X - center, X_other - center
        Z, Z_other = shrink_along(X, basis, shrink), shrink_along(X_other, basis, shrink)
        # If the square of the whole range is finite, so is every distance.
        low = np.minimum(Z.min(axis=0), Z_other.min(axis=0))
        high = np.maximum(Z.max(axis=0), Z_other.max(axis=0))
        finite = np.isfinite(np.sum((high - low) ** 2))
    if not finite:
        raise ValueError(
            "The squared distance between two items is not finite: features are too large. Scale them, for instance by "
            "StandardScaler, before fitting the metric."
        )
    sizes = np.maximum(np.abs(X).max(axis=0), np.abs(X_other).max(axis=0))
    return Z, Z_other, float(8.0 * np.finfo(float).eps * np.linalg.norm(reach(sizes, basis, shrink)[high > low]))


def distances_of_rows(X, X_other, metric):
    """d_X, the squared distance, between each row and the one in its place; 0 where rounding alone tells them apart.

    Parameters
    ----------
    X, X_other : ndarray of float32 or float64, shape (n_rows, n_features)
        May be memory-mapped; they are read by blocks.
    metric : fitted fair metric
        Of which `basis_` and `shrink_` are read.

    Returns
    -------
    distances : ndarray of float64, shape (n_rows,)

    Raises
    ------
    ValueError
        If a distance is not finite.
    """
    basis, shrink = (np.asarray(getattr(metric, name), dtype=np.float64) for name in ("basis_", "shrink_"))
    distances = np.empty(len(X))
    for start in range(0, len(X), _ROWS):
        here = slice(start, start + _ROWS)
        a, b = (np.asarray(rows[here], dtype=np.float64) for rows in (X, X_other))
        with np.errstate(over="ignore", invalid="ignore"):
            moved = shrink_along(b - a, basis, shrink)
            # Rows are as exact as the type in which they were given, each feature in its own unit.
            eps = np.finfo(np.result_type(X.dtype, X_other.dtype, np.float32)).eps
            moved[np.abs(moved) <= 8.0 * eps * reach(np.maximum(np.abs(a), np.abs(b)), basis, shrink)] = 0.0
            distances[here] = (moved**2).sum(axis=1)
    if not np.isfinite(distances).all():
        raise ValueError(
            "The squared distance between a row and its counterpart is not finite: features are too large. Scale them, for "
            "instance by StandardScaler."
        )
    return distances


def distances_between(Z, offsets, Z_other, offsets_other, *, wanted=None):
    """d_Q between queries of rows Z and queries of rows Z_other, the rows of a query one behind the other.

    Parameters
    ----------
    Z, Z_other : ndarray of float64, shapes (n_rows, n_features) and (n_rows_other, n_features)
    offsets, offsets_other : ndarray of int64
        Where each query begins, and the number of rows at the end.
    wanted : ndarray of bool, shape (n_queries, n_queries_other), optional
        Pairs whose distance is wanted; default: all. The others are left 0.
    """
    distances = np.zeros((len(offsets) - 1, len(offsets_other) - 1))
    for i, j in np.argwhere(np.ones(distances.shape, bool) if wanted is None else wanted):
        ours, others = Z[offsets[i] : offsets[i + 1]], Z_other[offsets_other[j] : offsets_other[j + 1]]
        distances[i, j] = transport(ours, others)[0]
    return distances


def transport(Z, Z_other, *, max_iter=10_000_000):
    """d_Q of two queries, and for each row of Z the row of Z_other that gets most of its mass, the first of several.

    An assignment where the queries are of one size, else POT's network simplex.

    Raises
    ------
    RuntimeError
        If the network simplex does not come to an end.
    """
    n, m = len(Z), len(Z_other)
    cost = cdist(Z, Z_other, "sqeuclidean")
    if n == m:
        _, partner = linear_sum_assignment(cost)
        return float(cost[np.arange(n), partner].mean()), partner
    import ot  # slow to import, and only needed for queries of different sizes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the log says the same, and is checked
        uniform, uniform_other = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
        unit = cost / (cost.max() or 1.0)  # the simplex takes what is small for zero
        plan, log = ot.emd(uniform, uniform_other, unit, numItermax=max_iter, log=True, center_dual=False)
    if log["warning"] is not None:
        raise RuntimeError(f"Optimal transport between queries of {n} and {m} items failed: {log['warning']}")
    plan = np.round(plan * n * m)  # mass in whole units, so that equal shares are equal
    return float((plan * cost).sum() / (n * m)), plan.argmax(axis=1)


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


def reach(sizes: np.ndarray, basis: np.ndarray, shrink: np.ndarray) -> np.ndarray:
    """The largest numbers that take part in z of rows whose features are of these sizes: rounding is in their unit.

    All as for `shrink_along`, and so is what is returned.
    """
    entries = np.abs(basis)
    return sizes + (sizes @ entries.T) * np.abs(shrink) @ entries


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
