"""A BERT encoder over weights by name, and the mean over its tokens (Devlin et al. 2019)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

LAYERS = 6
ATTENTION_HEADS = 12
#: of the layer norms
EPSILON = 1e-12

#: by the names of BERT's parameters
Weights = dict[str, Tensor]


def encode(weights: Weights, tokens: Tensor, mask: Tensor) -> Tensor:
    """Texts as vectors of length 1.

    tokens  (n, t) int64
    mask    (n, t) bool, False where a shorter text is filled up

    Returns (n, 384).
    """
    x = _embed(weights, tokens)
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        x = _attend(weights, x, mask, layer)
        x = _feed_forward(weights, x, layer)
    mean = _mean_over_tokens(x, mask)
    return F.normalize(mean, dim=1)


def _embed(weights: Weights, tokens: Tensor) -> Tensor:
    """Tokens (n, t) -> (n, t, width): what they are, and where they stand."""

    def table(name: str) -> Tensor:
        return weights[f"embeddings.{name}_embeddings.weight"]

    _, length = tokens.shape
    words = table("word")[tokens]
    places = table("position")[:length]
    kind_of_text = table("token_type")[0]
    x = words + places
    return _norm(weights, x + kind_of_text, "embeddings.LayerNorm")


def _attend(
    weights: Weights,
    x: Tensor,
    mask: Tensor,
    layer: str,
) -> Tensor:
    """(n, t, width) -> the same shape: every token takes in what the others of its text say."""
    attention = f"{layer}.attention"
    mixed = F.scaled_dot_product_attention(
        _by_head(weights, x, f"{attention}.self.query"),
        _by_head(weights, x, f"{attention}.self.key"),
        _by_head(weights, x, f"{attention}.self.value"),
        attn_mask=mask[:, None, None, :],
    )
    by_token = mixed.transpose(1, 2)
    joined = by_token.reshape(x.shape)
    attended = _linear(weights, joined, f"{attention}.output.dense")
    # BERT norms after the sum, where later networks norm before the layer.
    return _norm(weights, x + attended, f"{attention}.output.LayerNorm")


def _by_head(weights: Weights, x: Tensor, name: str) -> Tensor:
    """(n, t, width) -> (n, heads, t, width / heads)."""
    texts, length, _ = x.shape
    mapped = _linear(weights, x, name)
    by_token = mapped.view(texts, length, ATTENTION_HEADS, -1)
    return by_token.transpose(1, 2)


def _feed_forward(weights: Weights, x: Tensor, layer: str) -> Tensor:
    """(n, t, width) -> the same shape, token by token."""
    widened = _linear(weights, x, f"{layer}.intermediate.dense")
    activated = F.gelu(widened)
    narrowed = _linear(weights, activated, f"{layer}.output.dense")
    return _norm(weights, x + narrowed, f"{layer}.output.LayerNorm")


def _mean_over_tokens(x: Tensor, mask: Tensor) -> Tensor:
    """(n, t, width) -> (n, width), without what a text was filled up with."""
    weight = mask[..., None].to(x.dtype)
    weighted = x * weight
    total = weighted.sum(1)
    return total / weight.sum(1)


def _linear(weights: Weights, x: Tensor, name: str) -> Tensor:
    weight = weights[f"{name}.weight"]
    bias = weights[f"{name}.bias"]
    return F.linear(x, weight, bias)


def _norm(weights: Weights, x: Tensor, name: str) -> Tensor:
    weight = weights[f"{name}.weight"]
    bias = weights[f"{name}.bias"]
    return F.layer_norm(
        x,
        x.shape[-1:],
        weight,
        bias,
        EPSILON,
    )
