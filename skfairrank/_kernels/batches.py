"""Mini-batches laid out one behind the other: the rows of each, and what the utility's tables say of them."""

from __future__ import annotations

from skfairrank._kernels._jit import njit

__all__ = ["pick_rows", "scale_rows"]


@njit(counts=False)
def pick_rows(chosen, order, query_offsets, gain, stay, offsets, rows, gains, stays):
    """Lay out batches: chosen[s] are the queries of batch s, offsets[s] will tell its rows apart.

    `order` numbers the rows of X, query by query; `gain` and `stay` are in that order. `stay` may be empty, as `stays` is then.
    """
    at = 0
    for s in range(len(chosen)):
        start = at
        offsets[s, 0] = 0
        for b in range(chosen.shape[1]):
            q = chosen[s, b]
            for i in range(query_offsets[q], query_offsets[q + 1]):
                rows[at] = order[i]
                gains[at] = gain[i]
                if len(stay) > 0:
                    stays[at] = stay[i]
                at += 1
            offsets[s, b + 1] = at - start


@njit(counts=False)
def scale_rows(of_query, offsets, out):
    """Multiply the rows of each query, in `out`, by the query's number."""
    for b in range(len(of_query)):
        for i in range(offsets[b], offsets[b + 1]):
            out[i] *= of_query[b]
