"""Ask and tell, with a pool, a model and a store behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailor.common.checks import check_instance, check_list, check_whole
from tailor.models.base import Model, ProgressCallback, quiet
from tailor.pools.base import Pool
from tailor.run.answer_writer import SKIP
from tailor.run.model_runner import ModelRunner
from tailor.run.model_session import GivenUp, MakeModelRunner, ModelSession
from tailor.run.records import PickRecord
from tailor.run.round_events import ExamplesAsked
from tailor.run.round_replay import RoundReplay
from tailor.run.run_progress import progress_of, reason_to_stop
from tailor.run.session_round import SessionRound
from tailor.run.settings import Settings
from tailor.run.stopping import Budget, RunProgress, StoppingRule
from tailor.selection.class_edits import ClassEdit
from tailor.storage.base import Store
from tailor.task import Task

#: how many picks of a quick start are looked at before they are shown
LOOKED_AT = 8


@dataclass(frozen=True)
class Asked(Sequence[PickRecord]):
    """Examples to label, each with why it was asked for; empty with a reason where the run is
    over.
    """

    pick_records: tuple[PickRecord, ...]
    stopped: str | None = None

    @property
    def ids(self) -> list[str]:
        return [record.id for record in self.pick_records]

    def __len__(self) -> int:
        return len(self.pick_records)

    def __getitem__(self, index: Any) -> Any:
        return self.pick_records[index]


class Session(ModelSession):
    """A run that survives anything: every event is in the store before it counts, and the rest is
    rebuilt from it.

    A run that was begun before goes on where it stood; its settings must be the same. After kill -9
    at any moment no acknowledged answer is lost, and the next picks are those that would have come
    anyway (on a CPU, where training is repeatable).

    One thread may prepare a round (draft, resume_round) while others, holding `lock`, ask and tell.
    """

    def __init__(
        self,
        store: Store,
        pool: Pool,
        model: Model,
        settings: Settings,
        *,
        stop: Sequence[StoppingRule] = (),
        progress: ProgressCallback = quiet,
        remodel: Callable[[Task], Model] | None = None,
        model_runner: MakeModelRunner = ModelRunner,
    ) -> None:
        """remodel makes the model for other classes; without it they can't be changed. model_runner
        leads to pool and model: an engine (tailor.compute) brings one of its own.
        """
        for rule in check_list(stop, "stop", "stopping rules"):
            check_instance(rule, StoppingRule, "stop", "a list of stopping rules")
        super().__init__(
            store,
            pool,
            model,
            settings,
            progress=progress,
            remodel=remodel,
            model_runner=model_runner,
        )
        self.rules = tuple(stop)
        #: the open round, as far as this process knows it
        self.session_round: SessionRound | None = None
        pool.refresh()
        if self.batch_is_asked():
            self._join_pool()
        else:  # new entries join when the next round is opened
            self.model_runner.connect(self.run_state.ids)

    # ------------------------------------------------------------------ ask

    def ask(self, n: int | None = None) -> Asked:
        """Up to n examples of the current round, by default all that are left of it; a new round
        when it is over.

        What was asked is in the store before it is returned. waiting() gives what was asked and not
        answered. Where it fails nothing was asked, and the next call gives what this one would have
        given. A round has begun only where the store failed right after it took the round in.
        """
        if n is not None:
            n = check_whole(n, "n")
        if self.session_round is None and not self.batch_is_asked():
            self.resume_round()
        positions = self.take(n)
        if not positions:
            # No round is open, or what was left of it has been told or skipped from outside.
            reason = self.why_stop()
            if reason is not None:
                return Asked((), reason)
            opened = self._open_round(n)
            if isinstance(opened, str):
                return Asked((), opened)
            positions = opened
        asked = []
        for position in positions:
            record = self.run_state.pick_record(position)
            if record is not None:
                asked.append(record)
        return Asked(tuple(asked))

    def take(self, n: int | None = None, *, spare: bool = False) -> list[int]:
        """The positions of up to n further picks of the open round, in the store as asked. spare:
        those beyond the batch, too.
        """
        with self.lock:
            if self.session_round is None:
                return []
            try:
                picks = self.session_round.take(n, spare)
                asked = self.session_round.asked_event(picks)
            except BaseException:
                # What it took and nobody was asked comes again: the round is gone through from the
                # store.
                self.session_round = None
                raise
            return self._record_asked(asked)

    def _record_asked(self, asked: ExamplesAsked | None) -> list[int]:
        if asked is None:
            return []
        self._record(asked)
        positions: list[int] = asked.positions.tolist()
        return positions

    def stream(self) -> Iterator[PickRecord]:
        """One example at a time, until a rule says stop. Tell its answer before you take the
        next.
        """
        asked = self.ask(1)
        while asked:
            yield asked[0]
            asked = self.ask(1)

    @property
    def probs(self) -> np.ndarray | None:
        """(N, K) what the model said of every example when the open round began; None at a random
        start.
        """
        if self.session_round is None:
            return None
        return self.session_round.probs

    def batch_is_asked(self) -> bool:
        """Whether the current batch has been asked for as a whole; more may be left to spare."""
        current = self.run_state.current
        if current is None or current.asked >= current.size:
            return True
        if self.session_round is None:
            return False
        return self.session_round.batch_taken

    # ------------------------------------------------------------------ stopping

    def progress(self) -> RunProgress:
        """How far the run has come, for stopping rules."""
        return progress_of(self.run_state)

    def why_stop(self) -> str | None:
        """The first rule that is met, in words."""
        return reason_to_stop(self.run_state, self.rules)

    def budget_left(self) -> int | None:
        """How many more may be asked for; None: there is no budget."""
        rules = self.run_state.goals.in_place_of(self.rules)
        budgets = []
        for rule in rules:
            if isinstance(rule, Budget):
                budgets.append(rule.labels)
        if not budgets:
            return None
        answered = self.run_state.answered()
        # What waits will be answered: it is spent, too.
        spent = answered + len(self.run_state.waiting)
        return min(budgets) - spent

    # ------------------------------------------------------------------ rounds

    def _open_round(self, n: int | None) -> list[int] | str:
        """Train, predict, learn, plan -> the positions of up to n picks; or why nothing can be
        asked.
        """
        session_round = self.draft()
        if isinstance(session_round, str):
            return session_round
        return self._enter(session_round, n) or []

    def draft(self, spare: int = 0, *, quick: bool = False) -> SessionRound | str:
        """The next round, not yet entered; or why there is none. Long: holds the lock for moments
        only.

        spare   picks beyond the batch, for when the round after is late
        quick   a random start does not wait until the whole pool has been read
        """
        self.enter_stage("reading")
        self._refresh_pool()
        quick = quick and not self.can_train()
        if not quick:
            self.read_pool()
        # Again until none of the first picks turns out to be unreadable.
        while True:
            with self.lock:
                size, spare = self._affordable(spare)
                if size < 1:
                    return "the budget is spent once the waiting examples are answered"
                run_state = self.run_state.copy()
                model_runner = self.model_runner
            session_round = SessionRound.open(
                run_state,
                model_runner,
                size,
                spare,
                stage=self.enter_stage,
                read=not quick,
            )
            if session_round.slots == 0:
                return "no example is left to ask"
            # Whatever can't be read was found when the whole pool was.
            if not quick:
                return session_round
            shown_first = _shown_first(session_round)
            unreadable = self._find_unreadable(shown_first)
            if not self._set_aside(unreadable):
                return session_round

    def enter(self, session_round: SessionRound) -> bool:
        """The drafted round becomes the current one; False where classes or rounds have changed
        since.
        """
        return self._enter(session_round, 0) is not None

    def _enter(self, session_round: SessionRound, n: int | None) -> list[int] | None:
        """As enter() -> the positions of the first n picks, in the store as asked. Where a pick
        fails, no round has begun.
        """
        with self.lock:
            is_same_task = session_round.run_state.task == self.run_state.task
            is_next = session_round.number == len(self.run_state.rounds)
            if not is_same_task or not is_next:
                return None
            opened = session_round.opened_event()  # before it joins: as it was drafted
            picks = session_round.first_picks(self.run_state, n)
            asked = session_round.asked_event(picks)
            self._record(opened)
            session_round.join(self.run_state)
            self.session_round = session_round
            return self._record_asked(asked)

    def _affordable(self, spare: int) -> tuple[int, int]:
        """(picks of the next batch, picks to spare), as far as a budget allows."""
        batch = self.settings.batch
        left = self.budget_left()
        if left is None:
            return batch, spare
        current = self.run_state.current
        if current is not None and not self.batch_is_asked():
            left -= current.size - current.asked
        size = min(batch, left)
        affordable_spare = min(spare, left - size)
        return size, max(0, affordable_spare)

    def resume_round(self) -> None:
        """A round was open when the process ended: go through it again, up to where it stood. Long:
        without the lock, but for a moment at the end.
        """
        current = self.run_state.current
        assert current is not None
        model_runner = self.model_runner
        if not current.seed_round:
            self.enter_stage("reading")
            model_runner.prepare()
        replay = RoundReplay(
            self._begun,
            self.store,
            model_runner,
            current,
            self.enter_stage,
        )
        replay.catch_up()
        assert replay.session_round is not None
        with self.lock:
            # What others told while the model was trained.
            replay.catch_up()
            # Another model: the classes were changed, and the round is dropped.
            if self.model_runner is not model_runner:
                return
            latest = replay.run_state.current
            if latest is not None and latest.event == current.event:
                self.run_state = replay.run_state
                self.session_round = replay.session_round

    def drop_rest(self) -> None:
        """The round that was open can't be gone through again: what was asked of it waits, the rest
        is dropped.
        """
        with self.lock:
            current = self.run_state.current
            if self.session_round is None and current is not None:
                current.drop_rest()

    def _start_over(self) -> None:
        # First: the store may be out of reach, and what was taken and not recorded must come again.
        self.session_round = None
        super()._start_over()

    def _classes_changed(self, change: ClassEdit) -> None:
        if not change.only_names:
            self.session_round = None


def _shown_first(session_round: SessionRound) -> list[int]:
    """The positions of the picks that people will see first."""
    start = session_round.start[:LOOKED_AT]
    holdout = session_round.holdout[:LOOKED_AT]
    return start + holdout


__all__ = ["SKIP", "Asked", "GivenUp", "PickRecord", "Session"]
