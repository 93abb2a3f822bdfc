"""CertificateDisplay: the unfairness of each query, its mean, and the bound for new queries."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from skfairrank.inspection._certificate import FairnessCertificate, fairness_certificate
from skfairrank.inspection._plot import COLORS, axes_for, legend_outside

__all__ = ["CertificateDisplay"]

_AXIS = {
    "discordance": "share of pairs that change order",
    "top_changed": "first item changed",
    "displacement": "displacement of ranks, relative to a reversed list",
    "score_change": "half of the squared change of scores",
}


@dataclass(eq=False, repr=False)
class CertificateDisplay:
    """The queries from the most to the least unfair, with their mean and the upper bound for new queries.

    Make one by `from_estimator` or `from_predictions`, or of a certificate that you have, by
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
    def from_estimator(cls, estimator, X, *, qid, hypotheticals=None, name=None, ax=None, plot_params=None, **settings):
        """Compute a certificate, and draw it.

        Parameters
        ----------
        estimator : fitted estimator
        X : table, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,)
        hypotheticals : callable, list or dict of callables, or Hypotheticals, optional
        name : str, optional
            Default: the class of the estimator.
        ax : matplotlib Axes, optional
        plot_params : dict, optional
            For `plot`.
        **settings
            For `fairness_certificate`.

        Returns
        -------
        display : CertificateDisplay
        """
        certificate = fairness_certificate(estimator, X, qid=qid, hypotheticals=hypotheticals, **settings)
        name = type(estimator).__name__ if name is None else name
        return cls(certificate, name=name).plot(ax=ax, **(plot_params or {}))

    @classmethod
    def from_predictions(
        cls,
        s,
        hypothetical_scores,
        *,
        qid,
        statistic="discordance",
        confidence=0.95,
        name=None,
        ax=None,
        **plot_params,
    ):
        """Draw the certificate of scores that one has.

        Parameters
        ----------
        s : array-like, shape (n_rows,)
            Scores of the rows.
        hypothetical_scores : array-like of shape (n_rows,), or dict of name to array
            Scores of their hypothetical counterparts.
        qid : array-like, shape (n_rows,)
        statistic, confidence
            See `fairness_certificate`.
        name, ax
            See the class and `plot`.
        **plot_params
            For `plot`.

        Returns
        -------
        display : CertificateDisplay
        """
        certificate = fairness_certificate(
            s, qid=qid, hypotheticals=hypothetical_scores, statistic=statistic, confidence=confidence
        )
        return cls(certificate, name=name).plot(ax=ax, **plot_params)

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
