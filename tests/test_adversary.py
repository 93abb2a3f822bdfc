"""Adversaries: bounds of the ascent, errors, lambda, and what the closed forms are made of."""

import numpy as np
import pytest
import reference
from sklearn.base import clone
from small_tasks import make_task

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker, senstir_path
from skfairrank._kernels import linear
from skfairrank._queries import Queries
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget, ExactGaps
from skfairrank.adversaries._base import DualStep
from skfairrank.scores import LinearScore, MLPScore
from skfairrank.training._batches import Batches
from skfairrank.utilities import Tables

STEPS = {"subspace_step_size": 0.01, "subspace_n_steps": 20, "full_step_size": 0.001, "full_n_steps": 20}
STILL = {"subspace_n_steps": 0, "full_n_steps": 0, "subspace_init": 0.5}
either_distance = pytest.mark.parametrize("score_distance", ["squared", "centered"])


def problem(sizes=(5, 3, 1, 5, 4), d=6, K=2, seed=0, spread=1.0, weights=None):
    """A source of batches, a metric with directions that are neither orthogonal nor of unit norm, and weights."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = spread * rng.normal(size=(len(qid), d))
    metric = SensitiveSubspaceMetric(directions=rng.normal(size=(K, d)) * 3 + 0.1).fit(np.zeros((2, d)))
    batches = Batches(X, Queries.from_qid(qid, len(X)), Tables(np.zeros(len(X)), np.zeros(max(sizes))), weights)
    return batches, metric, rng.normal(size=d)


def whole(batches):
    (batch,) = batches.in_order()
    return batch


def prepared(adversary, batches, metric, rho=0.5, score=None):
    return adversary.prepare(batches, score or LinearScore(), metric, rho=rho, rng=np.random.default_rng(1))


# The ascent


@either_distance
@pytest.mark.parametrize("n_starts", [None, 5])
def test_the_ascent_never_exceeds_the_closed_forms_within_its_own_bounds(score_distance, n_starts):
    """It spends d_Q (far items: the identity is optimal), and moves an item by at most r along A: in both phases, since a free
    move along A costs nothing either."""
    for seed in range(6):
        batches, metric, w = problem(sizes=(5, 5, 5), seed=seed, d=4, K=1, spread=100.0)
        settings = {**STEPS, "full_step_size": 0.02, "score_distance": score_distance, "subspace_n_starts": n_starts}
        ascent = prepared(Ascent(epsilon=0.1, dual_step="paper", **settings), batches, metric)
        got = ascent.attack(whole(batches), w, 0.01)
        # Starts, and Adam's steps: a few percent above the step size at most.
        reach, free = 0.05 + 20 * 0.01 * 1.05, 20 * 0.02 * 1.05
        r = reach * np.linalg.norm(metric.directions_[0]) + free * np.abs(metric.sensitive_basis_[0]).sum()
        exact = prepared(ExactBudget(got.query_distance, r, score_distance), batches, metric).measure(w)[0]
        box = prepared(ExactBox(reach, free, score_distance), batches, metric).measure(w)[0]
        assert 0.2 * exact < got.regularizer <= exact
        assert 0.5 * box < got.regularizer <= box


@either_distance
@pytest.mark.parametrize("bounds", [{}, {"feature_range": (-9, 9)}], ids=["free", "bounded"])
@pytest.mark.parametrize("score", [LinearScore(), MLPScore((3,))], ids=["line", "mlp"])
def test_the_gradient_of_the_ascent_is_the_slope_at_held_moves(score, bounds, score_distance):
    """No steps: the moves are the random starts, the same at all parameters; one query of three items and one of two."""
    batches, metric, _ = problem((3, 2), d=3, weights=np.array([0.5, 1.5]))
    theta = np.random.default_rng(0).normal(size=score.initial_parameters(3, np.random.default_rng(0)).shape)

    def attack(theta):
        adversary = Ascent(score_distance=score_distance, **STILL, **bounds)
        return prepared(adversary, batches, metric, score=score).attack(whole(batches), theta, 0.1)

    slope = reference.finite_difference(lambda at: attack(at).regularizer, theta)
    np.testing.assert_allclose(attack(theta).gradient, slope, rtol=1e-5, atol=1e-8)


def test_items_start_in_opposite_pairs():
    """A linear score without steps: the changes of a query of four sum to zero, so that centering takes nothing away."""
    batches, metric, w = problem((4,), d=3, K=1)
    found = prepared(Ascent(score_distance="centered", **STILL), batches, metric).attack(whole(batches), w, 0.1)
    c = 0.5 * (2.0 * np.random.default_rng(1).random((4, 1)) - 1.0)
    assert found.regularizer == pytest.approx(np.sum((c[[0, 2]] * (metric.directions_ @ w)) ** 2), rel=1e-12)


@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_what_is_not_finite_or_no_word_is_an_error(scale):
    """Case 20."""
    batches, metric, w = problem()
    with pytest.raises(ValueError, match=r"not finite.*StandardScaler"):
        prepared(Ascent(), batches, metric).attack(whole(batches), w * scale, 2.0)
    for adversary in (Ascent(score_distance="mean"), ExactBox(score_distance="mean")):
        with pytest.raises(ValueError, match="score_distance"):
            prepared(adversary, batches, metric)
    batches.X[:] *= 1e200
    with pytest.raises(ValueError, match="StandardScaler"):
        prepared(Ascent(), batches, metric)


# The dual


@pytest.mark.parametrize("distance, epsilon", [(0.2, 0.1), (0.1, 0.2), (0.1, 0.1), (0.3, 0.0), (0.0, 0.3), (0.0, 0.0)])
def test_lambda_grows_while_the_adversary_overspends(distance, epsilon):
    """The sign printed in the paper's Algorithm 1 is a misprint. The step is the ratio of the larger to the smaller, guarded."""
    new = DualStep("paper", epsilon)(2.0, distance)
    assert new == pytest.approx(reference.dual_step(2.0, distance, epsilon))
    assert (new > 2) == (distance > epsilon) and (new < 2) == (distance < epsilon)
    assert new >= DualStep.LEAST == 1e-5


# Scores compared less the mean change of their query


@pytest.mark.parametrize("adversary", [ExactBudget(0.01, 0.3), ExactBox(0.3, 0.1), ExactGaps(1.0, 0.1)], ids=str)
def test_the_solver_trains_with_effective_sizes(adversary):
    """Queries of three items count as 8/3: for a box R is that of rho * 8/9 as it stands. For the budget nothing is left to gain
    within its kink A w = 0, and across the axes. A path finds its grid as well."""
    task = make_task(sizes=(3,) * 12, weights=(1.0, -1.0, 0.5, 0.2), seed=1)
    given = {"qid": task.qid, "sensitive_features": np.tile([0, 1], 18)}
    metric = SensitiveSubspaceMetric() if isinstance(adversary, ExactGaps) else [[1.0, 1.0, 0, 0]]
    settings = {"solver": "lbfgs", "alpha": 1e-3, "max_iter": 500, "metric": metric}
    centered = clone(adversary).set_params(score_distance="centered")
    ranker = SenSTIRRanker(rho=0.02, adversary=centered, **settings).fit(task.X, task.y, **given)
    w, closed = ranker.coef_, prepared(centered, problem((3,) * 12, d=4)[0], ranker.metric_)
    assert ranker.history_["regularizer"][-1] == pytest.approx(closed.measure(w)[0], rel=1e-6)
    if isinstance(adversary, ExactBudget):
        slope = task.utility(w)[1] - 1e-3 * w - 0.02 * closed.measure(w)[2]
        assert abs(slope[0] - slope[1]) < 1.4e-3 and np.abs(slope[2:]).max() < 1e-3
    else:
        plain = SenSTIRRanker(rho=0.02 * 8 / 9, adversary=adversary, **settings)
        assert w == pytest.approx(plain.fit(task.X, task.y, **given).coef_, abs=1e-3)
    path = senstir_path(task.X, task.y, n_rhos=3, adversary=centered, **settings, **given)
    assert (np.diff(path.rhos) > 0).all() and (np.diff(path.regularizers) < 0).all()


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
    given = {
        "w": rng.normal(size=d), "e": 0.01 * rng.normal(size=d), "X": rng.normal(size=(3, d)), "c": rng.uniform(0.5, 1.0, 3),
        "fair": np.zeros(d), "m": np.zeros(d), "v": np.zeros(d),
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
