"""Texts beside points, which no reader takes for those of another point."""

from __future__ import annotations

from functools import partial

import numpy as np

# From the point, in its text's half sizes; and the points of space between the two, of which the first needs no line.
_DIRECTIONS = [(1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)]
_GAPS = (5.0, 12.0, 20.0, 30.0, 42.0, 56.0)


class Labels:
    """Places texts anew whenever the figure is drawn, since legends and other axes move the points.

    Each text goes to the nearest place where it touches no point, error bar or other text, and where no other point is as near
    as its own; it keeps off lines where it can. A text that has to move away is tied to its point by a thin line.

    Parameters
    ----------
    ax : matplotlib Axes
    xy : ndarray of float, shape (n_points, 2)
        In data coordinates.
    texts : sequence of str, shape (n_points,)
    colors : sequence of color, shape (n_points,)

    Attributes
    ----------
    texts : list of matplotlib Annotation
    """

    def __init__(self, ax, xy, texts, colors):
        self.ax, self.places = ax, {}
        look = {"ha": "center", "va": "center", "fontsize": "small", "zorder": 6, "in_layout": False}
        tie = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
        self.texts = [
            # Matplotlib asks a function for the coordinates each time that it draws.
            ax.annotate(
                text, at, (0, 0), textcoords=partial(self.place, k), color=c, arrowprops={**tie, "color": c}, **look
            )
            for k, (text, at, c) in enumerate(zip(texts, xy, colors, strict=True))
        ]

    def place(self, k, renderer):
        """Where the k-th text has its origin."""
        from matplotlib.transforms import Affine2D

        at = self.ax.transData.transform([text.xy for text in self.texts])
        drawn = (*at.ravel(), *self.ax.bbox.extents)
        if self.places.get("drawn") != drawn:
            self.places = {"drawn": drawn, **dict(enumerate(self._found(at, renderer)))}
        place, is_tied = self.places[k]
        self.texts[k].arrow_patch.set_visible(is_tied)
        return Affine2D().translate(*place)

    def _found(self, at, renderer):
        """For each text its centre in pixels, and whether it is tied to its point."""
        from matplotlib.text import Text

        point = self.ax.figure.dpi / 72
        taken, path = _obstacles(self.ax, point)
        for text, own in zip(self.texts, at, strict=True):
            half = np.asarray(Text.get_window_extent(text, renderer).size) / 2 + point  # without the line to its point
            others = at[np.abs(at - own).max(axis=1) > point]
            in_the_way = taken[~_inside(own, taken)]
            best: tuple = (np.inf,)
            for is_tied, gap in enumerate(_GAPS):
                for direction in _DIRECTIONS:
                    offset = np.array(direction) * (half + gap * point)
                    box = np.r_[own + offset - half, own + offset + half]
                    hidden = _overlap(box, taken).sum() + 4 * half.prod() - _overlap(box, self.ax.bbox.extents)
                    mistaken = not is_tied and 1.5 * _distance(box, own) > _distance(box, others).min(initial=np.inf)
                    tie = own + np.linspace(0.1, 1, 20)[:, None, None] * offset
                    touched = _inside(tie, in_the_way).sum() if is_tied else 0
                    crossed = _inside(path, box).sum()
                    cost = 3 * hidden / point**2 + 4 * crossed + 30 * mistaken + 20 * touched + 2 * gap
                    if cost < best[0]:
                        best = cost, own + offset, box, is_tied > 0
            taken = np.vstack([taken, best[2]])
            yield best[1], best[3]


def _obstacles(ax, point: float):
    """In pixels: boxes of markers and of error bars, and points of the lines between markers."""
    boxes, path = [np.empty((0, 4))], [np.empty((0, 2))]
    for line in ax.lines:
        places = line.get_transform().transform(line.get_xydata())  # a line across all axes has one of its own
        places = places[np.isfinite(places).all(axis=1)]
        half = point * (line.get_markersize() / 2 + 1)
        if line.get_marker() not in ("None", "_", "|"):
            boxes.append(np.hstack([places - half, places + half]))
        if line.get_linestyle() != "None":
            steps = zip(places[:-1], places[1:], strict=True)
            path += [np.linspace(a, b, 2 + int(np.hypot(*(b - a)) / (4 * point))) for a, b in steps]
    for bars in (collection for collection in ax.collections if hasattr(collection, "get_segments")):
        for ends in map(ax.transData.transform, bars.get_segments()):
            boxes.append(np.r_[ends.min(axis=0) - point, ends.max(axis=0) + point][None])
    return np.vstack(boxes), np.vstack(path)


# Boxes are (x0, y0, x1, y1), one or an array of them along the last axis; places are (x, y) in the same way.


def _inside(places, boxes):
    return ((places > boxes[..., :2]) & (places < boxes[..., 2:])).all(axis=-1)


def _overlap(box, boxes):
    common = np.minimum(box[2:], boxes[..., 2:]) - np.maximum(box[:2], boxes[..., :2])
    return common.clip(0.0).prod(axis=-1)


def _distance(box, places):
    return np.hypot(*np.maximum(box[:2] - places, places - box[2:]).clip(0.0).T)
