"""Prints what `SenSTIRBoostingRanker` costs and brings: without fairness, on German Credit, on a task whose truth is known.

``python examples/boosting_results.py`` takes some ten minutes on one slow core; ``--quick`` only tests that all runs. Numbers are
means over splits with standard errors; NDCG is that of the sorted list, tau that with each person's twin.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import sklearn
from lightgbm import LGBMRanker, LGBMRegressor
from paper import markdown, plus_minus
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBRanker

from skfairrank import (
    AveragingRanker,
    DistilledRanker,
    PlackettLuceRanker,
    QueryRanker,
    SensitiveSubspaceMetric,
    SenSTIRBoostingRanker,
)
from skfairrank.datasets import (
    flip_columns,
    load_census_income,
    load_german_credit,
    load_letor,
    make_credit_ranking,
    make_hiring_ranking,
)
from skfairrank.hypotheticals import Hypotheticals
from skfairrank.metrics import kendall_tau_score, ndcg_score

DATA = Path(os.environ.get("SKFAIRRANK_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data"))
SMALL = LGBMRanker(n_estimators=100, num_leaves=7, min_child_samples=20, random_state=0, n_jobs=1, verbose=-1)
DEFAULT = LGBMRanker(n_estimators=100, random_state=0, n_jobs=1, verbose=-1)
LARGE = LGBMRanker(n_estimators=200, num_leaves=15, learning_rate=0.1, random_state=0, n_jobs=1, verbose=-1)
XGBOOST = XGBRanker(n_estimators=100, max_depth=3, learning_rate=0.1, random_state=0, n_jobs=1)


def show(title: str, header: list[str], found: dict[str, list]) -> None:
    """Print a table under its title."""
    print(f"\n### {title}\n")
    print(table(header, found), flush=True)


def table(header: list[str], found: dict[str, list]) -> str:
    """Means and standard errors; `found` has a list of rows, one for each split, under the name of a system."""
    rows = []
    for name, values in found.items():
        values = np.array(values, dtype=float)
        error = (
            values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.full(values.shape[1], np.nan)
        )
        rows.append([name, *(plus_minus(m, e, 3) for m, e in zip(values.mean(axis=0), error))])
    return markdown(header, rows)


# Without fairness


def resplit(train, test, seed):
    """Queries of both parts dealt out anew, in parts of the same sizes."""
    X, y = np.vstack([train.data, test.data]), np.r_[train.target, test.target]
    qid = np.r_[[f"a{q}" for q in train.qid], [f"b{q}" for q in test.qid]]
    ids = np.random.default_rng(seed).permutation(np.unique(qid))
    is_train = np.isin(qid, ids[: len(np.unique(train.qid))])
    return [(X[part], y[part], qid[part]) for part in (is_train, ~is_train)]


def census_split(people, seed):
    """300 training and 200 test queries of 10 people drawn at random; no one is in both."""
    rng = np.random.default_rng(seed)
    shuffled, X, y = (
        rng.permutation(len(people.target)),
        np.asarray(people.data),
        np.asarray(people.target, dtype=float),
    )
    parts = (shuffled[:16_000], 300), (shuffled[16_000:], 200)
    return [(X[rows], y[rows], np.arange(len(rows)) // 10) for rows in (rng.choice(pool, 10 * n) for pool, n in parts)]


def credit_split(people, seed):
    task = make_credit_ranking(people, random_state=seed)
    return [(task.X_train, task.y_train, task.qid_train), (task.X_test, task.y_test, task.qid_test)]


def without_fairness(splits, settings):
    show("Without fairness", WITHOUT_FAIRNESS, compared_without_fairness(splits, settings))


WITHOUT_FAIRNESS = ["", "NDCG@5", "NDCG@10", "less LGBMRanker's, @5", "@10"]


def compared_without_fairness(splits, settings):
    """Rows of each data set and ranker, one for each split: NDCG of the sorted lists, and how much more than LGBMRanker's."""
    tasks, steps = {}, 2000 if not settings else 20
    for name, prefix in (("LightGBM's example", "lightgbm_rank"), ("MSLR sample", "mslr_sample")):
        parts = [DATA / f"{prefix}_{part}{ending}.txt.gz" for part in ("train", "test") for ending in (".letor", "")]
        train, test = (load_letor(path) for path in parts if path.exists())
        tasks[name] = DEFAULT, lambda seed, train=train, test=test: resplit(train, test, seed)
    people = load_census_income(DATA / "adult.csv.gz")
    tasks["census"] = SMALL, lambda seed: census_split(people, seed)
    applicants = load_german_credit(DATA / "german.data.gz")
    tasks["German Credit"] = SMALL, lambda seed: credit_split(applicants, seed)
    found = {}
    for name, (model, split) in tasks.items():
        for seed in range(splits):
            (X, y, qid), (Xt, yt, qt) = split(seed)
            model = clone(model).set_params(**settings)
            rankers = {
                "LGBMRanker": QueryRanker(model),
                "plrank": SenSTIRBoostingRanker(model, rho=0.0, random_state=seed),
                "lambdarank": SenSTIRBoostingRanker(model, rho=0.0, gradient="lambdarank"),
                "linear": make_pipeline(
                    StandardScaler(), PlackettLuceRanker(gradient="plrank", max_iter=steps, random_state=seed)
                ),
            }
            ndcg = {}
            for system, ranker in rankers.items():
                with sklearn.config_context(enable_metadata_routing=True):  # qid goes through the pipeline
                    s = ranker.fit(X, y.astype(int), qid=qid).predict(Xt)
                ndcg[system] = [np.nanmean(ndcg_score(yt, s, qid=qt, k=k, reduce=None)) for k in (5, 10)]
                less = np.subtract(ndcg[system], ndcg["LGBMRanker"])
                found.setdefault(f"{name}, {system}", []).append([*ndcg[system], *less])
    return found


# German Credit: the twin has the other sex


def flip_sex(X):
    return flip_columns(X, (3, 4))


def german_systems(model, seed):
    kept = [j for j in range(29) if j not in (3, 4)]
    yield "the library's ranker", QueryRanker(model), slice(None)
    yield "without the columns of sex", QueryRanker(model), kept
    yield "averaged over the twin", AveragingRanker(model, hypotheticals=flip_sex), slice(None)
    for rho in (0.0, 0.003, 0.01, 0.03, 0.1):
        yield (
            f"rho {rho:g}",
            SenSTIRBoostingRanker(model, hypotheticals=flip_sex, rho=rho, random_state=seed),
            slice(None),
        )


def german(splits, settings):
    people = load_german_credit(DATA / "german.data.gz")
    for library, model in (("LightGBM", SMALL), ("XGBoost", XGBOOST)):
        found: dict[str, list] = {}
        for seed in range(splits):
            task = make_credit_ranking(people, random_state=seed)
            for name, ranker, columns in german_systems(clone(model).set_params(**settings), seed):
                ranker.fit(task.X_train[:, columns], task.y_train.astype(int), qid=task.qid_train)
                s, twin = (ranker.predict(rows[:, columns]) for rows in (task.X_test, flip_sex(task.X_test)))
                ndcg, tau = ndcg_score(task.y_test, s, qid=task.qid_test), kendall_tau_score(s, twin, qid=task.qid_test)
                found.setdefault(name, []).append([ndcg, tau])
        show(f"German Credit, {library}", ["", "NDCG", "tau"], found)


# Hiring: labels are biased, the merit behind them is known


def hiring_systems(model, seed, groups, twins):
    yield "LGBMRanker", QueryRanker(model), {}
    yield "averaged over the twin, which it asks for", AveragingRanker(model), {}
    teacher = LGBMRegressor(n_estimators=100, num_leaves=7, random_state=seed, n_jobs=1, verbose=-1)
    student = DistilledRanker(teacher, SenSTIRBoostingRanker(model, rho=0.001, random_state=seed))
    yield "student of the average, rho 0.001", student, {"X_hypothetical": twins}
    for rho in (0.0, 0.001, 0.003, 0.03):
        ranker = SenSTIRBoostingRanker(model, rho=rho, random_state=seed)
        yield f"twins, rho {rho:g}", ranker, {"X_hypothetical": twins}
    steps = Hypotheticals(directions=True, steps=(-1.0, 1.0))
    difference = SensitiveSubspaceMetric(direction="difference")
    for rho in (0.001, 0.003, 0.03):
        ranker = SenSTIRBoostingRanker(model, metric=difference, hypotheticals=steps, rho=rho, random_state=seed)
        yield f"steps of the groups' difference, rho {rho:g}", ranker, {"sensitive_features": groups}


def hiring(splits, settings):
    found: dict[str, list] = {}
    for seed in range(splits):
        task = make_hiring_ranking(600, random_state=seed)
        train, test = task.qid < 300, task.qid >= 300
        groups, twins, qid = task.sensitive_features[train], task.twin[train], task.qid[test]
        for name, ranker, more in hiring_systems(clone(LARGE).set_params(**settings), seed, groups, twins):
            ranker.fit(task.data[train], task.target[train].astype(int), qid=task.qid[train], **more)
            two_ways = (task.data[test], task.twin[test]), (task.twin[test], task.data[test])
            asks = isinstance(ranker, AveragingRanker)
            s, twin = (ranker.predict(X, X_hypothetical=Z) if asks else ranker.predict(X) for X, Z in two_ways)
            ndcg = [ndcg_score(labels[test], s, qid=qid) for labels in (task.target, task.merit)]
            found.setdefault(name, []).append([*ndcg, kendall_tau_score(s, twin, qid=qid)])
    show("Hiring with a known truth", ["", "NDCG of the labels", "NDCG of true merit", "tau"], found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="two splits and five trees, to test that all runs")
    parser.add_argument("--splits", type=int, default=5, help="splits of each task (default: 5)")
    parser.add_argument("--only", choices=["without_fairness", "german", "hiring"], help="one of the tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UndefinedMetricWarning)  # queries without any relevant row are left out
    splits, settings = (2, {"n_estimators": 5}) if options.quick else (options.splits, {})
    for task in (without_fairness, german, hiring):
        if options.only in (None, task.__name__):
            task(splits, settings)


if __name__ == "__main__":
    main()
