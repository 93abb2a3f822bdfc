"""The page: its sections in the order in which one reads them."""

from __future__ import annotations

from skfairrank.inspection._report._comparison import all_numbers, at_a_glance
from skfairrank.inspection._report._markup import Markup, element, join
from skfairrank.inspection._report._places import groups
from skfairrank.inspection._report._stability import certificates
from skfairrank.inspection._report._style import OF_DOCUMENT, OF_FRAGMENT
from skfairrank.inspection._report._summary import facts, in_short, words
from skfairrank.inspection._report._worst_lists import worst

__all__ = ["document", "fragment"]

SECTIONS = (in_short, at_a_glance, certificates, groups, worst, all_numbers, words)


def fragment(report, *, title: str = "Fairness report", date: str | None = None) -> Markup:
    """What a notebook shows: the page without what surrounds it.

    Parameters
    ----------
    report : AuditReport
    title : str
    date : str, optional
    """
    head = [element("h1", title)]
    if date is not None:
        head.append(element("p", date, class_="lead"))
    body = [section(report) for section in SECTIONS]
    return element(
        "div",
        element("style", Markup(OF_FRAGMENT)),
        element("header", *head, facts(report)),
        element("main", join(part for part in body if part is not None)),
        _footer(),
        class_="skfr",
        lang="en",
    )


def document(report, *, title: str, date: str | None) -> str:
    """The whole page, in one file."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(OF_DOCUMENT)),
    )
    body = element("body", fragment(report, title=title, date=date))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _footer() -> Markup:
    import skfairrank

    return element(
        "footer",
        element(
            "p",
            f"Made by skfairrank {skfairrank.__version__} (inspection.audit_report). This page needs no network and no scripts. "
            "It measures; whether a ranking is just, or lawful, it cannot say.",
        ),
    )
