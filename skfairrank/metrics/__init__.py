"""Metrics of rankings with queries, and the same metrics as scikit-learn scorers.

Every metric takes `qid`, one query id per row in any order, computes a value for each query, and averages over queries
(``reduce="mean"``) or returns the values (``reduce=None``).
"""

from skfairrank.metrics._attention import attention_inequity, expected_exposure_loss
from skfairrank.metrics._exposure import (
    group_exposure_difference,
    group_exposure_disparity,
    individual_exposure_disparity,
)
from skfairrank.metrics._group_shares import attention_weighted_rank_fairness, group_ndkl, group_skew
from skfairrank.metrics._kendall import kendall_tau_score
from skfairrank.metrics._ndcg import ndcg_score, stochastic_ndcg_score
from skfairrank.metrics._scorers import (
    QueryScorer,
    attention_weighted_rank_fairness_scorer,
    kendall_tau_scorer,
    make_attention_inequity_scorer,
    make_attention_weighted_rank_fairness_scorer,
    make_expected_exposure_loss_scorer,
    make_group_exposure_difference_scorer,
    make_group_exposure_disparity_scorer,
    make_group_ndkl_scorer,
    make_group_skew_scorer,
    make_individual_exposure_disparity_scorer,
    make_kendall_tau_scorer,
    make_ndcg_scorer,
    make_stochastic_ndcg_scorer,
    make_utility_scorer,
    ndcg_scorer,
    neg_attention_inequity_scorer,
    neg_expected_exposure_loss_scorer,
    neg_group_exposure_difference_scorer,
    neg_group_exposure_disparity_scorer,
    neg_group_ndkl_scorer,
    neg_group_skew_scorer,
    neg_individual_exposure_disparity_scorer,
    stochastic_ndcg_scorer,
)
from skfairrank.metrics._utility import utility_score

__all__ = [
    "QueryScorer",
    "attention_inequity",
    "attention_weighted_rank_fairness",
    "attention_weighted_rank_fairness_scorer",
    "expected_exposure_loss",
    "group_exposure_difference",
    "group_exposure_disparity",
    "group_ndkl",
    "group_skew",
    "individual_exposure_disparity",
    "kendall_tau_score",
    "kendall_tau_scorer",
    "make_attention_inequity_scorer",
    "make_attention_weighted_rank_fairness_scorer",
    "make_expected_exposure_loss_scorer",
    "make_group_exposure_difference_scorer",
    "make_group_exposure_disparity_scorer",
    "make_group_ndkl_scorer",
    "make_group_skew_scorer",
    "make_individual_exposure_disparity_scorer",
    "make_kendall_tau_scorer",
    "make_ndcg_scorer",
    "make_stochastic_ndcg_scorer",
    "make_utility_scorer",
    "ndcg_score",
    "ndcg_scorer",
    "neg_attention_inequity_scorer",
    "neg_expected_exposure_loss_scorer",
    "neg_group_exposure_difference_scorer",
    "neg_group_exposure_disparity_scorer",
    "neg_group_ndkl_scorer",
    "neg_group_skew_scorer",
    "neg_individual_exposure_disparity_scorer",
    "stochastic_ndcg_score",
    "stochastic_ndcg_scorer",
    "utility_score",
]
