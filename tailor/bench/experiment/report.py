"""The report of results folders: tables, figures as PNG and PDF, one page that holds them all, and a short one."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path

from tailor.bench.experiment import tables
from tailor.bench.experiment.results import Results
from tailor.bench.experiment.tables import Table
from tailor.bench.figures import Curves, Interval, intervals, panels

PAGE = "report.html"
SHORT = "report.md"  # a table an experiment, for pages of a repository
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#111}"
    "table{border-collapse:collapse;margin:.4rem 0}td,th{padding:.2rem .7rem;border-bottom:1px solid #ccc;"
    "text-align:right;font-variant-numeric:tabular-nums}td{white-space:nowrap}td:first-child,th:first-child{text-align:left}"
    "div.wide{overflow-x:auto}img{max-width:100%}.note{color:#444;font-size:.9em}"
)


def all_tables(results: Sequence[Results], target: float | None = None, focus: str | None = None) -> list[Table]:
    found: list[Table | None] = [tables.yardsticks(results, focus), tables.ranks(results)]
    for one in results:
        found += [tables.final(one), tables.differences(one, focus)]
        found += [tables.to_target(one, target), tables.seconds(one)]
    return [table for table in found if table is not None]


def draw(results: Results, out: Path, window: int = 3, focus: str | None = None) -> list[tuple[str, Path]]:
    """Every figure that the rows allow -> (title, PNG); a PDF lies beside each."""
    trials = max(len(trials) for trials in results.rows.values())
    smoothed = f"smoothed over {window} rounds" if window > 1 else "not smoothed"
    found: list[tuple[str, Path]] = []

    def paths(kind: str, title: str) -> tuple[Path, Path]:
        stem = re.sub(r"[^a-z0-9.]+", "-", f"{results.name}-{kind}".lower()).strip("-.")
        found.append((title, out / f"{stem}.png"))
        return out / f"{stem}.png", out / f"{stem}.pdf"

    def one(kind: str, title: str, curves: Sequence[tuple[str, Curves]], xlabel: str = "labels") -> None:
        whole = f"{title}\n{trials} trials, bands: standard error, {smoothed}"
        order = () if xlabel == "round" else results.contenders
        panels(curves, xlabel, whole, *paths(kind, title), order=order)

    for metric in results.metrics():
        label = results.label(metric)
        curves = [(label, results.curves(metric, window))]
        if "random" in results.rows and len(results.rows) > 1:
            curves.append((f"{label}, minus random's", results.curves(metric, window, minus="random")))
        one(metric, f"{results.name}: {label}", curves)
    learners = results.learners()
    for contender in (c for c in learners if c in (results.tailors() or learners)):
        title = f"{results.name}: {contender}'s ten most pulled arms"
        one(f"arms-{contender}", title, [("pulls a round", results.pulls(contender, window=window))], "round")
    if learners:
        title = f"{results.name}: pulls of the most frequent arm"
        one("top-arm", title, [("pulls a round", results.curves("top_pulls", window, learners))])
    if sets := results.ablation():
        shown = [m for m in (results.main, "rarest", "imbalance") if m in results.metrics()]
        curves = [(results.label(m), results.curves(m, window, sets)) for m in shown]
        one("candidates", f"{results.name}: TAILOR with other candidates", curves)
    ours = tables.focused(results, focus)
    if bars := _bars(results, ours):
        title = f"{results.name}: {ours} minus each other contender"
        intervals(bars, f"{title}\npaired by seed, 95% intervals", *paths("differences", title))
    return found


def _bars(results: Results, ours: str) -> list[tuple[str, list[Interval]]]:
    """The differences of a contender to all others, where there are intervals."""
    shown = []
    for metric in tables.compared(results):
        pairs = [(c, results.difference(ours, c, metric)) for c in results.contenders if c != ours]
        rows = [(c, d.mean, d.low, d.high) for c, d in pairs if d is not None and d.n > 1]
        if rows:
            shown.append((results.label(metric), rows))
    return shown


def draw_overall(results: Sequence[Results], out: Path, focus: str | None = None) -> list[tuple[str, Path]]:
    """How the contender in focus fares against its rivals on every experiment that is judged by a score."""
    judged = [one for one in results if one.aim.endswith("score")]
    shown: list[tuple[str, list[Interval]]] = []
    for at, rival in enumerate(tables.RIVALS):
        rows: list[Interval] = []
        for one in judged:
            ours = tables.focused(one, focus)
            other = tables.rivals(one, ours)[at]
            apart = None if other is None else one.difference(ours, other, one.aim)
            rows.append((one.name, *((apart.mean, apart.low, apart.high) if apart else (float("nan"),) * 3)))
        shown.append((f"minus {rival}", rows))
    if len(judged) < 2:
        return []
    title = f"{focus or 'TAILOR'}: score in the end, minus its rivals'"
    intervals(shown, f"{title}\npaired by seed, 95% intervals", out / "overall.png", out / "overall.pdf")
    return [(title, out / "overall.png")]


def write_report(
    results: Sequence[Results], out: Path, target: float | None = None, window: int = 3, focus: str | None = None
) -> Path:
    """Figures, the page and the short one in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    figures = draw_overall(results, out, focus) + [drawn for one in results for drawn in draw(one, out, window, focus)]
    (out / PAGE).write_text(page(results, all_tables(results, target, focus), figures), encoding="utf-8")
    (out / SHORT).write_text(short(results, focus), encoding="utf-8")
    return out / PAGE


def short(results: Sequence[Results], focus: str | None = None) -> str:
    """Markdown: how the contender in focus fares on all experiments, and one table for each."""
    over_all: list[Table | None] = [tables.yardsticks(results, focus), tables.ranks(results)]
    each = [tables.summary(one, focus) for one in results]
    return "\n".join(tables.markdown(table) for table in [*over_all, *each] if table is not None)


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
