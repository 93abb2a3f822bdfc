"""All scores that a report needs, predicted once: of the rows, and of each of their hypotheticals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skfairrank._checks import check_scores
from skfairrank._queries import Queries
from skfairrank.hypotheticals import Hypotheticals
from skfairrank.inspection._order_changes import STATISTICS
from skfairrank.inspection._report._changes import described_changes, share_of_rows_changed
from skfairrank.metrics._predictions import own_policy, ranking_scores

__all__ = ["Scored", "Worst", "score_all"]


class _Column:
    """A ranker whose rows hold the scores that were predicted: the score of a row is one of its columns.

    So `audit` and `exposure_by_group` judge rankers that take long to predict without asking them again.
    """

    def __init__(self, column: int):
        self.column = column

    def predict(self, X):
        return X[:, self.column]


class _ColumnWithPolicy(_Column):
    """The same of a ranker that draws its rankings by a rule of its own."""

    def __init__(self, column: int, policy):
        super().__init__(column)
        self.of_these_rows = policy

    def policy(self, X, *, qid, sensitive_features=None):
        return self.of_these_rows


@dataclass(frozen=True)
class Worst:
    """A ranker, a query and the hypothetical that changes its order most.

    Attributes
    ----------
    ranker, hypothetical : int
        Their numbers.
    query : int
        Its number in sorted order of the ids.
    changes : list of str
        What the hypothetical changes in each row of the query, as grouped by query.
    """

    ranker: int
    query: int
    hypothetical: int
    changes: list[str]


@dataclass(frozen=True)
class Scored:
    """Scores in the order of the rows, and what was learned on the way.

    Attributes
    ----------
    rankers : dict of name to ranker
        What was predicted, as rankers whose X is `s`, or one of `others`.
    s : ndarray, shape (n_rows, n_rankers)
    others : list of ndarray, shape (n_rows, n_rankers)
        Of each hypothetical.
    names : list of str
        Of the hypotheticals.
    rows_changed : list of float
        Share of the rows that each hypothetical changes.
    worst : list of Worst
        For one ranker after the other its worst queries, the worst first.
    """

    rankers: dict
    s: np.ndarray
    others: list[np.ndarray]
    names: list[str]
    rows_changed: list[float]
    worst: list[Worst]


def score_all(
    rankers: dict, X, queries: Queries, known: dict, hypotheticals: Hypotheticals | None, given, n_worst: int
) -> Scored:
    """Predict, one set of hypothetical rows after the other; of each only its scores are kept, and what it does to worst queries.

    Parameters
    ----------
    rankers : dict of name to fitted estimator
    X : table, shape (n_rows, n_features)
    queries : Queries
    known : dict
        ``qid`` and ``sensitive_features``, for rankers that ask for them when they predict.
    hypotheticals : fitted Hypotheticals, or None for no hypothetical rows
    given : the tables of `X_hypothetical`, or None
    n_worst : int
        How many queries of each ranker are described.

    Returns
    -------
    scored : Scored
    """
    s = _scores(rankers, X, known, queries, "scores of X")
    policies = [own_policy(ranker, X, **known) for ranker in rankers.values()]
    columns = [_Column(j) if policy is None else _ColumnWithPolicy(j, policy) for j, policy in enumerate(policies)]
    found = Scored(dict(zip(rankers, columns, strict=True)), s, [], [], [], [])
    if hypotheticals is None:
        return found
    watches = [_Watch(j, queries.n_queries, n_worst) for j in range(len(rankers))]
    for k, (name, rows) in enumerate(hypotheticals.candidates(X, given)):
        other = _scores(rankers, rows, known, queries, f"scores of the hypothetical {name!r}")
        found.others.append(other)
        found.names.append(name)
        found.rows_changed.append(share_of_rows_changed(X, rows))
        for j, watch in enumerate(watches):
            turned = STATISTICS["discordance"](queries.group(s[:, j]), queries.group(other[:, j]), queries)
            for query in watch.update(turned):
                watch.found[query] = Worst(j, query, k, described_changes(X, rows, queries.rows(query)))
    found.worst.extend(worst for watch in watches for worst in watch.worst())
    return found


class _Watch:
    """The worst queries of one ranker so far.

    A query that is among the worst in the end is so, too, right after the hypothetical that is worst for it, since values of
    queries only grow. So it is enough to describe what a hypothetical does to those that are among the worst just then.
    """

    def __init__(self, ranker: int, n_queries: int, n_worst: int):
        self.unfairness, self.n_worst = np.zeros(n_queries), n_worst
        self.found: dict[int, Worst] = {}

    def update(self, unfairness: np.ndarray) -> list[int]:
        """The queries that got worse, and are among the worst."""
        is_worse = unfairness > self.unfairness
        self.unfairness = np.maximum(self.unfairness, unfairness)
        return [query for query in self._order() if is_worse[query]]

    def worst(self) -> list[Worst]:
        return [self.found[query] for query in self._order() if self.unfairness[query] > 0]

    def _order(self) -> list[int]:
        return np.argsort(-self.unfairness, kind="stable")[: self.n_worst].tolist()


def _scores(rankers, X, known, queries, what) -> np.ndarray:
    columns = []
    for name, ranker in rankers.items():
        scores = check_scores(ranking_scores(ranker, X, **known), name=f"{what} by {name!r}")
        if len(scores) != queries.n_rows:
            raise ValueError(
                f"{what} by {name!r}: there are {len(scores)} for {queries.n_rows} rows: give one for each row."
            )
        columns.append(scores)
    return np.column_stack(columns)
