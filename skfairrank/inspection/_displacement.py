"""How stable rankings are when a query is exchanged for its hypothetical."""

from __future__ import annotations

import numpy as np

from skfairrank._checks import as_whole_numbers
from skfairrank._queries import Queries

__all__ = ["rank_displacement"]


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
    >>> rank_displacement([[1, 2, 3], [3, 2, 1]], [[1, 3, 2], [3, 2, 1]], qid=[0, 0, 0]).tolist()
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
