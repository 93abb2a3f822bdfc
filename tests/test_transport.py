"""d_Q: optimal transport between two queries' items, squared distances, uniform weights."""

import sys

import numpy as np
import ot
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank._kernels import transport as kernels


def pot(cost):
    n, m = cost.shape
    return ot.emd2(np.full(n, 1 / n), np.full(m, 1 / m), cost)


def costs(n, m, seed=0, d=4):
    rng = np.random.default_rng(seed)
    return cdist(rng.normal(size=(n, d)), rng.normal(size=(m, d)), "sqeuclidean")


# The compiled assignment


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 40])
@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_assignment_is_scipys(n, seed):
    cost = costs(n, n, seed)
    column = np.full(n + 3, -9)
    total = kernels.assignment(cost, n, column)
    rows, columns = linear_sum_assignment(cost)
    assert total == pytest.approx(cost[rows, columns].sum(), rel=1e-12)
    assert column[:n].tolist() == columns.tolist() and (column[n:] == -9).all()


@given(st.integers(1, 9), st.integers(0, 10**6), st.sampled_from([1, 2, 4]))
@settings(deadline=None, derandomize=True, max_examples=150)
def test_the_compiled_assignment_with_many_ties_costs_what_scipys_does(n, seed, levels):
    """Integers of few levels, also negative, so that paths through equal costs are taken."""
    cost = np.random.default_rng(seed).integers(-levels, levels + 1, (n, n)).astype(float)
    column = np.empty(n, np.int64)
    total = kernels.assignment(cost, n, column)
    rows, columns = linear_sum_assignment(cost)
    assert sorted(column) == list(range(n))
    assert total == cost[np.arange(n), column].sum() == cost[rows, columns].sum()


def test_the_compiled_assignment_reads_a_corner_of_a_larger_matrix():
    cost = costs(6, 6)
    column = np.empty(6, np.int64)
    rows, columns = linear_sum_assignment(cost[:4, :4])
    assert kernels.assignment(cost, 4, column) == pytest.approx(cost[rows, columns].sum())


# Gaps within queries


def smallest_gaps(X, rows, offsets, queries, *arguments):
    kernels.smallest_gaps(0, len(queries), X, rows, offsets, queries, *arguments)


def gaps_of(X, offsets, basis):
    """The gaps, whatever they are; infinity where no two items differ."""
    gaps, most = np.zeros(len(offsets) - 1), np.full(len(offsets) - 1, np.inf)
    smallest_gaps(X, np.arange(len(X)), np.array(offsets), np.arange(len(offsets) - 1), basis, most, gaps)
    return np.abs(gaps)


def test_the_smallest_gap_is_that_of_the_nearest_different_pair():
    rng = np.random.default_rng(0)
    X, basis = rng.normal(size=(9, 3)), np.linalg.qr(rng.normal(size=(3, 1)))[0].T
    X[4] = X[5] + 7 * basis[0]  # equal up to the sensitive direction
    Z = X @ reference.projector(basis)
    expected = []
    for rows in (range(3), range(3, 8)):
        pairs = [np.linalg.norm(Z[i] - Z[j]) for i in rows for j in rows if i < j and {i, j} != {4, 5}]
        expected.append(min(pairs))
    assert gaps_of(X, [0, 3, 8, 9], basis) == pytest.approx([*expected, np.inf], rel=1e-12)


def test_gaps_are_found_once():
    """A query's gap holds for all of training."""
    gaps, largest = np.array([0.0, 5.0]), np.array([1.0, 9.0])
    smallest_gaps(
        np.arange(4.0)[:, None], np.arange(4), np.array([0, 2, 4]), np.arange(2), np.zeros((0, 1)), largest, gaps
    )
    assert gaps.tolist() == [1.0, 5.0]


@pytest.mark.parametrize("largest, known, then", [(0.1, 0, -0.4), (0.1, -0.3, -0.3), (0.2, -0.3, -0.8), (0.6, -0.8, 1)])
def test_no_more_is_learned_of_a_gap_than_the_moves_ask_for(largest, known, then):
    """The gap is 1. A bound of twice the largest move is enough; a larger move than that asks again."""
    gaps = np.array([float(known)])
    smallest_gaps(
        np.array([[0.0], [1.0]]),
        np.arange(2),
        np.array([0, 2]),
        np.arange(1),
        np.zeros((0, 1)),
        np.array([largest]),
        gaps,
    )
    assert gaps[0] == pytest.approx(then)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaps_of_rows_in_any_place(dtype):
    """Rows of a batch are picked from X, whose dtype stays."""
    X = np.array([[0.0, 1], [9, 9], [4, 0], [5, 0]], dtype)
    gaps = np.zeros(3)
    smallest_gaps(X, np.array([3, 0, 2]), np.array([0, 3]), np.array([1]), np.zeros((0, 2)), np.array([9.0]), gaps)
    assert gaps.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
def test_an_offset_of_a_feature_hides_no_gap(offset):
    X = np.c_[np.full(3, offset), [0.0, 0.5, 0.5]]
    assert gaps_of(X, [0, 3], np.zeros((0, 2))).tolist() == [0.5]


# Distances between moved queries


@given(st.integers(2, 6), st.integers(0, 10**6), st.sampled_from([0.01, 0.3, 3.0]), st.booleans(), st.booleans())
@settings(deadline=None, derandomize=True, max_examples=120)
def test_distances_of_moved_queries_are_scipys(n, seed, move, sensitive, duplicates):
    """Items nearer and farther than the moves, some equal: whichever of the three ways is taken, the distance is d_Q."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(3, 1)))[0].T if sensitive else np.zeros((0, 3))
    X = rng.normal(size=(2 * n, 3))
    if duplicates:
        X[1] = X[0]
        X[n + 1 :] = X[n] + np.outer(rng.normal(size=n - 1), basis[0] if sensitive else np.zeros(3))
    e, c = move * rng.normal(size=(2 * n, 3)), rng.normal(size=(2 * n, len(basis)))
    got = moved_distances(X, [0, n, 2 * n], basis, e)
    P = reference.projector(basis)
    expected = [
        reference.transport_distance(X[r] @ P, (X + c @ basis + e)[r] @ P) for r in (slice(0, n), slice(n, 2 * n))
    ]
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-13)


def moved_distances(X, offsets, basis, e):
    """Every row on a path of its own."""
    offsets, cost = np.array(offsets), ((e @ reference.projector(basis)) ** 2).sum(axis=1)
    largest = np.sqrt(np.maximum.reduceat(cost, offsets[:-1]))
    identity_cost = np.add.reduceat(cost, offsets[:-1]) / np.diff(offsets)
    rows, queries, distance = np.arange(len(X)), np.arange(len(offsets) - 1), np.empty(len(offsets) - 1)
    kernels.transport_distances(
        0,
        len(queries),
        X,
        rows,
        offsets,
        queries,
        gaps_of(X, offsets, basis),
        basis,
        e,
        rows,
        np.ones(len(queries)),
        largest,
        identity_cost,
        distance,
    )
    return distance


def test_two_items_that_trade_places_are_at_distance_zero():
    """The identity pairing would cost 1."""
    X = np.array([[0.0], [1.0]])
    distance = moved_distances(X, [0, 2], np.zeros((0, 1)), np.array([[1.0], [-1.0]]))
    assert distance.tolist() == [0.0]


def test_gaps_of_exactly_twice_the_largest_move_leave_the_identity_optimal():
    """The triangle inequality: a moved item may come as near to another as it is to where it came from, not nearer."""
    X = np.array([[0.0], [2.0]])
    distance = moved_distances(X, [0, 2], np.zeros((0, 1)), np.array([[1.0], [-1.0]]))
    assert distance.tolist() == [1.0] == [reference.transport_distance(X, np.array([[1.0], [1.0]]))]


@pytest.mark.parametrize("n, bounded", [(kernels.LARGEST_ASSIGNMENT, False), (kernels.LARGEST_ASSIGNMENT + 1, True)])
def test_longer_queries_are_charged_the_identity_pairing(n, bounded):
    """Items on a line exchanged two by two: the cheapest pairing costs nothing, the identity 1 for each item that moves."""
    X, e = np.arange(float(n))[:, None], np.zeros((n, 1))
    e[: n - n % 2 : 2], e[1::2] = 1.0, -1.0
    distance = moved_distances(X, [0, n], np.zeros((0, 1)), e)
    assert distance[0] == ((n - n % 2) / n if bounded else 0.0)


def test_the_gaps_of_longer_queries_are_not_asked_for():
    """That would take time like the square of their size."""
    n = kernels.LARGEST_ASSIGNMENT + 1
    X = np.arange(n + 2.0)[:, None]
    assert gaps_of(X, [0, n, n + 2], np.zeros((0, 1))).tolist() == [0.0, 1.0]


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
    for steps in ({}, {"full_step_size": 1.0, "full_n_steps": 50}, {"subspace_n_starts": None}):
        assert fit(**steps).history_["query_distance"].any()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 500_000 or sys.platform == "darwin"


# Through the metric


def test_query_distances_are_squared():
    """Case 20: d_Q({0, 1}, {1, 3}) = 2.5."""
    with pytest.warns(UserWarning, match="Nothing is treated as sensitive"):
        metric = SensitiveSubspaceMetric().fit([[0.0], [1.0]])
    assert metric.query_distances([[0], [1]], [[1], [3]], qid_X=[0, 0], qid_Y=[0, 0]).tolist() == [[2.5]]
    assert metric.query_distances([[0], [1]], [[1], [3]]).tolist() == [[2.5]]  # no qid: one query


def test_query_distances_of_all_sizes_are_those_of_pot():
    rng = np.random.default_rng(0)
    qid_X, qid_Y = rng.permutation(np.repeat([7, 1, 4], [3, 1, 5])), rng.permutation(np.repeat(["b", "a"], [3, 4]))
    X, Y, direction = rng.normal(size=(9, 4)), rng.normal(size=(7, 4)), rng.normal(size=4)
    metric = SensitiveSubspaceMetric(directions=direction).fit(X)
    got = metric.query_distances(X, Y, qid_X=qid_X, qid_Y=qid_Y)
    P = np.eye(4) - np.outer(direction, direction) / (direction @ direction)
    for i, a in enumerate([1, 4, 7]):  # sorted ids
        for j, b in enumerate(["a", "b"]):
            difference = (X[qid_X == a][:, None] - Y[qid_Y == b][None]) @ P
            assert got[i, j] == pytest.approx(pot((difference**2).sum(axis=-1)), abs=1e-10)
    assert metric.query_distances(Y, X, qid_X=qid_Y, qid_Y=qid_X) == pytest.approx(got.T, abs=1e-10)
    among = metric.query_distances(X, qid_X=qid_X)
    assert among == pytest.approx(metric.query_distances(X, X, qid_X=qid_X, qid_Y=qid_X), abs=1e-12)
    assert np.diag(among) == pytest.approx(0, abs=1e-12) and among == pytest.approx(among.T, abs=1e-10)


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
    """Beside a short query whose distance must be solved for; room is made for that one alone."""
    X = np.vstack([[[0.0], [1.0]], np.arange(300.0)[:, None]])
    offsets, rows, queries = np.array([0, 2, 302]), np.arange(302), np.arange(2)
    e = np.full((302, 1), np.nan)
    e[:2, 0] = 1.0, -1.0
    cost, largest, gaps, distance = np.array([1.0, np.nan]), np.array([1.0, np.nan]), np.zeros(2), np.empty(2)
    basis = np.zeros((0, 1))
    kernels.smallest_gaps(0, 2, X, rows, offsets, queries, basis, largest, gaps)
    kernels.transport_distances(
        0, 2, X, rows, offsets, queries, gaps, basis, e, rows, np.ones(2), largest, cost, distance
    )
    assert gaps.tolist() == [1.0, 0.0] and distance[0] == 0.0 and np.isnan(distance[1])
