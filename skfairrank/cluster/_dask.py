"""Dask, which is optional: the one place where it is imported."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import numpy as np

__all__ = ["aligned", "client_of", "import_distributed", "send"]


# Bytes; of the largest numbers that products of matrices have.
_ALIGNMENT = 16


def import_distributed():
    """The module `distributed`."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError('This needs Dask. Install it with: pip install "skfairrank[dask]"') from error
    return distributed


def client_of(client):
    """The client that was given, or the latest one of this process.

    Raises
    ------
    TypeError
        If it is no client, but a cluster, or an address.
    ValueError
        If there is none.
    """
    distributed = import_distributed()
    if client is None:
        try:
            return distributed.get_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client: make one first, as in client = distributed.Client(distributed.LocalCluster()), or "
                'distributed.Client("tcp://address-of-the-scheduler:8786").'
            ) from error
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client is a {type(client).__name__}: give a distributed.Client, as in Client(cluster).")
    return client


def aligned(received) -> Any:
    """What a worker has received, with every array at an address that suits its numbers.

    Arrays of a message lie one behind the other, some at odd addresses. NumPy multiplies such matrices by its own loops and not
    by BLAS, so that last bits would differ from those of the same work elsewhere. Only what lies at an odd address is copied.
    """
    from distributed.protocol import pickle

    buffers: list = []
    content = pickle.dumps(received, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(content, buffers=[_at_even_address(buffer) for buffer in buffers])


def _at_even_address(buffer):
    if not buffer.raw().nbytes:
        return buffer
    content = np.frombuffer(buffer.raw(), np.uint8)
    if content.ctypes.data % _ALIGNMENT == 0:
        return buffer
    copied = np.empty(len(content), np.uint8)  # at an address of NumPy's, which suits all kinds of numbers
    copied[:] = content
    copied.flags.writeable = not buffer.raw().readonly
    return copied


def send(client, data):
    """A future of data that outlives the loss of workers.

    What `Client.scatter` sends is gone with the worker that has it, for copies are thrown away while no task waits for them; and
    some versions tear dicts, such as the metadata that a search routes, into their entries. This is the result of a task instead:
    it is made again, from bytes that the scheduler keeps.
    """
    import dask
    from distributed.protocol import pickle

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": 2**62}):
        return client.submit(pickle.loads, pickle.dumps(data), key=f"{type(data).__name__}-{uuid4().hex}")
