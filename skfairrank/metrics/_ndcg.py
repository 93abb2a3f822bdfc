"""Normalised discounted cumulative gain, of the ranking by scores and in expectation over the Plackett-Luce policy."""

from __future__ import annotations

import numpy as np

from skfairrank._validation import check_relevance, check_scores
from skfairrank.metrics._averages import mean_with_replacement
from skfairrank.metrics._policies import tie_averaged_discounts
from skfairrank.plackett_luce import expected_discounts
from skfairrank.queries import Queries
from skfairrank.utilities import discounts, gains, ideal_dcg

__all__ = ["ndcg_score", "stochastic_ndcg_score"]

_NOTHING_RELEVANT = "they have no relevant row"


def ndcg_score(y, s, *, qid, k=None, gain="exp2", replace_undefined_by=np.nan):
    r"""NDCG of the ranking by descending scores, averaged over queries.

    Definition, for one query whose rows have gains :math:`g_i` and ranks :math:`r(i)`:

    .. math::

        \operatorname{NDCG} = \frac{\operatorname{DCG}(r)}{\max_{r'} \operatorname{DCG}(r')}, \qquad
        \operatorname{DCG}(r) = \sum_{i:\ r(i) \le k} \frac{g_i}{\log_2(1 + r(i))}, \qquad
        g_i = 2^{y_i} - 1 \ \text{ or } \ y_i .

    Rows with equal scores share the mean over their orders, as in :func:`sklearn.metrics.ndcg_score`, so the result
    does not depend on the order of rows.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0. Large ones (300) do not overflow.
    s : array-like, shape (n_rows,)
        Scores; higher is better.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    k : int, optional
        Only ranks 1 to k count, in the ranking and in the ideal one. The ideal ranking is over all rows of the query.
    gain : {"exp2", "linear"}
        :math:`2^y - 1`, or :math:`y` itself.
    replace_undefined_by : float, default nan
        What a query without any relevant row counts as. With nan such queries are left out, with an
        `UndefinedMetricWarning`.

    Returns
    -------
    ndcg : float
        Between 0 and 1, the mean over queries.

    Raises
    ------
    ValueError
        If `y` has negative or missing values, `s` has values that are not finite, or the lengths differ.

    See Also
    --------
    stochastic_ndcg_score : The expectation of NDCG over a policy's rankings.

    Examples
    --------
    >>> from skfairrank.metrics import ndcg_score
    >>> y, s, qid = [0, 2, 1, 0, 1, 2], [.1, .9, .8, .2, .5, .3], [2, 1, 2, 1, 1, 2]
    >>> round(ndcg_score(y, s, qid=qid), 6)
    0.898354
    >>> round(ndcg_score(y, s, qid=qid, gain="linear"), 6)
    0.929859
    """
    y, s, queries = _validated(y, s, qid)
    discount = discounts(int(queries.sizes.max()), k)
    expected = tie_averaged_discounts(s, queries, discount)
    values, defined = _ndcg(y, expected, queries, discount, gain)
    return mean_with_replacement(values, defined, replace_undefined_by, metric="ndcg_score", reason=_NOTHING_RELEVANT)


def stochastic_ndcg_score(
    y, s, *, qid, k=None, gain="exp2", n_samples=100, random_state=None, replace_undefined_by=np.nan
):
    r"""Expectation of NDCG over the rankings of the Plackett-Luce policy, averaged over queries.

    Definition, for one query with scores :math:`s` (and NDCG as in :func:`ndcg_score`):

    .. math::

        \mathbb{E}_{r \sim \pi_s} \operatorname{NDCG}(r), \qquad
        \pi_s(r) = \prod_j \frac{\exp s_{r^{-1}(j)}}{\sum_{l \ge j} \exp s_{r^{-1}(l)}} .

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    s : array-like, shape (n_rows,)
        Scores; only their differences within a query matter.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    k : int, optional
        Only ranks 1 to k count.
    gain : {"exp2", "linear"}
        :math:`2^y - 1`, or :math:`y` itself.
    n_samples : int or "exact", default 100
        Rankings to sample for each query. ``"exact"`` sums over all rankings instead, where queries are small enough.
    random_state : None, int, RandomState or Generator
        Source of the sampled rankings. NumPy's global state is neither read nor changed.
    replace_undefined_by : float, default nan
        What a query without any relevant row counts as. With nan such queries are left out, with an
        `UndefinedMetricWarning`.

    Returns
    -------
    ndcg : float
        Between 0 and 1, the mean over queries.

    See Also
    --------
    ndcg_score : NDCG of the one ranking by descending scores.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank.metrics import stochastic_ndcg_score
    >>> round(stochastic_ndcg_score([1, 0], [np.log(3), 0], qid=[0, 0], n_samples="exact"), 6)  # 3/4 + 1/4 / log2(3)
    0.907732
    >>> sampled = stochastic_ndcg_score([1, 0], [np.log(3), 0], qid=[0, 0], n_samples=10_000, random_state=0)
    >>> abs(sampled - 0.907732) < 0.005
    True
    """
    y, s, queries = _validated(y, s, qid)
    discount = discounts(int(queries.sizes.max()), k)
    expected = expected_discounts(s, queries, discount, n_samples=n_samples, random_state=random_state)
    values, defined = _ndcg(y, expected, queries, discount, gain)
    return mean_with_replacement(
        values, defined, replace_undefined_by, metric="stochastic_ndcg_score", reason=_NOTHING_RELEVANT
    )


def _validated(y, s, qid):
    s = check_scores(s, name="s")
    return check_relevance(y, len(s)), s, Queries.from_qid(qid, len(s))


def _ndcg(y, expected_discount, queries, discount, gain):
    """NDCG of each query, and whether it is defined."""
    gain = gains(queries.group(y), queries.offsets, gain)
    ideal = ideal_dcg(gain, queries.offsets, discount)
    dcg = np.add.reduceat(gain * queries.group(expected_discount), queries.offsets[:-1])
    defined = ideal > 0
    # A perfect ranking's two sums may differ in the last digit.
    return np.minimum(np.divide(dcg, ideal, out=np.zeros_like(dcg), where=defined), 1.0), defined
