"""Splitters that hold out whole queries: scikit-learn's own, applied to the distinct query ids instead of the rows."""

from __future__ import annotations

import inspect
import numbers
from contextlib import contextmanager

import numpy as np
from sklearn.model_selection import (
    BaseCrossValidator,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    train_test_split,
)
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples

from skfairrank._queries import REMEDY, Queries
from skfairrank._random import as_generator

__all__ = ["LeaveOneQueryOut", "QueryKFold", "QueryShuffleSplit", "RepeatedQueryKFold", "train_test_query_split"]


class _QuerySplitter(BaseCrossValidator):
    """Turns folds of queries (`_query_folds`) into folds of rows."""

    # BaseCrossValidator says so of `groups`, which is never routed; scikit-learn 1.6 won't hear it twice.
    __metadata_request__split = {"qid": True}

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
        queries = _queries(X, qid, groups)
        for train, test in self._query_folds(queries.n_queries):
            yield _rows_of(train, queries), _rows_of(test, queries)

    def get_n_splits(self, X=None, y=None, qid=None, groups=None):
        """Number of splits; the arguments are ignored."""
        return self.n_splits

    def _query_folds(self, n_queries):
        raise NotImplementedError


class QueryKFold(_QuerySplitter):
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

    Raises
    ------
    ValueError
        In `split`, if there are fewer queries than folds, or no `qid`.

    Notes
    -----
    `split` requests `qid` by default: with ``sklearn.set_config(enable_metadata_routing=True)`` one keyword,
    ``search.fit(X, y, qid=qid)``, reaches splitter, estimator and scorers.

    **Successive halving.** `HalvingGridSearchCV` and `HalvingRandomSearchCV` with ``resource="n_samples"`` (their
    default) draw rows at random from the folds, training and test, *after* the splitter has made them. Queries lose
    rows, so rankers are fitted and judged on queries that are smaller than the real ones. Halve on the number of steps
    instead: ``resource="max_iter"`` for this package's rankers, ``resource="estimator__n_estimators"`` for a boosted
    ranker in a `QueryRanker`, each with `max_resources`. `score` and the scorers of this package warn where queries have been
    cut. scikit-learn always takes the resource "n_samples" as rows, so a ranker's own parameter
    `n_samples` can't be the resource, except inside a pipeline, where its name has a prefix.

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

    def __init__(self, n_splits=5, *, shuffle=False, random_state=None):
        KFold(n_splits, shuffle=shuffle, random_state=random_state)  # its checks and messages
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def _query_folds(self, n_queries):
        _check_enough_queries(self.n_splits, n_queries)
        random_state = _for_sklearn(self.random_state) if self.shuffle else None
        return KFold(self.n_splits, shuffle=self.shuffle, random_state=random_state).split(np.empty(n_queries))


class RepeatedQueryKFold(_QuerySplitter):
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

    def __init__(self, n_splits=5, *, n_repeats=10, random_state=None):
        RepeatedKFold(n_splits=n_splits, n_repeats=n_repeats)  # its checks and messages
        KFold(n_splits)
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.random_state = random_state

    def get_n_splits(self, X=None, y=None, qid=None, groups=None):
        """Number of splits, ``n_splits * n_repeats``; the arguments are ignored."""
        return self.n_splits * self.n_repeats

    def _query_folds(self, n_queries):
        _check_enough_queries(self.n_splits, n_queries)
        random_state = _for_sklearn(self.random_state)
        repeated = RepeatedKFold(n_splits=self.n_splits, n_repeats=self.n_repeats, random_state=random_state)
        return repeated.split(np.empty(n_queries))


class LeaveOneQueryOut(_QuerySplitter):
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

    def _query_folds(self, n_queries):
        _check_enough_queries(2, n_queries)
        return LeaveOneOut().split(np.empty(n_queries))


class QueryShuffleSplit(_QuerySplitter):
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

    See Also
    --------
    QueryKFold : Each query is in exactly one test set. Its notes on successive halving hold here too.

    Examples
    --------
    >>> import numpy as np
    >>> qid = np.array([0] * 5 + [1] * 3 + [2, 4])
    >>> for train, test in QueryShuffleSplit(2, test_size=0.5, random_state=0).split(np.zeros((10, 1)), qid=qid):
    ...     print(np.unique(qid[train]), np.unique(qid[test]))
    [0 1] [2 4]
    [1 4] [0 2]
    """

    def __init__(self, n_splits=10, *, test_size=None, train_size=None, random_state=None):
        self.n_splits = n_splits
        self.test_size = test_size
        self.train_size = train_size
        self.random_state = random_state

    def _query_folds(self, n_queries):
        random_state = _for_sklearn(self.random_state)
        splits = ShuffleSplit(
            self.n_splits,
            test_size=_signed(self.test_size),
            train_size=_signed(self.train_size),
            random_state=random_state,
        )
        with _sizes_count_queries(n_queries):
            yield from splits.split(np.empty(n_queries))


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
    random_state = _for_sklearn(random_state) if shuffle else None
    with _sizes_count_queries(queries.n_queries):
        parts = train_test_split(
            np.arange(queries.n_queries),
            test_size=_signed(test_size),
            train_size=_signed(train_size),
            random_state=random_state,
            shuffle=shuffle,
        )
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


def _check_enough_queries(n_splits: int, n_queries: int) -> None:
    if n_queries < n_splits:
        raise ValueError(
            f"{n_splits} folds of whole queries need at least {n_splits} queries, and qid has {n_queries}: "
            "use fewer folds."
        )


@contextmanager
def _sizes_count_queries(n_queries: int):
    """Say in scikit-learn's messages about test_size and train_size that these count queries here."""
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"{n_queries} {'query' if n_queries == 1 else 'queries'} cannot be split into training and test queries "
            f"(test_size and train_size count queries, which are called samples here): {error}"
        ) from error


def _signed(size):
    """scikit-learn knows sizes of signed types only."""
    return int(size) if isinstance(size, np.unsignedinteger) else size


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
        cv = cv.split(X, y, **_name_of_queries(cv, qid))
    folds = []
    for train, test in cv:
        train, test = (np.arange(queries.n_rows)[rows] for rows in (train, test))  # masks become row numbers
        train_queries = np.unique(queries.codes[train])
        if len(train) != queries.sizes[train_queries].sum() or np.isin(queries.codes[test], train_queries).any():
            raise ValueError("cv cuts queries into training and test rows: use QueryKFold or QueryShuffleSplit.")
        folds.append((train_queries, test))
    return folds


def _name_of_queries(cv, qid) -> dict:
    """qid under the name by which a splitter takes it; nothing where it takes none (its folds are checked all the same)."""
    if "qid" in inspect.signature(cv.split).parameters:
        return {"qid": qid}
    requests = cv.get_metadata_routing().split.requests if hasattr(cv, "get_metadata_routing") else {}
    return {"groups": qid} if requests.get("groups") else {}
