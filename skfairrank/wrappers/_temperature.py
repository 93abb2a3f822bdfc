"""How decided a policy is: any ranker with the temperature that held-out queries ask for.

All scores times a number sort every list as before, but a policy that draws rankings by the scores draws more or less decidedly.
Of a boosted ranker the size of scores means nothing (it follows the learning rate); of SenSTIR it follows rho. So policies are to
be compared at a stated temperature, and a policy that is to be drawn from needs one.
"""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed

from skfairrank._checks import check_relevance, check_scores, names_queries, stores_parameters, warn_caller
from skfairrank._queries import Queries
from skfairrank._random import as_generator
from skfairrank._sensitive import check_groups
from skfairrank.metrics._exposure import exposure_disparity
from skfairrank.metrics._predictions import asks_for, ranking_scores, unwrapped
from skfairrank.metrics._quality import ndcg
from skfairrank.model_selection import folds_of_queries
from skfairrank.policies import Deterministic, PlackettLuce
from skfairrank.utilities import discounts
from skfairrank.wrappers._base import Wrapper, check_labels, fit_clone, take

# Queries of so many rows are summed exactly, in about .1 ms each; of larger ones rankings are sampled.
EXACT_UP_TO = 12
# Temperatures of the curve, in units of the largest distance of a score from the mean of its query; so many in each tenfold.
LOWEST, HIGHEST, PER_DECADE = 1e-5, 1e3, 4
TOLERANCE = 1e-10  # of the logarithm of the temperature


class TemperatureRanker(Wrapper):
    r"""Any ranker with the temperature at which its Plackett-Luce policy is as decided as asked for.

    `predict` returns the ranker's scores divided by `temperature_`: the sorted lists stay, and rankings drawn by these scores (by
    `sample_rankings`, or in metrics) are those of the policy at that temperature, softer where it is higher. It is chosen on
    queries that the ranker was not fitted on:

    - `max_ndcg_loss`: the softest policy whose expected NDCG is within so much of the sorted lists' NDCG;
    - `max_disparity`: the most decided policy whose disparity of group exposure is at most so much;
    - both: the most decided policy within `max_disparity`, if its loss of NDCG is within `max_ndcg_loss`; else an error that says
      what each costs.

    Parameters
    ----------
    estimator : estimator
        Any ranker: this package's, a pipeline or a search, or ``LGBMRanker()``, ``XGBRanker()``, ``CatBoostRanker()`` and
        scikit-learn's regressors, which are fitted inside of a `QueryRanker`. ``FrozenEstimator(ranker)`` is one that is fitted.
    max_ndcg_loss : float, optional
        Above 0.
    max_disparity : float, optional
        In the unit of `skfairrank.metrics.group_exposure_disparity`, 0 or more. Then `fit` needs `sensitive_features`.
    cv : int, splitter, iterable of (train, test) or "prefit", default=None
        Where held-out queries come from: None means ``QueryKFold(5)``, an int ``QueryKFold(cv)``; any splitter that keeps queries
        whole will do. The ranker is fitted on each training part, the temperature is chosen on all test parts together, and the
        ranker is then fitted on all queries. "prefit": `estimator` is fitted, and all queries that `fit` gets are held-out ones.
        Since a clone is not fitted, use FrozenEstimator inside of searches, with which any `cv` means the same.
    k : int, optional
        Only ranks 1 to k count, in NDCG and in exposure.
    n_samples : int, default=1000
        Rankings that are sampled for each query of more than 12 rows, the same random numbers at every temperature. Smaller
        queries are summed exactly.
    random_state : None, int, RandomState or Generator
        Source of these rankings.
    n_jobs : int, optional
        Folds that are fitted in parallel, as in scikit-learn.

    Attributes
    ----------
    temperature_ : float
        What scores are divided by. It is in units of the ranker's scores.
    estimator_ : estimator
        The fitted ranker.
    sorted_ndcg_ : float
        NDCG of the sorted lists of held-out queries.
    curve_ : DataFrame
        What was tried on them, ascending: ``temperature``, ``ndcg`` of the policy, and ``disparity`` where `max_disparity` is
        set. `skfairrank.inspection.TemperatureDisplay` draws it.
    n_queries_ : int
        Number of queries seen in `fit`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has column names.

    Notes
    -----
    The temperature is found by root finding on the curve's bracket, which is right where the curve is monotone. It nearly always
    is; where it is not, the softest (or most decided) temperature that the curve shows counts. Each query counts once; queries
    without any relevant row have no NDCG and are left out, with a warning.

    NDCG at a temperature lies between that of the sorted lists and that of chance. If even chance loses no more than
    `max_ndcg_loss`, that is an error: the softest policy would be chance. A `max_disparity` that even the sorted lists keep is no
    error: with a warning the policy is as decided as the curve goes. If scores do not differ within any query, all temperatures
    are one policy: 1 is chosen, with a warning.

    With `cv` the temperature is chosen by the scores of rankers that were fitted on parts of the queries; that of the whole has
    scores of about the same size, where parts are not much smaller.

    Softness is not fairness: no list's order changes. It is a fair use of chance only where rankings *are* drawn.

    Examples
    --------
    Two items whose scores are log(3) apart; relevant is the first. At temperature 1 it is first in 3 of 4 rankings, which loses
    1/4 (1 - 1 / log2(3)) of NDCG:

    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank import TemperatureRanker
    >>> line = LinearRegression().fit([[0.0], [1.0]], [0.0, np.log(3)])
    >>> ranker = TemperatureRanker(
    ...     FrozenEstimator(line), max_ndcg_loss=(1 - 1 / np.log2(3)) / 4
    ... )
    >>> round(ranker.fit([[1.0], [0.0]], [1, 0], qid=[0, 0]).temperature_, 6)
    1.0
    """

    __metadata_request__predict = {"qid": True}

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["predict"]), HasMethods(["decision_function"])],
        "max_ndcg_loss": [Interval(Real, 0, None, closed="neither"), None],
        "max_disparity": [Interval(Real, 0, None, closed="left"), None],
        "cv": [StrOptions({"prefit"}), "cv_object"],
        "k": [Interval(Integral, 1, None, closed="left"), None],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "random_state": [object],
        "n_jobs": [Integral, None],
    }

    @stores_parameters
    def __init__(
        self,
        estimator,
        *,
        max_ndcg_loss=None,
        max_disparity=None,
        cv=None,
        k=None,
        n_samples=1000,
        random_state=None,
        n_jobs=None,
    ): ...

    @names_queries
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, qid=None, sensitive_features=None, X_hypothetical=None):
        """Fit the ranker, and choose the temperature on held-out queries.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)
            As the ranker takes it.
        y : array-like, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,)
            The query of each row: ints or strings, in any order. None: all rows are one query, with a warning.
        sensitive_features : array-like of n_rows rows, optional
            Handed to a ranker that asks for it. Where `max_disparity` is set: the group of each row.
        X_hypothetical : table like X, optional
            Handed to a ranker that asks for it, a part of its rows with those rows of X.

        Returns
        -------
        self : TemperatureRanker

        Raises
        ------
        ValueError
            If no bound is set, or it can't be reached: the message has the range that can. If `cv` cuts queries, or no held-out
            query has an NDCG.
        NotFittedError
            If ``cv="prefit"`` and the estimator is not fitted.
        TypeError
            If the estimator asks for groups when it predicts, as re-rankers do: it has ranks, and no scores.
        """
        if self.max_ndcg_loss is None and self.max_disparity is None:
            raise ValueError(
                "Give max_ndcg_loss=, max_disparity=, or both: nothing says how decided the policy is to be."
            )
        inner = unwrapped(self.estimator)
        if asks_for(inner, "predict", "sensitive_features"):
            raise TypeError(
                f"{type(inner).__name__} orders rows by their groups, and what it predicts are no scores that a temperature "
                "could divide: give TemperatureRanker the ranker within."
            )
        X, y, queries = self._check_training_data(X, y, qid)
        group, relevance = None, check_relevance(y)
        if self.max_disparity is not None:
            group = check_groups(sensitive_features, queries.n_rows, compared_by="max_disparity")[1]
        if isinstance(self.cv, str) or isinstance(self.estimator, FrozenEstimator):
            check_labels(self.estimator, y, is_fitted=True)
            rows, ids, scores = np.arange(queries.n_rows), queries.codes, _scores_of_fitted(self.estimator, X, qid)
            self.estimator_ = self.estimator
        else:
            data = {"X": X, "y": y, "qid": queries.codes}
            data |= {"sensitive_features": sensitive_features, "X_hypothetical": X_hypothetical}
            rows, ids, scores = self._held_out(data, queries)
            self.estimator_ = fit_clone(self.estimator, **data)
        policy = PlackettLuce(1.0, int(self.n_samples), int(as_generator(self.random_state).integers(2**63)))
        curve = Curve(scores, relevance[rows], ids, None if group is None else group[rows], self.k, policy)
        self.temperature_ = curve.choose(self.max_ndcg_loss, self.max_disparity)
        self.sorted_ndcg_ = curve.in_order[0]
        tried = sorted((temperature, *found) for temperature, found in curve.tried.items())
        self._curve = dict(zip(("temperature", "ndcg", "disparity"), np.array(tried).T))
        self.n_queries_ = queries.n_queries
        return self

    @property
    def curve_(self) -> pd.DataFrame:
        return pd.DataFrame(self._curve)  # what is kept are arrays, which skops stores; it stores no frames

    def _held_out(self, data, queries):
        """Rows of all test parts, ids of their queries in each part, and scores by rankers fitted on the other parts."""
        folds = folds_of_queries(self.cv, data["X"], data["y"], data["qid"], queries)
        scores = Parallel(n_jobs=self.n_jobs)(
            delayed(_held_out_scores)(self.estimator, data, np.flatnonzero(np.isin(queries.codes, train)), test)
            for train, test in folds
        )
        ids = [fold * queries.n_queries + queries.codes[test] for fold, (_, test) in enumerate(folds)]
        return np.concatenate([test for _, test in folds]), np.concatenate(ids), np.concatenate(scores)

    def predict(self, X, *, qid=None):
        """The ranker's scores divided by the temperature.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, for a ranker that asks for it, such as a pipeline with a `QueryScaler`.

        Returns
        -------
        scores : ndarray of float, shape (n_rows,)
            Higher is better. Rankings are to be drawn by them at temperature 1.
        """
        return check_scores(self._inner_scores(X, qid=qid)) / self.temperature_

    def _scores(self, X, qid, **metadata):
        return self.predict(X, qid=qid, **metadata)


def _held_out_scores(estimator, data, train, test) -> np.ndarray:
    fitted = fit_clone(estimator, **{name: take(part, train) for name, part in data.items()})
    return check_scores(ranking_scores(fitted, take(data["X"], test), qid=data["qid"][test]))


def _scores_of_fitted(estimator, X, qid) -> np.ndarray:
    try:
        return check_scores(ranking_scores(estimator, X, qid=qid))
    except NotFittedError as error:
        raise NotFittedError(
            f'cv="prefit" and FrozenEstimator are for a fitted ranker, and this {type(estimator).__name__} is not: fit it first, '
            "or leave cv at its default. (Searches and clone make an unfitted copy, unless the ranker is in a FrozenEstimator.)"
        ) from error


class Curve:
    """NDCG and disparity of held-out queries at all temperatures that were tried.

    Parameters
    ----------
    scores, y, qid : ndarray, shape (n_rows,)
    group : ndarray of int, shape (n_rows,), or None
        None: no disparity is measured.
    k : int or None
    policy : PlackettLuce
        How queries too large for exact sums are sampled: by the same random numbers at all temperatures.

    Raises
    ------
    ValueError
        If no query has a relevant row.
    """

    def __init__(self, scores, y, qid, group, k, policy):
        self.queries, self.policy = Queries.from_qid(qid, len(scores)), policy
        self.scores, self.y = self.queries.group(scores), self.queries.group(y)
        self.group = None if group is None else self.queries.group(group)
        self.discount = discounts(int(self.queries.sizes.max()), k)
        self.tried: dict[float, tuple[float, ...]] = {}
        by_chance = self._measures(Deterministic().expected_discounts(0.0 * self.scores, self.queries, self.discount))
        if not by_chance[0].defined.any():
            raise ValueError(
                f"None of {self.queries.n_queries} held-out queries has a relevant row: there is no NDCG to choose a temperature "
                "by. Check y and qid."
            )
        for measure in by_chance:
            measure.warn()  # of queries in which it is undefined
        self.chance = by_chance[0].mean
        sorted_lists = Deterministic().expected_discounts(self.scores, self.queries, self.discount)
        self.in_order = tuple(measure.mean for measure in self._measures(sorted_lists))

    def loss(self, temperature: float) -> float:
        """Expected NDCG of the sorted lists less that of the policy."""
        return self.in_order[0] - self._at(temperature)[0]

    def disparity(self, temperature: float) -> float:
        return self._at(temperature)[1]

    def _measures(self, expected: np.ndarray) -> list:
        """NDCG, and disparity where there are groups, under a policy with these expected discounts."""
        measures = [ndcg(self.y, expected, self.queries, self.discount, "ndcg")]
        if self.group is not None:
            measures.append(exposure_disparity(self.y, self.group, expected, self.queries))
        return measures

    def _at(self, temperature: float) -> tuple[float, ...]:
        if temperature not in self.tried:
            is_small, expected = self.queries.sizes <= EXACT_UP_TO, np.empty(len(self.scores))
            for chosen, n_samples in ((is_small, "exact"), (~is_small, self.policy.n_samples)):
                if chosen.any():
                    part, rows = self.queries.subset(np.flatnonzero(chosen)), np.repeat(chosen, self.queries.sizes)
                    policy = PlackettLuce(temperature, n_samples, self.policy.random_state)
                    expected[rows] = policy.expected_discounts(self.scores[rows], part, self.discount)
            self.tried[temperature] = tuple(measure.mean for measure in self._measures(expected))
        return self.tried[temperature]

    def choose(self, max_loss: float | None, max_disparity: float | None) -> float:
        """The temperature that the bounds ask for.

        Raises
        ------
        ValueError
            If a bound can't be reached, or not both.
        """
        if not self.queries.differ_within(self.scores).any():  # whatever is asked holds at any temperature
            self._at(1.0)
            warn_caller(
                "Scores do not differ within any held-out query: every temperature is the same policy, chance, and 1 is taken. "
                "Look at the ranker (a penalty that leaves it nothing?), and whether queries have more than one row."
            )
            return 1.0
        unit = float(np.abs(self.queries.centre(self.scores)).max())
        n_steps = round(np.log10(HIGHEST / LOWEST)) * PER_DECADE
        grid = (unit * np.geomspace(LOWEST, HIGHEST, n_steps + 1)).tolist()
        for temperature in grid:
            self._at(temperature)
        if max_disparity is None:
            return self._softest(grid, max_loss)
        temperature = self._most_decided(grid, max_disparity)
        if max_loss is not None and self.loss(temperature) > max_loss:
            softest = self._first_within(grid[::-1], self.loss, max_loss, "max_ndcg_loss")
            raise ValueError(
                f"max_ndcg_loss={max_loss:g} and max_disparity={max_disparity:g} can't both be reached: on the held-out queries "
                f"a disparity of at most {max_disparity:g} costs {self.loss(temperature):.4g} of NDCG, and a loss of at most "
                f"{max_loss:g} leaves a disparity of {self.disparity(softest):.4g}. Loosen one of them."
            )
        return temperature

    def _softest(self, grid, max_loss) -> float:
        """The highest temperature at which the loss is within its bound."""
        by_chance = self.in_order[0] - self.chance
        if by_chance <= max_loss:
            raise ValueError(
                f"max_ndcg_loss={max_loss:g} can't be reached: on the held-out queries the sorted lists have an NDCG of "
                f"{self.in_order[0]:.4g} and chance, the softest policy, of {self.chance:.4g}, so that a loss lies between 0 "
                f"and {max(by_chance, 0.0):.4g}. Give a smaller one."
            )
        return self._first_within(grid[::-1], self.loss, max_loss, "max_ndcg_loss")

    def _most_decided(self, grid, max_disparity) -> float:
        """The lowest temperature at which the disparity is within its bound."""
        if max(self.in_order[1], self.disparity(grid[0])) <= max_disparity:
            warn_caller(
                f"max_disparity={max_disparity:g} asks for nothing: even the sorted lists of the held-out queries have a "
                f"disparity of {self.in_order[1]:.4g}. The policy is as decided as the curve goes."
            )
        return self._first_within(grid, self.disparity, max_disparity, "max_disparity")

    def _first_within(self, grid: list[float], value, bound: float, name: str) -> float:
        """The first temperature, from the beginning of a grid that runs up or down, at which a value is within its bound.

        Found on the grid, and made exact by root finding between neighbours.
        """
        first = next((i for i, temperature in enumerate(grid) if value(temperature) <= bound), None)
        if first is None:
            raise ValueError(
                f"{name}={bound:g} can't be reached: at temperatures from {min(grid):.3g} to {max(grid):.3g} it is at least "
                f"{min(map(value, grid)):.3g} on the held-out queries. Give a larger one."
            )
        if first == 0:
            return grid[0]
        inside, outside = grid[first], grid[first - 1]
        root = np.exp(brentq(lambda u: value(np.exp(u)) - bound, *np.log([inside, outside]), xtol=TOLERANCE))
        # On the side of the root where the bound holds; of a sampled policy the curve has steps.
        near = (float(root * (inside / outside) ** share) for share in (0.0, 1e-9, 1e-6, 1e-3))
        return next((temperature for temperature in near if value(temperature) <= bound), inside)
