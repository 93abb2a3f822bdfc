"""Rankings drawn from the Plackett-Luce policy, and the gradients of a query's expected utility that are estimated from them.

Let E_i be standard exponential. Sorting E_i exp(-h_i) upwards draws a ranking: -log E_i is a Gumbel variable, so this is the
Gumbel trick without the logarithm. Eight samples (`LANES`) are drawn and sorted side by side, as the columns of one table with
a row for each item or position. Loops over flat tables have no branches, so that LLVM treats the eight columns at once: plain
loops, one sample after the other, take several times as long.

The utility of a ranking is the sum over positions p of R_p discount_p gain_(p), where (p) is the item at p. R_p is the reach of
p, the share of users who get that far: the product of `continuation` over the items before p. Without `continuation` everybody
gets that far.

Z_p is the sum of e = exp h over the items at positions >= p. Where scores are WIDE apart it may overflow or vanish. There e and
all sums of it are kept relative to exp(top_p), where top_p is the largest score that is left at p. From one position to the
next this changes by the factor exp(top_p - top_{p-1}) <= 1, which is called `fall`. Elsewhere top is the query's largest score
at every position, and `fall` is 1.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from skfairrank._kernels import njit

LANES = 8
# Scores of a query that lie further apart than this are called WIDE apart, because their weights underflow. exp(-WIDE) itself
# is a normal number with room below it, so products of such weights with gains and reciprocals keep all their digits.
WIDE = 600.0
GAP = 800.0  # exp(-GAP) is zero
# No -log(u) is below exp(-LIFT). So keys are positive even as logarithms, and are ordered as their bits are.
LIFT = 64.0

MULTIPLIER_0, MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
LOW, HALF, LANE_COUNT = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(LANES)
LOG_2 = np.log(2.0)
HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)


# A scalar's `view` would go through memory, and its loop would not be vectorised.
@intrinsic
def float_of(_, bits):
    """The double with these bits."""
    return types.float64(types.uint64), lambda _, builder, __, values: builder.bitcast(values[0], ir.DoubleType())


@intrinsic
def bits_of(_, x):
    """The bits of a double, as a signed integer."""
    return types.int64(types.float64), lambda _, builder, __, values: builder.bitcast(values[0], ir.IntType(64))


class by_spread:
    """A kernel in two compiled versions: for usual queries, and for those whose scores lie WIDE apart, which are rare.

    The second is compiled when the first such query comes. The function's last argument `wide` is None or True: numba drops
    the branches that do not belong to a version. A version says whether it has left queries out.
    """

    def __init__(self, function):
        self.kernel = njit(function)

    def __call__(self, *arguments):
        if self.kernel(*arguments, None):
            self.kernel(*arguments, True)


# What kernels ask of a query.


@njit(inner=True, inline="always")
def widest(first, last, offsets):
    """Number of items of the largest of the queries first to last - 1."""
    most = 0
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        if n > most:
            most = n
    return most


@njit(inner=True, inline="always")
def score_range(h, lo, hi):
    low, high = h[lo], h[lo]
    for i in range(lo + 1, hi):
        if h[i] < low:
            low = h[i]
        if h[i] > high:
            high = h[i]
    return low, high


@njit(inner=True, inline="always")
def close_gaps(h, lo, n, gap, out):
    """Scores of the same policy as h[lo : lo + n]. The largest is 0, and none lies further than `gap` below the one before it.

    Between scores that lie far apart, differences would be rounded away, and with them the noise and the shares of equal scores.
    Such queries are rare, so this is Shell's sort, which takes little time to compile.
    """
    order, step = np.empty(n, np.int64), n // 2
    for i in range(n):
        order[i] = i
    while step > 0:
        for i in range(step, n):
            moved, j = order[i], i
            while j >= step and h[lo + order[j - step]] > h[lo + moved]:
                order[j] = order[j - step]
                j -= step
            order[j] = moved
        step //= 2
    out[order[n - 1]] = 0.0
    for j in range(n - 2, -1, -1):
        out[order[j]] = out[order[j + 1]] - min(h[lo + order[j + 1]] - h[lo + order[j]], gap)


@njit(inner=True, inline="always")
def all_have_one_utility(lo, n, gain, continuation, discount):
    """Whether all rankings of a query have the same utility, because its items are alike; and that of the given ranking.

    Items are alike where they have the same gain and the same continuation. `continuation` may have length 0: then everybody goes
    on. Where no item has any gain, it does not matter who goes on.
    """
    same, total, reach = True, 0.0, 1.0
    for i in range(n):
        same = same and gain[lo + i] == gain[lo]
        total += reach * gain[lo + i] * discount[i]
        if len(continuation):
            reach *= continuation[lo + i]
            same = same and (gain[lo] == 0.0 or continuation[lo + i] == continuation[lo])
    return same, total


# Noise: Philox 4x32-10, the counter-based generator of Salmon et al. (2011). A number is a function of a key, which a
# `numpy.random.Generator` draws once, and of the query, sample and item for which it is used. So results cannot depend on the
# order of the work.


@njit(inner=True)
def exponential(bits):
    """-log(u) with u = (k + 1/2) / 2^52 in (0, 1), where k is the upper 52 of 64 random bits; to two units in the last place.

    The logarithm of u = 2^e m with m in [sqrt(1/2), sqrt(2)) is e log 2 + 2 atanh(s) with s = (m - 1) / (m + 1). atanh(s) is its
    series. The terms beyond s are replaced by one polynomial in s^2, the Chebyshev interpolation on the range of s^2. The C
    library's logarithm would not be vectorised: with it a training step of 20 items and 32 samples takes half as long again.
    """
    one_to_two = float_of((bits >> np.uint64(12)) | np.uint64(0x3FF0000000000000))
    x = bits_of(one_to_two - (1.0 - 2.0**-53))
    e = (x - HALF_ROOT) >> 52
    m = float_of(np.uint64(x - (e << 52)))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    tail = 0.09091479503221858 + z * (0.07664788870727461 + z * 0.07320498526019009)
    tail = 0.19999999999940618 + z * (0.14285714316559497 + z * (0.11111105043648083 + z * tail))
    tail = 0.33333333333333354 + z * tail
    return -(e * LOG_2) - (2.0 * s + 2.0 * s * z * tail)


@njit(inner=True, inline="always")
def exponentials(key, query, block, n, out):
    """Fill `out` with standard exponential variables for eight samples of n items, and of one item more if n is odd.

    The number of item i and sample block * LANES + s is written to ``out[i * LANES + s]``. The counter (b * LANES + s, block,
    query, 0) gives two numbers, one for item b and one for item b + ceil(n / 2).
    """
    block_word, query_word = np.uint64(block), np.uint64(query)
    # Indices are unsigned. A signed one may count from the end, and then the loop would not be vectorised.
    half = np.uint64((n + n % 2) // 2 * LANES)
    for b in range(half):
        i = np.uint64(b)
        w0, w1, w2, w3, key_0, key_1 = i, block_word, query_word, np.uint64(0), key & LOW, key >> HALF
        for _ in range(10):
            p, q = MULTIPLIER_0 * (w0 & LOW), MULTIPLIER_1 * (w2 & LOW)
            w0, w1, w2, w3 = (q >> HALF) ^ w1 ^ key_0, q, (p >> HALF) ^ w3 ^ key_1, p  # only the lower halves count
            key_0, key_1 = key_0 + WEYL_0, key_1 + WEYL_1
        out[i] = exponential((w1 << HALF) | (w0 & LOW))
        out[i + half] = exponential((w3 << HALF) | (w2 & LOW))


# Samples.


@njit(inner=True, inline="always")
def start(wide, h, lo, n, score, weight, inverse):
    """Get ready to sample the query whose n rows begin at `lo`, and return whether it belongs to this version of the kernel.

    Fills in the scores minus the largest, exp(score) and exp(-score). Where scores are WIDE apart, gaps are closed
    (`close_gaps`), and only the scores are filled in.
    """
    low, high = score_range(h, lo, lo + n)
    if (high - low <= WIDE) != (wide is None):
        return False
    if wide is not None:
        close_gaps(h, lo, n, GAP, score)
    else:
        for i in range(n):
            score[i] = h[lo + i] - high
            inverse[i] = math.exp(high - h[lo + i])
            weight[i] = 1.0 / inverse[i]
    return True


@njit(inner=True, inline="always")
def draw(key, query, sample, n, wide, score, inverse, keys, order):
    """Draw eight samples of a query: ``order[p * LANES + s]`` is the item at position p.

    An item's number takes the place of its key's last bits and is sorted with them, upwards. The sorting network is Batcher's
    merge exchange (Knuth, volume 3, algorithm 5.2.2M). It exchanges NaN like any number and loses none.

    Parameters
    ----------
    key : uint64
    query : int64
        The number of the query, on which its noise depends.
    sample : int64
        The first sample, a multiple of `LANES`.
    n : int64
    wide : None or True
    score, inverse
        What `start` has filled in.
    keys : ndarray of float64, shape (>= (n + 1) * LANES,)
        Space to sort in. One item more, since noise is drawn for an even number of items.
    order : ndarray of int64, shape (>= n * LANES,)
        Filled in.
    """
    items = 1
    while items < n:
        items *= 2
    mask = np.uint64(-items)
    exponentials(key, query, sample // LANES, n, keys)
    if wide is not None:
        for x in range(n * LANES):
            lifted = math.log(keys[x]) - score[x // LANES] + LIFT
            keys[x] = float_of((np.uint64(bits_of(lifted)) & mask) | np.uint64(x // LANES))
    else:
        for i in range(n):
            factor, number = inverse[i], np.uint64(i)
            for s in range(LANES):
                keys[i * LANES + s] = float_of((np.uint64(bits_of(keys[i * LANES + s] * factor)) & mask) | number)
    top = items // 2
    p = top
    while p > 0:
        q, r, d = top, 0, p
        while True:
            for i in range(n - d):
                if i & p == r:
                    for s in range(LANES):
                        a, b = keys[i * LANES + s], keys[(i + d) * LANES + s]
                        keys[i * LANES + s] = a if a < b else b
                        keys[(i + d) * LANES + s] = b if a < b else a
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    for x in range(n * LANES):
        order[x] = bits_of(keys[x]) & (items - 1)


@by_spread
def sample_ranks(first, last, h, offsets, key, n_samples, ranks, wide):
    """Fill ranks[s, row] (1-based) for the queries first to last - 1."""
    most = widest(first, last, offsets)
    score, weight, inverse, keys = np.empty(most), np.empty(most), np.empty(most), np.empty((most + 1) * LANES)
    order = np.empty(most * LANES, np.int64)
    left_out = False
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        if not start(wide, h, lo, n, score, weight, inverse):
            left_out = True
            continue
        for sample in range(0, n_samples, LANES):
            draw(key, q, sample, n, wide, score, inverse, keys, order)
            for s in range(min(LANES, n_samples - sample)):
                for p in range(n):
                    ranks[sample + s, lo + order[p * LANES + s]] = p + 1
    return left_out


@by_spread
def sampled_discounts(first, last, h, offsets, key, n_samples, discount, out, wide):
    """Fill out[row] with the mean over samples of the discount of its rank."""
    most = widest(first, last, offsets)
    score, weight, inverse, keys = np.empty(most), np.empty(most), np.empty(most), np.empty((most + 1) * LANES)
    order = np.empty(most * LANES, np.int64)
    left_out = False
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        if not start(wide, h, lo, n, score, weight, inverse):
            left_out = True
            continue
        for i in range(lo, lo + n):
            out[i] = 0.0
        for sample in range(0, n_samples, LANES):
            draw(key, q, sample, n, wide, score, inverse, keys, order)
            n_real = min(LANES, n_samples - sample)
            for p in range(n):
                for s in range(n_real):
                    out[lo + order[p * LANES + s]] += discount[p]
        for i in range(lo, lo + n):
            out[i] /= n_samples
    return left_out


@njit
def log_probability(first, last, h, offsets, ranks, out):
    """Fill out[s, q] with log pi(r|q) = sum_j h_(j) - logsumexp(h_(j), .., h_(n)). The ranks must be permutations."""
    order = np.empty(widest(first, last, offsets), np.int64)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        for s in range(len(ranks)):
            for i in range(n):
                order[ranks[s, lo + i] - 1] = i
            # The sum of exp h is exp(top) times exp(rest). The two are kept apart, because beside a large top, rest would be
            # rounded away.
            total, top, rest = 0.0, h[lo + order[n - 1]], 0.0
            for j in range(n - 2, -1, -1):
                x = h[lo + order[j]]
                if x > top:
                    top, rest = x, math.log1p(math.exp(rest + (top - x)))
                else:
                    rest += math.log1p(math.exp((x - top) - rest))
                total += (x - top) - rest
            out[s, q] = min(total, 0.0)


# Gradients.


@njit(inner=True, inline="always")
def _look_up_utility(lo, n, gain, continuation, order, gains, reach):
    """Fill in the gain of the item at each position, and the position's R."""
    for x in range(n * LANES):
        gains[x] = gain[lo + order[x]]
    if len(continuation):
        for x in range(n * LANES):
            reach[x + LANES] = reach[x] * continuation[lo + order[x]]


@njit(inner=True, inline="always")
def _look_up_weights(n, wide, score, weight, order, weights, fall, share):
    """Fill in e of the item at each position, relative to the largest one left, fall, and 1 / Z."""
    if wide is not None:
        for s in range(LANES):
            top = -np.inf
            for x in range((n - 1) * LANES + s, -1, -LANES):
                higher = max(top, score[order[x]])
                weights[x], fall[x + LANES] = math.exp(score[order[x]] - higher), math.exp(top - higher)
                top = higher
    else:
        for x in range(n * LANES):
            weights[x], fall[x + LANES] = weight[order[x]], 1.0
    _sum_upwards(n, weights, fall, share)
    for x in range(n * LANES):
        share[x] = 1.0 / share[x]


@njit(inner=True)
def _sum_upwards(n, values, fall, sums):
    """Fill in sums over an item and all after it."""
    for x in range((n - 1) * LANES, n * LANES):
        sums[x] = values[x]
    for p in range(n - 2, -1, -1):
        for x in range(p * LANES, (p + 1) * LANES):
            sums[x] = values[x] + sums[x + LANES] * fall[x + LANES]


@njit(inner=True, inline="always")
def _sum_downwards(n, values, fall):
    """Turn values into sums over an item and all before it."""
    for x in range(LANES, n * LANES):
        values[x] += values[x - LANES] * fall[x]


@by_spread
def reinforce(first, last, h, offsets, gain, continuation, discount, given, key, n_samples, gradient, utility, wide):
    """Fill in the gradient of the expected utility in the scores, estimated by REINFORCE, and each query's mean utility.

    gradient_i = 1/N sum_s (U_s - mean U) d log pi(r_s) / d h_i, with d log pi / d h_i = 1 - e_i sum_{p <= r(i)} 1 / Z_p. The ones
    cancel, because the baseline is the mean of the same samples.

    Parameters
    ----------
    first, last : int64
        Queries first to last - 1 are treated.
    h, gain : ndarray of float64, shape (n_rows,)
    offsets : ndarray of int64, shape (n_queries + 1,)
    continuation : ndarray of float64, shape (n_rows,) or (0,)
        Of length 0 where everybody goes on, that is for a position-based utility.
    discount : ndarray of float64, shape (>= largest query size,)
    given : ndarray of float64, shape (n_samples, n_queries) or (0, 0)
        Utilities of the rankings that `sample_ranks` draws with the same key, in place of those that the tables say.
    key : uint64
    n_samples : int64
    gradient : ndarray of float64, shape (n_rows,)
        Filled in.
    utility : ndarray of float64, shape (n_queries,)
        Filled in.
    """
    most = widest(first, last, offsets)
    room, order = np.empty((12, (most + 1) * LANES)), np.empty(most * LANES, np.int64)
    score, weight, inverse, keys, gains, reach = room[0], room[1], room[2], room[3], room[4], room[5]
    weights, fall, share, utilities, plain, weighted = room[6], room[7], room[8], room[9], room[10], room[11]
    for x in range((most + 1) * LANES):
        reach[x] = 1.0
    left_out = False
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        if not start(wide, h, lo, n, score, weight, inverse):
            left_out = True
            continue
        same, utility[q] = all_have_one_utility(lo, n, gain, continuation, discount)
        if same and not len(given):  # the gradient is zero exactly, not up to rounding
            for i in range(n):
                gradient[lo + i] = 0.0
            continue
        for x in range(n * LANES):
            plain[x], weighted[x] = 0.0, 0.0
        reference, total = 0.0, 0.0
        for sample in range(0, n_samples, LANES):
            n_real = min(LANES, n_samples - sample)
            draw(key, q, sample, n, wide, score, inverse, keys, order)
            _look_up_weights(n, wide, score, weight, order, weights, fall, share)
            if len(given):
                for s in range(n_real):
                    utilities[s] = given[sample + s, q]
            else:
                _look_up_utility(lo, n, gain, continuation, order, gains, reach)
                for s in range(LANES):
                    utilities[s] = 0.0
                for p in range(n):
                    for s in range(LANES):
                        x = p * LANES + s
                        utilities[s] += reach[x] * gains[x] * discount[p]
            # A query's rankings have about the same utility, so only their differences are summed. Where there are none, the
            # sum is zero exactly.
            if sample == 0:
                reference = utilities[0]
            for s in range(n_real):
                utilities[s] -= reference
                total += utilities[s]
            # By item and sample, e_i sum_{p <= r(i)} 1 / Z_p, and that times the ranking's utility.
            _sum_downwards(n, share, fall)
            for p in range(n):
                for s in range(n_real):
                    x = p * LANES + s
                    chance = share[x] * weights[x]
                    plain[order[x] * LANES + s] += chance
                    weighted[order[x] * LANES + s] += utilities[s] * chance
        mean = total / n_samples
        for i in range(n):
            all_plain, all_weighted = 0.0, 0.0
            for x in range(i * LANES, (i + 1) * LANES):
                all_plain += plain[x]
                all_weighted += weighted[x]
            gradient[lo + i] = (mean * all_plain - all_weighted) / n_samples
        utility[q] = reference + mean
    return left_out


@by_spread
def plrank(first, last, h, offsets, gain, continuation, discount, key, n_samples, gradient, utility, wide):
    """As `reinforce`, by PL-Rank-3 (Oosterhuis 2022) with a baseline: unbiased, of lower variance for two samples or more.

    Let F_p be the reward collected at positions >= p, m_p the expected gain at position p given what is left there, and r the
    rank of item i. The reward of position p itself is taken in expectation. PL-Rank is then the mean over samples of

        F_{r+1} - e_i sum_{p <= r} F_{p+1} / Z_p  +  e_i sum_{p <= r} R_p discount_p (gain_i - m_p) / Z_p.

    The first part is what comes later, and with it what the choice at p lets go on. The baseline: from F_{p+1} we subtract R_p
    times its mean over the query's other samples. R_p is known before the choice at p, and the other samples are independent of
    this one, so the expectation stays as it is.
    """
    most, n_blocks = widest(first, last, offsets), (n_samples + LANES - 1) // LANES
    score, weight, inverse, keys = np.empty(most), np.empty(most), np.empty(most), np.empty((most + 1) * LANES)
    gains, reach, weights = np.empty(most * LANES), np.ones((most + 1) * LANES), np.empty(most * LANES)
    fall, share = np.empty((most + 1) * LANES), np.empty((most + 1) * LANES)
    orders, futures = np.empty((n_blocks, most * LANES), np.int64), np.empty((n_blocks, (most + 1) * LANES))
    future_sum, others = np.empty(most + 1), 1.0 / max(n_samples - 1, 1)
    now, earlier = np.empty(most * LANES), np.empty(most * LANES)
    left_out = False
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        if not start(wide, h, lo, n, score, weight, inverse):
            left_out = True
            continue
        same, utility[q] = all_have_one_utility(lo, n, gain, continuation, discount)
        gradient[lo : lo + n] = 0.0
        if same:
            continue
        future_sum[: n + 1] = 0.0
        for b in range(n_blocks):
            draw(key, q, b * LANES, n, wide, score, inverse, keys, orders[b])
            _look_up_utility(lo, n, gain, continuation, orders[b], gains, reach)
            futures[b, n * LANES : (n + 1) * LANES] = 0.0
            for p in range(n - 1, -1, -1):  # F of eight rankings, and its sum over samples
                for x in range(p * LANES, (p + 1) * LANES):
                    futures[b, x] = futures[b, x + LANES] + reach[x] * gains[x] * discount[p]
                for s in range(min(LANES, n_samples - b * LANES)):
                    future_sum[p] += futures[b, p * LANES + s]
        utility[q] = future_sum[0] / n_samples
        for b in range(n_blocks):
            order, future = orders[b], futures[b]
            _look_up_utility(lo, n, gain, continuation, order, gains, reach)
            _look_up_weights(n, wide, score, weight, order, weights, fall, share)
            for p in range(n if n_samples > 1 else 0):  # subtract the baseline
                for x in range(p * LANES, (p + 1) * LANES):
                    future[x + LANES] -= reach[x] * ((future_sum[p + 1] - future[x + LANES]) * others)
            # Sums over the positions up to p: `now` of R discount / Z, `earlier` of (F_{p+1} + R discount m) / Z.
            for x in range(n * LANES):
                now[x] = weights[x] * gains[x]
            _sum_upwards(n, now, fall, earlier)
            for p in range(n):
                for x in range(p * LANES, (p + 1) * LANES):
                    now[x] = reach[x] * discount[p] * share[x]
                    earlier[x] = future[x + LANES] * share[x] + (earlier[x] * share[x]) * now[x]
            _sum_downwards(n, now, fall)
            _sum_downwards(n, earlier, fall)
            for p in range(n):
                for s in range(min(LANES, n_samples - b * LANES)):
                    x = p * LANES + s
                    choices = weights[x] * (gains[x] * now[x] - earlier[x])
                    gradient[lo + order[x]] += future[x + LANES] + choices
        for i in range(lo, lo + n):
            gradient[i] /= n_samples
    return left_out


# Rough times on one thread, in nanoseconds.


def sampling_work(n_rows, n_queries, n_samples):
    """Of `sample_ranks` and `sampled_discounts`."""
    return float(n_rows * n_samples) * (5.0 + 0.02 * n_rows / n_queries)


def gradient_work(n_rows, n_queries, n_samples):
    """Of `reinforce` and `plrank`."""
    return float(n_rows * n_samples) * (8.0 + 0.02 * n_rows / n_queries)
