"""Algorithm 1: whole fits against a readable NumPy twin, its batches, and what must not change a bit of it."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import reference
from instruments import Diary, ScoreWithDiary, StartAt, needs_two_threads, on_threads
from sklearn.base import clone
from small_tasks import Task

from skfairrank import FairPGRanker, PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank._queries import Queries
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget
from skfairrank.metrics import stochastic_ndcg_score
from skfairrank.policies import make_gradient
from skfairrank.rankers._senstir import Invariance
from skfairrank.scores import LinearScore
from skfairrank.training._adam import Adam, Problem, Regularizer, TrainingState, train
from skfairrank.training._batches import Batches, BatchStream
from skfairrank.utilities import NDCG

pytestmark = pytest.mark.once

SIZES = (4, 1, 3, 4, 2, 3, 4)
FAST = {"max_iter": 25, "n_samples": 5, "batch_size": 3, "random_state": 3}
START = np.array([0.02, -0.01, 0.03, 0.0, -0.02])


def problem(sizes=SIZES, d=5, seed=0, dtype=np.float64):
    """Rows of all queries, shuffled among each other."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.normal(size=(len(qid), d)).astype(dtype)
    return X, rng.integers(0, 4, len(qid)).astype(float), qid


def directions(K, d=5, seed=1):
    return np.random.default_rng(seed).normal(size=(K, d)) * 2 if K else None


def fitted_metric(V):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing is treated as sensitive")
        return SensitiveSubspaceMetric(V).fit(np.zeros((2, 5)))


def batches_of(X, y, qid, weights=None):
    queries = Queries.from_qid(qid, len(qid))
    return Batches(X, queries, NDCG().tables(queries.group(y), queries.offsets), weights)


# Against the twin


class Drawn:
    """A fit's batches, the noise of its rankings, and the starts of its attacks, drawn from streams like those it is given."""

    def __init__(self, qid, source, *, batch_size, n_steps, n_samples):
        rows, stream, found = (
            [np.flatnonzero(qid == q) for q in np.unique(qid)],
            BatchStream(source, batch_size, *streams()),
            [],
        )
        while len(found) < n_steps:
            found += stream.take(n_steps - len(found))
        self.batches = [[rows[q] for q in batch.queries] for batch in found]
        self.weights = [source.weights[batch.queries] for batch in found]
        self.noise = [
            [reference.exponentials(batch.key, b, n_samples, len(rows[q])) for b, q in enumerate(batch.queries)]
            for batch in found
        ]

    def starts(self, rng, n_plain, n_shared, width, n_moved):
        """Of each item, from a number of starts that the items of a step share, or from one of its own (None)."""
        out = [None] * n_plain
        for batch in self.batches[n_plain:]:
            sizes = list(map(len, batch))
            drawn = width * (2 * rng.random((n_shared or sum(sizes), n_moved)) - 1)
            out.append(drawn[np.concatenate([np.arange(n) % n_shared for n in sizes])] if n_shared else drawn)
        return out


def streams():
    """For the order of the queries, and for the noise."""
    return np.random.default_rng(8), np.random.default_rng(9)


def trained(source, gradient, regularizer, *, n_steps, batch_size, learning_rate, alpha=0.0):
    state = TrainingState(START.copy(), multiplier=regularizer.multiplier)
    problem, stream = (
        Problem(source, LinearScore(), gradient, regularizer, alpha),
        BatchStream(source, batch_size, *streams()),
    )
    regularizer.prepare(source, LinearScore())
    train(problem, state, stream, Adam(len(START)), learning_rate, n_steps)
    assert state.n_iter == n_steps and not state.interrupted
    return state


@pytest.mark.parametrize("K", [0, 1, 2])
@pytest.mark.parametrize("sizes, n_starts", [(SIZES, None), ((4,) * 7, 4)], ids=["own starts", "shared starts"])
@pytest.mark.parametrize("n_plain, is_weighted", [(0, False), (10, False), (0, True)])
def test_training_is_algorithm_1(K, sizes, n_starts, n_plain, is_weighted):
    """Plain NumPy, query by query and item by item: weights, lambda and the whole history; also with weights of queries."""
    X, y, qid = problem(sizes)
    source = batches_of(X, y, qid, np.array([1.0, 0.0, 2.0, 0.5, 3.0, 1.0, 2.0]) if is_weighted else None)
    metric = fitted_metric(directions(K))
    adversary = Ascent(
        epsilon=0.01, subspace_n_starts=n_starts, subspace_step_size=0.01, subspace_n_steps=6, subspace_init=0.02,
        full_step_size=0.01, full_n_steps=7, dual_step="paper",
    )  # fmt: skip
    invariance = Invariance(adversary, metric, strength=0.7, n_plain=n_plain, rng=np.random.default_rng(3))
    settings = {"learning_rate": 0.05, "alpha": 0.02}
    state = trained(source, make_gradient("reinforce", 5), invariance, n_steps=25, batch_size=3, **settings)
    drawn = Drawn(qid, source, batch_size=3, n_steps=25, n_samples=5)
    w, lambda_, history = reference.senstir(
        X, y, START, batches=drawn.batches, noise=drawn.noise, weights=drawn.weights, rho=0.7, n_plain=n_plain,
        starts=drawn.starts(np.random.default_rng(3), n_plain, n_starts, 0.02 if K else 0.01, K or 5),
        raw=metric.directions_, basis=metric.basis_, epsilon=0.01, steps=(0.01, 6, 0.01, 7), **settings,
    )  # fmt: skip
    assert state.theta == pytest.approx(w, rel=1e-8, abs=1e-12)
    assert state.multiplier == pytest.approx(lambda_, rel=1e-7)
    for column, name in enumerate(("utility", "regularizer", "query_distance", "lambda")):
        assert state.history[name] == pytest.approx(history[:, column], rel=1e-7, abs=1e-14), name
    assert (state.history["lambda"][:n_plain] == 2).all() and (state.history["regularizer"][:n_plain] == 0).all()
    acts = state.history["regularizer"][n_plain:] > 0
    assert acts.all() if K else acts.sum() > len(acts) / 2


def exact_gradient(h, gain, discount, _):
    return reference.expected_utility_gradient(h, gain, discount), reference.expected_utility(h, gain, discount)


TWINS = {"reinforce": reference.reinforce, "plrank": reference.plrank, "exact": exact_gradient}


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize("batch_size", [1, 3, 7, 50])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_training_without_a_regulariser_is_stochastic_gradient_ascent(kind, batch_size, is_weighted):
    X, y, qid = problem(seed=1)
    source = batches_of(X, y, qid, np.arange(7.0) if is_weighted else None)
    state = trained(source, make_gradient(kind, 4), Regularizer(), n_steps=20, batch_size=batch_size, learning_rate=0.1)
    drawn = Drawn(qid, source, batch_size=batch_size, n_steps=20, n_samples=4)
    w, _, history = reference.senstir(
        X,
        y,
        START,
        batches=drawn.batches,
        noise=drawn.noise,
        weights=drawn.weights,
        learning_rate=0.1,
        gradient=TWINS[kind],
    )
    assert state.theta == pytest.approx(w, rel=1e-9, abs=1e-12)
    assert state.history["utility"] == pytest.approx(history[:, 0], rel=1e-10)


@pytest.mark.parametrize("adversary", [ExactBudget(0.2, 0.3), ExactBox(0.3, 0.05)], ids=str)
def test_a_fit_with_an_exact_adversary_subtracts_its_gradient(adversary):
    """Two steps from known weights: exact utility gradient less rho times the finite difference of the supremum, less alpha w."""
    X, y, qid = problem(seed=2)
    V, w0, task = directions(2), np.array([0.5, -1.0, 0.3, 0.8, -0.2]), Task(X, y, qid)
    settings = {
        "adversary": adversary, "gradient": "exact", "rho": 0.4, "alpha": 0.3, "fair_start": 0.0,
        "batch_size": 99, "learning_rate": 1e-3, "random_state": 0, "score_function": StartAt(w0),
    }  # fmt: skip
    basis = np.linalg.qr(V.T)[0].T

    def penalty(w):
        if isinstance(adversary, ExactBox):
            return np.mean([reference.box_supremum(w, V, n, 0.3, 0.05) for n in SIZES])
        return reference.budget_supremum(w, basis, SIZES, 0.2, 0.3)

    def slope(w):
        return reference.finite_difference(lambda w: task.utility(w)[0] - 0.4 * penalty(w) - 0.15 * w @ w, w, step=1e-4)

    adam, found = reference.Adam(5, 1e-3), []
    w1 = w0 + adam.move(slope(w0))
    w2 = w1 + adam.move(slope(w1))
    for max_iter in (1, 2):
        ranker = SenSTIRRanker(V, max_iter=max_iter, **settings).fit(X, y, qid=qid)
        found.append(ranker.coef_)
    # The first step is the sign of the gradient, to 1e-8 / |g|; how large it was, the second tells.
    assert np.abs(slope(w0)).min() > 1e-3 and found[0] - w0 == pytest.approx(w1 - w0, rel=1e-4)
    assert found[1] == pytest.approx(w2, abs=1e-7)
    assert ranker.history_["regularizer"] == pytest.approx([penalty(w0), penalty(w1)], rel=1e-6)


# Batches


def all_batches(qid, batch_size, n_steps, at_most=512, chosen=None, at_once=None):
    """Their gains number the rows."""
    source = batches_of(np.empty((len(qid), 0)), np.zeros(len(qid)), qid)
    source.tables = source.tables._replace(gain=source.queries.group(np.arange(float(len(qid)))))
    source = source if chosen is None else source.subset(np.array(chosen))
    stream, found = BatchStream(source, batch_size, *streams()), []
    stream.at_once = at_once or stream.at_once
    while len(found) < n_steps:
        found += stream.take(min(at_most, n_steps - len(found)))
    return found


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 100])
def test_batches_are_passes_over_all_queries(batch_size):
    _, _, qid = problem()
    found = all_batches(qid, batch_size, 42)
    drawn = np.concatenate([b.queries for b in found])
    assert len(found) == 42 and all(len(b.queries) == min(batch_size, 7) for b in found)
    passes = drawn[: len(drawn) // 7 * 7].reshape(-1, 7)
    assert (np.sort(passes, axis=1) == np.arange(7)).all() and len(np.unique(passes, axis=0)) > 1
    for b in found:
        assert b.offsets[0] == 0 and b.rows.tolist() == [r for q in b.queries for r in np.flatnonzero(qid == q)]
        assert np.diff(b.offsets).tolist() == [SIZES[q] for q in b.queries]
        assert b.gain.tolist() == b.rows.tolist()
    assert len({int(b.key) for b in found}) == 42


@pytest.mark.parametrize("at_most", [1, 2, 5, 100])
def test_random_streams_do_not_depend_on_how_many_steps_are_prepared(at_most):
    _, _, qid = problem()
    for a, b in zip(all_batches(qid, 3, 30), all_batches(qid, 3, 30, at_most=at_most, at_once=3), strict=True):
        assert a.queries.tolist() == b.queries.tolist() and a.rows.tolist() == b.rows.tolist()
        assert a.key == b.key


def test_batches_of_a_subset_of_queries_stay_in_it():
    """As early stopping trains: rows keep their numbers in X, and queries theirs."""
    X, y, qid = problem()
    for b in all_batches(qid, 2, 9, chosen=[1, 4, 6]):
        assert set(b.queries) <= {1, 4, 6}
        assert b.rows.tolist() == b.gain.tolist() == [r for q in b.queries for r in np.flatnonzero(qid == q)]
    for chosen in (np.arange(7), np.array([0, 2, 5])):
        found = list(batches_of(X, y, qid).subset(chosen).in_order())
        assert np.concatenate([b.queries for b in found]).tolist() == chosen.tolist()
        assert np.concatenate([b.rows for b in found]).tolist() == [r for q in chosen for r in np.flatnonzero(qid == q)]


# What must not change a bit


RANKERS = {
    **{gradient: PlackettLuceRanker(gradient=gradient, **FAST) for gradient in TWINS},
    **{f"fair exposure, {g}": FairPGRanker(gradient=g, fairness_weight=2.0, **FAST) for g in TWINS},
    **{name: SenSTIRRanker(adversary=name, rho=0.5, **FAST) for name in ("ascent", "exact", "exact_box")},
    "a start for each item": SenSTIRRanker(adversary=Ascent(subspace_n_starts=None), rho=0.5, **FAST),
    "learned columns": SenSTIRRanker(SensitiveSubspaceMetric(sensitive_columns=[0]), rho=0.5, **FAST),
    "early stopping": SenSTIRRanker(rho=0.5, early_stopping=True, validation_fraction=0.3, **FAST),
}


@pytest.mark.parametrize("name", RANKERS)
def test_interleaving_queries_gives_the_same_weights_to_the_bit(name):
    """Case 2, for every way to train, and for a metric learned inside fit."""
    X, y, qid = problem(seed=4)
    g = np.random.default_rng(0).integers(0, 2, len(qid))
    ranker = RANKERS[name].fit(X, y, qid=qid, sensitive_features=g)
    coef, scores, history = ranker.coef_.copy(), ranker.predict(X), ranker.history_
    turns, another = np.random.default_rng(0).permutation(qid), np.empty(len(qid), int)
    for q in np.unique(qid):
        another[turns == q] = np.flatnonzero(qid == q)
    for order in (np.argsort(qid, kind="stable"), another):
        again = RANKERS[name].fit(X[order], y[order], qid=qid[order], sensitive_features=g[order])
        np.testing.assert_array_equal(again.coef_, coef)
        np.testing.assert_array_equal(again.predict(X[order]), scores[order])
        for key in history:
            np.testing.assert_array_equal(again.history_[key], history[key])


def test_other_queries_give_other_weights():
    """Case 2: the same rows, grouped otherwise."""
    X, y, _ = problem(sizes=(3, 3))
    a, b = (PlackettLuceRanker(**FAST).fit(X, y, qid=qid).coef_ for qid in ([0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]))
    assert not np.allclose(a, b)


@needs_two_threads
@pytest.mark.parametrize("name", RANKERS)
def test_any_number_of_threads_gives_the_same_weights_to_the_bit(name):
    X, y, qid = problem(seed=5)
    g = np.random.default_rng(0).integers(0, 2, len(qid))
    one = RANKERS[name].fit(X, y, qid=qid, sensitive_features=g).coef_
    for n in (1, 2):
        with on_threads(n):
            np.testing.assert_array_equal(RANKERS[name].fit(X, y, qid=qid, sensitive_features=g).coef_, one)


@needs_two_threads
@pytest.mark.parametrize("n", [0, 1, 4096, 4097, 20_000])
def test_scores_of_many_rows_have_the_same_bits_on_any_number_of_threads(n):
    rng, score = np.random.default_rng(0), LinearScore()
    X, w, g, rows = rng.normal(size=(500, 7)), rng.normal(size=7), rng.normal(size=n), rng.integers(0, 500, n)
    found = []
    for n_threads in (1, 2):
        with on_threads(n_threads):
            back = np.empty(7)
            score.vjp(w, X, rows, g, 0.5, back)
            found.append(np.r_[score.values_of_rows(w, X, rows), score.values_of_rows(w, X), back])
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], np.r_[X[rows] @ w, X @ w, 0.5 * g @ X[rows]], rtol=1e-10, atol=1e-10)


class Unable(Ascent):
    """It gets ready, and has no attack."""

    def prepare(self, *args, **kwargs):
        return SimpleNamespace()


@pytest.mark.parametrize("gradient", TWINS)
@pytest.mark.parametrize("early_stopping", [False, True])
def test_no_regulariser_is_the_plain_ranker_to_the_bit(gradient, early_stopping):
    """Case 20: rho = 0 attacks nothing, solves no transport, and resets nothing; nor does a fairness weight of 0."""
    X, y, qid = problem(SIZES * 5)
    g = np.arange(len(qid)) % 2
    common = {**FAST, "max_iter": 200, "gradient": gradient, "alpha": 0.1, "early_stopping": early_stopping}
    plain = PlackettLuceRanker(**common).fit(X, y, qid=qid)
    assert (plain.n_iter_ < 200) == early_stopping
    for other in (
        SenSTIRRanker(directions(2), adversary=Unable(), rho=0, fair_start=0.5, **common),
        SenSTIRRanker(rho=0.0, adversary="exact_box", **common),
        SenSTIRRanker(directions(2), adversary=Unable(), rho=0.3, fair_start=1.0, **common),
        FairPGRanker(fairness_weight=0, **common),
    ):
        other.fit(X, y, qid=qid, sensitive_features=g)
        np.testing.assert_array_equal(other.coef_, plain.coef_)
        for key in plain.history_:
            np.testing.assert_array_equal(other.history_[key], plain.history_[key])
    with pytest.warns(UserWarning, match="no sensitive_features"):
        np.testing.assert_array_equal(FairPGRanker(**common).fit(X, y, qid=qid).coef_, plain.coef_)


def test_rho_of_any_type_is_the_same_number():
    """Case 20."""
    X, y, qid = problem()
    fits = [
        SenSTIRRanker(directions(1), rho=rho, **FAST).fit(X, y, qid=qid).coef_
        for rho in (1, 1.0, np.float32(1), np.int8(1))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0], other)


def test_numpys_global_state_is_untouched_by_training():
    X, y, qid = problem()
    before = np.random.get_state()[1].copy()
    for state in (None, 0):
        SenSTIRRanker(directions(1), max_iter=3, random_state=state).fit(X, y, qid=qid)
    assert (np.random.get_state()[1] == before).all()


def test_kinds_of_random_state():
    X, y, qid = problem()

    def coef(state):
        return PlackettLuceRanker(max_iter=5, random_state=state).fit(X, y, qid=qid).coef_.tolist()

    def jumped():
        """A generator's state counts, not the seed sequence that made it, which `jumped` replaces by a fresh one."""
        return np.random.Generator(np.random.PCG64(0).jumped(1))

    assert coef(0) == coef(0) != coef(1) and coef(None) != coef(None)
    for make in (lambda: np.random.default_rng(0), lambda: np.random.RandomState(0), jumped):
        shared = make()
        assert coef(make()) == coef(shared) != coef(shared)  # it advances
    assert coef(jumped()) != coef(np.random.default_rng(0))


# What it learns


def fair_task(seed=0):
    """Case 20: relevance is the sum of two uniform features, before the second is lost for a fifth of the items."""
    rng = np.random.default_rng(seed)
    X = rng.random((5000, 2))
    y = X.sum(axis=1)
    X[rng.random(5000) < 0.2, 1] = 0.0
    return X, y, np.repeat(np.arange(500), 10)


@pytest.mark.parametrize("adversary", ["ascent", "exact", "exact_box"])
def test_the_regulariser_frees_the_scores_of_the_sensitive_feature(adversary):
    """Case 20."""
    X, y, qid = fair_task()
    common = {"learning_rate": 0.02, "max_iter": 3000, "random_state": 0, "adversary": adversary}
    a, b = SenSTIRRanker([[0, 1]], rho=0, **common).fit(X, y, qid=qid).coef_
    assert 1.15 < a / b < 1.6
    for rho in (0.1, 1.0):
        a, b = SenSTIRRanker([[0, 1]], rho=rho, **common).fit(X, y, qid=qid).coef_
        assert abs(b) < abs(a) / 3


@pytest.mark.filterwarnings("ignore:Nothing is treated as sensitive")
def test_the_regulariser_acts_without_sensitive_directions():
    """Case 20: the ascent must leave its start, where its gradient is zero."""
    X, y, qid = problem()
    plain, strong = (SenSTIRRanker(rho=rho, **{**FAST, "max_iter": 300}).fit(X, y, qid=qid) for rho in (0, 300))
    assert np.linalg.norm(strong.coef_) < 0.5 * np.linalg.norm(plain.coef_)
    assert (strong.history_["regularizer"][30:] > 0).mean() > 0.9


@pytest.mark.parametrize("gradient", TWINS)
def test_queries_without_a_choice_teach_exactly_nothing(gradient):
    """Cases 10 and 11: nothing relevant, everything equally relevant, one row. The weights stay where they started."""
    X, _, _ = problem(sizes=(3, 3, 1, 1))
    qid, y = np.repeat(np.arange(4), (3, 3, 1, 1)), np.array([0, 0, 0, 2, 2, 2, 3, 0.0])
    with pytest.warns(UserWarning, match="All relevances are equal within each query"):
        ranker = PlackettLuceRanker(gradient=gradient, score_function=StartAt(START), **FAST).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.coef_, START)


@pytest.mark.parametrize("gradient", TWINS)
def test_queries_of_one_two_and_five_rows_are_learned_from(gradient):
    """Case 10."""
    X, y, qid = problem(sizes=(1, 2, 5))
    y[qid == 1] = [0, 1]
    coef = SenSTIRRanker(directions(1), gradient=gradient, **FAST).fit(X, y, qid=qid).coef_
    assert np.isfinite(coef).all() and np.abs(coef).min() > 1e-3


@pytest.mark.parametrize("ranker", [PlackettLuceRanker(**FAST), SenSTIRRanker([[1, 0, 0, 0, 0]], rho=1.0, **FAST)])
@pytest.mark.parametrize("n_large", [2, None])
def test_features_too_large_are_an_error(ranker, n_large):
    """Case 20: +-1e200."""
    X, y, qid = problem()
    X[:n_large] *= 1e200
    with pytest.raises(ValueError, match="StandardScaler"):
        ranker.fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="diverged|not finite"):
        clone(ranker).set_params(learning_rate=1e308).fit(problem()[0] * 1e10, y, qid=qid)


# Early stopping


def noisy_task(n_queries=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * 5, 5))
    y = (X[:, 0] + 2 * rng.normal(size=len(X)) > 0.5).astype(float)
    return X, y, rng.permutation(np.repeat(np.arange(n_queries), 5))


def fit_with_diary(ranker, X, y, qid, **kwargs):
    """The ranker, the ids of the queries that it trains on and that it holds out, and its diary."""
    diary = Diary()
    ranker.set_params(score_function=ScoreWithDiary(diary)).fit(X, y, qid=qid, **kwargs)
    return ranker, np.unique(qid[diary.rows_trained_on]), np.unique(qid[diary.rows_looked_at]), diary


STOPPING = {
    "early_stopping": True,
    "max_iter": 3000,
    "learning_rate": 0.05,
    "validation_fraction": 0.25,
    "random_state": 0,
}


def test_whole_queries_are_held_out_and_do_not_train():
    """Other relevances there: the same steps."""
    X, y, qid = noisy_task()
    settings = {**STOPPING, "n_iter_no_change": 10_000, "max_iter": 200}
    a, kept, held_out, diary = fit_with_diary(PlackettLuceRanker(**settings), X, y, qid)
    assert len(held_out) == 15 and len(kept) == 45 and sorted([*held_out, *kept]) == list(range(60))
    assert len(diary.rows_looked_at) == 75 and len(diary.rows_trained_on) == 225
    y[np.isin(qid, held_out)] = np.arange(75) % 7
    b = PlackettLuceRanker(**settings).fit(X, y, qid=qid)
    np.testing.assert_array_equal(a.history_["utility"], b.history_["utility"])
    assert a.validation_scores_.tolist() != b.validation_scores_.tolist()


def test_the_best_weights_on_held_out_queries_are_kept():
    X, y, qid = noisy_task()
    ranker, _, held_out, _ = fit_with_diary(PlackettLuceRanker(**STOPPING), X, y, qid)
    rows = np.isin(qid, held_out) & np.isin(qid, np.unique(qid[y > 0]))
    score = stochastic_ndcg_score(y[rows], X[rows] @ ranker.coef_, qid=qid[rows], n_samples="exact")
    assert score == pytest.approx(ranker.validation_scores_.max(), rel=1e-12)
    assert ranker.validation_scores_[-1] < score  # it went on, and came back


@pytest.mark.parametrize("make", [
    lambda **k: SenSTIRRanker(directions(1), rho=3.0, fair_start=0.3, **k),
    lambda **k: FairPGRanker(fairness_weight=3.0, **k),
])  # fmt: skip
def test_held_out_scores_are_those_of_the_objective(make):
    """Utility of the held-out queries, less rho times the mean regularizer of the steps since the last look."""
    X, y, qid = noisy_task()
    y += 1  # merits are positive
    ranker, _, held_out, diary = fit_with_diary(
        make(**{**STOPPING, "max_iter": 100}, n_iter_no_change=1000), X, y, qid, sensitive_features=(X[:, 1] > 0)
    )
    rows, strength = np.isin(qid, held_out), getattr(ranker, "fairness_weight", getattr(ranker, "rho", None))
    looks = {n_steps: theta for n_steps, _, theta in diary.looks}
    last = 30 if isinstance(ranker, SenSTIRRanker) else 0
    assert len(looks) == len(ranker.validation_scores_) == (100 - last) // 5
    assert ranker.history_["regularizer"][last:].mean() > 1e-4
    for (n_steps, w), score in zip(looks.items(), ranker.validation_scores_, strict=True):
        ndcg = stochastic_ndcg_score(y[rows], X[rows] @ w, qid=qid[rows], n_samples="exact")
        expected = ndcg - strength * ranker.history_["regularizer"][last:n_steps].mean()
        assert score == pytest.approx(expected, rel=1e-10)
        last = n_steps


def test_training_stops_when_held_out_queries_no_longer_improve():
    X, y, qid = noisy_task()
    for tol in (0.0, 0.003, 0.03):
        ranker = PlackettLuceRanker(n_iter_no_change=3, tol=tol, **STOPPING).fit(X, y, qid=qid)
        assert ranker.n_iter_ < 1000 and len(ranker.history_["utility"]) == ranker.n_iter_
        best, waited = -np.inf, []
        for score in ranker.validation_scores_:
            assert len(waited) < 3
            waited = [] if score > best + tol else [*waited, score]
            best = max(best, score)
        assert len(waited) == 3  # the last three brought nothing, and no three before them


@pytest.mark.parametrize("batch_size, max_iter", [(9, 300), (9, 50), (45, 100), (1, 200), (2, 2000)])
def test_held_out_queries_are_looked_at_after_each_pass(batch_size, max_iter):
    """45 queries to train on: 5 steps a pass, 1, 45, or 23."""
    X, y, qid = noisy_task()
    settings = {**STOPPING, "n_iter_no_change": 10_000, "batch_size": batch_size, "max_iter": max_iter}
    ranker = PlackettLuceRanker(**settings).fit(X, y, qid=qid)
    assert ranker.n_iter_ == max_iter and len(ranker.validation_scores_) == max_iter // -(-45 // batch_size)


def test_too_few_queries_to_hold_out_are_an_error():
    X, y, qid = problem(sizes=(3,))
    with pytest.raises(ValueError, match="holds out 1 of 1 queries"):
        PlackettLuceRanker(early_stopping=True, **FAST).fit(X, y, qid=qid)
