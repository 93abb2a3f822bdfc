"""d_Q between a query and its attacked copy: an optimal pairing of items, which is nearly always the identity."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels.attack import (
    ASKS,
    DISTANCE,
    FIRST_PATH,
    LARGEST,
    LARGEST_ASSIGNMENT,
    OPEN,
    SHARE,
    STATE,
    WEIGHT,
)
from skfairrank._kernels.transport import (
    gap_room,
    pair_work,
    rounding,
    smallest_gaps,
    transport_distances,
    transport_room,
)
from skfairrank._threads import is_worth_threads, over_queries

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
        self._rounding = rounding(basis, shrink)
        self._room = transport_room(basis.shape[1], 0)

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
        largest, gap = share * np.sqrt(np.maximum.reduceat(cost, batch.offsets[:-1])), self.gaps[batch.queries]
        is_open = (sizes > 1) & (sizes <= LARGEST_ASSIGNMENT) & (np.abs(gap) < 2.0 * largest)
        by_query[FIRST_PATH], by_query[SHARE], by_query[LARGEST] = batch.offsets[:-1], share, largest
        by_query[DISTANCE], by_query[STATE] = share**2 * spent, np.where(is_open, np.where(gap <= 0.0, ASKS, OPEN), 0.0)
        by_query[WEIGHT] = batch.weight / len(share)
        return self.settle_open(batch, e, 0, by_query, True, *self.extent(sizes))

    def extent(self, sizes) -> tuple[int, float]:
        """Of queries of these sizes: items of the largest whose d_Q is solved for, and nanoseconds of work on all up to it."""
        sizes = sizes[sizes <= LARGEST_ASSIGNMENT]
        return int(sizes.max(initial=0)), pair_work(self.basis.shape[1], sizes)

    def settle_open(self, batch, e, n_starts, by_query, some_ask, widest, work) -> float:
        """Replace the cost of pairing items with themselves by d_Q where queries are open or ask; the mean of weight times d_Q.

        Parameters
        ----------
        batch : Batch
        e : ndarray, shape (n_paths, n_features)
            Free moves; item i of a query follows its path i modulo `n_starts`, or its path i if that is 0.
        n_starts : int
        by_query : ndarray, shape (6, n_queries)
            As `_kernels.attack.settle` leaves it.
        some_ask : bool
            Whether there may be queries that ask.
        widest, work
            The `extent` of the batch.
        """
        X, rows, offsets, basis, shrink = batch.X, batch.rows, batch.offsets, self.basis, self.shrink
        if some_ask:
            over_queries(self._learn, offsets, work, X, rows, offsets, batch.queries, by_query, widest)
            if not (by_query[STATE] == OPEN).any():  # so that nothing more need be compiled
                return float(np.cumsum(by_query[WEIGHT] * by_query[DISTANCE])[-1])  # in order, as kernels add
        if is_worth_threads(work):
            over_queries(self._solve, offsets, work, X, rows, offsets, n_starts, e, by_query, widest)
            by_query[STATE] = 0.0  # what follows only adds up
        reals, ints = self._room
        if widest > ints.shape[1]:
            reals, ints = self._room = transport_room(basis.shape[1], widest)
        return transport_distances(
            0, len(offsets) - 1, X, rows, offsets, basis, shrink, n_starts, e, by_query, reals, ints
        )

    def _learn(self, first, last, X, rows, offsets, queries, by_query, widest):
        # A batch may hold a query twice; whichever of two bounds of its gap is kept, it is right.
        room = gap_room(X.shape[1], widest)
        smallest_gaps(
            first, last, X, rows, offsets, queries, self.basis, self.shrink, self._rounding, self.gaps, by_query, room
        )

    def _solve(self, first, last, X, rows, offsets, n_starts, e, by_query, widest):
        room = transport_room(X.shape[1], widest)
        transport_distances(first, last, X, rows, offsets, self.basis, self.shrink, n_starts, e, by_query, *room)
