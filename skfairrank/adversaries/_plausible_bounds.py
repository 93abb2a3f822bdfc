"""The largest regulariser of linear scores within the bounds of a closed form and among plausible rows, as far as it is found.

Here it matters where items lie. Within a box the largest change of an item's score, up or down, is a linear programme. What is
left is which way items go, where scores are compared centered, and how queries share a budget: both are sought by ascent from
random starts. So the value is exact for boxes and `score_distance="squared"`, and else a lower bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from skfairrank._queries import centred
from skfairrank.adversaries._box import Box
from skfairrank.adversaries._plausible import Reach

__all__ = ["Rows", "ascend_among"]

# Items of one linear programme, and rounds of projections in which bounds are met at the end and before.
_ITEMS, _ROUNDS, _QUICK_ROUNDS = 200, 200, 4


class Rows(NamedTuple):
    """The items that are attacked, query after query.

    Parameters
    ----------
    X : ndarray of float64, shape (n_rows, n_features)
    offsets : ndarray of int64, shape (n_queries + 1,)
    reach : Reach
        Where each of them may go.
    is_centered : bool
        Whether changes of scores count less their mean in each query.
    """

    X: np.ndarray
    offsets: np.ndarray
    reach: Reach
    is_centered: bool


def ascend_among(bounds, w, rows: Rows, *, n_steps: int, n_starts: int, rng) -> float:
    """The largest mean over queries of half the sum of squared score changes that it finds.

    Parameters
    ----------
    bounds : Box or Budget
    w : ndarray of float64, shape (n_features,)
        Weights of a linear score.
    rows : Rows
    n_steps, n_starts : int
    rng : numpy.random.Generator
    """
    if not isinstance(bounds, Box):
        return _in_budget(bounds, w, rows, n_steps, n_starts, rng)
    down, up = _extremes(bounds, w, rows)
    queries = [slice(first, last) for first, last in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
    if not rows.is_centered:
        return float(0.5 * np.sum(np.maximum(down, up) ** 2) / len(queries))
    return float(np.mean([_centered(down[items], up[items], n_starts, rng) for items in queries]))


def _extremes(box, w, rows):
    """How far the score of each item can fall and rise, both >= 0."""
    most = box.subspace_radius * np.abs(box.raw @ w).sum() + box.reach @ np.abs(w)  # of an item without other bounds
    found = np.zeros((2, len(rows.X)))
    for at in range(0, len(rows.X), _ITEMS):
        items = slice(at, at + _ITEMS)
        low, high = rows.reach.low[items] - rows.X[items], rows.reach.high[items] - rows.X[items]
        for side, sign in enumerate((-1.0, 1.0)):
            found[side, items] = np.clip(_largest(box, sign * w, low, high, rows.reach.groups), 0.0, most)
    return found


def _largest(box, w, low, high, groups):
    """The largest w.D of each item over D = V'c + e, with c and e in the box, D within low and high, and groups that sum to 0."""
    (n, d), K = low.shape, len(box.raw)
    parts = sparse.hstack([sparse.csr_matrix(box.raw.T), sparse.identity(d), -sparse.identity(d)])
    sums = np.zeros((len(groups), K + 2 * d))
    for k, group in enumerate(groups):
        sums[k, K + d + group] = 1.0
    block = sparse.vstack([parts, sparse.csr_matrix(sums)]) if groups else parts
    ends = np.concatenate([np.full(K, box.subspace_radius), box.reach])
    result = linprog(
        np.tile(np.concatenate([np.zeros(K + d), -w]), n),
        A_eq=sparse.kron(sparse.identity(n), block, format="csr"),
        b_eq=np.zeros(n * block.shape[0]),
        bounds=np.stack(
            [
                np.hstack([np.tile(-ends, (n, 1)), np.minimum(low, 0.0)]).ravel(),
                np.hstack([np.tile(ends, (n, 1)), np.maximum(high, 0.0)]).ravel(),
            ],
            axis=1,
        ),
        method="highs",
    )
    if result.status != 0:
        raise RuntimeError(f"The linear programme of what items can reach was not solved: {result.message}")
    return result.x.reshape(n, -1)[:, K + d :] @ w


def _centered(down, up, n_starts, rng):
    """Half the sum of squared deviations from the mean, where each score falls by `down` or rises by `up`.

    It is convex in the changes, so that the best are at their ends. One after the other is put to its other end, the one that
    gains most first.
    """
    n, best = len(up), 0.0
    for _ in range(n_starts):
        rises = rng.permutation(n) % 2 == 0
        while True:
            change = np.where(rises, up, -down)
            turned, total = np.where(rises, -down, up), change.sum()
            gain = turned**2 - change**2 - ((total + turned - change) ** 2 - total**2) / n
            i = int(np.argmax(gain))
            if gain[i] <= 1e-12 * (change @ change):
                break
            rises[i] = not rises[i]
        best = max(best, 0.5 * float(np.sum((change - change.mean()) ** 2)))
    return best


def _in_budget(budget, w, rows, n_steps, n_starts, rng):
    """Projected gradient ascent in the moves of all items."""
    sizes = np.diff(rows.offsets)
    per_query, n_queries = np.repeat(1.0 / sizes, sizes), len(sizes)
    free, left = budget.free, 1.0 - budget.shrink

    def scaled(D, factors):
        """Displacements with their parts along the rows of the metric's basis multiplied by factors."""
        return D + ((D @ budget.basis.T) * (factors - 1.0)) @ budget.basis

    # The steepest ways up: along free rows, at length 1, and across them in the coordinates of the metric.
    along = (free @ w) @ free
    along = along / max(np.linalg.norm(along), 1e-300)
    across = scaled(w, np.divide(1.0, left**2, out=np.zeros_like(left), where=left > 0))

    def shares(D):
        """By how much free moves are too long, and the others too dear."""
        too_long = np.linalg.norm(D @ free.T, axis=1) / max(budget.radius, 1e-12)
        spent = per_query @ np.square(scaled(D, left)).sum(axis=1) / n_queries
        return np.maximum(too_long, 1.0)[:, None], max(np.sqrt(spent / max(budget.epsilon, 1e-24)), 1.0)

    def project(D, n_rounds):
        for _ in range(n_rounds):
            too_long, too_dear = shares(D)
            sensitive = (D @ free.T) @ free
            D = rows.reach.project(rows.X + sensitive / too_long + (D - sensitive) / too_dear) - rows.X
        return D

    def change(D):
        change = D @ w
        return centred(change, rows.offsets) if rows.is_centered else change

    best = 0.0
    for _ in range(n_starts):
        # Half of a query's items start upwards, half downwards, which matters where changes are compared with their mean.
        side = np.concatenate([rng.permutation(n) % 2 * 2.0 - 1.0 for n in sizes])
        D = project(
            (side * rng.uniform(0.5, 1.5, len(side)))[:, None] * (budget.radius * along + across), _QUICK_ROUNDS
        )
        for _ in range(n_steps):
            up = change(D)
            # What is maximised is convex, so that long steps are as good as short ones; the projections like them short.
            dear = (up / per_query)[:, None] * across
            typical = np.sqrt(per_query @ np.square(scaled(dear, left)).sum(axis=1) / n_queries)
            step = 0.2 * budget.radius * np.sign(up)[:, None] * along
            D = project(D + step + 0.2 * np.sqrt(budget.epsilon) / max(typical, 1e-300) * dear, _QUICK_ROUNDS)
        D = project(D, _ROUNDS)
        # All sets are convex and hold 0, so that a little less of everything meets what rounds have left.
        too_long, too_dear = shares(D)
        best = max(best, 0.5 * float(np.sum(change(D / np.maximum(too_long, too_dear)) ** 2)) / n_queries)
    return best
