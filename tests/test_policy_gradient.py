"""Gradients of the expected utility in the scores: REINFORCE, PL-Rank and the exact sum; with and without continuation."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import reference

from skfairrank import PlackettLuceRanker
from skfairrank._kernels import sampling
from skfairrank._queries import Queries
from skfairrank._random import draw_keys
from skfairrank.datasets import make_biased_ranking
from skfairrank.plackett_luce import EXACT_LIMIT
from skfairrank.policies import ExactGradient, GradientEstimator, PLRank, Reinforce, make_gradient
from skfairrank.utilities import NDCG, discounts, gains, relative_gains

pytestmark = pytest.mark.once

KEY = np.uint64(0x9ABCDEF012345678)
SIZES = (5, 1, 3, 4, 2, 5)
TWINS = {"reinforce": reference.reinforce_of_orders, "plrank": reference.plrank_of_orders}
KINDS = [*TWINS, "exact"]
# Position-based utilities, and cascades: reciprocal rank, and the expected reciprocal rank of Chapelle et al. (2009).
UTILITIES = ["ndcg", "ndcg@2", "mrr", "err"]


def tables(utility, y, offsets):
    """Gain and continuation (or None) by row, discount by rank."""
    n = int(np.diff(offsets).max())
    if utility == "mrr":
        relevant = (y > 2).astype(float)
        return relevant, 1 - relevant, 1 / np.arange(1.0, n + 1)
    if utility == "err":
        satisfied = (2**y - 1) / 16
        return satisfied, 1 - satisfied, 1 / np.arange(1.0, n + 1)
    discount = discounts(n, 2 if utility == "ndcg@2" else None)
    return NDCG().gains(y, offsets, discount)[0], None, discount


def problem(seed=0, sizes=SIZES, scale=1.5, utility="ndcg"):
    """Scores, gains, discounts and continuation (or None) of queries of several sizes, and their offsets."""
    rng = np.random.default_rng(seed)
    offsets = np.r_[0, np.cumsum(sizes)]
    y = rng.integers(0, 4, offsets[-1]).astype(float)
    y[offsets[:-1]] = 3  # something to gain in every query
    gain, continuation, discount = tables(utility, y, offsets)
    return rng.normal(scale=scale, size=len(y)), gain, discount, continuation, offsets


def batch_of(gain, continuation, offsets, key=KEY):
    continuation = np.empty(0) if continuation is None else continuation
    return SimpleNamespace(offsets=offsets, gain=gain, continuation=continuation, key=key, utility=None)


def run(kind, h, gain, discount, continuation, offsets, key=KEY, n_samples=0):
    """Gradient and utility, by the object that a ranker would ask."""
    return make_gradient(kind, n_samples).estimate(batch_of(gain, continuation, offsets, key), h, discount)


def sampled_orders(h, offsets, n_samples, key=KEY):
    """The rankings that the sampled gradients see, as orders (n_samples, n) of each query."""
    found = np.empty((n_samples, len(h)), np.int64)
    sampling.sample_ranks(0, len(offsets) - 1, h, offsets, key, n_samples, found)
    return [np.argsort(found[:, lo:hi], axis=1) for lo, hi in itertools.pairwise(offsets)]


def one_query(q, offsets, h, gain, continuation):
    mine = slice(offsets[q], offsets[q + 1])
    return h[mine], gain[mine], None if continuation is None else continuation[mine]


# The exact sum


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("scale", [0.0, 1.5, 30.0, 1000.0])
def test_the_exact_gradient_is_the_sum_over_all_rankings(scale, utility):
    """Scores from equal to so far apart that their weights underflow."""
    h, gain, discount, continuation, offsets = problem(3, sizes=(*SIZES, 6), scale=scale, utility=utility)
    gradient, found = run("exact", h, gain, discount, continuation, offsets)
    for q in range(len(offsets) - 1):
        s, g, t = one_query(q, offsets, h, gain, continuation)
        expected = reference.expected_utility_gradient(s, g, discount, t)
        assert gradient[offsets[q] : offsets[q + 1]] == pytest.approx(expected, rel=1e-10, abs=1e-13)
        assert found[q] == pytest.approx(reference.expected_utility(s, g, discount, t), rel=1e-12)


@pytest.mark.parametrize("utility", UTILITIES)
def test_the_exact_gradient_is_the_slope_of_the_expected_utility(utility):
    """Against finite differences of the sum over all permutations: no formula of a gradient is shared."""
    h, gain, discount, continuation, offsets = problem(4, sizes=(5,), utility=utility)
    gradient, _ = run("exact", h, gain, discount, continuation, offsets)
    slope = reference.finite_difference(lambda s: reference.expected_utility(s, gain, discount, continuation), h)
    assert gradient == pytest.approx(slope, abs=1e-9)
    assert np.abs(slope).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gain, discount, continuation, first, second", [
    ([1.0, 0.0], [1.0, 1 / np.log2(3)], None, 1.0, 1 / np.log2(3)),
    ([1.0, 0.0], [1.0, 0.5], [0.0, 1.0], 1.0, 0.5),
    ([1.0, 1.0], [1.0, 0.5], [0.0, 0.0], 1.0, 1.0),
    ([1.0, 1.0], [1.0, 1.0], [0.9, 0.1], 1.9, 1.1),
], ids=["case 14", "reciprocal rank", "both relevant", "alike but for what they let stay"])  # fmt: skip
def test_two_items_by_hand(gain, discount, continuation, first, second, kind):
    """U = p first + (1 - p) second, for p = sigmoid(h_1 - h_2) = 3/4, so that dU/dh_1 = p (1 - p) (first - second)."""
    continuation = None if continuation is None else np.array(continuation)
    given = np.log([3.0, 1.0]), np.array(gain), np.array(discount), continuation, np.array([0, 2])
    gradient, utility = run(kind, *given, n_samples=20_000)
    tolerance = 1e-12 if kind == "exact" else 0.01
    assert utility[0] == pytest.approx(0.75 * first + 0.25 * second, abs=tolerance)
    assert gradient == pytest.approx(0.75 * 0.25 * (first - second) * np.array([1, -1]), abs=tolerance)


# What the estimators are


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("scale", [0.0, 1.5, 30.0, 1000.0])
@pytest.mark.parametrize("n_samples", [2, 8, 17])
def test_sampled_gradients_are_those_of_their_rankings(kind, utility, scale, n_samples):
    """By the definitions; scores from equal to so far apart that their weights underflow. Sizes are on both sides of powers of
    two: what a query leaves behind must not reach the next."""
    sizes = (*SIZES, 130, 3, 70, 17, 5, 129, 9, 2, 31, 63, 64, 65) if scale == 1.5 else SIZES
    h, gain, discount, continuation, offsets = problem(1, sizes, scale, utility)
    gradient, found = run(kind, h, gain, discount, continuation, offsets, KEY, n_samples)
    for q, orders in enumerate(sampled_orders(h, offsets, n_samples)):
        s, g, t = one_query(q, offsets, h, gain, continuation)
        expected = TWINS[kind](s, g, discount, orders, t)
        if q != 1:  # of one item: exactly zero, which has a test of its own
            assert gradient[offsets[q] : offsets[q + 1]] == pytest.approx(expected[0], rel=1e-9, abs=1e-12)
        assert found[q] == pytest.approx(expected[1], rel=1e-12)


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("kind, n, n_samples, factor", [
    ("reinforce", 3, 2, 1 / 2), ("reinforce", 3, 3, 2 / 3), ("plrank", 4, 1, 1), ("plrank", 3, 2, 1), ("plrank", 3, 3, 1),
])  # fmt: skip
def test_expectations_over_all_combinations_of_rankings(kind, n, n_samples, factor, utility):
    """PL-Rank is unbiased; the mean of REINFORCE's samples contains the sample itself."""
    h, gain, discount, continuation, _ = problem(5, sizes=(n,), utility=utility)
    orders, p = reference.probabilities(h)
    found = 0.0
    for c in map(list, itertools.product(range(len(orders)), repeat=n_samples)):
        found += np.prod(p[c]) * TWINS[kind](h, gain, discount, orders[c], continuation)[0]
    true = reference.expected_utility_gradient(h, gain, discount, continuation)
    assert found == pytest.approx(factor * true, abs=1e-14)


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize("utility", ["ndcg", "mrr", "err"])
def test_sampled_gradients_come_near_what_they_estimate(kind, utility):
    """From the noise itself: within 4.5 standard errors, of which the largest entry is far more than ten."""
    given, n_samples = problem(5, sizes=(4, 3), utility=utility), 3
    true = run("exact", *given)[0] * (1 - 1 / n_samples if kind == "reinforce" else 1)
    keys = draw_keys(np.random.default_rng(0), 10_000)
    draws = np.array([run(kind, *given, key, n_samples)[0] for key in keys])
    error = draws.std(axis=0) / 100
    assert (np.abs(draws.mean(axis=0) - true) <= 4.5 * error + 1e-12).all()
    assert np.abs(true / error).max() > 20


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_added_to_all_scores_changes_nothing(kind):
    """Case 15: even 1000."""
    h, *rest = problem(8)
    gradient, utility = run(kind, h, *rest, KEY, 10)
    shifted = run(kind, h + 1000, *rest, KEY, 10)
    assert shifted[0] == pytest.approx(gradient, abs=1e-12) and shifted[1] == pytest.approx(utility, rel=1e-12)


# Nothing to gain


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gain, continuation, worth", [
    ([0.0, 0.0, 0.0], None, 0.0), ([0.0], None, 0.0), ([0.6], None, 0.6), ([0.3, 0.3], None, 0.3 * 1.5),
    ([0.3, 0.3, 0.3], [0.7, 0.7, 0.7], 0.3 * (1 + 0.7 / 2 + 0.49 / 3)), ([0.0, 0.0, 0.0], [0.2, 0.9, 1.0], 0.0),
    ([0.3], [0.7], 0.3), ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], 1.0),
])  # fmt: skip
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_queries_without_a_choice_have_exactly_zero_gradient(kind, gain, continuation, worth, scale):
    """Cases 10 and 11: zero, not 1e-17, which Adam would blow up to a full step."""
    n, continuation = len(gain), None if continuation is None else np.array(continuation)
    h = scale * np.random.default_rng(1).normal(size=n)
    given = h, np.array(gain), 1 / np.arange(1.0, n + 1), continuation, np.array([0, n])
    gradient, utility = run(kind, *given, KEY, 4)
    assert (gradient == 0).all() and utility[0] == pytest.approx(worth, rel=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("utility", ["ndcg", "err"])
def test_a_query_without_a_choice_leaves_its_neighbours_alone(kind, utility):
    h, gain, discount, continuation, offsets = problem(9, utility=utility)
    alone = run(kind, h, gain, discount, continuation, offsets, KEY, 6)
    gain[offsets[1] : offsets[3]] = 0.0
    beside = run(kind, h, gain, discount, continuation, offsets, KEY, 6)
    assert (beside[0][offsets[1] : offsets[3]] == 0).all()
    for rows in (slice(0, offsets[1]), slice(offsets[3], None)):
        np.testing.assert_array_equal(beside[0][rows], alone[0][rows])


# Scores far apart


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("utility", ["ndcg", "err"])
def test_the_edge_where_scores_become_wide_is_smooth(kind, utility):
    """Two ways to sum meet there."""
    h, *rest = problem(10, sizes=(4,), utility=utility)
    h[0] += sampling.WIDE - np.ptp(h)
    below, above = (
        run(kind, h + np.array([0, 0, 0, shift]) * (h == h.min()), *rest, KEY, 10) for shift in (1e-9, -1e-9)
    )
    assert below[0] == pytest.approx(above[0], abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("utility", ["ndcg", "err"])
@pytest.mark.parametrize("far", [590.0, 610.0, 1e30])
def test_one_score_far_below_leaves_the_gradient_of_the_others(kind, utility, far):
    """On either side of the edge, and beyond all digits."""
    h, gain, *rest = problem(15, sizes=(6,), scale=1.0, utility=utility)
    gain[5] = 0.0
    h[5] = h[:5].min() - far
    gradient, _ = run(kind, h, gain, *rest, KEY, 64)
    near, _ = run(kind, np.r_[h[:5], h[:5].min() - 300.0], gain, *rest, KEY, 64)
    assert gradient == pytest.approx(near, rel=1e-9, abs=1e-12) and np.abs(near[:5]).max() > 1e-3


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize("n", [3, 4, 31, 70])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf])
def test_scores_that_are_no_numbers_give_ranks_all_the_same(kind, n, bad):
    """Between two checks of a training that diverges; a rank beyond the last would read past the end of a table."""
    scores, gain, discount, continuation, offsets = problem(14, sizes=(n,))
    for h in (np.where(np.arange(n) == 1, bad, scores), np.full(n, bad)):
        with np.errstate(all="ignore"):
            _, utility = run(kind, h, gain, discount, continuation, offsets, KEY, 9)
        assert (np.sort(sampled_orders(h, offsets, 9)[0], axis=1) == np.arange(n)).all()
        assert np.isnan(utility[0]) or 0 <= utility[0] <= 1 + 1e-12


# However the work is arranged


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("utility", ["ndcg", "err"])
@pytest.mark.parametrize("scale", [1.0, 400.0])
def test_blocks_of_queries_give_the_bits_of_all_at_once(kind, utility, scale):
    """As threads treat them. The numbers of queries, and with them the noise, are those among all."""
    h, gain, discount, continuation, offsets = problem(11, SIZES * 30, scale, utility)
    whole = run(kind, h, gain, discount, continuation, offsets, KEY, 7)
    first = run(kind, h[: offsets[77]], gain, discount, continuation, offsets[:78], KEY, 7)
    np.testing.assert_array_equal(first[0], whole[0][: offsets[77]])
    np.testing.assert_array_equal(first[1], whole[1][:77])


@pytest.mark.parametrize("utility", ["ndcg", "err"])
def test_the_exact_gradient_does_not_depend_on_neighbours_of_the_same_size(utility):
    h, gain, discount, continuation, offsets = problem(12, sizes=(6,) * 70, utility=utility)
    together = run("exact", h, gain, discount, continuation, offsets)
    for q in (0, 63, 64, 69):
        s, g, t = one_query(q, offsets, h, gain, continuation)
        alone = run("exact", s.copy(), g.copy(), discount, None if t is None else t.copy(), np.array([0, 6]))
        np.testing.assert_array_equal(alone[0], together[0][offsets[q] : offsets[q + 1]])
        assert alone[1][0] == together[1][q]


# The objects


@pytest.mark.parametrize("gradient", [Reinforce(11), PLRank(11), ExactGradient()])
def test_expected_discounts_are_those_of_the_gradients_rankings(gradient):
    """So the utility is the sum of gains times expected discounts."""
    h, gain, discount, _, offsets = problem(17)
    batch = batch_of(gain, None, offsets)
    _, utility = gradient.estimate(batch, h, discount)
    expected = gradient.expected_discounts(batch, h, discount)
    assert np.add.reduceat(gain * expected, offsets[:-1]) == pytest.approx(utility, rel=1e-12)


def test_only_the_exact_sum_minds_large_queries():
    queries = Queries.from_qid(["a"] * 3 + ["b"] * (EXACT_LIMIT + 1), EXACT_LIMIT + 4)
    for kind in TWINS:
        make_gradient(kind, 2).check(queries)
    with pytest.raises(ValueError, match=rf"limited to {EXACT_LIMIT} items; query 'b' has {EXACT_LIMIT + 1}"):
        make_gradient("exact", 2).check(queries)


# Utilities


def test_gains_are_those_of_the_definition_up_to_a_constant_of_the_query():
    y, offsets = np.array([0.0, 1, 3, 0.25, 1e-9, 0.7, 0, 0]), np.array([0, 3, 6, 8])
    got = gains(y, offsets)
    for lo, hi in ((0, 3), (3, 6)):
        expected = np.expm1(y[lo:hi] * np.log(2))  # 2^y - 1
        assert got[lo:hi] / got[hi - 1] == pytest.approx(expected / expected[-1], rel=1e-12)
    assert got[6:].tolist() == [0, 0]
    assert gains(y, offsets, "linear")[:3] == pytest.approx([0, 1 / 3, 1])


def test_large_relevances_do_not_overflow():
    """Case 12: 2^300, and beyond what a double can hold."""
    for top in (300.0, 5000.0):
        gain = NDCG().gains(np.array([top, 1, 0, top - 1]), np.array([0, 4]), discounts(4))[0]
        ideal = 1 + 0.5 / np.log2(3)
        assert gain == pytest.approx([1 / ideal, 0, 0, 0.5 / ideal], rel=1e-12, abs=1e-80)


@pytest.mark.parametrize("k", [None, 2])
def test_the_ideal_is_the_best_of_all_rankings(k):
    y = np.array([2.0, 0, 1, 3, 1, 0, 0, 5])
    offsets, discount = np.array([0, 4, 8]), discounts(4, k)
    g = gains(y, offsets)
    best = [
        max(reference.utility_of_order(part, discount, order) for order in reference.rankings(4))
        for part in (g[:4], g[4:])
    ]
    assert relative_gains(y, offsets, discount) == pytest.approx(g / np.repeat(best, 4), rel=1e-14)


def test_a_gradient_of_ones_own_needs_two_methods():
    exact, task = ExactGradient(), make_biased_ranking(n_queries=20, random_state=0)
    methods = {"estimate": staticmethod(exact.estimate), "expected_discounts": staticmethod(exact.expected_discounts)}
    own = type("Own", (GradientEstimator,), methods)()
    found, expected = (
        PlackettLuceRanker(gradient=gradient, max_iter=5, random_state=0).fit(task.data, task.target, qid=task.qid)
        for gradient in (own, "exact")
    )
    np.testing.assert_array_equal(found.coef_, expected.coef_)
