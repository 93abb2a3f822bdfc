"""The fair metric on items: Euclidean distance after projecting out a sensitive subspace (Bower et al. 2021, section 5)."""

from __future__ import annotations

import inspect
import numbers

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfairrank._checks import column_positions, validate_features, warn_caller
from skfairrank._sensitive import UNKNOWN_GROUPS, crossed_attribute, read_attributes, read_column, said_of
from skfairrank.fair_metrics._differences import (
    ConditionalDifference,
    Difference,
    canonical_order,
    warn_of_small_groups,
)
from skfairrank.fair_metrics._linear import (
    ACCEPTED,
    LinearFairMetric,
    check_fair_metric,
    check_same_features,
    fitted_metric,
    orthonormal_rows,
    unfrozen,
)


class SensitiveSubspaceMetric(LinearFairMetric):
    r"""Distance between items that ignores sensitive directions; as a transformer, the paper's "Project" baseline.

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
    direction : {"coefficients", "difference", "conditional_difference"}, default="coefficients"
        What is learned. "coefficients", as in the paper: the coefficients of a linear model that predicts the attribute. They say
        what *predicts* the group; where features are correlated that is not how the groups *differ*, and a ranker told to ignore
        it may go on telling the groups apart: `summary` says how much of the difference the directions hold. "difference": how
        the groups differ, i.e. the difference of their mean rows; of a numeric attribute the change of the features that goes
        with one standard deviation; of more than two classes the principal directions of their means, the fewest that hold nine
        tenths of the difference. "conditional_difference": the same, and the gaps too, among rows of equal relevance `y`: the
        coefficients of the features on the attribute beside an intercept for each level of y. It charges only for what labels do
        not explain; so where labels are biased it leaves that bias in. See the user guide for when each is wanted.
    scale : {"gap", "raw"}, default="gap"
        Length of learned coefficients, which the attack of `SenSTIRRanker` takes as its unit. "gap": as far as the groups lie
        apart along the direction (of a numeric attribute: per standard deviation), so that a step of 1 leads from group to group.
        "raw": as the model has them, as in the paper; that length depends on the model's regularisation and on the number of
        rows. A column named in `sensitive_columns` has length 1 when raw. Differences are as long as they are with either.
    categorical : bool, list of int or str, or None, default=None
        Whether attributes that are numbers of more than two values are codes of categories: True (all of them), False (none), or
        a list of those that are, by name or position. None takes them for amounts, and warns where they are few whole numbers.
    crossed : bool, default=False
        Whether the combinations of several attributes' groups are an attribute of their own beside them: what befalls only some
        of them, say women of one race, the attributes one by one may not show. An amount makes two groups, up to its median and
        above.
    unknown_groups : {"error", "leave_out"}, default="error"
        What missing values in `sensitive_features` are. "leave_out": rows without a group are left out where groups are compared;
        a ranker still trains on them.
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
        How far the groups lie apart in each feature, in feature units, >= 0, less what chance adds. The difference d of two
        groups' means, known with the standard error e, counts as :math:`d \max(0, 1 - c e^2 / d^2)`, with
        :math:`c = 1 + 2 \log m` for m pairs of groups, of which the largest is taken. Of a numeric attribute: the larger one of
        the absolute change that goes with one standard deviation, and the standard deviation of the feature's means in ten bins,
        which sees an age that counts in the middle; each less its error. Of several attributes the largest gap.
        With many rows the errors are nothing; a small group's gaps are taken for chance unless they are large, and a warning says
        below what. Where directions are given, the largest of their absolute entries; where nothing is sensitive, zero.
    raw_gaps_ : ndarray, shape (n_features,)
        The same as measured, chance included.
    difference_shares_ : dict of str to float
        Of each attribute that was learned from, the share of the groups' squared difference of means that lies within the
        sensitive subspace, in [0, 1]. Near 0 the metric leaves nearly all of what tells the groups apart.
    determining_columns_ : dict of str to list
        Of each attribute the columns of X, by name or position, that alone determine it, if they are not named in
        `sensitive_columns`.
    basis_, sensitive_basis_ : ndarray, shape (rank, n_features)
        Orthonormal rows with the span of the directions.
    shrink_ : ndarray of ones, shape (rank,)
        All that lies along them is left out.
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
    >>> metric.query_distances(
    ...     [[0, 5], [1, 5]], [[1, 0], [3, 0]], qid_X=[0, 0], qid_Y=[0, 0]
    ... ).tolist()
    [[2.5]]
    """

    __metadata_request__fit = {"sensitive_features": True}

    _parameter_constraints: dict = {
        "directions": ["array-like", None],
        "sensitive_columns": ["array-like", str, numbers.Integral, None],
        "direction": [StrOptions({"coefficients", "difference", "conditional_difference"})],
        "scale": [StrOptions({"gap", "raw"})],
        "categorical": ["boolean", "array-like", str, numbers.Integral, None],
        "crossed": ["boolean"],
        "unknown_groups": [StrOptions(set(UNKNOWN_GROUPS))],
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
        crossed=False,
        unknown_groups="error",
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
        self.crossed = crossed
        self.unknown_groups = unknown_groups
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
        y : array-like of float, shape (n_rows,), optional
            Relevance of each row; for ``direction="conditional_difference"`` only.
        sensitive_features : array-like, shape (n_rows,) or (n_rows, n_attributes), optional
            Sensitive attributes, one or several columns, used where neither `directions` nor `sensitive_columns` is set.

        Raises
        ------
        ValueError
            If directions do not fit X, a named column is not in X, or sensitive features have missing values or another length.
        """
        return self._fit(X, sensitive_features, y, warn=True)

    def _fit(self, X, sensitive_features, y=None, *, warn, uses_directions=True):
        self._validate_params()
        X = validate_features(self, X, dtype=[np.float64, np.float32])
        if self.directions is not None and self.sensitive_columns is not None:
            raise ValueError("Give either directions or sensitive_columns, not both.")
        learned, names = [], []
        if self.directions is not None:
            directions = self._given_directions(X.shape[1])
            names = ["given"] * len(directions)
            gaps = raw_gaps = np.abs(directions).max(axis=0)
        else:
            if self.sensitive_columns is not None or sensitive_features is not None:
                learned = self._learned(X, y, sensitive_features)
            elif warn:
                warn_caller(
                    "Nothing is treated as sensitive: the metric has no directions and no sensitive_columns, and fit got no "
                    "sensitive_features. Distances are Euclidean."
                )
            nothing = np.zeros((0, X.shape[1]))
            directions = np.vstack([nothing, *(rows for _, rows in learned)])
            names = [difference.attribute.name for difference, rows in learned for _ in rows]
            none, differences = np.zeros(X.shape[1]), [difference for difference, _ in learned]
            gaps = np.max([none, *(one.gaps for one in differences)], axis=0)
            raw_gaps = np.max([none, *(one.raw_gaps for one in differences)], axis=0)
        length = np.abs(directions).max(axis=1, initial=0.0)
        if ((length > 0) & ((length < 1e-100) | (length > 1e100))).any():
            raise ValueError("A sensitive direction has a length beyond 1e-100 to 1e100: rescale it.")
        zero = length == 0
        if zero.any():
            warn_caller(f"{int(zero.sum())} of {len(zero)} sensitive directions are zero, and have no effect.")
        self.directions_ = directions[~zero]
        self.gaps_, self.raw_gaps_ = gaps, raw_gaps
        self._direction_names = [name for name, is_zero in zip(names, zero, strict=True) if not is_zero]
        self.basis_ = orthonormal_rows(self.directions_, self.rank_tolerance)
        self.shrink_ = np.ones(len(self.basis_))
        shares = {difference.attribute.name: difference.share_within(self.basis_) for difference, _ in learned}
        self.difference_shares_ = shares
        self._measure_from(X)
        self._find_determining_columns(X, learned, warn and uses_directions)
        if not uses_directions:
            return self
        if len(self.basis_) == X.shape[1]:
            ranks = {
                difference.attribute.name: len(orthonormal_rows(rows[rows.any(axis=1)], self.rank_tolerance))
                for difference, rows in learned
            } or {"given": len(self.basis_)}
            remedy = 'Merge classes, name fewer attributes, or use direction="difference", whose rank is small.'
            warn_caller(
                f"Nothing is left to rank by: the sensitive directions span all {X.shape[1]} features "
                f"({', '.join(f'{name}: rank {rank}' for name, rank in ranks.items())}). "
                f"{remedy if learned else 'Give fewer directions.'}"
            )
        return self

    def summary(self):
        """What the metric treats as sensitive, by feature; `skfairrank.inspection.SensitiveDirectionsDisplay` draws it.

        Returns
        -------
        summary : DataFrame
            A row for each feature; columns "direction 0 (attribute)", ..., and "gap", all in feature units. How much of the
            groups' difference the directions hold is `difference_shares_`.
        """
        check_is_fitted(self, "basis_")
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        directions = zip(self._direction_names, self.directions_, strict=True)
        columns = {f"direction {k} ({name})": row for k, (name, row) in enumerate(directions)}
        return pd.DataFrame({**columns, "gap": self.gaps_}, index=pd.Index(np.asarray(names), name="feature"))

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

    def _learned(self, X, y, sensitive_features):
        """(difference, directions) of each attribute; directions of a sensitive column are among the others, and its own axis."""
        among = np.ones(X.shape[1], bool)
        if self.sensitive_columns is None:
            attributes = read_attributes(
                sensitive_features,
                len(X),
                self.categorical,
                crossed=self.crossed,
                unknown_groups=self.unknown_groups,
            )
            columns = [None] * len(attributes)
        else:
            columns = self._column_positions()
            among[columns] = False
            names = [self._column_name(column) for column in columns]
            attributes = [
                read_column(X[:, column].astype(np.float64), f"column {name}", is_categorical)
                for column, name, is_categorical in zip(columns, names, said_of(names, self.categorical), strict=True)
            ]
            if self.crossed:
                attributes, columns = [*attributes, crossed_attribute(attributes)], [*columns, None]
        learned = []
        for column, attribute in zip(columns, attributes, strict=True):
            difference, order = self._difference(X, y, attribute)
            rows = self._directions_of(X, difference, order, among)
            if column is not None:
                axis = np.eye(X.shape[1])[[column]]
                length = abs(difference.along(axis)[0]) if self.scale == "gap" else 1.0
                rows = np.vstack([rows, axis * (length if length > 0 else 1.0)])
            learned.append((difference, rows))
        return learned

    def _difference(self, X, y, attribute):
        """How the groups of an attribute differ, and the rows that count, in their order."""
        if self.direction != "conditional_difference":
            order = self._order(X, attribute, attribute.values)
            return Difference(X, attribute, order), order
        if y is None:
            raise ValueError(
                'direction="conditional_difference" compares rows of equal relevance: fit needs y, one relevance for each row.'
            )
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if y.shape != (len(X),):
            raise ValueError(f"y has shape {y.shape} for {len(X)} rows: give one relevance for each row.")
        levels = np.unique(y, return_inverse=True)[1]
        cells = np.unique(np.column_stack([attribute.values, levels]), axis=0, return_inverse=True)[1].reshape(-1)
        order = self._order(X, attribute, cells)
        return ConditionalDifference(X, attribute, order, levels), order

    def _order(self, X, attribute, values):
        """Rows that count, those whose group is known."""
        order = canonical_order(X, values.astype(np.float64), distinct=self.distinct)
        order = order[attribute.is_known[order]]
        if not attribute.is_numeric:
            warn_of_small_groups(attribute, np.bincount(attribute.values[order]))
        return order

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
        if self.direction != "coefficients":
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
        names = getattr(self, "feature_names_in_", None)
        return column_positions(self.sensitive_columns, "sensitive_columns", self.n_features_in_, names)


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
        metric = fitted_metric(metric)
        check_same_features(metric, getattr(X, "columns", None))
        return check_fair_metric(metric, X.shape[1])
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
    taken = inspect.signature(metric.fit)
    takes_any = any(p.kind == p.VAR_KEYWORD for p in taken.parameters.values())
    given = {"sensitive_features": sensitive_features} if takes_any or "sensitive_features" in taken.parameters else {}
    try:
        taken.bind(X, **given)
    except TypeError as error:
        raise TypeError(
            f"metric is a {type(metric).__name__}, whose fit needs more than the X and sensitive_features that a ranker has "
            f"({error}). If it is a fair metric, fit it, and pass FrozenEstimator(metric). {ACCEPTED}"
        ) from error
    metric.fit(X, **given)
    return check_fair_metric(metric, X.shape[1])


def _as_directions(metric):
    """What may be an array of directions; its entries are checked when it is used."""
    is_array = hasattr(metric, "__len__") or hasattr(metric, "__array__")
    if not is_array or callable(metric) or isinstance(metric, (str, bytes, dict, set)):
        raise TypeError(f"metric={metric!r} is no fair metric. {ACCEPTED}")
    return metric
