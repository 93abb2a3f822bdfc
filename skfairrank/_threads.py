"""Threads: blocks of queries on several of them, and BLAS on one.

Every query writes only its own slots, so results do not depend on the number of threads. Python threads around kernels that
release the GIL, rather than numba's parallel loops: those abort the process when two joblib threads enter them at once, or
after a fork.

Within a task of a Dask worker there is one thread, since the worker has as many tasks at work as it has threads. Who wants more
sets NUMBA_NUM_THREADS in the environment of the workers.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock

import numba
import numpy as np
from sklearn.utils.parallel import _get_threadpool_controller

__all__ = ["is_worth_threads", "one_blas_thread", "over_queries", "over_range", "threads_worth"]

# Nanoseconds of work on one thread, roughly, below which waking a second one costs more than it saves.
WORTH_A_THREAD: float = 250_000

_pool: ThreadPoolExecutor | None = None

# Contexts of `one_blas_thread` that are open in this process, and the numbers of threads before the first of them.
_blas_lock, _n_open = Lock(), 0
_blas_before: list[int] = []


def _forget_threads() -> None:
    global _pool, _blas_lock
    _pool, _blas_lock = None, Lock()


if hasattr(os, "register_at_fork"):  # threads do not survive a fork, and what they lock stays locked
    os.register_at_fork(after_in_child=_forget_threads)


@contextmanager
def one_blas_thread():
    """Limit BLAS to one thread within the context, also where contexts of several threads overlap.

    The limit belongs to the process. So open contexts share it: the last to close restores what was before the first. (Each for
    itself, as `threadpoolctl` does it, they restore each other's limit.) Where BLAS has a limit for each thread, each context
    restores its own.
    """
    global _n_open, _blas_before
    libraries = _get_threadpool_controller().select(user_api="blas").lib_controllers
    with _blas_lock:
        mine = [library.get_num_threads() for library in libraries]
        if _n_open == 0:
            _blas_before = mine
        _n_open += 1
        for library in libraries:
            _set_threads(library, 1)
    try:
        yield
    finally:
        with _blas_lock:
            _n_open -= 1
            for library, own, before in zip(libraries, mine, _blas_before, strict=True):
                if library.internal_api == "openblas" and library.threading_layer == "openmp":
                    _set_threads(library, own)
                elif _n_open == 0:
                    _set_threads(library, before)


def _set_threads(library, n: int) -> None:
    # threadpoolctl >= 3.8 ignores all threads but the one that set the limit first; it may not be the one that ends last.
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n)


def over_queries(kernel, offsets, nanoseconds: float, *arguments) -> None:
    """Call ``kernel(first, last, *arguments)`` for blocks of queries that together cover all of them.

    Parameters
    ----------
    kernel : callable
        Compiled function that treats queries first to last - 1.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Where each query's rows begin; blocks get about equally many rows.
    nanoseconds : float
        Rough time on one thread; small work stays on the calling one.
    """
    n_queries = len(offsets) - 1
    if nanoseconds < WORTH_A_THREAD or (n_blocks := _number_of_blocks(nanoseconds, n_queries)) <= 1:
        kernel(0, n_queries, *arguments)
        return
    cuts = np.searchsorted(offsets, np.linspace(offsets[0], offsets[-1], n_blocks + 1)[1:-1])
    _run(kernel, np.unique(np.r_[0, cuts, n_queries]), arguments)


def over_range(kernel, n: int, nanoseconds: float, *arguments, step: int = 1) -> None:
    """Call ``kernel(first, last, *arguments)`` for equal parts of 0 to n - 1, cut at multiples of `step`."""
    if nanoseconds < WORTH_A_THREAD or (n_blocks := _number_of_blocks(nanoseconds, n)) <= 1:
        kernel(0, n, *arguments)
        return
    cuts = np.linspace(0, n, n_blocks + 1)[1:-1] // step * step
    _run(kernel, np.unique(np.r_[0, cuts, n].astype(np.int64)), arguments)


def is_worth_threads(nanoseconds: float) -> bool:
    return nanoseconds >= WORTH_A_THREAD


@contextmanager
def threads_worth(nanoseconds: float):
    """Within the context, work that takes so long goes to several threads: 1 sends all of it there, infinity none.

    The limit belongs to the process. It is for tests and benchmarks, which compare what threads and a single one find.
    """
    global WORTH_A_THREAD
    before, WORTH_A_THREAD = WORTH_A_THREAD, nanoseconds
    try:
        yield
    finally:
        WORTH_A_THREAD = before


def _number_of_blocks(nanoseconds: float, most: int) -> int:
    return int(min(_number_of_threads(), most, 2 * nanoseconds / WORTH_A_THREAD))


def _number_of_threads() -> int:
    if "NUMBA_NUM_THREADS" not in os.environ and _is_in_dask_task():
        return 1
    return numba.get_num_threads()


def _is_in_dask_task() -> bool:
    """Whether this thread is at work on a Dask worker; asked without importing Dask, which most users do not have."""
    utils = sys.modules.get("distributed.utils")
    return utils is not None and hasattr(utils.thread_state, "execution_state")


def _run(kernel, bounds, arguments) -> None:
    """One block on this thread, the others on those of the pool."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max(2, numba.config.NUMBA_NUM_THREADS), thread_name_prefix="skfairrank")
    futures = [_pool.submit(kernel, int(a), int(b), *arguments) for a, b in zip(bounds[1:-1], bounds[2:], strict=True)]
    kernel(int(bounds[0]), int(bounds[1]), *arguments)
    for future in futures:
        future.result()
