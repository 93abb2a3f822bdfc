"""Hiring with a known truth: labels biased against a group, marks that give the group away, and every person's twin."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from skfairrank._random import as_generator
from skfairrank.datasets._parameters import check_count

__all__ = ["make_hiring_ranking"]

DESCR = """\
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
        DESCR=DESCR,
    )
