"""Attention of ranks, and how it is shared among items: over a history of rankings, and against its ideal."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank._checks import check_relevance, names_queries, warn_caller
from skfairrank._gains import discounts
from skfairrank._queries import Queries
from skfairrank.metrics._arguments import scored_rows
from skfairrank.metrics._per_query import PerQuery
from skfairrank.policies import Deterministic, make_policy

__all__ = ["attention_by_rank", "attention_inequity", "expected_exposure_loss"]


def attention_by_rank(n: int, patience: float | None, k: int | None) -> np.ndarray:
    """patience^(r - 1), or 1 / log2(1 + r) where patience is None, for ranks 1 to n; zero beyond rank k."""
    table = discounts(n, k)
    if patience is None:
        return table
    if isinstance(patience, bool) or not isinstance(patience, Real) or not 0 < float(patience) < 1:
        raise ValueError(
            f"patience={patience!r}: give a number between 0 and 1, the share of users who go on from a rank to the "
            "next, or None for 1 / log2(1 + rank)."
        )
    return np.where(table > 0, float(patience) ** np.arange(n), 0.0)


@names_queries
def expected_exposure_loss(
    y,
    s,
    *,
    qid,
    patience=0.5,
    part="loss",
    policy="plackett_luce",
    k=None,
    n_samples=100,
    random_state=None,
    query_weight=None,
    reduce="mean",
):
    r"""Squared distance of the items' expected exposure from that under the ideal policy (Diaz et al. 2020).

    Definition, for one query with expected exposures :math:`\epsilon_i` under the policy: items of one relevance should have the
    same exposure :math:`\epsilon^*_i`, the mean over the ranks that their grade has in an ideal list. Then

    .. math:: \mathrm{EE\text{-}L} = \|\epsilon - \epsilon^*\|^2
        = \underbrace{\|\epsilon\|^2}_{\mathrm{EE\text{-}D}} - 2 \underbrace{\epsilon^\top \epsilon^*}_{\mathrm{EE\text{-}R}}
        + \|\epsilon^*\|^2 .

    A sorted list has a loss wherever items have equal relevance: one of them is always ahead of the other. Only a policy that
    draws its rankings can be fair in this sense.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0; grades.
    s : array-like, shape (n_rows,)
        Scores; higher is better. May be None under a policy that needs none, `skfairrank.policies.RankProbabilities`.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    patience : float in (0, 1) or None, default=0.5
        Exposure of rank r is :math:`\mathrm{patience}^{r - 1}`, that of rank-biased precision. None: :math:`1 / \log_2(1 + r)`.
    part : {"loss", "disparity", "relevance"}, default="loss"
        EE-L (lower is better), EE-D (how unequal exposure is; lower) or EE-R (how much of it is where it should be; higher).
    policy : "deterministic", "plackett_luce" or a policy, default "plackett_luce"
    k : int, optional
        Ranks beyond k give no exposure.
    n_samples, random_state, query_weight
        As for `group_exposure_disparity`. Sampling noise adds to the loss.
    reduce : "mean" or None
        None: the value of each query, in sorted order of their ids.

    Returns
    -------
    loss : float, or ndarray of shape (n_queries,)
        At least 0. Defined for every query: where no item is relevant, all should be exposed alike.

    References
    ----------
    F. Diaz, B. Mitra, M. Ekstrand, A. Biega and B. Carterette. Evaluating Stochastic Rankings with Expected Exposure. CIKM 2020.

    Examples
    --------
    >>> from skfairrank.metrics import expected_exposure_loss
    >>> kw = dict(qid=[0, 0], n_samples="exact")
    >>> expected_exposure_loss([1, 1], [0.0, 0.0], **kw)  # equal items, equal chances
    0.0
    >>> expected_exposure_loss([1, 1], [1.0, 0.0], policy="deterministic", qid=[0, 0])  # 2 * (1 - .75)^2
    0.125
    """
    if part not in _PARTS:
        raise ValueError(f"part={part!r}: choose one of {list(_PARTS)}.")
    chosen = make_policy(policy, n_samples=n_samples, random_state=random_state)
    queries, exposure, table = _exposed(s, qid, chosen, patience, k)
    y = queries.group(check_relevance(y, queries.n_rows))
    ideal = Deterministic().expected_discounts(y, queries, table)
    values = np.add.reduceat(_PARTS[part](exposure, ideal), queries.offsets[:-1])
    per_query = PerQuery(values, np.full(len(values), True), "expected_exposure_loss", "")
    return per_query.weighted(queries.weights(query_weight)).reduced(reduce)


_PARTS = {
    "loss": lambda exposure, ideal: (exposure - ideal) ** 2,
    "disparity": lambda exposure, ideal: exposure**2,
    "relevance": lambda exposure, ideal: exposure * ideal,
}


@names_queries
def attention_inequity(
    y,
    s,
    *,
    qid,
    items=None,
    patience=0.5,
    policy="deterministic",
    k=None,
    n_samples=100,
    random_state=None,
    query_weight=None,
    reduce="mean",
):
    r"""Inequity of amortised attention: how far what items get over a history is from what they deserve (Biega et al. 2018).

    Definition: the queries are a history of rankings, in which items come again. In each query the attention :math:`a_i` of the
    ranks and the relevances :math:`r_i` are divided by their sums. Over m queries with weights :math:`w_q`

    .. math:: \sum_i |A_i - R_i|, \qquad A_i = \sum_q w_q a^q_i, \quad R_i = \sum_q w_q r^q_i ,

    is the sum of the paper (``reduce="sum"``), and divided by :math:`\sum_q w_q` the mean (``reduce="mean"``),
    between 0 and 2, which does not grow with the length of the history. A single list is hardly ever fair in this sense; a
    history can be, as items take turns.

    (FairRankTune's IAA, as of its commit 8a06ae0, returns after the first ranking of a history, and divides neither attention nor
    relevance by their sums.)

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    s : array-like, shape (n_rows,)
        Scores; higher is better. May be None under a policy that needs none, `skfairrank.policies.RankProbabilities`.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order: one for each ranking of the history.
    items : array-like, shape (n_rows,), optional
        Which item each row is: rows of one item in several queries share an id. None: each row is an item of its own, and
        nothing amortises.
    patience : float in (0, 1) or None, default=0.5
        Attention of rank r is :math:`\mathrm{patience}^{r - 1}`, the paper's geometric attention. None:
        :math:`1 / \log_2(1 + r)`.
    policy : "deterministic", "plackett_luce" or a policy, default "deterministic"
    k : int, optional
        Ranks beyond k get no attention; k=1 is the paper's singular attention.
    n_samples, random_state
        Under ``policy="plackett_luce"``, as for `group_exposure_difference`.
    query_weight : array-like or mapping, optional
        How often each ranking was shown, >= 0.
    reduce : "mean", "sum" or None
        None: :math:`A_i - R_i` of each item, in sorted order of their ids; positive where it gets more than it deserves.

    Returns
    -------
    inequity : float, or ndarray of shape (n_items,)
        Lower is better. Queries in which no row is relevant deserve nothing that could be divided: they are left out, with an
        `UndefinedMetricWarning`.

    References
    ----------
    A. Biega, K. Gummadi and G. Weikum. Equity of Attention: Amortizing Individual Fairness in Rankings. SIGIR 2018.

    Examples
    --------
    Two equal items take turns at the only rank that is seen:

    >>> from skfairrank.metrics import attention_inequity
    >>> y, qid, items = [1, 1, 1, 1], [1, 1, 2, 2], ["a", "b", "a", "b"]
    >>> attention_inequity(y, [2, 1, 1, 2], qid=qid, items=items, k=1)
    0.0
    >>> attention_inequity(y, [2, 1, 2, 1], qid=qid, items=items, k=1, reduce="sum")  # a gets 2 of 1, b none of 1
    2.0
    """
    if not (reduce is None or (isinstance(reduce, str) and reduce in ("mean", "sum"))):
        raise ValueError(f'reduce={reduce!r}: choose "mean", "sum", or None for the value of each item.')
    chosen = make_policy(policy, n_samples=n_samples, random_state=random_state)
    queries, attention, _ = _exposed(s, qid, chosen, patience, k)
    y = queries.group(check_relevance(y, queries.n_rows))
    weight = queries.weights(query_weight)
    weight = np.ones(queries.n_queries) if weight is None else weight
    deserved, given = (np.add.reduceat(values, queries.offsets[:-1]) for values in (y, attention))
    counts = np.where(deserved > 0, weight, 0.0)
    if lost := int(((weight > 0) & ~(deserved > 0)).sum()):
        warn_caller(
            f"attention_inequity is undefined in {lost} of {int((weight > 0).sum())} queries (they have no relevant row): "
            "they are left out of the history.",
            UndefinedMetricWarning,
        )
    sizes = queries.sizes
    too_much = attention / np.repeat(given, sizes) - y / np.repeat(np.where(deserved > 0, deserved, 1.0), sizes)
    too_much *= np.repeat(counts, sizes)
    if items is not None:
        known = Queries.from_qid(items, queries.n_rows, name="items")
        too_much = np.bincount(queries.group(known.codes), weights=too_much, minlength=known.n_queries)
    else:
        too_much = queries.ungroup(too_much)
    if reduce is None:
        return too_much
    total = float(np.abs(too_much).sum())
    if reduce == "sum":
        return total
    return total / float(counts.sum()) if counts.any() else float("nan")


def _exposed(s, qid, policy, patience, k):
    """The queries, what each row is expected to get, grouped by query, and the table by rank."""
    queries, s = scored_rows(s, qid, policy)
    table = attention_by_rank(int(queries.sizes.max()), patience, k)
    return queries, policy.expected_discounts(s, queries, table), table
