"""What every ranker can do once it predicts scores: rank, sample rankings, be scored, and ask for its metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.validation import _num_samples

from skfairrank._checks import check_relevance, check_scores, names_queries, warn_caller
from skfairrank._queries import REMEDY, Queries
from skfairrank.plackett_luce import sample_rankings
from skfairrank.policies import descending_order


def queries_in_fit(qid, n_rows: int) -> Queries:
    """The queries of the training rows; without `qid` all rows are one query, with a warning.

    Parameters
    ----------
    qid : array-like of shape (n_rows,) or None
    n_rows : int
    """
    if qid is not None:
        return Queries.from_qid(qid, n_rows)
    if n_rows > 1:
        warn_caller(
            f"fit got no qid and takes all {n_rows} rows as one query. If that is meant, pass qid=np.zeros(len(X)); "
            f"otherwise {REMEDY}",
        )
    return Queries.single(n_rows)


def ranks_by_score(scores: np.ndarray, queries: Queries) -> np.ndarray:
    """Rank of each row within its query, by descending score, ties in row order; both in the caller's row order."""
    ranks = np.empty(len(scores), dtype=np.int64)
    position = np.arange(1, len(scores) + 1) - np.repeat(queries.offsets[:-1], queries.sizes)
    ranks[descending_order(queries.group(scores), queries.offsets)] = position
    return queries.ungroup(ranks)


class RankingMixin:
    """Ranks, sampled rankings and a score for every estimator with ``predict(X)`` -> scores, higher is better.

    `fit` must set `n_queries_`, the number of queries that it saw. `qid` and `sensitive_features` are requested by
    default, so that metadata routing hands them to `fit` and `score` with nothing else to be set.
    """

    __metadata_request__fit = {"qid": True, "sensitive_features": True}
    __metadata_request__score = {"qid": True, "query_weight": True}

    if TYPE_CHECKING:  # what the estimator brings
        n_queries_: int

        def predict(self, *args: Any, **kwargs: Any) -> Any: ...

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def _scores(self, X, qid, **metadata) -> np.ndarray:
        """What `predict` returns; a ranker whose scores depend on the query replaces this."""
        return self.predict(X, **metadata)

    def _policy(self, X, qid, **metadata):
        """Scores of rows, and the policy by which `score` ranks them."""
        return self._scores(X, qid, **metadata), "deterministic"

    @names_queries
    def rank(self, X, *, qid=None, **metadata):
        """Rank of each row within its query, by descending score; ties in row order.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one list.
        **metadata
            What else `predict` takes, such as the `sensitive_features` of a re-ranker.

        Returns
        -------
        ranks : ndarray of int, shape (n_rows,)
            1 for the best row of each query, aligned with the rows of X.
        """
        scores = check_scores(self._scores(X, qid, **metadata))
        queries = Queries.single(len(scores)) if qid is None else Queries.from_qid(qid, len(scores))
        return ranks_by_score(scores, queries)

    @names_queries
    def sample_rankings(self, X, *, qid=None, n_samples=1, random_state=None, **metadata):
        """Rankings drawn from the Plackett-Luce policy of the scores.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, in any order. None: all rows are one list.
        n_samples : int, default=1
            Number of rankings of each query.
        random_state : None, int, RandomState or Generator
        **metadata
            What else `predict` takes.

        Returns
        -------
        ranks : ndarray of int, shape (n_samples, n_rows)
            1-based rank of each row within its query, aligned with the rows of X.
        """
        scores = self._scores(X, qid, **metadata)
        return sample_rankings(scores, qid=qid, n_samples=n_samples, random_state=random_state)

    @names_queries
    def score(self, X, y, *, qid=None, query_weight=None, sample_weight=None, **metadata):
        """NDCG of the rows sorted by descending score, averaged over the queries.

        It depends on the order alone, not on the size of the scores, so one search can compare rankers of every kind: the
        expectation of NDCG over the Plackett-Luce policy favours large scores, which a boosted ranker gets by a large
        learning rate. For that expectation there is `skfairrank.metrics.stochastic_ndcg_scorer`; this is
        `skfairrank.metrics.ndcg_score` (equal scores share the mean over their orders, queries without any relevant row are
        left out with a warning).

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
        y : array-like, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,), optional
            The query of each row. May only be left out (one query) if `fit` saw one query.
        query_weight : array-like of shape (n_rows,), or mapping from query ids to numbers, optional
            Weight of each query in the mean.
        sample_weight : None
            Must be None; pipelines pass it by name.
        **metadata
            What else `predict` takes.

        Returns
        -------
        score : float
            In [0, 1]. nan, with an `UndefinedMetricWarning`, where no query has rows of different relevance: then any order
            is as good as any other, and an NDCG of 1 would be praise for nothing.

        Raises
        ------
        ValueError
            If there is no `qid` and `fit` saw several queries, or if there is a `sample_weight`.
        """
        # metrics build on plackett_luce as rankers do; neither needs the other to be imported.
        from skfairrank.metrics import ndcg_score

        if sample_weight is not None:
            raise ValueError("score takes no sample_weight: NDCG is a mean over whole queries. Leave it out.")
        if qid is None and self.n_queries_ > 1:
            raise ValueError(f"score got no qid, and fit saw {self.n_queries_} queries: {REMEDY}")
        scores, policy = self._policy(X, qid, **metadata)
        n_rows = _num_samples(y if scores is None else scores)
        qid = np.zeros(n_rows, dtype=np.int64) if qid is None else qid
        queries = Queries.from_qid(qid, n_rows)
        if not queries.differ_within(queries.group(check_relevance(y, n_rows))).any():
            warn_caller(
                f"score is undefined: none of {queries.n_queries} queries has rows of different relevance, so no order is "
                "better than another. Score on queries of several rows that differ in relevance (and check qid, if each row "
                "is a query of its own).",
                UndefinedMetricWarning,
            )
            return float("nan")
        return ndcg_score(y, scores, qid=qid, query_weight=query_weight, policy=policy)
