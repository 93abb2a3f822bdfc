"""Training from a Parquet file beside training from memory: peak memory, time per step, and what the first fit costs.

The file has ten million rows of 50 float32 features, in queries of 10 to 100 rows, and is written with pyarrow's own settings.
Each of two processes does the same fits, one from the file and one from arrays in memory; they take turns. It takes about 4.5 GB
of disk (the file, and the rows as training reads them), which is free again at the end, and 3 GB of memory for the process with
the arrays. Linux only, for the peak of memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from _tools import ROOT, header, number, table, time_text

FEATURES, BLOCK = 50, 1_000_000

PROGRAM = """
import sys; sys.path.insert(0, {root!r})
import time, warnings
warnings.simplefilter("ignore")
import numpy as np
from skfairrank import PlackettLuceRanker, SenSTIRRanker
from skfairrank.ranking_files import ParquetRanking
from skfairrank.scores import LinearScore

path, kind = sys.argv[1:]
source = ParquetRanking(path, sensitive_features="group", spool_dir=sys.argv[1] + ".spool")
if kind == "memory":
    X, y, qid, at = np.empty((source.n_rows, {features}), np.float32), np.empty(source.n_rows), np.empty(source.n_rows, int), 0
    for chunk in source.chunks():
        rows = slice(at, at + len(chunk.y))
        X[rows], y[rows], qid[rows], at = chunk.X, chunk.y, chunk.qid, rows.stop
    chunk = None
    data, given = (X, y), dict(qid=qid)
else:
    data, given = (source,), dict()

def peak():
    # getrusage would count what the parent process had when it started this one.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024

class Timed(LinearScore):
    # Notes when the first and the last step of training asked for it.
    times = []

    def pull_back(self, *args):
        Timed.times = Timed.times[:1] + [(time.perf_counter(), time.process_time())]
        super().pull_back(*args)

for line in sys.stdin:
    Timed.times = []
    name, steps = line.split()
    make = PlackettLuceRanker if name == "plain" else SenSTIRRanker
    settings = dict() if name == "plain" else dict(rho=0.01, metric=None if name == "learned" else np.eye({features})[:1])
    start, cpu = time.perf_counter(), time.process_time()
    if name == "score":
        ranker.score(*data, **given)
        print(time.perf_counter() - start, 0.0, 0.0, peak(), time.process_time() - cpu, flush=True)
        continue
    ranker = make(score_function=Timed(), max_iter=int(steps), random_state=0, **settings).fit(*data, **given)
    whole, between = time.perf_counter() - start, int(steps) - 1
    print(whole, *((b - a) / between for a, b in zip(*Timed.times)), peak(), time.process_time() - cpu, flush=True)
source.close()
"""


def write(path: Path, n_rows: int) -> int:
    """Write the file by blocks; the number of its queries."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    sizes = rng.integers(10, 101, n_rows // 10 + 1)
    n_queries = int(np.searchsorted(np.cumsum(sizes), n_rows)) + 1
    qid = np.repeat(np.arange(n_queries), sizes[:n_queries])[:n_rows]
    weights, writer = rng.normal(size=FEATURES), None
    for at in range(0, n_rows, BLOCK):
        ids = qid[at : at + BLOCK]
        X = rng.standard_normal((len(ids), FEATURES), dtype=np.float32)
        merit = X @ weights / 5.0 + rng.standard_normal(len(ids))
        columns = {
            "qid": ids,
            "target": np.clip(np.floor(merit + 1.0), 0.0, 4.0),
            "group": np.where(X[:, 0] > 0, "a", "b"),
        }
        part = pa.table(columns | {f"f{j}": X[:, j] for j in range(FEATURES)})
        writer = pq.ParquetWriter(path, part.schema) if writer is None else writer
        writer.write_table(part)
    writer.close()
    return n_queries


class Process:
    """A fresh process that does the fits it is told."""

    def __init__(self, path: Path, kind: str):
        program = PROGRAM.format(root=str(ROOT), features=FEATURES)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-c", program, str(path), kind], **pipes)

    def fit(self, name: str, steps: int) -> list[float]:
        """Elapsed seconds of the fit; elapsed and CPU seconds of one of its steps; the peak memory of the process so far, in
        bytes; CPU seconds of the fit.
        """
        self.process.stdin.write(f"{name} {steps}\n")
        self.process.stdin.flush()
        return [float(x) for x in self.process.stdout.readline().split()]

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="200,000 rows")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--folder", default=None, help="where to write (default: the system's folder for temporary files)"
    )
    options = parser.parse_args()
    n_rows = 200_000 if options.quick else options.rows
    print(header())
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "rows.parquet"
        n_queries = write(path, n_rows)
        (Path(folder) / "rows.parquet.spool").mkdir()
        title = f"{n_rows:,} rows x {FEATURES} float32 features, {n_queries:,} queries of 10 to 100 rows"
        title += f", {options.steps:,} steps of 10 queries"
        measure(path, title, options.steps, options.rounds)


def measure(path, title, steps, rounds):
    import numpy as np

    workers = {kind: Process(path, kind) for kind in ("file", "memory")}
    begun = {kind: worker.fit("plain", 2) for kind, worker in workers.items()}  # reads the file; compiles
    begun_again = {kind: worker.fit("plain", 2) for kind, worker in workers.items()}
    written = sum(file.stat().st_size for file in Path(f"{path}.spool").rglob("*") if file.is_file())
    rows = []
    for name, said in (("plain", "plain"), ("given", "SenSTIR, rho 0.01")):
        per_step = {kind: [] for kind in workers}
        for worker in workers.values():
            worker.fit(name, 2)
        for _ in range(rounds):
            for kind, worker in workers.items():
                per_step[kind].append(worker.fit(name, steps)[1:3])
        times = {kind: np.median(per_step[kind], axis=0) for kind in workers}
        ratios = np.median(np.array(per_step["file"]) / np.array(per_step["memory"]), axis=0)
        rows.append(
            [said, *(time_text(times[kind][i]) for i in (0, 1) for kind in ("file", "memory")), *ratios[[0, 1]]]
        )
    peaks = {kind: worker.fit("plain", 2)[3] for kind, worker in workers.items()}
    peaks["file"] = workers["file"].fit("learned", steps)[3]
    columns = ["ranker", "file, elapsed", "memory, elapsed", "file, CPU", "memory, CPU", "ratio elapsed", "ratio CPU"]
    table(f"A step from a file and from memory: {title}", columns, rows)
    mib = 2.0**20
    rows = [
        [
            kind,
            f"{number(peaks[kind] / mib)} MiB",
            time_text(begun[kind][0]),
            time_text(begun_again[kind][0]),
            f"{number(path.stat().st_size / mib)} MiB",
            f"{number(written / mib)} MiB" if kind == "file" else "-",
        ]
        for kind in workers
    ]
    columns = ["rows from", "peak memory", "first fit of 2 steps", "another", "file", "rows written for training"]
    table(
        "The same processes: peak memory of all fits (from the file one that learns its metric too), and what a fit begins with",
        columns,
        rows,
    )
    for worker in workers.values():
        worker.end()


if __name__ == "__main__":
    main()
