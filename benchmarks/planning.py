"""What training from a file costs as rows grow: measured for 10^5 and 10^6 rows, and from there by arithmetic up to 10^10.

Times are CPU seconds, which other programs on the machine hardly change. Rows, queries and settings are those of
`benchmarks/out_of_core.py`: 50 float32 features, 10 to 100 rows in a query, 10 queries a step.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from _tools import header, number, table, time_text
from out_of_core import FEATURES, Process, write

MIB, QUERIES_OF_A_STEP, N_RHOS = 2.0**20, 10, 8
ROWS_OF_A_QUERY = 55  # the mean of 10 to 100
#: What Notes of `ParquetRanking` say is held for each query.
BYTES_OF_A_QUERY = 40


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20,000 and 100,000 rows")
    parser.add_argument(
        "--folder", default=None, help="where to write (default: the system's folder for temporary files)"
    )
    options = parser.parse_args()
    print(header())
    sizes = (20_000, 100_000) if options.quick else (100_000, 1_000_000)
    found = [measure(n_rows, options.folder) for n_rows in sizes]
    columns = [
        "rows",
        "Parquet",
        "written for training",
        "peak memory",
        "in memory: peak",
        "first fit",
        "a step, plain",
    ]
    columns += ["a step, SenSTIR", "score"]
    table("Measured, from a file, in CPU seconds", columns, [row(one) for one in found])
    plan(*found)


def measure(n_rows: int, folder) -> dict:
    """What the fits of a file of so many rows take."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "rows.parquet"
        write(path, n_rows)
        spool = Path(f"{path}.spool")
        spool.mkdir()
        workers = {kind: Process(path, kind) for kind in ("file", "memory")}
        found = {"rows": n_rows, "file": path.stat().st_size, "first": workers["file"].fit("plain", 2)[4]}
        found["spool"] = sum(file.stat().st_size for file in spool.rglob("*") if file.is_file())
        found["plain"] = min(workers["file"].fit("plain", 1000)[2] for _ in range(3))
        found["senstir"] = min(workers["file"].fit("given", 1000)[2] for _ in range(3))
        found["score"] = min(workers["file"].fit("score", 1)[4] for _ in range(2))
        found["peak"] = workers["file"].fit("learned", 100)[3]
        found["in_memory"] = workers["memory"].fit("plain", 100)[3]
        for worker in workers.values():
            worker.end()
    return found


def row(one: dict) -> list[str]:
    times = [time_text(one[name]) for name in ("first", "plain", "senstir", "score")]
    return [
        f"{one['rows']:,}",
        *(f"{number(one[name] / MIB)} MiB" for name in ("file", "spool", "peak", "in_memory")),
        *times,
    ]


def plan(small: dict, large: dict) -> None:
    """Print a table by arithmetic, and the arithmetic."""
    more = large["rows"] - small["rows"]

    def per_row(name):
        return (large[name] - small[name]) / more

    bytes_file, bytes_spool, bytes_memory = per_row("file"), per_row("spool"), per_row("in_memory")
    reading, scoring, step = per_row("first"), per_row("score"), large["senstir"]
    rows = []
    for exponent in range(5, 11):
        n = 10**exponent
        n_queries = n / ROWS_OF_A_QUERY
        held = large["peak"] + BYTES_OF_A_QUERY * n_queries
        short, whole = 2000 * step, n_queries / QUERIES_OF_A_STEP * step
        grid = n * reading + N_RHOS * (short + n * scoring)
        sizes = [large["in_memory"] + (n - large["rows"]) * bytes_memory, held, n * bytes_file, n * bytes_spool]
        rows.append(
            [f"10^{exponent}", *map(gib, sizes), *map(duration, (n * reading, short, whole, n * scoring, grid))]
        )
    columns = ["rows", "memory, in memory", "memory, from a file", "Parquet", "for training", "reading", "2,000 steps"]
    columns += ["a pass in steps", "score", f"{N_RHOS} values of rho"]
    table("Planned: SenSTIR on rows of 50 float32 features, 55 rows in a query, 10 queries a step", columns, rows)
    queries, passes = f"n / {ROWS_OF_A_QUERY} queries", f"n / {ROWS_OF_A_QUERY * QUERIES_OF_A_STEP} steps"
    print(
        f"\nOf n rows of {FEATURES} features. In memory: {bytes_memory:.0f} bytes a row more than for fewer. From a file: "
        f"{large['peak'] / MIB:.0f} MiB, and {BYTES_OF_A_QUERY} bytes for each of {queries}. Parquet: {bytes_file:.0f} bytes a "
        f"row, and rows for training {bytes_spool:.0f}. Reading: {1e6 * reading:.2f} s a million rows, once for all fits of a "
        f"source. A step: {1e3 * step:.2f} ms, whatever n; a pass: {passes}. Score: {1e6 * scoring:.2f} s a million rows. "
        f"{N_RHOS} values of rho: reading once, and for each 2,000 steps and a score of as many rows."
    )


def gib(n_bytes: float) -> str:
    for unit, scale in (("TiB", 2.0**40), ("GiB", 2.0**30)):
        if n_bytes >= scale:
            return f"{number(n_bytes / scale)} {unit}"
    return f"{number(n_bytes / MIB)} MiB"


def duration(seconds: float) -> str:
    for unit, scale in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= scale:
            return f"{number(seconds / scale)} {unit}"
    return f"{number(seconds)} s"


if __name__ == "__main__":
    main()
