"""Algorithm 1 of Bower et al. (2021): stochastic ascent by Adam."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels import linear as _linear
from skfairrank._kernels.batches import scale_rows
from skfairrank._regularizers import NOTHING
from skfairrank._solvers._problem import HISTORY, Problem, TrainingState
from skfairrank._threads import one_blas_thread

__all__ = ["train"]


class Adam:
    """Steps of ascent by Adam (Kingma and Ba 2015)."""

    def __init__(self, n_parameters: int, learning_rate: float):
        self.learning_rate = learning_rate
        self.m, self.v, self.t = np.zeros(n_parameters), np.zeros(n_parameters), 0

    def reset(self):
        self.m[:], self.v[:], self.t = 0.0, 0.0, 0

    def step(self, theta, slope):
        self.t += 1
        first, second = _linear.adam_factors(self.t, self.learning_rate)
        _linear.adam_step(theta, slope, self.m, self.v, first, second)


# Products of matrices as small as a batch wait for BLAS threads most of the time, and their number would change bits.
@one_blas_thread()
def train(
    problem: Problem,
    state: TrainingState,
    *,
    max_iter: int,
    batch_size: int,
    learning_rate: float,
    order_rng,
    noise_rng,
    progress=None,
    projector=None,
) -> None:
    """Run Algorithm 1, in place on `state`.

    Parameters
    ----------
    problem : Problem
    state : TrainingState
    max_iter, batch_size, learning_rate : int, int, float
    order_rng, noise_rng : numpy.random.Generator
    progress : object, optional
        ``progress(state)`` is called after step ``progress.next_look(n_iter)``; a true answer ends training.
    projector : ndarray, shape (n_parameters, n_parameters), optional
        Keeps parameters in the subspace onto which it projects.

    Raises
    ------
    ValueError
        If parameters or gradients are not finite.
    """
    batches, score, regularizer, gradient, alpha = (
        problem.batches,
        problem.score,
        problem.regularizer,
        problem.gradient,
        problem.alpha,
    )
    theta, optimizer = state.theta, Adam(len(state.theta), learning_rate)
    slope, discount, is_weighted = np.empty_like(theta), batches.discount, batches.is_weighted
    history = state.history = {name: np.zeros(max_iter) for name in HISTORY}
    utilities, values, distances, multipliers = history.values()
    regularizer.begin(batches, score)
    stream = batches.stream(batch_size, order_rng, noise_rng)
    done = state.n_iter, theta.copy(), regularizer.multiplier
    try:
        while state.n_iter < max_iter:
            look = max_iter if progress is None else min(max_iter, progress.next_look(state.n_iter))
            for batch in stream.take(look - state.n_iter):
                step = state.n_iter
                if step == regularizer.n_plain > 0:
                    optimizer.reset()
                h = score.values_of_rows(theta, batch.X, batch.rows)
                in_scores, utility = gradient(batch, h, discount)
                value = regularizer.pull_scores(batch, h, gradient, in_scores)
                if is_weighted:
                    scale_rows(batch.weight, batch.offsets, in_scores)
                    utility *= batch.weight
                score.pull_back(theta, batch.X, batch.rows, in_scores, 1.0 / len(utility), slope)
                report = regularizer.pull(batch, theta, slope) if step >= regularizer.n_plain else NOTHING
                utilities[step] = _linear.mean(utility)
                values[step] = value + report.regularizer
                distances[step], multipliers[step] = report.query_distance, regularizer.multiplier
                if alpha:
                    slope -= alpha * theta
                if projector is not None:
                    slope = projector @ slope
                optimizer.step(theta, slope)
                if projector is not None:
                    theta[:] = projector @ theta
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
