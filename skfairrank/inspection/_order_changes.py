"""How much the order of a query's items changes when their scores do, and how far items move."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skfairrank._checks import as_whole_numbers
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


def rank_displacement(ranks, hypothetical_ranks, *, qid):
    r"""How often the item ranked i-th moves to rank j (the heatmaps of Bower et al. 2021, Figure 2).

    Definition, with :math:`r_{qs}` the s-th ranking of query q and :math:`r'_{qs}` that of its hypothetical:

    .. math:: D_{ij} = \operatorname{mean}_{q, s}\, \mathbb{1}\{ r'_{qs}(r_{qs}^{-1}(i)) = j \} .

    Parameters
    ----------
    ranks, hypothetical_ranks : array-like of int, shape (n_samples, n_rows) or (n_rows,)
        1-based ranks of the same rows under the query and under its hypothetical, as `sample_rankings` returns them.
        The k-th sample of one is paired with the k-th of the other.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order. All queries must have the same size.

    Returns
    -------
    displacement : ndarray of float, shape (n_items, n_items)
        Rows and columns sum to one; the identity means perfectly stable rankings. Two samples of one policy differ too,
        so ``rank_displacement`` of two independent samples of the same query is what a perfectly invariant ranker
        reaches.

    Raises
    ------
    ValueError
        If the queries differ in size (the message names two that do), the shapes differ, or the ranks of a query are
        not 1 to its size.

    Examples
    --------
    >>> from skfairrank.inspection import rank_displacement
    >>> rank_displacement(
    ...     [[1, 2, 3], [3, 2, 1]], [[1, 3, 2], [3, 2, 1]], qid=[0, 0, 0]
    ... ).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]
    """
    ranks, hypothetical_ranks = _ranks(ranks, "ranks"), _ranks(hypothetical_ranks, "hypothetical_ranks")
    if ranks.shape != hypothetical_ranks.shape:
        raise ValueError(
            f"ranks has shape {ranks.shape}, hypothetical_ranks {hypothetical_ranks.shape}: give as many samples "
            "of both, with the same rows."
        )
    queries = Queries.from_qid(qid, ranks.shape[1])
    n_items = int(queries.sizes[0])
    if not queries.are_of_one_size:
        other = int(np.argmax(queries.sizes != n_items))
        raise ValueError(
            f"Query {queries.ids[0]} has {n_items} rows and query {queries.ids[other]} has "
            f"{queries.sizes[other]}: a displacement needs queries of one size. Select those, or cut their lists."
        )
    _check_permutations(queries.group(ranks, axis=1), queries, "ranks")
    _check_permutations(queries.group(hypothetical_ranks, axis=1), queries, "hypothetical_ranks")
    moves = np.bincount(((ranks - 1) * n_items + hypothetical_ranks - 1).ravel(), minlength=n_items * n_items)
    return moves.reshape(n_items, n_items) / (len(ranks) * queries.n_queries)


def _ranks(ranks, name):
    given = np.asarray(ranks)
    integral = as_whole_numbers(given)
    if integral is None or given.ndim not in (1, 2) or given.size == 0:
        raise ValueError(
            f"{name} of shape {given.shape} and dtype {given.dtype}: give 1-based integer ranks of shape "
            "(n_samples, n_rows), as sample_rankings returns them."
        )
    return np.atleast_2d(integral)


def _check_permutations(grouped, queries, name):
    n_items = int(queries.sizes[0])
    found = np.sort(grouped.reshape(len(grouped), queries.n_queries, n_items), axis=2)
    wrong = (found != np.arange(1, n_items + 1)).any(axis=2)
    if wrong.any():
        sample, q = np.argwhere(wrong)[0]
        raise ValueError(
            f"{name} of query {queries.ids[q]} in sample {sample} are not 1 to {n_items}: sorted they are "
            f"{found[sample, q][:10].tolist()}."
        )
