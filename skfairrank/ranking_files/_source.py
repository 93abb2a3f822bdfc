"""Rows on a disk with all that belongs to them: what rankers take in the place of X, y and qid."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfairrank._checks import check_magnitude, check_relevance
from skfairrank._queries import blocks_of_queries
from skfairrank._sensitive import check_groups
from skfairrank.metrics._exposure import disparity_coefficients
from skfairrank.ranking_files._disk_batches import DiskBatches
from skfairrank.ranking_files._query_table import Table
from skfairrank.ranking_files._row_file import RowFile
from skfairrank.ranking_files._spool import Spool
from skfairrank.utilities import make_utility

__all__ = [
    "CHUNK",
    "Block",
    "RankingChunk",
    "RankingSource",
    "Stored",
    "check_block",
    "checked_relevance",
    "refuse_beside_source",
    "stamp_of",
]

# Rows of a chunk, if its last query has no more.
CHUNK = 1 << 16
# Numbers of the sample of rows from which a fair metric is learned, and its rows at least.
_SAMPLE_NUMBERS, _SAMPLE_ROWS = 10_000_000, 30_000
# A source is read once, however many threads ask for it first.
_LOCK = Lock()


class RankingChunk(NamedTuple):
    """Some queries of a source, whole and in the order in which it has them.

    Parameters
    ----------
    X : DataFrame, or ndarray where features have no names, shape (n_rows, n_features)
        float32, or float64 where a feature needs it.
    y : ndarray of float64, shape (n_rows,)
    qid : ndarray, shape (n_rows,)
    sensitive_features : Series or DataFrame, or None
        Where the source names such columns.
    query_weight : ndarray of float64, shape (n_rows,), or None
    first_query : int
        How many queries of the source lie before these.
    """

    X: Any
    y: np.ndarray
    qid: np.ndarray
    sensitive_features: Any
    query_weight: np.ndarray | None
    first_query: int


class Block(NamedTuple):
    """Some rows of a source, one behind the other.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_rows, n_features)
    y : ndarray of float64, shape (n_rows,)
    query_weight : ndarray of float64, shape (n_rows,), or None
    take : callable
        Gives the sensitive features of some of these rows.
    """

    X: np.ndarray
    y: np.ndarray
    query_weight: np.ndarray | None
    take: Callable


class Stored(NamedTuple):
    """What training reads, once the source has been read and checked."""

    spool: Spool
    X: RowFile
    y: RowFile
    #: Weights of the queries, in the order of the source, or None.
    weights: np.ndarray | None
    #: The highest relevance.
    highest: float
    #: Sensitive features of the rows of the sample, or None.
    sensitive: Any


class RankingSource(ABC):
    """Rows on a disk, in the place of X, y and qid: ``ranker.fit(source)``, ``ranker.predict(source)``, ``ranker.score(source)``.

    Attributes
    ----------
    n_rows, n_queries, n_features : int
        Read from the disk when they are first asked for, as `feature_names` is.
    feature_names : ndarray of str, shape (n_features,), or None
        None: features have no names.
    """

    spool_dir: Any = None
    sensitive_features: Any = None
    #: What has been read of the rows, and the stamp that they had then.
    _known: dict = {}

    def __getstate__(self):
        return {**self.__dict__, "_known": {}}

    def __setattr__(self, name, value):
        if name != "_known":  # what has been read was read by other settings
            self.close()
            super().__setattr__("_known", {})
        super().__setattr__(name, value)

    @property
    def has_sensitive_features(self) -> bool:
        """Whether the rows have sensitive features."""
        return self.sensitive_features is not None

    @property
    @abstractmethod
    def feature_names(self) -> np.ndarray | None: ...

    @property
    @abstractmethod
    def n_features(self) -> int: ...

    @property
    def n_rows(self) -> int:
        return int(self._table().starts[-1])

    @property
    def n_queries(self) -> int:
        return len(self._table().starts) - 1

    def __array__(self, *args, **kwargs):
        raise TypeError(
            f"{self!r} is a source of rows on a disk, which fit, predict, rank and score of PlackettLuceRanker, SenSTIRRanker "
            "and FairPGRanker take as they are. Here rows must be in memory: those of one chunk after the other, chunk.X for "
            "chunk in source.chunks(). Metrics of a whole source are measured by evaluate_in_chunks."
        )

    def close(self) -> None:
        """Remove what has been written for training. A later `fit` writes it again."""
        stored = self._known.pop("stored", None)
        if stored is not None:
            stored.spool.close()

    def chunks(self, max_rows: int = CHUNK) -> Iterator[RankingChunk]:
        """All rows, in order, in chunks of whole queries.

        Parameters
        ----------
        max_rows : int
            Rows of a chunk at most; a query of more rows is a chunk of its own.

        Raises
        ------
        ValueError
            If rows are not what was said; at the end, if they have changed on the disk meanwhile.
        """
        table, before = self._table(), self._known["stamp"]
        yield from self._read_chunks(table, blocks_of_queries(table.starts, max_rows))
        self._check_stamp(before)

    # What derived classes read.

    @abstractmethod
    def _read_chunks(self, table: Table, parts: Iterator[tuple[int, int]]) -> Iterator[RankingChunk]:
        """The chunks of these parts, each of which is its first query and the one behind its last."""

    @abstractmethod
    def _stamp(self):
        """Something that changes with what lies on the disk."""

    @abstractmethod
    def _read_queries(self) -> Table:
        """Where queries begin."""

    @abstractmethod
    def _read_ids(self) -> np.ndarray:
        """The id of each query."""

    @abstractmethod
    def _read_highest(self) -> float:
        """The highest relevance."""

    @abstractmethod
    def _read_groups(self) -> tuple[np.ndarray, Iterator[np.ndarray]]:
        """Distinct values of the sensitive column, in any order, and the places of the rows' values among them, by blocks."""

    @abstractmethod
    def _dtype(self) -> np.dtype:
        """That of the features; raises where rows are not what was said."""

    @abstractmethod
    def _blocks_of_rows(self) -> Iterator[Block]:
        """All rows, in order, with relevances that have been checked."""

    @abstractmethod
    def _joined(self, sensitive: list) -> Any:
        """Sensitive features that blocks gave, one behind the other."""

    def _X_in_place(self) -> RowFile | None:
        """The features as they lie on the disk, if training can read them there."""
        return None

    @property
    def highest_relevance(self) -> float:
        """The highest relevance of all rows."""
        known = self._fresh()
        if "stored" in known:
            return known["stored"].highest
        if "highest" not in known:
            known["highest"] = self._read_highest()
        return known["highest"]

    def _fresh(self) -> dict:
        """What is known of the rows as they lie on the disk now."""
        stamp = self._stamp()
        if self._known.get("stamp") != stamp:
            self.close()
            self._known = {"stamp": stamp}
        return self._known

    def _table(self) -> Table:
        known = self._fresh()
        if "table" not in known:
            known["table"] = self._unchanged(self._read_queries)
        return known["table"]

    def _stored(self) -> Stored:
        with _LOCK:
            table, known = self._table(), self._known
            if "stored" not in known:
                known["stored"] = self._unchanged(self._store, table)
            return known["stored"]

    def _store(self, table: Table) -> Stored:
        """Read, check and write all rows."""
        dtype, n_rows, in_place = self._dtype(), self.n_rows, self._X_in_place()
        n_bytes = 8 + (0 if in_place is not None else self.n_features * dtype.itemsize)
        spool = Spool(self.spool_dir, n_rows * n_bytes)
        try:
            checked = _Checked(self, table)
            with open(spool.folder / "y", "wb") as y_file:
                rows = checked.rows(y_file)
                if in_place is None:
                    X = spool.write("X", rows, dtype, self.n_features)
                else:
                    X = in_place
                    for _ in rows:
                        pass
        except BaseException:
            spool.close()
            raise
        y = spool.row_file("y", np.float64)
        return Stored(spool, X, y, checked.weights, checked.highest, checked.sensitive)

    def _unchanged(self, read, *arguments):
        """What a method reads, if nothing on the disk changes meanwhile."""
        before = self._known["stamp"]
        found = read(*arguments)
        self._check_stamp(before)
        return found

    def _check_stamp(self, before) -> None:
        if self._stamp() != before:
            raise ValueError(f"{self!r} has changed while it was read: write the file first, and read it then.")

    def batches(self, utility) -> DiskBatches:
        """The rows as training reads them.

        Parameters
        ----------
        utility : str or skfairrank.utilities.Utility
        """
        stored, table = self._stored(), self._table()
        utility = make_utility(utility)
        if hasattr(utility, "for_relevances"):
            utility = utility.for_relevances(stored.highest)
        weights = stored.weights
        if weights is not None and table.order is not None:
            weights = weights[table.order]
        return DiskBatches(
            stored.X, stored.y, *table.in_order, utility, weights, feature_names=self.feature_names, owner=stored
        )

    def query_ids(self) -> np.ndarray:
        """The id of each query, in the order in which the source has them, shape (n_queries,)."""
        self._table()
        return self._unchanged(self._read_ids)

    def query_weights(self) -> np.ndarray | None:
        """The weight of each query as it was given, in the same order; None where there are none."""
        return self._stored().weights

    def sample(self) -> tuple[Any, np.ndarray, Any]:
        """X, y and the sensitive features (or None) of rows in equal steps; of all rows where they are few enough.

        That is 10 million numbers (200,000 rows of 50 features), or 30,000 rows.
        """
        stored, at = self._stored(), self._sampled_rows()
        ones = np.ones(len(at), np.int64)
        return self._named(stored.X.read(at, ones)), stored.y.read(at, ones), stored.sensitive

    def _named(self, X: np.ndarray):
        """Rows as a DataFrame, where features have names."""
        names = self.feature_names
        return X if names is None else pd.DataFrame(X, columns=names, copy=False)

    def _sampled_rows(self) -> np.ndarray:
        n_rows = self.n_rows
        most = max(_SAMPLE_ROWS, _SAMPLE_NUMBERS // self.n_features)
        return np.arange(n_rows) if n_rows <= most else np.linspace(0, n_rows - 1, most).astype(np.int64)

    def disparity_coefficients(self, compared_by: str) -> tuple[np.ndarray, RowFile]:
        """The two groups, and each row's coefficient in the disparity of their exposures (`_exposure.disparity_coefficients`).

        Rows of a query lie together, and queries in sorted order of their ids, as in `batches`.

        Raises
        ------
        ValueError
            If there are more groups than two, or rows without one.
        """
        stored, table, known = self._stored(), self._table(), self._known
        if "coefficients" not in known:
            values, places = self._read_groups()
            labels, code = check_groups(values, len(values), at_most=2, compared_by=compared_by)
            group = stored.spool.write("groups", (code[part] for part in places), np.uint8)
            parts = self._coefficients(*table.in_order, stored.y, group)
            known["coefficients"] = labels, stored.spool.write("coefficients", parts, np.float64)
        return known["coefficients"]

    @staticmethod
    def _coefficients(starts, sizes, y, group):
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        for first, last in blocks_of_queries(offsets, 1 << 16):
            rows, own = (starts[first:last], sizes[first:last]), offsets[first : last + 1] - offsets[first]
            yield disparity_coefficients(y.read(*rows), group.read(*rows).astype(np.int64), own)[0]


class _Checked:
    """The rows of a source, checked block by block, and what training keeps of them."""

    def __init__(self, source: RankingSource, table: Table):
        self.source, self.starts, self.highest = source, table.starts, 0.0
        self.sampled = source._sampled_rows() if source.has_sensitive_features else np.empty(0, np.int64)
        self.taken: list = []
        self.known_weights: Any = None

    def rows(self, y_file) -> Iterator[np.ndarray]:
        """Features, block by block; relevances are written beside them."""
        first = 0
        for X, y, query_weight, take in self.source._blocks_of_rows():
            check_block(self.source, X, first)
            if query_weight is not None:
                self._weigh(query_weight.astype(np.float64), first)
            here = self.sampled[slice(*np.searchsorted(self.sampled, [first, first + len(X)]))]
            if len(here):
                self.taken.append(take(here - first))
            y_file.write(y.data)
            self.highest, first = max(self.highest, float(y.max())), first + len(X)
            yield X

    @property
    def sensitive(self):
        return self.source._joined(self.taken) if self.taken else None

    @property
    def weights(self) -> np.ndarray | None:
        weights = self.known_weights
        if weights is not None and not (weights > 0).any():
            raise ValueError("query_weight is zero for every query: at least one must count. Leave out query_weight.")
        return weights

    def _weigh(self, of_rows, first: int) -> None:
        """Take the weights of the queries that begin in a block, and compare those of their other rows."""
        source, starts = self.source, self.starts
        if self.known_weights is None:
            self.known_weights = np.empty(len(starts) - 1)
        wrong = ~(np.isfinite(of_rows) & (of_rows >= 0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"query_weight is {of_rows[row]:g} in row {first + row} of {source!r}: weights must be finite and >= 0."
            )
        begin, end = np.searchsorted(starts[:-1], [first, first + len(of_rows)])
        self.known_weights[begin:end] = of_rows[starts[begin:end] - first]
        query = np.searchsorted(starts, np.arange(first, first + len(of_rows)), side="right") - 1
        differs = of_rows != self.known_weights[query]
        if differs.any():
            row = int(np.argmax(differs))
            raise ValueError(
                f"query_weight differs within a query of {source!r}: it is {self.known_weights[query[row]]:g} in row "
                f"{starts[query[row]]}, and {of_rows[row]:g} in row {first + row}. A query has one weight: give all of its rows "
                "the same number."
            )


def check_block(source: RankingSource, X: np.ndarray, first: int) -> None:
    """Raise ValueError where features are missing, not finite, or so large that distances overflow.

    Parameters
    ----------
    first : int
        The row of the source that is the first of X.
    """
    least, most = X.min(axis=0), X.max(axis=0)
    if not (np.isfinite(least).all() and np.isfinite(most).all()):
        wrong = ~np.isfinite(X)
        j = int(np.argmax(wrong.any(axis=0)))
        row = int(np.argmax(wrong[:, j]))
        kind = "NaN" if np.isnan(X[row, j]) else "infinity"
        name = j if source.feature_names is None else repr(source.feature_names[j])
        raise ValueError(
            f"Input X contains {kind}: column {name} of {source!r}, the first in row {first + row} (counted from 0 over all "
            "files). Fill such values, or leave the rows or the column out."
        )
    check_magnitude(np.stack([least, most]))


def checked_relevance(source: RankingSource, y, first: int, name: str) -> np.ndarray:
    """Relevances of a block as finite float64 >= 0; errors say where the block lies."""
    try:
        return check_relevance(y)
    except ValueError as error:
        raise ValueError(f"{error} (y is {name} of {source!r}, and rows are counted from its row {first}.)") from error


def stamp_of(path: Path) -> tuple:
    """What changes with a file."""
    info = os.stat(path)
    return path, info.st_size, info.st_mtime_ns


def refuse_beside_source(source: RankingSource, **given) -> None:
    """Raise ValueError where arguments that are rows, or belong to them, are given beside a source, which has rows of its own."""
    several = [name for name, value in given.items() if value is not None]
    if several:
        raise ValueError(
            f"{', '.join(several)} and {source!r} are given: a source of rows on a disk has all that belongs to its rows, as it "
            "was told where it was made (target=, qid=, sensitive_features=, query_weight=). Leave "
            f"{'them' if len(several) > 1 else 'it'} out."
        )
