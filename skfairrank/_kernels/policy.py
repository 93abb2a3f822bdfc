"""The Plackett-Luce policy: sampled ranks, log-probabilities, and the sampled policy gradients.

With E_i standard exponential, sorting log E_i - h_i upwards is the Gumbel trick, since -log E_i is a Gumbel variable; and
E_i exp(-h_i) has the same order without the logarithm. Samples are drawn eight at a time, one in each lane (see `lanes`).
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.lanes import (
    accumulate_before,
    alone,
    padded,
    rank_alone,
    rank_and_share,
    rank_lanes,
    sum_after,
    sum_before,
    weigh_from,
)
from skfairrank._kernels.noise import exponentials_of_lane, scaled_exponentials
from skfairrank._kernels.vectors import LANES

# exp(-WIDE) is a normal number with room below it, so products and sums of such weights keep all their digits.
WIDE = 600.0


@njit
def _widest(first, last, offsets):
    widest = 0
    for q in range(first, last):
        widest = max(widest, offsets[q + 1] - offsets[q])
    return widest


@njit(counts=False)
def _score_range(h, lo, hi):
    low, high = h[lo], h[lo]
    for i in range(lo + 1, hi):
        low, high = min(low, h[i]), max(high, h[i])
    return low, high


@njit(counts=False)
def _inverse_weights(h, lo, n, high, wide, inverse):
    """exp(high - h), once for each lane; ones where that would overflow."""
    for i in range(n):
        x = 1.0 if wide else np.exp(high - h[lo + i])
        for lane in range(LANES):
            inverse[i * LANES + lane] = x


@njit(counts=False)
def _weights(h, lo, n, high, weight):
    """exp(h - high); nothing for what is no item."""
    for i in range(n):
        weight[i] = np.exp(h[lo + i] - high)
    weight[n:] = 0.0


# No -log(u) is below exp(-LIFT), so that keys are positive also as logarithms.
LIFT = 64.0


@njit(counts=False)
def _draw_alone(key, query, group, lane, h, lo, n, high, wide, inverse, keys, order, rank):
    """Draw and rank one sample."""
    half = padded(n) // 2
    room = (half + LANES - 1) // LANES * LANES  # whole vectors
    exponentials_of_lane(key, query, group, lane, room, keys)
    for i in range(n):
        keys[i] = keys[i if i < half else room + i - half] * inverse[i * LANES]
    if wide:
        for i in range(n):
            keys[i] = np.log(keys[i]) + (high - h[lo + i]) + LIFT
    rank_alone(n, lane, keys, order, rank)


@njit(inline="always")
def _draw(key, query, group, real, h, lo, n, high, wide, inverse, keys, order, rank):
    """Draw `real` samples from number 8 group on: keys to be sorted upwards or, for samples alone, their ranks."""
    if alone(n, real):
        for lane in range(real):
            _draw_alone(key, query, group, lane, h, lo, n, high, wide, inverse, keys, order, rank)
    else:
        half = padded(n) // 2 * LANES
        scaled_exponentials(key, query, group, half, inverse, keys)
        if wide:
            for i in range(n):
                for lane in range(LANES):
                    keys[i * LANES + lane] = np.log(keys[i * LANES + lane]) + (high - h[lo + i]) + LIFT
        if n % 2:
            keys[n * LANES : 2 * half] = np.inf


# Kernels come in pairs: one makes room for all queries, the other does a query's work, where references need not be counted.


@njit(counts=False)
def _ranks_of_query(q, lo, n, h, key, n_samples, inverse, keys, order, rank, ranks):
    low, high = _score_range(h, lo, lo + n)
    wide = high - low > WIDE
    _inverse_weights(h, lo, n, high, wide, inverse)
    for s in range(0, n_samples, LANES):
        real = min(LANES, n_samples - s)
        _draw(key, q, s // LANES, real, h, lo, n, high, wide, inverse, keys, order, rank)
        rank_lanes(n, real, keys, rank)
        for lane in range(real):
            for i in range(n):
                ranks[s + lane, lo + i] = rank[i, lane] + 1


@njit
def sample_ranks(first, last, h, offsets, key, n_samples, ranks):
    """Fill ranks[s, row] (1-based) for the queries first to last - 1."""
    widest = padded(_widest(first, last, offsets))
    inverse, keys = np.ones(widest * LANES), np.empty(widest * LANES)
    order, rank = np.empty(widest * LANES, np.int64), np.empty((widest, LANES), np.int64)
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        _ranks_of_query(q, offsets[q], n, h, key, n_samples, inverse, keys, order, rank, ranks)


@njit(counts=False)
def _discounts_of_query(q, lo, n, h, key, n_samples, discount, inverse, keys, order, rank, out):
    low, high = _score_range(h, lo, lo + n)
    wide = high - low > WIDE
    _inverse_weights(h, lo, n, high, wide, inverse)
    for i in range(lo, lo + n):
        out[i] = 0.0
    for s in range(0, n_samples, LANES):
        real = min(LANES, n_samples - s)
        _draw(key, q, s // LANES, real, h, lo, n, high, wide, inverse, keys, order, rank)
        rank_lanes(n, real, keys, rank)
        for i in range(n):
            total = out[lo + i]
            for lane in range(real):
                total += discount[rank[i, lane]]
            out[lo + i] = total
    for i in range(lo, lo + n):
        out[i] /= n_samples


@njit
def sampled_discounts(first, last, h, offsets, key, n_samples, discount, out):
    """Fill out[row] with the mean over samples of the discount of its rank."""
    widest = padded(_widest(first, last, offsets))
    inverse, keys = np.ones(widest * LANES), np.empty(widest * LANES)
    order, rank = np.empty(widest * LANES, np.int64), np.empty((widest, LANES), np.int64)
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        _discounts_of_query(q, offsets[q], n, h, key, n_samples, discount, inverse, keys, order, rank, out)


@njit
def log_probability(first, last, h, offsets, ranks, out):
    """Fill out[s, q] with log pi(r|q) = sum_j h_(j) - logsumexp(h_(j), .., h_(n)); NaN where ranks are no permutation."""
    n_samples = ranks.shape[0]
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        order = np.empty(n, np.int64)
        for s in range(n_samples):
            order[:] = -1
            for i in range(n):
                r = ranks[s, lo + i] - 1
                if r < 0 or r >= n or order[r] >= 0:
                    out[s, q] = np.nan
                    break
                order[r] = i
            else:
                total, tail = 0.0, -np.inf
                for j in range(n - 1, -1, -1):
                    x = h[lo + order[j]]
                    top = max(tail, x)
                    tail = top + np.log1p(np.exp(-abs(tail - x))) if tail > -np.inf else x
                    total += x - tail
                out[s, q] = min(total, 0.0)


@njit(counts=False)
def _log_tail_sums(h, lo, n, high, order, tail):
    """tail[j] = log of the sum of exp(h - high) over positions >= j."""
    running = -np.inf
    for j in range(n - 1, -1, -1):
        x = h[lo + order[j]] - high
        top = max(running, x)
        running = x if running == -np.inf else top + np.log1p(np.exp(-abs(running - x)))
        tail[j] = running


@njit(counts=False)
def _nothing_to_gain(lo, n, gain, discount):
    """Whether all gains of a query are equal, and the utility that every ranking then has."""
    flat, total = True, 0.0
    for i in range(n):
        flat = flat and gain[lo + i] == gain[lo]
        total += gain[lo + i] * discount[i]
    return flat, total


@njit(counts=False)
def _utilities(lo, n, real, rank, gain, discount, value):
    """Fill value[lane] with the utility of a ranking."""
    value[:] = 0.0
    for i in range(n):
        g = gain[lo + i]
        for lane in range(real):
            value[lane] += g * discount[rank[i, lane]]


@njit
def _reinforce_wide(key, query, h, lo, n, high, gain, discount, n_samples, gradient):
    """`reinforce` for one query whose scores are so far apart that set sums must be logarithms; returns the mean utility."""
    tail, order = np.empty(n), np.empty(n, np.int64)
    ones, keys, value = np.ones(padded(n) * LANES), np.empty(padded(n) * LANES), np.empty(LANES)
    rank = np.empty((padded(n), LANES), np.int64)
    plain, weighted = np.zeros(n), np.zeros(n)
    reference, total = 0.0, 0.0
    for s in range(0, n_samples, LANES):
        real = min(LANES, n_samples - s)
        _draw(key, query, s // LANES, real, h, lo, n, high, True, ones, keys, order, rank)
        rank_lanes(n, real, keys, rank)
        _utilities(lo, n, real, rank, gain, discount, value)
        if s == 0:
            reference = value[0]
        for lane in range(real):
            for i in range(n):
                order[rank[i, lane]] = i
            v = value[lane] - reference
            total += v
            _log_tail_sums(h, lo, n, high, order, tail)
            for j in range(n):
                i = order[j]
                x, c = h[lo + i] - high, 0.0
                for t in range(j + 1):
                    c += np.exp(x - tail[t])
                plain[i] += c
                weighted[i] += v * c
    mean = total / n_samples
    for i in range(n):
        gradient[lo + i] = (mean * plain[i] - weighted[i]) / n_samples
    return reference + mean


@njit(counts=False)
def _reinforce_query(
    q, lo, n, h, high, gain, discount, key, n_samples,
    weight, inverse, keys, order, ranks, shares, values, chance, scratch, gradient,
):  # fmt: skip
    groups, m = (n_samples + LANES - 1) // LANES, padded(n)
    _weights(h, lo, n, high, weight)
    _inverse_weights(h, lo, n, high, False, inverse)
    # Groups one after the other in every part, not parts in every group: they do not wait for each other.
    for g in range(groups):
        real = min(LANES, n_samples - g * LANES)
        _draw(key, q, g, real, h, lo, n, high, False, inverse, keys[g], order, ranks[g])
    for g in range(groups):
        real = min(LANES, n_samples - g * LANES)
        rank_and_share(n, real, keys[g], weight, order, ranks[g], shares[g])
    for g in range(groups):
        real = min(LANES, n_samples - g * LANES)
        _utilities(lo, n, real, ranks[g], gain, discount, values[g])
    reference, total = values[0, 0], 0.0
    for s in range(n_samples):
        total += values[s // LANES, s % LANES] - reference  # utilities of a query are close together
    mean = reference + total / n_samples
    for i in range(m):
        for lane in range(LANES):
            chance[i, lane] = 0.0
    for g in range(groups):
        real = min(LANES, n_samples - g * LANES)
        for lane in range(LANES):
            values[g, lane] = mean - values[g, lane] if lane < real else 0.0
        accumulate_before(n, real, keys[g], ranks[g], shares[g], values[g], order, scratch, chance)
    for i in range(n):
        total = 0.0
        for lane in range(LANES):
            total += chance[i, lane]
        gradient[lo + i] = weight[i] * total / n_samples
    return mean


@njit
def reinforce(first, last, h, offsets, gain, discount, key, n_samples, gradient, utility):
    """Gradient in the scores of the expected utility, estimated by REINFORCE; and each query's mean utility.

    gradient_i = 1/N sum_s (U_s - mean U) d log pi(r_s) / d h_i, with d log pi / d h_i = 1 - e_i sum_{j <= r(i)} 1 / Z_j
    and Z_j the sum of e = exp h over positions >= j. The ones cancel, since the baseline is the samples' own mean.
    """
    widest, groups = padded(_widest(first, last, offsets)), (n_samples + LANES - 1) // LANES
    weight, order, inverse = np.empty(widest), np.empty(widest * LANES, np.int64), np.ones(widest * LANES)
    keys, ranks = np.empty((groups, widest * LANES)), np.empty((groups, widest, LANES), np.int64)
    shares, values = np.empty((groups, widest, LANES)), np.empty((groups, LANES))
    chance, scratch = np.empty((widest, LANES)), np.empty((widest, LANES))
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        no_choice, total = _nothing_to_gain(lo, n, gain, discount)
        if no_choice:  # the gradient is zero exactly, not up to rounding
            gradient[lo : lo + n] = 0.0
            utility[q] = total
            continue
        low, high = _score_range(h, lo, lo + n)
        if high - low > WIDE:
            utility[q] = _reinforce_wide(key, q, h, lo, n, high, gain, discount, n_samples, gradient)
        else:
            utility[q] = _reinforce_query(
                q, lo, n, h, high, gain, discount, key, n_samples,
                weight, inverse, keys, order, ranks, shares, values, chance, scratch, gradient,
            )  # fmt: skip


@njit
def _plrank_wide(key, query, h, lo, n, high, gain, discount, n_samples, gradient):
    """`plrank` for one query whose scores are so far apart that set sums must be logarithms; returns the mean utility."""
    ones, keys = np.ones(padded(n) * LANES), np.empty(padded(n) * LANES)
    rank = np.empty((padded(n), LANES), np.int64)
    scratch, expected, mean = np.empty(n, np.int64), np.empty(n), np.zeros(n + 1)
    order, tail, future = np.empty((n_samples, n), np.int64), np.empty((n_samples, n)), np.zeros((n_samples, n + 1))
    for s in range(n_samples):
        if s % LANES == 0:
            real = min(LANES, n_samples - s)
            _draw(key, query, s // LANES, real, h, lo, n, high, True, ones, keys, scratch, rank)
            rank_lanes(n, real, keys, rank)
        for i in range(n):
            order[s, rank[i, s % LANES]] = i
        _log_tail_sums(h, lo, n, high, order[s], tail[s])
        for j in range(n - 1, -1, -1):
            future[s, j] = future[s, j + 1] + gain[lo + order[s, j]] * discount[j]
            mean[j] += future[s, j] / n_samples
    utility, others = mean[0], _share_of_others(n_samples, mean)
    for s in range(n_samples):
        rest = 0.0
        for j in range(n - 1, -1, -1):
            i = order[s, j]
            share = np.exp(h[lo + i] - high - tail[s, j])
            rest = share * gain[lo + i] + (1.0 - share) * rest
            expected[j] = rest
        for j in range(n):
            i = order[s, j]
            x = h[lo + i] - high
            later = future[s, j + 1] - mean[j + 1]
            now = 0.0
            for t in range(j + 1):
                p = np.exp(x - tail[s, t])
                later -= p * (future[s, t + 1] - mean[t + 1])
                now += p * discount[t] * (gain[lo + i] - expected[t])
            gradient[lo + i] += others * later + now / n_samples
    return utility


@njit(counts=False)
def _share_of_others(n_samples, mean):
    """What turns the difference to the mean of all samples into that to the mean of the others, over n_samples."""
    if n_samples > 1:
        return 1.0 / (n_samples - 1)
    mean[:] = 0.0  # a single sample has no others
    return 1.0


@njit(counts=False)
def _plrank_query(
    q, lo, n, h, high, gain, discount, key, n_samples,
    weight, heavy, mean, inverse, keys, order, ranks, shares, futures, reward, lost, expected, direct, indirect, gradient,
):  # fmt: skip
    groups = (n_samples + LANES - 1) // LANES
    _weights(h, lo, n, high, weight)
    _inverse_weights(h, lo, n, high, False, inverse)
    heavy[n:] = 0.0
    for i in range(n):
        heavy[i] = weight[i] * gain[lo + i]
        mean[i] = 0.0
    total = 0.0
    for g in range(groups):
        rank, share, future, real = ranks[g], shares[g], futures[g], min(LANES, n_samples - g * LANES)
        _draw(key, q, g, real, h, lo, n, high, False, inverse, keys[g], order, rank)
        rank_and_share(n, real, keys[g], weight, order, rank, share)
        for i in range(n):
            for lane in range(real):
                reward[i, lane] = gain[lo + i] * discount[rank[i, lane]]
        reward[n:] = 0.0
        sum_after(n, real, keys[g], rank, reward, order, future)
        for i in range(n):
            for lane in range(real):
                mean[rank[i, lane]] += future[i, lane] / n_samples
                total += reward[i, lane]
    others = _share_of_others(n_samples, mean)
    for g in range(groups):
        rank, share, future, real = ranks[g], shares[g], futures[g], min(LANES, n_samples - g * LANES)
        weigh_from(n, real, keys[g], rank, heavy, order, expected)
        for i in range(n):
            for lane in range(real):
                r, s = rank[i, lane], share[i, lane]
                future[i, lane] -= mean[r]
                reward[i, lane] = future[i, lane] * s
                share[i, lane] = discount[r] * s
                expected[i, lane] = (expected[i, lane] * s) * share[i, lane]  # the first factor is m, within the gains
        sum_before(n, real, keys[g], rank, reward, order, lost)
        sum_before(n, real, keys[g], rank, share, order, direct)
        sum_before(n, real, keys[g], rank, expected, order, indirect)
        for i in range(n):
            change = 0.0
            for lane in range(real):
                later = future[i, lane] - weight[i] * lost[i, lane]
                now = weight[i] * (gain[lo + i] * direct[i, lane] - indirect[i, lane])
                change += others * later + now / n_samples
            gradient[lo + i] += change
    return total / n_samples


@njit
def plrank(first, last, h, offsets, gain, discount, key, n_samples, gradient, utility):
    """As `reinforce`, by PL-Rank-3 (Oosterhuis 2022) with a baseline: unbiased, of lower variance for two samples or more.

    With Z_j as above, F_j the reward collected at positions >= j, m_j the expected gain at position j given what is left, and r
    the rank of item i, PL-Rank is the mean over samples of

        F_{r+1} - e_i sum_{j <= r} F_{j+1} / Z_j  +  e_i sum_{j <= r} discount_j (gain_i - m_j) / Z_j

    once the reward of position j itself is taken in expectation. The first part is what a later choice brings in; from F_{j+1} we
    subtract its mean over the query's other samples, which leaves the expectation as it is.
    """
    widest, groups = padded(_widest(first, last, offsets)), (n_samples + LANES - 1) // LANES
    weight, heavy, mean, inverse = np.empty(widest), np.empty(widest), np.empty(widest), np.ones(widest * LANES)
    keys, order = np.empty((groups, widest * LANES)), np.empty(widest * LANES, np.int64)
    ranks, shares = np.empty((groups, widest, LANES), np.int64), np.empty((groups, widest, LANES))
    futures, reward, lost = np.empty((groups, widest, LANES)), np.empty((widest, LANES)), np.empty((widest, LANES))
    expected, direct, indirect = np.empty((widest, LANES)), np.empty((widest, LANES)), np.empty((widest, LANES))
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        gradient[lo : lo + n] = 0.0
        no_choice, total = _nothing_to_gain(lo, n, gain, discount)
        if no_choice:
            utility[q] = total
            continue
        low, high = _score_range(h, lo, lo + n)
        if high - low > WIDE:
            utility[q] = _plrank_wide(key, q, h, lo, n, high, gain, discount, n_samples, gradient)
        else:
            utility[q] = _plrank_query(
                q, lo, n, h, high, gain, discount, key, n_samples,
                weight, heavy, mean, inverse, keys, order, ranks, shares, futures, reward, lost, expected, direct, indirect,
                gradient,
            )  # fmt: skip
