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


@pytest.mark.parametrize("scale", [2_000.0, 1e9])
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


def test_of_many_features_three_are_named():
    X = standardised(d=20)
    X[:, 3:9] *= 1e4 ** np.arange(1, 7)
    (message,) = messages(X)
    assert message.count("column") == 3 and "column 8" in message
    (message,) = messages(standardised(d=2) * [1.0, 5e4])
    assert "column 0" in message and "column 1" in message


def test_the_first_rows_are_enough():
    """Of 1,000 features 100 rows, which cut a query of 7."""
    X, qid = standardised(d=1000), np.repeat(np.arange(58), 7)[:400]
    X[105:295, 0] *= 1e6
    assert messages(X, qid) == []
    X[95:, 0] *= 1e6
    assert len(messages(X, qid)) == 1


def fine():
    """Features that are no cause for alarm, by name."""
    X = standardised(d=9)
    rare = np.array([np.arange(400) % 7 == 0, np.arange(400) == 5, np.arange(400) == 6]).T
    yield "one unit for all", 1e5 * X
    yield "one feature", 1e5 * X[:, :1]
    yield "rare categories", np.c_[X, rare]
    yield "ages", np.c_[np.round(45 + 12 * X[:, 0]), X[:, 1:], rare]
    yield "years", X + np.array([2024, *8 * [0]])
    # Rankings do not see what all rows of a query share, or nearly.
    yield "features of queries", np.c_[X, 1e6 * (1 + QID), np.float32(0.1) * QID * (1 + 1e-9 * X[:, 0])]
    yield "constants", np.c_[X, np.full(400, 1e7), np.zeros(400)]
    yield "nothing varies", np.ones((400, 3))
    yield "counts", np.random.default_rng(0).poisson([0.01, 1, 30], size=(400, 3)).astype(float)
    # What a fair metric leaves of a feature that nearly is the sensitive direction must stay small.
    direction = np.array([1.0, 3e-4, *7 * [0.0]])
    yield "projected", X @ (np.eye(9) - np.outer(direction, direction) / (direction @ direction))


@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in fine()])
def test_there_is_no_false_alarm(X):
    assert messages(X) == []
    assert messages(X[::-1].astype(np.float32)) == []


def test_there_is_no_false_alarm_on_data_of_the_examples():
    task = make_biased_ranking(random_state=0)
    assert messages(task.data, task.qid) == []
    with np.load(shared_data("german_seed0.npz")) as data:
        assert messages(data["X_train"], data["qid_train"]) == []
    few, many = (
        load_letor(shared_data(name)) for name in ("lightgbm_rank_train.letor.txt.gz", "mslr_sample_train.txt.gz")
    )
    assert messages(few.data, few.qid) == []
    X = many.data
    assert len(messages(X, many.qid)) == 1  # counts of bytes beside shares
    assert messages(StandardScaler().fit_transform(X), many.qid) == []


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
