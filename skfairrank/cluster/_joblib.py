"""joblib's tasks on Dask's workers, so that a lost worker costs time and nothing else."""

from __future__ import annotations

from contextlib import contextmanager
from uuid import uuid4

from skfairrank._threads import one_blas_thread
from skfairrank.cluster._dask import aligned, client_of, send

__all__ = ["on_workers"]


@contextmanager
def on_workers(client=None):
    """Within the context, what joblib shares out runs on the workers of a Dask cluster: searches, `n_init`, `senstir_path`.

    It is ``joblib.parallel_config("dask")`` with three differences. What many tasks need, such as X, joblib hands to one worker,
    from which the others fetch it. If that worker is lost nobody has it any more, and the search ends with a
    ``FutureCancelledError``. Here the scheduler keeps a copy, so that a lost worker's work is done again elsewhere. Metadata,
    such as `qid`, are sent under a name of their own; in some versions of Dask those of searches that run at the same time, as
    within a search, are taken for each other's. And BLAS has one thread in each task, also where Dask does not see to that.

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
    import joblib

    client = client_of(client)
    with joblib.parallel_config(_make_backend(client)):
        yield client


class _SafeClient:
    """A client as joblib uses it, whose data survive the loss of a worker."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    def scatter(self, data, *, asynchronous=False, **settings):
        """Futures of a list of data; where joblib awaits the answer, a future of whatever it is."""
        if not asynchronous:
            return [send(self._client, each) for each in data]

        return self._send_to_all(data)

    async def _send_to_all(self, data):
        """Dask gives a task to a worker that has what it needs. So all have it first, else one would get all tasks."""
        future = send(self._client, data)
        workers = await self._client.scheduler.ncores()
        # Of one that is lost meanwhile another takes the place.
        copies = [
            self._client.submit(type, future, workers=[worker], allow_other_workers=True, key=f"copy-{uuid4().hex}")
            for worker in workers
        ]
        for copy in copies:
            await copy
        return future

    def submit(self, function, *args, **kwargs):
        return self._client.submit(_Task(function), *args, **kwargs)


class _Task:
    """What a worker does for joblib."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        import joblib

        # joblib asks for "dask" again where it is called within a task; that is to be as safe.
        joblib.register_parallel_backend("dask", _make_backend)
        args, kwargs = aligned((args, kwargs))
        with one_blas_thread():  # the worker has as many tasks at work as it has threads
            return self.function(*args, **kwargs)


def _make_backend(client=None, **settings):
    """joblib's own backend, on a safe client."""
    from joblib._dask import DaskDistributedBackend

    return DaskDistributedBackend(client=_SafeClient(client_of(client)), **settings)
