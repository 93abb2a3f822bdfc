"""Which differences are sensitive: directions by coefficients or difference, gaps, units, and attributes of every kind."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, RidgeCV

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.datasets import make_hiring_ranking
from skfairrank.inspection import SensitiveDirectionsDisplay

pytestmark = pytest.mark.once

HIRING = make_hiring_ranking(60, random_state=0)
X, GROUP = HIRING.data, HIRING.sensitive_features
DIFFERENCE = X[GROUP == 1].mean(axis=0) - X[GROUP == 0].mean(axis=0)


def fit(attribute, rows=X, **settings):
    return SensitiveSubspaceMetric(**settings).fit(rows, sensitive_features=attribute)


def up_to_sign(direction):
    return direction * np.sign(direction[np.abs(direction).argmax()])


# Two groups


def test_coefficients_and_difference_are_two_things():
    """The third mark, less lowered than the others, predicts the group by being high; it is low all the same."""
    by_coefficients, by_difference = fit(GROUP).directions_[0], fit(GROUP, direction="difference").directions_[0]
    assert by_coefficients[2] * by_coefficients[0] < 0 < by_difference[2] * by_difference[0]
    assert by_difference == pytest.approx(DIFFERENCE, rel=1e-12)


@pytest.mark.parametrize("direction", ["coefficients", "difference"])
def test_a_step_of_one_leads_from_group_to_group(direction):
    metric = fit(GROUP, direction=direction)
    (v,) = metric.directions_
    unit = v / np.linalg.norm(v)
    assert np.linalg.norm(v) == pytest.approx(abs(unit @ DIFFERENCE), rel=1e-12)
    assert v @ DIFFERENCE > 0  # towards the second group


def test_gaps_are_differences_of_means_whatever_is_learned():
    for settings in ({}, {"direction": "difference"}, {"scale": "raw"}):
        assert fit(GROUP, **settings).raw_gaps_ == pytest.approx(np.abs(DIFFERENCE), rel=1e-12)


def test_offsets_and_a_memory_map_cost_no_digits(tmp_path):
    np.save(tmp_path / "X.npy", X + 1e6)
    metric = fit(GROUP, np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert metric.raw_gaps_ == pytest.approx(np.abs(DIFFERENCE), abs=1e-10)


def test_everyone_counts_once_unless_told_otherwise():
    again = np.r_[np.arange(len(X)), np.flatnonzero(GROUP == 1)[:200]]
    assert fit(GROUP[again], X[again]).raw_gaps_ == pytest.approx(np.abs(DIFFERENCE), rel=1e-12)
    rows, groups = X[again], GROUP[again]
    expected = np.abs(rows[groups == 1].mean(axis=0) - rows[groups == 0].mean(axis=0))
    assert np.abs(expected - np.abs(DIFFERENCE)).max() > 0.01
    assert fit(groups, rows, distinct=False).raw_gaps_ == pytest.approx(expected, rel=1e-12)


def test_a_constant_feature_has_no_gap_and_no_part_in_a_direction():
    rows = np.column_stack([X, np.full(len(X), 0.1), np.full(len(X), 1e9 + 0.1)])
    for direction in ("coefficients", "difference"):
        metric = fit(GROUP, rows, direction=direction)
        assert metric.gaps_[5:].tolist() == [0.0, 0.0] and metric.directions_[:, 5:].tolist() == [[0.0, 0.0]]


def test_a_classifier_sees_a_sample_of_many_rows_and_gaps_see_all():
    seen = []

    class Recording(LogisticRegression):
        def fit(self, X, y):
            seen.append(len(X))
            return super().fit(X, y)

    metric = fit(GROUP, classifier=Recording(), max_rows=100)
    assert seen == [100] and metric.raw_gaps_ == pytest.approx(np.abs(DIFFERENCE), rel=1e-12)
    everything = fit(GROUP, classifier=Recording(), max_rows=None)
    assert seen == [100, len(X)]
    cosine = metric.directions_[0] @ everything.directions_[0]
    assert cosine > 0.7 * np.linalg.norm(metric.directions_) * np.linalg.norm(everything.directions_)


# Numbers


def test_of_a_number_a_step_is_one_standard_deviation():
    age = 40 + 10 * GROUP + np.random.default_rng(1).normal(size=len(X))
    slope = np.cov(X.T, age, ddof=0)[-1, :-1] / age.std()
    metric = fit(age, direction="difference")
    assert metric.directions_[0] == pytest.approx(slope, rel=1e-9)
    by_coefficients = fit(age).directions_[0]
    unit = RidgeCV().fit(X, age).coef_
    unit = unit / np.linalg.norm(unit)
    assert by_coefficients == pytest.approx(unit * (unit @ slope), rel=1e-6)
    assert fit(3 * age + 7, direction="difference").directions_ == pytest.approx(metric.directions_, rel=1e-9)


# Several classes


def several(shares=(300, 200, 90, 10), seed=0):
    """Classes along two directions, the last one small and far off in a third."""
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(len(shares)), shares)
    centres = np.array([[0, 0, 0, 0, 0], [3, 0, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0, 1, 0, 0]])
    return centres[classes] + 0.1 * rng.normal(size=(len(classes), 5)), np.array(list("abcd"))[classes]


@pytest.mark.filterwarnings("ignore:.*groups of few rows")
def test_of_several_classes_the_difference_is_their_principal_directions():
    rows, classes = several()
    metric = fit(classes, rows, direction="difference")
    means = np.stack([rows[classes == c].mean(axis=0) for c in "abcd"])
    shares = np.array([np.mean(classes == c) for c in "abcd"])
    weighted = (means - shares @ means) * np.sqrt(shares)[:, None]
    values, vectors = np.linalg.eigh(weighted.T @ weighted)
    held = np.cumsum(values[::-1]) / values.sum()
    n = int(np.argmax(held >= 0.9)) + 1
    assert n == 2 == len(metric.directions_)  # of three; the class of ten rows makes none of its own
    for k, v in enumerate(metric.directions_):
        unit = vectors[:, -1 - k]
        assert up_to_sign(v) == pytest.approx(up_to_sign(unit) * np.ptp(means @ unit), rel=1e-6, abs=1e-9)
    assert metric.raw_gaps_ == pytest.approx(np.ptp(means, axis=0), rel=1e-9)
    assert metric.difference_shares_["attribute 0"] == pytest.approx(held[1], rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*groups of few rows")
def test_of_several_classes_coefficients_reach_from_the_lowest_to_the_highest_mean():
    rows, classes = several()
    metric = fit(classes, rows)
    means = np.stack([rows[classes == c].mean(axis=0) for c in "abcd"])
    expected = LogisticRegression(max_iter=1000).fit(rows, classes).coef_
    for v, coefficients in zip(metric.directions_, expected, strict=True):
        unit = coefficients / np.linalg.norm(coefficients)
        assert v == pytest.approx(unit * np.ptp(means @ unit), rel=2e-2, abs=2e-2)


@pytest.mark.filterwarnings("ignore:.*groups of few rows")
def test_a_metric_that_leaves_nothing_says_so():
    """Case 24: twelve classes and five features."""
    rng = np.random.default_rng(0)
    classes, rows = np.repeat(list("abcdefghijkl"), 30), rng.normal(size=(360, 5))
    rows += rng.normal(size=(12, 5))[np.repeat(np.arange(12), 30)]
    with pytest.warns(UserWarning, match=r"Nothing is left to rank by.*5 features.*attribute 0: rank 5"):
        metric = fit(classes, rows)
    assert metric.components_ == pytest.approx(np.zeros((5, 5)), abs=1e-12)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Nothing is left")
        assert len(fit(classes, rows, direction="difference").sensitive_basis_) < 5


# Columns of X, several attributes, given directions


def test_sensitive_columns_have_gaps_and_units():
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 400)
    age = 40 + 12 * rng.normal(size=400)
    rows = np.column_stack(
        [age, sex, sex + rng.normal(size=400), 0.1 * age + rng.normal(size=400), rng.normal(size=400)]
    )
    metric = SensitiveSubspaceMetric(sensitive_columns=[0, 1], direction="difference").fit(rows)
    slope = np.cov(rows.T, age, ddof=0)[-1, :-1] / age.std()
    difference = rows[sex == 1].mean(axis=0) - rows[sex == 0].mean(axis=0)
    bins = np.searchsorted(np.quantile(age, np.arange(1, 10) / 10), age)
    means = np.stack([rows[bins == k].mean(axis=0) for k in range(10)])[bins]
    assert metric.raw_gaps_ == pytest.approx(
        np.max([np.abs(slope), np.abs(difference), means.std(axis=0)], axis=0), rel=1e-9
    )
    rest = np.array([0, 0, 1, 1, 1])
    expected = [slope * rest, [age.std(), 0, 0, 0, 0], difference * rest, [0, 1, 0, 0, 0]]
    assert metric.directions_ == pytest.approx(np.array(expected), rel=1e-9, abs=1e-12)
    raw = SensitiveSubspaceMetric(sensitive_columns=[0, 1], scale="raw").fit(rows).directions_
    assert raw[[1, 3]].tolist() == [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]]


def test_given_directions_are_left_as_they_are_and_make_the_gaps():
    metric = SensitiveSubspaceMetric([[2.0, -3.0, 0.0], [0.0, 1.0, 0.0]]).fit(np.eye(3))
    assert metric.directions_.tolist() == [[2, -3, 0], [0, 1, 0]] and metric.gaps_.tolist() == [2, 3, 0]


# What the metric tells


def test_the_share_held_is_that_of_the_squared_difference():
    for direction in ("coefficients", "difference"):
        metric = fit(GROUP, direction=direction)
        held = metric.sensitive_basis_ @ DIFFERENCE
        share = held @ held / (DIFFERENCE @ DIFFERENCE)
        assert metric.difference_shares_ == pytest.approx({"attribute 0": share})
        assert (share < 0.5) == (direction == "coefficients")


@pytest.mark.parametrize("column", ["copy", "threshold", "codes", "line"])
def test_a_column_that_alone_determines_the_attribute_is_found(column):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=300)
    codes = rng.integers(0, 6, 300)
    attribute, given = {
        "copy": (hidden > 0, (hidden > 0) * 2.5),
        "threshold": (hidden > 0.3, hidden),  # an age group beside the age
        "codes": (np.isin(codes, [1, 4]), codes),  # a group made of some codes
        "line": (hidden, 3 - 2 * hidden),
    }[column]
    rows = np.column_stack([rng.normal(size=(300, 2)), given, given + rng.normal(size=300)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert fit(attribute, rows).determining_columns_ == {"attribute 0": [2]}
    said = [str(warning.message).startswith("Columns [2] of X") for warning in caught]
    assert said == ([] if column == "threshold" else [True])  # an age is no copy of the age group


def test_a_default_metric_that_misses_the_difference_says_so_once():
    fast = {"max_iter": 5, "random_state": 0}
    given = {"qid": HIRING.qid, "sensitive_features": GROUP}
    with pytest.warns(UserWarning, match=r'hold \d+% of how the groups.*adversary="gaps"') as caught:
        SenSTIRRanker(**fast).fit(X, HIRING.target, **given)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SenSTIRRanker(adversary="gaps", **fast).fit(X, HIRING.target, **given)
        SenSTIRRanker(SensitiveSubspaceMetric(), **fast).fit(X, HIRING.target, **given)  # chosen
        SenSTIRRanker(SensitiveSubspaceMetric(direction="difference"), **fast).fit(X, HIRING.target, **given)


def test_summary_and_display_hold_gaps_and_directions(plt):
    metric = fit(GROUP, pd.DataFrame(X, columns=HIRING.feature_names))
    summary, display = metric.summary(), SensitiveDirectionsDisplay.from_estimator(metric)
    assert list(summary.index) == HIRING.feature_names and summary["gap"].to_numpy() == pytest.approx(metric.gaps_)
    assert [bar.get_width() for bar in display.bars_] == pytest.approx(2 * metric.gaps_)
    assert display.lines_[0].get_xdata() == pytest.approx(metric.directions_[0])


# Projected out is out (case 21)


def annihilated(seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(1600, 6))
    z = rows[:, 0].copy()
    rows[:, 0], rows[:, 1] = np.round(45 + 12 * z), z > 0
    return rows, z


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "settings",
    [
        {"sensitive_columns": [0, 1]},
        {"directions": [[1, 1, 0, 0, 0, 0], [1, -1, 0, 0, 0, 0]]},
        {"directions": [[3, 1, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0]]},
    ],
    ids=["columns", "two that span two axes", "and one more"],
)
def test_columns_that_are_projected_out_are_exact_zeros(settings, dtype):
    rows, _ = annihilated()
    out = SensitiveSubspaceMetric(**settings).fit(rows.astype(dtype)).transform(rows.astype(dtype))
    assert out.dtype == dtype and (out[:, :2] == 0).all() and (out[:, 2:].std(axis=0) > 0.1).all()


# Faults that a stranger found


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_a_projection_leaves_constant_is_constant_to_the_bit(dtype):
    """A one-hot group that is projected out leaves 1/3 in each column, not 1/3 give or take a rounding for each group."""
    rng = np.random.default_rng(0)
    group, age = rng.integers(0, 3, 800), np.round(45 + 12 * rng.normal(size=800))
    cases = {
        "one-hot": (np.eye(3)[group], [[1, -1, 0], [0, 1, -1]]),
        "two of three": (np.eye(3)[group], [[0, 1, -1], [1, -0.5, -0.5]]),
        "age and year": (np.column_stack([age, 2024 - age]), [[1, -1]]),
        "age and its multiple": (np.column_stack([age, 1000 * age]), [[1, 1000]]),
        "age and its share": (np.column_stack([age, age / 365.25]), [[365.25, 1]]),
    }
    for name, (rows, directions) in cases.items():
        for offset in (0.0, 1e4):
            X = (rows + offset).astype(dtype)
            out = SensitiveSubspaceMetric(directions).fit(X).transform(X)
            if dtype == np.float64 or (
                offset == 0.0 and name != "age and its share"
            ):  # else the rows themselves are rounded
                assert len(np.unique(out, axis=0)) == 1, (name, offset)
    X = np.eye(3)[group].astype(dtype)
    out = SensitiveSubspaceMetric([[1, -1, 0], [0, 1, -1]]).fit(X).transform(X)
    assert out == pytest.approx(np.full((800, 3), 1 / 3), rel=1e-6)


def test_a_projection_keeps_what_it_does_not_touch_to_the_bit():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 4)) * [1, 1e-9, 1e9, 1]
    out = SensitiveSubspaceMetric([[1, 0, 0, 1]]).fit(rows).transform(rows)
    assert out[:, [1, 2]].tolist() == rows[:, [1, 2]].tolist()
    expected = (rows[:, 0] - rows[:, 3]) / 2
    assert out[:, 0] == pytest.approx(expected, abs=1e-12) and out[:, 3] == pytest.approx(-expected, abs=1e-12)


@pytest.mark.parametrize("function", [np.log, np.square, lambda a: -np.sqrt(a), lambda a: 2 * a + 1])
def test_a_column_that_grows_with_a_number_is_its_copy(function):
    ages = np.random.default_rng(0).integers(18, 80, len(X)).astype(float)
    rows = np.column_stack([X, function(ages)])
    with pytest.warns(UserWarning, match=r"Columns \[5\] of X"):
        assert fit(ages, rows).determining_columns_ == {"attribute 0": [5]}
