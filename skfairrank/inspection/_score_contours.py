"""ScoreContourDisplay: scores over two features (Bower et al. 2021, Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.utils import check_array

from skfairrank._checks import check_scores
from skfairrank.inspection._plot import COLORS, axes_for, legend_outside
from skfairrank.metrics._predictions import asks_for, ranking_scores, scoring_method, unwrapped


@dataclass(eq=False, repr=False, kw_only=True)
class ScoreContourDisplay:
    """Contours of the scores over two features, with the items coloured by relevance (Bower et al. 2021, Figure 1).

    Where the contours run along a sensitive direction, the scores do not depend on it. Make one by `from_estimator` or
    `from_predictions`.

    Parameters
    ----------
    xx0, xx1 : ndarray of float, shape (n_grid, n_grid)
        Grid over the two features.
    response : ndarray of float, shape (n_grid, n_grid)
        Scores on the grid; nan where they are not known.
    points : ndarray of float, shape (n_rows, 2)
        The two features of the items.
    relevance : ndarray of float, shape (n_rows,), optional
    pair : pair of int, optional
        Two rows to mark by stars: a black one, and its counterpart close in the fair metric in blue. In the paper these
        are a majority and a minority item of about the same relevance.
    pair_labels : pair of str, optional
    feature_names : pair of str, optional
    name : str, optional
        Name of the ranker, for the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    contours_ : matplotlib QuadContourSet
        The filled contours; `contour_lines_` the lines between them.
    points_ : matplotlib PathCollection
    stars_ : list of matplotlib Line2D
        Empty without `pair`.
    colorbar_, relevance_colorbar_ : matplotlib Colorbar or None

    Examples
    --------
    >>> from skfairrank import PlackettLuceRanker
    >>> from skfairrank.datasets import make_biased_ranking
    >>> from skfairrank.inspection import ScoreContourDisplay
    >>> task = make_biased_ranking(n_queries=20, random_state=0)
    >>> ranker = PlackettLuceRanker(random_state=0).fit(task.data, task.target, qid=task.qid)
    >>> display = ScoreContourDisplay.from_estimator(ranker, task.data, task.target)
    """

    xx0: np.ndarray
    xx1: np.ndarray
    response: np.ndarray
    points: np.ndarray
    relevance: np.ndarray | None = None
    pair: Sequence[int] | None = None
    pair_labels: Sequence[str] | None = None
    feature_names: Sequence[str] | None = None
    name: str | None = None

    def __post_init__(self):
        n = len(self.points)
        if self.relevance is not None:
            self.relevance = np.asarray(self.relevance, dtype=np.float64)
            if self.relevance.shape != (n,):
                raise ValueError(f"y has shape {self.relevance.shape} for {n} rows: give one relevance per row.")
        if self.pair is not None:
            self.pair = [int(row) for row in _two(self.pair, "pair")]
            if not all(0 <= row < n for row in self.pair):
                raise ValueError(f"pair={self.pair}: give two row numbers from 0 to {n - 1}.")

    @classmethod
    def from_estimator(
        cls, estimator, X, y=None, *, features=(0, 1), grid_resolution=100, ax=None, name=None, **settings
    ):
        """Draw the scores of a fitted ranker.

        Parameters
        ----------
        estimator : fitted estimator
            With `predict` or `decision_function`.
        X : array-like, shape (n_rows, n_features)
            Items to show. Other features than the two drawn are held at their median.
        y : array-like, shape (n_rows,), optional
            Relevances, for the colour of the items.
        features : pair of int or str, default=(0, 1)
            Columns of X, by position or name.
        grid_resolution : int, default=100
        ax : matplotlib Axes, optional
        name, **settings
            `pair` and `pair_labels` of the class; the others are for `plot`.

        Returns
        -------
        display : ScoreContourDisplay
        """
        if asks_for(unwrapped(estimator), scoring_method(estimator), "qid"):
            raise ValueError(
                f"The scores of this {type(estimator).__name__} depend on all rows of a query (a step of it asks for qid), so "
                "there is no score at a point. Draw the items' own scores by from_predictions."
            )
        names = [str(column) for column in X.columns] if hasattr(X, "columns") else None
        values = check_array(X, dtype=np.float64, input_name="X")
        positions = [_position(feature, names, values.shape[1]) for feature in _two(features, "features")]
        points = values[:, positions]
        xx0, xx1 = _grid(points, grid_resolution, margin=0.04)
        grid = np.tile(np.median(values, axis=0), (xx0.size, 1))
        grid[:, positions] = np.column_stack([xx0.ravel(), xx1.ravel()])
        rows = pd.DataFrame(grid, columns=X.columns) if hasattr(X, "iloc") else grid
        response = ranking_scores(estimator, rows).reshape(xx0.shape)
        feature_names = [names[k] if names else f"feature {k}" for k in positions]
        return cls._drawn(xx0, xx1, response, points, y, ax, settings, feature_names=feature_names, name=name)

    @classmethod
    def from_predictions(cls, X, s, y=None, *, feature_names=None, grid_resolution=100, ax=None, name=None, **settings):
        """Draw given scores, interpolated linearly between the items: exact for linear scores, blank outside of their
        hull.

        Parameters
        ----------
        X : array-like, shape (n_rows, 2)
        s : array-like, shape (n_rows,)
            Scores of the items.
        y : array-like, shape (n_rows,), optional
            Relevances, for the colour of the items.
        feature_names : pair of str, optional
        grid_resolution : int, default=100
        ax : matplotlib Axes, optional
        name, **settings
            `pair` and `pair_labels` of the class; the others are for `plot`.

        Returns
        -------
        display : ScoreContourDisplay
        """
        from scipy.interpolate import LinearNDInterpolator
        from scipy.spatial import QhullError

        if feature_names is None:
            feature_names = [str(name) for name in getattr(X, "columns", ("feature 0", "feature 1"))]
        points, s = check_array(X, dtype=np.float64, input_name="X"), check_scores(s, name="s")
        if points.shape[1] != 2 or len(points) != len(s):
            raise ValueError(f"X has shape {points.shape} and s {s.shape}: give two features and one score per row.")
        xx0, xx1 = _grid(points, grid_resolution, margin=0.0)
        try:
            response = LinearNDInterpolator(points, s)(xx0, xx1)
        except QhullError as error:
            raise ValueError(
                "The items lie on one line (or are too few): scores between them are not known."
            ) from error
        return cls._drawn(xx0, xx1, response, points, y, ax, settings, feature_names=feature_names, name=name)

    @classmethod
    def _drawn(cls, xx0, xx1, response, points, y, ax, settings, **named):
        named |= {key: settings.pop(key) for key in ("pair", "pair_labels") if key in settings}
        return cls(xx0=xx0, xx1=xx1, response=response, points=points, relevance=y, **named).plot(ax=ax, **settings)

    def plot(self, ax=None, *, levels=12, cmap="RdBu_r", relevance_cmap="viridis", colorbar=True, legend=True):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        levels : int or array-like, default=12
            Number of contours, or their scores.
        cmap : str or Colormap, default="RdBu_r"
            For the scores: redder is higher.
        relevance_cmap : str or Colormap, default="viridis"
        colorbar, legend : bool, default=True

        Returns
        -------
        self : ScoreContourDisplay
        """
        ax = axes_for(ax, figsize=(6.4, 4.6), display="ScoreContourDisplay")
        grid = self.xx0, self.xx1, np.ma.masked_invalid(self.response)
        self.ax_, self.figure_ = ax, ax.figure
        self.contours_ = ax.contourf(*grid, levels=levels, cmap=cmap, alpha=0.55)
        self.contour_lines_ = ax.contour(*grid, levels=self.contours_.levels, colors="0.45", linewidths=0.5)
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        spread = 0.04 * (high - low)
        ax.set(xlim=(low[0] - spread[0], high[0] + spread[0]), ylim=(low[1] - spread[1], high[1] + spread[1]))
        relevance = {"color": "0.25"} if self.relevance is None else {"c": self.relevance, "cmap": relevance_cmap}
        self.points_ = ax.scatter(*self.points.T, s=16.0, edgecolors="white", linewidths=0.4, zorder=3, **relevance)
        self.stars_ = []
        star = {
            "linestyle": "none",
            "marker": "*",
            "markersize": 19,
            "markeredgecolor": "white",
            "markeredgewidth": 1.2,
        }
        labels = self.pair_labels or ("item", "its counterpart")
        for row, color, label in zip(self.pair or (), ("black", COLORS[0]), labels):
            self.stars_ += ax.plot(*self.points[row], color=color, label=label, zorder=4, clip_on=False, **star)
        has_legend = bool(self.stars_) and legend
        if has_legend:
            legend_outside(ax, n_columns=2)
        self.colorbar_ = self.relevance_colorbar_ = None
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(self.contours_, ax=ax, label="score", pad=0.02)
            if self.relevance is not None:
                self.relevance_colorbar_ = self.figure_.colorbar(self.points_, ax=ax, label="relevance", pad=0.02)
        names = self.feature_names or ("feature 0", "feature 1")
        ax.set(xlabel=names[0], ylabel=names[1])
        if self.name is not None:
            ax.set_title(self.name, pad=30 if has_legend else None)  # the legend stands where a title would
        return self


def _two(values, name):
    values = list(values) if values is not None and not isinstance(values, str) else []
    if len(values) != 2:
        raise ValueError(f"{name} must be two, a pair.")
    return values


def _position(feature, names, n_features):
    if isinstance(feature, str):
        if names is None or feature not in names:
            raise ValueError(f"features names {feature!r}, which is not among the columns of X ({names}).")
        return names.index(feature)
    if not -n_features <= feature < n_features:
        raise ValueError(f"features has {feature}, but X has {n_features} columns.")
    return int(feature) % n_features


def _grid(points, resolution, *, margin):
    low, high = points.min(axis=0), points.max(axis=0)
    room = margin * np.where(high > low, high - low, 1.0)
    return np.meshgrid(*(np.linspace(a - r, b + r, resolution) for a, b, r in zip(low, high, room, strict=True)))
