"""Any Mahalanobis distance as a fair metric."""

from __future__ import annotations

import numbers

import numpy as np
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval

from skfairrank._checks import validate_features
from skfairrank.fair_metrics._base import LinearFairMetric
from skfairrank.fair_metrics._projection import orthonormal_rows

__all__ = ["MahalanobisMetric", "factors_of"]


class MahalanobisMetric(LinearFairMetric):
    r"""The fair metric of a given matrix: :math:`d_X(x, x') = (x - x')^\top M (x - x')`.

    M may come from another library's metric learning (its `get_mahalanobis_matrix`), from a covariance, or from people who say
    how much a difference in each feature should count. Where M has eigenvalue 0, items count as the same: these are the
    sensitive directions, along which the attack of `SenSTIRRanker` moves freely.

    Parameters
    ----------
    M : array-like, shape (n_features, n_features)
        Symmetric, positive semidefinite.
    rank_tolerance : float, default=1e-10
        Eigenvalues below this times the largest count as zero.

    Attributes
    ----------
    directions_ : ndarray, shape (K, n_features)
        Unit vectors along which M is zero.
    basis_ : ndarray, shape (R, n_features)
        They, and the eigenvectors of the other eigenvalues m, but for m = 1.
    shrink_ : ndarray, shape (R,)
        1 - sqrt(m).
    sensitive_basis_, components_ : ndarray
        As for `LinearFairMetric`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X has feature names.

    Examples
    --------
    Years of age count not at all, and points of a test four times:

    >>> from skfairrank.fair_metrics import MahalanobisMetric
    >>> metric = MahalanobisMetric([[0.0, 0.0], [0.0, 4.0]]).fit([[30.0, 1.0], [50.0, 2.0]])
    >>> metric.pair_distance([[[30, 1], [50, 2]]]).tolist()  # sqrt(4)
    [2.0]
    >>> metric.directions_.tolist(), metric.shrink_.tolist()
    ([[1.0, 0.0]], [1.0, -1.0])
    """

    _parameter_constraints: dict = {
        "M": ["array-like"],
        "rank_tolerance": [Interval(numbers.Real, 0, 1, closed="left")],
    }

    def __init__(self, M, *, rank_tolerance=1e-10):
        self.M = M
        self.rank_tolerance = rank_tolerance

    def fit(self, X, y=None):
        """Factorise M; of X only the number and the names of its features count.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
        y : ignored

        Raises
        ------
        ValueError
            If M is not symmetric, has a negative eigenvalue, or is of another size than X.
        """
        self._validate_params()
        X = validate_features(self, X, dtype=[np.float64, np.float32])
        M = check_array(self.M, dtype=np.float64, input_name="M")
        if M.shape != (X.shape[1], X.shape[1]):
            raise ValueError(
                f"M has shape {M.shape}, but X has {X.shape[1]} features: give a row and a column for each of them."
            )
        self.directions_, self.basis_, self.shrink_ = factors_of(M, self.rank_tolerance)
        self._measure_from(X)
        return self


def factors_of(M, tolerance):
    """Free directions, orthonormal rows and shrinks of the Mahalanobis distance of M.

    Parameters
    ----------
    M : ndarray of float64, shape (d, d)
    tolerance : float
        Of an eigenvalue beside the largest, and of M's asymmetry beside its largest entry.

    Returns
    -------
    directions : ndarray, shape (K, d)
        Unit vectors along which M is zero.
    basis : ndarray, shape (R, d)
    shrink : ndarray, shape (R,)

    Raises
    ------
    ValueError
        If M is not symmetric or has a negative eigenvalue.
    """
    largest_entry, rounding = np.abs(M).max(), 64 * np.finfo(float).eps
    if np.abs(M - M.T).max() > max(tolerance, rounding) * largest_entry:
        raise ValueError(
            f"M is not symmetric: entries differ from their mirror images by up to {np.abs(M - M.T).max():g}. "
            "(M + M.T) / 2 gives the same distances."
        )
    eigenvalues, vectors = np.linalg.eigh(M / 2.0 + M.T / 2.0)
    largest = max(eigenvalues[-1], 0.0)
    zero = max(tolerance, len(M) * np.finfo(float).eps) * largest
    if eigenvalues[0] < -zero:
        raise ValueError(
            f"M is not positive semidefinite: its eigenvalues go from {eigenvalues[0]:g} to {eigenvalues[-1]:g}, and squared "
            "distances would be negative."
        )
    is_free = eigenvalues <= zero
    directions = orthonormal_rows(vectors.T[is_free], 1e-6)
    shrink = 1.0 - np.sqrt(eigenvalues[~is_free])
    counts = np.abs(shrink) > rounding * max(largest, 1.0)
    basis = np.vstack([directions, vectors.T[~is_free][counts]])
    return directions, basis, np.r_[np.ones(len(directions)), shrink[counts]]
