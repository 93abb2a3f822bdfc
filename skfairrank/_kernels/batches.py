"""Weights of queries, for their rows."""

from __future__ import annotations

from skfairrank._kernels._jit import njit

__all__ = ["scale_rows"]


@njit(counts=False)
def scale_rows(of_query, offsets, out):
    """Multiply the rows of each query, in `out`, by the query's number."""
    for b in range(len(of_query)):
        for i in range(offsets[b], offsets[b + 1]):
            out[i] *= of_query[b]
