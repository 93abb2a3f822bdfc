"""How exposure is shared among groups, and among items of equal or higher merit.

The exposure of rank j is :math:`1 / \\log_2(1 + j)`; a row's exposure is its expectation under the policy.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels.metrics import mean_hinge_over_pairs
from skfairrank._kernels.threads import over_queries
from skfairrank._validation import check_relevance, check_scores
from skfairrank.exposure import disparity_coefficients
from skfairrank.metrics._averages import mean_where_defined, mean_with_replacement
from skfairrank.metrics._groups import check_groups
from skfairrank.metrics._policies import expected_exposures
from skfairrank.queries import Queries

__all__ = ["group_exposure_difference", "group_exposure_disparity", "individual_exposure_disparity"]


def group_exposure_disparity(
    y, s, *, qid, sensitive_features, n_samples=100, random_state=None, replace_undefined_by=0.0
):
    r"""How much more exposure per merit the more meritorious of two groups gets, averaged over queries.

    The stochastic disparity of group exposure of Bower et al. (2021), after Singh and Joachims (2019). Definition, for
    one query:

    .. math::

        \max\left(0,\ \frac{v_A}{M_A} - \frac{v_B}{M_B}\right), \qquad M_A \ge M_B > 0,

    where :math:`v_G` is the mean over a group's rows of the expected exposure under Plackett-Luce, and :math:`M_G` the
    mean relevance of its rows. The maximum is taken after the expectation. Where the merits tie, the group with the
    larger label comes first.

    It is one-sided: that the group with *less* merit gets too much exposure per merit does not count. Merit is taken
    at its word; where the relevances themselves are biased, so is this metric.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    s : array-like, shape (n_rows,)
        Scores; only their differences within a query matter.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row: ints, strings or bools, at most two distinct values.
    n_samples : int or "exact", default 100
        Rankings to sample for each query, or ``"exact"`` for queries that are small enough.
    random_state : None, int, RandomState or Generator
        Source of the sampled rankings.
    replace_undefined_by : float, default 0.0
        What a query counts as where a group is absent or without merit; 0 as in the paper, nan to leave it out with an
        `UndefinedMetricWarning`. If all queries are so, there is a warning in any case.

    Returns
    -------
    disparity : float
        Mean over queries; at least 0, lower is better. Its unit is exposure per unit of relevance.

    Raises
    ------
    ValueError
        If there are more than two groups, the attribute is continuous or has several columns or missing values, or
        `y` is negative.

    See Also
    --------
    group_exposure_difference : Exposure alone, without merit; any number of groups.
    individual_exposure_disparity : The same idea for pairs of rows.

    Examples
    --------
    >>> from skfairrank.metrics import group_exposure_disparity
    >>> kw = dict(qid=[0, 0], sensitive_features=["A", "B"], n_samples="exact")
    >>> round(group_exposure_disparity([2, 1], [0, 0], **kw), 6)  # equal exposure, B has less merit
    0.0
    >>> round(group_exposure_disparity([1, 1], [0, 1], **kw), 6)
    0.170554
    """
    s = check_scores(s, name="s")
    y, queries = check_relevance(y, len(s)), Queries.from_qid(qid, len(s))
    _, group = check_groups(sensitive_features, len(s), at_most=2)
    exposure = expected_exposures(s, queries, policy="plackett-luce", n_samples=n_samples, random_state=random_state)
    coefficients, defined = disparity_coefficients(queries.group(y), queries.group(group), queries.offsets)
    gap = np.add.reduceat(coefficients * queries.group(exposure), queries.offsets[:-1])
    return mean_with_replacement(
        np.maximum(gap, 0.0),
        defined,
        replace_undefined_by,
        metric="group_exposure_disparity",
        reason="they lack a group, or a group without any relevant row",
    )


def group_exposure_difference(s, *, qid, sensitive_features, policy="deterministic", n_samples=100, random_state=None):
    r"""Largest minus smallest mean exposure among the groups of a query, averaged over queries.

    Definition, for one query whose present groups have mean expected exposures :math:`v_G`:

    .. math:: \max_G v_G - \min_G v_G .

    It knows no merit: a group whose rows are less relevant, and for that ranked lower, widens it too. See
    :func:`group_exposure_disparity` for exposure per merit.

    Parameters
    ----------
    s : array-like, shape (n_rows,)
        Scores; higher is better.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row: ints, strings, bools or categories; two groups or more.
    policy : {"deterministic", "plackett-luce"}
        The ranking by descending scores, rows with equal scores sharing the mean over their orders; or rankings drawn
        from the Plackett-Luce policy.
    n_samples : int or "exact", default 100
        Rankings to sample for each query under Plackett-Luce, or ``"exact"`` for queries that are small enough.
    random_state : None, int, RandomState or Generator
        Source of the sampled rankings.

    Returns
    -------
    difference : float
        Between 0 and 1, the mean over the queries in which at least two groups are present. Where there is none: nan,
        with an `UndefinedMetricWarning`.

    Examples
    --------
    >>> from skfairrank.metrics import group_exposure_difference
    >>> round(group_exposure_difference([4, 3, 2, 1], qid=[0] * 4, sensitive_features=list("AABB")), 6)
    0.350127
    """
    s = check_scores(s, name="s")
    queries = Queries.from_qid(qid, len(s))
    labels, group = check_groups(sensitive_features, len(s))
    exposure = expected_exposures(s, queries, policy=policy, n_samples=n_samples, random_state=random_state)
    # Only the groups that are present get a cell: there may be many groups, few of them in each query.
    cells, cell = np.unique(queries.group(queries.codes) * len(labels) + queries.group(group), return_inverse=True)
    mean = np.bincount(cell, weights=queries.group(exposure)) / np.bincount(cell)
    n_present = np.bincount(cells // len(labels), minlength=queries.n_queries)
    starts = np.cumsum(n_present) - n_present
    return mean_where_defined(
        np.maximum.reduceat(mean, starts) - np.minimum.reduceat(mean, starts),
        n_present > 1,
        metric="group_exposure_difference",
        reason="none has two groups",
    )


def individual_exposure_disparity(y, s, *, qid, n_samples=100, random_state=None, replace_undefined_by=np.nan):
    r"""Exposure per merit that a row gets beyond rows of no more merit, averaged over pairs and queries.

    The individual fairness disparity of Singh and Joachims (2019). Definition, for one query whose rows have merits
    :math:`M_i`, here their relevances, and expected exposures :math:`v_i` under Plackett-Luce:

    .. math::

        \frac{1}{|H|} \sum_{(i, j) \in H} \max\left(0,\ \frac{v_i}{M_i} - \frac{v_j}{M_j}\right), \qquad
        H = \{(i, j) : M_i \ge M_j > 0\} .

    The maximum is taken after the expectation. H is read to the letter: it holds every row paired with itself, and both
    orders of two rows with equal merit. Rows without merit are in no pair.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    s : array-like, shape (n_rows,)
        Scores; only their differences within a query matter.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    n_samples : int or "exact", default 100
        Rankings to sample for each query, or ``"exact"`` for queries that are small enough. Sampling noise between
        rows of equal merit counts as disparity, so few samples give too large a value.
    random_state : None, int, RandomState or Generator
        Source of the sampled rankings.
    replace_undefined_by : float, default nan
        What a query without any relevant row counts as. With nan such queries are left out, with an
        `UndefinedMetricWarning`. A query with a single relevant row has disparity 0.

    Returns
    -------
    disparity : float
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
    s = check_scores(s, name="s")
    y, queries = check_relevance(y, len(s)), Queries.from_qid(qid, len(s))
    exposure = expected_exposures(s, queries, policy="plackett-luce", n_samples=n_samples, random_state=random_state)
    out = np.empty(queries.n_queries)
    offsets, pairs = queries.offsets, float((queries.sizes.astype(float) ** 2).sum())
    over_queries(mean_hinge_over_pairs, offsets, 2.0 * pairs, queries.group(exposure), queries.group(y), offsets, out)
    return mean_with_replacement(
        out,
        ~np.isnan(out),
        replace_undefined_by,
        metric="individual_exposure_disparity",
        reason="they have no relevant row",
    )
