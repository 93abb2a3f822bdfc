"""Suprema of the regulariser in closed form, for linear scores and the fair metric ||z(e)||^2 = e'Me.

The metric has orthonormal rows b_r and numbers t_r (`shrink`): z(e) = e - sum_r t_r (b_r.e) b_r. So M is (1 - t_r)^2 along row
r, and the identity across all rows. Where t_r = 1 a move along b_r costs nothing.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.linear import dot_with_row

__all__ = ["exact_box", "exact_budget"]


@njit(counts=False)
def exact_box(w, raw, basis, shrink, mean_size, subspace_radius, reach, gradient):
    """R = mean_size/2 (r sum_k |V_k.w| + sum_j reach_j |w_j|)^2. Fill in its (sub)gradient; return R and what d_Q it spends.

    It spends the cost e'Me of the free move e_j = reach_j sign(w_j).
    """
    d = len(w)
    total, spent = 0.0, 0.0
    for k in range(d):
        total += reach[k] * abs(w[k])
        gradient[k] = reach[k] * np.sign(w[k])
        spent += gradient[k] * gradient[k]
    for r in range(basis.shape[0]):
        spent -= (1.0 - (1.0 - shrink[r]) ** 2) * dot_with_row(basis, r, gradient) ** 2
    for r in range(raw.shape[0]):
        along = dot_with_row(raw, r, w)
        total += subspace_radius * abs(along)
        side = subspace_radius * np.sign(along)
        for k in range(d):
            gradient[k] += side * raw[r, k]
    for k in range(d):
        gradient[k] *= mean_size * total
    return 0.5 * mean_size * total * total, max(spent, 0.0)


@njit(counts=False)
def exact_budget(w, basis, shrink, sizes, shares, epsilon, subspace_radius, gradient):
    """R = mean_q n_q/2 (a + b u_q)^2 with a = r ||A w||, b = sqrt(w'M^+ w) and u_q = a b n_q / (x + (n_max - n_q) b^2).

    The rows of A are those b_r with t_r = 1, along which moves cost nothing; a is the largest w.e over such moves of norm <= r.
    Across them the largest w.e subject to e'Me <= u^2 is b u (Cauchy and Schwarz in the coordinates z). Here M^+ is (1 - t_r)^-2
    along the rows with t_r < 1, and the identity across all rows. For the projector b = ||P w||.

    `sizes` are the distinct query sizes, and `shares` the fractions of queries that have them. x > 0 is twice the multiplier of
    the budget less n_max b^2, and the root of mean_q u_q^2 = epsilon. The gradient is filled in, by the envelope theorem.
    Returned are R, what is spent, and the multiplier.
    """
    d, norm_w, free, b = len(w), 0.0, 0.0, 0.0
    for k in range(d):
        gradient[k] = w[k]
        norm_w += w[k] * w[k]
    for r in range(len(basis)):
        along = dot_with_row(basis, r, w)
        for k in range(d):
            gradient[k] -= along * basis[r, k]
        if shrink[r] == 1.0:
            free += along * along
        else:
            b += (along / (1.0 - shrink[r])) ** 2
    for k in range(d):
        b += gradient[k] * gradient[k]
    norm_w, free, b = np.sqrt(norm_w), np.sqrt(free), np.sqrt(b)
    if b <= 1e-12 * norm_w:  # free directions span w: what is left is rounding
        b = 0.0
    a = subspace_radius * free
    largest, share = 0.0, 0.0
    for g in range(len(sizes)):
        if sizes[g] > largest:
            largest, share = sizes[g], shares[g]
    spends, evenly = b > 0.0 and epsilon > 0.0, a > 0.0
    x = 0.0
    if spends:
        x = a * b * largest / np.sqrt(epsilon)
        evenly = x > 1e-15 * largest * b * b
        if evenly:
            x = _root(a * b, b * b, x, sizes, shares, largest, share, epsilon)
        else:
            x = 0.0
    value, spent, on_a, on_b = 0.0, 0.0, 0.0, 0.0
    for g in range(len(sizes)):
        u = 0.0
        if spends and evenly:
            u = a * b * sizes[g] / (x + (largest - sizes[g]) * b * b)
        elif spends and sizes[g] == largest:  # without a sensitive move the largest queries get it all
            u = np.sqrt(epsilon / share)
        gap = a + b * u
        value += shares[g] * sizes[g] / 2.0 * gap * gap
        spent += shares[g] * u * u
        on_a += shares[g] * sizes[g] * gap
        on_b += shares[g] * sizes[g] * gap * u
    for k in range(d):
        gradient[k] = on_b * gradient[k] / b if b > 0.0 else 0.0
    for r in range(len(basis)):
        along, scale = dot_with_row(basis, r, w), 0.0
        if shrink[r] == 1.0 and free > 0.0:
            scale = on_a * subspace_radius / free
        elif shrink[r] != 1.0 and b > 0.0:
            scale = on_b / b / (1.0 - shrink[r]) ** 2
        for k in range(d):
            gradient[k] += scale * along * basis[r, k]
    return value, spent, 0.5 * (x + largest * b * b)


@njit(counts=False)
def _root(ab, b_squared, top, sizes, shares, largest, share, epsilon):
    """The x in (0, top] at which the mean of u^2 is epsilon, with u = ab n / (x + (n_max - n) b^2)."""
    low, high = top * np.sqrt(share), top
    x = low
    for _ in range(100):
        spent, slope = 0.0, 0.0
        for g in range(len(sizes)):
            room = x + (largest - sizes[g]) * b_squared
            u = ab * sizes[g] / room
            spent += shares[g] * u * u
            slope += 2.0 * shares[g] * u * u / room
        if spent > epsilon:
            low = x
        else:
            high = x
        # Newton's method on spent^(-1/2), which is nearly a straight line, and is one where all sizes agree.
        following = x + 2.0 * spent * (np.sqrt(spent / epsilon) - 1.0) / slope
        if not (low <= following <= high):
            following = 0.5 * (low + high)
        if abs(following - x) <= 1e-15 * x:
            break
        x = following
    return x
