"""How the groups' shares of the top, or of attention, differ from the shares that they should have.

A group's share is its expected share under the policy; of the sorted list, without ties, it is the share itself, as published.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral

import numpy as np

from skfairrank._random import as_generator
from skfairrank.metrics._per_query import PerQuery, Ranked, mean_over_queries
from skfairrank.utilities import discounts


@mean_over_queries
def group_ndkl(
    s,
    *,
    qid,
    sensitive_features,
    unknown_groups="error",
    target=None,
    policy="deterministic",
    k=None,
    n_samples=100,
    random_state=None,
    query_weight=None,
    reduce="mean",
):
    r"""Normalised discounted Kullback-Leibler divergence of the groups' shares of each prefix (Geyik et al. 2019).

    Definition, for one query with target shares :math:`t_G`, whose first i ranks hold shares :math:`D_i(G)` of the groups:

    .. math:: \frac1Z \sum_{i=1}^{n} \frac{1}{\log_2(i + 1)} \sum_G D_i(G) \ln \frac{D_i(G)}{t_G}, \qquad
        Z = \sum_{i=1}^{n} \frac{1}{\log_2(i + 1)} .

    No list has 0, unless there is one group: the first rank belongs to one of them. Programs that add a small number to each
    share (FairRankTune: 1e-7) differ from the formula by about as much. Time grows like the square of a query's size.

    Parameters
    ----------
    s : array-like, shape (n_rows,)
        Scores; higher is better. None under a policy that needs none.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row; any number of groups.
    unknown_groups : {"error", "leave_out"}
        What missing values in `sensitive_features` are. "leave_out": these rows have their ranks, and count in no group:
        shares are those among the other rows.
    target : mapping of label to share, optional
        Shares that the groups should have, which sum to 1. None: their shares of each query's items.
    policy : "deterministic", "plackett_luce" or a policy, default "deterministic"
        Under a policy that draws rankings, or with tied scores, :math:`D_i` are expected shares.
    k : int, optional
        Only prefixes of up to k ranks count.
    n_samples, random_state, query_weight
        As for :func:`ndcg_score`.
    reduce : "mean" or None
        None: the value of each query; nan for a query with one group, where there is no `target`.

    Returns
    -------
    divergence : float, or ndarray of shape (n_queries,)
        At least 0, lower is better; in nats.

    References
    ----------
    S. Geyik, S. Ambler and K. Kenthapadi. Fairness-Aware Ranking in Search & Recommendation Systems with Application to LinkedIn
    Talent Search. KDD 2019.

    Examples
    --------
    >>> from skfairrank.metrics import group_ndkl
    >>> # ln(2) / (1 + 1 / log2(3)), then 0
    >>> round(group_ndkl([2, 1], qid=[0, 0], sensitive_features=["A", "B"]), 6)
    0.425001
    """
    shares = _Shares(s, qid, sensitive_features, unknown_groups, target, policy, n_samples, random_state)
    sizes = shares.queries.sizes
    total, weight = np.zeros(len(sizes)), np.zeros(len(sizes))
    discount = discounts(int(sizes.max()), k)
    for i in range(1, int(np.count_nonzero(discount)) + 1):
        divergence = _divergence(shares.of_first(i), shares.target)
        counts = np.where((i <= sizes) & ~np.isnan(divergence), discount[i - 1], 0.0)
        total, weight = total + counts * np.nan_to_num(divergence), weight + counts
    return shares.reduced(total / np.where(weight > 0, weight, np.nan), "group_ndkl", query_weight, reduce)


@mean_over_queries
def group_skew(
    s,
    *,
    qid,
    sensitive_features,
    unknown_groups="error",
    k=10,
    which="max",
    target=None,
    policy="deterministic",
    n_samples=100,
    random_state=None,
    query_weight=None,
    reduce="mean",
):
    r"""Skew at k: the logarithm of a group's share of the first k ranks over the share it should have (Geyik et al. 2019).

    Definition, for one query, with min(k, n) ranks of which group G has the share
    :math:`p_G` and should have :math:`t_G`:

    .. math:: \mathrm{Skew}_G = \ln \frac{p_G}{t_G}, \qquad
        \mathrm{MaxSkew} = \max_G \mathrm{Skew}_G, \quad \mathrm{MinSkew} = \min_G \mathrm{Skew}_G .

    MaxSkew is at least 0: how much the most favoured group has too much. MinSkew is at most 0: how much the least favoured group
    lacks, minus infinity where it is not among the first k at all; so is the mean over queries then.

    Parameters
    ----------
    s : array-like, shape (n_rows,)
        Scores; higher is better. None under a policy that needs none.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row; any number of groups.
    unknown_groups : {"error", "leave_out"}
        As for `group_ndkl`.
    k : int, default=10
    which : {"max", "min"}, default="max"
    target, policy, n_samples, random_state, query_weight
        As for `group_ndkl`.
    reduce : "mean" or None
        None: the value of each query; nan for a query with one group, where there is no `target`.

    Returns
    -------
    skew : float, or ndarray of shape (n_queries,)
        0 is fair; in nats.

    References
    ----------
    S. Geyik, S. Ambler and K. Kenthapadi. Fairness-Aware Ranking in Search & Recommendation Systems with Application to LinkedIn
    Talent Search. KDD 2019.

    Examples
    --------
    >>> from skfairrank.metrics import group_skew
    >>> kw = dict(qid=[0] * 6, sensitive_features=list("AABABB"), k=3)
    >>> # A has 2/3 of the first three ranks, and half of the items
    >>> round(group_skew([6, 5, 4, 3, 2, 1], **kw), 6)
    0.287682
    >>> round(group_skew([6, 5, 4, 3, 2, 1], which="min", **kw), 6)
    -0.405465
    """
    if which not in ("max", "min"):
        raise ValueError(f'which={which!r}: choose "max" or "min".')
    discounts(1, k)  # checks k
    shares = _Shares(s, qid, sensitive_features, unknown_groups, target, policy, n_samples, random_state)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.log(shares.of_first(int(k)) / shares.target)
    skew = np.where(shares.target > 0, skew, -np.inf if which == "max" else np.inf)
    values = skew.max(axis=1) if which == "max" else skew.min(axis=1)
    return shares.reduced(values, "group_skew", query_weight, reduce)


@mean_over_queries
def attention_weighted_rank_fairness(
    s,
    *,
    qid,
    sensitive_features,
    unknown_groups="error",
    target=None,
    distance="jensen_shannon",
    patience=None,
    policy="deterministic",
    k=None,
    n_samples=100,
    random_state=None,
    query_weight=None,
    reduce="mean",
):
    r"""AWRF: one minus the distance of the groups' shares of attention from the shares that they should have.

    Definition (Sapiezynski et al. 2019; with the Jensen-Shannon divergence as in TREC's Fair Ranking Track of 2021 and 2022), for
    one query whose rank r gets attention :math:`a_r`, with target shares t:

    .. math:: 1 - \Delta(d, t), \qquad d_G = \frac{\sum_{i \in G} a_{r_i}}{\sum_i a_{r_i}} .

    Parameters
    ----------
    s : array-like, shape (n_rows,)
        Scores; higher is better. None under a policy that needs none.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row; any number of groups.
    unknown_groups : {"error", "leave_out"}
        As for `group_ndkl`.
    target : mapping of label to share, optional
        Shares that the groups should have, which sum to 1. None: their shares of each query's items.
    distance : {"jensen_shannon", "absolute"}, default="jensen_shannon"
        The Jensen-Shannon divergence in bits, or :math:`\frac12 \sum_G |d_G - t_G|`, which of two groups is the difference of
        either's share.
    patience : float in (0, 1), optional
        :math:`a_r = \mathrm{patience}^{r - 1}`, the geometric attention of Sapiezynski et al. None: :math:`1 / \log_2(1 + r)`.
    policy : "deterministic", "plackett_luce" or a policy, default "deterministic"
        Attention is its expectation under the policy.
    k : int, optional
        Ranks beyond k get no attention.
    n_samples, random_state, query_weight
        As for :func:`ndcg_score`.
    reduce : "mean" or None
        None: the value of each query; nan for a query with one group, where there is no `target`.

    Returns
    -------
    fairness : float, or ndarray of shape (n_queries,)
        Between 0 and 1, higher is better.

    References
    ----------
    P. Sapiezynski, W. Zeng, R. Robertson, A. Mislove and C. Wilson. Quantifying the Impact of User Attention on Fair Group
    Representation in Ranked Lists. Companion of WWW 2019.

    M. Ekstrand, G. McDonald, A. Raj and I. Johnson. Overview of the TREC 2021 Fair Ranking Track.

    Examples
    --------
    >>> from skfairrank.metrics import attention_weighted_rank_fairness
    >>> kw = dict(qid=[0, 0], sensitive_features=["A", "B"], patience=0.5)
    >>> # attention 2/3 and 1/3, target 1/2
    >>> round(attention_weighted_rank_fairness([2, 1], distance="absolute", **kw), 6)
    0.833333
    >>> round(attention_weighted_rank_fairness([2, 1], **kw), 6)
    0.979279
    """
    if distance not in _DISTANCES:
        raise ValueError(f"distance={distance!r}: choose one of {list(_DISTANCES)}.")
    shares = _Shares(s, qid, sensitive_features, unknown_groups, target, policy, n_samples, random_state)
    values = 1.0 - _DISTANCES[distance](shares.of_attention(discounts(shares.longest, k, patience)), shares.target)
    return shares.reduced(np.clip(values, 0.0, 1.0), "attention_weighted_rank_fairness", query_weight, reduce)


class _Shares(Ranked):
    """Expected shares of groups in each query, and their targets, arrays of shape (n_queries, n_groups)."""

    def __init__(self, s, qid, sensitive_features, unknown_groups, target, policy, n_samples, random_state):
        if isinstance(policy, str) and random_state is not None and not isinstance(random_state, Integral):
            random_state = int(as_generator(random_state).integers(2**63))  # the same rankings for every prefix
        super().__init__(s, qid, policy, n_samples, random_state)
        labels, group = self.groups(sensitive_features, unknown_groups)
        self.member = np.where(group[:, None] >= 0, np.eye(len(labels))[group], 0.0)
        of_items = _shares_of(np.add.reduceat(self.member, self.starts))
        self.defined = np.full(len(of_items), True) if target is not None else (of_items > 0).sum(axis=1) > 1
        self.target = of_items if target is None else _shares_of_labels(target, labels.tolist())

    def of_attention(self, attention):
        """Shares of what ranks get."""
        return _shares_of(np.add.reduceat(self.member * self.expected(attention)[:, None], self.starts))

    def of_first(self, k: int):
        """Shares of the first min(k, n) ranks."""
        return self.of_attention((np.arange(self.longest) < k).astype(np.float64))

    def reduced(self, values, metric, query_weight, reduce):
        per_query = PerQuery(values, self.defined & ~np.isnan(values), metric, "none has two groups", is_selective=True)
        return per_query.weighted(self.queries.weights(query_weight)).reduced(reduce)


def _shares_of(amounts: np.ndarray) -> np.ndarray:
    """Each row divided by its sum; nan where that is 0, as in a query without rows of known group."""
    total = amounts.sum(axis=1, keepdims=True)
    return amounts / np.where(total > 0, total, np.nan)


def _shares_of_labels(target, labels: list) -> np.ndarray:
    if not isinstance(target, Mapping):
        raise TypeError(f"target is a {type(target).__name__}: give a dict from group label to share.")
    shares = np.array([float(target.get(label, 0.0)) for label in labels])
    rest = np.array([float(share) for label, share in target.items() if label not in labels])
    if not (shares > 0).all() or not (rest >= 0).all() or abs(shares.sum() + rest.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"target={dict(target)!r}: give a share above 0 for each of the groups {labels}; shares sum to 1."
        )
    return shares[None]


def _divergence(p, q):
    """Kullback-Leibler divergence of rows, in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p / q), 0.0 * p)
    return np.maximum(terms.sum(axis=1), 0.0)


def _jensen_shannon(p, q):
    middle = 0.5 * (p + q)
    return 0.5 * (_divergence(p, middle) + _divergence(q, middle)) / np.log(2.0)


_DISTANCES = {"jensen_shannon": _jensen_shannon, "absolute": lambda p, q: 0.5 * np.abs(p - q).sum(axis=1)}
