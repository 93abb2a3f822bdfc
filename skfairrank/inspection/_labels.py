"""Text beside points: off markers, error bars and other text, inside the axes, wherever these are when it is drawn."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

__all__ = ["PointLabels"]

# Where a label may stand, seen from its point: the direction of its centre, best first, and the gap in points.
_DIRECTIONS = np.array(
    [(1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)]
    + [(1, 0.5), (-1, 0.5), (1, -0.5), (-1, -0.5), (0.5, 1), (-0.5, 1), (0.5, -1), (-0.5, -1)],
    dtype=float,
)
_GAPS = np.array([1.0, 4.0, 8.0, 13.0, 19.0, 26.0])
_PADDING = 1.5  # around text, points
_N_SWEEPS = 3


class PointLabels:
    """Labels of points in axes.

    A label takes the place that costs least: what it covers of markers, error bars and other labels, and what of it would
    lie outside of the axes, costs most; then what it covers of lines; then how far it is from its point. Each label is
    placed beside those placed before it, then moved again with all others in place. This is done whenever axes are drawn
    that have changed their size, limits or content, so layouts, zooming and another resolution find labels in place.

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
        self.ax, self.xy = ax, np.asarray(xy, dtype=float)
        # What the axes looked like when places were last found, and these places.
        self._drawn, self._corners = None, np.empty((0, 2))
        self.texts = [
            ax.annotate(
                text,
                point,
                xytext=(0, 0),
                textcoords=partial(self._place_of, k),
                ha="left",
                va="bottom",
                fontsize="small",
                color=color,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.4},
                zorder=6,
            )
            for k, (point, text, color) in enumerate(zip(self.xy, texts, colors, strict=True))
        ]

    def _place_of(self, k, renderer):
        """The transform of label k, whose own position is (0, 0)."""
        from matplotlib.transforms import Affine2D

        drawn = self._what_is_drawn()
        if drawn != self._drawn:
            self._corners, self._drawn = self._places(renderer), drawn
        return Affine2D().translate(*self._corners[k])

    def _what_is_drawn(self) -> tuple:
        ax = self.ax
        contents = tuple(len(artists) for artists in (ax.lines, ax.collections, ax.texts))
        scales = (ax.get_xscale(), ax.get_yscale(), ax.figure.dpi)
        texts = tuple(text.get_text() for text in self.texts)
        return tuple(ax.bbox.bounds), tuple(ax.viewLim.bounds), contents, scales, texts

    def _places(self, renderer):
        """Lower left corners of the labels, (n_points, 2), pixels."""
        pixels = self.ax.figure.dpi / 72
        sizes = np.array([_size(text, renderer) for text in self.texts])
        anchors = self.ax.transData.transform(self.xy)
        anchors = np.where(np.isfinite(anchors), anchors, 0.0)
        boxes, along = _drawn_things(self.ax, pixels)
        # Text that was there before; labels that came later make room for these.
        texts = list(self.ax.texts)
        earlier = [text.get_window_extent(renderer).extents for text in texts[: texts.index(self.texts[0])]]
        boxes = np.vstack([boxes, *earlier])
        candidates, reluctance = _candidates(anchors, sizes, pixels)
        standing = np.array([_standing_costs(c, boxes, along, self.ax.bbox.extents) for c in candidates]) + reluctance
        labels = np.full((len(anchors), 4), np.nan)
        for _ in range(_N_SWEEPS):
            for k, places in enumerate(candidates):
                labels[k] = np.nan
                labels[k] = places[np.argmin(standing[k] + 100 * _covered(places, labels))]
        return labels[:, :2] + _PADDING * pixels


def _size(text, renderer):
    """Width and height of a label in pixels; not asking for its place, which is being looked for."""
    from matplotlib.text import Text

    return Text.get_window_extent(text, renderer).size


def _candidates(anchors, sizes, pixels):
    """Boxes of every place of every label, (n_points, n_places, 4), and how unwelcome a place is by itself, (n_places,)."""
    half = sizes[:, np.newaxis] / 2 + _PADDING * pixels
    gaps, directions = np.repeat(_GAPS, len(_DIRECTIONS)), np.tile(_DIRECTIONS, (len(_GAPS), 1))
    marker = 2.75  # half of a marker, points
    centres = anchors[:, np.newaxis] + directions * (half + ((marker + gaps) * pixels)[:, np.newaxis])
    reluctance = 0.06 * gaps + 0.01 * np.tile(np.arange(len(_DIRECTIONS)), len(_GAPS))
    return np.concatenate([centres - half, centres + half], axis=2), reluctance


def _standing_costs(places, boxes, along, frame):
    """Of each place what it covers of boxes and lines, and how much of it is outside of the frame."""
    inside = (along[:, 0] > places[:, :1]) & (along[:, 0] < places[:, 2:3])
    inside &= (along[:, 1] > places[:, 1:2]) & (along[:, 1] < places[:, 3:4])
    outside = 1 - _overlaps(places, frame[np.newaxis])[:, 0] / _areas(places)
    crossed = np.count_nonzero(inside, axis=1)
    return 100 * _covered(places, boxes) + 100 * (outside > 1e-6) + 400 * outside + np.minimum(crossed, 6) * 0.5


def _covered(places, boxes):
    """Of each place how many boxes it touches, and how much of itself they cover."""
    overlaps = _overlaps(places, boxes)
    return np.count_nonzero(overlaps, axis=1) + overlaps.sum(axis=1) / _areas(places)


def _overlaps(places, boxes):
    """Common areas, (n_places, n_boxes); a box of nan has none."""
    low = np.maximum(places[:, np.newaxis, :2], boxes[:, :2])
    high = np.minimum(places[:, np.newaxis, 2:], boxes[:, 2:])
    return np.nan_to_num(np.clip(high - low, 0.0, None).prod(axis=2))


def _areas(places):
    return (places[:, 2] - places[:, 0]) * (places[:, 3] - places[:, 1])


def _drawn_things(ax, pixels):
    """Boxes of all markers and error bars of the axes, (n_boxes, 4), and points along all lines, (n, 2), pixels."""
    from matplotlib.collections import LineCollection

    boxes, along = [np.empty((0, 4))], [np.empty((0, 2))]
    for line in ax.lines:
        xy = _finite(line.get_transform().transform(line.get_xydata()))
        if line.get_marker() not in ("None", "none", " ", "", None):
            half = (line.get_markersize() + line.get_markeredgewidth()) / 2 * pixels
            boxes.append(np.hstack([xy - half, xy + half]))
        if line.get_linestyle() not in ("None", "none", " ", ""):
            along += [_along(start, end) for start, end in pairwise(xy)]
    for collection in ax.collections:
        if isinstance(collection, LineCollection):
            for segment in collection.get_segments():
                ends = _finite(collection.get_transform().transform(segment))
                if len(ends):
                    half = 0.5 * pixels
                    boxes.append(np.hstack([ends.min(axis=0) - half, ends.max(axis=0) + half])[np.newaxis])
    return np.vstack(boxes), np.vstack(along)


def _finite(xy):
    return xy[np.isfinite(xy).all(axis=1)]


def _along(start, end):
    """Points on a line, three pixels apart."""
    n = min(int(np.hypot(*(end - start)) / 3) + 2, 1000)
    return np.linspace(start, end, n)
