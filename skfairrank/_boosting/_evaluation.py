"""What early stopping looks at: the utility of the sorted lists of an evaluation set."""

from __future__ import annotations

import numpy as np

from skfairrank._validation import check_relevance
from skfairrank.utilities import Utility

__all__ = ["SortedUtility"]


class SortedUtility:
    """Mean over queries of the utility of the rows sorted by descending score; what boosting libraries call a metric.

    Trees give many rows the same score, at first all of them. Such ties are broken by numbers drawn once, since evaluation sets
    often lie in the order of their relevances, and the order of rows would then be the best ranking.

    Parameters
    ----------
    utility : Utility
        Named by its class and k, such as "ndcg@10".
    """

    def __init__(self, utility: Utility):
        k = getattr(utility, "k", None)
        self.utility, self.name = utility, type(utility).__name__.lower() + ("" if k is None else f"@{k}")

    def __call__(self, y_true, y_pred, weight, group):
        """The name, the value, and that more is better, as LightGBM asks.

        Parameters
        ----------
        y_true, y_pred : ndarray of float, shape (n_rows,)
            Relevances and scores, query by query.
        weight : ignored
        group : ndarray of int, shape (n_queries,)
            Numbers of rows.
        """
        sizes = np.asarray(group, dtype=np.int64)
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        gain, discount, stay = self.utility.tables(check_relevance(y_true), offsets)
        lots = np.random.default_rng(0).random(len(y_pred))
        order = np.lexsort((lots, -np.asarray(y_pred), np.repeat(np.arange(len(sizes)), sizes)))
        worth = gain[order] * discount[np.arange(len(order)) - np.repeat(offsets[:-1], sizes)]
        if stay is not None:
            worth *= np.concatenate([_reach(stay[rows]) for rows in np.split(order, offsets[1:-1])])
        return self.name, float(worth.sum() / len(sizes)), True


def _reach(stay: np.ndarray) -> np.ndarray:
    """The share of users who get to each rank, of those who stay after a row with these chances."""
    return np.r_[1.0, np.cumprod(stay[:-1])]
