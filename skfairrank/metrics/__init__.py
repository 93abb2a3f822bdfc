"""Metrics of rankings with queries, and the same metrics as scikit-learn scorers.

Every metric takes `qid`, one query id per row in any order, computes a value for each query, and averages over queries
(``reduce="mean"``) or returns the values (``reduce=None``). Collections of Dask, whose partitions hold whole queries, are
measured partition by partition; policies that draw rankings take other random numbers there than in memory.
"""

from skfairrank.metrics._exposure import (
    attention_inequity,
    expected_exposure_loss,
    group_exposure_difference,
    group_exposure_disparity,
    individual_exposure_disparity,
)
from skfairrank.metrics._pairwise import group_pairwise_accuracy, group_pairwise_accuracy_difference
from skfairrank.metrics._quality import kendall_tau_score, ndcg_score, stochastic_ndcg_score, utility_score
from skfairrank.metrics._scorers import (
    kendall_tau_scorer,
    make_kendall_tau_scorer,
    make_ranking_scorer,
    ndcg_scorer,
    neg_group_exposure_difference_scorer,
    neg_group_exposure_disparity_scorer,
    neg_group_pairwise_accuracy_difference_scorer,
    stochastic_ndcg_scorer,
)
from skfairrank.metrics._shares import attention_weighted_rank_fairness, group_ndkl, group_skew

__all__ = [
    "attention_inequity",
    "attention_weighted_rank_fairness",
    "expected_exposure_loss",
    "group_exposure_difference",
    "group_exposure_disparity",
    "group_ndkl",
    "group_pairwise_accuracy",
    "group_pairwise_accuracy_difference",
    "group_skew",
    "individual_exposure_disparity",
    "kendall_tau_score",
    "kendall_tau_scorer",
    "make_kendall_tau_scorer",
    "make_ranking_scorer",
    "ndcg_score",
    "ndcg_scorer",
    "neg_group_exposure_difference_scorer",
    "neg_group_exposure_disparity_scorer",
    "neg_group_pairwise_accuracy_difference_scorer",
    "stochastic_ndcg_score",
    "stochastic_ndcg_scorer",
    "utility_score",
]
