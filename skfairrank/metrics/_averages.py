"""The mean over queries, and what happens to queries in which a metric has no value."""

from __future__ import annotations

import math
import numbers

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank._warnings import warn_caller

__all__ = ["mean_where_defined", "mean_with_replacement"]


def mean_with_replacement(values: np.ndarray, defined: np.ndarray, replace_undefined_by, *, metric: str, reason: str):
    """Mean over queries; the undefined ones are left out with a warning, or counted as `replace_undefined_by`.

    Parameters
    ----------
    values : ndarray of float, shape (n_queries,)
        Value of each query, read only where it is defined.
    defined : ndarray of bool, shape (n_queries,)
    replace_undefined_by : float
        NaN leaves undefined queries out.
    metric, reason : str
        For the message: the metric's name, and what such a query lacks.
    """
    if not isinstance(replace_undefined_by, numbers.Real) or math.isinf(replace_undefined_by):
        raise ValueError(f"replace_undefined_by={replace_undefined_by!r}: give a number, or nan to leave queries out.")
    replacement = float(replace_undefined_by)
    n_undefined = len(values) - int(np.count_nonzero(defined))
    if math.isnan(replacement):
        if n_undefined:
            warn_caller(
                f"{metric} is undefined in {n_undefined} of {len(values)} queries ({reason}): they are left out of the "
                "mean. Pass replace_undefined_by=, a number, to count them as that number.",
                UndefinedMetricWarning,
            )
        return float(np.mean(values[defined])) if n_undefined < len(values) else float("nan")
    if n_undefined == len(values):
        # Without this a metric that could not be measured anywhere would look perfect.
        warn_caller(
            f"{metric} is undefined in all of {len(values)} queries ({reason}): the result is "
            f"replace_undefined_by={replacement:g} and measures nothing. Pass replace_undefined_by=nan to get "
            "nan instead.",
            UndefinedMetricWarning,
        )
    return float(np.mean(np.where(defined, values, replacement)))


def mean_where_defined(values: np.ndarray, defined: np.ndarray, *, metric: str, reason: str):
    """Mean over the queries that the metric's definition covers; nan and a warning if there is none."""
    if not defined.any():
        warn_caller(
            f"{metric} is undefined in all of {len(values)} queries ({reason}): the result is nan.",
            UndefinedMetricWarning,
        )
        return float("nan")
    return float(np.mean(values[defined]))
