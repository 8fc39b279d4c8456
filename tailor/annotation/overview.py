"""The numbers beside the picture, all cheap to give."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from tailor.annotation.annotators import Annotators
from tailor.annotation.batch_progress import BatchProgress
from tailor.annotation.leases import Leases
from tailor.annotation.planner import Planner
from tailor.run.session import Session
from tailor.run.state import RunState
from tailor.selection.label_table import count_askable

#: names of unreadable examples that are told
MOST_NAMES = 20


class Overview:
    """Where a run stands, for a page. Callers hold the session's lock."""

    def __init__(
        self,
        session: Session,
        *,
        planner: Planner,
        leases: Leases,
        annotators: Annotators,
        batch: BatchProgress,
    ) -> None:
        self._session = session
        self._planner = planner
        self._leases = leases
        self._annotators = annotators
        self._batch = batch

    def as_json(self) -> dict[str, Any]:
        run_state = self._session.run_state
        unpicked = self._batch.unpicked()
        answers_a_minute = 60 * self._annotators.pace()
        return {
            "classes": list(run_state.task.classes),
            "kind": run_state.task.kind,
            "progress": self._progress(run_state),
            "rounds": open_rounds(run_state, unpicked),
            "unreadable": unreadable(run_state),
            "pace": round(answers_a_minute, 1),
            "counts": class_counts(run_state),
            "holdout": holdout_estimates(run_state),
            "arms": arm_counts(run_state),
            "training": self._training(),
            "annotators": self._annotator_rows(),
            "stopped": self._session.why_stop() or self._planner.nothing_left,
        }

    def _progress(self, run_state: RunState) -> dict[str, Any]:
        batch_size = 0
        round_number = None
        current = run_state.current
        if current is not None:
            batch_size = current.size
            round_number = current.number
        return {
            "answered": run_state.answered(),
            "examples": len(run_state.ids),
            "waiting": len(run_state.waiting),
            "disputed": len(run_state.consensus.disputed),
            "left": self._batch.unanswered(),
            "batch": batch_size,
            "round": round_number,
        }

    def _training(self) -> dict[str, Any]:
        done, total = self._session.step
        return {
            "state": self._session.stage,
            "since": self._session.stage_since,
            "done": done,
            "total": total,
            "trouble": self._planner.trouble,
        }

    def _annotator_rows(self) -> list[dict[str, Any]]:
        rows = []
        for activity in self._annotators:
            leases = self._leases.held_by(activity.name)
            row = {
                "name": activity.name,
                "answered": activity.answered,
                "last": activity.last,
                "leases": len(leases),
            }
            rows.append(row)
        return rows


def class_counts(run_state: RunState) -> list[dict[str, Any]]:
    """Labels of each class, rarest first."""
    counts = run_state.counts()
    rarest_first = sorted(counts, key=counts.__getitem__)
    return [
        {
            "name": name,
            "count": counts[name],
        }
        for name in rarest_first
    ]


def open_rounds(run_state: RunState, unpicked: int) -> list[dict[str, Any]]:
    """Rounds that are not done, oldest first, the current one last: what of each is answered,
    skipped and left.

    A round begins when all of the one before has been handed out, so that several may be open at
    once. unpicked: picks of the current batch that are still to be made
    """
    if not run_state.rounds:
        return []
    label_table = run_state.label_table
    waiting = list(run_state.waiting)
    waiting_rounds = label_table.picks.round[waiting]
    numbers = set(waiting_rounds.tolist())
    current = len(run_state.rounds) - 1
    numbers.add(current)
    rows = [_round_row(run_state, number) for number in sorted(numbers)]
    # Only the current round, which is the last, has picks to be made.
    rows[-1]["left"] += count_askable(label_table, unpicked)
    for row in rows:
        answered_or_skipped = row["answered"] + row["skipped"]
        row["size"] = answered_or_skipped + row["voted"] + row["left"]
    return rows


def _round_row(run_state: RunState, number: int) -> dict[str, Any]:
    record = run_state.rounds[number]
    label_table = run_state.label_table
    positions = np.array(run_state.asked_in[number], np.int64)
    # One that was skipped, offered again and asked again belongs to the later round.
    is_of_round = label_table.picks.round[positions] == number
    positions = positions[is_of_round]
    has_label = label_table.has_label(positions)
    is_skipped = label_table.answers.skipped[positions]
    # Beyond the batch, as the next round was late.
    beyond_batch = max(0, record.asked - record.size)
    voted = 0
    waiting = 0
    for position in positions.tolist():
        if position in run_state.consensus.open:
            voted += 1
        if position in run_state.waiting:
            waiting += 1
    return {
        "number": number,
        "answered": int(has_label.sum()),
        "skipped": int(is_skipped.sum()),
        "voted": voted,  # and someone else is to vote too
        "left": waiting - voted,
        "spare": beyond_batch,
    }


def unreadable(run_state: RunState) -> dict[str, Any]:
    """How much of the pool can't be read, with a few names and the reasons."""
    vanished = dict.fromkeys(run_state.vanished, "it has vanished from the pool")
    examples = run_state.aside.keys() | vanished.keys()
    count = len(run_state.files) + len(examples)
    reasons = chain(
        run_state.files.items(), _by_id(run_state, run_state.aside), _by_id(run_state, vanished)
    )
    first_reasons = islice(reasons, MOST_NAMES)
    some = []
    for name, reason in first_reasons:
        some.append({"name": name, "reason": reason})
    return {
        "count": count,
        "some": some,
    }


def _by_id(run_state: RunState, reasons: dict[int, str]) -> Iterator[tuple[str, str]]:
    for position, reason in reasons.items():
        yield run_state.ids[position], reason


def holdout_estimates(run_state: RunState) -> list[dict[str, Any]]:
    """Accuracy on the hold-out over time: after so many labels, on so many examples, with its
    interval.
    """
    estimates = []
    asked_before = 0
    for record in run_state.rounds:
        labels = record.labels
        if labels is None:
            # A round that did not write its number of labels down asked all before it.
            labels = asked_before
        asked_before += record.asked
        estimate = record.estimate
        if estimate is None:
            continue
        row = {
            "round": record.number,
            "labels": labels,
            "examples": estimate.examples,
            "accuracy": estimate.accuracy,
            "lower": estimate.lower,
            "upper": estimate.upper,
            "balanced_accuracy": estimate.balanced_accuracy,
        }
        estimates.append(row)
    return estimates


def arm_counts(run_state: RunState) -> list[dict[str, Any]]:
    """Every arm that was pulled, the most pulled first, with the labels that its picks found."""
    arm_statistics = run_state.arm_statistics
    rows = []
    for arm, pulls in arm_statistics.pulls.most_common():
        name = run_state.arm_name(arm)
        family = name
        # Numbers below 0 stand for picks that no arm made.
        if arm >= 0:
            family = run_state.learner.arms[arm].family
        row = {
            "name": name,
            "family": family,
            "pulls": pulls,
            "round_pulls": arm_statistics.pulls_now[arm],
            "found": _labels_found(run_state, arm),
        }
        rows.append(row)
    return rows


def _labels_found(run_state: RunState, arm: int) -> dict[str, int]:
    """Labels that an arm's picks found, by class; classes of which there are none are left out."""
    labels = run_state.arm_statistics.found.get(arm)
    if labels is None:
        return {}
    label_counts: dict[str, int] = {}
    for k in np.flatnonzero(labels).tolist():
        class_name = run_state.task.classes[k]
        label_counts[class_name] = int(labels[k])
    return label_counts
