"""Numbers and findings in plain words."""

from __future__ import annotations

import math

__all__ = ["at_most", "count", "decimal", "listed", "percent", "with_error"]

_MISSING = "–"


def percent(share: float, digits: int = 1) -> str:
    """A share in per cent, by default with one decimal.

    >>> percent(0.0342), percent(0.0), percent(0.0001), percent(0.951, 0)
    ('3.4%', '0%', 'less than 0.1%', '95%')
    """
    if math.isnan(share):
        return _MISSING
    if 0.0 < share < 0.001:
        return "less than 0.1%"
    return f"{100 * share:.{digits}f}%".replace(".0%", "%")


def at_most(bound: float) -> str:
    """An upper bound in per cent, rounded up, so that it remains one.

    >>> at_most(0.05201), at_most(0.052)
    ('5.3%', '5.2%')
    """
    return f"{math.ceil(1000 * bound - 1e-9) / 10:.1f}%".replace(".0%", "%")


def decimal(value: float, digits: int = 3) -> str:
    """A number, or a dash where there is none."""
    return _MISSING if math.isnan(value) else f"{value:.{digits}f}"


def with_error(value: float, error: float, digits: int = 3) -> str:
    """A number and its standard error."""
    if math.isnan(value) or math.isnan(error):
        return decimal(value, digits)
    return f"{decimal(value, digits)} ± {decimal(error, digits)}"


def count(n: int, one: str, several: str | None = None) -> str:
    """A number of things.

    >>> count(1, "list"), count(2500, "list")
    ('1 list', '2,500 lists')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def listed(names) -> str:
    """Names as a sentence has them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = map(str, names)
    return f"{', '.join(first)} and {last}" if first else last
