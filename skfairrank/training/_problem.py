"""What is maximised: mean utility minus the regulariser minus the l2 penalty, of one training set."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skfairrank.policies import ExactGradient, Reinforce
from skfairrank.training._regularizers import Regularizer

#: What the history tells of every step.
HISTORY = ("utility", "regularizer", "query_distance", "lambda")

# Exact expectations of held-out queries where they cost less than sampling.
_EXACT_SIZE, _N_SAMPLES = 10, 100


@dataclass
class Problem:
    """Maximise ``mean U - strength R - alpha/2 ||theta||^2``.

    Parameters
    ----------
    batches : skfairrank.training._batches.Batches
    score : skfairrank.scores.Score
    gradient : skfairrank.policies.GradientEstimator
    regularizer : skfairrank.training._regularizers.Regularizer
    alpha : float
    """

    batches: Any
    score: Any
    gradient: Any
    regularizer: Regularizer
    alpha: float = 0.0

    def __sizeof__(self) -> int:
        """With the bytes of its batches: from these Dask knows that it should send this once, and not with every task."""
        return super().__sizeof__() + sys.getsizeof(self.batches)


@dataclass
class TrainingState:
    """What training has reached; everything an estimator takes over as attributes."""

    theta: np.ndarray
    n_iter: int = 0
    planned: int = 0
    history: dict = field(default_factory=dict)
    multiplier: float = 0.0
    #: Of the deterministic solver on a box: those of its equations, for a neighbouring problem.
    dual_variables: np.ndarray | None = None
    #: Held-out objective after each pass; None without early stopping.
    validation_scores: np.ndarray | None = None
    interrupted: bool = False
    converged: bool = True


def utility_and_slope(batches, score, gradient, theta: np.ndarray) -> tuple[float, np.ndarray]:
    """Weighted mean of the expected utility over all queries, and its gradient in the parameters."""
    n_queries, total, slope, part = len(batches.sizes), 0.0, np.zeros(len(theta)), np.empty(len(theta))
    for batch in batches.in_order():
        h = score.values_of_rows(theta, batch.X, batch.rows)
        in_scores, utility = gradient.estimate(batch, h, batches.discount)
        if batches.is_weighted:
            in_scores *= np.repeat(batch.weight, np.diff(batch.offsets))
            utility *= batch.weight
        score.vjp(theta, batch.X, batch.rows, in_scores, 1.0 / n_queries, part)
        slope += part
        total += float(utility.sum())
    return total / n_queries, slope


def mean_utility(problem: Problem, theta: np.ndarray, batches=None) -> float:
    """Mean expected utility of the queries in which something can be gained; the same at each call.

    Exact for queries of up to 10 items where tables say what a ranking is worth, else from 100 rankings.

    Parameters
    ----------
    batches : optional
        Default: those of the problem.
    """
    batches = problem.batches if batches is None else batches
    is_exact = batches.sizes.max() <= _EXACT_SIZE and batches.utility is None
    gradient = ExactGradient() if is_exact else Reinforce(_N_SAMPLES)
    total, weight = 0.0, 0.0
    for batch in batches.in_order():
        h = problem.score.values_of_rows(theta, batch.X, batch.rows)
        counted = batch.weight * (np.maximum.reduceat(batch.gain, batch.offsets[:-1]) > 0)
        total += float(counted @ gradient.estimate(batch, h, batches.discount)[1])
        weight += float(counted.sum())
    return total / weight if weight > 0 else 0.0
