"""Hypothetical rows: the same items with a binary attribute flipped (Bower et al. 2021, Section 4.2)."""

from __future__ import annotations

from numbers import Integral

import numpy as np

__all__ = ["flip_columns", "flip_sex"]

SEX_COLUMNS = ("Sex_female", "Sex_male")
SEX_POSITIONS = (3, 4)


def flip_columns(X, columns):
    """A copy of X with the values of two one-hot columns exchanged, which flips a binary attribute.

    The two columns must hold zeros and ones, at most one 1 in each row. A pair that has been standardised does not: an
    exchange would give a row values that belong to neither group. Flip the rows first and scale them afterwards; a scorer
    in a search does so by itself, where it gets the flip as its function and the scaler is a step of the pipeline.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of pandas, polars or pyarrow, shape (n_rows, n_features)
        The rows; not changed.
    columns : pair of int or str
        The two one-hot columns, by position or, where X has column names, by name. The prefix that a `ColumnTransformer`
        gives may be left out: "Sex_female" finds the column "cat__Sex_female".

    Returns
    -------
    flipped : ndarray, sparse matrix (CSR) or DataFrame
        What X is, with the same column names and dtypes.

    Raises
    ------
    ValueError
        If `columns` does not name two different columns of X, or these are no one-hot pair.

    Examples
    --------
    >>> flip_columns([[7, 0, 1], [8, 1, 0]], (1, 2))
    array([[7, 1, 0],
           [8, 0, 1]])
    """
    names = _names(X)
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    elif names is None:
        X = np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(f"X has shape {X.shape}: give a two-dimensional array, one row per item.")
    first, second = _positions(X.shape[1], names, columns)
    _check_one_hot(X, names, first, second)
    return _exchanged(X, first, second)


def flip_sex(X):
    """A copy of the rows of `make_credit_ranking` with everyone's sex flipped (Bower et al. 2021, Section 4.2).

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of pandas, polars or pyarrow, shape (n_rows, n_features)
        The columns are found by name ("Sex_female" and "Sex_male", with or without the prefix of a `ColumnTransformer`)
        where X has column names, in any place; else by position (3 and 4), in the column order of `encode_german_credit`.

    Returns
    -------
    flipped : ndarray, sparse matrix (CSR) or DataFrame
        What X is.

    Raises
    ------
    ValueError
        If X has column names and these are not among them, or the columns are no one-hot pair (see `flip_columns`).

    Examples
    --------
    >>> flip_sex([[0.5, 1.5, 2.5, 1.0, 0.0]])
    array([[0.5, 1.5, 2.5, 0. , 1. ]])
    """
    # A frame made of an array has numbers for names.
    is_named = not all(isinstance(name, Integral) for name in _names(X) or ())
    return flip_columns(X, SEX_COLUMNS if is_named else SEX_POSITIONS)


def _names(X) -> list | None:
    """Column names of a frame; None where X is none."""
    names = X.column_names if hasattr(X, "column_names") else getattr(X, "columns", None)  # pyarrow has both
    return None if names is None else list(names)


def _positions(n_columns: int, names: list | None, columns) -> tuple[int, int]:
    columns = [columns] if isinstance(columns, (str, Integral)) else list(columns)
    positions = [_position(column, n_columns, names or [], columns) for column in columns]
    if len(set(positions)) != 2 or len(positions) != 2:
        raise ValueError(f"columns={columns!r}: give two different columns, the one-hot pair to exchange.")
    return positions[0], positions[1]


def _position(column, n_columns: int, names: list, columns: list) -> int:
    found = [k for k, name in enumerate(names) if name == column]
    found = found or [k for k, name in enumerate(names) if isinstance(name, str) and name.endswith(f"__{column}")]
    if not found and isinstance(column, (int, np.integer)) and -n_columns <= column < n_columns:
        found = [int(column) % n_columns]
    if len(found) == 1:
        return found[0]
    among = f"Its columns are {', '.join(map(repr, names))}." if names else "They have no names: give positions."
    if found:
        raise ValueError(f"columns={columns!r}: X has several columns called {column!r}; give positions. {among}")
    raise ValueError(f"columns={columns!r}: X has {n_columns} columns and none is {column!r}. {among}")


def _check_one_hot(X, names: list | None, first: int, second: int) -> None:
    try:
        pair = np.column_stack([_column(X, k) for k in (first, second)])
    except (TypeError, ValueError):
        pair = np.full((1, 2), np.nan)
    if not np.isin(pair, (0, 1)).all() or (pair.sum(axis=1) > 1).any():
        which = f"{first} and {second}" if names is None else f"{names[first]!r} and {names[second]!r}"
        raise ValueError(
            f"The columns {which} are no one-hot pair (zeros and ones, at most one 1 in each row), so exchanging them does "
            "not flip a binary attribute. Scaled columns: flip the rows first and scale them afterwards. Other columns: "
            "name the right ones, flip_columns(X, (first, second))."
        )


def _column(X, k: int) -> np.ndarray:
    if hasattr(X, "tocsr"):
        return X[:, [k]].toarray()[:, 0].astype(float)
    column = X.iloc[:, k] if hasattr(X, "iloc") else X.column(k) if hasattr(X, "column_names") else X[:, k]
    return np.asarray(column).astype(float)


def _exchanged(X, first: int, second: int):
    """The values of two columns change places; names and dtypes stay where they are."""
    pair = (first, second), (second, first)
    if hasattr(X, "column_names"):  # pyarrow
        types, columns = X.schema.types, X.columns
        for here, there in pair:
            X = X.set_column(here, X.schema.field(here), columns[there].cast(types[here]))
        return X
    if hasattr(X, "with_columns"):  # polars
        names = X.columns
        return X.with_columns([X[names[there]].cast(X.dtypes[here]).alias(names[here]) for here, there in pair])
    if hasattr(X, "iloc"):
        flipped = X.copy()
        for here, there in pair:
            flipped.isetitem(here, X.iloc[:, there].astype(X.dtypes.iloc[here]))
        return flipped
    order = np.arange(X.shape[1])
    order[[first, second]] = second, first
    return X[:, order]
