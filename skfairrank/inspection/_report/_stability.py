"""What changes that should not: certificates, and each hypothetical by itself."""

from __future__ import annotations

from skfairrank.inspection._report._markup import Markup, element, join
from skfairrank.inspection._report._parts import figure, limits, tick_percent
from skfairrank.inspection._report._pictures import bars_of_bounds
from skfairrank.inspection._report._tables import Numbers, table
from skfairrank.inspection._report._words import at_most, percent

__all__ = ["certificates"]


_ROWS = 30


def certificates(report) -> Markup | None:
    """What was seen and what may be in new queries."""
    if not report.certificates:
        return None
    sure = f"{100 * report.facts['confidence']:.6g}%"
    bars = [
        (name, found.value, found.upper_bound, f"{percent(found.value)}, at most {at_most(found.upper_bound)}")
        for name, found in report.certificates.items()
    ]
    said = "; ".join(f"{name}: {text}" for name, _, _, text in bars)
    picture = bars_of_bounds(bars, description=f"Pairs that change order. {said}.", unit=tick_percent)
    caption = f"Pairs of items that change order. Solid: seen. Pale: up to where it may lie in new lists, with {sure} confidence."
    text = element(
        "p",
        "Each list was ranked as it is, and again as if its items were otherwise, in the way a hypothetical says. If "
        "that should not matter, the order should stay. Of each list the hypothetical counts that changes it most. The "
        f"bound allows for chance: it lies above the average over all lists that could have been drawn in at least {sure} "
        "of such audits, whatever the lists are like.",
    )
    return join(
        [
            element("h2", "What changes that should not"),
            element("div", element("div", text), figure(picture, caption), class_="side-by-side"),
            _table_of_hypotheticals(report),
            limits(
                "The numbers speak of these hypotheticals alone. What they do not change (a job or a district that gives "
                "the group away) may still matter to the ranker.",
                "The bound holds for lists that are drawn like these, independently of each other, and of which neither "
                "the rankers nor the hypotheticals were made. It says nothing of other people, places or times.",
                f"Each bound holds by itself with {sure} confidence; that all of them hold is less sure. Whoever picks "
                "the best of several rankers by this page needs new lists for its bound.",
                "It is an average over lists: a single list may change more. The worst of those that were seen stand below.",
            ),
        ]
    )


def _table_of_hypotheticals(report) -> Markup | None:
    each = report.hypotheticals
    n_names = each.index.unique(level="hypothetical").size
    if n_names == 1:
        return None
    per_ranker = max(1, _ROWS // len(report.table))
    shown = (
        each.sort_values("discordance", ascending=False, kind="stable")
        .groupby(level="ranker", sort=False)
        .head(per_ranker)
    )
    caption = "Each hypothetical by itself, on these lists."
    if n_names > per_ranker:
        caption = (
            f"The {per_ranker} hypotheticals of {n_names} that change most of each ranker's lists, each by itself."
        )
    rows = [
        [ranker, name, percent(row["discordance"]), percent(row["top_changed"]), percent(row["rows_changed"])]
        for name_of in report.table.index
        for (ranker, name), row in shown.loc[[name_of]].iterrows()
    ]
    heads = [
        "Ranker",
        "Hypothetical",
        Numbers("Pairs that change order"),
        Numbers("Lists with another first item"),
        Numbers("Items it changes"),
    ]
    return table(caption, heads, rows)
