"""Every utility, and the worth of a ranking under it, from its definition."""

import numpy as np

from skfairrank.utilities import DCG, ERR, NDCG, RBP, AveragePrecision, PrecisionAtK, RecallAtK, ReciprocalRank


def dcg(relevances, k=None):
    return sum((2.0**rel - 1) / np.log2(j + 2) for j, rel in enumerate(relevances[:k]))


def ndcg(relevances, k=None):
    return dcg(relevances, k) / dcg(sorted(relevances, reverse=True), k)


def reciprocal_rank(relevances, k=None):
    return next((1 / (j + 1) for j, rel in enumerate(relevances[:k]) if rel > 0), 0.0)


def err(relevances, top=4, k=None):
    """Chapelle et al. (2009), equation 4: the chance to stop at a row, and to have gone past all rows before it."""
    value, goes_on = 0.0, 1.0
    for j, rel in enumerate(relevances[:k]):
        stop = (2.0**rel - 1) / 2.0**top
        value, goes_on = value + goes_on * stop / (j + 1), goes_on * (1 - stop)
    return value


def average_precision(relevances, k=None):
    """Mean, over the relevant rows, of the share of relevant rows down to each; beyond rank k it counts as 0."""
    relevant = [rel > 0 for rel in relevances]
    return sum(sum(relevant[: j + 1]) / (j + 1) for j, is_one in enumerate(relevant[:k]) if is_one) / sum(relevant)


#: Each utility that tables say, and the worth of relevances from the top, from its definition.
TABLES = {
    "NDCG": (NDCG(), ndcg),
    "NDCG@3": (NDCG(k=3), lambda r: ndcg(r, 3)),
    "linear NDCG": (
        NDCG(gain="linear"),
        lambda r: (
            sum(rel / np.log2(j + 2) for j, rel in enumerate(r))
            / sum(rel / np.log2(j + 2) for j, rel in enumerate(sorted(r, reverse=True)))
        ),
    ),
    "DCG": (DCG(), dcg),
    "DCG@2": (DCG(k=2), lambda r: dcg(r, 2)),
    "precision@3": (PrecisionAtK(k=3), lambda r: sum(rel > 0 for rel in r[:3]) / 3),
    "precision@9": (PrecisionAtK(k=9), lambda r: sum(rel > 0 for rel in r) / 9),
    "recall@2": (RecallAtK(k=2), lambda r: sum(rel > 0 for rel in r[:2]) / sum(rel > 0 for rel in r)),
    "RBP": (RBP(p=0.7), lambda r: 0.3 * sum((rel > 0) * 0.7**j for j, rel in enumerate(r))),
    "reciprocal rank": (ReciprocalRank(), reciprocal_rank),
    "reciprocal rank@2": (ReciprocalRank(k=2), lambda r: reciprocal_rank(r, 2)),
    "ERR": (ERR(max_relevance=4), err),
    "ERR@3": (ERR(max_relevance=4, k=3), lambda r: err(r, k=3)),
}

#: Those that only the worth of whole rankings says.
WHOLE = {
    "AP": (AveragePrecision(), average_precision),
    "AP@2": (AveragePrecision(k=2), lambda r: average_precision(r, 2)),
}
UTILITIES = {**TABLES, **WHOLE}
