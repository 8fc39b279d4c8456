"""What a model said of labelled examples without having learned their labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailor.insight.label_doubt import label_doubt
from tailor.insight.model_facts import ModelFacts, says_instead
from tailor.run.state import RunState
from tailor.task import MultiClass

#: where no model has said anything
NOTHING_SAID = -1


class Judgement(NamedTuple):
    """Of n labelled examples.

    doubt  (n,) float64: the probability that the label is another one; NOTHING_SAID
    says   (n,) int64: the class that the model says (multi-class), or whose yes or no it doubts
           most; NOTHING_SAID
    """

    doubt: np.ndarray
    says: np.ndarray


def judge_labels(
    run_state: RunState,
    positions: np.ndarray,
    facts: ModelFacts | None,
    probs: np.ndarray | None,
) -> Judgement:
    """Judge the labels at positions (n,), which all have one.

    Of the hold-out, which is never learned, the model of today is asked; of other labels the
    cross-fitted heads, and where those can't judge the label as it is now, whatever was said when
    the example was asked for. Of what was asked for before there was a model, probs (N, K), what
    the model of today says, is all there is.
    """
    labels = run_state.label_table.labels_of(positions)
    doubt = np.full(len(positions), float(NOTHING_SAID))
    says = np.full(len(positions), NOTHING_SAID)
    judgement = Judgement(doubt, says)
    if facts is not None and facts.classes == run_state.task.classes:
        is_multi_class = isinstance(run_state.task, MultiClass)
        _judge_by_cross_fit(
            judgement,
            positions,
            labels,
            facts,
            is_multi_class=is_multi_class,
        )
        _judge_by(run_state, judgement, positions, labels, facts.holdout, facts.holdout_probs)
    _judge_by_rounds(run_state, judgement, positions, labels, probs)
    return judgement


def contradicts(run_state: RunState, positions: np.ndarray, judgement: Judgement) -> np.ndarray:
    """(n,) bool: whether the model says something else than the labels at positions (n,)."""
    if not isinstance(run_state.task, MultiClass):
        disagrees: np.ndarray = judgement.doubt > 0.5
        return disagrees
    labels = run_state.label_table.labels_of(positions)
    is_said = judgement.says != NOTHING_SAID
    differs = judgement.says != labels.argmax(1)
    return is_said & differs


def _judge_by_rounds(
    run_state: RunState,
    judgement: Judgement,
    positions: np.ndarray,
    labels: np.ndarray,
    probs: np.ndarray | None,
) -> None:
    """Whatever nothing was measured of: by what was said when it was asked for, or is said now."""
    rows = np.flatnonzero(judgement.doubt == NOTHING_SAID)
    rest = positions[rows]
    picks = run_state.label_table.picks
    was_said = picks.predictions.has(rest)
    is_said_now = np.zeros(len(rest), bool)
    if probs is not None:
        is_said_now = rest < len(probs)
    # The hold-out is never learned: of it the model of today knows more.
    use_now = is_said_now & (picks.is_holdout(rest) | ~was_said)
    use_then = was_said & ~use_now
    if use_then.any():
        then = picks.predictions.get(rest[use_then])
        rows_then = rows[use_then]
        _enter(run_state, judgement, rows_then, labels[rows_then], then)
    if probs is not None and use_now.any():
        now = np.asarray(probs[rest[use_now]])
        rows_now = rows[use_now]
        _enter(run_state, judgement, rows_now, labels[rows_now], now)


def _judge_by_cross_fit(
    judgement: Judgement,
    positions: np.ndarray,
    labels: np.ndarray,
    facts: ModelFacts,
    *,
    is_multi_class: bool,
) -> None:
    cross_fit = facts.cross_fit
    if cross_fit is None:
        return
    rows, judged = _matches(positions, cross_fit.positions)
    says = cross_fit.says[judged]
    is_labelled = labels[rows] > 0.5
    agrees = cross_fit.labels[judged] == is_labelled
    is_same = agrees.all(1)
    same_rows = rows[is_same]
    judgement.doubt[same_rows] = cross_fit.doubt[judged[is_same]]
    judgement.says[same_rows] = says[is_same]
    if not is_multi_class:
        return
    # Corrected since, to what the model says: it doubts it as far as it is not certain.
    everyone = np.arange(len(rows))
    is_as_said = is_labelled[everyone, says] & ~is_same
    certainty = cross_fit.certainty[judged[is_as_said]]
    corrected_rows = rows[is_as_said]
    judgement.doubt[corrected_rows] = 1 - certainty
    judgement.says[corrected_rows] = says[is_as_said]


def _judge_by(
    run_state: RunState,
    judgement: Judgement,
    positions: np.ndarray,
    labels: np.ndarray,
    predicted: np.ndarray,
    probs: np.ndarray,
) -> None:
    """By probs (h, K) of the positions (h,) that were predicted."""
    rows, known = _matches(positions, predicted)
    known_probs = probs[known].astype(np.float32)
    _enter(run_state, judgement, rows, labels[rows], known_probs)


def _enter(
    run_state: RunState,
    judgement: Judgement,
    rows: np.ndarray,
    labels: np.ndarray,
    probs: np.ndarray,
) -> None:
    """Judge some rows (m,) by their labels (m, K) and what a model said of them, probs (m, K)."""
    task = run_state.task
    is_labelled = labels > 0.5
    judgement.doubt[rows] = label_doubt(task, labels, probs)
    judgement.says[rows] = says_instead(task, is_labelled, probs)


def _matches(positions: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where positions (n,) and known (m,) have the same entry: the indices in each."""
    _, rows, places = np.intersect1d(positions, known, assume_unique=True, return_indices=True)
    return rows, places
