"""The rankers side by side: a table and a picture for everybody, and all numbers for specialists."""

from __future__ import annotations

from skfairrank.inspection._report._markup import Markup, element, join
from skfairrank.inspection._report._parts import (
    attributes_of,
    figure,
    has_ratio,
    least_and_most,
    limits,
    name_of_ndcg,
    tick_percent,
)
from skfairrank.inspection._report._pictures import tradeoff
from skfairrank.inspection._report._tables import Numbers, table
from skfairrank.inspection._report._words import at_most, decimal, percent, with_error

__all__ = ["at_a_glance", "all_numbers"]


def at_a_glance(report) -> Markup:
    """The table, and the trade-off."""
    heads, rows = ["Ranker", Numbers(f"Quality: {name_of_ndcg(report)}")], []
    if report.certificates:
        heads += [
            Numbers("Pairs that change order"),
            Numbers("… in new lists at most"),
            Numbers("Lists with another first item"),
        ]
        heads += [Numbers("… of new lists at most")]
    attributes = [attribute for attribute in attributes_of(report) if has_ratio(report, attribute)]
    heads += [Numbers(f"Exposure by {attribute}: least of most") for attribute in attributes]
    for name in report.table.index:
        row = [name, with_error(*report.table.loc[name, ["ndcg", "ndcg_se"]])]
        for certificate in (report.certificates.get(name), report.top_certificates.get(name)):
            if certificate is not None:
                row += [percent(certificate.value), at_most(certificate.upper_bound)]
        row += [percent(least_and_most(report, name, attribute)[2], 0) for attribute in attributes]
        rows.append(row)
    caption = "Quality: 1 is best, ± one standard error."
    caption += " What changes: 0% is best." if report.certificates else ""
    caption += (
        " Exposure: what the least exposed group gets of what the most exposed gets; 100% is equal."
        if attributes
        else ""
    )
    return join(
        [
            element("h2", "The rankers side by side"),
            table(caption, heads, rows),
            element("div", _tradeoff(report), _limits_of_table(report), class_="side-by-side"),
        ]
    )


def _limits_of_table(report) -> Markup:
    return limits(
        "Quality is agreement with the relevances that were given, taken at their word. If they repeat an injustice, so does "
        "a ranker of high quality.",
        "No column counts by itself: a ranker that gives all items the same score never changes an order, and is useless.",
        "Two rankers whose numbers ± their errors overlap may not differ at all."
        + ("" if report.facts["reference"] is None else " Below, differences are tested list by list."),
    )


def _tradeoff(report) -> Markup | None:
    ndcg = report.table[["ndcg", "ndcg_se"]]
    if ndcg["ndcg"].isna().any():
        return None
    if report.certificates:
        ylabel, unit = "pairs that change order", tick_percent
        ends = {name: (found.value, found.upper_bound) for name, found in report.certificates.items()}
        above = f"The line upwards ends at the bound for new lists ({100 * report.facts['confidence']:.6g}% confidence)"
    else:
        attribute = next((attribute for attribute in attributes_of(report) if has_ratio(report, attribute)), None)
        if attribute is None:
            return None
        ylabel, unit = f"exposure lacked by the least exposed group, by {attribute}", tick_percent
        ends = {name: (1.0 - least_and_most(report, name, attribute)[2],) * 2 for name in report.table.index}
        above = "Upwards is what the least exposed group lacks of the exposure of the most exposed"
    points = [(name, *ndcg.loc[name], *ends[name]) for name in ndcg.index]
    said = "; ".join(f"{name}: quality {decimal(x, 3)}, {ylabel} {unit(y)}" for name, x, _, y, _ in points)
    picture = tradeoff(
        points,
        xlabel=f"quality ({name_of_ndcg(report)})",
        ylabel=ylabel,
        description=f"Trade-off of quality and fairness. {said}.",
        unit=unit,
    )
    caption = f"Better is further to the right and further down. {above}. To the sides: ± one standard error."
    return figure(picture, caption)


_AUDIT = {
    "ndcg": "NDCG",
    "stochastic_ndcg": "Stochastic NDCG",
    "tau": "Kendall's tau",
    "score_change": "Score change",
}


_GAPS = {"disparity": "Exposure per relevance, gap", "exposure_difference": "Exposure, gap"}


def all_numbers(report) -> Markup:
    """What `audit` says, for those who know its columns."""
    columns = {name: title for name, title in _AUDIT.items() if name in report.table}
    rows = [
        [name, *(with_error(row[c], row[f"{c}_se"], 4) for c in columns), *_gap_cells(report, name)]
        for name, row in report.table.iterrows()
    ]
    gaps = [Numbers(f"{title}, by {attribute}") for attribute in attributes_of(report) for title in _GAPS.values()]
    caption = f"Columns of skfairrank.inspection.audit; k = {report.facts['k']}. ± one standard error over lists."
    parts = [
        element("h2", "All numbers, for specialists"),
        table(caption, ["Ranker", *(Numbers(f"{title}") for title in columns.values()), *gaps], rows),
        element(
            "p",
            "Stochastic NDCG: expected under the Plackett-Luce policy, which draws rankings by the scores. Kendall's tau "
            "and score change (root mean square over items): under the hypothetical that changes the most pairs of each "
            "list. The first gap is the disparity of group exposure (one-sided: the group of more relevance gets more "
            "exposure per relevance), the second the difference in exposure without relevance; of several groups that of "
            "the pair that differs most. Within a list groups also differ by chance, whichever is ahead: compare gaps of "
            "rankers rather than a gap with 0.",
        ),
        _differences(report, columns),
    ]
    return join(parts)


def _gap_cells(report, name) -> list[str]:
    found = [report.gaps.loc[(name, attribute)] for attribute in attributes_of(report)]
    return [with_error(row[gap], row[f"{gap}_se"], 4) for row in found for gap in _GAPS]


def _differences(report, columns) -> Markup | None:
    reference = report.facts["reference"]
    if reference is None or len(report.table) < 2:
        return None
    tables = [(report.table, "", columns)]
    tables += [(report.gaps.xs(a, level="attribute"), f", by {a}", _GAPS) for a in attributes_of(report)]
    rows = [
        [
            name,
            title + of,
            with_error(found.loc[name, f"{c}_difference"], found.loc[name, f"{c}_difference_se"], 4),
            _p_value(found.loc[name, f"{c}_difference_p"]),
        ]
        for name in report.table.index
        if name != reference
        for found, of, titles in tables
        for c, title in titles.items()
    ]
    caption = (
        f"Differences to {reference}, list by list: mean ± standard error, and how often rankers that do not differ would "
        "differ as much by chance (p, two-sided paired t test). Among many p some are small by chance."
    )
    return table(caption, ["Ranker", "What", Numbers(f"Less that of {reference}"), Numbers("p")], rows)


def _p_value(p: float) -> str:
    return "below 0.001" if p < 0.001 else decimal(p, 3)
