"""What was asked, what was found in short, and what the words mean."""

from __future__ import annotations

import numpy as np

from skfairrank.inspection._report._markup import Markup, element, join
from skfairrank.inspection._report._parts import defined, name_of_ndcg, number
from skfairrank.inspection._report._words import at_most, count, decimal, listed, percent

__all__ = ["facts", "in_short", "words"]


def facts(report) -> Markup:
    """What was asked."""
    found, sizes = report.facts, report.facts["sizes"]
    size = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
    rows = [
        ("Rankers", listed(report.table.index)),
        ("Looked at", f"{count(found['n_queries'], 'list')} of {size} items, {count(found['n_items'], 'item')} in all"),
    ]
    if report.certificates:
        rows.append(("Hypotheticals", _hypotheticals(report)))
    for name, groups in found["groups"].items():
        rows.append(
            (
                "Groups" if name == "group" else f"Groups by {name}",
                listed(f"{label} ({count(n, 'item')})" for label, n in groups.items()),
            )
        )
    intro = element(
        "p",
        "A ranker puts items (people, products, pages) in order; each order is a list. This page says how good the lists of ",
        "this ranker are" if len(report.table) == 1 else "these rankers are",
        ", what would change if the items were otherwise in a way that should not matter, and which places groups get.",
        class_="lead",
    )
    return join([intro, defined(rows, "facts")])


def _hypotheticals(report) -> str:
    """The names, each with the share of the rows that it changes."""
    changed = report.hypotheticals["rows_changed"].groupby(level="hypothetical", sort=False).first()
    shown = [f"{name} (changes {percent(share)} of the items)" for name, share in changed.iloc[:8].items()]
    return listed([*shown, f"{len(changed) - 8} more"] if len(changed) > 8 else shown)


def in_short(report) -> Markup:
    """One card for each ranker."""
    cards = [
        element(
            "li",
            element("h3", name),
            element("p", _quality(report, name)),
            *(element("p", sentence) for sentence in _stability(report, name)),
            *(element("p", sentence) for sentence in _groups(report, name)),
        )
        for name in report.table.index
    ]
    nothing = None
    if not report.certificates:
        nothing = element(
            "p",
            "No hypotheticals were given: this page does not say whether the order depends on what should not matter.",
        )
    return join([element("h2", "In short"), element("ul", *cards, class_="findings"), nothing])


def _quality(report, name) -> Markup:
    ndcg, found = report.table.loc[name, "ndcg"], report.facts
    if np.isnan(ndcg):
        return join(["Quality cannot be measured: no list has a relevant item."])
    only = ""
    if found["n_relevant"] < found["n_queries"]:
        only = f" (the {count(found['n_relevant'], 'list')} with a relevant item)"
    return join(
        [
            "Quality, from 0 to 1",
            only,
            ": ",
            number(decimal(ndcg, 2)),
            f". The best possible order has 1, a random order {decimal(found['random_ndcg'], 2)} on average.",
        ]
    )


def _stability(report, name) -> list[Markup]:
    if name not in report.certificates:
        return []
    pairs, first = report.certificates[name], report.top_certificates[name]
    lists, sure = f"{count(pairs.n_queries, 'list')}", f"{100 * pairs.confidence:.6g}% confidence"
    if pairs.value == 0:
        return [
            join(
                [
                    f"In {lists}, no two items change order {_condition(report)}. Of new lists like these, at most ",
                    number(at_most(pairs.upper_bound)),
                    f" of the pairs of items of a list do, on average, with {sure}.",
                ]
            )
        ]
    return [
        join(
            [
                f"In {lists}, ",
                number(percent(pairs.value)),
                f" of the pairs of items change order, on average, {_condition(report)}; for new lists like these at most ",
                number(at_most(pairs.upper_bound)),
                f", with {sure}.",
            ]
        ),
        join(
            [
                "Another item comes first in ",
                number(percent(first.value)),
                " of the lists; in new ones at most ",
                number(at_most(first.upper_bound)),
                f", with {sure}.",
            ]
        ),
    ]


def _condition(report) -> str:
    names = report.hypotheticals.index.unique(level="hypothetical")
    if len(names) == 1:
        return f"under the hypothetical “{names[0]}”"
    return f"under that of the {len(names)} hypotheticals which changes the list most"


def _groups(report, name) -> list[Markup]:
    if report.exposure is None:
        return []
    sentences = []
    for attribute, of_attribute in report.exposure.loc[name].groupby(level="attribute", sort=False):
        exposure = of_attribute.droplevel("attribute")["exposure"].dropna()
        if len(exposure) < 2:
            continue
        if len(exposure) > 4:
            exposure = exposure.loc[[exposure.idxmax(), exposure.idxmin()]]
        each = listed(f"{group} {decimal(value, 2)}" for group, value in exposure.items())
        sentences.append(join([f"Mean exposure by {attribute}: ", number(each), " (the first place is 1)."]))
    return sentences


def words(report) -> Markup:
    """What the words mean."""
    said = {
        "List, item": "One query: items that are ranked against each other, such as the applicants for one job.",
        "Relevance": "How much an item deserves a high place, as given by whoever made this page: from clicks, judgements "
        "or outcomes.",
        f"Quality ({name_of_ndcg(report)})": "How far up the relevant items stand. Higher places count more, and 1 is "
        "the best possible order.",
    }
    if report.certificates:
        said |= {
            "Hypothetical": "The same items, otherwise in a way that should not matter: as if each were of another sex, say.",
            "Pairs that change order": "Take any two items of a list. They change order if the one that was ahead is "
            "behind under the hypothetical; if they are tied in one of the two orders, they count half. 0%: the same order. "
            "100%: the reverse order.",
            "Confidence": "How sure a bound is: of 100 audits with bounds of 95% confidence, on new lists each time, "
            "about 5 bounds at most are too low.",
        }
    if report.exposure is not None:
        said["Exposure"] = (
            "How much an item is seen at its place: 1 for the first place, 0.63 for the second, 0.5 for the third."
        )
    said["±, standard error"] = "How far a mean would typically move if other lists had been drawn."
    return join([element("h2", "Words used here"), defined(said.items(), "words")])
