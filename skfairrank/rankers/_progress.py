"""Between training steps: progress, scikit-learn's callbacks, early stopping on held-out queries."""

from __future__ import annotations

import numpy as np

from skfairrank import scores
from skfairrank._queries import Queries
from skfairrank.plackett_luce import EXACT_LIMIT, expected_discounts

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover - older scikit-learn: no callbacks, `verbose` reports progress

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method):
        return method


__all__ = ["CallbackSupportMixin", "Callbacks", "EarlyStopping", "Progress", "mean_utility", "with_callbacks"]

# Exact expectations of held-out queries where they cost less than sampling.
_EXACT_SIZE = min(10, EXACT_LIMIT)


def mean_utility(data, queries: Queries, w: np.ndarray) -> float:
    """Mean expected utility of some of the data's queries, over those where it is defined; the same at each call."""
    h = scores.values(data.X, queries.order, w)
    together = Queries(queries.ids, np.arange(len(h)), queries.offsets, True)
    exact = queries.sizes.max() <= _EXACT_SIZE
    expected = expected_discounts(h, together, data.discount, n_samples="exact" if exact else 100, random_state=0)
    gain = data.gain[queries.order]
    per_query = np.add.reduceat(gain * expected, queries.offsets[:-1])
    defined = np.maximum.reduceat(gain, queries.offsets[:-1]) > 0
    return float(per_query[defined].mean()) if defined.any() else 0.0


class EarlyStopping:
    """Stop when the objective on held-out queries has not risen by `tol` for `n_iter_no_change` passes in a row.

    The objective is the held-out mean utility minus rho times the mean regulariser of the steps since the last look. Steps
    before the regulariser sets in do not count, since it is meant to cost utility.
    """

    def __init__(self, data, held_out: Queries, *, rho, tol, n_iter_no_change, steps_per_pass, n_plain):
        self.data, self.held_out, self.rho, self.tol = data, held_out, rho, tol
        self.patience, self.every, self.n_plain = n_iter_no_change, steps_per_pass, n_plain
        self.scores: list[float] = []
        self.best, self.best_w, self.waited, self.looked = -np.inf, None, 0, n_plain

    def next_look(self, n_iter: int) -> int:
        return self.looked + self.every

    def __call__(self, state) -> bool:
        if state.n_iter < self.looked + self.every:
            return False
        recent = state.history["regularizer"][self.looked : state.n_iter]
        self.looked = state.n_iter
        score = mean_utility(self.data, self.held_out, state.w) - self.rho * float(recent.mean())
        self.scores.append(score)
        self.waited = 0 if score > self.best + self.tol else self.waited + 1
        if score > self.best:
            self.best, self.best_w = score, state.w.copy()
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
    fitted_attributes : callable(state) -> dict
    early_stopping : EarlyStopping or None
    """

    REPORTS = 50

    def __init__(self, estimator, max_iter: int, callbacks, fitted_attributes, early_stopping: EarlyStopping | None):
        self.estimator, self.max_iter, self.callbacks = estimator, max_iter, callbacks
        self.fitted_attributes, self.early_stopping = fitted_attributes, early_stopping
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
                f"regularizer {recent['regularizer']:.3g}  lambda {state.lambda_:.3g}",
                flush=True,
            )
            self.printed = state.n_iter
        while self.callbacks is not None and self.reported < self.max_iter and self._is_due(state.n_iter):
            self.reported += self.interval
            stop |= self.callbacks.report(lambda: self.fitted_attributes(state))
        return stop

    def _is_due(self, n_iter: int) -> bool:
        return n_iter >= min(self.reported + self.interval, self.max_iter)
