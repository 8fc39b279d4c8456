"""Who answers: known labels, for simulating, with mistakes if wanted."""

from tailor.annotate.known import Known
from tailor.annotate.noisy import Noisy

__all__ = ["Known", "Noisy"]
