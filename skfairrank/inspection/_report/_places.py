"""Which places groups get."""

from __future__ import annotations

from skfairrank.inspection._report._markup import Markup, element, join
from skfairrank.inspection._report._parts import figure, first_places, least_and_most, limits, number
from skfairrank.inspection._report._pictures import bars_of_groups
from skfairrank.inspection._report._tables import Numbers, table
from skfairrank.inspection._report._words import listed, percent, with_error

__all__ = ["groups"]


_ROWS = 30


def groups(report) -> Markup | None:
    """Exposure of groups."""
    if report.exposure is None:
        return None
    text = element(
        "p",
        "Who stands higher is seen more. Exposure counts the first place of a list as 1, the second as 0.63, the third "
        "as 0.5, and so on, ever less. A group's exposure is that of its average item.",
    )
    parts = [element("h2", "Which places groups get"), text]
    for attribute in report.exposure.index.unique(level="attribute"):
        parts.append(_attribute(report, attribute))
    parts.append(
        limits(
            "Groups that differ in exposure may also differ in relevance; the tables show both. Whether a difference is "
            "just does not follow from either, since relevances may be biased themselves.",
            "Equal exposure of groups says nothing of single items: two that are alike may still be ranked far apart.",
        )
    )
    return join(parts)


def _attribute(report, attribute) -> Markup:
    found = report.exposure.xs(attribute, level="attribute")
    rankers = [
        (
            name,
            [
                (str(group), row["exposure"], row["exposure_se"], with_error(row["exposure"], row["exposure_se"]))
                for group, row in found.loc[name].iterrows()
            ],
        )
        for name in report.table.index
    ]
    said = "; ".join(f"{name}: {listed(f'{group} {text}' for group, _, _, text in each)}" for name, each in rankers)
    picture = None
    if sum(len(each) for _, each in rankers) <= _ROWS:
        drawn = bars_of_groups(rankers, description=f"Exposure by {attribute}. {said}.")
        picture = figure(drawn, "Mean exposure of each group. The line is ± one standard error.")
    sentences = element("div", *(_sentence_on_groups(report, name, attribute) for name in report.table.index))
    head = element("h3", f"By {attribute}")
    return join([head, element("div", sentences, picture, class_="side-by-side"), _table_of_groups(report, attribute)])


def _sentence_on_groups(report, name, attribute) -> Markup | None:
    found = least_and_most(report, name, attribute)
    if found is None:
        return None
    least, most, ratio = found
    sentence = [
        element("strong", name),
        f": the group with the least exposure, {least}, gets ",
        number(percent(ratio, 0)),
        f" of what the group with the most, {most}, gets.",
    ]
    merit = report.exposure["merit"].xs((name, attribute), level=("ranker", "attribute"))
    if merit[most] > 0:
        sentence.append(f" Its mean relevance is {percent(merit[least] / merit[most], 0)} of the other's.")
    return element("p", *sentence)


def _table_of_groups(report, attribute) -> Markup:
    found, is_cut = report.exposure.xs(attribute, level="attribute"), report.facts["sizes"].max() > report.facts["k"]
    heads = ["Ranker", "Group", Numbers("Items"), Numbers("Lists it is in"), Numbers("Share of the items of a list")]
    heads += [Numbers(f"Share of {first_places(report)}")] if is_cut else []
    heads += [Numbers("Mean exposure"), Numbers("Mean relevance"), Numbers("Exposure per relevance")]
    rows = []
    for (ranker, group), row in found.iterrows():
        cells = [
            str(ranker),
            str(group),
            f"{row['n_items']:,.0f}",
            f"{row['n_queries']:,.0f}",
            percent(row["share_of_items"]),
        ]
        cells += [percent(row["share_of_top"])] if is_cut else []
        cells += [with_error(row[name], row[f"{name}_se"]) for name in ("exposure", "merit", "exposure_per_merit")]
        rows.append(cells)
    caption = (
        "Shares are averages over all lists, the last three columns over those in which the group is present (exposure per "
        "relevance: and has relevant items). ± one standard error."
    )
    return table(caption, heads, rows)
