"""The two-phase ascent among plausible rows: ranges of features, one-hot groups, columns that do not move."""

from __future__ import annotations

import numpy as np

from skfairrank.adversaries._general_ascent import GeneralAscent, Items, adam, affordable
from skfairrank.adversaries._plausible import Plausible
from skfairrank.fair_metrics._linear import orthonormal_rows

__all__ = ["PlausibleAscent"]


class PlausibleAscent(GeneralAscent):
    """`GeneralAscent` that never leaves what an item may reach.

    The first phase follows the nearest plausible row to x + V'c. Where that is another point, the difference is no move along the
    directions: what of a displacement D = x' - x lies off their span costs ||z(D_off)||^2, in both phases. The second phase is
    projected, step by step. A query whose attack gains less than it costs stays where it is.

    Parameters
    ----------
    plausible : Plausible
    score, raw, basis, shrink, n_numbers, **settings
        As for `GeneralAscent`.
    """

    def __init__(self, plausible: Plausible, score, raw, basis, shrink, n_numbers, **settings):
        super().__init__(score, raw, basis, shrink, n_numbers, **settings)
        self.plausible = plausible
        #: Orthonormal rows that span the directions.
        self.span = orthonormal_rows(raw[raw.any(axis=1)], 1e-10)

    def attack(self, batch, theta, multiplier, most_spent):
        items = Items(self.score, theta, batch, self.rho, self.is_centered)
        reach = self.plausible.around(items.X)
        pull = items.per_row(2.0 * multiplier / items.sizes)[:, None]

        def slope_at(Z):
            """Gradient of rho/2 ||h(q) - h(q')||^2 - lambda d_Q, as far as Z may follow it."""
            return reach.tangent(Z, items.slope(Z) - pull * self._off(self._fair(self._off(Z - items.X))))

        def along(c):
            return reach.project(items.X + c @ self.raw)

        c, e = self._starts(batch.offsets)
        if len(self.raw):
            step_size, n_steps, _ = self.subspace
            c = adam(_towards_room(c, along, items.X), lambda c: slope_at(along(c)) @ self.raw.T, step_size, n_steps)
        else:
            e = _towards_room(e, lambda e: reach.project(items.X + e), items.X)
        inside = along(c)
        both = adam(reach.project(inside + e), slope_at, *self.full, onto=reach.project)

        (worth_inside, _), (worth, _) = (self._worth(items, Z, multiplier) for Z in (inside, both))
        best = np.where(items.per_row(worth >= worth_inside)[:, None], both, inside)
        worth, cost = self._worth(items, best, multiplier)
        spent = items.total(cost) / items.sizes
        share = affordable(worth >= 0.0, spent, batch.weight, most_spent)
        # Reaches are convex and hold the item itself; rounding may lead out of them again.
        attacked = reach.project(items.X + items.per_row(share)[:, None] * (best - items.X))
        regularizer, gradient = items.regularizer(attacked)
        distance = self.pairing.mean_distance(batch, self._off(best - items.X), cost, spent, share)
        return regularizer, distance, gradient

    def _worth(self, items, Z, multiplier):
        """rho/2 ||h(q) - h(q')||^2 - lambda d_Q of each query, its items paired with themselves, and what each item costs."""
        off = self._off(Z - items.X)
        cost = np.maximum((off * self._fair(off)).sum(axis=1), 0.0)
        gain = 0.5 * self.rho * items.total(items.change(Z) ** 2)
        return gain - multiplier * items.total(cost) / items.sizes, cost

    def _off(self, D):
        """What of displacements is no move along the directions."""
        return D - (D @ self.span.T) @ self.span


def _towards_room(starts, reached, X):
    """Starts, the other way round where that leads more than twice as far: at the end of a range half of them would be lost."""
    there, back = (np.square(reached(sign * starts) - X).sum(axis=1) for sign in (1.0, -1.0))
    return np.where((there < 0.25 * back)[:, None], -starts, starts)
