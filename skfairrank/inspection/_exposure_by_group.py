"""What each group gets: a table with a row for each group, for any number of groups and attributes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from skfairrank._checks import check_relevance, check_scores
from skfairrank._gains import discounts
from skfairrank._queries import Queries
from skfairrank._sensitive import check_group_columns
from skfairrank.metrics._per_query import PerQuery
from skfairrank.metrics._predictions import own_policy, ranking_scores
from skfairrank.policies import expected_exposure, make_policy

__all__ = ["exposure_by_group"]


def exposure_by_group(
    estimator,
    X,
    y,
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
    estimator : fitted estimator, or dict of name to fitted estimator
    X : array-like, shape (n_rows, n_features)
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
    named = dict(estimator) if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
    if not named:
        raise ValueError("estimator is an empty dict: give at least one fitted ranker.")
    y = check_relevance(y)
    queries = Queries.from_qid(qid, len(y))
    attributes = _attributes(sensitive_features, len(y), crossed)
    chosen, weight = make_policy(policy, n_samples=n_samples, random_state=random_state), queries.weights(query_weight)
    top = (discounts(int(queries.sizes.max()), k) > 0).astype(np.float64)
    rows = {}
    for name, fitted in named.items():
        known = {
            "qid": qid,
            "sensitive_features": sensitive_features,
        }  # for a ranker that asks for them when it predicts
        s = check_scores(ranking_scores(fitted, X, **known), name="scores of X")
        if len(s) != len(y):
            raise ValueError(f"X has {len(s)} rows and y has {len(y)}: they must describe the same rows.")
        s = queries.group(s)
        own = own_policy(fitted, X, **known)
        shown = chosen if own is None else own
        exposure, in_top = expected_exposure(shown, s, queries), shown.expected_discounts(s, queries, top)
        for attribute, (labels, codes) in attributes.items():
            columns = _Columns(queries, queries.group(codes), queries.group(y), exposure, in_top, int(k))
            for g, label in enumerate(labels):
                rows[name, attribute, label] = columns.of_group(g, weight)
    return pd.DataFrame(
        list(rows.values()), index=pd.MultiIndex.from_tuples(list(rows), names=["ranker", "attribute", "group"])
    )


class _Columns:
    """Sums over the items of each group in each query."""

    def __init__(self, queries: Queries, group, y, exposure, in_top, k):
        self.group, self.places, self.sizes = group, np.minimum(queries.sizes, k), queries.sizes
        self.values, self.which = (
            (np.ones(len(y)), y, exposure, in_top),
            np.repeat(np.arange(len(self.sizes)), self.sizes),
        )

    def of_group(self, g: int, weight) -> dict[str, float]:
        rows = np.flatnonzero(self.group == g)
        count, merit, exposure, in_top = (
            np.bincount(self.which[rows], weights=values[rows], minlength=len(self.sizes)) for values in self.values
        )
        here, everywhere = count > 0, np.ones(len(count), bool)
        measures = {
            "exposure": (exposure / np.maximum(count, 1), here),
            "merit": (merit / np.maximum(count, 1), here),
            "exposure_per_merit": (exposure / np.where(merit > 0, merit, 1.0), merit > 0),
            "share_of_items": (count / self.sizes, everywhere),
            "share_of_top": (in_top / self.places, everywhere),
        }
        row: dict[str, float] = {"n_items": len(rows), "n_queries": int(here.sum())}
        for name, (values, defined) in measures.items():
            measure = PerQuery(values, defined, name, "", is_selective=True).weighted(weight)
            row |= {name: measure.mean, f"{name}_se": measure.standard_error}
        return row


def _attributes(sensitive_features, n_rows: int, crossed: bool) -> dict:
    """(labels, codes) of each attribute by its name, and of their crossing."""
    found: dict = check_group_columns(sensitive_features, n_rows, compared_by="this table")
    if crossed:
        if len(found) < 2:
            raise ValueError(
                "crossed=True needs at least two attributes: give a DataFrame, or a dict of name to groups."
            )
        codes = np.column_stack([codes for _, codes in found.values()])
        cells, crossing = np.unique(codes, axis=0, return_inverse=True)
        labels = [
            ", ".join(str(known[code]) for (known, _), code in zip(found.values(), cell, strict=True)) for cell in cells
        ]
        found[" x ".join(map(str, found))] = (labels, np.ravel(crossing))
    return found
