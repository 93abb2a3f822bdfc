r"""
How decided should a policy be? Choosing a temperature
======================================================

Where rankings are drawn at random by the scores, the size of the scores matters: twice as large, and every draw is closer to the
sorted list. A boosted ranker's scores have no scale of their own. They grow with the learning rate and the number of trees, and
so the policy that draws by them is soft or decided by accident. Softness is not fairness: multiply all scores by .1, and the
groups share exposure more evenly, while not one sorted list has changed. A regulariser that makes weights small does that on the
side. So compare policies where they are as decided, or compare the sorted lists.

``TemperatureRanker`` divides the scores of any ranker by the temperature that was asked for in words: the softest policy that
loses at most so much NDCG, or the most decided one whose disparity of group exposure is at most so much. It chooses on held-out
queries. No sorted list changes.

The task is the paper's synthetic one: the relevance is the sum of two features, and of a minority the second is lost and reads 0.
LightGBM must be installed (``pip install lightgbm``).
"""

# %%
# The same trees at three learning rates, by themselves and at the temperature at which their policy loses .02 of NDCG.
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMRanker

from skfairrank import PlackettLuceRanker, QueryRanker, SenSTIRRanker, TemperatureRanker
from skfairrank.datasets import make_biased_ranking
from skfairrank.inspection import TemperatureDisplay
from skfairrank.metrics import (
    group_exposure_disparity,
    ndcg_score,
    stochastic_ndcg_score,
)
from skfairrank.model_selection import QueryKFold

n_queries, n_trees = (40, 10) if "--quick" in sys.argv else (300, 50)
train, test = (
    make_biased_ranking(n_queries=n_queries, random_state=seed) for seed in (0, 1)
)
y = np.round(train.target).astype(int)
given = {"qid": train.qid, "sensitive_features": train.sensitive_features}
folds = QueryKFold(3)


def boosted(learning_rate):
    return LGBMRanker(
        n_estimators=n_trees,
        learning_rate=learning_rate,
        num_leaves=7,
        random_state=0,
        n_jobs=1,
        verbose=-1,
    )


def judged(ranker):
    """On test queries: NDCG of lists and policy, and the policy's disparity."""
    scores, groups = ranker.predict(test.data), test.sensitive_features
    return {
        "sorted NDCG": ndcg_score(test.target, scores, qid=test.qid),
        "policy's NDCG": stochastic_ndcg_score(
            test.target, scores, qid=test.qid, n_samples="exact"
        ),
        "policy's disparity": group_exposure_disparity(
            test.target,
            scores,
            qid=test.qid,
            sensitive_features=groups,
            n_samples="exact",
        ),
    }


rows = {}
for rate in (0.03, 0.1, 0.3):
    rows["as it is", rate] = judged(
        QueryRanker(boosted(rate)).fit(train.data, y, **given)
    )
    cooled = TemperatureRanker(boosted(rate), max_ndcg_loss=0.02, cv=folds).fit(
        train.data, y, **given
    )
    rows["loss of .02", rate] = {**judged(cooled), "temperature": cooled.temperature_}
print(pd.DataFrame(rows).T.sort_index(kind="stable").round(4).to_string(na_rep=""))

# %%
# At all temperatures: LightGBM, the plain linear ranker, and SenSTIR, which is told how far the groups lie apart. All are asked
# for the most decided policy whose disparity is at most .006.
bound = 0.006
rankers = {
    "LightGBM": boosted(0.1),
    "linear": PlackettLuceRanker(solver="lbfgs", alpha=1e-4),
    "SenSTIR": SenSTIRRanker(adversary="gaps", rho=0.0003, solver="lbfgs", alpha=1e-4),
}
rankers = {
    name: TemperatureRanker(ranker, max_disparity=bound, cv=folds)
    for name, ranker in rankers.items()
}
rows = {
    name: judged(ranker.fit(train.data, y, **given)) for name, ranker in rankers.items()
}
print("\n" + pd.DataFrame(rows).T.round(4).to_string())

# %%
# Right: the curves of LightGBM on held-out queries, NDCG above and the disparity below. Left: one over the other, for all
# rankers; the dots are the chosen policies. One ranker is better than another at every temperature where its curve lies below:
# disparities of two policies mean something beside each other where their NDCGs are equal, or at a stated temperature.
figure, axes = plt.subplot_mosaic(
    [["all", "ndcg"], ["all", "disparity"]], figsize=(11, 4.8), layout="constrained"
)
for (name, ranker), color in zip(rankers.items(), ("#0072B2", "#009E73", "#CC79A7")):
    curve = ranker.curve_
    chosen = curve[curve["temperature"] == ranker.temperature_]
    axes["all"].plot(
        curve["ndcg"], curve["disparity"], color=color, marker=".", label=name
    )
    axes["all"].plot(
        chosen["ndcg"],
        chosen["disparity"],
        color=color,
        marker="o",
        markersize=9,
        linestyle="",
    )
axes["all"].axhline(bound, color="#D55E00", linestyle="--")
axes["all"].set(xlabel="expected NDCG", ylabel="disparity of exposure")
axes["all"].grid(alpha=0.25)
display = TemperatureDisplay.from_estimator(
    rankers["LightGBM"], ax=[axes["ndcg"], axes["disparity"]]
)
display.legend_.remove()
handles, labels = axes["all"].get_legend_handles_labels()
more, names = display.ax_.get_legend_handles_labels()
figure.legend(
    [*handles, *more[1:]],
    [*labels, *names[1:]],
    loc="outside lower center",
    ncols=6,
    frameon=False,
)
plt.show()
