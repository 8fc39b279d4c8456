"""How many features a model gives, told by its name and options: nothing is loaded, nothing
computed.
"""

from __future__ import annotations

import re
from typing import Any

from tailor.models import backbones, registry
from tailor.pools.base import Pool


def feature_width(given: str, pool: Pool, **options: Any) -> int | None:
    """d of the features that arms see. None where only the model itself can tell: timm,
    torchvision, plugins.

    given, options  as for make_model
    """
    name, own = registry.parse(given)
    options = own | options

    def option(key: str) -> Any:
        return options.get(key, registry.options(name)[key].default)

    if name == "finetune":
        from tailor.models.finetune import network_class

        return int(network_class(option("network")).width)
    if name == "probe":
        return (
            int(option("hidden"))
            if option("head") == "hidden"
            else backbone_width(option("backbone"), pool)
        )
    if name == "sklearn":
        from tailor.models.sklearn_model import PLAIN

        return backbone_width(option("backbone") or PLAIN.get(pool.kind), pool)
    return None


def backbone_width(given: str | None, pool: Pool) -> int | None:
    """given: as for make_backbone."""
    if given is None:
        return backbones.default_backbone(pool, "cpu").width
    found = backbones.registry.find(re.split(r"[:(]", given)[0].strip())
    if found.width is not None or found.network:
        return found.width
    return backbones.make_backbone(given, pool, "cpu").width
