"""Parquet files as arrays on a disk and in chunks: the rows and fits of the same rows in memory, and files that are refused."""

import gc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skfairrank import FairPGRanker, PlackettLuceRanker, SenSTIRRanker
from skfairrank.datasets import make_biased_ranking
from skfairrank.files import iter_ranking, read_ranking
from skfairrank.scores import MLPScore

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SMALL = pd.DataFrame({"a": [0.0, 1, 2, 0, 1], "b": [1.0, 0, 0, 0, 1], "y": [0, 1, 2, 0, 1], "qid": [0, 0, 0, 1, 1]})


@pytest.fixture
def table():
    """Features of several kinds, weights by query and a group; queries in order, of different sizes."""
    task, rng = make_biased_ranking(n_queries=40, n_items=10, random_state=0), np.random.default_rng(0)
    kept = rng.random(len(task.target)) < 0.8
    frame = pd.DataFrame(task.data, columns=["merit", "proxy"]).assign(
        count=rng.integers(0, 5, len(task.target)), y=task.target
    )
    frame = frame.assign(qid=task.qid, sex=np.where(task.sensitive_features, "m", "f"), weight=1.0 + task.qid % 3)
    return frame[kept].reset_index(drop=True)


def write(frame, path, **settings):
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, **settings)
    return path


COLUMNS = {"sensitive_features": "sex", "query_weight": "weight"}


def in_pieces(frame, folder, n=12):
    """Cut anywhere, with numbers that texts would sort in another order."""
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), n)):
        write(frame.iloc[rows], folder / f"part.{k}.parquet", row_group_size=7)
    return folder


@pytest.mark.parametrize(
    "ranker",
    [
        PlackettLuceRanker(max_iter=30, random_state=0),
        FairPGRanker(max_iter=30, random_state=0),
        SenSTIRRanker(rho=0.1, score_function=MLPScore((3,)), max_iter=10, random_state=0),
    ],
    ids=["plain", "fair_pg", "network"],
)
def test_a_fit_on_what_was_read_has_the_bits_of_one_in_memory(table, tmp_path, ranker):
    data = read_ranking(in_pieces(table, tmp_path), **COLUMNS)
    assert isinstance(data.X, np.memmap) and data.feature_names == ["merit", "proxy", "count"]
    X, y, metadata = (
        table[data.feature_names].to_numpy(),
        table["y"],
        {"qid": table["qid"], "sensitive_features": table["sex"]},
    )
    expected = clone(ranker).fit(X, y, **metadata, query_weight=table["weight"])
    names = ("qid", "sensitive_features", "query_weight")
    fitted = ranker.fit(data.X, data.y, **{name: data[name] for name in names})
    np.testing.assert_array_equal(fitted.predict(data.X), expected.predict(X))
    assert fitted.score(data.X, data.y, qid=data.qid) == expected.score(X, y, qid=table["qid"])


def test_rows_are_sorted_by_query_where_ids_do_not_ascend(table, tmp_path):
    shuffled = table.sample(frac=1, random_state=0)
    data = read_ranking(in_pieces(shuffled, tmp_path), **COLUMNS)
    expected = shuffled.sort_values("qid", kind="stable").reset_index(drop=True)
    np.testing.assert_array_equal(data.X, expected[data.feature_names])
    for name, column in {"y": "y", "qid": "qid", "query_weight": "weight", "sensitive_features": "sex"}.items():
        np.testing.assert_array_equal(data[name], expected[column])


@pytest.mark.parametrize("max_rows", [1, 30, 1000])
def test_chunks_are_whole_queries(table, tmp_path, max_rows):
    """In the order of the files, also where ids do not ascend; a query larger than a chunk comes by itself."""
    backwards = table.sort_values("qid", kind="stable", ascending=False)
    chunks = list(iter_ranking(in_pieces(backwards, tmp_path), max_rows=max_rows, **COLUMNS))
    sizes = table.groupby("qid").size()
    for chunk in chunks:
        n_queries = len(set(chunk.qid))
        assert len(chunk.y) == sizes[list(set(chunk.qid))].sum() and (n_queries == 1 or len(chunk.y) <= max_rows)
    np.testing.assert_array_equal(np.vstack([chunk.X for chunk in chunks]), backwards[chunks[0].feature_names])
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), backwards["y"])
    np.testing.assert_array_equal(pd.concat([chunk.sensitive_features for chunk in chunks]), backwards["sex"])
    np.testing.assert_array_equal(np.concatenate([chunk.query_weight for chunk in chunks]), backwards["weight"])


@pytest.mark.parametrize(
    "values, dtype",
    [
        (np.arange(5, dtype=np.int8), "float32"),
        (np.arange(5) + 2**40, "float64"),
        (pd.Categorical([1, 2, 2, 3, 1]), "float64"),
    ],
    ids=["int8", "int64", "dictionary"],
)
def test_kinds_of_numbers(tmp_path, values, dtype):
    """float32 where nothing is lost by it."""
    path = write(SMALL[["y", "qid"]].assign(a=values), tmp_path / "a.parquet")
    data = read_ranking(path)
    assert data.X.dtype == dtype and read_ranking(path, dtype="float32").X.dtype == "float32"
    np.testing.assert_array_equal(data.X[:, 0], np.asarray(values, dtype))


def test_an_index_that_was_written_is_no_feature(tmp_path):
    SMALL.rename_axis("row").to_parquet(tmp_path / "a.parquet", index=True)
    assert read_ranking(tmp_path).feature_names == ["a", "b"]


def test_the_array_stays_in_a_named_folder_and_else_goes_with_its_last_view(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    path = write(SMALL, tmp_path / "a.parquet")
    data = read_ranking(path)
    view = data.X[1:]
    del data
    gc.collect()
    assert [Path(file).suffix for file in (tmp_path / "temporary").iterdir()] == [".npy"] and view[0, 0] == 1
    del view
    gc.collect()
    assert not list((tmp_path / "temporary").iterdir())
    kept = read_ranking(path, folder=tmp_path).X
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy", mmap_mode="r"), kept)
    with pytest.raises(FileExistsError, match=r"X.npy exists: open it by np.load"):
        read_ranking(path, folder=tmp_path)


# What is refused

MORE = SMALL.assign(qid=SMALL["qid"] + 2)
OTHER = "differ in the columns 'late': choose by features="


@pytest.mark.parametrize(
    "first, second, settings, message",
    [
        (SMALL, MORE.assign(late=1.0), {}, OTHER),
        (SMALL, SMALL.drop(columns="y"), {"features": ["a"]}, r"2.parquet has no column 'y' .*Name columns by y="),
        (SMALL, MORE.assign(a=[1, 2, None, 4, 5]), {}, r"The column 'a' is nan .* in row 7, counted from 0 over all"),
        (SMALL, MORE.assign(a=[1, 2, 1e300, 4, 5]), {"dtype": "float32"}, r"'a' is inf \(as float32\) in row 7"),
        (SMALL, MORE.assign(a="text"), {}, r"'a' of .*2.parquet is of the type .*string.* encode it"),
        (SMALL, MORE.assign(y=[1, 2, None, 1, 1]), {}, "y contains NaN .1 of 10"),
        (SMALL, MORE.assign(qid=[1, 2, None, 1, 1]), {}, "qid has 1 missing values"),
        (SMALL[:0], SMALL[:0], {}, "There are no rows in"),
        (SMALL, SMALL, {"features": ["a", "y"]}, "give a list of columns"),
    ],
)
def test_files_that_do_not_suit_are_refused(tmp_path, first, second, settings, message):
    paths = [write(frame, tmp_path / f"{k}.parquet") for k, frame in ((1, first), (2, second))]
    with pytest.raises(ValueError, match=message):
        read_ranking(paths, folder=tmp_path, **settings)
    assert not (tmp_path / "X.npy").exists()
    with pytest.raises(ValueError, match=message):
        list(iter_ranking(paths, **settings))


def test_a_query_that_comes_back_is_an_error_in_chunks_and_sorted_in_the_array(tmp_path):
    first, second = write(SMALL, tmp_path / "1.parquet"), write(SMALL, tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"qid 0 begins in row 0 and again in row 5.*read_ranking, which sorts"):
        next(iter_ranking([first, second]))
    assert read_ranking([first, second]).qid.tolist() == [0] * 6 + [1] * 4


@pytest.mark.parametrize(
    "path, error, message",
    [
        ("nothing", FileNotFoundError, "There is no file or folder"),
        ("cut.parquet", ValueError, "cut.parquet is no whole Parquet file"),
        (SMALL, TypeError, "give the path of a Parquet file"),
    ],
    ids=str,
)
def test_what_is_no_file_is_refused(tmp_path, monkeypatch, path, error, message):
    monkeypatch.chdir(tmp_path)
    Path("cut.parquet").write_bytes(Path(write(SMALL, "whole.parquet")).read_bytes()[:-9])
    with pytest.raises(error, match=message):
        read_ranking(path)
