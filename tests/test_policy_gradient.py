"""Gradients of the expected utility in the scores: REINFORCE, PL-Rank and the exact sum."""

import numba
import numpy as np
import pytest
import reference

from skfairrank import _threads as threads
from skfairrank._gains import discounts, gains, ideal_dcg, normalized_gains
from skfairrank._kernels import exact, policy, ragged
from skfairrank._kernels.sorting import SMALL
from skfairrank._queries import Queries
from skfairrank._random import draw_keys
from skfairrank.training import GRADIENTS, Batch, Data, PolicyGradient

KEY = np.uint64(0x9ABCDEF012345678)
SIZES = (5, 1, 3, 4, 2, 5)
SAMPLED = {"reinforce": reference.reinforce, "plrank": reference.plrank}


def problem(seed=0, sizes=SIZES, scale=1.5, k=None, gain="exp2"):
    """Scores, normalised gains, discounts and offsets of queries of several sizes."""
    rng = np.random.default_rng(seed)
    offsets = np.r_[0, np.cumsum(sizes)]
    y = rng.integers(0, 4, offsets[-1]).astype(float)
    y[offsets[:-1]] = 3  # something to gain in every query
    discount = discounts(max(sizes), k)
    return rng.normal(scale=scale, size=len(y)), normalized_gains(y, offsets, discount, gain), discount, offsets


def run(kind, h, gain, discount, offsets, key=KEY, n_samples=0):
    gradient, utility = np.full(len(h), np.nan), np.full(len(offsets) - 1, np.nan)
    if kind == "exact":
        exact.exact_gradient(0, len(offsets) - 1, h, offsets, gain, discount, gradient, utility)
    else:
        GRADIENTS[kind](0, len(offsets) - 1, h, offsets, gain, discount, key, n_samples, gradient, utility)
    return gradient, utility


# Against the twins


@pytest.mark.parametrize("kind", SAMPLED)
@pytest.mark.parametrize("scale", [0.0, 1.5, 30.0, 1000.0])
@pytest.mark.parametrize("n_samples, k", [(8, None), (3, 2), (17, None)])
def test_sampled_gradients_equal_their_readable_twins(kind, scale, n_samples, k):
    """The same rankings, and the definitions; scores from equal to so far apart that their weights underflow."""
    h, gain, discount, offsets = problem(1, scale=scale, k=k)
    gradient, utility = run(kind, h, gain, discount, offsets, KEY, n_samples)
    for q, (lo, hi) in enumerate(zip(offsets[:-1], offsets[1:])):
        noise = reference.exponentials(KEY, q, n_samples, hi - lo)
        expected = SAMPLED[kind](h[lo:hi], gain[lo:hi], discount, noise)
        assert gradient[lo:hi] == pytest.approx(expected[0], rel=1e-10, abs=1e-13)
        assert utility[q] == pytest.approx(expected[1], rel=1e-13)


@pytest.mark.parametrize("kind", SAMPLED)
@pytest.mark.parametrize("n", [17, 31, 70, SMALL, SMALL + 13])
@pytest.mark.parametrize("scale", [1.5, 1000.0])
@pytest.mark.parametrize("n_samples", [2, 9])
def test_sampled_gradients_of_long_queries_equal_their_twins(kind, n, scale, n_samples):
    """Of even and odd size, compared and sorted; the ninth sample is ranked alone."""
    h, gain, discount, offsets = problem(2, sizes=(n,), scale=scale)
    gradient, utility = run(kind, h, gain, discount, offsets, KEY, n_samples)
    expected = SAMPLED[kind](h, gain, discount, reference.exponentials(KEY, 0, n_samples, n))
    assert gradient == pytest.approx(expected[0], rel=1e-10, abs=1e-13) and utility == pytest.approx(expected[1])


@pytest.mark.parametrize("scale", [0.0, 1.5, 30.0, 1000.0])
@pytest.mark.parametrize("k", [None, 2])
def test_the_exact_gradient_is_the_sum_over_all_rankings(scale, k):
    h, gain, discount, offsets = problem(3, scale=scale, k=k)
    gradient, utility = run("exact", h, gain, discount, offsets)
    for q, (lo, hi) in enumerate(zip(offsets[:-1], offsets[1:])):
        mine = h[lo:hi], gain[lo:hi], discount
        assert gradient[lo:hi] == pytest.approx(reference.expected_utility_gradient(*mine), rel=1e-10, abs=1e-13)
        assert utility[q] == pytest.approx(reference.expected_utility(*mine), rel=1e-12)


@pytest.mark.parametrize("k", [None, 1, 3])
def test_the_exact_gradient_is_the_slope_of_the_expected_utility(k):
    """Against finite differences of the sum over all permutations: no formula of a gradient is shared."""
    h, gain, discount, offsets = problem(4, sizes=(5,), k=k)
    gradient, _ = run("exact", h, gain, discount, offsets)
    slope = reference.finite_difference(lambda s: reference.expected_utility(s, gain, discount), h)
    assert gradient == pytest.approx(slope, abs=1e-9)
    assert np.abs(slope).max() > 1e-3


def test_the_exact_gradient_of_two_items_by_hand():
    """U = p + (1 - p) / log2(3) for gains (1, 0) and p = sigmoid(h_1 - h_2); so dU/dh_1 = p (1 - p) (1 - 1/log2 3)."""
    p = 0.75
    gradient, utility = run("exact", np.log([3.0, 1.0]), np.array([1.0, 0.0]), discounts(2), np.array([0, 2]))
    assert utility[0] == pytest.approx(0.907732, abs=1e-6)  # case 14
    assert gradient == pytest.approx(p * (1 - p) * (1 - 1 / np.log2(3)) * np.array([1, -1]), rel=1e-12)


# What the estimators estimate


def estimates(kind, h, gain, discount, offsets, n_samples, repeats, seed=0):
    return np.array(
        [
            run(kind, h, gain, discount, offsets, key, n_samples)[0]
            for key in draw_keys(np.random.default_rng(seed), repeats)
        ]
    )


def assert_mean(draws, expected, n_errors=4.5):
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) <= n_errors * error + 1e-12).all()


@pytest.mark.parametrize("n_samples", [2, 5])
@pytest.mark.parametrize("k", [None, 2])
def test_reinforce_estimates_1_minus_1_over_n_times_the_gradient(n_samples, k):
    """The mean of the samples contains the sample itself. With 2 samples the factor is a half: neither 1 nor 0 would pass."""
    h, gain, discount, offsets = problem(5, sizes=(4, 3), k=k)
    true, _ = run("exact", h, gain, discount, offsets)
    draws = estimates("reinforce", h, gain, discount, offsets, n_samples, 20_000)
    assert_mean(draws, (1 - 1 / n_samples) * true)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.abs(true / n_samples / error).max() > 10  # the test can tell the factor


@pytest.mark.parametrize("n_samples", [1, 2, 5])
@pytest.mark.parametrize("k", [None, 2])
def test_pl_rank_is_unbiased(n_samples, k):
    h, gain, discount, offsets = problem(5, sizes=(4, 3), k=k)
    true, _ = run("exact", h, gain, discount, offsets)
    assert_mean(estimates("plrank", h, gain, discount, offsets, n_samples, 20_000), true)


@pytest.mark.parametrize("n", [10, 30])
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_pl_rank_varies_less_than_reinforce(scale, n):
    """At equal samples, REINFORCE corrected to be unbiased too. (Without its baseline it would vary 10 to 60 times more.)"""
    h, gain, discount, offsets = problem(6, sizes=(n, n), scale=scale)
    n_samples = 10
    a = estimates("reinforce", h, gain, discount, offsets, n_samples, 2000) / (1 - 1 / n_samples)
    b = estimates("plrank", h, gain, discount, offsets, n_samples, 2000)
    assert b.var(axis=0).sum() < 0.7 * a.var(axis=0).sum()


@pytest.mark.parametrize("kind", SAMPLED)
def test_utilities_of_samples_are_unbiased(kind):
    h, gain, discount, offsets = problem(7, sizes=(4,))
    _, utility = run(kind, h, gain, discount, offsets, KEY, 40_000)
    assert utility[0] == pytest.approx(reference.expected_utility(h, gain, discount), abs=4 * 0.3 / np.sqrt(40_000))


@pytest.mark.parametrize("kind", GRADIENTS)
def test_gradients_sum_to_zero_over_a_query(kind):
    """The policy does not notice a constant added to all scores of a query."""
    h, gain, discount, offsets = problem(8)
    gradient, _ = run(kind, h, gain, discount, offsets, KEY, 10)
    assert np.add.reduceat(gradient, offsets[:-1]) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("kind", GRADIENTS)
def test_a_constant_added_to_all_scores_changes_nothing(kind):
    """Case 15: even 1000."""
    h, gain, discount, offsets = problem(8)
    gradient, utility = run(kind, h, gain, discount, offsets, KEY, 10)
    shifted = run(kind, h + 1000, gain, discount, offsets, KEY, 10)
    assert shifted[0] == pytest.approx(gradient, abs=1e-12) and shifted[1] == pytest.approx(utility, rel=1e-12)


# Nothing to gain


@pytest.mark.parametrize("kind", GRADIENTS)
@pytest.mark.parametrize("y", [[0, 0, 0], [2, 2, 2], [3], [0], [0.1, 0.1, 0.1]])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_queries_without_a_choice_have_exactly_zero_gradient(kind, y, scale):
    """Cases 10 and 11: zero, not 1e-17, which Adam would blow up to a full step."""
    y, n = np.array(y, float), len(y)
    discount = discounts(n)
    gain = normalized_gains(y, np.array([0, n]), discount)
    h = scale * np.random.default_rng(1).normal(size=n)
    gradient, utility = run(kind, h, gain, discount, np.array([0, n]), KEY, 4)
    assert (gradient == 0).all()
    assert utility[0] == pytest.approx(1.0 if y.any() else 0.0, rel=1e-14)


@pytest.mark.parametrize("kind", GRADIENTS)
def test_a_query_without_a_choice_leaves_its_neighbours_alone(kind):
    h, gain, discount, offsets = problem(9)
    alone = run(kind, h, gain, discount, offsets, KEY, 6)
    beside = run(kind, np.r_[h, 0.5], np.r_[gain, 0.0], discount, np.r_[offsets, offsets[-1] + 1], KEY, 6)
    np.testing.assert_array_equal(beside[0][:-1], alone[0])
    np.testing.assert_array_equal(beside[1][:-1], alone[1])
    gain[offsets[1] : offsets[3]] = 0.2
    beside = run(kind, h, gain, discount, offsets, KEY, 6)
    assert (beside[0][offsets[1] : offsets[3]] == 0).all()
    for before, after in ((slice(0, offsets[1]),) * 2, (slice(offsets[3], None),) * 2):
        np.testing.assert_array_equal(beside[0][after], alone[0][before])


@pytest.mark.parametrize("kind", GRADIENTS)
def test_wide_scores_give_finite_gradients(kind):
    """One item far above, two level below: the gradient between those two is that of the two alone, one rank lower."""
    h, gain, discount = np.array([2000.0, np.log(3), 0.0]), np.array([0.0, 1.0, 0.0]), discounts(3)
    n_samples = 20_000
    gradient, _ = run(kind, h, gain, discount, np.array([0, 3]), KEY, n_samples)
    expected = 0.75 * 0.25 * (discount[1] - discount[2]) * np.array([0, 1, -1])
    assert gradient == pytest.approx(expected, rel=1e-12 if kind == "exact" else 0.05, abs=1e-12)


@pytest.mark.parametrize("kind", GRADIENTS)
def test_the_edge_between_weights_and_logarithms_is_smooth(kind):
    """Two ways to sum meet where scores are WIDE apart."""
    h, gain, discount, offsets = problem(10, sizes=(4,))
    h[0] += ragged.WIDE - np.ptp(h)
    below, above = (
        run(kind, h + np.array([0, 0, 0, shift]) * (h == h.min()), gain, discount, offsets, KEY, 10)
        for shift in (1e-9, -1e-9)
    )
    assert below[0] == pytest.approx(above[0], abs=1e-8)


MIXED = (300, 3, 70, 17, 1, 5, 129, 9, 2, 31, 63, 64, 65)


@pytest.mark.parametrize("kind", SAMPLED)
@pytest.mark.parametrize("scale", [1.5, 1000.0])
@pytest.mark.parametrize("n_samples", [2, 9, 17])
def test_queries_of_every_kind_in_one_call_equal_their_twins(kind, scale, n_samples):
    """In lanes, alone and wide, one after the other; and other kernels see the same rankings."""
    h, gain, discount, offsets = problem(13, sizes=MIXED, scale=scale)
    gradient, utility = run(kind, h, gain, discount, offsets, KEY, n_samples)
    exposure = np.empty(len(h))
    policy.sampled_discounts(0, len(MIXED), h, offsets, KEY, n_samples, discount, exposure)
    for q, (lo, hi) in enumerate(zip(offsets[:-1], offsets[1:])):
        if hi - lo == 1:
            continue
        expected = SAMPLED[kind](h[lo:hi], gain[lo:hi], discount, reference.exponentials(KEY, q, n_samples, hi - lo))
        assert gradient[lo:hi] == pytest.approx(expected[0], rel=1e-9, abs=1e-12)
        assert utility[q] == pytest.approx(expected[1], rel=1e-12)
        assert gain[lo:hi] @ exposure[lo:hi] == pytest.approx(utility[q], rel=1e-12)


@pytest.mark.parametrize("kind", SAMPLED)
@pytest.mark.parametrize("n", [3, 4, 31, 70])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf])
def test_scores_that_are_no_numbers_give_ranks_all_the_same(kind, n, bad):
    """Between two checks of a training that diverges; a rank beyond the last would read past the end of a table."""
    h, gain, discount, offsets = problem(14, sizes=(n,))
    for h in (np.where(np.arange(n) == 1, bad, h), np.full(n, bad)):  # noqa: B020
        with np.errstate(all="ignore"):
            _, utility = run(kind, h, gain, discount, offsets, KEY, 9)
        ranks = np.zeros((9, n), np.int64)
        policy.sample_ranks(0, 1, h, offsets, KEY, 9, ranks)
        assert (np.sort(ranks, axis=1) == np.arange(1, n + 1)).all()
        assert np.isnan(utility[0]) or 0 <= utility[0] <= 1 + 1e-12


@pytest.mark.parametrize("kind", GRADIENTS)
@pytest.mark.parametrize("far", [590.0, 610.0, 1e30])
def test_one_score_far_below_leaves_the_gradient_of_the_others(kind, far):
    """On either side of the edge between weights and logarithms, and beyond all digits."""
    h, gain, discount, offsets = problem(15, sizes=(6,), scale=1.0)
    gain[5] = 0.0
    h[5] = h[:5].min() - far
    gradient, _ = run(kind, h, gain, discount, offsets, KEY, 64)
    near, _ = run(kind, np.r_[h[:5], h[:5].min() - 300.0], gain, discount, offsets, KEY, 64)
    assert gradient == pytest.approx(near, rel=1e-9, abs=1e-12) and np.abs(near[:5]).max() > 1e-3


# However the work is arranged


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")
@pytest.mark.parametrize("kind", GRADIENTS)
@pytest.mark.parametrize("scale", [1.0, 400.0])
def test_gradients_have_the_same_bits_on_any_number_of_threads(monkeypatch, kind, scale):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    h, gain, discount, offsets = problem(11, sizes=SIZES * 30, scale=scale)
    queries = Queries(np.arange(len(offsets) - 1), np.arange(len(h)), offsets, True)
    batch = Batch(np.arange(queries.n_queries), np.arange(len(h)), offsets, gain, KEY)
    policy_gradient = PolicyGradient(Data(np.empty((len(h), 0)), queries, gain, discount), kind, 7)
    before, results = numba.get_num_threads(), []
    try:
        for n in (1, 2):
            numba.set_num_threads(n)
            results.append(policy_gradient(batch, h))
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    np.testing.assert_array_equal(results[0][0], run(kind, h, gain, discount, offsets, KEY, 7)[0])


def test_the_exact_gradient_does_not_depend_on_neighbours_of_the_same_size():
    h, gain, discount, offsets = problem(12, sizes=(6,) * 70)
    together = run("exact", h, gain, discount, offsets)
    for q in (0, 63, 64, 69):
        lo, hi = offsets[q], offsets[q + 1]
        alone = run("exact", h[lo:hi].copy(), gain[lo:hi].copy(), discount, np.array([0, 6]))
        np.testing.assert_array_equal(alone[0], together[0][lo:hi])
        assert alone[1][0] == together[1][q]


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
        gain = normalized_gains(np.array([top, 1, 0, top - 1]), np.array([0, 4]), discounts(4))
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
    assert ideal_dcg(g, offsets, discount) == pytest.approx(best, rel=1e-14)


def test_an_unknown_gain_is_an_error():
    with pytest.raises(ValueError, match=r"gain='exp': choose one of \['exp2', 'linear'\]"):
        gains(np.ones(2), np.array([0, 2]), "exp")
