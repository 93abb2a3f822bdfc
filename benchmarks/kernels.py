"""What bounds each kernel, measured beside it: random numbers, sorting, square roots and divisions, memory, arithmetic.

Each row sets a kernel against the least that its work must take: the same machine, arrays of the same size, and only the
operations that cannot be left out. `--before PATH` sets training steps of this clone beside those of another one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from functools import partial

from _tools import ROOT, header, number, ratio, side_by_side, table, time_text

# isort: split
import numba
import numpy as np
from _references import reinforce

from skfairrank._kernels import ascent, exact, gradients, linear, noise, plans, ranks
from skfairrank._kernels._jit import REASSOCIATE, njit
from skfairrank._kernels.vectors import LANES
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
def noise_alone(key, B, n_samples, n, out):
    """Exponential variables of B queries, in a buffer that stays in the first-level cache."""
    for q in range(B):
        for sample in range(0, n_samples, LANES):
            noise.exponentials(key, q, sample // LANES, n, out)


@njit(fastmath=REASSOCIATE)
def set_values(value, w):
    total = 0.0
    for i in range(len(value)):
        total += w * value[i]
    return total


@njit
def set_reach(reach, p):
    for i in range(len(reach)):
        reach[i] += p


@njit
def same_operations(value, reach, n_passes):
    """What a set and one of its items take, forward and backward, on numbers side by side in the second-level cache."""
    total = 0.0
    for _ in range(n_passes):
        total += set_values(value, 0.1)
        total += set_values(value, 0.2)
        set_reach(reach, 0.1)
    return total


@njit
def pairwise_costs(Z, blocks, n, n_queries, cost):
    for j in range(n_queries):
        plans.fill_cost(Z, 0, n, blocks, Z.shape[1] * n * j, n, cost)


def queries_of(B, n, rng):
    """Scores, offsets, normalised gains and discounts of B queries of n items."""
    discount = 1 / np.log2(np.arange(n) + 2.0)
    gain = rng.random((B, n))
    gain /= (np.sort(gain, axis=1)[:, ::-1] * discount).sum(axis=1, keepdims=True)
    return rng.normal(size=B * n), np.arange(B + 1) * n, gain.ravel(), discount


def sampling(quick):
    rows = []
    for n in (5, 10, 15, 20, 30, 50, 100, 300):
        rng, N = np.random.default_rng(0), 32
        B = max(2, 2000 // n)
        h, offsets, gain, discount = queries_of(B, n, rng)
        gradient, utility, nobody_leaves = np.empty(B * n), np.empty(B), np.empty(0)
        found, qid, key = np.empty((N, B * n), np.int64), np.repeat(np.arange(B), n), np.uint64(1)
        by_gradient = 0, B, h, offsets, gain, nobody_leaves, discount, key, N, gradient, utility
        s = side_by_side(
            {
                "numpy": partial(reinforce, h.reshape(B, n), gain.reshape(B, n), N, rng),
                "noise": partial(noise_alone, key, B, N, n, np.empty((n + 1) * LANES)),
                "ranks": partial(ranks.sample_ranks, 0, B, h, offsets, key, N, found),
                "reinforce": partial(gradients.reinforce, *by_gradient),
                "plrank": partial(gradients.plrank, *by_gradient),
                "public": partial(sample_rankings, h, qid=qid, n_samples=N, random_state=rng),
            },
            rounds=3 if quick else 7,
        )
        each = {name: 1e9 * float(np.median(t)) / (N * B * n) for name, t in s.items()}
        rows.append([str(n), *each.values(), ratio(s["numpy"], s["reinforce"])])
    table(
        "Sampling: nanoseconds for each item of each sampled ranking, by query size; CPU time",
        [
            "items",
            "REINFORCE in NumPy",
            "noise alone",
            "sample_ranks",
            "reinforce",
            "plrank",
            "sample_rankings",
            "reinforce, than NumPy",
        ],
        rows,
    )


# Run in a process of its own, in the folder of the clone.
STEP = """
import sys, time, warnings
import numpy as np
from skfairrank import PlackettLuceRanker
warnings.simplefilter("ignore")
n, n_samples, n_steps = map(int, sys.argv[2:])
rng = np.random.default_rng(0)
X, y, qid = rng.normal(size=(100 * n, 5)), rng.integers(0, 5, 100 * n).astype(float), np.repeat(np.arange(100), n)
def fit(max_iter):
    start = time.process_time()
    PlackettLuceRanker(gradient=sys.argv[1], max_iter=max_iter, n_samples=n_samples, random_state=0).fit(X, y, qid=qid)
    return time.process_time() - start
fit(5)
print(min(fit(20 + n_steps) - fit(20) for _ in range(5)) / n_steps)
"""


def step_seconds(tree, kind, n, n_samples, n_steps) -> float:
    command = [sys.executable, "-c", STEP, kind, *map(str, (n, n_samples, n_steps))]
    return float(subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout)


def steps(quick, before):
    rows = []
    for kind in ("reinforce", "plrank"):
        for n, n_samples in ((10, 10), (10, 25), (15, 25), (20, 32), (50, 32)):
            seconds = np.array(
                [
                    [step_seconds(tree, kind, n, n_samples, 4000 // n) for tree in (before, ROOT)]
                    for _ in range(1 if quick else 3)
                ]
            )
            theirs, ours = seconds.min(axis=0)
            rows.append([f"{kind}, 10 queries of {n}, {n_samples}", time_text(theirs), time_text(ours), ours / theirs])
    table(
        "A training step without a regulariser (sampled rankings last), CPU time",
        ["step", str(before), "here", "ratio"],
        rows,
    )


@njit
def climb(times, *arguments):
    for _ in range(times):
        ascent.climb(*arguments)


def ascents(quick):
    rows = []
    for d, n_steps in ((2, 20), (29, 20), (135, 40), (500, 40)):
        for P in (4, 8, 200):
            rng = np.random.default_rng(0)
            basis = np.ascontiguousarray(np.linalg.qr(rng.normal(size=(d, min(2, d - 1))))[0].T)
            rank, settings = len(basis), np.array([1.0, 2.0, np.inf, 0.0, 0.0, 0.0, 1e-9, n_steps])
            given = (
                0, P, np.zeros((P, 0)), np.zeros((P, d)), np.zeros((6, P)), np.full(P, 10.0), np.zeros((0, d)), np.zeros((1, 0)),
                np.vstack([rng.normal(size=d), basis]), np.ones(rank), settings,
                np.empty((ascent.block_rows(0, d, rank), ascent.LANES)),
            )  # fmt: skip
            a, b = rng.random((2, 1 << 10))
            s = side_by_side(
                {
                    "ascent": partial(climb, 10, *given),
                    "bound": partial(roots_and_divisions, a, b, np.empty(len(a)), 10),
                },
                rounds=3 if quick else 7,
            )
            ours, bound = (
                1e9 * float(np.median(s["ascent"])) / (10 * P * n_steps * d),
                1e9 * float(np.median(s["bound"])) / 10 / len(a),
            )
            rows.append(
                [f"{d} features, {len(basis)} directions, {n_steps} steps, {P} paths", bound, ours, ours / bound]
            )
    table(
        "Full attack: nanoseconds for each feature of each step of a path; CPU time",
        ["paths", "root and division alone", "kernel climb", "ratio"],
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
    value, reach = np.random.default_rng(0).random(1 << 13), np.zeros(1 << 13)
    for n in (6, 8, 10, 12, 14):
        B = max(1, 4096 >> max(0, n - 6))
        h, offsets, gain, discount = queries_of(B, n, np.random.default_rng(0))
        gradient, utility = np.empty(B * n), np.empty(B)
        s = side_by_side(
            {
                "exact": partial(
                    exact.exact_gradient, 0, B, h, offsets, gain, np.empty(0), discount, gradient, utility
                ),
                "values": partial(exact.expected_discounts, 0, B, h, offsets, discount, gradient),
                "bound": partial(same_operations, value, reach, 10),
            },
            rounds=3 if quick else 7,
        )
        pairs = 2.0**n * n / 2  # of a set and one of its items
        each, bound = 1e9 * np.median(s["exact"]) / (B * pairs), 1e9 * np.median(s["bound"]) / (10 * len(value))
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
        plans.transposed_blocks(Z, offsets, blocks)
        cost, out, wanted = np.empty((n, n)), np.empty((1, n_queries)), np.ones((1, n_queries), bool)
        s = side_by_side(
            {
                "costs": partial(pairwise_costs, Z, blocks, n, n_queries, cost),
                "distances": partial(plans.pairwise_distances, 0, 1, Z, offsets, blocks, offsets, wanted, out),
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smaller share of the work; ratios are rougher")
    parser.add_argument("--before", help="another clone, whose training steps are measured beside those of this one")
    asked = parser.parse_args()
    quick = asked.quick
    warnings.simplefilter("ignore")
    numba.set_num_threads(1)
    print(header())
    for part in (sampling, ascents, memory_bound, subsets, transport):
        part(quick)
    if asked.before:
        steps(quick, asked.before)


if __name__ == "__main__":
    main()
