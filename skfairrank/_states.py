"""A state in a file: dicts of arrays and numbers as one npz file without pickles, which is replaced as a whole or not at all."""

from __future__ import annotations

import json
import os
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["read_state", "write_state"]

# The name under which the file has everything that is no array, as JSON, and what stands there in the place of an array.
_TREE, _MARK = "tree", "__array__"


def write_state(path: Path, state: dict) -> None:
    """Write a state beside the file, then put it in the file's place in one move, so that no reader ever sees half of it.

    Parameters
    ----------
    path : Path
    state : dict
        Of arrays, numbers, strings, None, lists and further dicts with strings as keys.
    """
    arrays: dict[str, Any] = {}
    tree = json.dumps(_without_arrays(state, arrays))
    arrays[_TREE] = np.frombuffer(tree.encode(), np.uint8)
    beside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with open(beside, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def read_state(path: Path) -> dict:
    """The state that `write_state` has written.

    Raises
    ------
    ValueError
        If the file holds something else, or only a part of a state.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            return _with_arrays(json.loads(arrays[_TREE].tobytes()), arrays)
    except (ValueError, TypeError, AttributeError, LookupError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(path)!r} holds no state of training, or only a part of one ({error}).") from error


def _without_arrays(value, arrays: dict) -> Any:
    """The value with a mark in the place of each array, which goes into `arrays`."""
    if isinstance(value, dict):
        return {key: _without_arrays(entry, arrays) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_arrays(entry, arrays) for entry in value]
    if isinstance(value, np.ndarray):
        arrays[f"a{len(arrays)}"] = value
        return {_MARK: f"a{len(arrays) - 1}"}
    return value.item() if isinstance(value, np.generic) else value


def _with_arrays(value, arrays) -> Any:
    if isinstance(value, dict):
        if _MARK in value:
            return arrays[value[_MARK]]
        return {key: _with_arrays(entry, arrays) for key, entry in value.items()}
    return [_with_arrays(entry, arrays) for entry in value] if isinstance(value, list) else value
