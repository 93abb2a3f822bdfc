"""What rows an attack may reach: features within a range, one-hot groups on their simplex, columns that do not move."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skfairrank._checks import column_positions
from skfairrank._kernels.attack import feasible_directions, nearest_rows

__all__ = ["PLAUSIBLE", "Plausible", "Reach", "read_plausible"]

#: Parameters that say what is plausible, with their constraints.
PLAUSIBLE: dict = {
    "feature_range": ["array-like", StrOptions({"train"}), None],
    "one_hot_groups": ["array-like", None],
    "immutable_features": ["array-like", str, Integral, None],
}
# By how much the entries of a row's one-hot group may miss the simplex.
_TOLERANCE = 1e-5


class Plausible(NamedTuple):
    """Rules for all rows; `around` applies them to some.

    Parameters
    ----------
    low, high : ndarray of float64, shape (n_features,)
    groups : list of ndarray of int
        Positions of the columns of each one-hot group.
    fixed : ndarray of bool, shape (n_features,)
    """

    low: np.ndarray
    high: np.ndarray
    groups: list
    fixed: np.ndarray

    def around(self, X) -> Reach:
        """The rows that an attack on the rows X may reach.

        In each feature that is the range, stretched to hold the row's own value: a row that lies outside may stay where it is, or
        move towards the range, but not further out. Columns of one-hot groups have their simplex instead.
        """
        low, high = np.minimum(self.low, X), np.maximum(self.high, X)
        low[:, self.fixed], high[:, self.fixed] = X[:, self.fixed], X[:, self.fixed]
        return Reach(low, high, self.groups)


class Reach(NamedTuple):
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
        """The nearest rows within reach, shape (n_rows, n_features)."""
        return self._fill(nearest_rows, Z)

    def tangent(self, Z, slope) -> np.ndarray:
        """The part of a slope along which rows Z within reach may move, shape (n_rows, n_features)."""
        return self._fill(feasible_directions, Z, slope)

    def _fill(self, kernel, *rows):
        given = [np.ascontiguousarray(row, dtype=np.float64) for row in rows]
        out = np.empty_like(self.low)
        members = np.concatenate([*self.groups, np.empty(0, np.int64)]).astype(np.int64)
        ends = np.cumsum([0, *map(len, self.groups)])
        kernel(*given, self.low, self.high, members, ends, out)
        return out


def read_plausible(settings, n_features: int, names, rows: Callable[[], Iterable[np.ndarray]]) -> Plausible | None:
    """The rules that parameters name; None where they name none.

    Parameters
    ----------
    settings : object
        Has the parameters of `PLAUSIBLE` as attributes; see `Ascent`.
    n_features : int
    names : sequence of str, or None
        Names of the features.
    rows : callable
        Gives the training rows in blocks; called only where they are needed.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of order, or the rows of a group are not on the simplex.
    """
    feature_range, groups, fixed = (getattr(settings, name) for name in PLAUSIBLE)
    if feature_range is None and groups is None and fixed is None:
        return None
    groups = [np.array(column_positions(group, "one_hot_groups", n_features, names)) for group in _as_groups(groups)]
    fixed_at = np.zeros(n_features, bool)
    if fixed is not None:
        fixed_at[column_positions(fixed, "immutable_features", n_features, names)] = True
    _check_groups(groups, fixed_at, names, rows)
    low, high = _read_range(feature_range, n_features, names, rows)
    for group in groups:
        low[group], high[group] = 0.0, 1.0
    return Plausible(low, high, groups, fixed_at)


def _as_groups(groups) -> list:
    groups = [] if groups is None else list(groups)
    if any(isinstance(group, str) or not hasattr(group, "__len__") for group in groups):
        raise TypeError(
            f'one_hot_groups={groups!r}: give a list of groups, each a list of columns, such as [["red", "blue"], [5, 6, 7]].'
        )
    return groups


def _check_groups(groups, fixed, names, rows):
    """Raise where groups share columns, have only one, or the rows' entries are not on the simplex."""
    named = list(chain.from_iterable(groups))
    for group in groups:
        if len(group) < 2:
            raise ValueError(f"one_hot_groups has a group of one column, {_said(group, names)}: it takes two at least.")
        if fixed[group].any():
            raise ValueError(
                f"one_hot_groups and immutable_features both have a column of {_said(group, names)}: a group either moves on its "
                "simplex or is fixed; name it once."
            )
    if len(set(named)) < len(named):
        raise ValueError("one_hot_groups name a column twice: a column belongs to one group.")
    for X in rows() if groups else ():
        for group in groups:
            values = np.asarray(X[:, group], dtype=np.float64)
            off = (np.abs(values.sum(axis=1) - 1.0) > _TOLERANCE) | (values < -_TOLERANCE).any(axis=1)
            if off.any():
                raise ValueError(
                    f"A row has {np.round(values[off.argmax()], 3).tolist()} in the one-hot group {_said(group, names)}: entries "
                    "must be >= 0 and sum to 1. If a scaler has moved them, scale numbers only, such as by "
                    'make_column_transformer((StandardScaler(), numbers), remainder="passthrough"); an encoder must not drop a '
                    "category; or name the columns in immutable_features instead."
                )


def _read_range(feature_range, n_features, names, rows):
    """Lower and upper ends, new arrays of shape (n_features,)."""
    if feature_range is None:
        return np.full(n_features, -np.inf), np.full(n_features, np.inf)
    if isinstance(feature_range, str):  # "train"
        low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
        for X in rows():
            low, high = np.minimum(low, X.min(axis=0)), np.maximum(high, X.max(axis=0))
        return low.astype(np.float64), high.astype(np.float64)
    if len(feature_range) != 2:
        raise ValueError(
            f'feature_range={feature_range!r}: give "train", or (low, high), each a number or one number for each feature.'
        )
    ends = []
    for name, end in zip(("low", "high"), feature_range, strict=True):
        try:
            end = np.asarray(end, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"feature_range has {end!r} as its {name} end: give a number or one for each feature."
            ) from None
        if end.ndim > 1 or (end.ndim == 1 and len(end) != n_features):
            raise ValueError(
                f"The {name} end of feature_range has shape {end.shape}, and there are {n_features} features: give a number or "
                "one for each feature."
            )
        if np.isnan(end).any():
            raise ValueError(f"The {name} end of feature_range is NaN: where a feature has no bound give -inf or inf.")
        ends.append(np.broadcast_to(end, n_features).copy())
    if (ends[0] > ends[1]).any():
        j = int(np.argmax(ends[0] > ends[1]))
        raise ValueError(
            f"feature_range has low {ends[0][j]} above high {ends[1][j]} in feature {_said([j], names)[0]!r}: give (low, high)."
        )
    return ends[0], ends[1]


def _said(columns, names) -> list:
    return [int(j) if names is None else str(names[j]) for j in columns]
