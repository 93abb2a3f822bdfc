"""How every kernel is compiled: at first call, without the GIL, cached on disk where there is a place to write."""

from __future__ import annotations

from typing import Any

import numba

__all__ = ["njit", "REASSOCIATE"]

# Lets sums be vectorised. Only for loops that sum and write nothing: a loop that also writes is compiled twice, in vectors
# and one by one, and which of them runs depends on where the arrays happen to lie; the two would sum in different orders.
# For the same reason products and sums are never fused ("contract").
REASSOCIATE = {"reassoc"}


def njit(function=None, *, fastmath: Any = False, inline: str = "never", counts: bool = True):
    """`numba.njit` with this package's options.

    Parameters
    ----------
    counts : bool
        Whether references to arrays are counted. A function that makes no array can do without, and each row or slice that it
        looks at is then two atomic operations cheaper.
    """
    if function is None:
        return lambda f: njit(f, fastmath=fastmath, inline=inline, counts=counts)
    # Said to every function: those that say nothing are compiled as the function that calls them first.
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath, "inline": inline, "_nrt": counts}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable place for the cache (read-only installation without a home directory)
        return numba.njit(**options)(function)
