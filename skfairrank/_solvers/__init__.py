"""Solvers: each improves the parameters of one `Problem`, in place on a `TrainingState`."""

from skfairrank._solvers._adam import Training
from skfairrank._solvers._lbfgs import solve
from skfairrank._solvers._problem import Problem, TrainingState, mean_utility, utility_and_slope

__all__ = ["Problem", "Training", "TrainingState", "mean_utility", "solve", "utility_and_slope"]
