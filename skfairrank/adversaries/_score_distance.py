"""d_R: how far apart the scores of two queries are, as they stand or less the mean change within each query.

A ranking does not change when all scores of a query change alike, so `"centered"` charges nothing for that.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils._param_validation import StrOptions

__all__ = ["SCORE_DISTANCE", "effective_sizes"]

#: The constraint on the parameter `score_distance`.
SCORE_DISTANCE = [StrOptions({"squared", "centered"})]


def effective_sizes(sizes, score_distance) -> np.ndarray:
    """The largest ``||h(q) - h(q')||^2`` (centered: of its deviations from the mean) where each score changes by at most 1.

    That is n as it stands. Centered it is n - (n mod 2) / n: it is convex in the changes, so that the largest has changes of +-1.
    Their squares sum to n, of which n times the square of their mean is taken away; that is least where as many rise as fall.
    """
    sizes = np.asarray(sizes)
    return sizes if score_distance == "squared" else sizes - (sizes % 2) / sizes
