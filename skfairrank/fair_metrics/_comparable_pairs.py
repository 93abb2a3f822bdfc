"""A fair metric from pairs of items that people call comparable or not (Mukherjee et al. 2020, EXPLORE)."""

from __future__ import annotations

import numbers

import numpy as np
from scipy.optimize import minimize
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval

from skfairrank.fair_metrics._base import LinearFairMetric
from skfairrank.fair_metrics._mahalanobis import factors_of

__all__ = ["ComparablePairsMetric"]


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
        free, self.basis_, self.shrink_ = factors_of(M, 1e-10)
        apart = np.sqrt((((gaps[comparable] * unit) @ free.T) ** 2).mean(axis=0))
        self.directions_ = free * np.where(apart > 0, apart, 1.0)[:, None]
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
