"""Adam's ascent of an attack, several paths at once, one in each lane of a vector register.

A step takes a square root and a division for each feature, and the next one waits for it: too long for one path alone.

Paths come in blocks. Of more than four paths each has one lane, and row i of a block's arrays holds feature i. Of up to four
each has two lanes: row i holds feature 2i in lane p and feature 2i + 1 in lane p + 4.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from skfairrank._kernels._jit import njit
from skfairrank._kernels.linear import BETA1, BETA2, TINY
from skfairrank._kernels.vectors import (
    DOUBLE,
    DOUBLES,
    INDEX,
    LANES,
    constant,
    everywhere,
    integer,
    kernel,
    load,
    store,
    variable,
)

__all__ = ["ascend"]

PAIRED = LANES // 2  # up to this many paths have two lanes each
IN_REGISTERS = 2  # directions whose sums are kept in registers


@intrinsic
def _adam(_, n_rows, rank, paired, n_steps, rho, step_size, w, basis, gap, pull, e, m, v, along):
    """Adam from e, in place, on rho/2 (gap + w . e)^2 - pull/2 ||e - A'A e||^2.

    Of shape (n_rows, LANES): w, e, and m and v, which start from zero. `basis` is A, (rank, n_rows, LANES), of IN_REGISTERS
    directions at least; `gap` and `pull` have LANES numbers, and `along` is scratch space of 2 rank rows. `paired` is 1 if paths
    have two lanes.
    """

    def write(b, n_rows, rank, paired, n_steps, rho, step_size, w, basis, gap, pull, e, m, v, along):
        zero, one = constant(DOUBLES, 0.0), ir.Constant(DOUBLE, 1.0)
        root = cgutils.get_or_insert_function(b.module, ir.FunctionType(DOUBLES, [DOUBLES]), f"llvm.sqrt.v{LANES}f64")
        other_half = ir.Constant(ir.VectorType(INDEX, LANES), [*range(PAIRED, LANES), *range(PAIRED)])
        has_halves = b.icmp_signed("==", paired, integer(1))
        moved, inside = variable(b, zero), [variable(b, zero) for _ in range(IN_REGISTERS)]
        # Directions whose sums are in memory: first those of this step, then those of the last.
        further = b.sub(rank, integer(IN_REGISTERS))

        def whole(total):
            """A path's sum over all features, from that over its features in each lane."""
            return b.fadd(total, b.select(has_halves, b.shuffle_vector(total, total, other_half), zero))

        def direction(r, k):
            return load(b, basis, b.add(b.mul(r, n_rows), k))

        def add_to_sums(k, moves):
            b.store(b.fadd(b.load(moved), b.fmul(load(b, w, k), moves)), moved)
            for r, total in enumerate(inside):
                b.store(b.fadd(b.load(total), b.fmul(direction(integer(r), k), moves)), total)
            with cgutils.for_range(b, further) as loop:
                part = b.fmul(direction(b.add(loop.index, integer(IN_REGISTERS)), k), moves)
                store(b, b.fadd(load(b, along, loop.index), part), along, loop.index)

        def take_sums():
            push = b.fmul(everywhere(b, rho), b.fadd(load(b, gap, integer(0)), whole(b.load(moved))))
            found = [whole(b.load(total)) for total in inside]
            for total in (moved, *inside):
                b.store(zero, total)
            with cgutils.for_range(b, further) as loop:
                store(b, whole(load(b, along, loop.index)), along, b.add(loop.index, further))
                store(b, zero, along, loop.index)
            return push, found

        with cgutils.for_range(b, further) as loop:
            store(b, zero, along, loop.index)
        with cgutils.for_range(b, n_rows) as loop:
            add_to_sums(loop.index, load(b, e, loop.index))
            store(b, zero, m, loop.index)
            store(b, zero, v, loop.index)
        power1, power2 = variable(b, one), variable(b, one)
        fair = variable(b, zero)
        with cgutils.for_range(b, n_steps):
            for power, beta in ((power1, BETA1), (power2, BETA2)):
                b.store(b.fmul(b.load(power), ir.Constant(DOUBLE, beta)), power)
            first = everywhere(b, b.fdiv(step_size, b.fsub(one, b.load(power1))))
            second = everywhere(b, b.fdiv(one, b.fsub(one, b.load(power2))))
            push, found = take_sums()
            with cgutils.for_range(b, n_rows) as loop:
                k, moves = loop.index, load(b, e, loop.index)
                left = moves
                for r, total in enumerate(found):
                    left = b.fsub(left, b.fmul(total, direction(integer(r), k)))
                b.store(left, fair)
                with cgutils.for_range(b, further) as deep:
                    total = load(b, along, b.add(deep.index, further))
                    part = b.fmul(total, direction(b.add(deep.index, integer(IN_REGISTERS)), k))
                    b.store(b.fsub(b.load(fair), part), fair)
                gradient = b.fsub(b.fmul(push, load(b, w, k)), b.fmul(load(b, pull, integer(0)), b.load(fair)))
                mean = b.fadd(
                    b.fmul(constant(DOUBLES, BETA1), load(b, m, k)), b.fmul(constant(DOUBLES, 1 - BETA1), gradient)
                )
                square = b.fmul(b.fmul(constant(DOUBLES, 1 - BETA2), gradient), gradient)
                square = b.fadd(b.fmul(constant(DOUBLES, BETA2), load(b, v, k)), square)
                store(b, mean, m, k)
                store(b, square, v, k)
                size = b.fadd(b.call(root, [b.fmul(second, square)]), constant(DOUBLES, TINY))
                moves = b.fadd(moves, b.fdiv(b.fmul(first, mean), size))
                store(b, moves, e, k)
                add_to_sums(k, moves)

    numbers = (types.int64, types.int64, types.int64, types.int64, types.float64, types.float64)
    return types.void(*numbers, w, basis, gap, pull, e, m, v, along), kernel(write)


@njit(counts=False)
def _spread(values, paired, out):
    """values[k], of a feature, to every lane that holds feature k; zero where there is none."""
    d = len(values)
    if not paired:
        for k in range(d):
            for lane in range(LANES):
                out[k, lane] = values[k]
        return
    for row in range(len(out)):
        even, odd = values[2 * row], values[2 * row + 1] if 2 * row + 1 < d else 0.0
        for lane in range(PAIRED):
            out[row, lane], out[row, lane + PAIRED] = even, odd


@njit(counts=False)
def _gather(e, first, last, paired, block):
    """Copy the paths first to last - 1 of e (paths, features) to a block's rows."""
    for row in range(len(block)):
        for lane in range(LANES):
            block[row, lane] = 0.0
    for p in range(first, last):
        if paired:
            for k in range(0, e.shape[1] - 1, 2):
                block[k // 2, p - first], block[k // 2, p - first + PAIRED] = e[p, k], e[p, k + 1]
            if e.shape[1] % 2:
                block[-1, p - first] = e[p, -1]
        else:
            for k in range(e.shape[1]):
                block[k, p - first] = e[p, k]


@njit(counts=False)
def _scatter(block, first, last, paired, e):
    """Copy a block's rows back to the paths first to last - 1."""
    for p in range(first, last):
        if paired:
            for k in range(0, e.shape[1] - 1, 2):
                e[p, k], e[p, k + 1] = block[k // 2, p - first], block[k // 2, p - first + PAIRED]
            if e.shape[1] % 2:
                e[p, -1] = block[-1, p - first]
        else:
            for k in range(e.shape[1]):
                e[p, k] = block[k, p - first]


@njit
def ascend(first, last, w, basis, rho, gap, pull, step_size, n_steps, e):
    """Adam on rho/2 (gap_p + w . e_p)^2 - pull_p/2 ||P e_p||^2 from e (paths, features), in place, for paths first to last - 1.

    P projects on what is orthogonal to the orthonormal rows of `basis`.
    """
    d, rank, paired = len(w), max(len(basis), IN_REGISTERS), len(e) <= PAIRED
    n_rows = (d + 1) // 2 if paired else d
    weights, directions = np.empty((n_rows, LANES)), np.zeros((rank, n_rows, LANES))
    _spread(w, paired, weights)
    for r in range(len(basis)):
        _spread(basis[r], paired, directions[r])
    block, m, v = np.empty((n_rows, LANES)), np.empty((n_rows, LANES)), np.empty((n_rows, LANES))
    along, gaps, pulls = np.empty((2 * rank, LANES)), np.zeros(LANES), np.zeros(LANES)
    for start in range(first, last, LANES):
        stop = min(start + LANES, last)
        for p in range(start, stop):
            for lane in range(p - start, LANES, PAIRED if paired else LANES):
                gaps[lane], pulls[lane] = gap[p], pull[p]
        _gather(e, start, stop, paired, block)
        _adam(n_rows, rank, int(paired), n_steps, rho, step_size, weights, directions, gaps, pulls, block, m, v, along)
        _scatter(block, start, stop, paired, e)
