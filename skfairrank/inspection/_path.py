"""PathDisplay: the weights of `senstir_path` along rho, and what they cost."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from skfairrank.inspection._plot import COLORS, panels

__all__ = ["PathDisplay"]


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

    def __init__(self, rhos, coefs, utilities, regularizers, *, feature_names):
        self.rhos = rhos
        self.coefs = coefs
        self.utilities = utilities
        self.regularizers = regularizers
        self.feature_names = feature_names

    @classmethod
    def from_path(cls, path, *, feature_names=None, ax=None, **plot_params):
        """Draw a path.

        Parameters
        ----------
        path : SenSTIRPath
            From `skfairrank.senstir_path`.
        feature_names : sequence of str, shape (n_features,), optional
            Default: the names that X had in training, else "x0", "x1", ...
        ax : matplotlib Axes or array of three of them, optional
            See `plot`.
        **plot_params
            For `plot`.

        Returns
        -------
        display : PathDisplay
        """
        n_features = path.coefs.shape[1]
        if feature_names is None:
            of_training = getattr(path.rankers[0], "feature_names_in_", None)
            feature_names = [f"x{j}" for j in range(n_features)] if of_training is None else of_training
        if len(feature_names) != n_features:
            raise ValueError(f"feature_names has {len(feature_names)} entries for {n_features} features: one for each.")
        display = cls(
            path.rhos,
            path.coefs,
            path.utilities,
            path.regularizers,
            feature_names=np.array([str(name) for name in feature_names]),
        )
        return display.plot(ax=ax, **plot_params)

    def plot(self, ax=None, *, named=7):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or array of three of them, optional
            One, whose place is divided among the three; or one for each.
        named : int or list of (str or int), default=7
            Features to colour and name in the legend, the others are grey: so many of those with the largest absolute weight on
            the path, or just these, by name or position.

        Returns
        -------
        self : PathDisplay
        """
        chosen = self._chosen(named)
        self.axes_ = panels(ax, (2.4, 1, 1), figsize=(7.2, 6.2), display="PathDisplay")
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        weights, utility, regularizer = self.axes_
        self.lines_ = [None] * self.coefs.shape[1]
        for j in np.setdiff1d(np.arange(len(self.lines_)), chosen):
            (self.lines_[j],) = weights.plot(self.rhos, self.coefs[:, j], color="0.75", linewidth=0.9)
        for k, j in enumerate(chosen):
            (self.lines_[j],) = weights.plot(
                self.rhos,
                self.coefs[:, j],
                color=COLORS[k % len(COLORS)],
                linestyle=("-", "--", ":", "-.")[k // len(COLORS) % 4],
                linewidth=1.7,
                label=self.feature_names[j],
                zorder=3,
            )
        weights.axhline(0.0, color="0.3", linewidth=0.8, zorder=1)
        # "_" hides a label from a legend.
        shown = [self.lines_[j] for j in chosen if not self.feature_names[j].startswith("_")]
        self.legend_ = None
        if shown:
            self.legend_ = weights.legend(
                handles=shown, loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, fontsize="small"
            )
        (self.utility_line_,) = utility.plot(self.rhos, self.utilities, color="0.15", marker=".", linewidth=1.2)
        (self.regularizer_line_,) = regularizer.plot(
            self.rhos, self.regularizers, color="0.15", marker=".", linewidth=1.2
        )
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
            panel.label_outer()
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
            chosen = []
            for name in named:
                found = np.flatnonzero(self.feature_names == name) if isinstance(name, str) else [name]
                if not len(found) or not -n_features <= found[0] < n_features:
                    raise ValueError(f"named has {name!r}, which is none of the {n_features} features.")
                chosen.append(int(found[0]) % n_features)
        return sorted(dict.fromkeys(int(j) for j in chosen), key=lambda j: -self.coefs[0, j])
