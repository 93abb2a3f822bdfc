"""Parquet larger than memory: time and peak of memory of reading it to a memory map, and of fits on the map and in memory.

Rows have 50 float32 features, queries 10 to 100 rows. Each line is a process of its own. Linux only, for the peak of memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from _tools import ROOT, header, table

FEATURES, BLOCK = 50, 1_000_000
PROGRAM = """
import sys; sys.path.insert(0, {root!r})
import time, warnings
warnings.simplefilter("ignore")
import numpy as np
from skfairrank import SenSTIRRanker
from skfairrank.files import read_ranking

folder, what = sys.argv[1:]
start = time.perf_counter()
if what == "read":
    data = read_ranking(folder + "/rows.parquet", folder=folder)
    np.savez(folder + "/others.npz", y=data.y, qid=data.qid)
else:
    X = np.load(folder + "/X.npy", mmap_mode="r" if what == "map" else None)
    y, qid = np.load(folder + "/others.npz").values()
    ranker = SenSTIRRanker(np.eye({features})[:1], rho=0.01, max_iter=2000, random_state=0).fit(X, y, qid=qid)
seconds = time.perf_counter() - start
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(seconds, int(status["VmHWM"].split()[0]) / 1024, int(status["RssAnon"].split()[0]) / 1024)
"""


def write(path: Path, n_rows: int) -> None:
    """Write the file by blocks."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    sizes = rng.integers(10, 101, n_rows // 10 + 1)
    qid = np.repeat(np.arange(len(sizes)), sizes)[:n_rows]
    weights = rng.normal(size=FEATURES)
    for at in range(0, n_rows, BLOCK):
        ids = qid[at : at + BLOCK]
        X = rng.standard_normal((len(ids), FEATURES), dtype=np.float32)
        merit = X @ weights / 5.0 + rng.standard_normal(len(ids))
        columns = {"qid": ids, "y": np.clip(np.floor(merit + 1.0), 0.0, 4.0)}
        part = pa.table(columns | {f"f{j}": X[:, j] for j in range(FEATURES)})
        writer = pq.ParquetWriter(path, part.schema) if writer is None else writer
        writer.write_table(part)
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="200,000 rows")
    parser.add_argument("--rows", type=int, default=5_000_000)
    options = parser.parse_args()
    n_rows, rows = 200_000 if options.quick else options.rows, []
    print(header())
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "rows.parquet", n_rows)
        program = PROGRAM.format(root=str(ROOT), features=FEATURES)
        for what, said in (("read", "read_ranking"), ("map", "fit on the map"), ("memory", "fit in memory")):
            command = [sys.executable, "-c", program, folder, what]
            numbers = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            seconds, peak, own = map(float, numbers)
            rows.append([said, f"{seconds:.1f} s", f"{peak:,.0f} MiB", f"{own:,.0f} MiB"])
    size = n_rows * FEATURES * 4 / 2**20
    columns = ["what", "elapsed", "peak, pages of the map included", "at the end, without them"]
    table(f"{n_rows:,} rows x {FEATURES} float32 features, {size:,.0f} MiB; SenSTIR, 2,000 steps", columns, rows)


if __name__ == "__main__":
    main()
