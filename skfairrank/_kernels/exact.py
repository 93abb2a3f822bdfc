"""Exact expectations under Plackett-Luce by summing over subsets: C is the set of items still to be ranked.

P(C) is the probability that C is what remains, Z_C the sum of e_i = exp h_i over C, and V(C) the utility still to come. Sets
are bit masks, visited by size; the work is 2^n n per query instead of n!. Eight queries of one size run side by side in lanes; no
sum crosses lanes, so a query's result does not depend on its neighbours.

Where scores are so far apart that weights underflow, a query is summed alone, by logarithms.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from skfairrank._kernels._jit import njit
from skfairrank._kernels.ragged import WIDE, is_worth_the_same, score_range, widest
from skfairrank._kernels.sorting import close_gaps, stable_order
from skfairrank._kernels.vectors import (
    DOUBLES,
    INT,
    LANES,
    constant,
    everywhere,
    integer,
    kernel,
    load,
    store,
    variable,
)

__all__ = ["exact_gradient", "expected_discounts", "rank_probabilities"]


# What a set of k items does. Tables have a row for every set or every item.


def _trailing_zeros(builder, bits):
    count = cgutils.get_or_insert_function(builder.module, ir.FunctionType(INT, [INT, ir.IntType(1)]), "llvm.cttz.i64")
    return builder.call(count, [bits, ir.Constant(ir.IntType(1), 1)])


def _over_items(builder, C, k, visit):
    """Call `visit(i, D)` for the k items of C, where D is C without item i."""
    rest = variable(builder, C)
    with cgutils.for_range(builder, k):
        left = builder.load(rest)
        smaller = builder.and_(left, builder.sub(left, integer(1)))
        builder.store(smaller, rest)
        visit(_trailing_zeros(builder, left), builder.sub(C, builder.sub(left, smaller)))


def _add_to(builder, total, value):
    builder.store(builder.fadd(builder.load(total), value), total)


@intrinsic
def _value_of_set(_, C, k, discount, weight, heavy, share, value):
    """value[C] = V(C) and share[C] = 1 / Z_C; heavy = weight times gain."""

    def write(builder, C, k, discount, weight, heavy, share, value):
        left, now, later = (variable(builder, constant(DOUBLES, 0.0)) for _ in range(3))

        def visit(i, D):
            w = load(builder, weight, i)
            _add_to(builder, left, w)
            _add_to(builder, now, load(builder, heavy, i))
            _add_to(builder, later, builder.fmul(w, load(builder, value, D)))

        _over_items(builder, C, k, visit)
        fraction = builder.fdiv(constant(DOUBLES, 1.0), builder.load(left))
        total = builder.fadd(builder.fmul(everywhere(builder, discount), builder.load(now)), builder.load(later))
        store(builder, fraction, share, C)
        store(builder, builder.fmul(total, fraction), value, C)

    return types.void(types.int64, types.int64, types.float64, weight, heavy, share, value), kernel(write)


@intrinsic
def _slope_to_set(_, D, k, all_items, discount, weight, gain, chance, value, slope):
    """P(D) from the k sets C with one item i more; slope[i] += P(C) e_i/Z_C (gain_i discount + V(D) - V(C)).

    chance[C] = P(C) / Z_C; chance[D] is 1 / Z_D before, and that times P(D) after.
    """

    def write(builder, D, k, all_items, discount, weight, gain, chance, value, slope):
        d, here, reach = (
            everywhere(builder, discount),
            load(builder, value, D),
            variable(builder, constant(DOUBLES, 0.0)),
        )

        def visit(i, rest):
            C = builder.sub(all_items, rest)
            p = builder.fmul(load(builder, chance, C), load(builder, weight, i))
            surprise = builder.fadd(
                builder.fmul(load(builder, gain, i), d), builder.fsub(here, load(builder, value, C))
            )
            store(builder, builder.fadd(load(builder, slope, i), builder.fmul(p, surprise)), slope, i)
            _add_to(builder, reach, p)

        _over_items(builder, builder.sub(all_items, D), k, visit)
        store(builder, builder.fmul(builder.load(reach), load(builder, chance, D)), chance, D)

    numbers = (types.int64, types.int64, types.int64, types.float64)
    return types.void(*numbers, weight, gain, chance, value, slope), kernel(write)


@intrinsic
def _chances_of_set(_, C, k, factor, weight, reach, at, out):
    """out[at + i] += factor times the probability P(C) e_i/Z_C that C remains and i comes next; P(C) is passed on."""

    def write(builder, C, k, factor, weight, reach, at, out):
        left, f = variable(builder, constant(DOUBLES, 0.0)), everywhere(builder, factor)
        _over_items(builder, C, k, lambda i, D: _add_to(builder, left, load(builder, weight, i)))
        chance = builder.fdiv(load(builder, reach, C), builder.load(left))

        def visit(i, D):
            p, row = builder.fmul(chance, load(builder, weight, i)), builder.add(at, i)
            store(builder, builder.fadd(load(builder, out, row), builder.fmul(f, p)), out, row)
            store(builder, builder.fadd(load(builder, reach, D), p), reach, D)

        _over_items(builder, C, k, visit)

    return types.void(types.int64, types.int64, types.float64, weight, reach, types.int64, out), kernel(write)


@intrinsic
def _zeros_below(_, bits):
    return types.int64(types.int64), lambda context, builder, _, values: _trailing_zeros(builder, values[0])


@njit(counts=False)
def _next_of_size(C):
    """The next larger number with as many bits (Gosper)."""
    up = C + (C & -C)
    return up | ((C ^ up) >> (2 + _zeros_below(C)))


@njit(counts=False)
def _sum_values(n, discount, weight, heavy, share, value):
    """V of all sets, smaller sets first."""
    for lane in range(LANES):
        value[0, lane] = share[0, lane] = 0.0
    for k in range(1, n + 1):
        C = (1 << k) - 1
        while C < 1 << n:
            _value_of_set(C, k, discount[n - k], weight, heavy, share, value)
            C = _next_of_size(C)


@njit(counts=False)
def _start(n, reach):
    """All items remain at first."""
    for C in range(1 << n):
        for lane in range(LANES):
            reach[C, lane] = 1.0 if C == (1 << n) - 1 else 0.0


@njit(counts=False)
def _sum_slopes(n, discount, weight, gain, chance, value, slope):
    """Slopes of V; `chance` holds 1 / Z_C, and then P(C) / Z_C."""
    full = (1 << n) - 1
    for k in range(n - 1, -1, -1):
        D = (1 << k) - 1
        while D < full:
            _slope_to_set(D, n - k, full, discount[n - k - 1], weight, gain, chance, value, slope)
            if k == 0:
                break
            D = _next_of_size(D)


@njit(counts=False)
def _sum_chances(n, factor, weight, reach, apart, out):
    """Probabilities that item i is at position j, times factor[j], summed in out[i] or, if `apart`, each in out[j n + i]."""
    _start(n, reach)
    for k in range(n, 0, -1):
        C = (1 << k) - 1
        while C < 1 << n:
            _chances_of_set(C, k, factor[n - k], weight, reach, (n - k) * n if apart else 0, out)
            C = _next_of_size(C)


# One query by logarithms.


@njit
def _scores_and_log_sums(h, lo, n):
    """Scores with gaps closed, and log Z_C of all sets."""
    s, sums = np.empty(n), np.empty(1 << n)
    close_gaps(h, lo, n, s)
    sums[0] = -np.inf
    for i in range(n):
        x, bit = s[i], 1 << i
        sums[bit] = x
        for C in range(1, bit):
            sums[C + bit] = max(sums[C], x) + np.log1p(np.exp(-abs(sums[C] - x)))
    return s, sums


@njit
def _size(C):
    size = 0
    while C:
        C &= C - 1
        size += 1
    return size


@njit
def _wide_chances(h, lo, n, factor, apart, out):
    """As `_sum_chances`, for one query; out has n or n^2 numbers."""
    s, sums = _scores_and_log_sums(h, lo, n)
    reach = np.zeros(1 << n)
    reach[-1] = 1.0
    for C in range((1 << n) - 1, 0, -1):
        j = n - _size(C)
        for i in range(n):
            if C >> i & 1:
                p = reach[C] * np.exp(s[i] - sums[C])
                out[j * n + i if apart else i] += factor[j] * p
                reach[C ^ (1 << i)] += p


@njit
def _wide_gradient(h, lo, n, gain, discount, gradient):
    """As `exact_gradient`, for one query; adds to its gradient and returns the utility."""
    s, sums = _scores_and_log_sums(h, lo, n)
    value, reach = np.zeros(1 << n), np.zeros(1 << n)
    for C in range(1, 1 << n):
        d = discount[n - _size(C)]
        for i in range(n):
            if C >> i & 1:
                value[C] += np.exp(s[i] - sums[C]) * (gain[lo + i] * d + value[C ^ (1 << i)])
    reach[-1] = 1.0
    for C in range((1 << n) - 1, 0, -1):
        d = discount[n - _size(C)]
        for i in range(n):
            if C >> i & 1:
                p, D = reach[C] * np.exp(s[i] - sums[C]), C ^ (1 << i)
                gradient[lo + i] += p * (gain[lo + i] * d + value[D] - value[C])
                reach[D] += p
    return value[-1]


# Queries by size, in groups.


@njit
def _kind(h, offsets, q):
    """Size of a query, and whether its scores are so far apart that it is summed alone."""
    low, high = score_range(h, offsets[q], offsets[q + 1])
    return 2 * (offsets[q + 1] - offsets[q]) + (not high - low <= WIDE)


@njit
def _groups(queries, h, offsets):
    """The given queries, those of one kind side by side; and where each group of up to LANES begins, and the last one ends."""
    kinds, order = np.empty(len(queries)), np.empty(len(queries), np.int64)
    for a in range(len(queries)):
        kinds[a] = _kind(h, offsets, queries[a])
    stable_order(kinds, order, len(queries))
    starts, n_starts = np.empty(len(queries) + 1, np.int64), 0
    for a in range(len(queries)):
        begin = starts[n_starts - 1] if n_starts else -LANES
        kind = kinds[order[a]]
        if a - begin >= LANES or kind % 2 == 1 or kind != kinds[order[begin]]:
            starts[n_starts] = a
            n_starts += 1
    starts[n_starts] = len(queries)
    return queries[order], starts[: n_starts + 1]


@njit
def _load_weights(queries, h, offsets, n, weight):
    """exp(h - max h) of a group's queries; ones in the lanes of none."""
    weight[:n] = 1.0
    for lane in range(len(queries)):
        lo = offsets[queries[lane]]
        _, high = score_range(h, lo, lo + n)
        for i in range(n):
            weight[i, lane] = np.exp(h[lo + i] - high)


@njit
def _chances(first, last, h, offsets, factor, apart, out):
    """Fill out[row, j] with the probability that the row is at position j, times factor[j]; or out[row, 0] with their sum."""
    queries, starts = _groups(np.arange(first, last), h, offsets)
    most = widest(first, last, offsets)
    weight, reach, found = np.empty((most, LANES)), np.empty((1 << most, LANES)), np.empty((most * most, LANES))
    for a in range(len(starts) - 1):
        group = queries[starts[a] : starts[a + 1]]
        kind = _kind(h, offsets, group[0])
        n = kind // 2
        rows = n * n if apart else n
        found[:rows] = 0.0
        if kind % 2 == 1:
            alone = np.zeros(rows)
            _wide_chances(h, offsets[group[0]], n, factor, apart, alone)
            found[:rows, 0] = alone
        else:
            _load_weights(group, h, offsets, n, weight)
            _sum_chances(n, factor, weight, reach, apart, found)
        for lane in range(len(group)):
            for row in range(rows):
                out[offsets[group[lane]] + row % n, row // n] = found[row, lane]


@njit
def rank_probabilities(first, last, h, offsets, out):
    """Fill out[row, j] with the probability that the row is at position j (0-based); columns beyond its query's size stay."""
    _chances(first, last, h, offsets, np.ones(out.shape[1]), True, out)


@njit
def expected_discounts(first, last, h, offsets, discount, out):
    """Fill out[row] with the expected discount of its rank."""
    _chances(first, last, h, offsets, discount, False, out.reshape(out.size, 1))


@njit
def exact_gradient(first, last, h, offsets, gain, discount, gradient, utility):
    """Expected utility of each query and its gradient in the scores.

    dV/dh_i = sum_C P(C) e_i/Z_C (gain_i discount_{n-|C|} + V(C without i) - V(C)).
    """
    some, n_some = np.empty(last - first, np.int64), 0
    for q in range(first, last):  # where there is nothing to gain the gradient is zero exactly, not up to rounding
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        same, utility[q] = is_worth_the_same(lo, n, gain, discount)
        gradient[lo : lo + n] = 0.0
        if not same:
            some[n_some] = q
            n_some += 1
    queries, starts = _groups(some[:n_some], h, offsets)
    most = widest(first, last, offsets)
    weight, gains, heavy, slope = (
        np.empty((most, LANES)),
        np.empty((most, LANES)),
        np.empty((most, LANES)),
        np.empty((most, LANES)),
    )
    share, value = np.empty((1 << most, LANES)), np.empty((1 << most, LANES))
    for a in range(len(starts) - 1):
        group = queries[starts[a] : starts[a + 1]]
        kind = _kind(h, offsets, group[0])
        n, full = kind // 2, (1 << kind // 2) - 1
        if kind % 2 == 1:
            utility[group[0]] = _wide_gradient(h, offsets[group[0]], n, gain, discount, gradient)
            continue
        _load_weights(group, h, offsets, n, weight)
        for i in range(n):
            for lane in range(LANES):
                gains[i, lane] = gain[offsets[group[lane]] + i] if lane < len(group) else 0.0
                heavy[i, lane] = weight[i, lane] * gains[i, lane]
                slope[i, lane] = 0.0
        _sum_values(n, discount, weight, heavy, share, value)
        _sum_slopes(n, discount, weight, gains, share, value, slope)
        for lane in range(len(group)):
            utility[group[lane]] = value[full, lane]
            for i in range(n):
                gradient[offsets[group[lane]] + i] = slope[i, lane]
