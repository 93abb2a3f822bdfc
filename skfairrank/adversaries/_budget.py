"""The supremum within a transport budget that all queries share."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from skfairrank._kernels import closed_forms as _closed
from skfairrank.adversaries._base import ClosedForm, ExactAdversary
from skfairrank.adversaries._box import START_WIDTH, ratio
from skfairrank.adversaries._score_distance import SCORE_DISTANCE, effective_sizes

__all__ = ["ExactBudget"]


class ExactBudget(ExactAdversary):
    """The supremum over moves of norm <= r in the sensitive subspace and a transport budget epsilon shared by all queries.

    For scores w.x (docs/exact.md), ``R = mean_q n_q/2 (a + b u_q)^2`` with ``a = r ||A w||``, ``b = ||P w||`` and
    ``mean_q u_q^2 = epsilon``.

    Parameters
    ----------
    epsilon : float, default=0.01
        Bound on the mean d_Q, in squared feature units.
    subspace_radius : float, default=1.0
        Bound r on the norm of the sensitive move, in feature units.
    score_distance : {"squared", "centered"}, default="squared"
        "centered": changes of scores count less their mean in each query. With ``s_q^2 = 1 - (n_q mod 2)/n_q^2`` that is
        ``R = mean_q n_q/2 (a s_q + b u_q)^2`` over the queries of two items and more.
    """

    _parameter_constraints: dict = {
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "subspace_radius": [Interval(Real, 0, None, closed="left")],
        "score_distance": SCORE_DISTANCE,
    }

    def __init__(self, epsilon=0.01, subspace_radius=1.0, score_distance="squared"):
        self.epsilon = epsilon
        self.subspace_radius = subspace_radius
        self.score_distance = score_distance

    def bounds(self, batches, metric, rho=1.0):
        self._validate_params()
        return Budget(batches, metric, float(self.epsilon), float(self.subspace_radius), rho, self.score_distance)


class Budget(ClosedForm):
    """R of `ExactBudget`; `shares` are the fractions of queries (weighted) that have the distinct sizes.

    Centered, a query spends u_q^2 = s_q^2 v_q^2, and its n_q/2 (a s_q + b u_q)^2 is s_q^2 n_q/2 (a + b v_q)^2: as if the fraction
    of queries of its size were s_q^2 times what it is.
    """

    moves_items_alone = False

    def __init__(self, batches, metric, epsilon, radius, rho, score_distance="squared"):
        self.epsilon, self.radius, self.rho = epsilon, radius, float(rho)
        self.basis = np.array(metric.basis_, dtype=np.float64, order="C")
        self.shrink = np.array(metric.shrink_, dtype=np.float64)
        #: The rows along which moves cost nothing: A.
        self.free = self.basis[self.shrink == 1.0]
        self.is_centered = score_distance == "centered"
        #: Of each item what its squared move counts in the mean d_Q.
        self.item_shares = np.repeat(batches.weights / batches.sizes, batches.sizes) / len(batches.sizes)
        sizes, of_query = np.unique(batches.sizes, return_inverse=True)
        weight = np.bincount(of_query, weights=batches.weights)
        share, sizes = weight / weight.sum(), sizes.astype(np.float64)
        counting = effective_sizes(sizes, score_distance) / sizes * share
        self.sizes, self.shares = sizes[counting > 0], counting[counting > 0]
        #: By how much larger weights may be than if scores were compared as they stand.
        self.stretch = ratio((share @ sizes) ** 0.5, (counting @ sizes) ** 0.5)

    def measure(self, w):
        gradient = np.empty(len(w))
        value, spent, multiplier = self._measure(w, self.basis, self.shrink, gradient)
        return value, spent, gradient, self.rho * multiplier

    def _measure(self, w, basis, shrink, gradient):
        return _closed.exact_budget(w, basis, shrink, self.sizes, self.shares, self.epsilon, self.radius, gradient)

    def norms(self, w) -> tuple[float, float]:
        """a and b: an item that moves by u outside of the subspace changes its score by at most a + b u."""
        left = 1.0 - self.shrink
        b = float(np.linalg.norm(self.scaled(w, np.divide(1.0, left, out=np.zeros_like(left), where=left > 0))))
        return self.radius * float(np.linalg.norm(self.free @ w)), b if b > 1e-12 * np.linalg.norm(w) else 0.0

    def of_sizes(self, w, sizes) -> np.ndarray:
        """1/2 ||h(q) - h(q')||^2 of queries of these sizes where the budget is spent at its best, of scores as they stand."""
        sizes = np.asarray(sizes, dtype=np.float64)
        a, b = self.norms(w)
        if b == 0 or self.epsilon == 0:
            return sizes / 2.0 * a**2
        # u_q = a b n_q / (2 kappa - n_q b^2), with kappa the multiplier of the budget; the largest queries get what is left.
        multiplier, largest = self.measure(w)[3] / self.rho, self.sizes.max()

        def spends(n):
            return a * b * n / np.maximum(2.0 * multiplier - n * b**2, np.finfo(float).tiny)

        others = self.sizes < largest
        rest = self.epsilon - self.shares[others] @ spends(self.sizes[others]) ** 2
        of_largest = np.sqrt(max(rest, 0.0) / self.shares[~others].sum())
        return sizes / 2.0 * (a + b * np.where(sizes < largest, spends(np.minimum(sizes, largest)), of_largest)) ** 2

    def furthest(self, slope):
        """The moves of all items, within the budget, that go furthest along a slope, shape (n_items, n_features)."""
        along, left = slope @ self.free.T, 1.0 - self.shrink
        back = np.divide(1.0, left, out=np.zeros_like(left), where=left > 0)
        dear = self.scaled(slope, back) / self.item_shares[:, None]
        spent = self.item_shares @ (dear**2).sum(axis=1)
        lengths = np.linalg.norm(along, axis=1, keepdims=True)
        sensitive = self.radius * np.divide(along, lengths, out=np.zeros_like(along), where=lengths > 0) @ self.free
        return sensitive + np.sqrt(self.epsilon / spent if spent > 0 else 0.0) * self.scaled(dear, back)

    def dual_norm(self, slope):
        sensitive, fair = np.linalg.norm(self.free @ slope), np.linalg.norm(self.scaled(slope, 1.0 - self.shrink))
        return self.stretch * max(ratio(sensitive, self.radius), ratio(fair, np.sqrt(self.epsilon)))

    def scaled(self, x, factors):
        """x, a vector or rows, with the parts along each row of the metric's basis multiplied by a factor."""
        return x + ((factors - 1.0) * (x @ self.basis.T)) @ self.basis

    def minimize(self, run, rho, forces=None):
        """R has two kinks, where a = 0 and where b = 0. Both norms are smoothed, tighter each time; then what is found so is
        tried against the solutions within either kink, where R is smooth."""
        free, scale = self.free, run.scale
        rank, d = self.basis.shape
        if scale.max() < 100.0 * scale.min():
            # R is made of Euclidean norms: scaling by column would bend them, which costs more than such columns do.
            scale[:] = np.median(scale)
        # sqrt(||A w||^2 + s^2) and its like for b: two more coordinates held at s, the first along one more free row.
        longer_basis, longer_shrink = np.zeros((rank + 1, d + 2)), np.append(self.shrink, 1.0)
        longer_basis[:rank, :d], longer_basis[rank, d] = self.basis, 1.0
        typical = float(np.median(scale))  # smoothing is in units of weights

        def objective(v, smoothing=0.0):
            value, gradient = run.plain(v)
            longer, slope = np.concatenate([v / scale, [smoothing, smoothing]]), np.empty(d + 2)
            penalty, _, _ = self._measure(longer, longer_basis, longer_shrink, slope)
            return value + rho * penalty, rho * slope[:d] / scale + gradient

        def within(projector, v):
            """The best weights that the projector keeps as they are."""

            def onto(u):
                return scale * (projector @ (u / scale))

            def projected(u):
                value, slope = objective(onto(u))
                return value, (projector @ (scale * slope)) / scale

            return onto(run.minimize(projected, onto(v), None, onto, run.tol))

        if len(free) == 0 or self.radius == 0 or self.epsilon == 0:  # no kinks
            run.settle(run.minimize(objective, run.start(objective), None, np.array, run.tol))
            return
        v = run.start(lambda at: objective(at, START_WIDTH / typical))
        for smoothing in (1e-4, 1e-5):
            v = run.descend(lambda at, s=smoothing / typical: objective(at, s), v, None, np.array, run.tol)
        inside = free.T @ free
        candidates, w = [(v, run.converged)], v / scale
        sensitive = np.linalg.norm(free @ w)
        try:
            # Away from the kinks there is nothing to smooth.
            if min(sensitive, np.linalg.norm(w - inside @ w)) > 1e-3 * np.linalg.norm(w):
                candidates.append((run.minimize(objective, v, None, np.array, run.tol), run.converged))
            for projector in (np.eye(d) - inside, inside):
                candidates.append((within(projector, v), run.converged))
        finally:  # also where a callback or Ctrl-C ends one of these: what is best so far
            best, run.converged = min(candidates, key=lambda candidate: objective(candidate[0])[0])
            run.settle(best)
