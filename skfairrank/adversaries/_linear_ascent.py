"""The paper's two-phase ascent for linear scores, where random starts can be shared: ascent, acceptance, pairing."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from skfairrank._kernels.attack import (
    FIRST_PATH,
    FULL,
    LAMBDA,
    MOST_SPENT,
    N_STARTS,
    RHO,
    SUBSPACE,
    accept,
    ascend,
)
from skfairrank._threads import over_range
from skfairrank.adversaries._pairing import Pairing

__all__ = ["LinearAscent"]


class LinearAscent:
    """Two-phase ascent for scores w.x: along the raw directions V, then freely.

    An attacked item x' = x + V'c + e is paired with x. Per query ``rho/2 ||h(q) - h(q')||^2 - lambda d_Q(q, q')`` is maximised by
    Adam over c, from random starts, then over e, from zero; the better of the two candidates is kept. Moves V'c cost nothing.
    Without directions e has the random starts.

    Parameters
    ----------
    raw : ndarray, shape (n_directions, n_features)
        Rows along which the first phase moves.
    basis, shrink : ndarray, shapes (rank, n_features) and (rank,)
        Of the fair metric: a free move e costs ||z(e)||^2 with z(e) = e - sum_r t_r (b_r.e) b_r.
    n_queries : int
        One more than the largest number of a query.
    rho : float
    subspace_step_size, subspace_n_steps, subspace_init : float, int, float
        Adam's step and number of steps along the directions; starts are uniform in +-subspace_init.
    n_starts : int
        Starts drawn for each attack and shared by the items of the batch; 0 draws one for each item.
    full_step_size, full_n_steps : float, int
        Adam's step and number of steps of the free move; without directions its starts are uniform in +-full_step_size.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        raw,
        basis,
        shrink,
        n_queries,
        *,
        rho,
        subspace_step_size,
        subspace_n_steps,
        subspace_init,
        n_starts,
        full_step_size,
        full_n_steps,
        rng,
    ):
        # Copies, so that kernels are compiled for one kind of array: a metric's may be read-only.
        self.raw, basis = np.array(raw, np.float64, order="C"), np.array(basis, np.float64, order="C")
        self.pairing = Pairing(basis, np.array(shrink, np.float64), n_queries)
        self.n_starts, self.rng = n_starts, rng
        K, d = self.raw.shape
        self._lost = 1.0 - (1.0 - self.pairing.shrink) ** 2
        self._settings = settings = np.zeros(8)
        settings[[RHO, N_STARTS]] = rho, n_starts
        settings[SUBSPACE : SUBSPACE + 2] = subspace_step_size, subspace_n_steps
        settings[FULL : FULL + 2] = full_step_size, full_n_steps
        self._n_features = d
        # Nanoseconds that one path takes, roughly.
        self._work = 4.0 * (K * subspace_n_steps + d * full_n_steps)
        self._width, self._n_drawn = (subspace_init, K) if K else (full_step_size, d)
        # The same few sizes come up again and again where items share starts.
        self._paths_for = lru_cache(maxsize=16 if n_starts else 1)(self._lay_out)

    def attack(self, batch, w, lambda_, most_spent):
        """Attack a batch of queries at weights w.

        Parameters
        ----------
        batch : Batch
            Of X any dtype and layout will do.
        w : ndarray of float64, shape (n_features,)
        lambda_ : float
            The price of d_Q.
        most_spent : float
            What the batch may spend on the average. Where it would spend more, all queries keep the same share of their free
            moves.

        Returns
        -------
        regularizer, query_distance : float
            Means over queries, times their weights, of 1/2 ||h(q) - h(q')||^2 and of d_Q. They are not finite where a number
            overflows.
        gradient : ndarray, shape (n_features,)
            Of the mean regularizer.
        """
        return self.attack_from(None, batch, w, lambda_, most_spent)

    def attack_from(self, starts, batch, w, lambda_, most_spent):
        """As `attack`, from given starts, which are overwritten.

        Parameters
        ----------
        starts : ndarray of float64, shape (n_paths, n_directions, or n_features without directions), or None
            With shared starts the first `n_starts` are those of queries of the size that comes first in the batch, the next
            `n_starts` those of the next size that comes up, and so on; item i of a query takes start i modulo `n_starts` of its
            size. Without: one for each row of the batch.
        """
        size, by_path, by_query = self._paths_for(batch.offsets.tobytes())
        P, raw, settings, pairing = len(size), self.raw, self._settings, self.pairing
        starts = self._draw(P) if starts is None else starts
        c, e = (starts, np.zeros((P, self._n_features))) if len(raw) else (np.empty((P, 0)), starts)
        settings[LAMBDA], settings[MOST_SPENT] = lambda_, most_spent
        metric = self._lost, pairing.basis
        over_range(ascend, P, P * self._work, c, e, by_path, size, raw, w, *metric, settings)
        gradient = np.zeros(self._n_features)
        regularizer, distance, n_open = accept(
            batch.offsets, batch.queries, batch.weight, pairing.gaps, settings, by_path, c, e, raw, by_query, gradient
        )
        if n_open:
            distance = pairing.solve(batch, e, self.n_starts, by_query, distance)
        return regularizer, distance, gradient

    def _lay_out(self, offsets: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The query size of each path of a batch with these offsets, and the arrays that `accept` fills, by path and by query.

        Queries of one size share `n_starts` paths; with `n_starts` = 0 each item has its own.
        """
        bounds = np.frombuffer(offsets, np.int64)
        sizes = np.diff(bounds)
        if self.n_starts:
            number = {n: i for i, n in enumerate(dict.fromkeys(sizes.tolist()))}
            size = np.repeat(np.array([*number], np.float64), self.n_starts)
            first = np.array([self.n_starts * number[n] for n in sizes.tolist()])
        else:
            size, first = np.repeat(sizes, sizes).astype(np.float64), bounds[:-1]
        by_path, by_query = np.zeros((5, len(size))), np.empty((6, len(sizes)))
        by_query[FIRST_PATH] = first
        return size, by_path, by_query

    def _draw(self, n_paths: int) -> np.ndarray:
        """Random starts."""
        return self._width * (2.0 * self.rng.random((n_paths, self._n_drawn)) - 1.0)
