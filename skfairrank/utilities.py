r"""Utilities of a ranking, as three tables: gain of a row, discount of a rank, and continuation after a row.

The utility of a ranking with ranks r is

.. math::

    U(r) = \sum_i \mathrm{gain}_i \; \mathrm{discount}_{r(i)} \prod_{j:\ r(j) < r(i)} \mathrm{continuation}_j ,

which is all that policies, policy gradients and metrics know of it. So a class here serves all of training and measuring once
it fills the tables.

A utility that no such tables can say, as average precision, has a method `utility` of ranked gains beside them. It can be
measured on sorted and on sampled rankings, and REINFORCE can train for it.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from skfairrank._checks import warn_caller
from skfairrank._queries import blocks_of_queries

__all__ = [
    "DCG",
    "ERR",
    "NDCG",
    "RBP",
    "AveragePrecision",
    "PrecisionAtK",
    "RecallAtK",
    "ReciprocalRank",
    "Tables",
    "Utility",
]

_BLOCK = 1 << 16  # rows whose tables are filled at once, so that it takes little memory
_MOST_GRADES = 50  # below this 2^y - 1 is exact for whole relevances
_LARGEST_GRADE = 10  # whose gain is a thousand times that of the least


def discounts(n: int, k: int | None = None, patience: float | None = None) -> np.ndarray:
    """The table 1 / log2(1 + rank), or patience^(rank - 1), for ranks 1 to n; zero beyond rank k."""
    if patience is not None and (
        isinstance(patience, bool) or not isinstance(patience, Real) or not 0 < float(patience) < 1
    ):
        raise ValueError(
            f"patience={patience!r}: give a number between 0 and 1, the share of users who go on from a rank to the "
            "next, or None for 1 / log2(1 + rank)."
        )
    table = 1.0 / np.log2(np.arange(n) + 2.0) if patience is None else float(patience) ** np.arange(n)
    if k is not None:
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise ValueError(f"k={k!r}: give an integer >= 1 (the number of ranks that count) or None for all.")
        table[int(k) :] = 0.0
    return table


def gains(y: np.ndarray, offsets: np.ndarray, gain: str = "exp2") -> np.ndarray:
    """``2 ** y - 1`` or ``y`` of relevances grouped by query, up to a factor of the query by which none overflows."""
    if gain == "exp2" and y.max() < _MOST_GRADES:
        grades = y.astype(np.int64)
        if (grades == y).all():  # nearly all data
            return (2.0 ** np.arange(_MOST_GRADES) - 1.0)[grades]
    largest = np.repeat(np.maximum.reduceat(y, offsets[:-1]), np.diff(offsets))
    linear = y / np.where(largest > 0, largest, 1.0)
    if gain == "linear":
        return linear
    # Divided by 2^largest: 2^300 - 1 must not overflow. Near zero 2^y - 1 would lose its digits, and is proportional to y.
    small = np.expm1(np.minimum(y, 0.5) * np.log(2.0)) * np.exp2(-largest)
    exp2 = np.where(y < 0.5, small, np.exp2(y - largest) - np.exp2(-largest))
    return np.where(largest < 1e-100, linear, exp2)


def relative_gains(y: np.ndarray, offsets: np.ndarray, discount: np.ndarray, gain: str = "exp2") -> np.ndarray:
    """Gains divided by the DCG of the query's best ranking, over all of its rows; 0 in a query without relevant rows."""
    gain_, sizes = gains(y, offsets, gain), np.diff(offsets)
    best = np.lexsort((-gain_, np.repeat(np.arange(len(sizes)), sizes)))
    rank = np.arange(len(gain_)) - np.repeat(offsets[:-1], sizes)
    ideal = np.repeat(np.add.reduceat(gain_[best] * discount[rank], offsets[:-1]), sizes)
    return np.divide(gain_, ideal, out=np.zeros_like(gain_), where=ideal > 0)


def warn_of_exponents(y: np.ndarray, gain: str | None = "exp2") -> None:
    """Warn where relevances are marks or counts rather than grades: with gains of ``2 ** y - 1`` few rows count at all."""
    if gain == "exp2" and y.max() > _LARGEST_GRADE:
        warn_caller(
            f"There are relevances above {_LARGEST_GRADE}, and NDCG's gain is 2 ** y - 1: one more doubles it, so that next to "
            "nothing but the highest counts. Give grades of about 0 to 4 (divide marks, or cut them by pandas.cut); or ask for "
            'gain="linear", such as utility=NDCG(gain="linear").'
        )


class Tables(NamedTuple):
    """What a utility says of some queries.

    Parameters
    ----------
    gain : ndarray of float64, shape (n_rows,)
        Grouped by query.
    discount : ndarray of float64, shape (largest query size,)
        ``discount[r - 1]`` belongs to rank r.
    continuation : ndarray of float64, shape (n_rows,), or None
        Chance that a user who has seen the row goes on to the next. None: always.
    utility : callable, or None
        Of a utility that gain, discount and continuation do not say: `Utility.utility`. None: they do.
    """

    gain: np.ndarray
    discount: np.ndarray
    continuation: np.ndarray | None = None
    utility: Callable | None = None


class Utility(BaseEstimator):
    """What every utility can do; a class of its own needs `discount` and `gains`.

    `skfairrank.utilities.NDCG` and the others below are examples of a dozen lines.

    Attributes
    ----------
    needs_relevant_rows : bool
        Whether the utility is relative to the query's relevant rows, so that without any it would be 0/0. Metrics leave such
        queries out; where it is False they count as what the tables say, 0.
    utility : callable, or None
        None: the tables say all. Otherwise ``utility(gain, offsets, discount)`` takes the gains of ranked rows, each query's from
        the top, shape (n_rankings, n_rows) or (n_rows,), and returns the utility of the rankings, shape (n_rankings, n_queries)
        or (n_queries,). Only REINFORCE can train for such a utility.
    """

    _parameter_constraints: dict = {}
    needs_relevant_rows: bool = False
    utility: Callable | None = None

    def discount(self, n: int) -> np.ndarray:
        """Discount of the ranks 1 to n, shape (n,)."""
        raise NotImplementedError(f"{type(self).__name__} has no discount(n): what a row counts at ranks 1 to n.")

    def gains(self, y: np.ndarray, offsets: np.ndarray, discount: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Gain of each row, and its continuation probability or None.

        Parameters
        ----------
        y : ndarray of float64, shape (n_rows,)
            Relevances >= 0, grouped by query.
        offsets : ndarray of int64, shape (n_queries + 1,)
            From 0; rows ``offsets[q]`` to ``offsets[q + 1] - 1`` belong to query q.
        discount : ndarray of float64, shape (at least the largest query size,)
        """
        raise NotImplementedError(f"{type(self).__name__} has no gains(y, offsets, discount).")

    def tables(self, y: np.ndarray, offsets: np.ndarray) -> Tables:
        """The tables of some queries.

        Parameters
        ----------
        y : ndarray of float64, shape (n_rows,)
            Relevances >= 0, grouped by query.
        offsets : ndarray of int64, shape (n_queries + 1,)

        Returns
        -------
        tables : Tables

        Raises
        ------
        ValueError
            If a parameter is out of range, a gain is not finite, or a class of one's own gives tables of another shape.
        """
        self._validate_params()
        n, name = int(np.diff(offsets).max()), type(self).__name__
        discount = np.asarray(self.discount(n), dtype=np.float64)
        if discount.shape != (n,) or not np.isfinite(discount).all():
            raise ValueError(
                f"{name}.discount({n}) must return {n} finite numbers, one for each rank; it returned {discount}."
            )
        gain, continuation = np.empty(len(y)), None
        for first, last in blocks_of_queries(offsets, _BLOCK):
            rows = slice(offsets[first], offsets[last])
            given = self.gains(y[rows], offsets[first : last + 1] - offsets[first], discount)
            if not (isinstance(given, tuple) and len(given) == 2):
                raise ValueError(f"{name}.gains must return a pair: the gains, and the continuation or None.")
            for values in given:
                if values is not None and np.shape(values) != gain[rows].shape:
                    raise ValueError(
                        f"{name}.gains returned an array of shape {np.shape(values)} for {len(gain[rows])} rows."
                    )
            gain[rows], chance = given
            if chance is not None:
                if not ((chance >= 0) & (chance <= 1)).all():
                    raise ValueError(f"{name}.gains returned a continuation outside [0, 1]: it is a probability.")
                continuation = np.empty(len(y)) if continuation is None else continuation
                continuation[rows] = chance
        if not np.isfinite(gain).all():
            raise ValueError(
                f"{name} has gains that are not finite: relevances up to {y.max():g} are too large for it. Use "
                'NDCG, whose gains are relative to the best ranking, or gain="linear".'
            )
        return Tables(gain, discount, continuation, self.utility)


class NDCG(Utility):
    """Discounted cumulative gain relative to the best ranking's: the paper's utility.

    Parameters
    ----------
    k : int, optional
        Only ranks 1 to k count, in the ranking and in the best one.
    gain : {"exp2", "linear"}, default="exp2"
        ``2 ** y - 1``, or ``y`` itself.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank.utilities import NDCG
    >>> NDCG(k=1).tables(np.array([0.0, 1.0, 2.0]), np.array([0, 3])).gain.round(6).tolist()
    [0.0, 0.333333, 1.0]
    """

    _parameter_constraints: dict = {
        "k": [Interval(Integral, 1, None, closed="left"), None],
        "gain": [StrOptions({"exp2", "linear"})],
    }
    needs_relevant_rows = True

    def __init__(self, k=None, gain="exp2"):
        self.k = k
        self.gain = gain

    def discount(self, n):
        return discounts(n, self.k)

    def gains(self, y, offsets, discount):
        return relative_gains(y, offsets, discount, self.gain), None


class DCG(NDCG):
    """Discounted cumulative gain, not normalised: queries with many relevant rows count more.

    Parameters
    ----------
    k : int, optional
        Only ranks 1 to k count.
    gain : {"exp2", "linear"}, default="exp2"
        ``2 ** y - 1``, or ``y`` itself.
    """

    needs_relevant_rows = False

    def gains(self, y, offsets, discount):
        if self.gain == "linear":
            return y, None
        with np.errstate(over="ignore"):
            return np.expm1(y * np.log(2.0)), None


class PrecisionAtK(Utility):
    """Share of relevant rows (y > 0) among the first k.

    Parameters
    ----------
    k : int, default=10
        A query of fewer rows is divided by k all the same, as in trec_eval.
    """

    _parameter_constraints: dict = {"k": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, k=10):
        self.k = k

    def discount(self, n):
        return (np.arange(n) < self.k) / self.k

    def gains(self, y, offsets, discount):
        return (y > 0).astype(np.float64), None


class RecallAtK(Utility):
    """Share of the relevant rows (y > 0) that are among the first k.

    Parameters
    ----------
    k : int, default=10
    """

    _parameter_constraints: dict = PrecisionAtK._parameter_constraints
    needs_relevant_rows = True

    def __init__(self, k=10):
        self.k = k

    def discount(self, n):
        return (np.arange(n) < self.k).astype(np.float64)

    def gains(self, y, offsets, discount):
        return _shares_of_relevant(y, offsets), None


def _shares_of_relevant(y, offsets):
    """One over the number of the query's relevant rows, for each of them; 0 for the others."""
    relevant = (y > 0).astype(np.float64)
    number = np.repeat(np.add.reduceat(relevant, offsets[:-1]), np.diff(offsets))
    return np.divide(relevant, number, out=np.zeros_like(relevant), where=number > 0)


class RBP(Utility):
    """Rank-biased precision (Moffat and Zobel 2008): a user goes on to the next row with probability p, whatever was seen.

    Parameters
    ----------
    p : float, default=0.8
        In (0, 1).
    """

    _parameter_constraints: dict = {"p": [Interval(Real, 0, 1, closed="neither")]}

    def __init__(self, p=0.8):
        self.p = p

    def discount(self, n):
        return (1.0 - self.p) * float(self.p) ** np.arange(n)

    def gains(self, y, offsets, discount):
        return (y > 0).astype(np.float64), None


class ReciprocalRank(Utility):
    """One over the rank of the first relevant row (y > 0).

    Parameters
    ----------
    k : int, optional
        Nothing where no relevant row is among the first k.
    """

    _parameter_constraints: dict = {"k": [Interval(Integral, 1, None, closed="left"), None]}

    def __init__(self, k=None):
        self.k = k

    def discount(self, n):
        ranks = np.arange(1, n + 1)
        return np.where(ranks <= (n if self.k is None else self.k), 1.0 / ranks, 0.0)

    def gains(self, y, offsets, discount):
        relevant = (y > 0).astype(np.float64)
        return relevant, 1.0 - relevant


class ERR(ReciprocalRank):
    """Expected reciprocal rank (Chapelle et al. 2009): a user stops at a row with probability (2^y - 1) / 2^max_relevance.

    Parameters
    ----------
    max_relevance : float, optional
        The highest grade there is. Default: the highest relevance of the rows at hand, at least 1; it differs between data sets.
    k : int, optional
        Only ranks 1 to k count.
    """

    _parameter_constraints: dict = {
        **ReciprocalRank._parameter_constraints,
        "max_relevance": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(self, max_relevance=None, k=None):
        super().__init__(k)
        self.max_relevance = max_relevance

    def tables(self, y, offsets):
        highest = float(y.max(initial=0.0))
        if self.max_relevance is None:
            return ERR(max(highest, 1.0), self.k).tables(y, offsets)
        if highest > self.max_relevance:
            raise ValueError(
                f"ERR(max_relevance={self.max_relevance}) got a relevance of {highest:g}: name the highest grade."
            )
        return super().tables(y, offsets)

    def gains(self, y, offsets, discount):
        stop = np.exp2(y - self.max_relevance) - np.exp2(-float(self.max_relevance))
        return stop, 1.0 - stop


class AveragePrecision(ReciprocalRank):
    r"""Mean, over the relevant rows (y > 0), of the precision at the rank of each.

    With r ranks and R relevant rows it is

    .. math:: \frac{1}{R} \sum_{i:\ y_i > 0} \frac{|\{j : y_j > 0,\ r(j) \le r(i)\}|}{r(i)} .

    What a row adds depends on which rows stand before it, which no tables of gain, discount and continuation say. So only
    REINFORCE can train for it (``solver="adam"``, ``gradient="reinforce"``), and there is no exact expectation of it.

    Parameters
    ----------
    k : int, optional
        Only relevant rows at ranks 1 to k count, divided by the number of all: trec_eval's ``map_cut_k``.

    Examples
    --------
    >>> from skfairrank.metrics import utility_score
    >>> from skfairrank.utilities import AveragePrecision
    >>> y, s = [1, 0, 1, 1], [4, 3, 2, 1]
    >>> kw = dict(utility=AveragePrecision(), policy="deterministic")
    >>> round(utility_score(y, s, qid=[0] * 4, **kw), 6)  # (1 + 2/3 + 3/4) / 3
    0.805556
    """

    needs_relevant_rows = True

    def gains(self, y, offsets, discount):
        return _shares_of_relevant(y, offsets), None

    def utility(self, gain, offsets, discount):
        starts, sizes = offsets[:-1], np.diff(offsets)
        is_relevant = gain > 0
        found = np.cumsum(is_relevant, axis=-1)  # of all queries up to here, in whole numbers: exact
        found -= np.repeat((found - is_relevant)[..., starts], sizes, axis=-1)
        of_rank = discount[np.arange(gain.shape[-1]) - np.repeat(starts, sizes)]
        return np.add.reduceat(gain * found * of_rank, starts, axis=-1)


UTILITIES = {
    "average_precision": AveragePrecision,
    "dcg": DCG,
    "err": ERR,
    "ndcg": NDCG,
    "precision": PrecisionAtK,
    "rbp": RBP,
    "recall": RecallAtK,
    "reciprocal_rank": ReciprocalRank,
}


def make_utility(utility) -> Utility:
    """The utility that a ranker's or metric's parameter names.

    Raises
    ------
    TypeError
        If it is neither one of the names nor has `tables`.
    """
    if isinstance(utility, str) and utility in UTILITIES:
        return UTILITIES[utility]()
    if isinstance(utility, type) or not callable(getattr(utility, "tables", None)):
        raise TypeError(
            f"utility={utility!r}: give one of {sorted(UTILITIES)}, or a utility such as skfairrank.utilities.NDCG(k=10)."
        )
    return utility
