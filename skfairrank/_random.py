"""One kind of random stream for the whole package."""

from __future__ import annotations

import numbers

import numpy as np

__all__ = ["as_generator", "draw_keys", "spawn_generators"]


def draw_keys(rng: np.random.Generator, n: int) -> np.ndarray:
    """Keys of n independent streams of the kernels' counter-based generator (`_kernels/noise.py`), shape (n,), uint64."""
    return rng.integers(0, 2**64, size=n, dtype=np.uint64)


def spawn_generators(random_state, n: int) -> list[np.random.Generator]:
    """Independent Generators from a `random_state`, one for each purpose.

    A Generator that is passed gives a seed, and advances: spawning it would follow its seed sequence and not its state.
    """
    rng = as_generator(random_state)
    if isinstance(random_state, np.random.Generator):
        rng = np.random.default_rng(rng.integers(2**32, size=4))
    return rng.spawn(n)


def as_generator(random_state) -> np.random.Generator:
    """A `numpy.random.Generator` from what scikit-learn's users pass as `random_state`.

    Unlike `sklearn.utils.check_random_state`, None gives fresh entropy rather than NumPy's global stream, which this
    package never reads or advances.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or numpy.random.Generator
        A Generator is used as it is, and advances; a RandomState gives one seed, and advances.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(np.iinfo(np.int32).max, size=4))
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return np.random.default_rng(int(random_state))
    raise ValueError(
        f"random_state={random_state!r}: give None, a non-negative int, a numpy RandomState or a numpy Generator."
    )
