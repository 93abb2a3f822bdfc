"""The adversary for linear scores: ascent along shared paths, and the two suprema in closed form.

For a linear score the displacement of an attacked item depends on w, lambda, its random start and the size of its query, not
on the item. A path is the ascent from one start for one query size; all items that share both share the path.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels._jit import njit
from skfairrank._kernels.ascent import ascend
from skfairrank._kernels.linear import dot, dot_with_row, mean, project
from skfairrank._kernels.transport import smallest_gaps, transport_distances

__all__ = [
    "ascent_attack",
    "attack_along_paths",
    "exact_box",
    "exact_budget",
    "lay_out_paths",
    "settle_queries",
    "start_paths",
]


@njit
def attack_along_paths(
    first, last, w, raw, basis, rho, lambda_, size, subspace_step, subspace_steps, full_step, full_steps,
    c, e, inside, gap_inside, gap, cost,
):  # fmt: skip
    """Subspace attack, then full attack, along the paths first to last - 1.

    `c` (paths, directions) and `e` (paths, features) hold the starts and are moved in place. Per path: `inside` = V'c, the move
    of the subspace attack, `gap_inside` its change of the score, `gap` the change after both, `cost` = ||P e||^2.
    """
    P, (K, d) = len(size), raw.shape
    along, fair, nothing = np.zeros(K), np.empty(d), np.zeros(P)
    for r in range(K):
        along[r] = dot_with_row(raw, r, w)
    if K > 0:
        no_basis = np.empty((0, K))
        ascend(first, last, along, no_basis, rho, nothing, nothing, subspace_step, subspace_steps, c)
    for p in range(first, last):
        gap_inside[p] = 0.0
        inside[p, :] = 0.0
        for r in range(K):
            gap_inside[p] += along[r] * c[p, r]
            for k in range(d):
                inside[p, k] += c[p, r] * raw[r, k]
    ascend(first, last, w, basis, rho, gap_inside, 2.0 * lambda_ / size, full_step, full_steps, e)
    for p in range(first, last):
        gap[p] = gap_inside[p] + dot(w, e[p])
        project(e[p], basis, fair)
        cost[p] = dot(fair, fair)


@njit
def settle_queries(
    offsets, path_of_row, rho, lambda_, most_spent, gap_inside, gap, cost, inside, e, identity_cost, largest, regularizer, share,
    gradient,
):  # fmt: skip
    """Keep, per query, the better of the two attacks; sum up what the step needs.

    `share[b]` is how much of the free move query b keeps: nothing where the attack in the subspace alone is better, else all of
    it, or in all queries the same share if the batch would spend more than `most_spent` on the average. Per query: `regularizer`
    = 1/2 ||h(q) - h(q')||^2, `identity_cost` = mean ||P e_i||^2, `largest` = max ||P e_i||. `gradient` is that of the mean
    regularizer in the weights. Returns how many queries keep the free move.
    """
    B, n_paths = len(offsets) - 1, len(gap)
    kept, total = 0, 0.0
    for b in range(B):
        lo, hi = offsets[b], offsets[b + 1]
        squares, squares_inside, spent, most = 0.0, 0.0, 0.0, 0.0
        for i in range(lo, hi):
            p = path_of_row[i]
            squares += gap[p] * gap[p]
            squares_inside += gap_inside[p] * gap_inside[p]
            spent += cost[p]
            most = max(most, cost[p])
        spent /= hi - lo
        share[b], identity_cost[b], largest[b] = 0.0, 0.0, 0.0
        if 0.5 * rho * squares - lambda_ * spent >= 0.5 * rho * squares_inside:
            kept += 1
            total += spent / B
            share[b], identity_cost[b], largest[b] = 1.0, spent, np.sqrt(most)
    affordable = np.sqrt(most_spent / total) if total > most_spent else 1.0
    on_inside, on_e = np.zeros(n_paths), np.zeros(n_paths)
    for b in range(B):
        share[b] *= affordable
        identity_cost[b] *= affordable * affordable
        largest[b] *= affordable
        squares = 0.0
        for i in range(offsets[b], offsets[b + 1]):
            p = path_of_row[i]
            change = gap[p] if share[b] == 1.0 else gap_inside[p] + share[b] * (gap[p] - gap_inside[p])
            squares += change * change
            on_inside[p] += change
            on_e[p] += share[b] * change
        regularizer[b] = 0.5 * squares
    gradient[:] = 0.0
    for p in range(n_paths):
        x, y = on_inside[p] / B, on_e[p] / B
        for k in range(len(gradient)):
            gradient[k] += x * inside[p, k] + y * e[p, k]
    return kept


@njit
def lay_out_paths(offsets, n_starts, path_of_row, size):
    """Which path each row of a batch follows, and the query size of each path; returns the number of paths.

    Row i of a query takes start i modulo `n_starts`; queries of one size share `n_starts` paths. With n_starts = 0 every row
    has a path of its own.
    """
    n_paths = 0
    for b in range(len(offsets) - 1):
        lo, n = offsets[b], offsets[b + 1] - offsets[b]
        first = n_paths
        if n_starts > 0:
            for p in range(0, n_paths, n_starts):
                if size[p] == n:
                    first = p
                    break
        if first == n_paths:
            n_paths += n_starts if n_starts > 0 else n
            size[first:n_paths] = n
        for i in range(n):
            path_of_row[lo + i] = first + (i % n_starts if n_starts > 0 else i)
    return n_paths


@njit
def start_paths(offsets, n_starts, K, d, uniform, subspace_init, full_step):
    """Paths of a batch, at their starts; `uniform` holds random numbers in [0, 1).

    Returns each row's path, and of each path the query size, the coefficients c (paths, K) and the free move e (paths, d).
    """
    path_of_row = np.empty(offsets[-1], np.int64)
    size = np.empty(offsets[-1] if n_starts == 0 else n_starts * (len(offsets) - 1))
    P = lay_out_paths(offsets, n_starts, path_of_row, size)
    c, e = np.zeros((P, K)), np.zeros((P, d))
    if K > 0:
        for p in range(P):
            for k in range(K):
                c[p, k] = subspace_init * (2.0 * uniform[p * K + k] - 1.0)
    else:  # no sensitive direction: leave the query itself, where the gradient is zero
        for p in range(P):
            for k in range(d):
                e[p, k] = full_step * (2.0 * uniform[p * d + k] - 1.0)
    return path_of_row, size[:P], c, e


@njit
def ascent_attack(
    X, rows, offsets, queries, gaps, w, raw, basis, rho, lambda_, most_spent, n_starts, uniform, subspace_init,
    subspace_step, subspace_steps, full_step, full_steps, gradient,
):  # fmt: skip
    """The whole of step (a) for a batch, on one thread: paths, attack, better candidate, d_Q.

    Fills `gradient` and returns the mean regularizer and the mean d_Q.
    """
    (K, d), B = raw.shape, len(queries)
    path_of_row, size, c, e = start_paths(offsets, n_starts, K, d, uniform, subspace_init, full_step)
    P = len(size)
    inside, gap_inside, gap, cost = np.empty((P, d)), np.empty(P), np.empty(P), np.empty(P)
    attack_along_paths(
        0, P, w, raw, basis, rho, lambda_, size, subspace_step, subspace_steps, full_step, full_steps,
        c, e, inside, gap_inside, gap, cost,
    )  # fmt: skip
    identity_cost, largest, regularizer, share, distance = (
        np.empty(B),
        np.empty(B),
        np.empty(B),
        np.empty(B),
        np.empty(B),
    )
    kept = settle_queries(
        offsets, path_of_row, rho, lambda_, most_spent, gap_inside, gap, cost, inside, e, identity_cost, largest, regularizer,
        share, gradient,
    )  # fmt: skip
    if kept == 0:
        return mean(regularizer), 0.0
    smallest_gaps(0, B, X, rows, offsets, queries, basis, largest, gaps)
    transport_distances(
        0, B, X, rows, offsets, queries, gaps, basis, e, path_of_row, share, largest, identity_cost, distance
    )
    return mean(regularizer), mean(distance)


@njit
def exact_box(w, raw, basis, mean_size, subspace_radius, reach, gradient):
    """R = mean_size/2 (r sum_k |V_k.w| + sum_j reach_j |w_j|)^2; fills its (sub)gradient and returns R and what d_Q it spends."""
    d = len(w)
    total, spent = 0.0, 0.0
    for k in range(d):
        total += reach[k] * abs(w[k])
        gradient[k] = reach[k] * np.sign(w[k])
        spent += gradient[k] * gradient[k]
    for r in range(basis.shape[0]):  # the cost of the free move reach sign(w) outside the sensitive subspace
        spent -= dot_with_row(basis, r, gradient) ** 2
    for r in range(raw.shape[0]):
        along = dot_with_row(raw, r, w)
        total += subspace_radius * abs(along)
        side = subspace_radius * np.sign(along)
        for k in range(d):
            gradient[k] += side * raw[r, k]
    for k in range(d):
        gradient[k] *= mean_size * total
    return 0.5 * mean_size * total * total, max(spent, 0.0)


@njit
def exact_budget(w, basis, sizes, shares, epsilon, subspace_radius, gradient):
    """R = mean_q n_q/2 (a + b u_q)^2 with a = r ||A w||, b = ||P w|| and u_q = a b n_q / (x + (n_max - n_q) b^2).

    `sizes` are the distinct query sizes and `shares` the fractions of queries that have them; x > 0, twice the multiplier of the
    budget less n_max b^2, is the root of mean_q u_q^2 = epsilon. Fills the gradient (by the envelope theorem). Returns R, what
    is spent, and the multiplier.
    """
    d, rank = len(w), basis.shape[0]
    fair, sensitive = w.copy(), np.zeros(d)
    for r in range(rank):
        inside = dot_with_row(basis, r, w)
        for k in range(d):
            sensitive[k] += inside * basis[r, k]
    fair -= sensitive
    norm_w, norm_sensitive, b = (
        np.sqrt((w * w).sum()),
        np.sqrt((sensitive * sensitive).sum()),
        np.sqrt((fair * fair).sum()),
    )
    if b <= 1e-12 * norm_w:  # directions span w: what is left is rounding
        b = 0.0
    a = subspace_radius * norm_sensitive
    largest, share = 0.0, 0.0
    for g in range(len(sizes)):
        if sizes[g] > largest:
            largest, share = sizes[g], shares[g]
    u, x = np.zeros(len(sizes)), 0.0
    if b > 0.0 and epsilon > 0.0:
        top = a * b * largest / np.sqrt(epsilon)
        if top <= 1e-15 * largest * b * b:  # no sensitive move: the largest queries get it all
            for g in range(len(sizes)):
                u[g] = np.sqrt(epsilon / share) if sizes[g] == largest else 0.0
        else:
            low, high = top * np.sqrt(share), top
            x = low
            for _ in range(100):
                spent, slope = 0.0, 0.0
                for g in range(len(sizes)):
                    room = x + (largest - sizes[g]) * b * b
                    u[g] = a * b * sizes[g] / room
                    spent += shares[g] * u[g] * u[g]
                    slope += 2.0 * shares[g] * u[g] * u[g] / room
                if spent > epsilon:
                    low = x
                else:
                    high = x
                # Newton on spent^(-1/2), which is nearly straight; it is linear where all sizes agree.
                step = 2.0 * spent * (np.sqrt(spent / epsilon) - 1.0) / slope
                following = x + step
                if not (low <= following <= high):
                    following = 0.5 * (low + high)
                if abs(following - x) <= 1e-15 * x:
                    break
                x = following
    value, spent, on_a, on_b = 0.0, 0.0, 0.0, 0.0
    for g in range(len(sizes)):
        gap = a + b * u[g]
        value += shares[g] * sizes[g] / 2.0 * gap * gap
        spent += shares[g] * u[g] * u[g]
        on_a += shares[g] * sizes[g] * gap
        on_b += shares[g] * sizes[g] * gap * u[g]
    for k in range(d):
        gradient[k] = 0.0
        if norm_sensitive > 0.0:
            gradient[k] += on_a * subspace_radius * sensitive[k] / norm_sensitive
        if b > 0.0:
            gradient[k] += on_b * fair[k] / b
    return value, spent, 0.5 * (x + largest * b * b)
