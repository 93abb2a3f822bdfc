"""What every ranker can do once it predicts scores; RandomRanker; and PlackettLuceRanker, whose training the others share."""

from __future__ import annotations

import copy
import warnings
from numbers import Integral, Real
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import hash as hash_of
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import DataConversionWarning, NotFittedError, UndefinedMetricWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

from skfairrank._checks import (
    as_values,
    check_magnitude,
    check_relevance,
    check_scores,
    names_queries,
    stores_parameters,
    validate_features,
    warn_caller,
)
from skfairrank._queries import REMEDY, Queries, queries_in_fit
from skfairrank._random import as_generator
from skfairrank.plackett_luce import sample_rankings
from skfairrank.policies import GRADIENTS, ExactGradient, descending_order, make_gradient
from skfairrank.rankers._fitting import (
    Callbacks,
    CallbackSupportMixin,
    Progress,
    Streams,
    initial_state,
    optimise,
    warn_of_data,
    warn_of_end,
    with_callbacks,
)
from skfairrank.scores import SCORES, LinearScore, make_score
from skfairrank.training._adam import Adam, Problem, Regularizer, TrainingState, train
from skfairrank.training._batches import Batches, BatchStream
from skfairrank.utilities import UTILITIES, make_utility, warn_of_exponents


def ranks_by_score(scores: np.ndarray, queries: Queries) -> np.ndarray:
    """Rank of each row within its query, by descending score, ties in row order; both in the caller's row order."""
    ranks = np.empty(len(scores), dtype=np.int64)
    position = np.arange(1, len(scores) + 1) - np.repeat(queries.offsets[:-1], queries.sizes)
    ranks[descending_order(queries.group(scores), queries.offsets)] = position
    return queries.ungroup(ranks)


class RankingMixin:
    """Ranks, sampled rankings and a score for every estimator with ``predict(X)`` -> scores, higher is better.

    `fit` must set `n_queries_`, the number of queries that it saw. `qid` and `sensitive_features` are requested by
    default, so that metadata routing hands them to `fit` and `score` with nothing else to be set.
    """

    __metadata_request__fit = {"qid": True, "sensitive_features": True}
    __metadata_request__score = {"qid": True, "query_weight": True}

    if TYPE_CHECKING:  # what the estimator brings
        n_queries_: int

        def predict(self, *args: Any, **kwargs: Any) -> Any: ...

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def _scores(self, X, qid, **metadata) -> np.ndarray:
        """What `predict` returns, in memory; a ranker whose scores depend on the query replaces this."""
        return np.asarray(self.predict(X, **metadata))

    def _policy(self, X, qid, **metadata):
        """Scores of rows, and the policy by which `score` ranks them."""
        return self._scores(X, qid, **metadata), "deterministic"

    def _queries_of(self, qid, n_rows: int, method: str) -> Queries:
        """The queries of rows; without `qid` they are one list, if those that `fit` saw were."""
        if qid is not None:
            return Queries.from_qid(qid, n_rows)
        if self.n_queries_ > 1:
            raise ValueError(f"{method} got no qid, and fit saw {self.n_queries_} queries: {REMEDY}")
        return Queries.single(n_rows)

    @names_queries
    def rank(self, X, *, qid=None, **metadata):
        """Rank of each row within its query, by descending score; ties in row order.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. May only be left out (one list) if `fit` saw one query.
        **metadata
            What else `predict` takes, such as the `sensitive_features` of a re-ranker.

        Returns
        -------
        ranks : ndarray of int, shape (n_rows,)
            1 for the best row of each query, aligned with the rows of X.
        """
        scores = check_scores(self._scores(X, qid, **metadata))
        return ranks_by_score(scores, self._queries_of(qid, len(scores), "rank"))

    @names_queries
    def sample_rankings(self, X, *, qid=None, n_samples=1, random_state=None, **metadata):
        """Rankings drawn from the Plackett-Luce policy of the scores.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. May only be left out (one list) if `fit` saw one query.
        n_samples : int, default=1
            Number of rankings of each query.
        random_state : None, int, RandomState or Generator
        **metadata
            What else `predict` takes.

        Returns
        -------
        ranks : ndarray of int, shape (n_samples, n_rows)
            1-based rank of each row within its query, aligned with the rows of X.
        """
        scores = self._scores(X, qid, **metadata)
        self._queries_of(qid, len(scores), "sample_rankings")
        return sample_rankings(scores, qid=qid, n_samples=n_samples, random_state=random_state)

    @names_queries
    def score(self, X, y, *, qid=None, query_weight=None, sample_weight=None, **metadata):
        """NDCG of the rows sorted by descending score, averaged over the queries.

        It depends on the order alone, not on the size of the scores, so one search can compare rankers of every kind: the
        expectation of NDCG over the Plackett-Luce policy favours large scores, which a boosted ranker gets by a large
        learning rate. For that expectation there is `skfairrank.metrics.stochastic_ndcg_scorer`; this is
        `skfairrank.metrics.ndcg_score` (equal scores share the mean over their orders, queries without any relevant row are
        left out with a warning).

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
        y : array-like, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,), optional
            The query of each row. May only be left out (one query) if `fit` saw one query.
        query_weight : array-like of shape (n_rows,), or mapping from query ids to numbers, optional
            Weight of each query in the mean.
        sample_weight : None
            Must be None; pipelines pass it by name.
        **metadata
            What else `predict` takes.

        Returns
        -------
        score : float
            In [0, 1]. nan, with an `UndefinedMetricWarning`, where no query has rows of different relevance: then any order
            is as good as any other, and an NDCG of 1 would be praise for nothing.

        Raises
        ------
        ValueError
            If there is no `qid` and `fit` saw several queries, or if there is a `sample_weight`.
        """
        # metrics build on plackett_luce as rankers do; neither needs the other to be imported.
        from skfairrank.metrics import ndcg_score

        if sample_weight is not None:
            raise ValueError("score takes no sample_weight: NDCG is a mean over whole queries. Leave it out.")
        scores, policy = self._policy(X, qid, **metadata)
        n_rows = _num_samples(y if scores is None else scores)
        queries = self._queries_of(qid, n_rows, "score")
        y, qid = check_relevance(y, n_rows), np.zeros(n_rows, np.int64) if qid is None else as_values(qid, "qid")
        if not queries.differ_within(queries.group(y)).any():
            warn_caller(
                f"score is undefined: none of {queries.n_queries} queries has rows of different relevance, so no order is "
                "better than another. Score on queries of several rows that differ in relevance (and check qid, if each row "
                "is a query of its own).",
                UndefinedMetricWarning,
            )
            return float("nan")
        return ndcg_score(y, scores, qid=qid, query_weight=query_weight, policy=policy)


class ScoreRanker(RankingMixin, BaseEstimator):
    """Prediction and input checks of every ranker that scores items by a function of its own."""

    # Beside what `RankingMixin` requests; models of other libraries have weights of their own.
    __metadata_request__fit = {"query_weight": True, "X_hypothetical": True}

    def _check_training_data(self, X, y, qid, *, reset=True):
        """X, y and the queries, checked. X stays as it is (float32 or float64); a shuffled `qid` does not copy it.

        Without `reset` X must have the features of the rows before.
        """
        if y is not None:  # first, since it says what to do about a missing relevance
            if getattr(y, "ndim", 1) == 2:
                message = "A column-vector y was passed when a 1d array was expected: give y.ravel()."
                warnings.warn(message, DataConversionWarning, stacklevel=3)
            y = check_relevance(y)
        X, y = validate_features(self, X, y, dtype=[np.float64, np.float32], order="C", y_numeric=True, reset=reset)
        check_magnitude(X)
        return _read_only(X), y, queries_in_fit(qid, len(X))

    def _check_rows(self, X):
        """Rows with the features of the training rows, checked like these."""
        X = validate_features(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        check_magnitude(X)
        return _read_only(X)

    def predict(self, X):
        """Scores of rows; higher is better.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)

        Returns
        -------
        scores : ndarray of float64, shape (n_rows,)
        """
        check_is_fitted(self, "parameters_")
        X = validate_features(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        if X.shape[1] != self._n_features_trained:
            raise NotFittedError(
                f"The last fit of this {type(self).__name__} failed: its parameters are those of an earlier fit with "
                f"{self._n_features_trained} features. Fit it again."
            )
        return self.score_function_.values_of_rows(self._theta, _read_only(X))

    @property
    def _theta(self) -> np.ndarray:
        """The parameters; of a linear score those that `coef_` says, which a user may set."""
        return self.coef_ if self.score_function_.is_linear else self.parameters_

    def _scored_by(self, score, theta: np.ndarray, n_features: int) -> dict:
        """The fitted attributes from which scores follow."""
        attributes = {"score_function_": score, "parameters_": theta, "_n_features_trained": n_features}
        return {**attributes, "coef_": theta} if score.is_linear else attributes


class RandomRanker(ScoreRanker):
    """Linear ranker whose weights are drawn from a standard normal; it gives context to a utility (Bower et al. 2021).

    Parameters
    ----------
    random_state : None, int, RandomState or Generator, default=None

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X has feature names.

    Examples
    --------
    >>> from skfairrank import RandomRanker
    >>> ranker = RandomRanker(random_state=0).fit(
    ...     [[0.0, 1.0], [1.0, 0.0]], [1, 0], qid=[0, 0]
    ... )
    >>> ranker.coef_.shape
    (2,)
    """

    _parameter_constraints: dict = {"random_state": ["random_state", np.random.Generator]}

    def __init__(self, *, random_state=None):
        self.random_state = random_state

    @names_queries
    def fit(self, X, y, *, qid=None, sensitive_features=None, query_weight=None, X_hypothetical=None):
        """Draw the weights; X, y and qid are only checked.

        Parameters
        ----------
        X : array-like of float, shape (n_rows, n_features)
        y : array-like of float, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,), optional
        sensitive_features, query_weight, X_hypothetical : ignored
        """
        self._validate_params()
        X, _, queries = self._check_training_data(X, y, qid)
        weights = as_generator(self.random_state).standard_normal(X.shape[1])
        self.__dict__.update(self._scored_by(LinearScore(), weights, X.shape[1]))
        self.n_queries_ = queries.n_queries
        return self


class PlackettLuceRanker(CallbackSupportMixin, ScoreRanker):
    """Ranker that maximises the expected utility of its Plackett-Luce policy, by default NDCG, by stochastic policy gradient.

    This is the paper's "Baseline" (Bower et al. 2021), SenSTIR without the regulariser, and with
    `SensitiveSubspaceMetric` before it in a pipeline its "Project".

    Parameters
    ----------
    score_function : "linear" or Score, default="linear"
        "linear": scores are ``X @ coef_``. Or an object of a class derived from `skfairrank.scores.Score`.
    utility : str or Utility, default="ndcg"
        What is maximised: "ndcg", "dcg", "precision", "recall", "rbp", "reciprocal_rank", "err" or "average_precision", or an
        object such as ``skfairrank.utilities.NDCG(k=10)``. For average precision only with ``gradient="reinforce"``.
    solver : {"adam", "lbfgs"}, default="adam"
        "adam": mini-batches of queries. "lbfgs": the whole training set in every iteration, exact gradients, deterministic;
        for queries of up to `skfairrank.plackett_luce.EXACT_LIMIT` items.
    gradient : {"reinforce", "plrank", "exact"} or GradientEstimator, default="reinforce"
        Estimator of the policy gradient: REINFORCE with the samples' mean as baseline (the paper's), PL-Rank-3 (Oosterhuis
        2022; unbiased, lower variance), or the exact sum over subsets (small queries; no sampling). An object of
        `skfairrank.policies`, such as ``PLRank(100)``, brings its own `n_samples`. `solver="lbfgs"` always uses the exact one.
    learning_rate : float, default=0.01
        Adam's step size.
    max_iter : int, default=2000
        Number of mini-batch steps (the paper's E), or of L-BFGS iterations (without trials of where to start: docs/exact.md).
    batch_size : int, default=10
        Queries per step.
    n_samples : int, default=25
        Sampled rankings per query and step, at least 2 (the paper's MC).
    alpha : float, default=0.0
        Strength of the l2 penalty ``alpha / 2 * ||coef_||^2``.
    tol : float, default=1e-5
        With `early_stopping`, the least gain of the held-out objective that counts. With `solver="lbfgs"`, the largest entry of
        the projected gradient at which to stop, for features scaled to unit deviation within queries.
    early_stopping : bool, default=False
        Hold out whole queries and stop when they no longer improve; the best weights are kept.
    validation_fraction : float, default=0.1
        Share of the queries to hold out.
    n_iter_no_change : int, default=5
        Passes over the queries without improvement after which to stop.
    warm_start : bool, default=False
        Start from the last fit's `coef_` (and `lambda_`).
    random_state : None, int, RandomState or Generator, default=None
        An int makes `fit` repeatable to the bit, for any interleaving of the queries that keeps each query's own row order.
    verbose : int, default=0
        Print progress. On scikit-learn >= 1.9 `set_callbacks(sklearn.callback.ProgressBar())` works too.

    Attributes
    ----------
    score_function_ : Score
    parameters_ : ndarray of float64, shape (n_parameters,)
        What has been learned: the parameters of `score_function_`.
    coef_ : ndarray of float64, shape (n_features,)
        The same for linear scores; absent for others.
    n_iter_ : int
        Steps taken.
    history_ : dict of ndarray, each with one entry per step
        "utility" (mean NDCG of the step's sampled rankings, or its expectation where gradients are exact; a query without any
        relevant row counts as 0), "regularizer", "query_distance" and "lambda" (see `SenSTIRRanker`).
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X has feature names.
    validation_scores_ : ndarray of float
        Held-out objective after each pass; only with `early_stopping`.

    Examples
    --------
    >>> from skfairrank import PlackettLuceRanker
    >>> from skfairrank.datasets import make_biased_ranking
    >>> task = make_biased_ranking(n_queries=50, random_state=0)
    >>> ranker = PlackettLuceRanker(random_state=0).fit(
    ...     task.data, task.target, qid=task.qid
    ... )
    >>> sorted(ranker.rank(task.data[:3], qid=task.qid[:3]).tolist())
    [1, 2, 3]
    """

    _parameter_constraints: dict = {
        "score_function": [StrOptions(set(SCORES)), HasMethods("values")],
        "utility": [StrOptions(set(UTILITIES)), HasMethods("tables")],
        "solver": [StrOptions({"adam", "lbfgs"})],
        "gradient": [StrOptions(set(GRADIENTS)), HasMethods(["estimate", "expected_discounts", "check"])],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_samples": [Interval(Integral, 2, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    _last_query: Any

    @stores_parameters
    def __init__(
        self,
        *,
        score_function="linear",
        utility="ndcg",
        solver="adam",
        gradient="reinforce",
        learning_rate=0.01,
        max_iter=2000,
        batch_size=10,
        n_samples=25,
        alpha=0.0,
        tol=1e-5,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        warm_start=False,
        random_state=None,
        verbose=0,
    ): ...

    # As `fit`.
    __metadata_request__partial_fit = {
        "qid": True,
        "sensitive_features": True,
        "query_weight": True,
        "X_hypothetical": True,
    }

    @names_queries
    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, *, qid=None, sensitive_features=None, query_weight=None, X_hypothetical=None):
        """Train on queries.

        Parameters
        ----------
        X : array-like of float, shape (n_rows, n_features)
            A memory map of more rows than memory holds will do: X is neither copied nor sorted.
        y : array-like of float, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,), optional
            Query of each row, in any order. None: all rows are one query, with a warning.
        sensitive_features : array-like, shape (n_rows,) or (n_rows, n_attributes), optional
            Sensitive attributes; rankers that do not need them ignore them, so that one search can hold every ranker.
        query_weight : array-like of shape (n_rows,), or mapping from query ids to numbers, optional
            Weight of each query in the means that training takes, at least 0; per row it must be constant within each query.
        X_hypothetical : table like X, or ndarray of shape (n_rows, n_sets, n_features), optional
            For ``SenSTIRRanker(adversary="given")``: row i, or each of the rows ``[i, k]``, is what row i of X might as well have
            been. Rankers that do not need it ignore it. (A list or dict of tables will do, but not in a search, which could not
            cut them.)

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If y has negative values, qid is not one id per row, or training diverges.
        """
        self.__dict__.pop("validation_scores_", None)  # of an earlier fit with other settings
        given = {"sensitive_features": sensitive_features, "X_hypothetical": X_hypothetical}
        callbacks = Callbacks(self, X, y, {"qid": qid, "query_weight": query_weight, **given})
        streams = Streams.of(self.random_state)
        is_warm = self.warm_start and hasattr(self, "parameters_")
        problem = self._problem(X, y, qid, query_weight, streams.attack, **given)
        warn_of_data(self, problem.batches, is_warm)
        callbacks.begin(Progress.n_reports(int(self.max_iter)))
        state = initial_state(self, problem, streams.initial)
        optimizer = optimise(self, problem, state, streams, callbacks)
        self._take_over(state, optimizer, streams)
        warn_of_end(self, state)
        callbacks.end()
        return self

    @names_queries
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, *, qid=None, sensitive_features=None, query_weight=None, X_hypothetical=None):
        """Train on further queries of a stream: one pass over them, from where the last call has ended.

        Queries are shuffled, and cut into batches of `batch_size`; the last batch of a call may be smaller. All that a step
        depends on is kept from call to call: parameters, Adam's moments, lambda, random streams and the number of steps. So the
        same calls give the same bits, also where the ranker was saved and loaded between them. `clone` forgets it.

        What is learned of the data as a whole is learned at the first call and kept: the fair metric, and what `hypotheticals`
        have learned. So let the first call be large enough for that. The first ``fair_start * max_iter`` steps of the stream are
        plain; otherwise `max_iter` has no effect. After `fit` a call goes on from its result (from its weights alone where
        it stopped early); `fit` begins anew.

        Parameters
        ----------
        X : array-like of float, shape (n_rows, n_features)
            Whole queries, with the features of the calls before.
        y : array-like of float, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,), optional
            Query of each row, in any order. None: all rows of the call are one query, with a warning.
        sensitive_features, X_hypothetical : optional
            As for `fit`, of these rows.
        query_weight : array-like of shape (n_rows,), or mapping from query ids to numbers, optional
            Weight of each query, at least 0. Weights are taken as they are, and not divided by their mean, as `fit` does: let
            their mean over the stream be about 1.

        Returns
        -------
        self : object
            `n_iter_`, `n_queries_` and `history_` are of all calls.

        Raises
        ------
        ValueError
            If the rows begin with the query with which those of the last call have ended; if features are others than before,
            or a parameter has changed that says what was learned at the beginning; for `solver="lbfgs"` and
            `early_stopping`; and as `fit`. The ranker then stays as it was.
        """
        self._validate_params()
        for name, is_set, reason in (
            ('solver="lbfgs"', self.solver == "lbfgs", "it needs the whole training set in every iteration"),
            ("early_stopping", self.early_stopping, "it holds queries of one training set out"),
        ):
            if is_set:
                raise ValueError(
                    f"partial_fit does not go with {name}: {reason}. Use fit, or set_params to the default of this parameter."
                )
        before = dict(vars(self))
        try:
            self._go_on(X, y, qid, query_weight, sensitive_features=sensitive_features, X_hypothetical=X_hypothetical)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _go_on(self, X, y, qid, query_weight, **given) -> None:
        """One call of `partial_fit`."""
        goes_on, streams, optimizer = hasattr(self, "parameters_"), Streams.of(self.random_state), None
        n_before = self.n_queries_ if goes_on else 0
        if goes_on:
            _check_kept(self._kept, self._settings_kept())
            optimizer, streams = self._resumed(streams)
        problem = self._problem(X, y, qid, query_weight, streams.attack, of_stream=True, goes_on=goes_on, **given)
        ends, last_query = _ends(qid), self._last_query if goes_on else None
        if ends is not None and last_query is not None and ends[0] == last_query:
            raise ValueError(
                f"The rows begin with query {ends[0]!r}, with which those of the last call have ended: a query that is cut in "
                "two loses the pairs of items between its parts. Keep all rows of a query for one call. If it is another one, or "
                "the same once more, give it another id."
            )
        if not goes_on:
            warn_of_data(self, problem.batches, is_warm=False)
            state = initial_state(self, problem, streams.initial)
        elif problem.batches.n_features != self._n_features_trained:
            raise ValueError(
                f"X has {problem.batches.n_features} features, and partial_fit goes on from parameters for "
                f"{self._n_features_trained}: the last fit has failed. Fit anew, or use a clone."
            )
        else:
            theta = np.array(self._theta, dtype=np.float64)
            state = TrainingState(
                theta, n_iter=self.n_iter_, history=self.history_, multiplier=problem.regularizer.multiplier
            )
        stream = BatchStream(problem.batches, int(self.batch_size), streams.order, streams.noise, is_one_pass=True)
        optimizer, n_steps = optimizer or Adam(len(state.theta)), stream.n_steps_of_a_pass
        progress = Progress(self, state.n_iter + n_steps, n_before=state.n_iter)
        problem.regularizer.prepare(problem.batches, problem.score)
        train(problem, state, stream, optimizer, float(self.learning_rate), n_steps, progress)
        if state.interrupted:
            raise KeyboardInterrupt
        self.__dict__.pop("validation_scores_", None)  # of an earlier fit with other settings
        self._take_over(state, optimizer, streams)
        self.n_queries_ += n_before
        self._last_query = None if ends is None else ends[1]

    def _resumed(self, streams: Streams) -> tuple[Adam | None, Streams]:
        """Adam and the random streams as the last call, or the last fit, has left them; copies, since this call may fail."""
        if self._resume is None:
            return None, streams
        kept, optimizer = copy.deepcopy(self._resume), Adam(0)
        vars(optimizer).update(kept["optimizer"])
        return optimizer, Streams(*kept["streams"])

    def _problem(self, X, y, qid, query_weight, rng, *, of_stream=False, goes_on=False, **given) -> Problem:
        """What is to be solved, from the arguments of `fit`, checked; sets the attributes that tell of the data."""
        checked, y, queries = self._check_training_data(X, y, qid, reset=not goes_on)
        is_exact = self.solver == "lbfgs"
        gradient = ExactGradient() if is_exact else make_gradient(self.gradient, int(self.n_samples))
        gradient.check(queries)
        utility = make_utility(self.utility)
        tables, weights = utility.tables(queries.group(y), queries.offsets), queries.weights(query_weight)
        warn_of_exponents(y, getattr(utility, "gain", None))
        names = getattr(self, "feature_names_in_", None)
        # The mean weight of a stream nobody knows yet.
        batches = Batches(checked, queries, tables, weights, feature_names=names, weights_are_final=of_stream)
        self.n_queries_ = queries.n_queries
        score = make_score(self.score_function)
        regularizer = self._fit_regularizer(batches, y, rng, X=X, goes_on=goes_on, **given)
        return Problem(batches, score, gradient, regularizer, float(self.alpha))

    def _fit_regularizer(
        self, batches: Batches, y, rng, *, X, sensitive_features, X_hypothetical, goes_on: bool
    ) -> Regularizer:
        """Learn what the regulariser needs of the training set, as attributes that end in `_`, and return the regulariser.

        Parameters
        ----------
        batches : Batches
        y : ndarray, shape (n_rows,)
            Relevances in the order of the rows of X.
        rng : numpy.random.Generator
        X, sensitive_features, X_hypothetical
            As `fit` got them.
        goes_on : bool
            Whether the attributes of an earlier call of `partial_fit` are to be kept.
        """
        return Regularizer()

    def _take_over(self, state: TrainingState, optimizer: Adam | None = None, streams=()) -> None:
        """Set the fitted attributes, in one go, since Ctrl-C may come again."""
        attributes = {
            **self._fitted_attributes(state),
            "_dual_variables": state.dual_variables,
            "_kept": self._settings_kept(),
            "_last_query": None,
            "_resume": None if optimizer is None else {"optimizer": vars(optimizer), "streams": list(streams)},
        }
        self.__dict__.update(attributes)
        if "coef_" not in attributes:  # an earlier fit had a linear score
            self.__dict__.pop("coef_", None)

    def _fitted_attributes(self, state: TrainingState) -> dict:
        history = {name: values[: state.n_iter].copy() for name, values in state.history.items()}
        attributes = self._scored_by(make_score(self.score_function), state.theta.copy(), self.n_features_in_)
        attributes |= {"n_iter_": state.n_iter, "history_": history}
        if state.validation_scores is not None:
            attributes["validation_scores_"] = state.validation_scores
        return attributes

    def _settings_kept(self) -> dict:
        """Parameters that say what a stream of data learns at its beginning and keeps."""
        return {"score_function": self.score_function}


def _read_only(X: np.ndarray) -> np.ndarray:
    """A read-only view: one compiled kernel then serves arrays, and the memory maps that joblib hands to its workers."""
    view = np.asarray(X).view()
    view.flags.writeable = False
    return view


def _check_kept(before: dict, now: dict) -> None:
    """Raise where a parameter has changed that says what was learned at the beginning of a stream and is kept."""
    for name, was in before.items():
        try:
            is_kept = now[name] is was or hash_of(now[name]) == hash_of(was)
        except PicklingError:  # a function without a name
            is_kept = False
        if not is_kept:
            raise ValueError(
                f"{name} is {now[name]!r}, and was {was!r} when training began, so that partial_fit cannot go on: the fair "
                "metric and the parameters of the score are kept from then. Give what it was, or begin anew with fit, or a clone."
            )


def _ends(qid) -> tuple | None:
    """The ids of the queries with which the rows begin and end; None for one whose rows do not lie together."""
    return None if qid is None else tuple(_end(values) for values in (as_values(qid), as_values(qid)[::-1]))


def _end(values):
    rows = np.flatnonzero(values == values[0])
    if rows[-1] != len(rows) - 1:
        return None
    return values[0].item() if isinstance(values[0], np.generic) else values[0]
