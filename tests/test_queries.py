"""Queries: any qid becomes a row order plus offsets, or a clear error."""

import array
import datetime
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from enum import Enum, StrEnum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairrank._checks import as_values
from skfairrank._queries import Queries

# The same five rows in three queries, as any sortable kind of id; a, b, c stand for the queries in sorted order.
PATTERN = "cabac"
KINDS = {
    "list of ints": lambda: [{"a": -3, "b": 3, "c": 10}[p] for p in PATTERN],
    "tuple": lambda: tuple({"a": -3, "b": 3, "c": 10}[p] for p in PATTERN),
    "int32": lambda: np.array([{"a": -3, "b": 3, "c": 10}[p] for p in PATTERN], np.int32),
    "uint64 beyond int64": lambda: np.array([{"a": 0, "b": 2**63, "c": 2**64 - 1}[p] for p in PATTERN], np.uint64),
    "big int64": lambda: np.array([{"a": 2**60, "b": 2**60 + 1, "c": 2**60 + 2}[p] for p in PATTERN]),
    "bigger than 64 bits": lambda: [{"a": 1, "b": 2**70, "c": 2**70 + 1}[p] for p in PATTERN],
    "object ints": lambda: np.array([{"a": 2, "b": 9, "c": 10}[p] for p in PATTERN], object),
    "list of strings": lambda: list(PATTERN),
    "fixed-width strings": lambda: np.array(list(PATTERN)),
    "bytes": lambda: np.array([p.encode() for p in PATTERN]),
    "numbers as strings": lambda: [{"a": "10", "b": "9", "c": "91"}[p] for p in PATTERN],
    "floats": lambda: [{"a": 1.0, "b": 1.5, "c": 2.0}[p] for p in PATTERN],
    "float32": lambda: np.array([{"a": 0.1, "b": 0.2, "c": 0.3}[p] for p in PATTERN], np.float32),
    "infinite floats": lambda: np.array([{"a": -np.inf, "b": 0.0, "c": np.inf}[p] for p in PATTERN]),
    "Series with another index": lambda: pd.Series(list(PATTERN), index=[9, 8, 7, 6, 5]),
    "pandas string dtype": lambda: pd.Series(list(PATTERN), dtype="string"),
    "nullable Int64": lambda: pd.array([{"a": 1, "b": 2, "c": 3}[p] for p in PATTERN], dtype="Int64"),
    "Index": lambda: pd.Index(list(PATTERN)),
    "categorical": lambda: pd.Categorical(list(PATTERN)),
    "categorical declared in another order": lambda: pd.Categorical(list(PATTERN), categories=list("bca"), ordered=True),
    "Series of categoricals of ints, declared in another order": lambda: pd.Series(
        pd.Categorical([{"a": 1, "b": 2, "c": 3}[p] for p in PATTERN], categories=[3, 1, 2])
    ),
    "datetime64": lambda: np.array([{"a": "2019-12-31", "b": "2020-01-01", "c": "2020-10-01"}[p] for p in PATTERN], "M8[D]"),
    "dates with a time zone": lambda: pd.Series(
        pd.to_datetime([{"a": "2019", "b": "2020", "c": "2021"}[p] for p in PATTERN]).tz_localize("UTC")
    ),
    "python dates": lambda: [{"a": datetime.date(2019, 1, 1), "b": datetime.date(2020, 1, 1), "c": datetime.date(2020, 2, 1)}[p]
                             for p in PATTERN],
    "timedeltas": lambda: np.array([{"a": 1, "b": 2, "c": 30}[p] for p in PATTERN], "m8[s]"),
    "polars strings": lambda: pl.Series(list(PATTERN)),
    "polars ints": lambda: pl.Series([{"a": 1, "b": 2, "c": 3}[p] for p in PATTERN]),
    "polars categorical": lambda: pl.Series(list(PATTERN), dtype=pl.Categorical),
    "list of ints beyond int64": lambda: [{"a": 1, "b": 2**63, "c": 2**63 + 1}[p] for p in PATTERN],
    "tuple of ints beyond int64 and negative ones": lambda: tuple({"a": -1, "b": 2**63, "c": 2**63 + 1}[p] for p in PATTERN),
    "list of negative ints beyond int64": lambda: [{"a": -(2**63) - 2, "b": -(2**63) - 1, "c": 0}[p] for p in PATTERN],
    "list of NumPy ints of two kinds": lambda: [
        {"a": np.int64(-1), "b": np.uint64(2**63), "c": np.uint64(2**63 + 1)}[p] for p in PATTERN
    ],
    "ints beyond 2**53 among floats": lambda: [{"a": 0.5, "b": 2**53, "c": 2**53 + 1}[p] for p in PATTERN],
    "Series of ints beyond int64": lambda: pd.Series([{"a": -1, "b": 2**63, "c": 2**63 + 1}[p] for p in PATTERN]),
    "nullable UInt64": lambda: pd.array(np.array([{"a": 1, "b": 2**63, "c": 2**63 + 1}[p] for p in PATTERN], np.uint64)),
    "categorical of ints beyond int64": lambda: pd.Categorical([{"a": 1, "b": 2**63, "c": 2**63 + 1}[p] for p in PATTERN]),
    "array.array": lambda: array.array("q", [{"a": 1, "b": 2, "c": 3}[p] for p in PATTERN]),
    "array.array of floats": lambda: array.array("d", [{"a": 1, "b": 2, "c": 3}[p] for p in PATTERN]),
    "decimals": lambda: [Decimal({"a": "0.1", "b": "0.25", "c": "3"}[p]) for p in PATTERN],
    "members of an enumeration": lambda: [{"a": Plan.TRIAL, "b": Plan.BASIC, "c": Plan.PREMIUM}[p] for p in PATTERN],
    "members of an enumeration without order": lambda: [{"a": Mixed.ALL, "b": Mixed.NONE, "c": Mixed.SOME}[p] for p in PATTERN],
    "members of an enumeration of strings": lambda: pd.Series([Word(p) for p in PATTERN]),
    "polars UInt64": lambda: pl.Series([{"a": 1, "b": 2**63, "c": 2**63 + 1}[p] for p in PATTERN], dtype=pl.UInt64),
    "pandas strings in pyarrow": lambda: pd.Series(list(PATTERN), dtype="string[pyarrow]"),
    "pandas ints in pyarrow": lambda: pd.Series([{"a": 1, "b": 2, "c": 3}[p] for p in PATTERN], dtype="int64[pyarrow]"),
    "a strided view": lambda: np.repeat([{"a": 1, "b": 2, "c": 3}[p] for p in PATTERN], 2)[::2],
    "read-only": lambda: np.frombuffer(np.array([{"a": 1, "b": 2, "c": 3}[p] for p in PATTERN]).tobytes(), np.int64),
}  # fmt: skip


# pyarrow's containers have no comparison with Python's values; what they stand for is given beside them.
ARROW = {
    "strings": lambda: (pa.array(list(PATTERN)), list("abc")),
    "large strings": lambda: (pa.array(list(PATTERN), pa.large_string()), list("abc")),
    "ints": lambda: (pa.array([{"a": 1, "b": 2, "c": 3}[p] for p in PATTERN]), [1, 2, 3]),
    "ints beyond int64": lambda: (
        pa.array([{"a": 1, "b": 2**63, "c": 2**63 + 1}[p] for p in PATTERN], pa.uint64()),
        [1, 2**63, 2**63 + 1],
    ),
    "dictionary-encoded": lambda: (pa.array(list(PATTERN)).dictionary_encode(), list("abc")),
    "chunked": lambda: (pa.chunked_array([list(PATTERN[:2]), list(PATTERN[2:])]), list("abc")),
    "chunked ints": lambda: (pa.chunked_array([[3, 1], [2, 1, 3]]), [1, 2, 3]),
    "chunked and dictionary-encoded": lambda: (
        pa.chunked_array([list(PATTERN[:2]), list(PATTERN[2:])]).dictionary_encode(),
        list("abc"),
    ),
    "a column of a table": lambda: (pa.table({"qid": list(PATTERN)})["qid"], list("abc")),
    "dates": lambda: (
        pa.array([datetime.date({"a": 2019, "b": 2020, "c": 2021}[p], 1, 1) for p in PATTERN]),
        [datetime.date(year, 1, 1) for year in (2019, 2020, 2021)],
    ),
    "decimals": lambda: (
        pa.array([Decimal({"a": "0.10", "b": "0.25", "c": "3.00"}[p]) for p in PATTERN]),
        [Decimal("0.10"), Decimal("0.25"), Decimal("3.00")],
    ),
}


@pytest.mark.parametrize("kind", ARROW)
def test_every_kind_of_pyarrow_array(kind):
    qid, ids = ARROW[kind]()
    queries = Queries.from_qid(qid, 5)
    assert queries.codes.tolist() == [2, 0, 1, 0, 2] and queries.ids.tolist() == ids


def test_pyarrow_booleans_are_two_queries():
    for qid in (pa.array([True, False, True]), pa.chunked_array([[True], [False, True]])):
        assert Queries.from_qid(qid, 3).codes.tolist() == [1, 0, 1]


class Plan(Enum):
    PREMIUM = 30
    TRIAL = 0
    BASIC = 10


class Mixed(Enum):
    """Values of several kinds: sorted by name."""

    NONE = None
    SOME = "some"
    ALL = 1


class Word(StrEnum):
    C, B, A = "c", "b", "a"


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


def test_booleans_are_two_queries():
    queries = Queries.from_qid([True, False, True], 3)
    assert queries.ids.tolist() == [False, True] and queries.order.tolist() == [1, 0, 2]


def test_both_zeros_are_one_query_grouped_or_not():
    assert Queries.from_qid([0.0, -0.0, 1.0], 3).offsets.tolist() == [0, 2, 3]
    assert Queries.from_qid([1.0, 0.0, -0.0], 3).offsets.tolist() == [0, 2, 3]


@pytest.mark.parametrize("dtype", [">i8", ">f4", ">u2"])
def test_foreign_byte_order_is_no_matter(dtype):
    """As NumPy reads it from files written on other machines."""
    assert Queries.from_qid(np.array([2, 1, 2], dtype), 3).order.tolist() == [1, 0, 2]


MISSING = {
    "NaN among floats": lambda: [1.0, np.nan, 1.0],
    "None among ints": lambda: [1, None, 1],
    "None among strings": lambda: ["a", None, "b"],
    "NaN among strings": lambda: np.array(["a", np.nan, "b"], object),
    "NaN among strings in a list": lambda: ["a", np.nan, "b"],
    "pd.NA among strings": lambda: ["a", pd.NA, "b"],
    "nullable Int64": lambda: pd.array([1, None, 2], dtype="Int64"),
    "pandas strings": lambda: pd.array(["a", None, "b"], dtype="string"),
    "categorical": lambda: pd.Categorical(["a", None, "b"]),
    "NaT": lambda: np.array(["2020-01-01", "NaT", "2020-01-01"], "M8[D]"),
    "polars": lambda: pl.Series([1, None, 2]),
    "polars strings": lambda: pl.Series(["a", None, "b"]),
    "None among ints beyond int64": lambda: [2**63, None, 1],
    "NaN among ints beyond int64": lambda: [2**63, np.nan, 1],
    "pyarrow ints": lambda: pa.array([1, None, 2]),
    "pyarrow strings": lambda: pa.array(["a", None, "b"]),
    "pyarrow booleans": lambda: pa.array([True, None, False]),
    "pyarrow, dictionary-encoded": lambda: pa.array(["a", None, "b"]).dictionary_encode(),
    "pyarrow, chunked": lambda: pa.chunked_array([["a"], [None, "b"]]),
    "pandas ints in pyarrow": lambda: pd.Series([1, None, 2], dtype="int64[pyarrow]"),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_ids_are_an_error_that_names_qid_and_counts_them(kind):
    with pytest.raises(ValueError, match="qid has 1 missing"):
        Queries.from_qid(MISSING[kind](), 3)


def test_masked_ids_are_missing():
    with pytest.raises(ValueError, match="qid"):
        Queries.from_qid(np.ma.array([1, 2, 3], mask=[False, True, False]), 3)


@pytest.mark.parametrize(
    "qid",
    [
        np.array([2, "a", 1], object),
        [1, "1", 2],
        ["a", 1, "b"],
        np.array([2, (1, 2), "a"], object),
        np.array([2, datetime.date(2020, 1, 1)], object),
    ],
)
def test_mixed_kinds_of_ids_are_an_error(qid):
    with pytest.raises(TypeError, match="qid"):
        Queries.from_qid(qid, len(qid))


def test_group_sizes_instead_of_ids_are_an_error():
    """Case 4."""
    with pytest.raises(ValueError, match=r"2 entries for 5 rows.*one query id per row, not group sizes"):
        Queries.from_qid([3, 2], 5)


@pytest.mark.parametrize("qid", [np.zeros((3, 1)), np.zeros((1, 3)), 3, [(1, 2), (3, 4), (5, 6)], {1, 2, 3}])
def test_ids_that_are_not_one_dimensional_are_an_error(qid):
    with pytest.raises(ValueError, match="qid has shape"):
        Queries.from_qid(qid, 3)


@pytest.mark.parametrize(
    "qid",
    [
        [[1, 2], [3], [4]],
        [[1], 2, 3],
        [1, [2, 3], 4],
        [np.zeros(2), np.zeros(3), np.zeros(1)],
        np.array([[1], [2, 3], [1]], object),
        [{"q": 1}, {"q": 2}, {"q": 1}],
        pa.array([[1], [2], [1]]),
        pl.Series([[1], [2], [1]]),
    ],
    ids=lambda qid: type(qid).__name__,
)
def test_ragged_and_nested_ids_are_an_error_that_says_so(qid):
    with pytest.raises(
        ValueError, match=r"qid has a (list|ndarray|dict) in the place of a single value: give one value per row"
    ):
        Queries.from_qid(qid, 3)


@pytest.mark.parametrize(
    "qid",
    [
        np.array([b"ab", b"cd", b"ab"], dtype="V2"),
        np.array([(1, 2), (1, 3), (1, 2)], dtype=[("query", int), ("row", int)]),
        np.rec.array([(1, 2.0), (1, 3.0), (1, 2.0)], dtype=[("query", int), ("row", float)]),
    ],
    ids=["void", "structured", "record"],
)
def test_records_and_raw_bytes_are_an_error_that_names_the_dtype(qid):
    with pytest.raises(TypeError, match=r"qid has the dtype .*one id per row"):
        Queries.from_qid(qid, 3)


def test_ids_without_an_order_among_them_are_an_error():
    when = datetime.datetime(2020, 1, 1)
    with pytest.raises(TypeError, match="qid has values that cannot be sorted among themselves"):
        Queries.from_qid([when, when.replace(tzinfo=datetime.UTC)], 2)


@pytest.mark.parametrize(
    "qid, digits",
    [
        ([2.0**53, 2.0**53 + 2, 1.0], 53),
        (np.array([2**63, 2**63 + 1, 1]), 53),  # an array of floats, since NumPy made it so
        (np.array([-(2.0**53), 0, 1]), 53),
        (pd.Series([2**60 + 1, 2**60, 1], dtype=float), 53),
        (np.array([2**24 + 1, 2**24, 1], np.float32), 24),
        (np.array([2**11 + 1, 2**11, 1], np.float16), 11),
        (np.array([2**53 + 1, 2.0**53, 1], object), 53),
        (array.array("d", [2.0**53, 1, 2]), 53),
        (pl.Series([2.0**53, 1, 2]), 53),
    ],
    ids=str,
)
def test_floats_that_cannot_tell_ids_apart_are_an_error(qid, digits):
    with pytest.raises(ValueError, match=rf"qid has .*from 2\*\*{digits} on.*Give ints or strings"):
        Queries.from_qid(qid, 3)


def test_floats_below_that_bound_are_ids():
    for dtype, digits in ((np.float64, 53), (np.float32, 24), (np.float16, 11)):
        qid = np.array([2**digits - 1, 2**digits - 2, 0.5], dtype)
        assert Queries.from_qid(qid, 3).codes.tolist() == [2, 1, 0]


def test_complex_ids_are_an_error():
    with pytest.raises(TypeError, match="qid holds complex"):
        Queries.from_qid([1j, 2.0], 2)


def test_no_rows_are_an_error():
    with pytest.raises(ValueError, match="qid is empty"):
        Queries.from_qid([], 0)


def test_no_ids_are_an_error_with_the_remedy():
    """Case 5: inside scikit-learn's searches, qid goes missing where metadata routing is off."""
    with pytest.raises(ValueError, match=r"sklearn\.set_config\(enable_metadata_routing=True\)"):
        Queries.from_qid(None, 3)


def test_the_remedy_says_that_the_setting_belongs_to_a_thread():
    """In another thread it was not made, whatever the main thread did."""
    with sklearn.config_context(enable_metadata_routing=True), ThreadPoolExecutor(1) as pool:
        assert not pool.submit(sklearn.get_config).result()["enable_metadata_routing"]
    with pytest.raises(ValueError, match=r"belongs to the thread: in another one .*there"):
        Queries.from_qid(None, 3)


def test_messages_use_the_name_of_the_argument():
    with pytest.raises(ValueError, match="^qid_reference has 2 entries"):
        Queries.from_qid([1, 2], 3, name="qid_reference")


@pytest.mark.parametrize("qid", [[1, 1, 2, 5, 5], ["a", "a", "b", "c", "c"], [0.5, 0.5, 0.5, 0.5, 0.5]])
def test_rows_that_lie_together_are_not_copied(qid):
    queries = Queries.from_qid(qid, 5)
    values = np.arange(5.0)
    assert queries.is_grouped and queries.group(values) is values and queries.ungroup(values) is values


def test_grouped_rows_in_another_order_of_queries_are_reordered():
    """Query by query is not enough: results must follow the sorted ids."""
    queries = Queries.from_qid([2, 2, 1], 3)
    assert not queries.is_grouped and queries.group(np.array([7, 8, 9])).tolist() == [9, 7, 8]


def test_a_single_query_holds_all_rows():
    queries = Queries.single(3)
    assert (queries.ids.tolist(), queries.order.tolist(), queries.offsets.tolist()) == ([0], [0, 1, 2], [0, 3])
    assert queries.is_grouped and queries.codes.tolist() == [0, 0, 0]


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


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.randoms(use_true_random=False))
@settings(deadline=None, derandomize=True)
def test_interleaving_queries_changes_nothing_in_grouped_order(ids, random):
    """Any shuffle that keeps the rows of each query in order gives the same grouped values."""
    ids = np.sort(ids)
    values = np.arange(len(ids))
    left = {i: values[ids == i].tolist() for i in set(ids.tolist())}
    turns = ids.tolist()
    random.shuffle(turns)
    rows = [left[i].pop(0) for i in turns]
    assert Queries.from_qid(ids[rows], len(ids)).group(values[rows]).tolist() == values.tolist()


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
        np.array([3, 1, 2, 1, 3], np.float32),
        pd.Series([3.0, 1, 2, 1, 3], index=[3, 9, 7, 1, 0]),  # as many entries as rows: row by row
        pl.Series([3, 1, 2, 1, 3]),
        pa.array([3, 1, 2, 1, 3]),
        [1, 2, 3],
        np.array([1, 2, 3]),
        {"c": 3, "a": 1, "b": 2, "z": -1},
        pd.Series({"c": 3, "a": 1, "b": 2, "z": np.nan}),
        pd.Series([3, 2, 1], index=pd.CategoricalIndex(["c", "b", "a"])),
    ],
)
def test_weights_by_row_by_query_and_by_id_are_the_same(query_weight):
    weights = Queries.from_qid(list(PATTERN), 5).weights(query_weight)
    assert weights.dtype == np.float64 and weights.tolist() == [1, 2, 3]


def test_no_weights_are_none_and_zero_is_a_weight():
    queries = Queries.from_qid(list(PATTERN), 5)
    assert queries.weights(None) is None
    assert queries.weights([0, 0, 2]).tolist() == [0, 0, 2]


def test_as_many_weights_as_rows_are_read_row_by_row():
    """Where each row is a query of its own, a list follows the rows and not the sorted ids."""
    assert Queries.from_qid(["b", "a"], 2).weights([1, 2]).tolist() == [2, 1]


@pytest.mark.parametrize(
    "query_weight, match",
    [
        ([3, 1, 2, 5, 3], r"differs within query 'a' \(1 and 5\): a query has one weight"),
        ([1, 2], r"shape \(2,\) for 5 rows in 3 queries: give one number per row, or one per query"),
        (3.0, r"query_weight is not an array of numbers"),
        (np.ones((5, 1)), r"shape \(5, 1\)"),
        (np.ones((3, 2)), r"shape \(3, 2\)"),
        ([1, 2, np.nan], "query_weight contains NaN"),
        ([1, 2, np.inf], "query_weight contains infinity"),
        ([1, 2, None], "query_weight contains NaN"),
        (["few", "more", "most"], "query_weight is not an array of numbers"),
        ([1, -2, 3], r"of query 'b' is -2: weights must be >= 0"),
        ([0, 0, 0], "zero for every query"),
        ({"a": 0, "b": 0, "c": 0, "d": 1}, "zero for every query"),
        ({"a": 1, "z": 2}, r"no weight for 2 of 3 queries \('b', 'c'\); it has ids such as \['a', 'z'\]"),
        ({1: 1, 2: 2, 3: 3}, r"no weight for 3 of 3 queries .* it has ids such as \[1, 2, 3\]"),
        ({}, "no weight for 3 of 3 queries"),
        ({"a": 1, "b": 2, "c": "many"}, "query_weight is not an array of numbers"),
        ({"a": 1, "b": 2, "c": None}, "query_weight contains NaN"),
        (pd.Series([1, 2, 3, 4], index=["a", "b", "c", "b"]), "its index has 'b' twice"),
        (pd.Series([1, 2, 3]), r"no weight for 3 of 3 queries"),
    ],
)
def test_other_weights_are_refused(query_weight, match):
    with pytest.raises(ValueError, match=match):
        Queries.from_qid(list(PATTERN), 5).weights(query_weight)
