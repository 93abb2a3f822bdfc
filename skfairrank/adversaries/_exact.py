"""Suprema of the regulariser in closed form, for linear scores; and attacks on other scores within the same bounds.

The fair metric has orthonormal rows b_r and numbers t_r (`shrink`): z(e) = e - sum_r t_r (b_r.e) b_r, and a move e costs
||z(e)||^2 = e'Me. So M is (1 - t_r)^2 along row r, and the identity across all rows. Where t_r = 1 a move along b_r costs
nothing.
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from skfairrank._checks import stores_parameters
from skfairrank._queries import centred
from skfairrank.adversaries._base import SCORE_DISTANCE, Adversary, Attack, gaps_of

_NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]
# The width to which the kinks of R are rounded off where a start is sought.
_START_WIDTH = 0.1
_MOST_ROUNDS = 30
# Of an attack: steps, starts, and items that move at once where each is by itself.
_N_STEPS, _N_STARTS, _ROWS = 30, 4, 1 << 13


# What users set


class ExactAdversary(Adversary):
    """An adversary whose worst case for linear scores is known; `bounds` gives the closed form."""

    is_closed_form = True

    def bounds(self, batches, metric, rho: float = 1.0) -> ClosedForm:
        """The closed form on one training set."""
        raise NotImplementedError

    def prepare(self, batches, score, metric, *, rho=1.0, rng=None):
        if not score.is_linear:
            raise ValueError(
                f"{type(self).__name__} knows the largest regulariser in closed form for linear scores only, and "
                f'score_function is {score!r}: use adversary="ascent" or "gaps_ascent".'
            )
        return self.bounds(batches, metric, rho)


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
        "subspace_radius": _NOT_NEGATIVE,
        "feature_radius": _NOT_NEGATIVE,
        "score_distance": SCORE_DISTANCE,
    }

    @stores_parameters
    def __init__(self, subspace_radius=1.0, feature_radius=0.02, score_distance="squared"): ...

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

    _parameter_constraints: dict = {
        "gap_radius": _NOT_NEGATIVE,
        "feature_radius": _NOT_NEGATIVE,
        "score_distance": SCORE_DISTANCE,
    }
    uses_directions = False

    @stores_parameters
    def __init__(self, gap_radius=1.0, feature_radius=0.02, score_distance="squared"): ...

    def bounds(self, batches, metric, rho=1.0):
        self._validate_params()
        reach = float(self.gap_radius) * gaps_of(metric) + float(self.feature_radius)
        return Box(batches, metric, np.zeros((0, batches.n_features)), 0.0, reach, self.score_distance)


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
        "epsilon": _NOT_NEGATIVE,
        "subspace_radius": _NOT_NEGATIVE,
        "score_distance": SCORE_DISTANCE,
    }

    @stores_parameters
    def __init__(self, epsilon=0.01, subspace_radius=1.0, score_distance="squared"): ...

    def bounds(self, batches, metric, rho=1.0):
        self._validate_params()
        return Budget(batches, metric, float(self.epsilon), float(self.subspace_radius), rho, self.score_distance)


# Closed forms


class ClosedForm:
    """The largest regulariser there is within bounds, as a function R of linear weights w.

    Derived classes give `measure`, `dual_norm` and `minimize`. With `furthest`, `moves_items_alone` and `is_centered` they also
    attack other scores within the same bounds, and find a lower bound of the supremum: each step goes to the point of the bounds
    that the gradient at the present point prefers (Frank and Wolfe 1956), shorter and shorter. For linear scores the regulariser
    is convex in the moves, and the first steps lead to an extreme point.
    """

    is_closed_form = True
    #: Whether how far one item moves has nothing to do with others.
    moves_items_alone = False
    #: Whether changes of scores count less their mean in each query.
    is_centered = False

    def measure(self, w: np.ndarray) -> tuple[float, float, np.ndarray, float | None]:
        """R, what is spent of the budget, the gradient of R (a new array), and the multiplier of the budget or None."""
        raise NotImplementedError

    def dual_norm(self, slope: np.ndarray) -> float:
        """The largest slope.w of weights whose R is half the mean query size, or more than that: it ends a grid of rho."""
        raise NotImplementedError

    def minimize(self, run, rho: float, dual_variables=None):
        """Minimise ``run.plain(v) + rho R`` in place on `run` (see `skfairrank.training._lbfgs.Run`).

        Parameters
        ----------
        dual_variables : ndarray, optional
            What an earlier call on a neighbouring problem returned.
        """
        raise NotImplementedError

    def furthest(self, slope: np.ndarray) -> np.ndarray:
        """The moves of all items within the bounds that go furthest along a slope, both of shape (n_items, n_features)."""
        raise NotImplementedError

    def attack(self, batch, theta, multiplier):
        value, spent, gradient, found = self.measure(theta)
        return Attack(value, spent, gradient, multiplier if found is None else found)

    def score_bounds(self, score, theta, X, rng) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest score that an attack finds for each item, each of shape (n_items,).

        The first start is the item itself, the others are random points of the bounds.
        """
        low, high = np.empty(len(X)), np.empty(len(X))
        for at in range(0, len(X), _ROWS):
            block = slice(at, at + _ROWS)
            x = np.asarray(X[block], dtype=np.float64)
            low[block] = high[block] = score.values(theta, x)
            for start in range(_N_STARTS):
                D = self._random_moves(x.shape, rng) if start else np.zeros_like(x)
                for sign, end, extreme in ((1.0, high, np.maximum), (-1.0, low, np.minimum)):
                    for Z in self._path(x, D, lambda Z, s=sign: s * score.input_gradient(theta, Z)):
                        end[block] = extreme(end[block], score.values(theta, Z))
        return low, high

    def largest_regularizer(self, score, theta, X, offsets, rng) -> float:
        """The largest mean over queries of 1/2 ||h(q) - h(q')||^2 that an attack finds; query k begins at ``X[offsets[k]]``."""
        h, n_queries, best = score.values(theta, X), len(offsets) - 1, 0.0
        if self.moves_items_alone:
            low, high = self.score_bounds(score, theta, X, rng)
            return float(0.5 * np.sum(np.maximum(h - low, high - h) ** 2)) / n_queries
        second = np.flatnonzero((np.arange(len(X)) - np.repeat(offsets[:-1], np.diff(offsets))) % 2)

        def change(Z):
            change = score.values(theta, Z) - h
            return centred(change, offsets) if self.is_centered else change

        def slope(Z):
            return change(Z)[:, None] * score.input_gradient(theta, Z)

        for _ in range(_N_STARTS):
            # As many rise as fall, which matters where changes are compared with their mean. By half, since each move is made
            # twice, and the squares of all of them may spend the whole budget.
            D = np.sqrt(0.5) * self._random_moves(X.shape, rng)
            D[second] = -D[second - 1]
            for Z in self._path(X, D, slope):
                best = max(best, 0.5 * float(np.sum(change(Z) ** 2)) / n_queries)
        return best

    def _path(self, X, D, slope):
        """The points X + D on the way, from the start on."""
        yield X + D
        for t in range(_N_STEPS):
            D = D + (1.0 - t / _N_STEPS) * (self.furthest(slope(X + D)) - D)
            yield X + D

    def _random_moves(self, shape, rng):
        return rng.random((shape[0], 1)) * self.furthest(rng.standard_normal(shape))


class Box(ClosedForm):
    """R = mean_size/2 (r sum_k |V_k.w| + sum_j reach_j |w_j|)^2, with `effective_sizes`."""

    def __init__(self, batches, metric, raw, subspace_radius, reach, score_distance="squared"):
        self.raw = np.ascontiguousarray(raw, dtype=np.float64)
        self.basis = np.array(metric.basis_, dtype=np.float64, order="C")
        self.shrink = np.array(metric.shrink_, dtype=np.float64)
        self.subspace_radius, self.reach = subspace_radius, reach
        self.is_centered = score_distance == "centered"
        self.moves_items_alone = not self.is_centered
        sizes = effective_sizes(batches.sizes, self.is_centered)
        self.mean_size = float((sizes * batches.weights).mean())
        #: Of the sizes themselves.
        self.actual_size = float((batches.sizes * batches.weights).mean())

    def measure(self, w):
        """It spends the cost e'Me of the free move e_j = reach_j sign(w_j)."""
        free, along = self.reach * np.sign(w), self.raw @ w
        total = self._change(w, along)
        spent = free @ free - (1.0 - (1.0 - self.shrink) ** 2) @ (self.basis @ free) ** 2
        gradient = self.mean_size * total * (free + self.subspace_radius * np.sign(along) @ self.raw)
        return float(0.5 * self.mean_size * total**2), max(float(spent), 0.0), gradient, None

    def _change(self, w, along):
        return self.reach @ np.abs(w) + self.subspace_radius * np.abs(along).sum()

    def largest_change(self, w) -> float:
        """By how much the score of an item changes at most."""
        return float(self._change(w, self.raw @ w))

    def dual_norm(self, slope):
        steepest = max(map(_ratio, np.abs(slope), self.reach), default=0.0)
        return steepest * _ratio(self.actual_size**0.5, self.mean_size**0.5)

    def furthest(self, slope):
        return self.subspace_radius * np.sign(slope @ self.raw.T) @ self.raw + self.reach * np.sign(slope)

    def minimize(self, run, rho, dual_variables=None):
        return _Splitting(self, run, rho, dual_variables).minimize()


class _Splitting:
    """The objective with its kinks split: z = (p, m, y+, y-), or (v, y+, y-) where single features bear no penalty.

    v = p - m with p, m >= 0 turns ||v||_1 into a linear function; for a direction V_k that is no axis, V_k.v = y+ - y- with y >=
    0, an equation that an augmented Lagrangian enforces, with a dual variable for each direction. Zeros are then bounds that hold
    exactly.
    """

    def __init__(self, box: Box, run, rho, dual_variables):
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
        fit = dual_variables is not None and len(dual_variables) == self.K
        self.duals, self.penalty = dual_variables.copy() if fit else np.zeros(self.K), 1.0

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
        pull = self.duals + self.penalty * off
        on_v = gradient + self.directions.T @ pull
        out = self.strength * total * self.linear
        out[:d] += on_v
        if self.is_split:
            out[d : 2 * d] -= on_v
        if K:
            out[-2 * K : -K] -= pull
            out[-K:] += pull
        augmented = 0.5 * self.strength * total**2 + float(off @ (self.duals + 0.5 * self.penalty * off))
        return value + augmented, out

    def rounded(self, v):
        """The objective in the weights alone, with |x| as sqrt(x^2 + _START_WIDTH^2)."""
        value, gradient = self.run.plain(v)
        y = self.directions @ v
        long_v, long_y = np.hypot(v, _START_WIDTH), np.hypot(y, _START_WIDTH)
        total = float(self.weight @ long_v + self.slope_weight @ long_y)
        slope = self.weight * v / long_v + (self.slope_weight * y / long_y) @ self.directions
        return value + 0.5 * self.strength * total**2, gradient + self.strength * total * slope

    def start(self):
        if self.run.is_warm:
            return self.split(self.run.given_start)
        # Not from within the kinks: scores would grow there until the policy is saturated, and no gradient leads out.
        z = self.split(self.run.start(self.rounded))
        self.duals = self.strength * float(self.linear @ z) * self.slope_weight * np.sign(self.slopes(z))
        return z

    def minimize(self):
        """Rounds of L-BFGS-B, each with new dual variables; returns them."""
        run, bounds, z = self.run, self.bounds(), self.start()
        worst, seen = np.inf, False
        for outer in range(_MOST_ROUNDS):
            # The first rounds only have to show which way the dual variables move; later ones move little.
            tol = max(run.tol, 1e-3 * 10.0**-outer) if self.K else run.tol
            follow = run.descend if tol > run.tol or seen else run.minimize
            z, seen = follow(self.objective, z, bounds, self.weights, tol), tol == run.tol
            v, off = self.weights(z), self.mismatch(z)
            run.accept(v)
            furthest = np.abs(off).max(initial=0.0)
            self.duals = self.duals + self.penalty * off
            if furthest <= run.tol * np.abs(v).max() and tol == run.tol:
                break
            if run.left <= 0:
                run.converged = False
                break
            if furthest > 0.25 * worst:
                self.penalty *= 4.0
            worst = furthest
        else:
            run.converged = False
        # Directions whose y is zero lie in the kink; what the equation leaves of them is below the tolerance.
        run.accept(_onto_kinks(v, self.directions[self.slopes(z) == 0.0], run.tol))
        return self.duals


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


class Budget(ClosedForm):
    """R of `ExactBudget`; `shares` are the fractions of queries (weighted) that have the distinct sizes.

    Centered, a query spends u_q^2 = s_q^2 v_q^2, and its n_q/2 (a s_q + b u_q)^2 is s_q^2 n_q/2 (a + b v_q)^2: as if the fraction
    of queries of its size were s_q^2 times what it is.
    """

    def __init__(self, batches, metric, epsilon, radius, rho, score_distance="squared"):
        self.epsilon, self.radius, self.rho = epsilon, radius, float(rho)
        self.basis = np.array(metric.basis_, dtype=np.float64, order="C")
        self.shrink = np.array(metric.shrink_, dtype=np.float64)
        #: The rows along which moves cost nothing: A.
        self.free = self.basis[self.shrink == 1.0]
        self.is_centered = score_distance == "centered"
        #: Of each item what its squared move counts in the mean d_Q.
        self.item_shares = np.repeat(batches.weights / batches.sizes, batches.sizes) / len(batches.sizes)
        sizes, self.of_query = np.unique(batches.sizes, return_inverse=True)
        weight = np.bincount(self.of_query, weights=batches.weights)
        share, sizes = weight / weight.sum(), sizes.astype(np.float64)
        counting = effective_sizes(sizes, self.is_centered) / sizes * share
        self.sizes, self.shares = sizes[counting > 0], counting[counting > 0]
        #: By how much larger weights may be than if scores were compared as they stand.
        self.stretch = _ratio((share @ sizes) ** 0.5, (counting @ sizes) ** 0.5)

    def measure(self, w):
        value, spent, gradient, multiplier, _ = self._supremum(w, self.basis, self.shrink)
        return value, spent, gradient, self.rho * multiplier

    def _supremum(self, w, basis, shrink):
        return budget_supremum(w, basis, shrink, self.sizes, self.shares, self.epsilon, self.radius)

    def largest_change(self, w) -> np.ndarray:
        """By how much the scores of a query's items change where the budget is spent at its best, shape (n_queries,)."""
        return self._supremum(w, self.basis, self.shrink)[4][self.of_query]

    def furthest(self, slope):
        along, left = slope @ self.free.T, 1.0 - self.shrink
        back = np.divide(1.0, left, out=np.zeros_like(left), where=left > 0)
        dear = self._scaled(slope, back) / self.item_shares[:, None]
        spent = self.item_shares @ (dear**2).sum(axis=1)
        lengths = np.linalg.norm(along, axis=1, keepdims=True)
        sensitive = self.radius * np.divide(along, lengths, out=np.zeros_like(along), where=lengths > 0) @ self.free
        return sensitive + np.sqrt(self.epsilon / spent if spent > 0 else 0.0) * self._scaled(dear, back)

    def dual_norm(self, slope):
        sensitive, fair = np.linalg.norm(self.free @ slope), np.linalg.norm(self._scaled(slope, 1.0 - self.shrink))
        return self.stretch * max(_ratio(sensitive, self.radius), _ratio(fair, np.sqrt(self.epsilon)))

    def _scaled(self, x, factors):
        """x, a vector or rows, with the parts along each row of the metric's basis multiplied by a factor."""
        return x + ((factors - 1.0) * (x @ self.basis.T)) @ self.basis

    def minimize(self, run, rho, dual_variables=None):
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
            longer = np.concatenate([v / scale, [smoothing, smoothing]])
            regularizer, _, slope, *_ = self._supremum(longer, longer_basis, longer_shrink)
            return value + rho * regularizer, rho * slope[:d] / scale + gradient

        def within(projector, v):
            """The best weights that the projector keeps as they are."""

            def onto(u):
                return scale * (projector @ (u / scale))

            def projected(u):
                value, slope = objective(onto(u))
                return value, (projector @ (scale * slope)) / scale

            return onto(run.minimize(projected, onto(v), None, onto, run.tol))

        if len(free) == 0 or self.radius == 0 or self.epsilon == 0:  # no kinks
            run.accept(run.minimize(objective, run.start(objective), None, np.array, run.tol))
            return
        v = run.start(lambda at: objective(at, _START_WIDTH / typical))
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
            run.accept(best)


def budget_supremum(w, basis, shrink, sizes, shares, epsilon, radius):
    """R = mean_q n_q/2 (a + b u_q)^2 with a = r ||A w||, b = sqrt(w'M^+ w) and u_q = a b n_q / (x + (n_max - n_q) b^2).

    The rows of A are those b_r with t_r = 1, along which moves cost nothing; a is the largest w.e over such moves of norm <= r.
    Across them the largest w.e subject to e'Me <= u^2 is b u (Cauchy and Schwarz in the coordinates z). Here M^+ is (1 - t_r)^-2
    along the rows with t_r < 1, and the identity across all rows. For the projector b = ||P w||. x > 0 is twice the multiplier of
    the budget less n_max b^2, and the root of mean_q u_q^2 = epsilon.

    Parameters
    ----------
    w : ndarray, shape (n_features,)
    basis, shrink : ndarray, shapes (R, n_features) and (R,)
        Of the metric.
    sizes, shares : ndarray of float64, shape (n_sizes,)
        The distinct query sizes, and the fractions of queries that have them.
    epsilon, radius : float

    Returns
    -------
    value, spent : float
    gradient : ndarray, shape (n_features,)
        By the envelope theorem.
    multiplier : float
    change : ndarray, shape (n_sizes,)
        a + b u_q, by which the scores of a query's items change.
    """
    along, left = basis @ w, 1.0 - shrink
    is_free = left == 0.0
    free = along * is_free
    stretch = np.divide(1.0, left, out=np.zeros_like(left), where=~is_free)
    rest, scaled = w - along @ basis, along * stretch
    across = rest + (scaled * stretch) @ basis  # M^+ w
    # A norm, since the root of w'M^+ w would be 1e-8 where it should be zero.
    norm, b = float(np.linalg.norm(free)), float(np.linalg.norm(np.r_[rest, scaled]))
    if b <= 1e-12 * np.linalg.norm(w):  # free directions span w: what is left is rounding
        b = 0.0
    a, largest = radius * norm, sizes.max(initial=0.0)
    share = shares[sizes == largest].sum()
    x, u = 0.0, np.zeros(len(sizes))
    if b > 0.0 and epsilon > 0.0 and len(sizes):
        x = a * b * largest / np.sqrt(epsilon)
        if x > 1e-15 * largest * b * b:
            x = _root(a * b, b * b, x, sizes, shares, largest, share, epsilon)
            u = a * b * sizes / (x + (largest - sizes) * b * b)
        else:  # without a sensitive move the largest queries get it all
            x, u = 0.0, np.where(sizes == largest, np.sqrt(epsilon / share), 0.0)
    weight, change = shares * sizes, a + b * u
    gradient = (weight @ (change * u)) * across / b if b > 0.0 else np.zeros(len(w))
    if norm > 0.0:
        gradient += (weight @ change) * radius / norm * (free @ basis)
    value, spent = float(0.5 * weight @ change**2), float(shares @ u**2)
    return value, spent, gradient, float(0.5 * (x + largest * b * b)), change


def _root(ab, b_squared, top, sizes, shares, largest, share, epsilon):
    """The x in (0, top] at which the mean of u^2 is epsilon, with u = ab n / (x + (n_max - n) b^2)."""
    low, high = top * np.sqrt(share), top
    x = low
    for _ in range(100):
        room = x + (largest - sizes) * b_squared
        squares = shares * (ab * sizes / room) ** 2
        spent, slope = squares.sum(), 2.0 * (squares / room).sum()
        low, high = (x, high) if spent > epsilon else (low, x)
        # Newton's method on spent^(-1/2), which is nearly a straight line, and is one where all sizes agree.
        following = x + 2.0 * spent * (np.sqrt(spent / epsilon) - 1.0) / slope
        if not low <= following <= high:
            following = 0.5 * (low + high)
        if abs(following - x) <= 1e-15 * x:
            break
        x = following
    return x


def effective_sizes(sizes, is_centered: bool) -> np.ndarray:
    """The largest ``||h(q) - h(q')||^2`` (centered: of its deviations from the mean) where each score changes by at most 1.

    That is n as it stands. Centered it is n - (n mod 2) / n: it is convex in the changes, so that the largest has changes of +-1.
    Their squares sum to n, of which n times the square of their mean is taken away; that is least where as many rise as fall.
    """
    return sizes - (sizes % 2) / sizes if is_centered else sizes


def _ratio(slope, radius) -> float:
    """slope / radius, and 0 where there is nothing to gain."""
    if slope == 0:
        return 0.0
    return float(slope / radius) if radius > 0 else np.inf
