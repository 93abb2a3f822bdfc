"""The synthetic task of Bower et al. (2021), Section 4.1: relevance from two features, one corrupted for a minority."""

from __future__ import annotations

import math

import numpy as np
from sklearn.utils import Bunch

from skfairrank._random import as_generator
from skfairrank.datasets._parameters import check_count, check_number

__all__ = ["make_biased_ranking"]

DESCR = """\
Biased synthetic ranking task (Bower et al. 2021, Section 4.1, after Singh and Joachims 2019).

Each item has z1 and z2, uniform on [0, feature_max], and the relevance z1 + z2, clipped at relevance_max. A majority
item shows the features (z1, z2); of a minority item z2 is lost and it shows (z1, 0). A ranker that uses the second
feature is unfair to the minority, whose relevance it underrates.
"""


def make_biased_ranking(
    n_queries: int = 100,
    n_items: int = 10,
    *,
    majority_fraction: float = 0.8,
    feature_max: float = 3.0,
    relevance_max: float = 5.0,
    random_state=None,
) -> Bunch:
    r"""Queries whose items show a feature that is missing for a minority (Bower et al. 2021, Section 4.1).

    .. math::
        z_1, z_2 \sim U[0, 3], \qquad rel = \min(z_1 + z_2, 5), \qquad
        x = (z_1, z_2) \text{ for the majority}, \quad (z_1, 0) \text{ for the minority}.

    Each item belongs to the majority with probability .8, independently of all else.

    Parameters
    ----------
    n_queries : int
        Number of queries.
    n_items : int
        Number of items of each query.
    majority_fraction : float
        Probability that an item belongs to the majority, in [0, 1].
    feature_max : float
        Upper end of the range of z1 and z2.
    relevance_max : float
        Where relevance is clipped; ``inf`` leaves the sum as it is.
    random_state : None, int, RandomState or Generator
        Where the random numbers come from; an int makes the data reproducible.

    Returns
    -------
    task : Bunch
        ``data`` (n_rows, 2), ``target`` (n_rows,) real relevances, ``qid`` (n_rows,) from 0 to n_queries - 1,
        ``sensitive_features`` (n_rows,) bool, true for the majority, ``uncorrupted_data`` (n_rows, 2) with z1 and z2 of
        every item, ``feature_names``, ``DESCR``. Rows of a query lie together, n_rows = n_queries * n_items.

    Raises
    ------
    ValueError
        If a count is not a positive whole number, or a number is outside its range.

    References
    ----------
    Bower, Eftekhari, Yurochkin, Sun: Individually Fair Ranking, ICLR 2021.

    Examples
    --------
    >>> task = make_biased_ranking(n_queries=3, n_items=10, random_state=0)
    >>> task.data.shape, task.qid[[0, 9, 10]].tolist()
    ((30, 2), [0, 0, 1])
    >>> bool((task.data[~task.sensitive_features, 1] == 0).all())
    True
    """
    n_queries = check_count(n_queries, "n_queries")
    n_items = check_count(n_items, "n_items")
    majority_fraction = check_number(majority_fraction, "majority_fraction", low=0, high=1)
    feature_max = check_number(feature_max, "feature_max", above=0)
    if math.isinf(feature_max):
        raise ValueError("feature_max=inf: give a finite number.")
    relevance_max = check_number(relevance_max, "relevance_max", above=0)
    generator = as_generator(random_state)

    n_rows = n_queries * n_items
    z = generator.uniform(0, feature_max, size=(n_rows, 2))
    majority = generator.random(n_rows) < majority_fraction
    data = z.copy()
    data[~majority, 1] = 0
    return Bunch(
        data=data,
        target=np.clip(z.sum(axis=1), 0, relevance_max),
        qid=np.repeat(np.arange(n_queries), n_items),
        sensitive_features=majority,
        uncorrupted_data=z,
        feature_names=["z1", "z2"],
        DESCR=DESCR,
    )
