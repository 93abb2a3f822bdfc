"""The adversary of boosting: which hypothetical row each row meets in a round, and at what price of the budget.

The adversary picks one of finitely many hypothetical rows, or the row itself. So the dual (Bower et al. 2021, equation 4) is a
piecewise linear function of lambda. A round sees all queries: where Algorithm 1 moves lambda by a step for each mini-batch, here
lambda is the minimiser of the dual, up to the tolerance of a bisection, so that no round is spent on finding it.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

__all__ = ["Choice", "ListAdversary"]

# Halvings of the interval in which lambda lies, once it is known up to a factor of two.
_N_HALVINGS = 16


class Choice(NamedTuple):
    """What the adversary chose in one round.

    Parameters
    ----------
    hypothetical : ndarray of int64, shape (n_rows,)
        The number of each row's hypothetical row, or -1 where the row meets itself.
    difference : ndarray of float64, shape (n_rows,)
        Score of the row less that of its choice, h - h'.
    query_distance : float
        Mean over queries of d_Q(q, q'), rows paired with their own hypothetical rows.
    multiplier : float
        lambda.
    """

    hypothetical: np.ndarray
    difference: np.ndarray
    query_distance: float
    multiplier: float


class ListAdversary:
    """Chooses for each row the hypothetical row with the largest ``rho / 2 (h - h')^2 - lambda / n_q d_X``, if that pays.

    It pays where it is positive; and where it is 0 and the hypothetical row costs nothing, so that the two of them are tied to
    each other before any tree has told them apart. The sum over the rows of a query is ``rho / 2 ||h(q) - h(q')||^2 - lambda
    d_Q(q, q')``, as in Algorithm 1, with d_Q the mean of d_X over the query's n_q rows.

    Parameters
    ----------
    distances : sequence of ndarray of float, each of shape (n_rows,)
        d_X between each row and each of its hypothetical rows, >= 0. Empty: none of them costs anything. The first attack reads
        them, so that they may be measured while the library reads the rows.
    sizes : ndarray of int64, shape (n_queries,)
        Rows of each query; rows are grouped by query.
    weight : ndarray of float64, shape (n_queries,)
        Weights of the queries, of mean 1.
    rho, epsilon : float
        Strength of the regulariser, and the bound on the mean d_Q, in squared feature units.
    """

    def __init__(self, distances, sizes, weight, *, rho: float, epsilon: float):
        self.rho, self.epsilon = rho, epsilon
        self.distances, self.sizes = distances, sizes
        self.row_weight = np.repeat(weight, sizes) / len(sizes)
        self.multiplier = 0.0

    @cached_property
    def shares(self) -> np.ndarray | None:
        """What each row costs of its query's d_Q, shape (n_hypotheticals, n_rows); None where no row costs anything."""
        costs_something = any(values.any() for values in self.distances)
        return np.array(self.distances) / np.repeat(self.sizes, self.sizes) if costs_something else None

    def choose(self, h: np.ndarray, hypothetical: np.ndarray) -> Choice:
        """Attack scores.

        Parameters
        ----------
        h : ndarray of float64, shape (n_rows,)
            Scores of the rows.
        hypothetical : ndarray of float64, shape (n_hypotheticals, n_rows)
            Scores of their hypothetical rows.
        """
        gain = 0.5 * self.rho * np.square(h - hypothetical)
        chosen, spent = self._respond(gain, 0.0)
        self.multiplier, last = 0.0, self.multiplier
        if self.shares is not None and spent > self.epsilon:
            self.multiplier = self._least_multiplier(gain, self.shares, last)
            chosen, spent = self._respond(gain, self.multiplier)
        met = hypothetical[chosen, np.arange(len(h))]
        return Choice(chosen, np.where(chosen < 0, 0.0, h - met), spent, self.multiplier)

    def _respond(self, gain, multiplier):
        """The best answer to lambda, -1 for the row itself, and the mean d_Q that it spends."""
        worth = gain if multiplier == 0 else gain - multiplier * self.shares
        best, rows = worth.argmax(axis=0), np.arange(gain.shape[1])
        if self.shares is None:
            return best, 0.0
        price = self.shares[best, rows]
        is_moved = (worth[best, rows] > 0) | (price == 0)
        return np.where(is_moved, best, -1), float((price * is_moved) @ self.row_weight)

    def _least_multiplier(self, gain, shares, last: float) -> float:
        """About the least lambda whose answer keeps within the budget; the answer itself always does."""
        # From here on nothing that costs anything is chosen.
        ceiling = float(np.max(np.divide(gain, shares, out=np.zeros_like(gain), where=shares > 0)))
        low, high = 0.0, ceiling
        for guess in (0.5 * last, 2.0 * last):  # lambda moves little from one round to the next
            if low < guess < high:
                low, high = (low, guess) if self._keeps(gain, guess) else (guess, high)
        for _ in range(_N_HALVINGS if low > 0 else 2 * _N_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._keeps(gain, middle) else (middle, high)
        return high

    def _keeps(self, gain, multiplier) -> bool:
        return self._respond(gain, multiplier)[1] <= self.epsilon
