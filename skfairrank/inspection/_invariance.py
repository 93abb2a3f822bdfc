"""The invariance regulariser of a ranker: in closed form, or by an attack within the same bounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from skfairrank._queries import Queries
from skfairrank._random import as_generator
from skfairrank.adversaries import Ascent, ClosedForm, make_adversary
from skfairrank.adversaries._exact import ExactAdversary
from skfairrank.fair_metrics._linear import check_same_features, fitted_metric
from skfairrank.scores import LinearScore

METHODS = ("auto", "ascent")
_N_ATTACKS = 60  # of an `Ascent`, each with another price of the budget


def invariance_regularizer(
    weights_or_ranker, X, *, qid, metric=None, adversary="exact", method="auto", random_state=None
) -> float:
    r"""How unfair scores are: the largest mean :math:`\frac12 \|h(q) - h(q')\|^2` over hypothetical queries q'.

    Items of q are moved one by one, x' = x + s + e, and stay paired with themselves. Which moves there are says the adversary.
    For linear scores `ExactBudget`, `ExactBox` and `ExactGaps` have the value in closed form (docs/exact.md). An attack works for
    scores of every kind and finds a lower bound of the value, never a bound from above: a small value that an attack finds proves
    nothing.

    Parameters
    ----------
    weights_or_ranker : array-like of shape (n_features,), or fitted ranker with `coef_` or a score of ours
    X : array-like, shape (n_rows, n_features)
        For a closed form only the sizes of its queries and its number of features count.
    qid : array-like, shape (n_rows,)
        Query of each row, in any order.
    metric : fitted fair metric, optional
        Default: the ranker's own `metric_`.
    adversary : {"exact", "exact_box", "gaps", "ascent", "gaps_ascent"} or Adversary, default="exact"
        As for `skfairrank.SenSTIRRanker`. Of `Ascent` and `GapsAscent` the mean d_Q is at most `epsilon`, and "train" as
        `feature_range` is the range of X.
    method : {"auto", "ascent"}, default="auto"
        "auto": in closed form where there is one. "ascent": the lower bound that an attack finds within the same bounds.
    random_state : None, int, RandomState or Generator
        For the starts of an attack.

    Returns
    -------
    regularizer : float
        In squared units of scores, summed over the items of a query, averaged over queries.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank import SensitiveSubspaceMetric
    >>> from skfairrank.adversaries import ExactBudget
    >>> from skfairrank.inspection import invariance_regularizer
    >>> X, qid = np.zeros((4, 2)), [0, 0, 0, 0]
    >>> metric = SensitiveSubspaceMetric(directions=[[0, 1]]).fit(X)
    >>> adversary = ExactBudget(epsilon=0.25, subspace_radius=1)
    >>> R = invariance_regularizer([3, 2], X, qid=qid, metric=metric, adversary=adversary)
    >>> round(R, 6)  # 4 / 2 * (1 * 2 + .5 * 3) ** 2
    24.5
    """
    adversary, rng = make_adversary(adversary), as_generator(random_state)
    if method not in METHODS:
        raise ValueError(f"method={method!r}: choose one of {list(METHODS)}.")
    items = Items.of(weights_or_ranker, X, qid, metric)
    if isinstance(adversary, ExactAdversary):
        bounds = adversary.bounds(items, items.metric)
        if method == "auto" and items.score.is_linear:
            return float(bounds.measure(items.theta)[0])
        return bounds.largest_regularizer(items.score, items.theta, items.X, items.offsets, rng)
    if not isinstance(adversary, Ascent):
        raise ValueError(
            f"{type(adversary).__name__} names no bounds within which items move: give an adversary such as ExactBox() or "
            "Ascent(), or measure hypothetical rows by fairness_certificate(..., statistic='score_change')."
        )
    attack = adversary.prepare(items, items.score, items.metric, rho=1.0, rng=rng)
    attack.dual_step.most_spent, multiplier, largest = float(adversary.epsilon), 2.0, 0.0
    for _ in range(_N_ATTACKS):
        found = attack.attack(items, items.theta, multiplier)
        multiplier, largest = found.multiplier, max(largest, found.regularizer)
    return largest


class Items(NamedTuple):
    """Rows, query after query, and their scores: what adversaries ask of a training set and of a batch."""

    X: np.ndarray
    rows: np.ndarray
    offsets: np.ndarray
    queries: np.ndarray
    weight: np.ndarray
    feature_names: Any
    score: Any
    theta: np.ndarray
    metric: Any

    @classmethod
    def of(cls, weights_or_ranker, X, qid, metric) -> Items:
        """Checked: weights or a ranker, rows, their queries, and the metric."""
        score, theta, metric = _score_and_metric(weights_or_ranker, metric)
        names = getattr(X, "columns", None)
        check_same_features(metric, names)
        X = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        queries, n_features = Queries.from_qid(qid, len(X)), metric.basis_.shape[1]
        if score.is_linear and np.abs(theta).max(initial=0.0) > 1e100:
            raise ValueError(
                "weights reach beyond 1e100: their squares overflow. Scale them (the regulariser is quadratic in them)."
            )
        n_weights = len(theta) if score.is_linear else X.shape[1]
        if not n_weights == X.shape[1] == n_features:
            raise ValueError(
                f"There are {n_weights} weights, X has {X.shape[1]} features and the metric {n_features}: they must be the same "
                "features."
            )
        n = queries.n_queries
        return cls(
            np.asarray(X[queries.order], dtype=np.float64),
            np.arange(len(X)),
            np.asarray(queries.offsets, dtype=np.int64),
            np.arange(n),
            np.ones(n),
            names,
            score,
            theta,
            metric,
        )

    @property
    def sizes(self):
        return np.diff(self.offsets)

    @property
    def weights(self):
        return self.weight

    @property
    def n_features(self):
        return self.X.shape[1]

    @property
    def n_numbers(self):
        return len(self.queries)

    def in_order(self):
        """All items at once."""
        yield self


def exact_bounds(adversary, items: Items) -> ClosedForm:
    """The bounds that an adversary in closed form names."""
    adversary = make_adversary(adversary)
    if not isinstance(adversary, ExactAdversary):
        raise ValueError(
            f"{type(adversary).__name__} names no bounds of single items: give ExactBox(), ExactGaps() or ExactBudget()."
        )
    return adversary.bounds(items, items.metric)


def _score_and_metric(weights_or_ranker, metric):
    """The score, its parameters, and the fitted metric: that of a ranker unless another is given."""
    ranker = weights_or_ranker
    if hasattr(ranker, "predict"):
        if isinstance(ranker, Pipeline):
            raise ValueError(
                "Items are moved in the features that the ranker sees: pass the pipeline's last step, and X as transformed by "
                "the others (pipeline[:-1].transform(X), with qid=qid where one of them asks for it)."
            )
        if isinstance(ranker, BaseEstimator):
            check_is_fitted(ranker)
        score: Any = getattr(ranker, "score_function_", LinearScore())
        name = "coef_" if score.is_linear else "parameters_"
        if not hasattr(ranker, name):
            raise ValueError(
                f"{type(ranker).__name__} has neither coef_ nor a score_function_ whose gradient an attack could follow: give a "
                "ranker with linear scores, or one of ours; for others give hypotheticals to fairness_certificate."
            )
        theta = np.ravel(getattr(ranker, name))
        metric = getattr(ranker, "metric_", None) if metric is None else metric
    else:
        score = LinearScore()
        theta = check_array(ranker, ensure_2d=False, dtype=np.float64, input_name="weights")
        if theta.size != max(theta.shape):
            raise ValueError(f"weights has shape {theta.shape}: give one weight per feature.")
        theta = theta.ravel()
    if metric is None:
        raise ValueError("metric is missing: pass a fitted fair metric, within which items are moved.")
    metric = fitted_metric(metric)
    check_same_features(metric, getattr(ranker, "feature_names_in_", None))
    return score, np.ascontiguousarray(theta, dtype=np.float64), metric
