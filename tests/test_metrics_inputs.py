"""What every metric accepts, and what it refuses: one test per kind of input."""

import uuid
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from metrics_under_test import HAS_GROUPS, HAS_Y, METRICS, random_data, sampling

from skfairrank.metrics import (
    group_exposure_difference,
    group_exposure_disparity,
    kendall_tau_score,
    ndcg_score,
    stochastic_ndcg_score,
)

every_metric = pytest.mark.parametrize("name", METRICS)


@pytest.fixture
def data():
    return random_data(np.random.default_rng(0), [4, 3, 5], ids=[3, 8, 10])


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
}


@every_metric
@pytest.mark.parametrize("form", COLUMN_FORMS)
def test_form_of_the_columns_changes_nothing(name, form, data):
    make = COLUMN_FORMS[form]
    other = replace(data, y=make(data.y), s=make(data.s), s2=make(data.s2), g=make(data.g))
    assert METRICS[name](other, **sampling(name)) == METRICS[name](data, **sampling(name))


@every_metric
def test_polars(name, data):
    polars = pytest.importorskip("polars")
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
    polars = pytest.importorskip("polars")
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
        ("ABAB", r"shape \(\)"),
        ([1, "1", 1, "1"], "several kinds"),
    ],
)
def test_bad_groups_are_refused(name, wrong, match):
    data = random_data(np.random.default_rng(0), [4])
    with pytest.raises(ValueError, match=match):
        METRICS[name](replace(data, g=wrong), **sampling(name))


def test_disparity_compares_two_groups():
    with pytest.raises(ValueError, match=r"3 groups \('A', 'B', 'C'\).*group_exposure_difference"):
        group_exposure_disparity([1, 1, 1], [1, 2, 3], qid=[0, 0, 1], sensitive_features=list("ABC"))
    with pytest.raises(ValueError, match=r"9 groups \(0, 1, 2, 3, \.\.\.\)"):
        group_exposure_disparity(np.ones(9), np.ones(9), qid=np.zeros(9), sensitive_features=np.arange(9))


@pytest.mark.parametrize("metric", [ndcg_score, stochastic_ndcg_score])
def test_unknown_gain_is_refused(metric):
    with pytest.raises(ValueError, match=r"gain='exp'.*exp2.*linear"):
        metric([1, 0], [1, 0], qid=[0, 0], gain="exp")


@pytest.mark.parametrize("wrong", ["warn", None, np.inf, [0]])
def test_replacement_is_a_number(wrong):
    with pytest.raises(ValueError, match="replace_undefined_by"):
        ndcg_score([1, 0], [1, 0], qid=[0, 0], replace_undefined_by=wrong)


def test_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="policy='greedy'"):
        group_exposure_difference([1, 0], qid=[0, 0], sensitive_features=[0, 1], policy="greedy")


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
