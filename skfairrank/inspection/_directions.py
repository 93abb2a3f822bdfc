"""SensitiveDirectionsDisplay: what a fair metric treats as sensitive, feature by feature."""

from __future__ import annotations

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skfairrank.inspection._plot import COLORS, MARKERS, axes_for, legend_outside

__all__ = ["SensitiveDirectionsDisplay"]


class SensitiveDirectionsDisplay:
    """Bars for the groups' gap in each feature, and a marker for each entry of a sensitive direction.

    Where markers stand inside bars, the directions hold less than the groups' difference; where they lie on the other side of
    zero than the bulk of a direction, the direction says what predicts the group rather than how the groups differ. Make one by
    `from_estimator`.

    Parameters
    ----------
    summary : MetricSummary

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer
    lines_ : list of matplotlib Line2D
        One for each direction.
    legend_ : matplotlib Legend
    """

    def __init__(self, summary):
        self.summary = summary

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **plot_params):
        """Draw what a metric, or the metric of a ranker, treats as sensitive.

        Parameters
        ----------
        estimator : fitted SensitiveSubspaceMetric, SenSTIRRanker, or pipeline that ends with one
        ax : matplotlib Axes, optional
        **plot_params
            For `plot`.

        Returns
        -------
        display : SensitiveDirectionsDisplay
        """
        while isinstance(estimator, (Pipeline, FrozenEstimator)):
            estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator.estimator
        metric = getattr(estimator, "metric_", estimator)
        if not hasattr(metric, "summary"):
            raise ValueError(
                f"{type(metric).__name__} has no summary of directions and gaps: give a fitted SensitiveSubspaceMetric, or a "
                "SenSTIRRanker with one."
            )
        check_is_fitted(metric, "sensitive_basis_")
        return cls(metric.summary()).plot(ax=ax, **plot_params)

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
        table = self.summary.table
        size = table.abs().max(axis=1).to_numpy()
        shown = np.sort(np.argsort(-size, kind="stable")[:max_features])
        table, places = table.iloc[shown], np.arange(len(shown))
        ax = axes_for(ax, figsize=(5.6, 1.6 + 0.26 * len(shown)), display="SensitiveDirectionsDisplay")
        self.ax_, self.figure_ = ax, ax.figure
        gaps = table["gap"].to_numpy()
        self.bars_ = ax.barh(
            places, 2 * gaps, left=-gaps, color="0.88", height=0.8, label="gap of the groups, either way"
        )
        self.lines_ = []
        for k, name in enumerate(table.columns[:-1]):
            self.lines_ += ax.plot(
                table[name],
                places,
                linestyle="none",
                marker=MARKERS[k % len(MARKERS)],
                color=COLORS[k % len(COLORS)],
                markersize=5.5,
                label=name,
            )
        ax.axvline(0.0, color="0.4", linewidth=0.8)
        ax.set_yticks(places, [str(name) for name in table.index])
        ax.invert_yaxis()
        ax.set(xlabel="feature units")
        held = [f"{name}: {share:.0%} held" for name, share in self.summary.shares.items() if not np.isnan(share)]
        self.legend_ = legend_outside(ax, n_columns=1, title=", ".join(held) or None)
        return self
