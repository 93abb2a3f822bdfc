"""Tables of a page: a caption, heads with a scope, and a box of their own in which wide ones scroll."""

from __future__ import annotations

from skfairrank.inspection._report._markup import Markup, element, join

__all__ = ["Numbers", "table"]


class Numbers(str):
    """The head of a column of numbers."""


def table(caption: str, heads, rows, *, movers=()) -> Markup:
    """A table whose first column names its rows.

    Parameters
    ----------
    caption : str
    heads : list of str
        Those of columns of numbers are `Numbers`.
    rows : list of list of str
    movers : collection of int
        Rows to be set off.
    """
    class_of = ["n" if isinstance(head, Numbers) else None for head in heads]
    head_cells = [element("th", head, scope="col", class_=c) for head, c in zip(heads, class_of, strict=True)]
    body = []
    for i, (first, *cells) in enumerate(rows):
        written = [element("td", cell, class_=c) for cell, c in zip(cells, class_of[1:], strict=True)]
        row = join([element("th", first, scope="row"), *written])
        body.append(element("tr", row, class_="mover" if i in movers else None))
    written_table = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", element("tr", *head_cells)),
        element("tbody", *body),
    )
    return element("div", written_table, class_="scroll", role="region", aria_label=caption, tabindex="0")
