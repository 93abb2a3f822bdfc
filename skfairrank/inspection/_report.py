"""`audit_report`: everything that this package can say of rankers on some queries, as tables and on one page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.utils import Bunch, _safe_indexing

from skfairrank._candidates import as_frame, as_table, differs
from skfairrank._checks import as_values, check_relevance, names_queries
from skfairrank._queries import Queries
from skfairrank._sensitive import Attribute, check_group_columns, counting_unknown
from skfairrank.inspection._audit import check_reference, exposure_table, gaps_under_wrong_labels, measures, with_errors
from skfairrank.inspection._certificate import FairnessCertificate, certificate_of
from skfairrank.inspection._confidence import check_confidence
from skfairrank.inspection._leakage import leakage_of_others, quick_leakage
from skfairrank.inspection._order_changes import STATISTICS, Worst, ranks
from skfairrank.inspection._page import at_most, count, page, percent
from skfairrank.inspection._rankings import Rankings
from skfairrank.metrics._quality import ndcg
from skfairrank.policies import Deterministic
from skfairrank.utilities import discounts, warn_of_exponents

_MORE_IS_BETTER = ("ndcg", "tau", "exposure")  # of what is compared to the reference
_SHOWN = 3  # of what a hypothetical changes in an item


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
        ``rows_changed``, the share of the rows that it changes at all (nan where its scores were given).
    exposure : DataFrame or None
        `exposure_by_group`, with differences to the reference if there is one; None without sensitive features.
    wrong_labels : DataFrame or None
        `gaps_under_wrong_labels` of it.
    leakage : dict of attribute to Bunch
        How well the columns of X tell each attribute: `group_leakage` of at most 5,000 rows in three folds. Empty without X.
    differences : DataFrame
        All differences to the reference: columns ``ranker``, ``what`` (ndcg, tau, top_changed; disparity and exposure_difference
        of an ``attribute``; exposure and rank of a ``group`` of it), ``difference``, ``se``, ``p``, and ``is_better``: whether it
        is to the good of the lists, or of the group.
    gaps : DataFrame or None
        Index (ranker, attribute); ``disparity`` and ``exposure_difference`` of `audit`, with standard errors.
    facts : dict
        What was asked: ``n_queries``, ``n_clusters`` (None without clusters), ``n_relevant`` (queries with a relevant item),
        ``n_items``, ``sizes`` (of the queries), ``groups`` (how many items each group of each attribute has), ``k``,
        ``confidence``, ``reference``, and ``random_ndcg``
        (the NDCG that lists in random order have on the average).
    """

    table: pd.DataFrame
    certificates: dict[str, FairnessCertificate]
    top_certificates: dict[str, FairnessCertificate]
    hypotheticals: pd.DataFrame
    exposure: pd.DataFrame | None
    wrong_labels: pd.DataFrame | None
    leakage: dict[str, Bunch]
    differences: pd.DataFrame
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

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed, which the extra `plots` brings.
        """
        text = page(self, title=str(title), date=None if date is None else str(date), is_whole=True)
        Path(path).write_text(text, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")

    def _repr_html_(self) -> str:
        return page(self, title="Fairness report", date=None, is_whole=False)

    def __repr__(self) -> str:
        n_queries, n_items = self.facts["n_queries"], self.facts["n_items"]
        found = [
            ", ".join([count(len(self.table), "ranker"), count(n_queries, "query", "queries"), count(n_items, "item")])
        ]
        for name, certificate in self.certificates.items():
            seen, bound = percent(certificate.value), at_most(float(certificate.upper_bound or 0.0))
            found.append(f"{name}: {seen} of pairs change order, at most {bound} for new queries")
        return f"<AuditReport: {'; '.join(found)}>"


@names_queries
def audit_report(
    rankers,
    X=None,
    y=None,
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
    clusters=None,
    random_state=None,
) -> AuditReport:
    """A page for those who decide: how good rankers are, how fair, how sure that is, and what the numbers do not say.

    It puts together `audit`, `fairness_certificate` and `exposure_by_group`, and shows the queries whose order changes most
    beside their hypothetical orders. Each ranker predicts once for X and once for each set of hypothetical rows. Audit queries on
    which the rankers were not trained.

    Parameters
    ----------
    rankers : fitted estimator, scores, or dict of name to estimator or scores
        Anything with `predict` or `decision_function`: ours, boosted trees, pipelines on DataFrames, searches. Or scores, one for
        each row: an array, a column, or a table whose columns are the scores of several rankings.
    X : table, shape (n_rows, n_features), optional
        As the rankers take it. Scores need none.
    y : array-like, shape (n_rows,)
        Relevances, >= 0.
    qid : array-like, shape (n_rows,)
        The query of each row, in any order.
    hypotheticals : function, table, scores, list or dict of these, or Hypotheticals, optional
        As for `fairness_certificate`. The page shows the names: a dict gives readable ones, such as ``{"sex flipped": flip}``.
    X_hypothetical : table like X, optional
        Hypothetical rows.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), DataFrame, or dict of name to array, optional
        The groups of each row by one attribute or several. Rows without a value are the group "unknown", which is in no gap.
    item_names : array-like, shape (n_rows,), optional
        What the page calls the items. Default: the index of X, of the table or column of scores, or of y, where these are of
        pandas; else their numbers.
    reference : str, optional
        One of the rankers' names: the page also tells every difference to it that chance does not explain, for better and worse.
    k : int, default=10
        How many first places count, for NDCG, gaps in exposure and shares of the top.
    confidence : float, default=0.95
        Of each upper bound by itself.
    n_worst : int, default=3
        How many queries of each ranker are shown at most.
    clusters : array-like of shape (n_rows,), or mapping, optional
        The cluster of each row's query, such as the firm whose opening it is: standard errors and bounds rest on independent
        clusters, as in `audit` and `fairness_certificate`.
    random_state : None, int, RandomState or Generator
        For the sampled rankings of `audit`. An int gives the same page again.

    Returns
    -------
    report : AuditReport
        With ``to_html(path)`` and ``worst_queries()``; a notebook shows it. The page needs the extra `plots`.

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
    >>> ranker = LinearRegression().fit(
    ...     [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 0.2]
    ... )
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.random(400), rng.integers(0, 2, 400)])
    >>> def exchange(X):
    ...     X[:, 1] = 1 - X[:, 1]
    ...     return X
    >>> report = audit_report(
    ...     {"linear": ranker},
    ...     X,
    ...     X[:, 0],
    ...     qid=np.repeat(np.arange(100), 4),
    ...     hypotheticals={"other group": exchange},
    ... )
    >>> report
    <AuditReport: 1 ranker, 100 queries, 400 items;
    linear: 19% of pairs change order, at most 23.4% for new queries>
    >>> shown = ["qid", "row", "rank", "hypothetical_rank", "change"]
    >>> report.worst_queries()[shown].head(2)
       qid  row  rank  hypothetical_rank             change
    0   97  390     1                  3  column 1: 1 → 0
    1   97  389     2                  4  column 1: 1 → 0
    """
    k, n_worst = _whole("k", k, 1), _whole("n_worst", n_worst, 0)
    confidence, given_y, y = check_confidence(confidence), y, check_relevance(y)
    X = None if X is None else as_table(X)
    warn_of_exponents(y)
    rankings = Rankings(rankers, X, qid=qid, sensitive_features=sensitive_features, n_rows=len(y))
    check_reference(reference, rankings)
    clusters = rankings.queries.clusters(clusters)
    queries, items, groups = rankings.queries, _names_of_items(item_names, (X, rankers, given_y), len(y)), {}
    if sensitive_features is not None:
        groups = check_group_columns(sensitive_features, len(y), compared_by="this page", unknown_groups="leave_out")
    counted = {attribute: counting_unknown(labels, codes) for attribute, (labels, codes) in groups.items()}
    worst, top = (
        {name: Worst(s, queries, statistic) for name, s in rankings.scores.items()}
        for statistic in ("discordance", "top_changed")
    )

    def sets() -> Iterator:
        if hypotheticals is not None or X_hypothetical is not None:
            yield from rankings.hypotheticals(hypotheticals, X_hypothetical)

    each, is_changed = {}, None
    for given in sets():
        is_changed = rankings.changed_columns(given, is_changed)
        changed = np.nan if given.rows is None else differs(as_frame(X), as_frame(given.rows)).any(axis=1).mean()
        for name, other in rankings.under(given).items():
            turned, first = (one[name].add(given.name, other).mean() for one in (worst, top))
            moved = STATISTICS["displacement"](rankings.scores[name], other, queries).mean()
            each[name, given.name] = (turned, first, moved, changed)
    index = pd.MultiIndex.from_tuples(each, names=["ranker", "hypothetical"]) if each else None
    statistics = ["discordance", "top_changed", "displacement", "rows_changed"]
    comparable = {attribute: found for attribute, found in groups.items() if len(found[0]) > 1}
    measured = measures(rankings, y, worst, comparable, k=k, random_state=random_state)
    rest = (reference, None, clusters)
    table = with_errors({name: of_lists for name, (of_lists, _) in measured.items()}, *rest)
    gaps = {a: with_errors({name: found[a] for name, (_, found) in measured.items()}, *rest) for a in comparable}
    of_groups = {"clusters": clusters, "reference": reference}
    exposure = exposure_table(rankings, y, counted, Deterministic(), k, **of_groups) if groups else None
    by_ranker = {(name, attribute): gaps[attribute][name] for name in rankings.scores for attribute in gaps}
    of_lists = pd.DataFrame.from_dict(table, orient="index")
    of_gaps = pd.DataFrame.from_dict(by_ranker, orient="index").rename_axis(["ranker", "attribute"]) if gaps else None
    leakage = None if is_changed is None else leakage_of_others(X, is_changed)
    asked = {"confidence": confidence, "reference": reference}
    asked["n_clusters"] = None if clusters is None else int(clusters.max()) + 1
    told = (
        ()
        if X is None or len(X.shape) != 2
        else ((a, quick_leakage(X, Attribute(a, c, n))) for a, (n, c) in groups.items())
    )
    certified = (confidence, None, clusters, leakage)
    return AuditReport(
        table=of_lists,
        certificates={name: certificate_of(one, *certified) for name, one in worst.items()} if each else {},
        top_certificates={name: certificate_of(one, *certified) for name, one in top.items()} if each else {},
        hypotheticals=pd.DataFrame(list(each.values()), index=index, columns=statistics),
        exposure=exposure,
        wrong_labels=None if exposure is None else gaps_under_wrong_labels(exposure),
        leakage={attribute: one for attribute, one in told if one is not None},
        differences=_differences(of_lists, of_gaps, exposure, reference),
        gaps=of_gaps,
        facts=_facts(queries.group(y), queries, counted, k) | asked,
        _worst=_worst_items(worst, sets(), X, items, counted, n_worst),
    )


def _differences(table, gaps, exposure, reference) -> pd.DataFrame:
    """Every difference of another ranker to the reference: of lists, of gaps, and of each group's exposure and rank."""
    found = []
    for name in [] if reference is None else table.index.drop(reference):
        parts: list = [("", "", table.loc[name], ("ndcg", "tau", "top_changed"))]
        if exposure is not None:
            parts += [(*index, row, ("exposure", "rank")) for index, row in exposure.loc[name].iterrows()]
        if gaps is not None:
            parts += [(one, "", row, ("disparity", "exposure_difference")) for one, row in gaps.loc[name].iterrows()]
        for attribute, group, row, measures_of_part in parts:
            for what in measures_of_part:
                if f"{what}_difference" in row:
                    numbers = [row[f"{what}_difference{end}"] for end in ("", "_se", "_p")]
                    is_better = (numbers[0] > 0) == (what in _MORE_IS_BETTER)
                    found.append([name, what, attribute, str(group), *numbers, is_better])
    columns = ["ranker", "what", "attribute", "group", "difference", "se", "p", "is_better"]
    return pd.DataFrame(found, columns=columns)


def _facts(y, queries: Queries, groups, k: int) -> dict:
    table = discounts(int(queries.sizes.max()), k)
    in_random_order = (
        np.cumsum(table)[queries.sizes - 1] / queries.sizes
    )  # each item has the mean of the first n discounts
    return {
        "n_queries": queries.n_queries,
        "n_relevant": int((np.maximum.reduceat(y, queries.offsets[:-1]) > 0).sum()),
        "n_items": queries.n_rows,
        "sizes": queries.sizes,
        "groups": {
            name: dict(zip(map(str, labels), np.bincount(codes, minlength=len(labels)).tolist(), strict=True))
            for name, (labels, codes) in groups.items()
        },
        "k": k,
        "random_ndcg": ndcg(y, np.repeat(in_random_order, queries.sizes), queries, table, "ndcg").mean,
    }


def _whole(name: str, value, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r}: give an integer >= {least}.")
    return int(value)


def _names_of_items(item_names, tables, n_rows: int) -> list[str]:
    if item_names is not None:
        names = as_values(item_names)
        if names.shape != (n_rows,):
            raise ValueError(f"item_names has shape {names.shape} for {n_rows} rows: give one name for each row.")
        return [str(name) for name in names]
    of_pandas = (one.index for one in tables if isinstance(one, (pd.DataFrame, pd.Series)) and len(one) == n_rows)
    index = next((one for one in of_pandas if not isinstance(one, pd.RangeIndex)), range(n_rows))
    return [label if isinstance(label, str) else f"row {label}" for label in index]


def _worst_items(worst: dict[str, Worst], sets, X, items, groups, n_worst: int) -> pd.DataFrame:
    """The items of the worst queries of each ranker, the worst query first."""
    chosen = [
        (name, query)
        for name, one in worst.items()
        for query in np.argsort(-one.unfairness, kind="stable")[:n_worst].tolist()
        if one.unfairness[query] > 0
    ]
    changes: dict = {}
    for number, given in enumerate(sets if chosen else ()):
        for name, query in chosen:
            if worst[name].which[query] == number and given.rows is not None:
                changes[name, query] = _described(X, given.rows, worst[name].queries.rows(query))
    found = []
    for name, query in chosen:
        one, queries = worst[name], worst[name].queries
        inside, rows = slice(*queries.offsets[query : query + 2]), queries.rows(query)
        rank, other = (1 + ranks(scores[inside], Queries.single(len(rows))) for scores in (one.s, one.scores))
        groups_of = zip(*(np.asarray(labels, str)[codes[rows]] for labels, codes in groups.values()), strict=True)
        columns = {
            "ranker": name,
            "qid": queries.ids[query],
            "hypothetical": one.names[one.which[query]],
            "unfairness": one.unfairness[query],
            "row": rows,
            "item": [items[row] for row in rows],
            "group": [", ".join(labels) for labels in groups_of] if groups else "",
            "rank": rank,
            "hypothetical_rank": other,
            "move": rank - other,
            "change": changes.get((name, query), ""),
        }
        found.append(pd.DataFrame(columns).sort_values("rank"))
    names = "ranker qid hypothetical unfairness row item group rank hypothetical_rank move change"
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=names.split())


def _described(X, candidates, rows: np.ndarray) -> list[str]:
    """For some of the rows, what differs: "sex: female → male", or an empty text."""
    before, after = (as_frame(_safe_indexing(table, rows)) for table in (X, candidates))
    is_changed, texts = differs(before, after), []
    for i in range(len(rows)):
        columns = np.flatnonzero(is_changed.iloc[i])
        shown = [f"{before.columns[j]}: {_text(before.iat[i, j])} → {_text(after.iat[i, j])}" for j in columns[:_SHOWN]]
        texts.append("; ".join(shown + [f"and {len(columns) - _SHOWN} more"] * (len(columns) > _SHOWN)))
    return texts


def _text(value) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)
