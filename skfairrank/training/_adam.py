"""Algorithm 1 of Bower et al. (2021): stochastic ascent by Adam."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels import linear as _linear
from skfairrank._threads import one_blas_thread
from skfairrank.training._problem import HISTORY, Problem, TrainingState
from skfairrank.training._regularizers import NOTHING


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
                utilities[step] = utility @ batch.weight / len(utility)
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
