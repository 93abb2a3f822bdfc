"""The whole trade-off between utility and individual fairness: SenSTIR along a path of rho."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from skfairrank._checks import names_queries
from skfairrank._queries import Queries
from skfairrank._random import spawn_generators
from skfairrank.adversaries import ExactBox, make_adversary
from skfairrank.plackett_luce import EXACT_LIMIT
from skfairrank.policies import PLRank
from skfairrank.rankers._fitting import Streams, initial_state, n_plain_steps, optimise, warn_of_data, warn_of_end
from skfairrank.rankers._senstir import Invariance, SenSTIRRanker
from skfairrank.training._adam import Problem, Regularizer, TrainingState, mean_utility, utility_and_slope

# The grid ends where utility can gain no more over a random order than this share of what it gains without the regulariser,
LEAST_GAIN = 0.2
# and begins where no more than this share of that gain is lost.
LEAST_LOSS = 0.05


@dataclass(eq=False)
class SenSTIRPath:
    """Solutions along rho.

    Attributes
    ----------
    rhos : ndarray of float, shape (n_rhos,)
        Ascending, as they are fitted.
    coefs : ndarray of float, shape (n_rhos, n_features)
    utilities : ndarray of float, shape (n_rhos,)
        Mean expected utility (NDCG) of the training queries where something can be gained; exact for queries of up to 10 items,
        else from 100 rankings.
    regularizers : ndarray of float, shape (n_rhos,)
        R without rho: in closed form, or for other adversaries its mean over the last tenth of the steps.
    n_iters : ndarray of int, shape (n_rhos,)
    rankers : list of SenSTIRRanker
        The fitted ranker at each rho.
    """

    rhos: np.ndarray
    coefs: np.ndarray
    utilities: np.ndarray
    regularizers: np.ndarray
    n_iters: np.ndarray
    rankers: list

    def predict(self, X):
        """Scores of rows at each rho, shape (n_rhos, n_rows)."""
        return np.stack([ranker.predict(X) for ranker in self.rankers])


@names_queries
def senstir_path(
    X,
    y,
    *,
    qid,
    sensitive_features=None,
    query_weight=None,
    X_hypothetical=None,
    rhos=None,
    n_rhos=40,
    n_stretches=1,
    n_jobs=None,
    estimator=None,
    **params,
):
    """Fit `SenSTIRRanker` along rho, each fit starting from the last one's weights.

    Parameters
    ----------
    X : array-like of float, shape (n_rows, n_features)
    y : array-like of float, shape (n_rows,)
        Relevance of each row, >= 0.
    qid : array-like, shape (n_rows,)
        Query of each row, in any order.
    sensitive_features : array-like, optional
        As for `SenSTIRRanker.fit`. The fair metric is learned once.
    query_weight : array-like or mapping, optional
        As for `SenSTIRRanker.fit`.
    X_hypothetical : table like X, or ndarray of shape (n_rows, n_sets, n_features), optional
        As for `SenSTIRRanker.fit`, for ``adversary="given"``.
    rhos : array-like of float, shape (n_rhos,), optional
        Values of rho; sorted. Default: `n_rhos` values in geometric progression, from where the penalty hardly
        changes anything to where hardly anything but fair weights is left. (rho has no scale of its own: R is a sum
        over the items of a query, in squared units of scores. The paper uses .0003 to 100.)
    n_rhos : int, default=40
    n_stretches : int, default=1
        Into how many stretches of about as many rhos the path is cut, so that several processes have something to do. With
        ``solver="lbfgs"`` each of them starts from the first fit of all; with ``solver="adam"`` each is a path by itself, whose
        first fit starts anew and takes `max_iter` steps. The cuts change the last digits of solutions, since the fits behind
        them have other neighbours to start from.
    n_jobs : int or None, default=None
        Processes among which stretches are shared out, by joblib. Results do not depend on it. None: 1, unless in a
        `joblib.parallel_config` context, or one of `skfairrank.on_workers`.
    estimator : SenSTIRRanker, optional
        Settings of the fits. Default: ``SenSTIRRanker(adversary=ExactBox(), solver="lbfgs")``, and where a query has more than
        `skfairrank.plackett_luce.EXACT_LIMIT` items ``solver="adam"`` with ``gradient="plrank"``, which samples.
    **params
        Other settings of the estimator, such as ``metric=`` or ``adversary__subspace_radius=``. With ``solver="adam"`` the first
        fit takes `max_iter` steps, and all further ones of the path together as many again.

    Returns
    -------
    path : SenSTIRPath

    Raises
    ------
    ValueError
        If rhos are negative, or the grid is to be found for an adversary without a closed form (give `rhos`).

    Notes
    -----
    Ctrl-C ends the path; what has been fitted so far is the path. While stretches run in other processes there is none then.

    Examples
    --------
    >>> from skfairrank import senstir_path
    >>> from skfairrank.datasets import make_biased_ranking
    >>> task = make_biased_ranking(n_queries=50, random_state=0)
    >>> path = senstir_path(task.data, task.target, qid=task.qid, metric=[[0, 1]], n_rhos=5)
    >>> bool(
    ...     path.regularizers[0] > 100 * path.regularizers[-1]
    ...     and path.utilities[0] > path.utilities[-1]
    ... )
    True
    """
    ranker = (
        SenSTIRRanker(adversary=ExactBox(), solver="lbfgs", max_iter=1000) if estimator is None else clone(estimator)
    )
    if not isinstance(ranker, SenSTIRRanker):
        raise TypeError(f"estimator is a {type(ranker).__name__}: give a SenSTIRRanker.")
    ranker.set_params(**params)
    ranker._validate_params()
    adversary = make_adversary(ranker.adversary)
    rhos = _check_grid(rhos, n_rhos, adversary)
    if not isinstance(n_stretches, Integral) or isinstance(n_stretches, bool) or n_stretches < 1:
        raise ValueError(f"n_stretches={n_stretches!r}: give an integer >= 1.")
    largest = int(Queries.from_qid(qid, _num_samples(X)).sizes.max())
    if estimator is None and "solver" not in params and (largest > EXACT_LIMIT or not adversary.is_closed_form):
        ranker.set_params(solver="adam", **{"gradient": "plrank", "max_iter": 2000, **params})
    given = {"sensitive_features": sensitive_features, "X_hypothetical": X_hypothetical}
    path = _Path(ranker, ranker.set_params(rho=1.0)._problem(X, y, qid, query_weight, None, **given))
    if rhos is None:
        rhos = path.grid(int(n_rhos))
    warn_of_data(ranker, path.problem.batches, is_warm=False)
    points = path.walk_all(rhos, int(n_stretches), n_jobs)
    fits = _fitted(ranker, points)
    points = points[: len(fits)]
    return SenSTIRPath(
        rhos=rhos[: len(fits)],
        coefs=np.stack([fit.coef_ for fit in fits]),
        utilities=np.array([point.utility for point in points]),
        regularizers=np.array([point.regularizer for point in points]),
        n_iters=np.array([fit.n_iter_ for fit in fits]),
        rankers=fits,
    )


def _check_grid(rhos, n_rhos, adversary):
    """The values of rho in ascending order; None where they are to be found."""
    if rhos is not None:
        rhos = np.sort(np.atleast_1d(np.asarray(rhos, dtype=np.float64)))
        if rhos.ndim != 1 or not len(rhos) or not np.isfinite(rhos).all() or rhos[0] < 0:
            raise ValueError(f"rhos must be finite numbers >= 0, got {rhos.tolist()}.")
        return rhos
    if not isinstance(n_rhos, Integral) or n_rhos < 2:
        raise ValueError(f"n_rhos={n_rhos!r}: give an integer >= 2.")
    if not adversary.is_closed_form:
        raise ValueError(
            'The grid of rho is found for adversaries in closed form only: give rhos=, or adversary="gaps", "exact_box" or '
            '"exact".'
        )
    return None


class _Point(NamedTuple):
    """What has been found at one rho."""

    rho: float
    #: Parameters of the ranker that differ from those of the first fit.
    settings: dict
    state: TrainingState
    utility: float
    regularizer: float


def _walk(ranker, problem: Problem, rhos, points: list[_Point], before: list[_Point], later: dict) -> list[_Point]:
    """One stretch: what runs in a process of its own. `problem` is an argument, so that joblib sends its rows once."""
    _Path(ranker, problem).walk(rhos, points, before, later)
    return points


def _settings_of_later_fits(ranker, n_rhos: int) -> dict:
    if ranker.solver == "lbfgs" or n_rhos == 1:
        return {}
    return {"max_iter": max(1, int(ranker.max_iter) // (n_rhos - 1)), "fair_start": 0.0}


def _copies(ranker, n: int) -> list[SenSTIRRanker]:
    """The ranker's parameters for each stretch, with random numbers of its own where those of one would follow another's."""
    parameters, states = ranker.get_params(deep=False), [ranker.random_state] * n
    if n > 1 and not isinstance(ranker.random_state, Integral):
        states = spawn_generators(ranker.random_state, n)
    return [type(ranker)(**{**parameters, "random_state": state}) for state in states]


def _fitted(ranker, points: list[_Point]) -> list[SenSTIRRanker]:
    """A fitted ranker for each point. One whose fit was interrupted counts only where there is no other."""
    fits: list[SenSTIRRanker] = []
    for point in points:
        fitted = copy.copy(ranker).set_params(rho=point.rho, **point.settings)
        warn_of_end(fitted, point.state)
        if point.state.interrupted and fits:
            break
        fitted._take_over(point.state)
        fits.append(fitted)
    return fits


class _Path:
    """Solutions of one problem for one rho after the other."""

    invariance: Invariance

    def __init__(self, ranker: SenSTIRRanker, problem: Problem):
        if not problem.score.is_linear:
            raise ValueError(f"A path needs a linear score, and score_function is {problem.score!r}.")
        self.ranker, self.problem, self.invariance = ranker, problem, problem.regularizer  # type: ignore[assignment]

    def _regularizer_at(self, rho: float, n_plain: int = 0, rng=None) -> Regularizer:
        if rho == 0:
            return Regularizer()
        return Invariance(self.invariance.adversary, self.invariance.metric, strength=rho, n_plain=n_plain, rng=rng)

    def solve(self, ranker, rho: float, last: TrainingState | None) -> TrainingState:
        """The solution at rho, from the last one or from the beginning."""
        streams = Streams.of(ranker.random_state)
        regularizer = self._regularizer_at(rho, n_plain_steps(ranker), streams.attack)
        if last is not None:
            regularizer.multiplier = last.multiplier
        problem = replace(self.problem, regularizer=regularizer)
        state = initial_state(ranker, problem, streams.initial)
        if last is not None:
            state.theta, state.dual_variables = last.theta.copy(), last.dual_variables
        optimise(ranker, problem, state, streams)
        return state

    def walk_all(self, rhos, n_stretches: int, n_jobs) -> list[_Point]:
        """Solutions along rho, in stretches; where Ctrl-C came, the last one is of the fit that it ended."""
        ranker = self.ranker
        problem = replace(self.problem, regularizer=self._regularizer_at(1.0))
        first: list[_Point] = []
        if ranker.solver == "lbfgs":
            self.walk(rhos[:1], first)
            rhos = rhos[1:]
        later = _settings_of_later_fits(ranker, len(rhos))
        stretches = [stretch for stretch in np.array_split(rhos, n_stretches) if len(stretch)]
        found: list[list[_Point]] = [[] for _ in stretches]
        # Asked before each stretch: those that run in this process write into these very lists.
        walks = (
            (own, problem, stretch, points, first[-1:], later)
            for own, stretch, points in zip(_copies(ranker, len(stretches)), stretches, found, strict=True)
            if not any(points and points[-1].state.interrupted for points in (first, *found))
        )
        if len(stretches) < 2:  # not even a cluster has anything to share out
            return sum((_walk(*arguments) for arguments in walks), first)
        return sum(Parallel(n_jobs=n_jobs)(delayed(_walk)(*arguments) for arguments in walks), first)

    def walk(self, rhos, points: list[_Point], before: Sequence[_Point] = (), later: dict | None = None) -> None:
        """Add the solutions at ascending rhos to `points`, until one is interrupted.

        Upwards, since weights shrink along the path. Downwards, growing scores saturate the policy within the fair weights, and
        their gradient no longer finds the way out.

        Parameters
        ----------
        rhos : ndarray of float
        points : list of _Point
        before : sequence of _Point
            None, or the one from which the first fit starts.
        later : dict, optional
            Parameters of the ranker in all fits but the first.
        """
        last, ranker = (before[-1] if before else None), self.ranker
        settings: dict = {}
        for rho in map(float, rhos):
            # After rho = 0 scores may have grown without bound, and saturate the policy: begin anew.
            state = self.solve(ranker, rho, last.state if last is not None and last.rho > 0 else None)
            last = _Point(rho, settings, state, mean_utility(self.problem, state.theta), self._regularizer(state))
            points.append(last)
            if state.interrupted:
                break
            if later and not settings:
                settings, ranker = later, copy.copy(self.ranker).set_params(**later)

    def _regularizer(self, state) -> float:
        if not self.invariance.adversary.is_closed_form:
            values = state.history["regularizer"]
            return float(values[-max(1, len(values) // 10) :].mean()) if len(values) else np.nan  # interrupted at once
        self.invariance.prepare(self.problem.batches, self.problem.score)
        return float(self.invariance.prepared.measure(state.theta)[0])

    def grid(self, n_rhos: int) -> np.ndarray:
        """Values of rho between the two ends that the constants above define.

        Near w = 0 utility is linear, with slope g, and R is mean_size/2 times the square of a norm; so the most that utility
        gains is G^2 / (rho mean_size), with G the dual norm of g. That gives the upper end; the lower one is sought from there,
        by tens.
        """
        problem, batches = self.problem, self.problem.batches
        zero = np.zeros(batches.n_features)
        self.invariance.prepare(batches, problem.score)
        _, slope = utility_and_slope(batches, problem.score, PLRank(100), zero)
        steepest = self.invariance.prepared.dual_norm(slope)
        if not 0 < steepest < np.inf:
            raise ValueError(
                "No grid of rho can be found: utility does not depend on the features, or the regulariser leaves free what "
                "it depends on (a radius or epsilon is 0). Give rhos=."
            )
        at_random, share = mean_utility(problem, zero), self._share_defined()
        coarse = copy.copy(self.ranker).set_params(early_stopping=False)

        def gain_at(rho):
            theta = self.solve(coarse, rho, None).theta
            return share * (mean_utility(problem, theta) - at_random)

        gain = gain_at(0.0)
        if gain <= 0:
            raise ValueError("No grid of rho can be found: the ranker gains nothing over a random order. Give rhos=.")
        mean_size = float((batches.sizes * batches.weights).mean())
        high = steepest**2 / (mean_size * LEAST_GAIN * gain)
        coarse.set_params(tol=max(self.ranker.tol, 1e-4), max_iter=max(1, int(self.ranker.max_iter) // 5))
        low, lost_before = high / 10.0, 1.0
        for _ in range(9):
            lost = max(1.0 - gain_at(low) / gain, 1e-6)
            if lost <= LEAST_LOSS:
                # Between two tens, on a straight line in logarithms.
                part = np.log(lost_before / LEAST_LOSS) / np.log(lost_before / lost)
                low *= 10.0 ** (1.0 - min(max(part, 0.0), 1.0))
                break
            lost_before, low = lost, low / 10.0
        return np.geomspace(min(low, high / 10.0), high, n_rhos)

    def _share_defined(self) -> float:
        """Weighted share of the queries in which something can be gained: `mean_utility` is over these, slope and R over all."""
        weight = sum(
            float(batch.weight[np.maximum.reduceat(batch.gain, batch.offsets[:-1]) > 0].sum())
            for batch in self.problem.batches.in_order()
        )
        return weight / len(self.problem.batches.sizes)
