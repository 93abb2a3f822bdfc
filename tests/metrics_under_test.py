"""Every metric under one calling convention, its value by counting all rankings, and random data for all of them."""

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from skfairrank.metrics import (
    attention_weighted_rank_fairness,
    expected_exposure_loss,
    group_exposure_difference,
    group_exposure_disparity,
    group_ndkl,
    group_skew,
    individual_exposure_disparity,
    kendall_tau_score,
    ndcg_score,
    stochastic_ndcg_score,
)


@dataclass(frozen=True)
class Data:
    """Rows with all that any metric takes."""

    y: np.ndarray
    s: np.ndarray
    s2: np.ndarray
    g: np.ndarray
    qid: np.ndarray

    def take(self, rows):
        return replace(self, **{name: getattr(self, name)[rows] for name in ("y", "s", "s2", "g", "qid")})


METRICS = {
    "ndcg": lambda d, **kw: ndcg_score(d.y, d.s, qid=d.qid, **kw),
    "ndcg_linear_at_2": lambda d, **kw: ndcg_score(d.y, d.s, qid=d.qid, gain="linear", k=2, **kw),
    "kendall_tau": lambda d, **kw: kendall_tau_score(d.s, d.s2, qid=d.qid, **kw),
    "difference": lambda d, **kw: group_exposure_difference(d.s, qid=d.qid, sensitive_features=d.g, **kw),
    "stochastic_ndcg": lambda d, **kw: stochastic_ndcg_score(d.y, d.s, qid=d.qid, **kw),
    "stochastic_ndcg_linear_at_2": lambda d, **kw: stochastic_ndcg_score(d.y, d.s, qid=d.qid, gain="linear", k=2, **kw),
    "stochastic_difference": lambda d, **kw: group_exposure_difference(
        d.s, qid=d.qid, sensitive_features=d.g, policy="plackett_luce", **kw
    ),
    "disparity": lambda d, **kw: group_exposure_disparity(d.y, d.s, qid=d.qid, sensitive_features=d.g, **kw),
    "individual_disparity": lambda d, **kw: individual_exposure_disparity(d.y, d.s, qid=d.qid, **kw),
    "sorted_disparity": lambda d, **kw: group_exposure_disparity(
        d.y, d.s, qid=d.qid, sensitive_features=d.g, policy="deterministic", **kw
    ),
    "average_disparity": lambda d, **kw: group_exposure_disparity(
        d.y, d.s, qid=d.qid, sensitive_features=d.g, ties="average", **kw
    ),
    "sorted_individual_disparity": lambda d, **kw: individual_exposure_disparity(
        d.y, d.s, qid=d.qid, policy="deterministic", **kw
    ),
    "ndkl": lambda d, **kw: group_ndkl(d.s, qid=d.qid, sensitive_features=d.g, **kw),
    "skew": lambda d, **kw: group_skew(d.s, qid=d.qid, sensitive_features=d.g, k=2, **kw),
    "awrf": lambda d, **kw: attention_weighted_rank_fairness(d.s, qid=d.qid, sensitive_features=d.g, **kw),
    "exposure_loss": lambda d, **kw: expected_exposure_loss(d.y, d.s, qid=d.qid, **kw),
}
DETERMINISTIC = [
    "ndcg",
    "ndcg_linear_at_2",
    "kendall_tau",
    "difference",
    "sorted_disparity",
    "sorted_individual_disparity",
    "ndkl",
    "skew",
    "awrf",
]
OF_SHARES = ["ndkl", "skew", "awrf"]
STOCHASTIC = [name for name in METRICS if name not in DETERMINISTIC]
HAS_Y = [name for name in METRICS if name not in ("kendall_tau", "difference", "stochastic_difference", *OF_SHARES)]
GROUP_DISPARITIES = ["disparity", "sorted_disparity", "average_disparity"]
HAS_GROUPS = ["difference", "stochastic_difference", *GROUP_DISPARITIES, *OF_SHARES]


def sampling(name, n_samples=3, random_state=0):
    """The keyword arguments that only metrics of the Plackett-Luce policy take."""
    return {"n_samples": n_samples, "random_state": random_state} if name in STOCHASTIC else {}


def random_data(rng, sizes, *, n_groups=2, ties=True, ids=None):
    """Queries of the given sizes, interleaved; relevances 0 to 3, scores tied now and then."""
    ids = np.arange(len(sizes)) * 3 + 7 if ids is None else np.asarray(ids)
    n = int(np.sum(sizes))
    s, s2 = rng.normal(size=(2, n))
    if ties:
        s, s2 = np.round(s, 1), np.round(s2, 1)
    rows = rng.permutation(n)
    y, g = rng.integers(0, 4, n).astype(float), rng.integers(0, n_groups, n)
    if n_groups > 2:  # more than two numbers are no groups
        g = np.array(list("abcde"))[g]
    return Data(y, s, s2, g, np.repeat(ids, sizes)[rows])


# By counting. Each function takes one query, and gives nan where the metric is undefined.


def policy_deterministic(s):
    """Every order of the rows, sorted by score, ties staying in that order: all tie-breaks equally often."""
    orders = [sorted(order, key=lambda i: -s[i]) for order in permutations(range(len(s)))]
    return [(order, 1 / len(orders)) for order in orders]


def policy_plackett_luce(s):
    e = np.exp(s)
    return [
        (list(order), np.prod([e[i] / e[list(order[j:])].sum() for j, i in enumerate(order)]))
        for order in permutations(range(len(s)))
    ]


def mean_ndcg(y, policy, gain, k=None):
    g = {"exp2": 2**y - 1, "linear": y}[gain]
    discount = np.array([1 / np.log2(1 + r) if k is None or r <= k else 0.0 for r in range(1, len(y) + 1)])
    ideal = np.sort(g)[::-1] @ discount
    return sum(p * (g[order] @ discount) for order, p in policy) / ideal if ideal > 0 else np.nan


def mean_exposure(policy, k=None):
    exposure = np.zeros(len(policy[0][0]))
    for order, p in policy:
        for position, i in enumerate(order[:k]):
            exposure[i] += p / np.log2(2 + position)
    return exposure


def difference_by_counting(g, exposure):
    means = [exposure[g == label].mean() for label in set(g.tolist())]
    return max(means) - min(means) if len(means) > 1 else np.nan


def disparity_by_counting(y, g, exposure, ties="larger_label"):
    """Case by case as printed in the paper's appendix, but for the tie of merits, for the worst pair of groups.

    Relevances are whole numbers.
    """
    labels = np.unique(g)
    return max(
        (disparity_of_pair(y, g == a, g == b, exposure, ties) for a in labels for b in labels if a < b), default=0.0
    )


def disparity_of_pair(y, zero, one, exposure, ties):
    if y[zero].mean() == 0 or y[one].mean() == 0:
        return 0.0
    gap = exposure[zero].mean() / y[zero].mean() - exposure[one].mean() / y[one].mean()
    first, second = y[zero].sum() * one.sum(), y[one].sum() * zero.sum()
    if first == second and ties == "average":
        return (max(0.0, gap) + max(0.0, -gap)) / 2
    return max(0.0, gap) if first > second else max(0.0, -gap)


def individual_by_counting(y, exposure):
    n = len(y)
    pairs = [(i, j) for i in range(n) for j in range(n) if y[i] >= y[j] > 0]
    gaps = [max(0.0, exposure[i] / y[i] - exposure[j] / y[j]) for i, j in pairs]
    return np.mean(gaps) if gaps else np.nan


# The metrics that take a policy, of one query under a policy that is a list of rankings with their probabilities.
OF_POLICY = {
    "ndcg": lambda d, policy, k: mean_ndcg(d.y, policy, "exp2", k),
    "ndcg_linear_at_2": lambda d, policy, k: mean_ndcg(d.y, policy, "linear", 2),
    "stochastic_ndcg": lambda d, policy, k: mean_ndcg(d.y, policy, "exp2", k),
    "stochastic_ndcg_linear_at_2": lambda d, policy, k: mean_ndcg(d.y, policy, "linear", 2),
    "difference": lambda d, policy, k: difference_by_counting(d.g, mean_exposure(policy, k)),
    "disparity": lambda d, policy, k: disparity_by_counting(d.y, d.g, mean_exposure(policy, k)),
    "average_disparity": lambda d, policy, k: disparity_by_counting(d.y, d.g, mean_exposure(policy, k), ties="average"),
    "individual_disparity": lambda d, policy, k: individual_by_counting(d.y, mean_exposure(policy, k)),
}
