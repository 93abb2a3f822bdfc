"""TradeoffDisplay: two scores of several systems against each other (Bower et al. 2021, Figures 3 and 4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real

import numpy as np
import pandas as pd

from skfairrank.inspection._plot import COLORS, MARKERS, axes_for, legend_outside, write_beside
from skfairrank.model_selection import mean_test_scores


@dataclass(eq=False, repr=False)
class TradeoffDisplay:
    """Two scores against each other with error bars, one line for each system (Bower et al. 2021, Figures 3 and 4).

    Make one by `from_predictions` (any numbers), `from_search` or `from_cv_results` (a search with several scorers), or
    `from_path` (`skfairrank.senstir_path`).

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
    def from_search(cls, search, *, x, y, negate=None, **kwargs):
        """Draw the candidates of a fitted search with several scorers, and mark the one that it chose.

        Parameters
        ----------
        search : fitted GridSearchCV, RandomizedSearchCV or halving search
        x, y : str
            Names of two of its scorers.
        negate : collection of str, optional
            Scorers whose sign is to be turned. Default: those that the search's scorers themselves turn, being better
            the smaller they are, and names that begin with ``"neg_"``; so a disparity is drawn as what it is.
        **kwargs
            As for `from_cv_results`.

        Returns
        -------
        display : TradeoffDisplay
        """
        if not hasattr(search, "cv_results_"):
            raise ValueError(f"{type(search).__name__} has no cv_results_: give a fitted search.")
        if negate is None:
            scorers = search.scorer_ if isinstance(search.scorer_, dict) else {}
            negate = [name for name in (x, y) if _is_negated(scorers.get(name)) or name.startswith("neg_")]
        kwargs.setdefault("best_index", getattr(search, "best_index_", None))
        return cls.from_cv_results(search.cv_results_, x=x, y=y, negate=negate, **kwargs)

    @classmethod
    def from_cv_results(
        cls, cv_results, *, x, y, best_index=None, negate=None, label_by=None, annotate_by=None, ax=None, **settings
    ):
        """Draw the candidates of `cv_results_`. Error bars are standard errors over the folds.

        The standard deviation over folds (ddof=1) by the root of their number. Folds share training data, so this is a
        guide to the eye rather than a test.

        Parameters
        ----------
        cv_results : dict
            `cv_results_` of a search.
        x, y : str
            Names of two of its scorers.
        best_index : int, optional
            The candidate to mark.
        negate : collection of str, optional
            Scorers whose sign is to be turned. Default: names that begin with ``"neg_"``.
        label_by : str, optional
            Parameter whose values are the systems, one line each. Default: one line through all candidates.
        annotate_by : str, optional
            Parameter whose values are written beside the points. Default: the only one searched. A line joins points in
            the order of this parameter where its values are numbers, else in the order of x.
        ax : matplotlib Axes, optional
        **settings
            For the class, as ``xlabel`` (default: the scorer's name), or for `plot`.

        Returns
        -------
        display : TradeoffDisplay
        """
        negate = [name for name in (x, y) if name.startswith("neg_")] if negate is None else list(negate)
        (mean_x, error_x), (mean_y, error_y) = (_over_folds(cv_results, name, name in negate) for name in (x, y))
        parameters = [key.removeprefix("param_") for key in cv_results if key.startswith("param_")]
        if annotate_by is None and len(parameters) == 1 and label_by is None:
            annotate_by = parameters[0]
        systems = None if label_by is None else _values(cv_results, label_by, parameters)
        noted = None if annotate_by is None else _values(cv_results, annotate_by, parameters)
        finite = np.flatnonzero(np.isfinite(mean_x) & np.isfinite(mean_y))
        if not len(finite):
            raise ValueError(f"No candidate has finite mean test scores by both {x!r} and {y!r}.")
        order = finite[np.argsort(mean_x[finite], kind="stable")]
        of_system = {k: None if systems is None else _text(systems[k]) for k in order}
        by_number = {
            system: noted is not None and all(_is_number(noted[k]) for k in order if of_system[k] == system)
            for system in of_system.values()
        }
        order = np.array(
            sorted(order, key=lambda k: noted[k] if noted is not None and by_number[of_system[k]] else 0.0)
        )
        chosen = np.flatnonzero(order == (-1 if best_index is None else best_index))
        names = {"xlabel": _name(x), "ylabel": _name(y)}
        return cls.from_predictions(
            mean_x[order],
            mean_y[order],
            xerr=error_x[order],
            yerr=error_y[order],
            labels=None if systems is None else [of_system[k] for k in order],
            annotations=None if noted is None else [noted[k] for k in order],
            annotation_name=None if annotate_by is None else annotate_by.rpartition("__")[2],
            chosen=int(chosen[0]) if len(chosen) else None,
            ax=ax,
            **{**names, **settings},
        )

    @classmethod
    def from_path(cls, path, *, label="SenSTIR", ax=None, **plot_params):
        """Draw utility against regulariser along rho, both on the training queries.

        Parameters
        ----------
        path : SenSTIRPath
            From `skfairrank.senstir_path`. For other scores evaluate ``path.predict(X)`` and use `from_predictions`.
        label : str, default="SenSTIR"
        ax : matplotlib Axes, optional
        **plot_params
            For `plot`.

        Returns
        -------
        display : TradeoffDisplay
        """
        every = -(-len(path.rhos) // 10)
        return cls.from_predictions(
            path.utilities,
            path.regularizers,
            labels=[label] * len(path.rhos),
            annotations=[f"{rho:.2g}" if k % every == 0 else "" for k, rho in enumerate(path.rhos)],
            annotation_name=r"$\rho$",
            xlabel="utility (mean expected NDCG)",
            ylabel="regulariser R",
            ax=ax,
            **{"yscale": "log" if np.all(path.regularizers > 0) else "symlog", **plot_params},
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
            ax.margins(x=0.12, y=0.09)
            noted = [k for k, text in enumerate(self.annotations) if text]
            line_colors = [self.lines_[labels[k]][0].get_color() for k in noted]
            xy = np.column_stack([self.x, self.y])[noted]
            self.texts_ = write_beside(ax, xy, [self.annotations[k] for k in noted], line_colors)
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


def _is_negated(scorer):
    """Ours say so, scikit-learn's have a sign."""
    return getattr(scorer, "greater_is_better", True) is False or getattr(scorer, "_sign", 1) < 0


def _over_folds(cv_results, scorer, negated):
    """Mean over folds and its standard error, of each candidate."""
    mean = mean_test_scores(cv_results, scorer)
    is_fold = re.compile(rf"split\d+_test_{re.escape(scorer)}").fullmatch
    folds = pd.DataFrame({key: values for key, values in cv_results.items() if is_fold(key)})
    error = folds.sem(axis=1).to_numpy() if folds.shape[1] > 1 else np.zeros_like(mean)
    return -mean if negated else mean, error


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
