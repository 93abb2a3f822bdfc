"""Eight numbers at once: LLVM's vector types, for loops that no compiler vectorises by itself.

LLVM vectorises innermost loops over arrays by itself. Where sums must stay in registers while another loop runs, it does not.
Such loops are written in LLVM's own instructions, through numba's `intrinsic`. Every processor has these types, in registers of
some width, and results do not depend on the width.

In arrays the numbers of a vector lie side by side: they are row i of an array with as many columns as the vector has lanes.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic

__all__ = [
    "DOUBLE",
    "DOUBLES",
    "INDEX",
    "INT",
    "INTS",
    "LANES",
    "bits_of",
    "constant",
    "everywhere",
    "float_of",
    "integer",
    "item",
    "kernel",
    "load",
    "store",
    "variable",
]

LANES = 8
INT, DOUBLE, INDEX = ir.IntType(64), ir.DoubleType(), ir.IntType(32)
INTS, DOUBLES = ir.VectorType(INT, LANES), ir.VectorType(DOUBLE, LANES)


def kernel(write):
    """Code of an intrinsic that returns nothing. `write(builder, *values)` writes it; arrays come as pointers to their data."""

    def code(context, builder, signature, values):
        for kind in signature.args:
            if isinstance(kind, types.Array) and (kind.layout != "C" or kind.dtype not in (types.int64, types.float64)):
                raise NumbaTypeError(
                    f"{kind}: vectors are read from and written to contiguous arrays of int64 or float64 only"
                )
        given = [
            context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
            for kind, value in zip(signature.args, values, strict=True)
        ]
        write(builder, *given)
        return context.get_dummy_value()

    return code


def integer(value):
    return ir.Constant(INT, value)


def constant(kind, value):
    """A vector of equal numbers."""
    return ir.Constant(kind, [value] * kind.count)


def everywhere(builder, value, kind=DOUBLES):
    """A number, in all lanes."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(
        one, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(INDEX, kind.count), [0] * kind.count)
    )


def item(builder, data, i, kind=DOUBLES):
    """data[i], in all lanes."""
    return everywhere(builder, builder.load(builder.gep(data, [i])), kind)


def _row(builder, data, i, kind):
    return builder.bitcast(builder.gep(data, [builder.mul(i, integer(kind.count))]), kind.as_pointer())


def load(builder, data, i, kind=DOUBLES):
    """Row i."""
    return builder.load(_row(builder, data, i, kind), align=8)


def store(builder, vector, data, i):
    builder.store(vector, _row(builder, data, i, vector.type), align=8)


def variable(builder, value):
    """A variable to load from and store to, which LLVM keeps in a register."""
    slot = cgutils.alloca_once(builder, value.type)
    builder.store(value, slot)
    return slot


@intrinsic
def float_of(_, bits):
    """The double with these bits. A scalar's `view` would go through memory, and its loop would not be vectorised."""
    return types.float64(types.uint64), lambda context, builder, _, values: builder.bitcast(values[0], DOUBLE)


@intrinsic
def bits_of(_, x):
    """The bits of a double, as a signed integer."""
    return types.int64(types.float64), lambda context, builder, _, values: builder.bitcast(values[0], INT)
