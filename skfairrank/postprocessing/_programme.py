"""The rankings of one query that are worth most among those whose groups share exposure fairly: a linear programme.

After Singh and Joachims (2018). A distribution over rankings enters by its doubly stochastic matrix P, whose entry (i, j) is the
chance that item i has rank j + 1, and items' exposures are P v for the ranks' exposures v.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import csr_array

__all__ = ["exposure_weights", "fair_ranks", "mixture"]

_SOLVER = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_SLACK = 1e-9  # beyond the least spread that there is, so that rounding does not make the second programme infeasible
_SMALLEST_CHANCE = 1e-9
_NEVER = (
    1e6  # cost of an entry without any chance, above the sum of all others: -log(1e-9) for each of n < 40,000 items
)


def exposure_weights(constraint: str, worth: np.ndarray, group: np.ndarray) -> np.ndarray:
    """One row c of each group that takes part, shape (n_groups, n): what must be equal among the groups is c @ exposure.

    Parameters
    ----------
    constraint : "demographic_parity", "disparate_treatment" or "disparate_impact"
        Mean exposure; mean exposure by mean worth; mean of exposure times worth by mean worth (the paper's section 4).
    worth : ndarray of float >= 0, shape (n,)
    group : ndarray of int, shape (n,)
    """
    members = group == np.unique(group)[:, None]
    if constraint == "demographic_parity":
        return members / members.sum(axis=1, keepdims=True)
    total = members @ worth
    members, total = members[total > 0], total[total > 0, None]  # a group without any worth has no exposure per worth
    return members * (worth if constraint == "disparate_impact" else 1.0) / total


def fair_ranks(worth, weights, discount, tolerance):
    """P of the ranking policy of greatest expected worth in which what `weights` say differs by at most `tolerance`.

    Parameters
    ----------
    worth : ndarray of float, shape (n,)
    weights : ndarray of float, shape (n_groups, n)
        See `exposure_weights`.
    discount : ndarray of float, shape (n,)
        Exposure of each rank, not rising.
    tolerance : float >= 0
        How far the largest c @ exposure may lie above the smallest.

    Returns
    -------
    P : ndarray, shape (n, n)
    spread : float
        How far they lie apart, at most: `tolerance`, or the least that any policy has where that is more.
    """
    n = len(worth)
    order = np.argsort(-worth, kind="stable")
    best = np.zeros((n, n))
    best[order, np.arange(n)] = 1.0
    if len(weights) < 2 or np.ptp(weights @ (best @ discount)) <= tolerance:
        return best, tolerance
    unit = weights.max()
    system = _System(weights / unit, discount)
    objective = -np.outer(worth / max(np.abs(worth).max(), np.finfo(float).tiny), discount).ravel()
    P, allowed = system.solve(objective, tolerance / unit), tolerance / unit
    if P is None:
        allowed = system.least_spread() + _SLACK
        P = system.solve(objective, allowed)
    if P is None:
        raise RuntimeError(
            "HiGHS found no ranking policy, though one exists: please report the scores and groups of this query."
        )
    return P, float(allowed * unit)


class _System:
    """Variables are P, row by row, the lowest value of c @ P v, and how far the highest lies above it."""

    def __init__(self, weights, discount):
        n, n_groups = len(discount), len(weights)
        self.n, self.equal = n, _sums(n)
        of_groups = np.einsum("gi,j->gij", weights, discount).reshape(n_groups, n * n)
        one, zero = np.ones((n_groups, 1)), np.zeros((n_groups, 1))
        not_below, not_above = np.hstack([-of_groups, one, zero]), np.hstack([of_groups, -one, -one])
        self.below = csr_array(np.vstack([not_below, not_above]))

    def solve(self, objective, allowed):
        """The P of least objective with a spread of at most `allowed`; None where there is none."""
        found = self._minimise(np.r_[objective, 0.0, 0.0], allowed)
        return None if found is None else found[:-2].reshape(self.n, self.n)

    def least_spread(self) -> float:
        found = self._minimise(np.r_[np.zeros(self.n**2), 0.0, 1.0], None)
        return float(found[-1])

    def _bounds(self, most_spread):
        return np.vstack([np.tile([0.0, 1.0], (self.n**2, 1)), [-np.inf, np.inf], [0.0, most_spread]])

    def _minimise(self, cost, allowed):
        result = linprog(
            cost,
            A_ub=self.below,
            b_ub=np.zeros(self.below.shape[0]),
            A_eq=self.equal,
            b_eq=np.ones(self.equal.shape[0]),
            bounds=self._bounds(np.inf if allowed is None else allowed),
            method="highs",
            options=_SOLVER,
        )
        if result.status == 2:
            return None
        if result.status != 0:
            raise RuntimeError(
                f"HiGHS could not solve the linear programme of a query of {self.n} items: {result.message}"
            )
        return result.x


@lru_cache(maxsize=32)
def _sums(n: int):
    """The sums of the rows and of the columns of P, as a matrix of the variables."""
    entry = np.arange(n * n)
    rows, columns = np.r_[entry // n, n + entry % n], np.r_[entry, entry]
    return csr_array((np.ones(2 * n * n), (rows, columns)), shape=(2 * n, n * n + 2))


def mixture(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rankings, and the chance of each, whose mean is a doubly stochastic matrix (Birkhoff and von Neumann).

    Each ranking is the one of greatest likelihood, the product of its entries, in what the ones before it have left; each empties
    an entry at least. So there are at most as many as there are entries above zero, less n, and one.

    Returns
    -------
    chances : ndarray of float, shape (n_rankings,)
        Falling or not, they sum to one.
    ranks : ndarray of int, shape (n_rankings, n)
        1-based rank of each item.
    """
    left, chances, ranks = np.maximum(P, 0.0), [], []
    items = np.arange(len(P))
    while True:
        cost = np.full(left.shape, _NEVER)
        has_chance = left > _SMALLEST_CHANCE
        cost[has_chance] = -np.log(left[has_chance])
        places = linear_sum_assignment(cost)[1]
        chance = left[items, places].min()
        if chance <= _SMALLEST_CHANCE:
            break
        left[items, places] -= chance
        chances.append(chance)
        ranks.append(places + 1)
    if not 0.99 < sum(chances) < 1.01:
        raise RuntimeError(
            f"The rankings of a query have chances that sum to {sum(chances):g}: its matrix is not doubly stochastic."
        )
    return np.array(chances) / sum(chances), np.array(ranks)
