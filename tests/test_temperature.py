"""TemperatureRanker: expected values from all rankings, closed forms for two items, and curves over temperatures."""

import pickle

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRanker
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import PlackettLuceRanker, QueryRanker, QueryScaler, SenSTIRRanker, TemperatureRanker
from skfairrank.inspection import TemperatureDisplay
from skfairrank.metrics import group_exposure_disparity, ndcg_score, ndcg_scorer, stochastic_ndcg_score
from skfairrank.model_selection import QueryKFold
from skfairrank.postprocessing import FAStarRanker

LOG2_3 = np.log2(3)


class First(BaseEstimator):
    """Its scores are the first column, times a factor."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.factor * np.asarray(X, dtype=np.float64)[:, 0]

    def __sklearn_is_fitted__(self):
        return True


def task(n_queries=30, size=6, seed=0):
    """Noisy scores as the first column, graded relevance, a group that is favoured; string ids in random order."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    y, group = rng.integers(0, 4, n), rng.integers(0, 2, n)
    y[group == 1] = np.maximum(y[group == 1], 1)
    X = np.c_[y + 3 * group + rng.normal(size=n), rng.normal(size=(n, 2))]
    qid = rng.permutation(np.repeat([f"q{k:02d}" for k in range(n_queries)], size))
    return X, y, qid, group


X, Y, QID, GROUP = task()
# What the sorted lists have.
DISPARITY = group_exposure_disparity(Y, X[:, 0], qid=QID, sensitive_features=GROUP, policy="deterministic")


def chosen(X=X, y=Y, qid=QID, group=None, ranker=None, **settings):
    ranker = FrozenEstimator(First()) if ranker is None else ranker
    return TemperatureRanker(ranker, **settings).fit(X, y, qid=qid, sensitive_features=group)


# The temperature


@pytest.mark.parametrize("loss", [1e-6, 0.01, 0.1, 0.18])
def test_two_items_by_their_closed_form(loss):
    """The relevant one is second with probability 1 / (1 + exp(d / t)), which costs 1 - 1 / log2(3) = .369."""
    share = loss / (1 - 1 / LOG2_3)
    t = 0.7 / np.log(1 / share - 1)
    ranker = chosen([[0.7], [0.0]], [1, 0], [0, 0], max_ndcg_loss=loss)
    assert ranker.temperature_ == pytest.approx(t, rel=1e-6)
    assert ranker.sorted_ndcg_ == 1
    assert ranker.predict([[1.4], [3.0]]) == pytest.approx(np.array([1.4, 3.0]) / t, rel=1e-6)


@pytest.mark.parametrize("bound", [0.001, 0.05, 0.15])
def test_disparity_of_two_items_by_its_closed_form(bound):
    """Of two equally relevant items the one of the larger label has (1 - 1 / log2(3)) tanh(d / 2t) more exposure."""
    t = 0.7 / (2 * np.arctanh(bound / (1 - 1 / LOG2_3)))
    ranker = chosen([[0.7], [0.0]], [1, 1], [0, 0], ["b", "a"], max_disparity=bound)
    assert ranker.temperature_ == pytest.approx(t, rel=1e-6)


@pytest.mark.parametrize("size", [6, 30])
@pytest.mark.parametrize("k", [None, 3])
def test_bounds_are_met_at_the_softest_and_the_most_decided_temperature(size, k):
    """Judged by the public metrics on a fine grid; queries of 30 rows are sampled."""
    X, y, qid, group = task(20 if size == 6 else 8, size)
    exact = {"n_samples": "exact"} if size == 6 else {"n_samples": 4000, "random_state": 1}
    tolerance = 1e-6 if size == 6 else 5e-3

    def loss(t):
        return ndcg_score(y, X[:, 0], qid=qid, k=k) - stochastic_ndcg_score(y, X[:, 0] / t, qid=qid, k=k, **exact)

    def disparity(t):
        return group_exposure_disparity(y, X[:, 0] / t, qid=qid, sensitive_features=group, k=k, **exact)

    t = chosen(X, y, qid, max_ndcg_loss=0.03, k=k, random_state=0).temperature_
    assert loss(t) == pytest.approx(0.03, abs=tolerance)
    assert all(loss(t * f) > 0.03 - tolerance for f in (1.2, 10))
    bound = 0.5 * disparity(1e-6)
    t = chosen(X, y, qid, group, max_disparity=bound, k=k, random_state=0).temperature_
    assert disparity(t) == pytest.approx(bound, abs=tolerance)
    assert all(disparity(t / f) > bound - tolerance for f in (1.2, 10))


def test_the_same_random_numbers_at_every_temperature():
    X, y, qid, group = task(5, 20)
    one, same, other = (
        chosen(X, y, qid, group, max_ndcg_loss=0.05, n_samples=200, random_state=seed) for seed in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(one.curve_, same.curve_)
    assert one.temperature_ == same.temperature_ != other.temperature_
    assert one.temperature_ == pytest.approx(other.temperature_, rel=0.2)
    ndcg = one.curve_["ndcg"].to_numpy()
    rises = np.diff(ndcg[one.curve_["temperature"] > 0.1])
    assert rises.max() < 2e-3  # noise of its own at each would be .01


@pytest.mark.parametrize("factor", [1e-200, 1e-9, 3.0, 1e100])
def test_the_temperature_is_in_units_of_the_scores(factor):
    unit = chosen(max_ndcg_loss=0.02).temperature_
    scaled = chosen(ranker=FrozenEstimator(First(factor)), max_ndcg_loss=0.02)
    assert scaled.temperature_ == pytest.approx(factor * unit, rel=1e-6)
    np.testing.assert_allclose(scaled.predict(X), X[:, 0] / unit, rtol=1e-6)


def test_both_bounds_hold_or_it_is_an_error_with_both_prices():
    fair = chosen(group=GROUP, max_disparity=0.6 * DISPARITY)
    at = fair.curve_.set_index("temperature").loc[fair.temperature_]
    loss = fair.sorted_ndcg_ - at["ndcg"]
    both = chosen(group=GROUP, max_disparity=0.6 * DISPARITY, max_ndcg_loss=loss + 0.001)
    assert both.temperature_ == fair.temperature_  # the most decided that is fair enough
    assert chosen(group=GROUP, max_disparity=0.6 * DISPARITY, max_ndcg_loss=0.9).temperature_ == fair.temperature_
    with pytest.raises(
        ValueError, match=r"can't both be reached.*costs .* of NDCG, and a loss of at\s+most .* leaves a disp"
    ):
        chosen(group=GROUP, max_disparity=0.6 * DISPARITY, max_ndcg_loss=loss - 0.001)


# What can't be reached, and odd queries


def test_a_loss_beyond_that_of_chance_is_refused_with_the_range():
    """Of two items chance loses half of 1 - 1 / log2(3), .1845."""
    with pytest.raises(ValueError, match=r"max_ndcg_loss=0.2 can't be reached.*between 0 and 0.1845"):
        chosen([[0.7], [0.0]], [1, 0], [0, 0], max_ndcg_loss=0.2)
    with pytest.raises(
        ValueError, match=r"can't be reached.*an NDCG of 0.63.* and chance, .* of 0.81.* between 0 and 0\."
    ):
        chosen([[0.0], [0.7]], [1, 0], [0, 0], max_ndcg_loss=0.01)  # worse than chance


def test_a_disparity_that_asks_for_nothing_is_warned_of():
    """The first item has twice the merit and 1 / (.63 + .5) * 2 the exposure of the others: .5 - .57 per merit, so 0."""
    with pytest.warns(UserWarning, match="asks for nothing: even the sorted lists .* a disparity of 0."):
        loose = chosen([[0.7], [0.1], [0.0]], [2, 1, 1], [0, 0, 0], ["a", "b", "b"], max_disparity=0.5)
    assert loose.temperature_ < 0.001


def test_only_chance_has_no_disparity():
    with pytest.raises(ValueError, match="max_disparity=0 can't be reached: at temperatures from .* it is at least"):
        chosen(group=GROUP, max_disparity=0)


def test_a_bound_on_the_disparity_needs_groups():
    with pytest.raises(ValueError, match="sensitive_features is missing"):
        chosen(max_disparity=0.1)
    with pytest.raises(ValueError, match="continuous.*max_disparity compares groups"):
        chosen(group=X[:, 1], max_disparity=0.1)


def test_scores_that_do_not_differ_have_temperature_one():
    constant = FrozenEstimator(First(0.0))
    with pytest.warns(UserWarning, match="Scores do not differ within any held-out query"):
        ranker = chosen(ranker=constant, max_ndcg_loss=0.1)
    assert ranker.temperature_ == 1 and len(ranker.curve_) == 1
    assert ranker.curve_["ndcg"][0] == pytest.approx(ndcg_score(Y, np.zeros(len(Y)), qid=QID))
    with pytest.warns(UserWarning, match="Scores do not differ"):  # at chance exposures are equal
        assert chosen(group=GROUP, ranker=constant, max_disparity=0).curve_["disparity"].max() < 1e-15
    with pytest.warns(UserWarning) as caught:  # each row a query of its own
        assert chosen(qid=np.arange(len(Y)), y=Y + 1, max_ndcg_loss=0.1).temperature_ == 1
    assert "more than one row" in str(caught[-1].message)


def test_queries_without_relevant_rows_and_of_one_row_are_left_out():
    """They change nothing but the mean over queries, in which a single relevant row has NDCG 1 at any temperature."""
    y = np.r_[Y, 0, 0, 0, 3]
    odd = np.r_[X, [[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [5, 0, 0]]]
    qid = np.concatenate([QID, ["none"] * 3, ["one"]])
    with pytest.warns(UndefinedMetricWarning, match="1 of 32 queries .they have no relevant row"):
        ranker = chosen(odd, y, qid, max_ndcg_loss=0.02 * 30 / 31)
    # The temperature's unit differs, so that the grid does, but not where the loss is reached.
    assert ranker.temperature_ == pytest.approx(chosen(max_ndcg_loss=0.02).temperature_, rel=1e-6)
    with pytest.raises(ValueError, match="None of 30 held-out queries has a relevant row"):
        chosen(y=np.zeros(len(Y)), max_ndcg_loss=0.02)


def test_nearly_equal_scores_ask_for_low_temperatures():
    """Two scores of each query are nearly equal, and another one lies far from them."""
    s = np.array([0.0, 1.0, 1.0 + 1e-4])
    X, y, qid = np.tile(s, 5)[:, None], np.tile([0, 1, 2], 5), np.repeat(np.arange(5), 3)
    ranker = chosen(X, y, qid, max_ndcg_loss=1e-3)
    s = X[:, 0] / ranker.temperature_
    loss = ndcg_score(y, s, qid=qid) - stochastic_ndcg_score(y, s, qid=qid, n_samples="exact")
    assert ranker.temperature_ < 1e-3 and loss == pytest.approx(1e-3, rel=1e-3)


# Held-out queries


def test_the_temperature_is_chosen_on_queries_that_the_ranker_has_not_seen():
    ranker = TemperatureRanker(QueryRanker(Ridge()), max_ndcg_loss=0.02, cv=QueryKFold(3)).fit(X, Y, qid=QID)
    held_out = np.empty(len(Y))
    for train, test in QueryKFold(3).split(X, qid=QID):
        held_out[test] = Ridge().fit(X[train], Y[train]).predict(X[test])
    by_hand = TemperatureRanker(FrozenEstimator(First()), max_ndcg_loss=0.02).fit(held_out[:, None], Y, qid=QID)
    assert ranker.temperature_ == pytest.approx(by_hand.temperature_, rel=1e-5)
    np.testing.assert_allclose(ranker.predict(X) * ranker.temperature_, Ridge().fit(X, Y).predict(X), rtol=1e-10)


def test_a_fitted_ranker_stays_as_it_is():
    fitted = QueryRanker(Ridge()).fit(X[:90], Y[:90], qid=QID[:90])
    prefit = TemperatureRanker(fitted, max_ndcg_loss=0.02, cv="prefit").fit(X, Y, qid=QID)
    frozen = TemperatureRanker(FrozenEstimator(fitted), max_ndcg_loss=0.02).fit(X, Y, qid=QID)
    assert prefit.estimator_ is fitted and prefit.temperature_ == frozen.temperature_
    np.testing.assert_array_equal(clone(frozen).fit(X, Y, qid=QID).predict(X), prefit.predict(X))
    with pytest.raises(NotFittedError, match="FrozenEstimator"):
        clone(prefit).fit(X, Y, qid=QID)


BOOSTED = LGBMRanker(n_estimators=5, num_leaves=4, min_child_samples=5, random_state=0, n_jobs=1, verbose=-1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: BOOSTED,
        Ridge,
        lambda: SenSTIRRanker(adversary="gaps", max_iter=5, random_state=0),
        lambda: make_pipeline(QueryScaler(), PlackettLuceRanker(max_iter=20, random_state=0)),
    ],
)
def test_any_ranker_has_a_temperature(make):
    ranker = TemperatureRanker(make(), max_ndcg_loss=0.01, cv=2).fit(X, Y, qid=QID, sensitive_features=GROUP)
    scores = ranker.predict(X, qid=QID)
    assert ranker.temperature_ > 0 and scores.shape == Y.shape
    assert ranker.score(X, Y, qid=QID) == pytest.approx(ndcg_score(Y, scores, qid=QID))
    assert ndcg_scorer(ranker, X, Y, qid=QID) == pytest.approx(ranker.score(X, Y, qid=QID))
    for found in (ranker.rank(X, qid=QID), ranker.sample_rankings(X, qid=QID, random_state=0)[0]):
        assert all(sorted(found[QID == q]) == [1, 2, 3, 4, 5, 6] for q in np.unique(QID))
    twin = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(twin.predict(X, qid=QID), scores)


def test_ranks_have_no_temperature():
    ranker = make_pipeline(StandardScaler(), FAStarRanker(Ridge(), protected=1, p=0.5))
    with pytest.raises(TypeError, match="orders rows by their groups.*the ranker within"):
        TemperatureRanker(ranker, max_ndcg_loss=0.02).fit(X, Y, qid=QID, sensitive_features=GROUP)


# Wrong calls, other tables


def test_wrong_calls_are_refused():
    for bounds in ({}, {"max_ndcg_loss": 0.0}, {"max_disparity": -1.0}):
        with pytest.raises(ValueError, match="max_ndcg_loss|max_disparity"):
            chosen(group=GROUP, **bounds)
    with pytest.raises(ValueError, match="between 0 and 0. Give a smaller one"):
        chosen(y=np.ones(len(Y)), max_ndcg_loss=0.02)
    with pytest.raises(ValueError, match="cv cuts queries"):
        TemperatureRanker(Ridge(), max_ndcg_loss=0.02, cv=KFold(3)).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="give y as"):
        TemperatureRanker(LogisticRegression(), max_ndcg_loss=0.01).fit(X, Y.astype(str), qid=QID)


def test_the_display_draws_the_curve_and_its_bounds(plt):
    ranker = chosen(group=GROUP, max_ndcg_loss=0.15, max_disparity=0.6 * DISPARITY)
    display = TemperatureDisplay.from_estimator(ranker)
    for name, bound in (("ndcg", ranker.sorted_ndcg_ - 0.15), ("disparity", 0.6 * DISPARITY)):
        np.testing.assert_array_equal(display.lines_[name].get_ydata(), ranker.curve_[name])
        assert set(display.bound_lines_[name].get_ydata()) == {bound}
