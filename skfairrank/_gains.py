"""Utilities of a ranking: gain of a relevance, discount of a rank, and the ideal that normalises them.

A utility here is position-based: the sum over items of gain times discount of the rank. Its expectation under any policy is
then the sum of gains times expected discounts, which is all that metrics and policy gradients need to know of it.
"""

from __future__ import annotations

import numbers

import numpy as np

from skfairrank._kernels.metrics import ideal_sums
from skfairrank._kernels.sorting import descending_order as _descending_order
from skfairrank._threads import over_queries

__all__ = [
    "GAINS",
    "descending_order",
    "discounts",
    "gains",
    "ideal_dcg",
    "sorting_work",
]

_MOST_GRADES = 50


def _exp2_gain(y: np.ndarray, largest: np.ndarray) -> np.ndarray:
    # Divided by 2^largest, which cancels in NDCG: 2^300 - 1 must not overflow. Near zero 2^y - 1 would lose its digits.
    small = np.minimum(y, 0.5)
    return np.where(
        y < 0.5, np.expm1(small * np.log(2.0)) * np.exp2(-largest), np.exp2(y - largest) - np.exp2(-largest)
    )


def _linear_gain(y: np.ndarray, largest: np.ndarray) -> np.ndarray:
    return y / np.where(largest > 0, largest, 1.0)


def _as_grades(y: np.ndarray) -> np.ndarray | None:
    """Relevances as ints where all are whole and so small that their gains 2^y - 1 are exact: nearly all data."""
    if not y.max() < _MOST_GRADES:
        return None
    grades = y.astype(np.int64)
    return grades if (grades == y).all() else None


GAINS = {"exp2": _exp2_gain, "linear": _linear_gain}


def gains(y: np.ndarray, offsets: np.ndarray, gain: str = "exp2") -> np.ndarray:
    """Gains of relevances, each query's scaled by a constant of its own so that none overflows.

    Parameters
    ----------
    y : ndarray of float64, shape (n_rows,)
        Relevances >= 0, grouped by query.
    offsets : ndarray of int64, shape (n_queries + 1,)
    gain : {"exp2", "linear"}
        ``2 ** y - 1`` (divided by ``2 ** max(y)``, but for small whole relevances) or ``y`` (divided by ``max(y)``).
    """
    if gain not in GAINS:
        raise ValueError(f"gain={gain!r}: choose one of {sorted(GAINS)}.")
    if gain == "exp2" and (grades := _as_grades(y)) is not None:
        return (2.0 ** np.arange(_MOST_GRADES) - 1.0)[grades]
    of_query, sizes = np.maximum.reduceat(y, offsets[:-1]), np.diff(offsets)
    largest = np.repeat(of_query, sizes)
    out = GAINS[gain](y, largest)
    if of_query.min() < 1e-100 and (tiny := (of_query > 0) & (of_query < 1e-100)).any():
        # There both gains are proportional to y, to all digits, and 2^y - 1 may have lost its own to underflow.
        out = np.where(np.repeat(tiny, sizes), _linear_gain(y, largest), out)
    return out


def discounts(n: int, k: int | None = None) -> np.ndarray:
    """The table 1 / log2(1 + rank) for ranks 1 to n, zero beyond rank k.

    Raises
    ------
    ValueError
        If `k` is neither None nor an integer >= 1.
    """
    table = 1.0 / np.log2(np.arange(n) + 2.0)
    if k is not None:
        if not isinstance(k, numbers.Integral) or isinstance(k, bool) or k < 1:
            raise ValueError(f"k={k!r}: give an integer >= 1 (the number of ranks that count) or None for all.")
        table[int(k) :] = 0.0
    return table


def ideal_dcg(gain: np.ndarray, offsets: np.ndarray, discount: np.ndarray) -> np.ndarray:
    """DCG of each query's best ranking, over all of its rows, shape (n_queries,)."""
    ideal = np.empty(len(offsets) - 1)
    over_queries(ideal_sums, offsets, sorting_work(offsets), gain, offsets, discount, ideal)
    return ideal


def descending_order(s: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Positions among grouped rows, query by query in descending order of `s`, ties in given order, shape (n_rows,)."""
    order = np.empty(len(s), np.int64)
    over_queries(_descending_order, offsets, sorting_work(offsets), s, offsets, order, 0)
    return order


def sorting_work(offsets: np.ndarray) -> float:
    """Rough time of sorting within queries, in nanoseconds."""
    n_rows, n_queries = int(offsets[-1] - offsets[0]), len(offsets) - 1
    return n_rows * min(3.0 + 0.3 * n_rows / n_queries, 30.0)
