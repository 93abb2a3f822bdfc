"""Gap boosting: a boosted ranker in which a split counts less, the more its column gives the groups away."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from skfairrank._adapters import QueryRanker, library_of
from skfairrank._checks import as_values, names_queries, warn_caller
from skfairrank._sensitive import Attribute, read_attributes
from skfairrank.fair_metrics._gaps import GAPS, column_gap

__all__ = ["GapBoostingRanker"]

# The parameter with one weight for each column, under all names that the library knows, its own first.
_WEIGHTS = {
    "lightgbm": ("feature_contri", "feature_contrib", "fc", "fp", "feature_penalty"),
    "catboost": ("feature_weights",),
    "xgboost": ("feature_weights",),
}
_SAMPLED_BY = ("colsample_bytree", "colsample_bylevel", "colsample_bynode")
# Where LightGBM and CatBoost are told which columns are categories.
_CATEGORICAL = (
    *("categorical_feature", "cat_feature", "categorical_column", "cat_column", "categorical_features"),
    "cat_features",
)
_NEGLIGIBLE = 1e-30  # smaller weights become 0; LightGBM can't read numbers much smaller than that


class GapBoostingRanker(QueryRanker):
    r"""A boosted ranker in which a split's gain counts less, the more its column gives the groups away.

    With :math:`g_j` the gap of the groups of `sensitive_features` in column j, the gain of every split of this column is
    multiplied by :math:`\exp(-\mathrm{strength} \cdot g_j)` while trees are grown: by LightGBM's ``feature_contri`` and
    CatBoost's ``feature_weights``. Nothing else changes: the model's own objective, categories, missing values, early stopping
    and speed stay. So the trees lean on a column that goes along with the group only as far as no other column says the same.

    Parameters
    ----------
    estimator : LGBMRanker, CatBoostRanker or XGBRanker
        Or a regressor of these libraries, a pointwise ranker. XGBoost can't weigh gains, only the draw of columns: see Notes.
    strength : float, default=5.0
        How much a gap costs, >= 0. 0 is the plain model, bit for bit.
    gap : {"standardized", "ks"}, default="standardized"
        How far groups lie apart in a column; of several groups and attributes the largest gap of two groups counts.

        - "standardized": the difference of two groups' means, in standard deviations of the column (over all rows). Of a numeric
          attribute: the absolute correlation. Of a column of categories: the gap of the indicator of those categories that tell
          two groups apart best, which differs by their total variation distance; of a numeric attribute the correlation ratio. So
          a category of two values has the gap of the same column written as 0 and 1.
        - "ks": the Kolmogorov-Smirnov distance of two groups' distributions, which no monotone transformation of the column
          changes, as trees aren't changed by one; for categories the total variation distance. A numeric attribute makes two
          groups, above its median and not. In [0, 1], while a standardized gap may be 2 and more: the same strength does less.
    categorical : bool, list of int or str, or None, default=None
        Whether `sensitive_features` that are numbers of more than two values are codes of categories, as in
        `SensitiveSubspaceMetric`.

    Attributes
    ----------
    gaps_ : Series of float, shape (n_features,)
        The gap of each column, >= 0, by name, or by position where X has no names. Where values are missing, the larger one of
        the gap among the rows that have a value, and that of the indicator of missing values; among categories missing is one
        more. A constant column has the gap 0.
    weights_ : Series of float, shape (n_features,)
        ``exp(-strength * gaps_)``. A user's own weights in the model's parameters are multiplied by these.
    estimator_, n_queries_, n_features_in_, feature_names_in_
        As of `QueryRanker`.

    Notes
    -----
    Columns are categories where they have a dtype of categories or text, or where the model is told so
    (``categorical_feature``, ``cat_features``, ``feature_types``). All rows count alike: a person who appears in several queries
    counts several times.

    **CatBoost** adds noise to the score of a split before it weighs the gain, and gains that noise has made negative are the
    better the smaller their weight is; with few rows that undoes the weights. So where the model does not set
    ``random_strength``, it is 0 here (unless `strength` is 0, too). One that is set stays.

    **XGBoost** takes ``feature_weights`` only for sampling columns: they change how often a column may be split, not what a split
    is worth, and weights below 1e-6 count as 1e-6. So the model must sample columns (``colsample_bynode=0.5``, for example; also
    by level or by tree), else it is refused. The user guide has what that is worth.

    The gaps are those of the training rows. A column whose gap is small, and which gives the group away only together with
    another one, keeps its weight; and so does a column that differs within groups in ways that no gap of groups shows.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMRanker
    >>> from skfairrank import GapBoostingRanker
    >>> from skfairrank.datasets import make_hiring_ranking
    >>> task = make_hiring_ranking(n_queries=50, random_state=0)
    >>> model = LGBMRanker(n_estimators=20, random_state=0, n_jobs=1, verbose=-1)
    >>> ranker = GapBoostingRanker(model, strength=5.0)
    >>> ranker = ranker.fit(task.data, task.target.astype(int), qid=task.qid, sensitive_features=task.sensitive_features)
    >>> ranker.gaps_.round(1).tolist()  # of three marks of one skill, lowered for a group by 1.5, 1.5 and .5, and two others
    [1.2, 1.2, 0.6, 0.1, 0.2]
    """

    _parameter_constraints = {
        **QueryRanker._parameter_constraints,
        "strength": [Interval(numbers.Real, 0, None, closed="left")],
        "gap": [StrOptions(set(GAPS))],
        "categorical": ["boolean", "array-like", str, numbers.Integral, None],
    }

    def __init__(self, estimator, *, strength=5.0, gap="standardized", categorical=None):
        super().__init__(estimator)
        self.strength = strength
        self.gap = gap
        self.categorical = categorical

    @names_queries
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, qid=None, sensitive_features=None, **fit_params):
        """Measure the gaps, and fit a clone of the model with the weights that follow from them.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)
            Numbers and categories, as the model takes them; values may be missing.
        y : array-like, shape (n_rows,)
            Relevance of each row. LightGBM asks for ints.
        qid : array-like, shape (n_rows,), optional
            The query of each row: ints or strings, in any order. None: all rows are one query, with a warning.
        sensitive_features : array-like, shape (n_rows,) or (n_rows, n_attributes)
            Sensitive attributes, one or several columns: bools, strings or categories, or numbers.
        **fit_params
            As of `QueryRanker`.

        Returns
        -------
        self : GapBoostingRanker

        Raises
        ------
        ValueError
            If sensitive features are missing, or of another length, or have missing values; if the model can't weigh columns; if
            the strength leaves no column any weight.
        """
        if sensitive_features is None:
            raise ValueError(
                "sensitive_features is missing: give the sensitive attribute of each row, from which the gaps are measured. In "
                "a search enable metadata routing (sklearn.set_config(enable_metadata_routing=True)) and pass it to fit. Without "
                "sensitive features there is QueryRanker."
            )
        return super().fit(X, y, qid=qid, sensitive_features=sensitive_features, **fit_params)

    def _prepared(self, estimator, X, arguments, sensitive_features, queries):
        library = library_of(estimator)
        if library not in _WEIGHTS:
            raise ValueError(
                f"GapBoostingRanker needs a model that weighs the splits of each column, as those of LightGBM, CatBoost and "
                f"XGBoost do, and got a {type(estimator).__name__}: give LGBMRanker(), CatBoostRanker(), or "
                "XGBRanker(colsample_bynode=0.5). Steps of a pipeline go before the GapBoostingRanker; for linear scores there "
                'is SenSTIRRanker(adversary="gaps").'
            )
        if library == "xgboost" and self.strength > 0 and not _samples_columns(estimator):
            raise ValueError(
                f"{type(estimator).__name__} weighs columns only where it samples them, and here it takes all: set "
                "colsample_bynode=0.5 (or colsample_bylevel, colsample_bytree) in it. LGBMRanker and CatBoostRanker weigh the "
                "gain of splits itself."
            )
        attributes = [
            dataclasses.replace(attribute, values=queries.group(attribute.values))
            for attribute in read_attributes(
                sensitive_features, queries.n_rows, self.categorical, owner="GapBoostingRanker"
            )
        ]
        self._column_names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        self._gap_of_column = self._measured(X, attributes, _categorical_columns(estimator, arguments))
        self._weight_of_column = np.exp(-self.strength * self._gap_of_column)
        if self.strength == 0:
            return arguments
        if not (self.weights_ >= _NEGLIGIBLE).any():
            raise ValueError(
                f"strength={self.strength} leaves no column of X any weight: the smallest gap is {self.gaps_.min():.3g}, and "
                f"exp(-strength * gap) is below {_NEGLIGIBLE:g}. Give a smaller strength."
            )
        return _weighed(estimator, library, self.weights_, arguments)

    # What is kept are arrays, which skops stores; it stores no Series.
    @property
    def gaps_(self) -> pd.Series:
        return pd.Series(self._gap_of_column, index=self._column_names, name="gap")

    @property
    def weights_(self) -> pd.Series:
        return pd.Series(self._weight_of_column, index=self._column_names, name="gap")

    def _measured(self, X, attributes: list[Attribute], named: set) -> np.ndarray:
        """The gap of each column, shape (n_features,)."""
        differing = []
        for attribute in attributes:
            if attribute.values.min() < attribute.values.max():
                differing.append(attribute)
            else:
                warn_caller(
                    f"sensitive attribute ({attribute.name}) has one value only: no column has a gap by it. Leave it out, or fit "
                    "on rows of all groups.",
                )
        names, gaps = self._column_names, []
        for j, column in enumerate(_columns(X)):
            is_categorical = not pd.api.types.is_numeric_dtype(column.dtype) or bool(named & {j, names[j]})
            gaps.append(
                column_gap(column, differing, self.gap, is_categorical=is_categorical, name=names[j])
                if differing
                else 0.0
            )
        return np.array(gaps, dtype=np.float64)


def _columns(X) -> Iterator[pd.Series]:
    """The columns of X one by one; of a table of objects each with the dtype that its values have."""
    if hasattr(X, "tocsc"):
        X = X.tocsc()
    for j in range(X.shape[1]):
        if isinstance(X, pd.DataFrame):
            column = X.iloc[:, j]
        elif hasattr(X, "tocsc"):
            column = pd.Series(X[:, [j]].toarray().ravel())
        elif hasattr(X, "column_names") and hasattr(X, "to_pandas"):  # a pyarrow table
            column = X.column(j).to_pandas()
        elif hasattr(X, "to_series"):  # polars
            column = pd.Series(as_values(X.to_series(j)))
        else:
            column = pd.Series(np.asarray(X[:, j]))
        yield column.infer_objects() if column.dtype == object else column


def _samples_columns(estimator) -> bool:
    parameters = estimator.get_params(deep=False)
    return any(parameters.get(name) is not None and parameters[name] < 1 for name in _SAMPLED_BY)


def _categorical_columns(estimator, arguments) -> set:
    """Names and positions of the columns that the model is told to take for categories."""
    known = {**estimator.get_params(deep=False), **arguments}
    named: set = set()
    for parameter in _CATEGORICAL:
        value = known.get(parameter)
        if value is None or (isinstance(value, str) and value == "auto"):
            continue
        if isinstance(value, str):  # LightGBM's "0,1,2" and "name:age,job"
            of_names = value.startswith("name:")
            parts = value.removeprefix("name:").split(",")
            value = parts if of_names else [int(part) for part in parts]
        named.update(value.item() if isinstance(value, np.generic) else value for value in value)
    types = known.get("feature_types")  # XGBoost's
    if types is not None and not isinstance(types, str):
        named.update(j for j, kind in enumerate(types) if kind == "c")
    return named


def _weighed(estimator, library: str, weights: pd.Series, arguments: dict) -> dict:
    """Set the weights in the model, times the user's own; XGBoost before 3.0 takes them as an argument of `fit`."""
    parameters = estimator.get_params(deep=False)
    given = [name for name in _WEIGHTS[library] if parameters.get(name) is not None]
    name = given[0] if given else _WEIGHTS[library][0]
    of_fit = arguments.pop(name, None) if library == "xgboost" else None
    users = parameters[name] if given else of_fit
    values = weights.to_numpy() * _own_weights(users, name, weights.index)
    values = np.where(values < _NEGLIGIBLE, 0.0, values).tolist()
    if library == "xgboost" and name not in parameters:
        return {**arguments, name: values}
    estimator.set_params(**dict.fromkeys(given or [name], values))
    if library == "catboost" and parameters.get("random_strength") is None:
        estimator.set_params(random_strength=0)
    return arguments


def _read_weights(text: str, name: str):
    """What CatBoost reads from text, which is the only form in which scikit-learn can clone it: "(1,0.5)", "0:0.5,age:0.1"."""
    try:
        parts = [part.rpartition(":") for part in text.strip("()").split(",")]
        if not any(colon for _, colon, _ in parts):
            return [float(weight) for _, _, weight in parts]
        return {int(key) if key.isdigit() else key: float(weight) for key, _, weight in parts}
    except ValueError as error:
        raise ValueError(
            f"{name} is the text {text!r}: give numbers with commas between them, one for each column, or pairs of name and "
            f'number, as in "age:0.5,job:1" ({error}).'
        ) from error


def _own_weights(given, name: str, columns: pd.Index) -> np.ndarray:
    """The user's weights of the columns: a sequence, or a mapping from names or positions, where the others have 1."""
    if given is None:
        return np.ones(len(columns))
    if isinstance(given, str):
        given = _read_weights(given, name)
    if isinstance(given, Mapping):
        own = pd.Series(np.ones(len(columns)), index=columns)
        for column, weight in given.items():
            if column in columns:
                own[column] = weight
            elif isinstance(column, int | np.integer) and 0 <= column < len(columns):
                own.iloc[int(column)] = weight
            else:
                raise ValueError(f"{name} names the column {column!r}, which is not among those of X: {list(columns)}.")
        return own.to_numpy()
    own = np.asarray(given, dtype=np.float64)
    if own.shape != (len(columns),):
        raise ValueError(
            f"{name} has shape {own.shape} and X has {len(columns)} columns: give one weight for each column."
        )
    return own
