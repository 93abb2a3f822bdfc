"""How every kernel is compiled: at first call, without the GIL, cached on disk where there is a place to write."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numba
from numba.core.options import DefaultOptions

__all__ = ["njit", "REASSOCIATE"]

# Lets sums be vectorised. Only for loops that sum and write nothing: a loop that also writes is compiled twice, in vectors
# and one by one, and which of them runs depends on where the arrays happen to lie; the two would sum in different orders.
# For the same reason products and sums are never fused ("contract").
REASSOCIATE = {"reassoc"}

_FOLDER = Path(__file__).parent
# numba's cache looks at the file of a function, not at those of the functions that it calls. So each version of the kernels has a
# place of its own: where the user says, beside the package, or in the home directory.
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_FOLDER.glob("[a-z_]*.py")))).hexdigest()[:12]


def _cache_folder(said: str) -> str:
    if said:
        base = Path(said)
    elif os.access(_FOLDER, os.W_OK):
        base = _FOLDER / "__pycache__"
    else:
        base = Path(os.path.expanduser("~")) / ".cache" / "skfairrank"
    return str(base / f"kernels-{_DIGEST}")


def njit(function=None, *, fastmath: Any = False, inline: str = "never", counts: bool = True):
    """`numba.njit` with this package's options.

    Parameters
    ----------
    counts : bool
        Whether references to arrays are counted. A function that neither makes nor returns an array can do without, and each row
        or slice that it looks at is then two atomic operations cheaper.
    """
    if function is None:
        return lambda f: njit(f, fastmath=fastmath, inline=inline, counts=counts)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath, "inline": inline}
    if hasattr(DefaultOptions, "_nrt"):  # not documented; without it kernels are slower, and right
        # Said to every function: those that say nothing are compiled as the function that calls them first.
        options["_nrt"] = counts
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _cache_folder(before)
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable place for the cache (read-only installation without a home directory)
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before
