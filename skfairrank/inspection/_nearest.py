"""Hypothetical queries from data: the nearest other query in the fair metric (Bower et al. 2021, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import _safe_indexing, check_array

from skfairrank._kernels import nearest as _nearest
from skfairrank._queries import Queries
from skfairrank._threads import over_queries
from skfairrank.fair_metrics._distances import fair_features, transposed
from skfairrank.fair_metrics._linear import check_same_features, fitted_metric

__all__ = ["NearestQueries", "nearest_queries"]

# Bounds held at a time, and bins of the quantile functions behind them.
_MAX_BOUNDS = 1 << 22
_MAX_BINS = 32


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

    Most pairs of queries need no transport: candidates are tried in the order of a lower bound (the transport costs of
    single features, summed), and dropped when the dual bound of their own transport exceeds the best distance so far.

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
    >>> X, qid = [[0, 0], [4, 0], [6, 0], [1, 0], [5, 9], [0, 9]], ["a", "a", "b", "b", "c", "c"]
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
    ours = _nearest.Items(X, Z, queries.offsets)
    reference = _nearest.Items(X_reference, transposed(Z_reference, others.offsets), others.offsets)
    n_bins = _number_of_bins(queries, others)
    profile = _profile(transposed(Z, queries.offsets), queries.offsets, n_bins, X.shape[1])
    profile_reference = _profile(reference.fair, others.offsets, n_bins, X.shape[1])

    best = np.empty(queries.n_queries, np.int64)
    distance, partner = np.empty(queries.n_queries), np.empty(len(X), np.int64)
    step = max(1, _MAX_BOUNDS // others.n_queries)
    for first in range(0, queries.n_queries, step):
        chunk = slice(first, first + step)
        offsets = queries.offsets[first : first + step + 1]
        over_queries(
            _nearest.nearest,
            offsets,
            _nearest.nearest_nanoseconds(offsets[-1] - offsets[0], len(X_reference), X.shape[1]),
            ours._replace(offsets=offsets),
            reference,
            _lower_bounds(profile[chunk], profile_reference),
            blur,
            bool(exclude_identical),
            best[chunk],
            distance[chunk],
            partner,
        )
    if (best < 0).any():
        lonely = queries.ids[np.argmax(best < 0)]
        raise ValueError(
            f"Query {lonely} has no nearest other query: all {others.n_queries} reference queries are identical to "
            "it. Give more reference queries, or exclude_identical=False."
        )
    return NearestQueries(others.ids[best], distance, others.order[queries.ungroup(partner)])


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


def _number_of_bins(queries, others):
    """Of equal sizes one bin for each item, which loses nothing; else no more than the data have on the average."""
    mean_size = (queries.n_rows + others.n_rows) / (queries.n_queries + others.n_queries)
    return int(np.clip(np.floor(mean_size), 1, _MAX_BINS))


def _profile(blocks, offsets, n_bins, n_features):
    """Vectors whose squared distance is a lower bound of d_Q, shape (n_queries, n_features * n_bins)."""
    out = np.empty((len(offsets) - 1, n_features * n_bins))
    work = _nearest.quantile_nanoseconds(int(offsets[-1]), n_features)
    over_queries(_nearest.quantile_means, offsets, work, blocks, offsets, n_bins, out)
    return out


def _lower_bounds(profile, profile_reference):
    """Squared distances between profiles, rounded down: one matrix product, whose rounding errors are allowed for."""
    center = profile_reference.mean(axis=0)
    a, b = profile - center, profile_reference - center
    length_a, length_b = np.einsum("ij,ij->i", a, a)[:, None], np.einsum("ij,ij->i", b, b)
    bounds = a @ b.T
    bounds *= -2.0
    rounding = 4.0 * (a.shape[1] + 4) * np.finfo(float).eps
    bounds += (1.0 - rounding) * length_a
    bounds += (1.0 - rounding) * length_b
    return np.maximum(bounds, 0.0, out=bounds)
