"""Suprema over boxes: each coordinate of a move has a bound of its own, so that R is the square of a weighted l1 norm."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from skfairrank._kernels import closed_forms as _closed
from skfairrank.adversaries._base import ClosedForm, ExactAdversary, gaps_of
from skfairrank.adversaries._score_distance import SCORE_DISTANCE, effective_sizes

__all__ = ["ExactBox", "ExactGaps", "ratio"]

_RADIUS = [Interval(Real, 0, None, closed="left")]
# The width to which the kinks of R are rounded off where a start is sought.
START_WIDTH = 0.1
MOST_ROUNDS = 30


class ExactBox(ExactAdversary):
    """The supremum over a box: each coefficient along the raw directions within r, each coordinate of the free move within delta.

    For scores w.x, ``R = mean_q n_q/2 (r sum_k |V_k.w| + delta ||w||_1)^2`` (docs/exact.md): what the paper's ascent comes to in
    effect.

    Parameters
    ----------
    subspace_radius : float, default=1.0
        Bound r on each coefficient along the metric's directions.
    feature_radius : float, default=0.02
        Bound delta on each coordinate of the free move, in feature units.
    score_distance : {"squared", "centered"}, default="squared"
        "centered": changes of scores count less their mean in each query, which puts ``n_q - (n_q mod 2)/n_q`` in place of n_q.
    """

    _parameter_constraints: dict = {
        "subspace_radius": _RADIUS,
        "feature_radius": _RADIUS,
        "score_distance": SCORE_DISTANCE,
    }

    def __init__(self, subspace_radius=1.0, feature_radius=0.02, score_distance="squared"):
        self.subspace_radius = subspace_radius
        self.feature_radius = feature_radius
        self.score_distance = score_distance

    def bounds(self, batches, metric, rho=1.0):
        self._validate_params()
        reach = np.full(batches.n_features, float(self.feature_radius))
        return Box(batches, metric, metric.directions_, float(self.subspace_radius), reach, self.score_distance)


class ExactGaps(ExactAdversary):
    """The supremum over moves of each feature by the groups' gap in it, independently of the others.

    For scores w.x, ``R = mean_q n_q/2 (sum_j (r g_j + delta) |w_j|)^2`` with g the metric's `gaps_` (docs/exact.md): a lasso in
    which a weight costs as much as its feature gives the group away. Nothing can be made up for, as along a direction: weights of
    opposite signs do not cancel.

    Parameters
    ----------
    gap_radius : float, default=1.0
        Bound r on the move of each feature, in units of the groups' gap in it.
    feature_radius : float, default=0.02
        Bound delta on each coordinate of a further move, in feature units.
    score_distance : {"squared", "centered"}, default="squared"
        As for `ExactBox`.
    """

    _parameter_constraints: dict = {"gap_radius": _RADIUS, "feature_radius": _RADIUS, "score_distance": SCORE_DISTANCE}
    uses_directions = False

    def __init__(self, gap_radius=1.0, feature_radius=0.02, score_distance="squared"):
        self.gap_radius = gap_radius
        self.feature_radius = feature_radius
        self.score_distance = score_distance

    def bounds(self, batches, metric, rho=1.0):
        self._validate_params()
        reach = float(self.gap_radius) * gaps_of(metric) + float(self.feature_radius)
        return Box(batches, metric, np.zeros((0, batches.n_features)), 0.0, reach, self.score_distance)


class Box(ClosedForm):
    """R = mean_size/2 (r sum_k |V_k.w| + sum_j reach_j |w_j|)^2, with `effective_sizes`."""

    def __init__(self, batches, metric, raw, subspace_radius, reach, score_distance="squared"):
        self.raw = np.ascontiguousarray(raw, dtype=np.float64)
        self.basis = np.array(metric.basis_, dtype=np.float64, order="C")
        self.shrink = np.array(metric.shrink_, dtype=np.float64)
        self.subspace_radius, self.reach = subspace_radius, reach
        self.is_centered = score_distance == "centered"
        #: Whether how far one item moves has nothing to do with others.
        self.moves_items_alone = not self.is_centered
        sizes = effective_sizes(batches.sizes, score_distance)
        self.mean_size = float((sizes * batches.weights).mean())
        #: Of the sizes themselves.
        self.actual_size = float((batches.sizes * batches.weights).mean())

    def measure(self, w):
        gradient = np.empty(len(w))
        value, spent = _closed.exact_box(
            w, self.raw, self.basis, self.shrink, self.mean_size, self.subspace_radius, self.reach, gradient
        )
        return value, spent, gradient, None

    def of_sizes(self, w, sizes) -> np.ndarray:
        """1/2 ||h(q) - h(q')||^2 of queries of these sizes, shape (n_queries,), of scores as they stand."""
        return np.asarray(sizes) * (self.measure(w)[0] / self.mean_size)

    def dual_norm(self, slope):
        steepest = max(map(ratio, np.abs(slope), self.reach), default=0.0)
        return steepest * ratio(self.actual_size**0.5, self.mean_size**0.5)

    def furthest(self, slope):
        """The move of each item, within the box, that goes furthest along a slope, shape (n_items, n_features)."""
        return self.subspace_radius * np.sign(slope @ self.raw.T) @ self.raw + self.reach * np.sign(slope)

    def minimize(self, run, rho, forces=None):
        return _Splitting(self, run, rho, forces).minimize()


class _Splitting:
    """The objective with its kinks split: z = (p, m, y+, y-), or (v, y+, y-) where single features bear no penalty.

    v = p - m with p, m >= 0 turns ||v||_1 into a linear function; for a direction V_k that is no axis, V_k.v = y+ - y- with y >=
    0, an equation that an augmented Lagrangian enforces, with a force for each direction. Zeros are then bounds that hold
    exactly.
    """

    def __init__(self, box: Box, run, rho, forces):
        self.run = run
        raw, r = box.raw / run.scale, box.subspace_radius
        d = raw.shape[1]
        is_axis = (raw != 0).sum(axis=1) == 1
        self.weight = box.reach / run.scale + r * np.abs(raw[is_axis]).sum(axis=0)
        sloped = raw[~is_axis]
        length = np.linalg.norm(sloped, axis=1)
        self.directions, self.slope_weight = sloped / length[:, None], r * length
        self.is_split = bool((self.weight > 0).any())
        self.d, self.K = d, len(sloped)
        self.linear = np.concatenate([*((2 if self.is_split else 1) * [self.weight]), 2 * list(self.slope_weight)])
        self.strength = rho * box.mean_size
        fit = forces is not None and len(forces) == self.K
        self.forces, self.stiffness = forces.copy() if fit else np.zeros(self.K), 1.0

    def split(self, v):
        y = self.directions @ v
        parts = [np.maximum(v, 0), np.maximum(-v, 0)] if self.is_split else [v]
        return np.concatenate([*parts, np.maximum(y, 0), np.maximum(-y, 0)])

    def bounds(self):
        v = 2 * self.d * [(0.0, None)] if self.is_split else self.d * [(None, None)]
        return v + 2 * self.K * [(0.0, None)]

    def weights(self, z):
        return z[: self.d] - z[self.d : 2 * self.d] if self.is_split else z[: self.d].copy()

    def slopes(self, z):
        return z[-2 * self.K : -self.K] - z[-self.K :] if self.K else np.zeros(0)

    def mismatch(self, z):
        """What the equations V_k.v = y_k leave."""
        return self.directions @ self.weights(z) - self.slopes(z)

    def objective(self, z):
        v, d, K = self.weights(z), self.d, self.K
        value, gradient = self.run.plain(v)
        total, off = float(self.linear @ z), self.mismatch(z)
        force = self.forces + self.stiffness * off
        on_v = gradient + self.directions.T @ force
        out = self.strength * total * self.linear
        out[:d] += on_v
        if self.is_split:
            out[d : 2 * d] -= on_v
        if K:
            out[-2 * K : -K] -= force
            out[-K:] += force
        penalty = 0.5 * self.strength * total**2 + float(off @ (self.forces + 0.5 * self.stiffness * off))
        return value + penalty, out

    def rounded(self, v):
        """The objective in the weights alone, with |x| as sqrt(x^2 + START_WIDTH^2)."""
        value, gradient = self.run.plain(v)
        y = self.directions @ v
        long_v, long_y = np.hypot(v, START_WIDTH), np.hypot(y, START_WIDTH)
        total = float(self.weight @ long_v + self.slope_weight @ long_y)
        slope = self.weight * v / long_v + (self.slope_weight * y / long_y) @ self.directions
        return value + 0.5 * self.strength * total**2, gradient + self.strength * total * slope

    def start(self):
        if self.run.is_warm:
            return self.split(self.run.given_start)
        # Not from within the kinks: scores would grow there until the policy is saturated, and no gradient leads out.
        z = self.split(self.run.start(self.rounded))
        self.forces = self.strength * float(self.linear @ z) * self.slope_weight * np.sign(self.slopes(z))
        return z

    def minimize(self):
        """Rounds of L-BFGS-B, each with new forces; returns the forces."""
        run, bounds, z = self.run, self.bounds(), self.start()
        worst, seen = np.inf, False
        for outer in range(MOST_ROUNDS):
            # The first rounds only have to show which way the forces move; later ones move little.
            tol = max(run.tol, 1e-3 * 10.0**-outer) if self.K else run.tol
            follow = run.descend if tol > run.tol or seen else run.minimize
            z, seen = follow(self.objective, z, bounds, self.weights, tol), tol == run.tol
            v, off = self.weights(z), self.mismatch(z)
            run.settle(v)
            furthest = np.abs(off).max(initial=0.0)
            self.forces = self.forces + self.stiffness * off
            if furthest <= run.tol * np.abs(v).max() and tol == run.tol:
                break
            if run.left <= 0:
                run.converged = False
                break
            if furthest > 0.25 * worst:
                self.stiffness *= 4.0
            worst = furthest
        else:
            run.converged = False
        # Directions whose y is zero lie in the kink; what the equation leaves of them is below the tolerance.
        settled = (self.slopes(z) == 0.0) if self.K else np.zeros(0, bool)
        run.settle(_onto_kinks(v, self.directions[settled], run.tol))
        return self.forces


def _onto_kinks(w, normals, tol):
    """Weights moved by less than the tolerance so that they are orthogonal to `normals`; zero weights stay zero."""
    free = w != 0
    if not len(normals) or not free.any():
        return w
    correction = np.linalg.lstsq(normals[:, free], normals[:, free] @ w[free], rcond=1e-8)[0]
    # Directions that nearly agree would impose their difference too, and move weights far.
    if np.abs(correction).max() > 10 * tol * np.abs(w).max():
        return w
    moved = w.copy()
    moved[free] -= correction
    return moved


def ratio(slope, radius) -> float:
    """slope / radius, and 0 where there is nothing to gain."""
    if slope == 0:
        return 0.0
    return float(slope / radius) if radius > 0 else np.inf
