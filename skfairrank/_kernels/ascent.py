"""The ascent of an attack on linear scores: Adam along paths, four paths at once, one in each lane of a vector register.

Under a linear score the move of an item depends on w, lambda, its random start and the size of its query. It does not depend on
the item itself. A path is the ascent from one start for one query size, so all items that share both share the path.

A step of Adam takes a square root and a division for each feature, and the next step has to wait for them. One path alone would
leave most of the processor idle, so four are climbed side by side.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from skfairrank._kernels._jit import njit
from skfairrank._kernels.linear import BETA1, BETA2, TINY
from skfairrank._kernels.vectors import DOUBLE, constant, everywhere, integer, item, kernel, load, store, variable

__all__ = [
    "CHANGE",
    "FULL",
    "INSIDE",
    "LAMBDA",
    "LANES",
    "MOST_SPENT",
    "N_STARTS",
    "PATH_COST",
    "RHO",
    "SUBSPACE",
    "block_rows",
    "climb",
    "path_work",
]

LANES = 4
PATHS = ir.VectorType(DOUBLE, LANES)

# Where the settings of an attack stand in the array that its kernels take. Behind the step size of a phase stands its number of
# steps.
RHO, LAMBDA, MOST_SPENT, N_STARTS, SUBSPACE, FULL = 0, 1, 2, 3, 4, 6
# The rows of the array `by_path`, (6, P). The first three hold the change of a score: before the attack, where it is zero,
# after the first phase, and after both. The fourth holds the cost of the free move. Two more rows are scratch space of
# `settle`.
BEFORE, INSIDE, CHANGE, PATH_COST = range(4)


def block_rows(n_raw: int, n_features: int, rank: int) -> int:
    """Rows of the scratch space that `climb` takes."""
    return 3 * max(n_raw, n_features) + 2 + 2 * rank


def path_work(n_raw: int, n_features: int, settings) -> float:
    """Nanoseconds that one path takes, roughly."""
    return 2.0 * float(n_raw * settings[SUBSPACE + 1] + n_features * settings[FULL + 1])


@intrinsic
def _adam(_, n, rank, n_steps, step_size, rho, directions, shrink, block):
    """Ascend rho/2 (g + b_0.x)^2 - price/2 ||z(x)||^2 by Adam, for `LANES` vectors x of n numbers, in place.

    z(x) = x - sum_r t_r (b_r.x) b_r, so the gradient of ||z(x)||^2 is 2 x - 2 sum_r (1 - (1 - t_r)^2) (b_r.x) b_r. The rows of
    `directions` are b_0 and the b_r; `shrink` holds the t_r.

    `block` has a column for each x. Its rows are, from the top: x and Adam's two moments (n rows each); g, which becomes g +
    b_0.x; price, which becomes ||z(x)||^2; the b_r.x and scratch space (rank rows each).
    """

    def write(b, n, rank, n_steps, step_size, rho, directions, shrink, block):
        zero, one = constant(PATHS, 0.0), constant(PATHS, 1.0)
        root = cgutils.get_or_insert_function(b.module, ir.FunctionType(PATHS, [PATHS]), f"llvm.sqrt.v{LANES}f64")
        starts = [integer(0)]
        for count in (n, n, n, integer(1), integer(1), rank):
            starts.append(b.add(starts[-1], count))
        x, m, v, change, price, along, push = starts
        nothing = integer(0)

        def get(part, i):
            return load(b, block, b.add(part, i), PATHS)

        def put(vector, part, i):
            store(b, vector, block, b.add(part, i))

        def direction(r, k):
            return item(b, directions, b.add(b.mul(r, n), k), PATHS)

        def each(count):
            return cgutils.for_range(b, count)

        def add_to(slot, part):
            b.store(b.fadd(b.load(slot), part), slot)

        given, prices = get(change, nothing), get(price, nothing)
        pushes, total = b.fmul(everywhere(b, rho, PATHS), given), variable(b, given)

        def start_sums():
            b.store(given, total)
            with each(rank) as loop:
                put(zero, along, loop.index)

        def add_to_sums(k, moves):
            add_to(total, b.fmul(direction(nothing, k), moves))
            with each(rank) as loop:
                part = b.fmul(direction(b.add(loop.index, integer(1)), k), moves)
                put(b.fadd(get(along, loop.index), part), along, loop.index)

        def kept(r):
            return b.fsub(one, item(b, shrink, r, PATHS))

        start_sums()
        with each(n) as loop:
            add_to_sums(loop.index, get(x, loop.index))
            put(zero, m, loop.index)
            put(zero, v, loop.index)
        power1, power2, found = (variable(b, start) for start in (one, one, zero))
        with each(n_steps):
            for power, beta in ((power1, BETA1), (power2, BETA2)):
                b.store(b.fmul(b.load(power), constant(PATHS, beta)), power)
            first = b.fdiv(everywhere(b, step_size, PATHS), b.fsub(one, b.load(power1)))
            second = b.fdiv(one, b.fsub(one, b.load(power2)))
            pushes = b.fmul(everywhere(b, rho, PATHS), b.load(total))
            with each(rank) as loop:
                r = loop.index
                lost = b.fsub(one, b.fmul(kept(r), kept(r)))
                put(b.fmul(b.fmul(prices, lost), get(along, r)), push, r)
            start_sums()
            with each(n) as loop:
                k, moves = loop.index, get(x, loop.index)
                b.store(b.fsub(b.fmul(pushes, direction(nothing, k)), b.fmul(prices, moves)), found)
                with each(rank) as deep:
                    add_to(found, b.fmul(get(push, deep.index), direction(b.add(deep.index, integer(1)), k)))
                slope = b.load(found)
                mean = b.fadd(b.fmul(constant(PATHS, BETA1), get(m, k)), b.fmul(constant(PATHS, 1 - BETA1), slope))
                square = b.fmul(b.fmul(constant(PATHS, 1 - BETA2), slope), slope)
                square = b.fadd(b.fmul(constant(PATHS, BETA2), get(v, k)), square)
                put(mean, m, k)
                put(square, v, k)
                size = b.fadd(b.call(root, [b.fmul(second, square)]), constant(PATHS, TINY))
                moves = b.fadd(moves, b.fdiv(b.fmul(first, mean), size))
                put(moves, x, k)
                add_to_sums(k, moves)
        cost = variable(b, zero)
        with each(n) as loop:
            b.store(get(x, loop.index), found)
            with each(rank) as deep:
                part = b.fmul(get(along, deep.index), direction(b.add(deep.index, integer(1)), loop.index))
                b.store(b.fsub(b.load(found), part), found)
            add_to(cost, b.fmul(b.load(found), b.load(found)))
        with each(rank) as loop:
            part = b.fmul(kept(loop.index), get(along, loop.index))
            add_to(cost, b.fmul(part, part))
        put(b.load(total), change, nothing)
        put(b.load(cost), price, nothing)

    numbers = (types.int64, types.int64, types.int64, types.float64, types.float64)
    return types.void(*numbers, directions, shrink, block), kernel(write)


@njit(counts=False)
def climb(first, last, c, e, by_path, size, raw, along, directions, shrink, settings, block):
    """Climb both phases of the attack, along the paths first to last - 1.

    The first phase is Adam on rho/2 (w.V'c)^2 from c. The second is Adam on rho/2 (w.V'c + w.e)^2 - lambda/n ||z(e)||^2 from e,
    with z(e) = e - sum_r t_r (b_r.e) b_r, where n is the path's query size.

    Parameters
    ----------
    c : (P, K), e : (P, d)
        Coefficients along the raw directions, and free moves. Both hold starts, and are moved in place.
    by_path : (6, P)
        Holds BEFORE. INSIDE, CHANGE and PATH_COST are filled in.
    size : (P,)
    raw : (K, d)
        V.
    along : (1, K)
        Scratch space.
    directions : (1 + R, d)
        w, and below it the orthonormal rows b_r of the fair metric.
    shrink : (R,)
        The metric's t.
    settings : (8,)
    block : (block_rows(K, d, R), LANES)
        Scratch space.
    """
    for r in range(len(raw)):
        along[0, r] = 0.0
        for k in range(raw.shape[1]):
            along[0, r] += raw[r, k] * directions[0, k]
    for phase in range(2):
        x, towards, rank, at, price = c, along, 0, SUBSPACE, 0.0
        if phase == 1:
            x, towards, rank, at, price = e, directions, len(shrink), FULL, 2.0 * settings[LAMBDA]
        n = x.shape[1]
        for start in range(first, last, LANES):
            for lane in range(LANES):
                p = start + lane
                if p >= last:  # lanes without a path repeat the last one
                    p = last - 1
                for k in range(n):
                    block[k, lane] = x[p, k]
                block[3 * n, lane] = by_path[phase, p]
                block[3 * n + 1, lane] = price / size[p]
            _adam(n, rank, int(settings[at + 1]), settings[at], settings[RHO], towards, shrink, block)
            for lane in range(LANES):
                p = start + lane
                if p < last:
                    for k in range(n):
                        x[p, k] = block[k, lane]
                    by_path[phase + 1, p] = block[3 * n, lane]
                    by_path[PATH_COST, p] = block[3 * n + 1, lane]
