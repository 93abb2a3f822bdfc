"""Splitters that hold out whole queries: scikit-learn's own, applied to the distinct query ids in the place of rows."""

from __future__ import annotations

import copy
import numbers
from contextlib import contextmanager

import numpy as np
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold, ShuffleSplit, train_test_split
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples

from skfairrank._queries import REMEDY, Queries
from skfairrank._random import as_generator


class _OfQueries:
    """Splits queries as the splitter behind it splits rows."""

    __metadata_request__split = {"qid": True}
    random_state = None

    def split(self, X, y=None, qid=None, groups=None):
        """Row numbers of each training and test set.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
            Only its number of rows is used.
        y : object
            Ignored.
        qid : array-like, shape (n_rows,)
            The query of each row: ints or strings, in any order.
        groups : array-like, shape (n_rows,)
            Another name for `qid`, which scikit-learn uses while metadata routing is disabled.

        Yields
        ------
        train, test : ndarray of int
            Row numbers in ascending order. All rows of a query are on the same side.

        Raises
        ------
        ValueError
            If neither `qid` nor `groups` is given, or if there are too few queries.
        """
        queries, seeded = _queries(X, qid, groups), copy.copy(self)
        seeded.random_state = _for_sklearn(self.random_state)
        with _samples_are_queries(queries):
            for train, test in super(_OfQueries, seeded).split(np.empty(queries.n_queries)):  # type: ignore[misc]
                yield _rows_of(train, queries), _rows_of(test, queries)

    def get_n_splits(self, X=None, y=None, qid=None, groups=None):
        """Number of splits; the arguments are ignored."""
        return super().get_n_splits()  # type: ignore[misc]


class QueryKFold(_OfQueries, KFold):
    """K folds of whole queries: scikit-learn's `KFold` over the sorted query ids.

    Folds have equally many queries (give or take one), whatever the sizes of the queries. They depend on the ids alone,
    not on how the rows of different queries are interleaved.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=False
        Whether to shuffle the sorted query ids before they are cut into folds.
    random_state : None, int, RandomState or Generator
        Used if `shuffle`. An int gives the same folds at each call, those of ``KFold`` with the same int; None gives
        fresh ones, and never touches NumPy's global state.

    Notes
    -----
    `split` requests `qid` by default: with ``sklearn.set_config(enable_metadata_routing=True)`` one keyword,
    ``search.fit(X, y, qid=qid)``, reaches splitter, estimator and scorers.

    **Successive halving.** `HalvingGridSearchCV` and `HalvingRandomSearchCV` with ``resource="n_samples"`` (their
    default) draw rows at random from the folds *after* the splitter has made them, so queries lose rows. Halve on the number of
    steps instead: ``resource="max_iter"`` for this package's rankers, ``resource="estimator__n_estimators"`` for a boosted ranker
    in a `QueryRanker`, each with `max_resources`. scikit-learn always takes the resource "n_samples" as rows, so a ranker's own
    parameter `n_samples` can't be the resource, except inside a pipeline, where its name has a prefix.

    Examples
    --------
    >>> import numpy as np
    >>> qid = [2, 1, 2, 3, 1, 3]
    >>> for train, test in QueryKFold(3).split(np.zeros((6, 1)), qid=qid):
    ...     print(train, test)
    [0 2 3 5] [1 4]
    [1 3 4 5] [0 2]
    [0 1 2 4] [3 5]
    """


class RepeatedQueryKFold(_OfQueries, RepeatedKFold):
    """`QueryKFold` with shuffling, repeated: scikit-learn's `RepeatedKFold` over the sorted query ids.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds of one repetition.
    n_repeats : int, default=10
    random_state : None, int, RandomState or Generator
        An int gives the same folds at each call.

    Examples
    --------
    >>> RepeatedQueryKFold(n_splits=5, n_repeats=2, random_state=0).get_n_splits()
    10
    """


class LeaveOneQueryOut(_OfQueries, LeaveOneOut):
    """Each query is the test set once, in sorted order of the ids.

    Examples
    --------
    >>> import numpy as np
    >>> [test.tolist() for _, test in LeaveOneQueryOut().split(np.zeros((4, 1)), qid=["b", "a", "b", "c"])]
    [[1], [0, 2], [3]]
    """

    def get_n_splits(self, X=None, y=None, qid=None, groups=None):
        """Number of queries; needs `qid` (or `groups`)."""
        return _queries(X, qid, groups).n_queries


class QueryShuffleSplit(_OfQueries, ShuffleSplit):
    """Random splits into whole queries for training and whole queries for testing.

    scikit-learn's `ShuffleSplit` over the sorted query ids, so the sizes count queries. With query ids
    ``[0] * 5 + [1] * 3 + [2, 4]`` a `test_size` of .2 holds out one query, of one, three or five rows.

    Parameters
    ----------
    n_splits : int, default=10
    test_size : float or int, optional
        Share of the queries (rounded up), or number of queries, in the test set. None: what `train_size` leaves, or .1.
    train_size : float or int, optional
        Share of the queries (rounded down), or number of queries, in the training set. None: what `test_size` leaves.
    random_state : None, int, RandomState or Generator
        An int gives the same splits at each call, those of ``ShuffleSplit`` with the same int; None gives fresh ones,
        and never touches NumPy's global state.

    Examples
    --------
    >>> import numpy as np
    >>> qid = np.array([0] * 5 + [1] * 3 + [2, 4])
    >>> for train, test in QueryShuffleSplit(2, test_size=0.5, random_state=0).split(np.zeros((10, 1)), qid=qid):
    ...     print(np.unique(qid[train]), np.unique(qid[test]))
    [0 1] [2 4]
    [1 4] [0 2]
    """


def train_test_query_split(*arrays, qid, test_size=None, train_size=None, random_state=None, shuffle=True):
    """Split arrays into training and test rows, with every query whole on one side.

    Parameters
    ----------
    *arrays : array-likes of n_rows rows
        Lists, NumPy arrays, sparse matrices, pandas or polars objects; each comes back as the kind it was.
    qid : array-like, shape (n_rows,)
        The query of each row: ints or strings, in any order.
    test_size : float or int, optional
        Share of the queries (rounded up), or number of queries, in the test set. None: what `train_size` leaves, or
        .25.
    train_size : float or int, optional
        Share of the queries (rounded down), or number of queries, in the training set. None: what `test_size` leaves.
    random_state : None, int, RandomState or Generator
        Used if `shuffle`. None gives a fresh split, and never touches NumPy's global state.
    shuffle : bool, default=True
        Whether queries are drawn at random; otherwise the test set has the last ones in sorted order of the ids.

    Returns
    -------
    splits : list of length 2 * len(arrays) + 2
        Training and test part of each array, then of `qid`. Rows keep their order.

    Raises
    ------
    ValueError
        If `qid` does not describe the rows of the arrays, or there are not two queries to be split.

    Examples
    --------
    >>> import numpy as np
    >>> X, qid = np.arange(10).reshape(10, 1), [0] * 5 + [1] * 3 + [2, 4]
    >>> X_train, X_test, qid_train, qid_test = train_test_query_split(X, qid=qid, test_size=0.2, random_state=0)
    >>> qid_train, qid_test
    ([0, 0, 0, 0, 0, 1, 1, 1, 4], [2])
    """
    arrays = indexable(*arrays)
    queries = Queries.from_qid(qid, _num_samples(arrays[0] if arrays else qid))
    how = {"test_size": test_size, "train_size": train_size, "shuffle": shuffle}
    with _samples_are_queries(queries):
        seed = _for_sklearn(random_state) if shuffle else None
        parts = train_test_split(np.arange(queries.n_queries), random_state=seed, **how)
    rows = [_rows_of(part, queries) for part in parts]
    return [_safe_indexing(array, part) for array in (*arrays, qid) for part in rows]


def _queries(X, qid, groups) -> Queries:
    if qid is not None and groups is not None:
        raise ValueError("qid and groups were both given: they are two names for the query of each row, give one.")
    if qid is None and groups is None:
        raise ValueError(f"This splitter holds out whole queries, and got no qid: {REMEDY}")
    ids, name = (qid, "qid") if qid is not None else (groups, "groups")
    return Queries.from_qid(ids, _num_samples(ids if X is None else X), name=name)


def _rows_of(part: np.ndarray, queries: Queries) -> np.ndarray:
    """Rows of the queries numbered `part`, ascending."""
    chosen = np.zeros(queries.n_queries, dtype=bool)
    chosen[part] = True
    return np.flatnonzero(chosen[queries.codes])


@contextmanager
def _samples_are_queries(queries: Queries):
    """Say so in scikit-learn's messages."""
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"qid has {queries.n_queries} queries, which cannot be split so (folds and sizes count queries, which are called "
            f"samples here): {error}"
        ) from error


def _for_sklearn(random_state):
    """A random_state for scikit-learn, which neither takes a Generator nor has a None apart from the global stream."""
    if isinstance(random_state, (numbers.Integral, np.random.RandomState)):
        return random_state
    return int(as_generator(random_state).integers(2**32 - 1))


def folds_of_queries(cv, X, y, qid, queries):
    """(numbers of the training queries, rows of the test set) of each fold."""
    if cv is None or isinstance(cv, numbers.Integral):
        cv = QueryKFold(5 if cv is None else int(cv))
    if hasattr(cv, "split"):
        taken = cv.get_metadata_routing().split.requests if hasattr(cv, "get_metadata_routing") else {}
        cv = cv.split(X, y, **{name: qid for name in ("qid", "groups") if name in taken})
    folds = []
    for train, test in cv:
        train, test = (np.arange(queries.n_rows)[rows] for rows in (train, test))  # masks become row numbers
        train_queries = np.unique(queries.codes[train])
        if len(train) != queries.sizes[train_queries].sum() or np.isin(queries.codes[test], train_queries).any():
            raise ValueError("cv cuts queries into training and test rows: use QueryKFold or QueryShuffleSplit.")
        folds.append((train_queries, test))
    return folds
