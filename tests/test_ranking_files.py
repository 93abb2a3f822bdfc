"""Rows on a disk: training on them is training on the same rows in memory, to the bit, and so are metrics in chunks."""

import gc
import pickle
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression

from skfairrank import FairPGRanker, PlackettLuceRanker, SenSTIRRanker
from skfairrank.metrics import (
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
from skfairrank.ranking_files import ParquetRanking, evaluate_in_chunks
from skfairrank.ranking_files._query_table import read_table
from skfairrank.ranking_files._row_file import RowFile
from skfairrank.scores import MLPScore
from skfairrank.utilities import ERR

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
    "several starts": PlackettLuceRanker(max_iter=50, score_function=MLPScore((3,)), random_state=0),
    "ERR, whose gains know the highest grade": PlackettLuceRanker(max_iter=100, utility="err", random_state=0),
    "average precision": PlackettLuceRanker(max_iter=50, utility="average_precision", random_state=0),
    "larger batches than queries": PlackettLuceRanker(max_iter=20, batch_size=100, gradient="plrank", random_state=0),
}


def test_an_index_that_was_written_is_no_feature(tmp_path):
    table = rows().set_index(pd.Index(np.random.default_rng(0).permutation(len(rows()))))
    table[[*FEATURES, "target", "qid"]].to_parquet(tmp_path / "rows.parquet")
    assert ParquetRanking(tmp_path / "rows.parquet").feature_names.tolist() == FEATURES


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


KINDS = {
    "dictionary": lambda sex: sex.astype("category"),
    "large strings": lambda sex: sex.astype(pd.ArrowDtype(pa.large_string())),
    "strings": lambda sex: sex.astype(pd.ArrowDtype(pa.string())),
}


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


@pytest.mark.parametrize("features", ["a", [], ["a", "target"], ["qid"], ["a", "b", "a"]])
def test_features_that_are_none_are_refused(tmp_path, features):
    with pytest.raises(ValueError, match=r"features(=| has)"):
        len(ParquetRanking(store(rows(), tmp_path / "rows.parquet"), features=features).feature_names)


# Sources.


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


# Predictions and metrics in chunks.


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


# Arrays.
