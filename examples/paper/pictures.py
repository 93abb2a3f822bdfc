"""The paper's pictures: contours of the score on the synthetic task (its Figure 1), and trade-offs (its Figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skfairrank.inspection import ScoreContourDisplay, TradeoffDisplay

from .tasks import Side

N_SHOWN = 200  # of 1,000 items; more would hide the contours


def unlike_pair(side: Side) -> tuple[int, int]:
    """A majority and a minority item of the synthetic task: nearly the same relevance, otherwise far apart.

    The rule of the authors' notebook: the most relevant minority item whose first feature is below 1.6, and the first majority
    item whose second feature is above 2.9 and the first one similar.
    """
    first, second = side.X.T
    minority = np.flatnonzero((second == 0) & (first < 1.6))
    majority = np.flatnonzero((second > 2.9) & (first > 1.2) & (first < 1.7))
    return int(majority[0]), int(minority[np.argmax(side.y[minority])])


def draw_contours(figure, side: Side, rankers: Mapping[str, object]) -> None:
    """Contours of the scores of rankers on the synthetic task, by title; an `unlike_pair` of the items shown are stars.

    Parameters
    ----------
    figure : matplotlib Figure or SubFigure
        With a layout that makes room, "constrained".
    side : Side
    rankers : dict of str to fitted ranker
    """
    stars = list(unlike_pair(side))
    shown = np.r_[np.setdiff1d(np.arange(N_SHOWN), stars), stars]
    axes = figure.subplots(1, len(rankers), sharex=True, sharey=True)
    for ax, (title, ranker) in zip(axes, rankers.items()):
        display = ScoreContourDisplay.from_estimator(
            ranker,
            side.X[shown],
            side.y[shown],
            pair=(len(shown) - 2, len(shown) - 1),
            pair_labels=("majority item", "minority item, about as relevant"),
            colorbar=False,
            legend=False,
            ax=ax,
        )
        ax.set_title(title, fontsize="medium")
        ax.set(xlabel="feature $z_1$", ylabel="feature $z_2$ (0 for the minority)" if ax is axes[0] else "")
    figure.colorbar(display.points_, ax=axes, label="relevance of the items", pad=0.01)
    figure.suptitle("Synthetic task: contours of the score, redder is higher", fontsize="large")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)


def draw_tradeoff(
    axes, results, panels, *, names: Mapping[str, str] | None = None, annotations=None, colors=None
) -> None:
    """Two numbers of each system against each other, in several panels. One family of systems is one line.

    Parameters
    ----------
    axes : sequence of matplotlib Axes
    results : DataFrame
        From `summarize`, of one task; families in the order of their colours.
    panels : sequence of (str, str, str, str)
        For each of the axes: the number below and the one on the left, and what is written there.
    names : dict of str to str, optional
        What families are called in the legend, where not as in the table. Families of one name share a line.
    annotations : sequence of str, optional
        What is written beside each point. Default: its strength, the last word of its name.
    colors : dict of str to color, optional
        By name in the legend.
    """
    index = results.reset_index()
    families, systems = index["family"], index["system"]
    if annotations is None:
        annotations = np.where(systems != families, systems.str.rpartition(" ")[2], "")
    of_one_split = results.xs("sem", axis=1, level=1).isna().all(axis=None)
    for ax, (x, y, xlabel, ylabel) in zip(axes, panels, strict=True):
        TradeoffDisplay.from_predictions(
            results[x, "mean"],
            results[y, "mean"],
            xerr=None if of_one_split else results[x, "sem"],
            yerr=None if of_one_split else results[y, "sem"],
            labels=families.replace(names or {}),
            annotations=annotations,
            xlabel=xlabel,
            ylabel=ylabel,
            colors=colors,
            legend=False,
            ax=ax,
        )
