"""A learning curve whose training sets grow by whole queries."""

from __future__ import annotations

import numpy as np
from sklearn import config_context
from sklearn.model_selection import cross_validate
from sklearn.utils import Bunch, indexable
from sklearn.utils.validation import _num_samples

from skfairrank._queries import Queries
from skfairrank._random import as_generator
from skfairrank.model_selection._split import folds_of_queries


def query_learning_curve(
    estimator,
    X,
    y,
    *,
    qid,
    sensitive_features=None,
    train_sizes=None,
    cv=None,
    shuffle=True,
    random_state=None,
    params=None,
    **how,
):
    """Training and test scores of rankers fitted on more and more queries.

    scikit-learn's `learning_curve` counts rows, and so cuts queries. Here the training sets of a fold are nested sets
    of whole queries, and the test set is the fold's.

    Parameters
    ----------
    estimator : estimator
        A ranker, or a pipeline or search that ends in one. It is cloned.
    X : array-like, shape (n_rows, n_features)
    y : array-like, shape (n_rows,)
    qid : array-like, shape (n_rows,)
        The query of each row, in any order. It reaches every fit, score and split that requests it, whether or not
        metadata routing is enabled outside.
    sensitive_features : array-like or DataFrame of n_rows rows, optional
        Likewise.
    train_sizes : array-like, default=np.linspace(.1, 1, 5)
        Floats in (0, 1]: shares of the queries that every fold can train on (rounded down, at least one). Ints: numbers
        of queries. Sizes that occur twice are used once.
    cv : int, splitter or iterable of (train, test), default=None
        None: ``QueryKFold(5)``; an int: ``QueryKFold(cv)``. Any splitter that keeps queries whole will do.
    shuffle : bool, default=True
        Whether the queries of a training set are drawn at random; otherwise the first ones in sorted order of the ids.
    random_state : None, int, RandomState or Generator
        Used if `shuffle`.
    params : dict, optional
        Further metadata to be routed, e.g. ``{"X_hypothetical": X_flipped}``.
    **how
        `scoring` (without it the estimator's `score`), `n_jobs`, `error_score` and `verbose`, as of `cross_validate`.

    Returns
    -------
    curve : Bunch
        train_sizes : ndarray of int, shape (n_sizes,)
            Numbers of queries.
        train_scores, test_scores : ndarray, shape (n_sizes, n_folds)
            With several scorers: dicts of such arrays, by the scorer's name.
        fit_times, score_times : ndarray, shape (n_sizes, n_folds)
            Seconds.

        The first three draw themselves: ``LearningCurveDisplay(train_sizes=curve.train_sizes, ...)``.

    Raises
    ------
    ValueError
        If `cv` cuts queries, or a size of the training set is out of range.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank import QueryRanker
    >>> X, qid = np.random.default_rng(0).normal(size=(60, 2)), np.repeat(np.arange(12), 5)
    >>> y = (X @ [1, 2] > 0).astype(int)
    >>> curve = query_learning_curve(
    ...     QueryRanker(LinearRegression()), X, y, qid=qid, cv=3, train_sizes=[0.25, 1.0], random_state=0
    ... )
    >>> curve.train_sizes.tolist(), curve.test_scores.shape
    ([2, 8], (2, 3))
    """
    X, y = indexable(X, y)
    queries = Queries.from_qid(qid, _num_samples(X))
    folds = folds_of_queries(cv, X, y, qid, queries)
    sizes = _train_sizes(train_sizes, min(len(train) for train, _ in folds))

    rng = as_generator(random_state)
    splits = []
    for train, test_rows in folds:
        train = rng.permutation(train) if shuffle else train
        splits.append([(np.flatnonzero(np.isin(queries.codes, train[:size])), test_rows) for size in sizes])

    metadata = {"qid": qid, "sensitive_features": sensitive_features, **(params or {})}
    metadata = {key: value for key, value in metadata.items() if value is not None}
    # Routing carries qid through pipelines and nested searches to whatever requests it.
    with config_context(enable_metadata_routing=True):
        flat = [split for fold in splits for split in fold]
        scores = cross_validate(estimator, X, y, cv=flat, params=metadata, return_train_score=True, **how)
    scores = {key: np.reshape(value, (len(folds), len(sizes))).T for key, value in scores.items()}

    def of(part):
        found = {key.removeprefix(part): value for key, value in scores.items() if key.startswith(part)}
        return found["score"] if list(found) == ["score"] else found

    times = {"fit_times": scores["fit_time"], "score_times": scores["score_time"]}
    return Bunch(train_sizes=sizes, train_scores=of("train_"), test_scores=of("test_"), **times)


def _train_sizes(train_sizes, n_queries):
    """Numbers of queries, ascending and distinct."""
    sizes = np.linspace(0.1, 1.0, 5) if train_sizes is None else np.atleast_1d(train_sizes)
    if sizes.dtype.kind == "f":
        if not ((sizes > 0) & (sizes <= 1)).all():
            raise ValueError(f"train_sizes={sizes.tolist()}: floats are shares of the training queries, in (0, 1].")
        # .3 * 10 is 3 but for rounding.
        sizes = np.maximum(np.floor(sizes * n_queries + 1e-9), 1)
    elif sizes.dtype.kind not in "iu" or not ((sizes >= 1) & (sizes <= n_queries)).all():
        raise ValueError(
            f"train_sizes={sizes.tolist()}: ints count whole queries, from 1 to the {n_queries} that every fold "
            "can train on."
        )
    return np.unique(sizes.astype(np.int64))
