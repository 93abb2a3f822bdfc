"""Hypothetical queries from data: the nearest other query in the fair metric, in the features that the metric measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_array

from skfairrank._candidates import table_names
from skfairrank._queries import Queries
from skfairrank.fair_metrics._distances import fair_features, transport
from skfairrank.fair_metrics._linear import check_same_features, fitted_metric, unfrozen
from skfairrank.metrics._predictions import call_with_metadata, unwrapped

_MAX_COSTS = 1 << 22  # held at a time
_SLACK = 1e-12  # distances that differ by less, relatively, are equal


@dataclass(frozen=True, eq=False)
class NearestQueries:
    """What `nearest_queries` found.

    Attributes
    ----------
    qid : ndarray, shape (n_queries,)
        Id of the reference query nearest to each query of X; queries of X in sorted order of their ids.
    distance : ndarray of float, shape (n_queries,)
        d_Q between the two, in squared feature units.
    rows : ndarray of int, shape (n_rows,)
        For each row of X its hypothetical counterpart: the row of X_reference with which the optimal plan pairs it.
        Between queries of different sizes, the row that gets most of its mass (the first of several).
    """

    qid: np.ndarray
    distance: np.ndarray
    rows: np.ndarray

    def hypothetical(self, X_reference):
        """The counterparts themselves, ``X_reference[rows]``: row i takes the place of row i of X, in the same query.

        Parameters
        ----------
        X_reference : array-like, shape (n_reference_rows, n_features)
            As given to `nearest_queries`; or any other table of these rows, such as unscaled features.

        Returns
        -------
        X_hypothetical : same type as X_reference, shape (n_rows, n_features)
        """
        return _safe_indexing(X_reference, self.rows)


def nearest_queries(X, X_reference, *, qid, qid_reference, metric, exclude_identical=True):
    r"""The nearest reference query of each query in the fair metric, and how their items pair up.

    The search is exact. With :math:`d_X` the squared distance of two items, the distance of two queries of n and m items is

    .. math::

        d_Q(q, q') = \min_{\Pi \ge 0} \sum_{ij} \Pi_{ij}\, d_X(x_i, x'_j), \qquad
        \sum_j \Pi_{ij} = \tfrac1n, \quad \sum_i \Pi_{ij} = \tfrac1m .

    Most pairs of queries need no transport: candidates are tried in the order of a lower bound (a value of the dual problem),
    until the bound exceeds the best distance so far.

    Parameters
    ----------
    X : array-like, shape (n_rows, n_features)
        Rows of the queries for which a neighbour is wanted, in the features on which the metric was fitted: of a
        pipeline's ranker those behind the other steps, ``pipeline[:-1].transform(X)``.
    X_reference : array-like, shape (n_reference_rows, n_features)
        Rows of the queries among which it is looked for. They may contain those of X.
    qid, qid_reference : array-like of shape (n_rows,) and (n_reference_rows,)
        Query of each row, in any order; queries of any size.
    metric : fitted fair metric
        Such as a fitted ranker's `metric_`; may be wrapped in `sklearn.frozen.FrozenEstimator`.
    exclude_identical : bool, default=True
        Leave out reference queries whose rows all equal the query's (in any order): the query itself and its copies. A
        query that differs from it in sensitive ways only is kept, at distance 0.

    Returns
    -------
    nearest : NearestQueries
        Arrays `qid` and `distance` (one entry for each query of X, in sorted order of their ids) and `rows` (one for
        each row of X); ``nearest.hypothetical(X_reference)`` gives the hypothetical rows. Among reference queries at
        the same distance (up to rounding) the one with the smallest id is taken.

    Raises
    ------
    ValueError
        If the numbers of features differ, a distance between two items is not finite, or all reference queries are
        identical to a query of X (the message names one).

    Examples
    --------
    The second feature is sensitive, so {(0, 0), (4, 0)} is nearer to {(0, 9), (5, 9)} than to {(1, 0), (6, 0)}:

    >>> from skfairrank import SensitiveSubspaceMetric
    >>> from skfairrank.inspection import nearest_queries
    >>> X = [[0, 0], [4, 0], [6, 0], [1, 0], [5, 9], [0, 9]]
    >>> qid = ["a", "a", "b", "b", "c", "c"]
    >>> metric = SensitiveSubspaceMetric(directions=[[0, 1]]).fit(X)
    >>> nearest = nearest_queries(X[:2], X, qid=qid[:2], qid_reference=qid, metric=metric)
    >>> nearest.qid.tolist(), nearest.distance.tolist(), nearest.rows.tolist()
    (['c'], [0.5], [5, 4])
    >>> nearest.hypothetical(X)
    [[0, 9], [5, 9]]
    """
    metric = fitted_metric(metric)
    X, X_reference = _rows(X, metric, "X"), _rows(X_reference, metric, "X_reference")
    queries = Queries.from_qid(qid, len(X))
    others = Queries.from_qid(qid_reference, len(X_reference), name="qid_reference")
    X, X_reference = queries.group(X), others.group(X_reference)
    Z, Z_reference, blur = fair_features(X, X_reference, metric)
    best = np.empty(queries.n_queries, np.int64)
    distance, partner = np.empty(queries.n_queries), np.empty(len(X), np.int64)
    for q in range(queries.n_queries):
        here = slice(queries.offsets[q], queries.offsets[q + 1])
        same = (lambda rows, X=X[here]: _same_rows(X, X_reference[rows])) if exclude_identical else (lambda rows: False)
        best[q], distance[q], partner[here] = _nearest(Z[here], Z_reference, others.offsets, blur, same)
    if (best < 0).any():
        lonely = queries.ids[np.argmax(best < 0)]
        raise ValueError(
            f"Query {lonely} has no nearest other query: all {others.n_queries} reference queries are identical to "
            "it. Give more reference queries, or exclude_identical=False."
        )
    return NearestQueries(others.ids[best], distance, others.order[queries.ungroup(partner)])


def _nearest(Z, Z_reference, offsets, blur, is_identical):
    """The nearest reference query to that of rows Z, its distance, and the row with which each row of Z is paired.

    -1 where every reference query is identical. Distances that differ by rounding count as equal; the first query is taken.
    """
    bounds = _lower_bounds(Z, Z_reference, offsets)
    chosen, partner, least, most = -1, -1, np.inf, np.inf  # distances between least and most are equal up to rounding
    for j in np.argsort(bounds, kind="stable"):
        if bounds[j] > most:
            break
        rows = slice(offsets[j], offsets[j + 1])
        found, of_rows = transport(Z, Z_reference[rows])
        if found > most or (found <= blur**2 and is_identical(rows)):
            continue
        is_better = chosen < 0 or found < 2.0 * least - most
        if is_better or j < chosen:
            chosen, distance, partner = int(j), found, offsets[j] + of_rows
        if found < least:
            least = found
            most = least + _SLACK * least + (2.0 * np.sqrt(least) + blur) * blur
    return chosen, distance if chosen >= 0 else np.nan, partner


def _lower_bounds(Z, Z_reference, offsets):
    """Lower bounds of the distances of the query of rows Z from all reference queries, shape (n_reference_queries,).

    They are values of the dual: mean u + mean v with u_i + v_j <= cost_ij. v_j is the minimum of column j, and u_i the minimum
    of what is left in row i. Squared distances come from one matrix product, whose rounding errors are allowed for.
    """
    bounds, n_rows = np.empty(len(offsets) - 1), max(1, _MAX_COSTS // len(Z))
    lengths, first = np.einsum("ij,ij->i", Z, Z)[:, None], 0
    while first < len(bounds):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + n_rows, side="right")) - 1)
        others, starts = Z_reference[offsets[first] : offsets[last]], offsets[first:last] - offsets[first]
        of_others = np.einsum("ij,ij->i", others, others)
        cost = Z @ others.T
        cost *= -2.0
        cost += lengths
        cost += of_others
        v = cost.min(axis=0)
        cost -= v
        u = np.minimum.reduceat(cost, starts, axis=1)
        rounding = 8.0 * (Z.shape[1] + 4) * np.finfo(float).eps * (lengths.max() + of_others.max())
        bounds[first:last] = u.mean(axis=0) + np.add.reduceat(v, starts) / np.diff(offsets[first : last + 1]) - rounding
        first = last
    return bounds


def _same_rows(X, Y):
    """Whether the rows of X are those of Y in some order."""
    return len(X) == len(Y) and np.array_equal(X[np.lexsort(X.T)], Y[np.lexsort(Y.T)])


def _rows(X, metric, name):
    """Rows as float64, with the features on which the metric was fitted."""
    check_same_features(metric, getattr(X, "columns", None))
    X = check_array(X, dtype=np.float64, order="C", input_name=name)
    n_features = metric.basis_.shape[1]
    if X.shape[1] != n_features:
        raise ValueError(
            f"{name} has {X.shape[1]} features, but metric was fitted on {n_features}. A pipeline's metric_ measures "
            "what its last step sees: pass pipeline[:-1].transform(X)."
        )
    return X


def steps_to_metric(metric, estimators: dict, X) -> dict:
    """For each estimator the fitted transformers that bring X to the space of a metric, as a tuple.

    A metric that a ranker uses (its `metric_`), or that is a step itself, measures what the steps before it give. It is known by
    identity or by equal directions. An estimator without it is asked about the same neighbours as the first one that has it.
    Where none has it, it measures X, by whose columns it must have been fitted if an estimator is a pipeline.

    Raises
    ------
    ValueError
        If it cannot be told what the metric measures.
    """
    own = {
        name: next((steps for steps, part in _parts(estimator) if _has(part, metric)), None)
        for name, estimator in estimators.items()
    }
    known = next((steps for steps in own.values() if steps is not None), None)
    if known is not None:
        return {name: known if steps is None else steps for name, steps in own.items()}
    return {name: _steps_of_names(metric, name, estimator, X) for name, estimator in estimators.items()}


def transformed(steps, X, qid):
    """X behind fitted transformers; `qid` goes to those that request it."""
    for step in steps:
        X = call_with_metadata(step, "transform", X, qid=qid)
    return X


def _parts(estimator, steps=()):
    """Each part of an estimator with the transformers before it, from outside to inside and from first to last."""
    estimator = unwrapped(estimator)
    if not hasattr(estimator, "steps"):
        yield steps, estimator
        if hasattr(estimator, "estimator_"):
            yield from _parts(estimator.estimator_, steps)
        return
    for _, step in estimator.steps:
        if step is not None and not isinstance(step, str):  # "passthrough"
            yield from _parts(step, steps)
            steps += (step,)


def _has(part, metric: Any) -> bool:
    """Whether a part is the metric or uses it; also a copy, such as one that was pickled."""
    arrays = ("directions_", "basis_", "shrink_")
    return any(
        one is metric
        or (type(one) is type(metric) and all(np.array_equal(getattr(one, a, ()), getattr(metric, a)) for a in arrays))
        for one in map(unfrozen, (part, getattr(part, "metric_", None)))
    )


def _steps_of_names(metric, name, estimator, X):
    """No steps, where the metric was fitted on the columns of X, or the estimator is no pipeline."""
    *_, (steps, _) = _parts(estimator)
    expected, names = getattr(metric, "feature_names_in_", None), table_names(X)
    if not steps or (names is not None and expected is not None and list(expected) == names):
        return ()
    raise ValueError(
        f"metric is not the metric_ of a ranker here, and {name!r} is a pipeline: whether it measures X or what its last "
        "step sees cannot be told. Bring the rows to the features of the metric, as Z, and pass "
        "X_hypothetical=nearest_queries(Z, Z, qid=qid, qid_reference=qid, metric=metric).hypothetical(X)."
    )
