"""A trained model in a folder: weights as safetensors, settings as JSON. No pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailor.common.atomic_files import atomic_path, write_atomically
from tailor.errors import InputError
from tailor.task import Task

if TYPE_CHECKING:
    import torch

WEIGHTS, SETTINGS, FORMAT = "model.safetensors", "model.json", 1


def write_model(
    folder: Path, task: Task, settings: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
) -> None:
    """Both files are written aside and renamed, the settings last."""
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with atomic_path(folder / WEIGHTS) as temporary:
        save_file(on_cpu, temporary)
    text = json.dumps(
        {"format": FORMAT, "task": task.kind, "classes": task.classes, **settings}, indent=2
    )
    write_atomically(folder / SETTINGS, text + "\n")


def read_settings(folder: Path) -> dict[str, Any]:
    """What write_model wrote beside the weights."""
    path = Path(folder) / SETTINGS
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"there is no saved model in {str(folder)!r}: {error.filename} is missing"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the saved model in {str(folder)!r} is damaged: {SETTINGS}: {error}"
        ) from error
    if not isinstance(settings, dict):
        raise _damaged(folder, f"a {type(settings).__name__} stands where settings are expected")
    if settings.get("format") != FORMAT:
        raise InputError(
            f"the model in {str(folder)!r} has format {settings.get('format')}, here {FORMAT} is "
            "read"
        )
    texts = isinstance(settings.get("model"), str) and isinstance(settings.get("input"), str)
    classes = settings.get("classes")
    if (
        not texts
        or not isinstance(classes, list)
        or not all(isinstance(name, str) for name in classes)
    ):
        raise _damaged(folder, "model, input or classes are missing or not what they should be")
    return settings


def read_model(
    folder: Path, task: Task, kind: str
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """(settings, tensors) that write_model wrote, for this task and kind of model."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    settings = read_settings(folder)
    try:
        tensors = load_file(folder / WEIGHTS)
    except FileNotFoundError as error:
        raise InputError(
            f"there is no saved model in {str(folder)!r}: {error.filename} is missing"
        ) from error
    except (ValueError, SafetensorError) as error:
        raise InputError(
            f"the saved model in {str(folder)!r} is damaged: {WEIGHTS}: {error}"
        ) from error
    if settings["model"] != kind:
        raise InputError(f"{str(folder)!r} holds a {settings['model']!r} model, not {kind!r}")
    if (settings.get("task"), tuple(settings["classes"])) != (task.kind, task.classes):
        raise InputError(
            f"the model in {str(folder)!r} is {settings.get('task')} with classes "
            f"{settings['classes']}, "
            f"the task is {task.kind} with {list(task.classes)}"
        )
    return settings, tensors


def input_options(folder: Path) -> dict[str, Any]:
    """What a saved model reads, as make_model takes it: its backbone, or the size of its pictures.
    The defaults of another pool may be others.
    """
    from tailor.models import registry

    settings = read_settings(folder)
    taken = registry.options(settings["model"]) if settings["model"] in registry else {}
    return {
        key: settings[key]
        for key in ("backbone", "size")
        if key in taken and settings.get(key) is not None
    }


def _damaged(folder: Path, why: str) -> InputError:
    return InputError(
        f"the saved model in {str(folder)!r} is damaged: {SETTINGS}: {why}; train it again"
    )
