"""Values of the metrics: by counting all rankings, by scikit-learn, in closed form, and the hand-worked small cases."""

import warnings
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from metrics_under_test import (
    DETERMINISTIC,
    METRICS,
    Data,
    individual_by_counting,
    mean_ndcg,
    policy_plackett_luce,
    random_data,
)
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank.metrics import (
    group_exposure_difference,
    group_exposure_disparity,
    individual_exposure_disparity,
    kendall_tau_score,
    ndcg_score,
    stochastic_ndcg_score,
)

LN3 = np.log(3)
E = 1 / np.log2(np.arange(8) + 2)  # exposure of ranks 1, 2, ...


@pytest.mark.parametrize("k", [None, 1, 3, 100])
@pytest.mark.parametrize("gain", ["linear", "exp2"])
def test_ndcg_agrees_with_scikit_learn(gain, k):
    data = random_data(np.random.default_rng(1), sizes=[2, 3, 10, 40, 5, 256, 257, 700])
    data.y[data.s == data.s.max()] = 2
    labels = data.y if gain == "linear" else 2**data.y - 1
    expected = []
    for q in np.unique(data.qid):
        rows = data.qid == q
        if labels[rows].any():
            expected.append(sklearn.metrics.ndcg_score(labels[rows][None], data.s[rows][None], k=k))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        assert ndcg_score(data.y, data.s, qid=data.qid, gain=gain, k=k) == pytest.approx(np.mean(expected), rel=1e-12)


@pytest.mark.parametrize("size", [2, 3, 17, 64, 65, 1000])
def test_kendall_tau_agrees_with_scipy(size):
    rng = np.random.default_rng(size)
    s1, s2 = rng.normal(size=(2, 3 * size))
    s2 += s1
    qid = rng.permutation(np.repeat(["a", "b", "c"], size))
    expected = np.mean([scipy.stats.kendalltau(s1[qid == q], s2[qid == q]).statistic for q in "abc"])
    assert kendall_tau_score(s1, s2, qid=qid) == pytest.approx(expected, abs=1e-14)


def test_kendall_tau_of_a_ranking_with_itself_is_one_also_when_tied():
    rng = np.random.default_rng(0)
    for s in ([3, 2, 1], [1, 1, 1], rng.integers(0, 3, 50)):
        assert kendall_tau_score(s, s, qid=np.zeros(len(s))) == 1
    assert kendall_tau_score([1, 1, 1], [3, 2, 1], qid=[0] * 3) == 1  # ties in row order
    assert kendall_tau_score([1, 1, 1], [1, 2, 3], qid=[0] * 3) == -1
    assert kendall_tau_score([3, 2, 1], [1, 2, 3], qid=[0] * 3) == -1
    assert kendall_tau_score([4, 3, 2, 1], [3, 4, 2, 1], qid=["a"] * 4) == pytest.approx(1 - 2 / 6, abs=1e-15)


def test_kendall_tau_leaves_out_queries_with_one_row():
    assert kendall_tau_score([1, 2, 5], [2, 1, 7], qid=[0, 0, 1]) == -1
    with pytest.warns(UndefinedMetricWarning, match="all of 2 queries"):
        assert np.isnan(kendall_tau_score([1, 2], [2, 1], qid=[0, 1]))


# CASES 1, 3: queries, however they are written down.

Y, S, QID = [0, 2, 1, 0, 1, 2], [0.1, 0.9, 0.8, 0.2, 0.5, 0.3], [2, 1, 2, 1, 1, 2]


@pytest.mark.parametrize("gain, value, of_query_2", [("exp2", 0.898354, 0.796708), ("linear", 0.929859, 0.859719)])
def test_interleaved_qid(gain, value, of_query_2):
    assert ndcg_score(Y, S, qid=QID, gain=gain) == pytest.approx(value, abs=1e-6)
    by_query = {q: np.flatnonzero(np.equal(QID, q)) for q in (1, 2)}
    of = {q: ndcg_score(np.take(Y, i), np.take(S, i), qid=i * 0, gain=gain) for q, i in by_query.items()}
    assert of == {1: pytest.approx(1), 2: pytest.approx(of_query_2, abs=1e-6)}


# CASES 10 and 11: one row, nothing relevant.


def test_one_row():
    assert ndcg_score([3], [0.2], qid=[0]) == 1
    assert stochastic_ndcg_score([3], [0.2], qid=[0], n_samples=5) == 1
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(ndcg_score([0], [0.2], qid=[0]))


@pytest.mark.parametrize("metric", [ndcg_score, stochastic_ndcg_score, individual_exposure_disparity])
def test_query_without_a_relevant_row_is_left_out_with_a_warning_or_replaced(metric):
    y, qid = [1, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]
    kw = {} if metric is ndcg_score else {"n_samples": "exact"}
    alone = metric(y[:3], y[:3], qid=qid[:3], **kw)
    with pytest.warns(UndefinedMetricWarning, match=r"1 of 2 queries.*replace_undefined_by") as caught:
        assert metric(y, y, qid=qid, **kw) == alone
    assert len(caught) == 1 and caught[0].filename == __file__
    for replacement in (0, 0.25, np.float32(1)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value = metric(y, y, qid=qid, replace_undefined_by=replacement, **kw)
        assert value == pytest.approx((alone + float(replacement)) / 2, abs=1e-15)
    with pytest.warns(UndefinedMetricWarning, match="2 of 2"):
        assert np.isnan(metric([0, 0, 0, 0, 0, 0], y, qid=qid, **kw))


# CASE 12: large and small labels.


@pytest.mark.parametrize("large", [30, 300, 1023, 1024, 2000, 100_000])
@pytest.mark.parametrize("small", [0, 1, 7])
def test_large_relevance_does_not_overflow(large, small):
    ratio = float(Fraction(2**small - 1, 2**large - 1))  # of the gains, in exact integers
    expected = (ratio + E[1]) / (1 + ratio * E[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ndcg_score([large, small], [0, 1], qid=[0, 0]) == pytest.approx(expected, rel=1e-12)
        assert stochastic_ndcg_score([large, small], [0, 900], qid=[0, 0], n_samples=9) == pytest.approx(expected)


def test_near_and_tiny_relevances_keep_their_digits():
    assert ndcg_score([50, 49], [0, 1], qid=[0, 0]) == pytest.approx((1 + 2 * E[1]) / (2 + E[1]), abs=1e-12)
    assert ndcg_score([50, 49], [0, 1], qid=[0, 0]) == pytest.approx(0.859719, abs=1e-6)
    assert ndcg_score([2e-12, 1e-12], [0, 1], qid=[0, 0]) == pytest.approx((1 + 2 * E[1]) / (2 + E[1]), rel=1e-9)


# CASE 13: a constant model.


@pytest.mark.parametrize("gain, value", [("exp2", 0.596443), ("linear", 0.690979)])
def test_constant_model_scores_the_mean_over_all_orders(gain, value):
    y = np.array([10, 0, 0, 1, 5])
    rng = np.random.default_rng(0)
    for order in (np.arange(5), np.arange(5)[::-1], rng.permutation(5), rng.permutation(5)):
        assert ndcg_score(y[order], np.ones(5), qid=[0] * 5, gain=gain) == pytest.approx(value, abs=1e-6)
    same = stochastic_ndcg_score(y, np.ones(5), qid=[0] * 5, gain=gain, n_samples="exact")
    assert same == pytest.approx(ndcg_score(y, np.ones(5), qid=[0] * 5, gain=gain), rel=1e-12)
    for y in ([1, 2], [2, 1]):
        assert ndcg_score(y, [0, 0], qid=[0, 0]) == pytest.approx(0.898354, abs=1e-6)


# CASES 14, 15: expectations.


@pytest.mark.parametrize(
    "y, s, gain, value",
    [
        ([1, 0], [LN3, 0], "exp2", 0.907732),
        ([2, 1, 0], np.log([4, 2, 1]), "exp2", 0.876718),
        ([2, 1, 0], np.log([4, 2, 1]), "linear", 0.895193),
    ],
)
def test_stochastic_ndcg_values(y, s, gain, value):
    qid, y = np.zeros(len(y)), np.asarray(y, float)
    assert stochastic_ndcg_score(y, s, qid=qid, gain=gain, n_samples="exact") == pytest.approx(value, abs=1e-6)
    sampled = stochastic_ndcg_score(y, s, qid=qid, gain=gain, n_samples=20_000, random_state=0)
    policy = policy_plackett_luce(np.asarray(s))
    second = sum(p * mean_ndcg(y, [(order, 1.0)], gain) ** 2 for order, p in policy)
    standard_error = np.sqrt((second - mean_ndcg(y, policy, gain) ** 2) / 20_000)
    assert abs(sampled - mean_ndcg(y, policy, gain)) < 4 * standard_error


@pytest.mark.parametrize("shift", [1e3, -1e3, 1e6])
def test_only_differences_of_scores_matter(shift):
    y, s, g, qid = np.array([2.0, 1, 1]), np.array([2.0, 1, 0]), np.array([1, 0, 0]), np.zeros(3)
    for name in set(METRICS) - set(DETERMINISTIC):
        value, shifted = (METRICS[name](Data(y, t, t, g, qid), n_samples="exact") for t in (s, s + shift))
        assert shifted == pytest.approx(value, rel=1e-9), name
    first = stochastic_ndcg_score([1, 0, 0], [1000, 999, 998], qid=qid, k=1, n_samples="exact")
    assert first == pytest.approx(np.exp(2) / (np.exp(2) + np.exp(1) + 1), rel=1e-12)
    far = stochastic_ndcg_score([0, 1, 2], [-1e5, 0, 1e5], qid=qid, n_samples=3)
    assert far == pytest.approx(1, abs=1e-15)  # one order is certain


# CASE 17: averaging and cut-off.


@pytest.mark.parametrize("metric", [ndcg_score, stochastic_ndcg_score])
def test_cut_off(metric):
    y, s, qid = [0, 0, 3], [3000, 2000, 1000], [0] * 3
    assert [metric(y, s, qid=qid, k=k) for k in (1, 2, 3, 10, None)] == pytest.approx([0, 0, 0.5, 0.5, 0.5], abs=1e-12)
    assert metric(y, s, qid=qid, k=np.int64(3)) == pytest.approx(0.5)
    for k in (0, -1, 2.5, 2.0, True, "2"):
        with pytest.raises(ValueError, match="k=" if k is True else "'k' parameter of NDCG"):
            metric(y, s, qid=qid, k=k)


def test_ideal_ranking_is_over_all_rows():
    """The best row is ranked last, below the cut-off, and still counts in the ideal."""
    assert ndcg_score([1, 3], [1, 0], qid=[0, 0], k=1, gain="linear") == pytest.approx(1 / 3)


# CASES 18 and 19: exposure.


def test_exposure_difference_values():
    s, g = [4, 3, 2, 1], list("AABB")
    expected = (E[0] + E[1] - E[2] - E[3]) / 2
    assert expected == pytest.approx(0.350127, abs=1e-6)
    assert group_exposure_difference(s, qid=[0] * 4, sensitive_features=g) == pytest.approx(expected, abs=1e-12)
    twice = group_exposure_difference(s * 2, qid=[0] * 4 + [1] * 4, sensitive_features=g * 2)
    assert twice == pytest.approx(expected, abs=1e-12)
    only_a = {"qid": [0] * 4 + [1] * 2, "sensitive_features": [*g, "A", "A"]}
    assert group_exposure_difference([*s, 2, 1], **only_a) == pytest.approx(expected, abs=1e-12)
    three = group_exposure_difference([5, 4, 3, 2, 1], qid=[0] * 5, sensitive_features=list("ABCAB"))
    assert three == pytest.approx((E[0] + E[3]) / 2 - E[2], abs=1e-12)
    assert three == pytest.approx(0.215338, abs=1e-6)
    assert group_exposure_difference([1, 1], qid=[0, 0], sensitive_features=["A", "B"]) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("n_samples", ["exact", 100_000])
@pytest.mark.parametrize(
    "s, g, value", [([4, 3, 2, 1], "AABB", 0.252668), ([1] * 4, "AABB", 0), ([LN3, 0], "AB", 0.907732 - 0.723197)]
)
def test_exposure_difference_under_plackett_luce(s, g, value, n_samples):
    kw = {"qid": [0] * len(s), "sensitive_features": list(g), "policy": "plackett-luce", "n_samples": n_samples}
    tolerance = 1.5e-6 if n_samples == "exact" else 0.005
    assert group_exposure_difference(s, random_state=0, **kw) == pytest.approx(value, abs=tolerance)


def test_exposure_difference_without_two_groups_anywhere_is_nan():
    with pytest.warns(UndefinedMetricWarning, match="all of 2 queries"):
        assert np.isnan(group_exposure_difference([1, 2, 3], qid=[0, 0, 1], sensitive_features=list("AAB")))


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), ("a", "b"), (False, True), (0.5, 1.5), ("10", "9")])
def test_merit_tie_puts_the_larger_label_first(labels):
    small, large = labels
    kw = {"qid": [0, 0], "n_samples": 1, "sensitive_features": [small, large]}
    assert group_exposure_disparity([2, 2], [1000, 0], **kw) == 0
    assert group_exposure_disparity([2, 2], [0, 1000], **kw) == pytest.approx((1 - E[1]) / 2)
    kw["sensitive_features"] = [large, small]
    assert group_exposure_disparity([2, 2], [1000, 0], **kw) == pytest.approx((1 - E[1]) / 2)


def test_disparity_is_zero_where_a_group_is_absent_or_without_merit():
    y, s, qid = [2, 2, 2, 0, 1, 1], [0, 1000, 9, 0, 0, 2], [0, 0, 1, 1, 2, 2]
    kw = {"qid": qid, "sensitive_features": [0, 1, 0, 1, 0, 0], "n_samples": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert group_exposure_disparity(y, s, **kw) == pytest.approx((1 - E[1]) / 2 / 3)
        assert group_exposure_disparity(y, s, replace_undefined_by=1.0, **kw) == pytest.approx((1 - E[1]) / 6 + 2 / 3)
    with pytest.warns(UndefinedMetricWarning, match="2 of 3"):
        assert group_exposure_disparity(y, s, replace_undefined_by=np.nan, **kw) == pytest.approx((1 - E[1]) / 2)


def test_disparity_that_no_query_defines_is_the_replacement_and_warns():
    for g in ([1, 1, 1, 1], [0, 0, 1, 1]):
        with pytest.warns(UndefinedMetricWarning, match="all of 2 queries.*measures nothing"):
            assert group_exposure_disparity([1, 1, 2, 1], [1, 2, 3, 4], qid=[0, 0, 1, 1], sensitive_features=g) == 0


def test_individual_disparity_values():
    kw = {"qid": [0, 0], "n_samples": "exact"}
    # Four pairs with equal merit, (0, 1) alone has a gap.
    assert individual_exposure_disparity([1, 1], [LN3, 0], **kw) == pytest.approx((1 - E[1]) / 2 / 4)
    # Three pairs: (0, 0), (1, 1), (0, 1); the row with more merit gets less of it per merit.
    assert individual_exposure_disparity([2, 1], [LN3, 0], **kw) == 0
    assert individual_exposure_disparity([1.1, 1], [1000, 0], **kw) == pytest.approx((1 / 1.1 - E[1]) / 3)
    assert individual_exposure_disparity([2, 0], [LN3, 0], **kw) == 0  # one row with merit
    # Exposure in proportion to merit, .75 + .25 E to .25 + .75 E, is fair in full.
    v = np.array([0.75 + 0.25 * E[1], 0.25 + 0.75 * E[1]])
    assert individual_exposure_disparity(v, [LN3, 0], **kw) == pytest.approx(0, abs=1e-12)


def test_individual_disparity_of_long_queries_is_the_sum_over_all_pairs():
    """Ties of merit, of exposure and of both; relevances that are not whole; rows without merit."""
    rng = np.random.default_rng(0)
    for n in (50, 255, 256, 257, 700):
        y = rng.choice([0.0, 0.3, 1.0, 1.0 / 3.0, 4.0, 1e-12, 1e6], n)
        s = np.round(rng.normal(size=n), 1)
        order = np.argsort(-s, kind="stable")
        sorted_exposure = 1 / np.log2(np.arange(n) + 2)
        exposure = np.empty(n)
        exposure[order] = sorted_exposure
        for score in np.unique(s):
            exposure[s == score] = exposure[s == score].mean()
        got = individual_exposure_disparity(y, s, qid=np.zeros(n), policy="deterministic")
        assert got == pytest.approx(individual_by_counting(y, exposure), rel=1e-11)


def test_individual_disparity_loses_no_digits_among_nearly_equal_rows():
    """Relevances 1 + k 2^-40 of n rows; of two rows with equal exposure the one with more merit gets less per merit."""
    n = 40
    v = np.mean(1 / np.log2(np.arange(n) + 2))
    y, s = 1 + np.arange(n) / 2**40, np.arange(n, dtype=float)  # more merit, more exposure: now i gains
    exposure = 1 / np.log2(np.arange(n)[::-1] + 2)
    assert individual_exposure_disparity(y, s * 0, qid=[0] * n, policy="deterministic") < 1e-13 * v
    got = individual_exposure_disparity(y, s, qid=[0] * n, policy="deterministic")
    assert got == pytest.approx(individual_by_counting(y, exposure), rel=1e-13)


# Merits that tie.


@pytest.mark.parametrize("kind", [float, np.float32, np.float16, Fraction])
def test_merits_that_tie_but_for_rounding_tie_in_every_order_of_the_rows(kind):
    """Both means are .2, and the larger label comes first; of three rows and one at the end, of exposures, in units of merit."""
    y = np.array(
        [
            kind(value) if kind is not Fraction else float(Fraction(round(10 * value), 10))
            for value in (0.1, 0.2, 0.3, 0.2)
        ]
    )
    s, g = np.array([4.0, 3, 2, 1]), np.array([0, 0, 0, 1])
    gap = (E[:3].mean() - E[3]) / 0.2
    for label, value in ((1, 0.0), (-1, gap)):  # the name of the group of one row
        for order in permutations(range(4)):
            rows = list(order)
            kw = {"qid": [0] * 4, "sensitive_features": np.where(g, label, 0)[rows], "policy": "deterministic"}
            # A float16 has three digits, in y and so in the value.
            got = group_exposure_disparity(y[rows], s[rows], **kw)
            assert got == pytest.approx(value, rel=2e-3 if kind is np.float16 else 1e-6)
            average = group_exposure_disparity(y[rows], s[rows], ties="average", **kw)
            assert average == pytest.approx(gap / 2, rel=2e-3 if kind is np.float16 else 1e-6)


@pytest.mark.parametrize("n", [10, 100, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_relevances_in_both_groups_tie(n, seed):
    """Whatever the order in which they are summed; and one part in a million more is no tie."""
    rng = np.random.default_rng(seed)
    own = rng.exponential(size=n) * 10.0 ** rng.integers(-3, 3, n)
    s, g = rng.normal(size=2 * n), np.repeat([0, 1], n)
    for factor, tied in ((1.0, True), (1 - 1e-6, False)):
        y = np.r_[own, rng.permutation(own) * factor]
        values = []
        for _ in range(4):
            rows = rng.permutation(2 * n)
            for labels in ([0, 1], [1, 0]):
                kw = {"qid": np.zeros(2 * n), "policy": "deterministic", "sensitive_features": np.take(labels, g[rows])}
                values.append(group_exposure_disparity(y[rows], s[rows], **kw))
        first, second = values[::2], values[1::2]
        assert np.ptp(first) <= 1e-12 * max(first) and np.ptp(second) <= 1e-12 * max(second)
        assert (abs(first[0] - second[0]) > 1e-9) == tied  # with a tie one of the two is zero


def test_whole_relevances_tie_exactly():
    """Means 1 + 1/n and 1 + 1/(n + 1) are no tie, however many rows there are."""
    for n in (10, 1000, 30_000):
        y, g = np.r_[np.full(n, 1.0), np.full(n + 1, 1.0)], np.r_[np.zeros(n), np.ones(n + 1)]
        y[0] = y[n] = 2.0
        s = np.r_[np.zeros(n), np.ones(n + 1)]  # the second group, of less merit, comes first: nothing counts
        kw = {"qid": np.zeros(2 * n + 1), "sensitive_features": g, "policy": "deterministic"}
        assert group_exposure_disparity(y, s, **kw) == 0
        assert group_exposure_disparity(y, -s, **kw) > 0


# Relevances so small that they have lost their digits.


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 2.3e-308, 1e-200])
def test_tiny_relevances_are_relevances(tiny):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for gain in ("exp2", "linear"):
            for metric, kw in ((ndcg_score, {}), (stochastic_ndcg_score, {"n_samples": 5, "random_state": 0})):
                assert metric([tiny, 0], [0, 1000], qid=[0, 0], gain=gain, **kw) == pytest.approx(E[1], rel=1e-12)
                values = [
                    metric(y, [1, 2, 3, 4], qid=[0, 0, 1, 1], gain=gain, **kw) for y in ([0, tiny, 0, 1], [0, 1, 0, 1])
                ]
                assert values[0] == pytest.approx(values[1], rel=1e-12)
        for y in ([tiny, tiny], [1, tiny], [tiny, 1], [tiny, 2 * tiny], [1e300, tiny]):
            for s in ([0, 1], [1, 0], [1, 1]):
                kw = {"qid": [0, 0], "policy": "deterministic"}
                for ties in ("larger_label", "average"):
                    assert 0 <= group_exposure_disparity(y, s, sensitive_features=[0, 1], ties=ties, **kw) < np.inf
                assert 0 <= individual_exposure_disparity(y, s, **kw) < np.inf


@pytest.mark.parametrize("large", [1e16, 1e154, 1.7e308])
def test_huge_relevances_overflow_nowhere(large):
    y = np.array([large, large, large, large / 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kw = {"qid": [0] * 4, "policy": "deterministic"}
        got = group_exposure_disparity(y, [4, 3, 2, 1], sensitive_features=[0, 0, 1, 1], **kw)
        expected = max(0, (E[0] + E[1]) / 2 - (E[2] + E[3]) / 2 / 0.75) / large
        assert got == pytest.approx(expected, rel=1e-9, abs=0)
        assert 0 <= individual_exposure_disparity(y, [4, 3, 2, 1], **kw) < 1


# Where every order is as good as any other.


@pytest.mark.parametrize("metric", [ndcg_score, stochastic_ndcg_score])
def test_ndcg_says_where_it_measures_nothing(metric):
    s = np.arange(6.0)
    for y, qid in (([1, 1, 2, 2, 2, 2], [0, 0, 1, 1, 1, 1]), ([3, 1, 2, 1, 2, 1], range(6))):
        with pytest.warns(UndefinedMetricWarning, match=r"measures nothing.*all relevances are equal") as caught:
            assert metric(y, s, qid=qid) == pytest.approx(1, abs=1e-12)
        assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metric([1, 1, 2, 2, 2, 1], s, qid=[0, 0, 1, 1, 1, 1]) < 1  # one query tells rankers apart
