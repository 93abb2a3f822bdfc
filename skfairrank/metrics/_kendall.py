"""Kendall's tau between two rankings of the same rows: how stable a ranking is."""

from __future__ import annotations

import numpy as np

from skfairrank._checks import check_scores, names_queries
from skfairrank._gains import sorting_work
from skfairrank._kernels.metrics import inversions
from skfairrank._queries import Queries
from skfairrank._threads import over_queries
from skfairrank.metrics._per_query import PerQuery

__all__ = ["kendall_tau", "kendall_tau_score"]


@names_queries
def kendall_tau_score(s1, s2, *, qid, query_weight=None, reduce="mean"):
    r"""Kendall's tau between the rankings by two scores, averaged over queries (Bower et al. 2021, appendix B).

    Definition, for one query of n rows with ranks r and r':

    .. math::

        \tau(r, r') = \binom{n}{2}^{-1} \sum_{i < j}
        \operatorname{sign}(r(i) - r(j)) \operatorname{sign}(r'(i) - r'(j)) .

    The ranks come from sorting the scores in descending order, ties in row order. So a ranking always has tau 1 with
    itself, also where scores are tied; this is neither tau-b nor tau-c of the scores.

    Parameters
    ----------
    s1, s2 : array-like, shape (n_rows,)
        Two scores of the same rows, for example of the rows and of their hypothetical counterparts.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    query_weight : array-like or mapping, optional
        What each query counts in the mean, >= 0: one number per row, equal within a query, or per query, as a mapping from id to
        number (which may hold further ids) or in sorted order of the ids. None: all count alike.
    reduce : "mean" or None
        None: the value of each query, in sorted order of their ids, nan for a query with one row.

    Returns
    -------
    tau : float, or ndarray of shape (n_queries,)
        Between -1 and 1, the mean over the queries with at least two rows. Where there is none: nan, with an
        `UndefinedMetricWarning`.

    Examples
    --------
    >>> from skfairrank.metrics import kendall_tau_score
    >>> round(kendall_tau_score([4, 3, 2, 1], [3, 4, 2, 1], qid=[0, 0, 0, 0]), 6)  # one of six pairs is swapped
    0.666667
    """
    s1, s2 = check_scores(s1, name="s1"), check_scores(s2, name="s2")
    if len(s1) != len(s2):
        raise ValueError(
            f"s1 has {len(s1)} rows, s2 has {len(s2)}: give two scores of the same rows, in the same order."
        )
    queries = Queries.from_qid(qid, len(s1))
    tau = kendall_tau(queries.group(s1), queries.group(s2), queries)
    return tau.weighted(queries.weights(query_weight)).reduced(reduce)


def kendall_tau(s1: np.ndarray, s2: np.ndarray, queries: Queries) -> PerQuery:
    """`kendall_tau_score` of checked scores that are grouped by query."""
    discordant, offsets = np.empty(queries.n_queries, np.int64), queries.offsets
    over_queries(inversions, offsets, 3.0 * sorting_work(offsets), s1, s2, offsets, discordant)
    defined = queries.sizes > 1
    pairs = np.where(defined, queries.sizes * (queries.sizes - 1) // 2, 1)
    values, reason = 1.0 - 2.0 * discordant / pairs, "they have one row each"
    return PerQuery(values, defined, "kendall_tau_score", reason, is_selective=True)
