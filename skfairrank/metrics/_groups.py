"""Group labels of rows, as users have them: the one place where `sensitive_features` of a metric is validated."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skfairrank._validation import as_values, check_one_kind

__all__ = ["check_groups"]


def check_groups(sensitive_features, n_rows: int, *, at_most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Distinct group labels, sorted, and the number of each row's label, shape (n_rows,).

    Parameters
    ----------
    sensitive_features : array-like, shape (n_rows,)
        Ints, strings, bools or categories; a table with one column will do.
    n_rows : int
        How many rows they must describe.
    at_most : int, optional
        How many distinct labels are allowed.
    """
    name = "sensitive_features"
    if sensitive_features is None:
        raise ValueError(
            f"{name} is missing: pass {name}=, one group label per row. In a search or cross-validation enable "
            "metadata routing (sklearn.set_config(enable_metadata_routing=True)) and pass it to fit, or as params=."
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
        check_one_kind(values, name)
        codes, labels = pd.factorize(values, sort=True)
        labels = np.asarray(labels)
    except TypeError as error:
        raise ValueError(f"{name} mixes labels that cannot be sorted: make them all of one kind ({error}).") from error
    if len(labels) > 2 and pd.api.types.infer_dtype(labels) == "floating" and any(label % 1 for label in labels):
        raise ValueError(
            f"{name} is continuous ({len(labels)} distinct values): this metric compares groups. Bin it first, for "
            "example by its median, and pass the groups (a scorer takes them under another name by "
            f"set_score_request({name}='groups'))."
        )
    if at_most is not None and len(labels) > at_most:
        shown = ", ".join(repr(label) for label in labels[: at_most + 2].tolist())
        raise ValueError(
            f"{name} has {len(labels)} groups ({shown}{', ...' if len(labels) > at_most + 2 else ''}): this metric "
            f"compares {at_most}. Merge groups, or use group_exposure_difference, which takes any number."
        )
    return labels, codes.astype(np.int64, copy=False)


def _one_column(values, name: str) -> np.ndarray:
    values = as_values(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        columns = f"{values.shape[1]} columns" if values.ndim == 2 else f"shape {values.shape}"
        raise ValueError(
            f"{name} has {columns}, one was expected: combine the columns into one label per row, or choose one."
        )
    return values
