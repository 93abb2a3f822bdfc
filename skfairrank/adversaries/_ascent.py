"""The paper's two-phase ascent: for linear scores, where random starts can be shared, for any score, and within constraints."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from numbers import Integral, Real

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils._param_validation import Interval, StrOptions

from skfairrank._checks import check_magnitude, stores_parameters
from skfairrank._kernels.attack import (
    DISTANCE,
    FIRST_PATH,
    FULL,
    IS_OPEN,
    LAMBDA,
    LARGEST,
    LARGEST_ASSIGNMENT,
    MOST_SPENT,
    N_STARTS,
    RHO,
    SHARE,
    SUBSPACE,
    WEIGHT,
    accept,
    ascend,
    ascend_rows,
    fair_costs,
)
from skfairrank._kernels.linear import BETA1, BETA2, TINY, adam_factors
from skfairrank._queries import centred
from skfairrank._threads import over_range
from skfairrank.adversaries._base import SCORE_DISTANCE, Adversary, Attack, DualStep, gaps_of
from skfairrank.adversaries._constraints import PARAMETERS as CONSTRAINTS
from skfairrank.adversaries._constraints import read_constraints
from skfairrank.fair_metrics._linear import orthonormal_rows

# What users set


class Ascent(Adversary):
    """Two-phase ascent (Bower et al. 2021, appendix B): along the raw sensitive directions, then freely.

    Items are paired with themselves: an attacked item x' = x + V'c + e costs d_X(e, 0). (Also in queries of more than 500 items,
    for which no cheaper pairing is sought after the attack: `_kernels.attack.LARGEST_ASSIGNMENT`.) Starts are uniform in
    +-`subspace_init` for c and zero for e; without sensitive directions e starts uniform in +-`full_step_size`, since the
    gradient vanishes at the query itself.

    Parameters
    ----------
    epsilon : float, default=0.01
        Transport budget: bound on the mean d_Q, in squared feature units.
    subspace_step_size, subspace_n_steps : float, int, default=0.05, 20
        Adam's step and number of steps along the directions, in their units (the paper's as, ae).
    subspace_init : float, default=0.05
        Starts are uniform in +-subspace_init.
    subspace_n_starts : int or None, default=4
        For linear scores: starts per step, shared by the items of the batch. None draws one for each item, as printed in the
        paper, as for all other scores, and as where scores count centered or rows have bounds.
    full_step_size, full_n_steps : float, int, default=0.001, 20
        Adam's step and number of steps of the free move, in feature units (the paper's fs, fe).
    dual_step : {"budget", "paper"}, default="budget"
        How lambda, the multiplier of the budget, moves. "budget": log lambda by a tenth of (d - epsilon) / epsilon, with d the
        batch's mean d_Q, of which a batch may spend 2 epsilon at most; where the budget binds, the mean of d is epsilon. "paper":
        lambda by max(d, epsilon) / min(d, epsilon) times (d - epsilon), as the authors' program; where the budget binds it
        swings, and the mean of d is far above epsilon.
    score_distance : {"squared", "centered"}, default="squared"
        How the scores of two queries are compared. "squared": 1/2 ||h(q) - h(q')||^2, the paper's. "centered": the same, of
        changes less their mean in the query, since a change of all scores by one number changes no ranking (docs/exact.md).
    feature_range : None, "train" or (low, high), default=None
        The range of each feature in which attacked items stay; "train": that of the training rows. low and high are numbers, or
        one number for each feature; -inf and inf are no bounds. An item that lies outside may stay where it is, or move towards
        the range, but not further out.
    one_hot_groups : None or list of lists of columns, default=None
        Columns, by name or position, that are one-hot encoded together, such as ``[["red", "blue"], [5, 6, 7]]``. Attacked items
        stay on the simplex of each group (entries >= 0 that sum to 1), to which `feature_range` does not apply.
    immutable_features : None or list of columns, default=None
        Columns, by name or position, or as a mask, that the attack leaves as they are. One-hot columns that have been scaled
        belong here: they are on no simplex.
    """

    _parameter_constraints: dict = {
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "subspace_step_size": [Interval(Real, 0, None, closed="left")],
        "subspace_n_steps": [Interval(Integral, 0, None, closed="left")],
        "subspace_init": [Interval(Real, 0, None, closed="left")],
        "subspace_n_starts": [Interval(Integral, 1, None, closed="left"), None],
        "full_step_size": [Interval(Real, 0, None, closed="left")],
        "full_n_steps": [Interval(Integral, 0, None, closed="left")],
        "dual_step": [StrOptions({"budget", "paper"})],
        "score_distance": SCORE_DISTANCE,
        **CONSTRAINTS,
    }

    @stores_parameters
    def __init__(
        self,
        epsilon=0.01,
        *,
        subspace_step_size=0.05,
        subspace_n_steps=20,
        subspace_init=0.05,
        subspace_n_starts=4,
        full_step_size=0.001,
        full_n_steps=20,
        dual_step="budget",
        score_distance="squared",
        feature_range=None,
        one_hot_groups=None,
        immutable_features=None,
    ): ...

    def prepare(self, batches, score, metric, *, rho, rng):
        self._validate_params()
        check_magnitude(getattr(batches, "X", np.zeros((1, 1))))
        given = self, batches.n_numbers, score, metric, float(rho), rng
        if any(getattr(self, name) is not None for name in CONSTRAINTS):
            return ConstrainedAscent(*given, read_constraints(self, batches))
        # Items that share a start move alike: centered, that would be no change at all.
        return LinearAscent(*given) if score.is_linear and self.score_distance == "squared" else GeneralAscent(*given)

    def moves(self, metric):
        """The rows along which the first phase moves."""
        return metric.directions_


class GapsAscent(Ascent):
    """The ascent with its first phase along single features, in units of gap_radius times the groups' gaps.

    Parameters
    ----------
    gap_radius : float, default=1.0
    epsilon, subspace_step_size, subspace_n_steps, subspace_init, subspace_n_starts, full_step_size, full_n_steps, dual_step, \
score_distance, feature_range, one_hot_groups, immutable_features
        As for `Ascent`.
    """

    _parameter_constraints: dict = {
        **Ascent._parameter_constraints,
        "gap_radius": [Interval(Real, 0, None, closed="left")],
    }
    uses_directions = False

    @stores_parameters(extends=Ascent)
    def __init__(self, gap_radius=1.0, **shared): ...

    def moves(self, metric):
        gaps = float(self.gap_radius) * gaps_of(metric)
        return np.diag(gaps)[gaps > 0]


# At work


class PreparedAscent:
    """The ascent on one training set; derived classes give `find`.

    Parameters
    ----------
    adversary : Ascent
    n_numbers : int
        One more than the largest number of a query.
    score : skfairrank.scores.Score
    metric : fitted fair metric
    rho : float
    rng : numpy.random.Generator
    """

    is_closed_form = False

    def __init__(self, adversary, n_numbers, score, metric, rho, rng):
        # Copies, so that kernels are compiled for one kind of array: a metric's may be read-only.
        self.raw, basis, shrink = (
            np.array(rows, np.float64, order="C") for rows in (adversary.moves(metric), metric.basis_, metric.shrink_)
        )
        self.adversary, self.score, self.rho, self.rng = adversary, score, rho, rng
        self.basis, self.lost = basis, 1.0 - (1.0 - shrink) ** 2  # the metric is I - sum_r lost_r b_r b_r'
        self.pairing = Pairing(basis, shrink, n_numbers)
        self.dual_step = DualStep(adversary.dual_step, float(adversary.epsilon))
        self.subspace = float(adversary.subspace_step_size), int(adversary.subspace_n_steps)
        self.full = float(adversary.full_step_size), int(adversary.full_n_steps)
        #: What is drawn for each start: coefficients along the directions or, without directions, free moves.
        self.width, self.n_drawn = float(adversary.subspace_init), len(self.raw)
        if not self.n_drawn:
            self.width, self.n_drawn = self.full[0], self.raw.shape[1]

    def attack(self, batch, theta, multiplier):
        regularizer, distance, gradient = self.find(batch, theta, multiplier, self.dual_step.most_spent)
        if not (isfinite(regularizer) and isfinite(distance)):
            raise ValueError(
                "The attack on a query is not finite: features, weights or steps are too large. Scale the features "
                "(StandardScaler), or lower learning_rate, rho, subspace_step_size or full_step_size."
            )
        return Attack(regularizer, distance, gradient, self.dual_step(multiplier, distance))

    def find(self, batch, theta, multiplier, most_spent, starts=None):
        """The mean regulariser, the mean d_Q, and the gradient of the first in theta; not finite where a number overflows.

        Parameters
        ----------
        batch : Batch
            Of X any dtype and layout will do.
        theta : ndarray of float64, shape (n_parameters,)
        multiplier : float
            lambda, the price of d_Q.
        most_spent : float
            What the batch may spend on the average. Where it would spend more, all queries keep the same share of their free
            moves.
        starts : ndarray, optional
            In place of random ones.
        """
        raise NotImplementedError

    def draw(self, n):
        """Random starts, uniform, shape (n, n_drawn)."""
        return self.rng.uniform(-self.width, self.width, (n, self.n_drawn))


class LinearAscent(PreparedAscent):
    """For scores w.x: paths depend on the start and the size of a query alone, and items share them.

    Per query ``rho/2 ||h(q) - h(q')||^2 - lambda d_Q(q, q')`` is maximised by Adam over c, from random starts, then over e, from
    zero; the better of the two candidates is kept.
    """

    def __init__(self, *given):
        super().__init__(*given)
        self.n_starts = int(self.adversary.subspace_n_starts or 0)
        self._settings = settings = np.zeros(8)
        settings[[RHO, N_STARTS]] = self.rho, self.n_starts
        settings[SUBSPACE : SUBSPACE + 2], settings[FULL : FULL + 2] = self.subspace, self.full
        K, d = self.raw.shape
        # Nanoseconds that one path takes, roughly.
        self._work = 4.0 * (K * self.subspace[1] + d * self.full[1])
        # The same few sizes come up again and again where items share starts.
        self._paths_for = lru_cache(maxsize=16 if self.n_starts else 1)(self._lay_out)

    def find(self, batch, w, multiplier, most_spent, starts=None):
        """As `PreparedAscent.find`; given starts are overwritten.

        With shared starts the first `n_starts` are those of queries of the size that comes first in the batch, the next
        `n_starts` those of the next size that comes up, and so on; item i of a query takes start i modulo `n_starts` of its size.
        Without: one for each row of the batch.
        """
        size, by_path, by_query, room = self._paths_for(batch.offsets.tobytes())
        P, raw, settings, pairing = len(size), self.raw, self._settings, self.pairing
        starts = self.draw(P) if starts is None else starts
        c, e = (starts, np.zeros((P, raw.shape[1]))) if len(raw) else (np.empty((P, 0)), starts)
        settings[LAMBDA], settings[MOST_SPENT] = multiplier, most_spent
        over_range(ascend, P, P * self._work, c, e, by_path, size, raw, w, self.lost, self.basis, settings)
        gradient = np.zeros(raw.shape[1])
        regularizer, distance, n_open = accept(
            batch.offsets, batch.queries, batch.weight, pairing.gaps, settings, by_path, c, e, raw, by_query, gradient
        )
        if n_open:
            distance = pairing.solve(batch, e, self.n_starts, by_query, room, distance)
        return regularizer, distance, gradient

    def _lay_out(self, offsets: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The query size of each path of a batch with these offsets, and what kernels fill: by path, by query, room for costs.

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
        return size, by_path, by_query, room_for(sizes)


class GeneralAscent(PreparedAscent):
    """For any score: every item of a batch has its own path, and one pass through the score serves all of them."""

    @property
    def is_centered(self):
        return self.adversary.score_distance == "centered"

    def find(self, batch, theta, multiplier, most_spent, starts=None):
        items = Items(self.score, theta, batch, self.rho, self.is_centered)
        c, e = self.starts(batch.offsets)
        if len(self.raw):
            free = self.lost[:0], np.zeros((0, len(self.raw)))
            at = self.score.along(theta, items.X, self.raw)
            self._ascend(items, at, c, np.zeros(len(items.X)), *free, *self.subspace)
        inside = items.X + c @ self.raw
        price = items.per_row(2.0 * multiplier / items.sizes)
        self._ascend(items, self.score.along(theta, inside), e, price, self.lost, self.basis, *self.full)

        squares_inside = items.total(items.change(inside) ** 2)
        squares = items.total(items.change(inside + e) ** 2)
        cost = (e * self.fair(e)).sum(axis=1)
        spent = items.total(cost) / items.sizes
        # Per query the better of the two candidates; if that spends too much on the average, all keep the same share of e.
        is_better = 0.5 * self.rho * squares - multiplier * spent >= 0.5 * self.rho * squares_inside
        share = affordable(is_better, spent, batch.weight, most_spent)
        regularizer, gradient = items.regularizer(inside + items.per_row(share)[:, None] * e)
        return regularizer, self.pairing.mean_distance(batch, e, cost, spent, share), gradient

    def starts(self, offsets):
        """Coefficients along the directions, and free moves.

        Without directions the free moves begin away from zero, since the gradient is zero at the query itself. Where scores count
        centered, the items of a query start in pairs at opposite points: a score goes on to that side of the mean on which it
        starts, and most can be gained where as many rise as fall.
        """
        starts = self.draw(offsets[-1])
        if self.is_centered:
            place = np.arange(len(starts)) - np.repeat(offsets[:-1], np.diff(offsets))
            second = np.flatnonzero(place % 2)
            starts[second] = -starts[second - 1]
        if len(self.raw):
            return starts, np.zeros((len(starts), self.raw.shape[1]))
        return np.zeros((len(starts), 0)), starts

    def fair(self, e):
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


class ConstrainedAscent(GeneralAscent):
    """`GeneralAscent` that never leaves the feasible set of an item.

    The first phase follows the nearest feasible row to x + V'c. Where that is another point, the difference is no move along the
    directions: what of a displacement D = x' - x lies off their span costs ||z(D_off)||^2, in both phases. The second phase is
    projected, step by step. A query whose attack gains less than it costs stays where it is.
    """

    def __init__(self, adversary, n_numbers, score, metric, rho, rng, constraints):
        super().__init__(adversary, n_numbers, score, metric, rho, rng)
        self.constraints = constraints
        #: Orthonormal rows that span the directions.
        self.span = orthonormal_rows(self.raw[self.raw.any(axis=1)], 1e-10)

    def find(self, batch, theta, multiplier, most_spent, starts=None):
        items = Items(self.score, theta, batch, self.rho, self.is_centered)
        feasible = self.constraints.around(items.X)
        price = items.per_row(2.0 * multiplier / items.sizes)[:, None]

        def slope_at(Z):
            """Gradient of rho/2 ||h(q) - h(q')||^2 - lambda d_Q, as far as Z may follow it."""
            return feasible.tangent(Z, items.slope(Z) - price * self._off(self.fair(self._off(Z - items.X))))

        def along(c):
            return feasible.project(items.X + c @ self.raw)

        c, e = self.starts(batch.offsets)
        if len(self.raw):
            c = adam(_towards_room(c, along, items.X), lambda c: slope_at(along(c)) @ self.raw.T, *self.subspace)
        else:
            e = _towards_room(e, lambda e: feasible.project(items.X + e), items.X)
        inside = along(c)
        both = adam(feasible.project(inside + e), slope_at, *self.full, onto=feasible.project)

        (worth_inside, _), (worth, _) = (self._worth(items, Z, multiplier) for Z in (inside, both))
        best = np.where(items.per_row(worth >= worth_inside)[:, None], both, inside)
        worth, cost = self._worth(items, best, multiplier)
        spent = items.total(cost) / items.sizes
        share = affordable(worth >= 0.0, spent, batch.weight, most_spent)
        # Feasible sets are convex and hold the item itself; rounding may lead out of them again.
        attacked = feasible.project(items.X + items.per_row(share)[:, None] * (best - items.X))
        regularizer, gradient = items.regularizer(attacked)
        distance = self.pairing.mean_distance(batch, self._off(best - items.X), cost, spent, share)
        return regularizer, distance, gradient

    def _worth(self, items, Z, multiplier):
        """rho/2 ||h(q) - h(q')||^2 - lambda d_Q of each query, its items paired with themselves, and what each item costs."""
        off = self._off(Z - items.X)
        cost = np.maximum((off * self.fair(off)).sum(axis=1), 0.0)
        gain = 0.5 * self.rho * items.total(items.change(Z) ** 2)
        return gain - multiplier * items.total(cost) / items.sizes, cost

    def _off(self, D):
        """What of displacements is no move along the directions."""
        return D - (D @ self.span.T) @ self.span


def _towards_room(starts, reached, X):
    """Starts, mirrored where the mirror image leads more than twice as far: at the end of a range half of them would be lost."""
    there, back = (np.square(reached(sign * starts) - X).sum(axis=1) for sign in (1.0, -1.0))
    return np.where((there < 0.25 * back)[:, None], -starts, starts)


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


class Pairing:
    """d_Q between queries and their attacked copies: an optimal pairing of items, which is nearly always the identity.

    Parameters
    ----------
    basis, shrink : ndarray of float64, shapes (rank, n_features) and (rank,)
        Of the fair metric.
    n_numbers : int
        One more than the largest number of a query.
    """

    def __init__(self, basis, shrink, n_numbers):
        self.basis, self.shrink = basis, shrink
        self.gaps = np.zeros(n_numbers)  # learned when a query comes up, see `fair_costs`

    def mean_distance(self, batch, e, cost, spent, share) -> float:
        """Mean of weight times d_Q, where each item has a free move of its own.

        Parameters
        ----------
        batch : Batch of n_rows rows and n_queries queries
        e, cost : ndarray, shapes (n_rows, n_features) and (n_rows,)
            Free moves, and their cost e'Me.
        spent, share : ndarray, shape (n_queries,)
            Mean cost of a query's items, and how much of its free moves a query keeps.
        """
        sizes, by_query = np.diff(batch.offsets), np.empty((6, len(share)))
        largest, gap = share * np.sqrt(np.maximum.reduceat(cost, batch.offsets[:-1])), self.gaps[batch.queries]
        by_query[FIRST_PATH], by_query[SHARE], by_query[LARGEST] = batch.offsets[:-1], share, largest
        by_query[DISTANCE], by_query[WEIGHT] = share**2 * spent, batch.weight / len(share)
        by_query[IS_OPEN] = (sizes > 1) & (sizes <= LARGEST_ASSIGNMENT) & (np.abs(gap) < 2.0 * largest)
        distance = float(by_query[WEIGHT] @ by_query[DISTANCE])
        return self.solve(batch, e, 0, by_query, room_for(sizes), distance) if by_query[IS_OPEN].any() else distance

    def solve(self, batch, e, n_starts, by_query, room, distance) -> float:
        """Replace the cost of pairing items with themselves by d_Q where queries are open; the mean of weight times d_Q.

        Parameters
        ----------
        batch : Batch
        e, n_starts, by_query, room
            As for `_kernels.attack.fair_costs`.
        distance : float
            The mean with every item paired with itself. It is returned as it is where no other pairing is cheaper.
        """
        is_cheaper, offsets = False, batch.offsets
        at = batch.X, batch.rows, offsets, batch.queries
        given = *at, self.basis, self.shrink, n_starts, e, self.gaps, by_query, room
        b = fair_costs(0, *given)
        while b < len(offsets) - 1:
            n = offsets[b + 1] - offsets[b]
            cost = room[: n * n].reshape(n, n)
            cheapest = np.add.reduce(cost[linear_sum_assignment(cost)]) / n
            if cheapest < by_query[DISTANCE, b] * (1.0 - 1e-12):
                by_query[DISTANCE, b], is_cheaper = cheapest, True
            b = fair_costs(b + 1, *given)
        return float(by_query[WEIGHT] @ by_query[DISTANCE]) if is_cheaper else distance


def room_for(sizes) -> np.ndarray:
    """Room for the costs of the largest query that is ever open."""
    largest = min(int(sizes.max()), LARGEST_ASSIGNMENT)
    return np.empty(largest * largest)
