"""The Plackett-Luce policy over rankings (Bower et al. 2021, equation 1): sampling, probabilities, expectations.

A ranking is drawn from the top: among the items not yet ranked, item i comes next with probability proportional to
exp(score_i).
"""

from __future__ import annotations

import numbers

import numpy as np

from skfairrank._checks import as_whole_numbers, check_scores, names_queries
from skfairrank._gains import discounts
from skfairrank._kernels import exact as _exact
from skfairrank._kernels import gradients as _gradients
from skfairrank._kernels import ranks as _ranks
from skfairrank._queries import Queries
from skfairrank._random import as_generator, draw_keys
from skfairrank._threads import over_queries
from skfairrank.utilities import Tables

__all__ = ["EXACT_LIMIT", "expected_exposure", "log_probability", "rank_probabilities", "sample_rankings"]

#: Largest query, in items, of which expectations are summed exactly: the work is 2^n n (some milliseconds at this size).
EXACT_LIMIT = 16

_BLOCK = 1 << 14  # rows that are ranked at once where a utility's own method is asked what rankings are worth


def check_n_samples(n_samples, *, exact: bool = True) -> None:
    """Raise ValueError unless `n_samples` is an int >= 1 or, where allowed, "exact"."""
    if isinstance(n_samples, str) and n_samples == "exact" and exact:
        return
    is_integer = isinstance(n_samples, numbers.Integral) and not isinstance(n_samples, bool)
    if not is_integer or not 1 <= int(n_samples) < 2**31:
        raise ValueError(
            f"n_samples={n_samples!r}: give an integer >= 1 (and below 2**31)" + (' or "exact".' if exact else ".")
        )


def check_exact_limit(queries: Queries) -> None:
    """Raise ValueError where a query has too many items for sums over subsets."""
    largest = int(np.argmax(queries.sizes))
    if queries.sizes[largest] > EXACT_LIMIT:
        raise ValueError(
            f"Exact expectations sum over all subsets of a query's items, and are limited to {EXACT_LIMIT} items; query "
            f"{queries.name(largest)} has {queries.sizes[largest]}. Sample instead: n_samples=100 in a metric; "
            'solver="adam" with gradient="reinforce" or "plrank" in a ranker.'
        )


def _checked(scores, qid) -> tuple[np.ndarray, Queries]:
    """Scores as finite numbers, and the queries of their rows: one query where there is no qid."""
    scores = check_scores(scores)
    return scores, Queries.single(len(scores)) if qid is None else Queries.from_qid(qid, len(scores))


def _over_samples(kernel, h, queries, n_samples, random_state, *outs, first_query=0):
    """Run a sampling kernel over all queries; `first_query` is the number by which the noise of the first one is known."""
    key = draw_keys(as_generator(random_state), 1)[0]
    work = _ranks.sampling_work(queries.n_rows, queries.n_queries, n_samples)
    numbered, offsets = _numbered(kernel, first_query), _behind(first_query, queries.offsets)
    over_queries(numbered, queries.offsets, work, h, offsets, key, n_samples, *outs)


def _numbered(kernel, first_query):
    """A kernel that takes queries to have numbers from `first_query` on."""
    if not first_query:
        return kernel
    return lambda first, last, *arguments: kernel(first_query + first, first_query + last, *arguments)


def _behind(n: int, values: np.ndarray) -> np.ndarray:
    """The values behind n others that nobody reads: memory that is asked for and never touched, which costs none."""
    if not n:
        return values
    longer = np.zeros(n + len(values), values.dtype)
    longer[n:] = values
    return longer


@names_queries
def sample_rankings(scores, *, qid=None, n_samples=1, random_state=None):
    """Draw rankings of every query's items from the Plackett-Luce policy.

    Parameters
    ----------
    scores : array-like of float, shape (n_rows,)
        Score of each row; higher is better. Finite, at most 1e150 in size.
    qid : array-like, shape (n_rows,), optional
        Query of each row, in any order. None: all rows are one list.
    n_samples : int, default=1
    random_state : None, int, RandomState or Generator
        An int gives the same rankings for any interleaving of the queries that keeps each query's own row order, and more
        samples begin with those of fewer.

    Returns
    -------
    ranks : ndarray of int, shape (n_samples, n_rows)
        1-based rank of each row within its query, aligned with `scores`.

    Examples
    --------
    >>> from skfairrank.plackett_luce import sample_rankings
    >>> ranks = sample_rankings([np.log(3), 0], n_samples=10_000, random_state=0)
    >>> bool(abs((ranks[:, 0] == 1).mean() - 3 / 4) < 0.02)
    True
    """
    scores, queries = _checked(scores, qid)
    return draw_rankings(scores, queries, n_samples=n_samples, random_state=random_state)


def draw_rankings(scores, queries, *, n_samples, random_state):
    """`sample_rankings` for checked scores and queries."""
    check_n_samples(n_samples, exact=False)
    ranks = np.empty((n_samples, len(scores)), np.int64)
    _over_samples(_ranks.sample_ranks, queries.group(scores), queries, int(n_samples), random_state, ranks)
    return queries.ungroup(ranks, axis=1)


@names_queries
def log_probability(scores, ranks, *, qid=None):
    """Log-probability of rankings under the Plackett-Luce policy (Bower et al. 2021, equation 1), query by query.

    Parameters
    ----------
    scores : array-like of float, shape (n_rows,)
    ranks : array-like of int, shape (n_samples, n_rows) or (n_rows,)
        1-based ranks within the query, as `sample_rankings` returns them.
    qid : array-like, shape (n_rows,), optional
        Query of each row. None: all rows are one list.

    Returns
    -------
    log_probability : ndarray of float, shape (n_samples, n_queries)
        Queries in sorted order of their ids.

    Raises
    ------
    ValueError
        If the ranks of a query are not a permutation of 1 to its size.

    Examples
    --------
    >>> float(np.exp(log_probability([1000, 999, 998], [1, 2, 3])[0, 0]).round(6))
    0.48633
    """
    scores, queries = _checked(scores, qid)
    given = np.asarray(ranks)
    integral = as_whole_numbers(given)
    if integral is None:
        raise ValueError("ranks must be integers, 1 for the best item of each query.")
    integral = np.atleast_2d(integral)
    if integral.ndim != 2 or integral.shape[1] != len(scores):
        raise ValueError(f"ranks has shape {given.shape}: expected (n_samples, {len(scores)}), one rank per row.")
    out, grouped = np.empty((len(integral), queries.n_queries)), queries.group(integral, axis=1)
    _check_permutations(grouped, queries)
    h, work = queries.group(scores), _ranks.probability_work(integral.size)
    over_queries(_ranks.log_probability, queries.offsets, work, h, queries.offsets, grouped, out)
    return out


def _check_permutations(ranks, queries):
    """Raise ValueError unless the ranks of each query are 1 to its size; `ranks` (n_samples, n_rows) are grouped by query."""
    starts = np.repeat(queries.offsets[:-1], queries.sizes)
    of_query = np.repeat(queries.sizes, queries.sizes)
    # The place of a ranked row among all rows; the ranks of all queries are permutations if these are one.
    places = np.sort(np.where((ranks >= 1) & (ranks <= of_query), starts + ranks - 1, -1), axis=1)
    wrong = places != np.arange(ranks.shape[1])
    if not wrong.any():
        return
    for s, row in enumerate(ranks):
        for q, (lo, hi) in enumerate(zip(queries.offsets[:-1], queries.offsets[1:], strict=True)):
            if not np.array_equal(np.sort(row[lo:hi]), np.arange(1, hi - lo + 1)):
                raise ValueError(
                    f"ranks of query {queries.name(q)} in sample {s} are not a permutation of 1 to {hi - lo}: "
                    f"{row[lo:hi][:10].tolist()}."
                )


@names_queries
def rank_probabilities(scores, *, qid=None):
    """Probability of every item at every rank, summed exactly over subsets.

    Parameters
    ----------
    scores : array-like of float, shape (n_rows,)
    qid : array-like, shape (n_rows,), optional
        Query of each row. None: all rows are one list.

    Returns
    -------
    probability : ndarray of float, shape (n_rows, largest query size)
        ``probability[i, j]`` is the probability that row i has rank j + 1; zero beyond the size of its query. Rows sum to one,
        and so do the columns of a query.

    Raises
    ------
    ValueError
        If a query has more than `EXACT_LIMIT` items.

    Examples
    --------
    >>> rank_probabilities([np.log(3), 0]).round(6).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    scores, queries = _checked(scores, qid)
    check_exact_limit(queries)
    out = np.zeros((len(scores), int(queries.sizes.max())))
    h, work = queries.group(scores), _exact.subset_work(queries.sizes)
    over_queries(_exact.rank_probabilities, queries.offsets, work, h, queries.offsets, out)
    return queries.ungroup(out)


@names_queries
def expected_exposure(scores, *, qid=None, k=None, n_samples="exact", random_state=None):
    """Expected exposure of each item: the mean of 1 / log2(1 + rank) under the Plackett-Luce policy.

    Parameters
    ----------
    scores : array-like of float, shape (n_rows,)
    qid : array-like, shape (n_rows,), optional
        Query of each row. None: all rows are one list.
    k : int, optional
        Ranks beyond k give no exposure.
    n_samples : int or "exact", default="exact"
        Number of sampled rankings, or the exact sum over subsets (queries of up to `EXACT_LIMIT` items).
    random_state : None, int, RandomState or Generator

    Returns
    -------
    exposure : ndarray of float, shape (n_rows,)

    Examples
    --------
    >>> expected_exposure([np.log(3), 0]).round(6).tolist()
    [0.907732, 0.723197]
    """
    scores, queries = _checked(scores, qid)
    table = discounts(int(queries.sizes.max()), k)
    return expected_discounts(scores, queries, table, n_samples=n_samples, random_state=random_state)


def expected_discounts(scores, queries, discount, *, n_samples, random_state=None):
    """`grouped_expected_discounts` for scores in the caller's row order, as is the result."""
    expected = grouped_expected_discounts(
        queries.group(scores), queries, discount, n_samples=n_samples, random_state=random_state
    )
    return queries.ungroup(expected)


def grouped_expected_discounts(h, queries, discount, *, n_samples, random_state=None, first_query=0):
    """Expected discount of each row's rank, for any table of discounts; for checked scores and queries.

    Every expected position-based quantity follows from it: E[DCG] is the sum of gains times expected discounts.

    Parameters
    ----------
    h : ndarray of float64, shape (n_rows,)
        Scores, grouped by query, as is the result.
    queries : Queries
    discount : ndarray of float64, shape (>= largest query size,)
        ``discount[r - 1]`` belongs to rank r.
    n_samples : int or "exact"
    random_state : None, int, RandomState or Generator
    first_query : int
        Number of the first of these queries among those of a larger data set, whose noise they get.
    """
    check_n_samples(n_samples)
    out = np.empty(len(h))
    if n_samples == "exact":
        check_exact_limit(queries)
        work = _exact.subset_work(queries.sizes)
        over_queries(_exact.expected_discounts, queries.offsets, work, h, queries.offsets, discount, out)
    else:
        outs = discount, out
        _over_samples(
            _ranks.sampled_discounts, h, queries, int(n_samples), random_state, *outs, first_query=first_query
        )
    return out


def grouped_expected_utility(h, queries, tables: Tables, *, n_samples, random_state=None, first_query=0):
    """Expected utility of each query's ranking, shape (n_queries,), of a utility that expected discounts do not say.

    That is one with continuation probabilities, or one that only its `utility` says, which has no exact expectation.

    Parameters
    ----------
    h : ndarray of float64, shape (n_rows,)
        Scores, grouped by query.
    queries : Queries
    tables : skfairrank.utilities.Tables
    n_samples : int or "exact"
    random_state : None, int, RandomState or Generator
    first_query : int
        As for `grouped_expected_discounts`, where the utility has continuation probabilities.
    """
    check_n_samples(n_samples)
    if tables.utility is not None:
        return _sampled_utility(h, queries, tables, n_samples, as_generator(random_state))
    gradient, utility = np.empty(len(h)), np.empty(queries.n_queries)
    continuation = np.empty(0) if tables.continuation is None else tables.continuation
    arguments = h, queries.offsets, tables.gain, continuation, tables.discount
    if n_samples == "exact":
        check_exact_limit(queries)
        work = 2.0 * _exact.subset_work(queries.sizes)
        over_queries(_exact.exact_gradient, queries.offsets, work, *arguments, gradient, utility)
    else:
        key = draw_keys(as_generator(random_state), 1)[0]
        work = _gradients.reinforce_work(len(h), queries.n_queries, n_samples)
        numbered, longer = _numbered(_gradients.reinforce, first_query), _behind(first_query, utility)
        behind = h, _behind(first_query, queries.offsets), *arguments[2:]
        over_queries(numbered, queries.offsets, work, *behind, key, int(n_samples), gradient, longer)
        utility = longer[first_query:]
    return utility


def _sampled_utility(h, queries, tables, n_samples, rng):
    """Mean worth of sampled rankings where only the utility itself knows it, block of queries by block of queries."""
    if n_samples == "exact":
        raise ValueError(
            'n_samples="exact" needs a utility of gain, discount and continuation; this one, as AveragePrecision, is known by '
            "the utility of whole rankings. Sample it: n_samples=100."
        )
    offsets, mean = queries.offsets, np.empty(queries.n_queries)
    for first, last in queries.blocks(_BLOCK):
        rows, key = slice(offsets[first], offsets[last]), draw_keys(rng, 1)[0]
        block = tables._replace(gain=tables.gain[rows])
        of_block = offsets[first : last + 1] - offsets[first]
        mean[first:last] = sampled_utilities(h[rows], of_block, key, int(n_samples), block).mean(axis=0)
    return mean


def sampled_utilities(h, offsets, key, n_samples: int, tables: Tables) -> np.ndarray:
    """What the utility's `utility` says of sampled rankings, shape (n_samples, n_queries); the same at each call.

    Parameters
    ----------
    h : ndarray of float64, shape (n_rows,)
        Scores, grouped by query.
    offsets : ndarray of int64, shape (n_queries + 1,)
        From 0.
    key : numpy.uint64
        Of the noise.
    n_samples : int
    tables : skfairrank.utilities.Tables
        With `utility`; gains are grouped by query.

    Raises
    ------
    ValueError
        If `utility` does not return one number for each ranking.
    """
    n_queries, ranks = len(offsets) - 1, np.empty((n_samples, len(h)), np.int64)
    work = _ranks.sampling_work(len(h), n_queries, n_samples)
    over_queries(_ranks.sample_ranks, offsets, work, h, offsets, key, n_samples, ranks)
    ranks += np.repeat(offsets[:-1] - 1, np.diff(offsets))  # now places among all rows
    ranked = np.empty(ranks.shape)
    np.put_along_axis(ranked, ranks, tables.gain[None], axis=1)
    return checked_utilities(tables, ranked, offsets, (n_samples, n_queries))


def checked_utilities(tables: Tables, ranked, offsets, shape) -> np.ndarray:
    """The worth of ranked gains, from the utility's own method, which may be a user's."""
    utilities = np.asarray(tables.utility(ranked, offsets, tables.discount), dtype=np.float64)  # type: ignore[misc]
    if utilities.shape != shape or not np.isfinite(utilities).all():
        raise ValueError(
            f"The utility's utility(gain, offsets, discount) returned an array of shape {utilities.shape}, expected finite "
            f"numbers of shape {shape}: one for each ranking and query, from gains of shape {ranked.shape}."
        )
    return np.ascontiguousarray(utilities)
