"""TrainingHistoryDisplay: what a fit did, step by step."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skfairrank.inspection._plot import COLORS, panels

__all__ = ["TrainingHistoryDisplay"]

_LABELS = {
    "utility": "utility",
    "regularizer": "regulariser",
    "query_distance": "distance $d_Q$",
    "lambda": r"multiplier $\lambda$",
}


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

    def __init__(self, history, *, epsilon=None, name=None):
        self.history = history
        self.epsilon = epsilon
        self.name = name

    @classmethod
    def from_estimator(cls, estimator, *, name=None, ax=None, **plot_params):
        """Draw the history of a fitted ranker.

        Parameters
        ----------
        estimator : fitted ranker with `history_`
            Or a pipeline that ends in one, or a search whose best estimator does.
        name : str, optional
            Default: the ranker's class.
        ax : matplotlib Axes or array of them, optional
            See `plot`.
        **plot_params
            For `plot`.

        Returns
        -------
        display : TrainingHistoryDisplay
        """
        ranker = getattr(estimator, "best_estimator_", estimator)
        if isinstance(ranker, Pipeline):
            ranker = ranker[-1]
        check_is_fitted(ranker)
        if not hasattr(ranker, "history_"):
            raise ValueError(f"{type(ranker).__name__} has no history_: give a ranker of skfairrank that trains.")
        name = type(ranker).__name__ if name is None else name
        return cls(ranker.history_, epsilon=getattr(ranker, "epsilon", None), name=name).plot(ax=ax, **plot_params)

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
        names = [name for name in _LABELS if name in self.history]
        if not np.any(self.history.get("regularizer", 0.0)):
            names = names[:1]
        n_steps = len(self.history["utility"])
        if n_steps == 0:
            raise ValueError("The history is empty: the fit took no step.")
        window = max(1, n_steps // 50) if window is None else int(window)
        if window < 1:
            raise ValueError(f"window={window}: give a number of steps, 1 or more.")
        n_panels = len(names)
        figsize = (6.4, 1.0 + 1.55 * n_panels)
        self.axes_ = panels(ax, (1,) * n_panels, figsize=figsize, display="TrainingHistoryDisplay")
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        self.lines_, self.raw_lines_ = {}, {}
        steps = np.arange(1, n_steps + 1)
        for panel, name in zip(self.axes_, names, strict=True):
            values = np.asarray(self.history[name], dtype=np.float64)
            (self.raw_lines_[name],) = panel.plot(steps, values, color="0.75", linewidth=0.6)
            (self.lines_[name],) = panel.plot(steps, _moving_average(values, window), color=COLORS[0], linewidth=1.6)
            panel.set_ylabel(_LABELS[name])
            panel.grid(alpha=0.25)
            positive = values[values > 0]
            if name in ("regularizer", "lambda") and len(positive) and positive.max() > 100 * np.median(positive):
                panel.set_yscale("log")  # zeros, of steps without the regulariser, are left out
            if name == "query_distance" and self.epsilon is not None:
                panel.axhline(self.epsilon, color=COLORS[1], linestyle="--", linewidth=1.2)
                panel.annotate(
                    r"$\varepsilon$",
                    (1.0, self.epsilon),
                    xycoords=("axes fraction", "data"),
                    xytext=(4, 0),
                    textcoords="offset points",
                    color=COLORS[1],
                    va="center",
                )
            panel.label_outer()
        self.axes_[-1].set_xlabel(f"step (line: mean of {window})" if window > 1 else "step")
        if self.name is not None:
            self.ax_.set_title(self.name)
        return self


def _moving_average(values, window):
    """Mean over a centred window, shorter at the ends."""
    inside = slice(window // 2, window // 2 + len(values))
    total, count = (np.convolve(terms, np.ones(window))[inside] for terms in (values, np.ones(len(values))))
    return total / count
