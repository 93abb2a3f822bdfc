"""The style sheet of a page: light and dark, narrow and wide, on screen and on paper."""

__all__ = ["OF_DOCUMENT", "OF_FRAGMENT"]

_LIGHT = """
  --page: #ffffff; --card: #f5f7f9; --text: #1c2126; --muted: #525b65; --rule: #cfd6dd; --strong: #0b5394;
  --c0: #0072b2; --c1: #c65200; --c2: #00805d; --c3: #ad4a86; --c4: #8a6100; --c5: #56606a; --move: #c65200;"""
_DARK = """
  --page: #14181c; --card: #1d2329; --text: #e7ebef; --muted: #a9b3bd; --rule: #3b454f; --strong: #8cc4f5;
  --c0: #58b4ec; --c1: #ff9a52; --c2: #3cc79a; --c3: #e79cc9; --c4: #e8bd4f; --c5: #b3bcc5; --move: #ff9a52;"""

#: Of what stands inside `.skfr`, so that a notebook around it keeps its own style.
OF_FRAGMENT = (
    f".skfr {{ color-scheme: light;{_LIGHT}\n}}\n"
    f"@media (prefers-color-scheme: dark) {{ .skfr {{ color-scheme: dark;{_DARK}\n}} }}\n"
    f"@media print {{ .skfr {{ color-scheme: light;{_LIGHT}\n}} }}\n"
    """\
.skfr, .skfr * { box-sizing: border-box; }
.skfr {
  background: var(--page); color: var(--text); margin: 0 auto; padding: 1.25rem; max-width: 68rem;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; text-align: left;
}
.skfr h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; }
.skfr h2 { font-size: 1.35rem; line-height: 1.25; margin: 2.75rem 0 .6rem; padding-top: .9rem;
  border-top: 2px solid var(--rule); }
.skfr h3 { font-size: 1.08rem; line-height: 1.3; margin: 1.75rem 0 .4rem; }
.skfr p, .skfr ul, .skfr dl { margin: .5rem 0 .8rem; max-width: 46rem; }
.skfr ul { padding-left: 1.2rem; }
.skfr li { margin: .3rem 0; }
.skfr h1, .skfr h2, .skfr h3, .skfr p, .skfr li, .skfr dd, .skfr dt, .skfr figcaption { overflow-wrap: anywhere; }
.skfr .lead { color: var(--muted); }
.skfr strong { font-weight: 650; }
.skfr .number { color: var(--strong); font-weight: 650; }
.skfr .findings { list-style: none; padding: 0; display: grid; gap: .9rem; max-width: none; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.skfr .findings > li { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; margin: 0;
  padding: .9rem 1.1rem; break-inside: avoid; }
.skfr .findings h3 { margin: 0 0 .4rem; }
.skfr .findings p { margin: .4rem 0; }
.skfr dl.facts { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .3rem 1.2rem; }
.skfr dl.facts dt { color: var(--muted); }
.skfr dl.facts dd { margin: 0; }
.skfr dl.words dt { font-weight: 650; }
.skfr dl.words dd { margin: 0 0 .7rem 0; }
.skfr .limits { border-left: 4px solid var(--rule); padding: .1rem 0 .1rem 1rem; color: var(--muted); margin: 1rem 0;
  break-inside: avoid; }
.skfr .limits p { margin: .3rem 0; }
.skfr .side-by-side { display: grid; gap: 1rem 2.5rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.skfr .side-by-side > * { min-width: 0; }
.skfr figure { margin: 1rem 0; max-width: 30rem; break-inside: avoid; }
.skfr figcaption { color: var(--muted); font-size: .9rem; }
.skfr svg { display: block; width: 100%; height: auto; }
.skfr svg text { fill: var(--text); font-size: 13px; font-family: inherit; }
.skfr svg .muted { fill: var(--muted); }
.skfr svg .bold { font-weight: 650; }
.skfr svg .end { text-anchor: end; }
.skfr svg .middle { text-anchor: middle; }
.skfr svg .axis { stroke: var(--muted); stroke-width: 1; }
.skfr svg .grid { stroke: var(--rule); stroke-width: 1; }
.skfr svg .leader { stroke: var(--muted); stroke-width: .8; }
.skfr svg .error { stroke: var(--text); stroke-width: 1.4; }
.skfr svg .track { fill: var(--rule); opacity: .45; }
.skfr svg .pale { opacity: .35; }
.skfr svg .stay { stroke: var(--muted); stroke-width: 1; opacity: .65; fill: none; }
.skfr svg .move { stroke: var(--move); stroke-width: 2.6; fill: none; }
"""
    + "".join(
        f".skfr svg .c{j} {{ fill: var(--c{j}); }}\n.skfr svg .s{j} {{ stroke: var(--c{j}); stroke-width: 2; }}\n"
        for j in range(6)
    )
    + """\
.skfr .scroll { overflow-x: auto; container-type: inline-size; margin: .6rem 0 1rem; }
.skfr .scroll:focus-visible { outline: 2px solid var(--strong); outline-offset: 2px; }
.skfr table { border-collapse: collapse; font-size: .92rem; line-height: 1.4; background: none; margin: 0; border: 0; }
.skfr caption { caption-side: top; text-align: left; color: var(--muted); padding: 0 0 .4rem; font-size: .92rem; }
.skfr caption span { position: sticky; left: 0; display: inline-block; max-width: min(46rem, 100cqi); }
.skfr th, .skfr td { padding: .38rem .8rem .38rem 0; text-align: left; vertical-align: top; border: 0;
  border-bottom: 1px solid var(--rule); background: none; color: inherit; max-width: 22rem; overflow-wrap: break-word; }
.skfr thead th { vertical-align: bottom; border-bottom: 2px solid var(--muted); font-weight: 650; max-width: 11rem; }
.skfr tbody th { font-weight: 600; min-width: 7rem; }
.skfr .n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.skfr thead .n { white-space: normal; min-width: 5.2rem; }
.skfr .list thead .n { min-width: 0; }
.skfr .list tbody th { font-weight: 400; min-width: 4rem; }
.skfr .list td:last-child:not(.n) { min-width: 9rem; }
.skfr .list tr.mover th, .skfr .list tr.mover .n { font-weight: 700; }
.skfr footer { margin-top: 2.5rem; border-top: 1px solid var(--rule); color: var(--muted); font-size: .9rem; }
@media (min-width: 56rem) { .skfr .list .side-by-side { grid-template-columns: 25rem 1fr; } }
@media (max-width: 34rem) {
  .skfr svg text { font-size: 14.5px; }
  .skfr { padding: 1rem .9rem; }
  .skfr h1 { font-size: 1.55rem; }
  .skfr dl.facts { grid-template-columns: 1fr; gap: 0; }
  .skfr dl.facts dd { margin: 0 0 .5rem; }
}
@media print {
  .skfr { font-size: 10.5pt; max-width: none; padding: 0; }
  .skfr .scroll { overflow: visible; }
  .skfr table { font-size: 8.5pt; }
  .skfr th, .skfr td { padding: .15rem .5rem .15rem 0; line-height: 1.3; }
  .skfr h2 { margin-top: 1.6rem; }
  .skfr .n { white-space: normal; }
  .skfr h2, .skfr h3, .skfr caption { break-after: avoid; }
  .skfr tr { break-inside: avoid; }
  .skfr .findings, .skfr .side-by-side { grid-template-columns: 1fr 1fr; gap: .5rem 1.5rem; }
  .skfr .list { break-inside: avoid; }
  .skfr .list .side-by-side { grid-template-columns: 18rem 1fr; }
  .skfr svg text { font-size: 14.5px; }
  .skfr .list .n { white-space: nowrap; }
  .skfr * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
)

#: Of the page around it.
OF_DOCUMENT = """\
html { background: #ffffff; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; }
@media (prefers-color-scheme: dark) { html { background: #14181c; } }
@media print { html { background: #ffffff; } }
@page { margin: 16mm 14mm; }
"""
