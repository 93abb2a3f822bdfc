"""Interim."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skfairrank._kernels import exact as _exact
from skfairrank._kernels import policy as _policy
from skfairrank._threads import over_queries


@dataclass(frozen=True)
class Reinforce:
    n_samples: int
    kernel = staticmethod(_policy.reinforce)

    def __call__(self, batch, h, discount, gain=None):
        gradient, utility = np.empty(len(h)), np.empty(len(batch.offsets) - 1)
        over_queries(
            self.kernel,
            batch.offsets,
            3.0 * len(h) * self.n_samples,
            h,
            batch.offsets,
            batch.gain if gain is None else gain,
            discount,
            batch.key,
            self.n_samples,
            gradient,
            utility,
        )
        return gradient, utility

    def expected_discounts(self, batch, h, discount):
        out = np.empty(len(h))
        over_queries(
            _policy.sampled_discounts, batch.offsets, 1.0, h, batch.offsets, batch.key, self.n_samples, discount, out
        )
        return out

    def check(self, queries):
        pass


class PLRank(Reinforce):
    kernel = staticmethod(_policy.plrank)


@dataclass(frozen=True)
class SubsetSum:
    def __call__(self, batch, h, discount, gain=None):
        gradient, utility = np.empty(len(h)), np.empty(len(batch.offsets) - 1)
        over_queries(
            _exact.exact_gradient,
            batch.offsets,
            1.0,
            h,
            batch.offsets,
            batch.gain if gain is None else gain,
            discount,
            gradient,
            utility,
        )
        return gradient, utility

    def expected_discounts(self, batch, h, discount):
        out = np.empty(len(h))
        over_queries(_exact.expected_discounts, batch.offsets, 1.0, h, batch.offsets, discount, out)
        return out


def make_gradient(kind, n_samples):
    return {"reinforce": Reinforce, "plrank": PLRank}[kind](n_samples) if kind != "exact" else SubsetSum()
