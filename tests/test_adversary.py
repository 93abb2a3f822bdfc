"""Adversaries: the ascent against its readable twin, and the two suprema against general optimisers."""

import numpy as np
import pytest
import reference
from skfairrank.adversary import Ascent, ExactBox, ExactBudget
from skfairrank.training import Batch, Data

from skfairrank import SensitiveSubspaceMetric, scores
from skfairrank._kernels import attack as kernels
from skfairrank._kernels import linear
from skfairrank._kernels.ascent import ascend
from skfairrank._queries import Queries

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
        metric.directions_, metric.basis_, metric.shrink_ = np.zeros((0, d)), np.zeros((0, d)), np.zeros(0)
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


def twin(
    data,
    metric,
    batch,
    w,
    lambda_,
    *,
    rho=0.5,
    epsilon=0.1,
    subspace_init=0.05,
    subspace_n_starts=None,
    seed=0,
    **steps,
):
    """Mean regularizer and d_Q, gradient, next lambda, and how many queries keep the full attack: item by item, same starts."""
    steps = tuple({**STEPS, **steps}[name] for name in STEPS)
    raw, basis = metric.directions_, metric.sensitive_basis_
    sizes, n_rows = np.diff(batch.offsets), len(batch.rows)
    distinct = list(dict.fromkeys(sizes.tolist()))  # in the order in which they come up
    one_size = len(set(data.queries.sizes.tolist())) == 1
    n_drawn = n_rows if subspace_n_starts is None else subspace_n_starts * (1 if one_size else len(sizes))
    width = subspace_init if len(raw) else steps[2]
    starts = width * (2 * np.random.default_rng(seed).random((n_drawn, len(raw) or len(w))) - 1)
    values, distances, gradient = [], [], np.zeros(len(w))
    for lo, hi in zip(batch.offsets[:-1], batch.offsets[1:]):
        n = hi - lo
        path = np.arange(lo, hi)
        if subspace_n_starts is not None:
            path = distinct.index(n) * subspace_n_starts + np.arange(n) % subspace_n_starts
        c, e = (starts[path], np.zeros((n, len(w)))) if len(raw) else (np.zeros((n, 0)), starts[path])
        X = data.X[batch.rows[lo:hi]].astype(float)
        moves, value, spent = reference.attack_query(X, w, raw, basis, rho, lambda_, steps, c, e)
        values.append(value)
        distances.append(spent)
        gradient += moves.T @ (moves @ w) / len(sizes)
    distance = np.mean(distances)
    return (
        np.mean(values),
        distance,
        gradient,
        reference.dual_step(lambda_, distance, epsilon),
        np.count_nonzero(distances),
    )


def assert_agrees(got, expected):
    assert got.regularizer == pytest.approx(expected[0], rel=1e-9)
    assert got.query_distance == pytest.approx(expected[1], rel=1e-9, abs=1e-15)
    assert got.gradient == pytest.approx(expected[2], rel=1e-8, abs=1e-12)
    assert got.multiplier == pytest.approx(expected[3], rel=1e-9)


# The ascent


@pytest.mark.parametrize("K", [0, 1, 2])
@pytest.mark.parametrize("n_starts", [None, 1, 4])
@pytest.mark.parametrize("lambda_", [1e-5, 2.0, 300.0])
def test_the_ascent_equals_its_twin(K, n_starts, lambda_):
    """Every item attacked on its own in NumPy, d_Q by scipy; queries of sizes 1 to 5; the budget free, felt, and binding."""
    data, metric, w = problem(K=K)
    got = ascent(data, metric, subspace_n_starts=n_starts).attack(batch_of(data), w, lambda_)
    assert_agrees(got, twin(data, metric, batch_of(data), w, lambda_, subspace_n_starts=n_starts))


@pytest.mark.parametrize(
    "steps",
    [
        {"full_n_steps": 0},
        {"subspace_n_steps": 0},
        {"subspace_n_steps": 0, "full_n_steps": 0},
        {"full_step_size": 0.1, "full_n_steps": 60},
        {"subspace_step_size": 0.3, "subspace_init": 0.5},
        {"subspace_init": 0.0},
        {"full_step_size": 0.0},
    ],
)
def test_the_ascent_equals_its_twin_for_any_steps(steps):
    data, metric, w = problem(seed=1)
    got = ascent(data, metric, **steps).attack(batch_of(data), w, 0.7)
    assert_agrees(got, twin(data, metric, batch_of(data), w, 0.7, **steps))


def test_the_ascent_equals_its_twin_on_float32_and_on_rows_from_anywhere():
    data, metric, w = problem(seed=2, dtype=np.float32)
    batch = batch_of(data, [3, 0, 2, 3])  # one query twice: passes over the queries may meet in a batch
    got = ascent(data, metric).attack(batch, w, 2.0)
    assert_agrees(got, twin(data, metric, batch, w, 2.0))


@pytest.mark.parametrize("spread", [0.0, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("K", [0, 2])
def test_items_closer_than_their_moves_are_paired_by_transport(spread, K):
    """Items nearly alike, moved far in different ways: pairing each with itself is not the cheapest, and d_Q is the cheapest."""
    data, metric, w = problem(sizes=(5, 4), K=K, seed=3, spread=spread)
    starts = {"full_step_size": 0.02, "full_n_steps": 5, "subspace_init": 0.3}
    got = ascent(data, metric, **starts).attack(batch_of(data), w, 1e-3)
    expected = twin(data, metric, batch_of(data), w, 1e-3, **starts)
    assert_agrees(got, expected)
    if spread == 0.01 and K:
        steps = tuple({**STEPS, **starts}[name] for name in STEPS)
        c = 2 * 0.3 * np.random.default_rng(0).random((9, 2)) - 0.3
        P = reference.projector(metric.sensitive_basis_)
        moves = [reference.attack_item(w, metric.directions_, metric.sensitive_basis_, 0.5, 1e-3, n, steps, c[i], np.zeros(6))
                 for i, n in enumerate([5] * 5 + [4] * 4)]  # fmt: skip
        identity = np.array([np.sum((e @ P) ** 2) for _, e in moves])
        assert expected[1] < 0.999 * (identity[:5].mean() + identity[5:].mean()) / 2  # the case is what it says


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


def test_the_full_attack_is_kept_only_where_it_pays():
    """With a budget so dear that Adam's sign steps lower the objective, the subspace attack alone stays: d_Q = 0."""
    data, metric, w = problem(seed=4)
    dear = ascent(data, metric, full_step_size=0.1).attack(batch_of(data), w, 1e4)
    alone = ascent(data, metric, full_n_steps=0).attack(batch_of(data), w, 1e4)
    assert dear.query_distance == 0.0
    assert dear.regularizer == alone.regularizer and dear.gradient.tolist() == alone.gradient.tolist()
    cheap = ascent(data, metric, full_step_size=0.1).attack(batch_of(data), w, 1e-5)
    assert cheap.query_distance > 0 and cheap.regularizer > alone.regularizer


def test_the_better_of_the_two_candidates_is_kept_query_by_query():
    """Some queries of a batch keep the full attack, others do not; for each, the objective is the larger of the two."""
    data, metric, w = problem(sizes=(1, 1, 1, 1, 1, 1, 1, 1), K=1, seed=5)
    kwargs = {"full_step_size": 0.05, "full_n_steps": 3, "subspace_init": 0.3, "rho": 0.5}
    some = 0
    for lambda_ in np.geomspace(0.1, 100, 40):
        batch = batch_of(data)
        expected = twin(data, metric, batch, w, lambda_, **kwargs)
        got = ascent(data, metric, **kwargs).attack(batch, w, lambda_)
        assert_agrees(got, expected)
        some += 0 < expected[4] < 8
    assert some  # at some lambda only some of them


def test_settling_by_hand():
    """Two paths, two queries: in the first the full attack pays, in the second it does not."""
    gap_inside, gap, cost = np.array([1.0, 2.0]), np.array([3.0, 2.5]), np.array([1.0, 4.0])
    inside, e = np.array([[1.0, 0], [2, 0]]), np.array([[0.0, 2], [0, 0.5]])
    identity, largest, regularizer, share, gradient = np.empty((5, 2))

    def settle(most_spent):  # rho = 2, lambda = 3
        return kernels.settle_queries(
            np.array([0, 2, 3]), np.array([0, 1, 1]), 2.0, 3.0, most_spent, gap_inside, gap, cost, inside, e, identity, largest,
            regularizer, share, gradient,
        )  # fmt: skip

    # Objectives: 9 + 6.25 - 3 * 2.5 = 7.75 against 1 + 4 = 5; 6.25 - 12 against 4.
    assert settle(np.inf) == 1 and share.tolist() == [1.0, 0.0]
    assert regularizer.tolist() == [(9 + 6.25) / 2, 2.0]
    assert identity.tolist() == [2.5, 0.0] and largest.tolist() == [2.0, 0.0]
    # mean over the two queries of the sum over items of gap times move
    assert gradient.tolist() == [(3 * 1 + 2.5 * 2 + 2 * 2) / 2, (3 * 2 + 2.5 * 0.5) / 2]
    # The batch spends 2.5 / 2; with a quarter of that to spend, half of each free move is kept.
    assert settle(2.5 / 2 / 4) == 1 and share == pytest.approx([0.5, 0.0])
    assert identity == pytest.approx([2.5 / 4, 0.0]) and largest == pytest.approx([1.0, 0.0])
    first, second = 1 + 0.5 * (3 - 1), 2 + 0.5 * (2.5 - 2)
    assert regularizer == pytest.approx([(first**2 + second**2) / 2, 2.0])
    on_e = (first * 0.5 * 2 + second * 0.5 * 0.5) / 2
    assert gradient == pytest.approx([(first * 1 + second * 2 + 2 * 2) / 2, on_e])


def test_the_gradient_is_that_of_the_regularizer_for_the_moves_found():
    """Envelope: the moves are held. With no steps at all they do not depend on w, and finite differences tell."""
    data, metric, w = problem(seed=6)
    still = {"subspace_n_steps": 0, "full_n_steps": 0}

    def value(w):
        return ascent(data, metric, **still).attack(batch_of(data), w, 2.0).regularizer

    got = ascent(data, metric, **still).attack(batch_of(data), w, 2.0)
    assert got.gradient == pytest.approx(reference.finite_difference(value, w), rel=1e-7)


def test_without_sensitive_directions_the_ascent_leaves_the_query():
    """At the query itself the gradient vanishes; the free move starts uniform in +-full_step_size instead."""
    data, metric, w = problem(K=0)
    start = ascent(data, metric, full_n_steps=0).attack(batch_of(data), w, 1e-5)
    moved = ascent(data, metric).attack(batch_of(data), w, 1e-5)
    assert 0 < start.regularizer < moved.regularizer and start.query_distance < moved.query_distance
    n = len(data.X)
    e = 0.001 * (2 * np.random.default_rng(0).random((n, 6)) - 1)
    assert start.regularizer == pytest.approx(((e @ w) ** 2).sum() / 2 / 5, rel=1e-12)


def test_shared_starts_give_the_mean_of_single_ones():
    """One start for all, or one for each: the same expectation of regularizer and gradient."""
    data, metric, w = problem(sizes=(6, 6), seed=7)

    def draws(n_starts):
        adversary = ascent(data, metric, subspace_n_starts=n_starts, subspace_n_steps=2, subspace_init=0.3)
        out = []
        for _ in range(3000):
            found = adversary.attack(batch_of(data), w, 2.0)
            out.append([found.regularizer, *found.gradient])  # copied: the gradient is one buffer
        return np.array(out)

    for n_starts in (1, 4, 9):
        a, b = draws(None), draws(n_starts)
        error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4.5 * error).all()


def test_an_attack_repeats_with_its_random_numbers():
    data, metric, w = problem()
    a, b = (ascent(data, metric, rng=np.random.default_rng(5)).attack(batch_of(data), w, 2.0) for _ in range(2))
    assert a.regularizer == b.regularizer and a.gradient.tolist() == b.gradient.tolist()
    other = ascent(data, metric, rng=np.random.default_rng(6)).attack(batch_of(data), w, 2.0)
    assert other.regularizer != a.regularizer


def test_what_is_kept_between_steps_does_not_show():
    """Smallest gaps are found once, random numbers are drawn in bulk: every attack is that of a fresh adversary which starts at
    the same place of the random stream. Enough steps to draw more than once, and items near enough for the gaps to matter."""
    data, metric, w = problem(spread=0.05)
    steps = {"full_step_size": 0.02, "full_n_steps": 5, "subspace_n_steps": 2, "subspace_n_starts": 4}
    busy, drawn = ascent(data, metric, **steps), 0
    for t in range(300):
        batch = batch_of(data, [[0, 1], [2], [4, 3, 0], [1, 1, 2]][t % 4])  # 72 numbers in four steps
        rng = np.random.default_rng(0)
        rng.random(drawn)
        a, b = busy.attack(batch, w, 0.1), ascent(data, metric, rng=rng, **steps).attack(batch, w, 0.1)
        assert (a.regularizer, a.query_distance) == (b.regularizer, b.query_distance)
        np.testing.assert_array_equal(a.gradient, b.gradient)
        drawn += 4 * len(batch.queries) * 2
    assert drawn > 4096


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


# The exact supremum of the budget


def budget(w, basis, sizes, epsilon, radius):
    """Value, spent, multiplier and gradient of the kernel for a list of query sizes."""
    distinct, count = np.unique(np.asarray(sizes, float), return_counts=True)
    gradient = np.empty(len(w))
    found = kernels.exact_budget(w, basis, distinct, count / count.sum(), epsilon, radius, gradient)
    return *found, gradient


def orthonormal(K, d, rng):
    return np.ascontiguousarray(np.linalg.qr(rng.normal(size=(d, K)))[0].T)


MIXED = [[5], [5, 5], [2, 3, 5], [1, 10], [1, 1, 1, 50], [2, 2, 3, 3, 3, 8]]


@pytest.mark.parametrize("sizes", MIXED)
@pytest.mark.parametrize("epsilon, radius", [(0.3, 0.7), (0.01, 0.2), (2.0, 0.01), (1e-4, 3.0)])
def test_the_exact_budget_is_what_slsqp_finds(sizes, epsilon, radius):
    """DESIGN: to 1e-11. All of the paper's budget, spent where it pays."""
    rng = np.random.default_rng(len(sizes))
    basis, w = orthonormal(2, 5, rng), rng.normal(size=5)
    value, spent, _, _ = budget(w, basis, sizes, epsilon, radius)
    assert value == pytest.approx(reference.budget_supremum(w, basis, sizes, epsilon, radius), rel=1e-10)
    assert spent == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("sizes", [[2, 2], [1, 3], [1, 2, 2]])
def test_no_moves_of_single_items_are_better(sizes):
    """By SLSQP over every coordinate of every item: nothing of the derivation is taken for granted."""
    rng = np.random.default_rng(0)
    basis, w = orthonormal(1, 3, rng), rng.normal(size=3)
    value, *_ = budget(w, basis, sizes, 0.3, 0.5)
    found = reference.item_moves_supremum(w, basis, sizes, 0.3, 0.5, rng)
    assert found == pytest.approx(value, rel=1e-6)


def test_one_size_has_a_closed_form():
    rng = np.random.default_rng(1)
    basis, w = orthonormal(2, 6, rng), rng.normal(size=6)
    a, b = 0.7 * np.linalg.norm(basis @ w), np.linalg.norm(reference.projector(basis) @ w)
    for epsilon in (1e-8, 0.3, 1e6):
        assert budget(w, basis, [7, 7], epsilon, 0.7)[0] == pytest.approx(
            7 / 2 * (a + np.sqrt(epsilon) * b) ** 2, rel=1e-12
        )


@pytest.mark.parametrize("sizes", MIXED)
@pytest.mark.parametrize("epsilon, radius", [(0.3, 0.7), (1e-3, 0.2)])
def test_the_gradient_of_the_budget_is_its_slope(sizes, epsilon, radius):
    rng = np.random.default_rng(2)
    basis, w = orthonormal(2, 5, rng), rng.normal(size=5)
    *_, gradient = budget(w, basis, sizes, epsilon, radius)
    slope = reference.finite_difference(lambda w: budget(w, basis, sizes, epsilon, radius)[0], w)
    assert gradient == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("sizes", MIXED)
def test_the_multiplier_is_the_price_of_the_budget(sizes):
    rng = np.random.default_rng(3)
    basis, w = orthonormal(1, 4, rng), rng.normal(size=4)
    _, _, multiplier, _ = budget(w, basis, sizes, 0.3, 0.5)
    price = (budget(w, basis, sizes, 0.3001, 0.5)[0] - budget(w, basis, sizes, 0.2999, 0.5)[0]) / 2e-4
    assert multiplier == pytest.approx(price, rel=1e-5)


@pytest.mark.parametrize("sizes", MIXED)
def test_limits_of_the_budget(sizes):
    rng = np.random.default_rng(4)
    basis, w = orthonormal(2, 5, rng), rng.normal(size=5)
    n, P = np.asarray(sizes, float), reference.projector(basis)
    a, b = 0.5 * np.linalg.norm(basis @ w), np.linalg.norm(P @ w)
    # No budget: the sensitive move alone.
    value, spent, _, gradient = budget(w, basis, sizes, 0.0, 0.5)
    assert value == pytest.approx(n.mean() / 2 * a**2, rel=1e-12) and spent == 0.0
    assert gradient == pytest.approx(n.mean() * 0.25 * basis.T @ (basis @ w), rel=1e-12)
    # No sensitive move: all of it to the largest queries.
    share = np.mean(n == n.max())
    expected = share * n.max() / 2 * (np.sqrt(0.3 / share) * b) ** 2
    for value, _, _, gradient in (
        budget(w, basis, sizes, 0.3, 0.0),
        budget(P @ w, np.zeros((0, 5)), sizes, 0.3, 0.5),
        budget(P @ w, basis, sizes, 0.3, 0.5),
    ):
        assert value == pytest.approx(expected, rel=1e-9)
        # Only along P w: where A w = 0 there is a kink across.
        assert P @ gradient == pytest.approx(n.max() * 0.3 * P @ w, rel=1e-6, abs=1e-9)
    # Neither.
    assert budget(w, basis, sizes, 0.0, 0.0)[0] == 0.0
    # No weights.
    value, spent, multiplier, gradient = budget(np.zeros(5), basis, sizes, 0.3, 0.5)
    assert value == 0.0 and (gradient == 0).all() and np.isfinite([spent, multiplier]).all()


@pytest.mark.parametrize("sizes", MIXED)
def test_directions_that_span_everything_leave_nothing_to_the_budget(sizes):
    rng = np.random.default_rng(5)
    basis, w = orthonormal(4, 4, rng), rng.normal(size=4)
    value, spent, multiplier, gradient = budget(w, basis, sizes, 0.3, 0.5)
    n = np.mean(sizes)
    assert value == pytest.approx(n / 2 * 0.25 * (w @ w), rel=1e-12) and spent == 0.0 and multiplier == 0.0
    assert gradient == pytest.approx(n * 0.25 * w, rel=1e-12)


@pytest.mark.parametrize("sizes", MIXED)
def test_the_budget_is_continuous_where_its_formula_changes(sizes):
    """A sensitive part so small that it is taken as none: the value just before and just after agree."""
    rng = np.random.default_rng(6)
    basis, w = orthonormal(1, 4, rng), rng.normal(size=4)
    none = budget(w, basis, sizes, 0.3, 0.0)[0]
    for radius in (1e-17, 1e-15, 1e-13, 1e-10, 1e-7):
        assert budget(w, basis, sizes, 0.3, radius)[0] == pytest.approx(none, rel=1e-5)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_budget_scales_with_the_square_of_the_weights(scale):
    rng = np.random.default_rng(7)
    basis, w = orthonormal(2, 5, rng), rng.normal(size=5)
    value, spent, _, gradient = budget(w, basis, [2, 3, 5], 0.3, 0.5)
    scaled = budget(scale * w, basis, [2, 3, 5], 0.3, 0.5)
    assert scaled[0] == pytest.approx(scale**2 * value, rel=1e-10) and scaled[1] == pytest.approx(spent, rel=1e-10)
    assert scaled[3] == pytest.approx(scale * gradient, rel=1e-9)


def test_the_budget_adversary_uses_the_sizes_of_all_training_queries():
    """Not of the batch: the budget is an expectation over queries."""
    data, metric, w = problem(sizes=(2, 3, 5, 5))
    adversary = ExactBudget(data, metric, rho=0.25, epsilon=0.3, subspace_radius=0.4)
    got = adversary.attack(batch_of(data, [0]), w, 1.0)
    value, spent, multiplier, gradient = budget(w, metric.sensitive_basis_, [2, 3, 5, 5], 0.3, 0.4)
    assert (got.regularizer, got.query_distance, got.multiplier) == (value, spent, 0.25 * multiplier)
    assert got.gradient.tolist() == gradient.tolist()


# The exact supremum of the box


@pytest.mark.parametrize("K", [0, 1, 3])
@pytest.mark.parametrize("radii", [(0.7, 0.02), (0.0, 0.1), (0.3, 0.0), (0.0, 0.0)])
def test_the_box_is_the_best_of_its_corners(K, radii):
    data, metric, w = problem(sizes=(2, 3, 5), K=K, seed=8)
    got = ExactBox(data, metric, subspace_radius=radii[0], feature_radius=radii[1]).attack(None, w, 7.0)
    mean = np.mean([2, 3, 5])
    assert got.regularizer == pytest.approx(reference.box_supremum(w, metric.directions_, mean, *radii), rel=1e-12)
    assert got.multiplier == 7.0  # the box has no budget: lambda stays
    free = radii[1] * np.sign(w)
    assert got.query_distance == pytest.approx(
        np.sum((reference.projector(metric.sensitive_basis_) @ free) ** 2), rel=1e-10
    )


def test_the_gradient_of_the_box_is_its_slope():
    data, metric, w = problem(sizes=(2, 3, 5), seed=9)
    box = ExactBox(data, metric, subspace_radius=0.3, feature_radius=0.05)
    gradient = box.attack(None, w, 1.0).gradient.copy()
    slope = reference.finite_difference(lambda w: box.attack(None, w, 1.0).regularizer, w, step=1e-6)
    assert gradient == pytest.approx(slope, rel=1e-6)


def test_the_box_has_a_subgradient_at_its_kinks():
    """At zero weights no sign is taken: what is not used stays unused."""
    data, metric, _ = problem(K=1, d=4)
    w = np.array([1.0, 0.0, 0.0, -2.0])
    metric.directions_ = np.array([[2.0, 5.0, 0.0, 1.0]])  # orthogonal to w
    got = ExactBox(data, metric, subspace_radius=1.0, feature_radius=0.1).attack(None, w, 1.0)
    n = np.diff(data.queries.offsets).mean()
    assert got.gradient == pytest.approx(n * 0.3 * 0.1 * np.array([1, 0, 0, -1]), rel=1e-12)


# Small kernels


@pytest.mark.parametrize("n_paths", [1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("d, rank", [(1, 0), (2, 1), (5, 2), (6, 3), (7, 5)])
def test_paths_climb_as_adam_prescribes(n_paths, d, rank):
    """One path at a time, by the gradient; in blocks of eight, and two lanes for each of the last four or fewer."""
    rng = np.random.default_rng(10 * d + n_paths)
    w, basis, e = rng.normal(size=d), orthonormal(rank, d, rng), 0.1 * rng.normal(size=(n_paths, d))
    gap, pull, before = rng.normal(size=n_paths), rng.random(n_paths), e.copy()
    ascend(0, n_paths, w, basis, 0.7, gap, pull, 0.05, 12, e)
    for p in range(n_paths):

        def gradient(x, p=p):
            return 0.7 * (gap[p] + w @ x) * w - pull[p] * (x - basis.T @ (basis @ x))

        assert e[p] == pytest.approx(reference.adam_ascent(gradient, before[p], 0.05, 12), rel=1e-9, abs=1e-12)


def test_paths_do_not_depend_on_how_they_are_divided():
    rng = np.random.default_rng(0)
    w, basis, e = rng.normal(size=5), orthonormal(2, 5, rng), 0.1 * rng.normal(size=(24, 5))
    gap, pull = rng.normal(size=24), rng.random(24)
    whole, parts = e.copy(), e.copy()
    ascend(0, 24, w, basis, 0.7, gap, pull, 0.05, 12, whole)
    for first in (16, 0, 8):
        ascend(first, first + 8, w, basis, 0.7, gap, pull, 0.05, 12, parts)
    np.testing.assert_array_equal(whole, parts)


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
    "attack, one path": lambda a: ascend(0, 1, a["w"], a["basis"], 0.5, a["c"], a["c"], 0.02, 5, a["e"].reshape(1, -1)),
    "attack, many paths": lambda a: ascend(0, 8, a["w"], a["basis"], 0.5, a["m"][:8], a["v"][:8], 0.02, 5, a["paths"]),
    "box": lambda a: kernels.exact_box(a["w"], a["basis"], a["basis"], 3.0, 0.2, a["e"], a["fair"]),
    "budget": lambda a: kernels.exact_budget(a["w"], a["basis"], a["c"] ** 2, a["c"] ** 2, 0.3, 0.2, a["fair"]),
    "scores": lambda a: linear.all_scores(0, 3, a["X"], a["w"], a["c"]),
    "pull-back": lambda a: linear.pull_back(a["X"], np.array([2, 0, 1]), a["c"], 0.3, a["fair"]),
    "step": lambda a: linear.adam_step(a["w"], a["e"], a["m"], a["v"], 3, 0.01),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("d", [3, 6, 19])
def test_results_have_the_same_bits_wherever_arrays_lie(name, d):
    rng = np.random.default_rng(0)
    given = {
        "w": rng.normal(size=d), "basis": orthonormal(2, d, rng), "e": 0.01 * rng.normal(size=d), "X": rng.normal(size=(3, d)),
        "c": rng.uniform(0.5, 1.0, size=3), "fair": np.zeros(d), "m": np.zeros(max(d, 8)), "v": np.zeros(max(d, 8)),
        "paths": 0.01 * rng.normal(size=(8, d)),
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
