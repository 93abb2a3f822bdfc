"""Training: what is maximised (a `Problem` of batches, score, gradient and regulariser), and the two solvers that do it.

Nothing here knows an estimator.
"""

from skfairrank.training._batches import Batch

__all__ = ["Batch"]
