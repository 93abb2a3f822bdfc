"""From a fresh interpreter to the first fitted ranker: with nothing compiled yet, and with compiled code cached.

Seconds on the clock, since that is what one waits for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from _tools import ROOT, arguments, header, table, time_text

PROGRAM = """
import sys; sys.path.insert(0, {root!r})
import time, warnings
start = time.perf_counter()
def lap(name):
    global start
    now = time.perf_counter()
    print(f"{{name}}: {{now - start}}")
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
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    start = time.perf_counter()
    out = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(root=str(ROOT))], env=environment, capture_output=True, text=True, check=True
    )
    total = time.perf_counter() - start
    found = dict(line.rsplit(": ", 1) for line in out.stdout.splitlines())
    return {name: float(seconds) for name, seconds in found.items()} | {"all of it, with Python's start": total}


def main():
    arguments(__doc__)
    print(header())
    with tempfile.TemporaryDirectory() as cache:
        cold = laps(cache)
        warm = laps(cache)
    rows = [[name, time_text(seconds), time_text(warm[name])] for name, seconds in cold.items()]
    first = ("import", "first fit (2 steps)")
    rows.insert(2, ["to the first fitted ranker"] + [time_text(sum(times[name] for name in first)) for times in (cold, warm)])
    table("Set-up, elapsed time", ["", "nothing compiled", "compiled before"], rows)


if __name__ == "__main__":
    main()
