"""SenSTIRRanker: Sensitive Set Transport Invariant Ranking (Bower et al. 2021)."""

from __future__ import annotations

from numbers import Real

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skfairrank._candidates import with_effect
from skfairrank._checks import stores_parameters, warn_caller
from skfairrank._rankers._base import PlackettLuceRanker
from skfairrank._rankers._setup import n_plain_steps
from skfairrank._regularizers import INITIAL_MULTIPLIER, NEEDS_CLOSED_FORM, Invariance, Regularizer
from skfairrank.adversaries import ADVERSARIES, make_adversary
from skfairrank.fair_metrics._subspace import fit_metric
from skfairrank.hypotheticals import check_hypotheticals

__all__ = ["SenSTIRRanker", "fit_metric"]


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


def _ungrouped(y, queries) -> np.ndarray:
    """Relevances that are grouped by query, in the order of the rows of X."""
    relevance = np.empty(len(y))
    relevance[queries.order] = y
    return relevance


class SenSTIRRanker(PlackettLuceRanker):
    """Individually fair ranker: expected utility (NDCG) minus rho times an optimal-transport invariance regulariser.

    Maximises, by Algorithm 1 of Bower et al. (2021), ``mean U(q) - rho R - alpha / 2 ||coef_||^2`` with ``U`` the
    expected NDCG of the Plackett-Luce policy and ``R`` the largest mean ``1/2 ||h(q) - h(q')||^2`` over hypothetical
    queries q' whose mean distance ``d_Q(q, q')`` from q is at most `epsilon`. Scores h are linear unless `score_function` says
    otherwise. Items are paired with their own attacked copies.

    Parameters
    ----------
    metric : None, fair metric, FrozenEstimator or array-like of shape (K, n_features), default=None
        The fair metric on items. None learns it from the `sensitive_features` of `fit` (without any: the Euclidean metric and a
        warning). A fair metric, such as `SensitiveSubspaceMetric` or another `LinearFairMetric`, is cloned and fitted on the
        training rows; wrapped in `sklearn.frozen.FrozenEstimator` it is used as fitted. An array holds sensitive directions.
        Under "given" None means that hypothetical rows are free, whatever the `sensitive_features`: they are the same item.
    rho : float, default=0.003
        Strength of the regulariser. It has no scale of its own: R is a sum over items, in squared units of scores. 0
        gives the plain ranker, bit for bit. The default suits standardised features, queries of about ten items and the default
        radii (docs/results.md has a table); search over it.
    epsilon : float, default=0.01
        Transport budget: bound on the mean d_Q, in squared feature units.
    score_function, utility, solver, gradient, learning_rate, max_iter, batch_size, n_samples, alpha, tol, early_stopping, \
validation_fraction, n_iter_no_change, warm_start, random_state, verbose
        As for `PlackettLuceRanker`.
    adversary : {"ascent", "exact", "exact_box", "gaps", "gaps_ascent", "given"} or Adversary, default="ascent"
        How q' is found: by name, with the parameters below that belong to it, or by an object of `skfairrank.adversaries`, which
        brings its own, such as ``ExactBox(0.2, 0.02)``. The closed forms, "exact", "exact_box" and "gaps", are for linear scores.
        "ascent": Adam along the sensitive directions, then freely (the paper's). "exact": the supremum within `subspace_radius`
        and the budget `epsilon`, in closed form. "exact_box": within `subspace_radius` along each direction and `feature_radius`
        in each feature, in closed form; what the paper's ascent comes to in effect (docs/exact.md). "gaps": each feature within
        `gap_radius` times the groups' gap in it (the metric's `gaps_`), plus `feature_radius`, in closed form: a weight costs as
        much as its feature gives the group away. "gaps_ascent": the ascent with its first phase along single features instead of
        directions, in units of `gap_radius` times their gaps. "given": the worst of the rows that `hypotheticals` and the
        `X_hypothetical` of `fit` give for an item.
    hypotheticals : callable, list or dict of callable, Hypotheticals, optional
        For "given": functions X -> X' that turn rows into what the same items might as well have been, or
        ``skfairrank.hypotheticals.Hypotheticals(...)``, which has further sources. Functions get the training rows once, as they
        came to `fit`: as a DataFrame if that is what came, and in a pipeline behind its other steps. Each set of their rows is
        kept, and is as large as X; rows too many for memory go to `X_hypothetical` as a memory map.
    subspace_step_size, subspace_n_steps : float, int, default=0.05, 20
        Adam's step and number of steps of the subspace attack, in units of the directions (the paper's as, ae). By default it
        reaches about 1: as far as the groups lie apart.
    subspace_init : float, default=0.05
        Its starts are uniform in +-subspace_init.
    subspace_n_starts : int or None, default=4
        Starts per step, shared by the items of the batch; None: one for each item, as printed in the paper. Items share no starts
        where the score is not linear, where `score_distance` is "centered", or where rows have bounds.
    full_step_size, full_n_steps : float, int, default=0.001, 20
        Adam's step and number of steps of the full attack, in feature units (the paper's fs, fe).
    subspace_radius : float, default=1.0
        For "exact" and "exact_box": bound on the sensitive move of an item. "exact": its Euclidean norm, in feature units;
        "exact_box": each coefficient along the directions, so that 1 leads as far as the groups lie apart.
    gap_radius : float, default=1.0
        For "gaps" and "gaps_ascent": bound on the move of each feature, in units of the groups' gap in it.
    feature_radius : float, default=0.02
        For "exact_box" and "gaps": bound on each coordinate of the free move, in feature units.
    dual_step : {"auto", "budget", "paper"}, default="auto"
        How the ascent's multiplier lambda of the budget moves. "budget": log lambda by a tenth of (d - epsilon) / epsilon, with d
        the batch's mean d_Q, of which a batch may spend 2 epsilon at most; where the budget binds, the mean of d is epsilon.
        "paper": lambda by max(d, epsilon) / min(d, epsilon) times (d - epsilon), as the authors' program; where the budget binds
        it swings, and the mean of d is far above epsilon. "auto": "budget"; but where the metric has learned directions with
        ``scale="raw"``, the paper's setting, "paper" for as long as lambda does not swing.
    score_distance : {"squared", "centered"}, default="squared"
        How the scores of two queries are compared. "squared": 1/2 ||h(q) - h(q')||^2, the paper's. "centered": the same, of
        changes less their mean in the query: a change of all scores by one number changes no ranking, so it should cost nothing
        (docs/exact.md).
    feature_range : None, "train" or (low, high), default=None
        For "ascent" and "gaps_ascent": the range of each feature in which attacked items stay; "train": that of the training
        rows. low and high are numbers, or one number for each feature; -inf and inf are no bounds. An item that lies outside may
        stay where it is, or move towards the range, but not further out.
    one_hot_groups : None or list of lists of columns, default=None
        For "ascent" and "gaps_ascent": columns, by name or position, that are one-hot encoded together, such as ``[["red",
        "blue"], [5, 6, 7]]``. Attacked items stay on the simplex of each group (entries >= 0 that sum to 1), to which
        `feature_range` does not apply.
    fixed_features : None or list of columns, default=None
        For "ascent" and "gaps_ascent": columns, by name or position, or as a mask, that the attack leaves as they are. One-hot
        columns that have been scaled belong here: they are on no simplex.
    fair_start : float, default=0.1
        Share of the steps trained without the regulariser first (the paper's frs).

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
    metric_ : fair metric
        As fitted. Under "given" None where there is no `metric`, and `hypotheticals` need none.
    hypotheticals_ : Hypotheticals
        As fitted; only under "given", with rho > 0.
    lambda_ : float
        Multiplier of the transport budget after the last step (rho times that of the paper's dual). Under "exact_box" and
        "gaps", which have no budget, and under "given" without a metric it stays where it starts.
    n_iter_ : int
    history_ : dict of ndarray, each with one entry per step
        "utility", "regularizer" (mean 1/2 ||h(q) - h(q')||^2 of the step's attack, without rho), "query_distance"
        (mean d_Q(q, q')) and "lambda" (after its update). In steps without the
        regulariser the middle two are 0 and lambda is unchanged.
    n_queries_, n_features_in_, feature_names_in_, validation_scores_
        As for `PlackettLuceRanker`.

    Notes
    -----
    The regulariser compares scores item by item, while d_Q does not see the order of items: a hypothetical query that
    merely permutes q would cost nothing and count as unfair. The attack keeps every item paired with its own copy, so
    it never goes there.

    References
    ----------
    Bower, Eftekhari, Yurochkin and Sun (2021). Individually Fair Ranking. ICLR.

    Examples
    --------
    >>> from skfairrank import SenSTIRRanker
    >>> from skfairrank.datasets import make_biased_ranking
    >>> task = make_biased_ranking(random_state=0)
    >>> ranker = SenSTIRRanker(rho=0.01, random_state=0)
    >>> ranker = ranker.fit(task.data, task.target, qid=task.qid, sensitive_features=task.sensitive_features)
    >>> bool(abs(ranker.coef_[1]) < abs(ranker.coef_[0]) / 3)  # the biased feature hardly counts
    True
    """

    _parameter_constraints: dict = {
        **PlackettLuceRanker._parameter_constraints,
        "metric": [HasMethods("fit"), "array-like", None],
        "rho": [Interval(Real, 0, None, closed="left")],
        **{name: rule for kind in ADVERSARIES.values() for name, rule in kind._parameter_constraints.items()},
        "adversary": [StrOptions(set(ADVERSARIES)), HasMethods("prepare")],
        "fair_start": [Interval(Real, 0, 1, closed="both")],
    }

    @stores_parameters(extends=(*ADVERSARIES.values(), PlackettLuceRanker))
    def __init__(self, metric=None, *, rho=0.003, adversary="ascent", fair_start=0.1, **shared): ...

    def _regularizer(self, batches, y, given, rng):
        adversary = make_adversary(self.adversary, self)
        if self.rho > 0 and self.solver == "lbfgs" and not adversary.is_closed_form:
            raise ValueError(NEEDS_CLOSED_FORM)
        if self.hypotheticals is not None and not (isinstance(self.adversary, str) and self.adversary == "given"):
            warn_caller(
                f'hypotheticals are read by adversary="given" only, and adversary is {self.adversary!r}: training goes without '
                "them."
            )
        relevance = _ungrouped(y, batches.queries)
        if not given.goes_on:
            self.__dict__.pop("hypotheticals_", None)  # of an earlier fit with other settings
            self.metric_ = self._learn_metric(adversary, batches, relevance, given)
        if self.rho == 0:
            return Regularizer()
        charged = self.metric_
        if adversary.takes_hypotheticals:
            charged = None if self.metric is None else self.metric_
            adversary = adversary.among(self._candidates(adversary.hypotheticals, relevance, given))
        goes_on = self.warm_start or given.goes_on
        return Invariance(
            adversary,
            charged,
            strength=self.rho,
            n_plain=n_plain_steps(self),
            multiplier=getattr(self, "lambda_", INITIAL_MULTIPLIER) if goes_on else INITIAL_MULTIPLIER,
            rng=rng,
        )

    def _candidates(self, hypotheticals, relevance, given) -> list[np.ndarray]:
        """The hypothetical rows of all training rows: functions see X as it was given, the score sees what was checked."""
        if given.goes_on:
            hypotheticals = vars(self)["hypotheticals_"]
        else:
            hypotheticals = clone(check_hypotheticals(hypotheticals))
            hypotheticals.fit(given.X, relevance, sensitive_features=given.sensitive_features, metric=self.metric_)
        sets = with_effect(given.X, hypotheticals.candidates(given.X, given.X_hypothetical))
        candidates = [self._check_rows(rows) for _, rows in sets]
        self.hypotheticals_ = hypotheticals
        return candidates

    def _learn_metric(self, adversary, batches, relevance, given):
        if adversary.takes_hypotheticals and self.metric is None:
            hypotheticals = check_hypotheticals(adversary.hypotheticals)
            if hypotheticals.metric is not None or not hypotheticals.needs_metric:
                return None
        names = getattr(self, "feature_names_in_", None)
        X = batches.X if names is None else pd.DataFrame(batches.X, columns=names, copy=False)
        needed = self.rho > 0
        uses_directions = needed and adversary.uses_directions
        how = {"needed": needed, "uses_directions": uses_directions}
        metric = fit_metric(self.metric, X, given.sensitive_features, relevance, **how)
        if self.metric is None and uses_directions:
            _warn_if_directions_miss_the_groups(metric)
        return metric

    def _fitted_attributes(self, state):
        return {**super()._fitted_attributes(state), "lambda_": float(state.multiplier)}
