"""utility_score: against all rankings, trec_eval's and ir_measures' record, and the metrics that it generalises."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from metrics_under_test import policy_deterministic, policy_plackett_luce
from sklearn.exceptions import UndefinedMetricWarning
from utilities_under_test import TABLES, UTILITIES, WHOLE

from skfairrank.metrics import ndcg_score, stochastic_ndcg_score, utility_score
from skfairrank.plackett_luce import rank_probabilities
from skfairrank.policies import Deterministic, PlackettLuce, RankProbabilities
from skfairrank.utilities import ERR, NDCG, RBP, AveragePrecision, PrecisionAtK, RecallAtK, ReciprocalRank

pytestmark = pytest.mark.once

BY_POSITION = [name for name in TABLES if not name.startswith(("ERR", "reciprocal"))]
CASCADES = [name for name in TABLES if name not in BY_POSITION]


def queries(seed, sizes=(5, 1, 4, 6, 3)):
    """Interleaved rows of several queries, with ids in no order; each query has a relevant row."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat([8, 3, 11, 0, 5], sizes))
    y, s = rng.integers(0, 5, len(qid)).astype(float), rng.normal(size=len(qid))
    for q in set(qid.tolist()):
        y[np.flatnonzero(qid == q)[0]] = 2.0
    return y, s, qid


def by_counting(y, s, qid, worth, policy):
    """The worth of every ranking of a query, weighted with its probability."""
    rows = [np.flatnonzero(qid == q) for q in sorted(set(qid.tolist()))]
    return [sum(p * worth(y[r][list(order)]) for order, p in policy(s[r])) for r in rows]


@pytest.mark.parametrize("name", TABLES)
def test_the_exact_expectation_is_the_sum_over_all_rankings(name):
    y, s, qid = queries(0)
    utility, worth = UTILITIES[name]
    found = utility_score(y, s, qid=qid, utility=utility, n_samples="exact", reduce=None)
    np.testing.assert_allclose(found, by_counting(y, s, qid, worth, policy_plackett_luce), atol=1e-10)
    cold = utility_score(y, s, qid=qid, utility=utility, policy=PlackettLuce(0.5, n_samples="exact"), reduce=None)
    np.testing.assert_allclose(cold, by_counting(y, 2 * s, qid, worth, policy_plackett_luce), atol=1e-10)


@pytest.mark.parametrize("name", UTILITIES)
def test_sampled_rankings_have_the_right_expectation(name):
    """The worth of a ranking is between 0 and 20 (DCG), so that 40,000 of them are off by less than a hundredth of its spread."""
    y, s, qid = queries(1)
    utility, worth = UTILITIES[name]
    wanted = by_counting(y, s, qid, worth, policy_plackett_luce)
    found = utility_score(y, s, qid=qid, utility=utility, n_samples=40_000, random_state=0, reduce=None)
    scale = max(worth(y[qid == 0][list(order)]) for order in itertools.permutations(range(6)))
    np.testing.assert_allclose(found, wanted, atol=0.01 * scale)
    again = utility_score(y, s, qid=qid, utility=utility, n_samples=40_000, random_state=0)
    assert again == pytest.approx(found.mean(), abs=1e-12)


@pytest.mark.parametrize("name", UTILITIES)
def test_the_list_by_descending_scores(name):
    y, s, qid = queries(2)
    utility, worth = UTILITIES[name]
    wanted = by_counting(y, s, qid, worth, lambda s: [(np.argsort(-s), 1.0)])
    found = utility_score(y, s, qid=qid, utility=utility, policy="deterministic", reduce=None)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    cold = utility_score(y, 1e9 * s, qid=qid, utility=utility, n_samples=9, random_state=0, reduce=None)
    np.testing.assert_allclose(cold, wanted, atol=1e-12)


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("name", TABLES)
def test_tied_rows_share_the_mean_over_their_orders(name, levels):
    y, s, qid = queries(3)
    s = np.random.default_rng(levels).integers(0, levels, len(s)).astype(float)
    utility, worth = UTILITIES[name]
    found = utility_score(y, s, qid=qid, utility=utility, policy="deterministic", reduce=None)
    np.testing.assert_allclose(found, by_counting(y, s, qid, worth, policy_deterministic), atol=1e-12)


@pytest.mark.parametrize("name", WHOLE)
def test_tied_rows_stand_in_row_order_where_no_table_says_what_a_ranking_is_worth(name):
    y, s, qid = queries(4)
    s = np.round(s)
    utility, worth = UTILITIES[name]
    found = utility_score(y, s, qid=qid, utility=utility, policy="deterministic", reduce=None)
    wanted = by_counting(y, s, qid, worth, lambda s: [(np.argsort(-s, kind="stable"), 1.0)])
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"k": 3}, {"k": 2, "gain": "linear"}, {"k": 99}], ids=str)
def test_ndcg_score_and_stochastic_ndcg_score_are_special_cases(settings):
    y, s, qid = queries(5)
    s, weight = np.round(s, 1), {q: q + 1 for q in (8, 3, 11, 0, 5)}
    y[qid == 3] = 0.0  # a query without a relevant row
    utility, kw = NDCG(**settings), {"qid": qid, "replace_undefined_by": 0.25}
    for weights in ({}, {"query_weight": weight}, {"reduce": None}):
        np.testing.assert_allclose(
            utility_score(y, s, utility=utility, policy="deterministic", **kw, **weights),
            ndcg_score(y, s, **settings, **kw, **weights),
            rtol=1e-13,
        )
        np.testing.assert_allclose(
            utility_score(y, s, utility=utility, n_samples=20, random_state=3, **kw, **weights),
            stochastic_ndcg_score(y, s, n_samples=20, random_state=3, **settings, **kw, **weights),
            rtol=1e-13,
        )


@pytest.mark.parametrize("name", BY_POSITION)
def test_given_probabilities_of_ranks_say_what_is_worth_by_position(name):
    y, s, qid = queries(6)
    utility, worth = UTILITIES[name]
    given = RankProbabilities(rank_probabilities(s, qid=qid))
    found = utility_score(y, None, qid=qid, utility=utility, policy=given, reduce=None)
    np.testing.assert_allclose(found, by_counting(y, s, qid, worth, policy_plackett_luce), atol=1e-10)


@pytest.mark.parametrize("name", [*CASCADES, *WHOLE])
def test_given_probabilities_of_ranks_say_nothing_of_what_stands_before(name):
    y, s, qid = queries(6)
    with pytest.raises(TypeError, match="rows before it.*plackett_luce"):
        utility_score(
            y, None, qid=qid, utility=UTILITIES[name][0], policy=RankProbabilities(rank_probabilities(s, qid=qid))
        )


@pytest.mark.parametrize("utility", ["ndcg", "recall", "average_precision"])
def test_what_divides_by_what_could_be_found_is_undefined_without_it(utility):
    """Recall of nothing is 0/0."""
    y, s, qid = [0, 0, 1, 0], [1, 2, 4, 3], ["b", "b", "a", "a"]
    kw = {"qid": qid, "utility": utility, "policy": "deterministic"}
    with pytest.warns(UndefinedMetricWarning, match="utility_score is undefined in 1 of 2 queries"):
        assert utility_score(y, s, **kw) == 1.0
    assert utility_score(y, s, **kw, replace_undefined_by=0.0) == 0.5
    np.testing.assert_array_equal(utility_score(y, s, **kw, reduce=None), [1.0, np.nan])


@pytest.mark.parametrize("utility", ["dcg", "precision", "rbp", "reciprocal_rank", "err"])
def test_sums_are_zero_without_a_relevant_row(utility):
    y, s, qid = [0, 0, 1, 0], [1, 2, 4, 3], ["b", "b", "a", "a"]
    for kw in ({"policy": "deterministic"}, {"random_state": 0}, {"n_samples": "exact"}):
        values = utility_score(y, s, qid=qid, utility=utility, reduce=None, **kw)
        assert values[1] == 0.0 and values[0] > 0
        assert utility_score(y, s, qid=qid, utility=utility, **kw) == values.mean()


def test_it_is_said_where_every_order_is_worth_the_same():
    with pytest.warns(UndefinedMetricWarning, match="measures nothing here.*every order is as good as any"):
        utility_score([1, 1, 2], [3, 2, 1], qid=[0, 0, 1], utility="dcg")


def test_blocks_of_queries_are_sampled_apart():
    """Average precision is asked of blocks of some 16,000 rows; of two rows, one relevant, it is 3/4 on average."""
    n = 20_000
    y, s, qid = np.tile([1.0, 0.0], n), np.zeros(2 * n), np.repeat(np.arange(n), 2)
    values = utility_score(y, s, qid=qid, utility="average_precision", n_samples=4, random_state=0, reduce=None)
    assert len(values) == n and abs(values.mean() - 0.75) < 5 * 0.25 / np.sqrt(4 * n)
    assert not np.array_equal(values[: n // 2], values[n // 2 :])


@pytest.mark.parametrize(
    "kw, error, message",
    [
        ({"utility": "mrr"}, TypeError, "average_precision"),
        ({"utility": NDCG}, TypeError, "utility"),
        ({"utility": PrecisionAtK(k=0)}, ValueError, "'k' parameter"),
        ({"utility": AveragePrecision(k=0.5)}, ValueError, "'k' parameter"),
        ({"utility": "rbp", "policy": "best"}, ValueError, "policy"),
        ({"utility": "err", "n_samples": 0}, ValueError, "n_samples"),
        ({"utility": "average_precision", "n_samples": 0}, ValueError, "n_samples"),
        ({"utility": "average_precision", "n_samples": "exact"}, ValueError, r"AveragePrecision.*n_samples=100"),
        ({"utility": "err", "policy": Deterministic(), "n_samples": 7}, ValueError, "n_samples=7"),
        ({"utility": ERR(max_relevance=1)}, ValueError, "relevance of"),
    ],
    ids=str,
)
def test_what_is_refused(kw, error, message):
    y, s, qid = queries(9)
    with pytest.raises(error, match=message):
        utility_score(y, s, qid=qid, **kw)


# What trec_eval and others have said, recorded by data/record_trec_eval.py.

RECORD = json.loads((Path(__file__).parent / "data" / "trec_eval.json").read_text(encoding="utf-8"))
#: Utility here, and the rule by which the program sorts equal scores: descending or ascending documents, or the given order.
MEASURES = {
    **{f"P@{k}": (PrecisionAtK(k), "descending") for k in (1, 5, 20)},
    **{f"R@{k}": (RecallAtK(k), "descending") for k in (1, 5, 20)},
    "nDCG": (NDCG(gain="linear"), "descending"),
    **{f"nDCG@{k}": (NDCG(k, gain="linear"), "descending") for k in (3, 20)},
    "RR": (ReciprocalRank(), "descending"),
    "RR@2": (ReciprocalRank(k=2), "ascending"),  # MS MARCO's script
    "AP": (AveragePrecision(), "descending"),
    "AP@3": (AveragePrecision(k=3), "descending"),
    **{f"ERR@{k}": (ERR(max_relevance=4, k=k), "descending") for k in (1, 5, 20)},  # gdeval
    **{f"RBP(p={p},rel=1)": (RBP(p=p), "given") for p in (0.5, 0.8)},  # cwl_eval
}


@pytest.mark.parametrize("name", RECORD["values"])
def test_trec_eval_has_said_the_same(name):
    """Once ties are broken by its rule. Its value of a query without a relevant row is 0: ``replace_undefined_by=0``."""
    utility, rule = MEASURES[name]
    qid, documents, y, s = (np.array(column) for column in zip(*RECORD["rows"], strict=True))
    by_document = {"given": np.arange(len(qid)), "ascending": np.argsort(np.argsort(documents))}
    by_document["descending"] = -by_document["ascending"]
    order = np.lexsort((by_document[rule], -s))
    place = np.empty(len(s))
    place[order] = np.arange(len(s))
    kw = {"qid": qid, "utility": utility, "policy": "deterministic", "replace_undefined_by": 0.0}
    found = utility_score(y, -place, reduce=None, **kw)
    wanted = [RECORD["values"][name][q] for q in sorted(set(qid.tolist()))]
    np.testing.assert_allclose(found, wanted, atol=6e-6 if name.startswith("ERR") else 1e-9)  # gdeval prints 5 digits
    assert utility_score(y, -place, **kw) == pytest.approx(np.mean(wanted), abs=6e-6)
