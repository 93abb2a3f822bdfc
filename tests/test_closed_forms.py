"""The two suprema in closed form, for any linear fair metric, against general optimisers and finite differences."""

from types import SimpleNamespace

import numpy as np
import pytest
import reference

from skfairrank.adversaries._exact import Box, budget_supremum

pytestmark = pytest.mark.once

# The shrinks of a metric's rows: the projector, one with cheaper and dearer rows beside a free one, and one of full rank.
METRICS = {"projector": [1, 1], "mixed": [1, 0.5, -1], "no free row": [0.9, 0.3], "full": [1, 0.8, 0.5, -0.5, -2]}


def orthonormal(K, d, rng):
    return np.ascontiguousarray(np.linalg.qr(rng.normal(size=(d, K)))[0].T)


# The budget


def budget(w, basis, sizes, epsilon, radius, shrink=None):
    """Value, spent, multiplier and gradient for a list of query sizes; the projector by default."""
    distinct, count = np.unique(np.asarray(sizes, float), return_counts=True)
    shrink = np.ones(len(basis)) if shrink is None else np.array(shrink, float)
    value, spent, gradient, multiplier, _ = budget_supremum(
        w, basis, shrink, distinct, count / count.sum(), epsilon, radius
    )
    return value, spent, multiplier, gradient


MIXED = [[5], [5, 5], [2, 3, 5], [1, 10], [1, 1, 1, 50], [2, 2, 3, 3, 3, 8]]


@pytest.mark.parametrize("shrink", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("sizes", MIXED)
@pytest.mark.parametrize("epsilon, radius", [(0.3, 0.7), (0.01, 0.2), (2.0, 0.01), (1e-4, 3.0)])
def test_the_exact_budget_is_what_slsqp_finds(sizes, epsilon, radius, shrink):
    """DESIGN: to 1e-11. All of the paper's budget, spent where it pays."""
    rng = np.random.default_rng(len(sizes))
    basis, w = orthonormal(len(shrink), 5, rng), rng.normal(size=5)
    value, spent, _, _ = budget(w, basis, sizes, epsilon, radius, shrink)
    assert value == pytest.approx(reference.budget_supremum(w, basis, sizes, epsilon, radius, shrink), rel=1e-10)
    assert spent == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("shrink", [[1], [0.5], [1, -1], [1, 0.4, -0.5]], ids=str)
@pytest.mark.parametrize("sizes", [[2, 2], [1, 3], [1, 2, 2]])
def test_no_moves_of_single_items_are_better(sizes, shrink):
    """By SLSQP over every coordinate of every item: nothing of the derivation is taken for granted."""
    rng = np.random.default_rng(0)
    basis, w = orthonormal(len(shrink), 3, rng), rng.normal(size=3)
    value, *_ = budget(w, basis, sizes, 0.3, 0.5, shrink)
    found = reference.item_moves_supremum(w, basis, sizes, 0.3, 0.5, rng, shrink=shrink)
    assert found == pytest.approx(value, rel=1e-6)


def test_one_size_has_a_closed_form():
    rng = np.random.default_rng(1)
    basis, w = orthonormal(2, 6, rng), rng.normal(size=6)
    a, b = 0.7 * np.linalg.norm(basis @ w), np.linalg.norm(reference.projector(basis) @ w)
    for epsilon in (1e-8, 0.3, 1e6):
        assert budget(w, basis, [7, 7], epsilon, 0.7)[0] == pytest.approx(
            7 / 2 * (a + np.sqrt(epsilon) * b) ** 2, rel=1e-12
        )


@pytest.mark.parametrize("shrink", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("sizes", MIXED)
@pytest.mark.parametrize("epsilon, radius", [(0.3, 0.7), (1e-3, 0.2)])
def test_the_gradient_of_the_budget_is_its_slope(sizes, epsilon, radius, shrink):
    rng = np.random.default_rng(2)
    basis, w = orthonormal(len(shrink), 5, rng), rng.normal(size=5)
    *_, gradient = budget(w, basis, sizes, epsilon, radius, shrink)
    slope = reference.finite_difference(lambda w: budget(w, basis, sizes, epsilon, radius, shrink)[0], w)
    assert gradient == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("sizes", MIXED)
def test_the_multiplier_is_the_price_of_the_budget(sizes):
    rng = np.random.default_rng(3)
    basis, w = orthonormal(1, 4, rng), rng.normal(size=4)
    _, _, multiplier, _ = budget(w, basis, sizes, 0.3, 0.5)
    price = (budget(w, basis, sizes, 0.3001, 0.5)[0] - budget(w, basis, sizes, 0.2999, 0.5)[0]) / 2e-4
    assert multiplier == pytest.approx(price, rel=1e-5)


@pytest.mark.parametrize("sizes", MIXED)
def test_limits_of_the_budget(sizes):
    rng = np.random.default_rng(4)
    basis, w = orthonormal(2, 5, rng), rng.normal(size=5)
    n, P = np.asarray(sizes, float), reference.projector(basis)
    a, b = 0.5 * np.linalg.norm(basis @ w), np.linalg.norm(P @ w)
    # No budget: the sensitive move alone.
    value, spent, _, gradient = budget(w, basis, sizes, 0.0, 0.5)
    assert value == pytest.approx(n.mean() / 2 * a**2, rel=1e-12) and spent == 0.0
    assert gradient == pytest.approx(n.mean() * 0.25 * basis.T @ (basis @ w), rel=1e-12)
    # No sensitive move: all of it to the largest queries.
    share = np.mean(n == n.max())
    expected = share * n.max() / 2 * (np.sqrt(0.3 / share) * b) ** 2
    for value, _, _, gradient in (
        budget(w, basis, sizes, 0.3, 0.0),
        budget(P @ w, np.zeros((0, 5)), sizes, 0.3, 0.5),
        budget(P @ w, basis, sizes, 0.3, 0.5),
    ):
        assert value == pytest.approx(expected, rel=1e-9)
        # Only along P w: where A w = 0 there is a kink across.
        assert P @ gradient == pytest.approx(n.max() * 0.3 * P @ w, rel=1e-6, abs=1e-9)
    # Neither.
    assert budget(w, basis, sizes, 0.0, 0.0)[0] == 0.0
    # No weights.
    value, spent, multiplier, gradient = budget(np.zeros(5), basis, sizes, 0.3, 0.5)
    assert value == 0.0 and (gradient == 0).all() and np.isfinite([spent, multiplier]).all()


@pytest.mark.parametrize("sizes", MIXED)
def test_directions_that_span_everything_leave_nothing_to_the_budget(sizes):
    rng = np.random.default_rng(5)
    basis, w = orthonormal(4, 4, rng), rng.normal(size=4)
    value, spent, multiplier, gradient = budget(w, basis, sizes, 0.3, 0.5)
    n = np.mean(sizes)
    assert value == pytest.approx(n / 2 * 0.25 * (w @ w), rel=1e-12) and spent == 0.0 and multiplier == 0.0
    assert gradient == pytest.approx(n * 0.25 * w, rel=1e-12)


@pytest.mark.parametrize("sizes", MIXED)
def test_the_budget_is_continuous_where_its_formula_changes(sizes):
    """A sensitive part so small that it is taken as none: the value just before and just after agree."""
    rng = np.random.default_rng(6)
    basis, w = orthonormal(1, 4, rng), rng.normal(size=4)
    none = budget(w, basis, sizes, 0.3, 0.0)[0]
    for radius in (1e-17, 1e-15, 1e-13, 1e-10, 1e-7):
        assert budget(w, basis, sizes, 0.3, radius)[0] == pytest.approx(none, rel=1e-5)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_budget_scales_with_the_square_of_the_weights(scale):
    rng = np.random.default_rng(7)
    basis, w = orthonormal(2, 5, rng), rng.normal(size=5)
    value, spent, _, gradient = budget(w, basis, [2, 3, 5], 0.3, 0.5)
    scaled = budget(scale * w, basis, [2, 3, 5], 0.3, 0.5)
    assert scaled[0] == pytest.approx(scale**2 * value, rel=1e-10) and scaled[1] == pytest.approx(spent, rel=1e-10)
    assert scaled[3] == pytest.approx(scale * gradient, rel=1e-9)


# The box


# The box


def box(w, raw, basis, shrink, mean_size, radius, reach):
    """Value, spent and gradient."""
    metric = SimpleNamespace(basis_=basis, shrink_=np.array(shrink, float))
    one = SimpleNamespace(sizes=np.array([mean_size]), weights=np.ones(1))
    return Box(one, metric, raw, radius, reach).measure(w)[:3]


@pytest.mark.parametrize("shrink", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("K", [0, 1, 3])
@pytest.mark.parametrize("radius, reach", [(0.7, 0.02), (0.0, 0.1), (0.3, 0.0), (0.0, 0.0)])
def test_the_box_is_the_best_of_its_corners(K, radius, reach, shrink):
    """It spends what the free move to its corner costs."""
    rng = np.random.default_rng(8)
    raw, basis, w = rng.normal(size=(K, 5)), orthonormal(len(shrink), 5, rng), rng.normal(size=5)
    value, spent, _ = box(w, raw, basis, shrink, 10 / 3, radius, np.full(5, reach))
    assert value == pytest.approx(reference.box_supremum(w, raw, 10 / 3, radius, reach), rel=1e-12)
    cost = np.sum((reference.shrinker(basis, shrink) @ (reach * np.sign(w))) ** 2)
    assert spent == pytest.approx(cost, rel=1e-10)


def test_the_gradient_of_the_box_is_its_slope():
    rng = np.random.default_rng(9)
    raw, basis, w, reach = rng.normal(size=(2, 5)), orthonormal(2, 5, rng), rng.normal(size=5), rng.random(5)
    *_, gradient = box(w, raw, basis, [1, 1], 3.0, 0.3, reach)
    slope = reference.finite_difference(lambda w: box(w, raw, basis, [1, 1], 3.0, 0.3, reach)[0], w, step=1e-6)
    assert gradient == pytest.approx(slope, rel=1e-6)


def test_the_box_has_a_subgradient_at_its_kinks():
    """At zero weights no sign is taken: what is not used stays unused. The direction is orthogonal to the weights."""
    w, raw = np.array([1.0, 0.0, 0.0, -2.0]), np.array([[2.0, 5.0, 0.0, 1.0]])
    *_, gradient = box(w, raw, np.zeros((0, 4)), [], 3.0, 1.0, np.full(4, 0.1))
    assert gradient == pytest.approx(3.0 * 0.3 * 0.1 * np.array([1, 0, 0, -1]), rel=1e-12)
