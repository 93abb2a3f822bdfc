"""How much the order of a query's items changes when their scores do: one number per query for each statistic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skfairrank._kernels.ranking import inversions
from skfairrank._queries import Queries
from skfairrank._threads import over_queries
from skfairrank.policies import descending_order, sorting_work


def discordance(s, other, queries: Queries) -> np.ndarray:
    """Share of pairs of items that change order, |sign(s_i - s_j) - sign(s'_i - s'_j)| / 2 on the average; 0 for one item.

    So a pair that is tied in one of the two counts half, and one that is tied in both counts nothing.

    Parameters
    ----------
    s, other : ndarray of float64, shape (n_rows,)
        Scores, grouped by query.
    queries : Queries

    Returns
    -------
    share : ndarray, shape (n_queries,)
    """
    offsets = queries.offsets
    which = np.repeat(np.arange(queries.n_queries), queries.sizes)
    order = np.lexsort((-other, -s, which))
    # In this order no pair that is tied in either score is an inversion, since ties are taken in the order of the rows.
    s, other = s[order], other[order]
    turned = np.empty(queries.n_queries, np.int64)
    orders = descending_order(s, offsets), descending_order(other, offsets)
    over_queries(inversions, offsets, sorting_work(offsets), *orders, offsets, turned)
    by_other = np.lexsort((other, which))
    tied = _tied_pairs(queries, s) + _tied_pairs(queries, other[by_other]) - 2 * _tied_pairs(queries, s, other)
    return (turned + 0.5 * tied) / np.maximum(queries.sizes * (queries.sizes - 1) // 2, 1)


def _tied_pairs(queries: Queries, *sorted_scores) -> np.ndarray:
    """Pairs of rows of a query that agree in all of the scores, where rows that agree are neighbours."""
    is_new = np.zeros(queries.n_rows, bool)
    is_new[queries.offsets[:-1]] = True
    for scores in sorted_scores:
        is_new[1:] |= scores[1:] != scores[:-1]
    starts = np.flatnonzero(is_new)
    lengths = np.diff(np.r_[starts, queries.n_rows])
    first_run = np.searchsorted(starts, queries.offsets[:-1])
    return np.add.reduceat(lengths * (lengths - 1) // 2, first_run)


def top_changed(s, other, queries: Queries) -> np.ndarray:
    """1 where the item with the highest score is another one, else 0; ties in the order of the rows."""
    starts = queries.offsets[:-1]
    first, of_other = (descending_order(scores, queries.offsets)[starts] for scores in (s, other))
    return (first != of_other).astype(np.float64)


def ranks(s, queries: Queries) -> np.ndarray:
    """Rank of each row within its query, from 0, by descending score and then by the order of the rows."""
    rank = np.empty(queries.n_rows, np.int64)
    rank[descending_order(s, queries.offsets)] = np.arange(queries.n_rows)
    return rank - np.repeat(queries.offsets[:-1], queries.sizes)


def displacement(s, other, queries: Queries) -> np.ndarray:
    """By how many ranks items move, summed over them, divided by the largest sum that an order of n items has, floor(n^2 / 2)."""
    moved = np.add.reduceat(np.abs(ranks(s, queries) - ranks(other, queries)), queries.offsets[:-1])
    return moved / np.maximum(queries.sizes**2 // 2, 1)


def score_change(s, other, queries: Queries) -> np.ndarray:
    """1/2 ||h(q) - h(q')||^2, as in the invariance regulariser."""
    return 0.5 * np.add.reduceat((s - other) ** 2, queries.offsets[:-1])


#: By name; all but "score_change" lie in [0, 1].
STATISTICS: dict[str, Callable[[np.ndarray, np.ndarray, Queries], np.ndarray]] = {
    "discordance": discordance,
    "top_changed": top_changed,
    "displacement": displacement,
    "score_change": score_change,
}


class Worst:
    """Of each query the hypothetical that changes it most, by one statistic.

    Attributes
    ----------
    names : list of str
        The hypotheticals so far.
    unfairness : ndarray, shape (n_queries,)
    which : ndarray of int, shape (n_queries,)
        The number of the worst hypothetical, the first of several; -1 where none changes anything.
    scores : ndarray, shape (n_rows,)
        Scores under the worst hypothetical, grouped by query; under the first one where none changes anything.
    """

    def __init__(self, s, queries: Queries, statistic: str):
        self.s, self.queries, self.statistic = s, queries, statistic
        self.names: list[str] = []
        self.unfairness, self.which = np.zeros(queries.n_queries), np.full(queries.n_queries, -1)
        self.scores = s

    def add(self, name: str, other) -> np.ndarray:
        """The statistic of each query under the next hypothetical, whose scores are `other`."""
        found = STATISTICS[self.statistic](self.s, other, self.queries)
        is_worse = self.add_values(name, found)
        is_first = len(self.names) == 1
        self.scores = other if is_first else np.where(np.repeat(is_worse, self.queries.sizes), other, self.scores)
        return found

    def add_values(self, name: str, unfairness) -> np.ndarray:
        """Whether each query is changed more than by all hypotheticals so far."""
        is_worse = unfairness > self.unfairness
        self.unfairness = np.where(is_worse, unfairness, self.unfairness)
        self.which[is_worse] = len(self.names)
        self.names.append(name)
        return is_worse


def of_intervals(statistic: str, s, low, high, queries: Queries) -> np.ndarray:
    """What a statistic can at most be where each score may move to any value from low to high, on its own.

    Pairs are looked at one by one: a pair counts as turned where some move turns it. So no hypothetical query within the
    intervals changes more, and of "top_changed" and "score_change" some query changes as much, in the limit.

    Parameters
    ----------
    statistic : one of `STATISTICS`
    s, low, high : ndarray of float64, shape (n_rows,)
        Grouped by query; low <= s <= high.
    queries : Queries

    Returns
    -------
    most : ndarray, shape (n_queries,)
    """
    if statistic == "score_change":
        return 0.5 * np.add.reduceat(np.maximum(high - s, s - low) ** 2, queries.offsets[:-1])
    order = descending_order(s, queries.offsets)
    of_query = _OF_INTERVALS[statistic]
    out = np.empty(queries.n_queries)
    for q, (first, last) in enumerate(zip(queries.offsets[:-1], queries.offsets[1:], strict=True)):
        rows = order[first:last]  # in descending order of s
        out[q] = of_query(s[rows], low[rows], high[rows], rows)
    return out


def _most_discordance(s, low, high, rows):
    n = len(s)
    above = np.triu(np.ones((n, n), bool), 1)
    is_tied = s[:, None] == s
    can_part = (high > low)[:, None] | (high > low)
    share = np.where(low[:, None] < high, 1.0, 0.5 * (low[:, None] == high))
    return np.where(is_tied, 0.5 * can_part, share)[above].sum() / max(n * (n - 1) // 2, 1)


def _most_top_changed(s, low, high, rows):
    return float(((high[1:] > low[0]) | ((high[1:] == low[0]) & (rows[1:] < rows[0]))).any())


def _most_displacement(s, low, high, rows):
    n = len(s)
    may_pass = np.triu((low[:, None] < high) | ((low[:, None] == high) & (rows[:, None] > rows)), 1)
    moved = np.maximum(may_pass.sum(axis=0), may_pass.sum(axis=1)).sum()
    return min(moved / max(n**2 // 2, 1), 1.0)


_OF_INTERVALS = {
    "discordance": _most_discordance,
    "top_changed": _most_top_changed,
    "displacement": _most_displacement,
}
