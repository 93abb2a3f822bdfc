"""What trees are grown on: the derivatives of utility minus rho R in the scores of rows and of their hypothetical rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skfairrank._batches import Batch
from skfairrank._boosting._adversary import ListAdversary
from skfairrank._boosting._derivatives import Derivatives
from skfairrank._random import draw_keys

__all__ = ["FairObjective"]


class FairObjective:
    r"""Gradient and hessian of the loss :math:`-\sum_q w_q (U(q) - \rho/2 \|h(q) - h(q')\|^2)`, for one round of boosting.

    Rows come first, query by query, then a block of equally many hypothetical rows for each way to make them. With i' the
    hypothetical row that the adversary chose for row i,

    .. math::

        g_i = -\partial U / \partial h_i + \rho (h_i - h_{i'}), \qquad g_{i'} = -\rho (h_i - h_{i'}),

    and zero for hypothetical rows that were not chosen. Trees divide gradients by hessians: these are the curvature beside
    :math:`\partial U / \partial h`, plus :math:`\rho` for both partners.

    All of it is multiplied by one number, so that in the first round the mean hessian of rows is 1, as of a squared error: a
    model's `min_child_weight`, `reg_lambda` or `cat_smooth` then have the meaning of numbers of rows. (LambdaMART's are left as
    the libraries have them.)

    Parameters
    ----------
    batch : Batch
        All queries.
    discount : ndarray of float64
    derivatives : Derivatives
        Where dU/dh comes from, and the curvature.
    adversary : ListAdversary or None
        None: there is no regulariser, and there are no hypothetical rows.
    rng : numpy.random.Generator
        For the noise of sampled rankings.
    after_round : callable, optional
        Called with the history after each round.
    """

    def __init__(
        self,
        batch: Batch,
        discount: np.ndarray,
        derivatives: Derivatives,
        adversary: ListAdversary | None,
        rng: np.random.Generator,
        after_round: Callable | None = None,
    ):
        self.batch, self.discount, self.derivatives, self.adversary = batch, discount, derivatives, adversary
        self.rng, self.after_round, self.scale = rng, after_round, 0.0
        self.history: dict[str, list[float]] = {
            name: [] for name in ("utility", "regularizer", "query_distance", "lambda")
        }

    def __call__(self, y_true, y_pred):
        """Gradient and hessian of all rows, as LightGBM asks for them; `y_true` is not looked at.

        Parameters
        ----------
        y_true : ignored
        y_pred : ndarray of float, shape ((1 + n_hypotheticals) * n_rows,)
            Scores.

        Returns
        -------
        gradient, hessian : ndarray of float32, shape as y_pred
        """
        n_rows, sizes = len(self.batch.rows), np.diff(self.batch.offsets)
        scores = np.asarray(y_pred, dtype=np.float64)
        h, weight = scores[:n_rows], np.repeat(self.batch.weight, sizes)
        batch = self.batch._replace(key=draw_keys(self.rng, 1)[0])
        slope, curvature, utility = self.derivatives(batch, h, self.discount)
        self.scale = self.scale or (_scale(weight * curvature) if self.derivatives.is_scaled else 1.0)
        gradient, hessian = np.zeros(len(scores), np.float32), np.zeros(len(scores), np.float32)
        gradient[:n_rows] = -self.scale * weight * slope
        hessian[:n_rows] = self.scale * weight * curvature
        regularizer = distance = multiplier = 0.0
        if self.adversary is not None:
            choice = self.adversary.choose(h, scores[n_rows:].reshape(-1, n_rows))
            self._pull(gradient, hessian, choice, self.scale * self.adversary.rho * weight)
            regularizer = float(0.5 * (weight * np.square(choice.difference)).sum() / len(sizes))
            distance, multiplier = choice.query_distance, choice.multiplier
        entries = float(batch.weight @ utility) / len(sizes), regularizer, distance, multiplier
        for values, entry in zip(self.history.values(), entries, strict=True):
            values.append(entry)
        if self.after_round is not None:
            self.after_round(self.history)
        return gradient, hessian

    def _pull(self, gradient, hessian, choice, strength):
        """Add the regulariser's part, in place; `strength` is that of each row."""
        n_rows = len(strength)
        moved = np.flatnonzero(choice.hypothetical >= 0)
        partners = (choice.hypothetical[moved] + 1) * n_rows + moved
        pull = strength[moved] * choice.difference[moved]
        gradient[moved] += pull
        gradient[partners] -= pull
        hessian[moved] += strength[moved]
        hessian[partners] += strength[moved]


def _scale(size: np.ndarray) -> float:
    """What makes the mean hessian of rows 1, of those that have one."""
    present = size[size > 0]
    return 1.0 / float(present.mean()) if len(present) else 1.0
