"""What is maximised, mean utility less a regulariser and an l2 penalty; and Algorithm 1 of Bower et al. (2021), Adam."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from skfairrank._kernels import linear as _linear
from skfairrank._threads import one_blas_thread
from skfairrank.policies import ExactGradient, Reinforce

#: What the history tells of every step.
HISTORY = ("utility", "regularizer", "query_distance", "lambda")

# Exact expectations of held-out queries where they cost less than sampling.
_EXACT_SIZE, _N_SAMPLES = 10, 100


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


@dataclass
class Problem:
    """Maximise ``mean U - strength R - alpha/2 ||theta||^2``.

    Parameters
    ----------
    batches : skfairrank.training._batches.Batches
    score : skfairrank.scores.Score
    gradient : skfairrank.policies.GradientEstimator
    regularizer : skfairrank.training._adam.Regularizer
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


class Adam:
    """Steps of ascent by Adam (Kingma and Ba 2015)."""

    def __init__(self, n_parameters: int):
        self.m, self.v, self.t = np.zeros(n_parameters), np.zeros(n_parameters), 0

    def reset(self):
        self.m[:], self.v[:], self.t = 0.0, 0.0, 0

    def step(self, theta, slope, learning_rate):
        self.t += 1
        first, second = _linear.adam_factors(self.t, learning_rate)
        _linear.adam_step(theta, slope, self.m, self.v, first, second)


# Products of matrices as small as a batch wait for BLAS threads most of the time, and their number would change bits.
@one_blas_thread()
def train(
    problem: Problem, state: TrainingState, stream, optimizer: Adam, learning_rate: float, n_steps: int, progress=None
):
    """Take so many steps from `state`, which is kept up to date; or fewer, where `progress` or Ctrl-C ends them.

    k steps and then k more are 2k steps to the bit. After Ctrl-C parameters, history and multiplier are those of the last whole
    step. What else training keeps may be ahead of them, so that no further steps can follow.

    Parameters
    ----------
    problem : Problem
        Its regulariser is prepared.
    state : TrainingState
    stream : skfairrank.training._batches.BatchStream
    optimizer : Adam
    learning_rate : float
    n_steps : int
    progress : object, optional
        ``progress(state)`` is called after step ``progress.next_look(n_iter)``; a true answer ends training.

    Raises
    ------
    ValueError
        If parameters or gradients are not finite.
    """
    batches, score, regularizer, gradient = problem.batches, problem.score, problem.regularizer, problem.gradient
    theta, last = state.theta, state.n_iter + n_steps
    slope, discount, is_weighted = np.empty_like(theta), batches.discount, batches.is_weighted
    history = state.history = _longer(state.history, state.n_iter, n_steps)
    utilities, values, distances, multipliers = history.values()
    done = state.n_iter, theta.copy(), regularizer.multiplier
    try:
        while state.n_iter < last:
            look = last if progress is None else min(last, progress.next_look(state.n_iter))
            for batch in stream.take(look - state.n_iter):
                step = state.n_iter
                if step == regularizer.n_plain > 0:
                    optimizer.reset()
                h = score.values_of_rows(theta, batch.X, batch.rows)
                in_scores, utility = gradient.estimate(batch, h, discount)
                value = regularizer.add_score_gradient(batch, h, gradient, in_scores)
                if is_weighted:
                    in_scores *= np.repeat(batch.weight, np.diff(batch.offsets))
                score.vjp(theta, batch.X, batch.rows, in_scores, 1.0 / len(utility), slope)
                report = regularizer.add_gradient(batch, theta, slope) if step >= regularizer.n_plain else NOTHING
                utilities[step] = utility.dot(batch.weight) / len(utility)
                values[step] = value + report.regularizer
                distances[step], multipliers[step] = report.query_distance, regularizer.multiplier
                if problem.alpha:
                    slope -= problem.alpha * theta
                optimizer.step(theta, slope, learning_rate)
                # What belongs together changes at once.
                done = step + 1, theta.copy(), regularizer.multiplier
                state.n_iter = step + 1
            if not (np.isfinite(theta).all() and np.isfinite(optimizer.v).all()):
                raise ValueError(
                    "Training diverged: weights or gradients are not finite. Scale the features (StandardScaler), or lower "
                    "learning_rate, rho or fairness_weight, or an attack's step size."
                )
            state.multiplier = regularizer.multiplier
            if progress is not None and state.n_iter == look and progress(state):
                break
    except KeyboardInterrupt:  # it may come within a step, which then does not count
        state.n_iter, theta[:], regularizer.multiplier = done
        state.interrupted = True
    state.multiplier = regularizer.multiplier
    state.history = {name: entries[: state.n_iter] for name, entries in history.items()}


def _longer(history: dict, n_iter: int, n_steps: int) -> dict:
    """The history of the steps so far, with room for more."""
    so_far = {name: history.get(name, np.empty(0))[:n_iter] for name in HISTORY}
    return {name: np.concatenate([entries, np.zeros(n_steps)]) for name, entries in so_far.items()}
