"""What metrics accept and refuse: each reader once, and each metric once for each of its arguments.

Ids are read by `Queries.from_qid` (test_queries.py); here are relevances, scores and groups.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars
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
