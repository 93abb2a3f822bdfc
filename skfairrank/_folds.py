"""Whether scikit-learn's model selection has cut queries: what a score can't see in the rows that it gets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType

import numpy as np
from sklearn.utils.validation import _num_samples

from skfairrank._checks import warn_caller
from skfairrank._queries import Queries

__all__ = ["warn_if_queries_are_cut"]

# scikit-learn's functions that fit and score one fold. Their variables `train` and `test` are row numbers of `X`, and
# `score_params` (in RFECV a part of `routed_params`) holds the metadata of all rows of X.
_OF_A_FOLD = ("_fit_and_score", "_permutation_test_score", "_rfe_single_fit")


def warn_if_queries_are_cut() -> None:
    """Warn where scikit-learn fits or scores on some rows of a query while others are elsewhere or left out.

    To be called by whatever scores. ``cv=5``, successive halving on rows and `learning_curve` all do this, and what they hand
    on looks like queries of fewer rows; nothing that a splitter, a `fit` or a `score` is passed would tell. So the function
    that made the fold is asked, up the stack: it has the query ids of all rows. It is private to scikit-learn: if it changes,
    this warning falls silent and nothing else happens (a test would say so).
    """
    for fold in _folds():
        qid = _ids_of_all_rows(fold)
        if qid is None:
            continue
        queries = Queries.from_qid(qid, len(qid))
        for rows in (fold["train"], fold["test"]):
            n_rows = np.bincount(queries.codes[rows], minlength=queries.n_queries)
            if ((n_rows > 0) & (n_rows < queries.sizes)).any():
                warn_caller(
                    "scikit-learn cuts queries here: rows of one query are in the training and in the test set, or some are "
                    "left out. Rankings of parts of queries say little. Use a splitter of whole queries, such as "
                    "cv=skfairrank.model_selection.QueryKFold(5), where cv is an int. In successive halving with "
                    'resource="n_samples" halve on the number of steps instead, e.g. resource="max_iter" and '
                    "max_resources=1000. In the place of learning_curve use "
                    "skfairrank.model_selection.query_learning_curve."
                )
                return


def _folds() -> Iterator[dict]:
    """Variables of the functions on the stack that fit and score a fold, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _OF_A_FOLD and frame.f_globals.get("__name__", "").startswith("sklearn."):
            yield frame.f_locals
        frame = frame.f_back


def _ids_of_all_rows(fold: dict):
    if not {"X", "train", "test"} <= fold.keys():
        return None
    if "routed_params" in fold:
        metadata = fold["routed_params"].get("scorer", {}).get("score")
    else:
        metadata = fold.get("score_params")
    qid = (metadata or {}).get("qid")
    return qid if qid is not None and _num_samples(qid) == _num_samples(fold["X"]) else None
