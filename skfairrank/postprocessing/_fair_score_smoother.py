"""Scores that are smooth over the fair metric: the graph Laplacian of Petersen et al. (2021)."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.linalg import solve
from scipy.spatial.distance import cdist
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array

from skfairrank._checks import validate_features
from skfairrank.fair_metrics._distances import fair_features
from skfairrank.fair_metrics._subspace import fit_metric
from skfairrank.postprocessing._base import ReRanker


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
    >>> smoother = FairScoreSmoother(
    ...     LinearRegression(), metric=[[1.0, 0.0]], strength=1000.0
    ... ).fit(X, y, qid=qid)
    >>> smoother.predict(X, qid=qid).round(2)
    array([0.5, 0.5, 5. ])
    """

    needs_groups = False  # what is handed on is for a ranker within that needs it

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

    def _rescored(self, X, queries, s, labels, codes):
        if self.strength == 0:
            return s
        rows = check_array(X, dtype=np.float64, input_name="X")
        Z = queries.group(fair_features(rows, rows, self.metric_)[0])
        blocks = [slice(*block) for block in zip(queries.offsets[:-1], queries.offsets[1:])]
        return np.concatenate([_smooth(s[rows], Z[rows], self.strength, self.theta) for rows in blocks])


def _smooth(s, Z, strength, theta):
    """(I + strength L)^-1 s of one query, whose rows have squared distances d_X = |z_i - z_j|^2."""
    weights = np.exp(-theta * cdist(Z, Z, "sqeuclidean"))
    np.fill_diagonal(weights, 0.0)
    system = -strength * weights
    np.fill_diagonal(system, 1.0 + strength * weights.sum(axis=1))
    mean = s.mean()  # which L leaves alone: solved for apart, so that a large strength costs it no digits
    return mean + solve(system, s - mean, assume_a="pos")
