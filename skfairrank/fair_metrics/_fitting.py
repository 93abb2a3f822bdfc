"""What counts as a fair metric, and how the rankers' parameter `metric` becomes a fitted one."""

from __future__ import annotations

import inspect

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from skfairrank.fair_metrics._subspace import SensitiveSubspaceMetric

__all__ = ["check_fair_metric", "check_same_features", "fit_metric", "fitted_metric", "unfrozen"]

_ATTRIBUTES = ("directions_", "basis_", "shrink_")
_ACCEPTED = (
    "Give None (learned from sensitive_features), an array of sensitive directions, a fair metric such as "
    "SensitiveSubspaceMetric() or MahalanobisMetric(M), or FrozenEstimator(metric) around a fitted one."
)


def fit_metric(metric, X, sensitive_features=None, y=None, *, needed=True, uses_directions=True):
    """The fitted fair metric from what `SenSTIRRanker(metric=...)` accepts; what is passed is left as it is.

    Parameters
    ----------
    metric : None, fair metric, FrozenEstimator or array-like of shape (K, n_features)
    X : array-like, shape (n_rows, n_features)
    sensitive_features : array-like, optional
        Given to the metric's `fit` where that takes them. A SensitiveSubspaceMetric uses them only where it has neither
        directions nor sensitive_columns.
    y : array-like of float, shape (n_rows,), optional
        Relevances, for a SensitiveSubspaceMetric that compares groups at equal relevance.
    needed : bool
        False says nothing where nothing is sensitive.
    uses_directions : bool
        False says nothing of what directions leave of the groups' difference, or of the features.

    Raises
    ------
    TypeError
        If `metric` is no fair metric.
    ValueError
        If it is frozen and not fitted, or was fitted on other features than those of X, or its arrays are not in order.
    """
    if unfrozen(metric) is not metric:
        return _as_fitted(unfrozen(metric), X)
    if metric is None:
        metric = SensitiveSubspaceMetric()
    elif not hasattr(metric, "fit"):
        metric = SensitiveSubspaceMetric(directions=_as_directions(metric))
    elif isinstance(metric, type):
        raise TypeError(f"metric is the class {metric.__name__}: pass an instance, {metric.__name__}(...).")
    else:
        metric = clone(metric, safe=False)
    if isinstance(metric, SensitiveSubspaceMetric):
        return metric._fit(X, sensitive_features, y, warn=needed, uses_directions=uses_directions)
    given = {"sensitive_features": sensitive_features} if _takes_sensitive_features(metric) else {}
    try:
        inspect.signature(metric.fit).bind(X, **given)
    except TypeError as error:
        raise TypeError(
            f"metric is a {type(metric).__name__}, whose fit needs more than the X and sensitive_features that a ranker has "
            f"({error}). If it is a fair metric, fit it, and pass FrozenEstimator(metric). {_ACCEPTED}"
        ) from error
    metric.fit(X, **given)
    return check_fair_metric(metric, X.shape[1])


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
            f"metric is a {type(fitted).__name__} that is not fitted, or is no fair metric: call fit first."
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
        raise TypeError(f"{name}, which is no fitted fair metric: it has no {' and no '.join(missing)}. {_ACCEPTED}")
    directions, basis, shrink = (np.asarray(getattr(metric, attribute)) for attribute in _ATTRIBUTES)
    _check_shapes(name, directions, basis, shrink)
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


def _check_shapes(name, *arrays):
    for attribute, array, n_axes in zip(_ATTRIBUTES, arrays, (2, 2, 1)):
        if array.ndim != n_axes or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ValueError(
                f"{name} whose {attribute} has shape {array.shape} and dtype {array.dtype}: it must hold finite numbers and have "
                f"{n_axes} axes."
            )
    directions, basis, shrink = arrays
    if directions.shape[1] != basis.shape[1] or len(basis) != len(shrink):
        raise ValueError(
            f"{name} whose directions_ {directions.shape}, basis_ {basis.shape} and shrink_ {shrink.shape} must have the shapes "
            "(K, n_features), (R, n_features) and (R,)."
        )


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


def _as_fitted(metric, X):
    """A metric that is used as it was fitted, if it was fitted on the features of X."""
    if hasattr(metric, "fit") and not any(hasattr(metric, name) for name in _ATTRIBUTES):
        raise ValueError(
            f"metric is a {type(metric).__name__} that is frozen but not fitted, or is no fair metric: fit it before freezing it."
        )
    check_fair_metric(metric, X.shape[1])
    check_same_features(metric, getattr(X, "columns", None))
    return metric


def _as_directions(metric):
    """What may be an array of directions; its entries are checked when it is used."""
    is_array = hasattr(metric, "__len__") or hasattr(metric, "__array__")
    if not is_array or callable(metric) or isinstance(metric, (str, bytes, dict, set)):
        raise TypeError(f"metric={metric!r} is no fair metric. {_ACCEPTED}")
    return metric


def _takes_sensitive_features(metric) -> bool:
    parameters = inspect.signature(metric.fit).parameters.values()
    return any(p.name == "sensitive_features" or p.kind == p.VAR_KEYWORD for p in parameters)
