r"""
How to make boosted trees individually fair
===========================================

A boosted ranker looks at the columns of sex where these help it to predict who pays back. Each applicant has a twin of the other
sex, made by a function that exchanges the two columns. ``SenSTIRBoostingRanker`` trains LightGBM's trees on NDCG minus
:math:`\rho` times the squared difference of scores between applicants and their twins.

The trivial rules beside it: leave the columns out, and do nothing. Sex is a column here, so leaving it out is a good rule.
(:ref:`Where the attribute is no column <sphx_glr_auto_examples_plot_boosting_no_column.py>` there is no such rule.) The data are
German Credit, in the folder that the environment variable ``SKFAIRRANK_DATA`` names, or from the web. LightGBM must be there
(``pip install lightgbm``).
"""

# %%
# The twins, the model, and the rankers to compare.
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMRanker
from paper import german_credit_people
from sklearn.base import clone

from skfairrank import QueryRanker, SenSTIRBoostingRanker
from skfairrank.datasets import flip_columns, make_credit_ranking
from skfairrank.metrics import kendall_tau_score, ndcg_score

quick, full = (size in sys.argv for size in ("--quick", "--full"))
n_splits, n_trees = (2, 10) if quick else (10, 100) if full else (3, 100)
rhos = (0.003, 0.01, 0.03)
SEX = (3, 4)


def flip_sex(X):
    return flip_columns(X, SEX)


model = LGBMRanker(n_estimators=n_trees, num_leaves=7, random_state=0, n_jobs=1, verbose=-1)
fair = SenSTIRBoostingRanker(model, hypotheticals=flip_sex, random_state=0)
rankers = {
    "LGBMRanker": (QueryRanker(model), ()),
    "LGBMRanker without sex": (QueryRanker(model), SEX),
    **{f"rho {rho:g}": (clone(fair).set_params(rho=rho), ()) for rho in rhos},
}

# %%
# Every ranker on every split: NDCG of the list sorted by score, and how much of its order stays when everybody's sex is flipped.
people, found = german_credit_people(), []
for split in range(n_splits):
    task = make_credit_ranking(people, random_state=split)
    for name, (ranker, dropped) in rankers.items():
        X, X_test, twins = (
            np.delete(rows, dropped, axis=1) for rows in (task.X_train, task.X_test, flip_sex(task.X_test))
        )
        ranker.fit(X, task.y_train.astype(int), qid=task.qid_train)
        scores = ranker.predict(X_test)
        ndcg = ndcg_score(task.y_test, scores, qid=task.qid_test)
        found.append((name, ndcg, kendall_tau_score(scores, ranker.predict(twins), qid=task.qid_test)))
runs = pd.DataFrame(found, columns=["ranker", "NDCG", "tau"]).groupby("ranker", sort=False)
means, errors = runs.mean(), runs.sem()
print(pd.concat([means, errors.add_suffix(" ±")], axis=1).round(3).to_string())

# %%
# Lines: the fair ranker along rho. Bands: the two trivial rules, a standard error wide each way.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
fair_names = [f"rho {rho:g}" for rho in rhos]
for ax, measure, label in zip(axes, ("NDCG", "tau"), ("NDCG of the sorted list", "tau with the ranking of the twins")):
    ax.errorbar(
        rhos, means.loc[fair_names, measure], errors.loc[fair_names, measure], marker="o", capsize=3, label="SenSTIR"
    )
    for name, color in (("LGBMRanker", "#D55E00"), ("LGBMRanker without sex", "#009E73")):
        mean, error = means.loc[name, measure], errors.loc[name, measure]
        ax.axhline(mean, color=color, linestyle="--", label=name)
        ax.axhspan(mean - error, mean + error, color=color, alpha=0.12, linewidth=0)
    ax.set(xscale="log", xlabel=r"$\rho$", ylabel=label)
    ax.set_xticks(rhos, [f"{rho:g}" for rho in rhos])
    ax.minorticks_off()
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
plt.show()

# %%
# The fitted model is LightGBM's own, with the user's parameters; it is saved, explained and inspected as ever.
fitted = rankers[fair_names[-1]][0]
print(type(fitted.estimator_).__name__, fitted.estimator_.booster_.num_trees(), "trees")
history = pd.DataFrame(fitted.history_).iloc[:: max(1, n_trees // 5)]
print(history[["utility", "regularizer"]].round(4).to_string())
