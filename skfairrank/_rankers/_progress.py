"""Between training steps: progress, scikit-learn's callbacks, early stopping on held-out queries."""

from __future__ import annotations

import numpy as np

from skfairrank._solvers import Problem, mean_utility

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover - older scikit-learn: no callbacks, `verbose` reports progress

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method):
        return method


__all__ = ["CallbackSupportMixin", "Callbacks", "EarlyStopping", "Progress", "with_callbacks"]


class EarlyStopping:
    """Stop when the objective on held-out queries has not risen by `tol` for `n_iter_no_change` passes in a row.

    The objective is the held-out mean utility minus rho times the mean regulariser of the steps since the last look. Steps
    before the regulariser sets in do not count, since it is meant to cost utility.
    """

    def __init__(self, ranker, problem: Problem, held_out, n_kept: int):
        self.problem, self.held_out = problem, held_out
        self.tol, self.patience = float(ranker.tol), int(ranker.n_iter_no_change)
        self.every = -(-n_kept // min(int(ranker.batch_size), n_kept))  # steps of a pass
        n_plain = problem.regularizer.n_plain
        self.scores: list[float] = []
        self.best, self.best_theta, self.waited = -np.inf, None, 0
        self.looked = n_plain if problem.regularizer.strength > 0 and n_plain < ranker.max_iter else 0

    def next_look(self, n_iter: int) -> int:
        return self.looked + self.every

    def __call__(self, state) -> bool:
        if state.n_iter < self.looked + self.every:
            return False
        recent = state.history["regularizer"][self.looked : state.n_iter]
        self.looked = state.n_iter
        strength = self.problem.regularizer.strength
        score = mean_utility(self.problem, state.theta, self.held_out) - strength * float(recent.mean())
        self.scores.append(score)
        self.waited = 0 if score > self.best + self.tol else self.waited + 1
        if score > self.best:
            self.best, self.best_theta = score, state.theta.copy()
        return self.waited >= self.patience


class Callbacks:
    """scikit-learn's callbacks of one fit; without them, nothing."""

    def __init__(self, estimator, X, y, metadata):
        self.estimator, self.context = estimator, None
        self.given = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}

    def begin(self, n_reports: int) -> None:
        if hasattr(self.estimator, "_init_callback_context"):
            self.context = self.estimator._init_callback_context(max_subtasks=n_reports)
            self.context.call_on_fit_task_begin(**self.given)

    def report(self, fitted_attributes) -> bool:
        """Tell of some steps; true if a callback asks to stop. `fitted_attributes` is called if a callback wants to predict."""
        if self.context is None:
            return False
        task = self.context.subcontext(task_name="steps")
        task.call_on_fit_task_begin(**self.given)
        return task.call_on_fit_task_end(**self.given, reconstruction_attributes=fitted_attributes)

    def end(self) -> None:
        if self.context is not None:
            self.context.call_on_fit_task_end(**self.given, reconstruction_attributes={})


class Progress:
    """Called with the training state now and then; true ends training.

    Parameters
    ----------
    estimator : ranker being fitted
    callbacks : Callbacks or None
    early_stopping : EarlyStopping, optional
    """

    REPORTS = 50

    def __init__(self, estimator, max_iter: int, callbacks, early_stopping: EarlyStopping | None = None):
        self.estimator, self.max_iter, self.callbacks = estimator, max_iter, callbacks
        self.early_stopping = early_stopping
        self.interval = self.interval_of(max_iter)
        self.printed = self.reported = 0

    @classmethod
    def interval_of(cls, max_iter: int) -> int:
        return max(1, -(-max_iter // cls.REPORTS))

    @classmethod
    def n_reports(cls, max_iter: int) -> int:
        return -(-max_iter // cls.interval_of(max_iter))

    def next_look(self, n_iter: int) -> int:
        """The step after which to be called next."""
        look = (n_iter // self.interval + 1) * self.interval
        return look if self.early_stopping is None else min(look, self.early_stopping.next_look(n_iter))

    def __call__(self, state) -> bool:
        stop = self.early_stopping is not None and self.early_stopping(state)
        finished = state.n_iter >= self.max_iter or stop
        if self.estimator.verbose and (finished or state.n_iter >= self.printed + self.interval):
            recent = {name: float(values[self.printed : state.n_iter].mean()) for name, values in state.history.items()}
            print(
                f"[{type(self.estimator).__name__}] step {state.n_iter}/{self.max_iter}  utility {recent['utility']:.4f}  "
                f"regularizer {recent['regularizer']:.3g}  lambda {state.multiplier:.3g}",
                flush=True,
            )
            self.printed = state.n_iter
        asked_to_stop = False
        while self.callbacks is not None and self.reported < self.max_iter and self._is_due(state.n_iter):
            self.reported += self.interval
            asked_to_stop |= self.callbacks.report(lambda: self.estimator._fitted_attributes(state))
        return stop or asked_to_stop

    def _is_due(self, n_iter: int) -> bool:
        return n_iter >= min(self.reported + self.interval, self.max_iter)
