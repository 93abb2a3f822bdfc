"""Past one machine: searches, paths and starts on a real cluster of two processes, which give what one process gives."""

import os
import pickle
import signal
import threading
import time
from collections import Counter

import cloudpickle
import joblib
import numpy as np
import pytest
import sklearn
from distributed import Client, LocalCluster
from lightgbm import LGBMRanker
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from skfairrank import GapBoostingRanker, SenSTIRRanker, senstir_path
from skfairrank._threads import over_range
from skfairrank.cluster import on_workers
from skfairrank.datasets import make_biased_ranking
from skfairrank.metrics import ndcg_scorer, neg_group_exposure_difference_scorer
from skfairrank.model_selection import QueryKFold
from skfairrank.scores import MLPScore

TASK = make_biased_ranking(n_queries=60, n_items=8, random_state=0)
X, Y, QID, GROUP = np.hstack([TASK.data, TASK.data**2]), TASK.target.astype(int), TASK.qid, TASK.sensitive_features
WIDE = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 120))])
SCORING = {"ndcg": ndcg_scorer, "gap": neg_group_exposure_difference_scorer}
QUICK = {"max_iter": 60, "random_state": 0}
# What limits threads from outside; the workers are to do without.
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        for name in LIMITS:
            patch.delenv(name, raising=False)
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=None) as cluster:
            yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def search_over(estimator, grid):
    return GridSearchCV(estimator, grid, cv=QueryKFold(3), scoring=SCORING, refit="ndcg", error_score="raise")


def fit(search):
    return search.fit(X, Y, qid=QID, sensitive_features=GROUP)


def assert_same_results(one, other):
    """To the bit, but for the times."""
    names = [name for name in one.cv_results_ if "time" not in name]
    assert len(names) > 10 and one.best_index_ == other.best_index_
    for name in names:
        np.testing.assert_array_equal(one.cv_results_[name], other.cv_results_[name], err_msg=name)


# Searches

RANKERS = {
    "senstir": (SenSTIRRanker(**QUICK), {"rho": [0.0, 0.01, 0.1]}),
    "pipeline": (make_pipeline(StandardScaler(), SenSTIRRanker(**QUICK)), {"senstirranker__rho": [0.0, 0.1]}),
    "boosted": (
        GapBoostingRanker(LGBMRanker(n_estimators=4, min_child_samples=5, verbose=-1, n_jobs=1, random_state=0)),
        {"strength": [0.0, 5.0], "estimator__num_leaves": [3, 7]},
    ),
}


@pytest.mark.parametrize("name", RANKERS)
def test_a_search_finds_what_it_finds_in_one_process(client, routing, name):
    search = search_over(*RANKERS[name])
    alone = fit(sklearn.clone(search))
    with on_workers(client):
        shared = fit(search)
    assert_same_results(alone, shared)
    np.testing.assert_array_equal(shared.predict(X), alone.predict(X))


def test_a_search_with_starts_within_a_search_within_folds_ends_and_finds_the_same(client, routing):
    ranker = SenSTIRRanker(score_function=MLPScore((2,)), n_init=2, n_jobs=2, max_iter=10, random_state=0)
    search = search_over(ranker, {"rho": [0.0, 0.1]}).set_params(cv=QueryKFold(2), n_jobs=2)
    arguments = {"cv": QueryKFold(2), "params": {"qid": QID, "sensitive_features": GROUP}, "error_score": "raise"}
    alone = cross_validate(search.set_params(n_jobs=1, estimator__n_jobs=1), X, Y, scoring=SCORING, **arguments)
    with on_workers(client):
        shared = cross_validate(search, X, Y, scoring=SCORING, n_jobs=2, **arguments)
    for name in ("test_ndcg", "test_gap"):
        np.testing.assert_array_equal(shared[name], alone[name])


FITS: Counter = Counter()


class Mortal(SenSTIRRanker):
    """A ranker whose second fit in a process among `victims` kills that process."""

    def __init__(self, *, rho=0.003, max_iter=60, random_state=0, victims=()):
        super().__init__(rho=rho, max_iter=max_iter, random_state=random_state)
        self.victims = victims

    def fit(self, X, y, *, qid=None, sensitive_features=None):
        FITS[os.getpid()] += 1
        if os.getpid() in self.victims and FITS[os.getpid()] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y, qid=qid, sensitive_features=sensitive_features)


def test_killing_all_workers_in_mid_search_loses_no_result(client, routing):
    """Each process dies in its second fit: with what it was at work on, and whatever the rows were kept in. Nannies start others."""
    grid = {"rho": [0.0, 0.001, 0.01, 0.1]}
    alone = fit(search_over(Mortal(), grid))
    before = client.run(os.getpid)
    with on_workers(client):
        shared = fit(search_over(Mortal(victims=tuple(before.values())), grid))
    assert_same_results(alone, shared)
    client.wait_for_workers(2, timeout=60)
    assert not set(client.run(os.getpid).values()) & set(before.values())


# Rows


class Ledger(Client):
    """A client that notes the bytes of what it submits."""

    def submit(self, function, *args, **kwargs):
        self.__dict__.setdefault("sent", []).append(
            (str(kwargs["key"]).split("-")[0], len(cloudpickle.dumps((args, kwargs))))
        )
        return super().submit(function, *args, **kwargs)


def bytes_sent(ledger, work):
    """Those of the rows and what goes with them, and the largest of a task."""
    ledger.sent = []
    with on_workers(ledger):
        work()
    tasks = [size for kind, size in ledger.sent if kind.startswith("batch")]
    return sum(size for kind, size in ledger.sent if not kind.startswith("batch")), max(tasks)


@pytest.fixture
def ledger(client):
    with Ledger(client.scheduler.address) as ledger:
        yield ledger


def test_a_search_sends_rows_once(ledger, routing):
    """X once for nine fits, and as little as a tenth more for y, metadata and the row numbers of folds."""
    search = search_over(SenSTIRRanker(max_iter=2, random_state=0), {"rho": [0.0, 0.1, 1.0]})
    once, task = bytes_sent(ledger, lambda: search.fit(WIDE, Y, qid=QID, sensitive_features=GROUP))
    assert WIDE.nbytes < once < 1.2 * WIDE.nbytes and task < 0.05 * WIDE.nbytes


def test_starts_and_stretches_send_rows_once(ledger):
    def starts():
        SenSTIRRanker(n_init=4, max_iter=2, random_state=0).fit(WIDE, Y, qid=QID, sensitive_features=GROUP)

    def stretches():
        metric = np.eye(WIDE.shape[1])[:1]
        senstir_path(
            WIDE, Y, qid=QID, metric=metric, rhos=np.geomspace(0.1, 1, 5), n_stretches=4, solver="adam", max_iter=2
        )

    for work in (starts, stretches):
        once, task = bytes_sent(ledger, work)
        assert WIDE.nbytes < once < 1.2 * WIDE.nbytes and task < 0.05 * WIDE.nbytes


# Starts and paths


def test_starts_are_those_of_one_process(client):
    ranker = SenSTIRRanker(rho=0.1, score_function=MLPScore((3,)), n_init=3, **QUICK)
    alone = sklearn.clone(ranker).fit(X, Y, qid=QID, sensitive_features=GROUP)
    with on_workers(client):
        shared = ranker.fit(X, Y, qid=QID, sensitive_features=GROUP)
    np.testing.assert_array_equal(shared.objectives_, alone.objectives_)
    np.testing.assert_array_equal(shared.parameters_, alone.parameters_)


@pytest.mark.parametrize(
    "settings",
    [{}, {"solver": "adam", "max_iter": 40, "random_state": np.random.RandomState(3)}],
    ids=["lbfgs", "adam"],
)
def test_a_path_is_that_of_one_process(client, settings):
    def walk():
        given = pickle.loads(pickle.dumps(settings))
        return senstir_path(X, Y, qid=QID, metric=np.eye(4)[:1], rhos=np.geomspace(0.01, 1, 7), n_stretches=3, **given)

    alone = walk()
    with on_workers(client):
        shared = walk()
    for name in ("rhos", "coefs", "utilities", "regularizers", "n_iters"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))


# Threads


def blocks_of(_=None):
    """Into how many blocks work is cut that is worth many threads, and of BLAS the threads."""
    blocks = []
    over_range(lambda first, last: blocks.append((first, last)), 100, 1e12)
    return len(blocks), max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


def test_a_task_has_one_thread(client):
    """As each worker has one task at a time, and two workers two cores. On a machine with a single core nothing could fail."""
    assert client.gather(client.map(blocks_of, range(4), pure=False)) == [(1, 1)] * 4


def test_a_worker_with_threads_in_this_process_has_one_for_each_task():
    """Dask limits BLAS where it starts a process; here it does not."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0", memory_limit=None
        ) as cluster,
        Client(cluster) as client,
        on_workers(client),
    ):
        assert joblib.Parallel()(joblib.delayed(blocks_of)(i) for i in range(4)) == [(1, 1)] * 4


AT_WORK, MOST, LOCK = [0], [0], threading.Lock()


def inner(_):
    with LOCK:
        AT_WORK[0] += 1
        MOST[0] = max(MOST[0], AT_WORK[0])
    time.sleep(0.02)
    with LOCK:
        AT_WORK[0] -= 1
    return MOST[0]


def outer(_):
    return max(joblib.Parallel(n_jobs=2)(joblib.delayed(inner)(i) for i in range(3)))


def test_tasks_within_tasks_are_no_more_than_threads(client):
    with on_workers(client):
        assert max(joblib.Parallel(n_jobs=4)(joblib.delayed(outer)(i) for i in range(4))) == 1


# What it refuses


def test_without_a_client_it_says_how_to_make_one():
    with pytest.raises(ValueError, match="There is no Dask client: make one first"), on_workers():
        pass


def test_a_cluster_is_no_client(cluster):
    with pytest.raises(TypeError, match="client is a LocalCluster: give a distributed.Client"), on_workers(cluster):
        pass
