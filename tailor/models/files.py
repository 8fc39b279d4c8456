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

WEIGHTS = "model.safetensors"
SETTINGS = "model.json"
#: of the two files; others are refused
FORMAT = 1
#: what of a saved model decides what it reads; given again, another pool is read the same way
INPUT_OPTIONS = ("backbone", "size")


def write_model(
    folder: Path,
    task: Task,
    settings: Mapping[str, Any],
    tensors: Mapping[str, torch.Tensor],
) -> None:
    """Write both files, each atomically, the settings last; the folder is made where it is missing.

    settings  plain values, "model" (its name) and "input" (what it reads) among them
    tensors   by name, on any device
    """
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    on_cpu = {}
    for name, tensor in tensors.items():
        copied = tensor.detach().cpu()
        on_cpu[name] = copied.contiguous()
    # The settings last: a folder that has them has its weights, too.
    with atomic_path(folder / WEIGHTS) as temporary:
        save_file(on_cpu, temporary)
    content = {
        "format": FORMAT,
        "task": task.kind,
        "classes": task.classes,
        **settings,
    }
    text = json.dumps(content, indent=2) + "\n"
    write_atomically(folder / SETTINGS, text)


def read_settings(folder: Path) -> dict[str, Any]:
    """What write_model() wrote beside the weights.

    Raises InputError where there is no model, or one that is damaged or of another format.
    """
    path = Path(folder) / SETTINGS
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise _missing(folder, error) from error
    except (ValueError, RecursionError) as error:
        raise damaged(folder, f"{SETTINGS}: {error}") from error
    if not isinstance(settings, dict):
        raise _wrong_settings(
            folder, f"a {type(settings).__name__} stands where settings are expected"
        )
    if settings.get("format") != FORMAT:
        raise InputError(
            f"the model in {str(folder)!r} has format {settings.get('format')}, here {FORMAT} is "
            "read"
        )
    if not _has_what_is_needed(settings):
        raise _wrong_settings(
            folder, "model, input or classes are missing or not what they should be"
        )
    return settings


def _has_what_is_needed(settings: dict[str, Any]) -> bool:
    for key in ("model", "input"):
        if not isinstance(settings.get(key), str):
            return False
    classes = settings.get("classes")
    if not isinstance(classes, list):
        return False
    return all(isinstance(name, str) for name in classes)


def read_model(
    folder: Path, task: Task, kind: str
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """(settings, tensors by name) that write_model() wrote.

    kind  the model's name

    Raises InputError as read_settings() does, and for a model of another kind or task.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    settings = read_settings(folder)
    try:
        tensors = load_file(folder / WEIGHTS)
    except FileNotFoundError as error:
        raise _missing(folder, error) from error
    except (ValueError, SafetensorError) as error:
        raise damaged(folder, f"{WEIGHTS}: {error}") from error
    _check_purpose(folder, settings, task, kind)
    return settings, tensors


def model_problems(folder: Path) -> list[str]:
    """What is wrong with the files that write_model() wrote, in words; empty where all is whole."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        read_settings(folder)
        tensors = load_file(folder / WEIGHTS)
    except InputError as error:
        return [str(error)]
    except (OSError, ValueError, SafetensorError) as error:
        return [f"{WEIGHTS}: {error}"]
    problems = []
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            problems.append(f"{WEIGHTS}: {name} holds what is no number")
    return problems


def _check_purpose(
    folder: Path,
    settings: dict[str, Any],
    task: Task,
    kind: str,
) -> None:
    """Raises InputError for a model of another kind or task."""
    if settings["model"] != kind:
        raise InputError(f"{str(folder)!r} holds a {settings['model']!r} model, not {kind!r}")
    saved_kind = settings.get("task")
    saved_classes = settings["classes"]
    classes = list(task.classes)
    if saved_kind != task.kind or saved_classes != classes:
        raise InputError(
            f"the model in {str(folder)!r} is {saved_kind} with classes {saved_classes}, "
            f"the task is {task.kind} with {classes}"
        )


def input_options(folder: Path) -> dict[str, Any]:
    """What a saved model reads, as options of make_model(): its backbone, or the size of its
    pictures. The defaults of another pool may be others.
    """
    from tailor.models import registry

    settings = read_settings(folder)
    if settings["model"] not in registry:
        return {}
    taken = registry.options(settings["model"])
    options = {}
    for key in INPUT_OPTIONS:
        value = settings.get(key)
        if key in taken and value is not None:
            options[key] = value
    return options


def damaged(folder: Path, why: str) -> InputError:
    return InputError(f"the saved model in {str(folder)!r} is damaged: {why}")


def _wrong_settings(folder: Path, why: str) -> InputError:
    return damaged(folder, f"{SETTINGS}: {why}; train it again")


def _missing(folder: Path, error: FileNotFoundError) -> InputError:
    return InputError(f"there is no saved model in {str(folder)!r}: {error.filename} is missing")
