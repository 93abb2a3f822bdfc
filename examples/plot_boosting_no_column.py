r"""
Trees that are fair where the group is no column
================================================

Openings with applicants: three marks measure one skill, each lower for a group by 1.5, 1.5 and .5. The labels, too, understate
the group. No column says who belongs to it, so there is none to leave out; the marks themselves give it away, and are what the
skill is read from. Here the truth is known: everybody's twin, with the marks of the other group, and the merit, which is what the
labels would be without their bias.

Two ways to tell trees what counts as the same person. *Twins*: rows that one has, ``fit(..., X_hypothetical=twins)``. *Steps*:
the group is known in training alone, and everybody is moved by the groups' difference of means, either way. The trivial rule
beside them leaves out the two marks that are lowered most. LightGBM must be installed (``pip install lightgbm``).
"""

# %%
# Rankers to compare, with what their ``fit`` needs besides.
import sys

import matplotlib.pyplot as plt
import pandas as pd
from lightgbm import LGBMRanker

from skfairrank import QueryRanker, SensitiveSubspaceMetric, SenSTIRBoostingRanker
from skfairrank.datasets import make_hiring_ranking
from skfairrank.hypotheticals import Hypotheticals
from skfairrank.inspection import TradeoffDisplay
from skfairrank.metrics import kendall_tau_score, ndcg_score

quick, full = (size in sys.argv for size in ("--quick", "--full"))
n_splits, n_queries, n_trees = (2, 60, 10) if quick else (10, 600, 200) if full else (3, 400, 100)
rhos = (0.003, 0.01, 0.03)
model = LGBMRanker(n_estimators=n_trees, num_leaves=15, random_state=0, n_jobs=1, verbose=-1)
metric = SensitiveSubspaceMetric(direction="difference")
steps = Hypotheticals(directions=True, steps=(-1.0, 1.0))


def systems(task, train):
    """(name, rho, ranker, columns that it sees, further arguments of fit)."""
    yield "LGBMRanker", "", QueryRanker(model), slice(None), {}
    yield "without marks 1 and 2", "", QueryRanker(model), slice(2, None), {}
    for rho in rhos:
        twins = SenSTIRBoostingRanker(model, rho=rho, random_state=0)
        yield "twins", f"{rho:g}", twins, slice(None), {"X_hypothetical": task.twin[train]}
        moved = SenSTIRBoostingRanker(model, metric=metric, hypotheticals=steps, rho=rho, random_state=0)
        yield "steps", f"{rho:g}", moved, slice(None), {"sensitive_features": task.sensitive_features[train]}


# %%
# Judged by the labels, which are all that is known elsewhere; by true merit; and by how much of the order stays when everybody is
# exchanged for their twin.
found = []
for split in range(n_splits):
    task = make_hiring_ranking(n_queries, random_state=split)
    train, test = task.qid < n_queries // 2, task.qid >= n_queries // 2
    for name, rho, ranker, columns, more in systems(task, train):
        ranker.fit(task.data[train][:, columns], task.target[train].astype(int), qid=task.qid[train], **more)
        scores, twins = (ranker.predict(rows[test][:, columns]) for rows in (task.data, task.twin))
        by_labels, by_merit = (
            ndcg_score(y[test], scores, qid=task.qid[test], replace_undefined_by=1.0) for y in (task.target, task.merit)
        )
        found.append((name, rho, by_labels, by_merit, kendall_tau_score(scores, twins, qid=task.qid[test])))
columns = ["ranker", "rho", "NDCG of the labels", "NDCG of true merit", "tau with the twins"]
runs = pd.DataFrame(found, columns=columns).groupby(["ranker", "rho"], sort=False)
means, errors = runs.mean(), runs.sem()
print(means.round(3).to_string())
print(f"standard errors up to {errors.to_numpy().max():.3f}")

# %%
# Left: what the labels say it costs. Right: what it really does. Up to some rho, rankings are fairer *and* nearer to the merit;
# numbers are values of rho.
means, errors = (
    means.sort_index(level="ranker", sort_remaining=False),
    errors.sort_index(level="ranker", sort_remaining=False),
)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for ax, measure in zip(axes, columns[2:4]):
    TradeoffDisplay.from_predictions(
        means[measure],
        means[columns[4]],
        xerr=errors[measure],
        yerr=errors[columns[4]],
        labels=means.index.get_level_values("ranker"),
        annotations=means.index.get_level_values("rho"),
        xlabel=measure,
        ylabel=columns[4],
        legend=False,
        ax=ax,
    )
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
plt.show()
