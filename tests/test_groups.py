"""Groups as people have them: small, unknown for some rows, crossed, or an age that counts in the middle."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRanker

from skfairrank import GapBoostingRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.hypotheticals import Hypotheticals
from skfairrank.inspection import audit, exposure_by_group
from skfairrank.metrics import (
    attention_weighted_rank_fairness,
    group_exposure_difference,
    group_exposure_disparity,
    group_ndkl,
    group_skew,
    make_ranking_scorer,
)

pytestmark = pytest.mark.once

TREES = LGBMRanker(n_estimators=2, num_leaves=4, n_jobs=1, verbose=-1)
# One query in the order of its ranks, a second without rows of known group, and a third with one group.
GROUPS, QID = np.array(["a", None, "b", "a", None, None, "a", None], dtype=object), [0, 0, 0, 0, 1, 1, 2, 2]
S, Y = [4.0, 3, 2, 1, 1, 2, 2, 1], [3.0, 3, 1, 1, 1, 2, 1, 1]
EXPOSURE = 1 / np.log2([2, 3, 4, 5])
KNOWN = {"qid": QID, "sensitive_features": GROUPS, "unknown_groups": "leave_out"}
MEAN_A = (EXPOSURE[0] + EXPOSURE[3]) / 2
OF_A = (EXPOSURE[0] + EXPOSURE[3]) / (EXPOSURE[0] + EXPOSURE[3] + EXPOSURE[2])


def kl(p, target=2 / 3):
    return sum(x * np.log(x / t) for x, t in ((p, target), (1 - p, 1 - target)) if x > 0)


def test_rows_of_unknown_group_have_ranks_and_count_in_no_group():
    """Values of the first query, from the definitions: shares are those among the rows of known group."""
    assert group_exposure_difference(S, **KNOWN) == pytest.approx(MEAN_A - EXPOSURE[2])
    disparity = group_exposure_disparity(
        Y, S, policy="deterministic", replace_undefined_by=np.nan, reduce=None, **KNOWN
    )
    np.testing.assert_allclose(disparity, [max(MEAN_A / 2 - EXPOSURE[2], 0), np.nan, np.nan])
    prefixes = [kl(1), kl(1), kl(1 / 2), kl(2 / 3)]
    assert group_ndkl(S, **KNOWN) == pytest.approx(np.average(prefixes, weights=EXPOSURE))
    assert group_skew(S, k=3, **KNOWN) == pytest.approx(np.log(1 / 2 / (1 / 3)))
    awrf = attention_weighted_rank_fairness(S, distance="absolute", reduce=None, **KNOWN)
    np.testing.assert_allclose(awrf, [1 - (OF_A - 2 / 3), np.nan, np.nan])
    told = {"target": {"a": 0.5, "b": 0.5}, "reduce": None}
    divergence = attention_weighted_rank_fairness(S, **told, **KNOWN)
    assert np.isnan(divergence).tolist() == [False, True, False]
    assert np.isnan(group_skew(np.negative(S), k=1, **told, **KNOWN)).tolist() == [False, True, True]
    scorer = make_ranking_scorer(group_exposure_difference, unknown_groups="leave_out")
    ranker = type("Known", (), {"predict": lambda self, X: X[:, 0]})()
    assert -scorer(ranker, np.c_[S], qid=QID, sensitive_features=GROUPS) == pytest.approx(MEAN_A - EXPOSURE[2])


def test_missing_groups_are_an_error_that_names_the_remedy():
    message = r'4 missing values.*in 8 rows.*unknown_groups="leave_out" in this metric'
    with pytest.raises(ValueError, match=message):
        group_exposure_difference(S, qid=QID, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match=r"8 missing values.* in 8 rows: drop"):
        group_exposure_difference(S, qid=QID, sensitive_features=[None] * 8, unknown_groups="leave_out")
    with pytest.raises(ValueError, match="unknown_groups='drop': choose one of"):
        group_exposure_difference(S, qid=QID, sensitive_features=GROUPS, unknown_groups="drop")


def test_tables_count_the_unknown():
    table = audit(np.array(S), y=Y, qid=QID, sensitive_features=GROUPS, unknown_groups="leave_out")
    assert table["exposure_difference"].item() == pytest.approx(MEAN_A - EXPOSURE[2])
    both = pd.DataFrame({"first": GROUPS, "second": [*"xxyy", *"xxyx"]})
    table = exposure_by_group(np.array(S), y=Y, qid=QID, sensitive_features=both, crossed=True, k=2).droplevel(0)
    assert table["n_items"].to_dict() == {
        ("first", "a"): 3, ("first", "b"): 1, ("first", "unknown"): 4, ("second", "x"): 5, ("second", "y"): 3,
        ("first x second", "a, x"): 1, ("first x second", "a, y"): 2, ("first x second", "b, y"): 1,
        ("first x second", "unknown"): 4,
    }  # fmt: skip
    assert table.loc[("first", "unknown"), "share_of_top"] == pytest.approx((1 / 2 + 1 + 1 / 2) / 3)


# Gaps less their error


def test_gaps_less_their_error_by_definition():
    """Squared errors by group from its own variance, or that within all groups where that is larger; 1 + 2 log 3 times."""
    rng = np.random.default_rng(0)
    sizes = [60, 25, 9]
    group = np.repeat(["a", "b", "c"], sizes)
    X = (
        rng.normal(size=(94, 6)) * np.repeat([[1.0], [1.5], [2.5]], sizes, axis=0)
        + np.repeat([0, 0.8, 1.6], sizes)[:, None]
    )
    parts = [X[group == name] for name in "abc"]
    pooled = sum((len(part) - 1) * part.var(axis=0, ddof=1) for part in parts) / (94 - 3)
    error = [np.maximum(part.var(axis=0, ddof=1), pooled) / len(part) for part in parts]
    gaps = []
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        d = np.abs(parts[a].mean(axis=0) - parts[b].mean(axis=0))
        gaps.append(d * np.maximum(0, 1 - (1 + 2 * np.log(3)) * (error[a] + error[b]) / d**2))
    metric = SensitiveSubspaceMetric(direction="difference").fit(X, sensitive_features=group)
    np.testing.assert_allclose(metric.gaps_, np.max(gaps, axis=0), rtol=1e-9)
    assert (metric.gaps_ < metric.raw_gaps_).all() and (metric.gaps_ > 0).any()
    ranker = GapBoostingRanker(TREES).fit(X, np.arange(94) % 3, qid=np.zeros(94), sensitive_features=group)
    np.testing.assert_allclose(ranker.gaps_, metric.gaps_ / X.std(axis=0), rtol=1e-9)
    np.testing.assert_allclose(ranker.raw_gaps_, metric.raw_gaps_ / X.std(axis=0), rtol=1e-9)


@pytest.mark.parametrize(
    "sizes, shift, mean, high",
    [([250, 99, 43, 26], 0.0, 0.02, 0.14), ([250, 99, 43, 26], 0.5, 0.41, 0.72), ([250, 168], 0.3, 0.27, 0.46)],
)
def test_gaps_of_chance_vanish_and_real_ones_stay(sizes, shift, mean, high):
    """300 features of groups of which one is moved; raw gaps of four alike groups are .28 on the mean."""
    rng, group = np.random.default_rng(0), np.repeat(np.arange(len(sizes)).astype(str), sizes)
    X = rng.normal(size=(len(group), 300)) - shift * (group == "1")[:, None]
    metric = SensitiveSubspaceMetric(direction="difference").fit(X, sensitive_features=group)
    assert np.mean(metric.gaps_) == pytest.approx(mean, abs=0.015)
    assert np.quantile(metric.gaps_, 0.95) == pytest.approx(high, abs=0.06)
    if shift == 0:
        assert np.mean(metric.raw_gaps_) == pytest.approx(0.28, abs=0.02)


@pytest.mark.parametrize("kind", ["numbers", "few numbers", "categories"])
def test_distances_of_distributions_are_less_what_permuted_groups_have(kind):
    rng, group = np.random.default_rng(0), np.repeat(["a", "b"], [250, 99])
    draw = {"numbers": rng.normal, "few numbers": lambda size: rng.integers(0, 2, size), "categories": rng.integers}[
        kind
    ]
    X = pd.DataFrame(draw(4, size=(349, 30)) if kind == "categories" else draw(size=(349, 30)))
    X = X.astype("category") if kind == "categories" else X + 0.0
    fit = {"y": np.arange(349) % 3, "qid": np.zeros(349)}
    model = GapBoostingRanker(TREES, gap="ks")
    chance = np.mean([model.fit(X, sensitive_features=rng.permutation(group), **fit).raw_gaps_ for _ in range(10)])
    ranker = model.fit(X, sensitive_features=group, **fit)
    known = ranker.gaps_ > 0
    implied = np.sqrt(ranker.raw_gaps_ * (ranker.raw_gaps_ - ranker.gaps_))[known]
    np.testing.assert_allclose(implied, chance, rtol=0.15)
    assert ranker.gaps_[~known].sum() == 0 and (ranker.raw_gaps_[~known] < 1.15 * chance).all()


# A number, unknown groups, crossed ones


AGE = np.random.default_rng(1).uniform(20, 70, 2000)
MIDDLE = np.abs(AGE - 45) < 12.5


@pytest.mark.parametrize("gap", ["standardized", "ks"])
def test_an_age_that_counts_in_the_middle_is_seen(gap):
    """A half is in the middle: the column tells it nearly alone, while its correlation with age is nothing."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"number": MIDDLE + 0.1 * rng.normal(size=2000), "chance": rng.normal(size=2000)})
    X["category"] = pd.Categorical(np.where(MIDDLE, "m", rng.choice(["x", "y"], 2000)))
    if gap == "standardized":
        found = SensitiveSubspaceMetric().fit(X[["number", "chance"]], sensitive_features=AGE).gaps_
        assert found[0] > 0.4 > 0.1 > found[1]
    found = GapBoostingRanker(TREES, gap=gap).fit(X, 1 * MIDDLE, qid=np.zeros(2000), sensitive_features=AGE).gaps_
    assert found["number"] > 0.8 and found["category"] > 0.8 and found["chance"] < 0.1, found


def people(n=400):
    rng = np.random.default_rng(3)
    X, sex, race = rng.normal(size=(n, 3)), rng.integers(0, 2, n), rng.integers(0, 2, n)
    X[:, 0] += 1.0 * sex
    X[:, 1] += 1.5 * (sex == race)
    return X, np.where(sex, "f", "m"), np.where(race, "x", "z"), np.repeat(np.arange(n // 10), 10)


def test_unknown_groups_train_and_have_no_part_in_gaps_and_directions():
    X, sex, _, qid = people()
    unknown = np.random.default_rng(4).random(len(X)) < 0.3
    told = np.where(unknown, None, sex)
    y = np.clip(np.round(X[:, 0] + X[:, 2]), 0, 3).astype(int)
    for settings in ({}, {"direction": "difference"}, {"direction": "conditional_difference"}):
        metric = SensitiveSubspaceMetric(unknown_groups="leave_out", **settings)
        known = SensitiveSubspaceMetric(**settings).fit(X[~unknown], y[~unknown], sensitive_features=sex[~unknown])
        ranker = SenSTIRRanker(metric, adversary="gaps", max_iter=3, random_state=0)
        found = ranker.fit(X, y, qid=qid, sensitive_features=told).metric_
        np.testing.assert_allclose(found.gaps_, known.gaps_, rtol=1e-9)
        np.testing.assert_allclose(found.directions_, known.directions_, rtol=1e-6)
    age = np.where(unknown, np.nan, AGE[:400])
    metric = SensitiveSubspaceMetric(unknown_groups="leave_out").fit(X, sensitive_features=age)
    known = SensitiveSubspaceMetric().fit(X[~unknown], sensitive_features=age[~unknown])
    np.testing.assert_allclose(metric.raw_gaps_, known.raw_gaps_, rtol=1e-9)
    shifts = Hypotheticals(gaps=True, metric=SensitiveSubspaceMetric(unknown_groups="leave_out"))
    assert shifts.fit(X, sensitive_features=told).metric_.gaps_[0] > 0.5
    X[::7, 2] = np.nan
    for gap in ("standardized", "ks"):
        trees = GapBoostingRanker(TREES, gap=gap, unknown_groups="leave_out")
        plain = GapBoostingRanker(TREES, gap=gap).fit(
            X[~unknown], y[~unknown], qid=qid[~unknown], sensitive_features=sex[~unknown]
        )
        trees = trees.fit(X, y, qid=qid, sensitive_features=told)
        np.testing.assert_allclose(trees.gaps_, plain.gaps_, rtol=1e-9)
    with pytest.raises(ValueError, match='missing values .* unknown_groups="leave_out" in GapBoostingRanker'):
        GapBoostingRanker(TREES).fit(X, y, qid=qid, sensitive_features=told)


@pytest.mark.filterwarnings("ignore:Nothing is left to rank by")
def test_crossed_groups_are_an_attribute_beside_the_others():
    X, sex, race, qid = people()
    race = np.where(np.arange(len(X)) % 9, race, None)
    both = pd.DataFrame({"sex": sex, "race": race})
    cross = [None if b is None else f"{a}, {b}" for a, b in zip(sex, race)]
    settings = {"unknown_groups": "leave_out", "direction": "difference"}
    alone = [SensitiveSubspaceMetric(**settings).fit(X, sensitive_features=g) for g in (sex, race, cross)]
    metric = SensitiveSubspaceMetric(crossed=True, **settings).fit(X, sensitive_features=both)
    np.testing.assert_allclose(metric.gaps_, np.max([one.gaps_ for one in alone], axis=0), rtol=1e-9)
    np.testing.assert_allclose(metric.directions_, np.vstack([one.directions_ for one in alone]), rtol=1e-9)
    assert metric.gaps_[1] > 1 > 0.3 > max(alone[0].gaps_[1], alone[1].gaps_[1])
    trees = GapBoostingRanker(TREES, crossed=True, unknown_groups="leave_out")
    assert trees.fit(X, qid % 3, qid=qid, sensitive_features=both).gaps_[1] > 0.9
    coded = np.column_stack([X, sex == "f", both["race"] == "x", AGE[:400]])
    columns = SensitiveSubspaceMetric(sensitive_columns=[3, 4, 5], crossed=True, direction="difference").fit(coded)
    assert columns.gaps_[1] > 1 and "column 3 x column 4 x column 5" in columns.difference_shares_
    with pytest.raises(ValueError, match="crossed=True needs at least two attributes"):
        SensitiveSubspaceMetric(crossed=True).fit(X, sensitive_features=sex)
