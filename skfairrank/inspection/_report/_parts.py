"""What several sections share: figures, limits, and what they ask of a report."""

from __future__ import annotations

from skfairrank.inspection._report._markup import Markup, element

__all__ = [
    "figure",
    "limits",
    "number",
    "defined",
    "tick_percent",
    "name_of_ndcg",
    "first_places",
    "attributes_of",
    "has_ratio",
    "least_and_most",
]


def figure(picture: Markup, caption: str) -> Markup:
    """A picture and what it shows."""
    return element("figure", picture, element("figcaption", caption))


def limits(*sentences: str) -> Markup:
    """What the numbers of a section do not say."""
    first = element("p", element("strong", "What this does not say."))
    return element("div", first, *(element("p", sentence) for sentence in sentences), class_="limits")


def number(text: str) -> Markup:
    """A number that is set off in a sentence."""
    return element("span", text, class_="number")


def defined(pairs, class_: str) -> Markup:
    """Names, and what stands beside each."""
    return element(
        "dl", *(part for name, text in pairs for part in (element("dt", name), element("dd", text))), class_=class_
    )


def tick_percent(share: float) -> str:
    """A round share, on an axis."""
    return f"{100 * share:.3g}%"


def name_of_ndcg(report) -> str:
    return f"NDCG of {first_places(report)}"


def first_places(report) -> str:
    """The places that count for NDCG and for the share of the top."""
    k = report.facts["k"]
    return (
        "all places" if report.facts["sizes"].max() <= k else "the first place" if k == 1 else f"the first {k} places"
    )


def attributes_of(report) -> list[str]:
    """Attributes with at least two groups."""
    return [] if report.gaps is None else list(report.gaps.index.unique(level="attribute"))


def has_ratio(report, attribute) -> bool:
    """Whether exposures of the groups can be compared under each ranker."""
    return all(least_and_most(report, name, attribute) is not None for name in report.table.index)


def least_and_most(report, name, attribute):
    """The groups with the least and the most exposure, and the ratio; None where there are no two."""
    exposure = report.exposure["exposure"].xs((name, attribute), level=("ranker", "attribute")).dropna()
    if len(exposure) < 2 or exposure.max() <= 0:
        return None
    least, most = exposure.index[exposure.argmin()], exposure.index[exposure.argmax()]
    return least, most, float(exposure.min() / exposure.max())
