"""Figures that survive greyscale: every curve has its own shade, dash and marker, and no legend
lies on a curve.
"""

from tailor_experiments.figures.curve_panels import Curves, draw_panels, panels
from tailor_experiments.figures.interval_panels import Interval, draw_intervals, intervals
from tailor_experiments.figures.looks import Look, style

__all__ = [
    "Curves",
    "Interval",
    "Look",
    "draw_intervals",
    "draw_panels",
    "intervals",
    "panels",
    "style",
]
