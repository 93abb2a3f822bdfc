"""Tables of a page: a caption, heads with a scope, and a box of their own in which wide ones scroll."""

from __future__ import annotations

from skfairrank.inspection._report._markup import Markup, element, join

__all__ = ["table"]


def table(caption: str, heads, rows, *, movers=()) -> Markup:
    """A table whose first column names its rows.

    Parameters
    ----------
    caption : str
    heads : list of str
        A name that ends in "#" heads a column of numbers; the sign is left out.
    rows : list of list of str
    movers : collection of int
        Rows to be set off.
    """
    is_number = [head.endswith("#") for head in heads]
    head_cells = [
        element("th", head.removesuffix("#"), scope="col", class_="n" if number else None)
        for head, number in zip(heads, is_number, strict=True)
    ]
    body = []
    for i, (first, *cells) in enumerate(rows):
        numbers = is_number[1:]
        written = [
            element("td", cell, class_="n" if number else None) for cell, number in zip(cells, numbers, strict=True)
        ]
        class_ = "n" if is_number[0] else None
        row = join([element("th", first, scope="row", class_=class_), *written])
        body.append(element("tr", row, class_="mover" if i in movers else None))
    written_table = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", element("tr", *head_cells)),
        element("tbody", *body),
    )
    return element("div", written_table, class_="scroll", role="region", aria_label=caption, tabindex="0")
