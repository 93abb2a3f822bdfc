"""A folder for rows as training reads them: whole rows, one after the other, where a Parquet file has column after column.

The rows of a query then lie together, so that a query from anywhere in the file costs one read of its own bytes. In a Parquet
file it would cost decoding a row group, which by default has a million rows.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

import numpy as np

from skfairrank.ranking_files._row_file import RowFile

__all__ = ["Spool"]


class Spool:
    """A temporary folder of row files; it is removed with this object, or where Python ends.

    Parameters
    ----------
    parent : path-like or None
        The folder in which to make it; None: the system's for temporary files.
    n_bytes : int
        How much is going to be written.

    Raises
    ------
    OSError
        If so much does not fit on the disk.
    """

    def __init__(self, parent, n_bytes: int):
        parent = Path(tempfile.gettempdir() if parent is None else parent).expanduser()
        if not parent.is_dir():
            raise FileNotFoundError(f"There is no folder {parent} (spool_dir=): create it first, or give another.")
        free = shutil.disk_usage(parent).free
        if n_bytes > free:
            raise OSError(
                f"Training from this file needs {n_bytes / 2**30:.1f} GiB on a disk for its rows, and {parent} has "
                f"{free / 2**30:.1f} GiB free: name a folder with more room, spool_dir=, or fewer features."
            )
        self.folder = Path(tempfile.mkdtemp(prefix="skfairrank-", dir=parent))
        self._remover = weakref.finalize(self, _remove, self.folder, os.getpid())

    def write(self, name: str, parts, dtype, width: int | None = None) -> RowFile:
        """A file of these parts, one after the other; each is an array of whole rows."""
        path = self.folder / name
        with open(path, "wb") as file:
            for part in parts:
                file.write(np.ascontiguousarray(part, dtype=dtype).data)
        return RowFile(path, dtype, width)

    def row_file(self, name: str, dtype) -> RowFile:
        """A file of single numbers that lies in the folder."""
        return RowFile(self.folder / name, dtype)

    def close(self) -> None:
        """Remove the folder."""
        self._remover()


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not in a fork, which has the same object
        shutil.rmtree(folder, ignore_errors=True)
