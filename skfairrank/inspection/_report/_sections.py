"""The sections of a page. Each says in plain words what was found, shows it, and says what it does not say."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skfairrank.inspection._report._markup import Markup, element, join
from skfairrank.inspection._report._pictures import bars_of_bounds, bars_of_groups, moves, tradeoff
from skfairrank.inspection._report._tables import table
from skfairrank.inspection._report._words import at_most, count, decimal, listed, percent, with_error

__all__ = ["SECTIONS", "facts"]

# Longer lists are shown down to so many places, and longer tables down to so many rows.
_PLACES = 12
_ROWS = 30
_MOVERS = 3


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
        rows.append((f"Groups by {name}", listed(f"{label} ({count(n, 'item')})" for label, n in groups.items())))
    intro = element(
        "p",
        "A ranker puts items (people, products, pages) in order; each order is a list. This page says how good the lists of ",
        "this ranker are" if len(report.table) == 1 else "these rankers are",
        ", what would change if the items were otherwise in a way that should not matter, and which places groups get.",
        class_="lead",
    )
    return join([intro, _defined(rows, "facts")])


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
            _number(decimal(ndcg, 2)),
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
                    _number(at_most(pairs.upper_bound)),
                    f" of the pairs of items of a list do, on average, with {sure}.",
                ]
            )
        ]
    return [
        join(
            [
                f"In {lists}, ",
                _number(percent(pairs.value)),
                f" of the pairs of items change order, on average, {_condition(report)}; for new lists like these at most ",
                _number(at_most(pairs.upper_bound)),
                f", with {sure}.",
            ]
        ),
        join(
            [
                "Another item comes first in ",
                _number(percent(first.value)),
                " of the lists; in new ones at most ",
                _number(at_most(first.upper_bound)),
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
        sentences.append(join([f"Mean exposure by {attribute}: ", _number(each), " (the first place is 1)."]))
    return sentences


def at_a_glance(report) -> Markup:
    """The table, and the trade-off."""
    heads, rows = ["Ranker", f"Quality: {_ndcg(report)}#"], []
    if report.certificates:
        heads += ["Pairs that change order#", "… in new lists at most#", "Lists with another first item#"]
        heads += ["… of new lists at most#"]
    attributes = [attribute for attribute in _attributes(report) if _has_ratio(report, attribute)]
    heads += [f"Least exposed group by {attribute}, of the most exposed#" for attribute in attributes]
    for name in report.table.index:
        row = [name, with_error(*report.table.loc[name, ["ndcg", "ndcg_se"]])]
        for certificate in (report.certificates.get(name), report.top_certificates.get(name)):
            if certificate is not None:
                row += [percent(certificate.value), at_most(certificate.upper_bound)]
        row += [percent(_least_and_most(report, name, attribute)[2], 0) for attribute in attributes]
        rows.append(row)
    caption = "Quality: 1 is best, ± one standard error."
    caption += " What changes: 0% is best." if report.certificates else ""
    caption += " Exposure of groups: at 100% they are equal." if attributes else ""
    return join(
        [
            element("h2", "The rankers side by side"),
            table(caption, heads, rows),
            element("div", _tradeoff(report), _limits_of_table(report), class_="side-by-side"),
        ]
    )


def _limits_of_table(report) -> Markup:
    return _limits(
        "Quality is agreement with the relevances that were given, taken at their word. If they repeat an injustice, so does "
        "a ranker of high quality.",
        "No column counts by itself: a ranker that gives all items the same score never changes an order, and is useless.",
        "Two rankers whose numbers ± their errors overlap may not differ at all."
        + ("" if report.facts["reference"] is None else " Below, differences are tested list by list."),
    )


def _ndcg(report) -> str:
    return f"NDCG of {_first_places(report)}"


def _first_places(report) -> str:
    k = report.facts["k"]
    return (
        "all places" if report.facts["sizes"].max() <= k else "the first place" if k == 1 else f"the first {k} places"
    )


def _attributes(report) -> list[str]:
    return [] if report.gaps is None else list(report.gaps.index.unique(level="attribute"))


def _tradeoff(report) -> Markup | None:
    ndcg = report.table[["ndcg", "ndcg_se"]]
    if ndcg["ndcg"].isna().any():
        return None
    if report.certificates:
        ylabel, unit = "pairs that change order", _tick_percent
        ends = {name: (found.value, found.upper_bound) for name, found in report.certificates.items()}
        above = f"The line upwards ends at the bound for new lists ({100 * report.facts['confidence']:.6g}% confidence)"
    else:
        attribute = next((attribute for attribute in _attributes(report) if _has_ratio(report, attribute)), None)
        if attribute is None:
            return None
        ylabel, unit = f"exposure lacked by the least exposed group, by {attribute}", _tick_percent
        ends = {name: (1.0 - _least_and_most(report, name, attribute)[2],) * 2 for name in report.table.index}
        above = "Upwards is what the least exposed group lacks of the exposure of the most exposed"
    points = [(name, *ndcg.loc[name], *ends[name]) for name in ndcg.index]
    said = "; ".join(f"{name}: quality {decimal(x, 3)}, {ylabel} {unit(y)}" for name, x, _, y, _ in points)
    picture = tradeoff(
        points,
        xlabel=f"quality ({_ndcg(report)})",
        ylabel=ylabel,
        description=f"Trade-off of quality and fairness. {said}.",
        unit=unit,
    )
    caption = f"Quality and fairness. Better is further to the right and further down. {above}. To the sides: ± one standard error."
    return _figure(picture, caption)


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
    picture = bars_of_bounds(bars, description=f"Pairs that change order. {said}.", unit=_tick_percent)
    caption = f"Pairs of items that change order. Solid: seen. Pale: up to where it may lie in new lists, with {sure} confidence."
    text = element(
        "p",
        "Each list was ranked twice: as it is, and as if its items were otherwise, in the way a hypothetical says. If that should "
        "not matter, the order should stay. Of each list the hypothetical counts that changes it most. The bound allows for chance: "
        f"it lies above the average over all lists that could have been drawn in at least {sure} of such audits, whatever the lists "
        "are like.",
    )
    return join(
        [
            element("h2", "What changes that should not"),
            element("div", element("div", text), _figure(picture, caption), class_="side-by-side"),
            _table_of_hypotheticals(report),
            _limits(
                "The numbers speak of these hypotheticals alone. What they do not change (a job or a district that gives the group "
                "away) may still matter to the ranker.",
                "The bound holds for lists that are drawn like these, independently of each other, and of which neither the rankers "
                "nor the hypotheticals were made. It says nothing of other people, places or times.",
                f"Each bound holds by itself with {sure} confidence; that all of them hold is less sure. Whoever picks the best of "
                "several rankers by this page needs new lists for its bound.",
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
        "Pairs that change order#",
        "Lists with another first item#",
        "Items it changes#",
    ]
    return table(caption, heads, rows)


def groups(report) -> Markup | None:
    """Exposure of groups."""
    if report.exposure is None:
        return None
    text = element(
        "p",
        "Who stands higher is seen more. Exposure counts the first place of a list as 1, the second as 0.63, the third as 0.5, and so "
        "on, ever less. A group's exposure is that of its average item.",
    )
    parts = [element("h2", "Which places groups get"), text]
    for attribute in report.exposure.index.unique(level="attribute"):
        parts.append(_attribute(report, attribute))
    parts.append(
        _limits(
            "Groups that differ in exposure may also differ in relevance; the tables show both. Whether a difference is just does not "
            "follow from either, since relevances may be biased themselves.",
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
        picture = _figure(drawn, "Mean exposure of each group. The line is ± one standard error.")
    sentences = element("div", *(_sentence_on_groups(report, name, attribute) for name in report.table.index))
    head = element("h3", f"By {attribute}")
    return join([head, element("div", sentences, picture, class_="side-by-side"), _table_of_groups(report, attribute)])


def _has_ratio(report, attribute) -> bool:
    return all(_least_and_most(report, name, attribute) is not None for name in report.table.index)


def _least_and_most(report, name, attribute):
    """The groups with the least and the most exposure, and the ratio; None where there are no two."""
    exposure = report.exposure["exposure"].xs((name, attribute), level=("ranker", "attribute")).dropna()
    if len(exposure) < 2 or exposure.max() <= 0:
        return None
    least, most = exposure.index[exposure.argmin()], exposure.index[exposure.argmax()]
    return least, most, float(exposure.min() / exposure.max())


def _sentence_on_groups(report, name, attribute) -> Markup | None:
    found = _least_and_most(report, name, attribute)
    if found is None:
        return None
    least, most, ratio = found
    sentence = [
        element("strong", name),
        f": the group with the least exposure, {least}, gets ",
        _number(percent(ratio, 0)),
        f" of what the group with the most, {most}, gets.",
    ]
    merit = report.exposure["merit"].xs((name, attribute), level=("ranker", "attribute"))
    if merit[most] > 0:
        sentence.append(f" Its mean relevance is {percent(merit[least] / merit[most], 0)} of the other's.")
    return element("p", *sentence)


def _table_of_groups(report, attribute) -> Markup:
    found, is_cut = report.exposure.xs(attribute, level="attribute"), report.facts["sizes"].max() > report.facts["k"]
    heads = ["Ranker", "Group", "Items#", "Lists it is in#", "Share of the items of a list#"]
    heads += [f"Share of {_first_places(report)}#"] if is_cut else []
    heads += ["Mean exposure#", "Mean relevance#", "Exposure per relevance#"]
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
    caption = "Averages over the lists in which the group is present (exposure per relevance: and relevant). ± one standard error."
    return table(caption, heads, rows)


def worst(report) -> Markup | None:
    """The worst queries, each order beside its hypothetical order."""
    if not report.certificates:
        return None
    found = report.worst_queries()
    head = element("h2", "The lists that change most")
    if found.empty:
        return join([head, element("p", "Under no hypothetical does any list change its order.")])
    text = element(
        "p",
        "Left the order as it is, right the hypothetical one. Thick lines are the items that move most. These lists are the worst, not "
        "typical ones: they show what happens where it happens.",
    )
    lists, attributes = found.groupby(["ranker", "qid"], sort=False), list(report.facts["groups"])
    return join([head, text, *(_worst_list(ranker, qid, items, attributes) for (ranker, qid), items in lists)])


def _worst_list(ranker, qid, items: pd.DataFrame, attributes) -> Markup:
    hypothetical, n = items["hypothetical"].iloc[0], len(items)
    best_place = np.minimum(items["rank"], items["hypothetical_rank"])
    order = np.lexsort((best_place, -items["move"].abs()))
    movers = {int(i) for i in order[:_MOVERS] if items["move"].iloc[i] != 0}
    shown = [i for i in range(n) if best_place.iloc[i] <= _PLACES or i in movers]
    places = [(row.item, row.rank, row.hypothetical_rank) for row in items.itertuples(index=False)]
    said = "; ".join(f"{item}: place {rank}, then {other}" for item, rank, other in (places[i] for i in shown))
    picture = moves(
        [(*places[i], i in movers) for i in shown],
        left_title="as it is",
        right_title=hypothetical,
        description=f"List {qid} by {ranker}, as it is and under {hypothetical}. {said}.",
    )
    rest = "" if len(shown) == n else f" {count(n - len(shown), 'item')} further down left out."
    caption = f"List {qid} as it is, and under “{hypothetical}”.{rest}"
    text = (
        f"Under the hypothetical “{hypothetical}”, {percent(items['unfairness'].iloc[0])} of the {n * (n - 1) // 2:,} pairs of items of "
        f"this list change order. {_most_moves(items, [i for i in order if i in movers])}"
    )
    body = element(
        "div", _figure(picture, caption), _table_of_items(items, shown, movers, attributes), class_="side-by-side"
    )
    return element("section", element("h3", f"List {qid}, ranked by {ranker}"), element("p", text), body, class_="list")


def _most_moves(items, movers) -> str:
    said = [
        f"{row.item} from place {row.rank} to {row.hypothetical_rank}"
        for row in items.iloc[movers].itertuples(index=False)
    ]
    return f"Most moves: {listed(said)}." if said else ""


def _table_of_items(items, shown, movers, attributes) -> Markup:
    has_group, has_change = (bool((items[name] != "").any()) for name in ("group", "change"))
    heads = ["Item", *([", ".join(attributes)] if has_group else []), "Place#", "Then#", "Moves#"]
    heads += ["What the hypothetical changes"] if has_change else []
    rows = []
    for row in items.iloc[shown].itertuples(index=False):
        move = "stays" if row.move == 0 else f"{'up' if row.move > 0 else 'down'} {abs(row.move)}"
        cells = [row.item, *([row.group] if has_group else []), str(row.rank), str(row.hypothetical_rank), move]
        rows.append(cells + ([row.change] if has_change else []))
    caption = "Items in their order as it is; bold: those that move most."
    return table(caption, heads, rows, movers={shown.index(i) for i in movers})


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
    gaps = [f"{title}, by {attribute}#" for attribute in _attributes(report) for title in _GAPS.values()]
    caption = f"Columns of skfairrank.inspection.audit; k = {report.facts['k']}. ± one standard error over lists."
    parts = [
        element("h2", "All numbers, for specialists"),
        table(caption, ["Ranker", *(f"{title}#" for title in columns.values()), *gaps], rows),
        element(
            "p",
            "Stochastic NDCG: expected under the Plackett-Luce policy, which draws rankings by the scores. Kendall's tau and score change "
            "(root mean square over items): under the hypothetical that changes the most pairs of each list. The first gap is the "
            "disparity of group exposure (one-sided: the group of more relevance gets more exposure per relevance), the second the "
            "difference in exposure without relevance; of several groups that of the pair that differs most. Within a list groups "
            "also differ by chance, whichever is ahead: compare gaps of rankers rather than a gap with 0.",
        ),
        _differences(report, columns),
    ]
    return join(parts)


def _gap_cells(report, name) -> list[str]:
    return [
        with_error(*report.gaps.loc[(name, attribute), [gap, f"{gap}_se"]], 4)
        for attribute in _attributes(report)
        for gap in _GAPS
    ]


def _differences(report, columns) -> Markup | None:
    reference = report.facts["reference"]
    if reference is None or len(report.table) < 2:
        return None
    tables = [(report.table, "", columns)]
    tables += [(report.gaps.xs(a, level="attribute"), f", by {a}", _GAPS) for a in _attributes(report)]
    rows = [
        [
            name,
            title + of,
            with_error(found.loc[name, f"{c}_difference"], found.loc[name, f"{c}_difference_se"], 4),
            decimal(found.loc[name, f"{c}_difference_p"], 3),
        ]
        for name in report.table.index
        if name != reference
        for found, of, titles in tables
        for c, title in titles.items()
    ]
    caption = (
        f"Differences to {reference}, list by list: mean ± standard error, and how often rankers that do not differ would differ as much "
        "by chance (p, two-sided paired t test). Among many p some are small by chance."
    )
    return table(caption, ["Ranker", "What", f"Less that of {reference}#", "p#"], rows)


def words(report) -> Markup:
    """What the words mean."""
    said = {
        "List, item": "One query: items that are ranked against each other, such as the applicants for one job.",
        "Relevance": "How much an item deserves a high place, as given by whoever made this page: from clicks, judgements or outcomes.",
        f"Quality ({_ndcg(report)})": "How far up the relevant items stand. 1 is the best possible order, and higher places count more.",
    }
    if report.certificates:
        said |= {
            "Hypothetical": "The same items, otherwise in a way that should not matter: as if each were of another sex, say.",
            "Pairs that change order": "Take any two items of a list. They change order if the one that was ahead is behind under the "
            "hypothetical; if they are tied in one of the two orders, they count half. 0%: the same order. 100%: the reverse order.",
            "Confidence": "How sure a bound is: of 100 audits with bounds of 95% confidence, on new lists each time, about 5 bounds at most "
            "are too low.",
        }
    if report.exposure is not None:
        said["Exposure"] = (
            "How much an item is seen at its place: 1 for the first place, 0.63 for the second, 0.5 for the third."
        )
    said["±, standard error"] = "How far a mean would typically move if other lists had been drawn."
    return join([element("h2", "Words used here"), _defined(said.items(), "words")])


def _defined(pairs, class_: str) -> Markup:
    return element(
        "dl", *(part for name, text in pairs for part in (element("dt", name), element("dd", text))), class_=class_
    )


def _figure(picture: Markup, caption: str) -> Markup:
    return element("figure", picture, element("figcaption", caption))


def _limits(*sentences: str) -> Markup:
    first = element("p", element("strong", "What this does not say."))
    return element("div", first, *(element("p", sentence) for sentence in sentences), class_="limits")


def _number(text: str) -> Markup:
    return element("span", text, class_="number")


def _tick_percent(share: float) -> str:
    return f"{100 * share:.3g}%"


SECTIONS = (in_short, at_a_glance, certificates, groups, worst, all_numbers, words)
