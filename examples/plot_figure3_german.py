r"""
Figure 3: what fairness costs on German Credit
==============================================

Queries of 10 people, drawn from German Credit; a good credit risk is relevant. The sensitive attribute is *age*: the fair
metric is learned by predicting it. Systems are judged on unseen people by

- the expected NDCG of their ranking policy,
- Kendall's tau between the ranking and the one after everyone's *sex* is flipped, which no system was told to ignore,
- the disparity of group exposure between people of 25 and older and younger ones, which Fair-PG-Rank regularises.

What the paper's figure says, and what is seen here (numbers: ten splits, means ± standard errors):

- SenSTIR brings tau to 1 at a moderate loss of NDCG, though it only knows of age. So it is: from .846 ± .024 (baseline) to
  .995 ± .002 with :math:`\rho = .28`, NDCG from .848 to .827.
- Project is worse in tau than the baseline, and a little better in disparity. So it is (.801 ± .018).
- Fair-PG-Rank does not trade NDCG for tau. So it is: tau stays at .85 to .87 for all weights.
- At the same NDCG SenSTIR's disparity is lower than Fair-PG-Rank's. Hardly: with weight 4 (NDCG .843, disparity .0146) it
  lies about on SenSTIR's line. But it gets no further with the paper's weights. What it learns on the training queries
  (there its disparity falls by half) carries over to unseen people in small part only; SenSTIR's comes down on both.

On a single split these lines may run differently, as the error bars say. The rule "drop the columns age and sex" is not in
the figure; it has tau 1 at no loss of NDCG, and leaves most of the disparity (``python -m skfairrank.demo``).

German Credit is needed: the file ``german.data`` of UCI or its variant with a column ``Risk``, in the folder that the
environment variable ``SKFAIRRANK_DATA`` names. By default three splits and few values; ``--full`` takes the paper's ten
splits and all of its values (about a quarter of an hour).
"""

# %%
# The systems, with the hyperparameters of Tables 2 and 3 (they stand in ``_systems.py``, next to this script).
# Fair-PG-Rank makes 100 passes over 500 queries of 10 people.
import matplotlib.pyplot as plt
import numpy as np
from _common import first_file, judge, options, plus_minus, save, say, standard_error, step_back, table
from _systems import AGE, GERMAN_ATTACK, GERMAN_FAIR_PG, GERMAN_TRAINING, german_task, random_rankers
from sklearn import config_context
from sklearn.pipeline import make_pipeline

from skfairrank import FairPGRanker, PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.datasets import load_german_credit
from skfairrank.demo import GERMAN_FILES, PUBLISHED
from skfairrank.inspection import TradeoffDisplay
from skfairrank.metrics import group_exposure_disparity

given = options(__doc__)
n_splits = 2 if given.quick else 10 if given.full else 3
rhos, weights = [0.01, 0.1, 0.28, 1.0], [1.0, 4.0]
if given.full:
    rhos = [0.001, *np.arange(1, 20) / 100, *np.arange(28, 101, 9) / 100, *np.arange(2.0, 11.0), 50.0, 100.0]
    weights = [0.1, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]


def make_systems(seed):
    """System, strength of its regulariser where it has one, and its rankers (of Random many, to be averaged)."""

    def steps(settings):
        return {**settings, "max_iter": settings["max_iter"] // (200 if given.quick else 1), "random_state": seed}

    metric = SensitiveSubspaceMetric(sensitive_columns=AGE)
    yield ("Random", None), random_rankers(seed)
    yield ("Baseline", None), [PlackettLuceRanker(**steps(GERMAN_TRAINING))]
    yield ("Project", None), [make_pipeline(metric, PlackettLuceRanker(**steps(GERMAN_TRAINING)))]
    for weight in weights:
        yield ("Fair-PG-Rank", weight), [FairPGRanker(fairness_weight=weight, **steps(GERMAN_FAIR_PG))]
    for rho in rhos:
        yield ("SenSTIR", rho), [SenSTIRRanker(metric, rho=rho, **steps(GERMAN_TRAINING), **GERMAN_ATTACK)]


# %%
# Every system on every split: NDCG, tau and disparity on unseen people, and the disparity on the training queries. The
# split's number seeds the training too. Expectations are exact.
def compare(people):
    results = {}
    for split in range(n_splits):
        task = german_task(people, split)
        train, test = task.train, task.test
        for system, rankers in make_systems(split):
            numbers = []
            for ranker in rankers:
                with config_context(enable_metadata_routing=True):  # hands qid through Project's pipeline
                    ranker.fit(train.X, train.y, qid=train.qid, sensitive_features=train.groups)
                scores, hypothetical_scores = ranker.predict(test.X), ranker.predict(task.X_hypothetical)
                on_test = judge(scores, hypothetical_scores, test.y, qid=test.qid, groups=test.groups)
                on_train = group_exposure_disparity(
                    train.y,
                    ranker.predict(train.X),
                    qid=train.qid,
                    sensitive_features=train.groups,
                    n_samples="exact",
                )
                numbers.append([*on_test, on_train])
            results.setdefault(system, []).append(np.mean(numbers, axis=0))
        say(f"split {split + 1} of {n_splits} done")
    return {system: np.array(runs) for system, runs in results.items()}


# %%
# Means over splits with standard errors, beside what the authors' program recorded on its splits 0 and 1 (NDCG / tau /
# disparity; their queries are other ones, and their disparities, from 25 sampled rankings, are a little too large).
# ``python -m skfairrank.demo --published`` trains on those very queries.
def print_table(results):
    rows = []
    for (system, strength), runs in results.items():
        name = system if system != "SenSTIR" else f"SenSTIR, rho {strength:g}"
        recorded = [PUBLISHED[split][name] for split in ("german_seed0", "german_seed1") if name in PUBLISHED[split]]
        numbers = zip(runs.mean(axis=0), standard_error(runs), (3, 3, 4, 4))
        rows.append(
            (
                name if system != "Fair-PG-Rank" else f"{system}, weight {strength:g}",
                *(plus_minus(*number) for number in numbers),
                "; ".join(f"{ndcg:.3f} / {tau:.3f} / {disparity:.4f}" for ndcg, tau, disparity in recorded),
            )
        )
    print(f"{n_splits} random splits, means ± standard errors")
    print(table(("system", "NDCG", "tau", "disparity", "disparity (training)", "authors' splits 0; 1"), rows))


file = first_file(GERMAN_FILES, "no file of German Credit")
if file is not None:
    results = compare(load_german_credit(file))
    print_table(results)


# %%
# The figure: to the right is more accurate; above is fairer on the left, below is fairer on the right.
def draw(results):
    figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    labels = {"SenSTIR": r"SenSTIR (numbers: $\rho$)", "Fair-PG-Rank": "Fair-PG-Rank (numbers: its weight)"}
    order = ["SenSTIR", "Fair-PG-Rank", "Baseline", "Project", "Random"]  # so that colours go to the first ones
    systems = sorted(results, key=lambda system: (order.index(system[0]), system[1] or 0))
    means = np.array([results[system].mean(axis=0) for system in systems])
    errors = np.array([standard_error(results[system]) for system in systems])
    every = -(-len(rhos) // 8)
    numbers = [
        f"{strength:g}" if strength is not None and values.index(strength) % every == 0 else ""
        for system, strength in systems
        for values in [rhos if system == "SenSTIR" else weights]
    ]
    for ax, column, label in (
        (axes[0], 1, "Kendall's tau with the ranking\nafter everyone's sex is flipped (1: same)"),
        (axes[1], 2, "disparity of group exposure by age (0: none)"),
    ):
        display = TradeoffDisplay.from_predictions(
            means[:, 0],
            means[:, column],
            xerr=errors[:, 0],
            yerr=errors[:, column],
            labels=[labels.get(system, system) for system, _ in systems],
            annotations=numbers,
            xlabel="expected NDCG on unseen people",
            ylabel=label,
            legend=False,
            ax=ax,
        )
        step_back(display)
    figure.legend(*display.ax_.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure


if file is not None:
    save(draw(results), given)
