"""Theorem 1 of Bower et al. (2021) with each of its terms, for linear scores, beside a bound that needs no entropy."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import erfc
from sklearn.utils import check_array

from skfairrank.adversaries import ExactBudget
from skfairrank.inspection._confidence import check_confidence, upper_confidence_bound
from skfairrank.inspection._invariance import Items

__all__ = ["GeneralizationBound", "generalization_bound"]

# The integral of sqrt(ln(5 / u)) over u from 0 to 1: the entropy integral of a ball, in units of sqrt(d) and of its radius.
_ENTROPY = float(np.sqrt(np.log(5.0)) + 2.5 * np.sqrt(np.pi) * erfc(np.sqrt(np.log(5.0))))


@dataclass(frozen=True, repr=False)
class GeneralizationBound:
    """What `generalization_bound` found; all but the diameters of features in squared units of scores, per query.

    Attributes
    ----------
    regularizer : float
        R on these queries, `invariance_regularizer` with adversary="exact".
    complexity_term, confidence_term, metric_term : float
        The three terms of the theorem.
    theorem : float
        Their sum: with the stated confidence R on these queries and on new ones differ by no more, for all weights of the class.
    is_vacuous : bool
        Whether the sum is at least `score_diameter`, by which they cannot differ in any case.
    queries_needed : float
        From so many queries on it is not; infinite where `metric_error` >= epsilon.
    distribution_free : float
        With the stated confidence R on new queries is at most this, for these weights.
    entropy_integral : float
        J, an upper bound.
    score_diameter, fair_diameter, feature_diameter : float
        :math:`D_Y`; :math:`D_X`, a squared distance in the fair metric; and the Euclidean diameter of the features.
    n_queries : int
    confidence : float
    """

    regularizer: float
    complexity_term: float
    confidence_term: float
    metric_term: float
    theorem: float
    is_vacuous: bool
    queries_needed: float
    distribution_free: float
    entropy_integral: float
    score_diameter: float
    fair_diameter: float
    feature_diameter: float
    n_queries: int
    confidence: float

    def __repr__(self) -> str:
        if not self.is_vacuous:
            verdict = "it says something"
        elif np.isfinite(self.queries_needed):
            verdict = (
                f"it is vacuous, since no two values can differ by more than {self.score_diameter:.4g}: it begins to say "
                f"something at {self.queries_needed:.3g} queries"
            )
        else:
            verdict = "it is vacuous for any number of queries, since the metric's error is not below epsilon"
        terms = (
            f"{self.complexity_term:.4g} (complexity) + {self.confidence_term:.4g} (confidence) + "
            f"{self.metric_term:.4g} (metric)"
        )
        return (
            f"<GeneralizationBound: R is {self.regularizer:.4g} on {self.n_queries} queries. Theorem 1: on new queries it "
            f"differs by at most {self.theorem:.4g} = {terms}; {verdict}. For these weights alone, with "
            f"{100 * self.confidence:.6g}% confidence, R is at most {self.distribution_free:.4g} on new queries, whatever the "
            "distribution.>"
        )


def generalization_bound(
    estimator_or_weights,
    X,
    *,
    qid,
    metric=None,
    epsilon=0.01,
    subspace_radius=1.0,
    confidence=0.95,
    norm=None,
    feature_diameter=None,
    fair_diameter=None,
    metric_error=0.0,
) -> GeneralizationBound:
    r"""How far the invariance regulariser on new queries may be from that on n queries: Theorem 1 of the paper, in numbers.

    With probability at least 1 - t, for all scores of a class at once,

    .. math:: |\hat R - R| \le \frac{48 (J + D_X D_Y / \varepsilon)}{\sqrt n} + D_Y \sqrt{\frac{\log(2 / t)}{2 n}}
        + \frac{D_Y \eta_d}{\varepsilon} .

    The class: linear scores w.x with :math:`\|w\| \le B`, d features whose Euclidean diameter is D, queries of at most m items
    (the largest here). Then :math:`D_Y = \frac m2 B^2 D^2` bounds :math:`d_Y = \frac12 \|h - h'\|^2`, which changes by at most
    :math:`m B D^2 \|w - v\|` from w to v. A ball of radius B has a cover of :math:`(1 + 2 B / \delta)^d` points, and the zero
    score alone covers to :math:`D_Y`, so that

    .. math:: J \le \sqrt d\, D_Y \int_0^1 \sqrt{\ln(5 / u)}\, du
        = \sqrt d\, D_Y \left(\sqrt{\ln 5} + \tfrac52 \sqrt\pi \operatorname{erfc} \sqrt{\ln 5}\right) .

    R lies between 0 and :math:`D_Y`. So the theorem is vacuous where its right side is no less, which it is below about
    ``5000 d`` queries; the result says so.

    Beside it stands a bound for these weights alone, if the queries were not used to find them. By duality
    :math:`R \le \lambda \varepsilon + \mathbb{E}\, r_\lambda(q)` for each :math:`\lambda`, with
    :math:`r_\lambda(q) = \max_u \frac{n_q}{2} (a + b u)^2 - \lambda u^2` (docs/exact.md). With the :math:`\lambda` that is best
    for queries of m items, the mean of :math:`r_\lambda` is bounded by `upper_confidence_bound`. Of queries of one size it is R
    itself, since the worst case of linear scores depends on nothing else.

    Parameters
    ----------
    estimator_or_weights : fitted linear ranker, or array-like of shape (n_features,)
    X : array-like, shape (n_rows, n_features)
        As the ranker sees them.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    metric : fitted fair metric, optional
        Default: the ranker's own `metric_`.
    epsilon, subspace_radius : float
        As for `invariance_regularizer` with adversary="exact".
    confidence : float, default=0.95
        1 - t.
    norm : float, optional
        B. Default: the norm of the weights, as though the class had been chosen so.
    feature_diameter, fair_diameter : float, optional
        D, and :math:`D_X`, the largest squared distance in the fair metric. The theorem means those of the space; the default is
        an upper bound of those of the rows, twice the largest distance from their mean, squared for :math:`D_X`.
    metric_error : float, default=0.0
        :math:`\eta_d`: how far the metric may be from the true one, in the units of :math:`D_X`.

    Returns
    -------
    bound : GeneralizationBound

    Raises
    ------
    ValueError
        If scores are not linear, a number is out of range, or features do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank import SensitiveSubspaceMetric
    >>> from skfairrank.inspection import generalization_bound
    >>> X = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> metric = SensitiveSubspaceMetric(directions=[[0, 1]]).fit(X)
    >>> found = generalization_bound([1.0, 0.1], X, qid=np.repeat(np.arange(400), 10), metric=metric)
    >>> found.is_vacuous, round(found.regularizer, 6), round(found.distribution_free, 6)
    (True, 0.2, 0.2)
    """
    confidence, t = check_confidence(confidence), 1.0 - check_confidence(confidence)
    given = {"norm": norm, "feature_diameter": feature_diameter, "fair_diameter": fair_diameter}
    for name, value in {**given, "epsilon": epsilon}.items():
        if value is not None and not (isinstance(value, Real) and 0 < float(value) < np.inf):
            raise ValueError(f"{name}={value!r}: give a finite number > 0.")
    if not (isinstance(metric_error, Real) and 0 <= float(metric_error) < np.inf):
        raise ValueError(f"metric_error={metric_error!r}: give a finite number >= 0.")
    items = Items.of(estimator_or_weights, X, qid, metric)
    budget, weights = ExactBudget(epsilon, subspace_radius).prepare(items, items.score, items.metric), items.theta
    X = check_array(X, dtype=np.float64)
    n, m, epsilon = len(items.sizes), int(items.sizes.max()), float(epsilon)
    B = float(np.linalg.norm(weights)) if norm is None else float(norm)
    if B < np.linalg.norm(weights) * (1.0 - 1e-12):
        raise ValueError(f"norm={B:g}: the weights have norm {np.linalg.norm(weights):g} and are not in the class.")
    D = _diameter(X) if feature_diameter is None else float(feature_diameter)
    D_X = _diameter(_fair(budget, X)) ** 2 if fair_diameter is None else float(fair_diameter)
    D_Y = 0.5 * m * (B * D) ** 2
    J = np.sqrt(X.shape[1]) * D_Y * _ENTROPY
    spread = 48.0 * (J + D_X * D_Y / epsilon)
    chance, from_metric = D_Y * np.sqrt(np.log(2.0 / t) / 2.0), D_Y * float(metric_error) / epsilon
    theorem = float((spread + chance) / np.sqrt(n) + from_metric)
    left = D_Y - from_metric
    return GeneralizationBound(
        regularizer=float(budget.measure(weights)[0]),
        complexity_term=float(spread / np.sqrt(n)),
        confidence_term=float(chance / np.sqrt(n)),
        metric_term=float(from_metric),
        theorem=theorem,
        is_vacuous=bool(theorem >= D_Y),
        queries_needed=float(((spread + chance) / left) ** 2) if left > 0 else np.inf,
        distribution_free=_for_these_weights(budget, weights, items.sizes, confidence),
        entropy_integral=float(J),
        score_diameter=float(D_Y),
        fair_diameter=float(D_X),
        feature_diameter=float(D),
        n_queries=n,
        confidence=confidence,
    )


def _diameter(rows: np.ndarray) -> float:
    """At least the diameter of the rows, and at most twice that."""
    return 2.0 * float(np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).max()))


def _fair(budget, X):
    """Rows in the coordinates z of the fair metric."""
    return X - (X @ budget.basis.T * budget.shrink) @ budget.basis


def _for_these_weights(budget, weights, sizes, confidence) -> float:
    """lambda epsilon + an upper bound for E r_lambda(q), with the lambda that is best for queries of the largest size."""
    a, b = budget.norms(weights)
    n, m, root = sizes.astype(np.float64), float(sizes.max()), float(np.sqrt(budget.epsilon))
    # The best u for m items is sqrt(epsilon), where 2 lambda / m = b (a + b u) / u; written with lambda so that a = 0 will do.
    lambda_ = 0.5 * m * b * (a + b * root) / root
    slack = 2.0 * lambda_ - n * b**2  # (m - n) b^2 + m a b / u
    worth = np.divide(lambda_ * n * a**2, slack, out=0.5 * n * a**2, where=slack > 0)
    if not worth.max() > 0:
        return float(lambda_ * budget.epsilon)
    return float(
        lambda_ * budget.epsilon
        + worth.max() * upper_confidence_bound(np.minimum(worth / worth.max(), 1.0), confidence)
    )
