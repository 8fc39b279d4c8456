"""Putting what was asked before the annotators: as new tasks, or as marks on tasks that are there
already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.errors import InputError
from tailor.integrations.label_studio.label_config import LabelConfig
from tailor.integrations.label_studio.task_mirror import ARM, ID, ROUND, TaskMirror
from tailor.pools.base import Pool, Unreadable
from tailor.run.session import Session
from tailor.run.state import PickRecord
from tailor.task import Task

if TYPE_CHECKING:
    from tailor.web.examples import Examples

#: the model version of predictions that come with a task. One for all rounds: Label Studio shows
#: annotators the predictions of one version alone, and those of the round before must not vanish
#: while they wait
VERSION = "TAILOR"
#: pictures in one upload; Label Studio takes 100 files and 250 MB at once
CHUNK = 20
#: pixels of the longer side of an uploaded picture, at most
LARGEST = 1600
#: the Data Manager's tab that lists what was asked
TAB = "TAILOR"
VIEWS = "/api/dm/views/"
GONE = Unreadable("it has vanished from the pool")


def prediction(config: LabelConfig, task: Task, probs: np.ndarray) -> dict[str, Any]:
    """probs (K,) -> what the model says and how sure it is, as Label Studio writes it."""
    own = task.predicted(probs[None])[0]
    sure = probs[own] if task.kind == "multi-class" else np.where(own, probs, 1 - probs)
    classes = [task.classes[k] for k in np.flatnonzero(own).tolist()]
    return {"result": config.written(classes), "score": round(float(sure.mean()), 4)}


def check_shown(pool: Pool, config: LabelConfig) -> None:
    """Tasks can be made of the pool's examples."""
    if pool.kind != config.shows:
        raise InputError(
            f"the pool holds {pool.kind}s, the label config shows {config.shows}s: they must fit"
        )
    if config.others:
        keys = ", ".join(f"${key}" for key in config.others)
        raise InputError(
            f"the label config also shows {keys}, which the pool does not have: remove it there"
        )


class Publisher:
    """Every example that waits for an answer has a task in Label Studio, with the arm, the round
    and a prediction.

    pushes: whether tasks are made from the session's pool; else the project's own tasks are the
    pool.
    """

    def __init__(
        self, task_mirror: TaskMirror, session: Session, *, pushes: bool, say: Callable[[str], None]
    ) -> None:
        self.task_mirror = task_mirror
        self.studio = task_mirror.studio
        self.session = session
        self.pool = session.pool
        self._pushes = pushes
        self._say = say
        self._unshown: set[str] = set()  # can't be read: said once
        self._examples: Examples | None = None
        if pushes:
            check_shown(self.pool, self.config)

    @property
    def config(self) -> LabelConfig:
        return self.task_mirror.config

    def push(self, pick_records: Sequence[PickRecord]) -> int:
        """What is not there yet is added -> how many. Safe to repeat after a failure half-way."""
        done = 0
        new = [s for s in pick_records if self.task_mirror.task_of(s.id) is None]
        if self._pushes:
            for chunk in _chunks(new, CHUNK if self.config.shows == "image" else 10 * CHUNK):
                done += self._create(chunk)
        return done + self._mark([s for s in pick_records if self._is_unmarked(s)])

    # ------------------------------------------------------------------ new tasks

    def _create(self, pick_records: Sequence[PickRecord]) -> int:
        shown = self._contents(pick_records)
        tasks: list[dict[str, Any]] = [
            {
                "data": {self.config.key: shown[s.id], ID: s.id, **_why(s)},
                "predictions": self._predictions(s),
            }
            for s in pick_records
            if s.id in shown
        ]
        if tasks:
            ids = self.studio.add_tasks(tasks)
            for one, made in zip(ids, tasks):
                self.task_mirror.put({"id": one, "data": made["data"]})
        return len(tasks)

    def _contents(self, pick_records: Sequence[PickRecord]) -> dict[str, str]:
        """By id: the text itself, or where Label Studio keeps the picture. What can't be read is
        left out.
        """
        read = self._texts if self.config.shows == "text" else self._pictures
        found = read([s.id for s in pick_records])
        for one, content in found.items():
            if isinstance(content, Unreadable) and one not in self._unshown:
                self._say(f"{one} can't be shown: {content.reason}.")
                self._unshown.add(one)
        fine = {
            one: content for one, content in found.items() if not isinstance(content, Unreadable)
        }
        if self.config.shows == "text":
            return fine
        return dict(zip(fine, self.studio.upload(list(fine.values())) if fine else ()))

    def _texts(self, ids: Sequence[str]) -> dict[str, Any]:
        place = {one: at for at, one in enumerate(self.pool.ids)}
        return {one: self.pool.read([place[one]])[0] if one in place else GONE for one in ids}

    def _pictures(self, ids: Sequence[str]) -> dict[str, Any]:
        """Each as (name, content, type), decoded and encoded anew: nothing but pixels gets
        through.
        """
        from tailor.web.examples import Examples, Picture

        if self._examples is None:
            self._examples = Examples(self.pool, memory=0)
        found: dict[str, Any] = {}
        for one in ids:
            picture = self._examples.picture(one, LARGEST)
            name = re.sub(r"[^A-Za-z0-9_-]", "_", one.rsplit("/", 1)[-1].rsplit(".", 1)[0])[:80]
            if isinstance(picture, Picture):
                found[one] = (
                    f"{name}.{picture.media_type.rpartition('/')[2]}",
                    picture.content,
                    picture.media_type,
                )
            else:
                found[one] = picture or GONE
        return found

    # ------------------------------------------------------------------ tasks that are there

    def _is_unmarked(self, pick_record: PickRecord) -> bool:
        task = self.task_mirror.task_of(pick_record.id)
        return task is not None and task.data.get(ROUND) != pick_record.round

    def _mark(self, pick_records: Sequence[PickRecord]) -> int:
        """The prediction first, the mark last: after a failure between the two, the mark is still
        missing.
        """
        tasks = {s.id: t for s in pick_records if (t := self.task_mirror.task_of(s.id)) is not None}
        new = [s for s in pick_records if VERSION not in tasks[s.id].predicted_by]
        predictions = [{"task": tasks[s.id].id, **p} for s in new for p in self._predictions(s)]
        if predictions:
            self.studio.add_predictions(predictions)
            if not self.studio.describe()[
                "model_version"
            ]:  # with none chosen, annotators would see none
                self.studio.change(model_version=VERSION)
        for pick_record in pick_records:
            task = tasks[pick_record.id]
            data = {**task.data, **_why(pick_record)}
            self.studio.set_data(task.id, data)
            self.task_mirror.remark(task.id, data)
        if pick_records:
            self._show_tab()
        return len(pick_records)

    def _show_tab(self) -> None:
        """A tab in the Data Manager with what was asked, in that order: the free edition has no
        queue of ours.
        """
        if any((v.get("data") or {}).get("title") == TAB for v in self.studio.listed(VIEWS)):
            return
        asked = {
            "filter": f"filter:tasks:data.{ROUND}",
            "operator": "greater",
            "type": "Number",
            "value": -1,
        }
        filters = {"conjunction": "and", "items": [asked]}
        column = f"tasks:data.{ROUND}"
        order = {
            "ordering": [column],
            "columnsDisplayType": {column: "Number"},
        }  # as text, round 10 would precede 9
        self.studio.add(VIEWS, data={"title": TAB, "filters": filters, **order})

    # ------------------------------------------------------------------ predictions

    def _predictions(self, pick_record: PickRecord) -> list[dict[str, Any]]:
        """Empty for the hold-out, which measures the model: it must not lead the annotator."""
        if pick_record.predicted is None or pick_record.arm == "hold-out":
            return []
        return [
            {
                "model_version": VERSION,
                **prediction(self.config, self.session.run_state.task, pick_record.predicted),
            }
        ]


def _why(pick_record: PickRecord) -> dict[str, Any]:
    return {ROUND: pick_record.round, ARM: pick_record.arm}


def _chunks(pick_records: Sequence[PickRecord], size: int) -> Iterator[Sequence[PickRecord]]:
    for first in range(0, len(pick_records), size):
        yield pick_records[first : first + size]
