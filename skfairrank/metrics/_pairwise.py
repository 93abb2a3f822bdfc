"""Whether pairs of rows of different groups are in the right order (Beutel et al. 2019)."""

from __future__ import annotations

import math

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank._checks import check_relevance, check_scores, names_queries, warn_caller
from skfairrank._queries import Queries
from skfairrank._sensitive import check_groups


@names_queries
def group_pairwise_accuracy(y, s, *, qid, sensitive_features, unknown_groups="error", query_weight=None):
    r"""How often a row of a group is above a less relevant row of another group, for each group (Beutel et al. 2019).

    Of the pairs of rows of one query with :math:`y_i > y_j`, i of the group and j of another one, the share with
    :math:`s_i > s_j`, where tied scores count half: their inter-group pairwise accuracy. Pairs of all queries count alike, so
    that there is no value of a query, and no `reduce`.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    s : array-like, shape (n_rows,)
        Scores; higher is better.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row; any number of groups.
    unknown_groups : {"error", "leave_out"}, default="error"
        What missing values in `sensitive_features` are. "leave_out": these rows are in no pair.
    query_weight : array-like or mapping, optional
        What each pair of a query counts, as for :func:`ndcg_score`.

    Returns
    -------
    accuracy : dict of group to float
        1 is best; nan for a group that is in no such pair.

    References
    ----------
    A. Beutel et al. Fairness in Recommendation Ranking through Pairwise Comparisons. KDD 2019.

    Examples
    --------
    >>> from skfairrank.metrics import group_pairwise_accuracy
    >>> group_pairwise_accuracy(
    ...     [2, 1, 0, 0], [4, 3, 2, 3], qid=[0] * 4, sensitive_features=list("abab")
    ... )
    {'a': 1.0, 'b': 1.0}
    >>> group_pairwise_accuracy(
    ...     [2, 1, 0, 0], [2, 3, 4, 3], qid=[0] * 4, sensitive_features=list("abab")
    ... )
    {'a': 0.0, 'b': 0.0}
    """
    y, s = check_relevance(y), check_scores(s, name="s")
    queries = Queries.from_qid(qid, len(y))
    weight = queries.weights(query_weight)
    labels, group = check_groups(
        sensitive_features, len(y), compared_by="group_pairwise_accuracy", unknown_groups=unknown_groups
    )
    y, s, group = queries.group(y), queries.group(s), queries.group(group)
    right, pairs = np.zeros(len(y)), np.zeros(len(y))
    for q, (first, last) in enumerate(zip(queries.offsets[:-1], queries.offsets[1:], strict=True)):
        rows, counts = slice(first, last), 1.0 if weight is None else weight[q]
        is_pair = (y[rows, None] > y[rows]) & (group[rows, None] != group[rows]) & (group[rows] >= 0)
        is_right = (s[rows, None] > s[rows]) + 0.5 * (s[rows, None] == s[rows])
        pairs[rows], right[rows] = counts * is_pair.sum(axis=1), counts * (is_pair * is_right).sum(axis=1)
    known = group >= 0
    rights, total = (np.bincount(group[known], values[known], len(labels)) for values in (right, pairs))
    shares = np.where(total > 0, rights / np.where(total > 0, total, 1.0), np.nan)
    return dict(zip(labels.tolist(), shares.tolist(), strict=True))


@names_queries
def group_pairwise_accuracy_difference(y, s, *, qid, sensitive_features, unknown_groups="error", query_weight=None):
    """Largest minus smallest `group_pairwise_accuracy` of the groups.

    Parameters
    ----------
    y, s, qid, sensitive_features, unknown_groups, query_weight
        As for `group_pairwise_accuracy`.

    Returns
    -------
    difference : float
        0 is fair. nan, with an `UndefinedMetricWarning`, where fewer than two groups are in such pairs.

    Examples
    --------
    >>> from skfairrank.metrics import group_pairwise_accuracy_difference
    >>> group_pairwise_accuracy_difference(
    ...     [1, 0, 1, 0], [4, 3, 1, 2], qid=[0, 0, 1, 1], sensitive_features=list("abba")
    ... )
    1.0
    """
    whose = {"qid": qid, "sensitive_features": sensitive_features, "unknown_groups": unknown_groups}
    found = group_pairwise_accuracy(y, s, query_weight=query_weight, **whose)
    shares = [share for share in found.values() if not math.isnan(share)]
    if len(shares) < 2:
        message = "group_pairwise_accuracy_difference is nan: fewer than two groups have rows above less relevant ones of others."
        warn_caller(message, UndefinedMetricWarning)
        return math.nan
    return max(shares) - min(shares)
