"""What the page beside the picture shows: numbers that are cheap to give, and why a picture was chosen."""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

import numpy as np

from tailor.journal import Journal, Story
from tailor.live.items import likeliest

#: names of unreadable examples that are told
MOST_NAMES = 20


def counts(journal: Journal) -> list[dict[str, Any]]:
    """Labels of each class, rarest first."""
    ordered = sorted(journal.counts().items(), key=lambda item: item[1])
    return [{"name": name, "count": count} for name, count in ordered]


def open_rounds(journal: Journal, unasked: int) -> list[dict[str, Any]]:
    """Rounds that are not done, oldest first, the current one last: what of each is answered, skipped and left.

    A round begins when all of the one before has been handed out, so that several may be open at once.
    unasked: picks of the current batch that are still to be made
    """
    if not journal.rounds:
        return []
    current = len(journal.rounds) - 1
    numbers = {journal.stories[position][0] for position in journal.waiting}
    rows = [_round(journal, number) for number in sorted(numbers | {current})]
    rows[-1]["left"] += journal.askable(unasked)
    for row in rows:
        row["size"] = row["answered"] + row["skipped"] + row["voted"] + row["left"]
    return rows


def _round(journal: Journal, number: int) -> dict[str, Any]:
    record = journal.rounds[number]
    # one that was skipped, offered again and asked again belongs to the later round
    asked = [position for position in journal.asked_in[number] if journal.stories[position][0] == number]
    where = np.array(asked, np.int64)
    voted = sum(position in journal.votes.open for position in asked)
    return {
        "number": number,
        "answered": int((journal.books.has_label(where) | journal.kept.has_label(where)).sum()),
        "skipped": sum(journal.is_skipped(position) for position in asked),
        "voted": voted,  # and someone else is to vote too
        "left": sum(position in journal.waiting for position in asked) - voted,
        "spare": max(0, record.asked - record.size),  # beyond the batch, as the next round was late
    }


def unreadable(journal: Journal) -> dict[str, Any]:
    """How much of the pool can't be read, with a few names and the reasons."""
    gone = dict.fromkeys(journal.vanished, "it has vanished from the pool")
    entries = ({"name": journal.ids[p], "reason": why} for p, why in chain(journal.aside.items(), gone.items()))
    files = ({"name": name, "reason": why} for name, why in journal.files.items())
    count = len(journal.files) + len(journal.aside.keys() | gone.keys())
    return {"count": count, "some": list(islice(chain(files, entries), MOST_NAMES))}


def reserve(journal: Journal) -> list[dict[str, Any]]:
    """Accuracy on the reserve over time: after so many labels, on so many examples, with its interval."""
    return [
        {
            "round": record.number,
            "labels": record.labels if record.labels is not None else sum(r.asked for r in journal.rounds[:number]),
            "examples": record.estimate.examples,
            "accuracy": record.estimate.accuracy,
            "lower": record.estimate.lower,
            "upper": record.estimate.upper,
        }
        for number, record in enumerate(journal.rounds)
        if record.estimate is not None
    ]


def arms(journal: Journal) -> list[dict[str, Any]]:
    """Every arm that was pulled, the most pulled first, and what it found."""
    tally, names = journal.tally, journal.task.classes
    rows = []
    for arm, pulls in tally.pulls.most_common():
        found = tally.found.get(arm)
        rows.append(
            {
                "name": journal.arm_name(arm),
                "family": journal.loop.arms[arm].family if arm >= 0 else journal.arm_name(arm),
                "pulls": pulls,
                "round_pulls": tally.pulls_now[arm],
                "found": {} if found is None else {names[k]: int(found[k]) for k in np.flatnonzero(found).tolist()},
            }
        )
    return rows


def why(journal: Journal, position: int) -> dict[str, Any]:
    """Why an example was chosen, as values and as plain sentences."""
    task, story = journal.task, journal.story(position)
    if story is None:
        return {
            "id": journal.ids[position], "arm": "", "round": -1, "chance": None, "predicted": {}, "expected": {},
            "worth": {}, "sentences": ["Nobody asked for this one: its label came from outside."],
        }  # fmt: skip
    predicted, expected = likeliest(task, story.predicted), likeliest(task, story.mean)
    return {
        "id": story.id,
        "arm": story.arm,
        "round": story.round,
        "chance": round(story.chance, 4),
        "predicted": predicted,
        "expected": expected,
        "worth": likeliest(task, story.weights),
        "sentences": _sentences(story, predicted, expected),
    }


def _sentences(story: Story, predicted: dict[str, float], expected: dict[str, float]) -> list[str]:
    if story.arm == "reserve":
        said = ["Chosen at random for the reserve: its label measures the model and is never trained on."]
    elif story.arm == "random start":
        said = ["Chosen at random: there was no model yet."]
    elif story.arm == "(nobody)":
        said = ["Chosen at random: every arm in the plan had run dry."]
    else:
        said = [f"Chosen by {story.arm}, which had a chance of {story.chance:.0%} for each place in this round."]
    if expected:
        best, share = next(iter(expected.items()))
        said.append(f"Of what it picks, about {share:.0%} is expected to be {best}.")
    if predicted:
        best, share = next(iter(predicted.items()))
        said.append(f"The model thought: {best}, {share:.0%}.")
    return said
