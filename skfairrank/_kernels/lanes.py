"""Ranks and sums over rankings of short queries, eight samples at once: one in each lane of a vector register.

With a key for every item and sample, the items before item i are those of smaller keys, and every sum over what comes before or
after is a sum over all items under a mask: no sorting, no branches, and nothing crosses lanes.

Arrays have shape (items, `LANES`), rows padded to an even number (`padded`). Keys are positive doubles, whose order is that of
their bits as integers; of equal keys the first item's is the smaller. A padding row has the largest of such integers for a
key and comes last; its weight or value is zero where sums run over what comes after.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from skfairrank._kernels._jit import njit
from skfairrank._kernels.vectors import (
    DOUBLES,
    INTS,
    constant,
    everywhere,
    integer,
    item,
    kernel,
    load,
    store,
    variable,
)

__all__ = ["accumulate", "count_before", "padded", "rank_and_share", "sum_after", "sum_before", "weigh_from"]


@njit
def padded(n):
    return n + n % 2


def _over_pairs(builder, keys, n, begin, visit, finish, *, later_first):
    """Call `visit(sums, j, mask)` for all items j and blocks of items, and `finish(sums, i)` for every item at its end.

    `begin(i)` makes an item's sums (in registers); mask says in which lanes j comes before i or, with `later_first`, after it.
    An item's own turn counts as before, and not as after.
    """

    def block(first, width):
        items = [builder.add(first, integer(r)) for r in range(width)]
        sums = [begin(i) for i in items]
        own = [load(builder, keys, i, INTS) for i in items]
        # An item further up comes before i also with an equal key, one further down only with a smaller one.
        limits = [builder.add(key, constant(INTS, 1)) for key in own]

        def turn(j, limits):
            key = load(builder, keys, j, INTS)
            for s, limit in zip(sums, limits, strict=True):
                visit(s, j, builder.icmp_signed(">=" if later_first else "<", key, limit))

        with cgutils.for_range(builder, first) as loop:
            turn(loop.index, limits)
        for r in range(width):
            turn(items[r], limits)
            limits = [*limits[:r], own[r], *limits[r + 1 :]]
        after = builder.add(first, integer(width))
        with cgutils.for_range(builder, builder.sub(n, after)) as loop:
            turn(builder.add(loop.index, after), limits)
        for s, i in zip(sums, items, strict=True):
            finish(s, i)

    # Four items at a time, for each key loaded; n is even.
    with cgutils.for_range(builder, builder.sdiv(n, integer(4))) as loop:
        block(builder.mul(loop.index, integer(4)), 4)
    rest = builder.srem(n, integer(4))
    with builder.if_then(builder.icmp_signed(">", rest, integer(0))):
        block(builder.sub(n, rest), 2)


def _add_where(builder, total, mask, value):
    old = builder.load(total)
    builder.store(builder.select(mask, builder.fadd(old, value), old), total)


def _count_where(builder, total, mask):
    builder.store(builder.sub(builder.load(total), builder.sext(mask, INTS)), total)


@intrinsic
def count_before(_, n, keys, rank):
    """Fill rank, 0-based, for n items (with padding)."""

    def write(builder, n, keys, rank):
        _over_pairs(
            builder,
            keys,
            n,
            lambda i: variable(builder, constant(INTS, -1)),  # an item's own turn counts
            lambda count, j, mask: _count_where(builder, count, mask),
            lambda count, i: store(builder, builder.load(count), rank, i),
            later_first=False,
        )

    return types.void(types.int64, keys, rank), kernel(write)


@intrinsic
def rank_and_share(_, n, keys, weight, rank, share):
    """As `count_before`; and share, the reciprocal of the weight (n,) of an item and of all after it."""

    def write(builder, n, keys, weight, rank, share):
        def begin(i):
            own = variable(builder, item(builder, weight, i))
            return variable(builder, constant(INTS, 1)), own

        def visit(sums, j, mask):
            _count_where(builder, sums[0], mask)
            _add_where(builder, sums[1], mask, item(builder, weight, j))

        def finish(sums, i):
            store(builder, builder.sub(everywhere(builder, n, INTS), builder.load(sums[0])), rank, i)
            store(builder, builder.fdiv(constant(DOUBLES, 1.0), builder.load(sums[1])), share, i)

        _over_pairs(builder, keys, n, begin, visit, finish, later_first=True)

    return types.void(types.int64, keys, weight, rank, share), kernel(write)


@intrinsic
def weigh_from(_, n, keys, weight, out):
    """Fill out with the weight of an item and of all after it."""

    def write(builder, n, keys, weight, out):
        _over_pairs(
            builder,
            keys,
            n,
            lambda i: variable(builder, item(builder, weight, i)),
            lambda total, j, mask: _add_where(builder, total, mask, item(builder, weight, j)),
            lambda total, i: store(builder, builder.load(total), out, i),
            later_first=True,
        )

    return types.void(types.int64, keys, weight, out), kernel(write)


@intrinsic
def accumulate(_, n, keys, values, factor, out):
    """Add to out, in every lane, its factor times what `sum_before` gives."""

    def write(builder, n, keys, values, factor, out):
        # Once: it has just been written lane by lane, and the first load waits for that.
        factors = load(builder, factor, integer(0))

        def finish(total, i):
            total = builder.load(total)
            product = builder.fmul(factors, total)
            store(builder, builder.fadd(load(builder, out, i), product), out, i)

        _over_pairs(
            builder,
            keys,
            n,
            lambda i: variable(builder, constant(DOUBLES, 0.0)),
            lambda total, j, mask: _add_where(builder, total, mask, load(builder, values, j)),
            finish,
            later_first=False,
        )

    return types.void(types.int64, keys, values, factor, out), kernel(write)


def _sum_lanes(later_first):
    def write(builder, n, keys, values, out):
        _over_pairs(
            builder,
            keys,
            n,
            lambda i: variable(builder, constant(DOUBLES, 0.0)),
            lambda total, j, mask: _add_where(builder, total, mask, load(builder, values, j)),
            lambda total, i: store(builder, builder.load(total), out, i),
            later_first=later_first,
        )

    return kernel(write)


@intrinsic
def sum_before(_, n, keys, values, out):
    """Fill out with the sum of values over an item and all before it."""
    return types.void(types.int64, keys, values, out), _sum_lanes(later_first=False)


@intrinsic
def sum_after(_, n, keys, values, out):
    """Fill out with the sum of values over all items after an item."""
    return types.void(types.int64, keys, values, out), _sum_lanes(later_first=True)
