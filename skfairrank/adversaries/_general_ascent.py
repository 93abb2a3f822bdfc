"""The two-phase ascent for any score: it asks for values and slopes at the attacked items, and nothing else."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels.attack import ascend_rows
from skfairrank._kernels.linear import BETA1, BETA2, TINY, adam_factors
from skfairrank._queries import centred
from skfairrank.adversaries._pairing import Pairing

__all__ = ["GeneralAscent", "Items", "adam", "affordable"]


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
    is_centered : bool
        Whether changes of scores count less their mean in each query.
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
        is_centered=False,
    ):
        self.score, self.raw, self.basis, self.rho, self.rng = score, raw, np.array(basis), rho, rng
        self.lost = 1.0 - (1.0 - np.asarray(shrink)) ** 2  # the metric is I - sum_r lost_r b_r b_r'
        self.is_centered = is_centered
        self.subspace = subspace_step_size, subspace_n_steps, subspace_init
        self.full = full_step_size, full_n_steps
        self.pairing = Pairing(basis, shrink, n_numbers)

    def attack(self, batch, theta, multiplier, most_spent):
        """Mean regulariser, mean d_Q, and the gradient of the first in theta."""
        items = Items(self.score, theta, batch, self.rho, self.is_centered)
        c, e = self._starts(batch.offsets)
        if len(self.raw):
            free = self.lost[:0], np.zeros((0, len(self.raw)))
            at = self.score.along(theta, items.X, self.raw)
            self._ascend(items, at, c, np.zeros(len(items.X)), *free, *self.subspace[:2])
        inside = items.X + c @ self.raw
        price = items.per_row(2.0 * multiplier / items.sizes)
        self._ascend(items, self.score.along(theta, inside), e, price, self.lost, self.basis, *self.full)

        squares_inside = items.total(items.change(inside) ** 2)
        squares = items.total(items.change(inside + e) ** 2)
        cost = (e * self._fair(e)).sum(axis=1)
        spent = items.total(cost) / items.sizes
        # Per query the better of the two candidates; if that spends too much on the average, all keep the same share of e.
        is_better = 0.5 * self.rho * squares - multiplier * spent >= 0.5 * self.rho * squares_inside
        share = affordable(is_better, spent, batch.weight, most_spent)
        regularizer, gradient = items.regularizer(inside + items.per_row(share)[:, None] * e)
        return regularizer, self.pairing.mean_distance(batch, e, cost, spent, share), gradient

    def _starts(self, offsets):
        """Coefficients along the directions, and free moves.

        Without directions the free moves begin away from zero, since the gradient is zero at the query itself.
        """
        (K, d), (_, _, init), n_items = self.raw.shape, self.subspace, offsets[-1]
        if K:
            return self._uniform(init, offsets, K), np.zeros((n_items, d))
        return np.zeros((n_items, 0)), self._uniform(self.full[0], offsets, d)

    def _uniform(self, width, offsets, n_columns):
        """Uniform in +-width. Where scores count centered, the items of a query start in pairs at opposite points.

        A score goes on to that side of the mean on which it starts, and most can be gained where as many rise as fall.
        """
        starts = width * (2.0 * self.rng.random((offsets[-1], n_columns)) - 1.0)
        if self.is_centered:
            place = np.arange(len(starts)) - np.repeat(offsets[:-1], np.diff(offsets))
            second = np.flatnonzero(place % 2)
            starts[second] = -starts[second - 1]
        return starts

    def _fair(self, e):
        """M e, with M the matrix of the fair metric."""
        return e - (e @ self.basis.T * self.lost) @ self.basis

    def _ascend(self, items, at, z, price, lost, basis, step_size, n_steps):
        """Ascent of ``rho/2 change(z)^2 - price/2 z.Mz`` by Adam from z, in place, item by item."""
        m, v = np.zeros(z.shape), np.zeros(z.shape)
        for t in range(1, n_steps + 1):
            values, slopes = at(z)
            # One kind of array, so that the kernel is compiled once.
            slopes = np.require(slopes, np.float64, ("C", "W"))
            weight = self.rho * items.change_to(values)
            ascend_rows(z, slopes, weight, price, lost, basis, m, v, adam_factors(t, step_size))


class Items:
    """The items of a batch at some parameters, and what happens to their scores when they move to Z (n_rows, n_features)."""

    def __init__(self, score, theta, batch, rho, is_centered):
        self.score, self.theta, self.batch, self.rho, self.is_centered = score, theta, batch, rho, is_centered
        self.X = np.asarray(batch.X[batch.rows], dtype=np.float64)
        self.sizes = np.diff(batch.offsets)
        self.h = score.values(theta, self.X)

    def change(self, Z):
        """h(z) - h(x) of each item; centered, less its mean in the query."""
        return self.change_to(self.score.values(self.theta, Z))

    def change_to(self, h):
        """The same from the scores h of Z."""
        change = h - self.h
        return centred(change, self.batch.offsets) if self.is_centered else change

    def slope(self, Z):
        """Gradient of rho/2 times the sum of squared changes in each item's z."""
        return self.rho * self.change(Z)[:, None] * self.score.input_gradient(self.theta, Z)

    def total(self, values):
        return np.add.reduceat(values, self.batch.offsets[:-1])

    def per_row(self, of_queries):
        return np.repeat(of_queries, self.sizes)

    def regularizer(self, Z):
        """Mean over queries of half the sum of squared changes, and its gradient in theta."""
        change, weight = self.change(Z), self.batch.weight
        value = float((weight * 0.5 * self.total(change**2)).mean())
        # Centered changes sum to zero, so that their mean adds nothing to the gradient.
        weighted = change * self.per_row(weight) / len(self.sizes)
        return value, self.score.parameter_gradient(self.theta, np.vstack([Z, self.X]), np.r_[weighted, -weighted])


def affordable(is_kept, spent, weight, most_spent):
    """The share of its moves that each query keeps: all or nothing, and all less alike if they spend too much on the average."""
    share = is_kept.astype(np.float64)
    mean_spent = float((weight * share * spent).mean())
    return share * np.sqrt(most_spent / mean_spent) if mean_spent > most_spent else share


def adam(z, slope_at, step_size, n_steps, onto=None):
    """Ascent by Adam from z; returns where it ends. After each step z is put where `onto` says."""
    m, v = np.zeros_like(z), np.zeros_like(z)
    for t in range(1, n_steps + 1):
        slope = slope_at(z)
        m = BETA1 * m + (1.0 - BETA1) * slope
        v = BETA2 * v + (1.0 - BETA2) * slope * slope
        z = z + step_size / (1.0 - BETA1**t) * m / (np.sqrt(v / (1.0 - BETA2**t)) + TINY)
        if onto is not None:
            z = onto(z)
    return z
