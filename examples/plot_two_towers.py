r"""
Two towers: a score that is neither a line nor a network
========================================================

A recommender often scores a user and an item by :math:`\langle A u, B v \rangle`: two maps, one from the user's columns and
one from the item's, into a space of few dimensions. `FunctionScore` takes any such function of parameters and rows that is
written in ``autograd.numpy``. All of training works with it, and the adversary finds its own gradients.

Here a query is a user, and its rows are items. One of the item's columns shows the group of who made it, and the labels favour
one group.
"""

# %%
# Parameters are one flat vector. Where training starts is a function of a random generator and of the number of features: a
# product of two maps has a saddle at zero, so that it must start away from there.
import sys

import autograd.numpy as anp
import matplotlib.pyplot as plt
import numpy as np

from skfairrank import SenSTIRRanker
from skfairrank.inspection import TradeoffDisplay
from skfairrank.metrics import kendall_tau_score, ndcg_score
from skfairrank.scores import FunctionScore

N_USER, N_ITEM, N_DIMENSIONS = 3, 4, 2


def two_towers(theta, X):
    """<A u, B v>, and what an item is worth to everybody."""
    towers = theta[: (N_USER + N_ITEM) * N_DIMENSIONS].reshape(
        N_USER + N_ITEM, N_DIMENSIONS
    )
    user, item = X[:, :N_USER], X[:, N_USER:]
    meeting = anp.dot(user, towers[:N_USER]) * anp.dot(item, towers[N_USER:])
    return anp.sum(meeting, axis=1) + anp.dot(item, theta[-N_ITEM:])


def start(rng, n_features):
    return 0.3 * rng.normal(size=(N_USER + N_ITEM) * N_DIMENSIONS + N_ITEM)


def recommendations(n_users, seed, n_items=10):
    """Tastes meet properties; the last column shows the group that labels favour."""
    rng = np.random.default_rng(seed)
    n = n_users * n_items
    user, item = (
        np.repeat(rng.normal(size=(n_users, N_USER)), n_items, axis=0),
        rng.normal(size=(n, N_ITEM)),
    )
    group = rng.integers(0, 2, n)
    item[:, 3] = 2 * group - 1 + 0.3 * rng.normal(size=n)
    liking = (user * item[:, :3]).sum(axis=1) + 0.7 * group
    return (
        np.hstack([user, item]),
        np.digitize(liking, [-0.5, 1.0, 2.0]).astype(float),
        np.repeat(np.arange(n_users), n_items),
        group,
    )


# %%
# A line ranks all items alike for all users, because what it adds for a user is the same for each item. Tau is between the
# sorted list and the list of the same items after the column that shows the group has changed its sign.
quick = "--quick" in sys.argv
X, y, qid, group = recommendations(20 if quick else 150, seed=0)
X_test, y_test, qid_test, _ = recommendations(20 if quick else 200, seed=1)
flipped = X_test * np.r_[np.ones(N_USER + 3), -1]
settings = {"max_iter": 10 if quick else 250, "learning_rate": 0.02, "random_state": 0}
rhos, points = (0.0, 0.003, 0.01), {}
for name, score in (
    ("line", "linear"),
    ("two towers", FunctionScore(two_towers, start)),
):
    for rho in rhos:
        ranker = SenSTIRRanker(rho=rho, score_function=score, **settings)
        s = ranker.fit(X, y, qid=qid, sensitive_features=group).predict(X_test)
        points[name, rho] = (
            ndcg_score(y_test, s, qid=qid_test),
            kendall_tau_score(s, ranker.predict(flipped), qid=qid_test),
        )
        print(
            f"{name:11s} rho {rho:<6g} "
            f"NDCG {points[name, rho][0]:.3f}  tau {points[name, rho][1]:.3f}"
        )

# %%
# The towers rank far better than the line, with and without the regulariser.
figure, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
ndcg, tau = np.array(list(points.values())).T
TradeoffDisplay.from_predictions(
    ndcg,
    tau,
    labels=[name for name, _ in points],
    annotations=[rho for _, rho in points],
    xlabel="NDCG",
    ylabel=r"Kendall's $\tau$ with the flipped twin",
    legend=False,
    ax=ax,
)
ax.set_title(r"Users and items (numbers: $\rho$)")
figure.legend(
    *ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
)
plt.show()
