"""Candidate rows beside the rows for which they stand: they must have their length, columns and kind; errors name the source.

Tables are arrays, DataFrames of pandas, sparse matrices, or frames of other libraries that have `to_pandas`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse

from skfairrank._checks import check_feature_range, warn_caller

_ROWS = 1 << 14  # rows at once


def as_table(X, name: str = "X"):
    """Rows as they were given; a list, or whatever else is an array to NumPy, as an array.

    Raises
    ------
    ValueError
        If it has not two dimensions.
    """
    if not (isinstance(X, pd.DataFrame) or sparse.issparse(X) or hasattr(X, "to_pandas")):
        X = np.asarray(X)
    shape = getattr(X, "shape", ())
    if len(shape) != 2:
        raise ValueError(f"{name} has shape {tuple(shape)}: give a table of shape (n_rows, n_features).")
    return X


def table_names(X) -> list | None:
    """Column names of a frame; None where X has none."""
    names = getattr(X, "column_names", None)  # pyarrow's `columns` are data
    names = getattr(X, "columns", None) if names is None else names
    return None if names is None else list(names)


def as_frame(table) -> pd.DataFrame:
    """A table of any kind; columns without a name get their number."""
    if sparse.issparse(table):
        return pd.DataFrame.sparse.from_spmatrix(table).add_prefix("column ")
    if table_names(table) is None:
        return pd.DataFrame(table).add_prefix("column ")
    return table.to_pandas() if hasattr(table, "to_pandas") else table


def differs(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Where two tables hold other values; missing values are equal."""
    return ~((before == after).fillna(False).astype(bool) | (before.isna() & after.isna()))


def made_by(name: str, function, X, may_miss: np.ndarray):
    """What a function makes of a copy of X, which it may change in place, checked by `check_candidates`."""
    try:
        candidates = function(_copy_of(X))
    except Exception as error:
        columns = "no column names" if table_names(X) is None else f"the columns {table_names(X)}"
        note = (
            f"The hypothetical {name!r} got X as {type(X).__name__} of shape {tuple(X.shape)} with {columns}. (The last step of "
            "a pipeline knows what the other steps return, and not what the pipeline got.)"
        )
        if isinstance(error, LookupError) or type(error).__name__ == "ColumnNotFoundError":
            raise ValueError(f"{note} It asked for what is not there: {error}") from error
        error.add_note(note)
        raise
    return check_candidates(f"What the hypothetical {name!r} returned", X, candidates, may_miss)


def counterparts(X, given):
    """The hypothetical rows of X that a function makes or that a user has, checked; of texts, which are no table, as they are.

    Raises
    ------
    TypeError, ValueError
        As `check_candidates` does.
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        return given(_copy_of(X)) if callable(given) else given
    if callable(given):
        return made_by(getattr(given, "__name__", type(given).__name__), given, X, columns_with_missing(X))
    return check_candidates("X_hypothetical", X, given, columns_with_missing(X))


def with_effect(X, sets):
    """The same sets of (name, candidates), with a warning for each that changes no row, as a misspelt value makes it."""
    X = as_table(X)
    for name, candidates in sets:
        if is_same(X, candidates):
            warn_of_no_effect(name)
        yield name, candidates


def warn_of_no_effect(name: str) -> None:
    """Warn that a set of candidates is X itself."""
    warn_caller(f"The hypothetical {name!r} changes no row of X, and has no effect.")


def is_same(X, candidates) -> bool:
    """Whether candidates are the rows of X, value by value; missing values are equal."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        blocks = (slice(start, start + _ROWS) for start in range(0, len(X), _ROWS))
        return all(np.array_equal(X[block], candidates[block], equal_nan=True) for block in blocks)
    if isinstance(X, np.ndarray):
        X, candidates = pd.DataFrame(X), pd.DataFrame(candidates)
    return (X != candidates).nnz == 0 if sparse.issparse(X) else bool(X.equals(candidates))


def _copy_of(X):
    """A copy in memory that a function may change."""
    if isinstance(X, np.ndarray):
        return np.array(X)
    return X.copy() if hasattr(X, "copy") else X  # tables of polars and pyarrow do not change


def columns_with_missing(X) -> np.ndarray:
    """Whether each column has missing values, shape (n_features,)."""
    if isinstance(X, pd.DataFrame):
        return X.isna().to_numpy().any(axis=0)
    if not isinstance(X, np.ndarray):
        return columns_with_missing(X.to_pandas()) if hasattr(X, "to_pandas") else np.zeros(X.shape[1], bool)
    found = np.zeros(X.shape[1], bool)
    for start in range(0, len(X), _ROWS):
        found |= pd.isna(X[start : start + _ROWS]).any(axis=0)
    return found


def check_candidates(source: str, X, candidates, may_miss: np.ndarray):
    """Candidates for the rows of X, in the kind of X.

    Parameters
    ----------
    source : str
        What messages call the origin of the candidates, such as "The hypothetical 'flip'".
    X : table, as `as_table` returns it
    candidates : object
        What a function returned, or what was passed.
    may_miss : ndarray of bool, shape (n_features,)
        Columns in which missing values are no surprise.

    Returns
    -------
    candidates : table of the kind of X
        Categories are those of X, and a frame has its index.

    Raises
    ------
    TypeError
        If it is another kind of table, or a column has another kind of values.
    ValueError
        If it has other rows or columns, or missing or infinite values where X has none.
    """
    if isinstance(X, np.ndarray) and isinstance(candidates, (list, tuple)):
        candidates = np.asarray(candidates)
    is_like = sparse.issparse(candidates) if sparse.issparse(X) else isinstance(candidates, _kind_of(X))
    if not is_like:
        raise TypeError(
            f"{source} is of type {type(candidates).__name__}, and X is a {type(X).__name__}: hypothetical rows must be a table "
            f"like X, of the same kind and with the same columns.{_in_pipelines(source)}"
        )
    if tuple(candidates.shape) != tuple(X.shape):
        raise ValueError(
            f"{source} has shape {tuple(candidates.shape)}, and X has shape {tuple(X.shape)}: each row of X needs its "
            f"counterpart, with the same columns, in the same place.{_in_pipelines(source)}"
        )
    names, given = table_names(X), table_names(candidates)
    if names != given:
        if names is None or given is None or len(set(names)) < len(names) or set(names) != set(given):
            raise ValueError(f"{source} has the columns {given}, and X has {names}: keep the columns of X.")
        candidates = candidates[names] if isinstance(candidates, pd.DataFrame) else candidates.select(names)
    if sparse.issparse(X):
        candidates = candidates.tocsr()
        _check_column(source, "data", pd.Series(X.tocsr().data), pd.Series(candidates.data), False)
        return candidates
    if isinstance(X, np.ndarray):
        return _checked_array(source, X, candidates, may_miss)
    if isinstance(X, pd.DataFrame):
        return _checked_frame(source, X, candidates, may_miss)
    _checked_frame(source, X.to_pandas(), candidates.to_pandas(), may_miss)
    return candidates


def _in_pipelines(source: str) -> str:
    """What to do in a pipeline, which takes X through its steps, and metadata only if it is told to."""
    if not source.startswith("X_hypothetical"):
        return ""
    return " A pipeline takes it through the steps before the ranker with Pipeline(..., transform_input=['X_hypothetical'])."


def _kind_of(X):
    return next((kind for kind in (np.ndarray, pd.DataFrame) if isinstance(X, kind)), type(X))


def _checked_array(source, X, candidates, may_miss):
    candidates = np.asarray(candidates)
    if X.dtype.kind not in "biuf":  # objects, each column with values of its own
        frame, other = (pd.DataFrame(table).infer_objects() for table in (X, candidates))
        _checked_frame(source, frame, other, may_miss)
        return candidates
    if candidates.dtype.kind not in "biuf":
        raise TypeError(f"{source} has dtype {candidates.dtype}, and X has {X.dtype}: it must hold numbers.")
    if X.dtype.kind == "f":
        candidates = candidates.astype(X.dtype, copy=False)
    is_finite = np.ones(X.shape[1], bool)
    for start in range(0, len(X), _ROWS):
        is_finite &= np.isfinite(candidates[start : start + _ROWS]).all(axis=0)
    for j in np.flatnonzero(~is_finite).tolist():
        _check_column(source, j, pd.Series(X[:, j]), pd.Series(candidates[:, j]), may_miss[j])
    return candidates


def _checked_frame(source, X, candidates, may_miss):
    if not candidates.index.equals(X.index):
        if candidates.index.sort_values().equals(X.index.sort_values()):
            raise ValueError(f"{source} has the rows of X in another order: keep each in its place.")
        candidates = candidates.set_axis(X.index)
    for j, name in enumerate(X.columns):
        column = candidates.iloc[:, j]
        checked = _check_column(source, name, X.iloc[:, j], column, may_miss[j])
        if checked is not column:
            candidates = candidates.copy(deep=False)
            candidates.isetitem(j, checked)
    return candidates


def _check_column(source, name, column, other, may_miss):
    """The other column, with the categories of this one; raise where its values are of another kind, missing or infinite."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        other = _with_categories_of(source, name, column, other)
    elif _values_of(column.dtype) != _values_of(other.dtype):
        raise TypeError(f"{source} has dtype {other.dtype} in column {name!r}, and X has {column.dtype} there.")
    missing = other.isna()
    if missing.any() and not may_miss and not column.isna().any():
        raise ValueError(
            f"{source} has {int(missing.sum())} missing values in column {name!r}, where X has none (row "
            f"{int(np.argmax(missing))} is the first)."
        )
    if _values_of(other.dtype) == "numbers":
        infinite = ~np.isfinite(_as_floats(other)) & ~np.asarray(missing)
        if infinite.any() and np.isfinite(_as_floats(column[column.notna()])).all():
            raise ValueError(
                f"{source} has infinite values in column {name!r}, where X has none (row {int(np.argmax(infinite))} is the "
                "first)."
            )
    return other


def _with_categories_of(source, name, column, other):
    """The other column with these categories in this order, since models read their numbers."""
    categories, is_ordered = column.cat.categories, column.cat.ordered
    given = other if isinstance(other.dtype, pd.CategoricalDtype) else other.astype("category")
    if given.cat.categories.equals(categories) and given.cat.ordered == is_ordered:
        return given
    cast = given.cat.set_categories(categories, ordered=is_ordered)
    lost = cast.isna() & other.notna()
    if lost.any():
        raise ValueError(
            f"{source} has {other[lost].iloc[0]!r} in column {name!r}, which is none of its categories: {list(categories)}."
        )
    return cast


def _values_of(dtype) -> str:
    if isinstance(dtype, pd.CategoricalDtype):
        return "categories"
    if pd.api.types.is_numeric_dtype(dtype):  # bool, too
        return "numbers"
    return "dates" if pd.api.types.is_datetime64_any_dtype(dtype) else "text"


def _as_floats(column: pd.Series) -> np.ndarray:
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def shifted(X, shift: np.ndarray):
    """A copy of X plus a row of numbers. Columns that do not move stay as they are; those of ints become floats.

    Parameters
    ----------
    X : ndarray or DataFrame of numbers, shape (n_rows, n_features)
    shift : ndarray of float64, shape (n_features,)
    """
    if isinstance(X, np.ndarray):
        return X + shift.astype(X.dtype if X.dtype.kind == "f" else np.float64)
    moved = X.copy()
    for j in np.flatnonzero(shift):
        column = X.iloc[:, j]
        if pd.api.types.is_float_dtype(column.dtype):
            moved.isetitem(j, column + column.dtype.type(shift[j]))
        else:
            moved.isetitem(j, column.astype(np.float64) + shift[j])
    return moved


class Bounds:
    """How far features may move: from each row's own value to the bounds, and not beyond.

    Parameters
    ----------
    low, high : ndarray of float64, shape (n_features,)
        Bounds of columns that hold no numbers are not read.
    """

    def __init__(self, low: np.ndarray, high: np.ndarray):
        self.low, self.high = low, high

    @classmethod
    def of(cls, feature_range, X) -> Bounds | None:
        """Bounds from the parameter `feature_range` of `Hypotheticals`; for "train" those of the rows X."""
        if feature_range is None:
            return None
        if not (isinstance(X, pd.DataFrame) or (isinstance(X, np.ndarray) and X.dtype.kind in "biuf")):
            raise TypeError(
                f"feature_range={feature_range!r} needs X as an array of numbers or a pandas DataFrame, not {type(X).__name__}."
            )
        return cls(*check_feature_range(feature_range, X.shape[1], lambda: _range_of(X), table_names(X)))

    def clip(self, X, candidates):
        """Candidates within bounds; what a row of X itself holds beyond them is allowed. What is passed stays as it is."""
        if isinstance(X, np.ndarray):
            return self._clip_array(X, candidates)
        for j, column in enumerate(_numeric_columns(X)):
            if column is None:
                continue
            own, moved = _as_floats(column), _as_floats(candidates.iloc[:, j])
            clipped = np.clip(moved, np.fmin(self.low[j], own), np.fmax(self.high[j], own))
            if not np.array_equal(clipped, moved, equal_nan=True):
                dtype = candidates.dtypes.iloc[j]
                is_float = pd.api.types.is_float_dtype(dtype)
                candidates = candidates.copy(deep=False)
                candidates.isetitem(j, pd.Series(clipped, index=X.index, dtype=dtype if is_float else np.float64))
        return candidates

    def _clip_array(self, X, candidates):
        dtype = candidates.dtype if candidates.dtype.kind == "f" else np.float64
        out = np.array(candidates, dtype=dtype)
        for start in range(0, len(X), _ROWS):
            own = X[start : start + _ROWS]
            block = out[start : start + _ROWS]
            np.clip(block, np.fmin(self.low, own), np.fmax(self.high, own), out=block, casting="same_kind")
        return candidates if np.array_equal(out, candidates, equal_nan=True) else out


def _range_of(X) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest value of each column of numbers; nothing bounds the others."""
    low, high = np.full(X.shape[1], -np.inf), np.full(X.shape[1], np.inf)
    for j, column in enumerate(_numeric_columns(X)):
        values = None if column is None else _as_floats(column)
        if values is not None and not np.isnan(values).all():
            low[j], high[j] = np.nanmin(values), np.nanmax(values)
    return low, high


def _numeric_columns(X):
    """Each column of an array or a DataFrame, or None where it holds no numbers."""
    for j in range(X.shape[1]):
        column = pd.Series(X[:, j]) if isinstance(X, np.ndarray) else X.iloc[:, j]
        is_number = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
        yield column if is_number else None
