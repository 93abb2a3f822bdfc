"""Opening of data files: plain or compressed, by path or already open."""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# The first bytes tell, not the name: downloads are often renamed.
OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open}


@contextmanager
def open_binary(source) -> Iterator[Any]:
    """A file to read from: `source` itself if it is open already (and then left open), else the file at that path."""
    if hasattr(source, "read"):
        yield source
        return
    with open(source, "rb") as file:
        start = file.read(2)
    with OPENERS.get(start, open)(source, "rb") as file:
        yield file


def file_name(source) -> str:
    """What a message calls `source`."""
    if hasattr(source, "read"):
        return str(getattr(source, "name", "the file"))
    return os.fspath(source)


def read_text(source) -> tuple[str, str]:
    """The whole content of a file, and what a message calls it."""
    with open_binary(source) as file:
        content = file.read()
    text = content if isinstance(content, str) else content.decode("utf-8-sig", errors="replace")
    return text, file_name(source)
