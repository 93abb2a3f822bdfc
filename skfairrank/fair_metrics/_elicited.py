"""Fair metrics from people: who is comparable, in groups or in pairs (Mukherjee et al. 2020)."""

from __future__ import annotations

import numbers

import numpy as np
from scipy.optimize import minimize
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval

from skfairrank._checks import as_values, sorted_codes, validate_features
from skfairrank.fair_metrics._linear import LinearFairMetric, orthonormal_rows


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
    >>> metric = ComparableGroupsMetric().fit(
    ...     X, comparable_groups=["first", "first", "second", "second"]
    ... )
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


class ComparablePairsMetric(LinearFairMetric):
    r"""The fair metric by which comparable items are near each other, and others far.

    The matrix M maximises the likelihood of what people said of pairs, where a pair is comparable with probability
    :math:`2 \sigma(-(x - x')^\top M (x - x'))`: 1 where the items are equal, and less the farther apart they are. Where no pair
    differs in some direction, nothing contradicts that it does not count: give many more pairs than features.

    Parameters
    ----------
    alpha : float, default=0.001
        Strength of a penalty on the trace of M, in features of unit scale: it keeps M finite where a feature alone tells
        comparable from other pairs.
    rank_tolerance : float, default=0.01
        Eigenvalues of M (in features of unit scale) below this times the largest become zero: along their directions items count
        as the same, and the attack of `SenSTIRRanker` moves freely.
    max_iter : int, default=1000
        Steps of L-BFGS at most.
    random_state : int, RandomState or None, default=None
        For the start, near the identity.

    Attributes
    ----------
    directions_ : ndarray, shape (K, n_features)
        Directions along which M is zero, each as long as comparable items lie apart along it (root mean square).
    basis_ : ndarray, shape (R, n_features)
    shrink_ : ndarray, shape (R,)
        With `basis_`, the factors of M; see `LinearFairMetric`.
    n_iter_ : int
    n_features_in_ : int

    References
    ----------
    Mukherjee, Yurochkin, Banerjee and Sun (2020). Two simple ways to learn individual fairness metrics from data. ICML.

    Examples
    --------
    People were told apart by the first feature only:

    >>> import numpy as np
    >>> from skfairrank.fair_metrics import ComparablePairsMetric
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(200, 2, 2))
    >>> comparable = np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1
    >>> metric = ComparablePairsMetric(random_state=0).fit(pairs, comparable)
    >>> a, b, c = [0, 0], [2, 0], [0, 2]
    >>> far, near = metric.pair_distance([[a, b], [a, c]])
    >>> bool(far > 5 * near)
    True
    """

    _parameter_constraints: dict = {
        "alpha": [Interval(numbers.Real, 0, None, closed="neither")],
        "rank_tolerance": [Interval(numbers.Real, 0, 1, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, *, alpha=0.001, rank_tolerance=0.01, max_iter=1000, random_state=None):
        self.alpha = alpha
        self.rank_tolerance = rank_tolerance
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, pairs, comparable):
        """Learn M.

        Parameters
        ----------
        pairs : array-like, shape (n_pairs, 2, n_features)
        comparable : array-like of bool, shape (n_pairs,)
            Whether people call the two items of a pair comparable.

        Raises
        ------
        ValueError
            If the shapes do not fit, all pairs are comparable or none is, equal items are called not comparable, or no pair
            differs in a feature.
        """
        self._validate_params()
        pairs, comparable = _checked(pairs, comparable)
        gaps = pairs[:, 0] - pairs[:, 1]
        unit = np.sqrt((gaps**2).mean(axis=0))
        gaps /= unit
        eigenvalues, vectors = np.linalg.eigh(self._learn(gaps, comparable))
        is_free = eigenvalues <= self.rank_tolerance * eigenvalues[-1]
        eigenvalues[is_free] = 0.0
        M = (vectors * eigenvalues) @ vectors.T / np.outer(unit, unit)
        self._take_matrix(M, 1e-10)
        apart = np.sqrt((((gaps[comparable] * unit) @ self.directions_.T) ** 2).mean(axis=0))
        self.directions_ = self.directions_ * np.where(apart > 0, apart, 1.0)[:, None]
        self.n_features_in_ = pairs.shape[2]
        self._measure_from(pairs.reshape(-1, pairs.shape[2]))
        return self

    def _learn(self, gaps, comparable):
        """The matrix L'L of the largest penalised likelihood; of full size, L has no local optimum that is not global."""
        n, d = gaps.shape
        rng = check_random_state(self.random_state)
        start = np.eye(d) / np.sqrt(d) + 1e-3 * rng.standard_normal((d, d))

        def loss(flat):
            L = flat.reshape(d, d)
            z = gaps @ L.T
            squared = np.maximum((z**2).sum(axis=1), 1e-300)
            # log of 2 sigma(-s) and of 1 - 2 sigma(-s) = tanh(s / 2), and the slopes of their negatives in s
            half = np.minimum(squared / 2.0, 300.0)
            value = np.where(comparable, np.logaddexp(0.0, squared) - np.log(2.0), -np.log(np.tanh(half)))
            slope = np.where(comparable, 1.0 / (1.0 + np.exp(-squared)), -1.0 / np.sinh(2.0 * half))
            gradient = (2.0 / n) * (z * slope[:, None]).T @ gaps + 2.0 * self.alpha * L
            return value.mean() + self.alpha * (L**2).sum(), gradient.ravel()

        found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter})
        self.n_iter_ = int(found.nit)
        L = found.x.reshape(d, d)
        return L.T @ L


def _checked(pairs, comparable):
    """Pairs as float64 and what was said of them as bool, if something can be learned from them."""
    pairs = check_array(pairs, allow_nd=True, ensure_2d=False, dtype=np.float64, input_name="pairs")
    if pairs.ndim != 3 or pairs.shape[1] != 2:
        raise ValueError(f"pairs has shape {pairs.shape}: expected (n_pairs, 2, n_features).")
    comparable = np.asarray(comparable)
    if comparable.shape != (len(pairs),) or not np.isin(comparable, (0, 1)).all():
        raise ValueError(f"comparable has shape {comparable.shape}: give True or False for each of {len(pairs)} pairs.")
    comparable = comparable.astype(bool)
    if comparable.all() or not comparable.any():
        raise ValueError(f"comparable is {bool(comparable[0])} for all pairs: pairs of both kinds are needed.")
    differs = pairs[:, 0] != pairs[:, 1]
    if not differs.any(axis=0).all():
        raise ValueError(
            f"No pair differs in the features {np.flatnonzero(~differs.any(axis=0)).tolist()}, so that nothing can be learned of "
            "them: leave them out, or add pairs that do."
        )
    impossible = ~differs.any(axis=1) & ~comparable
    if impossible.any():
        raise ValueError(
            f"{int(impossible.sum())} pairs of equal items are called not comparable, which no distance explains: leave them out."
        )
    return pairs, comparable
