"""PlackettLuceRanker: the ranker without a regulariser, and what every trained ranker shares."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfairrank._checks import check_magnitude, check_relevance, names_queries, stores_parameters, validate_features
from skfairrank._rankers._fitting import finish, optimise, warn_of_data, warn_of_end
from skfairrank._rankers._progress import Callbacks, CallbackSupportMixin, Progress, with_callbacks
from skfairrank._rankers._ranking import RankingMixin, queries_in_fit
from skfairrank._rankers._setup import Given, Streams, initial_state, make_problem
from skfairrank._rankers._streaming import go_on_with
from skfairrank._regularizers import Regularizer
from skfairrank.scores import SCORES, make_score
from skfairrank.utilities import UTILITIES

__all__ = ["PlackettLuceRanker", "ScoreRanker"]


class ScoreRanker(RankingMixin, BaseEstimator):
    """Prediction and input checks of every ranker that scores items by a function of its own."""

    # Beside what `RankingMixin` requests; models of other libraries have weights of their own.
    __metadata_request__fit = {"query_weight": True, "X_hypothetical": True}

    def _check_training_data(self, X, y, qid, *, reset=True):
        """X, y and the queries, checked. X stays as it is (float32 or float64); a shuffled `qid` does not copy it.

        Without `reset` X must have the features of the rows before.
        """
        if y is not None:
            check_relevance(y)  # first, since it says what to do about a missing one
        X, y = validate_features(self, X, y, dtype=[np.float64, np.float32], order="C", y_numeric=True, reset=reset)
        check_magnitude(X)
        return _read_only(X), check_relevance(y), queries_in_fit(qid, len(X))

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
        theta = self.coef_ if self.score_function_.is_linear else self.parameters_
        return self.score_function_.values_of_rows(theta, _read_only(X))

    def _scored_by(self, score, theta: np.ndarray, n_features: int) -> dict:
        """The fitted attributes from which scores follow."""
        attributes = {"score_function_": score, "parameters_": theta, "_n_features_trained": n_features}
        return {**attributes, "coef_": theta} if score.is_linear else attributes


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
    gradient : {"reinforce", "plrank", "exact"}, default="reinforce"
        Estimator of the policy gradient: REINFORCE with the samples' mean as baseline (the paper's), PL-Rank-3 (Oosterhuis
        2022; unbiased, lower variance), or the exact sum over subsets (small queries; no sampling). `solver="lbfgs"` always
        uses the exact one.
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
    >>> ranker = PlackettLuceRanker(random_state=0).fit(task.data, task.target, qid=task.qid)
    >>> sorted(ranker.rank(task.data[:3]).tolist())
    [1, 2, 3]
    """

    _parameter_constraints: dict = {
        "score_function": [StrOptions(set(SCORES)), HasMethods("values")],
        "utility": [StrOptions(set(UTILITIES)), HasMethods("tables")],
        "solver": [StrOptions({"adam", "lbfgs"})],
        "gradient": [StrOptions({"reinforce", "plrank", "exact"})],
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
        given = Given(X, y, qid, sensitive_features, query_weight, X_hypothetical)
        callbacks = Callbacks(self, X, y, given.metadata)
        streams = Streams.of(self.random_state)
        is_warm = self.warm_start and hasattr(self, "parameters_")
        problem = make_problem(self, given, streams.starts)
        warn_of_data(self, problem.batches, is_warm)
        callbacks.begin(Progress.n_reports(int(self.max_iter)))
        state = initial_state(self, problem, streams.initial)
        optimise(self, problem, state, streams.of_training, callbacks)
        finish(self, state)
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
        goes_on = hasattr(self, "parameters_")
        go_on_with(
            self, Given(X, y, qid, sensitive_features, query_weight, X_hypothetical, of_stream=True, goes_on=goes_on)
        )
        return self

    def _regularizer(self, batches, y, given: Given, rng) -> Regularizer:
        """What training subtracts from the utility: what tells one trained ranker from another.

        Parameters
        ----------
        batches : ArrayBatches
        y : ndarray, shape (n_rows,)
            Relevances, grouped by query.
        given : Given
        rng : numpy.random.Generator
        """
        return Regularizer()

    def _fitted_attributes(self, state) -> dict:
        history = {name: values[: state.n_iter].copy() for name, values in state.history.items()}
        attributes = self._scored_by(make_score(self.score_function), state.theta.copy(), self.n_features_in_)
        attributes |= {"n_iter_": state.n_iter, "history_": history, "_forces": state.forces, "_resume": state.resume}
        if state.validation_scores is not None:
            attributes["validation_scores_"] = state.validation_scores
        return attributes


def _read_only(X: np.ndarray) -> np.ndarray:
    """A read-only view: one compiled kernel then serves arrays, and the memory maps that joblib hands to its workers."""
    view = np.asarray(X).view()
    view.flags.writeable = False
    return view
