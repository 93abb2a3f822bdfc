"""Hypothetical rows: what the same item might as well have been, say of the other sex; from people who know, or from data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, check_is_fitted

from skfairrank._candidates import (
    Bounds,
    as_table,
    check_candidates,
    columns_with_missing,
    made_by,
    shifted,
    table_names,
)
from skfairrank.fair_metrics._differences import canonical_order
from skfairrank.fair_metrics._distances import fair_features, nearest_rows
from skfairrank.fair_metrics._linear import check_fair_metric, fitted_metric
from skfairrank.fair_metrics._subspace import fit_metric

__all__ = ["Hypotheticals", "check_hypotheticals"]


class Hypotheticals(BaseEstimator):
    """Candidate rows for every row of X: each set of candidates has the rows, the columns and the kind of X.

    A ranker is individually fair where no candidate of an item changes its score by much. Candidates come from five sources:
    functions of one's own; rows that one has, passed as `X_hypothetical`; steps along the directions of a fair metric; steps of
    the groups' gap in single features; and the training rows that are nearest in the fair metric.

    Parameters
    ----------
    functions : callable, list of callable or dict of name to callable, optional
        Each turns X into as many rows X': row i of X' is what item i might as well have been. It gets a copy of X as the user
        gave it, an array or a DataFrame with its text, categories and missing values, of training rows or others, many or few:
        so it must look at each row alone. To be pickled it must be defined in a module.
    directions : bool, default=False
        Steps along each of the metric's `directions_`: candidates x + step * subspace_radius * V_k.
    gaps : bool, default=False
        Steps in single features: candidates with x_j + step * gap_radius * gap_j, one feature j after the other, for all in which
        the groups differ (the metric's `gaps_`). That makes as many sets as there are such features, times the `steps`.
    n_neighbors : int, default=0
        So many training rows that are nearest in d_X, the metric's squared distance, and differ from the row in some feature.
    steps : tuple of float, default=(-1.0, -0.5, 0.5, 1.0)
        Multiples of the radii, for `directions` and `gaps`.
    subspace_radius : float, default=1.0
        What 1 among the `steps` means along a direction, in units of the direction. Along those of a metric that is learned by
        default, 1 is as far as the groups lie apart.
    gap_radius : float, default=1.0
        What 1 among the `steps` means in a feature, in units of the groups' gap in it.
    metric : None, fair metric, FrozenEstimator or array-like of shape (K, n_features), default=None
        For `directions`, `gaps` and `n_neighbors`, which need an X of numbers. As for `SenSTIRRanker`: None is learned from the
        `sensitive_features` of `fit`, an array holds directions.
    feature_range : None, "train" or tuple (low, high), default=None
        Bounds, by clipping, of what candidates hold in columns of numbers: with "train" the range of the training rows, else two
        numbers or two arrays of shape (n_features,). What a row itself holds beyond the bounds its candidates may hold, too:
        bounds keep candidates from going out, and push no row in.
    max_rows : int or None, default=10_000
        Neighbours are looked for among so many of the distinct training rows, drawn by a hash of their content; None: all.

    Attributes
    ----------
    names_ : list of str
        The name of each set of candidates, without those of `X_hypothetical`.
    metric_ : fair metric or None
        As fitted; None where no source needs it.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank.hypotheticals import Hypotheticals
    >>> def flip(X):
    ...     X[:, 1] = 1 - X[:, 1]
    ...     return X
    >>> X = np.array([[3.0, 0.0], [5.0, 1.0]])
    >>> for name, rows in Hypotheticals(flip).fit(X).candidates(X):
    ...     print(name, rows.tolist())
    flip [[3.0, 1.0], [5.0, 0.0]]
    """

    _parameter_constraints: dict = {
        "functions": [callable, list, tuple, Mapping, None],
        "directions": ["boolean"],
        "gaps": ["boolean"],
        "n_neighbors": [Interval(Integral, 0, None, closed="left")],
        "steps": ["array-like"],
        "subspace_radius": [Interval(Real, 0, None, closed="neither")],
        "gap_radius": [Interval(Real, 0, None, closed="neither")],
        "feature_range": [str, list, tuple, None],
        "max_rows": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(
        self,
        functions=None,
        *,
        directions=False,
        gaps=False,
        n_neighbors=0,
        steps=(-1.0, -0.5, 0.5, 1.0),
        subspace_radius=1.0,
        gap_radius=1.0,
        metric=None,
        feature_range=None,
        max_rows=10_000,
    ):
        self.functions = functions
        self.directions = directions
        self.gaps = gaps
        self.n_neighbors = n_neighbors
        self.steps = steps
        self.subspace_radius = subspace_radius
        self.gap_radius = gap_radius
        self.metric = metric
        self.feature_range = feature_range
        self.max_rows = max_rows

    @property
    def needs_metric(self) -> bool:
        """Whether a source of candidates asks a fair metric."""
        return bool(self.directions or self.gaps or self.n_neighbors)

    def fit(self, X, y=None, *, sensitive_features=None, metric=None):
        """Learn what needs data: the metric, the rows that may be neighbours, and bounds. Functions are not called.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix, shape (n_rows, n_features)
            Training rows.
        y : array-like of float, shape (n_rows,), optional
            Relevances, for a metric that compares groups at equal relevance.
        sensitive_features : array-like, shape (n_rows,) or (n_rows, n_attributes), optional
            For a metric that is learned here.
        metric : fitted fair metric, optional
            Takes the place of the parameter `metric` where that is None: that of the ranker that asks.

        Returns
        -------
        self : Hypotheticals

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range, or X does not fit the metric.
        """
        self._validate_params()
        X = as_table(X)
        self.n_features_in_, self._columns = X.shape[1], table_names(X)
        self._may_miss = columns_with_missing(X)
        self._bounds = Bounds.of(self.feature_range, X)
        self.metric_: Any = self._fit_metric(X, y, sensitive_features, metric) if self.needs_metric else None
        self._functions = _named(self.functions)
        self._shifts = self._named_shifts()
        if self.n_neighbors:
            self._fit_neighbors(X)
        neighbors = [f"neighbour {k}" for k in range(1, int(self.n_neighbors) + 1)]
        names = _distinct([*self._functions[0], *(name for name, _ in self._shifts), *neighbors])
        self.names_ = names
        return self

    def names(self, X_hypothetical=None) -> list[str]:
        """The name of each set of candidates that `candidates` gives, in its order."""
        check_is_fitted(self, "names_")
        return _distinct([*self.names_, *(name for name, _ in _given_tables(X_hypothetical))])

    def candidates(self, X, X_hypothetical=None) -> Iterable[tuple[str, object]]:
        """The sets of candidates for the rows of X, one after the other, so that memory need hold no more than one of them.

        They are made while one iterates over them, and made anew where one does so again.

        Parameters
        ----------
        X : table like that of `fit`, shape (n_rows, n_features)
            Training rows, or others.
        X_hypothetical : table like X, list or dict of such tables, or ndarray of shape (n_rows, n_sets, n_features), optional
            Candidates that one has: row i, or ``[i, k]``, stands for row i of X.

        Yields
        ------
        name : str
        candidates : table like X
            Not to be changed in place: it may be what the user passed.

        Raises
        ------
        ValueError, TypeError
            If there is no candidate at all, X has other columns than in `fit`, or what a function returned or the user passed has
            other rows, columns or kinds of values than X, or has missing or infinite values in a column where X has none. The
            message names the source.
        """
        check_is_fitted(self, "names_")
        X = as_table(X)
        self._check_columns(X)
        given = _given_tables(X_hypothetical)
        if not self.names_ and not given:
            raise ValueError(
                "There are no hypothetical rows: give hypotheticals, such as a function X -> X' that flips a column, or pass "
                "X_hypothetical, the hypothetical counterpart of each row of X."
            )
        makers = dict(zip(self.names(X_hypothetical), self._makers(X, given), strict=True))
        return _Sets(X, makers, self._bounds)

    def _makers(self, X, given):
        """A function for each set of candidates, which makes it."""
        for name, function in zip(*self._functions, strict=True):
            yield partial(made_by, name, function, X, self._may_miss)
        for _, shift in self._shifts:
            yield partial(shifted, X, shift)
        numbers = cache(lambda: self._neighbors_of(X).T)  # one search for all sets
        for k in range(int(self.n_neighbors)):
            yield lambda k=k: _like(X, _safe_indexing(self._pool, numbers()[k]))
        for name, table in given:
            table = as_table(table, name) if isinstance(table, (list, tuple)) else table
            yield partial(check_candidates, name, X, table, self._may_miss)

    def _check_columns(self, X):
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, and the hypotheticals were fitted on {self.n_features_in_}."
            )
        names = table_names(X)
        if names != self._columns and None not in (names, self._columns):
            raise ValueError(f"X has the columns {names}, and the hypotheticals were fitted on {self._columns}.")

    def _fit_metric(self, X, y, sensitive_features, metric):
        if self.metric is None and metric is not None:
            return check_fair_metric(fitted_metric(metric), X.shape[1])
        return fit_metric(self.metric, X, sensitive_features, y, uses_directions=bool(self.n_neighbors))

    def _named_shifts(self) -> list[tuple[str, np.ndarray]]:
        """Steps that are the same for all rows, as (name, shift of shape (n_features,))."""
        steps = np.asarray(self.steps, dtype=np.float64)
        if steps.ndim != 1 or not np.isfinite(steps).all() or not steps.all() or not len(steps):
            raise ValueError(
                f"steps={self.steps!r}: give one or several finite numbers other than 0, such as (-1.0, 1.0)."
            )
        shifts = []
        if self.directions:
            directions = float(self.subspace_radius) * np.asarray(self.metric_.directions_, dtype=np.float64)
            _check_there_are(directions, "directions")
            shifts += [(f"direction {k}, {t:+g}", t * row) for k, row in enumerate(directions) for t in steps.tolist()]
        if self.gaps:
            gaps = float(self.gap_radius) * self._gaps()
            differ = np.flatnonzero(gaps).tolist()
            _check_there_are(differ, "gaps")
            names, unit = self._columns or [f"feature {j}" for j in range(len(gaps))], np.eye(len(gaps))
            shifts += [(f"{names[j]}, {t:+g} gaps", t * gaps[j] * unit[j]) for j in differ for t in steps.tolist()]
        return shifts

    def _gaps(self):
        if not hasattr(self.metric_, "gaps_"):
            raise ValueError(
                f"gaps=True needs a metric that knows how far groups lie apart in each feature, such as SensitiveSubspaceMetric: "
                f"{type(self.metric_).__name__} has no gaps_."
            )
        return np.asarray(self.metric_.gaps_, dtype=np.float64)

    def _fit_neighbors(self, X):
        """The rows among which neighbours are looked for: distinct, and in an order that does not depend on that of the rows."""
        numbers = check_array(X, dtype=[np.float64, np.float32])
        kept = canonical_order(numbers, np.zeros(len(numbers)), distinct=True)[: self.max_rows]
        k = int(self.n_neighbors)
        if len(kept) <= k:
            raise ValueError(f"n_neighbors={k} needs at least {k + 1} distinct training rows, and X has {len(kept)}.")
        self._pool, self._pool_numbers = _safe_indexing(X, kept), numbers[kept].astype(np.float64)

    def _neighbors_of(self, X) -> np.ndarray:
        """Rows of the pool that are nearest to each row of X without being equal to it, shape (n_rows, n_neighbors)."""
        numbers = check_array(X, dtype=np.float64)
        fair, pool_fair, _ = fair_features(numbers, self._pool_numbers, self.metric_)
        return nearest_rows(numbers, fair, self._pool_numbers, pool_fair, int(self.n_neighbors))


class _Sets:
    """Sets of candidates by name, which are made whenever one iterates over them."""

    def __init__(self, X, makers: dict, bounds: Bounds | None):
        self.X, self.makers, self.bounds = X, makers, bounds

    def __len__(self):
        return len(self.makers)

    def __iter__(self):
        for name, make in self.makers.items():
            yield name, make() if self.bounds is None else self.bounds.clip(self.X, make())


def check_hypotheticals(hypotheticals) -> Hypotheticals:
    """What a parameter `hypotheticals` accepts, as `Hypotheticals`.

    Parameters
    ----------
    hypotheticals : None, callable, list or dict of callable, or Hypotheticals
        An object is returned as it is: clone it before it is fitted. None has no candidates but those of `X_hypothetical`.

    Raises
    ------
    TypeError
        If it is none of these.
    """
    if isinstance(hypotheticals, Hypotheticals):
        return hypotheticals
    _named(hypotheticals)
    return Hypotheticals(hypotheticals)


def _check_there_are(found, what: str) -> None:
    if not len(found):
        raise ValueError(
            f"{what}=True, but the metric has no {what} to step along: pass sensitive_features to fit, or a metric that has them."
        )


def _named(functions) -> tuple[list[str], list]:
    """Names and functions."""
    if functions is None:
        return [], []
    if isinstance(functions, Mapping):
        names, functions = [str(name) for name in functions], list(functions.values())
    else:
        functions = list(functions) if isinstance(functions, (list, tuple)) else [functions]
        names = [getattr(function, "__name__", type(function).__name__) for function in functions]
    for function in functions:
        if not callable(function) or isinstance(function, type):
            raise TypeError(
                f"hypotheticals has {function!r}, which is no function: give functions that turn X into hypothetical rows, one, "
                "a list or a dict by name, or Hypotheticals(...). Rows that you have go to X_hypothetical."
            )
    return _distinct(names), functions


def _distinct(names: list[str]) -> list[str]:
    """Names, those that came before with a number."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def _given_tables(X_hypothetical) -> list[tuple[str, object]]:
    """(name, table) of each set of rows that a user has."""
    if X_hypothetical is None:
        return []
    if isinstance(X_hypothetical, Mapping):
        return [(str(name), table) for name, table in X_hypothetical.items()]
    if isinstance(X_hypothetical, np.ndarray) and X_hypothetical.ndim == 3:
        X_hypothetical = [X_hypothetical[:, k] for k in range(X_hypothetical.shape[1])]
    elif not _is_list_of_tables(X_hypothetical):
        return [("X_hypothetical", X_hypothetical)]
    return [(f"X_hypothetical {k}", table) for k, table in enumerate(X_hypothetical)]


def _is_list_of_tables(given) -> bool:
    return isinstance(given, (list, tuple)) and len(given) > 0 and len(getattr(given[0], "shape", ())) == 2


def _like(X, table):
    """A table of the pool's rows with the index of X."""
    return table.set_axis(X.index) if isinstance(table, pd.DataFrame) and isinstance(X, pd.DataFrame) else table
