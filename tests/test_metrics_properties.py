"""What holds for every metric, whatever the data: one test per property."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metrics_under_test import (
    DETERMINISTIC,
    HAS_GROUPS,
    METRICS,
    STOCHASTIC,
    random_data,
    sampling,
)

from skfairrank.metrics import individual_exposure_disparity

pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")]
every_metric = pytest.mark.parametrize("name", METRICS)
ragged = st.lists(st.integers(1, 50), min_size=1, max_size=6)
short = st.lists(st.integers(1, 9), min_size=1, max_size=6)
seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=6, deadline=None, derandomize=True)


@every_metric
@some
@given(sizes=ragged, seed=seeds)
def test_interleaving_and_relabelling_of_queries_change_no_bit(name, sizes, seed):
    rng = np.random.default_rng(seed)
    data = random_data(rng, sizes)
    by_query = data.take(np.argsort(data.qid, kind="stable"))
    places = rng.permutation(data.qid)  # whose row comes next; each query hands out its rows in their own order
    rows = np.empty(len(places), int)
    rows[np.argsort(places, kind="stable")] = np.arange(len(places))
    interleaved = by_query.take(rows)
    _, codes = np.unique(data.qid, return_inverse=True)
    relabelled = replace(data, qid=np.char.add("query ", np.char.zfill(codes.astype(str), 3)))
    values = [METRICS[name](each, **sampling(name)) for each in (data, by_query, interleaved, relabelled)]
    np.testing.assert_array_equal(values, values[0])


@pytest.mark.parametrize("name", DETERMINISTIC)
@some
@given(sizes=ragged, seed=seeds)
def test_order_of_rows_does_not_matter(name, sizes, seed):
    rng = np.random.default_rng(seed)
    data = random_data(rng, sizes, ties=name != "kendall_tau")  # its ties are broken by row order
    shuffled = data.take(rng.permutation(len(data.y)))
    np.testing.assert_allclose(METRICS[name](shuffled), METRICS[name](data), rtol=1e-12, atol=1e-15)


@every_metric
@some
@given(sizes=short, seed=seeds)
def test_values_of_queries_are_those_of_each_query_alone(name, sizes, seed):
    """In sorted order of the ids, nan where undefined; and the mean is that of those which are left."""
    data = random_data(np.random.default_rng(seed), sizes)
    values = METRICS[name](data, reduce=None, **exactly(name))
    alone = [METRICS[name](data.take(data.qid == q), **exactly(name)) for q in np.unique(data.qid)]
    assert values.shape == (len(sizes),)
    np.testing.assert_allclose(values, alone, rtol=1e-12, atol=1e-15)
    mean = np.nanmean(values) if not np.isnan(values).all() else np.nan
    np.testing.assert_allclose(METRICS[name](data, **exactly(name)), mean, rtol=1e-12, atol=1e-15)


def exactly(name):
    return sampling(name, "exact")


@pytest.mark.parametrize("factor", [0.1, 1e-9, 7.0])
@every_metric
def test_size_of_the_scores_matters_to_the_policy_alone(name, factor):
    """Softness is not fairness: scores multiplied by .1 sort every list as before."""
    data = random_data(np.random.default_rng(1), [4, 5, 6] * 5)
    data = replace(data, y=20 + data.y)  # where merits are much alike, exposure per merit is not
    scaled = replace(data, s=factor * data.s, s2=factor * data.s2)
    before, after = (METRICS[name](each, **exactly(name)) for each in (data, scaled))
    assert (before == after) == (name in DETERMINISTIC)


@pytest.mark.parametrize("name", HAS_GROUPS)
def test_names_of_the_groups_matter_to_the_default_rule_of_ties_alone(name):
    """In every query both groups have the same merit, so that the rule decides everywhere."""
    rng = np.random.default_rng(0)
    data = random_data(rng, [6] * 30, ties=False)
    g = np.empty(len(data.y), int)
    for q in np.unique(data.qid):
        g[data.qid == q] = rng.permutation([0, 0, 0, 1, 1, 1])
    data = replace(data, y=np.full(len(g), 2.0), g=g)
    old, young = (
        METRICS[name](replace(data, g=np.array(names)[g]), **exactly(name)) for names in (["a", "b"], ["b", "a"])
    )
    if name in ("disparity", "sorted_disparity"):
        assert old != pytest.approx(young, rel=1e-3)
    else:
        assert old == pytest.approx(young, rel=1e-12)


@pytest.mark.parametrize("name", STOCHASTIC)
def test_random_state(name):
    """An int repeats, a Generator goes on, None differs; NumPy's global state is neither read nor changed."""
    data = random_data(np.random.default_rng(0), [8] * 20)
    before = np.random.get_state()[1].copy()
    one, again, other = (METRICS[name](data, **sampling(name, random_state=seed)) for seed in (0, 0, 1))
    generator = np.random.default_rng(0)
    first, second = (METRICS[name](data, **sampling(name, random_state=generator)) for _ in range(2))
    fresh = {METRICS[name](data, **sampling(name, random_state=None)) for _ in range(5)}
    METRICS[name](data, **sampling(name, random_state=np.random.RandomState(0)))
    assert one == again == first
    assert len({one, other, second}) == 3 and len(fresh) > 1
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize("name", STOCHASTIC)
def test_samples_converge_to_the_exact_expectation(name):
    data = random_data(np.random.default_rng(3), [4, 5, 6] * 20)
    exact = METRICS[name](data, n_samples="exact")
    assert METRICS[name](data, n_samples=20_000, random_state=0) == pytest.approx(exact, rel=0.02)


def test_100_000_rows_of_one_query_of_equal_merit():
    """The sum of max(0, v_i - v_j) over pairs is that of (n - 2r + 1) v_r over the ranks r; a loop over pairs takes minutes."""
    n = 100_000
    s = np.random.default_rng(0).normal(size=n)
    ranks = np.arange(1, n + 1)
    expected = np.sum((n - 2 * ranks + 1) / np.log2(1 + ranks)) / n**2
    got = individual_exposure_disparity(np.ones(n), s, qid=np.zeros(n), policy="deterministic")
    assert got == pytest.approx(expected, rel=1e-9)
