"""Looking through what is labelled: filtered and in pages, with disagreements and agreement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tailor.annotation.agreement import agreement
from tailor.annotation.items import ItemPage, make_item
from tailor.annotation.model_watch import ModelWatch
from tailor.common.checks import check_flag, check_text, check_whole
from tailor.errors import InputError
from tailor.insight.unlearned import NOTHING_SAID, Judgement, contradicts, judge_labels
from tailor.run.records import NO_ARM_NAMES
from tailor.run.session import Session
from tailor.run.state import RunState
from tailor.selection.pick_columns import NEVER

#: items on one page at the most
LARGEST_PAGE = 1000


class Review:
    """The labelled examples of a run. Safe to call from many threads."""

    def __init__(self, session: Session, model_watch: ModelWatch) -> None:
        self._session = session
        self._model_watch = model_watch

    def labelled(
        self,
        *,
        klass: str | None = None,
        arm: str | None = None,
        annotator: str | None = None,
        disagrees: bool = False,
        model_says: str | None = None,
        holdout: bool = False,
        doubtful_first: bool = False,
        offset: int = 0,
        limit: int = 100,
    ) -> ItemPage:
        """Examples with a label that pass every filter, in the order of the pool.

        arm        the name of the arm that asked for it; "" where nobody did
        annotator  who gave the label or a vote
        disagrees  only where a model that has not learned the label says otherwise; of a random
                   start, before anything was measured, where the model of today does
        model_says      only where such a model says this class (multi-label: doubts it most)
        holdout         only the hold-out
        doubtful_first  in the order of how likely a label is wrong, as such a model sees it
        """
        disagrees = check_flag(disagrees, "disagrees")
        holdout = check_flag(holdout, "holdout")
        doubtful_first = check_flag(doubtful_first, "doubtful_first")
        filters = {
            "klass": klass,
            "arm": arm,
            "annotator": annotator,
            "model_says": model_says,
        }
        for name, value in filters.items():
            if value is not None:
                check_text(value, name)
        with self._session.lock:
            run_state = self._session.run_state
            positions = labelled_positions(
                run_state,
                klass=klass,
                arm=arm,
                annotator=annotator,
                holdout=holdout,
            )
            judgement = self._judge(positions)
            keep = np.ones(len(positions), bool)
            if disagrees:
                keep &= contradicts(run_state, positions, judgement)
            if model_says is not None:
                keep &= judgement.says == run_state.task.index(model_says)
            rows = np.flatnonzero(keep)
            if doubtful_first:
                # Stable: what is equally doubtful stays in the order of the pool.
                order = np.argsort(-judgement.doubt[rows], kind="stable")
                rows = rows[order]
            return self._judged_page(positions, judgement, rows, offset, limit)

    def _judge(self, positions: np.ndarray) -> Judgement:
        return judge_labels(
            self._session.run_state,
            positions,
            self._model_watch.facts,
            self._session.probs,
        )

    def _judged_page(
        self,
        positions: np.ndarray,
        judgement: Judgement,
        rows: np.ndarray,
        offset: int,
        limit: int,
    ) -> ItemPage:
        """A page of positions (n,) at rows (m,), each with what the model thinks of its label."""
        page = self._page(positions[rows].tolist(), offset, limit)
        classes = self._session.run_state.task.classes
        items = []
        for row, item in zip(rows[offset:].tolist(), page.items):
            says = int(judgement.says[row])
            if says != NOTHING_SAID:
                doubt = round(float(judgement.doubt[row]), 4)
                item = replace(item, doubt=doubt, model_says=classes[says])
            items.append(item)
        return ItemPage(tuple(items), page.total)

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
    *,
    klass: str | None,
    arm: str | None,
    annotator: str | None,
    holdout: bool,
) -> np.ndarray:
    """(n,) the positions with a label that pass every filter, ascending."""
    label_table = run_state.label_table
    positions = label_table.answers.labels.positions
    # Each filter looks only at what the ones before it left, the cheap ones first.
    if arm is not None:
        arm_number = _arm_number(run_state, arm)
        positions = _asked_by(run_state, positions, arm_number)
    if klass is not None:
        positions = _labelled_with(run_state, positions, klass)
    if holdout:
        positions = positions[label_table.picks.is_holdout(positions)]
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
