"""What is true of new queries: an upper bound for the mean of values in [0, 1], and Theorem 1 of Bower et al. (2021)."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.signal import fftconvolve
from scipy.special import erfc
from scipy.stats import beta, norm
from sklearn.utils import Bunch

from skfairrank._checks import as_floats
from skfairrank._kernels.betting import log_wealth
from skfairrank._queries import cluster_codes
from skfairrank.adversaries import ExactBudget
from skfairrank.fair_metrics._distances import fair_features
from skfairrank.inspection._invariance import Items, invariance_regularizer

# Of the risk 1 - confidence the binomial bound gets half, and the bets the other half.
_BINOMIAL = 0.5
# How fine the means are at which bets are made, relative to what the bound exceeds the mean by.
_STEP = 0.02
# Up to so many coefficients of polynomials are multiplied directly, and more of them by Fourier transforms.
_DIRECT = 256


def upper_confidence_bound(values, confidence=0.95, *, weight=None, clusters=None):
    r"""An upper bound for the mean from which values in [0, 1] were drawn; it fails at most in a share 1 - confidence of samples.

    It holds for every distribution on [0, 1] and every sample size, of values that were drawn independently of each other. It is
    the largest m that is not rejected, where m is rejected if

    .. math::

        P\{\mathrm{CP}(K) \le m\} + \frac\alpha2 \prod_i \left(1 + \lambda_i (m - x_i)\right) \ge 1, \qquad
        \alpha = 1 - \mathrm{confidence} .

    The product is the wealth of a gambler who bets that the mean is below m (Waudby-Smith and Ramdas 2024). Each bet knows the
    values before it alone, so that the product has expectation at most 1 where the mean is m or more; it is what would bring
    :math:`2 / \alpha` in the end if further values vary as those before (after Voracek and Orabona 2025). K counts ones after
    each value has been rounded at random, up with probability :math:`x_i`; its distribution is computed, not drawn. CP(K) is the
    exact binomial bound (Clopper and Pearson 1934) of K ones with risk :math:`\alpha / 2`, and too small at most with that
    probability. So the left side has expectation at most :math:`\alpha`, and reaches 1 with no larger probability (Markov).

    With weights Hoeffding's bound takes the place of the binomial one, so that the bound is never wider; the bets get the part of
    the risk that it certainly leaves. Bets are made in an order of the values that is drawn once, with a fixed seed: in another
    order what lies above the mean may change by a tenth. It is valid in any order that is chosen without looking at the values.
    The proof of the bets asks for draws of one distribution, which does not depend on the weight. Where means go with the weights
    there are only simulations, in which the bound failed less often than it may.

    Parameters
    ----------
    values : array-like, shape (n,)
        Draws, each in [0, 1].
    confidence : float, default=0.95
        In (0, 1).
    weight : array-like, shape (n,), optional
        What each value counts in the mean, >= 0, known before the values: it bounds their weighted mean.
    clusters : array-like, shape (n,), optional
        The cluster of each value, such as the firm whose opening a query is. Values of a cluster may depend on each other, and
        what is independent are the clusters, each with the (weighted) mean of its values and the sum of their weights. The mean
        that is bounded stays that over values. Clusters of one value each give the bound without them.

    Returns
    -------
    bound : float
        In (0, 1].

    Raises
    ------
    ValueError
        If there is no value, a value lies outside of [0, 1], or `confidence`, `weight` or `clusters` are not as above.

    References
    ----------
    I. Waudby-Smith and A. Ramdas. Estimating means of bounded random variables by betting. JRSS B, 2024.

    V. Voracek and F. Orabona. STaR-Bets: sequential target-recalculating bets for tighter confidence intervals. 2025.

    C. Clopper and E. Pearson. The use of confidence or fiducial limits illustrated in the case of the binomial. Biometrika, 1934.

    W. Hoeffding. Probability inequalities for sums of bounded random variables. JASA, 1963.

    I. Pinelis. On normal domination of (super)martingales. Electronic Journal of Probability, 2006.

    Examples
    --------
    >>> from skfairrank.inspection import upper_confidence_bound
    >>> round(upper_confidence_bound([0.0] * 100), 4)  # the binomial bound is 0.0295
    0.0362
    >>> round(upper_confidence_bound([0.1, 0.2] * 50), 2)
    0.19
    >>> # five, of 20 values each
    >>> round(upper_confidence_bound([0.1, 0.2] * 50, clusters=[0, 1, 2, 3, 4] * 20), 2)
    0.58
    """
    values = _check_values(values)
    risk, weight = 1.0 - check_confidence(confidence), _check_weight(weight, len(values))
    if clusters is not None:
        values, weight = _of_clusters(values, weight, cluster_codes(clusters, len(values), "values"))
    if weight is not None:
        values, weight = values[weight > 0], weight[weight > 0]
        weight = None if (weight == weight[0]).all() else weight / weight.max()
    other = _Rounded(values, _BINOMIAL * risk) if weight is None else _Hoeffding(values, weight, risk)
    stakes = np.ones(len(values)) if weight is None else weight / np.sqrt(np.mean(weight**2))
    order = np.random.default_rng(0).permutation(len(values))  # a trend in the given order would mislead the bets
    values, stakes = values[order], stakes[order]
    # Means at which bets are made, from the largest; all between two of them are judged by the bets against the lower one.
    angle = _STEP / np.sqrt(stakes.sum() ** 2 / np.sum(stakes**2))
    for k in range(int(min(np.arcsin(np.sqrt(other.bound)), 0.5 * np.pi - 1e-6) / angle), -1, -1):
        low, high = np.sin(np.minimum([k * angle, (k + 1) * angle], 0.5 * np.pi)) ** 2
        share = other.share_left(high) * risk
        wealth = share * np.exp(log_wealth(low, values, stakes, np.log(1.0 / share))) if low > 0 else 0.0
        smallest = other.smallest_rejected(1.0 - wealth, high)
        if smallest > low:
            # At a low confidence a bound may be below the mean that was seen, which nobody would believe.
            return float(max(min(smallest, high, other.bound), np.average(values, weights=stakes)))
    return 0.0


def _of_clusters(values, weight, code) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the sum of the weights of each cluster that has any."""
    weight = np.ones(len(values)) if weight is None else weight
    total = np.bincount(code, weight)
    mean = np.bincount(code, weight * values) / np.where(total > 0, total, 1.0)
    return np.where(
        np.bincount(code) == 1, values[np.unique(code, return_index=True)[1]], np.clip(mean, 0.0, 1.0)
    ), total


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


class _Rounded:
    """The binomial bound, with some risk, of values that are rounded at random to 0 or 1, each up with its own probability."""

    def __init__(self, values, risk):
        n, n_ones = len(values), int(np.sum(values == 1.0))
        between = np.sort(values[(values > 0.0) & (values < 1.0)])
        probability = np.clip(_number_rounded_up(between), 0.0, None)
        ones = n_ones + np.arange(len(probability))
        self.bounds = np.where(ones < n, beta.ppf(1.0 - risk, ones + 1.0, np.maximum(n - ones, 1)), 1.0)
        self.cumulated = np.minimum(np.cumsum(probability), 1.0)
        self.bound = self.smallest_rejected(1.0)

    def smallest_rejected(self, share: float, m: float = 1.0) -> float:
        """The smallest mean, of those up to m, that is the bound or more with a probability of `share`."""
        k = int(np.searchsorted(self.cumulated, share - 1e-12))
        return 0.0 if share <= 0.0 else float(self.bounds[min(k, len(self.bounds) - 1)])

    def share_left(self, m: float) -> float:
        return 1.0 - _BINOMIAL


class _Hoeffding:
    """Hoeffding's bound, and the share of the risk that it certainly leaves for bets."""

    def __init__(self, values, weight, risk):
        self.risk, self.total, self.sum = risk, float(weight.sum()), float(weight @ values)
        self.scale = 0.5 * np.sqrt(np.sum(weight**2))  # the largest standard deviation that the sum can have
        self.limit = np.sqrt(2.0 * np.log(1.0 / risk))
        self.bound = min(1.0, self._mean(self.limit))
        # A sum that falls short by x * scale has E (x - t)_+^5 <= E (Z - t)_+^5, with Z normal (Pinelis 2006). The t that
        # leaves most of the risk:
        bounds = self.limit - 8.0, self.limit - 0.1
        found = minimize_scalar(lambda t: _fifth_moment(t) / (self.limit - t) ** 5, bounds=bounds)
        self.start, self.by_variance = found.x, found.fun

    def _mean(self, x: float) -> float:
        return float((self.sum + x * self.scale) / self.total)

    def _by_mean(self, m: float) -> float:
        """The probability that Hoeffding's bound is below a mean m is at most this (Chernoff, weights of at most 1)."""
        expected, slack = m * self.total, self.limit * self.scale
        left = expected - slack
        return float(np.exp(-(slack + left * np.log(left / expected)))) if left > 0 else 0.0

    def smallest_rejected(self, share: float, m: float) -> float:
        """The smallest mean, of those up to m, at which what does not go to bets is at least `share`."""
        if share <= 1e-12:
            return 0.0
        is_by_mean = self._by_mean(m) < self.by_variance
        return self.bound if is_by_mean else self._mean(self.start + (self.limit - self.start) * share**0.2)

    def share_left(self, m: float) -> float:
        return 1.0 - min(self.by_variance, self._by_mean(m)) / self.risk


def _fifth_moment(t: float) -> float:
    """E (Z - t)_+^5 for a normal Z."""
    lower, moment = float(norm.sf(t)), float(norm.pdf(t) - t * norm.sf(t))
    for k in range(2, 6):
        lower, moment = moment, (k - 1) * lower - t * moment
    return moment


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
    >>> found = generalization_bound(
    ...     [1.0, 0.1], X, qid=np.repeat(np.arange(400), 10), metric=metric
    ... )
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
