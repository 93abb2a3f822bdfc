"""The systems that the page of results compares, the data set of Microsoft's that is not the paper's whole, and tables of claims.

A system is ``(family, strength)``: the strength of its regulariser (rho, Fair-PG-Rank's weight, ...), or None. How each is made
stands in `paper/`, with the paper's tasks and hyperparameters.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed, parallel_config
from paper import HYPERPARAMETERS, MEASURES, Experiment, Side, make_systems, name_of, plus_minus, run_systems
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank import SensitiveSubspaceMetric, TemperatureRanker
from skfairrank.datasets import make_mslr_ranking
from skfairrank.inspection import nearest_queries
from skfairrank.metrics import group_exposure_disparity

RANDOM, BASELINE, PROJECT, FAIR_PG = "Random", "Baseline", "Project", "Fair-PG-Rank"
ASCENT, EXACT, BOX = "SenSTIR, ascent", "SenSTIR, exact", "SenSTIR, box"
DROP_AGE, DROP_AGE_SEX, DROP_Z2, DROP_QUALITY = "Drop age", "Drop age and sex", "Drop z2", "Drop QualityScore2"
SOFTENED = "Drop age and sex, softened"

# Policies are compared where each loses as much NDCG of its sorted lists: at equal sharpness.
LOSS = 0.01
DIGITS = (*(digits for _, digits in MEASURES.values()), 4)
NDCG = list(MEASURES).index("stochastic_ndcg")

System = tuple[str, float | None]

GERMAN = {
    RANDOM: None,
    BASELINE: None,
    PROJECT: None,
    DROP_AGE: None,
    DROP_AGE_SEX: None,
    SOFTENED: (0.7, 0.5, 0.4, 0.3, 0.2, 0.1),
    FAIR_PG: (0.1, 1.0, 2.0, 4.0),
    ASCENT: (0.01, 0.1, 0.3, 1.0),
    EXACT: (0.01, 0.1, 1.0),
    BOX: (0.01, 0.1, 0.3, 0.5, 1.0),
}
PAPERS_SYNTHETIC = {
    RANDOM: None,
    BASELINE: None,
    PROJECT: None,
    DROP_Z2: None,
    FAIR_PG: [25.0],
    ASCENT: (0.0003, 0.001),
}
SYNTHETIC = {
    **PAPERS_SYNTHETIC,
    EXACT: (0.0003, 0.001, 0.003, 0.01),
    BOX: (0.0003, 0.001, 0.003, 0.01),
}
MSLR = {
    RANDOM: None,
    BASELINE: None,
    PROJECT: None,
    DROP_QUALITY: None,
    FAIR_PG: (1.0, 100.0),
    ASCENT: (0.001, 0.01, 0.1, 1.0),
    BOX: (0.001, 0.01, 0.1, 1.0),
}


def mslr_experiment(parts, seed: int) -> Experiment:
    """20 documents drawn from each query that has one of relevance 3; hypothetical: the nearest other query.

    The sample has 10 training queries with a document of relevance 4, as the paper asks for; so 3 has to do here. Nothing
    is chosen on the validation part, so it joins the training part.
    """
    made = make_mslr_ranking(*parts, required_relevance=3, random_state=seed)
    names = ("data", "target", "qid", "sensitive_features")
    train = Side(*(np.concatenate([made.train[name], made.validation[name]]) for name in names))
    test = Side(*(made.test[name] for name in names))
    quality = made.sensitive_column
    metric = SensitiveSubspaceMetric(sensitive_columns=[quality], scale="raw")
    X, qid = np.vstack([train.X, test.X]), np.concatenate([train.qid, test.qid])
    nearest = nearest_queries(test.X, X, qid=test.qid, qid_reference=qid, metric=metric.fit(train.X))
    settings = HYPERPARAMETERS["Microsoft"]
    return Experiment(
        "Microsoft", train, test, nearest.hypothetical(X), metric, **settings, drops={DROP_QUALITY: (quality,)}
    )


# Running and reporting


def judge(experiment: Experiment, ranker) -> dict[str, float]:
    """What `Experiment.judge` says, and the disparity of the policy at equal sharpness; nan where there is no such policy."""
    test, groups = experiment.test, {"qid": experiment.test.qid, "sensitive_features": experiment.test.groups}
    scores = sharpened(ranker, test)
    large = np.unique(test.qid, return_counts=True)[1].max() > 12
    policy = {"n_samples": 1000 if large else "exact", "random_state": 0}
    sharp = np.nan if scores is None else group_exposure_disparity(test.y, scores, **groups, **policy)
    return {**experiment.judge(ranker), "sharp_disparity": sharp}


def sharpened(ranker, test: Side, loss: float = LOSS) -> np.ndarray | None:
    """Scores at the temperature at which the policy loses so much of its sorted lists' NDCG on these queries.

    None where chance does not lose so much, as of random weights.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # queries without a relevant row
        try:
            found = TemperatureRanker(ranker, max_ndcg_loss=loss, cv="prefit", random_state=0)
            return found.fit(test.X, test.y, qid=test.qid).predict(test.X)
        except ValueError as error:
            if "max_ndcg_loss" not in str(error):
                raise
            return None


def with_few_queries(experiment: Experiment, n_train: int = 80, n_test: int = 20) -> Experiment:
    """The same with its first queries alone: to see that all runs."""
    sides = {"train": (experiment.train, n_train), "test": (experiment.test, n_test)}
    rows = {name: np.isin(side.qid, np.unique(side.qid)[:n]) for name, (side, n) in sides.items()}
    cut = {
        name: Side(side.X[rows[name]], side.y[rows[name]], side.qid[rows[name]], side.groups[rows[name]])
        for name, (side, _) in sides.items()
    }
    for name, side in (("X_hypothetical", "test"), ("merit", "test"), ("X_twin", "train")):
        values = getattr(experiment, name, None)  # the last two only of people
        if values is not None:
            cut[name] = values[rows[side]]
    return replace(experiment, **cut)


def run_split(make_experiment: Callable[[int], Experiment], systems, shorter: int, judge, seed: int):
    """Every system on one split: its numbers, in the order in which `judge` has them."""
    experiment = make_experiment(seed)
    if shorter > 1:
        experiment = with_few_queries(experiment.shortened(shorter))
    made = make_systems(experiment, systems, seed) if isinstance(systems, dict) else systems(experiment, seed)
    with warnings.catch_warnings():
        # Some systems see the sensitive column on purpose.
        warnings.filterwarnings("ignore", "Columns? .* of X: .* alone determines", UserWarning)
        runs = list(run_systems(experiment, made, judge))
    described = ("data", "family", "strength", "system", "ranker", "seconds")
    return {
        (run["family"], run["strength"]): [value for name, value in run.items() if name not in described]
        for run in runs
    }


def run_splits(
    make_experiment, systems, n_splits: int, shorter: int = 1, judge: Callable = judge
) -> dict[System, np.ndarray]:
    """Numbers of every system, each (n_splits, n_measures); a split's number is the random state of its task and training.

    `systems` are strengths by family, as for `make_systems`, or a function of the experiment and the seed that yields what that
    does. `shorter` divides the numbers of training steps.
    """
    n_jobs = 2 if n_splits > 2 else 1  # few splits, as in a quick run, are not worth processes of their own
    with parallel_config("loky", inner_max_num_threads=1):
        splits = Parallel(n_jobs=n_jobs)(
            delayed(run_split)(make_experiment, systems, shorter, judge, seed) for seed in range(n_splits)
        )
    return {system: np.array([split[system] for split in splits]) for system in splits[0]}


def say(message: str) -> None:
    """A line about progress, not among the results."""
    print(message, file=sys.stderr, flush=True)


def standard_error(values) -> np.ndarray:
    """Of the mean over the first axis; nan where there is one value only."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.std(values, axis=0, ddof=1) / np.sqrt(len(values))


def rows_of(results: dict[System, np.ndarray], digits=DIGITS) -> list[tuple[str, ...]]:
    """Lines of a table: system and its measures, means with standard errors, with so many digits."""
    return [
        (
            name_of(*system),
            *(
                "" if np.isnan(mean) else plus_minus(mean, error, n_digits)
                for mean, error, n_digits in zip(runs.mean(axis=0), standard_error(runs), digits)
            ),
        )
        for system, runs in results.items()
    ]


def at_same_ndcg(results: dict[System, np.ndarray], families: tuple[str, ...], ndcg: float) -> np.ndarray | None:
    """What the systems of these families reach at a mean NDCG of the policy, as `run_splits`; None if out of their range.

    Between the two systems whose mean NDCGs are next to it on both sides, on the straight line.
    """
    runs = sorted(
        (runs for (family, _), runs in results.items() if family in families), key=lambda r: r[:, NDCG].mean()
    )
    means = np.array([r[:, NDCG].mean() for r in runs])
    k = int(np.searchsorted(means, ndcg))
    if k == 0 or k == len(means):
        return None
    share = (ndcg - means[k - 1]) / (means[k] - means[k - 1])
    return (1 - share) * runs[k - 1] + share * runs[k]
