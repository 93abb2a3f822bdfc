"""Tasks of people whose twins are known, census and hiring, and the tasks on which the defaults of `SenSTIRRanker` were chosen.

Not the paper's: here the ranker is told the group alone, the solver is deterministic where nothing else is said, and the gap of
groups is that of the sorted lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from _systems import BASELINE, PROJECT, RANDOM, sharpened
from paper import Experiment, Side, make_systems
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skfairrank import (
    AveragingRanker,
    GapBoostingRanker,
    PlackettLuceRanker,
    QueryRanker,
    SensitiveSubspaceMetric,
    SenSTIRRanker,
)
from skfairrank.datasets import make_hiring_ranking
from skfairrank.metrics import kendall_tau_score, ndcg_score, stochastic_ndcg_score
from skfairrank.plackett_luce import expected_exposure

COEFFICIENTS, DIFFERENCE, GAPS = "SenSTIR, coefficients", "SenSTIR, difference", "SenSTIR, gaps"
DROP_SEX, DROP_FAMILY = "Drop sex", "Drop sex, relationship and marital status"
DROP_MARKS = "Drop marks 1 and 2"
DROP_AND_MERGE, AVERAGED = "Drop sex, merge spouses", "Averaged over the twin"
DEFAULT_ASCENT, DEFAULT_GAPS = "SenSTIRRanker()", 'SenSTIRRanker(adversary="gaps")'

# The fair adversary of each: what of the group a hypothetical person may change.
ADVERSARIES = {
    COEFFICIENTS: {"adversary": "exact_box", "metric": SensitiveSubspaceMetric()},
    DIFFERENCE: {"adversary": "exact_box", "metric": SensitiveSubspaceMetric(direction="difference")},
    GAPS: {"adversary": "gaps"},
}

LIGHTGBM, LIGHTGBM_GAPS = "LightGBM", "LightGBM, gaps"

# Columns of results: NDCG sorted and of the policy, tau, gap in exposure of the sorted lists and of the policy at equal
# sharpness, and NDCG by true merit where it is known.
SORTED, POLICY, TWINS, GAP, SHARP_GAP, MERIT = range(6)
N_TRAINING_PEOPLE = 16_000


@dataclass(frozen=True)
class PeopleExperiment(Experiment):
    """A task whose hypothetical people are their own twins, in the other group.

    Attributes
    ----------
    merit : ndarray of float, shape (n_test_rows,), or None
        True relevances of the test rows, without the bias of the labels.
    X_twin : ndarray of float, shape (n_training_rows, n_features), or None
        The twins of the training people. `X_hypothetical` are those of the test people.
    merge : transformer, or None
        Merges categories that tell the group, and leaves its columns out.
    """

    merit: np.ndarray | None = None
    X_twin: np.ndarray | None = None
    merge: FunctionTransformer | None = None


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
    sex = family[-2:]
    told = _told(SensitiveSubspaceMetric(sensitive_columns=list(sex)))
    drops = {DROP_SEX: sex, DROP_FAMILY: family}
    return PeopleExperiment(
        "Census", side(train), side(test), scaled(twin[test]), **told, drops=drops, X_twin=scaled(twin[train])
    )


def merged_spouses(X, feature_names):
    """Husbands and wives are spouses, and sex is left out."""
    husband, wife, *sex = _columns_of_spouses(feature_names)
    merged = np.array(X)
    merged[:, husband] += merged[:, wife]
    return np.delete(merged, [wife, *sex], axis=1)


def exchanged_sex(X, feature_names):
    """Everybody's twin of the other sex."""
    husband, wife, female, male = _columns_of_spouses(feature_names)
    exchanged = np.array(X)
    exchanged[:, [husband, wife, female, male]] = exchanged[:, [wife, husband, male, female]]
    return exchanged


def _columns_of_spouses(feature_names) -> list[int]:
    ends = "_Husband", "_Wife", "_Female", "_Male"
    return [next(j for j, name in enumerate(feature_names) if name.endswith(end)) for end in ends]


def census_systems(experiment: Experiment, seed: int, *, feature_names):
    yield from make_systems(experiment, dict.fromkeys((RANDOM, BASELINE, DROP_SEX, DROP_FAMILY, PROJECT)), seed)
    plain, told = PlackettLuceRanker(**experiment.solver), {"feature_names": feature_names}
    yield DROP_AND_MERGE, None, make_pipeline(FunctionTransformer(merged_spouses, kw_args=told), plain)
    yield AVERAGED, None, AveragingRanker(plain, hypotheticals=partial(exchanged_sex, **told))
    rhos = {COEFFICIENTS: (0.003, 0.01, 0.03), DIFFERENCE: (0.003, 0.01), GAPS: (0.001, 0.003, 0.01)}
    yield from _senstir(experiment, rhos)
    yield from _boosted(experiment, DROP_FAMILY, (3.0, 5.0, 10.0))


# Hiring


def hiring_experiment(seed: int) -> PeopleExperiment:
    """300 training and 300 test openings, with biased labels, true merit and twins."""
    made = make_hiring_ranking(600, random_state=seed)
    train, test = (
        Side(made.data[rows], made.target[rows], made.qid[rows], made.sensitive_features[rows] == 0)
        for rows in (made.qid < 300, made.qid >= 300)
    )
    rows = made.qid >= 300
    told = _told(SensitiveSubspaceMetric())
    return PeopleExperiment(
        "Hiring",
        train,
        test,
        made.twin[rows],
        **told,
        drops={DROP_MARKS: (0, 1)},
        merit=made.merit[rows],
        X_twin=made.twin[~rows],
    )


def hiring_systems(experiment: Experiment, seed: int):
    yield from make_systems(experiment, dict.fromkeys((RANDOM, BASELINE, DROP_MARKS)), seed)
    yield from _senstir(experiment, dict.fromkeys(ADVERSARIES, (0.001, 0.003, 0.01, 0.1)))
    yield from _boosted(experiment, DROP_MARKS, (3.0, 5.0, 10.0))


def _told(metric: SensitiveSubspaceMetric) -> dict:
    """Settings of these tasks: every ranker is trained by the deterministic solver; the metric is that of Project."""
    solver = {"alpha": 1e-4, "solver": "lbfgs", "max_iter": 2000, "tol": 1e-5}
    return {"metric": metric, "training": solver, "solver": solver, "attack": {}}


def _senstir(experiment: Experiment, rhos: dict[str, tuple[float, ...]]):
    for family, values in rhos.items():
        for rho in values:
            yield family, rho, SenSTIRRanker(rho=rho, **ADVERSARIES[family], **experiment.solver)


def boosted_without(drop: str) -> str:
    """The family of LightGBM under a trivial rule."""
    return f"{LIGHTGBM}, {drop[0].lower()}{drop[1:]}"


def _boosted(experiment: Experiment, drop: str, strengths: tuple[float, ...]):
    """LightGBM by itself, without the columns of the trivial rule, and told of the gaps."""
    from lightgbm import LGBMRanker

    model = LGBMRanker(n_estimators=100, num_leaves=7, random_state=0, n_jobs=1, verbose=-1)
    rest = ColumnTransformer([("dropped", "drop", list(experiment.drops[drop]))], remainder="passthrough")
    yield LIGHTGBM, None, QueryRanker(model)
    yield boosted_without(drop), None, make_pipeline(rest, QueryRanker(model))
    for strength in strengths:
        yield LIGHTGBM_GAPS, strength, GapBoostingRanker(model, strength=strength)


# The defaults


def default_systems(experiment: Experiment, seed: int, *, shorter: int, rhos=(0.001, 0.003, 0.01)):
    """Everything at its default but rho; told the group alone, as `sensitive_features`. `shorter` above 1: 20 steps."""
    settings = {"random_state": seed, **({"max_iter": 20} if shorter > 1 else {})}
    yield BASELINE, None, PlackettLuceRanker(**settings)
    for rho in rhos:
        yield DEFAULT_ASCENT, rho, SenSTIRRanker(SensitiveSubspaceMetric(), rho=rho, **settings)
    for rho in rhos:
        yield DEFAULT_GAPS, rho, SenSTIRRanker(adversary="gaps", rho=rho, **settings)


# What is judged


def judge_people(experiment: Experiment, ranker) -> dict[str, float]:
    """NDCG of the sorted list and of the policy, tau with the twins, gaps in exposure, and NDCG by true merit where it is known.

    NDCG of queries with a relevant row; tau and the gaps of all. The second gap is that of the policy at equal sharpness, nan
    where there is none.
    """
    test, scores = experiment.test, ranker.predict(experiment.test.X)
    minority, sharp = ~np.asarray(test.groups, dtype=bool), sharpened(ranker, test)
    exact = np.bincount(np.unique(test.qid, return_inverse=True)[1]).max() <= 10
    policy = {"n_samples": "exact" if exact else 1000, "random_state": 0}
    numbers = {
        "ndcg": np.nanmean(ndcg_score(test.y, scores, qid=test.qid, reduce=None)),
        "stochastic_ndcg": np.nanmean(stochastic_ndcg_score(test.y, scores, qid=test.qid, reduce=None, **policy)),
        "tau": kendall_tau_score(scores, ranker.predict(experiment.X_hypothetical), qid=test.qid),
        "gap": exposure_gap(scores, test.qid, minority),
        "sharp_gap": np.nan if sharp is None else policy_gap(sharp, test.qid, minority, **policy),
    }
    merit = getattr(experiment, "merit", None)
    if merit is not None:
        numbers["merit"] = np.nanmean(ndcg_score(merit, scores, qid=test.qid, reduce=None))
    return numbers


def exposure_gap(scores, qid, group) -> float:
    """Mean exposure of the group in the sorted lists, 1 / log2(1 + rank), less that of the others."""
    order = np.lexsort((-scores, qid))
    rank = np.empty(len(scores))
    rank[order] = 1 + np.arange(len(scores)) - np.searchsorted(qid[order], qid[order])
    exposure = 1 / np.log2(1 + rank)
    return exposure[group].mean() - exposure[~group].mean()


def policy_gap(scores, qid, group, **policy) -> float:
    """The same in expectation over the rankings that the policy draws by the scores."""
    exposure = expected_exposure(scores, qid=qid, **policy)
    return exposure[group].mean() - exposure[~group].mean()
