"""The invariance regulariser as users call it: closed forms, corners and SLSQP, the ascent, what it takes and refuses."""

import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import reference
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_tasks import make_task

from skfairrank import PlackettLuceRanker, QueryRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget, ExactGaps
from skfairrank.inspection import invariance_regularizer
from skfairrank.scores import LinearScore, MLPScore

pytestmark = pytest.mark.once

SIZES = {
    "one size": (4, 4, 4),
    "mixed": (2, 3, 5, 5),
    "one large": (1, 1, 1, 9),
    "single query": (6,),
    "single rows": (1, 1),
}
every_size = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
BOUNDS = [(0.3, 0.7, 0.02), (0.01, 0.2, 0.1), (2.0, 0.05, 0.5)]  # epsilon, subspace_radius, feature_radius


def problem(sizes, K=2, d=5, seed=0):
    """Weights, rows in shuffled queries, and a metric whose directions are neither orthogonal nor of unit norm."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=d), rng.normal(size=(len(qid), d)), qid, metric_of(rng.normal(size=(K, d)) * 3 + 0.1)


def metric_of(raw):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing is (treated as sensitive|left to rank by)")
        return SensitiveSubspaceMetric(raw if len(raw) else None).fit(np.zeros((2, np.shape(raw)[1])))


# Values


@every_size
@pytest.mark.parametrize("K", [0, 1, 3])
def test_the_box_is_the_best_of_its_corners(sizes, K):
    w, X, qid, metric = problem(sizes, K)
    for _, r, delta in BOUNDS:
        got = invariance_regularizer(w, X, qid=qid, metric=metric, adversary=ExactBox(r, delta))
        corners = reference.box_supremum(w, metric.directions_, np.mean(sizes), r, delta)
        assert isinstance(got, float) and got == pytest.approx(corners, rel=1e-12)


@pytest.mark.parametrize("adversary", [ExactBudget(0.1), ExactBox(1.0, 0.1)], ids=str)
def test_it_is_the_square_of_a_norm(adversary):
    """Of the weights: homogeneous of degree two, convex, monotone in every bound."""
    w, X, qid, metric = problem((2, 3, 5))
    other = np.random.default_rng(1).normal(size=5)
    R = lambda w, **k: invariance_regularizer(  # noqa: E731
        w, X, qid=qid, metric=metric, adversary=clone(adversary).set_params(**k)
    )
    assert R(-3 * w) == pytest.approx(9 * R(w), rel=1e-10) and R(0 * w) == 0
    assert R(w + other) ** 0.5 <= (R(w) ** 0.5 + R(other) ** 0.5) * (1 + 1e-12)
    assert R(w, subspace_radius=0.3) > R(w, subspace_radius=0.2) > R(w, subspace_radius=0)
    name = "epsilon" if isinstance(adversary, ExactBudget) else "feature_radius"
    assert R(w, **{name: 0.2}) > R(w)


@pytest.mark.parametrize("adversary", ["exact", "exact_box"])
def test_only_the_sizes_of_queries_count(adversary):
    w, X, qid, metric = problem((2, 3, 5))
    settings = {"metric": metric, "adversary": adversary}
    once = invariance_regularizer(w, X, qid=qid, **settings)
    rng = np.random.default_rng(0)
    order = rng.permutation(10)
    assert invariance_regularizer(w, X[order], qid=qid[order], **settings) == once
    assert invariance_regularizer(w, 1e3 * rng.normal(size=X.shape), qid=np.sort(qid), **settings) == once
    names = np.array(["c", "a", "b"])[qid]
    assert invariance_regularizer(w, X.astype(np.float32), qid=names, **settings) == pytest.approx(once, rel=1e-14)
    twice = invariance_regularizer(w, np.vstack([X, X]), qid=np.r_[qid, qid + 3], **settings)
    assert twice == pytest.approx(once, rel=1e-12)  # a mean over queries


# The ascent


@every_size
@pytest.mark.parametrize("K", [0, 1, 2, 5])
@pytest.mark.parametrize("score_distance", ["squared", "centered"])
def test_the_ascent_comes_close_from_below(sizes, K, score_distance):
    for seed in range(2):
        w, X, qid, metric = problem(sizes, K, seed=seed)
        w *= 10.0 ** (4 * seed - 2)
        for epsilon, r, delta in (*BOUNDS[seed : seed + 2], (0.0, 0.0, 0.0)):
            for adversary in (ExactBudget(epsilon, r, score_distance), ExactBox(r, delta, score_distance)):
                R = partial(invariance_regularizer, w, X, qid=qid, metric=metric, adversary=adversary)
                assert 0.99 * R() <= R(method="ascent", random_state=seed) <= R() * (1 + 1e-12)


@pytest.mark.parametrize("score_distance", ["squared", "centered"])
@pytest.mark.parametrize("kind", [ExactBudget, ExactBox])
def test_the_ascent_attacks_any_score_within_the_same_bounds(kind, score_distance):
    """A network: no random moves within the bounds do more; a linear function written as a network's rival is the closed form."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(12, 3)), rng.integers(0, 3, 12).astype(float), np.repeat([0, 1, 2], 4)
    ranker = SenSTIRRanker([[1, 0, 0]], score_function=MLPScore((4,)), max_iter=30, random_state=0).fit(X, y, qid=qid)
    adversary = kind(*((0.2, 0.5) if kind is ExactBudget else (0.5, 0.2)), score_distance=score_distance)
    found = invariance_regularizer(ranker, X, qid=qid, adversary=adversary, random_state=0)
    s, most = ranker.predict(X), 0.0
    for _ in range(300):
        if kind is ExactBox:
            moved = rng.choice([-0.2, 0.2], (12, 3)) + rng.choice([-0.5, 0.5], (12, 1)) * [1.0, 0, 0]
        else:
            moved = rng.normal(size=(12, 3)) * [0, 1, 1]
            moved *= np.sqrt(0.2 / np.mean((moved**2).sum(axis=1)))
            moved[:, 0] = rng.choice([-0.5, 0.5], 12)
        change = ranker.predict(X + moved) - s
        if score_distance == "centered":
            change -= np.repeat(change.reshape(3, 4).mean(axis=1), 4)
        most = max(most, 0.5 * np.sum(change**2) / 3)
    assert 0.3 * found < most <= found * (1 + 1e-9)


def test_the_ascent_repeats_with_its_seed():
    w, X, qid, metric = problem((2, 3, 5))
    ask = partial(invariance_regularizer, w, X, qid=qid, metric=metric, adversary=Ascent(full_n_steps=3))
    found = [ask(random_state=state) for state in (0, 0, np.random.default_rng(0), 1)]
    assert found[0] == found[1] == found[2] != found[3]
    state = np.random.get_state()[1].copy()
    ask(random_state=None)
    np.testing.assert_array_equal(np.random.get_state()[1], state)


@pytest.mark.parametrize("sizes", [(4, 4), (2, 3, 5)])
@pytest.mark.parametrize("adversary", ["exact", "exact_box"])
def test_gradients_are_subgradients_at_kinks(adversary, sizes):
    """R is convex: R(v) >= R(w) + g.(v - w), also where w is zero in part, orthogonal to a direction, or within the subspace."""
    rng = np.random.default_rng(0)
    raw = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]])
    metric, X, qid = metric_of(raw), np.zeros((sum(sizes), 4)), np.repeat(np.arange(len(sizes)), sizes)
    bounds = {"exact": ExactBudget(0.1, 0.2), "exact_box": ExactBox(0.2, 0.1)}[adversary]
    shape = SimpleNamespace(sizes=np.array(sizes), weights=np.ones(len(sizes)), n_features=4)
    closed = bounds.prepare(shape, LinearScore(), metric)
    R = lambda w: invariance_regularizer(w, X, qid=qid, metric=metric, adversary=bounds)  # noqa: E731
    for w in ([1.0, -1.0, 0.0, 2.0], [1.0, 1.0, -1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]):
        w = np.array(w)
        g = closed.measure(w)[2]
        for v in w + rng.normal(size=(200, 4)) * np.repeat([1e-4, 1e-2, 1.0, 10.0], 50)[:, None]:
            assert R(v) >= R(w) + g @ (v - w) - 1e-12


# What it takes


def test_a_ranker_brings_its_weights_and_its_metric():
    task = make_task(seed=1)
    raw = np.array([[1.0, 1.0, 0.0, 0.0]])
    ranker = SenSTIRRanker(raw, max_iter=50, random_state=0).fit(task.X, task.y, qid=task.qid)
    own = invariance_regularizer(ranker.coef_, task.X, qid=task.qid, metric=ranker.metric_)
    assert own > 0
    assert invariance_regularizer(ranker, task.X, qid=task.qid) == own
    assert invariance_regularizer(FrozenEstimator(ranker), task.X, qid=task.qid) == own
    other = metric_of([[0.0, 0.0, 0.0, 1.0]])
    given = invariance_regularizer(ranker, task.X, qid=task.qid, metric=other)
    assert given == invariance_regularizer(ranker.coef_, task.X, qid=task.qid, metric=other) != own
    assert invariance_regularizer(ranker, task.X, qid=task.qid, metric=FrozenEstimator(other)) == given


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression()])
def test_any_linear_model_will_do(model):
    task, metric = make_task(seed=1), metric_of([[1.0, 1.0, 0.0, 0.0]])
    model.fit(task.X, task.y > 2)
    got = invariance_regularizer(model, task.X, qid=task.qid, metric=metric)
    assert got == invariance_regularizer(np.ravel(model.coef_), task.X, qid=task.qid, metric=metric) > 0


# What it refuses


REFUSED = [
    ({"adversary": "box"}, "adversary='box': choose"),
    ({"adversary": "given"}, "GivenHypotheticals names no bounds"),
    ({"method": "descent"}, "method='descent': choose"),
    ({"metric": None}, "metric is missing"),
    ({"metric": SensitiveSubspaceMetric([[1.0, 0, 0, 0, 0]])}, "not fitted"),
    ({"qid": [0, 1]}, "qid has 2 entries for 5 rows"),
    ({"qid": None}, "qid is missing"),
    ({"weights_or_ranker": [1.0, 2.0, np.nan, 0.0, 0.0]}, "NaN"),
    ({"weights_or_ranker": list("abcde")}, "could not convert"),
    ({"X": np.full((5, 5), np.nan)}, "NaN"),
    ({"adversary": "ascent", "random_state": "seed"}, "random_state"),
    ({"weights_or_ranker": np.ones(4)}, "weights, X has 5 features and the metric 5: they must be the same features"),
    ({"X": np.ones((5, 4))}, "X has 4 features and the metric 5: they must be the same features"),
    ({"metric": metric_of([[1.0, 0, 0, 0]])}, "X has 5 features and the metric 4: they must be the same features"),
    ({"adversary": ExactBudget(epsilon=-1e-9)}, "'epsilon' parameter"),
    ({"adversary": ExactBox(subspace_radius=np.inf)}, "'subspace_radius' parameter"),
    ({"adversary": ExactGaps(gap_radius=np.nan)}, "'gap_radius' parameter"),
]


@pytest.mark.parametrize("given, message", REFUSED, ids=[message for _, message in REFUSED])
def test_bad_arguments_are_an_error(given, message):
    w, X, qid, metric = problem((2, 3))
    with pytest.raises(ValueError, match=message):
        invariance_regularizer(**{"weights_or_ranker": w, "X": X, "qid": qid, "metric": metric, **given})


def test_features_of_other_names_are_an_error():
    """The same columns in another order would be mixed up in silence."""
    task = make_task(seed=1)
    X = pd.DataFrame(task.X, columns=list("abcd"))
    metric, turned = SensitiveSubspaceMetric([[1.0, 1.0, 0.0, 0.0]]).fit(X), X[list("badc")]
    ask = partial(invariance_regularizer, qid=task.qid, metric=metric)
    ranker = PlackettLuceRanker(max_iter=5, random_state=0).fit(turned, task.y, qid=task.qid)
    for table, names in ((turned, "'b', 'a'"), (X, "'a', 'b'")):
        with pytest.raises(ValueError, match=f"features.*{names}"):
            ask(ranker, table)
    same = clone(ranker).fit(X, task.y, qid=task.qid)
    assert ask(same, X) == ask(same, task.X)


def test_models_without_linear_scores_are_an_error_with_the_remedy():
    task, metric = make_task(seed=1), metric_of([[1.0, 1.0, 0.0, 0.0]])
    ask = partial(invariance_regularizer, X=task.X, qid=task.qid, metric=metric)
    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(task.X, task.y)
    assert ask(pipeline[-1], X=pipeline[:-1].transform(task.X)) > 0
    for model, message in (
        (pipeline, "pass the pipeline's last step, and X as transformed"),
        (GaussianNB().fit(task.X, task.y), "GaussianNB has neither coef_"),
        (LogisticRegression().fit(task.X, task.y), "features"),  # a row of weights for each class
        (SenSTIRRanker(), "not fitted"),
        (QueryRanker(LinearRegression()), "not fitted"),
    ):
        with pytest.raises(ValueError, match=message):
            ask(model)
