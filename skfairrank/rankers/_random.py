"""RandomRanker: linear weights from a standard normal, the paper's "Random"."""

from __future__ import annotations

import numpy as np

from skfairrank._checks import names_queries
from skfairrank._random import as_generator
from skfairrank.rankers._plackett_luce import ScoreRanker
from skfairrank.scores import LinearScore


class RandomRanker(ScoreRanker):
    """Linear ranker whose weights are drawn from a standard normal; it gives context to a utility (Bower et al. 2021).

    Parameters
    ----------
    random_state : None, int, RandomState or Generator, default=None

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X has feature names.

    Examples
    --------
    >>> from skfairrank import RandomRanker
    >>> ranker = RandomRanker(random_state=0).fit([[0.0, 1.0], [1.0, 0.0]], [1, 0], qid=[0, 0])
    >>> ranker.coef_.shape
    (2,)
    """

    _parameter_constraints: dict = {"random_state": ["random_state", np.random.Generator]}

    def __init__(self, *, random_state=None):
        self.random_state = random_state

    @names_queries
    def fit(self, X, y, *, qid=None, sensitive_features=None, query_weight=None, X_hypothetical=None):
        """Draw the weights; X, y and qid are only checked.

        Parameters
        ----------
        X : array-like of float, shape (n_rows, n_features)
        y : array-like of float, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,), optional
        sensitive_features, query_weight, X_hypothetical : ignored
        """
        self._validate_params()
        X, _, queries = self._check_training_data(X, y, qid)
        weights = as_generator(self.random_state).standard_normal(X.shape[1])
        self.__dict__.update(self._scored_by(LinearScore(), weights, X.shape[1]))
        self.n_queries_ = queries.n_queries
        return self
