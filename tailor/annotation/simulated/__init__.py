"""Who answers: known labels, for simulating, with mistakes if wanted."""

from tailor.annotation.simulated.known_labels import Known
from tailor.annotation.simulated.noisy_annotator import Noisy

__all__ = ["Known", "Noisy"]
