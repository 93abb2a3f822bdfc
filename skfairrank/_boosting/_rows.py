"""Training rows and their hypothetical rows in one table, as boosting libraries want them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse

from skfairrank._adapters import _sort
from skfairrank._queries import Queries

__all__ = ["as_known", "stack_rows"]


def as_known(X):
    """A table as the libraries and pandas know it: frames of other kinds become frames of pandas, which can be stacked."""
    is_other_frame = hasattr(X, "to_pandas") and not isinstance(X, pd.DataFrame)
    return X.to_pandas() if is_other_frame else X


def stack_rows(X, queries: Queries, candidates, n_sets: int):
    """The rows of X, query by query, and below them a block of hypothetical rows for each set of candidates.

    Parameters
    ----------
    X : ndarray, DataFrame or sparse matrix, shape (n_rows, n_features)
    queries : Queries
    candidates : iterable of (name, table)
        Each set has the rows of X, in the caller's order. One set at a time is asked for.
    n_sets : int

    Returns
    -------
    stacked : table like X, shape ((1 + n_sets) * n_rows, n_features)
        Of an array one of float32, which suffices for the libraries' bins; X itself where there is nothing to stack or to sort.
    """
    if n_sets == 0:
        return as_known(_sort(X, queries))
    stacked = _Arrays(X, n_sets) if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" else _Tables()
    stacked.add(_sort(X, queries))
    for _, rows in candidates:
        stacked.add(_sort(rows, queries))
    return stacked.table()


class _Arrays:
    """Room for all blocks at once, filled one by one."""

    def __init__(self, X, n_sets):
        self.n_rows, self.n_blocks = len(X), 0
        self.values = np.empty(((1 + n_sets) * len(X), X.shape[1]), np.float32)

    def add(self, rows):
        start = self.n_blocks * self.n_rows
        self.values[start : start + self.n_rows] = rows
        self.n_blocks += 1

    def table(self):
        return self.values


class _Tables:
    """Frames, whose columns keep their kinds, and whatever else can be stacked."""

    def __init__(self):
        self.blocks = []

    def add(self, rows):
        self.blocks.append(as_known(rows))

    def table(self):
        if sparse.issparse(self.blocks[0]):
            return sparse.vstack(self.blocks, format="csr")
        if isinstance(self.blocks[0], np.ndarray):
            return np.concatenate(self.blocks)
        return pd.concat(self.blocks, ignore_index=True)
