"""The search for the nearest other query of every query, with the pairing of their items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.plans import cheapest_transport, fill_cost, lower_bound, room_for
from skfairrank._kernels.ragged import widest

__all__ = ["Items", "nearest", "nearest_nanoseconds", "quantile_means", "quantile_nanoseconds"]

# Sums of squares are right to some units in the last place. Distances that differ by less than this count as equal.
SLACK = 1e-12


class Items(NamedTuple):
    """Rows of queries, one query behind the other.

    Parameters
    ----------
    X : ndarray of float64, shape (n_rows, n_features)
        Features as given.
    fair : ndarray of float64
        What the fair metric measures, shape (n_rows, n_features). For the queries among which is searched it is flat instead: the
        blocks of `plans.transposed_blocks`.
    offsets : ndarray of int64, shape (n_queries + 1,)
    """

    X: np.ndarray
    fair: np.ndarray
    offsets: np.ndarray


def quantile_nanoseconds(n_rows, n_features):
    """About how long `quantile_means` takes on one thread, where every feature of every query is sorted."""
    return 20.0 * n_rows * n_features


@njit
def quantile_means(first, last, blocks, offsets, n_bins, out):
    """Fill out[q, k * n_bins + b] with the mean of feature k's quantile function over the b-th of n_bins equal bins of
    mass.

    The means are divided by sqrt(n_bins). Then the squared distance between the rows of two queries is at most d_Q, for two
    reasons. In each feature every plan costs at least the one-dimensional transport cost, which is the integral of the squared
    difference of the quantile functions. And means over bins only lower that integral (Jensen). For two queries of n_bins
    items the squared distance is the sum of these costs itself.
    """
    d = out.shape[1] // n_bins
    scale = 1.0 / np.sqrt(n_bins)
    for q in range(first, last):
        lo, m = offsets[q], offsets[q + 1] - offsets[q]
        for k in range(d):
            values = np.sort(blocks[d * lo + k * m : d * lo + (k + 1) * m])
            at, left = 0, n_bins  # an item has n_bins units of mass, a bin takes m
            for b in range(n_bins):
                room, total = m, 0.0
                while room > 0:
                    step = min(room, left)
                    total += step * values[at]
                    room -= step
                    left -= step
                    if left == 0:
                        at, left = at + 1, n_bins
                out[q, k * n_bins + b] = total / m * scale


@njit
def _same_rows(X, lo, Y, start, n, taken):
    """Whether n rows of X are n rows of Y in some order."""
    taken[:n] = 0
    for i in range(n):
        found = False
        for j in range(n):
            if taken[j] == 0:
                k = 0
                while k < X.shape[1] and X[lo + i, k] == Y[start + j, k]:
                    k += 1
                if k == X.shape[1]:
                    taken[j] = 1
                    found = True
                    break
        if not found:
            return False
    return True


@njit
def _heaviest_partners(flow, n, m, start, partner):
    """Fill partner[i] with the row, from `start` on, to which item i gives most of its mass; the first of several."""
    for i in range(n):
        heaviest = 0
        for k in range(1, m):
            if flow[i, k] > flow[i, heaviest]:
                heaviest = k
        partner[i] = start + heaviest


def nearest_nanoseconds(n_rows, n_rows_other, n_features):
    """About how long `nearest` takes on one thread, if bounds spare most pairs of items."""
    return float(n_rows) * n_rows_other * (2.0 + n_features) / 4.0


@njit
def nearest(first, last, ours, others, bounds, blur, exclude_identical, best, distance, partner):
    """For queries first to last - 1, fill in the nearest other query, its distance, and each row's partner in the plan.

    bounds[q] holds lower bounds of the distances, and is overwritten. `blur` is the rounding error of a distance between two
    projected items. If several queries are at the same distance, up to rounding, the first is taken. best[q] is -1 where every
    other query is identical.
    """
    offsets, offsets_other = ours.offsets, others.offsets
    room = room_for(widest(first, last, offsets), widest(0, len(offsets_other) - 1, offsets_other))
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        bound, queue = bounds[q], np.empty(0, np.int64)
        chosen, at, least, most = -1, 0, np.inf, np.inf  # distances between least and most are equal up to rounding
        while True:
            if chosen < 0:  # begin with the most promising query, so that there is a distance to beat
                j = np.argmin(bound)
                if bound[j] == np.inf:
                    break
            else:
                if at == 0:
                    left = np.flatnonzero(bound <= most)
                    queue = left[np.argsort(bound[left])]
                if at == len(queue) or bound[queue[at]] > most:
                    break
                j = queue[at]
                at += 1
            bound[j] = np.inf
            start, m = offsets_other[j], offsets_other[j + 1] - offsets_other[j]
            fill_cost(ours.fair, lo, n, others.fair, ours.fair.shape[1] * start, m, room.cost)
            if lower_bound(n, m, room) > most:
                continue
            found = cheapest_transport(n, m, most, room)
            if found > most:
                continue
            if (
                exclude_identical
                and found == 0.0
                and n == m
                and _same_rows(ours.X, lo, others.X, start, n, room.ints[0])
            ):
                continue
            better = chosen < 0 or found < least - (most - least)
            if found < least:
                least = found
                most = least + SLACK * least + (2.0 * np.sqrt(least) + blur) * blur
            if better or j < chosen:
                chosen, distance[q] = int(j), found
                _heaviest_partners(room.flow, n, m, start, partner[lo : lo + n])
        best[q] = chosen
