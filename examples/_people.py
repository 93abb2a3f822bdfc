"""Tasks of people whose twins are known, census and hiring, and the tasks on which the defaults of `SenSTIRRanker` were chosen.

Not the paper's: here the ranker is told the group alone, the solver is deterministic where nothing else is said, and the gap of
groups is that of the sorted lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from _systems import BASELINE, PROJECT, RANDOM, System, drop, random_rankers, solver_of
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.datasets import make_hiring_ranking
from skfairrank.experiments import Experiment, Side
from skfairrank.metrics import kendall_tau_score, ndcg_score, stochastic_ndcg_score

COEFFICIENTS, DIFFERENCE, GAPS = "SenSTIR, coefficients", "SenSTIR, difference", "SenSTIR, gaps"
DROP_SEX, DROP_FAMILY = "Drop sex", "Drop sex, relationship and marital status"
DROP_MARKS = "Drop marks 1 and 2"
DEFAULT_ASCENT, DEFAULT_GAPS = "SenSTIRRanker()", 'SenSTIRRanker(adversary="gaps")'

# The fair adversary of each: what of the group a hypothetical person may change.
ADVERSARIES = {
    COEFFICIENTS: {"adversary": "exact_box", "metric": SensitiveSubspaceMetric()},
    DIFFERENCE: {"adversary": "exact_box", "metric": SensitiveSubspaceMetric(direction="difference")},
    GAPS: {"adversary": "gaps"},
}

# Columns of results: NDCG sorted and of the policy, tau, gap in exposure, and NDCG by true merit where it is known.
SORTED, POLICY, TWINS, GAP, MERIT = range(5)
N_TRAINING_PEOPLE = 16_000


@dataclass(frozen=True)
class PeopleExperiment(Experiment):
    """A task whose hypothetical people are their own twins, in the other group.

    Attributes
    ----------
    merit : ndarray of float, shape (n_test_rows,), or None
        True relevances of the test rows, without the bias of the labels.
    """

    merit: np.ndarray | None = None


# Census income


def census_experiment(people, seed: int) -> PeopleExperiment:
    """300 training and 200 test queries of 10 people drawn at random; no one is in both. Standardised on training people."""
    rng = np.random.default_rng(seed)
    X, twin, y, men = (np.asarray(a) for a in (people.data, people.twin, people.target, people.sensitive_features == 0))
    shuffled = rng.permutation(len(y))
    pool, rest = shuffled[:N_TRAINING_PEOPLE], shuffled[N_TRAINING_PEOPLE:]
    train, test = rng.choice(pool, (300, 10)).ravel(), rng.choice(rest, (200, 10)).ravel()
    numbers = slice(0, 5)
    scaler = StandardScaler().fit(X[pool, numbers])

    def scaled(rows):
        return np.hstack([scaler.transform(rows[:, numbers]), rows[:, 5:]])

    def side(rows):
        return Side(scaled(X[rows]), y[rows].astype(float), np.arange(len(rows)) // 10, men[rows])

    family = tuple(np.flatnonzero(people.family).tolist())  # the columns of sex are its last two
    return PeopleExperiment("Census", side(train), side(test), scaled(twin[test]), **_TOLD, trivial_columns=family)


def census_systems(experiment: Experiment, seed: int) -> Iterator[tuple[System, BaseEstimator | list[BaseEstimator]]]:
    family, solver = list(experiment.trivial_columns), _solver(experiment)
    yield (RANDOM, None), random_rankers(seed)
    yield (BASELINE, None), PlackettLuceRanker(**solver)
    yield (DROP_SEX, None), drop(family[-2:], PlackettLuceRanker(**solver))
    yield (DROP_FAMILY, None), drop(family, PlackettLuceRanker(**solver))
    sex = SensitiveSubspaceMetric(sensitive_columns=family[-2:])
    yield (PROJECT, None), make_pipeline(sex, PlackettLuceRanker(**solver))
    yield from _senstir(
        {COEFFICIENTS: (0.003, 0.01, 0.03), DIFFERENCE: (0.003, 0.01), GAPS: (0.001, 0.003, 0.01)}, solver
    )


# Hiring


def hiring_experiment(seed: int) -> PeopleExperiment:
    """300 training and 300 test openings, with biased labels, true merit and twins."""
    made = make_hiring_ranking(600, random_state=seed)
    train, test = (
        Side(made.data[rows], made.target[rows], made.qid[rows], made.sensitive_features[rows] == 0)
        for rows in (made.qid < 300, made.qid >= 300)
    )
    rows = made.qid >= 300
    return PeopleExperiment(
        "Hiring", train, test, made.twin[rows], **_TOLD, trivial_columns=(0, 1), merit=made.merit[rows]
    )


def hiring_systems(experiment: Experiment, seed: int) -> Iterator[tuple[System, BaseEstimator | list[BaseEstimator]]]:
    rhos, solver = (0.001, 0.003, 0.01, 0.1), _solver(experiment)
    yield (RANDOM, None), random_rankers(seed)
    yield (BASELINE, None), PlackettLuceRanker(**solver)
    yield (DROP_MARKS, None), drop(list(experiment.trivial_columns), PlackettLuceRanker(**solver))
    yield from _senstir(dict.fromkeys(ADVERSARIES, rhos), solver)


_TOLD: dict = {"metric": SensitiveSubspaceMetric(), "training": {"max_iter": 2000}, "attack": {}}


def _solver(experiment: Experiment) -> dict:
    return {"alpha": 1e-4, **solver_of(experiment)}


def _senstir(rhos: dict[str, tuple[float, ...]], solver: dict):
    for family, values in rhos.items():
        for rho in values:
            yield (family, rho), SenSTIRRanker(rho=rho, **ADVERSARIES[family], **solver)


# The defaults


def default_systems(experiment: Experiment, seed: int, *, rhos=(0.001, 0.003, 0.01)):
    """Everything at its default but rho; told the group alone, as `sensitive_features`."""
    shortened = experiment.training["max_iter"] < 1000
    settings = {"random_state": seed, **({"max_iter": 20} if shortened else {})}
    yield (BASELINE, None), PlackettLuceRanker(**settings)
    for rho in rhos:
        yield (DEFAULT_ASCENT, rho), SenSTIRRanker(SensitiveSubspaceMetric(), rho=rho, **settings)
    for rho in rhos:
        yield (DEFAULT_GAPS, rho), SenSTIRRanker(adversary="gaps", rho=rho, **settings)


# What is judged


def judge_people(experiment: Experiment, ranker) -> np.ndarray:
    """NDCG of the sorted list and of the policy, tau with the twins, gap in exposure, and NDCG by true merit where it is known.

    NDCG of queries with a relevant row; tau and the gap of all.
    """
    test, scores = experiment.test, ranker.predict(experiment.test.X)
    exact = np.bincount(np.unique(test.qid, return_inverse=True)[1]).max() <= 10
    policy = {"n_samples": "exact" if exact else 1000, "random_state": 0}
    numbers = [
        np.nanmean(ndcg_score(test.y, scores, qid=test.qid, reduce=None)),
        np.nanmean(stochastic_ndcg_score(test.y, scores, qid=test.qid, reduce=None, **policy)),
        kendall_tau_score(scores, ranker.predict(experiment.X_hypothetical), qid=test.qid),
        exposure_gap(scores, test.qid, ~np.asarray(test.groups, dtype=bool)),
    ]
    merit = getattr(experiment, "merit", None)
    if merit is not None:
        numbers.append(np.nanmean(ndcg_score(merit, scores, qid=test.qid, reduce=None)))
    return np.array(numbers)


def exposure_gap(scores, qid, group) -> float:
    """Mean exposure of the group in the sorted lists, 1 / log2(1 + rank), less that of the others."""
    order = np.lexsort((-scores, qid))
    rank = np.empty(len(scores))
    rank[order] = 1 + np.arange(len(scores)) - np.searchsorted(qid[order], qid[order])
    exposure = 1 / np.log2(1 + rank)
    return exposure[group].mean() - exposure[~group].mean()
