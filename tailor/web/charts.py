"""Numbers as shapes: everything a template needs to draw them, in a square of fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 300.0, 120.0
LEFT, BOTTOM, TOP, RIGHT = 30.0, 20.0, 8.0, 8.0  # margins for what is written on the axes


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """Accuracy over labels: a line, the band of its interval, and what to say to those who don't
    see it.
    """

    path: str
    band: str
    points: tuple[tuple[float, float], ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    last: dict[str, Any]
    words: str


def accuracy_line(estimates: Sequence[dict[str, Any]]) -> Line | None:
    """estimates: [{"labels", "accuracy", "lower", "upper"}, ...], oldest first."""
    if not estimates:
        return None
    most = max(e["labels"] for e in estimates) or 1
    low = max(0.0, min(e["lower"] for e in estimates))
    floor = 0.5 if low >= 0.5 else 0.0

    def x(labels: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * labels / most, 1)

    def y(share: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - (share - floor) / (1 - floor)), 1)

    points = tuple((x(e["labels"]), y(e["accuracy"])) for e in estimates)
    above = [f"{x(e['labels'])},{y(e['upper'])}" for e in estimates]
    below = [f"{x(e['labels'])},{y(e['lower'])}" for e in reversed(estimates)]
    last = estimates[-1]
    words = (
        f"Accuracy on the hold-out after {last['labels']} labels: {last['accuracy']:.0%}, between "
        f"{last['lower']:.0%} "
        f"and {last['upper']:.0%}. {len(estimates)} measurements, the first "
        f"{estimates[0]['accuracy']:.0%}."
    )
    return Line(
        path="M" + " L".join(f"{px},{py}" for px, py in points),
        band="M" + " L".join(above + below) + "Z" if len(points) > 1 else "",
        points=points,
        across=tuple(Tick(x(n), f"{n:,}") for n in (0, most)),
        up=tuple(Tick(y(s), f"{s:.0%}") for s in ((0.5, 0.75, 1.0) if floor else (0.0, 0.5, 1.0))),
        last=last,
        words=words,
    )


@dataclass(frozen=True)
class Bar:
    name: str
    count: int
    share: float  # of the longest, in percent
    note: str = ""
    now: int = 0  # of these, in this round


def class_bars(counts: Sequence[dict[str, Any]]) -> list[Bar]:
    """counts: [{"name", "count"}, ...], rarest first."""
    most = max((one["count"] for one in counts), default=0) or 1
    return [Bar(one["name"], one["count"], round(100 * one["count"] / most, 1)) for one in counts]


def arm_bars(arms: Sequence[dict[str, Any]], classes: int = 3) -> list[Bar]:
    """arms: [{"name", "pulls", "round_pulls", "found": {class: count}}, ...] -> bars with what each
    found most.
    """
    most = max((one["pulls"] for one in arms), default=0) or 1
    bars = []
    for one in arms:
        found = sorted(
            ((n, c) for c, n in one["found"].items() if n), key=lambda pair: (-pair[0], pair[1])
        )
        rest = sum(n for n, _ in found[classes:])
        note = ", ".join(f"{name} {n}" for n, name in found[:classes]) + (
            f", others {rest}" if rest else ""
        )
        share = round(100 * one["pulls"] / most, 1)
        bars.append(
            Bar(
                one["name"], one["pulls"], share, note or "nothing answered yet", one["round_pulls"]
            )
        )
    return bars
