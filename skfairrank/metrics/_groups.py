"""Group labels of rows, as users have them: the one place where `sensitive_features` of a metric is validated."""

from __future__ import annotations

import datetime
import warnings
from numbers import Integral

import numpy as np
import pandas as pd

from skfairrank._validation import as_values, refuse_a_name, refuse_amounts_as_text, sorted_codes

__all__ = ["check_groups"]

# Whole numbers are labels while they are few: at most MOST_CODES of them, and of more than FEW_CODES at most one for two rows.
# Ages pass the first bound in any data set worth auditing, and the second in small ones.
MOST_CODES = 20
FEW_CODES = 10


def check_groups(
    sensitive_features, n_rows: int, *, at_most: int | None = None, compared_by: str = "this metric"
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct group labels, sorted, and the number of each row's label, shape (n_rows,).

    A continuous attribute is refused, whatever holds its values: more than two numbers that are not whole, more than two dates,
    and whole numbers (ints, or decimals and strings that are read as such) of which there are more than 20, or more than 10 that
    are more than half as many as the rows. Categoricals are taken at their word.

    Parameters
    ----------
    sensitive_features : array-like, shape (n_rows,)
        Ints, strings, bools, categories or members of an enumeration; a table with one column will do.
    n_rows : int
        How many rows they must describe.
    at_most : int, optional
        How many distinct labels are allowed.
    compared_by : str
        What messages call that which compares the groups.
    """
    name = "sensitive_features"
    if sensitive_features is None:
        raise ValueError(
            f"{name} is missing: pass {name}=, one group label per row. In a search or cross-validation enable "
            "metadata routing (sklearn.set_config(enable_metadata_routing=True), in each thread) and pass it to fit, or as "
            "params=."
        )
    values = _one_column(sensitive_features, name)
    if len(values) != n_rows:
        raise ValueError(f"{name} has {len(values)} entries for {n_rows} rows: give one group label per row.")
    missing = pd.isna(values)
    if missing.any():
        raise ValueError(
            f"{name} has {int(missing.sum())} missing values (NaN or None): drop these rows, or give them a label."
        )
    try:
        codes, labels = sorted_codes(values, name)
    except TypeError as error:
        raise ValueError(f"{name} mixes labels that cannot be sorted: make them all of one kind ({error}).") from error
    if not _is_categorical(sensitive_features) and _are_continuous(labels, n_rows):
        raise ValueError(
            f"{name} is continuous ({len(labels)} distinct values in {n_rows} rows), and {compared_by} compares groups. Bin "
            "it first, for example by its median (pandas.cut), and pass the groups (a scorer takes them under another name by "
            f"set_score_request({name}='groups')). If the values are labels, say so by a categorical: "
            "pandas.Categorical(values)."
        )
    if not _is_categorical(sensitive_features):
        refuse_amounts_as_text(labels, name, "a categorical, pandas.Categorical(values)")
    if at_most is not None and len(labels) > at_most:
        shown = ", ".join(repr(label) for label in labels[: at_most + 2].tolist())
        raise ValueError(
            f"{name} has {len(labels)} groups ({shown}{', ...' if len(labels) > at_most + 2 else ''}), and {compared_by} "
            f"compares {at_most}. Merge groups."
        )
    return labels, codes.astype(np.int64, copy=False)


def _one_column(values, name: str) -> np.ndarray:
    refuse_a_name(values, name)
    values = as_values(values)
    if values.dtype.kind == "V":
        raise ValueError(f"{name} has the dtype {values.dtype}, records or raw bytes: give one label per row.")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        columns = f"{values.shape[1]} columns" if values.ndim == 2 else f"shape {values.shape}"
        raise ValueError(
            f"{name} has {columns}, one was expected: combine the columns into one label per row, or choose one."
        )
    return values


def _is_categorical(values) -> bool:
    """Whether the caller says that these are labels: pandas', polars' and pyarrow's categorical types."""
    if isinstance(values, pd.DataFrame):
        values = values.iloc[:, 0]
    elif hasattr(values, "iter_columns"):  # polars
        values = next(values.iter_columns())
    elif hasattr(values, "itercolumns"):  # pyarrow
        values = next(values.itercolumns())
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        return True
    kind = str(getattr(values, "dtype", getattr(values, "type", "")))
    return kind.startswith(("Categorical", "Enum", "dictionary"))


def _are_continuous(labels: np.ndarray, n_rows: int) -> bool:
    if len(labels) <= 2:
        return False
    numbers = _as_numbers(labels)
    if numbers is None:
        return False
    if numbers.dtype.kind == "M" or (numbers % 1 != 0).any():
        return True
    return len(labels) > MOST_CODES or (len(labels) > FEW_CODES and 2 * len(labels) > n_rows)


def _as_numbers(labels: np.ndarray) -> np.ndarray | None:
    """Labels as floats, or as dates; None where they are neither, such as names and intervals."""
    first = labels[0]
    if labels.dtype.kind in "mM" or isinstance(first, datetime.date | datetime.time | datetime.timedelta | pd.Period):
        return np.zeros(len(labels), "M8[s]")  # of dates it only matters that they are
    if labels.dtype.kind in "biuf":
        return labels.astype(np.float64)
    if hasattr(first, "value") and not isinstance(first, Integral):
        return None  # members of an enumeration, of strings too
    try:
        numbers = np.array([float(label) for label in labels])
        return numbers if np.isfinite(numbers).all() else None  # "nan" and "inf" are names
    except (TypeError, ValueError, OverflowError):
        pass
    if not isinstance(first, str):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of time zones, and reads the date
            return labels.astype("M8[s]")
    except ValueError:
        return None
