"""The lists that change most, each beside its hypothetical order."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skfairrank.inspection._report._markup import Markup, element, join
from skfairrank.inspection._report._parts import figure
from skfairrank.inspection._report._pictures import moves
from skfairrank.inspection._report._tables import Numbers, table
from skfairrank.inspection._report._words import count, listed, percent

__all__ = ["worst"]


_PLACES = 12


_MOVERS = 3


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
        "Left the order as it is, right the hypothetical one. Thick lines are the items that move most. These lists are "
        "the worst, not typical ones: they show what happens where it happens.",
    )
    lists, attributes = found.groupby(["ranker", "qid"], sort=False), list(report.facts["groups"])
    return join([head, text, *(_worst_list(ranker, qid, items, attributes) for (ranker, qid), items in lists)])


def _worst_list(ranker, qid, items: pd.DataFrame, attributes) -> Markup:
    hypothetical, n = items["hypothetical"].iloc[0], len(items)
    named = f"List “{qid}”" if isinstance(qid, str) else f"List {qid}"
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
        description=f"{named} by {ranker}, as it is and under {hypothetical}. {said}.",
    )
    rest = "" if len(shown) == n else f" {count(n - len(shown), 'item')} further down left out."
    caption = f"{named} as it is, and under “{hypothetical}”.{rest}"
    text = (
        f"Under the hypothetical “{hypothetical}”, {percent(items['unfairness'].iloc[0])} of the {n * (n - 1) // 2:,} "
        f"pairs of items of this list change order. {_most_moves(items, [i for i in order if i in movers])}"
    )
    body = element(
        "div", figure(picture, caption), _table_of_items(items, shown, movers, attributes), class_="side-by-side"
    )
    return element("section", element("h3", f"{named}, ranked by {ranker}"), element("p", text), body, class_="list")


def _most_moves(items, movers) -> str:
    said = [
        f"{row.item} from place {row.rank} to {row.hypothetical_rank}"
        for row in items.iloc[movers].itertuples(index=False)
    ]
    return f"Most moves: {listed(said)}." if said else ""


def _table_of_items(items, shown, movers, attributes) -> Markup:
    has_group, has_change = (bool((items[name] != "").any()) for name in ("group", "change"))
    heads = [
        "Item",
        *([", ".join(attributes)] if has_group else []),
        Numbers("Place"),
        Numbers("Then"),
        Numbers("Moves"),
    ]
    heads += ["What the hypothetical changes"] if has_change else []
    rows = []
    for row in items.iloc[shown].itertuples(index=False):
        move = "stays" if row.move == 0 else f"{'up' if row.move > 0 else 'down'} {abs(row.move)}"
        cells = [row.item, *([row.group] if has_group else []), str(row.rank), str(row.hypothetical_rank), move]
        rows.append(cells + ([_unbroken(row.change)] if has_change else []))
    caption = "Items in their order as it is; bold: those that move most."
    return table(caption, heads, rows, movers={shown.index(i) for i in movers})


def _unbroken(change: str) -> str:
    """A line of a narrow cell ends between changes, rather than within one."""
    return "; ".join(part.replace(" ", "\u00a0") if len(part) < 30 else part for part in change.split("; "))
