"""What metrics accept and refuse: each reader once, and each metric once for each of its arguments.

Ids are read by `Queries.from_qid` (test_queries.py); here are relevances, scores and groups.
"""

import array
import datetime
from dataclasses import replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from metrics_under_test import HAS_GROUPS, HAS_Y, METRICS, random_data, sampling

from skfairrank import policies
from skfairrank.metrics import group_exposure_difference, group_exposure_disparity, kendall_tau_score, ndcg_score

every_metric = pytest.mark.parametrize("name", METRICS)


@pytest.fixture
def data():
    return random_data(np.random.default_rng(0), [4, 3, 5], ids=[3, 8, 10])


@every_metric
def test_forms_of_the_columns_change_nothing(name, data):
    """Case 3: lists, Series with another index, polars, categories and strings as ids; read-only arrays."""
    expected = METRICS[name](data, **sampling(name))
    index = np.arange(12)[::-1]
    forms = {
        "lists": dict(vars(replace(data, qid=data.qid.tolist())), y=data.y.tolist(), s=data.s.tolist()),
        "Series": {key: pd.Series(value, index=index) for key, value in vars(data).items()},
        "polars": {key: polars.Series(value) for key, value in vars(data).items()},
        "strings": vars(
            replace(data, qid=pd.Categorical([f"{q:02d}" for q in data.qid]), g=np.array(list("ab"))[data.g])
        ),
    }
    for form, columns in forms.items():
        assert METRICS[name](type(data)(**columns), **sampling(name)) == expected, form
    for value in vars(data).values():
        value.flags.writeable = False
    assert METRICS[name](data, **sampling(name)) == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda v: v.astype(object),
        lambda v: pd.Series(v).convert_dtypes(),
        lambda v: pa.array(v),
        lambda v: pa.chunked_array([v[:5], v[5:]]),
        lambda v: pd.Series(v).convert_dtypes(dtype_backend="pyarrow"),
        lambda v: array.array("d", v.tolist()),
    ],
)
def test_containers_of_relevances_and_scores(make, data):
    for dtype in (float, np.float32, np.int8):
        y, s = data.y.astype(dtype), np.arange(12).astype(dtype)
        assert ndcg_score(make(y), make(s), qid=data.qid) == ndcg_score(y, s, qid=data.qid)


@every_metric
def test_what_each_metric_refuses(name, data):
    def refused(match, **changed):
        with pytest.raises(ValueError, match=match):
            METRICS[name](replace(data, **changed), **sampling(name))

    refused(r"qid.*enable_metadata_routing=True", qid=None)
    refused("qid has 3 entries for 12 rows: give one query id per row, not group sizes", qid=[4, 3, 5])
    refused(r"11.*12|12.*11", s=data.s[1:])
    refused("shape", s=np.ones((12, 2)))
    refused(r"(?i)nan", s=np.where(np.arange(12) == 3, np.nan, data.s))
    if name == "kendall_tau":
        refused(r"(?i)inf", s2=np.where(np.arange(12) == 3, np.inf, data.s))
        refused("s1 has 12 rows, s2 has 11", s2=data.s2[1:])
    if name in HAS_Y:
        refused(r"y is missing \(None\): give one relevance", y=None)
        refused("(?i)negative", y=data.y - 1)
        refused("rows", y=data.y[1:])
    if name in HAS_GROUPS:
        refused("sensitive_features has 11 entries for 12 rows", g=data.g[1:])
        refused(r"sensitive_features is missing.*enable_metadata_routing", g=None)
        refused("continuous", g=np.arange(12))
    for wrong in ("median", True, np.mean):
        with pytest.raises(ValueError, match=r'reduce=.*"mean", or None'):
            METRICS[name](data, reduce=wrong, **sampling(name))
    with pytest.raises(ValueError):
        METRICS[name](data.take(np.arange(0)), **sampling(name))


def test_qid_is_needed_to_tell_queries_apart():
    """Case 5."""
    y, s = [1, 0, 1, 0], [0.9, 0.8, 0.2, 0.1]
    assert ndcg_score(y, s, qid=[0, 0, 1, 1]) == 1
    assert ndcg_score(y, s, qid=[0] * 4) == pytest.approx(0.919721, abs=1e-6)
    with pytest.raises(TypeError):
        ndcg_score(y, s)


@pytest.mark.parametrize(
    "wrong, match",
    [
        ([-0.89, -0.53, -0.47, 0.39, 0.56], "(?i)negative"),
        ([1, 0, np.nan, 2, 1], r"y contains NaN \(1 of 5 values, the first in row 2\).*leave out the rows"),
        ([1, 0, None, 2, pd.NA], r"y contains NaN \(2 of 5 values"),
        (pd.Series([1, 0, None, 2, 1], dtype="Float64"), "y contains NaN"),
        ([1, 0, np.inf, 2, 1], "(?i)inf"),
        (["a", "b", "c", "d", "e"], "(?i)convert|number"),
        ([1, 0, 1], "3 entries for 5 rows"),
        (np.ones((5, 2)), "shape"),
        (np.ma.array([1.0, 0, 1, 0, 1], mask=[0, 1, 0, 0, 0]), "y has 1 masked"),
    ],
)
def test_bad_relevances_are_refused(wrong, match):
    with pytest.raises(ValueError, match=match):
        ndcg_score(wrong, np.arange(5.0), qid=[0] * 5)


class Sex(Enum):
    MALE = "m"
    FEMALE = "f"


class Origin(Enum):
    """Values that have no order among them: sorted by name."""

    NORTH = None
    SOUTH = 1


def test_forms_of_two_groups(data):
    letters = np.array(["A", "B"])[data.g]
    forms = [
        *(pd.DataFrame({"g": letters}), letters[:, None], pd.Index(letters), polars.DataFrame({"g": letters})),
        *(pd.Categorical(letters), pd.DataFrame({"g": pd.Categorical(letters)})),
        pd.Series(pd.Categorical(letters, categories=["B", "A"])),  # labels count by their value
        *(pd.Series(data.g == 1, dtype="boolean"), [bool(g) for g in data.g], pa.array(data.g == 1)),
        *(
            pa.array(letters.tolist()),
            pa.table({"g": letters.tolist()}),
            pa.array(letters.tolist()).dictionary_encode(),
        ),
        pa.chunked_array([letters[:5].tolist(), letters[5:].tolist()]),
        [Sex.MALE if g else Sex.FEMALE for g in data.g],
        [Origin.SOUTH if g else Origin.NORTH for g in data.g],
        *(array.array("i", data.g.tolist()), [Decimal(int(g)) for g in data.g], np.where(data.g, "1", "0")),
        polars.Series(letters, dtype=polars.Categorical),
        *(
            np.array(labels)[data.g]
            for labels in ([-1.0, 1.0], [0.25, 0.75], [np.int8(3), np.int8(9)], ["x" * 40, "y"])
        ),
    ]
    expected = METRICS["sorted_disparity"](data)
    for g in forms:
        assert METRICS["sorted_disparity"](replace(data, g=g)) == expected, type(g)


AGES = np.tile([23, 45, 31, 52, 61, 29, 33, 40, 57, 38, 26, 44, 36, 48, 50, 66, 21, 34, 42, 27, 30, 59], 5)
BORN = [datetime.date(2024 - int(age), 1, 1) for age in AGES]
CONTINUOUS = {
    "ints": AGES,
    "small unsigned ints": AGES.astype(np.uint8),
    "objects": AGES.astype(object),
    "nullable ints": pd.Series(AGES, dtype="Int64"),
    "polars ints": polars.Series(AGES),
    "pyarrow ints": pa.array(AGES),
    "decimals": [Decimal(int(age)) for age in AGES],
    "fractions": [Fraction(int(age), 3) for age in AGES],
    "strings of numbers": AGES.astype(str),
    "a column of strings": np.column_stack([AGES, AGES]).astype(str)[:, :1],
    "dates": BORN,
    "dates of NumPy": np.array(BORN, "M8[D]"),
    "dates of polars": polars.Series(BORN),
    "dates of pyarrow": pa.array(BORN),
    "dates as strings": [str(date) for date in BORN],
    "months": pd.PeriodIndex(BORN, freq="M"),
    "durations": pd.to_timedelta(AGES, unit="D"),
    "durations of Python": [datetime.timedelta(int(age)) for age in AGES],
    "three fractions": np.resize([0.25, 0.5, 0.75], len(AGES)),
    "three ints": np.resize([0, 1, 2], len(AGES)),
    "three dates": np.resize(np.array(BORN[:3], "M8[D]"), len(AGES)),
}


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_continuous_attributes_are_refused_whatever_holds_them(kind):
    """Case 23."""
    match = r"continuous \(\d+ distinct values in 110 rows\).*astype\(str\).*Categorical|as text.*Categorical"
    with pytest.raises(ValueError, match=match):
        group_exposure_difference(np.arange(110.0), qid=np.arange(110) // 5, sensitive_features=CONTINUOUS[kind])


GROUPS = {
    "ten codes as text": np.resize(np.arange(10), 110).astype(str),
    "twenty codes": pd.Categorical(np.resize(np.arange(20), 110)),
    "two ints far apart": np.resize([3, 2**40], 110),
    "names": [f"name {k}" for k in range(110)],
    "a categorical of polars": polars.Series(AGES.astype(str)).cast(polars.Categorical),
    "a categorical of pyarrow": pa.array(AGES.astype(str)).dictionary_encode(),
    "bins": pd.cut(AGES.astype(float), 30),
    "two dates": np.resize(np.array(BORN[:2], "M8[D]"), 110),
    "words that read as numbers": np.resize(["nan", "inf", "one"], 110),
    "an enumeration": np.resize(np.array(list(Enum("Third", {"A": 0.1, "B": 0.2, "C": 0.3})), object), 110),
}


@pytest.mark.parametrize("kind", GROUPS)
def test_labels_are_groups(kind):
    codes = pd.factorize(np.asarray(GROUPS[kind], dtype=object).ravel())[0]
    by_name = np.char.add("group ", codes.astype(str))
    s, qid = np.random.default_rng(0).normal(size=110), np.arange(110) // 5
    found, expected = (group_exposure_difference(s, qid=qid, sensitive_features=g) for g in (GROUPS[kind], by_name))
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "wrong, match",
    [
        (["A", None, "B", "B"], "1 missing"),
        ([0.0, 1.0, np.nan, np.nan], "2 missing"),
        (pd.Series([0, 1, None, 1], dtype="Int64"), "1 missing"),
        (pd.Categorical(["A", None, "B", "B"]), "1 missing"),
        (pa.array([True, None, False, True]), "1 missing"),
        (pd.DataFrame({"age": [0, 1, 0, 1], "sex": [0, 0, 1, 1]}), "2 columns"),
        (pa.table({"age": [1, 2, 1, 2], "sex": [1, 1, 2, 2]}), "2 columns"),
        (np.column_stack([["m", "f", "m", "f"], [23, 45, 31, 52]]), "2 columns"),
        ("ABAB", "is the text 'ABAB': give one value per row"),
        ([1, "1", 1, "1"], "several kinds"),
        (np.array([b"ab", b"cd", b"ab", b"cd"], dtype="V2"), "records or raw bytes"),
        ([[1], [1, 2], [3], [4]], "list in the place of a single value"),
    ],
    ids=str,
)
def test_bad_groups_are_refused(wrong, match):
    with pytest.raises((ValueError, TypeError), match=match):
        group_exposure_difference([4, 3, 2, 1], qid=[0] * 4, sensitive_features=wrong)


def test_settings_are_checked():
    kw = {"qid": [0, 0]}
    with pytest.raises(ValueError, match="'gain' parameter of NDCG must be a str among .*exp2"):
        ndcg_score([1, 0], [1, 0], gain="exp", **kw)
    for wrong in ("warn", None, np.inf, [0]):
        with pytest.raises(ValueError, match="replace_undefined_by"):
            ndcg_score([1, 0], [1, 0], replace_undefined_by=wrong, **kw)
    with pytest.raises(ValueError, match=r"ties='first'.*larger_label.*average"):
        group_exposure_disparity([1, 1], [1, 0], sensitive_features=[1, 0], ties="first", **kw)
    with pytest.raises(ValueError, match="s has 1 masked"):
        ndcg_score([1, 0], np.ma.array([1.0, 0.0], mask=[False, True]), **kw)
    assert kendall_tau_score(np.int8([1, 2]), np.float16([2, 1]), **kw) == -1
    kw["sensitive_features"] = [0, 1]
    names = ("plackett-luce", "plackett_luce", "deterministic")
    soft, same, in_order = (group_exposure_difference([1, 0], policy=p, n_samples="exact", **kw) for p in names)
    assert soft == same < in_order
    for wrong in ("greedy", "Deterministic", None, 1, policies.Deterministic):
        with pytest.raises(ValueError, match=r"policy=.*'deterministic' \(the sorted list\) or 'plackett_luce'"):
            group_exposure_difference([1, 0], policy=wrong, **kw)
