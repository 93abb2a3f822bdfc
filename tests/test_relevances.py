"""Fits on relevances that have lost their digits to underflow, or are huge."""

import numpy as np
import pandas as pd
import pytest

from skfairrank import FairPGRanker, PlackettLuceRanker, SenSTIRRanker
from skfairrank.metrics._exposure import disparity_coefficients

pytestmark = pytest.mark.once

RANKERS = {
    "reinforce": PlackettLuceRanker(max_iter=10, random_state=0),
    "exact": PlackettLuceRanker(gradient="exact", max_iter=10, random_state=0),
    "senstir": SenSTIRRanker(rho=0.1, max_iter=10, random_state=0),
    "fair reinforce": FairPGRanker(fairness_weight=1.0, max_iter=10, random_state=0),
    "fair exact": FairPGRanker(fairness_weight=1.0, gradient="exact", max_iter=10, random_state=0),
}


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)), rng.random(60) < 0.5, np.repeat(np.arange(10), 6), np.tile([0, 1], 30)


@pytest.mark.filterwarnings("ignore:There are relevances above")
@pytest.mark.parametrize("relevance", [5e-324, 1e-310, 1e-200, 1e-155, 1e200, 1e308])
@pytest.mark.parametrize("name", RANKERS)
def test_relevances_of_any_size_train(name, relevance, task):
    X, chosen, qid, group = task
    for other in (0.0, 1.0):
        y = np.where(chosen, relevance, other)
        weights = RANKERS[name].fit(X, y, qid=qid, sensitive_features=group).coef_
        assert np.isfinite(weights).all()


@pytest.mark.parametrize("name", ["reinforce", "exact"])
def test_two_grades_train_alike_however_small_the_higher_one_is(name, task):
    """NDCG is the same for relevances 0 and 5e-324 as for 0 and 1."""
    X, chosen, qid, _ = task
    tiny, one = (RANKERS[name].fit(X, np.where(chosen, value, 0.0), qid=qid).coef_ for value in (5e-324, 1.0))
    np.testing.assert_allclose(tiny, one, rtol=1e-9)


def test_coefficients_of_the_disparity_are_one_by_the_sum_of_relevances():
    """Signs by the group of more merit; in the second query merits tie but for rounding, in the third a group has none."""
    y = np.array([1.0, 3.0, 1.0, 0.1, 0.2, 0.3, 0.2, 0.0, 2.0])
    group = np.array([0, 0, 1, 0, 0, 0, 1, 0, 1])
    coefficients, defined, tied = disparity_coefficients(y, group, np.array([0, 3, 7, 9]))
    np.testing.assert_allclose(coefficients[:3], [1 / 4, 1 / 4, -1 / 1], rtol=1e-15)
    np.testing.assert_allclose(coefficients[3:7], [-1 / 0.6, -1 / 0.6, -1 / 0.6, 1 / 0.2], rtol=1e-12)
    assert coefficients[7:].tolist() == [0.0, 0.0]
    assert defined.tolist() == [True, True, False] and tied.tolist() == [False, True, False]


@pytest.mark.parametrize("seed", range(5))
def test_order_of_rows_changes_no_bit_of_the_coefficients(seed):
    """So no tie, however close to the limit of rounding, is one in one order and none in another."""
    rng = np.random.default_rng(seed)
    y, group = rng.exponential(size=200) * 10.0 ** rng.integers(-3, 3, 200), rng.integers(0, 2, 200)
    coefficients, _, tied = disparity_coefficients(y, group, np.array([0, 200]))
    for _ in range(10):
        rows = rng.permutation(200)
        shuffled, _, also_tied = disparity_coefficients(y[rows], group[rows], np.array([0, 200]))
        np.testing.assert_array_equal(shuffled, coefficients[rows])
        assert also_tied == tied


def test_three_groups_are_an_error_that_speaks_of_the_ranker(task):
    X, chosen, qid, _ = task
    with pytest.raises(ValueError, match=r"3 groups \('a', 'b', 'c'\), and FairPGRanker compares 2\. Merge groups\.$"):
        RANKERS["fair exact"].fit(X, chosen + 1.0, qid=qid, sensitive_features=np.tile([*"abc"], 20))
    with pytest.raises(ValueError, match=r"continuous .*FairPGRanker compares groups"):
        RANKERS["fair exact"].fit(X, chosen + 1.0, qid=qid, sensitive_features=np.arange(60))


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_dates_and_durations_are_no_relevances(zone, task):
    """NumPy would count the nanoseconds since 1970."""
    X, _, qid, days = task
    dates = pd.Series(pd.Timestamp("2020-01-01", tz=zone) + pd.to_timedelta(days, unit="D"))
    for y, kind in ((dates, "dates"), (dates - dates.min(), "durations")):
        for given in (y, y.tolist()) if zone else (y, y.to_numpy()):
            with pytest.raises(ValueError, match=f"y (holds {kind}: give one|is not an array of numbers)"):
                PlackettLuceRanker(max_iter=2).fit(X, given, qid=qid)
