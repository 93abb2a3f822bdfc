"""What every re-ranker does: fit the ranker in it, ask it for scores, and be judged like a ranker."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from skfairrank._adapters import QueryRanker, needs_query_ranker
from skfairrank._checks import check_scores, names_queries
from skfairrank._queries import REMEDY, Queries
from skfairrank._rankers._ranking import ndcg_of_ranker, queries_in_fit
from skfairrank._sensitive import check_groups
from skfairrank.metrics._predictions import asks_for, own_policy, ranking_scores

__all__ = ["GroupReRanker", "ReRanker"]


class ReRanker(MetaEstimatorMixin, BaseEstimator):
    """Base class: a ranker whose rankings are made from another ranker's scores, query by query.

    A subclass has `predict`, which may ask for `qid` and `sensitive_features`, and `rank`.
    """

    __metadata_request__fit = {"qid": True, "sensitive_features": True}
    __metadata_request__predict = {"qid": True, "sensitive_features": True}
    __metadata_request__score = {"qid": True, "sensitive_features": True, "query_weight": True}

    _parameter_constraints: dict = {"estimator": [HasMethods(["fit"])]}

    estimator: object

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    @names_queries
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, qid=None, sensitive_features=None):
        """Fit a clone of the ranker.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
            It reaches the ranker as it is.
        y : array-like, shape (n_rows,)
            Relevance of each row.
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one query, with a warning.
        sensitive_features : array-like, shape (n_rows,), optional
            The group of each row. It reaches the ranker where its `fit` asks for it, as `qid` does.

        Returns
        -------
        self : object
        """
        n_rows = _num_samples(X)
        validate_data(self, X, y, skip_check_array=True)
        check_consistent_length(X, y)
        assert_all_finite(column_or_1d(y, warn=True), input_name="y")
        queries = queries_in_fit(qid, n_rows)
        ids = queries.codes if qid is None else qid  # said once that there are none
        self._learn(X, queries, sensitive_features)
        self.estimator_ = _fitted(self.estimator, X, y, qid=ids, sensitive_features=sensitive_features)
        self.n_queries_ = queries.n_queries
        return self

    def _learn(self, X, queries: Queries, sensitive_features) -> None:
        """What a subclass learns besides the ranker."""

    @names_queries
    def score(self, X, y, *, qid=None, sensitive_features=None, query_weight=None, sample_weight=None):
        """NDCG of the rankings, averaged over the queries; of rankings that are drawn, in expectation.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
        y : array-like, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,), optional
            The query of each row. May only be left out (one query) if `fit` saw one query.
        sensitive_features : array-like, shape (n_rows,)
            The group of each row, where the ranking needs it.
        query_weight : array-like of shape (n_rows,), or mapping from query ids to numbers, optional
            Weight of each query in the mean.
        sample_weight : None
            Must be None; pipelines pass it by name.

        Returns
        -------
        score : float
            In [0, 1]; nan, with an `UndefinedMetricWarning`, where no query has rows of different relevance.
        """
        if qid is None and self.n_queries_ > 1:
            raise ValueError(f"score got no qid, and fit saw {self.n_queries_} queries: {REMEDY}")
        metadata = {"qid": qid, "sensitive_features": sensitive_features}
        policy = own_policy(self, X, **metadata)
        return ndcg_of_ranker(
            y,
            ranking_scores(self, X, **metadata) if policy is None else None,
            qid=qid,
            n_queries=self.n_queries_,
            query_weight=query_weight,
            sample_weight=sample_weight,
            policy="deterministic" if policy is None else policy,
        )

    def _scored(self, X, qid, sensitive_features=None, *, method: str) -> tuple[Queries, np.ndarray]:
        """The queries of some rows, and the ranker's scores of them, grouped by query.

        Without `qid` all rows are one list. Not so in `predict`, where others need no `qid` and it is easily forgotten: there
        `fit` must have seen one query too.
        """
        check_is_fitted(self, "estimator_")
        validate_data(self, X, reset=False, skip_check_array=True)
        n_rows = _num_samples(X)
        if qid is None and method == "predict" and self.n_queries_ > 1:
            raise ValueError(f"predict got no qid, and fit saw {self.n_queries_} queries: {REMEDY}")
        queries = Queries.single(n_rows) if qid is None else Queries.from_qid(qid, n_rows)
        ids = queries.codes if qid is None else qid
        scores = check_scores(ranking_scores(self.estimator_, X, qid=ids, sensitive_features=sensitive_features))
        if len(scores) != n_rows:
            raise ValueError(f"{type(self.estimator_).__name__} gave {len(scores)} scores for {n_rows} rows of X.")
        return queries, queries.group(scores)


class GroupReRanker(ReRanker):
    """Base class of re-rankers that sort each query by its scores and groups, without chance.

    A subclass has `_order`.
    """

    @names_queries
    def rank(self, X, *, qid=None, sensitive_features=None):
        """Rank of each row within its query.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one list.
        sensitive_features : array-like, shape (n_rows,)
            The group of each row.

        Returns
        -------
        ranks : ndarray of int, shape (n_rows,)
            1 for the first row of each query, aligned with the rows of X.
        """
        return self._rank(X, qid, sensitive_features, method="rank")

    @names_queries
    def predict(self, X, *, qid=None, sensitive_features=None):
        """Minus the rank of each row, so that metrics and scorers, which sort by descending score, see this ranking.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. May only be left out if `fit` saw one query.
        sensitive_features : array-like, shape (n_rows,)
            The group of each row.

        Returns
        -------
        scores : ndarray of float, shape (n_rows,)
            Their order is that of the ranking; their size says nothing.
        """
        return -self._rank(X, qid, sensitive_features, method="predict").astype(np.float64)

    def _rank(self, X, qid, sensitive_features, *, method):
        check_is_fitted(self, "estimator_")
        labels, codes = check_groups(sensitive_features, _num_samples(X), compared_by=f"{type(self).__name__}")
        marks = self._marks(labels)
        queries, s = self._scored(X, qid, sensitive_features, method=method)
        marked = queries.group(marks[codes])
        ranks = np.empty(len(s), np.int64)
        for start, end in zip(queries.offsets[:-1], queries.offsets[1:]):
            order = self._order(s[start:end], marked[start:end])
            ranks[start + order] = np.arange(1, end - start + 1)
        return queries.ungroup(ranks)

    @abstractmethod
    def _marks(self, labels: np.ndarray) -> np.ndarray:
        """What stands for each of the distinct labels in `_order`, shape (n_labels,); raises where a label is not known."""

    @abstractmethod
    def _order(self, s: np.ndarray, marks: np.ndarray) -> np.ndarray:
        """The rows of one query from the first to the last, by their scores and marks, all of shape (n,)."""


def _fitted(estimator, X, y, **metadata):
    """A fitted clone, which gets the metadata that its `fit` asks for."""
    model = clone(estimator)
    if needs_query_ranker(model):
        model = QueryRanker(model)
    given = {name: value for name, value in metadata.items() if value is not None and asks_for(model, "fit", name)}
    if not given:
        return model.fit(X, y)
    with config_context(enable_metadata_routing=True):  # without it a pipeline hands nothing to its steps
        return model.fit(X, y, **given)
