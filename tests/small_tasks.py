"""Small ranking tasks: their objective by counting all rankings, and its maximum by general optimisers."""

import itertools

import numpy as np
from scipy.optimize import brentq, lsq_linear
from scipy.optimize import minimize as scipy_minimize
from threadpoolctl import ThreadpoolController

_blas = ThreadpoolController()


def minimize(*args, **kwargs):
    """scipy's, on one thread: for a few variables more of them only wait for each other."""
    with _blas.limit(limits=1, user_api="blas"):
        return scipy_minimize(*args, **kwargs)


class Task:
    """Rows and queries of a few items; utility and penalties as functions of the weights, from their definitions.

    Rows of queries are interleaved if `shuffle`. Utility is the mean NDCG over *all* queries, 0 where nothing is relevant.
    """

    def __init__(self, X, y, qid):
        self.X, self.y, self.qid, self.d = X, y, qid, X.shape[1]
        ids = np.unique(qid)
        self.sizes = np.array([np.sum(qid == k) for k in ids])
        self.groups = []
        for n in np.unique(self.sizes):
            rows = np.array([np.flatnonzero(qid == k) for k in ids[self.sizes == n]])
            gain, discount = 2.0 ** y[rows] - 1, 1 / np.log2(np.arange(n) + 2)
            ideal = np.sort(gain, axis=1)[:, ::-1] @ discount
            orders = np.array(list(itertools.permutations(range(n))))
            utility = (gain[:, orders] @ discount) / np.where(ideal > 0, ideal, 1)[:, None]
            self.groups.append((rows, orders, utility))

    def utility(self, w):
        """Mean expected NDCG and its gradient: over all rankings r, sum p(r) NDCG(r) and sum p(r) NDCG(r) grad log p(r)."""
        total, slope, h = 0.0, np.zeros(self.d), self.X @ w
        for rows, orders, utility in self.groups:
            ranked = h[rows][:, orders]
            rest = np.logaddexp.accumulate(ranked[..., ::-1], axis=-1)[..., ::-1]  # log sum over who is left
            p = np.exp((ranked - rest).sum(axis=-1))
            # d log p / dh of the item at position k: 1 - sum_{j <= k} exp(h - rest_j)
            left = np.tri(orders.shape[1], dtype=bool)
            chance = np.exp(np.where(left, ranked[..., :, None] - rest[..., None, :], -np.inf)).sum(axis=-1)
            in_scores = np.empty_like(ranked)
            np.put_along_axis(in_scores, np.broadcast_to(orders, ranked.shape), 1 - chance, axis=-1)
            total += (p * utility).sum()
            slope += np.einsum("qr,qri,qid->d", p * utility, in_scores, self.X[rows])
        return total / len(self.sizes), slope / len(self.sizes)

    def box(self, w, raw, r, delta):
        return self.sizes.mean() / 2 * (r * np.abs(raw @ w).sum() + delta * np.abs(w).sum()) ** 2

    def budget(self, w, basis, epsilon, r):
        """R of the transport budget; for mixed sizes by the root in the multiplier (docs/exact.md)."""
        a, b = r * np.linalg.norm(basis @ w), np.linalg.norm(w - basis.T @ (basis @ w))
        n = self.sizes.astype(float)
        if b == 0 or epsilon == 0:
            return np.mean(n * a**2) / 2
        if len(set(n)) == 1:
            return n[0] / 2 * (a + np.sqrt(epsilon) * b) ** 2
        share = np.mean(n == n.max())
        top = a * b * n.max() / np.sqrt(epsilon)

        def spent(x):  # u_q at 2 lambda = x + n_max b^2
            return a * b * n / (x + (n.max() - n) * b**2)

        if top <= 1e-12 * n.max() * b**2:  # all of it to the largest queries; exact at a = 0
            u = np.where(n == n.max(), np.sqrt(epsilon / share), 0.0)
        else:
            low, high = np.log(top * np.sqrt(share)) - 1e-6, np.log(top) + 1e-6
            u = spent(np.exp(brentq(lambda t: np.mean(spent(np.exp(t)) ** 2) / epsilon - 1, low, high, xtol=1e-14)))
        return np.mean(n / 2 * (a + b * u) ** 2)


def make_task(sizes=(4,) * 20, weights=(1.0, -1.0, 0.5, 0.0), seed=0, noise=1.0, shuffle=True):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    if shuffle:
        qid = rng.permutation(qid)
    X = rng.normal(size=(len(qid), len(weights)))
    y = np.floor((X @ np.array(weights) + noise * rng.normal(size=len(X)) + 2).clip(0, 4))
    return Task(X, y, qid)


MIXED = (1, 2, 3, 4) * 6


def best_in_box(task, raw, r, delta, rho, *, alpha=0.0, starts=(), fixed=None, settled=None):
    """Maximiser of U - rho R - alpha/2 ||w||^2 by SLSQP, where w = p - m and t_k >= |V_k.w| leave a smooth problem.

    `fixed` weights and `settled` directions stay zero. Features are scaled by their root mean square first.
    """
    d, K, n, fixed = task.d, len(raw), task.sizes.mean(), np.zeros(task.d, bool) if fixed is None else fixed
    s = np.sqrt((task.X**2).mean(axis=0))
    s = np.where(s > 0, s, 1.0)
    linear, V = np.concatenate([delta / s, delta / s, np.full(K, r)]), raw / s

    def loss(z):
        v = z[:d] - z[d : 2 * d]
        utility, slope = task.utility(v / s)
        total, on_v = linear @ z, alpha * v / s**2 - slope / s
        return (
            rho * n / 2 * total**2 + alpha / 2 * np.sum((v / s) ** 2) - utility,
            np.concatenate([on_v, -on_v, np.zeros(K)]) + rho * n * total * linear,
        )

    constraints = []
    if K:
        wide = np.vstack([np.hstack([V, -V, np.eye(K)]), np.hstack([-V, V, np.eye(K)])])
        constraints.append({"type": "ineq", "fun": lambda z: wide @ z, "jac": lambda z: wide})
    if settled is not None and settled.any():
        equal = np.hstack([V[settled], -V[settled], np.zeros((settled.sum(), K))])
        constraints.append({"type": "eq", "fun": lambda z: equal @ z, "jac": lambda z: equal})
    bounds = [(0, 0) if j < 2 * d and fixed[j % d] else (0, None) for j in range(2 * d + K)]
    best, value = None, -np.inf
    for start in starts:
        v = np.where(fixed, 0.0, start * s)
        found = minimize(
            loss, np.concatenate([v.clip(0), (-v).clip(0), np.abs(V @ v)]), jac=True, bounds=bounds, constraints=constraints,
            method="SLSQP", options={"ftol": 1e-15, "maxiter": 2000},
        )  # fmt: skip
        w = (found.x[:d] - found.x[d : 2 * d]) / s
        at = task.utility(w)[0] - rho * task.box(w, raw, r, delta) - alpha / 2 * w @ w
        if at > value:
            best, value = w, at
    return best, value


def best_in_budget_of_one_direction(task, axis, epsilon, r, rho, *, alpha=0.0, starts=()):
    """Maximiser where A has one row and queries one size: |A w| is linear on either side of its kink, which is in both."""
    n, P = task.sizes[0], np.eye(task.d) - np.outer(axis, axis)

    def loss(w, side):
        utility, slope = task.utility(w)
        fair = P @ w
        b = np.linalg.norm(fair)
        gap = side * r * (axis @ w) + np.sqrt(epsilon) * b
        on_gap = side * r * axis + (np.sqrt(epsilon) * fair / b if b > 0 else 0)
        return rho * n / 2 * gap**2 + alpha / 2 * w @ w - utility, rho * n * gap * on_gap + alpha * w - slope

    def within(c, on_side=1.0):  # P w = 0 as well
        w = c * axis
        utility, slope = task.utility(w)
        penalty = rho * n * r**2 + alpha
        return penalty / 2 * float(c[0] ** 2) - utility, penalty * c - [slope @ axis]

    candidates = [
        minimize(within, [axis @ s], jac=True, method="BFGS", options={"gtol": 1e-10}).x * axis for s in starts
    ]
    for start in starts:
        for side in (1.0, -1.0):
            w = start if side * (axis @ start) >= 0 else start - 2 * (axis @ start) * axis
            room = {
                "type": "ineq",
                "fun": lambda w, side=side: side * axis @ w,
                "jac": lambda w, side=side: side * axis,
            }
            options = {"ftol": 1e-15, "maxiter": 2000}
            candidates.append(minimize(loss, w, (side,), "SLSQP", True, constraints=[room], options=options).x)
    values = [task.utility(w)[0] - rho * task.budget(w, axis[None], epsilon, r) - alpha / 2 * w @ w for w in candidates]
    return candidates[int(np.argmax(values))], max(values)


def distance_from_stationary(task, w, raw, r, delta, rho, alpha=0.0):
    """How far 0 is from the superdifferential of the box's objective at w: what bounded least squares leaves over.

    0 = grad U - alpha w - rho n T (delta sigma + r sum_k s_k V_k) with T = r sum |V_k.w| + delta ||w||_1, and sigma and s the
    signs, free in [-1, 1] where weights and directions are zero. Also returns |sigma| and |s| there.
    """
    along = raw @ w
    T = r * np.abs(along).sum() + delta * np.abs(w).sum()
    loose = np.abs(along) <= 1e-12 * np.linalg.norm(raw, axis=1) * np.abs(w).max()
    fixed = rho * task.sizes.mean() * T * (delta * np.sign(w) + r * np.where(loose, 0, np.sign(along)) @ raw)
    left = task.utility(w)[1] - alpha * w - fixed
    columns = rho * task.sizes.mean() * T * np.hstack([delta * np.eye(task.d)[:, w == 0], r * raw[loose].T])
    if not columns.size or T == 0:
        return np.abs(left).max(), np.zeros(0)
    found = lsq_linear(columns, left, (-1, 1), tol=1e-14)
    return np.abs(columns @ found.x - left).max(), np.abs(found.x)


def best_on_a_grid(objective, centre, width, n=17, rounds=9):
    """Maximiser over two weights by a grid that closes in."""
    best, value = np.array(centre, float), objective(np.array(centre, float))
    for _ in range(rounds):
        around = best.copy()
        for move in itertools.product(np.linspace(-width, width, n), repeat=2):
            at = objective(around + move)
            if at > value:
                best, value = around + move, at
        width *= 0.3
    return best, value
