"""LightGBM's distributed training on Dask collections: rows on workers, what is asked of them before, and the fit itself."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from skfairrank._partitions import ByPartition, is_dask, run_on_partitions, whole_rows
from skfairrank._queries import Queries
from skfairrank.fair_metrics._gaps import added
from skfairrank.wrappers._base import as_labels, take

#: Rows of which what can't be had by sums is measured.
N_SAMPLED = 100_000


class DaskRows:
    """The training rows on workers, whole queries in each partition, rows of a query beside each other.

    Parameters
    ----------
    X, y, qid : collections of Dask
    sensitive_features : table or column in memory or of Dask, or None
    client : distributed.Client or None
        None: the default one.

    Attributes
    ----------
    X, y : collections of Dask
        In the memory of the workers.
    queries : Queries
        In sorted order of the ids.
    group : Dask array of int
        The sizes of the queries, partition by partition.
    sensitive_features : table, column or None
        In this process.
    """

    def __init__(self, X, y, qid, sensitive_features, client):
        import dask.array
        from distributed import default_client

        client = client or default_client()
        for name, kind in X.dtypes.items() if hasattr(X, "columns") else ():
            if isinstance(kind, pd.CategoricalDtype) and not X[name].cat.known:
                raise ValueError(
                    f"Dask does not know the categories of column {name!r}: X.categorize() looks for them."
                )
        self.client, rows = client, {"X": whole_rows(X), "y": y, "qid": qid}
        rows = {name: client.persist(one) if is_dask(one) else one for name, one in rows.items()}
        found = ByPartition(_sizes, rows, client=client)
        if len(found.results) < rows["X"].npartitions:
            raise ValueError(
                "X has partitions without rows, with which LightGBM may hang: repartition all collections."
            )
        self.X, self.y, self.queries, sizes = rows["X"], rows["y"], found.queries, found.results
        self.shape, self._n_rows = (self.queries.n_rows, X.shape[1]), [int(part.sum()) for part in sizes]
        (self.sensitive_features,) = dask.compute(sensitive_features, scheduler=client)
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
        """What a function returns for each partition, `added`.

        Parameters
        ----------
        function : callable
            Gets the partition's X and `of_rows`, and returns sums in lists.
        of_rows : list of tuple of (ndarray of shape (n_rows,) or None)
        """
        parts = zip(*(list(zip(*map(self.split, arrays))) for arrays in of_rows))
        given = {"X": self.X, "of_rows": self.client.scatter(list(parts))}
        return functools.reduce(added, run_on_partitions(function, given, constants, self.client))


def _sizes(X, y, qid) -> np.ndarray:
    """The sizes of the queries of a partition, in the order of its rows."""
    as_labels(y, X)
    queries = Queries.from_qid(qid, _num_samples(X))
    starts = np.flatnonzero(np.diff(queries.codes, prepend=-1))
    if len(starts) > queries.n_queries:
        name = queries.name(int(np.argmax(np.bincount(queries.codes[starts]) > 1)))
        raise ValueError(
            f"Rows of query {name} are not beside each other in their partition: sort each by the query ids."
        )
    return np.diff(np.append(starts, queries.n_rows))


def clone_with_client(estimator):
    """A clone of an estimator, whose client (of Dask) can't be copied."""
    parameters = estimator.get_params(deep=False)
    client = parameters.pop("client")
    return type(estimator)(client=client, **{name: clone(value, safe=False) for name, value in parameters.items()})
