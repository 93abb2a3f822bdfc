"""Random numbers of the kernels: the generator against published answers, its numbers against their definition."""

import numba
import numpy as np
import pytest
import reference
from scipy import stats

from skfairrank._kernels import sampling
from skfairrank._kernels.sampling import LANES

# counter, key, answer: the known-answer tests of the Random123 library for philox4x32, 10 rounds
KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


SEVEN = np.uint64(7)


@numba.njit
def fill(key, query, block, n, out):
    sampling.exponentials(key, query, block, n, out)


@numba.njit
def exponential_of(bits, out):
    for i in range(len(bits)):
        out[i] = sampling.exponential(bits[i])


def numbers(key=SEVEN, query=0, group=0, half=1):
    out = np.empty((2 * half, LANES))
    fill(key, query, group, 2 * half, out.reshape(-1))
    return out


@pytest.mark.parametrize("counter, key, answer", KNOWN)
def test_the_readable_generator_gives_the_published_answers(counter, key, answer):
    assert list(reference.philox(counter, key)) == answer


def test_exponentials_are_minus_logarithms_to_the_last_places():
    rng = np.random.default_rng(0)
    bits = np.r_[rng.integers(0, 2**64, 100_000, dtype=np.uint64), 0, 2**12, 2**64 - 1, 2**64 - 2**12, 2**63, 2**63 - 1]
    bits = bits.astype(np.uint64)
    out = np.empty(len(bits))
    exponential_of(bits, out)
    u = ((bits >> np.uint64(12)).astype(float) + 0.5) / 2.0**52
    expected = np.where(u > 0.5, -np.log1p(-(1 - u)), -np.log(u))  # 1 - u is exact
    assert np.isfinite(out).all() and (out > 0).all()
    assert np.abs(out / expected - 1).max() < 5e-16


@pytest.mark.parametrize("half", [1, 3, 10])
def test_numbers_are_those_of_their_counters(half):
    key = np.uint64(2**64 - 12345)
    got = numbers(key, 5, 2, half)
    expected = reference.exponentials(key, 5, 24, 2 * half)[16:].T
    np.testing.assert_allclose(got, expected, rtol=5e-16)


def test_no_two_uses_share_a_number():
    """Keys of both halves, queries, groups, items, lanes."""
    keys = [np.uint64(k) for k in (1, 2, 2**32, 2**33)]
    found = [numbers(key, q, g, 4) for key in keys for q in range(4) for g in range(4)]
    assert len(np.unique(found)) == np.size(found)


def test_numbers_are_exponential_and_independent():
    x = np.concatenate([numbers(np.uint64(k), half=100).ravel() for k in range(100)])
    assert stats.kstest(x, "expon").pvalue > 1e-3
    for lag in (1, 8, 800, 1600):  # the next lane, item, half, key
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 4.5 / np.sqrt(len(x))
    across = np.array([numbers(query=q, group=g)[0, 0] for q in range(100) for g in range(100)])
    assert stats.kstest(across, "expon").pvalue > 1e-3
    assert abs(np.corrcoef(across[:-1], across[1:])[0, 1]) < 4.5 / 100
