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
# The very queries on which the authors' program was run, where their file is at hand (in the folder that the environment
# variable ``SKFAIRRANK_DATA`` names), else new ones. The hyperparameters are those of Table 2: 2,000 steps of one query each,
# 10 sampled rankings a step, and an attack of 20 + 20 steps.
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skfairrank import SenSTIRRanker
from skfairrank.experiments import RECORDED, recorded_experiment, synthetic_experiment
from skfairrank.inspection import ScoreContourDisplay

quick, full = (size in sys.argv for size in ("--quick", "--full"))
n_runs = 2 if quick else 20 if full else 5

try:
    experiment = recorded_experiment("senstir_synthetic")
except FileNotFoundError as absent:
    experiment = synthetic_experiment()
    print(f"{absent}\nThese are other queries; recorded numbers need not match.")
experiment = experiment.shortened(20 if quick else 1)
train = experiment.train

# %%
# Three values of :math:`\rho`, several runs of each. Sampling makes the weights differ from run to run.
RHOS = {"Baseline": 0.0, "SenSTIR, rho 0.0003": 0.0003, "SenSTIR, rho 0.001": 0.001}
rankers = {
    name: [
        experiment.fit(
            SenSTIRRanker(experiment.metric, rho=rho, random_state=seed, **experiment.training, **experiment.attack)
        )
        for seed in range(n_runs)
    ]
    for name, rho in RHOS.items()
}
metric = rankers["SenSTIR, rho 0.001"][0].metric_
print("Sensitive direction:", np.round(metric.directions_[0], 2))

# %%
# The stars, by the rule of the authors' notebook: the most relevant minority item whose first feature is below 1.6, and the
# first majority item whose second feature is above 2.9 and the first one similar.
minority = np.flatnonzero((train.X[:, 1] == 0) & (train.X[:, 0] < 1.6))
blue = minority[np.argmax(train.y[minority])]
black = np.flatnonzero((train.X[:, 1] > 2.9) & (train.X[:, 0] > 1.2) & (train.X[:, 0] < 1.7))[0]
(distance,) = metric.pair_distance([[train.X[black], train.X[blue]]])
print(f"Stars: relevance {train.y[black]:.2f} and {train.y[blue]:.2f}, fair distance {distance:.2f},", end=" ")
print(f"plain distance {np.linalg.norm(train.X[black] - train.X[blue]):.2f}")

# %%
# Weights, means of the runs, beside those that the authors' program learned. The last columns belong to the first run: the
# scores of the stars, and how far apart these are in standard deviations of all scores.
rows = {}
for name, runs in rankers.items():
    weights, scores = np.array([ranker.coef_ for ranker in runs]), runs[0].predict(train.X)
    recorded = RECORDED["senstir_synthetic"][name].coef
    rows[name] = {
        "w1": weights[:, 0].mean(),
        "w2": weights[:, 1].mean(),
        "w2/w1": np.mean(weights[:, 1] / weights[:, 0]),
        "authors' w1": recorded[0],
        "authors' w2": recorded[1],
        "authors' w2/w1": recorded[1] / recorded[0],
        "black": scores[black],
        "blue": scores[blue],
        "apart": (scores[black] - scores[blue]) / scores.std(),
    }
print(pd.DataFrame(rows).T.round(2).to_string())

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
plt.show()

# %%
# As in the paper: without the regulariser the black star's score is far above the blue one's; with :math:`\rho = .001` the
# two are nearly equal.
