"""Training data from which no order can be learned: said once, since the fitted ranker would look like any other."""

from __future__ import annotations

import numpy as np

from skfairrank._queries import Queries
from skfairrank._warnings import warn_caller

__all__ = ["warn_if_nothing_can_be_learned"]


def warn_if_nothing_can_be_learned(gain: np.ndarray, queries: Queries) -> None:
    """Warn where every query has one row, or gains that are all equal.

    Parameters
    ----------
    gain : ndarray of float64, shape (n_rows,)
        Grouped by query.
    queries : Queries
    """
    if queries.sizes.max() == 1:
        if queries.n_rows > 1:
            warn_caller(
                f"Each of the {queries.n_rows} rows is a query of its own, so that there is no order to learn: qid must be equal "
                "for rows that compete with each other (a job opening, a search), not an id of the row."
            )
        return
    if not queries.differ_within(gain).any():
        warn_caller(
            "All relevances are equal within each query, so that there is no order to learn: every ranking is as good as any "
            "other. y must be higher for rows that are to be ranked higher."
        )
