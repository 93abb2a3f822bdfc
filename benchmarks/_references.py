"""Plain programs to compare with: what one would write with NumPy, scikit-learn or POT, and would call fast enough."""

from __future__ import annotations

import numpy as np

from skfairrank._kernels import njit
from skfairrank._threads import over_queries

__all__ = [
    "SHAPES",
    "adam_ascent",
    "control",
    "gumbel_ranks",
    "ndcg_by_loop",
    "nearest_by_double_loop",
    "reinforce",
    "senstir_step",
]

# Queries per batch, items, features, sampled rankings, steps of each phase of the attack.
SHAPES = {"synthetic": (1, 10, 2, 10, 20), "german": (10, 10, 29, 25, 20), "mslr": (10, 20, 135, 32, 40)}


def adam_ascent(gradient, z, step_size, n_steps):
    """Adam's ascent from z, for any shape at once."""
    m, v = np.zeros_like(z), np.zeros_like(z)
    for t in range(1, n_steps + 1):
        g = gradient(z)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        z = z + step_size * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return z


def senstir_step(X, gain, w, V, rho, lambda_, n_samples, n_steps, rng):
    """Gradient of one SenSTIR step for a linear score, batched over queries, items and samples.

    X (queries, items, features), gain (queries, items), V (directions, features) orthonormal. Every item is attacked on its
    own, as printed in the paper; the transport plan is taken to be the identity.
    """
    B, n, _ = X.shape
    along, h = V @ w, X @ w
    # (a) the subspace attack, then the full attack
    c = rng.uniform(-0.05, 0.05, (B, n, len(V)))
    c = adam_ascent(lambda c: rho * (c @ along)[..., None] * along, c, 0.01, n_steps)
    inside = c @ V
    gap_inside = inside @ w

    def full_gradient(e):
        fair = e - (e @ V.T) @ V
        return rho * (gap_inside + e @ w)[..., None] * w - 2 * lambda_ / n * fair

    e = adam_ascent(full_gradient, np.zeros_like(X), 0.001, n_steps)
    gap = gap_inside + e @ w
    # (c)
    slope = reinforce(h, gain, n_samples, rng)
    return np.einsum("bn,bnd->d", slope, X) / B - rho * np.einsum("bn,bnd->d", gap, inside + e) / B


def reinforce(h, gain, n_samples, rng):
    """Gradient of the expected NDCG by REINFORCE with the samples' mean as baseline; h and gain (queries, items)."""
    B, n = h.shape
    noisy = h[:, None] + rng.gumbel(size=(B, n_samples, n))
    order = np.argsort(-noisy, axis=2)
    discount = 1 / np.log2(np.arange(n) + 2)
    dcg = (np.take_along_axis(np.broadcast_to(gain[:, None], noisy.shape), order, 2) * discount).sum(2)
    ndcg = dcg / (np.sort(gain, 1)[:, ::-1] * discount).sum(1)[:, None]
    ordered = np.take_along_axis(np.broadcast_to(h[:, None], noisy.shape), order, 2)
    weight = np.exp(ordered - ordered.max(2, keepdims=True))
    left = np.cumsum(weight[..., ::-1], 2)[..., ::-1]
    score = (1 - weight * np.cumsum(1 / left, 2)) * (ndcg - ndcg.mean(1, keepdims=True))[..., None]
    slope = np.empty_like(score)
    np.put_along_axis(slope, order, score, 2)
    return slope.mean(1)


def gumbel_ranks(scores, sizes, n_samples, rng):
    """1-based ranks of sampled rankings: one argsort for all queries if they have one size, else one for each query."""
    if (sizes == sizes[0]).all():
        noisy = scores.reshape(len(sizes), sizes[0]) + rng.gumbel(size=(n_samples, len(sizes), sizes[0]))
        return (np.argsort(np.argsort(-noisy, axis=2), axis=2) + 1).reshape(n_samples, -1)
    ranks, lo = np.empty((n_samples, len(scores)), np.int64), 0
    for n in sizes:
        noisy = scores[lo : lo + n] + rng.gumbel(size=(n_samples, n))
        ranks[:, lo : lo + n] = np.argsort(np.argsort(-noisy, axis=1), axis=1) + 1
        lo += n
    return ranks


def ndcg_by_loop(y, scores, qid):
    """Mean over queries of scikit-learn's `ndcg_score`, with the gain 2^y - 1."""
    from sklearn.metrics import ndcg_score

    values = []
    for q in np.unique(qid):
        rows = qid == q
        values.append(ndcg_score([2.0 ** y[rows] - 1], [scores[rows]]))
    return float(np.mean(values))


def nearest_by_double_loop(Z, which):
    """Distances of some queries to their nearest other one, by POT's solver for every pair; Z (queries, items, features)."""
    import ot

    mass, best = np.full(Z.shape[1], 1 / Z.shape[1]), []
    for i in which:
        distances = []
        for j in range(len(Z)):
            if j != i:
                cost = ((Z[i][:, None] - Z[j][None]) ** 2).sum(-1)
                distances.append(ot.emd2(mass, mass, cost))
        best.append(min(distances))
    return np.array(best)


@njit
def _arithmetic(first, last, out):
    for i in range(first, last):
        x = 0.1
        for _ in range(20_000):
            x = 0.999 * x + 0.1
        out[i] = x


def control():
    """What threads gain at best: no memory, no Python, nothing to wait for."""
    out = np.empty(500)
    over_queries(_arithmetic, np.arange(501), 1e9, out)
    return out
