"""What every fair metric can do, and what counts as one. Distances from x'Mx written out, plans from POT."""

import warnings

import numpy as np
import ot
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import validate_data

from skfairrank import SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank.fair_metrics import (
    ComparableGroupsMetric,
    ComparablePairsMetric,
    LinearFairMetric,
    MahalanobisMetric,
    check_fair_metric,
)
from skfairrank.fair_metrics._distances import shrink_along, transport
from skfairrank.fair_metrics._subspace import fit_metric
from skfairrank.inspection import nearest_queries

NAMES = list("abcd")
RNG = np.random.default_rng(7)
X = RNG.normal(size=(60, 4)) + [0.0, 3.0, 0.0, -1.0]
GROUP = (X[:, 1] + RNG.normal(size=60) > 3).astype(int)
ROOT = RNG.normal(size=(4, 4))
FULL = ROOT @ ROOT.T / 4
SINGULAR = ROOT[:, :2] @ ROOT[:, :2].T
V = np.array([[1.0, 2, 0, 0], [0, 0, 1, 0]])
PEOPLE, TRAIT = np.repeat(np.arange(15), 4), np.array([1.0, -2, 0, 1])
VARIANTS = X[PEOPLE] + np.outer(RNG.normal(size=60), TRAIT)
PAIRS = np.stack([X[:30], X[30:]], axis=1)


class LastCountsHalf(LinearFairMetric):
    """Only `fit`, as a user would write it: the first feature does not count, and the last one half."""

    def fit(self, X, y=None):
        X = validate_data(self, X)
        E = np.eye(X.shape[1])
        self.directions_, self.basis_, self.shrink_ = E[:1], E[[0, -1]], np.array([1.0, 0.5])
        return self


def outside(directions):
    """The projector on what is orthogonal to the directions."""
    return np.eye(4) - np.linalg.pinv(directions) @ directions


def pairs_fit(metric, rows):
    """Pairs of rows, comparable where they are near in the first feature."""
    pairs = np.stack([np.asarray(rows)[:-1], np.asarray(rows)[1:]], axis=1)
    return metric.fit(pairs, np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 0.8)


class WithoutOneDirection(LinearFairMetric):
    """A projector whose `fit` keeps nothing of its rows."""

    def __init__(self, direction):
        self.direction = direction

    def fit(self, X, y=None):
        validate_data(self, X)
        self.directions_ = np.array([self.direction])
        self.basis_, self.shrink_ = self.directions_ / np.linalg.norm(self.direction), np.ones(1)
        return self


# For each metric: unfitted, how it is fitted, and its matrix (None: only that of its own factors is known).
METRICS = {
    "given directions": (SensitiveSubspaceMetric(V), lambda m, rows: m.fit(rows), outside(V)),
    "learned directions": (
        SensitiveSubspaceMetric(),
        lambda m, rows: m.fit(rows, sensitive_features=GROUP),
        outside(LogisticRegression(max_iter=1000).fit(X, GROUP).coef_),
    ),
    "Euclidean": (MahalanobisMetric(np.eye(4)), lambda m, rows: m.fit(rows), np.eye(4)),
    "full rank": (MahalanobisMetric(FULL), lambda m, rows: m.fit(rows), FULL),
    "singular": (MahalanobisMetric(SINGULAR), lambda m, rows: m.fit(rows), SINGULAR),
    "comparable groups": (
        ComparableGroupsMetric(),
        lambda m, rows: m.fit(
            VARIANTS if not hasattr(rows, "columns") else pd.DataFrame(VARIANTS, columns=NAMES),
            comparable_groups=PEOPLE,
        ),
        outside(TRAIT[None]),
    ),
    "comparable pairs": (ComparablePairsMetric(random_state=0), pairs_fit, None),
    "a user's own": (LastCountsHalf(), lambda m, rows: m.fit(rows), np.diag([0.0, 1, 1, 0.25])),
}
WITH_NAMES = [name for name in METRICS if name != "comparable pairs"]


def fitted(name, rows=X):
    metric, fit, _ = METRICS[name]
    return fit(clone(metric), rows)


def matrix_of(name, metric):
    """M, as the test knows it; else from the factors, entry by entry."""
    if METRICS[name][2] is not None:
        return METRICS[name][2]
    M = np.eye(4)
    for b, t in zip(metric.basis_, metric.shrink_, strict=True):
        M -= (1 - (1 - t) ** 2) * np.outer(b, b)
    return M


def squared(M, a, b):
    """(x - x')' M (x - x') for each row x of a and x' of b."""
    gap = a[:, None] - b[None]
    return np.einsum("ijk,kl,ijl->ij", gap, M, gap)


def pot(M, a, b):
    return ot.emd2(np.full(len(a), 1 / len(a)), np.full(len(b), 1 / len(b)), np.maximum(squared(M, a, b), 0.0))


@pytest.mark.parametrize("name", METRICS)
def test_distances_of_pairs_are_those_of_the_matrix(name):
    metric = fitted(name)
    M = matrix_of(name, metric)
    expected = np.sqrt(np.maximum(np.diag(squared(M, PAIRS[:, 0], PAIRS[:, 1])), 0.0))
    assert metric.pair_distance(PAIRS) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert metric.pair_score(PAIRS) == pytest.approx(-expected, rel=1e-6, abs=1e-6)
    assert metric.get_mahalanobis_matrix() == pytest.approx(M, abs=1e-6)
    if "learned" not in name:  # the classifier is fitted to its own tolerance
        assert metric.get_mahalanobis_matrix() == pytest.approx(M, abs=1e-12)
        assert metric.pair_distance(PAIRS) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_distances_are_euclidean_after_transform(name):
    metric = fitted(name)
    Z = metric.transform(X)
    assert pytest.approx(X @ metric.components_.T, abs=1e-12) == Z
    assert np.linalg.norm(Z[:30] - Z[30:], axis=1) == pytest.approx(metric.pair_distance(PAIRS), rel=1e-9, abs=1e-11)
    assert metric.components_.T @ metric.components_ == pytest.approx(metric.get_mahalanobis_matrix(), abs=1e-12)
    single = metric.transform(X.astype(np.float32))
    assert single.dtype == np.float32 and single == pytest.approx(Z, abs=1e-5)


@pytest.mark.parametrize("kind", ["subspace", "matrix", "groups"])
@pytest.mark.parametrize("seed", range(8))
def test_what_transform_leaves_constant_is_constant_to_the_bit(kind, seed):
    """Rows that are at no distance from each other, of sixty features: trees and scalers see the sign of anything."""
    rng = np.random.default_rng(seed)
    v, base = rng.normal(size=60), 100 * rng.normal(size=60)
    along = np.outer(10 * rng.normal(size=40), v)
    rows = base + along
    metric, settings = {
        "subspace": (SensitiveSubspaceMetric(v), {}),
        "matrix": (MahalanobisMetric(3 * (np.eye(60) - np.outer(v, v) / (v @ v))), {}),
        "groups": (ComparableGroupsMetric(), {"comparable_groups": np.zeros(40, int)}),
    }[kind]
    assert len(np.unique(metric.fit(rows, **settings).transform(rows), axis=0)) == 1
    assert not WithoutOneDirection(v).fit(rows).transform(along).any()  # of nothing but v, nothing is left


@pytest.mark.parametrize("name", METRICS)
def test_factors_are_in_order_and_directions_free(name):
    metric = fitted(name)
    assert check_fair_metric(metric, 4) is metric
    B = metric.basis_
    assert B @ B.T == pytest.approx(np.eye(len(B)), abs=1e-12) and (metric.shrink_ <= 1).all()
    assert metric.sensitive_basis_.tolist() == B[metric.shrink_ == 1].tolist()
    rank = np.linalg.matrix_rank(metric.directions_) if len(metric.directions_) else 0
    assert rank == len(metric.sensitive_basis_)
    for v in metric.directions_:
        assert metric.pair_distance([[np.zeros(4), v]])[0] == pytest.approx(0, abs=1e-9 * np.linalg.norm(v))


@pytest.mark.parametrize("name", WITH_NAMES)
def test_names_of_features_are_kept_and_others_refused(name):
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(60) * 2)
    metric, other = fitted(name, frame).set_output(transform="pandas"), frame[list("dcba")]
    out = metric.transform(frame)
    assert list(out.columns) == NAMES == metric.feature_names_in_.tolist() and (out.index == frame.index).all()
    np.testing.assert_allclose(out, fitted(name).transform(X), atol=1e-12)
    calls = [
        lambda: metric.transform(other),
        lambda: metric.query_distances(frame, other),
        lambda: SenSTIRRanker(FrozenEstimator(metric), max_iter=2).fit(other, GROUP, qid=PEOPLE),
        lambda: SenSTIRRanker(FrozenEstimator(metric), max_iter=2).fit(X[:, :3], GROUP, qid=PEOPLE),
    ]
    for call in calls:
        with warnings.catch_warnings(), pytest.raises(ValueError, match="feature"):
            warnings.simplefilter("ignore")
            call()
    with pytest.raises(ValueError, match="pairs"):
        metric.pair_distance(np.zeros((3, 2, 5)))


# Queries


@pytest.mark.parametrize("name", METRICS)
def test_distances_of_queries_are_those_of_pot(name):
    """Of one size, of different ones, of one item, and of many."""
    metric = fitted(name)
    M, rng = metric.get_mahalanobis_matrix(), np.random.default_rng(0)
    qid = rng.permutation(np.repeat(list("cabd"), [5, 5, 1, 64]))
    rows, other = rng.normal(size=(len(qid), 4)), rng.normal(size=(9, 4))
    other_qid = rng.permutation(np.repeat([8, 5], [5, 4]))
    expected = [[pot(M, rows[qid == a], other[other_qid == b]) for b in (5, 8)] for a in "abcd"]
    got = metric.query_distances(rows, other, qid_X=qid, qid_Y=other_qid)
    np.testing.assert_allclose(got, expected, atol=1e-10)
    among = [[pot(M, rows[qid == a], rows[qid == b]) for b in "abcd"] for a in "abcd"]
    np.testing.assert_allclose(metric.query_distances(rows, qid_X=qid), among, atol=1e-10)


def test_a_plan_that_is_not_found_is_an_error():
    rng = np.random.default_rng(0)
    with pytest.raises(RuntimeError, match="queries of 30 and 40 items failed"):
        transport(rng.normal(size=(30, 2)), rng.normal(size=(40, 2)), max_iter=1)


@pytest.mark.parametrize("offset", [0.0, 2.0**30])
def test_rows_far_from_the_origin_lose_no_digits(offset):
    rows, other = (np.random.default_rng(k).integers(0, 50, (6, 4)).astype(float) for k in (0, 1))
    metric = fitted("full rank")
    near, far = metric.query_distances(rows, other), metric.query_distances(rows + offset, other + offset)
    assert far == pytest.approx(near, rel=1e-12)


def test_identical_queries_are_at_distance_zero_to_the_bit():
    """Wherever their rows stand: sums over features are not reordered."""
    for name in METRICS:
        metric = fitted(name)
        assert metric.query_distances(X[:7], X[[6, 2, 0, 1, 3, 5, 4]]).tolist() == [[0.0]], name


@pytest.mark.parametrize("n_features, rank", [(29, 1), (29, 3), (135, 40)])
def test_equal_rows_are_shrunk_alike_to_the_bit_wherever_they_stand(n_features, rank):
    rng = np.random.default_rng(0)
    rows, basis = rng.normal(size=(203, n_features)), np.linalg.qr(rng.normal(size=(n_features, rank)))[0].T
    expected, shrink = rows @ (np.eye(n_features) - 0.7 * basis.T @ basis), np.full(rank, 0.7)
    Z = shrink_along(rows, basis, shrink)
    assert pytest.approx(expected, abs=1e-12) == Z
    for some in (np.arange(202, -1, -1), [5], [9, 4, 100], np.arange(7, 24)):
        assert np.array_equal(shrink_along(rows[some], basis, shrink), Z[some])
        assert np.array_equal(shrink_along(np.asfortranarray(rows[some]), basis, shrink), Z[some])


# Mahalanobis


def test_a_matrix_is_factorised_into_free_directions_and_shrinks():
    metric = MahalanobisMetric(np.diag([0.0, 1, 4, 0.25])).fit(X)
    assert metric.directions_.tolist() == [[1, 0, 0, 0]]
    factors = {tuple(np.abs(b)): t for b, t in zip(metric.basis_.tolist(), metric.shrink_.tolist(), strict=True)}
    assert factors == {(1, 0, 0, 0): 1.0, (0, 0, 1, 0): -1.0, (0, 0, 0, 1): 0.5}  # nothing for eigenvalue 1
    assert MahalanobisMetric(np.eye(4)).fit(X).basis_.shape == (0, 4)
    nothing = MahalanobisMetric(np.zeros((4, 4))).fit(X)
    assert nothing.directions_.tolist() == np.eye(4).tolist() and nothing.pair_distance(PAIRS) == pytest.approx(0)


def test_a_feature_along_which_a_matrix_is_zero_has_a_row_of_its_own():
    """Beside another free direction; eigenvectors of eigenvalue 0 mix the two."""
    first, oblique = np.eye(4)[0], np.array([0.0, 1, 1, 0]) / np.sqrt(2)
    P = np.eye(4) - np.outer(first, first) - np.outer(oblique, oblique)
    metric = MahalanobisMetric(P @ FULL @ P).fit(X)
    assert metric.directions_[0].tolist() == [1, 0, 0, 0] and metric.directions_[1, 0] == 0
    assert not metric.transform(X)[:, 0].any()


@pytest.mark.parametrize(
    "diagonal", [(1e15, 1e2), (1e20, 1e12), (1e20, 1.0, 1e-4), (1e-12, 1e-15), (1.0, 1e-15), (1, 4e-26)]
)
def test_cuts_are_relative_to_the_units_of_features(diagonal):
    """Case 37, and for its kind: diagonal, and with correlated features of these units."""
    n = len(diagonal)
    for correlation in (np.eye(n), np.full((n, n), 0.3) + 0.7 * np.eye(n)):
        M = correlation * np.sqrt(np.outer(diagonal, diagonal))
        metric = MahalanobisMetric(M, rank_tolerance=0).fit(np.eye(n))
        assert len(metric.directions_) == 0
        np.testing.assert_allclose(metric.get_mahalanobis_matrix(), M, rtol=1e-10)
        if (correlation == np.eye(n)).all():
            steps = np.stack([np.zeros((n, n)), np.diag(1 / np.sqrt(diagonal))], axis=1)
            np.testing.assert_allclose(metric.pair_distance(steps), 1.0, rtol=1e-7)


def test_a_singular_matrix_of_features_in_different_units_is_free_along_its_kernel():
    """One score measured twice, in units 1e5 apart: only the sum of the two counts."""
    v = np.array([1.0, 1e-5])
    metric = MahalanobisMetric(np.outer(v, v)).fit(np.eye(2))
    np.testing.assert_allclose(np.abs(metric.directions_), [[1e-5, 1.0]], rtol=1e-7)
    assert metric.sensitive_basis_.shape == (1, 2)


@pytest.mark.parametrize(
    "M, message",
    [
        (np.eye(3), r"M has shape \(3, 3\), but X has 4 features"),
        (np.ones((4, 3)), r"M has shape \(4, 3\)"),
        (np.triu(np.ones((4, 4))), r"M is not symmetric.*\(M \+ M.T\) / 2"),
        (np.diag([1.0, 1, 1, -0.1]), "M is not positive semidefinite: its eigenvalues go from -0.1 to 1"),
        (np.full((4, 4), np.nan), "M contains NaN"),
        ("identity", "M"),
    ],
)
def test_what_is_no_mahalanobis_matrix_is_refused(M, message):
    with pytest.raises(ValueError, match=message):
        MahalanobisMetric(M).fit(X)


# Comparable items


def test_directions_of_comparable_groups_are_the_principal_ones():
    """About the means of groups, as NumPy's covariance has them; as long as the standard deviation."""
    metric = ComparableGroupsMetric(n_components=4).fit(X, comparable_groups=np.repeat(list("abcdef"), 10))
    means = X.reshape(6, 10, 4).mean(axis=1)
    variance, vectors = np.linalg.eigh(sum(np.cov(rows.T) for rows in X.reshape(6, 10, 4)) / 6)
    assert means.shape == (6, 4)
    lengths = np.linalg.norm(metric.directions_, axis=1)
    assert lengths == pytest.approx(np.sqrt(variance[::-1]), rel=1e-10)
    assert np.abs(np.diag(metric.directions_ @ vectors[:, ::-1])) == pytest.approx(lengths, rel=1e-8)


@pytest.mark.parametrize(
    "groups, n_components, message",
    [
        (None, 1, "comparable_groups is missing.*FrozenEstimator"),
        (PEOPLE[:5], 1, r"comparable_groups has shape \(5,\) for 60 rows"),
        (PEOPLE, 2, "comparable items differ in 1 directions only"),
        (np.arange(60), 1, "comparable items differ in 0 directions only"),
    ],
)
def test_groups_that_teach_nothing_are_refused(groups, n_components, message):
    with pytest.raises(ValueError, match=message):
        ComparableGroupsMetric(n_components).fit(VARIANTS, comparable_groups=groups)


def test_the_metric_of_pairs_is_the_most_likely():
    """The likelihood, written out, falls by any small change of M that keeps it positive definite."""
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(400, 2, 2))
    gap = pairs[:, 0] - pairs[:, 1]
    truth = np.array([[1.0, 0.3], [0.3, 0.5]])
    alike = rng.random(400) < 2 / (1 + np.exp(np.einsum("ij,jk,ik->i", gap, truth, gap)))
    metric = ComparablePairsMetric(alpha=1e-9, rank_tolerance=0.0, random_state=1).fit(pairs, alike)
    M = metric.get_mahalanobis_matrix()

    def log_likelihood(M):
        p = 2 / (1 + np.exp(np.einsum("ij,jk,ik->i", gap, M, gap)))
        return np.log(np.where(alike, p, 1 - p)).sum()

    for change in ([[1, 0], [0, 0]], [[0, 0], [0, 1]], [[0, 1], [1, 0]]):
        for sign in (0.01, -0.01):
            assert log_likelihood(M + sign * np.array(change)) < log_likelihood(M)
    assert M == pytest.approx(truth, abs=0.25) and metric.n_iter_ > 1


@pytest.mark.parametrize(
    "pairs, comparable, message",
    [
        (PAIRS[:, :1], np.ones(30), r"pairs has shape \(30, 1, 4\)"),
        (PAIRS, np.ones(3), r"comparable has shape \(3,\)"),
        (PAIRS, np.full(30, 7), "True or False"),
        (PAIRS, np.ones(30), "comparable is True for all pairs"),
        (np.concatenate([PAIRS, PAIRS[:1, [0, 0]]]), np.r_[np.ones(30), 0], "1 pairs of equal items"),
        (PAIRS * [1, 0, 1, 1], np.arange(30) % 2, r"No pair differs in the features \[1\]"),
    ],
)
def test_pairs_that_teach_nothing_are_refused(pairs, comparable, message):
    with pytest.raises(ValueError, match=message):
        ComparablePairsMetric().fit(pairs, comparable)


# As the metric of a ranker


RELEVANCE, QID = np.arange(60.0) % 3, np.repeat(np.arange(12), 5)


@pytest.mark.parametrize("name", ["given directions", "learned directions", "full rank", "singular", "a user's own"])
def test_a_frozen_metric_is_used_as_fitted_and_another_is_cloned_and_fitted(name):
    frozen = fitted(name)
    ranker = SenSTIRRanker(FrozenEstimator(frozen), max_iter=3)
    assert ranker.fit(X, RELEVANCE, qid=QID, sensitive_features=RELEVANCE).metric_ is frozen  # nothing is learned again
    metric = clone(METRICS[name][0])
    ranker = SenSTIRRanker(metric, max_iter=3).fit(X, RELEVANCE, qid=QID, sensitive_features=GROUP)
    assert not hasattr(metric, "basis_")
    assert ranker.metric_.basis_.tolist() == fitted(name).basis_.tolist()
    again = SenSTIRRanker(fitted(name, X[:20]) if name == "full rank" else metric, max_iter=3)
    assert (
        again.fit(X, RELEVANCE, qid=QID, sensitive_features=GROUP).metric_.basis_.tolist()
        == fitted(name).basis_.tolist()
    )


# What counts as one


def with_arrays(**changes):
    metric = MahalanobisMetric(FULL).fit(X)
    for name, value in changes.items():
        setattr(metric, name, value)
    return metric


BROKEN = {
    "rows that are not orthonormal": ({"basis_": np.eye(4) + 0.1}, "basis_ has rows that are not orthonormal"),
    "shrink above one": ({"shrink_": np.array([0.0, 0, 0, 1.5])}, "shrink_ reaches 1.5"),
    "text": ({"shrink_": np.array(list("abcd"))}, "shrink_ .* finite numbers"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_arrays_that_are_not_in_order_are_refused(kind):
    changes, message = BROKEN[kind]
    metric = with_arrays(**changes)
    for call in (
        lambda: check_fair_metric(metric),
        lambda: fit_metric(FrozenEstimator(metric), X),
        lambda: nearest_queries(X, X, qid=QID, qid_reference=QID, metric=metric),
    ):
        with pytest.raises(ValueError, match=message):
            call()


NONE = {
    "a transformer": (PCA(2), "PCA, .* no directions_ and no basis_ and no shrink_"),
    "a classifier": (LogisticRegression(), "LogisticRegression, whose fit needs more"),
    "a metric of pairs": (ComparablePairsMetric(), "ComparablePairsMetric, whose fit needs more.*FrozenEstimator"),
    "a class": (SensitiveSubspaceMetric, "class SensitiveSubspaceMetric: pass an instance"),
    "a function": (cdist, "cdist"),
}


@pytest.mark.parametrize("kind", NONE)
def test_what_is_no_fair_metric_is_refused_with_a_sentence(kind):
    metric, message = NONE[kind]
    with pytest.raises(TypeError, match=message) as caught:
        fit_metric(metric, X, GROUP)
    assert "metric" in str(caught.value)
    with pytest.raises((TypeError, ValueError), match="metric"):
        SenSTIRRanker(metric, max_iter=2).fit(X, RELEVANCE, qid=QID, sensitive_features=GROUP)


def test_a_feature_in_small_units_is_not_free():
    metric = MahalanobisMetric(np.diag([1e-12, 1.0])).fit(np.eye(2))
    assert len(metric.directions_) == 0
    assert metric.pair_distance([[[1e6, 0.0], [0.0, 0.0]]]) == pytest.approx([1.0])
