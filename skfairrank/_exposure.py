"""Merit-weighted disparity of group exposures (Singh and Joachims 2019; Bower et al. 2021, appendix B), as coefficients."""

from __future__ import annotations

import numpy as np

__all__ = ["SMALLEST_MERIT", "disparity_coefficients"]

#: A merit below this (about 1e-100) counts as this in a ratio, so that exposure per merit and its square stay finite.
SMALLEST_MERIT = 2.0**-330


def disparity_coefficients(
    y: np.ndarray, group: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients c such that a query's disparity v_A / M_A - v_B / M_B is the sum of c_i times the exposure of row i.

    v_G is the mean exposure and M_G the mean relevance of group G's rows; A is the group of more merit, or of the larger label
    where merits tie. Merits tie where they differ by no more than the rounding of relevances and of their sums: the means of
    (.1, .2, .3) and of (.2) do, in any order of the rows.

    Parameters
    ----------
    y : ndarray of float64, shape (n_rows,)
        Relevances >= 0, grouped by query.
    group : ndarray of int, shape (n_rows,)
        0 or 1, grouped by query; 1 is the larger label.
    offsets : ndarray of int64, shape (n_queries + 1,)

    Returns
    -------
    coefficients : ndarray of float64, shape (n_rows,)
        Zero in queries where the disparity is undefined.
    defined : ndarray of bool, shape (n_queries,)
        False where a group is absent or without merit.
    tied : ndarray of bool, shape (n_queries,)
        Where the disparity is defined and both groups have the same merit.
    """
    sizes = np.diff(offsets)
    cell = 2 * np.repeat(np.arange(len(sizes)), sizes) + group
    members = np.bincount(cell, minlength=2 * len(sizes)).reshape(-1, 2)
    sums, exponent, tolerance = _sums_of_cells(y, cell, offsets)
    defined = np.asarray((sums > 0).all(axis=1))
    merit = np.divide(sums, members, out=np.zeros_like(sums), where=members > 0)
    tied = defined & (np.abs(merit[:, 0] - merit[:, 1]) <= tolerance * merit.max(axis=1))
    larger_is_first = tied | (merit[:, 1] >= merit[:, 0])
    # 1 / (|G| M_G) = 1 / (sum of the group's relevances), with the sign of the group's place in the difference.
    per_cell = np.divide(1.0, sums, out=np.zeros_like(sums), where=defined[:, None])
    per_cell = np.ldexp(per_cell, -np.maximum(exponent, int(np.log2(SMALLEST_MERIT)))[:, None])
    per_cell *= np.where(larger_is_first[:, None], [-1.0, 1.0], [1.0, -1.0])
    return per_cell.ravel()[cell], defined, tied


def _sums_of_cells(y: np.ndarray, cell: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of relevances, shape (n_queries, 2), the same in any order of the rows.

    Those of a query are to be multiplied by two to the power of its exponent, and two means of them are the same where they
    differ by no more than its tolerance, relative to the larger.
    """
    sizes = np.diff(offsets)
    if _sums_are_exact(y):
        sums = np.bincount(cell, weights=y, minlength=2 * len(sizes)).reshape(-1, 2)
        return sums, np.zeros(len(sizes), int), np.zeros(len(sizes))
    # Scaled by a power of two, so that no sum overflows; added up in sorted order, so that the order of rows does not matter.
    exponent = np.frexp(np.maximum.reduceat(y, offsets[:-1]))[1]
    order = np.lexsort((y, cell))
    scaled = np.ldexp(y, -np.repeat(exponent, sizes))
    sums = np.bincount(cell[order], weights=scaled[order], minlength=2 * len(sizes)).reshape(-1, 2)
    relevant = np.bincount(cell, weights=y > 0, minlength=2 * len(sizes)).reshape(-1, 2) > 0
    sums = np.where(relevant, np.maximum(sums, SMALLEST_MERIT), 0.0)  # beside a huge relevance a small one may vanish
    return sums, exponent, 2.0 * (_resolution(y) + np.finfo(float).eps * sizes)


def _sums_are_exact(y: np.ndarray) -> bool:
    """Whether relevances are multiples of 1/16, so small that sums of them are not rounded: grades, and halves of grades."""
    return bool(y.max() < 2.0**48 / len(y)) and bool((16.0 * y % 1.0 == 0.0).all())


def _resolution(y: np.ndarray) -> float:
    """Relative distance of neighbours in the coarsest float type that holds all relevances: so far they may have been rounded."""
    with np.errstate(over="ignore"):
        for kind in (np.float16, np.float32):
            if (y.astype(kind) == y).all():
                return float(np.finfo(kind).eps)
    return float(np.finfo(float).eps)
