"""The invariance regulariser of a ranker, in closed form or by ascent within the same bounds."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from skfairrank._queries import Queries
from skfairrank._random import as_generator
from skfairrank.adversaries import ExactBox, ExactBudget, ExactGaps
from skfairrank.adversaries._bounded_ascent import ascend_within
from skfairrank.adversaries._plausible import PLAUSIBLE, read_plausible
from skfairrank.adversaries._plausible_bounds import Rows, ascend_among
from skfairrank.adversaries._score_distance import SCORE_DISTANCE
from skfairrank.fair_metrics._linear import check_same_features, fitted_metric
from skfairrank.scores import LinearScore

__all__ = ["bounds_of_moves", "invariance_regularizer"]


def invariance_regularizer(
    estimator_or_weights,
    X,
    *,
    qid,
    metric=None,
    epsilon=0.01,
    subspace_radius=1.0,
    feature_radius=None,
    gap_radius=None,
    adversary="exact",
    score_distance="squared",
    feature_range=None,
    one_hot_groups=None,
    fixed_features=None,
    n_steps=500,
    n_starts=8,
    random_state=None,
):
    r"""How unfair linear scores are: the largest mean :math:`\frac12 \|h(q) - h(q')\|^2` over hypothetical queries q'.

    Items of q are moved one by one, x' = x + s + e, and stay paired with themselves.

    ``"exact"``: s in the sensitive subspace with :math:`\|s\| \le r`, e orthogonal to it, and over all queries the mean transport
    cost :math:`\frac1n \sum_i \|e_i\|^2` at most epsilon. With :math:`a = r \|Aw\|`, :math:`b = \|Pw\|`,
    :math:`R = \mathrm{mean}_q \frac{n_q}{2} (a + b u_q)^2`, :math:`\mathrm{mean}_q u_q^2 = \varepsilon`: the budget
    goes to the queries where it buys most. For queries of one size n, :math:`R = \frac n2 (a + \sqrt\varepsilon\,
    b)^2`.

    ``"exact_box"``: each coefficient along the raw directions within r, each coordinate of e within delta:
    :math:`R = \mathrm{mean}_q \frac{n_q}{2} (r \sum_k |V_k w| + \delta \|w\|_1)^2`.

    ``"gaps"``: each coordinate j of the move within :math:`r g_j + \delta`, with :math:`g_j` the groups' gap in feature j (the
    metric's `gaps_`) and r the `gap_radius`: :math:`R = \mathrm{mean}_q \frac{n_q}{2} (\sum_j (r g_j + \delta) |w_j|)^2`.

    ``"ascent"``: projected gradient ascent inside the bounds of "gaps" where `gap_radius` is given, of "exact_box" where
    `feature_radius` is, else of "exact". It cannot exceed the exact value. It alone knows which rows are plausible.

    Centered, a change of all scores of a query by one number costs nothing: R is that of
    :math:`\frac12 \sum_i (u_i - \bar u)^2` with u the changes of scores. For "exact_box" and "gaps" that puts
    :math:`n_q - (n_q \bmod 2) / n_q` in place of :math:`n_q`; for "exact" see docs/exact.md.

    Parameters
    ----------
    estimator_or_weights : fitted linear ranker, or array-like of shape (n_features,)
    X : array-like, shape (n_rows, n_features)
        Only the sizes of its queries and its number of features count, since scores are linear; where rows have bounds, X itself.
    qid : array-like, shape (n_rows,)
        Query of each row, in any order.
    metric : fitted SensitiveSubspaceMetric, optional
        Default: the ranker's own `metric_`.
    epsilon : float, default=0.01
        Bound on the mean d_Q, in squared feature units.
    subspace_radius : float, default=1.0
        Bound r on the sensitive move; in feature units for "exact", in units of the directions for "exact_box".
    feature_radius : float, optional
        Bound delta, in feature units. "exact_box" needs it; for "gaps" it is 0 by default.
    gap_radius : float, optional
        Bound r on the move of a feature, in units of the groups' gap in it. For "gaps" it is 1 by default.
    adversary : {"exact", "exact_box", "gaps", "ascent"}, default="exact"
    score_distance : {"squared", "centered"}, default="squared"
        Whether changes of scores count as they are, or less their mean in each query.
    feature_range, one_hot_groups, fixed_features
        For "ascent": which rows an item may become, as for `skfairrank.SenSTIRRanker`; with "train" the range of the rows of X.
        Within a box and for "squared" the value is then exact.
    n_steps, n_starts : int, default=500, 8
        Steps and random starts of the ascent.
    random_state : None, int, RandomState or Generator
        For the starts of the ascent.

    Returns
    -------
    regularizer : float
        In squared units of scores, summed over the items of a query, averaged over queries.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank import SensitiveSubspaceMetric
    >>> from skfairrank.inspection import invariance_regularizer
    >>> X, qid = np.zeros((4, 2)), [0, 0, 0, 0]
    >>> metric = SensitiveSubspaceMetric(directions=[[0, 1]]).fit(X)
    >>> settings = dict(qid=qid, metric=metric, epsilon=0.25, subspace_radius=1)
    >>> round(float(invariance_regularizer([3, 2], X, **settings)), 6)  # 4 / 2 * (1 * 2 + .5 * 3) ** 2
    24.5
    """
    asked = _Asked(score_distance, feature_range, one_hot_groups, fixed_features)
    asked.check(adversary)
    bounds, weights, queries = bounds_of_moves(
        estimator_or_weights,
        X,
        qid,
        metric,
        adversary,
        epsilon=epsilon,
        subspace_radius=subspace_radius,
        feature_radius=feature_radius,
        gap_radius=gap_radius,
        score_distance=score_distance,
    )
    for name, value in (("n_steps", n_steps), ("n_starts", n_starts)):
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name}={value!r}: give an integer >= 1.")
    if adversary != "ascent":
        return float(bounds.measure(weights)[0])
    settings = {"n_steps": n_steps, "n_starts": n_starts, "rng": as_generator(random_state)}
    if not asked.of_rows:
        return ascend_within(bounds, weights, **settings)
    return ascend_among(bounds, weights, asked.rows(X, queries), **settings)


def bounds_of_moves(
    estimator_or_weights,
    X,
    qid,
    metric,
    adversary,
    *,
    epsilon=0.01,
    subspace_radius=1.0,
    feature_radius=None,
    gap_radius=None,
    score_distance="squared",
):
    """The closed form within the bounds of `invariance_regularizer`, the weights of the linear score, and the queries."""
    weights, metric = _weights_and_metric(estimator_or_weights, metric)
    check_same_features(metric, getattr(X, "columns", None))
    X = check_array(X, dtype=[np.float64, np.float32], input_name="X")
    queries = Queries.from_qid(qid, len(X))
    if np.abs(weights).max(initial=0.0) > 1e100:
        raise ValueError(
            "weights reach beyond 1e100: their squares overflow. Scale them (the regulariser is quadratic in them)."
        )
    if not len(weights) == X.shape[1] == metric.directions_.shape[1]:
        raise ValueError(
            f"There are {len(weights)} weights, X has {X.shape[1]} features and the metric {metric.directions_.shape[1]}: "
            "they must be the same features."
        )
    bounds = {"epsilon": epsilon, "subspace_radius": subspace_radius}
    for name, value in {**bounds, "feature_radius": feature_radius, "gap_radius": gap_radius}.items():
        if value is not None and not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise ValueError(f"{name}={value!r}: give a finite number >= 0.")
    shape = _Shape(queries.sizes, np.ones(queries.n_queries), X.shape[1])
    if adversary == "exact":
        exact = ExactBudget(epsilon, subspace_radius, score_distance)
    elif adversary == "exact_box" or (adversary == "ascent" and gap_radius is None and feature_radius is not None):
        if feature_radius is None:
            raise ValueError(
                'adversary="exact_box" needs feature_radius, the bound on each coordinate of the free move.'
            )
        exact = ExactBox(subspace_radius, feature_radius, score_distance)
    elif adversary == "gaps" or (adversary == "ascent" and gap_radius is not None):
        exact = ExactGaps(1.0 if gap_radius is None else gap_radius, feature_radius or 0.0, score_distance)
    elif adversary == "ascent":
        exact = ExactBudget(epsilon, subspace_radius, score_distance)
    else:
        raise ValueError(f'adversary={adversary!r}: choose "exact", "exact_box", "gaps" or "ascent".')
    return exact.prepare(shape, LinearScore(), metric), weights, queries


class _Asked(NamedTuple):
    """How scores are compared, and which rows are plausible."""

    score_distance: str
    feature_range: Any
    one_hot_groups: Any
    fixed_features: Any

    @property
    def of_rows(self) -> bool:
        """Whether anything is said of which rows are plausible."""
        return any(part is not None for part in self[1:])

    def check(self, adversary) -> None:
        constraints = {"score_distance": SCORE_DISTANCE, **PLAUSIBLE}
        validate_parameter_constraints(constraints, self._asdict(), caller_name="invariance_regularizer")
        if self.of_rows and adversary != "ascent":
            raise ValueError(
                f'adversary={adversary!r} knows no bounds of single rows: set adversary="ascent", with feature_radius or '
                "gap_radius for a box, or leave out feature_range, one_hot_groups and fixed_features."
            )

    def rows(self, X, queries) -> Rows:
        """The rows of X, query after query, and where each may go."""
        names = getattr(X, "columns", None)
        X = check_array(X, dtype=np.float64, input_name="X")
        plausible: Any = read_plausible(self, X.shape[1], names, lambda: [X])
        items = X[queries.order]
        return Rows(items, queries.offsets, plausible.around(items), self.score_distance == "centered")


class _Shape(NamedTuple):
    """What a closed form asks of the data."""

    sizes: np.ndarray
    weights: np.ndarray
    n_features: int


def _weights_and_metric(estimator_or_weights, metric):
    if isinstance(estimator_or_weights, BaseEstimator):
        estimator = estimator_or_weights
        if isinstance(estimator, Pipeline):
            raise ValueError(
                "The regulariser is measured in the features that the ranker sees: pass the pipeline's last step, and X as "
                "transformed by the others (pipeline[:-1].transform(X), with qid=qid where one of them asks for it)."
            )
        check_is_fitted(estimator)
        if not hasattr(estimator, "coef_"):
            raise ValueError(
                f"{type(estimator).__name__} has no coef_: the regulariser in closed form needs linear scores."
            )
        weights = np.ravel(estimator.coef_)
        metric = getattr(estimator, "metric_", None) if metric is None else metric
    else:
        weights = check_array(estimator_or_weights, ensure_2d=False, dtype=np.float64, input_name="weights")
        if weights.size != max(weights.shape):
            raise ValueError(f"weights has shape {weights.shape}: give one weight per feature.")
        weights = weights.ravel()
    if metric is None:
        raise ValueError("metric is missing: pass a fitted SensitiveSubspaceMetric.")
    metric = fitted_metric(metric)
    check_same_features(metric, getattr(estimator_or_weights, "feature_names_in_", None))
    return np.ascontiguousarray(weights, dtype=np.float64), metric
