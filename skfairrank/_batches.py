"""Where training's mini-batches come from: a batch carries the X that its rows number.

So what trains never asks where rows lie. A source of batches is anything that has what `Batches` lists; the one here serves
arrays in memory and memory maps. `BatchStream` decides which queries are in which batch, and asks the source for their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import repeat
from typing import NamedTuple, Protocol

import numpy as np

from skfairrank._queries import Queries, blocks_of_queries
from skfairrank._random import draw_keys

__all__ = ["ArrayBatches", "Batch", "BatchStream", "Batches", "OnePass", "Rows"]


class Batch(NamedTuple):
    """Some queries: their rows, and what the utility's tables say of them, query after query.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (any number of rows, n_features)
    rows : ndarray of int64, shape (n_rows,)
        Rows of X, query after query.
    offsets : ndarray of int64, shape (n_queries + 1,)
        From 0; rows ``offsets[b]`` to ``offsets[b + 1] - 1`` belong to the batch's query b.
    queries : ndarray of int64, shape (n_queries,)
        The numbers of the queries among all queries of the source; of a subset, among those of the source that it was taken from.
        A batch may hold a query twice.
    gain : ndarray of float64, shape (n_rows,)
    continuation : ndarray of float64, shape (n_rows,), or (0,) where the utility has none
        See `skfairrank.utilities.Tables`.
    weight : ndarray of float64, shape (n_queries,)
        Weights of the queries, of mean 1 over all queries of the source.
    key : numpy.uint64
        For the noise of sampled rankings.
    utility : callable, or None
        Of a utility that gain, discount and continuation do not say; see `skfairrank.utilities.Tables`.
    """

    X: np.ndarray
    rows: np.ndarray
    offsets: np.ndarray
    queries: np.ndarray
    gain: np.ndarray
    continuation: np.ndarray
    weight: np.ndarray
    key: np.uint64
    utility: Callable | None = None


class Rows(NamedTuple):
    """Rows of some queries, query after query: `X`, `rows`, `gain` and `continuation` as a `Batch` has them."""

    X: np.ndarray
    rows: np.ndarray
    gain: np.ndarray
    continuation: np.ndarray


class Batches(Protocol):
    """A source of mini-batches."""

    #: Weight of each query, of mean 1, shape (n_queries,).
    weights: np.ndarray
    #: The utility's discount by rank, shape (at least the largest size,).
    discount: np.ndarray
    n_features: int
    #: Number of each query among all queries, as its batches say it, shape (n_queries,).
    numbers: np.ndarray
    #: One more than the largest number of a query.
    n_numbers: int
    #: Names of the features, shape (n_features,), where X has them, else None.
    feature_names: np.ndarray | None
    #: Rows that a stream asks for at once, about.
    rows_at_once: int

    @property
    def sizes(self) -> np.ndarray:
        """Number of items of each query, shape (n_queries,)."""
        ...

    @property
    def utility(self) -> Callable | None:
        """Of a utility that gain, discount and continuation do not say; see `skfairrank.utilities.Tables`."""
        ...

    @property
    def is_weighted(self) -> bool:
        """Whether queries have different weights."""
        ...

    def read(self, chosen: np.ndarray) -> Rows:
        """The rows of some queries, which `chosen` numbers by their places among the queries of this source."""
        ...

    def first_rows(self, n_rows: int) -> tuple[np.ndarray, Queries]:
        """An X, and queries over it that begin with the first `n_rows` rows of this source, or have all of them."""
        ...

    def stream(self, batch_size: int, order_rng, noise_rng) -> BatchStream:
        """Mini-batches of random queries without end."""
        ...

    def in_order(self) -> Iterator[Batch]:
        """Every query once, in order, in batches that memory can hold."""
        ...

    def subset(self, chosen: np.ndarray) -> Batches:
        """A source of some of the queries."""
        ...


# Rows of a batch of `in_order` and of what a stream prepares at once from memory, and the most steps of the latter. Results do
# not depend on them.
_ROWS, _STEPS = 1 << 16, 512


class ArrayBatches:
    """Batches from an array, in memory or mapped; X is neither copied nor sorted.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_rows, n_features)
        In the caller's row order.
    queries : Queries
    tables : skfairrank.utilities.Tables
        Gains, and what else belongs to rows, are grouped by query.
    weights : ndarray of float64, shape (n_queries,), optional
        Of the queries; any scale.
    numbers, n_numbers : ndarray of int64, shape (n_queries,), and int; optional
        Of a subset: the numbers of its queries, and of how many.
    feature_names : ndarray of str, shape (n_features,), optional
    """

    rows_at_once = _ROWS

    def __init__(self, X, queries: Queries, tables, weights=None, *, numbers=None, n_numbers=None, feature_names=None):
        self.X, self.queries, self.tables = X, queries, tables
        self.numbers = np.arange(queries.n_queries) if numbers is None else numbers
        self.n_numbers = queries.n_queries if n_numbers is None else n_numbers
        self.discount, self.n_features, self.feature_names = tables.discount, X.shape[1], feature_names
        self.is_weighted = weights is not None and bool((weights != weights[0]).any())
        self.weights = weights / weights.mean() if self.is_weighted else np.ones(queries.n_queries)

    @property
    def sizes(self) -> np.ndarray:
        return self.queries.sizes

    @property
    def utility(self):
        return self.tables.utility

    def __sizeof__(self) -> int:
        """With the bytes of X: from these Dask knows that it should send this once, and not with every task."""
        return super().__sizeof__() + self.X.nbytes

    @cached_property
    def _continuation(self) -> np.ndarray:
        return np.empty(0) if self.tables.continuation is None else self.tables.continuation

    def stream(self, batch_size, order_rng, noise_rng):
        return BatchStream(self, batch_size, order_rng, noise_rng)

    def read(self, chosen):
        places, continuation = self.queries.positions(chosen), self._continuation
        return Rows(
            self.X,
            self.queries.order[places],
            self.tables.gain[places],
            continuation[places] if len(continuation) else continuation,
        )

    def first_rows(self, n_rows):
        return self.X, self.queries

    def in_order(self):
        offsets = self.queries.offsets
        for first, last in blocks_of_queries(offsets, _ROWS):
            rows = slice(offsets[first], offsets[last])
            yield Batch(
                self.X,
                self.queries.order[rows],
                offsets[first : last + 1] - offsets[first],
                self.numbers[first:last],
                self.tables.gain[rows],
                self._continuation[rows],
                self.weights[first:last],
                np.uint64(first),
                self.tables.utility,
            )

    def subset(self, chosen):
        queries = self.queries.subset(chosen)
        rows = self.queries.positions(chosen)
        continuation = None if self.tables.continuation is None else self.tables.continuation[rows]
        tables = self.tables._replace(gain=self.tables.gain[rows], continuation=continuation)
        weights = self.weights[chosen] if self.is_weighted else None
        return ArrayBatches(
            self.X,
            queries,
            tables,
            weights,
            numbers=self.numbers[chosen],
            n_numbers=self.n_numbers,
            feature_names=self.feature_names,
        )


class BatchStream:
    """Passes over all queries of a source in random order, cut into batches, and a key for the noise of each.

    Parameters
    ----------
    source : Batches
    batch_size : int
        At most; a source of fewer queries has them all in each batch.
    order_rng, noise_rng : numpy.random.Generator
    """

    def __init__(self, source: Batches, batch_size: int, order_rng, noise_rng):
        sizes = source.sizes
        self.source, self.batch_size = source, min(batch_size, len(sizes))
        self.order_rng, self.noise_rng = order_rng, noise_rng
        mean_rows = self.batch_size * int(sizes.sum()) / len(sizes)
        self.at_once = int(max(1, min(_STEPS, source.rows_at_once / mean_rows)))
        self.are_of_one_size = bool((sizes == sizes[0]).all())
        self.stock = np.empty(0, np.int64)

    def take(self, n_steps: int) -> list[Batch]:
        """The next batches, `n_steps` of them or fewer."""
        source, B = self.source, self.batch_size
        steps = min(self.at_once, n_steps)
        while len(self.stock) < steps * B:
            self.stock = np.r_[self.stock, self.order_rng.permutation(len(source.sizes))]
        chosen, self.stock = self.stock[: steps * B].reshape(steps, B), self.stock[steps * B :]
        offsets = np.zeros((steps, B + 1), np.int64)
        np.cumsum(source.sizes[chosen], axis=1, out=offsets[:, 1:])
        X, rows, gain, continuation = source.read(chosen.ravel())
        numbers, weight, keys = source.numbers[chosen], source.weights[chosen], draw_keys(self.noise_rng, steps)
        utility = source.utility
        if self.are_of_one_size and not len(continuation):  # as below, faster
            columns = (
                rows.reshape(steps, -1),
                offsets,
                numbers,
                gain.reshape(steps, -1),
                repeat(continuation),
                weight,
                keys,
            )
            return list(map(Batch, repeat(X), *columns, repeat(utility)))
        bounds = [0, *np.cumsum(offsets[:, -1]).tolist()]
        return [
            Batch(X, rows[lo:hi], offsets[s], numbers[s], gain[lo:hi], continuation[lo:hi], weight[s], keys[s], utility)
            for s, (lo, hi) in enumerate(zip(bounds[:-1], bounds[1:], strict=True))
        ]


class OnePass:
    """One pass over all queries of an `ArrayBatches` in random order; the last batch may be smaller than the others.

    Parameters
    ----------
    source : ArrayBatches
    batch_size : int
    order_rng, noise_rng : numpy.random.Generator
    """

    def __init__(self, source: ArrayBatches, batch_size: int, order_rng, noise_rng):
        order = order_rng.permutation(len(source.sizes))
        n_full = len(order) // batch_size * batch_size
        self.n_steps = -(-len(order) // batch_size)
        # The streams of the batches of one size; they draw no order, since their stock is all that is asked of them.
        self.streams = []
        for stock, size in ((order[:n_full], batch_size), (order[n_full:], len(order) - n_full)):
            if len(stock):
                stream = BatchStream(source, size, order_rng, noise_rng)
                stream.stock = stock
                self.streams.append(stream)

    def take(self, n_steps: int) -> list[Batch]:
        """The next batches, `n_steps` of them or fewer; at least one while there are any."""
        while self.streams and not len(self.streams[0].stock):
            del self.streams[0]
        stream = self.streams[0]
        return stream.take(min(n_steps, len(stream.stock) // stream.batch_size))
