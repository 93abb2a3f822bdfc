"""Compiled kernels on disk: an edit of any kernel is seen, and a damaged or unwritable cache breaks no call."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import skfairrank

CALL = """
    import sys
    sys.path.insert(0, {root!r})
    import numpy as np
    from skfairrank._kernels import linear
    out = np.empty(1)
    linear.all_scores(0, 1, np.array([[1.0, 2.0]]), np.array([3.0, 4.0]), out)
    assert out[0] == 11.0
    print(sum(linear.all_scores.stats.cache_misses.values()))
"""


@pytest.fixture
def n_compiled(tmp_path):
    """How many functions a new process compiles to score a row, with its own copy of the package and a cache folder."""
    root, cache = tmp_path / "site-packages", tmp_path / "cache"
    shutil.copytree(Path(skfairrank.__file__).parent, root / "skfairrank", ignore=shutil.ignore_patterns("__pycache__"))

    def run():
        code = textwrap.dedent(CALL).format(root=str(root))
        environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(root)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        n_functions = int(done.stdout)
        assert done.stderr.count("compiles the kernels") == min(n_functions, 1)  # said once, and only where it is so
        return n_functions

    run.root, run.cache = root, cache
    return run


def test_a_kernel_is_compiled_once_and_again_after_an_edit_of_any_other(n_compiled):
    assert [n_compiled(), n_compiled()] == [1, 0]
    with (n_compiled.root / "skfairrank" / "_kernels" / "exact.py").open("a") as source:
        source.write("\n# changed\n")
    assert n_compiled() == 1


def test_damaged_files_and_a_folder_that_is_none_break_no_call(n_compiled):
    n_compiled()
    for file in [*n_compiled.cache.rglob("*.nbi"), *n_compiled.cache.rglob("*.nbc")]:
        file.write_bytes(b"garbage")
    assert n_compiled() <= 1
    shutil.rmtree(n_compiled.cache)
    n_compiled.cache.touch()
    assert n_compiled() <= 1
