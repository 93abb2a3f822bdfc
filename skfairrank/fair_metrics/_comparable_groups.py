"""A fair metric from groups of items that people call comparable (Mukherjee et al. 2020, factor analysis)."""

from __future__ import annotations

import numbers

import numpy as np
from sklearn.utils._param_validation import Interval

from skfairrank._checks import as_values, sorted_codes, validate_features
from skfairrank.fair_metrics._base import LinearFairMetric
from skfairrank.fair_metrics._projection import orthonormal_rows

__all__ = ["ComparableGroupsMetric"]


class ComparableGroupsMetric(LinearFairMetric):
    """The fair metric that ignores how comparable items differ.

    Where people can say which items are comparable, such as the same application with different names, what differs within such
    groups must not matter. The sensitive directions are the principal directions of rows about the mean of their group.

    Parameters
    ----------
    n_components : int, default=1
        Number of sensitive directions.

    Attributes
    ----------
    directions_ : ndarray, shape (n_components, n_features)
        The largest first; each as long as the standard deviation, along it, of items about the mean of their group.
    basis_, sensitive_basis_ : ndarray, shape (n_components, n_features)
        Orthonormal rows with the span of the directions.
    shrink_ : ndarray of ones, shape (n_components,)
    components_ : ndarray, shape (n_features, n_features)
        The projector on what is left.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X has feature names.

    References
    ----------
    Mukherjee, Yurochkin, Banerjee and Sun (2020). Two simple ways to learn individual fairness metrics from data. ICML.

    Examples
    --------
    Two applications, each with two names; the second feature was computed from the name:

    >>> from skfairrank.fair_metrics import ComparableGroupsMetric
    >>> X = [[1.0, 0.0], [1.0, 4.0], [3.0, 1.0], [3.0, 5.0]]
    >>> metric = ComparableGroupsMetric().fit(X, comparable_groups=["first", "first", "second", "second"])
    >>> abs(metric.sensitive_basis_).tolist()
    [[0.0, 1.0]]
    """

    __metadata_request__fit = {"comparable_groups": True}

    _parameter_constraints: dict = {"n_components": [Interval(numbers.Integral, 1, None, closed="left")]}

    def __init__(self, n_components=1):
        self.n_components = n_components

    def fit(self, X, y=None, *, comparable_groups=None):
        """Learn the sensitive directions.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
        y : ignored
        comparable_groups : array-like, shape (n_rows,)
            Group of each row, ints or strings. A group of one row teaches nothing.

        Raises
        ------
        ValueError
            If groups are missing or of another length, or comparable items differ in fewer directions than `n_components`.
        """
        self._validate_params()
        X = validate_features(self, X, dtype=[np.float64, np.float32])
        if comparable_groups is None:
            raise ValueError(
                "comparable_groups is missing: give the group of each row. For SenSTIRRanker, fit the metric first, and pass "
                "FrozenEstimator(metric)."
            )
        groups = as_values(comparable_groups)
        if groups.shape != (len(X),):
            raise ValueError(f"comparable_groups has shape {groups.shape} for {len(X)} rows: give one group per row.")
        codes, labels = sorted_codes(groups, "comparable_groups")
        deviations = _about_group_means(X.astype(np.float64), codes, len(labels))
        _, singular, rows = np.linalg.svd(np.linalg.qr(deviations, mode="r"), full_matrices=False)
        rank = int((singular > 1e-10 * singular[0]).sum())
        if self.n_components > rank:
            raise ValueError(
                f"n_components={self.n_components}, but comparable items differ in {rank} directions only: give fewer "
                "components, or more comparable items."
            )
        deviation = singular[: self.n_components] / np.sqrt(len(X) - len(labels))
        self.directions_ = rows[: self.n_components] * deviation[:, None]
        self.basis_ = orthonormal_rows(self.directions_, 1e-10)
        self.shrink_ = np.ones(len(self.basis_))
        self._measure_from(X)
        return self


def _about_group_means(X, codes, n_groups):
    """Each row less the mean of its group; groups lie close together beside an offset of X, which costs no digits."""
    X = X - X[0]
    means = np.zeros((n_groups, X.shape[1]))
    np.add.at(means, codes, X)
    means /= np.bincount(codes, minlength=n_groups)[:, None]
    return X - means[codes]
