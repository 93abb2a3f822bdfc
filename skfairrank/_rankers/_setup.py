"""What the training of a ranker begins with: its arguments, random streams, the problem and the first parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skfairrank._batches import ArrayBatches
from skfairrank._gradients import SubsetSum, make_gradient
from skfairrank._random import spawn_generators
from skfairrank._solvers import Problem, TrainingState
from skfairrank.scores import LOOKED_AT, check_start, make_score
from skfairrank.utilities import make_utility

__all__ = ["Given", "Streams", "initial_state", "make_problem", "n_plain_steps"]


class Streams(NamedTuple):
    """Random streams of a fit, one for each purpose."""

    initial: np.random.Generator
    order: np.random.Generator
    noise: np.random.Generator
    starts: np.random.Generator
    split: np.random.Generator

    @classmethod
    def of(cls, random_state) -> Streams:
        return cls(*spawn_generators(random_state, len(cls._fields)))

    @property
    def of_training(self):
        return self.order, self.noise, self.split


class Given(NamedTuple):
    """The arguments of `fit` or `partial_fit`, as the user gave them."""

    X: Any
    y: Any = None
    qid: Any = None
    sensitive_features: Any = None
    query_weight: Any = None
    X_hypothetical: Any = None
    #: Whether this is a call of `partial_fit`, and whether it goes on from what was learned before.
    of_stream: bool = False
    goes_on: bool = False

    @property
    def metadata(self) -> dict:
        names = ("qid", "sensitive_features", "query_weight", "X_hypothetical")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def make_problem(ranker, given: Given, rng) -> Problem:
    """What is to be solved, from the arguments of `fit`, checked; sets the attributes that tell of the data."""
    X, y, queries = ranker._check_training_data(given.X, given.y, given.qid, reset=not given.goes_on)
    gradient = SubsetSum() if ranker.solver == "lbfgs" else make_gradient(ranker.gradient, int(ranker.n_samples))
    gradient.check(queries)
    grouped = queries.group(y)
    tables = make_utility(ranker.utility).tables(grouped, queries.offsets)
    names = getattr(ranker, "feature_names_in_", None)
    weights = queries.weights(given.query_weight)
    batches = ArrayBatches(X, queries, tables, weights, feature_names=names)
    if given.of_stream and weights is not None:  # their mean is that of the stream, which nobody knows yet
        batches.weights, batches.is_weighted = weights, True
    ranker.n_queries_ = queries.n_queries
    return Problem(
        batches,
        make_score(ranker.score_function),
        gradient,
        ranker._regularizer(batches, grouped, given, rng),
        float(ranker.alpha),
    )


def initial_state(ranker, problem: Problem, rng) -> TrainingState:
    """Where training begins: at random, or where the last fit of a warm start has ended."""
    n_features = problem.batches.n_features
    theta = problem.score.initial_parameters(n_features, rng)
    if ranker.solver == "lbfgs" and problem.score.is_linear:
        theta = np.zeros(n_features)
    state = TrainingState(np.array(theta, dtype=np.float64), multiplier=problem.regularizer.multiplier)
    if ranker.warm_start and hasattr(ranker, "parameters_"):
        _go_on(ranker, problem, state)
    if not problem.score.is_linear:
        check_start(problem.score, state.theta, problem.batches.first_rows(LOOKED_AT)[0])
    return state


def _go_on(ranker, problem, state):
    """Put the state where the last fit has ended."""
    n_features, n_parameters = problem.batches.n_features, len(state.theta)
    if ranker._n_features_trained != n_features or len(ranker.parameters_) != n_parameters:
        raise ValueError(
            f"warm_start=True, but the last fit had {ranker._n_features_trained} features and {len(ranker.parameters_)} "
            f"parameters, and X has {n_features} features and {n_parameters} parameters: set warm_start=False, or give the "
            "same features and score_function."
        )
    state.theta = np.array(ranker.coef_ if problem.score.is_linear else ranker.parameters_, dtype=np.float64)
    state.forces = ranker._forces


def n_plain_steps(ranker) -> int:
    """Steps without the regulariser, of a ranker that has one."""
    return 0 if ranker.solver == "lbfgs" else round(float(ranker.fair_start) * int(ranker.max_iter))
