"""Rows on a disk with all that belongs to them: what rankers take in the place of X, y and qid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfairrank._batches import parts_in_order
from skfairrank._exposure import disparity_coefficients
from skfairrank.metrics._groups import check_groups
from skfairrank.ranking_files._disk_batches import DiskBatches
from skfairrank.ranking_files._query_table import Table
from skfairrank.ranking_files._row_file import RowFile
from skfairrank.ranking_files._spool import Spool
from skfairrank.utilities import make_utility

__all__ = ["CHUNK", "RankingChunk", "RankingSource", "Stored", "refuse_beside_source"]

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
    X : DataFrame, shape (n_rows, n_features)
        float32, or float64 where a feature needs it.
    y : ndarray of float64, shape (n_rows,)
    qid : ndarray, shape (n_rows,)
    sensitive_features : Series or DataFrame, or None
        Where the source names such columns.
    query_weight : ndarray of float64, shape (n_rows,), or None
    first_query : int
        How many queries of the source lie before these.
    """

    X: pd.DataFrame
    y: np.ndarray
    qid: np.ndarray
    sensitive_features: Any
    query_weight: np.ndarray | None
    first_query: int


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

    Derived classes say what the rows are: `stamp`, `feature_names`, and the three methods whose names begin with ``_read``.
    """

    #: Whether training gets sensitive features.
    has_sensitive_features = False

    def __init__(self, spool_dir=None):
        self.spool_dir = spool_dir
        self._known: dict = {}

    def __getstate__(self):
        return {**self.__dict__, "_known": {}}

    @property
    @abstractmethod
    def feature_names(self) -> np.ndarray:
        """Names of the features, shape (n_features,)."""

    @property
    def n_rows(self) -> int:
        return int(self._table().starts[-1])

    @property
    def n_queries(self) -> int:
        return len(self._table().starts) - 1

    def close(self) -> None:
        """Remove what has been written for training. A later `fit` writes it again."""
        stored = self._known.pop("stored", None)
        if stored is not None:
            stored.spool.close()

    @abstractmethod
    def chunks(self, max_rows: int = CHUNK) -> Iterator[RankingChunk]:
        """All rows, in order, in chunks of whole queries.

        Parameters
        ----------
        max_rows : int
            Rows of a chunk at most; a query of more rows is a chunk of its own.
        """

    @property
    def highest_relevance(self) -> float:
        """The highest relevance of all rows."""
        known = self._fresh()
        if "stored" in known:
            return known["stored"].highest
        if "highest" not in known:
            known["highest"] = self._read_highest()
        return known["highest"]

    @abstractmethod
    def _read_highest(self) -> float:
        """Read the highest relevance."""

    @abstractmethod
    def _stamp(self):
        """Something that changes with what lies on the disk."""

    @abstractmethod
    def _read_queries(self) -> Table:
        """Read where queries begin."""

    @abstractmethod
    def _store(self, table: Table) -> Stored:
        """Read, check and write all rows."""

    @abstractmethod
    def _read_groups(self) -> tuple[np.ndarray, Iterator[np.ndarray]]:
        """Distinct values of the sensitive column, in any order, and the places of the rows' values among them, by blocks."""

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

    def _unchanged(self, read, *arguments):
        """What a method reads, if nothing on the disk changes meanwhile."""
        before = self._known["stamp"]
        found = read(*arguments)
        if self._stamp() != before:
            raise ValueError(f"{self!r} has changed while it was read: write the file first, and train then.")
        return found

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

    def sample(self) -> tuple[pd.DataFrame, np.ndarray, Any]:
        """X, y and the sensitive features (or None) of rows in equal steps; of all rows where they are few enough.

        That is 10 million numbers (200,000 rows of 50 features), or 30,000 rows.
        """
        stored, at = self._stored(), self._sampled_rows()
        ones = np.ones(len(at), np.int64)
        X = pd.DataFrame(stored.X.read(at, ones), columns=self.feature_names, copy=False)
        return X, stored.y.read(at, ones), stored.sensitive

    def _sampled_rows(self) -> np.ndarray:
        n_rows = self.n_rows
        most = max(_SAMPLE_ROWS, _SAMPLE_NUMBERS // len(self.feature_names))
        return np.arange(n_rows) if n_rows <= most else np.linspace(0, n_rows - 1, most).astype(np.int64)

    def disparity_coefficients(self, compared_by: str) -> tuple[np.ndarray, RowFile]:
        """The two groups, and each row's coefficient in the disparity of their exposures (`_exposure.disparity_coefficients`).

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
            parts = self._coefficients(table.starts, stored.y, group)
            known["coefficients"] = labels, stored.spool.write("coefficients", parts, np.float64)
        return known["coefficients"]

    @staticmethod
    def _coefficients(starts, y, group):
        for first, last in parts_in_order(starts):
            rows = starts[first : first + 1], starts[last : last + 1] - starts[first : first + 1]
            offsets = starts[first : last + 1] - starts[first]
            yield disparity_coefficients(y.read(*rows), group.read(*rows).astype(np.int64), offsets)[0]


def refuse_beside_source(source: RankingSource, **given) -> None:
    """Raise ValueError where arguments that are rows, or belong to them, are given beside a source, which has rows of its own."""
    several = [name for name, value in given.items() if value is not None]
    if several:
        raise ValueError(
            f"{', '.join(several)} and {source!r} are given: a source of rows on a disk has all that belongs to its rows in columns "
            "of its own, which are named where it is made (target=, qid=, sensitive_features=, query_weight=). Leave out "
            f"{'them' if len(several) > 1 else 'it'}."
        )
