"""Metrics of a fitted ranker in one pass over rows on a disk."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning

from skfairrank._candidates import counterparts
from skfairrank._checks import check_scores, warn_caller
from skfairrank._random import as_generator
from skfairrank.metrics._per_query import PerQuery
from skfairrank.metrics._predictions import own_policy, ranking_scores
from skfairrank.policies import PlackettLuce, make_policy
from skfairrank.ranking_files._source import CHUNK, RankingSource
from skfairrank.utilities import make_utility

__all__ = ["evaluate_in_chunks", "measure_in_chunks"]

# Arguments of metrics that this module gives.
_GIVEN = ("y", "s", "s1", "s2", "qid", "sensitive_features", "query_weight", "reduce")


def evaluate_in_chunks(ranker, source, metrics, *, hypothetical=None, max_rows=CHUNK) -> pd.DataFrame:
    """Metrics of a fitted ranker, with standard errors, in one pass over a file that memory need not hold.

    Each metric gives a value for each query, and these are kept: 8 bytes for each query and metric. Their mean is that of the
    same metric on all rows in memory, to the last bit for a linear score (else as the library of matrix products rounds).
    Rankings are sampled with noise of the query's own, so that the size of chunks changes nothing. Where ids do not ascend in the
    file other rankings are sampled than in memory, and for average precision, whose noise belongs to blocks of rows.

    Parameters
    ----------
    ranker : fitted estimator
        With `predict` (or `decision_function`) of a DataFrame: ours, pipelines, boosted rankers.
    source : RankingSource
        Such as ``ParquetRanking(path)``. Its query weights are the weights of the means.
    metrics : dict of str to callable
        Functions of `skfairrank.metrics` with a value for each query, such as ``{"ndcg": ndcg_score}``. Settings are given by
        `functools.partial`: ``partial(stochastic_ndcg_score, n_samples=200, random_state=0)``. What they ask for is given:
        relevances, scores (`kendall_tau_score`: of the rows and of their hypotheticals), queries, sensitive features.
    hypothetical : callable, optional
        A function X -> X', such as one that flips a sensitive column; it gets a DataFrame of the features of some queries, and
        may change it.
    max_rows : int
        Rows of a chunk at most; a query of more rows is a chunk of its own.

    Returns
    -------
    table : DataFrame
        A row for each metric: its ``mean`` over the queries in which it is defined, the ``standard_error`` of this mean (as in
        `skfairrank.inspection.audit`), and ``n_queries``, the number of these queries.

    Raises
    ------
    TypeError, ValueError
        If `metrics` are no such functions, or ask for what `source` and `hypothetical` do not give.

    Examples
    --------
    >>> import tempfile
    >>> from functools import partial
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.metrics import kendall_tau_score, ndcg_score
    >>> from skfairrank.ranking_files import ParquetRanking, evaluate_in_chunks
    >>> rows = pd.DataFrame({"a": [0.0, 1, 2, 0, 1], "b": [1.0, 0, 0, 0, 1]})
    >>> rows = rows.assign(target=[0, 1, 2, 0, 1], qid=[0, 0, 0, 1, 1])
    >>> by_a = LinearRegression().fit(rows[["a", "b"]], rows["a"])
    >>> metrics = {"ndcg": ndcg_score, "ndcg@1": partial(ndcg_score, k=1), "tau": kendall_tau_score}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows.to_parquet(Path(folder) / "rows.parquet")
    ...     source = ParquetRanking(Path(folder) / "rows.parquet")
    ...     table = evaluate_in_chunks(by_a, source, metrics, hypothetical=lambda X: X.assign(b=1 - X["b"]))
    >>> table["mean"].round(6).tolist()
    [1.0, 1.0, 1.0]
    """
    measured, order_matters = measure_in_chunks(ranker, source, metrics, hypothetical=hypothetical, max_rows=max_rows)
    if not order_matters:
        warn_caller(
            f"Within each query of {source!r} all relevances are equal, so that metrics of relevance measure nothing. Check the "
            "relevances, and that query ids name queries and not rows.",
            UndefinedMetricWarning,
        )
    for measure in measured.values():
        measure.warn()
    rows = {
        name: {
            "mean": measure.mean,
            "standard_error": measure.standard_error,
            "n_queries": int(measure.defined.sum()),
        }
        for name, measure in measured.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").astype({"n_queries": int})


def measure_in_chunks(
    ranker, source, metrics, *, hypothetical=None, max_rows=CHUNK
) -> tuple[dict[str, PerQuery], bool]:
    """The values of `evaluate_in_chunks`, query by query in sorted order of the ids; and whether any query has rows of different
    relevance."""
    if not isinstance(source, RankingSource):
        raise TypeError(
            f"source is a {type(source).__name__}: give rows on a disk, such as ParquetRanking(path). Of rows in memory "
            "skfairrank.inspection.audit has a table, and skfairrank.metrics each number."
        )
    chosen = {name: _Metric.of(name, given) for name, given in _as_dict(metrics).items()}
    for metric in chosen.values():
        metric.check(source, hypothetical)
    values: dict[str, list] = {name: [] for name in chosen}
    table, seed, order_matters = source._table(), int(as_generator(None).integers(2**63)), False
    highest = _Highest(source)
    weights = []
    for chunk in source.chunks(max_rows):
        first, n_rows = chunk.first_query, len(chunk.y)
        starts = table.starts[first : np.searchsorted(table.starts, table.starts[first] + n_rows)] - table.starts[first]
        given = _arguments(ranker, chunk, starts, hypothetical)
        order_matters |= bool((np.maximum.reduceat(chunk.y, starts) > np.minimum.reduceat(chunk.y, starts)).any())
        policy = own_policy(ranker, chunk.X, qid=chunk.qid, sensitive_features=chunk.sensitive_features)
        for name, metric in chosen.items():
            values[name].append(metric(given, first, seed, highest, policy))
        if chunk.query_weight is not None:
            weights.append(chunk.query_weight[starts])
    weight = _sorted(np.concatenate(weights), table.order) if weights else None
    measured = {
        name: metric.per_query(_sorted(np.concatenate(values[name]), table.order)).weighted(weight)
        for name, metric in chosen.items()
    }
    return measured, order_matters


def _sorted(values, order):
    return values if order is None else values[order]


def _as_dict(metrics) -> Mapping:
    if not isinstance(metrics, Mapping) or not metrics:
        raise TypeError(
            f"metrics={metrics!r}: give a dict from names to functions, such as {{'ndcg': skfairrank.metrics.ndcg_score}}."
        )
    return metrics


def _arguments(ranker, chunk, starts, hypothetical) -> dict:
    """What metrics may ask for, of the rows of a chunk."""
    metadata = {"qid": chunk.qid, "sensitive_features": chunk.sensitive_features}

    def scores(X):
        return check_scores(ranking_scores(ranker, X, **metadata))

    s = scores(chunk.X)
    sizes = np.diff(np.append(starts, len(s)))
    # Numbers in the order of the file: metrics return values in sorted order.
    given = {"y": chunk.y, "s": s, "s1": s, "qid": np.repeat(np.arange(len(sizes)), sizes)}
    if hypothetical is not None:
        given["s2"] = scores(counterparts(chunk.X, hypothetical))
    if chunk.sensitive_features is not None:
        given["sensitive_features"] = chunk.sensitive_features
    return given


class _Highest:
    """The highest relevance of a source, read where a utility asks for it."""

    def __init__(self, source):
        self.source, self.value = source, None

    def __call__(self) -> float:
        if self.value is None:
            self.value = self.source.highest_relevance
        return self.value


@dataclass(frozen=True)
class _Metric:
    """A metric with its settings, and the names of the arguments that it asks for."""

    name: str
    function: Callable
    settings: dict
    asks: tuple

    @classmethod
    def of(cls, name: str, given) -> _Metric:
        function, settings = (given.func, dict(given.keywords)) if isinstance(given, partial) else (given, {})
        parameters = _parameters_of(function)
        if (
            not {"qid", "reduce"} <= set(parameters)
            or "items" in parameters
            or (isinstance(given, partial) and given.args)
        ):
            raise TypeError(
                f"metrics has {given!r} as {name!r}: give a function of skfairrank.metrics that has a value for each query "
                "(reduce=None), such as ndcg_score, or partial(ndcg_score, k=10)."
            )
        taken = [setting for setting in settings if setting in _GIVEN]
        if taken:
            raise TypeError(
                f"The metric {name!r} has settings for {taken}, which come from the source: leave them out."
            )
        for setting in ("policy", "n_samples", "random_state"):
            if setting in parameters:
                settings.setdefault(setting, parameters[setting].default)
        return cls(name, function, settings, tuple(asked for asked in _GIVEN if asked in parameters))

    def check(self, source, hypothetical) -> None:
        """Raise ValueError where there is not what the metric asks for."""
        if "s2" in self.asks and hypothetical is None:
            raise ValueError(
                f"The metric {self.name!r} compares the scores of rows with those of their hypotheticals: give hypothetical=, a "
                "function X -> X'."
            )
        if "sensitive_features" in self.asks and not source.has_sensitive_features:
            raise ValueError(
                f"The metric {self.name!r} compares groups, and {source!r} names no column of them: give it sensitive_features=."
            )

    def __call__(self, given: dict, first_query: int, seed: int, highest, policy) -> np.ndarray:
        """The value of each query of a chunk, shape (n_queries,); nan where it is undefined."""
        settings = dict(self.settings)
        if "policy" in settings:
            settings["policy"] = _numbered(settings, seed) if policy is None else policy
            settings.pop("n_samples", None)
            settings.pop("random_state", None)
        if "utility" in inspect.signature(self.function).parameters:
            utility = make_utility(settings.get("utility", "ndcg"))
            settings["utility"] = utility.for_relevances(highest()) if hasattr(utility, "for_relevances") else utility
        arguments = {name: given[name] for name in self.asks if name in given}
        positional = [arguments.pop(name) for name in ("y", "s", "s1", "s2") if name in arguments]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # of single chunks
            return self.function(*positional, **arguments, **settings, reduce=None)

    def per_query(self, values: np.ndarray) -> PerQuery:
        leaves_out = "replace_undefined_by" not in inspect.signature(self.function).parameters
        return PerQuery(
            values,
            ~np.isnan(values),
            self.name,
            "they have no relevant row, or lack what else it measures",
            is_selective=leaves_out,
        )


def _parameters_of(function) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # what cannot be called has none
        return {}


def _numbered(settings: dict, seed: int) -> Any:
    """The policy of a metric; one generator draws the noise of all chunks."""
    given = {name: settings[name] for name in ("n_samples", "random_state") if name in settings}
    policy = make_policy(settings["policy"], **given)
    if type(policy) is not PlackettLuce:
        return policy
    state = policy.random_state if policy.random_state is not None else seed
    return replace(policy, random_state=as_generator(state))
