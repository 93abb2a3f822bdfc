"""Sensitive attributes of rows as users have them: the one place where a fair metric's `sensitive_features` are read."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pandas as pd

from skfairrank._validation import as_values, refuse_a_name, refuse_amounts_as_text, sorted_codes
from skfairrank._warnings import warn_caller

__all__ = ["Attribute", "read_attributes", "read_column", "said_of"]

# Whole numbers of so few values are more often codes of categories than amounts.
_FEW = 10
# Whose parameter `categorical` messages name.
OWNER = "SensitiveSubspaceMetric"
# Of several classes, one of fewer rows than this, and less than a fiftieth of all, is warned of.
_SMALL = 20


@dataclass(frozen=True)
class Attribute:
    """One sensitive attribute of every row.

    Parameters
    ----------
    name : str
        As messages and tables show it.
    values : ndarray of float64, shape (n_rows,)
        Numbers, or the positions of the rows' classes among `labels`.
    labels : ndarray or None
        Distinct classes, sorted; None for a number.
    """

    name: str
    values: np.ndarray
    labels: np.ndarray | None = None

    @property
    def is_numeric(self) -> bool:
        return self.labels is None

    @property
    def n_classes(self) -> int:
        return 0 if self.labels is None else len(self.labels)


def read_attributes(sensitive_features, n_rows: int, categorical, *, owner=OWNER) -> list[Attribute]:
    """The columns of `sensitive_features`, each as numbers or as classes.

    Parameters
    ----------
    sensitive_features : array-like, shape (n_rows,) or (n_rows, n_attributes)
    n_rows : int
    categorical : None, bool, or list of attribute names or positions
        What the user says of whole numbers; see `SensitiveSubspaceMetric`.
    owner : str
        The class whose parameter `categorical` is, for messages.

    Raises
    ------
    ValueError
        If an attribute has missing values or another length, or holds amounts written as text.
    """
    columns = _columns(sensitive_features)
    if not columns:
        raise ValueError("sensitive_features has no columns: give at least one attribute.")
    said = said_of([name for name, _ in columns], categorical, "attributes of sensitive_features")
    attributes, known = [], [name for name, _ in columns]
    for k, (name, values) in enumerate(columns):
        if known.count(name) > 1:
            name = f"{name} (column {k})"
        series = pd.Series(values)
        if not _are_members(series):  # pandas, too, would make ints of an IntEnum
            series = series.infer_objects()
        if len(series) != n_rows:
            raise ValueError(f"sensitive_features has {len(series)} entries for {n_rows} rows: give one per row.")
        attributes.append(_read(series, f"attribute {name}", f"sensitive_features (attribute {name})", said[k], owner))
    return attributes


def read_column(values: np.ndarray, name: str, categorical: bool | None) -> Attribute:
    """A column of X as an attribute: two values are classes, and so are more where the user says so."""
    return _read(pd.Series(values), name, f"X ({name})", categorical, OWNER)


def said_of(names: list, categorical, what: str) -> list[bool | None]:
    """Of each attribute what the user says with `categorical`: True (codes of classes), False (amounts), or None (nothing).

    Where some are listed, by name, position or a mask, the numbers that are not listed are said to be amounts.
    """
    if categorical is None or isinstance(categorical, (bool, np.bool_)):
        return [None if categorical is None else bool(categorical)] * len(names)
    listed = [categorical] if isinstance(categorical, (str, numbers.Integral)) else list(categorical)
    if listed and all(isinstance(flag, (bool, np.bool_)) for flag in listed):
        if len(listed) != len(names):
            raise ValueError(f"categorical is a mask of {len(listed)} entries for {len(names)} {what}.")
        return [bool(flag) for flag in listed]
    chosen = set()
    for name in listed:
        if name in names:
            chosen.add(names.index(name))
        elif isinstance(name, numbers.Integral) and -len(names) <= int(name) < len(names):
            chosen.add(int(name) % len(names))
        else:
            raise ValueError(f"categorical names {name!r}, which is not among the {what}: {names}.")
    return [k in chosen for k in range(len(names))]


def _columns(sensitive_features):
    """Each attribute as (name, values)."""
    if hasattr(sensitive_features, "iter_columns") and hasattr(sensitive_features, "get_columns"):  # polars
        return [(c.name, as_values(c)) for c in sensitive_features.iter_columns()]
    refuse_a_name(sensitive_features, "sensitive_features")
    if hasattr(sensitive_features, "column_names") and hasattr(sensitive_features, "to_pandas"):  # a pyarrow table
        sensitive_features = sensitive_features.to_pandas()
    if isinstance(sensitive_features, pd.DataFrame):
        return [(name, sensitive_features.iloc[:, i].array) for i, name in enumerate(sensitive_features.columns)]
    if isinstance(sensitive_features, pd.Series):
        return [(0 if sensitive_features.name is None else sensitive_features.name, sensitive_features.array)]
    if isinstance(getattr(sensitive_features, "dtype", None), pd.CategoricalDtype):
        return [(0, pd.Series(sensitive_features).array)]
    if isinstance(sensitive_features, (list, tuple)) and any(isinstance(v, Enum) for v in sensitive_features):
        values = np.empty(len(sensitive_features), object)  # NumPy would make ints of an IntEnum
        values[:] = sensitive_features
    else:
        values = as_values(sensitive_features)
    if values.ndim not in (1, 2):
        raise ValueError(f"sensitive_features has shape {values.shape}: give one column per attribute.")
    return [(0, values)] if values.ndim == 1 else list(enumerate(values.T))


def _read(series: pd.Series, name: str, place: str, categorical: bool | None, owner: str) -> Attribute:
    if series.isna().any():
        raise ValueError(f"{place} has missing values: drop those rows, or make missing a group of its own.")
    is_category = isinstance(series.dtype, pd.CategoricalDtype)
    amounts = None if is_category or categorical else _as_numbers(series)
    if amounts is not None and len(distinct := np.unique(amounts)) > 2:
        if categorical is None and len(distinct) <= _FEW and (distinct == np.round(distinct)).all():
            shown = ", ".join(f"{value:g}" for value in distinct)
            warn_caller(
                f"{place} has {len(distinct)} distinct whole numbers ({shown}), which are taken for amounts: one direction, "
                f"along which the attribute grows. If they are codes of categories, set categorical=True in {owner} or pass "
                "strings; if they are amounts, categorical=False says so."
            )
        return Attribute(name, amounts)
    codes, labels = sorted_codes(np.asarray(series.astype(object) if is_category else series), place)
    if not is_category and not categorical:
        remedy = f"categorical=True in {owner}, or a pandas categorical"
        refuse_amounts_as_text(labels, place, remedy)
        if len(labels) > 20 and 2 * len(labels) > len(series):
            raise ValueError(
                f"{place} has {len(labels)} different values in {len(series)} rows, such as {str(labels[0])!r}: names of "
                f"rows, not of groups. Pass groups of them. If they are classes, say so: {remedy}."
            )
    _warn_of_small_classes(codes, labels, place)
    return Attribute(name, codes.astype(np.float64), np.asarray(labels))


def _warn_of_small_classes(codes: np.ndarray, labels: np.ndarray, place: str) -> None:
    """Warn of several classes of which some are so small that chance decides how far they lie from the others."""
    if len(labels) < 3:
        return
    members = np.bincount(codes)
    small = [
        f"{label!r}: {count}"
        for label, count in zip(labels.tolist(), members)
        if count < _SMALL and count < len(codes) / 50
    ]
    if small:
        warn_caller(
            f"{place} has classes of very few rows ({', '.join(small[:5])}): their means are chance, and the gap in a "
            "feature is the largest difference of two classes' means. Merge them with others, or leave those rows out."
        )


def _as_numbers(series: pd.Series) -> np.ndarray | None:
    """Amounts and dates as float64; None where the values are no amounts."""
    dtype = series.dtype
    if pd.api.types.is_bool_dtype(dtype) or _are_members(series):
        return None
    if pd.api.types.is_complex_dtype(dtype):
        raise TypeError("sensitive features are complex numbers, which have no order: use ints, floats or strings.")
    if pd.api.types.is_numeric_dtype(dtype):
        return series.to_numpy(dtype=np.float64)
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind in ("date", "datetime", "datetime64"):
        times = pd.to_datetime(series, utc=True)
        return (times - times.min()).dt.total_seconds().to_numpy(dtype=np.float64)
    if kind in ("timedelta", "timedelta64"):
        return pd.to_timedelta(series).dt.total_seconds().to_numpy(dtype=np.float64)
    if kind == "period":
        return pd.PeriodIndex(series).asi8.astype(np.float64)
    if series.dtype == object and all(isinstance(v, numbers.Number) or _is_decimal(v) for v in series):
        if all(isinstance(v, (bool, np.bool_)) for v in series):
            return None
        return np.array([float(v) for v in series])
    return None


def _are_members(series: pd.Series) -> bool:
    """Whether values are members of an enumeration, which are classes."""
    return pd.api.types.is_object_dtype(series.dtype) and any(isinstance(value, Enum) for value in series)


def _is_decimal(value) -> bool:
    return type(value).__module__ in ("decimal", "_decimal", "_pydecimal") and hasattr(value, "as_tuple")
