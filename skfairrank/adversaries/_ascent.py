"""The paper's two-phase ascent, and how lambda, the multiplier of its transport budget, moves."""

from __future__ import annotations

from math import exp, isfinite
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skfairrank._checks import check_magnitude, stores_parameters
from skfairrank.adversaries._base import Adversary, Attack, gaps_of
from skfairrank.adversaries._general_ascent import GeneralAscent
from skfairrank.adversaries._linear_ascent import LinearAscent
from skfairrank.adversaries._plausible import PLAUSIBLE, read_plausible
from skfairrank.adversaries._plausible_ascent import PlausibleAscent
from skfairrank.adversaries._score_distance import SCORE_DISTANCE

__all__ = ["Ascent", "GapsAscent"]


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
        **PLAUSIBLE,
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
        return _PreparedAscent(
            self._kernel(batches, score, metric, self._moves(metric), float(rho), rng),
            DualStep(self.dual_step, float(self.epsilon)),
        )

    def _moves(self, metric):
        """The rows along which the first phase moves."""
        return metric.directions_

    def _kernel(self, batches, score, metric, raw, rho, rng):
        """What finds the hypothetical queries: the one place that chooses how."""
        settings = {
            "rho": rho,
            "subspace_step_size": float(self.subspace_step_size),
            "subspace_n_steps": int(self.subspace_n_steps),
            "subspace_init": float(self.subspace_init),
            "full_step_size": float(self.full_step_size),
            "full_n_steps": int(self.full_n_steps),
            "rng": rng,
        }
        raw, basis, shrink = (
            np.ascontiguousarray(rows, dtype=np.float64) for rows in (raw, metric.basis_, metric.shrink_)
        )
        plausible = self._plausible(batches)
        is_centered = self.score_distance == "centered"
        if plausible is not None:
            return PlausibleAscent(
                plausible, score, raw, basis, shrink, batches.n_numbers, is_centered=is_centered, **settings
            )
        # Items that share a start move alike: centered, that would be no change at all.
        if score.is_linear and not is_centered:
            n_starts = int(self.subspace_n_starts or 0)
            return LinearAscent(raw, basis, shrink, batches.n_numbers, n_starts=n_starts, **settings)
        return GeneralAscent(score, raw, basis, shrink, batches.n_numbers, is_centered=is_centered, **settings)

    def _plausible(self, batches):
        """The rows that may be reached; None where there is no bound."""

        def rows():
            return (batch.X[batch.rows] for batch in batches.in_order())

        return read_plausible(self, batches.n_features, getattr(batches, "feature_names", None), rows)


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

    def _moves(self, metric):
        gaps = float(self.gap_radius) * gaps_of(metric)
        return np.diag(gaps)[gaps > 0]


class _PreparedAscent:
    is_closed_form = False

    def __init__(self, kernel, dual_step):
        self.kernel, self.dual_step = kernel, dual_step

    def attack(self, batch, theta, multiplier):
        regularizer, distance, gradient = self.kernel.attack(batch, theta, multiplier, self.dual_step.most_spent)
        if not (isfinite(regularizer) and isfinite(distance)):
            raise ValueError(
                "The attack on a query is not finite: features, weights or steps are too large. Scale the features "
                "(StandardScaler), or lower learning_rate, rho, subspace_step_size or full_step_size."
            )
        return Attack(regularizer, distance, gradient, self.dual_step(multiplier, distance))


class DualStep:
    """Descent of the dual: lambda grows while the adversary overspends (the paper prints the opposite sign).

    Parameters
    ----------
    kind : {"budget", "paper"}
    epsilon : float
    """

    LEAST = 1e-5
    # Of log lambda, for a batch that spends nothing or twice the budget.
    STEP_SIZE = 0.1

    def __init__(self, kind: str, epsilon: float):
        self.is_paper, self.epsilon, self._budget = kind == "paper", epsilon, max(epsilon, 1e-12)
        #: What a batch may spend on the average. So the steps of log lambda are bounded.
        self.most_spent = np.inf if self.is_paper else 2.0 * epsilon

    def __call__(self, lambda_: float, distance: float) -> float:
        excess = distance - self.epsilon
        if self.is_paper:  # where the budget binds lambda swings: up by far, and down to the floor at once
            spent = max(distance, 1e-12)
            return max(lambda_ + max(spent, self._budget) / min(spent, self._budget) * excess, self.LEAST)
        # While lambda stays bounded so does the sum of these steps, so that the mean of d is epsilon where the budget binds.
        return max(lambda_ * exp(self.STEP_SIZE * excess / self._budget), self.LEAST)
