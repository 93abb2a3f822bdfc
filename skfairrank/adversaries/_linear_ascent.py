"""The paper's two-phase ascent for linear scores, where random starts can be shared: three or four small kernels in turn."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from skfairrank._kernels import ascent as _ascent
from skfairrank._kernels.attack import FIRST_PATH, settle
from skfairrank._threads import over_range
from skfairrank.adversaries._pairing import Pairing

__all__ = ["LinearAscent"]

# Random numbers drawn at once. The stream does not depend on it.
_STOCK = 4096


class LinearAscent:
    """Two-phase ascent for scores w.x: along the raw directions V, then freely.

    An attacked item x' = x + V'c + e is paired with x. Per query ``rho/2 ||h(q) - h(q')||^2 - lambda d_Q(q, q')`` is maximised by
    Adam over c, from random starts, then over e, from zero; the better of the two candidates is kept. Without directions e has the
    random starts.

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
        (K, d), rank = self.raw.shape, len(basis)
        self.pairing = Pairing(basis, np.array(shrink, np.float64), n_queries)
        self.n_starts, self.rng = n_starts, rng
        self._settings = np.zeros(8)
        self._settings[[_ascent.RHO, _ascent.N_STARTS]] = rho, n_starts
        self._settings[[_ascent.SUBSPACE_STEP, _ascent.SUBSPACE_STEPS]] = subspace_step_size, subspace_n_steps
        self._settings[[_ascent.FULL_STEP, _ascent.FULL_STEPS]] = full_step_size, full_n_steps
        self._directions = np.vstack([np.zeros((1, d)), basis])  # the first is w
        self._block_shape = _ascent.block_rows(K, d, rank), _ascent.LANES
        self._work = _ascent.climb_work(K, d, self._settings)
        self._width, self._n_moved = (subspace_init, K) if K else (full_step_size, d)
        self._stock, self._used = np.empty(0), 0
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
            What the batch may spend on the average: where it would spend more, all queries keep the same share of their free moves.

        Returns
        -------
        regularizer, query_distance : float
            Means over queries, times their weights, of 1/2 ||h(q) - h(q')||^2 and of d_Q. They are not finite where a number
            overflows.
        gradient : ndarray, shape (n_features,)
            Of the mean regularizer.
        """
        offsets, settings = batch.offsets, self._settings
        paths = self._paths_for(offsets.tobytes())
        starts = self._draw(len(paths.size))
        settings[_ascent.LAMBDA], settings[_ascent.MOST_SPENT] = lambda_, most_spent
        self._directions[0] = w
        over_range(self._climb, len(starts), len(starts) * self._work, starts, paths, step=_ascent.LANES)
        gradient = np.empty(len(w))
        regularizer, distance, n_open = settle(
            offsets, batch.queries, batch.weight, self.pairing.gaps, settings, paths.numbers, starts, paths.moves, self.raw,
            paths.by_query, gradient,
        )  # fmt: skip
        if n_open:
            distance = self.pairing.settle_open(batch, paths.moves, self.n_starts, paths.by_query)
        return regularizer, distance, gradient

    def _climb(self, first, last, starts, paths):
        _ascent.climb(
            first, last, starts, paths.size, self.raw, self._directions, self.pairing.shrink, self._settings, paths.moves,
            paths.numbers, np.empty(self._block_shape),
        )  # fmt: skip

    def _lay_out(self, offsets: bytes) -> _Paths:
        """Room for the paths of a batch with these offsets: queries of one size share `n_starts` paths, or each item has its own."""
        bounds = np.frombuffer(offsets, np.int64)
        sizes = np.diff(bounds)
        if self.n_starts:
            number = {n: i for i, n in enumerate(dict.fromkeys(sizes.tolist()))}
            size = np.repeat(np.array([*number], np.float64), self.n_starts)
            first = [self.n_starts * number[n] for n in sizes.tolist()]
        else:
            size, first = np.repeat(sizes, sizes).astype(np.float64), bounds[:-1]
        by_query = np.empty((6, len(sizes)))
        by_query[FIRST_PATH] = first
        return _Paths(size, np.empty((len(size), self.raw.shape[1])), np.empty((5, len(size))), by_query)

    def _draw(self, n_paths: int) -> np.ndarray:
        """Random starts, (n_paths, numbers that they move)."""
        needed = n_paths * self._n_moved
        if self._used + needed > len(self._stock):
            fresh = self._width * (2.0 * self.rng.random(max(_STOCK, needed)) - 1.0)
            self._stock, self._used = np.concatenate([self._stock[self._used :], fresh]), 0
        self._used += needed
        return self._stock[self._used - needed : self._used].reshape(n_paths, -1)


class _Paths(NamedTuple):
    """The paths of a batch and the arrays that an attack fills; see `_kernels.ascent.climb` and `_kernels.attack.settle`."""

    size: np.ndarray
    moves: np.ndarray
    numbers: np.ndarray
    by_query: np.ndarray
