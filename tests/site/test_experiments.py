"""The paper's experiments: its hyperparameters, its queries where they are at hand, and what is judged."""

import gzip
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from _data import shared_data
from sklearn.linear_model import LogisticRegression

from skfairrank import FairPGRanker, PlackettLuceRanker, SenSTIRRanker
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
    unlike_pair,
)
from skfairrank.experiments._comparison import Softened, make_systems, name_of, run_systems, summarize

pytestmark = pytest.mark.once


@pytest.fixture
def packed_german():
    """To be asked for before `no_data` hides it."""
    return shared_data("german.data.gz")


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


def test_shortened_solves_roughly_where_there_are_no_steps_to_count():
    german = german_credit_experiment(load_german_credit(shared_data("german.data.gz")))
    assert german.shortened(10).solver == {**german.solver, "tol": 1e-2} and german.shortened(1) is german


def test_stars_are_alike_but_for_the_group(synthetic):
    for side in (synthetic.train, synthetic.test):
        black, blue = unlike_pair(side)
        assert side.groups[black] and not side.groups[blue]
        assert abs(side.y[black] - side.y[blue]) < 0.3
        assert abs(side.X[black, 0] - side.X[blue, 0]) < 0.5 and side.X[black, 1] - side.X[blue, 1] > 2.9


def test_systems_are_made_with_the_hyperparameters_of_the_experiment(synthetic):
    """The values themselves: test_hyperparameters_are_those_of_tables_2_and_3."""
    strengths = {
        "Baseline": None,
        "Project": None,
        "Drop z2": None,
        "Drop z2, softened": [0.5],
        "Fair-PG-Rank": [25],
        "SenSTIR": [0.001],
        "SenSTIR, exact": [0.01],
        "SenSTIR, box": [0.02],
        "Random": None,
    }
    made = {family: ranker for family, _, ranker in make_systems(synthetic, strengths, 7)}
    training = {**synthetic.training, "random_state": 7, "alpha": 0.0}
    solver, box = synthetic.solver, {"adversary": "exact_box", **synthetic.box}
    for family, ranker, expected in (
        ("Baseline", PlackettLuceRanker, training),
        ("Fair-PG-Rank", FairPGRanker, {**synthetic.fair_pg, "fairness_weight": 25, "random_state": 7}),
        ("SenSTIR", SenSTIRRanker, {**training, **synthetic.attack, "rho": 0.001, "adversary": "ascent"}),
        ("SenSTIR, exact", SenSTIRRanker, {**synthetic.budget, **solver, "adversary": "exact", "rho": 0.01}),
        ("SenSTIR, box", SenSTIRRanker, {**box, **solver, "rho": 0.02}),
    ):
        assert type(made[family]) is ranker
        assert {name: made[family].get_params()[name] for name in expected} == expected
    assert all(made[family].metric is synthetic.metric for family in strengths if family.startswith("SenSTIR"))
    assert type(made["Project"][0]) is type(synthetic.metric) and type(made["Project"][1]) is PlackettLuceRanker
    np.testing.assert_array_equal(made["Drop z2"][0].fit_transform(synthetic.test.X), synthetic.test.X[:, :1])
    assert made["Drop z2, softened"].ranker is made["Drop z2"] and made["Drop z2, softened"].factor == 0.5
    assert len({ranker.random_state for ranker in made["Random"]}) == 20
    with pytest.raises(ValueError, match="'Drop age' is no family of systems on Synthetic"):
        list(make_systems(synthetic, {"Drop age": None}, 0))


def test_a_systems_name_has_its_strength():
    assert name_of("Baseline", None) == "Baseline"
    assert name_of("SenSTIR", 0.0003) == "SenSTIR, rho 0.0003"
    assert name_of("Fair-PG-Rank", 25.0) == "Fair-PG-Rank, weight 25"
    assert name_of("Drop age and sex, softened", 0.1) == "Drop age and sex, softened, scores times 0.1"


def test_runs_are_judged_and_summed_up_over_splits(synthetic):
    """Rankers that learn nothing; of a list of them the mean counts."""

    class Told:
        def __init__(self, number):
            self.number = number

        def fit(self, X, y, *, qid, sensitive_features):
            assert X is synthetic.train.X and qid is synthetic.train.qid
            return self

    def judge(experiment, ranker):
        return {"number": ranker.number}

    systems = [("one", None, Told(1.0)), ("many", 0.5, [Told(2.0), Told(4.0)])]
    one, many = run_systems(synthetic, systems, judge)
    assert (one["system"], one["number"]) == ("one", 1.0) and (many["system"], many["number"]) == ("many, rho 0.5", 3.0)
    assert one["ranker"] is systems[0][2] and many["data"] == "Synthetic"
    runs = pd.DataFrame([{"split": 0, **one}, {"split": 1, **one, "number": 4.0}, {"split": 0, **many}])
    results = summarize(runs)["number"]
    assert results.loc[("Synthetic", "one", "one")].tolist() == [2.5, 1.5]  # (4 - 1) / 2
    assert results.loc[("Synthetic", "many", "many, rho 0.5"), "mean"] == 3.0


def test_softened_scores_rank_alike():
    class First:
        def predict(self, X):
            return X[:, 0]

    softened = Softened(First(), 0.1).fit(None, None, qid=None)
    assert softened.predict(np.array([[1.0, 9.0], [3.0, 9.0]])) == pytest.approx([0.1, 0.3])


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


def test_without_files_the_message_says_where_to_get_them(no_data, no_network):
    with pytest.raises(FileNotFoundError, match=re.escape(f"No german_seed1.npz in {no_data}")):
        recorded_experiment("german_seed1")
    with pytest.raises(ValueError, match="give one of senstir_synthetic"):
        recorded_experiment("german")

    with pytest.warns(UserWarning, match="network error"):
        with pytest.raises(FileNotFoundError, match=r"SKFAIRRANK_DATA=\. \(.*could not be fetched from OpenML"):
            german_credit_people()


def test_advice_about_german_credit_brings_it(packed_german, no_data, tmp_path):
    """The command after the download, given to a shell in the folder of the download, lets the next program find the file."""
    with pytest.raises(FileNotFoundError, match=re.escape(f"{no_data} has none of")) as raised:
        german_credit_people(fetch=False)
    download, command = [line.strip() for line in str(raised.value).splitlines() if line.startswith("    ")]
    tool, *options, address = shlex.split(download)
    assert tool == "curl" and "--remote-name" in options and address.startswith("https://archive.ics.uci.edu/")
    folder = tmp_path / "here"
    folder.mkdir()
    with gzip.open(packed_german) as packed:
        (folder / address.rpartition("/")[2]).write_bytes(packed.read())
    code = "from skfairrank.experiments import german_credit_people as p; print(len(p(fetch=False).target))"
    script = f"{command}; {shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.stdout.strip() == "1000", done.stderr


def test_data_is_looked_for_beside_the_project_by_default(monkeypatch):
    monkeypatch.delenv("SKFAIRRANK_DATA", raising=False)
    assert data_folder() == Path("..", "shared", "data")
