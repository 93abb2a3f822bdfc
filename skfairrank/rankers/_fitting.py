"""How a ranker runs a solver: random streams, where training begins, early stopping, progress and callbacks, warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfairrank._checks import warn_caller
from skfairrank._queries import Queries, centred
from skfairrank._random import spawn_generators
from skfairrank.scores import LOOKED_AT, check_start
from skfairrank.training._adam import Adam, Problem, TrainingState, mean_utility, train
from skfairrank.training._batches import BatchStream
from skfairrank.training._lbfgs import solve

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover - older scikit-learn: no callbacks, `verbose` reports progress

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method):
        return method


class Streams(NamedTuple):
    """Random streams of a fit, one for each purpose."""

    initial: np.random.Generator
    order: np.random.Generator
    noise: np.random.Generator
    attack: np.random.Generator
    split: np.random.Generator

    @classmethod
    def of(cls, random_state) -> Streams:
        return cls(*spawn_generators(random_state, len(cls._fields)))


def n_plain_steps(ranker) -> int:
    """Steps without the regulariser, of a ranker that has one."""
    return 0 if ranker.solver == "lbfgs" else round(float(ranker.fair_start) * int(ranker.max_iter))


def initial_state(ranker, problem: Problem, rng) -> TrainingState:
    """Where training begins: at random, or where the last fit of a warm start has ended."""
    score, n_features = problem.score, problem.batches.n_features
    theta = score.initial_parameters(n_features, rng)
    if ranker.solver == "lbfgs" and score.is_linear:
        theta = np.zeros(n_features)
    state = TrainingState(np.array(theta, dtype=np.float64), multiplier=problem.regularizer.multiplier)
    if ranker.warm_start and hasattr(ranker, "parameters_"):
        if ranker._n_features_trained != n_features or len(ranker.parameters_) != len(theta):
            raise ValueError(
                f"warm_start=True, but the last fit had {ranker._n_features_trained} features and {len(ranker.parameters_)} "
                f"parameters, and X has {n_features} features and {len(theta)} parameters: set warm_start=False, or give the "
                "same features and score_function."
            )
        state.theta = np.array(ranker.coef_ if score.is_linear else ranker.parameters_, dtype=np.float64)
        state.dual_variables = ranker._dual_variables
    if not score.is_linear:
        check_start(score, state.theta, problem.batches.X[:LOOKED_AT])
    return state


def optimise(ranker, problem: Problem, state: TrainingState, streams: Streams, callbacks=None) -> Adam | None:
    """Solve a problem by the ranker's settings, in place on `state`; the ranker's parameters are read, and nothing is set.

    Returns
    -------
    optimizer : Adam or None
        None where `state` is not what its last step has left.
    """
    state.planned = max_iter = int(ranker.max_iter)
    regularizer, stopping = problem.regularizer, None
    if ranker.solver == "lbfgs":
        if ranker.early_stopping:
            raise ValueError(
                'early_stopping=True needs solver="adam": "lbfgs" stops when it has converged (tol, max_iter).'
            )
        regularizer.prepare(problem.batches, problem.score)
        progress = Progress(ranker, max_iter, callbacks)
        solve(problem, state, tol=float(ranker.tol), max_iter=max_iter, after_iteration=progress)
        return None
    if ranker.early_stopping:
        kept, held_out = _hold_out(ranker, len(problem.batches.sizes), streams.split)
        stopping = EarlyStopping(ranker, problem, problem.batches.subset(held_out), len(kept))
        problem = replace(problem, batches=problem.batches.subset(kept))
    regularizer.prepare(problem.batches, problem.score)
    stream = BatchStream(problem.batches, int(ranker.batch_size), streams.order, streams.noise)
    optimizer, progress = Adam(len(state.theta)), Progress(ranker, max_iter, callbacks, stopping)
    train(problem, state, stream, optimizer, float(ranker.learning_rate), max_iter, progress)
    if stopping is None:
        return None if state.interrupted else optimizer
    state.validation_scores = np.array(stopping.scores)
    if stopping.best_theta is not None:
        state.theta = stopping.best_theta
    return None


def _hold_out(ranker, n: int, rng):
    """Numbers of the queries to train on, and of those to hold out."""
    n_held_out = max(1, round(float(ranker.validation_fraction) * n))
    if n - n_held_out < 1:
        raise ValueError(
            f"early_stopping holds out {n_held_out} of {n} queries, which leaves none to train on: give more queries, a "
            "smaller validation_fraction, or early_stopping=False."
        )
    shuffled = rng.permutation(n)
    return np.sort(shuffled[n_held_out:]), np.sort(shuffled[:n_held_out])


# Between training steps


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
        metadata = {name: value for name, value in metadata.items() if value is not None}
        self.given = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}

    def begin(self, n_reports: int) -> None:
        if getattr(self.estimator, "_skl_callbacks", None):
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
    max_iter : int
        The step with which training ends.
    callbacks : Callbacks or None
    early_stopping : EarlyStopping, optional
    n_before : int
        Steps of earlier calls.
    """

    REPORTS = 50

    def __init__(self, estimator, max_iter: int, callbacks=None, early_stopping=None, n_before: int = 0):
        self.estimator, self.max_iter, self.callbacks = estimator, max_iter, callbacks
        self.early_stopping, self.interval = early_stopping, self.interval_of(max_iter)
        self.printed, self.reported = n_before, 0

    @classmethod
    def interval_of(cls, max_iter: int) -> int:
        return max(1, -(-max_iter // cls.REPORTS))

    @classmethod
    def n_reports(cls, max_iter: int) -> int:
        return -(-max_iter // cls.interval_of(max_iter))

    def next_look(self, n_iter: int) -> int:
        """The step after which to be called next."""
        is_watched = self.estimator.verbose or (self.callbacks is not None and self.callbacks.context is not None)
        look = (n_iter // self.interval + 1) * self.interval if is_watched else self.max_iter
        stopping = self.early_stopping
        return look if stopping is None else min(look, stopping.looked + stopping.every)

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
        while self.callbacks is not None and self.reported < self.max_iter:
            if state.n_iter < min(self.reported + self.interval, self.max_iter):
                break
            self.reported += self.interval
            stop |= self.callbacks.report(lambda: self.estimator._fitted_attributes(state))
        return stop


# Warnings


def warn_if_nothing_can_be_learned(queries: Queries, gain: np.ndarray) -> None:
    """Warn where every query has one row, or gains (grouped by query) that are all equal."""
    if queries.sizes.max() == 1:
        if queries.n_queries > 1:
            warn_caller(
                f"Each of the {queries.n_queries} rows is a query of its own, so that there is no order to learn: qid must be "
                "equal for rows that compete with each other (a job opening, a search), not an id of the row."
            )
    elif not queries.differ_within(gain).any():
        warn_caller(
            "All relevances are equal within each query, so that there is no order to learn: every ranking is as good as any "
            "other. y must be higher for rows that are to be ranked higher."
        )


# Adam moves all weights by about the same length. In trials (learning_rate .01, 2,000 steps) a feature a hundred times smaller
# than the others was learned no better than if it were not there, and one ten thousand times larger drowned the others.
LARGEST_RATIO = 100.0
# Where no feature varies more than this, a small one may be what a projection left of it, and is to stay small.
LEAST_DEVIATION = 10.0
# Numbers looked at: the first rows, in the order of their queries.
N_NUMBERS = 100_000
N_NAMED = 3


def warn_of_scales(X: np.ndarray, queries: Queries, names=None) -> None:
    """Warn where a feature's deviation is more than a hundred times what another could have within its range, and large.

    Both are within queries, which is all that rankings see. A rare category has a small deviation, but its range is that of other
    categories; so it is not meant.

    Parameters
    ----------
    X : ndarray of float, shape (n_rows, n_features)
    names : ndarray of str, shape (n_features,), optional
    """
    n_rows = min(queries.n_rows, max(100, N_NUMBERS // X.shape[1]))
    n_queries = int(np.searchsorted(queries.offsets, n_rows))
    values = X[queries.order[:n_rows]].astype(np.float64)
    largest = np.abs(values).max(axis=0)
    values = centred(values, np.append(queries.offsets[:n_queries], n_rows))
    deviation = np.sqrt(np.einsum("ij,ij->j", values, values) / n_rows)
    most = (values.max(axis=0) - values.min(axis=0)) / 2.0
    varies = np.flatnonzero(deviation > 1e-6 * largest)
    deviation, most = deviation[varies], most[varies]
    if not len(varies) or deviation.max() <= max(LARGEST_RATIO * most.min(), LEAST_DEVIATION):
        return
    typical = np.median(np.log(deviation))
    far = np.maximum(np.log(deviation) - typical, typical - np.log(most))
    worst = [k for k in np.argsort(-far, kind="stable")[:N_NAMED] if far[k] > 0.5 * far.max()]
    called = [f"column {j}" for j in range(X.shape[1])] if names is None else [repr(name) for name in names]
    named = ", ".join(f"{called[varies[k]]} ({deviation[k]:.2g})" for k in worst)
    warn_caller(
        f"Features are of very different scale, so that training learns the large ones or the small ones badly: {named} beside "
        f"{np.exp(typical):.2g} for the typical feature (standard deviations within queries). Standardise them: "
        "make_pipeline(StandardScaler(), ranker)."
    )


def warn_of_data(ranker, batches, is_warm: bool) -> None:
    """Say so where nothing can be learned, or not by steps of one length; a warm start has been told of the latter."""
    warn_if_nothing_can_be_learned(batches.queries, batches.tables.gain)
    if ranker.solver == "adam" and not is_warm:
        warn_of_scales(batches.X, batches.queries, batches.feature_names)


def warn_of_end(ranker, state: TrainingState) -> None:
    """Say so where training has not come to its end."""
    if state.interrupted:
        warn_caller(
            f"fit was interrupted after {state.n_iter} of {state.planned} steps; the ranker is usable as it is.",
        )
    if not state.converged:
        warn_caller(
            f"L-BFGS did not converge in {state.n_iter} iterations (max_iter={ranker.max_iter}, tol={ranker.tol}). Increase "
            "max_iter or tol, or scale the features. Without a penalty scores may grow without bound: set alpha or rho "
            "above 0.",
            ConvergenceWarning,
        )
