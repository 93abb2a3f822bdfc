"""DistilledRanker: a teacher's relevances, averaged over what each row might as well have been, as labels of a student."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import _fit_context, clone, is_regressor
from sklearn.isotonic import IsotonicRegression
from sklearn.utils._param_validation import HasMethods

from skfairrank._candidates import with_effect
from skfairrank._checks import check_relevance, names_queries
from skfairrank.hypotheticals import Hypotheticals, check_hypotheticals
from skfairrank.metrics._predictions import asks_for, ranking_scores, unwrapped
from skfairrank.wrappers._averaging import averaged
from skfairrank.wrappers._base import Wrapper, check_labels, fit_clone
from skfairrank.wrappers._query_ranker import QueryRanker, query_argument


class DistilledRanker(Wrapper):
    r"""A student that learns from X alone what a teacher says of a row and its hypothetical rows on the average.

    The teacher f is fitted on the labels. The student is fitted on :math:`\bar y = (f(x) + \sum_k f(x'_k)) / (1 + m)` in their
    place, in the labels' units and at least 0. So hypothetical rows are needed in training only, and nobody's group when ranking.

    Parameters
    ----------
    teacher : estimator
        Any ranker or regressor. What a regressor predicts is taken for relevances; the scores of a ranker are brought to the
        labels' units by isotonic regression. ``FrozenEstimator(model)`` is one that is fitted.
    student : estimator
        Any ranker or regressor that takes relevances that are no whole numbers: `SenSTIRBoostingRanker`, which pulls hypothetical
        rows together as well, `SenSTIRRanker`, ``LGBMRegressor()``. (`LGBMRanker` asks for ints.) One whose `fit` asks for
        `X_hypothetical` gets the same hypothetical rows, so its own `hypotheticals` may stay None.
    hypotheticals : None, callable, list or dict of callable, or Hypotheticals, default=None
        Functions that turn X into as many rows, or `skfairrank.hypotheticals.Hypotheticals`. None: `fit` gets `X_hypothetical`.

    Attributes
    ----------
    teacher_ : estimator
        Fitted.
    student_ : estimator
        Fitted; also `estimator_`. It alone makes the scores.
    relevance_ : ndarray of float, shape (n_rows,)
        What the student was taught.
    hypotheticals_ : Hypotheticals
        As fitted.
    n_queries_, n_features_in_, feature_names_in_
        As for `AveragingRanker`.

    Notes
    -----
    `fit` costs a teacher, 1 + m predictions and a student; a decision costs what the student costs. Parameters are searched as
    ``student__rho``. Where hypothetical rows can be had when deciding, `AveragingRanker` is the better choice.

    What the student estimates is the relevance that a model of these labels gives on the average to a person and the hypothetical
    rows of this person. Neither equal scores for both nor merit is promised: see :doc:`/when_does_it_help`.

    Examples
    --------
    >>> from lightgbm import LGBMRanker, LGBMRegressor
    >>> from skfairrank import DistilledRanker, SenSTIRBoostingRanker
    >>> from skfairrank.datasets import make_hiring_ranking
    >>> from skfairrank.metrics import kendall_tau_score
    >>> task = make_hiring_ranking(100, random_state=0)
    >>> trees = dict(n_estimators=50, num_leaves=7, random_state=0, n_jobs=1, verbose=-1)
    >>> student = SenSTIRBoostingRanker(LGBMRanker(**trees), rho=0.01, random_state=0)
    >>> ranker = DistilledRanker(LGBMRegressor(**trees), student)
    >>> ranker = ranker.fit(task.data, task.target, qid=task.qid, X_hypothetical=task.twin)
    >>> kendall_tau_score(
    ...     ranker.predict(task.data), ranker.predict(task.twin), qid=task.qid
    ... ) > 0.7
    True
    """

    __metadata_request__predict = {"qid": True}

    _parameter_constraints: dict = {
        "teacher": [HasMethods(["fit", "predict"]), HasMethods(["fit", "decision_function"])],
        "student": [HasMethods(["fit", "predict"])],
        "hypotheticals": [callable, list, tuple, dict, Hypotheticals, None],
    }

    def __init__(self, teacher, student, *, hypotheticals=None):
        self.teacher = teacher
        self.student = student
        self.hypotheticals = hypotheticals

    estimator: Any = property(lambda self: self.student)
    estimator_: Any = property(lambda self: self.student_)

    @names_queries
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, *, qid=None, sensitive_features=None, X_hypothetical=None):
        """Fit the teacher on the labels, and the student on the averaged relevances.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)
            As both take it.
        y : array-like, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,)
            The query of each row: ints or strings, in any order. None: all rows are one query, with a warning.
        sensitive_features : array-like of n_rows rows, optional
            For `hypotheticals` that are learned from groups, and a teacher or student that asks for it.
        X_hypothetical : table like X, list or dict of such tables, or ndarray of shape (n_rows, n_sets, n_features), optional
            Hypothetical rows that one has, in the order of the rows of X; beside those of `hypotheticals`.

        Returns
        -------
        self : DistilledRanker

        Raises
        ------
        ValueError
            If there are no hypothetical rows, or they do not fit X.
        """
        X, y, queries = self._check_training_data(X, y, qid)
        check_labels(self.teacher, y)
        relevance = check_relevance(y)
        self.hypotheticals_ = clone(check_hypotheticals(self.hypotheticals), safe=False)
        self.hypotheticals_.fit(X, y, sensitive_features=sensitive_features)
        sets = self.hypotheticals_.candidates(X, X_hypothetical)
        metadata = {"qid": queries.codes, "sensitive_features": sensitive_features, "X_hypothetical": X_hypothetical}
        self.teacher_ = fit_clone(self.teacher, X, y, **metadata)
        scores = [
            ranking_scores(self.teacher_, rows, qid=queries.codes)
            for rows in (X, *(t for _, t in with_effect(X, sets)))
        ]
        if not _predicts_relevances(self.teacher):
            units = IsotonicRegression(out_of_bounds="clip").fit(scores[0], relevance)
            scores = [units.predict(s) for s in scores]
        self.relevance_ = averaged(np.maximum(scores, 0.0), np.full(len(scores), 1.0 / len(scores)))
        if asks_for(self.student, "fit", "X_hypothetical"):
            metadata["X_hypothetical"] = dict(sets)
        self.student_ = fit_clone(self.student, X, self.relevance_, **metadata)
        self.n_queries_ = queries.n_queries
        return self

    def predict(self, X, *, qid=None):
        """The student's scores.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)
        qid : array-like, shape (n_rows,), optional
            The query of each row, for a student that asks for it, such as a pipeline with a `QueryScaler`.

        Returns
        -------
        scores : ndarray of float, shape (n_rows,)
            Higher is better.
        """
        return self._inner_scores(X, qid=qid)

    def _scores(self, X, qid, **metadata):
        return self.predict(X, qid=qid, **metadata)


def _predicts_relevances(teacher) -> bool:
    """Whether an estimator predicts labels, as regressors do; rankers, which are told of queries, give scores of any size."""
    model = unwrapped(teacher)
    model = model.estimator if isinstance(model, QueryRanker) else model
    return is_regressor(model) and query_argument(model) is None
