"""Hypothetical rows: the same items with a binary attribute flipped (Bower et al. 2021, Section 4.2)."""

from __future__ import annotations

from numbers import Integral

import numpy as np

__all__ = ["flip_columns", "flip_sex"]

SEX_COLUMNS = ("Sex_female", "Sex_male")
SEX_POSITIONS = (3, 4)


def flip_columns(X, columns):
    """A copy of X with the values of two columns exchanged, which flips a one-hot encoded binary attribute.

    Parameters
    ----------
    X : array-like, sparse matrix or pandas DataFrame, shape (n_rows, n_features)
        The rows; not changed.
    columns : pair of int or str
        The two one-hot columns, by position or (of a DataFrame) by name.

    Returns
    -------
    flipped : ndarray, sparse matrix (CSR) or DataFrame
        What X is, with the same column names and dtypes.

    Raises
    ------
    ValueError
        If `columns` does not name two different columns of X.

    Examples
    --------
    >>> flip_columns([[7, 0, 1], [8, 1, 0]], (1, 2))
    array([[7, 1, 0],
           [8, 0, 1]])
    """
    is_frame = hasattr(X, "iloc")
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    elif not is_frame:
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}: give a two-dimensional array, one row per item.")
    first, second = _positions(X, columns, is_frame)
    order = np.arange(X.shape[1])
    order[[first, second]] = second, first
    if not is_frame:
        return X[:, order]
    # Names and dtypes stay where they are, only the values change places.
    flipped = X.iloc[:, order].set_axis(X.columns, axis=1)
    return flipped.astype({X.columns[k]: X.dtypes.iloc[k] for k in (first, second)})


def flip_sex(X):
    """A copy of the rows of `make_credit_ranking` with everyone's sex flipped (Bower et al. 2021, Section 4.2).

    Parameters
    ----------
    X : array-like, sparse matrix or pandas DataFrame, shape (n_rows, n_features)
        Rows in the column order of `encode_german_credit`; a DataFrame's columns are found by name
        ("Sex_female" and "Sex_male"), an array's by position (3 and 4).

    Returns
    -------
    flipped : ndarray, sparse matrix (CSR) or DataFrame
        What X is.

    Examples
    --------
    >>> flip_sex([[0.5, 1.5, 2.5, 1.0, 0.0]])
    array([[0.5, 1.5, 2.5, 0. , 1. ]])
    """
    named = hasattr(X, "iloc") and set(SEX_COLUMNS) <= set(X.columns)
    return flip_columns(X, SEX_COLUMNS if named else SEX_POSITIONS)


def _positions(X, columns, is_frame: bool) -> tuple[int, int]:
    columns = [columns] if isinstance(columns, (str, Integral)) else list(columns)
    positions = []
    for column in columns:
        if is_frame and column in X.columns:
            position = X.columns.get_loc(column)
        elif isinstance(column, Integral) and -X.shape[1] <= column < X.shape[1]:
            position = int(column) % X.shape[1]
        else:
            raise ValueError(f"columns={columns!r}: X has {X.shape[1]} columns and none is {column!r}.")
        if not isinstance(position, int):
            raise ValueError(f"columns={columns!r}: X has several columns called {column!r}; give positions.")
        positions.append(position)
    if len(set(positions)) != 2 or len(positions) != 2:
        raise ValueError(f"columns={columns!r}: give two different columns, the one-hot pair to exchange.")
    return positions[0], positions[1]
