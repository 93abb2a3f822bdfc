"""The table of *Start here*: made by its script, such as people have them, and true to the lesson that the page teaches."""

import runpy

import numpy as np
import pytest
from _data import ROOT
from sklearn.preprocessing import StandardScaler

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker
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


def test_groups_differ_in_the_two_tests_and_in_nothing_else_that_counts(people):
    """Gaps in standard errors of a difference of two means: ability, the work sample and experience are drawn alike."""
    for lower, higher in (("abroad", "south"), ("south", "north")):
        for column in ("ability", "work_sample", "years", *TESTS):
            one, other = (people.loc[people["origin"] == name, column].dropna() for name in (lower, higher))
            z = (other.mean() - one.mean()) / np.sqrt(one.var() / len(one) + other.var() / len(other))
            assert (z > 5) if column in TESTS else (abs(z) < 3), column


def test_the_lesson_is_true(people):
    """By marks before they are lowered, which only the script knows: lists that read no group are unfair, fair ones less so."""
    fair_marks = [f"fair_{mark}" for mark in MARKS]
    assert people["fair_work_sample"].equals(people["work_sample"])
    train = people["opening"] < "2024-100"
    X = people[[*MARKS, "years"]].fillna(people.loc[train, [*MARKS, "years"]].mean())
    unlowered = X.assign(**{mark: people[fair].fillna(X[mark]) for mark, fair in zip(MARKS, fair_marks)})
    scale, found = StandardScaler().fit(X[train]), {}
    for rho in (0, 0.0003):
        ranker = SenSTIRRanker(
            SensitiveSubspaceMetric(unknown_groups="leave_out"), adversary="gaps", rho=rho, random_state=0
        )
        told = {"qid": people.loc[train, "opening"], "sensitive_features": people.loc[train, "known_origin"]}
        ranker.fit(scale.transform(X[train]), people.loc[train, "grade"], **told)
        scores, other = (ranker.predict(scale.transform(rows[~train])) for rows in (X, unlowered))
        qid = people.loc[~train, "opening"]
        ndcg = ndcg_score(people.loc[~train, "grade"], scores, qid=qid)
        found[rho] = kendall_tau_score(scores, other, qid=qid), ndcg
    (tau, ndcg), (fair_tau, fair_ndcg) = found.values()
    assert tau < 0.85 and fair_tau > tau + 0.08 and fair_ndcg > ndcg - 0.04, found
