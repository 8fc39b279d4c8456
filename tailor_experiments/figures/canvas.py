"""A figure with panels of one size, its texts, and its files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: enough for a page on a screen; the PDF beside it is for print
DPI = 110
#: inches
TITLE_HEIGHT = 0.7
BETWEEN_ROWS = 0.2
BELOW = 0.55


def plain_texts() -> AbstractContextManager[None]:
    """A dollar in a contender's label is a dollar, not mathematics."""
    from matplotlib import rc_context

    return rc_context({"text.parse_math": False})


def make_grid(
    rows: int,
    columns: int,
    *,
    panel: tuple[float, float],
    title: str,
    left: tuple[float, float],
    right: float,
) -> tuple[Figure, list[list[Axes]]]:
    """Panels of one size; all sizes in inches.

    Measuring every text to find these, as matplotlib's layouts do, takes as long as drawing.

    panel  width and height of each
    left   room left of the first column, and of each other
    right  room right of the last column
    """
    panel_width, panel_height = panel
    first_left, other_left = left
    width = first_left + columns * panel_width + (columns - 1) * other_left + right
    height = TITLE_HEIGHT + rows * panel_height + (rows - 1) * BETWEEN_ROWS + BELOW
    figure = _titled_figure(width, height, title)
    grid: list[list[Axes]] = []
    for row in range(rows):
        y = height - TITLE_HEIGHT - row * (panel_height + BETWEEN_ROWS) - panel_height
        axes = []
        for column in range(columns):
            x = first_left + column * (panel_width + other_left)
            axes.append(
                _add_panel(
                    figure,
                    x,
                    y,
                    panel,
                )
            )
        grid.append(axes)
    return figure, grid


def _titled_figure(width: float, height: float, title: str) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI)
    FigureCanvasAgg(figure)  # a canvas of its own: pyplot would keep the figure
    figure.text(
        0.5,
        1 - 0.15 / height,
        title,
        fontsize=11,
        ha="center",
        va="top",
    )
    return figure


def _add_panel(
    figure: Figure,
    x: float,
    y: float,
    panel: tuple[float, float],
) -> Axes:
    """With its lower left corner at x, y."""
    panel_width, panel_height = panel
    width, height = figure.get_size_inches()
    # matplotlib wants parts of the whole.
    frame = (
        x / width,
        y / height,
        panel_width / width,
        panel_height / height,
    )
    return figure.add_axes(frame)


@cache
def text_width(label: str, size: float) -> float:
    """Inches that a label takes."""
    from matplotlib.textpath import TextPath

    # matplotlib has no extent for an outline without any points.
    if not label.strip():
        return 0.0
    # The outline alone, without a figure that would have to be drawn for it.
    outline = TextPath((0, 0), label, size=size)
    points = outline.get_extents().width
    return float(points) / 72


def save(figure: Figure, paths: Sequence[Path]) -> None:
    for path in paths:
        if path.suffix == ".png":
            _save_png(figure, path)
        else:
            figure.savefig(path)


def _save_png(figure: Figure, path: Path) -> None:
    """In 256 colours: a third of the size, for a page that holds many."""
    from PIL import Image

    image = Image.fromarray(_pixels(figure))
    # Dithering would put dots of other colours beside the lines.
    reduced = image.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced.save(path, dpi=(DPI, DPI))


def _pixels(figure: Figure) -> np.ndarray:
    """(height, width, 3) uint8; figures have no transparent parts."""
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
    return np.ascontiguousarray(pixels)
