"""Model selection that keeps queries whole: splitters, a learning curve, and a picker for searches with two scorers."""

from __future__ import annotations

import copy
import numbers
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from sklearn import config_context
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold, ShuffleSplit, cross_validate, train_test_split
from sklearn.utils import Bunch, _safe_indexing, indexable
from sklearn.utils.validation import _num_samples

from skfairrank._checks import warn_caller
from skfairrank._queries import REMEDY, Queries
from skfairrank._random import as_generator

__all__ = [
    "LeaveOneQueryOut",
    "QueryKFold",
    "QueryShuffleSplit",
    "RepeatedQueryKFold",
    "best_under",
    "query_learning_curve",
    "train_test_query_split",
]


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
    >>> splits = LeaveOneQueryOut().split(np.zeros((4, 1)), qid=["b", "a", "b", "c"])
    >>> [test.tolist() for _, test in splits]
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
    >>> splitter = QueryShuffleSplit(2, test_size=0.5, random_state=0)
    >>> for train, test in splitter.split(np.zeros((10, 1)), qid=qid):
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
    >>> X_train, X_test, qid_train, qid_test = train_test_query_split(
    ...     X, qid=qid, test_size=0.2, random_state=0
    ... )
    >>> qid_train, qid_test
    ([0, 0, 0, 0, 0, 1, 1, 1, 4], [2])
    """
    arrays = indexable(*arrays)
    queries = Queries.from_qid(qid, _num_samples(arrays[0] if arrays else qid))
    how = {"test_size": _plain(test_size), "train_size": _plain(train_size), "shuffle": shuffle}
    with _samples_are_queries(queries):
        seed = _for_sklearn(random_state) if shuffle else None
        parts = train_test_split(np.arange(queries.n_queries), random_state=seed, **how)
    rows = [_rows_of(part, queries) for part in parts]
    return [_safe_indexing(array, part) for array in (*arrays, qid) for part in rows]


def _plain(size):
    """A size as scikit-learn knows it: unsigned integers of NumPy as int."""
    return size.item() if isinstance(size, np.generic) else size


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


def query_learning_curve(
    estimator,
    X,
    y,
    *,
    qid,
    sensitive_features=None,
    train_sizes=None,
    cv=None,
    shuffle=True,
    random_state=None,
    params=None,
    **how,
):
    """Training and test scores of rankers fitted on more and more queries.

    scikit-learn's `learning_curve` counts rows, and so cuts queries. Here the training sets of a fold are nested sets
    of whole queries, and the test set is the fold's.

    Parameters
    ----------
    estimator : estimator
        A ranker, or a pipeline or search that ends in one. It is cloned.
    X : array-like, shape (n_rows, n_features)
    y : array-like, shape (n_rows,)
    qid : array-like, shape (n_rows,)
        The query of each row, in any order. It reaches every fit, score and split that requests it, whether or not
        metadata routing is enabled outside.
    sensitive_features : array-like or DataFrame of n_rows rows, optional
        Likewise.
    train_sizes : array-like, default=np.linspace(.1, 1, 5)
        Floats in (0, 1]: shares of the queries that every fold can train on (rounded down, at least one). Ints: numbers
        of queries. Sizes that occur twice are used once.
    cv : int, splitter or iterable of (train, test), default=None
        None: ``QueryKFold(5)``; an int: ``QueryKFold(cv)``. Any splitter that keeps queries whole will do.
    shuffle : bool, default=True
        Whether the queries of a training set are drawn at random; otherwise the first ones in sorted order of the ids.
    random_state : None, int, RandomState or Generator
        Used if `shuffle`.
    params : dict, optional
        Further metadata to be routed, e.g. ``{"X_hypothetical": X_flipped}``.
    **how
        `scoring` (without it the estimator's `score`), `n_jobs`, `error_score` and `verbose`, as of `cross_validate`.

    Returns
    -------
    curve : Bunch
        train_sizes : ndarray of int, shape (n_sizes,)
            Numbers of queries.
        train_scores, test_scores : ndarray, shape (n_sizes, n_folds)
            With several scorers: dicts of such arrays, by the scorer's name.
        fit_times, score_times : ndarray, shape (n_sizes, n_folds)
            Seconds.

        The first three draw themselves: ``LearningCurveDisplay(train_sizes=curve.train_sizes, ...)``.

    Raises
    ------
    ValueError
        If `cv` cuts queries, or a size of the training set is out of range.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank import QueryRanker
    >>> X, qid = np.random.default_rng(0).normal(size=(60, 2)), np.repeat(np.arange(12), 5)
    >>> y = (X @ [1, 2] > 0).astype(int)
    >>> curve = query_learning_curve(
    ...     QueryRanker(LinearRegression()),
    ...     X,
    ...     y,
    ...     qid=qid,
    ...     cv=3,
    ...     train_sizes=[0.25, 1.0],
    ...     random_state=0,
    ... )
    >>> curve.train_sizes.tolist(), curve.test_scores.shape
    ([2, 8], (2, 3))
    """
    X, y = indexable(X, y)
    queries = Queries.from_qid(qid, _num_samples(X))
    folds = folds_of_queries(cv, X, y, qid, queries)
    sizes = _train_sizes(train_sizes, min(len(train) for train, _ in folds))

    rng = as_generator(random_state)
    splits = []
    for train, test_rows in folds:
        train = rng.permutation(train) if shuffle else train
        splits.append([(np.flatnonzero(np.isin(queries.codes, train[:size])), test_rows) for size in sizes])

    metadata = {"qid": qid, "sensitive_features": sensitive_features, **(params or {})}
    metadata = {key: value for key, value in metadata.items() if value is not None}
    # Routing carries qid through pipelines and nested searches to whatever requests it.
    with config_context(enable_metadata_routing=True):
        flat = [split for fold in splits for split in fold]
        scores = cross_validate(estimator, X, y, cv=flat, params=metadata, return_train_score=True, **how)
    scores = {key: np.reshape(value, (len(folds), len(sizes))).T for key, value in scores.items()}

    def of(part):
        found = {key.removeprefix(part): value for key, value in scores.items() if key.startswith(part)}
        return found["score"] if list(found) == ["score"] else found

    times = {"fit_times": scores["fit_time"], "score_times": scores["score_time"]}
    return Bunch(train_sizes=sizes, train_scores=of("train_"), test_scores=of("test_"), **times)


def _train_sizes(train_sizes, n_queries):
    """Numbers of queries, ascending and distinct."""
    sizes = np.linspace(0.1, 1.0, 5) if train_sizes is None else np.atleast_1d(train_sizes)
    if sizes.dtype.kind == "f":
        if not ((sizes > 0) & (sizes <= 1)).all():
            raise ValueError(f"train_sizes={sizes.tolist()}: floats are shares of the training queries, in (0, 1].")
        # .3 * 10 is 3 but for rounding.
        sizes = np.maximum(np.floor(sizes * n_queries + 1e-9), 1)
    elif sizes.dtype.kind not in "iu" or not ((sizes >= 1) & (sizes <= n_queries)).all():
        raise ValueError(
            f"train_sizes={sizes.tolist()}: ints count whole queries, from 1 to the {n_queries} that every fold "
            "can train on."
        )
    return np.unique(sizes.astype(np.int64))


# Scores are means over folds: a loss that equals the bound but for rounding is within it.
_ROUNDING = 1e-12


def best_under(metric, *, then, max_loss=None, minimum=None, relative=False):
    """For `refit=` of a search with several scorers: the best candidate by `then` among those good enough by `metric`.

    Good enough is a mean test score s with

    - s >= s_best - `max_loss`, where s_best is the best mean test score among all candidates
      (s >= s_best - `max_loss` * ``|s_best|`` if `relative`), and
    - s >= `minimum`.

    Ties in `then` go to the better candidate by `metric`, and then to the earlier one.

    Parameters
    ----------
    metric, then : str
        Names of two scorers, the keys of the search's `scoring`. Greater is better, as everywhere in scikit-learn:
        errors and disparities come negated. So the mirror image, the most useful among the fairest, is the same call
        with the names exchanged, and "a disparity of at most .005" is ``minimum=-0.005``.
    max_loss : float >= 0, optional
        How far below the best score `metric` may be.
    minimum : float, optional
        How low the score `metric` may be. If no candidate reaches it, a UserWarning says so and the best candidate by
        `metric` is taken: a search that took hours should not end in an error.
    relative : bool, default=False
        Whether `max_loss` is a share of the best score.

    Returns
    -------
    picker : callable
        Takes ``cv_results_`` and returns an index. A small picklable object with the arguments as attributes. It picks from
        the ``cv_results_`` of a finished search as well, and ``picker.admissible(cv_results)`` tells which candidates are
        good enough.

    Raises
    ------
    ValueError
        If neither `max_loss` nor `minimum` is given, or `max_loss` is negative. On picking: if a scorer is missing from
        the results, or no candidate has finite scores by both.

    Notes
    -----
    A disparity of the Plackett-Luce *policy* as `then` picks the softest candidate: its draws come closest to chance, whatever
    the order of its scores. Where lists are sorted, take scorers of the sorted list (``policy="deterministic"``, such as
    `neg_group_exposure_difference_scorer`).

    A candidate with a score that is not finite (a failed fit) is left out altogether: it is not picked, and its other
    score is not the best.

    With a callable `refit` scikit-learn sets `best_index_`, `best_params_` and `best_estimator_`, but no `best_score_`,
    and ``search.score`` does not know which scorer to use: give `scoring` to an outer `cross_validate`. scikit-learn's
    halving searches take one scorer only and ignore a callable `refit`.

    Examples
    --------
    The first candidate has the best NDCG; the second is .008 below it, and the fairest within .01:

    >>> results = {
    ...     "mean_test_ndcg": [0.810, 0.802, 0.780],
    ...     "mean_test_gap": [-0.012, -0.006, -0.001],
    ... }
    >>> best_under("ndcg", max_loss=0.01, then="gap")(results)
    1
    >>> best_under("gap", max_loss=0.002, then="ndcg")(results)
    2
    >>> best_under("gap", minimum=-0.01, then="ndcg")(results)
    1
    """
    if max_loss is None and minimum is None:
        raise ValueError(f"best_under({metric!r}, ...) got neither max_loss nor minimum: give at least one of them.")
    for name, value in (("max_loss", max_loss), ("minimum", minimum)):
        if value is not None and not isinstance(value, numbers.Real):
            raise TypeError(f"{name}={value!r}: give a number.")
    if max_loss is not None and not max_loss >= 0:
        raise ValueError(f"max_loss={max_loss!r}: give a number >= 0, how far below the best {metric!r} may be.")
    if minimum is not None and np.isnan(minimum):
        raise ValueError(f"minimum={minimum!r}: give a number, the least acceptable {metric!r}.")
    if relative and max_loss is None:
        raise ValueError("relative=True is about max_loss, which is not given: give it, or leave relative out.")
    return _BestUnder(metric, then, max_loss, minimum, relative)


def mean_test_scores(cv_results, scorer: str, *, needed_by: str = "") -> np.ndarray:
    """Mean test score of each candidate by one of the search's scorers, shape (n_candidates,)."""
    if f"mean_test_{scorer}" not in cv_results:
        names = sorted(key.removeprefix("mean_test_") for key in cv_results if key.startswith("mean_test_"))
        wanted = f", which {needed_by} needs" if needed_by else ""
        raise ValueError(f"The search has no scorer {scorer!r}{wanted}; it has {names}. Name them in scoring={{...}}.")
    return np.asarray(cv_results[f"mean_test_{scorer}"], dtype=np.float64)


@dataclass(frozen=True, repr=False)
class _BestUnder:
    metric: str
    then: str
    max_loss: float | None = None
    minimum: float | None = None
    relative: bool = False

    def __call__(self, cv_results) -> int:
        """Index of the candidate picked."""
        scores, then, admissible = self._read(cv_results)
        if not admissible.any():
            best = np.nanmax(np.where(np.isfinite(then), scores, np.nan))
            warn_caller(
                f"No candidate has a mean test {self.metric!r} of at least {self.minimum:g}: the best has {best:g} and "
                "is taken. Search a wider grid, or lower the minimum.",
            )
            admissible = scores == best
        candidates = np.flatnonzero(admissible)
        # lexsort is stable and ascending by its last key first; the negated scores put the best in front.
        return int(candidates[np.lexsort((-scores[candidates], -then[candidates]))[0]])

    def admissible(self, cv_results) -> np.ndarray:
        """Which candidates are good enough by `metric` (and have finite scores), shape (n_candidates,)."""
        return self._read(cv_results)[2]

    def _read(self, cv_results):
        scores, then = (mean_test_scores(cv_results, name, needed_by=repr(self)) for name in (self.metric, self.then))
        admissible = np.isfinite(scores) & np.isfinite(then)
        if not admissible.any():
            raise ValueError(
                f"No candidate has finite mean test scores by both {self.metric!r} and {self.then!r}, so none can be "
                'picked: search with error_score="raise" to see the first error.'
            )
        best = scores[admissible].max()
        rounding, unit = _ROUNDING * max(1.0, abs(best)), abs(best) if self.relative else 1.0
        if self.max_loss is not None:
            admissible &= scores >= best - self.max_loss * unit - rounding
        if self.minimum is not None:
            admissible &= scores >= self.minimum - rounding
        return scores, then, admissible

    def __repr__(self):
        bounds = {"max_loss": self.max_loss, "minimum": self.minimum, "relative": self.relative or None}
        given = "".join(f", {name}={value!r}" for name, value in bounds.items() if value is not None)
        return f"best_under({self.metric!r}, then={self.then!r}{given})"
