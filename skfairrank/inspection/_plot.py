"""What the displays share: axes, colours, and a place for the legend outside them."""

from __future__ import annotations

__all__ = ["COLORS", "MARKERS", "axes_for", "legend_outside"]

# Okabe and Ito's palette, which colour-blind readers can tell apart; without its yellow, which fades on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def axes_for(ax, *, figsize, display: str):
    """The given axes, or those of a new figure which makes room for what stands outside them.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
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


def legend_outside(ax, *, n_columns: int = 3, **kwargs):
    """A legend above the axes, where it covers nothing; layout="constrained" (or "tight") makes room for it."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles and kwargs.get("title") is None:
        return None
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.02), "borderaxespad": 0.0, "frameon": False}
    return ax.legend(handles, labels, **{**place, "ncols": max(1, min(n_columns, len(handles))), **kwargs})
