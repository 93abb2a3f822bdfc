"""`audit_report`: everything that this package can say of fitted rankers on some queries, on one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path

import numpy as np
import pandas as pd

from skfairrank._candidates import as_table
from skfairrank._checks import as_values, check_relevance, names_queries
from skfairrank._gains import discounts
from skfairrank._queries import Queries
from skfairrank._sensitive import check_group_columns
from skfairrank.inspection._audit import audit
from skfairrank.inspection._certificate import FairnessCertificate, certificate_of_scores, fitted_hypotheticals
from skfairrank.inspection._confidence import check_confidence
from skfairrank.inspection._exposure_by_group import exposure_by_group
from skfairrank.inspection._order_changes import STATISTICS, ranks
from skfairrank.inspection._report._page import document, fragment
from skfairrank.inspection._report._scored import Scored, score_all
from skfairrank.inspection._report._words import at_most, count, percent
from skfairrank.metrics._ndcg import ndcg

__all__ = ["AuditReport", "audit_report"]

_WORST_COLUMNS = (
    "ranker",
    "qid",
    "hypothetical",
    "unfairness",
    "row",
    "item",
    "group",
    "rank",
    "hypothetical_rank",
    "move",
    "change",
)


@dataclass(frozen=True, eq=False, repr=False)
class AuditReport:
    """What `audit_report` found: tables to compute with, and a page to read.

    Attributes
    ----------
    table : DataFrame
        `audit` of the rankers, under the hypothetical that changes the most pairs of each query.
    certificates, top_certificates : dict of name to FairnessCertificate
        Of each ranker, by "discordance" and by "top_changed". Empty where there are no hypotheticals.
    hypotheticals : DataFrame
        Index (ranker, hypothetical); the mean "discordance", "top_changed" and "displacement" under each by itself, and
        ``rows_changed``, the share of the rows that it changes at all.
    exposure : DataFrame or None
        `exposure_by_group`; None without sensitive features.
    gaps : DataFrame or None
        Index (ranker, attribute); ``disparity`` and ``exposure_difference`` of `audit`, with standard errors.
    facts : dict
        What was asked: ``n_queries``, ``n_relevant`` (queries with a relevant item), ``n_items``, ``sizes`` (of the queries),
        ``groups`` (how many items each group of each attribute has), ``k``, ``confidence``, ``reference``, and ``random_ndcg``
        (the NDCG that lists in random order have on the average).
    """

    table: pd.DataFrame
    certificates: dict[str, FairnessCertificate]
    top_certificates: dict[str, FairnessCertificate]
    hypotheticals: pd.DataFrame
    exposure: pd.DataFrame | None
    gaps: pd.DataFrame | None
    facts: dict
    _worst: pd.DataFrame

    def worst_queries(self) -> pd.DataFrame:
        """The queries whose order changes most, item by item.

        Returns
        -------
        items : DataFrame
            Of one ranker after the other the worst queries, the worst first, each in the order in which the ranker ranks it.
            Columns ``ranker``, ``qid``, ``hypothetical`` (the worst), ``unfairness`` (the share of pairs that change order),
            ``row`` (the item's number in X), ``item`` (its name), ``group`` (by each attribute), ``rank``,
            ``hypothetical_rank``, ``move`` (places won, negative where they are lost), and ``change``: what the hypothetical
            changes in the item. Empty where no order changes.
        """
        return self._worst.copy()

    def to_html(self, path, *, title="Fairness report", date=None) -> None:
        """Write the page to a file: it needs no network and no scripts, and can be printed.

        Parameters
        ----------
        path : str or path
        title : str, default="Fairness report"
        date : str or date, optional
            Written below the title. By default there is none, so that equal reports are equal files.
        """
        page = document(self, title=str(title), date=None if date is None else str(date))
        Path(path).write_text(page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")

    def _repr_html_(self) -> str:
        return fragment(self)

    def __repr__(self) -> str:
        n_queries, n_items = self.facts["n_queries"], self.facts["n_items"]
        found = [
            ", ".join([count(len(self.table), "ranker"), count(n_queries, "query", "queries"), count(n_items, "item")])
        ]
        for name, certificate in self.certificates.items():
            seen, bound = percent(certificate.value), at_most(float(certificate.upper_bound or 1.0))
            found.append(f"{name}: {seen} of pairs change order, at most {bound} for new queries")
        return f"<AuditReport: {'; '.join(found)}>"


@names_queries
def audit_report(
    rankers,
    X,
    y,
    *,
    qid,
    hypotheticals=None,
    X_hypothetical=None,
    sensitive_features=None,
    item_names=None,
    reference=None,
    k=10,
    confidence=0.95,
    n_worst=3,
    random_state=None,
) -> AuditReport:
    """A page for those who decide: how good rankers are, how fair, how sure that is, and what the numbers do not say.

    It puts together `audit`, `fairness_certificate` and `exposure_by_group`, and shows the queries whose order changes most
    beside their hypothetical orders. Each ranker predicts once for X and once for each set of hypothetical rows. Audit queries on
    which the rankers were not trained.

    Parameters
    ----------
    rankers : fitted estimator, or dict of name to fitted estimator
        Anything with `predict` or `decision_function`: ours, boosted trees, pipelines on DataFrames, searches.
    X : table, shape (n_rows, n_features)
        As the rankers take it.
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    hypotheticals : callable, list or dict of callables, or Hypotheticals, optional
        As for `fairness_certificate`. The page shows the names: a dict gives readable ones, such as ``{"sex flipped": flip}``.
    X_hypothetical : table like X, or list or dict of tables, optional
        Hypothetical rows that one has.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), DataFrame, or dict of name to array, optional
        The groups of each row by one attribute or several.
    item_names : array-like, shape (n_rows,), optional
        What the page calls the items. Default: their numbers in X, or the index of a DataFrame.
    reference : str, optional
        One of the rankers' names: the page also tells differences to it.
    k : int, default=10
        How many first places count, for NDCG, gaps in exposure and shares of the top.
    confidence : float, default=0.95
        Of each upper bound by itself.
    n_worst : int, default=3
        How many queries of each ranker are shown at most.
    random_state : None, int, RandomState or Generator
        For the sampled rankings of `audit`. An int gives the same page again.

    Returns
    -------
    report : AuditReport
        With ``to_html(path)`` and ``worst_queries()``; a notebook shows it.

    Raises
    ------
    ValueError, TypeError
        As `audit`, `fairness_certificate` and `exposure_by_group` do: among others if hypothetical rows have other columns than
        X, if scores are not finite, or if an attribute is continuous.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.inspection import audit_report
    >>> ranker = LinearRegression().fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 0.2])
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.random(400), rng.integers(0, 2, 400)])
    >>> def exchange(X):
    ...     X[:, 1] = 1 - X[:, 1]
    ...     return X
    >>> report = audit_report(
    ...     {"linear": ranker}, X, X[:, 0], qid=np.repeat(np.arange(100), 4), hypotheticals={"other group": exchange}
    ... )
    >>> report
    <AuditReport: 1 ranker, 100 queries, 400 items; linear: 19% of pairs change order, at most 23.4% for new queries>
    >>> report.worst_queries()[["qid", "row", "rank", "hypothetical_rank", "change"]].head(2)
       qid  row  rank  hypothetical_rank             change
    0   97  390     1                  3  column 1: 1 → 0
    1   97  389     2                  4  column 1: 1 → 0
    """
    named = {str(name): fitted for name, fitted in rankers.items()} if isinstance(rankers, Mapping) else None
    named = {type(rankers).__name__: rankers} if named is None else named
    if not named:
        raise ValueError("rankers is an empty dict: give at least one fitted ranker.")
    k, n_worst = _whole("k", k, 1), _whole("n_worst", n_worst, 0)
    confidence, X, y = check_confidence(confidence), as_table(X), check_relevance(y)
    if X.shape[0] != len(y):
        raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)}: they must describe the same rows.")
    queries = Queries.from_qid(qid, len(y))
    items, has_groups = _names_of_items(item_names, X), sensitive_features is not None
    groups = check_group_columns(sensitive_features, len(y), compared_by="this page") if has_groups else {}
    asked = hypotheticals is not None or X_hypothetical is not None
    fitted = fitted_hypotheticals(hypotheticals, X, None) if asked else None
    known = {"qid": qid, "sensitive_features": _as_one_attribute(sensitive_features)}
    scored = score_all(named, X, queries, known, fitted, X_hypothetical, n_worst)
    certificates, top = (
        _certificates(list(named), scored, qid, statistic, confidence) for statistic in ("discordance", "top_changed")
    )
    judged = {"qid": qid, "reference": reference, "k": k, "random_state": random_state}
    most = _most_changed(scored, certificates, queries)
    table, gaps = _audits(scored.rankers, scored.s, y, most, groups, judged)
    exposure = None
    if sensitive_features is not None:
        exposure = exposure_by_group(scored.rankers, scored.s, y, qid=qid, sensitive_features=sensitive_features, k=k)
    facts = _facts(queries.group(y), queries, groups, k) | {"confidence": confidence, "reference": reference}
    each = _each_hypothetical(list(named), scored, queries)
    worst = _worst_items(list(named), scored, queries, items, groups)
    return AuditReport(table, certificates, top, each, exposure, gaps, facts, worst)


def _facts(y, queries: Queries, groups, k: int) -> dict:
    return {
        "n_queries": queries.n_queries,
        "n_relevant": int((np.maximum.reduceat(y, queries.offsets[:-1]) > 0).sum()),
        "n_items": queries.n_rows,
        "sizes": queries.sizes,
        "groups": {name: _counts(labels, codes) for name, (labels, codes) in groups.items()},
        "k": k,
        "random_ndcg": _ndcg_of_random_order(y, queries, k),
    }


def _whole(name: str, value, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r}: give an integer >= {least}.")
    return int(value)


def _names_of_items(item_names, X) -> list[str]:
    if item_names is not None:
        names = as_values(item_names)
        if names.shape != (X.shape[0],):
            raise ValueError(f"item_names has shape {names.shape} for {X.shape[0]} rows: give one name for each row.")
        return [str(name) for name in names]
    index = X.index if isinstance(X, pd.DataFrame) else range(X.shape[0])
    return [label if isinstance(label, str) else f"row {label}" for label in index]


def _as_one_attribute(sensitive_features):
    """What a ranker gets that asks for groups when it predicts: the values of the attribute if there is one."""
    if isinstance(sensitive_features, Mapping) and len(sensitive_features) == 1:
        return next(iter(sensitive_features.values()))
    return sensitive_features


def _counts(labels, codes) -> dict[str, int]:
    return dict(zip(map(str, labels), np.bincount(codes, minlength=len(labels)).tolist(), strict=True))


def _certificates(rankers, scored: Scored, qid, statistic, confidence) -> dict[str, FairnessCertificate]:
    found = {}
    for j, name in enumerate(rankers if scored.names else []):
        others = {of: other[:, j] for of, other in zip(scored.names, scored.others, strict=True)}
        found[name] = certificate_of_scores(scored.s[:, j], others, qid=qid, statistic=statistic, confidence=confidence)
    return found


def _most_changed(scored: Scored, certificates, queries: Queries) -> np.ndarray | None:
    """Scores under the hypothetical that changes the most pairs of each query, shape (n_rows, n_rankers)."""
    if not certificates:
        return None
    most = np.empty_like(scored.s)
    for j, certificate in enumerate(certificates.values()):
        which = [0 if name is None else scored.names.index(name) for name in certificate.per_query["hypothetical"]]
        of_row = np.asarray(which)[queries.codes]
        most[:, j] = np.column_stack([other[:, j] for other in scored.others])[np.arange(len(of_row)), of_row]
    return most


def _audits(columns, s, y, most, groups, judged):
    """`audit` without groups, and its columns of groups for each attribute."""
    table = audit(columns, s, y, X_hypothetical=most, **judged)
    gaps = {}
    for name, (labels, codes) in groups.items():
        if len(labels) > 1:
            found = audit(columns, s, y, sensitive_features=pd.Categorical.from_codes(codes, labels), **judged)
            gaps[name] = found.filter(regex="^(disparity|exposure_difference)")
    if not gaps:
        return table, None
    return table, pd.concat(gaps, names=["attribute", "ranker"]).swaplevel().loc[list(columns)]


def _each_hypothetical(rankers, scored: Scored, queries: Queries) -> pd.DataFrame:
    rows = {}
    for j, ranker in enumerate(rankers):
        for name, other, changed in zip(scored.names, scored.others, scored.rows_changed, strict=True):
            s, s_other = queries.group(scored.s[:, j]), queries.group(other[:, j])
            shares = {
                key: STATISTICS[key](s, s_other, queries).mean()
                for key in ("discordance", "top_changed", "displacement")
            }
            rows[ranker, name] = {**shares, "rows_changed": changed}
    index = pd.MultiIndex.from_tuples(list(rows), names=["ranker", "hypothetical"]) if rows else None
    return pd.DataFrame(list(rows.values()), index=index)


def _worst_items(rankers, scored: Scored, queries: Queries, items, groups) -> pd.DataFrame:
    rows = []
    for worst in scored.worst:
        inside = slice(queries.offsets[worst.query], queries.offsets[worst.query + 1])
        one = Queries.single(inside.stop - inside.start)
        s, other = (
            queries.group(scores[:, worst.ranker])[inside] for scores in (scored.s, scored.others[worst.hypothetical])
        )
        rank, other_rank = (1 + ranks(values, one) for values in (s, other))
        unfairness = float(STATISTICS["discordance"](s, other, one)[0])
        numbers = queries.rows(worst.query)
        for i in np.argsort(rank):
            row = int(numbers[i])
            rows.append(
                (
                    rankers[worst.ranker],
                    queries.ids[worst.query],
                    scored.names[worst.hypothetical],
                    unfairness,
                    row,
                    items[row],
                    _group_of(groups, row),
                    int(rank[i]),
                    int(other_rank[i]),
                    int(rank[i] - other_rank[i]),
                    worst.changes[i],
                )
            )
    return pd.DataFrame(rows, columns=list(_WORST_COLUMNS))


def _group_of(groups, row: int) -> str:
    return ", ".join(str(labels[codes[row]]) for labels, codes in groups.values())


def _ndcg_of_random_order(y, queries: Queries, k: int) -> float:
    """The mean NDCG of lists in random order: each of n items has the mean of the first n discounts."""
    table = discounts(int(queries.sizes.max()), k)
    mean = np.cumsum(table)[queries.sizes - 1] / queries.sizes
    return ndcg(y, np.repeat(mean, queries.sizes), queries, table, "ndcg").mean
