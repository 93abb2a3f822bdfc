"""adversary="gaps": its closed form, its solutions, and the ascent; and the budget of the transport ascent, kept."""

import itertools

import numpy as np
import pytest
from small_tasks import make_task

from skfairrank import PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker, senstir_path
from skfairrank.adversaries import Ascent, ExactGaps
from skfairrank.datasets import make_biased_ranking, make_hiring_ranking
from skfairrank.fair_metrics import MahalanobisMetric
from skfairrank.inspection import invariance_regularizer
from skfairrank.metrics import kendall_tau_score, ndcg_score

pytestmark = pytest.mark.once

TASK = make_hiring_ranking(60, random_state=0)
GIVEN = {"qid": TASK.qid, "sensitive_features": TASK.sensitive_features}


def fit(**settings):
    settings = {"adversary": "gaps", "solver": "lbfgs", "alpha": 1e-4, **settings}
    return SenSTIRRanker(**settings).fit(TASK.data, TASK.target, **GIVEN)


# The closed form


@pytest.mark.parametrize("gap_radius, feature_radius", [(1.0, 0.0), (0.7, 0.02), (0.0, 0.1), (3.0, 0.5)])
def test_the_regulariser_is_that_of_the_worst_corner(gap_radius, feature_radius):
    """Scores are linear, so the worst of a box is one of its corners; sizes 3, 5 and 8 have the mean 16 / 3."""
    rng = np.random.default_rng(0)
    X, group, w = rng.normal(size=(16, 4)), np.tile([0, 1], 8), rng.normal(size=4)
    metric = SensitiveSubspaceMetric().fit(X + np.outer(group, [2, -1, 0.5, 0]), sensitive_features=group)
    reach = gap_radius * metric.gaps_ + feature_radius
    corners = np.array(list(itertools.product(*[(-r, r) for r in reach])))
    settings = {"qid": np.repeat([0, 1, 2], [3, 5, 8]), "metric": metric}
    settings["adversary"] = ExactGaps(gap_radius, feature_radius)
    got = invariance_regularizer(w, X, **settings)
    assert got == pytest.approx(16 / 3 / 2 * np.max((corners @ w) ** 2), rel=1e-10)
    ascended = invariance_regularizer(w, X, method="ascent", random_state=0, **settings)
    assert 0.999 * got <= ascended <= got * (1 + 1e-12)


def test_by_default_every_feature_moves_by_its_gap():
    ranker = fit(rho=0.003)
    w, gaps = ranker.coef_, ranker.metric_.gaps_
    expected = 10 / 2 * np.sum((gaps + 0.02) * np.abs(w)) ** 2
    assert invariance_regularizer(ranker, TASK.data, qid=TASK.qid, adversary="gaps") == pytest.approx(
        expected, rel=1e-10
    )
    assert ranker.history_["regularizer"][-1] == pytest.approx(expected, rel=1e-6)


def test_a_metric_without_gaps_is_refused_with_a_sentence():
    metric = MahalanobisMetric(np.eye(TASK.data.shape[1]))
    with pytest.raises(ValueError, match=r"MahalanobisMetric has no gaps_.*adversary=\"gaps\""):
        fit(metric=metric)


# Solutions


@pytest.mark.parametrize("rho", [0.003, 0.03, 0.3])
def test_lbfgs_finds_the_weights_of_the_lasso(rho):
    """Stationary: the gradient of utility is rho n T reach_j sign(w_j), or within that where w_j = 0, T = sum reach |w|."""
    task = make_task(sizes=(4,) * 30, weights=(1.0, -1.0, 0.5, 0.2), seed=1)
    group = np.tile([0, 1], len(task.y) // 2)
    X = task.X + np.outer(group, [0.8, 0.0, 0.4, 0.1])
    task = type(task)(X, task.y, task.qid)
    settings = {"rho": rho, "adversary": ExactGaps(0.8, 0.05), "tol": 1e-8, "alpha": 1e-3}
    ranker = SenSTIRRanker(solver="lbfgs", **settings).fit(X, task.y, qid=task.qid, sensitive_features=group)
    w = ranker.coef_
    reach = 0.8 * ranker.metric_.gaps_ + 0.05
    slope = task.utility(w)[1] - 1e-3 * w
    price = rho * 4 * (reach @ np.abs(w)) * reach
    assert np.abs(slope - price * np.sign(w))[w != 0].max() < 1e-5
    assert (np.abs(slope) <= price + 1e-5)[w == 0].all()
    if rho == 0.3:
        assert (w == 0).any() and (w != 0).any()


def test_adam_and_the_ascent_come_to_the_same():
    exact = fit(rho=0.003).coef_
    for adversary in ("gaps", "gaps_ascent"):
        w = fit(rho=0.003, adversary=adversary, solver="adam", gradient="exact", max_iter=3000, random_state=0).coef_
        assert np.abs(w - exact).max() < 0.25 * np.abs(exact).max(), adversary


def test_a_path_of_gaps_ends_where_little_is_left():
    path = senstir_path(TASK.data, TASK.target, **GIVEN, adversary="gaps", n_rhos=6, alpha=1e-4)
    assert (np.diff(path.regularizers) < 0).all() and path.utilities[0] > path.utilities[-1]
    assert (path.coefs[-1] == 0).sum() > (path.coefs[0] == 0).sum()


@pytest.mark.parametrize("sizes", [(20,) * 12, (3, 25) * 8])
def test_a_path_works_for_queries_of_any_size(sizes):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(sum(sizes), 3)), np.repeat(np.arange(len(sizes)), sizes)
    y = np.digitize(X @ [1, 1, 0.5] + rng.normal(size=len(X)), [0, 1]).astype(float)
    path = senstir_path(X, y, qid=qid, metric=[[0, 1, 0]], n_rhos=4, random_state=0)
    assert np.isfinite(path.coefs).all() and abs(path.coefs[-1, 1]) < 0.3 * abs(path.coefs[0, 1])
    with pytest.raises(ValueError, match='solver="adam"'):
        senstir_path(X, y, qid=qid, metric=[[0, 1, 0]], n_rhos=4, solver="lbfgs")


def test_gaps_at_their_defaults_make_the_ranking_fairer_and_a_moderate_rho_better_by_the_truth():
    """On hiring with a known truth: twins closer, exposure more equal, and true merit ranked better than by the plain ranker."""
    task = make_hiring_ranking(600, random_state=1)
    train, test = task.qid < 300, task.qid >= 300
    found = {}
    for name, ranker in {
        "plain": PlackettLuceRanker(random_state=0),
        "default": SenSTIRRanker(adversary="gaps", random_state=0),
        "moderate": SenSTIRRanker(adversary="gaps", rho=0.001, random_state=0),
    }.items():
        ranker.fit(
            task.data[train], task.target[train], qid=task.qid[train], sensitive_features=task.sensitive_features[train]
        )
        s, qid = ranker.predict(task.data[test]), task.qid[test]
        tau = kendall_tau_score(s, ranker.predict(task.twin[test]), qid=qid)
        rank = ranker.rank(task.data[test], qid=qid)
        group, exposure = task.sensitive_features[test] == 1, 1 / np.log2(1 + rank)
        gap = exposure[group].mean() - exposure[~group].mean()
        found[name] = tau, abs(gap), ndcg_score(task.merit[test], s, qid=qid, replace_undefined_by=1)
    (tau, gap, merit), (tau2, gap2, _), (tau1, gap1, merit1) = found["plain"], found["default"], found["moderate"]
    assert tau2 > tau1 > tau + 0.05 and gap2 < gap1 < gap - 0.02 and merit1 > merit, found


# The budget of the ascent


def spent(task, metric, **settings):
    """What each step spends; settings are those of the ascent where it has them."""
    attack = {name: settings.pop(name) for name in Ascent().get_params() if name in settings}
    adversary = Ascent(**{"full_step_size": 0.01, **attack})
    settings = {"rho": 0.1, "adversary": adversary, "max_iter": 2000, "random_state": 0, **settings}
    ranker = SenSTIRRanker(metric, **settings).fit(
        task["X"], task["y"], qid=task["qid"], sensitive_features=task["groups"]
    )
    return ranker.history_["query_distance"], ranker


def synthetic():
    made = make_biased_ranking(100, random_state=0)
    return {"X": made.data, "y": made.target, "qid": made.qid, "groups": made.sensitive_features}


def mixed():
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 15, 60)
    X, group = rng.normal(size=(sizes.sum(), 6)), rng.integers(0, 2, sizes.sum())
    X[:, 0] += group
    y = np.digitize(X @ [1, 1, 0.5, 0.5, 0, 0] + rng.normal(size=len(X)), [0, 1]).astype(float)
    return {"X": X, "y": y, "qid": np.repeat(np.arange(60), sizes), "groups": group}


@pytest.mark.parametrize("epsilon", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("task", [synthetic, mixed])
@pytest.mark.parametrize("raw", [False, True], ids=["gap", "raw"])
def test_where_the_budget_binds_the_mean_spent_is_the_budget(task, raw, epsilon):
    """The last third of training, within a tenth. Also in the paper's units, where its own rule would swing."""
    metric = SensitiveSubspaceMetric(scale="raw" if raw else "gap")
    d, _ = spent(task(), metric, epsilon=epsilon)
    assert d[-len(d) // 3 :].mean() == pytest.approx(epsilon, rel=0.1)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4])
def test_the_papers_rule_swings_where_the_budget_binds(epsilon):
    d, ranker = spent(mixed(), SensitiveSubspaceMetric(), epsilon=epsilon, dual_step="paper")
    assert d[-len(d) // 3 :].mean() > 3 * epsilon and ranker.history_["lambda"].min() == 1e-5


@pytest.mark.parametrize("dual_step", ["budget", "paper"])
def test_a_budget_that_does_not_bind_leaves_both_rules_at_the_floor(dual_step):
    d, ranker = spent(mixed(), SensitiveSubspaceMetric(), epsilon=10.0, dual_step=dual_step)
    assert d.max() < 10 and ranker.lambda_ == 1e-5


def test_lambda_grows_where_the_batch_overspends_and_only_there():
    d, ranker = spent(synthetic(), SensitiveSubspaceMetric(), epsilon=1e-3, dual_step="budget")
    moved, first = np.diff(ranker.history_["lambda"]), 1 + int(0.1 * len(d))
    over = d[first:] > 1e-3
    assert (moved[first - 1 :][over] > 0).all() and (moved[first - 1 :][~over] <= 0).all()
    assert np.abs(np.diff(np.log(ranker.history_["lambda"]))).max() <= 0.1 + 1e-9
    assert d.max() <= 2e-3 * (1 + 1e-9)
