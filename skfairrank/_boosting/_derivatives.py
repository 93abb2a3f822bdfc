"""What boosting climbs without the regulariser: an ascent direction in the scores, and how long its steps are to be."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from skfairrank._batches import Batch
from skfairrank._gains import descending_order
from skfairrank._gradients import Gradient, make_gradient
from skfairrank._kernels.lambdarank import lambdarank, lambdarank_work
from skfairrank._queries import Queries
from skfairrank._threads import over_queries
from skfairrank.utilities import Tables

__all__ = ["Derivatives", "OfPairs", "OfPolicy", "make_derivatives"]


class Derivatives(Protocol):
    """What `FairObjective` asks."""

    #: Whether both are to be multiplied by one number so that the mean curvature is 1 at first.
    is_scaled: bool

    def __call__(self, batch: Batch, h: np.ndarray, discount: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slope and curvature of each row, shape (n_rows,), and the utility of each query, shape (n_queries,)."""
        ...

    def check(self, queries: Queries, tables: Tables) -> None:
        """Raise ValueError where it can't treat the queries or the utility."""
        ...


class OfPolicy:
    """The gradient of the expected utility of the Plackett-Luce policy.

    The expected utility is not concave, so that its own curvature is of no use. In its place stands `SHARE` of the query's mean
    absolute slope, so that steps keep their length as scores grow apart and slopes become small. (Of two rows with equal scores a
    share of 1/2 would give the first step of LambdaMART.)

    Parameters
    ----------
    gradient : skfairrank._gradients.Gradient
    """

    is_scaled = True
    #: Chosen by ``rho=0`` beside LGBMRanker (examples/boosting_results.py): 1/2 overfits small data, 1 learns slowly.
    SHARE = 0.7

    def __init__(self, gradient: Gradient):
        self.gradient = gradient

    def __call__(self, batch, h, discount):
        slope, utility = self.gradient(batch, h, discount)
        sizes = np.diff(batch.offsets)
        mean = np.add.reduceat(np.abs(slope), batch.offsets[:-1]) / sizes
        return slope, np.repeat(self.SHARE * mean, sizes), utility

    def check(self, queries, tables):
        self.gradient.check(queries)


class OfPairs:
    """LambdaMART's gradients as LightGBM has them: of pairs of rows, weighed by what their exchange would change of the utility.

    The utility that it tells is that of the list sorted by score.
    """

    is_scaled = False
    #: Of a pair one row must be among the first so many; LightGBM's `lambdarank_truncation_level`.
    N_TOP = 30

    def __call__(self, batch, h, discount):
        slope, curvature = np.empty(len(h)), np.empty(len(h))
        arguments = h, batch.offsets, batch.gain, discount, self.N_TOP, slope, curvature
        over_queries(lambdarank, batch.offsets, lambdarank_work(batch.offsets, self.N_TOP), *arguments)
        rank = np.arange(len(h)) - np.repeat(batch.offsets[:-1], np.diff(batch.offsets))
        worth = batch.gain[descending_order(h, batch.offsets)] * discount[rank]
        return slope, curvature, np.add.reduceat(worth, batch.offsets[:-1])

    def check(self, queries, tables):
        if tables.continuation is not None or tables.utility is not None:
            raise ValueError(
                'gradient="lambdarank" weighs pairs by gains and discounts, and this utility is more: what a row adds depends '
                'on those above it. Use gradient="plrank", or gradient="reinforce".'
            )


def make_derivatives(kind: str, n_samples: int) -> Derivatives:
    """The ones of that name: "lambdarank", or those of `skfairrank._gradients`."""
    return OfPairs() if kind == "lambdarank" else OfPolicy(make_gradient(kind, n_samples))
