"""A certificate of individual fairness, for any ranker: how unfair it is on these queries, and at most on new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skfairrank._candidates import as_table
from skfairrank._checks import warn_caller
from skfairrank._random import as_generator
from skfairrank.adversaries import ExactBox
from skfairrank.inspection._confidence import check_confidence, upper_confidence_bound
from skfairrank.inspection._invariance import METHODS, Items, exact_bounds
from skfairrank.inspection._leakage import leakage_of_others, leakage_sentence, tells
from skfairrank.inspection._order_changes import STATISTICS, Worst, of_intervals
from skfairrank.inspection._rankings import Rankings
from skfairrank.metrics._predictions import unwrapped

_MEANING = {
    "discordance": "pairs of items change order",
    "top_changed": "queries get another first item",
    "displacement": "the ranks that items can move are moved",
    "score_change": "half of the squared change of a query's scores",
}


@dataclass(frozen=True, eq=False, repr=False)
class FairnessCertificate:
    """What `fairness_certificate` found.

    Attributes
    ----------
    value : float
        Mean over queries of the unfairness of each, the worst over its hypothetical queries.
    upper_bound : float or None
        At most this is, with the stated confidence, the mean over new queries. None for "score_change", which nothing bounds.
    n_queries : int
    n_clusters : int or None
        How many clusters of queries the bound rests on; None where queries are independent.
    confidence : float
    statistic : str
    per_query : DataFrame
        Columns ``qid``, ``unfairness``, and ``hypothetical``: the name of the worst hypothetical, the first of several, None
        where none changes anything. Queries in sorted order of their ids.
    hypotheticals : list of str
        The names of all hypotheticals.
    leakage : Bunch or None
        Where hypotheticals change nothing but the column of an attribute (or a few one-hot columns): how well the others tell
        what it holds, as `group_leakage`, with the names of the ``changed``. What goes with it is then not certified.
    """

    value: float
    upper_bound: float | None
    n_queries: int
    n_clusters: int | None
    confidence: float
    statistic: str
    per_query: pd.DataFrame
    hypotheticals: list[str]
    leakage: Bunch | None = None

    def _sentences(self) -> tuple[str, str]:
        """What was seen, and what it says of new queries."""
        where = f"on the average of {self.n_queries} {'query' if self.n_queries == 1 else 'queries'}"
        if self.n_clusters is not None:
            where += f" of {self.n_clusters} {'cluster' if self.n_clusters == 1 else 'clusters'}"
        if self.upper_bound is None:
            return (
                f"{self.value:.4g} is {_MEANING[self.statistic]}, {where}",
                "no bound for new queries, since this statistic has no largest value",
            )
        return (
            f"{100 * self.value:.2f}% of {_MEANING[self.statistic]}, {where}",
            f"at most {100 * self.upper_bound:.2f}% for new queries, with {100 * self.confidence:.6g}% confidence",
        )

    def __repr__(self) -> str:
        leaks = leakage_sentence(self.leakage) if tells(self.leakage) else ""
        return f"<FairnessCertificate: {'; '.join([*self._sentences(), *[leaks] * bool(leaks)])}>"

    def _repr_html_(self) -> str:
        seen, bound = self._sentences()
        facts = {
            "Seen": seen,
            "Bound": bound,
            "Hypotheticals": ", ".join(self.hypotheticals),
            "Statistic": self.statistic,
        }
        if self.leakage is not None:
            facts["Other columns"] = leakage_sentence(self.leakage)
        with pd.option_context("display.max_colwidth", None):
            return pd.Series(facts, name="Fairness certificate").to_frame().to_html()


def fairness_certificate(
    ranker,
    X=None,
    *,
    qid,
    hypotheticals=None,
    X_hypothetical=None,
    sensitive_features=None,
    metric=None,
    adversary=None,
    method="auto",
    statistic="discordance",
    confidence=0.95,
    query_weight=None,
    clusters=None,
    random_state=None,
) -> FairnessCertificate:
    r"""How much a ranker's lists change when its queries become hypothetical ones, and at most on new queries.

    Of each query q the worst over its hypothetical queries q' counts, each of which changes all of its items at once; over
    queries the mean is taken. If queries are drawn independently, and the ranker and the hypotheticals were made without them,
    then the mean over new queries is at most ``upper_bound``, with the stated confidence, whatever the distribution: see
    `upper_confidence_bound`. So audit queries on which the ranker was not trained.

    With h and h' the scores of the n items of a query, the statistics are

    - "discordance": :math:`\binom n2^{-1} \sum_{i<j} |\operatorname{sign}(h_i - h_j) - \operatorname{sign}(h'_i - h'_j)| / 2`,
      the share of pairs that change order. A pair that is tied in one of h and h' counts half, in both not at all. Without ties
      it is :math:`(1 - \tau) / 2`, and of one item 0.
    - "top_changed": 1 where the first item is another one, else 0. Tied items rank in the order of the rows.
    - "displacement": :math:`\sum_i |r_i - r'_i| / \lfloor n^2 / 2 \rfloor`, by how much ranks move, relative to a reversed list;
      ties in the order of the rows.
    - "score_change": :math:`\frac12 \|h - h'\|^2`, as in the invariance regulariser. It has no largest value, and so no bound.

    Parameters
    ----------
    ranker : fitted estimator, or scores of shape (n_rows,)
        Anything with `predict` or `decision_function`: ours, boosted trees, pipelines, searches. Or the scores of a ranking that
        comes without an estimator; then the hypotheticals are scores, too.
    X : table, shape (n_rows, n_features), optional
        An array or DataFrame as the ranker takes it. Scores need none.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    hypotheticals : function, table, scores, list or dict of these, or Hypotheticals, optional
        What the items might as well have been: functions X -> X', such as one that sets sex to another value in all rows (it gets
        a copy); tables like X, such as ``nearest_queries(...).hypothetical(X_train)``; or hypothetical scores. A
        `skfairrank.hypotheticals.Hypotheticals` that is fitted is used as it is; if it learns from data (neighbours, a metric, a
        range), fit it on training rows first.
    X_hypothetical : table like X, optional
        Hypothetical rows.
    sensitive_features : array-like, shape (n_rows,), optional
        The group of each row, for a ranker that asks for it when it predicts (`skfairrank.postprocessing`). Hypothetical rows
        keep the group of the rows whose place they take: what such a ranker does to a person whose group changes is not asked.
    metric : fitted fair metric, optional
        For the adversary; default: the ranker's `metric_`. Also for `hypotheticals` that step along its directions.
    adversary : ExactBox, ExactGaps, ExactBudget, or one of "exact_box", "gaps" and "exact", optional
        Hypothetical queries within its bounds, as in `invariance_regularizer`: of each pair of items it is asked whether some
        move turns it, so that no hypothetical query within bounds has a larger discordance or displacement. `ExactBudget` has one
        transport budget for all queries, and is for "score_change" of linear scores. Default: ``ExactBox(1.0, 0.0)`` where
        `metric` is given alone.
    method : {"auto", "ascent"}, default="auto"
        "auto": in closed form for linear scores. "ascent", and for other scores of ours: each item's score is driven up and down
        by its gradient; the worst move may be worse than what an ascent finds.
    statistic : {"discordance", "top_changed", "displacement", "score_change"}, default="discordance"
    confidence : float, default=0.95
        In (0, 1).
    query_weight : array-like or mapping, optional
        What each query counts in the mean and its bound: one number >= 0 per row or query, known before the audit.
    clusters : array-like of shape (n_rows,), or mapping, optional
        The cluster of each row's query, such as the firm whose opening it is, or of each query by its id. Where queries of a
        cluster depend on each other, the bound needs them: it then rests on independent clusters.
    random_state : None, int, RandomState or Generator
        For the starts of "ascent".

    Returns
    -------
    certificate : FairnessCertificate

    Raises
    ------
    ValueError, TypeError
        If there are no hypothetical rows; if one of the tables has other rows or columns than X, or missing values where X has
        none (the message names it); if there is not one group label for each row; if scores are not finite; if the adversary
        needs linear scores or a gradient, and there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.inspection import fairness_certificate
    >>> ranker = LinearRegression().fit(
    ...     [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 1.5]
    ... )
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.random(400), rng.integers(0, 2, 400)])
    >>> def exchange(X):
    ...     X[:, 1] = 1 - X[:, 1]
    ...     return X
    >>> fairness_certificate(
    ...     ranker, X, qid=np.repeat(np.arange(100), 4), hypotheticals=exchange
    ... )
    <FairnessCertificate: 50.50% of pairs of items change order,
    on the average of 100 queries; at most 54.6% for new queries, with 95% confidence>
    """
    X = X if X is None else as_table(X)
    if statistic not in STATISTICS:
        raise ValueError(f"statistic={statistic!r}: choose one of {list(STATISTICS)}.")
    confidence = check_confidence(confidence)
    if adversary is None and metric is not None and hypotheticals is None and X_hypothetical is None:
        adversary = ExactBox(feature_radius=0.0)
    rankings = Rankings(ranker, X, qid=qid, sensitive_features=sensitive_features)
    if len(rankings.scores) != 1:
        raise ValueError(f"A certificate is of one ranker, and ranker holds {list(rankings.scores)}: choose one.")
    ((name, s),) = rankings.scores.items()
    worst, is_changed = Worst(s, rankings.queries, statistic), None
    if hypotheticals is not None or X_hypothetical is not None or adversary is None:
        for hypothetical in rankings.hypotheticals(hypotheticals, X_hypothetical, metric):
            worst.add(hypothetical.name, rankings.under(hypothetical)[name])
            is_changed = rankings.changed_columns(hypothetical, is_changed)
    if adversary is not None:
        found = _under_attack(
            ranker,
            X,
            s,
            rankings.queries,
            metric=metric,
            adversary=adversary,
            method=method,
            statistic=statistic,
            random_state=random_state,
        )
        worst.add_values(adversary if isinstance(adversary, str) else type(adversary).__name__, found)
    weight, clusters = rankings.queries.weights(query_weight), rankings.queries.clusters(clusters)
    leakage = None if is_changed is None or adversary is not None else leakage_of_others(X, is_changed)
    return certificate_of(worst, confidence, weight, clusters, leakage)


def certificate_of(worst: Worst, confidence: float, weight=None, clusters=None, leakage=None) -> FairnessCertificate:
    """What the worst hypotheticals of the queries say of new ones."""
    values, queries = worst.unfairness, worst.queries
    has_bound = worst.statistic != "score_change"
    if has_bound and queries.sizes.max() == 1:
        warn_caller(
            f"Each of the {len(values)} rows is a query of its own, so that there is no order to change, and the certificate "
            "says nothing: qid must be equal for rows that compete with each other."
        )
    names = np.array([*worst.names, None], dtype=object)
    return FairnessCertificate(
        value=float(np.average(values, weights=weight)),
        upper_bound=upper_confidence_bound(values, confidence, weight=weight, clusters=clusters) if has_bound else None,
        n_queries=len(values),
        n_clusters=None if clusters is None else len(np.unique(clusters)),
        confidence=confidence,
        statistic=worst.statistic,
        per_query=pd.DataFrame(
            {"qid": queries.ids, "unfairness": values, "hypothetical": pd.Series(names[worst.which], dtype=object)}
        ),
        hypotheticals=worst.names,
        leakage=leakage,
    )


def _under_attack(ranker, X, s, queries, *, metric, adversary, method, statistic, random_state) -> np.ndarray:
    """The statistic of each query under the worst moves of its items, shape (n_queries,)."""
    if method not in METHODS:
        raise ValueError(f"method={method!r}: choose one of {list(METHODS)}.")
    ranker = unwrapped(ranker)
    items = Items.of(ranker, X, queries.codes, metric)
    bounds: Any = exact_bounds(adversary, items)
    if bounds.is_centered:
        raise ValueError('A certificate compares scores as they are: give an adversary with score_distance="squared".')
    if items.score.is_linear:
        _check_linear(ranker, items.X @ items.theta, s)
    if method == "auto" and items.score.is_linear and statistic == "score_change":
        return 0.5 * queries.sizes * bounds.largest_change(items.theta) ** 2
    if not bounds.moves_items_alone:
        raise ValueError(
            f"{type(adversary).__name__} has one budget for all queries, of which it is known how far it changes linear scores, "
            f"and not how it changes orders: for statistic={statistic!r}, and for other scores, give ExactBox() or ExactGaps()."
        )
    if method == "auto" and items.score.is_linear:
        change = bounds.largest_change(items.theta)
        return of_intervals(statistic, s, s - change, s + change, queries)
    low, high = bounds.score_bounds(items.score, items.theta, items.X, as_generator(random_state))
    return of_intervals(statistic, s, low, high, queries)


def _check_linear(ranker, linear, s):
    """The closed form reads `coef_`; the scores must follow from it, up to an intercept."""
    rest = s - linear
    if np.ptp(rest) > 1e-4 * max(float(np.abs(s).max()), 1e-300):
        raise ValueError(
            f"The scores of {type(ranker).__name__} are not X @ coef_ up to a constant, so that the closed form does not hold: "
            "give hypotheticals."
        )
