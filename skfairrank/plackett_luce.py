"""The Plackett-Luce policy over rankings (Bower et al. 2021, equation 1): sampling, probabilities, expectations.

A ranking is drawn from the top: among the items not yet ranked, item i comes next with probability proportional to
exp(score_i).
"""

from __future__ import annotations

import numbers

import numpy as np

from skfairrank._checks import as_whole_numbers, check_scores, names_queries
from skfairrank._kernels import exact as _exact
from skfairrank._kernels import sampling as _sampling
from skfairrank._queries import Queries
from skfairrank._random import as_generator, draw_keys
from skfairrank._threads import over_queries
from skfairrank.utilities import Tables, discounts

__all__ = ["EXACT_LIMIT", "expected_exposure", "log_probability", "rank_probabilities", "sample_rankings"]

#: Largest query, in items, of which expectations are summed exactly: the work is 2^n n (some milliseconds at this size).
EXACT_LIMIT = 16

_BLOCK = 1 << 14  # rows that are ranked at once where the utility of whole rankings is asked for


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
    """Scores grouped by query, and the queries: one query where there is no qid."""
    scores = check_scores(scores)
    queries = Queries.single(len(scores)) if qid is None else Queries.from_qid(qid, len(scores))
    return queries.group(scores), queries


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
        An int gives the same rankings for any interleaving of the queries that keeps each query's row order, and more
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
    check_n_samples(n_samples, exact=False)
    h, queries = _checked(scores, qid)
    key = draw_keys(as_generator(random_state), 1)[0]
    return queries.ungroup(_sampled_ranks(h, queries.offsets, key, int(n_samples)), axis=1)


def _sampled_ranks(h, offsets, key, n_samples: int) -> np.ndarray:
    """Ranks, shape (n_samples, n_rows), grouped by query; the same at each call."""
    ranks = np.empty((n_samples, len(h)), np.int64)
    work = _sampling.sampling_work(len(h), len(offsets) - 1, n_samples)
    over_queries(_sampling.sample_ranks, offsets, work, h, offsets, key, n_samples, ranks)
    return ranks


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
    h, queries = _checked(scores, qid)
    given = np.asarray(ranks)
    integral = as_whole_numbers(given)
    if integral is None:
        raise ValueError("ranks must be integers, 1 for the best item of each query.")
    integral = np.atleast_2d(integral)
    if integral.ndim != 2 or integral.shape[1] != len(h):
        raise ValueError(f"ranks has shape {given.shape}: expected (n_samples, {len(h)}), one rank per row.")
    grouped, sizes = queries.group(integral, axis=1), queries.sizes
    # Of permutations the places of the ranked rows among all rows are all places.
    in_query = (grouped >= 1) & (grouped <= np.repeat(sizes, sizes))
    places = np.sort(np.where(in_query, grouped + np.repeat(queries.offsets[:-1] - 1, sizes), -1), axis=1)
    for sample in np.flatnonzero((places != np.arange(len(h))).any(axis=1)):
        for q, (lo, hi) in enumerate(zip(queries.offsets[:-1], queries.offsets[1:], strict=True)):
            if not np.array_equal(np.sort(grouped[sample, lo:hi]), np.arange(1, hi - lo + 1)):
                raise ValueError(
                    f"ranks of query {queries.name(q)} in sample {sample} are not a permutation of 1 to {hi - lo}: "
                    f"{grouped[sample, lo:hi][:10].tolist()}."
                )
    out = np.empty((len(integral), queries.n_queries))
    work = 20.0 * integral.size
    over_queries(_sampling.log_probability, queries.offsets, work, h, queries.offsets, grouped, out)
    return out


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
    h, queries = _checked(scores, qid)
    check_exact_limit(queries)
    out = np.zeros((len(h), int(queries.sizes.max())))
    over_queries(_exact.rank_probabilities, queries.offsets, _exact.subset_work(queries.sizes), h, queries.offsets, out)
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
    h, queries = _checked(scores, qid)
    table = discounts(int(queries.sizes.max()), k)
    return queries.ungroup(expected_discounts(h, queries, table, n_samples, random_state))


def expected_discounts(h, queries: Queries, discount, n_samples, random_state=None) -> np.ndarray:
    """Expected discount of each row's rank, shape (n_rows,), for any table of discounts; scores and result grouped by query."""
    check_n_samples(n_samples)
    out, offsets = np.empty(len(h)), queries.offsets
    if n_samples == "exact":
        check_exact_limit(queries)
        work = _exact.subset_work(queries.sizes)
        over_queries(_exact.expected_discounts, offsets, work, h, offsets, discount, out)
    else:
        key = draw_keys(as_generator(random_state), 1)[0]
        work = _sampling.sampling_work(len(h), queries.n_queries, int(n_samples))
        over_queries(_sampling.sampled_discounts, offsets, work, h, offsets, key, int(n_samples), discount, out)
    return out


def expected_utility(h, queries: Queries, tables: Tables, n_samples, random_state=None) -> np.ndarray:
    """Expected utility of each query's ranking, shape (n_queries,); scores grouped by query.

    For utilities with `continuation`, or with a method `utility` (these have no exact expectation); of the others expected
    discounts say it.
    """
    check_n_samples(n_samples)
    if tables.utility is not None:
        return _mean_of_samples(h, queries, tables, n_samples, as_generator(random_state))
    gradient, utility, offsets = np.empty(len(h)), np.empty(queries.n_queries), queries.offsets
    arguments = h, offsets, tables.gain, tables.continuation, tables.discount
    if n_samples == "exact":
        check_exact_limit(queries)
        work = 2.0 * _exact.subset_work(queries.sizes)
        over_queries(_exact.exact_gradient, offsets, work, *arguments, gradient, utility)
    else:
        key = draw_keys(as_generator(random_state), 1)[0]
        work = _sampling.gradient_work(len(h), queries.n_queries, n_samples)
        noise = np.empty((0, 0)), key, int(n_samples)
        over_queries(_sampling.reinforce, offsets, work, *arguments, *noise, gradient, utility)
    return utility


def _mean_of_samples(h, queries, tables, n_samples, rng):
    """Mean utility of sampled rankings by the method `utility`, block of queries by block of queries."""
    if n_samples == "exact":
        raise ValueError(
            'n_samples="exact" needs a utility of gain, discount and continuation; this one, as AveragePrecision, is known by '
            "the utility of whole rankings. Sample it: n_samples=100."
        )
    offsets, mean = queries.offsets, np.empty(queries.n_queries)
    for first, last in queries.blocks(_BLOCK):
        rows, key = slice(offsets[first], offsets[last]), draw_keys(rng, 1)[0]
        block, of_block = tables._replace(gain=tables.gain[rows]), offsets[first : last + 1] - offsets[first]
        mean[first:last] = sampled_utilities(h[rows], of_block, key, int(n_samples), block).mean(axis=0)
    return mean


def sampled_utilities(h, offsets, key, n_samples: int, tables: Tables) -> np.ndarray:
    """Utilities of sampled rankings by the method `utility`, shape (n_samples, n_queries); rows are grouped by query."""
    ranks = _sampled_ranks(h, offsets, key, n_samples)
    ranks += np.repeat(offsets[:-1] - 1, np.diff(offsets))  # now places among all rows
    ranked = np.empty(ranks.shape)
    np.put_along_axis(ranked, ranks, tables.gain[None], axis=1)
    return utilities_of_ranked(tables, ranked, offsets)


def utilities_of_ranked(tables: Tables, ranked, offsets) -> np.ndarray:
    """Utilities of ranked gains, shape (n_rows,) or (n_samples, n_rows), by the method `utility`, which may be a user's."""
    utilities = np.asarray(tables.utility(ranked, offsets, tables.discount), dtype=np.float64)  # type: ignore[misc]
    shape = (*ranked.shape[:-1], len(offsets) - 1)
    if utilities.shape != shape or not np.isfinite(utilities).all():
        raise ValueError(
            f"The method utility(gain, offsets, discount) returned an array of shape {utilities.shape}, expected finite numbers "
            f"of shape {shape}: one for each ranking and query, from gains of shape {ranked.shape}."
        )
    return np.ascontiguousarray(utilities)
