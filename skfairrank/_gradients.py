"""Gradients of the expected utility in the scores, of a batch of queries: sampled, or summed over subsets.

Each is asked for the gradient, for the expected discounts of the items' ranks under the same rankings, and whether it can treat
the queries at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skfairrank._kernels import exact, sampling
from skfairrank._queries import Queries
from skfairrank._threads import over_queries
from skfairrank.plackett_luce import check_exact_limit, sampled_utilities
from skfairrank.utilities import Tables

__all__ = ["Gradient", "PLRank", "Reinforce", "SubsetSum", "make_gradient"]


NOT_GIVEN = np.empty((0, 0))


class Gradient(Protocol):
    """What a solver asks."""

    def __call__(
        self, batch, h: np.ndarray, discount: np.ndarray, gain: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of the expected utility in the scores, and each query's utility.

        Parameters
        ----------
        batch : skfairrank._batches.Batch
            Of which `offsets`, `gain`, `continuation`, `key` and `utility` are read.
        h : ndarray of float64, shape (n_rows,)
            Scores of the batch's rows.
        discount : ndarray of float64, shape (>= largest query size,)
        gain : ndarray of float64, shape (n_rows,), optional
            In place of the batch's.

        Returns
        -------
        gradient : ndarray of float64, shape (n_rows,)
        utility : ndarray of float64, shape (n_queries,)

        Raises
        ------
        ValueError
            If it needs tables, and the batch's utility is known by the utility of whole rankings.
        """
        ...

    def expected_discounts(self, batch, h: np.ndarray, discount: np.ndarray) -> np.ndarray:
        """Expected discount of each row's rank, shape (n_rows,): over the rankings from which the gradient comes."""
        ...

    def check(self, queries: Queries) -> None:
        """Raise ValueError where a query is too large for it; the message names the query."""
        ...


@dataclass(frozen=True)
class Reinforce:
    """REINFORCE over sampled rankings, with the mean utility of the query's own samples as the baseline (Bower et al. 2021).

    The mean contains the sample itself, so the expectation is 1 - 1/n_samples times the gradient.

    Parameters
    ----------
    n_samples : int
        Sampled rankings per query, at least 2.
    """

    n_samples: int

    def __call__(self, batch, h, discount, gain=None):
        gain, given = batch.gain if gain is None else gain, NOT_GIVEN
        if (
            batch.utility is not None
        ):  # only the utility itself knows that of a ranking: the rankings are drawn twice, alike
            tables = Tables(gain, discount, utility=batch.utility)
            given = sampled_utilities(h, batch.offsets, batch.key, self.n_samples, tables)
        return self._estimate(sampling.reinforce, batch, h, gain, discount, given)

    def _estimate(self, kernel, batch, h, gain, *others):
        gradient, utility = np.empty(len(h)), np.empty(len(batch.offsets) - 1)
        arguments = h, batch.offsets, gain, batch.continuation, *others, batch.key, self.n_samples, gradient, utility
        over_queries(kernel, batch.offsets, sampling.gradient_work(len(h), len(utility), self.n_samples), *arguments)
        return gradient, utility

    def expected_discounts(self, batch, h, discount):
        expected = np.empty(len(h))
        work = sampling.sampling_work(len(h), len(batch.offsets) - 1, self.n_samples)
        arguments = h, batch.offsets, batch.key, self.n_samples, discount, expected
        over_queries(sampling.sampled_discounts, batch.offsets, work, *arguments)
        return expected

    def check(self, queries):
        pass


@dataclass(frozen=True)
class PLRank(Reinforce):
    """PL-Rank-3 (Oosterhuis 2022) with a baseline: unbiased, and of lower variance than REINFORCE.

    Parameters
    ----------
    n_samples : int
        Sampled rankings per query. A single one has no baseline.
    """

    def __call__(self, batch, h, discount, gain=None):
        _check_tables(batch)
        return self._estimate(sampling.plrank, batch, h, batch.gain if gain is None else gain, discount)


@dataclass(frozen=True)
class SubsetSum:
    """The gradient itself, summed over subsets of a query's items: for queries of up to `plackett_luce.EXACT_LIMIT` items."""

    def __call__(self, batch, h, discount, gain=None):
        _check_tables(batch)
        gradient, utility = np.empty(len(h)), np.empty(len(batch.offsets) - 1)
        gain = batch.gain if gain is None else gain
        arguments = h, batch.offsets, gain, batch.continuation, discount, gradient, utility
        over_queries(exact.exact_gradient, batch.offsets, 2.0 * exact.subset_work(np.diff(batch.offsets)), *arguments)
        return gradient, utility

    def expected_discounts(self, batch, h, discount):
        expected = np.empty(len(h))
        work = exact.subset_work(np.diff(batch.offsets))
        over_queries(exact.expected_discounts, batch.offsets, work, h, batch.offsets, discount, expected)
        return expected

    def check(self, queries):
        check_exact_limit(queries)


def _check_tables(batch) -> None:
    if batch.utility is not None:
        raise ValueError(
            'gradient="plrank", gradient="exact" and solver="lbfgs" need a utility of gain, discount and continuation; '
            "this one, as AveragePrecision, is known by the utility of whole rankings. Train for it by REINFORCE: "
            'solver="adam", gradient="reinforce" (and give senstir_path its rhos).'
        )


def make_gradient(kind: str, n_samples: int) -> Gradient:
    """The one of that name: "reinforce", "plrank" or "exact", which needs no samples."""
    return SubsetSum() if kind == "exact" else {"reinforce": Reinforce, "plrank": PLRank}[kind](n_samples)
