"""All that the model's page tells, from the run's state and what was measured of its model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailor.insight.class_needs import ClassNeed, neediest_class
from tailor.insight.holdout_report import ClassReport, HoldoutReport, report_holdout
from tailor.insight.model_facts import ModelFacts
from tailor.insight.search_progress import SearchProgress, search_progress
from tailor.insight.unlearned import contradicts, judge_labels
from tailor.run.state import RunState
from tailor.task import Task

#: classes that a class is said to be taken for
MOST_CONFUSED = 3


@dataclass(frozen=True)
class ClassRow:
    """One class on the page.

    labels       in all
    learned      without the hold-out's
    report       by the hold-out; None where the model was not measured
    taken_for    (class, how often), most often first, by the hold-out
    progress     found and left in the pool; None without a label in the hold-out
    expected     how many more the model expects among what has no label; None where it is not known
    """

    name: str
    labels: int
    learned: int
    report: ClassReport | None
    taken_for: tuple[tuple[str, int], ...]
    progress: SearchProgress | None
    expected: float | None


@dataclass(frozen=True)
class ModelReport:
    """The model of round `round`, which knew `answers` answers.

    holdout      None before a model was measured on a labelled hold-out
    classes      in the order of the task
    mistakes     ids of the hold-out that the model has wrong, the surest first
    suspects     labels that a model which has not learned them contradicts; of `judged` labels
    need         the class that needs labels next
    """

    round: int | None
    answers: int | None
    holdout: HoldoutReport | None
    classes: tuple[ClassRow, ...]
    mistakes: tuple[str, ...]
    suspects: int
    judged: int
    need: ClassNeed | None


def model_report(run_state: RunState, facts: ModelFacts | None) -> ModelReport:
    """Hold the session's lock: it reads the run's state. Milliseconds: nothing is predicted.

    Labels are those of today, so that a correction shows at once; predictions are those of the
    model that was measured last, None where the classes were changed since.
    """
    task = run_state.task
    if facts is not None and facts.classes != task.classes:
        facts = None
    if facts is None:
        return ModelReport(
            round=None,
            answers=None,
            holdout=None,
            classes=_class_rows(run_state, None, None),
            mistakes=(),
            suspects=0,
            judged=0,
            need=None,
        )
    table = run_state.label_table
    is_answered = table.has_label(facts.holdout)
    positions = facts.holdout[is_answered]
    holdout = None
    mistakes: tuple[str, ...] = ()
    need = None
    if len(positions):
        labels = table.labels_of(positions)
        probs = facts.holdout_probs[is_answered].astype(np.float32)
        holdout = report_holdout(task, labels, probs)
        mistakes = _mistakes(run_state, task, positions, probs, holdout)
        need = neediest_class(task.classes, table.counts, holdout)
    suspects, judged = _count_suspects(run_state, facts)
    return ModelReport(
        round=facts.round,
        answers=facts.answers,
        holdout=holdout,
        classes=_class_rows(run_state, holdout, facts.expected),
        mistakes=mistakes,
        suspects=suspects,
        judged=judged,
        need=need,
    )


def _class_rows(
    run_state: RunState,
    holdout: HoldoutReport | None,
    expected: np.ndarray | None,
) -> tuple[ClassRow, ...]:
    table = run_state.label_table
    rows = []
    for k, name in enumerate(run_state.task.classes):
        report = None
        progress = None
        taken_for: tuple[tuple[str, int], ...] = ()
        labels = int(table.total.by_class[k])
        expected_of_class = None
        if expected is not None:
            expected_of_class = float(expected[k])
        if holdout is not None:
            report = holdout.classes[k]
            progress = search_progress(report.in_pool, labels, len(run_state.ids))
            taken_for = _taken_for(run_state.task, holdout, k)
        row = ClassRow(
            name=name,
            labels=labels,
            learned=int(table.counts[k]),
            report=report,
            taken_for=taken_for,
            progress=progress,
            expected=expected_of_class,
        )
        rows.append(row)
    return tuple(rows)


def _taken_for(task: Task, holdout: HoldoutReport, k: int) -> tuple[tuple[str, int], ...]:
    if holdout.confusion is None:
        return ()
    others = holdout.confusion[k].copy()
    others[k] = 0
    by_count = np.argsort(-others, kind="stable")
    taken_for = []
    for other in by_count[:MOST_CONFUSED].tolist():
        count = int(others[other])
        if count > 0:
            taken_for.append((task.classes[other], count))
    return tuple(taken_for)


def _mistakes(
    run_state: RunState,
    task: Task,
    positions: np.ndarray,
    probs: np.ndarray,
    holdout: HoldoutReport,
) -> tuple[str, ...]:
    wrong = np.flatnonzero(~holdout.is_right)
    surest_first = wrong[np.argsort(-probs[wrong].max(1), kind="stable")]
    return tuple(run_state.ids[position] for position in positions[surest_first].tolist())


def _count_suspects(run_state: RunState, facts: ModelFacts) -> tuple[int, int]:
    """(labels that are contradicted, labels that were judged), by the cross-fit alone."""
    if facts.cross_fit is None:
        return 0, 0
    positions = facts.cross_fit.positions
    labelled = positions[run_state.label_table.has_label(positions)]
    judgement = judge_labels(run_state, labelled, facts, None)
    disagrees = contradicts(run_state, labelled, judgement)
    return int(disagrees.sum()), len(labelled)
