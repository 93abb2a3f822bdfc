"""The Plackett-Luce policy: sampled ranks, log-probabilities, and the sampled policy gradients.

With E_i standard exponential, sorting log E_i - h_i upwards is the Gumbel trick, since -log E_i is a Gumbel variable; and
E_i exp(-h_i) has the same order without the logarithm. In short queries samples are drawn eight at a time, one in each lane
(see `lanes`); in long ones, and where scores are far apart, one by one. Both ways draw the same numbers.

Kernels come in parts: one makes room for all queries, the others do a query's work, where references need not be counted.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.lanes import (
    accumulate,
    count_before,
    padded,
    rank_and_share,
    sum_after,
    sum_before,
    weigh_from,
)
from skfairrank._kernels.noise import exponentials_of_lane, scaled_exponentials
from skfairrank._kernels.sorting import SMALL, stable_order
from skfairrank._kernels.vectors import LANES

# exp(-WIDE) is a normal number with room below it, so products and sums of such weights keep all their digits.
WIDE = 600.0
# No -log(u) is below exp(-LIFT), so that keys are positive also as logarithms.
LIFT = 64.0
# Up to how many items samples go in lanes: where only ranks are wanted, and where gradients are.
MOST_TO_RANK, MOST_TO_SUM = SMALL, 64
# Up to this size a single sample gains nothing from being drawn alone.
SHORT = 16


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
def _weights(h, lo, n, high, sign, weight):
    """exp(h - high), or with the sign -1 its reciprocal; nothing for what is no item."""
    for i in range(n):
        weight[i] = np.exp(sign * (h[lo + i] - high))
    weight[n:] = 0.0


@njit(counts=False)
def _in_every_lane(values, n, out):
    for i in range(n):
        for lane in range(LANES):
            out[i * LANES + lane] = values[i]


@njit(counts=False)
def _draw_lanes(key, query, group, n, inverse, keys):
    """Keys, to be sorted upwards, of samples 8 group to 8 group + 7 of a query; `inverse` is exp(-h), once for each lane."""
    half = padded(n) // 2 * LANES
    scaled_exponentials(key, query, group, half, inverse, keys)
    if n % 2:
        keys[n * LANES : 2 * half] = np.inf


@njit(counts=False)
def _draw_alone(key, query, sample, h, lo, n, high, wide, inverse, keys, order, rank):
    """Order and ranks of one sample."""
    half = padded(n) // 2
    room = (half + LANES - 1) // LANES * LANES  # whole vectors
    exponentials_of_lane(key, query, sample // LANES, sample % LANES, room, keys)
    for i in range(half, n):
        keys[i] = keys[room + i - half]
    if wide:
        for i in range(n):
            keys[i] = np.log(keys[i]) + (high - h[lo + i]) + LIFT
    else:
        for i in range(n):
            keys[i] *= inverse[i]
    counted = 0
    if n <= SMALL:
        for i in range(n):
            k, smaller = keys[i], 0
            for j in range(n):
                smaller += keys[j] < k
            rank[i] = smaller
            order[smaller] = i
            counted += smaller
    if n > SMALL or counted != n * (n - 1) // 2:  # long, or with ties
        stable_order(keys[:n], order, n)
        for j in range(n):
            rank[order[j]] = j


@njit
def _room_alone(widest):
    """Arrays for `_draw_alone`: exp(-h), keys, order and ranks."""
    return np.empty(widest), np.empty(widest + 2 * LANES), np.empty(widest, np.int64), np.empty(widest, np.int64)


# Ranks


@njit(counts=False)
def _ranks_of_query(q, lo, n, h, key, n_samples, inverse, line, order, rank, inverses, keys, ranks_in_lanes, ranks):
    low, high = _score_range(h, lo, lo + n)
    wide = high - low > WIDE
    in_lanes = n_samples - n_samples % LANES if n > SHORT and n_samples % LANES == 1 else n_samples
    if wide or n > MOST_TO_RANK:
        in_lanes = 0
    _weights(h, lo, n, high, -1.0, inverse)
    if in_lanes > 0:
        _in_every_lane(inverse, n, inverses)
    for s in range(0, in_lanes, LANES):
        _draw_lanes(key, q, s // LANES, n, inverses, keys)
        count_before(padded(n), keys, ranks_in_lanes)
        for lane in range(min(LANES, in_lanes - s)):
            for i in range(n):
                ranks[s + lane, lo + i] = ranks_in_lanes[i, lane] + 1
    for s in range(in_lanes, n_samples):
        _draw_alone(key, q, s, h, lo, n, high, wide, inverse, line, order, rank)
        for i in range(n):
            ranks[s, lo + i] = rank[i] + 1


@njit
def sample_ranks(first, last, h, offsets, key, n_samples, ranks):
    """Fill ranks[s, row] (1-based) for the queries first to last - 1."""
    widest = _widest(first, last, offsets)
    inverse, line, order, rank = _room_alone(widest)
    most = padded(min(widest, MOST_TO_RANK))
    inverses, keys, in_lanes = np.ones(most * LANES), np.empty(most * LANES), np.empty((most, LANES), np.int64)
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        _ranks_of_query(
            q, offsets[q], n, h, key, n_samples, inverse, line, order, rank, inverses, keys, in_lanes, ranks
        )


@njit(counts=False)
def _discounts_of_query(
    q, lo, n, h, key, n_samples, discount, inverse, line, order, rank, inverses, keys, ranks_in_lanes, out
):
    low, high = _score_range(h, lo, lo + n)
    wide = high - low > WIDE
    in_lanes = n_samples - n_samples % LANES if n > SHORT and n_samples % LANES == 1 else n_samples
    if wide or n > MOST_TO_RANK:
        in_lanes = 0
    _weights(h, lo, n, high, -1.0, inverse)
    if in_lanes > 0:
        _in_every_lane(inverse, n, inverses)
    for i in range(lo, lo + n):
        out[i] = 0.0
    for s in range(0, in_lanes, LANES):
        _draw_lanes(key, q, s // LANES, n, inverses, keys)
        count_before(padded(n), keys, ranks_in_lanes)
        real = min(LANES, in_lanes - s)
        for i in range(n):
            total = out[lo + i]
            for lane in range(real):
                total += discount[ranks_in_lanes[i, lane]]
            out[lo + i] = total
    for s in range(in_lanes, n_samples):
        _draw_alone(key, q, s, h, lo, n, high, wide, inverse, line, order, rank)
        for i in range(n):
            out[lo + i] += discount[rank[i]]
    for i in range(lo, lo + n):
        out[i] /= n_samples


@njit
def sampled_discounts(first, last, h, offsets, key, n_samples, discount, out):
    """Fill out[row] with the mean over samples of the discount of its rank."""
    widest = _widest(first, last, offsets)
    inverse, line, order, rank = _room_alone(widest)
    most = padded(min(widest, MOST_TO_RANK))
    inverses, keys, in_lanes = np.ones(most * LANES), np.empty(most * LANES), np.empty((most, LANES), np.int64)
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        _discounts_of_query(
            q, offsets[q], n, h, key, n_samples, discount, inverse, line, order, rank, inverses, keys, in_lanes, out
        )


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


# Gradients


@njit(counts=False)
def _is_settled(q, lo, n, h, gain, discount, gradient, utility):
    """Whether query q needs no samples, since all its rankings are worth the same, or must not go in lanes (utility NaN)."""
    flat, total = True, 0.0
    for i in range(n):
        flat = flat and gain[lo + i] == gain[lo]
        total += gain[lo + i] * discount[i]
    low, high = _score_range(h, lo, lo + n)
    if flat:  # the gradient is zero exactly, not up to rounding
        utility[q] = total
        for i in range(n):
            gradient[lo + i] = 0.0
        return True
    utility[q] = np.nan
    return n > MOST_TO_SUM or high - low > WIDE


@njit(counts=False)
def _reinforce_lanes(
    q,
    lo,
    n,
    h,
    high,
    gain,
    discount,
    key,
    n_samples,
    weight,
    inverse,
    inverses,
    keys,
    ranks,
    shares,
    values,
    chance,
    gradient,
):
    groups, m = (n_samples + LANES - 1) // LANES, padded(n)
    _weights(h, lo, n, high, 1.0, weight)
    _weights(h, lo, n, high, -1.0, inverse)
    _in_every_lane(inverse, n, inverses)
    # Groups one after the other in every part, not parts in every group: they do not wait for each other.
    for g in range(groups):
        _draw_lanes(key, q, g, n, inverses, keys[g])
    for g in range(groups):
        rank_and_share(m, keys[g], weight, ranks[g], shares[g])
    for g in range(groups):
        for lane in range(LANES):
            values[g, lane] = 0.0
        for i in range(n):
            for lane in range(LANES):
                values[g, lane] += gain[lo + i] * discount[ranks[g, i, lane]]
    reference, total = values[0, 0], 0.0
    for s in range(n_samples):
        total += values[s // LANES, s % LANES] - reference  # utilities of a query are close together
    mean = reference + total / n_samples
    for i in range(m):
        for lane in range(LANES):
            chance[i, lane] = 0.0
    for g in range(groups):
        for lane in range(LANES):
            values[g, lane] = mean - values[g, lane] if g * LANES + lane < n_samples else 0.0
        accumulate(m, keys[g], shares[g], values[g], chance)
    for i in range(n):
        total = 0.0
        for lane in range(LANES):
            total += chance[i, lane]
        gradient[lo + i] = weight[i] * total / n_samples
    return mean


@njit(counts=False)
def _reinforce_alone(
    q, lo, n, h, high, wide, gain, discount, key, n_samples, inverse, line, order, rank, tail, plain, weighted, gradient
):
    """Sample by sample; `wide`: set sums are logarithms."""
    _weights(h, lo, n, high, -1.0, inverse)
    for i in range(n):
        plain[i], weighted[i] = 0.0, 0.0
    reference, total = 0.0, 0.0
    for s in range(n_samples):
        _draw_alone(key, q, s, h, lo, n, high, wide, inverse, line, order, rank)
        value = 0.0
        for i in range(n):
            value += gain[lo + i] * discount[rank[i]]
        if s == 0:
            reference = value
        value -= reference
        total += value
        if wide:
            _log_tail_sums(h, lo, n, high, order, tail)
            for j in range(n):
                i = order[j]
                x, c = h[lo + i] - high, 0.0
                for t in range(j + 1):
                    c += np.exp(x - tail[t])
                plain[i] += c
                weighted[i] += value * c
        else:
            left = 0.0
            for j in range(n - 1, -1, -1):
                left += 1.0 / inverse[order[j]]
                tail[j] = left
            c = 0.0
            for j in range(n):
                c += 1.0 / tail[j]
                plain[order[j]] += c
                weighted[order[j]] += value * c
    mean = total / n_samples
    for i in range(n):
        change = (mean * plain[i] - weighted[i]) / n_samples
        gradient[lo + i] = change if wide else change / inverse[i]
    return reference + mean


@njit
def reinforce(first, last, h, offsets, gain, discount, key, n_samples, gradient, utility):
    """Gradient in the scores of the expected utility, estimated by REINFORCE; and each query's mean utility.

    gradient_i = 1/N sum_s (U_s - mean U) d log pi(r_s) / d h_i, with d log pi / d h_i = 1 - e_i sum_{j <= r(i)} 1 / Z_j
    and Z_j the sum of e = exp h over positions >= j. The ones cancel, since the baseline is the samples' own mean.

    Long queries, and those whose scores are far apart, are left to `reinforce_alone`, and get the utility NaN.
    """
    most, groups = padded(min(_widest(first, last, offsets), MOST_TO_SUM)), (n_samples + LANES - 1) // LANES
    weight, inverse, inverses, keys = (
        np.empty(most),
        np.empty(most),
        np.ones(most * LANES),
        np.empty((groups, most * LANES)),
    )
    ranks, shares = np.empty((groups, most, LANES), np.int64), np.empty((groups, most, LANES))
    values, chance = np.empty((groups, LANES)), np.empty((most, LANES))
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        if _is_settled(q, lo, n, h, gain, discount, gradient, utility):
            continue
        _, high = _score_range(h, lo, lo + n)
        utility[q] = _reinforce_lanes(
            q, lo, n, h, high, gain, discount, key, n_samples,
            weight, inverse, inverses, keys, ranks, shares, values, chance, gradient,
        )  # fmt: skip


@njit
def reinforce_alone(first, last, h, offsets, gain, discount, key, n_samples, gradient, utility):
    """`reinforce` for the queries that it has left out: their utility is NaN."""
    widest = _widest(first, last, offsets)
    inverse, line, order, rank = _room_alone(widest)
    tail, plain, weighted = np.empty(widest), np.empty(widest), np.empty(widest)
    for q in range(first, last):
        if np.isnan(utility[q]):
            lo, n = offsets[q], offsets[q + 1] - offsets[q]
            low, high = _score_range(h, lo, lo + n)
            utility[q] = _reinforce_alone(
                q, lo, n, h, high, high - low > WIDE, gain, discount, key, n_samples,
                inverse, line, order, rank, tail, plain, weighted, gradient,
            )  # fmt: skip


@njit(counts=False)
def _share_of_others(n_samples, mean):
    """What turns the difference to the mean of all samples into that to the mean of the others, over n_samples."""
    if n_samples > 1:
        return 1.0 / (n_samples - 1)
    mean[:] = 0.0  # a single sample has no others
    return 1.0


@njit(counts=False)
def _plrank_lanes(
    q, lo, n, h, high, gain, discount, key, n_samples, weight, heavy, mean, inverse, inverses,
    keys, ranks, shares, futures, reward, lost, expected, direct, indirect, gradient,
):  # fmt: skip
    groups, m = (n_samples + LANES - 1) // LANES, padded(n)
    _weights(h, lo, n, high, 1.0, weight)
    _weights(h, lo, n, high, -1.0, inverse)
    _in_every_lane(inverse, n, inverses)
    heavy[n:] = 0.0
    for i in range(n):
        heavy[i] = weight[i] * gain[lo + i]
        mean[i], gradient[lo + i] = 0.0, 0.0
    total = 0.0
    for g in range(groups):
        rank, real = ranks[g], min(LANES, n_samples - g * LANES)
        _draw_lanes(key, q, g, n, inverses, keys[g])
        rank_and_share(m, keys[g], weight, rank, shares[g])
        for i in range(n):
            for lane in range(LANES):
                reward[i, lane] = gain[lo + i] * discount[rank[i, lane]]
        reward[n:] = 0.0
        sum_after(m, keys[g], reward, futures[g])
        for i in range(n):
            for lane in range(real):
                mean[rank[i, lane]] += futures[g, i, lane] / n_samples
                total += reward[i, lane]
    others = _share_of_others(n_samples, mean)
    for g in range(groups):
        rank, share, future, real = ranks[g], shares[g], futures[g], min(LANES, n_samples - g * LANES)
        weigh_from(m, keys[g], heavy, expected)
        for i in range(n):
            for lane in range(LANES):
                r, s = rank[i, lane], share[i, lane]
                future[i, lane] -= mean[r]
                reward[i, lane] = future[i, lane] * s
                share[i, lane] = discount[r] * s
                expected[i, lane] = (expected[i, lane] * s) * share[i, lane]  # the first factor is m, within the gains
        sum_before(m, keys[g], reward, lost)
        sum_before(m, keys[g], share, direct)
        sum_before(m, keys[g], expected, indirect)
        for i in range(n):
            change = 0.0
            for lane in range(real):
                later = future[i, lane] - weight[i] * lost[i, lane]
                now = weight[i] * (gain[lo + i] * direct[i, lane] - indirect[i, lane])
                change += others * later + now / n_samples
            gradient[lo + i] += change
    return total / n_samples


@njit
def _plrank_alone(q, lo, n, h, high, wide, gain, discount, key, n_samples, gradient):
    """Sample by sample; `wide`: set sums are logarithms."""
    inverse, line, order, rank = _room_alone(n)
    expected, mean = np.empty(n), np.zeros(n + 1)
    orders, tails, futures = np.empty((n_samples, n), np.int64), np.empty((n_samples, n)), np.zeros((n_samples, n + 1))
    _weights(h, lo, n, high, -1.0, inverse)
    gradient[lo : lo + n] = 0.0
    for s in range(n_samples):
        _draw_alone(key, q, s, h, lo, n, high, wide, inverse, line, order, rank)
        orders[s] = order
        if wide:
            _log_tail_sums(h, lo, n, high, order, tails[s])
        else:  # reciprocals, which are used three times
            left = 0.0
            for j in range(n - 1, -1, -1):
                left += 1.0 / inverse[order[j]]
                tails[s, j] = 1.0 / left
        for j in range(n - 1, -1, -1):
            futures[s, j] = futures[s, j + 1] + gain[lo + order[j]] * discount[j]
            mean[j] += futures[s, j] / n_samples
    utility, others = mean[0], _share_of_others(n_samples, mean)
    for s in range(n_samples):
        order, tail, future = orders[s], tails[s], futures[s]
        rest = 0.0
        for j in range(n - 1, -1, -1):
            i = order[j]
            share = np.exp(h[lo + i] - high - tail[j]) if wide else tail[j] / inverse[i]
            rest = share * gain[lo + i] + (1.0 - share) * rest
            expected[j] = rest
        lost, direct, indirect = 0.0, 0.0, 0.0
        for j in range(n):
            i = order[j]
            later = future[j + 1] - mean[j + 1]
            if wide:
                x, now = h[lo + i] - high, 0.0
                for t in range(j + 1):
                    p = np.exp(x - tail[t])
                    later -= p * (future[t + 1] - mean[t + 1])
                    now += p * discount[t] * (gain[lo + i] - expected[t])
            else:
                lost += later * tail[j]
                direct += discount[j] * tail[j]
                indirect += discount[j] * expected[j] * tail[j]
                later -= lost / inverse[i]
                now = (gain[lo + i] * direct - indirect) / inverse[i]
            gradient[lo + i] += others * later + now / n_samples
    return utility


@njit
def plrank(first, last, h, offsets, gain, discount, key, n_samples, gradient, utility):
    """As `reinforce`, by PL-Rank-3 (Oosterhuis 2022) with a baseline: unbiased, of lower variance for two samples or more.

    With Z_j as above, F_j the reward collected at positions >= j, m_j the expected gain at position j given what is left, and r
    the rank of item i, PL-Rank is the mean over samples of

        F_{r+1} - e_i sum_{j <= r} F_{j+1} / Z_j  +  e_i sum_{j <= r} discount_j (gain_i - m_j) / Z_j

    once the reward of position j itself is taken in expectation. The first part is what a later choice brings in; from F_{j+1} we
    subtract its mean over the query's other samples, which leaves the expectation as it is.

    Long queries, and those whose scores are far apart, are left to `plrank_alone`, and get the utility NaN.
    """
    most, groups = padded(min(_widest(first, last, offsets), MOST_TO_SUM)), (n_samples + LANES - 1) // LANES
    weight, heavy, mean, inverse, inverses = (
        np.empty(most),
        np.empty(most),
        np.empty(most),
        np.empty(most),
        np.ones(most * LANES),
    )
    keys, ranks = np.empty((groups, most * LANES)), np.empty((groups, most, LANES), np.int64)
    shares, futures, reward = np.empty((groups, most, LANES)), np.empty((groups, most, LANES)), np.empty((most, LANES))
    lost, expected = np.empty((most, LANES)), np.zeros((most, LANES))
    direct, indirect = np.empty((most, LANES)), np.empty((most, LANES))
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        if _is_settled(q, lo, n, h, gain, discount, gradient, utility):
            continue
        _, high = _score_range(h, lo, lo + n)
        utility[q] = _plrank_lanes(
            q, lo, n, h, high, gain, discount, key, n_samples, weight, heavy, mean, inverse, inverses,
            keys, ranks, shares, futures, reward, lost, expected, direct, indirect, gradient,
        )  # fmt: skip


@njit
def plrank_alone(first, last, h, offsets, gain, discount, key, n_samples, gradient, utility):
    """`plrank` for the queries that it has left out: their utility is NaN."""
    for q in range(first, last):
        if np.isnan(utility[q]):
            lo, n = offsets[q], offsets[q + 1] - offsets[q]
            low, high = _score_range(h, lo, lo + n)
            wide = high - low > WIDE
            utility[q] = _plrank_alone(q, lo, n, h, high, wide, gain, discount, key, n_samples, gradient)
