"""SenSTIR in boosting. Expected values come from the objective by counting all rankings, from finite differences, from all
choices that an adversary could make, and from the libraries themselves."""

import itertools
import pickle
import weakref

import lightgbm
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRanker
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from xgboost import XGBRanker

from skfairrank import QueryRanker, SensitiveSubspaceMetric, SenSTIRBoostingRanker
from skfairrank.adversaries._given import ListAdversary
from skfairrank.hypotheticals import Hypotheticals
from skfairrank.metrics import ndcg_score, utility_score
from skfairrank.policies import Reinforce
from skfairrank.training import Batch
from skfairrank.utilities import ERR, NDCG, AveragePrecision
from skfairrank.wrappers._objective import FairObjective, SortedUtility, make_gradient_of_trees

LIGHTGBM = LGBMRanker(n_estimators=15, num_leaves=5, min_child_samples=5, random_state=0, n_jobs=1, verbose=-1)
XGBOOST = XGBRanker(n_estimators=15, max_depth=2, random_state=0, n_jobs=1)
both = pytest.mark.parametrize("model", [LIGHTGBM, XGBOOST], ids=["lightgbm", "xgboost"])


def make_people(n_queries=30, n=8, seed=0):
    """Three features; the last one is a group, 0 or 1, on which the labels depend."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n, 3))
    X[:, 2] = rng.integers(0, 2, len(X))
    y = np.digitize(X[:, 0] + 1.5 * X[:, 2] + 0.3 * rng.normal(size=len(X)), [0.5, 1.5]).astype(float)
    return X, y, np.repeat(np.arange(n_queries), n)


def exchanged(X):
    X[:, 2] = 1.0 - X[:, 2]
    return X


X, Y, QID = make_people()


def fitted(model=LIGHTGBM, **settings):
    settings = {"hypotheticals": exchanged, "rho": 0.03, "random_state": 0, **settings}
    return SenSTIRBoostingRanker(model, **settings).fit(X, Y, qid=QID)


def unfairness(ranker):
    """Mean over rows of (h - h')^2, for the exchanged group."""
    return np.mean((ranker.predict(X) - ranker.predict(exchanged(X.copy()))) ** 2)


# The objective and the adversary


def expected_ndcg(h, y):
    """E[NDCG] of the Plackett-Luce policy, over all rankings."""
    gain, discount, total = 2.0**y - 1, 1 / np.log2(np.arange(len(y)) + 2), 0.0
    ideal = np.sort(gain)[::-1] @ discount
    for order in itertools.permutations(range(len(y))):
        e = np.exp(h[list(order)])
        total += np.prod(e / np.cumsum(e[::-1])[::-1]) * (gain[list(order)] @ discount) / ideal
    return total


def small_problem(distances=None, rho=0.3, epsilon=0.01, gradient="exact"):
    """Two queries of 3 and 4 rows, two hypothetical rows each; the second query counts three times the first."""
    y, offsets, weight = np.array([0.0, 1, 2, 1, 0, 0, 3]), np.array([0, 3, 7]), np.array([0.5, 1.5])
    gain, discount = NDCG().tables(y, offsets)[:2]
    batch = Batch(None, np.arange(7), offsets, np.arange(2), gain, np.empty(0), weight, np.uint64(0))
    adversary = ListAdversary(distances, np.array([3, 4]), weight, rho=rho, epsilon=epsilon)
    return y, FairObjective(
        batch, discount, make_gradient_of_trees(gradient, 2), adversary, 0.1, np.random.default_rng(0)
    )


def test_gradient_is_that_of_the_objective_in_the_scores():
    y, objective = small_problem()
    scores = np.random.default_rng(1).normal(size=21)

    def loss(s):
        h, others = s[:7], s[7:].reshape(2, 7)
        pulls = 0.15 * ((h - others) ** 2).max(axis=0)
        first = -expected_ndcg(h[:3], y[:3]) + pulls[:3].sum()
        return 0.5 * first + 1.5 * (-expected_ndcg(h[3:], y[3:]) + pulls[3:].sum())

    steps = 1e-5 * np.eye(21)
    slope = np.array([(loss(scores + e) - loss(scores - e)) / 2e-5 for e in steps])
    gradient, hessian = objective(None, scores)
    np.testing.assert_allclose(gradient / objective.scale, slope, atol=1e-6)
    # Seven tenths of the query's mean |dU/dh|, and at least 2 x learning rate x rho for both partners.
    without = small_problem(rho=0.0)[1]
    plain, plain_scale = without(None, scores), 1 / without.scale
    policy = np.abs(plain[0][:7]) / np.array([0.5] * 3 + [1.5] * 4)
    curvature = np.repeat([0.7 * policy[:3].mean(), 0.7 * policy[3:].mean()], [3, 4])
    weight = np.repeat([0.5, 1.5], [3, 4])
    assert np.mean(plain[1][:7]) == pytest.approx(1.0, rel=1e-6)  # in the first round
    own, least = curvature * plain_scale, 2 * 0.1 * 0.3
    np.testing.assert_allclose(hessian[:7] / objective.scale, weight * np.maximum(own, least), rtol=1e-5)
    chosen = ((scores[:7] - scores[7:].reshape(2, 7)) ** 2).argmax(axis=0)
    expected = np.zeros((2, 7))
    expected[chosen, np.arange(7)] = least * weight
    np.testing.assert_allclose(hessian[7:].reshape(2, 7) / objective.scale, expected, rtol=1e-6)
    # Each row has had two partners once the other one was chosen too.
    exchanged = np.concatenate([scores[:7], scores[14:], scores[7:14]])
    again = objective(None, exchanged)[1][:7] / objective.scale
    np.testing.assert_allclose(again, weight * np.maximum(own, 2 * least), rtol=1e-5)


def test_history_holds_the_means_of_the_objective():
    y, objective = small_problem()
    scores = np.random.default_rng(2).normal(size=21)
    objective(None, scores)
    worst = ((scores[:7] - scores[7:].reshape(2, 7)) ** 2).max(axis=0) / 2
    utility = (0.5 * expected_ndcg(scores[:3], y[:3]) + 1.5 * expected_ndcg(scores[3:7], y[3:])) / 2
    assert objective.history["utility"][0] == pytest.approx(utility)
    assert objective.history["regularizer"][0] == pytest.approx((0.5 * worst[:3].sum() + 1.5 * worst[3:].sum()) / 2)
    assert objective.history["lambda"] == [0.0] == objective.history["query_distance"]


def test_pairs_pull_as_in_lambdamart():
    """Burges (2010) in LightGBM's form, pair by pair; scores of the second query are equal."""
    y, objective = small_problem(rho=0.0, gradient="lambdarank")
    scores = np.r_[0.3, -1.0, 0.9, np.zeros(18)]
    gradient, hessian = objective(None, scores)
    assert objective.scale == 1.0
    for rows, weight in ((np.arange(3), 0.5), (np.arange(3, 7), 1.5)):
        h, gain = scores[rows], 2.0 ** y[rows] - 1
        rank = np.argsort(np.argsort(-h, kind="stable"))
        discount = 1 / np.log2(rank + 2)
        ideal = np.sort(gain)[::-1] @ (1 / np.log2(np.arange(len(rows)) + 2))
        slope, curvature, total = np.zeros(len(rows)), np.zeros(len(rows)), 0.0
        for i, j in itertools.permutations(range(len(rows)), 2):
            if gain[i] > gain[j]:
                change = (gain[i] - gain[j]) * abs(discount[i] - discount[j]) / ideal
                change /= 0.01 + abs(h[i] - h[j]) if np.ptp(h) > 0 else 1.0
                p = 1 / (1 + np.exp(h[i] - h[j]))
                slope += change * p * (np.eye(len(rows))[i] - np.eye(len(rows))[j])
                curvature[[i, j]] += change * p * (1 - p)
                total += 2 * change * p
        norm = np.log2(1 + total) / total
        np.testing.assert_allclose(gradient[rows], -weight * norm * slope, rtol=1e-5)
        np.testing.assert_allclose(hessian[rows], weight * norm * curvature, rtol=1e-5)


def test_without_fairness_lambdarank_is_the_model_of_lightgbm():
    ours = fitted(rho=0.0, gradient="lambdarank")
    theirs = QueryRanker(LIGHTGBM).fit(X, Y.astype(int), qid=QID)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_adversary_solves_the_dual_of_every_choice_within_the_budget(seed):
    rng = np.random.default_rng(seed)
    h, others, distances = rng.normal(size=7), rng.normal(size=(2, 7)), rng.random((2, 7)) ** 2
    distances[rng.random((2, 7)) < 0.2] = 0.0
    share = np.repeat([0.5 / 3, 1.5 / 4], [3, 4]) / 2  # of a row's d_X in the mean d_Q
    worth = np.repeat([0.5, 1.5], [3, 4]) / 2 * 0.15 * np.vstack([(h - others) ** 2, np.zeros(7)])
    spent = share * np.vstack([distances, np.zeros(7)])
    choices = np.array(list(itertools.product(range(3), repeat=7)))
    totals, costs = (table[choices, np.arange(7)].sum(axis=1) for table in (worth, spent))

    adversary = ListAdversary(distances, np.array([3, 4]), np.array([0.5, 1.5]), rho=0.3, epsilon=0.05)
    for _ in range(2):  # the second time from the lambda of the first
        choice = adversary.choose(h, others)
        taken = np.where(choice.hypothetical < 0, 2, choice.hypothetical)
        value, cost = worth[taken, np.arange(7)].sum(), spent[taken, np.arange(7)].sum()
        assert choice.query_distance == pytest.approx(cost) and cost <= 0.05
        np.testing.assert_allclose(choice.difference, h - np.vstack([others, h])[taken, np.arange(7)])
        multiplier = choice.multiplier
        # No choice has more of the Lagrangian; and lambda minimises the dual, to the tolerance.
        assert value - multiplier * cost == pytest.approx((totals - multiplier * costs).max())
        dual = [m * 0.05 + (totals - m * costs).max() for m in multiplier * np.linspace(0.5, 1.5, 101)]
        assert multiplier * 0.05 + (totals - multiplier * costs).max() <= min(dual) + 1e-4 * abs(min(dual))
        assert value <= totals[costs <= 0.05].max() + 1e-12 and adversary.multiplier == multiplier > 0


# Fits


@both
def test_trees_heed_the_group_less_the_larger_rho(model):
    found = [unfairness(fitted(model, rho=rho)) for rho in (0.0, 0.03, 0.3)]
    assert found[0] > 2 * found[1] > 4 * found[2] > 0, found


def test_a_large_rho_closes_differences_at_any_learning_rate_and_wants_more_trees():
    """Twins in different leaves meet in one round, whatever multiplies its tree; what they have in common takes many rounds."""
    apart = []
    for name, rate in (("learning_rate", 0.1), ("learning_rate", 1.0), ("eta", 0.1)):
        model = clone(LIGHTGBM).set_params(n_estimators=20, **{"learning_rate": None, name: rate})
        with pytest.warns(UserWarning, match="20 trees are too few for rho=3"):
            ranker = fitted(model, rho=3.0)
        apart.append(unfairness(ranker) / np.var(ranker.predict(X)))
    assert max(apart) < 0.05 and apart[0] == apart[2], apart
    fitted(clone(LIGHTGBM).set_params(n_estimators=20), rho=0.01)  # without a warning


@both
def test_a_fit_is_repeatable_and_does_not_depend_on_how_queries_are_interleaved(model):
    scores = fitted(model).predict(X)
    assert np.array_equal(fitted(model).predict(X), scores)
    mixed = np.argsort(np.tile(np.arange(8), 30), kind="stable")
    names = np.array([f"q{k:02d}" for k in QID])
    ranker = SenSTIRBoostingRanker(model, hypotheticals=exchanged, rho=0.03, random_state=0)
    again = ranker.fit(X[mixed], Y[mixed], qid=names[mixed])
    assert np.array_equal(again.predict(X), scores)
    read_only = X.copy()
    read_only.flags.writeable = False
    assert np.array_equal(clone(ranker).fit(read_only, Y, qid=QID).predict(X), scores)


@both
def test_rows_that_one_has_do_what_a_function_does(model):
    scores = fitted(model).predict(X)
    for given in (exchanged(X.copy()), exchanged(X.copy())[:, None], {"twin": exchanged(X.copy())}):
        ranker = SenSTIRBoostingRanker(model, rho=0.03, random_state=0).fit(X, Y, qid=QID, X_hypothetical=given)
        assert np.array_equal(ranker.predict(X), scores)


def test_no_two_sets_of_hypothetical_rows_are_in_memory_at_once():
    alive = []

    def moved(step):
        def function(X):
            assert not [made for made in alive if made() is not None]
            rows = X + step
            alive.append(weakref.ref(rows))
            return rows

        return function

    fitted(hypotheticals=[moved(step) for step in (0.1, 0.2, 0.3)])
    assert len(alive) == 9, "to be measured, for the bins, and for the rows"


def test_leaves_have_as_many_training_rows_as_the_model_asks():
    """Queries of one kind, so that rows have equal hessians, by which LightGBM counts; three hypothetical rows for each."""
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.tile([0.0, 1, 2], 20)
    model = LGBMRanker(n_estimators=1, num_leaves=31, min_child_samples=12, n_jobs=1, verbose=-1)
    moves = [lambda X: X + 0.1, lambda X: X + 0.2, lambda X: X - 0.1]
    ranker = SenSTIRBoostingRanker(model, hypotheticals=moves, rho=1e-6, gradient="exact").fit(
        X, y, qid=np.repeat(range(20), 3)
    )
    counts = np.unique(ranker.estimator_.booster_.predict(X, pred_leaf=True), return_counts=True)[1]
    assert len(counts) > 1 and counts.min() >= 12


# Budget, metric and defaults


def test_the_budget_bounds_what_hypothetical_rows_cost():
    metric = SensitiveSubspaceMetric(directions=[[1.0, 0.0, 0.0]])
    bound = fitted(metric=metric, epsilon=0.1)  # an exchange costs 1
    distance = bound.history_["query_distance"]
    assert 0.05 < distance.max() <= 0.1 and bound.lambda_ > 0
    free = fitted(metric=np.eye(3)[2:], epsilon=0.0)  # along the direction it costs nothing
    assert not free.history_["query_distance"].any() and free.history_["regularizer"].any()
    frozen = fitted(metric=FrozenEstimator(SensitiveSubspaceMetric(directions=np.eye(3)[2:]).fit(X)), epsilon=0.0)
    assert np.array_equal(frozen.predict(X), free.predict(X))
    none = fitted(metric=metric, epsilon=0.0)
    assert not none.history_["regularizer"].any()


def test_hypothetical_rows_by_default():
    ranker = SenSTIRBoostingRanker(LIGHTGBM, rho=0.03, random_state=0)
    along = clone(ranker).set_params(metric=[[0, 0, 1.0]], subspace_radius=2.0).fit(X, Y, qid=QID)
    moves = [rows - X for _, rows in along.hypotheticals_.candidates(X)]
    np.testing.assert_allclose([move[0] for move in moves], np.outer([-2.0, -1, 1, 2], [0, 0, 1]), atol=1e-12)
    copies = X[:, 2] + np.random.default_rng(0).normal(size=len(X)) > 0.5
    learned = ranker.set_params(rho=0.1).fit(X, Y, qid=QID, sensitive_features=copies)
    assert any("gaps" in name for name in learned.hypotheticals_.names_)
    assert any("direction" in name for name in learned.hypotheticals_.names_)
    assert unfairness(learned) < unfairness(fitted(rho=0.0)) / 2
    near = fitted(hypotheticals=Hypotheticals(n_neighbors=1), metric=[[0, 0, 1.0]], epsilon=1.0)
    assert near.history_["query_distance"].any()
    with pytest.raises(ValueError, match="Nothing is treated as sensitive"):
        SenSTIRBoostingRanker(LIGHTGBM).fit(X, Y, qid=QID)


# Tables as people have them


@both
def test_categories_and_missing_values_of_a_frame(model):
    if model is XGBOOST:
        model = clone(model).set_params(enable_categorical=True)
    frame = pd.DataFrame(
        {"skill": X[:, 0], "other": X[:, 1], "group": pd.Categorical.from_codes(X[:, 2].astype(int), ["a", "b"])}
    )
    frame.loc[::7, "other"] = np.nan

    def swapped(frame):
        return frame.assign(group=frame["group"].cat.rename_categories({"a": "b", "b": "a"}))

    found = []
    for rho in (0.0, 0.3):
        ranker = SenSTIRBoostingRanker(model, hypotheticals=swapped, rho=rho, random_state=0).fit(frame, Y, qid=QID)
        other = swapped(frame).assign(group=lambda f: f["group"].cat.set_categories(["a", "b"]))
        found.append(np.mean((ranker.predict(frame) - ranker.predict(other)) ** 2))
    assert found[1] < found[0] / 4
    assert ranker.feature_names_in_.tolist() == ["skill", "other", "group"]
    names = ranker.estimator_.booster_.feature_name() if hasattr(ranker.estimator_, "booster_") else None
    assert names in (None, ["skill", "other", "group"])
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(frame.rename(columns={"skill": "mark"}))


@both
def test_frames_of_polars_and_sparse_matrices(model):
    polars = pytest.importorskip("polars")
    scores, frame = fitted(model).predict(X), polars.DataFrame(X, schema=["a", "b", "c"])
    for settings, table in (
        ({"hypotheticals": lambda frame: frame.with_columns(c=1 - polars.col("c"))}, frame),
        ({"hypotheticals": lambda table: csr_matrix(exchanged(table.toarray()))}, csr_matrix(X)),
    ):
        ranker = SenSTIRBoostingRanker(model, rho=0.03, random_state=0, **settings)
        ranker.fit(table, Y, qid=QID, eval_set=[(table, Y)], eval_qid=[QID])
        np.testing.assert_allclose(ranker.predict(table), scores)


# Early stopping, arguments, refusals


def test_early_stopping_of_lightgbm_looks_at_our_utility():
    train, held = QID < 20, QID >= 20
    model = clone(LIGHTGBM).set_params(n_estimators=60, learning_rate=0.5)
    ranker = SenSTIRBoostingRanker(model, hypotheticals=exchanged, rho=0.03, utility=NDCG(k=3), random_state=0)
    back = np.argsort(-QID[held], kind="stable")  # rows of evaluation sets come in any order
    ranker.fit(
        X[train], Y[train], qid=QID[train], eval_set=[(X[held][back], Y[held][back])], eval_qid=[QID[held][back]],
        callbacks=[lightgbm.early_stopping(5, verbose=False)],
    )  # fmt: skip
    curve = ranker.estimator_.evals_result_["valid_0"]
    assert list(curve) == ["ndcg@3"]
    best = ranker.estimator_.best_iteration_
    assert best == 1 + np.argmax(curve["ndcg@3"]) and len(ranker.history_["utility"]) == best + 5 < 60


def test_early_stopping_of_xgboost_looks_at_our_utility():
    train, held = QID < 20, QID >= 20
    model = clone(XGBOOST).set_params(n_estimators=60, learning_rate=0.5, early_stopping_rounds=5)
    ranker = SenSTIRBoostingRanker(model, hypotheticals=exchanged, rho=0.03, random_state=0)
    ranker.fit(X[train], Y[train], qid=QID[train], eval_set=(X[held], Y[held]), eval_qid=QID[held])
    curve = ranker.estimator_.evals_result()["validation_0"]
    assert list(curve) == ["ndcg"] and ranker.estimator_.best_iteration == np.argmax(curve["ndcg"])
    assert len(ranker.history_["utility"]) == ranker.estimator_.best_iteration + 6 < 60


def test_the_utility_of_sorted_lists_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    y, s, sizes = rng.integers(0, 4, 9).astype(float), rng.normal(size=9), np.array([4, 5])
    name, value, higher = SortedUtility(NDCG(k=2))(y, s, None, sizes)
    assert name == "ndcg@2" and higher
    assert value == pytest.approx(ndcg_score(y, s, qid=np.repeat([0, 1], sizes), k=2))
    expected = utility_score(y, s, qid=np.repeat([0, 1], sizes), utility=ERR(), policy="deterministic")
    assert SortedUtility(ERR())(y, s, None, sizes)[:2] == ("err", pytest.approx(expected))


def test_ties_are_not_broken_by_the_order_of_rows():
    y, sizes = np.tile([3.0, 2, 1, 0, 0, 0], 200), np.full(200, 6)  # rows lie in the order of their relevances
    value = SortedUtility(NDCG())(y, np.zeros(1200), None, sizes)[1]
    assert value == pytest.approx(ndcg_score(y, np.zeros(1200), qid=np.repeat(np.arange(200), 6)), abs=0.03)


def test_other_models_are_refused():
    with pytest.raises(TypeError, match=r"LGBMRanker\(...\) or XGBRanker"):
        fitted(lightgbm.LGBMRegressor())


@pytest.mark.parametrize(
    ("argument", "words"),
    [("sample_weight", "query_weight"), ("eval_metric", "utility"), ("group", "qid"), ("init_model", "callbacks")],
)
def test_arguments_that_have_no_place_are_refused(argument, words):
    with pytest.raises(TypeError, match=f"takes no {argument}.*{words}"):
        SenSTIRBoostingRanker(LIGHTGBM, rho=0.0).fit(X, Y, qid=QID, **{argument: None})


def test_utilities_that_are_more_than_gains_and_discounts():
    for utility in (ERR(), AveragePrecision()):
        with pytest.raises(ValueError, match="lambdarank.*reinforce"):
            fitted(utility=utility, gradient="lambdarank")
        ranker = fitted(utility=utility, gradient=Reinforce(8), rho=0.0)
        assert ranker.history_["utility"][-1] > ranker.history_["utility"][0] + 0.1
    with pytest.raises(ValueError, match="AveragePrecision.*REINFORCE"):
        fitted(utility=AveragePrecision(), gradient="plrank")


def test_odd_queries():
    """A query of one row, one without relevant rows, and a weight of 0."""
    qid = np.r_[np.repeat([5, 3], 10), [7], np.repeat([1], len(X) - 21)]
    y = np.where(qid == 3, 0.0, Y)
    ranker = SenSTIRBoostingRanker(LIGHTGBM, hypotheticals=exchanged, rho=0.01, random_state=0)
    scores = ranker.fit(X, y, qid=qid, query_weight={1: 1.0, 3: 2.0, 5: 0.0, 7: 1.0}).predict(X.astype(np.float32))
    assert np.isfinite(scores).all() and np.isfinite(ranker.history_["utility"]).all()
    with pytest.warns(UserWarning, match="no order to learn"):
        ranker.fit(X, np.zeros(len(X)), qid=qid)


# The user's own model and its parameters


@both
def test_the_fitted_model_is_the_users_own(model):
    ranker, wanted = fitted(model), model.get_params()
    kept = {name: value for name, value in ranker.estimator_.get_params().items() if name in wanted and value == value}
    assert kept == {name: value for name, value in wanted.items() if value == value}
    assert type(ranker.estimator_) is type(model) and {len(v) for v in ranker.history_.values()} == {15}
    stored = pickle.dumps(ranker)
    assert len(stored) < 100_000 and np.array_equal(pickle.loads(stored).predict(X), ranker.predict(X))
    assert ranker.score(X, Y, qid=QID) == ndcg_score(Y, ranker.predict(X), qid=QID) > 0.8


@pytest.mark.parametrize("settings", [{"subsample": 0.7, "subsample_freq": 1}, {"subsample_for_bin": 300}])
def test_rows_read_block_by_block_grow_the_trees_of_rows_in_one_table(settings):
    """An evaluation set makes LGBMRanker read all rows in one table, and changes nothing else without early stopping."""
    rows = np.column_stack([X, np.arange(len(X)) % 30 == 0])  # a column of rare ones, and missing values
    rows[::7, 1] = np.nan
    mixed = np.random.default_rng(0).permutation(len(X))
    rows, y, qid = rows[mixed], Y[mixed], QID[mixed]
    model = clone(LIGHTGBM).set_params(colsample_bytree=0.7, force_col_wise=True, **settings)
    ranker = SenSTIRBoostingRanker(model, hypotheticals=[exchanged, lambda X: X + np.sin(X)], rho=0.03, random_state=0)
    scores = ranker.fit(rows, y, qid=qid).predict(rows)
    ranker.fit(rows, y, qid=qid, eval_set=[(rows[:9], y[:9])], eval_qid=[qid[:9]])
    assert np.array_equal(ranker.predict(rows), scores) and len(np.unique(scores)) > 30


@both
def test_float64_stays_float64(model):
    """Ids near 1e8, which float32 rounds to multiples of 8; a frame keeps them for LightGBM, an array did not."""
    ids = 1e8 + np.argsort(np.argsort(X[:, 0]))
    rows = np.column_stack([ids, X[:, 2]])
    ranker = SenSTIRBoostingRanker(model, hypotheticals=lambda Z: Z * [1, 0], rho=1e-3, random_state=0)
    scores = ranker.fit(rows, Y, qid=QID).predict(rows)
    frame = pd.DataFrame(rows, columns=["id", "sex"])
    framed = ranker.set_params(hypotheticals=lambda F: F.assign(sex=0.0)).fit(frame, Y, qid=QID).predict(frame)
    np.testing.assert_array_equal(scores, framed)


@pytest.mark.parametrize(
    "model",
    [
        LGBMRanker(boosting_type="dart"),
        LGBMRanker(boosting="rf"),
        LGBMRanker(data_sample_strategy="goss"),
        LGBMRanker(bagging_by_query=True, subsample=0.5, subsample_freq=1),
        LGBMRanker(pos_bagging_fraction=0.5),
        LGBMRanker(linear_tree=True),
        LGBMRanker(label_gain=[0, 1, 3]),
        LGBMRanker(lambdarank_position_bias_regularization=1.0),
        LGBMRanker(objective="rank_xendcg"),
        XGBRanker(lambdarank_pair_method="mean"),
        XGBRanker(booster="dart"),
        XGBRanker(sampling_method="gradient_based"),
        XGBRanker(objective="rank:pairwise"),
    ],
)
def test_parameters_that_cannot_be_had_are_refused_by_name(model):
    with pytest.raises(ValueError, match=r"\w+=.* of (LightGBM|XGBoost) can't be had in SenSTIRBoostingRanker: "):
        fitted(model)


def test_few_rows_are_refused_with_the_parameter_that_lets_them_in():
    with pytest.raises(ValueError, match=r"no column of X to split in 24 rows: set min_child_samples \(now 20\)"):
        SenSTIRBoostingRanker(LGBMRanker(verbose=-1, n_jobs=1), hypotheticals=exchanged).fit(
            X[:24], Y[:24], qid=QID[:24]
        )


def test_what_the_model_takes_for_missing_is_missing_to_a_metric():
    rows = np.where(np.arange(len(X))[:, None] % 9 == 0, -999.0, X)
    model = clone(XGBOOST).set_params(missing=-999.0)
    with pytest.raises(ValueError, match="missing values in column 0 as XGBoost reads it"):
        SenSTIRBoostingRanker(model, metric=[[0, 0, 1.0]], random_state=0).fit(rows, Y, qid=QID)
    fitted(model)  # functions may treat it as they like


@pytest.mark.parametrize("seed", range(5))
def test_the_budget_holds_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    distances = rng.random((3, 40))
    for epsilon in (0.0, 1e-9, 1e-3):
        adversary = ListAdversary(distances, np.full(5, 8), np.ones(5), rho=0.3, epsilon=epsilon)
        for _ in range(30):
            assert adversary.choose(rng.normal(size=40), rng.normal(size=(3, 40))).query_distance <= epsilon


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.1, 0.5])
def test_a_fit_never_spends_more_than_its_budget(epsilon):
    """Case 44, in every round."""
    ranker = fitted(hypotheticals=lambda rows: -exchanged(rows), metric=[[0, 0, 1.0]], epsilon=epsilon, rho=0.1)
    spent = np.asarray(ranker.history_["query_distance"])
    assert (spent <= epsilon).all() and (epsilon == 0 or spent.max() > 0.5 * epsilon)
