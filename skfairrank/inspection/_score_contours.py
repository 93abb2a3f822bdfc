"""ScoreContourDisplay: scores over two features (Bower et al. 2021, Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_array

from skfairrank._validation import check_scores
from skfairrank.inspection._plot import axes_for, legend_outside
from skfairrank.metrics._predictions import asks_for, ranking_scores, scoring_method, unwrapped

__all__ = ["ScoreContourDisplay"]


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
        cls,
        estimator,
        X,
        y=None,
        *,
        features=(0, 1),
        grid_resolution=100,
        pair=None,
        pair_labels=None,
        name=None,
        ax=None,
        **plot_params,
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
        pair, pair_labels, name
            See the class.
        grid_resolution : int, default=100
        ax : matplotlib Axes, optional
        **plot_params
            For `plot`.

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
        if hasattr(X, "iloc"):
            import pandas as pd

            grid = pd.DataFrame(grid, columns=X.columns)
        display = cls(
            xx0=xx0,
            xx1=xx1,
            response=ranking_scores(estimator, grid).reshape(xx0.shape),
            points=points,
            relevance=y,
            pair=pair,
            pair_labels=pair_labels,
            feature_names=[names[k] if names else f"feature {k}" for k in positions],
            name=name,
        )
        return display.plot(ax=ax, **plot_params)

    @classmethod
    def from_predictions(
        cls,
        X,
        s,
        y=None,
        *,
        pair=None,
        pair_labels=None,
        feature_names=None,
        grid_resolution=100,
        name=None,
        ax=None,
        **plot_params,
    ):
        """Draw given scores, interpolated linearly between the items: exact for linear scores, blank outside of their
        hull.

        Parameters
        ----------
        X : array-like, shape (n_rows, 2)
        s : array-like, shape (n_rows,)
            Scores of the items.
        y : array-like, shape (n_rows,), optional
            Relevances, for the colour of the items.
        pair, pair_labels, feature_names, name
            See the class.
        grid_resolution : int, default=100
        ax : matplotlib Axes, optional
        **plot_params
            For `plot`.

        Returns
        -------
        display : ScoreContourDisplay
        """
        from scipy.interpolate import LinearNDInterpolator
        from scipy.spatial import QhullError

        if feature_names is None and hasattr(X, "columns"):
            feature_names = [str(column) for column in X.columns]
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
        display = cls(
            xx0=xx0,
            xx1=xx1,
            response=response,
            points=points,
            relevance=y,
            pair=pair,
            pair_labels=pair_labels,
            feature_names=feature_names or ["feature 0", "feature 1"],
            name=name,
        )
        return display.plot(ax=ax, **plot_params)

    def plot(
        self,
        ax=None,
        *,
        levels=12,
        cmap="RdBu_r",
        relevance_cmap="viridis",
        colorbar=True,
        legend=True,
        point_size=16.0,
    ):
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
        point_size : float, default=16

        Returns
        -------
        self : ScoreContourDisplay
        """
        ax = axes_for(ax, figsize=(6.4, 4.6), display="ScoreContourDisplay")
        response = np.ma.masked_invalid(self.response)
        self.ax_, self.figure_ = ax, ax.figure
        self.contours_ = ax.contourf(self.xx0, self.xx1, response, levels=levels, cmap=cmap, alpha=0.55)
        self.contour_lines_ = ax.contour(
            self.xx0, self.xx1, response, levels=self.contours_.levels, colors="0.45", linewidths=0.5
        )
        relevance = {"color": "0.25"} if self.relevance is None else {"c": self.relevance, "cmap": relevance_cmap}
        spread = np.ptp(self.points, axis=0) * 0.04
        ax.set_xlim(self.points[:, 0].min() - spread[0], self.points[:, 0].max() + spread[0])
        ax.set_ylim(self.points[:, 1].min() - spread[1], self.points[:, 1].max() + spread[1])
        self.points_ = ax.scatter(
            *self.points.T, s=point_size, edgecolors="white", linewidths=0.4, zorder=3, **relevance
        )
        self.stars_ = []
        if self.pair is not None:
            labels = self.pair_labels or ("item", "its counterpart")
            for row, color, label in zip(self.pair, ("black", "#0072B2"), labels, strict=True):
                self.stars_ += ax.plot(
                    *self.points[row],
                    linestyle="none",
                    marker="*",
                    markersize=19,
                    color=color,
                    markeredgecolor="white",
                    markeredgewidth=1.2,
                    zorder=4,
                    label=label,
                    clip_on=False,
                )
            if legend:
                legend_outside(ax, n_columns=2)
        self.colorbar_ = self.relevance_colorbar_ = None
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(self.contours_, ax=ax, label="score", pad=0.02)
            if self.relevance is not None:
                self.relevance_colorbar_ = self.figure_.colorbar(self.points_, ax=ax, label="relevance", pad=0.02)
        names = self.feature_names or ("feature 0", "feature 1")
        ax.set(xlabel=names[0], ylabel=names[1])
        if self.name is not None:
            # The legend stands where a title would.
            ax.set_title(self.name, pad=30 if self.stars_ and legend else None)
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
