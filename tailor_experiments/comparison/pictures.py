"""Which figures an experiment's rows allow, and drawing them, several at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path

import numpy as np

from tailor.models.base import ProgressCallback, quiet
from tailor_experiments.comparison import parallel, tables
from tailor_experiments.comparison.results import Results
from tailor_experiments.figures import Curves, Interval, intervals, panels

#: curves that can be told apart in one panel
MOST = 9
#: figures that are drawn sooner than another process has started
FEW = 6


@dataclass(frozen=True)
class Picture:
    """A figure, yet to be drawn: as PNG at `path`, with a PDF beside it."""

    title: str
    path: Path
    draw: Callable[[Path, Path], None]


def draw_all(
    pictures: Sequence[Picture], workers: int = 1, progress: ProgressCallback = quiet
) -> None:
    """In `workers` processes; with one, or where it isn't worth it, in this one."""
    workers = min(workers, len(pictures) // FEW)
    jobs = [(picture,) for picture in pictures]
    drawn = map(_draw, pictures) if workers < 2 else parallel.run_all(_draw, jobs, workers)
    for done, _ in enumerate(drawn, 1):
        progress(done, len(pictures), "figures")


def _draw(picture: Picture) -> str:
    picture.draw(picture.path, picture.path.with_suffix(".pdf"))
    parallel.report(picture.title)
    return picture.title


def pictures(
    results: Results, out: Path, window: int = 3, focus: str | None = None
) -> list[Picture]:
    """Every figure that the rows allow."""
    smoothed = f"smoothed over {window} rounds" if window > 1 else "not smoothed"
    ours = tables.focused(results, focus)
    rows = lineup(results, ours)
    found: list[Picture] = []

    def add(
        kind: str,
        title: str,
        curves: Sequence[tuple[str, Curves]],
        of: Sequence[str],
        rows: Sequence[Sequence[str]] = (),
    ) -> None:
        whole = f"{title}\n{results.trials(of)} trials, bands: standard error, {smoothed}"
        xlabel = "labels" if rows else "round"
        found.append(
            Picture(
                title,
                _path(results, kind, out),
                partial(panels, curves, xlabel, whole, lineup=rows),
            )
        )

    for metric in results.metrics:
        label = results.label(metric)
        curves = [(label, results.curves(metric, window))]
        if "random" in results.rows and len(results.rows) > 1:
            curves.append(
                (f"{label},\nminus random's", results.curves(metric, window, minus="random"))
            )
        add(metric, f"{results.name}: {label}", curves, results.contenders, rows)
    learners = results.learners()
    for contender in (c for c in learners if c in (results.tailors() or learners)):
        title = f"{results.name}: {contender}'s ten most pulled arms"
        add(
            f"arms-{contender}",
            title,
            [("pulls a round", results.pulls(contender, window=window))],
            [contender],
        )
    if learners:
        title = f"{results.name}: pulls of the most frequent arm"
        add(
            "top-arm",
            title,
            [("pulls a round", results.curves("top_pulls", window, learners))],
            learners,
            rows,
        )
    shown = [m for m in (results.main, "rarest", "imbalance") if m in results.metrics]
    for number, members in enumerate(results.ablations()):
        kind = "candidates" if number == 0 else f"candidates-{members[0]}"
        title = f"{results.name}: {members[0]} with other candidates"
        curves = [(results.label(m), results.curves(m, window, members)) for m in shown]
        add(kind, title, curves, members, [members])
    if bars := _bars(results, ours):
        title = f"{results.name}: {ours} minus each other contender"
        whole = f"{title}\npaired by seed, 95% intervals"
        found.append(
            Picture(title, _path(results, "differences", out), partial(intervals, bars, whole))
        )
    return found


def overall(results: Sequence[Results], out: Path, focus: str | None = None) -> list[Picture]:
    """How the contender in focus fares against its rivals on every experiment that is judged by a
    score.
    """
    judged = [one for one in results if one.aim.endswith("score")]
    if len(judged) < 2:
        return []
    shown: list[tuple[str, list[Interval]]] = []
    whom = focus or "TAILOR"
    for at, rival in enumerate(tables.RIVALS):
        rows: list[Interval] = []
        for one in judged:
            ours = tables.focused(one, focus)
            other = tables.rivals(one, ours)[at]
            found = None if other is None else one.difference(ours, other, one.aim)
            name = one.name if ours == whom else f"{one.name} ({ours})"
            rows.append(
                (name, *((found.mean, found.low, found.high) if found else (float("nan"),) * 3))
            )
        shown.append((f"minus {rival}", rows))
    title = f"{whom}: score in the end, minus its rivals'"
    draw = partial(intervals, shown, f"{title}\npaired by seed, 95% intervals")
    return [Picture(title, out / "overall.png", draw)]


def lineup(results: Results, ours: str) -> list[list[str]]:
    """Contenders in rows of at most MOST; the one in focus and random are in every row.

    Where one row won't do, families alone, other selectors, and TAILORs have rows of their own.
    """
    marks = [ours, *(c for c in ("random",) if c in results.rows and c != ours)]
    rest = [c for c in results.contenders if c not in marks]
    if len(marks) + len(rest) <= MOST:
        return [[*marks, *rest]]
    singles = set(results.singles())
    tailors = set(results.tailors())
    kinds = [
        [c for c in rest if c in singles],
        [c for c in rest if c not in singles | tailors],
        [c for c in rest if c in tailors],
    ]
    parts = [
        part
        for kind in kinds
        if kind
        for part in np.array_split(kind, ceil(len(kind) / (MOST - len(marks))))
    ]
    return [[*marks, *part.tolist()] for part in parts]


def _bars(results: Results, ours: str) -> list[tuple[str, list[Interval]]]:
    """The differences of a contender to all others, where there are intervals."""
    shown = []
    for metric in tables.compared(results):
        pairs = [(c, results.difference(ours, c, metric)) for c in results.contenders if c != ours]
        rows = [
            (f"{c} ({d.n})", d.mean, d.low, d.high) for c, d in pairs if d is not None and d.n > 1
        ]
        if rows:
            shown.append((results.label(metric), rows))
    return shown


def _path(results: Results, kind: str, out: Path) -> Path:
    stem = re.sub(r"[^a-z0-9.]+", "-", f"{results.name}-{kind}".lower()).strip("-.")
    return out / f"{stem}.png"


def apart(groups: Sequence[Sequence[Picture]]) -> list[list[Picture]]:
    """The same, none at the path of another: names may differ in nothing that a path keeps."""
    taken: set[Path] = set()

    def own(picture: Picture) -> Picture:
        path = picture.path
        number = 1
        while path in taken:
            number += 1
            path = picture.path.with_stem(f"{picture.path.stem}-{number}")
        taken.add(path)
        return replace(picture, path=path)

    return [[own(picture) for picture in group] for group in groups]
