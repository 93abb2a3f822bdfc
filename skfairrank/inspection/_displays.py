"""Displays of what was learned and found: history, path, temperature, sensitive directions, certificate."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from skfairrank.inspection._certificate import FairnessCertificate, fairness_certificate
from skfairrank.inspection._plot import COLORS, MARKERS, axes_for, final_estimator, legend_outside, outer_x, panels

_HISTORY = {
    "utility": "utility",
    "regularizer": "regulariser",
    "query_distance": "distance $d_Q$",
    "lambda": r"multiplier $\lambda$",
}


@dataclass(eq=False, repr=False)
class TrainingHistoryDisplay:
    r"""Utility, regulariser, transport distance and multiplier of each training step, with moving averages.

    An adversary that overspends its budget epsilon makes :math:`\lambda` grow. A ranker without regulariser shows its
    utility only. Make one by `from_estimator`.

    Parameters
    ----------
    history : dict of ndarray
        A ranker's `history_`.
    epsilon : float, optional
        Transport budget, drawn among the distances.
    name : str, optional
        Name of the ranker, for the title.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each curve shown, below each other.
    ax_ : matplotlib Axes
        The first of them.
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The moving averages, by the names in `history_`.
    raw_lines_ : dict of str to matplotlib Line2D
        The values themselves.
    """

    history: dict
    _: KW_ONLY
    epsilon: float | None = None
    name: str | None = None

    @classmethod
    def from_estimator(cls, estimator, *, name=None, ax=None, **plot_params):
        """Draw the history of a fitted ranker.

        Parameters
        ----------
        estimator : fitted ranker with `history_`
            Or a pipeline that ends in one, or a search whose best estimator does.
        name : str, optional
            Default: the ranker's class.
        ax, **plot_params
            For `plot`.

        Returns
        -------
        display : TrainingHistoryDisplay
        """
        ranker = final_estimator(estimator, "history_", "give a ranker of skfairrank that trains")
        epsilon = getattr(getattr(ranker, "adversary_", ranker), "epsilon", None)
        name = type(ranker).__name__ if name is None else name
        return cls(ranker.history_, epsilon=epsilon, name=name).plot(ax=ax, **plot_params)

    def plot(self, ax=None, *, window=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, optional
            One, whose place is divided among the curves; or one for each curve.
        window : int, optional
            Steps in the moving average (at the ends those there are). Default: a fiftieth of all.

        Returns
        -------
        self : TrainingHistoryDisplay
        """
        names = [name for name in _HISTORY if name in self.history]
        if not np.any(self.history.get("regularizer", 0.0)):
            names = names[:1]
        n_steps = len(self.history["utility"])
        if n_steps == 0:
            raise ValueError("The history is empty: the fit took no step.")
        window = max(1, n_steps // 50) if window is None else int(window)
        if window < 1:
            raise ValueError(f"window={window}: give a number of steps, 1 or more.")
        figsize = (6.4, 1.0 + 1.55 * len(names))
        self.axes_ = panels(ax, (1,) * len(names), figsize=figsize, display="TrainingHistoryDisplay")
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        self.lines_, self.raw_lines_ = {}, {}
        steps = np.arange(1, n_steps + 1)
        for panel, name in zip(self.axes_, names, strict=True):
            values = pd.Series(self.history[name], dtype=np.float64)
            # A centred mean, shorter at the ends: a window of 2 is each step and the next.
            mean = values[::-1].rolling(window, center=True, min_periods=1).mean()[::-1]
            (self.raw_lines_[name],) = panel.plot(steps, values, color="0.75", linewidth=0.6)
            (self.lines_[name],) = panel.plot(steps, mean, color=COLORS[0], linewidth=1.6)
            panel.set_ylabel(_HISTORY[name])
            panel.grid(alpha=0.25)
            positive = values[values > 0]
            if name in ("regularizer", "lambda") and len(positive) and positive.max() > 100 * positive.median():
                panel.set_yscale("log")  # zeros, of steps without the regulariser, are left out
            if name == "query_distance" and self.epsilon is not None:
                panel.axhline(self.epsilon, color=COLORS[1], linestyle="--", linewidth=1.2)
                place = {"xycoords": ("axes fraction", "data"), "xytext": (4, 0), "textcoords": "offset points"}
                panel.annotate(r"$\varepsilon$", (1.0, self.epsilon), color=COLORS[1], va="center", **place)
            outer_x(panel)
        self.axes_[-1].set_xlabel(f"step (line: mean of {window})" if window > 1 else "step")
        if self.name is not None:
            self.ax_.set_title(self.name)
        return self


@dataclass(eq=False, repr=False)
class PathDisplay:
    """Weights, utility and regulariser of `skfairrank.senstir_path` along rho, below each other.

    Weights that the box sets to zero lie on the axis from there on. Make one by `from_path`.

    Parameters
    ----------
    rhos : ndarray of float, shape (n_rhos,)
        Ascending.
    coefs : ndarray of float, shape (n_rhos, n_features)
    utilities, regularizers : ndarray of float, shape (n_rhos,)
    feature_names : ndarray of str, shape (n_features,)

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, shape (3,)
        Weights, utility, regulariser.
    ax_ : matplotlib Axes
        The first of them.
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        The weights of each feature.
    utility_line_, regularizer_line_ : matplotlib Line2D
    legend_ : matplotlib Legend or None
    """

    rhos: np.ndarray
    coefs: np.ndarray
    utilities: np.ndarray
    regularizers: np.ndarray
    _: KW_ONLY
    feature_names: np.ndarray

    @classmethod
    def from_path(cls, path, *, feature_names=None, ax=None, **plot_params):
        """Draw a path.

        Parameters
        ----------
        path : SenSTIRPath
            From `skfairrank.senstir_path`.
        feature_names : sequence of str, shape (n_features,), optional
            Default: the names that X had in training, else "x0", "x1", ...
        ax, **plot_params
            For `plot`.

        Returns
        -------
        display : PathDisplay
        """
        n_features = path.coefs.shape[1]
        if feature_names is None:
            feature_names = getattr(path.rankers[0], "feature_names_in_", [f"x{j}" for j in range(n_features)])
        if len(feature_names) != n_features:
            raise ValueError(f"feature_names has {len(feature_names)} entries for {n_features} features: one for each.")
        names = np.array([str(name) for name in feature_names])
        display = cls(path.rhos, path.coefs, path.utilities, path.regularizers, feature_names=names)
        return display.plot(ax=ax, **plot_params)

    def plot(self, ax=None, *, named=7):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or array of three of them, optional
            One, whose place is divided among the three; or one for each.
        named : int or list of str, default=7
            Features to colour and name in the legend, the others are grey: so many of those with the largest absolute weight on
            the path, or just these.

        Returns
        -------
        self : PathDisplay
        """
        chosen = self._chosen(named)
        self.axes_ = panels(ax, (2.4, 1, 1), figsize=(7.2, 6.2), display="PathDisplay")
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        weights, utility, regularizer = self.axes_
        self.lines_ = weights.plot(self.rhos, self.coefs, color="0.75", linewidth=0.9)
        for k, j in enumerate(chosen):
            linestyle = ("-", "--", ":", "-.")[k // len(COLORS) % 4]
            look = {"color": COLORS[k % len(COLORS)], "linestyle": linestyle, "linewidth": 1.7, "zorder": 3}
            self.lines_[j].set(label=self.feature_names[j], **look)
        weights.axhline(0.0, color="0.3", linewidth=0.8, zorder=1)
        # "_" hides a label from a legend.
        shown = [self.lines_[j] for j in chosen if not self.feature_names[j].startswith("_")]
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.02), "frameon": False, "fontsize": "small"}
        self.legend_ = weights.legend(handles=shown, **place) if shown else None
        look = {"color": "0.15", "marker": ".", "linewidth": 1.2}
        (self.utility_line_,) = utility.plot(self.rhos, self.utilities, **look)
        (self.regularizer_line_,) = regularizer.plot(self.rhos, self.regularizers, **look)
        weights.set_ylabel("weight")
        utility.set_ylabel("utility")
        regularizer.set(ylabel="regulariser R", xlabel=r"$\rho$")
        if np.any(self.regularizers > 0):
            # What is zero to rounding would stretch the axis over many empty decades.
            lowest = max(self.regularizers[self.regularizers > 0].min(), 1e-6 * self.regularizers.max())
            regularizer.set_yscale("log")
            regularizer.set_ylim(bottom=0.5 * lowest)
        for panel in self.axes_:
            if np.all(self.rhos > 0):
                panel.set_xscale("log")
            elif np.any(self.rhos > 0):  # rho = 0 has its place at the left end
                panel.set_xscale("symlog", linthresh=self.rhos[self.rhos > 0].min())
            panel.grid(alpha=0.25)
            outer_x(panel)
        self.figure_.align_ylabels(self.axes_)
        return self

    def _chosen(self, named):
        """Positions of the features to name, in the order of their weights at the smallest rho, as the lines begin."""
        n_features = self.coefs.shape[1]
        if isinstance(named, Integral):
            if named < 0:
                raise ValueError(f"named={named}: give a number of features, 0 or more, or a list of them.")
            largest = np.argsort(-np.abs(self.coefs).max(axis=0), kind="stable")
            chosen = [j for j in largest[:named] if np.any(self.coefs[:, j])]
        else:
            unknown = [name for name in named if name not in self.feature_names]
            if unknown:
                raise ValueError(f"named has {unknown[0]!r}, which is none of the {n_features} features.")
            chosen = np.flatnonzero(np.isin(self.feature_names, named)).tolist()
        return sorted(chosen, key=lambda j: -self.coefs[0, j])


@dataclass(eq=False, repr=False)
class TemperatureDisplay:
    """NDCG of the policy of held-out queries over the temperature, and disparity below it where it was bounded.

    Make one by `from_estimator`.

    Parameters
    ----------
    curve : DataFrame
        Columns ``temperature``, ``ndcg``, and ``disparity`` or not: `TemperatureRanker.curve_`.
    temperature : float
        The chosen one.
    sorted_ndcg : float, optional
        NDCG of the sorted lists.
    max_ndcg_loss, max_disparity : float, optional
        Bounds to draw.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, shape (1,) or (2,)
        NDCG, and disparity.
    ax_ : matplotlib Axes
        The first of them.
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The curves "ndcg" and "disparity".
    bound_lines_ : dict of str to matplotlib Line2D
        The horizontal lines "ndcg", the least NDCG within the bound, and "disparity", where there are these bounds.
    legend_ : matplotlib Legend
    """

    curve: pd.DataFrame
    _: KW_ONLY
    temperature: float
    sorted_ndcg: float | None = None
    max_ndcg_loss: float | None = None
    max_disparity: float | None = None

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **plot_params):
        """Draw the curve of a fitted `TemperatureRanker`.

        Parameters
        ----------
        estimator : TemperatureRanker
            Or a pipeline that ends in one, or a search whose best estimator does.
        ax, **plot_params
            For `plot`.

        Returns
        -------
        display : TemperatureDisplay
        """
        ranker = final_estimator(estimator, "curve_", "give a TemperatureRanker")
        settings = {name: getattr(ranker, name) for name in ("max_ndcg_loss", "max_disparity")}
        display = cls(ranker.curve_, temperature=ranker.temperature_, sorted_ndcg=ranker.sorted_ndcg_, **settings)
        return display.plot(ax=ax, **plot_params)

    def plot(self, ax=None, **line_params):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, optional
            One, whose place is divided where there is a disparity; or one for each panel.
        **line_params
            For the lines of the curves, as ``color`` or ``linewidth``.

        Returns
        -------
        self : TemperatureDisplay
        """
        names = [name for name in ("ndcg", "disparity") if name in self.curve]
        figsize = (6.4, 1.4 + 2.2 * len(names))
        self.axes_ = panels(ax, (1,) * len(names), figsize=figsize, display="TemperatureDisplay")
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        least = None
        if self.sorted_ndcg is not None and self.max_ndcg_loss is not None:
            least = self.sorted_ndcg - self.max_ndcg_loss
        bounds = {"ndcg": least, "disparity": self.max_disparity}
        settings = {"color": COLORS[0], "marker": ".", "linewidth": 1.6, "label": "policy", **line_params}
        self.lines_, self.bound_lines_ = {}, {}
        for panel, name in zip(self.axes_, names, strict=True):
            (self.lines_[name],) = panel.plot(self.curve["temperature"], self.curve[name], **settings)
            panel.axvline(self.temperature, color="0.3", linewidth=1.0, label=f"chosen: {self.temperature:.3g}")
            if bounds[name] is not None:
                self.bound_lines_[name] = panel.axhline(bounds[name], color=COLORS[1], linestyle="--", label="bound")
            panel.set(xscale="log", ylabel={"ndcg": "expected NDCG", "disparity": "disparity of exposure"}[name])
            panel.grid(alpha=0.25)
            outer_x(panel)
        if self.sorted_ndcg is not None:
            self.ax_.axhline(self.sorted_ndcg, color="0.3", linestyle=":", label="sorted lists")
        self.axes_[-1].set_xlabel("temperature")
        if "disparity" in self.bound_lines_ and "ndcg" not in self.bound_lines_:
            self.ax_.plot([], [], color=COLORS[1], linestyle="--", label="bound")  # for the one legend
        self.legend_ = legend_outside(self.ax_, n_columns=4)
        self.figure_.align_ylabels(np.asarray(self.axes_))
        return self


@dataclass(eq=False, repr=False)
class SensitiveDirectionsDisplay:
    """Bars for the groups' gap in each feature, and a marker for each entry of a sensitive direction.

    Where markers stand inside bars, the directions hold less than the groups' difference; where they lie on the other side of
    zero than the bulk of a direction, the direction says what predicts the group rather than how the groups differ. Make one by
    `from_estimator`.

    Parameters
    ----------
    metric : fitted SensitiveSubspaceMetric

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer
    lines_ : list of matplotlib Line2D
        One for each direction.
    legend_ : matplotlib Legend
    """

    metric: Any

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **plot_params):
        """Draw what a metric, or the metric of a ranker, treats as sensitive.

        Parameters
        ----------
        estimator : fitted SensitiveSubspaceMetric, SenSTIRRanker, or pipeline that ends with one
        ax, **plot_params
            For `plot`.

        Returns
        -------
        display : SensitiveDirectionsDisplay
        """
        remedy = "give a fitted SensitiveSubspaceMetric, or a SenSTIRRanker with one"
        estimator = final_estimator(estimator, "fit", remedy)
        metric = getattr(estimator, "metric_", estimator)
        return cls(final_estimator(metric, "summary", remedy)).plot(ax=ax, **plot_params)

    def plot(self, ax=None, *, max_features=20):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        max_features : int, default=20
            So many features with the largest gaps or entries are drawn, in their order in X.

        Returns
        -------
        self : SensitiveDirectionsDisplay
        """
        table = self.metric.summary()
        size = table.abs().max(axis=1).to_numpy()
        table = table.iloc[np.sort(np.argsort(-size, kind="stable")[:max_features])]
        places, gaps = np.arange(len(table)), table["gap"].to_numpy()
        ax = axes_for(ax, figsize=(5.6, 1.6 + 0.26 * len(table)), display="SensitiveDirectionsDisplay")
        self.ax_, self.figure_ = ax, ax.figure
        bar = {"color": "0.88", "height": 0.8, "label": "gap of the groups, either way"}
        self.bars_, self.lines_ = ax.barh(places, 2 * gaps, left=-gaps, **bar), []
        for k, name in enumerate(table.columns[:-1]):
            look = {"marker": MARKERS[k % len(MARKERS)], "color": COLORS[k % len(COLORS)], "markersize": 5.5}
            self.lines_ += ax.plot(table[name], places, linestyle="none", label=name, **look)
        ax.axvline(0.0, color="0.4", linewidth=0.8)
        ax.set_yticks(places, [str(name) for name in table.index])
        ax.invert_yaxis()
        ax.set(xlabel="feature units")
        held = [
            f"{name}: {share:.0%} held" for name, share in self.metric.difference_shares_.items() if not np.isnan(share)
        ]
        self.legend_ = legend_outside(ax, n_columns=1, title=", ".join(held) or None)
        return self


_AXIS = {
    "discordance": "share of pairs that change order",
    "top_changed": "first item changed",
    "displacement": "displacement of ranks, relative to a reversed list",
    "score_change": "half of the squared change of scores",
}


@dataclass(eq=False, repr=False)
class CertificateDisplay:
    """The queries from the most to the least unfair, with their mean and the upper bound for new queries.

    Make one by `from_estimator`, or of a certificate that you have, by
    ``CertificateDisplay(certificate).plot()``.

    Parameters
    ----------
    certificate : FairnessCertificate
        From `fairness_certificate`.
    name : str, optional
        Name of the ranker, for the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        Unfairness of the queries, sorted.
    mean_, bound_ : matplotlib Line2D, the latter None where there is no bound
    legend_ : matplotlib Legend or None
    """

    certificate: FairnessCertificate
    _: KW_ONLY
    name: str | None = None

    @classmethod
    def from_estimator(cls, estimator, X=None, *, name=None, ax=None, **settings):
        """Compute a certificate, and draw it.

        Parameters
        ----------
        estimator : fitted estimator, or scores of shape (n_rows,)
        X : table, shape (n_rows, n_features), optional
        name : str, optional
            Default: the class of the estimator.
        ax : matplotlib Axes, optional
        **settings
            For `fairness_certificate`, such as qid and hypotheticals.

        Returns
        -------
        display : CertificateDisplay
        """
        certificate = fairness_certificate(estimator, X, **settings)
        if name is None and hasattr(type(estimator), "predict"):
            name = type(estimator).__name__
        return cls(certificate, name=name).plot(ax=ax)

    def plot(self, ax=None, *, color=COLORS[0], legend=True):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        color : color, default blue
            Of the queries.
        legend : bool, default=True

        Returns
        -------
        self : CertificateDisplay
        """
        ax, found = axes_for(ax, figsize=(5.6, 3.8), display="CertificateDisplay"), self.certificate
        self.ax_, self.figure_ = ax, ax.figure
        values = np.sort(found.per_query["unfairness"].to_numpy())[::-1]
        edges = np.linspace(0.0, 1.0, len(values) + 1)
        (self.line_,) = ax.step(edges, np.r_[values, values[-1]], where="post", color=color, label="each query")
        ax.fill_between(edges, np.r_[values, values[-1]], step="post", color=color, alpha=0.2, linewidth=0)
        self.mean_ = ax.axhline(found.value, color="black", linewidth=1.2, label=f"mean, {found.value:.3g}")
        self.bound_ = None
        if found.upper_bound is not None:
            label = f"bound for new queries, {found.upper_bound:.3g} ({100 * found.confidence:.6g}% confidence)"
            self.bound_ = ax.axhline(found.upper_bound, color=COLORS[1], linestyle="--", linewidth=1.4, label=label)
        ax.set(xlabel="share of queries, most unfair first", ylabel=_AXIS[found.statistic], xlim=(0.0, 1.0))
        ax.set_ylim(0.0, 1.0 if found.statistic == "top_changed" else None)
        ax.grid(alpha=0.25)
        self.legend_ = legend_outside(ax, n_columns=1, title=self.name) if legend else None
        return self
