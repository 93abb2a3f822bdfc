"""Results as text, in tables for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from skfairrank.experiments._comparison import summarize

__all__ = ["MEASURES", "markdown", "plus_minus", "text_table"]

# What `Experiment.judge` returns: in this order, under these titles, with so many digits.
MEASURES = {
    "ndcg": ("NDCG", 3),
    "stochastic_ndcg": ("stochastic", 3),
    "tau": ("tau", 3),
    "disparity": ("disparity", 4),
    "stochastic_disparity": ("stochastic", 4),
}


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
