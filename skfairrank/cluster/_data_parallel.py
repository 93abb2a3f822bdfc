"""One ranker trained by several workers, each on its own queries: local steps, averaged now and then."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from skfairrank._rankers import PlackettLuceRanker
from skfairrank._rankers._fingerprint import described
from skfairrank._rankers._fitting import finish, warn_of_data, warn_of_end
from skfairrank._rankers._progress import Callbacks
from skfairrank._rankers._setup import Given, Streams, initial_state, make_problem
from skfairrank._solvers import Problem, Training, TrainingState
from skfairrank._solvers._problem import HISTORY
from skfairrank._threads import one_blas_thread
from skfairrank._validation import check_one_kind
from skfairrank._warnings import warn_caller
from skfairrank.cluster._dask import client_of, send
from skfairrank.ranking_files import RankingSource

__all__ = ["fit_on_workers"]

# Attributes in which all parts must agree, and what messages call them.
_SHARED = {"n_features_in_": "features", "feature_names_in_": "names of features", "groups_": "groups"}


def fit_on_workers(ranker, parts, *, client=None, average_every=100):
    """Train one ranker on the queries of several parts, each of which stays on a worker.

    Every part takes `average_every` steps of Algorithm 1 on its own queries, all from the same state. Then parameters, Adam's
    moments and lambda are averaged, each part counting by the number of its queries (by the sum of their `query_weight`). And so
    on, up to `max_iter` steps. A part keeps its own random numbers and hypothetical queries.

    Parameters
    ----------
    ranker : PlackettLuceRanker, FairPGRanker or SenSTIRRanker
        Its parameters; it is cloned. ``solver="adam"``, of which each part takes `max_iter` steps with `batch_size` queries.
    parts : list
        Each the arguments of `fit`, as a dict ``{"X": X, "y": y, "qid": qid}``, with `sensitive_features`, `query_weight` and
        `X_hypothetical` where they are needed; or a tuple ``(X, y, qid)``; or rows on a disk that workers can read, such as
        ``ParquetRanking(path)``. Or a Dask future or delayed object that makes one on a worker, so that its rows never come here.
        The result depends on how many parts there are, and not on how many workers.
    client : distributed.Client, optional
        Default: the latest one of this process.
    average_every : int, default=100
        Steps between averages. Fewer bring parts closer to one training on all queries, and cost more messages.

    Returns
    -------
    ranker : a fitted clone
        `history_` has the parts' weighted means of each step.

    Raises
    ------
    ValueError
        If rows of one query are in two parts; if parts differ in their features; if each part has learned a fair metric of its
        own; or if the ranker asks for something that is not done here, such as early stopping.

    Notes
    -----
    An int `random_state` gives the same bits for any number of workers, whichever answers first, and also where a worker is lost:
    what it was at work on is done again by another one, from the same state. One part gives the bits of ``ranker.fit``. What lies
    in a future that `Client.scatter` has made is lost with its worker; one that `Client.submit` has made is made again.

    Ctrl-C ends training; the ranker has the last average, and is usable as it is.

    Examples
    --------
    The user guide, docs/cluster.md, has one that runs. In short::

        parts = [client.submit(read_part, path) for path in paths]
        ranker = fit_on_workers(SenSTIRRanker(metric=FrozenEstimator(metric), random_state=0), parts)
    """
    client = client_of(client)
    ranker = _checked(ranker, average_every)
    if isinstance(parts, (RankingSource, Mapping)):
        raise TypeError(
            f"parts is a {type(parts).__name__}: give a list of parts, such as a ParquetRanking for each file."
        )
    parts = list(parts)
    if not parts:
        raise ValueError("parts is empty: give at least one, such as (X, y, qid).")
    # Without a generator in it, whose state the tasks would share.
    sent, streams = clone(ranker).set_params(random_state=None), Streams.of_starts(ranker.random_state, len(parts))
    given = [_future_of(client, part) for part in parts]
    prepared = [
        client.submit(_prepare, sent, part, own, streams[0].initial, pure=False)
        for part, own in zip(given, streams, strict=True)
    ]
    summaries = client.gather([client.submit(_summary, part, pure=False) for part in prepared])
    _check_parts(ranker, summaries)
    state = _rounds(ranker, client, prepared, summaries, int(average_every))
    ranker.__dict__.update(summaries[0]["attributes"])
    ranker.n_queries_ = sum(len(summary["ids"]) for summary in summaries)
    finish(ranker, state)
    warn_of_end(ranker, state)
    return ranker


def _checked(ranker, average_every) -> PlackettLuceRanker:
    """A clone, if it can be trained here."""
    if not isinstance(ranker, PlackettLuceRanker):
        raise TypeError(
            f"ranker is a {type(ranker).__name__}: give a PlackettLuceRanker, FairPGRanker or SenSTIRRanker, and apply the other "
            "steps of a pipeline to the parts beforehand."
        )
    if not isinstance(average_every, (int, np.integer)) or isinstance(average_every, bool) or average_every < 1:
        raise ValueError(f"average_every={average_every!r}: give an integer >= 1.")
    ranker = clone(ranker)
    ranker._validate_params()
    if Callbacks(ranker, None, None, None).listen:
        raise ValueError(
            "fit_on_workers calls no callbacks, and the ranker has some: its steps are taken on workers, and its training is not "
            "kept in a Checkpoint. Take them away by set_callbacks()."
        )
    refused = {
        'solver="adam"': ranker.solver == "adam",
        "n_init=1": ranker.n_init == 1,
        "early_stopping=False": not ranker.early_stopping,
        "warm_start=False": not ranker.warm_start,
        "relax=0": getattr(ranker, "relax", 0) == 0,
        "feature_range=None or (low, high)": not isinstance(getattr(ranker, "feature_range", None), str),
    }
    if not all(refused.values()):
        needed = ", ".join(setting for setting, is_met in refused.items() if not is_met)
        raise ValueError(f"fit_on_workers needs {needed}: what else the ranker asks for needs all rows in one place.")
    return ranker


@dataclass
class _Part:
    """What a worker keeps of a part between rounds."""

    problem: Problem
    streams: Streams
    initial: TrainingState
    batch_size: int
    learning_rate: float
    summary: dict[str, Any]
    #: Of rows on a disk: the arguments of `_prepare`.
    arguments: tuple | None = None

    def __reduce_ex__(self, protocol):
        """Another worker reads rows on a disk itself: what this one has written of them for training is here alone."""
        return super().__reduce_ex__(protocol) if self.arguments is None else (_prepare, self.arguments)


@one_blas_thread()
def _prepare(ranker, part, streams, initial) -> _Part:
    """Check a part as `fit` does. A copy of the generator `initial` is the same in all parts, and so is where they begin."""
    given, arguments = _given(part), (ranker, part, streams, initial)
    ranker, streams, initial = copy.deepcopy(
        (ranker, streams, initial)
    )  # in a cluster of threads others have the same ones
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem = make_problem(ranker, given, streams.starts)
        warn_of_data(ranker, problem.batches, is_warm=False)
    is_on_disk = isinstance(given.X, RankingSource)
    if is_on_disk:
        ids, weights = given.X.query_ids(), given.X.query_weights()
    else:
        ids, weights = problem.batches.queries.ids, problem.batches.queries.weights(given.query_weight)
    parameters = ranker.get_params(deep=False)
    summary = {
        "ids": ids,
        "weight": float(len(ids) if weights is None else weights.sum()),
        "attributes": {name: value for name, value in vars(ranker).items() if name not in parameters},
        "metric": described(getattr(ranker, "metric_", None)),
        "warnings": [(str(warning.message), warning.category) for warning in caught],
    }
    state = initial_state(ranker, problem, initial)
    settings = int(ranker.batch_size), float(ranker.learning_rate)
    return _Part(problem, streams, state, *settings, summary, arguments if is_on_disk else None)


def _given(part) -> Given:
    """A part as the arguments of `fit`."""
    try:
        if isinstance(part, RankingSource):
            return Given(part)
        if isinstance(part, (Mapping, tuple, list)):
            return Given(**part) if isinstance(part, Mapping) else Given(*part)
        found = f"is a {type(part).__name__}"
    except TypeError:
        found = f"has {sorted(map(str, part))}" if isinstance(part, Mapping) else f"has {len(part)} entries"
    raise TypeError(
        f'A part {found}: give the arguments of fit, as a dict {{"X": X, "y": y, "qid": qid}} or a tuple (X, y, qid), or rows '
        "on a disk, such as ParquetRanking(path)."
    )


def _summary(part: _Part) -> dict:
    return {**part.summary, "initial": copy.deepcopy(part.initial)}


def _take_steps(part: _Part, state: dict | None, n_steps: int) -> dict:
    """A round of one part: a function of its arguments, so that another worker finds the same."""
    streams, reached = copy.deepcopy((part.streams, part.initial))
    problem = replace(part.problem, regularizer=part.problem.regularizer.fresh(streams.starts))
    stream = problem.batches.stream(part.batch_size, streams.order, streams.noise)
    training = Training(problem, reached, stream, part.learning_rate)
    if state is not None:
        training.restore({**state, "history": {name: np.zeros(state["n_iter"]) for name in HISTORY}})
    training.run(n_steps)
    reached_now = training.state()
    return {**reached_now, "history": {name: values[-n_steps:] for name, values in reached_now["history"].items()}}


def _rounds(ranker, client, prepared, summaries, average_every: int) -> TrainingState:
    """Training from the beginning to the end, or to where Ctrl-C came; averages are taken in the order of the parts."""
    max_iter, weights = int(ranker.max_iter), np.array([summary["weight"] for summary in summaries])
    weights /= weights.sum()
    states: list[Any] = [None] * len(prepared)
    reached, histories, rounds = summaries[0]["initial"], [], []
    reached.planned = max_iter
    try:
        while reached.n_iter < max_iter:
            n_steps = min(average_every, max_iter - reached.n_iter)
            rounds = [
                client.submit(_take_steps, part, state, n_steps, pure=False)
                for part, state in zip(prepared, states, strict=True)
            ]
            states = _averaged(client.gather(rounds), weights)
            histories.append(states[0]["history"])
            reached.theta, reached.n_iter = states[0]["theta"], states[0]["n_iter"]
            reached.multiplier = states[0]["regularizer"]["multiplier"]
    except KeyboardInterrupt:
        client.cancel(rounds)
        reached.interrupted = True
    reached.history = {name: np.concatenate([np.empty(0), *(part[name] for part in histories)]) for name in HISTORY}
    return reached


def _averaged(states: list[dict], weights: np.ndarray) -> list[dict]:
    """The states from which the parts go on: what they share is averaged, the rest is their own."""

    def mean(*path):
        values = [np.asarray(functools.reduce(dict.__getitem__, path, state)) for state in states]
        return np.average(values, axis=0, weights=weights)

    shared = {
        "theta": mean("theta"),
        "n_iter": states[0]["n_iter"],
        "history": {name: mean("history", name) for name in HISTORY},
        "optimizer": {"m": mean("optimizer", "m"), "v": mean("optimizer", "v"), "t": states[0]["optimizer"]["t"]},
    }
    multiplier = float(mean("regularizer", "multiplier"))
    return [{**state, **shared, "regularizer": {**state["regularizer"], "multiplier": multiplier}} for state in states]


def _future_of(client, part):
    """The arguments of `fit` on a worker."""
    import dask
    from distributed import Future

    if isinstance(part, Future):
        return part
    if dask.is_dask_collection(part):
        return client.compute(part)
    return send(client, part)


def _check_parts(ranker, summaries) -> None:
    """Raise ValueError where parts do not belong together; warn once of what each has warned of."""
    for message, category in dict.fromkeys(warning for summary in summaries for warning in summary["warnings"]):
        warn_caller(message, category)
    _check_queries([summary["ids"] for summary in summaries])
    first = summaries[0]
    for k, summary in enumerate(summaries):
        for name, what in _SHARED.items():
            one, other = (each["attributes"].get(name) for each in (first, summary))
            if not np.array_equal(one, other):
                raise ValueError(
                    f"Part {k} has other {what} than part 0: {other} and {one}. All parts must have the same."
                )
        if getattr(ranker, "rho", 0.0) > 0 and summary["metric"] != first["metric"]:
            raise ValueError(
                f"Parts 0 and {k} have learned different fair metrics, each from its own rows: learn one, on as many rows as fit "
                "in one place, and pass it as metric=sklearn.frozen.FrozenEstimator(metric)."
            )


def _check_queries(ids: list) -> None:
    """Raise ValueError where rows of one query are in two parts, TypeError where ids are of kinds that cannot be compared."""
    ids = [pd.Index(part, tupleize_cols=False).astype(object) for part in ids]  # dates are equal whatever their unit
    values = pd.Index(np.concatenate(ids), tupleize_cols=False)
    check_one_kind(values, "qid")
    twice = values.duplicated()
    if twice.any():
        name = values[twice][0]
        where = [k for k, part in enumerate(ids) if name in set(part)]
        raise ValueError(
            f"Query {name!r} has rows in parts {where}, so that neither has all its items: cut the data between queries, for "
            "example by sorting rows by qid, or by the test rows of QueryKFold."
        )
