"""On a Dask cluster of two processes searches, fits, metrics and audits find what one process finds."""

import os
import re
import signal
import sys
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn
from distributed import Client, LocalCluster
from lightgbm import DaskLGBMRanker, LGBMRanker
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import GapBoostingRanker, QueryRanker, SenSTIRRanker, metrics, on_workers
from skfairrank.datasets import make_biased_ranking
from skfairrank.inspection import audit
from skfairrank.metrics import kendall_tau_score, ndcg_score, ndcg_scorer, neg_group_exposure_difference_scorer
from skfairrank.model_selection import QueryKFold

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cluster.md"
TASK = make_biased_ranking(n_queries=30, n_items=6, random_state=0)
METADATA = {"qid": TASK.qid, "sensitive_features": TASK.sensitive_features}
SCORING = {"ndcg": ndcg_scorer, "gap": neg_group_exposure_difference_scorer}


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client, sklearn.config_context(enable_metadata_routing=True):
        yield client


def search(ranker=None, **grid):
    ranker = SenSTIRRanker(max_iter=20, random_state=0) if ranker is None else ranker
    return GridSearchCV(ranker, grid, cv=QueryKFold(2), scoring=SCORING, refit="ndcg", error_score="raise")


def assert_same_results(one, other):
    """To the bit, but for the times."""
    names = [name for name in one.cv_results_ if "time" not in name]
    assert len(names) > 10 and one.best_index_ == other.best_index_
    for name in names:
        np.testing.assert_array_equal(one.cv_results_[name], other.cv_results_[name], err_msg=name)


def test_without_a_client_it_says_how_to_make_one():
    with pytest.raises(ValueError, match="There is no Dask client: make one first"), on_workers():
        pass


def test_the_examples_of_the_page_run(client, capsys):
    """The first one starts a cluster; the other gets the one that is there."""
    _, example = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(example, {"client": client})
    assert capsys.readouterr().out.split() == ["True"]


def test_a_search_finds_what_it_finds_in_one_process(client):
    pipeline = make_pipeline(StandardScaler(), SenSTIRRanker(max_iter=20, random_state=0))
    given = search(pipeline, senstirranker__rho=[0.0, 0.01, 0.1])
    alone = sklearn.clone(given).fit(TASK.data, TASK.target, **METADATA)
    with on_workers() as found:
        assert found is client
        shared = given.fit(TASK.data, TASK.target, **METADATA)
    assert_same_results(alone, shared)


def test_a_search_within_folds_finds_the_same(client):
    """Also with versions of Dask in which searches that run at the same time would take each other's metadata."""
    given = search(rho=[0.0, 0.1]).set_params(n_jobs=2)
    settings = {"cv": QueryKFold(2), "params": METADATA, "error_score": "raise", "scoring": SCORING}
    alone = cross_validate(sklearn.clone(given).set_params(n_jobs=1), TASK.data, TASK.target, **settings)
    with on_workers():
        shared = cross_validate(given, TASK.data, TASK.target, n_jobs=2, **settings)
    for name in ("test_ndcg", "test_gap"):
        np.testing.assert_array_equal(shared[name], alone[name])


def test_what_is_no_client_is_refused(cluster):
    with pytest.raises(TypeError, match="client is a LocalCluster: give a distributed.Client"), on_workers(cluster):
        pass


def test_without_dask_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "skfairrank\[dask\]"'), on_workers():
        pass


# Rows in partitions

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(400, 3)), columns=["a", "b", "c"])
ROWS["sex"], ROWS["qid"] = RNG.choice(["f", "m"], 400), np.repeat([f"q{k:02}" for k in range(50)], 8)
ROWS["age"] = RNG.normal(40, 10, 400) + 5 * ROWS["c"]
ROWS["a"] += ROWS["sex"] == "m"
ROWS["job"] = pd.Categorical(np.where(RNG.random(400) < 0.3, ROWS["sex"], RNG.choice(["x", "y"], 400)))
ROWS["y"] = np.where(ROWS["qid"] < "q03", 0, np.digitize(ROWS["a"] + ROWS["b"], [0, 1, 2]))
ROWS["weight"], ROWS["s"] = np.where(ROWS["qid"] < "q20", 0.0, 2.0), RNG.normal(size=400)
ROWS.loc[::7, "b"], ROWS.loc[5, "c"] = np.nan, np.inf
FEATURES, SETTINGS = (
    ["a", "b", "c", "job"],
    {"n_estimators": 10, "num_leaves": 5, "verbose": -1, "random_state": 0, "time_out": 1},
)


def in_partitions(rows=ROWS, ends=(160, 240)):
    """Three partitions of whole queries of `ROWS`."""
    return dd.from_pandas(rows.reset_index(drop=True), npartitions=1).repartition(divisions=[0, *ends, len(rows) - 1])


@pytest.mark.parametrize("gap", ["standardized", "ks"])
def test_gaps_and_trees_of_rows_on_workers_are_those_in_memory(client, gap):
    table, groups = in_partitions(), ["sex", "age"]
    given = {"qid": table["qid"], "sensitive_features": table[groups]}
    ranker = GapBoostingRanker(DaskLGBMRanker(client=client, **SETTINGS), gap=gap).fit(
        table[FEATURES], table["y"], **given
    )
    alone = GapBoostingRanker(LGBMRanker(**SETTINGS, n_jobs=1), gap=gap)
    alone.fit(ROWS[FEATURES], ROWS["y"], qid=ROWS["qid"], sensitive_features=ROWS[groups])
    np.testing.assert_allclose(ranker.raw_gaps_, alone.raw_gaps_, rtol=1e-9)
    np.testing.assert_allclose(ranker.gaps_, alone.gaps_, rtol=1e-9, atol=1e-12)
    scores = ranker.predict(table[FEATURES])
    assert isinstance(scores, da.Array) and ranker.n_queries_ == 50
    np.testing.assert_array_equal(scores.compute(), ranker.predict(ROWS[FEATURES]))  # in memory by the same trees
    expected = in_partitions(ROWS.assign(s=alone.predict(ROWS[FEATURES])))["s"]
    assert kendall_tau_score(scores, expected, qid=table["qid"]) > 0.6  # LightGBM bins where the rows are
    # On one worker LightGBM does what it does here. A Dask array may also be cut through its columns.
    X, y, given = ROWS[["a", "b"]].to_numpy(), ROWS["y"].to_numpy(), {"sensitive_features": ROWS[groups]}
    arrays = [da.from_array(values, chunks=(400, 1)[: values.ndim]) for values in (X, y, ROWS["qid"].to_numpy(object))]
    ranker.set_params(estimator__client=None).fit(*arrays[:2], qid=arrays[2], **given)
    expected = alone.fit(X, y, qid=ROWS["qid"], **given).predict(X)
    np.testing.assert_array_equal(ranker.predict(arrays[0]).compute(), expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": in_partitions(ends=(161, 240))}, "Query 'q20' has rows in several partitions"),
        (
            {"table": in_partitions(ROWS.iloc[[8, *range(8), *range(9, 400)]])},
            "query 'q01' are not beside each other",
        ),
        ({"y": in_partitions(ends=(240, 320))["y"]}, "inconsistent numbers of samples"),
        ({"y": in_partitions(ends=(240,))["y"]}, "Collections differ in their partitions"),
        ({"y": ROWS["y"]}, "y is a Series beside collections of Dask"),
        ({"estimator": LGBMRanker()}, "X is a collection of Dask: fit a sample"),
        ({"X": in_partitions().assign(job=in_partitions()["job"].cat.as_unknown())}, "categories of column 'job'"),
    ],
)
def test_what_workers_cannot_train_on_is_told(client, changes, message):
    table, ranker = changes.pop("table", in_partitions()), QueryRanker(changes.pop("estimator", DaskLGBMRanker()))
    with pytest.raises((ValueError, TypeError), match=message):
        ranker.fit(**{"X": table[FEATURES], "y": table["y"], "qid": table["qid"], **changes})


def flipped(X):
    return X.assign(a=X["a"] + 1.0)


def values_of(rows, ranker):
    """Metrics and audits of a table in memory or in partitions, but for what is drawn by other random numbers."""
    kw, weight = {"qid": rows["qid"], "sensitive_features": rows["sex"]}, {"query_weight": rows["weight"]}
    yield ndcg_score(rows["y"], rows["s"], qid=rows["qid"], **weight)
    yield metrics.group_exposure_disparity(rows["y"], rows["s"], policy="deterministic", reduce=None, **kw)
    yield metrics.attention_weighted_rank_fairness(rows["s"], target={"f": 0.4, "m": 0.6}, **kw)
    yield list(metrics.group_pairwise_accuracy(rows["y"], rows["s"], **kw, **weight).values())
    more = {"clusters": {query: query[:2] for query in ROWS["qid"]}, "hypotheticals": flipped}
    table = audit({"fair": ranker}, rows[["a", "age"]], rows["y"], **kw, **weight, **more)
    yield table.drop(columns=["stochastic_ndcg", "stochastic_ndcg_se"])
    rankers = {"fair": ranker, "scores": rows["s"]}
    yield audit(rankers, rows[["a", "age"]], rows["y"], reference="fair", **kw)[["ndcg_difference_p", "disparity_se"]]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_metrics_and_audits_by_partition_are_those_in_memory(client):
    ranker = LinearRegression().fit(ROWS[["a", "age"]], ROWS["y"])
    table = in_partitions(ROWS.sample(frac=1.0, random_state=0).sort_values("weight", kind="stable"), ends=(160,))
    for found, expected in zip(values_of(table, ranker), values_of(ROWS, ranker), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    table = table.assign(qid=table["qid"].str[:1])
    with pytest.raises(ValueError, match="has rows in several partitions"):
        ndcg_score(table["y"], table["s"], qid=table["qid"])
    with pytest.raises(ValueError, match="metric finds no neighbours in other partitions"):
        audit(table["s"], None, table["y"], qid=table["qid"], metric=ranker)


class Mortal(SenSTIRRanker):
    """A ranker of which a process among `victims` dies."""

    def __init__(self, *, rho=0.003, max_iter=20, random_state=0, victims=()):
        super().__init__(rho=rho, max_iter=max_iter, random_state=random_state)
        self.victims = victims

    def fit(self, X, y, *, qid=None, sensitive_features=None):
        if os.getpid() in self.victims:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y, qid=qid, sensitive_features=sensitive_features)


def test_killed_workers_lose_no_result(client):
    """Both die in their first fit, with X. Last, since their nannies have to start others."""
    alone = search(Mortal(), rho=[0.0, 0.01, 0.1]).fit(TASK.data, TASK.target, **METADATA)
    victims = tuple(client.run(os.getpid).values())
    with on_workers():
        shared = search(Mortal(victims=victims), rho=[0.0, 0.01, 0.1]).fit(TASK.data, TASK.target, **METADATA)
    assert_same_results(alone, shared)
    assert not set(victims) & set(client.run(os.getpid).values())
