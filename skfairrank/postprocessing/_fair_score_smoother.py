"""Scores that are smooth over the fair metric: the graph Laplacian of Petersen et al. (2021)."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.linalg import solve
from scipy.spatial.distance import cdist
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array

from skfairrank._checks import names_queries, validate_features
from skfairrank._rankers._ranking import ranks_by_score
from skfairrank.fair_metrics._distances import fair_features
from skfairrank.fair_metrics._subspace import fit_metric
from skfairrank.plackett_luce import sample_rankings
from skfairrank.postprocessing._base import ReRanker

__all__ = ["FairScoreSmoother"]


class FairScoreSmoother(ReRanker):
    r"""Scores drawn towards those of similar items of the same query, similar in the fair metric.

    Of "Post-processing for Individual Fairness" (Petersen, Mukherjee, Sun, Yurochkin 2021), whose graph is here that of a query.
    From the scores :math:`h^0` of a query the smoothed ones are

    .. math::

        \arg\min_h \ |h - h^0|^2 + \lambda\, h^\top L h = (I + \lambda L)^{-1} h^0, \qquad
        h^\top L h = \tfrac12 \sum_{ij} e^{-\theta\, d_X(x_i, x_j)} (h_i - h_j)^2 ,

    L being the Laplacian of the weights :math:`e^{-\theta d_X}`, :math:`d_X` the squared distance of the fair metric, and
    :math:`\lambda` the `strength`. The mean score of a query stays.

    Parameters
    ----------
    estimator : estimator with `fit` and `predict`
        The ranker: one of this package, a pipeline, a regressor, a boosted ranker (which is put into a `QueryRanker`), or
        ``FrozenEstimator(model)`` around a fitted one.
    metric : None, fair metric, FrozenEstimator or array-like of shape (K, n_features), default=None
        As for `SenSTIRRanker`: None is learned from the `sensitive_features` of `fit`, an array holds sensitive directions. It
        measures X as the smoother gets it, so X must be numbers; what the ranker does to X within does not matter.
    strength : float, default=1.0
        :math:`\lambda \ge 0`; 0 leaves the scores as they are.
    theta : float, default=1.0
        :math:`\theta \ge 0`, per unit of the squared distance. With 0 all items of a query are alike, and scores only shrink
        towards their mean, which changes no order; far above the inverse of the distances nothing is smoothed.

    Attributes
    ----------
    estimator_ : estimator
        The fitted ranker.
    metric_ : fair metric
        As fitted.
    n_queries_ : int
    n_features_in_ : int

    Notes
    -----
    Scores depend on the other items of the query, so `predict` needs `qid`; groups are needed for a metric that is learned from
    them, and never when rankings are made.

    It saturates. With a growing strength the scores of a query approach their mean, and their order approaches that of
    :math:`L^+ h^0`, which still follows the ranker: items of different scores that are alike keep an order. Only two items at
    distance zero get the same score in the limit, and two items of one query seldom are.

    Examples
    --------
    Two items are alike but for their first feature, and the third is not:

    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.postprocessing import FairScoreSmoother
    >>> X, y, qid = [[0.0, 0.0], [1.0, 0.0], [0.0, 9.0]], [0.0, 1.0, 5.0], [0, 0, 0]
    >>> smoother = FairScoreSmoother(LinearRegression(), metric=[[1.0, 0.0]], strength=1000.0).fit(X, y, qid=qid)
    >>> smoother.predict(X, qid=qid).round(2)
    array([0.5, 0.5, 5. ])
    """

    # To score and to rank it needs no group; what is handed on is for a ranker within that does.
    __metadata_request__score = {"qid": True, "sensitive_features": True, "query_weight": True}

    _parameter_constraints = {
        **ReRanker._parameter_constraints,
        "metric": "no_validation",
        "strength": [Interval(Real, 0, None, closed="left")],
        "theta": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, estimator, *, metric=None, strength=1.0, theta=1.0):
        self.estimator = estimator
        self.metric = metric
        self.strength = strength
        self.theta = theta

    def _learn(self, X, queries, sensitive_features):
        rows = validate_features(self, X, dtype=np.float64, reset=False)
        self.metric_ = fit_metric(self.metric, X if hasattr(X, "columns") else rows, sensitive_features)

    @names_queries
    def predict(self, X, *, qid=None, sensitive_features=None):
        """Smoothed scores, higher is better.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
            All rows of each query.
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. May only be left out if `fit` saw one query.
        sensitive_features : array-like, shape (n_rows,), optional
            Only for a ranker within that needs it when it predicts.

        Returns
        -------
        scores : ndarray of float, shape (n_rows,)
        """
        return self._smoothed(X, qid, sensitive_features, method="predict")[1]

    @names_queries
    def rank(self, X, *, qid=None, sensitive_features=None):
        """Rank of each row within its query, by descending smoothed score; ties in row order.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one list.
        sensitive_features : array-like, shape (n_rows,), optional
            Only for a ranker within that needs it when it predicts.

        Returns
        -------
        ranks : ndarray of int, shape (n_rows,)
        """
        queries, scores = self._smoothed(X, qid, sensitive_features, method="rank")
        return ranks_by_score(scores, queries)

    @names_queries
    def sample_rankings(self, X, *, qid=None, sensitive_features=None, n_samples=1, random_state=None):
        """Rankings drawn from the Plackett-Luce policy of the smoothed scores.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one list.
        sensitive_features : array-like, shape (n_rows,), optional
            Only for a ranker within that needs it when it predicts.
        n_samples : int, default=1
        random_state : None, int, RandomState or Generator

        Returns
        -------
        ranks : ndarray of int, shape (n_samples, n_rows)
        """
        scores = self._smoothed(X, qid, sensitive_features, method="sample_rankings")[1]
        return sample_rankings(scores, qid=qid, n_samples=n_samples, random_state=random_state)

    def _smoothed(self, X, qid, sensitive_features, *, method):
        queries, s = self._scored(X, qid, sensitive_features, method=method)
        rows = check_array(X, dtype=np.float64, input_name="X")
        Z = queries.group(fair_features(rows, rows, self.metric_)[0])
        if self.strength > 0:
            blocks = [slice(*block) for block in zip(queries.offsets[:-1], queries.offsets[1:])]
            s = np.concatenate([_smooth(s[rows], Z[rows], self.strength, self.theta) for rows in blocks])
        return queries, queries.ungroup(s)


def _smooth(s, Z, strength, theta):
    """(I + strength L)^-1 s of one query, whose rows have squared distances d_X = |z_i - z_j|^2."""
    weights = np.exp(-theta * cdist(Z, Z, "sqeuclidean"))
    np.fill_diagonal(weights, 0.0)
    system = -strength * weights
    np.fill_diagonal(system, 1.0 + strength * weights.sum(axis=1))
    mean = s.mean()  # which L leaves alone: solved for apart, so that a large strength costs it no digits
    return mean + solve(system, s - mean, assume_a="pos")
