"""Checks of arrays that come with rows but are not features: scores and relevances."""

from __future__ import annotations

from enum import Enum

import numpy as np
import pandas as pd
from sklearn.utils import check_array

__all__ = [
    "as_floats",
    "as_values",
    "as_whole_numbers",
    "check_magnitude",
    "check_one_kind",
    "check_relevance",
    "check_scores",
    "refuse_a_name",
    "sorted_codes",
]

# Beyond this, differences of scores overflow.
LARGEST_SCORE = 1e150


def as_values(values) -> np.ndarray:
    """Ids or labels as an array of what was given: NumPy alone would turn [1, "a", nan] into three strings."""
    if isinstance(values, np.ma.MaskedArray):
        array = values.data
        if np.ma.is_masked(values):
            array = array.astype(object)
            array[np.ma.getmaskarray(values)] = None
    elif isinstance(values, np.ndarray):
        array = values
    elif isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        array = np.asarray(values)  # by value, not by the order in which the categories were declared
    elif hasattr(values, "to_pylist") and hasattr(values, "to_pandas"):
        return as_values(values.to_pandas())  # pyarrow's own to_numpy refuses whatever it would have to copy
    elif str(getattr(values, "dtype", "")) in ("Int128", "UInt128"):
        array = _of_sequence(values.to_list())  # polars has ints for which NumPy has no type
    elif hasattr(values, "to_numpy"):
        array = values.to_numpy()
    else:
        array = _of_sequence(values)
    if array.dtype.kind == "T":  # NumPy's variable-width strings
        return array.astype(object)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def refuse_a_name(values, name: str) -> None:
    """Raise where a column's name stands in the place of the column."""
    if isinstance(values, str):
        raise ValueError(
            f"{name} is the text {values!r}: give one value per row, such as the column itself, X[{values!r}]."
        )


def _of_sequence(values) -> np.ndarray:
    """A list as an array, without the strings that NumPy makes of mixed kinds and the floats that it makes of large ints."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of several lengths
        return _objects(values)
    if array.dtype.kind in "US":
        return np.array(values, dtype=object)
    if array.dtype.kind == "f" and array.ndim == 1 and (np.abs(array) >= 2.0**53).any():
        given = _objects(values)
        return given if any(isinstance(value, int) for value in given) else array
    return array


def _objects(values) -> np.ndarray:
    """One object for each entry, NumPy's ints as Python's, which are compared without rounding."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = int(value) if isinstance(value, np.integer) else value
    return array


def sorted_codes(values: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The number of each value among the distinct ones, shape (n_rows,), and the distinct ones in sorted order.

    Members of an enumeration, which have no order of their own, are sorted by value, or by name where values have no order.

    Raises
    ------
    TypeError
        If the values are of several kinds or have no order.
    ValueError
        If a value is itself a list, an array or a dict.
    """
    check_one_kind(values, name)
    try:
        codes, distinct = pd.factorize(values, sort=True)
    except TypeError as error:
        if not all(isinstance(value, Enum) for value in values):
            raise TypeError(
                f"{name} has values that cannot be sorted among themselves ({error}): make them of one kind."
            ) from error
        codes, distinct = pd.factorize(values)
        members = list(distinct)
        try:
            order = sorted(range(len(members)), key=lambda k: members[k].value)
        except TypeError:
            order = sorted(range(len(members)), key=lambda k: members[k].name)
        place = np.empty(len(members), np.int64)
        place[order] = np.arange(len(members))
        codes, distinct = place[codes], distinct[order]
    return codes, np.asarray(distinct)


def check_one_kind(values, name: str) -> None:
    """Raise where labels are of several kinds, which have no order and may look alike, or are lists."""
    kinds = pd.api.types.infer_dtype(values, skipna=True) if pd.api.types.is_object_dtype(values) else ""
    # "mixed" is also what pandas says of a single kind that it does not know, such as UUIDs.
    if not kinds.startswith("mixed") or kinds == "mixed-integer-float":
        return
    types = set(map(type, np.ravel(values)))
    nested = sorted(kind.__name__ for kind in types if kind.__hash__ is None)
    if nested:
        raise ValueError(
            f"{name} has a {nested[0]} in the place of a single value: give one value per row, not nested or ragged lists."
        )
    if len(types) > 1:
        raise TypeError(
            f"{name} mixes values of several kinds (such as 1 and '1'), which have no order: make them all of one."
        )


def as_whole_numbers(values: np.ndarray) -> np.ndarray | None:
    """Numbers as int64; None where they are not whole, not finite, or no numbers."""
    if values.dtype.kind not in "iufb" or not (np.abs(values) < 2**53).all():
        return None
    integral = values.astype(np.int64)
    return integral if (integral == values).all() else None


def as_floats(values, name: str, what: str, remedy: str) -> np.ndarray:
    """Finite numbers as a float64 array of one layout, since kernels are compiled for each.

    What scikit-learn makes of them, without its tens of microseconds for the common case.
    """
    if values is None:
        raise ValueError(f"{name} is missing (None): give one {what} per row.")
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind in ("M", "m"):  # NumPy would count nanoseconds
        raise ValueError(f"{name} holds {'dates' if kind == 'M' else 'durations'}: give one {what} per row, a number.")
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has {int(np.ma.count_masked(values))} masked values: fill them, or leave those rows out."
        )
    simple = type(values) is np.ndarray and values.dtype == np.float64 and values.ndim == 1 and len(values) > 0
    if not (simple and np.isfinite(values).all()):
        if hasattr(values, "to_pylist"):
            values = as_values(values)  # pyarrow
        settings = {"ensure_2d": False, "dtype": np.float64, "ensure_all_finite": False, "input_name": name}
        try:
            try:
                values = check_array(values, **settings)
            except TypeError:  # pd.NA among objects
                values = as_values(values)
                values = check_array(np.where(pd.isna(values), np.nan, values), **settings)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} is not an array of numbers, one {what} per row: {error}") from error
        wrong = ~np.isfinite(values)
        if wrong.any():
            kind = (
                "NaN"
                if np.isnan(values[wrong]).all()
                else "infinity"
                if np.isinf(values[wrong]).all()
                else "NaN and infinity"
            )
            raise ValueError(
                f"Input {name} contains {kind} ({int(wrong.sum())} of {wrong.size} values, the first in row "
                f"{int(np.argwhere(wrong)[0][0])}): {remedy}"
            )
    return values if values.flags.c_contiguous and values.flags.writeable else np.array(values)


def check_scores(scores, *, name: str = "scores") -> np.ndarray:
    """Finite scores as a float64 array of shape (n_rows,)."""
    remedy = "scores must be finite. Look for such values in the features, or for a fit that diverged."
    scores = as_floats(scores, name, "score", remedy)
    if scores.ndim != 1:
        raise ValueError(f"{name} has shape {scores.shape}: give a one-dimensional array, one score per row.")
    if max(scores.max(), -scores.min()) > LARGEST_SCORE:
        raise ValueError(f"{name} has values beyond {LARGEST_SCORE:g}: their differences overflow. Scale them.")
    return scores


def check_relevance(y, n_rows: int | None = None, *, name: str = "y") -> np.ndarray:
    """Finite relevances >= 0 as a float64 array of shape (n_rows,).

    Raises
    ------
    ValueError
        If y is missing, is not one-dimensional, has NaN, inf or a negative value, or does not have `n_rows` entries.
    """
    remedy = (
        "leave out the rows without a judgement, or give them relevance 0 if that is what a missing judgement means."
    )
    y = as_floats(y, name, "relevance (>= 0)", remedy)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"{name} has shape {y.shape}: give a one-dimensional array, one relevance per row.")
    if n_rows is not None and len(y) != n_rows:
        raise ValueError(f"{name} has {len(y)} entries for {n_rows} rows: give one relevance per row.")
    if (y < 0).any():
        raise ValueError(
            f"{name} has negative values (the least is {y.min():g}): relevances must be >= 0. Shift them, or use ranks."
        )
    return y


def check_magnitude(X: np.ndarray) -> None:
    """Raise ValueError where the squared distance between two rows could overflow."""
    largest = max(float(X.max()), -float(X.min()))
    if not np.isfinite(4.0 * X.shape[1] * largest * largest):
        raise ValueError(
            f"The squared distance between items is not finite: features reach {largest:g}. Scale them (StandardScaler)."
        )
