"""FairPGRanker: Fair-PG-Rank (Singh and Joachims 2019), policy gradient with a hinge on group exposures."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from skfairrank._checks import stores_parameters, warn_caller
from skfairrank._sensitive import check_groups
from skfairrank.metrics._exposure import disparity_coefficients
from skfairrank.rankers._plackett_luce import PlackettLuceRanker
from skfairrank.training._adam import Regularizer
from skfairrank.utilities import discounts


class ExposureHinge(Regularizer):
    """Fair-PG-Rank's: the hinge of merit-weighted group exposures (Singh and Joachims 2019).

    A query's disparity v_A/M_A - v_B/M_B is linear in the exposures of its rows, as a utility is in the discounts of their ranks:
    so where the hinge is open its gradient is the policy gradient of a utility whose gains are the disparity's coefficients, and
    the baseline of REINFORCE is the samples' mean disparity.

    Parameters
    ----------
    coefficients : ndarray of float64, shape (n_rows,)
        Of the disparity in the exposures, the rows of a query together; zero where it is undefined.
    starts : ndarray of int64, shape (at least n_queries,)
        Where the rows of each query begin among the coefficients.
    exposure : ndarray of float64, shape (largest query size,)
        Exposure of each rank.
    strength : float
    """

    def __init__(self, coefficients, starts, exposure, *, strength):
        self.coefficients, self.starts, self.exposure = coefficients, starts, exposure
        self.strength = float(strength)

    def add_score_gradient(self, batch, h, gradient, out):
        sizes, starts = np.diff(batch.offsets), batch.offsets[:-1]
        coefficient = self.coefficients[np.repeat(self.starts[batch.queries] - starts, sizes) + np.arange(len(h))]
        # Under the same sampled rankings as the gradient of the utility.
        disparity = np.add.reduceat(coefficient * gradient.expected_discounts(batch, h, self.exposure), starts)
        is_open = disparity > 0
        if is_open.any():
            gain = np.where(np.repeat(is_open, sizes), coefficient, 0.0)
            unfair = batch._replace(gain=gain, continuation=np.empty(0), utility=None)
            out -= self.strength * gradient.estimate(unfair, h, self.exposure)[0]
        return float((batch.weight * np.maximum(disparity, 0.0)).mean())


class FairPGRanker(PlackettLuceRanker):
    """Fair-PG-Rank: expected utility (NDCG) minus `fairness_weight` times the disparity of group exposures, by policy gradient.

    The disparity of a query is the hinge ``max(0, v_A / M_A - v_B / M_B)`` of Singh and Joachims (2019), not squared: v_G is the
    expected exposure of group G's mean item, M_G its mean relevance, M_A >= M_B. It is what
    `skfairrank.metrics.group_exposure_disparity` measures. REINFORCE with the sampled rankings' mean utility and mean
    disparity as baselines. (The program behind Bower et al. 2021, Figure 4, multiplied all samples of a query by one
    number, so the expected gradient of its disparity was zero.)

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the disparity (their lambda). 0 gives the plain ranker, bit for bit.
    score_function, utility, solver, gradient, learning_rate, max_iter, batch_size, n_samples, alpha, tol, early_stopping, \
validation_fraction, n_iter_no_change, warm_start, random_state, verbose
        As for `PlackettLuceRanker`; `solver="lbfgs"` is not available here, since the hinge has kinks.

    Attributes
    ----------
    score_function_, parameters_, coef_, n_iter_, n_queries_, n_features_in_, feature_names_in_, validation_scores_
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

    @stores_parameters(extends=PlackettLuceRanker)
    def __init__(self, *, fairness_weight=1.0, **shared): ...

    def _fit_regularizer(self, batches, y, rng, *, X, sensitive_features, X_hypothetical, goes_on):
        """Read the groups, `groups_`, and return the regulariser."""
        known = getattr(self, "groups_", None) if goes_on else None
        self.__dict__.pop("groups_", None)
        if self.fairness_weight == 0:
            return Regularizer()
        if self.solver == "lbfgs":
            raise ValueError(
                'FairPGRanker has solver="adam" only: the hinge of exposures has kinks that "lbfgs" cannot cross.'
            )
        if sensitive_features is None:
            warn_caller(
                "FairPGRanker got no sensitive_features and trains without its fairness term: pass sensitive_features= with "
                "two groups to fit.",
            )
            return Regularizer()
        queries = batches.queries
        self.groups_, group = check_groups(sensitive_features, len(y), at_most=2, compared_by="FairPGRanker")
        if known is not None:
            self.groups_, group = _among_known(known, self.groups_, group)
        if len(self.groups_) < 2:
            warn_caller(
                f"FairPGRanker got one group only ({self.groups_.tolist()[0]!r}) and trains without its fairness term: "
                "give the rows of both groups."
            )
        coefficients = disparity_coefficients(queries.group(y), queries.group(group), queries.offsets)[0]
        exposure = discounts(int(queries.sizes.max()))
        return ExposureHinge(coefficients, queries.offsets, exposure, strength=self.fairness_weight)


def _among_known(known, labels, group):
    """The groups of a stream so far, and the number of each row's group among them."""
    try:
        together = sorted({*known.tolist(), *labels.tolist()})
    except TypeError as error:
        raise ValueError(
            f"sensitive_features has the groups {labels.tolist()}, and earlier calls {known.tolist()}: give labels of one kind."
        ) from error
    if len(together) > 2:
        raise ValueError(
            f"sensitive_features has the groups {labels.tolist()}, and earlier calls {known.tolist()}: FairPGRanker compares 2. "
            "Merge groups."
        )
    number = np.array([together.index(label) for label in labels.tolist()])
    return np.array(together, dtype=np.result_type(known, labels)), number[group]
