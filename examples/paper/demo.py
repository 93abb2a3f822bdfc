"""The main job from one command: train the paper's rankers on its two small tasks, print a table, draw a picture.

``python -m examples.paper.demo`` needs no data for the synthetic task; German Credit is added where its file is at hand.
``--published`` compares with what the authors' program recorded, ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from skfairrank.metrics import group_exposure_disparity

from .pictures import draw_contours, draw_tradeoff
from .systems import compare, markdown, summarize, text_table
from .tasks import (
    RECORDED,
    Experiment,
    german_credit_experiment,
    german_credit_people,
    recorded_experiment,
    synthetic_experiment,
)

SYNTHETIC = {"Baseline": None, "Project": None, "SenSTIR": (0.0001, 0.0003, 0.001)}
GERMAN = {"Baseline": None, "Project": None, "Drop age and sex": None, "SenSTIR": (0.01, 0.1, 0.3, 1.0)}
CONTOURS = {"Baseline": "rho 0", "SenSTIR, rho 0.0003": "rho 0.0003", "SenSTIR, rho 0.001": "rho 0.001"}
# Panels of the trade-off: what stands below, and on the left. Tau and the first disparity belong to the sorted list.
SORTED, POLICY = "NDCG of the sorted list", "NDCG of the policy"
PANELS = (
    ("ndcg", "tau", SORTED, "Kendall's tau with the\nhypothetical ranking (1: no change)"),
    ("ndcg", "disparity", SORTED, "disparity of the\nsorted list (0: none)"),
    ("stochastic_ndcg", "stochastic_disparity", POLICY, "disparity of the policy (0: none),\nlower also if undecided"),
)
PUBLISHED: dict[str, dict[str, Sequence | None]] = {
    "german_seed0": {"Baseline": None, "Project": None, "SenSTIR": (0.01, 0.1, 1.0)},
    "german_seed1": {"Baseline": None, "SenSTIR": (1.0,)},
}
DIGITS = {"ndcg": 3, "tau": 3, "disparity": 4}  # of what is recorded
NOTES = """\
On test queries. NDCG: of the list sorted by score; higher is better; stochastic: of the policy that draws rankings by the
scores, which the paper reports. tau: Kendall's, between a ranking and that of the hypothetical query (Synthetic: the
nearest other query under the fair metric; German Credit: everyone's sex flipped); 1 is the same order. disparity: of
group exposure (majority and minority; 25 and older, and younger), sorted and stochastic alike; lower is better.
Expectations are exact. seconds: one fit.
A policy with smaller scores draws less decidedly: it looks fairer in its disparity, and loses NDCG, though its sorted
list may be the same. Where lists are sorted, compare the columns of the sorted list.
"""


def draw(path: Path, task: Experiment, runs: pd.DataFrame) -> None:
    """Contours of the score on the synthetic task above, the trade-off on German Credit, or else on that task, below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.4), layout="constrained")
    above, below = np.asarray(figure.subfigures(2, 1, height_ratios=(1.0, 1.12)))
    rankers = runs[runs["data"] == "Synthetic"].set_index("system")["ranker"]
    draw_contours(above, task.train, {title: rankers[name] for name, title in CONTOURS.items()})
    data, axes = runs["data"].iloc[-1], below.subplots(1, len(PANELS))
    results = summarize(runs[runs["data"] == data])
    draw_tradeoff(axes, results, PANELS, names={"SenSTIR": "SenSTIR, by rho"})
    below.suptitle(f"{data}: what fairness costs", fontsize="large")
    below.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=80, pil_kwargs={"optimize": True})


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.paper.demo",
        description="Train the rankers of 'Individually Fair Ranking' (Bower et al. 2021), print a table, draw a picture.",
        epilog="German Credit is looked for in the folder that SKFAIRRANK_DATA names, else in ../shared/data.",
    )
    add = parser.add_argument
    add("--output", type=Path, default=Path("demo.png"), metavar="PNG", help="the picture (demo.png)")
    add("--splits", type=int, default=5, metavar="N", help="random splits of German Credit (5)")
    add("--quick", action="store_true", help="a hundredth of the training steps: a test that all runs")
    add("--published", action="store_true", help="instead, German Credit beside the authors' numbers, as Markdown")
    arguments = parser.parse_args(argv)
    if arguments.splits < 1:
        parser.error(f"--splits {arguments.splits}: give at least 1")
    if not arguments.output.absolute().parent.is_dir():
        parser.error(f"--output {arguments.output}: there is no folder {arguments.output.absolute().parent}")
    return arguments


def main(argv: list[str] | None = None) -> None:
    """Run the demo with these arguments, by default those of the command line."""
    arguments, start = parse(argv), time.perf_counter()
    shorter = 100 if arguments.quick else 1
    if arguments.published:
        try:
            print(published_table(shorter=shorter))
        except FileNotFoundError as absent:
            sys.exit(str(absent))
        return

    task = synthetic_experiment()
    compare([task.shortened(1000)], SYNTHETIC)  # so that no fit is timed while numba compiles
    runs = compare([task.shortened(shorter)], SYNTHETIC, verbose=True)
    try:
        people = german_credit_people(fetch=False)
    except FileNotFoundError as absent:
        note = str(absent)
    else:
        splits = [german_credit_experiment(people, k).shortened(shorter) for k in range(arguments.splits)]
        runs = pd.concat([runs, compare(splits, GERMAN, verbose=True)])
        errors = ", ± standard errors" if len(splits) > 1 else ""
        note = f"German Credit: means over {len(splits)} random splits{errors}."
    print(text_table(runs), NOTES + note, sep="\n")
    try:
        draw(arguments.output, task, runs)
        print(f"Picture: {arguments.output.resolve()}")
    except ImportError:
        python = shlex.quote(sys.executable)  # what it installs is for the program that runs now
        print(f"No picture, since matplotlib is not installed. To get it:\n    {python} -m pip install matplotlib")
    print(f"Done in {time.perf_counter() - start:.0f} s.")


def published_table(*, n_seeds: int = 3, n_draws: int = 20, shorter: int = 1) -> str:
    """A Markdown table: the authors' recorded numbers beside those of `n_seeds` trainings of ours.

    The authors estimate the disparity from 25 sampled rankings of a query. Noise inside its hinge, max(0, .), makes
    that estimate too large on average, so ours is given both ways: its mean over `n_draws` such samples, and exactly.
    """
    experiments = {name: replace(recorded_experiment(name).shortened(shorter), name=name) for name in PUBLISHED}
    judge = partial(_judge_as_published, n_draws=n_draws)
    runs = pd.concat(
        compare([experiments[name]] * n_seeds, PUBLISHED[name], judge=judge, verbose=True) for name in PUBLISHED
    )
    rows, away = [], []
    for (data, system), ours in runs.groupby(["data", "system"], sort=False):
        cells, recorded = [], RECORDED[data][system]
        for measure, digits in DIGITS.items():
            cells += [f"{recorded[measure]:.{digits}f}", _several(ours[measure], digits)]
        rows.append((data, system, *cells, _several(ours["exact"], 4)))
        away.append([np.abs(ours[measure] - recorded[measure]).max() for measure in DIGITS])
    header = ["queries", "system"]
    for measure in ("NDCG", "tau", "disparity"):
        header += [f"{measure}, published", "ours"]
    ndcg, tau, disparity = np.max(away, axis=0)
    return markdown([*header, "ours, exact"], rows) + (
        f"\nFarthest from the published numbers: {ndcg:.3f} in NDCG, {tau:.3f} in tau, {disparity:.4f} in the disparity."
    )


def _judge_as_published(experiment: Experiment, ranker, *, n_draws: int) -> dict[str, float]:
    """What is recorded, of the policy, and the disparity as the authors estimate it."""
    exact, test = experiment.judge(ranker), experiment.test
    of_test = {"qid": test.qid, "sensitive_features": test.groups, "n_samples": 25}
    scores = ranker.predict(test.X)
    sampled = [group_exposure_disparity(test.y, scores, random_state=draw, **of_test) for draw in range(n_draws)]
    return {
        "ndcg": exact["stochastic_ndcg"],
        "tau": exact["tau"],
        "disparity": float(np.mean(sampled)),
        "exact": exact["stochastic_disparity"],
    }


def _several(values, digits: int) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


if __name__ == "__main__":
    main()
