"""Pictures of a page, as SVG written by hand: they follow the page's colours, need no library, and are the same each time.

Every picture is 420 units wide, so that its text is about as large as the page's on a telephone and on a desk. Each has a text
that says what it shows, and the page has each of its numbers in a table.
"""

from __future__ import annotations

import math

import numpy as np

from skfairrank.inspection._report._markup import Markup, element, join

__all__ = ["bars_of_bounds", "bars_of_groups", "moves", "tradeoff"]

_WIDTH = 420
_COLORS = 6
# The largest font of the style sheet, and how wide its letters are, in that unit: those of DejaVu Sans, wider than most.
_FONT = 14.5
_NARROW, _WIDE = set("iljtfrI.,:;'|!()[] -"), set("mwMWOQ@%&—…")


def bars_of_bounds(rows, *, description: str, unit) -> Markup:
    """A bar for each ranker: solid up to what was seen, pale up to the bound for new queries.

    Parameters
    ----------
    rows : list of (name, value, bound, text)
        Shares, and the text of both.
    description : str
        What is said to those who do not see the picture.
    unit : callable
        Turns a tick into text.
    """
    left, right, height = 2.0, _WIDTH - 12.0, 48.0
    ticks = _ticks(0.0, max(max(bound for _, _, bound, _ in rows), 0.01))
    scale = _Scale(0.0, ticks[-1], left, right)
    bottom = 6.0 + height * len(rows)
    parts = [_line(scale(t), 4.0, scale(t), bottom + 4, "grid") for t in ticks]
    parts += [_text(scale(t), bottom + 20, unit(t), _aligned(t, ticks) + " muted") for t in ticks]
    for j, (name, value, bound, text) in enumerate(rows):
        top, color = 6.0 + height * j, f"c{j % _COLORS}"
        parts += [
            _text(left, top + 13, _fitting(name, right - left - 12 - _width(text), bold=True), "bold"),
            _text(right, top + 13, text, "end"),
            _rect(left, top + 20, scale(bound) - left, 16.0, f"{color} pale"),
            _rect(left, top + 20, scale(value) - left, 16.0, color),
            _line(scale(bound), top + 17, scale(bound), top + 39, f"s{j % _COLORS}"),
        ]
    return _svg(bottom + 28, description, parts)


def tradeoff(points, *, xlabel: str, ylabel: str, description: str, unit) -> Markup:
    """Quality to the right, unfairness upwards: a point for each ranker, its error to the sides and its bound above it.

    Parameters
    ----------
    points : list of (name, x, error of x, y, top)
        `top` is the end of the line upwards, y itself for none. A nan as the error draws none.
    xlabel, ylabel, description : str
    unit : callable
        Turns a tick of y into text.
    """
    left, right, top, height = 46.0, 282.0, 30.0, max(230.0, 18.0 * len(points))
    bottom = top + height
    errors = [0.0 if math.isnan(error) else error for _, _, error, _, _ in points]
    lows, highs = zip(*((x - e, x + e) for (_, x, *_), e in zip(points, errors, strict=True)), strict=True)
    x_ticks = _ticks(min(lows), max(highs), n=4)
    y_ticks = _ticks(0.0, max(max(end for *_, end in points), 0.01))
    across, up = _Scale(x_ticks[0], x_ticks[-1], left, right), _Scale(0.0, y_ticks[-1], bottom, top)
    parts = [_text(0.0, 14.0, _fitting(ylabel, _WIDTH), "muted")]
    for t in y_ticks:
        parts += [_line(left, up(t), right, up(t), "grid"), _text(left - 6, up(t) + 4, unit(t), "end muted")]
    for t in x_ticks:
        text = f"{t:.{_decimals(x_ticks)}f}"
        parts += [
            _line(across(t), bottom, across(t), bottom + 5, "axis"),
            _text(across(t), bottom + 19, text, "middle muted"),
        ]
    parts += [_line(left, bottom, right, bottom, "axis"), _text(left, bottom + 38, xlabel, "muted")]
    places = _apart([up(y) for _, _, _, y, _ in points], gap=18.0, low=top, high=bottom)
    for j, ((name, x, _, y, end), error, place) in enumerate(zip(points, errors, places, strict=True)):
        stroke = f"s{j % _COLORS}"
        parts += [
            _line(across(x), up(y), across(x), up(end), f"{stroke} pale"),
            _line(across(x - error), up(y), across(x + error), up(y), f"{stroke} pale"),
            _line(max(across(x + error), across(x) + 6) + 3, up(y), right + 6, place, "leader"),
            element("circle", cx=across(x), cy=up(y), r=5.5, class_=f"c{j % _COLORS}"),
            _text(right + 10, place + 4, _fitting(name, _WIDTH - right - 10, bold=True), "bold"),
        ]
    return _svg(bottom + 46, description, parts)


def bars_of_groups(rankers, *, description: str) -> Markup:
    """For each ranker a bar for each group, with its standard error.

    Parameters
    ----------
    rankers : list of (name, list of (group, value, error, text))
    description : str
    """
    left, right, step = 122.0, 306.0, 23.0
    largest = max((v for _, groups in rankers for _, v, _, _ in groups if not math.isnan(v)), default=1.0)
    scale, y, parts = _Scale(0.0, 1.08 * max(largest, 1e-9), left, right), 0.0, []
    for j, (name, groups) in enumerate(rankers):
        parts.append(_text(0.0, y + 15, _fitting(name, _WIDTH, bold=True), "bold"))
        y += 22.0
        for group, value, error, text in groups:
            parts.append(_text(left - 8, y + 14, _fitting(group, left - 8), "end"))
            parts.append(_rect(left, y + 3, right - left, 14.0, "track"))
            if not math.isnan(value):
                parts.append(_rect(left, y + 3, scale(value) - left, 14.0, f"c{j % _COLORS}"))
                spread = 0.0 if math.isnan(error) else error
                ends = (max(scale(value - spread), left), min(scale(value + spread), right))
                parts.append(_line(ends[0], y + 10, ends[1], y + 10, "error"))
            parts.append(_text(right + 8, y + 14, text))
            y += step
        y += 10.0
    return _svg(y, description, parts)


def moves(items, *, left_title: str, right_title: str, description: str) -> Markup:
    """A query's order beside its hypothetical order, each item joined to itself.

    Parameters
    ----------
    items : list of (name, rank, hypothetical rank, is a mover)
        Those to be shown; both sides show all of them, in order of their ranks.
    left_title, right_title, description : str
    """
    left, right, first, step = 152.0, 268.0, 44.0, 22.0
    left_rows, right_rows = (
        {i: row for row, i in enumerate(sorted(range(len(items)), key=lambda i: items[i][side]))} for side in (1, 2)
    )
    parts = [
        _text(left - 6, 18.0, left_title, "end muted"),
        _text(right + 6, 18.0, _fitting(right_title, _WIDTH - right - 6), "muted"),
    ]
    drawn = sorted(
        range(len(items)), key=lambda i: (items[i][3], items[i][1])
    )  # movers last, so that nothing covers them
    for i in drawn:
        name, rank, other_rank, moves_most = items[i]
        y, other_y = first + step * left_rows[i], first + step * right_rows[i]
        middle = (left + right) / 2
        curve = f"M{left:g},{y:g} C{middle:g},{y:g} {middle:g},{other_y:g} {right:g},{other_y:g}"
        weight = "bold" if moves_most else None
        parts += [
            element("path", d=curve, class_="move" if moves_most else "stay"),
            _text(left - 36, y + 4, _fitting(name, left - 36, bold=moves_most), f"end {weight or ''}".strip()),
            _text(left - 6, y + 4, rank, "end muted"),
            _text(right + 6, other_y + 4, other_rank, "muted"),
            _text(right + 36, other_y + 4, _fitting(name, _WIDTH - right - 36, bold=moves_most), weight),
        ]
    return _svg(first + step * len(items), description, parts)


def _width(text: str, bold: bool = False) -> float:
    """About how wide a text is at most, in the units of a picture."""
    ems = sum(
        1.05 if c in _WIDE or ord(c) > 0x2E7F else 0.42 if c in _NARROW else 0.72 if c.isupper() else 0.65 for c in text
    )
    return _FONT * ems * (1.1 if bold else 1.0)


def _fitting(text, width: float, bold: bool = False) -> str:
    """A text that is cut, with an ellipsis, where it would not fit."""
    text = str(text)
    if _width(text, bold) <= width:
        return text
    while text and _width(text + "…", bold) > width:
        text = text[:-1]
    return text.rstrip() + "…"


class _Scale:
    """From numbers to places."""

    def __init__(self, low, high, start, end):
        self.low, self.start, self.slope = low, start, (end - start) / (high - low)

    def __call__(self, value) -> float:
        return float(self.start + self.slope * (value - self.low))


def _ticks(low: float, high: float, n: int = 5) -> list[float]:
    """At most about n round numbers whose first and last enclose what is drawn."""
    spread = max(high - low, 1e-3 * max(abs(high), 1e-9))
    power = 10.0 ** math.floor(math.log10(spread / n))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if spread / (power * factor) <= n)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if first == last:
        first, last = first - 1, last + 1
    return [step * i for i in range(first, last + 1)]


def _decimals(ticks) -> int:
    return max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9))


def _apart(places, *, gap: float, low: float, high: float) -> list[float]:
    """Places near those given, in the same order, each at least `gap` from the next; above `high`, where there is room."""
    order = np.argsort(places, kind="stable")
    moved = np.array(places, dtype=np.float64)[order]
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + gap)
    moved[-1] = min(moved[-1], high)
    for i in range(len(moved) - 2, -1, -1):
        moved[i] = min(moved[i], moved[i + 1] - gap)
    out = np.empty(len(moved))
    out[order] = np.maximum(moved, low - gap)
    return out.tolist()


def _aligned(tick, ticks) -> str:
    return "start" if tick == ticks[0] else "end" if tick == ticks[-1] else "middle"


def _svg(height: float, description: str, parts) -> Markup:
    return element(
        "svg",
        join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height:g}",
        role="img",
        aria_label=description,
    )


def _text(x: float, y: float, text, class_=None) -> Markup:
    return element("text", text, x=x, y=y, class_=class_ or None)


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _rect(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    return element("rect", x=x, y=y, width=max(width, 0.0), height=height, class_=class_)
