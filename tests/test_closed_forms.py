"""The suprema in closed form, for any linear fair metric, against general optimisers, corners and finite differences."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import reference
from sklearn.base import clone

from skfairrank.adversaries import ExactBox, ExactBudget, ExactGaps
from skfairrank.adversaries._exact import effective_sizes
from skfairrank.fair_metrics import MahalanobisMetric
from skfairrank.scores import LinearScore

pytestmark = pytest.mark.once

CLOSED = [ExactBox(0.7, 0.1), ExactGaps(0.5, 0.1), ExactBudget(0.2, 0.5)]
MIXED = [[5], [5, 5], [2, 3, 5], [1, 10], [1, 1, 1, 50], [2, 2, 3, 3, 3, 8]]
# The shrinks of a metric's rows: the projector, one with cheaper and dearer rows beside a free one, and one of full rank.
METRICS = {"projector": [1, 1], "mixed": [1, 0.5, -1], "no free row": [0.9, 0.3], "full": [1, 0.8, 0.5, -0.5, -2]}
every_metric = pytest.mark.parametrize("shrink", METRICS.values(), ids=METRICS)
every_size = pytest.mark.parametrize("sizes", MIXED, ids=str)
every_adversary = pytest.mark.parametrize("adversary", CLOSED, ids=str)
either_distance = pytest.mark.parametrize("score_distance", ["squared", "centered"])


def problem(shrink=(1, 1), K=2, d=5, seed=0):
    """A metric of orthonormal rows with their shrinks, with raw directions and gaps; and weights."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, len(shrink))))[0].T
    metric = {"directions_": rng.normal(size=(K, d)), "gaps_": np.linspace(0.2, 1.0, d)}
    return SimpleNamespace(basis_=basis, shrink_=np.array(shrink, float), **metric), rng.normal(size=d)


def closed(adversary, sizes, metric, score_distance="squared", weights=None, rho=1.0):
    adversary = clone(adversary).set_params(score_distance=score_distance)
    weights = np.ones(len(sizes)) if weights is None else weights
    shape = SimpleNamespace(sizes=np.array(sizes), weights=weights, n_features=metric.basis_.shape[1])
    return adversary.prepare(shape, LinearScore(), metric, rho=rho)


def budget(w, metric, sizes, epsilon, radius):
    return closed(ExactBudget(epsilon, radius), sizes, metric).measure(w)


# The budget


@every_metric
@every_size
@pytest.mark.parametrize("epsilon, radius", [(0.3, 0.7), (0.01, 0.2), (2.0, 0.01), (1e-4, 3.0)])
def test_the_exact_budget_is_what_slsqp_finds(sizes, epsilon, radius, shrink):
    """DESIGN: to 1e-11. All of the paper's budget, spent where it pays."""
    metric, w = problem(shrink, seed=len(sizes))
    value, spent, *_ = budget(w, metric, sizes, epsilon, radius)
    found = reference.budget_supremum(w, metric.basis_, sizes, epsilon, radius, shrink)
    assert value == pytest.approx(found, rel=1e-10) and spent == pytest.approx(epsilon, rel=1e-9)


@either_distance
@pytest.mark.parametrize("shrink", [[1], [0.5], [1, -1], [1, 0.4, -0.5]], ids=str)
@pytest.mark.parametrize("sizes", [[2, 2], [1, 3], [1, 2, 2], [2, 5]], ids=str)
def test_no_moves_of_single_items_are_better(sizes, shrink, score_distance):
    """By SLSQP over every coordinate of every item: nothing of the derivation is taken for granted."""
    metric, w = problem(shrink, d=3)
    value, *_ = closed(ExactBudget(0.3, 0.5), sizes, metric, score_distance).measure(w)
    found = reference.item_moves_supremum(
        w, metric.basis_, sizes, 0.3, 0.5, np.random.default_rng(0), 8, shrink, score_distance == "centered"
    )
    assert found == pytest.approx(value, rel=1e-5)


def test_one_size_has_a_closed_form():
    metric, w = problem(d=6)
    a, b = 0.7 * np.linalg.norm(metric.basis_ @ w), np.linalg.norm(reference.projector(metric.basis_) @ w)
    for epsilon in (1e-8, 0.3, 1e6):
        expected = 7 / 2 * (a + np.sqrt(epsilon) * b) ** 2
        assert budget(w, metric, [7, 7], epsilon, 0.7)[0] == pytest.approx(expected, rel=1e-12)


@every_size
def test_the_multiplier_is_the_price_of_the_budget(sizes):
    metric, w = problem([1], d=4)
    attack = closed(ExactBudget(0.3, 0.5), sizes, metric, rho=0.25).attack(None, w, 7.0)
    more, less = (budget(w, metric, sizes, epsilon, 0.5)[0] for epsilon in (0.3001, 0.2999))
    assert attack.multiplier == pytest.approx(0.25 * (more - less) / 2e-4, rel=1e-5)
    assert closed(ExactBox(), sizes, metric).attack(None, w, 7.0).multiplier == 7.0  # no budget: lambda stays


@every_size
def test_limits_of_the_budget(sizes):
    metric, w = problem()
    n, P, basis = np.asarray(sizes, float), reference.projector(metric.basis_), metric.basis_
    a, b = 0.5 * np.linalg.norm(basis @ w), np.linalg.norm(P @ w)
    # No budget: the sensitive move alone.
    value, spent, gradient, _ = budget(w, metric, sizes, 0.0, 0.5)
    assert value == pytest.approx(n.mean() / 2 * a**2, rel=1e-12) and spent == 0.0
    assert gradient == pytest.approx(n.mean() * 0.25 * basis.T @ (basis @ w), rel=1e-12)
    # No sensitive move, or one so small that it counts as none: all of it to the largest queries.
    share = np.mean(n == n.max())
    expected = share * n.max() / 2 * (np.sqrt(0.3 / share) * b) ** 2
    nothing, _ = problem(shrink=())
    for value, _, gradient, _ in (
        budget(w, metric, sizes, 0.3, 0.0),
        budget(P @ w, nothing, sizes, 0.3, 0.5),
        budget(P @ w, metric, sizes, 0.3, 0.5),
    ):
        assert value == pytest.approx(expected, rel=1e-9)
        # Only along P w: where A w = 0 there is a kink across.
        assert P @ gradient == pytest.approx(n.max() * 0.3 * P @ w, rel=1e-6, abs=1e-9)
    for radius in (1e-17, 1e-15, 1e-13, 1e-10, 1e-7):
        assert budget(w, metric, sizes, 0.3, radius)[0] == pytest.approx(expected, rel=1e-5)
    # Neither; and no weights.
    assert budget(w, metric, sizes, 0.0, 0.0)[0] == 0.0
    value, spent, gradient, multiplier = budget(np.zeros(5), metric, sizes, 0.3, 0.5)
    assert value == 0.0 and (gradient == 0).all() and np.isfinite([spent, multiplier]).all()
    # Directions that span everything leave nothing to the budget.
    everything, w = problem([1] * 4, d=4)
    value, spent, gradient, multiplier = budget(w, everything, sizes, 0.3, 0.5)
    assert value == pytest.approx(n.mean() / 2 * 0.25 * (w @ w), rel=1e-12) and spent == 0.0 and multiplier == 0.0
    assert gradient == pytest.approx(n.mean() * 0.25 * w, rel=1e-12)


# The boxes


@every_metric
@pytest.mark.parametrize("K", [0, 1, 3])
@pytest.mark.parametrize("radius, reach", [(0.7, 0.02), (0.0, 0.1), (0.3, 0.0), (0.0, 0.0)])
def test_the_box_is_the_best_of_its_corners(K, radius, reach, shrink):
    """It spends what the free move to its corner costs."""
    metric, w = problem(shrink, K)
    value, spent, *_ = closed(ExactBox(radius, reach), [2, 3, 5], metric).measure(w)
    assert value == pytest.approx(reference.box_supremum(w, metric.directions_, 10 / 3, radius, reach), rel=1e-12)
    cost = np.sum((reference.shrinker(metric.basis_, shrink) @ (reach * np.sign(w))) ** 2)
    assert spent == pytest.approx(cost, rel=1e-10)


def most_about_the_mean(n):
    """The largest sum of squares about their mean of n numbers between -1 and 1, by all corners."""
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    return np.max(np.sum((corners - corners.mean(axis=1, keepdims=True)) ** 2, axis=1))


@pytest.mark.parametrize("n", range(1, 9))
def test_the_effective_size_is_the_most_of_all_corners(n):
    assert effective_sizes(np.array([n]), True)[0] == pytest.approx(most_about_the_mean(n))
    assert effective_sizes(np.array([n]), False)[0] == n


@pytest.mark.parametrize("sizes", [(2, 2), (3,), (1, 4, 5), (1, 2, 2, 3, 3, 7)], ids=str)
@pytest.mark.parametrize("adversary", CLOSED[:2], ids=str)
def test_a_centered_box_is_the_best_of_the_corners_of_all_items(adversary, sizes):
    """Each item's score changes by up to c, independently of the others."""
    metric, w = problem()
    if isinstance(adversary, ExactBox):
        c = 0.7 * np.abs(metric.directions_ @ w).sum() + 0.1 * np.abs(w).sum()
    else:
        c = (0.5 * metric.gaps_ + 0.1) @ np.abs(w)
    expected = np.mean([c**2 / 2 * most_about_the_mean(n) for n in sizes])
    assert closed(adversary, sizes, metric, "centered").measure(w)[0] == pytest.approx(expected, rel=1e-12)


# All of them


@every_adversary
@every_metric
@either_distance
@every_size
def test_their_gradients_are_their_slopes_and_the_value_is_that_of_all_weights(
    sizes, score_distance, shrink, adversary
):
    metric, w = problem(shrink)
    measure = closed(adversary, sizes, metric, score_distance).measure
    slope = reference.finite_difference(lambda at: measure(at)[0], w)
    np.testing.assert_allclose(measure(w)[2], slope, rtol=1e-5, atol=1e-7)
    twice = closed(adversary, [*sizes, sizes[0]], metric, score_distance).measure(w)[0]
    weights = np.array([2, *[1] * (len(sizes) - 1)]) * len(sizes) / (len(sizes) + 1)
    assert closed(adversary, sizes, metric, score_distance, weights).measure(w)[0] == pytest.approx(twice, rel=1e-9)


@every_adversary
@either_distance
@pytest.mark.parametrize("sizes", [(3, 3, 3), (1, 2, 5), (4, 4, 4)], ids=str)
def test_the_dual_norm_ends_where_no_weights_gain(adversary, sizes, score_distance):
    """The largest slope.w with R(w) = mean size / 2, or more: no random weights reach it. Centered, it grows where queries of
    sizes that are not even count less: of size 3 by (9/8)^.5."""
    metric, rng, reached = problem([1], K=1, d=3)[0], np.random.default_rng(0), 0.0
    form, slope = closed(adversary, sizes, metric, score_distance), rng.normal(size=3)
    for _ in range(4000):
        w = rng.normal(size=3) * rng.integers(0, 2, 3)
        value = form.measure(w)[0]
        if value > 0:
            reached = max(reached, abs(slope @ w) / np.sqrt(value / (np.mean(sizes) / 2)))
    norm, plain = form.dual_norm(slope), closed(adversary, sizes, metric).dual_norm(slope)
    assert reached <= norm * (1 + 1e-9)
    if len(set(sizes)) == 1:
        is_larger = score_distance == "centered" and sizes[0] == 3
        assert norm == pytest.approx(plain * np.sqrt(9 / 8 if is_larger else 1), rel=1e-12)


@every_adversary
def test_queries_of_one_item_are_free_where_scores_are_compared_about_their_mean(adversary):
    metric, w = problem()
    value, _, gradient, _ = closed(adversary, (1, 1), metric, "centered").measure(w)
    assert value == 0.0 and (gradient == 0.0).all()


def test_the_budget_of_any_linear_metric_is_what_ascent_within_it_finds():
    """M with a free direction, a shortened one and a lengthened one; projected ascent comes near and stays below."""
    rng = np.random.default_rng(4)
    rows = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    metric = MahalanobisMetric(rows.T @ np.diag([0.0, 0.25, 1.0, 4.0]) @ rows).fit(np.zeros((2, 4)))
    form, w = closed(ExactBudget(0.3, 0.4), (3, 3, 5), metric), rng.normal(size=4)
    offsets, value = np.array([0, 3, 6, 11]), form.measure(w)[0]
    found = form.largest_regularizer(LinearScore(), w, np.zeros((11, 4)), offsets, np.random.default_rng(0))
    assert 0.995 * value < found <= value * (1 + 1e-9)
