"""joblib's tasks on Dask's workers."""

from __future__ import annotations

from contextlib import contextmanager
from uuid import uuid4


@contextmanager
def on_workers(client=None):
    """Run on a Dask cluster what joblib shares out within this context: the fits of a search or of a cross-validation.

    Results are those of one process. A lost worker loses none: its fits are done again by another one.

    Parameters
    ----------
    client : distributed.Client, optional
        Default: the latest one of this process.

    Yields
    ------
    client : distributed.Client

    Raises
    ------
    ImportError
        If Dask is not installed.
    TypeError
        If `client` is not a client.
    ValueError
        If there is no client.

    Notes
    -----
    It is ``joblib.parallel_config("dask")``, with one difference. joblib scatters X and the metadata to the workers' memory:
    a search ends with a ``FutureCancelledError`` if the worker that holds them dies, and Dask before 2026 keeps metadata under
    their bare names ("qid"), which searches that run at the same time share. Here X and each dict of metadata is the result of a
    task, which Dask repeats if it is lost.

    Examples
    --------
    The user guide, docs/cluster.md, has one that runs. In short::

        with LocalCluster() as cluster, Client(cluster) as client, on_workers(client):
            search.fit(X, y, qid=qid)
    """
    import joblib

    backend = _backend(client)
    with joblib.parallel_config(backend):
        yield backend.client.client


class _Client:
    """The methods of a client that joblib calls; data are sent as results of tasks."""

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        return getattr(self.client, name)

    async def scatter(self, data, **settings):
        import dask
        from distributed.protocol import pickle

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": 2**62}):
            return self.client.submit(pickle.loads, pickle.dumps(data), key=f"{type(data).__name__}-{uuid4().hex}")

    def submit(self, function, *args, **settings):
        return self.client.submit(_run, function, *args, **settings)


def _run(function, **arguments):
    """Call a function of joblib's on a worker, where joblib's "dask", asked for by searches within searches, is this module's."""
    import joblib

    joblib.register_parallel_backend("dask", _backend)
    return function(**arguments)


def _backend(client=None, **settings):
    try:
        import distributed
    except ImportError as error:
        raise ImportError('on_workers needs Dask. Install it with: pip install "skfairrank[dask]"') from error
    from joblib._dask import DaskDistributedBackend

    if client is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client: make one first, as in client = distributed.Client(distributed.LocalCluster())."
            ) from error
    if not isinstance(client, (distributed.Client, _Client)):
        raise TypeError(f"client is a {type(client).__name__}: give a distributed.Client, as in Client(cluster).")
    return DaskDistributedBackend(client=client if isinstance(client, _Client) else _Client(client), **settings)
