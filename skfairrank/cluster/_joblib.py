"""joblib's tasks on Dask's workers, so that a lost worker costs time and nothing else."""

from __future__ import annotations

from contextlib import contextmanager

import joblib

from skfairrank._threads import one_blas_thread
from skfairrank.cluster._dask import client_of, send

__all__ = ["on_workers"]


@contextmanager
def on_workers(client=None):
    """Within the context, what joblib shares out runs on the workers of a Dask cluster: searches, `n_init`, `senstir_path`.

    It is ``joblib.parallel_config("dask")`` with two differences. What many tasks need, such as X, joblib hands to one worker,
    from which the others fetch it. If that worker is lost nobody has it any more, and the search ends with a
    ``FutureCancelledError``. Here the scheduler keeps a copy, so that a lost worker's work is done again elsewhere. And BLAS
    has one thread in each task, also where Dask does not see to that.

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
    ValueError
        If there is no client.

    Examples
    --------
    The user guide, docs/cluster.md, has one that runs. In short::

        with LocalCluster() as cluster, Client(cluster) as client, on_workers(client):
            search.fit(X, y, qid=qid)
    """
    client = client_of(client)
    with joblib.parallel_config("dask", client=_SafeClient(client)):
        yield client


class _SafeClient:
    """A client as joblib uses it, whose data survive the loss of a worker."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    async def scatter(self, data, **settings):
        return send(self._client, data)

    def submit(self, function, *args, **kwargs):
        return self._client.submit(_OnOneThread(function), *args, **kwargs)


class _OnOneThread:
    """A function during which BLAS has one thread: a worker has as many functions at work as it has threads."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        with one_blas_thread():
            return self.function(*args, **kwargs)
