"""The options of open_run as keys of tailor.toml: what they may be, and what a run has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailor.common.checks import check_flag, check_text, check_whole
from tailor.errors import InputError
from tailor.run.project import Project

#: the options of open_run by the section of tailor.toml that they are keys of
OPTIONS_BY_SECTION = {
    "model": (
        "model",
        "backbone",
        "device",
    ),
    "selection": (
        "strategies",
        "selector",
        "reward",
        "start",
        "cover",
        "batch",
        "rounds",
        "holdout",
        "seed",
    ),
    "stop": ("budget",),
    "run": ("store",),
    "pool": (
        "key",
        "column",
        "label",
        "labels",
        "label_separator",
    ),
}
#: options that have another name as keys
KEY_OF_OPTION = {"model": "name"}

TEXT_OPTIONS = (
    "model",
    "backbone",
    "device",
    "selector",
    "reward",
    "start",
    "store",
    "key",
    "column",
    "label",
    "labels",
    "label_separator",
)
WHOLE_NUMBER_OPTIONS = ("batch", "rounds")

#: section -> key -> value
Sections = dict[str, dict[str, Any]]


def check_options(options: Mapping[str, Any]) -> None:
    """Raise InputError where an option that was given is of the wrong type. Those that are not
    checked here are checked with the run's settings.
    """
    for name in TEXT_OPTIONS:
        if options[name] is not None:
            check_text(options[name], name)
    for name in WHOLE_NUMBER_OPTIONS:
        if options[name] is not None:
            check_whole(options[name], name)
    if options["cover"] is not None:
        check_flag(options["cover"], "cover")


def in_sections(options: Mapping[str, Any]) -> Sections:
    """The options that were given, as tailor.toml has them."""
    sections: Sections = {}
    for section, names in OPTIONS_BY_SECTION.items():
        keys = {}
        for name in names:
            if options[name] is None:
                continue
            key = KEY_OF_OPTION.get(name, name)
            keys[key] = options[name]
        sections[section] = keys
    return sections


def task_section(classes: list[str] | None, multi_label: bool) -> dict[str, Any]:
    """The keys of [task] that were given."""
    keys: dict[str, Any] = {}
    if classes is not None:
        keys["classes"] = classes
    # False is the default of open_run, and may mean that the run is to say it.
    if multi_label:
        keys["kind"] = "multi-label"
    return keys


def check_same_settings(project: Project, sections: Sections) -> None:
    """Raise InputError where an option is other than the run's."""
    for section, keys in sections.items():
        settings = project.config.section(section)
        if section == "task":
            # As they are today: they may have been edited since the file was written.
            settings["classes"] = list(project.settings.classes)
        for key, value in keys.items():
            # TOML knows lists alone.
            if isinstance(value, tuple):
                value = list(value)
            run_value = settings.get(key)
            if run_value == value:
                continue
            place = project.config.place(section, key)
            raise InputError(
                f"{key} is {value!r}, the run in {project.folder} has {run_value!r}: "
                f"leave it out, or edit {place}"
            )
