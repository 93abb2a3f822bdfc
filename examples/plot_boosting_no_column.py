r"""
Trees that are fair where the group is no column
================================================

Openings with applicants: three marks measure one skill, each lower for a group by 1.5, 1.5 and .5. The labels, too, understate
the group. No column says who belongs to it, so there is none to leave out; the marks themselves give it away, and are what the
skill is read from. Here the truth is known: everybody's twin, with the marks of the other group, and the merit, which is what the
labels would be without their bias.

Three ways to tell trees what counts as the same person. *Twins*: rows that one has, ``fit(..., X_hypothetical=twins)``. *Steps*:
the group is known in training alone, and everybody is moved by the groups' difference of means, either way. *Gaps*: a split
counts less, the further the groups lie apart in its column (``GapBoostingRanker``). The trivial rule beside them leaves out the
two marks that are lowered most. LightGBM must be installed (``pip install lightgbm``).
"""

# %%
# Rankers to compare, with what their ``fit`` needs besides.
import sys

import matplotlib.pyplot as plt
import pandas as pd
from lightgbm import LGBMRanker
from sklearn.base import clone

from skfairrank import (
    GapBoostingRanker,
    QueryRanker,
    SensitiveSubspaceMetric,
    SenSTIRBoostingRanker,
)
from skfairrank.datasets import make_hiring_ranking
from skfairrank.hypotheticals import Hypotheticals
from skfairrank.inspection import TradeoffDisplay
from skfairrank.metrics import kendall_tau_score, ndcg_score

quick, full = (size in sys.argv for size in ("--quick", "--full"))
n_splits, n_queries, n_trees = (
    (2, 60, 10) if quick else (10, 600, 200) if full else (3, 400, 100)
)
rhos, strengths = (0.003, 0.01, 0.03), (1.0, 3.0, 10.0)
model = LGBMRanker(
    n_estimators=n_trees, num_leaves=15, random_state=0, n_jobs=1, verbose=-1
)
metric = SensitiveSubspaceMetric(direction="difference")
steps = Hypotheticals(directions=True, steps=(-1.0, 1.0))


def systems(task, train):
    """(name, rho or strength, ranker, columns that it sees, arguments of fit)."""
    every, twins = slice(None), {"X_hypothetical": task.twin[train]}
    groups = {"sensitive_features": task.sensitive_features[train]}
    yield "LGBMRanker", "", QueryRanker(model), every, {}
    yield "without marks 1 and 2", "", QueryRanker(model), slice(2, None), {}
    fair = SenSTIRBoostingRanker(model, random_state=0)
    moved = clone(fair).set_params(metric=metric, hypotheticals=steps)
    for rho in rhos:
        yield "twins", rho, clone(fair).set_params(rho=rho), every, twins
        yield "steps", rho, clone(moved).set_params(rho=rho), every, groups
    for strength in strengths:
        yield (
            "gaps",
            strength,
            GapBoostingRanker(model, strength=strength),
            every,
            groups,
        )


# %%
# Judged by the labels, which are all that is known elsewhere; by true merit; and by how much of the order stays when everybody is
# exchanged for their twin.
found = []
for split in range(n_splits):
    task = make_hiring_ranking(n_queries, random_state=split)
    train, test = task.qid < n_queries // 2, task.qid >= n_queries // 2
    y, known = task.target[train].astype(int), {"qid": task.qid[test]}
    for name, number, ranker, columns, more in systems(task, train):
        ranker.fit(task.data[train][:, columns], y, qid=task.qid[train], **more)
        s = ranker.predict(task.data[test][:, columns])
        s_twins = ranker.predict(task.twin[test][:, columns])
        by_labels, by_merit = (
            ndcg_score(relevance[test], s, replace_undefined_by=1.0, **known)
            for relevance in (task.target, task.merit)
        )
        tau = kendall_tau_score(s, s_twins, **known)
        found.append((name, number, by_labels, by_merit, tau))
LABELS, MERIT, TAU = "NDCG of the labels", "NDCG of true merit", "tau with the twins"
runs = pd.DataFrame(found, columns=["ranker", "number", LABELS, MERIT, TAU])
runs = runs.groupby(["ranker", "number"], sort=False)
means, errors = runs.mean(), runs.sem()
print(means.round(3).to_string())
print(f"standard errors up to {errors.to_numpy().max():.3f}")

# %%
# Left: what the labels say it costs. Right: what it really does. Up to some rho, rankings are fairer *and* nearer to the merit;
# numbers are values of rho, and strengths of the gaps.
order = {"level": "ranker", "sort_remaining": False}
means, errors = means.sort_index(**order), errors.sort_index(**order)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for ax, measure in zip(axes, (LABELS, MERIT)):
    TradeoffDisplay.from_predictions(
        means[measure],
        means[TAU],
        xerr=errors[measure],
        yerr=errors[TAU],
        labels=means.index.get_level_values("ranker"),
        annotations=means.index.get_level_values("number"),
        xlabel=measure,
        ylabel=TAU,
        legend=False,
        ax=ax,
    )
handles = axes[0].get_legend_handles_labels()
figure.legend(*handles, loc="outside lower center", ncols=5, frameon=False)
plt.show()
