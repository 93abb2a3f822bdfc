"""Rows that lie in the partitions of Dask collections: functions run on each of them, where it lies.

Without a `distributed.Client` Dask runs them on threads of this process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from skfairrank._checks import sorted_codes
from skfairrank._queries import Queries
from skfairrank._random import as_generator


def is_dask(value) -> bool:
    """Whether it is a collection of Dask, or a dict that holds one; asked without importing Dask, which few users have."""
    return any(map(is_dask, value.values())) if isinstance(value, Mapping) else hasattr(value, "to_delayed")


def run_on_partitions(function: Callable, rows: dict, constants: dict, client=None) -> list:
    """What a function returns for each partition.

    Parameters
    ----------
    function : callable
        Gets one partition of each of `rows`, and the constants, all by name.
    rows : dict of name to collection, dict of collections, or list with an entry for each partition
    constants : dict
    client : distributed.Client, optional
        None: the default one, or threads.
    """
    import dask

    parts = {name: _parts(value, name) for name, value in rows.items()}
    if len(set(map(len, parts.values()))) > 1:
        counts = {name: len(part) for name, part in parts.items()}
        raise ValueError(
            f"Collections differ in their partitions ({counts}): take all of them from one Dask DataFrame."
        )
    shared = {name: dask.delayed(value, traverse=False, pure=False) for name, value in constants.items()}
    tasks = [dask.delayed(function, pure=False)(**dict(zip(parts, part)), **shared) for part in zip(*parts.values())]
    return list(dask.compute(*tasks) if client is None else client.compute(tasks, sync=True))


def _parts(value, name: str) -> list:
    if isinstance(value, list):
        return value
    if not is_dask(value):
        raise TypeError(
            f"{name} is a {type(value).__name__} beside collections of Dask: take it from the same Dask DataFrame, or give "
            "dask.array.from_array(values, chunks=...) in their partitions."
        )
    if isinstance(value, Mapping):
        parts = {key: _parts(one, name) for key, one in value.items() if is_dask(one)}
        return [{**value, **dict(zip(parts, part))} for part in zip(*parts.values(), strict=True)]
    parts_of_rows = whole_rows(value).to_delayed()
    return parts_of_rows if isinstance(parts_of_rows, list) else parts_of_rows.ravel().tolist()


def whole_rows(X):
    """A collection whose partitions hold rows in full, which arrays may be cut through."""
    return X.rechunk({1: -1}) if hasattr(X, "rechunk") and X.ndim == 2 else X


class ByPartition:
    """What a function returns for the queries of each partition, and the queries of all.

    Parameters
    ----------
    function : callable
        It takes `qid`, and others of the arguments, by name.
    arguments : dict
        Dask collections among them, as `qid` and `y` must be, come as the partition at hand. `random_state` becomes one for each
        partition. `query_weight`, of rows or by id, does not come.
    client : distributed.Client, optional

    Attributes
    ----------
    results : list
        Of the partitions that have rows.
    queries : Queries
        In sorted order of the ids.
    order : ndarray of int
        What brings values of queries, partition after partition, into this order.
    weight : ndarray or None

    Raises
    ------
    ValueError
        If a query lies in several partitions.
    """

    def __init__(self, function: Callable, arguments: dict, client=None):
        rows = {name: value for name, value in arguments.items() if name in ("y", "qid") or is_dask(value)}
        constants = {name: value for name, value in arguments.items() if name not in rows} | {"function": function}
        query_weight = constants.pop("query_weight", None)
        if constants.get("random_state") is not None:
            rng = as_generator(constants.pop("random_state"))
            rows["random_state"] = rng.integers(2**31, size=len(_parts(rows["qid"], "qid"))).tolist()
        found = run_on_partitions(_evaluated, rows, constants, client)
        ids, sizes, weights, self.results = map(list, zip(*(one for one in found if one is not None)))
        codes, distinct = sorted_codes(np.concatenate(ids), "qid")
        if len(distinct) < len(codes):
            twice = distinct[np.bincount(codes) > 1].tolist()[0]
            raise ValueError(
                f"Query {twice!r} has rows in several partitions: make its id the index, frame.set_index(...)."
            )
        self.order = np.argsort(codes)
        offsets = np.append(0, np.cumsum(np.concatenate(sizes)[self.order]))
        self.queries = Queries(distinct, np.arange(offsets[-1]), offsets, True)
        of_queries = np.concatenate(weights)[self.order] if "query_weight" in rows else query_weight
        self.weight = self.queries.weights(of_queries)


def _evaluated(function: Callable, qid, query_weight=None, **arguments) -> tuple[Any, ...] | None:
    if _num_samples(qid) == 0:
        return None
    queries = Queries.from_qid(qid, _num_samples(qid))
    weighs = query_weight is not None and np.any(query_weight)  # `Queries.weights` refuses zeros alone
    weight = queries.weights(query_weight) if weighs else np.zeros(queries.n_queries)
    return queries.ids, queries.sizes, weight, function(qid=qid, **arguments)
