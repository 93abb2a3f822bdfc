"""The fair distance of queries: the search for the nearest other one, all pairs, and single plans, against POT's solver."""

from __future__ import annotations

import time
from functools import partial

from _tools import arguments, header, side_by_side, table, time_text

# isort: split
import numpy as np
from _references import nearest_by_double_loop

from skfairrank import SensitiveSubspaceMetric
from skfairrank._kernels.plans import pairwise_distances
from skfairrank.fair_metrics._distances import large_distance, transposed
from skfairrank.inspection import nearest_queries


def search(quick):
    rows = []
    for n_queries, n_items, d in ((200, 10, 8), (200, 20, 29), (1000, 10, 8)):
        rng = np.random.default_rng(0)
        X, qid = rng.normal(size=(n_queries * n_items, d)), np.repeat(np.arange(n_queries), n_items)
        metric = SensitiveSubspaceMetric(directions=np.eye(d)[:1]).fit(X)
        which = np.arange(2 if quick else 5)  # of the double loop; its time grows in proportion
        Z = X.copy()
        Z[:, 0] = 0.0
        nearest_by_double_loop(Z.reshape(n_queries, n_items, d)[:3], [0])
        start = time.process_time()
        expected = nearest_by_double_loop(Z.reshape(n_queries, n_items, d), which)
        loop = (time.process_time() - start) / len(which) * n_queries

        def nearest(X=X, qid=qid, metric=metric):
            return nearest_queries(X, X, qid=qid, qid_reference=qid, metric=metric)

        if not np.allclose(nearest().distance[which], expected):
            raise AssertionError("The search and the double loop found different distances.")
        ours = float(np.median(side_by_side({"ours": nearest}, rounds=3)["ours"]))
        pairs = n_queries * (n_queries - 1)
        rows.append(
            [f"{n_queries} x {n_items} x {d}", time_text(loop), time_text(ours), loop / ours, time_text(ours / pairs)]
        )
    table(
        "Nearest other query of every query (queries x items x features), CPU time; the loop's from its first queries",
        ["data", "double loop over POT", "nearest_queries", "ratio", "a pair"],
        rows,
    )


def plans(quick):
    """From which size on `query_distances` should ask POT: `_LARGE` and `_LARGE_PAIRING` of fair_metrics/_distances.py."""
    rows, sizes = (
        [],
        [(10, 10), (10, 9), (30, 29), (60, 40), (60, 59), (100, 70), (200, 100), (200, 200), (200, 199), (300, 11)],
    )
    for n, m in sizes if quick else [*sizes, (400, 399), (1000, 1000)]:
        rng = np.random.default_rng(0)
        Z, other, every = rng.normal(size=(n, 10)), rng.normal(size=(m, 10)), np.ones((1, 1), bool)
        offsets, offsets_other, out = np.array([0, n]), np.array([0, m]), np.empty((1, 1))
        blocks = transposed(other, offsets_other)
        s = side_by_side(
            {
                "shortest paths": partial(pairwise_distances, 0, 1, Z, offsets, blocks, offsets_other, every, out),
                "POT": partial(large_distance, Z, other),
            },
            rounds=3,
        )
        paths, simplex = np.median(s["shortest paths"]), np.median(s["POT"])
        rows.append([f"{n} x {m}", time_text(paths), time_text(simplex), paths / simplex])
    table(
        "One plan between two queries (items x items, 10 features), CPU time",
        ["items", "shortest paths", "POT", "ratio"],
        rows,
    )


def pairs(quick):
    rows = []
    for n_queries, low, high, d in ((60, 10, 10, 8), (60, 5, 14, 8), (60, 20, 20, 29), (6, 300, 400, 29)):
        rng = np.random.default_rng(0)
        sizes = rng.integers(low, high + 1, n_queries)
        X, qid = rng.normal(size=(sizes.sum(), d)), np.repeat(np.arange(n_queries), sizes)
        metric = SensitiveSubspaceMetric(directions=np.eye(d)[:1]).fit(X)
        ends = np.cumsum(sizes)[:-1]

        def loop(X=X, metric=metric, ends=ends):
            blocks = np.split(metric.transform(X), ends)
            return [[large_distance(a, b) for b in blocks] for a in blocks]

        s = side_by_side({"ours": partial(metric.query_distances, X, X, qid_X=qid, qid_Y=qid), "loop": loop}, rounds=3)
        ours, theirs = np.median(s["ours"]), np.median(s["loop"])
        rows.append([f"{n_queries} x {low} to {high} x {d}", time_text(theirs), time_text(ours), theirs / ours])
    table(
        "Distances of all pairs of queries (queries x items x features), CPU time",
        ["data", "double loop over POT", "query_distances", "ratio"],
        rows,
    )


def main():
    quick = arguments(__doc__).quick
    print(header())
    search(quick)
    pairs(quick)
    plans(quick)


if __name__ == "__main__":
    main()
