"""The card beside a saved model: what it was trained on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailor import __version__
from tailor.common.atomic_files import write_atomically
from tailor.errors import InputError
from tailor.run.export import check_fresh
from tailor.run.holdout import HoldoutEstimate
from tailor.task import Task

if TYPE_CHECKING:
    from tailor.run.session import Session

FILE = "card.json"


def write_card(
    folder: Path,
    session: Session,
    model: dict[str, Any],
    estimate: HoldoutEstimate | None,
) -> None:
    """Write the card of a session's model. model: the settings that made it."""
    run_state = session.run_state
    settings = session.settings
    task = run_state.task
    table = run_state.label_table
    labels_per_class = table.counts.astype(int).tolist()
    holdout = None
    if estimate is not None:
        holdout = asdict(estimate)
    arm_families = run_state.learner.contest.families
    card = {
        "tailor": __version__,
        "task": task.kind,
        "classes": list(task.classes),
        "model": _without_paths(model),
        "trained_on": len(table.labelled),
        "labels_per_class": dict(zip(task.classes, labels_per_class)),
        "holdout": holdout,
        "selector": settings.selector,
        # Several arms are of one family, one for each class.
        "families": list(dict.fromkeys(arm_families)),
        "rounds": len(run_state.rounds),
        "seed": settings.seed,
    }
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    write_atomically(folder / FILE, text)


def _without_paths(options: dict[str, Any]) -> dict[str, Any]:
    """Options as JSON can hold them: it has no paths."""
    plain = {}
    for key, value in options.items():
        if isinstance(value, Path):
            plain[key] = str(value)
        else:
            plain[key] = value
    return plain


def check_place(folder: Path, force: bool) -> None:
    """A model is written to a new or an empty folder; with `force` over another model, and never
    among other files. Raises InputError.
    """
    card = folder / FILE
    if not card.is_file():
        check_fresh(folder)
        return
    if not force:
        raise InputError(
            f"{folder} holds a model already: name a new folder, or write over it with --force"
        )


def check_card(folder: Path, task: Task) -> None:
    """Raises InputError where there is no model, or one for other classes."""
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"no model in {folder}: `tailor train {folder}` makes one")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        classes = [str(name) for name in card["classes"]]
        kind = str(card["task"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}): train the model again") from error
    if classes == list(task.classes) and kind == task.kind:
        return
    model_classes = ", ".join(classes)
    run_classes = ", ".join(task.classes)
    raise InputError(
        f"the model in {folder} is {kind} for {model_classes}; this run is {task.kind} "
        f"for {run_classes}"
    )
