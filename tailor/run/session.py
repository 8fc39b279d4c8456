"""Ask and tell, with a pool, a model and a store behind them. The one place where everything
meets.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailor.common.checks import (
    check_array,
    check_function,
    check_instance,
    check_list,
    check_whole,
    shown,
)
from tailor.errors import InputError, TailorError
from tailor.models.base import Model, quiet
from tailor.models.base import ProgressCallback as ProgressCallback
from tailor.pools.base import Pool, Unreadable
from tailor.run.answer_writer import SKIP, AnswerWriter
from tailor.run.holdout import HoldoutEstimate
from tailor.run.model_runner import ModelRunner
from tailor.run.session_round import AskedEvent, SessionRound
from tailor.run.settings import Settings
from tailor.run.state import PickRecord, RoundRecord, RunState, rebuild, unpack
from tailor.run.stopping import Budget, RunProgress, StoppingRule, why_stop
from tailor.selection.class_edits import ClassEdit
from tailor.storage.base import Store
from tailor.task import Task

#: how many picks of a quick start are looked at before they are shown
LOOKED_AT = 8


@dataclass(frozen=True)
class Asked(Sequence[PickRecord]):
    """Examples to label, each with its story; empty with a reason where the run is over."""

    pick_records: tuple[PickRecord, ...]
    stopped: str | None = None

    @property
    def ids(self) -> list[str]:
        return [s.id for s in self.pick_records]

    def __len__(self) -> int:
        return len(self.pick_records)

    def __getitem__(self, at: Any) -> Any:
        return self.pick_records[at]


class GivenUp(TailorError):
    """A round that was being prepared is not needed any more. Nothing is lost."""


class Session(AnswerWriter):
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
        model_runner: Callable[[Pool, Model, ProgressCallback], ModelRunner] = ModelRunner,
    ) -> None:
        """remodel makes the model for other classes; without it they can't be changed. bridge leads
        to pool and model: an engine (tailor.compute) brings one of its own.
        """
        check_instance(store, Store, "store", "a Store (tailor.storage)")
        check_instance(pool, Pool, "pool", "a Pool (tailor.pools.open_pool makes one)")
        check_instance(model, Model, "model", "a Model (tailor.models.make_model makes one)")
        check_instance(settings, Settings, "settings", "a Settings object")
        for rule in check_list(stop, "stop", "stopping rules"):
            check_instance(rule, StoppingRule, "stop", "a list of stopping rules")
        check_function(progress, "progress")
        check_function(remodel, "remodel", optional=True)
        check_function(model_runner, "model_runner")
        super().__init__(store, settings)
        task = self.run_state.task
        if model.task.classes != task.classes or model.task.kind != task.kind:
            raise InputError(
                f"the model is for {model.task.classes}, the settings say {task.classes}"
            )
        self.lock = threading.RLock()
        self.pool = pool
        self.model = model
        self.rules = tuple(stop)
        self._remodel = remodel
        self._tell_progress = progress
        self.enter_stage("idle")
        self.stopping = False  # whether to give it up
        self._make_bridge = model_runner
        self.model_runner = model_runner(pool, model, self._progress)
        self.session_round: SessionRound | None = (
            None  # the open round, as far as this process knows it
        )
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
        picks = self.take(n)
        if (
            not picks
        ):  # no round is open, or what was left of it has been told or skipped from outside
            opened = self.why_stop() or self._open_round(n)
            if isinstance(opened, str):
                return Asked((), opened)
            picks = opened
        pick_records = (self.run_state.pick_record(p) for p in picks)
        return Asked(tuple(s for s in pick_records if s is not None))

    def take(self, n: int | None = None, *, spare: bool = False) -> list[int]:
        """The positions of up to n further picks of the open round, in the store as asked; those to
        spare too?
        """
        with self.lock:
            if self.session_round is None:
                return []
            try:
                asked = self.session_round.asked_event(self.session_round.take(n, spare))
            except BaseException:
                # what it took and nobody was asked comes again: it is gone through from the store
                self.session_round = None
                raise
            return self._record_asked(asked)

    def _record_asked(self, asked: AskedEvent | None) -> list[int]:
        if asked is None:
            return []
        self._record("asked", asked.body, asked.data)
        return asked.positions

    def stream(self) -> Iterator[PickRecord]:
        """One example at a time, until a rule says stop. Tell its answer before you take the
        next.
        """
        while asked := self.ask(1):
            yield asked[0]

    @property
    def probs(self) -> np.ndarray | None:
        """(N, K) what the model said of every example when the open round began; None at a random
        start.
        """
        return self.session_round.probs if self.session_round is not None else None

    def batch_is_asked(self) -> bool:
        """Whether the current batch has been asked for as a whole; more may be left to spare."""
        current = self.run_state.current
        asked = current is None or current.asked >= current.size
        return asked or (self.session_round is not None and self.session_round.batch_taken)

    # ------------------------------------------------------------------ stopping

    def progress(self) -> RunProgress:
        run_state = self.run_state
        estimates = [r.estimate for r in run_state.rounds if r.estimate]
        return RunProgress(
            run_state.answered(),
            run_state.label_table.counts + run_state.holdout_table.counts,
            run_state.task.classes,
            tuple(e.accuracy for e in estimates),
            tuple(e.lower for e in estimates),
        )

    def why_stop(self) -> str | None:
        """The first rule that is met, in words."""
        return why_stop(self.rules, self.progress())

    def budget_left(self) -> int | None:
        """How many more may be asked for; None: there is no budget."""
        spent = self.run_state.answered() + len(self.run_state.waiting)
        return min(
            (rule.labels - spent for rule in self.rules if isinstance(rule, Budget)), default=None
        )

    # ------------------------------------------------------------------ rounds

    def _progress(self, done: int, total: int, what: str) -> None:
        if self.stopping:
            raise GivenUp("the session is closing: the next round was given up")
        self.step = (done, total)
        self._tell_progress(done, total, what)

    def enter_stage(self, stage: str) -> None:
        """What is being done for the next round, since when, and how far: (done, total)."""
        self.stage = stage
        self.stage_since = time.time()
        self.step = (0, 0)

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
        self._gather()
        quick = quick and not self.model_runner.can_train(self.run_state)
        if not quick:
            self.read_pool()
        while True:
            with self.lock:
                size, spare = self._size(spare)
                if size < 1:
                    return "the budget is spent once the waiting examples are answered"
                run_state = self.run_state.copy()
                model_runner = self.model_runner
            session_round = SessionRound.open(
                run_state, model_runner, size, spare, stage=self.enter_stage
            )
            if session_round.slots == 0:
                return "no example is left to ask"
            if not quick or not self._set_aside(
                self._unreadable(
                    [*session_round.start[:LOOKED_AT], *session_round.holdout[:LOOKED_AT]]
                )
            ):
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
            if session_round.run_state.task != self.run_state.task or session_round.number != len(
                self.run_state.rounds
            ):
                return None
            event = session_round.event()  # before it joins: as it was drafted
            asked = session_round.asked_event(session_round.first_picks(self.run_state, n))
            self._record("round", *event)
            session_round.join(self.run_state)
            self.session_round = session_round
            return self._record_asked(asked)

    def _size(self, spare: int) -> tuple[int, int]:
        """(picks of the next batch, picks to spare), as far as a budget allows."""
        left = self.budget_left()
        current = self.run_state.current
        if left is None:
            return self.settings.batch, spare
        if current is not None and not self.batch_is_asked():
            left -= current.size - current.asked
        size = min(self.settings.batch, left)
        return size, max(0, min(spare, left - size))

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
        before = rebuild(self._begun, self.store, until=current.as_of)
        run_state = before.copy()
        session_round = None
        for event in self.store.events(after=current.as_of):
            if event.number == current.event:
                session_round = SessionRound.again(
                    before, model_runner, RoundRecord.of(event), stage=self.enter_stage
                )
            self._relive(event, run_state, session_round)
        assert session_round is not None
        with self.lock:
            for event in self.store.events(after=run_state.event):
                self._relive(event, run_state, session_round)
            if (
                run_state.current is not None
                and run_state.current.event == current.event
                and self.model_runner is model_runner
            ):
                self.run_state = run_state
                self.session_round = session_round

    def drop_rest(self) -> None:
        """The round that was open can't be gone through again: what was asked of it waits, the rest
        is dropped.
        """
        with self.lock:
            if self.session_round is None and self.run_state.current is not None:
                self.run_state.current.size = min(
                    self.run_state.current.size, self.run_state.current.asked
                )

    def _relive(self, event: Any, run_state: RunState, session_round: SessionRound | None) -> None:
        if session_round is not None and event.kind == "asked":
            found = unpack(event.data)
            session_round.retake(found["positions"].tolist(), found["slots"].tolist())
        run_state.apply(event, self.store)
        if session_round is not None and event.kind == "round":
            session_round.join(run_state)

    def _start_over(self) -> None:
        # first: the store may be out of reach, and what was taken and not recorded must come again
        self.session_round = None
        super()._start_over()
        if self._remodel is not None and self.model.task.classes != self.run_state.task.classes:
            self._adopt(
                self._remodel(self.run_state.task)
            )  # a change that arrived, though its answer did not

    # ------------------------------------------------------------------ training

    def can_train(self) -> bool:
        """Whether anything is labelled that is still there to learn from."""
        return self.model_runner.can_train(self.run_state)

    def train(self, number: int) -> HoldoutEstimate | None:
        """Fit the model as for round `number` on all answers but the hold-out's -> how it does on
        the hold-out.
        """
        return self.model_runner.train(self.run_state, number)

    def final_fit(self) -> HoldoutEstimate | None:
        """Train on all answers there are, as `tailor train` does -> how the model does on the
        hold-out.
        """
        if not self.can_train():
            raise InputError("nothing is labelled yet: answer some examples first")
        self.read_pool()
        return self.train(len(self.run_state.rounds))

    def predict(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities (n, K), features (n, d)) at the run's positions."""
        where = check_array(positions, "positions")
        size = len(self.run_state.ids)
        if where.ndim != 1 or (
            where.size and (where.dtype.kind not in "iu" or where.min() < 0 or where.max() >= size)
        ):
            raise InputError(
                f"positions is {shown(positions)}: a list of positions from 0 to {size - 1} is "
                "needed"
            )
        return self.model_runner.predict(self.run_state.task, where.astype(np.int64))

    def _change_classes(self, change: ClassEdit, by: str | None, undoes: int | None = None) -> None:
        if self._remodel is None:
            raise InputError("this session can't make a model for other classes: hand in remodel=")
        model = self._remodel(change.after)
        with self.lock:
            if self.run_state.task != change.before:
                raise InputError(
                    "the classes were changed by someone else just now: look at them again"
                )
            super()._change_classes(change, by, undoes)
            self._adopt(model)
            if not change.only_names:
                self.session_round = None

    def _adopt(self, model: Model) -> None:
        model_runner = self._make_bridge(self.pool, model, self._progress)
        model_runner.connect(
            self.run_state.ids
        )  # first: whoever prepares a round takes what stands here, without the lock
        self.model = model
        self.model_runner = model_runner

    # ------------------------------------------------------------------ pool

    def _gather(self) -> None:
        """New entries of the pool join; what has vanished is set aside until it is back."""
        self.pool.refresh()
        self._join_pool()
        files = self.pool.set_aside()
        vanished = np.flatnonzero(~self.model_runner.there).tolist()
        with self.lock:
            if files != self.run_state.files:
                self._record("files", {"reasons": files})
            if vanished != self.run_state.vanished:
                self._record("vanished", {"positions": vanished})

    def _join_pool(self) -> None:
        """New entries of the pool join at the end."""
        listed = list(self.pool.ids)
        known = self.run_state.position
        new = [one for one in listed if one not in known] if listed != self.run_state.ids else []
        if new:
            with self.lock:
                self._record("pool", {"pool": _described(self.pool)})
                self.store.add_examples(new)
                for event in self.store.events(after=self.run_state.event):
                    self.run_state.apply(event, self.store)
        self.model_runner.connect(self.run_state.ids)

    def read_pool(self) -> None:
        """Whatever the model needs of every example; what can't be read is set aside for good. Long
        the first time.
        """
        self._set_aside(self.model_runner.prepare())

    def _set_aside(self, unreadable: dict[int, str]) -> bool:
        with self.lock:
            fresh = {
                str(p): reason for p, reason in unreadable.items() if p not in self.run_state.aside
            }
            if fresh:
                self._record("aside", {"reasons": fresh})
            return bool(fresh)

    def _unreadable(self, positions: list[int]) -> dict[int, str]:
        found = self.pool.read(self.model_runner.in_pool(positions))
        return {p: one.reason for p, one in zip(positions, found) if isinstance(one, Unreadable)}


def _described(pool: Pool) -> dict[str, Any] | None:
    try:
        return pool.describe()
    except InputError:
        return None


__all__ = ["SKIP", "Asked", "PickRecord", "Session"]
