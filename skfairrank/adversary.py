"""Adversaries: from weights and a batch to its hypothetical queries' distance, their unfairness, and its gradient.

Step (a) of Algorithm 1 (Bower et al. 2021). An adversary is an object with `attack(batch, w, lambda_)`, which returns an
`Attack`; adding one touches this file.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skfairrank._kernels import attack as _attack
from skfairrank._kernels import transport as _transport

__all__ = ["ADVERSARIES", "Ascent", "Attack", "ExactBox", "ExactBudget"]


class Attack(NamedTuple):
    """What an attack on a batch of queries found."""

    regularizer: float  # mean over queries of 1/2 ||h(q) - h(q')||^2
    query_distance: float  # mean over queries of d_Q(q, q')
    gradient: np.ndarray  # of the mean regularizer in the weights
    multiplier: float  # lambda after the dual step


class Ascent:
    """Two-phase ascent (Bower et al. 2021, appendix B): along the raw sensitive directions, then freely.

    Items are paired with themselves: an attacked item x' = x + V'c + e costs ||P e||^2. Starts are uniform in
    +-`subspace_init` for c and zero for e; without sensitive directions e starts uniform in +-`full_step_size`, since the
    gradient vanishes at the query itself.

    Parameters
    ----------
    metric : SensitiveSubspaceMetric
        Fitted.
    rho, epsilon : float
        Strength of the regulariser, and the budget of mean d_Q.
    subspace_step_size, subspace_n_steps, subspace_init : float, int, float
        Adam's step, number of steps, and range of starts along the raw directions.
    subspace_n_starts : int or None
        Starts drawn per step and shared by all items of the batch; None draws one for each item, as printed in the paper.
    full_step_size, full_n_steps : float, int
    rng : numpy.random.Generator
        For the starts.
    """

    LAMBDA_MIN = 1e-5

    def __init__(
        self,
        data,
        metric,
        *,
        rho,
        epsilon,
        subspace_step_size,
        subspace_n_steps,
        subspace_init,
        subspace_n_starts,
        full_step_size,
        full_n_steps,
        rng,
        **_,
    ):
        largest = max(float(data.X.max()), -float(data.X.min()))
        if not np.isfinite(4.0 * data.X.shape[1] * largest**2):
            raise ValueError(
                f"The distance between items overflows: features reach {largest:g}. Scale the features (StandardScaler)."
            )
        self.data, self.rho, self.epsilon, self.rng = data, float(rho), float(epsilon), rng
        self.raw = np.ascontiguousarray(metric.directions_, dtype=np.float64)
        self.basis = np.ascontiguousarray(metric.sensitive_basis_, dtype=np.float64)
        self.steps = (
            float(subspace_step_size),
            int(subspace_n_steps),
            float(full_step_size),
            int(full_n_steps),
        )
        self.subspace_init, self.n_starts = float(subspace_init), subspace_n_starts
        # Smallest distance within each query, found when the query first comes up.
        self.gaps = np.full(data.queries.n_queries, -1.0)
        self._layout: dict = {}
        self._gradient = np.empty(data.X.shape[1])

    def attack(self, batch, w, lambda_):
        path_of_row, size, buffers = self._paths(batch)
        inside, e, gap_inside, gap, cost, identity_cost, largest, regularizer, distance = buffers
        K, d = self.raw.shape
        if K:
            c = self.rng.random((len(size), K))
            c *= 2.0 * self.subspace_init
            c -= self.subspace_init
            e[:] = 0.0
        else:
            c = np.empty((len(size), 0))
            e[:] = self.rng.random((len(size), d))
            e *= 2.0 * self.steps[2]
            e -= self.steps[2]
        _attack.attack_along_paths(
            w, self.raw, self.basis, self.rho, lambda_, size, *self.steps, c, e, inside, gap_inside, gap, cost
        )
        gradient = self._gradient
        kept = _attack.settle_queries(
            batch.offsets, path_of_row, self.rho, lambda_, gap_inside, gap, cost, inside, e, identity_cost, largest,
            regularizer, gradient,
        )  # fmt: skip
        mean_distance = 0.0
        if kept:
            X = self.data.X
            _transport.smallest_gaps(X, batch.rows, batch.offsets, batch.queries, self.basis, self.gaps)
            mean_distance = _transport.transport_distances(
                X, batch.rows, batch.offsets, batch.queries, self.gaps, self.basis, inside, e, path_of_row, largest,
                identity_cost, distance,
            )  # fmt: skip
        mean = float(regularizer.sum()) / len(regularizer)
        if not (np.isfinite(mean) and np.isfinite(mean_distance)):
            raise ValueError(
                "The attack on a query is not finite: features or weights are too large. Scale the features (StandardScaler), or "
                "lower learning_rate, subspace_step_size or full_step_size."
            )
        return Attack(mean, mean_distance, gradient, self._dual_step(lambda_, mean_distance))

    def _dual_step(self, lambda_, distance):
        """Descent of the dual: lambda grows while the adversary overspends. The paper prints the opposite sign; its program
        has this one, with the step max(d, eps) / min(d, eps)."""
        spent, budget = max(distance, 1e-12), max(self.epsilon, 1e-12)
        step = max(spent, budget) / min(spent, budget)
        return max(self.LAMBDA_MIN, lambda_ + step * (distance - self.epsilon))

    def _paths(self, batch):
        """Which path each row of the batch follows, and each path's query size; kept while batches look alike."""
        sizes = np.diff(batch.offsets)
        key = sizes.tobytes()
        found = self._layout.get(key)
        if found is None:
            if self.n_starts is None:
                path_of_row, size = np.arange(len(batch.rows)), np.repeat(sizes, sizes).astype(np.float64)
            else:
                distinct, which = np.unique(sizes, return_inverse=True)
                position = np.arange(len(batch.rows)) - np.repeat(batch.offsets[:-1] - batch.offsets[0], sizes)
                path_of_row = np.repeat(which, sizes) * self.n_starts + position % self.n_starts
                size = np.repeat(distinct, self.n_starts).astype(np.float64)
            P, B, d = len(size), len(sizes), self.raw.shape[1]
            buffers = [
                np.empty((P, d)),
                np.empty((P, d)),
                *(np.empty(P) for _ in range(3)),
                *(np.empty(B) for _ in range(4)),
            ]
            if len(self._layout) > 64:
                self._layout.clear()
            found = self._layout[key] = (path_of_row, size, buffers)
        return found


class ExactBudget:
    """The supremum over moves of norm <= r in the sensitive subspace and a transport budget epsilon shared by all queries.

    For scores w.x (docs/exact.md): R = mean_q n_q/2 (a + b u_q)^2 with a = r ||A w||, b = ||P w|| and mean_q u_q^2 = epsilon.
    """

    def __init__(self, data, metric, *, rho, epsilon, subspace_radius, **_):
        self.rho, self.epsilon, self.radius = float(rho), float(epsilon), float(subspace_radius)
        self.basis = np.ascontiguousarray(metric.sensitive_basis_, dtype=np.float64)
        distinct, count = np.unique(data.queries.sizes, return_counts=True)
        self.sizes, self.shares = distinct.astype(np.float64), count / count.sum()
        self._gradient = np.empty(self.basis.shape[1])

    def attack(self, batch, w, lambda_):
        value, spent, multiplier = _attack.exact_budget(
            w, self.basis, self.sizes, self.shares, self.epsilon, self.radius, self._gradient
        )
        return Attack(value, spent, self._gradient, self.rho * multiplier)


class ExactBox:
    """The supremum over a box: each coefficient along the raw V_k within r, each coordinate of the free move within delta.

    For scores w.x (docs/exact.md): R = mean_q n_q/2 (r sum_k |V_k.w| + delta ||w||_1)^2.
    """

    def __init__(self, data, metric, *, subspace_radius, feature_radius, **_):
        self.subspace_radius, self.feature_radius = float(subspace_radius), float(feature_radius)
        self.raw = np.ascontiguousarray(metric.directions_, dtype=np.float64)
        self.basis = np.ascontiguousarray(metric.sensitive_basis_, dtype=np.float64)
        self.mean_size = float(data.queries.sizes.mean())
        self._gradient = np.empty(self.raw.shape[1])

    def attack(self, batch, w, lambda_):
        value = _attack.exact_box(
            w, self.raw, self.mean_size, self.subspace_radius, self.feature_radius, self._gradient
        )
        side = np.sign(w)
        fair = side - self.basis.T @ (self.basis @ side)
        return Attack(value, self.feature_radius**2 * float(fair @ fair), self._gradient, lambda_)


ADVERSARIES = {"ascent": Ascent, "exact": ExactBudget, "exact_box": ExactBox}
