"""Plausible hypotheticals: ranges, one-hot groups, fixed columns; in training, and in the regulariser as users ask for it."""

import numpy as np
import pandas as pd
import pytest
from instruments import StartAt
from scipy.optimize import minimize
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.adversaries import Ascent, GapsAscent
from skfairrank.adversaries._constraints import FeasibleSet
from skfairrank.inspection import invariance_regularizer
from skfairrank.scores import LinearScore, MLPScore, Score

pytestmark = pytest.mark.once

STEPS = {
    "subspace_step_size": 0.1,
    "subspace_n_steps": 12,
    "subspace_init": 0.1,
    "full_step_size": 0.05,
    "full_n_steps": 12,
}


def task(seed=0, sizes=(4, 1, 5, 3)):
    """Two numbers, a group of three categories, another of two; rows interleaved; labels from all of them."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = np.hstack([rng.normal(size=(n, 2)), np.eye(3)[rng.integers(0, 3, n)], np.eye(2)[rng.integers(0, 2, n)]])
    y = np.digitize(X @ [1, -1, 1, 0, 2, 0, 1] + 0.3 * rng.normal(size=n), [0, 1]).astype(float)
    return X, y, rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


GROUPS = [[2, 3, 4], [5, 6]]


class Seen(Score):
    """Another score, and every point at which it was asked for values or slopes."""

    def __init__(self, score, points):
        self.score = score
        self.points = points

    def __sklearn_clone__(self):
        return self

    @property
    def is_linear(self):
        return self.score.is_linear

    def initial_parameters(self, n_features, rng):
        return rng.normal(size=self.score.initial_parameters(n_features, rng).shape)

    def values(self, theta, X):
        self.points.append(np.array(X))
        return self.score.values(theta, X)

    def parameter_gradient(self, theta, X, g):
        self.points.append(np.array(X))
        return self.score.parameter_gradient(theta, X, g)

    def input_gradient(self, theta, X):
        self.points.append(np.array(X))
        if isinstance(self.score, LinearScore):
            return np.broadcast_to(theta, np.shape(X))
        return self.score.input_gradient(theta, X)


def attacked(X, y, qid, adversary, *, score=None, metric=None, **settings):
    """The points that one step of training looks at, in the order of the batch, and the rows of it."""
    points = []
    score = Seen(score or LinearScore(), points)
    settings = {"max_iter": 1, "fair_start": 0.0, "batch_size": 99, "rho": 1.0, "random_state": 0, **settings}
    metric = np.ones((1, X.shape[1])) if metric is None else metric
    ranker = SenSTIRRanker(metric, adversary=adversary, score_function=score, **settings).fit(X, y, qid=qid)
    del points[: 0 if score.is_linear else 3]  # what is looked at where training starts, in the order of X
    rows = np.array([p for p in points if len(p) == len(X)])
    return rows, rows[0], ranker


# What an attack reaches


@pytest.mark.parametrize("kind", [Ascent, GapsAscent])
@pytest.mark.parametrize("score", [LinearScore(), MLPScore((3,))], ids=["line", "mlp"])
@pytest.mark.parametrize("score_distance", ["squared", "centered"])
@pytest.mark.parametrize(
    "feature_range", ["train", (-0.5, 0.5), ([-1, -np.inf, *5 * [0]], [np.inf, 0.2, *5 * [1]])], ids=str
)
def test_every_attacked_item_stays_in_range_and_on_its_simplexes(kind, score, score_distance, feature_range):
    for seed in range(3):
        X, y, qid = task(seed)
        metric = np.array([[1, -1, 0, 0, 0, 0, 0], [0, 0, 1, 0, -1, 0, 0], [0.5, 0.5, 0.5, 0, 0, -1, 1]])
        if kind is GapsAscent:
            metric = FrozenEstimator(SensitiveSubspaceMetric().fit(X, sensitive_features=X[:, 0] > 0))
        adversary = kind(
            score_distance=score_distance, feature_range=feature_range, one_hot_groups=GROUPS, epsilon=10.0, **STEPS
        )
        points, rows, ranker = attacked(X, y, qid, adversary, score=score, metric=metric, rho=100.0)
        low, high = (X.min(0), X.max(0)) if feature_range == "train" else np.broadcast_arrays(*feature_range, X[0])[:2]
        low, high = np.minimum(low, rows)[:, :2], np.maximum(high, rows)[:, :2]
        assert (points[..., :2] >= low).all() and (points[..., :2] <= high).all()
        for group in GROUPS:
            assert (points[..., group] >= 0).all()
            assert points[..., group].sum(axis=-1) == pytest.approx(1.0, abs=1e-12)
        moved = np.abs(points - rows).max(axis=0)
        assert (moved[:, :2].max(axis=0) > 0.1).all()  # it does attack
        assert (moved[:, 2:] > 0.1).any() and ranker.history_["regularizer"][0] > 0.0


def test_fixed_columns_do_not_move_and_others_do():
    X, y, qid = task()
    points, rows, _ = attacked(X, y, qid, Ascent(immutable_features=[0, -1, 5], **STEPS))
    assert (points[..., [0, 5, 6]] == rows[:, [0, 5, 6]]).all()
    assert (np.abs(points - rows).max(axis=(0, 1))[[1, 2, 3, 4]] > 0.1).all()


def test_an_item_outside_the_range_moves_towards_it_and_not_further_out():
    X, y, qid = task()
    X[:, 0] = np.where(np.arange(len(X)) % 2, 3.0, -3.0)
    points, rows, _ = attacked(X, y, qid, Ascent(feature_range=(-1.0, 1.0), **STEPS), metric=[[1.0, 0, 0, 0, 0, 0, 0]])
    assert (np.abs(points[..., 0]) <= 3.0).all() and (np.abs(points[..., 0]) < 2.5).any()
    # From the end of its range an item has one way to go; none of them is lost.
    assert (np.abs(points[..., 0] - rows[:, 0]).max(axis=0) > 0.5).all()


def test_without_effective_bounds_the_attack_is_the_unbounded_one():
    """Bounds so wide that nothing meets them: the same starts, the same steps."""
    X, y, qid = task()
    settings = {"score_function": MLPScore((3,)), "max_iter": 20, "rho": 0.1, "random_state": 0, "fair_start": 0.0}
    free, wide = (
        SenSTIRRanker(np.ones((1, 7)), adversary=Ascent(feature_range=bounds, **STEPS), **settings).fit(X, y, qid=qid)
        for bounds in (None, (-np.inf, np.inf))
    )
    np.testing.assert_allclose(wide.parameters_, free.parameters_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(wide.history_["query_distance"], free.history_["query_distance"], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("w", [(1.0, 0.5), (0.3, -1.0), (-1.0, 1.0)])
@pytest.mark.parametrize("score_distance", ["squared", "centered"])
def test_the_ascent_finds_what_a_grid_of_feasible_moves_holds(w, score_distance):
    """Two items of two features between -1 and 1; moves along the first feature are free, along the second they cost lambda = 2.

    With n items a move e costs lambda e^2 / n. The grid holds for either item the ends of the first range and steps of .02 of the
    second: a convex function of a free move is largest at an end.
    """
    # The third feature, of no weight, keeps the items apart: d_Q pairs each with itself.
    X, y, qid, rho = np.array([[0.4, -0.2, 9.0], [-0.7, 0.9, -9.0]]), np.array([1.0, 0.0]), np.zeros(2), 3.0
    adversary = Ascent(
        dual_step="paper", feature_range=(-1, 1), score_distance=score_distance, subspace_n_steps=300,
        subspace_step_size=0.02, full_n_steps=300, full_step_size=0.02,
    )  # fmt: skip
    settings = {"score_function": StartAt((*w, 0.0)), "max_iter": 1, "fair_start": 0.0, "random_state": 1}
    ranker = SenSTIRRanker([[1, 0, 0]], rho=rho, adversary=adversary, **settings).fit(X, y, qid=qid)
    steps = np.linspace(-1, 1, 101)
    (a, p), (b, q) = (
        ((w[0] * (np.array([-1, 1]) - x[0])[:, None] + w[1] * (steps - x[1])).ravel(), np.tile((steps - x[1]) ** 2, 2))
        for x in X
    )
    squares = a[:, None] ** 2 + b**2 if score_distance == "squared" else (a[:, None] - b) ** 2 / 2
    worth = rho / 2 * squares - 2.0 * (p[:, None] + q) / 2
    found = rho * ranker.history_["regularizer"][0] - 2.0 * ranker.history_["query_distance"][0]
    assert 0.98 * worth.max() < found < worth.max() * 1.01


# The sets


def test_projections_are_those_of_a_general_optimiser():
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        for z in rng.normal(size=(5, k)) * 2:
            constraint = {"type": "eq", "fun": lambda x: x.sum() - 1}
            found = minimize(
                lambda x, z=z: np.sum((x - z) ** 2), np.full(k, 1 / k), bounds=[(0, 1)] * k, constraints=constraint
            )
            feasible = FeasibleSet(np.zeros((1, k)), np.ones((1, k)), [np.arange(k)])
            assert feasible.project(z[None])[0] == pytest.approx(found.x, abs=1e-5)


def test_the_tangent_is_the_direction_in_which_the_projection_moves():
    """Its one-sided derivative: at corners, on edges, inside; and within a range."""
    rng = np.random.default_rng(1)
    Z = np.vstack([np.eye(4), [0.5, 0.5, 0, 0], [0.2, 0.3, 0.5, 0], [0.25] * 4])
    Z = np.hstack([Z, [[0.0], [1.0], [0.5], [0.0], [1.0], [0.3], [0.7]]])
    feasible = FeasibleSet(np.zeros((7, 5)), np.ones((7, 5)), [np.arange(4)])
    for _ in range(20):
        slope = rng.normal(size=Z.shape)
        assert feasible.tangent(Z, slope) == pytest.approx((feasible.project(Z + 1e-6 * slope) - Z) / 1e-6, abs=1e-8)


# What parameters say


def fit(X=None, **bounds):
    rows, y, qid = task()
    rows = rows if X is None else X
    settings = {"metric": [[1.0] * 7], "max_iter": 3, "fair_start": 0.0, "random_state": 0, "rho": 0.1}
    return SenSTIRRanker(adversary=Ascent(**bounds), **settings).fit(rows, y, qid=qid)


def test_columns_go_by_name_by_position_from_either_end_and_by_mask():
    X, _, _ = task()
    frame = pd.DataFrame(X, columns=list("nmrgbuv"))
    expected = fit(one_hot_groups=GROUPS, immutable_features=[0]).coef_
    for groups, fixed in (
        ([list("rgb"), ["u", "v"]], ["n"]),
        ([["r", 3, "b"], [-2, "v"]], "n"),
        ([[2, 3, 4], [5, 6]], [True, *6 * [False]]),
    ):
        assert fit(frame, one_hot_groups=groups, immutable_features=fixed).coef_.tolist() == expected.tolist()
    assert fit().coef_.tolist() != expected.tolist()


@pytest.mark.parametrize(
    "bounds, message",
    [
        ({"feature_range": "all"}, "feature_range"),
        ({"feature_range": (1.0, 0.0)}, r"low 1.0 above high 0.0 in feature 0"),
        ({"feature_range": (0.0, 1.0, 2.0)}, r"a pair \(low, high\)"),
        ({"feature_range": ([0.0, 0.0], 1.0)}, r"low end.*shape \(2,\).*7 features"),
        ({"feature_range": (np.nan, 1.0)}, "low end.*NaN.*-inf"),
        ({"one_hot_groups": [2, 3, 4]}, "list of groups"),
        ({"one_hot_groups": [["r", "g"]]}, "no column names"),
        ({"one_hot_groups": [[2, 3, 9]]}, "one_hot_groups has 9, but X has 7"),
        ({"one_hot_groups": [[5]]}, "two at least"),
        ({"one_hot_groups": [[2, 3, 4], [4, 5]]}, "twice"),
        ({"one_hot_groups": [[2, 3, 4]], "immutable_features": [3]}, "name it once"),
        ({"one_hot_groups": [[2, 3]]}, r"one-hot group \[2, 3\].*sum to 1.*scaler.*immutable_features"),
        ({"immutable_features": [1.5]}, "immutable_features has 1.5"),
        ({"immutable_features": [True, False]}, "mask of 2 entries"),
        ({"immutable_features": []}, "empty"),
    ],
    ids=str,
)
def test_bounds_out_of_order_are_an_error_that_says_what_to_do(bounds, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit(**bounds)


def test_scaled_one_hot_columns_are_told_from_a_simplex():
    X, y, qid = task()
    adversary = Ascent(one_hot_groups=GROUPS)
    pipe = make_pipeline(StandardScaler(), SenSTIRRanker([[1.0] * 7], adversary=adversary, rho=0.1, max_iter=2))
    with pytest.raises(ValueError, match="scaler has moved them"):
        pipe.fit(X, y, senstirranker__qid=qid)
    pipe.set_params(senstirranker__adversary=Ascent(immutable_features=[2, 3, 4, 5, 6]))
    pipe.fit(X, y, senstirranker__qid=qid)


# The regulariser as users ask for it


def test_the_attack_of_the_regulariser_stays_within_bounds():
    """No larger than without bounds; nothing where nothing may move."""
    X, _, qid = task()
    w = np.random.default_rng(0).normal(size=7)
    metric = SensitiveSubspaceMetric(np.eye(7)[:2] + 0.1).fit(X)

    def R(**bounds):
        adversary = Ascent(0.05, full_step_size=0.05, **bounds)
        return invariance_regularizer(w, X, qid=qid, metric=metric, adversary=adversary, random_state=0)

    assert 0 < R(feature_range="train", one_hot_groups=GROUPS) < R(feature_range=(-99, 99))
    assert R(immutable_features=range(7)) == 0.0
