"""What an adversary is: from a batch, a score and its parameters to unfair hypothetical queries (step (a) of Algorithm 1)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["Adversary", "Attack", "ClosedForm", "Prepared", "gaps_of", "ExactAdversary"]


class Attack(NamedTuple):
    """What an attack on a batch of queries found."""

    #: Mean over queries of 1/2 ||h(q) - h(q')||^2.
    regularizer: float
    #: Mean over queries of d_Q(q, q').
    query_distance: float
    #: Gradient of the mean regulariser in the parameters of the score, shape (n_parameters,).
    gradient: np.ndarray
    #: lambda after the dual step.
    multiplier: float


class Prepared(Protocol):
    """An adversary at work on one training set.

    One that keeps something from one attack to the next, other than the generator that it was given, has `state` and `restore` as
    well, as `skfairrank.adversaries._ascent.DualStep` has them.
    """

    #: Whether `value`, `dual_norm` and `minimize` of `ClosedForm` are there.
    is_closed_form: bool

    def attack(self, batch, theta: np.ndarray, multiplier: float) -> Attack:
        """Attack a batch at these parameters."""
        ...


class Adversary(BaseEstimator):
    """Parameters of an adversary; `prepare` gives the one that works.

    A class of its own needs `prepare`, and may set the attributes below.
    """

    _parameter_constraints: dict = {}

    #: Whether the supremum is known, so that the deterministic solver and the grid of a path can be had.
    is_closed_form = False
    #: Whether it moves items along the metric's directions, so that it matters what they hold of the groups' difference.
    uses_directions = True
    #: Whether it has a parameter `hypotheticals` and a method `among`, by which a ranker gives it their candidates.
    takes_hypotheticals = False

    def prepare(self, batches, score, metric, *, rho: float, rng: np.random.Generator) -> Prepared:
        """The adversary for one training set.

        Parameters
        ----------
        batches : skfairrank.training._batches.Batches
            Only its sizes, weights and number of features and queries are asked.
        score : skfairrank.scores.Score
        metric : fitted fair metric
        rho : float
            Strength of the regulariser.
        rng : numpy.random.Generator
            For random starts.

        Raises
        ------
        ValueError
            If a parameter is out of range, or the adversary can't attack this score under this metric.
        """
        raise NotImplementedError(f"{type(self).__name__} has no prepare(batches, score, metric, rho=, rng=).")


class ClosedForm:
    """The largest regulariser there is within bounds, as a function R of linear weights w.

    Derived classes give `measure`, `dual_norm` and `minimize`; and `furthest`, `moves_items_alone` and `is_centered` for
    `skfairrank.adversaries._search`, which attacks other scores within the same bounds.
    """

    is_closed_form = True

    def measure(self, w: np.ndarray) -> tuple[float, float, np.ndarray, float | None]:
        """R, what is spent of the budget, the gradient of R (a new array), and the multiplier of the budget or None."""
        raise NotImplementedError

    def dual_norm(self, slope: np.ndarray) -> float:
        """The largest slope.w of weights whose R is half the mean query size, or more than that: it ends a grid of rho."""
        raise NotImplementedError

    def minimize(self, run, rho: float, forces=None):
        """Minimise ``run.plain(v) + rho R`` in place on `run` (see `skfairrank.training._lbfgs.Run`).

        Parameters
        ----------
        forces : ndarray, optional
            What an earlier call on a neighbouring problem returned.
        """
        raise NotImplementedError

    def attack(self, batch, theta, multiplier):
        value, spent, gradient, found = self.measure(theta)
        return Attack(value, spent, gradient, multiplier if found is None else found)


class ExactAdversary(Adversary):
    """An adversary whose worst case for linear scores is known; `bounds` gives the closed form."""

    is_closed_form = True

    def bounds(self, batches, metric, rho: float = 1.0) -> ClosedForm:
        """The closed form on one training set."""
        raise NotImplementedError

    def prepare(self, batches, score, metric, *, rho=1.0, rng=None):
        if not score.is_linear:
            raise ValueError(
                f"{type(self).__name__} knows the largest regulariser in closed form for linear scores only, and "
                f'score_function is {score!r}: use adversary="ascent" or "gaps_ascent".'
            )
        return self.bounds(batches, metric, rho)


def gaps_of(metric) -> np.ndarray:
    """The groups' gaps in the features, as the metric has learned them."""
    if not hasattr(metric, "gaps_"):
        raise ValueError(
            f'{type(metric).__name__} has no gaps_: adversary="gaps" needs a metric that knows how far groups lie apart in each '
            "feature, such as SensitiveSubspaceMetric."
        )
    return np.asarray(metric.gaps_, dtype=np.float64)
