"""Splitters, learning curve and picker: queries stay whole, and one `qid` keyword goes all the way."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import QueryRanker
from skfairrank.metrics import (
    ndcg_score,
    ndcg_scorer,
    neg_group_exposure_difference_scorer,
    neg_group_exposure_disparity_scorer,
)
from skfairrank.model_selection import (
    LeaveOneQueryOut,
    QueryKFold,
    QueryShuffleSplit,
    RepeatedQueryKFold,
    best_under,
    query_learning_curve,
    train_test_query_split,
)


def task(n_queries=12, size=5, seed=0):
    """X, y, qid, groups of two kinds; rows in random order, string ids."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * size, 3))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X)) + 1), 0, 3)
    qid = rng.permutation(np.repeat([f"query {q:03d}" for q in range(n_queries)], size))
    y[np.unique(qid, return_index=True)[1]] = 3  # something relevant in every query
    return X, y, qid, rng.integers(0, 2, len(X))


def ranker(**parameters):
    return QueryRanker(Ridge(**parameters))


SPLITTERS = [
    QueryKFold(2),
    QueryKFold(3, shuffle=True, random_state=0),
    RepeatedQueryKFold(n_splits=2, n_repeats=2, random_state=0),
    LeaveOneQueryOut(),
    QueryShuffleSplit(3, random_state=0),
    QueryShuffleSplit(2, test_size=0.4, train_size=0.3, random_state=0),
]
every_splitter = pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)

# At least four queries, of any sizes, in any order of the rows.
qids = st.lists(st.integers(0, 9), min_size=4, max_size=60).filter(lambda qid: len(set(qid)) >= 4)


def folds(splitter, qid):
    return list(splitter.split(np.zeros((len(qid), 1)), qid=qid))


def held_out(splitter, qid):
    """The ids in each test set."""
    return [set(np.asarray(qid)[test]) for _, test in folds(splitter, qid)]


# ------------------------------------------------------------------------------------------------------------ splitters


@every_splitter
@settings(max_examples=10, deadline=None)
@given(qid=qids)
def test_queries_are_whole_on_one_side_of_every_split(splitter, qid):
    splits = folds(splitter, qid)
    assert len(splits) == splitter.get_n_splits(qid=qid)
    for train, test in splits:
        assert len(train) and len(test)
        assert not set(train) & set(test)
        for rows in (train, test):
            assert (np.diff(rows) > 0).all() and rows.dtype.kind == "i"
            chosen = set(np.take(qid, rows))
            assert len(rows) == sum(q in chosen for q in qid)
        if getattr(splitter, "train_size", None) is None:
            assert len(train) + len(test) == len(qid)


@every_splitter
@settings(max_examples=10, deadline=None)
@given(qid=qids, seed=st.integers(0, 99))
def test_splits_do_not_depend_on_how_rows_are_interleaved(splitter, qid, seed):
    shuffled = np.random.default_rng(seed).permutation(qid)
    assert held_out(splitter, qid) == held_out(splitter, shuffled)


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (QueryKFold(3), KFold(3)),
        (QueryKFold(3, shuffle=True, random_state=5), KFold(3, shuffle=True, random_state=5)),
        (
            RepeatedQueryKFold(n_splits=2, n_repeats=3, random_state=5),
            RepeatedKFold(n_splits=2, n_repeats=3, random_state=5),
        ),
        (QueryShuffleSplit(4, random_state=5), ShuffleSplit(4, random_state=5)),
        (QueryShuffleSplit(4, test_size=2, random_state=5), ShuffleSplit(4, test_size=2, random_state=5)),
    ],
    ids=repr,
)
def test_splits_are_scikit_learns_over_the_sorted_ids(ours, theirs):
    qid = np.random.default_rng(0).permutation(np.repeat(np.arange(10), np.arange(1, 11)))
    assert held_out(ours, qid) == [set(test.tolist()) for _, test in theirs.split(np.arange(10))]


def test_a_share_of_the_queries_is_held_out_not_of_the_rows():
    """Case 7."""
    qid = [0] * 5 + [1] * 3 + [2, 4]
    *_, qid_train, qid_test = train_test_query_split(qid=qid, test_size=0.2, random_state=0)
    assert len(set(qid_test)) == 1 and sorted(qid_train + qid_test) == qid
    for ids in held_out(QueryShuffleSplit(20, test_size=0.2, random_state=0), qid):
        assert len(ids) == 1
    assert {len(ids) for ids in held_out(QueryShuffleSplit(20, test_size=3, random_state=0), qid)} == {3}


@pytest.mark.parametrize(
    "qid, message",
    [
        (None, r"qid.*enable_metadata_routing=True"),
        ([3, 2], r"qid has 2 entries for 5 rows.*not group sizes"),
        (["a", None, "b", "c", "d"], "qid has 1 missing"),
        ([7] * 5, "qid has 1 queries, which cannot be split"),
        ([7, 7, 7, 8, 8], "qid has 2 queries, which cannot be split so .folds and sizes count queries"),
    ],
)
def test_what_is_no_qid_and_too_few_queries_are_errors(qid, message):
    X = np.zeros((5, 1))
    for splitter in (QueryKFold(3), RepeatedQueryKFold(n_splits=3), QueryShuffleSplit(test_size=2)):
        with pytest.raises(ValueError, match=message):
            list(splitter.split(X, qid=qid))
    with pytest.raises(ValueError, match=message.replace("This splitter", "")):
        train_test_query_split(X, qid=qid, test_size=2)
    with pytest.raises(ValueError):
        QueryKFold(1)


@every_splitter
def test_groups_is_another_name_for_qid(splitter):
    qid = np.arange(20) // 4
    X = np.zeros((20, 1))
    for expected, got in zip(folds(splitter, qid), splitter.split(X, groups=qid), strict=True):
        np.testing.assert_array_equal(expected[1], got[1])
    with pytest.raises(ValueError, match="two names"):
        list(splitter.split(X, qid=qid, groups=qid))


def test_a_generator_advances():
    qid = np.arange(30)
    for splitter in (partial(QueryKFold, 3, shuffle=True), partial(QueryShuffleSplit, 2)):
        advancing = splitter(random_state=np.random.default_rng(7))
        first = held_out(advancing, qid)
        assert first == held_out(splitter(random_state=np.random.default_rng(7)), qid) != held_out(advancing, qid)


# ----------------------------------------------------------------------------------------------- train_test_query_split


@settings(max_examples=10, deadline=None)
@given(qid=qids, test_size=st.sampled_from([None, 0.2, 0.5, 1, 2]), shuffle=st.booleans())
def test_train_test_query_split_is_scikit_learns_over_the_sorted_ids(qid, test_size, shuffle):
    rows = np.arange(len(qid))
    seed = 3 if shuffle else None
    train, test, qid_train, qid_test = train_test_query_split(
        rows, qid=qid, test_size=test_size, random_state=seed, shuffle=shuffle
    )
    expected = train_test_split(sorted(set(qid)), test_size=test_size, random_state=seed, shuffle=shuffle)
    assert [set(qid_train), set(qid_test)] == [set(part) for part in expected]
    assert np.take(qid, train).tolist() == qid_train and np.take(qid, test).tolist() == qid_test
    assert sorted([*train, *test]) == rows.tolist()
    assert (np.diff(train) > 0).all() and (np.diff(test) > 0).all()


# ------------------------------------------------------------------------------------------- searches, with routing on


@pytest.mark.usefixtures("routing")
def test_one_keyword_reaches_splitter_ranker_and_scorers():
    X, y, qid, g = task()
    series = pd.Series(qid, index=np.arange(len(qid))[::-1])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), ranker()),
        {"queryranker__estimator__alpha": [0.1, 100.0]},
        cv=QueryKFold(3),
        scoring={"ndcg": ndcg_scorer, "gap": neg_group_exposure_difference_scorer},
        refit="ndcg",
        error_score="raise",
    ).fit(X, y, qid=series, sensitive_features=g)
    # By hand, from the metric itself.
    expected = []
    for train, test in QueryKFold(3).split(X, qid=qid):
        model = make_pipeline(StandardScaler(), Ridge(alpha=0.1)).fit(X[train], y[train])
        expected.append(ndcg_score(y[test], model.predict(X[test]), qid=qid[test]))
    assert search.cv_results_["mean_test_ndcg"][0] == pytest.approx(np.mean(expected), abs=1e-12)
    assert np.isfinite(search.cv_results_["mean_test_gap"]).all()
    assert search.predict(X).shape == y.shape
    assert search.score(X, y, qid=series) == pytest.approx(ndcg_score(y, search.predict(X), qid=qid))


# ------------------------------------------------------------------------------------------ searches, with routing off


def test_a_search_without_routing_fails_loudly_and_names_the_remedy():
    X, y, qid, _ = task()
    search = GridSearchCV(ranker(), {"estimator__alpha": [1, 2]}, cv=QueryKFold(2), error_score="raise")
    with pytest.raises(ValueError, match="enable_metadata_routing"):  # the splitter: no qid came
        search.fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"score got no qid.*enable_metadata_routing"):  # the score
        search.fit(X, y, qid=qid, groups=qid)
    with pytest.raises(ValueError, match="enable_metadata_routing"):  # a scorer
        search.set_params(scoring=ndcg_scorer).fit(X, y, qid=qid, groups=qid)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        cross_validate(ranker(), X, y, cv=QueryKFold(2), groups=qid, params={"qid": qid}, error_score="raise")


# ------------------------------------------------------------------------------------------------------- learning curve


def test_learning_curve_scores_are_those_of_the_same_fits_by_hand():
    X, y, qid, _ = task()
    curve = query_learning_curve(ranker(), X, y, qid=qid, cv=3, train_sizes=[0.5, 1.0], shuffle=False)
    assert curve.train_sizes.tolist() == [4, 8]
    for k, (train, test) in enumerate(QueryKFold(3).split(X, qid=qid)):
        for j, size in enumerate(curve.train_sizes):
            rows = train[np.isin(qid[train], np.unique(qid[train])[:size])]
            assert len(rows) == 5 * size
            model = Ridge().fit(X[rows], y[rows])
            for part, scores in ((rows, curve.train_scores), (test, curve.test_scores)):
                expected = ndcg_score(y[part], model.predict(X[part]), qid=qid[part])
                assert scores[j, k] == pytest.approx(expected, abs=1e-9)
    assert curve.fit_times.shape == curve.score_times.shape == (2, 3)


def test_learning_curve_of_a_pipeline_and_of_a_search_with_several_scorers():
    """With routing off outside: the curve routes by itself."""
    X, y, qid, g = task()
    search = GridSearchCV(ranker(), {"estimator__alpha": [0.1, 10]}, cv=QueryKFold(2))
    for estimator in (make_pipeline(StandardScaler(), ranker()), search):
        curve = query_learning_curve(
            estimator,
            X,
            y,
            qid=list(qid),
            sensitive_features=g,
            scoring={"ndcg": ndcg_scorer, "gap": neg_group_exposure_disparity_scorer},
            cv=QueryShuffleSplit(2, test_size=0.25, random_state=0),
            train_sizes=[4, 9],
            random_state=0,
            error_score="raise",
        )
        assert set(curve.test_scores) == set(curve.train_scores) == {"ndcg", "gap"}
        for scores in curve.test_scores.values():
            assert scores.shape == (2, 2) and np.isfinite(scores).all()
    assert not sklearn.get_config()["enable_metadata_routing"]


def test_learning_curve_takes_any_splitter_that_keeps_queries_whole():
    X, y, qid, _ = task()
    expected = query_learning_curve(ranker(), X, y, qid=qid, cv=GroupKFold(3), shuffle=False)
    splits = list(GroupKFold(3).split(X, groups=qid))
    masks = [[np.isin(np.arange(len(X)), rows) for rows in split] for split in splits]
    for cv in (splits, masks):
        got = query_learning_curve(ranker(), X, y, qid=qid, cv=cv, shuffle=False)
        np.testing.assert_array_equal(expected.test_scores, got.test_scores)
    with pytest.raises(ValueError, match="cv cuts queries"):
        query_learning_curve(ranker(), X, y, qid=qid, cv=list(KFold(3).split(X)))


@pytest.mark.parametrize(
    "sizes, message",
    [([0.0, 1.0], r"\(0, 1\]"), ([1.5], r"\(0, 1\]"), ([0, 3], "from 1 to the 8"), ([9], "from 1 to the 8")],
)
def test_learning_curve_says_which_sizes_it_takes(sizes, message):
    X, y, qid, _ = task()
    with pytest.raises(ValueError, match=message):
        query_learning_curve(ranker(), X, y, qid=qid, cv=3, train_sizes=sizes)


# ----------------------------------------------------------------------------------------------------------- best_under

scores = st.one_of(st.integers(0, 8).map(lambda k: k / 8), st.just(np.nan))


@settings(max_examples=100, deadline=None)
@given(
    candidates=st.lists(st.tuples(scores, scores), min_size=1, max_size=8),
    max_loss=st.sampled_from([0, 0.125, 0.25, 1]),
    relative=st.booleans(),
)
def test_best_under_picks_what_its_definition_says(candidates, max_loss, relative):
    results = {f"mean_test_{name}": np.array(column) for name, column in zip("ab", zip(*candidates))}
    pick = best_under("a", max_loss=max_loss, then="b", relative=relative)
    usable = [(a, b, k) for k, (a, b) in enumerate(candidates) if not np.isnan(a + b)]
    if not usable:
        with pytest.raises(ValueError, match="No candidate has finite"):
            pick(results)
        return
    best = max(a for a, _, _ in usable)
    near = [c for c in usable if c[0] >= best - max_loss * (best if relative else 1)]
    expected = max(near, key=lambda c: (c[1], c[0], -c[2]))
    assert pick(results) == expected[2]
    assert np.flatnonzero(pick.admissible(results)).tolist() == [k for _, _, k in near]


def test_best_under_counts_a_loss_equal_to_the_bound_as_within_it():
    results = {"mean_test_ndcg": [0.8, 0.79], "mean_test_gap": [-0.5, -0.1]}
    assert 0.8 - 0.79 > 0.01  # by rounding
    assert best_under("ndcg", max_loss=0.01, then="gap")(results) == 1
    assert best_under("ndcg", max_loss=0.0099, then="gap")(results) == 0
    assert best_under("ndcg", max_loss=0.0125, then="gap", relative=True)(results) == 1
    assert best_under("ndcg", max_loss=0.0124, then="gap", relative=True)(results) == 0


def test_best_under_a_relative_loss_of_a_negated_score():
    results = {"mean_test_gap": [-0.10, -0.12, -0.20], "mean_test_ndcg": [0.7, 0.8, 0.9]}
    assert best_under("gap", max_loss=0.2, then="ndcg", relative=True)(results) == 1
    assert best_under("gap", max_loss=1.0, then="ndcg", relative=True)(results) == 2


def test_best_under_an_absolute_bound():
    results = {"mean_test_gap": [-0.010, -0.004, -0.001], "mean_test_ndcg": [0.82, 0.81, 0.78]}
    assert best_under("gap", minimum=-0.005, then="ndcg")(results) == 1
    assert best_under("gap", minimum=-0.005, max_loss=0.001, then="ndcg")(results) == 2
    with pytest.warns(UserWarning, match=r"No candidate has a mean test 'gap' of at least 0: the best has -0.001"):
        assert best_under("gap", minimum=0, then="ndcg")(results) == 2
    with pytest.warns(UserWarning, match="at least 0"):  # both bounds, one out of reach
        assert best_under("gap", minimum=0, max_loss=0.01, then="ndcg")(results) == 2


def test_best_under_says_what_is_missing():
    results = {"mean_test_ndcg": [1.0], "mean_test_tau": [1.0], "mean_fit_time": [1.0]}
    with pytest.raises(ValueError, match=r"no scorer 'gap'.*\['ndcg', 'tau'\]"):
        best_under("ndcg", max_loss=0.1, then="gap")(results)
    with pytest.raises(ValueError, match="neither max_loss nor minimum"):
        best_under("ndcg", then="gap")
    with pytest.raises(ValueError, match="max_loss"):
        best_under("ndcg", max_loss=-0.1, then="gap")
