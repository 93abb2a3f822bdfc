"""Training on a stream of data: each call takes whole queries and passes over them once, from where the last call has ended."""

from __future__ import annotations

from pickle import PicklingError
from typing import Any

import numpy as np
from joblib import hash as hash_of

from skfairrank._batches import OnePass
from skfairrank._checks import as_values
from skfairrank._rankers._fitting import finish, resume_after, settings_kept, warn_of_data
from skfairrank._rankers._progress import Progress
from skfairrank._rankers._setup import Given, Streams, initial_state, make_problem
from skfairrank._solvers import Training, TrainingState

__all__ = ["go_on_with"]


def go_on_with(ranker, given: Given) -> None:
    """Train on the queries of one call; the ranker stays as it is where that fails, or Ctrl-C ends it."""
    before = dict(vars(ranker))
    try:
        _refuse(ranker)
        if given.goes_on:
            _check_settings(ranker)
        _go_on(ranker, given)
    except BaseException:
        vars(ranker).clear()
        vars(ranker).update(before)
        raise


def _go_on(ranker, given):
    n_queries = ranker.n_queries_ if given.goes_on else 0
    streams, resume = Streams.of(ranker.random_state), getattr(ranker, "_resume", None) if given.goes_on else None
    problem = make_problem(ranker, given, streams.starts)
    ends = _ends(given.qid)
    _check_that_queries_are_whole(getattr(ranker, "_last_query", None) if given.goes_on else None, ends)
    if given.goes_on:
        state = _reached(ranker, problem)
    else:
        warn_of_data(ranker, problem.batches, is_warm=False)
        state = initial_state(ranker, problem, streams.initial)
    if resume is not None:
        streams.order.bit_generator.state, streams.noise.bit_generator.state = resume["order"], resume["noise"]
    stream = OnePass(problem.batches, int(ranker.batch_size), streams.order, streams.noise)
    training = Training(problem, state, stream, float(ranker.learning_rate))
    if resume is not None:
        training.optimizer.restore(resume["optimizer"])
        problem.regularizer.restore(resume["regularizer"])
    progress = Progress(ranker, state.n_iter + stream.n_steps, None)
    progress.printed = state.n_iter
    training.run(stream.n_steps, progress)
    if state.interrupted:
        raise KeyboardInterrupt
    state.resume = resume_after(training, streams.order, streams.noise)
    vars(ranker).pop("validation_scores_", None)  # of an earlier fit with other settings
    finish(ranker, state, n_queries_=n_queries + ranker.n_queries_, _last_query=None if ends is None else ends[1])


def _refuse(ranker):
    """Raise where settings ask for something that a stream, of which nobody knows the end, cannot have."""
    refused = {
        'solver="lbfgs"': (ranker.solver == "lbfgs", "it needs the whole training set in every iteration"),
        "early_stopping": (ranker.early_stopping, "it holds queries of one training set out"),
    }
    for name, (is_set, reason) in refused.items():
        if is_set:
            raise ValueError(
                f"partial_fit does not go with {name}: {reason}. Use fit, or set_params to the default of this parameter."
            )


def _check_settings(ranker):
    """Raise where a parameter has changed that says what was learned at the beginning and is kept."""
    for name, was in ranker._trained_with.items():
        now = settings_kept(ranker)[name]
        if not _are_equal(now, was):
            raise ValueError(
                f"{name} is {now!r}, and was {was!r} when training began, so that partial_fit cannot go on: the fair metric and "
                "the parameters of the score are kept from then. Give what it was, or begin anew with fit, or with a clone."
            )


def _are_equal(one, other) -> bool:
    if one is other:
        return True
    try:
        return hash_of(one) == hash_of(other)
    except PicklingError:  # a function without a name
        return False


def _reached(ranker, problem) -> TrainingState:
    """Where the last call, or the last fit, has ended."""
    if problem.batches.n_features != ranker._n_features_trained:
        raise ValueError(
            f"X has {problem.batches.n_features} features, and partial_fit goes on from parameters for "
            f"{ranker._n_features_trained}: the last fit has failed. Fit anew, or use a clone."
        )
    theta = ranker.coef_ if problem.score.is_linear else ranker.parameters_
    state = TrainingState(np.array(theta, dtype=np.float64), multiplier=problem.regularizer.multiplier)
    state.n_iter, state.history = ranker.n_iter_, ranker.history_
    return state


def _ends(qid) -> tuple[Any, Any] | None:
    """The ids of the queries with which the rows begin and end; None for one whose rows do not lie together."""
    if qid is None:
        return None
    values = as_values(qid)
    return _end(values), _end(values[::-1])


def _end(values):
    rows = np.flatnonzero(values == values[0])
    if rows[-1] != len(rows) - 1:
        return None
    return values[0].item() if isinstance(values[0], np.generic) else values[0]


def _check_that_queries_are_whole(last, ends):
    if last is not None and ends is not None and ends[0] == last:
        raise ValueError(
            f"The rows begin with query {last!r}, with which those of the last call have ended: a query that is cut in two loses "
            "the pairs of items between its parts. Keep all rows of a query for one call. If it is another query, or the same "
            "once more, give it another id."
        )
