"""The tasks of Bower et al. (2021): queries, fair metric, hyperparameters, what is judged, and what their program recorded.

Hyperparameters are those of Tables 2 and 3. Where the authors' program differs, it is followed: on the synthetic task its
learning rate is .04 (the paper says .001, which is too small for the published weights); `subspace_init` is only there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

from skfairrank import SensitiveSubspaceMetric
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget
from skfairrank.datasets import (
    fetch_german_credit,
    flip_sex,
    load_german_credit,
    make_biased_ranking,
    make_credit_ranking,
)
from skfairrank.inspection import nearest_queries
from skfairrank.metrics import group_exposure_disparity, kendall_tau_score, ndcg_score, stochastic_ndcg_score


def _attack(n_steps: int, *, fair_start: float, **settings: float) -> dict[str, Any]:
    """The ascent, of which all tasks have the same step size of the second phase and the same rule for lambda; and its start."""
    ascent = Ascent(subspace_n_steps=n_steps, full_n_steps=n_steps, full_step_size=0.001, dual_step="paper", **settings)
    return {"adversary": ascent, "fair_start": fair_start}


_MSLR_TRAINING = {"learning_rate": 0.001, "max_iter": 1000, "batch_size": 10, "n_samples": 32, "alpha": 0.001}

# By task, what `Experiment` has under these names. `solver`, `box` and `budget` are not the paper's: the deterministic solver,
# which has neither steps nor seeds, and bounds of the adversaries in closed form that reach about as far as the paper's ascent.
HYPERPARAMETERS: dict[str, dict[str, dict[str, Any]]] = {
    "Synthetic": {
        "training": {"learning_rate": 0.04, "max_iter": 2000, "batch_size": 1, "n_samples": 10},
        "attack": _attack(20, epsilon=0.001, subspace_step_size=0.001, subspace_init=0.05, fair_start=0.0),
        # 5 passes of 100 queries
        "fair_pg": {"learning_rate": 0.1, "max_iter": 500, "batch_size": 1, "n_samples": 10},
        "solver": {"solver": "lbfgs", "max_iter": 2000},
        # How far the ascent's steps reach, as * ae and fs * fe; here the start counts too, whose mean distance is .05 / 2.
        "box": {"adversary": ExactBox(0.001 * 20 + 0.05 / 2, 0.001 * 20)},
        # As far as the box: .045 times the length of the direction, about 52; 2 features at .02 have the square 2 * .02^2.
        "budget": {"adversary": ExactBudget(2 * 0.02**2, 2.3)},
    },
    "German Credit": {
        "training": {"learning_rate": 0.001, "max_iter": 20_000, "batch_size": 10, "n_samples": 25},
        "attack": _attack(20, epsilon=1.0, subspace_step_size=0.01, subspace_init=0.005, fair_start=0.1),
        # 100 passes of 500 queries
        "fair_pg": {"learning_rate": 0.001, "max_iter": 50_000, "batch_size": 1, "n_samples": 25},
        "solver": {"solver": "lbfgs", "max_iter": 2000, "tol": 1e-5},
        "box": {"adversary": ExactBox(0.01 * 20, 0.001 * 20)},
        # The paper's epsilon never binds. As far as the box: 29 features at .02.
        "budget": {"adversary": ExactBudget(29 * 0.02**2, 0.2)},
    },
    # The paper takes 68,000 steps of the whole data set; these are for its sample.
    "Microsoft": {
        "training": _MSLR_TRAINING,
        "attack": _attack(40, epsilon=0.01, subspace_step_size=0.01, subspace_init=0.005, fair_start=0.1),
        "fair_pg": _MSLR_TRAINING,
        "box": {"adversary": ExactBox(0.01 * 40, 0.001 * 40)},
    },
}

# What the authors' program recorded (github.com/UMich-FATML/SenSTIR), by the name of its queries: NDCG and group exposure
# disparity of the policy, from 10 (synthetic) and 25 (German Credit) sampled rankings of each query, and Kendall's tau with
# the hypothetical ranking. On the synthetic task also the learned weights, and the mean place (from 0) in the hypothetical
# ranking of the item ranked 1st, ..., 10th.
RECORDED: dict[str, dict[str, Bunch]] = {
    "senstir_synthetic": {
        "Baseline": Bunch(
            coef=(8.08121395, 5.38915491),
            ndcg=0.9599,
            tau=0.4000,
            disparity=0.0130,
            places=(2.34, 2.68, 2.94, 3.19, 4.45, 4.79, 5.35, 6.01, 6.29, 6.96),
        ),
        "Fair-PG-Rank, weight 25": Bunch(
            coef=(0.90663069, 0.91267276),
            ndcg=0.8751,
            tau=0.2249,
            disparity=0.0093,
            places=(3.13, 3.51, 3.72, 3.92, 4.59, 4.40, 5.11, 4.91, 5.49, 6.22),
        ),
        "SenSTIR, rho 0.0003": Bunch(
            coef=(3.87103963, 1.03512478),
            ndcg=0.9256,
            tau=0.7058,
            disparity=0.0080,
            places=(0.99, 1.38, 2.10, 3.26, 3.92, 4.90, 5.95, 6.58, 7.82, 8.10),
        ),
        "SenSTIR, rho 0.001": Bunch(
            coef=(7.48849058, 0.23702028),
            ndcg=0.9003,
            tau=0.9511,
            disparity=0.0114,
            places=(0.17, 0.93, 2.00, 3.09, 3.95, 4.98, 6.05, 6.98, 7.91, 8.94),
        ),
    },
    "german_seed0": {
        "Baseline": Bunch(ndcg=0.788, tau=0.802, disparity=0.0106),
        "Project": Bunch(ndcg=0.791, tau=0.761, disparity=0.0101),
        "SenSTIR, rho 0.01": Bunch(ndcg=0.792, tau=0.775, disparity=0.0076),
        "SenSTIR, rho 0.1": Bunch(ndcg=0.787, tau=0.859, disparity=0.0048),
        "SenSTIR, rho 1": Bunch(ndcg=0.779, tau=1.000, disparity=0.0046),
    },
    "german_seed1": {
        "Baseline": Bunch(ndcg=0.830, tau=0.756, disparity=0.0140),
        "SenSTIR, rho 1": Bunch(ndcg=0.793, tau=0.999, disparity=0.0031),
    },
}

# How many rows a query may have for exact expectations; of larger ones so many rankings are sampled.
EXACT_UP_TO, N_SAMPLES = 10, 1000
GERMAN_FILES = ("german.data.gz", "german.data", "german_credit_kaggle.csv")
GERMAN_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/german/german.data"


@dataclass(frozen=True)
class Side:
    """Queries to train on, or to judge by.

    Attributes
    ----------
    X : ndarray of float, shape (n_rows, n_features)
    y : ndarray of float, shape (n_rows,)
        Relevances.
    qid : ndarray, shape (n_rows,)
        The query of each row.
    groups : ndarray of bool, shape (n_rows,)
        The majority, or people of 25 and older.
    """

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    groups: np.ndarray


@dataclass(frozen=True)
class Experiment:
    """A ranking task of the paper, with its hyperparameters.

    Attributes
    ----------
    name : str
    train, test : Side
    X_hypothetical : ndarray of float, shape (n_test_rows, n_features)
        What Kendall's tau compares each row of ``test.X`` with: the nearest other query's item on the synthetic task, the
        same person with sex flipped on German Credit.
    metric : SensitiveSubspaceMetric
        Not yet fitted. Directions in the units of the model that learns them, as the paper has them.
    training : dict
        Of `PlackettLuceRanker` and `SenSTIRRanker`: steps, batch size, sampled rankings, learning rate.
    attack : dict
        Of `SenSTIRRanker`, all but `rho`.
    fair_pg : dict
        Of `FairPGRanker`, all but its weight.
    solver, box, budget : dict
        Not the paper's: of the deterministic solver, and `SenSTIRRanker`'s `ExactBox` and `ExactBudget` that reach about as far
        as the attack.
    drops : dict of str to tuple of int
        The trivial rules, by name: the columns that each drops.
    """

    name: str
    train: Side
    test: Side
    X_hypothetical: np.ndarray
    metric: SensitiveSubspaceMetric
    training: Mapping[str, Any]
    attack: Mapping[str, Any]
    fair_pg: Mapping[str, Any] = field(default_factory=dict)
    solver: Mapping[str, Any] = field(default_factory=dict)
    box: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)
    drops: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def shortened(self, factor: int) -> Experiment:
        """The same with a share of the training steps, 1 / `factor`, and a rougher solver: to see that all runs."""
        if factor == 1:
            return self

        def shorter(settings):
            if "solver" in settings:
                return {**settings, "tol": 1e-2} if "tol" in settings else settings
            return {**settings, "max_iter": max(1, settings["max_iter"] // factor)} if settings else {}

        return replace(
            self, training=shorter(self.training), fair_pg=shorter(self.fair_pg), solver=shorter(self.solver)
        )

    def fit(self, ranker):
        """Fit on the training queries, with metadata routing on, which hands `qid` through pipelines; returns it."""
        train = self.train
        with config_context(enable_metadata_routing=True):
            return ranker.fit(train.X, train.y, qid=train.qid, sensitive_features=train.groups)

    def fit_metric(self) -> SensitiveSubspaceMetric:
        """The fair metric, learned from the training queries."""
        return clone(self.metric).fit(self.train.X, sensitive_features=self.train.groups)

    def judge(self, ranker) -> dict[str, float]:
        """What a fitted ranker reaches on the test queries; where these have more than 10 rows, from 1,000 sampled rankings.

        ``ndcg`` and ``disparity``, of group exposure, are those of the list sorted by score; ``stochastic_ndcg`` and
        ``stochastic_disparity`` those of the policy that draws rankings by the scores, which the paper reports; ``tau`` is
        Kendall's, with the hypothetical ranking.
        """
        test, scores = self.test, ranker.predict(self.test.X)
        exact = np.unique(test.qid, return_counts=True)[1].max() <= EXACT_UP_TO
        policy = {"n_samples": "exact" if exact else N_SAMPLES, "random_state": 0}
        groups = {"qid": test.qid, "sensitive_features": test.groups}
        return {
            "ndcg": ndcg_score(test.y, scores, qid=test.qid),
            "stochastic_ndcg": stochastic_ndcg_score(test.y, scores, qid=test.qid, **policy),
            "tau": kendall_tau_score(scores, ranker.predict(self.X_hypothetical), qid=test.qid),
            "disparity": group_exposure_disparity(test.y, scores, policy="deterministic", **groups),
            "stochastic_disparity": group_exposure_disparity(test.y, scores, **groups, **policy),
        }


def synthetic_experiment(random_state: int = 0) -> Experiment:
    """The synthetic task: 100 training and 100 test queries of 10 items, of which the authors' are one draw.

    Hypothetical is the nearest other query among training and test queries, as in the authors' program.
    """
    made = make_biased_ranking(n_queries=200, random_state=random_state)
    sides = (
        Side(made.data[rows], made.target[rows], made.qid[rows], made.sensitive_features[rows])
        for rows in (made.qid < 100, made.qid >= 100)
    )
    return _synthetic(*sides)


def _synthetic(train: Side, test: Side) -> Experiment:
    metric = SensitiveSubspaceMetric(classifier=LogisticRegression(C=100), scale="raw")
    fitted = clone(metric).fit(train.X, sensitive_features=train.groups)
    X, qid = np.vstack([train.X, test.X]), np.concatenate([train.qid, test.qid])
    nearest = nearest_queries(test.X, X, qid=test.qid, qid_reference=qid, metric=fitted)
    settings = HYPERPARAMETERS["Synthetic"]
    return Experiment("Synthetic", train, test, nearest.hypothetical(X), metric, **settings, drops={"Drop z2": (1,)})


def german_credit_experiment(people: Bunch, random_state: int = 0) -> Experiment:
    """German Credit: people (of `german_credit_people`) split at random and drawn into 500 training and 100 test queries of 10.

    Sensitive is age, column 0; hypothetical is everyone with sex, columns 3 and 4, flipped.
    """
    made = make_credit_ranking(people, random_state=random_state)
    names = ("X", "y", "qid", "sensitive_features")
    return _german(*(Side(*(made[f"{name}_{side}"] for name in names)) for side in ("train", "test")))


def _german(train: Side, test: Side) -> Experiment:
    metric = SensitiveSubspaceMetric(sensitive_columns=[0], scale="raw")
    settings, drops = HYPERPARAMETERS["German Credit"], {"Drop age": (0,), "Drop age and sex": (0, 3, 4)}
    return Experiment("German Credit", train, test, flip_sex(test.X), metric, **settings, drops=drops)


def recorded_experiment(name: str) -> Experiment:
    """The very queries on which the authors' program was run, from ``<name>.npz`` in `data_folder`.

    Its numbers are ``RECORDED[name]``.
    """
    if name not in RECORDED:
        raise ValueError(f"name={name!r}: give one of {', '.join(RECORDED)}.")
    path = data_folder() / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"No {path.name} in {data_folder()}: set SKFAIRRANK_DATA to the folder that has it.")
    synthetic = name == "senstir_synthetic"
    columns = ("X", "y", "qid", "majority" if synthetic else "age_group")
    with np.load(path) as arrays:
        train, test = (Side(*(arrays[f"{column}_{side}"] for column in columns)) for side in ("train", "test"))
    if synthetic:  # both sides are numbered from 0
        return _synthetic(train, replace(test, qid=test.qid + len(np.unique(train.qid))))
    return _german(train, test)


def german_credit_people(*, fetch: bool = True) -> Bunch:
    """German Credit, from a file in `data_folder` or else, with `fetch`, from OpenML; an error says where to get it."""
    folder = data_folder()
    for name in GERMAN_FILES:
        if (folder / name).is_file():
            return load_german_credit(folder / name)
    advice = (
        f"No German Credit: {folder.resolve()} has none of {', '.join(GERMAN_FILES)}. Get it by\n"
        f"    curl --location --remote-name {GERMAN_URL}\nand say where it is by\n    export SKFAIRRANK_DATA=."
    )
    if not fetch:
        raise FileNotFoundError(advice)
    try:
        return fetch_german_credit(n_retries=1)
    except OSError as error:
        raise FileNotFoundError(f"{advice} ({error})") from error


def data_folder() -> Path:
    """The folder of data files: what the environment variable SKFAIRRANK_DATA names, else ../shared/data."""
    return Path(os.environ.get("SKFAIRRANK_DATA") or Path("..", "shared", "data"))
