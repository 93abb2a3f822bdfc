"""The main job from one command: train the paper's rankers on its two small tasks, print a table, draw a picture.

``python -m skfairrank.demo`` needs no data for the synthetic task; German Credit is added where its file is at hand.
``python -m skfairrank.demo --published`` compares German Credit with what the authors' program recorded.
Settings are those of Table 2 of Bower et al. (2021); ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skfairrank import PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.datasets import flip_sex, load_german_credit, make_biased_ranking, make_credit_ranking
from skfairrank.inspection import ScoreContourDisplay, TradeoffDisplay, nearest_queries
from skfairrank.metrics import group_exposure_disparity, kendall_tau_score, stochastic_ndcg_score

__all__ = ["main"]

GERMAN_FILES = ("german.data.gz", "german.data", "german_credit_kaggle.csv")
BASELINE, PROJECT, DROP, SENSTIR = "Baseline", "Project", "Drop age and sex", "SenSTIR, by rho"
CONTOUR_RHOS = (0.0, 0.0003, 0.001)  # the paper's Figure 1
SYNTHETIC_RHOS = (0.0001, 0.0003, 0.001)
GERMAN_RHOS = (0.01, 0.1, 0.3, 1.0)
PUBLISHED_RHOS = (0.01, 0.1, 1.0)

# What the authors' program recorded, by the file of its queries: stochastic NDCG, Kendall's tau under the flipped sex,
# group exposure disparity by age; the first and the last from 25 sampled rankings of each query.
PUBLISHED = {
    "german_seed0": {
        BASELINE: (0.788, 0.802, 0.0106),
        PROJECT: (0.791, 0.761, 0.0101),
        "SenSTIR, rho 0.01": (0.792, 0.775, 0.0076),
        "SenSTIR, rho 0.1": (0.787, 0.859, 0.0048),
        "SenSTIR, rho 1": (0.779, 1.000, 0.0046),
    },
    "german_seed1": {BASELINE: (0.830, 0.756, 0.0140), "SenSTIR, rho 1": (0.793, 0.999, 0.0031)},
}

NOTES = """\
NDCG: expected under the Plackett-Luce policy, on test queries; higher is better. tau: Kendall's, between a ranking and
that of the hypothetical query (Synthetic: the nearest other query under the fair metric; German Credit: everyone's sex
flipped); 1 is the same order. disparity: of group exposure (majority and minority; 25 and older, and younger); lower is
better. Expectations are exact. seconds: one fit.
"""


@dataclass(frozen=True)
class Side:
    """Queries to train on, or to judge by."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    groups: np.ndarray


@dataclass(frozen=True)
class Task:
    """A ranking task with the paper's settings for it (Table 2)."""

    name: str
    train: Side
    test: Side
    hypothetical: np.ndarray  # what Kendall's tau compares each row of test.X with
    metric: SensitiveSubspaceMetric
    training: dict  # E, B, MC and the learning rate
    attack: dict  # epsilon, as, fs, frs and the attack's start; ae = fe = 20 are the ranker's defaults
    dropped_columns: tuple[int, ...] = ()

    def systems(self, rhos: Iterable[float], random_state: int) -> dict[str, BaseEstimator]:
        """The rankers to compare, not yet fitted, by name."""
        plain = PlackettLuceRanker(random_state=random_state, **self.training)
        systems = {BASELINE: plain, PROJECT: make_pipeline(clone(self.metric), clone(plain))}
        if self.dropped_columns:
            rest = ColumnTransformer([("dropped", "drop", list(self.dropped_columns))], remainder="passthrough")
            systems[DROP] = make_pipeline(rest, clone(plain))
        for rho in rhos:
            systems[f"SenSTIR, rho {rho:g}"] = SenSTIRRanker(
                self.metric, rho=rho, random_state=random_state, **self.training, **self.attack
            )
        return systems

    def fit(self, ranker: BaseEstimator) -> float:
        """Fit on the training queries; the seconds that it took."""
        start = time.perf_counter()
        with config_context(enable_metadata_routing=True):
            ranker.fit(self.train.X, self.train.y, qid=self.train.qid, sensitive_features=self.train.groups)
        return time.perf_counter() - start

    def judge(self, ranker: BaseEstimator, *, n_samples: int | str = "exact", random_state=None) -> np.ndarray:
        """Stochastic NDCG, Kendall's tau and group exposure disparity on the test queries."""
        test, scores = self.test, ranker.predict(self.test.X)
        sampling = {"n_samples": n_samples, "random_state": random_state}
        return np.array(
            [
                stochastic_ndcg_score(test.y, scores, qid=test.qid, **sampling),
                kendall_tau_score(scores, ranker.predict(self.hypothetical), qid=test.qid),
                group_exposure_disparity(test.y, scores, qid=test.qid, sensitive_features=test.groups, **sampling),
            ]
        )


def synthetic_task(random_state: int = 0, **training) -> Task:
    """The paper's synthetic task, 100 training and 100 test queries; hypothetical: the nearest other query of all."""
    task = make_biased_ranking(n_queries=200, random_state=random_state)
    metric = SensitiveSubspaceMetric(classifier=LogisticRegression(C=100))
    train, test = (
        Side(task.data[rows], task.target[rows], task.qid[rows], task.sensitive_features[rows])
        for rows in (task.qid < 100, task.qid >= 100)
    )
    nearest = nearest_queries(
        test.X,
        task.data,
        qid=test.qid,
        qid_reference=task.qid,
        metric=clone(metric).fit(train.X, sensitive_features=train.groups),
    )
    return Task(
        name="Synthetic",
        train=train,
        test=test,
        hypothetical=nearest.hypothetical(task.data),
        metric=metric,
        training={"learning_rate": 0.04, "max_iter": 2000, "batch_size": 1, "n_samples": 10, **training},
        attack={
            "epsilon": 0.001,
            "subspace_step_size": 0.001,
            "subspace_init": 0.05,
            "full_step_size": 0.001,
            "fair_start": 0.0,
        },
    )


def german_task(name: str, train: Side, test: Side, **training) -> Task:
    """German Credit with the paper's settings; columns 0, 3 and 4 are age and sex; hypothetical: the sex flipped."""
    return Task(
        name=name,
        train=train,
        test=test,
        hypothetical=flip_sex(test.X),
        metric=SensitiveSubspaceMetric(sensitive_columns=[0]),
        training={"learning_rate": 0.001, "max_iter": 20_000, "batch_size": 10, "n_samples": 25, **training},
        attack={
            "epsilon": 1.0,
            "subspace_step_size": 0.01,
            "subspace_init": 0.005,
            "full_step_size": 0.001,
            "fair_start": 0.1,
        },
        dropped_columns=(0, 3, 4),
    )


def german_split(people, random_state: int, **training) -> Task:
    """One random split of the people, made into queries as in the paper's appendix."""
    task = make_credit_ranking(people, random_state=random_state)
    train, test = (
        Side(*(task[f"{name}_{side}"] for name in ("X", "y", "qid", "sensitive_features")))
        for side in ("train", "test")
    )
    return german_task("German Credit", train, test, **training)


def recorded_queries(path: Path, name: str, **training) -> Task:
    """The very queries on which the authors' program was run."""
    with np.load(path) as arrays:
        train, test = (
            Side(*(arrays[f"{name}_{side}"] for name in ("X", "y", "qid", "age_group"))) for side in ("train", "test")
        )
    return german_task(name, train, test, **training)


def data_folder() -> Path:
    return Path(os.environ.get("SKFAIRRANK_DATA") or Path("..", "shared", "data"))


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


def compile_kernels(task: Task, rhos: Iterable[float]) -> None:
    """Two steps of every system, so that no fit is timed while numba compiles."""
    say("Compiling (the first time this takes a while; the result is kept) ...")
    start = time.perf_counter()
    short = replace(task, training={**task.training, "max_iter": 2})
    for ranker in short.systems(list(rhos)[:1], 0).values():
        short.fit(ranker)
        short.judge(ranker)
        short.judge(ranker, n_samples=2)
    say(f"... done in {time.perf_counter() - start:.1f} s")


@dataclass
class Row:
    """One line of the table: a system on one data set, with a run for each split."""

    data: str
    system: str
    rankers: list[BaseEstimator] = field(default_factory=list)
    runs: list[np.ndarray] = field(default_factory=list)  # NDCG, tau, disparity
    seconds: list[float] = field(default_factory=list)

    @property
    def mean(self) -> np.ndarray:
        return np.mean(self.runs, axis=0)

    @property
    def standard_error(self) -> np.ndarray | None:
        n = len(self.runs)
        return np.std(self.runs, axis=0, ddof=1) / np.sqrt(n) if n > 1 else None


def compare(tasks: list[Task], rhos: Iterable[float], progress: Progress) -> list[Row]:
    """Every system trained and judged on every split of one data set; the split's number is the random state."""
    rows: dict[str, Row] = {}
    for split, task in enumerate(tasks):
        where = task.name + (f", split {split + 1} of {len(tasks)}" if len(tasks) > 1 else "")
        for system, ranker in task.systems(rhos, split).items():
            row = rows.setdefault(system, Row(task.name, system))
            row.seconds.append(task.fit(ranker))
            row.rankers.append(ranker)
            row.runs.append(task.judge(ranker))
            progress(where, system, row.seconds[-1])
    return list(rows.values())


def table(rows: list[Row]) -> str:
    """The results as text: means over splits, with standard errors where there are several."""
    cells: list[tuple[str, ...]] = [("data", "system", "NDCG", "tau", "disparity", "seconds")]
    for row in rows:
        error = row.standard_error
        cells.append(
            (
                row.data,
                row.system,
                *(
                    f"{value:.{digits}f}" + ("" if error is None else f" ±{error[k]:.{digits}f}")
                    for k, (value, digits) in enumerate(zip(row.mean, (3, 3, 4)))
                ),
                f"{np.mean(row.seconds):.1f}",
            )
        )
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths)).rstrip() for line in cells]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def draw(path: Path, synthetic: Task, rows: list[Row], german_rows: list[Row]) -> None:
    """Score contours on the synthetic task above (the paper's Figure 1), the trade-off below (its Figure 3)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7.4), layout="constrained")
    above, below = np.asarray(figure.subfigures(2, 1, height_ratios=(1.0, 1.12)))
    draw_contours(above, synthetic, rows)
    draw_tradeoff(below, german_rows or rows)
    figure.savefig(path, dpi=90, pil_kwargs={"optimize": True})


def draw_contours(figure, task: Task, rows: list[Row]) -> None:
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


def unlike_pair(task: Task, X: np.ndarray, y: np.ndarray, majority: np.ndarray) -> tuple[int, int]:
    """A majority and a minority item of nearly the same relevance, close in the fair metric and otherwise far apart."""
    fair = clone(task.metric).fit(task.train.X, sensitive_features=task.train.groups).transform(X)
    inside = np.abs(X[:, 0] - 1.5) < 1  # where stars are in full view
    pairs = [
        (float(np.linalg.norm(X[i] - X[j])), int(i), int(j))
        for i in np.flatnonzero(majority & inside)
        for j in np.flatnonzero(~majority & inside)
        if abs(y[i] - y[j]) < 0.1 and np.linalg.norm(fair[i] - fair[j]) < 0.1
    ]
    _, i, j = max(pairs)
    return i, j


def draw_tradeoff(figure, rows: list[Row]) -> None:
    figure.suptitle(f"{rows[0].data}: what fairness costs", fontsize=11)
    rows = sorted(rows, key=lambda row: row.system.startswith("SenSTIR"))  # stable: SenSTIR last, by rho
    senstir = [row.system.startswith("SenSTIR") for row in rows]
    labels = [SENSTIR if s else row.system for s, row in zip(senstir, rows)]
    annotations = [row.system.rpartition(" ")[2] if s else "" for s, row in zip(senstir, rows)]
    means = np.array([row.mean for row in rows])
    errors = None if rows[0].standard_error is None else np.array([row.standard_error for row in rows])
    measures = {
        1: "Kendall's tau with the hypothetical ranking\n(1: no change)",
        2: "disparity of group exposure\n(0: none)",
    }
    axes = figure.subplots(1, len(measures))
    for ax, (k, measure) in zip(axes, measures.items()):
        display = TradeoffDisplay.from_predictions(
            means[:, 0],
            means[:, k],
            xerr=None if errors is None else errors[:, 0],
            yerr=None if errors is None else errors[:, k],
            labels=labels,
            annotations=annotations,
            xlabel="expected NDCG",
            ylabel=measure,
            legend=False,
            colors={BASELINE: "#0072B2", PROJECT: "#D55E00", DROP: "#009E73", SENSTIR: "#CC79A7"},  # Okabe and Ito's
            ax=ax,
        )
        for line in display.lines_.values():
            for part in (*line[1], *line[2]):  # caps and bars step back behind the points
                part.set_alpha(0.4)
        for text in ax.texts:  # rho, where the line does not run
            text.set(position=(-6, -12 if ax is axes[0] else 5), horizontalalignment="right")
        ax.margins(0.16, 0.12)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


def published_table(folder: Path, *, n_seeds: int = 3, n_draws: int = 20, **training) -> str:
    """A Markdown table: the authors' recorded numbers beside those of `n_seeds` trainings of ours.

    The authors estimate the disparity from 25 sampled rankings of a query. Noise inside its hinge, max(0, .), makes
    that estimate too large on average, so ours is given both ways: its mean over `n_draws` such samples, and exactly.
    """
    tasks = [recorded_queries(folder / f"{name}.npz", name, **training) for name in PUBLISHED]
    compile_kernels(tasks[0], PUBLISHED_RHOS)
    progress = Progress(n_seeds * sum(len(published) for published in PUBLISHED.values()))
    lines = [
        "| queries | system | NDCG, published | ours | tau, published | ours | disparity, published | ours | ours, exact |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    farthest = np.zeros(3)
    for task in tasks:
        systems = [task.systems(PUBLISHED_RHOS, seed) for seed in range(n_seeds)]
        for system, recorded in PUBLISHED[task.name].items():
            exact, sampled = [], []
            for seed in range(n_seeds):
                ranker = systems[seed][system]
                progress(task.name, f"{system}, seed {seed}", task.fit(ranker))
                exact.append(task.judge(ranker))
                draws = [task.judge(ranker, n_samples=25, random_state=draw) for draw in range(n_draws)]
                sampled.append(np.mean(draws, axis=0))
            (ndcg, tau, disparity), disparity_25 = np.transpose(exact), np.transpose(sampled)[2]
            ours = np.array([ndcg, tau, disparity_25])
            farthest = np.maximum(farthest, np.abs(ours - np.array(recorded)[:, np.newaxis]).max(axis=1))
            lines.append(
                f"| {task.name} | {system} | {recorded[0]:.3f} | {several(ndcg, 3)} | {recorded[1]:.3f} | {several(tau, 3)} "
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
    folder = data_folder()
    shorter = 100 if arguments.quick else 1
    if arguments.published:
        absent = [f"{name}.npz" for name in PUBLISHED if not (folder / f"{name}.npz").is_file()]
        if absent:
            sys.exit(f"No {' and '.join(absent)} in {folder}: set SKFAIRRANK_DATA to the folder that has them.")
        print(published_table(folder, max_iter=20_000 // shorter))
        return

    start = time.perf_counter()
    file = next((folder / name for name in GERMAN_FILES if (folder / name).is_file()), None)
    synthetic = synthetic_task(max_iter=2000 // shorter)
    splits = []
    if file is None:
        note = (
            f"Without German Credit: {folder} has none of {', '.join(GERMAN_FILES)}.\n"
            "Set SKFAIRRANK_DATA to the folder that has one."
        )
        say(note)
    else:
        people = load_german_credit(file)
        splits = [german_split(people, seed, max_iter=20_000 // shorter) for seed in range(arguments.splits)]
        note = f"German Credit: means over {len(splits)} random splits" + (
            ", ± standard errors." if len(splits) > 1 else "."
        )
    compile_kernels(synthetic, SYNTHETIC_RHOS)
    n_fits = len(synthetic.systems(SYNTHETIC_RHOS, 0)) + sum(len(task.systems(GERMAN_RHOS, 0)) for task in splits)
    progress = Progress(n_fits)
    rows = compare([synthetic], SYNTHETIC_RHOS, progress)
    german_rows = compare(splits, GERMAN_RHOS, progress) if splits else []

    print(table(rows + german_rows))
    print(NOTES + note)
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        print("No picture, since matplotlib is not installed: pip install 'skfairrank[plots]'.")
    else:
        draw(arguments.output, synthetic, rows, german_rows)
        print(f"Picture: {arguments.output.resolve()}")
    print(f"Done in {time.perf_counter() - start:.0f} s.")


if __name__ == "__main__":
    main()
