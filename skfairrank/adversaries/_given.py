"""The worst of given hypothetical rows, in batches (SenSTIR) and among the scores of all rows at once (boosting)."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skfairrank._checks import stores_parameters
from skfairrank.adversaries._base import Adversary, Attack, DualStep
from skfairrank.fair_metrics._distances import distances_of_rows
from skfairrank.hypotheticals import Hypotheticals, check_hypotheticals

# Halvings of the interval in which lambda lies, once it is known up to a factor of two.
_N_HALVINGS = 16


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
    """What `GivenHypotheticals` is once there are rows; `prepare` makes it ready for one training set and returns it."""

    uses_directions = False

    def __init__(self, candidates, epsilon, dual_step):
        self.candidates = candidates
        self.epsilon = epsilon
        self.dual_step = dual_step

    def prepare(self, batches, score, metric, *, rho, rng):
        """As `Adversary.prepare`; a metric that is None makes hypothetical rows free."""
        self._costs = None
        if metric is not None:
            self._costs = np.stack([distances_of_rows(batches.X, rows, metric) for rows in self.candidates])
        self._score, self._rho, self._step = score, float(rho), DualStep(self.dual_step, self.epsilon)
        return self

    def attack(self, batch, theta, multiplier):
        rows, sizes = batch.rows, np.diff(batch.offsets)
        h = self._score.values_of_rows(theta, batch.X, rows)
        changes = np.array([self._score.values_of_rows(theta, table, rows) - h for table in self.candidates])
        in_query = np.repeat(batch.weight / len(sizes), sizes)
        unfairness = 0.5 * changes**2
        responses, spent = self._responses(unfairness, rows, multiplier, np.repeat(sizes, sizes), in_query)
        regularizer, gradient = 0.0, np.zeros_like(theta)
        for chosen, share in responses:
            # Rows that meet themselves, or their equals, have no gradient.
            change = np.where(chosen < 0, 0.0, np.take_along_axis(changes, chosen[None], 0)[0])
            regularizer += share * float(in_query @ (0.5 * change**2))
            gradient += self._gradient(batch, theta, np.where(change == 0.0, -1, chosen), share * in_query * change)
        if not (isfinite(regularizer) and isfinite(spent)):
            raise ValueError(
                "The scores of hypothetical rows are not finite: features or weights are too large. Scale the features "
                "(StandardScaler), or lower learning_rate or rho."
            )
        moved = multiplier if self._costs is None else self._step(multiplier, spent)
        return Attack(regularizer, spent, gradient, moved)

    def _responses(self, unfairness, rows, multiplier, size, in_query):
        """The candidates that items take, each with its probability, one or two of them; and the mean cost."""
        if self._costs is None:
            return [(best_response(unfairness, None, 0.0)[0], 1.0)], 0.0
        costs = self._costs[:, rows]
        best, paid = best_response(self._rho * unfairness, costs, multiplier / size)
        spent = float((in_query / size) @ paid)
        if spent <= self._step.most_spent:
            return [(best, 1.0)], spent
        share = self._step.most_spent / spent
        free, _ = best_response(np.where(costs == 0.0, unfairness, -1.0), costs, 0.0)
        return [(best, share), (free, 1.0 - share)], share * spent

    def _gradient(self, batch, theta, chosen, g):
        """Gradient of ``sum_i g_i (h(x'_i) - h(x_i))``, with x'_i the chosen candidate of item i."""
        gradient, part = np.zeros_like(theta), np.empty_like(theta)
        tables = [(candidates, chosen == k, 1.0) for k, candidates in enumerate(self.candidates)]
        for X, is_taken, sign in (*tables, (batch.X, chosen >= 0, -1.0)):
            taken = np.flatnonzero(is_taken)
            if len(taken):
                self._score.vjp(theta, X, batch.rows[taken], g[taken], sign, part)
                gradient += part
        return gradient


def best_response(gain, costs, price):
    """The candidate with the largest ``gain - price cost`` of each row, -1 where the row itself is better; and what that costs.

    A candidate that costs nothing is better than the row itself also where there is nothing to gain: the two are then tied to
    each other before training has told them apart.

    Parameters
    ----------
    gain : ndarray, shape (n_candidates, n_rows)
    costs : ndarray, shape (n_candidates, n_rows), or None
        None: nothing costs anything.
    price : float or ndarray of shape (n_rows,)

    Returns
    -------
    chosen : ndarray of int, shape (n_rows,)
    cost : ndarray of float, shape (n_rows,)
    """
    value = gain if costs is None else gain - price * costs
    best, rows = value.argmax(axis=0), np.arange(gain.shape[1])
    if costs is None:
        return best, np.zeros(len(rows))
    cost = costs[best, rows]
    is_moved = ~(value[best, rows] <= 0) | (cost == 0)  # not finite: an error elsewhere
    return np.where(is_moved, best, -1), cost * is_moved


class Choice(NamedTuple):
    """What the adversary chose in one round.

    Parameters
    ----------
    hypothetical : ndarray of int64, shape (n_rows,)
        The number of each row's hypothetical row, or -1 where the row meets itself.
    difference : ndarray of float64, shape (n_rows,)
        Score of the row less that of its choice, h - h'.
    query_distance : float
        Mean over queries of d_Q(q, q'), rows paired with their own hypothetical rows.
    multiplier : float
        lambda.
    """

    hypothetical: np.ndarray
    difference: np.ndarray
    query_distance: float
    multiplier: float


class ListAdversary:
    """The adversary among finitely many hypothetical rows, or the row itself.

    So the dual (Bower et al. 2021, equation 4) is a piecewise linear function of lambda. A round sees all queries: where
    Algorithm 1 moves lambda by a step for each mini-batch, here lambda is the minimiser of the dual, up to the tolerance of a
    bisection.

    Chooses for each row the hypothetical row with the largest ``rho / 2 (h - h')^2 - lambda / n_q d_X``, if that pays.

    It pays where it is positive; and where it is 0 and the hypothetical row costs nothing, so that the two of them are tied to
    each other before any tree has told them apart. The sum over the rows of a query is ``rho / 2 ||h(q) - h(q')||^2 - lambda
    d_Q(q, q')``, as in Algorithm 1, with d_Q the mean of d_X over the query's n_q rows.

    Parameters
    ----------
    distances : ndarray of float, shape (n_hypotheticals, n_rows), or None
        d_X between each row and each of its hypothetical rows, >= 0. None: nothing costs anything.
    sizes : ndarray of int64, shape (n_queries,)
        Rows of each query; rows are grouped by query.
    weight : ndarray of float64, shape (n_queries,)
        Weights of the queries, of mean 1.
    rho, epsilon : float
        Strength of the regulariser, and the bound on the mean d_Q, in squared feature units.
    """

    def __init__(self, distances, sizes, weight, *, rho: float, epsilon: float):
        self.rho, self.epsilon = rho, epsilon
        #: What each row costs of its query's d_Q, shape (n_hypotheticals, n_rows); None where no row costs anything.
        self.shares = None if distances is None or not distances.any() else distances / np.repeat(sizes, sizes)
        self.row_weight = np.repeat(weight, sizes) / len(sizes)
        self.multiplier = 0.0

    def choose(self, h: np.ndarray, hypothetical: np.ndarray) -> Choice:
        """Attack scores.

        Parameters
        ----------
        h : ndarray of float64, shape (n_rows,)
            Scores of the rows.
        hypothetical : ndarray of float64, shape (n_hypotheticals, n_rows)
            Scores of their hypothetical rows.
        """
        gain = 0.5 * self.rho * np.square(h - hypothetical)
        chosen, spent = self._respond(gain, 0.0)
        self.multiplier, last = 0.0, self.multiplier
        if self.shares is not None and spent > self.epsilon:
            self.multiplier = self._least_multiplier(gain, self.shares, last)
            chosen, spent = self._respond(gain, self.multiplier)
        met = hypothetical[chosen, np.arange(len(h))]
        return Choice(chosen, np.where(chosen < 0, 0.0, h - met), spent, self.multiplier)

    def _respond(self, gain, multiplier):
        """The best response to lambda, and the mean d_Q that it spends."""
        chosen, cost = best_response(gain, self.shares, multiplier)
        return chosen, float(cost @ self.row_weight)

    def _least_multiplier(self, gain, shares, last: float) -> float:
        """About the least lambda whose answer keeps within the budget; the answer itself always does."""
        # From here on nothing that costs anything is chosen.
        ceiling = float(np.max(np.divide(gain, shares, out=np.zeros_like(gain), where=shares > 0)))
        low, high = 0.0, ceiling
        for guess in (0.5 * last, 2.0 * last):  # lambda moves little from one round to the next
            if low < guess < high:
                low, high = (low, guess) if self._keeps(gain, guess) else (guess, high)
        for _ in range(_N_HALVINGS if low > 0 else 2 * _N_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._keeps(gain, middle) else (middle, high)
        return high if high < ceiling else ceiling * (1.0 + 1e-9)  # beyond rounding, so that the budget holds

    def _keeps(self, gain, multiplier) -> bool:
        return self._respond(gain, multiplier)[1] <= self.epsilon
