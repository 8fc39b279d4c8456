"""Models that give all of a pool at once, or nothing: what that takes is said before it is
tried.
"""

from __future__ import annotations

from tailor.common.memory import check_room, gib
from tailor.models.base import Model

#: which family asks for each of a model's optional methods
USES = {"tuned": "weak-supervision", "dropout_at": "bald"}
#: bytes that a model without them may take without a word
MUCH = 2**30


def check_at_once(
    model: Model,
    method: str,
    examples: int,
    arrays: int,
) -> None:
    """A model without an optional method is asked for all of the pool at once: a notice where that
    is much, and InputError where it is too much.

    method  "tuned" or "dropout_at"
    arrays  how many of (N, K) float32 there are at a time
    """
    name = type(model).__name__
    needed = 4.0 * arrays * examples * model.task.size
    what = (
        f"{name} has no {method}(), so {examples:,} examples x {model.task.size:,} classes "
        "are held at once, which"
    )
    instead = (
        f"give {name} {method}(), take a model that has it (docs/concepts/scale.md), or leave "
        f"{USES[method]} out"
    )
    check_room(needed, what, instead)
    if needed > MUCH:
        model.say(f"{what} takes {gib(needed)} of memory: {instead}")
