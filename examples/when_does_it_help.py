"""Writes the page *When does it help?*, docs/when_does_it_help.md, and its figure: every rule in ten regimes of known truth.

``python examples/when_does_it_help.py`` takes about six minutes on two cores; ``--quick`` draws each regime once with few trees,
and prints the page.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from _rules import (
    ASKS,
    AVERAGED,
    CHOSEN,
    DROP,
    EXPOSURE,
    FREE,
    GAPS,
    LESS_MEAN,
    MERIT,
    PLAIN,
    RESIDUALS,
    SENSTIR,
    SORTED_BY_SHARE,
    STUDENT,
    TAU,
    TAUGHT_SENSTIR,
    TWINS_AS_ROWS,
    People,
    Task,
    run_rules,
)
from paper import markdown, plus_minus

from skfairrank.datasets import make_hiring_ranking

N_QUERIES, SIZE = 250, 10

# The regimes: each makes a task from a seed


def side(rng, n_queries, make, *, pool=SIZE, lead=0.0, label_bias=1.2, screen=None):
    """People of some queries, their merit and the skill behind it.

    `make(rng, skill, group)` returns a function of groups that gives the features of the same people. Of a `pool` of applicants
    the first ten by `screen(features)` come into the list.
    """
    n = n_queries * pool
    qid, group = np.repeat(np.arange(n_queries), pool), (rng.random(n) < 0.4).astype(int)
    skill = rng.normal(size=n) + lead * group
    features = make(rng, skill, group)
    X, twin = features(group), features(1 - group)
    rows = np.arange(n)
    if screen is not None:
        order = np.lexsort((-screen(X), qid)).reshape(n_queries, pool)
        rows = np.sort(order[:, :SIZE].ravel())
    y, merit = graded(skill - label_bias * group), graded(skill)
    return People(X[rows], y[rows], qid[rows], group[rows], twin[rows]), merit[rows]


def graded(values):
    """Relevances 0 to 3, for a half, a quarter, 15 and 10 % of the people."""
    return np.digitize(values, np.quantile(values, [0.5, 0.75, 0.9]))


def simulated(make, drop, **settings) -> Callable[[int, int], Task]:
    """What makes the task of a seed, with so many queries on either side."""

    def task(seed, n_queries):
        rng = np.random.default_rng(seed)
        train, _ = side(rng, n_queries, make, **settings)
        test, merit = side(rng, n_queries, make, **settings)
        return Task(train, test, drop, merit=merit)

    return task


def marks(shifts, noises):
    """Marks of the skill that are lowered for the group."""

    def make(rng, skill, group):
        error = rng.normal(size=(len(skill), len(shifts))) * noises
        return lambda g: skill[:, None] - np.outer(g, shifts) + error

    return make


def believed_lowered(rng, skill, group):
    """Honest marks, of which whoever makes the twins thinks that they are lowered for the group by .8."""
    error = rng.normal(size=(len(skill), 3)) * [0.5, 0.6, 0.8]
    return lambda g: skill[:, None] + error - 0.8 * (g - group)[:, None]


def proxy(rng, skill, group):
    """Two honest marks, and a column that tells the group and nothing else."""
    error, noise = rng.normal(size=(len(skill), 2)) * [0.7, 1.0], 0.5 * rng.normal(size=len(skill))
    return lambda g: np.column_stack([skill[:, None] + error, 2.0 * g + noise])


def pair_of_signs(rng, group):
    """Two columns that tell the group by whether their signs agree, and not alone."""
    a = rng.normal(size=len(group))
    b = np.abs(rng.normal(size=len(group))) * np.sign(a)
    return lambda g: np.column_stack([a, b * np.where(g == 1, -1, 1)])


def only_together(rng, skill, group):
    """An honest mark, one that is lowered, and a pair of signs."""
    lowered, pair = marks([1.0, 0.0], [0.6, 0.9])(rng, skill, group), pair_of_signs(rng, group)
    return lambda g: np.column_stack([lowered(g), pair(g)])


def lost_pair(rng, skill, group):
    """A mark that is lowered strongly, one half as much, an honest one, and a pair of signs."""
    three, pair = marks([1.2, 0.6, 0.0], [0.5, 0.6, 1.2])(rng, skill, group), pair_of_signs(rng, group)
    return lambda g: np.column_stack([three(g), pair(g)])


def compressed(rng, skill, group):
    """Marks that tell differences in the group by two fifths of their size."""
    error = rng.normal(size=(len(skill), 3)) * [0.5, 0.6, 0.8]
    return lambda g: np.where(g == 1, 0.4, 1.0)[:, None] * skill[:, None] + error


def hiring(seed, n_queries, *, label="target"):
    """The task of `make_hiring_ranking`."""
    made, other = (make_hiring_ranking(n_queries, random_state=seed + k) for k in (0, 1000))
    train, test = (People(t.data, t[label].astype(int), t.qid, t.sensitive_features, t.twin) for t in (made, other))
    return Task(train, test, (0, 1), merit=other.merit)


def wrong_labels(seed, n_queries):
    """A third of the recorded groups are wrong; twins are made by them, so that theirs move the wrong way."""
    task, rng = hiring(seed, n_queries), np.random.default_rng(seed)
    sides = []
    for people in (task.train, task.test):
        group = np.where(rng.random(len(people.y)) < 0.35, 1 - people.group, people.group)
        moved = np.abs(people.twin - people.X) * np.where(group == 1, 1.0, -1.0)[:, None]
        sides.append(People(people.X, people.y, people.qid, group, people.X + moved))
    return Task(*sides, task.drop, merit=task.merit, true_twin=task.test.twin)


REGIMES: dict[str, tuple[str, Callable[..., Task]]] = {
    "biased labels": (
        "labels against the group, three marks lowered by 1.5, 1.5 and .5 (`make_hiring_ranking`)",
        hiring,
    ),
    "right labels": (
        "the same marks, and labels that are the merit",
        partial(hiring, label="merit"),
    ),
    "a proxy without merit": (
        "two honest marks, a column that tells the group alone; biased labels",
        simulated(proxy, (2,)),
    ),
    "true difference": (
        "the group has .8 less skill; honest marks, right labels; twins are made by who thinks the marks lowered by as much",
        simulated(believed_lowered, (0,), lead=-0.8, label_bias=0.0),
    ),
    "twelve alike": (
        "twelve marks, each lowered by 1.2; biased labels",
        simulated(marks([1.2] * 12, [0.8] * 12), (0,)),
    ),
    "only together": (
        "a mark lowered by 1, an honest one, and two columns that tell the group only together; biased labels",
        simulated(only_together, (0,)),
    ),
    "compressed scale": ("marks that tell less of the group's skill; biased labels", simulated(compressed, (0,))),
    "screened lists": (
        "lists are the best ten of thirty by the first mark, which is lowered by 1.2; the second is by .6; biased labels",
        simulated(marks([1.2, 0.6, 0.0], [0.5, 0.6, 1.0]), (0,), pool=30, screen=lambda X: X[:, 0]),
    ),
    "wrong groups": (
        "biased labels as above, and a third of the recorded groups, and so of the twins, are wrong",
        wrong_labels,
    ),
    "the lost pair": (
        "the group leads by .6; marks lowered by 1.2, .6 and 0, two columns that tell the group only together; biased labels",
        simulated(lost_pair, (0,), lead=0.6),
    ),
}


def less_plain(rows: dict[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of what a rule has more than the plain model of merit and tau, draw by draw."""
    change = (rows[name] - rows[PLAIN])[:, [MERIT, TAU]]
    error = change.std(axis=0, ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.full(2, np.nan)
    return change.mean(axis=0), error


# The page

INTRODUCTION = """\
# When does it help?

<!-- Made by examples/when_does_it_help.py: do not edit by hand. -->

Whether a fair ranker is nearer to the truth than a plain one depends on where labels and features are wrong. Data do not tell.
So here are ten regimes whose truth is known, with this package's methods for trees beside the strongest simple rules, all around
LightGBM (100 trees of 7 leaves). Each regime has {n} draws of {queries} training and as many test queries of 10 people, of whom
two fifths belong to a group (on hiring a half). `python examples/when_does_it_help.py` makes this page.

{regimes}

*Biased labels* are relevances 0 to 3 of the skill less 1.2 for the group (on hiring less 1). *Merit* is the same of the skill
itself, and no rule sees it. Where nothing else is said, the group has the same skill.

![Ten panels, one for each regime: merit and tau of each rule less those of the plain model](images/when_does_it_help.png)

Each point is a rule: to the right people are ranked nearer to their merit than by the plain model, above twins are ranked more
alike. **In red the rule harms.** Bars are standard errors.

## The rules

SenSTIR is a dial between plain and invariant, for models that may not read the group when they decide. So are the student and
gaps. Four rules ask for more when they decide, the twin or the group, and that is where their lead comes from:

| rule | it is told in training | it asks when deciding |
|---|---|---|
| *drop*: without the columns that tell the group most, for those who know them | the columns | |
| *averaged*: `AveragingRanker`, the plain model's scores averaged over a person and the twin | | the twin |
| *student*: `DistilledRanker`, a regression of averaged relevances | twins | |
| *student with SenSTIR*: the same, the student being `SenSTIRBoostingRanker` | twins | |
| *twins as further rows*: the plain model on people and their twins, with the same labels | twins | |
| *labels less the group's mean*: a regression of these | groups | |
| *discrimination-free*: the plain model with the group as a column, averaged over its values | groups | |
| *group-mean residuals*: the plain model on X less the group's mean (fairlearn's `CorrelationRemover`) | groups | the group |
| *DetConstSort*, *exposure LP*: the plain model's lists, re-ranked ([Re-ranking](postprocessing.md)) | | the group |
| *SenSTIR*: `SenSTIRBoostingRanker` | twins | |
| *gaps*: `GapBoostingRanker` | groups | |

Rho (.001 to .03) and strength (1 to 10) are chosen on a fifth of the training queries: of those that lose at most .02 of NDCG *by
the labels* the one with the largest tau with the twins. Nobody can choose by merit.

## All numbers

Less the plain model's, draw by draw, ± standard errors; in bold from two of them.
"""

VERDICT = """
## What follows

- **Whoever can make the twin when deciding should average.** Wherever twins are right, averaging has tau 1 and .019 to .063 more
  merit than the plain model. From X alone nothing has both, but with a proxy. Group-mean residuals, which ask for the group, come
  near where the groups differ by a shift (.032 to .054), and do next to nothing where columns tell the group together, on a
  compressed scale and on screened lists. Both harm most where the premise is wrong: at a true difference by .033 and .038, the
  exposure LP by .052.
- **Where twins are known in training only, the student is the strongest.** With biased labels it has .017 more merit than the
  plain model on the first regime, and .044 to .054 with a proxy, a pair of columns or the lost pair. With SenSTIR it is more
  stable than SenSTIR on the labels, at more merit: by .19 in tau and .014 in merit with a proxy, .19 and .008 where columns tell
  together, .23 and .020 on the lost pair. On the first regime it has .20 more tau, and .010 less merit. The plain regression on
  averaged relevances is less stable, at as much merit or more.
- **Twins as further rows** need no package, and come close: .014, .046, .031 and .039 of merit in these four regimes, behind the
  student in each. With wrong groups nothing has more merit (.014).
- **SenSTIR by itself** has .009 to .041 more merit than the plain model in these four and with wrong groups. In four of the five
  it is behind twins as further rows, in tau and in merit. As a dial it goes farther than they do, at a price in merit.
- **Where labels are right, all stability from X alone costs merit**: the student .004, gaps .008, SenSTIR .018, its student .025.
  The labels do not show which regime one is in, since all of these cost NDCG by the labels in either.
- **Gaps are weak, and at times harm.** On the first regime they have .095 more tau, dropping two marks .304 at the same merit.
  They lose merit where columns tell the group only together (`fit` warns), on the lost pair tau as well, and merit on screened
  lists, where gaps are smaller than the truth. Where all columns are shifted alike they do nothing (`fit` warns, too).
- **From X alone hardly anything helps where all marks are shifted alike, or scales compressed**: no other evidence is left.
  SenSTIR and its student harm a little.
- **Dropping is enough with a proxy** (tau 1, .046 more merit), and the worst where what is dropped tells merit as well.
- **Wrong groups** turn what asks for groups or twins when deciding into harm (averaged .018, exposure LP .027). Training on such
  twins still helps.

What it costs, in processor time on 3,000 rows of 49 columns (census, trees as above): the plain model .033 s, a student .046 s (a
teacher .016 s, two predictions, and a student), SenSTIR .18 s, a student with SenSTIR .20 s, gaps .045 s, of which the look at
columns is .003 s. A decision by averaging costs two predictions, .059 s for .028 s on 20,000 rows: 1 + m with m hypothetical rows
for each person.
"""

MARKERS = {
    DROP: ("v", "0.5"),
    AVERAGED: ("*", "tab:green"),
    STUDENT: ("s", "tab:blue"),
    TAUGHT_SENSTIR: ("D", "navy"),
    TWINS_AS_ROWS: ("^", "tab:cyan"),
    LESS_MEAN: ("P", "tab:olive"),
    FREE: ("X", "tab:brown"),
    RESIDUALS: ("h", "tab:green"),
    SORTED_BY_SHARE: ("<", "limegreen"),
    EXPOSURE: (">", "limegreen"),
    SENSTIR: ("o", "tab:red"),
    GAPS: ("d", "tab:orange"),
}


def told(page: str) -> dict[str, dict[str, np.ndarray]]:
    """What a page says of each rule in each regime: means of merit and tau less the plain model's, and their errors below."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for line in page.splitlines():
        cells = [cell.strip(" *") for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and cells[0] in REGIMES:
            found[cells[0]] = of_regime = {}
        elif len(cells) == 5 and cells[1] in MARKERS:
            of_regime[cells[1]] = np.array([f"{cell} ±nan".split(" ±")[:2] for cell in cells[2:4]], dtype=float).T
    return found


def draw_figure(page: str, path: Path) -> None:
    """A panel for each regime of a page: merit and tau of every rule less the plain model's; left of the line a rule harms."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 5, figsize=(14, 7), sharex=True, sharey=True, layout="constrained")
    for ax, (regime, rules) in zip(axes.flat, told(page).items()):
        ax.axhspan(-1, 0, color="tab:red", alpha=0.07)
        ax.axvspan(-1, 0, color="tab:red", alpha=0.07)
        ax.axhline(0, color="0.6", linewidth=0.8)
        ax.axvline(0, color="0.6", linewidth=0.8)
        for name, (marker, color) in MARKERS.items():
            (merit, tau), (merit_error, tau_error) = rules[name]
            errors = {"xerr": merit_error, "yerr": tau_error} if np.isfinite(tau_error) else {}
            label = f"{name} (asks {ASKS[name]})" if name in ASKS else name
            ax.errorbar(merit, tau, **errors, marker=marker, color=color, linestyle="none", markersize=6, label=label)
        ax.set_title(regime, fontsize=10)
    axes[0, 0].set(xlim=(-0.075, 0.075), ylim=(-0.45, 0.8), xticks=(-0.05, 0, 0.05))
    axes[1, 2].set_xlabel("NDCG of the true merit, less the plain model's")
    figure.supylabel("Kendall's tau with the true twin, less the plain model's", fontsize=10)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=6, fontsize=9, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def signed(mean: float, error: float) -> str:
    """Bold from two standard errors."""
    shown = round(mean, 3) + 0.0
    text = f"{'+' if shown > 0 else ''}{plus_minus(shown, error, 3)}"
    return f"**{text}**" if shown and abs(mean) >= 2 * error else text


def table(found) -> str:
    lines = []
    for regime, rows in found.items():
        merit, tau = rows[PLAIN][:, [MERIT, TAU]].mean(axis=0)
        lines.append((regime, f"*plain: {merit:.3f}, tau {tau:.2f}*", "", "", ""))
        for name in MARKERS:
            mean, error = less_plain(rows, name)
            cells = (signed(m, e) for m, e in zip(mean, error))
            values = rows[name][:, CHOSEN]
            chose = "" if np.isnan(values[0]) else ", ".join(f"{v:g}" for v in np.unique(values))
            lines.append(("", name, *cells, chose))
    return markdown(("regime", "rule", "merit, less the plain model's", "tau, less the plain model's", "chosen"), lines)


def page(found, n_draws: int) -> str:
    regimes = "\n".join(f"- **{name}**: {text}." for name, (text, _) in REGIMES.items())
    return "\n".join([INTRODUCTION.format(n=n_draws, regimes=regimes, queries=N_QUERIES), table(found), VERDICT])


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the page (docs/when_does_it_help.md; with --quick: printed)"
    )
    parser.add_argument("--draws", type=int, metavar="N", help="draws of each regime (10; with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="a few trees and queries: numbers mean nothing")
    parser.add_argument("--redraw", action="store_true", help="only the figure, of the page as it is")
    given = parser.parse_args(argv)
    output = given.output or Path(__file__).resolve().parents[1] / "docs" / "when_does_it_help.md"
    in_docs = output.parent / "images" / "when_does_it_help.png"
    if given.redraw:
        draw_figure(output.read_text(encoding="utf-8"), in_docs)
        return
    n_draws, start = given.draws or (1 if given.quick else 10), time.perf_counter()
    n_trees, n_queries = (20, 40) if given.quick else (100, N_QUERIES)
    found = {
        name: run_rules(partial(make, n_queries=n_queries), n_draws, n_trees) for name, (_, make) in REGIMES.items()
    }
    text = page(found, n_draws)
    if given.output is None and given.quick:
        print(text)
        return
    output.write_text(text, encoding="utf-8")
    draw_figure(text, output.with_suffix(".png") if given.quick else in_docs)
    print(f"Page: {output}, after {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
