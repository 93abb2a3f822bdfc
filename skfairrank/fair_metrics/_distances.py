"""The fair distance of queries: optimal transport between their items, uniform weights (Bower et al. 2021, section 3)."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.spatial.distance import cdist

from skfairrank._kernels import plans
from skfairrank._threads import over_queries
from skfairrank.fair_metrics._projection import shrink_along

__all__ = ["distances_between", "distances_of_rows", "fair_features", "large_distance", "transposed"]

# Measured (benchmarks/nearest.py): from so many pairs of items on, the network simplex of POT is faster than shortest paths.
# Between queries of one size, where a plan is a pairing, that is much later.
_LARGE, _LARGE_PAIRING = 3_000, 1_000_000
_ROWS = 1 << 14  # rows that are copied at once


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
    largest = max(np.abs(X).max(), np.abs(X_other).max()) * np.abs(shrink).max(initial=1.0)
    return Z, Z_other, float(8.0 * np.finfo(float).eps * np.sqrt(X.shape[1]) * largest)


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
            squares = (shrink_along(b - a, basis, shrink) ** 2).sum(axis=1)
        # Rows are as exact as the type in which they were given.
        size = np.maximum(np.abs(a), np.abs(b)).max(axis=1, initial=0.0) * np.abs(shrink).max(initial=1.0)
        blur = 8.0 * np.finfo(np.result_type(X.dtype, X_other.dtype, np.float32)).eps * np.sqrt(a.shape[1])
        squares[np.sqrt(squares) <= blur * size] = 0.0
        distances[here] = squares
    if not np.isfinite(distances).all():
        raise ValueError(
            "The squared distance between a row and its counterpart is not finite: features are too large. Scale them, for "
            "instance by StandardScaler."
        )
    return distances


def transposed(Z, offsets):
    """The rows of each query feature by feature, in one flat array, as the kernels read them."""
    blocks = np.empty(Z.size)
    plans.transposed_blocks(Z, offsets, blocks)
    return blocks


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
    sizes, sizes_other = np.diff(offsets)[:, None], np.diff(offsets_other)
    large = sizes * sizes_other >= np.where(sizes == sizes_other, _LARGE_PAIRING, _LARGE)
    if wanted is None:
        wanted = np.ones(large.shape, bool)
    distances = np.zeros(large.shape)
    over_queries(
        plans.pairwise_distances,
        offsets,
        plans.pairwise_nanoseconds(len(Z), len(Z_other), Z.shape[1]),
        Z,
        offsets,
        transposed(Z_other, offsets_other),
        offsets_other,
        wanted & ~large,
        distances,
    )
    for i, j in np.argwhere(wanted & large):
        distances[i, j] = large_distance(
            Z[offsets[i] : offsets[i + 1]], Z_other[offsets_other[j] : offsets_other[j + 1]]
        )
    return distances


def large_distance(Z, Z_other, *, max_iter=10_000_000):
    """d_Q of two queries by POT's network simplex; RuntimeError where that does not come to an end."""
    import ot  # slow to import, and only needed for large queries

    n, m = len(Z), len(Z_other)
    cost = cdist(Z, Z_other, "sqeuclidean")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the log says the same, and is checked
        distance, log = ot.emd2(
            np.full(n, 1.0 / n), np.full(m, 1.0 / m), cost, numItermax=max_iter, log=True, center_dual=False
        )
    if log["warning"] is not None:
        raise RuntimeError(f"Optimal transport between queries of {n} and {m} items failed: {log['warning']}")
    return float(distance)
