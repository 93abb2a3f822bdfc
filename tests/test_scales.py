"""The warning for features of very different scale: where it is due, and where it would be a false alarm."""

import warnings

import numpy as np
import pandas as pd
import pytest
from _data import shared_data
from sklearn.preprocessing import StandardScaler

from skfairrank import FairPGRanker, PlackettLuceRanker, SenSTIRRanker
from skfairrank._queries import Queries
from skfairrank.datasets import load_letor, make_biased_ranking
from skfairrank.metrics import ndcg_score
from skfairrank.rankers._fitting import warn_of_scales

pytestmark = pytest.mark.once

QID = np.repeat(np.arange(40), 10)


def standardised(seed=0, d=5, n=400):
    return np.random.default_rng(seed).normal(size=(n, d))


def messages(X, qid=QID, names=None):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warn_of_scales(np.asarray(X), Queries.from_qid(qid, len(X)), names)
    return [str(warning.message) for warning in seen]


@pytest.mark.parametrize("scale", [2_000.0, 20_000.0, 1e9])
@pytest.mark.parametrize("column", [0, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_feature_in_another_unit_is_named(scale, column, dtype):
    X = standardised()
    X[:, column] *= scale
    (message,) = messages(X.astype(dtype))
    assert f"column {column} (" in message and message.count("column") == 1 and "StandardScaler" in message
    names = np.array(["a", "b", "c", "salary", "e"], object)
    (message,) = messages(X.astype(dtype), names=names)
    assert f"{names[column]!r} (" in message


def test_of_two_features_both_are_named():
    X = standardised(d=2) * [1.0, 5e4]
    (message,) = messages(X)
    assert "column 0" in message and "column 1" in message


def test_no_more_than_three_are_named():
    X = standardised(d=20)
    X[:, 3:9] *= 1e4 ** np.arange(1, 7)
    (message,) = messages(X)
    assert message.count("column") == 3 and "column 8" in message


def rare_categories():
    X = standardised(d=8)
    X[:, 4:] = 0.0
    X[::7, 4] = 1.0
    X[5, 5] = X[6, 6] = 1.0  # one row each
    return X


def query_features():
    """The same in all rows of a query, or nearly: rankings do not see them."""
    X = standardised(d=6)
    X[:, 4] = 1e6 * (1 + QID)
    X[:, 5] = np.float32(0.1) * QID * (1 + 1e-9 * X[:, 0])
    return X


def offsets():
    X = standardised()
    X[:, 2] += 2024
    return X


def projected():
    """What a fair metric leaves of a feature that nearly is the sensitive direction must stay small."""
    direction = np.array([1.0, 3e-4, 0.0, 0.0, 0.0])
    return standardised() @ (np.eye(5) - np.outer(direction, direction) / (direction @ direction))


def ages():
    X = rare_categories()
    X[:, 0] = np.round(45 + 12 * X[:, 0])
    return X


FINE = {
    "standardised": standardised,
    "one feature": lambda: 1e5 * standardised(d=1),
    "one unit for all": lambda: 1e5 * standardised(),
    "rare categories": rare_categories,
    "years": offsets,
    "ages": ages,
    "projected": projected,
    "features of queries": query_features,
    "constants": lambda: np.c_[standardised(), np.full(400, 1e7), np.zeros(400)],
    "nothing varies": lambda: np.ones((400, 3)),
    "counts": lambda: np.random.default_rng(0).poisson([0.01, 1, 30], size=(400, 3)).astype(float),
}


@pytest.mark.parametrize("name", FINE)
def test_there_is_no_false_alarm(name):
    X = FINE[name]()
    assert messages(X) == []
    assert messages(X[::-1].astype(np.float32)) == []


def test_there_is_no_false_alarm_on_data_of_the_examples():
    task = make_biased_ranking(random_state=0)
    assert messages(task.data, task.qid) == []
    with np.load(shared_data("german_seed0.npz")) as data:
        assert messages(data["X_train"], data["qid_train"]) == []
    task = load_letor(shared_data("lightgbm_rank_train.letor.txt.gz"))
    assert messages(task.data.toarray() if hasattr(task.data, "toarray") else task.data, task.qid) == []
    task = load_letor(shared_data("mslr_sample_train.txt.gz"))
    X = task.data.toarray() if hasattr(task.data, "toarray") else task.data
    assert len(messages(X, task.qid)) == 1  # counts of bytes beside shares
    assert messages(StandardScaler().fit_transform(X), task.qid) == []


@pytest.mark.parametrize("make", [PlackettLuceRanker, lambda **k: SenSTIRRanker([[1.0] * 5], **k), FairPGRanker])
def test_training_by_steps_warns_once_at_the_callers_line(make):
    X = standardised()
    X[:, 1] *= 2e4
    frame, y = pd.DataFrame(X, columns=["a", "salary", "c", "d", "e"]), np.arange(400) % 3
    with pytest.warns(UserWarning) as seen:
        make(max_iter=2).fit(frame, y, qid=QID, sensitive_features=np.arange(400) % 2)
    assert [("'salary'" in str(w.message), w.filename) for w in seen] == [(True, __file__)]


def test_the_solver_scales_for_itself_and_a_warm_start_has_been_told():
    X, y = standardised() * [1, 2e4, 1, 1, 1], np.arange(400) % 3
    PlackettLuceRanker(solver="lbfgs", alpha=0.1, max_iter=500).fit(X, y, qid=QID)
    ranker = PlackettLuceRanker(max_iter=2, warm_start=True)
    with pytest.warns(UserWarning, match="column 1"):
        ranker.fit(X, y, qid=QID)
    ranker.fit(X, y, qid=QID)


def test_what_the_warning_is_about_costs_much_and_what_it_advises_mends_it():
    """A salary in euros: sorted NDCG on new queries."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(4000, 4)), np.repeat(np.arange(400), 10)
    y = np.floor((X @ [1.0, -1.0, 0.5, 0.5] + 0.7 * rng.normal(size=4000) + 2).clip(0, 4))
    X[:, 3] = 40_000 + 20_000 * X[:, 3]
    train = qid < 300

    def score(X):
        ranker = PlackettLuceRanker(random_state=0).fit(X[train], y[train], qid=qid[train])
        return ndcg_score(y[~train], ranker.predict(X[~train]), qid=qid[~train])

    with pytest.warns(UserWarning, match=r"column 3 \(1.9e\+04\)"):
        raw = score(X)
    assert score(StandardScaler().fit(X[train]).transform(X)) > raw + 0.05


def test_the_look_is_cheap():
    """The first rows are enough, whatever the number of rows: of 1,000 features 100, which cut a query of 7 rows."""
    X, qid = standardised(d=1000), np.repeat(np.arange(58), 7)[:400]
    X[105:295, 0] *= 1e6
    assert messages(X, qid) == []
    X[95:, 0] *= 1e6
    assert len(messages(X, qid)) == 1
