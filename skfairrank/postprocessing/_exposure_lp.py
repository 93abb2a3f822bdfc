"""Fairness of exposure: random rankings in which groups share exposure fairly (Singh and Joachims 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import csr_array
from sklearn.utils._param_validation import Interval, StrOptions

from skfairrank._checks import names_queries, stores_parameters, warn_caller
from skfairrank._random import as_generator
from skfairrank.plackett_luce import check_n_samples
from skfairrank.policies import Deterministic, RankProbabilities
from skfairrank.postprocessing._base import ReRanker
from skfairrank.utilities import discounts

_SOLVER = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_SLACK = 1e-9  # beyond the least spread that there is, so that rounding does not make the second program infeasible
_SMALLEST_CHANCE = 1e-9
_NEVER = 1e6  # cost of an entry without chance, above the sum of all others: -log(1e-9) for each of n < 40,000 items


class ExposureLPRanker(ReRanker):
    r"""Random rankings of the greatest expected worth in which the groups of a query share exposure fairly.

    Of "Fairness of Exposure in Rankings" (Singh and Joachims 2018). Item i of a query has a worth :math:`u_i` and, under a policy
    in which it has rank j with the chance :math:`P_{ij}`, the exposure :math:`e_i = \sum_j P_{ij} v_j`, where
    :math:`v_j = 1 / \log_2(1 + j)`. The policy maximises :math:`\sum_i u_i e_i` over all doubly stochastic P, by a linear
    program, such that among the groups

    - "demographic_parity": the mean exposure :math:`\bar e_G` is equal;
    - "disparate_treatment": the exposure per worth :math:`\bar e_G / \bar u_G` is equal;
    - "disparate_impact": the share of clicks per worth is equal, the mean of :math:`e_i u_i` over G by :math:`\bar u_G`.

    Of more than two groups all are equal, so each pair is. A group without any worth has no exposure per worth, and takes no part
    in the latter two. Items of equal score and group get equal chances. By the decomposition of Birkhoff and von Neumann the
    policy is a mixture of few rankings, from which `sample_rankings` draws.

    Parameters
    ----------
    estimator : estimator with `fit` and `predict`
        The ranker: one of this package, a pipeline, a regressor, a boosted ranker (which is put into a `QueryRanker`), or
        ``FrozenEstimator(model)`` around a fitted one.
    constraint : {"demographic_parity", "disparate_treatment", "disparate_impact"}, default="demographic_parity"
    worth : {"above_least", "score"} or callable, default="above_least"
        What scores say of the worth of items: "above_least" the score less the least one of the query; "score" the score itself,
        which must not be negative, as a chance of being relevant; a function of the scores of all rows, such as ``np.exp``, that
        gives a number >= 0 for each. Under "demographic_parity" the first two are the same.
    tolerance : float, default=0.0
        How far the groups' largest value may lie above the smallest, in units of exposure (or of exposure per worth). Where no
        policy is so fair, as may be under "disparate_treatment", the best of those that are as near to it as any is taken, with a
        warning that counts such queries.
    k : int, optional
        Ranks beyond k have no exposure. None: all have.

    Attributes
    ----------
    estimator_ : estimator
        The fitted ranker.
    n_queries_ : int
    n_features_in_ : int

    Notes
    -----
    The groups are needed when rankings are made, not only in training. Exposure is shared in expectation: a single list, and
    `rank` gives one, cannot do so. Scorers, `score` and `skfairrank.inspection.audit` therefore judge it by its `policy`.

    A query of n items is a linear program of n² variables for HiGHS, meant for up to about a hundred items that are shown.

    Examples
    --------
    The job seekers of the paper's introduction, three men and three women, who are almost equally worthy:

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.postprocessing import ExposureLPRanker
    >>> X = np.array([[0.82], [0.81], [0.80], [0.79], [0.78], [0.77]])
    >>> sex, qid = np.array(list("mmmfff")), np.zeros(6, int)
    >>> ranker = ExposureLPRanker(LinearRegression()).fit(X, X[:, 0], qid=qid)
    >>> exposure = ranker.expected_exposure(X, qid=qid, sensitive_features=sex)
    >>> [round(float(exposure[sex == group].mean()), 4) for group in "mf"]
    [0.5508, 0.5508]
    >>> ranker.sample_rankings(
    ...     X, qid=qid, sensitive_features=sex, n_samples=2, random_state=0
    ... ).shape
    (2, 6)
    """

    _parameter_constraints = {
        **ReRanker._parameter_constraints,
        "constraint": [StrOptions({"demographic_parity", "disparate_treatment", "disparate_impact"})],
        "worth": [StrOptions({"above_least", "score"}), callable],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "k": [Interval(Integral, 1, None, closed="left"), None],
    }

    @stores_parameters
    def __init__(
        self,
        estimator,
        *,
        constraint="demographic_parity",
        worth="above_least",
        tolerance=0.0,
        k=None,
    ): ...

    @names_queries
    def expected_exposure(self, X, *, qid=None, sensitive_features=None):
        """Expected exposure of each row, 1 / log2(1 + rank), under the policy.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one list.
        sensitive_features : array-like, shape (n_rows,)
            The group of each row.

        Returns
        -------
        exposure : ndarray of float, shape (n_rows,)
        """
        return self.predict(X, qid=qid, sensitive_features=sensitive_features)

    @names_queries
    def policy(self, X, *, qid=None, sensitive_features=None):
        """The policy of these rows, for the parameter `policy` of any metric, with None in the place of scores.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one list.
        sensitive_features : array-like, shape (n_rows,)
            The group of each row.

        Returns
        -------
        policy : skfairrank.policies.RankProbabilities
            ``policy.P`` has shape (n_rows, size of the largest query). It also knows its rankings whole, so utilities such as
            reciprocal rank can be judged by it.
        """
        queries, s, _, codes = self._read(X, qid, sensitive_features)
        mixtures, _ = self._mixtures(queries, s, codes)
        P = np.zeros((queries.n_rows, int(queries.sizes.max())))
        for k, (chances, ranks) in enumerate(mixtures):
            for chance, ranking in zip(chances, ranks):
                P[queries.rows(k), ranking - 1] += chance
        return RankingMixture(P, mixtures)

    @names_queries
    def sample_rankings(self, X, *, qid=None, sensitive_features=None, n_samples=1, random_state=None):
        """Rankings drawn from the policy.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one list.
        sensitive_features : array-like, shape (n_rows,)
            The group of each row.
        n_samples : int, default=1
            Number of rankings of each query.
        random_state : None, int, RandomState or Generator

        Returns
        -------
        ranks : ndarray of int, shape (n_samples, n_rows)
            1-based rank of each row within its query, aligned with the rows of X.
        """
        check_n_samples(n_samples, exact=False)
        rng = as_generator(random_state)
        queries, s, _, codes = self._read(X, qid, sensitive_features)
        mixtures, _ = self._mixtures(queries, s, codes)
        out = np.empty((int(n_samples), queries.n_rows), np.int64)
        for k, (chances, ranks) in enumerate(mixtures):
            out[:, queries.rows(k)] = ranks[rng.choice(len(chances), size=len(out), p=chances)]
        return out

    def _policy(self, X, qid, **metadata):
        return None, self.policy(X, qid=qid, **metadata)

    def _rescored(self, X, queries, s, labels, codes):
        discount = discounts(int(queries.sizes.max()), self.k)
        # Items of one kind have equal chances up to rounding, by which nothing is to be sorted.
        parts = zip(*self._mixtures(queries, s, codes))
        return np.concatenate([_shared(chances @ discount[ranks - 1], kind) for (chances, ranks), kind in parts])

    def _mixtures(self, queries, s, group):
        """Of each query the rankings and their chances, and which items have the same score and group."""
        worth = self._worth(s, queries)
        mixtures, kinds, spreads = [], [], []
        for start, end in zip(queries.offsets[:-1], queries.offsets[1:]):
            rows = slice(start, end)
            weights = exposure_weights(self.constraint, worth[rows], group[rows])
            P, spread = fair_ranks(worth[rows], weights, discounts(end - start, self.k), float(self.tolerance))
            spreads.append(spread)
            kinds.append(np.unique(np.column_stack([s[rows], group[rows]]), axis=0, return_inverse=True)[1].ravel())
            mixtures.append(mixture(_shared(P, kinds[-1])))
        if max(spreads) > self.tolerance:
            warn_caller(
                f"In {sum(spread > self.tolerance for spread in spreads)} of {queries.n_queries} queries no policy keeps "
                f"{self.constraint!r} within a tolerance of {self.tolerance:g}; in query {queries.name(int(np.argmax(spreads)))} "
                f"the groups differ by at least {max(spreads):.3g}. The nearest policy is taken; a larger tolerance can be kept."
            )
        return mixtures, kinds

    def _worth(self, s, queries):
        if self.worth == "above_least":
            return s - np.repeat(np.minimum.reduceat(s, queries.offsets[:-1]), queries.sizes)
        worth = s if self.worth == "score" else np.asarray(self.worth(s), dtype=np.float64)
        if worth.shape != s.shape or not np.isfinite(worth).all() or worth.min() < 0:
            given = "the scores" if self.worth == "score" else f"what worth gave, of shape {worth.shape},"
            raise ValueError(
                f"The worth of items must be a finite number >= 0 for each of {len(s)} rows, and {given} are not: give "
                "worth='above_least', or a function of the scores such as np.exp."
            )
        return worth


def _shared(values, kinds):
    """Values of items, in which those of one kind share the mean of theirs; shape (n, ...)."""
    counts = np.bincount(kinds)
    if len(counts) == len(kinds):
        return values
    sums = np.zeros((len(counts), *values.shape[1:]))
    np.add.at(sums, kinds, values)
    return (sums.T / counts).T[kinds]


def exposure_weights(constraint: str, worth: np.ndarray, group: np.ndarray) -> np.ndarray:
    """One row c of each group that takes part, shape (n_groups, n): what must be equal among the groups is c @ exposure.

    Parameters
    ----------
    constraint : "demographic_parity", "disparate_treatment" or "disparate_impact"
        Mean exposure; mean exposure by mean worth; mean of exposure times worth by mean worth (the paper's section 4).
    worth : ndarray of float >= 0, shape (n,)
    group : ndarray of int, shape (n,)
    """
    members = group == np.unique(group)[:, None]
    if constraint == "demographic_parity":
        return members / members.sum(axis=1, keepdims=True)
    total = members @ worth
    members, total = members[total > 0], total[total > 0, None]  # a group without any worth has no exposure per worth
    return members * (worth if constraint == "disparate_impact" else 1.0) / total


def fair_ranks(worth, weights, discount, tolerance):
    """P of the ranking policy of greatest expected worth in which what `weights` say differs by at most `tolerance`.

    Parameters
    ----------
    worth : ndarray of float, shape (n,)
    weights : ndarray of float, shape (n_groups, n)
        See `exposure_weights`.
    discount : ndarray of float, shape (n,)
        Exposure of each rank, not rising.
    tolerance : float >= 0
        How far the largest c @ exposure may lie above the smallest.

    Returns
    -------
    P : ndarray, shape (n, n)
        Doubly stochastic: entry (i, j) is the chance that item i has rank j + 1.
    spread : float
        How far they lie apart, at most: `tolerance`, or the least that any policy has where that is more.
    """
    n, n_groups = len(worth), len(weights)
    best = np.zeros((n, n))
    best[np.argsort(-worth, kind="stable"), np.arange(n)] = 1.0
    if n_groups < 2 or np.ptp(weights @ (best @ discount)) <= tolerance:
        return best, tolerance
    # Variables are P, row by row, the lowest value of c @ P v, and how far the highest lies above it.
    unit, one, zero = weights.max(), np.ones((n_groups, 1)), np.zeros((n_groups, 1))
    of_groups = np.kron(weights / unit, discount)
    below = csr_array(np.vstack([np.hstack([-of_groups, one, zero]), np.hstack([of_groups, -one, -one])]))
    entry = np.arange(n * n)
    sums = np.ones(2 * n * n), (np.r_[entry // n, n + entry % n], np.r_[entry, entry])

    def solve(cost, most_spread):
        return linprog(
            cost,
            A_ub=below,
            b_ub=np.zeros(2 * n_groups),
            A_eq=csr_array(sums, shape=(2 * n, n * n + 2)),
            b_eq=np.ones(2 * n),
            bounds=np.vstack([np.tile([0.0, 1.0], (n * n, 1)), [-np.inf, np.inf], [0.0, most_spread]]),
            options=_SOLVER,
        )

    allowed = tolerance / unit
    cost = np.r_[-np.kron(worth / max(np.abs(worth).max(), np.finfo(float).tiny), discount), 0.0, 0.0]
    result = solve(cost, allowed)
    if result.status == 2:  # infeasible: as near as any policy comes
        allowed = solve(np.r_[np.zeros(n * n + 1), 1.0], np.inf).x[-1] + _SLACK
        result = solve(cost, allowed)
    if result.status != 0:
        raise RuntimeError(f"HiGHS could not solve the linear program of a query of {n} items: {result.message}")
    return result.x[:-2].reshape(n, n), float(allowed * unit)


def mixture(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rankings, and the chance of each, whose mean is a doubly stochastic matrix (Birkhoff and von Neumann).

    Each ranking is the one of greatest likelihood, the product of its entries, in what the ones before it have left; each empties
    an entry at least. So there are at most as many as there are entries above zero, less n, and one.

    Returns
    -------
    chances : ndarray of float, shape (n_rankings,)
        Falling or not, they sum to one.
    ranks : ndarray of int, shape (n_rankings, n)
        1-based rank of each item.
    """
    left, chances, ranks = np.maximum(P, 0.0), [], []
    items = np.arange(len(P))
    while True:
        cost = np.full(left.shape, _NEVER)
        has_chance = left > _SMALLEST_CHANCE
        cost[has_chance] = -np.log(left[has_chance])
        places = linear_sum_assignment(cost)[1]
        chance = left[items, places].min()
        if chance <= _SMALLEST_CHANCE:
            break
        left[items, places] -= chance
        chances.append(chance)
        ranks.append(places + 1)
    return np.array(chances) / sum(chances), np.array(ranks)


@dataclass(frozen=True, eq=False, repr=False)
class RankingMixture(RankProbabilities):
    """`RankProbabilities` that knows its rankings whole, and so their utility where that depends on the rows before a row.

    Parameters
    ----------
    P : ndarray of float, shape (n_rows, size of the largest query)
        See `RankProbabilities`.
    mixtures : list of tuple (chances, ranks)
        Of each query, in sorted order of the ids, the chances of its rankings, shape (n_rankings,), and these, 1-based ranks of
        its rows in the caller's order, shape (n_rankings, n).
    """

    mixtures: list

    def expected_utility(self, s, queries, tables):
        """Expected utility of each query's ranking, shape (n_queries,); see `skfairrank.policies.Policy`."""
        self._check(queries)
        total = np.zeros(queries.n_queries)
        for m in range(max(len(chances) for chances, _ in self.mixtures)):
            # A query of fewer rankings has its last one again, with no chance.
            chance = np.array([chances[m] if m < len(chances) else 0.0 for chances, _ in self.mixtures])
            ranks = np.concatenate([ranks[min(m, len(ranks) - 1)] for _, ranks in self.mixtures])
            total += chance * Deterministic().expected_utility(-ranks.astype(np.float64), queries, tables)
        return total
