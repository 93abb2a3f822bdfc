"""How the groups of a sensitive attribute differ: in each feature, along a direction, and in which few directions.

The coefficients of a classifier say what predicts a group, which with correlated features is not how the groups differ (Haufe et
al. 2014, "On the interpretation of weight vectors of linear models", call the two filters and patterns).
"""

from __future__ import annotations

import numpy as np

from skfairrank._sensitive import Attribute
from skfairrank.fair_metrics._rows import blocks_of

__all__ = ["Difference"]

# Of several classes, directions are added until they hold this share of how the classes differ.
_ENOUGH = 0.9
# A column is looked at in so many rows before all rows are asked whether it alone determines an attribute.
_LOOK = 5000
# In fewer rows, or smaller groups, a column may tell groups apart by chance.
_LEAST_ROWS, _LEAST_MEMBERS = 30, 5


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
    varies : ndarray of bool, shape (n_features,)
        Which features are no constant.
    """

    def __init__(self, X: np.ndarray, attribute: Attribute, order: np.ndarray):
        self.attribute = attribute
        values = attribute.values[order]
        if not attribute.is_numeric:
            by_class = np.argsort(values, kind="stable")
            order, values = order[by_class], values[by_class]
        self.order = order
        low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
        center, number = X[order[0]].astype(np.float64), values - values[0]
        sums = np.zeros((max(attribute.n_classes, 2), X.shape[1]))
        for here, rows in blocks_of(X, order):
            low, high = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
            rows = rows - center
            if attribute.is_numeric:  # sums of the features, and of their products with the number
                sums[0] += rows.sum(axis=0)
                sums[1] += (rows * number[here, None]).sum(axis=0)
            else:
                classes, starts = np.unique(values[here], return_index=True)
                sums[classes] += np.add.reduceat(rows, starts, axis=0)
        self.varies = high > low
        n = len(order)
        if attribute.is_numeric:
            deviation = number.std()
            slope = (sums[1] - sums[0] * number.mean()) / n
            self.means = (slope / deviation if deviation > 0 else 0.0 * slope)[None]
            self.shares = np.ones(1)
        else:
            members = np.bincount(values)  # each class has a row
            self.means = sums[: len(members)] / members[:, None]
            self.shares = members / n
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
    def gaps(self) -> np.ndarray:
        """How far the groups lie apart in each feature, shape (n_features,), >= 0."""
        return np.abs(self._apart(self.means))

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
