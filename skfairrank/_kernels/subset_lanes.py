"""Sums over the subsets of a query's items, for eight queries of one size at once: one in each lane of a vector register.

C is the set of items still to be ranked. A table has a row for every set or every item, and a column for every query. Sets are
bit masks, and are visited in order of size. No sum crosses columns, so a query's result does not depend on its neighbours.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from skfairrank._kernels._jit import njit
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

__all__ = ["sum_chances", "sum_slopes", "sum_values"]


# What a set of k items does.


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


def _passing_on(kind):
    """Code for what item i passes on of a value. All of it where `continuation` is None, as numba knows when it compiles."""
    if isinstance(kind, types.NoneType):
        return lambda builder, continuation, i, value: value
    return lambda builder, continuation, i, value: builder.fmul(load(builder, continuation, i), value)


@intrinsic
def _value_of_set(_, C, k, discount, weight, heavy, continuation, share, value):
    """value[C] = V(C) and share[C] = 1 / Z_C; heavy = weight times gain."""
    passed_on = _passing_on(continuation)

    def write(builder, C, k, discount, weight, heavy, continuation, share, value):
        left, now, later = (variable(builder, constant(DOUBLES, 0.0)) for _ in range(3))

        def visit(i, D):
            w = load(builder, weight, i)
            _add_to(builder, left, w)
            _add_to(builder, now, load(builder, heavy, i))
            _add_to(builder, later, builder.fmul(w, passed_on(builder, continuation, i, load(builder, value, D))))

        _over_items(builder, C, k, visit)
        fraction = builder.fdiv(constant(DOUBLES, 1.0), builder.load(left))
        total = builder.fadd(builder.fmul(everywhere(builder, discount), builder.load(now)), builder.load(later))
        store(builder, fraction, share, C)
        store(builder, builder.fmul(total, fraction), value, C)

    return types.void(types.int64, types.int64, types.float64, weight, heavy, continuation, share, value), kernel(write)


@intrinsic
def _slope_to_set(_, D, k, all_items, discount, weight, gain, continuation, chance, value, slope):
    """Compute R(D) from the k sets C that have one item i more, and add to the slopes.

    What is added to slope[i] is R(C) e_i/Z_C (gain_i discount + continuation_i V(D) - V(C)).

    chance[C] holds R(C) / Z_C. chance[D] holds 1 / Z_D before, and R(D) / Z_D after.
    """
    passed_on = _passing_on(continuation)

    def write(builder, D, k, all_items, discount, weight, gain, continuation, chance, value, slope):
        d, here, reach = (
            everywhere(builder, discount),
            load(builder, value, D),
            variable(builder, constant(DOUBLES, 0.0)),
        )

        def visit(i, rest):
            C = builder.sub(all_items, rest)
            p = builder.fmul(load(builder, chance, C), load(builder, weight, i))
            surprise = builder.fadd(
                builder.fmul(load(builder, gain, i), d),
                builder.fsub(passed_on(builder, continuation, i, here), load(builder, value, C)),
            )
            store(builder, builder.fadd(load(builder, slope, i), builder.fmul(p, surprise)), slope, i)
            _add_to(builder, reach, passed_on(builder, continuation, i, p))

        _over_items(builder, builder.sub(all_items, D), k, visit)
        store(builder, builder.fmul(builder.load(reach), load(builder, chance, D)), chance, D)

    numbers = (types.int64, types.int64, types.int64, types.float64)
    return types.void(*numbers, weight, gain, continuation, chance, value, slope), kernel(write)


@intrinsic
def _chances_of_set(_, C, k, factor, weight, reach, at, out):
    """Add factor times P(C) e_i/Z_C, the probability that C remains and i comes next, to out[at + i]; and pass P(C) on."""

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


@njit(counts=False, inner=True)
def _next_of_size(C):
    """The next larger number that has as many ones among its bits (Gosper)."""
    up = C + (C & -C)
    return up | ((C ^ up) >> (2 + _zeros_below(C)))


# Over all sets.


@njit(counts=False, inner=True)
def sum_values(n, discount, weight, heavy, continuation, share, value):
    """Fill in V of all sets, smaller sets first. `continuation` may be None: all go on."""
    for lane in range(LANES):
        value[0, lane] = share[0, lane] = 0.0
    for k in range(1, n + 1):
        C = (1 << k) - 1
        while C < 1 << n:
            _value_of_set(C, k, discount[n - k], weight, heavy, continuation, share, value)
            C = _next_of_size(C)


@njit(counts=False, inner=True)
def sum_slopes(n, discount, weight, gain, continuation, chance, value, slope):
    """Add up the slopes of V. `chance` holds 1 / Z_C, and then R(C) / Z_C. `continuation` may be None: all go on."""
    full = (1 << n) - 1
    for k in range(n - 1, -1, -1):
        D = (1 << k) - 1
        while D < full:
            _slope_to_set(D, n - k, full, discount[n - k - 1], weight, gain, continuation, chance, value, slope)
            if k == 0:
                break
            D = _next_of_size(D)


@njit(counts=False, inner=True)
def sum_chances(n, factor, weight, reach, apart, out):
    """Add the probabilities that item i is at position j, times factor[j], to out[i]; or, if `apart`, each to out[j n + i]."""
    for C in range(1 << n):  # all items remain at first
        for lane in range(LANES):
            reach[C, lane] = 1.0 if C == (1 << n) - 1 else 0.0
    for k in range(n, 0, -1):
        C = (1 << k) - 1
        while C < 1 << n:
            _chances_of_set(C, k, factor[n - k], weight, reach, (n - k) * n if apart else 0, out)
            C = _next_of_size(C)
