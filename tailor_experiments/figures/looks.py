"""How curves look: each has its own shade, dash and marker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Okabe and Ito's colours and some more, dark and light in turn.
COLOURS = (
    "#000000",
    "#999999",
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#444444",
    "#B8A000",
    "#882255",
    "#88CCEE",
)
DASHES: tuple[Any, ...] = (
    "-",
    ":",
    "--",
    "-.",
    (0, (6, 1, 1, 1, 1, 1)),
    (0, (8, 3)),
    (0, (2, 1)),
)
#: 7 dashes and 13 markers beside 12 colours
MARKERS = (
    "o",
    "x",
    "s",
    "^",
    "D",
    "v",
    "P",
    "*",
    "<",
    ">",
    "h",
    "d",
    "1",
)
#: of curves that belong to another row of the lineup
OTHERS = "#CCCCCC"
OTHERS_LABEL = "the others"
OTHERS_WIDTH = 0.7
#: points; the curve that a figure is about is the widest
FIRST_WIDTH = 2.6
CURVE_WIDTH = 1.4
MARKER_SIZE = 4

#: how a curve is drawn: matplotlib's options
Look = dict[str, Any]


def style(place: int) -> Look:
    """The look of the curve at a place. Counts of colours, dashes and markers share no factor: none
    comes again.
    """
    return {
        "color": _in_turn(COLOURS, place),
        "linestyle": _in_turn(DASHES, place),
        "marker": _in_turn(MARKERS, place),
        "linewidth": FIRST_WIDTH if place == 0 else CURVE_WIDTH,
    }


def _in_turn(looks: Sequence[Any], place: int) -> Any:
    return looks[place % len(looks)]
