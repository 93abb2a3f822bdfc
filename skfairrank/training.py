"""Algorithm 1 of Bower et al. 2021 for linear scores: stochastic ascent on utility minus rho times the invariance regulariser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from skfairrank import scores
from skfairrank._kernels import exact as _exact
from skfairrank._kernels import gradients as _gradients
from skfairrank._kernels import linear as _linear
from skfairrank._queries import Queries
from skfairrank._random import draw_keys
from skfairrank._threads import over_queries

__all__ = ["GRADIENTS", "Batch", "BatchStream", "Data", "PolicyGradient", "TrainingState", "train"]


@dataclass(frozen=True)
class Data:
    """Training data as the core sees it.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_rows, n_features)
        In the caller's row order; never copied or sorted.
    queries : Queries
    gain : ndarray of float64, shape (n_rows,)
        Normalised gains in the caller's row order: the sum of gain times discount is a query's utility.
    discount : ndarray of float64, shape (largest query size,)
    """

    X: np.ndarray
    queries: Queries
    gain: np.ndarray
    discount: np.ndarray


class Batch(NamedTuple):
    """A mini-batch: `rows` of X, query after query; `offsets` (from 0) tell queries apart, `key` is for the noise."""

    queries: np.ndarray
    rows: np.ndarray
    offsets: np.ndarray
    gain: np.ndarray
    key: np.uint64


# Rows and steps prepared at once. The streams do not depend on it.
_ROWS, _STEPS = 1 << 16, 512


class BatchStream:
    """Mini-batches: passes over all queries in random order, cut into batches of `batch_size`, and a key for the noise
    of each.

    Parameters
    ----------
    data : Data
    batch_size : int
        At most all queries.
    order_rng, noise_rng : numpy.random.Generator
    """

    def __init__(self, data: Data, batch_size: int, order_rng, noise_rng):
        queries = data.queries
        self.data, self.queries, self.batch_size = data, queries, min(batch_size, queries.n_queries)
        self.order_rng, self.noise_rng = order_rng, noise_rng
        mean_rows = self.batch_size * queries.n_rows / queries.n_queries
        self.at_once = int(max(1, min(_STEPS, _ROWS / mean_rows)))
        self.stock = np.empty(0, np.int64)

    def take(self, n_steps: int) -> list[Batch]:
        """The next batches, `n_steps` of them or fewer."""
        queries, B = self.queries, self.batch_size
        steps = min(self.at_once, n_steps)
        while len(self.stock) < steps * B:
            self.stock = np.r_[self.stock, self.order_rng.permutation(queries.n_queries)]
        chosen, self.stock = self.stock[: steps * B].reshape(steps, B), self.stock[steps * B :]
        ends = np.cumsum(queries.sizes[chosen].sum(axis=1))
        offsets, rows, gain = np.empty((steps, B + 1), np.int64), np.empty(ends[-1], np.int64), np.empty(ends[-1])
        _linear.pick_rows(chosen, queries.order, queries.offsets, self.data.gain, offsets, rows, gain)
        keys = draw_keys(self.noise_rng, steps)
        if queries.are_of_one_size:  # as below, faster
            return list(map(Batch, chosen, rows.reshape(steps, -1), offsets, gain.reshape(steps, -1), keys))
        starts = np.r_[0, ends[:-1]].tolist()
        return [
            Batch(chosen[s], rows[start:end], offsets[s], gain[start:end], keys[s])
            for s, (start, end) in enumerate(zip(starts, ends.tolist(), strict=True))
        ]


class PolicyGradient:
    """Gradient of the expected utility of a batch in its scores, by one of `GRADIENTS`.

    Parameters
    ----------
    data : Data
    kind : {"reinforce", "plrank", "exact"}
    n_samples : int
        Sampled rankings per query; "exact" uses none.
    """

    def __init__(self, data: Data, kind: str, n_samples: int):
        self.data, self.kind, self.kernel = data, kind, GRADIENTS[kind]
        self.n_samples = 0 if kind == "exact" else n_samples
        sizes = data.queries.sizes
        self.work_of_row = _NANOSECONDS[kind](sizes) * max(self.n_samples, 1)

    def __call__(self, batch: Batch, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Gradient (n_rows of the batch,), utility (n_queries,), and the mean penalty that the gradient contains (here 0)."""
        return *self._differentiate(batch, h, batch.gain), 0.0

    def _differentiate(self, batch, h, gain):
        gradient, utility = np.empty(len(h)), np.empty(len(batch.queries))
        if self.kind == "exact":
            arguments: tuple = (h, batch.offsets, gain, np.empty(0), self.data.discount, gradient, utility)
        else:
            no_stay = np.empty(0)
            arguments = (
                h,
                batch.offsets,
                gain,
                no_stay,
                self.data.discount,
                batch.key,
                self.n_samples,
                gradient,
                utility,
            )
        over_queries(self.kernel, batch.offsets, self.work_of_row * len(h), *arguments)
        return gradient, utility


# For each row and sample, roughly, by query sizes.
_NANOSECONDS = {
    "reinforce": lambda sizes: 2.4 + 0.06 * float(sizes.mean()),
    "plrank": lambda sizes: 6.0 + 0.2 * float(sizes.mean()),
    "exact": lambda sizes: 2.0 * _exact.subset_work(sizes) / float(sizes.sum()),
}
GRADIENTS = {"reinforce": _gradients.reinforce, "plrank": _gradients.plrank, "exact": _exact.exact_gradient}


@dataclass
class TrainingState:
    """What training has reached; everything an estimator takes over as attributes."""

    w: np.ndarray
    lambda_: float
    n_iter: int = 0
    planned: int = 0
    history: dict = field(default_factory=dict)
    interrupted: bool = False
    converged: bool = True


def train(
    data: Data,
    state: TrainingState,
    policy_gradient: PolicyGradient,
    adversary,
    *,
    rho: float,
    max_iter: int,
    n_plain: int,
    batch_size: int,
    learning_rate: float,
    alpha: float,
    order_rng,
    noise_rng,
    progress=None,
    projector=None,
) -> None:
    """Run Algorithm 1, in place on `state`.

    Parameters
    ----------
    adversary : object with attack(batch, w, lambda_), or None
        None trains without the regulariser.
    n_plain : int
        Steps before the regulariser sets in; then the optimiser's state is reset.
    progress : object, optional
        ``progress(state)`` is called after step ``progress.next_look(n_iter)``; a true answer ends training.
    projector : ndarray, shape (n_features, n_features), optional
        Keeps weights in the subspace onto which it projects.

    Raises
    ------
    ValueError
        If weights or gradients are not finite.
    """
    w, B = state.w, min(batch_size, data.queries.n_queries)
    m, v, gradient = np.zeros_like(w), np.zeros_like(w), np.empty_like(w)
    history = {name: np.zeros(max_iter) for name in ("utility", "regularizer", "query_distance", "lambda")}
    utilities, regularizers, distances, multipliers = history.values()
    state.history = history
    stream = BatchStream(data, batch_size, order_rng, noise_rng)
    t = 0
    done = state.n_iter, w.copy(), state.lambda_
    try:
        while state.n_iter < max_iter:
            look = max_iter if progress is None else min(max_iter, progress.next_look(state.n_iter))
            for batch in stream.take(look - state.n_iter):
                regularised = adversary is not None and state.n_iter >= n_plain
                if regularised and state.n_iter == n_plain:
                    m[:], v[:], t = 0.0, 0.0, 0
                h = scores.values(data.X, batch.rows, w)
                ascent, utility, penalty = policy_gradient(batch, h)
                scores.pull_back(data.X, batch.rows, ascent, 1.0 / B, gradient)
                step = state.n_iter
                utilities[step] = _linear.mean(utility)
                regularizers[step] = penalty
                if regularised:
                    attack = adversary.attack(batch, w, state.lambda_)
                    state.lambda_ = attack.multiplier
                    _linear.subtract(gradient, rho, attack.gradient)
                    regularizers[step] = attack.regularizer
                    distances[step] = attack.query_distance
                multipliers[step] = state.lambda_
                if alpha:
                    gradient -= alpha * w
                t += 1
                if projector is not None:
                    gradient = projector @ gradient
                _linear.adam_step(w, gradient, m, v, t, learning_rate)
                if projector is not None:
                    w[:] = projector @ w
                # What belongs together changes at once.
                done = state.n_iter + 1, w.copy(), state.lambda_
                state.n_iter += 1
            if not (np.isfinite(w).all() and np.isfinite(v).all()):
                raise ValueError(
                    "Training diverged: weights or gradients are not finite. Scale the features (StandardScaler), or lower "
                    "learning_rate, rho or fairness_weight, or an attack's step size."
                )
            if progress is not None and state.n_iter == look and progress(state):
                break
    except KeyboardInterrupt:  # it may come within a step, which then does not count
        state.n_iter, w[:], state.lambda_ = done
        state.interrupted = True
    state.history = {name: values[: state.n_iter] for name, values in history.items()}
