"""Metrics of group shares and of attention, by their published definitions: loops over prefixes, items and all permutations."""

import numpy as np
import pytest
from metrics_under_test import policy_plackett_luce, random_data
from scipy.spatial.distance import jensenshannon
from scipy.special import rel_entr
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank.metrics import (
    attention_inequity,
    attention_weighted_rank_fairness,
    expected_exposure_loss,
    group_ndkl,
    group_skew,
)
from skfairrank.plackett_luce import rank_probabilities
from skfairrank.policies import RankProbabilities

pytestmark = pytest.mark.once

TARGET = {"a": 0.5, "b": 0.2, "c": 0.3}


def shares(groups, labels="abc"):
    return np.array([np.mean(groups == label) for label in labels])


def order_of(s):
    return np.argsort(-s, kind="stable")


def ndkl_by_loop(s, g, target):
    g = g[order_of(s)]
    discount = 1 / np.log2(np.arange(len(g)) + 2)
    wanted = shares(g) if target is None else np.array(list(target.values()))
    return sum(d * rel_entr(shares(g[: i + 1]), wanted).sum() for i, d in enumerate(discount)) / discount.sum()


def skew_by_loop(s, g, target, k, which):
    wanted = shares(g) if target is None else np.array(list(target.values()))
    top = shares(g[order_of(s)][:k])
    each = [np.log(p / t) if p > 0 else -np.inf for p, t in zip(top, wanted, strict=True) if t > 0]
    return {"max": max, "min": min}[which](each)


def awrf_by_loop(s, g, target, distance, patience):
    wanted = shares(g) if target is None else np.array(list(target.values()))
    n = len(g)
    attention = patience ** np.arange(n) if patience else 1 / np.log2(np.arange(n) + 2)
    got = np.array([attention[g[order_of(s)] == label].sum() for label in "abc"]) / attention.sum()
    return 1 - (
        jensenshannon(got, wanted, base=2) ** 2 if distance == "jensen_shannon" else np.abs(got - wanted).sum() / 2
    )


@pytest.fixture
def data():
    return random_data(np.random.default_rng(4), [2, 5, 9, 3, 14, 6], n_groups=3, ties=False)


CASES = {
    "ndkl": (group_ndkl, {}, lambda s, g, t: ndkl_by_loop(s, g, t)),
    "max skew": (group_skew, {"k": 3}, lambda s, g, t: skew_by_loop(s, g, t, 3, "max")),
    "min skew": (group_skew, {"k": 4, "which": "min"}, lambda s, g, t: skew_by_loop(s, g, t, 4, "min")),
    "awrf": (attention_weighted_rank_fairness, {}, lambda s, g, t: awrf_by_loop(s, g, t, "jensen_shannon", None)),
    "geometric awrf": (
        attention_weighted_rank_fairness,
        {"patience": 0.7, "distance": "absolute"},
        lambda s, g, t: awrf_by_loop(s, g, t, "absolute", 0.7),
    ),
}


@pytest.mark.parametrize("target", [None, TARGET])
@pytest.mark.parametrize("case", CASES)
def test_group_metrics_are_those_of_loops_over_prefixes(data, case, target):
    metric, kw, by_loop = CASES[case]
    each = metric(data.s, qid=data.qid, sensitive_features=data.g, target=target, reduce=None, **kw)
    rows = [np.flatnonzero(data.qid == q) for q in np.unique(data.qid)]
    expected = [by_loop(data.s[r], data.g[r], target) for r in rows]
    if target is None:
        expected = [np.nan if len(set(data.g[r])) == 1 else x for r, x in zip(rows, expected, strict=True)]
    np.testing.assert_allclose(each, expected, atol=1e-12)
    mean = metric(data.s, qid=data.qid, sensitive_features=data.g, target=target, **kw)
    assert mean == pytest.approx(np.nanmean(each))


@pytest.mark.parametrize("case", CASES)
def test_group_metrics_of_a_policy_take_expected_shares(case):
    """One query under Plackett-Luce, exactly: with the probabilities of ranks from all permutations the value is the same."""
    metric, kw, _ = CASES[case]
    s, g = np.array([0.3, 1.0, -0.2, 0.0]), [0, 1, 1, 0]
    P = np.zeros((4, 4))
    for order, p in policy_plackett_luce(s):
        P[order, range(4)] += p
    common = {"qid": [5] * 4, "sensitive_features": g, **kw}
    exact = metric(s, policy="plackett_luce", n_samples="exact", **common)
    assert exact == pytest.approx(metric(None, policy=RankProbabilities(P), **common), rel=1e-10)
    rng = np.random.default_rng(0)
    sampled = metric(s, policy="plackett_luce", n_samples=2000, random_state=rng, **common)
    assert sampled == pytest.approx(exact, abs=0.05)


def test_by_hand():
    """Four items, two groups, A A B B: D_1 = D_2 = (1, 0), D_3 = (2/3, 1/3), D_4 is the target."""
    d = 1 / np.log2([2, 3, 4, 5])
    third = 2 / 3 * np.log(4 / 3) + 1 / 3 * np.log(2 / 3)
    kw = {"qid": ["q"] * 4, "sensitive_features": list("AABB")}
    assert group_ndkl([4, 3, 2, 1], **kw) == pytest.approx(((d[0] + d[1]) * np.log(2) + d[2] * third) / d.sum())
    assert group_ndkl([4, 3, 2, 1], k=2, **kw) == pytest.approx(np.log(2))
    assert group_skew([4, 3, 2, 1], k=2, **kw) == pytest.approx(np.log(2))
    assert group_skew([4, 3, 2, 1], k=2, which="min", **kw) == -np.inf
    assert group_skew([4, 3, 2, 1], k=4, **kw) == group_skew([4, 3, 2, 1], k=99, **kw) == 0.0
    assert attention_weighted_rank_fairness([0, 0, 0, 0], **kw) == 1.0  # ties share


def test_queries_with_one_group_are_left_out():
    kw = {"qid": [0, 0, 1, 1], "sensitive_features": list("ABAA")}
    assert group_ndkl([2, 1, 2, 1], **kw) == group_ndkl([2, 1], qid=[0, 0], sensitive_features=["A", "B"])
    with pytest.warns(UndefinedMetricWarning, match="all of 1 queries"):
        assert np.isnan(group_skew([2, 1], qid=[0, 0], sensitive_features=["A", "A"]))


def test_group_metrics_say_what_they_need():
    kw = {"qid": [0, 0], "sensitive_features": ["A", "B"]}
    with pytest.raises(ValueError, match="which='most'"):
        group_skew([1, 2], which="most", **kw)
    with pytest.raises(ValueError, match="k=0"):
        group_skew([1, 2], k=0, **kw)
    for target in ({"A": 1.0}, {"A": 0.5, "B": 0.6}, {"A": 1.0, "B": 0.0}):
        with pytest.raises(ValueError, match="target=.*'A', 'B'"):
            group_ndkl([1, 2], target=target, **kw)
    with pytest.raises(TypeError, match="target is a list"):
        group_ndkl([1, 2], target=[0.5, 0.5], **kw)
    with pytest.raises(ValueError, match="distance='euclid'"):
        attention_weighted_rank_fairness([1, 2], distance="euclid", **kw)
    with pytest.raises(ValueError, match="patience=1.5"):
        attention_weighted_rank_fairness([1, 2], patience=1.5, **kw)


# Expected exposure


@pytest.mark.parametrize("patience", [0.5, 0.9, None])
@pytest.mark.parametrize("y", [[1.0, 0, 0, 1], [2.0, 1, 1, 0], [0.0, 0, 0, 0], [3.0, 2, 1, 0]])
def test_expected_exposure_loss_by_all_permutations(y, patience):
    """The ideal policy draws all ideal lists equally often; the other is Plackett-Luce."""
    y, s, n = np.array(y), np.array([0.3, 1.0, -0.2, 0.0]), 4
    table = patience ** np.arange(n) if patience else 1 / np.log2(np.arange(n) + 2)

    def exposure(policy):
        out = np.zeros(n)
        for order, p in policy:
            out[order] += p * table
        return out

    every = policy_plackett_luce(s)
    ideal = [order for order, _ in every if (np.diff(y[order]) <= 0).all()]
    got, wanted = exposure(every), exposure([(order, 1 / len(ideal)) for order in ideal])
    kw = {"qid": [0] * n, "patience": patience, "n_samples": "exact"}
    loss, disparity, relevance = (
        expected_exposure_loss(y, s, part=p, **kw) for p in ("loss", "disparity", "relevance")
    )
    assert loss == pytest.approx(np.sum((got - wanted) ** 2), rel=1e-9)
    assert disparity == pytest.approx(got @ got, rel=1e-9) and relevance == pytest.approx(got @ wanted, rel=1e-9)
    assert loss == pytest.approx(disparity - 2 * relevance + wanted @ wanted, abs=1e-12)
    given = RankProbabilities(rank_probabilities(s, qid=[0] * n))
    assert expected_exposure_loss(y, None, qid=[0] * n, patience=patience, policy=given) == pytest.approx(loss)


def test_ideal_exposure_of_binary_relevance_in_closed_form():
    """Diaz et al.: each of m relevant items should get (1 - g^m) / (m (1 - g)), the others (g^m - g^n) / ((n - m) (1 - g))."""
    n, m, g = 7, 3, 0.5
    y, s = np.r_[np.ones(m), np.zeros(n - m)], -np.arange(n)
    wanted = np.where(y > 0, (1 - g**m) / (m * (1 - g)), (g**m - g**n) / ((n - m) * (1 - g)))
    got = expected_exposure_loss(y, s, qid=[0] * n, policy="deterministic", part="relevance")
    assert got == pytest.approx(wanted @ g ** np.arange(n))


# A history


def inequity_by_loop(y, s, qid, items, patience, weight):
    got, total = dict.fromkeys(items, 0.0), 0.0
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        attention = patience ** np.arange(len(rows))
        attention, merit = attention / attention.sum(), y[rows] / y[rows].sum()
        for a, row in zip(attention, rows[order_of(s[rows])], strict=True):
            got[items[row]] += weight[q] * a
        for m, row in zip(merit, rows, strict=True):
            got[items[row]] -= weight[q] * m
        total += weight[q]
    return np.array([got[item] for item in sorted(got)]), total


def test_inequity_over_a_history_by_a_loop(data):
    rng = np.random.default_rng(0)
    y, items = data.y + 0.5, np.array([f"item {j}" for j in rng.integers(0, 12, len(data.y))])
    weight = dict(zip(np.unique(data.qid), rng.exponential(size=6), strict=True))
    each, total = inequity_by_loop(y, data.s, data.qid, items, 0.6, weight)
    kw = {"qid": data.qid, "items": items, "patience": 0.6, "query_weight": weight}
    np.testing.assert_allclose(attention_inequity(y, data.s, reduce=None, **kw), each, atol=1e-12)
    assert attention_inequity(y, data.s, reduce="sum", **kw) == pytest.approx(np.abs(each).sum())
    assert attention_inequity(y, data.s, **kw) == pytest.approx(np.abs(each).sum() / total)


def test_a_history_amortises():
    """Items of merit 2 : 1 : 1 at the only rank that is seen: fair after four queries in which they are first 2 : 1 : 1 times."""
    y, qid, items = np.tile([2, 1, 1], 4), np.repeat(np.arange(4), 3), np.tile(list("abc"), 4)
    s = np.zeros(12)
    s[[0, 3, 7, 11]] = 1.0
    assert attention_inequity(y, s, qid=qid, items=items, k=1) == pytest.approx(0.0, abs=1e-12)
    # Without items each list stands alone: |1 - 1/2| + 1/4 + 1/4 twice, and |1 - 1/4| + 1/2 + 1/4 twice.
    assert attention_inequity(y, s, qid=qid, k=1, reduce="sum") == pytest.approx(5.0)
    assert attention_inequity(y, s, qid=qid, k=1, reduce=None).shape == (12,)


def test_a_query_without_merit_is_left_out_of_the_history():
    kw = {"items": ["a", "b", "a", "b"], "k": 1}
    with pytest.warns(UndefinedMetricWarning, match="1 of 2 queries"):
        got = attention_inequity([1, 1, 0, 0], [2, 1, 2, 1], qid=[0, 0, 1, 1], **kw)
    assert got == attention_inequity([1, 1], [2, 1], qid=[0, 0], items=["a", "b"], k=1) == 1.0
    with pytest.raises(ValueError, match="reduce='max'"):
        attention_inequity([1, 1], [2, 1], qid=[0, 0], reduce="max")
    with pytest.raises(ValueError, match="items has 1 entries"):
        attention_inequity([1, 1], [2, 1], qid=[0, 0], items=["a"])
    with pytest.raises(ValueError, match="part='all'"):
        expected_exposure_loss([1, 1], [2, 1], qid=[0, 0], part="all")
