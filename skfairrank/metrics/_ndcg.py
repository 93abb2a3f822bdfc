"""Normalised discounted cumulative gain, of the ranking by scores and in expectation over a policy."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank._checks import check_relevance, names_queries, warn_caller
from skfairrank._gains import gains, ideal_dcg
from skfairrank._queries import Queries
from skfairrank.metrics._arguments import ranked_rows
from skfairrank.metrics._per_query import PerQuery
from skfairrank.policies import make_policy

__all__ = ["ndcg", "ndcg_score", "stochastic_ndcg_score", "warn_unless_order_matters"]


@names_queries
def ndcg_score(
    y,
    s,
    *,
    qid,
    k=None,
    gain="exp2",
    policy="deterministic",
    n_samples=100,
    random_state=None,
    query_weight=None,
    replace_undefined_by=np.nan,
    reduce="mean",
):
    r"""NDCG of the ranking by descending scores, averaged over queries.

    Definition, for one query whose rows have gains :math:`g_i` and ranks :math:`r(i)`:

    .. math::

        \operatorname{NDCG} = \frac{\operatorname{DCG}(r)}{\max_{r'} \operatorname{DCG}(r')}, \qquad
        \operatorname{DCG}(r) = \sum_{i:\ r(i) \le k} \frac{g_i}{\log_2(1 + r(i))}, \qquad
        g_i = 2^{y_i} - 1 \ \text{ or } \ y_i .

    Rows with equal scores share the mean over their orders, as in :func:`sklearn.metrics.ndcg_score`, so the result
    does not depend on the order of rows. Under another policy it is the expectation of NDCG over its rankings.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0. Large ones (300) do not overflow.
    s : array-like, shape (n_rows,)
        Scores; higher is better. May be None under a policy that needs none, `skfairrank.policies.RankProbabilities`.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    k : int, optional
        Only ranks 1 to k count, in the ranking and in the ideal one. The ideal ranking is over all rows of the query.
    gain : {"exp2", "linear"}
        :math:`2^y - 1`, or :math:`y` itself.
    policy : "deterministic", "plackett_luce" or a policy, default "deterministic"
        The list by descending scores, rows with equal scores sharing the mean over their orders; rankings drawn from the
        Plackett-Luce policy; or an object, such as those of `skfairrank.policies`, with settings of its own.
    n_samples : int or "exact", default 100
        Under ``policy="plackett_luce"``: rankings to sample for each query, or the exact expectation for queries that are small
        enough.
    random_state : None, int, RandomState or Generator
        Under ``policy="plackett_luce"``: source of the sampled rankings.
    query_weight : array-like or mapping, optional
        What each query counts in the mean, >= 0: one number per row, equal within a query, or per query, as a mapping from id to
        number (which may hold further ids) or in sorted order of the ids. None: all count alike.
    replace_undefined_by : float, default nan
        What a query without any relevant row counts as. With nan such queries are left out, with an
        `UndefinedMetricWarning`.
    reduce : "mean" or None
        None: the value of each query, in sorted order of their ids, nan (or `replace_undefined_by`) where it is
        undefined.

    Returns
    -------
    ndcg : float, or ndarray of shape (n_queries,)
        Between 0 and 1, the mean over queries. Where within each of several queries all relevances are equal, any order
        has NDCG 1, and an `UndefinedMetricWarning` says that the number measures nothing.

    Raises
    ------
    ValueError
        If `y` has negative or missing values, `s` has values that are not finite, or the lengths differ.

    See Also
    --------
    stochastic_ndcg_score : The expectation of NDCG over a policy's rankings.

    Examples
    --------
    >>> from skfairrank.metrics import ndcg_score
    >>> y, s, qid = [0, 2, 1, 0, 1, 2], [.1, .9, .8, .2, .5, .3], [2, 1, 2, 1, 1, 2]
    >>> round(ndcg_score(y, s, qid=qid), 6)
    0.898354
    >>> round(ndcg_score(y, s, qid=qid, gain="linear"), 6)
    0.929859
    """
    chosen = make_policy(policy, n_samples=n_samples, random_state=random_state)
    return _scored("ndcg_score", y, s, qid, k, gain, chosen, replace_undefined_by, query_weight).reduced(reduce)


@names_queries
def stochastic_ndcg_score(
    y,
    s,
    *,
    qid,
    k=None,
    gain="exp2",
    policy="plackett_luce",
    n_samples=100,
    random_state=None,
    query_weight=None,
    replace_undefined_by=np.nan,
    reduce="mean",
):
    r"""Expectation of NDCG over the rankings of the Plackett-Luce policy, averaged over queries.

    Definition, for one query with scores :math:`s` (and NDCG as in :func:`ndcg_score`):

    .. math::

        \mathbb{E}_{r \sim \pi_s} \operatorname{NDCG}(r), \qquad
        \pi_s(r) = \prod_j \frac{\exp s_{r^{-1}(j)}}{\sum_{l \ge j} \exp s_{r^{-1}(l)}} .

    It is :func:`ndcg_score` with another default policy. It follows the size of the scores, which no sorted list shows:
    compare rankers whose scores differ in size by :func:`ndcg_score`.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    s : array-like, shape (n_rows,)
        Scores; only their differences within a query matter.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    k : int, optional
        Only ranks 1 to k count.
    gain : {"exp2", "linear"}
        :math:`2^y - 1`, or :math:`y` itself.
    policy : "deterministic", "plackett_luce" or a policy, default "plackett_luce"
        Rankings drawn from the Plackett-Luce policy; the list by descending scores, rows with equal scores sharing the
        mean over their orders; or an object, such as those of `skfairrank.policies`, with settings of its own.
    n_samples : int or "exact", default 100
        Under ``policy="plackett_luce"``: rankings to sample for each query, or the exact expectation for queries that are small
        enough.
    random_state : None, int, RandomState or Generator
        Under ``policy="plackett_luce"``: source of the sampled rankings. NumPy's global state is neither read nor changed.
    query_weight : array-like or mapping, optional
        What each query counts in the mean, >= 0: one number per row, equal within a query, or per query, as a mapping from id to
        number (which may hold further ids) or in sorted order of the ids. None: all count alike.
    replace_undefined_by : float, default nan
        What a query without any relevant row counts as. With nan such queries are left out, with an
        `UndefinedMetricWarning`.
    reduce : "mean" or None
        None: the value of each query, in sorted order of their ids, nan (or `replace_undefined_by`) where it is
        undefined.

    Returns
    -------
    ndcg : float, or ndarray of shape (n_queries,)
        Between 0 and 1, the mean over queries. Where within each of several queries all relevances are equal, any order
        has NDCG 1, and an `UndefinedMetricWarning` says that the number measures nothing.

    See Also
    --------
    ndcg_score : NDCG of the one ranking by descending scores.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank.metrics import stochastic_ndcg_score
    >>> round(stochastic_ndcg_score([1, 0], [np.log(3), 0], qid=[0, 0], n_samples="exact"), 6)  # 3/4 + 1/4 / log2(3)
    0.907732
    >>> sampled = stochastic_ndcg_score([1, 0], [np.log(3), 0], qid=[0, 0], n_samples=10_000, random_state=0)
    >>> abs(sampled - 0.907732) < 0.005
    True
    """
    chosen = make_policy(policy, n_samples=n_samples, random_state=random_state)
    return _scored("stochastic_ndcg_score", y, s, qid, k, gain, chosen, replace_undefined_by, query_weight).reduced(
        reduce
    )


def _scored(metric, y, s, qid, k, gain, policy, replace_undefined_by, query_weight) -> PerQuery:
    queries, discount, expected = ranked_rows(s, qid, policy, k)
    y = queries.group(check_relevance(y, queries.n_rows))
    per_query = ndcg(y, expected, queries, discount, metric, gain=gain, replace_undefined_by=replace_undefined_by)
    warn_unless_order_matters(y, queries, metric)
    return per_query.weighted(queries.weights(query_weight))


def ndcg(y, expected_discount, queries, discount, metric, *, gain="exp2", replace_undefined_by=np.nan) -> PerQuery:
    """Expected NDCG under any policy, of checked relevances and expected discounts that are grouped by query."""
    worth = gains(y, queries.offsets, gain)
    ideal = ideal_dcg(worth, queries.offsets, discount)
    dcg = np.add.reduceat(worth * expected_discount, queries.offsets[:-1])
    defined = ideal > 0
    # A perfect ranking's two sums may differ in the last digit.
    values = np.minimum(np.divide(dcg, ideal, out=np.zeros_like(dcg), where=defined), 1.0)
    return PerQuery(values, defined, metric, "they have no relevant row", replace_undefined_by)


def warn_unless_order_matters(y: np.ndarray, queries: Queries, metric: str, outcome: str = "has NDCG 1") -> None:
    """Say so where every order comes out alike (NDCG is 1) in each of several queries; `y` grouped by query."""
    first = y[: queries.offsets[1]]
    if queries.n_queries == 1 or (first != first[0]).any():  # as in most data
        return
    if y.any() and not queries.differ_within(y).any():
        warn_caller(
            f"{metric} measures nothing here: within each of {queries.n_queries} queries all relevances are equal, so every "
            f"order {outcome}. Check y, and that qid names queries and not rows.",
            UndefinedMetricWarning,
        )
