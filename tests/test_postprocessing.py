"""Re-rankers: against their papers' figures, published programs, definitions, and all permutations of small queries."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skfairrank import QueryRanker, QueryScaler, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.inspection import audit
from skfairrank.metrics import (
    group_exposure_difference,
    make_ranking_scorer,
    ndcg_score,
    ndcg_scorer,
    neg_group_exposure_difference_scorer,
    stochastic_ndcg_scorer,
    utility_score,
)
from skfairrank.model_selection import QueryKFold
from skfairrank.postprocessing import DetConstSortRanker, ExposureLPRanker, FairScoreSmoother, FAStarRanker
from skfairrank.postprocessing._det_const_sort import _deadlines
from skfairrank.postprocessing._exposure_lp import mixture
from skfairrank.postprocessing._fa_star import corrected_alpha, failure_probability, minima
from skfairrank.utilities import AveragePrecision


class FirstColumn(BaseEstimator):
    """The score is the first column."""

    def fit(self, X, y=None):
        self.is_fitted_ = True
        return self

    def predict(self, X):
        return np.asarray(X, float)[:, 0]


GROUPED = {
    "fa_star": lambda inner: FAStarRanker(inner, protected="f", p=0.6, alpha=0.3),
    "det_const_sort": lambda inner: DetConstSortRanker(inner, proportions={"f": 0.5, "m": 0.5}),
    "det_const_sort_by_query": lambda inner: DetConstSortRanker(inner, proportions="query"),
    "exposure": lambda inner: ExposureLPRanker(inner),
}
ALL = {"smoother": lambda inner: FairScoreSmoother(inner, metric=[[1.0, 0.0]], theta=0.5)} | GROUPED
every_reranker = pytest.mark.parametrize("kind", ALL)
every_grouped = pytest.mark.parametrize("kind", GROUPED)


def people(seed=0, n_queries=4, n=6):
    """Interleaved queries under string ids; women score less."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat([f"q{k}" for k in range(n_queries)], n))
    group = rng.choice(["f", "m"], len(qid))
    group[np.unique(qid, return_index=True)[1]] = "f"
    X = np.c_[rng.normal(size=len(qid)) - (group == "f"), rng.normal(size=len(qid))]
    return X, np.clip(np.round(X[:, 0] + 2), 0, 4), qid, group


def one_query(s, group, ranker):
    """Rows of one query, from the first to the last."""
    X = np.c_[s, np.zeros(len(s))]
    qid = np.zeros(len(s), int)
    ranks = ranker.fit(X, np.zeros(len(s)), qid=qid).rank(X, qid=qid, sensitive_features=group)
    assert sorted(ranks) == list(range(1, len(s) + 1))
    return np.argsort(ranks)


# FA*IR


@pytest.mark.parametrize(
    "n, p, alpha, table",  # of fairsearchcore, tests/test_fair.py, "create_unadjusted_mtable"
    [
        (10, 0.2, 0.15, [0] * 8 + [1] * 2),
        (20, 0.25, 0.1, [0] * 8 + [1] * 6 + [2] * 5 + [3]),
        (30, 0.3, 0.05, [0] * 8 + [1] * 5 + [2] * 5 + [3] * 5 + [4] * 4 + [5] * 3),
    ],
)
def test_tables_of_a_published_program(n, p, alpha, table):
    assert minima(n, p, alpha).tolist() == table


def test_a_prefix_passes_only_above_the_level():
    """F(0; 3, 1/2) = 1/8 exactly, and the paper asks for F > alpha."""
    assert minima(3, 0.5, 0.125).tolist() == [0, 0, 1]
    assert minima(3, 0.5, 0.12).tolist() == [0, 0, 0]


def chance_to_fail(table, p):
    """By all sequences of groups."""
    total = 0.0
    for sequence in itertools.product([0, 1], repeat=len(table)):
        if (np.cumsum(sequence) < table).any():
            total += p ** sum(sequence) * (1 - p) ** (len(sequence) - sum(sequence))
    return total


@pytest.mark.parametrize(
    "n, p, alpha", [(1, 0.5, 0.6), (5, 0.3, 0.3), (8, 0.5, 0.2), (9, 0.7, 0.1), (6, 1.0, 0.1), (6, 0.0, 0.1)]
)
def test_failure_probability_is_the_sum_over_all_sequences(n, p, alpha):
    table = minima(n, p, alpha)
    assert failure_probability(table, p) == pytest.approx(chance_to_fail(table, p), abs=1e-14)


@pytest.mark.parametrize("n, p, alpha", [(8, 0.5, 0.2), (9, 0.7, 0.1), (7, 0.4, 0.3), (4, 0.5, 0.05)])
def test_the_corrected_level_is_the_highest_that_keeps_alpha(n, p, alpha):
    level = corrected_alpha(n, p, alpha)
    assert level <= alpha and chance_to_fail(minima(n, p, level), p) <= alpha
    tables = {tuple(minima(n, p, a)) for a in np.linspace(level, alpha, 300)} - {tuple(minima(n, p, level))}
    assert all(chance_to_fail(np.array(table), p) > alpha for table in tables)
    assert (level == alpha) == (not tables)


def test_the_corrected_table_of_a_published_program():
    """fairsearchcore's "create_adjusted_mtable" for k = 30, p = .3, alpha = .05; where its level keeps alpha, it is ours."""
    table = minima(30, 0.3, corrected_alpha(30, 0.3, 0.05))
    assert table.tolist() == [0] * 10 + [1] * 6 + [2] * 5 + [3] * 4 + [4] * 5


@pytest.mark.parametrize("seed", range(6))
def test_fa_star_is_the_first_by_scores_among_all_permutations_that_pass(seed):
    rng = np.random.default_rng(seed)
    s, is_f = rng.normal(size=6), rng.random(6) < 0.5
    least = np.minimum(minima(6, 0.6, 0.35), is_f.sum())
    passing = [order for order in itertools.permutations(range(6)) if (np.cumsum(is_f[list(order)]) >= least).all()]
    best = max(passing, key=lambda order: [s[i] for i in order])
    ranker = FAStarRanker(FirstColumn(), protected="f", p=0.6, alpha=0.35, correct_alpha=False)
    assert one_query(s, np.where(is_f, "f", "m"), ranker).tolist() == list(best)


def test_each_query_has_the_level_of_its_size_and_k_bounds_the_ranks_that_are_tested():
    X, y, qid = np.zeros((17, 2)), np.zeros(17), np.repeat([0, 1], [5, 12])
    ranker = FAStarRanker(FirstColumn(), protected=1, p=0.5, alpha=0.1).fit(X, y, qid=qid)
    assert ranker.alpha_ == corrected_alpha(12, 0.5, 0.1)
    for n in (5, 12, 30):
        np.testing.assert_array_equal(ranker.minimum_protected(n), minima(n, 0.5, corrected_alpha(n, 0.5, 0.1)))
    short = FAStarRanker(FirstColumn(), protected=1, p=0.5, alpha=0.1, k=8).fit(X, y, qid=qid)
    assert short.alpha_ == corrected_alpha(8, 0.5, 0.1)
    expected = np.r_[minima(8, 0.5, corrected_alpha(8, 0.5, 0.1)), np.zeros(4)]
    np.testing.assert_array_equal(short.minimum_protected(12), expected)


def test_a_protected_item_goes_first_where_scores_tie():
    ranker = FAStarRanker(FirstColumn(), protected="f", p=0.1)
    assert one_query(np.ones(4), np.array(list("mfmf")), ranker).tolist() == [1, 3, 0, 2]


# DetConstSort


def listing(s, group, shares, *, first_rank=1):
    """The listing of Geyik et al. 2019, line by line; `first_rank` is where its arrays begin."""
    names = list(shares)
    lists = {g: sorted(np.flatnonzero(group == g), key=lambda i: -s[i]) for g in names}
    counts, mins, ranked, deadline, k = dict.fromkeys(names, 0), dict.fromkeys(names, 0), [], [], 0
    while len(ranked) < len(s):
        k += 1
        now = {g: int(np.floor(k * shares[g] + 1e-12)) for g in names}
        changed = [g for g in names if mins[g] < now[g] and counts[g] < len(lists[g])]
        for g in sorted(changed, key=lambda g: -s[lists[g][counts[g]]]):
            ranked.append(lists[g][counts[g]])
            deadline.append(k)
            at = len(ranked) - 1
            while at > 0 and deadline[at - 1] >= at + first_rank and s[ranked[at - 1]] < s[ranked[at]]:
                for values in (ranked, deadline):
                    values[at - 1], values[at] = values[at], values[at - 1]
                at -= 1
            counts[g] += 1
        mins = now
    return ranked


def floors_hold(order, group, shares):
    ranks = np.arange(1, len(order) + 1)
    return all(
        (np.cumsum(group[order] == g) >= np.minimum(np.floor(ranks * share + 1e-12), (group == g).sum())).all()
        for g, share in shares.items()
    )


def test_det_const_sort_is_the_papers_listing_and_keeps_every_floor():
    rng, broken = np.random.default_rng(0), 0
    for _ in range(60):
        shares = dict(zip("abc", rng.dirichlet([1, 1, 1]).round(1)))
        shares["c"] = round(1 - shares["a"] - shares["b"], 1)
        if min(shares.values()) <= 0:
            continue
        s, group = rng.normal(size=12), rng.choice(list("abc"), 12)
        order = one_query(s, group, DetConstSortRanker(FirstColumn(), proportions=shares))
        assert order.tolist() == listing(s, group, shares)
        assert floors_hold(order, group, shares)
        broken += not floors_hold(np.array(listing(s, group, shares, first_rank=0)), group, shares)
    assert broken > 0  # with arrays that begin at 0 an item may move one rank too far down


def test_shares_of_the_query_and_groups_without_a_share():
    s, group = np.arange(6.0), np.array(list("aabbbb"))

    def ordered(shares):
        return one_query(s, group, DetConstSortRanker(FirstColumn(), proportions=shares)).tolist()

    of_query = one_query(s, group, DetConstSortRanker(FirstColumn(), proportions="query"))
    assert of_query.tolist() == ordered({"a": 1 / 3, "b": 2 / 3})
    assert floors_hold(of_query, group, {"a": 1 / 3, "b": 2 / 3})
    # Who has no share stands where its scores put it; without any share the order is that of the scores.
    assert ordered({"a": 0.0, "b": 0}) == [5, 4, 3, 2, 1, 0]
    assert ordered({"a": 0.5, "b": 0}) == [5, 1, 4, 0, 3, 2]


def test_a_deadline_is_the_first_rank_whose_floor_counts_the_item():
    for percent in (10, 29, 35, 55, 70, 100):
        floors = np.arange(1, 700) * percent // 100  # of whole numbers, exactly
        assert _deadlines(60, percent / 100).tolist() == [1 + int(np.argmax(floors >= j)) for j in range(1, 61)]


# Fairness of exposure


def value_of_groups(constraint, worth, group, exposure):
    """What the constraint compares, of each group with worth, by its definition."""
    out = []
    for g in np.unique(group):
        e, u = exposure[..., group == g], worth[group == g]
        if constraint == "demographic_parity":
            out.append(e.mean(-1))
        elif u.mean() > 0:
            out.append((e if constraint == "disparate_treatment" else e * u).mean(-1) / u.mean())
    return np.array(out)


def best_of_all_permutations(constraint, worth, group, v, tolerance):
    """Greatest worth among mixtures of all permutations, or, if none is so fair, the least spread."""
    exposures = np.array([v[list(ranks)] for ranks in itertools.permutations(range(len(worth)))])
    values = value_of_groups(constraint, worth, group, exposures)
    pairs = [values[a] - values[b] for a, b in itertools.permutations(range(len(values)), 2)]
    ones, m = np.ones(len(exposures)), len(pairs)
    found = linprog(
        -(exposures @ worth), A_ub=pairs or None, b_ub=np.full(m, tolerance) if m else None, A_eq=[ones], b_eq=[1]
    )
    if found.status == 0:
        return -found.fun, tolerance
    spread = linprog(
        np.r_[0 * ones, 1], A_ub=np.c_[pairs, -np.ones(m)], b_ub=np.zeros(m), A_eq=[np.r_[ones, 0]], b_eq=[1]
    ).fun
    return best_of_all_permutations(constraint, worth, group, v, spread + 1e-9)


@pytest.mark.parametrize("constraint", ["demographic_parity", "disparate_treatment", "disparate_impact"])
@pytest.mark.filterwarnings("ignore:In 1 of 1 queries no policy keeps 'disparate_treatment'")
@pytest.mark.parametrize("n_groups, tolerance, k", [(2, 0.0, None), (3, 0.0, None), (3, 0.05, None), (2, 0.0, 2)])
def test_the_programme_is_as_good_as_all_permutations(constraint, n_groups, tolerance, k):
    v = np.where(np.arange(5) < (k or 5), 1 / np.log2(np.arange(5) + 2), 0)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        s, group = rng.normal(size=5), np.array(list("abc"))[rng.permutation(np.arange(5) % n_groups)]
        ranker = ExposureLPRanker(FirstColumn(), constraint=constraint, worth=np.exp, tolerance=tolerance, k=k)
        X, qid = np.c_[s, s], np.zeros(5, int)
        exposure = ranker.fit(X, np.zeros(5), qid=qid).expected_exposure(X, qid=qid, sensitive_features=group)
        worth, spread = best_of_all_permutations(constraint, np.exp(s), group, v, tolerance)
        assert exposure @ np.exp(s) == pytest.approx(worth, rel=1e-6)
        assert np.ptp(value_of_groups(constraint, np.exp(s), group, exposure)) <= spread + 1e-7


@pytest.mark.parametrize(
    "constraint, dcg", [(None, 3.8193), ("demographic_parity", 3.8031), ("disparate_treatment", 3.8044)]
)
def test_job_seekers_of_the_paper(constraint, dcg):
    """Singh and Joachims 2018, figures 3 and 4: the DCG of its six job seekers, whose discount has the natural logarithm."""
    u, sex, qid = np.array([0.82, 0.81, 0.80, 0.79, 0.78, 0.77]), np.array(list("mmmfff")), np.zeros(6, int)
    X = np.c_[u, u]
    settings = {"tolerance": 9.0} if constraint is None else {"constraint": constraint}
    ranker = ExposureLPRanker(FirstColumn(), worth="score", **settings).fit(X, u, qid=qid)
    exposure = ranker.expected_exposure(X, qid=qid, sensitive_features=sex)
    assert exposure @ u / np.log(2) == pytest.approx(dcg, abs=5e-5)


def test_where_no_policy_is_so_fair_the_nearest_is_taken_with_a_warning():
    s, group, qid = np.array([100.0, 90, 2, 1]), np.array([0, 0, 1, 1]), np.full(4, "q")
    X, v = np.c_[s, s], 1 / np.log2(np.arange(4) + 2)
    ranker = ExposureLPRanker(FirstColumn(), constraint="disparate_treatment", worth="score").fit(X, s, qid=qid)
    with pytest.warns(
        UserWarning, match=r"In 1 of 1 queries no policy keeps 'disparate_treatment' .* in query 'q' .* by at least"
    ):
        exposure = ranker.expected_exposure(X, qid=qid, sensitive_features=group)
    worth, spread = best_of_all_permutations("disparate_treatment", s, group, v, 0.0)
    assert spread > 0.01  # women would need 63 times less exposure
    assert np.ptp(value_of_groups("disparate_treatment", s, group, exposure)) == pytest.approx(spread, abs=1e-7)
    assert exposure @ s == pytest.approx(worth, rel=1e-6)


def test_a_group_without_worth_has_no_exposure_per_worth():
    s, group, qid = np.array([3.0, 2, 0, 0]), np.array(list("aabb")), np.zeros(4, int)
    for constraint in ("disparate_treatment", "disparate_impact"):
        ranker = ExposureLPRanker(FirstColumn(), constraint=constraint, worth="score").fit(np.c_[s, s], s, qid=qid)
        ranks = ranker.rank(np.c_[s, s], qid=qid, sensitive_features=group)
        assert ranks[:2].tolist() == [1, 2]


def test_equal_items_of_a_group_get_equal_chances():
    s, group, qid = np.array([2.0, 2, 2, 1, 1, 1]), np.array(list("mmmfff")), np.zeros(6, int)
    ranker = ExposureLPRanker(FirstColumn()).fit(np.c_[s, s], s, qid=qid)
    exposure = ranker.expected_exposure(np.c_[s, s], qid=qid, sensitive_features=group)
    np.testing.assert_allclose(exposure, np.mean(1 / np.log2(np.arange(6) + 2)), atol=1e-8)
    assert len(set(exposure[:3])) == len(set(exposure[3:])) == 1  # to the last bit: ranks are in row order
    P = ranker.policy(np.c_[s, s], qid=qid, sensitive_features=group).P
    np.testing.assert_allclose(P[[0, 3]], P[[2, 5]], atol=1e-8)


def test_a_mixture_has_its_matrix_as_mean_and_few_rankings():
    rng = np.random.default_rng(0)
    chances, orders = rng.dirichlet(np.ones(4)), [rng.permutation(7) for _ in range(4)]
    P = sum(chance * np.eye(7)[order] for chance, order in zip(chances, orders))
    found, ranks = mixture(P)
    assert found.sum() == pytest.approx(1, abs=1e-12) and len(found) <= (P > 0).sum() - 7 + 1
    np.testing.assert_allclose(sum(c * np.eye(7)[r - 1] for c, r in zip(found, ranks)), P, atol=1e-8)
    uniform, ranks = mixture(np.full((5, 5), 0.2))
    assert len(uniform) == 5 and sorted(map(tuple, ranks.T)) == sorted(set(map(tuple, ranks.T)))


def test_policy_and_samples_have_the_same_chances():
    X, y, qid, group = people(2)
    ranker = ExposureLPRanker(FirstColumn()).fit(X, y, qid=qid)
    known = {"qid": qid, "sensitive_features": group}
    P = ranker.policy(X, **known).P
    draws = ranker.sample_rankings(X, **known, n_samples=3000, random_state=0)
    frequency = np.array([(draws == rank).mean(axis=0) for rank in range(1, 7)]).T
    assert np.abs(frequency - P).max() < 4 * np.sqrt(0.25 / 3000)
    np.testing.assert_allclose(P @ (1 / np.log2(np.arange(6) + 2)), ranker.expected_exposure(X, **known), atol=1e-12)
    assert group_exposure_difference(None, policy=ranker.policy(X, **known), **known) < 1e-7
    again = ranker.sample_rankings(X, **known, n_samples=3000, random_state=0)
    np.testing.assert_array_equal(draws, again)


@pytest.mark.parametrize("utility", ["reciprocal_rank", AveragePrecision()])
def test_the_policy_knows_its_rankings_whole(utility):
    """Utilities that ask what stands before a row: the mean over draws, within four standard errors."""
    X, _, qid, group = people(2)
    qid = np.where(qid == "q3", "q0", qid)  # of two sizes
    y = np.array(
        [x >= np.sort(X[qid == q, 0])[-2] for x, q in zip(X[:, 0], qid)], float
    )  # the two of the highest scores
    ranker = ExposureLPRanker(FirstColumn()).fit(X, y, qid=qid)
    how = {"qid": qid, "utility": utility, "reduce": None}
    value = utility_score(y, None, policy=ranker.policy(X, qid=qid, sensitive_features=group), **how)
    draws = ranker.sample_rankings(X, qid=qid, sensitive_features=group, n_samples=300, random_state=0)
    drawn = np.array([utility_score(y, -ranks, policy="deterministic", **how) for ranks in draws])
    assert (np.abs(drawn.mean(axis=0) - value) <= 4 * drawn.std(axis=0) / np.sqrt(300) + 1e-9).all()
    assert drawn.std(axis=0).max() > 0.01
    scorer = make_ranking_scorer(utility_score, utility=utility)
    assert scorer(ranker, X, y, qid=qid, sensitive_features=group) == pytest.approx(value.mean())


@pytest.mark.parametrize("worth", ["score", lambda s: s, lambda s: s[:1], lambda s: np.exp(s) * np.nan])
def test_worth_must_not_be_negative(worth):
    X, y, qid, group = people()
    with pytest.raises(ValueError, match="worth of items must be a finite number >= 0"):
        ExposureLPRanker(FirstColumn(), worth=worth).fit(X, y, qid=qid).rank(X, qid=qid, sensitive_features=group)


# Smoothed scores


def test_two_items_come_nearer_by_one_plus_twice_the_weight():
    """(I + lambda L) h = h0 with two items: the mean stays, the difference is divided by 1 + 2 lambda exp(-theta d)."""
    X, qid = np.array([[0.0, 1.0], [4.0, 3.0]]), [0, 0]
    got = (
        FairScoreSmoother(FirstColumn(), metric=[[1.0, 0.0]], strength=3.0, theta=0.2)
        .fit(X, [0, 1], qid=qid)
        .predict(X, qid=qid)
    )
    half = 2.0 / (1 + 2 * 3.0 * np.exp(-0.2 * 2.0**2))
    np.testing.assert_allclose(got, [2 - half, 2 + half], rtol=1e-14)


def test_it_saturates_at_the_order_of_the_pseudoinverse():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(9, 2)), np.zeros(9, int)
    smoother = FairScoreSmoother(FirstColumn(), metric=[[1.0, 0.0]], strength=1e9).fit(X, X[:, 1], qid=qid)
    h = smoother.predict(X, qid=qid)
    W = np.exp(-((X[:, 1][:, None] - X[:, 1]) ** 2))
    limit = np.linalg.pinv(np.diag(W.sum(1)) - W) @ X[:, 0]
    np.testing.assert_allclose(h, X[:, 0].mean(), atol=1e-6)
    np.testing.assert_array_equal(smoother.rank(X, qid=qid), 1 + np.argsort(np.argsort(-limit)))
    np.testing.assert_allclose((h - X[:, 0].mean()) * 1e9, limit, rtol=1e-5)


def test_the_metric_may_be_learned_frozen_or_given_as_directions():
    X, y, qid, group = people()
    frozen = FrozenEstimator(SensitiveSubspaceMetric(directions=[[1.0, 0.0]]).fit(X))
    for metric in (frozen, SensitiveSubspaceMetric(directions=[[1.0, 0.0]])):
        smoother = FairScoreSmoother(FirstColumn(), metric=metric, theta=0.5).fit(X, y, qid=qid)
        expected = ALL["smoother"](FirstColumn()).fit(X, y, qid=qid).predict(X, qid=qid)
        np.testing.assert_array_equal(smoother.predict(X, qid=qid), expected)
    learned = FairScoreSmoother(FirstColumn()).fit(X, y, qid=qid, sensitive_features=group)
    alone = SensitiveSubspaceMetric().fit(X, sensitive_features=group)
    np.testing.assert_array_equal(learned.metric_.directions_, alone.directions_)
    ranks = learned.sample_rankings(X, qid=qid, n_samples=2, random_state=0)
    assert ranks.shape == (2, len(X))


# What holds for all


def call(ranker, X, qid, group, method="rank"):
    return getattr(ranker, method)(X, qid=qid, sensitive_features=group)


@every_reranker
def test_queries_do_not_mix_whatever_the_order_of_the_rows(kind):
    X, y, qid, group = people()
    ranker = ALL[kind](FirstColumn()).fit(X, y, qid=qid)
    ranks, scores = call(ranker, X, qid, group), call(ranker, X, qid, group, "predict")
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        np.testing.assert_array_equal(call(ranker, X[rows], qid[rows], group[rows]), ranks[rows])
        assert np.array_equal(ranks[rows], 1 + np.argsort(np.argsort(-scores[rows], kind="stable"), kind="stable"))
    order = np.argsort(qid, kind="stable")
    np.testing.assert_array_equal(call(ranker, X[order], qid[order], group[order]), ranks[order])


@every_reranker
def test_single_items_groups_that_are_absent_and_ties(kind):
    X = np.ones((6, 2))
    qid, group = np.array([1, 2, 2, 2, 3, 3]), np.array(["m", "m", "m", "m", "f", "f"])
    ranker = ALL[kind](FirstColumn()).fit(X, np.arange(6), qid=qid, sensitive_features=group)
    assert call(ranker, X, qid, group).tolist() == [1, 1, 2, 3, 1, 2]


def test_labels_that_are_not_known():
    X, y, qid, group = people()
    with pytest.raises(ValueError, match=r"group 'f', and proportions has only 'm'"):
        DetConstSortRanker(FirstColumn(), proportions={"m": 0.5}).fit(X, y, qid=qid, sensitive_features=group)
    with pytest.raises(ValueError, match="protected='F' is none of the groups: 'f', 'm'"):
        FAStarRanker(FirstColumn(), protected="F", p=0.5).fit(X, y, qid=qid, sensitive_features=group)
    untold, told = (FAStarRanker(FirstColumn(), protected="f", p=0.5) for _ in range(2))
    untold.fit(X, y, qid=qid)
    told.fit(X, y, qid=qid, sensitive_features=group)
    for ranker in (untold, told):
        with pytest.raises(ValueError, match="protected='f' is none of the groups of these rows, 'F', 'M'"):
            call(ranker, X, qid, np.char.upper(group))
        # There may be no woman in a query.
        by_score = QueryRanker(FirstColumn()).fit(X, y, qid=qid).rank(X, qid=qid)
        np.testing.assert_array_equal(call(ranker, X, qid, np.full(len(X), "m")), by_score)
    other = np.where(np.arange(len(X)) % 2, "m", "x")
    np.testing.assert_array_equal(call(told, X, qid, other), by_score)


@pytest.mark.parametrize(
    "wrong, named",
    [
        (lambda: FAStarRanker(FirstColumn(), protected="f", p=1.5), "'p'"),
        (lambda: DetConstSortRanker(FirstColumn(), proportions={}), "proportions is empty"),
        (lambda: DetConstSortRanker(FirstColumn(), proportions={"f": 0.8, "m": 0.4}), "sum to 1.2"),
        (lambda: FairScoreSmoother(FirstColumn(), metric="euclidean"), "no fair metric"),
    ],
)
def test_parameters_that_cannot_be(wrong, named):
    X, y, qid, _ = people()
    with pytest.raises((ValueError, TypeError), match=named):
        wrong().fit(X, y, qid=qid)


# Rankers within


@every_grouped
def test_the_ranker_within_gets_what_it_asks_for(kind):
    """A pipeline whose first step needs qid to fit and to predict, without metadata routing switched on by the caller."""
    X, y, qid, group = people()
    pipeline = make_pipeline(QueryScaler(), FirstColumn())
    scaled = QueryScaler().fit(X, qid=qid).transform(X, qid=qid)
    found = call(GROUPED[kind](pipeline).fit(X, y, qid=qid), X, qid, group)
    np.testing.assert_array_equal(found, call(GROUPED[kind](FirstColumn()).fit(X, y, qid=qid), scaled, qid, group))


# Searches, scorers, audits


@every_reranker
@pytest.mark.usefixtures("routing")
def test_in_a_search_with_the_scorers_of_all(kind):
    X, y, qid, group = people(n_queries=6, n=5)
    scoring = {"ndcg": ndcg_scorer, "difference": neg_group_exposure_difference_scorer, "soft": stochastic_ndcg_scorer}
    grid = {"estimator__fit_intercept": [True, False]}
    ranker, cv = ALL[kind](LinearRegression()), QueryKFold(2)
    search = GridSearchCV(ranker, grid, cv=cv, scoring=scoring, refit="ndcg", error_score="raise")
    search.fit(X, y, qid=qid, sensitive_features=group)
    train, test = next(cv.split(X, y, qid))
    fitted = clone(ranker).fit(X[train], y[train], qid=qid[train], sensitive_features=group[train])
    known = {"qid": qid[test], "sensitive_features": group[test]}
    if kind == "exposure":
        how = {"policy": fitted.policy(X[test], **known)}
        ndcg = ndcg_score(y[test], None, qid=qid[test], **how)
        difference = group_exposure_difference(None, **how, **known)
        assert search.cv_results_["split0_test_soft"][0] == pytest.approx(ndcg, rel=1e-9)
    else:
        s = fitted.predict(X[test], **known)
        ndcg, difference = ndcg_score(y[test], s, qid=qid[test]), group_exposure_difference(s, **known)
    assert search.cv_results_["split0_test_ndcg"][0] == pytest.approx(ndcg, rel=1e-9)
    assert search.cv_results_["split0_test_difference"][0] == pytest.approx(-difference, abs=1e-9)
    by_default = GridSearchCV(ranker, grid, cv=cv, error_score="raise").fit(X, y, qid=qid, sensitive_features=group)
    assert by_default.cv_results_["split0_test_score"][0] == pytest.approx(ndcg, rel=1e-9)
    # A search that is fitted hands on what its best estimator asks for.
    expected = ndcg_scorer(search.best_estimator_, X, y, qid=qid, sensitive_features=group)
    assert ndcg_scorer(search, X, y, qid=qid, sensitive_features=group) == expected


# Calls of all kinds


@every_reranker
def test_frames_and_missing_query_ids(kind):
    X, y, qid, group = people()
    ranker = ALL[kind](LinearRegression()).fit(X, y, qid=qid)
    frame = pd.DataFrame(X, columns=["a", "b"])
    framed = clone(ranker).fit(frame, y, qid=pd.Series(qid), sensitive_features=pd.Series(group, dtype="category"))
    found = call(framed, frame, qid.tolist(), pd.DataFrame({"sex": group}))
    np.testing.assert_array_equal(found, call(ranker, X, qid, group))
    for method in ("predict", "rank", "sample_rankings"):
        with pytest.raises(ValueError, match="got no qid, and fit saw 4 queries"):
            call(ranker, X, None, group, method)
    if kind in GROUPED:
        with pytest.raises(ValueError, match="sensitive_features is missing"):
            call(ranker, X, qid, None)


def test_any_ranker_may_be_within():
    """LightGBM's as it is, one that needs hypothetical rows, another re-ranker; a classifier of text may not."""
    lightgbm = pytest.importorskip("lightgbm")
    X, y, qid, group = people(n_queries=6, n=10)
    model = lightgbm.LGBMRanker(n_estimators=3, min_child_samples=2, verbose=-1, n_jobs=1)
    plain = FAStarRanker(model, protected="f", p=0.0).fit(X, y, qid=qid)
    np.testing.assert_array_equal(plain.estimator_.predict(X), QueryRanker(model).fit(X, y, qid=qid).predict(X))
    given = SenSTIRRanker(adversary="given", max_iter=5, random_state=0)
    inner = clone(given).fit(X, y, qid=qid, X_hypothetical=X * [1, -1])
    ranker = ALL["smoother"](given).fit(X, y, qid=qid, X_hypothetical=X * [1, -1])
    np.testing.assert_array_equal(ranker.estimator_.coef_, inner.coef_)
    smoothed = ranker.predict(X, qid=qid)
    turned = GROUPED["det_const_sort"](FrozenEstimator(ranker)).fit(X, y, qid=qid)
    by_hand = GROUPED["det_const_sort"](FirstColumn()).fit(X, y, qid=qid)
    np.testing.assert_array_equal(call(turned, X, qid, group), call(by_hand, np.c_[smoothed, smoothed], qid, group))
    with pytest.raises(ValueError, match="give y as"):
        ALL["smoother"](LogisticRegression()).fit(X, np.where(y > 1, "hire", "no"), qid=qid)


def test_an_audit_hands_groups_on_and_judges_the_policy_of_random_rankings():
    X, y, qid, group = people()
    known = {"qid": qid, "sensitive_features": group}
    rankers = {kind: make(FirstColumn()).fit(X, y, qid=qid) for kind, make in ALL.items()}
    table = audit(rankers, X, y, X_hypothetical=X * [1, -1], random_state=0, **known)
    for kind, ranker in rankers.items():
        assert table.loc[kind, "ndcg"] == pytest.approx(ranker.score(X, y, **known), rel=1e-9)
        if kind == "exposure":
            difference = group_exposure_difference(None, policy=ranker.policy(X, **known), **known)
        else:
            difference = group_exposure_difference(ranker.predict(X, **known), **known)
        assert table.loc[kind, "exposure_difference"] == pytest.approx(difference, abs=1e-9)
        assert table.loc[kind, "tau"] == 1.0  # nobody looks at the second feature but the metric, which knows no sign
    assert table.loc["exposure", "stochastic_ndcg"] == table.loc["exposure", "ndcg"]


@pytest.mark.parametrize(
    "table, p, published",  # of fairsearchcore, tests/test_fair.py, "compute_fail_probability"
    [
        ([0] * 8 + [1] * 2, 0.2, 0.13421772800000065),
        ([0] * 8 + [1] * 7 + [2] * 5, 0.25, 0.10515247355215251),
        ([0] * 10 + [1] * 6 + [2] * 5 + [3] * 4 + [4] * 5, 0.3, 0.04877730797178359),
    ],
)
def test_failure_probabilities_of_a_published_program(table, p, published):
    assert failure_probability(np.array(table), p) == pytest.approx(published, rel=1e-12)
