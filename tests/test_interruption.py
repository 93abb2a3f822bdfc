"""Ctrl-C may come at any moment: weights, number of iterations and history agree afterwards."""

import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from instruments import Fuse, FusedAdversary, FusedScore
from small_tasks import MIXED, make_task

import skfairrank
from skfairrank import FairPGRanker, PlackettLuceRanker, SenSTIRRanker
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget
from skfairrank.scores import LinearScore

pytestmark = pytest.mark.once

RAW = np.random.default_rng(5).normal(size=(2, 4))
TASK = make_task(MIXED, seed=1)
GIVEN = {"qid": TASK.qid, "sensitive_features": TASK.qid % 2}

SOLVED = {
    "plain": (PlackettLuceRanker(alpha=0.01), None),
    "box": (SenSTIRRanker(RAW, rho=0.1), ExactBox(0.2)),
    "budget": (SenSTIRRanker(RAW, rho=0.1), ExactBudget(subspace_radius=0.2)),
}
TRAINED = {
    "plain": (PlackettLuceRanker(), None),
    "ascent": (SenSTIRRanker(RAW), Ascent()),
    "box": (SenSTIRRanker(RAW), ExactBox()),
    "fair-pg": (FairPGRanker(), None),
}


def fused(ranker, adversary, fuse):
    """The ranker with a fuse on everything that it is handed and calls."""
    ranker.set_params(score_function=FusedScore(fuse))
    return ranker if adversary is None else ranker.set_params(adversary=FusedAdversary(adversary, fuse))


def interrupted(ranker):
    with pytest.warns(UserWarning, match=r"interrupted after \d+ of"):
        ranker.fit(TASK.X, TASK.y, **GIVEN)
    assert np.isfinite(ranker.coef_).all()
    assert {len(values) for values in ranker.history_.values()} == {ranker.n_iter_}
    return ranker


def interrupted_fits(ranker, adversary, n_points):
    """Fits that are interrupted at many points, before and after calls."""
    calls = Fuse()
    fused(ranker, adversary, calls).fit(TASK.X, TASK.y, **GIVEN)
    for n in np.unique(np.linspace(1, calls.n_calls, min(n_points, calls.n_calls)).astype(int)):
        for after in (False, True):
            yield interrupted(fused(ranker, adversary, Fuse(n, after=after)))


def check_last_entries(name, ranker):
    """The history's last entries are those of the weights, by the definitions of utility and penalties."""
    last, w = {key: values[-1] for key, values in ranker.history_.items()}, ranker.coef_
    assert last["utility"] == pytest.approx(TASK.utility(w)[0], rel=1e-9)
    if name == "box":
        assert last["regularizer"] == pytest.approx(TASK.box(w, RAW, 0.2, 0.02), rel=1e-9)
    if name == "budget":
        assert last["regularizer"] == pytest.approx(TASK.budget(w, np.linalg.qr(RAW.T)[0].T, 0.01, 0.2), rel=1e-9)


@pytest.mark.parametrize("name", SOLVED)
def test_an_interrupted_solver_has_the_history_of_its_weights(name):
    ranker, adversary = SOLVED[name]
    seen = set()
    for found in interrupted_fits(ranker.set_params(solver="lbfgs", max_iter=500), adversary, 13):
        seen.add(found.n_iter_)
        if found.n_iter_:
            check_last_entries(name, found)
    assert len(seen) > 5


def training(name, max_iter):
    ranker, adversary = TRAINED[name]
    ranker.set_params(random_state=0, learning_rate=0.03, batch_size=8, max_iter=max_iter)
    return (ranker.set_params(fair_start=2 / max_iter) if isinstance(ranker, SenSTIRRanker) else ranker), adversary


def whole_fits(name, most):
    """By their number of steps; attributes that tell where training is."""
    found = {}
    for n in range(2, most + 1):
        ranker, adversary = training(name, n)
        ranker.set_params(score_function="linear", **({"adversary": adversary} if adversary else {}))
        ranker.fit(TASK.X, TASK.y, **GIVEN)
        found[n] = ranker.coef_, getattr(ranker, "lambda_", None), ranker.history_["utility"]
    return found


def check_is_as_far(ranker, whole):
    if ranker.n_iter_ > 1:
        coef, lambda_, utility = whole[ranker.n_iter_]
        np.testing.assert_array_equal(ranker.coef_, coef)
        assert getattr(ranker, "lambda_", None) == lambda_
        np.testing.assert_array_equal(ranker.history_["utility"], utility)


@pytest.mark.parametrize("name", TRAINED)
def test_interrupted_training_has_the_weights_of_the_steps_it_took(name):
    """As many steps without an interruption lead to the same weights; a step that was cut off does not count."""
    whole, seen = whole_fits(name, 9), set()
    for ranker in interrupted_fits(*training(name, 9), 40):
        seen.add(ranker.n_iter_)
        check_is_as_far(ranker, whole)
    assert len(seen) == 9  # 0 to 8


# At any line


PACKAGE = Path(skfairrank.__file__).parent
PARTS = tuple(str(PACKAGE / name) for name in ("training", "adversaries"))


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


def fits_interrupted_at_lines(make, n_points):
    """Fits that come to an end. Where Ctrl-C falls outside the loops of training, before or after them, it is the caller's."""
    calls = Fuse()
    with lines_of_training(calls):
        make().fit(TASK.X, TASK.y, **GIVEN)
    n_tried = n_ended = 0
    for n in np.unique(np.linspace(1, calls.n_calls, min(n_points, calls.n_calls)).astype(int)):
        ranker, n_tried = make(), n_tried + 1
        try:
            with lines_of_training(Fuse(n)):
                interrupted(ranker)
        except KeyboardInterrupt:
            continue
        n_ended += 1
        yield ranker
    assert n_ended > 0.75 * n_tried


@pytest.mark.parametrize("name", TRAINED)
def test_training_may_be_interrupted_at_any_line(name):
    def make():
        ranker, adversary = training(name, 9)
        return ranker.set_params(score_function="linear", **({"adversary": adversary} if adversary else {}))

    whole = whole_fits(name, 9)
    for ranker in fits_interrupted_at_lines(make, 37):
        if ranker.n_iter_ < 9:
            check_is_as_far(ranker, whole)


@pytest.mark.parametrize("name", SOLVED)
def test_the_solver_may_be_interrupted_at_any_line(name):
    def make():
        ranker, adversary = SOLVED[name]
        ranker.set_params(solver="lbfgs", max_iter=500, score_function="linear")
        return ranker if adversary is None else ranker.set_params(adversary=adversary)

    for ranker in fits_interrupted_at_lines(make, 19):
        if ranker.n_iter_:
            check_last_entries(name, ranker)


def test_a_fuse_that_never_burns_changes_nothing():
    ranker, adversary = training("box", 9)
    coef = fused(ranker, adversary, Fuse()).fit(TASK.X, TASK.y, **GIVEN).coef_
    plain = ranker.set_params(score_function=LinearScore(), adversary=adversary).fit(TASK.X, TASK.y, **GIVEN).coef_
    np.testing.assert_array_equal(coef, plain)
