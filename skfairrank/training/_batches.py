"""Mini-batches of whole queries, from an array in memory or a memory map: X is neither copied nor sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from skfairrank._queries import Queries
from skfairrank._random import draw_keys

# Rows of a batch of `in_order`, and rows and steps that a stream prepares at once. Results do not depend on them.
_ROWS, _STEPS = 1 << 16, 512


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
        The numbers of the queries in the training set, also where the batch comes from a subset. A batch may hold a query twice.
    gain : ndarray of float64, shape (n_rows,)
    continuation : ndarray of float64, shape (n_rows,), or (0,) where the utility has none
        See `skfairrank.utilities.Tables`.
    weight : ndarray of float64, shape (n_queries,)
        Weights of the queries, of mean 1 over the training set.
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


class Batches:
    """The training set, which gives batches.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_rows, n_features)
        In the caller's row order.
    queries : Queries
    tables : skfairrank.utilities.Tables
        Of rows that are grouped by query.
    weights : ndarray of float64, shape (n_queries,), optional
        Of the queries. They are divided by their mean, unless `weights_are_final`.
    numbers, n_numbers : ndarray of int64, shape (n_queries,), and int; optional
        Of a subset: the numbers of its queries, and the number of queries of the whole.
    feature_names : ndarray of str, shape (n_features,), optional
    """

    def __init__(
        self, X, queries: Queries, tables, weights=None, *, numbers=None, n_numbers=None, feature_names=None,
        weights_are_final=False,
    ):  # fmt: skip
        self.X, self.queries, self.tables = X, queries, tables
        self.numbers = np.arange(queries.n_queries) if numbers is None else numbers
        self.n_numbers = queries.n_queries if n_numbers is None else n_numbers
        self.sizes, self.discount, self.utility = queries.sizes, tables.discount, tables.utility
        self.n_features, self.feature_names = X.shape[1], feature_names
        self._continuation = np.empty(0) if tables.continuation is None else tables.continuation
        self.is_weighted = weights is not None and (weights_are_final or bool((weights != weights[0]).any()))
        self.weights = np.ones(queries.n_queries)
        if self.is_weighted:
            self.weights = weights if weights_are_final else weights / weights.mean()

    def __sizeof__(self) -> int:
        """With the bytes of X: from these Dask knows that it should send this once, and not with every task."""
        return super().__sizeof__() + self.X.nbytes

    def in_order(self) -> Iterator[Batch]:
        """Every query once, in order, in batches that memory can hold."""
        offsets = self.queries.offsets
        for first, last in self.queries.blocks(_ROWS):
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
                self.utility,
            )

    def subset(self, chosen: np.ndarray) -> Batches:
        """Some of the queries, by their positions among those that are here."""
        rows = self.queries.positions(chosen)
        continuation = None if self.tables.continuation is None else self.tables.continuation[rows]
        return Batches(
            self.X,
            self.queries.subset(chosen),
            self.tables._replace(gain=self.tables.gain[rows], continuation=continuation),
            self.weights[chosen] if self.is_weighted else None,
            numbers=self.numbers[chosen],
            n_numbers=self.n_numbers,
            feature_names=self.feature_names,
        )


class BatchStream:
    """Passes over all queries in random order, cut into batches, and a key for the noise of each.

    Parameters
    ----------
    source : Batches
    batch_size : int
        Queries of a batch; of fewer queries each batch has all.
    order_rng, noise_rng : numpy.random.Generator
    is_one_pass : bool
        Whether the stream ends after one pass, whose last batch may be smaller; else it has no end.
    """

    def __init__(self, source: Batches, batch_size: int, order_rng, noise_rng, *, is_one_pass: bool = False):
        n_queries = len(source.sizes)
        self.source, self.batch_size, self.is_one_pass = source, min(batch_size, n_queries), is_one_pass
        self.order_rng, self.noise_rng = order_rng, noise_rng
        self.at_once = int(max(1, min(_STEPS, _ROWS * n_queries / (self.batch_size * int(source.sizes.sum())))))
        #: Queries that are left of the pass.
        self.stock = order_rng.permutation(n_queries) if is_one_pass else np.empty(0, np.int64)

    @property
    def n_steps_of_a_pass(self) -> int:
        return -(-len(self.source.sizes) // self.batch_size)

    def take(self, n_steps: int) -> list[Batch]:
        """The next batches, `n_steps` of them or fewer."""
        source, B, steps = self.source, self.batch_size, min(self.at_once, n_steps)
        if self.is_one_pass:
            B = min(B, len(self.stock))
            steps = min(steps, len(self.stock) // B)
        while len(self.stock) < steps * B:
            self.stock = np.r_[self.stock, self.order_rng.permutation(len(source.sizes))]
        chosen, self.stock = self.stock[: steps * B].reshape(steps, B), self.stock[steps * B :]
        offsets = np.zeros((steps, B + 1), np.int64)
        np.cumsum(source.sizes[chosen], axis=1, out=offsets[:, 1:])
        places = source.queries.positions(chosen.ravel())
        rows, gain = source.queries.order[places], source.tables.gain[places]
        continuation = source._continuation[places] if len(source._continuation) else source._continuation
        numbers, weight, keys = source.numbers[chosen], source.weights[chosen], draw_keys(self.noise_rng, steps)
        bounds = [0, *np.cumsum(offsets[:, -1]).tolist()]
        return [
            Batch(
                source.X, rows[lo:hi], offsets[s], numbers[s], gain[lo:hi], continuation[lo:hi], weight[s], keys[s],
                source.utility,
            )
            for s, (lo, hi) in enumerate(zip(bounds[:-1], bounds[1:], strict=True))
        ]  # fmt: skip
