"""Past one machine: a real cluster of two processes, on which searches, paths and training find what one process finds."""

import os
import pickle
import re
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import dask
import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from distributed import Client, LocalCluster
from lightgbm import LGBMRanker
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_tasks import make_task
from threadpoolctl import threadpool_info

from skfairrank import (
    FairPGRanker,
    GapBoostingRanker,
    PlackettLuceRanker,
    SensitiveSubspaceMetric,
    SenSTIRRanker,
    senstir_path,
)
from skfairrank._rankers._setup import Streams
from skfairrank._regularizers import INITIAL_MULTIPLIER
from skfairrank._threads import over_range
from skfairrank.callbacks import Checkpoint
from skfairrank.cluster import fit_on_workers, on_workers
from skfairrank.cluster._data_parallel import _prepare
from skfairrank.datasets import make_biased_ranking
from skfairrank.metrics import ndcg_scorer, neg_group_exposure_difference_scorer
from skfairrank.model_selection import QueryKFold
from skfairrank.ranking_files import ArrayRanking, ParquetRanking
from skfairrank.scores import LinearScore, MLPScore

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cluster.md"
TASK = make_biased_ranking(n_queries=60, n_items=8, random_state=0)
X, Y, QID, GROUP = np.hstack([TASK.data, TASK.data**2]), TASK.target.astype(int), TASK.qid, TASK.sensitive_features
WIDE = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 120))])
AXIS = np.eye(WIDE.shape[1])[:1]
SCORING = {"ndcg": ndcg_scorer, "gap": neg_group_exposure_difference_scorer}
QUICK = {"max_iter": 60, "random_state": 0}
# What limits threads from outside; the workers are to do without.
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        for name in LIMITS:
            patch.delenv(name, raising=False)
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster:
            yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@contextmanager
def threads_of_this_process():
    settings = {"processes": False, "dashboard_address": ":0", "memory_limit": None}
    with LocalCluster(n_workers=1, threads_per_worker=2, **settings) as cluster, Client(cluster) as client:
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


# The page


def test_the_examples_of_the_page_run(client, routing, capsys):
    """The first one starts a cluster; the others get the one that is there."""
    start, *others = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict = {"__name__": "page"}
    exec(start, names)
    names["client"].close()
    names["cluster"].close()
    names["client"] = client
    for example in others:
        exec(example, names)
    printed = capsys.readouterr().out.split()
    assert len(printed) >= 4 and set(printed) == {"True"}


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
    """Also in versions of Dask in which searches that run at the same time would take each other's metadata."""
    ranker = SenSTIRRanker(score_function=MLPScore((2,)), n_init=2, n_jobs=2, max_iter=10, random_state=0)
    search = search_over(ranker, {"rho": [0.0, 0.1]}).set_params(cv=QueryKFold(2), n_jobs=2)
    arguments = {"cv": QueryKFold(2), "params": {"qid": QID, "sensitive_features": GROUP}, "error_score": "raise"}
    alone = cross_validate(search.set_params(n_jobs=1, estimator__n_jobs=1), X, Y, scoring=SCORING, **arguments)
    with on_workers(client):
        shared = cross_validate(search, X, Y, scoring=SCORING, n_jobs=2, **arguments)
    for name in ("test_ndcg", "test_gap"):
        np.testing.assert_array_equal(shared[name], alone[name])


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
    search = search_over(SenSTIRRanker(AXIS, max_iter=2, random_state=0), {"rho": [0.0, 0.1, 1.0]})
    once, task = bytes_sent(ledger, lambda: search.fit(WIDE, Y, qid=QID, sensitive_features=GROUP))
    assert WIDE.nbytes < once < 1.2 * WIDE.nbytes and task < 0.05 * WIDE.nbytes


def test_starts_and_stretches_send_rows_once(ledger):
    def starts():
        SenSTIRRanker(AXIS, n_init=4, max_iter=2, random_state=0).fit(WIDE, Y, qid=QID, sensitive_features=GROUP)

    def stretches():
        senstir_path(
            WIDE, Y, qid=QID, metric=AXIS, rhos=np.geomspace(0.1, 1, 5), n_stretches=4, solver="adam", max_iter=2
        )

    for work in (starts, stretches):
        once, task = bytes_sent(ledger, work)
        assert WIDE.nbytes < once < 1.2 * WIDE.nbytes and task < 0.05 * WIDE.nbytes


# Starts and paths


def test_arrays_that_were_received_at_odd_addresses_are_moved():
    """The others stay where they are, and what is read-only stays so."""
    from skfairrank.cluster._dask import aligned

    content = np.zeros(3 * 4096, np.uint8)
    start = -content.ctypes.data % 16
    even, odd = (content[start + off :][:4000].view(float) for off in (0, 4096 + 4))
    even[:], odd[:] = 1.0, 2.0
    odd.flags.writeable = False
    found = aligned({"even": even, "odd": [odd], "empty": np.empty((0, 3))})
    assert found["empty"].shape == (0, 3)
    np.testing.assert_array_equal(found["even"], even)
    np.testing.assert_array_equal(found["odd"][0], odd)
    assert np.shares_memory(found["even"], even) and found["even"].flags.writeable
    assert found["odd"][0].flags.aligned and not odd.flags.aligned and not found["odd"][0].flags.writeable


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
    with threads_of_this_process() as client, on_workers(client):
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


# Training shared by workers

METRIC = FrozenEstimator(SensitiveSubspaceMetric(direction="difference").fit(X, sensitive_features=GROUP))
TRAINED = {
    "plain": PlackettLuceRanker(**QUICK),
    "senstir": SenSTIRRanker(METRIC, rho=0.1, **QUICK),
    "network": SenSTIRRanker(METRIC, rho=0.1, score_function=MLPScore((2,)), **QUICK),
    "fair_pg": FairPGRanker(**QUICK),
}


def part(first, last, **others):
    """The queries of these numbers, as arguments of `fit`."""
    rows = (QID >= first) & (QID < last)
    return {"X": X[rows], "y": Y[rows], "qid": QID[rows], "sensitive_features": GROUP[rows], **others}


@pytest.mark.parametrize("name", TRAINED)
def test_one_part_gives_the_bits_of_fit(client, name):
    alone = TRAINED[name].fit(**part(0, 60))
    shared = fit_on_workers(TRAINED[name], [part(0, 60)], client=client, average_every=25)
    assert vars(shared).keys() >= {key for key in vars(alone) if key.endswith("_")}
    np.testing.assert_array_equal(shared.parameters_, alone.parameters_)
    np.testing.assert_array_equal(shared.predict(X), alone.predict(X))
    for key, values in alone.history_.items():
        np.testing.assert_array_equal(shared.history_[key], values, err_msg=key)


@pytest.mark.parametrize("weighted", [False, True])
def test_parts_count_by_their_queries_or_by_the_weights_of_these(client, weighted):
    """Of 20 and 40 queries; where these weigh 1 and 4, of 20 and 160.

    Each step sees all queries of a part, with exact gradients, so that random numbers change the order of sums only. There is one
    average, at the end.
    """
    ranker = PlackettLuceRanker(gradient="exact", batch_size=60, **QUICK)
    shares = (20, 160) if weighted else (20, 40)
    parts = [part(0, 20), part(20, 60)]
    for given, weight in zip(parts, (1.0, 4.0)):
        given |= {"query_weight": np.full(len(given["y"]), weight)} if weighted else {}
    alone = [sklearn.clone(ranker).fit(**given).coef_ for given in parts]
    shared = fit_on_workers(ranker, parts, client=client, average_every=1000)
    assert shared.coef_ == pytest.approx(np.average(alone, axis=0, weights=shares), rel=1e-9)
    assert shared.n_queries_ == 60 and shared.n_iter_ == 60


class FromHere(LinearScore):
    """Linear scores that begin at weights of their own."""

    def initial_parameters(self, n_features, rng):
        return np.linspace(-0.5, 0.5, n_features)


def test_parameters_and_moments_are_averaged():
    """Adam by hand on gradients from all permutations, for two parts of 4 and 8 queries, with averages after each three steps."""
    tasks = [make_task((4,) * 4, seed=1), make_task((4,) * 8, seed=2)]
    states = [[np.linspace(-0.5, 0.5, 4), np.zeros(4), np.zeros(4)] for _ in tasks]
    for step in range(1, 10):
        for task, state in zip(tasks, states):
            theta, m, v = state
            slope = task.utility(theta)[1]
            m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
            theta = theta + 0.1 * m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
            state[:] = theta, m, v
        if step % 3 == 0:
            mean = [(one + 2 * other) / 3 for one, other in zip(*states)]
            states = [list(mean), list(mean)]
    ranker = PlackettLuceRanker(
        score_function=FromHere(), gradient="exact", batch_size=8, learning_rate=0.1, max_iter=9
    )
    parts = [(task.X, task.y, task.qid + 100 * k) for k, task in enumerate(tasks)]
    with threads_of_this_process() as client:
        assert fit_on_workers(ranker, parts, client=client, average_every=3).coef_ == pytest.approx(mean[0], rel=1e-9)


def test_lambda_goes_on_from_its_average(client):
    """Of parts of the same rows, of which each has the lambda of one training on them."""
    ranker = SenSTIRRanker(METRIC, rho=0.1, adversary="exact", gradient="exact", batch_size=60, **QUICK)
    alone = sklearn.clone(ranker).fit(**part(0, 60))
    shared = fit_on_workers(ranker, [part(0, 60), part(0, 60, qid=QID + 100)], client=client, average_every=7)
    assert shared.lambda_ == pytest.approx(alone.lambda_) != INITIAL_MULTIPLIER
    assert shared.coef_ == pytest.approx(alone.coef_, rel=1e-8)


def test_a_part_may_be_made_where_it_is_needed(client):
    ranker, cuts = PlackettLuceRanker(**QUICK), ((0, 20), (20, 60))
    here = fit_on_workers(ranker, [part(*cut) for cut in cuts], client=client)
    for made in ([client.submit(part, *cut) for cut in cuts], [dask.delayed(part)(*cut) for cut in cuts]):
        np.testing.assert_array_equal(fit_on_workers(ranker, made, client=client).coef_, here.coef_)


@pytest.mark.parametrize("name", ["senstir", "fair_pg"])
def test_a_part_may_be_a_file_that_its_worker_reads(client, tmp_path, name):
    """The bits of the same rows in memory, also where the parts count by the weights of their queries."""
    pytest.importorskip("pyarrow")
    ranker, parts, sources = TRAINED[name], [], []
    names = [f"x{j}" for j in range(X.shape[1])]
    for k, cut in enumerate(((0, 20), (20, 60))):
        given = part(*cut, query_weight=np.where(QID % 2, 1.0, 2.0 + k)[(QID >= cut[0]) & (QID < cut[1])])
        given["X"] = pd.DataFrame(given["X"], columns=names)
        others = {"target": given["y"], "qid": given["qid"], "group": given["sensitive_features"]}
        given["X"].assign(**others, weight=given["query_weight"]).to_parquet(tmp_path / f"{k}.parquet")
        settings = {"features": names, "sensitive_features": "group", "query_weight": "weight"}
        sources.append(ParquetRanking(tmp_path / f"{k}.parquet", **settings))
        parts.append(given)
    if name == "senstir":
        learned = SensitiveSubspaceMetric().fit(pd.DataFrame(X, columns=names), sensitive_features=GROUP)
        ranker = sklearn.clone(ranker).set_params(metric=FrozenEstimator(learned))
    in_memory = fit_on_workers(ranker, parts, client=client, average_every=25)
    for given in (sources, [{"X": source} for source in sources], [client.submit(tuple, [s]) for s in sources]):
        shared = fit_on_workers(ranker, given, client=client, average_every=25)
        np.testing.assert_array_equal(shared.coef_, in_memory.coef_)
    with pytest.raises(ValueError, match=r"Query 0 has rows in parts \[0, 1\]"):
        fit_on_workers(ranker, [sources[0], parts[0]], client=client)


def test_a_part_on_a_disk_that_moves_to_another_worker_is_read_there(tmp_path):
    """What the first worker has written of it for training may be on another machine, or gone."""
    np.save(tmp_path / "X.npy", X)
    source = ArrayRanking(tmp_path / "X.npy", Y, qid=QID)
    made = _prepare(PlackettLuceRanker(**QUICK), source, Streams.of(0), Streams.of(0).initial)
    before = next(made.problem.batches.in_order())
    moved = pickle.loads(pickle.dumps(made))
    source.close()
    after = next(moved.problem.batches.in_order())
    for name in ("X", "gain", "offsets"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    np.testing.assert_array_equal(moved.initial.theta, made.initial.theta)


def test_what_parts_warn_of_is_heard_here(client):
    equal = part(20, 60, y=np.ones((QID >= 20).sum()))
    with pytest.warns(UserWarning, match="All relevances are equal within each query"):
        fit_on_workers(PlackettLuceRanker(**QUICK), [part(0, 20), equal], client=client)


# What it refuses

NARROW = {**part(20, 60), "X": part(20, 60)["X"][:, :3]}


@pytest.mark.parametrize("ranker, parts, message", [
    (PlackettLuceRanker(), [], "parts is empty"),
    (PlackettLuceRanker(), [part(0, 21), part(20, 60)], r"Query 20 has rows in parts \[0, 1\].*cut the data between queries"),
    (PlackettLuceRanker(), [part(0, 20), NARROW], "Part 1 has other features than part 0"),
    (SenSTIRRanker(), [part(0, 20), part(20, 60)], "Parts 0 and 1 have learned different fair metrics.*FrozenEstimator"),
    (FairPGRanker(), [part(0, 20), part(20, 60, sensitive_features=GROUP[QID >= 20] + 1)], "Part 1 has other groups"),
    (PlackettLuceRanker(solver="lbfgs", n_init=2), [part(0, 20)], 'needs solver="adam", n_init=1:'),
    (PlackettLuceRanker(early_stopping=True), [part(0, 20)], "needs early_stopping=False"),
    (SenSTIRRanker(feature_range="train"), [part(0, 20)], "needs feature_range=None or"),
    (PlackettLuceRanker(), [part(0, 20, qid=[1])], "qid has 1 entries"),
])  # fmt: skip
def test_parts_that_do_not_belong_together_are_refused(client, ranker, parts, message):
    with pytest.raises(ValueError, match=message):
        fit_on_workers(ranker, parts, client=client)


@pytest.mark.parametrize("given, message", [
    (X, "A part is a ndarray: give the arguments of fit"),
    ({"x": X, "y": Y, "qid": QID}, r"A part has \['qid', 'x', 'y'\]: give"),
    ({"X": X, "qid": QID}, "requires y to be passed"),
])  # fmt: skip
def test_parts_that_are_no_arguments_of_fit_are_refused(client, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit_on_workers(PlackettLuceRanker(), [given], client=client)


def test_ids_of_parts_are_compared_by_what_they_are(client):
    """Dates of another unit are the same dates; ints and text cannot be compared."""
    days = np.datetime64("2020-01-01") + QID
    parts = [part(0, 60, qid=days.astype("M8[ns]")), part(0, 60, qid=days.astype("M8[us]"))]
    with pytest.raises(ValueError, match=r"2020.* has rows in parts \[0, 1\]"):
        fit_on_workers(PlackettLuceRanker(**QUICK), parts, client=client)
    with pytest.raises(TypeError, match="qid mixes values of several kinds"):
        fit_on_workers(PlackettLuceRanker(**QUICK), [part(0, 60), part(0, 60, qid=QID.astype(str))], client=client)


@pytest.mark.parametrize("given", [part(0, 60), ArrayRanking("X.npy", Y, qid=QID)], ids=["dict", "source"])
def test_one_part_is_no_list_of_parts(client, given):
    with pytest.raises(TypeError, match="parts is a (dict|ArrayRanking): give a list of parts"):
        fit_on_workers(PlackettLuceRanker(**QUICK), given, client=client)


@pytest.mark.skipif(not hasattr(PlackettLuceRanker, "set_callbacks"), reason="this scikit-learn has no callbacks")
def test_callbacks_which_nobody_would_call_are_refused(client, tmp_path):
    ranker = PlackettLuceRanker(**QUICK).set_callbacks(Checkpoint(tmp_path / "run.npz"))
    with pytest.raises(ValueError, match=r"fit_on_workers calls no callbacks.*by set_callbacks\(\)"):
        fit_on_workers(ranker, [part(0, 20)], client=client)


def test_other_estimators_and_odd_numbers_of_steps_are_refused(client):
    with pytest.raises(TypeError, match="ranker is a Pipeline: give a PlackettLuceRanker"):
        fit_on_workers(make_pipeline(PlackettLuceRanker()), [part(0, 20)], client=client)
    with pytest.raises(ValueError, match="average_every=0: give an integer >= 1"):
        fit_on_workers(PlackettLuceRanker(), [part(0, 20)], client=client, average_every=0)


def test_without_a_client_it_says_how_to_make_one():
    with pytest.raises(ValueError, match="There is no Dask client: make one first"), on_workers():
        pass


def test_without_dask_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for call in (on_workers().__enter__, lambda: fit_on_workers(PlackettLuceRanker(), [part(0, 20)])):
        with pytest.raises(ImportError, match=r'pip install "skfairrank\[dask\]"'):
            call()


def test_a_cluster_is_no_client(cluster):
    with pytest.raises(TypeError, match="client is a LocalCluster: give a distributed.Client"), on_workers(cluster):
        pass


# Lost workers; last, since new processes must load everything again

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
    """Each process dies in its second fit, with what it was at work on and the rows that it kept. Nannies start others."""
    grid = {"rho": [0.0, 0.001, 0.01, 0.1]}
    alone = fit(search_over(Mortal(), grid))
    before = client.run(os.getpid)
    with on_workers(client):
        shared = fit(search_over(Mortal(victims=tuple(before.values())), grid))
    assert_same_results(alone, shared)
    client.wait_for_workers(2, timeout=60)
    assert not set(client.run(os.getpid).values()) & set(before.values())


class MortalScore(LinearScore):
    """Linear scores whose hundredth use in a process among `victims` kills that process."""

    def __init__(self, victims=()):
        self.victims = victims

    def values_of_rows(self, theta, X, rows=None):
        FITS["scores", os.getpid()] += 1
        if os.getpid() in self.victims and FITS["scores", os.getpid()] == 100:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().values_of_rows(theta, X, rows)


def test_bits_depend_on_parts_and_neither_on_workers_nor_on_their_loss(client):
    """A worker dies in mid-training, with the part that it has; another cluster has threads of one process."""
    ranker = SenSTIRRanker(METRIC, rho=0.1, random_state=0, max_iter=120)
    cuts = ((0, 20), (20, 30), (30, 60))
    with threads_of_this_process() as other:
        alone = fit_on_workers(ranker, [part(*cut) for cut in cuts], client=other, average_every=20)
    victims = tuple(client.run(os.getpid).values())
    mortal = sklearn.clone(ranker).set_params(score_function=MortalScore(victims[:1]))
    shared = fit_on_workers(mortal, [client.submit(part, *cut) for cut in cuts], client=client, average_every=20)
    client.wait_for_workers(2, timeout=60)
    assert victims[0] not in client.run(os.getpid).values()
    np.testing.assert_array_equal(shared.coef_, alone.coef_)
