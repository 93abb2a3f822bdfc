"""What holds for every score function: gradients, rows of a large X, training, and the general ascent against the linear one."""

import pickle

import autograd.numpy as anp
import numpy as np
import pytest
from autograd.extend import defvjp, primitive
from reference import finite_difference
from scipy.special import expit
from sklearn.base import clone

from skfairrank import FairPGRanker, PlackettLuceRanker, SenSTIRRanker, senstir_path
from skfairrank.adversaries import Ascent
from skfairrank.datasets import make_biased_ranking
from skfairrank.metrics import stochastic_ndcg_score
from skfairrank.scores import FunctionScore, LinearScore, MLPScore, Score

TASK = make_biased_ranking(n_queries=40, random_state=0)
FIT = {"qid": TASK.qid, "sensitive_features": TASK.sensitive_features}
FAST = {"max_iter": 40, "random_state": 0}


class QuadraticScore(Score):
    """h(x) = a.x + x'Bx: neither linear nor a network."""

    def __init__(self, spread=0.1):
        self.spread = spread

    def initial_parameters(self, n_features, rng):
        return rng.normal(scale=self.spread, size=n_features + n_features**2)

    def _parts(self, theta, X):
        d = X.shape[1]
        return theta[:d], theta[d:].reshape(d, d)

    def values(self, theta, X):
        a, B = self._parts(theta, X)
        return X @ a + np.einsum("ij,jk,ik->i", X, B, X)

    def parameter_gradient(self, theta, X, g):
        return np.concatenate([g @ X, np.einsum("i,ij,ik->jk", g, X, X).ravel()])

    def input_gradient(self, theta, X):
        a, B = self._parts(theta, X)
        return a + X @ (B + B.T)


class PlainLinear(Score):
    """h(x) = theta . x, in the general way: nothing knows that it is linear."""

    def initial_parameters(self, n_features, rng):
        return LinearScore().initial_parameters(n_features, rng)

    def values(self, theta, X):
        return X @ theta

    def parameter_gradient(self, theta, X, g):
        return g @ X

    def input_gradient(self, theta, X):
        return np.broadcast_to(theta, X.shape)


def product(theta, X):
    """A factorisation: (X u)(X v)."""
    u, v = anp.split(theta, 2)
    return anp.dot(X, u) * anp.dot(X, v)


def any_start(rng, n_features):
    return rng.normal(size=2 * n_features)


@primitive
def cube(x):
    return x**3


defvjp(cube, lambda _, x: lambda g: 3 * x**2 * g)


def one_weight_each(rng, n_features):
    return rng.normal(size=n_features)


def cubic(theta, X):
    """Of a part that autograd can go back through, and not forward."""
    return cube(anp.dot(X, theta))


SCORES = {
    "linear": LinearScore(),
    "linear, in the general way": PlainLinear(),
    "quadratic": QuadraticScore(),
    "function": FunctionScore(product, any_start),
    "function without forward slopes": FunctionScore(cubic, one_weight_each),
    "network": MLPScore((5,)),
    "network of two layers": MLPScore((4, 3), activation="softplus"),
    "network without layers": MLPScore(()),
    "rectified network": MLPScore(6, activation="relu"),
}
every_score = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)


@every_score
def test_gradients_are_finite_differences(score):
    rng = np.random.default_rng(0)
    X, g, theta = rng.normal(size=(7, 4)), rng.normal(size=7), score.initial_parameters(4, rng) + 0.3
    in_parameters = finite_difference(lambda t: g @ score.values(t, X), theta, 1e-6)
    np.testing.assert_allclose(score.parameter_gradient(theta, X, g), in_parameters, atol=1e-7)
    for i in range(7):
        in_input = finite_difference(lambda x: score.values(theta, x[None])[0], X[i], 1e-6)
        np.testing.assert_allclose(score.input_gradient(theta, X)[i], in_input, atol=1e-7)


@every_score
@pytest.mark.parametrize("n_moves", [None, 1, 3])
def test_items_on_the_move_have_the_scores_of_where_they_are(score, n_moves):
    """And slopes by the chain rule; what is asked a second time does not depend on the first."""
    rng = np.random.default_rng(1)
    X, theta = rng.normal(size=(7, 4)), score.initial_parameters(4, rng) + 0.3
    V = None if n_moves is None else rng.normal(size=(n_moves, 4))
    at = score.along(theta, X, V)
    for _ in range(2):
        c = rng.normal(size=(7, n_moves or 4))
        moved = X + c @ (np.eye(4) if V is None else V)
        values, slopes = at(c)
        np.testing.assert_allclose(values, score.values(theta, moved), rtol=1e-12, atol=1e-13)
        expected = score.input_gradient(theta, moved) @ (np.eye(4) if V is None else V).T
        np.testing.assert_allclose(slopes, expected, rtol=1e-10, atol=1e-12)


def test_tanh_is_numpys_to_a_few_units_in_the_last_place():
    rng = np.random.default_rng(0)
    x = np.r_[rng.normal(size=3000), rng.uniform(-25, 25, 3000), np.logspace(-300, 308, 2000), 0.0, np.inf, -np.inf]
    x = np.r_[x, -x, np.nan]
    identity = np.array([1.0, 0.0, 1.0])  # one unit: W = 1, b = 0, w = 1
    found = MLPScore((1,)).values(identity, x[:, None])
    np.testing.assert_array_max_ulp(found[:-1], np.tanh(x[:-1]), maxulp=4)
    assert np.isnan(found[-1])


@every_score
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_a_large_table_are_items_as_any_other(score, dtype):
    """More rows than are read at once; X may be float32."""
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(500, 3)).astype(dtype), rng.integers(0, 500, 40_000)
    theta, g = score.initial_parameters(3, rng) + 0.3, rng.normal(size=40_000)
    items, back = X[rows].astype(np.float64), np.empty(len(theta))
    np.testing.assert_allclose(score.values_of_rows(theta, X, rows), score.values(theta, items), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(
        score.values_of_rows(theta, X), score.values(theta, X.astype(np.float64)), rtol=1e-12, atol=1e-13
    )
    score.vjp(theta, X, rows, g, 0.5, back)
    np.testing.assert_allclose(back, 0.5 * score.parameter_gradient(theta, items, g), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rho", [0.0, 0.01])
@pytest.mark.parametrize(
    "settings", [{}, {"metric": [[0.5, 1.0]], "batch_size": 3}, {"adversary": Ascent(1e-5, subspace_n_starts=None)}]
)
def test_a_linear_score_in_the_general_way_trains_as_the_linear_score(rho, settings):
    """The general ascent knows values and slopes only; the linear one shares paths, sums in lanes, and tests plans."""
    own = {"adversary": Ascent(subspace_n_starts=None), **settings}
    common = {"rho": rho, "max_iter": 200, "batch_size": 5, "random_state": 0, **own}
    linear = SenSTIRRanker(**common).fit(TASK.data, TASK.target, **FIT)
    general = SenSTIRRanker(score_function=PlainLinear(), **common).fit(TASK.data, TASK.target, **FIT)
    np.testing.assert_allclose(general.parameters_, linear.coef_, rtol=1e-6, atol=1e-9)
    for name, values in linear.history_.items():
        np.testing.assert_allclose(general.history_[name], values, rtol=1e-5, atol=1e-10)
    assert rho == 0 or linear.history_["query_distance"].max() > 0


@pytest.mark.parametrize("make", [PlackettLuceRanker, SenSTIRRanker, FairPGRanker])
@every_score
def test_every_trained_ranker_takes_every_score(make, score):
    ranker = make(score_function=score, **FAST).fit(TASK.data, TASK.target, **FIT)
    again = clone(ranker).fit(TASK.data, TASK.target, **FIT)
    np.testing.assert_array_equal(again.parameters_, ranker.parameters_)
    scores, loaded = ranker.predict(TASK.data), pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(loaded.predict(TASK.data), scores)
    np.testing.assert_allclose(scores, score.values(ranker.parameters_, TASK.data), rtol=1e-12, atol=1e-14)
    assert hasattr(ranker, "coef_") == score.is_linear
    again.set_params(warm_start=True, max_iter=1, learning_rate=1e-9).fit(TASK.data, TASK.target, **FIT)
    np.testing.assert_allclose(again.parameters_, ranker.parameters_, atol=1e-8)


def test_another_score_leaves_no_weights_of_the_last_fit():
    ranker = PlackettLuceRanker(**FAST).fit(TASK.data, TASK.target, qid=TASK.qid)
    ranker.set_params(score_function=QuadraticScore()).fit(TASK.data, TASK.target, qid=TASK.qid)
    assert not hasattr(ranker, "coef_") and ranker.predict(TASK.data).shape == (len(TASK.data),)
    with pytest.raises(ValueError, match="2 features and 6 parameters, and X has 2 features and 2 parameters"):
        ranker.set_params(score_function="linear", warm_start=True).fit(TASK.data, TASK.target, qid=TASK.qid)


def test_the_deterministic_solver_takes_other_scores_where_nothing_is_regularised():
    """It ends where the exact gradient in the parameters vanishes."""
    ranker = PlackettLuceRanker(score_function=QuadraticScore(), solver="lbfgs", alpha=0.01, random_state=0)
    ranker.fit(TASK.data, TASK.target, qid=TASK.qid)

    def objective(theta):
        s = QuadraticScore().values(theta, TASK.data)
        utility = stochastic_ndcg_score(TASK.target, s, qid=TASK.qid, n_samples="exact")
        return utility - 0.005 * theta @ theta

    assert np.abs(finite_difference(objective, ranker.parameters_)).max() < 1e-3
    assert objective(ranker.parameters_) > objective(np.zeros(6)) + 0.05


@pytest.mark.parametrize("adversary", ["gaps", "exact_box", "exact"])
def test_closed_forms_and_paths_refuse_scores_that_are_not_linear(adversary):
    ranker = SenSTIRRanker(score_function=QuadraticScore(), adversary=adversary, **FAST)
    with pytest.raises(ValueError, match="closed form for linear scores only"):
        ranker.fit(TASK.data, TASK.target, **FIT)
    with pytest.raises(ValueError, match="linear"):
        senstir_path(TASK.data, TASK.target, rhos=[0.1], estimator=ranker, **FIT)


class Incomplete:
    def values(self, theta, X): ...


class ShortGradient(PlainLinear):
    def parameter_gradient(self, theta, X, g):
        return (g @ X)[:1]


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (QuadraticScore, "score_function"),
        (Incomplete(), "score_function"),
        ("cubic", "score_function"),
        (None, "score_function"),
        (ShortGradient(), r"ShortGradient has gradient in theta of shape \(1,\)"),
        (MLPScore((4, 0)), "numbers of units >= 1"),
        (MLPScore(True), "numbers of units >= 1"),
        (MLPScore((4.5,)), "numbers of units >= 1"),
        (MLPScore(activation="sigmoid"), "activation"),
    ],
)
def test_what_is_no_score_is_refused(score, message):
    with pytest.raises((TypeError, ValueError), match=message):
        PlackettLuceRanker(score_function=score, **FAST).fit(TASK.data, TASK.target, qid=TASK.qid)


def fit_function(function, initial=(0.1, 0.2)):
    score = FunctionScore(function, initial)
    return SenSTIRRanker(score_function=score, rho=0.1, **FAST).fit(TASK.data, TASK.target, **FIT)


def filled(theta, X):
    scores = np.zeros(len(X))
    for i, x in enumerate(X):
        scores[i] = x @ theta
    return scores


@pytest.mark.parametrize(
    "function",
    [
        lambda theta, X: np.dot(X, theta),  # an array of objects
        lambda theta, X: expit(X @ theta),
        lambda theta, X: np.array([float(x @ theta) for x in X]),
        lambda theta, X: [x @ theta for x in X],
        filled,
    ],
    ids=["dot", "scipy", "float", "list", "filled"],
)
@pytest.mark.filterwarnings("ignore:Output seems independent of input")
def test_a_function_that_autograd_cannot_follow_is_told_what_to_use(function):
    with pytest.raises(TypeError, match="autograd.numpy in the place of numpy"):
        fit_function(function)


@pytest.mark.parametrize("V", [None, [[1.0, 2.0]], np.eye(2)], ids=["free", "one direction", "two directions"])
def test_a_function_whose_features_autograd_cannot_follow_says_so_too(V):
    score = FunctionScore(lambda theta, X: anp.tanh(theta[0]) * expit(X[:, 0]), [1.0])
    at = score.along(np.array([1.0]), np.ones((3, 2)), None if V is None else np.array(V))
    with pytest.raises(TypeError, match="autograd.numpy in the place of numpy"):
        at(np.ones((3, 2 if V is None else len(V))))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda theta, X: (X @ theta)[:, None], r"returned shape \(400, 1\) for 400 items"),
        (lambda theta, X: anp.sum(X @ theta), r"returned shape \(\) for 400 items"),
        (
            lambda theta, X: X @ theta + np.where(np.arange(len(X)) == 7, np.nan, 0.0),
            r"scores not finite .*\(nan in place 7\)",
        ),
        (lambda theta, X: anp.exp(1000.0 + X @ theta), r"scores not finite .*\(inf in place 0\)"),
        (lambda theta, X: anp.sqrt(0.0 * (X @ theta)), "gradient in theta not finite"),
        (lambda theta, X: X @ theta - anp.mean(X @ theta), "first row the score 0 by itself and .* among 400 rows"),
        (lambda theta, X: X @ np.r_[theta, 1.0], r"where training starts: theta has shape \(2,\), X \(400, 2\)"),
    ],
    ids=["column", "one number", "nan", "inf", "gradient", "other rows", "an error of its own"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_a_function_returns_is_looked_at_where_training_starts(function, message):
    with pytest.raises(ValueError, match=message):
        fit_function(function)


def test_equal_rows_have_equal_scores_whatever_lies_beside_them():
    """Case 45: also in another block of rows, and with another sign of zero."""
    rng = np.random.default_rng(0)
    score, theta = FunctionScore(lambda theta, X: X @ theta, initial=np.zeros(37)), rng.normal(size=37)
    X = rng.normal(size=(5, 37))[rng.integers(0, 5, 9001)]
    X[:, 0], X[7, 0] = 0.0, -0.0
    for found in (score.values_of_rows(theta, X), score.values(theta, X[:123])):
        assert len(set(found.tolist())) == 5 and found == pytest.approx(X[: len(found)] @ theta, rel=1e-12)
