"""The Plackett-Luce policy: sampled ranks, log-probabilities, and the sampled policy gradients.

Random numbers come from outside: `noise` holds standard exponential variables, query by query, in each query sample by
sample. With E_i exponential, sorting log E_i - h_i upwards is the Gumbel trick, since -log E_i is a Gumbel variable.

Ranks come from counting smaller keys, which has no branches and is vectorised. The loop stands in every kernel by hand: behind a
call, or inlined by numba, it takes twice as long for the arrays' reference counts.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.sorting import SMALL, stable_order

# exp(-WIDE) is a normal number with room below it, so products and sums of such weights keep all their digits.
WIDE = 600.0


@njit
def _score_range(h, lo, hi):
    low, high = h[lo], h[lo]
    for i in range(lo + 1, hi):
        low, high = min(low, h[i]), max(high, h[i])
    return low, high


@njit
def _sort_keys(key, order, rank, n):
    """Fill `order` and `rank` (0-based) where counting does not: many keys, or tied ones."""
    stable_order(key, order, n)
    for j in range(n):
        rank[order[j]] = j


@njit
def _far_keys(h, lo, n, high, noise, at, key):
    """Keys of one sample, to be sorted upwards, where exp(high - h) would overflow."""
    for i in range(n):
        key[i] = np.log(noise[at + i]) - (h[lo + i] - high)


@njit
def sample_ranks(first, last, h, offsets, noise, n_samples, ranks):
    """Fill ranks[s, row] (1-based) for the queries first to last - 1; `noise` starts at the first row of `offsets`."""
    widest = 0
    for q in range(first, last):
        widest = max(widest, offsets[q + 1] - offsets[q])
    weight, key = np.empty(widest), np.empty(widest)
    order, rank = np.empty(widest, np.int64), np.empty(widest, np.int64)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        low, high = _score_range(h, lo, hi)
        wide = high - low > WIDE
        for i in range(n):
            weight[i] = np.exp(high - h[lo + i])
        at = n_samples * (lo - offsets[0])
        for s in range(n_samples):
            if wide:
                _far_keys(h, lo, n, high, noise, at + s * n, key)
            else:
                for i in range(n):
                    key[i] = noise[at + s * n + i] * weight[i]
            counted = 0
            if n <= SMALL:
                for i in range(n):
                    k, smaller = key[i], 0
                    for j in range(n):
                        smaller += key[j] < k
                    rank[i] = smaller
                    order[smaller] = i
                    counted += smaller
            if n > SMALL or counted != n * (n - 1) // 2:
                _sort_keys(key, order, rank, n)
            for i in range(n):
                ranks[s, lo - offsets[0] + i] = rank[i] + 1


@njit
def sampled_discounts(first, last, h, offsets, noise, n_samples, discount, out):
    """Fill out[row] with the mean over samples of the discount of its rank."""
    widest = 0
    for q in range(first, last):
        widest = max(widest, offsets[q + 1] - offsets[q])
    weight, key = np.empty(widest), np.empty(widest)
    order, rank = np.empty(widest, np.int64), np.empty(widest, np.int64)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        low, high = _score_range(h, lo, hi)
        wide = high - low > WIDE
        for i in range(n):
            weight[i] = np.exp(high - h[lo + i])
            out[lo - offsets[0] + i] = 0.0
        at = n_samples * (lo - offsets[0])
        for s in range(n_samples):
            if wide:
                _far_keys(h, lo, n, high, noise, at + s * n, key)
            else:
                for i in range(n):
                    key[i] = noise[at + s * n + i] * weight[i]
            counted = 0
            if n <= SMALL:
                for i in range(n):
                    k, smaller = key[i], 0
                    for j in range(n):
                        smaller += key[j] < k
                    rank[i] = smaller
                    order[smaller] = i
                    counted += smaller
            if n > SMALL or counted != n * (n - 1) // 2:
                _sort_keys(key, order, rank, n)
            for i in range(n):
                out[lo - offsets[0] + i] += discount[rank[i]]
        for i in range(n):
            out[lo - offsets[0] + i] /= n_samples


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


@njit
def _log_tail_sums(h, lo, n, high, order, tail):
    """tail[j] = log of the sum of exp(h - high) over positions >= j."""
    running = -np.inf
    for j in range(n - 1, -1, -1):
        x = h[lo + order[j]] - high
        top = max(running, x)
        running = x if running == -np.inf else top + np.log1p(np.exp(-abs(running - x)))
        tail[j] = running


@njit
def _reinforce_wide(h, lo, n, high, gain, discount, noise, at, n_samples, gradient):
    """`reinforce` for one query whose scores are so far apart that set sums must be logarithms; returns the mean utility."""
    key, tail, order, rank = np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    plain, weighted = np.zeros(n), np.zeros(n)
    reference, sum_utility = 0.0, 0.0
    for s in range(n_samples):
        _far_keys(h, lo, n, high, noise, at + s * n, key)
        counted = 0
        if n <= SMALL:
            for i in range(n):
                k, smaller = key[i], 0
                for j in range(n):
                    smaller += key[j] < k
                rank[i] = smaller
                order[smaller] = i
                counted += smaller
        if n > SMALL or counted != n * (n - 1) // 2:
            _sort_keys(key, order, rank, n)
        value = 0.0
        for i in range(n):
            value += gain[lo + i] * discount[rank[i]]
        if s == 0:
            reference = value
        value -= reference
        sum_utility += value
        _log_tail_sums(h, lo, n, high, order, tail)
        for j in range(n):
            i = order[j]
            x, c = h[lo + i] - high, 0.0
            for t in range(j + 1):
                c += np.exp(x - tail[t])
            plain[i] += c
            weighted[i] += value * c
    mean = sum_utility / n_samples
    for i in range(n):
        gradient[lo + i] = (mean * plain[i] - weighted[i]) / n_samples
    return reference + mean


@njit
def reinforce(first, last, h, offsets, gain, discount, noise, n_samples, gradient, utility):
    """Gradient in the scores of the expected utility, estimated by REINFORCE; and each query's mean utility.

    gradient_i = 1/N sum_s (U_s - mean U) d log pi(r_s) / d h_i, with d log pi / d h_i = 1 - e_i sum_{j <= r(i)} 1 / Z_j
    and Z_j the sum of e = exp h over positions >= j. The ones cancel, since the baseline is the samples' own mean.
    """
    widest = 0
    for q in range(first, last):
        widest = max(widest, offsets[q + 1] - offsets[q])
    weight, inverse, key, tail = np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest)
    order, rank = np.empty(widest, np.int64), np.empty(widest, np.int64)
    plain, weighted = np.empty(widest), np.empty(widest)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        gradient[lo:hi] = 0.0
        flat = True
        total = 0.0
        for i in range(n):
            flat = flat and gain[lo + i] == gain[lo]
            total += gain[lo + i] * discount[i]
        if flat:  # nothing to gain: the gradient is zero exactly, not up to rounding
            utility[q] = total
            continue
        low, high = _score_range(h, lo, hi)
        at = n_samples * (lo - offsets[0])
        if high - low > WIDE:
            utility[q] = _reinforce_wide(h, lo, n, high, gain, discount, noise, at, n_samples, gradient)
            continue
        for i in range(n):
            weight[i] = np.exp(h[lo + i] - high)
            inverse[i] = np.exp(high - h[lo + i])
            plain[i] = 0.0
            weighted[i] = 0.0
        reference, sum_utility = 0.0, 0.0
        for s in range(n_samples):
            for i in range(n):
                key[i] = noise[at + s * n + i] * inverse[i]
            counted = 0
            if n <= SMALL:
                for i in range(n):
                    k, smaller = key[i], 0
                    for j in range(n):
                        smaller += key[j] < k
                    rank[i] = smaller
                    order[smaller] = i
                    counted += smaller
            if n > SMALL or counted != n * (n - 1) // 2:
                _sort_keys(key, order, rank, n)
            value = 0.0
            for i in range(n):
                value += gain[lo + i] * discount[rank[i]]
            if s == 0:
                reference = value
            value -= reference  # utilities of a query are close together: take the difference before it is squared away
            sum_utility += value
            left = 0.0
            for j in range(n - 1, -1, -1):
                left += weight[order[j]]
                tail[j] = left
            c = 0.0
            for j in range(n):
                c += 1.0 / tail[j]
                i = order[j]
                plain[i] += c
                weighted[i] += value * c
        mean = sum_utility / n_samples
        utility[q] = reference + mean
        for i in range(n):
            gradient[lo + i] = weight[i] * (mean * plain[i] - weighted[i]) / n_samples


@njit
def plrank(first, last, h, offsets, gain, discount, noise, n_samples, gradient, utility):
    """As `reinforce`, by PL-Rank-3 (Oosterhuis 2022) with a baseline: unbiased, of lower variance for two samples or more.

    With Z_j as above, F_j the reward collected at positions >= j, m_j the expected gain at position j given what is left, and r
    the rank of item i, PL-Rank is the mean over samples of

        F_{r+1} - e_i sum_{j <= r} F_{j+1} / Z_j  +  e_i sum_{j <= r} discount_j (gain_i - m_j) / Z_j

    once the reward of position j itself is taken in expectation. The first part is what a later choice brings in; from F_{j+1} we
    subtract its mean over the query's other samples, which leaves the expectation as it is.
    """
    widest = 0
    for q in range(first, last):
        widest = max(widest, offsets[q + 1] - offsets[q])
    weight, inverse, key = np.empty(widest), np.empty(widest), np.empty(widest)
    rank, mean = np.empty(widest, np.int64), np.empty(widest + 1)
    order, tail, future = (
        np.empty((n_samples, widest), np.int64),
        np.empty((n_samples, widest)),
        np.empty((n_samples, widest + 1)),
    )
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        gradient[lo:hi] = 0.0
        flat = True
        total = 0.0
        for i in range(n):
            flat = flat and gain[lo + i] == gain[lo]
            total += gain[lo + i] * discount[i]
        if flat:
            utility[q] = total
            continue
        low, high = _score_range(h, lo, hi)
        wide = high - low > WIDE
        for i in range(n):
            weight[i] = np.exp(h[lo + i] - high)
            inverse[i] = np.exp(high - h[lo + i])
        at = n_samples * (lo - offsets[0])
        mean[: n + 1] = 0.0
        for s in range(n_samples):
            if wide:
                _far_keys(h, lo, n, high, noise, at + s * n, key)
            else:
                for i in range(n):
                    key[i] = noise[at + s * n + i] * inverse[i]
            counted = 0
            if n <= SMALL:
                for i in range(n):
                    k, smaller = key[i], 0
                    for j in range(n):
                        smaller += key[j] < k
                    rank[i] = smaller
                    order[s, smaller] = i
                    counted += smaller
            if n > SMALL or counted != n * (n - 1) // 2:
                _sort_keys(key, order[s], rank, n)
            if wide:
                _log_tail_sums(h, lo, n, high, order[s], tail[s])
            else:  # reciprocals, which are used three times
                left = 0.0
                for j in range(n - 1, -1, -1):
                    left += weight[order[s, j]]
                    tail[s, j] = 1.0 / left
            future[s, n] = 0.0
            for j in range(n - 1, -1, -1):
                future[s, j] = future[s, j + 1] + gain[lo + order[s, j]] * discount[j]
                mean[j] += future[s, j] / n_samples
        utility[q] = mean[0]
        others = 1.0  # times the difference to the mean of all is that to the mean of the others, over n_samples
        if n_samples > 1:
            others = 1.0 / (n_samples - 1)
        else:
            mean[: n + 1] = 0.0
        for s in range(n_samples):
            # key[j] = m_j, from the last position to the first
            expected = 0.0
            for j in range(n - 1, -1, -1):
                i = order[s, j]
                share = np.exp(h[lo + i] - high - tail[s, j]) if wide else weight[i] * tail[s, j]
                expected = share * gain[lo + i] + (1.0 - share) * expected
                key[j] = expected
            if wide:
                for j in range(n):
                    i = order[s, j]
                    x = h[lo + i] - high
                    later = future[s, j + 1] - mean[j + 1]
                    now = 0.0
                    for t in range(j + 1):
                        p = np.exp(x - tail[s, t])
                        later -= p * (future[s, t + 1] - mean[t + 1])
                        now += p * discount[t] * (gain[lo + i] - key[t])
                    gradient[lo + i] += others * later + now / n_samples
            else:
                lost, direct, indirect = 0.0, 0.0, 0.0
                for j in range(n):
                    i = order[s, j]
                    later = future[s, j + 1] - mean[j + 1]
                    lost += later * tail[s, j]
                    direct += discount[j] * tail[s, j]
                    indirect += discount[j] * key[j] * tail[s, j]
                    now = weight[i] * (gain[lo + i] * direct - indirect)
                    gradient[lo + i] += others * (later - weight[i] * lost) + now / n_samples
