"""What must be shown to call a ranker fair: accuracy, stability under the hypothetical, exposure of groups."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral

import numpy as np
import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank._random import as_generator
from skfairrank._validation import check_relevance
from skfairrank.inspection._nearest import nearest_queries
from skfairrank.metrics import (
    group_exposure_difference,
    group_exposure_disparity,
    kendall_tau_score,
    stochastic_ndcg_score,
)
from skfairrank.metrics._groups import check_groups
from skfairrank.metrics._scorers import ranking_scores
from skfairrank.queries import Queries
from skfairrank.utilities import descending_order

__all__ = ["audit"]

# Standard errors come from so many batches of queries at most, which bounds what they cost.
_N_BATCHES = 200


def audit(
    estimator,
    X,
    y,
    *,
    qid,
    sensitive_features=None,
    X_hypothetical=None,
    metric=None,
    n_samples=100,
    random_state=None,
):
    r"""Accuracy and fairness of one or several fitted rankers on the same queries, with standard errors.

    Columns, each a mean over queries of a public metric:

    - ``ndcg``: `stochastic_ndcg_score`.
    - ``tau``: `kendall_tau_score` of the scores h of the rows and h' of their hypotheticals; 1 is perfectly stable.
    - ``top_changed``: share of queries whose first item is another one under the hypothetical.
    - ``score_change``: root mean square of :math:`h_i - h'_i` over the items of a query, in units of scores.
    - ``disparity``: `group_exposure_disparity`, exposure per merit; two groups.
    - ``exposure_difference``: `group_exposure_difference` of the Plackett-Luce policy, without merit.

    The first needs nothing more, the next three hypothetical rows, the last two `sensitive_features`. A constant ranker
    is perfectly fair: read all columns together, and beside those of a plain and of a random ranker.

    Parameters
    ----------
    estimator : fitted estimator, or dict of name to fitted estimator
        Anything with `predict` (or `decision_function`): ours, pipelines, searches, boosted rankers.
    X : array-like, shape (n_rows, n_features)
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,), optional
        The group of each row.
    X_hypothetical : array-like of shape (n_rows, n_features), or callable, optional
        Hypothetical counterpart of each row, or a function X -> X', such as one that flips a sensitive column.
    metric : fitted SensitiveSubspaceMetric, optional
        Where there is no `X_hypothetical`: each query's hypothetical is its nearest other query of X in this metric.
    n_samples : int or "exact", default=100
        Rankings sampled for each query, or exact expectations for small queries.
    random_state : None, int, RandomState or Generator
        All rankers are judged by the same random numbers; an int gives the numbers that each metric gives with that
        int.

    Returns
    -------
    table : DataFrame
        A row for each ranker; for each column above its mean and, in ``<name>_se``, its standard error over queries
        (nan for a single query). Of more than 200 queries the standard error is that of the means of 200 batches.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.inspection import audit
    >>> X, y, qid = [[0.0, 1], [1, 0], [2, 0], [0, 0], [1, 1]], [0, 1, 2, 0, 1], [0, 0, 0, 1, 1]
    >>> by_first = LinearRegression().fit([[0.0, 0], [1, 0], [0, 1]], [0, 1, 0])
    >>> flipped = [[a, 1 - b] for a, b in X]
    >>> table = audit({"by the first feature": by_first}, X, y, qid=qid, X_hypothetical=flipped, n_samples="exact")
    >>> table[["tau", "top_changed"]].values.tolist()
    [[1.0, 0.0]]
    """
    named = dict(estimator) if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
    if not named:
        raise ValueError("estimator is an empty dict: give at least one fitted ranker.")
    n_rows = len(y)
    queries, y = Queries.from_qid(qid, n_rows), check_relevance(y)
    if X_hypothetical is None and metric is not None:
        X_hypothetical = nearest_queries(X, X, qid=qid, qid_reference=qid, metric=metric).hypothetical(X)
    elif callable(X_hypothetical):
        X_hypothetical = X_hypothetical(X)
    # An int seeds each metric as it would by itself; everything else gives one seed for all rankers and metrics.
    is_seed = isinstance(random_state, Integral)
    seed = int(random_state) if is_seed else int(as_generator(random_state).integers(2**63))
    rows = {}
    for name, fitted in named.items():
        columns = {"y": y, "s": _scores(fitted, X, n_rows, "X")}
        if X_hypothetical is not None:
            columns["s_hypothetical"] = _scores(fitted, X_hypothetical, n_rows, "X_hypothetical")
        if sensitive_features is not None:
            labels, columns["group"] = check_groups(sensitive_features, n_rows)
            columns["group"] = labels[columns["group"]]
        rows[name] = _row(columns, queries, n_samples, seed)
    return pd.DataFrame.from_dict(rows, orient="index")


def _scores(estimator, X, n_rows, name):
    scores = ranking_scores(estimator, X)
    if len(scores) != n_rows:
        raise ValueError(f"{name} has {len(scores)} rows and y has {n_rows}: they must describe the same rows.")
    return scores


def _row(columns, queries, n_samples, seed):
    """Means over all queries, and standard errors from batches of queries."""
    measures = _measures(columns, n_samples)
    batches = np.array_split(np.arange(queries.n_queries), min(queries.n_queries, _N_BATCHES))
    row = {}
    for name, measure in measures.items():
        row[name] = measure(columns, queries.codes, seed)
        of_batches, rng = [], np.random.default_rng(seed)
        with warnings.catch_warnings():
            # Said once, for all queries; a batch in which nothing is defined is left out, as its queries are.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            for batch in batches if len(batches) > 1 else []:
                at = queries.order[queries.offsets[batch[0]] : queries.offsets[batch[-1] + 1]]
                of_batches.append(measure({k: v[at] for k, v in columns.items()}, queries.codes[at], rng))
        defined = np.array(of_batches)[~np.isnan(of_batches)] if of_batches else np.zeros(0)
        row[f"{name}_se"] = np.std(defined, ddof=1) / np.sqrt(len(defined)) if len(defined) > 1 else np.nan
    return row


def _measures(columns, n_samples):
    """Name -> function of (columns, qid, random_state)."""
    measures = {
        "ndcg": lambda c, qid, state: stochastic_ndcg_score(
            c["y"], c["s"], qid=qid, n_samples=n_samples, random_state=state
        )
    }
    if "s_hypothetical" in columns:
        measures |= {
            "tau": lambda c, qid, state: kendall_tau_score(c["s"], c["s_hypothetical"], qid=qid),
            "top_changed": lambda c, qid, state: _top_changed(c["s"], c["s_hypothetical"], qid),
            "score_change": lambda c, qid, state: _score_change(c["s"], c["s_hypothetical"], qid),
        }
    if "group" in columns:
        if len(np.unique(columns["group"])) <= 2:
            measures["disparity"] = lambda c, qid, state: group_exposure_disparity(
                c["y"], c["s"], qid=qid, sensitive_features=c["group"], n_samples=n_samples, random_state=state
            )
        measures["exposure_difference"] = lambda c, qid, state: group_exposure_difference(
            c["s"],
            qid=qid,
            sensitive_features=c["group"],
            policy="plackett-luce",
            n_samples=n_samples,
            random_state=state,
        )
    return measures


def _top_changed(s, s_hypothetical, qid):
    """Share of queries whose highest score (the first of several) is another row's."""
    queries = Queries.from_qid(qid, len(s))
    first = [
        descending_order(queries.group(scores), queries.offsets)[queries.offsets[:-1]] for scores in (s, s_hypothetical)
    ]
    return float(np.mean(first[0] != first[1]))


def _score_change(s, s_hypothetical, qid):
    queries = Queries.from_qid(qid, len(s))
    squares = np.add.reduceat(queries.group((s - s_hypothetical) ** 2), queries.offsets[:-1])
    return float(np.mean(np.sqrt(squares / queries.sizes)))
