r"""
What no line can learn, learned and kept fair
=============================================

Here relevance goes with the sign of :math:`x_0 x_1`, with :math:`x_2`, and, unjustly, with a group that :math:`x_3` gives away.
A line cannot follow the sign of a product, whatever its weights. A network learns it, and with it the group. SenSTIR keeps the
network from using the group.
"""

# %%
# Tau is between the sorted list and the list of the same items after :math:`x_3`, and with it the group, has changed its sign.
import sys

import matplotlib.pyplot as plt
import numpy as np

from skfairrank import SenSTIRRanker
from skfairrank.inspection import TradeoffDisplay
from skfairrank.metrics import kendall_tau_score, ndcg_score
from skfairrank.scores import MLPScore


def interaction_task(n_queries, seed, n_items=10):
    rng = np.random.default_rng(seed)
    n = n_queries * n_items
    X, group = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    X[:, 3] = 2 * group - 1 + 0.3 * rng.normal(size=n)
    y = np.clip(
        np.round(1.5 + np.sign(X[:, 0] * X[:, 1]) + 0.5 * X[:, 2] + group - 0.5), 0, 4
    )
    return X, y, np.repeat(np.arange(n_queries), n_items), group


quick = "--quick" in sys.argv
X, y, qid, group = interaction_task(20 if quick else 150, seed=0)
X_test, y_test, qid_test, _ = interaction_task(20 if quick else 200, seed=1)
flipped = X_test * [1, 1, 1, -1]
settings = {"max_iter": 20 if quick else 500, "learning_rate": 0.02, "random_state": 0}
rhos = (0.0, 0.003, 0.03)
rankers, points = {}, {}
for name, score in (("line", "linear"), ("network", MLPScore((16,)))):
    for rho in rhos:
        ranker = SenSTIRRanker(rho=rho, score_function=score, **settings)
        rankers[name, rho] = ranker.fit(X, y, qid=qid, sensitive_features=group)
        s = ranker.predict(X_test)
        points[name, rho] = (
            ndcg_score(y_test, s, qid=qid_test),
            kendall_tau_score(s, ranker.predict(flipped), qid=qid_test),
        )
        print(
            f"{name:8s} rho {rho:<6g} "
            f"NDCG {points[name, rho][0]:.3f}  tau {points[name, rho][1]:.3f}"
        )

# %%
# Left and middle: scores of the network in the plane of :math:`x_0` and :math:`x_3`, at :math:`x_1 = 1` and :math:`x_2 = 0`.
# Without the regulariser scores rise from bottom to top, where the group lies; with it contours stand upright, and what is left
# is the sign of :math:`x_0 x_1`. Right: what that costs.
figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
side = np.linspace(-2.5, 2.5, 60)
x0, x3 = np.meshgrid(side, side)
plane = np.column_stack([x0.ravel(), np.ones(x0.size), np.zeros(x0.size), x3.ravel()])
for ax, rho in zip(axes[:2], (0.0, 0.03), strict=True):
    scores = rankers["network", rho].predict(plane)
    contours = ax.contourf(
        x0, x3, (scores - scores.mean()).reshape(x0.shape), levels=12, cmap="viridis"
    )
    ax.set(
        title=rf"network, $\rho$ = {rho:g}",
        xlabel="$x_0$",
        ylabel="$x_3$ (shows the group)",
    )
    figure.colorbar(contours, ax=ax, label="score, less its mean")
ndcg, tau = np.array(list(points.values())).T
TradeoffDisplay.from_predictions(
    ndcg,
    tau,
    labels=[name for name, _ in points],
    annotations=[rho for _, rho in points],
    xlabel="NDCG",
    ylabel=r"Kendall's $\tau$ with the flipped twin",
    legend=False,
    ax=axes[2],
)
axes[2].set_title(r"trade-off (numbers: $\rho$)")
figure.legend(
    *axes[2].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=2,
    frameon=False,
)
plt.show()
