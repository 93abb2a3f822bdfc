"""Mini-batches of rows that lie on a disk: those of `ArrayBatches`, bit for bit, with no more of X in memory than they need."""

from __future__ import annotations

import numpy as np

from skfairrank._batches import Batch, BatchStream, Rows
from skfairrank._queries import Queries, blocks_of_queries
from skfairrank.ranking_files._row_file import RowFile

__all__ = ["DiskBatches"]


class DiskBatches:
    """A source of batches that holds a few numbers for each query, and reads rows as they are asked for.

    Parameters
    ----------
    X, y : RowFile
        Features and relevances of all rows.
    starts, sizes : ndarray of int64, shape (n_queries,)
        First row of each query, and how many follow one another from there. Queries are in sorted order of their ids.
    utility : skfairrank.utilities.Utility
        That of the relevances of all rows (`Utility.for_relevances`).
    weights : ndarray of float64, shape (n_queries,), optional
        Of the queries; any scale.
    feature_names : ndarray of str, shape (n_features,), optional
    owner : object, optional
        What keeps the files; it lives as long as this source of batches.
    of : DiskBatches, optional
        That of which this one has some queries; then `numbers` says which.
    """

    # Fewer than from memory, since they are copied; more than a step or two, since each reading has a cost of its own.
    rows_at_once = 1 << 14

    def __init__(
        self, X: RowFile, y: RowFile, starts, sizes, utility, weights=None, *, feature_names=None, owner=None, of=None,
        numbers=None,
    ):  # fmt: skip
        self.X_file, self.y_file, self.starts, self.sizes, self.utility = X, y, starts, sizes, utility
        self.feature_names, self.owner, self.n_features = feature_names, owner, int(X.width or 0)
        self.numbers = np.arange(len(sizes)) if numbers is None else numbers
        self.n_numbers = len(sizes) if of is None else of.n_numbers
        self.is_weighted = weights is not None and bool((weights != weights[0]).any())
        self.weights = weights / weights.mean() if self.is_weighted else np.broadcast_to(1.0, len(sizes))
        if of is None:
            largest = int(sizes.max())
            tables = utility.tables(np.zeros(largest), np.array([0, largest]))
            self.discount, self.utility = tables.discount, tables.utility
        else:
            self.discount, self.utility = of.discount, of.utility

    def __getstate__(self):
        return {**self.__dict__, "owner": None}  # another process reads the same files, and is not to remove them

    def name(self, k: int) -> str:
        """Query `k` as messages show it: its id is not kept."""
        return f"number {int(self.numbers[k])} (from 0, in sorted order of the ids)"

    def stream(self, batch_size, order_rng, noise_rng):
        return BatchStream(self, batch_size, order_rng, noise_rng)

    def read(self, chosen):
        starts, sizes = self.starts[chosen], self.sizes[chosen]
        X, y = self.X_file.read(starts, sizes), self.y_file.read(starts, sizes)
        tables = self.utility.tables(y, np.concatenate([[0], np.cumsum(sizes)]))
        return Rows(
            X, np.arange(len(X)), tables.gain, np.empty(0) if tables.continuation is None else tables.continuation
        )

    def first_rows(self, n_rows):
        n_queries = min(len(self.sizes), 1 + int(np.searchsorted(np.cumsum(self.sizes[:n_rows]), n_rows)))
        offsets = np.concatenate([[0], np.cumsum(self.sizes[:n_queries])])
        X = self.X_file.read(self.starts[:n_queries], self.sizes[:n_queries])
        return X, Queries(self.numbers[:n_queries], np.arange(len(X)), offsets, True)

    def in_order(self):
        offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        for first, last in blocks_of_queries(offsets, 1 << 16):
            X, rows, gain, continuation = self.read(np.arange(first, last))
            numbers, weights = self.numbers[first:last], self.weights[first:last]
            own = offsets[first : last + 1] - offsets[first]
            yield Batch(X, rows, own, numbers, gain, continuation, weights, np.uint64(first), self.utility)

    def subset(self, chosen):
        return DiskBatches(
            self.X_file,
            self.y_file,
            self.starts[chosen],
            self.sizes[chosen],
            self.utility,
            self.weights[chosen] if self.is_weighted else None,
            feature_names=self.feature_names,
            owner=self.owner,
            of=self,
            numbers=self.numbers[chosen],
        )
