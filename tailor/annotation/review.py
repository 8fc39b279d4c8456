"""Looking through what is labelled: filtered and in pages, with disagreements and agreement."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailor.annotation.agreement import agreement
from tailor.annotation.items import ItemPage, make_item, prediction_before_label
from tailor.common.checks import check_flag, check_text, check_whole
from tailor.errors import InputError
from tailor.run.records import NO_ARM_NAMES
from tailor.run.session import Session
from tailor.run.state import RunState
from tailor.selection.pick_columns import NEVER

#: items on one page at the most
LARGEST_PAGE = 1000


class Review:
    """The labelled examples of a run. Safe to call from many threads."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def labelled(
        self,
        *,
        klass: str | None = None,
        arm: str | None = None,
        annotator: str | None = None,
        disagrees: bool = False,
        offset: int = 0,
        limit: int = 100,
    ) -> ItemPage:
        """Examples with a label that pass every filter, in the order of the pool.

        arm        the name of the arm that asked for it; "" where nobody did
        annotator  who gave the label or a vote
        disagrees  only where the model said otherwise before it learned the label; of a random
                   start, when there was no model, where it does today
        """
        disagrees = check_flag(disagrees, "disagrees")
        filters = {
            "klass": klass,
            "arm": arm,
            "annotator": annotator,
        }
        for name, value in filters.items():
            if value is not None:
                check_text(value, name)
        with self._session.lock:
            positions = labelled_positions(
                self._session.run_state,
                self._session.probs,
                klass=klass,
                arm=arm,
                annotator=annotator,
                disagrees=disagrees,
            )
            return self._page(positions.tolist(), offset, limit)

    def disagreements(self, offset: int = 0, limit: int = 100) -> ItemPage:
        """Examples whose votes are all in and give no majority, oldest first."""
        with self._session.lock:
            disputed = self._session.run_state.consensus.disputed
            return self._page(list(disputed), offset, limit)

    def agreement(self) -> dict[str, Any]:
        """How far annotators agree on shared examples; see annotation/agreement.py."""
        with self._session.lock:
            run_state = self._session.run_state
            task = run_state.task
            votes = run_state.consensus.everything()
        # Outside of the lock: with many annotators and classes it takes a while.
        return agreement(task, votes)

    def _page(
        self,
        positions: list[int],
        offset: int,
        limit: int,
    ) -> ItemPage:
        offset = check_whole(offset, "offset", least=0)
        limit = check_whole(limit, "limit", 0, LARGEST_PAGE)
        run_state = self._session.run_state
        probs = self._session.probs
        end = offset + limit
        items = []
        for position in positions[offset:end]:
            item = make_item(run_state, position, probs)
            items.append(item)
        return ItemPage(tuple(items), len(positions))


def labelled_positions(
    run_state: RunState,
    probs: np.ndarray | None,
    *,
    klass: str | None,
    arm: str | None,
    annotator: str | None,
    disagrees: bool,
) -> np.ndarray:
    """(n,) the positions with a label that pass every filter, ascending. probs (N, K): what the
    model says now.
    """
    label_table = run_state.label_table
    positions = label_table.answers.labels.positions
    # Each filter looks only at what the ones before it left, the cheap ones first.
    if arm is not None:
        arm_number = _arm_number(run_state, arm)
        positions = _asked_by(run_state, positions, arm_number)
    if klass is not None:
        positions = _labelled_with(run_state, positions, klass)
    if disagrees:
        labels = label_table.labels_of(positions)
        is_other = _model_disagrees(
            run_state,
            probs,
            positions,
            labels,
        )
        positions = positions[is_other]
    if annotator is not None:
        positions = _answered_by(run_state, positions, annotator)
    return positions


def _labelled_with(run_state: RunState, positions: np.ndarray, klass: str) -> np.ndarray:
    """Those of the positions whose label has the class."""
    labels = run_state.label_table.labels_of(positions)
    column = run_state.task.index(klass)
    has_class = labels[:, column] > 0
    return positions[has_class]


def _answered_by(run_state: RunState, positions: np.ndarray, annotator: str) -> np.ndarray:
    """Those of the positions that the annotator gave the label of, or a vote on."""
    is_answered = np.zeros(len(positions), bool)
    for row, position in enumerate(positions.tolist()):
        labelled_by, _ = run_state.answered_by.get(position, (None, None))
        votes = run_state.consensus.on(position)
        is_answered[row] = labelled_by == annotator or annotator in votes
    return positions[is_answered]


def _asked_by(run_state: RunState, positions: np.ndarray, arm: int | None) -> np.ndarray:
    """Those of the positions that the arm asked for; None: those that nobody asked for."""
    picks = run_state.label_table.picks
    if arm is None:
        never_asked = picks.round[positions] == NEVER
        return positions[never_asked]
    if arm >= 0:
        # What was offered again and then told is no arm's pick any more.
        positions = picks.credited(positions)
    was_asked = picks.round[positions] != NEVER
    is_arms = picks.arm[positions] == arm
    return positions[was_asked & is_arms]


def _model_disagrees(
    run_state: RunState,
    probs: np.ndarray | None,
    positions: np.ndarray,
    labels: np.ndarray,
) -> np.ndarray:
    """(n,) bool: whether a model that had not learned the label said something else; False where
    no model said anything. labels (n, K)
    """
    disagrees = np.zeros(len(positions), bool)
    rows = []
    predictions = []
    for row, position in enumerate(positions.tolist()):
        prediction = prediction_before_label(run_state, position, probs)
        if prediction is not None:
            rows.append(row)
            predictions.append(prediction)
    if rows:
        predicted = run_state.task.predicted(np.stack(predictions))
        has_class = labels[rows] > 0.5
        is_wrong = predicted != has_class
        disagrees[rows] = is_wrong.any(1)
    return disagrees


def _arm_number(run_state: RunState, name: str) -> int | None:
    """None for the name "": examples that nobody asked for."""
    if not name:
        return None
    numbers: dict[str, int] = {}
    for number, label in NO_ARM_NAMES.items():
        numbers[label] = number
    for number, arm in enumerate(run_state.learner.arms):
        numbers[arm.name] = number
    if name not in numbers:
        raise InputError(f"no arm is called {name!r}: `tailor arms` lists them")
    return numbers[name]
