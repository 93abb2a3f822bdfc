"""Shared starts against one start for every item: the same weights, up to the noise of training.

The paper's synthetic task (100 queries of 10 items, settings of its Table 2) is trained over many seeds both ways; the data
stay the same. The last column is the difference of the means in its standard errors: a change of the method would show as a
large number.
"""

from __future__ import annotations

from _tools import arguments, header, table

# isort: split
import numpy as np
from sklearn.linear_model import LogisticRegression

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.adversaries import Ascent
from skfairrank.datasets import make_biased_ranking

SETTINGS = {
    "learning_rate": 0.04, "max_iter": 2000, "batch_size": 1, "n_samples": 10, "fair_start": 0.0,
}  # fmt: skip
ASCENT = {
    "epsilon": 0.001, "subspace_step_size": 0.001, "subspace_n_steps": 20, "subspace_init": 0.05, "full_step_size": 0.001,
    "full_n_steps": 20, "dual_step": "paper",
}  # fmt: skip


def weights(task, rho, n_starts, n_seeds):
    metric = SensitiveSubspaceMetric(classifier=LogisticRegression(C=100), scale="raw")
    adversary = Ascent(subspace_n_starts=n_starts, **ASCENT)
    return np.array(
        [
            SenSTIRRanker(metric, rho=rho, adversary=adversary, random_state=seed, **SETTINGS)
            .fit(task.data, task.target, qid=task.qid, sensitive_features=task.sensitive_features)
            .coef_
            for seed in range(n_seeds)
        ]
    )


def main():
    quick = arguments(__doc__).quick
    n_seeds = 8 if quick else 20
    print(header())
    task = make_biased_ranking(n_queries=100, random_state=0)
    rows = []
    for rho in (0.0003, 0.001):
        each = weights(task, rho, None, n_seeds)
        for n_starts in (None, 1, 2, 4):
            found = each if n_starts is None else weights(task, rho, n_starts, n_seeds)
            error = np.sqrt((found.var(axis=0, ddof=1) + each.var(axis=0, ddof=1)) / n_seeds)
            apart = (found.mean(axis=0) - each.mean(axis=0)) / error
            rows.append(
                [
                    f"rho {rho:g}, " + ("one for each item" if n_starts is None else f"{n_starts} shared"),
                    *(f"{m:.3f} ± {s:.3f}" for m, s in zip(found.mean(axis=0), found.std(axis=0, ddof=1))),
                    "-" if n_starts is None else " and ".join(f"{z:+.1f}" for z in apart),
                ]
            )
    table(
        f"Weights of the synthetic task over {n_seeds} seeds, mean and spread",
        ["starts", "relevant feature", "biased feature", "apart, in standard errors"],
        rows,
    )


if __name__ == "__main__":
    main()
