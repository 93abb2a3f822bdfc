"""Fairness of exposure: random rankings in which groups share exposure fairly (Singh and Joachims 2018)."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

from skfairrank._checks import names_queries, warn_caller
from skfairrank._gains import discounts
from skfairrank._random import as_generator
from skfairrank._rankers._ranking import ranks_by_score
from skfairrank._sensitive import check_groups
from skfairrank.plackett_luce import check_n_samples
from skfairrank.postprocessing._base import ReRanker
from skfairrank.postprocessing._programme import exposure_weights, fair_ranks, mixture
from skfairrank.postprocessing._ranking_mixture import RankingMixture

__all__ = ["ExposureLPRanker"]


class ExposureLPRanker(ReRanker):
    r"""Random rankings of the greatest expected worth in which the groups of a query share exposure fairly.

    Of "Fairness of Exposure in Rankings" (Singh and Joachims 2018). Item i of a query has a worth :math:`u_i` and, under a policy
    in which it has rank j with the chance :math:`P_{ij}`, the exposure :math:`e_i = \sum_j P_{ij} v_j`, where
    :math:`v_j = 1 / \log_2(1 + j)`. The policy maximises :math:`\sum_i u_i e_i` over all doubly stochastic P, by a linear
    programme, such that among the groups

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
        How far the groups' largest value may lie above the smallest, in units of exposure (or of exposure per worth).
    infeasible : {"closest", "raise"}, default="closest"
        What to do with a query in which no policy is so fair, as may be under "disparate_treatment": take the best of those that
        are as near to it as any, with a warning that counts such queries; or raise an error.
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

    A query of n items is a linear programme of n² variables for HiGHS, meant for up to about a hundred items that are shown.

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
    >>> ranker.sample_rankings(X, qid=qid, sensitive_features=sex, n_samples=2, random_state=0).shape
    (2, 6)
    """

    _parameter_constraints = {
        **ReRanker._parameter_constraints,
        "constraint": [StrOptions({"demographic_parity", "disparate_treatment", "disparate_impact"})],
        "worth": [StrOptions({"above_least", "score"}), callable],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "infeasible": [StrOptions({"closest", "raise"})],
        "k": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        estimator,
        *,
        constraint="demographic_parity",
        worth="above_least",
        tolerance=0.0,
        infeasible="closest",
        k=None,
    ):
        self.estimator = estimator
        self.constraint = constraint
        self.worth = worth
        self.tolerance = tolerance
        self.infeasible = infeasible
        self.k = k

    def _learn(self, X, queries, sensitive_features):
        if sensitive_features is not None:
            check_groups(sensitive_features, queries.n_rows, compared_by="ExposureLPRanker")

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
        return self._exposure(X, qid, sensitive_features, method="expected_exposure")[1]

    @names_queries
    def predict(self, X, *, qid=None, sensitive_features=None):
        """The expected exposure of each row as its score.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. May only be left out if `fit` saw one query.
        sensitive_features : array-like, shape (n_rows,)
            The group of each row.

        Returns
        -------
        scores : ndarray of float, shape (n_rows,)
        """
        return self._exposure(X, qid, sensitive_features, method="predict")[1]

    @names_queries
    def rank(self, X, *, qid=None, sensitive_features=None):
        """Rank of each row by descending expected exposure, ties in row order: one list, which does not keep the constraint.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one list.
        sensitive_features : array-like, shape (n_rows,)
            The group of each row.

        Returns
        -------
        ranks : ndarray of int, shape (n_rows,)
        """
        queries, exposure = self._exposure(X, qid, sensitive_features, method="rank")
        return ranks_by_score(exposure, queries)

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
        queries, mixtures, _ = self._mixtures(X, qid, sensitive_features, method="policy")
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
        queries, mixtures, _ = self._mixtures(X, qid, sensitive_features, method="sample_rankings")
        out = np.empty((int(n_samples), queries.n_rows), np.int64)
        for k, (chances, ranks) in enumerate(mixtures):
            out[:, queries.rows(k)] = ranks[rng.choice(len(chances), size=len(out), p=chances)]
        return out

    def _exposure(self, X, qid, sensitive_features, *, method):
        queries, mixtures, kinds = self._mixtures(X, qid, sensitive_features, method=method)
        discount = discounts(int(queries.sizes.max()), self.k)
        # Items of one kind have equal chances up to rounding, by which nothing is to be sorted.
        grouped = [_shared(chances @ discount[ranks - 1], kind) for (chances, ranks), kind in zip(mixtures, kinds)]
        return queries, queries.ungroup(np.concatenate(grouped))

    def _mixtures(self, X, qid, sensitive_features, *, method):
        """The queries; of each the rankings and their chances, and which items have the same score and group."""
        check_is_fitted(self, "estimator_")
        codes = check_groups(sensitive_features, _num_samples(X), compared_by="ExposureLPRanker")[1]
        queries, s = self._scored(X, qid, sensitive_features, method=method)
        worth, group = self._worth(s, queries), queries.group(codes)
        mixtures, kinds, apart = [], [], []
        for k, (start, end) in enumerate(zip(queries.offsets[:-1], queries.offsets[1:])):
            rows = slice(start, end)
            weights = exposure_weights(self.constraint, worth[rows], group[rows])
            P, spread = fair_ranks(worth[rows], weights, discounts(end - start, self.k), float(self.tolerance))
            if spread > self.tolerance:
                apart.append((k, spread))
            kinds.append(np.unique(np.column_stack([s[rows], group[rows]]), axis=0, return_inverse=True)[1].ravel())
            mixtures.append(mixture(_shared(P, kinds[-1])))
        if apart:
            self._say(queries, apart)
        return queries, mixtures, kinds

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

    def _say(self, queries, apart) -> None:
        k, spread = max(apart, key=lambda query: query[1])
        message = (
            f"In {len(apart)} of {queries.n_queries} queries no policy keeps {self.constraint!r} within a tolerance of "
            f"{self.tolerance:g}; in query {queries.name(k)} the groups differ by at least {spread:.3g}."
        )
        if self.infeasible == "raise":
            raise ValueError(f"{message} Give infeasible='closest' for the nearest policy, or a larger tolerance.")
        warn_caller(f"{message} The nearest policy is taken.")


def _shared(values, kinds):
    """Values of items, in which those of one kind share the mean of theirs; shape (n, ...)."""
    counts = np.bincount(kinds)
    if len(counts) == len(kinds):
        return values
    sums = np.zeros((len(counts), *values.shape[1:]))
    np.add.at(sums, kinds, values)
    return (sums.T / counts).T[kinds]
