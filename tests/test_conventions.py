"""docs/conventions.md: what other libraries do with odd queries, by running them, and what reproduces it here."""

from pathlib import Path

import lightgbm
import numpy as np
import pytest
import xgboost
from catboost.utils import eval_metric
from sklearn.metrics import ndcg_score as sklearn_ndcg
from sklearn.utils.fixes import parse_version

from skfairrank.metrics import ndcg_score, utility_score
from skfairrank.utilities import DCG, ERR, AveragePrecision, PrecisionAtK, RecallAtK

pytestmark = pytest.mark.once

PAGE = (Path(__file__).parents[1] / "docs" / "conventions.md").read_text(encoding="utf-8")


def break_ties(s, key=None):
    """As the page defines it: the page's own code."""
    lines = PAGE.split(">>> def break_ties")[1].split("\n\n```")[0]
    scope = {"np": np}
    exec("def break_ties" + lines.replace("\n... ", "\n"), scope)
    return scope["break_ties"](s, key)


def of_lightgbm(y, s, metric="ndcg", k=5, **settings):
    """One query, scored by what the model starts from: no split is allowed."""
    quiet = {"verbose": -1, "num_threads": 1}
    X = np.arange(len(y), dtype=float)[:, None]
    binned = {**quiet, "min_data_in_bin": 1}
    train = lightgbm.Dataset(X, y, group=[len(y)], params=binned)
    valid = lightgbm.Dataset(X, y, group=[len(y)], init_score=np.asarray(s, float), reference=train, params=binned)
    found = {}
    lightgbm.train(
        {**binned, "objective": "lambdarank", "metric": metric, "eval_at": [k], "min_data_in_leaf": 10**6, **settings},
        train,
        1,
        valid_sets=[valid],
        callbacks=[lightgbm.record_evaluation(found)],
    )
    return found["valid_0"][f"{metric}@{k}"][0]


def of_xgboost(y, s, metric="ndcg", **settings):
    """One query, scored by what the model starts from: there is no round."""
    data = xgboost.DMatrix(np.zeros((len(y), 1)), y, base_margin=np.asarray(s, float))
    data.set_group([len(y)])
    settings = {"objective": "rank:ndcg", "eval_metric": metric, "base_score": 0, "nthread": 1, **settings}
    return float(xgboost.train(settings, data, 0).eval(data).split(":")[-1])


def of_catboost(y, s, metric="NDCG"):
    return eval_metric(list(map(float, y)), list(map(float, s)), metric, group_id=[0] * len(y), thread_count=1)[0]


#: NDCG at 5 of a library, and the arguments that reproduce it here: what an undefined query counts as, the gain, the ties.
LIBRARIES = {
    "scikit-learn": (lambda y, s: sklearn_ndcg([y], [s], k=5), 0.0, "linear", lambda y, s: s),
    "LightGBM": (of_lightgbm, 1.0, "exp2", lambda y, s: break_ties(s)),
    "LightGBM, label_gain": (
        lambda y, s: of_lightgbm(y, s, label_gain=[0, 1, 2, 3, 4]), 1.0, "linear", lambda y, s: break_ties(s),
    ),
    "XGBoost": (lambda y, s: of_xgboost(y, s, "ndcg@5"), 1.0, "exp2", lambda y, s: break_ties(s)),
    "XGBoost, ndcg-": (lambda y, s: of_xgboost(y, s, "ndcg@5-"), 0.0, "exp2", lambda y, s: break_ties(s)),
    "XGBoost, linear": (
        lambda y, s: of_xgboost(y, s, "ndcg@5", ndcg_exp_gain=False), 1.0, "linear", lambda y, s: break_ties(s),
    ),
    "CatBoost": (lambda y, s: of_catboost(y, s, "NDCG:top=5"), 1.0, "linear", lambda y, s: break_ties(s, -y)),
    "CatBoost, Exp": (lambda y, s: of_catboost(y, s, "NDCG:top=5;type=Exp"), 1.0, "exp2", lambda y, s: break_ties(s, -y)),
}  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_arguments_reproduce_the_librarys_ndcg(library):
    """Without ties and with them, of fewer rows than k and of more, and without a relevant row."""
    theirs, undefined, gain, ties = LIBRARIES[library]
    if library == "XGBoost, linear" and parse_version(xgboost.__version__) < parse_version("3"):
        pytest.skip("before 3 XGBoost's metric has gains 2^rel - 1, whatever ndcg_exp_gain is")
    rng = np.random.default_rng(0)
    for n, levels in ((3, 9), (9, 9), (9, 2), (4, 1), (8, 3)):
        y, s = rng.integers(0, 5, n), rng.integers(0, levels, n) / 8 if levels < 9 else rng.permutation(n) / 8
        y[rng.integers(n)] = 3
        found = ndcg_score(y, ties(y, s), qid=[0] * n, k=5, gain=gain)
        assert theirs(y, s) == pytest.approx(found, abs=1e-6)  # LightGBM and XGBoost keep numbers in single precision
    nothing = np.zeros(3, int)
    assert theirs(nothing, np.arange(3.0)) == undefined
    assert ndcg_score(nothing, [0, 1, 2], qid=[0] * 3, replace_undefined_by=undefined, reduce=None) == undefined


S = np.array([4.0, 3, 2, 1])
MIXED, ALL, NONE = np.array([0, 1, 1, 1]), np.ones(4, int), np.zeros(4, int)


def ours(utility, y, **kw):
    return utility_score(y, S, qid=[0] * 4, utility=utility, policy="deterministic", **kw)


@pytest.mark.parametrize(
    "metric, undefined",
    [("DCG", 0.0), ("PrecisionAt:top=3", 0.0), ("RecallAt:top=3", 1.0), ("MRR", 0.0), ("MAP", 0.0), ("ERR", 0.0)],
)
def test_what_catboost_makes_of_a_query_without_a_relevant_row(metric, undefined):
    assert of_catboost(NONE, S, metric) == undefined


def test_what_boosting_libraries_make_of_average_precision():
    """Of three relevant rows after one that is not, at k = 2: 1/2 for the first of them, by 3 or by min(3, 2)."""
    assert ours(AveragePrecision(k=2), MIXED) == pytest.approx((1 / 2) / 3, abs=1e-12)
    for theirs in (of_lightgbm(MIXED, S, "map", 2), of_xgboost(MIXED, S, "map@2"), of_catboost(MIXED, S, "MAP:top=2")):
        assert theirs == pytest.approx((1 / 2) / 2, abs=1e-6)
    whole = of_lightgbm(MIXED, S, "map"), of_xgboost(MIXED, S, "map"), of_catboost(MIXED, S, "MAP")
    assert whole == pytest.approx([ours("average_precision", MIXED)] * 3, abs=1e-6)
    assert of_lightgbm(NONE, S, "map") == of_xgboost(NONE, S, "map") == 1.0
    assert of_xgboost(NONE, S, "map-") == 0.0


def test_precision_where_k_is_beyond_the_number_of_rows():
    """Three relevant rows of four: 3/10 here, 3/4 for those who divide by the number of rows."""
    assert ours(PrecisionAtK(k=10), MIXED) == pytest.approx(0.3, abs=1e-12)
    assert of_xgboost(MIXED, S, "pre@10") == pytest.approx(0.75, abs=1e-6)
    assert of_catboost(MIXED, S, "PrecisionAt:top=10") == pytest.approx(0.75)


def test_what_agrees_with_catboost():
    """DCG with either gain, recall, reciprocal rank, and ERR, whose relevances it takes as chances to stop."""
    y = np.array([0, 2, 1, 0])
    assert of_catboost(y, S, "DCG") == pytest.approx(ours(DCG(gain="linear"), y))
    assert of_catboost(y, S, "DCG:type=Exp") == pytest.approx(ours(DCG(), y))
    assert of_catboost(MIXED, S, "RecallAt:top=2") == pytest.approx(ours(RecallAtK(k=2), MIXED))
    assert of_catboost(MIXED, S, "MRR") == pytest.approx(ours("reciprocal_rank", MIXED))
    grades = np.array([0, 3, 4, 1])
    assert of_catboost((2.0**grades - 1) / 2**4, S, "ERR") == pytest.approx(ours(ERR(max_relevance=4), grades))


def test_catboost_counts_a_relevance_above_one_half():
    assert of_catboost([0, 0.5, 1, 0], S, "MRR") == pytest.approx(1 / 3)
    assert ours("reciprocal_rank", np.array([0, 0.5, 1, 0])) == 1 / 2
