r"""
How to make trees lean less on what gives the group away
========================================================

Data as people have them: a table of the census of 1994 with categories and with missing values, which LightGBM takes as they are.
Queries are ten people each, and an income above 50,000 dollars is relevant. The sensitive attribute is sex. It is a column, the
relationship tells it as well (husband, wife), and hours, occupation and marital status go along with it.

``GapBoostingRanker`` measures how far women and men lie apart in each column, and makes a split of a column count less, the wider
that gap is. Categories are measured by the shares of women and of men in them, and missing values count as something that may
give the group away. The trees, the objective and the speed stay LightGBM's; ``strength`` is the one parameter more.

Three things are judged on other people than those of training: NDCG of the sorted lists; *tau*, whether the order stays if
everyone had the other sex, wives as husbands and husbands as wives; and the gap in exposure of women, which is negative where
they stand further down. Beside it stand two simple rules: leaving out sex, relationship and marital status; and leaving out sex
alone, with husbands and wives merged into spouses. For twins the second is enough, and it costs nothing that can be seen.

The table, UCI's ``adult.data`` or ``adult.csv.gz``, is read from the folder that the environment variable ``SKFAIRRANK_DATA``
names. LightGBM must be installed (``pip install lightgbm``).
"""

# %%
# The table. A question mark is a missing value, and text becomes pandas' categories.
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMRanker
from paper import data_folder

from skfairrank import GapBoostingRanker, QueryRanker
from skfairrank.metrics import kendall_tau_score, ndcg_score

quick = "--quick" in sys.argv
n_splits, n_train, n_test, n_trees = (2, 200, 60, 10) if quick else (5, 300, 200, 100)
strengths = (0.0, 5.0) if quick else (0.0, 1.0, 3.0, 5.0, 10.0)

files = [data_folder() / name for name in ("adult.csv.gz", "adult.data") if (data_folder() / name).is_file()]
if not files:
    sys.exit(
        f"No census data: {data_folder().resolve()} has neither adult.csv.gz nor adult.data. Get it by\n    curl -LO "
        "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data\nand say where it is by\n    export "
        "SKFAIRRANK_DATA=."
    )
names = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain capital_loss "
    "hours_per_week native_country income"
).split()
has_header = files[0].suffix == ".gz"
people = pd.read_csv(
    files[0], names=names, header=0 if has_header else None, na_values="?", skipinitialspace=True
).drop_duplicates(ignore_index=True)
X = people.drop(columns=["fnlwgt", "education", "income"])  # weights of the survey, and what education_num says too
X = X.astype({name: "category" for name in X.columns if X[name].dtype.kind not in "iuf"})
y, women = (people["income"] == ">50K").to_numpy(int), (people["sex"] == "Female").to_numpy()
twin = X.copy()
for column, exchanged in (
    ("sex", {"Female": "Male", "Male": "Female"}),
    ("relationship", {"Husband": "Wife", "Wife": "Husband"}),
):
    other = X[column].astype(object).replace(exchanged)
    twin[column] = pd.Categorical(other, categories=X[column].cat.categories)
print(X.dtypes.to_string(), f"\n{len(X)} people, {X.isna().any(axis=1).sum()} with missing values\n")


# %%
# Every ranker on the same splits.
def exposure_gap(ranks, group):
    exposure = 1 / np.log2(1 + ranks)
    return exposure[group].mean() - exposure[~group].mean()


def merged(table):
    categories = ["Spouse", *X["relationship"].cat.categories.drop(["Husband", "Wife"])]
    relationship = table["relationship"].astype(object).replace({"Husband": "Spouse", "Wife": "Spouse"})
    return table.drop(columns="sex").assign(relationship=pd.Categorical(relationship, categories=categories))


model = LGBMRanker(n_estimators=n_trees, num_leaves=7, random_state=0, n_jobs=1, verbose=-1)
family = ["sex", "relationship", "marital_status"]
rows = []
for split in range(n_splits):
    rng = np.random.default_rng(split)
    shuffled = rng.permutation(len(X))
    train = rng.choice(shuffled[: len(X) // 2], 10 * n_train)
    test = rng.choice(shuffled[len(X) // 2 :], 10 * n_test)
    qid, qid_test = np.repeat(np.arange(n_train), 10), np.repeat(np.arange(n_test), 10)
    rankers = {f"gaps, strength {s:g}": (GapBoostingRanker(model, strength=s), pd.DataFrame.copy) for s in strengths}
    rankers["without sex and family"] = QueryRanker(model), lambda table: table.drop(columns=family)
    rankers["without sex, spouses merged"] = QueryRanker(model), merged
    for name, (ranker, prepared) in rankers.items():
        seen, shown, flipped = (prepared(Z) for Z in (X.iloc[train], X.iloc[test], twin.iloc[test]))
        ranker.fit(seen, y[train], qid=qid, sensitive_features=np.where(women[train], "woman", "man"))
        scores = ranker.predict(shown)
        ndcg = np.nanmean(
            ndcg_score(y[test], scores, qid=qid_test, reduce=None)
        )  # some queries have no relevant person
        tau = kendall_tau_score(scores, ranker.predict(flipped), qid=qid_test)
        gap = exposure_gap(ranker.rank(shown, qid=qid_test), women[test])
        rows.append({"ranker": name, "NDCG": ndcg, "tau": tau, "gap in exposure": gap})
    if split == 0:
        gaps = rankers[f"gaps, strength {strengths[-1]:g}"][0].gaps_
results = pd.DataFrame(rows).groupby("ranker", sort=False).agg(["mean", "sem"])
print(results.round(4).to_string())
print("\nGaps, in standard deviations:")
print(gaps.sort_values(ascending=False).round(2).to_string())

# %%
# Left: the gaps of the first split. Sex itself is as far apart as can be, and the relationship nearly so. Right: what a strength
# costs and what it buys.
figure, axes = plt.subplots(1, 3, figsize=(12, 4.6), layout="constrained")
axes[0].barh(*zip(*gaps.sort_values().items()), color="0.6")
axes[0].set(xlabel="gap of women and men", ylabel="column")
means, errors = (results.xs(which, axis=1, level=1) for which in ("mean", "sem"))
is_rule = means.index.str.startswith("without")
for ax, name, label in (
    (axes[1], "tau", "tau with the twins"),
    (axes[2], "gap in exposure", "gap in exposure of women"),
):
    for chosen, color, marker, text in (
        (~is_rule, "#0072B2", "o", "LightGBM told of gaps (numbers: strength)"),
        (is_rule, "#D55E00", "s", "LightGBM without sex, and without or with merged family"),
    ):
        x, z = means[chosen]["NDCG"], means[chosen][name]
        error = {"xerr": errors[chosen]["NDCG"], "yerr": errors[chosen][name]}
        ax.errorbar(x, z, **error, color=color, marker=marker, linestyle="-", linewidth=1, label=text)
    for strength, x, z in zip(strengths, means[~is_rule]["NDCG"], means[~is_rule][name]):
        ax.annotate(
            f"{strength:g}", (x, z), xytext=(5, -11), textcoords="offset points", fontsize="small", clip_on=True
        )
    ax.margins(0.15)
    ax.set(xlabel="NDCG of the sorted lists", ylabel=label)
    ax.grid(alpha=0.25)
handles, labels = axes[1].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
plt.show()
