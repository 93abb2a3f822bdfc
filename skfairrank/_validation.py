"""Checks of arrays that come with rows but are not features: scores and relevances."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.utils import check_array

__all__ = ["as_values", "as_whole_numbers", "check_magnitude", "check_one_kind", "check_relevance", "check_scores"]

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
    elif hasattr(values, "to_numpy"):
        array = values.to_numpy()
    else:
        array = np.asarray(values)
        if array.dtype.kind in "US":
            array = np.array(values, dtype=object)
    if array.dtype.kind == "T":  # NumPy's variable-width strings
        return array.astype(object)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def check_one_kind(values, name: str) -> None:
    """Raise TypeError where labels are of several kinds, which have no order and may look alike."""
    kinds = pd.api.types.infer_dtype(values, skipna=True) if pd.api.types.is_object_dtype(values) else ""
    # "mixed" is also what pandas says of a single kind that it does not know, such as UUIDs.
    if kinds.startswith("mixed") and kinds != "mixed-integer-float" and len(set(map(type, np.ravel(values)))) > 1:
        raise TypeError(
            f"{name} mixes values of several kinds (such as 1 and '1'), which have no order: make them all of one."
        )


def as_whole_numbers(values: np.ndarray) -> np.ndarray | None:
    """Numbers as int64; None where they are not whole, not finite, or no numbers."""
    if values.dtype.kind not in "iufb" or not (np.abs(values) < 2**53).all():
        return None
    integral = values.astype(np.int64)
    return integral if (integral == values).all() else None


def _as_floats(values, name: str) -> np.ndarray:
    """Finite numbers as a float64 array of one layout, since kernels are compiled for each.

    What scikit-learn makes of them, without its tens of microseconds for the common case.
    """
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has {int(np.ma.count_masked(values))} masked values: fill them, or leave those rows out."
        )
    simple = type(values) is np.ndarray and values.dtype == np.float64 and values.ndim == 1 and len(values) > 0
    if not (simple and np.isfinite(values).all()):
        values = check_array(values, ensure_2d=False, dtype=np.float64, input_name=name)
    return values if values.flags.c_contiguous and values.flags.writeable else np.array(values)


def check_scores(scores, *, name: str = "scores") -> np.ndarray:
    """Finite scores as a float64 array of shape (n_rows,)."""
    scores = _as_floats(scores, name)
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
        If y is not one-dimensional, has NaN, inf or a negative value, or does not have `n_rows` entries.
    """
    y = _as_floats(y, name)
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
