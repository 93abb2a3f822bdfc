"""Compiled kernels are kept on disk, in a file for each kernel and signature. No fault of a file or folder reaches the caller.

numba has a cache of its own. It is not used, for two reasons. It raises an error at every call if anything goes wrong: a
damaged file, a full disk, a folder that is a file. And it reads only from where it can write.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path

import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

__all__ = ["KernelCache", "folders"]

_FOLDER = Path(__file__).parent
# A compiled kernel contains the kernels that it calls, whatever file they are in. So each version of all files has a folder of
# its own.
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_FOLDER.glob("[a-z_]*.py")))).hexdigest()[:12]
_N_CHECK = hashlib.sha256().digest_size


class WarnOnce:
    """Warns the first time that it is called: one fault of a folder is the fault of every kernel in it."""

    def __init__(self):
        self.has_warned = False

    def __call__(self, message: str) -> None:
        if not self.has_warned:
            self.has_warned = True
            warnings.warn(message, stacklevel=3)


_IN_THIS_PROCESS = WarnOnce()


def folders() -> list[Path]:
    """Where compiled kernels may lie, first choice first: where the user says, or else beside the package and then at home."""
    said = numba.config.CACHE_DIR
    if said:
        bases = [Path(said)]
    else:
        bases = [_FOLDER / "__pycache__"]
        try:
            bases.append(Path.home() / ".cache" / "skfairrank")
        except RuntimeError:  # no home directory
            pass
    return [base / f"kernels-{_DIGEST}" for base in bases]


class KernelCache:
    """What a numba dispatcher asks of its cache (`numba.core.caching`), for one kernel.

    Parameters
    ----------
    function : function
        The Python function, not yet compiled. It must have no closure.
    places : list of Path
        Compiled code is read from the first place that has it, and written to the first that can be written.
    warn : callable
        It is called with a message where there is a fault.
    """

    def __init__(self, function, places: list[Path], warn: Callable[[str], None] = _IN_THIS_PROCESS):
        self._places, self._warn = places, warn
        module, line = function.__module__.rpartition(".")[2], function.__code__.co_firstlineno
        self._kernel = f"{module}.{function.__qualname__}-{line}"

    @property
    def cache_path(self) -> str:
        return str(self._places[0])

    def enable(self): ...

    def disable(self): ...

    def flush(self): ...

    def load_overload(self, signature, target_context):
        """The compile result that is kept for a signature. If it is None, numba compiles and then saves."""
        target_context.refresh()
        name = self._file_name(signature, target_context.codegen())
        for place in self._places:
            try:
                content = (place / name).read_bytes()
            except OSError:
                continue
            try:
                return CompileResult._rebuild(target_context, *_unpacked(content))
            except Exception as error:
                self._warn(f"The compiled kernel {place / name} is damaged ({error!r}): it is compiled anew.")
        return None

    def save_overload(self, signature, result):
        """Keep a compile result, if there is a place that can be written."""
        if result.library.has_dynamic_globals:
            return
        name, content = self._file_name(signature, result.library.codegen), _packed(result._reduce())
        error: OSError | None = None
        for place in self._places:
            try:
                return _write(place / name, content)
            except OSError as failure:
                error = failure
        self._warn(
            f"Compiled kernels cannot be kept on disk ({error}), so every process compiles them anew, which takes seconds. Set "
            "the environment variable NUMBA_CACHE_DIR to a folder that can be written."
        )

    def _file_name(self, signature, codegen) -> str:
        made_for = repr((str(signature), codegen.magic_tuple(), numba.__version__, sys.version_info[:2]))
        return f"{self._kernel}-{hashlib.sha256(made_for.encode()).hexdigest()[:24]}.nbc"


def _packed(reduced) -> bytes:
    content = dumps(reduced)
    return hashlib.sha256(content).digest() + content


def _unpacked(content: bytes):
    """Check the sum first: damaged machine code must not run, and pickle does not see that it is damaged."""
    if hashlib.sha256(content[_N_CHECK:]).digest() != content[:_N_CHECK]:
        raise ValueError("its checksum is wrong")
    return pickle.loads(content[_N_CHECK:])


def _write(path: Path, content: bytes) -> None:
    """Write all of a file or nothing, because other processes may read or write it at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
