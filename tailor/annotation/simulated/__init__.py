"""Annotators that are simulated from known labels, with mistakes if wanted."""

from tailor.annotation.simulated.known_labels import KnownLabels, SimulatedAnnotator
from tailor.annotation.simulated.noisy_annotator import NoisyAnnotator

__all__ = ["KnownLabels", "NoisyAnnotator", "SimulatedAnnotator"]
