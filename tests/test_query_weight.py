"""Training with query weights: an integer weight is the query so often, whatever the regulariser and the solver."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from instruments import Diary, ScoreWithDiary
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_validate
from small_tasks import MIXED, Task, make_task

from skfairrank import (
    FairPGRanker,
    PlackettLuceRanker,
    SensitiveSubspaceMetric,
    SenSTIRRanker,
    senstir_path,
)
from skfairrank.adversaries import ExactBox, ExactBudget, ExactGaps
from skfairrank.metrics import stochastic_ndcg_score
from skfairrank.model_selection import QueryKFold

pytestmark = pytest.mark.once

TASK = make_task(MIXED, seed=1, shuffle=False)
GROUP = np.arange(len(TASK.y)) % 2
WEIGHTS = np.random.default_rng(2).integers(0, 4, len(MIXED))
METRIC = SensitiveSubspaceMetric([[1.0, 1.0, 0.0, 0.0]])
METRIC = FrozenEstimator(METRIC.fit(TASK.X + np.outer(GROUP, [1.0, 0.0, 0.5, 0.0]), sensitive_features=GROUP))
BASIS = np.array([[1.0, 1.0, 0.0, 0.0]]) / np.sqrt(2)
SOLVED = {
    "plain": PlackettLuceRanker(alpha=0.01),
    "box": SenSTIRRanker(METRIC, adversary=ExactBox(subspace_radius=0.2), rho=0.1),
    "gaps": SenSTIRRanker(METRIC, adversary=ExactGaps(gap_radius=0.2), rho=0.1),
    "budget": SenSTIRRanker(METRIC, adversary=ExactBudget(subspace_radius=0.2), rho=0.1),
}
TRAINED = {
    "plain": PlackettLuceRanker(alpha=0.01),
    "box": SenSTIRRanker(METRIC, adversary="exact_box", rho=0.1),
    "ascent": SenSTIRRanker(METRIC, rho=0.1),
    "fair-pg": FairPGRanker(fairness_weight=0.5),
}


def repeated(task, weights):
    """Every query as often as its weight says, and the groups of its rows, which alternate in the task."""
    rows, ids = [], []
    for q, weight in enumerate(weights):
        for k in range(weight):
            rows.append(np.flatnonzero(task.qid == q))
            ids += [10 * q + k] * len(rows[-1])
    rows = np.concatenate(rows)
    return Task(task.X[rows], task.y[rows], np.array(ids)), rows % 2


REPEATED, REPEATED_GROUP = repeated(TASK, WEIGHTS)


def fit(ranker, task=TASK, group=GROUP, **kwargs):
    return clone(ranker).fit(task.X, task.y, qid=task.qid, sensitive_features=group, **kwargs)


def penalty(name, w):
    """rho R of the repeated queries, by definition."""
    if name == "box":
        return 0.1 * REPEATED.box(w, METRIC.estimator.directions_, 0.2, 0.02)
    if name == "gaps":
        reach = 0.2 * METRIC.estimator.gaps_ + 0.02
        return 0.1 * REPEATED.sizes.mean() / 2 * (reach @ np.abs(w)) ** 2
    if name == "budget":
        return 0.1 * REPEATED.budget(w, BASIS, 0.01, 0.2)
    return 0.005 * w @ w


# The deterministic solver


@pytest.mark.parametrize("name", SOLVED)
def test_a_solution_with_integer_weights_is_that_of_repeated_queries(name):
    """A weight of 0 leaves the query out: `repeated` has none of it."""
    assert (WEIGHTS == 0).any() and WEIGHTS.max() == 3
    ranker = clone(SOLVED[name]).set_params(solver="lbfgs", tol=1e-8, max_iter=5000)
    weighted, twin = fit(ranker, query_weight=WEIGHTS), fit(ranker, REPEATED, REPEATED_GROUP)
    assert weighted.coef_ == pytest.approx(twin.coef_, abs=2e-4)
    assert not np.allclose(weighted.coef_, fit(ranker).coef_, atol=0.02)
    values = [REPEATED.utility(w)[0] - penalty(name, w) for w in (weighted.coef_, twin.coef_)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)
    assert weighted.history_["utility"][-1] == pytest.approx(REPEATED.utility(weighted.coef_)[0], rel=1e-9)
    if name in ("box", "gaps", "budget"):
        assert 0.1 * weighted.history_["regularizer"][-1] == pytest.approx(penalty(name, weighted.coef_), rel=1e-9)


@pytest.mark.parametrize("adversary", [ExactBox(0.2), ExactGaps(), ExactBudget(subspace_radius=0.2)], ids=str)
def test_a_path_with_weights_is_that_of_repeated_queries(adversary):
    settings = {"metric": METRIC, "adversary": adversary, "tol": 1e-8, "rhos": [0.03, 0.3, 3.0]}
    path = senstir_path(TASK.X, TASK.y, qid=TASK.qid, query_weight=WEIGHTS, **settings)
    twin = senstir_path(REPEATED.X, REPEATED.y, qid=REPEATED.qid, **settings)
    assert path.coefs == pytest.approx(twin.coefs, abs=2e-4)
    assert path.utilities == pytest.approx(twin.utilities, abs=1e-5)
    assert path.regularizers == pytest.approx(twin.regularizers, rel=1e-3)


# Stochastic training


@pytest.mark.parametrize("name", TRAINED)
def test_steps_over_all_queries_with_integer_weights_are_those_over_repeated_queries(name):
    """Exact gradients of the whole set, and starts that the items of a step share: nothing else is random."""
    task = make_task((4,) * len(WEIGHTS), seed=3, shuffle=False)
    task.y += 1  # merits are positive
    (twin, twin_group), group = repeated(task, WEIGHTS), np.arange(len(task.y)) % 2
    ranker = clone(TRAINED[name]).set_params(
        gradient="exact", batch_size=1000, max_iter=60, learning_rate=0.03, random_state=0
    )
    weighted, whole = fit(ranker, task, group, query_weight=WEIGHTS), fit(ranker, twin, twin_group)
    assert weighted.coef_ == pytest.approx(whole.coef_, rel=1e-6)
    for key in ("utility", "regularizer", "query_distance", "lambda"):
        assert weighted.history_[key] == pytest.approx(whole.history_[key], rel=1e-6, abs=1e-12), key
    assert weighted.history_["regularizer"][-1] > 0 or name == "plain"
    assert not np.allclose(weighted.coef_, fit(ranker, task, group).coef_, rtol=0.01)


EVERY = {f"lbfgs, {name}": ranker for name, ranker in SOLVED.items()} | {f"adam, {n}": r for n, r in TRAINED.items()}


@pytest.mark.parametrize("name", EVERY)
def test_only_the_proportions_of_weights_count_to_the_bit(name):
    """Equal weights change nothing; others may be multiplied by powers of two."""
    settings = {"solver": name.split(",")[0], "max_iter": 200, "random_state": 0, "batch_size": 5, "tol": 1e-3}
    ranker, equal = clone(EVERY[name]).set_params(**settings), np.ones(len(MIXED))
    for base, others in ((None, (equal, 0.1 * equal, 1e9 * equal)), (WEIGHTS, (2.0**-20 * WEIGHTS, 2.0**30 * WEIGHTS))):
        expected = fit(ranker, query_weight=base)
        for weights in others:
            found = fit(ranker, query_weight=weights)
            np.testing.assert_array_equal(found.coef_, expected.coef_)
            for key, values in expected.history_.items():
                np.testing.assert_array_equal(found.history_[key], values)


@pytest.mark.parametrize("gradient", ["reinforce", "plrank", "exact"])
def test_a_query_without_weight_teaches_nothing_in_mini_batches_either(gradient):
    """Other relevances in it: the same weights, to the bit."""
    ranker = PlackettLuceRanker(gradient=gradient, max_iter=50, batch_size=3, random_state=0)
    other = np.where(np.isin(TASK.qid, np.flatnonzero(WEIGHTS == 0)), 4.0 - TASK.y, TASK.y)
    one, two = (clone(ranker).fit(TASK.X, y, qid=TASK.qid, query_weight=WEIGHTS).coef_ for y in (TASK.y, other))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, clone(ranker).fit(TASK.X, TASK.y, qid=TASK.qid).coef_)


def test_held_out_queries_count_by_their_weights():
    """The objective of early stopping, by its definition."""
    task = make_task((5,) * 40, seed=4)
    weights, diary = np.random.default_rng(0).integers(1, 5, 40), Diary()
    ranker = PlackettLuceRanker(
        score_function=ScoreWithDiary(diary), early_stopping=True, max_iter=30, n_iter_no_change=99, random_state=0
    ).fit(task.X, task.y, qid=task.qid, query_weight=weights)
    for score, (_, rows, w) in zip(ranker.validation_scores_, diary.looks, strict=True):
        rows = rows[np.isin(task.qid[rows], np.unique(task.qid[task.y > 0]))]
        y, s, qid = task.y[rows], task.X[rows] @ w, task.qid[rows]
        expected = stochastic_ndcg_score(y, s, qid=qid, n_samples="exact", query_weight=dict(enumerate(weights)))
        assert score == pytest.approx(expected, rel=1e-12)


# How weights are given


@pytest.mark.parametrize("name", ["plain", "ascent", "fair-pg"])
def test_weights_may_be_given_per_row_or_by_id(name):
    ranker, names = (
        clone(TRAINED[name]).set_params(max_iter=20, random_state=0),
        np.array([f"q{k:02}" for k in range(24)]),
    )
    expected, task = fit(ranker, query_weight=WEIGHTS).coef_, Task(TASK.X, TASK.y, names[TASK.qid])
    for weights in (
        WEIGHTS[TASK.qid].tolist(),
        {**dict(zip(names[::-1], WEIGHTS[::-1], strict=True)), "other": 7.0},
        pd.Series(WEIGHTS[::-1], index=names[::-1]),
    ):
        np.testing.assert_array_equal(fit(ranker, task, query_weight=weights).coef_, expected)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda w: w - 1.0, "must be >= 0"),
        (lambda w: np.where(w == 3, np.inf, w), "finite"),
        (lambda w: np.where(w == 3, np.nan, w), "finite|missing|NaN"),
        (lambda w: 0 * w, "zero for every query"),
        (lambda w: w[:-1], "one number per row, or one per query"),
        (lambda w: dict(enumerate(w[:-1])), "no weight for 1 of 24 queries"),
        (lambda w: np.arange(len(TASK.y)) + 1.0, "query"),
        (lambda w: ["much"] * len(w), "query_weight"),
    ],
)
def test_wrong_weights_are_an_error(change, message):
    with pytest.raises(ValueError, match=message):
        fit(PlackettLuceRanker(max_iter=2), query_weight=change(WEIGHTS.astype(float)))


@pytest.mark.parametrize("weights", [WEIGHTS[TASK.qid], dict(enumerate(WEIGHTS))], ids=["per row", "by id"])
def test_searches_hand_weights_to_every_fit(weights):
    """With metadata routing nothing is to be requested: rows are cut with the folds, a mapping stays whole."""
    given, y = {"qid": TASK.qid, "query_weight": weights}, TASK.y + 1  # NDCG is defined everywhere
    ranker, settings = PlackettLuceRanker(max_iter=20, random_state=0), {"cv": QueryKFold(2), "error_score": "raise"}
    with sklearn.config_context(enable_metadata_routing=True):
        folds = cross_validate(ranker, TASK.X, y, params=given, return_estimator=True, return_indices=True, **settings)
        search = GridSearchCV(ranker, {"alpha": [0.1]}, **settings).fit(TASK.X, y, **given)
    for fold, rows in zip(folds["estimator"], folds["indices"]["train"], strict=True):
        task = Task(TASK.X[rows], y[rows], TASK.qid[rows])
        np.testing.assert_array_equal(fold.coef_, fit(ranker, task, None, query_weight=WEIGHTS[task.qid]).coef_)
    whole = fit(clone(ranker).set_params(alpha=0.1), Task(TASK.X, y, TASK.qid), query_weight=WEIGHTS)
    np.testing.assert_array_equal(search.best_estimator_.coef_, whole.coef_)
