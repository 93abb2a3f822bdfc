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
from skfairrank._kernels.ragged import WIDE, is_worth_the_same, score_range, widest
from skfairrank._kernels.sorting import SMALL, close_gaps, stable_order
from skfairrank._kernels.vectors import LANES, float_of

__all__ = ["log_probability", "plrank", "reinforce", "sample_ranks", "sampled_discounts"]

# The bits of the last key of all, as a signed integer: what is no item comes after every item, even after keys that are NaN.
LAST = np.uint64(0x7FFFFFFFFFFFFFFF)
# No -log(u) is below exp(-LIFT), so that keys are positive also as logarithms.
LIFT = 64.0
# Up to how many items samples go in lanes.
RANKS_IN_LANES, GRADIENTS_IN_LANES = SMALL, 64
# Up to this size a single sample gains nothing from being drawn alone.
SHORT = 16


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
        for k in range(n * LANES, 2 * half):
            keys[k] = float_of(LAST)


@njit(counts=False)
def _draw_alone(key, query, sample, n, wide, s, inverse, keys, order, rank):
    """Order and ranks of one sample; s holds the scores less the largest, and `inverse` is exp(-s) unless `wide`."""
    half = padded(n) // 2
    room = (half + LANES - 1) // LANES * LANES  # whole vectors
    exponentials_of_lane(key, query, sample // LANES, sample % LANES, room, keys)
    for i in range(half, n):
        keys[i] = keys[room + i - half]
    for i in range(n):
        keys[i] = np.log(keys[i]) - s[i] + LIFT if wide else keys[i] * inverse[i]
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
def _room_alone(most):
    """Arrays for `_load_alone` and `_draw_alone`: scores, their exp(-s), keys, order and ranks."""
    return (
        np.empty(most),
        np.empty(most),
        np.empty(most + 2 * LANES),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )


@njit
def _load_alone(h, lo, n, s, inverse):
    """Fill in a query's scores less the largest, and exp(-s); returns whether they are WIDE apart."""
    low, high = score_range(h, lo, lo + n)
    wide = not high - low <= WIDE
    if wide:
        close_gaps(h, lo, n, s)
    else:
        for i in range(n):
            s[i] = h[lo + i] - high
            inverse[i] = np.exp(high - h[lo + i])
    return wide


@njit
def _room_in_lanes(most):
    """Arrays for `_draw_lanes` and ranks: exp(-h) in every lane, keys, ranks."""
    most = padded(min(most, RANKS_IN_LANES))
    return np.ones(most * LANES), np.empty(most * LANES), np.empty((most, LANES), np.int64)


@njit(counts=False)
def _number_in_lanes(n, n_samples, wide):
    """How many of the samples of a query go in lanes where only ranks are wanted."""
    if wide or n > RANKS_IN_LANES:
        return 0
    return n_samples - 1 if n > SHORT and n_samples % LANES == 1 else n_samples


# Ranks


@njit(counts=False)
def _ranks_of_query(q, lo, n, key, n_samples, wide, alone, in_lanes, ranks):
    s, inverse, line, order, rank = alone
    inverses, keys, ranks_in_lanes = in_lanes
    n_in_lanes = _number_in_lanes(n, n_samples, wide)
    if n_in_lanes > 0:
        _in_every_lane(inverse, n, inverses)
    for first in range(0, n_in_lanes, LANES):
        _draw_lanes(key, q, first // LANES, n, inverses, keys)
        count_before(padded(n), keys, ranks_in_lanes)
        for lane in range(min(LANES, n_in_lanes - first)):
            for i in range(n):
                ranks[first + lane, lo + i] = ranks_in_lanes[i, lane] + 1
    for sample in range(n_in_lanes, n_samples):
        _draw_alone(key, q, sample, n, wide, s, inverse, line, order, rank)
        for i in range(n):
            ranks[sample, lo + i] = rank[i] + 1


@njit
def sample_ranks(first, last, h, offsets, key, n_samples, ranks):
    """Fill ranks[s, row] (1-based) for the queries first to last - 1."""
    most = widest(first, last, offsets)
    alone, in_lanes = _room_alone(most), _room_in_lanes(most)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        wide = _load_alone(h, lo, n, alone[0], alone[1])
        _ranks_of_query(q, lo, n, key, n_samples, wide, alone, in_lanes, ranks)


@njit(counts=False)
def _discounts_of_query(q, lo, n, key, n_samples, wide, discount, alone, in_lanes, out):
    s, inverse, line, order, rank = alone
    inverses, keys, ranks_in_lanes = in_lanes
    n_in_lanes = _number_in_lanes(n, n_samples, wide)
    if n_in_lanes > 0:
        _in_every_lane(inverse, n, inverses)
    for i in range(lo, lo + n):
        out[i] = 0.0
    for first in range(0, n_in_lanes, LANES):
        _draw_lanes(key, q, first // LANES, n, inverses, keys)
        count_before(padded(n), keys, ranks_in_lanes)
        real = min(LANES, n_in_lanes - first)
        for i in range(n):
            total = out[lo + i]
            for lane in range(real):
                total += discount[ranks_in_lanes[i, lane]]
            out[lo + i] = total
    for sample in range(n_in_lanes, n_samples):
        _draw_alone(key, q, sample, n, wide, s, inverse, line, order, rank)
        for i in range(n):
            out[lo + i] += discount[rank[i]]
    for i in range(lo, lo + n):
        out[i] /= n_samples


@njit
def sampled_discounts(first, last, h, offsets, key, n_samples, discount, out):
    """Fill out[row] with the mean over samples of the discount of its rank."""
    most = widest(first, last, offsets)
    alone, in_lanes = _room_alone(most), _room_in_lanes(most)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        wide = _load_alone(h, lo, n, alone[0], alone[1])
        _discounts_of_query(q, lo, n, key, n_samples, wide, discount, alone, in_lanes, out)


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
                # The sum of exp h is exp(top) times exp(rest): beside a large top, rest would be rounded away.
                total, top, rest = 0.0, h[lo + order[n - 1]], 0.0
                for j in range(n - 2, -1, -1):
                    x = h[lo + order[j]]
                    if x > top:
                        top, rest = x, np.log1p(np.exp(rest + (top - x)))
                    else:
                        rest += np.log1p(np.exp((x - top) - rest))
                    total += (x - top) - rest
                out[s, q] = min(total, 0.0)


@njit(counts=False)
def _log_tail_sums(n, s, order, tail):
    """tail[j] = log of the sum of exp s over positions >= j."""
    running = -np.inf
    for j in range(n - 1, -1, -1):
        x = s[order[j]]
        top = max(running, x)
        running = x if running == -np.inf else top + np.log1p(np.exp(-abs(running - x)))
        tail[j] = running


# Gradients


# Of queries that must not go in lanes, being long or WIDE, the utility is NaN until they have been treated alone.
LEFT_OUT = np.nan


@njit(counts=False)
def _without_lanes(q, lo, n, h, gain, discount, gradient, utility):
    """Settle a query of which all rankings are worth the same, or leave it out if it must not go in lanes.

    Returns whether one of the two is so, and else the largest score.
    """
    same, worth = is_worth_the_same(lo, n, gain, discount)
    if same:  # the gradient is zero exactly, not up to rounding
        utility[q] = worth
        for i in range(n):
            gradient[lo + i] = 0.0
        return True, 0.0
    low, high = score_range(h, lo, lo + n)
    utility[q] = LEFT_OUT
    return n > GRADIENTS_IN_LANES or not high - low <= WIDE, high


@njit(counts=False)
def _load_lanes(h, lo, n, high, weight, inverses):
    """exp(h - high), nothing for the padding; and its reciprocal, once for each lane."""
    weight[n : padded(n)] = 0.0
    for i in range(n):
        weight[i], inverse = np.exp(h[lo + i] - high), np.exp(high - h[lo + i])
        for lane in range(LANES):
            inverses[i * LANES + lane] = inverse


@njit(counts=False)
def _reinforce_lanes(
    q, lo, n, h, high, gain, discount, key, n_samples, weight, inverses, keys, ranks, shares, values, chance, gradient,
):  # fmt: skip
    groups, m = (n_samples + LANES - 1) // LANES, padded(n)
    _load_lanes(h, lo, n, high, weight, inverses)
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
def _reinforce_alone(q, lo, n, wide, gain, discount, key, n_samples, alone, tail, plain, weighted, gradient):
    """Sample by sample; `wide`: set sums are logarithms."""
    s, inverse, line, order, rank = alone
    for i in range(n):
        plain[i], weighted[i] = 0.0, 0.0
    reference, total = 0.0, 0.0
    for sample in range(n_samples):
        _draw_alone(key, q, sample, n, wide, s, inverse, line, order, rank)
        value = 0.0
        for i in range(n):
            value += gain[lo + i] * discount[rank[i]]
        if sample == 0:
            reference = value
        value -= reference
        total += value
        if wide:
            _log_tail_sums(n, s, order, tail)
            c = 0.0  # the sum of exp(tail[j] - tail[t]) over t <= j; tails fall
            for j in range(n):
                i = order[j]
                c = (c * np.exp(tail[j] - tail[j - 1]) if j > 0 else 0.0) + 1.0
                chance = c * np.exp(s[i] - tail[j])
                plain[i] += chance
                weighted[i] += value * chance
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
def _reinforce_in_lanes(first, last, h, offsets, gain, discount, key, n_samples, gradient, utility):
    """Returns how many queries have been left out."""
    most, groups = padded(min(widest(first, last, offsets), GRADIENTS_IN_LANES)), (n_samples + LANES - 1) // LANES
    weight, inverses, keys = np.empty(most), np.ones(most * LANES), np.empty((groups, most * LANES))
    ranks, shares = np.empty((groups, most, LANES), np.int64), np.empty((groups, most, LANES))
    values, chance = np.empty((groups, LANES)), np.empty((most, LANES))
    left_out = 0
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        done, high = _without_lanes(q, lo, n, h, gain, discount, gradient, utility)
        if done:
            left_out += np.isnan(utility[q])
            continue
        utility[q] = _reinforce_lanes(
            q, lo, n, h, high, gain, discount, key, n_samples,
            weight, inverses, keys, ranks, shares, values, chance, gradient,
        )  # fmt: skip
    return left_out


@njit
def _reinforce_left_out(first, last, h, offsets, gain, discount, key, n_samples, gradient, utility):
    most = widest(first, last, offsets)
    alone, tail, plain, weighted = _room_alone(most), np.empty(most), np.empty(most), np.empty(most)
    for q in range(first, last):
        if np.isnan(utility[q]):
            lo, n = offsets[q], offsets[q + 1] - offsets[q]
            wide = _load_alone(h, lo, n, alone[0], alone[1])
            utility[q] = _reinforce_alone(
                q, lo, n, wide, gain, discount, key, n_samples, alone, tail, plain, weighted, gradient
            )


def reinforce(*arguments):
    """Gradient in the scores of the expected utility, estimated by REINFORCE; and each query's mean utility.

    Arguments: first, last, h, offsets, gain, discount, key, n_samples, gradient, utility; the last two are filled for the queries
    first to last - 1.

    gradient_i = 1/N sum_s (U_s - mean U) d log pi(r_s) / d h_i, with d log pi / d h_i = 1 - e_i sum_{j <= r(i)} 1 / Z_j
    and Z_j the sum of e = exp h over positions >= j. The ones cancel, since the baseline is the samples' own mean.
    """
    if _reinforce_in_lanes(*arguments):  # two kernels, so that the second is compiled only where it is needed
        _reinforce_left_out(*arguments)


@njit(counts=False)
def _share_of_others(n_samples, mean):
    """What turns the difference to the mean of all samples into that to the mean of the others, over n_samples."""
    if n_samples > 1:
        return 1.0 / (n_samples - 1)
    mean[:] = 0.0  # a single sample has no others
    return 1.0


@njit(counts=False)
def _plrank_lanes(
    q, lo, n, h, high, gain, discount, key, n_samples, weight, heavy, mean, inverses,
    keys, ranks, shares, futures, reward, lost, expected, direct, indirect, gradient,
):  # fmt: skip
    groups, m = (n_samples + LANES - 1) // LANES, padded(n)
    _load_lanes(h, lo, n, high, weight, inverses)
    heavy[n:m] = 0.0
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
        reward[n:m] = 0.0
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
def _plrank_alone(q, lo, n, h, gain, discount, key, n_samples, gradient):
    """Sample by sample; `wide`: set sums are logarithms."""
    alone = _room_alone(n)
    s, inverse, line, order, rank = alone
    wide = _load_alone(h, lo, n, s, inverse)
    expected, mean = np.empty(n), np.zeros(n + 1)
    orders, tails, futures = np.empty((n_samples, n), np.int64), np.empty((n_samples, n)), np.zeros((n_samples, n + 1))
    gradient[lo : lo + n] = 0.0
    for sample in range(n_samples):
        _draw_alone(key, q, sample, n, wide, s, inverse, line, order, rank)
        orders[sample] = order
        if wide:
            _log_tail_sums(n, s, order, tails[sample])
        else:  # reciprocals, which are used three times
            left = 0.0
            for j in range(n - 1, -1, -1):
                left += 1.0 / inverse[order[j]]
                tails[sample, j] = 1.0 / left
        for j in range(n - 1, -1, -1):
            futures[sample, j] = futures[sample, j + 1] + gain[lo + order[j]] * discount[j]
            mean[j] += futures[sample, j] / n_samples
    utility, others = mean[0], _share_of_others(n_samples, mean)
    for sample in range(n_samples):
        order, tail, future = orders[sample], tails[sample], futures[sample]
        rest = 0.0
        for j in range(n - 1, -1, -1):
            i = order[j]
            share = np.exp(s[i] - tail[j]) if wide else tail[j] / inverse[i]
            rest = share * gain[lo + i] + (1.0 - share) * rest
            expected[j] = rest
        lost, direct, indirect = 0.0, 0.0, 0.0
        for j in range(n):
            i = order[j]
            later = future[j + 1] - mean[j + 1]
            if wide:  # sums over t <= j, times exp(tail[j] - tail[t]); tails fall
                unit, share = 1.0, np.exp(s[i] - tail[j])
                fall = np.exp(tail[j] - tail[j - 1]) if j > 0 else 1.0
                lost, direct, indirect = lost * fall, direct * fall, indirect * fall
            else:
                unit, share = tail[j], 1.0 / inverse[i]
            lost += later * unit
            direct += discount[j] * unit
            indirect += discount[j] * expected[j] * unit
            later -= share * lost
            now = share * (gain[lo + i] * direct - indirect)
            gradient[lo + i] += others * later + now / n_samples
    return utility


@njit
def _plrank_in_lanes(first, last, h, offsets, gain, discount, key, n_samples, gradient, utility):
    """Returns how many queries have been left out."""
    most, groups = padded(min(widest(first, last, offsets), GRADIENTS_IN_LANES)), (n_samples + LANES - 1) // LANES
    weight, heavy, mean, inverses = np.empty(most), np.empty(most), np.empty(most), np.ones(most * LANES)
    keys, ranks = np.empty((groups, most * LANES)), np.empty((groups, most, LANES), np.int64)
    shares, futures, reward = np.empty((groups, most, LANES)), np.empty((groups, most, LANES)), np.empty((most, LANES))
    lost, expected = np.empty((most, LANES)), np.zeros((most, LANES))
    direct, indirect = np.empty((most, LANES)), np.empty((most, LANES))
    left_out = 0
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        done, high = _without_lanes(q, lo, n, h, gain, discount, gradient, utility)
        if done:
            left_out += np.isnan(utility[q])
            continue
        utility[q] = _plrank_lanes(
            q, lo, n, h, high, gain, discount, key, n_samples, weight, heavy, mean, inverses,
            keys, ranks, shares, futures, reward, lost, expected, direct, indirect, gradient,
        )  # fmt: skip
    return left_out


@njit
def _plrank_left_out(first, last, h, offsets, gain, discount, key, n_samples, gradient, utility):
    for q in range(first, last):
        if np.isnan(utility[q]):
            lo, n = offsets[q], offsets[q + 1] - offsets[q]
            utility[q] = _plrank_alone(q, lo, n, h, gain, discount, key, n_samples, gradient)


def plrank(*arguments):
    """As `reinforce`, by PL-Rank-3 (Oosterhuis 2022) with a baseline: unbiased, of lower variance for two samples or more.

    With Z_j as above, F_j the reward collected at positions >= j, m_j the expected gain at position j given what is left, and r
    the rank of item i, PL-Rank is the mean over samples of

        F_{r+1} - e_i sum_{j <= r} F_{j+1} / Z_j  +  e_i sum_{j <= r} discount_j (gain_i - m_j) / Z_j

    once the reward of position j itself is taken in expectation. The first part is what a later choice brings in; from F_{j+1} we
    subtract its mean over the query's other samples, which leaves the expectation as it is.
    """
    if _plrank_in_lanes(*arguments):
        _plrank_left_out(*arguments)
