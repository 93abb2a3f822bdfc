"""What an adversary is: from a batch, a score and its parameters to unfair hypothetical queries (step (a) of Algorithm 1)."""

from __future__ import annotations

from math import exp
from typing import NamedTuple, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

#: The constraint on the parameter `score_distance`, d_R.
SCORE_DISTANCE = [StrOptions({"squared", "centered"})]


class Attack(NamedTuple):
    """What an attack on a batch of queries found."""

    #: Mean over queries of 1/2 ||h(q) - h(q')||^2.
    regularizer: float
    #: Mean over queries of d_Q(q, q').
    query_distance: float
    #: Gradient of the mean regulariser in the parameters of the score, shape (n_parameters,).
    gradient: np.ndarray
    #: lambda after the dual step.
    multiplier: float


class Prepared(Protocol):
    """An adversary at work on one training set."""

    #: Whether `measure`, `dual_norm` and `minimize` of `ClosedForm` are there.
    is_closed_form: bool

    def attack(self, batch, theta: np.ndarray, multiplier: float) -> Attack:
        """Attack a batch at these parameters."""
        ...


class Adversary(BaseEstimator):
    """Parameters of an adversary; `prepare` gives the one that works.

    A class of its own needs `prepare`, and may set the attributes below.
    """

    _parameter_constraints: dict = {}

    #: Whether the supremum is known, so that the deterministic solver and the grid of a path can be had.
    is_closed_form = False
    #: Whether it moves items along the metric's directions, so that it matters what they hold of the groups' difference.
    uses_directions = True
    #: Whether it has a parameter `hypotheticals` and a method `among`, by which a ranker gives it their candidates.
    takes_hypotheticals = False

    def prepare(self, batches, score, metric, *, rho: float, rng: np.random.Generator) -> Prepared:
        """The adversary for one training set.

        Parameters
        ----------
        batches : skfairrank.training.Batches
            Only its sizes, weights and number of features and queries are asked.
        score : skfairrank.scores.Score
        metric : fitted fair metric
        rho : float
            Strength of the regulariser.
        rng : numpy.random.Generator
            For random starts.

        Raises
        ------
        ValueError
            If a parameter is out of range, or the adversary can't attack this score under this metric.
        """
        raise NotImplementedError(f"{type(self).__name__} has no prepare(batches, score, metric, rho=, rng=).")


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


def gaps_of(metric) -> np.ndarray:
    """The groups' gaps in the features, as the metric has learned them."""
    if not hasattr(metric, "gaps_"):
        raise ValueError(
            f'{type(metric).__name__} has no gaps_: adversary="gaps" needs a metric that knows how far groups lie apart in each '
            "feature, such as SensitiveSubspaceMetric."
        )
    return np.asarray(metric.gaps_, dtype=np.float64)
