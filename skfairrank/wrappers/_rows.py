"""Rows as other libraries take them: tables stay what they are, are sorted by query, and are stacked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from skfairrank._checks import as_values
from skfairrank._queries import Queries


def as_rows(X):
    """X as a table whose rows can be taken: frames and arrays stay what they are.

    Raises
    ------
    ValueError
        If it has not two dimensions, or no rows or columns.
    """
    if hasattr(X, "tocsr"):
        X = sparse.csr_matrix(X)  # neither LightGBM nor CatBoost knows sparse arrays
    X = X if hasattr(X, "shape") and hasattr(X, "__getitem__") else np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead. Reshape your data: one row for each item, "
            "X.reshape(-1, 1) if there is one feature, X.reshape(1, -1) if there is one item."
        )
    if 0 in X.shape:
        what = "sample" if X.shape[0] == 0 else "feature"
        raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    return X


def as_known(X):
    """A table as the boosting libraries and pandas know it: frames of other kinds become frames of pandas."""
    is_other_frame = hasattr(X, "to_pandas") and not isinstance(X, pd.DataFrame)
    return X.to_pandas() if is_other_frame else X


def take(values, rows):
    """Rows of a table or a column of any kind; None stays None."""
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return values.take(rows)
    return None if values is None else _safe_indexing(values, rows)


def by_query(values, queries: Queries):
    """Rows sorted by query."""
    return values if queries.is_grouped else take(values, queries.order)


def by_query_if_per_row(values, queries: Queries, name: str):
    """An argument of `fit`, sorted by query where it has one entry per row.

    Raises
    ------
    ValueError
        If it has as many entries as there are rows, in no order.
    """
    try:
        is_per_row = not isinstance(values, str | bytes) and _num_samples(values) == queries.n_rows
    except TypeError:
        is_per_row = False
    if not is_per_row:
        return values
    if isinstance(values, list | tuple):
        return by_query(list(values), queries)
    if len(getattr(values, "shape", ())) == 2:
        return by_query(values, queries)
    column = as_values(values)  # every library takes an array
    if column.dtype == object and pd.api.types.is_numeric_dtype(getattr(values, "dtype", None)):
        # pandas' nullable numbers; before pandas 3 they come as objects.
        column = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if column.ndim == 0 or isinstance(values, Mapping):
        raise ValueError(
            f"{name} is a {type(values).__name__} with as many entries as there are rows ({queries.n_rows}), which does not "
            "say which row has which: give a list, an array or a column, in the order of the rows of X."
        )
    return by_query(column, queries)


def columns_of(X, absent: float = 0.0) -> Iterator[pd.Series]:
    """The columns of X one by one, each with the dtype that its values have; `absent` is what a sparse X leaves out."""
    if sparse.issparse(X):
        X = X.tocsc()
    for j in range(X.shape[1]):
        if isinstance(X, pd.DataFrame):
            column = X.iloc[:, j]
        elif sparse.issparse(X):
            column = pd.Series(np.full(X.shape[0], absent))
            entries = slice(*X.indptr[j : j + 2])
            column[X.indices[entries]] = X.data[entries]
        elif hasattr(X, "column_names") and hasattr(X, "to_pandas"):  # pyarrow
            column = X.column(j).to_pandas()
        elif hasattr(X, "to_series"):  # polars
            column = pd.Series(as_values(X.to_series(j)))
        else:
            column = pd.Series(np.asarray(X[:, j]))
        column = column.infer_objects() if column.dtype == object else column
        yield column.astype(np.float64) if pd.api.types.infer_dtype(column, skipna=True) == "decimal" else column


class Blocks:
    """The rows of X, and below them a block of as many hypothetical rows for each set, made whenever they are asked for.

    Parameters
    ----------
    X : ndarray, DataFrame or sparse matrix, shape (n_rows, n_features)
    queries : Queries
        By which the rows of each block are sorted.
    sets : sized iterable of (name, table like X)
        May be read several times; one at a time is asked for.
    """

    def __init__(self, X, queries: Queries, sets):
        self.X, self.queries, self.sets, self.n_blocks = X, queries, sets, 1 + len(sets)
        self.n_rows, self.shape = X.shape[0], (self.n_blocks * X.shape[0], X.shape[1])

    @property
    def are_numbers(self) -> bool:
        return isinstance(self.X, np.ndarray) and self.X.dtype.kind in "biuf"

    def __iter__(self):
        yield self._block(self.X)
        for _, rows in self.sets:
            yield self._block(rows)
            del rows  # before the next set is made

    def table(self, dtype=np.float64):
        """All blocks in one table; those of numbers in an array that is filled block by block."""
        if self.n_blocks == 1:
            return as_known(by_query(self.X, self.queries))
        if self.are_numbers:
            values = np.empty(self.shape, dtype)
            for k, block in enumerate(self):
                values[k * self.n_rows : (k + 1) * self.n_rows] = block
            return values
        tables = list(self)
        if sparse.issparse(tables[0]):
            return sparse.vstack(tables, format="csr")
        return np.concatenate(tables) if isinstance(tables[0], np.ndarray) else pd.concat(tables, ignore_index=True)

    def _block(self, rows):
        rows = as_known(by_query(rows, self.queries))
        if not self.are_numbers:
            return rows
        return np.ascontiguousarray(rows, np.float32 if rows.dtype == np.float32 else np.float64)
