"""QueryScaler: features relative to their query, in any row order, through pipelines with metadata routing."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instruments import failures_of_check_estimator
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import PlackettLuceRanker, QueryRanker, QueryScaler
from skfairrank.metrics import ndcg_score


def task(seed=0, n_queries=12):
    """Features with an offset for each query, in random row order, queries of one to nine rows."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(n_queries), 1 + np.arange(n_queries) % 9))
    z = rng.normal(size=(len(qid), 3))
    y = np.clip(np.round(z[:, 0] + 1), 0, 3)
    y[np.unique(qid, return_index=True)[1]] = 3  # something relevant in every query
    return z + 100 * rng.normal(size=(n_queries, 3))[qid], y, qid


def scaled_one_by_one(X, qid):
    """scikit-learn's StandardScaler on each query alone."""
    out = np.empty(X.shape)
    for q in set(qid):
        rows = [k for k, other in enumerate(qid) if other == q]
        out[rows] = StandardScaler().fit_transform(X[rows])
    return out


@pytest.mark.parametrize("form", [np.asarray, list, pd.Series, pd.Categorical, lambda q: [f"q{i:02}" for i in q]])
def test_each_query_is_standardised_by_itself(form):
    X, _, qid = task()
    for scaler in (QueryScaler().fit(X, qid=form(qid)), QueryScaler().fit(X[:20], qid=qid[:20])):
        np.testing.assert_allclose(scaler.transform(X, qid=form(qid)), scaled_one_by_one(X, qid), atol=1e-12)
    np.testing.assert_array_equal(QueryScaler().fit_transform(X, qid=qid), scaler.transform(X, qid=qid))


def test_centring_and_scaling_alone():
    X, qid = np.array([[1.0], [5.0], [3.0], [9.0], [7.0]]), ["a", "b", "a", "b", "c"]
    for settings_, expected in [
        ({"with_std": False}, [-1, -2, 1, 2, 0]),
        ({"with_mean": False}, [1, 2.5, 3, 4.5, 7]),  # deviations 1 and 2; a query of one row stays as it is
        ({"with_mean": False, "with_std": False}, [1, 5, 3, 9, 7]),
        ({}, [-1, -1, 1, 1, 0]),
    ]:
        got = QueryScaler(**settings_).fit(X, qid=qid).transform(X, qid=qid)
        np.testing.assert_allclose(got[:, 0], expected, rtol=1e-14)


@settings(max_examples=60, deadline=None)
@given(
    value=st.floats(-1e12, 1e12), n_rows=st.integers(1, 50), dtype=st.sampled_from([np.float64, np.float32]),
    with_std=st.booleans(),
)  # fmt: skip
def test_what_is_constant_within_a_query_is_exactly_zero(value, n_rows, dtype, with_std):
    X = np.full((n_rows + 2, 1), value, dtype)
    X[-2:, 0] = 1, 3
    qid = [0] * n_rows + [1, 1]
    got = QueryScaler(with_std=with_std).fit(X, qid=qid).transform(X, qid=qid)
    assert got.dtype == dtype and got[:, 0].tolist() == [0.0] * n_rows + [-1.0, 1.0]


def test_rounding_noise_is_constant_and_small_differences_are_not():
    noise = np.array([[0.1 + 0.2], [0.3], [0.3], [0.1 * 3]])
    assert len(set(noise[:, 0])) > 1
    assert (QueryScaler().fit_transform(noise, qid=[0] * 4) == 0).all()
    for small in ([[1e9], [1e9 + 1e-4]], [[1e-200], [3e-200]], [[-1e150], [1e150]]):
        np.testing.assert_allclose(QueryScaler().fit_transform(small, qid=[0, 0]), [[-1], [1]], rtol=1e-6)


def test_a_large_offset_costs_no_digits_that_the_data_have():
    z = np.random.default_rng(0).normal(size=(1000, 1))
    X = z + 1e8  # rounds z to 1.5e-8
    expected = scaled_one_by_one(X - 1e8, np.zeros(1000, int))
    np.testing.assert_allclose(QueryScaler().fit_transform(X, qid=np.zeros(1000)), expected, atol=1e-7)
    single = (z + 3000).astype(np.float32)
    got = QueryScaler().fit_transform(np.tile(single, (1000, 1)), qid=np.zeros(1_000_000))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got[:1000], scaled_one_by_one(single.astype(float), np.zeros(1000, int)), atol=1e-5)


def test_rows_in_another_order_give_the_same_bits():
    X, _, qid = task()
    by_query = np.argsort(qid, kind="stable")
    got = QueryScaler().fit_transform(X, qid=qid)
    np.testing.assert_array_equal(got[by_query], QueryScaler().fit_transform(X[by_query], qid=qid[by_query]))


def test_a_forgotten_qid_is_never_one_query_in_silence():
    X, _, qid = task()
    with pytest.raises(ValueError, match=r"transform got no qid, and fit saw 12 queries.*enable_metadata_routing"):
        QueryScaler().fit(X, qid=qid).transform(X)
    with pytest.warns(UserWarning, match="takes all .* rows as one query"):
        QueryScaler().fit(X)
    with pytest.raises(ValueError, match="not group sizes"):
        QueryScaler().fit(X, qid=qid).transform(X, qid=[3, 2])


def test_after_one_query_new_rows_without_qid_are_scaled_as_its_rows():
    """As StandardScaler does; a single new row would else be nothing but zeros."""
    X, _, _ = task()
    one = QueryScaler().fit(X, qid=np.zeros(len(X)))
    theirs = StandardScaler().fit(X)
    np.testing.assert_allclose(one.transform(X[:1] + 1), theirs.transform(X[:1] + 1), rtol=1e-10)
    np.testing.assert_allclose(one.mean_, theirs.mean_)
    np.testing.assert_allclose(one.scale_, theirs.scale_)
    assert (one.transform(X[:1], qid=[7]) == 0).all()
    assert not hasattr(one.fit(X, qid=np.arange(len(X))), "mean_")  # what it knew of the one is forgotten


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("ranker", [QueryRanker(Ridge()), PlackettLuceRanker(max_iter=20, random_state=0)], ids=repr)
def test_fit_predict_and_score_of_a_pipeline(ranker):
    X, y, qid = task()
    pipe = make_pipeline(QueryScaler(), ranker).fit(X, y, qid=qid)
    Z = scaled_one_by_one(X, qid)
    expected = clone(ranker).fit(Z, y, qid=qid).predict(Z)
    np.testing.assert_allclose(pipe.predict(X, qid=qid), expected, atol=1e-9)
    assert pipe.score(X, y, qid=qid) == pytest.approx(ndcg_score(y, expected, qid=qid))
    with pytest.raises(ValueError, match="transform got no qid"):
        pipe.predict(X)


@pytest.mark.usefixtures("routing")
def test_inside_a_query_ranker_it_is_refused_with_the_remedy():
    X, y, qid = task()
    with pytest.raises(ValueError, match="put the QueryScaler into a pipeline before the QueryRanker"):
        QueryRanker(make_pipeline(QueryScaler(), Ridge())).fit(X, y, qid=qid)


@pytest.mark.filterwarnings("ignore")
def test_check_estimator():
    failed = failures_of_check_estimator(QueryScaler())
    assert not failed, failed
