"""Gradients of the expected utility in the scores: REINFORCE, PL-Rank and the exact sum; with and without continuation."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import reference

from skfairrank._kernels import sampling
from skfairrank._queries import Queries
from skfairrank._random import draw_keys
from skfairrank.plackett_luce import EXACT_LIMIT
from skfairrank.policies import ExactGradient, PLRank, Reinforce, make_gradient
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


def run(kind, h, gain, discount, continuation, offsets, key=KEY, n_samples=0):
    """Gradient and utility, by the object that a ranker would ask."""
    batch = SimpleNamespace(
        offsets=offsets,
        gain=gain,
        continuation=np.empty(0) if continuation is None else continuation,
        key=key,
        utility=None,
    )
    return make_gradient(kind, n_samples).estimate(batch, h, discount)


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


def test_the_exact_gradient_of_two_items_by_hand():
    """U = p + (1 - p) / log2(3) for gains (1, 0) and p = sigmoid(h_1 - h_2); so dU/dh_1 = p (1 - p) (1 - 1/log2 3)."""
    p = 0.75
    gradient, utility = run("exact", np.log([3.0, 1.0]), np.array([1.0, 0.0]), discounts(2), None, np.array([0, 2]))
    assert utility[0] == pytest.approx(0.907732, abs=1e-6)  # case 14
    assert gradient == pytest.approx(p * (1 - p) * (1 - 1 / np.log2(3)) * np.array([1, -1]), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_reciprocal_rank_of_two_items_by_hand(kind):
    """E = p + (1 - p)/2 if only the first of two is relevant, p its chance to come first. If both are, it is 1 and flat."""
    h, offsets, discount = np.log([3.0, 1.0, 3.0, 1.0]), np.array([0, 2, 4]), np.array([1.0, 0.5])
    relevant = np.array([1.0, 0, 1, 1])
    gradient, utility = run(kind, h, relevant, discount, 1 - relevant, offsets, n_samples=20_000)
    p = 0.75
    assert utility == pytest.approx([p + (1 - p) / 2, 1.0], abs=1e-12 if kind == "exact" else 0.01)
    assert gradient[:2] == pytest.approx([p * (1 - p) / 2, -p * (1 - p) / 2], abs=1e-12 if kind == "exact" else 0.01)
    assert (gradient[2:] == 0).all()


# What the estimators are


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("scale", [0.0, 1.5, 30.0, 1000.0])
@pytest.mark.parametrize("n_samples", [2, 8, 17])
def test_sampled_gradients_are_those_of_their_rankings(kind, utility, scale, n_samples):
    """By the definitions, ranking by ranking; scores from equal to so far apart that their weights underflow."""
    h, gain, discount, continuation, offsets = problem(1, scale=scale, utility=utility)
    gradient, found = run(kind, h, gain, discount, continuation, offsets, KEY, n_samples)
    for q, orders in enumerate(sampled_orders(h, offsets, n_samples)):
        s, g, t = one_query(q, offsets, h, gain, continuation)
        expected = TWINS[kind](s, g, discount, orders, t)
        if q != 1:  # of one item: exactly zero, which has a test of its own
            assert gradient[offsets[q] : offsets[q + 1]] == pytest.approx(expected[0], rel=1e-10, abs=1e-13)
        assert found[q] == pytest.approx(expected[1], rel=1e-13)


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize("utility", ["ndcg", "err"])
@pytest.mark.parametrize("scale", [1.5, 1000.0])
@pytest.mark.parametrize("n_samples", [2, 9, 17])
def test_sampled_gradients_of_long_and_short_queries_in_one_call(kind, utility, scale, n_samples):
    """Sizes on both sides of powers of two; what a query leaves behind must not reach the next."""
    h, gain, discount, continuation, offsets = problem(
        13, (130, 3, 70, 17, 5, 129, 9, 2, 31, 63, 64, 65), scale, utility
    )
    gradient, found = run(kind, h, gain, discount, continuation, offsets, KEY, n_samples)
    for q, orders in enumerate(sampled_orders(h, offsets, n_samples)):
        s, g, t = one_query(q, offsets, h, gain, continuation)
        expected = TWINS[kind](s, g, discount, orders, t)
        assert gradient[offsets[q] : offsets[q + 1]] == pytest.approx(expected[0], rel=1e-9, abs=1e-12)
        assert found[q] == pytest.approx(expected[1], rel=1e-12)


def expectation(estimate, h, n_samples):
    """Of an estimate from independent rankings: the sum over all of their combinations."""
    orders, p = reference.probabilities(h)
    combinations = itertools.product(range(len(orders)), repeat=n_samples)
    return sum(np.prod(p[list(c)]) * estimate(orders[list(c)])[0] for c in combinations)


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("n_samples", [2, 3])
def test_reinforce_is_1_minus_1_over_n_times_the_gradient_in_expectation(n_samples, utility):
    """The mean of the samples contains the sample itself."""
    h, gain, discount, continuation, _ = problem(5, sizes=(3,), utility=utility)
    found = expectation(lambda orders: TWINS["reinforce"](h, gain, discount, orders, continuation), h, n_samples)
    true = reference.expected_utility_gradient(h, gain, discount, continuation)
    assert found == pytest.approx((1 - 1 / n_samples) * true, abs=1e-14)


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("n, n_samples", [(4, 1), (3, 2), (3, 3)])
def test_pl_rank_is_unbiased(n, n_samples, utility):
    h, gain, discount, continuation, _ = problem(5, sizes=(n,), utility=utility)
    found = expectation(lambda orders: TWINS["plrank"](h, gain, discount, orders, continuation), h, n_samples)
    assert found == pytest.approx(reference.expected_utility_gradient(h, gain, discount, continuation), abs=1e-14)


def estimates(kind, problem, n_samples, repeats):
    keys = draw_keys(np.random.default_rng(0), repeats)
    return np.array([run(kind, *problem, key, n_samples)[0] for key in keys])


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize("utility", ["ndcg", "mrr", "err"])
def test_sampled_gradients_come_near_what_they_estimate(kind, utility):
    """From the noise itself: within 4.5 standard errors, of which the largest entry is far more than ten."""
    given, n_samples = problem(5, sizes=(4, 3), utility=utility), 3
    true = run("exact", *given)[0] * (1 - 1 / n_samples if kind == "reinforce" else 1)
    draws = estimates(kind, given, n_samples, 10_000)
    error = draws.std(axis=0) / 100
    assert (np.abs(draws.mean(axis=0) - true) <= 4.5 * error + 1e-12).all()
    assert np.abs(true / error).max() > 20


@pytest.mark.parametrize("n", [10, 30])
@pytest.mark.parametrize("scale", [0.1, 1.0])
@pytest.mark.parametrize("utility", ["ndcg", "mrr"])
def test_pl_rank_varies_less_than_reinforce(utility, scale, n):
    """At equal samples, REINFORCE corrected to be unbiased too. (Without its baseline it would vary 10 to 60 times more.)"""
    given, n_samples = problem(6, (n, n), scale, utility), 10
    a = estimates("reinforce", given, n_samples, 2000) / (1 - 1 / n_samples)
    b = estimates("plrank", given, n_samples, 2000)
    assert b.var(axis=0).sum() < 0.7 * a.var(axis=0).sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("utility", UTILITIES)
def test_gradients_sum_to_zero_over_a_query(kind, utility):
    """The policy does not notice a constant added to all scores of a query."""
    h, gain, discount, continuation, offsets = problem(8, utility=utility)
    gradient, _ = run(kind, h, gain, discount, continuation, offsets, KEY, 10)
    assert np.add.reduceat(gradient, offsets[:-1]) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_added_to_all_scores_changes_nothing(kind):
    """Case 15: even 1000."""
    h, *rest = problem(8)
    gradient, utility = run(kind, h, *rest, KEY, 10)
    shifted = run(kind, h + 1000, *rest, KEY, 10)
    assert shifted[0] == pytest.approx(gradient, abs=1e-12) and shifted[1] == pytest.approx(utility, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stay_of_one_is_none(kind):
    h, gain, discount, _, offsets = problem(8)
    without = run(kind, h, gain, discount, None, offsets, KEY, 10)
    everybody = run(kind, h, gain, discount, np.ones(len(h)), offsets, KEY, 10)
    assert everybody[0] == pytest.approx(without[0], rel=1e-12, abs=1e-15)
    assert everybody[1] == pytest.approx(without[1], rel=1e-14)


# Nothing to gain


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("y", [[0, 0, 0], [2, 2, 2], [3], [0], [0.1, 0.1, 0.1]])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_queries_without_a_choice_have_exactly_zero_gradient(kind, y, scale):
    """Cases 10 and 11: zero, not 1e-17, which Adam would blow up to a full step."""
    y, n = np.array(y, float), len(y)
    discount = discounts(n)
    gain = NDCG().gains(y, np.array([0, n]), discount)[0]
    h = scale * np.random.default_rng(1).normal(size=n)
    gradient, utility = run(kind, h, gain, discount, None, np.array([0, n]), KEY, 4)
    assert (gradient == 0).all()
    assert utility[0] == pytest.approx(1.0 if y.any() else 0.0, rel=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "gain, continuation, worth",
    [
        ([0.3, 0.3, 0.3], [0.7, 0.7, 0.7], 0.3 * (1 + 0.7 / 2 + 0.49 / 3)),
        ([0.0, 0.0, 0.0], [0.2, 0.9, 1.0], 0.0),
        ([0.3], [0.7], 0.3),
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], 1.0),
    ],
)
def test_so_have_queries_of_items_that_are_alike_also_in_what_they_let_stay(kind, gain, continuation, worth):
    n = len(gain)
    given = np.arange(n) * 0.7, np.array(gain), 1 / np.arange(1.0, n + 1), np.array(continuation), np.array([0, n])
    gradient, utility = run(kind, *given, KEY, 4)
    assert (gradient == 0).all() and utility[0] == pytest.approx(worth, rel=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_items_of_equal_gain_differ_by_what_they_let_stay(kind):
    """Two items of gain 1 and discount 1: the worth is 1 + the first one's continuation, so dU/dh_1 = p (1 - p) (c_1 - c_2)."""
    h, offsets = np.log([3.0, 1.0]), np.array([0, 2])
    gradient, utility = run(kind, h, np.ones(2), np.ones(2), np.array([0.9, 0.1]), offsets, KEY, 20_000)
    p, tolerance = 0.75, 1e-12 if kind == "exact" else 0.01
    assert gradient == pytest.approx(p * (1 - p) * 0.8 * np.array([1, -1]), abs=tolerance)
    assert utility[0] == pytest.approx(1 + p * 0.9 + (1 - p) * 0.1, abs=tolerance)


@pytest.mark.parametrize("kind", TWINS)
def test_a_policy_that_has_decided_has_no_gradient_from_what_never_varies(kind):
    """Every sample is the same ranking: REINFORCE is exactly zero, PL-Rank as small as the chances that are left."""
    h, gain, discount, continuation, offsets = problem(16, sizes=(5,), utility="err")
    gradient, _ = run(kind, np.argsort(h) * 100.0, gain, discount, continuation, offsets, KEY, 20)
    assert (gradient == 0).all() if kind == "reinforce" else np.abs(gradient).max() < 1e-15


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("utility", ["ndcg", "err"])
def test_a_query_without_a_choice_leaves_its_neighbours_alone(kind, utility):
    h, gain, discount, continuation, offsets = problem(9, utility=utility)
    alone = run(kind, h, gain, discount, continuation, offsets, KEY, 6)
    more = None if continuation is None else np.r_[continuation, 1.0]
    beside = run(kind, np.r_[h, 0.5], np.r_[gain, 0.0], discount, more, np.r_[offsets, offsets[-1] + 1], KEY, 6)
    np.testing.assert_array_equal(beside[0][:-1], alone[0])
    np.testing.assert_array_equal(beside[1][:-1], alone[1])
    gain[offsets[1] : offsets[3]] = 0.0
    beside = run(kind, h, gain, discount, continuation, offsets, KEY, 6)
    assert (beside[0][offsets[1] : offsets[3]] == 0).all()
    for rows in (slice(0, offsets[1]), slice(offsets[3], None)):
        np.testing.assert_array_equal(beside[0][rows], alone[0][rows])


# Scores far apart


@pytest.mark.parametrize("kind", KINDS)
def test_wide_scores_give_finite_gradients(kind):
    """One item far above, two level below: the gradient between those two is that of the two alone, one rank lower."""
    h, gain, discount = np.array([2000.0, np.log(3), 0.0]), np.array([0.0, 1.0, 0.0]), discounts(3)
    gradient, _ = run(kind, h, gain, discount, None, np.array([0, 3]), KEY, 20_000)
    expected = 0.75 * 0.25 * (discount[1] - discount[2]) * np.array([0, 1, -1])
    assert gradient == pytest.approx(expected, rel=1e-12 if kind == "exact" else 0.05, abs=1e-12)


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
    gradient = make_gradient(kind, 7)
    batch = SimpleNamespace(
        offsets=offsets,
        gain=gain,
        continuation=np.empty(0) if continuation is None else continuation,
        key=KEY,
        utility=None,
    )
    whole = gradient.estimate(batch, h, discount)
    cut = 77
    before = SimpleNamespace(**{**vars(batch), "offsets": offsets[: cut + 1]})
    first = gradient.estimate(before, h[: offsets[cut]], discount)
    np.testing.assert_array_equal(first[0], whole[0][: offsets[cut]])
    np.testing.assert_array_equal(first[1], whole[1][:cut])


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
    batch = SimpleNamespace(offsets=offsets, gain=gain, continuation=np.empty(0), key=KEY, utility=None)
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
