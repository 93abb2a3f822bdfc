"""FA*IR: enough of a protected group among the first ranks, by a statistical test (Zehlike et al. 2017)."""

from __future__ import annotations

from functools import lru_cache
from numbers import Integral, Real

import numpy as np
from scipy.special import bdtr
from scipy.stats import binom
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from skfairrank._sensitive import check_groups
from skfairrank.postprocessing._base import GroupReRanker, ReRanker

_ROUNDING = 1.0 + 1e-12  # levels that differ by less are the same: a distribution function is not computed more exactly


class FAStarRanker(GroupReRanker):
    r"""FA*IR: the order of the scores, in which a protected group has enough items among the first ranks.

    Of "A Fair Top-k Ranking Algorithm" (Zehlike, Bonchi, Castillo, Hajian, Megahed, Baeza-Yates 2017). Among the first k ranks
    there are at least

    .. math:: m(k) = \min \{ j : F(j; k, p) > \alpha_c \}

    protected items, F being the binomial distribution function: so many that nobody could tell the ranking, by a test at the
    level :math:`\alpha_c`, from one in which a coin that shows "protected" with chance p was thrown for each rank. Each query's
    ranks are tested together, at every k, so a fair ranking would fail somewhere more often than a single test says;
    `correct_alpha` lowers the level until it fails with a chance of at most `alpha`. Within the protected group, and within the
    others, the order is that of the scores. A protected item goes first where scores tie, as in the paper.

    A query that has fewer protected items than m(k) ranks all of them by then.

    Parameters
    ----------
    estimator : estimator with `fit` and `predict`
        The ranker: one of this package, a pipeline, a regressor, a boosted ranker (which is put into a `QueryRanker`), or
        ``FrozenEstimator(model)`` around a fitted one.
    protected : str, int, bool or member of an enumeration
        The label of the protected group in `sensitive_features`. All other labels are the others.
    p : float
        The least share of the protected group, in [0, 1].
    alpha : float, default=0.1
        Chance of failing for a ranking that is fair, between 0 and 1.
    correct_alpha : bool, default=True
        Whether `alpha` is meant for all ranks together. False: for each single k, as in the paper's Table 2.
    k : int, optional
        Ranks beyond k are not tested. None: all are.

    Attributes
    ----------
    estimator_ : estimator
        The fitted ranker.
    alpha_ : float
        The level of the single tests in a ranking as long as the longest query of `fit` (of k ranks, if that is less). A query
        of another size has a level of its own.
    groups_ : ndarray or None
        The labels that `fit` saw, if it was given any.
    n_queries_ : int
    n_features_in_ : int

    Notes
    -----
    The groups are needed when rankings are made, not only in training.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.postprocessing import FAStarRanker
    >>> X, y, qid = np.arange(8.0)[:, None], np.arange(8.0), np.zeros(8, int)
    >>> sex = np.array(list("ffffmmmm"))
    >>> ranker = FAStarRanker(
    ...     LinearRegression(), protected="f", p=0.5, correct_alpha=False
    ... ).fit(X, y, qid=qid)
    >>> ranks = ranker.rank(X, qid=qid, sensitive_features=sex)
    >>> "".join(sex[np.argsort(ranks)])
    'mmmfmfff'
    >>> ranker.minimum_protected(8)
    array([0, 0, 0, 1, 1, 1, 2, 2])
    """

    _parameter_constraints = {
        **ReRanker._parameter_constraints,
        "protected": "no_validation",
        "p": [Interval(Real, 0, 1, closed="both")],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "correct_alpha": ["boolean"],
        "k": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, estimator, *, protected, p, alpha=0.1, correct_alpha=True, k=None):
        self.estimator = estimator
        self.protected = protected
        self.p = p
        self.alpha = alpha
        self.correct_alpha = correct_alpha
        self.k = k

    def _learn(self, X, queries, sensitive_features):
        self.groups_ = None
        if sensitive_features is not None:
            self.groups_ = check_groups(sensitive_features, queries.n_rows, compared_by="FAStarRanker")[0]
            if self.protected not in self.groups_.tolist():
                raise ValueError(f"protected={self.protected!r} is none of the groups: {_shown(self.groups_)}.")
        self.alpha_ = self._level(int(queries.sizes.max()))

    def minimum_protected(self, n):
        """The fewest protected items among the first 1, ..., n ranks of a query of n rows that has enough of them.

        Parameters
        ----------
        n : int

        Returns
        -------
        least : ndarray of int, shape (n,)
            0 beyond rank `k`, where nothing is tested any more.
        """
        check_is_fitted(self, "estimator_")
        tested = n if self.k is None else min(n, self.k)
        return np.r_[minima(tested, float(self.p), self._level(n)), np.zeros(n - tested, np.int64)]

    def _level(self, n):
        if not self.correct_alpha:
            return float(self.alpha)
        return corrected_alpha(n if self.k is None else min(n, self.k), float(self.p), float(self.alpha))

    def _marks(self, labels):
        marks = np.array([label == self.protected for label in labels.tolist()])
        # There may be no protected item in these queries. But labels of which none is known are written in another way.
        if self.groups_ is not None:
            is_strange = not set(labels.tolist()) & set(self.groups_.tolist())
        else:
            is_strange = len(labels) > 1 or isinstance(labels[0], str) != isinstance(self.protected, str)
        if is_strange and not marks.any():
            raise ValueError(
                f"protected={self.protected!r} is none of the groups of these rows, {_shown(labels)}: write labels alike. If the "
                "group is really absent here, give fit sensitive_features, so that its labels are known."
            )
        return marks

    def _order(self, s, marks):
        by_score = np.argsort(-s, kind="stable")
        protected, others = by_score[marks[by_score]], by_score[~marks[by_score]]
        order, p, o = np.empty(len(s), np.int64), 0, 0
        for i, needed in enumerate(self.minimum_protected(len(s))):
            is_next = p < len(protected) and (p < needed or o == len(others) or s[protected[p]] >= s[others[o]])
            order[i] = protected[p] if is_next else others[o]
            p, o = p + is_next, o + (not is_next)
        return order


def _shown(labels) -> str:
    values = labels.tolist()
    return ", ".join(map(repr, values[:5])) + (", ..." if len(values) > 5 else "")


def minima(n: int, p: float, alpha: float) -> np.ndarray:
    """The fewest protected items among the first 1, 2, ..., n ranks, shape (n,) (the paper's Table 2).

    A prefix of k ranks with j protected items passes if F(j; k, p) > alpha, F being the binomial distribution function
    (Definition 3.1); the entry for k is the smallest such j. It never falls with k.
    """
    if alpha <= 0:
        return np.zeros(n, np.int64)
    return binom.ppf(min(alpha * _ROUNDING, 1.0), np.arange(1, n + 1), p).astype(np.int64)


def failure_probability(least: np.ndarray, p: float) -> float:
    """The chance that a fair ranking fails the test somewhere, when each rank is protected with chance p, independently.

    The paper's Algorithm 1 counts by blocks of ranks; this is the same sum, rank by rank: of each number of protected items so
    far the chance of the rankings that have passed.

    Parameters
    ----------
    least : ndarray of int, shape (n,)
        The fewest protected items among the first 1, ..., n ranks; not falling.
    p : float
    """
    most = int(least[-1])  # who has so many cannot fail any more
    passed = np.zeros(most + 1)
    passed[0] = 1.0
    for needed in least:
        protected = p * passed
        passed *= 1.0 - p
        passed[1:] += protected[:-1]
        passed[-1] += protected[-1]
        passed[:needed] = 0.0
    return max(0.0, 1.0 - float(passed.sum()))


@lru_cache(maxsize=1024)
def corrected_alpha(n: int, p: float, alpha: float) -> float:
    """The level of each single test with which a fair ranking of n ranks fails with a chance of at most `alpha` (section 4.2).

    `alpha` itself where that suffices. Else the chance is a step function of the level, with steps at values of the binomial
    distribution function; this is the highest of them that keeps it, or 0 where none does. (The paper halves an interval, and
    the authors' program may end at a level that is slightly too high.)
    """
    least = minima(n, p, alpha)
    if failure_probability(least, p) <= alpha:
        return alpha
    below = np.arange(int(least[-1]))
    distribution = bdtr(below, np.arange(1, n + 1)[:, None], p)
    distribution[below >= np.arange(1, n + 1)[:, None]] = 1.0
    levels = np.unique(distribution[distribution <= alpha * _ROUNDING])
    low, high = -1, len(levels)  # levels[low] keeps it, levels[high] does not
    while high - low > 1:
        middle = (low + high) // 2
        least = (distribution <= levels[middle] * _ROUNDING).sum(axis=1)
        if failure_probability(least, p) <= alpha:
            low = middle
        else:
            high = middle
    return float(levels[low]) if low >= 0 else 0.0
