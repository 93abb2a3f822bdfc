"""Generated tasks: the synthetic one of Bower et al. (2021), and hiring with a known truth."""

from __future__ import annotations

import math
import sys
from numbers import Integral

import numpy as np
from sklearn.utils import Bunch

from skfairrank._random import as_generator

BIASED_DESCR = """\
Biased synthetic ranking task (Bower et al. 2021, Section 4.1, after Singh and Joachims 2019).

Each item has z1 and z2, uniform on [0, feature_max], and the relevance z1 + z2, clipped at relevance_max. A majority
item shows the features (z1, z2); of a minority item z2 is lost and it shows (z1, 0). A ranker that uses the second
feature is unfair to the minority, whose relevance it underrates.
"""

HIRING_DESCR = """\
Hiring with a known truth.

A person has a skill. Three marks measure it, each with noise of its own, and each lowered for the group, by 1.5, 1.5 and .5; two
more features have nothing to do with the group, and the first of them counts for the job. The labels (`target`) understate the
group by one unit of skill; `merit` is what they would be without that. The `twin` is the same person with the marks of the other
group. What predicts the group (the third mark beside the first two) is not how the groups differ (all three are lower).
"""

# How much each mark is lowered for the group.
_SHIFT = np.array([1.5, 1.5, 0.5, 0.0, 0.0])
_NOISE = 0.5
# Where the labels go up by one, of skill + other / 2 less the bias, and of the same without bias.
_TARGET_STEPS = (-0.5, 0.5, 1.2)
_MERIT_STEPS = (0.0, 1.0, 1.7)


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
    feature_max = check_number(feature_max, "feature_max", above=0, high=sys.float_info.max)
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
        DESCR=BIASED_DESCR,
    )


def make_hiring_ranking(n_queries: int = 300, n_items: int = 10, *, random_state=None) -> Bunch:
    r"""Openings with applicants, on which fairness can be checked against the truth.

    With the group :math:`g \in \{0, 1\}`, skill :math:`k` and another feature :math:`o`, all standard normal but the group,

    .. math::
        x_j = k + \tfrac12 \epsilon_j - c_j g \quad (j = 1, 2, 3;\ c = 1.5,\ 1.5,\ .5), \qquad
        x_4 = o_1 + \tfrac12 \epsilon_4, \quad x_5 = o_2 + \tfrac12 \epsilon_5,

    the target counts how many of -.5, .5, 1.2 lie below :math:`k + \tfrac12 o_1 - g`, and the merit how many of 0, 1, 1.7 lie
    below :math:`k + \tfrac12 o_1`. (With groups of one size both have the same mean.)

    Parameters
    ----------
    n_queries : int, default=300
        Number of openings.
    n_items : int, default=10
        Number of applicants for each.
    random_state : None, int, RandomState or Generator
        Where the random numbers come from; an int makes the data reproducible.

    Returns
    -------
    task : Bunch
        ``data`` (n_rows, 5), ``target`` (n_rows,) relevances 0 to 3 that understate the group, ``merit`` (n_rows,) relevances 0
        to 3 without that bias, ``twin`` (n_rows, 5) the rows of the same people in the other group, ``sensitive_features``
        (n_rows,) 0 or 1, 1 for the group, ``qid`` (n_rows,) from 0 to n_queries - 1, ``feature_names``, ``DESCR``. Rows of a
        query lie together.

    Examples
    --------
    >>> task = make_hiring_ranking(n_queries=3, random_state=0)
    >>> task.data.shape, task.qid[[0, 9, 10]].tolist()
    ((30, 5), [0, 0, 1])
    >>> group = task.sensitive_features == 1
    >>> (task.twin - task.data)[group][0].round(6).tolist()
    [1.5, 1.5, 0.5, 0.0, 0.0]
    """
    n_queries, n_items = check_count(n_queries, "n_queries"), check_count(n_items, "n_items")
    rng = as_generator(random_state)
    n_rows = n_queries * n_items
    group, skill, other = rng.integers(0, 2, n_rows), rng.normal(size=n_rows), rng.normal(size=(n_rows, 2))
    marks = np.column_stack([skill, skill, skill, other]) + _NOISE * rng.normal(size=(n_rows, 5))
    fit = skill + 0.5 * other[:, 0]
    return Bunch(
        data=marks - np.outer(group, _SHIFT),
        target=np.digitize(fit - group, _TARGET_STEPS).astype(float),
        merit=np.digitize(fit, _MERIT_STEPS).astype(float),
        twin=marks - np.outer(1 - group, _SHIFT),
        sensitive_features=group,
        qid=np.repeat(np.arange(n_queries), n_items),
        feature_names=["mark 1", "mark 2", "mark 3", "other 1", "other 2"],
        DESCR=HIRING_DESCR,
    )


def check_count(value, name: str, *, at_least: int = 1) -> int:
    """`value` as an int, if it is a whole number of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise ValueError(f"{name}={value!r}: give a whole number of at least {at_least}.")
    return int(value)


def check_number(value, name: str, *, above=None, low: float = -math.inf, high: float = math.inf) -> float:
    """`value` as a float, if it lies in [low, high] and, where `above` is given, is larger than that."""
    ok = (
        isinstance(value, (int, float, np.integer, np.floating))
        and not isinstance(value, bool)
        and low <= value <= high
    )  # false for NaN
    if not ok or (above is not None and value <= above):
        bounds = f"in {'[' if above is None else '('}{low if above is None else above:g}, {high:g}]"
        raise ValueError(f"{name}={value!r}: give a number {bounds}.")
    return float(value)


def draw(generator, values: np.ndarray, log_probability: np.ndarray, size: int | None = None):
    """Values drawn by probabilities known up to a factor; relative to the likeliest, so that tiny ones do not underflow."""
    probability = np.exp(log_probability - log_probability.max())
    return generator.choice(values, size=size, p=probability / probability.sum())
