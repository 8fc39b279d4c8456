"""A trained model in a folder: weights as safetensors, settings as JSON. No pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailor.errors import InputError
from tailor.task import Task

if TYPE_CHECKING:
    import torch

WEIGHTS, SETTINGS, FORMAT = "model.safetensors", "model.json", 1


def write_model(folder: Path, task: Task, settings: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> None:
    """Both files are written aside and renamed, the settings last."""
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f"{WEIGHTS}.tmp"
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, aside)
    os.replace(aside, folder / WEIGHTS)
    text = json.dumps({"format": FORMAT, "task": task.kind, "classes": task.classes, **settings}, indent=2)
    aside = folder / f"{SETTINGS}.tmp"
    aside.write_text(text + "\n", encoding="utf-8")
    os.replace(aside, folder / SETTINGS)


def read_model(folder: Path, task: Task, kind: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """(settings, tensors) that write_model wrote, for this task and kind of model."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        tensors = load_file(folder / WEIGHTS)
    except FileNotFoundError as error:
        raise InputError(f"there is no saved model in {str(folder)!r}: {error.filename} is missing") from error
    except (ValueError, SafetensorError) as error:
        raise InputError(f"the saved model in {str(folder)!r} is damaged: {error}") from error
    if settings.get("format") != FORMAT:
        raise InputError(f"the model in {str(folder)!r} has format {settings.get('format')}, here {FORMAT} is read")
    if settings.get("model") != kind:
        raise InputError(f"{str(folder)!r} holds a {settings.get('model')!r} model, not {kind!r}")
    if (settings["task"], tuple(settings["classes"])) != (task.kind, task.classes):
        raise InputError(
            f"the model in {str(folder)!r} is {settings['task']} with classes {settings['classes']}, "
            f"the task is {task.kind} with {list(task.classes)}"
        )
    return settings, tensors
