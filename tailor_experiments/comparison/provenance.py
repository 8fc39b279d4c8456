"""What a row says of how it was made: the model, and the versions of packages."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tailor import __version__
from tailor.models import registry

#: packages that results depend on
PACKAGES = (
    "numpy",
    "scipy",
    "torch",
    "scikit-learn",
    "numba",
)


def model_text(model: dict[str, Any]) -> str:
    """A model's name and options in one text; epochs too where they are the default.

    >>> model_text({"name": "finetune(lr=0.001)", "network": "small-cnn", "device": "cuda"})
    'finetune(lr=0.001, network=small-cnn, epochs=10)'
    """
    name, options = registry.parse(model.get("name", "probe"))
    for key, value in model.items():
        # The device makes no difference to what is trained.
        if key not in ("name", "device"):
            options[key] = value
    # So many steps take the place of epochs.
    if "steps" not in options and "epochs" not in options:
        options |= _default_epochs(name)
    if not options:
        return name
    # Where the file lies is no matter of the model.
    if "weights" in options:
        options["weights"] = Path(options["weights"]).name
    texts = [f"{key}={value}" for key, value in options.items()]
    return f"{name}({', '.join(texts)})"


def _default_epochs(name: str) -> dict[str, Any]:
    """The option of a model that is trained in epochs."""
    # A simulated model is not in this registry, and has no epochs.
    if name not in registry.names():
        return {}
    known_options = registry.options(name)
    if "epochs" not in known_options:
        return {}
    return {"epochs": known_options["epochs"].default}


@cache
def versions() -> dict[str, str]:
    """Of the packages that results depend on; this one's own also where it runs from a folder, not
    installed.
    """
    installed = {"tailor": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed
