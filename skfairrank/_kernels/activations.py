"""The activations of a network's units, with their slopes.

NumPy's tanh is slow where a processor has no AVX-512, because it then calls libm's for one number after the other.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.vectors import bits_of, float_of

__all__ = ["tanh_and_slope"]

# Multiples of ln 2 are subtracted in two parts. The first part ends in zero bits, so that its multiples are exact.
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
ROUND = 1.5 * 2.0**52  # a number that is added to this is rounded to an integer, which the sum's last bits hold
ONE, MANTISSA = np.uint64(1023 << 52), np.uint64(52)
LARGEST = 40.0  # tanh(20) is 1 to the last bit


@njit(inner=True)
def _tanh(x):
    """(e^y - 1) / (e^y + 1) with y = 2 |x| = k ln 2 + r.

    On |r| <= ln 2 / 2, e^r - 1 = 2 r / (2 - c) with c = r - r^2 P, where P is fdlibm's Remez polynomial of r^2. So e^y - 1 is
    above / (2 - c) with above = 2^k 2 r + (2^k - 1) (2 - c), and one division is enough.
    """
    y = 2.0 * abs(x)
    y = LARGEST if y > LARGEST else y  # NaN stays NaN
    rounded = y * LOG2_E + ROUND
    k = rounded - ROUND
    r = (y - k * LN2_HIGH) - k * LN2_LOW
    power = float_of((np.uint64(bits_of(rounded)) << MANTISSA) + ONE)
    z = r * r
    tail = 6.61375632143793436117e-05 + z * (-1.65339022054652515390e-06 + z * 4.13813679705723846039e-08)
    c = r - z * (1.66666666666666019037e-01 + z * (-2.77777777770155933842e-03 + z * tail))
    above = 2.0 * power * r + (power - 1.0) * (2.0 - c)
    result = above / (above + 2.0 * (2.0 - c))
    return -result if x < 0.0 else result


@njit(counts=False)
def tanh_and_slope(x, z, slope):
    """Fill in z = tanh(x), right to a few units in the last place, and slope = 1 - z^2. The arrays are of one length."""
    for i in range(np.uint64(len(x))):
        value = _tanh(x[i])
        z[i], slope[i] = value, 1.0 - value * value
