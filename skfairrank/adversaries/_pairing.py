"""d_Q between a query and its attacked copy: an optimal pairing of items, which is nearly always the identity."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels.transport import smallest_gaps, transport_distances

__all__ = ["Pairing"]


class Pairing:
    """Distances of attacked queries, with what is known of the smallest distance within each query."""

    def __init__(self, basis, shrink, n_numbers):
        self.basis, self.gaps = basis, np.zeros(n_numbers)

    def mean_distance(self, batch, e, cost, spent, share):
        B = len(batch.queries)
        if not share.any():
            return 0.0
        largest = share * np.sqrt(np.maximum(np.maximum.reduceat(cost, batch.offsets[:-1]), 0.0))
        identity, distance = share**2 * spent, np.zeros(B)
        smallest_gaps(0, B, batch.X, batch.rows, batch.offsets, batch.queries, self.basis, largest, self.gaps)
        transport_distances(
            0,
            B,
            batch.X,
            batch.rows,
            batch.offsets,
            batch.queries,
            self.gaps,
            self.basis,
            e,
            np.arange(len(e)),
            share,
            largest,
            identity,
            distance,
        )
        return float((batch.weight * distance).mean())
