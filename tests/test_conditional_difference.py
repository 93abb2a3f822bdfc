"""How groups differ at equal relevance: against least squares, a loop over levels, and the process that made the data."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from skfairrank import SensitiveSubspaceMetric, SenSTIRBoostingRanker, SenSTIRRanker
from skfairrank.adversaries import GivenHypotheticals
from skfairrank.datasets import make_hiring_ranking
from skfairrank.hypotheticals import Hypotheticals

pytestmark = pytest.mark.once

TASK = make_hiring_ranking(n_queries=60, random_state=0)
X, Y, QID, GROUP = TASK.data, TASK.target, TASK.qid, TASK.sensitive_features


def conditional(**settings):
    return SensitiveSubspaceMetric(direction="conditional_difference", **settings)


def by_levels(X, y, group):
    """The mean over levels of the difference of means, weighted by n p (1 - p)."""
    total, weight = 0.0, 0.0
    for level in np.unique(y):
        here = y == level
        p = group[here].mean()
        if 0 < p < 1:
            difference = X[here & (group == 1)].mean(axis=0) - X[here & (group == 0)].mean(axis=0)
            total, weight = total + here.sum() * p * (1 - p) * difference, weight + here.sum() * p * (1 - p)
    return total / weight


def by_regression(X, y, columns):
    """Coefficients of X on the columns beside an indicator of each level, shape (n_columns, n_features)."""
    levels = (y[:, None] == np.unique(y)).astype(float)
    return LinearRegression(fit_intercept=False).fit(np.column_stack([columns, levels]), X).coef_.T[: columns.shape[1]]


def test_two_groups_differ_by_the_weighted_mean_over_levels():
    metric = conditional().fit(X, Y, sensitive_features=GROUP)
    expected = by_levels(X, Y, GROUP)
    np.testing.assert_allclose(metric.directions_, expected[None], rtol=1e-9)
    np.testing.assert_allclose(metric.raw_gaps_, np.abs(expected), rtol=1e-9)
    np.testing.assert_allclose(expected, by_regression(X, Y, GROUP[:, None].astype(float))[0], rtol=1e-9)


def test_a_number_counts_by_its_standard_deviation():
    age = 40.0 + 8 * GROUP + np.random.default_rng(1).normal(size=len(X))
    slope = by_regression(X, Y, age[:, None])[0] * age.std()
    np.testing.assert_allclose(conditional().fit(X, Y, sensitive_features=age).directions_, slope[None], rtol=1e-8)


def test_gaps_of_three_groups_are_the_largest_of_their_effects():
    rng = np.random.default_rng(2)
    third = np.where(rng.random(len(X)) < 0.3, 2, GROUP)
    moved = X + (third == 2)[:, None] * np.array([0, 0, 0, 0, 3.0])
    effects = np.vstack([np.zeros(5), by_regression(moved, Y, (third[:, None] == [1, 2]).astype(float))])
    metric = conditional(categorical=True).fit(moved, Y, sensitive_features=third)
    np.testing.assert_allclose(metric.raw_gaps_, effects.max(axis=0) - effects.min(axis=0), rtol=1e-8)


def test_gaps_are_those_of_least_squares_where_groups_and_levels_sum_to_one():
    """The indicators of all groups are collinear with those of the levels: no rounding of a zero is inverted."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        group, y, rows = rng.integers(0, 3, 150), rng.integers(0, 4, 150), rng.normal(size=(150, 4)) * [1, 1e-6, 1e6, 1]
        design = np.column_stack([group[:, None] == range(3), y[:, None] == range(4)]).astype(float)
        effects = np.linalg.lstsq(design, rows, rcond=None)[0][:3]
        found = conditional(categorical=True, distinct=False).fit(rows, y, sensitive_features=group)
        np.testing.assert_allclose(found.raw_gaps_, np.ptp(effects, axis=0), rtol=1e-9)
        np.testing.assert_array_equal(found.raw_gaps_ > 0, True)


def test_groups_in_two_parts_that_never_meet_are_an_error():
    """Four groups, of which two meet at one level and two at another: their differences across cannot be seen."""
    group = np.tile(list("abcd"), 20)
    with pytest.raises(ValueError, match="do not meet at equal relevance"):
        conditional().fit(np.random.default_rng(0).normal(size=(80, 2)), group > "b", sensitive_features=group)


def test_what_the_labels_explain_is_not_charged():
    """Labels that are the difference itself leave nothing; labels that know nothing of the group leave all of it."""
    rng = np.random.default_rng(3)
    group, noise = np.tile([0, 1], 2000), rng.normal(size=(4000, 2))
    skill = rng.integers(0, 4, 4000) + group
    rows = np.column_stack([skill + 0.1 * noise[:, 0], noise[:, 1] + 2.0 * group])
    gaps = conditional().fit(rows, skill, sensitive_features=group).raw_gaps_
    assert gaps[0] < 0.02 and gaps[1] == pytest.approx(2.0, abs=0.1)
    unknown = conditional().fit(rows, rng.integers(0, 3, 4000), sensitive_features=group).raw_gaps_
    assert unknown[0] == pytest.approx(1.0, abs=0.12)


@pytest.mark.parametrize("as_frame", [False, True])
def test_the_ranker_passes_its_labels_in_the_order_of_the_rows(as_frame):
    shuffled = np.random.default_rng(4).permutation(len(X))
    rows = pd.DataFrame(X, columns=list("abcde")).iloc[shuffled] if as_frame else X[shuffled]
    ranker = SenSTIRRanker(conditional(), adversary="gaps", rho=0.01, max_iter=5, random_state=0)
    ranker.fit(rows, Y[shuffled], qid=QID[shuffled].astype(str), sensitive_features=GROUP[shuffled])
    np.testing.assert_allclose(ranker.metric_.raw_gaps_, np.abs(by_levels(X, Y, GROUP)), rtol=1e-9)


@pytest.mark.parametrize("where", ["ranker", "trees", "trees' own metric"])
def test_hypotheticals_get_the_labels_in_the_order_of_the_rows(where):
    """Their metric is learned in the ranker's fit; boosting has one beside it that needs labels too."""
    shuffled = np.random.default_rng(5).permutation(len(X))
    source, own = Hypotheticals(gaps=True, steps=(1.0,), metric=conditional()), None
    if where == "trees' own metric":
        source, own = Hypotheticals(gaps=True, steps=(1.0,)), conditional()
    if where == "ranker":
        ranker = SenSTIRRanker(adversary=GivenHypotheticals(source), rho=0.01, max_iter=3, random_state=0)
    else:
        lightgbm = pytest.importorskip("lightgbm")
        model = lightgbm.LGBMRanker(n_estimators=2, n_jobs=1, verbose=-1)
        ranker = SenSTIRBoostingRanker(model, metric=own, hypotheticals=source, rho=0.01, random_state=0)
    ranker.fit(X[shuffled], Y[shuffled], qid=QID[shuffled].astype(str), sensitive_features=GROUP[shuffled])
    found = ranker.hypotheticals_.metric_.raw_gaps_
    np.testing.assert_allclose(found, np.abs(by_levels(X, Y, GROUP)), rtol=1e-9)


def test_rows_that_differ_in_their_label_alone_count_both():
    once = conditional().fit(np.vstack([X, X]), np.r_[Y, 3 - Y], sensitive_features=np.r_[GROUP, GROUP])
    expected = by_levels(np.vstack([X, X]), np.r_[Y, 3 - Y], np.r_[GROUP, GROUP])
    np.testing.assert_allclose(once.raw_gaps_, np.abs(expected), rtol=1e-9)


def test_what_cannot_be_compared_is_an_error():
    with pytest.raises(ValueError, match="fit needs y"):
        conditional().fit(X, sensitive_features=GROUP)
    with pytest.raises(ValueError, match=r"y has shape \(5,\) for 600 rows"):
        conditional().fit(X, Y[:5], sensitive_features=GROUP)
    with pytest.raises(ValueError, match="do not meet at equal relevance"):
        conditional().fit(X, GROUP, sensitive_features=GROUP)
