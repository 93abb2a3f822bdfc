"""Queries: any qid becomes a row order plus offsets, or a clear error."""

import datetime
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairrank._checks import as_values
from skfairrank._queries import Queries

# The same five rows in three queries, as any sortable kind of id; a, b, c stand for the queries in sorted order.
PATTERN = "cabac"
KINDS = {
    "uint64 beyond int64": lambda: np.array([{"a": 0, "b": 2**63, "c": 2**64 - 1}[p] for p in PATTERN], np.uint64),
    "Series with another index": lambda: pd.Series(list(PATTERN), index=[9, 8, 7, 6, 5]),
    "categorical declared in another order": lambda: pd.Categorical(list(PATTERN), categories=list("bca"), ordered=True),
    "python dates": lambda: [{"a": datetime.date(2019, 1, 1), "b": datetime.date(2020, 1, 1), "c": datetime.date(2020, 2, 1)}[p]
                             for p in PATTERN],
    "polars strings": lambda: pl.Series(list(PATTERN)),
    "ints beyond 2**53 among floats": lambda: [{"a": 0.5, "b": 2**53, "c": 2**53 + 1}[p] for p in PATTERN],
    "decimals": lambda: [Decimal({"a": "0.1", "b": "0.25", "c": "3"}[p]) for p in PATTERN],
    "members of an enumeration without order": lambda: [{"a": Mixed.ALL, "b": Mixed.NONE, "c": Mixed.SOME}[p] for p in PATTERN],
}  # fmt: skip


# pyarrow's containers have no comparison with Python's values; what they stand for is given beside them.


ARROW = {
    "ints beyond int64": lambda: (pa.array([2**63, 0, 1, 0, 2**63], pa.uint64()), [0, 1, 2**63]),
    "dictionary-encoded": lambda: (pa.array(list(PATTERN)).dictionary_encode(), list("abc")),
}  # fmt: skip


@pytest.mark.parametrize("kind", ARROW)
def test_every_kind_of_pyarrow_array(kind):
    qid, ids = ARROW[kind]()
    queries = Queries.from_qid(qid, 5)
    assert queries.codes.tolist() == [2, 0, 1, 0, 2] and queries.ids.tolist() == ids


class Mixed(Enum):
    """Values of several kinds: sorted by name."""

    NONE = None
    SOME = "some"
    ALL = 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_id_is_grouped_in_sorted_order(kind):
    queries = Queries.from_qid(KINDS[kind](), 5)
    assert queries.order.tolist() == [1, 3, 2, 0, 4]
    assert queries.offsets.tolist() == [0, 2, 3, 5]
    assert queries.codes.tolist() == [2, 0, 1, 0, 2]
    assert queries.sizes.tolist() == [2, 1, 2]
    assert (queries.n_rows, queries.n_queries) == (5, 3)
    assert [queries.rows(k).tolist() for k in range(3)] == [[1, 3], [2], [0, 4]]
    assert queries.order.dtype == queries.offsets.dtype == np.int64
    given_ids = list(np.array(list(KINDS[kind]()), object))
    assert list(queries.ids) == [given_ids[1], given_ids[2], given_ids[0]]


def test_both_zeros_are_one_query_grouped_or_not():
    assert Queries.from_qid([0.0, -0.0, 1.0], 3).offsets.tolist() == [0, 2, 3]
    assert Queries.from_qid([1.0, 0.0, -0.0], 3).offsets.tolist() == [0, 2, 3]


MISSING = {
    "NaN among floats": lambda: [1.0, np.nan, 1.0],
    "pd.NA among strings": lambda: ["a", pd.NA, "b"],
    "categorical": lambda: pd.Categorical(["a", None, "b"]),
    "NaT": lambda: np.array(["2020-01-01", "NaT", "2020-01-01"], "M8[D]"),
    "NaN among ints beyond int64": lambda: [2**63, np.nan, 1],
    "pyarrow, dictionary-encoded": lambda: pa.array(["a", None, "b"]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_ids_are_an_error_that_names_qid_and_counts_them(kind):
    with pytest.raises(ValueError, match="qid has 1 missing"):
        Queries.from_qid(MISSING[kind](), 3)


WHEN, NESTED = datetime.datetime(2020, 1, 1), r"qid has a (list|ndarray|dict) in the place of a single value"
COARSE = r"qid has .*from 2\*\*{} on.*Give ints or strings"
BAD = [
    ([3, 2], 5, r"2 entries for 5 rows.*one query id per row, not group sizes"),  # case 4
    (None, 3, r"set_config\(enable_metadata_routing=True\).*belongs to the thread: in another one .*there"),  # case 5
    ([], 0, "qid is empty"),
    (np.array([2, "a", 1], object), 3, "several kinds"),
    ([WHEN, WHEN.replace(tzinfo=datetime.UTC)], 2, "qid has values that cannot be sorted among themselves"),
    ([1j, 2.0], 2, "qid holds complex"),
    (np.zeros((3, 1)), 3, "qid has shape"),
    ([[1, 2], [3], [4]], 3, NESTED),
    (pl.Series([[1], [2], [1]]), 3, NESTED),
    (
        np.array([(1, 2), (1, 3), (1, 2)], dtype=[("query", int), ("row", int)]),
        3,
        r"qid has the dtype .*one id per row",
    ),
    ([2.0**53, 2.0**53 + 2, 1.0], 3, COARSE.format(53)),
    (np.array([2**63, 2**63 + 1, 1]), 3, COARSE.format(53)),  # an array of floats, since NumPy made it so
    (np.array([2**24 + 1, 2**24, 1], np.float32), 3, COARSE.format(24)),
    (np.array([2**53 + 1, 2.0**53, 1], object), 3, COARSE.format(53)),
]


@pytest.mark.parametrize("qid, n_rows, message", BAD, ids=str)
def test_what_is_no_qid_is_an_error_with_the_remedy(qid, n_rows, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Queries.from_qid(qid, n_rows)
    with pytest.raises((ValueError, TypeError), match="qid_reference"):
        Queries.from_qid([1, 2], 3, name="qid_reference")


def test_grouped_rows_in_another_order_of_queries_are_reordered():
    """Query by query is not enough: results must follow the sorted ids."""
    queries = Queries.from_qid([2, 2, 1], 3)
    assert not queries.is_grouped and queries.group(np.array([7, 8, 9])).tolist() == [9, 7, 8]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.sampled_from([int, float, str]))
@settings(deadline=None, derandomize=True)
def test_grouping_is_a_stable_sort_and_ungroup_its_inverse(ids, kind):
    ids = np.array([kind(i) for i in ids])
    n = len(ids)
    queries = Queries.from_qid(ids, n)
    assert queries.order.tolist() == sorted(range(n), key=lambda i: ids[i])  # Python's sort is stable
    assert queries.ids.tolist() == sorted(set(ids.tolist()))
    grouped = queries.group(ids)
    assert (np.repeat(queries.ids, queries.sizes) == grouped).all()
    values = np.arange(2.0 * n).reshape(n, 2)
    assert (queries.ungroup(queries.group(values)) == values).all()
    assert (queries.group(queries.ungroup(values)) == values).all()
    assert (queries.ungroup(queries.group(values.T, axis=1), axis=1) == values.T).all()
    assert (queries.ids[queries.codes] == ids).all()
    assert queries.is_grouped == (queries.order == np.arange(n)).all()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.randoms(use_true_random=False))
@settings(deadline=None, derandomize=True)
def test_a_subset_of_queries_describes_the_same_rows(ids, random):
    ids = np.array(ids)
    queries = Queries.from_qid(ids, len(ids))
    chosen = np.array(random.sample(range(queries.n_queries), random.randint(1, queries.n_queries)))
    subset = queries.subset(chosen)
    assert subset.ids.tolist() == queries.ids[chosen].tolist()
    assert subset.sizes.tolist() == queries.sizes[chosen].tolist()
    assert subset.n_rows == queries.sizes[chosen].sum()
    for position, k in enumerate(chosen):
        assert subset.rows(position).tolist() == queries.rows(k).tolist()
    # Values still come for all rows.
    assert subset.group(ids).tolist() == [i for k in chosen for i in ids[queries.rows(k)]]


def test_values_are_centred_and_queries_cut_into_blocks():
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(0, 40, 200))
    queries, values = Queries.from_qid(ids, 200), rng.normal(size=(200, 2))
    expected = values - pd.DataFrame(values).groupby(ids).transform("mean")
    np.testing.assert_allclose(queries.centre(values), expected, atol=1e-14)
    np.testing.assert_allclose(queries.centre(values[:, 0]), expected[0], atol=1e-14)
    for most in (1, 12, 500):
        blocks = list(queries.blocks(most))
        assert [first for first, _ in blocks] == [0, *(last for _, last in blocks[:-1])] and blocks[-1][
            1
        ] == queries.n_queries
        assert all(queries.sizes[a:b].sum() <= most or b == a + 1 for a, b in blocks)


def test_values_differ_within_a_query_or_only_between():
    queries = Queries.from_qid(list(PATTERN), 5)  # grouped: a, a, b, c, c
    assert queries.differ_within(np.array([1.0, 1.0, 2.0, 3.0, 4.0])).tolist() == [False, False, True]
    assert not queries.differ_within(np.array([1, 1, 2, 0, 0])).any()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_by_id_find_every_kind_of_id(kind):
    """As keys of a dict or labels of a Series; further ids and the order of the entries do not matter."""
    ids = KINDS[kind]()
    queries = Queries.from_qid(ids, 5)
    values = list(as_values(ids))
    of_id = {values[i]: weight for i, weight in ((4, 3.0), (1, 1.0), (2, 2.0))}
    assert queries.weights(of_id).tolist() == [1, 2, 3]
    two = queries.subset(np.array([2, 0]))
    assert two.weights(of_id).tolist() == [3, 1]
    if kind != "ints beyond 2**53 among floats":  # of which pandas makes an index of rounded floats
        assert queries.weights(pd.Series(list(of_id.values()), index=list(of_id))).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "query_weight",
    [
        [3, 1, 2, 1, 3],
        pd.Series([3.0, 1, 2, 1, 3], index=[3, 9, 7, 1, 0]),  # as many entries as rows: row by row
        pa.array([3, 1, 2, 1, 3]),
        [1, 2, 3],
        {"c": 3, "a": 1, "b": 2, "z": -1},
        pd.Series({"c": 3, "a": 1, "b": 2, "z": np.nan}),
    ],
)
def test_weights_by_row_by_query_and_by_id_are_the_same(query_weight):
    queries = Queries.from_qid(list(PATTERN), 5)
    weights = queries.weights(query_weight)
    assert weights.dtype == np.float64 and weights.tolist() == [1, 2, 3]
    assert queries.weights(None) is None and queries.weights([0, 0, 2]).tolist() == [0, 0, 2]
    # Where each row is a query, a list follows the rows and not the sorted ids.
    assert Queries.from_qid(["b", "a"], 2).weights([1, 2]).tolist() == [2, 1]


@pytest.mark.parametrize(
    "query_weight, match",
    [
        ([3, 1, 2, 5, 3], r"differs within query 'a' \(1 and 5\): a query has one weight"),
        ([1, 2], r"shape \(2,\) for 5 rows in 3 queries: give one number per row, or one per query"),
        (3.0, r"query_weight is not an array of numbers"),
        (np.ones((3, 2)), r"shape \(3, 2\)"),
        ([1, 2, np.nan], "query_weight contains NaN"),
        (["few", "more", "most"], "query_weight is not an array of numbers"),
        ([1, -2, 3], r"of query 'b' is -2: weights must be >= 0"),
        ([0, 0, 0], "zero for every query"),
        ({"a": 1, "z": 2}, r"no weight for 2 of 3 queries \('b', 'c'\); it has ids such as \['a', 'z'\]"),
        (pd.Series([1, 2, 3, 4], index=["a", "b", "c", "b"]), "its index has 'b' twice"),
        (pd.Series([1, 2, 3]), r"no weight for 3 of 3 queries"),
    ],
)
def test_other_weights_are_refused(query_weight, match):
    with pytest.raises(ValueError, match=match):
        Queries.from_qid(list(PATTERN), 5).weights(query_weight)
