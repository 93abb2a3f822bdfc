"""What metrics share: scores ranked by a policy, and the values of queries before they are averaged."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.validation import _num_samples

from skfairrank._checks import check_relevance, check_scores, names_queries, warn_caller
from skfairrank._partitions import ByPartition, is_dask
from skfairrank._queries import Queries
from skfairrank._sensitive import check_groups
from skfairrank.policies import make_policy
from skfairrank.utilities import discounts


def mean_over_queries(function):
    """Decorate a metric: it names `qid` (`names_queries`), and measures Dask collections partition by partition, where they lie.

    Partitions hold whole queries. Where groups have a `target`, of which some may be missing in a partition, and by metrics that
    are no mean over queries, the columns are brought together here, since they are read as arrays.
    """
    checked, signature = names_queries(function), inspect.signature(function)

    @functools.wraps(function)
    def metric(*args, **kwargs):
        if kwargs.get("target") is not None or not any(is_dask(value) for value in (*args, *kwargs.values())):
            return checked(*args, **kwargs)
        arguments = signature.bind(*args, **kwargs).arguments
        reduce = arguments.pop("reduce", "mean")
        found = ByPartition(functools.partial(metric, reduce=PerQuery), arguments)
        return PerQuery.joined(found.results, found.order).weighted(found.weight).reduced(reduce)

    return metric


class Ranked:
    """Rows ranked by a policy; all values of rows are grouped by query.

    Parameters
    ----------
    s : array-like of shape (n_rows,), or None
        Scores; None where the policy needs none.
    qid, policy, n_samples, random_state
        As metrics take them.
    """

    def __init__(self, s, qid, policy, n_samples, random_state):
        self.policy = make_policy(policy, n_samples=n_samples, random_state=random_state)
        self.s: Any
        if s is None and not getattr(self.policy, "needs_scores", True):
            self.queries, self.s = Queries.from_qid(qid, 0 if qid is None else _num_samples(qid)), None
        else:
            s = check_scores(s, name="s")
            self.queries = Queries.from_qid(qid, len(s))
            self.s = self.queries.group(s)
        self.starts, self.longest = self.queries.offsets[:-1], int(self.queries.sizes.max())

    def expected(self, discount: np.ndarray) -> np.ndarray:
        """Expected discount of each row's rank."""
        return self.policy.expected_discounts(self.s, self.queries, discount)

    def exposure(self, k=None, patience=None) -> np.ndarray:
        return self.expected(discounts(self.longest, k, patience))

    def relevances(self, y) -> np.ndarray:
        return self.queries.group(check_relevance(y, self.queries.n_rows))

    def groups(self, sensitive_features, unknown_groups) -> tuple[np.ndarray, np.ndarray]:
        """Labels, sorted, and the number of each row's label, -1 where it is unknown."""
        labels, codes = check_groups(sensitive_features, self.queries.n_rows, unknown_groups=unknown_groups)
        return labels, self.queries.group(codes)


@dataclass(frozen=True, eq=False)
class PerQuery:
    """The values of one metric, query by query in sorted order of the ids.

    Parameters
    ----------
    values : ndarray of float, shape (n_queries,)
        Read only where the metric is defined.
    defined : ndarray of bool, shape (n_queries,)
    metric, reason : str
        For messages: the metric's name, and what queries lack in which it is undefined.
    replace_undefined_by : float
        What such a query counts as; nan leaves it out, and the mean warns of it.
    is_selective : bool
        Whether leaving such queries out is a part of the metric's definition; then it warns only where no query is left.
    weight : ndarray of float, shape (n_queries,), optional
        What each query counts in the mean, >= 0. None: all count alike.
    clusters : ndarray of int, shape (n_queries,), optional
        The number of each query's cluster, for the standard error. None: queries are independent.
    """

    values: np.ndarray
    defined: np.ndarray
    metric: str
    reason: str
    replace_undefined_by: float = math.nan
    is_selective: bool = False
    weight: np.ndarray | None = None
    clusters: np.ndarray | None = None

    def __post_init__(self):
        value = self.replace_undefined_by
        if not isinstance(value, numbers.Real) or math.isinf(value):
            raise ValueError(f"replace_undefined_by={value!r}: give a number, or nan to leave queries out.")

    def weighted(self, weight: np.ndarray | None, clusters: np.ndarray | None = None) -> PerQuery:
        """These values with weights and clusters, as `Queries.weights` and `Queries.clusters` return them."""
        return replace(self, weight=weight, clusters=clusters)

    @classmethod
    def joined(cls, parts: list[PerQuery], order: np.ndarray) -> PerQuery:
        """Those of several parts of the queries, without weights, in this order."""
        values, defined = (np.concatenate([getattr(one, name) for one in parts]) for name in ("values", "defined"))
        return replace(parts[0], values=values[order], defined=defined[order], weight=None, clusters=None)

    @property
    def counted(self) -> np.ndarray:
        """Values as the mean counts them: nan or the replacement where the metric is undefined."""
        return np.where(self.defined, self.values, float(self.replace_undefined_by))

    @property
    def mean(self) -> float:
        values, weight, _ = self._present()
        return float(np.average(values, weights=weight)) if len(values) else math.nan

    @property
    def standard_error(self) -> float:
        r"""Of the mean over n queries: :math:`\sqrt{n / (n - 1) \sum_q w_q^2 (x_q - \bar x)^2} / \sum_q w_q`; nan for n < 2.

        With equal weights it is the standard deviation by the root of n. With clusters the sum is over clusters, of the squares
        of their sums, and n is their number.
        """
        values, weight, cluster = self._present()
        n = self._n_independent()
        if n < 2:
            return math.nan
        deviation = np.bincount(cluster, weight * (values - np.average(values, weights=weight)))
        return float(math.sqrt(n / (n - 1) * np.sum(deviation**2)) / np.sum(weight))

    def minus(self, other: PerQuery) -> PerQuery:
        """Differences of two rankers' values, query by query, where both count."""
        difference = self.counted - other.counted
        return replace(self, values=difference, defined=~np.isnan(difference), replace_undefined_by=math.nan)

    @property
    def p_value(self) -> float:
        """Two-sided, of a t test that the mean is 0; 1 where all values are 0, nan for n < 2."""
        n, mean, error = self._n_independent(), self.mean, self.standard_error
        if n < 2:
            return math.nan
        if error == 0.0:
            return 1.0 if mean == 0.0 else 0.0
        return float(2.0 * stats.t.sf(abs(mean) / error, n - 1))

    def _n_independent(self) -> int:
        """How many queries or clusters the mean counts."""
        return len(np.unique(self._present()[2]))

    def _present(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, weights and clusters of the queries that the mean counts; of the weights the largest is 1."""
        weight = np.ones(len(self.values)) if self.weight is None else self.weight / self.weight.max()
        chosen = (weight > 0) if not math.isnan(self.replace_undefined_by) else self.defined & (weight > 0)
        clusters = np.arange(len(weight)) if self.clusters is None else self.clusters
        return self.counted[chosen], weight[chosen], clusters[chosen]

    def reduced(self, reduce: str | None):
        """The mean over queries (``"mean"``) with its warnings; `counted` (None); this object, to be `joined` (PerQuery)."""
        if reduce is PerQuery:
            return self
        if reduce is None:
            if self.weight is not None:
                raise ValueError(
                    "query_weight makes no difference to the values of single queries, reduce=None: leave it out, and weight the "
                    "values as you average them."
                )
            return self.counted
        if not isinstance(reduce, str) or reduce != "mean":
            raise ValueError(f'reduce={reduce!r}: choose "mean", or None for the value of each query.')
        self.warn()
        return self.mean

    def warn(self) -> None:
        """Say what the mean does with queries in which the metric is undefined, if there are any."""
        defined = self.defined if self.weight is None else self.defined[self.weight > 0]
        n_queries = len(defined)
        n_undefined = n_queries - int(np.count_nonzero(defined))
        everywhere, replacement = n_undefined == n_queries, float(self.replace_undefined_by)
        message = None
        if n_undefined and self.is_selective:
            if everywhere:
                message = f"all of {n_queries} queries ({self.reason}): the result is nan."
        elif n_undefined and math.isnan(replacement):
            message = (
                f"{n_undefined} of {n_queries} queries ({self.reason}): they are left out of the mean. Pass "
                "replace_undefined_by=, a number, to count them as that number."
            )
        elif n_undefined and everywhere:
            # Without this a metric that could not be measured anywhere would look perfect.
            message = (
                f"all of {n_queries} queries ({self.reason}): the result is replace_undefined_by={replacement:g} and "
                "measures nothing. Pass replace_undefined_by=nan to get nan instead."
            )
        if message is not None:
            warn_caller(f"{self.metric} is undefined in {message}", UndefinedMetricWarning)
