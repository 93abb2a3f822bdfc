"""Linear fair metrics: Euclidean distance after features were made shorter, or longer, along some directions."""

from __future__ import annotations

import numbers

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from skfairrank._checks import validate_features
from skfairrank._queries import Queries
from skfairrank.fair_metrics._distances import distances_between, fair_features, reach, shrink_along

_BLOCK = 1 << 14  # rows transformed at once
_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)  # of a projection, beside the largest number that takes part in it
_ATTRIBUTES = ("directions_", "basis_", "shrink_")
ACCEPTED = (
    "Give None (learned from sensitive_features), an array of sensitive directions, a fair metric such as "
    "SensitiveSubspaceMetric() or MahalanobisMetric(M), or FrozenEstimator(metric) around a fitted one."
)


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
    >>> metric.transform([[1.0, 2.0]]).tolist()
    [[1.0, 1.0]]
    >>> metric.pair_distance([[[0, 0], [0, 6]]]).tolist()
    [3.0]
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
        shrink = self._fitted_shrink()
        known = getattr(self, "_matrix", None)  # with all digits, in whatever units
        return self._identity_less(1.0 - (1.0 - shrink) ** 2) if known is None else np.array(known)

    def _fitted_shrink(self):
        check_is_fitted(self, ["basis_", "shrink_"])
        return np.asarray(self.shrink_, dtype=np.float64)

    def _identity_less(self, share):
        """I - B' diag(share) B."""
        B = np.asarray(self.basis_, dtype=np.float64)
        return np.eye(B.shape[1]) - (B.T * share) @ B

    def _take_matrix(self, M, tolerance):
        """Set what makes the distance that of M.

        Eigenvalues up to `tolerance` times the largest count as zero, in units in which M has ones on its diagonal: so features
        of very different units may meet.
        """
        rounding = np.finfo(float).eps * max(64, len(M))
        if np.abs(M - M.T).max() > max(tolerance, rounding) * np.abs(M).max():
            raise ValueError(
                f"M is not symmetric: entries differ from their mirror images by up to {np.abs(M - M.T).max():g}. "
                "(M + M.T) / 2 gives the same distances."
            )
        M = M / 2.0 + M.T / 2.0
        unit = np.sqrt(np.where(np.diag(M) > 0, np.diag(M), 1.0))
        values, vectors = np.linalg.eigh(M / unit[:, None] / unit)
        if values[0] < -max(tolerance, rounding) * max(values[-1], 0.0):
            low, high = np.linalg.eigvalsh(M)[[0, -1]]
            raise ValueError(
                f"M is not positive semidefinite: its eigenvalues go from {low:g} to {high:g}, and squared distances would be "
                "negative."
            )
        values[values <= max(tolerance, rounding) * values[-1]] = 0.0
        # M is F'F of this F. From the largest column to the smallest, so that small ones keep their digits.
        order = np.argsort(-unit)
        F = np.linalg.qr(((vectors * np.sqrt(values)).T * unit)[:, order], mode="r")
        _, scale, rows = np.linalg.svd(F)
        rows = rows[:, np.argsort(order)]
        is_free = np.arange(len(M)) >= np.count_nonzero(values)
        self.directions_ = orthonormal_rows(rows[is_free], 1e-7)
        counts = ~is_free & (np.abs(scale - 1.0) > rounding * np.maximum(scale, 1.0))
        self.basis_ = np.vstack([self.directions_, rows[counts]])
        self.shrink_ = np.r_[np.ones(len(self.directions_)), 1.0 - scale[counts]]
        self._matrix = (rows[~is_free].T * scale[~is_free] ** 2) @ rows[~is_free]
        steps = shrink_along(np.diag(1.0 / unit), self.basis_, self.shrink_)
        off = np.abs(steps @ steps.T - M / unit[:, None] / unit).max()
        if off > max(1e-3, 4.0 * tolerance):
            raise ValueError(
                f"M joins features of units too far apart for 16 digits: squared distances would be off by {off:.2g} of a "
                "feature's own. Scale the features, for instance by StandardScaler, and M with them."
            )

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
        origin, largest = getattr(self, "_origin", np.zeros(X.shape[1])), getattr(self, "_largest", None)
        fixed = shrink_along(origin[None], basis, shrink)
        if largest is not None:
            rounding = _ROUNDING * reach(largest, basis, shrink)
            grid = 2.0 ** np.ceil(np.log2(np.maximum(rounding, np.finfo(float).tiny)) + 3)
        for start in range(0, len(X), _BLOCK):
            rows = X[start : start + _BLOCK].astype(np.float64) - origin
            left, size = shrink_along(rows, basis, shrink), np.abs(rows)
            left[np.abs(left) <= _ROUNDING * reach(size, basis, shrink)] = 0.0
            left += fixed
            if largest is not None:
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
        self._largest = far + np.abs(self._origin)

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
        Eigenvalues below this times the largest count as zero, in units in which M has ones on its diagonal.

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
        self._take_matrix(M, self.rank_tolerance)
        self._measure_from(X)
        return self


def orthonormal_rows(directions: np.ndarray, tolerance: float) -> np.ndarray:
    """Orthonormal rows with the span of the directions. A feature that lies within it has a row of its own, and none in others.

    So such a feature is projected out exactly, and leaves no trace of rounding in another.

    Parameters
    ----------
    directions : ndarray of float64, shape (K, n_features)
        None of them zero.
    tolerance : float
        Singular values of the directions, scaled to unit length, below this times the largest count as zero.
    """
    n_features = directions.shape[1]
    if not len(directions):
        return np.zeros((0, n_features))
    unit = directions / np.abs(directions).max(axis=1, keepdims=True)  # first, since squares may overflow
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    used = np.flatnonzero(unit.any(axis=0))
    singular = np.linalg.svd(unit[:, used], compute_uv=False)
    kept = singular[singular > tolerance * singular[0]]
    rows = _orthogonalised(unit[:, used], len(kept))
    # Up to rounding: a gap in a feature of small units is no rounding of a gap in one of large units. At most 2 K features have
    # more than half of their length within the span, so that no square matrix of all features is needed.
    within = (rows**2).sum(axis=0) > 0.5
    near = np.flatnonzero(within)
    left = rows.T @ rows[:, near]
    left[near, np.arange(len(near))] -= 1.0
    within[near] = np.linalg.norm(left, axis=0) <= 64 * np.finfo(float).eps * kept[0] / kept[-1] * (len(kept) > 1)
    basis = np.zeros((len(rows), n_features))
    n_axes = int(within.sum())
    basis[np.arange(n_axes), used[within]] = 1.0
    basis[n_axes:, used[~within]] = _orthogonalised(rows[:, ~within], len(rows) - n_axes)
    return basis


def _orthogonalised(rows: np.ndarray, rank: int) -> np.ndarray:
    """Orthonormal rows with the span of so many of these: of what is left the longest, one after the other.

    By the method of Gram and Schmidt entries of features in small units keep their digits, which a decomposition rounds off.
    """
    left, basis = rows.copy(), np.zeros((rank, rows.shape[1]))
    for k in range(rank):
        row = left[np.argmax(np.linalg.norm(left, axis=1))]
        row = row / np.linalg.norm(row)
        row = row - (basis @ row) @ basis
        basis[k] = row / np.linalg.norm(row)
        left -= np.outer(left @ basis[k], basis[k])
    return basis


def fitted_metric(metric):
    """The fitted fair metric, without a FrozenEstimator around it.

    Raises
    ------
    TypeError
        If it is no fair metric.
    NotFittedError
        If it is not fitted.
    """
    fitted = unfrozen(metric)
    if hasattr(fitted, "fit") and not any(hasattr(fitted, name) for name in _ATTRIBUTES):
        raise NotFittedError(
            f"metric is a {type(fitted).__name__} that is not fitted, or is no fair metric: call fit first, before freezing it."
        )
    return check_fair_metric(fitted)


def check_fair_metric(metric, n_features=None):
    """Raise where a fitted object is no linear fair metric (see `LinearFairMetric`).

    Parameters
    ----------
    metric : object
        Of any class: its arrays `directions_`, `basis_` and `shrink_` are what counts.
    n_features : int, optional
        Number of features that it must have been fitted on; default: any.

    Returns
    -------
    metric : the object itself

    Raises
    ------
    TypeError
        If one of the three arrays is missing.
    ValueError
        If they do not fit each other or `n_features`, are not finite, rows of `basis_` are not orthonormal, or an entry of
        `shrink_` is above 1.
    """
    name = f"metric is a {type(metric).__name__}"
    missing = [attribute for attribute in _ATTRIBUTES if not hasattr(metric, attribute)]
    if missing:
        raise TypeError(f"{name}, which is no fitted fair metric: it has no {' and no '.join(missing)}. {ACCEPTED}")
    arrays = directions, basis, shrink = [np.asarray(getattr(metric, attribute)) for attribute in _ATTRIBUTES]
    for attribute, array, n_axes in zip(_ATTRIBUTES, arrays, (2, 2, 1), strict=True):
        if array.ndim != n_axes or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ValueError(
                f"{name} whose {attribute} has shape {array.shape} and dtype {array.dtype}: it must hold finite numbers and have "
                f"{n_axes} axes."
            )
    if directions.shape[1] != basis.shape[1] or len(basis) != len(shrink):
        raise ValueError(
            f"{name} whose directions_ {directions.shape}, basis_ {basis.shape} and shrink_ {shrink.shape} must have the shapes "
            "(K, n_features), (R, n_features) and (R,)."
        )
    if n_features is not None and basis.shape[1] != n_features:
        raise ValueError(
            f"metric was fitted on {basis.shape[1]} features, but X has {n_features}: freeze a metric that was fitted on the "
            "same columns (after the same preprocessing)."
        )
    if len(basis) and np.abs(basis @ basis.T - np.eye(len(basis))).max() > 1e-6:
        raise ValueError(
            f"{name} whose basis_ has rows that are not orthonormal. np.linalg.qr(basis.T)[0].T makes them so."
        )
    if (shrink > 1).any():
        raise ValueError(
            f"{name} whose shrink_ reaches {shrink.max():g}: it must be at most 1, which leaves nothing of a direction."
        )
    return metric


def unfrozen(metric):
    """What is inside of a FrozenEstimator, or the metric itself."""
    return metric.estimator if isinstance(metric, FrozenEstimator) else metric


def check_same_features(metric, names) -> None:
    """Raise ValueError where a fitted metric knows other feature names than `names` (None: no names, nothing to compare)."""
    known = getattr(metric, "feature_names_in_", None)
    if known is not None and names is not None and list(known) != list(names):
        raise ValueError(
            f"metric was fitted on the features {list(known)}, but here they are {list(names)}: its directions would apply to "
            "other columns. Give the same columns in the same order."
        )


def _row_of_its_own(X: np.ndarray) -> np.ndarray:
    """The first row in lexicographic order, which does not depend on how rows were shuffled, as float64."""
    rows = np.arange(len(X))
    for j in range(X.shape[1]):
        column = X[rows, j] if len(rows) < len(X) else X[:, j]
        rows = rows[column == column.min()]
        if len(rows) == 1:
            break
    return X[rows[0]].astype(np.float64)
