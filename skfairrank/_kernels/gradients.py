"""Gradients of a query's expected utility in its scores, estimated from sampled rankings: REINFORCE and PL-Rank.

The worth of a ranking is the sum over positions p of R_p discount_p gain_(p), where (p) is the item at p. R_p is the reach of
p, the share of users who get that far: the product of `continuation` over the items before p, or 1 where the utility has none.

Samples come eight at a time (`LANES`, see `ranks`). A table by position has a row for each position and a column for each
sample. Sums along a ranking run down or up the rows. They are flat loops, which add a number to the one `LANES` further on.

Z_p is the sum of e = exp h over the items at positions >= p. Where scores are WIDE apart it may overflow or vanish. There e and
all sums of it are kept relative to exp(top_p), where top_p is the largest score that is left at p. From one position to the
next this changes by the factor exp(top_p - top_{p-1}) <= 1, which is called `fall`. Where scores are not WIDE apart, top is the
query's largest score at every position. `fall` would be 1 and is not read.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.ragged import all_have_one_utility, widest
from skfairrank._kernels.ranks import draw, make_sampler, start, sum_over_samples
from skfairrank._kernels.vectors import LANES

__all__ = ["plrank", "plrank_work", "reinforce", "reinforce_given", "reinforce_work"]


class Tables(NamedTuple):
    """The tables of a utility: gain and continuation (or length 0 for none) by row, discount by position."""

    gain: np.ndarray
    continuation: np.ndarray
    discount: np.ndarray


class Rankings(NamedTuple):
    """What eight rankings consist of, by position and sample. The tables have one row more than there are positions.

    Parameters
    ----------
    gain, reach : ndarray of float64
        The gain of the item at the position, and the position's R. Without continuation the reach is 1.
    weight : ndarray of float64
        e of the item at the position, relative to the largest one left.
    fall : ndarray of float64
        exp(top_p - top_{p-1}). It is filled in only where scores are WIDE apart.
    share : ndarray of float64
        1 / Z, relative to the largest one left.
    """

    gain: np.ndarray
    reach: np.ndarray
    weight: np.ndarray
    fall: np.ndarray
    share: np.ndarray


@njit(inner=True)
def _make_rankings(most):
    size = (most + 1) * LANES
    return Rankings(np.empty(size), np.ones(size), np.empty(size), np.ones(size), np.empty(size))


@njit(counts=False, inner=True)
def _look_up_gains(lo, n, tables, order, rankings):
    """Fill in gain and reach."""
    for x in range(n * LANES):
        rankings.gain[x] = tables.gain[lo + order[x]]
    if len(tables.continuation):
        for x in range(n * LANES):
            rankings.reach[x + LANES] = rankings.reach[x] * tables.continuation[lo + order[x]]


@njit(counts=False, inner=True)
def _look_up_weights(n, wide, sampler, order, rankings):
    """Fill in weight, fall and share."""
    weight, fall, share = rankings.weight, rankings.fall, rankings.share
    if wide:
        for s in range(LANES):
            top = -np.inf
            for x in range((n - 1) * LANES + s, -1, -LANES):
                score = sampler.score[order[x]]
                higher = max(top, score)
                weight[x], fall[x + LANES] = math.exp(score - higher), math.exp(top - higher)
                top = higher
    else:
        for x in range(n * LANES):
            weight[x] = sampler.weight[order[x]]
    _sum_upwards(n, wide, weight, fall, share)
    for x in range(n * LANES):
        share[x] = 1.0 / share[x]


@njit(counts=False, inner=True)
def _sum_upwards(n, wide, values, fall, sums):
    """Fill in sums over an item and all after it."""
    for x in range((n - 1) * LANES, n * LANES):
        sums[x] = values[x]
    for p in range(n - 2, -1, -1):
        for s in range(LANES):
            x = p * LANES + s
            sums[x] = values[x] + (sums[x + LANES] * fall[x + LANES] if wide else sums[x + LANES])


@njit(counts=False, inner=True)
def _sum_downwards(n, wide, values, fall):
    """Turn values into sums over an item and all before it."""
    for x in range(LANES, n * LANES):
        values[x] += values[x - LANES] * fall[x] if wide else values[x - LANES]


@njit
def reinforce(first, last, h, offsets, gain, continuation, discount, key, n_samples, gradient, utility):
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
        Of length 0 where everybody stays, that is for a position-based utility.
    discount : ndarray of float64, shape (>= largest query size,)
    key : uint64
    n_samples : int64
    gradient : ndarray of float64, shape (n_rows,)
        Filled in.
    utility : ndarray of float64, shape (n_queries,)
        Filled in.
    """
    most = widest(first, last, offsets)
    tables, sampler, rankings = Tables(gain, continuation, discount), make_sampler(most), _make_rankings(most)
    order, worth = np.empty(most * LANES, np.int64), np.empty(LANES)
    plain, weighted = np.empty(most * LANES), np.empty(most * LANES)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        same, utility[q] = all_have_one_utility(lo, n, gain, continuation, discount)
        if same:  # the gradient is zero exactly, not up to rounding
            for i in range(n):
                gradient[lo + i] = 0.0
            continue
        wide = start(h, lo, n, sampler)
        for x in range(n * LANES):
            plain[x], weighted[x] = 0.0, 0.0
        reference, total = 0.0, 0.0
        for sample in range(0, n_samples, LANES):
            draw(key, q, sample, n, wide, sampler, order)
            _look_up_gains(lo, n, tables, order, rankings)
            _look_up_weights(n, wide, sampler, order, rankings)
            _worth(n, discount, rankings, worth)
            n_real = min(LANES, n_samples - sample)
            # A query's rankings are worth about the same, so only their differences are summed. Where there are none, the sum
            # is zero exactly.
            if sample == 0:
                reference = worth[0]
            for s in range(n_real):
                worth[s] -= reference
                total += worth[s]
            _add_chances(n, wide, n_real, order, rankings, worth, plain, weighted)
        mean = total / n_samples
        for i in range(n):
            gradient[lo + i] = (mean * sum_over_samples(i, plain) - sum_over_samples(i, weighted)) / n_samples
        utility[q] = reference + mean


@njit
def reinforce_given(first, last, h, offsets, utilities, key, n_samples, gradient):
    """As `reinforce`, but the caller says what each of the sampled rankings is worth.

    Parameters
    ----------
    utilities : ndarray of float64, shape (n_samples, n_queries)
        What the rankings are worth that `ranks.sample_ranks` draws with the same key.
    """
    most = widest(first, last, offsets)
    sampler, rankings, order = make_sampler(most), _make_rankings(most), np.empty(most * LANES, np.int64)
    worth, plain, weighted = np.empty(LANES), np.empty(most * LANES), np.empty(most * LANES)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        wide = start(h, lo, n, sampler)
        for x in range(n * LANES):
            plain[x], weighted[x] = 0.0, 0.0
        total = 0.0
        for sample in range(0, n_samples, LANES):
            draw(key, q, sample, n, wide, sampler, order)
            _look_up_weights(n, wide, sampler, order, rankings)
            n_real = min(LANES, n_samples - sample)
            for s in range(n_real):
                worth[s] = utilities[sample + s, q] - utilities[0, q]
                total += worth[s]
            _add_chances(n, wide, n_real, order, rankings, worth, plain, weighted)
        mean = total / n_samples
        for i in range(n):
            gradient[lo + i] = (mean * sum_over_samples(i, plain) - sum_over_samples(i, weighted)) / n_samples


@njit(counts=False, inner=True)
def _worth(n, discount, rankings, worth):
    """Fill in the worth of each of eight rankings."""
    for s in range(LANES):
        worth[s] = 0.0
    for p in range(n):
        for s in range(LANES):
            worth[s] += rankings.reach[p * LANES + s] * rankings.gain[p * LANES + s] * discount[p]


@njit(counts=False, inner=True)
def _add_chances(n, wide, n_real, order, rankings, worth, plain, weighted):
    """Add e_i sum_{p <= r(i)} 1 / Z_p to `plain`, and that times the ranking's worth to `weighted`, by item and sample."""
    chance = rankings.share
    _sum_downwards(n, wide, chance, rankings.fall)
    for p in range(n):
        for s in range(n_real):
            c = chance[p * LANES + s] * rankings.weight[p * LANES + s]
            plain[order[p * LANES + s] * LANES + s] += c
            weighted[order[p * LANES + s] * LANES + s] += worth[s] * c


def reinforce_work(n_rows, n_queries, n_samples):
    """Rough time of `reinforce`, in nanoseconds."""
    return float(n_rows * n_samples) * (7.0 + 0.02 * n_rows / n_queries)


@njit
def plrank(first, last, h, offsets, gain, continuation, discount, key, n_samples, gradient, utility):
    """As `reinforce`, by PL-Rank-3 (Oosterhuis 2022) with a baseline: unbiased, of lower variance for two samples or more.

    Let F_p be the reward collected at positions >= p, m_p the expected gain at position p given what is left there, and r the
    rank of item i. The reward of position p itself is taken in expectation. PL-Rank is then the mean over samples of

        F_{r+1} - e_i sum_{p <= r} F_{p+1} / Z_p  +  e_i sum_{p <= r} R_p discount_p (gain_i - m_p) / Z_p.

    The first part is what comes later, and with it what the choice at p lets stay. The baseline: from F_{p+1} we subtract R_p
    times its mean over the query's other samples. R_p is known before the choice at p, and the other samples are independent of
    this one, so the expectation stays as it is.
    """
    most, n_blocks = widest(first, last, offsets), (n_samples + LANES - 1) // LANES
    tables, sampler, rankings = Tables(gain, continuation, discount), make_sampler(most), _make_rankings(most)
    orders, futures = np.empty((n_blocks, most * LANES), np.int64), np.empty((n_blocks, (most + 1) * LANES))
    future_sum, now, earlier, change = (
        np.empty(most + 1),
        np.empty(most * LANES),
        np.empty(most * LANES),
        np.empty(most * LANES),
    )
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        same, utility[q] = all_have_one_utility(lo, n, gain, continuation, discount)
        if same:
            for i in range(n):
                gradient[lo + i] = 0.0
            continue
        wide = start(h, lo, n, sampler)
        for p in range(n + 1):
            future_sum[p] = 0.0
        for b in range(n_blocks):
            draw(key, q, b * LANES, n, wide, sampler, orders[b])
            _look_up_gains(lo, n, tables, orders[b], rankings)
            _sum_futures(n, min(LANES, n_samples - b * LANES), discount, rankings, futures[b], future_sum)
        utility[q] = future_sum[0] / n_samples
        for x in range(n * LANES):
            change[x] = 0.0
        for b in range(n_blocks):
            _look_up_gains(lo, n, tables, orders[b], rankings)
            _look_up_weights(n, wide, sampler, orders[b], rankings)
            _subtract_others(n, n_samples, rankings, futures[b], future_sum)
            _sum_choices(n, wide, discount, rankings, futures[b], now, earlier)
            _add_changes(n, min(LANES, n_samples - b * LANES), orders[b], rankings, futures[b], now, earlier, change)
        for i in range(n):
            gradient[lo + i] = sum_over_samples(i, change) / n_samples


@njit(counts=False, inner=True)
def _sum_futures(n, n_real, discount, rankings, future, future_sum):
    """Fill in F of eight rankings, and add it to its sum over samples, by position."""
    for s in range(LANES):
        future[n * LANES + s] = 0.0
    for p in range(n - 1, -1, -1):
        for s in range(LANES):
            x = p * LANES + s
            future[x] = future[x + LANES] + rankings.reach[x] * rankings.gain[x] * discount[p]
        for s in range(n_real):
            future_sum[p] += future[p * LANES + s]


@njit(counts=False, inner=True)
def _subtract_others(n, n_samples, rankings, future, future_sum):
    """Subtract from F_{p+1} R_p times its mean over the other samples. Where there is only one sample, subtract nothing."""
    others = 1.0 / max(n_samples - 1, 1)
    for p in range(n if n_samples > 1 else 0):
        for s in range(LANES):
            x = (p + 1) * LANES + s
            future[x] -= rankings.reach[x - LANES] * ((future_sum[p + 1] - future[x]) * others)


@njit(counts=False, inner=True)
def _sum_choices(n, wide, discount, rankings, future, now, earlier):
    """Fill in sums over the positions up to p: `now` of R discount / Z, `earlier` of (F_{p+1} + R discount m) / Z."""
    _, reach, weight, fall, share = rankings
    for x in range(n * LANES):
        now[x] = weight[x] * rankings.gain[x]
    _sum_upwards(n, wide, now, fall, earlier)
    for p in range(n):
        for s in range(LANES):
            x = p * LANES + s
            now[x] = reach[x] * discount[p] * share[x]
            earlier[x] = future[x + LANES] * share[x] + (earlier[x] * share[x]) * now[x]
    _sum_downwards(n, wide, now, fall)
    _sum_downwards(n, wide, earlier, fall)


@njit(counts=False, inner=True)
def _add_changes(n, n_real, order, rankings, future, now, earlier, change):
    """Add each item's part of the gradient, by item and sample."""
    for p in range(n):
        for s in range(n_real):
            x = p * LANES + s
            choices = rankings.weight[x] * (rankings.gain[x] * now[x] - earlier[x])
            change[order[x] * LANES + s] += future[x + LANES] + choices


def plrank_work(n_rows, n_queries, n_samples):
    """Rough time of `plrank`, in nanoseconds."""
    return float(n_rows * n_samples) * (10.0 + 0.02 * n_rows / n_queries)
