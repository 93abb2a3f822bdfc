"""Adversaries: bounds of the ascent, errors, lambda, and what the closed forms are made of."""

from types import SimpleNamespace

import numpy as np
import pytest
import reference

from skfairrank import SensitiveSubspaceMetric
from skfairrank._kernels import linear
from skfairrank._queries import Queries
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget, ExactGaps, GapsAscent
from skfairrank.adversaries._base import DualStep
from skfairrank.adversaries._exact import budget_supremum
from skfairrank.fair_metrics import MahalanobisMetric
from skfairrank.scores import LinearScore
from skfairrank.training._batches import Batches
from skfairrank.utilities import Tables

STEPS = {"subspace_step_size": 0.01, "subspace_n_steps": 20, "full_step_size": 0.001, "full_n_steps": 20}


def problem(sizes=(5, 3, 1, 5, 4), d=6, K=2, seed=0, spread=1.0):
    """A source of batches, a metric with directions that are neither orthogonal nor of unit norm, and weights."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = spread * rng.normal(size=(len(qid), d))
    metric = (
        SensitiveSubspaceMetric(directions=rng.normal(size=(K, d)) * 3 + 0.1) if K else MahalanobisMetric(np.eye(d))
    )
    metric.fit(np.zeros((2, d)))
    batches = Batches(X, Queries.from_qid(qid, len(X)), Tables(np.zeros(len(X)), np.zeros(max(sizes))))
    return batches, metric, rng.normal(size=d)


def whole(batches):
    (batch,) = batches.in_order()
    return batch


def prepared(adversary, batches, metric, rho=0.5):
    return adversary.prepare(batches, LinearScore(), metric, rho=rho, rng=np.random.default_rng(0))


# The ascent


def test_the_ascent_never_exceeds_the_closed_forms_within_its_own_bounds():
    """It spends d_Q (far items: the identity is optimal), and moves an item by at most r along A: in both phases, since a free
    move along A costs nothing either."""
    for seed in range(6):
        batches, metric, w = problem(sizes=(5, 5, 5), seed=seed, d=4, K=1, spread=100.0)
        steps = {**STEPS, "full_step_size": 0.02}
        ascent = prepared(Ascent(epsilon=0.1, subspace_n_starts=None, dual_step="paper", **steps), batches, metric)
        got = ascent.attack(whole(batches), w, 0.01)
        # Starts, and Adam's steps: a few percent above the step size at most.
        reach, free = 0.05 + 20 * 0.01 * 1.05, 20 * 0.02 * 1.05
        r = reach * np.linalg.norm(metric.directions_[0]) + free * np.abs(metric.sensitive_basis_[0]).sum()
        exact = prepared(ExactBudget(epsilon=got.query_distance, subspace_radius=r), batches, metric).measure(w)[0]
        box = prepared(ExactBox(reach, free), batches, metric).measure(w)[0]
        assert 0.2 * exact < got.regularizer <= exact
        assert 0.5 * box < got.regularizer <= box


@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_an_attack_that_is_not_finite_is_an_error(scale):
    batches, metric, w = problem()
    with pytest.raises(ValueError, match=r"not finite.*StandardScaler"):
        prepared(Ascent(), batches, metric).attack(whole(batches), w * scale, 2.0)


def test_features_whose_distances_overflow_are_an_error():
    """Case 20."""
    batches, metric, _ = problem()
    batches.X[:] *= 1e200
    with pytest.raises(ValueError, match="StandardScaler"):
        prepared(Ascent(), batches, metric)


@pytest.mark.parametrize("kind", [Ascent, GapsAscent])
def test_the_weights_of_queries_count_as_copies_of_them(kind):
    """Two queries of weights 2/3 and 4/3 are three queries, two of them the same, from the same starts."""
    batches, metric, w = problem(sizes=(4, 4), seed=3)
    metric.gaps_ = np.abs(w)
    batch = whole(batches)
    adversary = kind(subspace_n_starts=3, **STEPS)
    weighted = prepared(adversary, batches, metric).attack(batch._replace(weight=np.array([2 / 3, 4 / 3])), w, 0.1)
    rows, offsets = batch.rows[np.r_[0:4, 4:8, 4:8]], np.array([0, 4, 8, 12])
    copied = batch._replace(rows=rows, offsets=offsets, queries=np.array([0, 1, 1]), weight=np.ones(3))
    copies = prepared(adversary, batches, metric).attack(copied, w, 0.1)
    for got, expected in zip(weighted, copies, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10)


# The dual


@pytest.mark.parametrize("distance, epsilon", [(0.2, 0.1), (0.1, 0.2), (0.1, 0.1), (0.3, 0.0), (0.0, 0.3), (0.0, 0.0)])
def test_lambda_grows_while_the_adversary_overspends(distance, epsilon):
    """The sign printed in the paper's Algorithm 1 is a misprint. The step is the ratio of the larger to the smaller, guarded."""
    new = DualStep("paper", epsilon)(2.0, distance)
    assert new == pytest.approx(reference.dual_step(2.0, distance, epsilon))
    assert (new > 2) == (distance > epsilon) and (new < 2) == (distance < epsilon)
    assert new >= DualStep.LEAST == 1e-5


def test_an_adversary_that_spends_nothing_sets_lambda_to_its_minimum_at_once():
    assert DualStep("paper", 1e-3)(2.0, 0.0) == 1e-5


# Closed forms


def test_the_budget_adversary_uses_the_sizes_of_all_training_queries():
    """Not of the batch: the budget is an expectation over queries, with their weights."""
    batches, metric, w = problem(sizes=(2, 3, 5, 5))
    batches.weights = np.array([1.0, 0.5, 0.5, 2.0])
    adversary = prepared(ExactBudget(epsilon=0.3, subspace_radius=0.4), batches, metric, rho=0.25)
    got = adversary.attack(None, w, 1.0)
    value, spent, gradient, multiplier, _ = budget_supremum(
        w, metric.basis_, np.ones(2), np.array([2.0, 3.0, 5.0]), np.array([2, 1, 5]) / 8, 0.3, 0.4
    )
    assert (got.regularizer, got.query_distance) == pytest.approx((value, spent), rel=1e-12)
    assert got.multiplier == pytest.approx(0.25 * multiplier, rel=1e-12)
    np.testing.assert_allclose(got.gradient, gradient, rtol=1e-12)


@pytest.mark.parametrize("K", [0, 1, 3])
def test_the_box_adversary_is_the_best_of_the_corners_for_the_mean_size(K):
    batches, metric, w = problem(sizes=(2, 3, 5), K=K, seed=8)
    got = prepared(ExactBox(0.7, 0.02), batches, metric).attack(None, w, 7.0)
    expected = reference.box_supremum(w, metric.directions_, np.mean([2, 3, 5]), 0.7, 0.02)
    assert got.regularizer == pytest.approx(expected, rel=1e-12)
    assert got.multiplier == 7.0  # the box has no budget: lambda stays


@pytest.mark.parametrize("adversary", [ExactBox(0.7, 0.1), ExactGaps(0.5, 0.1), ExactBudget(0.2, 0.5)], ids=str)
def test_the_dual_norm_ends_where_no_weights_gain(adversary):
    """The largest slope.w with R(w) = mean_size/2 lies between what random weights reach and the dual norm."""
    batches, metric, _ = problem(sizes=(4, 4, 4), d=3, K=1, seed=2)
    metric.gaps_ = np.array([0.5, 1.0, 2.0])
    closed, rng = prepared(adversary, batches, metric), np.random.default_rng(0)
    slope, reached = rng.normal(size=3), 0.0
    for _ in range(4000):
        w = rng.normal(size=3) * rng.integers(0, 2, 3)
        value = closed.measure(w)[0]
        if value > 0:
            reached = max(reached, abs(slope @ w) / np.sqrt(value / 2.0))
    assert 0.9 * reached < closed.dual_norm(slope) and reached <= closed.dual_norm(slope) * (1 + 1e-9)


def test_the_budget_of_any_linear_metric_is_what_ascent_within_it_finds():
    """M with a free direction, a shortened one and a lengthened one; projected ascent comes near and stays below."""
    rng = np.random.default_rng(4)
    rows = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    M = rows.T @ np.diag([0.0, 0.25, 1.0, 4.0]) @ rows
    metric = MahalanobisMetric(M).fit(np.zeros((2, 4)))
    shape = SimpleNamespace(sizes=np.array([3, 3, 5]), weights=np.ones(3), n_features=4)
    budget, w = ExactBudget(0.3, 0.4).prepare(shape, LinearScore(), metric), rng.normal(size=4)
    offsets, rng = np.array([0, 3, 6, 11]), np.random.default_rng(0)
    found = budget.largest_regularizer(LinearScore(), w, np.zeros((11, 4)), offsets, rng)
    assert 0.995 * budget.measure(w)[0] < found <= budget.measure(w)[0] * (1 + 1e-9)
    slope = reference.finite_difference(lambda at: budget.measure(at)[0], w)
    np.testing.assert_allclose(budget.measure(w)[2], slope, rtol=1e-6, atol=1e-8)


# Small kernels


def test_adam_is_the_textbooks():
    rng = np.random.default_rng(0)
    gradients, w, m, v = rng.normal(size=(9, 4)), np.ones(4), np.zeros(4), np.zeros(4)
    for t, g in enumerate(gradients, 1):
        linear.adam_step(w, g, m, v, *linear.adam_factors(t, 0.1))
    remaining = iter(gradients)
    assert w == pytest.approx(reference.adam_ascent(lambda _: next(remaining), np.ones(4), 0.1, 9), rel=1e-13)


# A loop that both sums and stores may be compiled twice, with and without vectors, the way chosen by the addresses of its arrays
# at run time; with sums free to be reassociated the two then differ by rounding, and fits would not repeat to the bit.
PLACED = {
    "scores": lambda a: linear.all_scores(0, 3, a["X"], a["w"], a["c"]),
    "gradient": lambda a: linear.weight_gradient(0, 1, a["X"], np.array([2, 0, 1]), a["c"], 0.3, 3, a["fair"][None]),
    "step": lambda a: linear.adam_step(a["w"], a["e"], a["m"], a["v"], *linear.adam_factors(3, 0.01)),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("d", [3, 6, 19])
def test_results_have_the_same_bits_wherever_arrays_lie(name, d):
    rng = np.random.default_rng(0)
    basis = np.ascontiguousarray(np.linalg.qr(rng.normal(size=(d, 2)))[0].T)
    given = {
        "w": rng.normal(size=d), "basis": basis, "e": 0.01 * rng.normal(size=d), "X": rng.normal(size=(3, d)),
        "c": rng.uniform(0.5, 1.0, size=3), "fair": np.zeros(d), "m": np.zeros(max(d, 8)), "v": np.zeros(max(d, 8)),
        "shrink": np.array([1.0, 0.5]),
    }  # fmt: skip
    room, found = np.zeros(30 * d + 100), set()
    for _ in range(300):
        at, arrays = int(rng.integers(0, 9)), {}
        for key in rng.permutation(list(given)):  # one behind the other, in any order, with small gaps
            arrays[key] = room[at : at + given[key].size].reshape(given[key].shape)
            arrays[key][...] = given[key]
            at += given[key].size + int(rng.integers(0, 3))
        returned = PLACED[name](arrays)
        found.add((repr(returned), *(arrays[key].tobytes() for key in sorted(given))))
    assert len(found) == 1
