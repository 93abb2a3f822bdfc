"""The worst of given hypothetical rows: for people who know what the other item would look like."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skfairrank._checks import stores_parameters
from skfairrank.adversaries._ascent import DualStep
from skfairrank.adversaries._base import Adversary, Attack
from skfairrank.fair_metrics._distances import distances_of_rows
from skfairrank.hypotheticals import Hypotheticals, check_hypotheticals

__all__ = ["GivenHypotheticals"]


class GivenHypotheticals(Adversary):
    """Every item becomes the worst of its hypothetical rows, for scores of every kind.

    Of an item x and its candidates it takes the x' with the largest ``rho/2 (h(x) - h(x'))^2 - lambda d_X(x, x') / n``, with n
    the size of the item's query: step (a) of Algorithm 1 (Bower et al. 2021), items paired with their own candidates. The
    choice is exact, for scores of every kind. What a query is charged is the mean d_X of the rows taken, an upper bound of d_Q,
    since no cheaper pairing is sought.

    Where a batch would spend more than the dual step allows, the adversary takes these rows with the probability that spends just
    so much, and else the worst of those that cost nothing: a coupling is a distribution, and may.

    Parameters
    ----------
    hypotheticals : callable, list or dict of callable, Hypotheticals, optional
        Where hypothetical rows come from, beside the `X_hypothetical` of `fit`: functions X -> X' that turn rows into what the
        same items might as well have been, or ``skfairrank.hypotheticals.Hypotheticals(...)``, which has further sources.
        Functions get the training rows once, as they came to `fit`: as a DataFrame if that is what came, and in a pipeline behind
        its other steps. Each set of their rows is kept, and is as large as X; rows too many for memory go to `X_hypothetical` as
        a memory map.
    epsilon : float, default=0.01
        Transport budget: bound on the mean d_Q, in squared feature units. Without a metric hypothetical rows cost nothing.
    dual_step : {"budget", "paper"}, default="budget"
        How lambda moves, as for `Ascent`.
    """

    _parameter_constraints: dict = {
        "hypotheticals": [callable, list, tuple, Mapping, Hypotheticals, None],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "dual_step": [StrOptions({"budget", "paper"})],
    }
    takes_hypotheticals = True

    @stores_parameters
    def __init__(self, hypotheticals=None, *, epsilon=0.01, dual_step="budget"): ...

    @property
    def uses_directions(self):  # type: ignore[override]
        return check_hypotheticals(self.hypotheticals).directions

    def prepare(self, batches, score, metric, *, rho, rng):
        raise ValueError(
            "GivenHypotheticals attacks rows for which it has candidates: a ranker gives them by `among` before it prepares the "
            "adversary."
        )

    def among(self, candidates: list[np.ndarray]) -> Adversary:
        """The adversary with its candidates.

        Parameters
        ----------
        candidates : list of ndarray of float32 or float64, shape (n_rows, n_features)
            Each has the hypothetical rows of all rows of the training set, in their order. They are read where they lie.
        """
        self._validate_params()
        return _AmongCandidates(candidates, float(self.epsilon), self.dual_step)


class _AmongCandidates(Adversary):
    """What `GivenHypotheticals` is once there are rows."""

    uses_directions = False

    def __init__(self, candidates, epsilon, dual_step):
        self.candidates = candidates
        self.epsilon = epsilon
        self.dual_step = dual_step

    def prepare(self, batches, score, metric, *, rho, rng):
        """As `Adversary.prepare`; a metric that is None makes hypothetical rows free."""
        costs = None
        if metric is not None:
            costs = np.stack([distances_of_rows(batches.X, rows, metric) for rows in self.candidates])
        dual_step = DualStep(self.dual_step, self.epsilon)
        return _PreparedGiven(self.candidates, costs, score, float(rho), dual_step)


class _PreparedGiven:
    """The adversary at work.

    Parameters
    ----------
    candidates : list of ndarray, shape (n_rows, n_features)
    costs : ndarray of float64, shape (n_candidates, n_rows), or None
        d_X between rows and their candidates; None: all are free.
    score : skfairrank.scores.Score
    rho : float
    dual_step : DualStep
    """

    is_closed_form = False

    def __init__(self, candidates, costs, score, rho, dual_step):
        self.candidates, self.costs = candidates, costs
        self.score, self.rho, self.dual_step = score, rho, dual_step

    def attack(self, batch, theta, multiplier):
        rows, sizes = batch.rows, np.diff(batch.offsets)
        h = self.score.values_of_rows(theta, batch.X, rows)
        # The first row of `gaps` and of `costs` is the item itself.
        gaps = np.zeros((len(self.candidates) + 1, len(rows)))
        for gap, candidates in zip(gaps[1:], self.candidates, strict=True):
            gap[:] = self.score.values_of_rows(theta, candidates, rows) - h
        in_query = np.repeat(batch.weight / len(sizes), sizes)
        unfairness = 0.5 * gaps**2
        if self.costs is None:
            moves, spent = [(np.argmax(unfairness, axis=0), 1.0)], 0.0
        else:
            costs = np.vstack([np.zeros(len(rows)), self.costs[:, rows]])
            moves, spent = self._moves(unfairness, costs, multiplier, np.repeat(sizes, sizes), in_query)
        at = np.arange(len(rows))
        regularizer = sum(share * float(in_query @ unfairness[chosen, at]) for chosen, share in moves)
        if not (isfinite(regularizer) and isfinite(spent)):
            raise ValueError(
                "The scores of hypothetical rows are not finite: features or weights are too large. Scale the features "
                "(StandardScaler), or lower learning_rate or rho."
            )
        gradient = np.zeros_like(theta)
        for chosen, share in moves:
            gradient += self._gradient(batch, theta, chosen, share * in_query * gaps[chosen, at])
        moved = multiplier if self.costs is None else self.dual_step(multiplier, spent)
        return Attack(regularizer, spent, gradient, moved)

    def _moves(self, unfairness, costs, multiplier, size, in_query):
        """Which candidate each item takes, as (numbers, probability), one or two of them; and the mean cost."""
        best = np.argmax(self.rho * unfairness - multiplier / size * costs, axis=0)
        spent = float((in_query / size) @ costs[best, np.arange(len(size))])
        if spent <= self.dual_step.most_spent:
            return [(best, 1.0)], spent
        share = self.dual_step.most_spent / spent
        free = np.argmax(np.where(costs == 0.0, unfairness, -1.0), axis=0)
        return [(best, share), (free, 1.0 - share)], share * spent

    def _gradient(self, batch, theta, chosen, g):
        """Gradient of ``sum_i g_i (h(x'_i) - h(x_i))``, with x'_i the chosen candidate of item i."""
        gradient, part = np.zeros_like(theta), np.empty_like(theta)
        for k, candidates in enumerate(self.candidates, start=1):
            taken = np.flatnonzero(chosen == k)
            if len(taken):
                self.score.vjp(theta, candidates, batch.rows[taken], g[taken], 1.0, part)
                gradient += part
        moved = np.flatnonzero(chosen)
        if len(moved):
            self.score.vjp(theta, batch.X, batch.rows[moved], g[moved], -1.0, part)
            gradient += part
        return gradient
