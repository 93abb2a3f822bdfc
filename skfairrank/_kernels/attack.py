"""The attack on a batch of queries: ascent by Adam, the better of two candidates for each query, and what it costs.

Under a linear score the move of an item depends on w, lambda, its random start and the size of its query. It does not depend on
the item itself. A path is the ascent from one start for one query size, so all items that share both share the path.
"""

from __future__ import annotations

import numpy as np

from skfairrank._kernels import njit
from skfairrank._kernels.linear import BETA1, BETA2, TINY, dot_of_rows, dot_with_row

# The entries of `settings`. Behind the step size of a phase stands its number of steps.
RHO, LAMBDA, MOST_SPENT, N_STARTS, SUBSPACE, FULL = 0, 1, 2, 3, 4, 6
# The rows of `by_path`, (5, P): the change of a score after the first phase and after both, the cost of the free move, and
# scratch space of `accept`.
INSIDE, CHANGE, PATH_COST, _FOLLOWERS, _KEEPERS = range(5)
# The rows of `by_query`, (6, B). IS_OPEN says whether a plan may be cheaper than that which pairs every item with itself.
FIRST_PATH, SHARE, LARGEST, DISTANCE, IS_OPEN, WEIGHT = range(6)

# The number of items up to which d_Q is found by assignment. This takes memory like the square of the number and time like its
# cube. For longer queries the identity pairing, which the regulariser uses anyway, gives an upper bound.
LARGEST_ASSIGNMENT = 500
_ROUNDING = 16 * 2.0**-52


@njit(inner=True, inline="always")
def _ascend_once(i, z, slope, weight, price, rank, lost, basis, m, v, gradient, factor, factor_of_square):
    """Make a step of Adam from row i of z along ``weight slope - price M z``; M is I less the sum of lost_r b_r b_r'."""
    n = z.shape[1]
    for k in range(n):
        gradient[k] = weight * slope[k] - price * z[i, k]
    for r in range(rank):
        along = price * lost[r] * dot_of_rows(basis, r, z, i)
        for k in range(n):
            gradient[k] += along * basis[r, k]
    for k in range(n):
        m[i, k] = BETA1 * m[i, k] + (1.0 - BETA1) * gradient[k]
        v[i, k] = BETA2 * v[i, k] + (1.0 - BETA2) * gradient[k] * gradient[k]
        z[i, k] += factor * m[i, k] / (np.sqrt(factor_of_square * v[i, k]) + TINY)


@njit
def ascend_rows(z, slopes, weight, price, lost, basis, m, v, factors):
    """Make a step of Adam for every row of z, in place.

    Parameters
    ----------
    z, slopes : ndarray of float64, shape (n_rows, n)
    weight, price : ndarray of float64, shape (n_rows,)
    lost, basis : ndarray of float64, shapes (rank,) and (rank, n)
        See `_ascend_once`.
    m, v : ndarray of float64, shape (n_rows, n)
        Adam's two averages, changed in place.
    factors : tuple of float
        What `linear.adam_factors` gives for the step.
    """
    gradient, (first, second) = np.empty(z.shape[1]), factors
    for i in range(len(z)):
        _ascend_once(i, z, slopes[i], weight[i], price[i], len(lost), lost, basis, m, v, gradient, first, second)


@njit(inner=True)
def _ascend_paths(first, last, z, slope, change, rho, price, rank, lost, basis, step_size, n_steps):
    """Ascend rho/2 (change + slope.z)^2 - price/2 z'Mz from rows of z, in place. `change` becomes change + slope.z.

    The loop over paths is the inner one: a step has to wait for the one before, and steps of other paths fill the time.
    """
    m, v, gradient = np.empty(z.shape), np.empty(z.shape), np.empty((1, z.shape[1]))[0]
    for p in range(first, last):
        for k in range(len(gradient)):
            m[p, k] = v[p, k] = 0.0
    power, power_of_square = 1.0, 1.0
    for _ in range(n_steps):
        power, power_of_square = power * BETA1, power_of_square * BETA2
        factor, factor_of_square = step_size / (1.0 - power), 1.0 / (1.0 - power_of_square)
        for p in range(first, last):
            weight = rho * (change[p] + dot_with_row(z, p, slope))
            _ascend_once(p, z, slope, weight, price[p], rank, lost, basis, m, v, gradient, factor, factor_of_square)
    for p in range(first, last):
        change[p] += dot_with_row(z, p, slope)


@njit
def ascend(first, last, c, e, by_path, size, raw, w, lost, basis, settings):
    """Ascend along the paths first to last - 1, in both phases of the attack.

    The first phase is Adam on rho/2 (w.V'c)^2 from c. The second is Adam on rho/2 (w.V'c + w.e)^2 - lambda/n e'Me from e, where
    n is the path's query size and M the matrix of the fair metric.

    Parameters
    ----------
    c : (P, K), e : (P, d)
        Coefficients along the raw directions, and free moves. Both hold starts, and are moved in place.
    by_path : (5, P)
        INSIDE, CHANGE and PATH_COST are filled in.
    size : (P,)
    raw : (K, d)
        V.
    w : (d,)
    lost, basis : (R,), (R, d)
        Of M, as for `ascend_rows`.
    settings : (8,)
    """
    rho, inside, change, price = settings[RHO], by_path[INSIDE], by_path[CHANGE], by_path[PATH_COST]
    along = np.empty((1, len(raw)))[0]
    for r in range(len(raw)):
        along[r] = dot_with_row(raw, r, w)
    for p in range(first, last):
        change[p] = price[p] = 0.0
    step_size, n_steps = settings[SUBSPACE], np.int64(settings[SUBSPACE + 1])
    _ascend_paths(first, last, c, along, change, rho, price, np.int64(0), lost, basis, step_size, n_steps)
    for p in range(first, last):
        inside[p], price[p] = change[p], 2.0 * settings[LAMBDA] / size[p]
    step_size, n_steps = settings[FULL], np.int64(settings[FULL + 1])
    _ascend_paths(first, last, e, w, change, rho, price, len(lost), lost, basis, step_size, n_steps)
    cost = price  # the price has been paid
    for p in range(first, last):
        total = dot_of_rows(e, p, e, p)
        for r in range(len(lost)):
            along_row = dot_of_rows(basis, r, e, p)
            total -= lost[r] * along_row * along_row
        cost[p] = total if total > 0.0 else 0.0


@njit
def accept(offsets, queries, weight, gaps, settings, by_path, c, e, raw, by_query, gradient):
    """Keep the better of two attacks for each query, and sum up what the training step needs.

    Item i of a query follows the query's path i modulo the number of starts. Each query keeps a share of its free move. The
    share is zero where the attack within the subspace alone is better. Elsewhere it is all of the move; but if the batch would
    then spend more on the average than it may at most, it is one smaller share, the same for all of these queries.

    Parameters
    ----------
    offsets : (B + 1,), queries : (B,), weight : (B,)
        Those of the batch.
    gaps : (n_queries,)
        What `fair_costs` has learned.
    settings : (8,)
        If N_STARTS is 0, each item has a path of its own.
    by_path : (5, P)
        As `ascend` leaves it.
    c : (P, K), e : (P, d), raw : (K, d)
    by_query : (6, B)
        Holds FIRST_PATH. The other rows are filled in: SHARE; LARGEST, the largest sqrt(e_i'Me_i); DISTANCE, the mean e_i'Me_i,
        which is the cost of pairing every item with itself; IS_OPEN; and WEIGHT, the weight divided by B.
    gradient : (d,)
        Holds zeros. The gradient of the mean regularizer in w, with the moves held fixed, is added to it.

    Returns
    -------
    regularizer, distance : float
        Means over queries of weight times 1/2 ||h(q) - h(q')||^2, and of weight times cost.
    n_open : int
    """
    B, n_starts = len(queries), np.int64(settings[N_STARTS])
    inside, change, cost = by_path[INSIDE], by_path[CHANGE], by_path[PATH_COST]
    followers, keepers = by_path[_FOLLOWERS], by_path[_KEEPERS]
    first_path, share, largest, distance = by_query[FIRST_PATH], by_query[SHARE], by_query[LARGEST], by_query[DISTANCE]
    # For each path, the weight of all items that follow it, and of those whose query keeps its free move.
    for p in range(len(c)):
        followers[p] = keepers[p] = 0.0
    total = 0.0
    for b in range(B):
        n, first = offsets[b + 1] - offsets[b], np.int64(first_path[b])
        end = first + (n_starts if 0 < n_starts < n else n)
        times, more = n // (end - first), first + n % (end - first)
        gain, spent, most = 0.0, 0.0, 0.0
        for p in range(first, end):
            items = times + (p < more)
            followers[p] += weight[b] * items
            gain += items * (change[p] * change[p] - inside[p] * inside[p])
            spent += items * cost[p]
            if cost[p] > most:
                most = cost[p]
        spent /= n
        is_kept = 0.5 * settings[RHO] * gain - settings[LAMBDA] * spent >= 0.0
        share[b], largest[b], distance[b] = is_kept, is_kept * np.sqrt(most), is_kept * spent
        by_query[WEIGHT, b] = weight[b] / B
        total += is_kept * weight[b] * spent / B
        if is_kept:
            for p in range(first, end):
                keepers[p] += weight[b] * (times + (p < more))
    affordable = np.sqrt(settings[MOST_SPENT] / total) if total > settings[MOST_SPENT] else 1.0
    n_open = 0
    for b in range(B):
        n = offsets[b + 1] - offsets[b]
        share[b] *= affordable
        largest[b] *= affordable
        distance[b] *= affordable * affordable
        is_open = 1 < n <= LARGEST_ASSIGNMENT and abs(gaps[queries[b]]) < 2.0 * largest[b] < np.inf
        by_query[IS_OPEN, b] = is_open
        n_open += is_open
    regularizer = 0.0
    for p in range(len(c)):
        free = affordable * (change[p] - inside[p])
        every, keeping = followers[p] / B, keepers[p] / B
        regularizer += 0.5 * (every * inside[p] * inside[p] + keeping * free * (2.0 * inside[p] + free))
        on_raw, on_free = every * inside[p] + keeping * free, affordable * keeping * (inside[p] + free)
        for k in range(len(gradient)):
            gradient[k] += on_free * e[p, k]
        for r in range(len(raw)):
            for k in range(len(gradient)):
                gradient[k] += on_raw * c[p, r] * raw[r, k]
    return regularizer, affordable * affordable * total, n_open


@njit
def fair_costs(first, X, rows, offsets, queries, basis, shrink, n_starts, e, gaps, by_query, room):
    """Find the first query from `first` on of which the identity may not be the cheapest pairing, and its costs.

    Costs are those of all pairs of an item and a moved copy. Two proofs need no solver. If no two different items are closer
    than twice the largest move, the identity is cheapest by the triangle inequality. It also is if items have prices u with
    u_i <= u_j + cost[j, i] - cost[j, j] for all i and j: summed over any pairing, the prices cancel. They sink from zero until
    they satisfy that (Bellman and Ford), and would sink for ever where an exchange saves something, so a few rounds must do.
    Moves in directions that the fair metric ignores cost nothing and change no distance.

    Parameters
    ----------
    first : int64
    X, rows, offsets, queries
        Of the batch.
    basis, shrink : (R, d), (R,)
        The metric is the squared length of z(x) = x - sum_r t_r (b_r.x) b_r.
    n_starts : int64
        Item i moves by SHARE times e[FIRST_PATH + i modulo n_starts], or by a path of its own where it is 0.
    e : (P, d)
    gaps : (n_queries,)
        The smallest ||z(x_i - x_j)|| > 0 of a query where it is > 0. If gaps[q] < 0, the gap is at least -gaps[q]; if it is 0,
        nothing is known. Learned as far as the moves ask for: pairs need no more work as soon as some features tell them apart.
    by_query : (6, B)
        Queries that are not IS_OPEN are passed over.
    room : (n * n,)
        n is the size of the largest open query. The costs of the query that was found, copy by copy, are put at its front.

    Returns
    -------
    b : int64
        The query's number in the batch; B if there is none.
    """
    for b in range(first, len(queries)):
        if not by_query[IS_OPEN, b]:
            continue
        lo, n, d, largest = offsets[b], offsets[b + 1] - offsets[b], X.shape[1], by_query[LARGEST, b]
        z, along, entry, stretch = np.empty((d, 2 * n)), np.empty((1, 2 * n))[0], 0.0, 1.0
        # The columns are the items, and behind them the moved items. Only differences count, and an offset would cost digits.
        for i in range(n):
            p = np.int64(by_query[FIRST_PATH, b]) + (i % n_starts if n_starts else i)
            for k in range(d):
                z[k, i] = np.float64(X[rows[lo + i], k]) - np.float64(X[rows[lo], k])
                z[k, n + i] = z[k, i] + by_query[SHARE, b] * e[p, k]
                if abs(z[k, i]) > entry:
                    entry = abs(z[k, i])
        for r in range(len(basis)):
            if -shrink[r] > stretch:
                stretch = -shrink[r]
            for i in range(2 * n):
                along[i] = 0.0
            for k in range(d):
                for i in range(2 * n):
                    along[i] += basis[r, k] * z[k, i]
            for k in range(d):
                for i in range(2 * n):
                    z[k, i] -= shrink[r] * basis[r, k] * along[i]
        if gaps[queries[b]] <= 0.0:
            zero = (_ROUNDING * np.sqrt(np.float64(d)) * stretch * entry) ** 2  # of two equal items, up to rounding
            reach = 4.0 * largest  # with room to spare, so that larger moves need not ask again
            least = reach * reach
            for i in range(1, n):
                for j in range(i):
                    k, total = 0, 0.0
                    while k < d and total < least:
                        total += (z[k, i] - z[k, j]) ** 2
                        k += 1
                    if zero < total < least:
                        least = total
            gaps[queries[b]] = np.sqrt(least) if least < reach * reach else -reach
            if np.sqrt(least) >= 2.0 * largest:
                continue
        total = 0.0
        for j in range(n):
            for i in range(n):
                room[j * n + i] = 0.0
            for k in range(d):
                for i in range(n):
                    room[j * n + i] += (z[k, n + j] - z[k, i]) ** 2
            along[j] = 0.0
            for i in range(n):
                total += room[j * n + i]
        has_sunk, n_rounds = total < np.inf, 0  # what is not finite is told of where the attack ends
        while has_sunk and n_rounds < 4:
            has_sunk, n_rounds = False, n_rounds + 1
            for j in range(n):
                own = room[j * n + j]
                for i in range(n):
                    price = along[j] + room[j * n + i] - own
                    if price < along[i] - 1e-12 * own:
                        along[i], has_sunk = price, True
        if has_sunk:
            return b
    return len(queries)


@njit
def nearest_rows(Z, low, high, members, ends, out):
    """Fill out (n, d) with the nearest rows to those of Z (n, d) that lie within ranges and on simplexes.

    In the columns ``members[ends[g]]`` to ``members[ends[g + 1] - 1]`` of a group g a row has entries >= 0 that sum to 1. Each
    other column j of row i lies in [low[i, j], high[i, j]]. On a simplex the nearest entries are max(z - tau, 0), with tau such
    that they sum to 1. tau is a mean over entries. Entries that would become negative are left out of it, until there are none
    (Michelot 1986).
    """
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            out[i, j] = min(max(Z[i, j], low[i, j]), high[i, j])
        for g in range(len(ends) - 1):
            tau, n_left = -np.inf, -1
            while True:
                total, n = -1.0, 0
                for m in range(ends[g], ends[g + 1]):
                    if Z[i, members[m]] > tau:
                        total += Z[i, members[m]]
                        n += 1
                if n == n_left or n == 0:
                    break
                tau, n_left = max(tau, total / n), n  # rounding must not take it back
            for m in range(ends[g], ends[g + 1]):
                out[i, members[m]] = max(Z[i, members[m]] - tau, 0.0)


@njit
def feasible_directions(Z, slope, low, high, members, ends, out):
    """Fill out (n, d) with the nearest directions to `slope` (n, d) in which rows Z may move within ranges and simplexes.

    On a simplex these sum to 0 and are >= 0 where Z is 0: slope - tau where Z > 0, and max(slope - tau, 0) elsewhere. tau is
    found as in `nearest_rows`.
    """
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            s = slope[i, j]
            out[i, j] = 0.0 if (s > 0.0 and Z[i, j] >= high[i, j]) or (s < 0.0 and Z[i, j] <= low[i, j]) else s
        for g in range(len(ends) - 1):
            tau, n_left = -np.inf, -1
            while True:
                total, n = 0.0, 0
                for m in range(ends[g], ends[g + 1]):
                    if Z[i, members[m]] > 0.0 or slope[i, members[m]] > tau:
                        total += slope[i, members[m]]
                        n += 1
                if n == n_left or n == 0:
                    break
                tau, n_left = max(tau, total / n), n  # rounding must not take it back
            for m in range(ends[g], ends[g + 1]):
                rest = slope[i, members[m]] - tau
                out[i, members[m]] = rest if Z[i, members[m]] > 0.0 else max(rest, 0.0)
