"""A policy that is known by its rankings and their chances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skfairrank.policies import Deterministic, RankProbabilities

__all__ = ["RankingMixture"]


@dataclass(frozen=True, eq=False, repr=False)
class RankingMixture(RankProbabilities):
    """`RankProbabilities` that knows its rankings whole, and so their utility where that depends on the rows before a row.

    Parameters
    ----------
    P : ndarray of float, shape (n_rows, size of the largest query)
        See `RankProbabilities`.
    mixtures : list of tuple (chances, ranks)
        Of each query, in sorted order of the ids, the chances of its rankings, shape (n_rankings,), and these, 1-based ranks of
        its rows in the caller's order, shape (n_rankings, n).
    """

    mixtures: list

    def expected_utility(self, s, queries, tables):
        """Expected utility of each query's ranking, shape (n_queries,); see `skfairrank.policies.Policy`."""
        self._check(queries)
        total = np.zeros(queries.n_queries)
        for m in range(max(len(chances) for chances, _ in self.mixtures)):
            # A query of fewer rankings has its last one again, with no chance.
            chance = np.array([chances[m] if m < len(chances) else 0.0 for chances, _ in self.mixtures])
            ranks = np.concatenate([ranks[min(m, len(ranks) - 1)] for _, ranks in self.mixtures])
            total += chance * Deterministic().expected_utility(-ranks.astype(np.float64), queries, tables)
        return total
