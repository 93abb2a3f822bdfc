"""nearest_queries against exhaustive searches with SciPy's assignment and POT, and the authors' recorded numbers."""

import numpy as np
import ot
import pandas as pd
import pytest
from _data import shared_data
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from skfairrank import SensitiveSubspaceMetric
from skfairrank.fair_metrics._distances import distances_between
from skfairrank.inspection import nearest_queries

pytestmark = pytest.mark.once


def transport_cost(Z, other):
    """POT's own answer."""
    cost = ((Z[:, None] - other[None]) ** 2).sum(axis=-1)
    return ot.emd2(np.full(len(Z), 1 / len(Z)), np.full(len(other), 1 / len(other)), cost)


def blocks_of(Z, qid):
    return {q: Z[qid == q] for q in np.unique(qid)}


def same_set(rows, other):
    return rows.shape == other.shape and sorted(map(tuple, rows)) == sorted(map(tuple, other))


def exhaustive(X, X_reference, qid, qid_reference, basis):
    """Distances of all pairs by POT, infinity where excluded: the readable twin of the search."""
    P = np.eye(X.shape[1]) - basis.T @ basis
    ours, others = blocks_of(X, qid), blocks_of(X_reference, qid_reference)
    return np.array(
        [[np.inf if same_set(a, b) else transport_cost(a @ P, b @ P) for b in others.values()] for a in ours.values()]
    )


def draw_queries(rng, n_queries, n_features, *, sizes, grid=None):
    sizes = rng.choice(sizes, n_queries)
    qid = rng.permutation(np.repeat(rng.permutation(100)[:n_queries], sizes))
    shape = (len(qid), n_features)
    return rng.normal(size=shape) if grid is None else rng.integers(0, grid, shape).astype(float), qid


SIZES = {"equal": [6], "ragged": [1, 2, 3, 5, 8], "one row": [1], "equal or one more": [4, 5]}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("grid", [None, 3], ids=["continuous", "many ties"])
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_the_exhaustive_search(sizes, grid, seed):
    rng = np.random.default_rng(seed)
    X, qid = draw_queries(rng, 9, 3, sizes=sizes, grid=grid)
    X_reference, qid_reference = draw_queries(rng, 14, 3, sizes=sizes, grid=grid)
    X_reference, qid_reference = np.vstack([X_reference, X]), np.r_[qid_reference, 200 + qid]  # itself is among them
    # a coordinate axis, so that projected integers stay integers and ties are exact
    metric = SensitiveSubspaceMetric(directions=[[0, 1, 0]]).fit(X)
    found = nearest_queries(X, X_reference, qid=qid, qid_reference=qid_reference, metric=metric)
    expected = exhaustive(X, X_reference, qid, qid_reference, metric.sensitive_basis_)
    assert found.distance == pytest.approx(expected.min(axis=1), abs=1e-12)
    # the smallest id among the nearest
    first = np.argmax(expected <= expected.min(axis=1, keepdims=True) + 1e-9, axis=1)
    np.testing.assert_array_equal(found.qid, np.unique(qid_reference)[first])


@pytest.mark.parametrize("n, m", [(6, 6), (4, 6)])
def test_distances_of_one_feature_are_those_of_sorted_items(n, m):
    """In one dimension the monotone coupling is optimal: the integral of the squared difference of the quantile functions."""
    rng = np.random.default_rng(n * m)
    x, z = rng.normal(size=n), rng.normal(size=m)
    levels = (np.arange(n * m) + 0.5) / (n * m)
    expected = np.mean((np.sort(x)[(levels * n).astype(int)] - np.sort(z)[(levels * m).astype(int)]) ** 2)
    got = distances_between(x[:, None], np.array([0, n]), z[:, None], np.array([0, m]))
    assert got[0, 0] == pytest.approx(expected, rel=1e-10)


@pytest.fixture
def task():
    rng = np.random.default_rng(5)
    X, qid = draw_queries(rng, 12, 4, sizes=[3, 4, 6])
    return X, qid, SensitiveSubspaceMetric(directions=[[1.0, 0, 0, 0]]).fit(X)


def test_rows_are_the_pairing_of_the_optimal_plan(task):
    X, qid, metric = task
    found = nearest_queries(X, X, qid=qid, qid_reference=qid, metric=metric)
    Z = metric.transform(X)
    for k, q in enumerate(np.unique(qid)):
        mine, its = np.flatnonzero(qid == q), np.flatnonzero(qid == found.qid[k])
        assert np.isin(found.rows[mine], its).all()
        cost = ((Z[mine][:, None] - Z[its][None]) ** 2).sum(axis=-1)
        plan = ot.emd(np.full(len(mine), 1 / len(mine)), np.full(len(its), 1 / len(its)), cost)
        np.testing.assert_array_equal(found.rows[mine], its[np.argmax(np.round(plan, 9), axis=1)])
        if len(mine) == len(its):  # a one-to-one pairing, at the cost reported
            assert len(set(found.rows[mine])) == len(mine)
            paired = ((Z[mine] - Z[found.rows[mine]]) ** 2).sum(axis=1).mean()
            assert found.distance[k] == pytest.approx(paired)


def test_heaviest_partner_and_first_of_several():
    """One item onto two: half of it each, so the first. Two onto three: 1/3 to the twin, and 1/6 to the odd one."""
    metric = SensitiveSubspaceMetric(directions=[[0, 1]]).fit(np.eye(2))
    found = nearest_queries([[0, 0]], [[1, 0], [-1, 0]], qid=[0], qid_reference=[0, 0], metric=metric)
    assert found.distance == pytest.approx([1.0]) and found.rows.tolist() == [0]
    found = nearest_queries(
        [[0, 0], [9, 0]], [[4, 0], [9, 1], [0, 1]], qid=[0, 0], qid_reference=[0] * 3, metric=metric
    )
    assert found.rows.tolist() == [2, 1]
    assert found.distance == pytest.approx([(16 + 25) / 6])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_interleaving_rows_permutes_the_result(task, n_threads):
    import numba

    X, qid, metric = task
    order = np.random.default_rng(0).permutation(len(X))
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(min(n_threads, before))
        plain = nearest_queries(X, X, qid=qid, qid_reference=qid, metric=metric)
        shuffled = nearest_queries(X[order], X, qid=qid[order], qid_reference=qid, metric=metric)
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(shuffled.qid, plain.qid)
    assert shuffled.distance == pytest.approx(plain.distance, rel=1e-12)
    np.testing.assert_array_equal(shuffled.rows, plain.rows[order])


def test_a_search_that_runs_in_chunks_finds_what_searches_of_parts_find():
    """More than 2^22 pairs of queries run in chunks, half as many at once."""
    rng, n = np.random.default_rng(0), 2_060
    X, qid = rng.normal(size=(2 * n, 2)), np.repeat(np.arange(n), 2)
    metric = SensitiveSubspaceMetric(directions=[[0, 1]]).fit(X)
    whole = nearest_queries(X, X, qid=qid, qid_reference=qid, metric=metric)
    for half in (slice(0, n), slice(n, 2 * n)):
        part = nearest_queries(X[half], X, qid=qid[half], qid_reference=qid, metric=metric)
        queries = slice(half.start // 2, half.stop // 2)
        np.testing.assert_array_equal(whole.qid[queries], part.qid)
        np.testing.assert_array_equal(whole.distance[queries], part.distance)
        np.testing.assert_array_equal(whole.rows[half], part.rows)


def test_identical_means_the_same_rows_in_any_order():
    metric = SensitiveSubspaceMetric(directions=[[0, 1]]).fit(np.eye(2))
    X = [[0.0, 1.0], [2.0, 0.0]]
    permuted, flipped, far = [[2.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [2.0, 1.0]], [[8.0, 0.0], [8.0, 0.0]]
    reference, ids = np.vstack([permuted, X, flipped, far]), np.repeat([0, 1, 2, 3], 2)
    kw = {"qid": [0, 0], "qid_reference": ids, "metric": metric}
    # the query that differs in the sensitive feature only is at distance zero, and is not itself
    found = nearest_queries(X, reference, **kw)
    assert (found.qid.tolist(), found.distance.tolist(), found.rows.tolist()) == ([2], [0.0], [4, 5])
    found = nearest_queries(X, reference, **kw, exclude_identical=False)
    assert (found.qid.tolist(), found.distance.tolist(), found.rows.tolist()) == ([0], [0.0], [1, 0])


@pytest.mark.parametrize("seed", range(8))
def test_queries_equal_but_for_the_sensitive_direction_tie_although_projections_round(seed):
    rng = np.random.default_rng(seed)
    X, direction = rng.normal(size=(5, 3)), rng.normal(size=3)
    reference = np.vstack([X + c * direction for c in (2.0, -3.0, 0.1)])
    metric = SensitiveSubspaceMetric(directions=direction).fit(X)
    found = nearest_queries(X, reference, qid=[0] * 5, qid_reference=np.repeat([7, 8, 9], 5), metric=metric)
    assert found.qid.tolist() == [7] and found.distance[0] < 1e-28
    np.testing.assert_array_equal(found.rows, np.arange(5))


def test_errors_say_what_to_do(task):
    X, qid, metric = task
    kw = {"qid": qid, "qid_reference": qid, "metric": metric}
    with pytest.raises(ValueError, match="X_reference has 3 features, but metric was fitted on 4"):
        nearest_queries(X, X[:, :3], **kw)
    with pytest.raises(ValueError, match="Query 7 has no nearest other query: all 2 reference queries are identical"):
        nearest_queries(X[:2], X[[0, 1, 1, 0]], qid=[7, 7], qid_reference=[0, 0, 1, 1], metric=metric)
    with pytest.raises(ValueError, match="qid_reference has 2 entries"):
        nearest_queries(X, X, qid=qid, qid_reference=[0, 1], metric=metric)
    with pytest.raises(ValueError, match="NaN"):
        nearest_queries(np.full_like(X, np.nan), X, **kw)
    with pytest.raises(TypeError, match="no fitted fair metric: it has no directions_"):
        nearest_queries(X, X, qid=qid, qid_reference=qid, metric=np.eye(4)[:1])
    with pytest.raises(NotFittedError):
        nearest_queries(X, X, qid=qid, qid_reference=qid, metric=SensitiveSubspaceMetric(directions=np.eye(4)[:1]))
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = SensitiveSubspaceMetric(sensitive_columns="a").fit(frame)
    with pytest.raises(ValueError, match="fitted on the features"):
        nearest_queries(frame, frame[list("bacd")], qid=qid, qid_reference=qid, metric=named)


@pytest.fixture(scope="module")
def synthetic():
    with np.load(shared_data("senstir_synthetic.npz")) as z:
        return dict(z)


def test_the_authors_nearest_queries(synthetic):
    """Recorded by the authors' notebook: each test query's nearest other query among training and test queries."""
    metric = SensitiveSubspaceMetric(classifier=LogisticRegression(C=100)).fit(
        synthetic["X_train"], sensitive_features=synthetic["majority_train"]
    )
    found = nearest_queries(
        synthetic["X_test"],
        np.vstack([synthetic["X_train"], synthetic["X_test"]]),
        qid=synthetic["qid_test"],
        qid_reference=np.r_[synthetic["qid_train"], 100 + synthetic["qid_test"]],
        metric=metric,
    )
    assert found.distance.mean() == pytest.approx(0.0244039505502978, rel=1e-12)
    assert found.distance[:3] == pytest.approx([0.03230608002, 0.03578482558, 0.03343583259], rel=1e-9)
