"""QueryScaler: features centred and scaled within each query."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairrank._checks import check_magnitude
from skfairrank._queries import REMEDY, Queries, queries_in_fit

__all__ = ["QueryScaler"]

# A feature whose values in a query differ by no more than this many units in the last place is constant there.
_ROUNDING = 8


class QueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Features standardised within each query: less their mean in the query, divided by their deviation in the query.

    What makes an item good in one query may be ordinary in another: a price says more when it is compared with the other
    prices of the same search. For feature j of row i in query q

    .. math:: z_{ij} = (x_{ij} - m_{qj}) / s_{qj},

    with the mean m and the standard deviation s (of the population) over the rows of the query. So the rows of one query
    must be transformed together, and `transform` needs `qid`, which it requests by default: with
    ``sklearn.set_config(enable_metadata_routing=True)`` a pipeline hands it on, in `fit`, `predict` and `score`.

    Parameters
    ----------
    with_mean : bool, default=True
        Whether to subtract the mean. A feature that is constant within a query becomes 0 there, and so does every feature of
        a query with one row.
    with_std : bool, default=True
        Whether to divide by the standard deviation, where the feature is not constant within the query.

    Attributes
    ----------
    n_queries_ : int
        Number of queries seen in `fit`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X has feature names.
    mean_, scale_ : ndarray of float64, shape (n_features,)
        Only where `fit` saw one query: its means and standard deviations (0 where a feature is constant).

    See Also
    --------
    sklearn.preprocessing.StandardScaler : One mean and one deviation for all rows.

    Notes
    -----
    Subtracting a query's mean takes away what all its rows have in common, which tells none of them from another. It does not
    make a ranker fair: a group whose values are lower within queries keeps them lower.

    `fit` learns nothing from several queries. Where it saw one query only, `transform` may be called without `qid`: new rows
    are then scaled by that query's mean and deviation, as `StandardScaler` scales them.

    Examples
    --------
    >>> from skfairrank.preprocessing import QueryScaler
    >>> X, qid = [[1.0], [100.0], [3.0], [300.0], [7.0]], ["a", "b", "a", "b", "c"]
    >>> QueryScaler().fit(X, qid=qid).transform(X, qid=qid).ravel()
    array([-1., -1.,  1.,  1.,  0.])
    """

    __metadata_request__fit = {"qid": True}
    __metadata_request__transform = {"qid": True}

    _parameter_constraints: dict = {"with_mean": ["boolean"], "with_std": ["boolean"]}

    def __init__(self, *, with_mean=True, with_std=True):
        self.with_mean = with_mean
        self.with_std = with_std

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, qid=None):
        """Check X and count the queries.

        Parameters
        ----------
        X : array-like of float, shape (n_rows, n_features)
        y : ignored
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one query, with a warning.

        Returns
        -------
        self : QueryScaler
        """
        X = self._validated(X, reset=True)
        queries = queries_in_fit(qid, len(X))
        self.n_queries_ = queries.n_queries
        for name in ("mean_", "scale_"):
            if hasattr(self, name):  # an earlier fit's
                delattr(self, name)
        if self.n_queries_ == 1:
            first, mean, scale = _moments(X, queries.offsets)
            self.mean_, self.scale_ = first[0] + mean[0], scale[0]
        return self

    def transform(self, X, *, qid=None):
        """Each row less the mean of its query, divided by the deviation in its query.

        Parameters
        ----------
        X : array-like of float, shape (n_rows, n_features)
            All rows of each query.
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order; need not be among those of `fit`. May only be left out if `fit` saw one
            query.

        Returns
        -------
        X_scaled : ndarray of float64 or float32, shape (n_rows, n_features)
            A DataFrame after ``set_output(transform="pandas")``. float32 stays float32.

        Raises
        ------
        ValueError
            If there is no `qid` and `fit` saw several queries.
        """
        check_is_fitted(self, "n_queries_")
        X = self._validated(X, reset=False)
        if qid is not None:
            queries = Queries.from_qid(qid, len(X))
            grouped = queries.group(X)
            return queries.ungroup(self._scaled(grouped, queries.sizes, *_moments(grouped, queries.offsets)))
        if self.n_queries_ > 1:
            raise ValueError(f"transform got no qid, and fit saw {self.n_queries_} queries: {REMEDY}")
        no_more = np.zeros_like(self.mean_)
        return self._scaled(X, [len(X)], self.mean_[None], no_more[None], self.scale_[None])

    def fit_transform(self, X, y=None, *, qid=None):
        """``fit(X, qid=qid).transform(X, qid=qid)``.

        Parameters
        ----------
        X : array-like of float, shape (n_rows, n_features)
        y : ignored
        qid : array-like, shape (n_rows,), optional

        Returns
        -------
        X_scaled : ndarray of float64 or float32, shape (n_rows, n_features)
        """
        return self.fit(X, qid=qid).transform(X, qid=qid)

    def _validated(self, X, *, reset):
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=reset)
        check_magnitude(X)
        return X

    def _scaled(self, X, sizes, first, mean, scale):
        """Rows lying query by query, less `first` and `mean` of their query, divided by its scale.

        These three have shape (n_queries, n_features).
        """
        is_constant = scale == 0
        scaled = X.astype(np.float64)
        if self.with_mean:
            scaled -= np.repeat(first, sizes, axis=0)
            scaled -= np.repeat(mean, sizes, axis=0)
        if self.with_std:
            scaled /= np.repeat(np.where(is_constant, 1.0, scale), sizes, axis=0)
        if self.with_mean:
            # Rounding must not tell rows apart that are alike: trees and scalers see the sign of anything.
            scaled[np.repeat(is_constant, sizes, axis=0)] = 0.0
        return scaled.astype(X.dtype, copy=False)


def _moments(X, offsets):
    """Each query's first row, its mean less that row, and its standard deviation, 0 where a feature is constant.

    Rows lie query by query; the three have shape (n_queries, n_features). Differences from the first row are exact where
    values are close, so that an offset costs no digits.
    """
    starts, sizes = offsets[:-1], np.diff(offsets)
    first = X[starts].astype(np.float64)
    difference = X - np.repeat(first, sizes, axis=0)
    mean = np.add.reduceat(difference, starts, axis=0) / sizes[:, None]
    difference -= np.repeat(mean, sizes, axis=0)

    largest = np.maximum.reduceat(np.abs(difference), starts, axis=0)
    magnitude = np.maximum.reduceat(np.abs(X), starts, axis=0)
    is_constant = largest <= _ROUNDING * np.finfo(X.dtype).eps * magnitude
    # Divided by the largest, so that squares of small numbers do not vanish.
    difference /= np.repeat(np.where(is_constant, 1.0, largest), sizes, axis=0)
    deviation = largest * np.sqrt(np.add.reduceat(difference**2, starts, axis=0) / sizes[:, None])
    return first, mean, np.where(is_constant, 0.0, deviation)
