"""Projected gradient ascent within the bounds of a closed form: it can't exceed the closed form, and should approach it."""

from __future__ import annotations

import numpy as np

from skfairrank.adversaries._box import Box

__all__ = ["ascend_within"]


def ascend_within(bounds, w, *, n_steps: int, n_starts: int, rng) -> float:
    """The largest regulariser that it finds.

    Parameters
    ----------
    bounds : Box or Budget
    w : ndarray of float64, shape (n_features,)
        Weights of a linear score.
    n_steps, n_starts : int
    rng : numpy.random.Generator
    """
    if isinstance(bounds, Box):
        return bounds.mean_size / 2.0 * _in_box(bounds, w, n_steps, n_starts, rng) ** 2
    return _in_budget(bounds, w, n_steps, n_starts, rng)


def _in_box(box, w, n_steps, n_starts, rng):
    """Largest |score change| of one item; steps reach across the box in a tenth of them."""
    raw, radius, reach = box.raw, box.subspace_radius, box.reach
    along, best = raw @ w, 0.0
    for _ in range(n_starts):
        c, e = rng.uniform(-radius, radius, len(raw)), rng.uniform(-reach, reach, len(w))
        for _ in range(n_steps):
            gap = along @ c + w @ e
            c = np.clip(c + _step(gap * along, radius, n_steps), -radius, radius)
            e = np.clip(e + _step(gap * w, float(reach.max()), n_steps), -reach, reach)
        best = max(best, abs(along @ c + w @ e))
    return best


def _in_budget(budget, w, n_steps, n_starts, rng):
    """As `_in_box`, for one move per query size within the ball and the shared budget.

    Items of a query move alike: the change of a score is linear in the move, so what is best for one item is best for all.
    """
    free, sizes, shares = budget.free, budget.sizes, budget.shares
    radius, epsilon = budget.radius, budget.epsilon
    # In the coordinates z of the metric, in which a move costs ||z||^2: the score changes by z times this.
    left = 1.0 - budget.shrink
    fair = budget.scaled(w, np.divide(1.0, left, out=np.zeros_like(left), where=left > 0))
    along, best = free @ w, 0.0

    def project(c, e):
        long = np.linalg.norm(c, axis=1, keepdims=True)
        c = c * np.minimum(1.0, radius / np.maximum(long, 1e-300))
        e = e - (e @ free.T) @ free
        spent = shares @ (e**2).sum(axis=1)
        return c, e * min(1.0, np.sqrt(epsilon / max(spent, 1e-300)))

    for _ in range(n_starts):
        c, e = project(rng.standard_normal((len(sizes), len(free))), rng.standard_normal((len(sizes), len(w))))
        for _ in range(n_steps):
            gap = c @ along + e @ fair
            weight = (sizes * gap)[:, None]
            c, e = project(
                c + _step(weight * along, radius, n_steps), e + _step(weight * fair, np.sqrt(epsilon), n_steps)
            )
        gap = c @ along + e @ fair
        best = max(best, float(shares @ (sizes / 2.0 * gap**2)))
    return best


def _step(direction, reach, n_steps):
    """A step along `direction` of length ten times `reach` over all steps."""
    long = np.linalg.norm(direction)
    return direction * (10.0 * reach * np.sqrt(direction.size) / (n_steps * long)) if long > 0 else direction
