r"""
Figure 1: what the regulariser does to a score function
=======================================================

The paper's synthetic task. Each item has two features :math:`z_1, z_2`, uniform on [0, 3], and the relevance
:math:`z_1 + z_2`, clipped at 5. Of a minority, a fifth of the items, the second feature is lost: it shows 0. A ranker that
uses that feature is unfair, since it underrates the minority.

The fair metric ignores the direction in which a logistic regression tells the two groups apart, which is nearly the second
feature. As :math:`\rho` grows, the contours of the score turn vertical: the score no longer depends on what is lost. The
two stars are nearly equally relevant and close in the fair metric; the blue one belongs to the minority.

Everything here has the paper's size by default; ``--full`` repeats the training 20 times instead of 5.
"""

# %%
# The queries, and the hyperparameters of Table 2 (they stand in ``_common.py``, next to this script): 2,000 steps of one
# query each, 10 sampled rankings a step, and an attack of 20 + 20 steps.
import matplotlib.pyplot as plt
import numpy as np
from _common import RECORDED, SYNTHETIC_ATTACK, SYNTHETIC_TRAINING, options, save, synthetic_task, table
from sklearn.frozen import FrozenEstimator

from skfairrank import SenSTIRRanker
from skfairrank.inspection import ScoreContourDisplay

given = options(__doc__)
training = {**SYNTHETIC_TRAINING, "max_iter": 100} if given.quick else SYNTHETIC_TRAINING
n_runs = 2 if given.quick else 20 if given.full else 5

task = synthetic_task()
train = task.train
print("Sensitive direction:", np.round(task.metric.directions_[0], 2))

# %%
# Three values of :math:`\rho`, several runs of each. Sampling makes the weights differ from run to run.
RHOS = {"Baseline": 0.0, "SenSTIR, rho 0.0003": 0.0003, "SenSTIR, rho 0.001": 0.001}
rankers = {
    name: [
        SenSTIRRanker(FrozenEstimator(task.metric), rho=rho, random_state=seed, **training, **SYNTHETIC_ATTACK).fit(
            train.X, train.y, qid=train.qid
        )
        for seed in range(n_runs)
    ]
    for name, rho in RHOS.items()
}

# %%
# The stars, by the rule of the authors' notebook: the most relevant minority item whose first feature is below 1.6, and the
# first majority item whose second feature is above 2.9 and the first one similar.
minority = np.flatnonzero((train.X[:, 1] == 0) & (train.X[:, 0] < 1.6))
blue = minority[np.argmax(train.y[minority])]
black = np.flatnonzero((train.X[:, 1] > 2.9) & (train.X[:, 0] > 1.2) & (train.X[:, 0] < 1.7))[0]
(distance,) = task.metric.pair_distance([[train.X[black], train.X[blue]]])
print(f"Stars: relevance {train.y[black]:.2f} and {train.y[blue]:.2f}, fair distance {distance:.2f},", end=" ")
print(f"plain distance {np.linalg.norm(train.X[black] - train.X[blue]):.2f}")

# %%
# Weights beside those that the authors' program learned. Two of the last three columns belong to the first run: the scores
# of the stars, and how far apart these are in standard deviations of all scores.
rows = []
for name, runs in rankers.items():
    weights = np.array([ranker.coef_ for ranker in runs])
    scores = runs[0].predict(train.X)
    rows.append(
        (
            name,
            ", ".join(f"{m:.2f} ±{s:.2f}" for m, s in zip(weights.mean(axis=0), weights.std(axis=0, ddof=1))),
            ", ".join(f"{w:.2f}" for w in RECORDED[name].coef),
            f"{np.mean(weights[:, 1] / weights[:, 0]):.2f}",
            f"{RECORDED[name].coef[1] / RECORDED[name].coef[0]:.2f}",
            f"{scores[black]:.1f}, {scores[blue]:.1f}",
            f"{(scores[black] - scores[blue]) / scores.std():.2f}",
        )
    )
header = (f"{n_runs} runs", "weights (± deviation)", "authors'", "w2/w1", "authors'", "black, blue", "apart")
print(table(header, rows))

# %%
# The figure. Colours of the contours are those of the paper: redder is a higher score.
shown = np.r_[np.setdiff1d(np.arange(300), [black, blue]), black, blue]  # of 1,000 items; more would hide the contours
figure, axes = plt.subplots(1, 3, figsize=(10, 4.4), layout="constrained", sharex=True, sharey=True)
for ax, (name, rho) in zip(axes, RHOS.items()):
    display = ScoreContourDisplay.from_estimator(
        rankers[name][0],
        train.X[shown],
        train.y[shown],
        pair=(len(shown) - 2, len(shown) - 1),
        pair_labels=("majority item", "minority item, about as relevant"),
        colorbar=False,
        legend=False,
        ax=ax,
    )
    ax.set_title(rf"{name.partition(',')[0]}, $\rho$ = {rho:g}")
    ax.set(xlabel="feature $z_1$", ylabel="feature $z_2$ (0 for the minority)" if ax is axes[0] else "")
figure.colorbar(display.points_, ax=axes, label="relevance of the items", pad=0.01)
figure.suptitle("Contours of the score: redder is higher")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
save(figure, given)

# %%
# As in the paper: without the regulariser the black star's score is far above the blue one's; with :math:`\rho = .001` the
# two are nearly equal.
