"""Runs a solver on a training problem: early stopping, warm start, warnings at the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfairrank._checks import warn_caller
from skfairrank._rankers._progress import EarlyStopping, Progress
from skfairrank._rankers._scales import N_NUMBERS, warn_of_scales
from skfairrank._rankers._teaching import warn_if_nothing_can_be_learned
from skfairrank._solvers import Problem, Training, TrainingState, solve

__all__ = ["finish", "optimise", "resume_after", "settings_kept", "warn_of_data", "warn_of_end"]


def optimise(ranker, problem: Problem, state: TrainingState, streams, callbacks=None) -> None:
    """Solve a problem by the ranker's settings, in place on `state`.

    Parameters
    ----------
    ranker : PlackettLuceRanker
        Its parameters are read, and nothing is set.
    streams : tuple of numpy.random.Generator
        For the order of the queries, the noise, and the split of early stopping.
    callbacks : Callbacks, optional
    """
    state.planned = max_iter = int(ranker.max_iter)
    if ranker.solver == "lbfgs":
        if ranker.early_stopping:
            raise ValueError(
                'early_stopping=True needs solver="adam": "lbfgs" stops when it has converged (tol, max_iter).'
            )
        progress = Progress(ranker, max_iter, callbacks)
        solve(problem, state, tol=float(ranker.tol), max_iter=max_iter, after_iteration=progress)
        return
    order_rng, noise_rng, split_rng = streams
    stopping = None
    if ranker.early_stopping:
        kept, held_out = _hold_out(ranker, len(problem.batches.sizes), split_rng)
        stopping = EarlyStopping(ranker, problem, problem.batches.subset(held_out), len(kept))
        problem = replace(problem, batches=problem.batches.subset(kept))
    stream = problem.batches.stream(int(ranker.batch_size), order_rng, noise_rng)
    training = Training(problem, state, stream, float(ranker.learning_rate))
    training.run(max_iter - state.n_iter, Progress(ranker, max_iter, callbacks, stopping))
    if stopping is not None:
        state.validation_scores = np.array(stopping.scores)
        if stopping.best_theta is not None:
            state.theta = stopping.best_theta
    elif not state.interrupted:
        state.resume = resume_after(training, order_rng, noise_rng)


def resume_after(training: Training, order_rng, noise_rng) -> dict:
    """What further steps, on other data, depend on beside the parameters and their number."""
    return {
        "optimizer": training.optimizer.state(),
        "regularizer": training.problem.regularizer.state(),
        "order": order_rng.bit_generator.state,
        "noise": noise_rng.bit_generator.state,
    }


def settings_kept(ranker) -> dict:
    """Parameters that say what a stream of data learns at its beginning and keeps: the kind of score, and the fair metric."""
    names = ("score_function", "metric", "adversary")
    settings = {name: getattr(ranker, name) for name in names if hasattr(ranker, name)}
    return {**settings, "rho > 0": ranker.rho > 0} if hasattr(ranker, "rho") else settings


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


def warn_of_data(ranker, batches, is_warm: bool) -> None:
    """Say so where nothing can be learned, or not by steps of one length; a warm start has been told of the latter."""
    warn_if_nothing_can_be_learned(batches.sizes, ((batch.gain, batch.offsets) for batch in batches.in_order()))
    if ranker.solver == "adam" and not is_warm:
        X, queries = batches.first_rows(N_NUMBERS)
        warn_of_scales(X, queries, getattr(ranker, "feature_names_in_", None))


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


def finish(ranker, state: TrainingState, **others) -> None:
    """Give a ranker its fitted attributes, in one go, since Ctrl-C may come again; `others` are attributes as well."""
    attributes = {
        **ranker._fitted_attributes(state),
        "_trained_with": settings_kept(ranker),
        "_last_query": None,
        **others,
    }
    ranker.__dict__.update(attributes)
    if "coef_" not in attributes:  # an earlier fit had a linear score
        ranker.__dict__.pop("coef_", None)
