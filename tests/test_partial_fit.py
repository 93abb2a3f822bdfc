"""Training on a stream of whole queries: equal to a plain loop over the same batches, whatever happens between two calls."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from instruments import Diary, Fuse, FusedScore, ScoreWithDiary, StartAt
from sklearn.base import BaseEstimator, clone
from small_tasks import MIXED, Task, make_task

from skfairrank import FairPGRanker, PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.adversaries import Ascent, ExactBox, ExactBudget, GivenHypotheticals
from skfairrank.scores import MLPScore

TASK = make_task(MIXED, seed=1)
# Merits so close that exposure by merit may be unequal; every query has something relevant, and the large ones something else.
TASK.y = TASK.y.clip(1, 2)
TASK.y[[np.flatnonzero(TASK.qid == q)[0] for q in np.unique(TASK.qid) if np.sum(TASK.qid == q) == 4]] = 0
GROUP = (np.random.default_rng(2).random(len(TASK.y)) < 0.5).astype(int)
RAW = np.random.default_rng(5).normal(size=(2, 4))


def assert_same(a, b):
    """Everything that was learned, to the bit: arrays, numbers, and what objects are made of."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert sorted(a) == sorted(b)
        for name in a:
            assert_same(a[name], b[name])
    elif isinstance(a, (list, tuple)):
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif isinstance(a, BaseEstimator):
        assert_same(learned(a), learned(b))
    elif isinstance(a, np.random.Generator):
        assert_same(a.bit_generator.state, b.bit_generator.state)
    elif not callable(a):
        assert a == b


def learned(estimator):
    return {name: value for name, value in vars(estimator).items() if name != "_skl_callbacks"}


def moved(X):
    return X + [0.5, 0.0, -0.5, 0.0]


RANKERS = {
    "plain": PlackettLuceRanker(alpha=0.01),
    "plrank": PlackettLuceRanker(gradient="plrank"),
    "network": PlackettLuceRanker(score_function=MLPScore((3,))),
    "average precision": PlackettLuceRanker(utility="average_precision"),
    "fair-pg": FairPGRanker(fairness_weight=2.0),
    "ascent": SenSTIRRanker(rho=0.3, adversary=Ascent(epsilon=0.3), metric=SensitiveSubspaceMetric()),
    "own starts": SenSTIRRanker(SensitiveSubspaceMetric(), rho=30.0, adversary=Ascent(1e-4, subspace_n_starts=None)),
    "exact": SenSTIRRanker(RAW, rho=0.3, adversary=ExactBudget(subspace_radius=0.2)),
    "exact_box": SenSTIRRanker(RAW, rho=0.3, adversary=ExactBox(subspace_radius=0.2)),
    "given": SenSTIRRanker(RAW, rho=0.3, adversary=GivenHypotheticals([moved, moved])),
}
QUICK = {"max_iter": 60, "batch_size": 3, "random_state": 0, "learning_rate": 0.03}
IDS = np.unique(TASK.qid)
PARTS = [IDS[:9], IDS[9:11], IDS[11:12], IDS[12:]]
STREAMED = list(RANKERS)


def made(name, **params):
    return clone(RANKERS[name]).set_params(**{**QUICK, **params})


def part(ids):
    """The rows of some queries, as they are interleaved."""
    rows = np.flatnonzero(np.isin(TASK.qid, ids))
    return rows, {"qid": TASK.qid[rows], "sensitive_features": GROUP[rows]}


def take(ranker, ids, **given):
    rows, of_rows = part(ids)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "FairPGRanker got one group only")
        warnings.filterwarnings("ignore", "Each of the .* rows is a query of its own")
        return ranker.partial_fit(TASK.X[rows], TASK.y[rows], **{**of_rows, **given})


def streamed(ranker, parts=PARTS, between=lambda ranker: ranker):
    for ids in parts:
        ranker = take(between(ranker), ids)
    return ranker


# Against a plain loop


def plain_loop(chunks, w, seed, *, batch_size, learning_rate, alpha, n_plain, rho):
    """Exact gradients, Adam, the regulariser of the box from its definition; order from the stream of `fit`."""
    order_rng, adam, utilities = np.random.default_rng(seed).spawn(5)[1], reference.Adam(len(w), learning_rate), []
    for X, y, qid in chunks:
        ids, whole = np.unique(qid), Task(X, y, qid)
        shuffled = ids[order_rng.permutation(len(ids))]
        for first in range(0, len(ids), batch_size):
            rows = np.isin(qid, shuffled[first : first + batch_size])
            utility, slope = Task(X[rows], y[rows], qid[rows]).utility(w)
            if len(utilities) == n_plain:
                adam = reference.Adam(len(w), learning_rate)
            if len(utilities) >= n_plain:
                slope = slope - rho * reference.finite_difference(lambda w, of=whole: of.box(w, RAW, 0.2, 0.02), w)
            utilities.append(utility)
            w = w + adam.move(slope - alpha * w)
    return w, np.array(utilities)


@pytest.mark.parametrize("rho", [0.0, 0.1])
@pytest.mark.parametrize("n_before", [0, 2])
def test_it_is_a_plain_loop_over_the_calls(rho, n_before):
    """Batches of 3, 3, 3 from 9 queries, of 2, of 1, and of 3, 3, 3, 3 from the rest; Adam's moments go on from call to call, and
    from two steps of `fit`, of all queries, which may come first."""
    start = np.array([0.3, -0.2, 0.1, 0.4])
    settings = {"batch_size": 3, "learning_rate": 0.02, "alpha": 0.05}
    ranker = SenSTIRRanker(
        RAW, rho=rho, adversary=ExactBox(subspace_radius=0.2), gradient="exact", score_function=StartAt(start),
        random_state=4, max_iter=50, fair_start=0.1, **settings,
    )  # fmt: skip
    chunks, n_plain = [], 5
    if n_before:
        settings["batch_size"], n_plain = 24, 1
        ranker.set_params(batch_size=24, max_iter=2, fair_start=0.5).fit(TASK.X, TASK.y, qid=TASK.qid)
        chunks = [(TASK.X, TASK.y, TASK.qid)] * 2
    for ids in PARTS:
        take(ranker, ids)
        rows, _ = part(ids)
        chunks.append((TASK.X[rows], TASK.y[rows], TASK.qid[rows]))
    w, utilities = plain_loop(chunks, start, 4, n_plain=n_plain if rho else -1, rho=rho, **settings)
    assert ranker.coef_ == pytest.approx(w, abs=1e-6)
    assert ranker.history_["utility"] == pytest.approx(utilities, abs=1e-6)
    assert ranker.n_iter_ == len(utilities) == (6 if n_before else 9) and ranker.n_queries_ == len(IDS) * (
        1 + n_before // 2
    )
    assert ((ranker.history_["regularizer"] > 0) == ((np.arange(len(utilities)) >= n_plain) & (rho > 0))).all()


def test_each_query_comes_once_a_call_in_random_order():
    diary = Diary()
    ranker = PlackettLuceRanker(score_function=ScoreWithDiary(diary), **QUICK)
    seen = []
    for ids in (PARTS[0], PARTS[3], PARTS[0]):
        diary.trained.clear()
        take(ranker, ids)
        rows, _ = part(ids)
        queries = [list(dict.fromkeys(TASK.qid[rows][batch].tolist())) for batch in diary.trained]
        assert [len(batch) for batch in queries] == [3] * (len(ids) // 3) + [len(ids) % 3] * (len(ids) % 3 > 0)
        assert sorted(np.concatenate(diary.trained).tolist()) == list(range(len(rows)))
        seen.append([q for batch in queries for q in batch])
        assert sorted(seen[-1]) == ids.tolist() != seen[-1]
    assert seen[0] != seen[2]


@pytest.mark.parametrize("n_passes", [1, 3])
@pytest.mark.parametrize("name", STREAMED)
def test_passes_in_calls_are_passes_of_fit(name, n_passes):
    """Of as many queries as batches hold: the same order, noise, starts of attacks and steps. Six steps are a pass."""
    assert len(IDS) == 24
    params = {"batch_size": 4, "max_iter": 6 * n_passes}
    if isinstance(RANKERS[name], SenSTIRRanker):
        params["fair_start"] = 2 / params["max_iter"]
    ranker = made(name, **params)
    for _ in range(n_passes):
        take(ranker, IDS)
    fitted = made(name, **params).fit(TASK.X, TASK.y, qid=TASK.qid, sensitive_features=GROUP)
    assert ranker.n_queries_ == 24 * n_passes
    found, expected = ({**learned(of), "_last_query": None, "n_queries_": 24} for of in (ranker, fitted))
    assert_same(found, expected)


# From call to call


@pytest.mark.parametrize("name", STREAMED)
def test_a_saved_ranker_goes_on_to_the_same_bits(name):
    whole = streamed(made(name))
    assert not np.array_equal(whole.parameters_, take(made(name), PARTS[0]).parameters_)
    found = streamed(made(name), between=lambda ranker: pickle.loads(pickle.dumps(ranker)))
    assert_same(learned(found), learned(whole))


@pytest.mark.parametrize("random_state", [0, np.random.default_rng(3), None], ids=["number", "generator", "none"])
def test_what_comes_between_two_calls_changes_nothing(random_state):
    """Copies of all kinds, predictions, NumPy's seed, settings without effect, and rows in another interleaving."""
    ranker = take(made("ascent", random_state=random_state), PARTS[0])
    others, order = (
        [copy.deepcopy(ranker), copy.copy(ranker), pickle.loads(pickle.dumps(ranker))],
        np.argsort(TASK.qid, kind="stable"),
    )
    take(ranker, PARTS[1])
    for other in others:
        np.random.seed(5)
        other.set_params(verbose=0, tol=0.1).predict(TASK.X)
        rows = order[np.isin(TASK.qid[order], PARTS[1])]
        other.partial_fit(TASK.X[rows], TASK.y[rows], qid=TASK.qid[rows], sensitive_features=GROUP[rows])
        assert_same([other.coef_, other.history_, other.lambda_], [ranker.coef_, ranker.history_, ranker.lambda_])


def test_clone_forgets_and_fit_begins_anew():
    ranker = streamed(made("ascent"))
    assert_same(learned(streamed(clone(ranker))), learned(streamed(made("ascent"))))
    whole = made("ascent").fit(TASK.X, TASK.y, qid=TASK.qid, sensitive_features=GROUP)
    assert_same(learned(ranker.fit(TASK.X, TASK.y, qid=TASK.qid, sensitive_features=GROUP)), learned(whole))
    assert whole.n_queries_ == 24


def test_after_a_fit_that_stopped_early_it_goes_on_from_the_weights():
    """Adam begins anew: its first step has the full length, wherever the slope is not zero."""
    ranker = PlackettLuceRanker(early_stopping=True, n_iter_no_change=2, **QUICK, gradient="exact")
    ranker.fit(TASK.X, TASK.y, qid=TASK.qid)
    coef = ranker.coef_.copy()
    take(ranker.set_params(early_stopping=False, batch_size=99), PARTS[0])
    assert np.abs(ranker.coef_ - coef) == pytest.approx(0.03, rel=1e-4)
    assert not hasattr(ranker, "validation_scores_")


def test_the_fair_metric_is_that_of_the_first_call():
    ranker = take(made("ascent"), PARTS[0])
    rows, of_rows = part(PARTS[0])
    expected = SensitiveSubspaceMetric().fit(TASK.X[rows], sensitive_features=of_rows["sensitive_features"])
    np.testing.assert_array_equal(ranker.metric_.directions_, expected.directions_)
    kept = ranker.metric_
    assert take(ranker, PARTS[3], sensitive_features=None).metric_ is kept


def test_settings_of_steps_may_change_and_those_of_what_is_kept_may_not():
    why = "when training began, so that partial_fit cannot go on"
    ranker = take(made("ascent"), PARTS[0])
    take(ranker.set_params(learning_rate=1e-9, rho=0.1, alpha=0.1, batch_size=2, n_samples=4), PARTS[1])
    before = ranker.coef_.copy()
    assert np.abs(take(ranker, PARTS[3]).coef_ - before).max() < 1e-7
    for changed in (
        {"metric": RAW}, {"adversary": Ascent()}, {"score_function": MLPScore((2,))}, {"rho": 0.0},
        {"metric": SensitiveSubspaceMetric(direction="difference")},
    ):  # fmt: skip
        other = copy.deepcopy(ranker).set_params(**changed)
        with pytest.raises(ValueError, match=f"(?s){next(iter(changed))} .*is .*, and was .* {why}"):
            take(other, PARTS[1])
        assert_same(other.coef_, ranker.coef_)
    take(ranker.set_params(metric=SensitiveSubspaceMetric(), adversary=Ascent(0.3)), PARTS[1])  # equal ones


def test_given_hypotheticals_of_each_call():
    """Rows of X_hypothetical beside those of functions; the loop's order does not matter where there is one batch."""
    ranker = SenSTIRRanker(adversary=GivenHypotheticals([moved]), rho=0.5, fair_start=0.0, **QUICK)
    for ids in (PARTS[0], PARTS[3]):
        rows, of_rows = part(ids)
        before = ranker.coef_.copy() if hasattr(ranker, "coef_") else None
        ranker.set_params(batch_size=99)
        take(ranker, ids, X_hypothetical=TASK.X[rows] * 3.0)
        if before is not None:
            gaps = np.stack([moved(TASK.X[rows]) - TASK.X[rows], 2.0 * TASK.X[rows]]) @ before
            per_query = pd.Series(0.5 * np.max(gaps**2, axis=0)).groupby(of_rows["qid"]).sum()
            assert ranker.history_["regularizer"][-1] == pytest.approx(per_query.mean(), rel=1e-9)


def test_groups_of_calls_belong_together():
    """FairPGRanker sees one group at first, and compares two in the end, whichever came first."""
    rows_b = np.flatnonzero((GROUP == 1) & np.isin(TASK.qid, IDS[:12]))
    rows = np.flatnonzero(np.isin(TASK.qid, IDS[12:]))
    labels = np.where(GROUP == 1, "b", "a")
    ranker = FairPGRanker(**QUICK)
    with pytest.warns(UserWarning, match="one group only"):
        ranker.partial_fit(TASK.X[rows_b], TASK.y[rows_b], qid=TASK.qid[rows_b], sensitive_features=labels[rows_b])
    ranker.partial_fit(TASK.X[rows], TASK.y[rows], qid=TASK.qid[rows], sensitive_features=labels[rows])
    assert ranker.groups_.tolist() == ["a", "b"]
    assert (ranker.history_["regularizer"] > 0).any()
    with pytest.raises(
        ValueError, match=r"the groups \['c'\], and earlier calls \['a', 'b'\]: FairPGRanker compares 2"
    ):
        ranker.partial_fit(TASK.X[rows], TASK.y[rows], qid=TASK.qid[rows], sensitive_features=["c"] * len(rows))
    with pytest.raises(ValueError, match="give labels of one kind"):
        ranker.partial_fit(TASK.X[rows], TASK.y[rows], qid=TASK.qid[rows], sensitive_features=GROUP[rows])
    with pytest.warns(UserWarning, match="trains without its fairness term"):
        ranker.partial_fit(TASK.X[rows], TASK.y[rows], qid=TASK.qid[rows])


def test_weights_are_taken_as_they_are():
    """Twice the weight is twice the utility in the history, and a query of weight zero has no part in it."""
    one, two = (
        take(made("plain"), PARTS[0], query_weight=dict.fromkeys(PARTS[0].tolist(), weight)) for weight in (1.0, 2.0)
    )
    without = take(made("plain"), PARTS[0])
    assert_same(one.coef_, without.coef_)
    assert two.history_["utility"][0] == 2.0 * one.history_["utility"][0]


# What is refused; the ranker then stays as it is


def refused(ranker, ids, match, X=None, **given):
    before, rows = learned(copy.deepcopy(ranker)), part(ids)[0]
    with pytest.raises(ValueError, match=match):
        ranker.partial_fit(TASK.X[rows] if X is None else X, TASK.y[rows], **{**part(ids)[1], **given})
    assert_same(learned(ranker), before)


def test_a_query_in_two_calls_in_a_row_is_refused():
    order = np.argsort(TASK.qid, kind="stable")
    X, y, qid = TASK.X[order], TASK.y[order], TASK.qid[order]
    cut = int(np.flatnonzero(np.diff(qid[len(qid) // 2 :]) == 0)[0]) + len(qid) // 2 + 1  # within a query
    for ids in (qid, pd.Categorical(qid)):
        ranker = PlackettLuceRanker(**QUICK).partial_fit(X[:cut], y[:cut], qid=ids[:cut])
        ranker = pickle.loads(pickle.dumps(ranker))
        with pytest.raises(
            ValueError, match="The rows begin with query .*: a query that is cut in two loses the pairs"
        ):
            ranker.partial_fit(X[cut:], y[cut:], qid=ids[cut:])
        ranker.partial_fit(X[cut + 5 :], y[cut + 5 :], qid=ids[cut + 5 :])
        ranker.partial_fit(X, y, qid=ids)  # once more from the beginning
    # Shuffled rows may begin with the last query: then nothing says that it was cut, since its rows are everywhere.
    shuffled = np.r_[len(X) - 1, np.arange(len(X) - 1)]
    ranker.partial_fit(X[shuffled], y[shuffled], qid=qid[shuffled].tolist())


@pytest.mark.parametrize("params, match", [
    ({"solver": "lbfgs"}, 'solver="lbfgs"'), ({"early_stopping": True}, "early_stopping"),
    ({"learning_rate": -1.0}, "learning_rate"),
])  # fmt: skip
def test_settings_that_need_the_whole_training_set_are_refused(params, match):
    before = made("ascent", **params)
    with pytest.raises(ValueError, match=match):
        take(before, PARTS[0])
    assert not hasattr(before, "coef_") and not hasattr(before, "n_features_in_")
    refused(take(made("ascent"), PARTS[0]).set_params(**params), PARTS[1], match)


def test_bad_rows_are_refused_in_the_middle():
    ranker = take(made("ascent"), PARTS[0])
    X = TASK.X[part(PARTS[1])[0]].copy()
    X[0, 0] = np.nan
    refused(ranker, PARTS[1], "NaN", X=X)
    refused(ranker, PARTS[1], "qid has 2 entries", qid=[1, 1])


@pytest.mark.parametrize("n", [1, 4, 9])
def test_ctrl_c_leaves_the_ranker_as_it_was(n):
    fuse = Fuse()
    ranker = take(made("plain", score_function=FusedScore(fuse)), PARTS[0])
    before, fuse.n, fuse.n_calls = learned(copy.deepcopy(ranker)), n, 0
    with pytest.raises(KeyboardInterrupt):
        take(take(take(ranker, PARTS[3]), PARTS[0]), PARTS[3])
    if n < 5:
        assert_same(learned(ranker), before)
    assert ranker.n_iter_ == 3 + (4 if n > 4 else 0) + (3 if n > 7 else 0)
    assert {len(values) for values in ranker.history_.values()} == {ranker.n_iter_}


# In use


def test_a_stream_is_learned():
    """As well as by `fit`: the mean NDCG of new queries, after two passes over 300 queries in parts."""
    task, new = make_task((8,) * 300, seed=3), make_task((8,) * 100, seed=4)
    ranker = PlackettLuceRanker(learning_rate=0.05, random_state=0)
    for _ in range(2):
        for ids in np.array_split(np.arange(300), 12):
            rows = np.flatnonzero(np.isin(task.qid, ids))
            ranker.partial_fit(task.X[rows], task.y[rows], qid=task.qid[rows])
    fitted = PlackettLuceRanker(learning_rate=0.05, random_state=0, max_iter=60).fit(task.X, task.y, qid=task.qid)
    scores = [model.score(new.X, new.y, qid=new.qid) for model in (ranker, fitted)]
    assert scores[0] == pytest.approx(scores[1], abs=0.01) and scores[0] > 0.8
