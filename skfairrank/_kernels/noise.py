"""Random numbers inside kernels: Philox 4x32-10, the counter-based generator of Salmon et al. (2011).

A number is a function of two things: of a key, which a `numpy.random.Generator` draws once, and of where the number is used,
that is for which query, sample and item. So results cannot depend on the order of the work, and under one key no two items,
samples or queries share a number. Loops over counters have no branches, so that LLVM vectorises them.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.vectors import LANES, bits_of, float_of

__all__ = ["exponential", "exponentials", "exponentials_of_one", "numbered", "numbered_exponentials", "philox"]

MULTIPLIER_0, MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
LANE_COUNT = np.uint64(LANES)
LOG_2 = np.log(2.0)
HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)


@njit(inline="always")
def philox(c0, c1, c2, c3, k0, k1):
    """Four random 32-bit words (in 64-bit integers) from four words of counter and two of key."""
    for _ in range(10):
        p, q = MULTIPLIER_0 * (c0 & LOW), MULTIPLIER_1 * (c2 & LOW)
        c0, c1, c2, c3 = (q >> HALF) ^ c1 ^ k0, q, (p >> HALF) ^ c3 ^ k1, p  # only the lower halves count
        k0, k1 = k0 + WEYL_0, k1 + WEYL_1
    return c0 & LOW, c1 & LOW, c2 & LOW, c3 & LOW


@njit(inner=True)
def exponential(bits):
    """-log(u) with u = (k + 1/2) / 2^52 in (0, 1), where k is the upper 52 of 64 random bits.

    It is right to two units in the last place.

    The logarithm of u = 2^e m with m in [sqrt(1/2), sqrt(2)) is e log 2 + 2 atanh(s) with s = (m - 1) / (m + 1). atanh(s) is its
    series. The terms beyond s are replaced by one polynomial in s^2, the Chebyshev interpolation on the range of s^2.
    """
    one_to_two = float_of((bits >> np.uint64(12)) | np.uint64(0x3FF0000000000000))
    x = bits_of(one_to_two - (1.0 - 2.0**-53))
    e = (x - HALF_ROOT) >> 52
    m = float_of(np.uint64(x - (e << 52)))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    tail = 0.09091479503221858 + z * (0.07664788870727461 + z * 0.07320498526019009)
    tail = 0.19999999999940618 + z * (0.14285714316559497 + z * (0.11111105043648083 + z * tail))
    tail = 0.33333333333333354 + z * tail
    return -(e * LOG_2) - (2.0 * s + 2.0 * s * z * tail)


@njit(counts=False, inner=True)
def exponentials(key, query, block, n, out):
    """Fill `out` with standard exponential variables for eight samples of n items, and of one item more if n is odd.

    Parameters
    ----------
    key : uint64
    query, block : int64
        The samples are block * LANES and the seven after it.
    n : int64
    out : ndarray of float64, shape (>= (n + n % 2) * LANES,)
        The number of item i and sample block * LANES + s is written to ``out[i * LANES + s]``.

    Notes
    -----
    The counter (b * LANES + s, block, query, 0) gives two numbers, one for item b and one for item b + ceil(n / 2) of sample
    block * LANES + s.
    """
    k0, k1, c1, c2 = key & LOW, key >> HALF, np.uint64(block), np.uint64(query)
    # Indices are unsigned. A signed one may count from the end, and then the loop would not be vectorised.
    half = np.uint64((n + n % 2) // 2 * LANES)
    for b in range(half):
        i = np.uint64(b)
        w0, w1, w2, w3 = philox(i, c1, c2, np.uint64(0), k0, k1)
        out[i] = exponential((w1 << HALF) | w0)
        out[i + half] = exponential((w3 << HALF) | w2)


@njit(inner=True)
def numbered(key, mask, number):
    """The key with a number in its last bits, that is in those that the mask leaves out."""
    return float_of((np.uint64(bits_of(key)) & mask) | number)


@njit(counts=False, inner=True)
def numbered_exponentials(key, query, block, n, scale, mask, out):
    """As `exponentials`, but each number is multiplied by `scale` (of the shape of `out`) and `numbered` by its item.

    All of this is done while the number is in a register, because another pass over `out` takes a tenth of the time of drawing.
    """
    k0, k1, c1, c2 = key & LOW, key >> HALF, np.uint64(block), np.uint64(query)
    half = np.uint64((n + n % 2) // 2 * LANES)
    for b in range(half):
        i = np.uint64(b)
        w0, w1, w2, w3 = philox(i, c1, c2, np.uint64(0), k0, k1)
        j = i + half
        out[i] = numbered(exponential((w1 << HALF) | w0) * scale[i], mask, i // LANE_COUNT)
        out[j] = numbered(exponential((w3 << HALF) | w2) * scale[j], mask, j // LANE_COUNT)


@njit(counts=False, inner=True)
def exponentials_of_one(key, query, sample, n, out):
    """The numbers of one sample alone, to the same bits. The number of item i is written to ``out[i]``."""
    k0, k1, c1, c2 = key & LOW, key >> HALF, np.uint64(sample // LANES), np.uint64(query)
    half = np.uint64((n + n % 2) // 2)
    for b in range(half):
        i = np.uint64(b)
        w0, w1, w2, w3 = philox(i * np.uint64(LANES) + np.uint64(sample % LANES), c1, c2, np.uint64(0), k0, k1)
        out[i] = exponential((w1 << HALF) | w0)
        out[i + half] = exponential((w3 << HALF) | w2)
