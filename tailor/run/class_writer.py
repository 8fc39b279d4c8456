"""Where changes of the classes are checked and recorded. It needs the store alone: no pool, no
model.
"""

from __future__ import annotations

from tailor.common.checks import check_whole, shown
from tailor.errors import InputError
from tailor.run import class_merges
from tailor.run.events import ClassesChanged
from tailor.run.recorded_run import RecordedRun
from tailor.selection.class_edits import ClassEdit, added, merged, renamed


class ClassWriter(RecordedRun):
    """A run as far as its classes go. Every event is in the store before it counts."""

    def add_class(self, name: str, by: str | None = None) -> None:
        """A new class, in the middle of a run. So far nothing is labelled as one."""
        change = added(self.run_state.task, name)
        self._change_classes(change, by)

    def rename_class(
        self,
        old: str,
        new: str,
        by: str | None = None,
    ) -> None:
        """A class has another name."""
        change = renamed(self.run_state.task, old, new)
        self._change_classes(change, by)

    def merge_classes(
        self,
        old: str,
        into: str,
        by: str | None = None,
    ) -> None:
        """What was labelled `old` is labelled `into`, and `old` is no more."""
        change = merged(self.run_state.task, old, into)
        self._change_classes(change, by)

    def undo_merge(self, event: int | None = None, by: str | None = None) -> None:
        """Take the latest merge back. Labels and votes given before it are exactly what they were;
        those given since stay in the class that was left. event: its number, where only this merge
        is meant.
        """
        if event is not None:
            event = check_whole(event, "event")
        merge = class_merges.last_merge(self.run_state, event)
        change = merge.change(self.run_state.task)
        self._change_classes(change, by, undoes=merge.event)

    def _change_classes(
        self,
        change: ClassEdit,
        by: str | None,
        undoes: int | None = None,
    ) -> None:
        """Labels, posteriors and counts follow. Nothing is changed where arms, selector or reward
        can't.

        undoes: the event of the change that is taken back
        """
        check_annotator(by)
        # In a copy first: what is in the store must be possible.
        trial = self.run_state.copy()
        if undoes is None:
            class_merges.reclass(trial, change)
        else:
            class_merges.take_back(trial, undoes, change)
        trial.learner.check_can_plan()
        event = ClassesChanged(
            change.after.classes,
            change.place,
            by,
            undoes,
        )
        self._record(event)


def check_annotator(by: str | None) -> None:
    """Raises InputError where `by` is neither a name nor None, for nobody known."""
    if by is None:
        return
    if not isinstance(by, str):
        raise InputError(f"by is {shown(by)}: it must be a name")
