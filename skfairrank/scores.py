r"""Score functions h_theta: from the features of an item to its score. Parameters are one flat vector theta.

Training asks a score for its values, for its gradient in the parameters (pulled back from gradients in the scores), and for its
gradient in the features, along which the adversary moves items. A class needs the four methods of `Score` that raise; the
others, for rows of a large X and for many moves of the same items, follow from these.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from skfairrank._kernels import linear as _linear
from skfairrank._threads import over_range

__all__ = ["FunctionScore", "LinearScore", "MLPScore", "Score"]

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

    def along(self, theta, X, V=None):
        """The items X (n_items, n_features) on the move: a function that is asked many times, at the same theta.

        Parameters
        ----------
        V : ndarray of float64, shape (n_moves, n_features), optional
            Rows along which items move; by default each feature moves by itself.

        Returns
        -------
        at : callable(c) -> values, slopes
            From moves c (n_items, n_moves) to scores of ``X + c V``, shape (n_items,), and their gradients in c, of its shape.
        """

        def at(c):
            Z = X + (c if V is None else c @ V)
            slopes = self.input_gradient(theta, Z)
            return self.values(theta, Z), slopes if V is None else slopes @ V.T

        return at

    def values_of_rows(self, theta, X, rows=None):
        """Scores of some rows of X (of all: None), shape (n_rows,). X may be float32 or memory-mapped."""
        n = len(X) if rows is None else len(rows)
        blocks = (slice(at, at + _ROWS) for at in range(0, n, _ROWS))
        parts = [self.values(theta, _read(X, block if rows is None else rows[block])) for block in blocks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def vjp(self, theta, X, rows, g, scale, out):
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
    >>> LinearScore().values(
    ...     np.array([2.0, 1.0]), np.array([[1.0, 0.0], [1.0, 3.0]])
    ... ).tolist()
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

    def vjp(self, theta, X, rows, g, scale, out):
        if len(rows) <= _BLOCK:
            _linear.weight_gradient(0, 1, X, rows, g, scale, _BLOCK, out.reshape(1, -1))
            return
        parts = np.empty((-(-len(rows) // _BLOCK), len(out)))
        over_range(_linear.weight_gradient, len(parts), _work(len(rows), len(out)), X, rows, g, scale, _BLOCK, parts)
        parts.sum(axis=0, out=out)


INITIAL_WEIGHT = 1e-4  # weights start uniform in +-1e-4 (Bower et al. 2021, appendix B)


def _work(n_rows: int, n_features: int) -> float:
    """Nanoseconds, roughly."""
    return n_rows * (5.0 + 0.25 * n_features)


class MLPScore(Score):
    r"""A neural network: layers :math:`z_{l+1} = \sigma(W_l^\top z_l + b_l)`, and the score :math:`w^\top z_L`.

    There is no intercept at the end: it would change no ranking. Layers start as in Glorot and Bengio (2010), intercepts at zero.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(32,)
        Units of each hidden layer; none makes the score linear.
    activation : {"tanh", "softplus", "relu"}, default="tanh"
        The regulariser is made for smooth scores; "relu" is not smooth at zero.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank.scores import MLPScore
    >>> score = MLPScore((2,))
    >>> # W is the identity, b is zero, w = (1, -1)
    >>> theta = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, -1.0])
    >>> score.values(theta, np.array([[1.0, 0.5]])).round(6).tolist()  # tanh(1) - tanh(.5)
    [0.299477]
    """

    _parameter_constraints: dict = {
        "hidden_layer_sizes": [tuple, list, Integral],
        "activation": [StrOptions({"tanh", "softplus", "relu"})],
    }

    def __init__(self, hidden_layer_sizes=(32,), activation="tanh"):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation

    def initial_parameters(self, n_features, rng):
        self._validate_params()
        shapes = self._shapes(n_features)
        parts = []
        for fan_in, fan_out in shapes:
            bound = np.sqrt(6.0 / (fan_in + fan_out))
            parts += [rng.uniform(-bound, bound, fan_in * fan_out), np.zeros(fan_out)]
        n_last = shapes[-1][1] if shapes else n_features
        bound = np.sqrt(6.0 / (n_last + 1))
        return np.concatenate([*parts, rng.uniform(-bound, bound, n_last)])

    def values(self, theta, X):
        layers, w = self._unpack(theta, X.shape[1])
        return self._forward(layers, w, X)[0]

    def parameter_gradient(self, theta, X, g):
        layers, w = self._unpack(theta, X.shape[1])
        _, inputs, slopes = self._forward(layers, w, X)
        parts, back = [g @ inputs[-1]], np.multiply.outer(g, w)
        for (W, _), z, slope in zip(layers[::-1], inputs[-2::-1], slopes[::-1], strict=True):
            back = back * slope
            parts += [back.sum(axis=0), (z.T @ back).ravel()]
            back = back @ W.T
        return np.concatenate(parts[::-1])

    def input_gradient(self, theta, X):
        layers, w = self._unpack(theta, X.shape[1])
        _, _, slopes = self._forward(layers, w, X)
        back = np.broadcast_to(w, (len(X), len(w)))
        for (W, _), slope in zip(layers[::-1], slopes[::-1], strict=True):
            back = (back * slope) @ W.T
        return back

    def along(self, theta, X, V=None):
        # The first layer sees X W + b + c (V W): where few numbers move, nothing of the width of X is touched again.
        layers, w = self._unpack(theta, X.shape[1])
        if not layers:
            return super().along(theta, X, V)
        (W, b), activation = layers[0], _ACTIVATIONS[self.activation]
        unmoved, W = X @ W + b, W if V is None else V @ W

        def at(c):
            entering = c @ W
            entering += unmoved
            z, slope = activation(entering)
            slopes = [slope]
            for U, intercept in layers[1:]:
                z, slope = activation(z @ U + intercept)
                slopes.append(slope)
            back = slopes[-1] * w
            for (U, _), slope in zip(layers[:0:-1], slopes[-2::-1], strict=True):
                back = (back @ U.T) * slope
            return z @ w, back @ W.T

        return at

    def _shapes(self, n_features):
        """(fan in, fan out) of each hidden layer."""
        given = self.hidden_layer_sizes
        sizes = [given] if isinstance(given, Integral) else list(given)
        if not all(isinstance(size, Integral) and not isinstance(size, bool) and int(size) >= 1 for size in sizes):
            raise ValueError(f"hidden_layer_sizes={given!r}: give numbers of units >= 1, such as (32,) or (64, 16).")
        return list(zip([n_features, *sizes[:-1]], sizes, strict=True)) if sizes else []

    def _unpack(self, theta, n_features):
        """(W, b) of each hidden layer, and w."""
        layers, at = [], 0
        for fan_in, fan_out in self._shapes(n_features):
            W = theta[at : at + fan_in * fan_out].reshape(fan_in, fan_out)
            at += fan_in * fan_out
            layers.append((W, theta[at : at + fan_out]))
            at += fan_out
        return layers, theta[at:]

    def _forward(self, layers, w, X):
        """Scores, the inputs of all layers and of w, and the slopes of the activations."""
        z, inputs, slopes = X, [X], []
        for W, b in layers:
            z, slope = _ACTIVATIONS[self.activation](_times(z, W) + b)
            inputs.append(z)
            slopes.append(slope)
        return (z * w).sum(axis=1), inputs, slopes


# Rows of a matrix product at a time. Always as many, so that BLAS rounds equal rows equally wherever they stand.
_TOGETHER = 64


def _times(Z, W):
    """Z W."""
    n = len(Z)
    padded = np.zeros((-(-n // _TOGETHER) * _TOGETHER, Z.shape[1]))
    padded[:n] = Z
    return (padded.reshape(-1, _TOGETHER, Z.shape[1]) @ W).reshape(len(padded), -1)[:n]


def _tanh(a):
    z = np.tanh(a)
    return z, 1.0 - z * z


def _softplus(a):
    return np.logaddexp(0.0, a), expit(a)


def _relu(a):
    return np.maximum(a, 0.0), (a > 0).astype(np.float64)


_ACTIVATIONS = {"tanh": _tanh, "softplus": _softplus, "relu": _relu}


class FunctionScore(Score):
    """Any function of parameters and features, written in `autograd.numpy`, which finds its gradients.

    Parameters
    ----------
    function : callable(theta, X) -> array of shape (n_items,)
        The score of each item from the parameters, a flat array, and its own features alone. Written with `autograd.numpy` in the
        place of `numpy`; defined in a module, so that a fitted ranker can be pickled.
    initial : array-like of shape (n_parameters,), or callable(rng, n_features) -> such an array
        Where training starts.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from skfairrank.scores import FunctionScore
    >>> score = FunctionScore(lambda theta, X: np.dot(X, theta) ** 2, initial=[1.0, 2.0])
    >>> theta, X = np.array([1.0, 2.0]), np.array([[1.0, 1.0]])
    >>> score.values(theta, X).tolist(), score.input_gradient(theta, X).tolist()
    ([9.0], [[6.0, 12.0]])
    """

    _parameter_constraints: dict = {"function": [callable], "initial": [callable, "array-like"]}

    def __init__(self, function, initial):
        self.function = function
        self.initial = initial

    def initial_parameters(self, n_features, rng):
        self._validate_params()
        given = self.initial(rng, n_features) if callable(self.initial) else self.initial
        theta = np.array(given, dtype=np.float64)
        if theta.ndim != 1 or not np.isfinite(theta).all():
            raise ValueError(
                f"FunctionScore's initial has shape {theta.shape}: give a flat array of finite numbers, or a function of "
                "(rng, n_features) that returns one."
            )
        return theta

    def values(self, theta, X):
        # Each distinct row once: how a function's sums are rounded depends on where a row stands among the others.
        first, number = _distinct(X)
        return self._values(theta, X[first])[number]

    def values_of_rows(self, theta, X, rows=None):
        if rows is not None or len(X) <= _ROWS:
            return super().values_of_rows(theta, X, rows)
        first, number = _distinct(X)
        return super().values_of_rows(theta, X, first)[number]

    def _values(self, theta, X):
        values = np.asarray(self.function(theta, X), dtype=np.float64)
        if values.shape != (len(X),):
            raise ValueError(
                f"FunctionScore's function returned shape {values.shape} for {len(X)} items: it must return one score each, "
                f"shape ({len(X)},)."
            )
        return values

    def parameter_gradient(self, theta, X, g):
        return _traced(lambda at: self.function(at, X), theta)[1](g)

    def input_gradient(self, theta, X):
        return _values_and_slopes(lambda Z: self.function(theta, Z), X)[1]

    def along(self, theta, X, V=None):
        def function(Z):
            return self.function(theta, Z)

        def at(c):
            Z = X + (c if V is None else c @ V)
            if V is not None and len(V) == 1:
                values, slopes = _values_and_slopes_along(function, Z, V[0])
                return values, slopes[:, None]
            values, slopes = _values_and_slopes(function, Z)
            return values, slopes if V is None else slopes @ V.T

        return at


def _distinct(X):
    """The first row of each kind, in their order, and for each row the number of its kind."""
    rows = np.ascontiguousarray(X) + 0.0  # -0 is 0
    kinds = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, number = np.unique(kinds, return_index=True, return_inverse=True)
    return np.sort(first), np.argsort(np.argsort(first))[number]


# autograd.core's functions take one argument, and spend an eighth less time on a small network than those of autograd.
# autograd is slow to import, and only needed here.


def _traced(function, at):
    """Values of a function of one array, and the function that takes gradients in the values to gradients in that array."""
    from autograd.core import make_vjp

    try:
        back, values = make_vjp(function, at)
    except (
        Exception
    ) as error:  # of any kind: the function has parts that take numbers, and not what autograd puts in their place
        raise TypeError(_NOT_AUTOGRAD) from error
    return _numbers(values), back


def _values_and_slopes(function, Z):
    """Values of items that depend on their own rows of Z alone, and their gradients in these rows."""
    values, back = _traced(function, Z)
    return values, back(np.ones(len(Z)))


def _values_and_slopes_along(function, Z, v):
    """Values, and their slopes in the one direction v: forward alone, which takes two thirds of the time of forward and back."""
    from autograd.core import make_jvp

    try:
        values, slopes = make_jvp(function, Z)(np.broadcast_to(v, Z.shape))
        return _numbers(values), slopes
    except (
        Exception
    ):  # of any kind: a part of the function may have slopes for the way back only, which says what else is wrong
        values, slopes = _values_and_slopes(function, Z)
        return values, slopes @ v


def _numbers(values):
    """The values, where they are an array of numbers: NumPy's own functions make one of objects from what autograd passes."""
    if not isinstance(values, np.ndarray) or values.dtype == object:
        raise TypeError(_NOT_AUTOGRAD)
    return values


_NOT_AUTOGRAD = (
    "autograd cannot follow FunctionScore's function: write it with autograd.numpy in the place of numpy (import autograd.numpy "
    "as np), with autograd.scipy in the place of scipy, and without float(...), loops that fill an array, or lists of scores."
)


SCORES = {"linear": LinearScore, "mlp": MLPScore}


def make_score(score_function) -> Score:
    """The score function that a ranker's parameter names.

    Raises
    ------
    TypeError
        If it is neither one of the names nor has the methods of `Score`.
    """
    if isinstance(score_function, str) and score_function in SCORES:
        return SCORES[score_function]()
    needed = (
        "initial_parameters",
        "values",
        "parameter_gradient",
        "input_gradient",
        "along",
        "values_of_rows",
        "vjp",
    )
    missing = [name for name in needed if not callable(getattr(score_function, name, None))]
    if isinstance(score_function, type) or missing:
        raise TypeError(
            f"score_function={score_function!r}: give one of {sorted(SCORES)}, or an object of a class derived from "
            f"skfairrank.scores.Score (missing: {', '.join(missing) or 'an object, not the class'})."
        )
    return score_function


def check_start(score: Score, theta: np.ndarray, X: np.ndarray) -> None:
    """Whether a score can be trained, seen on some rows where training starts.

    Parameters
    ----------
    score : Score
    theta : ndarray, shape (n_parameters,)
    X : ndarray, shape (n_rows, n_features)

    Raises
    ------
    ValueError
        If its scores or their gradient in theta have another shape than they should, or are not finite, or an item has another
        score by itself than among others. What the score itself raises has a note that names it.
    """
    name, items = type(score).__name__, _read(X, slice(LOOKED_AT))
    try:
        scores = np.asarray(score.values(theta, items), dtype=np.float64)
        alone = np.asarray(score.values(theta, items[:1]), dtype=np.float64)
        gradient = np.asarray(score.parameter_gradient(theta, items, np.ones(len(items))), dtype=np.float64)
    except Exception as error:
        error.add_note(f"{name} raised it where training starts: theta has shape {theta.shape}, X {items.shape}.")
        raise
    for what, found, shape in (("scores", scores, (len(items),)), ("gradient in theta", gradient, theta.shape)):
        if found.shape != shape:
            raise ValueError(
                f"{name} has {what} of shape {found.shape} where training starts, and {shape} was expected."
            )
        if not np.isfinite(found).all():
            first = np.flatnonzero(~np.isfinite(found))[0]
            raise ValueError(
                f"{name} has {what} not finite where training starts ({found[first]} in place {first}): begin at other "
                "parameters, keep the function away from where it is undefined, or scale the features (StandardScaler)."
            )
    if not np.allclose(alone, scores[:1], rtol=0.0, atol=_ALIKE * np.abs(scores).max()):
        raise ValueError(
            f"{name} gives the first row the score {alone[0]:g} by itself and {scores[0]:g} among {len(items)} rows: a score "
            "must depend on the features of its own row alone, because the attack moves each row by itself."
        )


LOOKED_AT = 1000  # rows
_ALIKE = 1e-4  # of the largest score; single precision will do
