"""The ascent for linear scores against its readable twin: item by item in NumPy, from the same starts, d_Q by scipy."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import reference
from instruments import needs_two_threads, on_threads

from skfairrank.adversaries import Ascent
from skfairrank.adversaries._ascent import LinearAscent, Pairing
from skfairrank.scores import LinearScore

pytestmark = pytest.mark.once

STEPS = {"subspace_step_size": 0.01, "subspace_n_steps": 20, "full_step_size": 0.001, "full_n_steps": 20}


class Batch(NamedTuple):
    X: np.ndarray
    rows: np.ndarray
    offsets: np.ndarray
    queries: np.ndarray
    weight: np.ndarray


def batch_of(X, sizes, chosen=None, weight=None):
    """The chosen queries of grouped rows X; all of them by default."""
    chosen = np.arange(len(sizes)) if chosen is None else np.asarray(chosen)
    ends = np.cumsum(sizes)
    rows = np.concatenate([np.arange(ends[q] - sizes[q], ends[q]) for q in chosen])
    offsets = np.r_[0, np.cumsum(np.asarray(sizes)[chosen])]
    weight = np.ones(len(chosen)) if weight is None else np.asarray(weight, float)
    return Batch(X, rows.astype(np.int64), offsets.astype(np.int64), chosen.astype(np.int64), weight)


class Problem:
    """Rows in queries, raw directions neither orthogonal nor of unit norm, a fair metric, and weights."""

    def __init__(self, sizes=(5, 3, 1, 5, 4), d=6, K=2, shrink=(1.0, 1.0), seed=0, spread=1.0, dtype=np.float64):
        rng = np.random.default_rng(seed)
        self.sizes, self.rng = np.asarray(sizes), rng
        self.X = (spread * rng.normal(size=(sum(sizes), d))).astype(dtype)
        self.raw = rng.normal(size=(K, d)) * 3 + 0.1
        self.shrink = np.asarray(shrink, float)
        rows = np.r_[self.raw, rng.normal(size=(d, d))][: len(self.shrink)]
        self.basis = np.linalg.qr(rows.T)[0].T if len(rows) else rows
        self.w = rng.normal(size=d)

    def ascent(self, n_starts=0, rho=0.5, subspace_init=0.05, rng=None, **steps):
        adversary = Ascent(subspace_n_starts=n_starts or None, subspace_init=subspace_init, **{**STEPS, **steps})
        metric = SimpleNamespace(directions_=self.raw, basis_=self.basis, shrink_=self.shrink)
        return LinearAscent(adversary, len(self.sizes), LinearScore(), metric, rho, rng)

    def starts(self, batch, n_starts=0, width=0.05):
        """One for each row, or `n_starts` for each size in the batch, as `attack_from` takes them; and that of each item."""
        sizes = np.diff(batch.offsets).tolist()
        distinct = list(dict.fromkeys(sizes))
        n = n_starts * len(distinct) if n_starts else sum(sizes)
        starts = self.rng.uniform(-width, width, (n, len(self.raw) or len(self.w)))
        if not n_starts:
            return starts, starts
        path = [n_starts * distinct.index(n) + i % n_starts for n in sizes for i in range(n)]
        return starts, starts[path]

    def compare(self, lambda_=2.0, batch=None, n_starts=0, most_spent=np.inf, rho=0.5, width=0.05, rel=1e-9, **steps):
        """The attack and its twin agree; returns both."""
        batch = batch_of(self.X, self.sizes) if batch is None else batch
        starts, of_item = self.starts(batch, n_starts, width)
        given = tuple({**STEPS, **steps}[name] for name in STEPS)
        Z = reference.shrinker(self.basis, self.shrink)
        expected = reference.attack_batch(
            batch.X[batch.rows].astype(float), np.diff(batch.offsets), batch.weight, self.w, self.raw, Z, rho, lambda_,
            most_spent, given, of_item,
        )  # fmt: skip
        got = self.ascent(n_starts, rho, **steps).find(batch, self.w, lambda_, most_spent, starts.copy())
        assert got[0] == pytest.approx(expected[0], rel=rel)
        assert got[1] == pytest.approx(expected[1], rel=rel, abs=1e-15)
        assert got[2] == pytest.approx(expected[2], rel=10 * rel, abs=1e-12)
        return got, expected


# The ascent and its twin


@pytest.mark.parametrize("K", [0, 1, 2, 7])
@pytest.mark.parametrize("n_starts", [0, 1, 4, 6])
@pytest.mark.parametrize("lambda_", [1e-5, 2.0, 300.0])
def test_the_ascent_equals_its_twin(K, n_starts, lambda_):
    """Queries of sizes 1 to 5, more and fewer than starts; the price of d_Q not felt, felt, and binding."""
    Problem(K=K).compare(lambda_, n_starts=n_starts)


@pytest.mark.parametrize("lambda_", [1e-5, 2.0, 300.0])
@pytest.mark.parametrize(
    "shrink",
    [[], [1], [0.3], [1, 0.9, 0.5, 0.0], [-1.0], [1, -2.5], [1, 1, 0.99, 0.7, 0.2, -0.4], [0.5] * 6, [1] * 6],
    ids=str,
)
def test_the_ascent_equals_its_twin_under_any_metric(shrink, lambda_):
    """Free directions (1), cheaper ones, dearer ones (below 0), a matrix of full rank, and one under which all is free."""
    for n_starts in (0, 4):
        Problem(shrink=shrink, seed=1).compare(lambda_, n_starts=n_starts, full_step_size=0.01)


@pytest.mark.parametrize(
    "steps",
    [
        {"full_n_steps": 0},
        {"subspace_n_steps": 0},
        {"subspace_n_steps": 0, "full_n_steps": 0},
        {"full_step_size": 0.1, "full_n_steps": 60},
        {"subspace_step_size": 0.3, "width": 0.5},
        {"width": 0.0},
        {"full_step_size": 0.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("d", [1, 2, 9])
def test_the_ascent_equals_its_twin_for_any_steps_and_any_number_of_features(steps, d):
    Problem(d=d, K=1, shrink=[1], seed=1).compare(0.7, **steps)


def test_the_ascent_equals_its_twin_on_rows_from_anywhere_in_any_array():
    problem = Problem(seed=2, dtype=np.float32)
    for X in (problem.X, np.asfortranarray(problem.X), problem.X.astype(float)[:, ::-1][:, ::-1]):
        X.flags.writeable = False
        # One query twice: passes over the queries may meet in a batch.
        problem.compare(batch=batch_of(X, problem.sizes, [3, 0, 2, 3]), n_starts=4, full_step_size=0.05)


@pytest.mark.parametrize("spread", [0.0, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("shrink", [[], [1, 1], [1, -1, 0.5]], ids=str)
@pytest.mark.parametrize("n_starts", [0, 3])
def test_items_closer_than_their_moves_are_paired_by_transport(spread, shrink, n_starts):
    """Items nearly alike, moved far in different ways: pairing each with itself is not the cheapest, and d_Q is the cheapest."""
    found = {}
    for factor in (1, 1e6):  # the same moves, items far apart
        problem = Problem(sizes=(5, 4), K=len(shrink), shrink=shrink, seed=3, spread=spread)
        problem.X = factor * problem.X
        (_, found[factor], _), _ = problem.compare(
            1e-3, n_starts=n_starts, width=0.3, full_step_size=0.02, full_n_steps=5, rel=1e-9 if factor == 1 else 1e-5
        )
    if spread == 0.01 and shrink == [1, 1] and not n_starts:  # items are nearer to each other than each is to itself
        assert found[1] < 0.999 * found[1e6]


# Which candidate is kept, and how much of it


@pytest.mark.parametrize("weight", [None, [0.0, 2.0, 0.5, 1.5, 1.0, 0.2, 0.8, 2.0]], ids=["alike", "weighted"])
def test_the_better_of_the_two_candidates_is_kept_query_by_query(weight):
    """Some queries of a batch keep the full attack, others do not; for each, the objective is the larger of the two."""
    problem, some = Problem(sizes=(1,) * 8, K=1, shrink=[1], seed=5), set()
    for lambda_ in np.geomspace(0.1, 1000, 40):
        batch = batch_of(problem.X, problem.sizes, weight=weight)
        _, (*_, share) = problem.compare(lambda_, batch, width=0.3, full_step_size=0.05, full_n_steps=3)
        some.add(np.count_nonzero(share))
    assert {0, 8} < some  # at some lambda only some of them


@pytest.mark.parametrize("n_starts", [0, 2])
@pytest.mark.parametrize("weight", [None, [0.4, 2.0, 1.0, 0.6, 1.0]], ids=["alike", "weighted"])
@pytest.mark.parametrize("share", [0.1, 0.7])
def test_a_batch_that_would_overspend_keeps_a_share_of_its_free_moves(n_starts, weight, share):
    """d is quadratic in the share (far items, each paired with itself): the batch spends what it may, not less."""
    spent = []
    for most in (np.inf, 1e-3 * share**2):
        problem = Problem(seed=6, spread=100.0)
        batch = batch_of(problem.X, problem.sizes, weight=weight)
        (_, distance, _), (*_, shares) = problem.compare(0.01, batch, n_starts, most, full_step_size=0.01)
        spent.append(distance)
    assert spent[0] > spent[1] and spent[1] == pytest.approx(most, rel=1e-9)
    assert shares == pytest.approx(np.sqrt(most / spent[0]), rel=1e-6)


# The gradient


def test_the_gradient_is_that_of_the_regularizer_for_the_moves_found():
    """Envelope: the moves are held. With no steps at all they do not depend on w, and finite differences tell."""
    problem = Problem(seed=6)
    batch = batch_of(problem.X, problem.sizes, weight=[0.5, 2, 1, 0.5, 1])
    starts, _ = problem.starts(batch)

    def attack(w):
        still = problem.ascent(subspace_n_steps=0, full_n_steps=0)
        return still.find(batch, w, 2.0, np.inf, starts.copy())

    slope = reference.finite_difference(lambda w: attack(w)[0], problem.w)
    assert attack(problem.w)[2] == pytest.approx(slope, rel=1e-7)


# Random starts


@pytest.mark.parametrize("K", [0, 1])
@pytest.mark.parametrize("n_starts", [0, 4])
def test_starts_are_uniform_and_new_each_time(K, n_starts):
    """With no steps a query of one item tells its start: the regularizer is 1/2 (w.V'c)^2, or 1/2 (w.e)^2 without directions.

    Of more attacks than random numbers are drawn for at once."""
    problem = Problem(sizes=(1,), d=1, K=K, shrink=[1.0] if K else [])
    width = {"subspace_init": 0.3} if K else {"full_step_size": 0.3}
    ascent = problem.ascent(n_starts, rng=np.random.default_rng(0), subspace_n_steps=0, full_n_steps=0, **width)
    batch = batch_of(problem.X, problem.sizes)
    found = [ascent.find(batch, problem.w, 1e-9, np.inf)[0] for _ in range(6000)]
    slope = abs(problem.w[0] * (problem.raw[0, 0] if K else 1.0))
    sizes = np.sqrt(2 * np.array(found)) / slope / 0.3  # uniform in [0, 1]
    assert len(set(found)) == len(found) and 0.99 < sizes.max() <= 1.0 + 1e-9
    assert abs(sizes.mean() - 1 / 2) < 4 * np.sqrt(1 / 12 / 6000)
    assert abs((sizes**2).mean() - 1 / 3) < 4 * np.sqrt(4 / 45 / 6000)


def test_shared_starts_give_the_mean_of_single_ones():
    """One start for all, or one for each: the same expectation of regularizer and gradient."""
    problem = Problem(sizes=(6, 6), seed=7)
    batch = batch_of(problem.X, problem.sizes)

    def draws(n_starts):
        ascent = problem.ascent(n_starts, rng=np.random.default_rng(n_starts), subspace_n_steps=2, subspace_init=0.3)
        found = (ascent.find(batch, problem.w, 2.0, np.inf) for _ in range(3000))
        return np.array([[value, *gradient] for value, _, gradient in found])

    for n_starts in (1, 4, 9):
        a, b = draws(0), draws(n_starts)
        error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4.5 * error).all()


# What must not show


def test_what_is_kept_between_attacks_does_not_show():
    """Smallest gaps are learned once and room is made once: every attack is that of a fresh ascent from the same starts, to the
    bit. Batches of other sizes come up in turn, and items are near enough for the gaps to matter."""
    problem = Problem(spread=0.05)
    steps = {"full_step_size": 0.02, "full_n_steps": 5, "subspace_n_steps": 2}
    for n_starts in (0, 4):
        busy = problem.ascent(n_starts, **steps)
        for t in range(60):
            batch = batch_of(problem.X, problem.sizes, [[0, 1], [2], [4, 3, 0], [1, 1, 2]][t % 4])
            starts, _ = problem.starts(batch, n_starts)
            lambda_ = 10.0 ** problem.rng.uniform(-3, 1)
            a = busy.find(batch, problem.w, lambda_, 1e-3, starts.copy())
            b = problem.ascent(n_starts, **steps).find(batch, problem.w, lambda_, 1e-3, starts.copy())
            assert a[:2] == b[:2] and a[2].tolist() == b[2].tolist()


@needs_two_threads
@pytest.mark.parametrize("n_starts", [0, 40])
def test_results_have_the_same_bits_for_any_number_of_threads(n_starts):
    """So much work that it is divided, among queries of several sizes: paths, gaps and assignments."""
    sizes, found = np.random.default_rng(0).integers(20, 60, 40), []
    problem = Problem(sizes=sizes, d=30, K=2, shrink=[1, 1, 0.5], spread=0.01)
    batch = batch_of(problem.X, problem.sizes)
    starts, _ = problem.starts(batch, n_starts)
    for n_threads in (1, 2):
        with on_threads(n_threads):
            ascent = problem.ascent(n_starts, full_step_size=0.01, full_n_steps=50)
            regularizer, distance, gradient = ascent.find(batch, problem.w, 1e-3, np.inf, starts.copy())
            found.append([regularizer, distance, *gradient])
    assert found[0] == found[1] and distance > 0


@pytest.mark.parametrize("d", [3, 6, 19])
@pytest.mark.parametrize("n_starts", [0, 1])
def test_results_have_the_same_bits_wherever_arrays_lie(d, n_starts):
    """A loop that both sums and stores may be compiled twice, with and without vectors, the way chosen by the addresses of its
    arrays at run time; with sums free to be reassociated the two would differ by rounding, and fits would not repeat."""
    problem = Problem(sizes=(3, 2), d=d, K=2, spread=0.01)
    first = batch_of(problem.X, problem.sizes)
    starts, _ = problem.starts(first, n_starts)
    room, found = np.zeros(problem.X.size + d + starts.size + 60), set()
    for _ in range(100):
        at, arrays = 0, []
        for array in (problem.X, problem.w, starts):
            at += int(problem.rng.integers(0, 9))
            arrays.append(room[at : at + array.size].reshape(array.shape))
            arrays[-1][...] = array
            at += array.size
        X, w, here = arrays
        a = problem.ascent(n_starts, full_step_size=0.02).find(first._replace(X=X), w, 0.1, np.inf, here)
        found.add((a[0], a[1], a[2].tobytes()))
    assert len(found) == 1


# The pairing, where every item has a move of its own


@pytest.mark.parametrize("spread", [0.0, 0.02, 5.0])
@pytest.mark.parametrize("shrink", [[], [1.0], [1.0, -2.0, 0.5]], ids=str)
def test_mean_distances_of_moved_queries_are_scipys(spread, shrink):
    problem, share = Problem(sizes=(5, 3, 1, 5), shrink=shrink, spread=spread, seed=8), np.array([1, 0, 1, 0.5])
    batch = batch_of(problem.X, problem.sizes, weight=[1.0, 0.5, 1.5, 1.0])
    Z, e = reference.shrinker(problem.basis, problem.shrink), problem.rng.normal(size=(14, 6))
    cost = ((e @ Z) ** 2).sum(axis=1)
    moved = problem.X + np.repeat(share, problem.sizes)[:, None] * e
    queries = np.split(np.arange(14), [5, 8, 9])
    spent = np.array([cost[rows].mean() for rows in queries])
    got = Pairing(problem.basis, problem.shrink, 4).mean_distance(batch, e, cost, spent, share)
    each = [reference.transport_distance(problem.X[rows] @ Z, moved[rows] @ Z) for rows in queries]
    assert got == pytest.approx(np.mean(batch.weight * each), rel=1e-9)
