"""The two-phase ascent for any score: it asks for values and slopes at the attacked items, and nothing else."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels.linear import adam_factors, climb_rows
from skfairrank.adversaries._pairing import Pairing

__all__ = ["GeneralAscent"]


class GeneralAscent:
    """Every item of a batch has its own path; one pass through the score serves all of them.

    Parameters
    ----------
    score : skfairrank.scores.Score
    raw : ndarray, shape (n_directions, n_features)
        Rows along which the first phase moves.
    basis, shrink : ndarray, shapes (rank, n_features) and (rank,)
        Of the fair metric.
    n_numbers : int
        One more than the largest number of a query.
    rho, subspace_step_size, subspace_n_steps, subspace_init, full_step_size, full_n_steps
        See `Ascent`.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        score,
        raw,
        basis,
        shrink,
        n_numbers,
        *,
        rho,
        subspace_step_size,
        subspace_n_steps,
        subspace_init,
        full_step_size,
        full_n_steps,
        rng,
    ):
        self.score, self.raw, self.basis, self.rho, self.rng = score, raw, np.array(basis), rho, rng
        self.kept = (1.0 - (1.0 - shrink) ** 2)[:, None] * basis  # the metric is I - kept' B
        self.subspace = subspace_step_size, subspace_n_steps, subspace_init
        self.full = full_step_size, full_n_steps
        self.pairing = Pairing(basis, shrink, n_numbers)

    def attack(self, batch, theta, multiplier, most_spent):
        """Mean regulariser, mean d_Q, and the gradient of the first in theta."""
        X = np.asarray(batch.X[batch.rows], dtype=np.float64)
        sizes, starts = np.diff(batch.offsets), batch.offsets[:-1]
        h = self.score.values(theta, X)

        def total(values):
            return np.add.reduceat(values, starts)

        c, e = self._starts(len(X))
        if len(self.raw):
            free = np.zeros((0, len(self.raw)))
            self._climb(self.score.along(theta, X, self.raw), h, c, np.zeros(len(X)), free, free, *self.subspace[:2])
        inside = X + c @ self.raw
        pull = np.repeat(2.0 * multiplier / sizes, sizes)
        self._climb(self.score.along(theta, inside), h, e, pull, self.kept, self.basis, *self.full)

        squares_inside = total((self.score.values(theta, inside) - h) ** 2)
        squares = total((self.score.values(theta, inside + e) - h) ** 2)
        cost = (e * self._fair(e)).sum(axis=1)
        spent = total(cost) / sizes
        # Per query the better of the two candidates; if that spends too much on the average, all keep the same share of e.
        share = (0.5 * self.rho * squares - multiplier * spent >= 0.5 * self.rho * squares_inside).astype(np.float64)
        mean_spent = float((batch.weight * share * spent).mean())
        if mean_spent > most_spent:
            share *= np.sqrt(most_spent / mean_spent)
        attacked = inside + np.repeat(share, sizes)[:, None] * e
        gap = self.score.values(theta, attacked) - h
        regularizer = float((batch.weight * 0.5 * total(gap**2)).mean())
        weighted = gap * np.repeat(batch.weight, sizes) / len(sizes)
        gradient = self.score.parameter_gradient(theta, np.vstack([attacked, X]), np.r_[weighted, -weighted])
        return regularizer, self.pairing.mean_distance(batch, e, cost, spent, share), gradient

    def _starts(self, n_items):
        """Coefficients along the directions, and free moves.

        Without directions the free moves begin away from zero, since the gradient is zero at the query itself.
        """
        (K, d), (_, _, init) = self.raw.shape, self.subspace
        if K:
            return init * (2.0 * self.rng.random((n_items, K)) - 1.0), np.zeros((n_items, d))
        return np.zeros((n_items, 0)), self.full[0] * (2.0 * self.rng.random((n_items, d)) - 1.0)

    def _fair(self, e):
        """M e, with M the matrix of the fair metric."""
        return e - (e @ self.kept.T) @ self.basis

    def _climb(self, at, h, z, pull, kept, basis, step_size, n_steps):
        """Ascent of ``rho/2 (h(z) - h)^2 - pull/2 z.Mz`` by Adam from z, in place, item by item; M is I less kept' basis."""
        moments, work = np.zeros((2, *z.shape)), np.empty(z.shape[1])
        for t in range(1, n_steps + 1):
            values, slopes = at(z)
            slopes = np.require(slopes, np.float64, "CW")  # one kind of array, for which the kernel is compiled once
            weight = self.rho * (values - h)
            climb_rows(z, slopes, weight, pull, kept, basis, moments, work, *adam_factors(t, step_size))
