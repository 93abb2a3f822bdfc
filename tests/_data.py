"""Where tests find the shared data files, which are not part of the repository."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def shared_data(name: str) -> Path:
    """Path of a shared data file; skips the calling test, with the reason, where there is none.

    Looked up in the directory that the environment variable SKFAIRRANK_DATA names, else in ../shared/data beside the
    project.
    """
    directory = Path(os.environ.get("SKFAIRRANK_DATA") or ROOT.parent / "shared" / "data")
    path = directory / name
    if not path.exists():
        pytest.skip(f"no {name} in {directory}; SKFAIRRANK_DATA can name another directory")
    return path


def public_names(module):
    """Names of a module's `__all__`; of the top level also the rankers around another one, which `import *` leaves out."""
    classes = {name for name, value in vars(module).items() if isinstance(value, type) and not name.startswith("_")}
    return set(module.__all__) | (classes if module.__name__ == "skfairrank" else set())
