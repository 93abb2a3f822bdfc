"""Checks of plain numbers that the generators share; each message says what came and what was expected."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np

__all__ = ["check_count", "check_number"]


def check_count(value, name: str, *, at_least: int = 1) -> int:
    """`value` as an int, if it is a whole number of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise ValueError(f"{name}={value!r}: give a whole number of at least {at_least}.")
    return int(value)


def check_number(
    value, name: str, *, above: float | None = None, low: float = -math.inf, high: float = math.inf
) -> float:
    """`value` as a float, if it lies in [low, high] and, where `above` is given, is larger than that."""
    ok = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    ok = ok and bool(low <= value <= high)  # false for NaN
    if not ok or (above is not None and value <= above):
        bounds = f"in {'[' if above is None else '('}{low if above is None else above:g}, {high:g}]"
        raise ValueError(f"{name}={value!r}: give a number {bounds}.")
    return float(value)
