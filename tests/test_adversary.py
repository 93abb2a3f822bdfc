"""Adversaries: bounds of the ascent, errors, lambda, and what the closed forms are made of."""

import numpy as np
import pytest
import reference

from skfairrank import SensitiveSubspaceMetric, scores
from skfairrank._kernels import closed_forms, linear
from skfairrank._queries import Queries
from skfairrank.adversary import Ascent, ExactBox, ExactBudget
from skfairrank.training import Batch, Data

STEPS = {"subspace_step_size": 0.01, "subspace_n_steps": 20, "full_step_size": 0.001, "full_n_steps": 20}


def problem(sizes=(5, 3, 1, 5, 4), d=6, K=2, seed=0, dtype=np.float64, spread=1.0):
    """Grouped rows, a metric with directions that are neither orthogonal nor of unit norm, and weights."""
    rng = np.random.default_rng(seed)
    offsets = np.r_[0, np.cumsum(sizes)].astype(np.int64)
    X = (spread * rng.normal(size=(offsets[-1], d))).astype(dtype)
    metric = SensitiveSubspaceMetric(directions=rng.normal(size=(K, d)) * 3 + 0.1 if K else None)
    if K:
        metric.fit(np.zeros((2, d)))
    else:
        metric.directions_ = metric.sensitive_basis_ = np.zeros((0, d))
    queries = Queries(np.arange(len(sizes)), np.arange(len(X)), offsets, True)
    return Data(X, queries, np.zeros(len(X)), np.zeros(max(sizes))), metric, rng.normal(size=d)


def batch_of(data, chosen=None):
    chosen = np.arange(data.queries.n_queries) if chosen is None else np.asarray(chosen)
    subset = data.queries.subset(chosen)
    return Batch(chosen, subset.order, subset.offsets, np.zeros(subset.n_rows), np.uint64(0))


def ascent(data, metric, *, rho=0.5, epsilon=0.1, subspace_init=0.05, subspace_n_starts=None, rng=None, **steps):
    return Ascent(
        data, metric, rho=rho, epsilon=epsilon, subspace_init=subspace_init, subspace_n_starts=subspace_n_starts,
        dual_step="paper", rng=rng if rng is not None else np.random.default_rng(0), **{**STEPS, **steps},
    )  # fmt: skip


# The ascent


def test_the_ascent_never_exceeds_the_closed_forms_within_its_own_bounds():
    """It spends d_Q (far items: the identity is optimal), and moves an item by at most r along A: in both phases, since a free
    move along A costs nothing either."""
    for seed in range(6):
        data, metric, w = problem(sizes=(5, 5, 5), seed=seed, d=4, K=1, spread=100.0)
        adversary = ascent(data, metric, full_step_size=0.02)
        got = adversary.attack(batch_of(data), w, 0.01)
        # Starts, and Adam's steps: a few percent above the step size at most.
        reach, free = 0.05 + 20 * 0.01 * 1.05, 20 * 0.02 * 1.05
        r = reach * np.linalg.norm(metric.directions_[0]) + free * np.abs(metric.sensitive_basis_[0]).sum()
        exact = ExactBudget(data, metric, rho=0.5, epsilon=got.query_distance, subspace_radius=r).attack(None, w, 1.0)
        box = ExactBox(data, metric, subspace_radius=reach, feature_radius=free).attack(None, w, 1.0)
        assert 0.2 * exact.regularizer < got.regularizer <= exact.regularizer
        assert 0.5 * box.regularizer < got.regularizer <= box.regularizer


@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_an_attack_that_is_not_finite_is_an_error(scale):
    data, metric, w = problem()
    with pytest.raises(ValueError, match="not finite.*StandardScaler"):
        ascent(data, metric).attack(batch_of(data), w * scale, 2.0)


def test_features_whose_distances_overflow_are_an_error():
    """Case 20."""
    data, metric, w = problem()
    data.X[:] *= 1e200
    with pytest.raises(ValueError, match="not finite.*StandardScaler"):
        ascent(data, metric).attack(batch_of(data), w, 2.0)


# The dual


@pytest.mark.parametrize("distance, epsilon", [(0.2, 0.1), (0.1, 0.2), (0.1, 0.1), (0.3, 0.0), (0.0, 0.3), (0.0, 0.0)])
def test_lambda_grows_while_the_adversary_overspends(distance, epsilon):
    """The sign printed in the paper's Algorithm 1 is a misprint. The step is the ratio of the larger to the smaller, guarded."""
    data, metric, _ = problem()
    new = ascent(data, metric, epsilon=epsilon)._dual_step(2.0, distance)
    assert new == pytest.approx(reference.dual_step(2.0, distance, epsilon))
    assert (new > 2) == (distance > epsilon) and (new < 2) == (distance < epsilon)
    assert new >= Ascent.LAMBDA_MIN == 1e-5


def test_an_adversary_that_spends_nothing_sets_lambda_to_its_minimum_at_once():
    data, metric, _ = problem()
    assert ascent(data, metric, epsilon=1e-3)._dual_step(2.0, 0.0) == 1e-5


# Closed forms


def test_the_budget_adversary_uses_the_sizes_of_all_training_queries():
    """Not of the batch: the budget is an expectation over queries."""
    data, metric, w = problem(sizes=(2, 3, 5, 5))
    adversary = ExactBudget(data, metric, rho=0.25, epsilon=0.3, subspace_radius=0.4)
    got = adversary.attack(batch_of(data, [0]), w, 1.0)
    basis, gradient = metric.sensitive_basis_, np.empty(6)
    value, spent, multiplier = closed_forms.exact_budget(
        w, basis, np.ones(2), np.array([2.0, 3.0, 5.0]), np.array([0.25, 0.25, 0.5]), 0.3, 0.4, gradient
    )
    assert (got.regularizer, got.query_distance, got.multiplier) == (value, spent, 0.25 * multiplier)
    assert got.gradient.tolist() == gradient.tolist()


@pytest.mark.parametrize("K", [0, 1, 3])
def test_the_box_adversary_is_the_best_of_the_corners_for_the_mean_size(K):
    data, metric, w = problem(sizes=(2, 3, 5), K=K, seed=8)
    got = ExactBox(data, metric, subspace_radius=0.7, feature_radius=0.02).attack(None, w, 7.0)
    expected = reference.box_supremum(w, metric.directions_, np.mean([2, 3, 5]), 0.7, 0.02)
    assert got.regularizer == pytest.approx(expected, rel=1e-12)
    assert got.multiplier == 7.0  # the box has no budget: lambda stays


# Small kernels


def test_linear_scores_and_their_pull_back():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        X, w = rng.normal(size=(30, 7)).astype(dtype), rng.normal(size=7)
        rows, g = np.array([4, 4, 29, 0]), rng.normal(size=4)
        back = np.empty(7)
        found, every = scores.values(X, rows, w), scores.all_values(X, w)
        scores.pull_back(X, rows, g, 0.5, back)
        assert found == pytest.approx(X[rows].astype(float) @ w, rel=1e-12)
        np.testing.assert_array_equal(found, every[rows])
        assert back == pytest.approx(0.5 * X[rows].astype(float).T @ g, rel=1e-12)


def test_adam_is_the_textbooks():
    rng = np.random.default_rng(0)
    gradients, w, m, v = rng.normal(size=(9, 4)), np.ones(4), np.zeros(4), np.zeros(4)
    for t, g in enumerate(gradients, 1):
        linear.adam_step(w, g, m, v, t, 0.1)
    remaining = iter(gradients)
    assert w == pytest.approx(reference.adam_ascent(lambda _: next(remaining), np.ones(4), 0.1, 9), rel=1e-13)


# A loop that both sums and stores may be compiled twice, with and without vectors, the way chosen by the addresses of its arrays
# at run time; with sums free to be reassociated the two then differ by rounding, and fits would not repeat to the bit.
PLACED = {
    "box": lambda a: closed_forms.exact_box(a["w"], a["basis"], a["basis"], a["shrink"], 3.0, 0.2, a["e"], a["fair"]),
    "budget": lambda a: closed_forms.exact_budget(a["w"], a["basis"], a["shrink"], a["c"] ** 2, a["c"] ** 2, 0.3, 0.2, a["fair"]),
    "scores": lambda a: linear.all_scores(0, 3, a["X"], a["w"], a["c"]),
    "pull-back": lambda a: linear.pull_back(a["X"], np.array([2, 0, 1]), a["c"], 0.3, a["fair"]),
    "step": lambda a: linear.adam_step(a["w"], a["e"], a["m"], a["v"], 3, 0.01),
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
