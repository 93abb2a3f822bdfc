"""d_Q between a query and its attacked copy: an optimal pairing of items, which is nearly always the identity."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels.attack import (
    ASKS,
    COST,
    DISTANCE,
    FIRST_PATH,
    LARGEST,
    LARGEST_ASSIGNMENT,
    OPEN,
    SHARE,
    STATE,
    mean_distance,
)
from skfairrank._kernels.transport import gap_room, pair_work, smallest_gaps, transport_distances, transport_room
from skfairrank._threads import over_queries

__all__ = ["Pairing"]


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
        # What is known so far (see `smallest_gaps`); learned when a query comes up.
        self.gaps = np.zeros(n_numbers)

    def mean_distance(self, batch, e, cost, spent, share) -> float:
        """Mean of weight times d_Q, where each item has a free move of its own.

        Parameters
        ----------
        batch : Batch of n_rows rows and n_queries queries
        e, cost : ndarray, shapes (n_rows, n_features) and (n_rows,)
            Free moves, and their cost ||z(e)||^2.
        spent, share : ndarray, shape (n_queries,)
            Mean cost of a query's items, and how much of its free moves a query keeps.
        """
        sizes, by_query = np.diff(batch.offsets), np.empty((6, len(share)))
        by_query[FIRST_PATH], by_query[SHARE], by_query[COST] = batch.offsets[:-1], share, share**2 * spent
        by_query[LARGEST] = share * np.sqrt(np.maximum.reduceat(cost, batch.offsets[:-1]))
        by_query[DISTANCE], gap = by_query[COST], self.gaps[batch.queries]
        is_open = (sizes > 1) & (sizes <= LARGEST_ASSIGNMENT) & (by_query[COST] > 0.0)
        is_open &= np.abs(gap) < 2.0 * by_query[LARGEST]
        by_query[STATE] = np.where(is_open, np.where(gap <= 0.0, ASKS, OPEN), 0.0)
        return self.settle_open(batch, e, 0, by_query)

    def settle_open(self, batch, e, n_starts, by_query) -> float:
        """Replace the cost of pairing items with themselves by d_Q where queries are open or ask; the mean of weight times d_Q.

        Parameters
        ----------
        batch : Batch
        e : ndarray, shape (n_paths, n_features)
            Free moves; item i of a query follows its path i modulo `n_starts`, or its path i if that is 0.
        n_starts : int
        by_query : ndarray, shape (6, n_queries)
            As `_kernels.attack.settle` leaves it.
        """
        X, rows, offsets, state = batch.X, batch.rows, batch.offsets, by_query[STATE]
        basis, shrink, d = self.basis, self.shrink, batch.X.shape[1]
        sizes = offsets[1:] - offsets[:-1]

        def learn(first, last):
            room = gap_room(d, int(sizes[first:last][state[first:last] == ASKS].max(initial=0)))
            smallest_gaps(first, last, X, rows, offsets, batch.queries, basis, shrink, self.gaps, by_query, room)

        def solve(first, last):
            room = transport_room(d, int(sizes[first:last][state[first:last] == OPEN].max(initial=0)))
            transport_distances(first, last, X, rows, offsets, basis, shrink, n_starts, e, by_query, *room)

        # A batch may hold a query twice; whichever of two bounds of its gap is kept, it is right.
        if (asks := state == ASKS).any():
            over_queries(learn, offsets, pair_work(d, sizes[asks]))
        if (is_open := state == OPEN).any():
            over_queries(solve, offsets, pair_work(d, sizes[is_open]))
        return mean_distance(batch.weight, by_query)
