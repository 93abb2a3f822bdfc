"""Constraints on the rows that an attack reaches: features within a range, one-hot groups on their simplex, immutable columns."""

from __future__ import annotations

from itertools import chain
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skfairrank._checks import check_feature_range, column_positions
from skfairrank._kernels.attack import feasible_directions, nearest_rows

#: Parameters that constrain rows, with their own constraints.
PARAMETERS: dict = {
    "feature_range": ["array-like", StrOptions({"train"}), None],
    "one_hot_groups": ["array-like", None],
    "immutable_features": ["array-like", str, Integral, None],
}
# By how much the entries of a row's one-hot group may miss the simplex.
_TOLERANCE = 1e-5


class FeatureConstraints(NamedTuple):
    """Constraints on all rows; `around` applies them to some.

    Parameters
    ----------
    low, high : ndarray of float64, shape (n_features,)
    groups : list of ndarray of int
        Positions of the columns of each one-hot group.
    immutable : ndarray of bool, shape (n_features,)
    """

    low: np.ndarray
    high: np.ndarray
    groups: list
    immutable: np.ndarray

    def around(self, X) -> FeasibleSet:
        """The rows that an attack on the rows X may reach.

        In each feature that is the range, stretched to hold the row's own value: a row that lies outside may stay where it is, or
        move towards the range, but not further out. Columns of one-hot groups have their simplex instead.
        """
        low, high = np.minimum(self.low, X), np.maximum(self.high, X)
        low[:, self.immutable], high[:, self.immutable] = X[:, self.immutable], X[:, self.immutable]
        return FeasibleSet(low, high, self.groups)


class FeasibleSet(NamedTuple):
    """A convex set for each of n rows, which holds the row itself.

    Parameters
    ----------
    low, high : ndarray of float64, shape (n_rows, n_features)
        0 and 1 in the columns of groups.
    groups : list of ndarray of int
    """

    low: np.ndarray
    high: np.ndarray
    groups: list

    def project(self, Z) -> np.ndarray:
        """The nearest feasible rows, shape (n_rows, n_features)."""
        return self._fill(nearest_rows, Z)

    def tangent(self, Z, slope) -> np.ndarray:
        """The part of a slope along which feasible rows Z may move, shape (n_rows, n_features)."""
        return self._fill(feasible_directions, Z, slope)

    def _fill(self, kernel, *rows):
        given = [np.ascontiguousarray(row, dtype=np.float64) for row in rows]
        out = np.empty_like(self.low)
        members = np.concatenate([*self.groups, np.empty(0, np.int64)]).astype(np.int64)
        ends = np.cumsum([0, *map(len, self.groups)])
        kernel(*given, self.low, self.high, members, ends, out)
        return out


def read_constraints(adversary, batches) -> FeatureConstraints:
    """The constraints that the parameters of an adversary name on a training set.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of order, or the rows of a group are not on the simplex.
    """
    feature_range, groups, columns = (getattr(adversary, name) for name in PARAMETERS)
    n_features, names = batches.n_features, getattr(batches, "feature_names", None)
    groups = [np.array(column_positions(group, "one_hot_groups", n_features, names)) for group in _as_groups(groups)]
    immutable = np.zeros(n_features, bool)
    if columns is not None:
        immutable[column_positions(columns, "immutable_features", n_features, names)] = True
    _check_groups(groups, immutable, names, batches)
    low, high = check_feature_range(feature_range, n_features, lambda: _range_of(batches), names)
    for group in groups:
        low[group], high[group] = 0.0, 1.0
    return FeatureConstraints(low, high, groups, immutable)


def _as_groups(groups) -> list:
    groups = [] if groups is None else list(groups)
    if any(isinstance(group, str) or not hasattr(group, "__len__") for group in groups):
        raise TypeError(
            f'one_hot_groups={groups!r}: give a list of groups, each a list of columns, such as [["red", "blue"], [5, 6, 7]].'
        )
    return groups


def _check_groups(groups, immutable, names, batches):
    """Raise where groups share columns, have only one, or the rows' entries are not on the simplex."""

    def said(group):
        return [int(j) if names is None else str(names[j]) for j in group]

    named = list(chain.from_iterable(groups))
    for group in groups:
        if len(group) < 2:
            raise ValueError(f"one_hot_groups has a group of one column, {said(group)}: it takes two at least.")
        if immutable[group].any():
            raise ValueError(
                f"one_hot_groups and immutable_features both have a column of {said(group)}: a group either moves on its "
                "simplex or is fixed; name it once."
            )
    if len(set(named)) < len(named):
        raise ValueError("one_hot_groups name a column twice: a column belongs to one group.")
    for batch in batches.in_order() if groups else ():
        for group in groups:
            values = np.asarray(batch.X[batch.rows][:, group], dtype=np.float64)
            off = (np.abs(values.sum(axis=1) - 1.0) > _TOLERANCE) | (values < -_TOLERANCE).any(axis=1)
            if off.any():
                raise ValueError(
                    f"A row has {np.round(values[off.argmax()], 3).tolist()} in the one-hot group {said(group)}: entries "
                    "must be >= 0 and sum to 1. If a scaler has moved them, scale numbers only, such as by "
                    'make_column_transformer((StandardScaler(), numbers), remainder="passthrough"); an encoder must not drop a '
                    "category; or name the columns in immutable_features instead."
                )


def _range_of(batches):
    blocks = [batch.X[batch.rows] for batch in batches.in_order()]
    return np.min([X.min(axis=0) for X in blocks], axis=0), np.max([X.max(axis=0) for X in blocks], axis=0)
