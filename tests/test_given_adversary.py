"""adversary="given": of each item the worst of its hypothetical rows, against the definition, one item after the other."""

import autograd.numpy as anp
import numpy as np
import pandas as pd
import pytest
import sklearn
from _data import shared_data
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from small_tasks import MIXED, make_task

from skfairrank import FairPGRanker, PlackettLuceRanker, QueryRanker, RandomRanker, SenSTIRRanker, senstir_path
from skfairrank._queries import Queries
from skfairrank.adversaries import GivenHypotheticals
from skfairrank.datasets import flip_sex
from skfairrank.fair_metrics import MahalanobisMetric
from skfairrank.hypotheticals import Hypotheticals
from skfairrank.metrics import kendall_tau_score, kendall_tau_scorer
from skfairrank.model_selection import QueryKFold
from skfairrank.scores import FunctionScore, LinearScore, MLPScore
from skfairrank.training._batches import Batches
from skfairrank.utilities import Tables

TASK = make_task(MIXED, seed=3)
N, D = TASK.X.shape
M = np.diag([0.0, 2.0, 1.0, 0.5])
GROUP = np.arange(N) % 2
QUICK = {"max_iter": 40, "random_state": 0, "rho": 0.1}


def bent(theta, X):
    return anp.tanh(anp.dot(X, theta)) + anp.dot(X, theta)


SCORES = pytest.mark.parametrize(
    "score",
    [LinearScore(), MLPScore((3,)), FunctionScore(bent, [0.1, 0.2, 0.3, 0.4])],
    ids=["linear", "mlp", "function"],
)


def negate(X, column=1):
    """Another sign in a column: what must not matter."""
    X[:, column] *= -1
    return X


def fit(ranker, **metadata):
    return ranker.fit(TASK.X, TASK.y, qid=TASK.qid, **metadata)


class Setting:
    """A batch of all queries, weighted, with candidates of which some are free, and what the definition says of an attack."""

    def __init__(self, score, *, rho=0.3, epsilon=0.05, metric=M, dual_step="budget"):
        rng = np.random.default_rng(1)
        self.score, self.rho, self.epsilon = score, rho, epsilon
        self.candidates = [TASK.X + 0.3 * rng.normal(size=(N, D)) for _ in range(3)]
        self.candidates.append(TASK.X + [0.4, 0, 0, 0])
        self.queries = Queries.from_qid(TASK.qid, N)
        weights = rng.uniform(0.5, 1.5, self.queries.n_queries)
        self.metric = None if metric is None else MahalanobisMetric(metric).fit(TASK.X)
        self.M = np.zeros((D, D)) if metric is None else metric
        batches = Batches(TASK.X, self.queries, Tables(np.zeros(N), np.zeros(4)), weights)
        (self.batch,) = batches.in_order()
        self.theta = score.initial_parameters(D, rng) + 0.5 * rng.normal(size=len(score.initial_parameters(D, rng)))
        adversary = GivenHypotheticals(epsilon=epsilon, dual_step=dual_step).among(self.candidates)
        self.prepared = adversary.prepare(batches, score, self.metric, rho=rho, rng=rng)

    def items(self, theta, multiplier):
        """Of each item: weight in the mean over queries, query size, and (unfairness, cost) of itself and its candidates."""
        for q, (first, last) in enumerate(zip(self.batch.offsets[:-1], self.batch.offsets[1:], strict=True)):
            for row in self.batch.rows[first:last]:
                points = np.stack([TASK.X[row], *(rows[row] for rows in self.candidates)])
                h, moves = self.score.values(theta, points), points - points[0]
                cost = np.einsum("kj,jl,kl->k", moves, self.M, moves)
                yield self.batch.weight[q] / len(self.batch.weight), last - first, 0.5 * (h - h[0]) ** 2, cost

    def chosen(self, theta, multiplier):
        """Candidates of all items by the definition, and among those that cost nothing."""
        best, free = [], []
        for _, n, unfair, cost in self.items(theta, multiplier):
            best.append(int(np.argmax(self.rho * unfair - multiplier / n * cost)))
            free.append(int(np.argmax(np.where(cost < 1e-20, unfair, -1.0))))
        return best, free

    def means(self, theta, chosen):
        """Regulariser and distance where each item takes the chosen candidate."""
        found = list(self.items(theta, 0.0))
        value = sum(w * unfair[k] for (w, _, unfair, _), k in zip(found, chosen, strict=True))
        return value, sum(w / n * cost[k] for (w, n, _, cost), k in zip(found, chosen, strict=True))


@SCORES
@pytest.mark.parametrize("multiplier", [0.0, 0.02, 0.3, 50.0])
def test_an_attack_by_definition(score, multiplier):
    setting = Setting(score, epsilon=1e6)
    attack = setting.prepared.attack(setting.batch, setting.theta, multiplier)
    best, free = setting.chosen(setting.theta, multiplier)
    assert len(set(best)) > 2 if multiplier < 50 else best == free
    value, distance = setting.means(setting.theta, best)
    assert (attack.regularizer, attack.query_distance) == pytest.approx((value, distance), rel=1e-9)
    slope = approx_fprime(setting.theta, lambda theta: setting.means(theta, best)[0], 1e-7)
    np.testing.assert_allclose(attack.gradient, slope, rtol=1e-4, atol=1e-5)


@SCORES
def test_a_budget_is_kept_by_taking_rows_with_a_probability(score):
    setting = Setting(score, epsilon=0.002)
    attack = setting.prepared.attack(setting.batch, setting.theta, 0.01)
    best, free = setting.chosen(setting.theta, 0.01)
    (value, distance), (value_free, _) = (setting.means(setting.theta, chosen) for chosen in (best, free))
    share = 2 * setting.epsilon / distance
    assert share < 0.5 and value_free > 0
    assert attack.query_distance == pytest.approx(2 * setting.epsilon, rel=1e-12)
    assert attack.regularizer == pytest.approx(share * value + (1 - share) * value_free, rel=1e-9)

    def mixed(theta):
        return share * setting.means(theta, best)[0] + (1 - share) * setting.means(theta, free)[0]

    np.testing.assert_allclose(attack.gradient, approx_fprime(setting.theta, mixed, 1e-7), rtol=1e-4, atol=1e-5)


def test_where_the_budget_binds_its_mean_is_spent():
    setting, multiplier, spent = Setting(LinearScore(), epsilon=0.03), 2.0, []
    for _ in range(2000):
        attack = setting.prepared.attack(setting.batch, setting.theta, multiplier)
        multiplier = attack.multiplier
        spent.append(attack.query_distance)
    assert np.mean(spent[200:]) == pytest.approx(0.03, rel=0.03)


def test_without_a_metric_rows_are_free():
    setting = Setting(LinearScore(), epsilon=0.0, metric=None)
    attack = setting.prepared.attack(setting.batch, setting.theta, 7.0)
    best, _ = setting.chosen(setting.theta, 7.0)
    assert attack.regularizer == pytest.approx(setting.means(setting.theta, best)[0], rel=1e-9)
    assert (attack.query_distance, attack.multiplier) == (0.0, 7.0)


# The ranker


@pytest.mark.parametrize("score", ["linear", MLPScore((8,))], ids=["linear", "mlp"])
def test_a_flip_of_one_s_own_makes_rankings_stable(score):
    with np.load(shared_data("german_seed0.npz")) as z:
        X, y, qid, Xt, qt = (z[name] for name in ("X_train", "y_train", "qid_train", "X_test", "qid_test"))

    def tau(**settings):
        ranker = SenSTIRRanker(
            adversary=GivenHypotheticals(flip_sex), score_function=score, gradient="plrank", max_iter=500, random_state=0,
            **settings,
        )  # fmt: skip
        ranker.fit(X, y, qid=qid)
        return kendall_tau_score(ranker.predict(Xt), ranker.predict(flip_sex(Xt)), qid=qt)

    assert tau(rho=0) < 0.9 < 0.985 < tau(rho=0.03)


def test_rows_and_functions_that_give_them_are_the_same_to_the_bit(tmp_path):
    by_function = fit(SenSTIRRanker(adversary=GivenHypotheticals(negate), **QUICK))
    assert by_function.history_["regularizer"][-1] > 0
    expected = negate(TASK.X.copy())
    np.save(tmp_path / "rows.npy", expected)
    on_disk = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for rows in (expected.tolist(), [expected], expected[:, None], {"negated": on_disk}):
        by_rows = fit(SenSTIRRanker(adversary="given", **QUICK), X_hypothetical=rows)
        np.testing.assert_array_equal(by_rows.coef_, by_function.coef_)
    both = fit(SenSTIRRanker(adversary=GivenHypotheticals(negate), **QUICK), X_hypothetical=expected)
    np.testing.assert_array_equal(both.coef_, by_function.coef_)
    assert both.hypotheticals_.names_ == ["negate"]


def test_functions_see_the_frame_and_the_ranker_numbers():
    frame = pd.DataFrame(TASK.X, columns=list("abcd"))
    ranker = SenSTIRRanker(adversary=GivenHypotheticals(lambda rows: rows.assign(b=-rows["b"])), **QUICK)
    ranker.fit(frame, TASK.y, qid=TASK.qid)
    np.testing.assert_array_equal(ranker.coef_, fit(SenSTIRRanker(adversary=GivenHypotheticals(negate), **QUICK)).coef_)
    with pytest.raises(TypeError, match="X_hypothetical is of type ndarray"):
        SenSTIRRanker(adversary="given", **QUICK).fit(frame, TASK.y, qid=TASK.qid, X_hypothetical=TASK.X)


def test_in_a_pipeline_functions_see_the_rows_behind_the_other_steps():
    seen = []

    def look(X):
        seen.append(X)
        return negate(X.copy())

    pipeline = make_pipeline(StandardScaler(), SenSTIRRanker(adversary=GivenHypotheticals(look), **QUICK))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline.fit(TASK.X, TASK.y, qid=TASK.qid)
    np.testing.assert_array_equal(seen[0], StandardScaler().fit_transform(TASK.X))


def test_the_order_of_rows_does_not_matter_nor_does_a_second_fit():
    order = np.argsort(TASK.qid, kind="stable")
    adversary = GivenHypotheticals(Hypotheticals(negate, n_neighbors=1))
    ranker = SenSTIRRanker(adversary=adversary, metric=MahalanobisMetric(M), **QUICK)
    first = fit(ranker).coef_
    again = clone(ranker).fit(TASK.X[order], TASK.y[order], qid=TASK.qid[order])
    np.testing.assert_array_equal(again.coef_, first)
    np.testing.assert_array_equal(fit(ranker).coef_, first)


# What rows cost


def test_with_no_metric_sensitive_features_change_nothing():
    ranker = SenSTIRRanker(adversary=GivenHypotheticals(negate), **QUICK)
    free = fit(ranker)
    assert free.metric_ is None and free.lambda_ == 2.0 and not free.history_["query_distance"].any()
    np.testing.assert_array_equal(fit(clone(ranker), sensitive_features=GROUP).coef_, free.coef_)


def test_a_metric_charges_rows():
    def charged(metric, epsilon, **settings):
        adversary = GivenHypotheticals(negate, epsilon=epsilon)
        return fit(SenSTIRRanker(metric, adversary=adversary, fair_start=0.0, **{**QUICK, **settings}))

    ranker = charged(MahalanobisMetric(np.eye(4)), 0.0)
    np.testing.assert_array_equal(ranker.coef_, fit(PlackettLuceRanker(max_iter=40, random_state=0)).coef_)
    assert not ranker.history_["regularizer"].any()
    sensitive = charged([[0, 1, 0, 0]], 0.0).history_
    assert sensitive["regularizer"][-1] > 0 and not sensitive["query_distance"].any()
    spent = charged(MahalanobisMetric(np.eye(4)), 0.02, max_iter=200).history_["query_distance"]
    assert 0 < spent.max() <= 0.04 * (1 + 1e-12)


def test_hypotheticals_use_the_ranker_s_metric():
    source = Hypotheticals(directions=True, steps=(1.0,))
    ranker = fit(SenSTIRRanker([[0.0, 1.0, 0, 0]], adversary=GivenHypotheticals(source), **QUICK))
    by_hand = fit(SenSTIRRanker(adversary="given", **QUICK), X_hypothetical=TASK.X + [0, 1.0, 0, 0])
    np.testing.assert_array_equal(ranker.coef_, by_hand.coef_)
    assert ranker.hypotheticals_.metric_ is ranker.metric_ and not hasattr(source, "names_")
    learned = fit(
        SenSTIRRanker(adversary=GivenHypotheticals(Hypotheticals(gaps=True)), **QUICK), sensitive_features=GROUP
    )
    assert learned.hypotheticals_.metric_ is learned.metric_ and not learned.history_["query_distance"].any()
    own = Hypotheticals(directions=True, steps=(1.0,), metric=FrozenEstimator(ranker.metric_))
    np.testing.assert_array_equal(fit(SenSTIRRanker(adversary=GivenHypotheticals(own), **QUICK)).coef_, by_hand.coef_)


# Searches


def test_a_search_cuts_rows_that_one_has_and_holds_every_ranker():
    steps, twin = {"max_iter": 5, "random_state": 0}, negate(TASK.X.copy())
    given = SenSTIRRanker(adversary="given", rho=0.1, **steps)
    others = [PlackettLuceRanker(**steps), FairPGRanker(fairness_weight=0, **steps), RandomRanker(random_state=0)]
    pipeline, grid = Pipeline([("ranker", given)]), {"ranker": [given, QueryRanker(given), *others]}
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipeline, grid, cv=QueryKFold(2), scoring=kendall_tau_scorer, error_score="raise")
        search.fit(TASK.X, TASK.y, qid=TASK.qid, X_hypothetical=twin)
        with pytest.raises(ValueError, match=r"X_hypothetical 0 has shape"):
            search.fit(TASK.X, TASK.y, qid=TASK.qid, X_hypothetical=[twin, twin])
    train, test = next(iter(QueryKFold(2).split(TASK.X, TASK.y, TASK.qid)))
    ranker = clone(given).fit(TASK.X[train], TASK.y[train], qid=TASK.qid[train], X_hypothetical=twin[train])
    tau = kendall_tau_score(ranker.predict(TASK.X[test]), ranker.predict(twin[test]), qid=TASK.qid[test])
    assert search.cv_results_["split0_test_score"][:2].tolist() == [tau, tau]


def test_a_path_over_given_rhos():
    path = senstir_path(
        TASK.X, TASK.y, qid=TASK.qid, rhos=[0.01, 1.0], adversary="given", X_hypothetical=negate(TASK.X.copy()),
        max_iter=600, random_state=0,
    )  # fmt: skip
    assert abs(path.coefs[1, 1]) < 0.3 * abs(path.coefs[0, 1])


# What is refused


@pytest.mark.parametrize(
    "adversary, given, message",
    [
        ("given", {}, "no hypothetical rows: give hypotheticals"),
        (GivenHypotheticals("flip"), {}, "hypotheticals has 'flip', which is no function"),
        ("given", {"X_hypothetical": TASK.X[1:]}, "X_hypothetical has shape.*transform_input"),
        ("given", {"X_hypothetical": np.full_like(TASK.X, np.nan)}, "missing values in column 0"),
    ],
)
def test_what_is_missing_is_an_error(adversary, given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit(SenSTIRRanker(adversary=adversary, **QUICK), **given)


def test_what_has_no_effect_or_no_rows_says_so():
    with pytest.raises(ValueError, match="among"):
        GivenHypotheticals(negate).prepare(None, LinearScore(), None, rho=1.0, rng=None)
    with pytest.warns(UserWarning, match="'<lambda>' changes no row"):
        fit(SenSTIRRanker(adversary=GivenHypotheticals([negate, lambda X: X]), **QUICK))
