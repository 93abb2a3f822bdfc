"""How exposure is shared among groups, among items of a query, and among items of a history of rankings.

The exposure of rank j is :math:`1 / \\log_2(1 + j)`; a row's exposure is its expectation under the policy.
"""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank._checks import names_queries, warn_caller
from skfairrank._kernels.ranking import mean_hinge_over_pairs
from skfairrank._queries import Queries
from skfairrank._threads import over_queries
from skfairrank.metrics._per_query import PerQuery, Ranked, mean_over_queries
from skfairrank.policies import Deterministic, descending_order, sorting_work
from skfairrank.utilities import discounts

#: A merit below this (about 1e-100) counts as this in a ratio, so that exposure per merit and its square stay finite.
SMALLEST_MERIT = 2.0**-330


@mean_over_queries
def group_exposure_disparity(
    y,
    s,
    *,
    qid,
    sensitive_features,
    unknown_groups="error",
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

    .. math:: \max\left(0,\ \frac{v_A}{M_A} - \frac{v_B}{M_B}\right), \qquad M_A \ge M_B > 0,

    with :math:`v_G` the mean expected exposure of a group's rows in a query and :math:`M_G` their mean relevance (Bower et al.
    2021, after Singh and Joachims 2019); of more than two groups the pair with the largest value counts. Where merits tie, the
    group with the larger label is A: the value then depends on how groups are called, unless ``ties="average"``.

    It is one-sided, takes merit at its word, and under ``policy="plackett_luce"`` follows the size of the scores: a softer policy
    looks fairer, though it sorts alike. Compare rankers whose scores differ in size by ``policy="deterministic"``.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    s : array-like, shape (n_rows,)
        Scores; higher is better. None under a policy that needs none.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row: ints, strings, bools, categories or members of an enumeration; two groups or more.
    unknown_groups : {"error", "leave_out"}
        What missing values in `sensitive_features` are. "leave_out": these rows have their ranks, and count in no group.
    policy, n_samples, random_state
        As for :func:`ndcg_score`, but by default rankings are drawn, as in the paper.
    k : int, optional
        Ranks beyond k give no exposure.
    ties : {"larger_label", "average"}
        Where the merits of two groups tie: the group with the larger label is A, as in the authors' program; or the mean of the
        values that either group as A gives, which is half of the absolute difference and the same under any names. Merits tie
        where they differ by no more than rounding.
    query_weight : array-like or mapping, optional
        As for :func:`ndcg_score`.
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
    >>> # equal exposure, B has less merit
    >>> round(group_exposure_disparity([2, 1], [0, 0], **kw), 6)
    0.0
    >>> round(group_exposure_disparity([1, 1], [0, 1], **kw), 6)
    0.170554
    >>> # the same order, a softer policy
    >>> round(group_exposure_disparity([1, 1], [0, 0.1], **kw), 6)
    0.018438
    """
    ranked = Ranked(s, qid, policy, n_samples, random_state)
    y, group, exposure = ranked.relevances(y), ranked.groups(sensitive_features, unknown_groups)[1], ranked.exposure(k)
    per_query = exposure_disparity(y, group, exposure, ranked.queries, ties, replace_undefined_by)
    return per_query.weighted(ranked.queries.weights(query_weight)).reduced(reduce)


def exposure_disparity(y, group, exposure, queries: Queries, ties="larger_label", replace_undefined_by=0.0) -> PerQuery:
    """`group_exposure_disparity` of checked values that are grouped by query; groups are numbered from 0, unknown ones -1."""
    if ties not in ("larger_label", "average"):
        raise ValueError(f"ties={ties!r}: choose one of ['larger_label', 'average'].")
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    is_present = np.zeros((queries.n_queries, int(group.max()) + 1), np.float32)
    is_present[query[group >= 0], group[group >= 0]] = 1.0
    values, defined = np.zeros(queries.n_queries), np.zeros(queries.n_queries, bool)
    for a, b in np.argwhere(np.triu(is_present.T @ is_present, 1)):  # pairs of groups that meet in some query
        meet = (is_present[:, a] * is_present[:, b]) > 0
        rows, chosen = np.flatnonzero(meet[query] & ((group == a) | (group == b))), np.flatnonzero(meet)
        offsets: np.ndarray = np.searchsorted(query[rows], np.append(chosen, queries.n_queries))
        coefficients, has_merit, tied = disparity_coefficients(y[rows], (group[rows] == b).astype(np.int64), offsets)
        gap = np.add.reduceat(coefficients * exposure[rows], offsets[:-1])
        of_pair = np.where(tied, np.abs(gap) / 2.0, gap) if ties == "average" else gap
        values[chosen] = np.maximum(values[chosen], np.where(has_merit, of_pair, 0.0))
        defined[chosen] |= has_merit
    reason = "they lack two groups with relevant rows"
    return PerQuery(values, defined, "group_exposure_disparity", reason, replace_undefined_by)


def disparity_coefficients(
    y: np.ndarray, group: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients c such that a query's disparity v_A / M_A - v_B / M_B is the sum of c_i times the exposure of row i.

    Merits tie where they differ by no more than the rounding of relevances and of their sums: the means of (.1, .2, .3) and of
    (.2) do, in any order of the rows.

    Parameters
    ----------
    y : ndarray of float64, shape (n_rows,)
        Relevances >= 0, grouped by query.
    group : ndarray of int, shape (n_rows,)
        0 or 1, grouped by query; 1 is the larger label.
    offsets : ndarray of int64, shape (n_queries + 1,)

    Returns
    -------
    coefficients : ndarray of float64, shape (n_rows,)
        Zero in queries where the disparity is undefined.
    defined : ndarray of bool, shape (n_queries,)
        False where a group is absent or without merit.
    tied : ndarray of bool, shape (n_queries,)
        Where the disparity is defined and both groups have the same merit.
    """
    sizes = np.diff(offsets)
    cell = 2 * np.repeat(np.arange(len(sizes)), sizes) + group
    members, relevant = (np.bincount(cell, w, 2 * len(sizes)).reshape(-1, 2) for w in (None, (y > 0).astype(float)))
    # Scaled by a power of two, so that no sum overflows; added up in sorted order, so that the order of rows does not matter.
    exponent = np.frexp(np.maximum.reduceat(y, offsets[:-1]))[1]
    order = np.lexsort((y, cell))
    scaled = np.ldexp(y, -np.repeat(exponent, sizes))[order]
    sums = np.bincount(cell[order], scaled, 2 * len(sizes)).reshape(-1, 2)
    sums = np.where(relevant > 0, np.maximum(sums, SMALLEST_MERIT), 0.0)  # a small one may vanish beside a huge one
    defined = np.asarray((sums > 0).all(axis=1))
    merit = np.divide(sums, members, out=np.zeros_like(sums), where=members > 0)
    rounding = np.zeros(len(sizes)) if _sums_are_exact(y) else 2.0 * (_resolution(y) + np.finfo(float).eps * sizes)
    tied = defined & (np.abs(merit[:, 0] - merit[:, 1]) <= rounding * merit.max(axis=1))
    larger_is_first = tied | (merit[:, 1] >= merit[:, 0])
    # 1 / (|G| M_G) = 1 / (sum of the group's relevances), with the sign of the group's place in the difference.
    per_cell = np.divide(1.0, sums, out=np.zeros_like(sums), where=defined[:, None])
    per_cell = np.ldexp(per_cell, -np.maximum(exponent, int(np.log2(SMALLEST_MERIT)))[:, None])
    per_cell *= np.where(larger_is_first[:, None], [-1.0, 1.0], [1.0, -1.0])
    return per_cell.ravel()[cell], defined, tied


def _sums_are_exact(y: np.ndarray) -> bool:
    """Whether relevances are multiples of 1/16, so small that sums of them are not rounded: grades, and halves of grades."""
    return bool(y.max() < 2.0**48 / len(y)) and bool((16.0 * y % 1.0 == 0.0).all())


def _resolution(y: np.ndarray) -> float:
    """Relative distance of neighbours in the coarsest float type that holds all relevances: so far they may have been rounded."""
    with np.errstate(over="ignore"):
        kinds = [kind for kind in (np.float16, np.float32, np.float64) if (y.astype(kind) == y).all()]
    return float(np.finfo(kinds[0]).eps)


@mean_over_queries
def group_exposure_difference(
    s,
    *,
    qid,
    sensitive_features,
    unknown_groups="error",
    policy="deterministic",
    k=None,
    n_samples=100,
    random_state=None,
    query_weight=None,
    reduce="mean",
):
    r"""Largest minus smallest mean exposure among the groups of a query, averaged over queries.

    .. math:: \max_G v_G - \min_G v_G ,

    with :math:`v_G` the mean expected exposure of a group's rows: fairlearn's ``difference(method="between_groups")``.

    It knows no merit: a group whose rows are less relevant, and for that ranked lower, widens it too. See
    :func:`group_exposure_disparity` for exposure per merit. Under ``policy="plackett_luce"`` a softer policy looks fairer.

    Parameters
    ----------
    s : array-like, shape (n_rows,)
        Scores; higher is better. None under a policy that needs none.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row: ints, strings, bools, categories or members of an enumeration; two groups or more.
    unknown_groups : {"error", "leave_out"}
        What missing values in `sensitive_features` are. "leave_out": these rows have their ranks, and count in no group.
    k : int, optional
        Ranks beyond k give no exposure.
    policy, n_samples, random_state, query_weight
        As for :func:`ndcg_score`.
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
    >>> kw = dict(qid=[0] * 4, sensitive_features=list("AABB"))
    >>> round(group_exposure_difference([4, 3, 2, 1], **kw), 6)
    0.350127
    """
    ranked = Ranked(s, qid, policy, n_samples, random_state)
    group = ranked.groups(sensitive_features, unknown_groups)[1]
    per_query = exposure_difference(group, ranked.exposure(k), ranked.queries)
    return per_query.weighted(ranked.queries.weights(query_weight)).reduced(reduce)


def exposure_difference(group, exposure, queries: Queries) -> PerQuery:
    """`group_exposure_difference` of checked values that are grouped by query; groups are numbered from 0, unknown ones -1."""
    n_groups, known = int(group.max()) + 1, group >= 0
    # Only the groups that are present get a cell: there may be many groups, few of them in each query.
    which = np.repeat(np.arange(queries.n_queries), queries.sizes)
    cells, cell = np.unique((which * n_groups + group)[known], return_inverse=True)
    mean = np.bincount(cell, weights=exposure[known]) / np.bincount(cell)
    n_present = np.bincount(cells // n_groups, minlength=queries.n_queries)
    compared = n_present > 0
    starts, values = (np.cumsum(n_present) - n_present)[compared], np.zeros(queries.n_queries)
    values[compared] = np.maximum.reduceat(mean, starts) - np.minimum.reduceat(mean, starts)
    reason = "none has two groups"
    return PerQuery(values, n_present > 1, "group_exposure_difference", reason, is_selective=True)


@mean_over_queries
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

    The individual fairness disparity of Singh and Joachims (2019), for one query whose rows have merits :math:`M_i`, here their
    relevances, and expected exposures :math:`v_i`:

    .. math::

        \frac{1}{|H|} \sum_{(i, j) \in H} \max\left(0,\ \frac{v_i}{M_i} - \frac{v_j}{M_j}\right), \qquad
        H = \{(i, j) : M_i \ge M_j > 0\} .

    H is read to the letter: it holds every row paired with itself, and both orders of two rows with equal merit. Under
    ``policy="plackett_luce"`` a softer policy looks fairer, as for :func:`group_exposure_disparity`.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0. Rows without any are in no pair.
    s : array-like, shape (n_rows,)
        Scores; higher is better. None under a policy that needs none.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    policy, n_samples, random_state, query_weight
        As for :func:`ndcg_score`, but by default rankings are drawn. Sampling noise between rows of equal merit counts as
        disparity, so few samples give too large a value.
    k : int, optional
        Ranks beyond k give no exposure.
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
    ranked = Ranked(s, qid, policy, n_samples, random_state)
    y, queries = ranked.relevances(y), ranked.queries
    ratio, offsets, out = (
        ranked.exposure(k) / np.maximum(y, SMALLEST_MERIT),
        queries.offsets,
        np.empty(queries.n_queries),
    )
    orders = descending_order(ratio, offsets), descending_order(y, offsets)
    over_queries(mean_hinge_over_pairs, offsets, 3.0 * sorting_work(offsets), ratio, y, *orders, offsets, out)
    defined, reason = np.maximum.reduceat(y, ranked.starts) > 0, "they have no relevant row"
    per_query = PerQuery(out, defined, "individual_exposure_disparity", reason, replace_undefined_by)
    return per_query.weighted(queries.weights(query_weight)).reduced(reduce)


@mean_over_queries
def expected_exposure_loss(
    y,
    s,
    *,
    qid,
    patience=0.5,
    part="loss",
    policy="plackett_luce",
    k=None,
    n_samples=100,
    random_state=None,
    query_weight=None,
    reduce="mean",
):
    r"""Squared distance of the items' expected exposure from that under the ideal policy (Diaz et al. 2020).

    Items of one relevance should have the same exposure :math:`\epsilon^*_i`, the mean over the ranks that their grade has in an
    ideal list; :math:`\epsilon_i` is what they have under the policy:

    .. math:: \mathrm{EE\text{-}L} = \|\epsilon - \epsilon^*\|^2
        = \underbrace{\|\epsilon\|^2}_{\mathrm{EE\text{-}D}} - 2 \underbrace{\epsilon^\top \epsilon^*}_{\mathrm{EE\text{-}R}}
        + \|\epsilon^*\|^2 .

    A sorted list has a loss wherever items have equal relevance: one of them is always ahead of the other.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0; grades.
    s : array-like, shape (n_rows,)
        Scores; higher is better. None under a policy that needs none.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    patience : float in (0, 1) or None, default=0.5
        Exposure of rank r is :math:`\mathrm{patience}^{r - 1}`, that of rank-biased precision. None: :math:`1 / \log_2(1 + r)`.
    part : {"loss", "disparity", "relevance"}, default="loss"
        EE-L (lower is better), EE-D (how unequal exposure is; lower) or EE-R (how much of it is where it should be; higher).
    k : int, optional
        Ranks beyond k give no exposure.
    policy, n_samples, random_state, query_weight
        As for :func:`ndcg_score`, but by default rankings are drawn. Sampling noise adds to the loss.
    reduce : "mean" or None
        None: the value of each query, in sorted order of their ids.

    Returns
    -------
    loss : float, or ndarray of shape (n_queries,)
        At least 0. Defined for every query: where no item is relevant, all should be exposed alike.

    References
    ----------
    F. Diaz, B. Mitra, M. Ekstrand, A. Biega and B. Carterette. Evaluating Stochastic Rankings with Expected Exposure. CIKM 2020.

    Examples
    --------
    >>> from skfairrank.metrics import expected_exposure_loss
    >>> kw = dict(qid=[0, 0], n_samples="exact")
    >>> expected_exposure_loss([1, 1], [0.0, 0.0], **kw)  # equal items, equal chances
    0.0
    >>> # 2 * (1 - .75)^2
    >>> expected_exposure_loss([1, 1], [1.0, 0.0], policy="deterministic", qid=[0, 0])
    0.125
    """
    if part not in ("loss", "disparity", "relevance"):
        raise ValueError(f"part={part!r}: choose one of ['loss', 'disparity', 'relevance'].")
    ranked = Ranked(s, qid, policy, n_samples, random_state)
    exposure, queries = ranked.exposure(k, patience), ranked.queries
    ideal = Deterministic().expected_discounts(ranked.relevances(y), queries, discounts(ranked.longest, k, patience))
    terms = {"loss": (exposure - ideal) ** 2, "disparity": exposure**2, "relevance": exposure * ideal}[part]
    values = np.add.reduceat(terms, ranked.starts)
    per_query = PerQuery(values, np.ones(len(values), bool), "expected_exposure_loss", "")
    return per_query.weighted(queries.weights(query_weight)).reduced(reduce)


@names_queries
def attention_inequity(
    y,
    s,
    *,
    qid,
    items=None,
    patience=0.5,
    policy="deterministic",
    k=None,
    n_samples=100,
    random_state=None,
    query_weight=None,
    reduce="mean",
):
    r"""Inequity of amortised attention: how far what items get over a history is from what they deserve (Biega et al. 2018).

    The queries are a history of rankings, in which items come again. In each query the attention :math:`a_i` of the ranks and the
    relevances :math:`r_i` are divided by their sums. Over queries with weights :math:`w_q`

    .. math:: \sum_i |A_i - R_i|, \qquad A_i = \sum_q w_q a^q_i, \quad R_i = \sum_q w_q r^q_i ,

    is the sum of the paper (``reduce="sum"``), and divided by :math:`\sum_q w_q` the mean (``reduce="mean"``),
    between 0 and 2, which does not grow with the length of the history.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    s : array-like, shape (n_rows,)
        Scores; higher is better. None under a policy that needs none.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order: one for each ranking of the history.
    items : array-like, shape (n_rows,), optional
        Which item each row is: rows of one item in several queries share an id. None: each row is another item, and
        nothing amortises.
    patience : float in (0, 1) or None, default=0.5
        Attention of rank r is :math:`\mathrm{patience}^{r - 1}`, the paper's geometric attention. None:
        :math:`1 / \log_2(1 + r)`.
    k : int, optional
        Ranks beyond k get no attention; k=1 is the paper's singular attention.
    policy, n_samples, random_state
        As for :func:`ndcg_score`.
    query_weight : array-like or mapping, optional
        How often each ranking was shown, >= 0.
    reduce : "mean", "sum" or None
        None: :math:`A_i - R_i` of each item, in sorted order of their ids; positive where it gets more than it deserves.

    Returns
    -------
    inequity : float, or ndarray of shape (n_items,)
        Lower is better. Queries in which no row is relevant deserve nothing that could be divided: they are left out, with an
        `UndefinedMetricWarning`.

    Notes
    -----
    FairRankTune's IAA, as of its commit 8a06ae0, returns after the first ranking of a history, and divides neither attention nor
    relevance by their sums.

    References
    ----------
    A. Biega, K. Gummadi and G. Weikum. Equity of Attention: Amortizing Individual Fairness in Rankings. SIGIR 2018.

    Examples
    --------
    Two equal items take turns at the only rank that is seen:

    >>> from skfairrank.metrics import attention_inequity
    >>> y, qid, items = [1, 1, 1, 1], [1, 1, 2, 2], ["a", "b", "a", "b"]
    >>> attention_inequity(y, [2, 1, 1, 2], qid=qid, items=items, k=1)
    0.0
    >>> # a gets 2 of 1, b none of 1
    >>> attention_inequity(y, [2, 1, 2, 1], qid=qid, items=items, k=1, reduce="sum")
    2.0
    """
    if reduce is not None and (not isinstance(reduce, str) or reduce not in ("mean", "sum")):
        raise ValueError(f'reduce={reduce!r}: choose "mean", "sum", or None for the value of each item.')
    ranked = Ranked(s, qid, policy, n_samples, random_state)
    attention, queries, y = ranked.exposure(k, patience), ranked.queries, ranked.relevances(y)
    weight = queries.weights(query_weight)
    weight = np.ones(queries.n_queries) if weight is None else weight
    deserved, given = (np.add.reduceat(values, ranked.starts) for values in (y, attention))
    counts = np.where(deserved > 0, weight, 0.0)
    if lost := int(((weight > 0) & ~(deserved > 0)).sum()):
        warn_caller(
            f"attention_inequity is undefined in {lost} of {int((weight > 0).sum())} queries (they have no relevant row): "
            "they are left out of the history.",
            UndefinedMetricWarning,
        )
    sizes = queries.sizes
    too_much = attention / np.repeat(given, sizes) - y / np.repeat(np.where(deserved > 0, deserved, 1.0), sizes)
    too_much *= np.repeat(counts, sizes)
    if items is None:
        too_much = queries.ungroup(too_much)
    else:
        known = Queries.from_qid(items, queries.n_rows, name="items")
        too_much = np.bincount(queries.group(known.codes), weights=too_much, minlength=known.n_queries)
    if reduce is None:
        return too_much
    total = float(np.abs(too_much).sum())
    if reduce == "sum":
        return total
    return total / float(counts.sum()) if counts.any() else float("nan")
