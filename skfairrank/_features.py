"""Features of rows as estimators with linear scores take them: numbers; where they are not, the message names the column."""

from __future__ import annotations

import datetime
import numbers

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

__all__ = ["column_positions", "validate_features"]


def validate_features(estimator, X, y="no_validation", **settings):
    """scikit-learn's `validate_data`; where X holds text, dates or categories, the error names the column and the way out.

    Returns
    -------
    X, or (X, y) where y is given

    Raises
    ------
    ValueError
        As from `validate_data`, with the name of a column that is not numeric.
    """
    try:
        return validate_data(estimator, X, y, **settings)
    except (ValueError, TypeError) as error:
        found = _first_that_is_no_number(X)
        if found is None:
            raise
        name, example = found
        is_date = isinstance(example, datetime.date)
        remedy = (
            "turn dates into numbers, such as (column - column.min()).dt.days"
            if is_date
            else "encode it first, for instance by make_pipeline(make_column_transformer((OneHotEncoder(), columns), "
            "remainder='passthrough'), ranker)"
        )
        raise ValueError(
            f"Column {name!r} of X holds {example!r}, which is no number: leave the column out, or {remedy}. A column that "
            "only says which rows belong together is qid; one that is sensitive goes to sensitive_features."
        ) from error


def column_positions(columns, parameter: str, n_features: int, names=None) -> list[int]:
    """Positions of the columns that a parameter names, each once, in its order.

    Parameters
    ----------
    columns : str, int, or sequence of them, or a mask of n_features bools
    parameter : str
        How errors call it.
    n_features : int
    names : ndarray of str, shape (n_features,), or None
        Names of the features, where X has them.

    Raises
    ------
    TypeError, ValueError
        If a column is neither a name nor a position of X.
    """
    named: list = [columns] if isinstance(columns, (str, numbers.Integral)) else list(columns)
    if named and all(isinstance(column, (bool, np.bool_)) for column in named):
        if len(named) != n_features:
            raise ValueError(f"{parameter} is a mask of {len(named)} entries, but X has {n_features} columns.")
        named = np.flatnonzero(named).tolist()
    if not named:
        raise ValueError(f"{parameter} is empty: name at least one column, or leave it None.")
    return list(dict.fromkeys(_position(column, parameter, n_features, names) for column in named))


def _position(column, parameter, n_features, names) -> int:
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"{parameter} names {column!r}, but X has no column names (an earlier step may have dropped "
                'them). Call set_output(transform="pandas") on the pipeline, or give column positions.'
            )
        found = np.flatnonzero(np.asarray(names) == column)
        if not len(found):
            raise ValueError(
                f"{parameter} names {column!r}, which is not among the columns {list(names)}: name it as "
                "it arrives here (ColumnTransformer prefixes names unless verbose_feature_names_out=False)."
            )
        return int(found[0])
    if not isinstance(column, numbers.Integral):
        raise TypeError(f"{parameter} has {column!r}: give positions (ints) or names (strings) of columns.")
    if not -n_features <= column < n_features:
        raise ValueError(f"{parameter} has {int(column)}, but X has {n_features} columns.")
    return int(column) % n_features


def _first_that_is_no_number(X):
    """(name or position, a value) of the first column with a value that is no number; None if there is none."""
    try:
        frame = (
            X.to_pandas() if hasattr(X, "to_pandas") else pd.DataFrame(X if hasattr(X, "columns") else np.asarray(X))
        )
    except (ValueError, TypeError):
        return None
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        if pd.api.types.is_bool_dtype(column.dtype) or (
            pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype)
        ):
            continue
        as_text = isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_datetime64_any_dtype(column.dtype)
        numbers = pd.to_numeric(column.astype(object), errors="coerce")
        wrong = column[column.notna() & (numbers.isna() | as_text)]
        if len(wrong):
            value = wrong.iloc[0]
            value = value.item() if isinstance(value, np.generic) else value
            return (name, value) if isinstance(value, (str, datetime.date)) or as_text else None
    return None
