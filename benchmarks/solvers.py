"""The exact solver against sampled steps, and the whole trade-off along rho, on German Credit."""

from __future__ import annotations

import time
import warnings

from _tools import arguments, german, header, number, table, time_text

from skfairrank.adversaries import ExactBox

# isort: split
import numpy as np

from skfairrank import PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker, senstir_path
from skfairrank.inspection import invariance_regularizer
from skfairrank.metrics import stochastic_ndcg_score

BOX = ExactBox(0.2, 0.02)


def objective(ranker, X, y, qid, rho):
    """Exact mean utility of the training queries less rho R, R of the box."""
    utility = stochastic_ndcg_score(y, ranker.predict(X), qid=qid, n_samples="exact", replace_undefined_by=0.0)
    if rho == 0:
        return utility
    return utility - rho * invariance_regularizer(ranker, X, qid=qid, adversary=BOX)


def clocked(function):
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


def main():
    quick = arguments(__doc__).quick
    warnings.simplefilter("ignore")
    print(header())
    X, y, qid, what = german()
    metric = SensitiveSubspaceMetric(sensitive_columns=[0], scale="raw")
    box = {"metric": metric, "adversary": BOX}
    n_steps, n_rhos = (4000, 10) if quick else (20_000, 40)
    sampled = {"learning_rate": 0.001, "max_iter": n_steps, "batch_size": 10, "n_samples": 25, "random_state": 0}
    exact = {"solver": "lbfgs", "max_iter": 1000}
    for settings in ({**sampled, "max_iter": 5}, {**exact, "max_iter": 2}):
        SenSTIRRanker(rho=0.1, **box, **settings).fit(X, y, qid=qid)
        PlackettLuceRanker(**settings).fit(X, y, qid=qid)

    rows = []
    for rho in (0.0, 0.01, 0.1, 0.3, 1.0):
        alpha = {"alpha": 1e-4} if rho == 0 else {}  # without any penalty scores of separable data grow without bound
        ours, seconds = clocked(
            lambda rho=rho, alpha=alpha: SenSTIRRanker(rho=rho, **box, **exact, **alpha).fit(X, y, qid=qid)
        )
        adam, adam_seconds = clocked(
            lambda rho=rho, alpha=alpha: SenSTIRRanker(rho=rho, **box, **sampled, **alpha).fit(X, y, qid=qid)
        )
        rows.append(
            [
                f"{rho:g}" + (" (alpha 0.0001)" if rho == 0 else ""),
                time_text(seconds),
                str(ours.n_iter_),
                time_text(adam_seconds),
                f"{objective(ours, X, y, qid, rho):.5f}",
                f"{objective(adam, X, y, qid, rho):.5f}",
                f"{np.sum(ours.coef_ == 0)}",
            ]
        )
    table(
        f'solver="lbfgs" against {n_steps:,} sampled Adam steps, adversary="exact_box", {what} ({len(np.unique(qid))} queries, '
        f"{X.shape[1]} features), CPU time",
        ["rho", "lbfgs", "iterations", f"{n_steps:,} steps", "objective, lbfgs", "objective, steps", "zero weights"],
        rows,
    )

    path, seconds = clocked(lambda: senstir_path(X, y, qid=qid, n_rhos=n_rhos, **box))
    table(
        f"The trade-off: {n_rhos} values of rho, {what}, CPU time",
        ["", "seconds", "iterations", "rho from", "to", "utility from", "to"],
        [
            [
                "senstir_path",
                time_text(seconds),
                str(int(path.n_iters.sum())),
                number(path.rhos[0]),
                number(path.rhos[-1]),
                f"{path.utilities[0]:.4f}",
                f"{path.utilities[-1]:.4f}",
            ]
        ],
    )


if __name__ == "__main__":
    main()
