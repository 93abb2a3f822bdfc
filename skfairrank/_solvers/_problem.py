"""What is maximised: mean utility minus the regulariser minus the l2 penalty, of one training set."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skfairrank._gradients import Reinforce, SubsetSum
from skfairrank._kernels.batches import scale_rows
from skfairrank._regularizers import Regularizer
from skfairrank._threads import one_blas_thread

__all__ = ["HISTORY", "Problem", "TrainingState", "mean_utility", "objective", "utility_and_slope"]

#: What the history tells of every step.
HISTORY = ("utility", "regularizer", "query_distance", "lambda")

# Exact expectations of held-out queries where they cost less than sampling.
_EXACT_SIZE, _N_SAMPLES = 10, 100


@dataclass
class Problem:
    """Maximise ``mean U - strength R - alpha/2 ||theta||^2``.

    Parameters
    ----------
    batches : skfairrank._batches.Batches
    score : skfairrank.scores.Score
    gradient : skfairrank._gradients.Reinforce, PLRank or SubsetSum
        Estimator of policy gradients.
    regularizer : skfairrank._regularizers.Regularizer
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
    #: Of the deterministic solver on a box: what holds its equations, for a neighbouring problem.
    forces: np.ndarray | None = None
    #: Held-out objective after each pass; None without early stopping.
    validation_scores: np.ndarray | None = None
    #: What a further step depends on beside the parameters, for `partial_fit`; None where they are not those of the last step.
    resume: dict | None = None
    interrupted: bool = False
    #: Where it was interrupted, if that was not at `n_iter` of this state.
    interrupted_at: str = ""
    converged: bool = True

    #: What training has found, of all that is above.
    _RESULT = ("theta", "n_iter", "planned", "history", "multiplier", "validation_scores", "resume")

    def result(self) -> dict:
        """What a fit by Adam takes over from here, as a dict of arrays, numbers and further dicts."""
        return {name: getattr(self, name) for name in self._RESULT}

    def restore(self, result: dict) -> None:
        for name in self._RESULT:
            setattr(self, name, result[name])


def utility_and_slope(batches, score, gradient, theta: np.ndarray) -> tuple[float, np.ndarray]:
    """Weighted mean of the expected utility over all queries, and its gradient in the parameters."""
    n_queries, total, slope, part = len(batches.sizes), 0.0, np.zeros(len(theta)), np.empty(len(theta))
    for batch in batches.in_order():
        h = score.values_of_rows(theta, batch.X, batch.rows)
        in_scores, utility = gradient(batch, h, batches.discount)
        if batches.is_weighted:
            scale_rows(batch.weight, batch.offsets, in_scores)
            utility *= batch.weight
        score.pull_back(theta, batch.X, batch.rows, in_scores, 1.0 / n_queries, part)
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
    total, weight = 0.0, 0.0
    for batch in batches.in_order():
        gradient = _for_evaluation(batches, batch)
        h = problem.score.values_of_rows(theta, batch.X, batch.rows)
        counted = batch.weight * (np.maximum.reduceat(batch.gain, batch.offsets[:-1]) > 0)
        total += float(counted @ gradient(batch, h, batches.discount)[1])
        weight += float(counted.sum())
    return total / weight if weight > 0 else 0.0


@one_blas_thread()
def objective(problem: Problem, theta: np.ndarray, multiplier: float, at_most: int) -> float:
    """Mean utility minus the regulariser minus the l2 penalty, at these parameters; the same at each call.

    The utility is exact for queries of up to 10 items, else from 100 rankings. A regulariser that is found by an attack is what
    one attack finds under this multiplier, from random starts that are the same at each call.

    Parameters
    ----------
    at_most : int
        Of more queries, so many in equal steps are looked at.
    """
    batches, n_queries = problem.batches, len(problem.batches.sizes)
    if n_queries > at_most:
        batches = batches.subset(np.linspace(0, n_queries - 1, at_most).astype(np.int64))
    regularizer = problem.regularizer.fresh(np.random.default_rng(0))
    regularizer.multiplier = multiplier
    regularizer.begin(batches, problem.score)
    slope, total = np.zeros(len(theta)), 0.0
    for batch in batches.in_order():
        gradient = _for_evaluation(batches, batch)
        h = problem.score.values_of_rows(theta, batch.X, batch.rows)
        in_scores, utility = gradient(batch, h, batches.discount)
        value = regularizer.pull_scores(batch, h, gradient, in_scores)
        value += regularizer.pull(batch, theta, slope).regularizer
        total += float(batch.weight @ utility) - regularizer.strength * value * len(utility)
    return total / len(batches.sizes) - problem.alpha / 2.0 * float(theta @ theta)


def _for_evaluation(batches, batch):
    """What finds the expected utility of queries: exactly where tables say it and that costs less than sampling."""
    is_exact = batches.sizes.max() <= _EXACT_SIZE and batch.utility is None
    return SubsetSum() if is_exact else Reinforce(_N_SAMPLES)
