"""Compiled loops over flat arrays, in which the rows of a query lie side by side.

Every kernel is compiled at its first call and kept on disk by numba, in ``__pycache__`` or where NUMBA_CACHE_DIR says.
"""

from __future__ import annotations

import gc
import hashlib
import sys
from functools import cache, wraps
from multiprocessing import current_process
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache

# This lets LLVM vectorise a sum. Use it only for loops that sum and write nothing. LLVM compiles a loop that also writes twice,
# once in vectors and once number by number, and which one runs depends on where the arrays happen to lie in memory. The two
# would sum in different orders. For the same reason products and sums are never fused ("contract").
REASSOCIATE = {"reassoc"}

_CONTENT = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()


class _Cache(FunctionCache):
    """numba's cache, valid for one content of this folder, since kernels contain those that they call from other files.

    A file that is damaged or cannot be written costs a compilation; numba would raise an error at every call.
    """

    def __init__(self, function):
        super().__init__(function)
        self._cache_file._source_stamp = _CONTENT

    def load_overload(self, signature, target_context):
        try:
            return super().load_overload(signature, target_context)
        except Exception:
            return self._quietly(self.flush)

    def save_overload(self, signature, result):
        self._quietly(super().save_overload, signature, result)

    def _quietly(self, write, *arguments):
        try:
            write(*arguments)
        except Exception:
            self.disable()


def _without_collector(compile_):
    """Pause Python's garbage collector, which looks through numba's many objects again and again: a sixth of the time."""

    @wraps(compile_)
    def paused(signature):
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return compile_(signature)
        finally:
            if was_enabled:
                gc.enable()

    return paused


@cache
def _say_that_it_compiles(folder):
    """Say it once in a process, and of a search's worker processes in the first alone, since the call is silent for so long."""
    if current_process().name.endswith(("MainProcess", "-1")):
        later = (
            f"Later runs find them in {folder}." if folder else "Set NUMBA_CACHE_DIR to a folder that can keep them."
        )
        message = f"skfairrank compiles the kernels of this call, which takes up to half a minute. {later}"
        print(message, file=sys.stderr, flush=True)


def _saying_so(dispatcher):
    """What a dispatcher calls where neither memory nor disk has compiled code."""
    compile_ = dispatcher._compiler.compile

    @wraps(compile_)
    def saying(*signature):
        _say_that_it_compiles(dispatcher.stats.cache_path)
        return compile_(*signature)

    return saying


def njit(function=None, *, inner: bool = False, **options: Any):
    """`numba.njit` without the GIL and with a cache on disk.

    Parameters
    ----------
    inner : bool
        Whether only other kernels call the function. Then no code is compiled that unpacks Python's objects.
    """
    if function is None:
        return lambda f: njit(f, inner=inner, **options)
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": inner}
    dispatcher = numba.njit(**options)(function)
    try:
        dispatcher._cache = _Cache(function)
    except RuntimeError:  # no folder can be written
        pass
    dispatcher.compile = _without_collector(dispatcher.compile)
    dispatcher._compiler.compile = _saying_so(dispatcher)
    return dispatcher
