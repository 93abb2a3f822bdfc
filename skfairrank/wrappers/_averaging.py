"""AveragingRanker: any ranker's scores, averaged over what each row might as well have been."""

from __future__ import annotations

from functools import reduce

import numpy as np
from sklearn.base import _fit_context, clone

from skfairrank._candidates import with_effect
from skfairrank._checks import names_queries
from skfairrank.hypotheticals import Hypotheticals, check_hypotheticals
from skfairrank.wrappers._base import Wrapper, as_rows, fit_clone


class AveragingRanker(Wrapper):
    r"""A ranker whose score is the mean over a row and its hypothetical rows, :math:`(f(x) + \sum_k f(x'_k)) / (1 + m)`.

    Where the hypothetical rows are a group of exchanges, such as the twin of the other sex, whose twin is the row itself, a row
    and its hypothetical rows have the same score to the last bit. Nothing is trained for it, and f may be any ranker.

    If the sensitive attribute is a column of X, `hypotheticals` that set it to each of its values, and `weights` of 0 for the row
    itself and the values' shares, give discrimination-free scores (Pope and Sydnor 2011; Lindholm et al. 2022): f learns what the
    attribute tells, and nobody's is read when scores are made.

    Parameters
    ----------
    estimator : estimator
        Any ranker: this package's, a pipeline or a search, or ``LGBMRanker()``, ``XGBRanker()``, ``CatBoostRanker()`` and
        scikit-learn's regressors, which are fitted inside of a `QueryRanker`. ``FrozenEstimator(ranker)`` is one that is fitted.
    hypotheticals : None, callable, list or dict of callable, or Hypotheticals, default=None
        Functions that turn X into as many rows, or `skfairrank.hypotheticals.Hypotheticals`. None: `predict` gets
        `X_hypothetical`.
    weights : array-like of shape (1 + n_hypotheticals,), optional
        Weight of the row itself, then of each set of hypothetical rows, >= 0; divided by their sum. None: all are equal.

    Attributes
    ----------
    estimator_ : estimator
        The fitted ranker.
    hypotheticals_ : Hypotheticals
        As fitted.
    n_queries_ : int
        Number of queries seen in `fit`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has column names.

    Notes
    -----
    A decision costs 1 + m predictions, with m hypothetical rows for each row. It needs these rows when it is made. Where they are
    known in training only, `DistilledRanker` teaches the averaged scores to a ranker that needs X alone.

    Equal scores for twins are no promise of merit: the mean keeps what f says of the person and the twin alike, right or wrong.

    References
    ----------
    Pope and Sydnor (2011). Implementing Anti-Discrimination Policies in Statistical Profiling Models. AEJ: Economic Policy.

    Lindholm, Richman, Tsanakas and Wüthrich (2022). Discrimination-Free Insurance Pricing. ASTIN Bulletin.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skfairrank import AveragingRanker
    >>> def flipped(X):
    ...     X[:, 1] = 1 - X[:, 1]
    ...     return X
    >>> X, y = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [3.0, 1.0]]), [0, 2, 1, 3]
    >>> ranker = AveragingRanker(Ridge(), hypotheticals=flipped).fit(X, y, qid=[0, 0, 0, 0])
    >>> bool((ranker.predict(X) == ranker.predict(flipped(X.copy()))).all())
    True
    """

    __metadata_request__predict = {"qid": True, "X_hypothetical": True}
    __metadata_request__score = {"X_hypothetical": True}

    _parameter_constraints: dict = {
        **Wrapper._parameter_constraints,
        "hypotheticals": [callable, list, tuple, dict, Hypotheticals, None],
        "weights": ["array-like", None],
    }

    def __init__(self, estimator, *, hypotheticals=None, weights=None):
        self.estimator = estimator
        self.hypotheticals = hypotheticals
        self.weights = weights

    @names_queries
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, qid=None, sensitive_features=None, X_hypothetical=None):
        """Fit the ranker.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)
            As the ranker takes it.
        y : array-like, shape (n_rows,)
            Relevance of each row.
        qid : array-like, shape (n_rows,)
            The query of each row: ints or strings, in any order. None: all rows are one query, with a warning.
        sensitive_features : array-like of n_rows rows, optional
            For `hypotheticals` that are learned from groups, and a ranker that asks for it.
        X_hypothetical : table like X, optional
            Handed to a ranker that asks for it.

        Returns
        -------
        self : AveragingRanker

        Raises
        ------
        ValueError
            If hypothetical rows do not fit X, or `weights` are not one number for each set of them and one more.
        """
        X, y, queries = self._check_training_data(X, y, qid)
        metadata = {"qid": queries.codes, "sensitive_features": sensitive_features, "X_hypothetical": X_hypothetical}
        self.estimator_ = fit_clone(self.estimator, X, y, **metadata)
        self.hypotheticals_ = clone(check_hypotheticals(self.hypotheticals), safe=False)
        self.hypotheticals_.fit(X, y, sensitive_features=sensitive_features)
        if self.hypotheticals_.names_:
            for _ in with_effect(X, self.hypotheticals_.candidates(X)):
                pass  # each is made, checked and forgotten
            _shares(self.weights, self.hypotheticals_.names_)
        self.n_queries_ = queries.n_queries
        return self

    def predict(self, X, *, qid=None, X_hypothetical=None):
        """The averaged scores.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, for a ranker that asks for it, such as a pipeline with a `QueryScaler`.
        X_hypothetical : table like X, list or dict of such tables, or ndarray of shape (n_rows, n_sets, n_features), optional
            Hypothetical rows that one has, in the order of the rows of X; beside those of `hypotheticals`.

        Returns
        -------
        scores : ndarray of float, shape (n_rows,)
            Higher is better.

        Raises
        ------
        ValueError
            If there are no hypothetical rows, or they do not fit X.
        """
        X = as_rows(X)
        own = self._scores_of(X, qid)
        names = self.hypotheticals_.names(X_hypothetical)
        sets = self.hypotheticals_.candidates(X, X_hypothetical)
        return averaged([own, *(self._scores_of(rows, qid) for _, rows in sets)], _shares(self.weights, names))

    def _scores_of(self, table, qid):
        # Sums of products have other last bits where memory lies otherwise, as of columns that were exchanged.
        return self._inner_scores(np.ascontiguousarray(table) if isinstance(table, np.ndarray) else table, qid=qid)

    def _scores(self, X, qid, **metadata):
        return self.predict(X, qid=qid, **metadata)


def averaged(scores, shares: np.ndarray) -> np.ndarray:
    """Weighted mean of several scores of each row, to the same bits in whatever order equal parts come."""
    return reduce(np.add, np.sort(shares[:, None] * scores, axis=0))


def _shares(weights, names: list[str]) -> np.ndarray:
    """Weights of the row itself and of each set of hypothetical rows, of sum 1."""
    if weights is None:
        return np.full(1 + len(names), 1.0 / (1 + len(names)))
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (1 + len(names),) or not (values >= 0).all() or not 0 < values.sum() < np.inf:
        raise ValueError(
            f"weights={weights!r}: give 1 + {len(names)} numbers >= 0, of which one is larger: the weight of the row itself, and "
            f"of each set of hypothetical rows ({', '.join(names)})."
        )
    return values / values.sum()
