"""The ascent of an attack on linear scores: Adam along paths, four paths at once, one in each lane of a vector register.

A linear score moves an item by what w, lambda, its random start and the size of its query say; the item itself plays no part. A
path is the ascent from one start for one query size, and all items that share both share the path.

A step of Adam takes a square root and a division for each feature, and the next step waits for them: one path alone would leave
most of the processor idle.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from skfairrank._kernels._jit import njit
from skfairrank._kernels.linear import BETA1, BETA2, TINY
from skfairrank._kernels.vectors import DOUBLE, constant, everywhere, integer, kernel, load, store, variable

__all__ = [
    "FULL_STEP",
    "FULL_STEPS",
    "LAMBDA",
    "LANES",
    "MOST_SPENT",
    "N_STARTS",
    "RHO",
    "SUBSPACE_STEP",
    "SUBSPACE_STEPS",
    "block_rows",
    "climb",
    "climb_work",
]

LANES = 4
PATHS = ir.VectorType(DOUBLE, LANES)

# The places of an attack's numbers in the array `settings` that its kernels take.
RHO, LAMBDA, MOST_SPENT, N_STARTS, SUBSPACE_STEP, SUBSPACE_STEPS, FULL_STEP, FULL_STEPS = range(8)


def block_rows(n_raw: int, n_features: int, rank: int) -> int:
    """Rows of the scratch space that `climb` takes: what `_adam` needs in either phase, and the slopes along raw directions."""
    return 3 * max(n_raw, n_features) + 4 * (rank + 1) + 1 + -(-n_raw // LANES)


def climb_work(n_raw: int, n_features: int, settings) -> float:
    """Nanoseconds of one path, roughly."""
    return 2.0 * float(settings[SUBSPACE_STEPS] * n_raw + settings[FULL_STEPS] * n_features)


@intrinsic
def _adam(_, n, n_directions, n_steps, step_size, directions, at, block):
    """Adam, upwards, on sum_r factor_r/2 (base_r + b_r . e)^2 + pull/2 ||e||^2 for `LANES` vectors e of n features, in place.

    The directions b_r lie one behind the other in the data of `directions`, from its number `at` on. The rows of `block`, with
    a column for each e, are: e, and Adam's two moments (n rows each); base, factor, the sums base_r + b_r . e, which are those
    of the last e at the end, and scratch space (n_directions rows each); pull.
    """

    def write(b, n, n_directions, n_steps, step_size, directions, at, block):
        zero, one = constant(PATHS, 0.0), ir.Constant(DOUBLE, 1.0)
        root = cgutils.get_or_insert_function(b.module, ir.FunctionType(PATHS, [PATHS]), f"llvm.sqrt.v{LANES}f64")
        starts, rows = [integer(0)], (n, n, n, n_directions, n_directions, n_directions, n_directions)
        for count in rows:
            starts.append(b.add(starts[-1], count))
        e, m, v, base, factor, total, push, pull = starts

        def get(part, i):
            return load(b, block, b.add(part, i), PATHS)

        def put(vector, part, i):
            store(b, vector, block, b.add(part, i))

        def direction(r, k):
            return everywhere(b, b.load(b.gep(directions, [b.add(at, b.add(b.mul(r, n), k))])), PATHS)

        def start_sums():
            with cgutils.for_range(b, n_directions) as loop:
                put(get(base, loop.index), total, loop.index)

        def add_to_sums(k, moves):
            with cgutils.for_range(b, n_directions) as loop:
                part = b.fmul(direction(loop.index, k), moves)
                put(b.fadd(get(total, loop.index), part), total, loop.index)

        start_sums()
        with cgutils.for_range(b, n) as loop:
            add_to_sums(loop.index, get(e, loop.index))
            put(zero, m, loop.index)
            put(zero, v, loop.index)
        power1, power2, slope = variable(b, one), variable(b, one), variable(b, zero)
        pulls = get(pull, integer(0))
        with cgutils.for_range(b, n_steps):
            for power, beta in ((power1, BETA1), (power2, BETA2)):
                b.store(b.fmul(b.load(power), ir.Constant(DOUBLE, beta)), power)
            first = everywhere(b, b.fdiv(step_size, b.fsub(one, b.load(power1))), PATHS)
            second = everywhere(b, b.fdiv(one, b.fsub(one, b.load(power2))), PATHS)
            with cgutils.for_range(b, n_directions) as loop:
                put(b.fmul(get(factor, loop.index), get(total, loop.index)), push, loop.index)
            start_sums()
            with cgutils.for_range(b, n) as loop:
                k, moves = loop.index, get(e, loop.index)
                b.store(b.fmul(pulls, moves), slope)
                with cgutils.for_range(b, n_directions) as deep:
                    part = b.fmul(get(push, deep.index), direction(deep.index, k))
                    b.store(b.fadd(b.load(slope), part), slope)
                gradient = b.load(slope)
                mean = b.fadd(b.fmul(constant(PATHS, BETA1), get(m, k)), b.fmul(constant(PATHS, 1 - BETA1), gradient))
                square = b.fmul(b.fmul(constant(PATHS, 1 - BETA2), gradient), gradient)
                square = b.fadd(b.fmul(constant(PATHS, BETA2), get(v, k)), square)
                put(mean, m, k)
                put(square, v, k)
                size = b.fadd(b.call(root, [b.fmul(second, square)]), constant(PATHS, TINY))
                moves = b.fadd(moves, b.fdiv(b.fmul(first, mean), size))
                put(moves, e, k)
                add_to_sums(k, moves)

    numbers = (types.int64, types.int64, types.int64, types.float64)
    return types.void(*numbers, directions, types.int64, block), kernel(write)


@njit(counts=False)
def _ascend(n, n_directions, n_steps, step_size, directions, at, block):
    """`_adam`, as a function that both phases call, so that it is compiled once."""
    _adam(n, n_directions, n_steps, step_size, directions, at, block)


@njit(counts=False)
def climb(first, last, starts, size, raw, directions, shrink, settings, e, paths, block):
    """Subspace attack, then full attack, along the paths first to last - 1.

    The subspace attack is Adam on rho/2 (w.V'c)^2 from c, the full attack Adam on rho/2 (w.V'c + w.e)^2 - lambda/n ||z(e)||^2
    with z(e) = e - sum_r t_r (b_r.e) b_r, where n is the path's query size.

    Parameters
    ----------
    starts : (P, K)
        Coefficients c along the raw directions V, moved in place. Without raw directions: the starts of e, (P, d). Else e starts
        from zero.
    size : (P,)
    raw : (K, d)
    directions : (1 + R, d)
        w, and below it the orthonormal rows b_r of the fair metric.
    shrink : (R,)
        The metric's t.
    e : (P, d)
        Filled with the free moves.
    paths : (5, P)
        Rows 0 to 2 are filled: the change w.V'c of a score by the subspace attack, the change after both, and the cost
        ||z(e)||^2.
    block : (block_rows(K, d, R), LANES)
        Scratch space.
    """
    (K, d), R = raw.shape, len(shrink)
    rho, slopes = settings[RHO], len(block) - (K + LANES - 1) // LANES
    for r in range(K):
        total = 0.0
        for k in range(d):
            total += raw[r, k] * directions[0, k]
        block[slopes + r // LANES, r % LANES] = total
    base, factor, found, pull = 3 * d, 3 * d + 1 + R, 3 * d + 2 * (1 + R), 3 * d + 4 * (1 + R)
    for start in range(first, last, LANES):
        n_here = last - start if last - start < LANES else LANES
        if K > 0:
            for lane in range(LANES):
                for r in range(K):
                    block[r, lane] = starts[start + lane, r] if lane < n_here else 0.0
                block[3 * K, lane], block[3 * K + 1, lane], block[3 * K + 4, lane] = 0.0, rho, 0.0
            _ascend(K, 1, int(settings[SUBSPACE_STEPS]), settings[SUBSPACE_STEP], block, slopes * LANES, block)
            for lane in range(n_here):
                paths[0, start + lane] = block[3 * K + 2, lane]
                for r in range(K):
                    starts[start + lane, r] = block[r, lane]
        for lane in range(LANES):
            here, p = lane < n_here, start + lane
            if K == 0 and here:
                paths[0, p] = 0.0
            for k in range(d):
                block[k, lane] = starts[p, k] if K == 0 and here else 0.0
            block[base, lane], block[factor, lane] = paths[0, p] if here else 0.0, rho
            block[pull, lane] = -2.0 * settings[LAMBDA] / size[p] if here else 0.0
            for r in range(R):
                block[base + 1 + r, lane] = 0.0
                block[factor + 1 + r, lane] = -block[pull, lane] * (1.0 - (1.0 - shrink[r]) ** 2)
        _ascend(d, 1 + R, int(settings[FULL_STEPS]), settings[FULL_STEP], directions, 0, block)
        for lane in range(n_here):
            p, cost = start + lane, 0.0
            for k in range(d):
                e[p, k] = left = block[k, lane]
                for r in range(R):
                    left -= block[found + 1 + r, lane] * directions[1 + r, k]
                cost += left * left
            for r in range(R):
                cost += ((1.0 - shrink[r]) * block[found + 1 + r, lane]) ** 2
            paths[1, p], paths[2, p] = block[found, lane], cost
