"""How good rankings are, by relevances: NDCG and other utilities; and how alike two rankings are: Kendall's tau."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank._checks import check_scores, warn_caller
from skfairrank._kernels.ranking import inversions
from skfairrank._queries import Queries
from skfairrank._threads import over_queries
from skfairrank.metrics._per_query import PerQuery, Ranked, mean_over_queries
from skfairrank.policies import descending_order, expected_utility, sorting_work
from skfairrank.utilities import NDCG, make_utility, relative_gains

_NOTHING_RELEVANT = "they have no relevant row"


@mean_over_queries
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

    Rows with equal scores share the mean over their orders, as in :func:`sklearn.metrics.ndcg_score`.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0. Large ones (300) do not overflow.
    s : array-like, shape (n_rows,)
        Scores; higher is better. None under a policy that needs none, such as `skfairrank.policies.RankProbabilities`.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    k : int, optional
        Only ranks 1 to k count, in the ranking and in the ideal one. The ideal ranking is over all rows of the query.
    gain : {"exp2", "linear"}
        :math:`2^y - 1`, or :math:`y` itself.
    policy : "deterministic", "plackett_luce" or a policy, default "deterministic"
        How scores become rankings: the list by descending scores, rows with equal scores sharing the mean over their orders;
        rankings drawn from the Plackett-Luce policy, of which the metric is the expectation; or an object, such as those of
        `skfairrank.policies`.
    n_samples : int or "exact", default 100
        Under ``policy="plackett_luce"``: rankings to sample for each query, or the exact expectation, for queries of up to
        `skfairrank.plackett_luce.EXACT_LIMIT` rows. A policy that is an object has settings of its own.
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

    Raises
    ------
    ValueError
        If `y` has negative or missing values, `s` has values that are not finite, or the lengths differ.

    See Also
    --------
    stochastic_ndcg_score : The expectation of NDCG over the Plackett-Luce policy's rankings.
    utility_score : The same for every utility.

    Examples
    --------
    >>> from skfairrank.metrics import ndcg_score
    >>> y, s, qid = [0, 2, 1, 0, 1, 2], [0.1, 0.9, 0.8, 0.2, 0.5, 0.3], [2, 1, 2, 1, 1, 2]
    >>> round(ndcg_score(y, s, qid=qid), 6)
    0.898354
    >>> round(ndcg_score(y, s, qid=qid, gain="linear"), 6)
    0.929859
    """
    ranked = Ranked(s, qid, policy, n_samples, random_state)
    return _utility("ndcg_score", ranked, y, NDCG(k, gain), query_weight, replace_undefined_by, reduce)


@mean_over_queries
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

    Definition, for one query with scores :math:`s`:

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
    k, gain, policy, n_samples, random_state, query_weight, replace_undefined_by, reduce
        As for :func:`ndcg_score`.

    Returns
    -------
    ndcg : float, or ndarray of shape (n_queries,)
        Between 0 and 1, as of :func:`ndcg_score`.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank.metrics import stochastic_ndcg_score
    >>> y, s, qid = [1, 0], [np.log(3), 0], [0, 0]
    >>> # 3/4 + 1/4 / log2(3)
    >>> round(stochastic_ndcg_score(y, s, qid=qid, n_samples="exact"), 6)
    0.907732
    >>> sampled = stochastic_ndcg_score(y, s, qid=qid, n_samples=10_000, random_state=0)
    >>> abs(sampled - 0.907732) < 0.005
    True
    """
    ranked = Ranked(s, qid, policy, n_samples, random_state)
    return _utility("stochastic_ndcg_score", ranked, y, NDCG(k, gain), query_weight, replace_undefined_by, reduce)


@mean_over_queries
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
    r"""Expected utility of a policy's rankings, averaged over queries: precision, recall, ERR and others.

    Definition, for one query with scores :math:`s`, for a utility U that `skfairrank.utilities` states:

    .. math:: \mathbb{E}_{r \sim \pi_s} U(r) .

    With ``utility="ndcg"`` it is :func:`stochastic_ndcg_score`, and under ``policy="deterministic"`` :func:`ndcg_score`.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0. For precision, recall, RBP, reciprocal rank and average precision a row is relevant where y > 0.
    s : array-like, shape (n_rows,)
        Scores; higher is better.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    utility : str or Utility
        "ndcg", "dcg", "precision", "recall", "rbp", "reciprocal_rank", "err" or "average_precision", with their default
        parameters, or an object such as ``skfairrank.utilities.PrecisionAtK(k=5)``.
    policy, n_samples, random_state
        As for :func:`ndcg_score`, but by default rankings are drawn. Average precision has no exact expectation, and in the list
        by descending scores rows with equal scores stand in row order for it. `skfairrank.policies.RankProbabilities` suffices
        for utilities by position alone (not for reciprocal rank, ERR and average precision).
    query_weight, reduce
        As for :func:`ndcg_score`.
    replace_undefined_by : float, default nan
        What a query without any relevant row counts as under NDCG, recall and average precision, which are 0/0 there. With nan
        such queries are left out, with an `UndefinedMetricWarning`. The other utilities are 0 there, and that 0 counts.

    Returns
    -------
    utility : float, or ndarray of shape (n_queries,)
        At least 0, higher is better; for all utilities but DCG at most 1.

    Raises
    ------
    ValueError
        As for :func:`ndcg_score`; if a parameter of the utility is out of range; if the expectation is to be exact and a query is
        too large, or the utility is average precision.
    TypeError
        If `utility` is none, or the policy does not know enough for it.

    Examples
    --------
    >>> from skfairrank.metrics import utility_score
    >>> from skfairrank.utilities import PrecisionAtK
    >>> y, s, qid = [0, 2, 1, 0, 1, 2], [0.1, 0.9, 0.8, 0.2, 0.5, 0.3], [2, 1, 2, 1, 1, 2]
    >>> utility_score(y, s, qid=qid, utility=PrecisionAtK(k=1), policy="deterministic")
    1.0
    >>> kw = dict(utility="reciprocal_rank", n_samples="exact")
    >>> round(utility_score([1, 0], [np.log(3), 0], qid=[0, 0], **kw), 6)  # 3/4 + 1/8
    0.875
    """
    ranked = Ranked(s, qid, policy, n_samples, random_state)
    return _utility("utility_score", ranked, y, make_utility(utility), query_weight, replace_undefined_by, reduce)


def _utility(metric, ranked, y, utility, query_weight, replace_undefined_by, reduce):
    queries, y = ranked.queries, ranked.relevances(y)
    tables = utility.tables(y, queries.offsets)
    values, defined = expected_utility(ranked.policy, ranked.s, queries, tables), np.ones(queries.n_queries, bool)
    if getattr(utility, "needs_relevant_rows", False):
        defined = np.maximum.reduceat(tables.gain, ranked.starts) > 0
        values = _unrounded(values)
    warn_unless_order_matters(y, queries, metric)
    per_query = PerQuery(values, defined, metric, _NOTHING_RELEVANT, replace_undefined_by)
    return per_query.weighted(queries.weights(query_weight)).reduced(reduce)


def ndcg(y, expected_discount, queries: Queries, discount, metric="ndcg_score") -> PerQuery:
    """NDCG of checked relevances and expected discounts under any policy, grouped by query; `discount` is by rank."""
    gain, starts = relative_gains(y, queries.offsets, discount), queries.offsets[:-1]
    values = _unrounded(np.add.reduceat(gain * expected_discount, starts))
    return PerQuery(values, np.maximum.reduceat(gain, starts) > 0, metric, _NOTHING_RELEVANT)


def _unrounded(values: np.ndarray) -> np.ndarray:
    """Values with 1 for what is 1 but for the rounding of a sum: those of perfect rankings."""
    return np.where((values > 1.0 - 1e-13) & (values < 1.0 + 1e-9), 1.0, values)


def warn_unless_order_matters(y: np.ndarray, queries: Queries, metric: str) -> None:
    """Warn where every order is the best one in each of several queries; `y` grouped by query."""
    first = y[: queries.offsets[1]]
    if queries.n_queries == 1 or (first != first[0]).any():  # as in most data
        return
    if y.any() and not queries.differ_within(y).any():
        warn_caller(
            f"{metric} measures nothing here: within each of {queries.n_queries} queries all relevances are equal, so every "
            "order is as good as any. Check y, and that qid names queries and not rows.",
            UndefinedMetricWarning,
        )


@mean_over_queries
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
        As for :func:`ndcg_score`.
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
    >>> # one of six pairs is swapped
    >>> round(kendall_tau_score([4, 3, 2, 1], [3, 4, 2, 1], qid=[0, 0, 0, 0]), 6)
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
    orders = descending_order(s1, offsets), descending_order(s2, offsets)
    over_queries(inversions, offsets, sorting_work(offsets), *orders, offsets, discordant)
    defined = queries.sizes > 1
    pairs = np.where(defined, queries.sizes * (queries.sizes - 1) // 2, 1)
    reason = "they have one row each"
    return PerQuery(1.0 - 2.0 * discordant / pairs, defined, "kendall_tau_score", reason, is_selective=True)
