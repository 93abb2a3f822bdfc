"""How exposure is shared among groups, and among items of equal or higher merit.

The exposure of rank j is :math:`1 / \\log_2(1 + j)`; a row's exposure is its expectation under the policy.
"""

from __future__ import annotations

import numpy as np

from skfairrank._checks import check_relevance, names_queries
from skfairrank._exposure import SMALLEST_MERIT, disparity_coefficients
from skfairrank._gains import sorting_work
from skfairrank._kernels.metrics import mean_hinge_over_pairs
from skfairrank._queries import Queries
from skfairrank._sensitive import check_groups
from skfairrank._threads import over_queries
from skfairrank.metrics._arguments import ranked_rows
from skfairrank.metrics._per_query import PerQuery
from skfairrank.policies import make_policy

__all__ = [
    "exposure_difference",
    "exposure_disparity",
    "group_exposure_difference",
    "group_exposure_disparity",
    "individual_exposure_disparity",
]

TIES = ("larger_label", "average")


@names_queries
def group_exposure_disparity(
    y,
    s,
    *,
    qid,
    sensitive_features,
    policy="plackett_luce",
    k=None,
    ties="larger_label",
    n_samples=100,
    random_state=None,
    query_weight=None,
    replace_undefined_by=0.0,
    reduce="mean",
):
    r"""How much more exposure per merit the more meritorious of two groups gets, averaged over queries.

    Of more than two groups the pair with the largest value counts.

    Where the groups' merits tie, the group with the larger label counts as the better one, so there the value depends on
    how the groups are called; ``ties="average"`` does not.

    The disparity of group exposure of Bower et al. (2021), after Singh and Joachims (2019). Definition, for one query:

    .. math::

        \max\left(0,\ \frac{v_A}{M_A} - \frac{v_B}{M_B}\right), \qquad M_A \ge M_B > 0,

    where :math:`v_G` is the mean over a group's rows of the expected exposure under the policy, and :math:`M_G` the mean
    relevance of its rows. The maximum is taken after the expectation. Merits tie where they differ by no more than
    rounding. Where more than two groups :math:`\mathcal G` are present and have merit,

    .. math::

        \max_{A, B \in \mathcal G:\ M_A \ge M_B > 0} \max\left(0,\ \frac{v_A}{M_A} - \frac{v_B}{M_B}\right),

    each pair ordered by its own merits. (As in fairlearn the largest difference between groups counts; there it is max minus
    min, since no merit orders the pairs.)

    Under ``policy="plackett_luce"``, the paper's, the value follows the size of the scores: all scores multiplied by .1
    give the same sorted lists, a softer policy, and a smaller disparity. Softness is not fairness; compare rankers whose
    scores differ in size, and choose among them, by ``policy="deterministic"``.

    It is one-sided: that the group with *less* merit gets too much exposure per merit does not count. Merit is taken
    at its word; where the relevances themselves are biased, so is this metric.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    s : array-like, shape (n_rows,)
        Scores; higher is better. May be None under a policy that needs none, `skfairrank.policies.RankProbabilities`.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row: ints, strings, bools, categories or members of an enumeration; two groups or more.
    policy : "deterministic", "plackett_luce" or a policy, default "plackett_luce"
        Rankings drawn from the Plackett-Luce policy; the list by descending scores, rows with equal scores sharing the
        mean over their orders; or an object, such as those of `skfairrank.policies`, with settings of its own.
    k : int, optional
        Ranks beyond k give no exposure.
    ties : {"larger_label", "average"}
        Where the merits of two groups tie: the group with the larger label is A, as in the authors' program; or the mean of the
        values that either group as A gives, which is half of the absolute difference and the same under any names.
    n_samples : int or "exact", default 100
        Under ``policy="plackett_luce"``: rankings to sample for each query, or the exact expectation for queries that are small
        enough.
    random_state : None, int, RandomState or Generator
        Under ``policy="plackett_luce"``: source of the sampled rankings.
    query_weight : array-like or mapping, optional
        What each query counts in the mean, >= 0: one number per row, equal within a query, or per query, as a mapping from id to
        number (which may hold further ids) or in sorted order of the ids. None: all count alike.
    replace_undefined_by : float, default 0.0
        What a query counts as where no two groups are present and have merit; 0 as in the paper, nan to leave it out with an
        `UndefinedMetricWarning`. If all queries are so, there is a warning in any case.
    reduce : "mean" or None
        None: the value of each query, in sorted order of their ids, `replace_undefined_by` where it is undefined.

    Returns
    -------
    disparity : float, or ndarray of shape (n_queries,)
        Mean over queries; at least 0, lower is better. Its unit is exposure per unit of relevance.

    Raises
    ------
    ValueError
        If the attribute is continuous or has several columns or missing values, or `y` is negative.

    See Also
    --------
    group_exposure_difference : Exposure alone, without merit.
    individual_exposure_disparity : The same idea for pairs of rows.

    Examples
    --------
    >>> from skfairrank.metrics import group_exposure_disparity
    >>> kw = dict(qid=[0, 0], sensitive_features=["A", "B"], n_samples="exact")
    >>> round(group_exposure_disparity([2, 1], [0, 0], **kw), 6)  # equal exposure, B has less merit
    0.0
    >>> round(group_exposure_disparity([1, 1], [0, 1], **kw), 6)
    0.170554
    >>> round(group_exposure_disparity([1, 1], [0, 0.1], **kw), 6)  # the same order, a softer policy
    0.018438
    """
    chosen = make_policy(policy, n_samples=n_samples, random_state=random_state)
    queries, _, exposure = ranked_rows(s, qid, chosen, k)
    y = queries.group(check_relevance(y, queries.n_rows))
    group = queries.group(check_groups(sensitive_features, queries.n_rows)[1])
    per_query = exposure_disparity(y, group, exposure, queries, ties, replace_undefined_by)
    return per_query.weighted(queries.weights(query_weight)).reduced(reduce)


def exposure_disparity(y, group, exposure, queries: Queries, ties="larger_label", replace_undefined_by=0.0) -> PerQuery:
    """`group_exposure_disparity` of checked values that are grouped by query; groups are numbered from 0."""
    if ties not in TIES:
        raise ValueError(f"ties={ties!r}: choose one of {list(TIES)}.")
    if group.max() <= 1:
        values, defined = _disparity_of_two(y, group, exposure, queries.offsets, ties)
    else:
        values, defined = np.zeros(queries.n_queries), np.zeros(queries.n_queries, bool)
        for chosen, rows, second, offsets in _pairs_of_groups(group, queries):
            of_pair, pair_defined = _disparity_of_two(y[rows], second, exposure[rows], offsets, ties)
            values[chosen] = np.maximum(values[chosen], np.where(pair_defined, of_pair, 0.0))
            defined[chosen] |= pair_defined
    reason = "they lack two groups with relevant rows"
    return PerQuery(values, defined, "group_exposure_disparity", reason, replace_undefined_by)


def _disparity_of_two(y, group, exposure, offsets, ties) -> tuple[np.ndarray, np.ndarray]:
    """The disparity of groups 0 and 1 in each query, and where it is defined."""
    coefficients, defined, tied = disparity_coefficients(y, group, offsets)
    gap = np.add.reduceat(coefficients * exposure, offsets[:-1])
    values = np.maximum(gap, 0.0)
    return (np.where(tied, np.abs(gap) / 2.0, values) if ties == "average" else values), defined


def _pairs_of_groups(group, queries: Queries):
    """Pairs of groups that meet in some query: these queries, the pair's rows there, whose group is the second, and offsets."""
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    is_present = np.zeros((queries.n_queries, int(group.max()) + 1), np.float32)
    is_present[query, group] = 1.0
    for a, b in np.argwhere(np.triu(is_present.T @ is_present, 1)):
        meet = (is_present[:, a] * is_present[:, b]) > 0
        rows = np.flatnonzero(meet[query] & ((group == a) | (group == b)))
        chosen = np.flatnonzero(meet)
        offsets = np.searchsorted(query[rows], np.r_[chosen, queries.n_queries])
        yield chosen, rows, (group[rows] == b).astype(np.int64), offsets


@names_queries
def group_exposure_difference(
    s,
    *,
    qid,
    sensitive_features,
    policy="deterministic",
    k=None,
    n_samples=100,
    random_state=None,
    query_weight=None,
    reduce="mean",
):
    r"""Largest minus smallest mean exposure among the groups of a query, averaged over queries.

    Definition, for one query whose present groups have mean expected exposures :math:`v_G`:

    .. math:: \max_G v_G - \min_G v_G ,

    the largest difference between two of them, as fairlearn's ``difference(method="between_groups")`` has it.

    It knows no merit: a group whose rows are less relevant, and for that ranked lower, widens it too. See
    :func:`group_exposure_disparity` for exposure per merit.

    Under ``policy="plackett_luce"`` the value follows the size of the scores: a softer policy looks fairer, though it sorts
    the rows alike.

    Parameters
    ----------
    s : array-like, shape (n_rows,)
        Scores; higher is better. May be None under a policy that needs none, `skfairrank.policies.RankProbabilities`.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row: ints, strings, bools, categories or members of an enumeration; two groups or more.
    policy : "deterministic", "plackett_luce" or a policy, default "deterministic"
        The list by descending scores, rows with equal scores sharing the mean over their orders; rankings drawn from the
        Plackett-Luce policy; or an object, such as those of `skfairrank.policies`, with settings of its own.
    k : int, optional
        Ranks beyond k give no exposure.
    n_samples : int or "exact", default 100
        Under ``policy="plackett_luce"``: rankings to sample for each query, or the exact expectation for queries that are small
        enough.
    random_state : None, int, RandomState or Generator
        Under ``policy="plackett_luce"``: source of the sampled rankings.
    query_weight : array-like or mapping, optional
        What each query counts in the mean, >= 0: one number per row, equal within a query, or per query, as a mapping from id to
        number (which may hold further ids) or in sorted order of the ids. None: all count alike.
    reduce : "mean" or None
        None: the value of each query, in sorted order of their ids, nan for a query with one group.

    Returns
    -------
    difference : float, or ndarray of shape (n_queries,)
        Between 0 and 1, the mean over the queries in which at least two groups are present. Where there is none: nan,
        with an `UndefinedMetricWarning`.

    Raises
    ------
    ValueError
        If the attribute is continuous or has several columns or missing values.

    Examples
    --------
    >>> from skfairrank.metrics import group_exposure_difference
    >>> round(group_exposure_difference([4, 3, 2, 1], qid=[0] * 4, sensitive_features=list("AABB")), 6)
    0.350127
    """
    chosen = make_policy(policy, n_samples=n_samples, random_state=random_state)
    queries, _, exposure = ranked_rows(s, qid, chosen, k)
    group = queries.group(check_groups(sensitive_features, queries.n_rows)[1])
    per_query = exposure_difference(group, exposure, queries)
    return per_query.weighted(queries.weights(query_weight)).reduced(reduce)


def exposure_difference(group, exposure, queries: Queries) -> PerQuery:
    """`group_exposure_difference` of checked values that are grouped by query; groups are numbered from 0."""
    n_groups = int(group.max()) + 1
    # Only the groups that are present get a cell: there may be many groups, few of them in each query.
    which = np.repeat(np.arange(queries.n_queries), queries.sizes)
    cells, cell = np.unique(which * n_groups + group, return_inverse=True)
    mean = np.bincount(cell, weights=exposure) / np.bincount(cell)
    n_present = np.bincount(cells // n_groups, minlength=queries.n_queries)
    starts = np.cumsum(n_present) - n_present
    values = np.maximum.reduceat(mean, starts) - np.minimum.reduceat(mean, starts)
    reason = "none has two groups"
    return PerQuery(values, n_present > 1, "group_exposure_difference", reason, is_selective=True)


@names_queries
def individual_exposure_disparity(
    y,
    s,
    *,
    qid,
    policy="plackett_luce",
    k=None,
    n_samples=100,
    random_state=None,
    query_weight=None,
    replace_undefined_by=np.nan,
    reduce="mean",
):
    r"""Exposure per merit that a row gets beyond rows of no more merit, averaged over pairs and queries.

    The individual fairness disparity of Singh and Joachims (2019). Definition, for one query whose rows have merits
    :math:`M_i`, here their relevances, and expected exposures :math:`v_i` under the policy:

    .. math::

        \frac{1}{|H|} \sum_{(i, j) \in H} \max\left(0,\ \frac{v_i}{M_i} - \frac{v_j}{M_j}\right), \qquad
        H = \{(i, j) : M_i \ge M_j > 0\} .

    The maximum is taken after the expectation. H is read to the letter: it holds every row paired with itself, and both
    orders of two rows with equal merit. Rows without merit are in no pair. Time grows like n log n in a query's size.

    Under ``policy="plackett_luce"`` the value follows the size of the scores: a softer policy looks fairer, though it sorts
    the rows alike. See :func:`group_exposure_disparity`.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    s : array-like, shape (n_rows,)
        Scores; higher is better. May be None under a policy that needs none, `skfairrank.policies.RankProbabilities`.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    policy : "deterministic", "plackett_luce" or a policy, default "plackett_luce"
        Rankings drawn from the Plackett-Luce policy; the list by descending scores, rows with equal scores sharing the
        mean over their orders; or an object, such as those of `skfairrank.policies`, with settings of its own.
    k : int, optional
        Ranks beyond k give no exposure.
    n_samples : int or "exact", default 100
        Under ``policy="plackett_luce"``: rankings to sample for each query, or the exact expectation for queries that are small
        enough. Sampling
        noise between rows of equal merit counts as disparity, so few samples give too large a value.
    random_state : None, int, RandomState or Generator
        Under ``policy="plackett_luce"``: source of the sampled rankings.
    query_weight : array-like or mapping, optional
        What each query counts in the mean, >= 0: one number per row, equal within a query, or per query, as a mapping from id to
        number (which may hold further ids) or in sorted order of the ids. None: all count alike.
    replace_undefined_by : float, default nan
        What a query without any relevant row counts as. With nan such queries are left out, with an
        `UndefinedMetricWarning`. A query with a single relevant row has disparity 0.
    reduce : "mean" or None
        None: the value of each query, in sorted order of their ids, nan (or `replace_undefined_by`) where it is
        undefined.

    Returns
    -------
    disparity : float, or ndarray of shape (n_queries,)
        Mean over queries; at least 0, lower is better.

    References
    ----------
    A. Singh and T. Joachims. Policy Learning for Fairness in Ranking. NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank.metrics import individual_exposure_disparity
    >>> s = [np.log(3), 0]  # exposures .907732 and .723197; of the four pairs one has a gap
    >>> round(individual_exposure_disparity([1, 1], s, qid=[0, 0], n_samples="exact"), 6)
    0.046134
    """
    chosen = make_policy(policy, n_samples=n_samples, random_state=random_state)
    queries, _, exposure = ranked_rows(s, qid, chosen, k)
    y = queries.group(check_relevance(y, queries.n_rows))
    ratio, offsets, out = exposure / np.maximum(y, SMALLEST_MERIT), queries.offsets, np.empty(queries.n_queries)
    over_queries(mean_hinge_over_pairs, offsets, 5.0 * sorting_work(offsets), ratio, y, offsets, out)
    reason = "they have no relevant row"
    defined = np.maximum.reduceat(y, offsets[:-1]) > 0
    per_query = PerQuery(out, defined, "individual_exposure_disparity", reason, replace_undefined_by)
    return per_query.weighted(queries.weights(query_weight)).reduced(reduce)
