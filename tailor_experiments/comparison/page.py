"""The page of a report: one HTML text that needs no other file and no network."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence

from tailor_experiments.comparison.pictures import FigureTask
from tailor_experiments.comparison.results import Results
from tailor_experiments.comparison.table_format import Table

#: of a number "0.51 ± 0.02" or "+0.1 [+0.0, +0.2] *" what may stand below it where a page is
#: narrow, whole
SECOND_PART = re.compile(r"± [\d.–]+|\[[-+–][\d.]*, [-+–][\d.]*\](?: \*)?")
#: in the page itself, which must show without any other file
STYLE = """
body {
  font: 15px/1.5 system-ui, sans-serif; max-width: 100rem; margin: 2rem auto; padding: 0 1rem;
  color: #111;
}
body, td:first-child, th:first-child { background: #fff }
table { border-collapse: separate; border-spacing: 0; margin: .4rem 0; font-size: .82em }
td { vertical-align: top }
th { vertical-align: bottom }
td, th {
  padding: .15rem .4rem; border-bottom: 1px solid #ccc; text-align: right;
  font-variant-numeric: tabular-nums;
}
td:has(span), td span { white-space: nowrap }
td:first-child, th:first-child { position: sticky; left: 0; min-width: 6rem; text-align: left }
/* A shadow where more lies to the right. */
div.wide {
  overflow-x: auto;
  background:
    linear-gradient(270deg, #fff 40%, #fff0) 100% / 2rem 100% no-repeat local,
    linear-gradient(270deg, #0003, #0000) 100% / .6rem 100% no-repeat;
}
img { max-width: 100% }
.note, td span { color: #444 }
.note { font-size: .9em }
@media (max-width: 1500px) { .range { display: block } }
@media (max-width: 1090px) { td span { display: block } }
@media (max-width: 700px) { td:first-child, th:first-child { min-width: 5rem } }
"""


def page(
    tables: Sequence[Table],
    pictures: Sequence[FigureTask],
    sections: Sequence[tuple[Results, Sequence[Table], Sequence[FigureTask]]],
) -> str:
    """All experiments together, then one after the other; the pictures must have been drawn.

    tables, pictures  of all experiments together
    sections          each experiment with the tables and pictures of its own
    """
    names = [html.escape(results.name) for results, _, _ in sections]
    if len(names) == 1:
        title = names[0]
    else:
        title = f"{len(names)} experiments"
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width,initial-scale=1'>",
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>",
    ]
    if len(names) > 1:
        parts.append(_contents(names))
    parts += map(_table, tables)
    parts += map(_image, pictures)
    for place, section in enumerate(sections):
        results, section_tables, section_pictures = section
        parts.append(f"<h2 id='e{place}'>{names[place]}</h2>")
        parts += map(_table, section_tables)
        parts += map(_image, section_pictures)
        parts.append(_origin(results))
    parts.append("</body></html>")
    return "\n".join(parts)


def _contents(names: Sequence[str]) -> str:
    """Links to the sections."""
    links = []
    for place, name in enumerate(names):
        links.append(f"<li><a href='#e{place}'>{name}</a></li>")
    items = "".join(links)
    return f"<ul>{items}</ul>"


def _origin(results: Results) -> str:
    """With which packages and configurations the rows were made."""
    versions = {_versions(row["versions"]) for row in results.all_rows}
    # Every trial has one of its own: they are folded away.
    hashes = {row["config"] for row in results.all_rows}
    versions_text = html.escape("; ".join(sorted(versions)))
    hashes_text = html.escape(", ".join(sorted(hashes)))
    return (
        f"<p class='note'>Made with {versions_text}.</p>\n"
        "<details class='note'><summary>Configurations of the trials</summary>"
        f"{hashes_text}</details>"
    )


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{package} {version}" for package, version in versions.items())


def _image(picture: FigureTask) -> str:
    # Within the page, which may be sent on without its folder.
    data = base64.b64encode(picture.path.read_bytes()).decode()
    title = html.escape(picture.title, quote=True)
    return f"<figure><img alt='{title}' src='data:image/png;base64,{data}'></figure>"


def _table(table: Table) -> str:
    title = html.escape(table.title)
    head = "".join(map(_heading, table.columns))
    body = "".join(map(_table_row, table.rows))
    note = ""
    if table.note:
        note = f"<p class='note'>{html.escape(table.note)}</p>"
    return f"<h3>{title}</h3><div class='wide'><table><tr>{head}</tr>{body}</table></div>{note}"


def _heading(text: str) -> str:
    return f"<th>{html.escape(text)}</th>"


def _table_row(cells: Sequence[str]) -> str:
    texts = "".join(map(_cell, cells))
    return f"<tr>{texts}</tr>"


def _cell(text: str) -> str:
    # Escaped first: the marks that are put in must stay marks.
    content = SECOND_PART.sub(_unbroken, html.escape(text))
    return f"<td>{content}</td>"


def _unbroken(part: re.Match[str]) -> str:
    text = part[0]
    kind = ""
    if text.startswith("["):
        kind = " class=range"
    return f"<span{kind}>{text}</span>"
