"""From a fresh interpreter to the first fitted ranker: with nothing compiled yet, and with compiled code cached.

Elapsed seconds, since that is what one waits for, and CPU seconds beside them, which other programs on the machine hardly change.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from _tools import ROOT, arguments, header, table, time_text

# isort: split
import numpy as np

PROGRAM = """
import sys; sys.path.insert(0, {root!r})
import time, warnings
start = time.perf_counter(), time.process_time()
def lap(name):
    global start
    now = time.perf_counter(), time.process_time()
    print(f"{{name}}: {{now[0] - start[0]}} {{now[1] - start[1]}}")
    start = now
import skfairrank, skfairrank.metrics, skfairrank.inspection
lap("import")
warnings.simplefilter("ignore")
from skfairrank.datasets import make_biased_ranking
task = make_biased_ranking(random_state=0)
data = dict(qid=task.qid, sensitive_features=task.sensitive_features)
ranker = skfairrank.SenSTIRRanker(random_state=0, max_iter=2).fit(task.data, task.target, **data)
lap("first fit (2 steps)")
ranker.set_params(max_iter=2000).fit(task.data, task.target, **data)
lap("second fit (2,000 steps)")
ranker.score(task.data, task.target, qid=task.qid); ranker.rank(task.data, qid=task.qid)
lap("first score and rank")
ranker.set_params(adversary="exact_box", solver="lbfgs", max_iter=1000).fit(task.data, task.target, **data)
lap("first fit with lbfgs")
skfairrank.metrics.kendall_tau_score(task.target, ranker.predict(task.data), qid=task.qid)
skfairrank.metrics.group_exposure_disparity(
    task.target, ranker.predict(task.data), qid=task.qid, sensitive_features=task.sensitive_features, random_state=0
)
lap("first two metrics")
skfairrank.inspection.nearest_queries(task.data, task.data, qid=task.qid, qid_reference=task.qid, metric=ranker.metric_)
lap("first nearest_queries")
"""


def laps(cache):
    """Elapsed and CPU seconds of each stage of a fresh process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    out = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(root=str(ROOT))],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(line.rsplit(": ", 1) for line in out.stdout.splitlines())
    return {name: np.array(seconds.split(), dtype=float) for name, seconds in found.items()}


def main():
    arguments(__doc__)
    print(header())
    with tempfile.TemporaryDirectory() as cache:
        cold = laps(cache)
        warm = laps(cache)
    for times in (cold, warm):
        times["to the first fitted ranker"] = times["import"] + times["first fit (2 steps)"]
    table(
        "Set-up: elapsed and CPU time",
        ["", "nothing compiled", "CPU", "compiled before", "CPU"],
        [[name, *(time_text(t) for t in (*cold[name], *warm[name]))] for name in cold],
    )


if __name__ == "__main__":
    main()
