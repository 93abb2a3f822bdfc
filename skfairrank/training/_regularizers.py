"""What training subtracts from the utility: one object with its own state, which the solvers ask.

A regulariser has a gradient in the scores of a batch (Fair-PG-Rank) or in the parameters (SenSTIR). `Regularizer` itself
has neither.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

INITIAL_MULTIPLIER = 2.0  # lambda starts at 2 (Bower et al. 2021, appendix B)
NEEDS_CLOSED_FORM = (
    'solver="lbfgs" needs a regulariser in closed form: set adversary="gaps", "exact_box" or "exact", or use '
    'solver="adam".'
)


class Report(NamedTuple):
    """What the history says of a step; an `skfairrank.adversaries.Attack` says it too."""

    regularizer: float = 0.0
    query_distance: float = 0.0


NOTHING = Report()


class Regularizer:
    """None: what a plain ranker trains with, and what others replace.

    Attributes
    ----------
    strength : float
        What its value R is multiplied by in the objective.
    n_plain : int
        Training steps before it sets in.
    multiplier : float
        lambda, for those that have a budget.
    """

    strength, n_plain, multiplier = 0.0, 0, INITIAL_MULTIPLIER

    def prepare(self, batches, score) -> None:
        """Get ready for a training set; to be called before the first step."""

    def add_score_gradient(self, batch, h: np.ndarray, gradient, out: np.ndarray) -> float:
        """Add the gradient of ``-strength R`` in the scores to `out`, in place, and return the mean value of R.

        Parameters
        ----------
        batch : skfairrank.training.Batch
        h : ndarray, shape (n_rows,)
            Scores of the batch.
        gradient : skfairrank.policies.GradientEstimator
        out : ndarray, shape (n_rows,)
        """
        return 0.0

    def add_gradient(self, batch, theta: np.ndarray, out: np.ndarray) -> Report:
        """Add the gradient of ``-strength R`` in the parameters to `out`, in place, and report."""
        return NOTHING

    def minimize(self, run, dual_variables=None):
        """Minimise ``-U + strength R`` by the deterministic solver, in place on a `skfairrank.training._lbfgs.Run`."""
        raise ValueError(NEEDS_CLOSED_FORM)


class Invariance(Regularizer):
    """SenSTIR's: the unfairness of hypothetical queries that an adversary finds (Bower et al. 2021, equation 4).

    Parameters
    ----------
    adversary : skfairrank.adversaries.Adversary
    metric : fitted fair metric
    strength : float
        rho.
    n_plain : int
    multiplier : float
        lambda at the start.
    rng : numpy.random.Generator
    """

    def __init__(self, adversary, metric, *, strength, n_plain=0, multiplier=INITIAL_MULTIPLIER, rng=None):
        self.adversary, self.metric, self.rng = adversary, metric, rng
        self.strength, self.n_plain, self.multiplier = float(strength), n_plain, float(multiplier)

    def prepare(self, batches, score):
        self.prepared = self.adversary.prepare(batches, score, self.metric, rho=self.strength, rng=self.rng)

    def add_gradient(self, batch, theta, out):
        attack = self.prepared.attack(batch, theta, self.multiplier)
        self.multiplier = attack.multiplier
        out -= self.strength * attack.gradient
        return attack

    def minimize(self, run, dual_variables=None):
        if not self.prepared.is_closed_form:
            super().minimize(run)
        return self.prepared.minimize(run, self.strength, forces=dual_variables)


class ExposureHinge(Regularizer):
    """Fair-PG-Rank's: the hinge of merit-weighted group exposures (Singh and Joachims 2019).

    A query's disparity v_A/M_A - v_B/M_B is linear in the exposures of its rows, as a utility is in the discounts of their ranks:
    so where the hinge is open its gradient is the policy gradient of a utility whose gains are the disparity's coefficients, and
    the baseline of REINFORCE is the samples' mean disparity.

    Parameters
    ----------
    coefficients : ndarray of float64, shape (n_rows,)
        Of the disparity in the exposures, the rows of a query together; zero where it is undefined.
    starts : ndarray of int64, shape (at least n_queries,)
        Where the rows of each query begin among the coefficients.
    exposure : ndarray of float64, shape (largest query size,)
        Exposure of each rank.
    strength : float
    """

    def __init__(self, coefficients, starts, exposure, *, strength):
        self.coefficients, self.starts, self.exposure = coefficients, starts, exposure
        self.strength = float(strength)

    def add_score_gradient(self, batch, h, gradient, out):
        sizes, starts = np.diff(batch.offsets), batch.offsets[:-1]
        coefficient = self.coefficients[np.repeat(self.starts[batch.queries] - starts, sizes) + np.arange(len(h))]
        # Under the same sampled rankings as the gradient of the utility.
        disparity = np.add.reduceat(coefficient * gradient.expected_discounts(batch, h, self.exposure), starts)
        is_open = disparity > 0
        if is_open.any():
            gain = np.where(np.repeat(is_open, sizes), coefficient, 0.0)
            unfair = batch._replace(gain=gain, continuation=np.empty(0), utility=None)
            out -= self.strength * gradient.estimate(unfair, h, self.exposure)[0]
        return float((batch.weight * np.maximum(disparity, 0.0)).mean())
