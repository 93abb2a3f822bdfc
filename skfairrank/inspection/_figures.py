"""The paper's figures: contours of scores, ranks that move, and two scores against each other (Bower et al. 2021)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real

import numpy as np
import pandas as pd
from sklearn.utils import check_array

from skfairrank._random import as_generator
from skfairrank.inspection._order_changes import rank_displacement
from skfairrank.inspection._plot import COLORS, MARKERS, axes_for, legend_outside
from skfairrank.metrics._predictions import asks_for, ranking_scores, scoring_method, unwrapped
from skfairrank.model_selection import mean_test_scores
from skfairrank.plackett_luce import sample_rankings


@dataclass(eq=False, repr=False)
class TradeoffDisplay:
    """Two scores against each other with error bars, one line for each system (Bower et al. 2021, Figures 3 and 4).

    Make one by `from_predictions` (any numbers) or `from_search` (a search with several scorers).

    Parameters
    ----------
    x, y : array-like of float, shape (n_points,)
    xerr, yerr : array-like of float, shape (n_points,), optional
        Half lengths of the error bars, usually standard errors.
    labels : array-like of str, shape (n_points,), optional
        System of each point: those of one system are joined in the order given. None: one line.
    annotations : sequence of str, shape (n_points,), optional
        Written beside the points, such as values of rho.
    annotation_name : str, optional
        What they are; the legend says so.
    chosen : int, optional
        Point to mark as the one chosen.
    xlabel, ylabel : str, optional

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib ErrorbarContainer
        By system.
    chosen_ : matplotlib Line2D or None
    texts_ : list of matplotlib Annotation
    legend_ : matplotlib Legend or None
    """

    x: np.ndarray
    y: np.ndarray
    _: KW_ONLY
    xerr: np.ndarray | None = None
    yerr: np.ndarray | None = None
    labels: np.ndarray | None = None
    annotations: Sequence | None = None
    annotation_name: str | None = None
    chosen: int | None = None
    xlabel: str | None = None
    ylabel: str | None = None

    def __post_init__(self):
        for name in ("x", "y", "xerr", "yerr"):
            if getattr(self, name) is not None:
                setattr(self, name, _numbers(getattr(self, name), name))
        for name in ("y", "xerr", "yerr", "labels", "annotations"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.x):
                raise ValueError(f"{name} has {len(values)} entries and x has {len(self.x)}: give one for each point.")
        if self.chosen is not None and not 0 <= self.chosen < len(self.x):
            raise ValueError(f"chosen={self.chosen}: give the number of a point, 0 to {len(self.x) - 1}.")
        if self.labels is not None:
            self.labels = np.array([str(label) for label in self.labels])
        if self.annotations is not None:
            self.annotations = [_text(value) for value in self.annotations]

    @classmethod
    def from_predictions(cls, x, y, *, ax=None, colors=None, legend=True, xscale="linear", yscale="linear", **settings):
        """Draw given scores.

        Parameters
        ----------
        x, y, **settings
            See the class. Columns of one table in long form will do: a row for each point.
        ax, colors, legend, xscale, yscale
            For `plot`.

        Returns
        -------
        display : TradeoffDisplay
        """
        return cls(x, y, **settings).plot(ax, colors=colors, legend=legend, xscale=xscale, yscale=yscale)

    @classmethod
    def from_search(cls, search, *, x, y, label_by=None, annotate_by=None, ax=None, **settings):
        """Draw the candidates of a fitted search with several scorers, and mark the one that it chose.

        Scorers that are better the smaller they are, and those named ``"neg_..."``, are drawn with their sign turned: a disparity
        as what it is. Error bars are standard errors over the folds (ddof=1). Folds share training data, so this is a guide to
        the eye rather than a test.

        Parameters
        ----------
        search : fitted GridSearchCV, RandomizedSearchCV or halving search
        x, y : str
            Names of two of its scorers.
        label_by : str, optional
            Parameter whose values are the systems, one line each. Default: one line through all candidates.
        annotate_by : str, optional
            Parameter whose values are written beside the points. Default: the only one searched. A line joins points in
            the order of this parameter where its values are numbers, else in the order of x.
        ax : matplotlib Axes, optional
        **settings
            For the class, as ``xlabel`` (default: the scorer's name) or ``chosen=None`` (no mark), or for `plot`.

        Returns
        -------
        display : TradeoffDisplay
        """
        if not hasattr(search, "cv_results_"):
            raise ValueError(f"{type(search).__name__} has no cv_results_: give a fitted search.")
        results = search.cv_results_
        parameters = [key.removeprefix("param_") for key in results if key.startswith("param_")]
        if annotate_by is None and len(parameters) == 1 and label_by is None:
            annotate_by = parameters[0]
        (mean_x, error_x), (mean_y, error_y) = (_over_folds(search, name) for name in (x, y))
        candidates = pd.DataFrame({"x": mean_x, "y": mean_y, "xerr": error_x, "yerr": error_y})
        for column, parameter in (("system", label_by), ("noted", annotate_by)):
            values = [None] * len(mean_x) if parameter is None else _values(results, parameter, parameters)
            candidates[column] = pd.Series(list(values), dtype=object)
        candidates["system"] = candidates["system"].map(_text)
        candidates = candidates[np.isfinite(candidates[["x", "y"]]).all(axis=1)].sort_values("x", kind="stable")
        if candidates.empty:
            raise ValueError(f"No candidate has finite mean test scores by both {x!r} and {y!r}.")
        by_number = candidates["noted"].map(_is_number).groupby(candidates["system"]).transform("all")
        places = candidates["noted"].where(by_number, 0.0).sort_values(kind="stable").index
        candidates = candidates.loc[places]
        chosen = np.flatnonzero(candidates.index == getattr(search, "best_index_", None))
        names = {"xlabel": _name(x), "ylabel": _name(y), "chosen": int(chosen[0]) if len(chosen) else None}
        return cls.from_predictions(
            **{name: candidates[name].to_numpy() for name in ("x", "y", "xerr", "yerr")},
            labels=None if label_by is None else candidates["system"],
            annotations=None if annotate_by is None else candidates["noted"],
            annotation_name=None if annotate_by is None else annotate_by.rpartition("__")[2],
            ax=ax,
            **{**names, **settings},
        )

    def plot(self, ax=None, *, colors=None, legend=True, xscale="linear", yscale="linear"):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The legend stands above them: let the figure make room by ``layout="constrained"``.
        colors : dict of str to color, optional
            By system, to keep a system's colour from figure to figure.
        legend : bool, default=True
        xscale, yscale : str, default="linear"

        Returns
        -------
        self : TradeoffDisplay
        """
        ax = axes_for(ax, figsize=(5.6, 4.2), display="TradeoffDisplay")
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_, self.chosen_, self.legend_ = {}, None, None
        labels = np.full(len(self.x), None) if self.labels is None else self.labels
        for k, system in enumerate(dict.fromkeys(labels)):
            of_system = labels == system
            self.lines_[system] = ax.errorbar(
                self.x[of_system],
                self.y[of_system],
                xerr=None if self.xerr is None else self.xerr[of_system],
                yerr=None if self.yerr is None else self.yerr[of_system],
                label=system,
                color=(colors or {}).get(system, COLORS[k % len(COLORS)]),
                marker=MARKERS[k % len(MARKERS)],
                markersize=5.5,
                linewidth=1.4,
                elinewidth=0.9,
                capsize=2,
                linestyle="--" if k >= len(COLORS) else "-",
                zorder=3 if np.count_nonzero(of_system) > 1 else 4,  # a single point would vanish under a line
            )
            _, caps, bars = self.lines_[system]
            for part in (*caps, *bars):  # step back behind the points
                part.set_alpha(0.4)
        if self.chosen is not None:
            circle = {"marker": "o", "markersize": 14, "markerfacecolor": "none", "markeredgecolor": "black"}
            (self.chosen_,) = ax.plot(
                self.x[self.chosen], self.y[self.chosen], linestyle="none", label="chosen", zorder=5, **circle
            )
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel, xscale=xscale, yscale=yscale)
        ax.grid(alpha=0.25)
        if legend:
            title = f"numbers: {self.annotation_name}" if self.annotations and self.annotation_name else None
            self.legend_ = legend_outside(ax, title=title)
        self.texts_ = []
        if self.annotations:
            from skfairrank.inspection._labels import Labels

            ax.margins(x=0.12, y=0.09)
            xy = np.column_stack([self.x, self.y])
            noted = [k for k, text in enumerate(self.annotations) if text and np.isfinite(xy[k]).all()]
            line_colors = [self.lines_[labels[k]][0].get_color() for k in noted]
            self.texts_ = Labels(ax, xy[noted], [self.annotations[k] for k in noted], line_colors).texts
        return self


def _numbers(values, name):
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}: give one number for each point.")
    return values


def _text(value):
    if value is np.ma.masked:  # a parameter that this candidate does not have
        return ""
    if hasattr(value, "get_params"):
        return type(value).__name__
    return f"{value:g}" if isinstance(value, (float, np.floating)) else str(value)


def _name(scorer):
    return scorer.removeprefix("neg_").replace("_", " ")


def _is_negated(search, name):
    """Scorers of ours say so, scikit-learn's have a sign."""
    scorers = getattr(search, "scorer_", None)
    scorer = scorers.get(name) if isinstance(scorers, dict) else None
    is_negative = getattr(scorer, "greater_is_better", True) is False or getattr(scorer, "_sign", 1) < 0
    return is_negative or name.startswith("neg_")


def _over_folds(search, name):
    """Mean over folds and its standard error, of each candidate."""
    mean = mean_test_scores(search.cv_results_, name)
    is_fold = re.compile(rf"split\d+_test_{re.escape(name)}").fullmatch
    folds = pd.DataFrame({key: values for key, values in search.cv_results_.items() if is_fold(key)})
    error = folds.sem(axis=1).to_numpy() if folds.shape[1] > 1 else np.zeros_like(mean)
    return -mean if _is_negated(search, name) else mean, error


def _values(cv_results, parameter, parameters):
    """Values of a parameter, by its whole name or the end of it."""
    matches = [name for name in parameters if name == parameter or name.endswith(f"__{parameter}")]
    if parameter in matches:
        matches = [parameter]
    if len(matches) != 1:
        raise ValueError(f"The search has no single parameter {parameter!r}; it has {parameters}.")
    return cv_results[f"param_{matches[0]}"]


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(eq=False, repr=False, kw_only=True)
class ScoreContourDisplay:
    """Contours of the scores over two features, with the items coloured by relevance (Bower et al. 2021, Figure 1).

    Where the contours run along a sensitive direction, the scores do not depend on it. Make one by `from_estimator`.

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
    >>> ranker = PlackettLuceRanker(random_state=0).fit(
    ...     task.data, task.target, qid=task.qid
    ... )
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
                "there is no score at a point."
            )
        names = [str(column) for column in X.columns] if hasattr(X, "columns") else None
        values = check_array(X, dtype=np.float64, input_name="X")
        positions = [_position(feature, names, values.shape[1]) for feature in _two(features, "features")]
        points = values[:, positions]
        low, high = points.min(axis=0), points.max(axis=0)
        room = 0.04 * np.where(high > low, high - low, 1.0)
        xx0, xx1 = np.meshgrid(*np.linspace(low - room, high + room, grid_resolution).T)
        grid = np.tile(np.median(values, axis=0), (xx0.size, 1))
        grid[:, positions] = np.column_stack([xx0.ravel(), xx1.ravel()])
        rows = pd.DataFrame(grid, columns=X.columns) if hasattr(X, "iloc") else grid
        response = ranking_scores(estimator, rows).reshape(xx0.shape)
        feature_names = [names[k] if names else f"feature {k}" for k in positions]
        of_class: dict = {key: settings.pop(key) for key in ("pair", "pair_labels") if key in settings}
        of_class |= {"relevance": y, "feature_names": feature_names, "name": name}
        return cls(xx0=xx0, xx1=xx1, response=response, points=points, **of_class).plot(ax=ax, **settings)

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


@dataclass(eq=False, repr=False)
class RankDisplacementDisplay:
    """How often the item ranked i-th is ranked j-th under the hypothetical query (Bower et al. 2021, Figure 2).

    A stable ranking lies on the diagonal. Make one by `from_estimator` or `from_predictions`.

    Parameters
    ----------
    displacement : ndarray of float, shape (n_items, n_items)
        From `rank_displacement`.
    name : str, optional
        Name of the ranker, for the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    im_ : matplotlib AxesImage
    colorbar_ : matplotlib Colorbar or None
    """

    displacement: np.ndarray
    _: KW_ONLY
    name: str | None = None

    @classmethod
    def from_estimator(
        cls, estimator, X, X_hypothetical, *, qid, n_samples=10, random_state=None, name=None, ax=None, **plot_params
    ):
        """Sample rankings of the rows and of their hypotheticals, and draw how they differ.

        Parameters
        ----------
        estimator : fitted estimator
            With `predict` or `decision_function`.
        X, X_hypothetical : array-like, shape (n_rows, n_features)
            Rows, and the hypothetical counterpart of each (such as ``nearest_queries(...).hypothetical(X_reference)``).
        qid : array-like, shape (n_rows,)
            The query of each row. All queries must have the same size.
        n_samples : int, default=10
            Rankings of each query, and as many of its hypothetical; the paper's number.
        random_state : None, int, RandomState or Generator
        name, ax, **plot_params
            See the class and `plot`.

        Returns
        -------
        display : RankDisplacementDisplay
        """
        rng = as_generator(random_state)
        ranks, hypothetical_ranks = (
            sample_rankings(ranking_scores(estimator, rows, qid=qid), qid=qid, n_samples=n_samples, random_state=rng)
            for rows in (X, X_hypothetical)
        )
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(ranks, hypothetical_ranks, qid=qid, name=name, ax=ax, **plot_params)

    @classmethod
    def from_predictions(cls, ranks, hypothetical_ranks, *, qid, name=None, ax=None, **plot_params):
        """Draw how given rankings differ.

        Parameters
        ----------
        ranks, hypothetical_ranks : array-like of int, shape (n_samples, n_rows)
            As for `rank_displacement`.
        qid : array-like, shape (n_rows,)
        name, ax, **plot_params
            See the class and `plot`.

        Returns
        -------
        display : RankDisplacementDisplay
        """
        return cls(rank_displacement(ranks, hypothetical_ranks, qid=qid), name=name).plot(ax=ax, **plot_params)

    def plot(self, ax=None, *, cmap="viridis", vmax=1.0, colorbar=True):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        cmap : str or Colormap, default="viridis"
        vmax : float or None, default=1.0
            Share at the top of the colour scale. None: the largest that occurs; then panels are not comparable.
        colorbar : bool, default=True

        Returns
        -------
        self : RankDisplacementDisplay
        """
        ax = axes_for(ax, figsize=(4.8, 4.1), display="RankDisplacementDisplay")
        n_items = len(self.displacement)
        self.ax_, self.figure_ = ax, ax.figure
        extent = (0.5, n_items + 0.5, n_items + 0.5, 0.5)
        self.im_ = ax.imshow(self.displacement, cmap=cmap, vmin=0.0, vmax=vmax, extent=extent)
        ticks = np.arange(1, n_items + 1, -(-n_items // 10))
        ax.set(xlabel="rank under the hypothetical query", ylabel="rank under the query", xticks=ticks, yticks=ticks)
        stay = f"{np.trace(self.displacement) / n_items:.0%} keep their rank"
        ax.set_title(stay if self.name is None else f"{self.name}\n{stay}", fontsize="medium")
        self.colorbar_ = self.figure_.colorbar(self.im_, ax=ax, label="share of items") if colorbar else None
        return self
