"""The tasks of Bower et al. (2021): queries, fair metric, hyperparameters, and what is judged."""

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

from skfairrank._queries import Queries
from skfairrank.datasets import (
    fetch_german_credit,
    flip_sex,
    load_german_credit,
    make_biased_ranking,
    make_credit_ranking,
)
from skfairrank.experiments._paper import HYPERPARAMETERS, RECORDED
from skfairrank.fair_metrics._subspace import SensitiveSubspaceMetric
from skfairrank.inspection import nearest_queries
from skfairrank.metrics import group_exposure_disparity, kendall_tau_score, ndcg_score, stochastic_ndcg_score

__all__ = [
    "Experiment",
    "Side",
    "data_folder",
    "german_credit_experiment",
    "german_credit_people",
    "recorded_experiment",
    "synthetic_experiment",
]

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
        Not the paper's: of the deterministic solver, and the bounds of `SenSTIRRanker` with ``adversary="exact_box"`` and
        ``"exact"`` that reach about as far as the attack.
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

        Returns
        -------
        numbers : dict of str to float
            ``ndcg`` and ``disparity``, of group exposure, of the list sorted by score; ``stochastic_ndcg`` and
            ``stochastic_disparity``, of the policy that draws rankings by the scores, which the paper reports; ``tau``,
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
    """The paper's synthetic task: 100 training and 100 test queries of 10 items, of which the authors' are one draw.

    Parameters
    ----------
    random_state : int
        Of `skfairrank.datasets.make_biased_ranking`.

    Returns
    -------
    experiment : Experiment
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
    """German Credit: people split at random and drawn into 500 training and 100 test queries of 10.

    Parameters
    ----------
    people : Bunch
        What `german_credit_people`, `skfairrank.datasets.load_german_credit` or `fetch_german_credit` returns.
    random_state : int
        Of `skfairrank.datasets.make_credit_ranking`.

    Returns
    -------
    experiment : Experiment
        Sensitive is age, column 0; hypothetical is everyone with sex, columns 3 and 4, flipped.
    """
    made = make_credit_ranking(people, random_state=random_state)
    return _german(
        *(
            Side(*(made[f"{name}_{side}"] for name in ("X", "y", "qid", "sensitive_features")))
            for side in ("train", "test")
        )
    )


def _german(train: Side, test: Side) -> Experiment:
    metric = SensitiveSubspaceMetric(sensitive_columns=[0], scale="raw")
    settings, drops = HYPERPARAMETERS["German Credit"], {"Drop age": (0,), "Drop age and sex": (0, 3, 4)}
    return Experiment("German Credit", train, test, flip_sex(test.X), metric, **settings, drops=drops)


def recorded_experiment(name: str) -> Experiment:
    """The very queries on which the authors' program was run, whose numbers are ``RECORDED[name]``.

    Parameters
    ----------
    name : {"senstir_synthetic", "german_seed0", "german_seed1"}
        The file ``<name>.npz`` is looked for in `data_folder`.

    Returns
    -------
    experiment : Experiment

    Raises
    ------
    FileNotFoundError
        If it is not there.
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
        return _synthetic(train, replace(test, qid=test.qid + Queries.from_qid(train.qid, len(train.y)).n_queries))
    return _german(train, test)


def german_credit_people(*, fetch: bool = True) -> Bunch:
    """German Credit, from a file in `data_folder` or else from OpenML.

    Parameters
    ----------
    fetch : bool, default=True
        Whether to ask OpenML where there is no file.

    Returns
    -------
    people : Bunch
        As from `skfairrank.datasets.load_german_credit`.

    Raises
    ------
    FileNotFoundError
        If there is no file and OpenML was not asked or not reached. The message says where to get the file.
    """
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
