"""FairPGRanker: Fair-PG-Rank (Singh and Joachims 2019), policy gradient with a hinge on group exposures."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from skfairrank._exposure import disparity_coefficients
from skfairrank._kernels import exact as _exact
from skfairrank._kernels import ranks as _ranks
from skfairrank._threads import over_queries
from skfairrank._warnings import warn_caller
from skfairrank.metrics._groups import check_groups
from skfairrank.rankers._base import PlackettLuceRanker
from skfairrank.training import PolicyGradient

__all__ = ["FairPGRanker"]


class FairExposureGradient(PolicyGradient):
    """Gradient of NDCG minus a weight times the hinge of merit-weighted group exposures.

    A query's disparity v_A/M_A - v_B/M_B is linear in the discounts of its rows' ranks, as NDCG is: where the hinge is open, the
    gradient is that of a utility whose gains are less the weight times the disparity's coefficients. So the baseline is the
    samples' mean disparity, and every estimator of the policy gradient serves.

    Parameters
    ----------
    coefficients : ndarray of float64, shape (n_rows,)
        Of the disparity in the discounts, in the caller's row order; zero where it is undefined.
    """

    def __init__(self, data, kind, n_samples, coefficients, fairness_weight):
        super().__init__(data, kind, n_samples)
        self.coefficients, self.fairness_weight = coefficients, fairness_weight

    def __call__(self, batch, h):
        coefficient, offsets = self.coefficients[batch.rows], batch.offsets
        exposure = np.empty(len(h))
        work = self.work_of_row * len(h)
        if self.kind == "exact":
            over_queries(_exact.expected_discounts, offsets, work, h, offsets, self.data.discount, exposure)
        else:  # the same noise as the gradient: the same sampled rankings
            over_queries(
                _ranks.sampled_discounts,
                offsets,
                work,
                h,
                offsets,
                batch.key,
                self.n_samples,
                self.data.discount,
                exposure,
            )
        disparity = np.add.reduceat(coefficient * exposure, offsets[:-1])
        is_open = np.repeat(disparity > 0, np.diff(offsets))
        gain = batch.gain
        combined = gain - self.fairness_weight * np.where(is_open, coefficient, 0.0)
        gradient, _ = self._differentiate(batch, h, combined)
        utility = np.add.reduceat(gain * exposure, offsets[:-1])
        return gradient, utility, float(np.maximum(disparity, 0.0).mean())


class FairPGRanker(PlackettLuceRanker):
    """Fair-PG-Rank: expected NDCG minus `fairness_weight` times the disparity of group exposures, by policy gradient.

    The disparity of a query is the hinge ``max(0, v_A / M_A - v_B / M_B)`` of Singh and Joachims (2019), not squared: v_G is the
    expected exposure of group G's mean item, M_G its mean relevance, M_A >= M_B. It is what
    `skfairrank.metrics.group_exposure_disparity` measures. REINFORCE with the sampled rankings' mean utility and mean
    disparity as baselines. (The program behind Bower et al. 2021, Figure 4, multiplied all samples of a query by one
    number, so the expected gradient of its disparity was zero.)

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the disparity (their lambda). 0 gives the plain ranker, bit for bit.
    score_function, solver, gradient, learning_rate, max_iter, batch_size, n_samples, alpha, tol, early_stopping, \
validation_fraction, n_iter_no_change, warm_start, random_state, verbose
        As for `PlackettLuceRanker`; `solver="lbfgs"` is not available here, since the hinge has kinks.

    Attributes
    ----------
    coef_, n_iter_, n_queries_, n_features_in_, feature_names_in_, validation_scores_
        As for `PlackettLuceRanker`.
    history_ : dict of ndarray, each with one entry per step
        "utility", and "regularizer": the mean disparity of the step's sampled rankings, without its weight.
        "query_distance" is 0.
    groups_ : ndarray, shape (2,)
        The groups, sorted; absent where `fit` got no sensitive features or the weight is 0.

    References
    ----------
    Singh and Joachims (2019). Policy Learning for Fairness in Ranking. NeurIPS.
    """

    _parameter_constraints: dict = {
        **PlackettLuceRanker._parameter_constraints,
        "fairness_weight": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        fairness_weight=1.0,
        score_function="linear",
        solver="adam",
        gradient="reinforce",
        learning_rate=0.01,
        max_iter=2000,
        batch_size=10,
        n_samples=25,
        alpha=0.0,
        tol=1e-5,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        warm_start=False,
        random_state=None,
        verbose=0,
    ):
        super().__init__(
            score_function=score_function,
            solver=solver,
            gradient=gradient,
            learning_rate=learning_rate,
            max_iter=max_iter,
            batch_size=batch_size,
            n_samples=n_samples,
            alpha=alpha,
            tol=tol,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.fairness_weight = fairness_weight

    def _prepare(self, data, y, sensitive_features):
        self._coefficients = None
        if self.solver == "lbfgs" and self.fairness_weight > 0:
            raise ValueError(
                'FairPGRanker has solver="adam" only: the hinge of exposures has kinks that "lbfgs" cannot cross.'
            )
        if sensitive_features is None:
            if self.fairness_weight > 0:
                warn_caller(
                    "FairPGRanker got no sensitive_features and trains without its fairness term: pass sensitive_features= with "
                    "two groups to fit.",
                )
        elif self.fairness_weight > 0:
            queries = data.queries
            self.groups_, group = check_groups(sensitive_features, len(y), at_most=2, compared_by="FairPGRanker")
            if len(self.groups_) < 2:
                warn_caller(
                    f"FairPGRanker got one group only ({self.groups_.tolist()[0]!r}) and trains without its fairness term: "
                    "give the rows of both groups."
                )
            coefficients = disparity_coefficients(queries.group(y), queries.group(group), queries.offsets)[0]
            self._coefficients = queries.ungroup(coefficients)

    def _strength(self):
        return float(self.fairness_weight)

    def _policy_gradient(self, data):
        if self._coefficients is None:
            return super()._policy_gradient(data)
        coefficients = self.__dict__.pop("_coefficients")
        return FairExposureGradient(data, self.gradient, int(self.n_samples), coefficients, float(self.fairness_weight))
