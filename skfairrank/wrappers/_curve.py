"""NDCG and disparity of held-out queries over the temperature, and the temperature at which bounds on them are met."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from skfairrank._checks import warn_caller
from skfairrank._queries import Queries
from skfairrank.metrics._exposure import exposure_disparity
from skfairrank.metrics._quality import ndcg
from skfairrank.policies import Deterministic, PlackettLuce
from skfairrank.utilities import discounts

# Queries of so many rows are summed exactly, in about .1 ms each; of larger ones rankings are sampled.
EXACT_UP_TO = 12
# Temperatures of the curve, in units of the scores' standard deviation within queries; so many in each tenfold.
LOWEST, HIGHEST, PER_DECADE = 1e-3, 1e3, 4
# How far the curve is extended where a bound is met beyond its end.
MOST_DECADES = 12
TOLERANCE = 1e-10  # of the logarithm of the temperature


class Curve:
    """The policy of held-out queries at all temperatures that were tried, and what is asked of it.

    Parameters
    ----------
    scores, y, qid : ndarray, shape (n_rows,)
    group : ndarray of int, shape (n_rows,), or None
        None: no disparity is measured.
    max_loss, max_disparity : float
        Bounds; inf asks for nothing. One of them is finite.
    k : int or None
    n_samples : int
        Rankings of each query that is too large for exact sums.
    seed : int
        Of these rankings, the same at all temperatures.

    Raises
    ------
    ValueError
        If no query has a relevant row.
    """

    def __init__(self, scores, y, qid, group, *, max_loss, max_disparity, k, n_samples, seed):
        self.queries = Queries.from_qid(qid, len(scores))
        self.scores, self.y = self.queries.group(scores), self.queries.group(y)
        self.group = None if group is None else self.queries.group(group)
        self.max_loss, self.max_disparity, self.n_samples, self.seed = max_loss, max_disparity, n_samples, seed
        self.discount = discounts(int(self.queries.sizes.max()), k)
        self.tried: dict[float, tuple[float, ...]] = {}
        by_chance = self._measures(Deterministic().expected_discounts(0.0 * self.scores, self.queries, self.discount))
        if not by_chance[0].defined.any():
            raise ValueError(
                f"None of {self.queries.n_queries} held-out queries has a relevant row: there is no NDCG to choose a temperature "
                "by. Check y and qid."
            )
        for measure in by_chance:
            measure.warn()  # of queries in which it is undefined
        self.chance = by_chance[0].mean
        sorted_lists = Deterministic().expected_discounts(self.scores, self.queries, self.discount)
        self.in_order = tuple(measure.mean for measure in self._measures(sorted_lists))

    @property
    def table(self) -> pd.DataFrame:
        """Temperatures, ascending, with NDCG, and disparity where it is bounded."""
        columns = ["temperature", "ndcg", "disparity"][: 1 + len(self.in_order)]
        return pd.DataFrame([(t, *self.tried[t]) for t in sorted(self.tried)], columns=columns)

    @property
    def scale(self) -> float:
        """Root of the scores' mean variance within queries; 0 where they differ within none."""
        if not self.queries.differ_within(self.scores).any():
            return 0.0
        from_first = self.scores - np.repeat(self.scores[self.queries.offsets[:-1]], self.queries.sizes)
        largest = float(np.abs(from_first).max())
        s = from_first / largest  # squares of very large and very small differences neither overflow nor vanish
        return float(np.sqrt(np.mean(self.queries.centre(s) ** 2))) * largest

    def loss(self, temperature: float) -> float:
        """Expected NDCG of the sorted lists less that of the policy."""
        return self.in_order[0] - self._at(temperature)[0]

    def disparity(self, temperature: float) -> float:
        return self._at(temperature)[1]

    def _measures(self, expected: np.ndarray) -> list:
        """NDCG, and disparity where there are groups, under a policy with these expected discounts."""
        measures = [ndcg(self.y, expected, self.queries, self.discount, "ndcg")]
        if self.group is not None:
            measures.append(exposure_disparity(self.y, self.group, expected, self.queries))
        return measures

    def _at(self, temperature: float) -> tuple[float, ...]:
        if temperature not in self.tried:
            is_small, expected = self.queries.sizes <= EXACT_UP_TO, np.empty(len(self.scores))
            for chosen, n_samples in ((np.flatnonzero(is_small), "exact"), (np.flatnonzero(~is_small), self.n_samples)):
                if len(chosen):
                    rows, policy = self.queries.positions(chosen), PlackettLuce(temperature, n_samples, self.seed)
                    part = self.queries.subset(chosen)
                    expected[rows] = policy.expected_discounts(self.scores[rows], part, self.discount)
            self.tried[temperature] = tuple(measure.mean for measure in self._measures(expected))
        return self.tried[temperature]

    def choose(self) -> float:
        """The temperature.

        Raises
        ------
        ValueError
            If a bound can't be reached, or not both.
        """
        scale = self.scale
        if scale == 0:  # whatever is asked holds at any temperature
            self._at(1.0)
            warn_caller(
                "Scores do not differ within any held-out query: every temperature is the same policy, chance, and 1 is taken. "
                "Look at the ranker (a penalty that leaves it nothing?), and whether queries have more than one row."
            )
            return 1.0
        grid = (scale * np.geomspace(LOWEST, HIGHEST, round(np.log10(HIGHEST / LOWEST)) * PER_DECADE + 1)).tolist()
        for temperature in grid:
            self._at(temperature)
        if self.max_disparity == np.inf:
            self._refuse_chance()
            return self._first_within(grid[::-1], self.loss, self.max_loss)
        temperature = self._most_decided(grid)
        if self.loss(temperature) > self.max_loss:
            softest = self._first_within(grid[::-1], self.loss, self.max_loss)
            raise ValueError(
                f"max_ndcg_loss={self.max_loss:g} and max_disparity={self.max_disparity:g} can't both be reached: on the "
                f"held-out queries a disparity of at most {self.max_disparity:g} costs {self.loss(temperature):.4g} of NDCG, and "
                f"a loss of at most {self.max_loss:g} leaves a disparity of {self.disparity(softest):.4g}. Loosen one of them."
            )
        return temperature

    def _refuse_chance(self) -> None:
        by_chance = self.in_order[0] - self.chance
        if by_chance <= self.max_loss:
            raise ValueError(
                f"max_ndcg_loss={self.max_loss:g} can't be reached: on the held-out queries the sorted lists have an NDCG of "
                f"{self.in_order[0]:.4g} and chance, the softest policy, of {self.chance:.4g}, so that a loss lies between 0 "
                f"and {max(by_chance, 0.0):.4g}. Give a smaller one."
            )

    def _most_decided(self, grid) -> float:
        """The lowest temperature at which the disparity is within its bound."""
        if max(self.in_order[1], self.disparity(grid[0])) <= self.max_disparity:
            warn_caller(
                f"max_disparity={self.max_disparity:g} asks for nothing: even the sorted lists of the held-out queries have a "
                f"disparity of {self.in_order[1]:.4g}. The policy is as decided as the curve goes."
            )
            return grid[0]
        if self.max_disparity == 0:
            raise ValueError(
                "max_disparity=0 can't be reached: on the held-out queries the disparity lies between 0, which only chance has, "
                f"and {self.in_order[1]:.4g}, of the sorted lists. Give a larger one."
            )
        return self._first_within(grid, self.disparity, self.max_disparity)

    def _first_within(self, grid: list[float], value: Callable[[float], float], bound: float) -> float:
        """The first temperature, from the beginning of a grid that runs up or down, at which a value is within its bound.

        Found on the grid, which is extended where that lies beyond its ends, and made exact by root finding between neighbours.
        """
        grid, step = list(grid), grid[1] / grid[0]
        for _ in range(MOST_DECADES * PER_DECADE):
            if value(grid[0]) <= bound:
                grid.insert(0, grid[0] / step)
            elif all(value(temperature) > bound for temperature in grid):
                grid.append(grid[-1] * step)
            else:
                break
        first = next((i for i, temperature in enumerate(grid) if value(temperature) <= bound), None)
        if first is None:
            what = "max_ndcg_loss" if value == self.loss else "max_disparity"
            raise ValueError(
                f"{what}={bound:g} can't be reached: at temperatures from {min(grid):.3g} to {max(grid):.3g} it is at least "
                f"{min(map(value, grid)):.3g} on the held-out queries. Give a larger one."
            )
        if first == 0:  # met as far as the grid was extended
            return grid[0]
        inside, outside = grid[first], grid[first - 1]
        root = np.exp(brentq(lambda u: value(np.exp(u)) - bound, *np.log([inside, outside]), xtol=TOLERANCE))
        # On the side of the root where the bound holds; of a sampled policy the curve has steps.
        for share in (0.0, 1e-9, 1e-6, 1e-3):
            temperature = float(root * (inside / outside) ** share)
            if value(temperature) <= bound:
                return temperature
        return inside
