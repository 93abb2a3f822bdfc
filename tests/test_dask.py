"""Searches on a Dask cluster of two processes find what one process finds."""

import os
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from distributed import Client, LocalCluster
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import SenSTIRRanker, on_workers
from skfairrank.datasets import make_biased_ranking
from skfairrank.metrics import ndcg_scorer, neg_group_exposure_difference_scorer
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
