"""A cheap look at what columns tell of a group together that none of them tells alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing

from skfairrank._sensitive import Attribute
from skfairrank.wrappers._base import take
from skfairrank.wrappers._library import columns_of

# Rows and columns looked at; the look is to cost less than a tenth of a fit of 100 small trees.
N_ROWS, N_COLUMNS = 800, 6
# An AUC below the first is little. Together columns tell much where the AUC is above the second by three standard errors.
LITTLE, MUCH = 0.6, 0.7


def told_together(X, columns: np.ndarray, attribute: Attribute) -> tuple[float, np.ndarray]:
    """Which columns tell little of an attribute alone and much together, and by what AUC.

    Told is the largest group, or amounts above the median: by a shallow tree on half of a sample of rows, in the other half.

    Parameters
    ----------
    X : table, shape (n_rows, n_features)
    columns : ndarray of int
        The positions of columns to look at, the first ones first.
    attribute : Attribute

    Returns
    -------
    auc : float
    silent : ndarray of int
        Positions of the columns; empty where they do not tell much.
    """
    rows = np.random.default_rng(0).permutation(np.flatnonzero(attribute.is_known))[:N_ROWS]
    values = attribute.values[rows]
    is_first = values > np.median(values) if attribute.is_numeric else values == np.bincount(values).argmax()
    sample = list(columns_of(_safe_indexing(take(X, rows), columns, axis=1)))
    table = np.column_stack([_as_numbers(column, is_first) for column in sample])
    kept = np.flatnonzero(~pd.DataFrame(table).duplicated())  # people who appear in several queries count once
    table, is_first = np.nan_to_num(table[kept], nan=float(np.finfo(np.float32).min)), is_first[kept]
    alone = _auc(table, is_first)
    silent = np.flatnonzero(np.maximum(alone, 1 - alone) < LITTLE)[:N_COLUMNS]
    half = len(kept) // 2
    if len(silent) < 2 or len(set(is_first[:half])) < 2 or len(set(is_first[half:])) < 2:
        return 0.5, columns[:0]
    tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=20, random_state=0)
    told = tree.fit(table[:half, silent], is_first[:half]).predict_proba(table[half:, silent])[:, 1:]
    auc, n_first = float(_auc(told, is_first[half:])[0]), is_first[half:].sum()
    error = np.sqrt((len(told) + 1) / (12 * n_first * (len(told) - n_first)))  # of an AUC by chance
    return auc, columns[silent] if auc > MUCH + 3 * error else columns[:0]


def _as_numbers(column: pd.Series, is_first: np.ndarray) -> np.ndarray:
    """A column of numbers as it is, of categories the number of each when they are sorted by the group's share."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(np.float32, na_value=np.nan)
    codes = pd.factorize(column, use_na_sentinel=False)[0]
    shares = np.bincount(codes, weights=is_first) / np.bincount(codes)
    return np.argsort(np.argsort(shares))[codes].astype(np.float32)


def _auc(scores: np.ndarray, is_first: np.ndarray) -> np.ndarray:
    """Of each column of scores, the share of pairs of a row of the first group and another one that it sorts so."""
    n_first = is_first.sum()
    ranks = rankdata(scores, axis=0)[is_first].sum(axis=0)
    return (ranks - n_first * (n_first + 1) / 2) / np.maximum(n_first * (len(scores) - n_first), 1)
