"""Rankers whose constructor is written once for all: what scikit-learn and help() see; and adversaries that are objects."""

import inspect
import re

import numpy as np
import pytest
from instruments import failures_of_check_estimator
from sklearn.base import clone
from small_tasks import MIXED, make_task

from skfairrank import FairPGRanker, PlackettLuceRanker, RandomRanker, SenSTIRRanker
from skfairrank.adversaries import (
    ADVERSARIES,
    Ascent,
    ExactBox,
    ExactBudget,
    ExactGaps,
    GapsAscent,
    GivenHypotheticals,
)

TASK = make_task(MIXED, seed=1)
GROUP = np.arange(len(TASK.y)) % 2
CLASSES = [PlackettLuceRanker, SenSTIRRanker, FairPGRanker]
every_class = pytest.mark.parametrize("cls", CLASSES)


GIVEN = {"qid": TASK.qid, "sensitive_features": GROUP}


def fit(ranker):
    return ranker.fit(TASK.X, TASK.y, **GIVEN)


# Signature and documentation


@every_class
def test_the_signature_names_every_parameter_with_its_default(cls):
    parameters = inspect.signature(cls).parameters
    assert list(parameters) == list(inspect.signature(cls.__init__).parameters)[1:]
    assert {name: p.default for name, p in parameters.items()} == cls().get_params(deep=False)
    kinds = {p.kind for name, p in parameters.items() if name != "metric"}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    assert all(name in parameters for name in inspect.signature(PlackettLuceRanker).parameters)


@every_class
def test_every_parameter_is_documented_and_nothing_else(cls):
    section = inspect.getdoc(cls).split("Parameters\n----------\n")[1].split("\n\nAttributes\n")[0]
    named = [name for line in re.findall(r"^(?!\s)(.+?)(?: : .*)?$", section, re.M) for name in line.split(", ")]
    assert sorted(named) == sorted(inspect.signature(cls).parameters)


def test_a_class_may_be_derived_with_a_constructor_of_its_own():
    class Short(SenSTIRRanker):
        def __init__(self, rho=0.01, max_iter=5):
            super().__init__([[0.0, 1.0, 0.0, 0.0]], rho=rho, max_iter=max_iter, random_state=0)

    assert Short().get_params() == {"rho": 0.01, "max_iter": 5}
    assert fit(clone(Short(rho=0.5))).rho == 0.5


@pytest.mark.parametrize("cls", [*CLASSES, RandomRanker])
@pytest.mark.filterwarnings("ignore")
def test_rankers_pass_the_checks_of_scikit_learn(cls):
    failed = failures_of_check_estimator(cls(**({} if cls is RandomRanker else {"max_iter": 5})))
    assert not failed, failed


# Adversaries as objects


QUICK = {"max_iter": 30, "random_state": 0, "rho": 0.1, "metric": [[1.0, 1.0, 0.0, 0.0]]}
ASCENT = {
    "epsilon": 0.02, "subspace_step_size": 0.04, "subspace_n_steps": 7, "subspace_init": 0.03, "subspace_n_starts": 2,
    "full_step_size": 0.002, "full_n_steps": 8, "dual_step": "budget",
}  # fmt: skip


def moved(X):
    return X + [1.0, 1.0, 0.01, 0.0]


OBJECTS = {
    "ascent": Ascent(**ASCENT),
    "exact": ExactBudget(0.02, 0.3),
    "exact_box": ExactBox(0.2, 0.05),
    "gaps": ExactGaps(0.4, 0.05),
    "gaps_ascent": GapsAscent(0.4, **ASCENT),
    "given": GivenHypotheticals(moved, epsilon=0.1, dual_step="paper"),
}


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
@pytest.mark.parametrize("name", ADVERSARIES)
def test_a_name_is_its_object_with_defaults(name, solver):
    settings = {**QUICK, "solver": solver, "max_iter": 30 if solver == "adam" else 500}
    rows = {"X_hypothetical": moved(TASK.X)} if name == "given" else {}
    by_name, by_object = (SenSTIRRanker(adversary=a, **settings) for a in (name, ADVERSARIES[name]()))
    other = SenSTIRRanker(adversary=OBJECTS[name], **settings)
    if solver == "lbfgs" and not OBJECTS[name].is_closed_form:
        for ranker in (by_name, by_object):
            with pytest.raises(
                ValueError, match='closed form: set adversary="gaps", "exact_box" or "exact", or use solver'
            ):
                ranker.fit(TASK.X, TASK.y, **GIVEN, **rows)
        return
    before = dict(vars(OBJECTS[name]))
    by_name, by_object = (ranker.fit(TASK.X, TASK.y, **GIVEN, **rows) for ranker in (by_name, by_object))
    np.testing.assert_array_equal(by_object.coef_, by_name.coef_)
    for key, values in by_name.history_.items():
        np.testing.assert_array_equal(by_object.history_[key], values)
    assert by_object.history_["regularizer"].max() > 0 or name == "given"
    assert not np.array_equal(fit(other).coef_, by_name.coef_)
    assert other.adversary is OBJECTS[name] and vars(OBJECTS[name]) == before


def test_parameters_of_an_object_are_reached_by_their_nested_names():
    ranker = SenSTIRRanker(adversary=ExactBox(0.2, 0.05))
    assert ranker.get_params()["adversary__feature_radius"] == 0.05
    twin = clone(ranker).set_params(adversary__feature_radius=0.5)
    assert (twin.adversary.feature_radius, ranker.adversary.feature_radius) == (0.5, 0.05)
    assert "adversary__feature_radius" not in SenSTIRRanker().get_params()
    assert (
        SenSTIRRanker().set_params(adversary=ExactBox(), adversary__feature_radius=0.5).adversary.feature_radius == 0.5
    )
    for name, kind in ADVERSARIES.items():
        with pytest.raises(ValueError, match=rf"give the object, adversary={kind.__name__}\(\)"):
            SenSTIRRanker(adversary=name).set_params(adversary__epsilon=0.5)


@pytest.mark.parametrize(
    "adversary, message",
    [
        (ExactBox(-1.0), "subspace_radius"),
        (ExactBox(0.1, "wide"), "feature_radius"),
        (Ascent(full_n_steps=2.5), "full_n_steps"),
        (ExactBudget(epsilon=-0.1), "epsilon"),
        (ExactBox, "adversary"),
        (object(), "adversary"),
        ("box", "'adversary' parameter of SenSTIRRanker must be"),
    ],
)
def test_what_is_no_adversary_is_an_error_that_says_why(adversary, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit(SenSTIRRanker(adversary=adversary, **QUICK))
