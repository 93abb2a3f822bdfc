"""Calls that newcomers make: a positional qid, another library's name for it, text among the features."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skfairrank import (
    FairPGRanker,
    PlackettLuceRanker,
    QueryRanker,
    RandomRanker,
    SensitiveSubspaceMetric,
    SenSTIRRanker,
    metrics,
    plackett_luce,
    senstir_path,
)

RNG = np.random.default_rng(0)
X, Y, QID = RNG.normal(size=(12, 2)), np.tile([0.0, 1, 2], 4), np.repeat(np.arange(4), 3)
RANKERS = [
    PlackettLuceRanker(max_iter=2),
    SenSTIRRanker([[1, 0]], max_iter=2),
    FairPGRanker(max_iter=2, fairness_weight=0),
    RandomRanker(),
    QueryRanker(PlackettLuceRanker(max_iter=2)),
]
every_ranker = pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)


@every_ranker
def test_a_positional_qid_gets_the_remedy(ranker):
    with pytest.raises(TypeError, match=r"call fit\(X, y, qid=qid\)"):
        ranker.fit(X, Y, QID)
    fitted = ranker.fit(X, Y, qid=QID)
    for name, given in (("rank", (X,)), ("sample_rankings", (X,)), ("score", (X, Y))):
        with pytest.raises(TypeError, match=rf"call {name}\(X.*, qid=qid\)"):
            getattr(fitted, name)(*given, QID)


@every_ranker
@pytest.mark.parametrize("name", ["group", "groups", "group_id"])
def test_other_names_of_queries_get_the_remedy(ranker, name):
    with pytest.raises((TypeError, ValueError), match="qid"):
        ranker.fit(X, Y, **{name: [3, 3, 3, 3]})


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.ndcg_score(Y, Y, QID),
        lambda: metrics.group_exposure_difference(Y, QID, Y > 0),
        lambda: plackett_luce.sample_rankings(Y, QID),
        lambda: senstir_path(X, Y, QID),
    ],
)
def test_so_do_functions(call):
    with pytest.raises(TypeError, match=r"takes the query ids by keyword: call \w+\(.*qid=qid\)"):
        call()


FRAMES = {
    "text": pd.DataFrame({"score": X[:, 0], "job": ["clerk", "cook", "smith"] * 4}),
    "pandas strings": pd.DataFrame({"score": X[:, 0], "job": pd.array(["clerk", "cook", "smith"] * 4, dtype="string")}),
    "categories": pd.DataFrame({"score": X[:, 0], "job": pd.Categorical(["clerk", "cook", "smith"] * 4)}),
    "one value": pd.DataFrame({"score": X[:, 0], "job": [1, 2, "n/a"] * 4}),
    "dates": pd.DataFrame({"score": X[:, 0], "job": pd.date_range("2026-01-01", periods=12)}),
    "polars": pl.DataFrame({"score": X[:, 0], "job": ["clerk", "cook", "smith"] * 4}),
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    "estimator", [PlackettLuceRanker(max_iter=2), RandomRanker(), SensitiveSubspaceMetric([[0, 1]])]
)
def test_a_column_of_text_is_named_with_a_way_out(estimator, frame):
    given = {} if isinstance(estimator, SensitiveSubspaceMetric) else {"qid": QID}
    with pytest.raises(
        ValueError, match=r"Column 'job' of X holds .*no number.*(OneHotEncoder|turn dates into numbers)"
    ):
        estimator.fit(FRAMES[frame], Y, **given)


def test_a_column_of_text_in_an_array_is_named_by_position_and_in_predict_too():
    text = np.column_stack([X.astype(object), ["clerk"] * 12])
    with pytest.raises(ValueError, match=r"Column 2 of X holds 'clerk'"):
        PlackettLuceRanker(max_iter=2).fit(text, Y, qid=QID)
    ranker = PlackettLuceRanker(max_iter=2).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=r"Column 1 of X holds 'cook'"):
        ranker.predict(np.array([[1.0, "cook"]], dtype=object))


@every_ranker
def test_a_missing_relevance_gets_the_remedy(ranker):
    with pytest.raises(ValueError, match=r"y .*NaN.*(without a judgement|without one)"):
        ranker.fit(X, np.where(Y > 1, np.nan, Y), qid=QID)


def test_other_errors_stay_what_they_are():
    with pytest.raises(ValueError, match="NaN"):
        PlackettLuceRanker(max_iter=2).fit(np.where(X > 1, np.nan, X), Y, qid=QID)
    with pytest.raises(ValueError, match="2 features|1 features|features"):
        PlackettLuceRanker(max_iter=2).fit(X, Y, qid=QID).predict(X[:, :1])


def test_masked_arrays_are_refused_everywhere():
    def hide(values):
        return np.ma.array(values, mask=np.arange(np.size(values)).reshape(np.shape(values)) == 1)

    ranker, group = PlackettLuceRanker(max_iter=2), Y > 0
    calls = [
        lambda: ranker.fit(hide(X), Y, qid=QID),
        lambda: ranker.fit(X, hide(Y), qid=QID),
        lambda: ranker.fit(X, Y, qid=hide(QID)),
        lambda: SensitiveSubspaceMetric().fit(X, sensitive_features=hide(group)),
        lambda: metrics.ndcg_score(Y, Y, qid=QID, query_weight=hide(Y)),
        lambda: metrics.group_exposure_difference(Y, qid=QID, sensitive_features=hide(group)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="1 masked value"):
            call()
