"""What boosting asks of SenSTIR: gradient and hessian of the objective in the scores, the adversary among hypothetical rows, the
rows themselves, and the metric by which evaluation sets are judged.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse

from skfairrank._checks import check_relevance
from skfairrank._kernels.ranking import lambdarank, lambdarank_work
from skfairrank._queries import Queries
from skfairrank._random import draw_keys
from skfairrank._threads import over_queries
from skfairrank.adversaries._given import ListAdversary
from skfairrank.policies import Deterministic, GradientEstimator, descending_order, expected_utility, make_gradient
from skfairrank.training import Batch
from skfairrank.utilities import Utility
from skfairrank.wrappers._base import by_query


class FairObjective:
    r"""Gradient and hessian of the loss :math:`-\sum_q w_q (U(q) - \rho/2 \|h(q) - h(q')\|^2)`, for one round of boosting.

    Rows come first, query by query, then a block of equally many hypothetical rows for each way to make them. With i' the
    hypothetical row that the adversary chose for row i,

    .. math::

        g_i = -\partial U / \partial h_i + \rho (h_i - h_{i'}), \qquad g_{i'} = -\rho (h_i - h_{i'}),

    and zero for hypothetical rows that were not chosen. Trees divide gradients by hessians: these are the curvature beside
    :math:`\partial U / \partial h`, but of both partners at least :math:`2 k_i \rho` `learning_rate`, where :math:`k_i`
    counts the hypothetical rows that the adversary has chosen for row i in any round. Of a row with one partner, a tree
    that has the two in different leaves at most closes their difference, and what they have in common is not braked. A row with
    several is pulled by one after the other, so each closes a part.

    All of it is multiplied by one number, so that in the first round the mean hessian of rows is 1, as of a squared error: a
    model's `min_child_weight`, `reg_lambda` or `cat_smooth` then have the meaning of numbers of rows. (LambdaMART's are left as
    the libraries have them.)

    Parameters
    ----------
    batch : Batch
        All queries.
    discount : ndarray of float64
    gradient : PolicyGradient or LambdaRankGradient
        Where dU/dh comes from, and the curvature.
    adversary : ListAdversary or None
        None: there is no regulariser, and there are no hypothetical rows.
    learning_rate : float
        By which the library multiplies each tree.
    rng : numpy.random.Generator
        For the noise of sampled rankings.
    """

    def __init__(
        self,
        batch: Batch,
        discount: np.ndarray,
        gradient: PolicyGradient | LambdaRankGradient,
        adversary: ListAdversary | None,
        learning_rate: float,
        rng: np.random.Generator,
    ):
        self.batch, self.discount, self.gradient, self.adversary = batch, discount, gradient, adversary
        self.learning_rate, self.rng, self.scale = learning_rate, rng, 0.0
        self.was_chosen = np.zeros((0, 0), dtype=bool)
        #: Whether the regulariser's hessians were larger than those beside dU/dh in the last round.
        self.is_braked = False
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
        slope, curvature, utility = self.gradient(batch, h, self.discount)
        self.scale = self.scale or (_scale(weight * curvature) if self.gradient.is_scaled else 1.0)
        gradient, hessian = np.zeros(len(scores), np.float32), np.zeros(len(scores), np.float32)
        gradient[:n_rows] = -self.scale * weight * slope
        hessian[:n_rows] = self.scale * weight * curvature
        regularizer = distance = multiplier = 0.0
        if self.adversary is not None:
            hypothetical = scores[n_rows:].reshape(-1, n_rows)
            if not self.was_chosen.size:
                self.was_chosen = np.zeros(hypothetical.shape, dtype=bool)
            choice = self.adversary.choose(h, hypothetical)
            self._add_regularizer(gradient, hessian, choice, self.scale * self.adversary.rho * weight)
            regularizer = float(0.5 * (weight * np.square(choice.difference)).sum() / len(sizes))
            distance, multiplier = choice.query_distance, choice.multiplier
        entries = float(batch.weight @ utility) / len(sizes), regularizer, distance, multiplier
        for values, entry in zip(self.history.values(), entries, strict=True):
            values.append(entry)
        return gradient, hessian

    def __deepcopy__(self, memo):
        return self  # LightGBM copies its parameters, and the history is wanted from the one that works

    def _add_regularizer(self, gradient, hessian, choice, strength):
        """Add the regulariser's part, in place; `strength` is that of each row."""
        n_rows = len(strength)
        moved = np.flatnonzero(choice.hypothetical >= 0)
        partners = (choice.hypothetical[moved] + 1) * n_rows + moved
        pull = strength[moved] * choice.difference[moved]
        gradient[moved] += pull
        gradient[partners] -= pull
        self.was_chosen[choice.hypothetical[moved], moved] = True
        n_partners = self.was_chosen[:, moved].sum(axis=0)
        least = 2.0 * self.learning_rate * n_partners * strength[moved]
        self.is_braked = bool(least.sum() > hessian[moved].sum())
        hessian[moved] = np.maximum(hessian[moved], least)
        hessian[partners] = least


def _scale(size: np.ndarray) -> float:
    """What makes the mean hessian of rows 1, of those that have one."""
    present = size[size > 0]
    return 1.0 / float(present.mean()) if len(present) else 1.0


class PolicyGradient:
    """Slope and curvature in the scores: the gradient of the expected utility of the Plackett-Luce policy.

    The expected utility is not concave, so that its own curvature is of no use. In its place stands `SHARE` of the query's mean
    absolute slope, so that steps keep their length as scores grow apart and slopes become small. (Of two rows with equal scores a
    share of 1/2 would give the first step of LambdaMART.)

    Parameters
    ----------
    gradient : skfairrank.policies.GradientEstimator
    """

    #: Whether both are multiplied by one number so that the mean curvature is 1 at first.
    is_scaled = True
    #: Chosen by ``rho=0`` beside LGBMRanker (examples/boosting_results.py): 1/2 overfits small data, 1 learns slowly.
    SHARE = 0.7

    def __init__(self, gradient: GradientEstimator):
        self.gradient = gradient

    def __call__(self, batch, h, discount):
        """Slope and curvature of each row, shape (n_rows,), and the utility of each query, shape (n_queries,)."""
        slope, utility = self.gradient.estimate(batch, h, discount)
        sizes = np.diff(batch.offsets)
        mean = np.add.reduceat(np.abs(slope), batch.offsets[:-1]) / sizes
        return slope, np.repeat(self.SHARE * mean, sizes), utility

    def check(self, queries, tables):
        """Raise ValueError where it can't treat the queries or the utility."""
        self.gradient.check(queries)


class LambdaRankGradient:
    """Slope and curvature in the scores: LambdaMART's, as LightGBM has them.

    Of pairs of rows, weighed by what their exchange would change of the utility. The utility of a query is that of the list
    sorted by score.
    """

    is_scaled = False
    #: Of a pair one row must be among the first so many; LightGBM's `lambdarank_truncation_level`.
    N_TOP = 30

    def __call__(self, batch, h, discount):
        slope, curvature = np.empty(len(h)), np.empty(len(h))
        order = descending_order(h, batch.offsets)
        arguments = h, order, batch.offsets, batch.gain, discount, self.N_TOP, slope, curvature
        over_queries(lambdarank, batch.offsets, lambdarank_work(batch.offsets, self.N_TOP), *arguments)
        rank = np.arange(len(h)) - np.repeat(batch.offsets[:-1], np.diff(batch.offsets))
        utility = batch.gain[order] * discount[rank]
        return slope, curvature, np.add.reduceat(utility, batch.offsets[:-1])

    def check(self, queries, tables):
        if tables.continuation is not None or tables.utility is not None:
            raise ValueError(
                'gradient="lambdarank" weighs pairs by gains and discounts, and this utility is more: what a row adds depends '
                'on those above it. Use gradient="plrank", or gradient="reinforce".'
            )


def make_gradient_of_trees(gradient, n_samples: int) -> PolicyGradient | LambdaRankGradient:
    """LambdaRank's for "lambdarank", or what `skfairrank.policies.make_gradient` gives."""
    is_lambdarank = isinstance(gradient, str) and gradient == "lambdarank"
    return LambdaRankGradient() if is_lambdarank else PolicyGradient(make_gradient(gradient, n_samples))


class SortedUtility:
    """Mean over queries of the utility of the rows sorted by descending score; what boosting libraries call a metric.

    Trees give many rows the same score, at first all of them. Such rows share the mean over their orders. For a utility that only
    whole rankings know they stand in an order drawn once: evaluation sets often lie in the order of their relevances, and the
    order of rows would then be the best ranking.

    Parameters
    ----------
    utility : Utility
        Named by its class and k, such as "ndcg@10".
    """

    def __init__(self, utility: Utility):
        k = getattr(utility, "k", None)
        self.utility, self.name = utility, type(utility).__name__.lower() + ("" if k is None else f"@{k}")

    def __call__(self, y_true, y_pred, weight, group):
        """The name, the value, and that more is better, as LightGBM asks.

        Parameters
        ----------
        y_true, y_pred : ndarray of float, shape (n_rows,)
            Relevances and scores, query by query.
        weight : ignored
        group : ndarray of int, shape (n_queries,)
            Numbers of rows.
        """
        qid = np.repeat(np.arange(len(group)), group)
        rows = np.lexsort((np.random.default_rng(0).random(len(qid)), qid))
        queries = Queries.from_qid(qid, len(qid))
        tables = self.utility.tables(check_relevance(y_true)[rows], queries.offsets)
        scores = np.asarray(y_pred, dtype=np.float64)[rows]
        return self.name, float(expected_utility(Deterministic(), scores, queries, tables).mean()), True


class Blocks:
    """The rows of X, and below them a block of as many hypothetical rows for each set, made whenever they are asked for.

    Parameters
    ----------
    X : ndarray, DataFrame or sparse matrix, shape (n_rows, n_features)
    queries : Queries
        By which the rows of each block are sorted.
    sets : sized iterable of (name, table like X)
        May be read several times; one at a time is asked for.
    """

    def __init__(self, X, queries: Queries, sets):
        self.X, self.queries, self.sets, self.n_blocks = X, queries, sets, 1 + len(sets)
        self.n_rows, self.shape = X.shape[0], (self.n_blocks * X.shape[0], X.shape[1])
        self.are_numbers = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"

    def __iter__(self):
        yield self._block(self.X)
        for _, rows in self.sets:
            yield self._block(rows)
            del rows  # before the next set is made

    def table(self, dtype=np.float64):
        """All blocks in one table; those of numbers in an array that is filled block by block."""
        if self.are_numbers and self.n_blocks > 1:
            values = np.empty(self.shape, dtype)
            for k, block in enumerate(self):
                values[k * self.n_rows : (k + 1) * self.n_rows] = block
            return values
        tables = list(self)
        if self.n_blocks == 1:
            return tables[0]
        if sparse.issparse(tables[0]):
            return sparse.vstack(tables, format="csr")
        return np.concatenate(tables) if isinstance(tables[0], np.ndarray) else pd.concat(tables, ignore_index=True)

    def _block(self, rows):
        rows = by_query(rows, self.queries)
        if self.are_numbers:
            return np.ascontiguousarray(rows, np.float32 if rows.dtype == np.float32 else np.float64)
        return rows.to_pandas() if hasattr(rows, "to_pandas") and not isinstance(rows, pd.DataFrame) else rows
