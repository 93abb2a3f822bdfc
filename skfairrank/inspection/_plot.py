"""What the displays share: axes, colours, a legend outside the axes, and text beside points."""

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


def legend_outside(ax, *, n_columns: int = 3, **kwargs):
    """A legend above the axes, where it covers nothing; layout="constrained" (or "tight") makes room for it."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles and kwargs.get("title") is None:
        return None
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.02), "borderaxespad": 0.0, "frameon": False}
    return ax.legend(handles, labels, **{**place, "ncols": max(1, min(n_columns, len(handles))), **kwargs})


def write_beside(ax, xy, texts, colors) -> list:
    """Write a text beside each point, at the nearest of several places where it touches no point, error bar or other text.

    A text that has to move away is tied to its point by a thin line. Places are those of the figure as it is laid out now.

    Parameters
    ----------
    ax : matplotlib Axes
    xy : ndarray of float, shape (n_points, 2)
        In data coordinates.
    texts : sequence of str, shape (n_points,)
    colors : sequence of color, shape (n_points,)

    Returns
    -------
    texts : list of matplotlib Annotation
    """
    from matplotlib.text import Text

    ax.figure.figure.draw_without_rendering()  # of a subfigure the whole
    point = ax.figure.dpi / 72
    at, to_pixels = ax.transData.transform(xy), ax.transData.transform
    markers = [to_pixels(line.get_xydata()) for line in ax.lines if line.get_marker() not in ("None", "_", "|")]
    taken = [np.r_[p - 4 * point, p + 4 * point] for p in np.vstack([at, *markers])]
    for bar in (to_pixels(s) for bars in ax.collections if hasattr(bars, "get_segments") for s in bars.get_segments()):
        taken.append(np.r_[bar.min(axis=0) - point, bar.max(axis=0) + point])
    written = []
    for place, data, text, color in zip(at, xy, texts, colors, strict=True):
        note = ax.annotate(
            text,
            data,
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize="small",
            color=color,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3},
            zorder=6,
        )
        half = np.asarray(Text.get_window_extent(note).size) / 2 + point  # without the line to its point
        best: tuple = (np.inf,)
        for gap in (5.0, 14.0, 24.0, 36.0, 50.0):
            for direction in ((1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)):
                offset = np.array(direction) * (half + gap * point)
                box = np.r_[place + offset - half, place + offset + half]
                cost = sum(_overlap(box, other) for other in taken) + half.prod() * 4 - _overlap(box, ax.bbox.extents)
                if cost < best[0]:
                    best = cost, offset, box, gap
            if best[0] < 1e-6:
                break
        _, offset, box, gap = best
        note.set_position(tuple(offset / point))
        note.arrow_patch.set_visible(gap > 5.0)
        taken.append(box)
        written.append(note)
    return written


def _overlap(box, other) -> float:
    """Common area of two boxes (x0, y0, x1, y1)."""
    return float(np.prod(np.clip(np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2]), 0.0, None)))


def final_estimator(estimator, attribute: str, remedy: str):
    """The fitted estimator with this attribute: given, the best one of a search, or the last step of a pipeline."""
    estimator = unwrapped(estimator)
    while isinstance(estimator, Pipeline):
        estimator = unwrapped(estimator[-1])
    if not hasattr(estimator, attribute):
        check_is_fitted(estimator)
        raise ValueError(f"{type(estimator).__name__} has no {attribute}: {remedy}.")
    return estimator
