"""PlackettLuceRanker: the ranker without a regulariser, and what every trained ranker shares."""

from __future__ import annotations

import copy
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfairrank._arguments import names_queries
from skfairrank._features import validate_features
from skfairrank._gains import discounts, normalized_gains_of_rows
from skfairrank._random import spawn_generators
from skfairrank._validation import check_magnitude, check_relevance
from skfairrank._warnings import warn_caller
from skfairrank.plackett_luce import check_exact_limit
from skfairrank.rankers._progress import Callbacks, CallbackSupportMixin, EarlyStopping, Progress, with_callbacks
from skfairrank.rankers._ranking import RankingMixin, queries_in_fit
from skfairrank.rankers._scales import warn_of_scales
from skfairrank.rankers._teaching import warn_if_nothing_can_be_learned
from skfairrank.scores import all_values
from skfairrank.solvers import solve
from skfairrank.training import Data, PolicyGradient, TrainingState, train

__all__ = ["LinearRanker", "PlackettLuceRanker"]

INITIAL_WEIGHT = 1e-4  # weights start uniform in +-1e-4 (Bower et al. 2021, appendix B)
INITIAL_LAMBDA = 2.0


class LinearRanker(RankingMixin, BaseEstimator):
    """Prediction and input checks of every ranker with scores ``X @ coef_``."""

    def _check_training_data(self, X, y, qid):
        """X, y and the queries, checked. X stays as it is (float32 or float64); a shuffled `qid` does not copy it."""
        if y is not None:
            check_relevance(y)  # first, since it says what to do about a missing one
        X, y = validate_features(self, X, y, dtype=[np.float64, np.float32], order="C", y_numeric=True)
        check_magnitude(X)
        return _read_only(X), check_relevance(y), queries_in_fit(qid, len(X))

    def predict(self, X):
        """Scores of rows; higher is better.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)

        Returns
        -------
        scores : ndarray of float64, shape (n_rows,)
        """
        check_is_fitted(self, "coef_")
        X = validate_features(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        if X.shape[1] != len(self.coef_):
            raise NotFittedError(
                f"The last fit of this {type(self).__name__} failed: its weights are those of an earlier fit with "
                f"{len(self.coef_)} features. Fit it again."
            )
        # Not X @ coef_: BLAS may round equal rows differently, depending on where they stand.
        return all_values(_read_only(X), self.coef_)


class PlackettLuceRanker(CallbackSupportMixin, LinearRanker):
    """Linear ranker that maximises the expected NDCG of its Plackett-Luce policy, by stochastic policy gradient.

    This is the paper's "Baseline" (Bower et al. 2021), SenSTIR without the regulariser, and with
    `SensitiveSubspaceMetric` before it in a pipeline its "Project".

    Parameters
    ----------
    score_function : {"linear"}, default="linear"
        Scores are ``X @ coef_``.
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
    coef_ : ndarray of float64, shape (n_features,)
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
        "score_function": [StrOptions({"linear"})],
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

    def __init__(
        self,
        *,
        score_function="linear",
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
    ):
        self.score_function = score_function
        self.solver = solver
        self.gradient = gradient
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.n_samples = n_samples
        self.alpha = alpha
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @names_queries
    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, *, qid=None, sensitive_features=None):
        """Train on queries.

        Parameters
        ----------
        X : array-like of float, shape (n_rows, n_features)
        y : array-like of float, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,), optional
            Query of each row, in any order. None: all rows are one query, with a warning.
        sensitive_features : array-like, shape (n_rows,) or (n_rows, n_attributes), optional
            Sensitive attributes; rankers that do not need them ignore them, so that one search can hold every ranker.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If y has negative values, qid is not one id per row, or training diverges.
        """
        for name in ("validation_scores_", "groups_"):  # of an earlier fit with other settings
            self.__dict__.pop(name, None)
        metadata = {"qid": qid, "sensitive_features": sensitive_features}
        callbacks = Callbacks(self, X, y, {name: value for name, value in metadata.items() if value is not None})
        data, relevance = self._training_data(X, y, qid)
        warn_if_nothing_can_be_learned(relevance, data.queries)
        if self.solver == "adam" and not (self.warm_start and hasattr(self, "coef_")):
            warn_of_scales(data.X, data.queries, getattr(self, "feature_names_in_", None))
        callbacks.begin(Progress.n_reports(int(self.max_iter)))
        streams = spawn_generators(self.random_state, 5)
        state = self._initial_state(data.X.shape[1], streams[0])
        self.n_queries_ = data.queries.n_queries
        self._prepare(data, relevance, sensitive_features)
        self._optimise(data, state, streams[1:], callbacks)
        # In one go: Ctrl-C may come again.
        self.__dict__.update(self._fitted_attributes(state), _interrupted=state.interrupted)
        if state.interrupted:
            warn_caller(
                f"fit was interrupted after {state.n_iter} of {state.planned} steps; the ranker is usable as it is.",
            )
        if not state.converged:
            warn_caller(
                f"L-BFGS did not converge in {state.n_iter} iterations (max_iter={self.max_iter}, tol={self.tol}). Increase "
                "max_iter or tol, or scale the features. Without a penalty scores may grow without bound: set alpha or rho "
                "above 0.",
                ConvergenceWarning,
            )
        callbacks.end()
        return self

    def _training_data(self, X, y, qid):
        """What `fit` makes of its arguments: the core's data, and y as checked."""
        X, y, queries = self._check_training_data(X, y, qid)
        discount = discounts(int(queries.sizes.max()))
        return Data(X, queries, normalized_gains_of_rows(y, queries, discount), discount), y

    # What subclasses replace; a ranker without a regulariser has none of it.

    def _prepare(self, data, y, sensitive_features):
        """Learn what training needs to know of sensitive attributes."""

    def _strength(self) -> float:
        """rho."""
        return 0.0

    def _n_plain(self) -> int:
        """Steps before the regulariser sets in."""
        return 0

    def _policy_gradient(self, data):
        return PolicyGradient(data, self.gradient, int(self.n_samples))

    def _adversary(self, data, rng):
        """The adversary of Algorithm 1, or None."""
        return None

    def _fitted_attributes(self, state) -> dict:
        history = {name: values[: state.n_iter].copy() for name, values in state.history.items()}
        return {"coef_": state.w.copy(), "n_iter_": state.n_iter, "history_": history}

    def _initial_state(self, n_features, rng) -> TrainingState:
        lambda_ = INITIAL_LAMBDA
        w = rng.uniform(-INITIAL_WEIGHT, INITIAL_WEIGHT, n_features)
        if self.warm_start and hasattr(self, "coef_"):
            if self.coef_.shape != (n_features,):
                raise ValueError(
                    f"warm_start=True, but the last fit had {len(self.coef_)} features and X has {n_features}: set "
                    "warm_start=False, or give the same features."
                )
            w, lambda_ = self.coef_.copy(), getattr(self, "lambda_", lambda_)
        elif self.solver == "lbfgs":
            w = np.zeros(n_features)
        return TrainingState(w, float(lambda_))

    def _optimise(self, data, state, streams, callbacks):
        if self.solver == "lbfgs":
            if self.early_stopping:
                raise ValueError(
                    'early_stopping=True needs solver="adam": "lbfgs" stops when it has converged (tol, max_iter).'
                )
            self._solve(data, state, streams[2], callbacks, self._strength())
        else:
            self._train(data, state, streams, callbacks, self._strength())

    def _train(self, data, state, streams, callbacks, rho, projector=None, n_plain=None):
        state.planned += int(self.max_iter)
        order_rng, noise_rng, start_rng, split_rng = streams
        n_plain = self._n_plain() if n_plain is None else n_plain
        if self.gradient == "exact":
            check_exact_limit(data.queries)
        stopping = None
        if self.early_stopping:
            data, held_out = self._hold_out(data, copy.deepcopy(split_rng))  # the same in a second fit
            batch_size = min(int(self.batch_size), data.queries.n_queries)
            stopping = EarlyStopping(
                data,
                held_out,
                rho=rho,
                tol=float(self.tol),
                n_iter_no_change=int(self.n_iter_no_change),
                steps_per_pass=-(-data.queries.n_queries // batch_size),
                n_plain=n_plain if 0 < rho and n_plain < self.max_iter else 0,
            )
        progress = Progress(self, int(self.max_iter), callbacks, self._fitted_attributes, stopping)
        train(
            data,
            state,
            self._policy_gradient(data),
            self._adversary(data, start_rng),
            rho=rho,
            max_iter=int(self.max_iter),
            n_plain=n_plain,
            batch_size=int(self.batch_size),
            learning_rate=float(self.learning_rate),
            alpha=float(self.alpha),
            order_rng=order_rng,
            noise_rng=noise_rng,
            progress=progress,
            projector=projector,
        )
        if stopping is not None:
            self.validation_scores_ = np.array(stopping.scores)
            if stopping.best_w is not None:
                state.w = stopping.best_w

    def _hold_out(self, data, rng):
        """Training data without the held-out queries, and those."""
        n = data.queries.n_queries
        n_held_out = max(1, round(float(self.validation_fraction) * n))
        if n - n_held_out < 1:
            raise ValueError(
                f"early_stopping holds out {n_held_out} of {n} queries, which leaves none to train on: give more queries, a "
                "smaller validation_fraction, or early_stopping=False."
            )
        shuffled = rng.permutation(n)
        held_out, kept = np.sort(shuffled[:n_held_out]), np.sort(shuffled[n_held_out:])
        return Data(data.X, data.queries.subset(kept), data.gain, data.discount), data.queries.subset(held_out)

    def _solve(self, data, state, start_rng, callbacks, rho, zeros=None):
        state.planned += int(self.max_iter)
        check_exact_limit(data.queries)
        self._multipliers = solve(
            data,
            state,
            self._adversary(data, start_rng),
            rho=rho,
            alpha=float(self.alpha),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            after_iteration=Progress(self, int(self.max_iter), callbacks, self._fitted_attributes, None),
            zeros=zeros,
            multipliers=getattr(self, "_multipliers", None) if self.warm_start else None,
        )


def _read_only(X: np.ndarray) -> np.ndarray:
    """A read-only view: one compiled kernel then serves arrays, and the memory maps that joblib hands to its workers."""
    view = np.asarray(X).view()
    view.flags.writeable = False
    return view
