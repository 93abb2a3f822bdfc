r"""Score functions h_theta: from the features of an item to its score. Parameters are one flat vector theta.

Training asks a score for its values, for its gradient in the parameters (pulled back from gradients in the scores), and for its
gradient in the features, along which the adversary moves items. A class needs the four methods of `Score` that raise; the
others are for rows of a large X, and follow from these.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from skfairrank._kernels import linear as _linear
from skfairrank._threads import over_range

__all__ = ["LinearScore", "Score"]

# Rows of X that are copied at once for scores that cannot read them in place.
_ROWS = 1 << 14
# Rows whose gradients are summed one after the other; sums of such blocks are added in their order, on any number of threads.
_BLOCK = 4096


class Score(BaseEstimator):
    """What every score function can do."""

    #: Whether h(x) = theta . x. Only then is the regulariser known in closed form.
    is_linear = False

    def initial_parameters(self, n_features: int, rng: np.random.Generator) -> np.ndarray:
        """Where training starts: theta of shape (n_parameters,)."""
        raise NotImplementedError(f"{type(self).__name__} has no initial_parameters(n_features, rng).")

    def values(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Scores of the items X (n_items, n_features), shape (n_items,)."""
        raise NotImplementedError(f"{type(self).__name__} has no values(theta, X).")

    def parameter_gradient(self, theta: np.ndarray, X: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Gradient of ``sum_i g_i h(x_i)`` in theta, shape (n_parameters,)."""
        raise NotImplementedError(f"{type(self).__name__} has no parameter_gradient(theta, X, g).")

    def input_gradient(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Gradient of each item's score in its own features, shape (n_items, n_features)."""
        raise NotImplementedError(f"{type(self).__name__} has no input_gradient(theta, X).")

    def values_of_rows(self, theta, X, rows=None):
        """Scores of some rows of X (of all: None), shape (n_rows,). X may be float32 or memory-mapped."""
        n = len(X) if rows is None else len(rows)
        blocks = (slice(at, at + _ROWS) for at in range(0, n, _ROWS))
        parts = [self.values(theta, _read(X, block if rows is None else rows[block])) for block in blocks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def pull_back(self, theta, X, rows, g, scale, out):
        """out = scale times the gradient of ``sum_i g_i h(X[rows[i]])`` in theta."""
        out[:] = 0.0
        for at in range(0, len(rows), _ROWS):
            block = slice(at, at + _ROWS)
            out += self.parameter_gradient(theta, _read(X, rows[block]), g[block])
        out *= scale


def _read(X, rows):
    return np.asarray(X[rows], dtype=np.float64)


class LinearScore(Score):
    """h(x) = theta . x, which needs no copy of X.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank.scores import LinearScore
    >>> LinearScore().values(np.array([2.0, 1.0]), np.array([[1.0, 0.0], [1.0, 3.0]])).tolist()
    [2.0, 5.0]
    """

    is_linear = True

    def initial_parameters(self, n_features, rng):
        return rng.uniform(-INITIAL_WEIGHT, INITIAL_WEIGHT, n_features)

    def values(self, theta, X):
        return self.values_of_rows(theta, X)

    def parameter_gradient(self, theta, X, g):
        return g @ X

    def input_gradient(self, theta, X):
        return np.broadcast_to(theta, X.shape)

    def values_of_rows(self, theta, X, rows=None):
        # Not X @ theta: BLAS may round equal rows differently, depending on where they stand.
        n = len(X) if rows is None else len(rows)
        out, work = np.empty(n), _work(n, len(theta))
        if rows is None:
            over_range(_linear.all_scores, n, work, X, theta, out)
        else:
            over_range(_linear.linear_scores, n, work, X, rows, theta, out)
        return out

    def pull_back(self, theta, X, rows, g, scale, out):
        n_blocks = -(-len(rows) // _BLOCK)
        if n_blocks <= 1:
            _linear.pull_back(X, rows, g, scale, out)
            return
        parts = np.empty((n_blocks, len(out)))
        over_range(_linear.pull_back_blocks, n_blocks, _work(len(rows), len(out)), X, rows, g, scale, _BLOCK, parts)
        _linear.add_up(parts, out)


INITIAL_WEIGHT = 1e-4  # weights start uniform in +-1e-4 (Bower et al. 2021, appendix B)


def _work(n_rows: int, n_features: int) -> float:
    """Nanoseconds, roughly."""
    return n_rows * (5.0 + 0.25 * n_features)


SCORES = {"linear": LinearScore}


def make_score(score_function) -> Score:
    """The score function that a ranker's parameter names.

    Raises
    ------
    TypeError
        If it is neither one of the names nor has the methods of `Score`.
    """
    if isinstance(score_function, str) and score_function in SCORES:
        return SCORES[score_function]()
    needed = ("initial_parameters", "values", "parameter_gradient", "input_gradient", "values_of_rows", "pull_back")
    missing = [name for name in needed if not callable(getattr(score_function, name, None))]
    if isinstance(score_function, type) or missing:
        raise TypeError(
            f"score_function={score_function!r}: give one of {sorted(SCORES)}, or an object of a class derived from "
            f"skfairrank.scores.Score (missing: {', '.join(missing) or 'an object, not the class'})."
        )
    return score_function
