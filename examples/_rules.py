"""The strongest simple rules beside this package's rankers, on any task whose people have twins; all of them around
LightGBM.

A rule is trained on labels, groups and twins of the training queries. When it decides it gets X; three rules also ask for the
group, one for the twin. What a rule has to choose (rho, strength) it chooses on a fifth of the training queries.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from _people import exposure_gap
from joblib import Parallel, delayed, parallel_config
from lightgbm import LGBMRanker, LGBMRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator

from skfairrank import AveragingRanker, DistilledRanker, GapBoostingRanker, QueryRanker, SenSTIRBoostingRanker
from skfairrank.metrics import kendall_tau_score, ndcg_score
from skfairrank.postprocessing import DetConstSortRanker, ExposureLPRanker

PLAIN, DROP, MERGE, AVERAGED = "plain", "drop", "drop and merge", "averaged"
STUDENT, TAUGHT_SENSTIR = "student", "student with SenSTIR"
TWINS_AS_ROWS, LESS_MEAN, FREE = "twins as further rows", "labels less the group's mean", "discrimination-free"
RESIDUALS, SORTED_BY_SHARE, EXPOSURE = "group-mean residuals", "DetConstSort", "exposure LP"
SENSTIR, GAPS = "SenSTIR", "gaps"
#: What each must be given when it decides, besides X.
ASKS = {AVERAGED: "the twin", RESIDUALS: "the group", SORTED_BY_SHARE: "the group", EXPOSURE: "the group"}

RHOS, STRENGTHS = (0.001, 0.003, 0.01, 0.03), (1.0, 3.0, 5.0, 10.0)
MAX_LOSS = 0.02  # of NDCG by the labels, on the validation queries

Scores = Callable[["People"], np.ndarray]


@dataclass(frozen=True)
class People:
    """Rows with their labels, query ids, groups (1 for the group that is to be protected), and twins in the other group."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    group: np.ndarray
    twin: np.ndarray

    def at(self, rows) -> People:
        return People(self.X[rows], self.y[rows], self.qid[rows], self.group[rows], self.twin[rows])

    @property
    def exchanged(self) -> People:
        """Everybody replaced by the twin."""
        return replace(self, X=self.twin, twin=self.X, group=1 - self.group)


@dataclass(frozen=True)
class Task:
    """What a regime or a data set is: people to learn from and to rank.

    Attributes
    ----------
    train, test : People
    drop : tuple of int
        Columns that who knows them leaves out.
    holds_group : tuple of int
        Columns that are the group itself.
    merge : callable, optional
        Turns X into a table in which categories that tell the group are merged, and its columns dropped.
    merit : ndarray, optional
        True relevances of the test rows.
    true_twin : ndarray, optional
        The true twins of the test rows, where those that the rules are given are wrong.
    """

    train: People
    test: People
    drop: tuple[int, ...]
    holds_group: tuple[int, ...] = ()
    merge: Callable[[np.ndarray], np.ndarray] | None = None
    merit: np.ndarray | None = None
    true_twin: np.ndarray | None = None


def rules(task: Task, n_trees: int = 100) -> Iterator[tuple[str, Scores, float | None]]:
    """Name, what gives scores to people, and what was chosen, of every rule."""
    train, trees = task.train, {"n_estimators": n_trees, "num_leaves": 7, "random_state": 0, "n_jobs": 1, "verbose": -1}
    ranker, regressor = LGBMRanker(**trees), LGBMRegressor(**trees)

    def fit(X, y=train.y, qid=train.qid):
        return QueryRanker(ranker).fit(X, y, qid=qid)

    plain = fit(train.X)
    yield PLAIN, lambda people: plain.predict(people.X), None
    kept = np.setdiff1d(np.arange(train.X.shape[1]), task.drop)
    dropped = fit(train.X[:, kept])
    yield DROP, lambda people: dropped.predict(people.X[:, kept]), None
    if task.merge is not None:
        merged = fit(task.merge(train.X))
        yield MERGE, lambda people: merged.predict(task.merge(people.X)), None
    averaged = AveragingRanker(FrozenEstimator(plain)).fit(train.X, train.y, qid=train.qid)
    yield AVERAGED, lambda people: averaged.predict(people.X, X_hypothetical=people.twin), None

    student = DistilledRanker(regressor, regressor).fit(train.X, train.y, qid=train.qid, X_hypothetical=train.twin)
    yield STUDENT, lambda people: student.predict(people.X), None

    def taught(rho, people):
        return DistilledRanker(regressor, senstir(rho)).fit(
            people.X, people.y, qid=people.qid, X_hypothetical=people.twin
        )

    def pulled(rho, people):
        return senstir(rho).fit(people.X, people.y, qid=people.qid, X_hypothetical=people.twin)

    def senstir(rho):
        return SenSTIRBoostingRanker(ranker, rho=rho, random_state=0)

    def by_gaps(strength, people):
        told = GapBoostingRanker(ranker, strength=strength)
        return told.fit(people.X, people.y, qid=people.qid, sensitive_features=people.group)

    yield TAUGHT_SENSTIR, *chosen(taught, RHOS, train)
    again = fit(np.vstack([train.X, train.twin]), np.tile(train.y, 2), np.tile(train.qid, 2))
    yield TWINS_AS_ROWS, lambda people: again.predict(people.X), None

    def blind(X):
        return np.delete(X, task.holds_group, axis=1)

    neutral = task.merge or blind
    less = QueryRanker(regressor).fit(neutral(train.X), less_group_mean(train.y.astype(float), train), qid=train.qid)
    yield LESS_MEAN, lambda people: less.predict(neutral(people.X)), None
    with_group = np.column_stack([blind(train.X), train.group])
    free = AveragingRanker(ranker, hypotheticals=[partial(all_of, group=g) for g in (0, 1)], weights=weights_of(train))
    free.fit(with_group, train.y, qid=train.qid)
    yield FREE, lambda people: free.predict(np.column_stack([blind(people.X), people.group])), None
    residual = fit(blind(less_group_mean(train.X, train)))
    yield RESIDUALS, lambda people: residual.predict(blind(less_group_mean(people.X, train, people.group))), None
    for name, reranker in ((SORTED_BY_SHARE, DetConstSortRanker), (EXPOSURE, ExposureLPRanker)):
        known = {"qid": train.qid, "sensitive_features": train.group}
        settings = {"proportions": "query"} if reranker is DetConstSortRanker else {}
        yield (
            name,
            partial(_reranked, reranker(FrozenEstimator(plain), **settings).fit(train.X, train.y, **known)),
            None,
        )
    yield SENSTIR, *chosen(pulled, RHOS, train)
    yield GAPS, *chosen(by_gaps, STRENGTHS, train)


#: What is measured of a rule.
LABELS, MERIT, TAU, GAP, CHOSEN = range(5)


def judged_rules(task: Task, n_trees: int = 100) -> dict[str, list[float]]:
    """Of every rule on the test queries, in sorted lists: NDCG by the labels, by true merit (nan where it is not known), tau with
    the twins, mean exposure of the group less that of the others, and what was chosen (nan where nothing was)."""
    test, twins, found = task.test, task.test.exchanged, {}
    if task.true_twin is not None:
        twins = replace(twins, X=task.true_twin)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # queries without a relevant row
        warnings.filterwarnings(
            "ignore", ".*(nearly the same in all columns|tell sensitive attribute|trees are too few)"
        )
        for name, score, value in rules(task, n_trees):
            scores, of_twins = score(test), score(twins)
            ndcg, merit = (np.nan if y is None else mean_ndcg(y, scores, test.qid) for y in (test.y, task.merit))
            tau, gap = (
                kendall_tau_score(scores, of_twins, qid=test.qid),
                exposure_gap(scores, test.qid, test.group == 1),
            )
            found[name] = [ndcg, merit, tau, gap, np.nan if value is None else value]
    return found


def run_rules(make_task: Callable[[int], Task], n_draws: int, n_trees: int = 100) -> dict[str, np.ndarray]:
    """By rule, shape (n_draws, 5); a draw's number is the random state of its task."""
    with parallel_config("loky", inner_max_num_threads=1):
        draws = Parallel(n_jobs=2 if n_draws > 2 else 1)(
            delayed(lambda seed: judged_rules(make_task(seed), n_trees))(seed) for seed in range(n_draws)
        )
    return {name: np.array([draw[name] for draw in draws]) for name in draws[0]}


def mean_ndcg(y, scores, qid) -> float:
    """Over the queries with a relevant row."""
    return float(np.nanmean(ndcg_score(y, scores, qid=qid, reduce=None)))


def _reranked(ranker, people: People) -> np.ndarray:
    return ranker.predict(people.X, qid=people.qid, sensitive_features=people.group)


def chosen(fit, values, train: People) -> tuple[Scores, float]:
    """What is fitted with the value of the largest tau with the twins, of those that lose at most `MAX_LOSS` of NDCG.

    Both are measured on a fifth of the queries, on which none of them was fitted, and the loss from the best of them.
    """
    ids = np.unique(train.qid)
    held_out = np.isin(train.qid, ids[-len(ids) // 5 :])
    rest, validation = train.at(~held_out), train.at(held_out)
    ndcg, tau = np.array([judged(fit(value, rest).predict, validation) for value in values]).T
    best = values[int(np.argmax(np.where(ndcg >= ndcg.max() - MAX_LOSS, tau, -1)))]
    fitted = fit(best, train)
    return lambda people: fitted.predict(people.X), best


def judged(predict, people: People) -> tuple[float, float]:
    """NDCG by the labels, and tau with the twins."""
    scores = predict(people.X)
    return mean_ndcg(people.y, scores, people.qid), kendall_tau_score(scores, predict(people.twin), qid=people.qid)


def less_group_mean(values, train: People, group=None):
    """Values less the mean of the training values of each row's group, plus that of all (fairlearn's CorrelationRemover).

    `values` are those of the training rows where no `group` is given.
    """
    source = values if group is None else train.X
    means = np.array([source[train.group == g].mean(axis=0) for g in (0, 1)])
    return values - means[train.group if group is None else group] + source.mean(axis=0)


def all_of(X, group):
    """Everybody in one group, the last column."""
    X[:, -1] = group
    return X


def weights_of(train: People) -> list[float]:
    share = float(train.group.mean())
    return [0.0, 1 - share, share]
