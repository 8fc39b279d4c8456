"""Ask and tell, with a pool, a model and a store behind them. The one place where everything meets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailor.bridge import Bridge
from tailor.checks import check_array, check_function, check_instance, check_list, check_whole, shown
from tailor.classes import Reclass
from tailor.desk import SKIP, Desk
from tailor.errors import InputError, TailorError
from tailor.journal import Journal, RoundRecord, Story, rebuild, unpack
from tailor.models.base import Model, quiet
from tailor.models.base import Progress as ProgressBar
from tailor.pools.base import Pool, Unreadable
from tailor.reserve import Estimate
from tailor.settings import Settings
from tailor.stopping import Budget, Progress, Rule, why_stop
from tailor.store.base import Store
from tailor.task import Task
from tailor.walk import AskedEvent, Walk

#: how many picks of a quick start are looked at before they are shown
LOOKED_AT = 8


@dataclass(frozen=True)
class Asked(Sequence[Story]):
    """Examples to label, each with its story; empty with a reason where the run is over."""

    stories: tuple[Story, ...]
    stopped: str | None = None

    @property
    def ids(self) -> list[str]:
        return [s.id for s in self.stories]

    def __len__(self) -> int:
        return len(self.stories)

    def __getitem__(self, at: Any) -> Any:
        return self.stories[at]


class GivenUp(TailorError):
    """A round that was being prepared is not needed any more. Nothing is lost."""


class Session(Desk):
    """A run that survives anything: every event is in the store before it counts, and the rest is rebuilt from it.

    A run that was begun before goes on where it stood; its settings must be the same. After kill -9 at any moment no
    acknowledged answer is lost, and the next picks are those that would have come anyway (on a CPU, where training
    is repeatable).

    One thread may prepare a round (draft, walk_again) while others, holding `lock`, ask and tell.
    """

    def __init__(
        self,
        store: Store,
        pool: Pool,
        model: Model,
        settings: Settings,
        *,
        stop: Sequence[Rule] = (),
        progress: ProgressBar = quiet,
        remodel: Callable[[Task], Model] | None = None,
        bridge: Callable[[Pool, Model, ProgressBar], Bridge] = Bridge,
    ) -> None:
        """remodel makes the model for other classes; without it they can't be changed. bridge leads to pool and model:
        an engine (tailor.engine) brings one of its own."""
        check_instance(store, Store, "store", "a Store (tailor.store)")
        check_instance(pool, Pool, "pool", "a Pool (tailor.pools.open_pool makes one)")
        check_instance(model, Model, "model", "a Model (tailor.models.make_model makes one)")
        check_instance(settings, Settings, "settings", "a Settings object")
        for rule in check_list(stop, "stop", "stopping rules"):
            check_instance(rule, Rule, "stop", "a list of stopping rules")
        check_function(progress, "progress")
        check_function(remodel, "remodel", optional=True)
        check_function(bridge, "bridge")
        super().__init__(store, settings)
        task = self.journal.task
        if model.task.classes != task.classes or model.task.kind != task.kind:
            raise InputError(f"the model is for {model.task.classes}, the settings say {task.classes}")
        self.lock = threading.RLock()
        self.pool, self.model, self.rules = pool, model, tuple(stop)
        self._remodel, self._tell_progress = remodel, progress
        self.enter_stage("idle")
        self.stopping = False  # whether to give it up
        self._make_bridge = bridge
        self.bridge = bridge(pool, model, self._progress)
        self.walk: Walk | None = None  # the open round, as far as this process knows it
        pool.refresh()
        if self.batch_is_asked():
            self._join_pool()
        else:  # new entries join when the next round is opened
            self.bridge.connect(self.journal.ids)

    # ------------------------------------------------------------------ ask

    def ask(self, n: int | None = None) -> Asked:
        """Up to n examples of the current round, by default all that are left of it; a new round when it is over.

        What was asked is in the store before it is returned. waiting() gives what was asked and not answered. Where
        it fails nothing was asked, and the next call gives what this one would have given. A round has begun only where
        the store failed right after it took the round in.
        """
        if n is not None:
            n = check_whole(n, "n")
        if self.walk is None and not self.batch_is_asked():
            self.walk_again()
        picks = self.take(n)
        if not picks:  # no round is open, or what was left of it has been told or skipped from outside
            opened = self.why_stop() or self._open_round(n)
            if isinstance(opened, str):
                return Asked((), opened)
            picks = opened
        stories = (self.journal.story(p) for p in picks)
        return Asked(tuple(s for s in stories if s is not None))

    def take(self, n: int | None = None, *, spare: bool = False) -> list[int]:
        """The positions of up to n further picks of the open round, in the store as asked; those to spare too?"""
        with self.lock:
            if self.walk is None:
                return []
            try:
                asked = self.walk.asked_event(self.walk.take(n, spare))
            except BaseException:
                self.walk = None  # what it took and nobody was asked comes again: it is gone through from the store
                raise
            return self._record_asked(asked)

    def _record_asked(self, asked: AskedEvent | None) -> list[int]:
        if asked is None:
            return []
        self._record("asked", asked.body, asked.data)
        return asked.positions

    def stream(self) -> Iterator[Story]:
        """One example at a time, until a rule says stop. Tell its answer before you take the next."""
        while asked := self.ask(1):
            yield asked[0]

    @property
    def probs(self) -> np.ndarray | None:
        """(N, K) what the model said of every example when the open round began; None at a random start."""
        return self.walk.probs if self.walk is not None else None

    def batch_is_asked(self) -> bool:
        """Whether the current batch has been asked for as a whole; more may be left to spare."""
        current = self.journal.current
        asked = current is None or current.asked >= current.size
        return asked or (self.walk is not None and self.walk.batch_taken)

    # ------------------------------------------------------------------ stopping

    def progress(self) -> Progress:
        journal = self.journal
        estimates = [r.estimate for r in journal.rounds if r.estimate]
        return Progress(
            journal.answered(),
            journal.books.counts + journal.kept.counts,
            journal.task.classes,
            tuple(e.accuracy for e in estimates),
            tuple(e.lower for e in estimates),
        )

    def why_stop(self) -> str | None:
        """The first rule that is met, in words."""
        return why_stop(self.rules, self.progress())

    def budget_left(self) -> int | None:
        """How many more may be asked for; None: there is no budget."""
        spent = self.journal.answered() + len(self.journal.waiting)
        return min((rule.labels - spent for rule in self.rules if isinstance(rule, Budget)), default=None)

    # ------------------------------------------------------------------ rounds

    def _progress(self, done: int, total: int, what: str) -> None:
        if self.stopping:
            raise GivenUp("the session is closing: the next round was given up")
        self.step = (done, total)
        self._tell_progress(done, total, what)

    def enter_stage(self, stage: str) -> None:
        """What is being done for the next round, since when, and how far: (done, total)."""
        self.stage, self.stage_since, self.step = stage, time.time(), (0, 0)

    def _open_round(self, n: int | None) -> list[int] | str:
        """Train, predict, learn, plan -> the positions of up to n picks; or why nothing can be asked."""
        walk = self.draft()
        if isinstance(walk, str):
            return walk
        return self._enter(walk, n) or []

    def draft(self, spare: int = 0, *, quick: bool = False) -> Walk | str:
        """The next round, not yet entered; or why there is none. Long: holds the lock for moments only.

        spare   picks beyond the batch, for when the round after is late
        quick   a random start does not wait until the whole pool has been read
        """
        self.enter_stage("reading")
        self._gather()
        quick = quick and not self.bridge.can_train(self.journal)
        if not quick:
            self.read_pool()
        while True:
            with self.lock:
                size, spare = self._size(spare)
                if size < 1:
                    return "the budget is spent once the waiting examples are answered"
                journal, bridge = self.journal.copy(), self.bridge
            walk = Walk.open(journal, bridge, size, spare, stage=self.enter_stage)
            if walk.slots == 0:
                return "no example is left to ask"
            if not quick or not self._set_aside(self._unreadable([*walk.start[:LOOKED_AT], *walk.reserve[:LOOKED_AT]])):
                return walk

    def enter(self, walk: Walk) -> bool:
        """The drafted round becomes the current one; False where classes or rounds have changed since."""
        return self._enter(walk, 0) is not None

    def _enter(self, walk: Walk, n: int | None) -> list[int] | None:
        """As enter() -> the positions of the first n picks, in the store as asked. Where a pick fails, no round has
        begun."""
        with self.lock:
            if walk.journal.task != self.journal.task or walk.number != len(self.journal.rounds):
                return None
            event = walk.event()  # before it joins: as it was drafted
            asked = walk.asked_event(walk.first_picks(self.journal, n))
            self._record("round", *event)
            walk.join(self.journal)
            self.walk = walk
            return self._record_asked(asked)

    def _size(self, spare: int) -> tuple[int, int]:
        """(picks of the next batch, picks to spare), as far as a budget allows."""
        left, current = self.budget_left(), self.journal.current
        if left is None:
            return self.settings.batch, spare
        if current is not None and not self.batch_is_asked():
            left -= current.size - current.asked
        size = min(self.settings.batch, left)
        return size, max(0, min(spare, left - size))

    def walk_again(self) -> None:
        """A round was open when the process ended: go through it again, up to where it stood. Long: without the lock,
        but for a moment at the end."""
        current = self.journal.current
        assert current is not None
        bridge = self.bridge
        if not current.seed_round:
            self.enter_stage("reading")
            bridge.prepare()
        before = rebuild(self._begun, self.store, until=current.as_of)
        journal, walk = before.copy(), None
        for event in self.store.events(after=current.as_of):
            if event.number == current.event:
                walk = Walk.again(before, bridge, RoundRecord.of(event), stage=self.enter_stage)
            self._relive(event, journal, walk)
        assert walk is not None
        with self.lock:
            for event in self.store.events(after=journal.event):
                self._relive(event, journal, walk)
            if journal.current is not None and journal.current.event == current.event and self.bridge is bridge:
                self.journal, self.walk = journal, walk

    def drop_rest(self) -> None:
        """The round that was open can't be gone through again: what was asked of it waits, the rest is dropped."""
        with self.lock:
            if self.walk is None and self.journal.current is not None:
                self.journal.current.size = min(self.journal.current.size, self.journal.current.asked)

    def _relive(self, event: Any, journal: Journal, walk: Walk | None) -> None:
        if walk is not None and event.kind == "asked":
            found = unpack(event.data)
            walk.retake(found["positions"].tolist(), found["slots"].tolist())
        journal.apply(event, self.store)
        if walk is not None and event.kind == "round":
            walk.join(journal)

    def _start_over(self) -> None:
        self.walk = None  # first: the store may be out of reach, and what was taken and not recorded must come again
        super()._start_over()
        if self._remodel is not None and self.model.task.classes != self.journal.task.classes:
            self._adopt(self._remodel(self.journal.task))  # a change that arrived, though its answer did not

    # ------------------------------------------------------------------ training

    def can_train(self) -> bool:
        """Whether anything is labelled that is still there to learn from."""
        return self.bridge.can_train(self.journal)

    def train(self, number: int) -> Estimate | None:
        """Fit the model as for round `number` on all answers but the reserve's -> how it does on the reserve."""
        return self.bridge.train(self.journal, number)

    def final_fit(self) -> Estimate | None:
        """Train on all answers there are, as `tailor train` does -> how the model does on the reserve."""
        if not self.can_train():
            raise InputError("nothing is labelled yet: answer some examples first")
        self.read_pool()
        return self.train(len(self.journal.rounds))

    def predict(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities (n, K), features (n, d)) at the run's positions."""
        where = check_array(positions, "positions")
        size = len(self.journal.ids)
        if where.ndim != 1 or (where.size and (where.dtype.kind not in "iu" or where.min() < 0 or where.max() >= size)):
            raise InputError(f"positions is {shown(positions)}: a list of positions from 0 to {size - 1} is needed")
        return self.bridge.predict(self.journal.task, where.astype(np.int64))

    def _change_classes(self, change: Reclass, by: str | None, undoes: int | None = None) -> None:
        if self._remodel is None:
            raise InputError("this session can't make a model for other classes: hand in remodel=")
        model = self._remodel(change.after)
        with self.lock:
            if self.journal.task != change.before:
                raise InputError("the classes were changed by someone else just now: look at them again")
            super()._change_classes(change, by, undoes)
            self._adopt(model)
            if not change.only_names:
                self.walk = None

    def _adopt(self, model: Model) -> None:
        bridge = self._make_bridge(self.pool, model, self._progress)
        bridge.connect(self.journal.ids)  # first: whoever prepares a round takes what stands here, without the lock
        self.model, self.bridge = model, bridge

    # ------------------------------------------------------------------ pool

    def _gather(self) -> None:
        """New entries of the pool join; what has vanished is set aside until it is back."""
        self.pool.refresh()
        self._join_pool()
        files, vanished = self.pool.set_aside(), np.flatnonzero(~self.bridge.there).tolist()
        with self.lock:
            if files != self.journal.files:
                self._record("files", {"reasons": files})
            if vanished != self.journal.vanished:
                self._record("vanished", {"positions": vanished})

    def _join_pool(self) -> None:
        """New entries of the pool join at the end."""
        listed, known = list(self.pool.ids), self.journal.position
        new = [one for one in listed if one not in known] if listed != self.journal.ids else []
        if new:
            with self.lock:
                self._record("pool", {"pool": _described(self.pool)})
                self.store.add_examples(new)
                for event in self.store.events(after=self.journal.event):
                    self.journal.apply(event, self.store)
        self.bridge.connect(self.journal.ids)

    def read_pool(self) -> None:
        """Whatever the model needs of every example; what can't be read is set aside for good. Long the first time."""
        self._set_aside(self.bridge.prepare())

    def _set_aside(self, unreadable: dict[int, str]) -> bool:
        with self.lock:
            fresh = {str(p): reason for p, reason in unreadable.items() if p not in self.journal.aside}
            if fresh:
                self._record("aside", {"reasons": fresh})
            return bool(fresh)

    def _unreadable(self, positions: list[int]) -> dict[int, str]:
        found = self.pool.read(self.bridge.in_pool(positions))
        return {p: one.reason for p, one in zip(positions, found) if isinstance(one, Unreadable)}


def _described(pool: Pool) -> dict[str, Any] | None:
    try:
        return pool.describe()
    except InputError:
        return None


__all__ = ["SKIP", "Asked", "Session", "Story"]
