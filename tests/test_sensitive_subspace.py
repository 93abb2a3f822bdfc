"""SensitiveSubspaceMetric: directions given or learned, and the projector. What every fair metric owes: test_fair_metrics.py."""

import numpy as np
import pandas as pd
import pytest
from _data import shared_data
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skfairrank import SensitiveSubspaceMetric


def people(n=80, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=d) + rng.normal(size=n)).round(3)


def angle(U, V):
    """Largest principal angle between two row spaces, as its sine."""
    A, B = (np.linalg.svd(np.atleast_2d(M), full_matrices=False) for M in (U, V))
    A, B = (M[2][M[1] > 1e-9 * M[1][0]] for M in (A, B))
    assert len(A) == len(B)
    return np.linalg.norm(A - (A @ B.T) @ B, 2)


# Given directions


@pytest.mark.filterwarnings("ignore:Nothing is left to rank by")
@pytest.mark.parametrize("K, d", [(1, 1), (1, 4), (3, 4), (4, 4), (6, 4)])
def test_the_projector_is_that_of_the_orthogonal_complement(K, d):
    V = np.random.default_rng(K).normal(size=(K, d)) * np.geomspace(1e-6, 1e6, K)[:, None]  # lengths do not matter
    metric = SensitiveSubspaceMetric(directions=V).fit(np.zeros((2, d)))
    P, A = metric.components_, metric.sensitive_basis_
    assert A @ A.T == pytest.approx(np.eye(min(K, d)), abs=1e-12)
    assert P @ (V / np.linalg.norm(V, axis=1, keepdims=True)).T == pytest.approx(0, abs=1e-9)
    assert pytest.approx(P @ P, abs=1e-12) == P and np.trace(P) == pytest.approx(max(d - K, 0), abs=1e-9)
    assert metric.get_mahalanobis_matrix() == pytest.approx(P)
    if K < d:
        Q, _ = np.linalg.qr(V.T / np.linalg.norm(V, axis=1))
        assert pytest.approx(np.eye(d) - Q @ Q.T, abs=1e-10) == P


def test_near_duplicate_directions_are_cut_by_rank():
    """Case 20: what differs by 1e-9 is noise, and no projector is made of it."""
    v = np.array([1.0, 2.0, -1.0])
    metric = SensitiveSubspaceMetric(directions=[v, v + [0, 0, 1e-9]]).fit(np.eye(3))
    assert metric.sensitive_basis_.shape == (1, 3)
    P = metric.components_
    assert pytest.approx(P @ P, abs=1e-8) == P
    assert pytest.approx(np.eye(3) - np.outer(v, v) / (v @ v), abs=1e-8) == P
    sharper = SensitiveSubspaceMetric(directions=[v, v + [0, 0, 1e-9]], rank_tolerance=1e-11).fit(np.eye(3))
    assert sharper.sensitive_basis_.shape == (2, 3)
    assert sharper.components_ @ sharper.components_ == pytest.approx(sharper.components_, abs=1e-8)


def test_a_zero_direction_has_no_effect_and_a_warning():
    """Case 20."""
    with pytest.warns(UserWarning, match="1 of 1 sensitive directions are zero"):
        metric = SensitiveSubspaceMetric(directions=np.zeros((1, 3))).fit(np.eye(3))
    assert metric.components_.tolist() == np.eye(3).tolist()
    assert metric.directions_.shape == metric.sensitive_basis_.shape == (0, 3)
    with pytest.warns(UserWarning, match="1 of 2 sensitive directions are zero"):
        metric = SensitiveSubspaceMetric(directions=[[0, 0, 0], [0, 1, 0]]).fit(np.eye(3))
    assert metric.components_ == pytest.approx(np.diag([1, 0, 1])) and metric.directions_.tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("length", [1e-200, 1e200])
def test_directions_whose_squares_overflow_are_an_error(length):
    with pytest.raises(ValueError, match="rescale"):
        SensitiveSubspaceMetric(directions=[[0.0, length, 0.0]]).fit(np.eye(3))


@pytest.mark.parametrize(
    "directions, message",
    [
        (np.ones((1, 2)), r"directions has shape \(1, 2\), but X has 3 features"),
        ([[1, np.nan, 0]], "directions contains NaN"),
        ([[1, np.inf, 0]], "directions contains infinity"),
    ],
)
def test_directions_that_do_not_fit_are_an_error(directions, message):
    with pytest.raises(ValueError, match=message):
        SensitiveSubspaceMetric(directions=directions).fit(np.eye(3))


# Learned directions


def test_nothing_sensitive_is_the_euclidean_metric_with_a_warning():
    with pytest.warns(UserWarning, match="Nothing is treated as sensitive"):
        metric = SensitiveSubspaceMetric().fit(np.eye(3))
    assert metric.components_.tolist() == np.eye(3).tolist()
    assert metric.pair_distance([[[0, 0, 0], [3, 4, 0]]]).tolist() == [5.0]


def test_german_credit_learns_age_as_the_paper_did():
    """RidgeCV predicts age from the other columns, on every person once; and age's own axis."""
    with np.load(shared_data("german_seed0.npz")) as data:
        X = data["X_train"]
    metric = SensitiveSubspaceMetric(scale="raw", sensitive_columns=[0]).fit(X)
    once = np.unique(X, axis=0)
    assert len(once) < len(X) / 5
    expected = np.zeros((2, X.shape[1]))
    expected[0, 1:] = RidgeCV().fit(once[:, 1:], once[:, 0]).coef_
    expected[1, 0] = 1
    assert metric.directions_ == pytest.approx(expected, rel=1e-8, abs=1e-10)
    repeated = RidgeCV().fit(X[:, 1:], X[:, 0]).coef_
    assert np.abs(repeated - expected[0, 1:]).max() > 0.01  # rows as they come would give something else
    every = SensitiveSubspaceMetric(scale="raw", sensitive_columns=[0], distinct=False).fit(X)
    assert every.directions_[0, 1:] == pytest.approx(repeated, rel=1e-6, abs=1e-8)


def test_the_synthetic_task_learns_the_majority_as_the_paper_did():
    with np.load(shared_data("senstir_synthetic.npz")) as data:
        X, majority = data["X_train"], data["majority_train"]
    metric = SensitiveSubspaceMetric(scale="raw", classifier=LogisticRegression(C=100)).fit(
        X, sensitive_features=majority
    )
    rows = np.unique(np.column_stack([X, majority]), axis=0)
    expected = LogisticRegression(C=100).fit(rows[:, :2], rows[:, 2]).coef_
    assert metric.directions_ == pytest.approx(expected, rel=1e-6)
    assert np.linalg.norm(metric.directions_) == pytest.approx(52, abs=1)  # DESIGN's measure of the raw direction


TWO = np.array(list("ab" * 40))


def test_k_groups_give_k_directions():
    X, number = people()
    codes = np.digitize(number, [-1, 1])
    groups = pd.Categorical(codes, categories=[2, 0, 1], ordered=True)
    metric = SensitiveSubspaceMetric(scale="raw").fit(X, sensitive_features=groups)
    expected = LogisticRegression(max_iter=1000).fit(X, codes).coef_
    assert metric.directions_.shape == (3, 4)
    assert metric.sensitive_basis_.shape == (2, 4)  # the three sum to zero
    assert angle(metric.directions_, expected) < 1e-3
    assert np.sort(np.linalg.norm(metric.directions_, axis=1)) == pytest.approx(
        np.sort(np.linalg.norm(expected, axis=1)), rel=1e-3
    )


@pytest.mark.filterwarnings("ignore:Nothing is left to rank by")
def test_several_attributes_are_learned_one_by_one():
    X, number = people()
    groups = np.array(list("xyz"))[np.digitize(number, [-1, 1])]
    frame = pd.DataFrame({"sex": TWO, "age": number, "origin": groups})
    metric = SensitiveSubspaceMetric().fit(X, sensitive_features=frame)
    alone = [SensitiveSubspaceMetric().fit(X, sensitive_features=frame[name]).directions_ for name in frame]
    assert metric.directions_.tolist() == np.vstack(alone).tolist() and metric.directions_.shape == (5, 4)


def test_other_models_may_learn_the_directions():
    X, number = people()
    frame = pd.DataFrame({"sex": TWO, "age": number})
    classifier, regressor = LogisticRegression(C=0.01), Ridge(alpha=300)
    metric = SensitiveSubspaceMetric(scale="raw", classifier=classifier, regressor=regressor).fit(
        X, sensitive_features=frame
    )
    assert metric.directions_[0] == pytest.approx(LogisticRegression(C=0.01).fit(X, TWO == "b").coef_[0], rel=1e-3)
    assert metric.directions_[1] == pytest.approx(Ridge(alpha=300).fit(X, number).coef_, rel=1e-8)
    assert not hasattr(classifier, "coef_") and not hasattr(regressor, "coef_")  # clones were fitted


def test_a_model_that_is_not_linear_is_an_error():
    X, _ = people()
    metric = SensitiveSubspaceMetric(classifier=DecisionTreeClassifier())
    with pytest.raises(ValueError, match="DecisionTreeClassifier has no coef_"):
        metric.fit(X, sensitive_features=TWO)


def test_a_constant_attribute_teaches_nothing_and_warns():
    X, constant = people()[0], 3.0
    with pytest.warns(UserWarning, match="one value only"):
        metric = SensitiveSubspaceMetric().fit(X, sensitive_features=[constant] * len(X))
    assert metric.components_.tolist() == np.eye(4).tolist()
    with pytest.warns(UserWarning, match="attribute country.*one value only"):
        metric = SensitiveSubspaceMetric().fit(
            X, sensitive_features=pd.DataFrame({"country": [constant] * len(X), "sex": TWO})
        )
    assert metric.directions_.shape == (1, 4)


@pytest.mark.parametrize(
    "metric", [SensitiveSubspaceMetric([[0, 0, 1, 0]]), SensitiveSubspaceMetric(sensitive_columns=2)]
)
def test_attributes_are_ignored_where_the_metric_knows_its_directions(metric):
    """The same sensitive_features go to fit and to the scorers of a search."""
    X, _ = people()
    alone = clone(metric).fit(X).directions_
    assert metric.fit(X, sensitive_features=TWO).directions_.tolist() == alone.tolist()
    assert metric.fit(X, sensitive_features=[None] * 3).directions_.tolist() == alone.tolist()


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.filterwarnings("ignore:Nothing is left to rank by")
def test_row_order_and_repetition_leave_the_same_bits(distinct):
    X, number = people()
    order = np.random.default_rng(1).permutation(80)
    again = np.r_[order, order[:30]] if distinct else order
    frame = pd.DataFrame({"sex": TWO, "age": number})
    for kwargs, attributes in (({}, frame), ({"sensitive_columns": [0, 2]}, None)):
        a, b = (
            SensitiveSubspaceMetric(distinct=distinct, **kwargs).fit(
                X[rows], sensitive_features=None if attributes is None else attributes.iloc[rows]
            )
            for rows in (np.arange(80), again)
        )
        np.testing.assert_array_equal(a.directions_, b.directions_)
        np.testing.assert_array_equal(a.sensitive_basis_, b.sensitive_basis_)


# Sensitive columns


@pytest.mark.parametrize("columns", [["b", "d"], (1, -1)])
@pytest.mark.filterwarnings("ignore:Nothing is left to rank by")
def test_columns_by_name_or_position_are_predicted_from_the_others(columns):
    X, _ = people()
    frame = pd.DataFrame(X, columns=list("abcd"))
    metric = SensitiveSubspaceMetric(scale="raw", sensitive_columns=columns).fit(frame)
    expected = np.zeros((4, 4))
    expected[0, [0, 2]] = RidgeCV().fit(X[:, [0, 2]], X[:, 1]).coef_
    expected[2, [0, 2]] = RidgeCV().fit(X[:, [0, 2]], X[:, 3]).coef_
    expected[1, 1] = expected[3, 3] = 1
    assert metric.directions_ == pytest.approx(expected, rel=1e-8, abs=1e-12)


def test_a_column_of_two_values_is_classified():
    X, _ = people()
    X[:, 0] = TWO == "b"
    metric = SensitiveSubspaceMetric(scale="raw", sensitive_columns=0).fit(X)
    assert metric.directions_[0, 1:] == pytest.approx(
        LogisticRegression(max_iter=1000).fit(X[:, 1:], TWO == "b").coef_[0], rel=1e-3, abs=1e-5
    )


@pytest.mark.parametrize(
    "columns, message",
    [
        ([4], "sensitive_columns has 4, but X has 4 columns"),
        (["e"], r"names 'e', which is not among the columns \['a', 'b', 'c', 'd'\]"),
        ([], "sensitive_columns is empty"),
    ],
)
def test_columns_that_are_not_there_are_an_error(columns, message):
    frame = pd.DataFrame(people()[0], columns=list("abcd"))
    with pytest.raises(ValueError, match=message):
        SensitiveSubspaceMetric(sensitive_columns=columns).fit(frame)


def test_names_that_were_lost_are_an_error_with_the_remedy():
    frame = pd.DataFrame(people()[0], columns=list("abcd"))
    pipe = make_pipeline(StandardScaler(), SensitiveSubspaceMetric(sensitive_columns="b"))
    with pytest.raises(ValueError, match=r"names 'b', but X has no column names.*set_output"):
        pipe.fit(frame)
    by_position = make_pipeline(StandardScaler(), SensitiveSubspaceMetric(sensitive_columns=1)).fit(frame)
    named = pipe.set_output(transform="pandas").fit(frame)
    assert named[-1].directions_.tolist() == by_position[-1].directions_.tolist()


@pytest.mark.parametrize("length", [1e-90, 1e90])
def test_directions_of_any_reasonable_length_count(length):
    metric = SensitiveSubspaceMetric(directions=[[0.0, length, 0.0]]).fit(np.eye(3))
    assert metric.components_ == pytest.approx(np.diag([1, 0, 1]))
