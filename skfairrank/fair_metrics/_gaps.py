"""How far the groups of sensitive attributes lie apart in a column of X of any kind: numbers, categories, with missing values.

`Difference` measures what a linear score can see: differences of means in the unit of each feature. Trees see any split of any
column, also one between what is missing and what is not, and splits of categories; so here every column is measured by itself,
without a unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from skfairrank._checks import warn_caller
from skfairrank._sensitive import Attribute
from skfairrank.fair_metrics._differences import Difference, Sums, bins_of, less_error

__all__ = ["added", "class_and_number", "column_sums", "ends_of", "ks_gap", "standardized_gap"]

# Chance alone makes groups differ in the shares of categories. Above this total variation distance it is told.
_BY_CHANCE = 0.1
# By chance alone the Kolmogorov-Smirnov distance of two groups of m and n rows has this mean, times sqrt(1 / m + 1 / n), and this
# standard deviation beside its mean (Kolmogorov's distribution). The share is also near that of total variation distances.
_MEAN_OF_KOLMOGOROV, _SPREAD = 0.8687, 0.3


class Gap(NamedTuple):
    """The gap in a column less its error, and as measured."""

    value: float
    raw: float


# Gaps in standard deviations of the column, from sums over rows


def class_and_number(attribute: Attribute) -> tuple[np.ndarray, np.ndarray | None]:
    """Each row's class, -1 where it is unknown: its group, or the bin of its number; and the numbers, from 0 to 1."""
    classes, number, known = attribute.values, None, attribute.is_known
    if attribute.is_numeric:
        classes, number = np.full(len(known), -1), np.zeros(len(known))
        classes[known], number[known] = bins_of(attribute.values[known]), _scaled(attribute.values[known])
    return classes.astype(np.min_scalar_type(-1 - int(classes.max()))), number  # small ints are sorted and sent fastest


def ends_of(column: pd.Series) -> tuple[float, float] | None:
    """The least and the largest finite number of a column; None where it holds categories, which have no order."""
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return None
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else (-1.0, 1.0)


def column_sums(column: pd.Series, cells: Iterable[tuple], ends: tuple[float, float] | None) -> list[list]:
    """What `standardized_gap` needs of a column, for each attribute; `added` adds that of other rows.

    Parameters
    ----------
    column : Series, shape (n_rows,)
        Numbers, bools or categories. What is missing or infinite is looked at as well: the gap of a column is at least that of
        the indicator of its missing values, and of each infinity. Among categories, missing is one more.
    cells : iterable of tuple
        For each attribute what `class_and_number` returns, of these rows, and the number of classes of all rows.
    ends : tuple of float, or None
        As `ends_of` returns them for all rows or for a sample: the numbers of all parts are measured between these, and infinite
        ones lie there.
    """
    if ends is None:
        codes, categories = pd.factorize(column, use_na_sentinel=False)
        index = pd.Index(np.asarray(categories, dtype=object))
        return [[pd.DataFrame(_by_category(codes, *one), index=index)] for one in cells]
    values, marks = _numbers(column, ends)
    largest = max(*map(abs, ends), 1e-300)  # neither squares nor differences overflow
    low, high = (end / largest for end in ends)
    values = (values / largest - low) / ((high - low) or 1.0)
    return [[_sums(marks, *one), _sums(values[:, None], *one)] for one in cells]


def _sums(values: np.ndarray, classes: np.ndarray, number: np.ndarray | None, n_classes: int) -> Sums:
    """Over rows of known class in which all values, shape (n_rows, n), are numbers."""
    rows = np.flatnonzero((classes >= 0) & ~np.isnan(values).any(axis=1))
    rows = rows[np.argsort(classes[rows], kind="stable")]
    return Sums.over(values[rows], classes[rows], n_classes, np.zeros(len(rows)) if number is None else number[rows])


def added(one, other):
    """The sums over two parts of the rows, in lists of any depth."""
    if isinstance(one, Sums):
        return one.plus(other)
    if isinstance(one, pd.DataFrame):
        return pd.concat([one, other]).groupby(level=0, sort=False, dropna=False).sum()
    return [added(*pair) for pair in zip(one, other)]


def standardized_gap(sums: Iterable[list], attributes: Iterable[Attribute], name) -> Gap:
    """The largest gap that one of the attributes has in a column; a message calls it `name`."""
    pairs = [(one, attribute) for attribute, of_one in zip(attributes, sums) for one in of_one]
    return _largest(
        _gap_of_numbers(one, attribute) if isinstance(one, Sums) else _gap_of_categories(one, attribute, name)
        for one, attribute in pairs
    )


def _gap_of_numbers(sums: Sums, attribute: Attribute) -> Gap:
    """That of `Difference`: of two groups' means, or along one standard deviation of a number, or between its bins."""
    units = sums.deviations
    if not (units > 0).any():
        return Gap(0.0, 0.0)
    difference, units = Difference.of_sums(attribute, sums), np.where(units > 0, units, np.inf)
    most = 1.0 if attribute.is_numeric else np.inf  # a correlation, up to rounding
    return Gap(*(min(float((gaps / units).max()), most) for gaps in (difference.gaps, difference.raw_gaps)))


def _gap_of_categories(sums: pd.DataFrame, attribute: Attribute, name) -> Gap:
    """That of the indicator of those categories which tell two groups apart best.

    Their share differs by the total variation distance of the two groups; it is divided by the standard deviation of the
    indicator. So a column of two categories has the gap of the same column written as 0 and 1. Of a number: the root of the
    share of its variance that lies between categories (the correlation ratio), and the largest correlation of scores of the
    categories and of ten bins of the number; each less the value that chance alone would give it.
    """
    table = sums.to_numpy()
    table = table[table[:, :-2].sum(axis=1) > 0]
    counts, of_number = table[:, :-2], table[:, -2:]
    counts = counts[:, counts.sum(axis=0) > 0]
    _warn_of_rare_categories(counts, attribute, name)
    if attribute.is_numeric:
        return _correlation_of_categories(counts, of_number)
    members = counts.sum(axis=0)
    shares, overall = counts / members, counts.sum(axis=1) / counts.sum()
    distances, units = [], []
    for a, b in _pairs(len(members)):
        share = float(overall[shares[:, a] > shares[:, b]].sum())
        units.append(float(np.sqrt(share * (1 - share))) if 0 < share < 1 else np.inf)
        distances.append(_total_variation(shares[:, a], shares[:, b]))
    return _largest_of_pairs(distances, _chance(counts, members), units)


def _by_category(codes: np.ndarray, classes: np.ndarray, number: np.ndarray | None, n_classes: int) -> np.ndarray:
    """For each category the rows of each class, and the sums of their numbers and of the squares of these."""
    table, rows = np.zeros((codes.max(initial=-1) + 1, n_classes + 2)), np.flatnonzero(classes >= 0)
    np.add.at(table, (codes[rows], classes[rows]), 1.0)
    if number is not None:
        np.add.at(table[:, -2:], codes[rows], np.column_stack([number, number**2])[rows])
    return table


# Distances of distributions, from the rows themselves


def ks_gap(column: pd.Series, attributes: Iterable[Attribute], name) -> Gap:
    """The largest Kolmogorov-Smirnov distance of two groups in a column, or total variation distance in one of categories.

    A number makes two groups in two ways: rows above its median and the others, and rows far from its median and the others.
    """
    gaps, ends = [Gap(0.0, 0.0)], ends_of(column)
    for attribute in attributes:
        rows = np.flatnonzero(attribute.is_known)
        if ends is None:
            codes, attribute = pd.factorize(column.iloc[rows], use_na_sentinel=False)[0], attribute.take(rows)
            _warn_of_rare_categories(_counts(codes, attribute.as_groups().values), attribute, name)
            gaps.append(_distance(codes, attribute, is_ordered=False))
            continue
        values, marks = _numbers(column.iloc[rows], ends)
        present = ~np.isnan(values)
        gaps += [_distance(mark, attribute.take(rows)) for mark in marks.T if np.ptp(mark) > 0]
        if present.any():
            gaps.append(_distance(values[present], attribute.take(rows[present])))
    return _largest(gaps)


def _distance(values: np.ndarray, attribute: Attribute, *, is_ordered: bool = True) -> Gap:
    """Of values in an order the largest difference of shares below one of them, else half the sum of differences of shares."""
    _, codes = np.unique(values, return_inverse=True)
    gaps = []
    for groups in _as_groups(attribute):
        counts = _counts(codes, groups)
        members = counts.sum(axis=0)
        shares, errors, distance = counts / members, _chance(counts, members), _total_variation
        if is_ordered:
            shares, errors = np.cumsum(shares, axis=0), np.minimum(_MEAN_OF_KOLMOGOROV * _of_members(members), errors)
            distance = _largest_difference
        gaps.append(_largest_of_pairs([distance(shares[:, a], shares[:, b]) for a, b in _pairs(len(members))], errors))
    return _largest(gaps)


def _numbers(column: pd.Series, ends: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, infinite ones in the place of these ends, and the indicators of what is there or infinite."""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    marks = np.column_stack([~np.isnan(values), values == np.inf, values == -np.inf]).astype(np.float64)
    return np.nan_to_num(values, nan=np.nan, neginf=ends[0], posinf=ends[1]), marks


def _scaled(values: np.ndarray) -> np.ndarray:
    """Values from 0 to 1, whose squares neither overflow nor vanish; a gap in standard deviations is the same."""
    values = values / max(float(np.abs(values).max()), 1e-300)
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def _correlation_of_categories(table: np.ndarray, of_number: np.ndarray) -> Gap:
    """From rows by category and bin, and by category the sums of a number and of its square."""
    n, members = table.sum(), table.sum(axis=1)
    mean = of_number[:, 0].sum() / n
    total = of_number[:, 1].sum() - n * mean**2
    if total <= 0:
        return Gap(0.0, 0.0)
    between = float(np.sum((of_number[:, 0] - members * mean) ** 2 / members))
    rows, columns, table = members / n, table.sum(axis=0) / n, table / n
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


def _counts(codes: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Rows of each category in each group that is there, shape (n_categories, n_groups)."""
    present, of_group = np.unique(groups, return_inverse=True)
    counts = np.zeros((codes.max() + 1, len(present)))
    np.add.at(counts, (codes, of_group), 1.0)
    return counts


def _chance(counts: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Mean total variation distance of each pair of groups if rows belonged to groups by chance.

    It is half the mean of the difference of their shares, summed over categories: sqrt(2 / pi share (1 - share) (1 / m + 1 / n))
    of groups of m and n rows. A category of a single row differs by twice its share.
    """
    n = counts.sum()
    share = counts.sum(axis=1) / n
    several = share[share * n > 1.5]
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


def _largest_difference(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.abs(p - q).max())


def _pairs(n: int):
    return ((a, b) for a in range(n) for b in range(a + 1, n))


def _warn_of_rare_categories(counts: np.ndarray, attribute: Attribute, name) -> None:
    """Say so where categories are so many for the rows that groups would differ in their shares by chance."""
    n, members = int(counts.sum()), np.sort(counts.sum(axis=0))
    expected = _chance(counts, np.full(2, n / 2) if attribute.is_numeric else members[[0, -1]])[0]
    if expected > _BY_CHANCE:
        warn_caller(
            f"Column {name!r} of X has {len(counts)} categories in {n} rows: chance alone makes the groups of "
            f"{attribute.name} differ by about {expected:.2f} in total variation (1 is the most), and a gap below that "
            "counts as none. Merge rare categories."
        )
