"""Fair trees on one machine and on two Dask workers: NDCG, tau with the twin, and the peak of memory of each process.

The rows are those of `make_hiring_ranking` with columns of noise beside the five, in Parquet files of whole queries. Each line is
a fit and an audit of 1,000 other queries, in a process of its own or on worker processes. Linux only, for the peak of memory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from _tools import ROOT, arguments, header, table

FILES, NOISE, TEST = 8, 45, 1000
PROGRAM = """
import sys; sys.path.insert(0, {root!r})
import warnings
warnings.simplefilter("ignore")
import lightgbm
import pandas as pd
from skfairrank import GapBoostingRanker
from skfairrank.inspection import audit

def peak():
    import skfairrank.inspection
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["VmHWM"].split()[0]) / 1024

def measured(model, strength, rows, test):
    names = [name for name in rows.columns if name.startswith("f")]
    twins = test[[f"twin_{{name}}" for name in names]].rename(columns=lambda name: name.removeprefix("twin_"))
    ranker = GapBoostingRanker(model, strength=strength)
    ranker.fit(rows[names], rows["y"], qid=rows["qid"], sensitive_features=rows["group"])
    found = audit(ranker, test[names], test["y"], qid=test["qid"], X_hypothetical=twins).iloc[0]
    merit = audit(ranker, test[names], test["merit"], qid=test["qid"]).iloc[0]
    return [found["ndcg"], merit["ndcg"], found["tau"]]

if __name__ == "__main__":
    folder, workers, strength = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    settings = {{"n_estimators": 100, "num_leaves": 7, "verbose": -1, "random_state": 0}}
    if workers == 1:
        before = peak()
        rows, test = pd.read_parquet(folder + "/train"), pd.read_parquet(folder + "/test")
        print(*measured(lightgbm.LGBMRanker(n_jobs=1, **settings), strength, rows, test), before, peak())
    else:
        import dask.dataframe as dd
        from distributed import Client, LocalCluster

        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
            before = max(client.run(peak).values())
            rows, test = dd.read_parquet(folder + "/train"), dd.read_parquet(folder + "/test")
            found = measured(lightgbm.DaskLGBMRanker(**settings), strength, rows.persist(), test.persist())
            print(*found, before, *client.run(peak).values())
"""


def write(folder: Path, n_queries: int, seed: int, n_files: int) -> None:
    """Write files of whole queries."""
    import numpy as np
    import pandas as pd

    from skfairrank.datasets import make_hiring_ranking

    task, rng = make_hiring_ranking(n_queries, random_state=seed), np.random.default_rng(seed + 1)
    noise = rng.normal(size=(len(task.target), NOISE))
    names = [f"f{j}" for j in range(5 + NOISE)]
    rows = pd.DataFrame(np.column_stack([task.data, noise]), columns=names)
    if n_files == 1:
        twins = pd.DataFrame(np.column_stack([task.twin, noise]), columns=[f"twin_{name}" for name in names])
        rows = pd.concat([rows, twins], axis=1).assign(merit=task.merit)
    rows = rows.assign(y=task.target.astype(int), qid=task.qid, group=task.sensitive_features)
    folder.mkdir()
    for k, part in rows.groupby(rows["qid"] * n_files // n_queries):
        part.to_parquet(folder / f"part.{k}.parquet", index=False)


def main():
    options = arguments(__doc__)
    n_queries, rows = 2000 if options.quick else 20_000, []
    print(header())
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "train", n_queries, 0, FILES)
        write(Path(folder) / "test", TEST, 1, 1)
        program = Path(folder) / "program.py"  # workers read it again
        program.write_text(PROGRAM.format(root=str(ROOT)))
        for strength, workers in ((0, 1), (0, 2), (5, 1), (5, 2)):
            command = [sys.executable, str(program), folder, str(workers), str(strength)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            ndcg, merit, tau, before, *peaks = map(float, printed.splitlines()[-1].split())
            numbers = [f"{value:.3f}" for value in (ndcg, merit, tau)]
            memory = [f"{before:,.0f} MiB", ", ".join(f"{peak:,.0f} MiB" for peak in peaks)]
            where = "one machine" if workers == 1 else f"{workers} workers"
            rows.append([f"strength {strength}, {where}", *numbers, *memory])
    columns = ["what", "NDCG", "NDCG of the merit", "tau with the twin", "memory before", "peak of each"]
    table(f"{10 * n_queries:,} rows x {5 + NOISE} features, 100 trees of 7 leaves", columns, rows)


if __name__ == "__main__":
    main()
