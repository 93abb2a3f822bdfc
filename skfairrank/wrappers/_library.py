"""What wrappers ask of a library of rankers: CatBoost's record, and beside it those of `_lightgbm` and `_xgboost`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch

import numpy as np
import pandas as pd
from scipy import sparse

from skfairrank._queries import Queries

NEGLIGIBLE = 1e-30  # smaller weights become 0; LightGBM can't read numbers much smaller than that
_OF_QUERIES = re.compile("rank|ndcg|pair|query|lambdamart|stochasticfilter|groupquantile", re.IGNORECASE)


class Library:
    """How a library calls things. This class is the record of every estimator that is of no listed library.

    A new booster is a subclass with other values. `_base.LIBRARIES` lists it under the first part of its module's name, and
    every class from there, or derived from one, gets the record. `QueryRanker` needs `name`, `ranker` and `objectives`;
    `GapBoostingRanker` also `column_weights`; `SenSTIRBoostingRanker` also `fit_arguments` and `boost`. Parameters with several
    names have their tuple begin with the library's main one.

    Attributes
    ----------
    name, ranker : str
        Of the library, and of its class that ranks.
    objectives : tuple of str
        Parameters that name the objective.
    models : tuple of str
        Arguments of `fit` with a fitted model to go on from.
    not_per_row : tuple of str
        Arguments of `fit` that never have one entry per row, whatever their length.
    row_numbers : tuple of str
        Arguments of `fit` that number rows.
    per_eval_set : tuple of str
        Arguments of `fit` with one entry for each evaluation set.
    weights : tuple of str
        Arguments of `fit` with weights, among them those of evaluation sets.
    weighs_queries : bool
        Whether its ranker takes one weight for each query, and not for each row.
    categorical : tuple of str
        Parameters and arguments that list the columns of categories.
    column_weights : tuple of str
        The parameter with one weight for each column; () if there is none.
    absent : float
        What the model reads where a sparse X has no entry.
    weighs_gains : bool
        Whether these weigh the gain of a split, and not only how often a column is drawn.
    column_sampling : tuple of str
        Parameters that sample columns where they are below 1.
    beside_weights : tuple of str
        Parameters by which columns are split that no weight would let be split.
    refused : dict of tuple of str to (tuple of allowed values, reason)
        Parameters (or patterns) that can't be had with a foreign objective, unless they have an allowed value.
    fit_arguments : tuple of str
        Arguments of `fit` that `boost` passes on.
    default_learning_rate : float
    """

    name = "this library"
    ranker = "a ranker, whose fit takes group, group_id or qid"
    objectives: tuple = ("objective", "loss_function", "loss")
    models: tuple = ()
    not_per_row: tuple = ()
    row_numbers: tuple = ()
    per_eval_set: tuple = ()
    weights: tuple = ()
    weighs_queries = False
    categorical: tuple = ()
    absent = 0.0
    column_weights: tuple = ()
    weighs_gains = True
    column_sampling: tuple = ()
    beside_weights: tuple = ()
    refused: Mapping = {}
    fit_arguments: tuple = ()
    default_learning_rate = 0.1

    def ranking_objective(self, estimator) -> str | None:
        """The estimator's objective, such as ``objective='rank:ndcg'``, if that is about queries."""
        parameters = parameters_of(estimator)
        for name in self.objectives:
            value = parameters.get(name)
            if isinstance(value, str) and _OF_QUERIES.search(value):
                return f"{name}={value!r}"
        return None

    # `fit` with the library's own objective

    def evaluation(self, argument, Xs, ys, queries: list[Queries], taken, known: dict) -> dict:
        """Arguments of `fit` for evaluation sets that are sorted by query.

        Parameters
        ----------
        argument : {"group", "qid", "group_id"} or None
            What `fit` calls the queries.
        Xs, ys, queries : list
            One entry for each set.
        taken : collection of str
            Arguments that `fit` takes.
        known : dict
            Parameters and arguments.
        """
        out: dict = {}
        if argument is not None:
            out[f"eval_{argument}"] = [of_queries(argument, groups) for groups in queries]
        if "eval_X" in taken:  # LightGBM 4.7 deprecates eval_set
            return out | {"eval_set": None, "eval_X": tuple(Xs), "eval_y": tuple(ys)}
        return out | {"eval_set": list(zip(Xs, ys))}

    # Columns

    def as_seen(self, column: pd.Series, parameters: dict) -> pd.Series:
        """A column as trees see it: NaN where the model takes a value for missing."""
        return column

    def named_categories(self, estimator, arguments: dict) -> set:
        """Names and positions of the columns that the model is told to take for categories."""
        known = parameters_of(estimator) | arguments
        named: set = set()
        for parameter in self.categorical:
            value = known.get(parameter)
            if value is None or (isinstance(value, str) and value == "auto"):
                continue
            if isinstance(value, str):  # LightGBM's "0,1,2" and "name:age,job"
                of_names = value.startswith("name:")
                parts = value.removeprefix("name:").split(",")
                value = parts if of_names else [int(part) for part in parts]
            named.update(item.item() if isinstance(item, np.generic) else item for item in value)
        return named

    def samples_columns(self, estimator) -> str | None:
        """The parameter by which the estimator samples columns, as ``name=value``."""
        parameters = parameters_of(estimator)
        for name in self.column_sampling:
            value = parameters.get(name)
            if value is not None and value < 1:
                return f"{name}={value!r}"
        return None

    def importances(self, estimator) -> np.ndarray:
        """How much the fitted estimator relies on each column; 0 where it has no split by it."""
        return np.asarray(estimator.feature_importances_, dtype=np.float64)

    def weigh_columns(self, estimator, weights: pd.Series, arguments: dict) -> dict:
        """Set weights of columns in the estimator, times the user's own; returns the arguments of `fit`."""
        parameters = parameters_of(estimator)
        given = [name for name in self.column_weights if parameters.get(name) is not None] or [self.column_weights[0]]
        own = own_weights(parameters.get(given[0]), given[0], weights.index)
        estimator.set_params(**dict.fromkeys(given, not_negligible(weights.to_numpy() * own)))
        return arguments

    def refuse_missing(self, X, estimator) -> None:
        """Raise ValueError where a column holds what the model takes for missing, and a fair metric would not."""
        parameters = parameters_of(estimator)
        for j, column in enumerate(columns_of(X, self.absent)):
            if self.as_seen(column, parameters).isna().any():
                raise ValueError(
                    f"X has missing values in column {j} as {self.name} reads it, and no metric does: fill them."
                )

    # A foreign objective

    def learning_rate(self, estimator) -> float:
        """By how much the estimator multiplies each tree."""
        parameters = parameters_of(estimator)
        given = [parameters.get(name) for name in ("learning_rate", "shrinkage_rate", "eta")]
        return float(next((rate for rate in given if rate is not None), self.default_learning_rate))

    def check_parameters(self, estimator, owner: str) -> None:
        """Raise ValueError for a parameter that can't be had with a foreign objective."""
        for patterns, (allowed, reason) in self.refused.items():
            for name, value in parameters_of(estimator).items():
                if any(fnmatch(name, pattern) for pattern in patterns) and (callable(value) or value not in allowed):
                    raise ValueError(f"{name}={value!r} of {self.name} can't be had in {owner}: {reason}.")

    def boost(self, model, blocks, y: np.ndarray, sizes: np.ndarray, objective, metric, arguments: dict):
        """Fit a fresh clone with a foreign objective, and return it; afterwards it has the user's parameters again.

        Every round asks the objective once, with scores that begin at a constant. `y` and `sizes` are those of one block, and
        stand for all. Rows of no curvature, which are hypothetical rows not chosen, must neither count nor be dropped.

        Parameters
        ----------
        model : estimator
        blocks : skfairrank.wrappers._objective.Blocks
            The rows, sorted by query, and block by block their hypothetical rows.
        y : ndarray, shape (n_rows,)
        sizes : ndarray of int64, shape (n_queries,)
        objective : callable
            Takes scores of all rows of all blocks, and returns gradient and hessian.
        metric : SortedUtility
            For evaluation sets.
        arguments : dict
            Further arguments of `fit`, among them evaluation sets as `evaluation` returns them.
        """
        raise NotImplementedError


def parameters_of(estimator) -> dict:
    return estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}


def of_queries(argument: str, queries: Queries) -> np.ndarray:
    """What `fit` is told of rows that are sorted by query: sizes, or one id per row."""
    return queries.sizes if argument == "group" else np.sort(queries.codes)


def not_negligible(weights: np.ndarray) -> list[float]:
    return np.where(weights < NEGLIGIBLE, 0.0, weights).tolist()


def own_weights(given, name: str, columns: pd.Index) -> np.ndarray:
    """The user's weights of the columns: a sequence, or a mapping from names or positions, where the others have 1."""
    own = pd.Series(1.0, index=columns)
    if isinstance(given, str):  # CatBoost's "(1,0.5)" and "0:0.5,age:0.1", which scikit-learn can clone
        try:
            pairs = [part.rpartition(":") for part in given.strip("()").split(",")]
            named = {int(key) if key.isdigit() else key: float(weight) for key, _, weight in pairs}
        except ValueError as error:
            raise ValueError(f'{name}={given!r}: give numbers as in "1,0.5", or "age:0.5,job:1" ({error}).') from error
        given = named if ":" in given else [float(weight) for _, _, weight in pairs]
    if isinstance(given, Mapping):
        for column, weight in given.items():
            if column not in columns and not (isinstance(column, int | np.integer) and 0 <= column < len(columns)):
                raise ValueError(f"{name} names the column {column!r}, which is not among those of X: {list(columns)}.")
            own.loc[column if column in columns else columns[column]] = weight
    elif given is not None:
        if isinstance(given, str) or np.shape(given) != (len(columns),):
            raise ValueError(
                f"{name}={given!r}: give a tuple with one number for each of the {len(columns)} columns of X."
            )
        own[:] = given
    return own.to_numpy()


def columns_of(X, absent: float = 0.0) -> Iterator[pd.Series]:
    """The columns of X one by one, numbers as floats, others as they are; `absent` is what a sparse X leaves out."""
    if sparse.issparse(X):
        X = X.tocsc()
    for j in range(X.shape[1]):
        if isinstance(X, pd.DataFrame):
            column = X.iloc[:, j]
        elif sparse.issparse(X):
            column = pd.Series(np.full(X.shape[0], absent))
            entries = slice(*X.indptr[j : j + 2])
            column[X.indices[entries]] = X.data[entries].astype(np.float64)
        else:
            column = pd.Series(np.asarray(X[:, j]))
        column = column.infer_objects() if column.dtype == object else column
        is_number = (
            pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.infer_dtype(column, skipna=True) == "decimal"
        )
        # One kind of numbers for all: compared with NaN, Arrow's are neither equal nor different.
        yield pd.Series(column.to_numpy(np.float64, na_value=np.nan)) if is_number else column


def seen_columns(library: Library, parameters: dict, named: set, names: list, X) -> Iterator[pd.Series]:
    """The columns of X as trees see them; those `named`, by name or position, are categories."""
    for j, (name, column) in enumerate(zip(names, columns_of(X, library.absent))):
        yield column.astype("category") if named & {j, name} else library.as_seen(column, parameters)


class CatBoost(Library):
    """Its ranker takes no rows without gradient, so there is no `boost`."""

    name, ranker = "CatBoost", "CatBoostRanker"
    objectives = ("loss_function", "objective")
    models = ("init_model",)
    not_per_row = ("cat_features", "text_features", "embedding_features")
    row_numbers = ("pairs", "graph", "pairs_weight")
    categorical = ("cat_features",)
    column_weights = ("feature_weights",)
    column_sampling = ("rsm", "colsample_bylevel")
    beside_weights = ("random_strength",)

    def evaluation(self, argument, Xs, ys, queries, taken, known):
        from catboost import Pool  # only a pair without queries could be passed otherwise

        columns = {name: known.get(name) for name in self.not_per_row}
        ids = [None if argument is None else of_queries(argument, groups) for groups in queries]
        return {"eval_set": [Pool(X, y, group_id=group_id, **columns) for X, y, group_id in zip(Xs, ys, ids)]}

    def importances(self, estimator):
        return np.asarray(estimator.get_feature_importance(type="PredictionValuesChange"))  # others need the data

    def weigh_columns(self, estimator, weights, arguments):
        arguments = super().weigh_columns(estimator, weights, arguments)
        # Noise makes some gains negative before they are weighed, and these become the better, the smaller the weight.
        if parameters_of(estimator).get("random_strength") is None:
            estimator.set_params(random_strength=0)
        return arguments
