"""What every linear fair metric can do: a class for a metric needs nothing but `fit`."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from skfairrank._checks import validate_features
from skfairrank._queries import Queries
from skfairrank.fair_metrics._distances import distances_between, fair_features
from skfairrank.fair_metrics._projection import shrink_along

__all__ = ["LinearFairMetric"]

_BLOCK = 1 << 14  # rows transformed at once
_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)  # of a projection, beside the largest number that takes part in it


class LinearFairMetric(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Base class of fair metrics: Euclidean distance after features were made shorter, or longer, along some directions.

    A row x becomes :math:`z = x - \sum_r t_r (b_r \cdot x)\, b_r`, and the cost of turning one item into another is the squared
    distance of their z, which is :math:`d_X(x, x') = (x - x')^\top M (x - x')` with
    :math:`M = I - B^\top \mathrm{diag}(1 - (1 - t)^2)\, B`. Every symmetric positive semidefinite M is of that form.

    A subclass writes `fit`, which calls scikit-learn's `validate_data` and sets three arrays:

    Attributes
    ----------
    directions_ : ndarray, shape (K, n_features)
        Free moves, along which items count as the same: the attack of `SenSTIRRanker` moves along them first, in their units.
        There may be none (K = 0).
    basis_ : ndarray, shape (R, n_features)
        Orthonormal rows b_r. There may be none: then the metric is Euclidean.
    shrink_ : ndarray, shape (R,)
        t_r <= 1. What lies along b_r is left out with 1, halved with 1/2, and doubled with -1.
    sensitive_basis_ : ndarray, shape (number of r with t_r = 1, n_features)
        Those rows of `basis_` along which distance is zero.
    components_ : ndarray, shape (n_features, n_features)
        The matrix that makes z of x.

    Examples
    --------
    Distances along the last feature count half:

    >>> import numpy as np
    >>> from sklearn.utils.validation import validate_data
    >>> from skfairrank.fair_metrics import LinearFairMetric
    >>> class HalfOfTheLast(LinearFairMetric):
    ...     def fit(self, X, y=None):
    ...         n_features = validate_data(self, X).shape[1]
    ...         self.directions_ = np.zeros((0, n_features))
    ...         self.basis_, self.shrink_ = np.eye(n_features)[-1:], np.array([0.5])
    ...         return self
    >>> metric = HalfOfTheLast().fit([[1.0, 2.0]])
    >>> metric.transform([[1.0, 2.0]]).tolist(), metric.pair_distance([[[0, 0], [0, 6]]]).tolist()
    ([[1.0, 1.0]], [3.0])
    """

    @property
    def sensitive_basis_(self):
        """The rows of `basis_` along which distance is zero."""
        return self.basis_[np.asarray(self.shrink_) == 1.0]

    @property
    def components_(self):
        """The matrix I - B' diag(t) B that makes z of x, shape (n_features, n_features); symmetric."""
        return self._identity_less(self._fitted_shrink())

    def get_mahalanobis_matrix(self):
        """The matrix M of the squared distance (x - x')' M (x - x'), shape (n_features, n_features)."""
        return self._identity_less(1.0 - (1.0 - self._fitted_shrink()) ** 2)

    def _fitted_shrink(self):
        check_is_fitted(self, ["basis_", "shrink_"])
        return np.asarray(self.shrink_, dtype=np.float64)

    def _identity_less(self, share):
        """I - B' diag(share) B."""
        B = np.asarray(self.basis_, dtype=np.float64)
        return np.eye(B.shape[1]) - (B.T * share) @ B

    def transform(self, X):
        """The features that the metric compares, z: of a projector the "Project" baseline.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)

        Returns
        -------
        Z : ndarray of float, shape (n_rows, n_features)
            The Euclidean distance of two of its rows is their `pair_distance`.
        """
        check_is_fitted(self, ["basis_", "shrink_"])
        X = validate_features(self, X, dtype=[np.float64, np.float32], reset=False)
        basis, shrink = np.asarray(self.basis_, dtype=np.float64), self._fitted_shrink()
        touched = basis.any(axis=0)
        out = np.array(X)
        if not touched.any():
            return out
        origin, grid = getattr(self, "_origin", np.zeros(X.shape[1])), getattr(self, "_grid", None)
        fixed, entries = shrink_along(origin[None], basis, shrink), np.abs(basis)
        for start in range(0, len(X), _BLOCK):
            rows = X[start : start + _BLOCK].astype(np.float64) - origin
            left, size = shrink_along(rows, basis, shrink), np.abs(rows)
            taken = (size @ entries.T) @ np.abs(shrink)
            left[np.abs(left) <= _ROUNDING * (size + taken[:, None])] = 0.0
            left += fixed
            if grid is not None:
                left = np.round(left / grid) * grid
            out[start : start + _BLOCK, touched] = left[:, touched]
        return out

    def _measure_from(self, X):
        """Let `transform` give equal numbers for entries that differ by rounding alone, since trees and scalers see the sign of
        anything. A `fit` may call this with its validated rows once `basis_` and `shrink_` are set.

        What is left is measured from a row of the training data, so that what a projection annihilates, or leaves constant, is
        zero up to rounding, and is made zero. Then it is rounded to a grid far finer than the features and coarser than rounding.
        """
        self._origin = _row_of_its_own(X)
        far = np.maximum(np.abs(X.min(axis=0) - self._origin), np.abs(X.max(axis=0) - self._origin)).astype(np.float64)
        size = far + np.abs(self._origin)
        reach = size + np.abs(self.shrink_) @ (np.abs(self.basis_) @ size)
        self._grid = 2.0 ** np.ceil(np.log2(np.maximum(_ROUNDING * reach, np.finfo(float).tiny)) + 3)

    def pair_distance(self, pairs):
        """Distance of each pair; plain, not squared.

        Parameters
        ----------
        pairs : array-like, shape (n_pairs, 2, n_features)

        Returns
        -------
        distance : ndarray of float, shape (n_pairs,)
        """
        shrink = self._fitted_shrink()
        pairs = check_array(pairs, allow_nd=True, ensure_2d=False, dtype=np.float64, input_name="pairs")
        n_features = self.basis_.shape[1]
        if pairs.ndim != 3 or pairs.shape[1:] != (2, n_features):
            raise ValueError(f"pairs has shape {pairs.shape}: expected (n_pairs, 2, {n_features}).")
        return np.linalg.norm(shrink_along(pairs[:, 0] - pairs[:, 1], self.basis_, shrink), axis=1)

    def pair_score(self, pairs):
        """The negative of `pair_distance`: greater for more alike items, shape (n_pairs,)."""
        return -self.pair_distance(pairs)

    def query_distances(self, X, Y=None, *, qid_X=None, qid_Y=None):
        """Distance d_Q between queries: optimal transport between their items with cost d_X, uniform weights.

        Parameters
        ----------
        X : array-like, shape (n_rows_X, n_features)
        Y : array-like, shape (n_rows_Y, n_features), optional
            Default: X itself.
        qid_X, qid_Y : array-like of shape (n_rows_X,) and (n_rows_Y,)
            Query of each row. A missing one means that all rows are one query.

        Returns
        -------
        distances : ndarray of float, shape (n_queries_X, n_queries_Y)
            Queries in sorted order of their ids; in squared feature units.

        Raises
        ------
        ValueError
            If the cost between two items is not finite.
        """
        check_is_fitted(self, ["basis_", "shrink_"])
        if Y is None and qid_Y is not None:
            raise ValueError("query_distances got qid_Y without Y: give Y, or leave qid_Y out.")
        X, queries = self._grouped(X, qid_X, "qid_X")
        if Y is None:  # among themselves: each pair once
            Z, _, _ = fair_features(X, X, self)
            above = np.triu(np.ones((queries.n_queries, queries.n_queries), bool), 1)
            distances = distances_between(Z, queries.offsets, Z, queries.offsets, wanted=above)
            return distances + distances.T
        Y, others = self._grouped(Y, qid_Y, "qid_Y")
        Z, Z_other, _ = fair_features(X, Y, self)
        return distances_between(Z, queries.offsets, Z_other, others.offsets)

    def _grouped(self, X, qid, name):
        """Rows query by query, and which rows belong together."""
        X = validate_features(self, X, dtype=np.float64, reset=False)
        queries = Queries.single(len(X)) if qid is None else Queries.from_qid(qid, len(X), name=name)
        return queries.group(X), queries


def _row_of_its_own(X: np.ndarray) -> np.ndarray:
    """The first row in lexicographic order, which does not depend on how rows were shuffled, as float64."""
    rows = np.arange(len(X))
    for j in range(X.shape[1]):
        column = X[rows, j] if len(rows) < len(X) else X[:, j]
        rows = rows[column == column.min()]
        if len(rows) == 1:
            break
    return X[rows[0]].astype(np.float64)
