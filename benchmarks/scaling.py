"""How the cost of a training step grows with queries, items, features, samples, attack steps and threads.

One of them changes at a time, from 10 queries of 10 items and 29 features with 25 sampled rankings and 20 + 20 attack steps.
Prints tables and draws the curves (matplotlib).
"""

from __future__ import annotations

import os

from skfairrank.adversaries import Ascent

os.environ["NUMBA_NUM_THREADS"] = str(max(2, os.cpu_count()))

import time
import warnings

from _tools import ROOT, arguments, header, side_by_side, table, time_text

# isort: split
import numba
import numpy as np
from _references import control

from skfairrank import PlackettLuceRanker, SenSTIRRanker
from skfairrank.inspection._plot import COLORS

BASE = {"queries": 10, "items": 10, "features": 29, "samples": 25, "attack steps": 20, "threads": 1}
CURVES = {
    "queries": (1, 3, 10, 30, 100, 300),
    "items": (5, 10, 20, 50, 100, 200, 400),
    "features": (2, 5, 10, 29, 100, 300, 1000),
    "samples": (2, 5, 10, 25, 50, 100, 200),
    "attack steps": (5, 10, 20, 40, 80, 160),
}
SYSTEMS = ("plain", "shared starts", "every item attacked")


def step_seconds(system, shape, clock, budget):
    """Seconds of one step: a long fit less a short one, so that what `fit` does once does not count."""
    n_queries = max(100, shape["queries"])
    rng = np.random.default_rng(0)
    n, d = shape["items"], shape["features"]
    X, y = rng.normal(size=(n_queries * n, d)), rng.integers(0, 5, n_queries * n).astype(float)
    qid = np.repeat(np.arange(n_queries), n)
    common = {"batch_size": shape["queries"], "n_samples": shape["samples"], "random_state": 0}
    if system == "plain":
        ranker = PlackettLuceRanker(**common)
    else:
        V = np.linalg.qr(rng.normal(size=(d, min(2, d - 1))))[0].T
        n_steps, n_starts = shape["attack steps"], 4 if system == "shared starts" else None
        adversary = Ascent(subspace_n_steps=n_steps, full_n_steps=n_steps, subspace_n_starts=n_starts)
        ranker = SenSTIRRanker(np.ascontiguousarray(V), rho=1.0, adversary=adversary, fair_start=0.0, **common)

    def fit(max_iter):
        start = clock()
        ranker.set_params(max_iter=max_iter).fit(X, y, qid=qid)
        return clock() - start

    # Every query is met before the steps that count.
    short = -(-n_queries // min(shape["queries"], n_queries)) + 2
    numba.set_num_threads(shape["threads"])
    fit(short)
    start, n_steps = clock(), 10
    fit(n_steps)
    n_steps = int(np.clip(n_steps * budget / max(clock() - start, 1e-6), 10, 4000))
    return float(np.median([max(fit(short + n_steps) - fit(short), 0.0) / n_steps for _ in range(3)]))


def exponent(values, seconds):
    """Slope of the last half of the curve, both in logarithms: 1 where cost is proportional."""
    half = len(values) // 2
    x, y = np.log(values[half:]), np.log(seconds[half:])
    return float(np.polyfit(x, y, 1)[0])


def draw(curves, threads, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.5), layout="constrained")
    # A system keeps its colour in panels that lack another one: the plain ranker attacks nothing.
    colors = dict(zip(SYSTEMS, COLORS))
    for axis, (name, (values, seconds)) in zip(axes.flat, curves.items()):
        for system, times in seconds.items():
            axis.loglog(values, 1e3 * np.array(times), marker="o", label=system, color=colors[system])
        axis.set(xlabel=name, ylabel="ms for one step")
        axis.grid(which="major", alpha=0.3)
    axes.flat[0].legend()
    axis = axes.flat[5]
    counts = sorted(next(iter(threads.values())))
    # Lines here are shapes, not systems: the colours that follow those of the systems.
    for color, (queries, seconds) in zip(COLORS[len(SYSTEMS) :] + ("0.5",), threads.items()):
        axis.plot(
            counts,
            [seconds[counts[0]] / seconds[k] for k in counts],
            marker="o",
            label=queries if queries == "control" else f"{queries} {'query' if queries == 1 else 'queries'} of 20",
            color=color,
        )
    axis.set(xlabel="threads", ylabel="times faster than one thread", xticks=counts, ylim=(0, None))
    axis.grid(alpha=0.3)
    axis.legend(loc="lower left", fontsize="small")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    options = arguments(__doc__, picture=str(ROOT / "benchmarks" / "scaling.png"))
    warnings.simplefilter("ignore")
    budget = 0.05 if options.quick else 0.2
    print(header())
    curves, rows = {}, []
    for name, values in CURVES.items():
        values = values[::2] if options.quick else values
        seconds = {
            system: [step_seconds(system, {**BASE, name: value}, time.process_time, budget) for value in values]
            for system in SYSTEMS
            if not (system == "plain" and name == "attack steps")
        }
        curves[name] = values, seconds
        for system, times in seconds.items():
            rows.append(
                [
                    name,
                    system,
                    ", ".join(f"{value}: {time_text(t)}" for value, t in zip(values, times)),
                    f"{exponent(values, times):.2f}",
                ]
            )
    table(
        "Cost of a step, CPU time; else 10 queries, 10 items, 29 features, 25 samples, 20 + 20 steps",
        ["grows with", "system", "cost", "exponent at the upper end"],
        rows,
    )
    most = numba.config.NUMBA_NUM_THREADS
    counts = [1, most] if most < 4 else [1, 2, most]
    threads = {
        queries: {
            k: step_seconds(
                "shared starts", {**BASE, "queries": queries, "items": 20, "threads": k}, time.perf_counter, budget
            )
            for k in counts
        }
        for queries in (1, 10, 100, 1000)
    }
    threads["control"] = {}
    for k in counts:
        numba.set_num_threads(k)
        threads["control"][k] = float(np.median(side_by_side({k: control}, clock=time.perf_counter)[k]))
    table(
        "Cost of a step by threads, elapsed time (queries of 20 items, 29 features; control: arithmetic alone)",
        ["queries in a step", *(f"{k} thread" + "s" * (k > 1) for k in counts), "ratio"],
        [[str(q), *(time_text(s[k]) for k in counts), s[1] / s[counts[-1]]] for q, s in threads.items()],
    )
    draw(curves, threads, options.picture)
    print(f"\nCurves drawn to {options.picture}")


if __name__ == "__main__":
    main()
