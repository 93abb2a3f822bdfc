"""Algorithm 1: whole fits against a readable NumPy twin, its batches, and what must not change a bit of it."""

import warnings

import numpy as np
import pytest
import reference
from instruments import Diary, Fuse, FusedAdversary, ScoreWithDiary, StartAt, needs_two_threads, on_threads
from sklearn.base import clone

from skfairrank import FairPGRanker, PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank._queries import Queries
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget, GivenHypotheticals
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


def fit(ranker, X, y, qid, **kwargs):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing is treated as sensitive")
        return ranker.fit(X, y, qid=qid, **kwargs)


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


@pytest.mark.parametrize("adversary", ["exact", "exact_box"])
def test_a_fit_with_an_exact_adversary_subtracts_its_gradient(adversary):
    """One step from known weights: exact utility gradient less rho times the finite difference of the supremum, less alpha w."""
    X, y, qid = problem(seed=2)
    V, w0 = directions(2), np.array([0.5, -1.0, 0.3, 0.8, -0.2])
    bounds = {"exact": ExactBudget(0.2, 0.3), "exact_box": ExactBox(0.3, 0.05)}[adversary]
    settings = {
        "adversary": bounds, "gradient": "exact", "rho": 0.4, "alpha": 0.3, "fair_start": 0.0,
        "batch_size": 99, "learning_rate": 1e-3, "random_state": 0, "score_function": StartAt(w0),
    }  # fmt: skip
    ranker = SenSTIRRanker(V, max_iter=1, **settings).fit(X, y, qid=qid)
    rows = [np.flatnonzero(qid == q) for q in range(len(SIZES))]
    basis = np.linalg.qr(V.T)[0].T

    def penalty(w):
        if adversary == "exact_box":
            return np.mean([reference.box_supremum(w, V, len(r), 0.3, 0.05) for r in rows])
        return reference.budget_supremum(w, basis, [len(r) for r in rows], 0.2, 0.3)

    def objective(w):
        total = 0.0
        for r in rows:
            g, discount = 2 ** y[r] - 1, 1 / np.log2(np.arange(len(r)) + 2)
            ideal = np.sort(g)[::-1] @ discount
            total += reference.expected_utility(X[r] @ w, g / ideal if ideal else g, discount) / len(rows)
        return total - 0.4 * penalty(w) - 0.15 * w @ w

    slope = reference.finite_difference(objective, w0, step=1e-4)
    assert np.abs(slope).min() > 1e-3
    # Adam's first step is the sign of the gradient, to 1e-8 / |g|; how large it was, the second tells.
    assert ranker.coef_ - w0 == pytest.approx(1e-3 * np.sign(slope), rel=1e-4)
    assert ranker.history_["regularizer"][0] == pytest.approx(penalty(w0), rel=1e-8)
    moved = ranker.coef_.copy()
    again = SenSTIRRanker(V, max_iter=2, **settings).fit(X, y, qid=qid)
    slope2 = reference.finite_difference(objective, moved, step=1e-4)
    m, v = 0.9 * 0.1 * slope + 0.1 * slope2, 0.999 * 0.001 * slope**2 + 0.001 * slope2**2
    expected = moved + 1e-3 * (m / (1 - 0.81)) / (np.sqrt(v / (1 - 0.999**2)) + 1e-8)
    assert again.coef_ == pytest.approx(expected, abs=1e-7)


def test_fair_start_resets_the_optimiser():
    """After the plain steps Adam starts afresh: its first regularised step has the full length, whatever the gradient."""
    X, y, qid = problem(seed=3)
    fits = [
        fit(SenSTIRRanker(directions(1), rho=0.1, gradient="exact", batch_size=99, learning_rate=0.01, random_state=0,
                          max_iter=max_iter, fair_start=fair_start), X, y, qid).coef_
        for max_iter, fair_start in ((10, 1.0), (11, 10 / 11), (10, 0.5))
    ]  # fmt: skip
    plain = PlackettLuceRanker(gradient="exact", batch_size=99, learning_rate=0.01, random_state=0, max_iter=10)
    plain.fit(X, y, qid=qid)
    np.testing.assert_array_equal(fits[0], plain.coef_)
    assert np.abs(fits[1] - fits[0]) == pytest.approx(0.01, rel=1e-3)  # every weight moves by the learning rate
    assert not np.array_equal(fits[2], fits[0])


# In parts


def parts_of_training(name):
    """A new problem each time, of which nothing is shared: with streams, lambda and an attack that have states of their own."""
    X, y, qid = problem(seed=4)
    source, metric = batches_of(X, y, qid), fitted_metric(directions(2))
    adversary = {
        "shared starts": Ascent(epsilon=0.3, subspace_n_starts=3),
        "own starts": Ascent(epsilon=1e-4, subspace_n_starts=None, dual_step="budget"),
        "no directions": Ascent(dual_step="paper"),
        "centered": Ascent(score_distance="centered"),
        "ranges": Ascent(feature_range=(-1.0, 1.0)),
        "box": ExactBox(0.2),
        "given": GivenHypotheticals(epsilon=1e-3).among([X + 0.3, X[::-1].copy()]),
    }.get(name)
    if name == "no directions":
        metric = fitted_metric(None)
    regularizer = Regularizer()
    if adversary is not None:
        regularizer = Invariance(adversary, metric, strength=0.5, n_plain=4, rng=np.random.default_rng(11))
    state = TrainingState(START.copy(), multiplier=regularizer.multiplier)
    setting = Problem(source, LinearScore(), make_gradient("reinforce", 5), regularizer, 0.01)
    regularizer.prepare(source, LinearScore())
    return setting, state, BatchStream(source, 3, *streams()), Adam(len(START)), 0.05


def reached(training):
    state = training[1]
    return [state.theta, state.n_iter, state.multiplier, *state.history.values()]


PARTS = ["plain", "shared starts", "own starts", "no directions", "centered", "ranges", "box", "given"]


@pytest.mark.parametrize("name", PARTS)
def test_training_in_parts_is_training_in_one_go(name):
    whole, parts = parts_of_training(name), parts_of_training(name)
    train(*whole, 23)
    for n_steps in (
        1,
        2,
        9,
        0,
        11,
    ):  # before, at and after the end of the plain steps, and within passes over the 7 queries
        train(*parts, n_steps)
    assert [np.array_equal(a, b) for a, b in zip(reached(parts), reached(whole), strict=True)] == [True] * 7


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


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7])
def test_batches_are_passes_over_all_queries(batch_size):
    _, _, qid = problem()
    found = all_batches(qid, batch_size, 42)
    drawn = np.concatenate([b.queries for b in found])
    assert len(found) == 42 and all(len(b.queries) == batch_size for b in found)
    passes = drawn[: len(drawn) // 7 * 7].reshape(-1, 7)
    assert (np.sort(passes, axis=1) == np.arange(7)).all() and len(np.unique(passes, axis=0)) > 1
    for b in found:
        assert b.offsets[0] == 0 and b.rows.tolist() == [r for q in b.queries for r in np.flatnonzero(qid == q)]
        assert np.diff(b.offsets).tolist() == [SIZES[q] for q in b.queries]
        assert b.gain.tolist() == b.rows.tolist()
    assert len({int(b.key) for b in found}) == 42


def test_a_batch_larger_than_the_data_is_all_of_it():
    _, _, qid = problem()
    for b in all_batches(qid, 100, 5):
        assert sorted(b.queries) == list(range(7))


@pytest.mark.parametrize("at_most", [1, 2, 5, 100])
def test_random_streams_do_not_depend_on_how_many_steps_are_prepared(at_most):
    _, _, qid = problem()
    for a, b in zip(all_batches(qid, 3, 30), all_batches(qid, 3, 30, at_most=at_most, at_once=3), strict=True):
        assert a.queries.tolist() == b.queries.tolist() and a.rows.tolist() == b.rows.tolist()
        assert a.key == b.key


def test_batches_of_a_subset_of_queries_stay_in_it():
    """As early stopping trains: rows keep their numbers in X, and queries theirs."""
    _, _, qid = problem()
    for b in all_batches(qid, 2, 9, chosen=[1, 4, 6]):
        assert set(b.queries) <= {1, 4, 6}
        assert b.rows.tolist() == b.gain.tolist() == [r for q in b.queries for r in np.flatnonzero(qid == q)]


@pytest.mark.parametrize("chosen", [None, [0, 2, 5]])
def test_batches_in_order_are_all_queries_once(chosen):
    X, y, qid = problem()
    source = batches_of(X, y, qid) if chosen is None else batches_of(X, y, qid).subset(np.array(chosen))
    found = list(source.in_order())
    ids = np.unique(qid) if chosen is None else chosen
    assert np.concatenate([b.queries for b in found]).tolist() == list(ids)
    assert np.concatenate([b.rows for b in found]).tolist() == [r for q in ids for r in np.flatnonzero(qid == q)]
    assert np.concatenate([np.diff(b.offsets) for b in found]).tolist() == [SIZES[q] for q in ids]


# What must not change a bit


def rankers():
    for gradient in ("reinforce", "plrank", "exact"):
        yield f"plain, {gradient}", PlackettLuceRanker(gradient=gradient, **FAST)
        yield f"fair exposure, {gradient}", FairPGRanker(gradient=gradient, fairness_weight=2.0, **FAST)
    for adversary in ("ascent", "exact", "exact_box"):
        yield adversary, SenSTIRRanker(adversary=adversary, rho=0.5, **FAST)
    yield "ascent, a start for each item", SenSTIRRanker(adversary=Ascent(subspace_n_starts=None), rho=0.5, **FAST)
    yield "learned columns", SenSTIRRanker(SensitiveSubspaceMetric(sensitive_columns=[0]), rho=0.5, **FAST)
    yield "early stopping", SenSTIRRanker(rho=0.5, early_stopping=True, validation_fraction=0.3, **FAST)


RANKERS = dict(rankers())


def stably_grouped(qid):
    return np.argsort(qid, kind="stable")


def another_interleaving(qid, seed):
    """An order of rows that keeps those of each query in order."""
    rng = np.random.default_rng(seed)
    turns, out = rng.permutation(qid), np.empty(len(qid), int)
    for q in np.unique(qid):
        out[turns == q] = np.flatnonzero(qid == q)
    return out


@pytest.mark.parametrize("name", RANKERS)
def test_interleaving_queries_gives_the_same_weights_to_the_bit(name):
    """Case 2, for every way to train, and for a metric learned inside fit."""
    X, y, qid = problem(seed=4)
    g = np.random.default_rng(0).integers(0, 2, len(qid))
    ranker = RANKERS[name].fit(X, y, qid=qid, sensitive_features=g)
    coef, scores, history = ranker.coef_.copy(), ranker.predict(X), ranker.history_
    for order in (stably_grouped(qid), another_interleaving(qid, 0)):
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


@pytest.mark.parametrize("names", [list("abcdefg"), np.arange(7) / 3, [-5, 0, 1, 2, 30, 31, 2**40]])
def test_relabelling_queries_in_order_gives_the_same_weights_to_the_bit(names):
    X, y, qid = problem()
    ranker = SenSTIRRanker(directions(1), **FAST)
    np.testing.assert_array_equal(ranker.fit(X, y, qid=qid).coef_, ranker.fit(X, y, qid=np.array(names)[qid]).coef_)


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


def test_reports_do_not_change_the_weights(capsys):
    X, y, qid = problem()
    ranker = SenSTIRRanker(directions(1), **FAST)
    silent = ranker.fit(X, y, qid=qid).coef_
    np.testing.assert_array_equal(ranker.set_params(verbose=1).fit(X, y, qid=qid).coef_, silent)


@pytest.mark.parametrize("gradient", ["reinforce", "plrank", "exact"])
def test_no_regulariser_is_the_plain_ranker_to_the_bit(gradient):
    """Case 20: rho = 0 attacks nothing, solves no transport, and resets nothing; nor does a fairness weight of 0."""
    X, y, qid = problem()
    g = np.arange(len(qid)) % 2
    common, attacks = {**FAST, "gradient": gradient, "alpha": 0.1}, Fuse()
    ascent, box = FusedAdversary(Ascent(), attacks), FusedAdversary(ExactBox(), attacks)
    plain = PlackettLuceRanker(**common).fit(X, y, qid=qid)
    for other in (
        SenSTIRRanker(directions(2), adversary=ascent, rho=0, fair_start=0.5, **common),
        SenSTIRRanker(rho=0.0, adversary=box, **common),
        SenSTIRRanker(directions(2), adversary=ascent, rho=0.3, fair_start=1.0, **common),
        FairPGRanker(fairness_weight=0, **common),
    ):
        other.fit(X, y, qid=qid, sensitive_features=g)
        np.testing.assert_array_equal(other.coef_, plain.coef_)
        for key in plain.history_:
            np.testing.assert_array_equal(other.history_[key], plain.history_[key])
    assert attacks.n_calls == 0
    SenSTIRRanker(directions(2), adversary=ascent, rho=0.3, fair_start=0.0, **common).fit(X, y, qid=qid)
    assert attacks.n_calls == 25
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

    assert coef(0) == coef(0) != coef(1)
    assert coef(np.random.default_rng(0)) == coef(np.random.default_rng(0))
    assert coef(None) != coef(None)
    assert coef(np.random.RandomState(0)) == coef(np.random.RandomState(0))
    for shared in (np.random.default_rng(0), np.random.RandomState(0)):
        assert coef(shared) != coef(shared)  # it advances


def test_a_generator_is_taken_by_its_state():
    """Not by the seed sequence that made it, which `jumped` replaces by a fresh one."""
    X, y, qid = problem()

    def coef(bits):
        ranker = PlackettLuceRanker(max_iter=5, random_state=np.random.Generator(bits))
        return ranker.fit(X, y, qid=qid).coef_.tolist()

    assert coef(np.random.PCG64(0).jumped(1)) == coef(np.random.PCG64(0).jumped(1)) != coef(np.random.PCG64(0))


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


def test_the_regulariser_acts_without_sensitive_directions():
    """Case 20: the ascent must leave its start, where its gradient is zero."""
    X, y, qid = problem()
    plain, strong = (fit(SenSTIRRanker(rho=rho, **{**FAST, "max_iter": 300}), X, y, qid) for rho in (0, 300))
    assert np.linalg.norm(strong.coef_) < 0.5 * np.linalg.norm(plain.coef_)
    assert (strong.history_["regularizer"][30:] > 0).mean() > 0.9


def test_weights_shrink_with_alpha():
    X, y, qid = problem()
    rankers = [PlackettLuceRanker(alpha=alpha, **{**FAST, "max_iter": 300}) for alpha in (0, 0.1, 10)]
    norms = [np.linalg.norm(ranker.fit(X, y, qid=qid).coef_) for ranker in rankers]
    assert norms[0] > norms[1] > 10 * norms[2]


@pytest.mark.parametrize("gradient", ["reinforce", "plrank", "exact"])
def test_queries_without_a_choice_teach_exactly_nothing(gradient):
    """Cases 10 and 11: nothing relevant, everything equally relevant, one row. The weights stay where they started."""
    X, _, _ = problem(sizes=(3, 3, 1, 1))
    qid, y = np.repeat(np.arange(4), (3, 3, 1, 1)), np.array([0, 0, 0, 2, 2, 2, 3, 0.0])
    with pytest.warns(UserWarning, match="All relevances are equal within each query"):
        ranker = PlackettLuceRanker(gradient=gradient, score_function=StartAt(START), **FAST).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.coef_, START)


@pytest.mark.parametrize("gradient", ["reinforce", "plrank", "exact"])
def test_queries_of_one_two_and_five_rows_are_learned_from(gradient):
    """Case 10."""
    X, y, qid = problem(sizes=(1, 2, 5))
    y[qid == 1] = [0, 1]
    for ranker in (
        PlackettLuceRanker(gradient=gradient, **FAST),
        SenSTIRRanker(directions(1), gradient=gradient, **FAST),
    ):
        coef = ranker.fit(X, y, qid=qid).coef_
        assert np.isfinite(coef).all() and np.abs(coef).min() > 1e-3


@pytest.mark.parametrize("gradient", ["reinforce", "plrank", "exact"])
def test_training_raises_the_utility(gradient):
    X, _, qid = problem(sizes=(6,) * 40, seed=6)
    y = np.floor(2 * (X @ np.array([1.0, -1, 0.5, 0, 0]) + 4).clip(0))
    ranker = PlackettLuceRanker(gradient=gradient, max_iter=400, learning_rate=0.05, random_state=0).fit(X, y, qid=qid)
    assert ranker.history_["utility"][-40:].mean() > 0.97 > 0.8 > ranker.history_["utility"][:5].mean()
    direction = ranker.coef_ / np.linalg.norm(ranker.coef_)
    assert direction @ np.array([1.0, -1, 0.5, 0, 0]) / 1.5 > 0.98


def test_weights_that_leave_the_numbers_are_an_error():
    X, y, qid = problem()
    with pytest.raises(ValueError, match="diverged|not finite"):
        PlackettLuceRanker(**{**FAST, "learning_rate": 1e308}).fit(X * 1e10, y, qid=qid)


@pytest.mark.parametrize("ranker", [PlackettLuceRanker(**FAST), SenSTIRRanker([[1, 0, 0, 0, 0]], rho=1.0, **FAST)])
@pytest.mark.parametrize("one_row", [False, True])
def test_features_too_large_are_an_error(ranker, one_row):
    """Case 20: +-1e200."""
    X, y, qid = problem()
    X[:2] *= 1e200
    if not one_row:
        X[2:] *= 1e200
    with pytest.raises(ValueError, match="StandardScaler"):
        ranker.fit(X, y, qid=qid)


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


def test_whole_queries_are_held_out():
    X, y, qid = noisy_task()
    _, kept, held_out, diary = fit_with_diary(PlackettLuceRanker(**STOPPING), X, y, qid)
    assert len(held_out) == 15 and len(kept) == 45 and sorted([*held_out, *kept]) == list(range(60))
    assert len(diary.rows_looked_at) == 75 and len(diary.rows_trained_on) == 225


def test_held_out_queries_do_not_train():
    """Other relevances there: the same steps."""
    X, y, qid = noisy_task()
    settings = {**STOPPING, "n_iter_no_change": 10_000, "max_iter": 200}
    a, _, held_out, _ = fit_with_diary(PlackettLuceRanker(**settings), X, y, qid)
    y[np.isin(qid, held_out)] = np.arange(75)
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


def test_a_fit_that_keeps_improving_is_not_stopped():
    X, y, qid = noisy_task()
    ranker = PlackettLuceRanker(**{**STOPPING, "max_iter": 60, "learning_rate": 1e-4, "tol": 0.0}).fit(X, y, qid=qid)
    assert ranker.n_iter_ == 60


@pytest.mark.parametrize("batch_size, max_iter", [(9, 300), (9, 50), (45, 100), (1, 200)])
def test_held_out_queries_are_looked_at_after_each_pass(batch_size, max_iter):
    """45 queries to train on: 5 steps a pass, 1, or 45."""
    X, y, qid = noisy_task()
    settings = {**STOPPING, "n_iter_no_change": 10_000, "batch_size": batch_size, "max_iter": max_iter}
    ranker = PlackettLuceRanker(**settings).fit(X, y, qid=qid)
    assert ranker.n_iter_ == max_iter and len(ranker.validation_scores_) == max_iter // -(-45 // batch_size)


def test_looks_at_held_out_queries_do_not_depend_on_max_iter():
    X, y, qid = noisy_task(n_queries=133)
    settings = {**STOPPING, "n_iter_no_change": 10_000, "batch_size": 2, "max_iter": 2000}
    assert len(PlackettLuceRanker(**settings).fit(X, y, qid=qid).validation_scores_) == 2000 // 50


def test_plain_steps_of_a_fair_start_do_not_count():
    """The regulariser is meant to cost utility: scores from before it would keep weights without it."""
    X, y, qid = noisy_task()
    ranker = SenSTIRRanker(
        directions(1), rho=0.1, fair_start=0.5, **{**STOPPING, "max_iter": 200}, n_iter_no_change=10_000
    )
    ranker.fit(X, y, qid=qid)
    assert len(ranker.validation_scores_) == 100 // 5


def test_too_few_queries_to_hold_out_are_an_error():
    X, y, qid = problem(sizes=(3,))
    with pytest.raises(ValueError, match="holds out 1 of 1 queries"):
        PlackettLuceRanker(early_stopping=True, **FAST).fit(X, y, qid=qid)


# Without a regulariser


def nothing_to_regularise():
    """Rankers whose other parameters must not matter: which sets in when, how long, by which attack."""
    for adversary in ("ascent", "exact", "exact_box"):
        for fair_start in (0.0, 0.1, 0.9, 1.0):
            yield (
                f"{adversary}, {fair_start}",
                SenSTIRRanker([[1.0, 1.0, 0.0]], rho=0, adversary=adversary, fair_start=fair_start),
            )
    yield "never sets in", SenSTIRRanker([[1.0, 1.0, 0.0]], rho=0.5, fair_start=1.0)
    yield "fair-pg", FairPGRanker(fairness_weight=0)


WITHOUT = dict(nothing_to_regularise())


@pytest.mark.parametrize("name", WITHOUT)
def test_without_a_regulariser_early_stopping_is_the_plain_rankers(name):
    """To the bit, with every gradient, and going on: steps before the regulariser sets in are only told apart where it does."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(60), 4)
    X, groups = rng.normal(size=(240, 3)), rng.integers(0, 2, 240)
    y = np.floor((X @ [1.0, -0.5, 0.0] + rng.normal(size=240) + 1).clip(0, 3))
    n_iter = set()
    for gradient in ("reinforce", "plrank", "exact"):
        settings = {
            "early_stopping": True, "gradient": gradient, "max_iter": 400, "learning_rate": 0.05, "n_iter_no_change": 2,
            "random_state": 1, "warm_start": True, "tol": 1e-3,
        }  # fmt: skip
        plain, other = PlackettLuceRanker(**settings), clone(WITHOUT[name]).set_params(**settings)
        for _ in range(2):
            plain.fit(X, y, qid=qid)
            other.fit(X, y, qid=qid, sensitive_features=groups)
            np.testing.assert_array_equal(other.coef_, plain.coef_)
            np.testing.assert_array_equal(other.validation_scores_, plain.validation_scores_)
            assert other.n_iter_ == plain.n_iter_
            for key, values in plain.history_.items():
                np.testing.assert_array_equal(other.history_[key], values)
            n_iter.add(plain.n_iter_)
    assert max(n_iter) < 400  # it did stop early
