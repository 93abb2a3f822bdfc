"""Ctrl-C may come at any moment: weights, number of iterations and history agree afterwards."""

import numpy as np
import pytest
from small_tasks import MIXED, make_task

from skfairrank import FairPGRanker, PlackettLuceRanker, SenSTIRRanker
from skfairrank.rankers import _progress

RAW = np.random.default_rng(5).normal(size=(2, 4))
TASK = make_task(MIXED, seed=1)

SOLVER = {"solver": "lbfgs", "subspace_radius": 0.2}
SOLVED = {
    "plain": lambda **k: PlackettLuceRanker(solver="lbfgs", alpha=0.01, **k),
    "box": lambda **k: SenSTIRRanker(RAW, **SOLVER, adversary="exact_box", rho=0.1, **k),
    "budget": lambda **k: SenSTIRRanker(RAW, **SOLVER, adversary="exact", rho=0.1, **k),
    "relaxed": lambda **k: SenSTIRRanker(RAW, **SOLVER, adversary="exact_box", rho=0.3, relax=0.8, **k),
}
TRAINED = {
    "plain": lambda **k: PlackettLuceRanker(**k),
    "ascent": lambda **k: SenSTIRRanker(RAW, **k),
    "box": lambda **k: SenSTIRRanker(RAW, adversary="exact_box", **k),
    "fair-pg": lambda **k: FairPGRanker(**k),
}
# What a step calls, stage by stage.
STAGES = {
    "scores": [(solvers.scores, "values"), (solvers.scores, "pull_back")],
    "solver": [
        (solvers, "over_queries"), (solvers._Run, "record"), (solvers._Run, "settle"), (solvers._Run, "_iteration"),
        (solvers.ExactBox, "attack"), (solvers.ExactBudget, "attack"), (solvers, "minimize"), (solvers, "_Iteration"),
        (_progress.Progress, "__call__"),
    ],
    "training": [
        (training._linear, "adam_step"), (training._linear, "mean"), (training, "over_queries"),
        (training.BatchStream, "take"), (training._linear, "subtract"), (_progress.Progress, "__call__"),
    ],
}  # fmt: skip


class Interrupts:
    """Raises KeyboardInterrupt before or after the n-th of all calls of a stage, and never again."""

    def __init__(self, monkeypatch, stages):
        self.n_calls, self.at, self.after = 0, -1, False
        for owner, name in [part for stage in stages for part in STAGES[stage]]:
            monkeypatch.setattr(owner, name, self.watched(getattr(owner, name)))

    def watched(self, function):
        def call(*args, **kwargs):
            self.n_calls += 1
            now = self.n_calls == self.at
            if now and not self.after:
                raise KeyboardInterrupt
            result = function(*args, **kwargs)
            if now:
                raise KeyboardInterrupt
            return result

        return call


def interrupted_fits(make, monkeypatch, stages, n_points):
    """Fits that are interrupted at many points, before and after calls; ends early where no warning comes."""
    interrupts = Interrupts(monkeypatch, stages)
    make().fit(TASK.X, TASK.y, qid=TASK.qid, sensitive_features=TASK.qid % 2)
    n_calls = interrupts.n_calls
    for at in np.unique(np.linspace(1, n_calls, min(n_points, n_calls)).astype(int)):
        for interrupts.after in (False, True):
            interrupts.n_calls, interrupts.at = 0, at
            with pytest.warns(UserWarning, match=r"interrupted after \d+ of"):
                ranker = make().fit(TASK.X, TASK.y, qid=TASK.qid, sensitive_features=TASK.qid % 2)
            interrupts.at = -1
            assert np.isfinite(ranker.coef_).all()
            assert {len(values) for values in ranker.history_.values()} == {ranker.n_iter_}
            yield ranker


@pytest.mark.parametrize("name", SOLVED)
def test_an_interrupted_solver_has_the_history_of_its_weights(name, monkeypatch):
    """The last entries, from the definitions of utility and penalties."""
    seen = set()
    for ranker in interrupted_fits(lambda name=name: SOLVED[name](max_iter=500), monkeypatch, ("scores", "solver"), 80):
        seen.add(ranker.n_iter_)
        if not ranker.n_iter_:
            continue
        last, w = {key: values[-1] for key, values in ranker.history_.items()}, ranker.coef_
        assert last["utility"] == pytest.approx(TASK.utility(w)[0], rel=1e-9)
        if name in ("box", "relaxed"):
            assert last["regularizer"] == pytest.approx(TASK.box(w, RAW, 0.2, 0.02), rel=1e-9)
        if name == "budget":
            basis = ranker.metric_.sensitive_basis_
            assert last["regularizer"] == pytest.approx(TASK.budget(w, basis, 0.01, 0.2), rel=1e-9)
    assert len(seen) > 5


@pytest.mark.parametrize("name", TRAINED)
def test_interrupted_training_has_the_weights_of_the_steps_it_took(name, monkeypatch):
    """As many steps without an interruption lead to the same weights; a step that was cut off does not count."""
    settings = {"random_state": 0, "learning_rate": 0.03, "batch_size": 8}

    def make(max_iter=9):
        plain = {"fair_start": 2 / max_iter} if name in ("ascent", "box") else {}
        return TRAINED[name](max_iter=max_iter, **settings).set_params(**plain)

    whole = {}
    for n in range(1, 10):
        whole[n] = make(n).fit(TASK.X, TASK.y, qid=TASK.qid, sensitive_features=TASK.qid % 2) if n > 1 else None
    for ranker in interrupted_fits(make, monkeypatch, ("scores", "training"), 40):
        if ranker.n_iter_ > 1:
            np.testing.assert_array_equal(ranker.coef_, whole[ranker.n_iter_].coef_)
            assert getattr(ranker, "lambda_", None) == getattr(whole[ranker.n_iter_], "lambda_", None)
            np.testing.assert_array_equal(ranker.history_["utility"], whole[ranker.n_iter_].history_["utility"])


def test_zeros_survive_an_interruption_of_the_relaxed_fit(monkeypatch):
    """Adam's step, and the projection after it, count as one."""
    box = SenSTIRRanker(
        [[1.0, 1.0, 0.0, 0.0]], adversary="exact_box", rho=3.0, relax=0.5, subspace_radius=1.0, max_iter=300,
        learning_rate=0.01, gradient="exact", batch_size=24, random_state=0,
    )  # fmt: skip
    calls = []

    def adam_step(*args, step=training._linear.adam_step):
        step(*args)
        calls.append(1)
        if len(calls) == 450:
            raise KeyboardInterrupt

    monkeypatch.setattr(training._linear, "adam_step", adam_step)
    with pytest.warns(UserWarning, match="interrupted after 449 of"):
        ranker = box.fit(TASK.X, TASK.y, qid=TASK.qid)
    assert abs(ranker.coef_[0] + ranker.coef_[1]) < 1e-14 < 1e-3 < abs(ranker.coef_[0])
