"""Theorem 1 in numbers: each term by its formula, the entropy integral by quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.distance import pdist

from skfairrank import SensitiveSubspaceMetric
from skfairrank.adversaries import ExactBox, ExactBudget
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
    given = {"norm": B, "feature_diameter": D, "fair_diameter": D_X, "metric_error": eta, "confidence": 0.9}
    got = generalization_bound(w, X, qid=qid, metric=metric, adversary=ExactBudget(eps), **given)
    D_Y = m / 2 * B**2 * D**2
    J = np.sqrt(3) * quad(lambda e: np.sqrt(np.log(5 * D_Y / e)), 0, D_Y)[0]
    terms = 48 * (J + D_X * D_Y / eps) / np.sqrt(n), D_Y * np.sqrt(np.log(20) / (2 * n)), D_Y * eta / eps
    assert got.entropy_integral == pytest.approx(J, rel=1e-6)
    assert (got.complexity_term, got.confidence_term, got.metric_term) == pytest.approx(terms, rel=1e-6)
    assert got.theorem == pytest.approx(sum(terms), rel=1e-6) and got.score_diameter == D_Y and got.is_vacuous
    # The exact entropy, ln(1 + 4 D_Y / e), is not above what the closed form integrates.
    assert np.sqrt(3) * quad(lambda e: np.sqrt(np.log(1 + 4 * D_Y / e)), 0, D_Y)[0] <= J
    at_needed = (48 * (J + D_X * D_Y / eps) + D_Y * np.sqrt(np.log(20) / 2)) / np.sqrt(got.queries_needed)
    assert at_needed + terms[2] == pytest.approx(D_Y)
    assert generalization_bound(w, X, qid=qid, metric=metric, metric_error=0.02).queries_needed == np.inf


def test_diameters_from_data_bound_those_of_the_rows(task):
    X, qid, metric, w = task
    got = generalization_bound(w, X, qid=qid, metric=metric)
    for found, rows in ((got.feature_diameter, X), (np.sqrt(got.fair_diameter), metric.transform(X))):
        assert pdist(rows).max() <= found <= 2 * pdist(rows).max()
    assert got.regularizer == invariance_regularizer(w, X, qid=qid, metric=metric)


@pytest.mark.parametrize(
    ("kw", "match"),
    [
        ({"norm": 0.1}, "norm=0.1.*not in the class"),
        ({"adversary": ExactBudget(0.0)}, "epsilon=0.0"),
        ({"adversary": ExactBox()}, "one transport budget"),
        ({"feature_diameter": -1}, "feature_diameter=-1"),
        ({"metric_error": np.nan}, "metric_error=nan"),
        ({"confidence": 1}, "confidence=1"),
    ],
)
def test_numbers_out_of_range_are_refused(task, kw, match):
    X, qid, metric, w = task
    with pytest.raises(ValueError, match=match):
        generalization_bound(w, X, qid=qid, metric=metric, **kw)
