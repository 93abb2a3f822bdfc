"""The rankers as estimators: parameters, inputs, ranks and scores, progress, interruption, memory; Fair-PG-Rank's objective."""

import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
from instruments import Diary, Fuse, FusedScore, Recorder, ScoreWithDiary, needs_callbacks
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from skfairrank import FairPGRanker, PlackettLuceRanker, RandomRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank._random import draw_keys
from skfairrank.metrics import group_exposure_disparity, ndcg_score
from skfairrank.metrics._exposure import disparity_coefficients
from skfairrank.policies import make_gradient
from skfairrank.rankers._fair_pg import ExposureHinge
from skfairrank.rankers._plackett_luce import RankingMixin
from skfairrank.training import Batch
from skfairrank.utilities import NDCG, discounts

V = [[0.0, 1.0, 0.0, 0.0]]
QUICK = {"max_iter": 20, "random_state": 0}
RANKERS = {
    "plain": lambda **k: PlackettLuceRanker(**{**QUICK, **k}),
    "senstir": lambda **k: SenSTIRRanker(V, **{**QUICK, **k}),
    "exact": lambda **k: SenSTIRRanker(V, adversary="exact", **{**QUICK, **k}),
    "box": lambda **k: SenSTIRRanker(V, adversary="exact_box", **{**QUICK, **k}),
    "fair exposure": lambda **k: FairPGRanker(**{**QUICK, **k}),
}
every_ranker = pytest.mark.parametrize("make", RANKERS.values(), ids=RANKERS)


def task(n_queries=12, size=5, d=4, seed=0):
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(n_queries), size))
    X = rng.normal(size=(len(qid), d))
    y = np.floor((X[:, 0] - X[:, 1] + rng.normal(size=len(X)) + 3).clip(0, 4))
    return X, y, qid, rng.integers(0, 2, len(X))


# Predictions, ranks, scores


@every_ranker
def test_scores_are_linear_in_the_features(make):
    X, y, qid, g = task()
    ranker = make().fit(X, y, qid=qid, sensitive_features=g)
    assert ranker.coef_.shape == (4,) and ranker.coef_.dtype == np.float64
    assert ranker.predict(X) == pytest.approx(X @ ranker.coef_, rel=1e-12)
    assert (ranker.n_iter_, ranker.n_queries_, ranker.n_features_in_) == (20, 12, 4)
    assert set(ranker.history_) == {"utility", "regularizer", "query_distance", "lambda"}
    assert all(values.shape == (20,) and np.isfinite(values).all() for values in ranker.history_.values())


class Fixed(RankingMixin, BaseEstimator):
    """What every ranker inherits, for given weights."""

    def __init__(self, coef, n_queries=2):
        self.coef = coef
        self.n_queries = self.n_queries_ = n_queries

    def predict(self, X):
        return np.asarray(X) @ np.asarray(self.coef, float)


def test_rank_is_by_descending_score_within_the_query_ties_in_row_order():
    """Also of one row, case 10."""
    ranker, X = Fixed([1.0]), np.array([[0.1], [2], [0.1], [3], [0.1], [2]])
    assert Fixed([1.0], n_queries=1).rank(X).tolist() == [4, 2, 5, 1, 6, 3]
    assert ranker.rank(X, qid=["b", "a", "b", "b", "a", "b"]).tolist() == [3, 1, 4, 1, 2, 2]
    assert Fixed([0.0]).rank(X, qid=[1, 0, 1, 0, 1, 0]).tolist() == [1, 1, 2, 2, 3, 3]
    assert ranker.rank([[0.2]], qid=["a"]).tolist() == [1]


@pytest.mark.parametrize("form", [list, pd.Series, pd.Categorical, pl.Series, lambda q: [f"{i:02}" for i in q]])
def test_any_form_of_qid_serves_every_method(form):
    """Case 3; the ids keep their order, so random numbers fall on the same queries."""
    X, y, qid, _ = task()
    found = []
    for ids in (qid, form(qid.tolist())):
        ranker = SenSTIRRanker(V, **QUICK).fit(X, y, qid=ids)
        sampled = ranker.sample_rankings(X, qid=ids, n_samples=3, random_state=1)
        found.append(np.r_[ranker.coef_, ranker.rank(X, qid=ids), sampled.ravel(), ranker.score(X, y, qid=ids)])
    np.testing.assert_array_equal(*found)


def test_sampled_rankings_follow_the_policy_and_the_rows():
    ranker = Fixed([1.0])
    X, qid = np.array([[0.0], [np.log(3)], [0.0], [0.0]]), np.array(["b", "a", "a", "b"])
    ranks = ranker.sample_rankings(X, qid=qid, n_samples=20_000, random_state=0)
    first = (ranks == 1).mean(axis=0)
    assert first == pytest.approx([0.5, 0.75, 0.25, 0.5], abs=4 * 0.5 / np.sqrt(20_000))
    assert Fixed([1.0], n_queries=1).sample_rankings(X).shape == (1, 4)


@pytest.mark.parametrize("method", ["rank", "sample_rankings", "score"])
def test_rows_of_several_queries_are_no_list(method):
    """Case 48."""
    arguments = ([[0.1], [2.0]], [0, 1]) if method == "score" else ([[0.1], [2.0]],)
    with pytest.raises(ValueError, match=f"{method} got no qid, and fit saw 2 queries: pass qid="):
        getattr(Fixed([1.0]), method)(*arguments)


@pytest.mark.parametrize("adversary", ["gaps", "gaps_ascent"])
def test_gaps_need_groups(adversary):
    """Case 49."""
    X, y, qid, _ = task()
    with pytest.raises(ValueError, match="pass sensitive_features="):
        SenSTIRRanker(adversary=adversary, **QUICK).fit(X, y, qid=qid)


def test_score_is_the_ndcg_of_the_sorted_list_whatever_the_size_of_the_scores():
    X, y, qid, _ = task()
    ranker = PlackettLuceRanker(**QUICK).fit(X, y, qid=qid)
    score = ranker.score(X, y, qid=qid)
    assert score == ranker.score(X, y, qid=qid, sample_weight=None) == ndcg_score(y, ranker.predict(X), qid=qid)
    assert Fixed(1e-3 * ranker.coef_).score(X, y, qid=qid) == pytest.approx(score, abs=1e-12)
    with pytest.raises(ValueError, match="no sample_weight"):
        ranker.score(X, y, qid=qid, sample_weight=np.ones(60))


def test_score_without_qid_after_several_queries_is_an_error_with_the_remedy():
    """Case 5."""
    X, y, qid, _ = task()
    with pytest.raises(ValueError, match=r"fit saw 12 queries.*set_config\(enable_metadata_routing=True\)"):
        PlackettLuceRanker(**QUICK).fit(X, y, qid=qid).score(X, y)
    one = PlackettLuceRanker(**QUICK).fit(X, y, qid=np.zeros(len(X)))
    assert one.score(X, y) == one.score(X, y, qid=np.zeros(len(X)))


def test_without_qid_fit_takes_one_query_and_warns():
    X, y, _, g = task()
    for make in (*RANKERS.values(), lambda: RandomRanker(random_state=0)):
        with pytest.warns(
            UserWarning, match=r"fit got no qid and takes all 60 rows as one query.*np\.zeros\(len\(X\)\)"
        ) as seen:
            alone = make().fit(X, y, sensitive_features=g)
        assert len(seen) == 1
        meant = make().fit(X, y, qid=np.zeros(len(X)), sensitive_features=g)
        np.testing.assert_array_equal(alone.coef_, meant.coef_)


def test_an_unfitted_ranker_says_so():
    for make in (*RANKERS.values(), RandomRanker):
        for call in ("predict", "rank", "sample_rankings"):
            with pytest.raises(NotFittedError):
                getattr(make(), call)(np.zeros((2, 4)))


def test_random_ranker_draws_a_standard_normal():
    X, y, qid, _ = task()
    ranker = RandomRanker(random_state=3).fit(X, y, qid=qid)
    assert ranker.coef_.tolist() == np.random.default_rng(3).standard_normal(4).tolist()
    many = np.array([RandomRanker().fit(X, y, qid=qid).coef_ for _ in range(500)])
    assert np.abs(many.mean(axis=0)).max() < 4.5 / np.sqrt(500) and many.std() == pytest.approx(1, abs=0.1)


# Inputs


BAD_DATA = {
    "NaN in X": (lambda X, y, q: (np.where(X > 1, np.nan, X), y, q), "NaN"),
    "inf in X": (lambda X, y, q: (np.where(X > 1, np.inf, X), y, q), "infinity"),
    "negative y": (lambda X, y, q: (X, y - 1, q), "negative"),  # case 12
    "scores as y": (lambda X, y, q: (X[:5], [-0.89, -0.53, -0.47, 0.39, 0.56], [0] * 5), "negative"),  # case 12
    "NaN in y": (lambda X, y, q: (X, np.where(y > 2, np.nan, y), q), "NaN"),
    "inf in y": (lambda X, y, q: (X, np.where(y > 2, np.inf, y), q), "infinity"),
    "y of another length": (lambda X, y, q: (X, y[:-1], q), "inconsistent numbers of samples"),
    "flat X": (lambda X, y, q: (X[:, 0], y, q), "Expected 2D"),
    "no rows": (lambda X, y, q: (X[:0], y[:0], q[:0]), "0 sample"),
    "group sizes": (lambda X, y, q: (X, y, [5] * 12), "12 entries for 60 rows.*not group sizes"),  # case 4
    "NaN in qid": (lambda X, y, q: (X, y, np.where(q == 3, np.nan, q)), "qid has 5 missing"),  # case 3
    "two-dimensional qid": (lambda X, y, q: (X, y, q[:, None]), "qid has shape"),
}


@every_ranker
@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_are_an_error(make, name):
    X, y, qid, g = task()
    change, message = BAD_DATA[name]
    X, y, qid = change(X, y, qid)
    with pytest.raises(ValueError, match=message):
        make().fit(X, y, qid=qid, sensitive_features=g[: len(X)])


@every_ranker
def test_any_form_of_data_gives_the_same_weights(make):
    X, y, qid, g = task()
    X, y = np.round(X * 8), y.astype(int)  # exact in every form
    expected = make().fit(X, y, qid=qid, sensitive_features=g).coef_
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(60)[::-1])
    shuffled = pd.Series(y, index=np.arange(60) + 7)
    for other in (
        X.tolist(),
        X.astype(int),
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
        frame,
        pl.DataFrame(X),
    ):
        for relevance in (y, shuffled, y.astype(np.float32)):
            np.testing.assert_array_equal(make().fit(other, relevance, qid=qid, sensitive_features=g).coef_, expected)


def test_names_of_features_are_remembered():
    X, y, qid, _ = task()
    frame = pd.DataFrame(X, columns=list("abcd"))
    ranker = SenSTIRRanker(SensitiveSubspaceMetric(sensitive_columns=["b"]), **QUICK).fit(frame, y, qid=qid)
    assert ranker.feature_names_in_.tolist() == list("abcd")
    assert ranker.predict(frame) == pytest.approx(X @ ranker.coef_)
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(frame[list("dcba")])
    by_position = SenSTIRRanker(SensitiveSubspaceMetric(sensitive_columns=[1]), **QUICK).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.coef_, by_position.coef_)
    with pytest.raises(ValueError, match="features"):
        by_position.predict(X[:, :3])


# Parameters


BAD = {
    "score_function": ["neural"], "solver": ["sgd"], "gradient": ["finite"], "learning_rate": [0, -1, "fast"],
    "max_iter": [0, 1.5], "batch_size": [0, 2.5], "n_samples": [1, 0, "exact"], "alpha": [-1], "tol": [-1e-3],
    "early_stopping": ["yes"], "validation_fraction": [0.0, 1.0], "n_iter_no_change": [0], "warm_start": ["no"],
    "random_state": ["seed", -1], "verbose": [-1],
    "metric": [3, "euclidean"], "rho": [-0.1, "strong", None], "adversary": ["attack"], "fair_start": [-0.1, 1.1],
    "fairness_weight": [-1],
}  # fmt: skip


@pytest.mark.parametrize("name, value", [(k, v) for k in BAD for v in BAD[k]])
def test_bad_parameters_are_an_error_that_names_them(name, value):
    X, y, qid, g = task()
    takers = [cls for cls in (PlackettLuceRanker, SenSTIRRanker, FairPGRanker) if name in cls().get_params()]
    for cls in takers:
        with pytest.raises(ValueError, match=name):
            cls(**{**QUICK, name: value}).fit(X, y, qid=qid, sensitive_features=g)


@pytest.mark.parametrize("cls", [PlackettLuceRanker, SenSTIRRanker, FairPGRanker, RandomRanker])
def test_all_rankers_share_parameters_and_defaults(cls):
    shared = PlackettLuceRanker().get_params()
    own = cls().get_params()
    if cls is RandomRanker:
        assert own == {"random_state": None}
    else:
        assert {name: own[name] for name in shared} == shared


@every_ranker
def test_rankers_request_their_metadata(make):
    requests, given = make().get_metadata_routing(), ("qid", "sensitive_features", "query_weight", "X_hypothetical")
    assert requests.fit.requests == requests.partial_fit.requests == dict.fromkeys(given, True)
    assert requests.score.requests["qid"] is True


@every_ranker
def test_fit_does_not_change_what_it_was_given(make):
    X, y, qid, g = task()
    ranker, before = make(), [a.copy() for a in (X, y, qid, g)]
    params = {k: (v.copy() if isinstance(v, list) else v) for k, v in ranker.get_params().items()}
    ranker.fit(X, y, qid=qid, sensitive_features=g)
    for a, b in zip((X, y, qid, g), before):
        np.testing.assert_array_equal(a, b)
    assert ranker.get_params() == params


# Warm starts and refits


def test_a_second_fit_forgets_the_first():
    X, y, qid, g = task()
    ranker = SenSTIRRanker(early_stopping=True, validation_fraction=0.4, **QUICK).fit(
        X, y, qid=qid, sensitive_features=g
    )
    assert hasattr(ranker, "validation_scores_")
    ranker.set_params(early_stopping=False).fit(X, y, qid=qid, sensitive_features=g)
    fresh = SenSTIRRanker(**QUICK).fit(X, y, qid=qid, sensitive_features=g)
    np.testing.assert_array_equal(ranker.coef_, fresh.coef_)
    assert not hasattr(ranker, "validation_scores_")
    fair = FairPGRanker(**QUICK).fit(X, y, qid=qid, sensitive_features=g)
    assert fair.groups_.tolist() == [0, 1]
    with pytest.warns(UserWarning, match="no sensitive_features"):
        fair.fit(X, y, qid=qid)
    assert not hasattr(fair, "groups_")


@every_ranker
def test_a_warm_start_goes_on_from_the_last_weights(make):
    X, y, qid, g = task()
    ranker = make(warm_start=True).fit(X, y, qid=qid, sensitive_features=g)
    kept, before = ranker.coef_, ranker.coef_.copy()
    ranker.set_params(max_iter=1, learning_rate=1e-9).fit(X, y, qid=qid, sensitive_features=g)
    assert ranker.coef_ == pytest.approx(before, abs=2e-9) and not np.array_equal(ranker.coef_, before)
    assert ranker.n_iter_ == 1 and len(ranker.history_["utility"]) == 1
    np.testing.assert_array_equal(kept, before)
    if isinstance(ranker, SenSTIRRanker) and ranker.adversary == "ascent":
        lambda_ = ranker.lambda_
        ranker.set_params(fair_start=1.0).fit(X, y, qid=qid, sensitive_features=g)  # leaves lambda alone
        assert ranker.lambda_ == lambda_ != 2.0
    if type(ranker) is PlackettLuceRanker:
        with pytest.raises(ValueError, match="last fit had 4 features and 4 parameters, and X has 3 features and 3"):
            ranker.fit(X[:, :3], y, qid=qid)


# Interruption


def test_an_interrupted_search_for_the_best_weights_keeps_the_best():
    """Of relevances that have nothing to do with the features: what is learned is noise."""
    X, _, qid, _ = task()
    y = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    settings = {"early_stopping": True, "validation_fraction": 0.3, "learning_rate": 0.3, "n_iter_no_change": 1000}
    score = FusedScore(Fuse(41))
    with pytest.warns(UserWarning, match="interrupted after 40 of 100"):
        ranker = PlackettLuceRanker(score_function=score, **{**QUICK, "max_iter": 100}, **settings).fit(X, y, qid=qid)
    best = int(np.argmax(ranker.validation_scores_)) + 1  # a pass is a step
    assert len(ranker.validation_scores_) == 40 > best
    again = PlackettLuceRanker(**{**QUICK, "max_iter": best}, **settings).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.coef_, again.coef_)


# Progress


def test_verbose_prints_some_lines_and_nothing_else_does(capsys):
    X, y, qid, _ = task()
    SenSTIRRanker(V, **{**QUICK, "max_iter": 130}).fit(X, y, qid=qid)
    assert capsys.readouterr().out == ""
    ranker = SenSTIRRanker(V, verbose=1, **{**QUICK, "max_iter": 130}).fit(X, y, qid=qid)
    lines = capsys.readouterr().out.splitlines()
    steps = [int(re.match(r"\[SenSTIRRanker\] step (\d+)/130 ", line)[1]) for line in lines]
    assert steps == sorted(set(steps)) and steps[-1] == 130 and 20 <= len(steps) <= 50
    last = re.search(r"utility ([\d.]+)  regularizer (\S+)  lambda (\S+)$", lines[-1])
    recent = slice(steps[-2], 130)
    assert float(last[1]) == pytest.approx(ranker.history_["utility"][recent].mean(), abs=1e-4)
    assert float(last[2]) == pytest.approx(ranker.history_["regularizer"][recent].mean(), rel=1e-2)
    assert float(last[3]) == pytest.approx(ranker.lambda_, rel=1e-2)


@needs_callbacks
@every_ranker
@pytest.mark.parametrize("max_iter, early_stopping", [(1, False), (130, False), (130, True)])
def test_callbacks_see_progress_and_usable_rankers(make, max_iter, early_stopping):
    X, y, qid, g = task()
    settings = {"max_iter": max_iter, "early_stopping": early_stopping, "validation_fraction": 0.3}
    silent = make(**settings).fit(X, y, qid=qid, sensitive_features=g)
    recorder = Recorder()
    ranker = make(**settings).set_callbacks(recorder).fit(X, y, qid=qid, sensitive_features=g)
    np.testing.assert_array_equal(ranker.coef_, silent.coef_)
    assert ranker.n_iter_ == silent.n_iter_ and recorder.calls == ["setup", "teardown"]
    assert recorder.begun == len(recorder.ended) and recorder.ended[-1] == "fit" and recorder.ended.count("fit") == 1
    steps = [n for *_, n in recorder.fitted]
    assert 1 <= len(steps) <= 50 and steps == sorted(steps) and (steps[-1] == max_iter or early_stopping)
    for fitted, coef, n in recorder.fitted:
        np.testing.assert_array_equal(fitted.coef_, coef)  # it is not changed later
        assert len(fitted.history_["utility"]) == n
        assert fitted.predict(X) == pytest.approx(X @ coef)
    if not early_stopping:
        np.testing.assert_array_equal(recorder.fitted[-1][1], ranker.coef_)


@needs_callbacks
@every_ranker
def test_a_callback_ends_training_or_interrupts_it(make):
    X, y, qid, g = task()
    stopper, breaker = Recorder(stop_after=3), Recorder(raise_after=2)
    ranker = make(max_iter=100).set_callbacks(stopper).fit(X, y, qid=qid, sensitive_features=g)
    assert ranker.n_iter_ == 6 == len(ranker.history_["utility"]) and len(stopper.fitted) == 3
    with pytest.warns(UserWarning, match="interrupted after 4 of 100"):
        ranker = make(max_iter=100).set_callbacks(breaker).fit(X, y, qid=qid, sensitive_features=g)
    np.testing.assert_array_equal(ranker.coef_, breaker.fitted[-1][1])
    assert stopper.calls == breaker.calls == ["setup", "teardown"] and stopper.ended[-1] == "fit"


# Memory


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_ranker
def test_training_reads_the_callers_array(make, dtype):
    """float32 stays float32, sums are in double precision, and a shuffled qid copies nothing."""
    X, y, qid, g = task()
    X, diary = X.astype(dtype), Diary()
    coef = make(score_function=ScoreWithDiary(diary)).fit(X, y, qid=qid, sensitive_features=g).coef_
    assert diary.X.dtype == dtype and np.shares_memory(diary.X, X)
    double = make().fit(X.astype(float), y, qid=qid, sensitive_features=g).coef_
    assert coef == pytest.approx(double, rel=1e-9, abs=1e-12)


def test_a_read_only_memory_map_is_trained_on(tmp_path):
    X, y, qid, _ = task()
    diary = Diary()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    ranker = SenSTIRRanker(V, score_function=ScoreWithDiary(diary), **QUICK).fit(mapped, y, qid=qid)
    assert np.shares_memory(diary.X, mapped) and not diary.X.flags.writeable
    np.testing.assert_array_equal(ranker.coef_, SenSTIRRanker(V, **QUICK).fit(X, y, qid=qid).coef_)


def test_fit_adds_little_to_the_memory_of_the_data():
    rng = np.random.default_rng(0)
    X = rng.random((40_000, 100), dtype=np.float32)
    y, qid = rng.integers(0, 3, len(X)).astype(float), rng.permutation(np.repeat(np.arange(4000), 10))
    ranker = SenSTIRRanker(np.eye(100)[:1], max_iter=2, fair_start=0.0, random_state=0)
    ranker.fit(X[:100], y[:100], qid=qid[:100])  # compile
    tracemalloc.start()
    ranker.fit(X, y, qid=qid)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.25 * X.nbytes


# Sensitive attributes


@pytest.mark.parametrize("name", ["plain", "senstir", "exact", "box"])
def test_rankers_with_no_use_for_attributes_ignore_them(name):
    """One search can hold every ranker; whatever the attributes are."""
    X, y, qid, g = task()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fits = [
            RANKERS[name]().fit(X, y, qid=qid, sensitive_features=s).coef_ for s in (None, g, X, [None], "nonsense")
        ]
    for coef in fits[1:]:
        np.testing.assert_array_equal(coef, fits[0])


def test_senstir_without_anything_sensitive_warns_once():
    X, y, qid, _ = task()
    with pytest.warns(UserWarning, match="Nothing is treated as sensitive") as seen:
        ranker = SenSTIRRanker(**QUICK).fit(X, y, qid=qid)
    assert len(seen) == 1 and ranker.metric_.components_.tolist() == np.eye(4).tolist()


@pytest.mark.parametrize(
    "groups, message",
    [
        ((np.arange(60) % 3).astype(str), "3 groups"),
        ([None] + ["a"] * 30 + ["b"] * 29, "missing"),
        (["a", "b"], "2 entries for 60"),
        (np.zeros((60, 2)), "sensitive_features"),
    ],
)
def test_what_fair_exposure_cannot_do_is_an_error(groups, message):
    X, y, qid, g = task()
    with pytest.raises(ValueError, match=message):
        FairPGRanker(**QUICK).fit(X, y, qid=qid, sensitive_features=groups)
    with pytest.raises(ValueError, match='solver="adam" only'):
        FairPGRanker(solver="lbfgs", **QUICK).fit(X, y, qid=qid, sensitive_features=g)


# Fair-PG-Rank's objective


def exposure_problem(seed=0, sizes=(4, 5, 3)):
    """Queries whose disparities are well away from the kink at zero; with seed 15 two open, one closed."""
    rng = np.random.default_rng(seed)
    offsets = np.r_[0, np.cumsum(sizes)]
    n = offsets[-1]
    y = rng.integers(1, 4, n).astype(float)
    group = np.r_[0, 1, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1]
    return rng.normal(size=n), y, group, offsets


def disparity_by_definition(h, y, group):
    """max(0, v_A / M_A - v_B / M_B), M_A >= M_B, by the sum over all rankings; ties of merit to the larger label."""
    exposure = reference.rank_probabilities(h) @ (1 / np.log2(np.arange(len(h)) + 2))
    v = [exposure[group == g].mean() for g in (0, 1)]
    M = [y[group == g].mean() for g in (0, 1)]
    a, b = (1, 0) if M[1] >= M[0] else (0, 1)
    return max(0.0, v[a] / M[a] - v[b] / M[b])


def fair_gradient(kind, n_samples, h, y, group, offsets, weight, key=0):
    """Gradient in the scores of utility less weight times disparity, query by query; utilities; the mean disparity."""
    tables, numbers = NDCG().tables(y, offsets), np.arange(len(offsets) - 1)
    batch = Batch(
        np.empty((len(h), 0)), np.arange(len(h)), offsets, numbers, tables.gain, np.empty(0), np.ones(len(numbers)),
        np.uint64(key),
    )  # fmt: skip
    coefficients, gradient = disparity_coefficients(y, group, offsets)[0], make_gradient(kind, n_samples)
    in_scores, utility = gradient.estimate(batch, h, tables.discount)
    hinge = ExposureHinge(coefficients, offsets, discounts(len(tables.discount)), strength=weight)
    penalty = hinge.add_score_gradient(batch, h, gradient, in_scores)
    return in_scores, utility, penalty


@pytest.mark.parametrize("weight", [0.5, 3.0])
def test_the_exact_gradient_of_fair_exposure_is_the_slope_of_its_objective(weight):
    h, y, group, offsets = exposure_problem(15)
    gain, discount, *_ = NDCG().tables(y, offsets)
    parts = [slice(lo, hi) for lo, hi in zip(offsets[:-1], offsets[1:])]
    disparities = np.array([disparity_by_definition(h[p], y[p], group[p]) for p in parts])
    assert (disparities > 0.05).sum() == 2 and (disparities == 0).sum() == 1

    def objective(h):
        return sum(
            reference.expected_utility(h[p], gain[p], discount) - weight * disparity_by_definition(h[p], y[p], group[p])
            for p in parts
        )

    gradient, utility, penalty = fair_gradient("exact", 0, h, y, group, offsets, weight)
    assert gradient == pytest.approx(reference.finite_difference(objective, h), abs=1e-8)
    assert penalty == pytest.approx(disparities.mean(), rel=1e-12)
    assert utility == pytest.approx([reference.expected_utility(h[p], gain[p], discount) for p in parts], rel=1e-12)


@pytest.mark.parametrize("kind, factor", [("reinforce", 1 - 1 / 40), ("plrank", 1.0)])
def test_sampled_gradients_of_fair_exposure_estimate_the_exact_one(kind, factor):
    """Away from the kink, where 40 samples do not mistake an open hinge for a closed one."""
    h, y, group, offsets = exposure_problem()
    y[group == 1], y[group == 0] = 4.0, 1.0  # merits far apart: every disparity is far from zero
    exact, *_ = fair_gradient("exact", 0, h, y, group, offsets, 2.0)
    keys = draw_keys(np.random.default_rng(0), 3000)
    draws = np.array([fair_gradient(kind, 40, h, y, group, offsets, 2.0, key)[0] for key in keys])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - factor * exact) < 4.5 * error).all()


def test_queries_without_a_defined_disparity_have_none():
    """A group absent, or without merit: the gradient is that of the utility alone."""
    h, y, group, offsets = exposure_problem()
    group[:4], y[4:9] = 1, np.where(group[4:9] == 0, 0.0, 2.0)
    fair = fair_gradient("exact", 0, h, y, group, offsets, 5.0)
    plain = fair_gradient("exact", 0, h, y, group, offsets, 0.0)
    np.testing.assert_array_equal(fair[0][:9], plain[0][:9])


def test_training_with_the_weight_lowers_the_disparity():
    X, y, qid, _ = task(n_queries=40, size=8, seed=2)
    g = (X[:, 1] > 0).astype(int)
    y = y + 1 + 0 * g
    settings = {"gradient": "exact", "max_iter": 300, "learning_rate": 0.05, "random_state": 0}
    found = []
    for weight in (0, 5):
        scores = FairPGRanker(fairness_weight=weight, **settings).fit(X, y, qid=qid, sensitive_features=g).predict(X)
        found.append(group_exposure_disparity(y, scores, qid=qid, sensitive_features=g, n_samples="exact"))
    assert found[1] < 0.7 * found[0]
