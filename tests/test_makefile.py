"""What `make` prints: what happens and what goes wrong, never the commands that do it."""

import os
import shutil
import subprocess

import pytest
from _data import ROOT

pytestmark = [pytest.mark.once, pytest.mark.skipif(shutil.which("make") is None, reason="no make")]
TARGETS = {
    "setup": "",
    "demo": "python -m skfairrank.demo",
    "test": "ruff check .|ruff format --check .|mypy|python -m pytest",
    "lint": "ruff check .|ruff format --check .|mypy",
    "format": "ruff check --fix .|ruff format .",
    "coverage": "coverage run -m pytest|coverage report",
    "test-oldest": "python -m pytest -m not slow and not once tests",
    "test-once": "python -m pytest -m once tests",
    "docs": "python -m sphinx -W --keep-going -b html docs docs/_build/html",
    "dist": "python .ci/check_dist.py dist",
    "bench": "python benchmarks/run.py",
}


@pytest.fixture
def make(tmp_path):
    """Runs make in a folder whose tools print "did NAME ARGUMENTS", and whose environments are made by a like python3."""
    (tmp_path / "tools").mkdir()
    said = '#!/bin/sh\necho "did $(basename "$0") $*"\n'
    creates = (
        '#!/bin/sh\n[ "$1" = -m ] && [ "$2" = venv ] || exit 0\nmkdir -p "$3/bin"\n'
        'for tool in python ruff mypy coverage; do cp "$(dirname "$0")/said" "$3/bin/$tool"; done\n'
    )
    for name, text in {"said": said, "python3": creates}.items():
        (tmp_path / "tools" / name).write_text(text, encoding="utf-8")
        (tmp_path / "tools" / name).chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".ci").mkdir()
    for name in ("pyproject.toml", ".ci/oldest-requirements.txt"):
        (tmp_path / name).touch()

    def run(*arguments):
        python = f"PYTHON={tmp_path / 'tools' / 'python3'}"
        command = ["make", "--no-print-directory", "-C", str(tmp_path), *arguments, python]
        # These tests may themselves have been started by make, whose settings are not meant for this one.
        mine = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PYTEST_ARGS", "BENCH")
        env = {name: value for name, value in os.environ.items() if name not in mine}
        return subprocess.run(command, capture_output=True, text=True, env=env)

    return run


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_says_what_happens_and_echoes_no_command(make, target):
    done = make(target)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    ran = [line.removeprefix("did ").strip() for line in lines if line.startswith("did ")]
    assert ran[1:] == [command for command in TARGETS[target].split("|") if command]  # first is pip, which installs
    said = [line for line in lines if not line.startswith("did ")]
    assert said[0].startswith("Installing what this needs into .venv")
    assert not any(word in line for line in said for word in ("bin/python", "--", "rm ", "echo"))
    assert len(said) == {"demo": 1, "test": 3}.get(target, 2)
    # The second time nothing is installed.
    assert "Installing" not in make(target).stdout


def test_an_error_is_shown_and_ends_make(make, tmp_path):
    make("setup")
    (tmp_path / ".venv" / "bin" / "mypy").write_text(
        "#!/bin/sh\necho 'a type is wrong' >&2\nexit 1\n", encoding="utf-8"
    )
    done = make("test")
    assert done.returncode != 0 and "a type is wrong" in done.stderr and "did python" not in done.stdout


def test_help_lists_every_target(make):
    listed = {line.split()[0] for line in make("help").stdout.splitlines()}
    assert listed == {"help", "clean", *TARGETS}
