"""Merit-weighted disparity of group exposures (Singh and Joachims 2019; Bower et al. 2021, appendix B), as coefficients."""

from __future__ import annotations

import numpy as np

__all__ = ["disparity_coefficients"]


def disparity_coefficients(y: np.ndarray, group: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients c such that a query's disparity v_A / M_A - v_B / M_B is the sum of c_i times the exposure of row i.

    v_G is the mean exposure and M_G the mean relevance of group G's rows; A is the group of more merit, or of the larger label
    where merits tie.

    Parameters
    ----------
    y : ndarray of float64, shape (n_rows,)
        Relevances >= 0, grouped by query.
    group : ndarray of int, shape (n_rows,)
        0 or 1, grouped by query; 1 is the larger label.
    offsets : ndarray of int64, shape (n_queries + 1,)

    Returns
    -------
    coefficients : ndarray of float64, shape (n_rows,)
        Zero in queries where the disparity is undefined.
    defined : ndarray of bool, shape (n_queries,)
        False where a group is absent or without merit.
    """
    sizes = np.diff(offsets)
    members = np.stack([np.add.reduceat((group == g).astype(np.float64), offsets[:-1]) for g in (0, 1)])
    relevance = np.stack([np.add.reduceat(np.where(group == g, y, 0.0), offsets[:-1]) for g in (0, 1)])
    defined = np.asarray((relevance > 0).all(axis=0))
    # 1 / (|G| M_G) = 1 / (sum of the group's relevances), with the sign of the group's place in the difference.
    per_row = np.divide(1.0, relevance, out=np.zeros_like(relevance), where=defined)
    merit = np.divide(relevance, members, out=np.zeros_like(relevance), where=members > 0)
    sign = np.where(merit[1] >= merit[0], 1.0, -1.0)
    per_row *= np.stack([-sign, sign])
    which = np.repeat(np.arange(len(sizes)), sizes)
    return per_row[group, which], defined
