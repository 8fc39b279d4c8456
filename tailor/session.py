"""Ask and tell, with a pool, a model and a store behind them. The one place where everything meets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tailor.bridge import Bridge
from tailor.desk import SKIP, Desk
from tailor.errors import InputError
from tailor.journal import Journal, Story, pack, unpack
from tailor.models.base import Model, quiet
from tailor.models.base import Progress as ProgressBar
from tailor.pools.base import Pool
from tailor.reserve import Estimate, estimate
from tailor.settings import Settings
from tailor.stopping import Budget, Progress, Rule, why_stop
from tailor.store.base import Store
from tailor.walk import Walk


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


class Session(Desk):
    """A run that survives anything: every event is in the store before it counts, and the rest is rebuilt from it.

    A run that was begun before goes on where it stood; its settings must be the same. After kill -9 at any moment no
    acknowledged answer is lost, and the next picks are those that would have come anyway (on a CPU, where training
    is repeatable).
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
    ) -> None:
        if model.task.classes != settings.classes or model.task.kind != settings.kind:
            raise InputError(f"the model is for {model.task.classes}, the settings say {settings.classes}")
        super().__init__(store, settings)
        self.pool, self.model, self.rules = pool, model, tuple(stop)
        self.bridge = Bridge(pool, model, progress)
        self._walk: Walk | None = None
        pool.refresh()
        if self._round_is_over():
            self._join_pool()
        else:  # new entries join when the next round is opened
            self.bridge.connect(self.journal.ids)

    # ------------------------------------------------------------------ ask

    def ask(self, n: int | None = None) -> Asked:
        """Up to n examples of the current round, by default all that are left of it; a new round when it is over.

        What was asked is in the store before it is returned. waiting() gives what was asked and not answered.
        """
        if n is not None and (not isinstance(n, int) or n < 1):
            raise InputError(f"n is {n!r}: a whole number from 1 is needed")
        if not self._round_is_over() and self._walk is None:
            self._walk = self._walk_again()
        picks = self._walk.take(n) if self._walk is not None else []
        if not picks:  # no round is open, or what was left of it has been told or skipped from outside
            reason = self.why_stop() or self._open_round()
            if reason:
                return Asked((), reason)
            assert self._walk is not None
            picks = self._walk.take(n)
        assert self._walk is not None
        where = np.array([position for position, _, _ in picks], np.int64)
        arrays: dict[str, np.ndarray] = {
            "positions": where,
            "slots": np.array([slot for _, slot, _ in picks], np.int32),
            "arms": np.array([arm for _, _, arm in picks], np.int32),
        }
        if self._walk.probs is not None:
            arrays["predicted"] = self._walk.probs[where].astype(np.float16)
        self._record("asked", {"round": self._walk.number}, pack(**arrays))
        stories = (self.journal.story(p) for p in where.tolist())
        return Asked(tuple(s for s in stories if s is not None))

    def stream(self) -> Iterator[Story]:
        """One example at a time, until a rule says stop. Tell its answer before you take the next."""
        while asked := self.ask(1):
            yield asked[0]

    @property
    def probs(self) -> np.ndarray | None:
        """(N, K) what the model said of every example when the open round began; None at a random start."""
        return self._walk.probs if self._walk is not None else None

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

    # ------------------------------------------------------------------ rounds

    def _round_is_over(self) -> bool:
        current = self.journal.current
        return current is None or current.asked >= current.size

    def _size(self) -> int:
        spent = self.journal.answered() + len(self.journal.books.pending) + len(self.journal.kept.pending)
        budgets = [rule.labels - spent for rule in self.rules if isinstance(rule, Budget)]
        return min([self.settings.batch, *budgets])

    def _open_round(self) -> str | None:
        """Train, predict, learn, plan. Why not, where nothing can be asked."""
        self.pool.refresh()
        self._join_pool()
        self._prepare()
        size = self._size()
        if size < 1:
            return "the budget is spent once the waiting examples are answered"
        try:
            walk = Walk.open(self, len(self.journal.rounds), size)
        except BaseException:
            self._start_over()
            raise
        if walk.size == 0:
            self._start_over()
            return "no example is left to ask"
        self._record_round(walk)
        self._walk = walk
        return None

    def _record_round(self, walk: Walk) -> None:
        body: dict[str, Any] = {
            "number": walk.number,
            "size": walk.size,
            "seed_round": walk.arms is None,
            "estimate": asdict(walk.estimate) if walk.estimate else None,
        }
        arrays: dict[str, np.ndarray] = {
            "reserve_slots": walk.reserve_slots,
            "reserve": np.array(walk.reserve, np.int64),
            "start": np.array(walk.start, np.int64),
        }
        if walk.arms is not None:
            arms = walk.arms
            pulled = np.unique(arms.plan)
            arrays |= {"weights": arms.weights, "chances": arms.chances, "pulled": pulled}
            beliefs = self.journal.loop.selector.beliefs()
            if beliefs is not None:
                arrays["beliefs"] = beliefs[pulled].astype(np.float16)
            if arms.fit is not None:
                arrays |= {"correct": arms.fit.correct, "fit_chances": arms.fit.chances, "rates": arms.fit.rates}
                body |= {"pool": arms.fit.pool, "reward": arms.fit.reward}
        event = self._append("round", body, pack(**arrays))
        self.journal.rounds.append(self.journal.record(event))

    def _walk_again(self) -> Walk:
        """A round was open when the process ended: go through it again, up to where it stood."""
        current = self.journal.current
        assert current is not None
        self.bridge.prepare()
        journal, walk = Journal(self.settings), None
        for event in list(self.store.events()):
            if event.number == current.event:
                walk = Walk.again(self, journal, journal.record(event))
                journal.rounds.append(journal.record(event))
                continue
            if walk is not None and event.kind == "asked":
                found = unpack(event.data)
                walk.retake(found["positions"].tolist(), found["slots"].tolist())
            journal.apply(event, self.store)
        assert walk is not None
        self.journal = journal
        return walk

    def _start_over(self) -> None:
        super()._start_over()
        self._walk = None

    # ------------------------------------------------------------------ training

    def can_train(self) -> bool:
        """Whether anything is labelled that is still there to learn from."""
        return bool(self.bridge.there[self.journal.books.labelled].any())

    def train(self, number: int, journal: Journal | None = None) -> Estimate | None:
        """Fit the model on all answers but the reserve's -> how it does on the reserve."""
        journal = journal or self.journal
        there, books, kept = self.bridge.there, journal.books, journal.kept
        labelled, reserve = books.labelled[there[books.labelled]], kept.labelled[there[kept.labelled]]
        seed = int(np.random.SeedSequence((self.settings.seed, number)).generate_state(1, np.uint32)[0])
        self.bridge.fit(labelled, books.labels_of(labelled), seed)
        if len(reserve) == 0:
            return None
        return estimate(journal.task, kept.labels_of(reserve), self.bridge.predict(journal.task, reserve)[0])

    def final_fit(self) -> Estimate | None:
        """Train on all answers there are, as `tailor train` does -> how the model does on the reserve."""
        if not self.can_train():
            raise InputError("nothing is labelled yet: answer some examples first")
        self._prepare()
        return self.train(len(self.journal.rounds))

    def predict(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities (n, K), features (n, d)) at the run's positions."""
        return self.bridge.predict(self.journal.task, positions)

    # ------------------------------------------------------------------ pool

    def _join_pool(self) -> None:
        """New entries of the pool join at the end."""
        known = self.journal.position
        new = [one for one in self.pool.ids if one not in known]
        if new:
            self._record("pool", {"pool": _described(self.pool)})
            self.store.add_examples(new)
            self.journal.add_ids(new)
        self.bridge.connect(self.journal.ids)

    def _prepare(self) -> None:
        """What can't be read is set aside for good; what has vanished, until it is back."""
        files = self.pool.set_aside()
        if files != self.journal.files:
            self._record("files", {"reasons": files})
        vanished = np.flatnonzero(~self.bridge.there).tolist()
        if vanished != self.journal.vanished:
            self._record("vanished", {"positions": vanished})
        unreadable = self.bridge.prepare()
        fresh = {str(p): reason for p, reason in unreadable.items() if p not in self.journal.aside}
        if fresh:
            self._record("aside", {"reasons": fresh})


def _described(pool: Pool) -> dict[str, Any] | None:
    try:
        return pool.describe()
    except InputError:
        return None


__all__ = ["SKIP", "Asked", "Session", "Story"]
