"""`sensitive_features` as users have them: read here alone, by one rule for estimators, metrics and audits.

An attribute of text, bools, categories or members of an enumeration, or of at most two distinct values, is a set of *groups*. An
attribute of more than two distinct numbers (ints too), dates or durations is an *amount*: what learns takes its slope, and what
compares groups raises an error with the remedy, since codes 0, 1, 2, 3 are written like ages. Who has codes says so by text
(``values.astype(str)``), by ``pandas.Categorical(values)``, or by the parameter `categorical` of an estimator. Missing values are
an error, unless ``unknown_groups="leave_out"`` says that rows of unknown group stay, and count where no groups are compared.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd

from skfairrank._checks import as_values, column_positions, refuse_a_name, sorted_codes, warn_caller

NAME = "sensitive_features"
_FEW_CODES = 10  # whole numbers of so few values are more often codes than amounts: estimators warn
#: What the parameter `unknown_groups` may be.
UNKNOWN_GROUPS = ("error", "leave_out")


@dataclass(frozen=True)
class Attribute:
    """One sensitive attribute of every row.

    Parameters
    ----------
    name : str
        As messages and tables show it.
    values : ndarray, shape (n_rows,)
        Amounts as float64, nan where unknown; or the position of each row's group among `labels`, -1 where unknown.
    labels : ndarray or None
        Distinct groups, sorted; None for an amount.
    """

    name: str
    values: np.ndarray
    labels: Any = None

    @property
    def is_numeric(self) -> bool:
        return self.labels is None

    @property
    def n_classes(self) -> int:
        return 0 if self.labels is None else len(self.labels)

    @property
    def is_known(self) -> np.ndarray:
        """Which rows have a value, shape (n_rows,)."""
        return ~np.isnan(self.values) if self.is_numeric else self.values >= 0

    def take(self, rows: np.ndarray | slice) -> Attribute:
        """The attribute of these rows: a mask, their numbers, or a slice."""
        return replace(self, values=self.values[rows])

    def as_groups(self) -> Attribute:
        """Itself; of an amount the rows at most at its median and those above, or where none is above, those below it."""
        if not self.is_numeric:
            return self
        median, known = np.median(self.values[self.is_known]), self.is_known
        above = self.values > median if (self.values > median).any() else self.values >= median
        return Attribute(self.name, np.where(known, above, -1).astype(np.int64), np.array(["low", "high"]))


def crossed_attribute(attributes: list[Attribute]) -> Attribute:
    """The combinations of the groups of several attributes that occur, unknown where one of them is; amounts make two groups."""
    if len(attributes) < 2:
        raise ValueError("crossed=True needs at least two attributes: give a DataFrame, or a dict of name to groups.")
    attributes = [one.as_groups() for one in attributes]
    known = np.all([one.is_known for one in attributes], axis=0)
    cells, codes = np.unique(np.column_stack([one.values[known] for one in attributes]), axis=0, return_inverse=True)
    values = np.full(len(known), -1)
    values[known] = np.ravel(codes)
    names = [", ".join(str(one.labels[k]) for one, k in zip(attributes, cell, strict=True)) for cell in cells]
    return Attribute(" x ".join(one.name for one in attributes), values, np.array(names, dtype=object))


def check_groups(
    sensitive_features,
    n_rows: int,
    *,
    at_most: int | None = None,
    compared_by: str = "this metric",
    unknown_groups: str | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct groups of the one attribute, sorted, and the number of each row's group, shape (n_rows,), -1 where unknown.

    Parameters
    ----------
    sensitive_features : array-like, shape (n_rows,), or a table with one column
    n_rows : int
        How many rows they must describe.
    at_most : int, optional
        How many groups are allowed.
    compared_by : str
        What messages call that which compares the groups.
    unknown_groups : {"error", "leave_out"} or None
        What missing values are. None: an error, where there is no such parameter to be named as the remedy.
    """
    columns = _columns(sensitive_features)
    if len(columns) != 1:
        raise ValueError(
            f"{NAME} has {len(columns)} columns, one was expected: combine the columns into one label per row, or choose one."
        )
    attribute = _groups(columns[0][1], NAME, NAME, n_rows, at_most, compared_by, unknown_groups)
    return attribute.labels, attribute.values


def check_group_columns(
    sensitive_features, n_rows: int, *, compared_by: str, crossed: bool = False, unknown_groups: str | None = None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """As `check_groups`, of each of several attributes by its name: columns of a table, or the entries of a dict.

    With `crossed` also of their combinations, under the name "sex x race".
    """
    columns = _columns(sensitive_features)
    if len(columns) == 1 and columns[0][0] == 0:
        columns = [("group", columns[0][1])]
    named = {name if isinstance(name, str) else f"attribute {name}": values for name, values in columns}
    if len(named) < len(columns):
        raise ValueError(
            f"{NAME} has columns of one name ({[name for name, _ in columns]}): give each attribute its own."
        )
    attributes = [
        _groups(values, name, f"{NAME} ({name})", n_rows, None, compared_by, unknown_groups)
        for name, values in named.items()
    ]
    attributes += [crossed_attribute(attributes)] if crossed else []
    return {one.name: (one.labels, one.values) for one in attributes}


def counting_unknown(labels, codes: np.ndarray) -> tuple[list, np.ndarray]:
    """Labels and codes in which rows of unknown group are a group of their own, "unknown", the last one."""
    labels = list(labels)
    if (codes >= 0).all():
        return labels, codes
    labels += [] if "unknown" in labels else ["unknown"]
    return labels, np.where(codes >= 0, codes, labels.index("unknown"))


def read_attributes(
    sensitive_features,
    n_rows: int,
    categorical=None,
    *,
    crossed: bool = False,
    unknown_groups: str = "error",
    owner: str = "SensitiveSubspaceMetric",
) -> list[Attribute]:
    """Each column of `sensitive_features` as groups or as amounts, for an estimator that learns from it.

    Parameters
    ----------
    sensitive_features : array-like, shape (n_rows,) or (n_rows, n_attributes), or dict of columns
    n_rows : int
    categorical : None, bool, or list of attribute names or positions
        What the user says of whole numbers; see `SensitiveSubspaceMetric`.
    crossed : bool
        Whether to add the combinations of the attributes' groups, the last one.
    unknown_groups : {"error", "leave_out"}
        What missing values are.
    owner : str
        The class whose parameters these are, for messages.
    """
    columns = _columns(sensitive_features)
    names = [name for name, _ in columns]
    said = said_of(names, categorical)
    attributes = []
    for k, (name, values) in enumerate(columns):
        known_as = f"attribute {name}" + (f" (column {k})" if names.count(name) > 1 else "")
        place = f"{NAME} ({known_as})"
        _check_length(values, place, n_rows)
        attributes.append(_learnable(values, known_as, place, said[k], owner, unknown_groups))
    return [*attributes, crossed_attribute(attributes)] if crossed else attributes


def read_column(values: np.ndarray, name: str, categorical: bool | None) -> Attribute:
    """A column of X as an attribute: two values are groups, and so are more where the user says so."""
    return _learnable(pd.Series(values), name, f"X ({name})", categorical, "SensitiveSubspaceMetric")


def said_of(names: list, categorical) -> list[bool | None]:
    """What the user says of each attribute with `categorical`: True (codes of groups), False (amounts), or None (nothing).

    Where some are listed, by name, position or a mask, the others are said to be amounts.
    """
    if categorical is None or isinstance(categorical, (bool, np.bool_)):
        return [None if categorical is None else bool(categorical)] * len(names)
    listed = [categorical] if isinstance(categorical, (str, numbers.Integral)) else list(categorical)
    is_name = [one in names and not isinstance(one, (bool, np.bool_)) for one in listed]  # ints may be names
    listed = [names.index(one) if known else one for one, known in zip(listed, is_name, strict=True)]
    chosen = column_positions(listed, "categorical", len(names), names) if listed else []
    return [k in chosen for k in range(len(names))]


def _groups(values: pd.Series, name, place, n_rows: int, at_most: int | None, compared_by: str, unknown_groups):
    _check_length(values, place, n_rows)
    attribute = _read(values, name, place, unknown_groups=unknown_groups, owner=compared_by)
    if attribute.is_numeric:
        n_distinct = len(np.unique(attribute.values[attribute.is_known]))
        raise ValueError(
            f"{place} is continuous ({n_distinct} distinct values in {n_rows} rows), and {compared_by} "
            "compares groups. If the numbers are codes of groups, say so by text or categories: values.astype(str), "
            "pandas.Categorical(values). If they are amounts, bin them, for example by pandas.cut, and pass the bins (a scorer "
            f"takes them under another name by set_score_request({NAME}='groups'))."
        )
    labels = attribute.labels
    if at_most is not None and len(labels) > at_most:
        shown = ", ".join(
            [*(repr(label) for label in labels[: at_most + 2].tolist()), *["..."][len(labels) <= at_most + 2 :]]
        )
        raise ValueError(
            f"{place} has {len(labels)} groups ({shown}), and {compared_by} compares {at_most}. Merge groups."
        )
    return attribute


def _learnable(
    values: pd.Series, name: str, place: str, categorical: bool | None, owner: str, unknown_groups: str = "error"
) -> Attribute:
    """An attribute with warnings and errors of what cannot be learned well."""
    remedy = f"categorical=True in {owner}, or pandas.Categorical(values), a categorical"
    attribute = _read(values, name, place, categorical, remedy, unknown_groups, owner)
    known = attribute.values[attribute.is_known]
    if attribute.is_numeric:
        distinct = np.unique(known)
        if categorical is None and len(distinct) <= _FEW_CODES and (distinct == np.round(distinct)).all():
            shown = ", ".join(f"{value:g}" for value in distinct)
            warn_caller(
                f"{place} has {len(distinct)} distinct whole numbers ({shown}), which are taken for amounts: one direction, "
                f"along which the attribute grows. If they are codes of categories, set categorical=True in {owner} or pass "
                "strings; if they are amounts, categorical=False says so."
            )
        return attribute
    labels = attribute.labels
    said = categorical or isinstance(values.dtype, pd.CategoricalDtype)
    if not said and attribute.n_classes > 20 and 2 * attribute.n_classes > len(known):
        raise ValueError(
            f"{place} has {len(labels)} different values in {len(known)} rows, such as {str(labels[0])!r}: names of rows, not of "
            f"groups. Pass groups of them. If they are classes, say so: {remedy}."
        )
    return attribute


def _read(
    values: pd.Series,
    name: str,
    place: str,
    categorical: bool | None = None,
    remedy: str = "a categorical, pandas.Categorical(values)",
    unknown_groups: str | None = None,
    owner: str = "",
) -> Attribute:
    """The rule at the top of this module; `categorical=True` makes groups of any values."""
    if unknown_groups not in (None, *UNKNOWN_GROUPS):
        raise ValueError(f"unknown_groups={unknown_groups!r}: choose one of {list(UNKNOWN_GROUPS)}.")
    missing = values.isna().to_numpy()
    if missing.any() and (unknown_groups != "leave_out" or missing.all()):
        keeps = f'keep them, which then count in no comparison of groups, by unknown_groups="leave_out" in {owner}, '
        raise ValueError(
            f"{place} has {missing.sum()} missing values (NaN or None) in {len(values)} rows: "
            f"{keeps if unknown_groups == 'error' else ''}drop these rows, or give them a label of their own."
        )
    if missing.any():
        known = _read(values[~missing].reset_index(drop=True).infer_objects(), name, place, categorical, remedy)
        filled = np.full(len(values), np.nan if known.is_numeric else -1, dtype=known.values.dtype)
        filled[~missing] = known.values
        return replace(known, values=filled)
    is_category = isinstance(values.dtype, pd.CategoricalDtype)
    amounts = None if is_category or categorical else _as_amounts(values)
    if amounts is not None and len(np.unique(amounts)) > 2:
        return Attribute(name, amounts)
    codes, labels = sorted_codes(np.asarray(values.astype(object) if is_category else values), place)
    if not is_category and not categorical:
        _refuse_amounts_as_text(labels, place, remedy)
    return Attribute(name, codes.astype(np.int64, copy=False), labels)


def _columns(sensitive_features) -> list[tuple]:
    """Each attribute as (name or position, Series); categories stay categories, whatever library holds them."""
    given = sensitive_features
    if given is None:
        raise ValueError(
            f"{NAME} is missing: pass {NAME}=, one group label per row. In a search or cross-validation enable metadata routing "
            "(sklearn.set_config(enable_metadata_routing=True), in each thread) and pass it to fit, or as params=."
        )
    refuse_a_name(given, NAME)
    columns: list[tuple]
    if isinstance(given, Mapping):
        columns = [(str(name), _series(values)) for name, values in given.items()]
    elif hasattr(given, "column_names") and hasattr(given, "to_pandas"):  # a pyarrow table
        columns = [(name, _series(given.column(k))) for k, name in enumerate(given.column_names)]
    elif hasattr(given, "get_columns"):  # a polars frame
        columns = [(column.name, _series(column)) for column in given.get_columns()]
    elif isinstance(given, pd.DataFrame):
        columns = [(name, _series(given.iloc[:, k])) for k, name in enumerate(given.columns)]
    elif isinstance(given, (pd.Series, pd.Categorical, pd.Index)) or _of_another_library(given):
        name = getattr(given, "name", None)
        columns = [(0 if name is None or name == "" else name, _series(given))]
    else:
        values = _members(given) if _has_members(given) else as_values(given, NAME)
        if values.dtype.kind == "V":
            raise ValueError(f"{NAME} has the dtype {values.dtype}, records or raw bytes: give one label per row.")
        if values.ndim not in (1, 2):
            raise ValueError(f"{NAME} has shape {values.shape}: give one column per attribute.")
        columns = [(k, _series(column)) for k, column in enumerate(values.T if values.ndim == 2 else [values])]
    if not columns:
        raise ValueError(f"{NAME} has no columns: give at least one attribute.")
    return columns


def _series(values) -> pd.Series:
    kind = str(getattr(values, "dtype", getattr(values, "type", "")))
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        return pd.Series(values).reset_index(drop=True)
    if kind.startswith(("Categorical", "Enum", "dictionary")):  # of polars and pyarrow
        return pd.Series(pd.Categorical(values.to_pylist() if hasattr(values, "to_pylist") else values.to_list()))
    if not isinstance(values, (pd.Series, pd.api.extensions.ExtensionArray)):
        values = _members(values) if _has_members(values) else as_values(values, NAME)
    if getattr(values, "ndim", 1) != 1:
        raise ValueError(f"{NAME} has a column of shape {values.shape}: give one label per row.")
    series = pd.Series(values).reset_index(drop=True)
    return series if _has_members(series) else series.infer_objects()


def _has_members(values) -> bool:
    """Whether a list or a column holds members of an enumeration, of which NumPy and pandas would make ints."""
    if isinstance(values, (np.ndarray, pd.Series)) and (
        values.ndim != 1 or not pd.api.types.is_object_dtype(values.dtype)
    ):
        return False
    return isinstance(values, (list, tuple, np.ndarray, pd.Series)) and any(isinstance(value, Enum) for value in values)


def _members(values) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _of_another_library(values) -> bool:
    """Whether it is a column of polars or pyarrow."""
    return hasattr(values, "to_pandas") and not hasattr(values, "columns")


def _check_length(values: pd.Series, place: str, n_rows: int) -> None:
    if len(values) != n_rows:
        raise ValueError(f"{place} has {len(values)} entries for {n_rows} rows: give one group label per row.")


def _as_amounts(values: pd.Series) -> np.ndarray | None:
    """Numbers, dates and durations as float64; None for values of other kinds."""
    if pd.api.types.is_bool_dtype(values.dtype) or _has_members(values):
        return None
    if pd.api.types.is_complex_dtype(values.dtype):
        raise TypeError(f"{NAME} are complex numbers, which have no order: use ints, floats or strings.")
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64)
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind in ("date", "datetime", "datetime64"):
        times = pd.to_datetime(values, utc=True)
        return (times - times.min()).dt.total_seconds().to_numpy(dtype=np.float64)
    if kind in ("timedelta", "timedelta64"):
        return pd.to_timedelta(values).dt.total_seconds().to_numpy(dtype=np.float64)
    if kind == "period":
        return pd.PeriodIndex(values).asi8.astype(np.float64)
    is_number = values.dtype == object and all(isinstance(value, (numbers.Number, Decimal)) for value in values)
    if is_number and not all(isinstance(value, (bool, np.bool_)) for value in values):
        return np.array([float(value) for value in values])
    return None


def _refuse_amounts_as_text(labels: np.ndarray, place: str, remedy: str) -> None:
    """Raise where text of more than 10 different values holds amounts or dates, such as "23 years" or "14.03.1979"."""
    if len(labels) <= 10 or not all(isinstance(label, str) for label in labels):
        return
    if sum(label.lstrip("+- $€£")[:1].isdigit() for label in labels) >= 0.9 * len(labels):
        raise ValueError(
            f"{place} holds {len(labels)} different numbers or dates written as text, such as {str(labels[0])!r} (np.column_stack"
            " of text and numbers makes text of all): pass numbers or dates, in a DataFrame beside other attributes, or bins of "
            f"them. If they are names of categories, say so: {remedy}."
        )
