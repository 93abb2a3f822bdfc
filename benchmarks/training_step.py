"""One training step: inFairness, batched NumPy, and skfairrank with every item attacked, with shared starts, and in closed form.

A step's time is the difference between a long and a short fit, so that what `fit` does once does not count. inFairness
(PyTorch) takes part where it is installed (`pip install .[benchmarks]`); its single attack gets as many steps as the two
phases here together.
"""

from __future__ import annotations

import time
import warnings

from _tools import arguments, header, ratio, side_by_side, table, time_text

# isort: split
import numpy as np
from _references import SHAPES, senstir_step
from sklearn.base import clone

from skfairrank import PlackettLuceRanker, SenSTIRRanker
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget

SYSTEMS = {
    "plain": None,
    "exact box": ExactBox(),
    "exact": ExactBudget(),
    "shared starts": Ascent(subspace_n_starts=4),
    "every item attacked": Ascent(subspace_n_starts=None),
}


def task(shape):
    """100 queries, and orthonormal sensitive directions."""
    _, n, d, _, _ = SHAPES[shape]
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.normal(size=(d, min(2, d - 1))))[0].T
    X, y = rng.normal(size=(100, n, d)), rng.integers(0, 5, (100, n)).astype(float)
    y[:, 0] = 4
    return X, y, np.ascontiguousarray(V)


def step_seconds(shape, adversary, n_steps):
    """CPU seconds of one step, from fits of 20 and of 20 + n_steps."""
    B, n, d, n_samples, attack_steps = SHAPES[shape]
    X, y, V = task(shape)
    common = {"batch_size": B, "n_samples": n_samples, "random_state": 0}
    if isinstance(adversary, Ascent):
        adversary = clone(adversary).set_params(subspace_n_steps=attack_steps, full_n_steps=attack_steps)

    def fit(max_iter):
        if adversary is None:
            ranker = PlackettLuceRanker(max_iter=max_iter, **common)
        else:
            ranker = SenSTIRRanker(V, rho=1.0, adversary=adversary, fair_start=0.0, max_iter=max_iter, **common)
        start = time.process_time()
        ranker.fit(X.reshape(-1, d), y.ravel(), qid=np.repeat(np.arange(100), n))
        return time.process_time() - start

    return (fit(20 + n_steps) - fit(20)) / n_steps


def numpy_step(shape):
    B, _, d, n_samples, attack_steps = SHAPES[shape]
    X, y, V = task(shape)
    rng, gain = np.random.default_rng(1), 2.0**y - 1
    w = rng.normal(size=d) * 0.1

    def step():
        batch = rng.integers(0, 100, B)
        senstir_step(X[batch], gain[batch], w, V, 1.0, 2.0, n_samples, attack_steps, rng)

    return step


def infairness_step(shape, n_units=None):
    """A step of inFairness's SenSTIR, or None where it is not installed; linear, or a network with so many tanh units."""
    try:
        import torch
        from inFairness.distances import SensitiveSubspaceDistance, SquaredEuclideanDistance
        from inFairness.fairalgo import SenSTIR
    except ImportError:
        return None
    torch.set_num_threads(1)
    B, n, d, n_samples, attack_steps = SHAPES[shape]
    X, y, V = task(shape)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    fair, between = SensitiveSubspaceDistance(), SquaredEuclideanDistance()
    fair.fit(torch.tensor(V.T, dtype=torch.float32))
    between.fit(num_dims=n)
    network = torch.nn.Linear(n_units or d, 1, bias=False)
    if n_units is not None:
        network = torch.nn.Sequential(torch.nn.Linear(d, n_units), torch.nn.Tanh(), network)
    algorithm = SenSTIR(
        network, fair, between, rho=1.0, eps=0.01, auditor_nsteps=2 * attack_steps, auditor_lr=0.001,
        monte_carlo_samples_ndcg=n_samples,
    )  # fmt: skip
    algorithm.train()
    optimizer, rng = torch.optim.Adam(network.parameters(), lr=0.01), np.random.default_rng(1)

    def step():
        batch = rng.integers(0, 100, B)
        optimizer.zero_grad()
        algorithm(X[batch], y[batch]).loss.backward()
        optimizer.step()

    return step


def measure(shape, quick):
    """CPU seconds of a step by system, one entry for each round."""
    rounds = 3 if quick else 7
    steps = {"plain": 800, "exact box": 800, "exact": 800, "shared starts": 800, "every item attacked": 200}
    scale = {"synthetic": 2.0, "german": 1.0, "mslr": 0.4}[shape] * (0.5 if quick else 1.0)
    for settings in SYSTEMS.values():
        step_seconds(shape, settings, 5)
    reference = numpy_step(shape)
    seconds = {name: np.empty(rounds) for name in SYSTEMS} | {"NumPy": np.empty(rounds)}
    for i in range(rounds):
        seconds["NumPy"][i] = side_by_side({"": reference}, rounds=1, at_least=0.1)[""][0]
        for name, settings in SYSTEMS.items():
            seconds[name][i] = step_seconds(shape, settings, int(scale * steps[name]))
    theirs = infairness_step(shape)
    if theirs is not None:
        seconds["inFairness"] = side_by_side({"": theirs}, rounds=1 if quick else 3, at_least=0.0)[""]
    return seconds


def main():
    quick = arguments(__doc__).quick
    warnings.simplefilter("ignore")
    print(header())
    times, ratios = [], []
    for shape, (B, n, d, n_samples, attack_steps) in SHAPES.items():
        s = measure(shape, quick)
        infairness = s.get("inFairness")
        title = f"{shape}: {B} x {n} x {d}, {n_samples}, {attack_steps}+{attack_steps}"
        times.append(
            [title, "not installed" if infairness is None else time_text(infairness), time_text(s["NumPy"])]
            + [time_text(s[name]) for name in reversed(SYSTEMS)]
        )
        ours = s["shared starts"]
        ratios.append(
            [
                shape,
                "-" if infairness is None else float(np.median(infairness) / np.median(ours)),
                ratio(s["NumPy"], ours),
                ratio(s["every item attacked"], ours),
                ratio(ours, s["plain"]),
                ratio(s["exact box"], s["plain"]),
            ]
        )
    table(
        "One training step (queries x items x features, sampled rankings, attack steps), CPU time",
        ["shape", "inFairness", "batched NumPy", *reversed(SYSTEMS)],
        times,
    )
    table(
        "A step with shared starts: times faster than others, and times the cost of a plain step (also of a box step)",
        [
            "shape",
            "than inFairness",
            "than NumPy",
            "than every item attacked",
            "of a plain step",
            "box, of a plain step",
        ],
        ratios,
    )


if __name__ == "__main__":
    main()
