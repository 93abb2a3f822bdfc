"""Parameters that are NumPy's numbers count as Python's: unsigned integers do not wrap, short floats do not round sums."""

import numpy as np
import pytest
from sklearn.base import clone

from skfairrank import FairPGRanker, PlackettLuceRanker, RandomRanker, SenSTIRRanker, senstir_path
from skfairrank import metrics as m
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget
from skfairrank.datasets import make_biased_ranking
from skfairrank.model_selection import QueryKFold, QueryShuffleSplit, train_test_query_split

TASK = make_biased_ranking(n_queries=30, random_state=0)
X, y, QID, GROUPS = TASK.data, TASK.target, TASK.qid, TASK.sensitive_features
SCORES = X @ [1.0, -0.5]

# Floats that every type holds exactly.
TRAINING = {
    "max_iter": 30, "n_samples": 25, "batch_size": 3, "n_iter_no_change": 2, "random_state": 3, "verbose": 0,
    "validation_fraction": 0.25, "tol": 2.0**-10, "learning_rate": 0.25, "alpha": 2.0**-6,
}  # fmt: skip
SENSTIR = {"rho": 0.25, "fair_start": 0.125, "metric": [[0.0, 1.0]]}
ASCENT = {
    "adversary__subspace_n_steps": 5, "adversary__full_n_steps": 5, "adversary__subspace_n_starts": 4,
    "adversary__epsilon": 0.5, "adversary__subspace_step_size": 0.125, "adversary__full_step_size": 0.125,
    "adversary__subspace_init": 0.25,
}  # fmt: skip
SOLVED = {**TRAINING, "solver": "lbfgs", "early_stopping": False}
BOX = {"adversary__subspace_radius": 0.25, "adversary__feature_radius": 0.125}
BUDGET = {"adversary__subspace_radius": 0.25, "adversary__epsilon": 0.5}


TRAINED = {**TRAINING, "early_stopping": True}
RANKERS = {
    "plain": (PlackettLuceRanker(), TRAINED),
    "plain, lbfgs": (PlackettLuceRanker(), SOLVED),
    "fair-pg": (FairPGRanker(), {**TRAINED, "fairness_weight": 0.5}),
    "ascent": (SenSTIRRanker(adversary=Ascent()), {**TRAINED, **SENSTIR, **ASCENT}),
    "box, lbfgs": (SenSTIRRanker(adversary=ExactBox()), {**SOLVED, **SENSTIR, **BOX}),
    "budget, lbfgs": (SenSTIRRanker(adversary=ExactBudget()), {**SOLVED, **SENSTIR, **BUDGET}),
}
INTEGERS = [np.uint8, np.uint32, np.uint64, np.int8, np.int64]
FLOATS = [np.float16, np.float32, np.float64]


def everything(ranker, settings):
    ranker = clone(ranker).set_params(**settings).fit(X, y, qid=QID, sensitive_features=GROUPS)
    found = {name: getattr(ranker, name, None) for name in ("coef_", "n_iter_", "lambda_", "validation_scores_")}
    return {**found, **ranker.history_}


def in_types(settings, integer, real):
    types = {bool: np.bool_, int: integer, float: real}
    return {key: types.get(type(value), lambda value: value)(value) for key, value in settings.items()}


@pytest.mark.parametrize("name", RANKERS)
def test_rankers_take_numpy_numbers(name):
    ranker, settings = RANKERS[name]
    expected = everything(ranker, settings)
    changes = [in_types(settings, *types) for types in zip(INTEGERS, [*FLOATS, np.float32, np.float16], strict=True)]
    # The shortest ones also each alone, so that no two of them make up for each other.
    changes += [{**settings, key: value} for key, value in changes[0].items() if type(value) is not type(settings[key])]
    for changed in changes:
        found = everything(ranker, changed)
        assert all(np.array_equal(found[key], expected[key]) for key in expected), changed


CALLS = {
    "sample_rankings": lambda number: PlackettLuceRanker(max_iter=9, random_state=0)
    .fit(X, y, qid=QID)
    .sample_rankings(X, qid=QID, n_samples=number(5), random_state=number(3)),
    "RandomRanker": lambda number: RandomRanker(random_state=number(3)).fit(X, y, qid=QID).coef_,
    "make_biased_ranking": lambda number: make_biased_ranking(n_queries=number(5), random_state=number(3)).data,
    "ndcg_score": lambda number: m.ndcg_score(y, SCORES, qid=QID, k=number(3)),
    "stochastic_ndcg_score": lambda number: m.stochastic_ndcg_score(
        y, SCORES, qid=QID, k=number(3), n_samples=number(7), random_state=number(2)
    ),
    "group_exposure_disparity": lambda number: m.group_exposure_disparity(
        y, SCORES, qid=QID, sensitive_features=GROUPS, n_samples=number(7), random_state=number(2)
    ),
    "QueryKFold": lambda number: np.concatenate(
        [test for _, test in QueryKFold(number(3), shuffle=True, random_state=number(2)).split(X, y, qid=QID)]
    ),
    "QueryShuffleSplit": lambda number: [
        fold[0].tolist() + fold[1].tolist()
        for fold in QueryShuffleSplit(
            number(2), test_size=3, train_size=9, random_state=number(2)
        ).split(X, y, qid=QID)
    ],
    "train_test_query_split": lambda number: train_test_query_split(
        X, qid=QID, test_size=number(4), random_state=number(2)
    )[0],
    "senstir_path": lambda number: senstir_path(
        X, y, qid=QID, metric=[[0.0, 1.0]], n_rhos=number(4), max_iter=number(100), alpha=1e-3, random_state=number(0)
    ).coefs,
    "senstir_path, adam": lambda number: senstir_path(
        X, y, qid=QID, metric=[[0.0, 1.0]], rhos=[0.1, 0.2, 0.4], max_iter=number(21), solver="adam", random_state=number(0),
        batch_size=number(4),
    ).coefs,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_take_numpy_integers(name):
    expected = CALLS[name](int)
    for integer in INTEGERS:
        np.testing.assert_array_equal(CALLS[name](integer), expected)
