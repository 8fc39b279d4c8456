"""The report of results folders: tables, figures as PNG and PDF, and one page that holds them all."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path

from tailor.bench.experiment import tables
from tailor.bench.experiment.results import Results
from tailor.bench.experiment.tables import Table
from tailor.bench.figures import Curves, panels

PAGE = "report.html"
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#111}"
    "table{border-collapse:collapse;margin:.4rem 0}td,th{padding:.2rem .7rem;border-bottom:1px solid #ccc;"
    "text-align:right;font-variant-numeric:tabular-nums}td:first-child,th:first-child{text-align:left}"
    "div.wide{overflow-x:auto}img{max-width:100%}.note{color:#444;font-size:.9em}"
)


def all_tables(results: Sequence[Results], target: float | None = None) -> list[Table]:
    found: list[Table | None] = []
    for one in results:
        found += [tables.final(one), tables.differences(one), tables.to_target(one, target), tables.seconds(one)]
    found.append(tables.ranks(results))
    return [table for table in found if table is not None]


def draw(results: Results, out: Path, window: int = 3) -> list[tuple[str, Path]]:
    """Every figure that the rows allow -> (title, PNG); a PDF lies beside each."""
    trials = max(len(trials) for trials in results.rows.values())
    smoothed = f"smoothed over {window} rounds" if window > 1 else "not smoothed"
    found: list[tuple[str, Path]] = []

    def one(kind: str, title: str, curves: Sequence[tuple[str, Curves]], xlabel: str = "labels") -> None:
        stem = re.sub(r"[^a-z0-9.]+", "-", f"{results.name}-{kind}".lower()).strip("-.")
        path = out / f"{stem}.png"
        whole = f"{title}\n{trials} trials, bands: standard error, {smoothed}"
        panels(curves, xlabel, whole, path, out / f"{stem}.pdf")
        found.append((title, path))

    for metric in results.metrics():
        label = results.label(metric)
        one(metric, f"{results.name}: {label}", [(label, results.curves(metric, window))])
    learners = results.learners()
    for contender in (c for c in learners if c in tailors(results)):
        title = f"{results.name}: {contender}'s ten most pulled arms"
        one(f"arms-{contender}", title, [("pulls a round", results.pulls(contender, window=window))], "round")
    if learners:
        title = f"{results.name}: pulls of the most frequent arm"
        one("top-arm", title, [("pulls a round", results.curves("top_pulls", window, learners))])
    if sets := results.ablation():
        shown = [m for m in (results.main, "rarest", "imbalance") if m in results.metrics()]
        curves = [(results.label(m), results.curves(m, window, sets)) for m in shown]
        one("candidates", f"{results.name}: TAILOR with other candidates", curves)
    return found


def tailors(results: Results) -> list[str]:
    """Contenders whose selector is TAILOR; where there is none, all."""
    selectors = {c: next(iter(trials.values()))[0]["selector"] for c, trials in results.rows.items()}
    return [c for c, name in selectors.items() if name.partition("(")[0].strip() == "tailor"] or list(selectors)


def write_report(results: Sequence[Results], out: Path, target: float | None = None, window: int = 3) -> Path:
    """Figures and the page in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    figures = [drawn for one in results for drawn in draw(one, out, window)]
    (out / PAGE).write_text(page(results, all_tables(results, target), figures), encoding="utf-8")
    return out / PAGE


def page(results: Sequence[Results], shown: Sequence[Table], figures: Sequence[tuple[str, Path]]) -> str:
    """One HTML text that needs no other file and no network."""
    title = html.escape(", ".join(r.name for r in results))
    parts = ["<!doctype html><html lang='en'><head><meta charset='utf-8'>"]
    parts += [f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1><h2>Tables</h2>"]
    parts += [_table(table) for table in shown]
    parts.append("<h2>Figures</h2>")
    for name, path in figures:
        data = base64.b64encode(path.read_bytes()).decode()
        text = html.escape(name, quote=True)
        parts.append(f"<figure><img alt='{text}' src='data:image/png;base64,{data}'></figure>")
    parts.append("<h2>What it was made with</h2>")
    for one in results:
        every = [row for trials in one.rows.values() for rows in trials.values() for row in rows]
        packages = sorted({", ".join(f"{k} {v}" for k, v in row["versions"].items()) for row in every})
        hashes = sorted({row["config"] for row in every})
        parts.append(f"<p>{html.escape(one.name)}: {html.escape('; '.join(packages))}.</p>")
        parts.append(f"<p class='note'>Configurations of the trials: {html.escape(', '.join(hashes))}</p>")
    return "\n".join([*parts, "</body></html>"])


def _table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(c)}</th>" for c in table.columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in table.rows)
    note = f"<p class='note'>{html.escape(table.note)}</p>" if table.note else ""
    return f"<h3>{html.escape(table.title)}</h3><div class='wide'><table><tr>{head}</tr>{body}</table></div>{note}"
