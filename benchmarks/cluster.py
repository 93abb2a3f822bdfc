"""Past one machine: a search, a path and starts on one worker process and on two, and training that two share.

Elapsed time, so that it needs an idle machine with at least two cores. Results are the same to the bit on one worker and on two,
which is checked. Training that workers share is judged on German Credit, over several seeds.
"""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager
from functools import partial

from _tools import arguments, german, header, number, ratio, table, time_text

# isort: split
import cloudpickle
import dask
import joblib
import numpy as np
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker, senstir_path
from skfairrank.cluster import fit_on_workers, on_workers
from skfairrank.experiments import recorded_experiment
from skfairrank.metrics import ndcg_scorer, neg_group_exposure_difference_scorer
from skfairrank.model_selection import QueryKFold
from skfairrank.scores import MLPScore

# Memory that a worker has freed stays with it. docs/cluster.md says why.
KEEP = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**30,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}


@contextmanager
def workers(n):
    """A client of n worker processes with a thread each, which have loaded what they need."""
    with (
        dask.config.set(KEEP),
        LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(warm_up)
        yield client


def warm_up():
    X, y, qid, _ = german()
    few = qid < 20
    settings = {"metric": np.eye(X.shape[1])[:1], "max_iter": 5, "random_state": 0}
    groups = X[few, 0] > np.median(X[few, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for more in ({}, {"score_function": MLPScore((32,)), "n_init": 2}):
            ranker = SenSTIRRanker(rho=0.1, **settings, **more).fit(X[few], y[few], qid=qid[few])
            ndcg_scorer(ranker, X[few], y[few], qid=qid[few])
            neg_group_exposure_difference_scorer(ranker, X[few], y[few], qid=qid[few], sensitive_features=groups)
        senstir_path(X[few], y[few], qid=qid[few], rhos=[0.1, 1.0], **settings)


def elapsed(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


# Searches, starts, paths


def make_search(max_iter):
    """Ten values of rho on four folds: 40 fits. No refit, which would run alone."""
    ranker = SenSTIRRanker(np.eye(29)[:1], max_iter=max_iter, random_state=0)
    scoring = {"ndcg": ndcg_scorer, "gap": neg_group_exposure_difference_scorer}
    grid = {"rho": np.geomspace(0.001, 1, 10)}
    return GridSearchCV(ranker, grid, cv=QueryKFold(4), scoring=scoring, refit=False, error_score="raise")


def works(quick):
    """What is shared out: by its name a function, and one that tells what must be the same."""
    X, y, qid, _ = german()
    groups, raw = X[:, 0] > np.median(X[:, 0]), np.eye(29)[:1]
    max_iter = 400 if quick else 10_000

    def search():
        return make_search(max_iter).fit(X, y, qid=qid, sensitive_features=groups).cv_results_

    def starts():
        network = SenSTIRRanker(raw, score_function=MLPScore((32,)), n_init=4, max_iter=max_iter // 20, random_state=0)
        return network.fit(X, y, qid=qid)

    def path():
        return senstir_path(X, y, qid=qid, metric=raw, rhos=np.geomspace(0.01, 3, 10 if quick else 40), n_stretches=4)

    def of_search(results):
        return np.array([values for name, values in results.items() if name.startswith("split")])

    return {
        f"search, 40 fits of {max_iter:,} steps": (search, of_search),
        f"4 starts of a network, {max_iter // 20} steps": (starts, lambda ranker: ranker.objectives_),
        "path of rho, 4 stretches": (path, lambda path: path.coefs),
    }


def compare(quick):
    rows, found, times = [], {}, {}
    for n in (1, 2):
        with workers(n) as client:
            for name, (work, _) in works(quick).items():
                with on_workers(client):
                    times[name, n], found[name, n] = elapsed(work)
    for name, (_, told) in works(quick).items():
        if not np.array_equal(told(found[name, 1]), told(found[name, 2])):
            raise AssertionError(f"{name}: the result depends on the number of workers.")
        rows.append([name, time_text(times[name, 1]), time_text(times[name, 2]), ratio(times[name, 1], times[name, 2])])
    table("On one worker process and on two, elapsed time", ["work", "1 worker", "2 workers", "ratio"], rows)


def stretches(quick):
    X, y, qid, _ = german()
    rhos, rows, objectives = np.geomspace(0.01, 3, 10 if quick else 40), [], {}
    for n in (1, 2, 4, 8):
        start = time.process_time()
        path = senstir_path(X, y, qid=qid, metric=np.eye(29)[:1], rhos=rhos, n_stretches=n)
        objectives[n] = path.utilities - path.rhos * path.regularizers
        apart = np.abs(objectives[n] - objectives[1]).max()
        rows.append([str(n), time_text(time.process_time() - start), str(path.n_iters.sum()), f"{apart:.1e}"])
    table(
        "A path of rho in stretches, in one process, CPU time",
        ["stretches", "time", "iterations", "objectives differ by at most"],
        rows,
    )


class Ledger(Client):
    """A client that notes the bytes of what it submits, and whether that is a task."""

    def submit(self, function, *args, **kwargs):
        size = len(cloudpickle.dumps((args, kwargs)))
        self.__dict__.setdefault("sent", []).append((kwargs["key"].startswith("batch"), size))
        return super().submit(function, *args, **kwargs)


def bytes_sent():
    X, y, qid, _ = german()
    with workers(2) as client, Ledger(client.scheduler.address) as ledger, on_workers(ledger):
        make_search(20).fit(X, y, qid=qid, sensitive_features=X[:, 0] > 0)
        sent = np.array(ledger.sent)
    tasks, rows = sent[sent[:, 0] == 1, 1], sent[sent[:, 0] == 0, 1]
    with_rows = len(tasks) * len(cloudpickle.dumps((X, y, qid)))
    cells = [[number(amount / 1e6) for amount in (X.nbytes, rows.sum(), tasks.sum(), with_rows)]]
    columns = ["X alone", "rows, metadata, folds", "all 40 tasks", "all 40 tasks, were rows in them"]
    table("What a search of 40 fits sends, MB", columns, cells)


# Training that workers share


def part(X, y, qid, rows):
    return {"X": X[rows], "y": y[rows], "qid": qid[rows]}


def halves(task):
    train = task.train
    return [part(train.X, train.y, train.qid, rows) for _, rows in QueryKFold(2).split(train.X, groups=train.qid)]


def shared_training(quick):
    """On German Credit: what two parts reach with as many steps each, or half of them, by the steps between averages."""
    task, n_seeds = recorded_experiment("german_seed0"), 3 if quick else 4
    settings = {**task.training, **task.attack, "max_iter": 1000 if quick else 20_000}
    ranker = SenSTIRRanker(FrozenEstimator(task.fit_metric()), rho=1.0, **settings)
    parts, rows = halves(task), []

    def add(title, fit, n_steps, **how):
        times, judged = [], []
        for seed in range(n_seeds):
            seconds, fitted = elapsed(
                partial(fit, clone(ranker).set_params(random_state=seed, max_iter=n_steps), **how)
            )
            times.append(seconds)
            judged.append([task.judge(fitted)[name] for name in ("ndcg", "stochastic_ndcg", "tau")])
        spread = [f"{m:.3f} ± {s:.3f}" for m, s in zip(np.mean(judged, axis=0), np.std(judged, axis=0, ddof=1))]
        rows.append([title, time_text(times), *spread])

    steps = settings["max_iter"]
    task.fit(clone(ranker).set_params(max_iter=5))
    add(f"here, {steps:,} steps", task.fit, steps)
    with workers(2) as client:
        for n_steps in (steps, steps // 2):
            for every in (100, 1000, n_steps) if not quick else (100, n_steps):
                title = f"2 parts, {n_steps:,} steps each, average every {every:,}"
                add(title, fit_on_workers, n_steps, parts=parts, client=client, average_every=every)
    columns = ["training", "elapsed", "NDCG", "of the policy", "Kendall's tau"]
    table("German Credit, SenSTIR with rho 1: mean and spread over seeds", columns, rows)


def large_batches(quick):
    """Where steps are long, and messages short."""
    rng, rows = np.random.default_rng(0), []
    n_queries, n_items, n_steps = 400, 50, 20 if quick else 200
    X = rng.normal(size=(n_queries * n_items, 40))
    y, qid = rng.integers(0, 3, len(X)).astype(float), np.repeat(np.arange(n_queries), n_items)
    metric = FrozenEstimator(SensitiveSubspaceMetric(directions=np.eye(40)[:1]).fit(X))
    parts = [part(X, y, qid, qid % 2 == k) for k in (0, 1)]
    for title, more in (("linear", {}), ("network of 32", {"score_function": MLPScore((32,))})):
        settings = {"rho": 0.1, "n_samples": 25, "random_state": 0, **more}
        alone = SenSTIRRanker(metric, batch_size=100, max_iter=n_steps, **settings)
        one, _ = elapsed(partial(alone.fit, X, y, qid=qid))
        with workers(2) as client:
            half = clone(alone).set_params(batch_size=50)
            fit_on_workers(clone(half).set_params(max_iter=2), parts, client=client)
            two, _ = elapsed(partial(fit_on_workers, half, parts, client=client, average_every=n_steps // 4))
        rows.append([title, time_text(one / n_steps), time_text(two / n_steps), one / two])
    columns = ["score", "here, a step", "2 workers, a step", "ratio"]
    table("A step of 100 queries of 50 items, or 50 of them on each of 2 workers", columns, rows)


def main():
    quick = arguments(__doc__).quick
    warnings.simplefilter("ignore")
    print(header(), f"joblib {joblib.__version__}", sep=", ")
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        compare(quick)
        bytes_sent()
    stretches(quick)
    shared_training(quick)
    large_batches(quick)


if __name__ == "__main__":
    main()
