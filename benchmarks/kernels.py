"""What bounds each kernel, measured beside it: random numbers, sorting, square roots and divisions, memory, arithmetic.

Each row sets a kernel against the least that its work must take: the same machine, arrays of the same size, and only the
operations that cannot be left out.
"""

from __future__ import annotations

import warnings
from functools import partial

from _tools import arguments, header, number, side_by_side, table, time_text

# isort: split
import numba
import numpy as np

from skfairrank._kernels import attack, exact, linear, nearest, policy
from skfairrank._kernels._jit import REASSOCIATE, njit
from skfairrank.plackett_luce import sample_rankings


@njit
def roots_and_divisions(m, v, e, n_steps):
    """The part of an Adam step that cannot be left out: a square root and a division for each feature."""
    for _ in range(n_steps):
        for k in range(len(e)):
            e[k] = m[k] / (np.sqrt(v[k]) + 1e-8)


@njit(fastmath=REASSOCIATE)
def read(X):
    """A sum over all of X: as fast as memory is read."""
    total = 0.0
    flat = X.reshape(X.size)
    for i in range(flat.size):
        total += flat[i]
    return total


@njit
def count_ranks(noise, n, n_rankings, rank):
    """Ranks of keys that are there already, by counting; and nothing else."""
    for s in range(n_rankings):
        key = noise[s * n : (s + 1) * n]
        for i in range(n):
            k, smaller = key[i], 0
            for j in range(n):
                smaller += key[j] < k
            rank[i] += smaller


@njit
def gradient_alone(order, weight, tail, plain, weighted):
    """What REINFORCE does with a ranking: weights left below every rank, the sum of their reciprocals, and two sums of it."""
    for s in range(len(order)):
        left, c = 0.0, 0.0
        for j in range(len(weight) - 1, -1, -1):
            left += weight[order[s, j]]
            tail[j] = left
        for j in range(len(weight)):
            c += 1.0 / tail[j]
            i = order[s, j]
            plain[i] += c
            weighted[i] += 0.1 * c


@njit
def same_operations(share, value, values, slope, reach, n_passes):
    """What a set and one of its items take, forward and backward, on numbers side by side in the second-level cache."""
    for _ in range(n_passes):
        for i in range(len(share)):
            slope[i] += share[i] * (0.5 + value[i])
        for i in range(len(share)):
            p = share[i] * 0.1
            slope[i] += p * (0.5 + value[i] - values[i])
            reach[i] += p


@njit
def pairwise_costs(Z, blocks, n, n_queries, cost):
    for j in range(n_queries):
        nearest._fill_cost(Z, 0, n, blocks, Z.shape[1] * n * j, n, cost)


def queries_of(B, n, rng):
    """Scores, offsets, normalised gains and discounts of B queries of n items."""
    discount = 1 / np.log2(np.arange(n) + 2.0)
    gain = rng.random((B, n))
    gain /= (np.sort(gain, axis=1)[:, ::-1] * discount).sum(axis=1, keepdims=True)
    return rng.normal(size=B * n), np.arange(B + 1) * n, gain.ravel(), discount


def sampling(quick):
    rows = []
    for n in (5, 10, 20, 50, 100, 300):
        rng, N = np.random.default_rng(0), 25
        B = max(2, 2000 // n)
        h, offsets, gain, discount = queries_of(B, n, rng)
        noise, gradient, utility = rng.standard_exponential(N * B * n), np.empty(B * n), np.empty(B)
        ranks, qid = np.empty((N, B * n), np.int64), np.repeat(np.arange(B), n)
        orders = np.argsort(noise.reshape(N * B, n), axis=1)
        s = side_by_side(
            {
                "noise": partial(rng.standard_exponential, out=noise),
                "count": partial(count_ranks, noise, n, B * N, np.zeros(n, np.int64)),
                "gradient": partial(gradient_alone, orders, np.ones(n), np.empty(n), np.zeros(n), np.zeros(n)),
                "ranks": partial(policy.sample_ranks, 0, B, h, offsets, noise, N, ranks),
                "reinforce": partial(policy.reinforce, 0, B, h, offsets, gain, discount, noise, N, gradient, utility),
                "plrank": partial(policy.plrank, 0, B, h, offsets, gain, discount, noise, N, gradient, utility),
                "public": partial(sample_rankings, h, qid=qid, n_samples=N, random_state=rng),
            },
            rounds=3 if quick else 7,
        )
        each = {name: 1e9 * float(np.median(t)) / (N * B * n) for name, t in s.items()}
        parts = ("noise", "count", "gradient", "ranks", "reinforce")
        share = each["reinforce"] / (each["count"] + each["gradient"])
        rows.append([str(n), *(each[k] for k in parts), share, each["plrank"], each["public"]])
    table(
        "Sampling: nanoseconds for each item of each sampled ranking, by query size; CPU time",
        [
            "items",
            "noise alone",
            "counting alone",
            "gradient alone",
            "sample_ranks",
            "reinforce",
            "of both alone",
            "plrank",
            "noise and all: sample_rankings",
        ],
        rows,
    )


def ascent(quick):
    rows = []
    for d, n_steps in ((2, 20), (29, 20), (135, 40), (136, 40), (500, 40)):
        rng = np.random.default_rng(0)
        basis = np.ascontiguousarray(np.linalg.qr(rng.normal(size=(d, min(2, d - 1))))[0].T)
        w, e, m, v, fair = rng.normal(size=d), np.zeros(d), np.empty(d), np.empty(d), np.empty(d)
        a, b = rng.random(d), rng.random(d)
        s = side_by_side(
            {
                "ascent": partial(attack._full_ascent, w, basis, 1.0, 0.1, 0.1, 1e-9, n_steps, e, fair, m, v),
                "bound": partial(roots_and_divisions, a, b, np.empty(d), n_steps),
            },
            rounds=3 if quick else 7,
        )
        ours, bound = (1e9 * float(np.median(s[k])) / (n_steps * d) for k in ("ascent", "bound"))
        rows.append([f"{d} features, {len(basis)} directions, {n_steps} steps", bound, ours, ours / bound])
    table(
        "Full attack: nanoseconds for each feature of each step of a path; CPU time",
        ["path", "root and division alone", "kernel _full_ascent", "ratio"],
        rows,
    )


def memory_bound(quick):
    rows = []
    for n_rows, d, dtype in (
        (2000, 29, "float64"),
        (100_000, 50, "float64"),
        (100_000, 50, "float32"),
        (20_000, 135, "float64"),
    ):
        rng = np.random.default_rng(0)
        X, w = rng.random((n_rows, d)).astype(dtype), rng.random(d)
        X.flags.writeable = False
        out, gradient = np.empty(n_rows), np.empty(d)
        straight, mixed = np.arange(n_rows), rng.permutation(n_rows)
        s = side_by_side(
            {
                "read": partial(read, X),
                "all": partial(linear.all_scores, 0, n_rows, X, w, out),
                "mixed": partial(linear.linear_scores, 0, n_rows, X, mixed, w, out),
                "back": partial(linear.pull_back, X, straight, out, 1.0, gradient),
            },
            rounds=3 if quick else 7,
        )
        rows.append(
            [f"{n_rows:,} x {d} {dtype}, {number(X.nbytes / 2**20)} MiB"]
            + [X.nbytes / float(np.median(s[k])) / 1e9 for k in ("read", "all", "mixed", "back")]
        )
    table(
        "Reading rows of X: gigabytes a second; CPU time",
        ["X", "sum of all numbers", "all_scores", "linear_scores, rows in random order", "pull_back"],
        rows,
    )


def subsets(quick):
    rows = []
    share, value, values = np.random.default_rng(0).random((3, 1 << 13))
    slope, reach = np.zeros((2, 1 << 13))
    for n in (6, 8, 10, 12, 14):
        B = max(1, 4096 >> max(0, n - 6))
        h, offsets, gain, discount = queries_of(B, n, np.random.default_rng(0))
        gradient, utility = np.empty(B * n), np.empty(B)
        s = side_by_side(
            {
                "exact": partial(exact.exact_gradient, 0, B, h, offsets, gain, discount, gradient, utility),
                "values": partial(exact.expected_discounts, 0, B, h, offsets, discount, gradient),
                "bound": partial(same_operations, share, value, values, slope, reach, 10),
            },
            rounds=3 if quick else 7,
        )
        pairs = 2.0**n * n / 2  # of a set and one of its items
        each, bound = 1e9 * np.median(s["exact"]) / (B * pairs), 1e9 * np.median(s["bound"]) / (10 * len(share))
        rows.append([str(n), *(time_text(np.median(s[k]) / B) for k in ("values", "exact")), each, bound, each / bound])
    table(
        "Sums over subsets: a query, and nanoseconds for each pair of a set and one of its items; CPU time",
        ["items", "expected_discounts", "exact_gradient", "a pair", "its operations alone", "ratio"],
        rows,
    )


def transport(quick):
    rows = []
    for n, d in ((10, 8), (20, 29), (20, 135)):
        rng, n_queries = np.random.default_rng(0), 200
        Z = rng.normal(size=(n_queries * n, d))
        offsets, blocks = np.arange(n_queries + 1) * n, np.empty(n_queries * n * d)
        nearest.transposed_blocks(Z, offsets, blocks)
        cost, out = np.empty((n, n)), np.empty((1, n_queries))
        s = side_by_side(
            {
                "costs": partial(pairwise_costs, Z, blocks, n, n_queries, cost),
                "distances": partial(nearest.pairwise_distances, 0, 1, Z, offsets, blocks, offsets, out),
            },
            rounds=3 if quick else 7,
        )
        flops = 3.0 * n * n * d * n_queries / np.median(s["costs"]) / 1e9
        costs, distances = (time_text(np.median(s[k]) / n_queries) for k in ("costs", "distances"))
        rows.append([f"{n} x {d}", costs, flops, distances])
    table(
        "Distances between two queries: costs of all pairs of items, and the transport on top; CPU time",
        ["items x features", "costs alone", "billions of operations a second", "pairwise_distances"],
        rows,
    )


def main():
    quick = arguments(__doc__).quick
    warnings.simplefilter("ignore")
    numba.set_num_threads(1)
    print(header())
    for part in (sampling, ascent, memory_bound, subsets, transport):
        part(quick)


if __name__ == "__main__":
    main()
