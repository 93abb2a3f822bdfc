"""DetConstSort: a share of the first ranks for each of any number of groups (Geyik, Ambler, Kenthapadi 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skfairrank._sensitive import check_groups
from skfairrank.postprocessing._base import GroupReRanker, ReRanker

_ROUNDING = 1e-9


class DetConstSortRanker(GroupReRanker):
    r"""DetConstSort: the order of the scores, in which each group has its share of the first ranks.

    The third algorithm of "Fairness-Aware Ranking in Search & Recommendation Systems with Application to LinkedIn Talent Search"
    (Geyik, Ambler, Kenthapadi 2019). Among the first k ranks, for every k, group g with proportion :math:`p_g` has at least
    :math:`\lfloor k p_g \rfloor` items, or all of its items in the query. So the j-th best item of a group has a deadline, the
    first k with :math:`\lfloor k p_g \rfloor \ge j`. Items are placed in the order of their deadlines, and each moves up past
    items of lower scores, as long as none of these comes to stand behind its own deadline.

    Parameters
    ----------
    estimator : estimator with `fit` and `predict`
        The ranker: one of this package, a pipeline, a regressor, a boosted ranker (which is put into a `QueryRanker`), or
        ``FrozenEstimator(model)`` around a fitted one.
    proportions : dict of label to float, or "query"
        The share of each group, in [0, 1], at most 1 together. A group without a share, or with 0, stands where its scores put
        it once the others have theirs. "query": the share of a group's items among the items of the query.

    Attributes
    ----------
    estimator_ : estimator
        The fitted ranker.
    n_queries_ : int
    n_features_in_ : int

    Notes
    -----
    The groups are needed when rankings are made, not only in training. Where scores tie, rows keep their order as far as their
    deadlines allow.

    In the paper's listing, read with ranks from 0 as it begins, an item may move one rank beyond its deadline, and published
    programs follow it; then a group may lack an item of its share. Here it may not, which is what the paper proves of the
    algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.postprocessing import DetConstSortRanker
    >>> X, y, qid = np.arange(8.0)[:, None], np.arange(8.0), np.zeros(8, int)
    >>> age = np.array(["old", "old", "mid", "mid", "new", "new", "new", "new"])
    >>> ranker = DetConstSortRanker(
    ...     LinearRegression(), proportions={"new": 0.5, "mid": 0.25, "old": 0.25}
    ... )
    >>> ranks = ranker.fit(X, y, qid=qid).rank(X, qid=qid, sensitive_features=age)
    >>> age[np.argsort(ranks)].tolist()
    ['new', 'new', 'mid', 'old', 'new', 'new', 'mid', 'old']
    """

    _parameter_constraints = {
        **ReRanker._parameter_constraints,
        "proportions": [Mapping, StrOptions({"query"})],
    }

    def __init__(self, estimator, *, proportions):
        self.estimator = estimator
        self.proportions = proportions

    def _learn(self, X, queries, sensitive_features):
        if not isinstance(self.proportions, str):
            _check_proportions(self.proportions)
        if sensitive_features is not None:
            self._marks(check_groups(sensitive_features, queries.n_rows, compared_by="DetConstSortRanker")[0])

    def _marks(self, labels):
        if isinstance(self.proportions, str):
            return np.arange(len(labels))
        names = list(self.proportions)
        unknown = [label for label in labels.tolist() if label not in self.proportions]
        if unknown:
            raise ValueError(
                f"sensitive_features has the group {unknown[0]!r}, and proportions has only {', '.join(map(repr, names))}: give "
                "it a share (0 asks for nothing), or write labels alike."
            )
        return np.array([names.index(label) for label in labels.tolist()])

    def _order(self, s, marks):
        deadlines = np.empty(len(s))
        for group in np.unique(marks):
            rows = np.flatnonzero(marks == group)
            rows = rows[np.argsort(-s[rows], kind="stable")]
            share = len(rows) / len(s) if isinstance(self.proportions, str) else list(self.proportions.values())[group]
            deadlines[rows] = _deadlines(len(rows), float(share))
        return _sorted_within_deadlines(s, deadlines)


def _check_proportions(proportions) -> None:
    if not proportions:
        raise ValueError("proportions is empty: give the share of each group, as {'f': 0.5, 'm': 0.5}.")
    for label, share in proportions.items():
        if not isinstance(share, Real) or isinstance(share, bool) or not 0.0 <= float(share) <= 1.0:
            raise ValueError(f"proportions has {share!r} for the group {label!r}: give a number from 0 to 1.")
    total = math.fsum(proportions.values())
    if total > 1 + _ROUNDING:
        raise ValueError(f"proportions sum to {total:g}: shares of all ranks are at most 1 together.")


def _deadlines(n: int, share: float) -> np.ndarray:
    """The first k with floor(k share) >= j, for j = 1, ..., n; up to rounding of the product."""
    if share == 0:
        return np.full(n, np.inf)
    return np.ceil(np.arange(1, n + 1) / share * (1.0 - _ROUNDING))


def _sorted_within_deadlines(s: np.ndarray, deadlines: np.ndarray) -> np.ndarray:
    """Rows by deadline, each moved up past lower scores as long as these keep their deadlines; shape (n,)."""
    order: list[int] = []
    score, latest = s.tolist(), deadlines.tolist()
    for row in np.lexsort((-s, deadlines)).tolist():
        place = len(order)
        while place > 0 and score[order[place - 1]] < score[row] and latest[order[place - 1]] > place:
            place -= 1
        order.insert(place, row)
    return np.array(order)
