"""What must be shown to call a ranker fair: accuracy, stability under the hypothetical, exposure of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral

import numpy as np
import pandas as pd

from skfairrank._candidates import counterparts
from skfairrank._checks import check_relevance, check_scores
from skfairrank._gains import descending_order, discounts
from skfairrank._queries import Queries
from skfairrank._random import as_generator
from skfairrank._sensitive import check_groups
from skfairrank.inspection._nearest import fitted_metric, nearest_queries
from skfairrank.inspection._spaces import steps_to_metric, transformed
from skfairrank.metrics._exposure import exposure_difference, exposure_disparity
from skfairrank.metrics._kendall import kendall_tau
from skfairrank.metrics._ndcg import ndcg, warn_unless_order_matters
from skfairrank.metrics._per_query import PerQuery
from skfairrank.metrics._predictions import own_policy, ranking_scores
from skfairrank.policies import Deterministic, PlackettLuce, Policy, expected_exposure, make_policy

__all__ = ["audit"]


def audit(
    estimator,
    X,
    y,
    *,
    qid,
    sensitive_features=None,
    X_hypothetical=None,
    metric=None,
    reference=None,
    policy="deterministic",
    k=None,
    n_samples=100,
    random_state=None,
    query_weight=None,
):
    r"""Accuracy and fairness of one or several fitted rankers on the same queries, with standard errors.

    Columns, each a mean over queries of a public metric:

    - ``ndcg``: `ndcg_score`, of the list by descending scores.
    - ``stochastic_ndcg``: `stochastic_ndcg_score`, in expectation under the Plackett-Luce policy.
    - ``tau``: `kendall_tau_score` of the scores h of the rows and h' of their hypotheticals; 1 is perfectly stable.
    - ``top_changed``: share of queries whose first item is another one under the hypothetical.
    - ``score_change``: root mean square of :math:`h_i - h'_i` over the items of a query, in units of scores.
    - ``disparity``: `group_exposure_disparity` under `policy`, exposure per merit.
    - ``exposure_difference``: `group_exposure_difference` under `policy`, without merit.

    The first two need nothing more, the next three hypothetical rows, the last two `sensitive_features`. A constant
    ranker is perfectly fair: read all columns together, and beside those of a plain and of a random ranker.

    All scores multiplied by .1 sort every list as before; by default ``stochastic_ndcg`` and ``score_change`` alone see
    it. Under ``policy="plackett_luce"`` the exposure columns see it too, and a softer policy looks fairer.

    Parameters
    ----------
    estimator : fitted estimator, or dict of name to fitted estimator
        Anything with `predict` (or `decision_function`): ours, pipelines, searches, boosted rankers.
    X : array-like, shape (n_rows, n_features)
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    sensitive_features : array-like, shape (n_rows,), optional
        The group of each row. An estimator that asks for it when it predicts (`skfairrank.postprocessing`) gets it too, for
        hypothetical rows that of the rows whose place they take.
    X_hypothetical : table like X, or callable, optional
        Hypothetical counterpart of each row, or a function X -> X', such as one that flips a sensitive column; it gets a copy.
    metric : fitted SensitiveSubspaceMetric, optional
        Where there is no `X_hypothetical`: each query's hypothetical is its nearest other query of X in this metric. A
        ranker's `metric_` measures what the ranker sees: X goes through the steps before it, in a pipeline or a search
        around one. A metric that no ranker here has must fit either X or what the last step sees, not both.
    reference : str, optional
        One of the names in `estimator`: adds the difference of each ranker to this one, paired by query.
    policy : "deterministic", "plackett_luce" or a policy, default="deterministic"
        Whose exposure ``disparity`` and ``exposure_difference`` measure: that of the list by descending scores, which
        users see; of rankings drawn from the scores' Plackett-Luce policy, as in the paper; or of another policy, such as
        ``skfairrank.policies.PlackettLuce(temperature=0.5)``, which brings settings of its own. A ranker that draws its rankings
        by a rule of its own (`skfairrank.postprocessing.ExposureLPRanker`) is judged by that rule, in all columns but those of
        hypothetical rows.
    k : int, optional
        Only ranks 1 to k count, for both NDCG and the exposure columns.
    n_samples : int or "exact", default=100
        Rankings sampled for each query, or exact expectations for small queries; for what is drawn by these names.
    random_state : None, int, RandomState or Generator
        All rankers are judged by the same random numbers; an int gives the numbers that each metric gives with that
        int.
    query_weight : array-like or mapping, optional
        What each query counts in every mean, >= 0: one number per row, equal within a query, or per query, as a mapping from
        id to number or in sorted order of the ids. None: all count alike.

    Returns
    -------
    table : DataFrame
        A row for each ranker; for each column above its mean and, in ``<name>_se``, the standard error of this mean:
        the standard deviation over the n queries in which it is defined, by the root of n (nan for a single query). With
        weights :math:`w_q` of the values :math:`x_q` it is
        :math:`\sqrt{n / (n - 1) \sum_q w_q^2 (x_q - \bar x)^2} / \sum_q w_q`. With a `reference` also ``<name>_difference``, the
        mean over the queries in which both are defined of the ranker's value less the reference's, its standard error in
        ``<name>_difference_se``, and in ``<name>_difference_p`` the two-sided p-value of a paired t test with n - 1 degrees of
        freedom: how often rankers that do not differ would differ as much. With many columns and rankers some p-values are
        small by chance.

    Raises
    ------
    ValueError, TypeError
        If rows and labels do not fit each other; if hypothetical rows have another shape, other columns or another kind of values
        than X, or missing or infinite values where X has none; if the features in which `metric` measures cannot be told; if
        `reference` is none of the names.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.inspection import audit
    >>> X, y, qid = [[0.0, 1], [1, 0], [2, 0], [0, 0], [1, 1]], [0, 1, 2, 0, 1], [0, 0, 0, 1, 1]
    >>> by_first = LinearRegression().fit([[0.0, 0], [1, 0], [0, 1]], [0, 1, 0])
    >>> flipped = [[a, 1 - b] for a, b in X]
    >>> table = audit({"by the first feature": by_first}, X, y, qid=qid, X_hypothetical=flipped, n_samples="exact")
    >>> table[["tau", "top_changed"]].values.tolist()
    [[1.0, 0.0]]
    """
    named = dict(estimator) if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
    if not named:
        raise ValueError("estimator is an empty dict: give at least one fitted ranker.")
    if reference is not None and reference not in named:
        raise ValueError(f"reference={reference!r} is none of the rankers: choose one of {list(named)}.")
    y = check_relevance(y)
    queries = Queries.from_qid(qid, len(y))
    group = None if sensitive_features is None else queries.group(check_groups(sensitive_features, len(y))[1])
    # An int seeds each metric as it would by itself; everything else gives one seed for all rankers.
    is_seed = isinstance(random_state, Integral)
    seed = int(random_state) if is_seed else int(as_generator(random_state).integers(2**63))
    named_settings = {"n_samples": n_samples, "random_state": seed} if isinstance(policy, str) else {}
    shown = make_policy(policy, **named_settings)
    policies: list[Policy] = [Deterministic(), PlackettLuce(1.0, n_samples, seed)]
    if shown not in policies:
        policies.append(shown)
    weight = queries.weights(query_weight)
    hypothetical = _hypothetical_rows(named, X, qid, X_hypothetical, metric)
    warn_unless_order_matters(queries.group(y), queries, "ndcg")
    measured: dict[str, dict[str, PerQuery]] = {}
    for name, fitted in named.items():
        s = queries.group(_scores(fitted, X, qid, len(y), "X", sensitive_features))
        own = own_policy(fitted, X, qid=qid, sensitive_features=sensitive_features)
        exposures = [expected_exposure(policy if own is None else own, s, queries, k) for policy in policies]
        measures = _accuracy(queries.group(y), exposures[:2], queries, k)
        if hypothetical[name] is not None:
            other = _scores(fitted, hypothetical[name], qid, len(y), "X_hypothetical", sensitive_features)
            measures |= _stability(s, queries.group(other), queries)
        if group is not None:
            exposure = exposures[policies.index(shown)]
            measures["disparity"] = exposure_disparity(queries.group(y), group, exposure, queries)
            measures["exposure_difference"] = exposure_difference(group, exposure, queries)
        measures = {column: measure.weighted(weight) for column, measure in measures.items()}
        if not measured:  # where a metric is undefined does not depend on the ranker
            for measure in measures.values():
                measure.warn()
        measured[name] = measures
    compared = None if reference is None else measured[reference]
    rows = {name: _row(measures, compared) for name, measures in measured.items()}
    return pd.DataFrame.from_dict(rows, orient="index")


def _row(measures: dict[str, PerQuery], reference: dict[str, PerQuery] | None) -> dict[str, float]:
    """The columns of one ranker."""
    row: dict[str, float] = {}
    for column, measure in measures.items():
        row |= {column: measure.mean, f"{column}_se": measure.standard_error}
        if reference is not None:
            difference = measure.minus(reference[column])
            row |= {f"{column}_difference": difference.mean, f"{column}_difference_se": difference.standard_error}
            row[f"{column}_difference_p"] = difference.p_value
    return row


def _hypothetical_rows(named, X, qid, X_hypothetical, metric) -> dict:
    """The hypothetical rows for each ranker, None where none were asked for."""
    if X_hypothetical is not None or metric is None:
        return dict.fromkeys(named, None if X_hypothetical is None else counterparts(X, X_hypothetical))
    metric, found = fitted_metric(metric), {}
    spaces = steps_to_metric(metric, named, X, qid)
    for steps in spaces.values():
        if steps not in found:
            Z = transformed(steps, X, qid)
            found[steps] = nearest_queries(Z, Z, qid=qid, qid_reference=qid, metric=metric).hypothetical(X)
    return {name: found[steps] for name, steps in spaces.items()}


def _scores(estimator, X, qid, n_rows, name, sensitive_features):
    scores = ranking_scores(estimator, X, qid=qid, sensitive_features=sensitive_features)
    scores = check_scores(scores, name=f"scores of {name}")
    if len(scores) != n_rows:
        raise ValueError(f"{name} has {len(scores)} rows and y has {n_rows}: they must describe the same rows.")
    return scores


def _accuracy(y, exposures, queries, k):
    table = discounts(int(queries.sizes.max()), k)
    in_order, stochastic = (ndcg(y, exposure, queries, table, "ndcg") for exposure in exposures)
    return {
        "ndcg": in_order,
        "stochastic_ndcg": replace(stochastic, is_selective=True),  # one warning is enough for both
    }


def _stability(s, other, queries):
    starts = queries.offsets[:-1]
    first, first_of_other = (descending_order(scores, queries.offsets)[starts] for scores in (s, other))
    change = np.sqrt(np.add.reduceat((s - other) ** 2, starts) / queries.sizes)
    everywhere = np.ones(queries.n_queries, bool)
    return {
        "tau": kendall_tau(s, other, queries),
        "top_changed": PerQuery((first != first_of_other).astype(float), everywhere, "top_changed", ""),
        "score_change": PerQuery(change, everywhere, "score_change", ""),
    }
