"""Readable NumPy twins of every kernel: the definitions, item by item, without the kernels' shortcuts.

Everything here is for one query (scores h, gains, ...) unless said otherwise, and sums over all n! rankings where it can.
"""

import itertools

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize

BETA1, BETA2, TINY = 0.9, 0.999, 1e-8


# The policy


def rankings(n):
    """All orders of n items, best item first, shape (n!, n)."""
    return np.array(list(itertools.permutations(range(n))))


def log_probability_of_order(h, order):
    """log prod_j exp h_(j) / sum_{k >= j} exp h_(k) (equation 1)."""
    total = 0.0
    for j in range(len(order)):
        rest = h[list(order[j:])]
        top = rest.max()
        total += h[order[j]] - top - np.log(np.exp(rest - top).sum())
    return total


def probabilities(h):
    """All orders, and the probability of each."""
    orders = rankings(len(h))
    return orders, np.exp([log_probability_of_order(h, order) for order in orders])


def choice_probabilities(h, order):
    """C[j, i]: probability that item i is chosen at position j, given the items before it; zero where i is gone."""
    n = len(h)
    chosen = np.zeros((n, n))
    for j in range(n):
        rest = list(order[j:])
        e = np.exp(h[rest] - h[rest].max())
        chosen[j, rest] = e / e.sum()
    return chosen


def score_function(h, order):
    """Gradient of the log-probability of an order in the scores."""
    return 1.0 - choice_probabilities(h, order).sum(axis=0)


def utility_of_order(gain, discount, order, continuation=None):
    """Position by position: what the item there gives to those who get that far."""
    total, reach = 0.0, 1.0
    for j, i in enumerate(order):
        total += reach * gain[i] * discount[j]
        reach *= 1.0 if continuation is None else continuation[i]
    return float(total)


def expected_utility(h, gain, discount, continuation=None):
    """Sum over all rankings."""
    orders, p = probabilities(h)
    return float(sum(p_r * utility_of_order(gain, discount, order, continuation) for p_r, order in zip(p, orders)))


def expected_utility_gradient(h, gain, discount, continuation=None):
    """Sum over all rankings of probability times utility times the gradient of the log-probability."""
    orders, p = probabilities(h)
    return sum(
        p_r * utility_of_order(gain, discount, r, continuation) * score_function(h, r) for p_r, r in zip(p, orders)
    )


def rank_probabilities(h):
    """P[i, j]: probability that item i is at position j, by all rankings."""
    out = np.zeros((len(h), len(h)))
    orders, p = probabilities(h)
    for p_r, order in zip(p, orders):
        out[order, np.arange(len(h))] += p_r
    return out


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011): four words from four words of counter and two of key, in Python's integers."""
    (a, b, c, d), (k, l) = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q % 2**32, (p >> 32) ^ d ^ l, p % 2**32
        k, l = (k + 0x9E3779B9) % 2**32, (l + 0xBB67AE85) % 2**32
    return a, b, c, d


def exponentials(key, query, n_samples, n):
    """The noise of a query's samples, shape (n_samples, n): -log of uniform numbers with 52 random bits.

    Eight samples make a group; the first half of their items uses two words of each counter, the second half the other two.
    """
    out, half = np.empty((n_samples, n)), (int(n) + 1) // 2
    for s, i in itertools.product(range(n_samples), range(n)):
        words = philox((i % half * 8 + s % 8, s // 8, query, 0), (int(key) % 2**32, int(key) >> 32))
        low, high = words[:2] if i < half else words[2:]
        out[s, i] = -np.log((((high << 32 | low) >> 12) + 0.5) / 2**52)
    return out


def sampled_orders(h, noise):
    """Gumbel trick: sort h - log E downwards, E standard exponential, shape (n_samples, n)."""
    return np.argsort(-(h - np.log(noise)), axis=1, kind="stable")


def reinforce(h, gain, discount, noise, continuation=None):
    """`reinforce_of_orders` for the rankings that the noise gives."""
    return reinforce_of_orders(h, gain, discount, sampled_orders(h, noise), continuation)


def plrank(h, gain, discount, noise, continuation=None):
    """`plrank_of_orders` for the rankings that the noise gives."""
    return plrank_of_orders(h, gain, discount, sampled_orders(h, noise), continuation)


def reinforce_of_orders(h, gain, discount, orders, continuation=None):
    """Mean over samples of (utility - mean utility of the samples) times the score function; and the mean utility."""
    utility = np.array([utility_of_order(gain, discount, order, continuation) for order in orders])
    scores = np.array([score_function(h, order) for order in orders])
    return ((utility - utility.mean())[:, None] * scores).mean(axis=0), utility.mean()


def plrank_of_orders(h, gain, discount, orders, continuation=None):
    """PL-Rank (Oosterhuis 2021) with a baseline. At every position: the item chosen there gets what follows, less what followed
    there in the other samples (times the share of users who got there in this one), and all that were left give it back in
    proportion to their chances; the position's own reward counts in expectation."""
    N, n = orders.shape
    stays = np.ones(orders.shape) if continuation is None else continuation[orders]
    reach = np.array([[row[:j].prod() for j in range(n)] for row in stays])
    rewards = reach * gain[orders] * discount[:n]
    following = np.array([[row[j + 1 :].sum() for j in range(n)] for row in rewards])
    gradient = np.zeros(n)
    for s, order in enumerate(orders):
        others = np.delete(following, s, axis=0)
        chance = choice_probabilities(h, order)
        for j, i in enumerate(order):
            surprise = following[s, j] - (reach[s, j] * others[:, j].mean() if N > 1 else 0.0)
            gradient[i] += surprise
            gradient -= chance[j] * surprise
            gradient += chance[j] * reach[s, j] * discount[j] * (gain - chance[j] @ gain)
    return gradient / N, rewards.sum(axis=1).mean()


# Adam, the attack, the dual


class Adam:
    """Kingma and Ba (2015), algorithm 1, upwards."""

    def __init__(self, shape, step_size):
        self.m, self.v, self.t, self.step_size = np.zeros(shape), np.zeros(shape), 0, step_size

    def move(self, g):
        self.t += 1
        self.m = BETA1 * self.m + (1 - BETA1) * g
        self.v = BETA2 * self.v + (1 - BETA2) * g * g
        return self.step_size * (self.m / (1 - BETA1**self.t)) / (np.sqrt(self.v / (1 - BETA2**self.t)) + TINY)


def adam_ascent(gradient, z, step_size, n_steps):
    """Adam from z, with state zero, upwards."""
    z = np.array(z, dtype=np.float64)
    adam = Adam(z.shape, step_size)
    for _ in range(n_steps):
        z = z + adam.move(gradient(z))
    return z


def projector(basis):
    return np.eye(basis.shape[1]) - basis.T @ basis


def shrinker(basis, shrink=None):
    """The matrix of z(e) = e - sum_r t_r (b_r.e) b_r; with all t_r = 1 the projector."""
    shrink = np.ones(len(basis)) if shrink is None else np.asarray(shrink, float)
    return np.eye(basis.shape[1]) - basis.T @ (shrink[:, None] * basis)


def attack_item(w, raw, Z, rho, lambda_, n, steps, c, e):
    """Both phases for one item of a query of n items: its move along raw directions, and its free move, which costs ||Z e||^2."""
    subspace_step_size, subspace_n_steps, full_step_size, full_n_steps = steps
    along = raw @ w
    c = adam_ascent(lambda c: rho * (along @ c) * along, c, subspace_step_size, subspace_n_steps)
    inside, M = c @ raw, Z.T @ Z
    e = adam_ascent(lambda e: rho * (w @ (inside + e)) * w - 2 * lambda_ / n * (M @ e), e, full_step_size, full_n_steps)
    return inside, e


def transport_distance(Z, Z_other):
    """d_Q between two queries of equal size, from items already projected: the cheapest pairing, by scipy."""
    cost = ((Z[:, None] - Z_other[None]) ** 2).sum(axis=-1)
    rows, columns = linear_sum_assignment(cost)
    return cost[rows, columns].mean()


def transport_distance_by_permutations(Z, Z_other):
    cost = ((Z[:, None] - Z_other[None]) ** 2).sum(axis=-1)
    n = len(Z)
    return min(cost[np.arange(n), order].sum() for order in rankings(n)) / n


def attack_batch(X, sizes, weight, w, raw, Z, rho, lambda_, most_spent, steps, starts):
    """Step (a) of Algorithm 1, item by item; row i of `starts` is where item i starts: its coefficients, or without directions e.

    Of each query the better of the two attacks for ``rho/2 ||h - h'||^2 - lambda d_Q`` is kept. d_Q in that comparison is the
    cost of pairing every item with itself, and moves along the raw directions are free. Where the batch would spend more than
    `most_spent` on the average, all queries keep the same share of their free moves. Returns the weighted means of the
    regularizer and of d_Q, the gradient of the first, and the share of each query.
    """
    K, d = raw.shape
    queries, spent, share = [], [], []
    for hi in np.cumsum(sizes):
        n = sizes[len(queries)]
        here = starts[hi - n : hi]
        given = [(s, np.zeros(d)) if K else (np.zeros(0), s) for s in here]
        moves = [attack_item(w, raw, Z, rho, lambda_, n, steps, c, e) for c, e in given]
        inside, e = np.array([move[0] for move in moves]), np.array([move[1] for move in moves])
        queries.append((X[hi - n : hi], inside, e))
        spent.append(((e @ Z) ** 2).sum(axis=1).mean())
        both = rho / 2 * (((inside + e) @ w) ** 2).sum() - lambda_ * spent[-1]
        share.append(float(both >= rho / 2 * ((inside @ w) ** 2).sum()))
    weight, share = np.asarray(weight, float), np.array(share)
    mean_spent = np.mean(weight * share * spent)
    if mean_spent > most_spent:
        share = share * np.sqrt(most_spent / mean_spent)
    values, distances, gradient = [], [], np.zeros(d)
    for (x, inside, e), s, v in zip(queries, share, weight):
        move = inside + s * e
        values.append(((move @ w) ** 2).sum() / 2)
        distances.append(transport_distance(x @ Z, (x + s * e) @ Z) if s else 0.0)
        gradient += v * move.T @ (move @ w) / len(sizes)
    return np.mean(weight * values), np.mean(weight * distances), gradient, share


def dual_step(lambda_, distance, epsilon, lambda_min=1e-5):
    """lambda grows while the adversary overspends (the authors' step: max(d, eps) / min(d, eps))."""
    d, eps = max(distance, 1e-12), max(epsilon, 1e-12)
    return max(lambda_min, lambda_ + max(d, eps) / min(d, eps) * (distance - epsilon))


# Exact adversaries, by general optimisers


def box_supremum(w, raw, n, subspace_radius, feature_radius):
    """n/2 times the largest squared change of a score over the corners of the box."""
    K, d = raw.shape
    corners = np.array(
        list(itertools.product(*[(-subspace_radius, subspace_radius)] * K, *[(-feature_radius, feature_radius)] * d))
    )
    return n / 2 * np.max((corners @ np.concatenate([raw @ w, w])) ** 2)


def budget_supremum(w, basis, sizes, epsilon, radius, shrink=None):
    """Largest mean of 1/2 ||h - h'||^2 over free moves e_qi, by SLSQP over what each query spends.

    In a query of n items with mean e_i'Me_i = s, the best is n/2 (a + b sqrt(s))^2 with b^2 = w'M^+ w: all items move alike along
    M^+ w (Cauchy and Schwarz), and within the radius along the rows with t_r = 1. What is left is a problem in s_q >= 0 with
    mean s_q <= epsilon, in terms of u_q = sqrt(s_q).
    """
    shrink = np.ones(len(basis)) if shrink is None else np.asarray(shrink, float)
    Z = shrinker(basis, shrink)
    a = radius * np.linalg.norm(basis[shrink == 1] @ w)
    b = np.sqrt(w @ np.linalg.pinv(Z @ Z, rcond=1e-12) @ w)
    sizes = np.asarray(sizes, float)

    def loss(u):
        return -np.mean(sizes / 2 * (a + b * u) ** 2)

    def slope(u):
        return -sizes * (a + b * u) * b / len(sizes)

    room = {"type": "ineq", "fun": lambda u: epsilon - np.mean(u**2), "jac": lambda u: -2 * u / len(u)}
    best = -np.inf
    starts = [np.full(len(sizes), np.sqrt(epsilon))]
    starts += [np.sqrt(epsilon * sizes**p / np.mean(sizes**p)) for p in (1.0, 2.0, 8.0)]
    for start in starts:
        found = minimize(
            loss,
            start,
            jac=slope,
            bounds=[(0, None)] * len(sizes),
            constraints=[room],
            method="SLSQP",
            options={"ftol": 1e-16, "maxiter": 1000},
        )
        over = np.mean(found.x**2) / epsilon
        best = max(best, -loss(found.x / np.sqrt(max(over, 1.0))))
    return best


def item_moves_supremum(w, basis, sizes, epsilon, radius, rng, n_starts=3, shrink=None, centered=False):
    """The same by SLSQP over every single item's moves, without the argument above: small problems only.

    Moves along the rows of `basis` with t_r = 1 cost nothing and have norm <= radius; the others cost ||z(e)||^2. Centered, a
    change of scores counts less its mean in the query.
    """
    d, N, Q = len(w), int(np.sum(sizes)), len(sizes)
    shrink = np.ones(len(basis)) if shrink is None else np.asarray(shrink, float)
    Z, free = shrinker(basis, shrink), basis[shrink == 1]
    in_query = np.repeat(np.asarray(sizes, float), sizes)
    same = np.repeat(np.arange(Q), sizes)[:, None] == np.repeat(np.arange(Q), sizes)
    counted = np.eye(N) - centered * same / in_query

    def split(z):
        return z[: N * d].reshape(N, d), z[N * d :].reshape(N, len(free))

    def loss(z):
        e, c = split(z)
        gap = counted @ (e @ w + c @ (free @ w))
        return -np.sum(gap**2) / 2 / Q, -np.r_[np.outer(gap, w).ravel(), np.outer(gap, free @ w).ravel()] / Q

    # e stays across the free directions: moves along them count in c.
    constraints = [
        {
            "type": "ineq",
            "fun": lambda z: epsilon - np.sum(((split(z)[0] @ Z) ** 2).sum(axis=1) / in_query) / Q,
            "jac": lambda z: np.concatenate(
                [(-2 * split(z)[0] @ Z @ Z / in_query[:, None] / Q).ravel(), np.zeros(N * len(free))]
            ),
        },
        {"type": "eq", "fun": lambda z: (split(z)[0] @ free.T).ravel()},
        {"type": "ineq", "fun": lambda z: radius**2 - (split(z)[1] ** 2).sum(axis=1)},
    ]
    best, across = -np.inf, w - free.T @ (free @ w)
    for _ in range(n_starts):
        side = np.concatenate([rng.permutation(n) % 2 * 2.0 - 1 if centered else np.ones(n) for n in sizes])[:, None]
        c = side * np.sign(free @ w) * radius / 2 * rng.uniform(0.5, 1.0, (N, 1))
        start = np.concatenate([(side * (0.1 + 0.1 * rng.random((N, 1))) * across).ravel(), c.ravel()])
        options = {"ftol": 1e-15, "maxiter": 2000}
        found = minimize(loss, start, jac=True, constraints=constraints, method="SLSQP", options=options)
        best = max(best, -found.fun)
    return best


# Algorithm 1


def senstir(
    X, y, w, *, batches, noise, learning_rate, alpha=0.0, gradient=reinforce,
    rho=0.0, n_plain=0, starts=None, raw=None, basis=None, epsilon=None, steps=None, lambda_=2.0, weights=None,
):  # fmt: skip
    """A whole fit from the weights w in plain NumPy; all that is random is handed in, step by step.

    Parameters
    ----------
    batches : list of lists of arrays
        Of each step the queries, of each query its row numbers.
    noise : list of lists of arrays, shape (n_samples, n_items) each
        Of each step and query the exponential variables of the sampled rankings.
    weights : list of arrays, shape (batch_size,) each, optional
        Of each step the weights of its queries.
    starts : list of arrays, shape (n_rows, n_directions) each, or (n_rows, n_features) without directions
        Of each step where the attack of each item starts; those of the first `n_plain` steps are not used.

    Returns
    -------
    w, lambda_ : array, float
    history : array, shape (n_steps, 4)
        Utility, regularizer, query distance, lambda.
    """
    history, adam = [], Adam(len(w), learning_rate)
    for step, batch in enumerate(batches):
        slope, utilities, regularizer, distance, B = -alpha * w, [], 0.0, 0.0, len(batch)
        weight = np.ones(B) if weights is None else weights[step]
        for rows, exponential, of_query in zip(batch, noise[step], weight, strict=True):
            g, discount = 2.0 ** y[rows] - 1, 1 / np.log2(np.arange(len(rows)) + 2)
            ideal = np.sort(g)[::-1] @ discount
            in_scores, utility = gradient(X[rows] @ w, g / ideal if ideal else g, discount, exponential)
            slope = slope + of_query * X[rows].T @ in_scores / B
            utilities.append(of_query * utility)
        if rho and step >= n_plain:
            if step == n_plain:
                adam = Adam(len(w), learning_rate)
            regularizer, distance, penalty, _ = attack_batch(
                X[np.concatenate(batch)], [len(rows) for rows in batch], weight, w, raw, projector(basis), rho, lambda_,
                np.inf, steps, starts[step],
            )  # fmt: skip
            slope = slope - rho * penalty
            lambda_ = dual_step(lambda_, distance, epsilon)
        w = w + adam.move(slope)
        history.append((np.mean(utilities), regularizer, distance, lambda_))
    return w, lambda_, np.array(history)


def finite_difference(f, x, step=1e-5):
    """Central differences of a scalar function."""
    out = np.empty_like(x)
    for k in range(len(x)):
        e = np.zeros_like(x)
        e[k] = step
        out[k] = (f(x + e) - f(x - e)) / (2 * step)
    return out
