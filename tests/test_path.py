"""The path along rho: equal to cold fits, a grid with the documented ends, and what it takes and refuses."""

import inspect
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from _data import shared_data
from instruments import Fuse, FusedScore
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from small_tasks import MIXED, make_task

from skfairrank import PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker, senstir_path
from skfairrank.adversaries import ExactBox, ExactBudget
from skfairrank.inspection import invariance_regularizer
from skfairrank.rankers import _path as core

pytestmark = pytest.mark.once

OBLIQUE = [[1.0, 1.0, 0.0, 0.0]]
TWO = [[1.0, 1.0, 0.0, 0.0], [0.0, 0.5, -1.0, 0.3]]
METRICS = {"axis": [[0.0, 2.0, 0.0, 0.0]], "oblique": OBLIQUE, "two": TWO}
RHOS = np.geomspace(0.01, 10, 5)


ADVERSARIES = {"exact_box": ExactBox(0.2), "exact": ExactBudget(subspace_radius=0.2)}


def solver(adversary="exact_box", **kwargs):
    settings = {"solver": "lbfgs", "max_iter": 2000, "tol": 1e-6}
    return SenSTIRRanker(adversary=ADVERSARIES[adversary], **{**settings, **kwargs})


def walk(task, **kwargs):
    return senstir_path(task.X, task.y, **{"qid": task.qid, "metric": OBLIQUE, **kwargs})


def objective(task, raw, adversary, rho):
    """U by counting all rankings, R in closed form."""
    metric = SensitiveSubspaceMetric(raw).fit(task.X)

    def of(w):
        R = invariance_regularizer(w, task.X, qid=task.qid, metric=metric, adversary=ADVERSARIES[adversary])
        return task.utility(w)[0] - rho * R

    return of


def mean_ndcg(task, w):
    """Over the queries where it is defined; `Task.utility` counts the others as 0."""
    defined = np.mean([task.y[task.qid == k].max() > 0 for k in np.unique(task.qid)])
    return task.utility(w)[0] / defined


# The solutions


@pytest.mark.parametrize("adversary", ["exact_box", "exact"])
@pytest.mark.parametrize("name", METRICS)
def test_every_point_is_as_good_as_a_cold_fit(name, adversary):
    for task in (make_task(seed=1), make_task(MIXED, seed=2)):
        path = walk(task, metric=METRICS[name], estimator=solver(adversary), rhos=RHOS)
        for rho, w in zip(path.rhos, path.coefs):
            cold = solver(adversary, metric=METRICS[name], rho=rho).fit(task.X, task.y, qid=task.qid).coef_
            value = objective(task, METRICS[name], adversary, rho)
            assert value(w) == pytest.approx(value(cold), abs=1e-6)


@pytest.mark.parametrize("adversary", ["exact_box", "exact"])
def test_it_holds_what_its_rankers_hold(adversary):
    task = make_task(MIXED, seed=1)
    path = walk(task, estimator=solver(adversary), rhos=RHOS)
    metric = SensitiveSubspaceMetric(OBLIQUE).fit(task.X)
    assert len(path.rankers) == 5 and path.rhos == pytest.approx(RHOS)
    assert path.predict(task.X[:7]) == pytest.approx(path.coefs @ task.X[:7].T, rel=1e-12)
    cold = 0
    for k, ranker in enumerate(path.rankers):
        assert ranker.rho == path.rhos[k]
        np.testing.assert_array_equal(ranker.coef_, path.coefs[k])
        assert ranker.n_iter_ == path.n_iters[k] == len(ranker.history_["utility"])
        assert path.utilities[k] == pytest.approx(mean_ndcg(task, path.coefs[k]), rel=1e-12)
        R = invariance_regularizer(path.coefs[k], task.X, qid=task.qid, metric=metric, adversary=ADVERSARIES[adversary])
        assert path.regularizers[k] == pytest.approx(R, rel=1e-12)
        cold += clone(ranker).fit(task.X, task.y, qid=task.qid).n_iter_
    assert path.n_iters.sum() < cold  # warm starts save iterations


@pytest.mark.parametrize("adversary", ["exact_box", "exact"])
@pytest.mark.parametrize("name", METRICS)
def test_utility_and_regularizer_fall_along_rho(name, adversary):
    """True of exact solutions: for rho < rho', adding the two inequalities of optimality."""
    task = make_task(seed=3)
    path = walk(task, metric=METRICS[name], estimator=solver(adversary), n_rhos=12)
    assert (np.diff(path.regularizers) < 1e-9).all() and (np.diff(path.utilities) < 1e-6).all()
    assert path.regularizers[0] > 5 * path.regularizers[-1]


def test_it_is_deterministic_and_blind_to_the_seed_and_to_interleaving():
    task = make_task(MIXED, seed=1)
    one = walk(task, n_rhos=4, random_state=0)
    order = np.argsort(task.qid, kind="stable")
    for other in (
        walk(task, n_rhos=4, random_state=1),
        senstir_path(task.X[order], task.y[order], qid=task.qid[order], metric=OBLIQUE, n_rhos=4),
    ):
        np.testing.assert_array_equal(other.rhos, one.rhos)
        np.testing.assert_array_equal(other.coefs, one.coefs)


# Stretches


@pytest.mark.parametrize("adversary", ["exact_box", "exact"])
@pytest.mark.parametrize("n_stretches", [2, 4, 99])
def test_stretches_find_solutions_as_good_as_those_of_one_walk(adversary, n_stretches):
    task = make_task(MIXED, seed=2)
    value = {rho: objective(task, OBLIQUE, adversary, rho) for rho in RHOS}
    whole = walk(task, estimator=solver(adversary), rhos=RHOS)
    cut = walk(task, estimator=solver(adversary), rhos=RHOS, n_stretches=n_stretches)
    assert cut.rhos.tolist() == whole.rhos.tolist() and [ranker.rho for ranker in cut.rankers] == RHOS.tolist()
    for rho, one, other in zip(RHOS, whole.coefs, cut.coefs):
        assert value[rho](other) == pytest.approx(value[rho](one), abs=1e-6)


def test_with_adam_each_stretch_is_a_path_of_its_own():
    """Of four rhos in two stretches: the first fit of each takes 30 steps, and every other one 30 / 3."""
    task = make_task(seed=1)
    settings = {"solver": "adam", "max_iter": 30, "random_state": 0}
    cut = walk(task, rhos=RHOS[:4], n_stretches=2, **settings)
    assert cut.n_iters.tolist() == [30, 10, 30, 10]
    cold = SenSTIRRanker(OBLIQUE, adversary="exact_box", rho=RHOS[2], **settings).fit(task.X, task.y, qid=task.qid)
    np.testing.assert_array_equal(cut.coefs[2], cold.coef_)


@pytest.mark.parametrize("make_state", [lambda: 0, lambda: np.random.default_rng(1), lambda: np.random.RandomState(2)])
def test_results_do_not_depend_on_the_number_of_jobs(make_state):
    task, paths = make_task(seed=1), []
    for n_jobs in (1, 3):
        with joblib.parallel_config(backend="threading"):
            settings = {"solver": "adam", "max_iter": 20, "random_state": make_state()}
            paths.append(walk(task, rhos=RHOS, n_stretches=3, n_jobs=n_jobs, **settings))
    np.testing.assert_array_equal(paths[0].coefs, paths[1].coefs)


# The grid


def test_the_grid_is_geometric_with_ends_that_do_not_depend_on_the_number_of_values():
    assert inspect.signature(senstir_path).parameters["n_rhos"].default == 40
    task = make_task(seed=1)
    few, more = walk(task, n_rhos=np.int64(2)).rhos, walk(task, n_rhos=9).rhos
    assert few == pytest.approx(more[[0, -1]], rel=1e-12) and len(more) == 9
    assert more == pytest.approx(np.geomspace(*few, 9), rel=1e-9) and few[1] >= 10 * few[0] * 0.999 > 0


@pytest.mark.parametrize("adversary", ["exact_box", "exact"])
@pytest.mark.parametrize("raw", [[[1.0, 0, 0]], [[0, 0, 1.0]], [[0, 0, 0.1]], [[1.0, 0, 1.0]]])
@pytest.mark.parametrize("sizes", [(4,) * 20, MIXED])
def test_the_grid_ends_where_little_is_gained_and_begins_where_little_is_lost(sizes, raw, adversary):
    """The two constants of the module, against a fit without the regulariser; also where the sensitive feature matters most."""
    task = make_task(sizes, weights=(0.3, 0.0, 1.0), seed=1)
    path = walk(task, metric=raw, estimator=solver(adversary), n_rhos=2)
    later = solver(adversary, metric=raw, rho=10 * path.rhos[0]).fit(task.X, task.y, qid=task.qid).coef_
    free = PlackettLuceRanker(solver="lbfgs", tol=1e-4, max_iter=2000).fit(task.X, task.y, qid=task.qid).coef_
    at_random, at_best, *gains = (mean_ndcg(task, w) for w in (np.zeros(3), free, *path.coefs, later))
    first, last, after = (np.array(gains) - at_random) / (at_best - at_random)
    assert 0 < last < 1.1 * core.LEAST_GAIN
    assert 1 - first < 1.5 * core.LEAST_LOSS and 1 - after > core.LEAST_LOSS  # a tenfold rho loses more


@pytest.mark.parametrize("s", [1e-2, 1e2])
@pytest.mark.parametrize("adversary", ["exact_box", "exact"])
def test_the_grid_scales_with_the_units(adversary, s):
    """R is in squared units of scores, w in inverse units of features: features and radii times s leave rho as it is, radii
    alone divide it by s^2."""
    task = make_task(seed=1)
    base = walk(task, estimator=solver(adversary), n_rhos=2).rhos
    wide = {"exact_box": ExactBox(0.2 * s, 0.02 * s), "exact": ExactBudget(0.01 * s**2, 0.2 * s)}[adversary]
    estimator = solver(adversary).set_params(adversary=wide)
    scaled = senstir_path(task.X * s, task.y, qid=task.qid, metric=OBLIQUE, estimator=estimator, n_rhos=2)
    assert scaled.rhos == pytest.approx(base, rel=0.05)
    assert walk(task, estimator=estimator, n_rhos=2).rhos == pytest.approx(base / s**2, rel=0.05)


@pytest.mark.parametrize("adversary", ["exact_box", "exact"])
def test_given_rhos_are_sorted_and_kept_and_after_zero_the_path_begins_anew(adversary):
    """Without a penalty scores saturate, and are no start for what follows."""
    task, given = make_task(seed=1), np.array([1.0, 0.0, 0.1, 0.1])
    path = walk(task, estimator=solver(adversary), rhos=given)
    assert path.rhos.tolist() == [0.0, 0.1, 0.1, 1.0] and given.tolist() == [1.0, 0.0, 0.1, 0.1]
    plain = PlackettLuceRanker(solver="lbfgs", max_iter=2000, tol=1e-6).fit(task.X, task.y, qid=task.qid)
    np.testing.assert_array_equal(path.coefs[0], plain.coef_)
    cold = solver(adversary, metric=OBLIQUE, rho=0.1).fit(task.X, task.y, qid=task.qid).coef_
    np.testing.assert_array_equal(path.coefs[1], cold)
    np.testing.assert_allclose(path.coefs[1], path.coefs[2], atol=1e-3)
    assert np.abs(path.coefs[0]).max() > 5 * np.abs(cold).max()
    assert walk(task, rhos=0.3).rhos.tolist() == [0.3]


# By stochastic gradients


@pytest.mark.parametrize("adversary", ["exact_box", "exact", "ascent"])
def test_adam_takes_as_many_steps_again_for_all_further_points(adversary):
    task, settings = make_task(MIXED, seed=1), {"solver": "adam", "adversary": adversary, "random_state": 0}
    path = walk(task, rhos=RHOS, max_iter=201, fair_start=0.1, **settings)
    assert path.n_iters.tolist() == [201, 50, 50, 50, 50]  # 201 // 4; the weakest rho comes first
    plain = [int((ranker.history_["regularizer"] == 0).sum()) for ranker in path.rankers]
    assert plain == [20, 0, 0, 0, 0]  # only a cold start is a fair one
    assert walk(task, rhos=RHOS, max_iter=3, **settings).n_iters.tolist() == [3, 1, 1, 1, 1]
    for ranker, value in zip(path.rankers, path.regularizers):
        history = ranker.history_["regularizer"]
        assert adversary != "ascent" or value == pytest.approx(history[-(len(history) // 10) :].mean(), rel=1e-12)


def test_adam_starts_from_the_last_weights():
    task = make_task(seed=1)
    settings = {"adversary": "exact_box", "max_iter": 30, "learning_rate": 1e-3, "random_state": 0}
    path = walk(task, solver="adam", rhos=[0.1, 1.0], **settings)
    ranker = SenSTIRRanker(OBLIQUE, rho=0.1, **settings).fit(task.X, task.y, qid=task.qid)
    np.testing.assert_array_equal(path.coefs[0], ranker.coef_)
    ranker.set_params(warm_start=True, rho=1.0, fair_start=0.0).fit(task.X, task.y, qid=task.qid)
    np.testing.assert_array_equal(path.coefs[1], ranker.coef_)


# What it takes


def test_rankers_are_whole_and_independent():
    """They rank, survive pickling and clone; a refit of one leaves the others alone."""
    task = make_task(seed=1)
    path = walk(task, rhos=RHOS, tol=1e-6)
    coefs = path.coefs.copy()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(path)).predict(task.X), path.predict(task.X))
    assert sorted(path.rankers[4].rank(task.X[:5], qid=[0] * 5).tolist()) == [1, 2, 3, 4, 5]
    path.rankers[2].set_params(rho=50.0).fit(task.X, task.y, qid=task.qid)
    for k in (0, 1, 3, 4):
        np.testing.assert_array_equal(path.rankers[k].coef_, coefs[k])
        assert path.rankers[k].rho == path.rhos[k]


@pytest.mark.parametrize("kwargs", [{"rhos": [0.1, 1.0]}, {"n_rhos": 2}])
def test_settings_go_on_top_of_the_estimators_which_are_left_as_they_are(kwargs):
    task, metric = make_task(seed=1), SensitiveSubspaceMetric(OBLIQUE)
    estimator = solver(metric=metric, rho=0.7, alpha=0.5)
    state = dict(vars(estimator))
    path = walk(task, metric=metric, estimator=estimator, adversary__subspace_radius=0.4, **kwargs)
    assert vars(estimator) == state and estimator.metric is metric and not hasattr(metric, "directions_")
    ranker = path.rankers[0]
    assert (ranker.adversary.subspace_radius, ranker.alpha, ranker.tol) == (0.4, 0.5, 1e-6)
    cold = clone(estimator).set_params(adversary__subspace_radius=0.4, rho=ranker.rho)
    np.testing.assert_array_equal(ranker.coef_, cold.fit(task.X, task.y, qid=task.qid).coef_)
    default = walk(task, **kwargs).rankers[0]
    assert (type(default.adversary), default.solver) == (ExactBox, "lbfgs")
    for no_ranker in (PlackettLuceRanker(), SenSTIRRanker, "SenSTIR"):
        with pytest.raises(TypeError):
            walk(task, estimator=no_ranker)


class CountedRegression(LogisticRegression):
    fits = 0

    def fit(self, *args, **kwargs):
        CountedRegression.fits += 1
        return super().fit(*args, **kwargs)


def test_the_metric_is_learned_once_from_sensitive_features():
    CountedRegression.fits = 0
    task, groups = make_task(seed=1), np.random.default_rng(0).integers(0, 2, 80)
    X, metric = pd.DataFrame(task.X, columns=list("abcd")), SensitiveSubspaceMetric(classifier=CountedRegression())
    path = senstir_path(X, task.y, qid=task.qid, metric=metric, sensitive_features=groups, n_rhos=3)
    assert CountedRegression.fits == 1 and len({id(ranker.metric_) for ranker in path.rankers}) == 1
    alone = solver(metric=metric).fit(X, task.y, qid=task.qid, sensitive_features=groups)
    np.testing.assert_array_equal(path.rankers[0].metric_.directions_, alone.metric_.directions_)
    assert all(ranker.feature_names_in_.tolist() == list("abcd") for ranker in path.rankers)


def test_without_anything_sensitive_it_warns_once():
    task = make_task(seed=1)
    with pytest.warns(UserWarning, match="Nothing is treated as sensitive") as seen:
        path = senstir_path(task.X, task.y, qid=task.qid, n_rhos=3)
    assert len(seen) == 1 and seen[0].filename == __file__ and len(path.rhos) == 3


def test_points_that_do_not_converge_warn():
    task = make_task(seed=1)
    with pytest.warns(ConvergenceWarning, match="did not converge") as seen:
        path = walk(task, rhos=RHOS, max_iter=2)
    assert {warning.filename for warning in seen} == {__file__} and path.n_iters.max() == 2


# What it refuses


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"rhos": [0.1, -1.0]}, "rhos must be finite numbers >= 0"),
        ({"n_rhos": 1}, "n_rhos=1: give an integer >= 2"),
        ({"n_stretches": 0}, "n_stretches=0: give an integer >= 1"),
        ({"adversary": "ascent"}, 'give rhos=, or adversary="gaps"'),
        ({"adversary": "ascent", "rhos": [0.1], "solver": "lbfgs"}, 'set adversary="gaps".*or use solver="adam"'),
        ({"adversary__feature_radius": 0.0}, "No grid of rho can be found.*Give rhos="),
        ({"early_stopping": True, "rhos": [0.1]}, 'early_stopping=True needs solver="adam"'),
        ({"qid": [0, 0, 1]}, "qid has 3 entries"),
        ({"qid": np.zeros(80), "rhos": [0.1], "solver": "lbfgs"}, r"limited to \d+ items"),
    ],
)
def test_bad_arguments_are_an_error_with_the_remedy(kwargs, message):
    with pytest.raises(ValueError, match=message):
        walk(make_task(seed=1), **kwargs)


@pytest.mark.parametrize("of", [lambda task: 0 * task.y, lambda task: 0 * task.y + 2])
def test_where_nothing_can_be_learned_there_is_no_grid(of):
    task = make_task(seed=1)
    task.y = of(task)
    with pytest.raises(ValueError, match="No grid of rho can be found.*Give rhos="):
        walk(task)
    with pytest.warns(UserWarning, match="All relevances are equal within each query"):
        assert not walk(task, rhos=[0.1, 1.0]).coefs.any()


def test_features_in_other_units_warn_once_where_steps_are_to_learn_them():
    task = make_task(seed=1)
    task.X[:, 2] *= 2e4
    with pytest.warns(UserWarning, match="column 2") as seen:
        walk(task, rhos=[0.1, 1.0], solver="adam", max_iter=2)
    assert len(seen) == 1 and seen[0].filename == __file__
    walk(task, rhos=[0.1])  # lbfgs scales for itself


@pytest.mark.parametrize("n", [-3, 1, 3])
@pytest.mark.parametrize("n_stretches", [1, 3])
def test_an_interrupt_ends_the_path(n, n_stretches):
    """Within the second fit, at its first gradient or a later one, the first one stays; within the first, what it has found."""
    task, first = make_task(seed=1), Fuse()
    path = walk(task, rhos=RHOS[:1], score_function=FusedScore(first))
    fuse = Fuse(first.n_calls + n)
    with pytest.warns(UserWarning, match="fit was interrupted") as seen:
        cut = walk(task, rhos=RHOS, n_stretches=n_stretches, score_function=FusedScore(fuse))
    assert len(seen) == 1 and fuse.n_calls == first.n_calls + n
    assert cut.rhos.tolist() == RHOS[:1].tolist() and len(cut.rankers) == 1
    assert np.array_equal(cut.coefs, path.coefs) == (n > 0) and cut.n_iters[0] <= path.n_iters[0]


# German Credit


@pytest.mark.slow
def test_german_credit_in_forty_values():
    """The whole trade-off: from nearly the plain ranker to fair weights only."""
    with np.load(shared_data("german_seed0.npz")) as data:
        X, y, qid = (data[f"{name}_train"] for name in ("X", "y", "qid"))
    metric = SensitiveSubspaceMetric(sensitive_columns=[0], scale="raw")
    path = senstir_path(X, y, qid=qid, metric=metric, adversary=ExactBox(0.2))
    assert path.coefs.shape == (40, 29) and path.rhos[0] < 0.05 and path.rhos[-1] > 1
    assert (np.diff(path.regularizers) < 1e-6).all() and (np.diff(path.utilities) < 1e-4).all()
    zeros = (path.coefs == 0).sum(axis=1)
    assert zeros[0] < 12 and zeros[-1] > 20 and path.coefs[-1, 0] == 0
