"""Queries: which rows belong together. The one place where `qid` is validated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import sklearn
from sklearn.utils.fixes import parse_version

from skfairrank._checks import as_floats, as_values, sorted_codes, warn_caller

REMEDY = (
    "pass qid=, one query id per row. Inside scikit-learn's model selection and pipelines call "
    "sklearn.set_config(enable_metadata_routing=True) first, so that qid reaches every step. The setting belongs to the "
    "thread: in another one (optuna with n_jobs, a server) make the call, or open sklearn.config_context, there."
)
if parse_version(sklearn.__version__) < parse_version("1.8"):
    REMEDY += (
        " Before scikit-learn 1.8 a search over a pipeline, or over a search, withholds qid from `score`: pass it "
        "scoring=skfairrank.metrics.ndcg_scorer."
    )


@dataclass(frozen=True, eq=False)
class Queries:
    """The rows of a data set, grouped by query: a row order plus offsets, as in a CSR matrix.

    Queries are in sorted order of their ids, and rows of a query in the order in which they were given, so nothing
    computed query by query depends on how the rows of different queries were interleaved.

    Parameters
    ----------
    ids : ndarray, shape (n_queries,)
        The distinct query ids, sorted.
    order : ndarray of int, shape (n_rows,)
        Row numbers, query by query.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Rows ``order[offsets[k]:offsets[k + 1]]`` belong to query k.
    is_grouped : bool
        Whether `order` is the identity; then `group` and `ungroup` return their argument.

    Examples
    --------
    >>> queries = Queries.from_qid(["b", "a", "b"], 3)
    >>> queries.ids.tolist(), queries.order.tolist(), queries.offsets.tolist()
    (['a', 'b'], [1, 0, 2], [0, 1, 3])
    """

    ids: np.ndarray
    order: np.ndarray
    offsets: np.ndarray
    is_grouped: bool

    @classmethod
    def from_qid(cls, qid, n_rows: int, *, name: str = "qid") -> Queries:
        """Group `n_rows` rows by their query id.

        Parameters
        ----------
        qid : array-like, shape (n_rows,)
            Ids of any sortable kind (ints of any size, strings, categoricals, dates, members of an enumeration), in any order, in
            any container: lists, NumPy, pandas, polars, pyarrow. Floats too, as long as they can tell whole numbers apart.
        n_rows : int
            How many rows the ids must describe.
        name : str
            What messages call the ids.

        Raises
        ------
        ValueError
            If `qid` is missing, not one-dimensional, of another length than the data, has missing values, or floats so large
            (2**53 and beyond) that different ids may have become the same number.
        TypeError
            If the ids cannot be sorted among themselves.
        """
        values = _one_dimensional(qid, name)
        if len(values) != n_rows:
            raise ValueError(
                f"{name} has {len(values)} entries for {n_rows} rows: give one query id per row, not group sizes "
                "(np.repeat(ids, sizes) turns sizes into ids)."
            )
        missing = pd.isna(values)
        if missing.any():
            raise ValueError(
                f"{name} has {int(missing.sum())} missing values (NaN or None): every row needs a query id."
            )
        if n_rows == 0:
            raise ValueError(f"{name} is empty: there must be at least one row.")
        if values.dtype.kind in "iubf" and (values[1:] >= values[:-1]).all():
            # Rows already lie query by query in sorted order: no hashing, no sorting.
            changes = np.flatnonzero(values[1:] != values[:-1])
            offsets = np.zeros(len(changes) + 2, np.int64)
            offsets[1:-1], offsets[-1] = changes + 1, n_rows
            return cls(values[offsets[:-1]], np.arange(n_rows, dtype=np.int64), offsets, True)
        codes, ids = sorted_codes(values, name)
        offsets = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(codes, minlength=len(ids)), out=offsets[1:])
        order = np.argsort(codes, kind="stable").astype(np.int64, copy=False)
        return cls(ids, order, offsets, bool((codes[1:] >= codes[:-1]).all()))

    @classmethod
    def single(cls, n_rows: int) -> Queries:
        """All rows in one query, whose id is 0."""
        return cls(np.zeros(1, np.int64), np.arange(n_rows, dtype=np.int64), np.array([0, n_rows], np.int64), True)

    @property
    def n_rows(self) -> int:
        return len(self.order)

    @property
    def n_queries(self) -> int:
        return len(self.ids)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of rows of each query, shape (n_queries,)."""
        return np.diff(self.offsets)

    @cached_property
    def are_of_one_size(self) -> bool:
        return bool((self.sizes == self.sizes[0]).all())

    @cached_property
    def codes(self) -> np.ndarray:
        """Number of the query of each row, in the caller's row order, shape (n_rows,)."""
        return self.ungroup(np.repeat(np.arange(self.n_queries), self.sizes))

    def name(self, k: int) -> str:
        """Query `k` as messages show it."""
        return repr(self.ids[k].item() if hasattr(self.ids[k], "item") else self.ids[k])

    def rows(self, k: int) -> np.ndarray:
        """The caller's row numbers of query `k`."""
        return self.order[self.offsets[k] : self.offsets[k + 1]]

    def subset(self, chosen: np.ndarray) -> Queries:
        """Some of the queries, over the same rows (so `group` takes values of all rows, and `ungroup` does not apply)."""
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(self.sizes[chosen], out=offsets[1:])
        return Queries(self.ids[chosen], self.order[self.positions(chosen)], offsets, False)

    def positions(self, chosen: np.ndarray) -> np.ndarray:
        """Where the rows of some queries stand among grouped rows, query after query."""
        sizes = self.sizes[chosen]
        ends = np.cumsum(sizes)
        return np.repeat(self.offsets[chosen] - (ends - sizes), sizes) + np.arange(ends[-1])

    def differ_within(self, values: np.ndarray) -> np.ndarray:
        """Whether a query has rows of different values, shape (n_queries,); `values` (n_rows,) grouped by query.

        Of relevances: whether some orders of the query are better than others.
        """
        starts = self.offsets[:-1]
        return np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts)

    def weights(self, query_weight) -> np.ndarray | None:
        """One weight for each query, shape (n_queries,), in sorted order of the ids; None where `query_weight` is None.

        Parameters
        ----------
        query_weight : None, array-like or mapping
            Numbers >= 0: one per row, equal within a query; or one per query, as a mapping or a pandas Series from id to number
            (which may hold further ids) or as an array in sorted order of the ids. What has as many entries as there are rows
            and is no mapping is read row by row, a Series too.

        Raises
        ------
        ValueError
            If a query has no weight, or several, if a weight is negative or not finite, or if all are zero.
        """
        if query_weight is None:
            return None
        if isinstance(query_weight, Mapping):
            ids = pd.Index(list(query_weight), dtype=self._dtype_of_index(), tupleize_cols=False)
            weights = self._weights_by_id(pd.Series(list(query_weight.values()), index=ids))
        elif isinstance(query_weight, pd.Series) and len(query_weight) != self.n_rows:
            weights = self._weights_by_id(query_weight)
        else:
            weights = self._weights_in_order(query_weight)
        if (weights < 0).any():
            k = int(np.argmax(weights < 0))
            raise ValueError(f"query_weight of query {self.name(k)} is {weights[k]:g}: weights must be >= 0.")
        if not (weights > 0).any():
            raise ValueError("query_weight is zero for every query: at least one must count. Leave out query_weight.")
        return weights

    def clusters(self, clusters) -> np.ndarray | None:
        """The number of each query's cluster, in the order in which they first occur, shape (n_queries,); or None.

        Parameters
        ----------
        clusters : None, array-like or mapping
            Labels: one per row, equal within a query; or one per query, as a mapping from id to label.

        Raises
        ------
        ValueError
            If a query has no cluster, or several.
        """
        if clusters is None:
            return None
        if isinstance(clusters, Mapping):
            return cluster_codes([clusters.get(one) for one in self.ids.tolist()], self.n_queries, "queries")
        of_rows = self.group(cluster_codes(clusters, self.n_rows, "rows"))
        differ = self.differ_within(of_rows)
        if differ.any():
            raise ValueError(
                f"Query {self.name(int(np.argmax(differ)))} lies in several clusters: give its rows the same one."
            )
        return pd.factorize(of_rows[self.offsets[:-1]])[0]

    def _dtype_of_index(self):
        """object where pandas would guess a dtype for ids, and might round large ints to floats."""
        return object if self.ids.dtype == object else None

    def _weights_by_id(self, query_weight: pd.Series) -> np.ndarray:
        if not query_weight.index.is_unique:
            twice = query_weight.index[query_weight.index.duplicated()][0]
            raise ValueError(
                f"query_weight has {len(query_weight)} entries for {self.n_rows} rows, and its index has {twice!r} twice: give "
                "one number per row, or one per query, indexed by query id."
            )
        place = query_weight.index.get_indexer(pd.Index(self.ids, dtype=self._dtype_of_index()))
        if (place < 0).any():
            missing = np.flatnonzero(place < 0)
            names = ", ".join(self.name(k) for k in missing[:3]) + (", ..." if len(missing) > 3 else "")
            raise ValueError(
                f"query_weight has no weight for {len(missing)} of {self.n_queries} queries ({names}); it has ids such as "
                f"{query_weight.index[:3].tolist()}. Give every query id a number (0 leaves it out), as ids of the same kind."
            )
        return as_floats(query_weight.to_numpy()[place], "query_weight", "weight", "weights must be finite.")

    def _weights_in_order(self, query_weight) -> np.ndarray:
        weights = as_floats(query_weight, "query_weight", "weight", "weights must be finite.")
        if weights.ndim != 1 or len(weights) not in (self.n_rows, self.n_queries):
            raise ValueError(
                f"query_weight has shape {weights.shape} for {self.n_rows} rows in {self.n_queries} queries: give one number per "
                "row, or one per query, best as a dict from query id to number, which model selection leaves whole."
            )
        if len(weights) != self.n_rows:
            return weights
        grouped = self.group(weights)
        differ = self.differ_within(grouped)
        if differ.any():
            k = int(np.argmax(differ))
            of_rows = grouped[self.offsets[k] : self.offsets[k + 1]]
            raise ValueError(
                f"query_weight differs within query {self.name(k)} ({of_rows.min():g} and {of_rows.max():g}): a query has one "
                "weight. Give all of its rows the same number, or a dict from query id to number."
            )
        return grouped[self.offsets[:-1]]

    def centre(self, values: np.ndarray) -> np.ndarray:
        """Values of rows grouped by query, less the mean of their query; shape (n_rows,) or (n_rows, n_columns)."""
        return centred(values, self.offsets)

    def blocks(self, max_rows: int) -> Iterator[tuple[int, int]]:
        """Queries in blocks of at most so many rows, or of one query: the first query of each, and the one behind its last."""
        return blocks_of_queries(self.offsets, max_rows)

    def group(self, values: np.ndarray, axis: int = 0) -> np.ndarray:
        """Values of rows, reordered query by query (not copied where they are so already)."""
        return values if self.is_grouped else np.take(values, self.order, axis=axis)

    def ungroup(self, values: np.ndarray, axis: int = 0) -> np.ndarray:
        """The inverse of `group`: values in the caller's row order."""
        if self.is_grouped:
            return values
        out = np.empty_like(values)
        index: list = [slice(None)] * values.ndim
        index[axis] = self.order
        out[tuple(index)] = values
        return out


def cluster_codes(clusters, n: int, what: str) -> np.ndarray:
    """The number of the cluster of each of n rows or values, in the order in which they first occur."""
    labels = as_values(clusters, "clusters")
    if labels.shape != (n,) or pd.isna(labels).any():
        raise ValueError(
            f"clusters has shape {labels.shape} and {int(pd.isna(labels).sum())} missing values for {n} {what}: give the cluster "
            "of each."
        )
    return pd.factorize(labels)[0]


def queries_in_fit(qid, n_rows: int) -> Queries:
    """The queries of the training rows; without `qid` all rows are one query, with a warning.

    Parameters
    ----------
    qid : array-like of shape (n_rows,) or None
    n_rows : int
    """
    if qid is not None:
        return Queries.from_qid(qid, n_rows)
    if n_rows > 1:
        warn_caller(
            f"fit got no qid and takes all {n_rows} rows as one query. If that is meant, pass qid=np.zeros(len(X)); "
            f"otherwise {REMEDY}",
        )
    return Queries.single(n_rows)


def centred(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """As `Queries.centre`, of rows ``offsets[k]:offsets[k + 1]`` of query k."""
    sizes = np.diff(offsets)
    means = np.add.reduceat(values, offsets[:-1], axis=0) / sizes.reshape(-1, *(1,) * (values.ndim - 1))
    return values - np.repeat(means, sizes, axis=0)


def blocks_of_queries(offsets: np.ndarray, max_rows: int) -> Iterator[tuple[int, int]]:
    """As `Queries.blocks`, of rows ``offsets[k]:offsets[k + 1]`` of query k."""
    last = 0
    while last < len(offsets) - 1:
        first = last
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + max_rows, side="right")) - 1)
        yield first, last


def _one_dimensional(qid, name: str) -> np.ndarray:
    if qid is None:
        raise ValueError(f"{name} is missing: {REMEDY}")
    values = as_values(qid, name)
    if values.dtype.kind == "V":
        raise TypeError(
            f"{name} has the dtype {values.dtype}, records or raw bytes: give one id per row, ints or strings (of a "
            "structured array the field that holds the ids)."
        )
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}: give a one-dimensional array, one query id per row.")
    if values.dtype.kind == "c":
        raise TypeError(f"{name} holds complex numbers, which have no order: use ints or strings.")
    _check_floats(values, name)
    # NumPy's fixed-width strings are slow to hash one by one; objects are what pandas hashes.
    return values.astype(object) if values.dtype.kind in "US" else values


def _check_floats(values: np.ndarray, name: str) -> None:
    """Raise where ids are floats so large that neighbouring whole numbers are the same float."""
    if values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) in ("floating", "mixed-integer-float"):
        values = np.array([value for value in values if isinstance(value, float)])
    if values.dtype.kind != "f":
        return
    digits = np.finfo(values.dtype).nmant + 1
    size = np.abs(values)
    too_large = (size >= 2.0**digits) & (size < np.inf)
    if too_large.any():
        raise ValueError(
            f"{name} has {values.dtype} values such as {values[too_large][0]:g}: from 2**{digits} on, ids that differ may have "
            "become the same number. Give ints or strings (missing values in a column turn its ints into floats)."
        )
