"""Seeded draws of what people seldom write by hand, against definitions in rationals, by permutations, or as bounds."""

from fractions import Fraction
from itertools import permutations
from math import lcm

import numpy as np
import pytest

from skfairrank import SensitiveSubspaceMetric
from skfairrank.adversaries import ExactBudget
from skfairrank.fair_metrics import MahalanobisMetric
from skfairrank.fair_metrics._distances import distances_of_rows
from skfairrank.inspection import invariance_regularizer, upper_confidence_bound

SEEDS = range(12)


def fair_part(row, directions):
    """The row less its projection on the span of independent directions, in rationals."""

    def less(v, basis):
        for b in basis:
            share = sum(x * y for x, y in zip(v, b, strict=True)) / sum(x * x for x in b)
            v = [x - share * y for x, y in zip(v, b, strict=True)]
        return v

    basis = []
    for direction in directions:
        basis.append(less([Fraction(x) for x in direction.tolist()], basis))
    return [float(x) for x in less([Fraction(x) for x in row.tolist()], basis)]


@pytest.mark.parametrize("seed", SEEDS)
def test_features_of_small_units_keep_their_digits_beside_large_ones(seed):
    """The grid of the largest column was that of all, and a direction of 1e-7 in one column counted as none."""
    rng = np.random.default_rng(seed)
    units = 10.0 ** (rng.integers(-12, 13, 3) if seed % 2 else rng.integers(-3, 5, 3))
    X = rng.normal(size=(8, 3)) * units
    directions = rng.normal(size=(1 + (seed % 4 == 0), 3)) * units
    metric = SensitiveSubspaceMetric(directions=directions).fit(X)
    expected = np.array([fair_part(row, directions) for row in X])
    entries = np.abs(metric.basis_)
    reach = np.abs(X).max(axis=0) + (entries @ np.abs(X).max(axis=0)) @ entries
    assert (np.abs(metric.transform(X) - expected) <= 1e-9 * reach).all()
    for kind, rel in ((np.float64, 1e-6), (np.float32, 1e-3)):  # what one pays is no rounding of a larger column
        A, B = (rows.astype(kind) for rows in (X[:4], X[4:]))
        lengths = [np.linalg.norm(fair_part(move.astype(float), directions)) for move in A.astype(float) - B]
        assert metric.pair_distance(np.stack([A, B], axis=1)) == pytest.approx(lengths, rel=1e-6)
        assert np.sqrt(distances_of_rows(A, B, metric)) == pytest.approx(lengths, rel=rel)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_difference_of_groups_is_closed_in_every_feature_whatever_its_unit(seed):
    rng = np.random.default_rng(seed)
    units, is_member = 10.0 ** rng.integers(-6, 7, 3), np.arange(40) % 2 == 0
    X = (rng.normal(size=(40, 3)) + np.outer(is_member, [1.0, -0.5, 0.25])) * units
    Z = SensitiveSubspaceMetric(direction="difference").fit(X, sensitive_features=is_member).transform(X)
    assert np.abs(Z[is_member].mean(axis=0) - Z[~is_member].mean(axis=0)) / units == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_transport_between_queries_of_different_sizes_in_any_unit(seed):
    """Items repeated so often that both queries are of one size, which is an assignment; the simplex took 1e-24 for zero."""
    rng = np.random.default_rng(seed)
    n, m = [(1, 3), (2, 3), (2, 4), (3, 6), (2, 1)][seed % 5]
    unit, size = 10.0 ** rng.integers(-12, 13), lcm(n, m)
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    cost = ((np.repeat(X, size // n, axis=0)[:, None, 1] - np.repeat(Y, size // m, axis=0)[None, :, 1]) ** 2).T
    expected = min(cost[np.arange(size), list(order)].mean() for order in permutations(range(size)))
    metric = SensitiveSubspaceMetric(directions=[[1.0, 0.0]]).fit(X)
    found = metric.query_distances(X * unit, Y * unit)[0, 0] / unit**2
    assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_matrix_of_features_in_any_units(seed):
    """With no tolerance a unit is never taken for a rank, and correlations of features in small units keep their digits."""
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.integers(-7, 8, 4)
    factor = rng.normal(size=(4, 4)) if seed % 2 else np.eye(4)
    M = (factor @ factor.T + 0.1 * np.eye(4)) * np.outer(units, units)
    steps = rng.normal(size=(5, 4)) / units
    metric = MahalanobisMetric(M, rank_tolerance=0).fit(steps)
    assert len(metric.directions_) == 0
    np.testing.assert_allclose(
        metric.get_mahalanobis_matrix() / np.outer(units, units), M / np.outer(units, units), atol=1e-8
    )
    expected = np.sqrt(np.einsum("ij,jk,ik->i", steps, M, steps))
    assert metric.pair_distance(np.stack([0 * steps, steps], axis=1)) == pytest.approx(expected, rel=1e-5)

    far = np.array([1e-9, 1e-5, 1e9])
    with pytest.raises(ValueError, match="units too far apart"):
        MahalanobisMetric((np.eye(3) + 0.3) / np.outer(far, far), rank_tolerance=0).fit(np.eye(3))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_attack_never_goes_beyond_the_supremum(seed):
    """It began outside of the budget, where one item of a pair moved far and the other one as far back."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, rng.integers(1, 5))
    X, qid, w = rng.normal(size=(sizes.sum(), 2)), np.repeat(np.arange(len(sizes)), sizes), rng.normal(size=2)
    metric = MahalanobisMetric([[0.3, 0.1], [0.1, 0.2]]).fit(X)
    for adversary in (ExactBudget(1e-3, 0.0), ExactBudget(1e-3, 0.0, score_distance="centered")):
        asked = {"qid": qid, "metric": metric, "adversary": adversary}
        most = invariance_regularizer(w, X, **asked)
        assert invariance_regularizer(w, X, method="ascent", random_state=seed, **asked) <= most * (1 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bound_is_above_the_mean_and_knows_no_unit_of_weights(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    x, weight = np.round(rng.beta(0.5, 1.5, n), 1), 10.0 ** rng.integers(-2, 3, n)
    for confidence in (0.5, 0.95):
        bound = upper_confidence_bound(x, confidence, weight=weight)
        assert np.average(x, weights=weight) - 1e-12 <= bound
        assert upper_confidence_bound(x, confidence, weight=1e5 * weight) == pytest.approx(bound, abs=1e-9)
    assert upper_confidence_bound(x, 0.5) >= x.mean() - 1e-12
