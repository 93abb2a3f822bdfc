"""Parts to hand to a ranker: they begin where a test says, keep a diary of a fit, or interrupt it at a chosen moment.

So that no test has to replace what is inside the package.
"""

from contextlib import contextmanager
from unittest import SkipTest

import numba
import numpy as np
import pytest
import sklearn
from sklearn.utils.estimator_checks import estimator_checks_generator

from skfairrank import PlackettLuceRanker
from skfairrank._threads import threads_worth
from skfairrank.scores import LinearScore

needs_two_threads = pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")
needs_callbacks = pytest.mark.skipif(
    not hasattr(PlackettLuceRanker, "set_callbacks"), reason=f"scikit-learn {sklearn.__version__} has no callbacks"
)


@contextmanager
def on_threads(n):
    """Within the context, all work that can be cut goes to n threads, however small it is."""
    before = numba.get_num_threads()
    with threads_worth(1):
        try:
            numba.set_num_threads(n)
            yield
        finally:
            numba.set_num_threads(before)


class StartAt(LinearScore):
    """Linear scores whose training starts at given weights."""

    def __init__(self, weights):
        self.weights = weights

    def initial_parameters(self, n_features, rng):
        return np.array(self.weights, dtype=np.float64)


class _Shared:
    """The same object in every copy of an estimator: `clone` copies parameters deeply."""

    def __deepcopy__(self, memo):
        return self


# Diaries


class Diary(_Shared):
    """What a fit asked of its score: in every step the rows that it trained on, and between steps the looks at other rows."""

    def __init__(self):
        self.X, self.trained, self.looks = None, [], []

    @property
    def rows_trained_on(self):
        return np.unique(np.concatenate(self.trained))

    @property
    def rows_looked_at(self):
        return np.unique(np.concatenate([rows for _, rows, _ in self.looks]))


class ScoreWithDiary(LinearScore):
    """A step asks for values and pulls gradients back to the same rows; who asks for values alone only looks."""

    def __init__(self, diary):
        self.diary = diary

    def values_of_rows(self, theta, X, rows=None):
        self.diary.X = X
        if rows is not None:
            self.diary.looks.append((len(self.diary.trained), rows.copy(), theta.copy()))
        return super().values_of_rows(theta, X, rows)

    def vjp(self, theta, X, rows, g, scale, out):
        self.diary.looks.pop()
        self.diary.trained.append(rows.copy())
        super().vjp(theta, X, rows, g, scale, out)


class Recorder:
    """A scikit-learn callback that keeps what it sees, and stops or interrupts after so many reports."""

    def __init__(self, stop_after=None, raise_after=None):
        self.stop_after, self.raise_after = stop_after, raise_after
        self.begun, self.ended, self.fitted, self.calls = 0, [], [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.begun += 1

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.ended.append(context.task_name)
        if context.task_name == "steps":
            self.fitted.append((fitted_estimator, fitted_estimator.coef_.copy(), fitted_estimator.n_iter_))
            if len(self.fitted) == self.raise_after:
                raise KeyboardInterrupt
            return len(self.fitted) == self.stop_after
        return False


# Interruptions


class Fuse(_Shared):
    """Counts calls, and raises KeyboardInterrupt before the n-th of them, once."""

    def __init__(self, n=None):
        self.n_calls, self.n = 0, n

    def __call__(self, function, *args):
        self.n_calls += 1
        if self.n_calls == self.n:
            raise KeyboardInterrupt
        return function(*args)


class FusedScore(LinearScore):
    """A fuse on its gradients."""

    def __init__(self, fuse):
        self.fuse = fuse

    def vjp(self, *args):
        return self.fuse(super().vjp, *args)


def failures_of_check_estimator(estimator):
    """Names and errors of scikit-learn's checks that an estimator fails; none may be skipped but those of the array API."""
    failed = []
    for instance, check in estimator_checks_generator(estimator):
        try:
            check(instance)
        except SkipTest as skipped:
            assert "SCIPY_ARRAY_API" in str(skipped)
        except Exception as error:
            failed.append((getattr(check, "func", check).__name__, repr(error)[:200]))
    return failed


class Weights:
    """A linear ranker that was never fitted."""

    def __init__(self, *w):
        self.w = np.array(w)

    def predict(self, X):
        return np.asarray(X, dtype=float) @ self.w
