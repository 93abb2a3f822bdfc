"""Gap boosting: a boosted ranker in which a split counts less, the more its column gives the groups away."""

from __future__ import annotations

import dataclasses
import functools
import numbers

import numpy as np
import pandas as pd
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from skfairrank._checks import names_queries, warn_caller
from skfairrank._sensitive import UNKNOWN_GROUPS, read_attributes
from skfairrank.fair_metrics._differences import warn_of_small_groups
from skfairrank.fair_metrics._gaps import class_and_number, column_sums, ends_of, ks_gap, standardized_gap
from skfairrank.wrappers._base import library_of
from skfairrank.wrappers._dask import DaskRows
from skfairrank.wrappers._library import NEGLIGIBLE, parameters_of, seen_columns
from skfairrank.wrappers._query_ranker import QueryRanker
from skfairrank.wrappers._told import told_together

# Gaps are nearly equal where the smallest is more than this share of the largest.
ALIKE = 0.75
# So many columns, those that the trees gain most by, are looked at for what they tell together.
N_MAIN = 16


class GapBoostingRanker(QueryRanker):
    r"""A boosted ranker in which a split's gain counts less, the more its column gives the groups away.

    With :math:`g_j` the gap of the groups of `sensitive_features` in column j, the gain of every split of this column is
    multiplied by :math:`\exp(-\mathrm{strength} \cdot g_j)` while trees are grown: by LightGBM's ``feature_contri`` and
    CatBoost's ``feature_weights``. Nothing else changes: the model's own objective, categories, missing values, early stopping
    and speed stay. So the trees lean on a column that goes along with the group only as far as no other column says the same.

    Parameters
    ----------
    estimator : LGBMRanker, DaskLGBMRanker, CatBoostRanker or XGBRanker
        Or a regressor of these libraries, a pointwise ranker. XGBoost can't weigh gains, only the draw of columns: see Notes.
    strength : float, default=5.0
        How much a gap costs, >= 0. 0 is the plain model, bit for bit.
    gap : {"standardized", "ks"}, default="standardized"
        How far groups lie apart in a column; of several groups and attributes the largest gap of two groups counts.

        - "standardized": the difference of two groups' means, in standard deviations of the column (over all rows). Of a numeric
          attribute: the absolute correlation, or where that is larger the correlation ratio over ten bins of the attribute. Of a
          column of categories: the gap of the indicator of those categories that tell two groups apart best, which differs by
          their total variation distance; of a numeric attribute the correlation ratio, or the largest correlation of scores of
          categories and bins. So a category of two values has the gap of the same column written as 0 and 1.
        - "ks": the Kolmogorov-Smirnov distance of two groups' distributions, which no monotone transformation of the column
          changes, as trees aren't changed by one; for categories the total variation distance. A numeric attribute makes two
          groups twice: above its median and not, and far from its median and not. In [0, 1], while a standardized gap may be 2
          and more: the same strength does less.
    categorical : bool, list of int or str, or None, default=None
        Whether `sensitive_features` that are numbers of more than two values are codes of categories, as in
        `SensitiveSubspaceMetric`.
    crossed : bool, default=False
        Whether the combinations of several attributes' groups count beside them, as in `SensitiveSubspaceMetric`.
    unknown_groups : {"error", "leave_out"}, default="error"
        What missing values in `sensitive_features` are. "leave_out": the gaps are those of the other rows, and trees are grown on
        all.

    Attributes
    ----------
    gaps_ : Series of float, shape (n_features,)
        The gap of each column, >= 0, by name, or by position where X has no names. Where values are missing (or infinite), the
        larger one of the gap among the rows that have a value, and that of the indicator of those values; among categories
        missing is one more. A constant column has the gap 0. Each gap is less what chance adds to it: standardized ones as in
        `SensitiveSubspaceMetric`; of the others the distance d of two groups counts as :math:`d \max(0, 1 - e^2 / d^2)`, with e
        what chance alone would make it (the largest of several is larger by chance).
    raw_gaps_ : Series of float, shape (n_features,)
        The same as measured, chance included.
    weights_ : Series of float, shape (n_features,)
        ``exp(-strength * gaps_)``. A user's own weights in the model's parameters are multiplied by these.
    estimator_, n_queries_, n_features_in_, feature_names_in_
        As of `QueryRanker`.

    Notes
    -----
    Columns are categories where they have a dtype of categories or text, or where the model is told so
    (``categorical_feature``, ``cat_features``, ``feature_types``). All rows count alike: a person who appears in several queries
    counts several times. What the model takes for missing (XGBoost's `missing` and entries that a sparse X leaves out, LightGBM's
    ``zero_as_missing``) is missing here too. LightGBM splits ordered categories as numbers, and so they are measured.

    **Sampled columns** undo the weights: a tree that draws none but columns with gaps splits these. With ``colsample_bytree``,
    CatBoost's ``rsm`` and the like below 1 there is a warning; so with LightGBM's forced splits, which ask for no weight.

    **CatBoost** adds noise to the score of a split before it weighs the gain, and gains that noise has made negative are the
    better the smaller their weight is; with few rows that undoes the weights. So where the model does not set
    ``random_strength``, it is 0 here (unless `strength` is 0, too). One that is set stays, with a warning.

    **XGBoost** takes ``feature_weights`` only for sampling columns: they change how often a column may be split, not what a split
    is worth, and weights below 1e-6 count as 1e-6. So the model must sample columns (``colsample_bynode=0.5``, for example; also
    by level or by tree), else it is refused. The user guide has what that is worth.

    **Rows on several machines**: with ``lightgbm.DaskLGBMRanker()`` X, y and `qid` are collections of Dask whose partitions hold
    whole queries, as for `QueryRanker`. `sensitive_features` come to this process, and their codes go to the workers.
    Standardized gaps are made of sums over the rows of each partition, and are those of the same rows in memory. Those of
    ``gap="ks"``, and what warnings look at, are of 100,000 rows drawn by a fixed seed (all, if they are fewer), which come here.

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
    >>> ranker = ranker.fit(
    ...     task.data,
    ...     task.target.astype(int),
    ...     qid=task.qid,
    ...     sensitive_features=task.sensitive_features,
    ... )
    >>> # three marks of one skill, lowered for a group by 1.5, 1.5 and .5; two others
    >>> ranker.gaps_.round(1).tolist()
    [1.2, 1.2, 0.6, 0.0, 0.2]
    """

    _parameter_constraints = {
        **QueryRanker._parameter_constraints,
        "strength": [Interval(numbers.Real, 0, None, closed="left")],
        "gap": [StrOptions({"standardized", "ks"})],
        "categorical": ["boolean", "array-like", str, numbers.Integral, None],
        "crossed": ["boolean"],
        "unknown_groups": [StrOptions(set(UNKNOWN_GROUPS))],
    }

    def __init__(
        self,
        estimator,
        *,
        strength=5.0,
        gap="standardized",
        categorical=None,
        crossed=False,
        unknown_groups="error",
    ):
        super().__init__(estimator)
        self.strength = strength
        self.gap = gap
        self.categorical = categorical
        self.crossed = crossed
        self.unknown_groups = unknown_groups

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
        super().fit(X, y, qid=qid, sensitive_features=sensitive_features, **fit_params)
        if self.strength > 0:
            self._warn_where_gaps_mislead(*self.__dict__.pop("_measured_on"))
        return self

    def _prepared(self, estimator, X, arguments, sensitive_features, queries):
        library, name = library_of(estimator), type(estimator).__name__
        if not library.column_weights:
            raise ValueError(
                f"GapBoostingRanker needs a model that weighs the splits of each column, as those of LightGBM, CatBoost and "
                f"XGBoost do, and got a {name}: give LGBMRanker(), CatBoostRanker(), or XGBRanker(colsample_bynode=0.5). Steps "
                'of a pipeline go before the GapBoostingRanker; for linear scores there is SenSTIRRanker(adversary="gaps").'
            )
        sampling = library.samples_columns(estimator)
        if self.strength > 0 and not library.weighs_gains and sampling is None:
            raise ValueError(
                f"{name} weighs columns only where it samples them, and here it takes all: set colsample_bynode=0.5 (or "
                "colsample_bylevel, colsample_bytree) in it. LGBMRanker and CatBoostRanker weigh the gain of splits itself."
            )
        if self.strength > 0 and library.weighs_gains and sampling is not None:
            warn_caller(
                f"{name} samples columns ({sampling}): where it draws none but columns with gaps it splits these, whatever "
                "their weight. Leave that parameter out."
            )
        beside = [one for one in library.beside_weights if parameters_of(estimator).get(one)]
        if self.strength > 0 and beside:
            warn_caller(
                f"{name} has {beside[0]}={parameters_of(estimator)[beside[0]]!r}, by which it splits columns with gaps whatever "
                "their weight. Leave that parameter out."
            )
        attributes = read_attributes(
            sensitive_features,
            queries.n_rows,
            self.categorical,
            crossed=self.crossed,
            unknown_groups=self.unknown_groups,
            owner="GapBoostingRanker",
        )
        attributes = [dataclasses.replace(one, values=queries.group(one.values)) for one in attributes]
        self._column_names = list(getattr(self, "feature_names_in_", range(X.shape[1])))
        sample, rows = X.sample() if isinstance(X, DaskRows) else (X, slice(None))
        self._gap_of_column, self._raw_gap_of_column = self._measured(X, attributes, sample, rows, estimator, arguments)
        self._weight_of_column = np.exp(-self.strength * self._gap_of_column)
        if self.strength == 0:
            return arguments
        if not (self.weights_ >= NEGLIGIBLE).any():
            raise ValueError(
                f"strength={self.strength} leaves no column of X any weight: the smallest gap is {self.gaps_.min():.3g}, and "
                f"exp(-strength * gap) is below {NEGLIGIBLE:g}. Give a smaller strength."
            )
        self._measured_on = sample, [one.take(rows) for one in attributes]
        return library.weigh_columns(estimator, self.weights_, arguments)

    def _warn_where_gaps_mislead(self, X, attributes) -> None:
        """Warn where weights by gaps do nothing, or lead trees to columns that tell the group together."""
        importance = library_of(self.estimator_).importances(self.estimator_)
        used = np.flatnonzero(importance)
        gaps = self._gap_of_column[used]
        if len(used) > 1 and gaps.min() > ALIKE * gaps.max() and self.strength * gaps.max() > 1:
            warn_caller(
                f"The groups' gap is nearly the same in all columns that are split ({gaps.min():.2f} to {gaps.max():.2f}): "
                "only differences between gaps act, and this is nearly the plain model. Rankers that know what a row might as "
                "well have been do more: SenSTIRBoostingRanker, AveragingRanker, DistilledRanker."
            )
        main = used[np.argsort(-importance[used], kind="stable")[:N_MAIN]]
        for attribute in attributes if len(main) > 1 else ():
            told, silent = told_together(X, main, attribute)
            if len(silent):
                names = ", ".join(str(self._column_names[j]) for j in silent)
                warn_caller(
                    f"The columns {names} tell sensitive attribute ({attribute.name}) together (AUC {told:.2f}), and hardly "
                    "each alone, as gaps see them: for their large weights the trees may tell the groups apart the more. Compare "
                    "with the plain model on hypothetical rows; leave out one of these columns, or use SenSTIRBoostingRanker."
                )

    # What is kept are arrays, which skops stores; it stores no Series.
    @property
    def gaps_(self) -> pd.Series:
        return pd.Series(self._gap_of_column, index=self._column_names, name="gap")

    @property
    def raw_gaps_(self) -> pd.Series:
        return pd.Series(self._raw_gap_of_column, index=self._column_names, name="gap")

    @property
    def weights_(self) -> pd.Series:
        return pd.Series(self._weight_of_column, index=self._column_names, name="gap")

    def _measured(self, X, attributes, sample, rows, estimator, arguments) -> np.ndarray:
        """The gap of each column, and as measured, shape (2, n_features); `sample` has the rows of these numbers."""
        gaps, differing = np.zeros((2, X.shape[1])), []
        for attribute in attributes:
            known = attribute.values[attribute.is_known]
            if known.min() < known.max():
                differing.append(attribute)
                if not attribute.is_numeric:
                    warn_of_small_groups(attribute, np.bincount(known))
            else:
                warn_caller(
                    f"sensitive attribute ({attribute.name}) has one value only: no column has a gap by it. Leave it out, or "
                    "fit on rows of all groups.",
                )
        if not differing:
            return gaps
        library, parameters = library_of(estimator), parameters_of(estimator) | {"client": None}  # it stays here
        named = library.named_categories(estimator, arguments)
        seen = functools.partial(seen_columns, library, parameters, named, self._column_names)
        if self.gap == "ks":
            few = [one.take(rows) for one in differing]
            return np.transpose([ks_gap(column, few, name) for column, name in zip(seen(sample), self._column_names)])
        of_rows = [class_and_number(one) for one in differing]
        n_classes, ends = [int(classes.max()) + 1 for classes, _ in of_rows], [ends_of(one) for one in seen(sample)]
        if isinstance(X, DaskRows):
            sums = X.total(_sums, of_rows, n_classes=n_classes, ends=ends, seen=seen)
        else:
            sums = _sums(X, of_rows, n_classes, ends, seen)
        return np.transpose([standardized_gap(one, differing, name) for one, name in zip(sums, self._column_names)])


def _sums(X, of_rows, n_classes, ends, seen) -> list:
    """For each column of X what its gap needs, of these rows."""
    cells = [(*pair, n) for pair, n in zip(of_rows, n_classes)]
    return [column_sums(column, cells, one) for column, one in zip(seen(X), ends)]
