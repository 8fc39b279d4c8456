"""What is known of the model, measured in the background and shown on a page."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from tailor.insight.model_facts import ModelFacts, cross_fit
from tailor.run.session import Session
from tailor.run.session_round import SessionRound

log = logging.getLogger(__name__)

#: predictions that are added up for what is expected in the pool, at most
MOST_SUMMED = 200_000_000


class ModelWatch:
    """Measures each round's model once, when nothing more urgent is to be done.

    folder  where the facts are kept for the next process; None: nowhere
    facts   of the last model that was measured; None before the first
    """

    def __init__(self, session: Session, folder: Path | None) -> None:
        self._session = session
        self._folder = folder
        self.facts: ModelFacts | None = None
        if folder is not None:
            self.facts = ModelFacts.load(folder)
        self._tried: SessionRound | None = None

    def is_due(self, session_round: SessionRound | None) -> bool:
        """Whether there is a model that was not measured yet."""
        if session_round is None or session_round.probs is None:
            return False
        return session_round is not self._tried

    def measure(self, session_round: SessionRound) -> None:
        """Long: holds the session's lock for moments only. A failure is logged, and tried again
        with the next round: nobody's labelling depends on it.
        """
        self._tried = session_round
        try:
            facts = self._measure(session_round)
            if facts is None:
                return
            if self._folder is not None:
                facts.save(self._folder)
        except Exception:
            log.exception("the model could not be measured")
            return
        self.facts = facts

    def _measure(self, session_round: SessionRound) -> ModelFacts | None:
        session = self._session
        probs = session_round.probs
        assert probs is not None
        with session.lock:
            run_state = session.run_state
            task = run_state.task
            table = run_state.label_table
            model_runner = session.model_runner
            in_holdout = np.flatnonzero(table.picks.holdout)
            labelled = table.labelled
            labels = table.labels_of(labelled)
            is_unlabelled = ~table.has_label(np.arange(table.pool))
            answers = table.total.examples
        if probs.shape[1] != task.size:
            return None  # the classes were changed meanwhile
        # What the round will ask for too: its answers are measured as they come.
        holdout = np.union1d(in_holdout, np.array(session_round.holdout, np.int64))
        holdout = holdout[holdout < len(probs)]
        features = None
        if model_runner.model.has_first_features:
            features = model_runner.first_features()
        judged = None
        if features is not None:
            is_present = model_runner.is_present[labelled]
            judged = cross_fit(
                task,
                labelled[is_present],
                labels[is_present],
                features,
                session_round.number,
            )
        return ModelFacts(
            classes=task.classes,
            round=session_round.number,
            answers=answers,
            holdout=holdout,
            holdout_probs=np.asarray(probs[holdout]).astype(np.float16),
            expected=_expected(probs, is_unlabelled),
            cross_fit=judged,
        )


def _expected(probs: np.ndarray, is_unlabelled: np.ndarray) -> np.ndarray | None:
    """(K,) sums of probs (N, K) over what has no label; None where that would take long."""
    if not isinstance(probs, np.ndarray) or probs.size > MOST_SUMMED:
        return None
    known = is_unlabelled[: len(probs)]
    weights = known.astype(np.float64)
    sums: np.ndarray = weights @ probs[: len(weights)]
    return sums
