"""What training subtracts from the utility: one object with its own state, asked by the solvers and by nobody else.

A regulariser pulls on the scores of a batch (Fair-PG-Rank) or on the parameters (SenSTIR). The one that does neither is
`Regularizer` itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["ExposureHinge", "Invariance", "Regularizer", "Report"]

INITIAL_MULTIPLIER = 2.0  # lambda starts at 2 (Bower et al. 2021, appendix B)


class Report(NamedTuple):
    """What the history says of a step; an `skfairrank.adversaries.Attack` says it too."""

    regularizer: float = 0.0
    query_distance: float = 0.0


NEEDS_CLOSED_FORM = (
    'solver="lbfgs" needs a regulariser in closed form: set adversary="gaps", "exact_box" or "exact", or use '
    'solver="adam".'
)
NOTHING = Report()
NO_CONTINUATION = np.empty(0)


def state_of(part) -> dict:
    """What a part of training keeps from one step to the next; a part that keeps nothing need not have a method `state`."""
    return part.state() if hasattr(part, "state") else {}


def restore_to(part, state: dict) -> None:
    """Give a part of training what `state_of` has told of it."""
    if state:
        part.restore(state)


class Regularizer:
    """None: what a plain ranker trains with, and what others replace.

    Attributes
    ----------
    strength : float
        What its value is multiplied by in the objective.
    n_plain : int
        Training steps before it sets in.
    multiplier : float
        lambda, for those that have a budget.
    """

    strength, n_plain, multiplier = 0.0, 0, INITIAL_MULTIPLIER

    def begin(self, batches, score) -> None:
        """Get ready for one training set; called before the first step."""

    def state(self) -> dict:
        """What the next step depends on beside the training set: arrays, numbers and dicts of them."""
        return {"multiplier": float(self.multiplier)}

    def restore(self, state: dict) -> None:
        """Go on from what `state` has told; called after `begin`, for this training set or, in a stream of data, another one."""
        self.multiplier = float(state["multiplier"])

    def pull_scores(self, batch, h, gradient, in_scores) -> float:
        """Subtract ``strength`` times the gradient in the scores from `in_scores`, in place, and return the mean value.

        Parameters
        ----------
        batch : skfairrank._batches.Batch
        h : ndarray, shape (n_rows,)
            Scores of the batch.
        gradient : skfairrank._gradients.Reinforce, PLRank or SubsetSum
            Estimator of policy gradients.
        in_scores : ndarray, shape (n_rows,)
        """
        return 0.0

    def pull(self, batch, theta: np.ndarray, slope: np.ndarray) -> Report:
        """Subtract ``strength`` times the gradient from `slope`, in place, and report."""
        return NOTHING

    def minimize(self, run, forces=None):
        """Minimise utility and regulariser together, in place on a `skfairrank._solvers._lbfgs.Run`."""
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

    def with_strength(self, strength: float, *, n_plain: int, rng) -> Regularizer:
        """The same for another rho; none where that is 0."""
        if strength == 0:
            return Regularizer()
        return Invariance(self.adversary, self.metric, strength=strength, n_plain=n_plain, rng=rng)

    def begin(self, batches, score):
        self.prepared = self.adversary.prepare(batches, score, self.metric, rho=self.strength, rng=self.rng)

    def state(self):
        rng = None if self.rng is None else self.rng.bit_generator.state
        return {**super().state(), "rng": rng, "attack": state_of(self.prepared)}

    def restore(self, state):
        super().restore(state)
        if self.rng is not None and state.get("rng") is not None:
            self.rng.bit_generator.state = state["rng"]
        restore_to(self.prepared, state.get("attack", {}))

    def pull(self, batch, theta, slope):
        attack = self.prepared.attack(batch, theta, self.multiplier)
        self.multiplier = attack.multiplier
        slope -= self.strength * attack.gradient
        return attack

    def minimize(self, run, forces=None):
        if not self.prepared.is_closed_form:
            super().minimize(run)
        return self.prepared.minimize(run, self.strength, forces=forces)


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

    def pull_scores(self, batch, h, gradient, in_scores):
        sizes, starts = np.diff(batch.offsets), batch.offsets[:-1]
        begin = self.starts[batch.queries]
        coefficient = self.coefficients[np.repeat(begin - starts, sizes) + np.arange(len(h))]
        # Under the same sampled rankings as the gradient.
        disparity = np.add.reduceat(coefficient * gradient.expected_discounts(batch, h, self.exposure), starts)
        is_open = disparity > 0
        if is_open.any():
            gain = np.where(np.repeat(is_open, sizes), coefficient, 0.0)
            unfair = batch._replace(gain=gain, continuation=NO_CONTINUATION, utility=None)
            in_scores -= self.strength * gradient(unfair, h, self.exposure)[0]
        return float((batch.weight * np.maximum(disparity, 0.0)).mean())
