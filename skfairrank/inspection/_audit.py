"""What must be shown to call a ranker fair: accuracy, stability under hypotheticals, exposure of groups."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral

import numpy as np
import pandas as pd

from skfairrank._checks import check_relevance
from skfairrank._partitions import ByPartition, is_dask
from skfairrank._random import as_generator
from skfairrank._sensitive import check_group_columns, check_groups, counting_unknown
from skfairrank.fair_metrics._linear import fitted_metric
from skfairrank.inspection._nearest import nearest_queries, steps_to_metric, transformed
from skfairrank.inspection._order_changes import STATISTICS, Worst
from skfairrank.inspection._rankings import Hypothetical, Rankings
from skfairrank.metrics._exposure import exposure_difference, exposure_disparity
from skfairrank.metrics._per_query import PerQuery
from skfairrank.metrics._quality import kendall_tau, ndcg, warn_unless_order_matters
from skfairrank.policies import Deterministic, PlackettLuce, Policy, expected_exposure, make_policy
from skfairrank.utilities import discounts, warn_of_exponents


def audit(
    rankers,
    X=None,
    y=None,
    *,
    qid,
    sensitive_features=None,
    unknown_groups="error",
    hypotheticals=None,
    X_hypothetical=None,
    metric=None,
    reference=None,
    query_weight=None,
    clusters=None,
    **settings,
):
    r"""Accuracy and fairness of one or several rankers on the same queries, with standard errors.

    Columns, each a mean over queries of a public metric:

    - ``ndcg``: `ndcg_score`, of the list by descending scores.
    - ``stochastic_ndcg``: `stochastic_ndcg_score`, in expectation under the Plackett-Luce policy.
    - ``tau``: `kendall_tau_score` of the scores h of the rows and h' of their hypotheticals; 1 is perfectly stable.
    - ``top_changed``: share of queries whose first item is another one under the hypothetical.
    - ``score_change``: :math:`\frac12 \|h - h'\|^2`, as in `fairness_certificate` and the invariance regulariser.
    - ``disparity``: `group_exposure_disparity` under `policy`, exposure per merit.
    - ``exposure_difference``: `group_exposure_difference` under `policy`, without merit.

    The first two need nothing more, the next three hypotheticals, the last two `sensitive_features`. A constant ranker is
    perfectly fair: read all columns together, and beside those of a plain and of a random ranker.

    Labels of groups that are wrong make every gap look smaller: `gaps_under_wrong_labels` says by how much. What an earlier
    screening did cannot be seen in lists that were screened.

    All scores multiplied by .1 sort every list as before; by default ``stochastic_ndcg`` and ``score_change`` alone see
    it. Under ``policy="plackett_luce"`` the exposure columns see it too, and a softer policy looks fairer.

    Parameters
    ----------
    rankers : fitted estimator, scores, or dict of name to estimator or scores
        Estimators with `predict` or `decision_function`: ours, pipelines, searches, boosted rankers. Scores, one for each row,
        where rankings come without an estimator: an array, a column, or a table whose columns are the scores of several.
    X : table, shape (n_rows, n_features), optional
        What estimators score. Scores need none.
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,), optional
        The group of each row. An estimator that asks for it when it predicts (`skfairrank.postprocessing`) gets it too, for
        hypothetical rows that of the rows whose place they take.
    unknown_groups : {"error", "leave_out"}, default="error"
        What missing values in `sensitive_features` are. "leave_out": these rows have their ranks, and count in no group.
    hypotheticals : function, table, scores, list or dict of these, or Hypotheticals, optional
        What the items might as well have been: a function X -> X', such as one that flips a sensitive column (it gets a copy), a
        table like X, or hypothetical scores (of several rankers a dict or table by their names). Of several hypotheticals
        that which changes the most pairs of a query counts for it.
    X_hypothetical : table like X, optional
        Hypothetical rows.
    metric : fitted SensitiveSubspaceMetric, optional
        Where there are no hypotheticals: each query's hypothetical is its nearest other query of X in this metric. A
        ranker's `metric_` measures what the ranker sees: X goes through the steps before it, in a pipeline or a search
        around one. A metric that no ranker here has measures X; beside pipelines its columns must have names, those of X.
    reference : str, optional
        One of the names in `rankers`: adds the difference of each ranker to this one, paired by query.
    query_weight : array-like or mapping, optional
        What each query counts in every mean, >= 0: one number per row, equal within a query, or per query, as a mapping from
        id to number or in sorted order of the ids. None: all count alike.
    clusters : array-like of shape (n_rows,), or mapping, optional
        The cluster of each row's query, such as the firm whose opening it is, or of each query by its id. Queries of a cluster
        may depend on each other: standard errors and p-values rest on the clusters, each with the sum of its queries' weights.
    **settings
        Of the metrics. ``policy`` ("deterministic", "plackett_luce" or a policy, default "deterministic"): whose exposure
        ``disparity`` and ``exposure_difference`` measure: that of the list by descending scores, which users see; of rankings
        drawn from the scores' Plackett-Luce policy, as in the paper; or of another policy, such as
        ``skfairrank.policies.PlackettLuce(temperature=0.5)``, which brings settings of its own. A ranker that draws its rankings
        by a rule of its own (`skfairrank.postprocessing.ExposureLPRanker`) is judged by that rule, in all columns but those of
        hypothetical rows. ``k`` (int, optional): only ranks 1 to k count, for both NDCG and the exposure columns. ``n_samples``
        (int or "exact", default 100): rankings sampled for each query, or exact expectations for small queries; for what is drawn
        by these names. ``random_state``: all rankers are judged by the same random numbers; an int gives the numbers that each
        metric gives with that int.

    Returns
    -------
    table : DataFrame
        A row for each ranker; for each column above its mean and, in ``<name>_se``, the standard error of this mean:
        the standard deviation over the n queries in which it is defined, by the root of n (nan for a single query). With
        weights :math:`w_q` of the values :math:`x_q` it is
        :math:`\sqrt{n / (n - 1) \sum_q w_q^2 (x_q - \bar x)^2} / \sum_q w_q`, with `clusters` the same of the sums of
        :math:`w_q (x_q - \bar x)` over their queries. With a `reference` also ``<name>_difference``, the
        mean over the queries in which both are defined of the ranker's value less the reference's, its standard error in
        ``<name>_difference_se``, and in ``<name>_difference_p`` the two-sided p-value of a paired t test with n - 1 degrees of
        freedom: how often rankers that do not differ would differ as much. With many columns and rankers some p-values are
        small by chance.

        Of Dask collections, whose partitions hold whole queries, the table is that of the same rows in memory; rankings are drawn
        partition by partition, by other random numbers. There `metric` finds no neighbours, and `clusters` is a mapping.

    Raises
    ------
    ValueError, TypeError
        If rows and labels do not fit each other; if hypothetical rows have another shape, other columns or another kind of values
        than X, or missing or infinite values where X has none; if the features in which `metric` measures cannot be told; if
        `reference` is none of the names.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.inspection import audit
    >>> X = [[0.0, 1], [1, 0], [2, 0], [0, 0], [1, 1]]
    >>> y, qid = [0, 1, 2, 0, 1], [0, 0, 0, 1, 1]
    >>> by_first = LinearRegression().fit([[0.0, 0], [1, 0], [0, 1]], [0, 1, 0])
    >>> flipped = [[a, 1 - b] for a, b in X]
    >>> table = audit(
    ...     {"by the first feature": by_first},
    ...     X,
    ...     y,
    ...     qid=qid,
    ...     X_hypothetical=flipped,
    ...     n_samples="exact",
    ... )
    >>> table[["tau", "top_changed"]].values.tolist()
    [[1.0, 0.0]]
    """
    given = {"rankers": rankers, "X": X, "y": y, "qid": qid, "sensitive_features": sensitive_features, **settings}
    given |= {"unknown_groups": unknown_groups, "reference": reference, "metric": metric}
    given |= {"hypotheticals": hypotheticals, "X_hypothetical": X_hypothetical}
    if not is_dask(given):
        columns, queries = _columns(**given)
        weight = queries.weights(query_weight)
    else:
        if metric is not None and hypotheticals is None and X_hypothetical is None:
            raise ValueError("metric finds no neighbours in other partitions of Dask collections: give hypotheticals.")
        found = ByPartition(_columns, given | {"query_weight": query_weight})
        queries, weight, parts = found.queries, found.weight, [columns for columns, _ in found.results]
        columns = {
            name: {column: PerQuery.joined([part[name][column] for part in parts], found.order) for column in row}
            for name, row in parts[0].items()
        }
    table = with_errors(columns, reference, weight, queries.clusters(clusters))
    return pd.DataFrame.from_dict(table, orient="index")


def _columns(
    rankers, X, y, qid, sensitive_features, unknown_groups, reference, metric, hypotheticals, X_hypothetical, **settings
):
    """For each ranker the columns of `audit` as `PerQuery`, and the queries."""
    y = check_relevance(y)
    warn_of_exponents(y)
    rankings = Rankings(rankers, X, qid=qid, sensitive_features=sensitive_features, n_rows=len(y))
    check_reference(reference, rankings)
    groups: dict = {}
    if sensitive_features is not None:
        groups[None] = check_groups(sensitive_features, len(y), compared_by="audit", unknown_groups=unknown_groups)
    if hypotheticals is not None or X_hypothetical is not None:
        candidates = rankings.hypotheticals(hypotheticals, X_hypothetical, metric)
    else:
        candidates = iter([] if metric is None else [_nearest(metric, rankings, qid)])
    worst = {name: Worst(s, rankings.queries, "discordance") for name, s in rankings.scores.items()}
    for hypothetical in candidates:
        for name, other in rankings.under(hypothetical).items():
            worst[name].add(hypothetical.name, other)
    measured = measures(rankings, y, worst, groups, **settings)
    columns = {name: of_lists | of_groups.get(None, {}) for name, (of_lists, of_groups) in measured.items()}
    return columns, rankings.queries


def check_reference(reference, rankings: Rankings) -> None:
    if reference is not None and reference not in rankings.scores:
        raise ValueError(f"reference={reference!r} is none of the rankers: choose one of {list(rankings.scores)}.")


def measures(rankings: Rankings, y, worst, groups, *, policy="deterministic", k=None, n_samples=100, random_state=None):
    """For each ranker the columns of `audit` without groups, and for each attribute those of groups, as `PerQuery`.

    Parameters
    ----------
    rankings : Rankings
    y : ndarray of float64, shape (n_rows,)
    worst : dict of name to Worst
    groups : dict of attribute to (labels, codes of the rows)
    """
    queries = rankings.queries
    y, codes = queries.group(y), {attribute: queries.group(codes) for attribute, (_, codes) in groups.items()}
    warn_unless_order_matters(y, queries, "ndcg")
    # An int seeds each metric as it would by itself; everything else gives one seed for all rankers.
    is_seed = isinstance(random_state, Integral)
    seed = int(random_state) if is_seed else int(as_generator(random_state).integers(2**63))
    sampled = {"n_samples": n_samples, "random_state": seed} if isinstance(policy, str) else {}
    in_order, drawn, shown = Deterministic(), PlackettLuce(1.0, n_samples, seed), make_policy(policy, **sampled)
    policies: list[Policy] = [in_order, drawn] if shown in (in_order, drawn) else [in_order, drawn, shown]
    table = discounts(int(queries.sizes.max()), k)
    everywhere, found = np.ones(queries.n_queries, bool), {}
    for name, s in rankings.scores.items():
        own = rankings.policy(name)
        exposures = [expected_exposure(own or one, s, queries, k) for one in policies]
        seen = exposures[policies.index(shown)]
        columns = {"ndcg": ndcg(y, exposures[0], queries, table, "ndcg")}
        # One warning is enough for both.
        columns["stochastic_ndcg"] = replace(ndcg(y, exposures[1], queries, table, "ndcg"), is_selective=True)
        if worst[name].names:
            other = worst[name].scores
            columns["tau"] = kendall_tau(s, other, queries)
            for statistic in ("top_changed", "score_change"):
                changes = STATISTICS[statistic](s, other, queries)
                columns[statistic] = PerQuery(changes, everywhere, statistic, "")
        of_groups = {
            attribute: {
                "disparity": exposure_disparity(y, group, seen, queries),
                "exposure_difference": exposure_difference(group, seen, queries),
            }
            for attribute, group in codes.items()
        }
        found[name] = columns, of_groups
    return found


def with_errors(rows: dict, reference=None, weight=None, clusters=None) -> dict:
    """Of each row the mean of each column, its standard error, and the difference to the row `reference`, if there is one."""
    rows = {name: {column: one.weighted(weight, clusters) for column, one in row.items()} for name, row in rows.items()}
    for one in next(iter(rows.values()), {}).values():  # where a metric is undefined does not depend on the ranker
        one.warn()
    table: dict = {}
    for name, row in rows.items():
        table[name] = {}
        for column, one in row.items():
            table[name] |= {column: one.mean, f"{column}_se": one.standard_error}
            if reference is not None:
                less = one.minus(rows[reference][column])
                table[name] |= {f"{column}_difference": less.mean, f"{column}_difference_se": less.standard_error}
                table[name][f"{column}_difference_p"] = less.p_value
    return table


def _nearest(metric, rankings: Rankings, qid) -> Hypothetical:
    """Each query's nearest other query, for each ranker in the features that the metric measures."""
    metric, X, found = fitted_metric(metric), rankings.table("metric looks for neighbours among rows"), {}
    spaces = steps_to_metric(metric, rankings.estimators, X)
    for steps in set(spaces.values()):
        Z = transformed(steps, X, qid)
        found[steps] = nearest_queries(Z, Z, qid=qid, qid_reference=qid, metric=metric).hypothetical(X)
    return Hypothetical("nearest query", {name: found[steps] for name, steps in spaces.items()}, None)


def exposure_by_group(
    rankers,
    X=None,
    y=None,
    *,
    qid,
    sensitive_features,
    crossed=False,
    policy="deterministic",
    k=10,
    n_samples=100,
    random_state=None,
    query_weight=None,
    clusters=None,
    reference=None,
):
    r"""Exposure, merit and share of the top of each group, with standard errors.

    In one query of n items, whose item i has relevance :math:`y_i` and expected exposure
    :math:`v_i = \mathbb{E}[1 / \log_2(1 + r_i)]`, group G of :math:`n_G` items has

    - ``exposure``: :math:`v_G`, the mean of its :math:`v_i`;
    - ``rank``: the mean of its expected ranks, 1 is first;
    - ``merit``: :math:`M_G`, the mean of its :math:`y_i`;
    - ``exposure_per_merit``: :math:`v_G / M_G`, where the group has merit; `group_exposure_disparity` compares these;
    - ``share_of_items``: :math:`n_G / n`;
    - ``share_of_top``: the expected share of the first min(k, n) ranks that the group has.

    The first four are averaged over the queries in which they are defined: where the group is present, and has merit. The
    shares are averaged over all queries, so that those of an attribute's groups sum to 1. A group that differs from others in
    exposure may differ in merit: the table says what is, not whether it is just. Merit is taken at its word.

    Parameters
    ----------
    rankers : fitted estimator, scores, or dict of name to estimator or scores
        As for `audit`.
    X : table, shape (n_rows, n_features), optional
        What estimators score. Scores need none.
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), DataFrame, or dict of name to array
        The groups of each row by one attribute or several; any number of groups. Rows without a value are counted as the group
        "unknown".
    crossed : bool, default=False
        Whether several attributes are also crossed: a group for each combination that occurs; unknown where one of them is.
    policy : "deterministic", "plackett_luce" or a policy, default="deterministic"
        A ranker that draws its rankings by a rule of its own (`skfairrank.postprocessing.ExposureLPRanker`) is judged by that
        rule instead.
    k : int, default=10
        What counts as the top. Exposure is that of all ranks.
    n_samples : int or "exact", default=100
    random_state : None, int, RandomState or Generator
        All rankers are judged by the same random numbers where it is an int.
    query_weight : array-like or mapping, optional
        What each query counts in every mean, as in `audit`.
    clusters : array-like of shape (n_rows,), or mapping, optional
        For the standard errors, as in `audit`.
    reference : str, optional
        One of the rankers' names: adds the difference of each group's exposure and rank to those by this ranker, paired by query,
        as in `audit`.

    Returns
    -------
    table : DataFrame
        Index (ranker, attribute, group); columns ``n_items``, ``n_queries`` (in which the group is present), and those above,
        each with its standard error in ``<name>_se``.

    Raises
    ------
    ValueError
        If an attribute is continuous, or rows do not fit each other.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.inspection import exposure_by_group
    >>> X, y, qid = [[3.0], [2.0], [1.0], [1.0], [2.0]], [1, 1, 1, 0, 1], [0, 0, 0, 1, 1]
    >>> ranker = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> table = exposure_by_group(
    ...     ranker, X, y, qid=qid, sensitive_features=list("abbab"), k=1
    ... )
    >>> table.droplevel(["ranker", "attribute"])[
    ...     ["exposure", "merit", "share_of_items", "share_of_top"]
    ... ].round(3)
           exposure  merit  share_of_items  share_of_top
    group
    a         0.815    0.5           0.417           0.5
    b         0.783    1.0           0.583           0.5
    """
    y = check_relevance(y)
    rankings = Rankings(rankers, X, qid=qid, sensitive_features=sensitive_features, n_rows=len(y))
    check_reference(reference, rankings)
    read = check_group_columns(
        sensitive_features, len(y), compared_by="this table", crossed=crossed, unknown_groups="leave_out"
    )
    attributes = {name: counting_unknown(labels, codes) for name, (labels, codes) in read.items()}
    chosen = make_policy(policy, n_samples=n_samples, random_state=random_state)
    weight, clusters = rankings.queries.weights(query_weight), rankings.queries.clusters(clusters)
    return exposure_table(rankings, y, attributes, chosen, k, weight=weight, clusters=clusters, reference=reference)


def exposure_table(
    rankings: Rankings, y, attributes: dict, policy, k: int, *, weight=None, clusters=None, reference=None
):
    """`exposure_by_group` of checked arguments; `attributes` holds (labels, codes of the rows) by name."""
    queries = rankings.queries
    y, top = queries.group(y), (discounts(int(queries.sizes.max()), k) > 0).astype(np.float64)
    places, query = np.minimum(queries.sizes, int(k)), np.repeat(np.arange(queries.n_queries), queries.sizes)
    ranks = np.arange(1.0, queries.sizes.max() + 1.0)
    rows: dict = {}
    of_queries: dict = {}
    for name, s in rankings.scores.items():
        shown = rankings.policy(name) or policy
        expected = [shown.expected_discounts(s, queries, values) for values in (discounts(len(ranks)), top, ranks)]
        for attribute, (labels, codes) in attributes.items():
            codes = queries.group(codes)
            for g, label in enumerate(labels):
                member = (codes == g).astype(np.float64)
                count, merit, seen, first, rank = (
                    np.bincount(query, weights=member * values) for values in (np.ones(len(y)), y, *expected)
                )
                here, everywhere = count > 0, np.ones(len(count), bool)
                measures = {
                    "exposure": (seen / np.maximum(count, 1), here),
                    "rank": (rank / np.maximum(count, 1), here),
                    "merit": (merit / np.maximum(count, 1), here),
                    "exposure_per_merit": (seen / np.where(merit > 0, merit, 1.0), merit > 0),
                    "share_of_items": (count / queries.sizes, everywhere),
                    "share_of_top": (first / places, everywhere),
                }
                of_queries[name, attribute, label] = {
                    column: PerQuery(values, defined, column, "", is_selective=True).weighted(weight, clusters)
                    for column, (values, defined) in measures.items()
                }
                rows[name, attribute, label] = {"n_items": int(count.sum()), "n_queries": int(here.sum())}
    for (name, attribute, label), columns in of_queries.items():
        row = rows[name, attribute, label]
        for column, one in columns.items():
            row |= {column: one.mean, f"{column}_se": one.standard_error}
        for column in () if reference is None else ("exposure", "rank"):
            less = columns[column].minus(of_queries[reference, attribute, label][column])
            row |= {f"{column}_difference": less.mean, f"{column}_difference_se": less.standard_error}
            row[f"{column}_difference_p"] = less.p_value
    index = pd.MultiIndex.from_tuples(list(rows), names=["ranker", "attribute", "group"])
    return pd.DataFrame(list(rows.values()), index=index)


def gaps_under_wrong_labels(exposure, wrong=(0.05, 0.1, 0.2)) -> pd.DataFrame:
    r"""What wrong group labels would hide of the groups' gap in exposure: a table to be read beside every gap.

    Let a share e of the labels be wrong at random: each of the K groups' rows has, with probability e, the label of another
    group, each of them alike. Then the mean exposures of those labelled alike are mixtures of the groups' own, and lie closer
    together. ``seen`` is the gap that would be seen if the given labels were right, and so many of them became wrong.
    ``corrected`` is the gap that there is if so many of the given labels are wrong: the mixtures solved for the groups' own
    means. Labels that are wrong for a reason (because of the rank, say) can hide more.

    Parameters
    ----------
    exposure : DataFrame
        From `exposure_by_group`.
    wrong : sequence of float, default=(0.05, 0.1, 0.2)
        Shares of wrong labels, each in [0, 1).

    Returns
    -------
    table : DataFrame
        Index (ranker, attribute, wrong); ``gap`` (largest less smallest exposure of a group), ``seen`` and ``corrected``. The
        latter is nan where a group is so small that its labels could all be wrong. Rows of unknown group are left out.

    Examples
    --------
    >>> from skfairrank.inspection import exposure_by_group, gaps_under_wrong_labels
    >>> exposure = exposure_by_group(
    ...     [4, 3, 2, 1], y=[1] * 4, qid=[0] * 4, sensitive_features={"sex": list("ffmm")}
    ... )
    >>> gaps_under_wrong_labels(exposure, wrong=[0.1]).round(3)
                              gap   seen  corrected
    ranker attribute wrong
    scores sex       0.1    0.350  0.280      0.438
    """
    found = []
    for (ranker, attribute), rows in exposure.groupby(level=["ranker", "attribute"], sort=False):
        rows = rows[(rows.index.get_level_values("group") != "unknown") & (rows["n_items"] > 0)]
        means, share, k = rows["exposure"].to_numpy(), (rows["n_items"] / rows["n_items"].sum()).to_numpy(), len(rows)
        for e in wrong if k > 1 else ():
            given = np.where(np.eye(k, dtype=bool), 1.0 - e, e / (k - 1))  # P(labelled h | of group g)
            seen = (given.T @ (share * means)) / (given.T @ share)
            corrected, true = np.nan, np.linalg.lstsq(given.T, share, rcond=None)[0]
            if e < 1.0 - 1.0 / k and (true > 1e-9).all():
                corrected = np.ptp(
                    np.linalg.solve(given.T * true / share[:, None], means)
                )  # by P(of group g | labelled h)
            found.append((ranker, attribute, e, np.ptp(means), np.ptp(seen), corrected))
    index = ["ranker", "attribute", "wrong"]
    return pd.DataFrame(found, columns=[*index, "gap", "seen", "corrected"]).set_index(index)
