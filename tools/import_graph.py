"""Draws which package imports which, as one picture for CONTRIBUTING.md.

    python tools/import_graph.py [FILE]        by default docs/images/imports.svg

A box is a package of tailor or tailor_experiments, or a module beside them. An arrow is an import
from anywhere in one to anywhere in the other; arrows that follow from others are left out (where A
imports B and B imports C, A may import C too). Every arrow points down, and a cycle is an error.

The layout is Sugiyama's, in four steps: rows, places for arrows that cross a row, an order within
each row with few crossings, and positions near the neighbours. Needs extra `dev` (grimp reads the
imports).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import grimp
import numpy as np
from sklearn.isotonic import isotonic_regression

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "imports.svg"
CORE = "tailor"
EXPERIMENTS = "tailor_experiments"
#: modules that are boxes of their own, since lower packages may import them, with what is theirs
APART = {
    "tailor.selection.pool_view": "tailor.selection.pool_view",
    "tailor.selection.model_answers": "tailor.selection.pool_view",
    "tailor.selection.ledger": "tailor.selection.pool_view",
    "tailor.selection.view_checks": "tailor.selection.pool_view",
    "tailor.selection.subset_view": "tailor.selection.pool_view",
}
#: what is in each box, in a few words
CONTENTS = {
    "tailor.annotation": "people who label, live",
    "tailor.bandits": "selectors, posteriors, rewards",
    "tailor.capacity": "what a round will cost",
    "tailor.cli": "the tailor command",
    "tailor.common": "checks, files, memory",
    "tailor.compute": "engines and shards",
    "tailor.errors": "every error, one root",
    "tailor.insight": "the model's worth, when to stop",
    "tailor.integrations": "Label Studio",
    "tailor.models": "what is trained",
    "tailor.pools": "where examples come from",
    "tailor.registry": "classes by name, plugins",
    "tailor.run": "session, state, answers",
    "tailor.selection": "the learner and its rounds",
    "tailor.selection.pool_view": "all that an arm may see",
    "tailor.storage": "SQLite and PostgreSQL",
    "tailor.strategies": "the arms, one family a file",
    "tailor.task": "classes and labels",
    "tailor.testing": "contracts for plugins",
    "tailor.web": "the labelling page",
    "tailor_experiments.cli": "bench, data, demo, regret",
    "tailor_experiments.comparison": "contenders, trials, report",
    "tailor_experiments.datasets": "the paper's datasets",
    "tailor_experiments.demo": "what make demo runs",
    "tailor_experiments.figures": "curves and intervals",
    "tailor_experiments.metrics": "accuracy, precision",
    "tailor_experiments.policy": "the learned family's weights",
    "tailor_experiments.regret": "regret, simulated",
    "tailor_experiments.speed": "speed, and how it grows",
}

BOX_WIDTH = 186
BOX_HEIGHT = 46
ROW_HEIGHT = 88
#: between two boxes, and between an arrow and what is beside it
GAP = 26
ARROW_GAP = 30
MARGIN = 28
HEADER = 62
SWEEPS = 40

STYLE = """
svg { --card: #ffffff; --ink: #1f2328; --quiet: #59636e; --line: #8c959f;
      --core: #eaf2fd; --core-edge: #5b8def; --apart: #fdf3e1; --apart-edge: #d08700 }
@media (prefers-color-scheme: dark) {
  svg { --card: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --line: #6e7681;
        --core: #14233d; --core-edge: #4a7fd6; --apart: #2f2410; --apart-edge: #b98320 }
}
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--ink) }
.card { fill: var(--card) }
.name { font-size: 15px; font-weight: 600; text-anchor: middle }
.contents { font-size: 12px; text-anchor: middle; fill: var(--quiet) }
.title { font-size: 17px; font-weight: 600 }
.note { font-size: 12.5px; fill: var(--quiet) }
.core { fill: var(--core); stroke: var(--core-edge); stroke-width: 1.2 }
.experiments { fill: var(--apart); stroke: var(--apart-edge); stroke-width: 1.2 }
.arrow { fill: none; stroke: var(--line); stroke-width: 1.4 }
.head { fill: var(--line) }
"""

Edges = dict[str, set[str]]


def box_of(module: str) -> str | None:
    """The box that a module is drawn in; None for the packages themselves and for __main__."""
    if module in APART:
        return APART[module]
    names = module.split(".")
    if len(names) == 1 or names[1] == "__main__":
        return None
    return ".".join(names[:2])


def package_imports() -> Edges:
    """box -> the boxes that it imports."""
    graph = grimp.build_graph(CORE, EXPERIMENTS)
    edges: Edges = {}
    for module in sorted(graph.modules):
        importer = box_of(module)
        if importer is None:
            continue
        imported = edges.setdefault(importer, set())
        for other in graph.find_modules_directly_imported_by(module):
            target = box_of(other)
            if target is not None and target != importer:
                imported.add(target)
    return edges


def from_top(edges: Edges) -> list[str]:
    """The boxes in an order in which each stands above all that it imports."""
    below: list[str] = []
    open_boxes: list[str] = []

    def visit(box: str) -> None:
        if box in open_boxes:
            cycle = " -> ".join([*open_boxes[open_boxes.index(box) :], box])
            raise SystemExit(f"packages import each other in a circle: {cycle}")
        if box in below:
            return
        open_boxes.append(box)
        for target in sorted(edges[box]):
            visit(target)
        open_boxes.pop()
        below.append(box)

    for box in sorted(edges):
        visit(box)
    return below[::-1]


def without_implied(edges: Edges) -> Edges:
    """Without the arrows that follow from others (the transitive reduction)."""
    reachable: Edges = {}
    for box in reversed(from_top(edges)):
        reachable[box] = set(edges[box])
        for target in edges[box]:
            reachable[box] |= reachable[target]
    reduced: Edges = {}
    for box, targets in edges.items():
        implied = {far for near in targets for far in reachable[near]}
        reduced[box] = targets - implied
    return reduced


def rows_of(edges: Edges) -> dict[str, int]:
    """box -> its row, 0 at the top: right below the lowest of those that import it.

    What nobody imports stands right above the highest that it imports, except for what is at the
    very top.
    """
    order = from_top(edges)
    importers = defaultdict(set)
    for box, targets in edges.items():
        for target in targets:
            importers[target].add(box)
    height: dict[str, int] = {}
    for box in reversed(order):
        height[box] = 1 + max((height[target] for target in edges[box]), default=-1)
    top = max(height.values())
    rows: dict[str, int] = {}
    for box in order:
        above = [rows[importer] for importer in importers[box]]
        rows[box] = 1 + max(above) if above else top - height[box]
    for box in order:
        if not importers[box] and rows[box] > 0:
            rows[box] = min(rows[target] for target in edges[box]) - 1
    return rows


@dataclass
class Place:
    """A box, or the point at which a long arrow crosses a row."""

    name: str
    row: int
    is_box: bool
    x: float = 0.0
    above: list[Place] = field(default_factory=list)
    below: list[Place] = field(default_factory=list)

    @property
    def is_core(self) -> bool:
        return not self.name.startswith(EXPERIMENTS)

    @property
    def y(self) -> float:
        return HEADER + MARGIN + self.row * ROW_HEIGHT

    @property
    def half_width(self) -> float:
        return BOX_WIDTH / 2 if self.is_box else 0.0


def link(upper: Place, lower: Place) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def make_places(edges: Edges, rows: dict[str, int]) -> tuple[list[list[Place]], list[list[Place]]]:
    """The places of each row, and for each arrow the places that it goes through."""
    boxes = {name: Place(name, row, True) for name, row in rows.items()}
    grid: list[list[Place]] = [[] for _ in range(1 + max(rows.values()))]
    for box in boxes.values():
        grid[box.row].append(box)
    arrows = []
    for name in sorted(edges):
        for target in sorted(edges[name]):
            path = [boxes[name]]
            for row in range(rows[name] + 1, rows[target]):
                crossing = Place(name, row, False)
                grid[row].append(crossing)
                path.append(crossing)
            path.append(boxes[target])
            for upper, lower in zip(path, path[1:]):
                link(upper, lower)
            arrows.append(path)
    return grid, arrows


def neighbours_mean(places: Iterable[Place], otherwise: float) -> float:
    positions = [place.x for place in places]
    return sum(positions) / len(positions) if positions else otherwise


def spread(row: list[Place], wanted: list[float], box_weight: float = 1.0) -> None:
    """Give the places of a row positions near those wanted, in their order and without overlaps.

    box_weight  how much rather a crossing gives way than a box
    """
    offsets = [0.0]
    for left, right in zip(row, row[1:]):
        gap = GAP if left.is_box and right.is_box else ARROW_GAP
        offsets.append(offsets[-1] + left.half_width + gap + right.half_width)
    # With the least widths subtracted, "no overlap" says that positions do not decrease.
    free = np.array(wanted) - np.array(offsets)
    weights = [box_weight if place.is_box else 1.0 for place in row]
    positions = isotonic_regression(free, sample_weight=weights) + np.array(offsets)
    for place, position in zip(row, positions.tolist()):
        place.x = position


def arrange(grid: list[list[Place]]) -> None:
    """Order each row so that few arrows cross, then move places towards their neighbours.

    The experiments stay on the right: they are a package of their own.
    """
    for row in grid:
        row.sort(key=lambda place: (not place.is_core, place.name))
        spread(row, [0.0] * len(row))

    def sweep(rows: Iterable[list[Place]], side: Callable[[Place], list[Place]]) -> None:
        for row in rows:
            wanted = {id(place): neighbours_mean(side(place), place.x) for place in row}
            row.sort(key=lambda place: (not place.is_core, wanted[id(place)]))
            spread(row, [wanted[id(place)] for place in row])

    for _ in range(SWEEPS):
        sweep(grid[1:], lambda place: place.above)
        sweep(grid[-2::-1], lambda place: place.below)
    for _ in range(SWEEPS):
        for row in grid:
            spread(row, [neighbours_mean([*place.above, *place.below], place.x) for place in row])


def straighten(grid: list[list[Place]], arrows: list[list[Place]]) -> None:
    """Let each long arrow run upright for as far as the boxes leave it room."""
    for _ in range(SWEEPS):
        wanted: dict[int, float] = {}
        for path in arrows:
            crossings = path[1:-1]
            upright = neighbours_mean(crossings, 0.0)
            wanted |= {id(crossing): upright for crossing in crossings}
        for row in grid:
            spread(row, [wanted.get(id(place), place.x) for place in row], box_weight=50.0)


def draw(grid: list[list[Place]], arrows: list[list[Place]]) -> str:
    """The picture as SVG."""
    places = [place for row in grid for place in row]
    left = min(place.x - place.half_width for place in places) - MARGIN
    right = max(place.x + place.half_width for place in places) + MARGIN
    for place in places:
        place.x -= left
    width = round(right - left)
    height = round(grid[-1][0].y + BOX_HEIGHT + MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        "<title>Which package imports which</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect class="card" width="{width}" height="{height}" rx="10"/>',
        f'<text class="title" x="{MARGIN}" y="34">Which package imports which</text>',
        f'<text class="note" x="{MARGIN}" y="54">An arrow is an import; those that follow from '
        "others are left out. Blue: tailor. Amber: tailor_experiments.</text>",
    ]
    parts += [draw_arrow(path) for path in arrows]
    parts += [draw_box(place) for place in places if place.is_box]
    return "\n".join([*parts, "</svg>"]) + "\n"


def draw_box(place: Place) -> str:
    package = "core" if place.is_core else "experiments"
    name = place.name.removeprefix(f"{CORE}.").removeprefix(f"{EXPERIMENTS}.")
    contents = escape(CONTENTS.get(place.name, ""))
    return (
        f'<rect class="{package}" x="{place.x - BOX_WIDTH / 2:.1f}" y="{place.y:.1f}" '
        f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="7"/>'
        f'<text class="name" x="{place.x:.1f}" y="{place.y + 20:.1f}">{escape(name)}</text>'
        f'<text class="contents" x="{place.x:.1f}" y="{place.y + 37:.1f}">{contents}</text>'
    )


def port(box: Place, other: Place, neighbours: list[Place]) -> float:
    """Where on a box's edge its arrow to another place begins or ends: side by side, in order."""
    order = sorted(neighbours, key=lambda place: place.x)
    step = min(34.0, (BOX_WIDTH - 40) / max(1, len(order) - 1))
    place = next(number for number, each in enumerate(order) if each is other)
    return box.x + (place - (len(order) - 1) / 2) * step


def draw_arrow(path: list[Place]) -> str:
    """A smooth line through the places of an arrow, upright where it crosses a row."""
    first, last = path[0], path[-1]
    points = [(port(first, path[1], first.below), first.y + BOX_HEIGHT)]
    for place in path[1:-1]:
        points += [(place.x, place.y), (place.x, place.y + BOX_HEIGHT)]
    points.append((port(last, path[-2], last.above), last.y - 1))
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        middle = (y0 + y1) / 2
        text += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return f'<path class="arrow" d="{text}" marker-end="url(#head)"/>'


def picture() -> str:
    edges = without_implied(package_imports())
    grid, arrows = make_places(edges, rows_of(edges))
    arrange(grid)
    straighten(grid, arrows)
    return draw(grid, arrows)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    path.write_text(picture(), encoding="utf-8")
    print(f"drawn: {path}")


if __name__ == "__main__":
    main()
