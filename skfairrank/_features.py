"""Features of rows as estimators with linear scores take them: numbers; where they are not, the message names the column."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

__all__ = ["validate_features"]


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
