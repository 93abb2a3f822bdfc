"""Arrays on a disk as a source of rows: .npy files and memory maps."""

from __future__ import annotations

import mmap
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skfairrank._checks import as_values
from skfairrank.ranking_files._query_table import read_ids, read_table
from skfairrank.ranking_files._row_file import RowFile
from skfairrank.ranking_files._source import (
    Block,
    RankingChunk,
    RankingSource,
    check_block,
    checked_relevance,
    stamp_of,
)

__all__ = ["ArrayRanking"]

_ROWS = 1 << 15  # at once
# Parameters that have an entry for each row.
_COLUMNS = ("X", "y", "qid", "sensitive_features", "query_weight")


class ArrayRanking(RankingSource):
    """Arrays in .npy files, or memory maps of whole files, for data that memory cannot hold.

    ``ranker.fit(ArrayRanking("X.npy", "y.npy", qid="qid.npy"))`` is what `ParquetRanking` is for Parquet files: X is read where
    it lies, a query at a time, and never as a whole.

    Rows of a query must lie one behind the other.

    Parameters
    ----------
    X : path-like or memmap, shape (n_rows, n_features)
        float32 or float64, in C order.
    y : path-like or array-like, shape (n_rows,)
        Relevances, >= 0.
    qid : path-like or array-like, shape (n_rows,)
        The query of each row.
    sensitive_features : path-like or array-like, shape (n_rows,) or (n_rows, n_attributes), optional
    query_weight : path-like or array-like, shape (n_rows,), optional
        Weights of the queries, equal within a query.
    feature_names : list of str, optional
        With names, rankers get DataFrames.
    spool_dir : path-like, optional
        Folder for the relevances as training reads them, 8 bytes for each row. Default: the system's for temporary files.

    Attributes
    ----------
    n_rows, n_queries, n_features : int
    feature_names : ndarray of str, shape (n_features,), or None

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from skfairrank import PlackettLuceRanker
    >>> from skfairrank.datasets import make_biased_ranking
    >>> from skfairrank.ranking_files import ArrayRanking
    >>> task = make_biased_ranking(n_queries=50, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "X.npy", task.data)
    ...     source = ArrayRanking(Path(folder) / "X.npy", task.target, qid=task.qid)
    ...     ranker = PlackettLuceRanker(random_state=0).fit(source)
    ...     source.close()
    >>> in_memory = PlackettLuceRanker(random_state=0).fit(task.data, task.target, qid=task.qid)
    >>> bool((ranker.coef_ == in_memory.coef_).all())
    True
    """

    def __init__(self, X, y, *, qid, sensitive_features=None, query_weight=None, feature_names=None, spool_dir=None):
        self.spool_dir = spool_dir
        self.X, self.y, self.qid = X, y, qid
        self.sensitive_features, self.query_weight, self.given_names = sensitive_features, query_weight, feature_names

    def __repr__(self):
        return f"ArrayRanking({_named(self.X)})"

    @property
    def feature_names(self):
        if self.given_names is None:
            return None
        if isinstance(self.given_names, str) or len(self.given_names) != self.n_features:
            raise ValueError(
                f"feature_names={self.given_names!r}: X has {self.n_features} columns, give a name for each."
            )
        if len(set(self.given_names)) < self.n_features:
            raise ValueError(f"feature_names={self.given_names!r} has a name more than once: give each column its own.")
        return np.array(list(self.given_names), dtype=object)

    @property
    def n_features(self):
        return self._X_in_place().width

    def _read_chunks(self, table, parts):
        columns = self._columns()
        for first, last in parts:
            begin, end = int(table.starts[first]), int(table.starts[last])
            rows = {name: column.read(begin, end) for name, column in columns.items()}
            check_block(self, rows["X"], begin)
            y = checked_relevance(self, rows["y"], begin, "the array y")
            weight = rows.get("query_weight")
            yield RankingChunk(self._named(rows["X"]), y, rows["qid"], rows.get("sensitive_features"), weight, first)

    def _columns(self) -> dict:
        """What is given, by name, each with as many rows."""
        known = self._fresh()
        if "columns" not in known:
            columns = {name: _Column(name, given) for name in _COLUMNS if (given := getattr(self, name)) is not None}
            if not {"X", "y", "qid"} <= set(columns):
                raise ValueError("X, y and qid belong together: give all three, one entry for each row.")
            for name, column in columns.items():
                if column.n_rows != columns["X"].n_rows:
                    raise ValueError(
                        f"{name} has {column.n_rows} rows, and X has {columns['X'].n_rows}: give one for each."
                    )
            known["columns"] = columns
        return known["columns"]

    def _X_in_place(self):
        X = self._columns()["X"]
        if X.file is None or not X.file.width or X.file.dtype not in (np.float32, np.float64):
            raise TypeError(
                f"X is {_named(self.X)} of the dtype {X.dtype} and shape {X.shape}: give the path of a .npy file, or a memory "
                "map of a whole file (np.load(path, mmap_mode='r')), of float32 or float64 in two axes. Rows in memory go to fit "
                "as they are."
            )
        return X.file

    def _dtype(self):
        return self._X_in_place().dtype

    def _stamp(self):
        found = []
        for name in _COLUMNS:
            path = _path_of(getattr(self, name))
            if path is not None:
                if not path.exists():
                    raise FileNotFoundError(
                        f"{name} is {str(path)!r}, and there is no such file: give the path of a .npy file."
                    )
                found.append(stamp_of(path))
        return found

    def _parts(self, name: str):
        column = self._columns()[name]
        return (column.read(at, min(at + _ROWS, column.n_rows)) for at in range(0, column.n_rows, _ROWS))

    def _read_queries(self):
        self._dtype()
        return read_table(partial(self._parts, "qid"), "qid")

    def _read_ids(self):
        return read_ids(partial(self._parts, "qid"), "qid")

    def _read_highest(self):
        return max(float(part.max()) for part in self._parts("y"))

    def _read_groups(self):
        shape = self._columns()["sensitive_features"].shape
        if len(shape) != 1:
            raise ValueError(
                f"sensitive_features has shape {shape}: groups are compared by one attribute, give one axis."
            )
        distinct = pd.unique(np.concatenate([pd.unique(part) for part in self._parts("sensitive_features")]))
        return distinct, (pd.Index(distinct).get_indexer(part) for part in self._parts("sensitive_features"))

    def _blocks_of_rows(self):
        columns, n_rows = self._columns(), self.n_rows
        for at in range(0, n_rows, _ROWS):
            rows = {name: column.read(at, min(at + _ROWS, n_rows)) for name, column in columns.items() if name != "qid"}
            y = checked_relevance(self, rows["y"], at, "the array y")
            take = partial(np.take, rows.get("sensitive_features"), axis=0)
            yield Block(rows["X"], y, rows.get("query_weight"), take)

    def _joined(self, sensitive):
        return np.concatenate(sensitive)


class _Column:
    """An array in memory or in a file, read by rows."""

    def __init__(self, name: str, given: Any):
        path, self.file = _path_of(given), None
        if path is None:
            self.values = as_values(given)
            self.shape, self.dtype = self.values.shape, self.values.dtype
        else:
            mapped: Any = given if isinstance(given, np.ndarray) else _mapped(name, path)
            self.shape, self.dtype = mapped.shape, mapped.dtype
            if (
                mapped.ndim not in (1, 2)
                or not mapped.flags.c_contiguous
                or self.dtype.hasobject
                or not self.dtype.isnative
            ):
                raise ValueError(
                    f"{name} in {path} has shape {self.shape} and dtype {self.dtype}: give rows one behind the other (C order: "
                    "np.ascontiguousarray before np.save), of numbers or fixed-width text in this machine's byte order."
                )
            self.file = RowFile(path, self.dtype, *self.shape[1:], first_byte=mapped.offset)
        if not self.shape:
            raise ValueError(f"{name} is a single value: give one for each row.")
        self.n_rows = self.shape[0]

    def read(self, begin: int, end: int) -> np.ndarray:
        if self.file is None:
            return self.values[begin:end]
        rows = self.file.read(np.array([begin]), np.array([end - begin]))
        return rows.astype(object) if rows.dtype.kind in "US" else rows


def _mapped(name: str, path: Path) -> Any:
    """The array of a .npy file, of which nothing is read yet."""
    try:
        mapped = np.load(path, mmap_mode="r")
        if isinstance(mapped, np.ndarray):
            return mapped
        reason: Any = "it is an archive of several arrays"
    except (ValueError, OSError, EOFError) as error:
        reason = error
    raise ValueError(
        f"{name} is {str(path)!r}, which is no .npy file of rows, or only a part of one ({reason}): write it by np.save, from "
        "numbers or, where they are ids or groups, from fixed-width text (array.astype('U'))."
    )


def _path_of(given) -> Path | None:
    """The file in which an array lies; None where it is in memory."""
    if isinstance(given, (str, os.PathLike)):
        return Path(given).expanduser()
    is_whole = isinstance(given, np.memmap) and isinstance(given.base, mmap.mmap) and given.filename is not None
    return Path(given.filename) if is_whole else None


def _named(given) -> str:
    path = _path_of(given)
    return f"an array of type {type(given).__name__}" if path is None else repr(str(path))
