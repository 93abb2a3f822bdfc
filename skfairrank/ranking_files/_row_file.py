"""Rows of numbers in a file, read where they are asked for.

A memory map would do the same, but its pages count as memory of the process until the system takes them back, a few pages around
each row that was touched; and a file that has been cut short ends the process instead of raising.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["RowFile"]


class RowFile:
    """Rows of equal width, one after the other in a file.

    It can be read from several threads and processes at once, and pickled: a copy opens the file anew.

    Parameters
    ----------
    path : path-like
    dtype : dtype
    width : int or None
        Numbers of a row; None: rows are single numbers.
    first_byte : int
        Where the first row begins.
    """

    def __init__(self, path, dtype, width: int | None = None, *, first_byte: int = 0):
        self.path, self.dtype, self.width, self.first_byte = Path(path), np.dtype(dtype), width, first_byte
        self.row_bytes = self.dtype.itemsize * (1 if width is None else width)
        self._file: Any = None

    def __getstate__(self):
        return {**self.__dict__, "_file": None}

    def read(self, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Rows ``starts[k]`` to ``starts[k] + sizes[k] - 1`` of each k, one after the other.

        Parameters
        ----------
        starts, sizes : ndarray of int64, shape (n_runs,)
            In any order; they are read from the front of the file to its end.

        Returns
        -------
        rows : ndarray, shape (sum of sizes, width), or (sum of sizes,)

        Raises
        ------
        OSError
            If the file ends before the last row.
        """
        ends = np.cumsum(sizes)
        n_rows = int(ends[-1])
        out = np.empty(n_rows if self.width is None else (n_rows, self.width), self.dtype)
        is_first = np.ones(len(starts), bool)  # of runs that lie one behind the other
        np.not_equal(starts[1:], starts[:-1] + sizes[:-1], out=is_first[1:])
        begin = (ends - sizes)[is_first]
        end = np.append(begin[1:], n_rows)
        at = starts[is_first]
        order = np.argsort(at, kind="stable")
        places = (np.stack([at, begin, end])[:, order] * self.row_bytes).tolist()
        flat: Any = out.reshape(-1).view(np.uint8)
        room, number = memoryview(flat), self._opened().fileno()
        places[0] = [source + self.first_byte for source in places[0]]
        if _CAN_ANNOUNCE and len(at) > 1:
            for source, first, last in zip(*places):
                os.posix_fadvise(number, source, last - first, os.POSIX_FADV_WILLNEED)
        for source, first, last in zip(*places):
            if not _CAN_READ_AT or os.preadv(number, (room[first:last],), source) != last - first:
                self._fill(room[first:last], source)
        return out

    @property
    def shape(self) -> tuple[int, ...]:
        n_rows = (os.path.getsize(self.path) - self.first_byte) // self.row_bytes
        return (n_rows,) if self.width is None else (n_rows, self.width)

    def digest(self) -> str:
        """A hash of all rows: by what they are they are known again, and not by the name of the file."""
        with open(self.path, "rb") as file:
            file.seek(self.first_byte)
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()

    def _opened(self):
        if self._file is None:
            try:
                self._file = open(self.path, "rb", buffering=0)
            except FileNotFoundError as error:
                raise FileNotFoundError(
                    f"{self.path} is not there, from which rows are read: it is written by the process that began training, and "
                    "goes when that ends or closes the source. For processes on other machines name a folder that all of them "
                    "have, spool_dir=."
                ) from error
            weakref.finalize(self, self._file.close)
        return self._file

    def _fill(self, room: memoryview, at: int) -> None:
        """Read as often as it takes."""
        while len(room):
            n = _read_at(self._opened(), room, at)
            if not n:
                raise OSError(
                    f"{self.path} ends at byte {at}, before the last of its rows: it has been cut short since it was opened."
                )
            room, at = room[n:], at + n


# A disk that knows what is going to be read fetches it all at once: where rows were not in the page cache, reading batches took a
# quarter of the time.
_CAN_ANNOUNCE = hasattr(os, "posix_fadvise")
# Reading from a place leaves the position alone that threads and forked processes share.
_CAN_READ_AT = hasattr(os, "preadv")


def _read_at(file, room, at) -> int:
    if _CAN_READ_AT:
        return os.preadv(file.fileno(), (room,), at)
    file.seek(at)  # Windows
    return file.readinto(room)
