"""Blocks of queries on threads. Every query writes only its own slots, so results do not depend on the number of threads.

Python threads around kernels that release the GIL, rather than numba's parallel loops: those abort the process when two
joblib threads enter them at once, or after a fork.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

__all__ = ["over_queries"]

# Below this many elementary operations (about a millisecond), waking a thread costs more than it saves.
WORTH_A_THREAD = 2_000_000

_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)  # threads do not survive a fork


def over_queries(kernel, offsets, operations: float, *arguments) -> None:
    """Call ``kernel(first, last, *arguments)`` for blocks of queries that together cover all of them.

    Parameters
    ----------
    kernel : callable
        Compiled function that treats queries first to last - 1.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Where each query's rows begin; blocks get about equally many rows.
    operations : float
        Rough number of elementary operations; small work stays on the calling thread.
    """
    global _pool
    n_queries = len(offsets) - 1
    n_blocks = 1
    if operations >= WORTH_A_THREAD and n_queries > 1:  # asking numba for its threads takes longer than a small kernel
        n_blocks = min(numba.get_num_threads(), n_queries, int(operations / WORTH_A_THREAD) + 1)
    if n_blocks <= 1:
        kernel(0, n_queries, *arguments)
        return
    if _pool is None:
        _pool = ThreadPoolExecutor(max(2, numba.config.NUMBA_NUM_THREADS), thread_name_prefix="skfairrank")
    cuts = np.searchsorted(offsets, np.linspace(offsets[0], offsets[-1], n_blocks + 1)[1:-1])
    bounds = np.unique(np.r_[0, cuts, n_queries])
    futures = [_pool.submit(kernel, int(a), int(b), *arguments) for a, b in zip(bounds[1:-1], bounds[2:], strict=True)]
    kernel(int(bounds[0]), int(bounds[1]), *arguments)
    for future in futures:
        future.result()
