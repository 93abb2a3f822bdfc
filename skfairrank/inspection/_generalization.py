"""Theorem 1 of Bower et al. (2021) in numbers, for linear scores."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.special import erfc
from sklearn.utils import Bunch

from skfairrank.adversaries import ExactBudget
from skfairrank.fair_metrics._distances import fair_features
from skfairrank.inspection._confidence import check_confidence
from skfairrank.inspection._invariance import Items, invariance_regularizer

# The integral of sqrt(ln(5 / u)) over u from 0 to 1: the entropy integral of a ball, in units of sqrt(d) and of its radius.
_ENTROPY = float(np.sqrt(np.log(5.0)) + 2.5 * np.sqrt(np.pi) * erfc(np.sqrt(np.log(5.0))))


def generalization_bound(
    weights_or_ranker,
    X,
    *,
    qid,
    metric=None,
    adversary=None,
    confidence=0.95,
    norm=None,
    feature_diameter=None,
    fair_diameter=None,
    metric_error=0.0,
) -> Bunch:
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
    ``5000 d`` queries; the result says so. For new queries see `fairness_certificate`.

    Parameters
    ----------
    weights_or_ranker : array-like of shape (n_features,), or fitted ranker with `coef_`
    X : array-like, shape (n_rows, n_features)
        As the ranker sees them.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    metric : fitted fair metric, optional
        Default: the ranker's own `metric_`.
    adversary : ExactBudget, optional
        Its `epsilon` and `subspace_radius`; default ``ExactBudget()``.
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
    bound : Bunch
        ``regularizer`` (R on these queries); ``complexity_term``, ``confidence_term``, ``metric_term`` and their sum ``theorem``;
        ``is_vacuous``, whether the sum is at least ``score_diameter`` (:math:`D_Y`), by which two values cannot differ in any
        case; ``queries_needed``, from which number on it is not (infinite where `metric_error` >= epsilon);
        ``entropy_integral`` (J), ``fair_diameter``, ``feature_diameter``, ``n_queries``.

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
    >>> found.is_vacuous, round(found.regularizer, 6)
    (True, 0.2)
    """
    t, adversary = 1.0 - check_confidence(confidence), ExactBudget() if adversary is None else adversary
    if not isinstance(adversary, ExactBudget):
        raise ValueError(f"adversary={adversary!r}: the theorem is of one transport budget, ExactBudget(...).")
    items = Items.of(weights_or_ranker, X, qid, metric)
    if not items.score.is_linear:
        raise ValueError("The theorem is computed for linear scores: give weights, or a ranker with coef_.")
    regularizer = invariance_regularizer(weights_or_ranker, X, qid=qid, metric=metric, adversary=adversary)
    n, m, eps = len(items.sizes), int(items.sizes.max()), float(adversary.epsilon)
    length = float(np.linalg.norm(items.theta))
    B = length if norm is None else norm
    D = _diameter(items.X) if feature_diameter is None else feature_diameter
    D_X = _diameter(fair_features(items.X, items.X, items.metric)[0]) ** 2 if fair_diameter is None else fair_diameter
    numbers = {"norm": B, "feature_diameter": D, "fair_diameter": D_X, "epsilon": eps, "metric_error": metric_error}
    for name, value in numbers.items():
        least_is_allowed = name == "metric_error"
        if not (isinstance(value, Real) and (0 < float(value) < np.inf or (least_is_allowed and value == 0))):
            raise ValueError(f"{name}={value!r}: give a finite number {'>=' if least_is_allowed else '>'} 0.")
    if B < length * (1.0 - 1e-12):
        raise ValueError(f"norm={B:g}: the weights have norm {length:g} and are not in the class.")
    D_Y = 0.5 * m * (B * D) ** 2
    J = np.sqrt(items.n_features) * D_Y * _ENTROPY
    spread, chance = 48.0 * (J + D_X * D_Y / eps), D_Y * np.sqrt(np.log(2.0 / t) / 2.0)
    from_metric = D_Y * metric_error / eps
    theorem = (spread + chance) / np.sqrt(n) + from_metric
    return Bunch(
        regularizer=regularizer,
        complexity_term=float(spread / np.sqrt(n)),
        confidence_term=float(chance / np.sqrt(n)),
        metric_term=float(from_metric),
        theorem=float(theorem),
        is_vacuous=bool(theorem >= D_Y),
        queries_needed=float(((spread + chance) / (D_Y - from_metric)) ** 2) if from_metric < D_Y else np.inf,
        entropy_integral=float(J),
        score_diameter=float(D_Y),
        fair_diameter=float(D_X),
        feature_diameter=float(D),
        n_queries=n,
    )


def _diameter(rows: np.ndarray) -> float:
    """At least the diameter of the rows, and at most twice that."""
    return 2.0 * float(np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).max()))
