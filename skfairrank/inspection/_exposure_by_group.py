"""What each group gets: a table with a row for each group, for any number of groups and attributes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skfairrank._checks import check_relevance
from skfairrank._sensitive import check_group_columns
from skfairrank.inspection._rankings import Rankings
from skfairrank.metrics._per_query import PerQuery
from skfairrank.policies import expected_exposure, make_policy
from skfairrank.utilities import discounts


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
):
    r"""Exposure, merit and share of the top of each group, with standard errors.

    In one query of n items, whose item i has relevance :math:`y_i` and expected exposure
    :math:`v_i = \mathbb{E}[1 / \log_2(1 + r_i)]`, group G of :math:`n_G` items has

    - ``exposure``: :math:`v_G`, the mean of its :math:`v_i`;
    - ``merit``: :math:`M_G`, the mean of its :math:`y_i`;
    - ``exposure_per_merit``: :math:`v_G / M_G`, where the group has merit; `group_exposure_disparity` compares these;
    - ``share_of_items``: :math:`n_G / n`;
    - ``share_of_top``: the expected share of the first min(k, n) ranks that the group has.

    The first three are averaged over the queries in which they are defined: where the group is present, and has merit. The
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
        The groups of each row by one attribute or several; any number of groups.
    crossed : bool, default=False
        Whether several attributes are also crossed: a group for each combination that occurs.
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

    Returns
    -------
    table : DataFrame
        Index (ranker, attribute, group); columns ``n_items``, ``n_queries`` (in which the group is present), and those above,
        each with its standard error in ``<name>_se``.

    Raises
    ------
    ValueError
        If an attribute is continuous or has missing values, or rows do not fit each other.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.inspection import exposure_by_group
    >>> X, y, qid = [[3.0], [2.0], [1.0], [1.0], [2.0]], [1, 1, 1, 0, 1], [0, 0, 0, 1, 1]
    >>> ranker = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> table = exposure_by_group(ranker, X, y, qid=qid, sensitive_features=list("abbab"), k=1)
    >>> table.droplevel(["ranker", "attribute"])[["exposure", "merit", "share_of_items", "share_of_top"]].round(3)
           exposure  merit  share_of_items  share_of_top
    group
    a         0.815    0.5           0.417           0.5
    b         0.783    1.0           0.583           0.5
    """
    y = check_relevance(y)
    rankings = Rankings(rankers, X, qid=qid, sensitive_features=sensitive_features, n_rows=len(y))
    attributes = check_group_columns(sensitive_features, len(y), compared_by="this table")
    if crossed:
        if len(attributes) < 2:
            raise ValueError(
                "crossed=True needs at least two attributes: give a DataFrame, or a dict of name to groups."
            )
        attributes |= {" x ".join(attributes): _crossed(list(attributes.values()))}
    chosen = make_policy(policy, n_samples=n_samples, random_state=random_state)
    return exposure_table(rankings, y, attributes, chosen, k, rankings.queries.weights(query_weight))


def exposure_table(rankings: Rankings, y, attributes: dict, policy, k: int, weight=None) -> pd.DataFrame:
    """`exposure_by_group` of checked arguments; `attributes` holds (labels, codes of the rows) by name."""
    queries = rankings.queries
    y, top = queries.group(y), (discounts(int(queries.sizes.max()), k) > 0).astype(np.float64)
    places, query = np.minimum(queries.sizes, int(k)), np.repeat(np.arange(queries.n_queries), queries.sizes)
    rows: dict = {}
    for name, s in rankings.scores.items():
        shown = rankings.policy(name) or policy
        exposure, in_top = expected_exposure(shown, s, queries), shown.expected_discounts(s, queries, top)
        for attribute, (labels, codes) in attributes.items():
            codes = queries.group(codes)
            for g, label in enumerate(labels):
                member = (codes == g).astype(np.float64)
                count, merit, seen, first = (
                    np.bincount(query, weights=member * values) for values in (np.ones(len(y)), y, exposure, in_top)
                )
                here, everywhere = count > 0, np.ones(len(count), bool)
                measures = {
                    "exposure": (seen / np.maximum(count, 1), here),
                    "merit": (merit / np.maximum(count, 1), here),
                    "exposure_per_merit": (seen / np.where(merit > 0, merit, 1.0), merit > 0),
                    "share_of_items": (count / queries.sizes, everywhere),
                    "share_of_top": (first / places, everywhere),
                }
                row: dict[str, float] = {"n_items": int(count.sum()), "n_queries": int(here.sum())}
                for column, (values, defined) in measures.items():
                    one = PerQuery(values, defined, column, "", is_selective=True).weighted(weight)
                    row |= {column: one.mean, f"{column}_se": one.standard_error}
                rows[name, attribute, label] = row
    index = pd.MultiIndex.from_tuples(list(rows), names=["ranker", "attribute", "group"])
    return pd.DataFrame(list(rows.values()), index=index)


def _crossed(attributes: list) -> tuple:
    """Labels and codes of the combinations of groups that occur."""
    cells, codes = np.unique(np.column_stack([codes for _, codes in attributes]), axis=0, return_inverse=True)
    labels = [", ".join(str(known[code]) for (known, _), code in zip(attributes, cell, strict=True)) for cell in cells]
    return labels, np.ravel(codes)
