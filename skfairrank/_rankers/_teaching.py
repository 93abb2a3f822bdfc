"""Training data from which no order can be learned: said once, since the fitted ranker would look like any other."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from skfairrank._checks import warn_caller

__all__ = ["warn_if_nothing_can_be_learned"]


def warn_if_nothing_can_be_learned(sizes: np.ndarray, gains: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
    """Warn where every query has one row, or gains that are all equal.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_queries,)
        Number of rows of each query.
    gains : iterable of (gain, offsets)
        Of some queries each, until all have come: gains (n_rows,) grouped by query, and where a query's begin (n_queries + 1,).
        No more are asked for than it takes to find two gains that differ.
    """
    if sizes.max() == 1:
        if len(sizes) > 1:
            warn_caller(
                f"Each of the {len(sizes)} rows is a query of its own, so that there is no order to learn: qid must be equal "
                "for rows that compete with each other (a job opening, a search), not an id of the row."
            )
        return
    if not any(_differ_within(gain, offsets[:-1]) for gain, offsets in gains):
        warn_caller(
            "All relevances are equal within each query, so that there is no order to learn: every ranking is as good as any "
            "other. y must be higher for rows that are to be ranked higher."
        )


def _differ_within(gain, starts) -> bool:
    return bool((np.maximum.reduceat(gain, starts) > np.minimum.reduceat(gain, starts)).any())
