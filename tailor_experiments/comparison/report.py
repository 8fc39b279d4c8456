"""The report of results folders: tables, figures as PNG and PDF, one page that holds them all, and
a short one.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path

from tailor.models.base import ProgressCallback, quiet
from tailor_experiments.comparison import tables
from tailor_experiments.comparison.pictures import Picture, apart, draw_all, overall, pictures
from tailor_experiments.comparison.results import Results
from tailor_experiments.comparison.tables import Table

PAGE = "report.html"
SHORT = "report.md"  # a table an experiment, for pages of a repository
#: of a number "0.51 ± 0.02" or "+0.1 [+0.0, +0.2] *" what may stand below it where a page is
#: narrow, whole
BESIDE = re.compile(r"± [\d.–]+|\[[-+–][\d.]*, [-+–][\d.]*\](?: \*)?")
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:100rem;margin:2rem auto;padding:0 "
    "1rem;color:#111}"
    "body,td:first-child,th:first-child{background:#fff}td{vertical-align:top}th{vertical-align:bottom}"
    "table{border-collapse:separate;border-spacing:0;margin:.4rem 0;font-size:.82em}"
    "td,th{padding:.15rem .4rem;border-bottom:1px solid "
    "#ccc;text-align:right;font-variant-numeric:tabular-nums}"
    "td:has(span),td span{white-space:nowrap}"
    "td:first-child,th:first-child{position:sticky;left:0;min-width:6rem;text-align:left}"
    "div.wide{overflow-x:auto;background:linear-gradient(270deg,#fff 40%,#fff0) 100%/2rem 100% "
    "no-repeat local,"
    # A shadow where more lies to the right.
    "linear-gradient(270deg,#0003,#0000) 100%/.6rem 100% no-repeat}"
    "img{max-width:100%}.note,td "
    "span{color:#444}.note{font-size:.9em}@media(max-width:1500px){.range{display:block}}"
    "@media(max-width:1090px){td span{display:block}}"
    "@media(max-width:700px){td:first-child,th:first-child{min-width:5rem}}"
)


def over_all(results: Sequence[Results], focus: str | None = None) -> list[Table]:
    """Tables of all experiments together."""
    found = [
        tables.yardsticks(results, focus),
        tables.yardsticks(results, focus, "imbalance"),
        tables.ranks(results),
    ]
    return [table for table in found if table is not None]


def each(one: Results, target: float | None = None, focus: str | None = None) -> list[Table]:
    """Tables of one experiment."""
    found = [
        tables.final(one),
        tables.differences(one, focus),
        tables.to_target(one, target),
        tables.seconds(one),
    ]
    return [table for table in found if table is not None]


def all_tables(
    results: Sequence[Results], target: float | None = None, focus: str | None = None
) -> list[Table]:
    return [
        *over_all(results, focus),
        *(table for one in results for table in each(one, target, focus)),
    ]


def write_report(
    results: Sequence[Results],
    out: Path,
    target: float | None = None,
    window: int = 3,
    focus: str | None = None,
    *,
    workers: int = 1,
    progress: ProgressCallback = quiet,
) -> Path:
    """Figures, the page and the short one in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    together, *figures = apart(
        [overall(results, out, focus), *(pictures(one, out, window, focus) for one in results)]
    )
    draw_all([*together, *(one for found in figures for one in found)], workers, progress)
    (out / PAGE).write_text(page(results, together, figures, target, focus), encoding="utf-8")
    (out / SHORT).write_text(short(results, focus), encoding="utf-8")
    return out / PAGE


def short(results: Sequence[Results], focus: str | None = None) -> str:
    """Markdown: how the contender in focus fares on all experiments, and one table for each."""
    shown = [*over_all(results, focus), *(tables.summary(one, focus) for one in results)]
    return "\n".join(map(tables.markdown, shown))


def page(
    results: Sequence[Results],
    together: Sequence[Picture],
    figures: Sequence[Sequence[Picture]],
    target: float | None = None,
    focus: str | None = None,
) -> str:
    """One HTML text that needs no other file and no network: all experiments together, then one
    after the other.

    together, figures  pictures of all experiments together, and of each
    """
    title = html.escape(results[0].name if len(results) == 1 else f"{len(results)} experiments")
    parts = ["<!doctype html><html lang='en'><head><meta charset='utf-8'>"]
    parts += ["<meta name='viewport' content='width=device-width,initial-scale=1'>"]
    parts += [f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>"]
    if len(results) > 1:
        links = (
            f"<li><a href='#e{at}'>{html.escape(one.name)}</a></li>"
            for at, one in enumerate(results)
        )
        parts.append(f"<ul>{''.join(links)}</ul>")
    parts += [_table(table) for table in over_all(results, focus)] + [
        _image(one) for one in together
    ]
    for at, one in enumerate(results):
        parts.append(f"<h2 id='e{at}'>{html.escape(one.name)}</h2>")
        parts += [_table(table) for table in each(one, target, focus)] + [
            _image(picture) for picture in figures[at]
        ]
        every = [row for trials in one.rows.values() for rows in trials.values() for row in rows]
        packages = sorted(
            {", ".join(f"{k} {v}" for k, v in row["versions"].items()) for row in every}
        )
        hashes = sorted({row["config"] for row in every})
        parts.append(
            f"<p class='note'>Made with {html.escape('; '.join(packages))}.</p><details "
            "class='note'>"
        )
        parts.append(
            "<summary>Configurations of the "
            f"trials</summary>{html.escape(', '.join(hashes))}</details>"
        )
    return "\n".join([*parts, "</body></html>"])


def _image(picture: Picture) -> str:
    data = base64.b64encode(picture.path.read_bytes()).decode()
    return (
        f"<figure><img alt='{html.escape(picture.title, quote=True)}' "
        f"src='data:image/png;base64,{data}'></figure>"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(c)}</th>" for c in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(c)}</td>" for c in row) + "</tr>" for row in table.rows
    )
    note = f"<p class='note'>{html.escape(table.note)}</p>" if table.note else ""
    return (
        f"<h3>{html.escape(table.title)}</h3><div "
        f"class='wide'><table><tr>{head}</tr>{body}</table></div>{note}"
    )


def _cell(text: str) -> str:
    def whole(part: re.Match[str]) -> str:
        return f"<span{' class=range' if part[0].startswith('[') else ''}>{part[0]}</span>"

    return BESIDE.sub(whole, html.escape(text))
