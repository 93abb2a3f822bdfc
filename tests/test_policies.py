"""Every metric under every policy, with cut-offs, weights and values per query: by counting all rankings."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from metrics_under_test import (
    GROUP_DISPARITIES,
    METRICS,
    OF_POLICY,
    STOCHASTIC,
    Data,
    policy_deterministic,
    policy_plackett_luce,
    random_data,
)

from skfairrank.metrics import (
    group_exposure_difference,
    ndcg_score,
)
from skfairrank.policies import Deterministic, PlackettLuce, RankProbabilities

pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")]
every_metric = pytest.mark.parametrize("name", METRICS)
every_metric_of_a_policy = pytest.mark.parametrize("name", OF_POLICY)

SIZES = [1, 2, 3, 5, 4, 4, 5, 2]


def mixture(rng, qid):
    """A policy of three rankings for each query, as lists of (order, probability) and as a table of rank probabilities."""
    P, of_query = np.zeros((len(qid), max(SIZES))), {}
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        of_query[q] = [(rng.permutation(len(rows)).tolist(), p) for p in rng.dirichlet(np.ones(3))]
        for order, p in of_query[q]:
            P[rows[order], np.arange(len(rows))] += p
    return of_query, P


POLICIES = {
    "deterministic": (lambda P: {"policy": Deterministic()}, lambda s, of_query: policy_deterministic(s)),
    "plackett_luce": (
        lambda P: {"policy": "plackett_luce", "n_samples": "exact"},
        lambda s, of_query: policy_plackett_luce(s),
    ),
    "cool": (lambda P: {"policy": PlackettLuce(0.3, "exact")}, lambda s, of_query: policy_plackett_luce(s / 0.3)),
    "hot": (lambda P: {"policy": PlackettLuce(4.0, "exact")}, lambda s, of_query: policy_plackett_luce(s / 4.0)),
    "RankProbabilities": (
        lambda P: {"policy": RankProbabilities(np.pad(P, ((0, 0), (0, 4))).tolist())},
        lambda s, of_query: of_query,
    ),
}


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("policy", POLICIES)
@every_metric_of_a_policy
def test_values_of_queries_are_means_over_all_rankings(name, policy, k):
    """Three groups, interleaved rows, tied scores and relevances."""
    rng = np.random.default_rng(len(name) + len(policy))
    data = random_data(rng, SIZES, n_groups=3)
    of_query, P = mixture(rng, data.qid)
    settings, rankings = POLICIES[policy]
    expected = []
    for q in np.unique(data.qid):
        query = data.take(data.qid == q)
        expected.append(OF_POLICY[name](query, rankings(query.s, of_query[q]), k))
    cut = {} if name.endswith("at_2") else {"k": k}
    got = METRICS[name](data, reduce=None, **settings(P), **cut)
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", STOCHASTIC)
def test_sampled_policies_by_name_and_as_objects_give_the_same_bits(name):
    data = random_data(np.random.default_rng(2), SIZES)
    by_name = METRICS[name](data, n_samples=7, random_state=3)
    if name == "stochastic_difference":  # names its policy itself
        kw = {"qid": data.qid, "sensitive_features": data.g}
        assert group_exposure_difference(data.s, policy=PlackettLuce(1, 7, 3), **kw) == by_name
    else:
        assert METRICS[name](data, policy=PlackettLuce(n_samples=7, random_state=3)) == by_name


# Temperature.


@pytest.mark.parametrize("n_samples", ["exact", 3])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e6, 1e149])
@pytest.mark.parametrize("temperature", [1e-15, 1e-100, 1e-310])
def test_cold_policies_sort_and_overflow_nowhere(temperature, size, n_samples):
    """Gaps of scores are large in units of these temperatures, and more than any number where they are 1e-310."""
    y, qid = np.tile([3.0, 2.0, 1.0, 0.0], 2), np.repeat([0, 1], 4)
    s = np.r_[[1.0, 2.0, 0.5, -1.0], [1e-3, 2e-3, -1e-3, 0.0]] * size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = PlackettLuce(temperature, n_samples, random_state=0)
        got = ndcg_score(y, s, qid=qid, policy=policy, reduce=None)
    np.testing.assert_allclose(got, ndcg_score(y, s, qid=qid, reduce=None), rtol=1e-12)


def test_one_query_of_huge_scores_leaves_the_others_their_temperature():
    y, s, qid = [1, 0, 1, 0], [1e140, 0, np.log(3) * 1e-20, 0], [0, 0, 1, 1]
    got = ndcg_score(y, s, qid=qid, policy=PlackettLuce(1e-20, "exact"), reduce=None)
    np.testing.assert_allclose(got, [1.0, 0.75 + 0.25 / np.log2(3)], rtol=1e-12)


def test_hot_policies_are_chance():
    data = random_data(np.random.default_rng(4), SIZES)
    for name in OF_POLICY:
        chance = METRICS[name](replace(data, s=np.zeros(len(data.s))), policy=PlackettLuce(n_samples="exact"))
        for temperature in (1e12, 1e300):
            got = METRICS[name](data, policy=PlackettLuce(temperature, "exact"))
            assert got == pytest.approx(chance, rel=1e-9, abs=1e-11)


# Weights of queries.


@every_metric
def test_a_query_of_weight_two_counts_as_two_queries(name):
    """As a data set in which each query stands as often as it weighs, under ids of its own."""
    rng = np.random.default_rng(5)
    data = random_data(rng, SIZES, ids=np.arange(8))
    weights = np.array([2, 0, 1, 3, 1, 0, 2, 1])
    copies = [
        replace(data.take(data.qid == q), qid=np.full((data.qid == q).sum(), 10 * q + i))
        for q in range(8)
        for i in range(weights[q])
    ]
    repeated = Data(*(np.concatenate([getattr(each, key) for each in copies]) for key in ("y", "s", "s2", "g", "qid")))
    exact = {"n_samples": "exact"} if name in STOCHASTIC else {}
    expected = METRICS[name](repeated, **exact)
    of_id = {9: 5.0, **{q: float(w) for q, w in enumerate(weights)}}
    for query_weight in (weights[data.qid], weights.tolist(), of_id, 1e-300 * weights, 1e300 * weights):
        got = METRICS[name](data, query_weight=query_weight, **exact)
        assert got == pytest.approx(expected, rel=1e-12), query_weight


@every_metric
def test_weights_make_no_difference_to_single_values(name):
    data = random_data(np.random.default_rng(7), SIZES)
    with pytest.raises(ValueError, match="query_weight makes no difference.*reduce=None.*leave it out"):
        METRICS[name](data, query_weight=np.ones(len(data.y)), reduce=None)


def test_queries_that_weigh_nothing_are_not_counted_in_warnings():
    y, s, qid = [1, 0, 0, 0, 0, 0], np.arange(6.0), [0, 0, 1, 1, 2, 2]
    with pytest.warns(match="ndcg_score is undefined in 1 of 2 queries"):
        ndcg_score(y, s, qid=qid, query_weight=[1, 1, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ndcg_score(y, s, qid=qid, query_weight=[1, 0, 0]) == pytest.approx(1 / np.log2(3))
    with pytest.warns(match="2 of 2"):
        assert np.isnan(ndcg_score(y, s, qid=qid, query_weight=[0, 1, 1]))


# More than two groups.


@pytest.mark.parametrize("name", GROUP_DISPARITIES)
def test_a_third_group_elsewhere_changes_no_bit(name):
    rng = np.random.default_rng(10)
    data = random_data(rng, [5] * 20, ids=np.arange(20))
    drawn = {"random_state": 0} if name in STOCHASTIC else {}
    g = np.where(data.qid == 19, "2", data.g.astype(str))
    two, three = (METRICS[name](replace(data, g=labels), reduce=None, **drawn) for labels in (data.g, g))
    np.testing.assert_array_equal(two[:19], three[:19])
    assert three[19] == 0.0  # one group


# What is refused.


class BottomUp:
    """The list by ascending scores, of scores without ties."""

    def expected_discounts(self, s, queries, discount):
        out = np.empty(len(s))
        for lo, hi in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
            out[lo + np.argsort(s[lo:hi])] = discount[: hi - lo]
        return out


@every_metric_of_a_policy
def test_a_policy_of_ones_own(name):
    data = random_data(np.random.default_rng(11), SIZES, ties=False)
    upside_down = METRICS[name](replace(data, s=-data.s), policy="deterministic")
    assert METRICS[name](data, policy=BottomUp()) == pytest.approx(upside_down, rel=1e-12)
    with pytest.raises(ValueError, match=r"s is missing \(None\)"):
        METRICS[name](replace(data, s=None), policy=BottomUp())


@every_metric_of_a_policy
@pytest.mark.parametrize("wrong", [{"n_samples": 50}, {"random_state": 0}, {"n_samples": "exact"}])
def test_settings_of_a_name_are_refused_beside_an_object(name, wrong):
    data = random_data(np.random.default_rng(12), SIZES)
    with pytest.raises(
        ValueError, match=r"belong to policy='plackett_luce'.*leave them out, or give them to the policy"
    ):
        METRICS[name](data, policy=PlackettLuce(), **wrong)


@pytest.mark.parametrize(
    "change, fault",
    [
        ((3, 1, np.nan), "negative or missing"),
        ((3, 1, np.inf), "row that does not sum to one"),
        ((3, 1, -0.5), "negative or missing"),
        ((3, 1, 0.4), "row that does not sum to one"),
        ((2, [0, 1], [1.0, 0.0]), "rank whose probabilities do not sum to one"),
        ((2, [1, 2], [0.0, 0.5]), "rank whose probabilities do not sum to one"),  # a rank beyond the query
    ],
)
def test_given_probabilities_are_checked_and_the_query_named(change, fault):
    qid, P = ["b", "a", "b", "a", "a"], np.zeros((5, 3))
    P[[0, 2], :2], P[[1, 3, 4]] = 0.5, 1 / 3
    row, columns, values = change
    query = qid[row]
    kw = {"qid": qid, "sensitive_features": [0, 0, 1, 1, 1]}
    assert np.isfinite(group_exposure_difference(None, policy=RankProbabilities(P + 1e-9), **kw))
    P[row, columns] = values
    with pytest.raises(ValueError, match=rf"P of query '{query}', of {qid.count(query)} rows, has a {fault}"):
        group_exposure_difference(None, policy=RankProbabilities(P), **kw)


@pytest.mark.parametrize("shape", [(4, 3), (5, 2)])
def test_given_probabilities_of_other_rows_are_refused(shape):
    with pytest.raises(ValueError, match=rf"P has shape \({shape[0]}, {shape[1]}\) for 5 rows in queries of up to 3"):
        ndcg_score([1, 0, 1, 0, 0], None, qid=[0, 0, 1, 1, 1], policy=RankProbabilities(np.ones(shape)))


def test_bad_settings_are_refused():
    for wrong in (0, -1.0, np.nan, np.inf, "1", None, True):
        with pytest.raises(ValueError, match=r"temperature=.*above 0"):
            PlackettLuce(wrong)
    for wrong in (0, 2.5, "all", True):
        with pytest.raises(ValueError, match="n_samples="):
            PlackettLuce(n_samples=wrong)
    for wrong in ([0.5, 0.5], [["a"]], 3.0, None):
        with pytest.raises(ValueError):
            RankProbabilities(wrong)
