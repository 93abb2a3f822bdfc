r"""Policies: how scores become rankings, as the expected discount of each row's rank.

Every metric of the package but Kendall's tau is linear in these discounts, so any metric can be combined with any policy: by name
(``policy="deterministic"``, ``policy="plackett_luce"``), as an object from this module, or as one of your own that has the method
of `Policy`. The exceptions are utilities that ask what stands before a row, such as reciprocal rank and average precision: for
these a policy has a second method, `expected_utility`.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval

from skfairrank import plackett_luce
from skfairrank._checks import LARGEST_SCORE
from skfairrank._kernels import exact, ranking, sampling
from skfairrank._queries import Queries
from skfairrank._threads import over_queries
from skfairrank.utilities import Tables, discounts

__all__ = [
    "Deterministic",
    "ExactGradient",
    "GradientEstimator",
    "PLRank",
    "PlackettLuce",
    "Policy",
    "RankProbabilities",
    "Reinforce",
]

N_SAMPLES = 100
TOLERANCE = 1e-6  # how far given probabilities may be from summing to one


class Policy(Protocol):
    """What a metric asks of a policy: one method.

    A policy that knows its rankings without any scores says so by an attribute ``needs_scores = False``; metrics then take None
    in the place of scores, and hand it on.

    Where the utility of a row depends on the rows before it (`skfairrank.utilities.ERR`, `AveragePrecision`), expected discounts
    are not enough. A policy that knows its rankings whole may have a method ``expected_utility(s, queries, tables)``, which
    returns the expected utility of each query's ranking, shape (n_queries,), for `skfairrank.utilities.Tables` whose rows are
    grouped by query; `skfairrank.metrics.utility_score` asks for it.
    """

    def expected_discounts(self, s: np.ndarray, queries: Queries, discount: np.ndarray) -> np.ndarray:
        """Expected discount of each row's rank, shape (n_rows,).

        Parameters
        ----------
        s : ndarray of float, shape (n_rows,)
            Scores, grouped by query, as is the result: rows ``queries.offsets[k]`` to ``queries.offsets[k + 1] - 1`` are those of
            the k-th query in sorted order of the ids. ``queries.group`` brings values of the caller's rows into this order.
        queries : Queries
            With `n_queries`, `sizes`, `offsets`, `ids`, `group` and `ungroup`.
        discount : ndarray of float, shape (at least the size of the largest query,)
            ``discount[r - 1]`` is the discount of rank r.
        """
        ...


@dataclass(frozen=True)
class Deterministic:
    """The list by descending scores. Rows with equal scores share the mean over their orders.

    For utilities with a method `utility` (average precision) they stand in row order instead.

    Examples
    --------
    >>> from skfairrank.metrics import ndcg_score
    >>> from skfairrank.policies import Deterministic
    >>> round(ndcg_score([2, 0], [1, 1], qid=[0, 0], policy=Deterministic()), 6)
    0.815465
    """

    def expected_discounts(self, s, queries, discount):
        order, out = descending_order(s, queries.offsets), np.empty(len(s))
        sorted_scores, is_first = s[order], np.ones(len(s), bool)
        is_first[1:] = sorted_scores[1:] != sorted_scores[:-1]
        is_first[queries.offsets[:-1]] = True
        ties, ranks = np.flatnonzero(is_first), np.arange(len(s)) - np.repeat(queries.offsets[:-1], queries.sizes)
        n_tied = np.diff(ties, append=len(s))
        out[order] = np.repeat(np.add.reduceat(discount[ranks], ties) / n_tied, n_tied)
        return out

    def expected_utility(self, s, queries, tables):
        offsets = queries.offsets
        if tables.utility is not None:
            return plackett_luce.utilities_of_ranked(tables, tables.gain[descending_order(s, offsets)], offsets)
        out = np.empty(queries.n_queries)
        arguments = s, descending_order(s, offsets), offsets, tables.gain, tables.continuation, tables.discount, out
        over_queries(ranking.tie_averaged_utility, offsets, sorting_work(offsets), *arguments)
        return out


@dataclass(frozen=True)
class PlackettLuce:
    """Rankings drawn from the top: each next row with probability proportional to exp(score / temperature).

    Parameters
    ----------
    temperature : float, default=1.0
        Above 0. Towards 0 the policy becomes the sorted list, far above the scores' size it becomes chance.
    n_samples : int or "exact", default=100
        Rankings to sample for each query, or exact expectations, for queries of up to `plackett_luce.EXACT_LIMIT` rows.
    random_state : None, int, RandomState or Generator
        Source of the sampled rankings; an int gives the same ones at every call.

    Raises
    ------
    ValueError
        If the temperature is not a finite number above 0, or `n_samples` is neither an integer >= 1 nor "exact".

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank.metrics import ndcg_score
    >>> from skfairrank.policies import PlackettLuce
    >>> for temperature in (1e-9, 1, 1e9):
    ...     policy = PlackettLuce(temperature, n_samples="exact")
    ...     print(f"{ndcg_score([1, 0], [np.log(3), 0], qid=[0, 0], policy=policy):.6f}")
    1.000000
    0.907732
    0.815465
    """

    temperature: float = 1.0
    n_samples: int | str = N_SAMPLES
    random_state: object = None

    def __post_init__(self):
        t = self.temperature
        if not isinstance(t, numbers.Real) or isinstance(t, bool) or not 0 < t < np.inf:
            raise ValueError(
                f"temperature={t!r}: give a finite number above 0; for the sorted list there is Deterministic()."
            )
        plackett_luce.check_n_samples(self.n_samples)

    def expected_discounts(self, s, queries, discount):
        h = self._divided(s, queries)
        return plackett_luce.expected_discounts(h, queries, discount, self.n_samples, self.random_state)

    def expected_utility(self, s, queries, tables):
        h = self._divided(s, queries)
        return plackett_luce.expected_utility(h, queries, tables, self.n_samples, self.random_state)

    def _divided(self, s, queries):
        """Scores in units of the temperature; where a query's would overflow, of the smallest unit in which they do not."""
        if self.temperature == 1:
            return s
        unit, least = float(self.temperature), np.maximum.reduceat(np.abs(s), queries.offsets[:-1]) / LARGEST_SCORE
        return s / np.repeat(np.maximum(least, unit), queries.sizes) if least.max() > unit else s / unit


@dataclass(frozen=True, eq=False, repr=False)
class RankProbabilities:
    """A policy that is known by its probabilities of ranks, whatever the scores: of a linear programme, or of another library.

    Parameters
    ----------
    P : array-like of float, shape (n_rows, at least the size of the largest query)
        ``P[i, j]`` is the probability that row i, in the caller's row order, has rank j + 1 in its query, as
        `skfairrank.plackett_luce.rank_probabilities` returns it. Of a query of n rows each row and each of the first n columns
        sums to one, and ranks beyond n have no probability, up to 1e-6.

    Raises
    ------
    ValueError
        If P is no table of numbers; and in a metric, which knows the queries, if the probabilities of a query are none. The
        message names it.

    Examples
    --------
    >>> from skfairrank.metrics import group_exposure_difference
    >>> from skfairrank.policies import RankProbabilities
    >>> chance = [[0.5, 0.5], [0.5, 0.5]]
    >>> kw = dict(qid=[0, 0], sensitive_features=["A", "B"])
    >>> group_exposure_difference(None, policy=RankProbabilities(chance), **kw)
    0.0
    """

    P: np.ndarray
    needs_scores: ClassVar[bool] = False

    def __post_init__(self):
        P = check_array(self.P, dtype=np.float64, ensure_all_finite=False, input_name="P")
        object.__setattr__(self, "P", P)

    def __repr__(self):
        return f"RankProbabilities(P of shape {self.P.shape})"

    def expected_discounts(self, s, queries, discount):
        self._check(queries)
        largest = int(queries.sizes.max())
        return queries.group(self.P[:, :largest] @ discount[:largest])

    def _check(self, queries):
        if len(self.P) != queries.n_rows or self.P.shape[1] < queries.sizes.max():
            raise ValueError(
                f"P has shape {self.P.shape} for {queries.n_rows} rows in queries of up to {queries.sizes.max()}: give one row "
                "of probabilities for each row of data, in the same order, and one column for each rank."
            )
        P, starts = queries.group(self.P), queries.offsets[:-1]
        is_rank = np.arange(P.shape[1]) < queries.sizes[:, None]  # (n_queries, n_columns)
        in_rows, in_columns = P.sum(axis=1), np.add.reduceat(P, starts, axis=0)
        # Written so that a nan is wrong. What is not negative and sums to zero, as a column beyond the ranks must, is zero.
        for right, fault in (
            (np.minimum.reduceat(P.min(axis=1), starts) >= -TOLERANCE, "has a negative or missing probability"),
            (np.maximum.reduceat(np.abs(in_rows - 1.0), starts) <= TOLERANCE, "has a row that does not sum to one"),
            (
                (np.abs(in_columns - is_rank) <= TOLERANCE).all(axis=1),
                "has a rank whose probabilities do not sum to one",
            ),
        ):
            if not right.all():
                k = int(np.argmin(right))
                raise ValueError(
                    f"P of query {queries.name(k)}, of {queries.sizes[k]} rows, {fault}: give the probability of each row at "
                    f"each rank from 1 to {queries.sizes[k]}, and zeros beyond."
                )


def descending_order(s: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Positions among grouped rows, query by query in descending order of `s`, ties in given order, shape (n_rows,)."""
    order = np.empty(len(s), np.int64)
    over_queries(ranking.descending_order, offsets, sorting_work(offsets), s, offsets, order)
    for q in np.flatnonzero(np.diff(offsets) > ranking.SMALL):
        rows = slice(offsets[q], offsets[q + 1])
        order[rows] = offsets[q] + np.argsort(-s[rows], kind="stable")
    return order


def sorting_work(offsets: np.ndarray) -> float:
    """Rough time of sorting within queries, in nanoseconds."""
    n_rows, n_queries = int(offsets[-1] - offsets[0]), len(offsets) - 1
    return n_rows * min(3.0 + 0.3 * n_rows / n_queries, 30.0)


def make_policy(policy, *, n_samples=N_SAMPLES, random_state=None) -> Policy:
    """The policy that a metric's parameters name; `n_samples` and `random_state` are for those given by name.

    Raises
    ------
    ValueError
        If it is neither a known name nor has the method of `Policy`, or brings its own `n_samples` and `random_state`.
    """
    if isinstance(policy, str) and policy == "deterministic":
        return Deterministic()
    if isinstance(policy, str) and policy in ("plackett_luce", "plackett-luce"):
        return PlackettLuce(n_samples=n_samples, random_state=random_state)
    if isinstance(policy, type) or not callable(getattr(policy, "expected_discounts", None)):
        raise ValueError(
            f"policy={policy!r}: choose 'deterministic' (the sorted list) or 'plackett_luce', or give a policy of "
            "skfairrank.policies, such as PlackettLuce(temperature=0.5)."
        )
    if random_state is not None or not (isinstance(n_samples, numbers.Integral) and n_samples == N_SAMPLES):
        raise ValueError(
            f"n_samples={n_samples!r} and random_state={random_state!r} belong to policy='plackett_luce', and policy={policy!r} "
            "brings its own: leave them out, or give them to the policy, as in PlackettLuce(n_samples=25, random_state=0)."
        )
    return policy


def expected_exposure(policy: Policy, s, queries: Queries, k: int | None = None) -> np.ndarray:
    """Expected exposure of each row: 1 / log2(1 + rank) for ranks up to k; scores and result grouped by query."""
    return policy.expected_discounts(s, queries, discounts(int(queries.sizes.max()), k))


def expected_utility(policy: Policy, s, queries: Queries, tables: Tables) -> np.ndarray:
    """Expected utility of each query's ranking, shape (n_queries,); scores grouped by query.

    Raises
    ------
    TypeError
        If the utility depends on the rows before a row, and the policy has no method `expected_utility`.
    """
    if tables.continuation is None and tables.utility is None:
        expected = policy.expected_discounts(s, queries, tables.discount)
        return np.add.reduceat(tables.gain * expected, queries.offsets[:-1])
    of_rankings = getattr(policy, "expected_utility", None)
    if of_rankings is None:
        raise TypeError(
            f"policy={policy!r} knows the probabilities of ranks, and the utility of a row depends here on the rows before it. "
            "Choose a utility by position (NDCG, DCG, PrecisionAtK, RecallAtK, RBP), or a policy that knows its rankings whole: "
            "'deterministic' or 'plackett_luce'."
        )
    return of_rankings(s, queries, tables)


# Training: gradients of the expected utility

_NOT_GIVEN = np.empty((0, 0))  # utilities of sampled rankings, where tables say them


class GradientEstimator(BaseEstimator):
    """Gradient of the expected utility in the scores of a batch: what rankers take as `gradient`.

    A class of one's own needs `estimate` and `expected_discounts`. Their noise comes from `batch.key` alone, so that both see the
    same rankings. Gradients are of each query's own utility: weights of queries and the mean over a batch come later.
    """

    _parameter_constraints: dict = {}

    def estimate(self, batch, h: np.ndarray, discount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of the expected utility in the scores, shape (n_rows,), and each query's utility, shape (n_queries,).

        Parameters
        ----------
        batch : skfairrank.training.Batch
            Of which `offsets`, `gain`, `continuation`, `key` and `utility` are read.
        h : ndarray of float64, shape (n_rows,)
            Scores of the batch's rows.
        discount : ndarray of float64, shape (>= largest query size,)

        Raises
        ------
        ValueError
            If it needs tables, and the batch's utility is known by the utility of whole rankings.
        """
        raise NotImplementedError(f"{type(self).__name__} has no estimate(batch, h, discount).")

    def expected_discounts(self, batch, h: np.ndarray, discount: np.ndarray) -> np.ndarray:
        """Expected discount of each row's rank, shape (n_rows,), over the rankings from which the gradient comes."""
        raise NotImplementedError(f"{type(self).__name__} has no expected_discounts(batch, h, discount).")

    def check(self, queries: Queries) -> None:
        """Raise ValueError where a query is too large for it, and name the query."""


class Reinforce(GradientEstimator):
    """REINFORCE over sampled rankings, with the mean utility of the query's own samples as the baseline (Bower et al. 2021).

    The mean contains the sample itself, so the expectation is 1 - 1/n_samples times the gradient.

    Parameters
    ----------
    n_samples : int, default=25
        Sampled rankings per query, at least 2.
    """

    _parameter_constraints: dict = {"n_samples": [Interval(numbers.Integral, 2, None, closed="left")]}

    def __init__(self, n_samples=25):
        self.n_samples = n_samples

    def estimate(self, batch, h, discount):
        given = _NOT_GIVEN
        if batch.utility is not None:  # the utility of whole rankings is known to it alone: they are drawn twice, alike
            tables = Tables(batch.gain, discount, utility=batch.utility)
            given = plackett_luce.sampled_utilities(h, batch.offsets, batch.key, self.n_samples, tables)
        return self._sampled(sampling.reinforce, batch, h, discount, given)

    def _sampled(self, kernel, batch, h, *others):
        gradient, utility, n = np.empty(len(h)), np.empty(len(batch.offsets) - 1), self.n_samples
        arguments = h, batch.offsets, batch.gain, batch.continuation, *others, batch.key, n, gradient, utility
        over_queries(kernel, batch.offsets, sampling.gradient_work(len(h), len(utility), n), *arguments)
        return gradient, utility

    def expected_discounts(self, batch, h, discount):
        expected = np.empty(len(h))
        work = sampling.sampling_work(len(h), len(batch.offsets) - 1, self.n_samples)
        arguments = h, batch.offsets, batch.key, self.n_samples, discount, expected
        over_queries(sampling.sampled_discounts, batch.offsets, work, *arguments)
        return expected


class PLRank(Reinforce):
    """PL-Rank-3 (Oosterhuis 2022) with a baseline: unbiased, and of lower variance than REINFORCE.

    Parameters
    ----------
    n_samples : int, default=25
        Sampled rankings per query, at least 2: a single one has no baseline.
    """

    def estimate(self, batch, h, discount):
        _check_tables(batch)
        return self._sampled(sampling.plrank, batch, h, discount)


class ExactGradient(GradientEstimator):
    """The gradient itself, summed over subsets of a query's items: for queries of up to `plackett_luce.EXACT_LIMIT` items."""

    def estimate(self, batch, h, discount):
        _check_tables(batch)
        gradient, utility = np.empty(len(h)), np.empty(len(batch.offsets) - 1)
        arguments = h, batch.offsets, batch.gain, batch.continuation, discount, gradient, utility
        over_queries(exact.exact_gradient, batch.offsets, 2.0 * exact.subset_work(np.diff(batch.offsets)), *arguments)
        return gradient, utility

    def expected_discounts(self, batch, h, discount):
        expected = np.empty(len(h))
        work = exact.subset_work(np.diff(batch.offsets))
        over_queries(exact.expected_discounts, batch.offsets, work, h, batch.offsets, discount, expected)
        return expected

    def check(self, queries):
        plackett_luce.check_exact_limit(queries)


def _check_tables(batch) -> None:
    if batch.utility is not None:
        raise ValueError(
            'gradient="plrank", gradient="exact" and solver="lbfgs" need a utility of gain, discount and continuation; '
            "this one, as AveragePrecision, is known by the utility of whole rankings. Train for it by REINFORCE: "
            'solver="adam", gradient="reinforce" (and give senstir_path its rhos).'
        )


#: By the name that rankers take; a class is made with the number of samples as its first argument.
GRADIENTS = {"reinforce": Reinforce, "plrank": PLRank, "exact": ExactGradient}


def make_gradient(gradient, n_samples: int) -> GradientEstimator:
    """The object that a ranker's parameter `gradient` names, with so many samples; an object brings its own."""
    if not isinstance(gradient, str):
        if hasattr(gradient, "_validate_params"):
            gradient._validate_params()
        return gradient
    return ExactGradient() if gradient == "exact" else GRADIENTS[gradient](n_samples)
