"""The search for the nearest other query, against a double loop over POT's solver."""

from __future__ import annotations

import time

from _tools import arguments, header, side_by_side, table, time_text

# isort: split
import numpy as np
from _references import nearest_by_double_loop

from skfairrank import SensitiveSubspaceMetric
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


def main():
    quick = arguments(__doc__).quick
    print(header())
    search(quick)


if __name__ == "__main__":
    main()
