"""Why an example was chosen, in numbers and in plain sentences."""

from __future__ import annotations

from typing import Any

from tailor.annotation.items import likeliest
from tailor.run.records import PickRecord
from tailor.run.state import RunState

#: by the name that stands in the place of an arm's, where none chose the example
RANDOM_PICKS = {
    "hold-out": "Chosen at random for the hold-out: its label measures the model and is never "
    "trained on.",
    "coverage start": "Chosen to cover the pool, in the middle of a group of examples that are "
    "alike: there was no model yet.",
    "random start": "Chosen at random: there was no model yet.",
    "(nobody)": "Chosen at random: every arm in the plan had run dry.",
}


def explain_pick(run_state: RunState, position: int) -> dict[str, Any]:
    """Which arm chose an example, in which round and with what chance; what the model predicted,
    what labels were expected of the arm and what they were worth; and all of it as sentences.
    """
    pick_record = run_state.pick_record(position)
    if pick_record is None:
        return {
            "id": run_state.ids[position],
            "arm": "",
            "round": -1,
            "chance": None,
            "predicted": {},
            "expected": {},
            "worth": {},
            "sentences": ["Nobody asked for this one: its label came from outside."],
        }
    predicted = likeliest(run_state.task, pick_record.predicted)
    expected = likeliest(run_state.task, pick_record.mean)
    return {
        "id": pick_record.id,
        "arm": pick_record.arm,
        "round": pick_record.round,
        "chance": round(pick_record.chance, 4),
        "predicted": predicted,
        "expected": expected,
        "worth": likeliest(run_state.task, pick_record.weights),
        "sentences": _sentences(
            pick_record,
            _family_words(run_state, pick_record.arm),
            predicted,
            expected,
        ),
    }


def _family_words(run_state: RunState, arm_name: str) -> str:
    """What a family says of where its picks come from; empty where no arm of now has the name."""
    for arm in run_state.learner.arms:
        if arm.name == arm_name:
            return arm.strategy.explanation()
    return ""


def _sentences(
    pick_record: PickRecord,
    family_words: str,
    predicted: dict[str, float],
    expected: dict[str, float],
) -> list[str]:
    by_arm = (
        f"Chosen by {pick_record.arm}, which had a chance of {pick_record.chance:.0%} for "
        "each place in this round."
    )
    sentences = [RANDOM_PICKS.get(pick_record.arm, by_arm)]
    if family_words:
        sentences.append(family_words)
    if expected:
        name, share = next(iter(expected.items()))
        sentences.append(f"Of what it picks, about {share:.0%} is expected to be {name}.")
    if predicted:
        name, share = next(iter(predicted.items()))
        sentences.append(f"The model thought: {name}, {share:.0%}.")
    return sentences
