"""TemperatureDisplay: what a policy's temperature costs in NDCG, and buys in disparity."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skfairrank.inspection._plot import COLORS, legend_outside, panels

__all__ = ["TemperatureDisplay"]


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

    def __init__(self, curve, *, temperature, sorted_ndcg=None, max_ndcg_loss=None, max_disparity=None):
        self.curve = curve
        self.temperature = temperature
        self.sorted_ndcg = sorted_ndcg
        self.max_ndcg_loss = max_ndcg_loss
        self.max_disparity = max_disparity

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **plot_params):
        """Draw the curve of a fitted `TemperatureRanker`.

        Parameters
        ----------
        estimator : TemperatureRanker
            Or a pipeline that ends in one, or a search whose best estimator does.
        ax : matplotlib Axes or array of them, optional
            See `plot`.
        **plot_params
            For `plot`.

        Returns
        -------
        display : TemperatureDisplay
        """
        ranker = getattr(estimator, "best_estimator_", estimator)
        if isinstance(ranker, Pipeline):
            ranker = ranker[-1]
        check_is_fitted(ranker)
        if not hasattr(ranker, "curve_"):
            raise ValueError(f"{type(ranker).__name__} has no curve_: give a TemperatureRanker.")
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
        least = None if None in (self.sorted_ndcg, self.max_ndcg_loss) else self.sorted_ndcg - self.max_ndcg_loss
        bounds = {"ndcg": least, "disparity": self.max_disparity}
        settings = {"color": COLORS[0], "marker": ".", "linewidth": 1.6, "label": "policy", **line_params}
        self.lines_, self.bound_lines_ = {}, {}
        for panel, name in zip(self.axes_, names, strict=True):
            (self.lines_[name],) = panel.plot(self.curve["temperature"], self.curve[name], **settings)
            panel.axvline(self.temperature, color="0.3", linewidth=1.0, label=f"chosen: {self.temperature:.3g}")
            if bounds[name] is not None:
                self.bound_lines_[name] = panel.axhline(bounds[name], color=COLORS[1], linestyle="--", label="bound")
            panel.set_xscale("log")
            panel.grid(alpha=0.25)
        if self.sorted_ndcg is not None:
            self.ax_.axhline(self.sorted_ndcg, color="0.3", linestyle=":", label="sorted lists")
        for panel, name in zip(self.axes_, names, strict=True):
            panel.set_ylabel({"ndcg": "expected NDCG", "disparity": "disparity of exposure"}[name])
        for panel in self.axes_[:-1]:
            panel.tick_params(labelbottom=False)
        self.axes_[-1].set_xlabel("temperature")
        if "disparity" in self.bound_lines_ and "ndcg" not in self.bound_lines_:
            self.ax_.plot([], [], color=COLORS[1], linestyle="--", label="bound")  # for the one legend
        self.legend_ = legend_outside(self.ax_, n_columns=4)
        if len(self.axes_) > 1:
            self.figure_.align_ylabels(np.asarray(self.axes_))
        return self
