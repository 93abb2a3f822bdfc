"""The Plackett-Luce policy: sampling, probabilities, expectations."""

import numpy as np
import pytest
import reference
from instruments import needs_two_threads, on_threads

from skfairrank._kernels import sampling
from skfairrank.plackett_luce import (
    EXACT_LIMIT,
    expected_exposure,
    log_probability,
    rank_probabilities,
    sample_rankings,
)

LN2, LN3 = np.log(2), np.log(3)
SIZES = (4, 1, 6, 3, 1, 5, 2)


def ragged(seed=0, sizes=SIZES, scale=2.0):
    """Scores and qid of queries of several sizes, grouped, and a shuffle that keeps the rows of each query in order."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    turns = rng.permutation(qid)
    interleaved = np.empty(len(qid), int)
    for q in range(len(sizes)):
        interleaved[turns == q] = np.flatnonzero(qid == q)
    return rng.normal(scale=scale, size=len(qid)), qid, interleaved


def order_of(ranks):
    return np.argsort(ranks)


# Probabilities


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_log_probability_is_that_of_choosing_from_the_top(scale):
    h, qid, _ = ragged(1, scale=scale)
    ranks = np.vstack(
        [sample_rankings(h, qid=qid, n_samples=3, random_state=0), sample_rankings(-h, qid=qid, random_state=1)]
    )
    got = log_probability(h, ranks, qid=qid)
    assert got.shape == (4, len(SIZES))
    for s in range(4):
        for q in range(len(SIZES)):
            rows = qid == q
            expected = reference.log_probability_of_order(h[rows], order_of(ranks[s, rows]))
            assert got[s, q] == pytest.approx(expected, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("beside", [False, True])
def test_log_probability_of_two_items_also_beside_a_larger_query(beside):
    """Case 16: whatever padding a batch might need leaves the numbers alone."""
    scores, ranks, qid = np.array([1.5, 0.3]), np.array([[1, 2], [2, 1]]), np.array([0, 0])
    if beside:
        scores, qid = np.r_[scores, np.arange(6.0)], np.r_[qid, np.ones(6, int)]
        ranks = np.hstack([ranks, np.tile(np.arange(6) + 1, (2, 1))])
    got = log_probability(scores, ranks, qid=qid)[:, 0]
    assert got == pytest.approx([-0.263282, -1.463282], abs=1e-6)


@pytest.mark.parametrize(
    "ranks, message",
    [
        ([1, 1, 2], "not a permutation of 1 to 3"),
        ([0, 1, 2], "not a permutation of 1 to 3"),
        ([2, 3, 4], "not a permutation of 1 to 3"),
        ([1.5, 2, 3], "integers"),
        (["a", "b", "c"], "integers"),
        ([1, 2, np.nan], "integers"),
        ([1, 2], "shape"),
        (np.ones((1, 1, 3)), "shape"),
    ],
)
def test_log_probability_of_something_else_than_ranks_is_an_error(ranks, message):
    with pytest.raises(ValueError, match=message):
        log_probability([1.0, 2.0, 3.0], ranks)


# Sampling


def test_frequencies_of_whole_rankings():
    """Positions alone would not notice dependent draws."""
    h, n_samples = np.array([0.9, -0.4, 0.1, -1.0]), 60_000
    ranks = sample_rankings(h, n_samples=n_samples, random_state=1)
    code = (np.argsort(ranks, axis=1) * 4 ** np.arange(4)).sum(axis=1)
    orders, p = reference.probabilities(h)
    seen = np.array([(code == (order * 4 ** np.arange(4)).sum()).mean() for order in orders])
    assert (np.abs(seen - p) <= 4.5 * np.sqrt(p * (1 - p) / n_samples)).all()


def test_samples_of_different_queries_are_independent():
    ranks = sample_rankings(np.zeros(4), qid=[0, 0, 1, 1], n_samples=20_000, random_state=0)
    both = ((ranks[:, 0] == 1) & (ranks[:, 2] == 1)).mean()
    assert both == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 20_000))


@pytest.mark.parametrize("scores", [[0, -1000, -2000], [1e6, 0, -1e6], [0.0, -700.0, -1400.0]])
def test_scores_far_apart_leave_no_chance(scores):
    assert (sample_rankings(scores, n_samples=200, random_state=0) == [1, 2, 3]).all()
    assert rank_probabilities(scores) == pytest.approx(np.eye(3), abs=1e-16)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 17, 64, 65, 300])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize("n_samples", [1, 7, 17])
def test_sampling_is_the_gumbel_trick(n, scale, n_samples):
    """The same random numbers give the same rankings as sorting scores plus Gumbel noise; the 17th is drawn alone."""
    h, key = np.random.default_rng(n).normal(scale=scale, size=n), np.uint64(2**63 + 5)
    found = np.empty((n_samples, n), np.int64)
    sampling.sample_ranks(0, 1, h, np.array([0, n]), key, n_samples, found)
    noise = reference.exponentials(key, 0, n_samples, n)
    assert (np.argsort(found, axis=1) == reference.sampled_orders(h, noise)).all()


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7, 8, 9, 12])
def test_the_sorting_network_sorts_whatever_is_zero_or_one(n):
    """And so everything (Knuth's 0-1 principle). Scores 200 apart in two classes leave no chance between the classes."""
    patterns = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    found = sample_rankings(-200.0 * patterns.ravel(), qid=np.repeat(np.arange(2**n), n), n_samples=8, random_state=0)
    by_rank = np.take_along_axis(np.tile(patterns.ravel(), (8, 1)), np.argsort(_flat(found, n), axis=1), 1)
    assert (np.diff(by_rank.reshape(8, -1, n), axis=2) >= 0).all()


def _flat(found, n):
    """Ranks that sort all rows at once, query after query."""
    return found + n * (np.arange(found.shape[1]) // n)


@pytest.mark.parametrize("far", [700.0, 1e13, 1e30, 1e150])
def test_equal_scores_stay_equal_chances_however_far_below(far):
    """As of items masked by -1e30: next to that, log 2 and the noise would be rounded away."""
    h = [0.0, -far, -far]
    expected = np.array([[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    assert rank_probabilities(h) == pytest.approx(expected, abs=1e-12)
    frequency = (sample_rankings(h, n_samples=10_000, random_state=0) == 2).mean(axis=0)
    assert frequency == pytest.approx([0, 0.5, 0.5], abs=4 * 0.5 / 100)
    assert np.exp(log_probability(h, [[1, 2, 3], [1, 3, 2]])).ravel() == pytest.approx([0.5, 0.5], rel=1e-12)
    assert expected_exposure([far, 0, 0]) == pytest.approx([1, *[(1 / np.log2(3) + 0.5) / 2] * 2], rel=1e-12)


def test_the_probability_of_what_cannot_happen_has_a_logarithm():
    found = log_probability([3000.0, 0.0, -1.0], [[3, 1, 2], [1, 2, 3]])[:, 0]
    assert found == pytest.approx([-3000 - 3001, -np.log1p(np.exp(-1))], rel=1e-12)


def test_scores_between_two_far_groups_keep_their_odds():
    """Three levels, with odds of 3 to 1 in the middle one."""
    h = np.array([1e14, LN3, 0.0, -1e14])
    assert rank_probabilities(h)[1:3, 1:3] == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]]), rel=1e-12)
    assert (sample_rankings(h, n_samples=20_000, random_state=0)[:, 1] == 2).mean() == pytest.approx(0.75, abs=0.013)


def test_an_int_repeats_and_a_generator_advances():
    h, qid, _ = ragged()

    def draw(state):
        return sample_rankings(h, qid=qid, n_samples=9, random_state=state).tolist()

    assert draw(0) == draw(0) == draw(np.int64(0)) == draw(np.random.default_rng(0)) and draw(0) != draw(1)
    assert draw(None) != draw(None)
    generator = np.random.default_rng(0)
    assert draw(generator) != draw(generator)
    old = np.random.RandomState(0)
    first, second = draw(old), draw(old)
    assert first == draw(np.random.RandomState(0)) and first != second


def test_what_is_refused():
    for scores in ([1.0, np.nan], [np.inf, 1.0], [[1.0, 2.0]], [], ["a", "b"], [1e308, -1e308]):
        for function in (sample_rankings, rank_probabilities, expected_exposure, lambda s: log_probability(s, [1, 2])):
            with pytest.raises(ValueError, match="scores|differences overflow"):
                function(scores)
    for n_samples in (0, -1, 1.0, 2.5, "exact", "many", True, None, 2**70):
        with pytest.raises(ValueError, match="n_samples="):
            sample_rankings([1.0, 2.0], n_samples=n_samples)
    for state in (-1, 1.5, "0", True, [1]):
        with pytest.raises(ValueError, match=r"random_state=.*give None, a non-negative int"):
            sample_rankings([1.0, 2.0], random_state=state)
    for k in (0, -1, 2.5, "2", True):
        with pytest.raises(ValueError, match="k="):
            expected_exposure([1.0, 2.0], k=k)


# The same bits, however the work is arranged


def everything(h, qid):
    """Every function of the module on one input, in the order of the rows given."""
    ranks = sample_rankings(h, qid=qid, n_samples=30, random_state=5)
    return (
        ranks,
        log_probability(h, ranks, qid=qid),
        rank_probabilities(h, qid=qid),
        expected_exposure(h, qid=qid),
        expected_exposure(h, qid=qid, n_samples=30, random_state=5),
    )


@pytest.mark.parametrize("scale", [2.0, 500.0])
def test_interleaving_queries_gives_the_same_bits(scale):
    h, qid, interleaved = ragged(3, sizes=SIZES * 3, scale=scale)
    a, b = everything(h, qid), everything(h[interleaved], qid[interleaved])
    np.testing.assert_array_equal(a[0][:, interleaved], b[0])
    np.testing.assert_array_equal(a[1], b[1])
    for x, y in zip(a[2:], b[2:]):
        np.testing.assert_array_equal(x[interleaved], y)


def test_a_query_does_not_depend_on_its_neighbours():
    """Exact sums of a query have the same bits alone, among its like, and among queries of other sizes."""
    h, qid, _ = ragged(5, sizes=(5,) * 70 + (3, 9, 1, 9))
    p, exposure = rank_probabilities(h, qid=qid), expected_exposure(h, qid=qid)
    for q in (0, 1, 63, 64, 69, 70, 71, 72, 73):
        rows = qid == q
        np.testing.assert_array_equal(rank_probabilities(h[rows]), p[rows, : rows.sum()])
        np.testing.assert_array_equal(expected_exposure(h[rows]), exposure[rows])


@needs_two_threads
def test_any_number_of_threads_gives_the_same_bits():
    h, qid, interleaved = ragged(4, sizes=SIZES * 6)
    h, qid, found = h[interleaved], qid[interleaved], []
    for n in (1, 2):
        with on_threads(n):
            found.append(everything(h, qid))
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y)


# Exact expectations


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_rank_probabilities_are_the_sum_over_all_rankings(scale):
    h, qid, interleaved = ragged(6, scale=scale)
    got = rank_probabilities(h[interleaved], qid=qid[interleaved])
    assert got.shape == (len(h), max(SIZES))
    for q, n in enumerate(SIZES):
        mine = got[qid[interleaved] == q]
        assert mine[:, :n] == pytest.approx(reference.rank_probabilities(h[qid == q]), rel=1e-11, abs=1e-14)
        assert (mine[:, n:] == 0).all()


@pytest.mark.parametrize("k", [None, 1, 2, 10])
def test_expected_exposure_is_probability_times_discount(k):
    h, qid, _ = ragged(7)
    discount = 1 / np.log2(np.arange(max(SIZES)) + 2)
    discount[max(SIZES) if k is None else k :] = 0
    exposure = expected_exposure(h, qid=qid, k=k)
    for q, n in enumerate(SIZES):
        expected = reference.rank_probabilities(h[qid == q]) @ discount[:n]
        assert exposure[qid == q] == pytest.approx(expected, rel=1e-11)


def test_sampled_exposure_is_the_mean_discount_of_the_sampled_ranks():
    h, qid, _ = ragged(9)
    ranks = sample_rankings(h, qid=qid, n_samples=11, random_state=2)
    expected = (1 / np.log2(1.0 + ranks)).mean(axis=0)
    assert expected_exposure(h, qid=qid, n_samples=11, random_state=2) == pytest.approx(expected, rel=1e-13)


def test_exact_sums_name_their_limit():
    h = np.zeros(EXACT_LIMIT + 1)
    for function in (rank_probabilities, expected_exposure):
        with pytest.raises(
            ValueError, match=rf"(?s)Exact.*limited to {EXACT_LIMIT} items.*{EXACT_LIMIT + 1}.*n_samples"
        ):
            function(h)


def test_exact_sums_work_up_to_their_limit():
    """All items alike: every item has the mean discount."""
    n = EXACT_LIMIT
    assert expected_exposure(np.full(n, 3.0)) == pytest.approx(
        np.full(n, np.mean(1 / np.log2(np.arange(n) + 2))), rel=1e-12
    )
