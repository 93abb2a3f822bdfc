"""What is true of new queries: an upper bound for the mean of values in [0, 1], and Theorem 1 of Bower et al. (2021)."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import erfc
from scipy.stats import beta
from sklearn.utils import Bunch

from skfairrank._checks import as_floats
from skfairrank.adversaries import ExactBudget
from skfairrank.fair_metrics._distances import fair_features
from skfairrank.inspection._invariance import Items, invariance_regularizer

# How the risk 1 - confidence is shared: the binomial bound gets half of it, and of the bets' half the largest bet .6.
_BINOMIAL, _BOLDEST = 0.5, 0.6
# Up to so many coefficients of polynomials are multiplied directly, and more of them by Fourier transforms.
_DIRECT = 256


def upper_confidence_bound(values, confidence=0.95, *, weight=None):
    r"""An upper bound for the mean from which values in [0, 1] were drawn; it fails at most in a share 1 - confidence of samples.

    It holds for every distribution on [0, 1] and every sample size, and depends neither on the order of the values nor on random
    numbers. It is the smallest m with

    .. math::

        P\{\mathrm{CP}(K) \le m\} + \alpha \sum_k w_k \prod_i \left(1 + \theta_k \frac{m - x_i}{1 - m}\right) \ge 1,
        \qquad \alpha = 1 - \mathrm{confidence},\quad \sum_k w_k = \tfrac12 .

    The products are the wealth of a gambler who bets that the mean is below m (Waudby-Smith and Ramdas 2024), each with a bet
    that is fixed beforehand: :math:`\theta_k = 1, \frac12, \frac14, \dots`, the first with weight .3. Where the mean is m or
    more, each product has expectation at most 1. K counts ones after each value has been rounded at random, up with probability
    :math:`x_i`; its distribution is computed, not drawn. CP(K) is the exact binomial bound (Clopper and Pearson 1934) of K ones
    with risk :math:`\alpha / 2`. A rounded value is 1 with probability equal to the mean, whatever the distribution, so that the
    first term has expectation at most :math:`\alpha / 2`. So the expectation of the left side is at most :math:`\alpha`, and by
    Markov's inequality it reaches 1 with no larger probability. It grows with m, so that the smallest m is a bound.

    Of values that are all 0 or 1 the bound is at most the exact binomial one with risk :math:`\alpha / 2`: what lies above the
    mean is about 1.2 times that of the binomial bound with risk :math:`\alpha`. Where values vary less, the bets take over.

    Parameters
    ----------
    values : array-like, shape (n,)
        Independent draws, each in [0, 1].
    confidence : float, default=0.95
        In (0, 1).
    weight : array-like, shape (n,), optional
        What each value counts in the mean, >= 0. It bounds the weighted mean of the expectations, given weights that were
        known before the values. Where the weights differ, the bound is never wider than Hoeffding's for a weighted mean: where
        that is hardly ever too low, because the mean is small, the bets get the risk that it leaves.

    Returns
    -------
    bound : float
        In (0, 1].

    Raises
    ------
    ValueError
        If there is no value, a value lies outside of [0, 1], or `confidence` or `weight` is out of range.

    References
    ----------
    I. Waudby-Smith and A. Ramdas. Estimating means of bounded random variables by betting. JRSS B, 2024.

    W. Hoeffding. Probability inequalities for sums of bounded random variables. JASA, 1963.

    C. Clopper and E. Pearson. The use of confidence or fiducial limits illustrated in the case of the binomial. Biometrika, 1934.

    Examples
    --------
    >>> from skfairrank.inspection import upper_confidence_bound
    >>> round(upper_confidence_bound([0.0] * 100), 4)  # the binomial bound is 0.0295
    0.0362
    >>> round(upper_confidence_bound([0.1, 0.2] * 50), 4)
    0.185
    """
    values = _check_values(values)
    risk, weight = 1.0 - check_confidence(confidence), _check_weight(weight, len(values))
    if weight is not None:
        values, weight = values[weight > 0], weight[weight > 0]
        weight = None if (weight == weight[0]).all() else weight / weight.max()
    bets = _Bets(values, weight)
    if weight is not None:
        return _weighted_bound(float(weight @ values), weight, risk, bets)
    rounded = _Rounded(values, _BINOMIAL * risk)
    return _smallest(lambda m: rounded.share_below(m) + (1.0 - _BINOMIAL) * risk * bets.wealth(m, risk) >= 1.0)


def _smallest(is_rejected) -> float:
    """The smallest mean in (0, 1) that is rejected, where all above it are; 1 if there is none."""
    low, high = 0.0, np.nextafter(1.0, 0.0)
    if not is_rejected(high):
        return 1.0
    while high - low > 1e-10 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_rejected(middle) else (middle, high)
    return float(high)


def _weighted_bound(total: float, weight, risk: float, bets: _Bets) -> float:
    """Hoeffding's bound; and the bets' with a share of the risk, of means of which Hoeffding's takes no more than the rest.

    Weights of maximum 1 make the weighted sum at most as likely to be small as a Poisson variable (Chernoff): a mean m is
    rejected by Hoeffding with probability at most that of the sum being less than its expectation m * sum(w) by `slack`.
    """
    slack = np.sqrt(0.5 * np.log(1.0 / risk) * np.sum(weight**2))
    bound = min(1.0, (total + slack) / weight.sum())
    for share in (0.2, 0.4, 0.6, 0.8, 0.95):
        expected, left = bound * weight.sum(), bound * weight.sum() - slack
        taken = np.exp(-(slack + left * np.log(left / expected))) if left > 0 else 0.0
        if taken <= (1.0 - share) * risk:
            bound = min(bound, _smallest(lambda m, share=share: share * risk * bets.wealth(m, risk) >= 1.0))
    return float(bound)


def check_confidence(confidence) -> float:
    """A number in (0, 1)."""
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0.0 < float(confidence) < 1.0:
        raise ValueError(f"confidence={confidence!r}: give a number between 0 and 1, such as 0.95.")
    return float(confidence)


def _check_values(values) -> np.ndarray:
    values = as_floats(values, "values", "value", "leave out queries in which the statistic is undefined.")
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"values has shape {values.shape}: give a one-dimensional array of at least one value.")
    if values.min() < 0.0 or values.max() > 1.0:
        raise ValueError(
            f"values range from {values.min():g} to {values.max():g}: the bound needs values in [0, 1]. Divide them by the "
            "largest value that can occur (not the largest that did)."
        )
    return values


def _check_weight(weight, n: int) -> np.ndarray | None:
    if weight is None:
        return None
    weight = as_floats(weight, "weight", "weight", "weights must be finite.")
    if weight.shape != (n,):
        raise ValueError(f"weight has shape {weight.shape} for {n} values: give one number for each value.")
    if weight.min() < 0 or not weight.max() > 0:
        raise ValueError("weight must be >= 0, and not 0 for all values.")
    return weight


class _Bets:
    """The wealth of gamblers who bet that a mean is below m, by bets that are fixed beforehand.

    Bets are 1, 1/2, 1/4, ... down to what is best for n values that vary as much as they can, times the values' weights.
    """

    def __init__(self, values, weight):
        # Sorted distinct values, so that the given order has no effect on the last bits.
        pairs = np.column_stack([values, np.ones(len(values)) if weight is None else weight])
        pairs, self.counts = np.unique(pairs, axis=0, return_counts=True)
        self.values, self.stakes = pairs.T

    def wealth(self, m: float, risk: float) -> float:
        """The mean over the gamblers, of whom the boldest counts most."""
        smallest = min(0.5, np.sqrt(8.0 * np.log(1.0 / risk) / self.counts.sum()))
        bets = 0.5 ** np.arange(int(np.ceil(np.log2(1.0 / smallest))) + 1)
        shares = np.r_[_BOLDEST, np.full(len(bets) - 1, (1.0 - _BOLDEST) / (len(bets) - 1))]
        with np.errstate(divide="ignore"):  # wealth that is lost
            log_wealth = np.log1p(bets[:, None] * self.stakes * (m - self.values) / (1.0 - m)) @ self.counts
        return float(shares @ np.exp(np.minimum(log_wealth, 700.0)))


class _Rounded:
    """The binomial bound, with some risk, of values that are rounded at random to 0 or 1, each up with its own probability."""

    def __init__(self, values, risk):
        n, n_ones = len(values), int(np.sum(values == 1.0))
        between = np.sort(values[(values > 0.0) & (values < 1.0)])
        probability = np.clip(_number_rounded_up(between), 0.0, None)
        ones = n_ones + np.arange(len(probability))
        # All rounded to one: the bound is 1, and no m is above it.
        self.bounds = np.where(ones < n, beta.ppf(1.0 - risk, ones + 1.0, np.maximum(n - ones, 1)), np.inf)
        self.cumulated = np.minimum(np.r_[0.0, np.cumsum(probability)], 1.0)
        if len(probability) == 1:
            self.cumulated[-1] = 1.0

    def share_below(self, m: float) -> float:
        """Probability that the binomial bound is at most m."""
        return float(self.cumulated[np.searchsorted(self.bounds, m, side="right")])


def _number_rounded_up(values) -> np.ndarray:
    """Probabilities of 0, 1, ..., n values rounded up: the coefficients of prod_i (1 - x_i + x_i z)."""
    if len(values) <= 1:
        return np.r_[1.0 - values, values] if len(values) else np.ones(1)
    middle = len(values) // 2
    left, right = _number_rounded_up(values[:middle]), _number_rounded_up(values[middle:])
    return np.convolve(left, right) if len(right) <= _DIRECT else fftconvolve(left, right)


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
