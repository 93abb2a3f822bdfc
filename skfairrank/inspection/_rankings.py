"""What is ranked, as scores by name: those that fitted rankers give, or those that one has; and the same under hypotheticals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from skfairrank._candidates import (
    as_frame,
    check_candidates,
    columns_with_missing,
    differs,
    is_same,
    made_by,
    table_names,
    warn_of_no_effect,
)
from skfairrank._checks import check_scores, refuse_mask
from skfairrank._queries import Queries
from skfairrank.hypotheticals import Hypotheticals, _distinct
from skfairrank.metrics._predictions import own_policy, ranking_scores


class Rankings:
    """The scores of each ranker, grouped by query.

    Parameters
    ----------
    rankers : fitted estimator, scores (n_rows,), table whose columns are scores, or dict of name to estimator or scores
    X : table, or None where all rankers are scores
    qid, sensitive_features : array-like, shape (n_rows,)
        For estimators that ask for them when they predict.
    n_rows : int, optional
        Default: the rows of X, or the number of scores.

    Attributes
    ----------
    queries : Queries
    estimators : dict of name to estimator, or to scores
    scores : dict of name to ndarray of float64, shape (n_rows,)
    """

    def __init__(self, rankers, X, *, qid, sensitive_features=None, n_rows=None):
        self.estimators = _by_name(rankers)
        refuse_mask(X, "X")
        self.X = X if X is None or hasattr(X, "shape") else np.asarray(X)
        given = next(iter(self.estimators.values())) if X is None else X
        if n_rows is None and not _predicts(given):
            n_rows = _num_samples(given)
        elif X is not None and _num_samples(X) != n_rows:
            raise ValueError(f"X has {_num_samples(X)} rows and y has {n_rows}: they must describe the same rows.")
        self.queries = Queries.from_qid(qid, n_rows)
        if isinstance(sensitive_features, Mapping) and len(sensitive_features) == 1:
            (sensitive_features,) = sensitive_features.values()
        if sensitive_features is not None and not isinstance(sensitive_features, Mapping):
            n_labels = _num_samples(sensitive_features)
            if n_labels != n_rows:
                raise ValueError(
                    f"sensitive_features has {n_labels} entries for {n_rows} rows: give one group label per row."
                )
        self._metadata = {"qid": qid, "sensitive_features": sensitive_features}
        self.scores = {
            name: self._predicted(name, self.table(f"{name} is to score rows"), "X")
            if _predicts(one)
            else self._checked(one, name, "X")
            for name, one in self.estimators.items()
        }

    def policy(self, name: str):
        """The policy of a ranker that draws its rankings by a rule of its own, else None."""
        ranker = self.estimators[name]
        return own_policy(ranker, self.X, **self._metadata) if _predicts(ranker) else None

    def hypotheticals(self, hypotheticals, X_hypothetical=None, metric=None) -> Iterator[Hypothetical]:
        """Each hypothetical, one after the other; each call makes them anew.

        Parameters
        ----------
        hypotheticals : function X -> X', table like X, scores, list or dict of these, or Hypotheticals
        X_hypothetical : table like X, list or dict of these, optional
        metric : fitted fair metric, for Hypotheticals along its directions
        """
        if isinstance(hypotheticals, Hypotheticals):
            X = self.table("hypotheticals need rows")
            for name, rows in _fitted(hypotheticals, X, metric).candidates(X, X_hypothetical):
                yield Hypothetical(name, rows, None)
            return
        pairs = [*_named(hypotheticals, "hypothetical"), *_named(X_hypothetical, "X_hypothetical")]
        if not pairs:
            raise ValueError(
                "There are no hypothetical rows: give hypotheticals, such as a function X -> X' that flips a column, a table "
                "like X, or scores of the items as they might have been."
            )
        for name, (_, given) in zip(_distinct([name for name, _ in pairs]), pairs, strict=True):
            is_table = self.X is not None and len(self.X.shape) == 2
            if callable(given) or not (
                self.X is None or isinstance(given, Mapping) or (is_table and _n_axes(given) == 1)
            ):
                yield Hypothetical(name, self._rows(name, given), None)
            else:
                yield Hypothetical(name, None, self._by_ranker(name, given))

    def under(self, hypothetical: Hypothetical) -> dict[str, np.ndarray]:
        """The scores of each ranker under a hypothetical, grouped by query."""
        name, rows, scores = hypothetical
        what = f"the hypothetical {name!r}"
        if scores is not None:
            return {ranker: self._checked(scores[ranker], ranker, what) for ranker in self.scores}
        if isinstance(rows, Mapping):
            return {ranker: self._predicted(ranker, rows[ranker], what) for ranker in self.scores}
        if _n_axes(rows) == 2 and is_same(self.X, rows):
            warn_of_no_effect(name)
        return {ranker: self._predicted(ranker, rows, what) for ranker in self.scores}

    def changed_columns(self, hypothetical: Hypothetical, before=None) -> np.ndarray | None:
        """Which columns of X a hypothetical or one `before` it changes; None where that is not known."""
        rows = hypothetical.rows
        if rows is None or isinstance(rows, Mapping) or _n_axes(self.X) != 2:
            return before
        changed = differs(as_frame(self.X), as_frame(rows)).any(axis=0).to_numpy()
        return changed if before is None else before | changed

    def _predicted(self, name: str, X, what: str) -> np.ndarray:
        if not _predicts(self.estimators[name]):
            raise ValueError(
                f"{name!r} is given by its scores, and cannot score the rows of {what}: give its scores of them, too, as "
                "hypotheticals={...: scores}."
            )
        return self._checked(ranking_scores(self.estimators[name], X, **self._metadata), name, what)

    def _checked(self, scores, name: str, what: str) -> np.ndarray:
        scores = check_scores(scores, name=f"scores of {what} by {name!r}")
        if len(scores) != self.queries.n_rows:
            raise ValueError(
                f"There are {len(scores)} scores of {what} by {name!r} for {self.queries.n_rows} rows: give one for each row."
            )
        return self.queries.group(scores)

    def _by_ranker(self, name: str, given) -> dict:
        scores = _by_name(given)
        if len(scores) == 1 == len(self.scores):
            return dict(zip(self.scores, scores.values(), strict=True))
        missing = [ranker for ranker in self.scores if ranker not in scores]
        if missing:
            raise ValueError(
                f"The hypothetical {name!r} has scores of {list(scores)}, and none of {missing}: give a table or a dict with "
                f"scores of each of {list(self.scores)}."
            )
        return scores

    def _rows(self, name: str, given):
        X = self.table("hypotheticals are made of rows")
        if len(X.shape) != 2:  # texts, which are no table
            return given(X.copy()) if callable(given) else given
        may_miss = columns_with_missing(X)
        if callable(given):
            return made_by(name, given, X, may_miss)
        source = name if name.startswith("X_hypothetical") else f"The hypothetical {name!r}"
        refuse_mask(given, source)
        return check_candidates(source, X, given, may_miss)

    def table(self, reason: str):
        """X; the error where there is none begins with who asks for it."""
        if self.X is None:
            raise ValueError(
                f"{reason}, and X is missing: pass it, or scores in the place of rankers and of hypotheticals."
            )
        return self.X


class Hypothetical(NamedTuple):
    """What the items might as well have been: rows (for all rankers, or a dict of those of each), or scores of each ranker."""

    name: str
    rows: object
    scores: dict | None


def _predicts(ranker) -> bool:
    """Whether it is an estimator rather than scores."""
    return any(hasattr(ranker, name) for name in ("fit", "predict", "decision_function")) or not (
        hasattr(ranker, "__len__") or hasattr(ranker, "__array__")
    )


def _by_name(rankers) -> dict:
    """Estimators and scores by name; the columns of a table by theirs."""
    if isinstance(rankers, Mapping):
        if not rankers:
            raise ValueError("rankers is an empty dict: give at least one fitted ranker, or scores.")
        return dict(zip(_distinct([str(name) for name in rankers]), rankers.values(), strict=True))
    if _predicts(rankers):
        return {type(rankers).__name__: rankers}
    names = table_names(rankers)
    if names is not None:
        table = rankers if isinstance(rankers, pd.DataFrame) else rankers.to_pandas()
        return {name: table.iloc[:, j].to_numpy() for j, name in enumerate(_distinct([str(name) for name in names]))}
    if _n_axes(rankers) == 2:
        return {f"scores {j}": column for j, column in enumerate(np.asarray(rankers).T)}
    name = getattr(rankers, "name", None)
    return {"scores" if name is None else str(name): rankers}


def _n_axes(given) -> int:
    return len(given.shape) if hasattr(given, "shape") else np.ndim(given)


def _named(given, default: str) -> list[tuple]:
    """Hypotheticals by name: one, or those of a list or dict."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [(str(name), one) for name, one in given.items()]
    if (
        isinstance(given, np.ndarray) and given.ndim == 3
    ):  # of shape (n_rows, n_sets, n_features), as estimators take it
        given = [given[:, k] for k in range(given.shape[1])]
    elif not (isinstance(given, (list, tuple)) and len(given) and (callable(given[0]) or _n_axes(given[0]) == 2)):
        return [(_name_of(given, default), given)]
    return [(_name_of(one, f"{default} {k}"), one) for k, one in enumerate(given)]


def _name_of(given, default: str) -> str:
    return getattr(given, "__name__", type(given).__name__) if callable(given) else default


def _fitted(hypotheticals: Hypotheticals, X, metric) -> Hypotheticals:
    """Fitted hypotheticals as they are; others are fitted where that teaches them nothing about the audited queries."""
    if hasattr(hypotheticals, "names_"):
        return hypotheticals
    metric_to_use = metric if hypotheticals.metric is None else hypotheticals.metric
    learns_metric = metric_to_use is None or (hasattr(metric_to_use, "fit") and not hasattr(metric_to_use, "basis_"))
    learns_rows = hypotheticals.n_neighbors or isinstance(hypotheticals.feature_range, str)
    if learns_rows or (hypotheticals.needs_metric and learns_metric):
        raise ValueError(
            "hypotheticals learns from rows, and is not fitted: fit it on training rows first. What it would learn from the "
            "audited queries makes them depend on each other, and then the bound does not hold for new ones."
        )
    return clone(hypotheticals).fit(X, metric=metric)
