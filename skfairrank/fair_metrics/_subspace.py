"""The fair metric on items: Euclidean distance after projecting out a sensitive subspace (Bower et al. 2021, section 5)."""

from __future__ import annotations

import numbers

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfairrank._features import validate_features
from skfairrank._queries import Queries
from skfairrank._transport import pairing_cost, transport_plan
from skfairrank._warnings import warn_caller
from skfairrank.fair_metrics._attributes import read_attributes, read_column, said_of
from skfairrank.fair_metrics._differences import Difference
from skfairrank.fair_metrics._rows import canonical_order
from skfairrank.fair_metrics._summary import MetricSummary

__all__ = ["SensitiveSubspaceMetric", "check_same_features"]

_BLOCK = 1 << 14  # rows projected at once
_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)  # of a projection, beside the largest number that takes part in it


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
        Columns of X that are sensitive, by position or name. Each contributes a direction among the columns not named here, and
        its own basis vector.
    direction : {"coefficients", "difference"}, default="coefficients"
        What is learned. "coefficients", as in the paper: the coefficients of a linear model that predicts the attribute. They say
        what *predicts* the group; where features are correlated that is not how the groups *differ*, and a ranker told to ignore
        it may go on telling the groups apart: `summary` says how much of the difference the directions hold. "difference": how
        the groups differ, i.e. the difference of their mean rows; of a numeric attribute the change of the features that goes
        with one standard deviation; of more than two classes the principal directions of their means, the fewest that hold nine
        tenths of the difference. See the user guide for when each is wanted.
    scale : {"gap", "raw"}, default="gap"
        Length of learned coefficients, which the attack of `SenSTIRRanker` takes as its unit. "gap": as far as the groups lie
        apart along the direction (of a numeric attribute: per standard deviation), so that a step of 1 leads from group to group.
        "raw": as the model has them, as in the paper; that length depends on the model's regularisation and on the number of
        rows. A column named in `sensitive_columns` has length 1 when raw. Differences are as long as they are with either.
    categorical : bool, list of int or str, or None, default=None
        Whether attributes that are numbers of more than two values are codes of categories: True (all of them), False (none), or
        a list of those that are, by name or position. None takes them for amounts, and warns where they are few whole numbers.
    classifier : estimator, optional
        Linear classifier for bool, string, categorical or two-valued attributes; default ``LogisticRegression()`` with more
        iterations. Two classes give one direction, K > 2 classes K directions (its `coef_`).
    regressor : estimator, optional
        Linear regressor for numeric attributes of more than two values; default ``RidgeCV()``.
    distinct : bool, default=True
        Learn on distinct rows: a person who appears in many queries counts once.
    max_rows : int or None, default=30_000
        Rows, a random sample, on which a classifier or regressor is fitted at most. Differences and gaps always count all rows.
    rank_tolerance : float, default=1e-6
        Directions, scaled to unit length, whose singular values fall below this times the largest count as dependent on the
        others.

    Attributes
    ----------
    directions_ : ndarray, shape (n_directions, n_features)
        Sensitive directions as given or learned: the attack moves along them in their units.
    gaps_ : ndarray, shape (n_features,)
        How far the groups lie apart in each feature, in feature units, >= 0: the largest difference of two groups' means; of a
        numeric attribute the absolute change that goes with one standard deviation. Of several attributes the largest gap. Where
        directions are given, the largest of their absolute entries; where nothing is sensitive, zero.
    difference_shares_ : dict of str to float
        Of each attribute that was learned from, the share of the groups' squared difference of means that lies within the
        sensitive subspace, in [0, 1]. Near 0 the metric leaves nearly all of what tells the groups apart.
    determining_columns_ : dict of str to list
        Of each attribute the columns of X, by name or position, that alone determine it, if they are not named in
        `sensitive_columns`.
    sensitive_basis_ : ndarray, shape (rank, n_features)
        Orthonormal rows with the span of the directions.
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
        "direction": [StrOptions({"coefficients", "difference"})],
        "scale": [StrOptions({"gap", "raw"})],
        "categorical": ["boolean", "array-like", str, numbers.Integral, None],
        "classifier": [HasMethods("fit"), None],
        "regressor": [HasMethods("fit"), None],
        "distinct": ["boolean"],
        "max_rows": [Interval(numbers.Integral, 10, None, closed="left"), None],
        "rank_tolerance": [Interval(numbers.Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        directions=None,
        *,
        sensitive_columns=None,
        direction="coefficients",
        scale="gap",
        categorical=None,
        classifier=None,
        regressor=None,
        distinct=True,
        max_rows=30_000,
        rank_tolerance=1e-6,
    ):
        self.directions = directions
        self.sensitive_columns = sensitive_columns
        self.direction = direction
        self.scale = scale
        self.categorical = categorical
        self.classifier = classifier
        self.regressor = regressor
        self.distinct = distinct
        self.max_rows = max_rows
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

    def _fit(self, X, sensitive_features, *, warn, uses_directions=True):
        self._validate_params()
        X = validate_features(self, X, dtype=[np.float64, np.float32])
        if self.directions is not None and self.sensitive_columns is not None:
            raise ValueError("Give either directions or sensitive_columns, not both.")
        learned, names = [], []
        if self.directions is not None:
            directions = self._given_directions(X.shape[1])
            names = ["given"] * len(directions)
            gaps = np.abs(directions).max(axis=0)
        else:
            if self.sensitive_columns is not None:
                learned = self._learn_from_columns(X)
            elif sensitive_features is not None:
                learned = self._learn_from_features(X, sensitive_features)
            elif warn:
                warn_caller(
                    "Nothing is treated as sensitive: the metric has no directions and no sensitive_columns, and fit got "
                    "no sensitive_features. Distances are Euclidean.",
                )
            nothing = np.zeros((0, X.shape[1]))
            directions = np.vstack([nothing, *(rows for _, rows in learned)])
            names = [difference.attribute.name for difference, rows in learned for _ in rows]
            gaps = np.max([np.zeros(X.shape[1]), *(difference.gaps for difference, _ in learned)], axis=0)
        length = np.abs(directions).max(axis=1, initial=0.0)
        if ((length > 0) & ((length < 1e-100) | (length > 1e100))).any():
            raise ValueError("A sensitive direction has a length beyond 1e-100 to 1e100: rescale it.")
        zero = length == 0
        if zero.any():
            warn_caller(
                f"{int(zero.sum())} of {len(zero)} sensitive directions are zero, and have no effect.",
            )
        self.directions_ = directions[~zero]
        self.gaps_ = gaps
        self._direction_names = [name for name, is_zero in zip(names, zero, strict=True) if not is_zero]
        self.sensitive_basis_ = _orthonormal_rows(self.directions_, self.rank_tolerance)
        self.difference_shares_ = {
            difference.attribute.name: difference.share_within(self.sensitive_basis_) for difference, _ in learned
        }
        self._origin = _row_of_its_own(X)
        far = np.maximum(np.abs(X.min(axis=0) - self._origin), np.abs(X.max(axis=0) - self._origin)).astype(np.float64)
        self._reach = far + np.abs(self._origin) + (np.abs(self.sensitive_basis_) @ (far + np.abs(self._origin))).sum()
        self._find_determining_columns(X, learned, warn and uses_directions)
        if not uses_directions:
            return self
        if learned and len(self.sensitive_basis_) == X.shape[1]:
            ranks = {
                difference.attribute.name: len(_orthonormal_rows(rows[rows.any(axis=1)], self.rank_tolerance))
                for difference, rows in learned
            }
            warn_caller(
                "Nothing is left to rank by: the sensitive directions span all "
                f"{X.shape[1]} features ({', '.join(f'{name}: rank {rank}' for name, rank in ranks.items())}). Merge classes, "
                'name fewer attributes, or use direction="difference", whose rank is small.'
            )
        return self

    @property
    def basis_(self):
        return self.sensitive_basis_

    @property
    def shrink_(self):
        return np.ones(len(self.sensitive_basis_))

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
        X = validate_features(self, X, dtype=[np.float64, np.float32], reset=False)
        return self._project(X)

    def _project(self, X):
        """P X; entries that differ by rounding alone are equal, since trees and scalers see the sign of anything.

        What is left is measured from a row of the training data, so that what the projection annihilates, or leaves constant, is
        zero up to rounding, and is made zero. Then it is rounded to a grid far finer than the features and coarser than rounding.
        """
        A, origin = self.sensitive_basis_, self._origin
        touched = A.any(axis=0)
        out = np.array(X)
        if not touched.any():
            return out
        size_of_row, fixed = np.abs(A), origin - (origin @ A.T) @ A
        grid = 2.0 ** np.ceil(np.log2(np.maximum(_ROUNDING * self._reach, np.finfo(float).tiny)) + 3)
        for start in range(0, len(X), _BLOCK):
            rows = X[start : start + _BLOCK].astype(np.float64) - origin
            left, size = rows - (rows @ A.T) @ A, np.abs(rows)
            left[np.abs(left) <= _ROUNDING * (size + (size @ size_of_row.T).sum(axis=1, keepdims=True))] = 0.0
            left = np.round((left + fixed) / grid) * grid
            out[start : start + _BLOCK, touched] = left[:, touched]
        return out

    def summary(self):
        """What the metric treats as sensitive, by feature: directions, gaps, and how much of the groups' difference it holds.

        Returns
        -------
        summary : MetricSummary
            ``summary.table`` is a DataFrame with a row for each feature: a column for each direction, and the gap.
            ``summary.shares`` is `difference_shares_`, ``summary.determining_columns`` is `determining_columns_`. It prints as a
            table; `skfairrank.inspection.SensitiveDirectionsDisplay` draws it.
        """
        check_is_fitted(self, "sensitive_basis_")
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        return MetricSummary.of(
            names,
            self.directions_,
            self._direction_names,
            self.gaps_,
            self.difference_shares_,
            self.determining_columns_,
        )

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
        difference = pairs[:, 0] - pairs[:, 1]
        return np.linalg.norm(difference - (difference @ self.sensitive_basis_.T) @ self.sensitive_basis_, axis=1)

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
        X = validate_features(self, X, dtype=np.float64, reset=False)
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

    def _learn_from_columns(self, X):
        """(difference, directions) of each sensitive column: a direction among the columns not named, and its own axis."""
        columns = self._column_positions()
        names = [self._column_name(column) for column in columns]
        said = said_of(names, self.categorical, "sensitive columns")
        rest = np.ones(X.shape[1], bool)
        rest[columns] = False
        learned = []
        for column, name, is_categorical in zip(columns, names, said, strict=True):
            values = X[:, column].astype(np.float64)
            attribute = read_column(values, f"column {name}", is_categorical)
            order = canonical_order(X, values, distinct=self.distinct)
            difference = Difference(X, attribute, order)
            rows = self._directions_of(X, difference, order, rest)
            gap = difference.gaps[column] if self.scale == "gap" else 1.0
            learned.append((difference, np.vstack([rows, np.eye(X.shape[1])[[column]] * (gap if gap > 0 else 1.0)])))
        return learned

    def _learn_from_features(self, X, sensitive_features):
        """(difference, directions) of each attribute."""
        learned, everywhere = [], np.ones(X.shape[1], bool)
        for attribute in read_attributes(sensitive_features, len(X), self.categorical):
            order = canonical_order(X, attribute.values, distinct=self.distinct)
            difference = Difference(X, attribute, order)
            learned.append((difference, self._directions_of(X, difference, order, everywhere)))
        return learned

    def _directions_of(self, X, difference, order, among):
        """Directions of one attribute, shape (n_directions, n_features), zero but in the columns `among`."""
        attribute = difference.attribute
        if attribute.n_classes == 1:
            warn_caller(
                f"sensitive attribute ({attribute.name}) has one value only: no direction can be learned from it. Leave it "
                "out, or give directions.",
            )
        if attribute.n_classes == 1 or not among.any():
            return np.zeros((0, X.shape[1]))
        if self.direction == "difference":
            return difference.directions(among)
        coefficients = self._coefficients(X, attribute, order[: self.max_rows], among)
        directions = np.zeros((len(coefficients), X.shape[1]))
        directions[:, among] = coefficients
        directions[:, ~difference.varies] = 0.0  # a constant tells no group apart
        if self.scale == "raw":
            return directions
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        units = np.divide(directions, length, out=np.zeros_like(directions), where=length > 0)
        return units * difference.along(units)[:, None]

    def _coefficients(self, X, attribute, rows, among):
        """Coefficients of the linear model that predicts an attribute, shape (n_directions, number of columns `among`)."""
        if attribute.is_numeric:
            model = RidgeCV() if self.regressor is None else clone(self.regressor)
        else:
            model = LogisticRegression(max_iter=1000) if self.classifier is None else clone(self.classifier)
        target = attribute.values[rows]
        if not attribute.is_numeric:
            target = np.unique(target, return_inverse=True)[1]
        features = X[rows] if among.all() else X[np.ix_(rows, np.flatnonzero(among))]
        model.fit(features.astype(np.float64, copy=False), target)
        if not hasattr(model, "coef_"):
            raise ValueError(f"{type(model).__name__} has no coef_ after fit: the metric needs a linear model.")
        return np.asarray(model.coef_, dtype=np.float64).reshape(-1, features.shape[1])

    def _find_determining_columns(self, X, learned, warn):
        """Set `determining_columns_`, and warn of those that are copies of an attribute."""
        named = set() if self.sensitive_columns is None else set(self._column_positions())
        self.determining_columns_ = {}
        for difference, _ in learned:
            found = {j: is_copy for j, is_copy in difference.determining_columns(X).items() if j not in named}
            name = difference.attribute.name
            self.determining_columns_[name] = [self._column_name(j) for j in found]
            copies = [self._column_name(j) for j, is_copy in found.items() if is_copy]
            if copies and warn:
                warn_caller(
                    f"Columns {copies} of X: each alone determines the sensitive {name}, and directions learned from it leave a "
                    "part of them. Name them, SensitiveSubspaceMetric(sensitive_columns=[...]), or leave them out of X."
                )

    def _column_name(self, position):
        names = getattr(self, "feature_names_in_", None)
        return int(position) if names is None else str(names[position])

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


def check_same_features(metric, names) -> None:
    """Raise ValueError where a fitted metric knows other feature names than `names` (None: no names, nothing to compare)."""
    known = getattr(metric, "feature_names_in_", None)
    if known is not None and names is not None and list(known) != list(names):
        raise ValueError(
            f"metric was fitted on the features {list(known)}, but here they are {list(names)}: its directions would apply to "
            "other columns. Give the same columns in the same order."
        )


def _orthonormal_rows(directions: np.ndarray, tolerance: float) -> np.ndarray:
    """Orthonormal rows with the span of the directions. A feature that lies within it has a row of its own, and none in others.

    So such a feature is projected out exactly, and leaves no trace of rounding in another.
    """
    n_features = directions.shape[1]
    if not len(directions):
        return np.zeros((0, n_features))
    unit = directions / np.abs(directions).max(axis=1, keepdims=True)  # first, since squares may overflow
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    used = np.flatnonzero(unit.any(axis=0))
    _, singular, rows = np.linalg.svd(unit[:, used], full_matrices=False)
    rows = rows[singular > tolerance * singular[0]]
    within = 1.0 - (rows**2).sum(axis=0) <= max(tolerance**2, 64 * np.finfo(float).eps)
    basis = np.zeros((len(rows), n_features))
    n_axes = int(within.sum())
    basis[np.arange(n_axes), used[within]] = 1.0
    if n_axes < len(rows):
        basis[n_axes:, used[~within]] = np.linalg.svd(rows[:, ~within], full_matrices=False)[2][: len(rows) - n_axes]
    return basis


def _row_of_its_own(X: np.ndarray) -> np.ndarray:
    """The first row in lexicographic order, which does not depend on how rows were shuffled, as float64."""
    rows = np.arange(len(X))
    for j in range(X.shape[1]):
        column = X[rows, j] if len(rows) < len(X) else X[:, j]
        rows = rows[column == column.min()]
        if len(rows) == 1:
            break
    return X[rows[0]].astype(np.float64)
