"""Compiled kernels on disk: faults of files and folders are mended or passed by, with one warning for a process."""

import errno
import os
import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest

import skfairrank
from skfairrank._kernels import _cache as core


def double(x):
    return 2 * x


def total(values):
    out = 0.0
    for value in values:
        out += value
    return out


def use(*places, warn=None):
    """Both kernels as in a new process, one of them for two types: how many were compiled, and the warnings."""
    warn = core.WarnOnce() if warn is None else warn
    dispatchers = [numba.njit(function) for function in (double, total)]
    for dispatcher in dispatchers:
        dispatcher._cache = core.KernelCache(dispatcher.py_func, list(places), warn)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert dispatchers[0](2) == 4 and dispatchers[0](0.5) == 1.0
        assert dispatchers[1](np.array([1.0, 2.0])) == 3.0
    misses, hits = (
        sum(sum(d.stats._asdict()[name].values()) for d in dispatchers) for name in ("cache_misses", "cache_hits")
    )
    assert misses + hits == 3
    return misses, [str(warning.message) for warning in seen]


def test_kernels_are_compiled_once(tmp_path):
    assert use(tmp_path) == (3, [])
    assert use(tmp_path) == (0, [])
    assert len(list(tmp_path.iterdir())) == 3


DAMAGE = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "a bit": lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
    "garbage": lambda content: b"\x80\x04garbage" * 300,
    "another object": lambda content: core._packed(("not", "a", "kernel")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_mended_with_one_warning(damage, tmp_path):
    use(tmp_path)
    for file in tmp_path.iterdir():
        file.write_bytes(DAMAGE[damage](file.read_bytes()))
    compiled, (message,) = use(tmp_path)
    assert compiled == 3 and "damaged" in message and ".nbc" in message
    assert use(tmp_path) == (0, [])


def test_what_cannot_be_read_or_replaced_is_passed_by(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    use(first)
    for file in first.iterdir():
        file.unlink()
        file.mkdir()  # root could replace a file that is merely write-protected
        (file / "occupied").touch()
    assert use(first, second) == (3, [])
    assert use(first, second) == (0, [])


def below_a_file(tmp_path):
    (tmp_path / "file").touch()
    return tmp_path / "file" / "cache"


def a_file(tmp_path):
    (tmp_path / "cache").touch()
    return tmp_path / "cache"


PLACES = {"a file": a_file, "below a file": below_a_file, "not for files": lambda _: Path("/proc/cache")}


@pytest.mark.parametrize("place", PLACES)
def test_a_folder_that_cannot_be_written_is_passed_by_with_one_warning(place, tmp_path):
    if place == "not for files" and not Path("/proc/self").exists():
        pytest.skip("no /proc")
    warn = core.WarnOnce()
    for n_before in (0, 1):  # no second warning in one process
        compiled, messages = use(PLACES[place](tmp_path), warn=warn)
        assert compiled == 3 and len(messages) == 1 - n_before
        assert all("cannot be kept" in message and "NUMBA_CACHE_DIR" in message for message in messages)


def test_the_next_place_is_taken_where_the_first_cannot_be_written(tmp_path):
    assert use(below_a_file(tmp_path), tmp_path / "home") == (3, [])
    assert use(below_a_file(tmp_path), tmp_path / "home") == (0, [])


def test_a_full_disk_leaves_no_parts_of_files(tmp_path, monkeypatch):
    def write_bytes(path, content):
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    compiled, (message,) = use(tmp_path)
    assert compiled == 3 and os.strerror(errno.ENOSPC) in message
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_removed_is_made_again(tmp_path):
    place = tmp_path / "cache"
    use(place)
    shutil.rmtree(place)
    assert use(place) == (3, []) and use(place) == (0, [])


def test_a_place_that_cannot_be_written_is_read(tmp_path, monkeypatch):
    """Permissions do not bind root, under whom tests may run: that nothing can be written is simulated."""
    use(tmp_path)

    def write_bytes(path, content):
        pytest.fail("something was written")

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    assert use(tmp_path) == (0, [])


def test_versions_do_not_read_each_others_kernels(tmp_path, monkeypatch):
    use(tmp_path)
    monkeypatch.setattr(numba, "__version__", "0.0")
    assert use(tmp_path) == (3, [])
    monkeypatch.setattr(sys, "version_info", (4, 0))
    assert use(tmp_path) == (3, [])


def test_where_the_user_says_comes_first_then_beside_the_package_then_home(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    (said,) = core.folders()
    assert said.parent == tmp_path
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    beside, home = core.folders()
    assert beside.parent == Path(skfairrank.__file__).parent / "_kernels" / "__pycache__"
    assert beside.name == home.name == said.name and (tmp_path in home.parents or os.name == "nt")

    def home_of_nobody():
        raise RuntimeError

    monkeypatch.setattr(Path, "home", home_of_nobody)
    assert core.folders() == [beside]


INSTALLED = """
    import sys
    sys.path.insert(0, {root!r})
    import numpy as np
    from skfairrank._kernels import linear
    {before}
    assert linear.mean(np.array([1.0, 2.0])) == 1.5
    print(sum(linear.mean.stats.cache_misses.values()))
"""


@pytest.mark.slow
def test_a_read_only_installation_reads_the_kernels_beside_it(tmp_path):
    """Also where a copy gave its files new dates; an edit of any kernel is seen."""
    root, home = tmp_path / "site-packages", tmp_path / "home"
    shutil.copytree(Path(skfairrank.__file__).parent, root / "skfairrank", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHONPATH"))}
    environment.update(HOME=str(home), PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="error:.*compiled:UserWarning")

    def n_compiled(before="pass"):
        code = textwrap.dedent(INSTALLED).format(root=str(root), before=before)
        return int(
            subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout
        )

    assert n_compiled() == 1 and not home.exists()
    for path in root.rglob("*.py"):
        os.utime(path, (1, 1))
    assert n_compiled("import pathlib; pathlib.Path.write_bytes = None") == 0 and not home.exists()
    with (root / "skfairrank" / "_kernels" / "ragged.py").open("a") as source:
        source.write("\n# changed\n")
    assert n_compiled() == 1
