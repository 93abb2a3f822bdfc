"""Metrics beside scikit-learn's `ndcg_score`, query by query and on a whole matrix, and splitting many small queries."""

from __future__ import annotations

import warnings
from functools import partial

from _tools import arguments, header, ratio, side_by_side, table, time_text

# isort: split
import numpy as np
from _references import ndcg_by_loop
from sklearn.metrics import ndcg_score as sklearn_ndcg_score
from sklearn.model_selection import GroupKFold

from skfairrank.metrics import (
    group_exposure_disparity,
    individual_exposure_disparity,
    kendall_tau_score,
    make_ranking_scorer,
    ndcg_score,
    stochastic_ndcg_score,
)
from skfairrank.model_selection import QueryKFold, QueryShuffleSplit, train_test_query_split


class Given:
    """An estimator whose scores are given."""

    def __init__(self, scores):
        self.scores = scores

    def predict(self, X):
        return self.scores


def relevant_queries(n_queries, n_items, rng):
    y = rng.integers(0, 3, (n_queries, n_items)).astype(float)
    y[:, 0] = 2
    return y.ravel(), rng.normal(size=y.size), np.repeat(np.arange(n_queries), n_items)


def main():
    quick = arguments(__doc__).quick
    warnings.simplefilter("ignore")
    rounds = 3 if quick else 5
    print(header())
    rng = np.random.default_rng(0)

    rows = []
    for n_queries, n_items in ((100, 10), (500, 20), (5000, 20)):
        y, scores, qid = relevant_queries(n_queries, n_items, rng)
        X, scorer, estimator = np.zeros((len(y), 1)), make_ranking_scorer(ndcg_score), Given(scores)
        if not np.isclose(scorer(estimator, X, y, qid=qid), ndcg_by_loop(y, scores, qid)):
            raise AssertionError("The scorer and the loop over scikit-learn differ.")
        s = side_by_side(
            {
                "loop": partial(ndcg_by_loop, y, scores, qid),
                "scorer": partial(scorer, estimator, X, y, qid=qid),
                "function": partial(ndcg_score, y, scores, qid=qid),
            },
            rounds=rounds,
        )
        rows.append(
            [
                f"{n_queries:,} queries of {n_items}",
                time_text(s["loop"]),
                time_text(s["scorer"]),
                time_text(s["function"]),
                ratio(s["loop"], s["scorer"]),
            ]
        )
    table(
        "NDCG, CPU time",
        ["data", "loop over scikit-learn's ndcg_score", "our scorer", "our ndcg_score", "ratio, scorer"],
        rows,
    )

    rows = []
    for n_queries, n_items in ((500, 10), (5000, 20), (1000, 100)):
        y, scores, qid = relevant_queries(n_queries, n_items, rng)
        for gain, labels in (("linear", y), ("exp2", 2.0**y - 1)):
            matrices = labels.reshape(-1, n_items), scores.reshape(-1, n_items)
            ours = partial(ndcg_score, y, scores, qid=qid, gain=gain)
            theirs = partial(sklearn_ndcg_score, *matrices, ignore_ties=True)
            if not np.isclose(ours(), theirs()):
                raise AssertionError("Sorted NDCG and scikit-learn's differ.")
            s = side_by_side({"theirs": theirs, "ours": ours}, rounds=rounds)
            rows.append(
                [
                    f"{n_queries:,} queries of {n_items}, {gain}",
                    time_text(s["theirs"]),
                    time_text(s["ours"]),
                    ratio(s["ours"], s["theirs"]),
                ]
            )
    table(
        "Sorted NDCG of a full matrix, CPU time",
        ["data", "scikit-learn's ndcg_score(ignore_ties=True)", "our ndcg_score", "ours / theirs"],
        rows,
    )

    y, scores, qid = relevant_queries(5000, 20, rng)
    small_y, small_scores, small_qid = relevant_queries(10_000, 10, rng)
    shuffled = rng.permutation(len(y))
    groups = rng.random(len(y)) < 0.5
    sampled = {"qid": qid, "n_samples": 100, "random_state": 0}
    s = side_by_side(
        {
            "ndcg_score": partial(ndcg_score, y, scores, qid=qid),
            "ndcg_score, shuffled rows": partial(ndcg_score, y[shuffled], scores[shuffled], qid=qid[shuffled]),
            "kendall_tau_score": partial(kendall_tau_score, scores, scores[::-1], qid=qid),
            "stochastic_ndcg_score, 100 samples": partial(stochastic_ndcg_score, y, scores, **sampled),
            "stochastic_ndcg_score, exact, 10,000 queries of 10": partial(
                stochastic_ndcg_score, small_y, small_scores, qid=small_qid, n_samples="exact"
            ),
            "group_exposure_disparity, 100 samples": partial(
                group_exposure_disparity, y, scores, sensitive_features=groups, **sampled
            ),
            "individual_exposure_disparity, 100 samples": partial(individual_exposure_disparity, y, scores, **sampled),
        },
        rounds=rounds,
    )
    table(
        "Metrics of 100,000 rows in 5,000 queries, CPU time",
        ["metric", "time", "a row"],
        [[name, time_text(t), time_text(np.median(t) / 1e5)] for name, t in s.items()],
    )

    qid = rng.permutation(90_000)
    X = np.zeros((90_000, 1))
    s = side_by_side(
        {
            "QueryKFold(5)": lambda: list(QueryKFold(5).split(X, qid=qid)),
            "QueryKFold(5, shuffle=True)": lambda: list(QueryKFold(5, shuffle=True, random_state=0).split(X, qid=qid)),
            "QueryShuffleSplit(5)": lambda: list(QueryShuffleSplit(5, random_state=0).split(X, qid=qid)),
            "train_test_query_split": lambda: train_test_query_split(X, qid=qid, random_state=0),
            "scikit-learn's GroupKFold(5)": lambda: list(GroupKFold(5).split(X, groups=qid)),
        },
        rounds=rounds,
    )
    table(
        "Splitting 90,000 queries of one row, CPU time",
        ["splitter", "time"],
        [[name, time_text(t)] for name, t in s.items()],
    )


if __name__ == "__main__":
    main()
