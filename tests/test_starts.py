"""n_init: the best of several starts by the training objective, the same for any number of processes."""

import re

import joblib
import numpy as np
import pytest
import sklearn
from instruments import Diary, Fuse, FusedScore, ScoreWithDiary
from small_tasks import MIXED, make_task

from skfairrank import FairPGRanker, PlackettLuceRanker, SenSTIRRanker
from skfairrank.metrics import group_exposure_disparity
from skfairrank.scores import LinearScore, MLPScore

pytestmark = pytest.mark.once

TASK = make_task(MIXED, seed=1)
GROUP = np.arange(len(TASK.y)) % 2
RAW = np.random.default_rng(5).normal(size=(2, 4))
QUICK = {"max_iter": 8, "batch_size": 3, "random_state": 0}


class Scattered(LinearScore):
    """Linear scores that start far apart."""

    def initial_parameters(self, n_features, rng):
        return rng.normal(size=n_features)


STARTS = {"score_function": Scattered(), "n_init": 4, "learning_rate": 1e-6, **QUICK}


def fit(ranker, **kwargs):
    return ranker.fit(TASK.X, TASK.y, qid=TASK.qid, sensitive_features=GROUP, **kwargs)


# The objective


def test_the_start_with_the_largest_objective_is_kept():
    """With steps of almost no length each start ends where it began, so that objectives differ; alpha counts in them."""
    ranker = fit(PlackettLuceRanker(alpha=0.1, **STARTS))
    w = ranker.coef_
    assert len(np.unique(ranker.objectives_)) == 4
    assert ranker.objectives_.max() == pytest.approx(TASK.utility(w)[0] - 0.05 * w @ w, rel=1e-9)


def test_the_objective_has_the_regulariser_in_closed_form():
    ranker = fit(SenSTIRRanker(RAW, rho=0.3, adversary="exact_box", subspace_radius=0.2, feature_radius=0.02, **STARTS))
    w = ranker.coef_
    assert ranker.objectives_.max() == pytest.approx(TASK.utility(w)[0] - 0.3 * TASK.box(w, RAW, 0.2, 0.02), rel=1e-9)


def test_the_objective_has_what_an_attack_finds():
    """Adam from zero takes sign steps, nearly: it fills the box of all its steps by far the most, and cannot leave it."""
    steps = {
        "subspace_step_size": 0.01,
        "subspace_n_steps": 20,
        "subspace_init": 0.05,
        "full_step_size": 0.001,
        "full_n_steps": 20,
    }
    ranker = fit(SenSTIRRanker(RAW, rho=0.3, epsilon=100.0, **steps, **STARTS))
    w = ranker.coef_
    found = (TASK.utility(w)[0] - ranker.objectives_.max()) / 0.3
    most = TASK.box(w, RAW, 0.25, 0.02)
    assert 0.5 * most < found < most


def test_the_objective_has_the_disparity():
    ranker = fit(FairPGRanker(fairness_weight=0.7, **STARTS))
    h = ranker.predict(TASK.X)
    disparity = group_exposure_disparity(TASK.y, h, qid=TASK.qid, sensitive_features=GROUP, n_samples="exact")
    expected = TASK.utility(ranker.coef_)[0] - 0.7 * disparity
    assert ranker.objectives_.max() == pytest.approx(expected, rel=1e-9)


# Starts and their random numbers


def test_some_seed_keeps_the_first_start_and_then_equals_one_start_to_the_bit():
    for seed in range(20):
        settings = {**STARTS, "n_init": 2, "random_state": seed}
        two = fit(SenSTIRRanker(RAW, rho=0.1, **settings))
        if np.argmax(two.objectives_) == 0:
            one = fit(SenSTIRRanker(RAW, rho=0.1, **{**settings, "n_init": 1}))
            np.testing.assert_array_equal(two.parameters_, one.parameters_)
            np.testing.assert_array_equal(two.history_["regularizer"], one.history_["regularizer"])
            return
    raise AssertionError("no seed of twenty kept its first start")


def test_a_generator_advances_alike_for_any_number_of_starts():
    left = []
    for n_init in (1, 3):
        rng = np.random.default_rng(3)
        fit(PlackettLuceRanker(n_init=n_init, **{**QUICK, "random_state": rng}))
        left.append(rng.random())
    assert left[0] == left[1]


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_results_do_not_depend_on_the_number_of_processes(backend):
    ranker = SenSTIRRanker(rho=0.1, score_function=MLPScore((3,)), n_init=3, **QUICK)
    alone = fit(ranker)
    parameters, objectives = alone.parameters_, alone.objectives_
    with joblib.parallel_config(backend=backend, n_jobs=2):
        together = fit(ranker)
    np.testing.assert_array_equal(together.parameters_, parameters)
    np.testing.assert_array_equal(together.objectives_, objectives)


@pytest.mark.parametrize("ranker", [
    PlackettLuceRanker(warm_start=True, n_init=3, **QUICK),
    PlackettLuceRanker(solver="lbfgs", alpha=0.1, n_init=3),
])  # fmt: skip
def test_a_warm_start_and_the_solver_for_lines_start_once(ranker):
    fit(fit(ranker))
    assert not hasattr(ranker, "objectives_")


def test_the_solver_starts_networks_several_times():
    ranker = fit(
        PlackettLuceRanker(solver="lbfgs", score_function=MLPScore((2,)), alpha=0.01, n_init=3, random_state=0)
    )
    assert len(np.unique(ranker.objectives_)) == 3
    last = ranker.history_["utility"][-1] - 0.005 * ranker.parameters_ @ ranker.parameters_
    assert ranker.objectives_.max() == pytest.approx(last, rel=1e-9)


def test_objectives_of_an_earlier_fit_do_not_stay():
    ranker = fit(PlackettLuceRanker(n_init=2, **QUICK))
    assert len(ranker.objectives_) == 2
    assert not hasattr(fit(ranker.set_params(n_init=1)), "objectives_")


def test_early_stopping_holds_the_same_queries_out_in_every_start():
    diaries = []
    for n_init in (1, 3):
        diaries.append(Diary())
        stopping = {"early_stopping": True, "validation_fraction": 0.4, "max_iter": 40, "batch_size": 3}
        fit(PlackettLuceRanker(score_function=ScoreWithDiary(diaries[-1]), n_init=n_init, random_state=0, **stopping))
    np.testing.assert_array_equal(*(diary.rows_trained_on for diary in diaries))


# What is told


def test_verbose_tells_of_the_first_start(capsys):
    fit(PlackettLuceRanker(n_init=3, verbose=1, **QUICK))
    steps = [int(n) for n in re.findall(r"step (\d+)/8", capsys.readouterr().out)]
    assert steps == sorted(set(steps)) and steps[-1] == 8


class Recorder:
    """A scikit-learn callback that counts steps, and stops after so many."""

    def __init__(self, stop_after=None):
        self.stop_after, self.ended = stop_after, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return context.task_name == "steps" and self.ended.count("steps") == self.stop_after


@pytest.mark.skipif(
    not hasattr(PlackettLuceRanker, "set_callbacks"), reason=f"scikit-learn {sklearn.__version__} has no callbacks"
)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_callbacks_hear_of_the_first_start_and_may_end_all(n_jobs):
    with joblib.parallel_config(backend="threading"):
        hears, stops = Recorder(), Recorder(stop_after=3)
        heard = fit(PlackettLuceRanker(n_init=3, n_jobs=n_jobs, **QUICK).set_callbacks(hears))
        stopped = fit(PlackettLuceRanker(n_init=3, n_jobs=n_jobs, **QUICK).set_callbacks(stops))
    assert hears.ended == ["steps"] * 8 + ["fit"] and len(heard.objectives_) == 3
    assert stops.ended == ["steps"] * 3 + ["fit"] and len(stopped.objectives_) == 1 and stopped.n_iter_ == 3


@pytest.mark.parametrize(("n", "place"), [(3, "2 of 8 steps of start 1 of 3"), (12, "3 of 8 steps of start 2 of 3")])
def test_an_interruption_begins_no_other_start(n, place):
    ranker = PlackettLuceRanker(score_function=FusedScore(Fuse(n), on=("pull_back",)), n_init=3, **QUICK)
    with pytest.warns(UserWarning, match=f"interrupted after {place}; the ranker is usable"):
        fit(ranker)
    assert len(ranker.objectives_) == int(place.split()[-3]) and np.isfinite(ranker.coef_).all()
    assert {len(values) for values in ranker.history_.values()} == {ranker.n_iter_}


def test_an_interruption_while_an_objective_is_measured_keeps_what_is_there():
    """Ten calls for values in a start: eight steps, and one look at all queries."""
    ranker = PlackettLuceRanker(score_function=FusedScore(Fuse(18), on=("values_of_rows",)), n_init=3, **QUICK)
    with pytest.warns(UserWarning, match="interrupted after 8 of 8 steps of start 2 of 3"):
        fit(ranker)
    assert np.isfinite(ranker.objectives_[0]) and ranker.objectives_[1] == -np.inf and ranker.n_iter_ == 8
