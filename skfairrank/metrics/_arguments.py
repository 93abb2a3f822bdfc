"""What metrics make of scores, queries and a policy before they look at relevances or groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from skfairrank._checks import check_scores
from skfairrank._gains import discounts
from skfairrank._queries import Queries
from skfairrank.policies import Policy

__all__ = ["scored_rows", "ranked_rows"]


def ranked_rows(s, qid, policy: Policy, k=None) -> tuple[Queries, np.ndarray, np.ndarray]:
    """The queries, the discount of each rank (zero beyond k), and the expected discount of each row, grouped by query.

    Parameters
    ----------
    s : array-like of shape (n_rows,), or None
        Scores; None where the policy needs none.
    qid : array-like, shape (n_rows,)
    policy : Policy
    k : int, optional
    """
    queries, grouped = scored_rows(s, qid, policy)
    discount = discounts(int(queries.sizes.max()), k)
    return queries, discount, policy.expected_discounts(grouped, queries, discount)


def scored_rows(s, qid, policy: Policy) -> tuple[Queries, Any]:
    """The queries, and the checked scores grouped by query; None where the policy needs none and there are none."""
    if s is None and not getattr(policy, "needs_scores", True):
        return Queries.from_qid(qid, 0 if qid is None else _num_samples(qid)), None
    s = check_scores(s, name="s")
    queries = Queries.from_qid(qid, len(s))
    return queries, queries.group(s)
