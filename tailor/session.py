"""Ask and tell, with a pool, a model and a store behind them. The one place where everything meets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tailor.errors import InputError, UnknownName
from tailor.journal import RESERVE, START, Journal, Story, pack, unpack
from tailor.models.base import Model, quiet
from tailor.models.base import Progress as ProgressBar
from tailor.pools.base import Pool
from tailor.reserve import Estimate, estimate
from tailor.settings import Settings
from tailor.stopping import Budget, Progress, Rule, why_stop
from tailor.store.base import Event, Store
from tailor.walk import Walk

#: an answer that says: this one can't be answered
SKIP = None


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


class Session:
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
        self.store, self.pool, self.model, self.settings = store, pool, model, settings
        self.rules, self._progress = tuple(stop), progress
        self._check_settings()
        self.journal = self._replay()
        self._walk: Walk | None = None
        self.pool.refresh()
        if self._round_is_over():
            self._join_pool()
        else:  # new entries join when the next round is opened
            self._map_pool()

    # ------------------------------------------------------------------ ask

    def ask(self, n: int | None = None) -> Asked:
        """Up to n examples of the current round, by default all that are left of it; a new round when it is over.

        What was asked is in the store before it is returned. waiting() gives what was asked and not answered.
        """
        if n is not None and n < 1:
            raise InputError(f"n is {n}: at least 1 is needed")
        if self._round_is_over():
            reason = self.why_stop() or self._open_round()
            if reason:
                return Asked((), reason)
        elif self._walk is None:
            self._walk = self._walk_again()
        assert self._walk is not None
        picks = self._walk.take(n)
        if not picks:  # what was left of the round has been told or skipped from outside
            reason = self.why_stop() or self._open_round()
            if reason:
                return Asked((), reason)
            picks = self._walk.take(n)
        where = np.array([p for p, _, _ in picks], np.int64)
        arrays: dict[str, np.ndarray] = {
            "positions": where,
            "slots": np.array([s for _, s, _ in picks], np.int32),
            "arms": np.array([a for _, _, a in picks], np.int32),
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

    def waiting(self) -> list[Story]:
        """Asked and not answered, oldest first."""
        journal = self.journal
        where = np.concatenate([journal.books.pending, journal.kept.pending]).tolist()
        where.sort(key=lambda p: journal.stories[p][:2])
        return [s for p in where if (s := journal.story(p)) is not None]

    # ------------------------------------------------------------------ tell

    def tell(self, answers: Mapping[str, Any], by: str | None = None) -> None:
        """Answers by id: a class name or index, a list of them (multi-label), or SKIP.

        In part, late, in any order, again or corrected: all fine. An id that was not asked counts as outside
        knowledge, credited to no arm. They are in the store when this returns; with a bad one among them, none is.
        """
        task, told, skipped = self.journal.task, [], []
        for one, answer in answers.items():
            position = self._position(one)
            if answer is SKIP:
                skipped.append(position)
            else:
                told.append([position, np.flatnonzero(task.encode([answer])[0]).tolist()])
        labelled = set(self.journal.books.labelled.tolist()) | set(self.journal.kept.labelled.tolist())
        for position in skipped:
            if position in labelled:
                raise InputError(f"{self.journal.ids[position]!r} has a label: it can be corrected, but not skipped")
        self._record("told", {"answers": told, "skipped": skipped, "by": by})

    def offer_again(self, ids: Sequence[str]) -> None:
        """Skipped examples may be asked again."""
        where = [self._position(one) for one in ids]
        skipped = set(self.journal.books.skipped.tolist()) | set(self.journal.kept.skipped.tolist())
        for position in where:
            if position not in skipped:
                raise InputError(f"{self.journal.ids[position]!r} is not skipped: nothing to offer again")
        self._record("again", {"positions": where})

    def _position(self, one: str) -> int:
        if one not in self.journal.position:
            near = [i for i in self.journal.ids if i[:3] == str(one)[:3]][:1000] or self.journal.ids[:1000]
            raise UnknownName("example", str(one), near)
        return self.journal.position[one]

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
        number = len(self.journal.rounds)
        try:
            walk = Walk.open(self, number, size)
        except BaseException:
            self.journal = self._replay()
            raise
        if walk.size == 0:
            self.journal = self._replay()
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
        arrays: dict[str, np.ndarray] = {}
        if walk.arms is not None:
            arms = walk.arms
            pulled = np.unique(arms.plan)
            arrays = {"weights": arms.weights, "chances": arms.chances, "pulled": pulled}
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
        journal = Journal(self.settings)
        walk: Walk | None = None
        for event in list(self.store.events()):
            if event.number == current.event:
                self.journal = journal
                self._map_pool()
                self._prepare()
                walk = Walk.open(self, current.number, current.size)
                journal.rounds.append(journal.record(event))
                continue
            if walk is not None and event.kind == "asked":
                walk.take(len(unpack(event.data)["positions"]))
            journal.apply(event, self.store)
        assert walk is not None
        return walk

    def predict(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities, features) at the run's positions; uniform and zero where an entry has vanished."""
        at = self._at[positions]
        there = at >= 0
        found = self.model.predict(at[there], self._progress)
        if there.all():
            return found.probs, found.features
        probs = np.full((len(positions), self.journal.task.size), 1 / self.journal.task.size, np.float32)
        features = np.zeros((len(positions), found.features.shape[1]), np.float32)
        probs[there], features[there] = found.probs, found.features
        return probs, features

    def final_fit(self) -> Estimate | None:
        """Train on all answers there are, as `tailor train` does -> how the model does on the reserve."""
        if len(self.journal.books.labelled) == 0:
            raise InputError("nothing is labelled yet: answer some examples first")
        self._prepare()
        return self.train(len(self.journal.rounds))

    def finetune(self, targets: Any, epochs: int) -> np.ndarray:
        """Weak supervision's fine-tuning: soft targets (N, K) at the run's positions -> probabilities there."""
        given = np.asarray(targets.cpu() if hasattr(targets, "cpu") else targets, np.float32)
        there = self._at >= 0
        in_pool = np.full((len(self.pool), given.shape[1]), 1 / given.shape[1], np.float32)
        in_pool[self._at[there]] = given[there]
        probs = given.copy()
        probs[there] = self.model.finetune(in_pool, epochs, seed=self.settings.seed)[self._at[there]]
        return probs

    def dropout(self) -> Iterator[np.ndarray]:
        """Bald's passes: probabilities (N, K) at the run's positions, with dropout on."""
        there = self._at >= 0
        for found in self.model.dropout(self.settings.dropout_passes, seed=self.settings.seed):
            probs = np.full((len(self._at), found.shape[1]), 1 / found.shape[1], np.float32)
            probs[there] = found[self._at[there]]
            yield probs

    def train(self, number: int) -> Estimate | None:
        """Fit the model on all answers but the reserve's -> how it does on the reserve."""
        books, kept = self.journal.books, self.journal.kept
        there = books.labelled[self._at[books.labelled] >= 0]
        seed = int(np.random.SeedSequence((self.settings.seed, number)).generate_state(1, np.uint32)[0])
        self.model.fit(self._at[there], books.labels_of(there), seed=seed, progress=self._progress)
        if len(kept.labelled) == 0:
            return None
        return estimate(self.journal.task, kept.labels, self.predict(kept.labelled)[0])

    # ------------------------------------------------------------------ pool and store

    def _join_pool(self) -> None:
        """New entries of the pool join at the end."""
        known = self.journal.position
        new = [one for one in self.pool.ids if one not in known]
        if new:
            self._record("pool", {"pool": _described(self.pool)})
            self.store.add_examples(new)
            self.journal.add_ids(new)
        self._map_pool()

    def _map_pool(self) -> None:
        """Where each of the run's examples stands in the pool today; -1 for those that have vanished."""
        ids, mine = self.pool.ids, self.journal.ids
        if len(ids) == len(mine) and all(a == b for a, b in zip(ids, mine)):
            self._at = np.arange(len(ids))
            return
        place = {one: at for at, one in enumerate(ids)}
        self._at = np.array([place.get(one, -1) for one in mine], np.int64)

    def _prepare(self) -> None:
        """What can't be read is set aside, once."""
        files = self.pool.set_aside()
        if files != self.journal.files:
            self._record("files", {"reasons": files})
        unreadable = self.model.prepare(self._progress)
        run_position = {int(at): p for p, at in enumerate(self._at.tolist()) if at in unreadable} if unreadable else {}
        reasons = {run_position[at]: reason for at, reason in unreadable.items()}
        gone = np.flatnonzero(self._at < 0)
        reasons |= {int(p): "it has vanished from the pool" for p in gone}
        fresh = {str(p): reason for p, reason in reasons.items() if p not in self.journal.aside}
        if fresh:
            self._record("aside", {"reasons": fresh})

    def _check_settings(self) -> None:
        first = next(self.store.events(), None)
        if first is None:
            self.store.append("opened", {"settings": self.settings.as_dict()})
            return
        self.settings.check_same(first.body["settings"])

    def _replay(self) -> Journal:
        journal = Journal(self.settings)
        for event in self.store.events():
            journal.apply(event, self.store)
        return journal

    def _append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> Event:
        try:
            number = self.store.append(kind, body, data)
        except BaseException:
            self.journal, self._walk = self._replay(), None
            raise
        import time

        return Event(number, time.time(), kind, body, data)

    def _record(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> None:
        """Write an event, then take it in."""
        self.journal.apply(self._append(kind, body, data), self.store)


def _described(pool: Pool) -> dict[str, Any] | None:
    try:
        return pool.describe()
    except InputError:
        return None


__all__ = ["RESERVE", "SKIP", "START", "Asked", "Session", "Story"]
