"""The wealth of a gambler who bets that the mean of values in [0, 1] is below m."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri_exp

from skfairrank._kernels import njit

# What a bet can lose at most, as a share of the wealth: a gambler who stakes all is ruined by a single 1.
_LARGEST_STAKE = 0.85
# How much more than the target a gambler aims at: a share of it is out of reach until the last value.
_AIM = math.log(1.05)
# An option that pays 1 if a normal variable exceeds a limit has the price Phi(u). Where that is exp(-l), its logarithm changes
# with the variable by phi(u) / Phi(u), in units of the standard deviation: a gambler who bets so ends with all or nothing. In
# steps of the root of l.
_STEPS = 100.0
_SLOPE = np.array(
    [math.exp(l - 0.5 * ndtri_exp(-l) ** 2) / math.sqrt(2.0 * math.pi) for l in (np.arange(1, 2000) / _STEPS) ** 2]
)


@njit
def log_wealth(m, values, weight, target):
    """The logarithm of the wealth after all values, at most `target`; as soon as that is reached, the gambler stops.

    A bet is what would reach the target with the values that are left, if they vary as those before it (after the STaR bets of
    Voracek and Orabona 2025). It knows only values before it, so that the wealth has expectation at most 1 where the mean is m
    or more.

    Parameters
    ----------
    m : float
        In (0, 1).
    values, weight : ndarray, shape (n,)
        Stakes are proportional to the weights, whose squares have the mean 1.
    target : float
        > 0.
    """
    left, most = np.sum(weight * weight), _LARGEST_STAKE / ((1.0 - m) * weight.max())
    # Before there is any value, two of mean m that vary as much as they can.
    count, total, squares, wealth = 2.0, 2.0 * m, 2.0 * m * (1.0 - m), 0.0
    for i in range(len(values)):
        at = min(_STEPS * math.sqrt(target + _AIM - wealth), 1997.0)
        k = int(at)
        slope = _SLOPE[k - 1] + (at - k) * (_SLOPE[k] - _SLOPE[k - 1])
        stake = min(slope * math.sqrt(count / (max(left, weight[i] ** 2) * squares)), most)
        wealth += math.log1p(stake * weight[i] * (m - values[i]))
        if wealth >= target:
            return target
        square = weight[i] ** 2
        left -= square
        count += square
        total += square * values[i]
        squares += square * (values[i] - total / count) ** 2
    return wealth
