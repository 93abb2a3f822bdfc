"""The best of several starts: what has poor optima, such as a network, is trained more than once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skfairrank._rankers._fitting import optimise
from skfairrank._solvers import Problem, TrainingState, objective

__all__ = ["Start", "best_of"]

# Objectives are measured on all queries, and where these are more than so many, on as many as this share of the steps sees.
_FEW_QUERIES, _SHARE = 1000, 0.1


class Start(NamedTuple):
    """One run from its own random numbers; what it finds is written into its state."""

    state: TrainingState
    #: A `skfairrank._rankers._setup.Streams`.
    streams: Any


def best_of(ranker, problem: Problem, starts: list[Start], callbacks) -> tuple[TrainingState, np.ndarray]:
    """Run the starts; the state of the one with the largest objective, and the objectives of all that ran.

    Callbacks and `verbose` tell of the first start. Where there is anything to tell, that one runs here, before the others. Once
    a start is interrupted, or a callback asks to stop, no other is begun.

    Parameters
    ----------
    ranker : PlackettLuceRanker
        Its parameters are read, and nothing is set.
    problem : Problem
        That of all starts. It is an argument of its own so that joblib can send its rows to another machine once.
    starts : list of Start
    callbacks : Callbacks
    """
    silent = type(ranker)(
        **{**ranker.get_params(deep=False), "verbose": 0}
    )  # nothing that `fit` has set so far is sent
    n_first = int(callbacks.listen or bool(ranker.verbose))
    done = [_run(ranker, problem, start, callbacks) for start in starts[:n_first]]
    # Asked before each start: those that run in this process write into these very states.
    others = (start for start in starts[n_first:] if not (callbacks.asked_to_stop or _is_interrupted(starts)))
    done += Parallel(n_jobs=ranker.n_jobs)(delayed(_run)(silent, problem, start) for start in others)
    states, objectives = zip(*done, strict=True)
    best, last = states[int(np.argmax(objectives))], states[-1]
    if last.interrupted:
        best.interrupted = True
        best.interrupted_at = f"{last.n_iter} of {last.planned} steps of start {len(done)} of {len(starts)}"
    return best, np.array(objectives)


def _is_interrupted(starts):
    return any(start.state.interrupted for start in starts)


def _run(ranker, problem, start, callbacks=None):
    """What a start has reached, and its objective; that is -inf where Ctrl-C came before it was known."""
    state, streams = start
    problem = replace(problem, regularizer=problem.regularizer.fresh(streams.starts))
    optimise(ranker, problem, state, streams.of_training, callbacks)
    at_most = max(_FEW_QUERIES, int(_SHARE * int(ranker.max_iter) * int(ranker.batch_size)))
    try:
        return state, objective(problem, state.theta, state.multiplier, at_most)
    except KeyboardInterrupt:
        state.interrupted = True
        return state, -np.inf
