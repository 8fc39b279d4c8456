"""What the page beside the picture shows: numbers that are cheap to give, and why a picture was
chosen.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

import numpy as np

from tailor.annotation.items import likeliest
from tailor.run.state import PickRecord, RunState

#: names of unreadable examples that are told
MOST_NAMES = 20


def counts(run_state: RunState) -> list[dict[str, Any]]:
    """Labels of each class, rarest first."""
    ordered = sorted(run_state.counts().items(), key=lambda item: item[1])
    return [{"name": name, "count": count} for name, count in ordered]


def open_rounds(run_state: RunState, unasked: int) -> list[dict[str, Any]]:
    """Rounds that are not done, oldest first, the current one last: what of each is answered,
    skipped and left.

    A round begins when all of the one before has been handed out, so that several may be open at
    once. unasked: picks of the current batch that are still to be made
    """
    if not run_state.rounds:
        return []
    current = len(run_state.rounds) - 1
    numbers = {run_state.pick_records[position][0] for position in run_state.waiting}
    rows = [_round(run_state, number) for number in sorted(numbers | {current})]
    rows[-1]["left"] += run_state.askable(unasked)
    for row in rows:
        row["size"] = row["answered"] + row["skipped"] + row["voted"] + row["left"]
    return rows


def _round(run_state: RunState, number: int) -> dict[str, Any]:
    record = run_state.rounds[number]
    # one that was skipped, offered again and asked again belongs to the later round
    asked = [
        position
        for position in run_state.asked_in[number]
        if run_state.pick_records[position][0] == number
    ]
    where = np.array(asked, np.int64)
    voted = sum(position in run_state.votes.open for position in asked)
    return {
        "number": number,
        "answered": int(
            (
                run_state.label_table.has_label(where) | run_state.holdout_table.has_label(where)
            ).sum()
        ),
        "skipped": sum(run_state.is_skipped(position) for position in asked),
        "voted": voted,  # and someone else is to vote too
        "left": sum(position in run_state.waiting for position in asked) - voted,
        "spare": max(0, record.asked - record.size),  # beyond the batch, as the next round was late
    }


def unreadable(run_state: RunState) -> dict[str, Any]:
    """How much of the pool can't be read, with a few names and the reasons."""
    gone = dict.fromkeys(run_state.vanished, "it has vanished from the pool")
    entries = (
        {"name": run_state.ids[p], "reason": why}
        for p, why in chain(run_state.aside.items(), gone.items())
    )
    files = ({"name": name, "reason": why} for name, why in run_state.files.items())
    count = len(run_state.files) + len(run_state.aside.keys() | gone.keys())
    return {"count": count, "some": list(islice(chain(files, entries), MOST_NAMES))}


def holdout(run_state: RunState) -> list[dict[str, Any]]:
    """Accuracy on the hold-out over time: after so many labels, on so many examples, with its
    interval.
    """
    return [
        {
            "round": record.number,
            "labels": record.labels
            if record.labels is not None
            else sum(r.asked for r in run_state.rounds[:number]),
            "examples": record.estimate.examples,
            "accuracy": record.estimate.accuracy,
            "lower": record.estimate.lower,
            "upper": record.estimate.upper,
        }
        for number, record in enumerate(run_state.rounds)
        if record.estimate is not None
    ]


def arms(run_state: RunState) -> list[dict[str, Any]]:
    """Every arm that was pulled, the most pulled first, and what it found."""
    arm_statistics = run_state.arm_statistics
    names = run_state.task.classes
    rows = []
    for arm, pulls in arm_statistics.pulls.most_common():
        found = arm_statistics.found.get(arm)
        rows.append(
            {
                "name": run_state.arm_name(arm),
                "family": run_state.learner.arms[arm].family
                if arm >= 0
                else run_state.arm_name(arm),
                "pulls": pulls,
                "round_pulls": arm_statistics.pulls_now[arm],
                "found": {}
                if found is None
                else {names[k]: int(found[k]) for k in np.flatnonzero(found).tolist()},
            }
        )
    return rows


def why(run_state: RunState, position: int) -> dict[str, Any]:
    """Why an example was chosen, as values and as plain sentences."""
    task = run_state.task
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
    predicted = likeliest(task, pick_record.predicted)
    expected = likeliest(task, pick_record.mean)
    return {
        "id": pick_record.id,
        "arm": pick_record.arm,
        "round": pick_record.round,
        "chance": round(pick_record.chance, 4),
        "predicted": predicted,
        "expected": expected,
        "worth": likeliest(task, pick_record.weights),
        "sentences": _sentences(pick_record, predicted, expected),
    }


def _sentences(
    pick_record: PickRecord, predicted: dict[str, float], expected: dict[str, float]
) -> list[str]:
    if pick_record.arm == "hold-out":
        said = [
            "Chosen at random for the hold-out: its label measures the model and is never trained "
            "on."
        ]
    elif pick_record.arm == "random start":
        said = ["Chosen at random: there was no model yet."]
    elif pick_record.arm == "(nobody)":
        said = ["Chosen at random: every arm in the plan had run dry."]
    else:
        said = [
            f"Chosen by {pick_record.arm}, which had a chance of {pick_record.chance:.0%} for "
            "each place in this round."
        ]
    if expected:
        best, share = next(iter(expected.items()))
        said.append(f"Of what it picks, about {share:.0%} is expected to be {best}.")
    if predicted:
        best, share = next(iter(predicted.items()))
        said.append(f"The model thought: {best}, {share:.0%}.")
    return said
