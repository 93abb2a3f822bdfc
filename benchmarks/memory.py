"""Memory that `fit` adds to a million rows in shuffled queries, and whether a step's time depends on the number of rows."""

from __future__ import annotations

import subprocess
import sys

from _tools import ROOT, arguments, header, number, table, time_text

PROGRAM = """
import sys; sys.path.insert(0, {root!r})
import resource, tempfile, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from skfairrank import SenSTIRRanker

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

rows, kind = int(sys.argv[1]), sys.argv[2]
rng, dtype = np.random.default_rng(0), np.float32 if "float32" in kind else np.float64
y = rng.integers(0, 3, rows).astype(float)
qid = rng.permutation(np.repeat(np.arange(rows // 20), 20))
if "mapped" in kind:
    file = tempfile.NamedTemporaryFile(suffix=".npy")
    X = np.lib.format.open_memmap(file.name, "w+", dtype, (rows, 50))
    for at in range(0, rows, 10_000):
        X[at : at + 10_000] = rng.random((10_000, 50), dtype=dtype)
    X.flush()
    X = np.load(file.name, mmap_mode="r")
else:
    X = rng.random((rows, 50), dtype=dtype)

learned = "learned" in kind
metric, groups = None if learned else np.eye(50)[:1], rng.integers(0, 2, rows)

def fit(max_iter, some=slice(None)):
    start = time.process_time()
    ranker = SenSTIRRanker(max_iter=max_iter, rho=0.1, metric=metric, random_state=0)
    ranker.fit(X[some], y[some], qid=qid[some], sensitive_features=groups[some])
    return time.process_time() - start

fit(2, slice(0, 2000))
before = peak()
fit(2)
added = peak() - before
start = time.perf_counter()
short = min(fit(2) for _ in range(3))
steps = int(sys.argv[3])
print(added, X.nbytes, short, (fit(steps + 2) - short) / steps)
"""


def measure(rows, kind, steps):
    program = PROGRAM.format(root=str(ROOT))
    out = subprocess.run(
        [sys.executable, "-c", program, str(rows), kind, str(steps)], capture_output=True, text=True, check=True
    )
    return [float(x) for x in out.stdout.split()]


def main():
    quick = arguments(__doc__).quick
    print(header())
    million = 200_000 if quick else 1_000_000
    rows = []
    cases = [(n, kind) for kind in ("float64", "float32") for n in (10_000, million)] + [
        (million, "float32, memory-mapped"),
        (million, "float32, learned metric"),
        (million, "float32, memory-mapped, learned metric"),
    ]
    for n_rows, kind in cases:
        added, size, short, step = measure(n_rows, kind, 2000)
        large = n_rows > 10_000
        rows.append(
            [
                f"{n_rows:,} x 50 {kind}",
                f"{number(size / 2**20)} MiB",
                f"{number(added / 2**20)} MiB" if large else "-",
                f"{100 * added / size:.0f} %" if large and "mapped" not in kind else "-",
                time_text(short),
                time_text(step),
            ]
        )
    table(
        "Memory and rows: queries of 20 in shuffled order, 10 queries a step, CPU time (pages of a mapped file count as memory)",
        ["X", "its size", "fit adds at most", "share of X", "fit of 2 steps", "a further step"],
        rows,
    )


if __name__ == "__main__":
    main()
