"""How far the groups of sensitive attributes lie apart in a column of X of any kind: numbers, categories, with missing values.

`Difference` measures what a linear score can see: differences of means in the unit of each feature. Trees see any split of any
column, also one between what is missing and what is not, and splits of categories; so here every column is measured by itself,
without a unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfairrank._checks import warn_caller
from skfairrank._sensitive import Attribute
from skfairrank.fair_metrics._differences import Difference, bins_of, less_error

__all__ = ["GAPS", "column_gap"]

# Chance alone makes groups differ in the shares of categories. Above this total variation distance it is told.
_BY_CHANCE = 0.1
# By chance alone the Kolmogorov-Smirnov distance of two groups of m and n rows has this mean, times sqrt(1 / m + 1 / n), and this
# standard deviation beside its mean (Kolmogorov's distribution). The share is also near that of total variation distances.
_MEAN_OF_KOLMOGOROV, _SPREAD = 0.8687, 0.3


class Gap(NamedTuple):
    """The gap in a column less its error, and as measured."""

    value: float
    raw: float


def column_gap(column: pd.Series, attributes: Iterable[Attribute], kind: str, *, is_categorical: bool, name) -> Gap:
    """The largest gap that one of the attributes has in a column.

    Parameters
    ----------
    column : Series, shape (n_rows,)
        Numbers, bools or categories. What is missing or infinite is looked at as well: the gap of a column is at least that of
        the indicator of its missing values, and of each infinity. Among categories, missing is one more.
    attributes : iterable of Attribute
        Rows of unknown group are left out.
    kind : {"standardized", "ks"}
        See `skfairrank.GapBoostingRanker`.
    is_categorical : bool
        Whether the values are categories, which have no order.
    name : str or int
        What a message calls the column.

    Returns
    -------
    gap : Gap
    """
    measure = GAPS[kind]
    if is_categorical:
        codes = pd.factorize(column, use_na_sentinel=False)[0]
        _warn_of_rare_categories(codes, attributes, name)
        known = [(pd.factorize(codes[one.is_known])[0], one.take(one.is_known)) for one in attributes]
        return _largest(measure.of_categories(*pair) for pair in known)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    present = ~np.isnan(values)
    marks = [mark.astype(np.float64) for mark in (present, values == np.inf, values == -np.inf)]
    if np.isinf(values).any():  # what lies beyond all numbers counts like the farthest of them
        finite = values[np.isfinite(values)]
        low, high = (finite.min(), finite.max()) if len(finite) else (-1.0, 1.0)
        values = np.nan_to_num(values, nan=np.nan, neginf=low, posinf=high)
    gaps = [Gap(0.0, 0.0)]
    for attribute in attributes:
        rows = np.flatnonzero(attribute.is_known)
        for mark in marks:
            if np.ptp(mark[rows]) > 0:
                gaps.append(measure.of_numbers(mark[rows], attribute.take(rows)))
        rows = rows[present[rows]]
        if len(rows):
            gaps.append(measure.of_numbers(values[rows], attribute.take(rows)))
    return _largest(gaps)


class Standardized:
    """Gaps in standard deviations of the column."""

    @staticmethod
    def of_numbers(values: np.ndarray, attribute: Attribute) -> Gap:
        """That of `Difference`: of two groups' means, or along one standard deviation of a number, or between its bins."""
        values = _scaled(values)
        deviation = values.std()
        if deviation == 0:
            return Gap(0.0, 0.0)
        if attribute.is_numeric:
            attribute = replace(attribute, values=_scaled(attribute.values))
        else:  # some groups may have no row here
            attribute = replace(attribute, values=np.unique(attribute.values, return_inverse=True)[1])
        difference = Difference(values[:, None], attribute, np.arange(len(values)))
        most = 1.0 if attribute.is_numeric else np.inf  # a correlation, up to rounding
        return Gap(*(min(float(gap[0] / deviation), most) for gap in (difference.gaps, difference.raw_gaps)))

    @staticmethod
    def of_categories(codes: np.ndarray, attribute: Attribute) -> Gap:
        """That of the indicator of those categories which tell two groups apart best.

        Their share differs by the total variation distance of the two groups; it is divided by the standard deviation of the
        indicator. So a column of two categories has the gap of the same column written as 0 and 1. Of a number: the root of the
        share of its variance that lies between categories (the correlation ratio), and the largest correlation of scores of the
        categories and of ten bins of the number; each less the value that chance alone would give it.
        """
        if attribute.is_numeric:
            return _correlation_of_categories(codes, attribute.values)
        shares, members = _shares(codes, attribute.values)
        overall, distances, units = np.bincount(codes) / len(codes), [], []
        for a, b in _pairs(len(members)):
            share = float(overall[shares[:, a] > shares[:, b]].sum())
            units.append(float(np.sqrt(share * (1 - share))) if 0 < share < 1 else np.inf)
            distances.append(_total_variation(shares[:, a], shares[:, b]))
        return _largest_of_pairs(distances, _chance(codes, members), units)


class KolmogorovSmirnov:
    """Distances of distributions, between 0 and 1.

    A number makes two groups in two ways: rows above its median and the others, and rows far from its median and the others.
    """

    @staticmethod
    def of_numbers(values: np.ndarray, attribute: Attribute) -> Gap:
        """The Kolmogorov-Smirnov distance, the largest of those of two groups."""
        _, places = np.unique(values, return_inverse=True)
        gaps = []
        for groups in _as_groups(attribute):
            shares, members = _shares(places, groups)
            below = np.cumsum(shares.T, axis=1)
            distances = [float(np.abs(below[a] - below[b]).max()) for a, b in _pairs(len(members))]
            errors = np.minimum(_MEAN_OF_KOLMOGOROV * _of_members(members), _chance(places, members))
            gaps.append(_largest_of_pairs(distances, errors))
        return _largest(gaps)

    @staticmethod
    def of_categories(codes: np.ndarray, attribute: Attribute) -> Gap:
        """The total variation distance, half of the sum of the differences of shares; the largest of those of two groups."""
        gaps = []
        for groups in _as_groups(attribute):
            shares, members = _shares(codes, groups)
            distances = [_total_variation(shares[:, a], shares[:, b]) for a, b in _pairs(len(members))]
            gaps.append(_largest_of_pairs(distances, _chance(codes, members)))
        return _largest(gaps)


GAPS: dict[str, Any] = {"standardized": Standardized, "ks": KolmogorovSmirnov}


def _scaled(values: np.ndarray) -> np.ndarray:
    """Values from 0 to 1, whose squares neither overflow nor vanish; a gap in standard deviations is the same."""
    values = values / max(float(np.abs(values).max()), 1e-300)
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def _correlation_of_categories(codes: np.ndarray, number: np.ndarray) -> Gap:
    n, members, deviations = len(codes), np.bincount(codes), _scaled(number) - _scaled(number).mean()
    total = float(deviations @ deviations)
    if total == 0:
        return Gap(0.0, 0.0)
    between = float(np.sum(np.bincount(codes, weights=deviations) ** 2 / members))
    bins = bins_of(number)
    table = np.zeros((len(members), bins.max() + 1))
    np.add.at(table, (codes, bins), 1.0 / n)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    residuals = (table - np.outer(rows, columns)) / np.sqrt(np.outer(rows, columns))
    found = np.minimum([np.sqrt(between / total), np.linalg.norm(residuals, 2)], 1.0)
    # By chance alone the squares have about these means; of scores the mean is below the whole chi-squared, and below its edge.
    free, free_bins = len(members) - 1, len(columns) - 1
    chance = np.array([free, min(free * free_bins, (np.sqrt(free) + np.sqrt(free_bins)) ** 2)]) / max(n - 1, 1)
    return Gap(float(less_error(found, np.sqrt(chance)).max()), float(found.max()))


def _as_groups(attribute: Attribute) -> list[np.ndarray]:
    if not attribute.is_numeric:
        return [attribute.values]
    far = replace(attribute, values=np.abs(attribute.values - np.median(attribute.values)))
    return [attribute.as_groups().values, far.as_groups().values]


def _shares(codes: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the categories in each group, (n_categories, n_groups), and how many rows each group has."""
    _, of_group, members = np.unique(groups, return_inverse=True, return_counts=True)
    counts = np.zeros((codes.max() + 1, len(members)))
    np.add.at(counts, (codes, of_group), 1.0)
    return counts / members, members


def _chance(codes: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Mean total variation distance of each pair of groups if rows belonged to groups by chance.

    It is half the mean of the difference of their shares, summed over categories: sqrt(2 / pi share (1 - share) (1 / m + 1 / n))
    of groups of m and n rows. A category of a single row differs by twice its share.
    """
    share = np.bincount(codes) / len(codes)
    several = share[share * len(codes) > 1.5]
    spread = np.sqrt(several * (1 - several)).sum() / np.sqrt(2 * np.pi)
    return np.minimum(spread * _of_members(members) + (1.0 - several.sum()), 1.0)


def _of_members(members: np.ndarray) -> np.ndarray:
    """sqrt(1 / m + 1 / n) of each pair of groups."""
    return np.array([np.sqrt(1 / members[a] + 1 / members[b]) for a, b in _pairs(len(members))])


def _largest_of_pairs(distances: list, errors: np.ndarray, units=1.0) -> Gap:
    """The largest of the distances less their errors; of m of them the largest is to be expected above their mean."""
    if not len(distances):
        return Gap(0.0, 0.0)
    errors = errors * (1.0 + _SPREAD * np.sqrt(2.0 * np.log(len(errors))))
    found = np.array(distances)
    return Gap(float((less_error(found, errors) / units).max()), float((found / units).max()))


def _largest(gaps: Iterable[Gap]) -> Gap:
    gaps = list(gaps)
    return Gap(max(gap.value for gap in gaps), max(gap.raw for gap in gaps))


def _total_variation(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.abs(p - q).sum()) / 2


def _pairs(n: int):
    return ((a, b) for a in range(n) for b in range(a + 1, n))


def _warn_of_rare_categories(codes: np.ndarray, attributes: Iterable[Attribute], name) -> None:
    """Say so where categories are so many for the rows that groups would differ in their shares by chance."""
    for attribute in attributes:
        if attribute.is_numeric:
            members = np.full(2, attribute.is_known.sum() / 2)
        else:
            members = np.sort(np.bincount(attribute.values[attribute.is_known]))
        expected = _chance(codes, members[[0, -1]])[0]
        if expected > _BY_CHANCE:
            warn_caller(
                f"Column {name!r} of X has {codes.max() + 1} categories in {len(codes)} rows: chance alone makes the groups of "
                f"{attribute.name} differ by about {expected:.2f} in total variation (1 is the most), and a gap below that "
                "counts as none. Merge rare categories."
            )
            return
