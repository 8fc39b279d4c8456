"""How good the model is, whether to go on, and what is to be reached: for a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailor.annotation.annotators import check_annotator
from tailor.annotation.model_watch import ModelWatch
from tailor.annotation.overview import holdout_estimates
from tailor.annotation.planner import Planner
from tailor.insight.advice import Advice, advise
from tailor.insight.model_facts import ModelFacts
from tailor.insight.model_report import ModelReport, model_report
from tailor.run.goals import Goals
from tailor.run.session import Session


@dataclass(frozen=True)
class ModelView:
    """What the page of the model shows.

    estimates  accuracy on the hold-out over time, as the overview has it
    """

    report: ModelReport
    advice: Advice
    goals: Goals
    estimates: list[dict[str, Any]]


class ModelInsight:
    """Safe to call from many threads. Nothing is predicted or trained here: what is not known yet
    is measured with the next round.
    """

    def __init__(self, session: Session, model_watch: ModelWatch, planner: Planner) -> None:
        self._session = session
        self._model_watch = model_watch
        self._planner = planner
        # What was shown last, with the event and the facts that it was made from.
        self._latest: tuple[int, ModelFacts | None, ModelView] | None = None

    def view(self) -> ModelView:
        """Where the model stands now."""
        session = self._session
        with session.lock:
            run_state = session.run_state
            facts = self._model_watch.facts
            latest = self._latest
            if latest is not None and latest[0] == run_state.event and latest[1] is facts:
                return latest[2]
            view = ModelView(
                report=model_report(run_state, facts),
                advice=advise(run_state, session.why_stop()),
                goals=run_state.goals,
                estimates=holdout_estimates(run_state),
            )
            self._latest = (run_state.event, facts, view)
            return view

    def set_goals(self, goals: Goals, by: str) -> None:
        """What the run is to reach from now on. Raises InputError for a name that is none."""
        check_annotator(by)
        with self._session.lock:
            self._session.set_goals(goals, by)
        # Where the last goal had ended the run, there may be more to ask.
        self._planner.rest_is_over()
