"""Where queries begin in a file, and their sorted order, from query ids that are read block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from skfairrank._queries import Queries

__all__ = ["Table", "read_ids", "read_table"]


class Table(NamedTuple):
    """Where queries begin.

    Parameters
    ----------
    starts : ndarray of int64, shape (n_queries + 1,)
        In the order of the source; the last entry is the number of rows.
    order : ndarray of int64, shape (n_queries,), or None
        Queries in sorted order of their ids; None: they lie so.
    """

    starts: np.ndarray
    order: np.ndarray | None

    @property
    def in_order(self) -> tuple[np.ndarray, np.ndarray]:
        """Starts and sizes of the queries, in sorted order of their ids."""
        starts, sizes = self.starts[:-1], np.diff(self.starts)
        return (starts, sizes) if self.order is None else (starts[self.order], sizes[self.order])


def read_table(blocks: Callable[[], Iterable[np.ndarray]], name: str) -> Table:
    """Find the queries of rows that lie query by query.

    Ids that ascend are compared with their neighbours and forgotten. Others are read a second time, and sorted in memory; an id
    that comes back in another place is then found.

    Parameters
    ----------
    blocks : callable
        Gives the ids of all rows, in order, block by block.
    name : str
        What messages call the ids.

    Raises
    ------
    ValueError, TypeError
        If there are no rows, an id comes back after rows of other queries, or ids are none (see `Queries.from_qid`).
    """
    scan = _Scan(name, keep=False).over(blocks())
    if scan.n_rows == 0:
        raise ValueError("There are no rows: a file or folder of no rows holds no queries to learn from.")
    if scan.is_ascending:
        return Table(scan.bounds, None)
    scan = _Scan(name, keep=True).over(blocks())
    ids, starts = np.concatenate(scan.ids), scan.bounds
    queries = Queries.from_qid(ids, len(ids), name=name)
    if queries.n_queries < len(ids):
        k = int(np.argmax(queries.sizes > 1))
        first, again = queries.rows(k)[:2]
        raise ValueError(
            f"{name} {queries.name(k)} begins in row {starts[first]} and again in row {starts[again]} (counted from 0 over all "
            f"files), with rows of other queries between: the rows of a query must lie together. Sort the rows by {name} before "
            "the file is written."
        )
    return Table(starts, queries.order)


def read_ids(blocks: Callable[[], Iterable[np.ndarray]], name: str) -> np.ndarray:
    """The id of each query, in the order of rows of which `read_table` has found that they lie query by query."""
    return np.concatenate(_Scan(name, keep=True).over(blocks()).ids)


class _Scan:
    """What has been seen of the ids so far."""

    def __init__(self, name: str, *, keep: bool):
        self.name, self.keep = name, keep
        self.n_rows, self.is_ascending = 0, True
        self.starts: list[np.ndarray] = []
        self.ids: list[np.ndarray] = []
        self.last: Any = None

    def over(self, blocks) -> _Scan:
        for block in blocks:
            if len(block):
                self._add(block)
        return self

    @property
    def bounds(self) -> np.ndarray:
        return np.concatenate([*self.starts, [self.n_rows]])

    def _add(self, qid: np.ndarray) -> None:
        is_first = np.ones(len(qid), bool)
        is_first[1:] = qid[1:] != qid[:-1]
        is_first[0] = self.n_rows == 0 or qid[0] != self.last
        at = np.flatnonzero(is_first)
        ids = qid[at]
        if len(ids) and ids.dtype.kind not in "iub":
            Queries.from_qid(ids, len(ids), name=self.name)  # raises where these are no ids
        if self.is_ascending and len(ids):
            self.is_ascending = _ascend(ids) and (self.n_rows == 0 or _ascend([self.last, ids[0]]))
        self.starts.append(at + self.n_rows)
        if self.keep:
            self.ids.append(ids)
        self.n_rows, self.last = self.n_rows + len(qid), qid[-1]


def _ascend(ids) -> bool:
    try:
        return (
            all(a < b for a, b in zip(ids[:-1], ids[1:])) if isinstance(ids, list) else bool((ids[1:] > ids[:-1]).all())
        )
    except TypeError:  # of several kinds, or without an order, which `Queries` says better
        return False
