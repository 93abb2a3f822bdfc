"""Ctrl-C may come at any line of training: weights, number of iterations and history agree afterwards."""

import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from instruments import Fuse
from sklearn.base import clone
from small_tasks import MIXED, make_task

import skfairrank
from skfairrank import FairPGRanker, PlackettLuceRanker, SenSTIRRanker
from skfairrank.adversaries import ExactBox, ExactBudget

pytestmark = pytest.mark.once

RAW = np.random.default_rng(5).normal(size=(2, 4))
TASK = make_task(MIXED, seed=1)
PACKAGE = Path(skfairrank.__file__).parent
PARTS = tuple(str(PACKAGE / name) for name in ("training", "adversaries"))
LBFGS, ADAM = {"solver": "lbfgs", "max_iter": 500}, {"random_state": 0, "learning_rate": 0.03, "batch_size": 8}
SOLVED = {
    "plain": PlackettLuceRanker(alpha=0.01, **LBFGS),
    "box": SenSTIRRanker(RAW, rho=0.1, adversary=ExactBox(0.2), **LBFGS),
    "budget": SenSTIRRanker(RAW, rho=0.1, adversary=ExactBudget(subspace_radius=0.2), **LBFGS),
}
TRAINED = {
    "plain": PlackettLuceRanker(**ADAM),
    "ascent": SenSTIRRanker(RAW, **ADAM),
    "box": SenSTIRRanker(RAW, adversary="exact_box", **ADAM),
    "fair-pg": FairPGRanker(**ADAM),
}


def fit(ranker):
    return clone(ranker).fit(TASK.X, TASK.y, qid=TASK.qid, sensitive_features=TASK.qid % 2)


@contextmanager
def lines_of_training(fuse):
    """Every line of Python that training runs, within the context, is a call of the fuse, before the line."""

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(PARTS):
            return None
        if event == "line":
            fuse(lambda: None)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def interrupted_fits(ranker, n_points):
    """Fits that come to an end. Where Ctrl-C falls outside the loops of training, before or after them, it is the caller's."""
    calls, found = Fuse(), []
    with lines_of_training(calls):
        fit(ranker)
    points = np.unique(np.linspace(1, calls.n_calls, n_points).astype(int))
    for n in points:
        try:
            with lines_of_training(Fuse(n)), pytest.warns(UserWarning, match=r"interrupted after \d+ of"):
                found.append(fit(ranker))
        except KeyboardInterrupt:
            continue
        assert np.isfinite(found[-1].coef_).all()
        assert {len(values) for values in found[-1].history_.values()} == {found[-1].n_iter_}
    assert len(found) > 0.75 * len(points)
    return found


@pytest.mark.parametrize("name", SOLVED)
def test_an_interrupted_solver_has_the_history_of_its_weights(name):
    """The last entries, by the definitions of utility and penalties."""
    found = interrupted_fits(SOLVED[name], 40)
    assert len({ranker.n_iter_ for ranker in found}) > 5
    for ranker in found:
        last, w = {key: values[-1] for key, values in ranker.history_.items() if ranker.n_iter_}, ranker.coef_
        if not last:
            continue
        assert last["utility"] == pytest.approx(TASK.utility(w)[0], rel=1e-9)
        if name == "box":
            assert last["regularizer"] == pytest.approx(TASK.box(w, RAW, 0.2, 0.02), rel=1e-9)
        if name == "budget":
            assert last["regularizer"] == pytest.approx(TASK.budget(w, np.linalg.qr(RAW.T)[0].T, 0.01, 0.2), rel=1e-9)


@pytest.mark.parametrize("name", TRAINED)
def test_interrupted_training_has_the_weights_of_the_steps_it_took(name):
    """As many steps without an interruption lead to the same weights; a step that was cut off does not count."""

    def to(n):
        ranker = clone(TRAINED[name]).set_params(max_iter=n)
        return ranker.set_params(fair_start=2 / n) if isinstance(ranker, SenSTIRRanker) else ranker

    whole = {n: fit(to(n)) for n in range(2, 10)}
    found = interrupted_fits(to(9), 120)
    assert {ranker.n_iter_ for ranker in found} >= set(range(9))
    for ranker in found:
        if ranker.n_iter_ > 1:
            expected = whole[ranker.n_iter_]
            np.testing.assert_array_equal(ranker.coef_, expected.coef_)
            np.testing.assert_array_equal(ranker.history_["utility"], expected.history_["utility"])
            assert getattr(ranker, "lambda_", None) == getattr(expected, "lambda_", None)
