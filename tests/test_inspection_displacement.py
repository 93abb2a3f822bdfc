"""rank_displacement against counting, closed forms and the shape of the paper's Figure 2."""

import numpy as np
import pytest
from _data import shared_data
from sklearn.linear_model import LogisticRegression

from skfairrank import SensitiveSubspaceMetric
from skfairrank.inspection import nearest_queries, rank_displacement
from skfairrank.metrics import kendall_tau_score
from skfairrank.plackett_luce import rank_probabilities, sample_rankings


def counted(ranks, other, qid):
    """Item by item, as the docstring says."""
    n = np.bincount(qid).max()
    moves = np.zeros((n, n))
    for sample, hypothetical in zip(ranks, other):
        for i, j in zip(sample, hypothetical):
            moves[i - 1, j - 1] += 1
    return moves / moves.sum(axis=1, keepdims=True)


@pytest.fixture
def rankings():
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(7), 4))
    scores = rng.normal(size=len(qid))
    draw = lambda seed: sample_rankings(scores, qid=qid, n_samples=5, random_state=seed)  # noqa: E731
    return draw(0), draw(1), qid


def test_counts_moves(rankings):
    ranks, other, qid = rankings
    found, order = rank_displacement(ranks, other, qid=qid), np.random.default_rng(1).permutation(len(qid))
    np.testing.assert_allclose(found, counted(ranks, other, qid), rtol=1e-12)
    interleaved = rank_displacement(ranks[:, order], other[:, order], qid=[f"q{q}" for q in qid[order]])
    np.testing.assert_array_equal(found, interleaved)
    np.testing.assert_array_equal(rank_displacement(ranks, 5 - ranks, qid=qid), np.eye(4)[::-1])


def test_independent_samples_of_one_policy():
    """Of independent rankings E D = P'P, with P[a, i] the probability of item a at rank i."""
    scores, n_samples = np.array([2.0, 1.0, 0.0, -0.5]), 40_000
    p = rank_probabilities(scores)
    draws = [sample_rankings(scores, n_samples=n_samples, random_state=seed) for seed in (0, 1)]
    displacement = rank_displacement(*draws, qid=np.zeros(4))
    # 40,000 pairs: a share's standard error is at most .0025
    assert np.abs(displacement - p.T @ p).max() < 4 * 0.0025


def test_queries_of_two_sizes_are_an_error_that_names_both():
    with pytest.raises(ValueError, match="Query a has 2 rows and query c has 1"):
        rank_displacement([[1, 2, 1, 2, 1]], [[1, 2, 1, 2, 1]], qid=list("aabbc"))


@pytest.mark.parametrize(
    "ranks, other, message",
    [
        ([[1, 2]], [[1, 2], [2, 1]], "as many samples"),
        ([[0, 1]], [[1, 2]], "ranks of query 5 in sample 0 are not 1 to 2"),
        ([[1, 2]], [[1, 1]], "hypothetical_ranks of query 5 in sample 0"),
        ([[0.5, 1.7]], [[1, 2]], "1-based integer ranks"),
        ([[1.0, np.nan]], [[1, 2]], "1-based integer ranks"),
        ([[1.0, np.inf]], [[1, 2]], "1-based integer ranks"),
        ([[[1, 2]]], [[[1, 2]]], "1-based integer ranks"),
    ],
)
def test_what_is_no_ranking_is_an_error(ranks, other, message):
    with pytest.raises(ValueError, match=message):
        rank_displacement(ranks, other, qid=[5, 5])


def test_figure_2_senstir_is_stable_and_fair_pg_rank_is_not():
    """Weights recorded by the authors; SenSTIR's ranking hardly moves, Fair-PG-Rank's more than the baseline's."""
    with np.load(shared_data("senstir_synthetic.npz")) as z:
        data = dict(z)
    metric = SensitiveSubspaceMetric(classifier=LogisticRegression(C=100)).fit(
        data["X_train"], sensitive_features=data["majority_train"]
    )
    X, qid, reference = data["X_test"], data["qid_test"], np.vstack([data["X_train"], data["X_test"]])
    found = nearest_queries(X, reference, qid=qid, qid_reference=np.r_[data["qid_train"], 100 + qid], metric=metric)
    hypothetical = found.hypothetical(reference)
    taus, stay = [], []
    for w in ((8.08121395, 5.38915491), (7.48849058, 0.23702028), (0.90663069, 0.91267276)):
        s, other = X @ np.array(w), hypothetical @ np.array(w)
        taus.append(kendall_tau_score(s, other, qid=qid))
        draws = [sample_rankings(h, qid=qid, n_samples=10, random_state=seed) for seed, h in enumerate((s, other))]
        stay.append(np.trace(rank_displacement(*draws, qid=qid)) / 10)
    assert taus == pytest.approx([0.4, 0.9511111111, 0.2248888889], abs=1e-9)
    assert stay[1] > 1.5 * stay[0] and stay[2] < stay[0]
