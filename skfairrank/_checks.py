"""Checks of what users pass (features, relevances, scores, ids), and warnings that point at the user's line."""

from __future__ import annotations

import contextlib
import datetime
import functools
import inspect
import numbers
import os
import sys
import warnings
from enum import Enum

import numpy as np
import pandas as pd
import sklearn
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

LARGEST_SCORE = 1e150  # beyond this, differences of scores overflow
# What other libraries call the queries, or their sizes.
_NAMES_OF_QUERIES = ("group", "groups", "group_id", "query_id", "group_sizes")
# Files of this package, and of what stands between it and the user: decorators of `fit`, searches, parallel loops.
_INSIDE = tuple(
    os.path.dirname(str(module.__file__)) + os.sep
    for module in (sys.modules[__package__], sklearn, sys.modules.get("joblib"))  # scikit-learn has imported joblib
    if module is not None
)


# Labels and ids


def as_values(values, name: str = "values") -> np.ndarray:
    """Ids or labels as an array of what was given: NumPy alone would turn [1, "a", nan] into three strings."""
    refuse_mask(values, name)
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        array = np.asarray(values)  # by value, not by the order in which the categories were declared
    elif hasattr(values, "to_pylist") and hasattr(values, "to_pandas"):
        return as_values(values.to_pandas(), name)  # pyarrow's own to_numpy refuses whatever it would have to copy
    elif hasattr(values, "to_numpy"):
        array = values.to_numpy()
    else:
        array = values if isinstance(values, np.ndarray) else _of_sequence(values)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def refuse_mask(values, name: str) -> None:
    """Raise where a masked array hides values, which NumPy and scikit-learn would bring back."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        n_masked = int(np.ma.count_masked(values))
        raise ValueError(f"{name} has {n_masked} masked values: fill them, or leave those rows out.")


def refuse_a_name(values, name: str) -> None:
    """Raise where a column's name stands in the place of the column."""
    if isinstance(values, str):
        raise ValueError(
            f"{name} is the text {values!r}: give one value per row, such as the column itself, X[{values!r}]."
        )


def _of_sequence(values) -> np.ndarray:
    """A list as an array, without the strings that NumPy makes of mixed kinds and the floats that it makes of large ints."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of several lengths
        return _objects(values)
    if array.dtype.kind in "US":
        return np.array(values, dtype=object)
    if array.dtype.kind == "f" and array.ndim == 1 and (np.abs(array) >= 2.0**53).any():
        given = _objects(values)
        return given if any(isinstance(value, int) for value in given) else array
    return array


def _objects(values) -> np.ndarray:
    """One object for each entry, NumPy's ints as Python's, which are compared without rounding."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = int(value) if isinstance(value, np.integer) else value
    return array


def sorted_codes(values: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The number of each value among the distinct ones, shape (n_rows,), and the distinct ones in sorted order.

    Members of an enumeration, which have no order of their own, are sorted by value, or by name where values have no order.
    Values of several kinds are a TypeError, lists among them a ValueError.
    """
    _check_one_kind(values, name)
    try:
        codes, distinct = pd.factorize(values, sort=True)
    except TypeError as error:
        if not all(isinstance(value, Enum) for value in values):
            raise TypeError(
                f"{name} has values that cannot be sorted among themselves ({error}): make them of one kind."
            ) from error
        codes, distinct = pd.factorize(values)
        try:
            order = sorted(range(len(distinct)), key=lambda k: distinct[k].value)
        except TypeError:
            order = sorted(range(len(distinct)), key=lambda k: distinct[k].name)
        codes, distinct = np.argsort(order)[codes], distinct[order]
    return codes, np.asarray(distinct)


def _check_one_kind(values, name: str) -> None:
    kinds = pd.api.types.infer_dtype(values, skipna=True) if pd.api.types.is_object_dtype(values) else ""
    # "mixed" is also what pandas says of a single kind that it does not know, such as UUIDs.
    if not kinds.startswith("mixed") or kinds == "mixed-integer-float":
        return
    types = set(map(type, np.ravel(values)))
    nested = sorted(kind.__name__ for kind in types if kind.__hash__ is None)
    if nested:
        raise ValueError(
            f"{name} has a {nested[0]} in the place of a single value: give one value per row, not nested or ragged lists."
        )
    if len(types) > 1:
        raise TypeError(
            f"{name} mixes values of several kinds (such as 1 and '1'), which have no order: make them all of one."
        )


def as_whole_numbers(values: np.ndarray) -> np.ndarray | None:
    """Numbers as int64; None where they are not whole, not finite, or no numbers."""
    if values.dtype.kind not in "iufb" or not (np.abs(values) < 2**53).all():
        return None
    integral = values.astype(np.int64)
    return integral if (integral == values).all() else None


# Scores and relevances


def as_floats(values, name: str, what: str, remedy: str) -> np.ndarray:
    """Finite numbers as a writeable C-contiguous float64 array, by scikit-learn's `check_array` unless they are so already."""
    if values is None:
        raise ValueError(f"{name} is missing (None): give one {what} per row.")
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind in ("M", "m"):  # NumPy would count nanoseconds
        raise ValueError(f"{name} holds {'dates' if kind == 'M' else 'durations'}: give one {what} per row, a number.")
    refuse_mask(values, name)
    if not (type(values) is np.ndarray and values.dtype == np.float64 and values.ndim == 1 and len(values) > 0):
        try:
            if not isinstance(values, np.ndarray):
                values = as_values(values, name)
            if values.dtype == object:  # pd.NA and None are NaN
                values = np.where(pd.isna(values), np.nan, values)
            if values.dtype.kind in "iu" and values.size and max(int(values.max()), -int(values.min())) > 2**53:
                raise ValueError("it has whole numbers beyond 2**53, which floats round. Rank or scale them.")
            values = check_array(values, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name=name)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} is not an array of numbers, one {what} per row: {error}") from error
    wrong = ~np.isfinite(values)
    if wrong.any():
        are_nan = set(np.isnan(values[wrong]).tolist())
        kind = "NaN and infinity" if len(are_nan) == 2 else "NaN" if are_nan == {True} else "infinity"
        raise ValueError(
            f"Input {name} contains {kind} ({int(wrong.sum())} of {wrong.size} values, the first in row "
            f"{int(np.argwhere(wrong)[0][0])}): {remedy}"
        )
    return values if values.flags.c_contiguous and values.flags.writeable else np.array(values)


def check_scores(scores, *, name: str = "scores") -> np.ndarray:
    """Finite scores as a float64 array of shape (n_rows,)."""
    remedy = "scores must be finite. Look for such values in the features, or for a fit that diverged."
    scores = as_floats(scores, name, "score", remedy)
    if scores.ndim != 1:
        raise ValueError(f"{name} has shape {scores.shape}: give a one-dimensional array, one score per row.")
    if max(scores.max(), -scores.min()) > LARGEST_SCORE:
        raise ValueError(f"{name} has values beyond {LARGEST_SCORE:g}: their differences overflow. Scale them.")
    return scores


def check_relevance(y, n_rows: int | None = None, *, name: str = "y") -> np.ndarray:
    """Finite relevances >= 0 as a float64 array of shape (n_rows,)."""
    remedy = (
        "leave out the rows without a judgement, or give them relevance 0 if that is what a missing judgement means."
    )
    y = as_floats(y, name, "relevance (>= 0)", remedy)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"{name} has shape {y.shape}: give a one-dimensional array, one relevance per row.")
    if n_rows is not None and len(y) != n_rows:
        raise ValueError(f"{name} has {len(y)} entries for {n_rows} rows: give one relevance per row.")
    if (y < 0).any():
        raise ValueError(
            f"{name} has negative values (the least is {y.min():g}): relevances must be >= 0. Shift them, or use ranks."
        )
    return y


# Features


def validate_features(estimator, X, y="no_validation", **settings):
    """scikit-learn's `validate_data`; where X holds text, dates or categories, the error names the column and the way out."""
    refuse_mask(X, "X")
    try:
        return validate_data(estimator, X, y, **settings)
    except (ValueError, TypeError) as error:
        found = _first_that_is_no_number(X)
        if found is None:
            raise
        remedy = (
            "turn dates into numbers, such as (column - column.min()).dt.days"
            if isinstance(found[1], datetime.date)
            else "encode it first, for instance by make_pipeline(make_column_transformer((OneHotEncoder(), columns), "
            "remainder='passthrough'), ranker)"
        )
        raise ValueError(
            f"Column {found[0]!r} of X holds {found[1]!r}, which is no number: leave the column out, or {remedy}. A column that "
            "only says which rows belong together is qid; one that is sensitive goes to sensitive_features."
        ) from error


def _first_that_is_no_number(X):
    """(name or position, a value) of the first column with text, a date or a category; None if there is none."""
    try:
        frame = (
            X.to_pandas() if hasattr(X, "to_pandas") else pd.DataFrame(X if hasattr(X, "columns") else np.asarray(X))
        )
    except (ValueError, TypeError):
        return None
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position].dropna()
        if pd.api.types.is_numeric_dtype(column.dtype):  # bools too
            continue
        is_other = isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_datetime64_any_dtype(column.dtype)
        wrong = column if is_other else column[pd.to_numeric(column.astype(object), errors="coerce").isna()]
        if len(wrong):
            value = wrong.iloc[0]
            return (name, value) if is_other or isinstance(value, (str, datetime.date)) else None
    return None


def check_magnitude(X: np.ndarray) -> None:
    """Raise ValueError where the squared distance between two rows could overflow."""
    largest = max(float(X.max()), -float(X.min()))
    if not np.isfinite(4.0 * X.shape[1] * largest * largest):
        raise ValueError(
            f"The squared distance between items is not finite: features reach {largest:g}. Scale them (StandardScaler)."
        )


def column_positions(columns, parameter: str, n_features: int, names=None) -> list[int]:
    """Positions of the columns that a parameter names, each once, in its order.

    Parameters
    ----------
    columns : str, int, or sequence of them, or a mask of n_features bools
    parameter : str
        How errors call it.
    n_features : int
    names : ndarray of str, shape (n_features,), or None
        Names of the features, where X has them.
    """
    named: list = [columns] if isinstance(columns, (str, numbers.Integral)) else list(columns)
    if named and all(isinstance(column, (bool, np.bool_)) for column in named):
        if len(named) != n_features:
            raise ValueError(f"{parameter} is a mask of {len(named)} entries, but X has {n_features} columns.")
        named = np.flatnonzero(named).tolist()
    if not named:
        raise ValueError(f"{parameter} is empty: name at least one column, or leave it None.")
    return list(dict.fromkeys(_position(column, parameter, n_features, names) for column in named))


def _position(column, parameter, n_features, names) -> int:
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"{parameter} names {column!r}, but X has no column names (an earlier step may have dropped "
                'them). Call set_output(transform="pandas") on the pipeline, or give column positions.'
            )
        found = np.flatnonzero(np.asarray(names) == column)
        if not len(found):
            raise ValueError(
                f"{parameter} names {column!r}, which is not among the columns {list(names)}: name it as "
                "it arrives here (ColumnTransformer prefixes names unless verbose_feature_names_out=False)."
            )
        return int(found[0])
    if not isinstance(column, numbers.Integral):
        raise TypeError(f"{parameter} has {column!r}: give positions (ints) or names (strings) of columns.")
    if not -n_features <= column < n_features:
        raise ValueError(f"{parameter} has {int(column)}, but X has {n_features} columns.")
    return int(column) % n_features


def check_feature_range(feature_range, n_features: int, range_of_rows, names=None) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends of the parameter `feature_range`, new arrays of shape (n_features,).

    Parameters
    ----------
    feature_range : None, "train" or (low, high)
    n_features : int
    range_of_rows : callable
        Gives the ends for "train".
    names : sequence of str, optional
        Names of the features, for messages.
    """
    if feature_range is None:
        feature_range = (-np.inf, np.inf)
    if isinstance(feature_range, str) and feature_range == "train":
        ends = range_of_rows()
    elif isinstance(feature_range, str) or len(feature_range) != 2:
        raise ValueError(
            f'feature_range={feature_range!r}: give None, "train", or a pair (low, high), each a number or one number for each '
            "feature."
        )
    else:
        ends = [_end_of_range(name, end, n_features) for name, end in zip(("low", "high"), feature_range, strict=True)]
    low, high = (np.broadcast_to(end, n_features).astype(np.float64) for end in ends)
    if (low > high).any():
        j = int(np.argmax(low > high))
        feature = j if names is None else str(names[j])
        raise ValueError(
            f"feature_range has low {low[j]} above high {high[j]} in feature {feature!r}: give (low, high)."
        )
    return low, high


def _end_of_range(name, end, n_features):
    try:
        end = np.asarray(end, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"feature_range has {end!r} as its {name} end: give a number or one for each feature."
        ) from None
    if end.shape not in ((), (n_features,)):
        raise ValueError(
            f"The {name} end of feature_range has shape {end.shape}, and there are {n_features} features: give a number or one "
            "for each feature."
        )
    if np.isnan(end).any():
        raise ValueError(f"The {name} end of feature_range is NaN: where a feature has no bound give -inf or inf.")
    return end


# Calls and constructors


def names_queries(method):
    """Decorate what takes `qid` by keyword: a positional qid, and `group=`, are a TypeError that names ``qid=``."""
    taken = inspect.signature(method).parameters
    positional = [p.name for p in taken.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    shown = ", ".join([name for name in positional if name != "self"][:3] + ["qid=qid"])
    refused = tuple(name for name in _NAMES_OF_QUERIES if name not in taken)

    @functools.wraps(method)
    def checked(*args, **kwargs):
        if len(args) > len(positional):
            raise TypeError(
                f"{method.__name__} takes the query ids by keyword: call {method.__name__}({shown}), with one query id for each "
                "row."
            )
        for name in refused:
            if name in kwargs:
                raise TypeError(
                    f"{method.__name__} takes no {name}: pass qid=, one query id for each row "
                    "(np.repeat(np.arange(len(sizes)), sizes) turns the sizes of queries into ids)."
                )
        return method(*args, **kwargs)

    return checked


def stores_parameters(init=None, *, extends=()):
    """Decorate an ``__init__`` whose body is empty: it stores its arguments under their names, as scikit-learn wants.

    The parameters of the constructors of the classes `extends`, by keyword, take the place of the ``**shared`` at its end.
    """
    if init is None:
        return functools.partial(stores_parameters, extends=extends)
    own = inspect.signature(init).parameters
    parameters = {name: parameter for name, parameter in own.items() if parameter.kind != parameter.VAR_KEYWORD}
    for base in extends if isinstance(extends, tuple) else (extends,):
        for name, parameter in inspect.signature(base.__init__).parameters.items():
            parameters.setdefault(name, parameter.replace(kind=parameter.KEYWORD_ONLY))
    signature = inspect.Signature(list(parameters.values()))

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}() {error}") from None
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first frame outside this package and scikit-learn.

    Of a metric that is undefined it warns once in a call of scikit-learn, such as a search, which measures it for each candidate
    and fold.
    """
    level, frame, call = 2, sys._getframe(1), None
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_INSIDE) or frame.f_code.co_filename == contextlib.__file__
    ):
        frame, level, call = frame.f_back, level + 1, frame
    if (
        issubclass(category, UndefinedMetricWarning)
        and call is not None
        and call.f_globals["__name__"].startswith("sklearn.")
    ):
        if call.f_trace is None:
            call.f_trace = _Said()  # a note that ends with the call; Python reads it only while it traces
        if isinstance(call.f_trace, _Said):
            metric = message.split(" ", 1)[0]
            if metric in call.f_trace.metrics:
                return
            call.f_trace.metrics.add(metric)
    warnings.warn(message, category, stacklevel=level)


class _Said:
    """Metrics that a call has warned of."""

    def __init__(self):
        self.metrics: set[str] = set()

    def __call__(self, *event):
        return self
