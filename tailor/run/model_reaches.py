"""What a model with its options would touch, in a run's settings or in a saved model's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailor.models import registry as models
from tailor.models.backbones import LIBRARIES
from tailor.models.backbones import registry as backbones
from tailor.models.files import read_settings
from tailor.models.sklearn_classifiers import CLASSIFIERS
from tailor.run.reach import Action, Reach, plugin_reaches

#: what the weights that a network is known by are fetched from, once
PYTORCH = "download.pytorch.org"
FETCHED_FROM = {
    "resnet18": PYTORCH,
    "torchvision": PYTORCH,
    "timm": "huggingface.co",
}
IMAGENET = "imagenet"


def model_reaches(name: str, options: Mapping[str, Any]) -> list[Reach]:
    """What the model of this name would touch.

    name     as [model] has it, "probe" or "probe(head=hidden)"
    options  the other keys of [model]; they win over those in the brackets

    Raises InputError where the name can't be read.
    """
    plain_name, named_options = models.named(name)
    reaches = plugin_reaches(models, plain_name)
    all_options = {**named_options, **options}
    backbone = all_options.get("backbone")
    if backbone is not None:
        reaches += backbone_reaches(str(backbone))
    estimator = all_options.get("estimator")
    if estimator is not None and estimator not in CLASSIFIERS:
        reaches.append(Reach(Action.RUNS, f"sklearn.{estimator}, which is not a listed classifier"))
    weights = all_options.get("weights")
    if weights is not None:
        network = str(all_options.get("network", "resnet18"))
        reaches += _weight_reaches(network, str(weights))
    # Only in the brackets: [model] has no such key, and a probe's is the run's own.
    cache = named_options.get("cache")
    if cache is not None:
        folder = Path(str(cache)).resolve()
        reaches.append(Reach(Action.WRITES, str(folder)))
    return reaches


def saved_model_reaches(folder: Path) -> list[Reach]:
    """What the saved model in a folder would touch: its class, and its backbone. Its other settings
    are compared with those of the run, and choose nothing.

    Raises InputError where there is no model in the folder, or a damaged one.
    """
    settings = read_settings(folder)
    reaches = plugin_reaches(models, settings["model"])
    backbone = settings.get("backbone")
    if backbone is not None:
        reaches += backbone_reaches(str(backbone))
    return reaches


def backbone_reaches(backbone: str) -> list[Reach]:
    """What a backbone would touch, as make_backbone() takes it."""
    # "timm:NAME" and "timm(model=NAME)" are the same.
    library, *_ = re.split(r"[:(]", backbone)
    name = library.strip()
    if name in LIBRARIES:
        return [_fetches(name, backbone)]
    plain_name, options = backbones.parse(backbone)
    if plain_name == "resnet18":
        return _weight_reaches(plain_name, str(options.get("weights", IMAGENET)))
    return plugin_reaches(backbones, plain_name)


def _weight_reaches(network: str, weights: str) -> list[Reach]:
    if weights != IMAGENET:
        return [Reach(Action.READS, weights)]
    # Those of other networks come with a package that is installed.
    if network in FETCHED_FROM:
        return [_fetches(network, network)]
    return []


def _fetches(library: str, network: str) -> Reach:
    # Without options, which a saved model states in full.
    plain_network, _, _ = network.partition("(")
    if plain_network.strip() == library and library in LIBRARIES:
        plain_network = network
    return Reach(Action.CONNECTS, f"{FETCHED_FROM[library]}, for the weights of {plain_network}")
