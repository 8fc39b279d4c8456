"""Whether to go on labelling, in one sentence, and what it rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tailor.insight.intervals import ENOUGH, Share
from tailor.insight.learning_curve import ExpectedGain, Measurement, expected_gain
from tailor.insight.search_progress import SearchProgress, search_progress
from tailor.run.state import RunState

#: labels that the gain is told for
NEXT_LABELS = 100
#: a gain below this is not worth so many labels
WORTHWHILE = 0.01
#: of what is searched for, this share found is enough
ENOUGH_RECALL = 0.95
#: answers whose agreement with the model is told
LAST_ANSWERS = 50
#: classes that are named before the rest is counted
CLASSES_NAMED = 3


@dataclass(frozen=True)
class Advice:
    """What to do, and why.

    verdict    "stop", "go on", "unsure"
    sentence   for the user
    gain       of the next NEXT_LABELS labels; None before three rounds were measured
    foreseen   of the last answers, how many the model had said before they came; None where it had
               said nothing. Arms ask where the model is unsure, so the pool's share is higher
    unmeasured classes without an example in the hold-out, of which no accuracy is known
    search     in a search: all classes together
    """

    verdict: str
    sentence: str
    gain: ExpectedGain | None
    foreseen: Share | None
    unmeasured: tuple[str, ...]
    search: SearchProgress | None

    def as_json(self) -> dict[str, Any]:
        foreseen = None
        if self.foreseen is not None:
            foreseen = self.foreseen.as_json()
        return asdict(self) | {"foreseen": foreseen, "unmeasured": list(self.unmeasured)}


def advise(run_state: RunState, why_stop: str | None = None) -> Advice:
    """From the run's state alone: cheap, and without the model. why_stop: a goal or stopping rule
    that is met, in words.
    """
    measurements = _measurements(run_state)
    gain = expected_gain(measurements, NEXT_LABELS)
    unmeasured = _unmeasured(run_state)
    search = _search(run_state)
    verdict, sentence = _decide(run_state, why_stop, gain, search)
    if verdict != "stop" and gain is not None and unmeasured:
        sentence += f" {_unmeasured_words(unmeasured)}"
    return Advice(
        verdict=verdict,
        sentence=sentence,
        gain=gain,
        foreseen=_foreseen(run_state),
        unmeasured=unmeasured,
        search=search,
    )


def _decide(
    run_state: RunState,
    why_stop: str | None,
    gain: ExpectedGain | None,
    search: SearchProgress | None,
) -> tuple[str, str]:
    if why_stop is not None:
        return "stop", f"Stop: {why_stop}."
    if run_state.settings.holdout == 0:
        return "unsure", "There is no hold-out, so nothing honest can be said: set one up."
    measured = run_state.label_table.holdout_total.examples
    if measured < ENOUGH:
        return (
            "go on",
            f"Go on: {measured} of the {ENOUGH} hold-out labels are there that advice needs.",
        )
    if search is not None:
        return _decide_search(search)
    if gain is None:
        return "go on", "Go on: the model is measured after each round, and three are needed."
    return _decide_gain(gain)


def _decide_gain(gain: ExpectedGain) -> tuple[str, str]:
    points = _points(gain.gain)
    expected = (
        f"the next {gain.labels} labels are expected to bring {points} "
        f"({100 * gain.lower:+.1f} to {100 * gain.upper:+.1f}), by {gain.rounds} rounds measured "
        f"on {gain.examples} examples"
    )
    if gain.gain >= WORTHWHILE:
        return "go on", f"Go on: {expected}."
    if gain.upper < 3 * WORTHWHILE:
        return "stop", f"You can stop: {expected}."
    return "unsure", f"It may be enough: {expected}."


def _points(share: float) -> str:
    points = f"{100 * share:.1f}"
    return f"{points} points of accuracy"


def _decide_search(search: SearchProgress) -> tuple[str, str]:
    found = f"{search.found:,} positives are found"
    if search.recall is None:
        return "unsure", "Nothing that is searched for is found yet, and the hold-out has none."
    recall = (
        f"{100 * search.recall:.0f}% of what there is "
        f"({100 * search.recall_lower:.0f} to {100 * search.recall_upper:.0f}%)"
    )
    left = f"about {search.left:,} are left ({search.left_lower:,} to {search.left_upper:,})"
    if search.recall_lower >= ENOUGH_RECALL:
        return "stop", f"You can stop: {found}, {recall}."
    if search.recall >= ENOUGH_RECALL:
        return "unsure", f"It may be enough: {found}, {recall}; {left}."
    return "go on", f"Go on: {found}, {recall}; {left}."


def _measurements(run_state: RunState) -> list[Measurement]:
    measurements = []
    for record in run_state.rounds:
        estimate = record.estimate
        # Version 0.1.0 wrote no number of labels.
        if estimate is None or record.labels is None:
            continue
        measurement = Measurement(record.labels, estimate.examples, estimate.accuracy)
        measurements.append(measurement)
    return measurements


def _foreseen(run_state: RunState) -> Share | None:
    """Of the last answers, those that the model had said when it asked."""
    table = run_state.label_table
    task = run_state.task
    right = 0
    count = 0
    for asked in reversed(run_state.asked_in):
        for position in reversed(asked):
            if count == LAST_ANSWERS:
                return Share(right, count)
            prediction = table.picks.prediction_of(position)
            label = run_state.label_of(position)
            if prediction is None or label is None:
                continue
            says = task.predicted(prediction[None])[0]
            is_labelled = label > 0.5
            if np.array_equal(says, is_labelled):
                right += 1
            count += 1
    if count == 0:
        return None
    return Share(right, count)


def _unmeasured(run_state: RunState) -> tuple[str, ...]:
    if run_state.settings.holdout == 0:
        return ()
    counts = run_state.label_table.holdout_total.by_class
    unmeasured = []
    for name, count in zip(run_state.task.classes, counts, strict=True):
        if count == 0:
            unmeasured.append(name)
    return tuple(unmeasured)


def _unmeasured_words(names: tuple[str, ...]) -> str:
    listed = ", ".join(names[:CLASSES_NAMED])
    others = len(names) - CLASSES_NAMED
    if others > 0:
        listed += f" and {others} more"
    return f"The hold-out has no example of {listed}: their accuracy is not known."


def _search(run_state: RunState) -> SearchProgress | None:
    """Positives of all classes, where the run's reward is for finding them; a search among
    exclusive classes finds something in every example, and has no end.
    """
    name, _, _ = run_state.settings.reward.partition("(")
    if name != "search" or run_state.task.kind != "multi-label":
        return None
    table = run_state.label_table
    holdout_labels = table.labels_of(table.holdout_labelled)
    told = table.answers.labels
    all_labels = told.get(told.positions)
    positives = _count_positive(holdout_labels)
    in_pool = Share(positives, len(holdout_labels))
    found = _count_positive(all_labels)
    return search_progress(in_pool, found, len(run_state.ids))


def _count_positive(labels: np.ndarray) -> int:
    """How many of labels (n, K) have a class at all."""
    has_class = labels.sum(1) > 0
    return int(has_class.sum())
