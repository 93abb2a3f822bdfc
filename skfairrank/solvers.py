"""The deterministic solver: exact expectations and an exact adversary make the objective a function of the weights alone.

Minimises -mean U(w) + rho R(w) + alpha/2 ||w||^2 by L-BFGS-B. R has kinks, and its fair solutions sit in them, so they are split
rather than smoothed: w = p - m with p, m >= 0 turns ||w||_1 into a linear function, and for a sensitive direction V_k that is no
axis, V_k.w = y+ - y- with y >= 0, an equation that an augmented Lagrangian enforces. Zeros are then bounds that hold exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from skfairrank import scores
from skfairrank._kernels import attack as _attack
from skfairrank._kernels import exact as _exact
from skfairrank._threads import one_blas_thread, over_queries
from skfairrank.adversary import ExactBox, ExactBudget
from skfairrank.training import TrainingState

__all__ = ["Zeros", "solve", "zeros_of"]

# How a start is sought: the strength of the ridge, for features of unit deviation; how many signs are changed, one at a time; the
# most iterations for each; and the width to which the kinks of R are rounded off. Of 1,000 small random tasks 15 ended more
# than .001 below thousands of steps of Adam without this, and 1 with it; 42 and 19 ended below the best of eight random starts.
START_RIDGE, START_FLIPS, START_STEPS, START_WIDTH = 0.01, 3, 15, 0.1

# Where the gradient vanishes, the objective is looked at along the ray through the solution, at these scales. Where it is better
# by so much there, the solver goes on from there; if that happens so often, it does not report convergence.
PLATEAU_SCALES, PLATEAU_GAIN, MOST_PLATEAUS = (4.0**-6, 4.0**-4, 4.0**-2, 0.25, 0.5, 2.0, 4.0, 16.0), 1e-4, 5


@dataclass
class Zeros:
    """Kinks of the box at which a solution sits.

    Parameters
    ----------
    features : ndarray of bool, shape (n_features,)
        Where ``w_j = 0``.
    directions : ndarray of bool, shape (n_directions,)
        Where ``V_k . w = 0``.
    """

    features: np.ndarray
    directions: np.ndarray

    def projector(self, raw: np.ndarray) -> np.ndarray:
        """Projector onto the weights that share these zeros, shape (n_features, n_features)."""
        normals = np.vstack([np.eye(len(self.features))[self.features], raw[self.directions]])
        if not len(normals):
            return np.eye(len(self.features))
        _, singular, rows = np.linalg.svd(normals / np.linalg.norm(normals, axis=1, keepdims=True), full_matrices=False)
        rows = rows[singular > 1e-10 * singular[0]]
        return np.eye(len(self.features)) - rows.T @ rows


class _Stopped(Exception):
    """A callback asked to stop."""


class _Utility:
    """Mean expected utility of all training queries and its gradient, at the weights asked last.

    Weights are those of features divided by their deviation within queries (`scale`), which is all that rankings see of them: an
    income in cents, or a year, must not stop the solver.
    """

    def __init__(self, data):
        self.data, self.order = data, data.queries.order
        self.scale = _deviation_within_queries(data)
        n = len(self.order)
        self.slope, self.utility = np.empty(n), np.empty(data.queries.n_queries)
        self.gain = data.gain[self.order]
        self.work = 2.0 * _exact.subset_work(data.queries.sizes)
        self.w, self.value, self.gradient = None, 0.0, np.empty(data.X.shape[1])

    def __call__(self, v):
        w = v / self.scale
        if self.w is None or not np.array_equal(w, self.w):
            offsets = self.data.queries.offsets
            h = scores.values(self.data.X, self.order, w)
            over_queries(
                _exact.exact_gradient,
                offsets,
                self.work,
                h,
                offsets,
                self.gain,
                np.empty(0),
                self.data.discount,
                self.slope,
                self.utility,
            )
            scores.pull_back(self.data.X, self.order, self.slope, 1.0 / len(self.utility), self.gradient)
            self.gradient /= self.scale
            self.w, self.value = w, float(self.utility.mean())
        return self.value, self.gradient


def _deviation_within_queries(data) -> np.ndarray:
    """Root mean square of each feature about the mean of its query; 1 where that is zero up to rounding."""
    offsets, sizes = data.queries.offsets, data.queries.sizes
    X = data.X[data.queries.order].astype(np.float64)  # in the order of queries: sums do not depend on that of the rows
    largest = np.abs(X).max(axis=0)
    X -= np.repeat(np.add.reduceat(X, offsets[:-1], axis=0) / sizes[:, None], sizes, axis=0)
    deviation = np.sqrt((X * X).mean(axis=0))
    return np.where(deviation > 1e-12 * largest, deviation, 1.0)


class _Iteration(NamedTuple):
    """Weights, and what the history says of them."""

    w: Any
    utility: float
    regularizer: float
    query_distance: float
    multiplier: float


@dataclass
class _Run:
    """One call of `solve`: its iterations, over several minimisations.

    An iteration is added or replaced at once: Ctrl-C may come after any call, and weights and history are to agree.
    """

    utility: _Utility
    state: TrainingState
    adversary: Any
    alpha: float
    tol: float
    max_iter: int
    after_iteration: Any
    iterations: list[_Iteration] = field(default_factory=list)
    converged: bool = True

    def __post_init__(self):
        self.look = self._next_look()

    def _next_look(self) -> int:
        """The iteration after which to report."""
        if self.after_iteration is None:
            return self.max_iter + 1
        return min(self.after_iteration.next_look(len(self.iterations)), self.max_iter)

    @property
    def left(self) -> int:
        return self.max_iter - len(self.iterations)

    def ridge(self, v):
        """alpha/2 ||w||^2 and its gradient."""
        pull = self.alpha * v / self.utility.scale**2
        return 0.5 * float(pull @ v), pull

    def plain(self, v):
        """What the solver minimises, without R."""
        value, gradient = self.utility(v)
        ridge, pull = self.ridge(v)
        return ridge - value, pull - gradient

    def _iteration(self, v):
        (value, _), w = self.utility(v), v / self.utility.scale
        if self.adversary is None:
            return _Iteration(w, value, 0.0, 0.0, self.state.lambda_)
        attack = self.adversary.attack(None, w, self.state.lambda_)
        return _Iteration(w, value, attack.regularizer, attack.query_distance, attack.multiplier)

    def record(self, v):
        self.iterations.append(self._iteration(v))
        if len(self.iterations) > 1:  # weights are needed of the last one only
            self.iterations[-2] = self.iterations[-2]._replace(w=None)
        if len(self.iterations) == self.look:
            self.look = self._next_look()
            self.publish()
            if self.after_iteration(self.state):
                raise _Stopped

    def settle(self, v):
        """Choose weights: the last iteration, whatever it tried, is then theirs."""
        if self.iterations:
            self.iterations[-1] = self._iteration(v)
        else:
            self.state.w = v / self.utility.scale

    def publish(self):
        """Tell the training state of the iterations so far."""
        columns = np.array([iteration[1:] for iteration in self.iterations]).reshape(-1, 4).T.copy()
        self.state.history = dict(zip(("utility", "regularizer", "query_distance", "lambda"), columns, strict=True))
        self.state.n_iter = len(self.iterations)
        if self.iterations:
            self.state.w, self.state.lambda_ = self.iterations[-1].w, float(self.iterations[-1].multiplier)

    def start(self, function, tol=1e-3):
        """Where to begin, in the neighbourhood of which solution: U is not concave, and has many.

        `function` is the objective, smooth. First comes what a ridge leads to from zero: without it steps may end on a plateau,
        where scores are so far apart that no gradient leads out. Then come its neighbours, in which one large weight has the
        other sign. All are followed roughly; the best is the start. Only the first counts as iterations.
        """
        zero = np.zeros(len(self.utility.scale))
        if self.state.w.any():
            return self.state.w * self.utility.scale

        def with_ridge(v):
            value, gradient = function(v)
            return value + 0.5 * START_RIDGE * float(v @ v), gradient + START_RIDGE * v

        ridge = self.descend(with_ridge, zero, None, np.array, tol, START_STEPS)
        found, largest = [self.descend(function, ridge, None, np.array, tol, START_STEPS)], np.abs(ridge).max()
        for j in np.argsort(-np.abs(ridge), kind="stable")[: START_FLIPS if largest > 0 else 0]:
            other = ridge / largest
            other[j] *= -1.0
            found.append(self.descend(function, other, None, None, tol, START_STEPS))
        return min(found, key=lambda v: function(v)[0])

    def minimize(self, function, z, bounds, weights_of, tol):
        """`descend`, and on from plateaus; returns where it ended."""
        for _ in range(MOST_PLATEAUS):
            z = self.descend(function, z, bounds, weights_of, tol)
            if not self.converged:
                return z
            # Scores may lie so far apart, or so close, that the slope is below the tolerance over a long way.
            value, scaled = function(z)[0], {scale: function(scale * z)[0] for scale in PLATEAU_SCALES}
            scale = min(scaled, key=scaled.__getitem__)
            if not scaled[scale] < value - PLATEAU_GAIN:
                return z
            z = scale * z
        self.converged = False
        return z

    def descend(self, function, z, bounds, weights_of, tol, max_iter=None):
        """L-BFGS-B from z, to a gradient of `tol`; returns where it ended. Without `weights_of` iterations are not recorded."""
        if bounds is not None and all(lo is not None and lo == hi for lo, hi in bounds):
            self.converged = True
            return z
        if self.left <= 0:
            self.converged = False
            return z
        n = self.left if max_iter is None else max_iter if weights_of is None else min(max_iter, self.left)
        result = minimize(
            function,
            z,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=None if weights_of is None else lambda at: self.record(weights_of(at)),
            options={"maxiter": n, "maxfun": 20 * n + 100, "gtol": tol, "ftol": 1e-14, "maxcor": 20},
        )
        self.converged = result.status == 0 or _projected_gradient(result, bounds) <= 10 * tol
        return result.x


def _projected_gradient(result, bounds) -> float:
    """Largest entry of the gradient that bounds do not hold back."""
    gradient = np.abs(result.jac)
    if bounds is not None:
        held = [
            (lo is not None and x <= lo and (g >= 0 or lo == hi))
            for (lo, hi), x, g in zip(bounds, result.x, result.jac, strict=True)
        ]
        gradient[held] = 0.0
    return float(gradient.max(initial=0.0))


# On such short vectors BLAS threads wait for each other most of the time, and their number would change bits.
@one_blas_thread()
def solve(data, state, adversary, *, rho, alpha, tol, max_iter, after_iteration=None, zeros=None, multipliers=None):
    """Maximise mean U - rho R - alpha/2 ||w||^2 from ``state.w``, in place on `state`.

    Parameters
    ----------
    data : Data
        Queries of up to `skfairrank.plackett_luce.EXACT_LIMIT` items.
    adversary : ExactBox, ExactBudget or None
        R in closed form.
    zeros : Zeros, optional
        Weights and directions of the box that are to stay zero.
    multipliers : ndarray, optional
        Of the augmented Lagrangian, from a neighbouring problem.

    Returns
    -------
    multipliers : ndarray or None
    """
    if rho == 0 and zeros is None:
        adversary = None
    run = _Run(_Utility(data), state, adversary, alpha, tol, max_iter, after_iteration)
    try:
        if adversary is None:
            run.settle(run.minimize(run.plain, run.start(run.plain), None, np.array, tol))
        elif isinstance(adversary, ExactBox):
            multipliers = _solve_box(run, adversary, rho, zeros, multipliers)
        elif isinstance(adversary, ExactBudget):
            _solve_budget(run, adversary, rho)
        else:
            raise TypeError(f"{type(adversary).__name__} has no closed form.")
    except _Stopped:
        pass
    except KeyboardInterrupt:
        state.interrupted = True
    run.publish()
    if not np.isfinite(state.w).all():
        raise ValueError("The solver diverged: weights are not finite. Scale the features (StandardScaler).")
    state.converged = state.converged and run.converged
    return multipliers


class _Box:
    """The box's variables: z = (p, m, y+, y-), or (v, y+, y-) where single features bear no penalty."""

    def __init__(self, adversary, zeros, scale):
        raw, r = adversary.raw / scale, adversary.subspace_radius
        d = raw.shape[1]
        self.axes = (raw != 0).sum(axis=1) == 1
        self.weight = adversary.reach / scale + r * np.abs(raw[self.axes]).sum(axis=0)
        sloped = raw[~self.axes]
        self.length = np.linalg.norm(sloped, axis=1)
        self.directions = sloped / self.length[:, None]
        self.slope_weight = r * self.length
        self.split = bool((self.weight > 0).any())
        self.d, self.K = d, len(sloped)
        self.fixed, self.fixed_directions = np.zeros(d, bool), np.zeros(self.K, bool)
        if zeros is not None:
            on_axes = (raw[self.axes & zeros.directions] != 0).any(axis=0)
            self.fixed, self.fixed_directions = zeros.features | on_axes, zeros.directions[~self.axes]

    def start(self, v):
        v = np.where(self.fixed, 0.0, v)
        y = np.where(self.fixed_directions, 0.0, self.directions @ v)
        parts = [np.maximum(v, 0), np.maximum(-v, 0)] if self.split else [v]
        return np.concatenate([*parts, np.maximum(y, 0), np.maximum(-y, 0)])

    def bounds(self):
        single = [(0.0, 0.0) if fixed else (0.0, None) for fixed in self.fixed]
        free = [(0.0, 0.0) if fixed else (None, None) for fixed in self.fixed]
        y = [(0.0, 0.0) if fixed else (0.0, None) for fixed in self.fixed_directions]
        return (2 * single if self.split else free) + 2 * y

    def weights(self, z):
        return z[: self.d] - z[self.d : 2 * self.d] if self.split else z[: self.d].copy()

    def slopes(self, z):
        return z[-2 * self.K : -self.K] - z[-self.K :] if self.K else np.zeros(0)


def _solve_box(run, adversary, rho, zeros, multipliers):
    box = _Box(adversary, zeros, run.utility.scale)
    d, K = box.d, box.K
    linear = np.concatenate([*((2 if box.split else 1) * [box.weight]), 2 * list(box.slope_weight)])
    strength = rho * adversary.mean_size
    nu = multipliers.copy() if multipliers is not None and len(multipliers) == K else np.zeros(K)
    sigma = 1.0

    def objective(z):
        v = box.weights(z)
        value, gradient = run.utility(v)
        ridge, pull = run.ridge(v)
        total = float(linear @ z)
        gap = box.directions @ v - box.slopes(z)
        force = nu + sigma * gap
        on_v = pull - gradient + box.directions.T @ force
        out = strength * total * linear
        out[:d] += on_v
        if box.split:
            out[d : 2 * d] -= on_v
        if K:
            out[-2 * K : -K] -= force
            out[-K:] += force
        return ridge - value + 0.5 * strength * total**2 + float(gap @ (nu + 0.5 * sigma * gap)), out

    def rounded(v):
        """The objective in the weights alone, with |x| as sqrt(x^2 + START_WIDTH^2)."""
        value, gradient = run.plain(v)
        y = box.directions @ v
        long_v, long_y = np.hypot(v, START_WIDTH), np.hypot(y, START_WIDTH)
        total = float(box.weight @ long_v + box.slope_weight @ long_y)
        slope = box.weight * v / long_v + (box.slope_weight * y / long_y) @ box.directions
        return value + 0.5 * strength * total**2, gradient + strength * total * slope

    bounds = box.bounds()
    if zeros is None and not run.state.w.any():
        # Not from within the kinks: scores would grow there until the policy is saturated, and no gradient leads out.
        z = box.start(run.start(rounded))
        nu = strength * float(linear @ z) * box.slope_weight * np.sign(box.slopes(z))
    else:
        z = box.start(run.state.w * run.utility.scale)
    worst = np.inf
    seen = False
    for outer in range(30):
        # The first rounds only have to show which way the multipliers move; later ones move little.
        tol = max(run.tol, 1e-3 * 10.0**-outer) if K else run.tol
        follow = run.descend if tol > run.tol or seen else run.minimize
        z, seen = follow(objective, z, bounds, box.weights, tol), tol == run.tol
        v = box.weights(z)
        run.settle(v)
        gap = box.directions @ v - box.slopes(z)
        off = np.abs(gap).max(initial=0.0)
        nu = nu + sigma * gap
        if off <= run.tol * np.abs(v).max() and tol == run.tol:
            break
        if run.left <= 0:
            run.converged = False
            break
        if off > 0.25 * worst:
            sigma *= 4.0
        worst = off
    else:
        run.converged = False
    # Directions whose y is zero lie in the kink; what the equation leaves of them is below the tolerance.
    settled = (box.slopes(z) == 0.0) if K else np.zeros(0, bool)
    run.settle(_onto_kinks(v, box, settled, run.tol))
    return nu


def _onto_kinks(w, box, settled, tol):
    """Weights moved by less than the tolerance so that settled directions vanish to rounding; zero weights stay zero."""
    free = w != 0
    if not settled.any() or not free.any():
        return w
    normals = box.directions[settled][:, free]
    correction = np.linalg.lstsq(normals, normals @ w[free], rcond=1e-8)[0]
    # Directions that nearly agree would impose their difference too, and move weights far.
    if np.abs(correction).max() > 10 * tol * np.abs(w).max():
        return w
    moved = w.copy()
    moved[free] -= correction
    return moved


def zeros_of(w, raw, *, tolerance=1e-10) -> Zeros:
    """Which weights and which directions of the box are zero, relative to the largest weight."""
    scale = max(float(np.abs(w).max(initial=0.0)), np.finfo(float).tiny)
    along = np.abs(raw @ w) / np.linalg.norm(raw, axis=1) if len(raw) else np.zeros(0)
    return Zeros(np.abs(w) <= tolerance * scale, along <= tolerance * scale)


def _solve_budget(run, adversary, rho):
    """R has two kinks, where A w = 0 and where P w = 0. Both norms are smoothed, tighter each time; then what is found so is
    tried against the solutions within either kink, where R is smooth."""
    basis, scale = adversary.basis, run.utility.scale
    rank, d = basis.shape
    if scale.max() < 100.0 * scale.min():
        # R is made of Euclidean norms: scaling by column would bend them, which costs more than such columns do.
        scale[:] = np.median(scale)
    # sqrt(||A w||^2 + s^2) and sqrt(||P w||^2 + s^2): two more coordinates held at s, the first along one more sensitive axis.
    longer_basis = np.zeros((rank + 1, d + 2))
    longer_basis[:rank, :d] = basis
    longer_basis[rank, d] = 1.0
    typical = float(np.median(scale))  # smoothing is in units of weights

    def objective(v, smoothing=0.0):
        value, gradient = run.utility(v)
        ridge, pull = run.ridge(v)
        longer, slope = np.concatenate([v / scale, [smoothing, smoothing]]), np.empty(d + 2)
        penalty, _, _ = _attack.exact_budget(
            longer, longer_basis, adversary.sizes, adversary.shares, adversary.epsilon, adversary.radius, slope
        )
        return ridge - value + rho * penalty, rho * slope[:d] / scale + pull - gradient

    def within(projector, v):
        """The best weights that the projector keeps as they are."""

        def onto(u):
            return scale * (projector @ (u / scale))

        def projected(u):
            value, slope = objective(onto(u))
            return value, (projector @ (scale * slope)) / scale

        return onto(run.minimize(projected, onto(v), None, onto, run.tol))

    if rank == 0 or adversary.radius == 0 or adversary.epsilon == 0:  # no kinks
        run.settle(run.minimize(objective, run.start(objective), None, np.array, run.tol))
        return
    v = run.start(lambda at: objective(at, START_WIDTH / typical))
    for smoothing in (1e-4, 1e-5):
        v = run.descend(lambda at, s=smoothing / typical: objective(at, s), v, None, np.array, run.tol)
    inside = basis.T @ basis
    candidates, w = [(v, run.converged)], v / scale
    sensitive = np.linalg.norm(basis @ w)
    try:
        # Away from the kinks there is nothing to smooth.
        if min(sensitive, np.linalg.norm(w - inside @ w)) > 1e-3 * np.linalg.norm(w):
            candidates.append((run.minimize(objective, v, None, np.array, run.tol), run.converged))
        for projector in (np.eye(d) - inside, inside):
            candidates.append((within(projector, v), run.converged))
    finally:  # also where a callback or Ctrl-C ends one of these: what is best so far
        best, run.converged = min(candidates, key=lambda candidate: objective(candidate[0])[0])
        run.settle(best)
