"""What every metric accepts, and what it refuses: one test per kind of input."""

import array
import datetime
import uuid
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
from skfairrank.metrics import (
    group_exposure_difference,
    group_exposure_disparity,
    individual_exposure_disparity,
    kendall_tau_score,
    ndcg_score,
    stochastic_ndcg_score,
)

every_metric = pytest.mark.parametrize("name", METRICS)


@pytest.fixture
def data():
    return random_data(np.random.default_rng(0), [4, 3, 5], ids=[3, 8, 10])


class Query(Enum):
    LAST = 10
    FIRST = 3
    MIDDLE = 8


class Sex(Enum):
    MALE = "m"
    FEMALE = "f"


class Origin(Enum):
    """Values that have no order among them: sorted by name."""

    NORTH = None
    SOUTH = 1


def frame(values):
    return pd.DataFrame({"column": values})


QID_FORMS = {
    "list": list,
    "floats": lambda q: q.astype(float),
    "strings": lambda q: [f"{i:04d}" for i in q],
    "array of strings": lambda q: np.array([f"{i:04d}" for i in q]),
    "categorical": lambda q: pd.Categorical(q),
    "categorical of strings": lambda q: pd.Series([f"{i:04d}" for i in q], dtype="category"),
    "series with another index": lambda q: pd.Series(q, index=np.arange(len(q))[::-1]),
    "nullable ints": lambda q: pd.Series(q, dtype="Int64"),
    "dates": lambda q: pd.Timestamp("2020-01-01") + pd.to_timedelta(q, unit="D"),
    "ints beyond int64": lambda q: [2**63 + int(i) for i in q],
    "pyarrow": lambda q: pa.array(q),
    "pyarrow strings, chunked": lambda q: pa.chunked_array([[f"{i:04d}" for i in q[:5]], [f"{i:04d}" for i in q[5:]]]),
    "pyarrow, dictionary-encoded": lambda q: pa.array([f"{i:04d}" for i in q]).dictionary_encode(),
    "array.array": lambda q: array.array("q", q.tolist()),
    "enumeration": lambda q: [Query(int(i)) for i in q],
}


@every_metric
@pytest.mark.parametrize("form", QID_FORMS)
def test_form_of_qid_changes_nothing(name, form, data):
    same = METRICS[name](replace(data, qid=QID_FORMS[form](data.qid)), **sampling(name))
    assert same == METRICS[name](data, **sampling(name))


COLUMN_FORMS = {
    "list": list,
    "series with another index": lambda v: pd.Series(v, index=np.arange(len(v))[::-1]),
    "objects": lambda v: v.astype(object),
    "nullable": lambda v: pd.Series(v).convert_dtypes(),
    "pyarrow": lambda v: pa.array(v),
    "pyarrow, chunked": lambda v: pa.chunked_array([v[:5], v[5:]]),
    "pandas in pyarrow": lambda v: pd.Series(v).convert_dtypes(dtype_backend="pyarrow"),
    "array.array": lambda v: array.array("d", v.tolist()),
    "polars": lambda v: polars.Series(v),
}


@every_metric
@pytest.mark.parametrize("form", COLUMN_FORMS)
def test_form_of_the_columns_changes_nothing(name, form, data):
    make = COLUMN_FORMS[form]
    other = replace(data, y=make(data.y), s=make(data.s), s2=make(data.s2), g=make(data.g))
    assert METRICS[name](other, **sampling(name)) == METRICS[name](data, **sampling(name))


@every_metric
def test_polars(name, data):
    other = type(data)(**{key: polars.Series(value) for key, value in vars(data).items()})
    assert METRICS[name](other, **sampling(name)) == METRICS[name](data, **sampling(name))


@pytest.mark.parametrize("name", HAS_GROUPS)
def test_groups_as_table_categories_or_polars(name, data):
    letters = np.array(["A", "B"])[data.g]
    forms = [
        frame(letters),
        letters[:, None],
        pd.Categorical(letters),
        frame(pd.Categorical(letters)),
        pd.Index(letters),
    ]
    forms += [pd.Series(data.g == 1, dtype="boolean"), [bool(g) for g in data.g]]
    # Declared in another order: labels count by their value.
    forms += [pd.Series(pd.Categorical(letters, categories=["B", "A"]))]
    for g in forms:
        assert METRICS[name](replace(data, g=g), **sampling(name)) == METRICS[name](data, **sampling(name))
    forms = [pa.array(letters.tolist()), pa.array(data.g == 1), pa.table({"g": letters.tolist()})]
    forms += [
        pa.array(letters.tolist()).dictionary_encode(),
        pa.chunked_array([letters[:5].tolist(), letters[5:].tolist()]),
    ]
    forms += [[Sex.MALE if g else Sex.FEMALE for g in data.g], [Origin.SOUTH if g else Origin.NORTH for g in data.g]]
    forms += [pd.Series([Sex.MALE if g else Sex.FEMALE for g in data.g]), array.array("i", data.g.tolist())]
    forms += [
        [Decimal(int(g)) for g in data.g],
        np.where(data.g, "1", "0"),
        polars.Series(letters, dtype=polars.Categorical),
    ]
    for g in forms:
        assert METRICS[name](replace(data, g=g), **sampling(name)) == METRICS[name](data, **sampling(name))
    table = polars.DataFrame({"g": letters})
    assert METRICS[name](replace(data, g=table), **sampling(name)) == METRICS[name](data, **sampling(name))


@every_metric
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_query_ids_are_refused(name, missing, data):
    qid = list(data.qid)
    qid[2] = missing
    with pytest.raises(ValueError, match=r"qid.*missing"):
        METRICS[name](replace(data, qid=qid), **sampling(name))


@every_metric
def test_group_sizes_instead_of_ids_are_refused(name, data):
    with pytest.raises(ValueError, match=r"qid has 3 entries for 12 rows: give one query id per row, not group sizes"):
        METRICS[name](replace(data, qid=[4, 3, 5]), **sampling(name))


@every_metric
def test_missing_qid_names_the_remedy(name, data):
    with pytest.raises(ValueError, match=r"qid.*enable_metadata_routing=True"):
        METRICS[name](replace(data, qid=None), **sampling(name))


def test_qid_is_needed_to_tell_queries_apart():
    y, s = [1, 0, 1, 0], [0.9, 0.8, 0.2, 0.1]
    assert ndcg_score(y, s, qid=[0, 0, 1, 1]) == 1
    assert ndcg_score(y, s, qid=[0] * 4) == pytest.approx(0.919721, abs=1e-6)
    with pytest.raises(TypeError):
        ndcg_score(y, s)


@pytest.mark.parametrize("name", HAS_Y)
@pytest.mark.parametrize(
    "wrong, match",
    [
        ([-0.89, -0.53, -0.47, 0.39, 0.56], "(?i)negative"),
        ([1, 0, np.nan, 2, 1], "(?i)nan"),
        ([1, 0, None, 2, 1], "(?i)nan"),
        ([1, 0, np.inf, 2, 1], "(?i)inf"),
        (["a", "b", "c", "d", "e"], "(?i)convert|number"),
        ([1, 0, 1], "3 entries for 5 rows|rows"),
        (np.ones((5, 2)), "shape"),
    ],
)
def test_bad_relevances_are_refused(name, wrong, match):
    data = random_data(np.random.default_rng(0), [5])
    with pytest.raises(ValueError, match=match):
        METRICS[name](replace(data, y=wrong), **sampling(name))


@every_metric
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused(name, wrong, data):
    for key in ("s", "s2"):
        values = data.s.copy()
        values[3] = wrong
        if key == "s" or name == "kendall_tau":
            with pytest.raises(ValueError, match=r"(?i)nan|inf"):
                METRICS[name](replace(data, **{key: values}), **sampling(name))


@every_metric
def test_lengths_must_agree(name, data):
    with pytest.raises(ValueError, match=r"11.*12|12.*11"):
        METRICS[name](replace(data, s=data.s[1:]), **sampling(name))
    with pytest.raises(ValueError, match="shape"):
        METRICS[name](replace(data, s=np.ones((12, 2))), **sampling(name))
    if name in HAS_GROUPS:
        with pytest.raises(ValueError, match="sensitive_features has 11 entries for 12 rows"):
            METRICS[name](replace(data, g=data.g[1:]), **sampling(name))
    if name == "kendall_tau":
        with pytest.raises(ValueError, match="s1 has 12 rows, s2 has 11"):
            METRICS[name](replace(data, s2=data.s2[1:]))


@every_metric
def test_no_rows_are_refused(name, data):
    with pytest.raises(ValueError):
        METRICS[name](data.take(np.arange(0)), **sampling(name))


@pytest.mark.parametrize("name", HAS_GROUPS)
@pytest.mark.parametrize(
    "wrong, match",
    [
        (["A", None, "B", "B"], "1 missing"),
        (["A", float("nan"), "B", "B"], "1 missing"),
        ([0.0, 1.0, np.nan, np.nan], "2 missing"),
        (np.array(["A", None, "B", "B"], dtype=object), "1 missing"),
        (pd.Series([0, 1, None, 1], dtype="Int64"), "1 missing"),
        (pd.Categorical(["A", None, "B", "B"]), "1 missing"),
        (None, r"sensitive_features is missing.*enable_metadata_routing"),
        ([0.1, 0.5, 0.7, 0.9], "continuous"),
        (np.ones((4, 2)), "2 columns"),
        (pd.DataFrame({"age": [0, 1, 0, 1], "sex": [0, 0, 1, 1]}), "2 columns"),
        ("ABAB", "is the text 'ABAB': give one value per row"),
        ([1, "1", 1, "1"], "several kinds"),
    ],
)
def test_bad_groups_are_refused(name, wrong, match):
    data = random_data(np.random.default_rng(0), [4])
    with pytest.raises((ValueError, TypeError), match=match):
        METRICS[name](replace(data, g=wrong), **sampling(name))


AGES = np.tile([23, 45, 31, 52, 61, 29, 33, 40, 57, 38, 26, 44, 36, 48, 50, 66, 21, 34, 42, 27, 30, 59], 5)
BORN = [datetime.date(2024 - int(age), 1, 1) for age in AGES]
CONTINUOUS = {
    "ints": AGES,
    "small unsigned ints": AGES.astype(np.uint8),
    "list of ints": AGES.tolist(),
    "whole floats": AGES.astype(float),
    "objects": AGES.astype(object),
    "nullable ints": pd.Series(AGES, dtype="Int64"),
    "polars ints": polars.Series(AGES),
    "pyarrow ints": pa.array(AGES),
    "pandas ints in pyarrow": pd.Series(AGES, dtype="int64[pyarrow]"),
    "decimals": [Decimal(int(age)) for age in AGES],
    "fractions": [Fraction(int(age), 3) for age in AGES],
    "strings of numbers": AGES.astype(str),
    "strings of floats": [f"{age}.0" for age in AGES],
    "a column of strings": np.column_stack([AGES, AGES]).astype(str)[:, :1],
    "dates": BORN,
    "dates of NumPy": np.array(BORN, "M8[D]"),
    "dates of pandas": pd.Series(pd.to_datetime(BORN)),
    "dates of polars": polars.Series(BORN),
    "dates of pyarrow": pa.array(BORN),
    "dates as strings": [str(date) for date in BORN],
    "months": pd.PeriodIndex(BORN, freq="M"),
    "durations": pd.to_timedelta(AGES, unit="D"),
    "durations of Python": [datetime.timedelta(int(age)) for age in AGES],
    "three fractions": np.resize([0.25, 0.5, 0.75], len(AGES)),
    "three decimals": [Decimal(k % 3) / 4 for k in range(len(AGES))],
    "three ints": np.resize([0, 1, 2], len(AGES)),
    "three float16": np.resize(np.array([0.25, 0.5, 0.75], np.float16), len(AGES)),
    "three dates": np.resize(np.array(BORN[:3], "M8[D]"), len(AGES)),
}


@pytest.mark.parametrize("name", HAS_GROUPS)
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_continuous_attributes_are_refused_whatever_holds_them(name, kind):
    data = random_data(np.random.default_rng(0), [5] * 22)
    assert len(data.y) == len(AGES) and len(set(AGES.tolist())) == 22
    with pytest.raises(
        ValueError,
        match=r"continuous \(\d+ distinct values in 110 rows\).*astype\(str\).*Categorical|as text.*Categorical",
    ):
        METRICS[name](replace(data, g=CONTINUOUS[kind]), **sampling(name))


GROUPS = {
    "ten codes as text": np.resize(np.arange(10), 110).astype(str),
    "twenty codes": pd.Categorical(np.resize(np.arange(20), 110)),
    "two ints far apart": np.resize([3, 2**40], 110),
    "names": [f"name {k}" for k in range(110)],
    "many names of a categorical": pd.Categorical(AGES),
    "a table with a categorical": frame(pd.Categorical(AGES)),
    "a categorical of polars": polars.Series(AGES.astype(str)).cast(polars.Categorical),
    "a categorical of pyarrow": pa.array(AGES.astype(str)).dictionary_encode(),
    "bins": pd.cut(AGES.astype(float), 30),
    "two floats": np.resize([0.25, 0.75], 110),
    "two dates": np.resize(np.array(BORN[:2], "M8[D]"), 110),
    "words that read as numbers": np.resize(["nan", "inf", "one"], 110),
    "an enumeration of fractions": np.resize(
        np.array(list(Enum("Third", {"A": 0.1, "B": 0.2, "C": 0.3})), object), 110
    ),
}


@pytest.mark.parametrize("kind", GROUPS)
def test_labels_are_groups(kind):
    data = random_data(np.random.default_rng(0), [5] * 22)
    found = METRICS["difference"](replace(data, g=GROUPS[kind]))
    codes = pd.factorize(np.asarray(GROUPS[kind], dtype=object).ravel())[0]
    assert found == pytest.approx(
        METRICS["difference"](replace(data, g=np.char.add("group ", codes.astype(str)))), rel=1e-12
    )


@pytest.mark.parametrize("name", HAS_GROUPS)
@pytest.mark.parametrize(
    "wrong, match",
    [
        (np.array([b"ab", b"cd", b"ab", b"cd"], dtype="V2"), "records or raw bytes"),
        ([[1], [1, 2], [3], [4]], "list in the place of a single value"),
        (pa.array(["a", None, "b", "b"]), "1 missing"),
        (pa.array([True, None, False, True]), "1 missing"),
        (pa.table({"age": [1, 2, 1, 2], "sex": [1, 1, 2, 2]}), "2 columns"),
        (np.column_stack([["m", "f", "m", "f"], [23, 45, 31, 52]]), "2 columns"),
    ],
    ids=str,
)
def test_more_bad_groups_are_refused(name, wrong, match):
    data = random_data(np.random.default_rng(0), [4])
    with pytest.raises(ValueError, match=f"sensitive_features has .*{match}"):
        METRICS[name](replace(data, g=wrong), **sampling(name))


@pytest.mark.parametrize("metric", [ndcg_score, stochastic_ndcg_score])
def test_unknown_gain_is_refused(metric):
    with pytest.raises(ValueError, match=r"gain='exp'.*exp2.*linear"):
        metric([1, 0], [1, 0], qid=[0, 0], gain="exp")


@pytest.mark.parametrize("wrong", ["warn", None, np.inf, [0]])
def test_replacement_is_a_number(wrong):
    with pytest.raises(ValueError, match="replace_undefined_by"):
        ndcg_score([1, 0], [1, 0], qid=[0, 0], replace_undefined_by=wrong)


TAKES_POLICY = {
    "difference": lambda **kw: group_exposure_difference([1, 0], qid=[0, 0], sensitive_features=[0, 1], **kw),
    "disparity": lambda **kw: group_exposure_disparity([1, 1], [1, 0], qid=[0, 0], sensitive_features=[1, 0], **kw),
    "individual": lambda **kw: individual_exposure_disparity([1, 1], [1, 0], qid=[0, 0], **kw),
}


@pytest.mark.parametrize("name", TAKES_POLICY)
def test_names_of_policies(name):
    of = TAKES_POLICY[name]
    stochastic, in_order = of(policy="plackett_luce", n_samples="exact"), of(policy="deterministic")
    assert of(policy="plackett-luce", n_samples="exact") == stochastic
    assert 0 < stochastic < in_order
    assert of(n_samples="exact") == (in_order if name == "difference" else stochastic)
    for wrong in ("greedy", "Deterministic", None, 1, policies.Deterministic):
        with pytest.raises(ValueError, match=r"policy=.*'deterministic' \(the sorted list\) or 'plackett_luce'"):
            of(policy=wrong)


@every_metric
@pytest.mark.parametrize("wrong", ["sum", "MEAN", True, np.mean])
def test_unknown_reductions_are_refused(name, wrong, data):
    with pytest.raises(ValueError, match=r'reduce=.*"mean", or None'):
        METRICS[name](data, reduce=wrong, **sampling(name))


def test_unknown_rules_of_ties_are_refused():
    with pytest.raises(ValueError, match=r"ties='first'.*larger_label.*average"):
        TAKES_POLICY["disparity"](ties="first")


@pytest.mark.parametrize("name", HAS_Y)
@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
def test_missing_relevances_are_counted_and_a_way_out_is_named(name, missing, data):
    for make in (list, lambda y: pd.Series(y, dtype="Float64" if missing is pd.NA else "float64")):
        y = list(data.y)
        y[3] = y[5] = missing
        with pytest.raises(
            ValueError, match=r"y contains NaN \(2 of 12 values, the first in row 3\).*leave out the rows"
        ):
            METRICS[name](replace(data, y=make(y)), **sampling(name))
    with pytest.raises(ValueError, match=r"y is missing \(None\): give one relevance"):
        METRICS[name](replace(data, y=None), **sampling(name))


def test_relevances_and_scores_of_any_number_type():
    y, s, qid = [2, 0, 1], [3, 2, 1], [0, 0, 0]
    expected = ndcg_score(y, s, qid=qid)
    for dtype in (np.int8, np.uint8, np.int64, np.float16, np.float32):
        assert ndcg_score(np.array(y, dtype), np.array(s, dtype), qid=qid) == expected
        assert kendall_tau_score(np.array(s, dtype), np.array(s[::-1], dtype), qid=qid) == -1
    assert ndcg_score([True, False], [1, 0], qid=[0, 0]) == 1


@pytest.mark.parametrize("which", ["y", "s"])
def test_masked_values_are_missing(which):
    data = {"y": np.array([1.0, 0.0]), "s": np.array([1.0, 2.0])}
    data[which] = np.ma.array(data[which], mask=[False, True])
    with pytest.raises(ValueError, match=f"{which} has 1 masked"):
        ndcg_score(data["y"], data["s"], qid=[0, 0])


def test_ids_of_a_kind_that_pandas_does_not_know():
    ids = [uuid.UUID(int=k) for k in (7, 3)]
    y, s = [3, 0, 1, 2], [0.5, 0.25, 0.75, 1.0]
    assert ndcg_score(y, s, qid=[ids[k] for k in (0, 1, 0, 1)]) == ndcg_score(y, s, qid=[1, 0, 1, 0])
