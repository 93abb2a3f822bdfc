"""What individually fair boosting costs: CPU seconds and memory of a fit beside LGBMRanker's on the same rows."""

from __future__ import annotations

import subprocess
import sys

from _tools import ROOT, arguments, header, number, table, time_text

PROGRAM = """
import sys; sys.path.insert(0, {root!r})
import resource, time
import numpy as np
from lightgbm import LGBMRanker
from skfairrank import QueryRanker, SenSTIRBoostingRanker

rows, m, rounds, dtype = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
rng = np.random.default_rng(0)
X = rng.random((rows, 50), dtype=np.float32).astype(dtype, copy=False)
qid = np.repeat(np.arange(rows // 20), 20)
y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=rows), [0.8, 1.2, 1.6])

def mirror(j):
    def mirrored(X):
        X[:, j] = 1.0 - X[:, j]
        return X
    return mirrored

def ranker(n_estimators):
    model = LGBMRanker(n_estimators=n_estimators, n_jobs=1, verbose=-1)
    if m < 0:
        return QueryRanker(model)
    functions = [mirror(j) for j in range(m)]
    return SenSTIRBoostingRanker(model, hypotheticals=functions, rho=0.01 * (m > 0), random_state=0)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

ranker(2).fit(X[:2000], y[:2000], qid=qid[:2000])
before, start = peak(), time.process_time()
ranker(rounds).fit(X, y, qid=qid)
print(time.process_time() - start, (peak() - before) / X.nbytes)
"""


def measure(rows, m, rounds, dtype):
    """CPU seconds of a fit, and the memory that it adds at most, in sizes of X."""
    program = PROGRAM.format(root=str(ROOT))
    command = [sys.executable, "-c", program, str(rows), str(m), str(rounds), dtype]
    return [float(x) for x in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()]


def main():
    options = arguments(__doc__)
    rows, rounds = (20_000, 50) if options.quick else (100_000, 100)
    header()
    lines = []
    for dtype in ("float64", "float32"):
        plain, held = measure(rows, -1, rounds, dtype)
        lines.append([f"LGBMRanker, {dtype}", time_text(plain), "1", "", number(held)])
        for m in (0, 1, 4) if dtype == "float64" else (4,):
            seconds, held = measure(rows, m, rounds, dtype)
            name = (
                f"SenSTIRBoostingRanker, {m} hypothetical rows each, {dtype}"
                if m
                else f"SenSTIRBoostingRanker, rho=0, {dtype}"
            )
            lines.append([name, time_text(seconds), number(seconds / plain), number(1.5 * (1 + m)), number(held)])
    title = f"Boosting: {rows:,} rows of 50 features, queries of 20, {rounds} rounds of 31 leaves"
    table(title, ["", "CPU time", "times LGBMRanker's", "at most", "memory added, in X"], lines)


if __name__ == "__main__":
    main()
