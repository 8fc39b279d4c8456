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
    most_labels = max(estimate["labels"] for estimate in estimates) or 1
    lowest = min(estimate["lower"] for estimate in estimates)
    # A good model is shown closer, so that a gain can be seen.
    floor = 0.5 if lowest >= 0.5 else 0.0
    scale = _Scale(most_labels, floor)
    line = [scale.point(estimate["labels"], estimate["accuracy"]) for estimate in estimates]
    upper = [scale.point(estimate["labels"], estimate["upper"]) for estimate in estimates]
    lower = [scale.point(estimate["labels"], estimate["lower"]) for estimate in estimates]
    band = ""
    if len(estimates) > 1:
        band = _svg_path(upper + lower[::-1]) + "Z"
    x_ticks = [Tick(scale.x(labels), f"{labels:,}") for labels in (0, most_labels)]
    shares = (floor, (floor + 1) / 2, 1.0)
    y_ticks = [Tick(scale.y(share), f"{share:.0%}") for share in shares]
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

    def point(self, labels: float, share: float) -> tuple[float, float]:
        return self.x(labels), self.y(share)


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
    return [
        Bar(
            row["name"],
            row["count"],
            share=_percent(row["count"], longest),
        )
        for row in counts
    ]


def arm_bars(arms: Sequence[dict[str, Any]]) -> list[Bar]:
    """arms: [{"name", "pulls", "round_pulls", "found": {class: count}}, ...] -> bars with what each
    found most.
    """
    longest = max((arm["pulls"] for arm in arms), default=0)
    return [
        Bar(
            arm["name"],
            arm["pulls"],
            share=_percent(arm["pulls"], longest),
            note=_found_most(arm["found"]) or "nothing answered yet",
            this_round=arm["round_pulls"],
        )
        for arm in arms
    ]


def _percent(count: int, longest: int) -> float:
    return round(100 * count / (longest or 1), 1)


def _found_most(found: dict[str, int]) -> str:
    """ "cat 9, dog 3, fox 2, others 1" """
    names = [name for name, count in found.items() if count]
    names.sort(key=lambda name: (-found[name], name))
    named = names[:CLASSES_NAMED]
    parts = [f"{name} {found[name]}" for name in named]
    others = sum(found[name] for name in names[CLASSES_NAMED:])
    if others:
        parts.append(f"others {others}")
    return ", ".join(parts)
