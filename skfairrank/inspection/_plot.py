"""What the displays share: axes, colours, and a legend outside the axes."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skfairrank.metrics._predictions import unwrapped

# Okabe and Ito's palette, which colour-blind readers can tell apart; without its yellow, which fades on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def axes_for(ax, *, figsize, display: str):
    """The given axes, or those of a new figure; ImportError where matplotlib is not installed."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{display} needs matplotlib, which is not installed: pip install matplotlib "
            '(or, in a clone of skfairrank, pip install ".[plots]").'
        ) from error
    return plt.subplots(figsize=figsize, layout="constrained")[1]


def panels(ax, heights, *, figsize, display: str):
    """Axes below each other, of these relative heights: given, in the place of given axes, or in a new figure.

    Raises
    ------
    ValueError
        If `ax` holds another number of axes, or is one that cannot be divided.
    ImportError
        If matplotlib is not installed.
    """
    n_panels = len(heights)
    if ax is not None and np.ndim(ax) > 0:
        given = np.ravel(ax)
        if len(given) != n_panels:
            raise ValueError(f"ax holds {len(given)} axes: {display} needs {n_panels}, or one in whose place they go.")
        return given
    ax = axes_for(ax, figsize=figsize, display=display)
    if n_panels == 1:
        return np.array([ax])
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(f"ax is not part of a grid of axes and cannot be divided: give an array of {n_panels} axes.")
    ax.set_axis_off()
    grid = place.subgridspec(n_panels, 1, height_ratios=heights)
    first = ax.figure.add_subplot(grid[0])
    return np.array([first] + [ax.figure.add_subplot(cell, sharex=first) for cell in list(grid)[1:]])


def outer_x(ax) -> None:
    """No numbers along x but in the lowest row; those along y stay, since columns of axes have other scales."""
    place = ax.get_subplotspec()
    if place is not None and not place.is_last_row():
        ax.tick_params(labelbottom=False)


def legend_outside(ax, *, n_columns: int = 3, **kwargs):
    """A legend above the axes, where it covers nothing; layout="constrained" (or "tight") makes room for it."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles and kwargs.get("title") is None:
        return None
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.02), "borderaxespad": 0.0, "frameon": False}
    return ax.legend(handles, labels, **{**place, "ncols": max(1, min(n_columns, len(handles))), **kwargs})


def final_estimator(estimator, attribute: str, remedy: str):
    """The fitted estimator with this attribute: given, the best one of a search, or the last step of a pipeline."""
    estimator = unwrapped(estimator)
    while isinstance(estimator, Pipeline):
        estimator = unwrapped(estimator[-1])
    if not hasattr(estimator, attribute):
        check_is_fitted(estimator)
        raise ValueError(f"{type(estimator).__name__} has no {attribute}: {remedy}.")
    return estimator
