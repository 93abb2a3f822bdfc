"""Distance between queries: optimal transport between their item sets, uniform weights (Bower et al. 2021, section 3)."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

__all__ = ["pairing_cost", "transport_plan"]


def pairing_cost(Z: np.ndarray, Z_other: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances between projected items, shape (n, m).

    Raises
    ------
    ValueError
        If a distance overflows or is not a number. Transport solvers return nonsense for such a cost without a word.
    """
    cost = cdist(Z, Z_other, "sqeuclidean")
    if not np.isfinite(cost).all():
        raise ValueError(
            "The squared distance between two items is not finite: features are too large (or NaN). Scale the features, for "
            "instance by StandardScaler, before measuring distances."
        )
    return cost


def transport_plan(cost: np.ndarray, *, plan: bool = True) -> tuple[float, np.ndarray | None]:
    """Cheapest transport between two uniform distributions.

    Parameters
    ----------
    cost : ndarray of float, shape (n, m)
        Finite costs of moving one item onto another.
    plan : bool
        Whether to return the plan too.

    Returns
    -------
    distance : float
        Total cost of the cheapest plan.
    plan : ndarray of float, shape (n, m), or None
        Mass moved; rows sum to 1/n and columns to 1/m. For n = m a permutation matrix divided by n.

    Raises
    ------
    RuntimeError
        If POT's solver reports that its result is not optimal.
    """
    n, m = cost.shape
    if n == m:
        rows, columns = linear_sum_assignment(cost)
        matrix = None
        if plan:
            matrix = np.zeros((n, m))
            matrix[rows, columns] = 1.0 / n
        return float(cost[rows, columns].mean()), matrix
    if n == 1 or m == 1:
        return float(cost.mean()), np.full((n, m), 1.0 / (n * m)) if plan else None
    import ot  # slow to import, and only needed for unequal sizes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the log says the same, and is checked
        matrix, log = ot.emd(np.full(n, 1.0 / n), np.full(m, 1.0 / m), cost, numItermax=1_000_000, log=True)
    if log["warning"] is not None:
        raise RuntimeError(f"Optimal transport between queries of {n} and {m} items failed: {log['warning']}")
    return float(np.sum(matrix * cost)), matrix
