"""The paper's experiments: its hyperparameters, its queries where they are at hand, and what is judged."""

import re
from pathlib import Path

import numpy as np
import pytest
from _data import shared_data
from sklearn.linear_model import LogisticRegression

from skfairrank import PlackettLuceRanker
from skfairrank.datasets import load_german_credit
from skfairrank.experiments import (
    RECORDED,
    Experiment,
    Side,
    data_folder,
    german_credit_experiment,
    german_credit_people,
    recorded_experiment,
    synthetic_experiment,
)


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """A folder without any data file, named by SKFAIRRANK_DATA."""
    folder = tmp_path / "nothing"
    folder.mkdir()
    monkeypatch.setenv("SKFAIRRANK_DATA", str(folder))
    return folder


@pytest.fixture(scope="module")
def synthetic():
    return synthetic_experiment()


def test_hyperparameters_are_those_of_tables_2_and_3(synthetic):
    """Table 2: epochs, batch size, samples, as, ae, epsilon, fs, fe, frs; learning rate and start from the notebooks."""
    assert synthetic.training == {"learning_rate": 0.04, "max_iter": 2000, "batch_size": 1, "n_samples": 10}
    assert synthetic.attack == {
        "subspace_step_size": 0.001,
        "subspace_n_steps": 20,
        "subspace_init": 0.05,
        "epsilon": 0.001,
        "full_step_size": 0.001,
        "full_n_steps": 20,
        "fair_start": 0.0,
        "dual_step": "paper",
    }
    assert synthetic.metric.classifier.C == 100 and synthetic.metric.scale == "raw"
    german = german_credit_experiment(load_german_credit(shared_data("german.data.gz")))
    assert german.training == {"learning_rate": 0.001, "max_iter": 20_000, "batch_size": 10, "n_samples": 25}
    assert german.attack == {
        "subspace_step_size": 0.01,
        "subspace_n_steps": 20,
        "subspace_init": 0.005,
        "epsilon": 1.0,
        "full_step_size": 0.001,
        "full_n_steps": 20,
        "fair_start": 0.1,
        "dual_step": "paper",
    }
    assert german.metric.sensitive_columns == [0] and german.metric.scale == "raw"
    # Table 3: 5 passes of 100 queries, and 100 of 500; batches of one query.
    assert synthetic.fair_pg == {"learning_rate": 0.1, "max_iter": 500, "batch_size": 1, "n_samples": 10}
    assert german.fair_pg == {"learning_rate": 0.001, "max_iter": 50_000, "batch_size": 1, "n_samples": 25}


def test_directions_have_the_length_of_the_classifiers_coefficients(synthetic):
    """The paper's steps are measured in it."""
    train = synthetic.train
    _, where = np.unique(np.column_stack([train.X, train.groups]), axis=0, return_index=True)
    fitted = synthetic.fit_metric()
    coef = LogisticRegression(C=100, max_iter=1000).fit(train.X[where], train.groups[where]).coef_
    np.testing.assert_allclose(fitted.directions_, coef, rtol=0.01)


def test_shortened_divides_the_steps(synthetic):
    short = synthetic.shortened(100)
    assert (short.training["max_iter"], short.fair_pg["max_iter"]) == (20, 5)
    assert short.attack == synthetic.attack and synthetic.shortened(10**9).training["max_iter"] == 1


def test_judge_tells_the_sorted_list_from_the_policy():
    """Case 18 of the cases, and case 14: scores ln 3 and 0; softer scores leave the list as it is."""

    class Scores:
        def __init__(self, factor):
            self.factor = factor

        def predict(self, X):
            return self.factor * np.asarray(X)[:, 0]

    X, y, qid = np.array([[np.log(3)], [0.0]]), np.array([1.0, 1.0]), np.array([0, 0])
    side = Side(X, y, qid, np.array([True, False]))
    task = Experiment("two items", side, side, -X, metric=None, training={}, attack={})
    first, second = 1.0, 1 / np.log2(3)
    for factor in (1.0, 0.5):
        p = 3**factor / (3**factor + 1)  # the first item comes first
        judged = task.judge(Scores(factor))
        assert judged["disparity"] == pytest.approx(first - second)
        assert judged["stochastic_disparity"] == pytest.approx((2 * p - 1) * (first - second))
        assert judged["tau"] == -1.0
    # Equal scores: every order alike, in the list as in the policy.
    assert task.judge(Scores(0.0))["disparity"] == pytest.approx(0.0)
    # Gains 7 and 1: in the other order NDCG is (1 + 7 second) / (7 + second).
    graded = Experiment("two items", side, Side(X, np.array([3.0, 1.0]), qid, side.groups), X, None, {}, {})
    judged = graded.judge(Scores(1.0))
    expected = 0.75 + 0.25 * (1 + 7 * second) / (7 + second)
    assert (judged["ndcg"], judged["stochastic_ndcg"]) == pytest.approx((1.0, expected))


def test_recorded_queries_are_those_on_which_the_authors_weights_reach_their_numbers():
    shared_data("senstir_synthetic.npz")
    experiment = recorded_experiment("senstir_synthetic")
    train, test = experiment.train, experiment.test
    assert not set(train.qid) & set(test.qid) and len(set(train.qid)) == len(set(test.qid)) == 100
    ranker = experiment.shortened(1000).fit(PlackettLuceRanker(max_iter=2, random_state=0))
    for recorded in RECORDED["senstir_synthetic"].values():
        ranker.coef_ = np.array(recorded.coef)
        judged = experiment.judge(ranker)
        assert judged["tau"] == pytest.approx(recorded.tau, abs=1e-4)
        assert judged["stochastic_ndcg"] == pytest.approx(recorded.ndcg, abs=0.003)  # theirs from 10 rankings a query


def test_without_files_the_message_says_where_to_get_them(no_data, monkeypatch):
    with pytest.raises(FileNotFoundError, match=re.escape(f"No german_seed1.npz in {no_data}")):
        recorded_experiment("german_seed1")
    with pytest.raises(ValueError, match="give one of senstir_synthetic"):
        recorded_experiment("german")
    with pytest.raises(
        FileNotFoundError, match="german_credit_kaggle.csv.*https://archive.ics.uci.edu.*SKFAIRRANK_DATA"
    ):
        german_credit_people(fetch=False)

    def unreachable(**kwargs):
        raise ConnectionError("no network")

    monkeypatch.setattr("skfairrank.experiments.fetch_german_credit", unreachable)
    with pytest.raises(FileNotFoundError, match=r"https://archive.ics.uci.edu.*\(no network\)"):
        german_credit_people()
    monkeypatch.setattr("skfairrank.experiments.fetch_german_credit", lambda **kwargs: "fetched")
    assert german_credit_people() == "fetched"


def test_data_is_looked_for_beside_the_project_by_default(monkeypatch):
    monkeypatch.delenv("SKFAIRRANK_DATA", raising=False)
    assert data_folder() == Path("..", "shared", "data")
