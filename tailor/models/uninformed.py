"""The prediction for an example of which nothing is known."""

from __future__ import annotations

from tailor.task import MultiClass, Task


def uninformed_probability(task: Task) -> float:
    """The probability of a class that says nothing about it.

    >>> from tailor.task import MultiLabel
    >>> uninformed_probability(MultiClass(4)), uninformed_probability(MultiLabel(4))
    (0.25, 0.5)
    """
    if isinstance(task, MultiClass):
        return 1 / task.size
    return 0.5
