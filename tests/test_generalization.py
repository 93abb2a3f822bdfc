"""Theorem 1 in numbers: each term by its formula, the entropy integral by quadrature, the bounds by what they bound."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.distance import pdist

from skfairrank import SensitiveSubspaceMetric
from skfairrank.inspection import generalization_bound, invariance_regularizer

pytestmark = pytest.mark.once


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(60), rng.integers(1, 8, 60))
    X = rng.normal(size=(len(qid), 3))
    return X, qid, SensitiveSubspaceMetric(directions=[[0.0, 1.0, 1.0]]).fit(X), np.array([1.0, -0.5, 0.2])


def test_terms_are_those_of_the_theorem(task):
    X, qid, metric, w = task
    D, D_X, eta, B, eps, n, m = 5.0, 3.0, 0.002, 2.0, 0.1, 60, 7
    got = generalization_bound(
        w,
        X,
        qid=qid,
        metric=metric,
        epsilon=eps,
        norm=B,
        feature_diameter=D,
        fair_diameter=D_X,
        metric_error=eta,
        confidence=0.9,
    )
    D_Y = m / 2 * B**2 * D**2
    J = np.sqrt(3) * quad(lambda e: np.sqrt(np.log(5 * D_Y / e)), 0, D_Y)[0]
    terms = 48 * (J + D_X * D_Y / eps) / np.sqrt(n), D_Y * np.sqrt(np.log(20) / (2 * n)), D_Y * eta / eps
    assert got.entropy_integral == pytest.approx(J, rel=1e-6)
    assert (got.complexity_term, got.confidence_term, got.metric_term) == pytest.approx(terms, rel=1e-6)
    assert got.theorem == pytest.approx(sum(terms), rel=1e-6) and got.score_diameter == D_Y
    # The exact entropy, ln(1 + 4 D_Y / e), is not above what the closed form integrates.
    assert np.sqrt(3) * quad(lambda e: np.sqrt(np.log(1 + 4 * D_Y / e)), 0, D_Y)[0] <= J
    at_needed = (48 * (J + D_X * D_Y / eps) + D_Y * np.sqrt(np.log(20) / 2)) / np.sqrt(got.queries_needed)
    assert at_needed + terms[2] == pytest.approx(D_Y)


def test_no_two_scores_of_the_class_differ_by_more_than_the_lipschitz_constant(task):
    """|d_w - d_v| <= m B D^2 ||w - v|| and d_w <= D_Y, at random weights and pairs of queries: what the entropy rests on."""
    rng, B, m = np.random.default_rng(1), 1.5, 4
    Q, R = rng.uniform(-1, 1, (2, 200, m, 3))
    D = np.linalg.norm(np.full(3, 2.0))
    for _ in range(50):
        w, v = (u * B * rng.random() / np.linalg.norm(u) for u in rng.normal(size=(2, 3)))
        d_w, d_v = (0.5 * (((Q - R) @ u) ** 2).sum(axis=1) for u in (w, v))
        assert np.abs(d_w - d_v).max() <= m * B * D**2 * np.linalg.norm(w - v)
        assert d_w.max() <= m / 2 * B**2 * D**2


def test_diameters_from_data_bound_those_of_the_rows(task):
    X, qid, metric, w = task
    got = generalization_bound(w, X, qid=qid, metric=metric)
    for found, rows in ((got.feature_diameter, X), (np.sqrt(got.fair_diameter), metric.transform(X))):
        assert pdist(rows).max() <= found <= 2 * pdist(rows).max()
    assert got.regularizer == invariance_regularizer(w, X, qid=qid, metric=metric)


def test_it_is_said_in_words_where_the_theorem_is_vacuous(task):
    X, qid, metric, w = task
    got = generalization_bound(w, X, qid=qid, metric=metric)
    assert got.is_vacuous and "vacuous" in repr(got) and f"{got.queries_needed:.3g} queries" in repr(got)
    never = generalization_bound(w, X, qid=qid, metric=metric, metric_error=0.02)
    assert never.queries_needed == np.inf and "any number of queries" in repr(never)
    many = generalization_bound(
        w,
        np.tile(X, (2000, 1)),
        qid=np.arange(2000 * len(X)),
        metric=metric,
        epsilon=1.0,
        feature_diameter=9,
        fair_diameter=0.1,
    )
    assert not many.is_vacuous and "vacuous" not in repr(many) and many.queries_needed < many.n_queries


@pytest.mark.parametrize(("radius", "w"), [(1.0, (1.0, -0.5, 0.2)), (0.0, (1.0, -0.5, 0.2)), (1.0, (0.0, 1.0, 1.0))])
def test_the_other_bound_is_no_less_than_the_regularizer(task, radius, w):
    X, qid, metric, _ = task
    kw = {"metric": metric, "subspace_radius": radius, "epsilon": 0.2}
    got = generalization_bound(w, X, qid=qid, **kw)
    assert got.regularizer <= got.distribution_free * (1 + 1e-9) and got.distribution_free <= got.score_diameter
    # Of queries of one size it is R itself.
    same = np.arange(len(qid)) // 7
    keep = same < same[-1]
    one = generalization_bound(w, X[keep], qid=same[keep], **kw)
    assert one.distribution_free == pytest.approx(one.regularizer, rel=1e-6)


def test_the_other_bound_holds_for_new_queries(task):
    """Sizes 1 to 7 drawn anew, the largest among them; R of the generator is that of very many queries."""
    _, _, metric, w = task
    rng, kw = np.random.default_rng(2), {"metric": metric, "epsilon": 0.2, "confidence": 0.8}

    def bound(n_queries):
        sizes = np.r_[7, rng.integers(1, 8, n_queries - 1)]
        return generalization_bound(w, np.zeros((sizes.sum(), 3)), qid=np.repeat(np.arange(n_queries), sizes), **kw)

    truth = bound(50_000).regularizer
    missed = sum(bound(20).distribution_free < truth for _ in range(100))
    assert missed <= 20 + 3 * np.sqrt(100 * 0.2 * 0.8)


@pytest.mark.parametrize(
    ("kw", "match"),
    [
        ({"norm": 0.1}, "norm=0.1.*not in the class"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"feature_diameter": -1}, "feature_diameter=-1"),
        ({"metric_error": np.nan}, "metric_error=nan"),
        ({"confidence": 1}, "confidence=1"),
    ],
)
def test_numbers_out_of_range_are_refused(task, kw, match):
    X, qid, metric, w = task
    with pytest.raises(ValueError, match=match):
        generalization_bound(w, X, qid=qid, metric=metric, **kw)
