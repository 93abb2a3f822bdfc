"""Writes the page "Which method when", docs/which_method.md: all ways to fairness on one table, and what each must know.

``python examples/which_method.py`` takes some minutes on one core, prints the page and writes it; ``--quick`` only tests that all
runs.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from _people import PeopleExperiment, census_experiment, exposure_gap, hiring_experiment, merged_spouses, policy_gap
from _systems import LOSS, say, sharpened, standard_error
from joblib import Parallel, delayed, parallel_config
from lightgbm import LGBMRanker, LGBMRegressor
from paper import Side, data_folder, german_credit_experiment, german_credit_people, markdown, plus_minus
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skfairrank import (
    AveragingRanker,
    DistilledRanker,
    GapBoostingRanker,
    PlackettLuceRanker,
    QueryRanker,
    SensitiveSubspaceMetric,
    SenSTIRBoostingRanker,
    SenSTIRRanker,
)
from skfairrank.datasets import flip_columns, load_census_income
from skfairrank.metrics import group_exposure_disparity, kendall_tau_score, ndcg_score
from skfairrank.metrics._predictions import own_policy, ranking_scores
from skfairrank.policies import Deterministic, PlackettLuce
from skfairrank.postprocessing import DetConstSortRanker, ExposureLPRanker, FairScoreSmoother, FAStarRanker

LINEAR, TREES = "Linear ranker", "LightGBM"
MERGE = "LightGBM, drop sex, merge spouses"
TEMPERATURE, FAIR_EXPOSURE = "Temperature, drawn", "ExposureLPRanker, drawn"
SEX = (3, 4)  # the columns of German Credit
SOFT_LOSS = 0.05  # of NDCG, that the softer policy may lose

# What is measured of a system on one split, in this order.
NDCG, MERIT, TAU, DISPARITY, SHARP, GAP = range(6)
DIGITS = (3, 3, 3, 4, 4, 3)
COLUMNS = ("NDCG", "by true merit", "tau with the twins", "disparity", "equally sharp", "gap in exposure")

INTRODUCTION = """\
# Which method when

<!-- Made by examples/which_method.py: do not edit by hand. -->

There are many ways to a fairer ranking. You can leave columns out, train a fair ranker, or boost fair trees. You can make
the policy softer by a temperature, or re-rank the lists of a ranker that you have. This page says what to try first, what
each way must know, and, in one table, what each reaches. `python examples/which_method.py` prints and makes it.

## What to try first
"""

FIRST = [
    ("your case", "try"),
    ("You can make a person's twin when you decide.", "`AveragingRanker` around the plain model"),
    (
        "You can train, and know all columns that tell the group.",
        "Drop these columns, or merge their categories, and measure what is left.",
    ),
    (
        "You know people's twins in training only.",
        '`DistilledRanker`, `SenSTIRBoostingRanker`, or `adversary="given"` for linear scores',
    ),
    (
        "You know the groups in training only.",
        'Labels less the group\'s mean; `adversary="gaps"`, or `GapBoostingRanker` for trees, where gaps differ between columns',
    ),
    (
        "You cannot train again, and may read the group when you decide.",
        "`DetConstSortRanker` for one list, `ExposureLPRanker` for lists that are drawn",
    ),
    (
        "You cannot train again, and may not read it.",
        "Nothing here does much. `FairScoreSmoother` where queries are large; `TemperatureRanker` where lists are drawn and "
        "exposure is all that is asked for",
    ),
]

NEEDS = """\
The reasons stand [below the table](#what-follows).

## What each must know
"""

NEEDED = [
    ("method", "to train it, one needs", "to decide, it gets", "does a decision read the group?"),
    (
        "dropping columns",
        "which columns, and which others tell the same",
        "the other columns",
        "no; other columns may tell it",
    ),
    ('`SenSTIRRanker(adversary="gaps")`', "the group of each row", "X", "only a column of it in X that keeps a weight"),
    ('`SenSTIRRanker(adversary="given")`', "each row's twin, by a function or as rows", "X", "the same"),
    (
        '`SenSTIRRanker(metric, adversary="exact_box")`',
        "the group of each row, or directions",
        "X",
        "the same; may use it to even groups out",
    ),
    ("`GapBoostingRanker`", "the group of each row", "X", "only a column of it in X that is split"),
    ("`AveragingRanker`", "what the plain model needs", "X, and each row's twin", "yes, where the twin is made by it"),
    ("`DistilledRanker`", "each row's twin", "X", "only a column of it in X"),
    ("`SenSTIRBoostingRanker`", "each row's twin, or the group of each row", "X", "the same"),
    ("`TemperatureRanker`", "labelled queries; for `max_disparity` groups too", "X; it draws", "as the ranker within"),
    (
        "`FairScoreSmoother`",
        "a fair metric, or groups to learn it from",
        "X, the whole query",
        "as the ranker within, and the metric",
    ),
    ("`FAStarRanker`", "the least share of the group", "scores, labels of the whole query", "yes"),
    ("`DetConstSortRanker`", "the shares, or none: the query's own", "scores, labels of the whole query", "yes"),
    ("`ExposureLPRanker`", "the constraint", "scores, labels of the whole query; it draws", "yes"),
]

LAW = """\
**What the law may say.** Some laws forbid that a decision about a person reads the group of this person, in either
direction. The last three rows do so. Some laws forbid to record the group at all, and so to train with it or to audit by
it. Some allow it, or ask for it. Laws differ by country, by field (employment, credit, housing, advertising) and by
attribute. Training on groups and then deciding without them need not count as deciding by them. Ask who knows: nothing on
this page can tell whether a use is lawful ([What is known when a decision is
made](postprocessing.md#what-is-known-when-a-decision-is-made)).
"""

TABLE = """\
## One table

The table has three data sets, {n} random splits each, ± standard errors over splits. Each method has one strength: its
default, or one that other pages use. None was searched for. Another strength is another point of a method's trade-off
([Results](results.md) has more of them).

- *Hiring* has a known truth ([Data with a known truth](fairness.md#data-with-a-known-truth)). Marks and labels understate a
  group, and the group is no column. The rule drops the two marks that are lowered most.
- *German Credit* and *Census*: the group is women, and sex is a column. A twin has the other sex. On the census a husband's
  twin is also a wife. (On the page of results the group of German Credit is age, as in the paper.)

What the columns are:

- *NDCG*: of the lists sorted by score. It goes by the labels, which may be unfair. *By true merit*: the same by what no
  ranker sees.
- *Tau*: Kendall's, between a query's list and that of the twins. A method that reads group labels gets the twins' labels
  too.
- *Disparity*: of group exposure in the sorted lists ([Metrics](metrics.md)). It is 0 where the group with more merit gets
  no more than its merit warrants.
- *Equally sharp*: the disparity of the policy that draws by the scores. The temperature is such that the drawn lists lose
  {loss} of the sorted lists' NDCG on the test queries. So what differs there is not softness. FA\\*IR and DetConstSort give
  lists alone; these are drawn by minus the rank.
- *Gap in exposure*: the group's mean exposure in the sorted lists less that of the others. It does not ask for merit.

Two rows are *drawn*: all their columns but tau are what the drawn rankings have in expectation. *Temperature* is the plain
ranker at the temperature at which it loses {soft} of NDCG. (Equally sharp it would be the plain ranker.) *ExposureLPRanker*
draws by its own policy. Its row *sorted* has the lists by expected exposure, of which nothing is promised.

The settings:

- **Linear rankers.** SenSTIR has its default rho, .003. With "given" twins it is trained by Adam, all others by the
  deterministic solver. The metric of "exact_box" and of the smoother is that of the difference of the groups' means.
- **Re-rankers** stand around the plain linear ranker. The smoother has strength 10 and theta 1 / number of features,
  FA\\*IR the group's share in training, DetConstSort the shares of each query.
- **Trees:** 100 of 7 leaves, `GapBoostingRanker` of strength 5, `SenSTIRBoostingRanker` with twins and rho .003,
  alone and as the student of `DistilledRanker`, whose teacher is a regression.
"""

FOUND = """\
## What follows

A difference counts here from two standard errors, split by split. [Differences](which_method_differences.md) has all of them.
With so many, some count by chance. Splits of one data set share rows, so they are not independent.

- **Whoever knows the columns can drop them.** On German Credit twins rank alike without the columns of sex. That costs no
  NDCG that can be seen, and no linear ranker that was trained fair is better in any column. On hiring one must know which
  marks are lowered. Then the rule has the true merit, the gap and the equally sharp disparity of `adversary="gaps"`, and
  hardly less tau.
- **Merging costs less than dropping.** On the census dropping sex alone leaves most of the gap. Dropping what goes with it
  costs much NDCG. Merging husbands and wives and dropping sex ranks twins alike at the plain trees' NDCG, and so does
  averaging over the twin. `GapBoostingRanker` does so as well, with a narrower gap. `adversary="gaps"` has the gap and
  the disparity of dropping, at more NDCG.
- **Twins answer for twins.** `AveragingRanker` has tau 1 on all three data sets, and on hiring by far the most true merit. It
  needs the twin when it decides. Trained on given twins, rankers become more stable on all three data sets. On the census the
  gap in exposure stays about what it was, for the linear ranker and for trees, because other columns tell the group and a
  twin keeps them. On hiring the twin differs in all that tells the group. There `SenSTIRBoostingRanker` ranks the true merit
  better than the plain trees, and better than the trees under the rule. `DistilledRanker` with the same rho is more stable than
  it on all three, and on hiring not seen to be better than the plain trees in merit. A student without rho is
  ([Results](results/rules.md)).
- **A difference of means is a fairness of groups.** "exact_box" with that direction narrows the gap everywhere. On the
  census it does so by using the column of sex, so twins are ranked less alike than by the plain ranker.
- **Temperature makes no list fairer.** Tau is the plain ranker's by construction. The disparity falls, and true merit with
  it.
- **Re-ranking by group labels does what it promises,** where groups may be read. `ExposureLPRanker` has no disparity and no
  gap in expectation, where lists are drawn. Twins rank alike on hiring and on German Credit, not on the census. In NDCG by
  the labels it is among the dearest on hiring and on the census. On hiring the true merit is a little higher all the same.
  `DetConstSortRanker` narrows the gap less and costs less. It ranks true merit better than the plain ranker. On German
  Credit and the census it has less disparity than the rule when equally sharp. `FAStarRanker` hardly changes lists of ten,
  because a test of so few ranks can tell little.
- **`FairScoreSmoother` moves little here.** It draws the scores of alike items together, and in queries of ten there are
  few alike. On hiring, where it moves more, true merit is lost.
"""


# The tasks


def german_experiment(people, seed: int) -> PeopleExperiment:
    """German Credit told of sex instead of age, so that the twin is a person of the other group, as on the other data."""
    made = german_credit_experiment(people, seed)
    train, test = (Side(side.X, side.y, side.qid, side.X[:, SEX[1]] > 0) for side in (made.train, made.test))
    solver = hiring_settings()
    return PeopleExperiment(
        "German Credit",
        train,
        test,
        flip_columns(test.X, SEX),
        SensitiveSubspaceMetric(),
        {},
        {},
        solver=solver,
        drops={"Drop sex": SEX},
        X_twin=flip_columns(train.X, SEX),
    )


def hiring_settings() -> dict:
    """The deterministic solver, with which all linear rankers are trained here."""
    return {"alpha": 1e-4, "solver": "lbfgs", "max_iter": 2000, "tol": 1e-5}


def tasks() -> Iterator[tuple[str, Callable[[int], PeopleExperiment] | None]]:
    """Names of the data sets and what makes a split of each; None where the data are not at hand."""
    yield "Hiring", hiring_experiment
    try:
        yield "German Credit", partial(german_experiment, german_credit_people(fetch=False))
    except FileNotFoundError:
        yield "German Credit", None
    files = [data_folder() / name for name in ("adult.csv.gz", "adult.data")]
    found = [path for path in files if path.is_file()]
    if not found:
        yield "Census", None
        return
    people = load_census_income(found[0])
    merge = FunctionTransformer(merged_spouses, kw_args={"feature_names": people.feature_names})
    yield "Census", lambda seed: replace(census_experiment(people, seed), merge=merge)


# The systems: name, the plain ranker that it is compared with, and the ranker


def systems(task: PeopleExperiment, trees: int) -> Iterator[tuple[str, str, object]]:
    plain = PlackettLuceRanker(**task.solver)
    model = LGBMRanker(n_estimators=trees, num_leaves=7, random_state=0, n_jobs=1, verbose=-1)
    difference = SensitiveSubspaceMetric(direction="difference")
    yield LINEAR, LINEAR, plain
    for name, columns in task.drops.items():
        yield name, LINEAR, make_pipeline(without(columns), plain)
    yield "SenSTIR, gaps", LINEAR, SenSTIRRanker(adversary="gaps", **task.solver)
    yield "SenSTIR, given", LINEAR, SenSTIRRanker(adversary="given", alpha=task.solver["alpha"], random_state=0)
    yield "SenSTIR, exact_box", LINEAR, SenSTIRRanker(difference, adversary="exact_box", **task.solver)
    fitted = FrozenEstimator(fit(plain, task))
    yield TEMPERATURE, LINEAR, fitted
    theta = 1 / task.train.X.shape[1]
    yield "FairScoreSmoother", LINEAR, FairScoreSmoother(fitted, metric=difference, strength=10.0, theta=theta)
    share = float(np.mean(~task.train.groups))
    yield "FAStarRanker", LINEAR, FAStarRanker(fitted, protected=False, p=share)
    yield "DetConstSortRanker", LINEAR, DetConstSortRanker(fitted, proportions="query")
    yield "ExposureLPRanker, sorted", LINEAR, ExposureLPRanker(fitted)
    yield FAIR_EXPOSURE, LINEAR, ExposureLPRanker(fitted)
    yield TREES, TREES, QueryRanker(model)
    for name, columns in task.drops.items():
        yield f"{TREES}, {name[0].lower()}{name[1:]}", TREES, make_pipeline(without(columns), QueryRanker(model))
    if task.merge is not None:
        yield MERGE, TREES, make_pipeline(task.merge, QueryRanker(model))
    yield "AveragingRanker", TREES, AveragingRanker(model)
    yield "GapBoostingRanker", TREES, GapBoostingRanker(model, strength=5.0)
    student = SenSTIRBoostingRanker(model, rho=0.003, random_state=0)
    yield "SenSTIRBoostingRanker", TREES, student
    teacher = LGBMRegressor(n_estimators=trees, num_leaves=7, random_state=0, n_jobs=1, verbose=-1)
    yield "DistilledRanker", TREES, DistilledRanker(teacher, student)


def without(columns) -> ColumnTransformer:
    return ColumnTransformer([("dropped", "drop", list(columns))], remainder="passthrough")


def fit(ranker, task: PeopleExperiment):
    """Told of the groups where it asks for them, and of the twins where it trains on given rows."""
    train, known = task.train, {"qid": task.train.qid}
    takes_twins = (
        isinstance(ranker, SenSTIRBoostingRanker | DistilledRanker) or getattr(ranker, "adversary", None) == "given"
    )
    if takes_twins:
        known["X_hypothetical"] = task.X_twin
    elif not hasattr(ranker, "steps"):
        known["sensitive_features"] = train.groups
    if hasattr(ranker, "steps"):
        known = {f"{ranker.steps[-1][0]}__qid": train.qid}
    return ranker.fit(train.X, train.y.astype(int), **known)


# What is judged


class Scored:
    """Scores of the test rows, as a ranker."""

    def __init__(self, scores):
        self.scores = scores

    def predict(self, X):
        return self.scores


def judge(task: PeopleExperiment, name: str, ranker) -> list[float]:
    """What a fitted ranker reaches on the test queries, as the constants above have it; nan where it has no meaning.

    Twins bring the label of the other group with them, to those who read it.
    """
    test, groups = task.test, np.asarray(task.test.groups, dtype=bool)
    if isinstance(ranker, AveragingRanker):
        s, twins = (ranker.predict(X, X_hypothetical=other) for X, other in two_ways(test.X, task.X_hypothetical))
    else:
        s = ranking_scores(ranker, test.X, qid=test.qid, sensitive_features=groups)
        twins = ranking_scores(ranker, task.X_hypothetical, qid=test.qid, sensitive_features=~groups)
    exact, drawn = PlackettLuce(1.0, "exact"), name in (TEMPERATURE, FAIR_EXPOSURE)
    shown, scores, sharp = Deterministic(), s, np.nan
    if name == TEMPERATURE:
        shown, scores = exact, sharpened(Scored(s), test, SOFT_LOSS)
    elif name == FAIR_EXPOSURE:
        shown = own_policy(ranker, test.X, qid=test.qid, sensitive_features=groups)
    known = {"qid": test.qid, "policy": shown}
    if not drawn:
        at_same_loss = sharpened(Scored(s), test)
        if at_same_loss is not None:
            by_policy = {"qid": test.qid, "sensitive_features": groups, "policy": exact}
            sharp = group_exposure_disparity(test.y, at_same_loss, **by_policy)
    if name == TEMPERATURE:
        gap = policy_gap(scores, test.qid, ~groups, n_samples="exact")
    elif name == FAIR_EXPOSURE:  # its scores are expected exposures
        gap = s[~groups].mean() - s[groups].mean()
    else:
        gap = exposure_gap(s, test.qid, ~groups)
    return [
        mean_ndcg(test.y, scores, known),
        np.nan if task.merit is None else mean_ndcg(task.merit, scores, known),
        kendall_tau_score(s, twins, qid=test.qid),
        group_exposure_disparity(test.y, scores, sensitive_features=groups, **known),
        sharp,
        gap,
    ]


def two_ways(X, twin):
    return (X, twin), (twin, X)


def mean_ndcg(y, scores, known) -> float:
    """Over the queries with a relevant row."""
    return float(np.nanmean(ndcg_score(y, scores, reduce=None, **known)))


def run_split(make_task, trees: int, n_queries: int | None, seed: int) -> dict[tuple[str, str], list[float]]:
    """Every system on one split: by its name and that of the plain ranker that it is compared with, what is measured."""
    task = make_task(seed)
    if n_queries is not None:
        task = shortened(task, n_queries)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Columns? .* of X: .* alone determines", UserWarning)  # on purpose
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # queries without a relevant row
        return {(name, kind): judge(task, name, fit(ranker, task)) for name, kind, ranker in systems(task, trees)}


def shortened(task: PeopleExperiment, n_queries: int) -> PeopleExperiment:
    """The first queries of each side."""
    train, test = (np.isin(side.qid, np.unique(side.qid)[:n_queries]) for side in (task.train, task.test))
    sides = (
        Side(side.X[rows], side.y[rows], side.qid[rows], side.groups[rows])
        for side, rows in ((task.train, train), (task.test, test))
    )
    return replace(
        task,
        **dict(zip(("train", "test"), sides)),
        X_twin=task.X_twin[train],
        X_hypothetical=task.X_hypothetical[test],
        merit=None if task.merit is None else task.merit[test],
    )


Results = dict[tuple[str, str], np.ndarray]


def run_splits(make_task, n_splits: int, trees: int, n_queries: int | None) -> Results:
    """Of every system what is measured, shape (n_splits, 6). A split's number is the random state of its task."""
    with parallel_config("loky", inner_max_num_threads=1):
        splits = Parallel(n_jobs=2 if n_splits > 2 else 1)(
            delayed(run_split)(make_task, trees, n_queries, seed) for seed in range(n_splits)
        )
    return {system: np.array([split[system] for split in splits]) for system in splits[0]}


# The page


def table_of(found: dict[str, Results]) -> str:
    """Means with standard errors."""
    rows = [
        (data, name, *(cell(mean, error, digits) for mean, error, digits in zip(runs.mean(axis=0), errors, DIGITS)))
        for data, results in found.items()
        for (name, _), runs in results.items()
        for errors in [standard_error(runs)]
    ]
    return markdown(("data", "method", *COLUMNS), rows)


def cell(mean: float, error: float, digits: int) -> str:
    """A number and its error, without the sign of what rounds to 0; empty for nan."""
    return "" if np.isnan(mean) else plus_minus(round(mean, digits) + 0.0, error, digits)


def differences(found: dict[str, Results], reference: Callable[[Results, str], tuple[str, str]]) -> str:
    """Each method less its reference, split by split; gaps by how much nearer to 0 they are."""
    rows = []
    for data, results in found.items():
        for system, runs in results.items():
            compared = reference(results, system[1])
            if system != compared:
                change = runs - results[compared]
                change[:, GAP] = np.abs(results[compared][:, GAP]) - np.abs(runs[:, GAP])
                rows.append((data, system[0], *(signed(c, digits) for c, digits in zip(change.T, DIGITS))))
    return markdown(("data", "method", *COLUMNS[:-1], "gap nearer to 0 by"), rows)


def plain_of(results: Results, kind: str) -> tuple[str, str]:
    """The plain ranker of this kind."""
    return kind, kind


def rule_of(results: Results, kind: str) -> tuple[str, str]:
    """The trivial rule of this kind; of several the one that drops most columns."""
    return [system for system in results if system[1] == kind and "drop" in system[0].lower()][-1]


def signed(differences: np.ndarray, digits: int) -> str:
    """Mean and standard error, bold from two standard errors; not so where it rounds to 0, and empty for nan."""
    mean, error = float(np.mean(differences)), float(standard_error(differences))
    shown = round(mean, digits)
    if np.isnan(mean) or not shown:
        return cell(mean, error, digits)
    text = f"{'+' if shown > 0 else ''}{plus_minus(mean, error, digits)}"
    return f"**{text}**" if abs(mean) >= 2 * error else text


def pages(n_splits: int, trees: int, n_queries: int | None) -> tuple[str, str]:
    """The page and that of the differences, as Markdown."""
    found, absent = {}, []
    for name, make_task in tasks():
        if make_task is None:
            absent.append(name)
            say(f"{name} is left out: its file is not in {data_folder()} (SKFAIRRANK_DATA names another folder).")
            continue
        found[name] = run_splits(make_task, n_splits, trees, n_queries)
        say(f"{name} done")
    left_out = f"Left out, since the data were not at hand: {', '.join(absent)}.\n" if absent else ""
    page = "\n".join(
        [
            INTRODUCTION,
            markdown(FIRST[0], FIRST[1:]),
            NEEDS,
            markdown(NEEDED[0], NEEDED[1:]),
            LAW,
            TABLE.format(n=n_splits, loss=digits_of(LOSS), soft=digits_of(SOFT_LOSS)),
            left_out + table_of(found),
            FOUND,
        ]
    )
    less = "\n".join(
        [
            "# Which method: differences\n\nThe table of [Which method when](which_method.md), compared split by split.\n",
            "## Less the plain ranker\n\nSplit by split, in bold from two standard errors:\n",
            differences(found, plain_of),
            "## Less the trivial rule\n\nThe same, of the rule that drops most; for trees on the census, of merging spouses:\n",
            differences(found, rule_of),
        ]
    )
    return page, less


def digits_of(share: float) -> str:
    """A share below 1 as the page writes it, .01."""
    return f"{share:g}".lstrip("0")


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, metavar="FILE", help="the page (docs/which_method.md)")
    parser.add_argument("--splits", type=int, metavar="N", help="random splits (5; with --quick 2)")
    parser.add_argument("--quick", action="store_true", help="few trees and queries: numbers mean nothing")
    given = parser.parse_args(argv)
    n_splits = given.splits or (2 if given.quick else 5)
    page, less = pages(n_splits, 5 if given.quick else 100, 30 if given.quick else None)
    print(page, less, sep="\n")
    output = given.output
    if output is None and not given.quick:
        output = Path(__file__).resolve().parents[1] / "docs" / "which_method.md"
    if output is not None:
        output.write_text(page, encoding="utf-8")
        output.with_stem(f"{output.stem}_differences").write_text(less, encoding="utf-8")
        say(f"Pages: {output}, and of the differences beside it")


if __name__ == "__main__":
    main()
