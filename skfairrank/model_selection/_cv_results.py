"""What is read of a search's `cv_results_`."""

from __future__ import annotations

import numpy as np

__all__ = ["mean_test_scores"]


def mean_test_scores(cv_results, scorer: str, *, needed_by: str = "") -> np.ndarray:
    """Mean test score of each candidate by one of the search's scorers, shape (n_candidates,).

    Raises
    ------
    ValueError
        If the search has no such scorer.
    """
    if f"mean_test_{scorer}" not in cv_results:
        names = sorted(key.removeprefix("mean_test_") for key in cv_results if key.startswith("mean_test_"))
        wanted = f", which {needed_by} needs" if needed_by else ""
        raise ValueError(f"The search has no scorer {scorer!r}{wanted}; it has {names}. Name them in scoring={{...}}.")
    return np.asarray(cv_results[f"mean_test_{scorer}"], dtype=np.float64)
