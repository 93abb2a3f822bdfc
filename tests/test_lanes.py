"""Ranks and sums over rankings in lanes, against sorting; with ties and padding."""

import numba
import numpy as np
import pytest

from skfairrank._kernels import lanes
from skfairrank._kernels.vectors import LANES


@numba.njit  # not cached: the cache on disk does not see that the functions called have changed
def everything(m, keys, weight, values, factor, rank, share, left, before, after, added):
    lanes.count_before(m, keys, rank)
    counted = rank.copy()
    lanes.rank_and_share(m, keys, weight, rank, share)
    lanes.weigh_from(m, keys, weight, left)
    lanes.sum_before(m, keys, values, before)
    lanes.sum_after(m, keys, values, after)
    lanes.accumulate(m, keys, values, factor, added)
    return counted


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 15, 16, 17, 50, 255, 256])
@pytest.mark.parametrize("ties", [False, True])
def test_ranks_and_sums_are_those_of_sorting(n, ties):
    rng, m = np.random.default_rng(n), n + n % 2
    keys = np.full((m, LANES), np.inf)  # the padding comes last
    wide = rng.exponential(size=(n, LANES)) * 10.0 ** rng.uniform(-200, 200, (n, LANES))
    keys[:n] = rng.integers(1, 4, (n, LANES)) if ties else wide
    weight, values, factor = np.zeros(m), np.zeros((m, LANES)), rng.normal(size=LANES)
    weight[:n], values[:n] = rng.random(n), rng.normal(size=(n, LANES))
    rank, start = np.full((m, LANES), -1), rng.normal(size=(m, LANES))
    share, left, before, after = np.full((4, m, LANES), np.nan)
    added = start.copy()
    counted = everything(m, keys, weight, values, factor, rank, share, left, before, after, added)
    for lane in range(LANES):
        order = np.argsort(keys[:n, lane], kind="stable")  # of equal keys the first item's is the smaller
        assert rank[order, lane].tolist() == list(range(n)) and (counted[:n, lane] == rank[:n, lane]).all()
        expected = np.cumsum(weight[order][::-1])[::-1]
        np.testing.assert_allclose(left[order, lane], expected, rtol=1e-13)
        np.testing.assert_allclose(share[order, lane], 1 / expected, rtol=1e-13)
        v = values[order, lane]
        np.testing.assert_allclose(before[order, lane], np.cumsum(v), atol=1e-12)
        np.testing.assert_allclose(after[order, lane], v.sum() - np.cumsum(v), atol=1e-12)
        np.testing.assert_allclose((added - start)[order, lane], factor[lane] * np.cumsum(v), atol=1e-12)
        assert after[order[-1], lane] == 0  # exactly: nothing follows the last item


@pytest.mark.parametrize("keys", [np.ones((4, 2 * LANES))[:, ::2], np.ones((4, LANES), np.int32)])
def test_arrays_that_vectors_cannot_read_are_refused(keys):
    @numba.njit
    def rank(keys, out):
        lanes.count_before(4, keys, out)

    with pytest.raises(Exception, match="contiguous arrays of int64 or float64"):
        rank(keys, np.zeros((4, LANES), np.int64))
