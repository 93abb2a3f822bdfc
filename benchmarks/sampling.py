"""`sample_rankings` against the Gumbel trick with NumPy's argsort."""

from __future__ import annotations

from functools import partial

from _tools import arguments, header, ratio, side_by_side, table, time_text

# isort: split
import numpy as np
from _references import gumbel_ranks

from skfairrank.plackett_luce import sample_rankings


def main():
    quick = arguments(__doc__).quick
    print(header())
    rows = []
    for title, sizes, n_samples in (
        ("1,000 queries of 10", np.full(1000, 10), 25),
        ("1,000 queries of 20", np.full(1000, 20), 25),
        ("200 queries of 100", np.full(200, 100), 25),
        ("5 queries of 1,000", np.full(5, 1000), 25),
        ("1,000 queries of 5 to 35", np.random.default_rng(0).integers(5, 36, 1000), 25),
        ("one list of 10", np.array([10]), 100),
    ):
        rng = np.random.default_rng(0)
        scores, qid = rng.normal(size=sizes.sum()), np.repeat(np.arange(len(sizes)), sizes)
        s = side_by_side(
            {
                "NumPy": partial(gumbel_ranks, scores, sizes, n_samples, rng),
                "ours": partial(sample_rankings, scores, qid=qid, n_samples=n_samples, random_state=rng),
            },
            rounds=3 if quick else 7,
        )
        each = time_text(np.median(s["ours"]) / (n_samples * len(scores)))
        rows.append(
            [title, str(n_samples), time_text(s["NumPy"]), time_text(s["ours"]), ratio(s["NumPy"], s["ours"]), each]
        )
    table(
        "Sampled rankings, CPU time",
        ["scores", "samples", "NumPy, Gumbel and argsort", "sample_rankings", "ratio", "an item"],
        rows,
    )


if __name__ == "__main__":
    main()
