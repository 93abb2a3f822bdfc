"""The main job from one command: train the paper's rankers on its two small tasks, print a table, draw a picture.

``python -m skfairrank.demo`` needs no data for the synthetic task; German Credit is added where its file is at hand.
``python -m skfairrank.demo --published`` compares German Credit with what the authors' program recorded.
Settings are those of Table 2 of Bower et al. (2021); ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from skfairrank import PlackettLuceRanker, SenSTIRRanker
from skfairrank.experiments import (
    GERMAN_URL,
    RECORDED,
    Experiment,
    data_folder,
    german_credit_experiment,
    german_credit_people,
    recorded_experiment,
    synthetic_experiment,
)
from skfairrank.inspection import ScoreContourDisplay, TradeoffDisplay

__all__ = ["main"]

BASELINE, PROJECT, DROP, SENSTIR = "Baseline", "Project", "Drop age and sex", "SenSTIR, by rho"
CONTOUR_RHOS = (0.0, 0.0003, 0.001)  # the paper's Figure 1
SYNTHETIC_RHOS = (0.0001, 0.0003, 0.001)
GERMAN_RHOS = (0.01, 0.1, 0.3, 1.0)
PUBLISHED_RHOS = (0.01, 0.1, 1.0)
PUBLISHED = {name: RECORDED[name] for name in ("german_seed0", "german_seed1")}

# What `Experiment.judge` returns: in this order, under these titles, with so many digits.
MEASURES = {
    "ndcg": ("NDCG", 3),
    "stochastic_ndcg": ("stochastic", 3),
    "tau": ("tau", 3),
    "disparity": ("disparity", 4),
    "stochastic_disparity": ("stochastic", 4),
}

NOTES = """\
On test queries. NDCG: of the list sorted by score; higher is better; stochastic: of the policy that draws rankings by the
scores, which the paper reports. tau: Kendall's, between a ranking and that of the hypothetical query (Synthetic: the
nearest other query under the fair metric; German Credit: everyone's sex flipped); 1 is the same order. disparity: of
group exposure (majority and minority; 25 and older, and younger), sorted and stochastic alike; lower is better.
Expectations are exact. seconds: one fit.
A policy with smaller scores draws less decidedly: it looks fairer in its disparity, and loses NDCG, though its sorted
list may be the same. Where lists are sorted, compare the columns of the sorted list.
"""


def systems(experiment: Experiment, rhos: Iterable[float], random_state: int) -> dict[str, BaseEstimator]:
    """The rankers to compare, not yet fitted, by name."""
    plain = PlackettLuceRanker(random_state=random_state, **experiment.training)
    made = {BASELINE: plain, PROJECT: make_pipeline(clone(experiment.metric), clone(plain))}
    if experiment.name == "German Credit":
        rest = ColumnTransformer([("dropped", "drop", list(experiment.trivial_columns))], remainder="passthrough")
        made[DROP] = make_pipeline(rest, clone(plain))
    for rho in rhos:
        made[f"SenSTIR, rho {rho:g}"] = SenSTIRRanker(
            experiment.metric, rho=rho, random_state=random_state, **experiment.training, **experiment.attack
        )
    return made


def fit(experiment: Experiment, ranker: BaseEstimator) -> float:
    """Fit on the training queries; the seconds that it took."""
    start = time.perf_counter()
    experiment.fit(ranker)
    return time.perf_counter() - start


def judge(experiment: Experiment, ranker: BaseEstimator, **sampling) -> np.ndarray:
    """The measures, as an array."""
    numbers = experiment.judge(ranker, **sampling)
    return np.array([numbers[measure] for measure in MEASURES])


class Progress:
    """A line for each fit when it is done, on standard error, where the table is not."""

    def __init__(self, n_fits: int):
        self.n_fits, self.n_done = n_fits, 0

    def __call__(self, data: str, system: str, seconds: float) -> None:
        self.n_done += 1
        width = len(str(self.n_fits))
        say(f"[{self.n_done:{width}}/{self.n_fits}] {data}: {system}, {seconds:.1f} s")


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def compile_kernels(experiment: Experiment, rhos: Iterable[float]) -> None:
    """A few steps of every system, so that no fit is timed while numba compiles."""
    say("Compiling (the first time this takes a while; the result is kept) ...")
    start = time.perf_counter()
    short = experiment.shortened(experiment.training["max_iter"] // 2)
    for ranker in systems(short, list(rhos)[:1], 0).values():
        fit(short, ranker)
        judge(short, ranker)
        judge(short, ranker, n_samples=2)
    say(f"... done in {time.perf_counter() - start:.1f} s")


@dataclass
class Row:
    """One line of the table: a system on one data set, with a run for each split."""

    data: str
    system: str
    rankers: list[BaseEstimator] = field(default_factory=list)
    runs: list[np.ndarray] = field(default_factory=list)  # the measures
    seconds: list[float] = field(default_factory=list)

    @property
    def mean(self) -> np.ndarray:
        return np.mean(self.runs, axis=0)

    @property
    def standard_error(self) -> np.ndarray | None:
        n = len(self.runs)
        return np.std(self.runs, axis=0, ddof=1) / np.sqrt(n) if n > 1 else None


def compare(splits: list[Experiment], rhos: Iterable[float], progress: Progress) -> list[Row]:
    """Every system trained and judged on every split of one data set; the split's number is the random state."""
    rows: dict[str, Row] = {}
    for split, experiment in enumerate(splits):
        where = experiment.name + (f", split {split + 1} of {len(splits)}" if len(splits) > 1 else "")
        for system, ranker in systems(experiment, rhos, split).items():
            row = rows.setdefault(system, Row(experiment.name, system))
            row.seconds.append(fit(experiment, ranker))
            row.rankers.append(ranker)
            row.runs.append(judge(experiment, ranker))
            progress(where, system, row.seconds[-1])
    return list(rows.values())


def table(rows: list[Row]) -> str:
    """The results as text: means over splits, with standard errors where there are several."""
    titles, digits = zip(*MEASURES.values())
    cells: list[tuple[str, ...]] = [("data", "system", *titles, "seconds")]
    for row in rows:
        error = row.standard_error
        cells.append(
            (
                row.data,
                row.system,
                *(
                    f"{value:.{n}f}" + ("" if error is None else f" ±{error[k]:.{n}f}")
                    for k, (value, n) in enumerate(zip(row.mean, digits))
                ),
                f"{np.mean(row.seconds):.1f}",
            )
        )
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths)).rstrip() for line in cells]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def draw(path: Path, synthetic: Experiment, rows: list[Row], german_rows: list[Row]) -> None:
    """Score contours on the synthetic task above (the paper's Figure 1), the trade-off below (its Figure 3)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.4), layout="constrained")
    above, below = np.asarray(figure.subfigures(2, 1, height_ratios=(1.0, 1.12)))
    draw_contours(above, synthetic, rows)
    draw_tradeoff(below, german_rows or rows)
    figure.savefig(path, dpi=80, pil_kwargs={"optimize": True})


def draw_contours(figure, task: Experiment, rows: list[Row]) -> None:
    shown = slice(0, 200)  # of 1000 test items; more would hide the contours
    X, y = task.test.X[shown], task.test.y[shown]
    pair = unlike_pair(task, X, y, task.test.groups[shown])
    rankers = {row.system: row.rankers[0] for row in rows}
    axes = figure.subplots(1, len(CONTOUR_RHOS), sharex=True, sharey=True)
    for ax, rho in zip(axes, CONTOUR_RHOS):
        ranker = rankers[f"SenSTIR, rho {rho:g}" if rho else BASELINE]
        display = ScoreContourDisplay.from_estimator(
            ranker, X, y, pair=pair, pair_labels=("majority item", "minority item"), colorbar=False, ax=ax
        )
        legend = ax.get_legend()
        handles, labels = legend.legend_handles, [text.get_text() for text in legend.get_texts()]
        legend.remove()
        black, blue = ranker.predict(X[list(pair)])
        ax.set_title(f"rho {rho:g}\nscores of the stars: {black:.1f} and {blue:.1f}", fontsize=10)
        ax.set(xlabel="first feature", ylabel="second feature" if ax is axes[0] else "")
    figure.colorbar(display.points_, ax=axes, label="relevance", pad=0.01)
    figure.suptitle(
        "Synthetic task: contours of the score (redder is higher). The second feature is lost, and 0, for the minority.",
        fontsize=11,
    )
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)


def unlike_pair(task: Experiment, X: np.ndarray, y: np.ndarray, majority: np.ndarray) -> tuple[int, int]:
    """A majority and a minority item of nearly the same relevance, close in the fair metric and otherwise far apart."""
    fair = task.fit_metric().transform(X)
    inside = np.abs(X[:, 0] - 1.5) < 1  # where stars are in full view
    pairs = [
        (float(np.linalg.norm(X[i] - X[j])), int(i), int(j))
        for i in np.flatnonzero(majority & inside)
        for j in np.flatnonzero(~majority & inside)
        if abs(y[i] - y[j]) < 0.1 and np.linalg.norm(fair[i] - fair[j]) < 0.1
    ]
    _, i, j = max(pairs)
    return i, j


# Panels of the trade-off: what stands below, and on the left. Tau and the first disparity belong to the sorted list.
PANELS = (
    ("ndcg", "tau", "NDCG of the sorted list", "Kendall's tau with the\nhypothetical ranking (1: no change)"),
    ("ndcg", "disparity", "NDCG of the sorted list", "disparity of the\nsorted list (0: none)"),
    (
        "stochastic_ndcg",
        "stochastic_disparity",
        "NDCG of the policy",
        "disparity of the policy (0: none);\nlower also if less decided",
    ),
)


def draw_tradeoff(figure, rows: list[Row]) -> None:
    figure.suptitle(f"{rows[0].data}: what fairness costs", fontsize=11)
    rows = sorted(rows, key=lambda row: row.system.startswith("SenSTIR"))  # stable: SenSTIR last, by rho
    senstir = [row.system.startswith("SenSTIR") for row in rows]
    labels = [SENSTIR if s else row.system for s, row in zip(senstir, rows)]
    annotations = [row.system.rpartition(" ")[2] if s else "" for s, row in zip(senstir, rows)]
    column = {measure: k for k, measure in enumerate(MEASURES)}
    means = np.array([row.mean for row in rows])
    errors = None if rows[0].standard_error is None else np.array([row.standard_error for row in rows])
    axes = figure.subplots(1, len(PANELS))
    for ax, (x, y, xlabel, ylabel) in zip(axes, PANELS):
        TradeoffDisplay.from_predictions(
            means[:, column[x]],
            means[:, column[y]],
            xerr=None if errors is None else errors[:, column[x]],
            yerr=None if errors is None else errors[:, column[y]],
            labels=labels,
            annotations=annotations,
            xlabel=xlabel,
            ylabel=ylabel,
            legend=False,
            colors={BASELINE: "#0072B2", PROJECT: "#D55E00", DROP: "#009E73", SENSTIR: "#CC79A7"},  # Okabe and Ito's
            ax=ax,
        )
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


def published_table(*, n_seeds: int = 3, n_draws: int = 20, shorter: int = 1) -> str:
    """A Markdown table: the authors' recorded numbers beside those of `n_seeds` trainings of ours.

    The authors estimate the disparity from 25 sampled rankings of a query. Noise inside its hinge, max(0, .), makes
    that estimate too large on average, so ours is given both ways: its mean over `n_draws` such samples, and exactly.
    """
    experiments = {name: recorded_experiment(name).shortened(shorter) for name in PUBLISHED}
    compile_kernels(experiments["german_seed0"], PUBLISHED_RHOS)
    progress = Progress(n_seeds * sum(len(published) for published in PUBLISHED.values()))
    lines = [
        "| queries | system | NDCG, published | ours | tau, published | ours | disparity, published | ours | ours, exact |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    farthest = np.zeros(3)
    policy = [list(MEASURES).index(measure) for measure in ("stochastic_ndcg", "tau", "stochastic_disparity")]
    for name, experiment in experiments.items():
        rankers = [systems(experiment, PUBLISHED_RHOS, seed) for seed in range(n_seeds)]
        for system, numbers in PUBLISHED[name].items():
            recorded = (numbers.ndcg, numbers.tau, numbers.disparity)
            exact, sampled = [], []
            for seed in range(n_seeds):
                ranker = rankers[seed][system]
                progress(name, f"{system}, seed {seed}", fit(experiment, ranker))
                exact.append(judge(experiment, ranker)[policy])
                draws = [judge(experiment, ranker, n_samples=25, random_state=draw)[policy] for draw in range(n_draws)]
                sampled.append(np.mean(draws, axis=0))
            (ndcg, tau, disparity), disparity_25 = np.transpose(exact), np.transpose(sampled)[2]
            ours = np.array([ndcg, tau, disparity_25])
            farthest = np.maximum(farthest, np.abs(ours - np.array(recorded)[:, np.newaxis]).max(axis=1))
            lines.append(
                f"| {name} | {system} | {recorded[0]:.3f} | {several(ndcg, 3)} | {recorded[1]:.3f} | {several(tau, 3)} "
                f"| {recorded[2]:.4f} | {several(disparity_25, 4)} | {several(disparity, 4)} |"
            )
    lines += [
        "",
        f"Farthest from the published numbers: {farthest[0]:.3f} in NDCG, {farthest[1]:.3f} in tau, "
        f"{farthest[2]:.4f} in the disparity.",
    ]
    return "\n".join(lines)


def several(values: np.ndarray, digits: int) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m skfairrank.demo",
        description="Train the rankers of 'Individually Fair Ranking' (Bower et al. 2021), print a table, draw a picture.",
        epilog="German Credit is looked for in the folder that SKFAIRRANK_DATA names, else in ../shared/data.",
    )
    parser.add_argument("--output", type=Path, default=Path("demo.png"), metavar="PNG", help="the picture (demo.png)")
    parser.add_argument("--splits", type=int, default=5, metavar="N", help="random splits of German Credit (5)")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the training steps: a test that all runs")
    parser.add_argument(
        "--published",
        action="store_true",
        help="instead, German Credit beside the authors' recorded numbers, as Markdown",
    )
    arguments = parser.parse_args(argv)
    if arguments.splits < 1:
        parser.error(f"--splits {arguments.splits}: give at least 1")
    if not arguments.output.absolute().parent.is_dir():
        parser.error(f"--output {arguments.output}: there is no folder {arguments.output.absolute().parent}")
    return arguments


def main(argv: list[str] | None = None) -> None:
    """Run the demo, or with ``--published`` the comparison with the authors' program.

    Parameters
    ----------
    argv : list of str, optional
        Command line arguments; those of the process by default.
    """
    arguments = parse(argv)
    shorter = 100 if arguments.quick else 1
    if arguments.published:
        try:
            print(published_table(shorter=shorter))
        except FileNotFoundError as absent:
            sys.exit(str(absent))
        return

    start = time.perf_counter()
    synthetic = synthetic_experiment().shortened(shorter)
    splits = []
    try:
        people = german_credit_people(fetch=False)
    except FileNotFoundError:
        note = without_german_credit()
        say(note)
    else:
        splits = [german_credit_experiment(people, seed).shortened(shorter) for seed in range(arguments.splits)]
        note = f"German Credit: means over {len(splits)} random splits" + (
            ", ± standard errors." if len(splits) > 1 else "."
        )
    compile_kernels(synthetic, SYNTHETIC_RHOS)
    n_fits = len(systems(synthetic, SYNTHETIC_RHOS, 0)) + sum(len(systems(split, GERMAN_RHOS, 0)) for split in splits)
    progress = Progress(n_fits)
    rows = compare([synthetic], SYNTHETIC_RHOS, progress)
    german_rows = compare(splits, GERMAN_RHOS, progress) if splits else []

    print(table(rows + german_rows))
    print(NOTES + note)
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        print(f"No picture, since matplotlib is not installed. To get it:\n    {python()} -m pip install matplotlib")
    else:
        draw(arguments.output, synthetic, rows, german_rows)
        print(f"Picture: {arguments.output.resolve()}")
    print(f"Done in {time.perf_counter() - start:.0f} s.")


def without_german_credit() -> str:
    """What is left out, and the commands that bring it, in a clone as in any other folder."""
    return (
        f"Without German Credit, since there is no file of it in {data_folder().resolve()}. To get it and run again:\n"
        f"    curl --location --remote-name {GERMAN_URL}\n"
        f"    SKFAIRRANK_DATA=. {python()} -m skfairrank.demo"
    )


def python() -> str:
    """This interpreter, as a shell wants it: what it installs or runs is what runs now."""
    return shlex.quote(sys.executable)


if __name__ == "__main__":
    main()
