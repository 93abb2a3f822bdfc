"""SenSTIRRanker: Sensitive Set Transport Invariant Ranking (Bower et al. 2021)."""

from __future__ import annotations

from numbers import Real

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skfairrank._candidates import with_effect
from skfairrank._checks import stores_parameters, warn_caller
from skfairrank.adversaries import ADVERSARIES, ExactGaps, GapsAscent, make_adversary
from skfairrank.fair_metrics._subspace import fit_metric
from skfairrank.hypotheticals import check_hypotheticals
from skfairrank.rankers._fitting import n_plain_steps
from skfairrank.rankers._plackett_luce import PlackettLuceRanker
from skfairrank.training._adam import INITIAL_MULTIPLIER, NEEDS_CLOSED_FORM, Regularizer

#: Adversaries that move each feature by the groups' gap in it.
KINDS_OF_GAPS = (ExactGaps, GapsAscent)


class Invariance(Regularizer):
    """SenSTIR's: the unfairness of hypothetical queries that an adversary finds (Bower et al. 2021, equation 4).

    Parameters
    ----------
    adversary : skfairrank.adversaries.Adversary
    metric : fitted fair metric
    strength : float
        rho.
    n_plain : int
    multiplier : float
        lambda at the start.
    rng : numpy.random.Generator
    """

    def __init__(self, adversary, metric, *, strength, n_plain=0, multiplier=INITIAL_MULTIPLIER, rng=None):
        self.adversary, self.metric, self.rng = adversary, metric, rng
        self.strength, self.n_plain, self.multiplier = float(strength), n_plain, float(multiplier)

    def prepare(self, batches, score):
        self.prepared = self.adversary.prepare(batches, score, self.metric, rho=self.strength, rng=self.rng)

    def add_gradient(self, batch, theta, out):
        attack = self.prepared.attack(batch, theta, self.multiplier)
        self.multiplier = attack.multiplier
        out -= self.strength * attack.gradient
        return attack

    def minimize(self, run, dual_variables=None):
        if not self.prepared.is_closed_form:
            super().minimize(run)
        return self.prepared.minimize(run, self.strength, dual_variables)


def _warn_if_directions_miss_the_groups(metric):
    """Warn, for a metric that nobody chose, where its directions hold less than half of how the groups differ."""
    least = min(
        metric.difference_shares_.items(), key=lambda named: np.nan_to_num(named[1], nan=1.0), default=("", 1.0)
    )
    if least[1] < 0.5:
        warn_caller(
            f"The fair metric was learned by default, and its directions hold {least[1]:.0%} of how the groups of {least[0]} "
            "differ: a ranker that ignores them can still tell the groups apart. They are coefficients that predict the group. "
            'Set adversary="gaps", which charges each feature by the groups\' gap in it; or '
            'metric=SensitiveSubspaceMetric(direction="difference"), or metric=SensitiveSubspaceMetric() if the coefficients are '
            "what you want. ranker.metric_.summary() shows directions and gaps."
        )


class SenSTIRRanker(PlackettLuceRanker):
    """Individually fair ranker: expected utility (NDCG) minus rho times an optimal-transport invariance regulariser.

    Maximises, by Algorithm 1 of Bower et al. (2021), ``mean U(q) - rho R - alpha / 2 ||coef_||^2`` with ``U`` the expected NDCG
    of the Plackett-Luce policy and ``R`` the largest mean ``1/2 ||h(q) - h(q')||^2`` over the hypothetical queries q' that the
    adversary may choose. Items stay paired with their own hypothetical copies, so that a mere permutation of q is none.

    Parameters
    ----------
    metric : None, fair metric, FrozenEstimator or array-like of shape (K, n_features), default=None
        The fair metric on items. None learns it from the `sensitive_features` of `fit` (without any: the Euclidean metric and a
        warning). A fair metric, such as `SensitiveSubspaceMetric`, is cloned and fitted on the training rows; wrapped in
        `sklearn.frozen.FrozenEstimator` it is used as fitted. An array holds sensitive directions. Under "given" None means that
        hypothetical rows are free.
    rho : float, default=0.003
        Strength of the regulariser; 0 gives the plain ranker, bit for bit. It has no scale of its own: R is a sum over items, in
        squared units of scores. The default suits standardised features and queries of about ten items; search over it.
    adversary : {"ascent", "exact", "exact_box", "gaps", "gaps_ascent", "given"} or Adversary, default="ascent"
        Which hypothetical queries there are, and how the worst is found: an object of `skfairrank.adversaries`, whose parameters
        are searched as ``adversary__epsilon``, or a name, which stands for one with its defaults.

        - "ascent", `Ascent`: along the sensitive directions, then freely within a transport budget (the paper's).
        - "gaps", `ExactGaps`: each feature moves as far as the groups lie apart in it. In closed form, for linear scores.
        - "exact", `ExactBudget`, and "exact_box", `ExactBox`: moves along the directions and a budget or a box for all others.
          In closed form, for linear scores.
        - "gaps_ascent", `GapsAscent`: the ascent along single features.
        - "given", `GivenHypotheticals`: the worst of the rows that its `hypotheticals` and the `X_hypothetical` of `fit` give.
    score_function, utility, solver, gradient, learning_rate, max_iter, batch_size, n_samples, alpha, tol, early_stopping, \
validation_fraction, n_iter_no_change, warm_start, random_state, verbose
        As for `PlackettLuceRanker`.
    fair_start : float, default=0.1
        Share of the steps trained without the regulariser first (the paper's frs).

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
    adversary_ : Adversary
        The one that `adversary` names or is.
    metric_ : fair metric
        As fitted. Under "given" None where there is no `metric`, and the hypotheticals need none.
    hypotheticals_ : Hypotheticals
        As fitted; only under "given", with rho > 0.
    lambda_ : float
        Multiplier of the transport budget after the last step (rho times that of the paper's dual). Adversaries without a budget
        leave it where it starts.
    n_iter_ : int
    history_ : dict of ndarray, each with one entry per step
        "utility", "regularizer" (mean 1/2 ||h(q) - h(q')||^2 of the step's attack, without rho), "query_distance"
        (mean d_Q(q, q')) and "lambda" (after its update). In steps without the
        regulariser the middle two are 0 and lambda is unchanged.
    n_queries_, n_features_in_, feature_names_in_, validation_scores_
        As for `PlackettLuceRanker`.

    References
    ----------
    Bower, Eftekhari, Yurochkin and Sun (2021). Individually Fair Ranking. ICLR.

    Examples
    --------
    >>> from skfairrank import SenSTIRRanker
    >>> from skfairrank.datasets import make_biased_ranking
    >>> task = make_biased_ranking(random_state=0)
    >>> ranker = SenSTIRRanker(rho=0.01, random_state=0)
    >>> groups = task.sensitive_features
    >>> ranker = ranker.fit(task.data, task.target, qid=task.qid, sensitive_features=groups)
    >>> bool(abs(ranker.coef_[1]) < abs(ranker.coef_[0]) / 3)  # hardly counts
    True
    """

    _parameter_constraints: dict = {
        **PlackettLuceRanker._parameter_constraints,
        "metric": [HasMethods("fit"), "array-like", None],
        "rho": [Interval(Real, 0, None, closed="left")],
        "adversary": [StrOptions(set(ADVERSARIES)), HasMethods("prepare")],
        "fair_start": [Interval(Real, 0, 1, closed="both")],
    }

    @stores_parameters(extends=PlackettLuceRanker)
    def __init__(self, metric=None, *, rho=0.003, adversary="ascent", fair_start=0.1, **shared): ...

    def set_params(self, **params):
        """Set parameters, also those of an adversary that was given as an object, such as ``adversary__epsilon``.

        Raises
        ------
        ValueError
            If a parameter is unknown, or is one of an adversary that was given by name.
        """
        adversary = params.get("adversary", self.adversary)
        nested = [name for name in params if name.startswith("adversary__")]
        if nested and isinstance(adversary, str) and adversary in ADVERSARIES:
            kind = ADVERSARIES[adversary].__name__
            raise ValueError(
                f"{nested[0]} sets a parameter of an object, and adversary={adversary!r} is a name: give the object, "
                f"adversary={kind}(), from skfairrank.adversaries."
            )
        return super().set_params(**params)

    def _fit_regularizer(self, batches, y, rng, *, X, sensitive_features, X_hypothetical, goes_on):
        """Learn `metric_` and `hypotheticals_`, and return the regulariser."""
        self.adversary_ = adversary = make_adversary(self.adversary)
        if self.rho > 0 and self.solver == "lbfgs" and not adversary.is_closed_form:
            raise ValueError(NEEDS_CLOSED_FORM)
        if not goes_on:
            self.__dict__.pop("hypotheticals_", None)  # of an earlier fit with other settings
            self.metric_ = self._fit_metric(adversary, batches, y, sensitive_features)
        if self.rho == 0:
            return Regularizer()
        metric = self.metric_
        if adversary.takes_hypotheticals:
            if not goes_on:
                self.hypotheticals_ = clone(check_hypotheticals(adversary.hypotheticals))
                self.hypotheticals_.fit(X, y, sensitive_features=sensitive_features, metric=metric)
            # Functions see X as it was given, the score sees what was checked.
            sets = with_effect(X, self.hypotheticals_.candidates(X, X_hypothetical))
            adversary = adversary.among([self._check_rows(rows) for _, rows in sets])
            metric = None if self.metric is None else metric
        is_continued = self.warm_start or goes_on
        multiplier = getattr(self, "lambda_", INITIAL_MULTIPLIER) if is_continued else INITIAL_MULTIPLIER
        return Invariance(
            adversary, metric, strength=self.rho, n_plain=n_plain_steps(self), multiplier=multiplier, rng=rng
        )

    def _fit_metric(self, adversary, batches, y, sensitive_features):
        if adversary.takes_hypotheticals and self.metric is None:
            hypotheticals = check_hypotheticals(adversary.hypotheticals)
            if hypotheticals.metric is not None or not hypotheticals.needs_metric:
                return None
        if self.rho > 0 and self.metric is None and sensitive_features is None and isinstance(adversary, KINDS_OF_GAPS):
            raise ValueError(
                "The gaps between groups are learned from sensitive_features, and fit got none: pass sensitive_features=, or "
                'a fitted metric; or choose adversary="ascent".'
            )
        X, names = batches.X, batches.feature_names
        if names is not None:
            X = pd.DataFrame(X, columns=names, copy=False)
        needed = self.rho > 0
        uses_directions = needed and adversary.uses_directions
        metric = fit_metric(self.metric, X, sensitive_features, y, needed=needed, uses_directions=uses_directions)
        if self.metric is None and uses_directions:
            _warn_if_directions_miss_the_groups(metric)
        return metric

    def _fitted_attributes(self, state):
        return {**super()._fitted_attributes(state), "lambda_": float(state.multiplier)}

    def _settings_kept(self):
        names = ("score_function", "metric", "adversary")
        return {**{name: getattr(self, name) for name in names}, "rho > 0": self.rho > 0}
