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
    shares = (0.5, 0.75, 1.0) if floor else (0.0, 0.5, 1.0)

    def x(labels: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * labels / most_labels, 1)

    def y(share: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - (share - floor) / (1 - floor)), 1)

    points = tuple((x(estimate["labels"]), y(estimate["accuracy"])) for estimate in estimates)
    upper = [f"{x(estimate['labels'])},{y(estimate['upper'])}" for estimate in estimates]
    lower = [f"{x(estimate['labels'])},{y(estimate['lower'])}" for estimate in estimates]
    outline = upper + lower[::-1]
    return AccuracyLine(
        path="M" + " L".join(f"{px},{py}" for px, py in points),
        band="M" + " L".join(outline) + "Z" if len(points) > 1 else "",
        points=points,
        x_ticks=tuple(Tick(x(labels), f"{labels:,}") for labels in (0, most_labels)),
        y_ticks=tuple(Tick(y(share), f"{share:.0%}") for share in shares),
        last=estimates[-1],
        description=_describe(estimates),
    )


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
    return [Bar(row["name"], row["count"], _percent(row["count"], longest)) for row in counts]


def arm_bars(arms: Sequence[dict[str, Any]]) -> list[Bar]:
    """arms: [{"name", "pulls", "round_pulls", "found": {class: count}}, ...] -> bars with what each
    found most.
    """
    longest = max((arm["pulls"] for arm in arms), default=0)
    return [
        Bar(
            arm["name"],
            arm["pulls"],
            _percent(arm["pulls"], longest),
            note=_found_most(arm["found"]) or "nothing answered yet",
            this_round=arm["round_pulls"],
        )
        for arm in arms
    ]


def _percent(count: int, longest: int) -> float:
    return round(100 * count / (longest or 1), 1)


def _found_most(found: dict[str, int]) -> str:
    """ "cat 9, dog 3, fox 2, others 1" """
    most_first = sorted(
        ((name, count) for name, count in found.items() if count),
        key=lambda item: (-item[1], item[0]),
    )
    parts = [f"{name} {count}" for name, count in most_first[:CLASSES_NAMED]]
    others = sum(count for _, count in most_first[CLASSES_NAMED:])
    if others:
        parts.append(f"others {others}")
    return ", ".join(parts)
