"""One training step of a network of 32 tanh units: inFairness, MLPScore, and the same network as a FunctionScore.

As `training_step.py`, which has the linear score: CPU seconds, one thread, the difference between a long and a short fit.
"""

from __future__ import annotations

import warnings

from _tools import arguments, header, ratio, side_by_side, table, time_text

# isort: split
import autograd.numpy as anp
import numpy as np
from _references import SHAPES
from training_step import infairness_step, step_seconds

from skfairrank.scores import FunctionScore, MLPScore

N_UNITS = 32
N_STEPS = {"synthetic": 160, "german": 80, "mslr": 20}


def network(theta, X):
    """The scores of `MLPScore((32,))`."""
    d = X.shape[1]
    W, b, w = theta[: d * N_UNITS].reshape(d, N_UNITS), theta[d * N_UNITS : -N_UNITS], theta[-N_UNITS:]
    return anp.dot(anp.tanh(X @ W + b), w)


def start(rng, n_features):
    return MLPScore((N_UNITS,)).initial_parameters(n_features, rng)


SYSTEMS = {
    "MLPScore": {"score_function": MLPScore((N_UNITS,))},
    "FunctionScore": {"score_function": FunctionScore(network, start)},
}


def measure(shape, quick):
    """CPU seconds of a step by system, one entry for each round."""
    rounds, n_steps = (3, N_STEPS[shape] // 2) if quick else (5, N_STEPS[shape])
    for settings in SYSTEMS.values():
        step_seconds(shape, settings, 3)
    theirs = infairness_step(shape, N_UNITS)
    seconds = {name: np.empty(rounds) for name in (*SYSTEMS, *(["inFairness"] if theirs else []))}
    for i in range(rounds):
        for name, settings in SYSTEMS.items():
            seconds[name][i] = step_seconds(shape, settings, n_steps)
        if theirs:
            seconds["inFairness"][i] = side_by_side({"": theirs}, rounds=1, at_least=0.0)[""][0]
    return seconds


def main():
    quick = arguments(__doc__).quick
    warnings.simplefilter("ignore")
    print(header())
    rows = []
    for shape, (B, n, d, n_samples, attack_steps) in SHAPES.items():
        s = measure(shape, quick)
        is_there = "inFairness" in s
        rows.append(
            [
                f"{shape}: {B} x {n} x {d}, {n_samples}, {attack_steps}+{attack_steps}",
                time_text(s["inFairness"]) if is_there else "not installed",
                time_text(s["MLPScore"]),
                time_text(s["FunctionScore"]),
                ratio(s["inFairness"], s["MLPScore"]) if is_there else "-",
                ratio(s["FunctionScore"], s["MLPScore"]),
            ]
        )
    table(
        f"One training step of a network of {N_UNITS} units, CPU time",
        ["shape", "inFairness", "MLPScore", "FunctionScore", "inFairness / MLPScore", "FunctionScore / MLPScore"],
        rows,
    )


if __name__ == "__main__":
    main()
