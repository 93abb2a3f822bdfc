"""Expected discount of each row's rank, under the policies that turn scores into rankings.

Every metric of the package but Kendall's tau is linear in these, so a metric and a policy can be combined at will.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels.metrics import tie_averages
from skfairrank._kernels.threads import over_queries
from skfairrank.plackett_luce import expected_discounts
from skfairrank.queries import Queries
from skfairrank.utilities import discounts, sorting_work

__all__ = ["POLICIES", "expected_exposures", "tie_averaged_discounts"]

POLICIES = ("deterministic", "plackett-luce")


def tie_averaged_discounts(s: np.ndarray, queries: Queries, discount: np.ndarray) -> np.ndarray:
    """Mean discount of each row over the orders of rows with tied scores, shape (n_rows,), in the caller's row order.

    Parameters
    ----------
    s : ndarray of float, shape (n_rows,)
        Scores in the caller's row order; higher is better.
    discount : ndarray, shape (at least the size of the largest query,)
        ``discount[r - 1]`` is the discount of rank r.
    """
    out = np.empty(len(s))
    over_queries(
        tie_averages,
        queries.offsets,
        sorting_work(queries.offsets),
        queries.group(s),
        queries.offsets,
        discount,
        out,
    )
    return queries.ungroup(out)


def expected_exposures(s, queries: Queries, *, policy: str, n_samples, random_state) -> np.ndarray:
    """Expected exposure 1 / log2(1 + rank) of each row, in the caller's row order."""
    table = discounts(int(queries.sizes.max()))
    if policy == "deterministic":
        return tie_averaged_discounts(s, queries, table)
    if policy == "plackett-luce":
        return expected_discounts(s, queries, table, n_samples=n_samples, random_state=random_state)
    raise ValueError(f"policy={policy!r}: choose one of {list(POLICIES)}.")
