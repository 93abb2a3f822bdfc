"""What every re-ranker does: fit the ranker in it, ask it for scores, and rank each query by these in another way."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import _num_samples, check_is_fitted

from skfairrank._checks import check_scores, names_queries
from skfairrank._queries import REMEDY, Queries
from skfairrank._sensitive import check_groups
from skfairrank.wrappers._base import Wrapper, fit_clone


class ReRanker(Wrapper):
    """Base class: a ranker whose rankings are made from another ranker's scores, query by query.

    A subclass has `_rescored`, and may have `_learn`.
    """

    __metadata_request__predict = {"qid": True, "sensitive_features": True}
    __metadata_request__score = {"sensitive_features": True}

    _parameter_constraints: dict = {"estimator": [HasMethods(["fit"])]}

    #: Whether rankings can't be made without the groups of rows.
    needs_groups = True

    @names_queries
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, qid=None, sensitive_features=None, X_hypothetical=None):
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
        X_hypothetical : table like X, optional
            Handed to a ranker that asks for it.

        Returns
        -------
        self : object
        """
        X, y, queries = self._check_training_data(X, y, qid)
        ids = queries.codes if qid is None else qid  # said once that there are none
        self._learn(X, queries, sensitive_features)
        metadata = {"qid": ids, "sensitive_features": sensitive_features, "X_hypothetical": X_hypothetical}
        self.estimator_ = fit_clone(self.estimator, X, y, **metadata)
        self.n_queries_ = queries.n_queries
        return self

    @names_queries
    def predict(self, X, *, qid=None, sensitive_features=None):
        """Scores whose order is that of the ranking, higher is better.

        Of a re-ranker that sorts by groups it is minus the rank; of `ExposureLPRanker` the expected exposure, of
        `FairScoreSmoother` the smoothed score.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features)
            All rows of each query.
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. May only be left out if `fit` saw one query.
        sensitive_features : array-like, shape (n_rows,)
            The group of each row; for `FairScoreSmoother` only where the ranker within needs it.

        Returns
        -------
        scores : ndarray of float, shape (n_rows,)
        """
        queries, s, labels, codes = self._read(X, qid, sensitive_features)
        return queries.ungroup(self._rescored(X, queries, s, labels, codes))

    def _scores(self, X, qid, **metadata):
        return self.predict(X, qid=qid, **metadata)

    def _read(self, X, qid, sensitive_features):
        """The queries; and grouped by query the ranker's scores, the distinct groups, and the number of each row's group."""
        check_is_fitted(self, "estimator_")
        n_rows, labels, codes = _num_samples(X), None, None
        if self.needs_groups:
            labels, codes = check_groups(sensitive_features, n_rows, compared_by=type(self).__name__)
        if qid is None and self.n_queries_ > 1:
            raise ValueError(f"{type(self).__name__} got no qid, and fit saw {self.n_queries_} queries: {REMEDY}")
        queries = Queries.single(n_rows) if qid is None else Queries.from_qid(qid, n_rows)
        ids = queries.codes if qid is None else qid
        scores = check_scores(self._inner_scores(X, qid=ids, sensitive_features=sensitive_features))
        return queries, queries.group(scores), labels, None if codes is None else queries.group(codes)

    def _learn(self, X, queries: Queries, sensitive_features) -> None:
        """What is learned besides the ranker: here that groups are such."""
        if self.needs_groups and sensitive_features is not None:
            check_groups(sensitive_features, queries.n_rows, compared_by=type(self).__name__)

    @abstractmethod
    def _rescored(self, X, queries: Queries, s: np.ndarray, labels, codes) -> np.ndarray:
        """New scores, shape (n_rows,); all values of rows but X are grouped by query."""


class GroupReRanker(ReRanker):
    """Base class of re-rankers that sort each query by its scores and groups, without chance.

    A subclass has `_marks` and `_order`.
    """

    def sample_rankings(self, X, *, qid=None, sensitive_features=None, n_samples=1, random_state=None):
        """The one ranking, `n_samples` times: there is no chance in it.

        Parameters
        ----------
        X, qid, sensitive_features
            As for `predict`.
        n_samples : int, default=1
        random_state : ignored

        Returns
        -------
        ranks : ndarray of int, shape (n_samples, n_rows)
        """
        return np.tile(self.rank(X, qid=qid, sensitive_features=sensitive_features), (n_samples, 1))

    def _rescored(self, X, queries, s, labels, codes):
        marks, scores = self._marks(labels)[codes], np.empty(len(s))
        for start, end in zip(queries.offsets[:-1], queries.offsets[1:]):
            scores[start + self._order(s[start:end], marks[start:end])] = -np.arange(1, end - start + 1)
        return scores

    @abstractmethod
    def _marks(self, labels: np.ndarray) -> np.ndarray:
        """What stands for each of the distinct labels in `_order`, shape (n_labels,); raises where a label is not known."""

    @abstractmethod
    def _order(self, s: np.ndarray, marks: np.ndarray) -> np.ndarray:
        """The rows of one query from the first to the last, by their scores and marks, all of shape (n,)."""
