"""The paper's datasets, read from their official files or from Parquet in the Hugging Face layout.

`load(name, path)` gives a Dataset; `registry` finds the loaders by name; `PAPER` is the paper's
table of settings.
"""

from __future__ import annotations

import os
from typing import Any

from tailor.errors import UnknownName
from tailor.registry import Registry
from tailor_experiments.datasets.base import Dataset
from tailor_experiments.datasets.paper import PAPER, PaperSetting

registry: Registry[Dataset] = Registry(
    "dataset",
    "tailor.datasets",
    {
        "celeba": "tailor_experiments.datasets.celeba:celeba",
        "coco": "tailor_experiments.datasets.coco:coco",
        "voc": "tailor_experiments.datasets.voc:voc",
        "cars": "tailor_experiments.datasets.cars:cars",
        "imagenet": "tailor_experiments.datasets.imagenet:imagenet",
        "kuzushiji49": "tailor_experiments.datasets.kuzushiji:kuzushiji49",
        "caltech256": "tailor_experiments.datasets.caltech:caltech256",
        "cifar10": "tailor_experiments.datasets.cifar:cifar10",
        "cifar100": "tailor_experiments.datasets.cifar:cifar100",
        "svhn": "tailor_experiments.datasets.svhn:svhn",
        "fashion-mnist": "tailor_experiments.datasets.idx:fashion_mnist",
    },
)

#: Other ways to write a name.
ALIASES = {
    "fashion": "fashion-mnist",
    "kuzushiji": "kuzushiji49",
    "k49": "kuzushiji49",
    "caltech": "caltech256",
}


def resolve(name: str) -> tuple[str, dict[str, Any]]:
    """A setting's name -> the loader's name and the options that the name itself carries.

    >>> resolve("cifar10-2")
    ('cifar10', {'classes': 2})
    >>> resolve("fashion-10")
    ('fashion-mnist', {'classes': 10})
    """
    loaders = registry.names()
    loader = ALIASES.get(name, name)
    if loader in loaders:
        return loader, {}
    base, _, number = name.rpartition("-")
    loader = ALIASES.get(base, base)
    # Without a dash the base is empty, and there is no loader of that name.
    takes_classes = loader in loaders and "classes" in registry.options(loader)
    if takes_classes and number.isdecimal():
        return loader, {"classes": int(number)}
    # All ways to write a name, so that the nearest one can be suggested.
    all_names = {*loaders, *PAPER, *ALIASES}
    raise UnknownName("dataset", name, all_names)


def load(name: str, path: str | os.PathLike[str], **options: Any) -> Dataset:
    """The dataset from a folder (or file) of its official files, or of Parquet files.

    name     one of `registry`, or with its number of classes, "cifar10-2"
    options  the loader's own; see `registry.options(name)`
    """
    loader, implied = resolve(name)
    # What is asked for by name wins over what the setting's name implies.
    all_options = implied | options
    return registry.make(loader, path, **all_options)


__all__ = [
    "ALIASES",
    "PAPER",
    "Dataset",
    "PaperSetting",
    "load",
    "registry",
    "resolve",
]
