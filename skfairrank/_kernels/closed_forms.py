"""Suprema of the regulariser in closed form, for linear scores and the fair metric ||z(e)||^2 = e'Me.

The metric has orthonormal rows b_r and numbers t_r (`shrink`): z(e) = e - sum_r t_r (b_r.e) b_r. So M is (1 - t_r)^2 along row
r, and the identity across all rows. Where t_r = 1 a move along b_r costs nothing.
"""

from __future__ import annotations

import numpy as np


def exact_box(w, raw, basis, shrink, mean_size, subspace_radius, reach, gradient):
    """R = mean_size/2 (r sum_k |V_k.w| + sum_j reach_j |w_j|)^2. Fill in its (sub)gradient; return R and what d_Q it spends.

    It spends the cost e'Me of the free move e_j = reach_j sign(w_j).
    """
    free, along = reach * np.sign(w), raw @ w
    total = reach @ np.abs(w) + subspace_radius * np.abs(along).sum()
    spent = free @ free - (1.0 - (1.0 - shrink) ** 2) @ (basis @ free) ** 2
    gradient[:] = mean_size * total * (free + subspace_radius * np.sign(along) @ raw)
    return float(0.5 * mean_size * total**2), max(float(spent), 0.0)


def exact_budget(w, basis, shrink, sizes, shares, epsilon, subspace_radius, gradient):
    """R = mean_q n_q/2 (a + b u_q)^2 with a = r ||A w||, b = sqrt(w'M^+ w) and u_q = a b n_q / (x + (n_max - n_q) b^2).

    The rows of A are those b_r with t_r = 1, along which moves cost nothing; a is the largest w.e over such moves of norm <= r.
    Across them the largest w.e subject to e'Me <= u^2 is b u (Cauchy and Schwarz in the coordinates z). Here M^+ is (1 - t_r)^-2
    along the rows with t_r < 1, and the identity across all rows. For the projector b = ||P w||.

    `sizes` are the distinct query sizes, and `shares` the fractions of queries that have them. x > 0 is twice the multiplier of
    the budget less n_max b^2, and the root of mean_q u_q^2 = epsilon. The gradient is filled in, by the envelope theorem.
    Returned are R, what is spent, and the multiplier.
    """
    along, left = basis @ w, 1.0 - shrink
    is_free = left == 0.0
    free = along * is_free
    weighted = along * np.divide(1.0, left**2, out=np.zeros_like(left), where=~is_free)
    across = w - along @ basis + weighted @ basis  # M^+ w
    norm, b = float(np.linalg.norm(free)), float(np.sqrt(max(w @ across, 0.0)))
    if b <= 1e-12 * np.linalg.norm(w):  # free directions span w: what is left is rounding
        b = 0.0
    a, largest = subspace_radius * norm, sizes.max(initial=0.0)
    share = shares[sizes == largest].sum()
    x, u = 0.0, np.zeros(len(sizes))
    if b > 0.0 and epsilon > 0.0 and len(sizes):
        x = a * b * largest / np.sqrt(epsilon)
        if x > 1e-15 * largest * b * b:
            x = _root(a * b, b * b, x, sizes, shares, largest, share, epsilon)
            u = a * b * sizes / (x + (largest - sizes) * b * b)
        else:  # without a sensitive move the largest queries get it all
            x, u = 0.0, np.where(sizes == largest, np.sqrt(epsilon / share), 0.0)
    weight, gap = shares * sizes, a + b * u
    gradient[:] = (weight @ (gap * u)) * across / b if b > 0.0 else 0.0
    if norm > 0.0:
        gradient += (weight @ gap) * subspace_radius / norm * (free @ basis)
    return float(0.5 * weight @ gap**2), float(shares @ u**2), float(0.5 * (x + largest * b * b))


def _root(ab, b_squared, top, sizes, shares, largest, share, epsilon):
    """The x in (0, top] at which the mean of u^2 is epsilon, with u = ab n / (x + (n_max - n) b^2)."""
    low, high = top * np.sqrt(share), top
    x = low
    for _ in range(100):
        room = x + (largest - sizes) * b_squared
        squares = shares * (ab * sizes / room) ** 2
        spent, slope = squares.sum(), 2.0 * (squares / room).sum()
        low, high = (x, high) if spent > epsilon else (low, x)
        # Newton's method on spent^(-1/2), which is nearly a straight line, and is one where all sizes agree.
        following = x + 2.0 * spent * (np.sqrt(spent / epsilon) - 1.0) / slope
        if not low <= following <= high:
            following = 0.5 * (low + high)
        if abs(following - x) <= 1e-15 * x:
            break
        x = following
    return x
