"""Ranks and sums over rankings, eight samples at once: one sample in each lane of a vector register.

With a key for every item and sample, the items before item i are those of smaller keys, and every sum over what comes before or
after is a sum over all items under a mask: no sorting, no branches, and nothing crosses lanes.

Arrays have shape (items, `LANES`), rows padded to an even number (`padded`). Keys are positive doubles, whose order is that of
their bits as integers; of equal keys the first item's is the smaller. A padding row has the key infinity and comes last; its
weight or value is zero where sums run over what comes after.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from skfairrank._kernels._jit import njit
from skfairrank._kernels.sorting import SMALL, stable_order
from skfairrank._kernels.vectors import (
    DOUBLES,
    INTS,
    LANES,
    constant,
    everywhere,
    integer,
    item,
    kernel,
    load,
    store,
    variable,
)

__all__ = [
    "accumulate_before",
    "alone",
    "padded",
    "rank_alone",
    "rank_and_share",
    "rank_lanes",
    "sum_after",
    "sum_before",
    "weigh_from",
]

SHORT = 16  # up to this size a single sample gains nothing from being ranked alone
IN_LANES = 64  # beyond this size sums run along the order of the ranks, which comparing has found


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
def _count_before(_, n, keys, rank):
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
def _rank_and_share(_, n, keys, weight, rank, share):
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
def _weigh_from(_, n, keys, weight, out):
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
def _accumulate(_, n, keys, values, factor, out):
    def write(builder, n, keys, values, factor, out):
        factors = load(
            builder, factor, integer(0)
        )  # once: it has just been written lane by lane, and the first load waits for that

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
def _sum_before(_, n, keys, values, out):
    return types.void(types.int64, keys, values, out), _sum_lanes(later_first=False)


@intrinsic
def _sum_after(_, n, keys, values, out):
    return types.void(types.int64, keys, values, out), _sum_lanes(later_first=True)


# Beyond SMALL items, sorting is faster than comparing all of them; and one sample alone need not fill eight lanes. Then ranks
# come from sorting or counting within the lane, and sums run along its order.


@njit(inline="always")
def alone(n, real):
    """Whether samples are drawn and ranked one by one."""
    return n > SMALL or (real == 1 and n > SHORT)


@njit(counts=False)
def rank_alone(n, lane, key, order, rank):
    """Fill rank[i, lane] by the n keys of one sample."""
    counted = 0
    if n <= SMALL:
        for i in range(n):
            k, smaller = key[i], 0
            for j in range(n):
                smaller += key[j] < k
            rank[i, lane] = smaller
            counted += smaller
    if n > SMALL or counted != n * (n - 1) // 2:  # long, or with ties
        stable_order(key, order, n)
        for j in range(n):
            rank[order[j], lane] = j


@njit(counts=False)
def _find_order(n, real, rank, order):
    for i in range(n):
        for lane in range(real):
            order[rank[i, lane] * LANES + lane] = i


@njit(counts=False)
def _weigh_in_order(n, real, rank, weight, order, out):
    _find_order(n, real, rank, order)
    for lane in range(real):
        out[order[(n - 1) * LANES + lane], lane] = weight[order[(n - 1) * LANES + lane]]
    for j in range(n - 2, -1, -1):
        for lane in range(real):
            i = order[j * LANES + lane]
            out[i, lane] = out[order[(j + 1) * LANES + lane], lane] + weight[i]


@njit(counts=False)
def _sum_in_order(n, real, rank, values, order, out):
    _find_order(n, real, rank, order)
    for lane in range(real):
        out[order[lane], lane] = values[order[lane], lane]
    for j in range(1, n):
        for lane in range(real):
            i = order[j * LANES + lane]
            out[i, lane] = out[order[(j - 1) * LANES + lane], lane] + values[i, lane]


@njit(counts=False)
def _sum_later_in_order(n, real, rank, values, order, out):
    _find_order(n, real, rank, order)
    for lane in range(real):
        out[order[(n - 1) * LANES + lane], lane] = 0.0
    for j in range(n - 2, -1, -1):
        for lane in range(real):
            later = order[(j + 1) * LANES + lane]
            out[order[j * LANES + lane], lane] = out[later, lane] + values[later, lane]


# These are inlined: for short queries a call would cost as much as the sums. All fill the first `real` lanes at least; `order`
# has room for n LANES numbers.


@njit(inline="always")
def rank_lanes(n, real, keys, rank):
    """Fill rank[i, lane], 0-based, for n items; samples alone have been ranked (`rank_alone`)."""
    if not alone(n, real):
        _count_before(n + n % 2, keys, rank)


@njit(inline="always")
def rank_and_share(n, real, keys, weight, order, rank, share):
    """As `rank_lanes`; and share[i, lane], the reciprocal of the weight of item i and of all after it."""
    if alone(n, real) or n > IN_LANES:
        rank_lanes(n, real, keys, rank)
        _weigh_in_order(n, real, rank, weight, order, share)
        for i in range(n):
            for lane in range(real):
                share[i, lane] = 1.0 / share[i, lane]
    else:
        _rank_and_share(n + n % 2, keys, weight, rank, share)


@njit(inline="always")
def weigh_from(n, real, keys, rank, weight, order, out):
    """Fill out[i, lane] with the weight of item i and of all after it."""
    if alone(n, real) or n > IN_LANES:
        _weigh_in_order(n, real, rank, weight, order, out)
    else:
        _weigh_from(n + n % 2, keys, weight, out)


@njit(inline="always")
def sum_before(n, real, keys, rank, values, order, out):
    """Fill out[i, lane] with the sum of values[j, lane] over item i and all before it."""
    if alone(n, real) or n > IN_LANES:
        _sum_in_order(n, real, rank, values, order, out)
    else:
        _sum_before(n + n % 2, keys, values, out)


@njit(inline="always")
def sum_after(n, real, keys, rank, values, order, out):
    """Fill out[i, lane] with the sum of values[j, lane] over the items after item i."""
    if alone(n, real) or n > IN_LANES:
        _sum_later_in_order(n, real, rank, values, order, out)
    else:
        _sum_after(n + n % 2, keys, values, out)


@njit(inline="always")
def accumulate_before(n, real, keys, rank, values, factor, order, scratch, out):
    """Add factor[lane] times what `sum_before` gives to out[i, lane]. Lanes without a sample have the factor 0."""
    if alone(n, real) or n > IN_LANES:
        _sum_in_order(n, real, rank, values, order, scratch)
        for i in range(n):
            for lane in range(real):
                out[i, lane] += factor[lane] * scratch[i, lane]
    else:
        _accumulate(n + n % 2, keys, values, factor, out)
