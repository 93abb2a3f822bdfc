"""Adversaries: from weights and a batch to its hypothetical queries' distance, their unfairness, and its gradient.

Step (a) of Algorithm 1 (Bower et al. 2021). An adversary is an object with `attack(batch, w, lambda_)`, which returns an
`Attack`; adding one touches this file.
"""

from __future__ import annotations

from math import exp, isfinite
from typing import NamedTuple

import numpy as np

from skfairrank._kernels import closed_forms as _closed_forms
from skfairrank._validation import check_magnitude
from skfairrank.adversaries._linear_ascent import LinearAscent

__all__ = ["ADVERSARIES", "Ascent", "Attack", "ExactBox", "ExactBudget", "ExactGaps", "GapsAscent", "gaps_of"]


class Attack(NamedTuple):
    """What an attack on a batch of queries found."""

    regularizer: float  # mean over queries of 1/2 ||h(q) - h(q')||^2
    query_distance: float  # mean over queries of d_Q(q, q')
    gradient: np.ndarray  # of the mean regularizer in the weights
    multiplier: float  # lambda after the dual step


class _WeightedBatch(NamedTuple):
    X: np.ndarray
    rows: np.ndarray
    offsets: np.ndarray
    queries: np.ndarray
    weight: np.ndarray


class Ascent:
    """Two-phase ascent (Bower et al. 2021, appendix B): along the raw sensitive directions, then freely.

    Items are paired with themselves: an attacked item x' = x + V'c + e costs ||P e||^2. (Also in queries of more than 500 items,
    for which no cheaper pairing is sought after the attack: `_kernels.transport.LARGEST_ASSIGNMENT`.) Starts are uniform in
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
    dual_step : {"auto", "budget", "paper"}
        How lambda moves (see `SenSTIRRanker`).
    rng : numpy.random.Generator
        For the starts.
    """

    LAMBDA_MIN = 1e-5
    # Of log lambda, for a batch that spends nothing or twice the budget.
    DUAL_STEP_SIZE = 0.1

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
        dual_step,
        rng,
        **_,
    ):
        check_magnitude(data.X)
        self.data, self.rho, self.epsilon, self.rng = data, float(rho), float(epsilon), rng
        in_raw_units = getattr(metric, "scale", None) == "raw" and getattr(metric, "directions", None) is None
        self.is_paper, self.most_spent, self._has_risen = True, np.inf, False
        self.may_leave_paper, self._budget = dual_step == "auto", max(self.epsilon, 1e-12)
        if dual_step == "budget" or (dual_step == "auto" and not in_raw_units):
            self._keep_budget()
        self._settings = {
            "rho": self.rho,
            "subspace_step_size": subspace_step_size,
            "subspace_n_steps": subspace_n_steps,
            "subspace_init": subspace_init,
            "n_starts": int(subspace_n_starts or 0),
            "full_step_size": full_step_size,
            "full_n_steps": full_n_steps,
            "rng": rng,
        }
        self._metric, self._weight = metric, np.ones(data.queries.n_queries)
        self._ascend_along(metric.directions_)

    def _ascend_along(self, raw):
        basis = self._metric.sensitive_basis_
        shrink = getattr(self._metric, "shrink_", np.ones(len(basis)))
        self.ascent = LinearAscent(raw, basis, shrink, self.data.queries.n_queries, **self._settings)

    def attack(self, batch, w, lambda_):
        here = _WeightedBatch(self.data.X, batch.rows, batch.offsets, batch.queries, self._weight[: len(batch.queries)])
        regularizer, distance, gradient = self.ascent.attack(here, w, lambda_, self.most_spent)
        if not (isfinite(regularizer) and isfinite(distance)):
            raise ValueError(
                "The attack on a query is not finite: features, weights or steps are too large. Scale the features "
                "(StandardScaler), or lower learning_rate, rho, subspace_step_size or full_step_size."
            )
        return Attack(regularizer, distance, gradient, self._dual_step(lambda_, distance))

    def _dual_step(self, lambda_, distance):
        """Descent of the dual: lambda grows while the adversary overspends (the paper prints the opposite sign)."""
        if not self.is_paper:
            # While lambda stays bounded so does the sum of these steps, so that the mean of d is epsilon where the budget binds.
            excess = (distance - self.epsilon) / self._budget
            return max(lambda_ * exp(self.DUAL_STEP_SIZE * excess), self.LAMBDA_MIN)
        spent, budget = distance if distance > 1e-12 else 1e-12, self._budget
        step = spent / budget if spent > budget else budget / spent
        moved = max(lambda_ + step * (distance - self.epsilon), self.LAMBDA_MIN)
        self._has_risen |= moved > lambda_
        if self.may_leave_paper and self._has_risen and moved == self.LAMBDA_MIN < lambda_:
            # The authors' steps overshoot, and would do so again: up by far, and down to the floor at once.
            self._keep_budget()
        return moved

    def _keep_budget(self):
        # With this bound the steps of lambda are bounded, so that it neither runs away nor takes long to come back.
        self.is_paper, self.most_spent = False, 2.0 * self.epsilon


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
        value, spent, multiplier = _closed_forms.exact_budget(
            w, self.basis, np.ones(len(self.basis)), self.sizes, self.shares, self.epsilon, self.radius, self._gradient
        )
        return Attack(value, spent, self._gradient, self.rho * multiplier)

    def dual_norm(self, slope):
        """As of `ExactBox`."""
        sensitive = self.basis @ slope
        fair = slope - self.basis.T @ sensitive
        return max(_ratio(np.linalg.norm(sensitive), self.radius), _ratio(np.linalg.norm(fair), np.sqrt(self.epsilon)))


class ExactBox:
    """The supremum over a box: each coefficient along the raw V_k within r, each coordinate of the free move within delta.

    For scores w.x (docs/exact.md): R = mean_q n_q/2 (r sum_k |V_k.w| + sum_j reach_j |w_j|)^2, here with reach_j = delta.
    """

    def __init__(self, data, metric, *, subspace_radius, feature_radius, **_):
        self._set_up(data, metric, metric.directions_, subspace_radius, np.full(data.X.shape[1], float(feature_radius)))

    def _set_up(self, data, metric, raw, subspace_radius, reach):
        self.raw = np.ascontiguousarray(raw, dtype=np.float64)
        self.basis = np.ascontiguousarray(metric.sensitive_basis_, dtype=np.float64)
        self.subspace_radius, self.reach = float(subspace_radius), reach
        self.mean_size = float(data.queries.sizes.mean())
        self._gradient = np.empty(len(reach))

    def attack(self, batch, w, lambda_):
        value, spent = _closed_forms.exact_box(
            w,
            self.raw,
            self.basis,
            np.ones(len(self.basis)),
            self.mean_size,
            self.subspace_radius,
            self.reach,
            self._gradient,
        )
        return Attack(value, spent, self._gradient, lambda_)

    def dual_norm(self, slope):
        """The largest slope.w of weights whose R is mean_size/2, or more than that: it ends a grid of rho."""
        return max(map(_ratio, np.abs(slope), self.reach), default=0.0)


class ExactGaps(ExactBox):
    """The supremum over moves of each feature by the groups' gap in it, independently of the others.

    The box without directions, with reach_j = gap_radius g_j + delta (docs/exact.md): a lasso in which a weight costs as much as
    its feature gives the group away. Nothing can be made up for, as along a direction: weights of opposite signs do not cancel.
    """

    def __init__(self, data, metric, *, gap_radius, feature_radius, **_):
        reach = float(gap_radius) * gaps_of(metric) + float(feature_radius)
        self._set_up(data, metric, np.zeros((0, data.X.shape[1])), 0.0, reach)


class GapsAscent(Ascent):
    """The ascent of the paper with its first phase along single features, in units of gap_radius times the groups' gaps."""

    def __init__(self, data, metric, *, gap_radius, **settings):
        super().__init__(data, metric, **settings)
        gaps = float(gap_radius) * gaps_of(metric)
        self._ascend_along(np.diag(gaps)[gaps > 0])


def gaps_of(metric) -> np.ndarray:
    """The groups' gaps in the features, as the metric has learned them."""
    if not hasattr(metric, "gaps_"):
        raise ValueError(
            f'{type(metric).__name__} has no gaps_: adversary="gaps" needs a metric that knows how far groups lie apart in each '
            "feature, such as SensitiveSubspaceMetric."
        )
    return np.asarray(metric.gaps_, dtype=np.float64)


def _ratio(slope, radius) -> float:
    """slope / radius, and 0 where there is nothing to gain."""
    if slope == 0:
        return 0.0
    return float(slope / radius) if radius > 0 else np.inf


ADVERSARIES = {
    "ascent": Ascent,
    "exact": ExactBudget,
    "exact_box": ExactBox,
    "gaps": ExactGaps,
    "gaps_ascent": GapsAscent,
}
