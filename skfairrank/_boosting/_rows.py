"""Training rows and their hypothetical rows in one table, as boosting libraries want them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy import sparse

from skfairrank._adapters import _sort
from skfairrank._queries import Queries

__all__ = ["Blocks", "as_known", "stack_rows"]


def as_known(X):
    """A table as the libraries and pandas know it: frames of other kinds become frames of pandas, which can be stacked."""
    is_other_frame = hasattr(X, "to_pandas") and not isinstance(X, pd.DataFrame)
    return X.to_pandas() if is_other_frame else X


def stack_rows(X, queries: Queries, sets: Iterable, n_sets: int):
    """The rows of X, query by query, and below them a block of hypothetical rows for each set of candidates.

    Parameters
    ----------
    X : ndarray, DataFrame or sparse matrix, shape (n_rows, n_features)
    queries : Queries
    sets : iterable of tables
        May be read several times. Each set has the rows of X, in the caller's order; one at a time is asked for.
    n_sets : int

    Returns
    -------
    stacked : Blocks, or table like X, shape ((1 + n_sets) * n_rows, n_features)
        `Blocks` of an array of numbers, so that the sets need never be in memory together; X itself where there is nothing to
        stack or to sort.
    """
    if n_sets == 0:
        return as_known(_sort(X, queries))
    blocks = Blocks(X, queries, sets, n_sets)
    return blocks if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" else _concatenated(blocks)


class Blocks:
    """The block of the rows of X, then those of their hypothetical rows, which are made whenever they are asked for.

    Of arrays of numbers, blocks are arrays of float32, which suffices for the libraries' bins.

    Parameters
    ----------
    X, queries, sets, n_sets
        As of `stack_rows`.
    """

    def __init__(self, X, queries: Queries, sets: Iterable, n_sets: int):
        self.X, self.queries, self.sets = X, queries, sets
        self.n_rows, self.shape = X.shape[0], ((1 + n_sets) * X.shape[0], X.shape[1])

    def __iter__(self):
        yield self._block(self.X)
        for rows in self.sets:
            yield self._block(rows)
            del rows  # before the next set is made

    def table(self) -> np.ndarray:
        """All blocks of numbers in one array, which is filled block by block."""
        values = np.empty(self.shape, np.float32)
        for k, block in enumerate(self):
            values[k * self.n_rows : (k + 1) * self.n_rows] = block
        return values

    def _block(self, rows):
        rows = as_known(_sort(rows, self.queries))
        is_numbers = isinstance(rows, np.ndarray) and rows.dtype.kind in "biuf"
        return np.ascontiguousarray(rows, np.float32) if is_numbers else rows


def _concatenated(blocks):
    """Of frames, whose columns keep their kinds, and of whatever else can be stacked."""
    tables = list(blocks)
    if sparse.issparse(tables[0]):
        return sparse.vstack(tables, format="csr")
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    return pd.concat(tables, ignore_index=True)
