"""How every kernel is compiled: at first call, without the GIL, kept on disk where there is a place to write."""

from __future__ import annotations

from typing import Any

import numba
from numba.core.options import DefaultOptions

from skfairrank._kernels._cache import KernelCache, folders

__all__ = ["njit", "REASSOCIATE"]

# This lets LLVM vectorise a sum. Use it only for loops that sum and write nothing. LLVM compiles a loop that also writes twice,
# once in vectors and once number by number, and which one runs depends on where the arrays happen to lie in memory. The two
# would sum in different orders. For the same reason products and sums are never fused ("contract").
REASSOCIATE = {"reassoc"}


def njit(function=None, *, fastmath: Any = False, inline: str = "never", counts: bool = True, inner: bool = False):
    """`numba.njit` with this package's options.

    Parameters
    ----------
    counts : bool
        Whether references to arrays are counted. A function that neither makes nor returns an array can do without. Each row or
        slice that it looks at is then two atomic operations cheaper.
    inner : bool
        Whether only other kernels call the function. Then no code is compiled that unpacks Python's objects.
    """
    if function is None:
        return lambda f: njit(f, fastmath=fastmath, inline=inline, counts=counts, inner=inner)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath, "inline": inline}
    options["no_cfunc_wrapper"] = True  # for calls from C, which nobody makes
    options["no_cpython_wrapper"] = inner
    if hasattr(DefaultOptions, "_nrt"):  # not documented; without it kernels are slower, and right
        # Said to every function: those that say nothing are compiled as the function that calls them first.
        options["_nrt"] = counts
    dispatcher = numba.njit(**options)(function)
    dispatcher._cache = KernelCache(function, folders())
    return dispatcher
