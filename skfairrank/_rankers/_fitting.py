"""What a trained ranker does with its problem: hold queries out, run the solver, refit what the box has left, and tell of it."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfairrank._rankers._progress import EarlyStopping, Progress
from skfairrank._rankers._scales import warn_of_scales
from skfairrank._rankers._teaching import warn_if_nothing_can_be_learned
from skfairrank._solvers import Problem, Training, TrainingState, solve
from skfairrank._warnings import warn_caller

__all__ = ["finish", "optimise", "resume_after", "settings_kept", "warn_of_data", "warn_of_end"]


def optimise(ranker, problem: Problem, state: TrainingState, streams, callbacks=None, keeper=None) -> None:
    """Solve a problem by the ranker's settings, in place on `state`.

    Parameters
    ----------
    ranker : PlackettLuceRanker
        Its parameters are read, and nothing is set.
    streams : tuple of numpy.random.Generator
        For the order of the queries, the noise, and the split of early stopping.
    callbacks : Callbacks, optional
    keeper : skfairrank._rankers._keeping.Keeper, optional
        Only with solver="adam".
    """
    kept = None if keeper is None else keeper.saved_in("refit") or keeper.saved_in("finished")
    if kept is not None:  # this stage of training was done before
        n_iter = kept["result"]["n_iter"] if "result" in kept else kept["n_first"]
        Progress(ranker, int(ranker.max_iter), callbacks).go_on_from(n_iter)
    elif ranker.solver == "lbfgs":
        _solve(ranker, problem, state, streams, callbacks)
    else:
        _train(ranker, problem, state, streams, callbacks, keeper=keeper)
    if kept is not None and "result" in kept:
        state.restore(kept["result"])
        return
    relax = float(getattr(ranker, "relax", 0.0))
    if relax > 0 and problem.regularizer.strength > 0 and not state.interrupted:
        _refit(ranker, problem, state, streams, relax, keeper)
    if keeper is not None and not state.interrupted:
        keeper.finish(state.result())


def _refit(ranker, problem, state, streams, relax, keeper=None):
    """After the relaxed lasso: weights and directions that are zero stay so, the others are fitted with less of the penalty."""
    saved = None if keeper is None else keeper.saved_in("refit")
    if saved is not None:
        state.planned, state.history, state.n_iter = saved["planned"], saved["first"], saved["n_first"]
    first, steps = state.history, state.n_iter
    rho, n_plain = problem.regularizer.strength, problem.regularizer.n_plain
    problem.regularizer.strength, problem.regularizer.n_plain = rho * (1.0 - relax), 0
    state.n_iter, state.history, state.forces, state.resume = 0, {}, None, None
    try:
        if ranker.solver == "lbfgs":
            _solve(ranker, problem, state, streams, None, problem.regularizer.prepared.zeros(state.theta))
        else:
            projector = _keep_zeros(ranker, problem, state) if saved is None else saved["projector"]
            known = {"planned": state.planned, "first": first, "n_first": steps, "projector": projector}
            _train(ranker, problem, state, streams, None, projector, keeper, "refit", known)
    finally:
        problem.regularizer.strength, problem.regularizer.n_plain = rho, n_plain
    state.n_iter += steps
    state.history = {name: np.r_[first[name], state.history[name]] for name in first}


def _keep_zeros(ranker, problem, state) -> np.ndarray:
    """Put the parameters on the zeros that they are near, and return the projector that keeps them there."""
    box, largest = problem.regularizer.prepared, max(float(np.abs(state.theta).max()), np.finfo(float).tiny)
    projector = box.projector(box.zeros(state.theta, tolerance=2.0 * float(ranker.learning_rate) / largest))
    state.theta = projector @ state.theta
    return projector


def _solve(ranker, problem, state, streams, callbacks, zeros=None):
    if ranker.early_stopping:
        raise ValueError(
            'early_stopping=True needs solver="adam": "lbfgs" stops when it has converged (tol, max_iter).'
        )
    state.planned += int(ranker.max_iter)
    solve(
        problem,
        state,
        tol=float(ranker.tol),
        max_iter=int(ranker.max_iter),
        after_iteration=Progress(ranker, int(ranker.max_iter), callbacks),
        zeros=zeros,
    )


def _train(ranker, problem, state, streams, callbacks, projector=None, keeper=None, stage="first", known=None):
    max_iter = int(ranker.max_iter)
    state.planned += max_iter
    order_rng, noise_rng, split_rng = streams
    stopping = None
    if ranker.early_stopping:
        kept, held_out = _hold_out(
            ranker, len(problem.batches.sizes), copy.deepcopy(split_rng)
        )  # the same in a second fit
        stopping = EarlyStopping(ranker, problem, problem.batches.subset(held_out), len(kept))
        problem = copy.copy(problem)
        problem.batches = problem.batches.subset(kept)
    stream = problem.batches.stream(int(ranker.batch_size), order_rng, noise_rng)
    training = Training(problem, state, stream, float(ranker.learning_rate), projector)
    progress, is_stopped = Progress(ranker, max_iter, callbacks, stopping, keeper), False
    if keeper is not None:
        n_iter = keeper.begin(stage, training, stopping, **(known or {}))
        is_stopped = progress.go_on_from(n_iter)
        keeper.is_cut_short |= is_stopped
    if not is_stopped:
        training.run(max_iter - state.n_iter, progress)
    if not (state.interrupted or stopping is not None or projector is not None):
        state.resume = resume_after(training, order_rng, noise_rng)
    if stopping is not None:
        state.validation_scores = np.array(stopping.scores)
        if stopping.best_theta is not None:
            state.theta = stopping.best_theta


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
    names = ("score_function", "metric", "adversary", "hypotheticals")
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
    warn_if_nothing_can_be_learned(batches.tables.gain, batches.queries)
    if ranker.solver == "adam" and not is_warm:
        warn_of_scales(batches.X, batches.queries, getattr(ranker, "feature_names_in_", None))


def warn_of_end(ranker, state: TrainingState) -> None:
    """Say so where training has not come to its end."""
    if state.interrupted:
        warn_caller(
            f"fit was interrupted after {state.interrupted_at or f'{state.n_iter} of {state.planned} steps'}; the ranker is "
            "usable as it is.",
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
