"""The page of an `AuditReport`: tables by pandas, pictures by the Displays, sentences in ``report.html.jinja``."""

from __future__ import annotations

import io
import math
import re
import warnings
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

_MISSING = "–"
_ROWS = 30  # of a table of hypotheticals
_PLACES, _MOVERS = 12, 3  # of a list: the first places are shown, and the items that move most
_AUDIT = {"ndcg": "NDCG", "stochastic_ndcg": "Stochastic NDCG", "tau": "Kendall's tau", "score_change": "Score change"}
_GAPS = {"disparity": "Exposure per relevance, gap", "exposure_difference": "Exposure, gap"}


def page(report, *, title: str, date: str | None, is_whole: bool) -> str:
    """The page as a file, or what a notebook shows: the page without what surrounds it.

    Raises
    ------
    ImportError
        If jinja2 or matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ImportError(
            f"The page of an audit report needs {error.name}, which is not installed: pip install jinja2 matplotlib (or, in a "
            'clone of skfairrank, pip install ".[plots]"). The tables, such as report.table and report.exposure, need neither.'
        ) from error
    from skfairrank import __version__

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters |= {one.__name__: one for one in (percent, at_most, decimal, count, listed, table)}
    template = environment.from_string(files(__package__).joinpath("report.html.jinja").read_text(encoding="utf-8"))
    each = report.hypotheticals
    return template.render(
        title=title,
        date=date,
        is_whole=is_whole,
        version=__version__,
        report=report,
        facts=report.facts,
        rankers=list(report.table.index),
        ndcg=report.table["ndcg"].to_dict(),
        hypotheticals=[] if each.empty else list(each["rows_changed"].groupby(level=1, sort=False).first().items()),
        groups=_groups(report),
        tables=_tables(report),
        pictures=_pictures(report),
        changes=_changes(report),
        n_tested=len(report.differences) // max(1, len(report.table) - 1),
        leaks=_leaks(report),
        lists=[_worst_list(report, ranker, qid, items) for (ranker, qid), items in _lists(report)],
    )


# Words


def percent(share: float, digits: int = 1) -> str:
    """A share in per cent, by default with one decimal.

    >>> percent(0.0342), percent(0.0), percent(0.0001), percent(0.951, 0)
    ('3.4%', '0%', 'less than 0.1%', '95%')
    """
    if math.isnan(share):
        return _MISSING
    if 0.0 < share < 0.001:
        return "less than 0.1%"
    return f"{100 * share:.{digits}f}%".replace(".0%", "%")


def at_most(bound: float) -> str:
    """An upper bound in per cent, rounded up, so that it remains one.

    >>> at_most(0.05201), at_most(0.052)
    ('5.3%', '5.2%')
    """
    return f"{math.ceil(1000 * bound - 1e-9) / 10:.1f}%".replace(".0%", "%")


def decimal(value: float, digits: int = 3) -> str:
    """A number, or a dash where there is none."""
    return _MISSING if math.isnan(value) else f"{value:.{digits}f}"


def count(n: int, one: str, several: str | None = None) -> str:
    """A number of things.

    >>> count(1, "list"), count(2500, "list")
    ('1 list', '2,500 lists')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def listed(names) -> str:
    """Names as a sentence has them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = map(str, names)
    return f"{', '.join(first)} and {last}" if first else last


# What the sentences need


def _groups(report) -> dict:
    """Of each attribute by each ranker: mean exposures, and the least and most exposed group with the ratio of their numbers."""
    if report.exposure is None:
        return {}
    found: dict = {}
    for (attribute, ranker), rows in report.exposure.groupby(level=["attribute", "ranker"], sort=False):
        rows = rows.droplevel(["ranker", "attribute"]).drop("unknown", errors="ignore")  # which is in no comparison
        exposure, merit = rows["exposure"].dropna(), rows["merit"]
        shown = exposure if len(exposure) <= 4 else exposure.loc[[exposure.idxmax(), exposure.idxmin()]]
        of_ranker = {"exposure": [f"{group} {decimal(value, 2)}" for group, value in shown.items()], "ratio": math.nan}
        if len(exposure) > 1 and exposure.max() > 0:
            least, most = exposure.idxmin(), exposure.idxmax()
            of_ranker |= {"least": least, "most": most, "ratio": exposure.min() / exposure.max()}
            of_ranker["merit"] = merit[least] / merit[most] if merit[most] > 0 else math.nan
        found.setdefault(attribute, {})[ranker] = of_ranker
    return found


_WHAT = {"ndcg": "quality", "tau": "Kendall's tau under the hypothetical", "exposure": "exposure", "rank": "mean place"}
_WHAT |= {"top_changed": "share of lists with another first item"}
_WHAT |= {"disparity": "gap in exposure per relevance", "exposure_difference": "gap in exposure"}


def _changed(row, n_attributes: int = 2) -> str:
    """What differs, of whom: "mean place of c (by origin)", without the attribute where there is but one."""
    whose = f" of {row.group}" if row.group else ""
    return f"{_WHAT[row.what]}{whose}" + (f" (by {row.attribute})" if row.attribute and n_attributes > 1 else "")


def _changes(report) -> dict:
    """Of each ranker the differences to the reference that chance does not explain, for worse and for better, as texts."""
    found: dict = {name: {"worse": [], "better": []} for name in report.table.index}
    rows = report.differences
    for row in rows[rows["p"] < 1.0 - report.facts["confidence"]].sort_values("p", kind="stable").itertuples():
        text = f"{_changed(row, len(report.facts['groups']))} "
        if row.what == "rank":
            text += f"{abs(row.difference):.2f} further {'down' if row.difference > 0 else 'up'}"
        else:
            text += f"{row.difference:+.3f}".replace("-", "\u2212")
        found[row.ranker]["better" if row.is_better else "worse"].append(text)
    return found


def _leaks(report) -> dict:
    """What the hypotheticals leave out, as a sentence, and whether it matters; a table of what tells each attribute."""
    from skfairrank.inspection._leakage import leakage_sentence, tells

    of_certificate = next((one.leakage for one in report.certificates.values()), None)
    rows = [
        [name, decimal(found.auc, 2), f"{best.iloc[0]:.2f} ({best.index[0]})", "yes" if found.is_joint else "no"]
        for name, found in report.leakage.items()
        for best in [found.auc_of_columns.nlargest(1)]
    ]
    names = ["Groups by", "All columns together", "Best column alone", "Much more together"]
    sentence = "" if of_certificate is None else leakage_sentence(of_certificate)
    return {"sentence": sentence, "tells": tells(of_certificate), "table": pd.DataFrame(rows, columns=names)}


def _lists(report):
    return report.worst_queries().groupby(["ranker", "qid"], sort=False)


def _worst_list(report, ranker, qid, items: pd.DataFrame) -> dict:
    best = np.minimum(items["rank"], items["hypothetical_rank"])
    movers = items.iloc[np.lexsort((best, -items["move"].abs()))[:_MOVERS]].query("move != 0")
    shown = items[(best <= _PLACES) | items.index.isin(movers.index)]
    change = shown["change"].map(lambda text: "; ".join(p.replace(" ", "\u00a0") for p in text.split("; ")))
    moves = shown["move"].map(lambda n: "stays" if n == 0 else f"{'up' if n > 0 else 'down'} {abs(n)}")
    columns = {"Item": shown["item"], ", ".join(report.facts["groups"]): shown["group"], "Place": shown["rank"]}
    columns |= {"Then": shown["hypothetical_rank"], "Moves": moves, "What the hypothetical changes": change}
    table = pd.DataFrame({name: values for name, values in columns.items() if (values != "").any()})
    hypothetical = items["hypothetical"].iloc[0]
    return {
        "name": f"List “{qid}”" if isinstance(qid, str) else f"List {qid}",
        "ranker": ranker,
        "hypothetical": hypothetical,
        "unfairness": items["unfairness"].iloc[0],
        "n_items": len(items),
        "n_hidden": len(items) - len(shown),
        "movers": [f"{r.item} from place {r.rank} to {r.hypothetical_rank}" for r in movers.itertuples(index=False)],
        "table": table,
        "picture": _svg(lambda ax: _draw_moves(ax, shown, movers.index, hypothetical), height=0.8 + 0.2 * len(shown)),
    }


# Tables


def table(frame: pd.DataFrame, caption: str, n_texts: int = 1):
    """A table as HTML, in a box in which it scrolls; its first columns hold texts."""
    from markupsafe import Markup

    with pd.option_context("display.max_colwidth", None):
        head, body = frame.to_html(index=False, border=0, classes=f"texts-{n_texts}", na_rep=_MISSING).split("<tbody>")
    head = re.sub(r' style="[^"]*"', "", head).replace("<th>", '<th scope="col">')
    head = head.replace("<thead>", f"<caption><span>{escape(caption)}</span></caption><thead>")
    body = re.sub(r"<tr>\s*<td>(.*?)</td>", r'<tr><th scope="row">\1</th>', body, flags=re.DOTALL)
    box = f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
    return Markup(f"{box}{head}<tbody>{body}</div>")


def _with_error(frame: pd.DataFrame, column: str, digits: int = 3) -> list[str]:
    """The numbers of a column with their standard errors."""
    pairs = zip(frame[column], frame[f"{column}_se"], strict=True)
    return [
        decimal(value, digits) + ("" if math.isnan(value + error) else f" ± {decimal(error, digits)}")
        for value, error in pairs
    ]


def _first_places(report) -> str:
    """The places that count for NDCG and for the share of the top."""
    k = report.facts["k"]
    if report.facts["sizes"].max() <= k:
        return "all places"
    return "the first place" if k == 1 else f"the first {k} places"


def _tables(report) -> dict:
    rankers, measures = report.table.index, _measures(report)
    numbers = {title: _with_error(rows.loc[rankers], column, 4) for title, rows, column in measures}
    reference = report.facts["reference"]
    differences = [
        (
            name,
            title,
            *_with_error(rows.loc[[name]], f"{column}_difference", 4),
            rows.loc[name, f"{column}_difference_p"],
        )
        for name in ([] if reference is None else rankers.drop(reference))
        for title, rows, column in measures
    ]
    differences += [
        (row.ranker, _changed(row), f"{decimal(row.difference, 4)} ± {decimal(row.se, 4)}", row.p)
        for row in report.differences.itertuples()
        if row.group
    ]
    compared = pd.DataFrame(differences, columns=["Ranker", "What", f"Less that of {reference}", "p"])
    compared["p"] = ["below 0.001" if p < 0.001 else decimal(p) for p in compared["p"]]
    return {
        "glance": _glance(report),
        "numbers": pd.DataFrame({"Ranker": rankers, **numbers}),
        "hypotheticals": _each_hypothetical(report),
        "groups": {attribute: _of_groups(report, attribute) for attribute in _groups(report)},
        "differences": compared,
        "wrong_labels": _wrong_labels(report),
    }


def _wrong_labels(report) -> pd.DataFrame:
    """The gaps in exposure with the labels as they are, and if some of them are wrong."""
    rows = pd.DataFrame() if report.wrong_labels is None else report.wrong_labels.reset_index()
    if rows.empty:
        return rows
    titles = {"gap": "Gap as measured", "seen": "Gap seen if so many became wrong"}
    titles |= {"corrected": "Gap there is if so many are wrong"}
    found = {"Ranker": rows["ranker"], "Groups": "by " + rows["attribute"], "Wrong labels": rows["wrong"].map(percent)}
    return pd.DataFrame(found | {title: rows[column].map(decimal) for column, title in titles.items()})


def _measures(report) -> list[tuple]:
    """Titles of columns, and the table and column of each."""
    found = [(title, report.table, column) for column, title in _AUDIT.items() if column in report.table]
    for attribute in [] if report.gaps is None else report.gaps.index.unique(level="attribute"):
        rows = report.gaps.xs(attribute, level="attribute")
        found += [(f"{title}, by {attribute}", rows, column) for column, title in _GAPS.items()]
    return found


def _glance(report) -> pd.DataFrame:
    found = {
        "Ranker": report.table.index,
        f"Quality: NDCG of {_first_places(report)}": _with_error(report.table, "ndcg"),
    }
    for what, new, certificates in (
        ("Pairs that change order", "… in new lists at most", report.certificates),
        ("Lists with another first item", "… of new lists at most", report.top_certificates),
    ):
        if certificates:
            found[what] = [percent(one.value) for one in certificates.values()]
            found[new] = [at_most(one.upper_bound) for one in certificates.values()]
    for attribute, by_ranker in _groups(report).items():
        ratios = [of_ranker["ratio"] for of_ranker in by_ranker.values()]
        if not np.isnan(ratios).any():
            found[f"Exposure by {attribute}: least of most"] = [percent(ratio, 0) for ratio in ratios]
    return pd.DataFrame(found)


def _each_hypothetical(report) -> pd.DataFrame:
    """Those that change most of each ranker's lists."""
    most = max(1, _ROWS // len(report.table))
    each = report.hypotheticals.sort_values("discordance", ascending=False, kind="stable")
    found = [each.xs(name, drop_level=False).head(most) for name in report.table.index if not each.empty]
    rows = pd.concat(found).reset_index() if found else each.reset_index()
    titles = {"discordance": "Pairs that change order", "top_changed": "Lists with another first item"}
    shares = {
        title: rows[column].map(percent) for column, title in (titles | {"rows_changed": "Items it changes"}).items()
    }
    return pd.DataFrame({"Ranker": rows.get("ranker"), "Hypothetical": rows.get("hypothetical"), **shares})


def _of_groups(report, attribute: str) -> pd.DataFrame:
    rows = report.exposure.xs(attribute, level="attribute").reset_index()
    found = {"Ranker": rows["ranker"], "Group": rows["group"].astype(str), "Items": rows["n_items"].map("{:,}".format)}
    found["Lists it is in"] = rows["n_queries"].map("{:,}".format)
    found["Share of the items of a list"] = rows["share_of_items"].map(percent)
    if report.facts["sizes"].max() > report.facts["k"]:
        found[f"Share of {_first_places(report)}"] = rows["share_of_top"].map(percent)
    found["Mean exposure"], found["Mean place"] = _with_error(rows, "exposure"), _with_error(rows, "rank", 2)
    titles = {"merit": "Mean relevance", "exposure_per_merit": "Exposure per relevance"}
    return pd.DataFrame(found | {title: _with_error(rows, column) for column, title in titles.items()})


# Pictures


def _pictures(report) -> dict:
    from skfairrank.inspection._displays import CertificateDisplay
    from skfairrank.inspection._figures import TradeoffDisplay
    from skfairrank.inspection._plot import legend_outside

    y: Any
    labels: Any
    rankers, ndcg, groups = report.table.index, report.table[["ndcg", "ndcg_se"]].fillna(0.0), _groups(report)
    y, ylabel = [one.value for one in report.certificates.values()], "pairs that change order"
    for attribute, by_ranker in groups.items():
        if not y and not any(math.isnan(one["ratio"]) for one in by_ranker.values()):
            y = [1.0 - one["ratio"] for one in by_ranker.values()]
            ylabel = f"least exposed lacks, by {_short(attribute, 12)}"
    labels = [_short(name) for name in rankers]
    pictures: dict = {"tradeoff": None, "certificates": []}
    if y and report.table["ndcg"].notna().all():
        display = TradeoffDisplay(
            ndcg["ndcg"],
            y,
            xerr=ndcg["ndcg_se"],
            labels=labels,
            xlabel="quality (NDCG)",
            ylabel=ylabel,
        )
        height = 2.6 + 0.2 * len(rankers)
        pictures["tradeoff"] = _svg(lambda ax: legend_outside(display.plot(ax, legend=False).ax_, n_columns=1), height)
    for name, certificate in list(report.certificates.items())[:_ROWS]:
        shown = CertificateDisplay(certificate, name=_short(name))
        pictures["certificates"].append((name, _svg(lambda ax, shown=shown: shown.plot(ax))))
    return pictures


def _svg(draw, height: float = 3.2):
    """What `draw` draws on axes, as SVG that takes its black from the page; texts stay texts."""
    import matplotlib as mpl
    from markupsafe import Markup
    from matplotlib.figure import Figure

    settings = {"svg.fonttype": "none", "svg.hashsalt": "skfairrank", "text.parse_math": False}
    with mpl.rc_context({**mpl.rcParamsDefault, **settings}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has its own fonts
        figure, file = Figure(figsize=(4.4, height), layout="constrained"), io.StringIO()
        draw(figure.subplots())
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    text = file.getvalue()
    return Markup(text[text.index("<svg") :].replace("#000000", "currentColor"))


def _short(name, letters: int = 24) -> str:
    """A name that fits beside a picture; matplotlib leaves names that begin with _ out of legends."""
    text = str(name) if len(str(name)) <= letters else f"{str(name)[: letters - 1]}…"
    return f"\u200b{text}" if text.startswith("_") else text


def _draw_moves(ax, items: pd.DataFrame, movers, hypothetical: str) -> None:
    """A list's order beside its hypothetical order, each item joined to itself; those in `movers` are thick."""
    sides = [items[column].rank() for column in ("rank", "hypothetical_rank")]
    for i in items.index:
        style = {"color": "#c65200", "lw": 2.6} if i in movers else {"color": "0.5", "lw": 1.0}
        ax.plot([0, 1], [sides[0][i], sides[1][i]], **style)
    right = ax.twinx()
    for axis, place, column, text in (
        (ax, sides[0], "rank", "{1}  {0}"),
        (right, sides[1], "hypothetical_rank", "{0}  {1}"),
    ):
        texts = [text.format(n, _short(item, 14)) for item, n in zip(items["item"], items[column], strict=True)]
        axis.set_yticks(place, texts)
        axis.set(ylim=(len(items) + 0.5, 0.5), xlim=(0.0, 1.0))
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    ax.set_xticks([0, 1], ["as it is", _short(hypothetical)])
    ax.xaxis.tick_top()
