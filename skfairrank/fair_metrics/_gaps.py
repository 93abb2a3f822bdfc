"""How far the groups of sensitive attributes lie apart in a column of X of any kind: numbers, categories, with missing values.

`Difference` measures what a linear score can see: differences of means in the unit of each feature. Trees see any split of any
column, also one between what is missing and what is not, and splits of categories; so here every column is measured by itself,
without a unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from skfairrank._checks import warn_caller
from skfairrank._sensitive import Attribute

__all__ = ["GAPS", "column_gap"]

# Chance alone makes groups differ in the shares of categories. Above this total variation distance it is told.
_BY_CHANCE = 0.1


def column_gap(column: pd.Series, attributes: Iterable[Attribute], kind: str, *, is_categorical: bool, name) -> float:
    """The largest gap that one of the attributes has in a column.

    Parameters
    ----------
    column : Series, shape (n_rows,)
        Numbers, bools or categories. What is missing is looked at as well: the gap of a column is at least that of the indicator
        of its missing values. Among categories, missing is one more.
    attributes : iterable of Attribute
    kind : {"standardized", "ks"}
        See `skfairrank.GapBoostingRanker`.
    is_categorical : bool
        Whether the values are categories, which have no order.
    name : str or int
        What a message calls the column.

    Returns
    -------
    gap : float, >= 0
    """
    measure = GAPS[kind]
    if is_categorical:
        codes = pd.factorize(column, use_na_sentinel=False)[0]
        _warn_of_rare_categories(codes, attributes, name)
        return max(measure.of_categories(codes, attribute) for attribute in attributes)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    present = ~np.isnan(values)
    if np.isinf(values).any():  # what lies beyond all numbers counts like the farthest of them
        finite = values[np.isfinite(values)]
        low, high = (finite.min(), finite.max()) if len(finite) else (-1.0, 1.0)
        values = np.nan_to_num(values, nan=np.nan, neginf=low, posinf=high)
    gaps = [0.0]
    for attribute in attributes:
        if not present.all():
            gaps.append(measure.of_numbers(present.astype(np.float64), attribute.values, attribute.is_numeric))
        if present.any():
            gaps.append(measure.of_numbers(values[present], attribute.values[present], attribute.is_numeric))
    return max(gaps)


class Standardized:
    """Gaps in standard deviations of the column."""

    @staticmethod
    def of_numbers(values: np.ndarray, attribute: np.ndarray, is_numeric: bool) -> float:
        """The largest difference of two groups' means, or what goes with one standard deviation of a number: |correlation|."""
        values = _scaled(values)
        deviation = values.std()
        if deviation == 0:
            return 0.0
        if is_numeric:
            return _correlation(values, attribute)
        _, codes, members = np.unique(attribute, return_inverse=True, return_counts=True)
        means = np.bincount(codes, weights=values - values.mean()) / members
        return float((means.max() - means.min()) / deviation)

    @staticmethod
    def of_categories(codes: np.ndarray, attribute: Attribute) -> float:
        """That of the indicator of those categories which tell two groups apart best.

        Their share differs by the total variation distance of the two groups; it is divided by the standard deviation of the
        indicator. So a column of two categories has the gap of the same column written as 0 and 1. Of a number: the root of the
        share of its variance that lies between categories (the correlation ratio), which of two categories is the |correlation|.
        """
        if attribute.is_numeric:
            deviations, members = attribute.values - attribute.values.mean(), np.bincount(codes)
            total = float(deviations @ deviations)
            between = float(np.sum(np.bincount(codes, weights=deviations) ** 2 / members))
            return float(np.sqrt(min(between / total, 1.0))) if total > 0 else 0.0
        shares, overall = _shares(codes, attribute.values)
        gap = 0.0
        for a, b in _pairs(shares.shape[1]):
            higher = shares[:, a] > shares[:, b]
            share = float(overall[higher].sum())
            if 0 < share < 1:
                gap = max(gap, _total_variation(shares[:, a], shares[:, b]) / float(np.sqrt(share * (1 - share))))
        return gap


class KolmogorovSmirnov:
    """Distances of distributions, between 0 and 1; the groups of a number are the rows above its median, and the others."""

    @staticmethod
    def of_numbers(values: np.ndarray, attribute: np.ndarray, is_numeric: bool) -> float:
        """The Kolmogorov-Smirnov distance, the largest of those of two groups."""
        groups = _halves(attribute) if is_numeric else attribute
        _, codes, members = np.unique(groups, return_inverse=True, return_counts=True)
        _, places = np.unique(values, return_inverse=True)
        counts = np.zeros((places.max() + 1, len(members)))
        np.add.at(counts, (places, codes), 1.0)
        below = np.cumsum(counts, axis=0) / members
        return float((below.max(axis=1) - below.min(axis=1)).max())

    @staticmethod
    def of_categories(codes: np.ndarray, attribute: Attribute) -> float:
        """The total variation distance, half of the sum of the differences of shares; the largest of those of two groups."""
        groups = _halves(attribute.values) if attribute.is_numeric else attribute.values
        shares, _ = _shares(codes, groups)
        return max((_total_variation(shares[:, a], shares[:, b]) for a, b in _pairs(shares.shape[1])), default=0.0)


GAPS: dict[str, Any] = {"standardized": Standardized, "ks": KolmogorovSmirnov}


def _scaled(values: np.ndarray) -> np.ndarray:
    """Values from 0 to 1, whose squares neither overflow nor vanish; a gap in standard deviations is the same."""
    values = values / max(float(np.abs(values).max()), 1e-300)
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def _correlation(values: np.ndarray, number: np.ndarray) -> float:
    number = _scaled(number)
    a, b = values - values.mean(), number - number.mean()
    length = float(np.sqrt((a @ a) * (b @ b)))
    return min(abs(float(a @ b)) / length, 1.0) if length > 0 else 0.0


def _halves(number: np.ndarray) -> np.ndarray:
    """Whether a number is above its median; where none is, as of many equal large ones, whether it is below."""
    above = number > np.median(number)
    return above if above.any() else number < np.median(number)


def _shares(codes: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the categories in each group, (n_categories, n_groups), and among all rows."""
    _, of_group, members = np.unique(groups, return_inverse=True, return_counts=True)
    counts = np.zeros((codes.max() + 1, len(members)))
    np.add.at(counts, (codes, of_group), 1.0)
    return counts / members, counts.sum(axis=1) / len(codes)


def _total_variation(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.abs(p - q).sum()) / 2


def _pairs(n: int):
    return ((a, b) for a in range(n) for b in range(a + 1, n))


def _warn_of_rare_categories(codes: np.ndarray, attributes: Iterable[Attribute], name) -> None:
    """Say so where categories are so many for the rows that groups would differ in their shares by chance.

    The mean total variation distance of two groups that are drawn at random is about the sum over categories of
    sqrt((1 / n_A + 1 / n_B) share (1 - share) / (2 pi)).
    """
    share = np.bincount(codes) / len(codes)
    spread = float(np.sqrt(share * (1 - share)).sum()) / np.sqrt(2 * np.pi)
    for attribute in attributes:
        if attribute.is_numeric:
            members = np.full(2, len(codes) / 2)
        else:
            members = np.sort(np.bincount(attribute.values))
        if len(members) < 2:
            continue
        expected = min(spread * float(np.sqrt(1 / members[0] + 1 / members[-1])), 1.0)
        if expected > _BY_CHANCE:
            warn_caller(
                f"Column {name!r} of X has {len(share)} categories in {len(codes)} rows: chance alone makes the groups of "
                f"{attribute.name} differ by about {expected:.2f} in total variation (1 is the most), and its gap is too large "
                "by about that. Merge rare categories."
            )
            return
