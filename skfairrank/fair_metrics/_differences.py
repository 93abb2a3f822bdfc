"""How the groups of a sensitive attribute differ: in each feature, along a direction, and in which few directions.

The coefficients of a classifier say what predicts a group, which with correlated features is not how the groups differ (Haufe et
al. 2014, "On the interpretation of weight vectors of linear models", call the two filters and patterns).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from skfairrank._checks import warn_caller
from skfairrank._sensitive import Attribute

# Of several classes, directions are added until they hold this share of how the classes differ.
_ENOUGH = 0.9
# A column is looked at in so many rows before all rows are asked whether it alone determines an attribute.
_LOOK = 5000
# In fewer rows, or smaller groups, a column may tell groups apart by chance.
_LEAST_ROWS, _LEAST_MEMBERS = 30, 5
_BLOCK = 1 << 14  # rows at once
# In standard deviations of a feature: groups of which smaller gaps are taken for chance are warned of.
_LARGE_ERROR = 0.7
# A number is also looked at in so many bins of equally many rows, of which each has at least so many.
_BINS, _LEAST_IN_BIN = 10, 5
# Of the hash of a row (SplitMix64).
_ODD, _MIX, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(29)


class Sums(NamedTuple):
    """Sums over rows, from which a `Difference` follows; those of parts of the rows add up.

    Values are about a point that all parts share and that lies among them, so that no digits are lost.

    Parameters
    ----------
    members : ndarray, shape (n_classes,)
        Rows of each class; of a number its classes are bins.
    sums, squares : ndarray, shape (n_classes, n_features)
    products : ndarray, shape (n_features,)
        With the number.
    number : ndarray, shape (2,)
        Of the number and of its square.
    low, high : ndarray, shape (n_features,)
    """

    members: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    products: np.ndarray
    number: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def over(cls, X: np.ndarray, classes: np.ndarray, n_classes: int, number: np.ndarray) -> Sums:
        """Of rows that are sorted by class; `number` is that of each row, zeros where there is none."""
        present, starts = np.unique(classes, return_index=True)
        members, sums, squares = np.zeros(n_classes, np.int64), *np.zeros((2, n_classes, X.shape[1]))
        if len(X):
            members[present] = np.diff(np.append(starts, len(X)))
            sums[present], squares[present] = np.add.reduceat(X, starts, axis=0), np.add.reduceat(X**2, starts, axis=0)
        products = (X * number[:, None]).sum(axis=0) if number.any() else np.zeros(X.shape[1])
        low, high = X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)
        return cls(members, sums, squares, products, np.array([number.sum(), number @ number]), low, high)

    def plus(self, other: Sums) -> Sums:
        ends = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Sums._make([*(one + another for one, another in zip(self[:-2], other[:-2])), *ends])

    @property
    def deviations(self) -> np.ndarray:
        """The standard deviation of each feature, shape (n_features,); 0 where it is constant."""
        n = self.members.sum()
        variance = self.squares.sum(axis=0) / n - (self.sums.sum(axis=0) / n) ** 2
        return np.where(self.high > self.low, np.sqrt(np.maximum(variance, 0.0)), 0.0)


class Difference:
    """How groups differ in the features, or how features grow with a number.

    Parameters
    ----------
    X : ndarray of float, shape (n_rows, n_features)
    attribute : Attribute
    order : ndarray of int64
        Rows to be counted, in an order that depends on their content alone (`_rows.canonical_order`).

    Attributes
    ----------
    means : ndarray, shape (n_classes, n_features)
        Of classes: their mean rows, about a row that they share. Of a number: one row, the covariance of the features with the
        number divided by its standard deviation, which is the change of the features that goes with one standard deviation.
    between : ndarray, shape (n_features,)
        Of a number: the standard deviation of a feature's means in ten bins of it, which also sees what goes up and down again.
        Of classes zero.
    varies : ndarray of bool, shape (n_features,)
        Which features are no constant.
    """

    def __init__(self, X: np.ndarray, attribute: Attribute, order: np.ndarray):
        self.attribute = attribute
        values = attribute.values[order]
        classes = bins_of(values) if attribute.is_numeric else values
        by_class = np.argsort(classes, kind="stable")
        order, values, classes = order[by_class], values[by_class], classes[by_class]
        self.order, n_classes = order, int(classes.max()) + 1  # each class has a row
        center, number = X[order[0]].astype(np.float64), values - values[0] if attribute.is_numeric else 0.0 * values
        parts = (Sums.over(Z, classes[here], n_classes, number[here]) for here, Z in blocks_of(X, order, center))
        self._finish(functools.reduce(Sums.plus, parts), number.mean(), number.std())

    @classmethod
    def of_sums(cls, attribute: Attribute, sums: Sums) -> Difference:
        """The same from sums over the rows, whose classes may be missing there; it knows no rows."""
        self = cls.__new__(cls)
        self.attribute, here = attribute, sums.members > 0
        mean, square = sums.number / sums.members.sum()
        sums = sums._replace(members=sums.members[here], sums=sums.sums[here], squares=sums.squares[here])
        self._finish(sums, mean, float(np.sqrt(max(square - mean**2, 0.0))))
        return self

    def _finish(self, over: Sums, number_mean: float, deviation: float) -> None:
        members, sums, squares, n = over.members, over.sums, over.squares, over.members.sum()
        self.varies = over.high > over.low
        means, mean = sums / members[:, None], sums.sum(axis=0) / n
        within = np.where(self.varies, np.maximum(squares - members[:, None] * means**2, 0.0), 0.0)
        left = within.sum(axis=0) / max(n - len(members), 1)
        self.between = np.zeros(means.shape[1])
        if self.attribute.is_numeric:
            slope = (over.products - mean * n * number_mean) / n
            self.means = (slope / deviation if deviation > 0 else 0.0 * slope)[None]
            self.shares = np.ones(1)
            between = members @ (means - mean) ** 2 / n
            variance = within.sum(axis=0) / n + between
            self.between = np.where(self.varies, np.sqrt(between), 0.0)
            self._between_error = np.sqrt((len(members) - 1) * left / n)
            self._left = np.maximum(variance - self.means[0] ** 2, 0.0) * n / max(n - 2, 1)
            self._squared_errors = self._left[None] / n
        else:
            self.means, self.shares = means, members / n
            # A class of few rows may vary more than others; where it seems to vary less, that is as likely chance.
            self._left = left
            own = within / np.maximum(members - 1, 1)[:, None]
            self._squared_errors = np.maximum(own, left) / members[:, None]
        self.means[:, ~self.varies] = 0.0  # not the rounding of equal numbers

    def along(self, units: np.ndarray) -> np.ndarray:
        """How far the groups lie apart along unit vectors, shape (len(units),): the largest difference of two means.

        Of two classes, and of a number, the sign tells which way the second class, or growth, lies.
        """
        return self._apart(self.means @ units.T)

    def _apart(self, places: np.ndarray) -> np.ndarray:
        """How far apart the rows of `places`, one for each class (or one for a number), lie in each column."""
        if self.attribute.is_numeric:
            return places[0]
        if len(places) == 2:
            return places[1] - places[0]
        return places.max(axis=0) - places.min(axis=0)

    @property
    def raw_gaps(self) -> np.ndarray:
        """How far the groups lie apart in each feature as measured, chance included, shape (n_features,), >= 0."""
        return np.maximum(np.abs(self._apart(self.means)), self.between)

    @property
    def gaps(self) -> np.ndarray:
        """How far the groups lie apart in each feature beyond chance, shape (n_features,), >= 0.

        That is the largest over pairs of groups of `less_error` of the difference of their means. Of n groups the largest of
        n (n - 1) / 2 differences is taken, which chance alone makes larger than one: so the squared error counts
        1 + 2 log(n (n - 1) / 2) times. Of a number it is the larger one of the slope and `between`, each less its error.
        """
        if self.attribute.is_numeric:
            slope = less_error(np.abs(self.means[0]), np.sqrt(self._squared_errors[0]))
            return np.maximum(slope, less_error(self.between, self._between_error))
        gaps, times = np.zeros(self.means.shape[1]), largest_of(len(self.means))
        for a in range(len(self.means) - 1):
            apart = np.abs(self.means[a + 1 :] - self.means[a])
            gaps = np.maximum(gaps, less_error(apart, np.sqrt(times * self._errors_beside(a))).max(axis=0))
        return gaps

    def _errors_beside(self, a: int) -> np.ndarray:
        """Squared standard errors of the differences of class a and of each later one, shape (n_later, n_features)."""
        return self._squared_errors[a] + self._squared_errors[a + 1 :]

    def directions(self, among: np.ndarray) -> np.ndarray:
        """The directions in which the groups differ in the features `among`, each as long as the groups lie apart along it.

        Of two classes the difference of their means, of a number the slopes. Of more classes the principal directions of their
        means (weighted by the classes' shares, so that a class of few rows, whose mean is noise, makes no direction of its own):
        the fewest that hold nine tenths of the sum of squares. All of them would be one less than there are classes, and leave a
        ranker of few features nothing to rank by.
        """
        if self.attribute.is_numeric:
            return np.where(among, self.means, 0.0)
        if len(self.means) == 2:
            return np.where(among, self.means[1:] - self.means[:1], 0.0)
        _, singular, rows = np.linalg.svd(np.where(among, self._deviations, 0.0), full_matrices=False)
        held = np.cumsum(singular**2)
        if held[-1] == 0:
            return np.zeros((1, self.means.shape[1]))
        n = int(np.searchsorted(held, _ENOUGH * held[-1])) + 1
        units = rows[:n] * np.sign(rows[np.arange(n), np.abs(rows[:n]).argmax(axis=1)])[:, None]
        return units * self.along(units)[:, None]

    @property
    def _deviations(self) -> np.ndarray:
        """Means about the overall mean, weighted: what there is of difference."""
        if self.attribute.is_numeric:
            return self.means
        return (self.means - self.shares @ self.means) * np.sqrt(self.shares)[:, None]

    def share_within(self, basis: np.ndarray) -> float:
        """Share of the (squared) difference that the orthonormal rows of `basis` hold; nan where groups do not differ."""
        whole = float((self._deviations**2).sum())
        return min(float(((self._deviations @ basis.T) ** 2).sum()) / whole, 1.0) if whole > 0 else float("nan")

    def determining_columns(self, X: np.ndarray) -> dict[int, bool]:
        """Columns of X that alone determine the attribute, and whether they do so as a copy of it.

        A number is determined by a column that grows, or falls, with it throughout, its copy. Classes are determined by a column
        each of whose values occurs in one class only: if it has few values it is a copy of the attribute or finer than it, such
        as an indicator, or codes; else its classes must not reach into each other, as an age tells the young from the old.
        """
        n, values = len(self.order), self.attribute.values[self.order]
        if n < _LEAST_ROWS or len(np.unique(values)) < 2:
            return {}
        if not self.attribute.is_numeric and np.bincount(values).min() < _LEAST_MEMBERS:
            return {}
        look = self.order[:: -(-n // _LOOK)]
        sample, at_look = X[look].astype(np.float64), self.attribute.values[look]
        candidates = [j for j in np.flatnonzero(self.varies).tolist() if any(self._determines(sample[:, j], at_look))]
        found = {j: self._determines(X[self.order, j].astype(np.float64), values) for j in candidates}
        return {j: is_copy for j, (determines, is_copy) in found.items() if determines}

    def _determines(self, column: np.ndarray, values: np.ndarray) -> tuple[bool, bool]:
        """Whether a column determines the attribute, and whether as a copy."""
        if self.attribute.is_numeric:
            centred, deviations = column - column.mean(), values - values.mean()
            length = np.sqrt((centred @ centred) * (deviations @ deviations))
            is_line = bool(length > 0 and abs(centred @ deviations) > (1.0 - 1e-9) * length)
            order = np.lexsort((values, column))
            steps, same = np.diff(values[order]), np.diff(column[order]) == 0
            is_monotone = not (same & (steps != 0)).any() and bool((steps >= 0).all() or (steps <= 0).all())
            return is_line or is_monotone, is_line or is_monotone
        by_value = np.argsort(column, kind="stable")
        column, values = column[by_value], values[by_value]
        same, switches = column[1:] == column[:-1], values[1:] != values[:-1]
        if (same & switches).any():
            return False, False
        n_values, n_classes = int((~same).sum()) + 1, len(np.unique(values))
        has_few_values = n_values <= len(column) / 5
        return has_few_values or int(switches.sum()) == n_classes - 1, has_few_values


class ConditionalDifference(Difference):
    """Coefficients of the features on the attribute in a linear regression with an intercept for each level of relevance.

    Of two groups this is the mean over the levels of the difference of the groups' mean rows. A level of n rows, of which a share
    p belongs to the second group, weighs n p (1 - p): where one group is missing it says nothing. Of more groups it is what one
    of them adds beside the level's intercept, and of a number what one standard deviation of it adds.

    Parameters
    ----------
    X, attribute, order
        As for `Difference`.
    levels : ndarray of int64, shape (n_rows,)
        Level of each row, from 0.

    Raises
    ------
    ValueError
        If groups do not meet at any level, so that no difference at equal relevance is seen.
    """

    def __init__(self, X: np.ndarray, attribute: Attribute, order: np.ndarray, levels: np.ndarray):
        super().__init__(X, attribute, order)
        if attribute.n_classes == 1:
            return
        order, n = self.order, len(self.order)
        values, levels = attribute.values[order], levels[order]
        # Effects are beside the first group's, so that there are as many of them as columns, and none is a sum of others.
        columns = (values - values[0])[:, None] if attribute.is_numeric else np.eye(attribute.n_classes)[values, 1:]
        deviation = columns.std() if attribute.is_numeric else 1.0
        # Within each level, about its mean: that takes the level's intercept out.
        sums = np.zeros((levels.max() + 1, columns.shape[1]))
        np.add.at(sums, levels, columns)
        columns = columns - (sums / np.maximum(np.bincount(levels), 1)[:, None])[levels]
        if len(columns) < columns.shape[1]:
            columns = np.vstack([columns, np.zeros((columns.shape[1] - n, columns.shape[1]))])
        Q, R = np.linalg.qr(columns)
        center, moments = X[order[0]].astype(np.float64), np.zeros((Q.shape[1], X.shape[1]))
        for here, rows in blocks_of(X, order, center):
            moments += Q[here].T @ rows
        effects, _, _, singular = np.linalg.lstsq(R, moments, rcond=None)
        if singular[-1] <= np.sqrt(1e-9 * n) * deviation:
            raise ValueError(
                f"sensitive attribute ({attribute.name}): there are groups that do not meet at equal relevance, so that their "
                'difference beyond the labels cannot be seen. Merge levels of y, or use direction="difference".'
            )
        self.means = deviation * (effects if attribute.is_numeric else np.vstack([0.0 * center, effects]))
        self.means[:, ~self.varies] = 0.0
        self.between = np.zeros(X.shape[1])  # only the slope is asked at equal relevance
        # What labels explain of the features is left in the errors, so that they are rather too large.
        self._covariance = np.linalg.pinv(R.T @ R)
        self._squared_errors = deviation**2 * self._covariance[:1, :1] * self._left

    def _errors_beside(self, a):
        padded = np.pad(self._covariance, (1, 0))  # the first class is what the others are compared with
        variance = np.diag(padded)[a] + np.diag(padded)[a + 1 :] - 2.0 * padded[a, a + 1 :]
        return np.maximum(variance, 0.0)[:, None] * self._left


def less_error(distance: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Distances d that were measured with an error e, less what chance adds to them: d max(0, 1 - e^2 / d^2).

    This is the positive part of the estimator of James and Stein. It is continuous in d, and hardly changes what is far larger
    than its error.
    """
    ratio = np.divide(error, distance, out=np.full(np.shape(distance), np.inf), where=np.asarray(distance) > 0)
    return distance * np.maximum(1.0 - ratio**2, 0.0)


def largest_of(n_groups: int) -> float:
    """How many times the squared error of one difference counts where the largest among those of so many groups is taken."""
    return 1.0 + 2.0 * float(np.log(max(n_groups * (n_groups - 1) / 2, 1.0)))


def bins_of(number: np.ndarray) -> np.ndarray:
    """Bins of about equally many rows, numbered from 0: ten, or fewer where rows are few or numbers are equal."""
    n = max(min(_BINS, len(number) // _LEAST_IN_BIN), 1)
    edges = np.quantile(number, np.arange(1, n) / n)
    return np.unique(np.searchsorted(edges, number), return_inverse=True)[1]


def warn_of_small_groups(attribute: Attribute, members: np.ndarray) -> None:
    """Say which groups are so small that even large gaps of theirs cannot be told from chance."""
    if len(members) < 2:
        return
    errors = np.sqrt(largest_of(len(members)) * (1.0 / members + 1.0 / members.max()))
    small = np.flatnonzero(errors > _LARGE_ERROR)
    if len(small):
        shown = ", ".join(f"{str(attribute.labels[k])!r}: {errors[k]:.2f}" for k in small[:5])
        warn_caller(
            f"sensitive attribute ({attribute.name}) has groups of few rows, whose gaps below so many standard deviations of a "
            f"feature cannot be told from chance and count as none: {shown}. Merge them with others, or leave those rows out."
        )


def canonical_order(X: np.ndarray, values: np.ndarray, *, distinct: bool) -> np.ndarray:
    """Row numbers in an order that depends on the content of rows alone, so that what is learned depends on no shuffling.

    Rows are put in the order of a hash: a pass over X and no copy, where sorting all columns would cost several. Equal rows come
    together, so that each can be counted once, and the first rows of that order are a random sample.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_rows, n_features)
        May be memory-mapped; it is read by blocks.
    values : ndarray of float64, shape (n_rows,)
        One more column, which belongs to the content.
    distinct : bool
        Whether to keep one of several equal rows.

    Returns
    -------
    order : ndarray of int64, shape (at most n_rows,)
    """
    hashes = np.empty(len(X), np.uint64)
    for start in range(0, len(X), _BLOCK):
        here = slice(start, start + _BLOCK)
        hashes[here] = _hash_rows(X[here], values[here])
    order = np.argsort(hashes, kind="stable")
    if not distinct:
        return order
    ordered = hashes[order]
    repeats = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    keep = np.ones(len(order), bool)
    for start in range(0, len(repeats), _BLOCK):
        at = repeats[start : start + _BLOCK]
        row, before = order[at], order[at - 1]
        keep[at] = ~((X[row] == X[before]).all(axis=1) & (values[row] == values[before]))
    return order[keep]


def blocks_of(X: np.ndarray, order: np.ndarray, center: np.ndarray):
    """Blocks of the rows of X in this order, as (positions in `order`, rows less `center` as float64)."""
    for start in range(0, len(order), _BLOCK):
        here = slice(start, min(start + _BLOCK, len(order)))
        rows = X[order[here]].astype(np.float64, copy=False)
        rows -= center
        yield here, rows


def _hash_rows(X: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A number of 64 bits for each row, column after column by multiplication and shift (the mixing of SplitMix64)."""
    hashes = np.full(len(X), _ODD)
    columns = np.asfortranarray(np.column_stack([X, values]), dtype=np.float64)
    columns += 0.0  # minus zero equals zero
    for bits in columns.view(np.uint64).T:
        hashes ^= bits
        hashes *= _MIX
        hashes ^= hashes >> _HALF
        hashes *= _ODD
        hashes ^= hashes >> np.uint64(32)
    return hashes
