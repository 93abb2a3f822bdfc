"""
A first fair ranker: the list, and the list of everybody's twins
================================================================

Ten people apply for a job. Three marks measure one skill, and all three are lower for the members of a group than their skill
warrants. Now replace everybody by the *twin*: the same person in the other group. Does the list stay as it is? With a plain
ranker it does not. A ranker that is told of the groups in training gives nearly the same list.

The data are made, so that everybody's twin is known. With ``--output picture.png`` the script writes the picture.
"""

# %%
# Two rankers learn from past openings. The fair one is told who belongs to the group, and nothing else. It needs that in training
# only: to rank people it does not ask.
import sys

import matplotlib.pyplot as plt

from skfairrank import PlackettLuceRanker, SenSTIRRanker
from skfairrank.datasets import make_hiring_ranking
from skfairrank.metrics import kendall_tau_score

n_openings = 20 if "--quick" in sys.argv else 200
train, test = (
    make_hiring_ranking(n_openings, random_state=0),
    make_hiring_ranking(n_openings, random_state=1),
)
plain = PlackettLuceRanker(random_state=0).fit(train.data, train.target, qid=train.qid)
fair = SenSTIRRanker(adversary="gaps", random_state=0)
fair.fit(
    train.data, train.target, qid=train.qid, sensitive_features=train.sensitive_features
)

# %%
# Kendall's tau is 1 where no two people change places, 0 where as many do as do not.
rankers, taus = {"plain": plain, "fair": fair}, {}
for name, ranker in rankers.items():
    ndcg = ranker.score(test.data, test.target, qid=test.qid)
    taus[name] = kendall_tau_score(
        ranker.predict(test.data), ranker.predict(test.twin), qid=test.qid
    )
    print(f"{name:5}  NDCG {ndcg:.2f}  tau with the twins {taus[name]:.2f}")

# %%
# One of the new openings. Each line is a person: on the left the place in the list, on the right the place in the list where
# everybody is replaced by the twin.
opening = test.qid == 0
colors = ("#0072b2", "#d55e00")
if (
    dark := "--dark" in sys.argv
):  # the documentation shows the picture on dark pages as well
    plt.style.use("dark_background")
    colors = ("#4cc9f0", "#ffb454")
figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.2), layout="constrained", sharey=True)
for ax, (name, ranker) in zip(axes, rankers.items()):
    places = ranker.rank(test.data, qid=test.qid)[opening]
    of_twins = ranker.rank(test.twin, qid=test.qid)[opening]
    for group, label in ((0, "majority"), (1, "group whose marks are lowered")):
        members = test.sensitive_features[opening] == group
        lines = ax.plot(
            [0, 1],
            [places[members], of_twins[members]],
            "o-",
            color=colors[group],
            lw=2.5,
            ms=9,
        )
        lines[0].set_label(label)
    ax.set(
        title=f"{name} ranker",
        xlabel=rf"Kendall's $\tau$ over all openings: {taus[name]:.2f}",
        xlim=(-0.15, 1.15),
        yticks=range(1, 11),
    )
    ax.set_xticks([0, 1], ["the list", "everybody replaced\nby the twin"])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
axes[0].invert_yaxis()
axes[0].set_ylabel("place in the list")
figure.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=2,
    frameon=False,
)
if "--output" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--output") + 1], dpi=110, transparent=dark)
plt.show()
