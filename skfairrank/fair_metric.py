"""The fair metric on items: Euclidean distance after projecting out a sensitive subspace (Bower et al. 2021, section 5)."""

from __future__ import annotations

import numbers

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairrank._validation import as_values, check_one_kind
from skfairrank._warnings import warn_caller
from skfairrank.queries import Queries
from skfairrank.transport import pairing_cost, transport_plan

__all__ = ["SensitiveSubspaceMetric", "check_same_features"]


class SensitiveSubspaceMetric(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Distance between items that ignores sensitive directions; as a transformer, the paper's "Project" baseline.

    With A the orthonormal rows that span the sensitive directions and P = I - A'A, items are at distance ||P(x - x')||, and
    the cost of turning one into the other is its square, d_X(x, x') = ||P(x - x')||^2.

    The directions are given (`directions`), or learned: from columns of X that are themselves sensitive
    (`sensitive_columns`), else from `sensitive_features` passed to `fit`. Where `directions` or `sensitive_columns` is set,
    `sensitive_features` are ignored.

    Parameters
    ----------
    directions : array-like, shape (n_directions, n_features) or (n_features,), optional
        Sensitive directions, in units of the features.
    sensitive_columns : list of int or str, int or str, optional
        Columns of X that are sensitive, by position or name. Each is predicted from the columns not named here, and
        contributes the direction of that prediction and its own basis vector.
    classifier : estimator, optional
        Linear classifier for bool, string, categorical or two-valued attributes; default ``LogisticRegression()`` with more
        iterations. Two classes give one direction, K > 2 classes K directions (its `coef_`).
    regressor : estimator, optional
        Linear regressor for numeric attributes of more than two values; default ``RidgeCV()``. Codes of categories, such as
        0 to 4, are numbers to it: pass them as strings or a pandas categorical.
    distinct : bool, default=True
        Learn on distinct rows: a person who appears in many queries counts once.
    rank_tolerance : float, default=1e-6
        Directions, scaled to unit length, whose singular values fall below this times the largest count as dependent on the
        others.

    Attributes
    ----------
    directions_ : ndarray, shape (n_directions, n_features)
        Sensitive directions as given or learned ("raw": the attack moves along them in their units).
    sensitive_basis_ : ndarray, shape (rank, n_features)
        Orthonormal rows with the same span.
    components_ : ndarray, shape (n_features, n_features)
        The projector P.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X has feature names.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank import SensitiveSubspaceMetric
    >>> metric = SensitiveSubspaceMetric(directions=[[0, 1]]).fit(np.eye(2))
    >>> metric.transform([[3.0, 7.0]]).tolist()
    [[3.0, 0.0]]
    >>> metric.query_distances([[0, 5], [1, 5]], [[1, 0], [3, 0]], qid_X=[0, 0], qid_Y=[0, 0]).tolist()
    [[2.5]]
    """

    __metadata_request__fit = {"sensitive_features": True}

    _parameter_constraints: dict = {
        "directions": ["array-like", None],
        "sensitive_columns": ["array-like", str, numbers.Integral, None],
        "classifier": [HasMethods("fit"), None],
        "regressor": [HasMethods("fit"), None],
        "distinct": ["boolean"],
        "rank_tolerance": [Interval(numbers.Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        directions=None,
        *,
        sensitive_columns=None,
        classifier=None,
        regressor=None,
        distinct=True,
        rank_tolerance=1e-6,
    ):
        self.directions = directions
        self.sensitive_columns = sensitive_columns
        self.classifier = classifier
        self.regressor = regressor
        self.distinct = distinct
        self.rank_tolerance = rank_tolerance

    def fit(self, X, y=None, *, sensitive_features=None):
        """Take or learn the sensitive directions.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
        y : ignored
        sensitive_features : array-like, shape (n_rows,) or (n_rows, n_attributes), optional
            Sensitive attributes, one or several columns, used where neither `directions` nor `sensitive_columns` is set.

        Raises
        ------
        ValueError
            If directions do not fit X, a named column is not in X, or sensitive features have missing values or another length.
        """
        return self._fit(X, sensitive_features, warn=True)

    def _fit(self, X, sensitive_features, *, warn):
        self._validate_params()
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        if self.directions is not None and self.sensitive_columns is not None:
            raise ValueError("Give either directions or sensitive_columns, not both.")
        if self.directions is not None:
            directions = self._given_directions(X.shape[1])
        elif self.sensitive_columns is not None:
            directions = self._directions_of_columns(X)
        elif sensitive_features is not None:
            directions = self._directions_of_features(X, sensitive_features)
        else:
            if warn:
                warn_caller(
                    "Nothing is treated as sensitive: the metric has no directions and no sensitive_columns, and fit got "
                    "no sensitive_features. Distances are Euclidean.",
                )
            directions = np.zeros((0, X.shape[1]))
        length = np.abs(directions).max(axis=1, initial=0.0)
        if ((length > 0) & ((length < 1e-100) | (length > 1e100))).any():
            raise ValueError("A sensitive direction has a length beyond 1e-100 to 1e100: rescale it.")
        zero = length == 0
        if zero.any():
            warn_caller(
                f"{int(zero.sum())} of {len(zero)} sensitive directions are zero, and have no effect.",
            )
        self.directions_ = directions[~zero]
        self.sensitive_basis_ = _orthonormal_rows(self.directions_, self.rank_tolerance)
        return self

    @property
    def components_(self):
        """The projector P on the orthogonal complement of the sensitive directions, shape (n_features, n_features)."""
        check_is_fitted(self, "sensitive_basis_")
        A = self.sensitive_basis_
        return np.eye(A.shape[1]) - A.T @ A

    def transform(self, X):
        """Project the sensitive directions out of X: the "Project" baseline.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)

        Returns
        -------
        projected : ndarray of float, shape (n_rows, n_features)
        """
        check_is_fitted(self, "sensitive_basis_")
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self._project(X)

    def _project(self, X):
        A = self.sensitive_basis_.astype(X.dtype, copy=False)
        return X - (X @ A.T) @ A

    def get_mahalanobis_matrix(self):
        """The matrix M of the squared distance (x - x')' M (x - x'); here M = P, shape (n_features, n_features)."""
        return self.components_

    def pair_distance(self, pairs):
        """Distance ||P(x - x')|| of each pair; plain, not squared.

        Parameters
        ----------
        pairs : array-like, shape (n_pairs, 2, n_features)

        Returns
        -------
        distance : ndarray of float, shape (n_pairs,)
        """
        check_is_fitted(self, "sensitive_basis_")
        pairs = check_array(pairs, allow_nd=True, ensure_2d=False, dtype=np.float64, input_name="pairs")
        if pairs.ndim != 3 or pairs.shape[1:] != (2, self.n_features_in_):
            raise ValueError(f"pairs has shape {pairs.shape}: expected (n_pairs, 2, {self.n_features_in_}).")
        return np.linalg.norm(self._project(pairs[:, 0] - pairs[:, 1]), axis=1)

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
        check_is_fitted(self, "sensitive_basis_")
        if Y is None and qid_Y is not None:
            raise ValueError("query_distances got qid_Y without Y: give Y, or leave qid_Y out.")
        Z, queries = self._projected_queries(X, qid_X, "qid_X")
        other, others = (Z, queries) if Y is None else self._projected_queries(Y, qid_Y, "qid_Y")
        distances = np.empty((queries.n_queries, others.n_queries))
        for i in range(queries.n_queries):
            cost = pairing_cost(Z[queries.rows(i)], other)
            for j in range(others.n_queries):
                distances[i, j], _ = transport_plan(cost[:, others.rows(j)], plan=False)
        return distances

    def _projected_queries(self, X, qid, name):
        X = validate_data(self, X, dtype=np.float64, reset=False)
        queries = Queries.single(len(X)) if qid is None else Queries.from_qid(qid, len(X), name=name)
        return self._project(X), queries

    def _given_directions(self, n_features):
        directions = check_array(
            np.atleast_2d(np.asarray(self.directions)), dtype=np.float64, input_name="directions", copy=True
        )
        if directions.shape[1] != n_features:
            raise ValueError(
                f"directions has shape {directions.shape}, but X has {n_features} features: give one row of {n_features} "
                "numbers for each sensitive direction."
            )
        return directions

    def _directions_of_columns(self, X):
        columns = self._column_positions()
        rest = np.setdiff1d(np.arange(X.shape[1]), columns)
        X = _sorted_rows(X, distinct=self.distinct)
        directions = []
        for column in columns:
            if len(rest):
                values = X[:, column]
                learned = self._learn(X[:, rest], values, numeric=len(np.unique(values)) > 2, name=f"column {column}")
                embedded = np.zeros((len(learned), X.shape[1]))
                embedded[:, rest] = learned
                directions.append(embedded)
            directions.append(np.eye(X.shape[1])[[column]])
        return np.vstack(directions)

    def _column_positions(self):
        one = isinstance(self.sensitive_columns, (str, numbers.Integral))
        named = [self.sensitive_columns] if one else list(self.sensitive_columns)
        if named and all(isinstance(column, (bool, np.bool_)) for column in named):
            if len(named) != self.n_features_in_:
                raise ValueError(
                    f"sensitive_columns is a mask of {len(named)} entries, but X has {self.n_features_in_} columns."
                )
            named = np.flatnonzero(named).tolist()
        if not named:
            raise ValueError("sensitive_columns is empty: name at least one column, or leave it None.")
        names = getattr(self, "feature_names_in_", None)
        positions = []
        for column in named:
            if isinstance(column, str):
                if names is None:
                    raise ValueError(
                        f"sensitive_columns names {column!r}, but X has no column names (an earlier step may have dropped "
                        'them). Call set_output(transform="pandas") on the pipeline, or give column positions.'
                    )
                found = np.flatnonzero(names == column)
                if not len(found):
                    raise ValueError(
                        f"sensitive_columns names {column!r}, which is not among the columns {list(names)}: name it as "
                        "it arrives here (ColumnTransformer prefixes names unless verbose_feature_names_out=False)."
                    )
                positions.append(int(found[0]))
            else:
                if not isinstance(column, numbers.Integral):
                    raise TypeError(
                        f"sensitive_columns has {column!r}: give positions (ints) or names (strings) of columns."
                    )
                position = int(column)
                if not -self.n_features_in_ <= position < self.n_features_in_:
                    raise ValueError(f"sensitive_columns has {position}, but X has {self.n_features_in_} columns.")
                positions.append(position % self.n_features_in_)
        return list(dict.fromkeys(positions))

    def _directions_of_features(self, X, sensitive_features):
        directions = []
        for name, values in _attribute_columns(sensitive_features, len(X)):
            if pd.isna(values).any():
                raise ValueError(
                    f"sensitive_features ({name}) has missing values: drop those rows, or make missing a group of its own."
                )
            check_one_kind(values, f"sensitive_features ({name})")
            numeric = (
                not isinstance(values.dtype, pd.CategoricalDtype)
                and pd.api.types.is_numeric_dtype(values.dtype)
                and not pd.api.types.is_bool_dtype(values.dtype)
                and values.nunique() > 2
            )
            target = values.to_numpy(dtype=np.float64) if numeric else pd.factorize(values, sort=True)[0]
            rows, target = _sorted_rows(X, target, distinct=self.distinct)
            directions.append(self._learn(rows, target, numeric=numeric, name=name))
        return np.vstack(directions)

    def _learn(self, X, target, *, numeric, name):
        """Coefficients of the linear model that predicts one attribute, shape (n_directions, n_features)."""
        X = np.asarray(X, dtype=np.float64)
        if not numeric and len(np.unique(target)) < 2:
            warn_caller(
                f"sensitive attribute ({name}) has one value only: no direction can be learned from it. Leave it out, or "
                "give directions.",
            )
            return np.zeros((0, X.shape[1]))
        if numeric:
            model = RidgeCV() if self.regressor is None else clone(self.regressor)
        else:
            model = LogisticRegression(max_iter=1000) if self.classifier is None else clone(self.classifier)
            target = np.unique(target, return_inverse=True)[1]
        model.fit(X, target)
        if not hasattr(model, "coef_"):
            raise ValueError(f"{type(model).__name__} has no coef_ after fit: the metric needs a linear model.")
        return np.asarray(model.coef_, dtype=np.float64).reshape(-1, X.shape[1])


def check_same_features(metric, names) -> None:
    """Raise ValueError where a fitted metric knows other feature names than `names` (None: no names, nothing to compare)."""
    known = getattr(metric, "feature_names_in_", None)
    if known is not None and names is not None and list(known) != list(names):
        raise ValueError(
            f"metric was fitted on the features {list(known)}, but here they are {list(names)}: its directions would apply to "
            "other columns. Give the same columns in the same order."
        )


def _orthonormal_rows(directions: np.ndarray, tolerance: float) -> np.ndarray:
    if not len(directions):
        return np.zeros((0, directions.shape[1]))
    unit = directions / np.abs(directions).max(axis=1, keepdims=True)  # first, since squares may overflow
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    _, singular, rows = np.linalg.svd(unit, full_matrices=False)
    return np.ascontiguousarray(rows[singular > tolerance * singular[0]])


def _sorted_rows(X: np.ndarray, target: np.ndarray | None = None, *, distinct: bool):
    """Rows of X (with their target) in lexicographic order: what is learned must not depend, to the last bit, on row order."""
    if target is not None:
        together = _sorted_rows(np.column_stack([X, target]), distinct=distinct)
        return together[:, :-1], together[:, -1]
    rows = X[np.lexsort(X.T[::-1])]
    if distinct:
        rows = rows[np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)]]
    return rows


def _attribute_columns(sensitive_features, n_rows: int):
    """Each attribute as (name, pandas Series)."""
    if hasattr(sensitive_features, "iter_columns"):  # polars' DataFrame; its to_pandas needs pyarrow
        columns = [(c.name, as_values(c)) for c in sensitive_features.iter_columns()]
    elif isinstance(sensitive_features, pd.DataFrame):
        columns = [(name, sensitive_features.iloc[:, i].array) for i, name in enumerate(sensitive_features.columns)]
    elif isinstance(getattr(sensitive_features, "dtype", None), pd.CategoricalDtype):
        columns = [(0, pd.Series(sensitive_features).array)]
    else:
        values = as_values(sensitive_features)
        if values.ndim not in (1, 2):
            raise ValueError(f"sensitive_features has shape {values.shape}: give one column per attribute.")
        columns = [(0, values)] if values.ndim == 1 else list(enumerate(values.T))
    if not columns:
        raise ValueError("sensitive_features has no columns: give at least one attribute.")
    attributes = [(f"attribute {name}", pd.Series(values).infer_objects()) for name, values in columns]
    if len(attributes[0][1]) != n_rows:
        raise ValueError(f"sensitive_features has {len(attributes[0][1])} entries for {n_rows} rows: give one per row.")
    return attributes
