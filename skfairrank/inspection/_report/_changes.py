"""What a hypothetical changes in the rows, column by column."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import _safe_indexing

from skfairrank._candidates import table_names

__all__ = ["described_changes", "share_of_rows_changed"]

_COLUMNS_SHOWN = 3


def share_of_rows_changed(X, candidates) -> float:
    """Share of the rows in which at least one value differs."""
    if sparse.issparse(X):
        return float(np.mean(np.diff((X.tocsr() != candidates.tocsr()).tocsr().indptr) > 0))
    changed = np.zeros(X.shape[0], bool)
    for _, differs, _, _ in _columns(X, candidates):
        changed |= differs
    return float(changed.mean())


def described_changes(X, candidates, rows: np.ndarray) -> list[str]:
    """For some of the rows, what differs: "sex: female → male", or an empty text.

    Parameters
    ----------
    X, candidates : tables of one kind
    rows : ndarray of int
    """
    if sparse.issparse(X):
        X, candidates = (table.tocsr()[rows].toarray() for table in (X, candidates))
    else:
        X, candidates = (_safe_indexing(table, rows) for table in (X, candidates))
    found: list[list[str]] = [[] for _ in rows]
    for name, differs, before, after in _columns(X, candidates):
        for i in np.flatnonzero(differs):
            found[i].append(f"{name}: {_value(before[i])} → {_value(after[i])}")
    return [_first_of(changes) for changes in found]


def _columns(X, candidates):
    """Name of each column, in which rows the tables differ there, and their values."""
    X, candidates = (table.to_pandas() if hasattr(table, "to_pandas") else table for table in (X, candidates))
    names = table_names(X) or [f"column {j}" for j in range(X.shape[1])]
    for j, name in enumerate(names):
        before, after = (_values(table, j) for table in (X, candidates))
        missing = pd.isna(before), pd.isna(after)
        differs = np.asarray(before != after, dtype=bool) & ~(missing[0] & missing[1])
        yield name, differs, before, after


def _values(table, j) -> np.ndarray:
    if not isinstance(table, pd.DataFrame):
        return table[:, j]
    column = table.iloc[:, j]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return column.to_numpy()
    return column.astype(object).to_numpy(dtype=object, na_value=np.nan)


def _value(value) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)


def _first_of(changes: list[str]) -> str:
    rest = len(changes) - _COLUMNS_SHOWN
    return "; ".join(changes[:_COLUMNS_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")
