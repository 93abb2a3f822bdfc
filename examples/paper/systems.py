"""The systems that are compared: how each is made, trained and judged on one task or on several splits of it; tables of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from skfairrank import FairPGRanker, PlackettLuceRanker, RandomRanker, SenSTIRRanker

from .tasks import Experiment

N_RANDOM_DRAWS = 20
SOFTENED = ", softened"
Judge = Callable[[Experiment, Any], dict[str, float]]
# What a strength is called, where it is not rho.
STRENGTHS = {"Fair-PG-Rank": "weight", "LightGBM, gaps": "strength", SOFTENED: "scores times"}


class Softened(BaseEstimator):
    """The scores of a fitted ranker times a factor below 1: the same lists, drawn less decidedly. Nothing is learned."""

    def __init__(self, ranker, factor):
        self.ranker, self.factor = ranker, factor

    def fit(self, X, y, **metadata):
        return self

    def predict(self, X):
        return self.factor * self.ranker.predict(X)


def name_of(family: str, strength) -> str:
    """A system's name in tables: its family, and how strong its regulariser is."""
    if strength is None:
        return family
    called = STRENGTHS.get(SOFTENED if family.endswith(SOFTENED) else family, "rho")
    return f"{family}, {called} {strength:g}"


def make_systems(
    experiment: Experiment, strengths: Mapping[str, Sequence | None], random_state: int
) -> Iterator[tuple]:
    """Family, strength and ranker, not yet fitted, of every system; of "Random" a list of rankers, since one alone says little.

    Families and their strengths are those of `compare`.
    """
    made: dict[str, Any] = {}
    for family, values in strengths.items():
        for strength in [None] if values is None else values:
            if family.endswith(SOFTENED):
                yield family, strength, Softened(made[family.removesuffix(SOFTENED)], strength)
            else:
                made[family] = _ranker(experiment, family, strength, random_state)
                yield family, strength, made[family]


def _ranker(experiment: Experiment, family: str, strength, seed: int):
    metric, training = experiment.metric, {"random_state": seed, **experiment.training}
    if family in experiment.drops:
        rest = ColumnTransformer([("dropped", "drop", list(experiment.drops[family]))], remainder="passthrough")
        return make_pipeline(rest, PlackettLuceRanker(**training))
    closed_form = experiment.solver or training
    match family:
        case "Random":
            return [RandomRanker(random_state=N_RANDOM_DRAWS * seed + draw) for draw in range(N_RANDOM_DRAWS)]
        case "Baseline":
            return PlackettLuceRanker(**training)
        case "Project":
            return make_pipeline(clone(metric), PlackettLuceRanker(**training))
        case "Fair-PG-Rank":
            return FairPGRanker(fairness_weight=strength, random_state=seed, **experiment.fair_pg)
        case "SenSTIR" | "SenSTIR, ascent":
            return SenSTIRRanker(metric, rho=strength, **training, **experiment.attack)
        case "SenSTIR, exact":
            return SenSTIRRanker(metric, rho=strength, **experiment.budget, **closed_form)
        case "SenSTIR, box":
            return SenSTIRRanker(metric, rho=strength, **experiment.box, **closed_form)
    raise ValueError(f"{family!r} is no family of systems on {experiment.name}: see make_systems for their names.")


def run_systems(experiment: Experiment, systems: Iterable[tuple], judge: Judge = Experiment.judge) -> Iterator[dict]:
    """Train and judge systems (family, strength, ranker); one that is a list of rankers by the mean of their numbers."""
    for family, strength, made in systems:
        rankers = made if isinstance(made, list) else [made]
        start = time.perf_counter()
        for ranker in rankers:
            experiment.fit(ranker)
        seconds = (time.perf_counter() - start) / len(rankers)
        judged = [judge(experiment, ranker) for ranker in rankers]
        yield {
            "data": experiment.name,
            "family": family,
            "strength": strength,
            "system": name_of(family, strength),
            "ranker": rankers[0],
            "seconds": seconds,
            **{name: float(np.mean([numbers[name] for numbers in judged])) for name in judged[0]},
        }


def compare(
    experiments: Sequence[Experiment],
    strengths: Mapping[str, Sequence | None],
    *,
    judge: Judge = Experiment.judge,
    verbose: bool = False,
) -> pd.DataFrame:
    """Train and judge every system on every split of a task, with the task's hyperparameters.

    Parameters
    ----------
    experiments : sequence of Experiment
        The splits. A split's number is the random state of its rankers.
    strengths : dict of str to sequence
        The families of systems, each with the strengths of its regulariser, or None where it has none, as have "Random" (20
        rankers of random weights, whose mean is judged), "Baseline", "Project" and the names of ``experiment.drops``.
        "SenSTIR" and "Fair-PG-Rank" take rho and the weight; "SenSTIR, exact" and "SenSTIR, box", which have the adversary in
        closed form, take rho. "<one of these>, softened" takes factors of the scores; it is made of the last ranker of that
        family, which has to stand before it.
    judge : callable, default=Experiment.judge
        Of the experiment and a fitted ranker; returns numbers by name.
    verbose : bool, default=False
        Whether each fit has a line on standard error.

    Returns
    -------
    runs : DataFrame
        A row for each fit: ``split``, ``data``, ``family``, ``strength``, ``system`` (the name in tables), ``ranker``,
        ``seconds`` of its training, and what `judge` returns.
    """
    runs, n_splits = [], len(experiments)
    for split, experiment in enumerate(experiments):
        where = experiment.name + (f", {split + 1} of {n_splits}" if n_splits > 1 else "")
        systems = list(make_systems(experiment, strengths, split))
        for run in run_systems(experiment, systems, judge):
            runs.append({"split": split, **run})
            if verbose:
                n_fits = n_splits * len(systems)
                count = f"[{len(runs):{len(str(n_fits))}}/{n_fits}]"
                print(f"{count} {where}: {run['system']}, {run['seconds']:.1f} s", file=sys.stderr, flush=True)
    return pd.DataFrame(runs)


def summarize(runs: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits, and their standard errors (nan where there is one split), of what `compare` returns.

    Rows by ``data``, ``family`` and ``system``; two columns for each number, its ``mean`` and ``sem``.
    """
    groups = runs.drop(columns=["split", "strength", "ranker"]).groupby(["data", "family", "system"], sort=False)
    return groups.agg(["mean", "sem"])


# What `Experiment.judge` returns: in this order, under these titles, with so many digits.
MEASURES = {
    "ndcg": ("NDCG", 3),
    "stochastic_ndcg": ("stochastic", 3),
    "tau": ("tau", 3),
    "disparity": ("disparity", 4),
    "stochastic_disparity": ("stochastic", 4),
}


COLUMNS = {
    "ndcg": ("sorted list", "NDCG"),
    "tau": ("sorted list", "tau"),
    "disparity": ("sorted list", "disparity"),
    "stochastic_ndcg": ("policy", "NDCG"),
    "stochastic_disparity": ("policy", "disparity"),
}


def means_of(results: pd.DataFrame, columns: Mapping[str, tuple[str, str]] = COLUMNS) -> str:
    """The means of what `summarize` returns, narrow enough for a page, and the largest standard error of each column."""
    means, errors = (results.droplevel(["data", "family"]).xs(which, axis=1, level=1) for which in ("mean", "sem"))
    means.loc["largest standard error"] = errors.max()
    means = means[list(columns)].set_axis(pd.MultiIndex.from_tuples(columns.values()), axis=1)
    return means.round(4).to_string(na_rep="")


def plus_minus(mean: float, error: float, digits: int) -> str:
    """A number and its standard error, where there is one."""
    return f"{mean:.{digits}f}" + ("" if np.isnan(error) else f" ±{error:.{digits}f}")


def markdown(header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|---" * lines[0].count(" |") + "|", *lines[1:]]) + "\n"


def text_table(runs: pd.DataFrame) -> str:
    """Means over splits, with standard errors where there are several, and the mean seconds of a fit."""
    cells = [("data", "system", *(title for title, _ in MEASURES.values()), "seconds")]
    for (data, _, system), row in summarize(runs).iterrows():
        numbers = [
            plus_minus(row[measure, "mean"], row[measure, "sem"], digits) for measure, (_, digits) in MEASURES.items()
        ]
        cells.append((data, system, *numbers, f"{row['seconds', 'mean']:.1f}"))
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths)).rstrip() for line in cells]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])
