"""RankDisplacementDisplay: the heatmap of `rank_displacement` (Bower et al. 2021, Figure 2)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from skfairrank._random import as_generator
from skfairrank.inspection._displacement import rank_displacement
from skfairrank.inspection._plot import axes_for
from skfairrank.metrics._predictions import ranking_scores
from skfairrank.plackett_luce import sample_rankings

__all__ = ["RankDisplacementDisplay"]


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
        name, ax
            See the class and `plot`.
        **plot_params
            For `plot`.

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
        name, ax
            See the class and `plot`.
        **plot_params
            For `plot`.

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
        self.im_ = ax.imshow(
            self.displacement, cmap=cmap, vmin=0.0, vmax=vmax, extent=(0.5, n_items + 0.5, n_items + 0.5, 0.5)
        )
        step = -(-n_items // 10)
        ax.set(
            xlabel="rank under the hypothetical query",
            ylabel="rank under the query",
            xticks=np.arange(1, n_items + 1, step),
            yticks=np.arange(1, n_items + 1, step),
        )
        stay = f"{np.trace(self.displacement) / n_items:.0%} keep their rank"
        ax.set_title(stay if self.name is None else f"{self.name}\n{stay}", fontsize="medium")
        self.colorbar_ = self.figure_.colorbar(self.im_, ax=ax, label="share of items") if colorbar else None
        return self
