"""How many features a model gives, told by its name and options: nothing is loaded, nothing
computed.
"""

from __future__ import annotations

import re
from typing import Any

from tailor.models import backbones, registry
from tailor.pools.base import Pool


def feature_width(model_name: str, pool: Pool, **options: Any) -> int | None:
    """d of the features that arms see. None where only the model itself can tell: timm,
    torchvision, plugins.

    model_name, options  as for make_model()
    """
    name, text_options = registry.parse(model_name)
    options = text_options | options

    def option(key: str) -> Any:
        default = registry.options(name)[key].default
        return options.get(key, default)

    if name == "finetune":
        from tailor.models.finetune import network_class

        network = network_class(option("network"))
        return network.width
    if name == "probe":
        if option("head") == "hidden":
            return int(option("hidden"))
        return backbone_width(option("backbone"), pool)
    if name == "sklearn":
        from tailor.models.sklearn_model import PLAIN_BACKBONES

        backbone = option("backbone") or PLAIN_BACKBONES.get(pool.kind)
        return backbone_width(backbone, pool)
    return None


def backbone_width(backbone: str | None, pool: Pool) -> int | None:
    """d of a backbone's features, None where only the backbone itself can tell.

    backbone  as for make_backbone()
    """
    if backbone is None:
        default = backbones.default_backbone(pool, "cpu")
        return default.width
    name, *_ = re.split(r"[:(]", backbone)
    kind = backbones.registry.find(name.strip())
    # A network's class states its width or leaves it open: to make one would read weights.
    if kind.width is not None or kind.network:
        return kind.width
    instance = backbones.make_backbone(backbone, pool, "cpu")
    return instance.width
