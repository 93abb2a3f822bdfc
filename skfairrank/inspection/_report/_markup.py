"""HTML and SVG as text. What is not `Markup` is escaped, so that no name of a user can become a tag."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["Markup", "element", "join"]

_VOID = {"meta", "line", "rect", "circle", "path", "br"}


class Markup(str):
    """Text that is HTML already."""


def element(tag: str, *children, **attributes) -> Markup:
    """A tag around its children; those that are not `Markup` are escaped.

    Parameters
    ----------
    tag : str
    *children : str, Markup, number or None
        None is left out.
    **attributes
        Written in the order given, with hyphens for underscores (``class_`` is class). None is left out.

    Examples
    --------
    >>> element("p", "2 < 3, ", element("em", "always"), class_="note")
    '<p class="note">2 &lt; 3, <em>always</em></p>'
    """
    written = "".join(
        f' {name.strip("_").replace("_", "-")}="{escape(_number(value), quote=True)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = join(children)
    if tag in _VOID and not inner:
        return Markup(f"<{tag}{written}/>")
    return Markup(f"<{tag}{written}>{inner}</{tag}>")


def join(children: Iterable) -> Markup:
    """Children one after the other, escaped where they are not `Markup`."""
    parts = (child if isinstance(child, Markup) else escape(_number(child)) for child in children if child is not None)
    return Markup("".join(parts))


def _number(value) -> str:
    """Coordinates with two decimals at most, so that a page is the same wherever it is made."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
