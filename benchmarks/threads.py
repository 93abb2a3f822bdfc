"""One thread against two (or more): training over large batches, and metrics; and that small work pays nothing for them.

Elapsed time; other programs on the machine take from the gain, and the control in the first row shows how much.
"""

from __future__ import annotations

import os

os.environ["NUMBA_NUM_THREADS"] = str(max(2, os.cpu_count()))

import time
import warnings

from _tools import arguments, header, ratio, side_by_side, table, time_text

# isort: split
import numba
import numpy as np
from _references import control

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.inspection import nearest_queries
from skfairrank.metrics import group_exposure_disparity, kendall_tau_score, ndcg_score, stochastic_ndcg_score
from skfairrank.plackett_luce import sample_rankings


def with_threads(n, function):
    def call():
        numba.set_num_threads(n)
        return function()

    return call


def main():
    quick = arguments(__doc__).quick
    warnings.simplefilter("ignore")
    n = numba.config.NUMBA_NUM_THREADS
    print(header())
    rng = np.random.default_rng(0)
    rows = []

    def compare(title, function):
        results = [np.asarray(with_threads(k, function)()) for k in (1, n)]
        if not np.array_equal(*results):
            raise AssertionError(f"{title}: the result depends on the number of threads.")
        s = side_by_side(
            {k: with_threads(k, function) for k in (1, n)},
            rounds=3 if quick else 7,
            at_least=0.2,
            clock=time.perf_counter,
        )
        rows.append([title, time_text(s[1]), time_text(s[n]), ratio(s[1], s[n])])

    def training(n_items, d, batch_size, n_steps, **settings):
        X, y = rng.normal(size=(500, n_items, d)), rng.integers(0, 3, (500, n_items)).astype(float)
        qid = np.repeat(np.arange(500), n_items)

        def fit():
            ranker = SenSTIRRanker(
                np.eye(d)[:1],
                rho=0.1,
                batch_size=batch_size,
                max_iter=n_steps,
                fair_start=0.0,
                random_state=0,
                **settings,
            )
            return ranker.fit(X.reshape(-1, d), y.ravel(), qid=qid).coef_

        return fit

    compare("control: arithmetic alone", control)
    compare("200 steps, batches of 1 x 10 x 2", training(10, 2, 1, 200))
    compare("200 steps, batches of 10 x 10 x 29", training(10, 29, 10, 200))
    compare("50 steps, batches of 100 x 20 x 29", training(20, 29, 100, 50))
    compare("50 steps, batches of 500 x 20 x 29", training(20, 29, 500, 50))
    compare("20 steps, batches of 500 x 10 x 29, gradient exact", training(10, 29, 500, 20, gradient="exact"))
    compare(
        "lbfgs, exact box, 500 queries of 10, 20 iterations",
        training(10, 29, 500, 20, solver="lbfgs", adversary="exact_box"),
    )

    scores, y = rng.normal(size=100_000), rng.integers(0, 3, 100_000).astype(float)
    qid, groups = np.repeat(np.arange(5000), 20), rng.random(100_000) < 0.5
    compare(
        "sample_rankings, 100,000 rows, 25 samples",
        lambda: sample_rankings(scores, qid=qid, n_samples=25, random_state=0),
    )
    compare(
        "stochastic_ndcg_score, 100,000 rows, 100 samples",
        lambda: stochastic_ndcg_score(y, scores, qid=qid, n_samples=100, random_state=0),
    )
    compare(
        "stochastic_ndcg_score, 100,000 rows in queries of 10, exact",
        lambda: stochastic_ndcg_score(y, scores, qid=np.repeat(np.arange(10_000), 10), n_samples="exact"),
    )
    compare(
        "group_exposure_disparity, 100,000 rows, 100 samples",
        lambda: group_exposure_disparity(y, scores, qid=qid, sensitive_features=groups, n_samples=100, random_state=0),
    )
    compare("ndcg_score, 100,000 rows", lambda: ndcg_score(y, scores, qid=qid))
    other = rng.normal(size=100_000)
    compare("kendall_tau_score, 100,000 rows", lambda: kendall_tau_score(scores, other, qid=qid))
    compare(
        "stochastic_ndcg_score, 100 rows, 100 samples",
        lambda: stochastic_ndcg_score(y[:100], scores[:100], qid=qid[:100], n_samples=100, random_state=0),
    )
    X = rng.normal(size=(10_000, 8))
    metric = SensitiveSubspaceMetric(directions=np.eye(8)[:1]).fit(X)
    few = np.repeat(np.arange(500), 20)
    compare(
        "nearest_queries, 500 queries of 20 x 8",
        lambda: nearest_queries(X, X, qid=few, qid_reference=few, metric=metric).distance,
    )
    table("Threads, elapsed time; results are the same to the bit", ["work", "1 thread", f"{n} threads", "ratio"], rows)


if __name__ == "__main__":
    main()
