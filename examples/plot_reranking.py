r"""
Re-ranking what was not trained fair
====================================

A ranker that is in use, and will not be trained again, can be re-ranked: its scores stay, and the list that is made of them
changes. What does each way of ``skfairrank.postprocessing`` buy, and at which price?

The task is hiring with a known truth (``make_hiring_ranking``): three marks are lowered for a group, the labels understate it
too, and every applicant has a *twin*, the same person in the other group. Two questions are asked of each list. *tau*: is it the
list of the twins? *Gap*: how far apart are the groups in mean exposure?
"""

# %%
# The ranker is least squares, which knows nothing of groups. All re-rankers are put around it as it is fitted.
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from skfairrank import SensitiveSubspaceMetric
from skfairrank.datasets import make_hiring_ranking
from skfairrank.inspection import TradeoffDisplay
from skfairrank.metrics import group_exposure_difference, kendall_tau_score, ndcg_score
from skfairrank.policies import Deterministic
from skfairrank.postprocessing import (
    DetConstSortRanker,
    ExposureLPRanker,
    FairScoreSmoother,
    FAStarRanker,
)

quick, full = (size in sys.argv for size in ("--quick", "--full"))
n_queries = 10 if quick else 600 if full else 100
task = make_hiring_ranking(2 * n_queries, random_state=0)
train, test = task.qid < n_queries, task.qid >= n_queries
group, qid = task.sensitive_features, task.qid
ranker = FrozenEstimator(LinearRegression().fit(task.data[train], task.target[train]))

# %%
# Scores are smoothed over the fair metric more and more; the share of the group that is asked for among the first ranks rises;
# the spread of exposure that is allowed falls.
metric = SensitiveSubspaceMetric(direction="difference")
strengths, spreads = (0.3, 1, 3, 10, 100, 1000), (0.2, 0.1, 0.05, 0.0)
systems = {("plain", ""): ranker}
systems |= {
    ("smoothed", f"{x:g}"): FairScoreSmoother(ranker, metric=metric, strength=x)
    for x in strengths
}
systems |= {
    ("FA*IR", f"{p:g}"): FAStarRanker(ranker, protected=1, p=p)
    for p in (0.3, 0.5, 0.7, 0.9)
}
systems |= {
    ("DetConstSort", f"{p:g}"): DetConstSortRanker(ranker, proportions={1: p, 0: 1 - p})
    for p in (0.3, 0.4, 0.5)
}
systems |= {
    ("exposure", f"{x:g}"): ExposureLPRanker(ranker, tolerance=x) for x in spreads
}


# %%
# Of the random rankings of ``ExposureLPRanker`` NDCG and gap are expectations under its policy, and tau is that of the expected
# exposures. Twins bring the label of the other group with them: that is what they are.
def judge(system):
    """NDCG by the labels, tau with the twins, gap in exposure, of the test queries."""
    known = {"qid": qid[test], "sensitive_features": group[test]}
    if system is ranker:
        s, s_twins = system.predict(task.data[test]), system.predict(task.twin[test])
    else:
        system.fit(
            task.data[train],
            task.target[train],
            qid=qid[train],
            sensitive_features=group[train],
        )
        s = system.predict(task.data[test], **known)
        s_twins = system.predict(
            task.twin[test], qid=qid[test], sensitive_features=1 - group[test]
        )
    policy = (
        system.policy(task.data[test], **known)
        if hasattr(system, "policy")
        else Deterministic()
    )
    return {
        "NDCG": np.nanmean(
            ndcg_score(task.target[test], s, qid=qid[test], policy=policy, reduce=None)
        ),
        "NDCG by merit": np.nanmean(
            ndcg_score(task.merit[test], s, qid=qid[test], policy=policy, reduce=None)
        ),
        "tau": kendall_tau_score(s, s_twins, qid=qid[test]),
        "gap": group_exposure_difference(s, policy=policy, **known),
    }


results = pd.DataFrame({names: judge(system) for names, system in systems.items()}).T
print(results.round(3).to_string())

# %%
# Smoothing is the only one that reads no group label when it ranks. It saturates: from a strength on, scores still come nearer
# to each other, and their order hardly moves. FA*IR asks for no more than a statistical test can tell from chance, which in a
# list of ten is little: a share of one half changes hardly anything. DetConstSort asks for the share itself, in both groups.
#
# With equal exposure of the groups (0) the lists of the twins are the same: tau is 1. That is so because the scores of twins
# differ here by one constant, the same for all, and whatever is added to the scores of a group changes nothing under that
# constraint. Where the group moves one person by more than another, equal exposure of the groups is no individual fairness.
figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for ax, column, label in (
    (axes[0], "tau", "Kendall's tau with the twins"),
    (axes[1], "gap", "gap in exposure"),
):
    TradeoffDisplay.from_predictions(
        results["NDCG"],
        results[column],
        labels=results.index.get_level_values(0),
        annotations=results.index.get_level_values(1),
        xlabel="NDCG by the labels",
        ylabel=label,
        ax=ax,
        legend=False,
    )
figure.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=5,
    frameon=False,
)
plt.show()
