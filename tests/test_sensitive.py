"""`sensitive_features` of every kind, by one rule in fit and in metrics: groups, amounts, or an error with a remedy."""

import datetime
import decimal
import enum
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from skfairrank import GapBoostingRanker, SensitiveSubspaceMetric
from skfairrank.inspection import exposure_by_group
from skfairrank.metrics import group_exposure_difference

pytestmark = pytest.mark.once

N = 200
X = np.random.default_rng(0).normal(size=(N, 4))
CODES = np.arange(N) % 3
AGES = np.random.default_rng(1).integers(18, 79, N)
BORN = [datetime.date(2000, 1, 1) - datetime.timedelta(days=365 * int(age)) for age in AGES]
NAMES = np.array(["asia", "europe", "oceania"])[CODES]
TWO = NAMES == "asia"


class Kind(enum.Enum):
    FIRST, SECOND, THIRD = 0.1, 0.2, 0.3


def learned(attribute, **settings):
    """Gaps: of groups they depend on nothing but which rows belong together."""
    return SensitiveSubspaceMetric(direction="difference", **settings).fit(X, sensitive_features=attribute)


def compared(groups):
    return group_exposure_difference(X[:, 0], qid=np.arange(N) // 10, sensitive_features=groups)


GROUPS = {
    "strings": NAMES,
    "pandas strings": pd.Series(NAMES, dtype="string", index=np.arange(N)[::-1]),
    "a dict": {"race": NAMES},
    "categories in another order": pd.Categorical(NAMES, categories=["oceania", "asia", "europe"], ordered=True),
    "members": [list(Kind)[code] for code in CODES],
    "a pyarrow table": pa.table({"race": NAMES.tolist()}),
}
TWO_GROUPS = {
    "bools": TWO,
    "two floats": np.where(TWO, 0.75, 0.25),
    "two dates": np.where(TWO, np.datetime64("2020-01-01"), np.datetime64("2019-01-01")),
}
AMOUNTS = {
    "ints": AGES,
    "three ints": CODES,
    "decimals": [decimal.Decimal(int(age)) for age in AGES],
    "dates": BORN,
}
TEXTS = {
    "numbers": AGES.astype(str),
    "dates": [str(date) for date in BORN],
}


@pytest.mark.parametrize("kind", [*GROUPS, *TWO_GROUPS])
def test_labels_are_groups_in_fit_and_in_metrics(kind):
    given, codes = (GROUPS[kind], CODES) if kind in GROUPS else (TWO_GROUPS[kind], TWO.astype(int))
    names = np.array(list("abc"))[codes]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gaps = learned(given).raw_gaps_
    means = np.stack([X[codes == code].mean(axis=0) for code in np.unique(codes)])
    np.testing.assert_allclose(gaps, np.ptp(means, axis=0), rtol=1e-9)
    assert compared(given) == pytest.approx(compared(names), rel=1e-12)


@pytest.mark.parametrize("kind", AMOUNTS)
@pytest.mark.filterwarnings("ignore:.*which are taken for amounts")
def test_more_than_two_numbers_are_an_amount_for_fit_and_refused_by_metrics(kind):
    given = AMOUNTS[kind]
    expected = learned(CODES if "three" in kind else -365.0 * AGES if "date" in kind else AGES.astype(float))
    got = learned(given)
    assert got.directions_.shape == (1, 4)
    np.testing.assert_allclose(got.gaps_, expected.gaps_, atol=1e-6)
    with pytest.raises(ValueError, match=rf"continuous \(\d+ distinct values in {N} rows\).*astype\(str\).*Categor"):
        compared(given)


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.filterwarnings("ignore:.*groups of few rows", "ignore:Nothing is left to rank by")
def test_numbers_and_dates_as_text_are_refused_unless_they_are_called_categories(kind):
    text = TEXTS[kind]
    for read in (learned, compared):
        with pytest.raises(ValueError, match=r"different numbers or dates written as text.*categorical"):
            read(text)
    categories = pd.Categorical(np.asarray(text, dtype=object).ravel())
    assert compared(categories) > 0 and learned(categories).gaps_.shape == (4,)
    assert learned(text, categorical=True).gaps_.tolist() == learned(categories).gaps_.tolist()


BAD = {
    "None among strings": ([None, *NAMES[1:]], "1 missing values"),
    "NaN": ([np.nan, *AGES[1:]], "1 missing values"),
    "a mask": (np.ma.array(CODES == 1, mask=np.arange(N) == 4), "1 masked values"),
    "another length": (NAMES[:5], "5 entries for 200 rows"),
    "several kinds": (np.resize(np.array([1, "1"], object), N), "several kinds"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_attribute_is_refused_by_both(kind):
    given, message = BAD[kind]
    for read in (learned, compared):
        with pytest.raises((ValueError, TypeError), match=f"sensitive.features.*{message}"):
            read(given)


def test_metrics_compare_one_attribute_and_tables_several():
    frame = pd.DataFrame({"race": NAMES, "sex": np.where(TWO, "f", "m")})
    for given in (frame, pa.table({"a": NAMES.tolist(), "b": TWO})):
        with pytest.raises(ValueError, match="2 columns, one was expected"):
            compared(given)
    with pytest.raises(ValueError, match=r"sensitive_features is missing.*enable_metadata_routing"):
        compared(None)
    judged = {"y": np.ones(N), "qid": np.arange(N) // 10}
    table = exposure_by_group(X[:, 0], sensitive_features=frame, **judged)
    assert set(table.index.get_level_values("attribute")) == {"race", "sex"}


# What estimators say besides


def test_few_whole_numbers_are_amounts_with_a_warning_and_groups_where_said():
    with pytest.warns(UserWarning, match=r"3 distinct whole numbers \(0, 1, 2\).*categorical=True"):
        as_number = learned(CODES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert learned(CODES, categorical=False).gaps_.tolist() == as_number.gaps_.tolist()
        assert learned(CODES, categorical=True).gaps_ == pytest.approx(learned(NAMES).gaps_, rel=1e-9)


@pytest.mark.parametrize("categorical", [["race"], "race", [1], 1, -2, [False, True, False]])
def test_codes_are_named_beside_text_and_numbers(categorical):
    frame = pd.DataFrame({"sex": np.where(TWO, "f", "m"), "race": CODES, "age": AGES})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric = learned(frame, categorical=categorical)
    assert len(metric.directions_) == 1 + len(learned(NAMES).directions_) + 1


def test_what_categorical_names_must_be_there():
    with pytest.raises(ValueError, match=r"categorical names 'rage'.*\['race'\]"):
        learned(pd.DataFrame({"race": CODES}), categorical=["rage"])
    with pytest.raises(ValueError, match="categorical is a mask of 2 entries"):
        learned(NAMES, categorical=[True, False])
    lightgbm = pytest.importorskip("lightgbm")
    with pytest.warns(UserWarning, match="categorical=True in GapBoostingRanker"):
        model = lightgbm.LGBMRanker(n_estimators=1, n_jobs=1, verbose=-1)
        GapBoostingRanker(model).fit(X, CODES, qid=np.arange(N) // 10, sensitive_features=CODES)


@pytest.mark.filterwarnings("ignore:Nothing is left to rank by")
def test_names_of_rows_and_small_groups_are_no_groups_to_learn_from():
    rows = ["".join(np.random.default_rng(i).choice(list("abcdefghij"), 8)) for i in range(N)]
    with pytest.raises(ValueError, match=r"names of rows.*categorical"):
        learned(rows)
    assert compared(rows) > 0  # a metric may compare as many groups as there are rows
    countries = np.array([f"{a}{b}land" for a in "ABCDEFGH" for b in "aeiou"])[np.arange(N) % 40]
    with pytest.warns(
        UserWarning, match=r"groups of few rows.*'Aaland': 2.39"
    ):  # sqrt((1 + 2 log 780) (1 / 5 + 1 / 5))
        assert learned(np.tile(countries, 1)).gaps_.shape == (4,)
