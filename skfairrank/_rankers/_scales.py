"""A warning for features of very different scale, which steps of one length do not learn together."""

from __future__ import annotations

import numpy as np

from skfairrank._checks import warn_caller
from skfairrank._queries import Queries, centred

__all__ = ["N_NUMBERS", "warn_of_scales"]

# Adam moves all weights by about the same length. In trials (learning_rate .01, 2,000 steps) a feature a hundred times smaller
# than the others was learned no better than if it were not there, and one ten thousand times larger drowned the others.
LARGEST_RATIO = 100.0
# Where no feature varies more than this, a small one may be what a projection left of it, and is to stay small.
LEAST_DEVIATION = 10.0
# Numbers looked at: the first rows, in the order of their queries.
N_NUMBERS = 100_000
N_NAMED = 3


def warn_of_scales(X: np.ndarray, queries: Queries, names=None) -> None:
    """Warn where a feature's deviation is more than a hundred times what another could have within its range, and large.

    Both are within queries, which is all that rankings see. A rare category has a small deviation, but its range is that of other
    categories; so it is not meant.

    Parameters
    ----------
    X : ndarray of float, shape (n_rows, n_features)
    names : ndarray of str, shape (n_features,), optional
    """
    n_rows = min(queries.n_rows, max(100, N_NUMBERS // X.shape[1]))
    n_queries = int(np.searchsorted(queries.offsets, n_rows))
    values = X[queries.order[:n_rows]].astype(np.float64)
    largest = np.abs(values).max(axis=0)
    values = centred(values, np.append(queries.offsets[:n_queries], n_rows))
    deviation = np.sqrt(np.einsum("ij,ij->j", values, values) / n_rows)
    most = (values.max(axis=0) - values.min(axis=0)) / 2.0
    varies = np.flatnonzero(deviation > 1e-6 * largest)
    if not len(varies):
        return
    deviation, most = deviation[varies], most[varies]
    if deviation.max() <= max(LARGEST_RATIO * most.min(), LEAST_DEVIATION):
        return
    typical = np.median(np.log(deviation))
    far = np.maximum(np.log(deviation) - typical, typical - np.log(most))
    worst = [k for k in np.argsort(-far, kind="stable")[:N_NAMED] if far[k] > 0.5 * far.max()]
    called = [f"column {j}" for j in range(X.shape[1])] if names is None else [repr(name) for name in names]
    named = ", ".join(f"{called[varies[k]]} ({deviation[k]:.2g})" for k in worst)
    warn_caller(
        f"Features are of very different scale, so that training learns the large ones or the small ones badly: {named} beside "
        f"{np.exp(typical):.2g} for the typical feature (standard deviations within queries). Standardise them: "
        "make_pipeline(StandardScaler(), ranker)."
    )
