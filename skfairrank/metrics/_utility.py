"""What rankings are worth under any utility, of the ranking by scores and in expectation over a policy."""

from __future__ import annotations

import numpy as np

from skfairrank._checks import check_relevance, names_queries
from skfairrank.metrics._arguments import scored_rows
from skfairrank.metrics._ndcg import warn_unless_order_matters
from skfairrank.metrics._per_query import PerQuery
from skfairrank.policies import expected_utility, make_policy
from skfairrank.utilities import make_utility

__all__ = ["utility_score"]


@names_queries
def utility_score(
    y,
    s,
    *,
    qid,
    utility,
    policy="plackett_luce",
    n_samples=100,
    random_state=None,
    query_weight=None,
    replace_undefined_by=np.nan,
    reduce="mean",
):
    r"""Expected utility of a policy's rankings under any utility, averaged over queries.

    Definition, for one query with scores :math:`s` whose rankings r are worth :math:`U(r)`, a formula that
    `skfairrank.utilities` states for each utility:

    .. math:: \mathbb{E}_{r \sim \pi_s} U(r) .

    With ``utility="ndcg"`` it is :func:`stochastic_ndcg_score`, and under ``policy="deterministic"`` :func:`ndcg_score`.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0. For precision, recall, RBP, reciprocal rank and average precision a row is relevant where y > 0.
    s : array-like, shape (n_rows,)
        Scores; higher is better. May be None under a policy that needs none, `skfairrank.policies.RankProbabilities`.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    utility : str or Utility
        "ndcg", "dcg", "precision", "recall", "rbp", "reciprocal_rank", "err" or "average_precision", with their default
        parameters, or an object such as ``skfairrank.utilities.PrecisionAtK(k=5)``.
    policy : "deterministic", "plackett_luce" or a policy, default "plackett_luce"
        The list by descending scores; rankings drawn from the Plackett-Luce policy; or an object, such as those of
        `skfairrank.policies`, with settings of its own. In the list by descending scores, rows with equal scores share the mean
        over their orders, but for average precision (and other utilities with a method `utility`), where they stand in row order.
        `skfairrank.policies.RankProbabilities` suffices for utilities by position alone, not for reciprocal rank, ERR and
        average precision.
    n_samples : int or "exact", default 100
        Under ``policy="plackett_luce"``: rankings to sample for each query, or the exact expectation for queries that are small
        enough; there is none of average precision.
    random_state : None, int, RandomState or Generator
        Under ``policy="plackett_luce"``: source of the sampled rankings.
    query_weight : array-like or mapping, optional
        What each query counts in the mean, >= 0: one number per row, equal within a query, or per query, as a mapping from id to
        number (which may hold further ids) or in sorted order of the ids. None: all count alike.
    replace_undefined_by : float, default nan
        What a query without any relevant row counts as under NDCG, recall and average precision, which divide by what could be
        found: there the definition gives 0/0. With nan such queries are left out, with an `UndefinedMetricWarning`. The others
        (DCG, precision, RBP, reciprocal rank, ERR) are sums that come out as 0 there, and that 0 counts.
    reduce : "mean" or None
        None: the value of each query, in sorted order of their ids, nan (or `replace_undefined_by`) where it is
        undefined.

    Returns
    -------
    worth : float, or ndarray of shape (n_queries,)
        At least 0, higher is better; for all utilities but DCG at most 1.

    Raises
    ------
    ValueError
        If `y` has negative or missing values, `s` has values that are not finite, or the lengths differ; if a parameter of the
        utility is out of range; if the expectation is to be exact and a query is too large, or the utility is average precision.
    TypeError
        If `utility` is none, or the policy does not know enough for it.

    See Also
    --------
    ndcg_score, stochastic_ndcg_score : The same of NDCG.

    Examples
    --------
    >>> from skfairrank.metrics import utility_score
    >>> from skfairrank.utilities import PrecisionAtK
    >>> y, s, qid = [0, 2, 1, 0, 1, 2], [.1, .9, .8, .2, .5, .3], [2, 1, 2, 1, 1, 2]
    >>> utility_score(y, s, qid=qid, utility=PrecisionAtK(k=1), policy="deterministic")
    1.0
    >>> round(utility_score([1, 0], [np.log(3), 0], qid=[0, 0], utility="reciprocal_rank", n_samples="exact"), 6)  # 3/4 + 1/8
    0.875
    """
    chosen = make_policy(policy, n_samples=n_samples, random_state=random_state)
    utility = make_utility(utility)
    queries, grouped = scored_rows(s, qid, chosen)
    y = queries.group(check_relevance(y, queries.n_rows))
    tables = utility.tables(y, queries.offsets)
    values, defined = expected_utility(chosen, grouped, queries, tables), np.ones(queries.n_queries, bool)
    if getattr(utility, "needs_relevant_rows", False):
        defined = np.maximum.reduceat(tables.gain, queries.offsets[:-1]) > 0
        values = np.where((values > 1.0) & (values < 1.0 + 1e-9), 1.0, values)  # a perfect ranking's sum, rounded
    warn_unless_order_matters(y, queries, "utility_score", "is worth the same")
    per_query = PerQuery(values, defined, "utility_score", "they have no relevant row", replace_undefined_by)
    return per_query.weighted(queries.weights(query_weight)).reduced(reduce)
