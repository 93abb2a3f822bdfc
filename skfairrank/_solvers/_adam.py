"""Algorithm 1 of Bower et al. (2021): stochastic ascent by Adam, in one go or in parts."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels import linear as _linear
from skfairrank._regularizers import NOTHING
from skfairrank._solvers._problem import HISTORY, Problem, TrainingState
from skfairrank._threads import one_blas_thread

__all__ = ["Training"]


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

    def state(self) -> dict:
        return {"m": self.m.copy(), "v": self.v.copy(), "t": self.t}

    def restore(self, state: dict) -> None:
        self.m[:], self.v[:], self.t = state["m"], state["v"], state["t"]


class Training:
    """Algorithm 1 on one problem, in as many parts as one likes.

    k steps and then k more are 2k steps to the bit.

    Parameters
    ----------
    problem : Problem
    reached : TrainingState
        Where training begins. Its parameters, number of steps, history and multiplier are kept up to date.
    stream : object
        Mini-batches: ``take(n)`` gives the next n of them or fewer.
    learning_rate : float
    """

    # Products of matrices as small as a batch wait for BLAS threads most of the time, and their number would change bits.
    @one_blas_thread()
    def __init__(self, problem: Problem, reached: TrainingState, stream, learning_rate: float):
        self.problem, self.reached, self.stream = problem, reached, stream
        self.optimizer = Adam(len(reached.theta), learning_rate)
        problem.regularizer.begin(problem.batches, problem.score)

    @one_blas_thread()
    def run(self, n_steps: int, progress=None) -> None:
        """Take so many steps more; or fewer, where `progress` or Ctrl-C ends them.

        After Ctrl-C parameters, history and multiplier are those of the last whole step. What else training keeps may be ahead of
        them, so that no further part can follow.

        Parameters
        ----------
        n_steps : int
        progress : object, optional
            ``progress(reached)`` is called after step ``progress.next_look(n_iter)``; a true answer ends training.

        Raises
        ------
        ValueError
            If parameters or gradients are not finite.
        """
        problem, state, optimizer = self.problem, self.reached, self.optimizer
        batches, score, regularizer, gradient, alpha = (
            problem.batches,
            problem.score,
            problem.regularizer,
            problem.gradient,
            problem.alpha,
        )
        theta, last = state.theta, state.n_iter + n_steps
        slope, discount, is_weighted = np.empty_like(theta), batches.discount, batches.is_weighted
        history = state.history = _longer(state.history, state.n_iter, n_steps)
        utilities, values, distances, multipliers = history.values()
        done = state.n_iter, theta.copy(), regularizer.multiplier
        try:
            while state.n_iter < last:
                look = last if progress is None else min(last, progress.next_look(state.n_iter))
                for batch in self.stream.take(look - state.n_iter):
                    step = state.n_iter
                    if step == regularizer.n_plain > 0:
                        optimizer.reset()
                    h = score.values_of_rows(theta, batch.X, batch.rows)
                    in_scores, utility = gradient(batch, h, discount)
                    value = regularizer.pull_scores(batch, h, gradient, in_scores)
                    if is_weighted:
                        in_scores *= np.repeat(batch.weight, np.diff(batch.offsets))
                    score.pull_back(theta, batch.X, batch.rows, in_scores, 1.0 / len(utility), slope)
                    report = regularizer.pull(batch, theta, slope) if step >= regularizer.n_plain else NOTHING
                    utilities[step] = utility @ batch.weight / len(utility)
                    values[step] = value + report.regularizer
                    distances[step], multipliers[step] = report.query_distance, regularizer.multiplier
                    if alpha:
                        slope -= alpha * theta
                    optimizer.step(theta, slope)
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
