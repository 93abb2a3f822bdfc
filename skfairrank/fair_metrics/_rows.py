"""Rows in an order of their own: what is learned from them must not depend, to the last bit, on how they were shuffled.

Rows are put in the order of a hash of their content. That costs a pass over X and no copy, where sorting all columns would cost
several copies; equal rows come together, so that each can be counted once; and the first rows of that order are a random sample.
"""

from __future__ import annotations

import numpy as np

__all__ = ["blocks_of", "canonical_order"]

_BLOCK = 1 << 14  # rows at once
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(29)


def canonical_order(X: np.ndarray, values: np.ndarray, *, distinct: bool) -> np.ndarray:
    """Row numbers in an order that depends on the content of rows alone.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_rows, n_features)
        May be memory-mapped; it is read by blocks.
    values : ndarray of float64, shape (n_rows,)
        One more column, which belongs to the content.
    distinct : bool
        Whether to keep one of several equal rows.

    Returns
    -------
    order : ndarray of int64, shape (at most n_rows,)
    """
    hashes = np.empty(len(X), np.uint64)
    for start in range(0, len(X), _BLOCK):
        here = slice(start, start + _BLOCK)
        hashes[here] = _hash_rows(X[here], values[here])
    order = np.argsort(hashes, kind="stable")
    if not distinct:
        return order
    ordered = hashes[order]
    repeats = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    keep = np.ones(len(order), bool)
    for start in range(0, len(repeats), _BLOCK):
        at = repeats[start : start + _BLOCK]
        row, before = order[at], order[at - 1]
        keep[at] = ~((X[row] == X[before]).all(axis=1) & (values[row] == values[before]))
    return order[keep]


def blocks_of(X: np.ndarray, order: np.ndarray):
    """Blocks of the rows of X in this order, as (positions in `order`, rows as float64)."""
    for start in range(0, len(order), _BLOCK):
        here = slice(start, min(start + _BLOCK, len(order)))
        yield here, X[order[here]].astype(np.float64, copy=False)


def _hash_rows(X: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A number of 64 bits for each row, column after column by multiplication and shift (the mixing of SplitMix64)."""
    hashes = np.full(len(X), _ODD)
    columns = np.asfortranarray(np.column_stack([X, values]), dtype=np.float64)
    columns += 0.0  # minus zero equals zero
    for bits in columns.view(np.uint64).T:
        hashes ^= bits
        hashes *= _MIX
        hashes ^= hashes >> _HALF
        hashes *= _ODD
        hashes ^= hashes >> np.uint64(32)
    return hashes
