"""What the benchmarks share: one thread unless said, timings that alternate, and tables in Markdown.

Import this first: it pins the number of threads before NumPy and numba are loaded. Times of one thread are CPU seconds of the
process, which other programs on the machine hardly change; elapsed time is used where threads or processes are compared.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

# Set before any import of NumPy or numba. A script that compares threads sets NUMBA_NUM_THREADS before it imports this file.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the package of this clone, installed or not

import numpy as np

__all__ = ["ROOT", "arguments", "german", "header", "number", "ratio", "side_by_side", "table", "time_text"]


def arguments(description: str, *, picture: str | None = None) -> argparse.Namespace:
    """Command line of a script: --quick, and --picture where it draws one."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smaller share of the work; ratios are rougher")
    if picture is not None:
        parser.add_argument("--picture", default=picture, help=f"where to draw it (default: {picture})")
    return parser.parse_args()


def side_by_side(functions: dict, *, rounds: int = 5, at_least: float = 0.05, clock=time.process_time) -> dict:
    """Seconds per call of each function, one entry for each round: functions take turns, so that all meet the same machine.

    Parameters
    ----------
    functions : dict of callable
        Called once before timing, so that nothing is compiled while the clock runs.
    at_least : float
        Seconds of each measurement; a function is called as often as that takes.
    clock : callable
        `time.process_time` (CPU seconds), or `time.perf_counter`.
    """
    calls, seconds = {}, {}
    for name, function in functions.items():
        function()
        calls[name], spent = 1, 0.0
        while spent < at_least / 4:
            start = clock()
            for _ in range(calls[name]):
                function()
            spent = clock() - start
            calls[name] = max(calls[name], int(calls[name] * at_least / max(spent, 1e-7)))
        seconds[name] = np.empty(rounds)
    for i in range(rounds):
        for name, function in functions.items():
            start = clock()
            for _ in range(calls[name]):
                function()
            seconds[name][i] = (clock() - start) / calls[name]
    return seconds


def ratio(slow: np.ndarray, fast: np.ndarray) -> float:
    """Median over the rounds of the ratio within a round."""
    return float(np.median(slow / fast))


def time_text(seconds) -> str:
    """A time, or the median of several, in a readable unit."""
    seconds = float(np.median(seconds))
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1.0:
            return f"{number(seconds * scale)} {unit}"
    return f"{number(seconds * 1e9)} ns"


def number(value: float) -> str:
    """Three digits that mean something."""
    if not np.isfinite(value) or value == 0:
        return f"{value:g}"
    digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{digits}f}"


def table(title: str, columns: list, rows: list) -> None:
    """Print a table in Markdown; numbers to three digits, the first column to the left."""
    cells = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in [columns, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    print(f"\n### {title}\n")
    for i, row in enumerate(cells):
        padded = [
            cell.ljust(width) if j == 0 else cell.rjust(width) for j, (cell, width) in enumerate(zip(row, widths))
        ]
        print("| " + " | ".join(padded) + " |")
        if i == 0:
            print("|" + "|".join("-" * (w + 2) if j == 0 else "-" * (w + 1) + ":" for j, w in enumerate(widths)) + "|")
    sys.stdout.flush()


def header() -> str:
    """Date, machine and versions, which belong above every table."""
    import platform

    import numba
    import sklearn

    import skfairrank

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    versions = ", ".join(f"{module.__name__} {module.__version__}" for module in (np, numba, sklearn, skfairrank))
    return (
        f"{time.strftime('%Y-%m-%d')}, {model}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}"
    )


def data_folder() -> Path:
    return Path(os.environ.get("SKFAIRRANK_DATA") or ROOT.parent / "shared" / "data")


def german():
    """X, y, qid of German Credit as a ranking task (500 queries of 10, 29 features), and what it is.

    From german_seed0.npz in the folder SKFAIRRANK_DATA, else ../shared/data; where there is none, a stand-in of the same shape:
    three numbers and six groups of indicators, relevance by a noisy linear score.
    """
    path = data_folder() / "german_seed0.npz"
    if path.exists():
        with np.load(path) as arrays:
            return arrays["X_train"], arrays["y_train"].astype(float), arrays["qid_train"], "German Credit"
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(5000, 3))]
    for levels in (2, 4, 3, 5, 4, 8):
        parts.append(np.eye(levels)[rng.integers(levels, size=5000)])
    X = np.hstack(parts)
    y = (X @ rng.normal(size=29) + rng.normal(size=5000) * 3.0 > 0.0).astype(float)
    return X, y, np.repeat(np.arange(500), 10), "a stand-in of the shape of German Credit"
