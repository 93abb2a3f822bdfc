"""Rows on a disk: training on them is training on the same rows in memory, to the bit, and so are metrics in chunks."""

import copy
import gc
import os
import pickle
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import FairPGRanker, PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank._batches import ArrayBatches
from skfairrank._queries import Queries
from skfairrank.metrics import (
    attention_inequity,
    expected_exposure_loss,
    group_exposure_difference,
    group_exposure_disparity,
    individual_exposure_disparity,
    kendall_tau_score,
    ndcg_score,
    stochastic_ndcg_score,
    utility_score,
)
from skfairrank.policies import PlackettLuce
from skfairrank.ranking_files import ArrayRanking, ParquetRanking, evaluate_in_chunks
from skfairrank.ranking_files._query_table import read_table
from skfairrank.ranking_files._row_file import RowFile
from skfairrank.scores import MLPScore
from skfairrank.utilities import ERR, NDCG

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FEATURES = ["a", "b", "c", "d"]
N_QUERIES = 60


def rows(ids=None, dtype=np.float32, seed=0):
    """A table of queries of 2 to 20 rows that lie together; `ids` names the queries, in the order of the rows."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 21, N_QUERIES)
    query = np.repeat(np.arange(N_QUERIES), sizes)
    X = rng.normal(size=(len(query), len(FEATURES)))
    table = pd.DataFrame(X.astype(dtype), columns=FEATURES)
    table["target"] = np.clip(np.round(X[:, 0] + rng.normal(size=len(query)) + 1.0), 0, 3)
    table.loc[np.cumsum(sizes) - 1, "target"] = 2.0  # something can be gained in every query
    table["qid"] = query if ids is None else np.asarray(ids)[query]
    table["sex"] = np.where(X[:, 1] + rng.normal(size=len(query)) > 0, "f", "m")
    table["weight"] = rng.integers(1, 4, N_QUERIES)[query] / 2.0
    return table


def store(table, path, *, cuts=(), rows_of_group=50):
    """One file, or a folder of those that the rows `cuts` part; row groups end within queries."""
    if not cuts:
        table.to_parquet(path, row_group_size=rows_of_group, index=False)
        return path
    path.mkdir()
    for number, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(table)], strict=True)):
        part = table.iloc[first:last]
        part.to_parquet(path / f"part.{number + 8}.parquet", row_group_size=rows_of_group, index=False)
    return path


def parquet(path, **settings):
    return ParquetRanking(path, **{"features": FEATURES, **settings})


def fit_in_memory(ranker, table, **metadata):
    return clone(ranker).fit(table[FEATURES], table["target"], qid=table["qid"], **metadata)


IDS = {
    "ints that ascend": None,
    "ints that descend": np.arange(N_QUERIES)[::-1],
    "strings in no order": [f"q{k * 7 % N_QUERIES}" for k in range(N_QUERIES)],
    "dates": pd.date_range("2020-01-01", periods=N_QUERIES),
}
RANKERS = {
    "plain": PlackettLuceRanker(max_iter=150, random_state=0),
    "alpha, exact box": SenSTIRRanker(max_iter=150, rho=0.1, alpha=0.01, adversary="exact_box", random_state=0),
    "ascent, learned metric": SenSTIRRanker(max_iter=150, rho=0.1, random_state=0),
    "attack within the training range": SenSTIRRanker(
        max_iter=30, rho=0.1, feature_range="train", random_state=0, metric=[[0, 1, 0, 0]]
    ),
    "transport budget": SenSTIRRanker(max_iter=150, rho=0.1, adversary="exact", random_state=0),
    "Fair-PG": FairPGRanker(max_iter=100, random_state=0),
    "early stopping": PlackettLuceRanker(max_iter=300, early_stopping=True, n_iter_no_change=2, random_state=0),
    "several starts": PlackettLuceRanker(max_iter=50, n_init=2, score_function=MLPScore((3,)), random_state=0),
    "ERR, whose gains know the highest grade": PlackettLuceRanker(max_iter=100, utility="err", random_state=0),
    "average precision": PlackettLuceRanker(max_iter=50, utility="average_precision", random_state=0),
    "larger batches than queries": PlackettLuceRanker(max_iter=20, batch_size=100, gradient="plrank", random_state=0),
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_batches_are_those_of_the_rows_in_memory(tmp_path, ids):
    table = rows(ids)
    source = parquet(store(table, tmp_path / "folder", cuts=[3, 4, 200]))
    queries = Queries.from_qid(table["qid"], len(table))
    y = queries.group(table["target"].to_numpy())
    in_memory = ArrayBatches(table[FEATURES].to_numpy(), queries, NDCG().tables(y, queries.offsets))
    chosen = np.array([5, 3, 50, 51])
    for ours, theirs in (
        (source.batches("ndcg"), in_memory),
        (source.batches("ndcg").subset(chosen), in_memory.subset(chosen)),
    ):
        first, second = (batches.stream(7, *np.random.default_rng(0).spawn(2)) for batches in (ours, theirs))
        taken = first.take(2), second.take(2)
        for batch, other in zip(taken[0] + list(ours.in_order()), taken[1] + list(theirs.in_order()), strict=True):
            np.testing.assert_array_equal(batch.X[batch.rows], other.X[other.rows])
            for name in ("offsets", "queries", "gain", "stay", "weight", "key"):
                np.testing.assert_array_equal(getattr(batch, name), getattr(other, name))


@pytest.mark.parametrize("ranker", RANKERS.values(), ids=RANKERS)
def test_a_fit_is_that_of_the_rows_in_memory_to_the_bit(tmp_path, ranker):
    table = rows()
    source = parquet(store(table, tmp_path / "folder", cuts=[3, 4, 200]), sensitive_features="sex")
    fitted = clone(ranker).fit(source)
    in_memory = fit_in_memory(ranker, table, sensitive_features=table["sex"])
    np.testing.assert_array_equal(fitted.parameters_, in_memory.parameters_)
    np.testing.assert_array_equal(fitted.history_["utility"], in_memory.history_["utility"])
    assert fitted.n_queries_ == N_QUERIES and fitted.feature_names_in_.tolist() == FEATURES
    np.testing.assert_array_equal(clone(ranker).fit(source).parameters_, fitted.parameters_)


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
@pytest.mark.parametrize("name", ["ascent, learned metric", "Fair-PG"])
def test_weights_and_any_ids_give_the_bits_of_the_rows_in_memory(tmp_path, ids, name):
    table, ranker = rows(ids), RANKERS[name]
    path = store(table, tmp_path / "rows.parquet")
    source = parquet(path, sensitive_features="sex", query_weight="weight")
    in_memory = fit_in_memory(ranker, table, sensitive_features=table["sex"], query_weight=table["weight"])
    np.testing.assert_array_equal(clone(ranker).fit(source).coef_, in_memory.coef_)


def test_how_a_file_is_cut_changes_no_bit(tmp_path):
    table, ranker = rows(), RANKERS["plain"]
    paths = [store(table, tmp_path / f"{n}.parquet", rows_of_group=n) for n in (1, 7, 10_000)]
    paths.append(
        store(table, tmp_path / "folder", cuts=table.groupby("qid").size().cumsum().tolist()[:-1])
    )  # query by query
    found = [clone(ranker).fit(parquet(path)).coef_ for path in paths]
    assert all((coef == found[0]).all() for coef in found)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.astype(dict.fromkeys(FEATURES, np.float64)),
        lambda t: t.assign(d=np.arange(len(t)) % 3),
        lambda t: t.assign(d=np.arange(len(t)) % 3 == 0),
        lambda t: t.assign(d=pd.array(np.arange(len(t)) % 3, "Int64")),
        lambda t: t.assign(target=t["target"].astype(int), qid=t["qid"].astype("Int64")),
        lambda t: t.assign(qid=t["qid"].map("q{:03d}".format).astype("category"), sex=t["sex"].astype("category")),
        lambda t: t[["sex", "d", "qid", "a", "target", "c", "weight", "b"]],
    ],
    ids=["float64", "ints", "bools", "nullable ints", "int relevances, nullable ids", "categories", "order of columns"],
)
def test_columns_of_any_kind_are_read_as_in_memory(tmp_path, change):
    table = change(rows())
    source = parquet(store(table, tmp_path / "rows.parquet"), sensitive_features="sex")
    ranker = RANKERS["ascent, learned metric"]
    in_memory = fit_in_memory(ranker, table, sensitive_features=table["sex"])
    np.testing.assert_array_equal(clone(ranker).fit(source).coef_, in_memory.coef_)


def test_several_attributes_and_columns_in_another_order_in_the_second_file(tmp_path):
    table = rows().assign(age=np.linspace(20.5, 60, len(rows())))
    (tmp_path / "folder").mkdir()
    table.iloc[:105].to_parquet(tmp_path / "folder" / "1.parquet")  # with the index as a column of its own
    table.iloc[105:, ::-1].to_parquet(tmp_path / "folder" / "2.parquet")
    table.iloc[:0].to_parquet(tmp_path / "folder" / "0.parquet")
    (tmp_path / "folder" / "_metadata.parquet").write_bytes(b"not read")
    source = parquet(tmp_path / "folder", sensitive_features=["sex", "age"])
    ranker = RANKERS["ascent, learned metric"]
    in_memory = fit_in_memory(ranker, table, sensitive_features=table[["sex", "age"]])
    np.testing.assert_array_equal(clone(ranker).fit(source).coef_, in_memory.coef_)


def test_an_index_that_was_written_is_no_feature(tmp_path):
    table = rows().set_index(pd.Index(np.random.default_rng(0).permutation(len(rows()))))
    table[[*FEATURES, "target", "qid"]].to_parquet(tmp_path / "rows.parquet")
    assert ParquetRanking(tmp_path / "rows.parquet").feature_names.tolist() == FEATURES


def test_one_query_in_all_that_is_larger_than_a_row_group(tmp_path):
    table = rows().assign(qid="the only one")
    source = parquet(store(table, tmp_path / "rows.parquet", rows_of_group=9))
    in_memory = fit_in_memory(RANKERS["plain"], table)
    np.testing.assert_array_equal(clone(RANKERS["plain"]).fit(source).coef_, in_memory.coef_)
    assert [len(chunk.y) for chunk in source.chunks(max_rows=10)] == [len(table)]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("ids", [[0, 1, 5], [5, 1, 0], ["b", "a", "c"], [2.5, 1.0, 7.0]], ids=str)
def test_queries_are_found_whatever_the_blocks(size, ids):
    qid = np.repeat(np.array(ids, dtype=object if isinstance(ids[0], str) else None), [3, 1, 4])
    table = read_table(lambda: (qid[at : at + size] for at in range(0, len(qid), size)), "qid")
    starts, sizes = table.in_order
    order = np.argsort(ids)
    assert (
        starts.tolist() == np.array([0, 3, 4])[order].tolist() and sizes.tolist() == np.array([3, 1, 4])[order].tolist()
    )


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("qid", [[1, 1, 2, 1, 1], [3, 2, 1, 2, 0], ["a", "c", "b", "c", "d"]], ids=str)
def test_an_id_that_comes_back_raises(size, qid):
    qid = np.array(qid, dtype=object)
    with pytest.raises(ValueError, match=r"begins in row [01] and again in row 3 .* Sort the rows by qid"):
        read_table(lambda: (qid[at : at + size] for at in range(0, len(qid), size)), "qid")


@pytest.mark.parametrize("dtype, width", [(np.float32, 5), (np.float64, None), ("U3", None), (np.uint8, 1)])
def test_rows_of_a_file_are_those_of_the_array(tmp_path, dtype, width):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 100, (40, width) if width else 40).astype(dtype)
    (tmp_path / "rows").write_bytes(b"head" + values.tobytes())
    file = pickle.loads(pickle.dumps(RowFile(tmp_path / "rows", dtype, width, first_byte=4)))
    starts, sizes = np.array([30, 0, 5, 7, 39, 0]), np.array([4, 5, 2, 3, 1, 40])
    expected = np.concatenate([values[start : start + size] for start, size in zip(starts, sizes, strict=True)])
    np.testing.assert_array_equal(file.read(starts, sizes), expected)
    with pytest.raises(OSError, match="cut short"):
        file.read(np.array([39]), np.array([2]))


def test_a_stream_goes_on_where_another_stood_and_takes_what_is_asked(tmp_path):
    batches = parquet(store(rows(), tmp_path / "rows.parquet")).batches("ndcg")
    streams = [batches.stream(7, *np.random.default_rng(0).spawn(2)) for _ in range(3)]
    by_one = [streams[0].take(1)[0] for _ in range(25)]
    together = [batch for n in (3, 9, 13) for batch in streams[1].take(n)]
    streams[2].take(11)
    state = pickle.loads(pickle.dumps(streams[2].state()))
    streams[2].take(4)
    new = batches.stream(7, *np.random.default_rng(1).spawn(2))
    new.restore(state)
    for found, first in ((together, 0), (new.take(14), 11)):
        for batch, other in zip(found, by_one[first:], strict=True):
            np.testing.assert_array_equal(batch.X[batch.rows], other.X[other.rows])
            assert batch.queries.tolist() == other.queries.tolist() and batch.key == other.key


def test_features_of_float16_are_read_as_in_memory(tmp_path):
    table = rows(dtype=np.float16)
    try:
        source = parquet(store(table, tmp_path / "rows.parquet"))
    except pa.lib.ArrowNotImplementedError:
        pytest.skip("this pyarrow writes no float16")
    in_memory = fit_in_memory(RANKERS["plain"], table)
    np.testing.assert_array_equal(clone(RANKERS["plain"]).fit(source).coef_, in_memory.coef_)


# Errors.


def spoiled(column, value, row=100):
    def change(table):
        if value is not None:
            table[column] = table[column].astype(float)
        table.loc[row, column] = value
        return table

    return change


WRONG = {
    "NaN": (spoiled("b", np.nan), ValueError, "Input X contains NaN: column 'b' .* row 100"),
    "infinite": (spoiled("c", np.inf), ValueError, "Input X contains infinity: column 'c'"),
    "too large": (spoiled("c", 1e300), ValueError, "not finite: features reach 1e.300"),
    "a null": (
        lambda t: t.assign(d=pd.array(t["d"], "Float64")).pipe(spoiled("d", None)),
        ValueError,
        "NaN: column 'd'",
    ),
    "negative": (spoiled("target", -1.0), ValueError, r"y has negative values .* column 'target'"),
    "no relevance": (spoiled("target", np.nan), ValueError, "y contains NaN"),
    "a date as relevance": (
        lambda t: t.assign(target=pd.Timestamp("2020-01-01")),
        ValueError,
        "y holds dates: give one",
    ),
    "lists as ids": (
        lambda t: t.assign(qid=[[q, 0] for q in t["qid"]]),
        ValueError,
        "Column 'qid' of .* one value in each",
    ),
    "lists as groups": (
        lambda t: t.assign(sex=[["f"]] * len(t)),
        ValueError,
        "Column 'sex' of .* one value in each row",
    ),
    "relevance in words": (lambda t: t.assign(target="much"), ValueError, "y is not an array of numbers"),
    "text": (lambda t: t.assign(b="red"), ValueError, "Column 'b' of .* no number: .* encode it"),
    "a date": (lambda t: t.assign(b=pd.Timestamp("2020-01-01")), ValueError, "Column 'b' .* turn dates into numbers"),
    "no id": (spoiled("qid", np.nan), ValueError, "qid has 1 missing values"),
    "an id that comes back": (
        lambda t: t.assign(qid=t["qid"] % 50),
        ValueError,
        "qid 0 begins in row 0 and again in row",
    ),
    "large floats": (lambda t: t.assign(qid=t["qid"] * 2.0**53), ValueError, "may have become the same number"),
    "no group": (spoiled("sex", None), ValueError, "column 'sex' .* missing values, the first in row 100"),
    "weights within a query": (spoiled("weight", 7.0), ValueError, "query_weight differs within a query"),
    "a negative weight": (lambda t: t.assign(weight=-1.0), ValueError, "query_weight is -1 in row 0"),
    "no weight": (lambda t: t.assign(weight=0.0), ValueError, "zero for every query"),
    "a missing column": (lambda t: t.drop(columns="b"), ValueError, "has no column 'b'"),
    "no target": (lambda t: t.drop(columns="target"), ValueError, "has no column 'target'"),
    "no rows": (lambda t: t.iloc[:0], ValueError, "no rows"),
}


@pytest.mark.parametrize("change, kind, message", WRONG.values(), ids=WRONG)
def test_what_is_wrong_in_a_file_is_named(tmp_path, change, kind, message):
    path = store(change(rows()), tmp_path / "rows.parquet")
    source = parquet(path, sensitive_features="sex", query_weight="weight", spool_dir=tmp_path)
    with pytest.raises(kind, match=message):
        SenSTIRRanker(max_iter=2).fit(source)
    assert os.listdir(tmp_path) == ["rows.parquet"]  # nothing is left behind


@pytest.mark.parametrize("name, value", [("missing column", "b"), ("text", "red")])
def test_the_second_file_is_checked_as_the_first(tmp_path, name, value):
    folder, table = tmp_path / "folder", rows()
    folder.mkdir()
    table.iloc[:100].to_parquet(folder / "1.parquet")
    (table.iloc[100:].drop(columns="b") if name == "missing column" else table.iloc[100:].assign(b="red")).to_parquet(
        folder / "2.parquet"
    )
    with pytest.raises(ValueError, match=r"(?s)2.parquet.*(has no column 'b'|no number)"):
        PlackettLuceRanker(max_iter=2).fit(parquet(folder))


KINDS = {
    "dictionary": lambda sex: sex.astype("category"),
    "large strings": lambda sex: sex.astype(pd.ArrowDtype(pa.large_string())),
    "strings": lambda sex: sex.astype(pd.ArrowDtype(pa.string())),
}


@pytest.mark.parametrize("first, second", [(a, b) for a in KINDS for b in KINDS if a != b])
def test_groups_may_be_stored_as_another_kind_of_text_in_the_second_file(tmp_path, first, second):
    """As by pandas of several versions."""
    table = rows()
    sex = table["sex"].astype(object)
    (tmp_path / "rows").mkdir()
    for name, part, kind in (("1", slice(0, 110), first), ("2", slice(110, None), second)):
        part = table.iloc[part].assign(sex=KINDS[kind](sex.iloc[part]))
        part.to_parquet(tmp_path / "rows" / f"{name}.parquet", index=False)
    source = parquet(tmp_path / "rows", sensitive_features="sex")
    for name in ("Fair-PG", "ascent, learned metric"):
        in_memory = fit_in_memory(RANKERS[name], table, sensitive_features=sex)
        np.testing.assert_array_equal(clone(RANKERS[name]).fit(source).coef_, in_memory.coef_)
    groups = [group for chunk in source.chunks(50) for group in chunk.sensitive_features]
    assert groups == sex.tolist()


@pytest.mark.parametrize("ranker", [FairPGRanker(max_iter=2), SenSTIRRanker(max_iter=2)], ids=["Fair-PG", "SenSTIR"])
def test_groups_of_two_types_are_named(tmp_path, ranker):
    table = rows().assign(sex=lambda t: (t["sex"] == "f").astype(int))
    (tmp_path / "rows").mkdir()
    table.iloc[:110].to_parquet(tmp_path / "rows" / "1.parquet")
    table.iloc[110:].assign(sex=table["sex"].iloc[110:] == 1).to_parquet(tmp_path / "rows" / "2.parquet")
    with pytest.raises(ValueError, match="Column 'sex' is of the type int64 in .*1.parquet and bool in .*2.parquet"):
        ranker.fit(parquet(tmp_path / "rows", sensitive_features="sex"))


@pytest.mark.parametrize("content", [b"", b"PAR1, and then nothing", b"a,b,target,qid\n1,2,0,1\n"])
def test_a_file_that_is_none_is_named(tmp_path, content):
    store(rows(), tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes(content)
    with pytest.raises(ValueError, match="2.parquet is no Parquet file, or only a part of one"):
        PlackettLuceRanker(max_iter=2).fit(parquet(tmp_path))


def test_a_column_that_is_the_name_of_a_folder_is_explained(tmp_path):
    rows().assign(year=2024).to_parquet(tmp_path / "rows", partition_cols=["year"], index=False)
    assert parquet(tmp_path / "rows").n_rows == len(rows())
    with pytest.raises(ValueError, match="no column 'year' .* A folder called year=... makes no column"):
        PlackettLuceRanker(max_iter=2).fit(parquet(tmp_path / "rows", features=["a", "year"]))


@pytest.mark.parametrize("other", ["fewer rows", "other rows"])
def test_a_file_that_changes_between_two_chunks_is_an_error(tmp_path, other):
    table = rows()
    source = parquet(store(table, tmp_path / "rows", cuts=[200]))
    chunks = source.chunks(max_rows=50)
    next(chunks)
    rest = table.iloc[200:250] if other == "fewer rows" else rows(seed=1).iloc[200 : len(table)]
    rest.to_parquet(tmp_path / "rows" / "part.9.parquet", index=False)
    with pytest.raises(ValueError, match="has changed while it was read"):
        list(chunks)


def test_what_has_been_read_goes_with_the_settings_by_which_it_was_read(tmp_path):
    table, ranker = rows(), PlackettLuceRanker(max_iter=20, random_state=0)
    source = parquet(store(table, tmp_path / "rows.parquet"))
    ranker.fit(source)
    source.features, source.query_weight = ["c", "a"], "weight"
    in_memory = clone(ranker).fit(table[["c", "a"]], table["target"], qid=table["qid"], query_weight=table["weight"])
    np.testing.assert_array_equal(ranker.fit(source).coef_, in_memory.coef_)


@pytest.mark.parametrize("features", ["a", [], ["a", "target"], ["qid"], ["a", "b", "a"]])
def test_features_that_are_none_are_refused(tmp_path, features):
    with pytest.raises(ValueError, match=r"features(=| has)"):
        len(ParquetRanking(store(rows(), tmp_path / "rows.parquet"), features=features).feature_names)


def test_files_of_a_folder_count_whatever_their_ending_and_others_do_not(tmp_path):
    table, ranker = rows(), PlackettLuceRanker(max_iter=20, random_state=0)
    folder = store(table, tmp_path / "rows", cuts=[100, 200])
    for file, ending in zip(sorted(folder.iterdir()), (".parquet", ".pq", ".PARQUET"), strict=True):
        file.rename(file.with_suffix(ending))
    (folder / "README.txt").write_text("what the columns mean", encoding="utf-8")
    expected = clone(ranker).fit(table[FEATURES], table["target"], qid=table["qid"])
    np.testing.assert_array_equal(ranker.fit(parquet(folder)).coef_, expected.coef_)


def test_paths_that_are_none_and_folders_without_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        PlackettLuceRanker().fit(parquet(tmp_path / "none.parquet"))
    with pytest.raises(FileNotFoundError, match="has no file that ends in .parquet"):
        PlackettLuceRanker().fit(parquet(tmp_path))
    for path in (None, [], 3):
        with pytest.raises(
            TypeError, match="give the path of a Parquet file, or of a folder of them, or a list of paths"
        ):
            PlackettLuceRanker().fit(parquet(path))
    with pytest.raises(FileNotFoundError, match=r"no folder .* \(spool_dir=\): create it first"):
        PlackettLuceRanker().fit(parquet(store(rows(), tmp_path / "rows.parquet"), spool_dir=tmp_path / "none"))


def test_what_needs_all_rows_in_memory_is_refused(tmp_path):
    table = rows()
    source = parquet(store(table, tmp_path / "rows.parquet"), sensitive_features="sex")
    for ranker, message in (
        (PlackettLuceRanker(solver="lbfgs"), 'solver="lbfgs" goes through all rows'),
        (SenSTIRRanker(adversary="given", hypotheticals=lambda X: -X), 'adversary="given" keeps'),
        (PlackettLuceRanker(gradient="exact"), "limited to 16 items; query number"),
    ):
        with pytest.raises(ValueError, match=message):
            ranker.fit(source)
    ranker = PlackettLuceRanker(max_iter=2)
    for given in ({"y": table["target"]}, {"qid": table["qid"]}, {"query_weight": table["weight"]}):
        with pytest.raises(ValueError, match=f"^{next(iter(given))} and ParquetRanking.* Leave it out"):
            ranker.fit(source, **given)
    ranker.fit(source)
    with pytest.raises(ValueError, match="y, qid and"):
        ranker.score(source, table["target"], qid=table["qid"])
    with pytest.raises(TypeError, match="sample_rankings takes rows in memory"):
        ranker.sample_rankings(source)
    with pytest.raises(TypeError, match="source of rows on a disk, which fit"):
        make_pipeline(StandardScaler(), ranker).fit(source)
    with pytest.raises(OSError, match="GiB free: name a folder with more room"):
        from skfairrank.ranking_files._spool import Spool

        Spool(tmp_path, 10**18)


# Sources.


def test_a_source_is_cloned_pickled_and_found_from_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    store(rows(), tmp_path / "rows.parquet")
    source = parquet("~/rows.parquet")
    ranker = PlackettLuceRanker(max_iter=20, random_state=0)
    expected = ranker.fit(source).coef_
    copied = pickle.loads(pickle.dumps(source))
    assert not copied._known and copied.n_queries == N_QUERIES and copied.n_rows == len(rows())
    for other in (copied, copy.copy(source), parquet([str(tmp_path / "rows.parquet")])):
        np.testing.assert_array_equal(clone(ranker).fit(other).coef_, expected)


def test_batches_that_go_to_another_process_read_the_same_rows(tmp_path):
    source = parquet(store(rows(), tmp_path / "rows.parquet"))
    batches = source.batches("ndcg")
    first = batches.read(np.arange(5))
    copied = pickle.loads(pickle.dumps(batches))
    np.testing.assert_array_equal(copied.read(np.arange(5)).X, first.X)
    del copied
    gc.collect()
    np.testing.assert_array_equal(source.batches("ndcg").read(np.arange(5)).X, first.X)  # nothing has been removed
    copied = pickle.loads(pickle.dumps(batches))
    source.close()
    with pytest.raises(
        FileNotFoundError, match="not there, .* on other machines name a folder that all of them have, spool_dir="
    ):
        copied.read(np.arange(5))


def test_a_file_that_changes_is_read_anew(tmp_path):
    path, ranker = tmp_path / "rows.parquet", PlackettLuceRanker(max_iter=20, random_state=0)
    source = parquet(store(rows(), path))
    ranker.fit(source)
    other = rows(seed=1)
    store(other, path)
    np.testing.assert_array_equal(ranker.fit(source).coef_, fit_in_memory(ranker, other).coef_)
    assert source.n_rows == len(other)


def test_what_is_written_for_training_is_removed(tmp_path):
    path = store(rows(), tmp_path / "rows.parquet")
    spool = tmp_path / "spool"
    spool.mkdir()
    source = parquet(path, sensitive_features="sex", spool_dir=spool)
    ranker = FairPGRanker(max_iter=5, random_state=0).fit(source)
    assert len(os.listdir(spool)) == 1
    source.close()
    assert not os.listdir(spool)
    ranker.fit(source)
    assert len(os.listdir(spool)) == 1
    del source
    gc.collect()
    assert not os.listdir(spool)


def test_a_metric_of_many_rows_is_learned_from_rows_in_equal_steps(tmp_path):
    rng = np.random.default_rng(0)
    n_rows, n_features = 30_100, 340  # more than ten million numbers, of which 30,000 rows are looked at
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    np.save(tmp_path / "X.npy", X)
    y, qid, group = rng.integers(0, 2, n_rows), np.arange(n_rows) // 20, rng.integers(0, 2, n_rows)
    source = ArrayRanking(tmp_path / "X.npy", y, qid=qid, sensitive_features=group, spool_dir=tmp_path)
    chosen = np.linspace(0, n_rows - 1, 30_000).astype(int)
    found = source.sample()
    for part, expected in zip(found, (X, y, group), strict=True):
        np.testing.assert_array_equal(part, expected[chosen])
    ranker = SenSTIRRanker(SensitiveSubspaceMetric(direction="difference"), max_iter=2, random_state=0).fit(source)
    expected = SensitiveSubspaceMetric(direction="difference").fit(X[chosen], sensitive_features=group[chosen])
    np.testing.assert_array_equal(ranker.metric_.directions_, expected.directions_)


def peak_of_fit(path, n_rows):
    """Bytes that fit and score hold at most, those of pyarrow too."""
    rng = np.random.default_rng(0)
    table = pa.table(
        {name: rng.standard_normal(n_rows, dtype=np.float32) for name in "abcdefgh"}
        | {"qid": np.arange(n_rows) // 50, "target": rng.integers(0, 3, n_rows)}
    )
    # A dictionary would hold values up to a bound that these few rows do not reach.
    pq.write_table(table, path, row_group_size=20_000, use_dictionary=False)
    del table
    source = ParquetRanking(path)
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    gc.collect()
    tracemalloc.start()
    try:
        ranker = PlackettLuceRanker(max_iter=20, random_state=0).fit(source)
        ranker.score(source)
        return tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
        source.close()


def test_memory_does_not_grow_with_the_number_of_rows(tmp_path):
    small, large = 200_000, 400_000  # several chunks of each
    peak_of_fit(tmp_path / "rows.parquet", 1000)  # what is imported and compiled at first
    peaks = [peak_of_fit(tmp_path / "rows.parquet", n) for n in (small, large)]
    size_of_row = 8 * 4 + 8
    assert peaks[1] - peaks[0] < 0.1 * (large - small) * size_of_row, peaks


# Predictions and metrics in chunks.


def test_predictions_ranks_and_the_score_are_those_of_the_rows_in_memory(tmp_path):
    table = rows([f"q{k * 7 % N_QUERIES}" for k in range(N_QUERIES)])
    source = parquet(store(table, tmp_path / "rows.parquet"), query_weight="weight")
    ranker = PlackettLuceRanker(max_iter=50, random_state=0).fit(source)
    X, qid = table[FEATURES], table["qid"]
    np.testing.assert_array_equal(ranker.predict(source), ranker.predict(X))
    np.testing.assert_array_equal(ranker.rank(source), ranker.rank(X, qid=qid))
    assert ranker.score(source) == ranker.score(X, table["target"], qid=qid, query_weight=table["weight"])


def test_a_score_where_no_order_matters_is_nan(tmp_path):
    table = rows()
    table["target"] = 1.0
    source = parquet(store(table, tmp_path / "rows.parquet"))
    with pytest.warns(UserWarning, match="no order to learn"):
        ranker = PlackettLuceRanker(max_iter=2, random_state=0).fit(source)
    with pytest.warns(UndefinedMetricWarning, match="score is undefined: none of 60 queries"):
        assert np.isnan(ranker.score(source))
    with pytest.warns(UndefinedMetricWarning, match="all relevances are equal, so that metrics"):
        evaluate_in_chunks(ranker, source, {"ndcg": ndcg_score})


def flipped(X):
    return X.assign(b=-X["b"])


IN_CHUNKS = {
    "ndcg": (ndcg_score, "y s"),
    "ndcg@3": (partial(ndcg_score, k=3), "y s"),
    "stochastic": (partial(stochastic_ndcg_score, random_state=5), "y s"),
    "temperature": (partial(ndcg_score, policy=PlackettLuce(0.5, random_state=3)), "y s"),
    "tau": (kendall_tau_score, "s s'"),
    "disparity": (partial(group_exposure_disparity, random_state=np.int64(2)), "y s g"),
    "exposure": (group_exposure_difference, "s g"),
    "individual": (partial(individual_exposure_disparity, random_state=1), "y s"),
    "loss": (partial(expected_exposure_loss, random_state=1), "y s"),
    "err": (partial(utility_score, utility="err", random_state=1), "y s"),
    "err, sorted": (partial(utility_score, utility=ERR(), policy="deterministic"), "y s"),
    "map": (partial(utility_score, utility="average_precision", policy="deterministic"), "y s"),
}


@pytest.mark.parametrize("is_weighted", [False, True])
def test_metrics_in_chunks_are_those_of_all_rows_to_the_bit(tmp_path, is_weighted):
    table = rows()
    table.loc[table["qid"].isin([3, 40]), "target"] = 0.0
    weight = {"query_weight": "weight"} if is_weighted else {}
    source = parquet(store(table, tmp_path / "rows.parquet"), sensitive_features="sex", **weight)
    model = LinearRegression().fit(table[FEATURES], table["target"])
    s, other = model.predict(table[FEATURES]), model.predict(flipped(table[FEATURES]))
    values = {"y": table["target"], "s": s, "s'": other}
    metrics = {name: metric for name, (metric, _) in IN_CHUNKS.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        evaluated = [
            evaluate_in_chunks(model, source, metrics, hypothetical=flipped, max_rows=n) for n in (1, 100, 10**6)
        ]
        for name, (metric, asks) in IN_CHUNKS.items():
            arguments = [values[part] for part in asks.split() if part in values]
            groups = {"sensitive_features": table["sex"]} if "g" in asks.split() else {}
            given = {"query_weight": table["weight"]} if is_weighted else {}
            expected = metric(*arguments, qid=table["qid"], **groups, **given)
            assert evaluated[1].loc[name, "mean"] == pytest.approx(expected, rel=1e-9), name
    # A product of matrices may round otherwise for another number of rows; given the scores, nothing depends on the chunks.
    for found in evaluated[1:]:
        pd.testing.assert_frame_equal(found, evaluated[0], rtol=1e-9)
    assert (
        evaluated[0].loc["ndcg", "n_queries"] == N_QUERIES - 2
        and evaluated[0].loc["disparity", "n_queries"] == N_QUERIES
    )


def test_means_of_a_linear_ranker_in_chunks_are_the_same_bits(tmp_path):
    table = rows()
    source = parquet(store(table, tmp_path / "rows.parquet"), sensitive_features="sex")
    ranker = PlackettLuceRanker(max_iter=50, random_state=0).fit(source)
    metrics = {
        "a": partial(stochastic_ndcg_score, random_state=5),
        "b": partial(utility_score, utility="err", random_state=5),
    }
    found = evaluate_in_chunks(ranker, source, metrics, max_rows=50)["mean"]
    s = ranker.predict(table[FEATURES])
    assert found["a"] == stochastic_ndcg_score(table["target"], s, qid=table["qid"], random_state=5)
    assert found["b"] == utility_score(table["target"], s, qid=table["qid"], utility="err", random_state=5)


def test_a_standard_error_is_that_of_the_values(tmp_path):
    table = rows()
    source = parquet(store(table, tmp_path / "rows.parquet"))
    ranker = PlackettLuceRanker(max_iter=50, random_state=0).fit(source)
    found = evaluate_in_chunks(ranker, source, {"tau": kendall_tau_score}, hypothetical=flipped).loc["tau"]
    X = table[FEATURES]
    values = kendall_tau_score(ranker.predict(X), ranker.predict(flipped(X)), qid=table["qid"], reduce=None)
    assert found["standard_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(N_QUERIES))


def test_metrics_that_cannot_be_measured_in_chunks_are_refused(tmp_path):
    source = parquet(store(rows(), tmp_path / "rows.parquet"))
    ranker = PlackettLuceRanker(max_iter=2, random_state=0).fit(source)
    for metrics, kind, message in (
        ({}, TypeError, "give a dict"),
        (ndcg_score, TypeError, "give a dict"),
        ({"n": "ndcg"}, TypeError, "a value for each query"),
        ({"n": attention_inequity}, TypeError, "a value for each query"),
        ({"n": partial(ndcg_score, qid=[0])}, TypeError, "come from the source"),
        ({"n": kendall_tau_score}, ValueError, "give hypothetical="),
        ({"n": group_exposure_difference}, ValueError, "names no column"),
    ):
        with pytest.raises(kind, match=message):
            evaluate_in_chunks(ranker, source, metrics)
    with pytest.raises(TypeError, match="inspection.audit"):
        evaluate_in_chunks(ranker, rows()[FEATURES], {"ndcg": ndcg_score})


# Arrays.


@pytest.mark.parametrize("name", ["ascent, learned metric", "Fair-PG", "early stopping"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_on_a_disk_give_the_bits_of_arrays_in_memory(tmp_path, name, dtype):
    table, ranker = rows(np.arange(N_QUERIES)[::-1], dtype), RANKERS[name]
    columns = {"y": table["target"], "qid": table["qid"], "sensitive_features": table["sex"].to_numpy(str)}
    np.save(tmp_path / "X.npy", np.ascontiguousarray(table[FEATURES]))
    for column, values in columns.items():
        np.save(tmp_path / f"{column}.npy", values)
    paths = {column: tmp_path / f"{column}.npy" for column in columns}
    X, y, qid = table[FEATURES].to_numpy(), table["target"].to_numpy(), table["qid"].to_numpy()
    expected = clone(ranker).fit(X, y, qid=qid, sensitive_features=table["sex"])
    for source in (
        ArrayRanking(tmp_path / "X.npy", **paths),
        ArrayRanking(np.load(tmp_path / "X.npy", mmap_mode="r"), y, qid=qid, sensitive_features=table["sex"]),
    ):
        fitted = clone(ranker).fit(source)
        np.testing.assert_array_equal(fitted.coef_, expected.coef_)
        assert not hasattr(fitted, "feature_names_in_")
        assert fitted.score(source) == expected.score(X, y, qid=qid)
        source.close()


def test_names_of_arrays_and_metrics_in_chunks(tmp_path):
    table = rows()
    np.save(tmp_path / "X.npy", np.ascontiguousarray(table[FEATURES]))
    source = ArrayRanking(
        str(tmp_path / "X.npy"), table["target"], qid=table["qid"], feature_names=FEATURES, query_weight=table["weight"]
    )
    ranker = SenSTIRRanker([[0, 1, 0, 0]], max_iter=50, random_state=0).fit(source)
    assert ranker.feature_names_in_.tolist() == FEATURES
    expected = ndcg_score(
        table["target"], ranker.predict(table[FEATURES]), qid=table["qid"], query_weight=table["weight"]
    )
    assert evaluate_in_chunks(ranker, source, {"ndcg": ndcg_score}, max_rows=30).loc["ndcg", "mean"] == expected
    frozen = SenSTIRRanker(FrozenEstimator(ranker.metric_), max_iter=2, random_state=0).fit(source)
    assert frozen.metric_ is ranker.metric_


def test_arrays_that_do_not_fit_are_named(tmp_path):
    table = rows()
    X, y, qid = np.ascontiguousarray(table[FEATURES]), table["target"].to_numpy(), table["qid"].to_numpy()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(X))
    np.save(tmp_path / "ints.npy", X.astype(int))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for arrays, given, kind, message in (
        ((X, y), qid, TypeError, "give the path of a .npy file"),
        ((mapped[5:], y[5:]), qid[5:], TypeError, "give the path of a .npy file"),
        ((tmp_path / "ints.npy", y), qid, TypeError, "of the dtype int64"),
        ((tmp_path / "fortran.npy", y), qid, ValueError, "C order"),
        ((mapped, y[1:]), qid, ValueError, "y has .* rows, and X has"),
        ((mapped, y), qid % 50, ValueError, "again in row"),
        ((mapped, -y), qid, ValueError, "y has negative values"),
    ):
        with pytest.raises(kind, match=message):
            PlackettLuceRanker(max_iter=2).fit(ArrayRanking(*arrays, qid=given))
    X[7, 2] = np.nan
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="Input X contains NaN: column 2 .* row 7"):
        PlackettLuceRanker(max_iter=2).fit(ArrayRanking(tmp_path / "X.npy", y, qid=qid))


@pytest.mark.parametrize("content", ["archive", "objects", "cut short", "Parquet", "folder", "nothing"])
def test_a_file_that_holds_no_array_is_named(tmp_path, content):
    table, path = rows(), tmp_path / "ids.npy"
    np.save(tmp_path / "X.npy", np.ascontiguousarray(table[FEATURES]))
    if content == "archive":
        np.savez(tmp_path / "ids.npz", table["qid"])
        path = tmp_path / "ids.npz"
    elif content == "Parquet":
        table.to_parquet(path)
    elif content == "folder":
        path = tmp_path
    elif content != "nothing":
        np.save(path, table["qid"].to_numpy().astype(object if content == "objects" else int))
        path.write_bytes(path.read_bytes()[: 200 if content == "cut short" else None])
    expected = "no such file" if content == "nothing" else "no .npy file of rows, or only a part of one"
    with pytest.raises((ValueError, FileNotFoundError), match=f"^qid is .*{path.name}.*{expected}"):
        PlackettLuceRanker(max_iter=2).fit(ArrayRanking(tmp_path / "X.npy", table["target"], qid=path))


def test_arrays_without_columns_or_with_one_name_for_two_are_refused(tmp_path):
    table = rows()
    X, given = np.ascontiguousarray(table[FEATURES]), {"qid": table["qid"]}
    np.save(tmp_path / "none.npy", X[:, :0])
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(TypeError, match=r"of the dtype float32 and shape \(\d+, 0\): give"):
        PlackettLuceRanker(max_iter=2).fit(ArrayRanking(tmp_path / "none.npy", table["target"], **given))
    with pytest.raises(ValueError, match="has a name more than once"):
        source = ArrayRanking(tmp_path / "X.npy", table["target"], feature_names=["a", "b", "a", "c"], **given)
        PlackettLuceRanker(max_iter=2).fit(source)
    with pytest.raises(ValueError, match="X, y and qid belong together"):
        PlackettLuceRanker(max_iter=2).fit(ArrayRanking(None, table["target"], **given))
