"""LightGBM's distributed training on Dask collections: rows on workers, what is asked of them before, and the fit itself."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from skfairrank._partitions import is_dask, run_on_partitions, sorted_ids, whole_rows
from skfairrank._queries import Queries
from skfairrank.wrappers._base import as_labels, take

#: Rows of which what can't be had by sums is measured.
N_SAMPLED = 100_000


class DaskRows:
    """The training rows on workers, whole queries in each partition, rows of a query beside each other.

    Parameters
    ----------
    X, y, qid : collections of Dask
    client : distributed.Client or None
        None: the default one.

    Attributes
    ----------
    X, y : collections of Dask
        In the memory of the workers.
    queries : Queries
        In the order of the rows.
    group : Dask array of int
        The sizes of the queries, partition by partition.
    """

    def __init__(self, X, y, qid, client):
        import dask.array
        from distributed import default_client

        client = client or default_client()
        for name, kind in X.dtypes.items() if hasattr(X, "columns") else ():
            if isinstance(kind, pd.CategoricalDtype) and not X[name].cat.known:
                raise ValueError(
                    f"Dask does not know the categories of column {name!r}, and partitions may number them differently: "
                    f"X.categorize([{name!r}]) looks for them."
                )
        self.client, rows = client, {"X": whole_rows(X), "y": y, "qid": qid}
        rows = {name: client.persist(one) if is_dask(one) else one for name, one in rows.items()}
        self.X, self.y, (ids, sizes) = rows["X"], rows["y"], zip(*run_on_partitions(_queries_of_part, rows, {}, client))
        sorted_ids(np.concatenate([part for part in ids if len(part)]))
        offsets = np.append(0, np.cumsum(np.concatenate(sizes)))
        self.queries = Queries(np.concatenate(ids), np.arange(offsets[-1]), offsets, True)
        self.shape, self._n_rows = (int(offsets[-1]), X.shape[1]), [int(part.sum()) for part in sizes]
        self.group = dask.array.from_array(np.concatenate(sizes), chunks=(tuple(map(len, sizes)),))

    def split(self, values: np.ndarray | None) -> list:
        """Values of rows by partition; None for each where there are none."""
        return [None] * len(self._n_rows) if values is None else np.split(values, np.cumsum(self._n_rows)[:-1])

    def sample(self):
        """At most `N_SAMPLED` rows, drawn by a fixed seed, and which they are."""
        n, chosen = self.shape[0], np.zeros(self.shape[0], bool)
        chosen[np.random.default_rng(0).choice(n, min(n, N_SAMPLED), replace=False, shuffle=False)] = True
        rows = [np.flatnonzero(part) for part in self.split(chosen)]
        parts = run_on_partitions(take, {"values": self.X, "rows": rows}, {}, self.client)
        return pd.concat(parts) if isinstance(parts[0], pd.DataFrame) else np.concatenate(parts), chosen

    def total(self, function, of_rows: list[tuple], **constants) -> list:
        """The sums over partitions of the objects that a function returns, by their method `plus`.

        Parameters
        ----------
        function : callable
            Gets the partition's X and `of_rows`, and returns a list of them for each column of X.
        of_rows : list of tuple of (ndarray of shape (n_rows,) or None)
        """
        parts = zip(*(list(zip(*map(self.split, arrays))) for arrays in of_rows))
        given = {"X": self.X, "of_rows": self.client.scatter(list(parts))}
        found = run_on_partitions(function, given, constants, self.client)
        return [
            [functools.reduce(lambda one, other: one.plus(other), parts) for parts in zip(*of_column)]
            for of_column in zip(*found)
        ]


def _queries_of_part(X, y, qid) -> tuple[np.ndarray, np.ndarray]:
    """Ids and sizes of the queries of a partition, in the order of its rows."""
    n = _num_samples(X)
    if not n == _num_samples(y) == _num_samples(qid):
        raise ValueError(
            f"A partition has {n} rows of X, {_num_samples(y)} of y and {_num_samples(qid)} of qid: take all of them from one "
            "Dask DataFrame, or rechunk arrays alike."
        )
    if n == 0:
        return np.zeros(0), np.zeros(0, np.int64)
    as_labels(y, X)
    queries = Queries.from_qid(qid, n)
    starts = np.flatnonzero(np.diff(queries.codes, prepend=-1))
    of_runs = queries.codes[starts]
    if len(starts) > queries.n_queries:
        name = queries.name(int(np.argmax(np.bincount(of_runs) > 1)))
        raise ValueError(
            f"The rows of query {name} are not beside each other in their partition, as LightGBM wants them: sort partitions by "
            "the query ids, as frame.set_index(...) by their column does."
        )
    return queries.ids[of_runs], np.diff(np.append(starts, n))


def clone_with_client(estimator):
    """A clone of an estimator, whose client (of Dask) can't be copied."""
    copies = {
        name: value if name == "client" else clone(value, safe=False)
        for name, value in estimator.get_params(deep=False).items()
    }
    return type(estimator)(**copies)
