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
def test_a_positional_qid_or_another_name_gets_the_remedy(ranker):
    with pytest.raises(TypeError, match=r"call fit\(X, y, qid=qid\)"):
        ranker.fit(X, Y, QID)
    fitted = ranker.fit(X, Y, qid=QID)
    for name, given in (("rank", (X,)), ("sample_rankings", (X,)), ("score", (X, Y))):
        with pytest.raises(TypeError, match=rf"call {name}\(X.*, qid=qid\)"):
            getattr(fitted, name)(*given, QID)
    for name in ("group", "groups", "group_id"):
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


JOBS = ["clerk", "cook", "smith"] * 4
FRAMES = {
    "text": pd.DataFrame({"score": X[:, 0], "job": JOBS}),
    "categories": pd.DataFrame({"score": X[:, 0], "job": pd.Categorical(JOBS)}),
    "one value": pd.DataFrame({"score": X[:, 0], "job": [1, 2, "n/a"] * 4}),
    "dates": pd.DataFrame({"score": X[:, 0], "job": pd.date_range("2026-01-01", periods=12)}),
    "polars": pl.DataFrame({"score": X[:, 0], "job": JOBS}),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_column_of_text_is_named_with_a_way_out(frame):
    message = r"Column 'job' of X holds .*no number.*(OneHotEncoder|turn dates into numbers)"
    for estimator in (PlackettLuceRanker(max_iter=2), RandomRanker(), SensitiveSubspaceMetric([[0, 1]])):
        given = {} if isinstance(estimator, SensitiveSubspaceMetric) else {"qid": QID}
        with pytest.raises(ValueError, match=message):
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


def hide(values):
    return np.ma.array(values, mask=np.arange(np.size(values)).reshape(np.shape(values)) == 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: PlackettLuceRanker().fit(hide(X), Y, qid=QID),
        lambda: PlackettLuceRanker().fit(X, hide(Y), qid=QID),
        lambda: PlackettLuceRanker().fit(X, Y, qid=hide(QID)),
        lambda: SensitiveSubspaceMetric().fit(X, sensitive_features=hide(Y > 0)),
        lambda: metrics.ndcg_score(Y, Y, qid=QID, query_weight=hide(Y)),
        lambda: metrics.group_exposure_difference(Y, qid=QID, sensitive_features=hide(Y > 0)),
    ],
)
def test_masked_arrays_are_refused_everywhere(call):
    """Case 46."""
    with pytest.raises(ValueError, match="1 masked value"):
        call()
