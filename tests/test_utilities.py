"""What holds for every utility: its tables, worth and gradients against all rankings, training, and what is refused."""

import itertools

import numpy as np
import pytest
from utilities_under_test import TABLES, UTILITIES, WHOLE

from skfairrank import PlackettLuceRanker
from skfairrank.datasets import make_biased_ranking
from skfairrank.inspection import audit
from skfairrank.policies import ExactGradient, PLRank, Reinforce
from skfairrank.training import Batch
from skfairrank.utilities import DCG, ERR, NDCG, RBP, AveragePrecision, PrecisionAtK

pytestmark = pytest.mark.once

TASK = make_biased_ranking(n_queries=40, random_state=0)


every_table = pytest.mark.parametrize("name", TABLES)
Y = np.array([0.0, 3, 1, 0, 2])
S = np.array([0.3, -0.2, 1.1, 0.0, -0.8])


def rankings(y, worth):
    """All orders of the rows, shape (n!, n), and what each is worth."""
    orders = np.array(list(itertools.permutations(range(len(y)))))
    return orders, np.array([worth(y[order]) for order in orders])


def mean_worth(s, orders, values):
    """Under Plackett-Luce: a row at position p has been chosen among itself and those after it."""
    ranked = s[orders]
    left = np.logaddexp.accumulate(ranked[:, ::-1], axis=1)[:, ::-1]
    return np.exp((ranked - left).sum(axis=1)) @ values


def expected(s, y, worth):
    return mean_worth(s, *rankings(y, worth))


def batch_of(utility, sizes, y, key=7):
    offsets = np.r_[0, np.cumsum(sizes)]
    tables = utility.tables(y, offsets)
    continuation = np.empty(0) if tables.continuation is None else tables.continuation
    n = len(sizes)
    X, numbers = np.empty((len(y), 0)), np.arange(n)
    batch = Batch(
        X, np.arange(len(y)), offsets, numbers, tables.gain, continuation, np.ones(n), np.uint64(key), tables.utility
    )
    return batch, tables.discount


def gradient_by_differences(s, y, worth, step=1e-5):
    orders, values = rankings(y, worth)
    moves = step * np.eye(len(s))
    return np.array([mean_worth(s + e, orders, values) - mean_worth(s - e, orders, values) for e in moves]) / (2 * step)


@every_table
@pytest.mark.parametrize("spread", [1.0, 400.0], ids=["usual scores", "scores far apart"])
def test_exact_sums_are_those_over_all_rankings(name, spread):
    """Several queries of several sizes; scores hundreds apart underflow as weights."""
    utility, worth = UTILITIES[name]
    rng = np.random.default_rng(1)
    sizes = [5, 3, 5, 1, 2] * 3
    y, s = np.concatenate([rng.permutation([1.0, 0, 4, 2, 0])[:n] for n in sizes]), rng.normal(size=sum(sizes))
    if spread > 1:
        s *= np.where(rng.random(len(s)) < 0.5, spread, 1.0)
    batch, discount = batch_of(utility, sizes, y)
    gradient, value = ExactGradient().estimate(batch, s, discount)
    for q in range(len(sizes)):
        rows = slice(batch.offsets[q], batch.offsets[q + 1])
        if not y[rows].any():
            assert value[q] == 0 and not gradient[rows].any()
            continue
        shifted = s[rows] - s[rows].max()
        assert value[q] == pytest.approx(expected(shifted, y[rows], worth), abs=1e-10)
        np.testing.assert_allclose(gradient[rows], gradient_by_differences(shifted, y[rows], worth), atol=1e-7)


@pytest.mark.parametrize(
    "name, kind, factor", [(n, Reinforce, 7 / 8) for n in UTILITIES] + [(n, PLRank, 1.0) for n in TABLES]
)
def test_sampled_gradients_have_the_right_expectation(name, kind, factor):
    """Of 4,000 queries with 8 samples each; REINFORCE's is 1 - 1/8 of the true one: its baseline holds the sample itself."""
    utility, worth = UTILITIES[name]
    n = 4000
    batch, discount = batch_of(utility, [len(Y)] * n, np.tile(Y, n))
    gradient, value = kind(8).estimate(batch, np.tile(S, n), discount)
    found = gradient.reshape(n, len(Y))
    error = np.maximum(found.std(axis=0, ddof=1) / np.sqrt(n), 1e-10)
    off = (found.mean(axis=0) - factor * gradient_by_differences(S, Y, worth)) / error
    assert np.abs(off).max() < 4.5
    assert abs(value.mean() - expected(S, Y, worth)) < 4.5 * value.std(ddof=1) / np.sqrt(n) + 1e-12


def test_rankings_that_are_worth_the_same_have_no_gradient():
    """Where every row is relevant or none is; and of rankings given whole, scores far apart change nothing in that."""
    y, s = np.array([2.0, 1, 4, 0, 0, 0]), np.array([0.3, -900.0, 5, 2, 700, 1])
    batch, discount = batch_of(AveragePrecision(), [3, 3], y)
    gradient, value = Reinforce(20).estimate(batch, s, discount)
    assert not gradient.any() and value == pytest.approx([1.0, 0.0], abs=1e-12)


@pytest.mark.parametrize("name", ["NDCG@3", "DCG", "recall@2", "RBP"])
def test_the_worth_of_whole_rankings_trains_as_the_tables_do(name):
    """A utility by tables, said once more by a `utility`: the same rankings, the same gradients."""
    tables_say = UTILITIES[name][0]
    rng = np.random.default_rng(2)
    sizes = [5, 1, 40, 17]
    y, s = rng.integers(0, 5, sum(sizes)).astype(float), rng.normal(size=sum(sizes))
    s[sizes[0] + 1 :] *= rng.choice([1.0, 400.0], sum(sizes) - sizes[0] - 1)
    batch, discount = batch_of(tables_say, sizes, y)

    def utility(gain, offsets, discount):
        return np.stack(
            [gain[:, a:b] @ discount[: b - a] for a, b in zip(offsets[:-1], offsets[1:], strict=True)], axis=1
        )

    for found, expected_ in zip(
        Reinforce(13).estimate(batch._replace(utility=utility), s, discount),
        Reinforce(13).estimate(batch, s, discount),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [{"gradient": "plrank"}, {"gradient": "exact"}, {"solver": "lbfgs"}],
    ids=lambda s: next(iter(s.values())),
)
@pytest.mark.parametrize("name", WHOLE)
def test_only_reinforce_trains_for_what_no_table_says(name, settings):
    ranker = PlackettLuceRanker(utility=UTILITIES[name][0], max_iter=2, **settings)
    with pytest.raises(ValueError, match=r"AveragePrecision.*REINFORCE"):
        ranker.fit(TASK.data, TASK.target > np.quantile(TASK.target, 0.7), qid=TASK.qid)


def test_a_worth_of_the_wrong_shape_is_refused():
    class Sum(NDCG):
        def utility(self, gain, offsets, discount):
            return gain.sum(axis=-1)

    with pytest.raises(ValueError, match="utility.*shape"):
        PlackettLuceRanker(utility=Sum(), max_iter=2).fit(TASK.data, TASK.target, qid=TASK.qid)


def test_the_deterministic_solver_maximises_what_it_is_given():
    """For NDCG@2 it ends above where full NDCG ends, and the other way round."""
    fits = {
        k: PlackettLuceRanker(utility=NDCG(k=k), solver="lbfgs", alpha=1e-3).fit(TASK.data, TASK.target, qid=TASK.qid)
        for k in (2, None)
    }

    def objective(k, ranker):
        from skfairrank.metrics import stochastic_ndcg_score

        s = ranker.predict(TASK.data)
        ndcg = stochastic_ndcg_score(TASK.target, s, qid=TASK.qid, n_samples="exact", k=k)
        return ndcg - 5e-4 * ranker.coef_ @ ranker.coef_

    assert objective(2, fits[2]) > objective(2, fits[None]) + 1e-5
    assert objective(None, fits[None]) > objective(None, fits[2]) + 1e-5


def test_the_highest_grade_of_err():
    """Without it the highest relevance at hand is taken; one above it is an error."""
    offsets = np.array([0, len(Y)])
    np.testing.assert_array_equal(ERR().tables(Y, offsets).gain, ERR(max_relevance=3).tables(Y, offsets).gain)
    with pytest.raises(ValueError, match="relevance of 3"):
        ERR(max_relevance=2).tables(Y, offsets)


@pytest.mark.parametrize(
    "utility, message",
    [
        (NDCG(k=0), "'k' parameter"), (NDCG(k=2.5), "'k' parameter"), (NDCG(gain="exp"), "'gain' parameter"),
        (RBP(p=1.0), "'p' parameter"), (PrecisionAtK(k=None), "'k' parameter"), (DCG(), "not finite"),
        (NDCG, "utility"), ("mrr", "utility"), (3, "utility"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_utility_is_refused(utility, message):
    y = TASK.target + (2000 if isinstance(utility, DCG) else 0)
    with pytest.raises((ValueError, TypeError), match=message):
        PlackettLuceRanker(utility=utility, max_iter=2).fit(TASK.data, y, qid=TASK.qid)


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"discount": lambda self, n: np.ones(2)}, "10 finite numbers"),
        ({"discount": lambda self, n: np.full(n, np.nan)}, "10 finite numbers"),
        ({"gains": lambda self, y, offsets, discount: y}, "a pair"),
        ({"gains": lambda self, y, offsets, discount: (1.0, None)}, r"shape \(\) for 400 rows"),
        ({"gains": lambda self, y, offsets, discount: (y, y[:-1])}, r"shape \(399,\) for 400 rows"),
        ({"gains": lambda self, y, offsets, discount: (y, y + 1.5)}, "continuation outside"),
    ],
)
def test_tables_of_a_utility_of_ones_own_are_checked(changed, message):
    utility = type("Own", (DCG,), changed)()
    with pytest.raises(ValueError, match=message):
        PlackettLuceRanker(utility=utility, max_iter=2).fit(TASK.data, TASK.target, qid=TASK.qid)


def test_marks_are_no_grades():
    rng = np.random.default_rng(0)
    X, qid, marks = rng.normal(size=(60, 2)), np.repeat(np.arange(6), 10), rng.integers(0, 101, 60)
    with pytest.warns(UserWarning, match="above 10.*2 \\*\\* y - 1.*linear"):
        PlackettLuceRanker(max_iter=2, random_state=0).fit(X, marks, qid=qid)
    with pytest.warns(UserWarning, match="above 10"):
        audit(X[:, 0], y=marks, qid=qid)
    PlackettLuceRanker(utility=NDCG(gain="linear"), max_iter=2, random_state=0).fit(X, marks, qid=qid)
    PlackettLuceRanker(max_iter=2, random_state=0).fit(X, marks // 25, qid=qid)
