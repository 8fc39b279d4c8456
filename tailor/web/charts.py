"""Numbers as pictures: all that a template needs to draw them, in a box of fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 300.0
HEIGHT = 120.0
# margins for what is written on the axes
LEFT = 30.0
RIGHT = 8.0
TOP = 8.0
BOTTOM = 20.0
#: classes that are named of what an arm found
CLASSES_NAMED = 3


@dataclass(frozen=True)
class Tick:
    position: float  # along its axis
    text: str


@dataclass(frozen=True)
class AccuracyLine:
    """Accuracy over labels: a line, the band of its interval, and what to say to those who don't
    see it.
    """

    path: str
    band: str
    points: tuple[tuple[float, float], ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    last: dict[str, Any]
    description: str


def accuracy_line(estimates: Sequence[dict[str, Any]]) -> AccuracyLine | None:
    """estimates: [{"labels", "accuracy", "lower", "upper"}, ...], oldest first."""
    if not estimates:
        return None
    most_labels = max(estimate["labels"] for estimate in estimates)
    most_labels = most_labels or 1  # the scale divides by it
    lowest = min(estimate["lower"] for estimate in estimates)
    # A good model is shown closer, so that a gain can be seen.
    if lowest >= 0.5:
        floor = 0.5
    else:
        floor = 0.0
    scale = _Scale(most_labels, floor)
    line = scale.points(estimates, "accuracy")
    band = ""
    if len(estimates) > 1:
        upper = scale.points(estimates, "upper")
        lower = scale.points(estimates, "lower")
        # Along the upper edge, and back along the lower one.
        outline = upper + lower[::-1]
        band = _svg_path(outline) + "Z"
    x_ticks = []
    for labels in (0, most_labels):
        x_ticks.append(Tick(scale.x(labels), f"{labels:,}"))
    y_ticks = []
    for share in (floor, (floor + 1) / 2, 1.0):
        y_ticks.append(Tick(scale.y(share), f"{share:.0%}"))
    return AccuracyLine(
        path=_svg_path(line),
        band=band,
        points=tuple(line),
        x_ticks=tuple(x_ticks),
        y_ticks=tuple(y_ticks),
        last=estimates[-1],
        description=_describe(estimates),
    )


@dataclass(frozen=True)
class _Scale:
    """From labels and shares to places in the box."""

    most_labels: int
    floor: float  # the share at the bottom

    def x(self, labels: float) -> float:
        width = WIDTH - LEFT - RIGHT
        return round(LEFT + width * labels / self.most_labels, 1)

    def y(self, share: float) -> float:
        height = HEIGHT - TOP - BOTTOM
        from_bottom = (share - self.floor) / (1 - self.floor)
        return round(TOP + height * (1 - from_bottom), 1)

    def points(self, estimates: Sequence[dict[str, Any]], figure: str) -> list[tuple[float, float]]:
        """The places of one figure of the estimates: "accuracy", "lower" or "upper"."""
        points = []
        for estimate in estimates:
            x = self.x(estimate["labels"])
            y = self.y(estimate[figure])
            points.append((x, y))
        return points


def _svg_path(points: Sequence[tuple[float, float]]) -> str:
    corners = [f"{x},{y}" for x, y in points]
    return "M" + " L".join(corners)


def _describe(estimates: Sequence[dict[str, Any]]) -> str:
    first = estimates[0]
    last = estimates[-1]
    return (
        f"Accuracy on the hold-out after {last['labels']} labels: {last['accuracy']:.0%}, between "
        f"{last['lower']:.0%} and {last['upper']:.0%}. {len(estimates)} measurements, the first "
        f"{first['accuracy']:.0%}."
    )


@dataclass(frozen=True)
class Bar:
    name: str
    count: int
    share: float  # of the longest, in percent
    note: str = ""
    this_round: int = 0  # of these, in this round


def class_bars(counts: Sequence[dict[str, Any]]) -> list[Bar]:
    """counts: [{"name", "count"}, ...], rarest first."""
    longest = max((row["count"] for row in counts), default=0)
    bars = []
    for row in counts:
        count = row["count"]
        share = _percent(count, longest)
        bars.append(Bar(row["name"], count, share))
    return bars


def arm_bars(arms: Sequence[dict[str, Any]]) -> list[Bar]:
    """arms: [{"name", "pulls", "round_pulls", "found": {class: count}}, ...] -> bars with what each
    found most.
    """
    longest = max((arm["pulls"] for arm in arms), default=0)
    bars = []
    for arm in arms:
        pulls = arm["pulls"]
        note = _most_frequent(arm["found"])
        bar = Bar(
            arm["name"],
            pulls,
            share=_percent(pulls, longest),
            note=note or "nothing answered yet",
            this_round=arm["round_pulls"],
        )
        bars.append(bar)
    return bars


def _percent(count: int, longest: int) -> float:
    return round(100 * count / (longest or 1), 1)


def _most_frequent(counts: dict[str, int]) -> str:
    """ "cat 9, dog 3, fox 2, others 1" """
    # Of equally frequent classes the first by name: the page must not change by itself.
    names = sorted(counts, key=lambda name: (-counts[name], name))
    parts = []
    others = 0
    for rank, name in enumerate(names):
        count = counts[name]
        if rank >= CLASSES_NAMED:
            others += count
        elif count:
            parts.append(f"{name} {count}")
    if others:
        parts.append(f"others {others}")
    return ", ".join(parts)
