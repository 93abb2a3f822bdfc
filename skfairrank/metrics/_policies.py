"""Policies: what turns scores into rankings, as the expected discount of each row's rank.

Every metric of the package but Kendall's tau is linear in these discounts, so any metric can be combined with any policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skfairrank._gains import discounts, sorting_work
from skfairrank._kernels.metrics import tie_averages
from skfairrank._queries import Queries
from skfairrank._threads import over_queries
from skfairrank.plackett_luce import grouped_expected_discounts

__all__ = ["Deterministic", "PlackettLuce", "Policy", "expected_exposure", "make_policy"]


class Policy(Protocol):
    """What a metric asks of a policy."""

    def expected_discounts(self, s: np.ndarray, queries: Queries, discount: np.ndarray) -> np.ndarray:
        """Expected discount of each row's rank, shape (n_rows,).

        Parameters
        ----------
        s : ndarray of float, shape (n_rows,)
            Scores, grouped by query, as is the result.
        queries : Queries
        discount : ndarray, shape (at least the size of the largest query,)
            ``discount[r - 1]`` is the discount of rank r.
        """
        ...


@dataclass(frozen=True)
class Deterministic:
    """The list by descending scores. Rows with equal scores share the mean over their orders."""

    def expected_discounts(self, s, queries, discount):
        out, offsets = np.empty(len(s)), queries.offsets
        over_queries(tie_averages, offsets, sorting_work(offsets), s, offsets, discount, out)
        return out


@dataclass(frozen=True)
class PlackettLuce:
    """Rankings drawn from the top, each next row with probability proportional to exp(score)."""

    n_samples: int | str = 100
    random_state: object = None

    def expected_discounts(self, s, queries, discount):
        return grouped_expected_discounts(
            s, queries, discount, n_samples=self.n_samples, random_state=self.random_state
        )


def make_policy(policy: str, *, n_samples, random_state) -> Policy:
    """The policy that a metric's parameters name."""
    if policy == "deterministic":
        return Deterministic()
    if policy in ("plackett_luce", "plackett-luce"):
        return PlackettLuce(n_samples, random_state)
    raise ValueError(f"policy={policy!r}: choose 'deterministic' (the sorted list) or 'plackett_luce'.")


def expected_exposure(policy: Policy, s: np.ndarray, queries: Queries) -> np.ndarray:
    """Expected exposure 1 / log2(1 + rank) of each row; scores and result grouped by query."""
    return policy.expected_discounts(s, queries, discounts(int(queries.sizes.max())))
