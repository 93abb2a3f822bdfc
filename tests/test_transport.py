"""d_Q: optimal transport between two queries' items, squared distances, uniform weights."""

import sys

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank._kernels.attack import LARGEST_ASSIGNMENT
from skfairrank.adversaries import Ascent
from skfairrank.adversaries._ascent import Pairing
from skfairrank.training import Batch


def batch_of(X, offsets, weight):
    n = len(weight)
    return Batch(X, np.arange(len(X)), np.array(offsets), np.arange(n), None, None, np.array(weight), np.uint64(0))


# Distances between moved queries


def moved_distance(X, offsets, basis, e, shrink=None):
    """Mean d_Q between queries and the same moved item by item, all of each move kept."""
    shrink = np.ones(len(basis)) if shrink is None else np.array(shrink, float)
    cost = ((e @ reference.shrinker(basis, shrink)) ** 2).sum(axis=1)
    offsets, n = np.array(offsets), len(offsets) - 1
    batch = batch_of(X, offsets, np.ones(n))
    spent = np.add.reduceat(cost, offsets[:-1]) / np.diff(offsets)
    return Pairing(basis, shrink, n).mean_distance(batch, e, cost, spent, np.ones(n))


@given(
    st.integers(2, 6), st.integers(0, 10**6), st.sampled_from([0.01, 0.3, 3.0]), st.sampled_from([None, 1.0, 0.5, -2.0]),
    st.booleans(),
)  # fmt: skip
@settings(deadline=None, derandomize=True, max_examples=120)
def test_distances_of_moved_queries_are_scipys(n, seed, move, shrink, duplicates):
    """Items nearer and farther than the moves, some equal: whichever of the three ways is taken, the distance is d_Q."""
    rng = np.random.default_rng(seed)
    shrink = [] if shrink is None else [shrink]
    basis = np.linalg.qr(rng.normal(size=(3, 1)))[0].T[: len(shrink)]
    X = rng.normal(size=(2 * n, 3))
    if duplicates:
        X[1] = X[0]
        X[n + 1 :] = X[n] + np.outer(rng.normal(size=n - 1), basis[0] if shrink == [1.0] else np.zeros(3))
    e = move * rng.normal(size=(2 * n, 3))
    Z = reference.shrinker(basis, shrink)
    each = [reference.transport_distance(X[r] @ Z, (X + e)[r] @ Z) for r in (slice(0, n), slice(n, 2 * n))]
    assert moved_distance(X, [0, n, 2 * n], basis, e, shrink) == pytest.approx(np.mean(each), rel=1e-9, abs=1e-13)


def test_two_items_that_trade_places_are_at_distance_zero():
    """The identity pairing would cost 1."""
    X = np.array([[0.0], [1.0]])
    assert moved_distance(X, [0, 2], np.zeros((0, 1)), np.array([[1.0], [-1.0]])) == 0.0


def test_gaps_of_exactly_twice_the_largest_move_leave_the_identity_optimal():
    """The triangle inequality: a moved item may come as near to another as it is to where it came from, not nearer."""
    X = np.array([[0.0], [2.0]])
    distance = moved_distance(X, [0, 2], np.zeros((0, 1)), np.array([[1.0], [-1.0]]))
    assert distance == 1.0 == reference.transport_distance(X, np.array([[1.0], [1.0]]))


@pytest.mark.parametrize("n, bounded", [(LARGEST_ASSIGNMENT, False), (LARGEST_ASSIGNMENT + 1, True)])
def test_longer_queries_are_charged_the_identity_pairing(n, bounded):
    """Items on a line exchanged two by two: the cheapest pairing costs nothing, the identity 1 for each item that moves."""
    X, e = np.arange(float(n))[:, None], np.zeros((n, 1))
    e[: n - n % 2 : 2], e[1::2] = 1.0, -1.0
    assert moved_distance(X, [0, n], np.zeros((0, 1)), e) == ((n - n % 2) / n if bounded else 0.0)


def test_an_ascent_on_one_long_query_needs_no_more_memory_than_its_rows():
    """A forgotten qid: a matrix of 30,000 by 30,000 costs would be 7 GiB."""
    resource = pytest.importorskip("resource")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30_000, 2)), rng.integers(0, 2, 30_000)

    def fit(**settings):
        ranker = SenSTIRRanker([[1.0, 0.0]], fair_start=0.0, max_iter=3, n_samples=2, random_state=0, **settings)
        return ranker.fit(X, y, qid=np.zeros(len(X), int))

    fit(rho=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in KiB, or in bytes (macOS)
    for ascent in (Ascent(), Ascent(full_step_size=1.0, full_n_steps=50), Ascent(subspace_n_starts=None)):
        assert fit(adversary=ascent).history_["query_distance"].any()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 500_000 or sys.platform == "darwin"


# Through the metric


def test_query_distances_are_squared():
    """Case 20: d_Q({0, 1}, {1, 3}) = 2.5."""
    with pytest.warns(UserWarning, match="Nothing is treated as sensitive"):
        metric = SensitiveSubspaceMetric().fit([[0.0], [1.0]])
    assert metric.query_distances([[0], [1]], [[1], [3]], qid_X=[0, 0], qid_Y=[0, 0]).tolist() == [[2.5]]
    assert metric.query_distances([[0], [1]], [[1], [3]]).tolist() == [[2.5]]  # no qid: one query


def test_permuting_a_query_or_moving_it_along_the_sensitive_direction_costs_nothing():
    """Case 20. d_Q does not see the order of items."""
    rng = np.random.default_rng(1)
    X, direction = rng.normal(size=(6, 3)), np.array([1.0, 2.0, -1.0])
    metric = SensitiveSubspaceMetric(directions=direction).fit(X)
    moved = X[rng.permutation(6)] + np.outer(rng.normal(size=6), direction)
    assert metric.query_distances(X, moved)[0, 0] == pytest.approx(0, abs=1e-24)


def test_integers_are_as_good_as_floats():
    """Case 20."""
    X, Y = np.array([[0, 3], [1, 2]]), np.array([[5, 1], [2, 2], [0, 0]])
    metric = SensitiveSubspaceMetric(directions=[[1, 1]]).fit(X)
    assert metric.query_distances(X, Y).tolist() == metric.query_distances(X * 1.0, Y * 1.0).tolist()
    assert metric.transform(X).tolist() == metric.transform(X * 1.0).tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_distances_of_what_is_not_finite_are_an_error(bad):
    """Case 20: solvers return nonsense for such a cost without a word."""
    metric = SensitiveSubspaceMetric(directions=[[0, 1]]).fit(np.eye(2))
    with pytest.raises(ValueError, match="not finite" if np.isfinite(bad) else "contains"):
        metric.query_distances([[0, 0], [bad, 0]], [[0, 0], [-bad, 0]])


@pytest.mark.parametrize("name, kwargs", [("qid_X", {"qid_X": [1]}), ("qid_Y", {"qid_Y": [1, 2, 3]})])
def test_messages_name_the_argument(name, kwargs):
    metric = SensitiveSubspaceMetric(directions=[[0, 1]]).fit(np.eye(2))
    with pytest.raises(ValueError, match=name):
        metric.query_distances(np.eye(2), np.eye(2), **kwargs)


def test_a_move_that_is_no_number_stays_within_its_query():
    """Beside a short query whose distance must be solved for; room is made for the longer one."""
    X = np.vstack([[[0.0], [1.0]], np.arange(300.0)[:, None]])
    e = np.full((302, 1), np.nan)
    e[:2, 0] = 1.0, -1.0
    cost = e[:, 0] ** 2
    batch = batch_of(X, [0, 2, 302], [1.0, 0.0])
    pairing = Pairing(np.zeros((0, 1)), np.zeros(0), 2)
    assert np.isnan(pairing.mean_distance(batch, e, cost, np.array([1.0, np.nan]), np.ones(2)))
    assert pairing.gaps.tolist() == [1.0, 0.0]
    batch, both = batch._replace(rows=np.arange(2), offsets=np.array([0, 2]), queries=np.zeros(1, int)), np.ones(1)
    assert pairing.mean_distance(batch._replace(weight=both), e[:2], cost[:2], both, both) == 0.0
