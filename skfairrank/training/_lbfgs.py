"""The deterministic solver: exact expectations and a regulariser in closed form make the objective a function of the parameters.

Minimises ``-mean U(theta) + rho R(theta) + alpha/2 ||theta||^2`` by L-BFGS-B. R has kinks, and its fair solutions sit in them; an
adversary in closed form knows its own, and how to minimise across them (`skfairrank.adversaries.ClosedForm.minimize`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from skfairrank._queries import centred
from skfairrank._threads import one_blas_thread
from skfairrank.policies import ExactGradient
from skfairrank.training._adam import HISTORY, Problem, TrainingState, utility_and_slope

# How a start is sought: the strength of the ridge, for features of unit deviation; how many signs are changed, one at a time; the
# most iterations for each; and the width to which the kinks of R are rounded off. Of 1,000 small random tasks 15 ended more
# than .001 below thousands of steps of Adam without this, and 1 with it; 42 and 19 ended below the best of eight random starts.
START_RIDGE, START_FLIPS, START_STEPS = 0.01, 3, 15

# Where the gradient vanishes, the objective is looked at along the ray through the solution, at these scales. Where it is better
# by so much there, the solver goes on from there; if that happens so often, it does not report convergence.
PLATEAU_SCALES, PLATEAU_GAIN, MOST_PLATEAUS = (4.0**-6, 4.0**-4, 4.0**-2, 0.25, 0.5, 2.0, 4.0, 16.0), 1e-4, 5


class _Stopped(Exception):
    """A callback asked to stop."""


class _Utility:
    """Mean expected utility of all training queries and its gradient, at the variables asked last.

    Variables are the parameters times `scale`: for a linear score the weights of features divided by their deviation within
    queries, which is all that rankings see of them. An income in cents, or a year, must not stop the solver.
    """

    def __init__(self, problem: Problem, scale: np.ndarray):
        self.batches, self.score, self.scale = problem.batches, problem.score, scale
        self.theta, self.value, self.gradient = None, 0.0, np.empty(len(scale))

    def __call__(self, v):
        theta = v / self.scale
        if self.theta is None or not np.array_equal(theta, self.theta):
            self.value, slope = utility_and_slope(self.batches, self.score, ExactGradient(), theta)
            self.theta, self.gradient = theta, slope / self.scale
        return self.value, self.gradient


def _deviation_within_queries(batches) -> np.ndarray:
    """Root mean square of each feature about the mean of its query; 1 where that is zero up to rounding."""
    squares, largest = np.zeros(batches.n_features), np.zeros(batches.n_features)
    for batch in batches.in_order():  # in the order of queries: sums do not depend on that of the rows
        X = batch.X[batch.rows].astype(np.float64)
        np.maximum(largest, np.abs(X).max(axis=0), out=largest)
        X = centred(X, batch.offsets)
        squares += (X * X).sum(axis=0)
    deviation = np.sqrt(squares / batches.sizes.sum())
    return np.where(deviation > 1e-12 * largest, deviation, 1.0)


class _Iteration(NamedTuple):
    """Parameters, and what the history says of them."""

    theta: Any
    utility: float
    regularizer: float
    query_distance: float
    multiplier: float


@dataclass
class Run:
    """One call of `solve`: its iterations, over several minimisations.

    Variables are v, the parameters times `scale`. An iteration is added or replaced at once: Ctrl-C may come after any
    call, and parameters and history are to agree.
    """

    utility: _Utility
    state: TrainingState
    regularizer: Any
    alpha: float
    tol: float
    max_iter: int
    after_iteration: Any
    iterations: list[_Iteration] = field(default_factory=list)
    converged: bool = True

    def __post_init__(self):
        self.look = self._next_look()
        self.initial = self.state.theta.copy()

    @property
    def scale(self) -> np.ndarray:
        return self.utility.scale

    @property
    def is_warm(self) -> bool:
        """Whether it begins elsewhere than at zero."""
        return bool(self.initial.any())

    @property
    def given_start(self) -> np.ndarray:
        return self.initial * self.scale

    def _next_look(self) -> int:
        """The iteration after which to report."""
        if self.after_iteration is None:
            return self.max_iter + 1
        return min(self.after_iteration.next_look(len(self.iterations)), self.max_iter)

    @property
    def left(self) -> int:
        return self.max_iter - len(self.iterations)

    def ridge(self, v):
        """alpha/2 ||theta||^2 and its gradient."""
        gradient = self.alpha * v / self.scale**2
        return 0.5 * float(gradient @ v), gradient

    def plain(self, v):
        """What the solver minimises, without R."""
        value, gradient = self.utility(v)
        ridge, of_ridge = self.ridge(v)
        return ridge - value, of_ridge - gradient

    def _iteration(self, v):
        (value, _), theta = self.utility(v), v / self.scale
        report = self.regularizer.add_gradient(None, theta, np.zeros(len(theta)))
        return _Iteration(theta, value, report.regularizer, report.query_distance, self.regularizer.multiplier)

    def record(self, v):
        self.iterations.append(self._iteration(v))
        if len(self.iterations) > 1:  # parameters are needed of the last one only
            self.iterations[-2] = self.iterations[-2]._replace(theta=None)
        if len(self.iterations) == self.look:
            self.look = self._next_look()
            self.publish()
            if self.after_iteration(self.state):
                raise _Stopped

    def accept(self, v):
        """Choose these variables: the last iteration, whatever it tried, is then theirs."""
        if self.iterations:
            self.iterations[-1] = self._iteration(v)
        else:
            self.state.theta = v / self.scale

    def publish(self):
        """Tell the training state of the iterations so far."""
        columns = np.array([iteration[1:] for iteration in self.iterations]).reshape(-1, 4).T.copy()
        self.state.history = dict(zip(HISTORY, columns, strict=True))
        self.state.n_iter = len(self.iterations)
        if self.iterations:
            self.state.theta, self.state.multiplier = self.iterations[-1].theta, float(self.iterations[-1].multiplier)

    def start(self, function, tol=1e-3):
        """Where to begin, in the neighbourhood of which solution: U is not concave, and has many.

        `function` is the objective, smooth. First comes what a ridge leads to from zero: without it steps may end on a plateau,
        where scores are so far apart that no gradient leads out. Then come its neighbours, in which one large weight has the
        other sign. All are followed roughly; the best is the start. Only the first counts as iterations.
        """
        if self.is_warm:
            return self.given_start

        def with_ridge(v):
            value, gradient = function(v)
            return value + 0.5 * START_RIDGE * float(v @ v), gradient + START_RIDGE * v

        ridge = self.descend(with_ridge, self.given_start, None, np.array, tol, START_STEPS)
        found, largest = [self.descend(function, ridge, None, np.array, tol, START_STEPS)], np.abs(ridge).max()
        for j in np.argsort(-np.abs(ridge), kind="stable")[: START_FLIPS if largest > 0 else 0]:
            other = ridge / largest
            other[j] *= -1.0
            found.append(self.descend(function, other, None, None, tol, START_STEPS))
        return min(found, key=lambda v: function(v)[0])

    def minimize(self, function, z, bounds, weights_of, tol):
        """`descend`, and on from plateaus; returns where it ended."""
        for _ in range(MOST_PLATEAUS):
            z = self.descend(function, z, bounds, weights_of, tol)
            if not self.converged:
                return z
            # Scores may lie so far apart, or so close, that the slope is below the tolerance over a long way.
            value, scaled = function(z)[0], {scale: function(scale * z)[0] for scale in PLATEAU_SCALES}
            scale = min(scaled, key=scaled.__getitem__)
            if not scaled[scale] < value - PLATEAU_GAIN:
                return z
            z = scale * z
        self.converged = False
        return z

    def descend(self, function, z, bounds, weights_of, tol, max_iter=None):
        """L-BFGS-B from z, to a gradient of `tol`; returns where it ended. Without `weights_of` iterations are not recorded."""
        if bounds is not None and all(lo is not None and lo == hi for lo, hi in bounds):
            self.converged = True
            return z
        if self.left <= 0:
            self.converged = False
            return z
        n = self.left if max_iter is None else max_iter if weights_of is None else min(max_iter, self.left)
        result = minimize(
            function,
            z,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=None if weights_of is None else lambda at: self.record(weights_of(at)),
            options={"maxiter": n, "maxfun": 20 * n + 100, "gtol": tol, "ftol": 1e-14, "maxcor": 20},
        )
        self.converged = result.status == 0 or _projected_gradient(result, bounds) <= 10 * tol
        return result.x


def _projected_gradient(result, bounds) -> float:
    """Largest entry of the gradient that bounds do not hold back."""
    gradient = np.abs(result.jac)
    if bounds is not None:
        held = [
            (lo is not None and x <= lo and (g >= 0 or lo == hi))
            for (lo, hi), x, g in zip(bounds, result.x, result.jac, strict=True)
        ]
        gradient[held] = 0.0
    return float(gradient.max(initial=0.0))


# On such short vectors BLAS threads wait for each other most of the time, and their number would change bits.
@one_blas_thread()
def solve(problem: Problem, state: TrainingState, *, tol, max_iter, after_iteration=None) -> None:
    """Maximise the problem's objective from ``state.theta``, in place on `state`.

    Parameters
    ----------
    problem : Problem
        Queries of up to `skfairrank.plackett_luce.EXACT_LIMIT` items; a regulariser in closed form that is prepared, or none.
    state : TrainingState
        Its `dual_variables` may come from a neighbouring problem.
    tol : float
        The largest entry of the projected gradient at which to stop, for features of unit deviation.
    max_iter : int
    after_iteration : object, optional
        As `progress` of `train`.
    """
    regularizer = problem.regularizer
    scale = _deviation_within_queries(problem.batches) if problem.score.is_linear else np.ones(len(state.theta))
    utility = _Utility(problem, scale)
    run = Run(utility, state, regularizer, problem.alpha, tol, max_iter, after_iteration)
    try:
        if regularizer.strength == 0:
            run.accept(run.minimize(run.plain, run.start(run.plain), None, np.array, tol))
        else:
            state.dual_variables = regularizer.minimize(run, dual_variables=state.dual_variables)
    except _Stopped:
        pass
    except KeyboardInterrupt:
        state.interrupted = True
    run.publish()
    if not np.isfinite(state.theta).all():
        raise ValueError("The solver diverged: weights are not finite. Scale the features (StandardScaler).")
    state.converged = state.converged and run.converged
