"""What early stopping looks at: the utility of the sorted lists of an evaluation set."""

from __future__ import annotations

import numpy as np

from skfairrank._checks import check_relevance
from skfairrank._queries import Queries
from skfairrank.policies import Deterministic, expected_utility
from skfairrank.utilities import Utility

__all__ = ["SortedUtility"]


class SortedUtility:
    """Mean over queries of the utility of the rows sorted by descending score; what boosting libraries call a metric.

    Trees give many rows the same score, at first all of them. Such rows share the mean over their orders. For a utility that only
    whole rankings know they stand in an order drawn once: evaluation sets often lie in the order of their relevances, and the
    order of rows would then be the best ranking.

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
        qid = np.repeat(np.arange(len(group)), group)
        rows = np.lexsort((np.random.default_rng(0).random(len(qid)), qid))
        queries = Queries.from_qid(qid, len(qid))
        tables = self.utility.tables(check_relevance(y_true)[rows], queries.offsets)
        scores = np.asarray(y_pred, dtype=np.float64)[rows]
        return self.name, float(expected_utility(Deterministic(), scores, queries, tables).mean()), True
