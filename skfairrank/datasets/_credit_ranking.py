"""German Credit as a ranking task (Bower et al. 2021, Section 4.2 and Appendix A): queries drawn from the people."""

from __future__ import annotations

import math

import numpy as np
import scipy.stats
from sklearn.utils import Bunch

from skfairrank._random import as_generator
from skfairrank.datasets._german_credit import encode_german_credit
from skfairrank.datasets._parameters import check_count, check_number

__all__ = ["make_credit_ranking"]

# Younger than 25, or 25 and older: Kamiran and Calders (2009), as in the paper.
AGE_OF_OLDER_GROUP = 25

DESCR = """\
German Credit as a ranking task (Bower et al. 2021, after Singh and Joachims 2019).

Age, credit amount and duration are standardised over all people, the other features are one-hot encoded. Then the
people are split at random, and queries are drawn with replacement from each side, so that no person occurs on both.
Relevance: 1 for a good credit risk. Sensitive feature: whether a person is 25 or older.
"""


def make_credit_ranking(
    people: Bunch,
    *,
    n_train_queries: int = 500,
    n_test_queries: int = 100,
    query_size: int = 10,
    test_size: float = 0.2,
    relevant_fraction: float = 0.4,
    random_state=None,
) -> Bunch:
    r"""German Credit as a ranking task: queries of 10 people, about 4 of them good risks (Bower et al. 2021).

    The people are standardised and one-hot encoded (`encode_german_credit`) and split into a training and a test side.
    Each place of a query is then filled with replacement by a good risk with probability f = `relevant_fraction`, by a
    bad one otherwise, all people of a kind being equally likely; a query without any good risk is drawn again. So the
    number of relevant items of a query of n is binomial given that it is not 0, with the mean

    .. math:: \frac{n f}{1 - (1 - f)^n} = 4.02 \quad \text{for } n = 10, f = .4,

    although 70 % of all people are good risks. (Drawn directly from that distribution, nothing is drawn again.)

    Parameters
    ----------
    people : Bunch
        What `load_german_credit` or `fetch_german_credit` returns; of it ``data`` and ``target`` are used.
    n_train_queries, n_test_queries : int
        Number of queries drawn from each side.
    query_size : int
        People in a query.
    test_size : float
        Fraction of the people on the test side, rounded up to whole people.
    relevant_fraction : float
        Probability that a place is filled by a good risk, in (0, 1].
    random_state : None, int, RandomState or Generator
        Where the random numbers come from; an int makes the data reproducible.

    Returns
    -------
    task : Bunch
        ``X_train`` (n_train_queries * query_size, 29), ``y_train`` (1 good, 0 bad), ``qid_train``,
        ``sensitive_features_train`` (bool, true for 25 and older), ``rows_train`` (which row of `people` is in each
        place), and the same for test; ids of test queries go on where those of training queries end, so that both can
        be stacked. ``feature_names`` (29,); ``age_column`` (0) and ``sex_columns`` ([3, 4]), positions in X; ``DESCR``.

    Raises
    ------
    ValueError
        If a parameter is out of range, or a side of the split lacks people of one kind.

    Notes
    -----
    As in the paper, means and standard deviations are those of all people, taken before the split: the test people have
    a (slight) say in how the training people are scaled.

    References
    ----------
    Bower, Eftekhari, Yurochkin, Sun: Individually Fair Ranking, ICLR 2021.

    Singh, Joachims: Policy Learning for Fairness in Ranking, NeurIPS 2019.
    """
    n_train_queries = check_count(n_train_queries, "n_train_queries")
    n_test_queries = check_count(n_test_queries, "n_test_queries")
    query_size = check_count(query_size, "query_size")
    relevant_fraction = check_number(relevant_fraction, "relevant_fraction", above=0, high=1)
    test_size = check_number(test_size, "test_size", above=0, high=1)
    encoded = encode_german_credit(people.data)
    X, y = encoded.to_numpy(), np.asarray(people.target)
    if y.shape != (len(X),) or not np.isin(y, (0, 1)).all():
        raise ValueError(f"people.target must be 1 (good) or 0 (bad) for each of the {len(X)} people.")
    older = people.data["Age"].to_numpy() >= AGE_OF_OLDER_GROUP
    generator = as_generator(random_state)

    n_test = math.ceil(round(test_size * len(X), 9))
    shuffled = generator.permutation(len(X))
    sides = {
        "train": (shuffled[n_test:], n_train_queries, 0),
        "test": (shuffled[:n_test], n_test_queries, n_train_queries),
    }
    task = Bunch()
    for side, (members, n_queries, first_id) in sides.items():
        good, bad = members[y[members] == 1], members[y[members] == 0]
        if not len(good) or (not len(bad) and relevant_fraction < 1):
            raise ValueError(
                f"The {side} side has {len(good)} good and {len(bad)} bad risks of {len(X)} people at "
                f"test_size={test_size:g}: queries need some of both. Give more people or another test_size."
            )
        rows = _draw_queries(good, bad, n_queries, query_size, relevant_fraction, generator).ravel()
        task[f"X_{side}"] = X[rows]
        task[f"y_{side}"] = y[rows]
        task[f"qid_{side}"] = first_id + np.repeat(np.arange(n_queries), query_size)
        task[f"sensitive_features_{side}"] = older[rows]
        task[f"rows_{side}"] = rows
    task.feature_names = list(encoded.columns)
    task.age_column = task.feature_names.index("Age")
    task.sex_columns = [task.feature_names.index(name) for name in ("Sex_female", "Sex_male")]
    task.DESCR = DESCR
    return task


def _draw_queries(good, bad, n_queries: int, query_size: int, relevant_fraction: float, generator) -> np.ndarray:
    """Rows of people (n_queries, query_size), at least one good risk in each query."""
    counts = np.arange(1, query_size + 1)
    # Relative to the likeliest count, so that a tiny fraction does not underflow.
    log_probability = scipy.stats.binom.logpmf(counts, query_size, relevant_fraction)
    probability = np.exp(log_probability - log_probability.max())
    n_relevant = generator.choice(counts, size=n_queries, p=probability / probability.sum())
    relevant = np.arange(query_size) < n_relevant[:, np.newaxis]
    relevant = generator.permuted(relevant, axis=1)
    rows = good[generator.integers(len(good), size=relevant.shape)]
    if len(bad):
        rows = np.where(relevant, rows, bad[generator.integers(len(bad), size=relevant.shape)])
    return rows
