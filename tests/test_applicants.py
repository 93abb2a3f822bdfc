"""The table of *Start here*: made by its script, such as people have them, and true to the lesson that the page teaches."""

import runpy

import numpy as np
import pytest
from _data import ROOT
from sklearn.preprocessing import StandardScaler

from skfairrank import PlackettLuceRanker, SenSTIRRanker
from skfairrank.metrics import kendall_tau_score, ndcg_score

SCRIPT = ROOT / "docs" / "data" / "make_applicants.py"
TABLE = ROOT / "docs" / "data" / "applicants.csv"
TESTS = ["timed_test", "puzzles"]
MARKS = [*TESTS, "work_sample"]


@pytest.fixture(scope="module")
def made():
    return runpy.run_path(str(SCRIPT), run_name="make_applicants")


@pytest.fixture(scope="module")
def people(made):
    return made["make_people"]()


def test_the_script_makes_the_very_file(made):
    text = made["make_table"]().to_csv(index=False, date_format="%Y-%m-%d", lineterminator="\n")
    assert text.encode() == TABLE.read_bytes()


def test_genders_differ_in_the_two_tests_and_in_nothing_else_that_counts(people):
    """Gaps in standard errors of a difference of two means: ability, the work sample and experience are drawn alike."""
    women = people["gender"] == "f"
    for column in ("ability", "work_sample", "years", *TESTS):
        one, other = people.loc[women, column].dropna(), people.loc[~women, column].dropna()
        z = (other.mean() - one.mean()) / np.sqrt(one.var() / len(one) + other.var() / len(other))
        assert (z > 10) if column in TESTS else (abs(z) < 3), column


def test_a_twin_has_the_same_work_sample_and_other_tests(people):
    """Lowered by 1.5 and 1.2 standard deviations of 12 points: 18 and 14.4, where no mark is cut off at 0 or 100."""
    assert people["work_sample"].equals(people["twin_work_sample"])
    inside = people[TESTS].gt(25).all(axis=1) & people[TESTS].lt(75).all(axis=1)
    for test, lowered in zip(TESTS, (18.0, 14.4)):
        change = (people[f"twin_{test}"] - people[test]).where(
            people["gender"] == "f", people[test] - people[f"twin_{test}"]
        )
        assert change[inside].dropna().between(lowered - 1, lowered + 1).all()


def test_the_lesson_is_true(people):
    """By the twins, whom only the script knows: lists without the column of gender are unfair, a fair ranker's much less so."""
    columns = [*MARKS, "years"]
    train = people["opening"] < "2024-150"
    X = people[columns].fillna(people.loc[train, columns].median())
    twin = (
        people[[f"twin_{mark}" for mark in MARKS]]
        .set_axis(MARKS, axis=1)
        .fillna(X[MARKS].median())
        .assign(years=X["years"])
    )
    scale = StandardScaler().fit(X[train])
    settings = {"solver": "lbfgs", "alpha": 1e-4}
    found = {}
    for ranker in (PlackettLuceRanker(**settings), SenSTIRRanker(adversary="gaps", rho=0.001, **settings)):
        told = {"qid": people.loc[train, "opening"], "sensitive_features": people.loc[train, "gender"]}
        ranker.fit(scale.transform(X[train]), people.loc[train, "grade"], **told)
        scores, other = (ranker.predict(scale.transform(rows[~train])) for rows in (X, twin))
        qid = people.loc[~train, "opening"]
        found[type(ranker)] = (
            kendall_tau_score(scores, other, qid=qid),
            ndcg_score(people.loc[~train, "grade"], scores, qid=qid),
        )
    (tau, ndcg), (fair_tau, fair_ndcg) = found.values()
    assert tau < 0.65 and fair_tau > tau + 0.15 and fair_ndcg > ndcg - 0.04
