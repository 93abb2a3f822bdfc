"""Selection and scoring rates of groups over the highest group's, as laws on hiring tools ask for them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skfairrank._checks import check_scores, names_queries
from skfairrank._queries import Queries
from skfairrank._sensitive import check_group_columns, counting_unknown
from skfairrank.policies import Deterministic
from skfairrank.utilities import discounts


@names_queries
def impact_ratios(s, *, qid, sensitive_features, k=10, rate="selection", min_share=0.0):
    """Impact ratios as New York City's Local Law 144 defines them (rules of the DCWP, section 5-301), by group.

    A group's selection rate is the share of its rows that are among the first k of their query, a tie at the border shared out
    alike. Its scoring rate is the share of its rows whose score is above the median of all rows. Its impact ratio is its rate
    over that of the group with the highest. Several attributes are also crossed. Rows of unknown group are counted, and have no
    ratio. A ratio below .8 is often taken for adverse impact; in small groups chance alone makes such ratios.

    Parameters
    ----------
    s : array-like, shape (n_rows,)
        Scores; higher is better. For "scoring" they must be comparable between queries.
    qid : array-like, shape (n_rows,)
        The query of each row, such as an opening, in any order.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), DataFrame, or dict of name to array
        The groups of each row by one attribute or several, missing where unknown.
    k : int, default=10
        How many of each query are selected.
    rate : {"selection", "scoring"}, default="selection"
    min_share : float, default=0.0
        Groups with a smaller share of the rows have no ratio, and are not the highest: the rules allow an auditor to leave out
        groups of less than .02.

    Returns
    -------
    table : DataFrame
        Index (attribute, group), with "sex x race" for crossed ones and "unknown" for missing groups; columns ``n`` (rows),
        ``selection_rate`` or ``scoring_rate``, and ``impact_ratio``.

    Raises
    ------
    ValueError
        If an attribute is continuous, a parameter is out of range, or rows do not fit each other.

    Examples
    --------
    >>> from skfairrank.inspection import impact_ratios
    >>> impact_ratios(
    ...     [4, 3, 2, 1], qid=[0] * 4, sensitive_features={"sex": list("fmmm")}, k=2
    ... ).round(3)
                     n  selection_rate  impact_ratio
    attribute group
    sex       f      1           1.000         1.000
              m      3           0.333         0.333
    """
    if rate not in ("selection", "scoring"):
        raise ValueError(f'rate={rate!r}: choose "selection" or "scoring".')
    if not 0.0 <= min_share < 1.0:
        raise ValueError(f"min_share={min_share!r}: give a share of all rows, at least 0 and less than 1.")
    s = check_scores(s, name="s")
    queries = Queries.from_qid(qid, len(s))
    read: dict = {"compared_by": "impact_ratios", "unknown_groups": "leave_out"}
    groups = check_group_columns(sensitive_features, len(s), **read)
    if len(groups) > 1:
        groups = check_group_columns(sensitive_features, len(s), crossed=True, **read)
    if rate == "selection":
        first = (discounts(int(queries.sizes.max()), k) > 0).astype(np.float64)
        chosen = queries.ungroup(Deterministic().expected_discounts(queries.group(s), queries, first))
    else:
        chosen = (s > np.median(s)).astype(np.float64)
    tables = {}
    for attribute, (labels, codes) in groups.items():
        names, counted = counting_unknown(labels, codes)
        n = np.bincount(counted, minlength=len(names))
        rates = np.bincount(counted, chosen, len(names)) / n
        compared = (np.arange(len(names)) < len(labels)) & (n >= min_share * len(s))
        highest = rates[compared].max(initial=0.0)
        ratios = np.where(compared & (highest > 0), rates / (highest or 1.0), np.nan)
        columns = {"n": n, f"{rate}_rate": rates, "impact_ratio": ratios}
        tables[attribute] = pd.DataFrame(columns, index=pd.Index(names, name="group"))
    return pd.concat(tables, names=["attribute"])
