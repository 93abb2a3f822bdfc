r"""
LightGBM and SenSTIR in one search
==================================

A boosted ranker and a fair linear one, compared on the same folds by the same scorers. ``QueryRanker`` takes ``qid``
in any order, hands LightGBM the group sizes that it wants, and returns scores in the caller's order; so it can be a
candidate beside SenSTIR.

The task is the paper's synthetic one: the relevance is the sum of two features, and of a minority the second is lost
and reads 0. Fairness is asked in two ways. *Disparity*: does the majority get more exposure than its relevance
warrants? *tau*: does the order stay if nothing had been lost, that is, with the features that these items really
have? LightGBM must be installed.
"""

# %%
# Data: relevances are rounded, since LightGBM wants grades. Rows are shuffled; nothing here minds.
import matplotlib.pyplot as plt
import numpy as np
import sklearn
from _common import options, plus_minus, save, step_back, table
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import QueryRanker, SenSTIRRanker
from skfairrank.datasets import make_biased_ranking
from skfairrank.inspection import TradeoffDisplay
from skfairrank.metrics import kendall_tau_scorer, neg_group_exposure_disparity_scorer, stochastic_ndcg_scorer
from skfairrank.model_selection import QueryKFold

try:
    from lightgbm import LGBMRanker
except ImportError:
    LGBMRanker = None
    print("Nothing is drawn: LightGBM is not installed (pip install lightgbm).")

given = options(__doc__)
n_queries, rounds = (30, [5]) if given.quick else (1000, [20, 50, 100]) if given.full else (300, [10, 30, 100])
rhos = [0.001] if given.quick else [0.0, 0.0001, 0.0003, 0.001, 0.003]

task = make_biased_ranking(n_queries=n_queries, random_state=0)
rows = np.random.default_rng(0).permutation(len(task.qid))
X, X_uncorrupted, qid, groups = (
    values[rows] for values in (task.data, task.uncorrupted_data, task.qid, task.sensitive_features)
)
y = np.round(task.target[rows]).astype(int)

# %%
# One pipeline, whose last step is itself a parameter; each kind of ranker brings its own grid. Parameters of the
# inner model are reached as ``estimator__...``.


def make_search():
    fair = SenSTIRRanker(learning_rate=0.03, max_iter=1000, random_state=0)
    boosted = QueryRanker(LGBMRanker(num_leaves=7, random_state=0, n_jobs=1, verbose=-1))
    return GridSearchCV(
        Pipeline([("scale", StandardScaler()), ("rank", fair)]),
        [
            {"rank": [fair], "rank__rho": rhos},
            {"rank": [boosted], "rank__estimator__n_estimators": rounds},
        ],
        cv=QueryKFold(2 if given.quick else 5),
        scoring={
            "ndcg": stochastic_ndcg_scorer,
            "tau": kendall_tau_scorer,
            "disparity": neg_group_exposure_disparity_scorer,
        },
        refit="ndcg",
        error_score="raise",
    )


if LGBMRanker is not None:
    with sklearn.config_context(enable_metadata_routing=True):
        search = make_search().fit(X, y, qid=qid, sensitive_features=groups, X_hypothetical=X_uncorrupted)

# %%
# Numbers with standard errors over the folds.


def print_table(results):
    lines = []
    for k, parameters in enumerate(results["params"]):
        cells = []
        for name, sign, digits in (("ndcg", 1, 3), ("tau", 1, 3), ("disparity", -1, 4)):
            folds = np.array([results[f"split{fold}_test_{name}"][k] for fold in range(search.n_splits_)])
            cells.append(plus_minus(sign * folds.mean(), folds.std(ddof=1) / np.sqrt(len(folds)), digits))
        ranker = parameters["rank"]
        if isinstance(ranker, QueryRanker):
            name = f"LightGBM, {parameters['rank__estimator__n_estimators']} trees"
        else:
            name = f"SenSTIR, rho {parameters['rank__rho']:g}"
        lines.append((name, *cells))
    print(table(("candidate", "NDCG", "tau", "disparity"), lines))


if LGBMRanker is not None:
    print_table(search.cv_results_)

# %%
# The figure. Trees can do what a linear score cannot: tell a lost feature, which reads exactly 0, from a small one,
# and give those items the mean of what they might have had. So at the plain linear ranker's NDCG LightGBM has the
# lower disparity and the higher tau, though nobody asked it to be fair. What it has no parameter for is the rest of
# the way: more trees or fewer leave tau where it is, while :math:`\rho` buys stability at the price of NDCG.


def draw(search):
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    for ax, name, label in (
        (axes[0], "tau", "tau with the ranking if nothing were lost"),
        (axes[1], "disparity", "disparity of group exposure"),
    ):
        display = TradeoffDisplay.from_search(
            search,
            x="ndcg",
            y=name,
            label_by="rank",
            annotate_by="rho",
            xlabel="expected NDCG",
            ylabel=label,
            best_index=None,
            legend=False,
            ax=ax,
        )
        step_back(display)
    for text in axes[0].texts:  # where no line runs
        text.set(position=(-7, 2), ha="right")
    names = {"SenSTIRRanker": r"SenSTIR (numbers: $\rho$)", "QueryRanker": "LightGBM (by number of trees)"}
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, [names[label] for label in labels], loc="outside lower center", ncols=2, frameon=False)
    return figure


if LGBMRanker is not None:
    save(draw(search), given)
