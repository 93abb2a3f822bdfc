"""Scores compared less the mean change of their query: closed forms against corners and SLSQP, gradients, solvers, the ascent."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import reference
from scipy.optimize import minimize
from sklearn.base import clone
from small_tasks import make_task

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker, senstir_path
from skfairrank._queries import centred
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget, ExactGaps
from skfairrank.adversaries._exact import effective_sizes
from skfairrank.inspection import invariance_regularizer
from skfairrank.scores import LinearScore, MLPScore

pytestmark = pytest.mark.once

CLOSED = [ExactBox(0.7, 0.1), ExactGaps(0.5, 0.1), ExactBudget(0.2, 0.5)]
MIXED = [(2, 2), (3,), (1, 4, 5), (1, 2, 2, 3, 3, 7)]


def prepared(adversary, sizes, metric, score_distance="centered", weights=None):
    adversary = type(adversary)(**{**adversary.get_params(), "score_distance": score_distance})
    weights = np.ones(len(sizes)) if weights is None else np.array(weights)
    shape = SimpleNamespace(sizes=np.array(sizes), weights=weights, n_features=metric.basis_.shape[1])
    return adversary.prepare(shape, LinearScore(), metric)


def metric_of(K=1, d=3, seed=0):
    metric = SensitiveSubspaceMetric(np.random.default_rng(seed).normal(size=(K, d))).fit(np.zeros((2, d)))
    metric.gaps_ = np.linspace(0.2, 1.0, d)
    return metric


# The distance


def test_a_change_that_all_items_of_a_query_share_costs_nothing():
    offsets = np.array([0, 3, 4, 9])
    shared = np.repeat([2.0, -5.0, 1e6], [3, 1, 5])
    assert centred(shared, offsets) == pytest.approx(0.0, abs=1e-9)
    change = np.random.default_rng(0).normal(size=9)
    assert centred(change + shared, offsets) == pytest.approx(centred(change, offsets), abs=1e-9)


@pytest.mark.parametrize("n", range(1, 9))
def test_the_effective_size_is_the_most_of_all_corners(n):
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    most = np.max(np.sum((corners - corners.mean(axis=1, keepdims=True)) ** 2, axis=1))
    assert effective_sizes(np.array([n]), True)[0] == pytest.approx(most)
    assert effective_sizes(np.array([n]), False)[0] == n


# Closed forms


@pytest.mark.parametrize("sizes", MIXED, ids=str)
@pytest.mark.parametrize("adversary", CLOSED[:2], ids=str)
def test_a_box_is_the_best_of_the_corners_of_all_items(adversary, sizes):
    """Each item's score changes by up to c, independently of the others."""
    metric, w = metric_of(2), np.random.default_rng(1).normal(size=3)
    if isinstance(adversary, ExactBox):
        c = 0.7 * np.abs(metric.directions_ @ w).sum() + 0.1 * np.abs(w).sum()
    else:
        c = (0.5 * metric.gaps_ + 0.1) @ np.abs(w)
    values = []
    for n in sizes:
        corners = c * np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
        values.append(0.5 * np.max(np.sum((corners - corners.mean(axis=1, keepdims=True)) ** 2, axis=1)))
    assert prepared(adversary, sizes, metric).measure(w)[0] == pytest.approx(np.mean(values), rel=1e-12)


@pytest.mark.parametrize("sizes", [(1, 2), (3,), (1, 2, 3), (2, 5)], ids=str)
@pytest.mark.parametrize("epsilon, radius", [(0.3, 0.5), (0.02, 0.7), (0.4, 0.0)])
def test_no_moves_of_single_items_are_better_within_the_budget(sizes, epsilon, radius):
    """By SLSQP over every item's change: a sensitive part within +-a, and t_i, which costs t_i^2 / n_q of the mean budget."""
    metric, w = metric_of(1), np.random.default_rng(2).normal(size=3)
    A = metric.sensitive_basis_
    a, b = radius * np.linalg.norm(A @ w), np.linalg.norm(w - A.T @ (A @ w))
    per_item, N = np.repeat(1.0 / np.array(sizes), sizes), sum(sizes)
    offsets = np.cumsum([0, *sizes])
    share = np.repeat(1.0, N) / len(sizes)

    def objective(z):
        u = about(a * z[:N] + b * z[N:])
        return -0.5 * share @ u**2, -np.concatenate([a * share * u, b * share * u])

    def about(u):
        return np.concatenate([part - part.mean() for part in np.split(u, offsets[1:-1])])

    budget = {
        "type": "ineq",
        "fun": lambda z: epsilon - per_item @ z[N:] ** 2 / len(sizes),
        "jac": lambda z: np.concatenate([np.zeros(N), -2 * per_item * z[N:] / len(sizes)]),
    }
    rng, found = np.random.default_rng(0), 0.0
    for _ in range(15):
        side = np.concatenate([rng.permutation(n) % 2 * 2.0 - 1.0 for n in sizes])
        start = np.concatenate([side, 0.3 * side * rng.random(N)])
        result = minimize(objective, start, jac=True, bounds=[(-1, 1)] * N + [(None, None)] * N,
                          constraints=budget, method="SLSQP", options={"maxiter": 300, "ftol": 1e-12})  # fmt: skip
        if result.success:
            found = max(found, -result.fun)
    value, spent, *_ = prepared(ExactBudget(epsilon, radius), sizes, metric).measure(w)
    assert value == pytest.approx(found, rel=1e-5) and spent == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("adversary", CLOSED, ids=str)
@pytest.mark.parametrize("sizes", MIXED, ids=str)
def test_their_gradients_are_their_slopes_and_the_value_is_that_of_all_weights(adversary, sizes):
    closed, w = prepared(adversary, sizes, metric_of(2)), np.random.default_rng(3).normal(size=3)
    slope = reference.finite_difference(lambda at: closed.measure(at)[0], w)
    np.testing.assert_allclose(closed.measure(w)[2], slope, rtol=1e-5, atol=1e-7)
    twice = prepared(adversary, (*sizes, *sizes[:1]), metric_of(2)).measure(w)[0]
    weights = np.array([2, *[1] * (len(sizes) - 1)]) * len(sizes) / (len(sizes) + 1)
    weighted = prepared(adversary, sizes, metric_of(2), weights=weights)
    assert weighted.measure(w)[0] == pytest.approx(twice, rel=1e-9)


@pytest.mark.parametrize("adversary", CLOSED, ids=str)
def test_queries_of_an_even_size_are_as_dear_as_before_and_single_items_are_free(adversary):
    metric, w = metric_of(2), np.random.default_rng(4).normal(size=3)
    both = [prepared(adversary, (4, 4), metric, d).measure(w)[0] for d in ("squared", "centered")]
    assert both[0] == pytest.approx(both[1], rel=1e-12) and both[0] > 0
    value, _, gradient, _ = prepared(adversary, (1, 1), metric).measure(w)
    assert value == 0.0 and (gradient == 0.0).all()
    uneven = [prepared(adversary, (3, 5), metric, d).measure(w)[0] for d in ("squared", "centered")]
    assert uneven[1] < uneven[0]


@pytest.mark.parametrize("adversary", CLOSED, ids=str)
@pytest.mark.parametrize("sizes", [(3, 3, 3), (1, 2, 5)], ids=str)
def test_the_dual_norm_ends_where_no_weights_gain(adversary, sizes):
    """The largest slope.w with R(w) = mean size / 2, or more: no random weights reach it. Of size 3 it grows by (9/8)^.5."""
    closed, rng = prepared(adversary, sizes, metric_of(1)), np.random.default_rng(0)
    slope, reached = rng.normal(size=3), 0.0
    for _ in range(4000):
        w = rng.normal(size=3) * rng.integers(0, 2, 3)
        value = closed.measure(w)[0]
        if value > 0:
            reached = max(reached, abs(slope @ w) / np.sqrt(value / (np.mean(sizes) / 2)))
    assert reached <= closed.dual_norm(slope) * (1 + 1e-9)
    if sizes == (3, 3, 3):
        plain = prepared(adversary, sizes, metric_of(1), "squared")
        assert closed.dual_norm(slope) == pytest.approx(np.sqrt(9 / 8) * plain.dual_norm(slope), rel=1e-12)


@pytest.mark.parametrize("name", ["exact", "exact_box", "gaps"])
def test_the_solver_trains_with_effective_sizes(name):
    """Queries of three items count as 8/3: for a box R is that of rho * 8/9 as it stands. For the budget nothing is left to gain
    across its kink."""
    task = make_task(sizes=(3,) * 12, weights=(1.0, -1.0, 0.5, 0.2), seed=1)
    group = np.tile([0, 1], 18)
    adversary = {"exact": ExactBudget(0.01, 0.3, "centered"), "exact_box": ExactBox(0.3, 0.1, "centered"),
                 "gaps": ExactGaps(1.0, 0.1, "centered")}[name]  # fmt: skip
    settings = {"solver": "lbfgs", "alpha": 1e-3, "max_iter": 500}
    given = {"qid": task.qid, "sensitive_features": group}
    metric = [[1.0, 1.0, 0, 0]] if name != "gaps" else SensitiveSubspaceMetric()
    centered = SenSTIRRanker(metric, rho=0.02, adversary=adversary, **settings).fit(task.X, task.y, **given)
    w = centered.coef_
    shape = SimpleNamespace(sizes=np.full(12, 3), weights=np.ones(12), n_features=4)
    closed = adversary.prepare(shape, LinearScore(), centered.metric_)
    assert centered.history_["regularizer"][-1] == pytest.approx(closed.measure(w)[0], rel=1e-6)
    if name != "exact":
        squared = clone(adversary).set_params(score_distance="squared")
        plain = SenSTIRRanker(metric, rho=0.02 * 8 / 9, adversary=squared, **settings)
        assert w == pytest.approx(plain.fit(task.X, task.y, **given).coef_, abs=1e-3)
    else:
        slope = task.utility(w)[1] - 1e-3 * w - 0.02 * closed.measure(w)[2]
        off = np.array([1.0, -1.0, 0, 0]) / np.sqrt(
            2
        )  # within the kink A w = 0 and across the axes nothing is left to gain
        assert abs(slope @ off) < 1e-3 and np.abs(slope[2:]).max() < 1e-3


def test_a_path_finds_its_grid_centered():
    task = make_task(sizes=(3,) * 20, seed=1)
    d = task.X.shape[1]
    path = senstir_path(
        task.X,
        task.y,
        qid=task.qid,
        metric=[[1.0, *[0.0] * (d - 1)]],
        n_rhos=3,
        alpha=1e-3,
        adversary=ExactBox(score_distance="centered"),
    )
    assert (np.diff(path.rhos) > 0).all() and (np.diff(path.regularizers) < 0).all()


# The ascent


@pytest.mark.parametrize("score", ["line", "mlp"])
@pytest.mark.parametrize("n", [4, 7])
def test_the_ascent_comes_near_the_box_that_its_steps_reach(score, n):
    """Adam's steps are of one length: 20 of .01 from starts within .01, and 20 of .001; half of the items go each way."""
    rng = np.random.default_rng(0)
    X, qid, y = rng.normal(size=(3 * n, 4)), np.repeat(np.arange(3), n), rng.integers(0, 2, 3 * n).astype(float)
    adversary = Ascent(subspace_step_size=0.01, subspace_init=0.01, score_distance="centered")
    settings = {"adversary": adversary, "rho": 0.01, "max_iter": 1, "alpha": 0.0, "fair_start": 0.0}
    if score == "mlp":
        kind = MLPScore((3,))
        ranker = SenSTIRRanker([[1, 1, 0, 0]], score_function=kind, **settings)
        ranker.fit(X, y, qid=qid)
        assert 0 < ranker.history_["regularizer"][0] < np.inf
        return
    w = np.array([1.0, 0.5, -1.0, 0.2])

    class Start(LinearScore):
        def initial_parameters(self, n_features, rng):
            return w.copy()

    ranker = SenSTIRRanker([[1, 1, 0, 0]], score_function=Start(), random_state=0, **settings)
    ranker.fit(X, y, qid=qid)
    reach, free = 0.01 + 20 * 0.01 * 1.05, 20 * 0.001 * 1.05
    m = n - (n % 2) / n
    box = m / 2 * (reach * abs(ranker.metric_.directions_[0] @ w) + free * np.abs(w).sum()) ** 2
    assert 0.6 * box < ranker.history_["regularizer"][0] <= box


@pytest.mark.parametrize("bounds", [{}, {"feature_range": (-9, 9)}], ids=["free", "bounded"])
@pytest.mark.parametrize("score", [LinearScore(), MLPScore((3,))], ids=["line", "mlp"])
def test_the_gradient_of_the_ascent_is_the_slope_at_held_moves(score, bounds):
    """No steps: the moves are the random starts, the same at all parameters; one query of three items and one of two."""
    rng = np.random.default_rng(0)
    X, d = rng.normal(size=(5, 3)), 3
    batch = SimpleNamespace(
        X=X, rows=np.arange(5), offsets=np.array([0, 3, 5]), queries=np.arange(2), weight=np.array([0.5, 1.5])
    )
    batches = SimpleNamespace(n_features=d, n_numbers=2, X=X, in_order=lambda: [batch])
    metric, theta = metric_of(2), rng.normal(size=score.initial_parameters(d, rng).shape)

    def attack(theta):
        adversary = Ascent(score_distance="centered", subspace_n_steps=0, full_n_steps=0, subspace_init=0.5, **bounds)
        found = adversary.prepare(batches, score, metric, rho=0.5, rng=np.random.default_rng(1))
        return found.attack(batch, theta, 0.1)

    slope = reference.finite_difference(lambda at: attack(at).regularizer, theta)
    np.testing.assert_allclose(attack(theta).gradient, slope, rtol=1e-5, atol=1e-8)


def test_items_start_in_opposite_pairs():
    """A linear score without steps: the changes of a query of four sum to zero, so that centering takes nothing away."""
    X, rng = np.zeros((4, 3)), np.random.default_rng(0)
    batch = SimpleNamespace(X=X, rows=np.arange(4), offsets=np.array([0, 4]), queries=np.arange(1), weight=np.ones(1))
    batches, w = SimpleNamespace(n_features=3, n_numbers=1, X=X), rng.normal(size=3)
    metric = metric_of(1)
    adversary = Ascent(score_distance="centered", subspace_n_steps=0, full_n_steps=0, subspace_init=0.5)
    found = adversary.prepare(batches, LinearScore(), metric, rho=0.5, rng=np.random.default_rng(1)).attack(
        batch, w, 0.1
    )
    c = 0.5 * (2.0 * np.random.default_rng(1).random((4, 1)) - 1.0)
    assert found.regularizer == pytest.approx(np.sum((c[[0, 2]] * (metric.directions_ @ w)) ** 2), rel=1e-12)


# The regulariser as users ask for it


@pytest.mark.parametrize("adversary", CLOSED, ids=str)
def test_the_ascent_within_bounds_stays_below_the_closed_form(adversary):
    metric, w, qid = metric_of(1), np.array([1.0, -0.5, 2.0]), np.repeat([0, 1, 2], [1, 4, 5])
    centered = clone(adversary).set_params(score_distance="centered")
    settings = {"qid": qid, "metric": metric}
    exact = invariance_regularizer(w, np.zeros((10, 3)), adversary=centered, **settings)
    found = invariance_regularizer(
        w, np.zeros((10, 3)), adversary=centered, method="ascent", random_state=0, **settings
    )
    assert 0.99 * exact < found <= exact * (1 + 1e-9)
    assert exact < invariance_regularizer(w, np.zeros((10, 3)), adversary=adversary, **settings)


def test_another_word_is_an_error():
    with pytest.raises(ValueError, match="score_distance"):
        SenSTIRRanker([[1, 0]], adversary=Ascent(score_distance="mean")).fit(np.eye(2), [0, 1], qid=[0, 0])
    with pytest.raises(ValueError, match="score_distance"):
        invariance_regularizer([1, 2], np.eye(2), qid=[0, 0], metric=metric_of(1, 2), adversary=ExactBox(1, 1, "mean"))
