"""Rankings drawn from the Plackett-Luce policy, query by query, and the probability of given ones.

Let E_i be standard exponential. Sorting E_i exp(-h_i) upwards draws a ranking: -log E_i is a Gumbel variable, so this is the
Gumbel trick without the logarithm. Eight samples (`LANES`) are drawn and sorted side by side, as the columns of one table with
a row for each item. A sorting network sorts them. Which two rows it compares does not depend on the numbers, so there are no
branches, and LLVM treats the eight columns at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.counting import count_smaller
from skfairrank._kernels.noise import exponentials, exponentials_of_one, numbered, numbered_exponentials
from skfairrank._kernels.ragged import WIDE, score_range, widest
from skfairrank._kernels.sorting import SMALL, close_gaps, stable_order
from skfairrank._kernels.vectors import LANES, bits_of

__all__ = [
    "Sampler",
    "draw",
    "log_probability",
    "make_sampler",
    "probability_work",
    "sample_ranks",
    "sampled_discounts",
    "sampling_work",
    "start",
    "sum_over_samples",
]

# Up to how many items counting is faster than sorting (benchmarks).
COUNTED = 32
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
# No -log(u) is below exp(-LIFT). So keys are positive even as logarithms, and are ordered as their bits are.
LIFT = 64.0


class Sampler(NamedTuple):
    """What a query's samples are drawn from.

    Parameters
    ----------
    score : ndarray of float64, shape (most,)
        The query's scores minus the largest. Where they are WIDE apart, gaps are closed (`close_gaps`).
    weight : ndarray of float64, shape (most,)
        exp(score). It is not filled in where scores are WIDE apart.
    inverse : ndarray of float64, shape ((most + 1) * LANES,)
        exp(-score), once for each of eight samples side by side. It is not filled in where scores are WIDE apart.
    keys : ndarray of float64, shape ((most + 1) * LANES,)
        Space to sort in.
    """

    score: np.ndarray
    weight: np.ndarray
    inverse: np.ndarray
    keys: np.ndarray


@njit(inner=True)
def make_sampler(most):
    """A sampler for queries of at most `most` items."""
    # One item more, since noise is drawn for an even number of items.
    return Sampler(np.empty(most), np.empty(most), np.zeros((most + 1) * LANES), np.empty((most + 1) * LANES))


@njit(counts=False, inner=True)
def start(h, lo, n, sampler):
    """Get ready to sample the query whose n rows begin at `lo`, and return whether its scores are WIDE apart."""
    low, high = score_range(h, lo, lo + n)
    wide = not high - low <= WIDE
    if wide:
        close_gaps(h, lo, n, sampler.score)
    else:
        for i in range(n):
            sampler.score[i] = h[lo + i] - high
            inverse = math.exp(high - h[lo + i])
            sampler.weight[i] = 1.0 / inverse
            for s in range(LANES):
                sampler.inverse[i * LANES + s] = inverse
    return wide


@njit(counts=False, inner=True)
def draw(key, query, sample, n, wide, sampler, order):
    """Draw eight samples of the query that the sampler was started for.

    Parameters
    ----------
    key : uint64
    query : int64
        The number of the query, on which its noise depends.
    sample : int64
        The first sample, a multiple of `LANES`.
    n : int64
    wide : bool
        What `start` has returned.
    sampler : Sampler
    order : ndarray of int64, shape (>= n * LANES,)
        Filled in: ``order[p * LANES + s]`` is the item at position p of sample `sample` + s.

    Notes
    -----
    The network is Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2M). It exchanges NaN like any number and loses none.
    """
    keys = sampler.keys
    items = _draw_keys(key, query, sample, n, wide, sampler)
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


@njit(counts=False, inner=True)
def _draw_keys(key, query, sample, n, wide, sampler):
    """Draw keys of eight samples, to be sorted upwards. Returns up to what their last bits count.

    An item's number takes the place of its key's last bits and is sorted with them. Of equal keys the first item's is smaller.
    """
    items = _power_of_two(n)
    if wide:
        exponentials(key, query, sample // LANES, n, sampler.keys)
        _number_logarithms(n, LANES, sampler, np.uint64(-items))
    else:
        numbered_exponentials(key, query, sample // LANES, n, sampler.inverse, np.uint64(-items), sampler.keys)
    return items


@njit(inner=True)
def _power_of_two(n):
    """The smallest power of two that is not below n."""
    power = 1
    while power < n:
        power *= 2
    return power


@njit(counts=False, inner=True)
def _number_logarithms(n, width, sampler, mask):
    """Turn exponential variables into keys where scores are WIDE apart."""
    for x in range(n * width):
        lifted = math.log(sampler.keys[x]) - sampler.score[x // width] + LIFT
        sampler.keys[x] = numbered(lifted, mask, np.uint64(x // width))


@njit(inner=True)
def draw_one(key, query, sample, n, wide, sampler, order):
    """As `draw`, for one sample. If one alone is left, `draw` would draw seven columns for nothing."""
    mask = np.uint64(-_power_of_two(n))
    exponentials_of_one(key, query, sample, n, sampler.keys)
    if wide:
        _number_logarithms(n, 1, sampler, mask)
    else:
        for i in range(n):
            sampler.keys[i] = numbered(sampler.keys[i] * sampler.inverse[i * LANES], mask, np.uint64(i))
    if n > SMALL:
        stable_order(sampler.keys[:n], order, n)
        return
    for i in range(n):
        own, before = bits_of(sampler.keys[i]), 0  # bits differ even where keys are NaN, so every place is filled
        for j in range(n):
            before += bits_of(sampler.keys[j]) < own
        order[before] = i


@njit(counts=False, inner=True)
def sum_over_samples(i, table):
    """Sum of row i of a table with a column for each of eight samples."""
    total = 0.0
    for s in range(LANES):
        total += table[i * LANES + s]
    return total


@njit(counts=False, inner=True)
def _rank_up_to(key, query, sample, n_samples, n, wide, sampler, order, rank):
    """Draw the samples from `sample` on, of n_samples. Returns how many stand side by side in `rank`, a row for each item."""
    if sample == n_samples - 1:
        draw_one(key, query, sample, n, wide, sampler, order)
        for p in range(n):
            rank[order[p]] = p
        return 1
    if n <= COUNTED:
        _draw_keys(key, query, sample, n, wide, sampler)
        count_smaller(n, sampler.keys, rank)
    else:
        draw(key, query, sample, n, wide, sampler, order)
        for p in range(n):
            for s in range(LANES):
                rank[order[p * LANES + s] * LANES + s] = p
    return LANES


@njit
def sample_ranks(first, last, h, offsets, key, n_samples, ranks):
    """Fill ranks[s, row] (1-based) for the queries first to last - 1."""
    most = widest(first, last, offsets)
    sampler, order, rank = make_sampler(most), np.empty(most * LANES, np.int64), np.empty(most * LANES, np.int64)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        wide = start(h, lo, n, sampler)
        for sample in range(0, n_samples, LANES):
            width = _rank_up_to(key, q, sample, n_samples, n, wide, sampler, order, rank)
            for s in range(min(width, n_samples - sample)):
                for i in range(n):
                    ranks[sample + s, lo + i] = rank[i * width + s] + 1


@njit(counts=False, inner=True)
def _sum_of_four(discount, rank, x):
    """Sum of the discounts of the four ranks from x on. Indices are unsigned, because a signed one may count from the end."""
    first = discount[np.uint64(rank[x])] + discount[np.uint64(rank[x + ONE])]
    return first + (discount[np.uint64(rank[x + TWO])] + discount[np.uint64(rank[x + THREE])])


@njit
def sampled_discounts(first, last, h, offsets, key, n_samples, discount, out):
    """Fill out[row] with the mean over samples of the discount of its rank."""
    most = widest(first, last, offsets)
    sampler, order, rank = make_sampler(most), np.empty(most * LANES, np.int64), np.empty(most * LANES, np.int64)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        wide = start(h, lo, n, sampler)
        for i in range(n):
            out[lo + i] = 0.0
        for sample in range(0, n_samples, LANES):
            width = _rank_up_to(key, q, sample, n_samples, n, wide, sampler, order, rank)
            n_real = min(width, n_samples - sample)
            if n_real == LANES:
                for i in range(n):
                    x = np.uint64(i * LANES)
                    out[lo + i] += _sum_of_four(discount, rank, x) + _sum_of_four(discount, rank, x + FOUR)
            else:
                for i in range(n):
                    total = 0.0
                    for s in range(n_real):
                        total += discount[rank[i * width + s]]
                    out[lo + i] += total
        for i in range(n):
            out[lo + i] /= n_samples


def sampling_work(n_rows, n_queries, n_samples):
    """Rough time of `sample_ranks` and `sampled_discounts`, in nanoseconds."""
    return float(n_rows * n_samples) * (5.0 + 0.02 * n_rows / n_queries)


@njit
def log_probability(first, last, h, offsets, ranks, out):
    """Fill out[s, q] with log pi(r|q) = sum_j h_(j) - logsumexp(h_(j), .., h_(n)). The ranks must be permutations."""
    n_samples = ranks.shape[0]
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        order = np.empty(n, np.int64)
        for s in range(n_samples):
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


def probability_work(n_ranks):
    """Rough time of `log_probability`, in nanoseconds."""
    return 20.0 * n_ranks
