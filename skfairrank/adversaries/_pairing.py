"""d_Q between a query and its attacked copy: an optimal pairing of items, which is nearly always the identity."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from skfairrank._kernels.attack import (
    DISTANCE,
    FIRST_PATH,
    IS_OPEN,
    LARGEST,
    LARGEST_ASSIGNMENT,
    SHARE,
    WEIGHT,
    fair_costs,
)


class Pairing:
    """Distances of attacked queries, with what is known of the smallest distance between two items of each query.

    Parameters
    ----------
    basis, shrink : ndarray of float64, shapes (rank, n_features) and (rank,)
        Of the fair metric.
    n_numbers : int
        One more than the largest number of a query.
    """

    def __init__(self, basis, shrink, n_numbers):
        self.basis, self.shrink = basis, shrink
        self.gaps = np.zeros(n_numbers)  # learned when a query comes up, see `fair_costs`

    def mean_distance(self, batch, e, cost, spent, share) -> float:
        """Mean of weight times d_Q, where each item has a free move of its own.

        Parameters
        ----------
        batch : Batch of n_rows rows and n_queries queries
        e, cost : ndarray, shapes (n_rows, n_features) and (n_rows,)
            Free moves, and their cost e'Me.
        spent, share : ndarray, shape (n_queries,)
            Mean cost of a query's items, and how much of its free moves a query keeps.
        """
        sizes, by_query = np.diff(batch.offsets), np.empty((6, len(share)))
        largest, gap = share * np.sqrt(np.maximum.reduceat(cost, batch.offsets[:-1])), self.gaps[batch.queries]
        by_query[FIRST_PATH], by_query[SHARE], by_query[LARGEST] = batch.offsets[:-1], share, largest
        by_query[DISTANCE], by_query[WEIGHT] = share**2 * spent, batch.weight / len(share)
        by_query[IS_OPEN] = (sizes > 1) & (sizes <= LARGEST_ASSIGNMENT) & (np.abs(gap) < 2.0 * largest)
        return self.solve(batch, e, 0, by_query, float(by_query[WEIGHT] @ by_query[DISTANCE]))

    def solve(self, batch, e, n_starts, by_query, distance) -> float:
        """Replace the cost of pairing items with themselves by d_Q where queries are open; the mean of weight times d_Q.

        Parameters
        ----------
        batch : Batch
        e : ndarray, shape (n_paths, n_features)
            Free moves; item i of a query follows its path i modulo `n_starts`, or its path i if that is 0.
        n_starts : int
        by_query : ndarray, shape (6, n_queries)
            As `_kernels.attack.accept` leaves it.
        distance : float
            The mean with every item paired with itself. It is returned as it is where no other pairing is cheaper.
        """
        is_cheaper = False
        offsets, queries, found = batch.offsets, batch.queries, (self.gaps, by_query)
        for b in np.flatnonzero(by_query[IS_OPEN]).tolist():
            n = offsets[b + 1] - offsets[b]
            cost = np.empty((n, n))
            metric = self.basis, self.shrink
            if fair_costs(b, batch.X, batch.rows, offsets, queries, *metric, n_starts, e, *found, cost):
                cheapest = np.add.reduce(cost[linear_sum_assignment(cost)]) / n
                if cheapest < by_query[DISTANCE, b] * (1.0 - 1e-12):
                    by_query[DISTANCE, b], is_cheaper = cheapest, True
        return float(by_query[WEIGHT] @ by_query[DISTANCE]) if is_cheaper else distance
