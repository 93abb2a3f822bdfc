"""How groups differ among rows of equal relevance: beyond what their labels say."""

from __future__ import annotations

import numpy as np

from skfairrank._sensitive import Attribute
from skfairrank.fair_metrics._differences import Difference
from skfairrank.fair_metrics._rows import blocks_of

__all__ = ["ConditionalDifference"]


class ConditionalDifference(Difference):
    """Coefficients of the features on the attribute in a linear regression with an intercept for each level of relevance.

    Of two groups this is the mean over the levels of the difference of the groups' mean rows. A level of n rows, of which a share
    p belongs to the second group, weighs n p (1 - p): where one group is missing it says nothing. Of more groups it is what one
    of them adds beside the level's intercept, and of a number what one standard deviation of it adds.

    Parameters
    ----------
    X, attribute, order
        As for `Difference`.
    levels : ndarray of int64, shape (n_rows,)
        Level of each row, from 0.

    Raises
    ------
    ValueError
        If groups do not meet at any level, so that no difference at equal relevance is seen.
    """

    def __init__(self, X: np.ndarray, attribute: Attribute, order: np.ndarray, levels: np.ndarray):
        super().__init__(X, attribute, order)
        if attribute.n_classes == 1:
            return
        order = self.order
        values, levels = attribute.values[order], levels[order]
        members = values[:, None] - values[0] if attribute.is_numeric else np.eye(attribute.n_classes)[values]
        deviation = members.std() if attribute.is_numeric else 1.0
        # Within each level, about its mean: that takes the level's intercept out.
        sums = np.zeros((levels.max() + 1, members.shape[1]))
        np.add.at(sums, levels, members)
        members = members - (sums / np.maximum(np.bincount(levels), 1)[:, None])[levels]
        gram, center = members.T @ members, X[order[0]].astype(np.float64)
        n_effects = 1 if attribute.is_numeric else attribute.n_classes - 1
        if np.linalg.matrix_rank(gram, tol=1e-9 * len(order) * deviation**2, hermitian=True) < n_effects:
            raise ValueError(
                f"sensitive attribute ({attribute.name}): there are groups that do not meet at equal relevance, so that their "
                'difference beyond the labels cannot be seen. Merge levels of y, or use direction="difference".'
            )
        moments = np.zeros((members.shape[1], X.shape[1]))
        for here, rows in blocks_of(X, order):
            moments += members[here].T @ (rows - center)
        self.means = deviation * (np.linalg.pinv(gram, hermitian=True) @ moments)
        self.means[:, ~self.varies] = 0.0
