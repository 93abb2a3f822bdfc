"""Linear scores h(x) = w . x of rows of X, and the product with their Jacobian. X may be float32 or memory-mapped."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels import linear as _linear
from skfairrank._threads import over_range

__all__ = ["all_values", "pull_back", "values"]

# Rows whose gradients are summed one after the other; sums of such blocks are added in their order, on any number of threads.
_BLOCK = 4096


def values(X: np.ndarray, rows: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Scores of the rows of X with these numbers, shape (len(rows),)."""
    out = np.empty(len(rows))
    over_range(_linear.linear_scores, len(rows), _work(len(rows), len(w)), X, rows, w, out)
    return out


def all_values(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Scores of all rows of X, to the same bits as `values`."""
    out = np.empty(len(X))
    over_range(_linear.all_scores, len(X), _work(len(X), len(w)), X, w, out)
    return out


def pull_back(X: np.ndarray, rows: np.ndarray, g: np.ndarray, scale: float, out: np.ndarray) -> None:
    """out = scale * sum_i g[i] X[rows[i]]: the gradient in the weights from that in the scores."""
    n_blocks = -(-len(rows) // _BLOCK)
    if n_blocks <= 1:
        _linear.pull_back(X, rows, g, scale, out)
        return
    parts = np.empty((n_blocks, len(out)))
    over_range(_linear.pull_back_blocks, n_blocks, _work(len(rows), len(out)), X, rows, g, scale, _BLOCK, parts)
    _linear.add_up(parts, out)


def _work(n_rows: int, n_features: int) -> float:
    """Nanoseconds, roughly."""
    return n_rows * (5.0 + 0.25 * n_features)
