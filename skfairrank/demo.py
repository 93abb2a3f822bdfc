"""The main job from one command: train the paper's rankers on its two small tasks, print a table, draw a picture.

``python -m skfairrank.demo`` needs no data for the synthetic task; German Credit is added where its file is at hand.
``--published`` compares with what the authors' program recorded, ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from skfairrank import experiments
from skfairrank.experiments._published import published_table
from skfairrank.experiments._tables import text_table

__all__ = ["main"]

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
NOTES = """\
On test queries. NDCG: of the list sorted by score; higher is better; stochastic: of the policy that draws rankings by the
scores, which the paper reports. tau: Kendall's, between a ranking and that of the hypothetical query (Synthetic: the
nearest other query under the fair metric; German Credit: everyone's sex flipped); 1 is the same order. disparity: of
group exposure (majority and minority; 25 and older, and younger), sorted and stochastic alike; lower is better.
Expectations are exact. seconds: one fit.
A policy with smaller scores draws less decidedly: it looks fairer in its disparity, and loses NDCG, though its sorted
list may be the same. Where lists are sorted, compare the columns of the sorted list.
"""


def draw(path: Path, task: experiments.Experiment, runs: pd.DataFrame) -> None:
    """Contours of the score on the synthetic task above, the trade-off on German Credit, or else on that task, below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.4), layout="constrained")
    above, below = np.asarray(figure.subfigures(2, 1, height_ratios=(1.0, 1.12)))
    rankers = runs[runs["data"] == "Synthetic"].set_index("system")["ranker"]
    experiments.draw_contours(above, task.train, {title: rankers[name] for name, title in CONTOURS.items()})
    data, axes = runs["data"].iloc[-1], below.subplots(1, len(PANELS))
    results = experiments.summarize(runs[runs["data"] == data])
    experiments.draw_tradeoff(axes, results, PANELS, names={"SenSTIR": "SenSTIR, by rho"})
    below.suptitle(f"{data}: what fairness costs", fontsize="large")
    below.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=80, pil_kwargs={"optimize": True})


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m skfairrank.demo",
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

    task = experiments.synthetic_experiment()
    print("Compiling (the first time this takes a while; the result is kept) ...", file=sys.stderr, flush=True)
    experiments.compare([task.shortened(1000)], SYNTHETIC)  # so that no fit is timed while numba compiles
    runs = experiments.compare([task.shortened(shorter)], SYNTHETIC, verbose=True)
    try:
        people = experiments.german_credit_people(fetch=False)
    except FileNotFoundError as absent:
        note = str(absent)
    else:
        splits = [experiments.german_credit_experiment(people, k).shortened(shorter) for k in range(arguments.splits)]
        runs = pd.concat([runs, experiments.compare(splits, GERMAN, verbose=True)])
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


if __name__ == "__main__":
    main()
